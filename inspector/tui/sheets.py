"""Makes the sheet for a tab and a step, with modules that are imported when needed, and caches the last sheets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from inspector.report.facts import ResponseFacts
from inspector.report.lines.glyphs import DIFF_FORMS, WIRE_FORMS, forms_line, hint
from inspector.report.lines.merged import MergedSheet, merged_sheet
from inspector.report.lines.spans import LineSheet, Span, Tone
from inspector.report.lines.steps import Outline
from inspector.report.run_answers import Block, answer_at, answering_step, answers_of
from inspector.sessions.stored_rows import FileChangedError
from inspector.whatif.tree import Branch
from loop_core.turn.continuation import SeamRule
from loop_core.turn.state import Send

if TYPE_CHECKING:
    from inspector.report.lines.wire import FactChoice
    from inspector.sessions.provenance import Provenance


READINGS = 4
"""The number of responses whose facts and byte ranges are cached."""
CACHED_SHEETS = 16
"""The number of cached sheets."""


class Viewpoint(NamedTuple):
    """The current position: tab, run, step and form."""

    tab: str
    outline: Outline
    step: int
    form: str
    """One of the forms of the tab (`SheetTab.forms`)."""
    branch: Branch | None = None
    """The branch that the Diff tab compares with the run that it was made from; one of the two is shown."""
    seam: SeamRule | None = None
    """The seam rule that the Merged tab tries out; None for the rule of the run."""
    fact: FactChoice | None = None
    """The fact whose bytes the Wire tab highlights."""


Key = tuple[object, ...]


class Sheets:
    """Makes sheets and caches the last ones."""

    def __init__(self) -> None:
        self._kept: dict[Key, LineSheet] = {}
        self._readings: dict[Key, Provenance | None] = {}

    def at(self, viewpoint: Viewpoint) -> LineSheet:
        """The sheet for a viewpoint."""
        if not viewpoint.outline.view.steps:
            return LineSheet([(Span("nothing was read", Tone.DIM),)])
        make, key_of = _MAKERS[viewpoint.tab]
        key = (viewpoint.tab, viewpoint.outline, *key_of(viewpoint))
        try:
            # Moved to the end: a dict keeps insertion order, so the first sheet is the least recently used.
            sheet = self._kept.pop(key, None) or make(viewpoint)
        except FileChangedError as why:
            return LineSheet([(Span(str(why), Tone.ERROR),)])
        self._kept[key] = sheet
        if len(self._kept) > CACHED_SHEETS:
            del self._kept[next(iter(self._kept))]
        if isinstance(sheet, MergedSheet):
            return sheet.at(viewpoint.step)
        if viewpoint.fact is None or viewpoint.tab != "wire":
            return sheet
        return self._picking(sheet, viewpoint, viewpoint.fact)

    def has_facts(self, viewpoint: Viewpoint) -> bool:
        """Whether the facts of the current response's bytes are already known."""
        return response_key(viewpoint) in self._readings

    def readings(self, viewpoint: Viewpoint) -> Provenance | None:
        """The facts of the current response's bytes; decoded on the first call."""
        from inspector.sessions.provenance import readings

        key = response_key(viewpoint)
        if key not in self._readings:
            facts = _answer(viewpoint)
            self._readings[key] = readings(facts.exchange) if facts is not None else None
            if len(self._readings) > READINGS:
                del self._readings[next(iter(self._readings))]
        return self._readings[key]

    def _picking(self, sheet: LineSheet, viewpoint: Viewpoint, choice: FactChoice) -> LineSheet:
        from inspector.report.lines.slices import Bytes
        from inspector.report.lines.wire import fact_line

        found, facts = self.readings(viewpoint), _answer(viewpoint)
        if not isinstance(sheet, Bytes) or found is None or facts is None or choice.fact not in found.facts:
            return sheet
        reads = found.by_fact[choice.fact]
        here = reads[choice.reading]
        ranges = [(read.start, read.end) for read in reads]
        keys = (Span(". ", Tone.PRESS), Span(", ", Tone.PRESS))
        line = (*keys, *fact_line(found, choice, facts.exchange.response))
        return sheet.picking(line, ranges, (here.start, here.end))


def _awaited_response(viewpoint: Viewpoint) -> ResponseFacts | None:
    """The next answer of the turn, whose request is in progress at this step; None if there is none."""
    found = answers_of(viewpoint.outline.view, viewpoint.step, _block(viewpoint).end)
    return next((coming for _, coming in found), None)


def _sends(viewpoint: Viewpoint) -> bool:
    """Whether the step sends a request, which the next answer answers."""
    return any(isinstance(effect, Send) for effect in viewpoint.outline.view.steps[viewpoint.step].effects)


def _answer_to_request(viewpoint: Viewpoint) -> ResponseFacts | None:
    """The response to the current request: the request that the step sends, else the last answered one."""
    first, second = (_awaited_response, _answer) if _sends(viewpoint) else (_answer, _awaited_response)
    return first(viewpoint) or second(viewpoint)


def _sending_step(viewpoint: Viewpoint) -> int | None:
    """The step, if it sends a request, which then replaces the shown request; else None."""
    return viewpoint.step if _sends(viewpoint) else None


