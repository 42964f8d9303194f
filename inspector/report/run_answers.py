"""Finds the answers of a run for every view: a recorded answer by its index; a simulated one is built from the step
that received it.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.replay.case import has_unrecorded_answer
from inspector.report.facts import ResponseFacts, View
from inspector.report.judged_turn import exchange_of, place_of, why_of
from inspector.sessions.recording import Link
from loop_core.turn.state import ProviderResponse, State

UNRECORDED = -1
"""The index of an answer that is in no recording."""


def answering_step(view: View, step: int) -> int | None:
    """The step that received the current response; None before the first."""
    steps = view.steps
    if steps[step].turn.evaluation is None:
        return None
    while not isinstance(steps[step].event, ProviderResponse):
        step -= 1
    return step


def answer_at(view: View, step: int) -> ResponseFacts | None:
    """The current response at a step; None before the first."""
    index = view.steps[step].response
    if index is not None:
        return view.responses[index]
    at = answering_step(view, step)
    return None if at is None else _simulated_facts(view, at)


def answers_of(view: View, first: int, end: int) -> Iterator[tuple[int, ResponseFacts]]:
    """The responses that the steps `first` to `end` received, each with its step."""
    for step in range(first, end):
        if isinstance(view.steps[step].event, ProviderResponse):
            found = answer_at(view, step)
            if found is not None:
                yield step, found


def is_simulated(view: View, end: int) -> bool:
    """Whether any response of the run that ends before step `end` was never recorded."""
    return has_unrecorded_answer(view.steps[end - 1].turn)


def _simulated_facts(view: View, at: int) -> ResponseFacts:
    step = view.steps[at]
    event, seen, before = step.event, step.turn.evaluation, step.before
    assert isinstance(event, ProviderResponse)  # noqa: S101 - `answering_step` stops at one
    assert seen is not None  # noqa: S101 - such a step has evaluated its answer
    assert before is not None  # noqa: S101 - a request precedes every answer
    turn = view.turn_of(at)
    after = view.steps[at + 1] if at + 1 < turn.run.end else step
    # A simulated answer has no request of its own in the recording; it takes the address and the format of its turn's.
    opening = view.replay.case.recording.exchanges[turn.responses[0]]
    link = Link(UNRECORDED, place_of(before), before.last_send.ordinal if before.last_send else 0, why_of(event.recut))
    return ResponseFacts(
        UNRECORDED, exchange_of(opening, event, before), seen.judgement, seen.verdicts, link, turn.id,
        len(step.turn.answers[-1]), after.state if after.previous_state is State.EVALUATE_STOP else None,
        "never saw this answer: it is in no recording", at, event.recut,
    )
