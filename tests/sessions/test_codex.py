"""Rollouts of Codex CLI: what an answer is, how its end is known, errors in three places, and forms of all ages."""

from __future__ import annotations

import itertools
import json

import pytest
import zstandard

from inspector.sessions import open_paths
from inspector.sessions.folders import transcripts
from inspector.sessions.importers.codex_items import item_of
from inspector.sessions.importers.recognition import choose
from loop_core.values import Stop, ToolCall
from tests.scenes.rows import each_row
from tests.scenes.transcripts import places, show, stops, words

CUT = '{"command":["bash","-lc","cat > plan.md <<EOF'


def line(kind, **payload):
    return {"timestamp": "2026-03-04T05:06:07.000Z", "type": kind, "payload": payload}


def item(kind, **more):
    return line("response_item", type=kind, **more)


def event(kind, **more):
    return line("event_msg", type=kind, **more)


def user(text):
    return item("message", role="user", content=[{"type": "input_text", "text": text}])


def reply(text):
    return item("message", role="assistant", content=[{"type": "output_text", "text": text}])


def call(arguments='{"command":["ls"]}', key="call_1", name="shell"):
    return item("function_call", name=name, arguments=arguments, call_id=key)


def result(text="a.txt", key="call_1"):
    return item("function_call_output", call_id=key, output=text)


TOTALS = itertools.count(99)


def count(output=12, total=None):
    total = next(TOTALS) if total is None else total
    used = {"input_tokens": 50, "cached_input_tokens": 40, "cache_write_input_tokens": 5, "output_tokens": output,
            "reasoning_output_tokens": 3, "total_tokens": 50 + output}
    return event("token_count", info={"last_token_usage": used, "total_token_usage": {**used, "output_tokens": total}})


META = line("session_meta", id="thread-0000-0001", cwd="/work", cli_version="0.140.0", source="cli")
CONTEXT = line("turn_context", model="gpt-5.5-codex", turn_id="t1")


def rollout(*rows, head=(META, CONTEXT)):
    return "".join(json.dumps(row) + "\n" for row in (*head, *rows))


def notices(seen):
    return "\n".join(seen.inputs[0].notices)


def test_answers_are_the_items_between_two_counts(tmp_path):
    seen = show(rollout(
        user("list"),
        item("reasoning", summary=[{"type": "summary_text", "text": "Let me see"}], encrypted_content="x"),
        call(), call(key="call_2"), count(12), result(), result("b", "call_2"), reply("Two files."), count(5, 111),
        event("task_complete", turn_id="t1", last_agent_message="Two files.")), tmp_path)
    first, second = (facts.exchange for facts in seen.responses)
    assert [part.id for part in first.response.parts if type(part) is ToolCall] == ["call_1", "call_2"]
    assert first.response.reasoning_content == "Let me see"
    assert (first.model, first.recorder, first.api) == ("gpt-5.5-codex", "codex", "openai_responses")
    assert first.response.usage == (50, 12, 3, 40, 5)
    assert second.response.usage.output_tokens == 5
    assert stops(seen) == ["tool_call", "end_turn"]
    assert places(seen) == [["request", "tool_result"]]
    assert words(seen) == ["END INFERRED"], "nothing that is inferred is shown as good"
    assert [part.text for part in second.request.messages[0].results] == ["a.txt", "b"]
    assert "Codex keeps no stop reason and no output cap" in notices(seen)
    assert first.request.max_tokens is None
    assert first.response.raw_stop_reason is None


def test_without_counts_results_end_an_answer(tmp_path):
    seen = show(rollout(user("list"), call(), result(), reply("Done."), user("thanks"), reply("Fine.")), tmp_path)
    assert [facts.exchange.lines for facts in seen.responses] == [(4,), (6,), (8,)]
    assert len(seen.turns) == 2


def test_an_answer_without_a_count_ends_where_its_calls_have_results(tmp_path):
    seen = show(rollout(user("list"), call(), call(key="call_2"), result(), call(key="call_3"), result("b", "call_2"),
                        result("c", "call_3"), reply("Done."), count(5, 111)), tmp_path)
    assert [facts.exchange.lines for facts in seen.responses] == [(4, 5, 7), (10,)]


