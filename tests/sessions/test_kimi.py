"""Sessions of Kimi Code and of Kimi CLI: three words and the cap, steps without an answer, results, and the state."""

from __future__ import annotations

import json
import os

import pytest

from inspector.sessions import open_paths
from inspector.sessions.importers.recognition import choose
from loop_core.values import ReasoningPart
from tests.scenes.rows import each_row
from tests.scenes.transcripts import places, rules, show, stops, words

HEAD = {"type": "metadata", "protocol_version": "1.4", "created_at": 1}


def request(step="0.1", cap=4096, provider="kimi", **more):
    return {"type": "llm.request", "provider": provider, "model": "kimi-k2", "maxTokens": cap, "turnStep": step,
            "time": 1_785_612_812_829, **more}


def prompt(text, kind="user"):
    return {"type": "context.append_message", "message": {
        "role": "user", "content": [{"type": "text", "text": text}], "origin": {"kind": kind}}}


def loop(kind, **more):
    return {"type": "context.append_loop_event", "event": {"type": kind, **more}}


def begin(key="s1"):
    return loop("step.begin", uuid=key, turnId="0", step=1)


def text(said, key="s1"):
    return loop("content.part", stepUuid=key, part={"type": "text", "text": said})


def call(key="s1", **args):
    return loop("tool.call", stepUuid=key, toolCallId="c1", name="Write", args=args)


def result(said="ok", **more):
    return loop("tool.result", toolCallId="c1", result={"output": said, **more})


def end(key="s1", output=12, **words_):
    return loop("step.end", uuid=key, messageId=f"chatcmpl-{key}", **words_,
                usage={"inputOther": 10, "inputCacheRead": 30, "inputCacheCreation": 2, "output": output})


def session(*rows, head=HEAD):
    return "".join(json.dumps(row) + "\n" for row in (head, *rows))


def one_turn(tmp_path, **words_):
    seen = show(session(prompt("go"), request(), begin(), text("Half of"), end(**words_)), tmp_path)
    return seen, seen.responses[0]


def entry(role, *content, meta=None, **more):
    """A message of the engine's journal."""
    return {"type": "agent.message.appended", "kind": "event", "time": 1_785_612_812_900,
            "message": {"message": {"role": role, "content": list(content), **more}, "meta": meta or {}}}


def finish(word, raw=None, **more):
    return {"finish": {"finishReason": word, "rawFinishReason": raw}, "messageId": "m1", **more,
            "usage": {"inputOther": 10, "inputCacheRead": 30, "inputCacheCreation": 2, "output": 12}}


def part(said):
    return {"type": "text", "text": said}


ENGINE = (
    {"type": "turn.prompt", "input": [part("go")], "turnId": 0},
    entry("user", part("go")),
    entry("assistant", {"type": "think", "think": "hm"}, meta=finish(
        "tool_calls", "tool_calls", model={"provider": "kimi", "model": "k3"}), toolCalls=[
            {"type": "function", "id": "c1", "name": "Write", "arguments": '{"path": "a'}]),
    entry("tool", part("no"), toolCallId="c1"),
    entry("assistant", part("Half of"), meta=finish("truncated"), toolCalls=[]),
)


def test_the_engines_journal_is_read_where_there_are_no_events_of_the_loop(tmp_path):
    seen = show(session(*ENGINE), tmp_path)
    first, last = (view.exchange for view in seen.responses)
    assert [turn.run.record.user_text for turn in seen.turns] == ["go"]
    assert stops(seen) == ["max_tokens", "max_tokens"]  # the call was cut, whatever the provider said
    assert first.response.raw_stop_reason == "tool_calls"
    assert first.response.model == "k3"
    assert first.response.usage == (42, 12, None, 30, 2)
    assert [call.arguments for call in first.response.tool_calls] == ['{"path": "a']
    assert last.response.text == "Half of"
    assert last.response.raw_stop_reason is None
    assert [part.text for message in last.request.messages for part in message.results] == ["no"]


def test_the_engines_journal_repeats_the_events_of_the_loop(tmp_path):
    rows = (ENGINE[0], prompt("go"), request(), begin(), text("All"), end(rawFinishReason="stop"), *ENGINE[1:],
            {"type": "agent.turn.ended", "outcome": "done", "turnId": 0})
    seen = show(session(*rows), tmp_path)
    assert [view.exchange.response.text for view in seen.responses] == ["All"]
    assert words(seen) == ["COMPLETE"]


@pytest.mark.parametrize("written", ['{"path": "a', "{path: a}"])
def test_arguments_that_kimi_code_could_not_read_are_those_of_the_engines_journal(tmp_path, written):
    """The events of the loop have `{}` for them."""
    refused = result("Invalid args for tool \"Write\": must have required property 'path'", isError=True)
    rows = (prompt("go"), request(), begin(), call(), refused, end(rawFinishReason="tool_calls"),
            entry("assistant", meta=finish("tool_calls", "tool_calls"), toolCalls=[
                {"type": "function", "id": "c1", "name": "Write", "arguments": written}]))
    seen = show(session(*rows), tmp_path)
    (facts,) = seen.responses
    (made,) = facts.exchange.response.tool_calls
    assert (made.arguments, words(seen)) == (written, ["CALL HELD"])
    assert facts.exchange.refusals == {"c1": "the agent refused its arguments: it did not run"}
    whole = show(session(*rows[:-1], entry("assistant", toolCalls=[
        {"type": "function", "id": "c1", "name": "Write", "arguments": "{}"}])), tmp_path)
    assert whole.responses[0].exchange.response.tool_calls[0].arguments == "{}"
    assert whole.responses[0].exchange.lines == (5, 7), "the journal adds nothing"


