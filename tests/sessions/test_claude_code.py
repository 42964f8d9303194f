"""Claude Code's transcripts: rows into answers, how each ended and how that is known, and what of a file is damaged."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inspector.config.settings import Settings
from inspector.report.lines.calls import call as lines_of_call
from inspector.report.lines.spans import text_of
from inspector.report.lines.wire import wire
from inspector.report.turn_rows import rows_of
from inspector.sessions import intake, open_paths
from inspector.sessions.copies import files_by_session
from inspector.sessions.file_format import HEAD
from inspector.sessions.folders import is_beside
from inspector.sessions.importers import claude_code
from inspector.sessions.recording import Options
from loop_core.turn.limits import Limits
from loop_core.values import ArgsForm, ReasoningPart, TextPart, ToolCall
from tests.scenes.costs import IN_PROPORTION, growth
from tests.scenes.rows import each_row
from tests.scenes.transcripts import (
    CAP,
    MISSING,
    block,
    claude,
    failure,
    places,
    prompt,
    result,
    rules,
    show,
    stops,
    system,
    text,
    use,
    words,
)

WHOLE = {"file_path": "/home/a.md", "content": "one two three"}
RESUME = "Output token limit hit. Resume directly — no apology, no recap of what you were doing."


def notices(seen) -> str:
    return "\n".join(seen.inputs[0].notices)


def messages(seen, rule: str) -> list[str]:
    return [noted.finding.message for noted in seen.findings if noted.finding.rule == rule]


def test_what_a_stop_hook_says_to_the_model_shows_that_the_loop_had_ended(tmp_path):
    back = prompt("Stop hook feedback:\n- [check.sh]: the tests fail", isMeta=True)
    rows = [prompt("hi"), block(text("Done.")), back, block(text("Mended."), "msg_02", "end_turn")]
    seen = show(claude(*rows), tmp_path)
    assert (stops(seen)[0], rules(seen)[-1]) == ("end_turn", "transcript.inferred.turn_ended")
    assert seen.responses[1].exchange.request.messages[0].text.startswith("Stop hook feedback")


BROKEN = "Your response above was cut off mid-stream. Resume directly from where it stops — no apology, no recap."


def test_an_answer_whose_stream_broke_has_no_stop_word_though_claude_code_writes_one(tmp_path):
    rows = [prompt("hi"), block(text("The relay keeps a que"), "msg_01", "end_turn", 1), prompt(BROKEN, isMeta=True),
            block(text("ue."), "msg_02", "end_turn", 2), prompt("and?"), block(text("No."), "msg_03", "end_turn", 2)]
    seen = show(claude(*rows), tmp_path)
    assert (stops(seen), words(seen)) == (["interrupted", "end_turn", "end_turn"], ["INTERRUPTED", "COMPLETE"])
    assert "transcript.inferred.error_row" in rules(seen)
    assert places(seen)[0] == ["request", "continuation"]


def test_a_broken_answer_without_rows_is_not_the_one_before_it(tmp_path):
    rows = [prompt("hi"), block(use(**WHOLE), "msg_01", "tool_use", 9), result("written"), prompt(BROKEN, isMeta=True),
            block(text("Done."), "msg_02", "end_turn", 2)]
    seen = show(claude(*rows), tmp_path)
    assert stops(seen) == ["tool_call", "interrupted", "end_turn"]
    assert len(seen.turns) == 1
    assert "CUT CALL RUN" not in words(seen)


def test_a_call_that_claude_code_could_not_read_and_left_out_is_not_the_one_before_it(tmp_path):
    said = "The previous response failed to produce a valid tool call. Please retry the tool call now."
    asked = prompt(said, isMeta=True)
    seen = show(claude(prompt("hi"), block(use(**WHOLE), "msg_01", "tool_use", 9), result("written"), asked,
                       block(text("Done."), "msg_02", "end_turn", 2)), tmp_path)
    assert stops(seen) == ["tool_call", "malformed_tool_call", "end_turn"]


def test_a_message_of_the_user_after_an_answer_without_output_begins_a_turn(tmp_path):
    silent = prompt("[Your previous response had no visible output. Please continue.]", isMeta=True, uuid="silent")
    rows = [prompt("hi"), block({"type": "thinking", "thinking": "hm"}, "msg_01", "end_turn", 2), silent,
            block({"type": "thinking", "thinking": "hm"}, "msg_02", "end_turn", 2),
            prompt("and?", parentUuid="silent"), block(text("Yes."), "msg_03", "end_turn", 2)]
    assert words(show(claude(*rows), tmp_path)) == ["REASONING ONLY", "COMPLETE"]


def test_what_claude_code_asks_for_after_a_refusal_stays_in_its_turn(tmp_path):
    noted = "Your response above was stopped by a safety classifier — this is not a tool or API error."
    rows = [prompt("hi"), block(text("The relay"), "msg_01", "refusal", 3), prompt(noted, isMeta=True),
            block(text(" keeps it."), "msg_02", "end_turn", 3), prompt("and?"), block(text("No."), "msg_03")]
    seen = show(claude(*rows), tmp_path)
    assert words(seen)[0] == "BLOCKED"
    assert places(seen)[0] == ["request", "nudge"]


def test_a_stream_that_begins_with_many_counts_of_thinking_is_recognised(tmp_path):
    rows = [{"type": "system", "subtype": "init", "session_id": "s", "tools": [], "claude_code_version": "2.1.332"},
            *[{"type": "system", "subtype": "thinking_tokens", "session_id": "s"}] * 20,
            {"type": "assistant", "session_id": "s", "message": {
                "id": "msg_01", "role": "assistant", "content": [text("Hi.")], "stop_reason": "end_turn"}}]
    assert words(show("".join(f"{json.dumps(row)}\n" for row in rows), tmp_path)) == ["COMPLETE"]


def request(cap, source="repl_main_thread:outputStyle", **more):
    return {"type": "api-request", "id": "r", "querySource": source, "params": {"max_tokens": cap}, **more}


def test_the_cap_of_an_answer_is_that_of_the_recorded_request_before_it(tmp_path):
    rows = [prompt("hi"), request(50), request(9, "generate_session_title"), request(20, agentId="a1"),
            block(text("One."), "msg_01", None, 50), block(text("two"), "msg_01", None, 50),
            prompt("and?"), block(text("Three."), "msg_02", "end_turn", 50)]
    seen = show(claude(*rows), tmp_path)
    assert [each.exchange.cap for each in seen.responses] == [50, None]
    assert (stops(seen), rules(seen)[-1]) == (["max_tokens", "end_turn"], "transcript.inferred.tokens_at_cap")
    assert "unknown type" not in notices(seen)
    failed = show(claude(prompt("hi"), request(32000), failure("API Error: Overloaded")), tmp_path)
    assert [each.exchange.cap for each in failed.responses] == [32000]


@pytest.mark.parametrize(("source", "cap"), [("sdk", 50), ("agent:custom", 50), ("compact", None), (None, None)])
def test_only_a_request_for_an_answer_states_its_cap(source, cap, tmp_path):
    seen = show(claude(prompt("hi"), request(50, source), block(text("One."), "msg_01", "end_turn", 5)), tmp_path)
    assert [each.exchange.cap for each in seen.responses] == [cap]


# -- the stream of `claude -p`, and transcripts without a tree -------------------------------------------------------


def stream(*rows: dict) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def reply_row(content, key: str = "msg_01", caller: str | None = None) -> dict:
    return {"type": "assistant", "session_id": "s1", "parent_tool_use_id": caller, "message": {
        "id": key, "role": "assistant", "model": "claude-opus-4-5", "content": [content], "stop_reason": None,
        "usage": {"input_tokens": 3, "output_tokens": 1}}}


def result_row(key: str = "toolu_01") -> dict:
    return {"type": "user", "session_id": "s1", "parent_tool_use_id": None, "message": {
        "role": "user", "content": [{"type": "tool_result", "tool_use_id": key, "content": "two files"}]}}


def run_result(subtype: str = "success", **more) -> dict:
    return {"type": "result", "subtype": subtype, "is_error": False, "session_id": "s1", **more}


CALL = {"type": "tool_use", "id": "toolu_01", "name": "Task", "input": {"prompt": "count"}}
DELTA = {"type": "stream_event", "event": {"type": "message_delta", "delta": {"stop_reason": "max_tokens"},
                                           "usage": {"output_tokens": 64}}}
INIT = {"type": "system", "subtype": "init", "session_id": "s1"}


def test_rows_of_the_stream_follow_one_another_and_a_subagents_are_a_session_below(tmp_path):
    limits = {"type": "rate_limit_event", "session_id": "s1"}
    seen = show(stream(
        INIT, limits, DELTA, reply_row(text("I look.")), reply_row(CALL), reply_row(text("Two."), "msg_02", "toolu_01"),
        result_row(), reply_row(text("There are two."), "msg_03"), run_result()), tmp_path)
    assert [facts.exchange.session for facts in seen.responses] == ["", "› subagent", ""]
    assert places(seen) == [["request", "tool_result"], ["request"]]
    assert rules(seen, 2)[-1] == "transcript.inferred.turn_ended"
    assert "hold no exchange: rate_limit_event (1), result (1), stream_event (1), system (1)" in notices(seen)


def streamed(kind: str, **more) -> dict:
    return {"type": "stream_event", "session_id": "s1", "parent_tool_use_id": None, "event": {"type": kind, **more}}


BEGUN = streamed("message_start", message={"id": "msg_01", "model": "claude-opus-4-5", "usage": {"output_tokens": 1}})
SPOKEN = (streamed("content_block_start", index=0, content_block={"type": "text", "text": ""}),
          streamed("content_block_delta", index=0, delta={"type": "text_delta", "text": "I "}),
          streamed("content_block_delta", index=0, delta={"type": "text_delta", "text": "look."}))
SAID = (*SPOKEN, reply_row(text("I look.")), streamed("content_block_stop", index=0))
CALLED = (streamed("content_block_start", index=1, content_block={**CALL, "input": {}}),
          streamed("content_block_delta", index=1, delta={"partial_json": '{"prompt": "co'}))
RUN = {**INIT, "claude_code_version": "2.1.207"}


@pytest.mark.parametrize(("events", "says", "arguments"), [
    ((BEGUN,), "", []), ((BEGUN, *SPOKEN), "I look.", []), ((BEGUN, *SAID), "I look.", []),
    ((BEGUN, *SAID, CALLED[0]), "I look.", [None]), ((BEGUN, *SAID, *CALLED), "I look.", ['{"prompt": "co']),
])
@pytest.mark.parametrize("further", [(), ({**RUN, "session_id": "s2"}, reply_row(text("Again."), "msg_09"))])
def test_the_events_of_a_run_that_was_killed_show_its_last_block(tmp_path, events, says, arguments, further):
    """With `--include-partial-messages`; the text and the call were not shown."""
    seen = show(stream(RUN, *events, *further), tmp_path)
    response = seen.responses[0].exchange.response
    assert (response.text or "", [call.arguments for call in response.tool_calls]) == (says, arguments)
    assert {call.form for call in response.tool_calls if call.arguments} <= {ArgsForm.STRING}, "as they came"
    assert (stops(seen)[0], rules(seen)[-1]) == ("interrupted", "transcript.inferred.partial_row")
    assert [verdict.admission.value for verdict in seen.responses[0].verdicts] == ["held"] * len(arguments)
    assert len(seen.responses) == 1 + bool(further)


@pytest.mark.parametrize("end", [DELTA, streamed("message_stop"), run_result(), BEGUN])
def test_an_answer_whose_rows_are_all_there_has_nothing_from_its_events(tmp_path, end):
    rows = [RUN, BEGUN, *SAID, end, streamed("content_block_delta", index=0, delta={"text": "?"})]
    (facts,) = show(stream(*rows[: -1 if end is BEGUN else None]), tmp_path).responses[:1]
    assert facts.exchange.response.text == "I look."
    assert "partial_row" not in "".join(each.rule for each in facts.judgement.stop.evidence)


def test_the_events_of_a_long_block_are_read_in_linear_time(tmp_path):
    def pieces(count):
        return stream(RUN, BEGUN, SPOKEN[0], *[SPOKEN[1]] * count).encode()

    def read(data):
        return claude_code.reader(str(tmp_path / "x"), Options(), data[:HEAD]).read(data)

    assert read(pieces(2)).exchanges[0].response.text == "I I "
    assert growth(read, pieces, 8000) < IN_PROPORTION


@pytest.mark.parametrize("first", [{"hook_event": "SessionStart"}, {"claude_code_version": "2.1.0", "tools": []}])
def test_a_stream_that_begins_with_many_other_rows_is_recognised(tmp_path, first):
    rows = [{"type": "system", "session_id": "s1", **first}, *[{"type": "system", "subtype": "api_retry"}] * 20]
    seen = show(stream(*rows, reply_row(text("There are two."))), tmp_path)
    assert (seen.inputs[0].format, len(seen.responses)) == ("claude-code", 1)


def test_the_retries_in_a_stream_are_among_the_skipped_entries(tmp_path):
    retry = {"type": "system", "subtype": "api_retry", "attempt": 2, "error_status": 429, "error": "rate_limit"}
    seen = show(stream(INIT, retry, reply_row(text("There are two."))), tmp_path)
    assert [each.why for each in seen.inputs[0].skipped] == [
        "a failed request that Claude Code sent again: 429 rate_limit (attempt 2)"]


@pytest.mark.parametrize(("rows", "word", "tokens", "pointer"), [
    ([DELTA], "max_tokens", 64, "/event/delta/stop_reason"),
    ([run_result(stop_reason="refusal")], "refusal", None, "/stop_reason"),
    ([DELTA, run_result(stop_reason="end_turn")], "max_tokens", 64, "/event/delta/stop_reason"),
])
def test_the_stream_tells_the_word_of_the_provider_after_the_rows_of_an_answer(tmp_path, rows, word, tokens, pointer):
    (facts,) = show(stream(INIT, reply_row(text("There are two of them")), *rows), tmp_path).responses
    assert facts.exchange.response.raw_stop_reason == word
    assert facts.exchange.response.usage.output_tokens == tokens
    assert facts.judgement.stop.evidence[0].at.pointer == pointer


@pytest.mark.parametrize("result", [run_result("error_max_turns"), run_result(is_error=True)])
def test_a_run_that_did_not_succeed_says_nothing_of_its_last_answer(tmp_path, result):
    seen = show(stream(INIT, reply_row(text("There are")), result), tmp_path)
    assert words(seen) == ["END NOT RECORDED"]


@pytest.mark.parametrize("space", [None, 2])
def test_the_stream_is_read_as_one_list_too(tmp_path, space):
    rows = [INIT, reply_row(CALL), result_row(), reply_row(text("There are two."), "msg_03"), run_result()]
    for held in (rows, {"loglines": rows}, {"id": "s", "loglines": rows, "title": "count"},
                 {"id": "s", "summary": "x" * 9000, "loglines": rows}):
        seen = show(json.dumps(held, indent=space), tmp_path)
        assert seen.inputs[0].format == "claude-code"
        assert places(seen) == [["request", "tool_result"]]
        assert words(seen) == ["END INFERRED"]


def test_a_large_list_is_read_as_one_and_one_within_a_row_is_none(tmp_path):
    words = text("There are two." * (intake.HEAVY // 14))
    rows = [INIT, reply_row(CALL), result_row(), reply_row(words, "msg_03"), run_result()]
    for held in (rows, {"loglines": rows}):
        seen = show(json.dumps(held), tmp_path)
        assert (seen.inputs[0].format, places(seen)) == ("claude-code", [["request", "tool_result"]])
    seen = show(stream({**INIT, "settings": {"loglines": []}}, reply_row(text("There are two."))), tmp_path)
    assert (seen.inputs[0].format, len(seen.responses)) == ("claude-code", 1)


def test_runs_that_were_written_into_one_file_are_turns_of_their_own(tmp_path):
    seen = show(stream(INIT, reply_row(CALL), result_row(), reply_row(text("Two."), "msg_02"), run_result(),
                       INIT, reply_row(text("Three."), "msg_03"), run_result("error_max_turns")), tmp_path)
    assert places(seen) == [["request", "tool_result"], ["request"]]
    again = show(stream(INIT, reply_row(CALL), INIT, result_row(), reply_row(text("Two."), "msg_02")), tmp_path)
    assert places(again) == [["request", "tool_result"]]


def test_a_run_that_was_killed_is_a_turn_of_its_own_before_the_next_run_in_the_file(tmp_path):
    seen = show(stream(INIT, reply_row(CALL), result_row(), {**INIT, "session_id": "s2"},
                       reply_row(text("Two."), "msg_02"), run_result(stop_reason="end_turn")), tmp_path)
    assert places(seen) == [["request"], ["request"]]
    assert words(seen) == ["END INFERRED", "COMPLETE"]


@each_row(("more", "verdict", "output"), [
    ({"num_turns": 1, "usage": {"output_tokens": 5}}, "END INFERRED", 5),
    ({"num_turns": 1, "stop_reason": "end_turn", "usage": {"output_tokens": 5}}, "COMPLETE", 5),
    ({"num_turns": 3, "usage": {"output_tokens": 5}}, "END INFERRED", None),
    ({"num_turns": 1, "is_error": True, "usage": {"output_tokens": 5}}, "ERROR", None),
])
def test_a_result_alone_is_the_last_answer_of_its_run(tmp_path, more, verdict, output):
    seen = show(json.dumps({**run_result(result="Overloaded, try again", total_cost_usd=0.1), **more}), tmp_path)
    assert seen.inputs[0].format == "claude-code"
    assert words(seen) == [verdict]
    exchange = seen.responses[0].exchange
    assert (exchange.response.usage.output_tokens if exchange.response.usage else None) == output
    assert ("only the last answer of a run of 3 turns is in it" in notices(seen)) is (more["num_turns"] == 3)
    assert exchange.response.text == ("" if verdict == "ERROR" else "Overloaded, try again") or verdict == "ERROR"


def test_a_transcript_stripped_to_its_messages_is_read_in_the_order_of_its_rows(tmp_path):
    seen = show(stream(
        {"type": "user", "message": {"content": "count"}},
        {"type": "assistant", "message": {"content": [text("I look."), CALL]}},
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "toolu_01", "content": "2"}]}},
        {"type": "assistant", "message": {"content": "Two."}},
    ), tmp_path)
    assert seen.inputs[0].format == "claude-code"
    assert places(seen) == [["request", "tool_result"]]


# -- rows into answers -------------------------------------------------------------------------------------------------


def test_the_rows_of_a_message_are_one_answer_with_its_last_word_and_largest_usage(tmp_path):
    seen = show(claude(
        prompt("write it"),
        block({"type": "thinking", "thinking": "hm", "signature": "sig"}, tokens=3),
        block(text("I will."), tokens=3),
        block(use(**WHOLE), stop="tool_use", tokens=121),
        result("File created"),
        block(text("Done."), "msg_02", "end_turn", 4),
    ), tmp_path)
    assert len(seen.responses) == 2
    first, second = (facts.exchange.response for facts in seen.responses)
    assert [type(part).__name__ for part in first.parts] == ["ReasoningPart", "TextPart", "ToolCall"]
    assert (first.text, first.reasoning_content, first.raw_stop_reason, first.model) == (
        "I will.", "hm", "tool_use", "claude-opus-4-5-20251101")
    assert first.usage == (3, 121, None, 100, 7)
    assert second.text == "Done."
    assert places(seen) == [["request", "tool_result"]]
    assert words(seen) == ["COMPLETE"]
    assert rules(seen) == ["transcript.provider", "anthropic_messages.stop_reasons"]


def test_the_arguments_are_the_bytes_of_the_row(tmp_path):
    row = json.dumps(block(use(**WHOLE), stop="tool_use"))
    odd = '{"file_path" : "/home/a.md",  "content":"\\u0061"}'
    content = claude(prompt("x")) + row.replace(json.dumps(WHOLE), odd) + "\n"
    (facts,) = show(content, tmp_path).responses
    assert facts.exchange.response.tool_calls[0].arguments == odd


@each_row("before", [
    '{"type": "text", "text": "no \\"input\\": {}"}',
    '{"type": "text", "text": "a", "input": {"b": 1}}',
    '{"type": "text", "text": "a", "x\\"input": {"b": 1}}',
    '{"type": "tool_use", "id": "u0", "name": "Read", "input" : {"file_path": "b"}}',
    '{"type": "tool_use", "id": "u0", "name": "Read", "i\\u006eput": {"file_path": "b"}}',
    '{"type": "tool_use", "id": "u0", "name": "Read", "input": {"input": "b"}}',
])
@each_row("name", ['"input":', '"input" :', '"\\u0069nput":'])
def test_arguments_are_those_of_their_own_block_however_the_names_are_written(tmp_path, before, name):
    row = json.dumps(block({"type": "BLOCK"}, uuid="a1", parent="u1"))
    called = f'{{"type": "tool_use", "id": "u1", "name": "Write", {name} {{"content":  1.50}}}}'
    lines = json.dumps(prompt("write")) + "\n" + row.replace('{"type": "BLOCK"}', f"{before}, {called}") + "\n"
    (*_, call) = show(lines, tmp_path).responses[0].exchange.response.parts
    assert call.arguments == '{"content":  1.50}'


def test_the_body_is_the_rows_and_the_wire_view_names_their_lines(tmp_path):
    content = claude(prompt("x"), block(text("I will.")), block(use(**WHOLE), stop="tool_use"), result("ok"))
    lines = content.encode().splitlines()
    (facts,) = show(content, tmp_path).responses
    exchange = facts.exchange
    assert exchange.body == lines[1] + b"\n" + lines[2]
    assert (exchange.recorder, exchange.lines, exchange.entry) == ("claude-code", (2, 3), 1)
    at = facts.judgement.stop.evidence[0].at
    assert exchange.body[at.start : at.end] == lines[2]
    sheet = wire(facts, "events")
    drawn = ["".join(span.text for span in sheet.line(index)) for index in range(len(sheet))]
    assert any("2 rows of claude-code" in line for line in drawn)
    assert any(line.startswith("        0 line 2 {") for line in drawn)
    assert any(f"{len(lines[1]) + 1:>9,} line 3 {{" in line for line in drawn)


def test_results_of_calls_side_by_side_all_reach_the_next_answer(tmp_path):
    # Each result stands below its own call's row, so only one of them is on the path of the next answer.
    seen = show(claude(
        prompt("both", uuid="p"),
        block(use("toolu_01A", "Read", path="a"), uuid="a1"),
        block(use("toolu_01B", "Read", path="b"), uuid="a2"),
        result("A", "toolu_01A", parentUuid="a1", uuid="r1"),
        result("B", "toolu_01B", parentUuid="a2", uuid="r2"),
        block(text("Both read."), "msg_02", "end_turn", parentUuid="r2"),
    ), tmp_path)
    results = seen.responses[1].exchange.request.messages[0].results
    assert [(part.call_id, part.text) for part in results] == [("toolu_01A", "A"), ("toolu_01B", "B")]
    assert places(seen) == [["request", "tool_result"]]
    assert stops(seen) == ["tool_call", "end_turn"]


def test_rows_without_a_message_id_are_one_answer_only_where_they_stand_together(tmp_path):
    rows = [prompt("1"), block(text("a")), block(text("b")), prompt("2"), block(text("c"))]
    for row in rows:
        row.get("message", {}).pop("id", None)
        row["requestId"] = "req_same"
    seen = show(claude(*rows), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["ab", "c"]


def test_an_edited_message_is_a_branch_of_its_own(tmp_path):
    seen = show(claude(
        prompt("first", uuid="p1"), block(text("one"), "msg_01", "end_turn", uuid="a1"),
        prompt("second", uuid="p2"), block(text("two"), "msg_02", "end_turn"),
        prompt("second, otherwise", uuid="p3", parentUuid="a1"), block(text("three"), "msg_03", "end_turn"),
    ), tmp_path)
    assert [turn.run.record.user_text for turn in seen.turns] == ["first", "second", "second, otherwise"]
    assert {turn.conversation for turn in seen.turns} == {"c1"}
    assert [turn.run.record.links[0].parent for turn in seen.turns] == [None, 0, 0]


def test_a_sidechain_is_a_conversation_of_its_own(tmp_path):
    seen = show(claude(
        prompt("main"), block(use("toolu_01T", "Task", prompt="look")),
        prompt("look", parentUuid=None, isSidechain=True, agentId="a0"),
        block(text("found"), "msg_02", "end_turn", isSidechain=True, agentId="a0"),
    ), tmp_path)
    assert [turn.conversation for turn in seen.turns] == ["c1", "c2"]


def test_a_sidechain_without_an_id_is_a_session_below_the_files(tmp_path):
    side = {"isSidechain": True}
    seen = show(claude(
        prompt("main"), block(use("toolu_01T", "Task", prompt="look")), prompt("look", parentUuid=None, **side),
        block(text("found"), "msg_02", "end_turn", **side),
    ), tmp_path)
    assert [row.name for row in rows_of(seen)] == ["s", "s › subagent"]


def test_the_files_of_subagents_are_read_with_their_session(tmp_path):
    below = tmp_path / "s" / "subagents"
    below.mkdir(parents=True)
    row = block(text("found"), "msg_02", "end_turn", isSidechain=True, agentId="a0")
    (below / "agent-a0.jsonl").write_text(claude(prompt("look", isSidechain=True, agentId="a0"), row))
    (tmp_path / "s").joinpath("other.jsonl").write_text("{}\n")
    seen = show(claude(prompt("main"), block(text("Hello."), stop="end_turn")), tmp_path)
    assert [given.path for given in seen.inputs] == [str(tmp_path / "s.jsonl"), str(below / "agent-a0.jsonl")]
    assert [turn.conversation for turn in seen.turns] == ["c1", "c2"]
    assert seen.inputs[1].about.title == "subagent a0"
    assert [facts.exchange.session for facts in seen.responses] == ["", "s › subagent a0"]
    whole = open_paths([str(tmp_path)])
    assert len(whole.exchanges) == 2


def test_the_agents_of_a_workflow_are_read_with_their_session(tmp_path):
    """Claude Code 2.1.207: a cut answer of such an agent was not seen."""
    below = tmp_path / "s" / "subagents" / "workflows" / "wf_1"
    below.mkdir(parents=True)
    row = block(text("Half"), "msg_02", "max_tokens", isSidechain=True, agentId="a1")
    (below / "agent-a1.jsonl").write_text(claude(prompt("look", isSidechain=True, agentId="a1"), row))
    (below / "journal.jsonl").write_text('{"type":"started","key":"v2:1a","agentId":"a1"}\n')
    seen = show(claude(prompt("main"), block(text("Hello."), stop="end_turn")), tmp_path)
    assert [given.path for given in seen.inputs] == [str(tmp_path / "s.jsonl"), str(below / "agent-a1.jsonl")]
    assert (words(seen), seen.responses[1].exchange.session) == (["COMPLETE", "TRUNCATED"], "s › subagent a1")
    opened = set(files_by_session(seen.inputs).values())
    assert opened == {(str(tmp_path / "s.jsonl"),)}
    assert is_beside(str(below / "agent-a1.jsonl"), {str(tmp_path / "s.jsonl")})
    folder, *_ = open_paths([str(tmp_path)]).inputs
    assert "journal of a workflow of Claude Code (1)" in "".join(folder.notices)


def test_records_that_carry_nothing_are_passed_through_and_counted(tmp_path):
    seen = show(claude(
        {"type": "file-history-snapshot"}, prompt("hi"), {"type": "progress", "data": {}},
        block(text("Hello."), stop="end_turn"), {"type": "custom-title", "customTitle": "Greetings"},
        {"type": "hologram"}, {"type": "hologram"},
    ), tmp_path)
    assert "records of unknown type were skipped: hologram (2)" in notices(seen)
    assert "records that hold no exchange: custom-title (1), file-history-snapshot (1), progress (1)" in notices(seen)
    assert seen.inputs[0].about.title == "Greetings"
    titles = [{"type": "summary", "summary": "In short"}, {"type": "ai-title", "aiTitle": "Hello"},
              {"type": "custom-title", "customTitle": "Greetings"}]
    for number, title in enumerate(("In short", "Hello", "Greetings"), start=1):  # the user's own goes before others
        named = show(claude(prompt("hi"), block(text("Hello."), stop="end_turn"), *titles[:number]), tmp_path)
        assert named.inputs[0].about.title == title
    assert seen.turns[0].run.record.user_text == "hi"


def test_the_calls_of_a_subagent_in_rows_of_progress_are_named(tmp_path):
    called = {"type": "assistant", "message": {"role": "assistant", "content": [use("toolu_02")]}}
    seen = show(claude(
        prompt("hi"), {"type": "progress", "data": {"type": "agent_progress", "agentId": "a0", "message": called}},
        {"type": "progress", "data": {"type": "hook_progress"}}, block(text("Hello."), stop="end_turn"),
    ), tmp_path)
    assert "hold calls of a subagent and their results; its answers are in its own file: 1" in notices(seen)
    assert "records that hold no exchange: progress (1)" in notices(seen)
    assert (len(seen.responses), words(seen)) == (1, ["COMPLETE"])


def test_a_compacted_history_goes_on_and_its_summary_is_no_turn(tmp_path):
    seen = show(claude(
        prompt("first"), block(text("one"), "msg_01", "end_turn", uuid="a1"),
        system("compact_boundary", parentUuid=None, logicalParentUuid="a1"),
        prompt("This session is being continued from a previous conversation.", isCompactSummary=True),
        prompt("second"), block(text("two"), "msg_02", "end_turn"),
    ), tmp_path)
    assert [turn.run.record.user_text for turn in seen.turns] == ["first", "second"]
    assert {turn.conversation for turn in seen.turns} == {"c1"}
    assert "rows that hold the summary of a compacted history: 1" in notices(seen)


def test_a_message_of_the_agents_own_is_no_answer(tmp_path):
    own = failure("No response requested.", isApiErrorMessage=False)
    seen = show(claude(prompt("/clear"), own, prompt("hi"), block(text("Hello."), stop="end_turn")), tmp_path)
    assert [skip.why for skip in seen.inputs[0].skipped] == ["a message of Claude Code's own, and no model's"]
    assert len(seen.responses) == 1


def test_a_row_twice_counts_once(tmp_path):
    content = claude(prompt("hi"), block(text("Hello."), stop="end_turn"))
    seen = show(content + content.splitlines()[1] + "\n", tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["Hello."]
    assert "rows that repeat a row before them (same uuid): 1" in notices(seen)


# -- how an answer ended -----------------------------------------------------------------------------------------------


def inference(rule: str) -> list[str]:
    return ["transcript.absent", f"transcript.inferred.{rule}"]


def test_equal_inferences_are_one_value(tmp_path):
    calls = [(block(use(f"toolu_{number}", **WHOLE), f"msg_{number}"), result("ok", f"toolu_{number}"))
             for number in range(2)]
    first, second = (facts.exchange.response for facts in show(
        claude(prompt("write"), *calls[0], *calls[1], block(text("Done."), "msg_02", "end_turn")), tmp_path,
    ).responses[:2])
    assert first.stop_reason.evidence[1] is second.stop_reason.evidence[1]
    assert first.findings[0] is second.findings[0]


def test_a_call_that_is_answered_asked_for_tools(tmp_path):
    seen = show(claude(prompt("write"), block(use(**WHOLE)), result("File created"),
                        block(text("Done."), "msg_02", "end_turn")), tmp_path)
    assert (stops(seen)[0], rules(seen)) == ("tool_call", inference("calls_answered"))
    assert seen.responses[0].exchange.response.raw_stop_reason is None
    assert messages(seen, "transcript.inferred") == [
        "the stop reason was not recorded; tool_call is inferred: its call is answered by tool results"]
    assert words(seen) == ["COMPLETE"]


def test_a_call_without_a_result_proves_nothing(tmp_path):
    seen = show(claude(prompt("write"), block(use("toolu_01A", **WHOLE)), block(use("toolu_01B", **WHOLE)),
                        result("File created", "toolu_01A")), tmp_path)
    assert (stops(seen), rules(seen)) == (["unknown"], ["transcript.absent"])
    assert {verdict.admission.value for verdict in seen.responses[0].verdicts} == {"held"}
    assert words(seen) == ["END NOT RECORDED"]
    assert messages(seen, "agent.ran_held_call") == []
    (message,) = messages(seen, "agent.ran_call_of_unseen_end")
    facts = seen.responses[0]
    assert message in {text_of(line)[-len(message):] for line in lines_of_call(seen, facts, facts.verdicts[0])}


def test_the_end_of_the_loop_is_the_end_of_the_answer(tmp_path):
    for mark in (system("turn_duration"), system("stop_hook_summary"),
                 system("informational", content="\x1b[1mStop\x1b[22m [uv run ruff check] completed successfully: ok"),
                 {"type": "system", "content": "SubagentStop [x] completed successfully"},
                 {"type": "progress", "data": {"type": "hook_progress", "hookEvent": "Stop"}},
                 {"type": "attachment", "attachment": {"hookEvent": "SubagentStop"}}):
        seen = show(claude(prompt("hi"), block(text("Hello.")), mark), tmp_path)
        assert (stops(seen), rules(seen)) == (["end_turn"], inference("turn_ended")), mark
        assert words(seen) == ["END INFERRED"]


def test_a_new_message_after_a_text_infers_an_end_and_no_green_tick(tmp_path):
    seen = show(claude(prompt("hi"), block(text("Hello.")), prompt("and now the next thing"),
                        block(text("Yes."), "msg_02", "end_turn")), tmp_path)
    assert (stops(seen)[0], rules(seen)) == ("end_turn", inference("user_went_on"))
    assert words(seen) == ["END INFERRED", "COMPLETE"]
    first = seen.turns[0].verdict
    assert (first.glyph, first.sure, first.clean, first.complete) == ("≈", False, True, False)
    assert "line 3: the user went on with a new message" in first.sentence


@pytest.mark.parametrize("follows", [(), (prompt("continue"),), (prompt("Continue.", isMeta=True),)])
def test_where_nothing_shows_the_end_it_stays_unknown(tmp_path, follows):
    seen = show(claude(prompt("hi"), block(text("Hello.")), *follows), tmp_path)
    assert (stops(seen), rules(seen)) == (["unknown"], ["transcript.absent"])
    assert seen.responses[0].judgement.stop.detail == "not_recorded"
    assert words(seen) == ["END NOT RECORDED"]
    assert len(messages(seen, "transcript.not_recorded")) == 1


def test_a_word_that_says_cut_is_not_taken_back_by_a_later_row(tmp_path):
    rows = (prompt("go"), block(text("I will."), stop="max_tokens"), block(use(**WHOLE), stop="tool_use"))
    seen = show(claude(*rows), tmp_path)
    assert stops(seen) == ["max_tokens"]
    assert [verdict.admission for verdict in seen.responses[0].verdicts] == ["held"]
    filtered = (prompt("go"), block(text("I will."), stop="sensitive"), block(use(**WHOLE), stop="tool_use"))
    assert stops(show(claude(*filtered), tmp_path)) == ["safety_blocked"]
    paused = (prompt("go"), block(text("I will."), stop="pause_turn"), block(use(**WHOLE), stop="tool_use"))
    assert stops(show(claude(*paused), tmp_path)) == ["tool_call"]


def test_a_call_under_a_stop_sequence_is_held(tmp_path):
    """It arrives as a parsed object, in which nothing shows that a stop sequence ended it in the middle."""
    seen = show(claude(prompt("go"), block(use(**WHOLE), stop="stop_sequence")), tmp_path)
    assert [verdict.admission for verdict in seen.responses[0].verdicts] == ["held"]
    assert stops(show(claude(prompt("go"), block(text("Hi."), stop="stop_sequence")), tmp_path)) == ["end_turn"]


def test_the_agents_own_row_tells_of_the_output_cap(tmp_path):
    seen = show(claude(prompt("write"), block(text("I will write it")), failure(), prompt(RESUME, isMeta=True),
                        block(text(" now."), "msg_02", "end_turn")), tmp_path)
    assert (stops(seen), rules(seen)) == (["max_tokens", "end_turn"], inference("error_row"))
    facts = seen.responses[0]
    assert facts.exchange.request.max_tokens == 32_000
    assert facts.exchange.lines == (2, 3)
    at = facts.judgement.stop.evidence[1].at
    assert CAP.encode()[:60] in facts.exchange.body[at.start : at.end]
    assert b"I will write it" not in facts.exchange.body[at.start : at.end]
    assert places(seen) == [["request", "continuation"]]
    assert words(seen) == ["CUT, COMPLETED"]
    assert seen.turns[0].joined_text.text == "I will write it now."


def test_a_cap_row_of_which_nothing_is_left_is_an_answer_of_its_own(tmp_path):
    again = prompt(RESUME, isMeta=True)
    seen = show(claude(prompt("write"), failure(), again, failure(), again, failure()), tmp_path)
    assert stops(seen) == ["max_tokens"] * 3
    assert rules(seen) == ["transcript.recorder", "transcript.inferred.error_row"]
    assert places(seen) == [["request", "continuation", "continuation"]]
    assert [facts.exchange.response.parts for facts in seen.responses] == [(), (), ()]
    assert words(seen) == ["TRUNCATED"]


def test_the_cap_row_outranks_a_word_that_says_finished(tmp_path):
    seen = show(claude(prompt("write"), block(text("I will"), stop="end_turn"), failure()), tmp_path)
    assert stops(seen) == ["max_tokens"]
    assert seen.responses[0].exchange.response.raw_stop_reason == "end_turn"
    assert rules(seen)[-1] == "transcript.inferred.error_row"


def test_a_full_context_is_told_by_the_agents_own_row(tmp_path):
    full = failure("API Error: The model has reached its context window limit.")
    seen = show(claude(prompt("write"), block(text("I will")), full), tmp_path)
    assert stops(seen) == ["context_window_exceeded"]
    assert words(seen) == ["CONTEXT FULL"]


def test_a_call_refused_for_a_missing_argument_is_a_bad_call_and_no_cut_one(tmp_path):
    seen = show(claude(prompt("write"), block(use(), tokens=58), result(MISSING, error=True),
                        block(use("toolu_01B", **WHOLE), "msg_02"), result("File created", "toolu_01B"),
                        block(text("Done."), "msg_03", "end_turn")), tmp_path)
    assert (stops(seen)[0], rules(seen)) == ("tool_call", inference("calls_answered"))
    assert places(seen) == [["request", "tool_result", "tool_result"]]
    (verdict,) = seen.responses[0].verdicts
    assert (verdict.admission, verdict.why) == ("rejected", "the agent refused its arguments: it did not run")
    assert [verdict.admission for verdict in seen.responses[1].verdicts] == ["ready"]
    assert words(seen) == ["COMPLETE"]


def test_a_refused_call_with_the_tokens_of_a_cap_was_cut(tmp_path):
    """Two facts of the file, not one: the cap is in the count, and the call lacks an argument."""
    seen = show(claude(prompt("write"), block(use(), tokens=32_000), result(MISSING, error=True),
                        block(use("toolu_01B", **WHOLE), "msg_02"), result("File created", "toolu_01B"),
                        block(text("Done."), "msg_03", "end_turn")), tmp_path)
    assert (stops(seen)[0], rules(seen)) == ("max_tokens", inference("tokens_at_cap"))
    assert places(seen) == [["request", "repair", "tool_result"]]
    (call,) = [part for part in seen.responses[0].exchange.response.parts if type(part) is ToolCall]
    assert (call.arguments, call.closed) == ("{}", False)
    assert messages(seen, "agent.ran_held_call") == []
    assert len(messages(seen, "agent.refused_held_call")) == 1
    assert words(seen) == ["CALL REPAIRED"]


def test_a_refused_call_that_is_not_the_last_was_not_cut(tmp_path):
    seen = show(claude(prompt("write"), block(use("toolu_01A"), uuid="a"), block(use("toolu_01B", **WHOLE), uuid="b"),
                        result(MISSING, "toolu_01A", True, parentUuid="a"), result("ok", "toolu_01B", parentUuid="b")),
                 tmp_path)
    assert (stops(seen), rules(seen)) == (["tool_call"], inference("calls_answered"))


def test_a_cut_call_held_to_the_end_says_that_it_had_no_arguments(tmp_path):
    seen = show(claude(prompt("write"), block(use()), failure()), tmp_path)
    (turn,) = seen.turns
    assert turn.verdict.word == "CALL HELD"
    assert turn.verdict.sentence == (
        "anthropic_messages cut Write before its arguments (no stop reason recorded, max_tokens inferred, cap 32,000)")


@each_row("cap", [4_096, 8_192, 16_384, 32_000, 32_768, 64_000, 65_536, 128_000])
def test_tokens_at_a_default_cap_are_a_cut(tmp_path, cap):
    seen = show(claude(prompt("write"), block(use(**WHOLE), tokens=cap), result("File created")), tmp_path)
    assert (stops(seen), rules(seen)) == (["max_tokens"], inference("tokens_at_cap"))
    (at,) = [each.at for each in seen.responses[0].evidence if each.rule.endswith("tokens_at_cap")]
    assert seen.responses[0].exchange.body[at.start : at.end] == str(cap).encode()
    assert words(seen) == ["CUT CALL RUN"]
    (message,) = messages(seen, "agent.ran_held_call")
    assert "the recording has its result 'File created'" in message


def test_an_end_that_a_row_of_the_agent_states_is_not_called_inferred(tmp_path):
    """The notice counts the answers whose end is inferred, and no others."""
    told = "answers have no stop reason, as Claude Code keeps none for them"
    aborted = failure("API Error: Request was aborted.")
    seen = show(claude(prompt("hi"), aborted), tmp_path)
    assert (stops(seen), rules(seen)) == (["cancelled"], ["transcript.recorder"])
    assert told not in "".join(seen.inputs[0].notices)
    seen = show(claude(prompt("hi"), aborted, prompt("again"), block(text("Well")), prompt("ok")), tmp_path)
    assert f"1 of 2 {told}" in seen.inputs[0].notices[0]


def test_texts_that_stand_in_a_list_without_blocks_are_read(tmp_path):
    """Of a request and of a result alike."""
    seen = show(claude(prompt(["look", "here"]), block(use()), result(["one", text("two")]),
                        block(text("Done."), "msg_02", "end_turn")), tmp_path)
    first, second = (each.exchange.request.messages for each in seen.responses)
    assert [message.text for message in first] == ["look\nhere"]
    assert [part.text for part in second[0].results] == ["one\ntwo"]


@pytest.mark.parametrize(("row", "pointer"), [
    (block(use(output_tokens=32_000), tokens=32_000), "/message/usage/output_tokens"),
    ({"type": "stream_event", "event": {"type": "message_delta", "delta": {"output_tokens": 32_000},
                                        "usage": {"output_tokens": 32_000}}}, "/event/usage/output_tokens"),
])
def test_the_evidence_of_a_cap_is_the_count_and_no_other_number_of_that_name(tmp_path, row, pointer):
    seen = show(claude(prompt("write"), block(text("Well")), row), tmp_path)
    assert rules(seen) == inference("tokens_at_cap")
    (at,) = [each.at for each in seen.responses[-1].evidence if each.rule.endswith("tokens_at_cap")]
    body = seen.responses[-1].exchange.body
    assert (body[at.start : at.end], at.pointer) == (b"32000", pointer)
    assert b"32000" in body[: at.start]
    assert b"32000" not in body[at.end :]


def test_tokens_at_a_cap_that_the_file_states_are_a_cut(tmp_path):
    stated = failure(CAP.replace("32000", "5000"))
    rows = [prompt("write"), stated, prompt("again"), block(use(**WHOLE), tokens=5_000), result("File created")]
    assert stops(show(claude(*rows), tmp_path)) == ["max_tokens", "max_tokens"]
    assert stops(show(claude(*rows[2:]), tmp_path)) == ["tool_call"]


def test_an_interrupted_answer_was_cancelled(tmp_path):
    stopped = prompt([text("[Request interrupted by user]")])
    seen = show(claude(prompt("hi"), block(text("Well")), stopped, prompt("never mind"),
                        block(text("Fine."), "msg_02", "end_turn")), tmp_path)
    assert (stops(seen)[0], rules(seen)) == ("cancelled", inference("interrupted"))
    assert words(seen) == ["CANCELLED", "COMPLETE"]
    assert seen.turns[1].run.record.user_text == "never mind"


def test_an_interruption_of_the_next_request_says_nothing_of_the_answer_before(tmp_path):
    stopped = prompt([text("[Request interrupted by user]")])
    seen = show(claude(prompt("hi"), block(text("Hello.")), prompt("next"), stopped), tmp_path)
    assert (stops(seen), rules(seen)) == (["end_turn"], inference("user_went_on"))


def test_a_tool_that_was_refused_by_the_user_does_not_cut_the_answer(tmp_path):
    refused = result("The user doesn't want to proceed with this tool use.", error=True)
    at_tool = prompt([text("[Request interrupted by user for tool use]")])
    seen = show(claude(prompt("hi"), block(use(**WHOLE)), refused, at_tool), tmp_path)
    assert stops(seen) == ["tool_call"]


CUT_OFF = "Your response was cut off because it exceeded the output token limit. Continue from where you left off."


@pytest.mark.parametrize("said_", [RESUME, CUT_OFF])
def test_what_the_agent_itself_tells_the_model_of_the_output_limit_shows_a_cut(tmp_path, said_):
    seen = show(claude(prompt("tell"), block(text("Once upon")), prompt(said_, isMeta=True),
                        block(text(" a time."), "msg_02", "end_turn")), tmp_path)
    assert (stops(seen)[0], rules(seen)) == ("max_tokens", inference("resumed"))
    assert places(seen) == [["request", "continuation"]]


@each_row("said_", [
    RESUME, CUT_OFF, "your last message was too long, the incomplete parts are fine", "the function looks incomplete",
    "Your answer was truncated. Send the call again.", "continue where you stopped", "continue",
    "do not repeat what is already in the readme", "please issue a json report",
])
def test_no_sentence_of_the_user_is_evidence_of_a_cut(tmp_path, said_):
    seen = show(claude(prompt("tell"), block(text("Once upon a time.")), prompt(said_),
                        block(text("Yes."), "msg_02", "end_turn")), tmp_path)
    assert stops(seen)[0] in ("end_turn", "unknown")
    assert [turn.run.record.user_text for turn in seen.turns][-1] == said_


@each_row("said_", [
    "your last message was too long, the incomplete parts are fine", "go on from where you are to the next file",
    "do not repeat what is already in the readme", "Please split the file into smaller parts and write them",
    "also send the flags and arguments", "the function looks incomplete",
])
def test_an_ordinary_sentence_after_a_text_is_the_next_message(tmp_path, said_):
    seen = show(claude(prompt("tell"), block(text("Once upon a time.")), prompt(said_),
                        block(text("Yes."), "msg_02", "end_turn")), tmp_path)
    assert (stops(seen), rules(seen)) == (["end_turn", "end_turn"], inference("user_went_on"))
    assert words(seen) == ["END INFERRED", "COMPLETE"]


@each_row("row", [
    block(text("The end."), tokens=32_000), block(text("The end,"), tokens=64_000), block(text("The end."), tokens=9),
])
@each_row("follows", [
    (), (prompt(RESUME, isMeta=True),), (prompt(CUT_OFF),), (failure(),),
    (prompt([text("[Request interrupted by user]")]),),
])
def test_a_recorded_end_of_the_turn_outranks_every_inference(tmp_path, row, follows):
    seen = show(claude(prompt("tell"), row, system("turn_duration"), *follows), tmp_path)
    assert (stops(seen)[0], rules(seen)) == ("end_turn", inference("turn_ended"))


CUT_WORDS = st.sampled_from([
    "truncated", "cut off", "incomplete", "max_tokens", "the output limit was hit", "continue", "where you stopped",
    "exceeded the 32000 output token maximum", "resend the call", "InputValidationError", "API Error:", "\n", " ",
])


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(words_=st.lists(CUT_WORDS | st.text(max_size=12), max_size=6), ends=st.booleans())
def test_whatever_the_user_says_no_answer_before_it_was_cut(tmp_path, words_, ends):
    said_ = " ".join(words_)
    rows = [prompt("tell"), block(text("Once upon a time.")), *([system("turn_duration")] if ends else [])]
    seen = show(claude(*rows, prompt(said_), block(text("Yes."), "msg_02", "end_turn")), tmp_path)
    assert stops(seen)[0] in (("end_turn",) if ends else ("end_turn", "unknown"))
    assert words(seen)[0] in ("END INFERRED", "END NOT RECORDED")


def test_a_call_that_ends_in_the_middle_of_its_json_was_cut(tmp_path):
    row = block(use(**WHOLE))
    row["message"]["content"][0]["input"] = '{"file_path": "/home/a.md", "content": "one tw'
    seen = show(claude(prompt("write"), row, result("File created")), tmp_path)
    assert (stops(seen), rules(seen)) == (["max_tokens"], inference("call_cut"))
    assert words(seen) == ["CUT CALL RUN"]


def test_an_unknown_word_of_the_provider_stays_unknown(tmp_path):
    seen = show(claude(prompt("hi"), block(text("Hello."), stop="dreamt")), tmp_path)
    assert (stops(seen), rules(seen)) == (["unknown"], ["transcript.provider", "unknown_word"])
    assert words(seen) == ["UNKNOWN REASON"]


# -- failures ----------------------------------------------------------------------------------------------------------

OVERLOADED = 'API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'


@each_row(
    ("row", "stop", "detail", "status"),
    [
        (failure(OVERLOADED), "error", "retryable", 529),
        (failure("API Error: Request timed out.", error="server_error"), "error", "retryable", None),
        (failure("API Error (400 bad request)"), "error", "fatal", 400),
        (failure("You've hit your session limit", error="rate_limit", apiErrorStatus=429), "error", "retryable", 429),
        (failure("Prompt is too long"), "context_window_exceeded", "input", None),
        (failure("API Error: Connection error.", isApiErrorMessage=None), "error", "retryable", None),
        (failure("API Error: terminated"), "error", "retryable", None),
        (failure("API Error: Overloaded", error="unknown"), "error", "retryable", None),
        (failure("API Error: Internal server error", error="unknown"), "error", "retryable", None),
        (failure("API Error: The server had an error while processing your request"), "error", "retryable", None),
        (failure("API Error: no such server, and an error of its own", error="unknown"), "error", "fatal", None),
    ],
)
def test_a_failure_is_an_answer_that_failed(tmp_path, row, stop, detail, status):
    seen = show(claude(prompt("hi"), row), tmp_path)
    (facts,) = seen.responses
    assert (facts.judgement.stop.normalized, facts.judgement.stop.detail) == (stop, detail)
    assert facts.exchange.response.http_status == status
    assert facts.exchange.response.raw_stop_reason is None
    assert rules(seen)[0] == "transcript.recorder"
    assert words(seen) == ["CONTEXT FULL" if stop != "error" else "ERROR"]


def test_a_request_that_failed_and_was_sent_again_is_a_retry(tmp_path):
    seen = show(claude(prompt("hi", uuid="p"), failure(OVERLOADED), block(text("Hello."), stop="end_turn")), tmp_path)
    assert places(seen) == [["request", "retry"]]
    assert words(seen) == ["RETRIED"]


def test_a_cut_answer_that_was_asked_for_again_at_once_is_a_retry(tmp_path):
    # Claude Code raises its own cap once and sends the same request again.
    seen = show(claude(prompt("hi", uuid="p"), block(text("Hel"), stop="max_tokens"),
                        block(text("Hello."), "msg_02", "end_turn", parentUuid="p")), tmp_path)
    assert places(seen) == [["request", "retry"]]
    assert words(seen) == ["RETRIED"]


def test_what_the_user_says_after_a_failure_is_a_turn_of_its_own(tmp_path):
    seen = show(claude(prompt("hi"), failure(OVERLOADED), prompt("continue"), block(text("Hello."), stop="end_turn")),
                 tmp_path)
    assert words(seen) == ["ERROR", "COMPLETE"]


def test_retries_that_the_agent_counted_are_told(tmp_path):
    error = {"status": 529, "error": {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}}
    seen = show(claude(prompt("hi"), system("api_error", error=error, retryAttempt=2),
                        block(text("Hello."), stop="end_turn")), tmp_path)
    assert [skip.why for skip in seen.inputs[0].skipped] == [
        "a failed request that Claude Code sent again: 529 overloaded_error Overloaded (attempt 2)"]


# -- usage -------------------------------------------------------------------------------------------------------------


def test_a_count_from_before_the_answer_was_whole_is_left_out(tmp_path):
    # 120 characters in 2 tokens cannot be; 16 can.
    for tokens, kept in ((2, None), (16, 16)):
        seen = show(claude(prompt("hi"), block(text("x" * 120), tokens=tokens), system("turn_duration")), tmp_path)
        assert seen.responses[0].exchange.response.usage.output_tokens == kept
        assert bool(messages(seen, "transcript.early_usage")) == (kept is None)


def test_a_count_beside_a_word_is_believed(tmp_path):
    seen = show(claude(prompt("hi"), block(text("x" * 120), stop="end_turn", tokens=2)), tmp_path)
    assert seen.responses[0].exchange.response.usage.output_tokens == 2


# -- limits and what-if ------------------------------------------------------------------------------------------------


def cut_three_times() -> str:
    rows = [prompt("write it all")]
    for number in range(4):
        rows += [block(text(f"part {number} "), f"msg_{number}", "max_tokens" if number < 3 else "end_turn", 32)]
        rows += [prompt(RESUME, isMeta=True)] * (number < 3)
    return claude(*rows)


def test_without_a_cap_no_bound_on_tokens_follows_until_one_is_set(tmp_path):
    seen = show(cut_three_times(), tmp_path)
    assert seen.responses[0].exchange.request.max_tokens is None
    assert seen.turns[0].final_state.value == "Complete"
    # Reached after two answers of 32.
    bounded = show(cut_three_times(), tmp_path, Settings(Limits(continuation_max_total_completion_tokens=64)))
    assert (bounded.turns[0].final_state.value, bounded.turns[0].terminal) == ("AbortPartial", "budget_exhausted")
    assert bounded.turns[0].joined_text.text == "part 0 part 1 "


def test_fewer_attempts_end_earlier_over_the_recorded_text(tmp_path):
    seen = show(cut_three_times(), tmp_path, Settings(Limits(continuation_max_attempts=1)))
    assert (seen.turns[0].terminal, seen.turns[0].joined_text.text) == ("retry_limit", "part 0 part 1 ")
    assert {step.fidelity.value for step in seen.steps} == {"RECORDED"}


# -- files -------------------------------------------------------------------------------------------------------------


def test_a_cut_last_line_is_told_and_the_rest_read(tmp_path):
    content = claude(prompt("hi"), block(text("Hello."), stop="end_turn"), prompt("more")).encode()
    cut = content[:-20]
    last = len(cut.rpartition(b"\n")[2])
    seen = show(cut, tmp_path)
    assert len(seen.responses) == 1
    assert f"line 3, the last, is cut after {last:,} bytes; the part before it was read" in notices(seen)


def test_broken_lines_are_told_and_the_rest_read(tmp_path):
    content = claude(prompt("hi"), block(text("Hello."), stop="end_turn"))
    lines = content.splitlines(keepends=True)
    seen = show(lines[0] + "{broken\n" * 7 + "[1]\n42\n" + lines[1], tmp_path)
    assert seen.responses[0].exchange.response.text == "Hello."
    assert "line 2 is not JSON" in notices(seen)
    assert "2 more damaged lines were skipped" in notices(seen)
    assert "lines that are not JSON objects were skipped: 2" in notices(seen)


def test_invalid_utf8_is_told_and_shown(tmp_path):
    content = claude(prompt("hi"), block(text("Hello."), stop="end_turn")).encode().replace(b"Hello.", b"Hel\xfflo.")
    seen = show(content, tmp_path)
    assert seen.responses[0].exchange.response.text == "Hel\ufffdlo."
    assert "line 2 holds invalid UTF-8" in notices(seen)


def test_a_line_longer_than_what_is_sniffed_is_read(tmp_path):
    seen = show(claude(prompt("x" * 200_000), block(text("y" * 200_000), stop="end_turn")), tmp_path)
    assert len(seen.responses[0].exchange.response.text) == 200_000


def test_a_row_whose_parent_is_lost_follows_the_row_before(tmp_path):
    """A damaged line must not hide that the agent ran a cut call."""
    rows = claude(prompt("go"), block(use(**WHOLE), stop="max_tokens", tokens=64), {"type": "attachment"},
                  result("wrote it"), block(text("Done."), "msg_02", stop="end_turn")).splitlines(keepends=True)
    assert words(show("".join(rows), tmp_path)) == ["CUT CALL RUN"]
    rows[2] = rows[2][:40] + "\n"
    seen = show("".join(rows), tmp_path)
    assert (words(seen), places(seen)) == (["CUT CALL RUN"], [["request", "tool_result"]])
    assert "rows that name a parent that is not in the file before them, so their place is a guess: 1" \
        in notices(seen)


def test_a_row_whose_parent_is_lost_follows_no_row_of_a_subagent(tmp_path):
    aside = {"isSidechain": True, "agentId": "a1"}
    seen = show(claude(prompt("go"), block(use(**WHOLE), stop="tool_use", uuid="call"),
                        prompt("count", parentUuid=None, **aside), block(text("Two."), "msg_09", "end_turn", **aside),
                        result("wrote it", parentUuid="lost"), block(text("Done."), "msg_02", "end_turn")), tmp_path)
    assert sorted(places(seen)) == [["request"], ["request", "tool_result"]]


@pytest.mark.parametrize(("content", "stop", "turns"), [
    (use(**WHOLE), "tool_use", [["request", "tool_result"]]), (text("Done."), "end_turn", [["request"], ["request"]])])
def test_an_answer_whose_parent_is_lost_follows_a_call_alone(tmp_path, content, stop, turns):
    """The row between two answers is the result of a call, or else a message of the user."""
    seen = show(claude(prompt("go"), block(content, stop=stop),
                        block(text("More."), "msg_02", stop="end_turn", parentUuid="lost")), tmp_path)
    assert places(seen) == turns


def test_rows_that_name_themselves_or_each_other_end_nowhere(tmp_path):
    seen = show(claude(prompt("hi", uuid="a", parentUuid="b"), block(text("x"), uuid="b", parentUuid="a"),
                        block(text("y"), "msg_02", uuid="c", parentUuid="c")), tmp_path)
    assert len(seen.responses) == 2
    assert "rows that name a parent that is not in the file before them, so their place is a guess: 2" \
        in notices(seen)


def test_rows_of_another_shape_are_counted(tmp_path):
    odd = [prompt(None), {"type": "user", "message": "x"}, {"type": "assistant", "message": []},
           block(text("x"), stop="end_turn")]
    odd[3]["message"]["content"] = [text("x"), "odd"]
    seen = show(claude(*odd), tmp_path)
    assert "rows that are of an unexpected shape: 3" in notices(seen)
    assert "rows that hold a block that is not an object: 1" in notices(seen)


def test_keys_are_masked_in_texts_and_bytes(tmp_path):
    key = "sk-ant-" + "a1B2" * 10
    seen = show(claude(prompt(f"use {key}"), block(text(f"used {key}"), stop="end_turn")), tmp_path)
    exchange = seen.responses[0].exchange
    assert key not in exchange.response.text
    assert key.encode() not in exchange.body
    assert key not in seen.turns[0].run.record.user_text


def test_another_api_is_refused_and_its_own_accepted(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text(claude(prompt("hi"), block(text("Hello."), stop="end_turn")))
    assert open_paths([str(path)], api="anthropic_messages").inputs[0].error is None
    (given,) = open_paths([str(path)], api="openai_chat").inputs
    assert given.error.endswith("its answers are anthropic_messages, not openai_chat: "
                                "expected `--api anthropic_messages`, or none")
    (exchange,) = open_paths([str(path)]).exchanges
    assert exchange.profile_evidence[0].rule == "transcript.claude_code"


def test_a_file_that_begins_with_records_of_another_kind_is_known(tmp_path):
    state = '{"type": "mode", "mode": "normal", "sessionId": "s-1"}\n' * 12
    seen = show(state + claude(prompt("hi"), block(text("Hello."), stop="end_turn")), tmp_path)
    assert seen.inputs[0].format == "claude-code"
    assert len(seen.responses) == 1


def test_a_thought_that_is_written_twice_is_one_and_its_signature_is_dropped(tmp_path):
    thoughts = [{"type": "thinking", "thinking": "Hm.", "signature": sign * 600} for sign in "aab"]
    hidden = {"type": "redacted_thinking", "data": "x" * 600}
    path = tmp_path / "s.jsonl"
    path.write_text(claude(prompt("go"), *[block(each) for each in (*thoughts, hidden)], block(text("Done."))), "utf-8")
    parts = open_paths([str(path)]).exchanges[0].response.parts
    assert parts == (ReasoningPart("Hm."), ReasoningPart("Hm."), ReasoningPart("", data="x" * 600), TextPart("Done."))


def test_the_id_of_a_result_is_the_text_that_its_call_has(tmp_path):
    seen = show(claude(prompt("write"), block(use(**WHOLE)), result("ok"), block(text("Done."), "msg_02")), tmp_path)
    first, second = (facts.exchange for facts in seen.responses)
    assert second.request.messages[0].results[0].call_id is first.response.tool_calls[0].id


@each_row(("row", "count"), [
    (failure("API Error: Overloaded", requestId="req_msg_01", error="unknown"), 1),
    (failure("API Error: Connection closed mid-response. The response above may be incomplete."), 1),
    (failure("API Error: Response stalled while thinking, before producing a response. Try again."), 1),
    (failure("API Error: Overloaded", requestId="req_other", error="unknown"), 2),
    (failure("API Error: Overloaded", error="unknown"), 2),
])
def test_a_failure_behind_the_beginning_of_its_answer_is_that_answer(tmp_path, row, count):
    # Claude Code 2.1.197 writes `end_turn` into such rows, which no provider sent
    seen = show(claude(prompt("go"), block(text("I will"), stop="end_turn"), row), tmp_path)
    assert len(seen.responses) == count
    last = seen.responses[-1].exchange.response
    assert (last.stop_reason.normalized, last.raw_stop_reason, last.text) == (
        "error", None, "I will" if count == 1 else None)
    assert words(seen) == ["ERROR"]


@each_row("lost", [
    failure("API Error: Connection lost mid-response. The response above may be incomplete."),
    failure("API Error: Overloaded", requestId="req_msg_01"),
])
def test_a_call_that_ran_while_its_answer_arrived_is_a_call_of_the_answer_that_broke(tmp_path, lost):
    # Claude Code 2.1.332 writes the result first, and `tool_use` into the rows, which no provider sent
    begun = prompt("write"), block(use(**WHOLE), stop="tool_use", tokens=1), result("written")
    done = block(text("Done."), "msg_02", "end_turn", 2)
    seen = show(claude(*begun, lost, done), tmp_path)
    assert (stops(seen), words(seen), places(seen)) == (["error", "end_turn"], ["ERROR"], [["request", "tool_result"]])
    (note,) = messages(seen, "agent.ran_unsure_call")
    assert "the recorded agent ran Write" in note
    assert seen.responses[0].exchange.response.raw_stop_reason is None
    typed = show(claude(*begun, prompt("And now?"), lost), tmp_path)
    assert stops(typed) == ["tool_call", "error"], "a message of the user ends the answer above"


def test_a_refused_answer_keeps_the_word_of_its_provider(tmp_path):
    seen = show(claude(prompt("go"), block(text("I will"), stop="refusal"), failure(FLAGGED, requestId="req_msg_01")),
                 tmp_path)
    (facts,) = seen.responses
    assert (facts.exchange.response.raw_stop_reason, stops(seen)) == ("refusal", ["safety_blocked"])
    assert words(seen) == ["BLOCKED"]


def test_a_stop_word_for_calls_without_a_call_is_a_malformed_call_that_is_asked_for_again(tmp_path):
    retry = "Your tool call was malformed and could not be parsed. Please retry."
    begun = (prompt("go"), block(text("I write."), stop="tool_use"))
    rows = (block(use(**WHOLE), "msg_02", stop="tool_use"), result("ok"),
            block(text("Done."), "msg_03", stop="end_turn"))
    seen = show(claude(*begun, prompt(retry, isMeta=True), *rows), tmp_path)
    assert stops(seen) == ["malformed_tool_call", "tool_call", "end_turn"]
    assert seen.responses[0].exchange.response.raw_stop_reason == "tool_use"
    assert places(seen) == [["request", "repair", "tool_result"]]
    assert words(seen) == ["CALL REPAIRED"]
    assert seen.responses[1].exchange.request.messages[0].text == retry, "it was sent"
    at = seen.responses[0].judgement.stop.evidence[-1].at
    assert b"was malformed" in seen.responses[0].exchange.body[at.start : at.end]
    # what `claude -p` prints calls such a row by another name
    printed = show(claude(*begun, prompt(retry, isSynthetic=True), *rows), tmp_path)
    assert (places(printed), words(printed)) == (places(seen), words(seen))
    typed = show(claude(*begun, prompt(retry), *rows), tmp_path)
    assert len(typed.turns) == 2, "what the user typed is no row of the agent"


def test_an_answer_without_a_text_is_asked_for_again_in_its_turn(tmp_path):
    again = "[Your previous response had no visible output. Please continue and produce a user-visible response.]"
    thought = block({"type": "thinking", "thinking": "Hm.", "signature": ""}, stop="end_turn")
    done = block(text("Done."), "msg_02", stop="end_turn")
    seen = show(claude(prompt("go"), thought, prompt(again, isMeta=True), done), tmp_path)
    assert (places(seen), words(seen)) == ([["request", "retry"]], ["RETRIED"])
    note = prompt("A note.", isMeta=True)
    noted = show(claude(prompt("go"), thought, note, prompt(again, isMeta=True), done), tmp_path)
    assert places(noted) == [["request", "retry"]]
    unmarked = show(claude(prompt("go"), thought, prompt(again), done), tmp_path)
    assert places(unmarked) == [["request", "nudge"]], "the words are Claude Code's own, also without the mark"
    # an answer of which nothing came has no row: the turn ended with one, and not with the results before it
    silent = claude(prompt("go"), block(CALL, stop="tool_use"), result_row(), prompt(again, isMeta=True))
    assert (words(show(silent, tmp_path)), stops(show(silent, tmp_path))) == (
        ["END NOT RECORDED"], ["tool_call", "unknown"])
    assert places(show(claude(prompt("go"), prompt(again, isMeta=True), done), tmp_path)) == [["request", "retry"]]


def test_a_failed_run_that_was_printed_tells_no_word_of_its_last_answer(tmp_path):
    error = "API Error: Overloaded"
    begun, row = reply_row([text("I will")]), failure(error, request_id="req_1")
    begun["request_id"] = "req_1"
    row.pop("requestId", None)
    seen = show(stream(begun, row, run_result(is_error=True, result=error, stop_reason="stop_sequence")), tmp_path)
    (facts,) = seen.responses
    assert (facts.exchange.response.raw_stop_reason, stops(seen), words(seen)) == (None, ["error"], ["ERROR"])
    full = failure("API Error: The model has reached its context window limit.")
    ended = run_result(is_error=True, stop_reason="stop_sequence")
    seen = show(stream(reply_row([text("I will")]), full, ended), tmp_path)
    (facts,) = seen.responses
    assert (facts.exchange.response.raw_stop_reason, words(seen)) == (None, ["CONTEXT FULL"])


FLAGGED = "API Error: The model's safeguards flagged this message (https://www.anthropic.com/legal/aup)."


@pytest.mark.parametrize(("request_id", "shown_answers"), [("req_msg_01", ["safety_blocked"]),
                                                            ("req_other", ["unknown", "safety_blocked"])])
def test_a_refusal_behind_the_beginning_of_its_answer_is_one_answer(tmp_path, request_id, shown_answers):
    seen = show(claude(
        prompt("go"), block(text("I will")), system("model_refusal_no_fallback", requestId=request_id),
        failure(FLAGGED, requestId=request_id, error="invalid_request")), tmp_path)
    assert stops(seen) == shown_answers
    last = seen.responses[-1].exchange.response
    assert (last.stop_reason.detail, rules(seen, len(shown_answers) - 1)[0]) == ("refusal", "transcript.recorder")


@pytest.mark.parametrize("name", ["retractedMessageUuids", "retracted_message_uuids"])
def test_rows_that_were_withdrawn_after_a_refusal_are_a_refused_answer(tmp_path, name):
    seen = show(claude(
        prompt("go"), block(text("I will"), uuid="a1"),
        system("model_refusal_fallback", fallbackModel="m-2", **{name: ["a1", "lost", 7]}),
        block(text("Done."), "msg_02", stop="end_turn")), tmp_path)
    assert stops(seen) == ["safety_blocked", "end_turn"]
    at = seen.responses[0].exchange.response.stop_reason.evidence[0].at
    assert b"model_refusal_fallback" in seen.responses[0].exchange.body[at.start : at.end]
    verdict = seen.turns[0].verdict
    assert (verdict.word, "asked again after a refusal" in verdict.sentence) == ("RETRIED", True)


def test_a_refused_answer_that_no_other_model_answered_blocks_the_turn(tmp_path):
    withdrawn = (block(text("I will"), uuid="a1"), system("model_refusal_fallback", retractedMessageUuids=["a1"]))
    last = show(claude(prompt("go"), *withdrawn), tmp_path)
    followed = show(claude(prompt("go"), *withdrawn, prompt("Then say why."), block(text("Ok."), "msg_02",
                                                                                     stop="end_turn")), tmp_path)
    assert [words(last), words(followed)] == [["BLOCKED"], ["BLOCKED", "COMPLETE"]]


@pytest.mark.parametrize("more", [{}, {"retractedMessageUuids": "a1"}, {"retractedMessageUuids": ["u1"]}])
def test_a_refusal_that_withdrew_no_answer_leaves_the_answer_as_it_is(tmp_path, more):
    # the provider itself asked another model: the rows of the request are that model's answer
    seen = show(claude(
        prompt("go"), block({"type": "fallback", "from": {"model": "m-1"}, "to": {"model": "m-2"}}, uuid="a1"),
        block(text("Done."), stop="end_turn"), system("model_refusal_fallback", requestId="req_msg_01", **more)),
        tmp_path)
    assert (stops(seen), seen.turns[0].verdict.word) == (["end_turn"], "COMPLETE")


# -- iFlow, whose rows are Claude Code's -------------------------------------------------------------------------------


def iflow(*rows: dict) -> str:
    """The file: every answer names the user's message, its first row, as its parent."""
    return claude(*({"sessionId": "session-1", **({"parentUuid": "u1"} if row["type"] == "assistant" else {}), **row}
                    for row in rows))


