"""A what-if: the same case under other settings, beside the original.

A branch never changes what it was made from. It knows what it changed, where it first differs, and where the recording
ends under it; both views are kept, so that any two can be laid side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from inspector.replay import Replay, Settings, replay
from inspector.report.facts import TurnFacts, View, view
from loop_core.errors import CallerError
from loop_core.limits import CONTINUATION_LIMITS, Limits
from loop_core.trace import first_difference
from loop_core.turn import State

INITIAL = "max_tokens"
"""The setting beside the limits: the initial output cap."""


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


def settings_of(assignments: Mapping[str, str], base: Settings) -> Settings:
    """`base` with `NAME=VALUE` assignments: any limit, and `max_tokens`.

    Raises:
        CallerError: an unknown name, or a value out of range.
    """
    named = {name: value for name, value in assignments.items() if name != INITIAL}
    limits = base.limits.with_set(named)
    cap = base.max_tokens
    if INITIAL in assignments:
        cap = _cap(assignments[INITIAL])
    return Settings(limits, base.policy, cap, base.explicit | named.keys())


def parse_assignments(given: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE` as it stands on a command line.

    Raises:
        CallerError: one of them has no `=`.
    """
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise CallerError(f"--set {text!r}: expected NAME=VALUE, such as continuation_max_attempts=5")
        found[name.strip()] = value.strip()
    return found


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


def name_of(before: Settings, after: Settings) -> str:
    """What differs between two settings, short; `unchanged` where nothing does."""
    words = [
        f"{_short(field.name)}={getattr(after.limits, field.name)}"
        for field in fields(Limits)
        if getattr(before.limits, field.name) != getattr(after.limits, field.name)
        or field.name in after.explicit - before.explicit
    ]
    if before.max_tokens != after.max_tokens:
        words.append(f"max_tokens={after.max_tokens}")
    if before.policy != after.policy:
        words.append(f"policy={after.policy.name}")
    return ", ".join(words) or "unchanged"


def command(paths: Sequence[str], settings: Settings, api: str | None = None, profile: str | None = None) -> str:
    """The command line that gives the same replay headless, read as it was read here."""
    import shlex

    default = Settings()
    words = ["inspector", "replay", *paths]
    for option, given in (("--api", api), ("--profile", profile)):
        words += [option, given] if given is not None else []
    for field in fields(Limits):
        value = getattr(settings.limits, field.name)
        if field.name in settings.explicit or value != getattr(default.limits, field.name):
            words += ["--set", f"{field.name}={value}"]
    if settings.max_tokens is not None:
        words += ["--set", f"{INITIAL}={settings.max_tokens}"]
    if settings.policy != default.policy:
        words += ["--policy", settings.policy.name]
    return shlex.join(words)


def _short(name: str) -> str:
    shorts = dict(zip(CONTINUATION_LIMITS, ("attempts", "tokens", "chars", "repairs"), strict=True))
    return shorts.get(name, name)


def _cap(text: str) -> int | None:
    plain = text.strip().replace(",", "").replace("_", "")
    if plain.lower() in ("", "none", "default", "recorded"):
        return None
    if not (plain.isascii() and plain.isdigit() and len(plain) <= 10) or not 1 <= int(plain) <= 1_000_000_000:
        raise CallerError(f"{INITIAL}: {text!r} is not a whole number from 1 to 1,000,000,000")
    return int(plain)
