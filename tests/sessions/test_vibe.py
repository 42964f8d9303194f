"""Journals of Mistral Vibe 3: stop words, discarded answers, results, failures, and the history of earlier turns."""

from __future__ import annotations

import json

import pytest

from inspector.sessions.importers import vibe
from inspector.sessions.importers.recognition import choose
from inspector.sessions.recording import Options
from tests.scenes.costs import IN_PROPORTION, growth
from tests.scenes.rows import each_row
from tests.scenes.transcripts import places, show, stops, view_file, words

ASKED_AGAIN = ("Your previous response was discarded because it reached the output token limit after 12 tokens before "
               "it finished. Continue the task with a shorter response: keep reasoning brief.")
UNREAD = ('{"result":{"type":"error","error":{"name":"InvalidToolCall","message":"tool arguments are not valid JSON '
          '(EOF while parsing a string at line 1 column 9)."}}}')


def record(kind, /, **payload):
    return {"payload": payload, "previous_record_sha256": None, "record_sha256": "5178", "sequence": 1, "type": kind,
            "recovery_journal_record_version": 1}


def text(words):
    return {"text": words, "type": "text"}


def event(command, *observations, **more):
    return record("core_input", input={"command": {"type": command, **more}, "input_id": 1},
                  transition_shape={"observations": list(observations), "turn": "running"})


def user(words):
    return event("user_message", "turn_started", content=[text(words)], mode="queue", turn_id="t1")


def message(role, *content, **more):
    return {"role": role, "content": list(content), **more}


def asked(*messages, kind="append", purpose="agent", key="a1"):
    return record("action_intent", action_id=key, kind="completion", request={
        "action_id": key, "purpose": purpose, "type": "llm_call",
        "model_input": {"messages": {"messages": list(messages), "revision": 1, "type": kind}}})


def came(word, *parts, key="a1", counts=(90, 12), **more):
    usage = {"cached_input_tokens": 10, "input_tokens": counts[0], "output_tokens": counts[1]} if counts else None
    result = {"finish_reason": word, "parts": list(parts), "usage": usage, **more}
    return record("action_result", action_id=key, state="succeeded",
                  result={"action_id": key, "result": result, "type": "completion_succeeded"})


def call(arguments='{"command": "ls"}', key="c1"):
    return {"arguments_json": arguments, "id": key, "name": "bash", "type": "tool_call"}


def ran(result, key="c1", kind="tool_succeeded"):
    return record("action_result", action_id="b1", state="succeeded",
                  result={"action_id": "b1", "call_id": key, "result": result, "type": kind})


def failed(code, why="Model stream failed", **details):
    error = {"code": code, "message": why, "retryable": False, "details": details}
    return record("action_result", action_id="a1", state="failed", result={"error": error, "type": "completion_failed"})


def turn(words, *rows):
    """A turn of the user, the first of a journal."""
    return [user(words), asked(message("system", text("You help.")), message("user", text(words)), kind="replace"),
            *rows]


ENDED = event("completion_succeeded", "assistant_message_committed", "turn_completed")


