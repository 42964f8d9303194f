"""`Did a tool run on cut arguments?` is answered in one line, with the calls checked, as far as is recorded."""

from __future__ import annotations

from typing import Any

from inspector.report.call_outcomes import CutRun, count_runs, cut_run_lines
from inspector.report.lines.calls import calls
from inspector.report.lines.spans import text_of
from inspector.report.lines.steps import Outline
from tests.scenes import transcripts as agents
from tests.scenes.recordings import (
    ASKS,
    CUT,
    MESSAGES,
    TOOLS,
    WHOLE,
    assistant,
    call,
    chat,
    cut_call_ran,
    cut_call_refused,
    message,
    pair_of,
    repair_turn,
    result,
    show,
    user,
)
from tests.scenes.rows import each_row

Entries = list[dict[str, Any]]


def lines(entries: Entries, turn: int = 0) -> list[str]:
    return [text_of(line) for line in cut_run_lines(show(*entries), turn)]


def then(answer: dict[str, Any], *after: dict[str, Any], **more: Any) -> Entries:
    """An answer with calls, and a request that goes on with these messages."""
    return [pair_of(ASKS, answer, tools=TOOLS, **more), pair_of([*ASKS, *after], chat("Done."), tools=TOOLS, **more)]


def cut(arguments: str = CUT, reason: str = "length") -> dict[str, Any]:
    return chat(None, reason, call(arguments), tokens=40)


ON_CUT, OBJECT = "1 tool ran on cut arguments", {"type": "tool_use", "id": "toolu_1", "name": "write_file",
                                                 "input": {"path": "a.md"}}
DONE = message([{"type": "text", "text": "Done."}], "end_turn")
NO_RESULT = "1 refused, or without a result in what the agent sent next"
ANSWERED = [{"role": "assistant", "content": [OBJECT]},
            user([{"type": "tool_result", "tool_use_id": "toolu_1", "content": "written"}])]


