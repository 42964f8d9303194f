"""The fields of the form: what may be typed into each, what is in force, and what the engine says against a value."""

from __future__ import annotations

from inspector.config.settings import CHOICES, INITIAL, Settings, parse_assignments, settings_of
from loop_core.errors import CallerError
from loop_core.turn.limits import CONTINUATION_LIMITS, DEFAULT_TOKEN_FACTOR, Limits
from loop_core.turn.state import Turn

FIELDS = (*CONTINUATION_LIMITS, INITIAL)
"""The fields that are typed in."""
WORDS = ("policy", "seam", "method", "profile", "source")
"""The fields that hold one of a few words."""
DEFAULT = "default"
OTHERS = "others"
"""The field for the limits that have none of their own."""
RECORDING, SIMULATION, LIVE = SOURCES = ("recording", "simulation", "live")
"""Who answers a run."""


def words_of(name: str) -> tuple[str, ...]:
    """What a field may hold."""
    if name == "policy":
        from loop_core.turn.presets import POLICIES

        return tuple(POLICIES)
    return SOURCES if name == "source" else (DEFAULT, *CHOICES[name].words)


def word_of(settings: Settings, name: str) -> str:
    """What a field holds at first."""
    if name == "source":
        return SIMULATION if settings.simulate else RECORDING
    value = getattr(settings, name)
    return DEFAULT if value is None else CHOICES[name].written(value)


def in_force(turn: Turn, name: str) -> int | None:
    """The value of a limit, or of the initial max_tokens, in a turn."""
    if name == INITIAL:
        return turn.request.max_tokens
    value: int | None = getattr(turn.limits, name)
    return value


def value_of(turn: Turn, name: str) -> str:
    """What the field holds at first."""
    value = in_force(turn, name)
    return "" if value is None else f"{value}"


def default_of(turn: Turn, name: str) -> str:
    """What an empty field means."""
    if name == INITIAL:
        return "recorded"
    return "default" if getattr(Limits(), name) is None else f"{getattr(Limits(), name)}"


def in_short(turn: Turn, name: str) -> str:
    """What is in force, for the row of a field."""
    value = turn.token_cap if name == CONTINUATION_LIMITS[1] else in_force(turn, name)
    return "not set" if value is None else f"now {value:,}"


def about(turn: Turn, name: str) -> str:
    """What is known of a limit: what is in force, and the default."""
    value = in_force(turn, name)
    if name == INITIAL:
        now = "not set in the request" if value is None else f"{value:,}"
        return f"now {now} · another is answered by the simulation"
    default = getattr(Limits(), name)
    if default is not None:
        return f"now {value:,} · default {default:,}"
    cap = turn.token_cap
    if cap is None:
        return f"no bound now: {DEFAULT_TOKEN_FACTOR} × max_tokens, not set"
    return f"now {cap:,} · default {DEFAULT_TOKEN_FACTOR} × max_tokens"


def differs(turn: Turn, name: str, value: str) -> bool:
    """Whether a typed value is another than the one in force; an empty field means the default where there is one."""
    plain = value.strip().replace(",", "").replace("_", "")
    return plain != value_of(turn, name)


def problem_of(name: str, value: str) -> str | None:
    """What the engine says against a value; None where it takes it."""
    try:
        settings_of(parse_assignments(value.split()) if name == OTHERS else {name: value}, Settings())
    except CallerError as why:
        return str(why).removeprefix(f"{name}: ").removeprefix("--set ")
    return None
