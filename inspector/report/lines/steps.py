"""The step list: which row shows which step, a heading for each turn with its verdict, and a line for each step.

A step's line has a gutter (past, current or ahead), a glyph, the state that was entered, and what decided it. An
outline is built once for a view, in one pass over its turns. Each later look-up is a binary search in sorted numbers,
so a key press among a hundred thousand steps takes about as long as among a hundred.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from inspector.report.facts import View
from inspector.report.lines import glyphs
from inspector.report.lines.spans import Line, Span, Tone, cells, one_line, safe, width_of
from inspector.report.run_answers import Block, Blocks, file_names
from inspector.report.times_and_costs import duration_text, times_of
from inspector.report.verdict import TurnVerdict
from inspector.sessions.reasons import inference_of
from loop_core.judge.gate import Admission, Verdict
from loop_core.turn.state import RunTools, Send, State, Turn
from loop_core.turn.trace import Step
from loop_core.values import FINISHED, Severity


class Outline:
    """The blocks of a view in order, with their rows; each file begins with a row of its name."""

    within = ""
    """The words after `no step` in messages, which describe the restriction of the outline."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.blocks = Blocks(view)
        firsts: dict[str, int] = {}
        for block in self.blocks:
            firsts.setdefault(block.path, block.first)
        self._files = file_names(firsts)
        self.files: dict[str, int] = {}
        """Name of a file -> the file's first step."""
        for path, first in firsts.items():
            self.files.setdefault(self._files[path], first)
        self._lay(range(len(view.steps)))

    def _lay(self, kept_steps: Sequence[int]) -> None:
        """Gives the kept steps their rows, below a heading for each of their blocks."""
        self.kept_steps = kept_steps
        self._shown = array("q")
        """The numbers of the blocks that have rows."""
        self._rows = array("q")
        self._places = array("q")
        """The number of steps shown before each block."""
        self._heads = bytearray()
        self.rows, before = 0, ""
        for number, block in enumerate(self.blocks):
            place, end = bisect_left(kept_steps, block.first), bisect_left(kept_steps, block.end)
            if place < end:
                heads = 1 + (len(self._files) > 1 and block.path != before)
                self._shown.append(number)
                self._rows.append(self.rows)
                self._places.append(place)
                self._heads.append(heads)
                self.rows, before = self.rows + heads + end - place, block.path

    def file_of(self, block: Block) -> str:
        """The file of a turn; empty if there is only one."""
        return self._files[block.path] if len(self._files) > 1 else ""

    def block_of(self, step: int) -> Block:
        """The run of a step."""
        return self.blocks.at_step(step)

    def keeps(self, step: int) -> bool:
        """Whether the step has a row."""
        place = bisect_left(self.kept_steps, step)
        return place < len(self.kept_steps) and self.kept_steps[place] == step

    def nearest(self, step: int, first: int, end: int) -> int | None:
        """The step itself, else the next step with a row, else the last one before it, between `first` and `end`."""
        place = bisect_left(self.kept_steps, step)
        for near in (place, place - 1):
            if 0 <= near < len(self.kept_steps) and first <= self.kept_steps[near] < end:
                return self.kept_steps[near]
        return None

    def row_of(self, step: int) -> int:
        """The row of a step, or of the nearest one that is shown."""
        place = max(0, min(bisect_left(self.kept_steps, step), len(self.kept_steps) - 1))
        number = max(0, bisect_right(self._places, place) - 1)
        return self._rows[number] + self._heads[number] + place - self._places[number] if self._rows else 0

    def at(self, row: int) -> tuple[Block, int | None]:
        """The content of a row: a heading of a block (None), or one of its steps."""
        number = max(0, bisect_right(self._rows, row) - 1)
        place = row - self._rows[number] - self._heads[number]
        return self.blocks[self._shown[number]], None if place < 0 else self.kept_steps[self._places[number] + place]

    def names_file(self, row: int) -> bool:
        """Whether a row is the heading of a file."""
        number = max(0, bisect_right(self._rows, row) - 1)
        return row == self._rows[number] and self._heads[number] > 1

    def neighbour(self, step: int, by: int) -> int:
        """The step `by` rows further, clamped to the first and the last."""
        if not self.kept_steps:
            return step
        place = bisect_left(self.kept_steps, step)
        if by > 0 and (place == len(self.kept_steps) or self.kept_steps[place] != step):
            place -= 1  # from between two shown steps, the next one is one row further
        return self.kept_steps[min(max(place + by, 0), len(self.kept_steps) - 1)]

    def interesting(self, step: int, direction: int, most: int | None = None) -> int | None:
        """The next step worth stopping at, in direction 1 or -1, among so many; None if there is none."""
        steps = self.view.steps
        ahead = range(step + 1, len(steps)) if direction > 0 else range(step - 1, -1, -1)
        return next((index for index in ahead[:most] if self.keeps(index) and is_interesting(steps[index])), None)

    def turn_start(self, step: int, direction: int) -> int | None:
        """The first step of the next turn (1), or of this or the previous one (-1), among those with rows."""
        starts = self._starts
        at = bisect_right(starts, step) if direction > 0 else bisect_left(starts, step) - 1
        return starts[at] if 0 <= at < len(starts) else None

    @cached_property
    def _starts(self) -> Sequence[int]:
        """The first shown step of each turn."""
        turns = [self.blocks[at].turn for at in self._shown]
        return array("q", [self.kept_steps[place] for number, place in enumerate(self._places)
                           if not number or turns[number] != turns[number - 1]])