def test_a_message_of_the_user_stands_once(tmp_path):
    seen = show(session(ENGINE[0], prompt("go"), entry("user", part("go")), entry("user", part("and more")),
                         entry("assistant", part("ok"), meta=finish("completed", "stop"))), tmp_path)
    assert [message.text for message in seen.responses[0].exchange.request.messages] == ["go", "and more"]


@each_row("kind", [
    "agent.message.appended", "agent.turn.started", "agent.turn.ended", "prompt.accepted", "task.started",
    "task.terminated", "interaction.request", "interaction.resolved", "turn.step.retrying", "tools.update_store",
    "context.update_token_count", "micro_compaction.apply", "swarm_mode.enter", "swarm_mode.exit", "tower_mode.enter",
    "tower_mode.exit", "cron.add", "cron.delete", "cron.cursor", "staleGuard.recorded", "staleGuard.cleared",
    "subagent.spawned", "subagent.started", "subagent.suspended", "subagent.completed", "subagent.failed",
    "subagent.cancelled",
])
def test_newer_records_are_known(tmp_path, kind):
    seen = show(session({"type": kind}, prompt("go"), request(), begin(), text("All"), end()), tmp_path)
    assert "unknown type" not in "\n".join(seen.inputs[0].notices)


def test_the_providers_own_word_comes_first(tmp_path):
    seen, facts = one_turn(tmp_path, rawFinishReason="length", providerFinishReason="truncated",
                           finishReason="max_tokens")
    assert (facts.exchange.response.raw_stop_reason, stops(seen)) == ("length", ["max_tokens"])
    assert rules(seen)[0] == "transcript.provider"
    assert facts.exchange.request.max_tokens == 4096
    assert facts.exchange.response.usage == (42, 12, None, 30, 2)
    assert facts.exchange.started == "2026-08-01T19:33:32.829+00:00"
    assert words(seen) == ["TRUNCATED"]
    at = facts.judgement.stop.evidence[0].at
    assert at.pointer == "/event/rawFinishReason"


@each_row(("word", "stop"), [
    ("completed", "end_turn"), ("max_output_tokens", "max_tokens"), ("content_filter", "safety_blocked"),
    ("incomplete", "interrupted"), ("failed", "error"), ("a new word", "unknown"),
])
def test_the_reason_of_an_incomplete_answer_of_the_responses_api_stands_without_its_status(tmp_path, word, stop):
    asked = request(provider="openai_responses")
    seen = show(session(prompt("go"), asked, begin(), text("Half of"), end(rawFinishReason=word)), tmp_path)
    assert (stops(seen), seen.responses[0].exchange.response.raw_stop_reason) == ([stop], word)


@each_row(("provider", "input_tokens"), [("kimi", 42), ("openai_responses", 42), ("anthropic", 10)])
def test_the_input_is_counted_as_the_wire_format_counts_it(tmp_path, provider, input_tokens):
    rows = (prompt("go"), request(provider=provider), begin(), text("All."), end(rawFinishReason="stop"))
    usage = show(session(*rows), tmp_path).responses[0].exchange.response.usage
    assert usage == (input_tokens, 12, None, 30, 2), "Anthropic counts tokens of the cache apart"


def test_a_message_of_the_user_is_no_end_of_a_step_that_has_none(tmp_path):
    step = (prompt("go"), request(), begin(), text("Half of"))
    for ends, stop in ((), "unknown"), ((end(),), "end_turn"):
        seen = show(session(*step, *ends, prompt("and the tests?")), tmp_path)
        assert stops(seen) == [stop]
    assert rules(seen)[-1] == "transcript.inferred.user_went_on"  # it ended, without a word


@each_row(("word", "stop"), [
    ("completed", "end_turn"), ("truncated", "max_tokens"), ("filtered", "safety_blocked"), ("paused", "paused"),
    ("tool_calls", "tool_call"), ("end_turn", "end_turn"), ("tool_use", "tool_call"), ("max_tokens", "max_tokens"),
    ("interrupted", "cancelled"), ("error", "error"), ("other", "unknown"),
])
def test_its_own_words_are_the_recorders(tmp_path, word, stop):
    for name in ("providerFinishReason", "finishReason"):
        seen, facts = one_turn(tmp_path, **{name: word})
        assert facts.exchange.response.stop_reason.normalized == stop
        assert facts.exchange.response.raw_stop_reason is None
        assert rules(seen)[0] == "transcript.recorder"
        assert "1 of 1 steps have no word of the provider's" in seen.inputs[0].notices[0]


@each_row("word", ["end_turn", "tool_use"])
def test_a_word_that_newer_releases_write_without_any_of_the_providers_ends_nothing(tmp_path, word):
    """Release 2.1 writes `end_turn` also if the stream had no stop reason, and stores that reason otherwise."""
    seen, facts = one_turn(tmp_path, finishReason=word, llmClientBlockedMs=9)
    assert (words(seen), facts.exchange.response.stop_reason.normalized) == (["END NOT RECORDED"], "unknown")
    seen, facts = one_turn(tmp_path, finishReason=word, rawFinishReason="stop", llmClientBlockedMs=9)
    assert facts.exchange.response.raw_stop_reason == "stop"
    _, facts = one_turn(tmp_path, finishReason="max_tokens", llmClientBlockedMs=9)
    assert facts.judgement.stop.normalized == "max_tokens"


