"""The answers of a run as every view shows them: recorded ones by their index, simulated ones made from their step."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.report.facts import ResponseFacts, View
from inspector.report.recut import exchange_of, place_of, why_of
from inspector.sessions.values import Link
from loop_core.turn import Responded, State

UNRECORDED = -1
"""The index of an answer that is in no recording."""


def answered(view: View, step: int) -> int | None:
    """The step that brought the answer at hand; None before the first."""
    steps = view.steps
    if steps[step].turn.evaluated is None:
        return None
    while not isinstance(steps[step].event, Responded):
        step -= 1
    return step


def answer_at(view: View, step: int) -> ResponseFacts | None:
    """The answer at hand at a step; None before the first."""
    index = view.steps[step].response
    if index is not None:
        return view.responses[index]
    at = answered(view, step)
    return None if at is None else _simulated(view, at)


def answers_of(view: View, first: int, end: int) -> Iterator[tuple[int, ResponseFacts]]:
    """The answers that the steps `first` to `end` took in, each with its step."""
    for step in range(first, end):
        if isinstance(view.steps[step].event, Responded):
            found = answer_at(view, step)
            if found is not None:
                yield step, found


def is_simulated(view: View, end: int) -> bool:
    """Whether any answer of the run that ends before step `end` is in no recording."""
    return any(segment.response is None for answer in view.steps[end - 1].turn.answers for segment in answer)


def _simulated(view: View, at: int) -> ResponseFacts:
    step = view.steps[at]
    event, seen, before = step.event, step.turn.evaluated, step.before
    assert isinstance(event, Responded)  # noqa: S101 - `answered` stops at one
    assert seen is not None  # noqa: S101 - such a step has looked at its answer
    assert before is not None  # noqa: S101 - and something was asked before it
    turn = view.turn_of(at)
    after = view.steps[at + 1] if at + 1 < turn.run.end else step
    opening = view.replay.case.loaded.exchanges[turn.responses[0]]
    link = Link(UNRECORDED, place_of(before), before.sent.ordinal if before.sent else 0, why_of(event.recut))
    return ResponseFacts(
        UNRECORDED, exchange_of(opening, event, before), seen.judged, seen.verdicts, link, turn.id,
        len(step.turn.answers[-1]), after.state if after.came_from is State.EVALUATE_STOP else None,
        "never saw this answer: it is in no recording", at, event.recut,
    )