class FilteredOutline(Outline):
    """The outline restricted to some steps, with a heading for each of their turns."""

    within = " that the filter keeps"

    def __init__(self, whole: Outline, numbers: Sequence[int]) -> None:
        self.view, self.blocks, self._files, self.files = whole.view, whole.blocks, whole._files, whole.files
        self._lay(tuple(numbers))


_STOPPING = frozenset({State.ABORT, State.ABORT_PARTIAL, State.UNRECORDED})


def is_interesting(step: Step) -> bool:
    """Whether a step deserves a stop: a cut, a block, a held or rejected call, a limit, or a bad end."""
    if step.state in _STOPPING:
        return True
    evaluation = step.turn.evaluation
    if step.state is not State.EVALUATE_STOP or evaluation is None:
        return step.previous_state is None and step.run > 0
    return evaluation.judgement.stop.normalized not in FINISHED or any(v.admission is not Admission.READY
                                                                       for v in evaluation.verdicts)


SEVERITY: Mapping[Severity, Tone] = {Severity.ERROR: Tone.ERROR, Severity.WARNING: Tone.WARN, Severity.INFO: Tone.OK}


def role_of(verdict: TurnVerdict) -> Tone:
    """The role of a verdict; an uncertain one is plain, never the role of success."""
    return SEVERITY[verdict.severity] if verdict.sure or verdict.severity is not Severity.INFO else Tone.PLAIN


def ending_role(terminal: str | None, state: State) -> Tone:
    """The role of the end of a turn with this terminal reason and last state."""
    if terminal == "completed":
        return Tone.OK
    return Tone.WARN if state is State.UNRECORDED else Tone.ERROR


STATE_COLUMNS = max(len(state.value) for state in State)


class Remarks(NamedTuple):
    """The operator's remarks on steps: marks, notes and breakpoints."""

    marks: frozenset[int] = frozenset()
    notes: Mapping[int, str] = {}
    unsaved: frozenset[int] = frozenset()
    """The steps whose mark or note could not be saved and will be lost when the program ends."""


NO_REMARKS = Remarks()


def row(outline: Outline, index: int, here: int, remarks: Remarks = NO_REMARKS, width: int | None = None) -> Line:
    """One row of the list with the cursor on step `here`; the duration is left out if the row is too long."""
    block, step = outline.at(index)
    if step is None:
        named = outline.names_file(index)
        return (Span(f" {_end_of(outline.file_of(block), width)}", Tone.STRONG),) if named else heading(outline, block)
    line = step_line(outline.view, step, here, remarks)
    timed = (*line, *_duration(outline.view, step))
    return timed if width is None or width_of(timed) <= width else line


def _end_of(path: str, width: int | None) -> str:
    """A path of which the end stays in sight: the name of the file, not the folders above it."""
    name = one_line(path)
    if width is None or cells(name) < width:
        return name
    while name and cells(name) > width - 4:  # a blank, and a mark of three cells in ASCII
        name = name[1:]
    return f"…{name}"


def heading(outline: Outline, block: Block) -> Line:
    """The line above a run: the turn with its verdict, or a note that the recorded agent continued."""
    if block.run:
        return (Span("   ", Tone.RULE), Span("the recorded agent went on", Tone.WARN))
    view = outline.view
    turn = view.turns[block.turn]
    verdict, role = turn.verdict, role_of(turn.verdict)
    spans = [Span(f" turn {block.turn + 1:,}", Tone.TITLE), Span(f"  {verdict.glyph} {verdict.count_word}", role)]
    previous = view.turns[block.turn - 1] if block.turn else None
    if previous is not None and previous.conversation != turn.conversation:
        spans.append(safe(f"  {turn.conversation}", Tone.DIM))
    return tuple(spans)