def answer(key: str, *content: dict) -> dict:
    row = block({}, f"response-{key}")
    row["message"]["content"] = list(content)
    return row


FIRST, SECOND = use("call_1", "Read", path="a.md"), use("call_2", "Read", path="b.md")


def calls_of(seen, number: int) -> list[tuple[str | None, str]]:
    return [(each.call.id, each.admission.value) for each in seen.responses[number].verdicts]


def test_parallel_calls_that_iflow_repeats_row_by_row_are_one_answer(tmp_path):
    seen = show(iflow(
        prompt("go"), answer("1", text("Look."), FIRST), answer("2", FIRST, SECOND), answer("3", SECOND),
        result("a", "call_1"), result("b", "call_2"), answer("4", SECOND, text("Now."), use("call_3", "Read")),
        result("c", "call_3"), answer("5", text("Done."))), tmp_path)
    assert [facts.exchange.lines for facts in seen.responses] == [(2, 3, 4), (7,), (9,)]
    assert calls_of(seen, 0) == [("call_1", "ready"), ("call_2", "ready")]
    assert calls_of(seen, 1) == [("call_3", "ready")]  # the call before it was answered already
    assert "rows that repeat a call of the answer before them, which has its result: 1" in notices(seen)
    last = seen.responses[1].exchange.request.messages
    assert [part.call_id for message in last for part in message.results] == ["call_1", "call_2"]
    assert len(seen.turns) == 1


