"""A what-if: the same case under other settings, beside the original.

A branch never changes what it was made from. It knows what it changed, where it first differs, and where the recording
ends under it; both views are kept, so that any two can be laid side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

from inspector.replay import Replay, replay
from inspector.report.facts import TurnFacts, View, view
from inspector.settings import Settings, name_of
from loop_core.trace import first_difference
from loop_core.turn import State


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Branch:
    """One re-run beside its original."""

    name: str
    """What was changed, as an operator would say it: `attempts=5`."""
    original: View
    view: View
    difference: int | None
    """The first step that differs; None where nothing does."""
    changed: tuple[TurnFacts, ...]
    """The turns that end otherwise, as the branch sees them."""
    unrecorded: tuple[TurnFacts, ...]
    """The turns in which the branch asks for more than was recorded."""


def branch(original: View, settings: Settings) -> Branch:
    """Runs the case again under other settings."""
    made: Replay = replay(original.replay.case, settings)
    seen = view(made)
    changed = tuple(
        now for then, now in zip(original.turns, seen.turns, strict=True)
        if (then.final_state, then.terminal, then.merged.text) != (now.final_state, now.terminal, now.merged.text)
    )
    unrecorded = tuple(turn for turn in seen.turns if turn.final_state is State.UNRECORDED)
    difference = first_difference(original.replay.trace, made.trace)
    return Branch(name_of(original.replay.settings, settings), original, seen, difference, changed, unrecorded)