def _block(viewpoint: Viewpoint) -> Block:
    return viewpoint.outline.block_of(viewpoint.step)


def _answer(viewpoint: Viewpoint) -> ResponseFacts | None:
    return answer_at(viewpoint.outline.view, viewpoint.step)


def response_key(viewpoint: Viewpoint) -> Key:
    """A key for the current response, unique across runs."""
    return (viewpoint.outline, *current_key(viewpoint))


def current_key(viewpoint: Viewpoint) -> Key:
    """A key for the current response within a run: its index or step; before the first one, the step."""
    view = viewpoint.outline.view
    index = view.steps[viewpoint.step].response
    if index is not None:
        return ("recorded", index)
    at = answering_step(view, viewpoint.step)
    return ("awaited", viewpoint.step) if at is None else ("simulated", at)


def _merged_key(viewpoint: Viewpoint) -> Key:
    """The cache key of the Merged tab: one layout for all responses, but `side by side` opens at a response's seam."""
    return (viewpoint.form, *current_key(viewpoint)) if viewpoint.form != "merged" else ()


def _merged_sheet(viewpoint: Viewpoint) -> LineSheet:
    view, block = viewpoint.outline.view, _block(viewpoint)
    if viewpoint.form == "merged":
        return merged_sheet(view, block, viewpoint.step, viewpoint.seam)
    from inspector.report.lines.diff import sides

    return sides(view, block, viewpoint.step, viewpoint.seam)


def _response_sheet(viewpoint: Viewpoint) -> LineSheet:
    from inspector.report.lines import response

    view, facts = viewpoint.outline.view, _answer(viewpoint)
    return response.awaiting_sheet(view.steps[viewpoint.step]) if facts is None else response.response(view, facts)


def _wire(viewpoint: Viewpoint) -> LineSheet:
    from inspector.report.lines import response, wire

    view, facts = viewpoint.outline.view, _answer(viewpoint)
    if viewpoint.form == "request":
        facts = _answer_to_request(viewpoint)
    if facts is None:
        return response.awaiting_sheet(view.steps[viewpoint.step], forms_line(WIRE_FORMS, viewpoint.form))
    return wire.wire(facts, viewpoint.form)


def _calls(viewpoint: Viewpoint) -> LineSheet:
    from inspector.report.lines import calls

    return calls.calls(viewpoint.outline.view, _block(viewpoint), _answer(viewpoint), viewpoint.step)


def _diff(viewpoint: Viewpoint) -> LineSheet:
    from inspector.report.lines import diff
    from inspector.whatif import branch_lines as whatif

    if viewpoint.form == "request":
        from inspector.report.lines.request_diff import request_diff

        facts = _answer_to_request(viewpoint)
        nothing = LineSheet([(Span("no request of this turn was recorded", Tone.DIM),),
                             forms_line(DIFF_FORMS, "request")])
        return nothing if facts is None else request_diff(viewpoint.outline.view, facts)
    if viewpoint.form == "run":
        if viewpoint.branch is None:
            how = "this is the only run; e runs it again with other limits, and compares both here"
            return LineSheet([hint(how, sentence=True), forms_line(DIFF_FORMS, "run")])
        replay, branch_replay = viewpoint.outline.view.replay, viewpoint.branch.view.replay
        return whatif.branch_sheet(viewpoint.branch, replay.place_in(branch_replay, viewpoint.step))
    return diff.diff(viewpoint.outline.view, viewpoint.step)


def _events(viewpoint: Viewpoint) -> LineSheet:
    from inspector.report.lines import machine_drawing

    return machine_drawing.events(viewpoint.outline.view, _block(viewpoint), viewpoint.step)


def _machine(viewpoint: Viewpoint) -> LineSheet:
    from inspector.report.lines import machine_drawing

    block = _block(viewpoint)
    return LineSheet(machine_drawing.sheet_lines(viewpoint.outline.view.steps, block.first, viewpoint.step, block.end))


def _diff_key(viewpoint: Viewpoint) -> Key:
    """The cache key of the Diff tab, for each of its forms."""
    if viewpoint.form == "request":
        return (*current_key(viewpoint), _sending_step(viewpoint))
    return (viewpoint.step,) if viewpoint.form == "step" else (_block(viewpoint).turn, viewpoint.branch)


_MAKERS: Mapping[str, tuple[Callable[[Viewpoint], LineSheet], Callable[[Viewpoint], Key]]] = {
    "merged": (_merged_sheet, lambda viewpoint: (_block(viewpoint), viewpoint.seam, *_merged_key(viewpoint))),
    "response": (_response_sheet, current_key),
    "wire": (_wire, lambda viewpoint: (*current_key(viewpoint), viewpoint.form, _sending_step(viewpoint))),
    "calls": (_calls, lambda viewpoint: (_block(viewpoint), *current_key(viewpoint))),
    "diff": (_diff, lambda viewpoint: (viewpoint.form, *_diff_key(viewpoint))),
    "events": (_events, lambda viewpoint: (_block(viewpoint), viewpoint.step)),
    "machine": (_machine, lambda viewpoint: (viewpoint.step,)),
}
"""Tab -> the function that makes its sheet, and the one for its cache key: all that it depends on besides the run."""
