"""What-if: the same recording under other limits, beside the run it started from.

A branch never overwrites: the original stays, every branch keeps its own view and knows the first step at which it
differs. Pure; the screens and `inspector replay` both use it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from inspector.replay import Case, Settings, replay
from inspector.report.facts import TurnFacts, View, view
from loop_core.errors import CallerError
from loop_core.limits import CONTINUATION_LIMITS, Limits
from loop_core.trace import first_difference

ORIGINAL = "original"
MAX_TOKENS = "max_tokens"
"""The name of the initial max_tokens among the assignments."""
FORM = (*CONTINUATION_LIMITS, MAX_TOKENS)
"""What the form offers, in its order."""
SHORT: Mapping[str, str] = {
    "continuation_max_attempts": "attempts",
    "continuation_max_total_completion_tokens": "tokens",
    "continuation_max_output_chars": "chars",
    "continuation_tool_repair_attempts": "repairs",
    MAX_TOKENS: MAX_TOKENS,
}


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """One run of a case under one setting."""

    name: str
    """What was changed, in short words: `attempts=5`."""
    changed: Mapping[str, str]
    """Name -> value as typed: what `--set` takes."""
    view: View
    difference: int | None = None
    """The first step that differs from the original; None for the original, and where none does."""

    @property
    def turn(self) -> TurnFacts | None:
        """The turn in which the difference begins."""
        if self.difference is None or not self.view.turns:
            return None
        return self.view.turn_of(min(self.difference, len(self.view.steps) - 1))


def original(case: Case, settings: Settings) -> Branch:
    """The run that the others are compared with."""
    return Branch(ORIGINAL, {}, view(replay(case, settings)))


def branch(start: Branch, changed: Mapping[str, str]) -> Branch:
    """The same case with some settings changed.

    Raises:
        CallerError: a name that does not exist, or a value out of range.
    """
    case, base = start.view.replay.case, start.view.replay.settings
    settings = with_set(base, changed)
    seen = view(replay(case, settings))
    difference = first_difference(start.view.replay.trace, seen.replay.trace)
    return Branch(name_of(changed), dict(changed), seen, difference)


def with_set(settings: Settings, changed: Mapping[str, str]) -> Settings:
    """Settings with assignments applied: limits by their names, and `max_tokens`.

    Raises:
        CallerError: a name that does not exist, or a value out of range.
    """
    limits = {name: value for name, value in changed.items() if name != MAX_TOKENS}
    made = replace(settings, limits=settings.limits.with_set(limits))
    if MAX_TOKENS not in changed:
        return made
    # The cap that is derived from it has the same range: one rule, one message.
    cap = "continuation_max_total_completion_tokens"
    try:
        checked = Limits().with_set({cap: changed[MAX_TOKENS]})
    except CallerError as why:
        raise CallerError(str(why).replace(cap, MAX_TOKENS)) from None
    return replace(made, max_tokens=checked.continuation_max_total_completion_tokens)


def name_of(changed: Mapping[str, str]) -> str:
    """A branch's name: what was changed."""
    return " ".join(f"{SHORT.get(name, name)}={_bare(value)}" for name, value in changed.items()) or "same limits"


def command_line(paths: Sequence[str], changed: Mapping[str, str], policy: str = "strict") -> str:
    """The headless command that makes the same run."""
    words = ["inspector", "replay", *paths]
    for name, value in changed.items():
        words += ["--set", f"{name}={_bare(value)}"]
    if policy != "strict":
        words += ["--policy", policy]
    return shlex.join(words)


def _bare(value: str) -> str:
    return value.strip().replace(",", "").replace("_", "") or "none"