def step_line(view: View, index: int, here: int, remarks: Remarks) -> Line:
    """The line of one step."""
    step = view.effective_step(index)
    digits = len(str(len(view.steps)))
    gutter, role = _gutter(index, here)
    glyph, tone = glyph_of(step)
    name = f"{step.state.value:<{STATE_COLUMNS}}"
    words = Tone.STRONG if index == here else Tone.AHEAD if index > here else Tone.PLAIN
    lost = (Span("not saved  ", Tone.WARN),) if index in remarks.unsaved else ()
    note = (safe(f"{glyphs.NOTE} {remarks.notes[index]}  ", Tone.KEY),) if index in remarks.notes else ()
    return (
        Span(f" {gutter}", role), Span(glyphs.MARKED, Tone.MARK) if index in remarks.marks else Span(" ", Tone.DIM),
        Span(f"{index + 1:>{digits}} ", Tone.DIM), Span(f"{glyph} ", tone), Span(f"{name} ", words), *lost, *note,
        *_earlier_failures(view, index, step), *detail(step),
    )


def _duration(view: View, index: int) -> Line:
    """The recorded duration of the answer that a step evaluates; empty if unknown."""
    step = view.steps[index]
    if step.response is None or step.state is not State.EVALUATE_STOP:
        return ()
    times = times_of(view.replay.case.recording.exchanges[step.response])
    took = times.duration_ms if times is not None else None
    return () if took is None else (Span(f" {duration_text(took)}", Tone.DIM),)


def _earlier_failures(view: View, index: int, step: Step) -> Line:
    """The failed answers before this one, if its request was sent several times; else empty."""
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
    evaluation = step.turn.evaluation
    if step.state is State.EVALUATE_STOP and evaluation is not None:
        return glyphs.of_reason(evaluation.judgement.stop)
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


def _evaluation(step: Step) -> Line:
    evaluation = step.turn.evaluation
    if evaluation is None:
        return ()
    stop = evaluation.judgement.stop
    found = [Span(stop.normalized.value, Tone.NORMALIZED)]
    if inference_of(stop) is not None:
        found.append(Span(" inferred", Tone.DIM))
    if evaluation.judgement.mapped.normalized is not stop.normalized:
        found.append(Span(f" said {evaluation.judgement.mapped.normalized.value}", Tone.RAW))
    for admission in (Admission.HELD, Admission.REJECTED):
        stopped = tuple(v for v in evaluation.verdicts if v.admission is admission)
        if stopped:
            glyph, role = glyphs.ADMISSION[admission]
            found += [Span(f" {glyph} ", role), safe(f"{names(stopped)} {admission.value}", role)]
    return tuple(found)


def _tools(step: Step) -> Line:
    runs = next((effect for effect in step.effects if isinstance(effect, RunTools)), None)
    return (safe(names(runs.batch)),) if runs is not None and runs.batch else ()


def _share_of_limit(figure: str, limit: str) -> Callable[[Step], Line]:
    def share(step: Step) -> Line:
        used, most = getattr(step.turn.spend, figure), getattr(step.turn.limits, limit)
        return (Span(f"{used} of {most}", Tone.WARN if used >= most else Tone.DIM),)
    return share


def _sending(step: Step) -> Line:
    send = send_of(step)
    return () if send is None else (Span(f"{send.ordinal} {send.method.value}", Tone.DIM),)


def _repair(step: Step) -> Line:
    held = tuple(v for v in step.turn.unrepaired if v.admission is Admission.HELD)
    return (safe(names(held)),) if held else ()


def _end(step: Step) -> Line:
    terminal = step.turn.terminal or ""
    return (Span(terminal, ending_role(terminal, step.state)),)


def reason_of_end(state: State, terminal: str | None) -> str:
    """Why a turn ended, if that says more than its last state; empty for `completed` in the state Complete."""
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
    State.EVALUATE_STOP: _evaluation,
    State.EXECUTE_TOOLS: _tools,
    State.CONTINUE_PENDING: _share_of_limit("attempts", "continuation_max_attempts"),
    State.REQUEST_CONTINUATION: _sending,
    State.REPAIR_PENDING: _share_of_limit("repairs", "continuation_tool_repair_attempts"),
    State.REQUEST_TOOL_REPAIR: _repair,
    State.RESUME: _sending,
    State.NUDGE_PENDING: _share_of_limit("empty_retries", "max_empty_retries"),
    State.REQUEST_NUDGE: _sending,
    State.ABORT_PARTIAL: _end,
    State.ABORT: _end,
    State.COMPLETE: _end,
    State.UNRECORDED: lambda step: (Span("not recorded", Tone.WARN),),
}