@each_row(("provider", "api"), [
    ("kimi", "openai_chat"), ("openai", "openai_chat"), ("openai_legacy", "openai_chat"),
    ("openai_responses", "openai_responses"), ("anthropic", "anthropic_messages"), ("google-genai", "gemini_generate"),
    ("google_genai", "gemini_generate"), ("gemini", "gemini_generate"), ("vertexai", "gemini_generate"),
    ("somebody", "openai_chat"),
])
def test_the_wire_format_is_that_of_the_provider(tmp_path, provider, api):
    seen = show(session(prompt("go"), request(provider=provider), begin(), text("Hi"), end()), tmp_path)
    assert seen.responses[0].exchange.api == api


def test_calls_and_results(tmp_path):
    seen = show(session(prompt("go"), request(), begin(), call(path="a.md"), result(),
                         end(rawFinishReason="tool_calls"), request("0.2"), begin("s2"), text("Done.", "s2"),
                         end("s2", rawFinishReason="stop"), {"type": "turn.ended", "reason": "completed"}), tmp_path)
    assert places(seen) == [["request", "tool_result"]]
    assert stops(seen) == ["tool_call", "end_turn"]
    assert seen.responses[0].verdicts[0].call.arguments == '{"path": "a.md"}'
    assert seen.responses[1].exchange.request.messages[0].results[0].text == "ok"
    assert words(seen) == ["COMPLETE"]


def test_a_cut_call_that_was_run_is_told(tmp_path):
    seen = show(session(prompt("go"), request(), begin(), call(path="a.md"), result(), end(rawFinishReason="length"),
                         begin("s2"), text("Done.", "s2"), end("s2", rawFinishReason="stop")), tmp_path)
    assert words(seen) == ["CUT CALL RUN"]


def test_a_step_of_which_nothing_came_is_an_answer_of_its_own(tmp_path):
    seen = show(session(prompt("go"), begin(), request(), request(), {"type": "turn.cancel"}, prompt("again"),
                         begin("s2"), request("1.1")), tmp_path)
    assert words(seen) == ["CANCELLED", "END NOT RECORDED"]
    assert any("ask for a step once more" in notice for notice in seen.inputs[0].notices)


def test_what_kimi_says_itself_and_compactions(tmp_path):
    seen = show(session({"type": "turn.prompt", "input": []}, prompt("note", "skill"), prompt("go"),
                         {"type": "context.apply_compaction", "summary": "s"}, request(), begin(), text("Hi"), end(),
                         {"type": "turn.ended", "reason": "budget"}, {"type": "brand.new"}), tmp_path)
    assert seen.turns[0].run.record.user_text == "go"
    assert any(noted.finding.rule == "transcript.compacted" for noted in seen.findings)
    assert "records of unknown type were skipped: brand.new (1)" in "\n".join(seen.inputs[0].notices)


def test_the_state_of_a_session_says_where_its_answers_are(tmp_path):
    state = json.dumps({"createdAt": "t", "title": "Tides", "agents": {"main": {}}, "workDir": "/w"}, indent=1)
    seen = show(state, tmp_path, name="state.json")
    assert seen.inputs[0].error is None
    assert "agents/<agent>/wire.jsonl" in seen.inputs[0].notices[0]
    assert seen.inputs[0].about.title == "Tides"


def test_the_python_client(tmp_path):
    def row(kind, **payload):
        return {"timestamp": 1.5, "message": {"type": kind, "payload": payload}}

    cut = '{"path": "a.md", "content": "one tw'
    seen = show(session(
        row("TurnBegin", user_input="go"), row("StepBegin", n=1), row("ContentPart", type="think", think="hm"),
        row("ContentPart", type="text", text="Writing."),
        row("ToolCall", id="c1", function={"name": "Write", "arguments": cut}),
        row("StatusUpdate", token_usage={"input_other": 5, "input_cache_read": 1, "input_cache_creation": 2,
                                          "output": 9}, message_id="m1"),
        row("ToolResult", tool_call_id="c1", return_value={"is_error": True, "output": "bad JSON"}),
        row("StepBegin", n=2), row("ContentPart", type="text", text="Done."),
        row("StatusUpdate", message_id="m2"), row("TurnEnd"),
        row("TurnBegin", user_input="more"), row("StepBegin", n=1), row("ContentPart", type="text", text="Wai"),
        row("StepInterrupted"), row("StepRetry", error_type="x"), row("CompactionBegin"), head=HEAD), tmp_path)
    assert stops(seen) == ["max_tokens", "end_turn", "error"]
    first = seen.responses[0].exchange.response
    assert (first.id, first.usage, first.reasoning_content) == ("m1", (8, 9, None, 1, 2), "hm")
    assert seen.responses[0].verdicts[0].call.arguments == cut
    assert seen.responses[0].exchange.started == "1970-01-01T00:00:01.500+00:00"
    assert "Kimi CLI keeps no stop reason" in seen.inputs[0].notices[0]
    assert [row.text for row in seen.responses[1].exchange.request.messages[0].results] == ["bad JSON"]


def event(kind, **payload):
    return {"timestamp": 1.5, "message": {"type": kind, "payload": payload}}


RETRY = event("StepRetry", n=1, next_attempt=2, max_attempts=3, error_type="APIStatusError", status_code=429)
BROKEN = "the step failed; Kimi CLI does not record why"