def test_a_row_of_iflow_that_only_repeats_an_answered_call_is_no_answer(tmp_path):
    seen = show(iflow(prompt("go"), answer("1", FIRST), result("a", "call_1"), answer("2", FIRST),
                       answer("3", text("Done."))), tmp_path)
    assert [facts.exchange.lines for facts in seen.responses] == [(2,), (5,)]


def test_a_call_that_iflow_repeats_with_other_arguments_is_held_in_both_rows(tmp_path):
    other = use("call_1", "Read", path="other.md")
    seen = show(iflow(prompt("go"), answer("1", FIRST), answer("2", other, SECOND), result("b", "call_2")), tmp_path)
    assert calls_of(seen, 0) == [("call_1", "held")]
    assert calls_of(seen, 1)[0] == ("call_1", "held")


def test_a_repeated_call_without_a_result_is_not_released(tmp_path):
    seen = show(iflow(prompt("go"), answer("1", FIRST), answer("2", FIRST, SECOND), result("a", "call_1")), tmp_path)
    assert calls_of(seen, 0)[1] == ("call_2", "held")


def test_another_writer_may_use_the_id_of_a_call_again_after_its_result(tmp_path):
    seen = show(claude(prompt("go"), block(FIRST), result("a", "call_1"), block(FIRST, "msg_02"),
                        result("a", "call_1")), tmp_path)
    assert [calls_of(seen, 0), calls_of(seen, 1)] == [[("call_1", "ready")], [("call_1", "ready")]]


