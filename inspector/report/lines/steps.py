"""The step list: a heading for each turn with its verdict, and a line for each step.

A line says by its gutter whether the step is past, here or still ahead, by a glyph what it is, in words which state was
entered, and in a short detail what decided it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from inspector.report.facts import View
from inspector.report.lines import glyphs
from inspector.report.lines.outline import Block, Outline
from inspector.report.lines.spans import Line, Span, Tone, safe, width_of
from inspector.report.times import duration_text, times_of
from inspector.report.verdict import TurnVerdict
from inspector.sessions.reasons import inference_of
from loop_core.judge.gate import Admission, Verdict
from loop_core.turn.state import RunTools, Send, State, Turn
from loop_core.turn.trace import Step
from loop_core.values import Severity

SEVERITY: Mapping[Severity, Tone] = {Severity.ERROR: Tone.ERROR, Severity.WARNING: Tone.WARN, Severity.INFO: Tone.OK}


def role_of(verdict: TurnVerdict) -> Tone:
    """The role of a verdict; an uncertain one is plain, never the role of success."""
    return SEVERITY[verdict.severity] if verdict.sure or verdict.severity is not Severity.INFO else Tone.PLAIN


STATE_COLUMNS = max(len(state.value) for state in State)


@dataclass(frozen=True, slots=True)
class Remarks:
    """The operator's remarks on steps: marks, notes and breakpoints."""

    marks: frozenset[int] = frozenset()
    notes: Mapping[int, str] = field(default_factory=dict)
    unsaved: frozenset[int] = frozenset()
    """Steps whose mark or note is not kept: it holds as long as the program runs."""


NO_REMARKS = Remarks()


def row(
    outline: Outline, index: int, here: int, remarks: Remarks = NO_REMARKS, width: int | None = None
) -> Line:
    """One row of the list with the cursor on step `here`; the duration is left out if the row is too long."""
    block, step = outline.at(index)
    if step is None:
        named = outline.names_file(index)
        return (safe(f" {outline.file_of(block)}", Tone.STRONG),) if named else heading(outline, block)
    line = step_line(outline.view, step, here, remarks)
    timed = (*line, *_took(outline.view, step))
    return timed if width is None or width_of(timed) <= width else line


def heading(outline: Outline, block: Block) -> Line:
    """The line above a run: the turn with its verdict, or a note that the recorded agent continued."""
    if block.run:
        return (Span("   ", Tone.RULE), Span("the recorded agent went on", Tone.WARN))
    view = outline.view
    turn = view.turns[block.turn]
    verdict, role = turn.verdict, role_of(turn.verdict)
    spans = [Span(f" turn {block.turn + 1}", Tone.TITLE), Span(f"  {verdict.glyph} {verdict.word}", role)]
    previous = view.turns[block.turn - 1] if block.turn else None
    if previous is not None and previous.conversation != turn.conversation:
        spans.append(safe(f"  {turn.conversation}", Tone.DIM))
    return tuple(spans)


def step_line(view: View, index: int, here: int, remarks: Remarks = NO_REMARKS) -> Line:
    """The line of one step."""
    step = view.effective_step(index)
    digits = len(str(len(view.steps)))
    gutter, role = _gutter(index, here)
    glyph, tone = glyph_of(step)
    name = f"{step.state.value:<{STATE_COLUMNS}}"
    words = Tone.STRONG if index == here else Tone.AHEAD if index > here else Tone.PLAIN
    lost = (Span("not kept  ", Tone.WARN),) if index in remarks.unsaved else ()
    noted = (safe(f"{glyphs.NOTE} {remarks.notes[index]}  ", Tone.KEY),) if index in remarks.notes else ()
    return (
        Span(f" {gutter}", role), Span(glyphs.MARKED, Tone.MARK) if index in remarks.marks else Span(" ", Tone.DIM),
        Span(f"{index + 1:>{digits}} ", Tone.DIM), Span(f"{glyph} ", tone), Span(f"{name} ", words), *lost, *noted,
        *_refused(view, index, step), *detail(step),
    )


def _took(view: View, index: int) -> Line:
    """How long the answer took that a step evaluates, where that is recorded."""
    step = view.steps[index]
    if step.response is None or step.state is not State.EVALUATE_STOP:
        return ()
    times = times_of(view.replay.case.recording.exchanges[step.response])
    took = times.duration_ms if times is not None else None
    return () if took is None else (Span(f" {duration_text(took)}", Tone.DIM),)


def _refused(view: View, index: int, step: Step) -> Line:
    """What the server answered before, where the request of this answer was sent again for want of one."""
    at, exchanges = step.response, view.replay.case.recording.exchanges
    if at is None or step.state is not State.EVALUATE_STOP or not exchanges[at].again:
        return ()
    responses = view.turn_of(index).responses
    place, found = responses.index(at), list[str]()
    while place and exchanges[responses[place]].again:
        place -= 1
        status = exchanges[responses[place]].response.http_status
        found.insert(0, "no answer" if status is None else str(status))
    return (Span(f"{', '.join(found)} then ", Tone.WARN),) if found else ()