@pytest.mark.parametrize(("rows", "said", "told"), [
    ((), None, BROKEN), ((event("ContentPart", type="text", text="Hel"),), "Hel", BROKEN),
    ((RETRY,), None, f"{BROKEN} (an attempt before it ended in APIStatusError, HTTP 429)"),
    ((event("StepRetry", n=1, error_type="APIConnectionError"),), None,
     f"{BROKEN} (an attempt before it ended in APIConnectionError)"),
    ((RETRY, event("StepBegin", n=2)), None, BROKEN),
])
def test_a_step_of_the_python_client_that_failed_is_an_answer_with_an_error(tmp_path, rows, said, told):
    seen = show(session(
        event("TurnBegin", user_input="go"), event("StepBegin", n=1), *rows, event("StepInterrupted"),
        event("TurnBegin", user_input="more"), event("StepBegin", n=1), event("ContentPart", type="text", text="Done."),
        event("TurnEnd"), head=HEAD), tmp_path)
    assert (stops(seen), words(seen)) == (["error", "end_turn"], ["ERROR", "END INFERRED"])
    first = seen.responses[0].exchange
    assert (first.response.text, first.response.error.message) == (said, told)
    assert first.request.messages[0].text == "go"


def test_a_step_of_the_python_client_that_failed_after_its_answer_leaves_that_as_it_is(tmp_path):
    seen = show(session(
        event("TurnBegin", user_input="go"), event("StepBegin", n=1), event("ContentPart", type="text", text="I "),
        event("ToolCall", id="c1", function={"name": "Write", "arguments": "{}"}),
        event("StatusUpdate", token_usage={"output": 4}),
        event("ToolResult", tool_call_id="c1", return_value={"output": "ok"}), event("StepInterrupted"), head=HEAD),
        tmp_path)
    assert stops(seen) == ["tool_call"]
    assert rules(seen, 0)[-1] == "transcript.inferred.calls_answered"
    assert any(f"line 8: {BROKEN}" in note.finding.message for note in seen.findings)


def step(*rows, n=1):
    return (event("StepBegin", n=n), *rows)


def piece(said):
    return event("ContentPart", type="text", text=said)


WHOLE = event("StatusUpdate", token_usage={"output": 4}, message_id="m1")


@each_row("kind", [
    "HookTriggered", "HookResolved", "HookRequest", "MCPLoadingBegin", "MCPLoadingEnd", "Notification", "PlanDisplay",
    "QuestionRequest", "ToolCallRequest"])
def test_newer_events_of_the_python_client_are_known(tmp_path, kind):
    seen = show(session(event("TurnBegin", user_input="go"), *step(event(kind), piece("Hi."))), tmp_path)
    assert f"{kind} (1)" in "\n".join(seen.inputs[0].notices)
    assert "unknown type" not in "\n".join(seen.inputs[0].notices)