def test_a_stream_that_broke_ends_its_answer_where_codex_asks_again(tmp_path):
    """Newer releases, whose items have a status, write a token count without counts behind each stream that broke."""
    def said(text):
        return item("message", role="assistant", status="completed", content=[{"type": "output_text", "text": text}])

    rows = [user("go"), said("The first half, and"), event("token_count", info=None), said("The second try, and"),
            event("token_count", info=None), event("task_complete", turn_id="t1", last_agent_message=None, error={
                "message": "stream disconnected before completion: the server failed", "codex_error_info": "other"})]
    seen = show(rollout(*rows), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["The first half, and", "The second try, and"]
    assert (stops(seen), words(seen)) == (["unknown", "error"], ["ERROR"])
    older = rollout(user("go"), reply("One "), event("token_count", info=None), reply("answer."))
    older = show(older, tmp_path, name="old.jsonl")
    assert len(older.responses) == 1, "there a count may come within an answer"


def test_calls_whose_ids_are_empty_are_answered_by_as_many_results(tmp_path):
    """As behind LiteLLM; the results have the same empty id."""
    rows = [user("go"), call(key=""), call(key=""), result(key=""), result(key=""), reply("Done.")]
    assert stops(show(rollout(*rows), tmp_path))[0] == "tool_call"
    assert stops(show(rollout(*rows[:3], *rows[4:]), tmp_path, name="one.jsonl"))[0] == "unknown"
    refused = result("exec command rejected by user", key="")
    seen = show(rollout(*rows[:3], refused, refused, rows[-1]), tmp_path, name="refused.jsonl")
    assert [each.admission.value for each in seen.responses[0].verdicts] == ["rejected", "rejected"]


def test_a_call_that_is_cut_in_its_string_is_seen(tmp_path):
    seen = show(rollout(user("write"), call(CUT), count(4096), result("failed to parse function arguments: EOF while "
                                                                      "parsing a string")), tmp_path)
    assert stops(seen) == ["max_tokens"]
    assert words(seen) == ["CALL HELD"]
    (facts,) = seen.responses
    assert facts.exchange.refusals == {"call_1": "the agent could not parse its arguments: it did not run"}
    assert facts.verdicts[0].call.arguments == CUT


@pytest.mark.parametrize(("text", "why"), [
    ("exec command rejected by user", "the user refused it: it did not run"),
    ("unsupported call: shel", "the agent knows no such tool: it did not run"),
    ('exec_command failed: CreateProcess { message: "Rejected(\\"`rm -f a` rejected: not permitted\\")" }',
     "a permission rule refused it: it did not run"),
])
def test_a_call_that_codex_did_not_run(tmp_path, text, why):
    (facts, *_) = show(rollout(user("go"), call(), count(), result(text), reply("Well."), count()), tmp_path).responses
    assert facts.exchange.refusals == {"call_1": why}


@each_row("mask", ["[REDACTED_ARGUMENTS len=46 sha=4cb9a2fc]", "<redacted>", " **Removed**"])
def test_arguments_that_were_replaced_before_the_file_was_shared_are_not_called_malformed(tmp_path, mask):
    seen = show(rollout(user("list"), call(mask), count(12), result(), reply("One file."), count(5, 111)), tmp_path)
    (verdict,) = seen.responses[0].verdicts
    assert (stops(seen)[0], verdict.call.arguments, verdict.admission.value) == ("unknown", None, "held")
    assert "only parts of the arguments are in the file" in seen.responses[0].exchange.response.findings[0].message
    other = show(rollout(user("list"), call("redactedly"), count(12), result()), tmp_path)
    assert stops(other) == ["malformed_tool_call"]
    custom = item("custom_tool_call", name="exec", input="removed = []", call_id="call_1")
    seen = show(rollout(user("list"), custom, count(12), result()), tmp_path)
    assert seen.responses[0].verdicts[0].call.arguments == "removed = []", "code may begin with the word"
    seen = show(rollout(user("list"), {**custom, "payload": {**custom["payload"], "input": "[redacted]"}}), tmp_path)
    assert seen.responses[0].verdicts[0].call.arguments is None


@each_row("place", ["error", "stream_error", "task_complete"])
@each_row(("text", "info", "stop"), [
    ("Incomplete response returned, reason: max_output_tokens", "other", Stop.MAX_TOKENS),
    ("the input is too long", "context_window_exceeded", Stop.CONTEXT_WINDOW_EXCEEDED),
    ("stream disconnected before completion", {"response_stream_disconnected": {"http_status_code": 502}}, None),
])
def test_an_error_is_read_in_each_of_its_places(tmp_path, place, text, info, stop):
    error = {"message": text, "codex_error_info": info}
    row = event(place, **error) if place != "task_complete" else event(
        place, turn_id="t1", last_agent_message=None, error=error)
    for rows in ((user("go"), row), (user("go"), reply("Half of"), row)):
        seen = show(rollout(*rows), tmp_path)
        (facts,) = seen.responses
        if stop is None:
            assert facts.exchange.response.error.message == text
            assert facts.exchange.response.http_status == 502
            assert words(seen) == ["ERROR"]
        else:
            assert facts.judgement.stop.normalized is stop
            assert facts.judgement.stop.evidence[-1].rule.endswith("error_row")
            assert words(seen)[0] in ("TRUNCATED", "CONTEXT FULL")


@each_row(("details", "stop", "detail"), [
    ("stream disconnected before completion: Incomplete response returned, reason: max_output_tokens", "max_tokens",
     None),
    ("stream disconnected before completion: idle", "error", "retryable"),
    (None, "error", "retryable"),
    ("unexpected status 401 Unauthorized", "error", "fatal"),
])
def test_the_error_behind_a_retry_stands_in_its_details(tmp_path, details, stop, detail):
    again = event("stream_error", message="Reconnecting... 2/5", codex_error_info="other", additional_details=details)
    seen = show(rollout(user("go"), again, reply("Done."), count(),
                        event("task_complete", last_agent_message="Done.")), tmp_path)
    first = seen.responses[0].judgement.stop
    assert (stops(seen), first.detail) == ([stop, "end_turn"], detail)
    assert "Reconnecting... 2/5" in (first.evidence[0].note or "")


def test_in_a_folder_a_packed_copy_is_left_to_its_plain_file(tmp_path):
    plain, packed = tmp_path / "rollout-1.jsonl", tmp_path / "rollout-1.jsonl.zst"
    plain.write_text(rollout(user("go"), reply("Fine.")))
    packed.write_bytes(zstandard.compress(plain.read_bytes()))
    folder, kept = open_paths([str(tmp_path)]).inputs
    assert (kept.path, kept.responses) == (str(plain), 1)
    assert "a packed copy of the rollout beside it (1)" in "".join(folder.notices)
    assert [each.responses for each in open_paths([str(packed)]).inputs] == [1], "by name it is read"
    plain.write_text("")
    assert [each.responses for each in open_paths([str(tmp_path)]).inputs] == [0, 1], "the plain file holds nothing"
    plain.unlink()
    assert [each.responses for each in open_paths([str(tmp_path)]).inputs] == [0, 1]


def test_an_error_that_stands_in_two_places_is_one(tmp_path):
    seen = show(rollout(user("go"), event("error", message="overloaded", codex_error_info="server_overloaded"),
                         event("task_complete", last_agent_message=None, error={"message": "overloaded"})), tmp_path)
    assert len(seen.responses) == 1


def test_a_turn_without_a_last_message_is_no_clean_end(tmp_path):
    seen = show(rollout(user("go"), reply("Let me look at"), count(),
                        event("task_complete", turn_id="t1", last_agent_message=None)), tmp_path)
    assert words(seen) == ["END NOT RECORDED"]
    assert any(noted.finding.rule == "transcript.no_last_message" for noted in seen.findings)


def test_a_turn_that_ended_after_results_without_an_answer_does_not_go_on_in_the_next(tmp_path):
    ended_so = event("task_complete", turn_id="t1", last_agent_message=None)
    seen = show(rollout(user("one"), call(), count(), result(), ended_so, user("two"), reply("Done."), count(5, 111),
                        event("task_complete", last_agent_message="Done.")), tmp_path)
    assert [len(turn.run.record.responses) for turn in seen.turns] == [2, 1]
    assert words(seen) == ["END NOT RECORDED", "END INFERRED"]


def test_a_turn_that_ended_without_an_answer_is_shown_as_one_of_which_nothing_came(tmp_path):
    seen = show(rollout(user("one"), reply("Done."), event("task_complete", last_agent_message="Done."),
                        user("two"), event("task_complete", turn_id="t2", last_agent_message=None)), tmp_path)
    assert words(seen) == ["END INFERRED", "END NOT RECORDED"]
    (noted,) = [noted.finding for noted in seen.findings if noted.finding.rule == "transcript.no_last_message"]
    assert noted.message == "line 7: Codex ended the turn, and no answer of the model stands in it"


@each_row(("phases", "word"), [
    (["commentary"], "COMMENTARY ONLY"), (["commentary", "final_answer"], "END INFERRED"),
    (["commentary", None], "END INFERRED"), ([None], "END INFERRED"),
])
def test_a_turn_whose_messages_only_announce_what_comes_next_did_not_end_well(tmp_path, phases, word):
    said = [item("message", role="assistant", content=[{"type": "output_text", "text": "First I read the rules."}],
                 **({} if phase is None else {"phase": phase})) for phase in phases]
    rows = (event("task_started", turn_id="t1"), user("do it"), *said, count(), event("task_complete", turn_id="t1"))
    assert words(show(rollout(*rows), tmp_path)) == [word]


def test_the_last_message_of_a_turn_is_its_answer_where_no_item_holds_one(tmp_path):
    seen = show(rollout(user("go"), event("task_complete", turn_id="t1", last_agent_message="Done.")), tmp_path)
    (facts,) = seen.responses
    assert facts.exchange.response.text == "Done."
    assert words(seen) == ["END INFERRED"]


def test_a_turn_that_was_aborted_before_an_answer_is_counted(tmp_path):
    seen = show(rollout(user("one"), reply("Done."), event("task_complete", last_agent_message="Done."),
                        user("two"), event("turn_aborted", turn_id="t2", reason="interrupted")), tmp_path)
    assert words(seen) == ["END INFERRED"]
    assert any("stop a request of the user before any answer: 1" in notice for notice in seen.inputs[0].notices)


def test_a_turn_that_was_aborted_after_its_answer_is_no_request_without_one(tmp_path):
    seen = show(rollout(user("one"), reply("Do"), event("turn_aborted", turn_id="t1", reason="interrupted")), tmp_path)
    assert not any("stop a request" in notice for notice in seen.inputs[0].notices)


@pytest.mark.parametrize("row", [
    {"type": "response_item", "payload": {"role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]}},
    {"type": "response_item", "role": "assistant", "content": "Hi."},
])
def test_a_message_without_its_type_is_a_message_all_the_same(tmp_path, row):
    (facts,) = show(rollout(user("go"), row), tmp_path).responses
    assert facts.exchange.response.text == "Hi."


@each_row("reason", ["interrupted", "replaced", "budget_limited", "review_ended"])
def test_an_aborted_turn(tmp_path, reason):
    seen = show(rollout(user("go"), reply("Half"), event("turn_aborted", turn_id="t1", reason=reason), user("again"),
                        reply("Whole."), event("task_complete", last_agent_message="Whole.")), tmp_path)
    assert len(seen.turns) == 2
    expected = {"interrupted": "CANCELLED", "replaced": "CANCELLED", "budget_limited": "CANCELLED",
                "review_ended": "END INFERRED"}[reason]
    assert words(seen)[0] == expected


def test_codex_tells_the_model_that_the_user_interrupted_and_that_is_evidence(tmp_path):
    told = user("<turn_aborted>\nThe user interrupted the previous turn on purpose.\n</turn_aborted>")
    seen = show(rollout(user("go"), reply("Half"), told, user("again"), reply("Whole."),
                        event("task_complete", last_agent_message="Whole.")), tmp_path)
    assert words(seen) == ["CANCELLED", "END INFERRED"]
    assert "line 5: the user interrupted the turn" in [noted.finding.message for noted in seen.findings]
    assert [turn.run.record.user_text for turn in seen.turns] == ["go", "again"]


def test_an_end_that_was_not_recorded_says_what_the_file_says_of_the_turn(tmp_path):
    seen = show(rollout(user("go"), call(), event("turn_aborted", turn_id="t1", reason="interrupted"), result(),
                        reply("Half")), tmp_path)
    assert words(seen) == ["END NOT RECORDED"]
    assert seen.turns[0].verdict.sentence.endswith(
        "was not recorded; the file says: line 5: the user interrupted the turn, before this answer")
    nothing = show(rollout(user("go"), reply("Half")), tmp_path)
    assert nothing.turns[0].verdict.sentence.endswith("was not recorded, and nothing in the file shows it")


def test_an_open_turn_at_the_end_of_the_file_is_not_recorded(tmp_path):
    seen = show(rollout(event("task_started", turn_id="t1"), user("go"), reply("I will now")), tmp_path)
    assert words(seen) == ["END NOT RECORDED"]


def test_a_text_in_an_item_and_in_an_event_is_shown_once(tmp_path):
    for rows in ((user("go"), event("user_message", message="go")), (event("user_message", message="go"), user("go"))):
        seen = show(rollout(*rows, reply("Fine."), event("agent_message", message="Fine."), count()), tmp_path)
        (facts,) = seen.responses
        assert facts.exchange.response.text == "Fine."
        assert [message.text for message in facts.exchange.request.messages] == ["go"]


def test_a_text_that_stands_in_an_event_alone_is_read(tmp_path):
    done = event("task_complete", last_agent_message="Both pass.")
    seen = show(rollout(event("user_message", message="go"), event("agent_message", message="Looking first."), call(),
                        result(), count(), event("agent_message", message="Both pass."), done,
                        event("user_message", message="more"), reply("Both pass."), count()), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["Looking first.", "Both pass.", "Both pass."]


def test_a_text_whose_item_follows_its_event_in_another_form_is_read_once(tmp_path):
    other = item("message", role="assistant", content=[{"text": "Fine.", "type": "output_text"}])
    seen = show(rollout(user("go"), event("agent_message", message="Fine."), other, count()), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["Fine."]


def test_a_paginated_history(tmp_path):
    def item_end(kind, text):
        return event("item_completed", item={"type": kind, "content": [{"type": "text", "text": text}]})

    seen = show(rollout(item_end("UserMessage", "go"), user("go"), item_end("AgentMessage", "Looking."), call(),
                        item_end("CommandExecution", "ls"), result(), count(), item_end("AgentMessage", "Done."),
                        reply("Done."), count(5)), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["Looking.", "Done."]
    assert seen.turns[0].run.record.user_text == "go"
    assert "item_completed (1)" in notices(seen)


def test_in_files_of_2025_a_count_stands_before_its_items(tmp_path):
    seen = show(rollout(user("go"), event("agent_message", message="Looking."), count(12), reply("Looking."), call(),
                        result(), event("agent_message", message="Done."), count(5), reply("Done.")), tmp_path)
    assert [facts.exchange.response.usage.output_tokens for facts in seen.responses] == [12, 5]
    assert [facts.exchange.response.text for facts in seen.responses] == ["Looking.", "Done."]
    parent = line("session_meta", id="thread-0000-0009", cwd="/work")
    fork = show(rollout(parent, user("go"), count(12), reply("Done."), count(5)), tmp_path)
    assert [facts.exchange.response.usage.output_tokens for facts in fork.responses] == [5], "a fork copies counts"


def test_the_task_of_a_subagent_is_what_it_was_asked(tmp_path):
    task = item("agent_message", author="/root", recipient="/root/map", content=[
        {"type": "input_text", "text": "Map the module"}, {"type": "encrypted_content", "encrypted_content": "x"}])
    seen = show(rollout(task, reply("Mapped."), count()), tmp_path)
    assert "Map the module" in seen.responses[0].exchange.request.messages[0].text


def test_names_that_have_drifted(tmp_path):
    rows = [{"created_at": "t", "role": "user", "message": "go"},
            line("response_item", type="tool_call", function={"name": "ls"}, arguments={"a": 1}),
            line("response_item", type="tool_result", name="ls", result="a.txt"),
            {"created_at": "t", "role": "assistant", "content": "One file."},
            event("error", error={"kind": "rate_limit", "message": "Rate limit exceeded"})]
    first, second = show(rollout(*rows), tmp_path).responses
    assert (first.verdicts[0].call.name, first.verdicts[0].call.arguments) == ("ls", '{"a": 1}')
    assert first.exchange.request.messages[0].text == "go"
    assert second.exchange.response.text == "One file."
    assert second.exchange.response.error.message == "Rate limit exceeded"


def test_a_file_of_events_alone(tmp_path):
    seen = show(rollout(event("user_message", message="go"), event("agent_message", message="Fine."),
                         event("user_message", message="thanks")), tmp_path)
    (facts,) = seen.responses
    assert (facts.exchange.response.text, stops(seen)) == ("Fine.", ["end_turn"])


def test_what_codex_tells_the_model_itself_is_no_message_of_the_user(tmp_path):
    own = user("<environment_context>\n<cwd>/work</cwd></environment_context>")
    note = item("message", role="developer", content=[{"type": "input_text", "text": "Be brief"}])
    seen = show(rollout(own, note, user("go"), reply("Fine."), count()), tmp_path)
    assert seen.turns[0].run.record.user_text == "go"


@each_row("begins", [
    "<goal_context>", '<codex_internal_context source="goal">', "<recommended_plugins>", "<extension_context>",
    "<agent_message_board_notification>", '<hook_prompt hook_run_id="1">', "<skill>", "<user_shell_command>",
    "<subagent_notification>", "# AGENTS.md instructions for /work",
])
def test_a_message_that_codex_wrote_as_the_user_shows_no_end_of_an_answer(tmp_path, begins):
    seen = show(rollout(user("list"), reply("I look."), user(f"{begins}\nSee to the goal.")), tmp_path)
    assert stops(seen) == ["unknown"]


def test_the_status_of_an_item_is_the_providers_word(tmp_path):
    half = item("message", role="assistant", status="incomplete", content=[{"type": "output_text", "text": "Half"}])
    seen = show(rollout(user("list"), half, reply("Whole."), count(),
                        event("task_complete", turn_id="t1", last_agent_message="Whole.")), tmp_path)
    assert stops(seen) == ["interrupted", "end_turn"], "Codex sent the request again"
    stop = seen.responses[0].judgement.stop
    assert (stop.raw, [each.rule for each in stop.evidence]) == ("incomplete", ["transcript.provider",
                                                                                "openai_responses.stop_reasons"])
    assert {each.at.pointer for each in stop.evidence} == {"/payload/status"}
    whole = item("message", role="assistant", status="completed", content=[{"type": "output_text", "text": "a"}])
    assert stops(show(rollout(user("list"), whole), tmp_path)) == ["unknown"]


FIRST = {
    "session": {"timestamp": "2025-04-17T09:12:44.123Z", "id": "0d977bc7", "instructions": ""},
    "items": [user("list")["payload"], call()["payload"], result()["payload"], reply("There is a.txt.")["payload"],
              user("write")["payload"],
              item("message", role="assistant", status="incomplete", content=[{"type": "output_text", "text": "Half"}])[
                  "payload"],
              user("run")["payload"], call(key="call_2")["payload"],
              item("message", role="system", content=[{"type": "input_text", "text": (
                  "\u23f9\ufe0f  Execution interrupted by user. You can continue typing.")}])["payload"]],
}
"""A rollout of the first releases."""


@pytest.mark.parametrize(("indent", "size", "ends"), [
    (2, None, ["tool_call", "end_turn", "interrupted", "cancelled"]),
    (None, None, ["tool_call", "end_turn", "interrupted", "cancelled"]),
    (2, 760, ["tool_call", "unknown"]),
])
def test_a_rollout_of_the_first_releases_is_one_object(tmp_path, indent, size, ends):
    text = json.dumps(FIRST, indent=indent)[:size]
    seen = show(text, tmp_path, name="rollout-2025-04-17-0d977bc7.json")
    assert stops(seen) == ends
    assert [verdict.admission.value for each in seen.responses for verdict in each.verdicts] == (
        ["ready", "held"] if len(ends) == 4 else ["ready"])
    assert seen.inputs[0].format == "codex"


@pytest.mark.parametrize("value", [
    {"session": FIRST["session"], "items": []}, {"session": {"id": "a"}, "items": FIRST["items"]},
    {"session": FIRST["session"], "items": [{"type": "row"}]},
])
def test_another_object_with_a_session_and_items_is_no_rollout(value):
    assert choose(json.dumps(value).encode(), "a.json") != "codex"


def test_a_call_that_the_provider_calls_incomplete_is_not_whole(tmp_path):
    cut = item("function_call", name="shell", arguments="{}", call_id="call_1", status="incomplete")
    error = event("error", message="Incomplete response returned, reason: max_output_tokens")
    seen = show(rollout(user("list"), cut, error), tmp_path)
    assert stops(seen) == ["max_tokens"]
    assert [verdict.admission.value for verdict in seen.responses[0].verdicts] == ["held"]


def test_a_text_that_a_tool_delivered_is_no_answer(tmp_path):
    copy = {**reply("Sent."), "metadata": {"delivered_assistant_message": "codex:code-mode-delivery:v1:complete"}}
    seen = show(rollout(user("list"), call(), copy, result(), reply("Done."), count()), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == [None, "Done."]
    assert "texts that a tool delivered" in notices(seen)


def test_turns_that_are_taken_back_are_another_branch(tmp_path):
    seen = show(rollout(user("one"), reply("1."), count(), user("two"), reply("2."), count(),
                        event("thread_rolled_back", num_turns=1), user("three"), reply("3."), count()), tmp_path)
    last = seen.responses[2].exchange.request
    assert last.previous_id == seen.responses[0].exchange.response.id
    assert "take back turns" in notices(seen)
    assert len({turn.conversation for turn in seen.turns}) == 1


@each_row(("kind", "compacted"), [
    ("additional_tools", False), ("ghost_snapshot", False), ("other", False), ("compaction_trigger", False),
    ("compaction", True), ("context_compaction", True),
])
def test_an_item_that_no_model_wrote_is_no_answer(tmp_path, kind, compacted):
    seen = show(rollout(item(kind, role="developer"), user("go"), reply("Fine."), event("task_complete")), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["Fine."]
    assert any(noted.finding.rule == "transcript.compacted" for noted in seen.findings) is compacted
    assert f"{kind} (1)" in "\n".join(seen.inputs[0].notices)
    assert "unknown type" not in "\n".join(seen.inputs[0].notices)


def test_a_compacted_history_and_a_fork_are_noted(tmp_path):
    parent = line("session_meta", id="thread-0000-0009", cwd="/work")
    seen = show(rollout(parent, line("compacted", message="", replacement_history=[]), user("go"), reply("Fine.")),
                tmp_path)
    assert "headers of another thread, whose history this one begins with: 1" in notices(seen)
    same = line("session_meta", id="thread-0000-0001", cwd="/work")
    again = show(rollout(same, user("go"), reply("Fine.")), tmp_path)
    assert "headers of another thread" not in notices(again)
    assert any(noted.finding.rule == "transcript.compacted" for noted in seen.findings)


PARENT, FORK = "019f587e-f771-7f43-97db-74bb1b781ce8", "019f587f-e759-7e51-9ac9-5ecba7ac3cb6"
OLD, NEW = "019f587f-a0ed-7dd3-bdb4-b8ef06cc896c", "019f5880-0a00-7000-8000-000000000001"
"""Ids that begin with their time: a thread, a fork of it, a turn that is older than the fork, and one that is not."""


def turn_start(turn):
    return event("task_started", turn_id=turn)


def turn_end(turn, kind="task_complete", **more):
    return event(kind, turn_id=turn, **more)


def branch(*rows, **names):
    """A session that goes on from another: its own header, that of the other one, and what it copied."""
    heads = (line("session_meta", id=FORK, **(names or {"forked_from_id": PARENT})), line("session_meta", id=PARENT))
    copied = (user("before"), turn_start(OLD), CONTEXT, user("go"), reply("Half of"), call(CUT, key="old"), count(9))
    return rollout(*copied, *rows, head=heads)


@pytest.mark.parametrize("kind", ["task_complete", "turn_complete", "turn_aborted"])
def test_the_turns_that_a_fork_copied_are_shown_by_the_session_that_they_come_from(tmp_path, kind):
    own = (user("and now?"), turn_start(NEW), user("more"), reply("Now."), count(5),
           turn_end(NEW, last_agent_message="Now."))
    seen = show(branch(turn_end(OLD, kind), *own), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["Now."]
    assert words(seen) == ["END INFERRED"]
    assert (seen.inputs[0].about.id, seen.inputs[0].about.parent) == (FORK, PARENT)
    assert not seen.inputs[0].about.title, "a fork of the user is no subagent"
    asked = [message.text for message in seen.responses[0].exchange.request.messages]
    assert asked == ["and now?", "more"]
    assert f"lines that belong to turns copied from the session {PARENT}, whose file shows them: 7" in notices(seen)


def test_a_copied_turn_that_had_no_end_ends_where_the_next_one_begins(tmp_path):
    seen = show(branch(turn_start(NEW), user("more"), reply("Now."), count(5)), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["Now."]


def test_a_subagent_that_was_given_the_history_of_its_agent_does_not_show_it_again(tmp_path):
    spawned = {"source": {"subagent": {"thread_spawn": {"parent_thread_id": PARENT}}}, "forked_from_id": "else"}
    seen = show(branch(line("turn_context", turn_id=NEW), user("map"), reply("Mapped."), count(5), **spawned), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["Mapped."]
    assert (seen.inputs[0].about.parent, seen.inputs[0].about.title) == (PARENT, "subagent 5ecba7ac3cb6")


@each_row(("thread", "turn"), [
    (FORK, "t1"), ("thread-1", OLD), (FORK, FORK), (FORK, None), (FORK, "0b6cbf4e-6a58-4a26-8a0c-0d7a4b1a3d11")])
def test_a_turn_of_a_fork_that_cannot_be_dated_is_shown(tmp_path, thread, turn):
    head = line("session_meta", id=thread, forked_from_id=PARENT)
    seen = show(rollout(turn_start(turn), user("go"), reply("Fine."), count(5), turn_end(turn), head=(head,)), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["Fine."]


def test_a_turn_of_a_session_that_comes_from_no_other_is_never_a_copy(tmp_path):
    seen = show(rollout(turn_start(OLD), user("go"), reply("Fine."), head=(line("session_meta", id=FORK),)), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["Fine."]


def test_custom_and_shell_calls(tmp_path):
    seen = show(rollout(
        user("go"), item("custom_tool_call", name="apply_patch", input="*** Begin Patch\n", call_id="c1"),
        item("local_shell_call", call_id="c2", action={"type": "exec", "command": ["ls"]}),
        item("web_search_call", action={"query": "x"}), count(),
        item("custom_tool_call_output", call_id="c1", output=[{"type": "input_text", "text": "ok"}]),
        result("ok", "c2")), tmp_path)
    (facts,) = seen.responses
    assert [(each.call.name, each.call.kind.value, each.call.form.value) for each in facts.verdicts] == [
        ("apply_patch", "custom", "string"), ("local_shell", "function", "object")]
    assert facts.verdicts[1].call.arguments == '{"type": "exec", "command": ["ls"]}'
    assert "web_search_call" in [part.type for part in facts.exchange.response.parts if hasattr(part, "type")]


def test_the_flat_form_of_2025(tmp_path):
    rows = [{"id": "5973b6c0", "timestamp": "2025-05-07T17:24:21.123Z", "instructions": None, "git": {}},
            {"record_type": "state"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "list"}]},
            {"type": "function_call", "id": "f", "name": "shell", "arguments": "{\"command\":[\"ls\"]}",
             "call_id": "c"},
            {"type": "function_call_output", "call_id": "c",
             "output": "{\"output\":\"a.txt\",\"metadata\":{\"exit_code\":1}}"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One file."}]}]
    seen = show("".join(json.dumps(row) + "\n" for row in rows), tmp_path)
    assert stops(seen) == ["tool_call", "unknown"]
    assert seen.responses[0].exchange.refusals == {}, "a tool that failed did run"


def test_a_flat_header_of_two_members(tmp_path):
    rows = [{"id": "4444", "timestamp": "2025-04-04T05:06:07.000Z"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "open"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is open."}]}]
    seen = show("".join(json.dumps(row) + "\n" for row in rows), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["It is open."]
    assert "session_meta (1)" in notices(seen)


def test_every_type_of_line_is_known_by_itself():
    lines = ("session_meta turn_context response_item event_msg compacted world_state inter_agent_communication "
             "inter_agent_communication_metadata token_usage_record security_risk_score retained_context "
             "realtime_item")
    for kind in lines.split():
        assert choose(json.dumps(line(kind, id="x")).encode(), "x") == "codex"
    items = ("message reasoning function_call function_call_output custom_tool_call custom_tool_call_output "
             "local_shell_call local_shell_call_output")
    for kind in items.split():
        assert item_of({"type": kind}) == ("response_item", {"type": kind})


def test_subagents_titles_and_packed_archives(tmp_path):
    child = line("session_meta", id="thread-0000-0002", parent_thread_id="thread-0000-0001")
    seen = show(rollout(user("go"), reply("Fine."), head=(child, CONTEXT)), tmp_path)
    assert seen.inputs[0].about.title == "subagent ad-0000-0002"
    for head in ((META, CONTEXT), (CONTEXT,)):
        renamed = event("thread_name_updated", thread_name="Tides")
        named = show(rollout(user("go"), reply("Fine."), renamed, head=head), tmp_path)
        assert named.inputs[0].about.title == "Tides"
    nameless = line("session_meta", parent_thread_id="thread-0000-0001")
    assert show(rollout(user("go"), reply("Fine."), head=(nameless, CONTEXT)), tmp_path).inputs[0].about is None
    packed = tmp_path / ".codex" / "archived_sessions" / "rollout-2026-03-04.jsonl.zst"
    packed.parent.mkdir(parents=True)
    packed.write_bytes(zstandard.compress(rollout(user("go"), reply("Fine.")).encode()))
    assert len(open_paths([str(packed)]).exchanges) == 1
    (tmp_path / ".codex" / "sessions" / "2026" / "03").mkdir(parents=True)
    (tmp_path / ".codex" / "sessions" / "2026" / "03" / "rollout-x.jsonl").write_text("{}")
    (tmp_path / ".codex" / "sessions" / "rollout-2025-04-17-x.json").write_text("{}")
    (tmp_path / ".codex" / "history.jsonl").write_text("{}")
    assert {each.agent for each in transcripts({"HOME": str(tmp_path)})} == {"Codex CLI"}
    assert len(transcripts({"CODEX_HOME": str(tmp_path / ".codex")})) == 3


def test_damage_and_unknown_records_hide_nothing(tmp_path):
    whole = rollout(user("go"), reply("Fine."), event("some_new_event"), line("brand_new", a=1))
    seen = show(whole + '{"timestamp": "x", "type": "response_item", "payl', tmp_path)
    assert len(seen.responses) == 1
    assert "is cut after" in notices(seen)
    assert "records of unknown type were skipped: brand_new (1)" in notices(seen)


def test_a_count_that_is_repeated_ends_no_answer(tmp_path):
    again = count(700, total=1_000)
    thought = item("reasoning", summary=[{"type": "summary_text", "text": "Look."}])
    seen = show(rollout(user("go"), call(), again, item("function_call_output", call_id="call_1", output="a.md"),
                        thought, again, reply("Fine."), count(7, total=1_007)), tmp_path)
    assert [facts.exchange.response.usage.output_tokens for facts in seen.responses] == [700, 7]
    assert seen.responses[1].exchange.response.text == "Fine."


@pytest.mark.parametrize(("runs", "stop", "calls"), [("client", "tool_call", 1), ("server", "unknown", 0)])
def test_a_search_for_tools_that_codex_runs_is_a_call(tmp_path, runs, stop, calls):
    seen = show(rollout(
        user("go"), item("tool_search_call", call_id="call_1", execution=runs, arguments={"query": "issues"}), count(),
        item("tool_search_output", call_id="call_1", execution=runs, tools=[{"name": "list"}]), reply("Fine."),
        count()),
        tmp_path)
    assert stops(seen)[0] == stop
    found = seen.responses[0].exchange.response.tool_calls
    assert [(each.name, each.arguments) for each in found] == [("tool_search", '{"query": "issues"}')] * calls


def usage(output, key="resp_1"):
    counts = {"input_tokens": 50, "cached_input_tokens": 40, "cache_write_input_tokens": 5, "output_tokens": output,
              "reasoning_output_tokens": 3, "total_tokens": 50 + output}
    return line("token_usage_record", response_id=key, usage=counts, turn_token_usage={**counts, "output_tokens": 999})


def nothing_counted():
    """The token count that Codex CLI 0.171.0 writes behind a response that was cut."""
    nothing = dict.fromkeys(("input_tokens", "output_tokens", "total_tokens"), 0)
    total = {"output_tokens": next(TOTALS)}
    return event("token_count", info={"last_token_usage": nothing, "total_token_usage": total})


def task_end(error=None, last=None):
    failed = {} if error is None else {"error": {"message": error, "codex_error_info": "other"}}
    return event("task_complete", turn_id="t1", last_agent_message=last, **failed)


CAPPED = "Incomplete response returned, reason: max_output_tokens"
FILTERED = "stream disconnected before completion: Incomplete response returned, reason: content_filter"


@pytest.mark.parametrize(("parts", "after", "word", "verdict"), [
    ([{**reply("Half of"), "status": "incomplete"}], [], "incomplete", "TRUNCATED"),
    ([item("reasoning", summary=[{"type": "summary_text", "text": "They"}])], [], None, "TRUNCATED"),
    ([reply("I write."), call(CUT)], [result("failed to parse function arguments: EOF")], None, "CALL HELD"),
])
def test_an_answer_that_has_counts_of_its_own_and_was_cut_is_one_answer(tmp_path, parts, after, word, verdict):
    for row in parts:
        if "status" in row:
            row["payload"]["status"] = row.pop("status")
    seen = show(rollout(user("go"), *parts, usage(12), *after, nothing_counted(), task_end(CAPPED)), tmp_path)
    (facts,) = seen.responses
    assert facts.judgement.stop.normalized is Stop.MAX_TOKENS
    assert facts.exchange.response.raw_stop_reason == word
    assert facts.exchange.response.usage == (50, 12, 3, 40, 5)
    assert words(seen) == [verdict]


def test_an_answer_that_has_counts_of_its_own_and_was_filtered_is_one_answer(tmp_path):
    seen = show(rollout(user("go"), reply("Half of"), usage(12), nothing_counted(), task_end(FILTERED)), tmp_path)
    (facts,) = seen.responses
    assert (facts.judgement.stop.normalized, facts.judgement.stop.detail) == (Stop.SAFETY_BLOCKED, None)
    assert (facts.exchange.response.text, facts.exchange.response.usage.output_tokens) == ("Half of", 12)
    assert words(seen) == ["BLOCKED"]


def test_a_cut_for_a_reason_that_is_not_known_is_no_second_answer(tmp_path):
    row = reply("Half of")
    row["payload"]["status"] = "incomplete"
    error = "Incomplete response returned, reason: ran_dry"
    assert words(show(rollout(user("go"), row, usage(12), task_end(error)), tmp_path)) == ["INTERRUPTED"]
    assert words(show(rollout(user("go"), reply("Whole."), usage(12), task_end(error)), tmp_path)) == ["ERROR"]


def test_a_context_that_is_full_after_results_refused_the_next_request(tmp_path):
    full = event("error", message="Codex ran out of room", codex_error_info="context_window_exceeded")
    seen = show(rollout(user("go"), call(), usage(12), result(), full), tmp_path)
    assert (stops(seen)[1:], words(seen)) == (["context_window_exceeded"], ["CONTEXT FULL"])


def test_the_counts_of_a_response_end_its_answer_before_the_results(tmp_path):
    seen = show(rollout(user("go"), call(), usage(7), result(), count(9), reply("Done."), usage(5, "resp_2"), count(8),
                        task_end(last="Done.")), tmp_path)
    assert [facts.exchange.response.usage.output_tokens for facts in seen.responses] == [7, 5]
    assert stops(seen) == ["tool_call", "end_turn"]


def test_a_cut_before_any_item_is_an_answer_of_its_own(tmp_path):
    seen = show(rollout(user("go"), call(), usage(7), result(), count(9), usage(4, "resp_2"), nothing_counted(),
                        task_end(CAPPED)), tmp_path)
    assert [facts.exchange.response.usage.output_tokens for facts in seen.responses] == [7, 4]
    assert stops(seen) == ["tool_call", "max_tokens"]


def test_the_counts_of_a_compaction_are_those_of_no_answer(tmp_path):
    seen = show(rollout(user("go"), reply("Done."), usage(7), user("more"), usage(900, "resp_2"),
                        line("compacted", message="…"), event("error", message="overloaded")), tmp_path)
    assert [facts.exchange.response.usage and facts.exchange.response.usage.output_tokens for facts in seen.responses
            ] == [7, None]


def test_the_summary_of_a_compacted_history_is_no_answer(tmp_path):
    """Codex CLI 0.171.0 writes the summary as a message of the model, then again behind a sentence of its own."""
    rows = [user("go"), call(), usage(12), result(), reply("Two files."), usage(3, "resp_2")]
    seen = show(rollout(*rows, line("compacted", message="A summary follows.\nTwo files."), reply("Done."),
                        usage(7, "resp_3"), task_end(last="Done.")), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == [None, "Done."]
    assert (places(seen), "hold the summary of a compacted history: 1" in notices(seen)) == (
        [["request", "tool_result"]], True)
    compacted = line("compacted", message="A summary follows.\nTwo files.")
    for after, stop in ((call(key="call_2"), "unknown"), (task_end(CAPPED), "max_tokens")):
        assert stops(show(rollout(*rows[:5], compacted, after), tmp_path)) == ["tool_call", stop]
    for kept in ([line("compacted", message="Another text.")], [task_end(last="Two files."), compacted],
                 [line("compacted", message="A summary follows.\nIt had\nTwo files.")]):
        assert show(rollout(*rows, *kept), tmp_path).responses[-1].exchange.response.text == "Two files."


def test_an_answer_that_a_filter_ended_is_asked_for_again_in_its_turn(tmp_path):
    guidance = item("message", role="developer", content=[{"type": "input_text", "text": (
        "<content_filter_guidance>\nYour previous response was blocked by a content filter.")}])
    half, rest = reply("Half of"), reply("the rest")
    half["payload"]["status"] = rest["payload"]["status"] = "incomplete"
    seen = show(rollout(user("go"), half, guidance, rest, guidance, task_end(FILTERED)), tmp_path)
    assert stops(seen) == ["safety_blocked", "safety_blocked"]
    assert [facts.exchange.response.raw_stop_reason for facts in seen.responses] == ["incomplete", "incomplete"]
    assert words(seen) == ["BLOCKED"]
    at = seen.responses[0].judgement.stop.evidence[-1].at
    assert b"content_filter_guidance" in seen.responses[0].exchange.body[at.start:at.end]
