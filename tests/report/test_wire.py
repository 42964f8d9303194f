"""The request in Wire: the messages behind the model's last answer are seen without scrolling, whole or with a way."""

from __future__ import annotations

from pathlib import Path

from inspector.report.lines import wire
from inspector.report.lines.diff import MOST_SHOWN
from inspector.report.lines.spans import LineSheet, text_of
from tests.scenes import transcripts
from tests.scenes.recordings import TOOLS, WHOLE, assistant, call, chat, pair_of, result, show, user

ASKED = [user("Write it.")]


def wire_lines(sheet: LineSheet) -> list[str]:
    return [" ".join(text_of(sheet.line(index)).split()) for index in range(len(sheet))]


def with_results(*texts: str) -> list[str]:
    """What Wire shows of a request that brings the results of as many calls."""
    calls = [call(WHOLE, f"call_{number}") for number, _ in enumerate(texts)]
    results = [result(each, f"call_{number}") for number, each in enumerate(texts)]
    many = [*([user("before"), assistant("An answer.")] * 30), *ASKED]
    seen = show(pair_of(many, chat(None, "tool_calls", *calls), tools=TOOLS),
                 pair_of([*many, assistant(None, *calls), *results], chat("Done."), tools=TOOLS))
    return wire_lines(wire.wire(seen.responses[1], "request"))


def test_the_result_of_a_call_stands_above_the_body_in_which_it_is_last() -> None:
    lines = with_results("ok, written")
    assert lines[0].startswith("request of response 2 · https://")
    assert lines[3:5] == ["its last messages 1 of 63 messages", "tool result ok, written"]
    assert lines.index("request body") > 5
    assert '"content": "ok, written"' in "\n".join(lines)


def test_all_results_are_shown_up_to_a_number() -> None:
    lines = with_results(*(f"result {number}" for number in range(10)))
    assert lines[3] == "its last messages 10 of 72 messages"
    assert [line for line in lines if line.startswith("tool result")] == [
        f"tool result result {number}" for number in range(2, 10)]


def test_a_long_result_is_cut_and_says_where_it_stands_whole() -> None:
    lines = with_results("x" * MOST_SHOWN + "END")
    at = next(number for number, line in enumerate(lines) if line.startswith("tool result"))
    assert lines[at].endswith("…")
    assert lines[at + 1] == f"{MOST_SHOWN + 3} characters, whole in the body: G goes to its end"
    assert any("END" in line for line in lines[-40:]), "in the body, before the tools"


def test_what_a_transcript_holds_of_a_request_stands_in_full(tmp_path: Path) -> None:
    long = "a line\n" * MOST_SHOWN + "the last line"
    seen = transcripts.show(transcripts.claude(
        transcripts.prompt("Read it."), transcripts.block(transcripts.use(), stop="tool_use"),
        transcripts.result(long), transcripts.block(transcripts.text("Done."), "msg_02", stop="end_turn")), tmp_path)
    lines = wire_lines(wire.wire(seen.responses[1], "request"))
    assert "what the agent's rows hold of it 1 of 1 message" in lines
    assert lines.count("a line") == MOST_SHOWN
    assert "the last line" in lines
    assert "the request body was not recorded" in lines


def test_hostile_words_of_a_result_are_inert() -> None:
    assert not any("\x1b" in line for line in with_results("\x1b[31mred"))
