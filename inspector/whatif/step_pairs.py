"""Aligns the steps of two turns and folds equal ones: one turn in two runs, or any two turns.

Two runs of one turn look at the same responses, so a step stands beside a step of the other run by the responses that
came before it. Two different turns are aligned by the longest sequences of moves that they have in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby, zip_longest
from typing import Any, NamedTuple

from inspector.replay import TurnRun
from loop_core.turn.state import Finish, RunTools, Send, State
from loop_core.turn.trace import Step, step_key


class StepPair(NamedTuple):
    """A step of the left turn and a step of the right one, by index; None if one has none there."""

    left: int | None
    right: int | None
    same: bool
    """Whether they are the same move with the same outcome."""


class EqualSteps(NamedTuple):
    """Consecutive steps that both turns share."""

    left: int
    """The first of them, by its index."""
    right: int
    size: int
    """How many they are."""


SMALL = 2_000
"""Steps up to which two turns are searched for common sequences; longer ones stand beside each other as they come."""


def move_key(step: Step) -> tuple[Any, ...]:
    """The identity of steps of different turns: the move, the stop word, the request, and the end.

    Which response it was, and what was spent by then, is another in every turn.
    """
    turn, seen = step.turn, step.turn.evaluation
    word = seen.word if seen is not None and step.state is State.EVALUATE_STOP else None
    sends = tuple((each.place, each.ordinal, each.method) for each in step.effects if isinstance(each, Send))
    calls = tuple(tuple((verdict.call.name, verdict.admission) for verdict in each.batch)
                  for each in step.effects if isinstance(each, RunTools))
    ends = tuple(each.terminal for each in step.effects if isinstance(each, Finish))
    return (turn.state, step.signal, word, sends, calls, ends)


def step_pairs(left: TurnRun, right: TurnRun) -> list[StepPair]:
    """Every step of one turn in two runs, in order."""
    if left.steps is right.steps:
        return [StepPair(left.first + at, right.first + at, True) for at in range(len(left.steps))]
    found: list[StepPair] = []
    for one, other in _by_answers(left.steps, right.steps):
        same = one is not None and other is not None and _same(left.steps[one], right.steps[other])
        found.append(StepPair(_index(left, one), _index(right, other), same))
    return found


def move_pairs(left: TurnRun, right: TurnRun) -> list[StepPair]:
    """Every step of two different turns, in order; steps with equal moves are paired."""
    old, new = ([move_key(step) for step in run.steps] for run in (left, right))
    if max(len(old), len(new)) > SMALL:
        blocks = [("replace", 0, len(old), 0, len(new))]
    else:
        blocks = list(SequenceMatcher(None, old, new, autojunk=False).get_opcodes())
    found: list[StepPair] = []
    for _, i, j, k, m in blocks:
        for one, other in zip_longest(range(i, j), range(k, m)):
            same = one is not None and other is not None and old[one] == new[other]
            found.append(StepPair(_index(left, one), _index(right, other), same))
    return found


def first_difference_of(left: TurnRun, right: TurnRun) -> StepPair | None:
    """The first steps in which one turn differs between two runs; None if none do."""
    return next((pair for pair in step_pairs(left, right) if not pair.same), None)


def _index(run: TurnRun, at: int | None) -> int | None:
    return None if at is None else run.first + at


def _same(one: Step, other: Step) -> bool:
    return one is other or step_key(one) == step_key(other)


def _by_answers(left: Sequence[Step], right: Sequence[Step]) -> Iterator[tuple[int | None, int | None]]:
    for one, other in zip_longest(_groups(left), _groups(right), fillvalue=range(0)):
        yield from zip_longest(one, other)


def _groups(steps: Sequence[Step]) -> list[range]:
    """The steps in groups, each but the first beginning with the evaluation of a response."""
    starts = [index for index, step in enumerate(steps) if step.state is State.EVALUATE_STOP]
    return [range(first, end) for first, end in zip([0, *starts], [*starts, len(steps)], strict=True)]


def fold_pairs(pairs: Sequence[StepPair]) -> list[StepPair | EqualSteps]:
    """The pairs with two or more consecutive equal ones folded into one."""
    found: list[StepPair | EqualSteps] = []
    for same, group in groupby(pairs, key=lambda pair: pair.same):
        few = list(group)
        first = few[0]
        if same and len(few) > 1 and first.left is not None and first.right is not None:
            found.append(EqualSteps(first.left, first.right, len(few)))
        else:
            found += few
    return found


def unfold_pair(equal: EqualSteps) -> list[StepPair]:
    """The pairs of a folded one."""
    return [StepPair(equal.left + at, equal.right + at, True) for at in range(equal.size)]