# -- what 2.1.197 stores of a call that was no JSON -------------------------------------------------------------------

UNREAD = ("<tool_use_error>InputValidationError: Write was called with input that could not be parsed as JSON.\n"
          "You sent (first 21 of 21 bytes): {\"file_path\": \"/home/a</tool_use_error>")


def unparsed(raw, length=None):
    return use(__unparsedToolInput={"raw": raw, "len": len(raw) if length is None else length})


@each_row(("raw", "word", "stop"), [
    ('{"file_path": "/home/a', None, "max_tokens"), ('{"file_path": "/home/a', "tool_use", "max_tokens"),
    ('{"file_path": "/home/\U0001f600', "max_tokens", "max_tokens"),
    ("{file_path: a}", "tool_use", "malformed_tool_call"),
])
def test_a_call_that_was_no_json_has_the_models_own_text(tmp_path, raw, word, stop):
    length = len(raw.encode("utf-16-le")) // 2  # JavaScript counts UTF-16
    seen = show(claude(prompt("write"), block(unparsed(raw, length), stop=word), result(UNREAD, error=True),
                       block(use("toolu_02", **WHOLE), "msg_02", "tool_use"), result("ok", "toolu_02"),
                       block(text("Done."), "msg_03", "end_turn")), tmp_path)
    assert seen.responses[0].exchange.response.tool_calls[0].arguments == raw
    assert (stops(seen), words(seen)) == ([stop, "tool_call", "end_turn"], ["CALL REPAIRED"])
    assert [verdict.admission.value for verdict in seen.responses[0].verdicts] != ["ready"]