def _gutter(index: int, here: int) -> tuple[str, Tone]:
    if index == here:
        return glyphs.HERE, Tone.HERE
    return (glyphs.PAST, Tone.PAST) if index < here else (glyphs.AHEAD, Tone.AHEAD)


def glyph_of(step: Step) -> tuple[str, Tone]:
    """The glyph of a step: that of its stop reason if it evaluates one, else that of its state."""
    seen = step.turn.evaluation
    if step.state is State.EVALUATE_STOP and seen is not None:
        return glyphs.of_reason(seen.judgement.stop)
    if step.state is State.COMPLETE and step.turn.terminal != "completed":
        return glyphs.STATE[State.ABORT_PARTIAL]
    return glyphs.STATE[step.state]


def detail(step: Step) -> Line:
    """The reason for this step, in a few words."""
    return _DETAILS[step.state](step)


def names(verdicts: tuple[Verdict, ...]) -> str:
    """The calls of a batch: the single name, or their number."""
    return (verdicts[0].call.name or "unnamed") if len(verdicts) == 1 else f"{len(verdicts)} calls"


def _request(step: Step) -> Line:
    send = send_of(step)
    if step.previous_state is not None:
        return (Span("with tool results", Tone.DIM),)
    return (Span(f"cap {send.max_tokens:,}", Tone.DIM),) if send is not None and send.max_tokens is not None else ()


def _evaluated(step: Step) -> Line:
    seen = step.turn.evaluation
    if seen is None:
        return ()
    stop = seen.judgement.stop
    found = [Span(stop.normalized.value, Tone.NORMALIZED)]
    if inference_of(stop) is not None:
        found.append(Span(" inferred", Tone.DIM))
    if seen.judgement.mapped.normalized is not stop.normalized:
        found.append(Span(f" said {seen.judgement.mapped.normalized.value}", Tone.RAW))
    for admission in (Admission.HELD, Admission.REJECTED):
        stopped = tuple(v for v in seen.verdicts if v.admission is admission)
        if stopped:
            glyph, role = glyphs.ADMISSION[admission]
            found += [Span(f" {glyph} ", role), safe(f"{names(stopped)} {admission.value}", role)]
    return tuple(found)


def _tools(step: Step) -> Line:
    runs = next((effect for effect in step.effects if isinstance(effect, RunTools)), None)
    return (safe(names(runs.batch)),) if runs is not None and runs.batch else ()


def _used(spent: str, limit: str) -> Callable[[Step], Line]:
    def told(step: Step) -> Line:
        used, most = getattr(step.turn.spend, spent), getattr(step.turn.limits, limit)
        return (Span(f"{used} of {most}", Tone.WARN if used >= most else Tone.DIM),)
    return told


def _asked(step: Step) -> Line:
    send = send_of(step)
    return () if send is None else (Span(f"{send.ordinal} {send.method.value}", Tone.DIM),)


def _repair(step: Step) -> Line:
    held = tuple(v for v in step.turn.unrepaired if v.admission is Admission.HELD)
    return (safe(names(held)),) if held else ()


def _ended(step: Step) -> Line:
    terminal = step.turn.terminal or ""
    return (Span(terminal, Tone.OK if terminal == "completed" else Tone.ERROR),)


def reason_of_end(state: State, terminal: str | None) -> str:
    """Why a turn ended, if that says more than its last state: empty for `completed` beside Complete."""
    return "" if terminal is None or terminal.startswith(state.value.lower()) else terminal


def end_words(turn: Turn) -> str:
    """How a turn ended: its last state, and the reason if that says more."""
    state = turn.outcome or turn.state
    reason = reason_of_end(state, turn.terminal)
    return f"{state.value}, {reason}" if reason else state.value


def send_of(step: Step) -> Send | None:
    """What a step sends; None if it sends nothing."""
    return next((effect for effect in step.effects if isinstance(effect, Send)), None)


_DETAILS: Mapping[State, Callable[[Step], Line]] = {
    State.REQUEST: _request,
    State.EVALUATE_STOP: _evaluated,
    State.EXECUTE_TOOLS: _tools,
    State.CONTINUE_PENDING: _used("attempts", "continuation_max_attempts"),
    State.REQUEST_CONTINUATION: _asked,
    State.REPAIR_PENDING: _used("repairs", "continuation_tool_repair_attempts"),
    State.REQUEST_TOOL_REPAIR: _repair,
    State.RESUME: _asked,
    State.NUDGE_PENDING: _used("empty_retries", "max_empty_retries"),
    State.REQUEST_NUDGE: _asked,
    State.ABORT_PARTIAL: _ended,
    State.ABORT: _ended,
    State.COMPLETE: _ended,
    State.UNRECORDED: lambda step: (Span("not recorded", Tone.WARN),),
}
