"""A what-if: the same case under other settings, beside the run that it was made from; and any two runs side by side.

A branch never changes what it was made from, and shares with it every step that its settings do not change.
"""

from __future__ import annotations

from typing import NamedTuple

from inspector.replay import Replay
from inspector.report.facts import TurnFacts, View, view
from inspector.rerun import rerun
from inspector.settings import Settings, name_of
from inspector.whatif.alignment import rows
from loop_core.frozen import frozen
from loop_core.trace import first_difference
from loop_core.turn import State


@frozen(eq=False, repr=False)
class Branch:
    """One run beside another: beside the one that it was made from, if nothing else is said."""

    name: str
    """What was changed, as an operator would say it: `attempts=5`, `attempts=5 from step 7`."""
    original: View
    """The other run."""
    view: View
    difference: int | None
    """The first step that differs; None where nothing does."""
    changed: tuple[TurnFacts, ...]
    """The turns that end otherwise, as the branch sees them."""
    unrecorded: tuple[TurnFacts, ...]
    """The turns in which the branch asks for more than was recorded."""


def branch(parent: View, settings: Settings, since: int = 0) -> Branch:
    """Runs the case again under other settings, which hold from step `since` on.

    Raises:
        CallerError: the parent has no such step.
    """
    made = rerun(parent.replay, settings, since)
    return compare(parent, view(made, parent), name_from(parent.replay.settings, settings, since))


def name_from(before: Settings, after: Settings, since: int) -> str:
    """What a branch changes against its parent, and from which step on."""
    return name_of(before, after) + (f" from step {since + 1}" if since else "")


def compare(left: View, right: View, name: str = "") -> Branch:
    """Any two runs of one recording: the right one as told beside the left one."""
    changed = tuple(now for then, now in zip(left.turns, right.turns, strict=True) if then is not now and _end(
        then) != _end(now))
    unrecorded = tuple(turn for turn in right.turns if turn.final_state is State.UNRECORDED)
    return Branch(name, left, right, first_difference(left.replay.trace, right.replay.trace), changed, unrecorded)


def _end(turn: TurnFacts) -> tuple[State, str, str]:
    return (turn.final_state, turn.terminal, turn.merged.text)


class Preview(NamedTuple):
    """What a change would do, before it is made a branch."""

    difference: int | None
    """The first step that would differ."""
    steps: int
    """How many steps would be others, or would no longer be made."""
    turns: tuple[int, ...]
    """The turns that would end otherwise, by their index."""


def preview(run: Replay, settings: Settings, since: int = 0) -> Preview:
    """What a change would do: cheap enough to ask while it is typed.

    Raises:
        CallerError: the run has no such step.
    """
    made = rerun(run, settings, since)
    steps, turns = 0, []
    for index, (old, new) in enumerate(zip(run.turns, made.turns, strict=True)):
        if old.steps is new.steps:
            continue
        steps += sum(not row.same for row in rows(old, new))
        then, now = run.trace.steps[old.decided].turn, made.trace.steps[new.decided].turn
        ends = [(turn.outcome or turn.state, turn.terminal, turn.merged().text) for turn in (then, now)]
        if ends[0] != ends[1]:
            turns.append(index)
    return Preview(first_difference(run.trace, made.trace), steps, tuple(turns))
