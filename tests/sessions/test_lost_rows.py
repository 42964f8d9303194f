"""A row that is lost from the middle of a transcript: what the other rows still show of it is told."""

from __future__ import annotations

import json
from pathlib import Path

from tests.scenes.rows import each_row
from tests.scenes.transcripts import Row, pi, pi_call, pi_reply, pi_result, pi_user, show, stops, text, words

LACKING = "calls that have no result, although the session went on: "


def event(kind: str, **more: object) -> Row:
    return {"type": "context.append_loop_event", "event": {"type": kind, **more}}


CALL = event("tool.call", stepUuid="s1", toolCallId="c1", name="Write", args={"path": "a"})
RESULT = event("tool.result", toolCallId="c1", result={"output": "ok"})


def kimi(*rows: Row) -> str:
    """A session of Kimi Code, which writes each call as a row of its own."""
    said = (event("content.part", stepUuid="s1", part={"type": "text", "text": "I write."}),)
    end = event("step.end", uuid="s1", rawFinishReason="tool_calls")
    last = (event("content.part", stepUuid="s2", part={"type": "text", "text": "Done."}),
            event("step.end", uuid="s2", rawFinishReason="stop"))
    head = {"type": "metadata", "protocol_version": "1.4"}
    called, answered = tuple(row for row in rows if row is CALL), tuple(row for row in rows if row is not CALL)
    return "".join(json.dumps(row) + "\n" for row in (head, *said, *called, end, *answered, *last))


def test_a_lost_call_whose_result_is_there_is_no_fault_of_the_model(tmp_path: Path):
    assert words(show(kimi(CALL, RESULT), tmp_path)) == ["COMPLETE"]
    lost = show(kimi(RESULT), tmp_path)
    assert stops(lost) == ["unknown", "end_turn"]
    assert lost.responses[0].judgement.stop.evidence[-1].rule == "transcript.no_row"
    assert words(lost) == ["COMPLETE"]


def test_a_word_for_calls_without_call_and_result_stays_no_call(tmp_path: Path):
    said = pi(pi_user("go"), pi_reply(text("I write."), stop="toolUse"))
    assert words(show(said, tmp_path)) == ["NO CALL"]
    seen = show(pi(pi_user("go"), pi_reply(text("I write."), stop="toolUse"), pi_result()), tmp_path)
    assert words(seen) == ["END NOT RECORDED"]


@each_row(("rows", "lacking"), [
    ((pi_result(), pi_reply(text("Done."))), 1),
    ((pi_result(), pi_result(key="call_02"), pi_reply(text("Done."))), 0),
    ((pi_result(), pi_user("and the tests?")), 1),
    ((pi_result(),), 0),  # the file ends: the other may still run
    ((pi_reply(text("Done.")),), 0),  # no result at all: the writer may keep none
])
def test_calls_without_a_result_are_counted_if_the_session_went_on(tmp_path: Path, rows: tuple[Row, ...], lacking: int):
    for stop in ("toolUse", None):
        called = pi_reply(pi_call(), pi_call("call_02"), stop=stop)
        told = "\n".join(show(pi(pi_user("go"), called, *rows), tmp_path).inputs[0].notices)
        assert (f"{LACKING}{lacking}" in told, LACKING in told) == (bool(lacking), bool(lacking))


def test_a_call_of_a_cut_answer_is_not_among_those_without_a_result(tmp_path: Path):
    rows = (pi_reply(pi_call("call_00"), stop="toolUse"), pi_result(key="call_00"), pi_reply(pi_call(), stop="length"))
    seen = show(pi(pi_user("go"), *rows, pi_user("again?"), pi_reply(text("No."))), tmp_path)
    assert LACKING not in "\n".join(seen.inputs[0].notices)
