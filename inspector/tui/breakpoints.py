"""The list of breakpoints, with the number of stops of each, and suggestions for steps like the current one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import takewhile
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.worker import get_current_worker

from inspector.report import filters
from inspector.report.facts import View
from inspector.report.filter_terms import StepContext
from inspector.report.lines.spans import Line, Span, Tone, count_of, safe
from inspector.tui.lists import RowList
from inspector.tui.messages import MANY_STEPS, RowOpened, ask_operator
from inspector.tui.panels import Dialog, key_note, note
from loop_core.judge.gate import Admission

# -- Breakpoints as values -------------------------------------------------------------------------------------------
# A breakpoint is an expression of the filter language that can be switched off.


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """A filter expression at whose steps a run stops, and whether it is enabled."""

    text: str
    enabled: bool = True


@lru_cache(maxsize=64)
def filter_of(text: str) -> filters.Filter:
    """The filter of an expression; cached, because a filter caches its results for each response. Raises `FilterError`
    if the expression is invalid."""
    return filters.parse(text)


def next_stop(
    stops: Sequence[Breakpoint], view: View, step: int, by: int, marks: frozenset[int]
) -> tuple[int, str] | None:
    """The nearest step at which an enabled breakpoint stops, and its expression; None if there is none."""
    found = [
        (at, each.text) for each in stops if each.enabled
        and (at := filters.hit_after(filter_of(each.text), view, step, by, marks)) is not None
    ]
    return (min if by > 0 else max)(found, key=lambda hit: hit[0], default=None)


def count_hits(stop: Breakpoint, view: View, marks: frozenset[int], among: Iterable[int]) -> int:
    """The number of these steps at which a breakpoint stops."""
    found = filter_of(stop.text)
    return sum(filters.stops_at(found, view, index, marks) for index in among)


def suggestions_at(at: StepContext) -> list[str]:
    """Expressions that would stop at steps like this one."""
    step, response = at.step, at.response
    found = [f"state:{step.state.value}"]
    if response is not None:
        found.append(f"stop:{response.judgement.stop.normalized.value}")
        if response.judgement.ending is not None:
            found.append(f"ending:{response.judgement.ending.value}")
        if any(verdict.admission is Admission.HELD for verdict in response.verdicts):
            found.append("held")
        found += [f"tool:{verdict.call.name}" for verdict in response.verdicts[:1] if verdict.call.name.isidentifier()]
    found += [f"event:{record['event']}" for record in step.records]
    return list(dict.fromkeys([*found, "budget>=80%", "end:*"]))


# -- The list of breakpoints -----------------------------------------------------------------------------------------

class BreakpointRows(RowList):
    """The rows of the list: breakpoints, then suggestions."""

    def __init__(self, stops: Sequence[Breakpoint], view: View, step: int, marks: frozenset[int]) -> None:
        super().__init__(id="stops", classes="long")
        self.stops = list(stops)
        stop_texts = {each.text for each in stops}
        offered = suggestions_at(StepContext(view, step, marks)) if view.steps else []
        self.offered = [text for text in offered if text not in stop_texts]
        self._view, self._marks = view, marks
        self._counts: dict[str, int | None] = {}
        """Text of a breakpoint -> how often it stops; None while a thread counts."""

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.stops) + len(self.offered)

    def hits(self, stop: Breakpoint) -> int | None:
        """How often a breakpoint stops, counted once; None until a thread has counted many steps."""
        every = range(len(self._view.steps))
        if stop.text not in self._counts:
            few = len(every) < MANY_STEPS
            self._counts[stop.text] = count_hits(stop, self._view, self._marks, every) if few else None
            if not few:
                self.run_worker(partial(self._count, stop, every), thread=True)
        return self._counts[stop.text]

    def _count(self, stop: Breakpoint, every: Sequence[int]) -> None:
        worker = get_current_worker()
        here = takewhile(lambda _: not worker.is_cancelled, every)
        count = count_hits(stop, self._view, self._marks, here)
        if not worker.is_cancelled:
            self._counts[stop.text] = count
            self.app.call_from_thread(self.refresh)

    def row(self, index: int) -> Line:
        """A breakpoint or a suggestion."""
        here = self.cursor_mark(index)
        if index >= len(self.stops):
            return (here, Span("+ ", Tone.DIM), safe(self.offered[index - len(self.stops)], Tone.DIM),
                    Span("  enter sets it", Tone.DIM))
        stop = self.stops[index]
        count = self.hits(stop)
        return (here, Span("● on  " if stop.enabled else "○ off ", Tone.ERROR if stop.enabled else Tone.DIM),
                safe(stop.text, Tone.STRONG if stop.enabled else Tone.DIM),
                Span("  counting its stops…" if count is None else f"  stops {count_of(count, 'time')}", Tone.DIM))


class BreakpointList(Dialog[Sequence[Breakpoint] | None]):
    """Sets, switches and removes breakpoints; returns all of them when the user closes it."""

    DEFAULT_CSS = "#breakpoints { width: 80; padding: 0 2; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,b", "leave", "close", tooltip="Close and keep the changes", id="stops.leave"),
        Binding("space,enter", "switch", "on or off", tooltip="Switch it on or off; a suggestion becomes a breakpoint",
                id="stops.switch", priority=True),
        Binding("a", "add", "add", tooltip="Type a breakpoint: any filter expression", id="stops.add"),
        Binding("d,delete", "remove", "remove", tooltip="Remove it", id="stops.remove"),
    ]

    def __init__(self, stops: Sequence[Breakpoint], view: View, step: int, marks: frozenset[int]) -> None:
        super().__init__()
        self._list = BreakpointRows(stops, view, step, marks)

    def compose(self) -> ComposeResult:
        """A title, the rows, the keys."""
        with Vertical(id="breakpoints"):
            yield note("Breakpoints", Tone.TITLE)
            yield self._list
            yield key_note("space on/off · a type one · d remove · esc close, then c runs to the next")

    def action_leave(self) -> None:
        """Closes the list and returns its breakpoints."""
        self.dismiss(tuple(self._list.stops))

    def on_row_opened(self, message: RowOpened) -> None:
        """A double click acts like the enter key."""
        message.stop()
        self.action_switch()

    def action_switch(self) -> None:
        """Enables or disables a breakpoint; a suggestion becomes a breakpoint."""
        rows, index = self._list, self._list.cursor
        if index < len(rows.stops):
            stop = rows.stops[index]
            rows.stops[index] = Breakpoint(stop.text, not stop.enabled)
            rows.refresh()
        elif index < rows.count:
            self._add(rows.offered.pop(index - len(rows.stops)))

    def action_remove(self) -> None:
        """Removes the breakpoint at the cursor."""
        rows, index = self._list, self._list.cursor
        if index < len(rows.stops):
            del rows.stops[index]
            rows.cursor = max(0, min(index, rows.count - 1))
            rows.fit_rows()

    def action_add(self) -> None:
        """Asks for an expression."""
        from inspector.tui.questions import Prompt, refusal_of

        hint = "stop:max_tokens held · state:Abort* · budget>=80%"
        refusal = refusal_of(lambda text: text.strip() and filter_of(text.strip()))
        ask_operator(self.app, Prompt("break at", hint, refusal=refusal), lambda text: self._add(text.strip()))

    def _add(self, text: str) -> None:
        if text and all(each.text != text for each in self._list.stops):
            self._list.stops.append(Breakpoint(text))
        self._list.cursor = len(self._list.stops) - 1
        self._list.fit_rows()