def file(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def reading(tmp_path, *rows):
    return show(file(*rows), tmp_path)


@each_row(("word", "shown_as"), [
    ("stop", "COMPLETE"), ("length", "TRUNCATED"), ("content_filter", "BLOCKED"), ("other", "UNKNOWN REASON")])
def test_the_stop_word_and_the_counts_of_an_answer(tmp_path, word, shown_as):
    seen = reading(tmp_path, *turn("go", came(word, {"content": [text("hm")], "type": "reasoning"}, text("Done."))),
                   ENDED)
    exchange = seen.responses[0].exchange
    assert (words(seen), exchange.recorder, exchange.response.usage[:2]) == ([shown_as], "vibe", (90, 12))
    assert (exchange.response.reasoning_content, exchange.response.usage.cached_tokens) == ("hm", 10)
    assert exchange.response.stop_reason.evidence[0].at.pointer == "/payload/result/result/finish_reason"
    assert seen.turns[0].run.record.user_text == "go"


def test_a_call_and_its_result(tmp_path):
    result = {"content": [], "structured_content": {"returncode": 0, "stdout": "a.txt"}, "type": "success"}
    seen = reading(tmp_path, *turn("list", came("tool_call", text("I look."), call()), ran(result)), asked(
        message("assistant", text("I look.")), message("tool", text("a.txt"), tool_call_id="c1", outcome="success")),
        came("stop", text("One file.")), ENDED)
    assert (words(seen), places(seen)) == (["COMPLETE"], [["request", "tool_result"]])
    first, second = (facts.exchange for facts in seen.responses)
    assert (first.response.tool_calls[0].arguments, dict(first.refusals)) == ('{"command": "ls"}', {})
    assert [part.text for part in second.request.messages[0].results] == ['{"returncode": 0, "stdout": "a.txt"}']


@pytest.mark.parametrize(("word", "arguments"), [("tool_call", '{"comma'), ("length", '{"comma'), ("tool_call", "{a}")])
def test_a_call_that_vibe_could_not_read_did_not_run(tmp_path, word, arguments):
    seen = reading(tmp_path, *turn("go", came(word, call(arguments))), asked(message("assistant"), message(
        "tool", text(UNREAD), tool_call_id="c1", outcome="failure", name="bash")), came("stop", text("Sorry.")), ENDED)
    first = seen.responses[0].exchange
    assert first.response.tool_calls[0].arguments == arguments
    assert first.refusals["c1"] == "the agent could not parse its arguments: it did not run"
    assert "agent.refused_held_call" in {each.finding.rule for each in seen.findings}


@pytest.mark.parametrize(("code", "refused"), [("tool_denied", True), ("tool_failed", False)])
def test_a_call_that_was_refused_did_not_run(tmp_path, code, refused):
    error = {"content": [], "error": {"code": code, "message": "No."}, "type": "failure"}
    seen = reading(tmp_path, *turn("go", came("tool_call", call()), ran(error, kind="tool_failed")),
                   asked(), came("stop", text("Well.")), ENDED)
    assert ("c1" in seen.responses[0].exchange.refusals) is refused
    assert seen.responses[1].exchange.request.messages[0].results[0][2:4] == ("No.", True)


def test_an_answer_that_was_cut_is_asked_for_again_and_is_no_part_of_the_next(tmp_path):
    cut, again = came("length", text("The queue was satur")), asked(message("user", text(ASKED_AGAIN)))
    seen = reading(tmp_path, *turn("go", cut, again, cut, again, came("stop", text("It was full."))), ENDED)
    assert (places(seen), words(seen)) == ([["request", "retry", "retry"]], ["RETRIED"])
    held = came("length", call('{"comma'))
    seen = reading(tmp_path, *turn("go", held, again, cut), event("completion_succeeded", "turn_completed"))
    assert words(seen) == ["TRUNCATED"], "Vibe gave up"
    other = reading(tmp_path, *turn("go", cut, asked(message("user", text("A note of Vibe's."))), came("stop")), ENDED)
    assert "retry" not in places(other)[0]


def test_an_answer_without_any_part_is_empty(tmp_path):
    """Vibe writes a space."""
    seen = reading(tmp_path, *turn("go", came("stop", text(" "), counts=(90, 0))), ENDED)
    assert words(seen) == ["EMPTY ANSWER"]
    assert words(reading(tmp_path, *turn("go", came("stop", text(" "), text("Done."))), ENDED)) == ["COMPLETE"]


def test_a_failed_request(tmp_path):
    seen = reading(tmp_path, *turn("go", failed("model_stream_failed", httpStatus=404)))
    assert (words(seen), seen.responses[0].exchange.response.http_status) == (["ERROR"], 404)


def test_a_request_that_the_user_stopped(tmp_path):
    stopped = event("interrupt", "agent_completion_candidate_discarded", "turn_interrupted")
    seen = reading(tmp_path, *turn("go", failed("effect_recovery_failed", "Action cancelled"), stopped))
    assert (stops(seen), words(seen)) == (["cancelled"], ["CANCELLED"])
    seen = reading(tmp_path, *turn("go", came("tool_call", call()), stopped))
    assert words(seen) == ["CANCELLED"], "at a tool"


def test_the_history_of_a_resumed_session_has_no_stop_words(tmp_path):
    held = message("assistant", {"arguments": {"raw": '{"a": 1}', "type": "json", "value": {"a": 1}}, "id": "c1",
                                 "name": "bash", "type": "tool_call"})
    history = [message("system", text("You help.")), message("user", text("one")), held,
               message("tool", text("ok"), tool_call_id="c1", outcome="success"),
               message("user", text(ASKED_AGAIN)), message("assistant", text("The queue was satur")),
               message("user", text("And the second?"))]
    seen = reading(tmp_path, user("And the second?"), asked(*history, kind="replace"), came("stop", text("All.")),
                   ENDED)
    assert stops(seen) == ["tool_call", "unknown", "end_turn"]
    assert words(seen) == ["END NOT RECORDED", "COMPLETE"]
    assert seen.responses[0].exchange.response.tool_calls[0].arguments == '{"a": 1}'
    assert "was cut, which Vibe did not store: 1" in "\n".join(map(str, seen.inputs[0].notices))
    assert [turn.run.record.user_text for turn in seen.turns] == ["one", "And the second?"]


def test_a_compaction_is_no_answer_and_its_summary_no_message_of_the_user(tmp_path):
    summary = came("stop", text("They said hello."), key="s1")
    seen = reading(tmp_path, *turn("go", came("stop", text("Done."))), ENDED, user("more"),
                   asked(purpose="compaction", key="s1"), summary, asked(
                       message("user", text("Summary: they said hello.")), message("user", text("more")),
                       kind="replace", key="a2"), came("stop", text("More."), key="a2"), ENDED)
    assert [facts.exchange.response.text for facts in seen.responses] == ["Done.", "More."]
    assert [turn.run.record.user_text for turn in seen.turns] == ["go", "more"]
    assert "transcript.compacted" in {each.rule for each in seen.responses[1].exchange.response.findings}


def test_the_file_beside_the_journal_names_the_model_the_title_and_the_session(tmp_path):
    folder = tmp_path / "806a5a6f" / "journal"
    folder.mkdir(parents=True)
    (folder.parent / "meta.json").write_text(json.dumps({
        "session_id": "806a5a6f", "parent_session_id": "1f2e", "title": "The queue",
        "config": {"active_model": "m", "model_name": "devstral-2"}}))
    path = folder / "0000000000000001.jsonl"
    path.write_text(file(*turn("go", came("stop", text("Done."))), ENDED))
    seen = view_file(path)
    assert seen.responses[0].exchange.model == "devstral-2"
    assert (seen.inputs[0].about.title, seen.inputs[0].about.id, seen.inputs[0].about.parent) == (
        "The queue", "806a5a6f", "1f2e")


@each_row(("kind", "known"), [
    ("command_reserved", True), ("core_input", True), ("action_intent", True), ("process_state_changed", True),
    ("callback_registered", True), ("receipt_failed", True), ("projection_delta", True), ("session_relocated", True),
    ("made_up", False)])
def test_records_that_hold_no_exchange(tmp_path, kind, known):
    seen = reading(tmp_path, *turn("go", came("stop", text("Done."))), record(kind), ENDED)
    assert any("unknown type" in str(notice) for notice in seen.inputs[0].notices) is not known


def test_other_lines_are_no_journal():
    assert choose(file(record("command_reserved", method="turn/start")).encode(), "0001.jsonl") == "vibe"
    assert choose(json.dumps({"recovery_journal_record_version": 1, "type": "x"}).encode(), "0001.jsonl") != "vibe"


@pytest.mark.parametrize(("odd", "named"), [
    ({"payload": 7}, "payload is a number"), ({"payload": {"kind": 7}}, "payload.kind is a number")])
def test_a_member_of_another_type_is_named(tmp_path, odd, named):
    seen = reading(tmp_path, *turn("go", came("stop", text("Done."))), {**record("core_input"), **odd}, ENDED)
    assert any(named in str(notice) for notice in seen.inputs[0].notices)
    assert words(seen) == ["COMPLETE"]


def test_many_results_of_one_answer_are_read_in_linear_time(tmp_path):
    def journal(count):
        keys = [f"c{number}" for number in range(count)]
        results = [message("tool", text(UNREAD), tool_call_id=key, outcome="failure") for key in keys]
        return file(user("go"), asked(), came("tool_call", *(call("{", key) for key in keys)), asked(*results),
                    came("stop", text("Done."))).encode()

    def read(data):
        return vibe.reader(str(tmp_path / "x"), Options(), b"").read(data)

    assert list(read(journal(2)).exchanges[0].refusals) == ["c0", "c1"]
    assert growth(read, journal, 400) < IN_PROPORTION