@each_row(("entries", "says"), [
    (list(cut_call_ran()), f"{ON_CUT} (1 call checked, 1 cut)"),
    ([pair_of(ASKS, message([OBJECT], "max_tokens"), url=MESSAGES, max_tokens=9),
      pair_of([*ASKS, *ANSWERED], DONE, url=MESSAGES, max_tokens=9)],
     f"{ON_CUT} (1 call checked, 1 cut) · 1 known by the stop reason alone: arguments recorded already parsed "
     "look complete"),
    (list(cut_call_refused()), f"no tool ran on cut arguments (2 calls checked, 1 cut) · {NO_RESULT}"),
    (list(repair_turn()), f"no tool ran on cut arguments (2 calls checked, 1 cut) · {NO_RESULT}"),
    (then(chat(None, "tool_calls", call(WHOLE)), assistant(None, call(WHOLE)), result()),
     "no tool ran on cut arguments (1 call checked, none cut)"),
    ([pair_of(ASKS, cut(), tools=TOOLS, max_tokens=40)],
     "the recording does not show whether a tool ran on cut arguments "
     "(1 call checked, 1 cut) · 1 after which the recording ends"),
    ([pair_of(ASKS, chat(None, "length", {**call(""), "function": {"name": "now", "arguments": ""}}, tokens=40),
            tools=[{"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}],
            max_tokens=40)],
     "the recording does not show whether a tool ran on cut arguments "
     "(1 call checked, 1 cut) · 1 after which the recording ends"),
    (then(cut(WHOLE), assistant(None, call(WHOLE)), result(), max_tokens=40),
     "no tool ran on cut arguments (1 call checked, none cut) · 1 ran on complete arguments, although its answer was "
     "cut"),
    (then(cut('{"path": oops}', "tool_calls"), assistant(None, call('{"path": oops}')), result()),
     "no tool ran on cut arguments (1 call checked, none cut) · 1 ran on arguments not known to be complete; nothing "
     "shows a cut"),
])
def test_the_line_says_what_the_recording_shows(entries: Entries, says: str) -> None:
    assert lines(entries) == [f"this turn  {says}"]


def test_a_call_that_was_answered_with_an_error_may_have_run() -> None:
    failed = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "disk is full", "is_error": True}
    entries = [pair_of(ASKS, message([OBJECT], "max_tokens"), url=MESSAGES, max_tokens=9),
               pair_of([*ASKS, ANSWERED[0], user([failed])], DONE, url=MESSAGES, max_tokens=9)]
    assert lines(entries) == ["this turn  the recording does not show whether a tool ran on cut arguments "
                              "(1 call checked, 1 cut) · "
                              "1 answered with an error: it may have run"]


def test_a_call_of_a_transcript_without_stop_reasons_cannot_show_a_cut() -> None:
    """An agent's rows hold the arguments as an object, and this agent writes no stop reason."""
    rows = [agents.prompt("Write it."), agents.block(agents.use(path="a.md")), agents.result("written"),
            agents.block(agents.text("Done."), "msg_02")]
    view = show(data=agents.claude(*rows).encode())
    assert [text_of(line) for line in cut_run_lines(view, 0)] == [
        "this turn  the recording does not show whether a tool ran on cut arguments "
        "(1 call checked, none cut) · 1 without a recorded "
        "stop reason, with arguments recorded already parsed: a cut would not show"]


def test_a_session_of_several_turns_is_counted_beside_the_turn() -> None:
    second = [*ASKS, assistant("Done."), user("And now?")]
    entries = [*then(chat(None, "tool_calls", call(WHOLE)), assistant(None, call(WHOLE)), result()),
               pair_of(second, chat(None, "length", call(CUT), tokens=40), tools=TOOLS, max_tokens=40),
               pair_of([*second, assistant(None, call(CUT)), result()], chat("Written."), tools=TOOLS, max_tokens=40)]
    assert lines(entries) == ["this turn  no tool ran on cut arguments (1 call checked, none cut)",
                              f"all 2 turns  {ON_CUT} (2 calls checked, 1 cut)"]
    assert lines(entries, 1)[0] == f"this turn  {ON_CUT} (1 call checked, 1 cut)"


def test_a_turn_without_calls_has_no_line() -> None:
    assert lines([pair_of(ASKS, chat("Hi."))]) == []


def test_the_line_stands_before_the_calls_at_hand() -> None:
    view = show(*cut_call_ran())
    outline = Outline(view)
    facts = view.responses[0]
    sheet = calls(view, outline.blocks[0], facts)
    shown_lines = [text_of(sheet.line(at)) for at in range(len(sheet))]
    at = shown_lines.index(f"this turn  {ON_CUT} (1 call checked, 1 cut)")
    assert "HELD write_file" in shown_lines[at + 2]
    assert count_runs(view, view.responses) == {CutRun.RAN: 1}


@each_row("after", [("failed", "worked"), ("worked", "failed")])
@each_row("goes_on", [True, False])
def test_of_two_results_one_without_error_shows_that_the_call_ran(after: tuple[str, ...], goes_on: bool, tmp_path):
    results = [agents.pi_result(said, error=said == "failed") for said in after]
    last = [agents.pi_reply(agents.text("Done."))] if goes_on else []
    cut_call = agents.pi_reply(agents.pi_call(path="a.md"), stop="length")
    (turn,) = agents.show(agents.pi(agents.pi_user("go"), cut_call, *results, *last), tmp_path).turns
    assert turn.verdict.word == "CUT CALL RUN"
    only = [agents.pi_result("failed", error=True), agents.pi_result("failed again", error=True)]
    (turn,) = agents.show(agents.pi(agents.pi_user("go"), cut_call, *only, *last), tmp_path).turns
    assert turn.verdict.word == "CALL HELD"


def test_a_whole_object_before_the_cut_call_is_not_told_as_cut(tmp_path):
    for first, second in (("a.md", {}), ("a.md", {"path": "b.md"})):
        batch = agents.pi_reply(agents.pi_call(path=first), agents.pi_call("call_02", **second), stop="length")
        seen = agents.show(agents.pi(agents.pi_user("go"), batch, agents.pi_result()), tmp_path)
        (turn,) = seen.turns
        assert "cut the batch of write (call 1 of 2), whose own arguments parse" in turn.verdict.sentence
        assert count_runs(seen, seen.responses)[CutRun.RAN_WHOLE] == 1
        seen = agents.show(agents.pi(agents.pi_user("go"), batch, agents.pi_result(key="call_02")), tmp_path)
        assert "the batch" not in seen.turns[0].verdict.sentence