@pytest.mark.parametrize("given", [
    unparsed('{"a": "b', 4000), unparsed(7, 1), {**use(), "input": {"__unparsedToolInput": None}},
])
def test_of_a_long_call_that_was_no_json_nothing_is_known(tmp_path, given):
    seen = show(claude(prompt("write"), block(given, stop="tool_use")), tmp_path)
    assert seen.responses[0].exchange.response.tool_calls[0].arguments is None
    assert [verdict.admission.value for verdict in seen.responses[0].verdicts] == ["held"]


def test_a_tool_may_have_such_a_parameter_beside_others(tmp_path):
    seen = show(claude(prompt("write"), block(use(__unparsedToolInput="x", path="a"), stop="tool_use")), tmp_path)
    assert json.loads(seen.responses[0].exchange.response.tool_calls[0].arguments)["path"] == "a"


# -- an answer that goes on in the stream, which has neither a stop word of each answer nor the request between -------


def test_an_answer_that_goes_on_after_an_unknown_end_is_not_complete(tmp_path):
    rows = [INIT, reply_row(text("Half of")), reply_row(text(" it."), "msg_02")]
    seen = show(stream(*rows, run_result(stop_reason="end_turn")), tmp_path)
    assert (stops(seen), words(seen)) == (["unknown", "end_turn"], ["END NOT RECORDED"])
    assert places(seen) == [["request", "continuation"]]
    inferred = show(stream(*rows, run_result()), tmp_path)
    assert words(inferred) == ["END INFERRED"], "which does not count as complete either"
