"""Draws the state machine from its transition table: every state, how often it was entered, and the current one.

The drawing is a spanning tree of `TRANSITIONS` from Request. A transition to a state that is drawn elsewhere is written
beside the state that it leaves. A new row of the table appears without a change here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from inspector.report.facts import View
from inspector.report.lines import glyphs
from inspector.report.lines.spans import Line, LineSheet, Span, Tone, in_words, safe
from inspector.report.run_answers import Block
from loop_core.turn.machine import TRANSITIONS
from loop_core.turn.policy import Signal
from loop_core.turn.state import State
from loop_core.turn.trace import Record, Step

VISITED, UNVISITED, NOW = "●", "○", "▶"

Edges = Mapping[State, Mapping[State, tuple[Signal, ...]]]


@cache
def edges() -> Edges:
    """State -> the states it leads to, each with its signals, in the order of the table."""
    found: dict[State, dict[State, list[Signal]]] = {state: {} for state in State}
    for (state, signal), row in TRANSITIONS.items():
        found[state].setdefault(row.to, []).append(signal)
    return {state: {to: tuple(signals) for to, signals in leads.items()} for state, leads in found.items()}


@cache
def parents() -> Mapping[State, State]:
    """The parent of each state in the drawing: the first state that leads to it, nearest to Request."""
    found: dict[State, State] = {}
    # Breadth first, so that each state hangs below the state nearest to Request.
    queue = [State.REQUEST]
    while queue:
        state = queue.pop(0)
        for to in edges()[state]:
            if to not in found and to is not State.REQUEST:
                found[to] = state
                queue.append(to)
    return found


Row = tuple[str, State, tuple[State, ...]]


@cache
def tree() -> tuple[Row, ...]:
    """The rows of the drawing: branches, state, and the further states that it leads to."""
    return tuple(_branch(State.REQUEST, "", ""))


def _branch(state: State, prefix: str, below: str) -> Iterator[Row]:
    children = [child for child, parent in parents().items() if parent is state]
    yield prefix, state, tuple(to for to in edges()[state] if to not in children)
    for child in children:
        mark, blank = ("└", " ") if child is children[-1] else ("├", "│")
        yield from _branch(child, below + mark, below + blank)


def visits(steps: Sequence[Step], first: int, here: int) -> Counter[State]:
    """How often each state was entered from step `first` to `here`."""
    return Counter(step.turn.state for step in steps[first : here + 1])


QUIET = frozenset({State.ABORT, State.UNRECORDED})
"""The states to which nearly every state leads; they are not written beside the others."""


def panel(step: Step, visited: Mapping[State, int], narrow: bool = True) -> list[Line]:
    """The drawing; a narrow one names no targets, so it marks only the transitions back."""
    lines: list[Line] = []
    for prefix, state, back in tree():
        mark, role = _mark(state, step.state, visited)
        spans = [Span(prefix, Tone.RULE), Span(f"{mark} ", role), Span(state.value, role)]
        if visited.get(state, 0) > 1:
            spans.append(Span(f" ×{visited[state]}", Tone.DIM))
        for to in back:
            leads_back = _above(to, state)
            if to not in QUIET and (leads_back or not narrow):
                arrow = "↺" if leads_back else "→"
                spans.append(Span(f" {arrow}" if narrow else f" {arrow} {to.value}", Tone.DIM))
        lines.append(tuple(spans))
    return lines


def _above(to: State, state: State) -> bool:
    """Whether `to` is above `state` in the drawing, so that the transition to it leads back."""
    while state is not State.REQUEST:
        state = parents()[state]
        if state is to:
            return True
    return False


def _mark(state: State, now: State, visited: Mapping[State, int]) -> tuple[str, Tone]:
    if state is now:
        return NOW, Tone.HERE
    return (VISITED, Tone.PLAIN) if visited.get(state) else (UNVISITED, Tone.AHEAD)


def moves(step: Step, following: Step | None) -> list[Line]:
    """The transitions into and out of this state under the policy; those taken are marked."""
    signal_before = step.signal.value if step.signal else "the first request"
    lines: list[Line] = [(Span("by   ", Tone.KEY), Span(signal_before, Tone.STRONG))]
    signal_after = following.signal if following is not None and following.previous_state is not None else None
    # Transitions on signals that the policy never raises would mislead, and are left out.
    believed = {signal for signals in step.turn.policy.signals.values() for signal in signals}
    ways = [
        (signal, to) for to, signals in edges()[step.state].items() for signal in signals
        if step.state is not State.EVALUATE_STOP or signal in believed
    ]
    for signal, to in sorted(ways, key=lambda way: way[0] is not signal_after):
        here = signal is signal_after
        lines.append((
            Span("next " if here else "  or ", Tone.KEY if here else Tone.AHEAD),
            Span(signal.value, Tone.STRONG if here else Tone.AHEAD),
            Span(f" → {to.value}", Tone.PLAIN if here else Tone.AHEAD),
        ))
    if not ways:
        lines.append((Span("     nothing follows", Tone.AHEAD),))
    return lines


def path_around(steps: Sequence[Step], first: int, here: int, end: int) -> Line:
    """One line of the path: the state before, the current one, and the next."""
    spans: list[Span] = []
    for index in range(max(first, here - 1), min(here + 2, end)):
        if spans:
            spans.append(Span(" → ", Tone.DIM))
        state = steps[index].state.value
        spans.append(Span(f"{NOW} {state}", Tone.HERE) if index == here else
                     Span(state, Tone.PLAIN if index < here else Tone.AHEAD))
    signal = steps[here].signal
    return (*spans, Span(f"  by {signal.value}" if signal else "  by the first request", Tone.DIM))


def path(steps: Sequence[Step], first: int, here: int, end: int) -> list[Line]:
    """The path of a run as one paragraph: the states before, the current one, and the states after it."""
    spans: list[Span] = []
    for index in range(first, end):
        role = Tone.HERE if index == here else Tone.PLAIN if index < here else Tone.AHEAD
        if spans:
            signal = steps[index].signal
            spans.append(Span(f" ─{signal.value if signal else ''}→ ", Tone.DIM if index <= here else Tone.AHEAD))
        spans.append(Span(f"{NOW}{steps[index].state.value}" if index == here else steps[index].state.value, role))
    return [tuple(spans)]


def sheet_lines(steps: Sequence[Step], first: int, here: int, end: int) -> list[Line]:
    """The whole view: the drawing, the transitions, and the path."""
    step = steps[here]
    following = steps[here + 1] if here + 1 < end else None
    visited = visits(steps, first, here)
    return [
        *panel(step, visited, narrow=False), (), (Span("WHERE IT LEADS", Tone.TITLE),), *moves(step, following), (),
        (Span("PATH", Tone.TITLE),), *path(steps, first, here, end),
    ]


# -- The structured events of a turn, with those of the current step marked ------------------------------------------

SHOWN_APART = frozenset({"event", "turn_id", "provider", "model"})
_ROLES: Mapping[str, Tone] = {
    "normalized_reason": Tone.NORMALIZED, "raw_reason": Tone.RAW, "terminal_reason": Tone.STRONG,
}


def events(view: View, block: Block, here: int) -> LineSheet:
    """The sheet of the events of one run."""
    lines: list[Line] = []
    records: list[Record] = []
    focus = 0
    for index in range(block.first, block.end):
        step = view.effective_step(index)
        for record in step.records:
            if index <= here:
                focus = len(lines)
            lines += _record(record, index, here)
            records.append(record)
    if not lines:
        lines = [(Span("no events in this turn", Tone.DIM),)]
    return LineSheet(lines, focus, lambda: "\n".join(json.dumps(record, ensure_ascii=False) for record in records))


def _record(record: Record, index: int, here: int) -> list[Line]:
    mark = glyphs.AT_CURSOR if index == here else glyphs.PAST if index < here else glyphs.AHEAD
    name = Tone.STRONG if index <= here else Tone.AHEAD
    gutter = Span(f"{mark} ", Tone.RULE)
    first = Span(f"{glyphs.HERE} ", Tone.HERE) if index == here else gutter
    head: Line = (first, Span(str(record["event"]), name), Span(f"  step {index + 1:,}", Tone.DIM))
    lines = [head]
    for key, value in record.items():
        if key not in SHOWN_APART:
            lines.append((gutter, Span(f"  {key:<25}", Tone.KEY), safe(in_words(value), _ROLES.get(key, Tone.PLAIN))))
    who = " · ".join(str(record[key]) for key in ("provider", "model") if record.get(key))
    lines.append((gutter, Span(f"  {'provider, model':<25}", Tone.KEY), safe(who, Tone.DIM)))
    lines.append((gutter,))
    return lines