def test_what_a_command_of_the_python_client_prints_is_no_answer(tmp_path):
    seen = show(session(
        event("TurnBegin", user_input="/yolo"), piece("You only live once!"), event("TurnEnd"),
        event("TurnBegin", user_input="go"), *step(piece("Hal")),
        event("TurnBegin", user_input="/compact"), piece("The context has been compacted."), event("TurnEnd"),
        event("TurnBegin", user_input="more"), *step(piece("Done."), WHOLE), event("TurnEnd")), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["Hal", "Done."]
    assert rules(seen, 0)[-1] != "transcript.inferred.turn_ended", "the end of the command is not that of the answer"
    assert "texts of Kimi CLI itself" in "\n".join(seen.inputs[0].notices)


def test_the_end_of_a_turn_is_no_end_of_an_answer_that_was_not_whole(tmp_path):
    seen = show(session(
        event("TurnBegin", user_input="go"), *step(piece("All."), WHOLE), event("TurnEnd"),
        event("TurnBegin", user_input="more"), *step(piece("Hal")), event("TurnEnd"),
        event("TurnBegin", user_input="again"), *step(piece("Hal")),
        event("TurnBegin", user_input="last"), *step(piece("Done."), WHOLE), event("TurnEnd")), tmp_path)
    assert stops(seen) == ["end_turn", "unknown", "unknown", "end_turn"]
    assert words(seen) == ["END INFERRED", "END NOT RECORDED", "END NOT RECORDED", "END INFERRED"]
    assert any("line 10: the turn ended within a step" in note.finding.message for note in seen.findings)


def test_an_attempt_that_failed_within_its_answer_is_an_answer_of_its_own(tmp_path):
    cut = event("ToolCall", id="c1", function={"name": "Write", "arguments": '{"path": "a'})
    whole = event("ToolCall", id="c2", function={"name": "Write", "arguments": '{"path": "a.md"}'})
    seen = show(session(
        event("TurnBegin", user_input="go"),
        *step(piece("Wri"), cut, event("StepRetry", n=1, error_type="APIConnectionError"), piece("Writing."), whole,
              WHOLE, event("ToolResult", tool_call_id="c2", return_value={"output": "ok"})),
        *step(piece("Done."), WHOLE, n=2), event("TurnEnd")), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["Wri", "Writing.", "Done."]
    assert stops(seen) == ["error", "tool_call", "end_turn"]
    assert seen.responses[0].exchange.response.error.message == (
        "the request failed and was sent again (APIConnectionError)")
    assert [facts.verdicts[0].admission.value for facts in seen.responses[:2]] == ["held", "ready"]


@pytest.mark.parametrize(("rest", "stop"), [
    ((), "unknown"), ((event("TurnBegin", user_input="more"), *step(piece("Done."))), "interrupted"),
    ((event("ToolResult", tool_call_id="c1", return_value={"is_error": True, "output": "bad JSON"}),), "max_tokens"),
])
def test_a_call_that_was_still_arriving_was_not_cut_by_the_cap(tmp_path, rest, stop):
    call = event("ToolCall", id="c1", function={"name": "Write", "arguments": '{"path": "a'})
    seen = show(session(event("TurnBegin", user_input="go"), *step(call), *rest), tmp_path)
    assert seen.responses[0].exchange.response.stop_reason.normalized.value == stop
    assert seen.responses[0].verdicts[0].admission.value == "held"


def test_a_side_question_is_a_session_of_its_own(tmp_path):
    rows = [{"type": "metadata", "protocol_version": "1.1"}, event("TurnBegin", user_input="go"),
            event("StepBegin", n=1), event("ContentPart", type="text", text="Hel"),
            event("BtwBegin", id="q1", question="What is it?"), event("BtwBegin", id="q2", question="And that?"),
            event("ContentPart", type="text", text="lo"),
            event("BtwEnd", id="q1", response="A file."), event("BtwEnd", id="q2", error="Error code: 529"),
            event("TurnEnd")]
    seen = show("".join(f"{json.dumps(row)}\n" for row in rows), tmp_path)
    answers = [facts.exchange for facts in seen.responses]
    assert [each.response.text for each in answers] == ["Hello", "A file.", None]
    assert [each.request.messages[0].text for each in answers] == ["go", "What is it?", "And that?"]
    assert stops(seen) == ["end_turn", "end_turn", "error"]
    assert "529" in str(answers[2].response.error)
    assert [("side question" in each.session) for each in answers] == [False, True, True]
    assert "unknown" not in "\n".join(seen.inputs[0].notices)


def sub_event(kind, names, **payload):
    return event("SubagentEvent", **names, event={"type": kind, "payload": payload})


CALL = event("ToolCall", id="call_a1b2c3d4", function={"name": "Agent", "arguments": "{}"})
NEW = {"parent_tool_call_id": "call_a1b2c3d4", "agent_id": "a12345678", "subagent_type": "explore"}


@pytest.mark.parametrize(("names", "called"), [
    (NEW, "explore (12345678)"), ({**NEW, "agent_id": None}, "explore (a1b2c3d4)"),
    ({"task_tool_call_id": "call_a1b2c3d4"}, "subagent (a1b2c3d4)")])
def test_a_subagent_of_the_python_client_is_a_session_of_its_own_below_that_of_its_file(tmp_path, names, called):
    seen = show(session(
        event("TurnBegin", user_input="go"), event("StepBegin", n=1), event("ContentPart", type="text", text="I "),
        CALL, event("CompactionBegin"),
        sub_event("TurnBegin", names, user_input="look"), sub_event("StepBegin", names, n=1),
        sub_event("ContentPart", names, type="text", text="See"), event("ContentPart", type="text", text="ask."),
        sub_event("ContentPart", names, type="text", text="n."),
        sub_event("StatusUpdate", names, token_usage={"output": 4}),
        sub_event("TurnEnd", names), event("ToolResult", tool_call_id="call_a1b2c3d4",
                                           return_value={"output": "Seen."}),
        event("StepBegin", n=2), event("ContentPart", type="text", text="Done."), event("TurnEnd")), tmp_path)
    first, child, last = seen.responses
    assert [facts.exchange.response.text for facts in seen.responses] == ["I ask.", "Seen.", "Done."]
    assert [facts.exchange.session for facts in seen.responses] == ["", f"› {called}", ""]
    assert [turn.run.record.user_text for turn in seen.turns] == ["go", "look"]
    assert (stops(seen), words(seen)) == (["tool_call", "end_turn", "end_turn"], ["END INFERRED", "END INFERRED"])
    assert child.exchange.response.usage.output_tokens == 4
    assert (first.exchange.response.usage, last.exchange.request.messages[0].results[0].text) == (None, "Seen.")
    assert [noted.response for noted in seen.findings if noted.finding.rule == "transcript.compacted"] == [2]


def test_a_subagent_with_a_file_of_its_own_is_shown_there_alone(tmp_path):
    folder = tmp_path / "subagents" / "a12345678"
    folder.mkdir(parents=True)
    (folder / "wire.jsonl").touch()
    rows = session(event("TurnBegin", user_input="go"), CALL, sub_event("TurnBegin", NEW, user_input="look"),
                   sub_event("ContentPart", NEW, type="text", text="Seen."))
    assert [facts.exchange.session for facts in show(rows, tmp_path, name="wire.jsonl").responses] == [
        "", "› explore (12345678)"], "its own file holds nothing"
    own = session(event("TurnBegin", user_input="look"), event("ContentPart", type="text", text="Seen."))
    (folder / "meta.json").write_text(json.dumps({"description": "Look around"}))
    child = show(own, folder, name="wire.jsonl")
    assert child.inputs[0].about[:1] + child.inputs[0].about[-2:] == ("Look around", str(folder), str(tmp_path))
    seen = show(rows, tmp_path, name="wire.jsonl")
    assert [facts.exchange.session for facts in seen.responses] == [""]
    assert "events of subagents, which the files in subagents/ show: 2" in "\n".join(seen.inputs[0].notices)
    assert seen.inputs[0].about[-2:] == (str(tmp_path), "")


@each_row("agent", ["../a", ".", "a\0b", "a" * 300])
def test_the_name_of_a_subagent_leads_out_of_no_folder(tmp_path, agent):
    for place in (tmp_path / "wire.jsonl", tmp_path / "subagents" / "wire.jsonl", tmp_path / "a" / "wire.jsonl"):
        place.parent.mkdir(exist_ok=True)
        place.write_text("x")
    seen = show(session(event("TurnBegin", user_input="go"),
                        sub_event("ContentPart", {"agent_id": agent}, text="Seen.")),
                tmp_path, name="main.jsonl")
    assert [facts.exchange.response.text for facts in seen.responses] == ["Seen."]


@each_row("meta", ["{", "[]", '{"description": 7}', None])
def test_a_subagent_without_a_description_is_called_by_its_first_message(tmp_path, meta):
    folder = tmp_path / "subagents" / "a1"
    folder.mkdir(parents=True)
    if meta is not None:
        (folder / "meta.json").write_text(meta)
    child = show(session(event("TurnBegin", user_input="look"), event("ContentPart", text="Seen.")), folder,
                 name="wire.jsonl")
    assert (child.inputs[0].about.title, child.inputs[0].about.parent) == ("", str(tmp_path))


def test_a_subagent_that_a_subagent_began_and_events_of_nobody(tmp_path):
    inner = {"type": "SubagentEvent", "payload": {"agent_id": "b2", "event": {
        "type": "ContentPart", "payload": {"type": "text", "text": "Deep."}}}}
    seen = show(session(
        event("TurnBegin", user_input="go"), event("SubagentEvent", agent_id="a1", event=inner),
        event("SubagentEvent", agent_id="a1", event="lost"), event("SubagentEvent", event=inner["payload"]["event"]),
        event("ContentPart", type="text", text="Done.")), tmp_path)
    assert [(facts.exchange.session, facts.exchange.response.text) for facts in seen.responses] == [
        ("› subagent (b2)", "Deep."), ("", "Done.")]
    assert "SubagentEvent (2)" in "\n".join(seen.inputs[0].notices)


def test_the_state_of_version_2(tmp_path):
    state = json.dumps({"id": "s", "version": 2, "cwd": "/w", "title": "Tides", "lastPrompt": "hi"})
    seen = show(state, tmp_path, name="state.json")
    assert (seen.inputs[0].error, seen.inputs[0].about.title) == (None, "Tides")


def test_a_prompt_without_a_message_is_what_the_user_said(tmp_path):
    asked = {"type": "turn.prompt", "input": [{"type": "text", "text": "go"}]}
    alone = show(session(asked, begin(), text("Fine."), end(rawFinishReason="stop")), tmp_path)
    both = show(session(asked, prompt("go"), begin(), text("Fine."), end(rawFinishReason="stop")), tmp_path)
    for seen in (alone, both):
        assert [message.text for message in seen.responses[0].exchange.request.messages] == ["go"]


def test_events_of_the_python_client_as_they_came(tmp_path):
    def row(kind, **payload):
        return {"jsonrpc": "2.0", "method": "event", "params": {"type": kind, "payload": payload}}

    usage = {"input_other": 5, "output": 9, "input_cache_read": 1}
    seen = show("".join(json.dumps(each) + "\n" for each in (
        row("TurnBegin", user_input=[{"type": "text", "text": "go"}]), row("StepBegin", n=1),
        row("StatusUpdate", token_usage=usage, message_id="m1"), row("ContentPart", type="text", text="Read"),
        row("ContentPart", type="text", text="ing."),
        row("ToolCall", id="c1", function={"name": "ReadFile", "arguments": ""}),
        row("ToolCallPart", arguments_part='{"path": '), row("ToolCallPart", arguments_part='"a"}'),
        row("ToolResult", id="c1", content="text of a"), row("StepBegin", n=2), row("SteerInput", user_input="shorter"),
        row("ContentPart", type="text", text="Done."), row("TurnEnd"))), tmp_path)
    first, second = (facts.exchange for facts in seen.responses)
    assert (first.response.text, first.response.id, first.response.usage.output_tokens) == ("Reading.", "m1", 9)
    assert seen.responses[0].verdicts[0].call.arguments == '{"path": "a"}'
    assert second.request.messages[0].results[0].text == "text of a"
    assert second.request.messages[-1].text == "shorter"


@each_row("first", [
    HEAD, request(), begin(), {"type": "turn.prompt"}, {"message": {"type": "StepBegin", "payload": {}}},
])
def test_each_first_line_is_known(first):
    assert choose(json.dumps(first).encode() + b"\n{}\n", "x") == "kimi"


@pytest.mark.parametrize(("agent", "title"), [("main", "Tides"), ("agent-0", "Tides › agent-0")])
def test_a_session_has_the_title_of_its_state(tmp_path, agent, title):
    (tmp_path / "state.json").write_text(json.dumps({"title": "Tides", "agents": {}}))
    folder = tmp_path / "agents" / agent
    folder.mkdir(parents=True)
    seen = show(session(prompt("go"), begin(), text("Done."), end()), folder, name="wire.jsonl")
    assert seen.inputs[0].about.title == title


@each_row("state", ["{", "[]", '{"title": 7}', "{}"])
def test_a_state_without_a_title_leaves_the_name_of_the_file(tmp_path, state):
    (tmp_path / "state.json").write_text(state)
    folder = tmp_path / "agents" / "main"
    folder.mkdir(parents=True)
    seen = show(session(prompt("go"), begin(), text("Done."), end()), folder, name="wire.jsonl")
    assert seen.inputs[0].about.title == ""


def history(*rows):
    return "".join(json.dumps(row) + "\n" for row in ({"role": "_checkpoint", "id": 0}, *rows))


def reply(*blocks, **calls):
    given = {"tool_calls": [{"type": "function", "id": key, "function": {"name": "Read", "arguments": arguments}}
                            for key, arguments in calls.items()]} if calls else {}
    return {"role": "assistant", "content": list(blocks), **given}


def block(said):
    return {"type": "text", "text": said}


def test_the_history_of_the_python_client(tmp_path):
    seen = show(history(
        {"role": "user", "content": "go"}, {"role": "_usage", "token_count": 4504},
        reply({"type": "think", "think": "hm", "encrypted": "x"}, block("I look."), t0='{"path": "a"}'),
        {"role": "_usage", "token_count": 4711},
        {"role": "tool", "content": [block("<system>ok</system>"), block("the text")], "tool_call_id": "t0"},
        {"role": "user", "content": [block("<system>CHECKPOINT 1</system>")]}, reply(block("Done.")),
        {"role": "user", "content": "thanks"}), tmp_path)
    first, second = (facts.exchange for facts in seen.responses)
    assert (first.recorder, first.response.reasoning_content, first.response.text) == ("kimi", "hm", "I look.")
    assert (first.response.usage, second.response.text) == (None, "Done.")
    assert second.request.messages[0].results[0].text == "<system>ok</system>\nthe text"
    assert stops(seen) == ["tool_call", "end_turn"]
    assert (words(seen), places(seen)) == (["END INFERRED"], [["request", "tool_result"]])
    assert seen.turns[0].run.record.user_text == "go"
    assert "records that hold no exchange: _checkpoint (1), _usage (2)" in seen.inputs[0].notices[1]


def test_thinking_in_a_history_counts_though_its_text_is_hidden(tmp_path):
    (facts,) = show(history({"role": "user", "content": "go"}, {"role": "_usage", "token_count": 4504},
                            reply({"type": "think", "think": "", "encrypted": "x"})), tmp_path).responses
    assert facts.exchange.response.parts == (ReasoningPart(""),)


def test_a_cut_call_in_a_history_did_not_run(tmp_path):
    refused = {"role": "tool", "content": [block("<system>ERROR: invalid arguments</system>")], "tool_call_id": "t0"}
    seen = show(history({"role": "user", "content": "go"}, reply(t0='{"path": "a'), refused), tmp_path)
    assert (stops(seen), words(seen)) == (["max_tokens"], ["CALL HELD"])
    assert seen.responses[0].exchange.response.tool_calls[0].arguments == '{"path": "a'


@pytest.mark.parametrize("mark", ["_checkpoint", "_usage", "_system_prompt"])
def test_a_history_is_known_by_its_marks(mark):
    rows = [{"role": mark, "content": "x"}, {"role": "user", "content": "go"}]
    assert choose("".join(json.dumps(row) + "\n" for row in rows).encode(), "context.jsonl") == "kimi"
    assert choose("".join(json.dumps(row) + "\n" for row in rows[1:]).encode(), "context.jsonl") != "kimi"


@pytest.mark.parametrize(("text", "stop"), [
    ("<system>CHECKPOINT 1</system>", "unknown"), ("<system-reminder>plan</system-reminder>", "unknown"),
    ("thanks", "end_turn"),
])
def test_what_the_client_puts_into_the_history_is_not_the_users(tmp_path, text, stop):
    seen = show(history({"role": "user", "content": "go"}, reply(block("Done.")), {"role": "user", "content": text}),
                tmp_path)
    assert stops(seen) == [stop]


@each_row(("row", "told", "detail"), [
    ({"type": "turn.ended", "reason": "failed", "error": {"code": "provider.auth", "message": "the key is wrong"}},
     "the key is wrong", "fatal"),
    ({"type": "turn.step.retrying", "stepId": "s1", "errorName": "APIStatusError", "errorMessage": "slow down",
      "statusCode": 429}, "slow down", "retryable"),
    ({"type": "turn.step.retrying", "stepId": "other", "errorMessage": "slow down"}, None, "fatal"),
    ({"type": "turn.ended", "reason": "failed", "error": {"code": "provider.auth"}}, None, "fatal"),
])
def test_the_row_after_a_failed_step_has_its_error(tmp_path, row, told, detail):
    seen = show(session(prompt("go"), request(), begin(), end(finishReason="error"), row), tmp_path)
    first = seen.responses[0].exchange.response
    assert (first.error and first.error.message, first.stop_reason.normalized, first.stop_reason.detail) == (
        told, "error", detail)
    assert words(seen) == ["ERROR"]


NOTHING_SHOWN = "The API returned a response containing only thinking content. Provider stop details: {}. Provider: x"


@each_row(("details", "raw", "verdict"), [
    ("finishReason=truncated, rawFinishReason=length", "length", "TRUNCATED"),
    ("rawFinishReason=stop", "stop", "EMPTY ANSWER"),
    ("finishReason=filtered, rawFinishReason=content_filter", "content_filter", "BLOCKED"),
])
def test_the_message_about_an_answer_without_a_text_holds_the_providers_word(tmp_path, details, raw, verdict):
    """Kimi Code 2.1 asks again up to ten times after such an answer, in the same turn."""
    message, again = NOTHING_SHOWN.format(details), [begin("s2"), end("s2", finishReason="error", turnId="0")]
    row = {"type": "turn.step.retrying", "stepId": "s1", "errorMessage": message}
    stopped = {"type": "turn.step.interrupted", "reason": "error", "message": message}
    last = {"type": "turn.ended", "reason": "failed", "error": {"code": "provider.filtered", "message": message}}
    first = end(finishReason="error", turnId="0")
    seen = show(session(prompt("go"), request(), begin(), first, row, *again, stopped, last), tmp_path)
    assert [each.exchange.response.raw_stop_reason for each in seen.responses] == [raw, raw]
    assert (words(seen), places(seen)) == ([verdict], [["request", "retry"]])
    assert not [each for each in seen.inputs[0].notices if "was expected" in each]


@each_row(("turn", "verdicts"), [("0", ["RETRIED"]), ("1", ["ERROR", "COMPLETE"]), (None, ["ERROR", "COMPLETE"])])
def test_a_step_behind_a_failed_one_of_the_same_turn_is_sent_again(tmp_path, turn, verdicts):
    """Kimi Code 2.1.0 compacts a history that was too long, and adds a reminder of its own."""
    rows = [{"type": "context.apply_compaction", "summary": "All."}, prompt("<system-reminder>", "injection")]
    named = {} if turn is None else {"turnId": turn}
    last = loop("step.begin", uuid="s2", **named), loop("content.part", stepUuid="s2", part={
        "type": "text", "text": "Done."}, **named), end("s2", finishReason="end_turn", **named)
    failed = end(finishReason="error", turnId="0")
    assert words(show(session(prompt("go"), request(), begin(), failed, *rows, *last), tmp_path)) == verdicts


def test_the_error_of_a_turn_is_not_that_of_a_step_that_ended_well(tmp_path):
    failed = {"type": "turn.ended", "reason": "failed", "error": {"code": "hook", "message": "a hook failed"}}
    seen = show(session(prompt("go"), request(), begin(), text("Hi"), end(finishReason="end_turn"), failed), tmp_path)
    assert (stops(seen), seen.responses[0].exchange.response.error) == (["end_turn"], None)


def turn(key, said, answer):
    return prompt(said), begin(key), text(answer, key), end(key, finishReason="end_turn")


def follows(seen, at):
    """The id of the answer that an answer follows in the history."""
    return seen.responses[at].exchange.request.previous_id


@each_row(("count", "before"), [(1, "s1"), (2, None), (3, "s2"), (0, "s2"), (None, "s2")])
def test_turns_that_the_user_took_back_are_a_branch(tmp_path, count, before):
    seen = show(session(*turn("s1", "one", "A"), *turn("s2", "two", "B"), {"type": "context.undo", "count": count},
                         *turn("s3", "three", "C")), tmp_path)
    assert (len(seen.turns), follows(seen, 2)) == (3, before and f"chatcmpl-{before}")
    assert "records that take back messages of the user: 1" in "\n".join(seen.inputs[0].notices)


def test_a_steered_message_is_no_turn_that_can_be_taken_back(tmp_path):
    steer = prompt("faster")
    steer["message"]["origin"]["inTurn"] = True
    seen = show(session(prompt("one"), begin(), text("A"), end(finishReason="tool_use"), steer,
                         begin("s2"), text("B", "s2"), end("s2", finishReason="end_turn"),
                         {"type": "context.undo", "count": 1}, *turn("s3", "three", "C")), tmp_path)
    assert follows(seen, 2) is None


def test_a_cleared_context_begins_a_conversation(tmp_path):
    seen = show(session(*turn("s1", "one", "A"), {"type": "context.clear"}, *turn("s2", "two", "B"),
                         {"type": "context.undo", "count": 2}), tmp_path)
    assert len({each.conversation for each in seen.turns}) == 2


@pytest.mark.parametrize(("trigger", "before"), [("user-slash", "s1"), ("model", None)])
def test_a_skill_that_the_user_called_by_its_name_is_a_message_of_the_user(tmp_path, trigger, before):
    called = prompt("use the skill", "skill_activation")
    called["message"]["origin"]["trigger"] = trigger
    seen = show(session(*turn("s1", "one", "A"), called, begin("s2"), text("B", "s2"),
                         end("s2", finishReason="end_turn"), {"type": "context.undo", "count": 1},
                         *turn("s3", "three", "C")), tmp_path)
    assert follows(seen, 2) == (before and f"chatcmpl-{before}")


@pytest.mark.parametrize("end", [(), ({"type": "turn.cancel"},)])
def test_a_request_after_a_step_without_output_repeats_no_message(tmp_path, end):
    seen = show(session(prompt("first"), begin(), *end, *turn("s2", "second", "Done.")), tmp_path)
    assert [[message.text for message in facts.exchange.request.messages] for facts in seen.responses] == [
        ["first"], ["second"]]


def test_a_step_that_begins_again_leaves_the_turns_as_they_are(tmp_path):
    seen = show(session(prompt("first"), begin(), call(), end(finishReason="tool_use"), result(), begin("s2"),
                         *turn("s2", "", "One.")[1:], *turn("s3", "second", "Two.")), tmp_path)
    assert places(seen) == [["request", "tool_result"], ["request"]]


def test_the_messages_beside_the_events_of_a_session_are_not_counted_twice(tmp_path):
    events = (HEAD, event("TurnBegin", user_input="go"), piece("Hi."), event("TurnEnd"))
    folder = tmp_path / "session"
    folder.mkdir()
    (folder / "wire.jsonl").write_text("".join(json.dumps(row) + "\n" for row in events))
    (folder / "context.jsonl").write_text(history({"role": "user", "content": "go"},
                                                    {"role": "assistant", "content": "Hi."}))
    held = {os.path.basename(each.path): each.responses for each in open_paths([str(folder)]).inputs}
    assert (held["wire.jsonl"], held["context.jsonl"]) == (1, 0)
    alone = open_paths([str(folder / "context.jsonl")])
    assert [each.response.text for each in alone.exchanges] == ["Hi."]
