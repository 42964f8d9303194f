"""Events of OpenHands: the answers that actions share, what came of them, states of the loop, and both versions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inspector.sessions import open_paths
from tests.scenes.rows import each_row
from tests.scenes.shapes import OPENHANDS
from tests.scenes.transcripts import places, rules, show, stops, view_file, words

Row = dict[str, Any]


def notices(seen) -> str:
    return "\n".join(seen.inputs[0].notices)


def event(number: int, source: str = "agent", **more: Any) -> Row:
    return {"id": number, "timestamp": f"2026-02-01T00:00:{number:02}", "source": source, **more}


def prompt(number: int, said: str = "go") -> Row:
    return event(number, "user", action="message", args={"content": said}, message=said)


def call(key: str, arguments: str = '{"command": "ls"}') -> Row:
    return {"id": key, "type": "function", "function": {"name": "execute_bash", "arguments": arguments}}


def response(*calls: Row, word: str = "tool_calls", model: str = "gpt-4o") -> Row:
    message = {"role": "assistant", "content": None, "tool_calls": list(calls)}
    return {"id": "chatcmpl-1", "model": model, "choices": [{"index": 0, "finish_reason": word, "message": message}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 5}}


def act(number: int, key: str, given: Row | None, kind: str = "run", **more: Any) -> Row:
    meta = {"function_name": "execute_bash", "tool_call_id": key, "model_response": given}
    return event(number, action=kind, args={"command": "ls", "thought": "Look."}, tool_call_metadata=meta, **more)


def observation(number: int, cause: int, kind: str = "run", said: str = "a.py") -> Row:
    return event(number, "environment", observation=kind, content=said, extras={}, cause=cause)


def state(number: int, name: str, **more: Any) -> Row:
    return event(number, "environment", observation="agent_state_changed", content="",
                 extras={"agent_state": name, **more})


KEYS = ("call_a1b2c3d4", "call_e5f6a7b8")


def test_the_actions_of_one_answer_are_one_answer(tmp_path):
    both = response(call(KEYS[0]), call(KEYS[1]))
    rows = [prompt(0), act(1, KEYS[0], both), observation(2, 1), act(3, KEYS[1], both), observation(4, 3),
            event(5, action="message", args={"content": "Done."}), state(6, "awaiting_user_input")]
    seen = show(json.dumps(rows), tmp_path)
    assert stops(seen) == ["tool_call", "end_turn"]
    assert places(seen) == [["request", "tool_result"]]
    first, last = (facts.exchange for facts in seen.responses)
    assert (first.response.raw_stop_reason, first.response.usage.output_tokens) == ("tool_calls", 5)
    assert [part.call_id for part in last.request.messages[0].results] == list(KEYS)
    assert rules(seen, 1) == ["transcript.absent", "transcript.inferred.turn_ended"]
    assert words(seen) == ["END INFERRED"]
    assert "1 of 2 answers have no stop reason, as OpenHands keeps none for them" in notices(seen)


def test_a_finished_loop_is_an_end_and_no_other_state_is(tmp_path):
    said = event(1, action="message", args={"content": "Done."})
    for name, stop in (("finished", "end_turn"), ("awaiting_user_input", "end_turn"), ("running", "unknown")):
        seen = show(json.dumps([prompt(0), said, state(2, name)]), tmp_path)
        assert stops(seen) == [stop]
        assert ("records that hold no exchange: agent_state_changed (1)" in notices(seen)) is (name == "running")


def test_the_user_stops_it_and_it_fails(tmp_path):
    said = event(1, action="message", args={"content": "Done."})
    seen = show(json.dumps([prompt(0), said, state(2, "stopped")]), tmp_path)
    assert (stops(seen), words(seen)) == (["cancelled"], ["CANCELLED"])
    failed = show(json.dumps([prompt(0), said, state(2, "error", reason="LLM down")]), tmp_path)
    assert [skip.why for skip in failed.inputs[0].skipped] == ["the agent failed: LLM down"]


def test_a_turn_that_a_failure_ended_is_not_complete(tmp_path):
    rows = [prompt(0), act(1, KEYS[0], response(call(KEYS[0]))), observation(2, 1)]
    assert words(show(json.dumps(rows), tmp_path)) == ["COMPLETE SO FAR"]
    failed = show(json.dumps([*rows, state(3, "error", reason="LLM down")]), tmp_path)
    assert words(failed) == ["CANCELLED"]
    assert "event 4: the agent failed: LLM down" in [noted.finding.message for noted in failed.findings]
    later = [*rows, state(3, "error", reason="LLM down"), event(4, action="message", args={"content": "Done."}),
             state(5, "finished")]
    assert words(show(json.dumps(later), tmp_path)) == ["END INFERRED"]
    sdk = {"id": "9", "timestamp": "t", "source": "environment", "kind": "ConversationErrorEvent", "detail": "LLM down"}
    assert words(show(json.dumps([*rows, sdk]), tmp_path)) == ["CANCELLED"]


@pytest.mark.parametrize(("failed", "told"), [
    (state(3, "error", reason="LLM down"), "LLM down"),
    ({"id": "9", "timestamp": "t", "source": "environment", "kind": "ConversationErrorEvent",
      "code": "LLMRateLimitError", "detail": "429 Too many requests"}, "429 Too many requests"),
])
def test_a_message_of_the_user_that_got_an_error_is_a_turn_of_its_own(tmp_path, failed, told):
    said = event(1, action="message", args={"content": "Done."})
    seen = show(json.dumps([prompt(0), said, prompt(2), failed, prompt(4), {**said, "id": 5}]), tmp_path)
    assert stops(seen) == ["end_turn", "error", "unknown"]
    assert words(seen)[1] == "ERROR"
    assert seen.responses[1].exchange.response.error.message == told


def test_an_interrupt_of_version_1_cancels_the_turn(tmp_path):
    rows = [prompt(0), act(1, KEYS[0], response(call(KEYS[0]))), observation(2, 1),
            {"id": "9", "timestamp": "t", "source": "user", "kind": "InterruptEvent"}]
    assert words(show(json.dumps(rows), tmp_path)) == ["CANCELLED"]


def test_the_error_of_an_evaluation_ends_its_run(tmp_path):
    rows = [prompt(0), act(1, KEYS[0], response(call(KEYS[0]))), observation(2, 1)]
    runs = [{"instance_id": name, "history": rows, "error": error}
            for name, error in (("a", "RuntimeError: 50 iterations"), ("b", None), ("c", "RuntimeError: stuck"))]
    text = "\n".join(map(json.dumps, [{"instance_id": "none", "history": [], "error": "no room"}, *runs]))
    seen = show(text, tmp_path)
    assert words(seen) == ["CANCELLED", "COMPLETE SO FAR", "CANCELLED"]
    told = [noted.finding.message for noted in seen.findings if noted.finding.rule == "transcript.stopped"]
    assert told == ["event 3: the run ended with an error: RuntimeError: 50 iterations",
                    "event 9: the run ended with an error: RuntimeError: stuck"]
    assert words(show(json.dumps(runs[0], indent=1), tmp_path)) == ["CANCELLED"]


def test_an_evaluation_that_fails_after_the_agent_was_done_stops_no_turn(tmp_path):
    done = response({**call(KEYS[1]), "function": {"name": "finish", "arguments": "{}"}})
    rows = [prompt(0), act(1, KEYS[0], response(call(KEYS[0]))), observation(2, 1),
            act(3, KEYS[1], {**done, "id": "chatcmpl-2"}, "finish")]
    seen = show(json.dumps({"instance_id": "a", "history": rows, "error": "no grader"}), tmp_path)
    assert words(seen) == ["COMPLETE SO FAR"]
    assert "end a run whose agent was done before the evaluation failed: 1" in notices(seen)
    failed = [*rows, state(5, "error", reason="LLM down")]
    assert words(show(json.dumps({"instance_id": "a", "history": failed}), tmp_path)) == ["CANCELLED"]


def test_pairs_of_an_action_and_its_observation_are_events(tmp_path):
    pairs = [[prompt(0), {"observation": "null", "content": "", "extras": {}, "source": "environment"}],
             [event(1, action="run", args={"command": "ls", "thought": "Look."}), observation(2, 1)],
             [event(3, action="finish", args={"outputs": {}, "thought": "All is done."})]]
    seen = show(json.dumps({"instance_id": "x", "history": pairs}), tmp_path)
    assert seen.inputs[0].format == "openhands"
    assert (stops(seen), words(seen)) == (["tool_call", "end_turn"], ["END INFERRED"])
    assert seen.responses[1].exchange.response.text == "All is done."


BARE: list[Row] = [
    {"action": "message", "content": "fix it", "wait_for_response": False},
    {"action": "run", "thought": "Look.", "command": "ls", "is_confirmed": "confirmed"},
    {"observation": "run", "content": "a.py", "command": "ls", "exit_code": 0},
    {"action": "run_ipython", "thought": "Edit.", "code": "x = 1"},
    {"observation": "run_ipython", "content": "1", "code": "x = 1"},
    {"action": "message", "content": "Which one?", "wait_for_response": True},
    {"action": "message", "content": "the first", "wait_for_response": False},
    {"action": "browse", "thought": "", "url": "https://example.org"},
    {"observation": "error", "content": "no network"},
    {"action": "delegate", "thought": "Ask.", "agent": "b"},
    {"action": "finish", "thought": "", "outputs": {"content": "All is done."}},
]


def test_the_events_of_the_resolver_are_read_without_source_and_id(tmp_path):
    text = json.dumps({"issue": {"number": 1}, "history": BARE}) + "\n" + json.dumps({"history": BARE[:3]})
    seen = show(text, tmp_path)
    assert seen.inputs[0].format == "openhands"
    assert stops(seen) == ["tool_call", "tool_call", "end_turn", "tool_call", "unknown", "end_turn", "tool_call"]
    calls = [(made.name, made.arguments) for facts in seen.responses
             for made in facts.exchange.response.tool_calls]
    assert calls == [("run", "ls"), ("run_ipython", "x = 1"), ("browse", "https://example.org"), ("delegate", None),
                     ("run", "ls")]
    assert [turn.run.record.user_text for turn in seen.turns] == ["fix it", "the first", "fix it"]
    refused = seen.responses[4].exchange.request.messages[0].results[0]
    assert (refused.text, refused.is_error) == ("no network", True)
    assert [answer.result.text for answer in seen.inputs[0].answers] == ["a.py"]


@each_row("name", ["command", "code", "browser_actions", "url", "path"])
def test_what_a_bare_action_does_is_its_call(name, tmp_path):
    rows = [BARE[0], {"action": "do", "thought": "hm", "other": "x", name: "this"}]
    (call_,) = show(json.dumps({"history": rows}), tmp_path).responses[0].exchange.response.tool_calls
    assert (call_.name, call_.arguments, call_.kind.value) == ("do", "this", "custom")


def test_a_finish_without_words_stays_a_call(tmp_path):
    seen = show(json.dumps([prompt(0), event(1, action="finish", args={"outputs": {}, "thought": ""})]), tmp_path)
    assert (stops(seen), [call.name for call in seen.responses[0].exchange.response.tool_calls]) == (
        ["unknown"], ["finish"])


def test_an_evaluation_is_known_though_its_events_begin_late(tmp_path):
    late = {"instance_id": "x", "test_result": {"git_patch": "+" * 70_000}, "history": [prompt(0), event(
        1, action="message", args={"content": "Done."})]}
    assert show(json.dumps(late) + "\n" + json.dumps(late), tmp_path).inputs[0].responses == 2


def test_a_cut_call_is_held_and_its_error_is_no_run(tmp_path):
    cut = response(call(KEYS[0], '{"command": "ls'), word="length")
    seen = show(json.dumps([prompt(0), act(1, KEYS[0], cut), observation(2, 1, "error", "bad JSON")]), tmp_path)
    assert stops(seen) == ["max_tokens"]
    assert words(seen) == ["CALL HELD"]
    assert not [noted for noted in seen.findings if noted.finding.rule == "agent.ran_held_call"]


def test_an_action_without_its_answer_keeps_what_was_understood(tmp_path):
    seen = show(json.dumps([prompt(0), event(1, action="run", args={"command": "ls", "thought": "Look."}),
                            observation(2, 1), act(3, KEYS[0], None), observation(4, 3)]), tmp_path)
    assert stops(seen) == ["tool_call", "tool_call"]
    first = seen.responses[0].exchange.response
    assert (first.text, first.tool_calls[0].id, first.tool_calls[0].form.value) == ("Look.", "event 1", "object")
    assert seen.responses[1].exchange.response.tool_calls[0].name == "execute_bash"


@pytest.mark.parametrize("name", ["history", "trajectory", "events"])
def test_the_events_may_stand_in_an_object(name, tmp_path):
    said = event(1, action="message", args={"content": "Done."})
    assert stops(show(json.dumps({"instance_id": "x", name: [prompt(0), said]}), tmp_path)) == ["unknown"]


def test_each_line_of_an_evaluation_is_a_run_of_its_own(tmp_path):
    def run(name: str | None, *rows: Row) -> str:
        given = {"history": list(rows)} if name is None else {"instance_id": name, "history": list(rows)}
        return json.dumps(given)

    first = [prompt(0), act(1, KEYS[0], response(call(KEYS[0]))), observation(2, 1)]
    second = [prompt(0, "again"), event(1, action="run", args={"command": "ls"}), observation(2, 1, said="b.py")]
    text = "\n".join([run("repo-1", *first), run("repo-2"), run(None, *second)])
    seen = show(text, tmp_path)
    assert [facts.exchange.session for facts in seen.responses] == ["repo-1", "line 3"]
    assert places(seen) == [["request"], ["request"]]
    assert [answer.result.text for answer in seen.inputs[0].answers] == ["a.py", "b.py"]
    assert seen.responses[1].exchange.request.messages[0].parts[0].text == "again"
    assert [(skip.entry, skip.why) for skip in seen.inputs[0].skipped] == [(1, "repo-2 has no events")]
    cut = show(text[:-40], tmp_path)
    assert len(cut.responses) == 2
    assert "is cut after" in notices(cut)


def test_events_may_stand_a_line_each(tmp_path):
    rows = [message("go"), action(KEYS[0]), message("Done.", "agent", llm_response_id="resp_2")]
    text = "\n".join(map(json.dumps, rows))
    assert stops(show(text, tmp_path)) == ["unknown", "unknown"]
    assert "event 3, the last, is cut" in notices(show(text[:-9], tmp_path))


def test_one_event_alone_is_shown(tmp_path):
    said = event(1, action="message", args={"content": "Done."})
    assert show(json.dumps(said), tmp_path).responses[0].exchange.response.text == "Done."
    assert open_paths([str(tmp_path / "s.jsonl")]).inputs[0].format == "openhands"


@each_row("kind", [
    "system", "recall", "change_agent_state", "condensation", "condensation_request", "null", "initialize",
    "loop_recovery", "SystemPromptEvent", "SystemPromptUpdateEvent", "Condensation", "CondensationRequest",
    "CondensationSummaryEvent", "ConversationStateUpdateEvent", "TokenEvent", "PauseEvent", "StreamingDeltaEvent",
    "HookExecutionEvent", "LLMCompletionLogEvent", "ACPToolCallEvent"])
def test_events_without_an_exchange_are_counted(kind, tmp_path):
    old = kind[0].islower()
    row = event(1, "environment", action=kind, args={}) if old else event(1, "environment", kind=kind)
    given = notices(show(json.dumps([prompt(0), row]), tmp_path))
    assert f"records that hold no exchange: {kind} (1)" in given
    unknown = event(1, "environment", kind="HologramEvent") if not old else event(1, observation="hologram", extras={})
    assert "HologramEvent" in notices(show(json.dumps([prompt(0), unknown]), tmp_path)) or old


# -- version 1 ---------------------------------------------------------------------------------------------------------


def sdk(kind: str, source: str = "agent", **more: Any) -> Row:
    return {"id": "e", "timestamp": "2026-02-01T00:00:00", "source": source, "kind": kind, **more}


def message(said: str, source: str = "user", **more: Any) -> Row:
    return sdk("MessageEvent", source, llm_message={"role": "x", "content": [{"type": "text", "text": said}]}, **more)


def action(key: str, name: str = "resp_1", arguments: str = '{"command": "ls"}') -> Row:
    return sdk("ActionEvent", thought=[{"type": "text", "text": "Look."}], reasoning_content="hm", tool_name="terminal",
               tool_call_id=key, tool_call={"id": key, "name": "terminal", "arguments": arguments},
               llm_response_id=name)


def conversation(folder, *rows: Row, status: str = "idle") -> str:
    usage = {"response_id": "resp_1", "model": "m", "prompt_tokens": 9, "completion_tokens": 5, "reasoning_tokens": 2,
             "cache_read_tokens": 3, "cache_write_tokens": 4}
    held = {"id": "c", "execution_status": status, "agent": {"llm": {"model": "gpt-5", "max_output_tokens": 4096}},
            "stats": {"usage_to_metrics": {"agent": {"token_usages": [usage]}}}}
    (folder / "events").mkdir()
    (folder / "base_state.json").write_text(json.dumps(held))
    for number, row in enumerate(rows):
        (folder / "events" / f"event-{number:05}-x.json").write_text(json.dumps(row))
    return str(folder / "base_state.json")


def test_a_conversation_is_its_state_and_its_events(tmp_path):
    result = sdk("ObservationEvent", "environment", tool_call_id=KEYS[0], tool_name="terminal",
                 observation={"content": [{"type": "text", "text": "a.py"}], "is_error": False})
    refused = sdk("UserRejectObservation", "environment", tool_call_id=KEYS[1], rejection_reason="no")
    path = conversation(tmp_path, message("go"), action(KEYS[0]), action(KEYS[1]), result, refused,
                        message("Done.", "agent", llm_response_id="resp_2"), sdk("SystemPromptEvent"))
    loaded = open_paths([path])
    (given,), (first, last) = loaded.inputs, loaded.exchanges
    assert [each.name for each in first.response.tool_calls] == ["terminal", "terminal"]
    assert first.response.text == "Look."
    assert (first.request.max_tokens, first.response.usage) == (4096, (9, 5, 2, 3, 4))
    assert first.response.model == "gpt-5"
    assert first.refusals == {KEYS[1]: "the user refused it: it did not run"}
    assert last.request.messages[0].results[0].text == "a.py"
    assert "SystemPromptEvent (1)" in "\n".join(given.notices)
    alone = open_paths([str(tmp_path / "events" / "event-00001-x.json")]).inputs[0]
    assert "read with the base_state.json of the folder above" in alone.error


def test_a_call_takes_its_id_alone_from_its_event(tmp_path):
    bare = {**action(KEYS[0]), "name": "other", "arguments": '{"command": "rm"}', "tool_call": {"name": "terminal"}}
    unnamed = {**action(KEYS[1]), "name": "other", "tool_call": {"arguments": "{}"}}
    (answer,) = open_paths([conversation(tmp_path, message("go"), bare, unnamed)]).exchanges
    assert [(call.id, call.name, call.arguments) for call in answer.response.tool_calls] == [
        (KEYS[0], "terminal", None), (KEYS[1], "", "{}")]


def test_the_first_event_opens_a_conversation_without_its_state(tmp_path):
    system = sdk("", system_prompt={"text": "p" * 70_000})
    system["kind"] = system.pop("kind") or "SystemPromptEvent"  # behind the text, as the agent writes it
    result = sdk("ObservationEvent", "environment", tool_call_id=KEYS[0], observation={"content": "a.py"})
    names = [f"event-{number:05}-x.json" for number in range(4)]
    for name, row in zip(names, (system, message("go"), action(KEYS[0]), result), strict=True):
        (tmp_path / name).write_text(json.dumps(row))
    loaded = open_paths([str(tmp_path / names[0])])
    assert [answer.result.text for answer in loaded.inputs[0].answers] == ["a.py"]
    assert "SystemPromptEvent (1)" in "\n".join(loaded.inputs[0].notices)
    other = open_paths([str(tmp_path / names[2])]).inputs[0]
    assert f"one event of a conversation, read with the first, {names[0]}" in other.error


LOGGED = {"id": "resp_1", "choices": [{"index": 0, "finish_reason": "length", "message": {"content": "Look."}}],
          "usage": {"prompt_tokens": 9, "completion_tokens": 5}}


@each_row("first", [True, False])
@each_row(("response", "raw"), [
    (LOGGED, "length"), ({"id": "resp_1", "object": "response", "status": "incomplete", "incomplete_details": {
        "reason": "max_output_tokens"}}, "incomplete:max_output_tokens"),
])
def test_a_logged_response_has_the_word_of_its_answer(tmp_path, first, response, raw):
    log = sdk("LLMCompletionLogEvent", "environment", filename="a.json", log_data=json.dumps({"response": response}))
    rows = (log, action(KEYS[0])) if first else (action(KEYS[0]), log)
    (exchange,) = open_paths([conversation(tmp_path, message("go"), *rows)]).exchanges
    stop = exchange.response.stop_reason
    assert (stop.normalized.value, stop.raw) == ("max_tokens", raw)
    assert {seen.at.pointer for seen in stop.evidence} == {"/log_data"}


@each_row("text", [3, "{", "{}", '{"response": {"id": "resp_2"}}'])
def test_a_log_of_another_response_says_nothing(tmp_path, text):
    log = sdk("LLMCompletionLogEvent", "environment", filename="a.json", log_data=text)
    (exchange,) = open_paths([conversation(tmp_path, message("go"), log, action(KEYS[0]))]).exchanges
    assert exchange.response.stop_reason.raw is None


def test_a_cut_call_keeps_its_string_and_an_error_is_told(tmp_path):
    error = sdk("AgentErrorEvent", tool_call_id=KEYS[0], tool_name="terminal", error="Error validating args")
    failed = sdk("ConversationErrorEvent", "environment", code="LLMBadRequestError", detail="too long")
    path = conversation(tmp_path, message("go"), action(KEYS[0], arguments='{"command": "l'), error, failed)
    loaded = open_paths([path])
    assert loaded.exchanges[0].response.stop_reason.normalized.value == "max_tokens"
    assert loaded.inputs[0].answers[0].result.is_error
    assert [skip.why for skip in loaded.inputs[0].skipped] == ["the conversation failed: too long"]


@pytest.mark.parametrize(("member", "told"), [
    ({"args": 1}, "event 2: args is a number, but an object was expected"),
    ({"tool_call_metadata": {"model_response": 1}}, "event 2: tool_call_metadata.model_response is a number, but an"),
])
def test_a_member_of_an_odd_kind_is_told(member, told, tmp_path):
    rows = [OPENHANDS[0], {**OPENHANDS[1], **member}, *OPENHANDS[2:]]
    assert told in notices(show(json.dumps(rows), tmp_path))


@pytest.mark.parametrize(("logged", "stop"), [
    (None, "malformed_tool_call"), ("tool_calls", "malformed_tool_call"), ("length", "max_tokens")])
def test_a_call_for_whose_arguments_the_sdk_wrote_its_own_is_malformed(tmp_path, logged, stop):
    """As SDK 1 stores a call whose arguments were no JSON: what the model wrote is lost."""
    stand_in = {"_openhands_malformed_tool_call": True, "error": "Unterminated string. Arguments: unparseable JSON"}
    error = sdk("AgentErrorEvent", tool_call_id=KEYS[0], tool_name="terminal", error="Error validating args")
    response = {"id": "resp_1", "choices": [{"index": 0, "finish_reason": logged, "message": {"role": "assistant"}}]}
    log = [sdk("LLMCompletionLogEvent", "environment", filename="a", log_data=json.dumps({"response": response}))]
    rows = [message("go"), *(log if logged else []), action(KEYS[0], arguments=json.dumps(stand_in)), error]
    (exchange,) = open_paths([conversation(tmp_path, *rows)]).exchanges
    (call_made,) = exchange.response.tool_calls
    assert (call_made.name, call_made.arguments, call_made.closed) == ("terminal", None, False)
    assert exchange.response.stop_reason.normalized.value == stop
    last = exchange.response.stop_reason.evidence[-1]
    assert ("Unterminated string" in last.note) is (stop == "malformed_tool_call")


@pytest.mark.parametrize(("status", "verdict"), [
    ("finished", "END INFERRED"), ("stuck", "END NOT RECORDED"), ("idle", "END NOT RECORDED")])
def test_the_state_says_that_the_loop_of_version_1_ended(status, verdict, tmp_path):
    rows = [message("go"), message("Done.", "agent", llm_response_id="resp_1")]
    assert words(view_file(conversation(tmp_path, *rows, status=status))) == [verdict]


def test_a_finished_state_ends_no_answer_before_a_message_that_waits(tmp_path):
    rows = [message("go"), message("Done.", "agent", llm_response_id="resp_1"), message("and now?")]
    (exchange,) = open_paths([conversation(tmp_path, *rows, status="finished")]).exchanges
    assert [each.rule for each in exchange.response.stop_reason.evidence][-1] == "transcript.inferred.user_went_on"


@pytest.mark.parametrize(("source", "said", "turns"), [
    ("environment", "", 1), ("environment", "I look.", 2), ("user", "", 2)])
def test_what_the_sdk_asks_after_an_empty_answer_is_in_the_same_turn(source, said, turns, tmp_path):
    rows = [message("go"), message(said, "agent", llm_response_id="resp_1"), message("Use a tool.", source),
            message("Done.", "agent", llm_response_id="resp_2")]
    assert len(words(view_file(conversation(tmp_path, *rows, status="finished")))) == turns
