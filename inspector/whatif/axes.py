"""The axes of a grid: which limits vary, how their values are typed, and the default axes.

    1..6                 every whole number
    64..512/64           in steps
    64..4096*2           each the double of the last
    64,128,recorded      a list of any of these; max_tokens may stay as recorded, the total at its default
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inspector.config.settings import INITIAL, Settings, settings_of
from inspector.replay.case import Case
from inspector.replay.tokens import impossible
from inspector.sessions.recording import Link, TurnPlace
from loop_core.errors import CallerError
from loop_core.turn.limits import GUARDS, MOST
from loop_core.turn.state import Turn
from loop_core.turn.trace import limit_usage
from loop_core.values import Request

Value = int | None
"""None: as recorded (max_tokens), or derived from max_tokens (total tokens)."""

ATTEMPTS, TOKENS = "continuation_max_attempts", "continuation_max_total_completion_tokens"
SHORT = {name: short for name, short, _, _ in limit_usage(Turn("", Request("")))}
"""Limit -> the short name under which every screen shows it; both may be typed."""
OLDER = {"tokens": "continuation_max_total_completion_tokens", "chars": "continuation_max_output_chars"}
"""Shorter names that may be typed too; they are not shown, since they do not bound the output of the whole turn."""
NAMES = (*dict.fromkeys(guard.limit for guard in GUARDS), INITIAL)
"""What may be an axis: every limit that a replay looks at, and the initial max_tokens."""

MOST_VALUES = 10_000
MOST_CELLS = 100_000


@dataclass(frozen=True, slots=True)
class Axis:
    """One limit and its values, ascending, with None last."""

    name: str
    values: tuple[Value, ...]

    @property
    def short(self) -> str:
        """The displayed name."""
        return SHORT.get(self.name, self.name)

    def value_text(self, value: Value) -> str:
        """A value as displayed and as it may be typed."""
        if value is None:
            return "recorded" if self.name == INITIAL else "default"
        return f"{value:,}"


def size_of(value: Value) -> float:
    """A bound as a number; None is none at all, and larger than any."""
    return float("inf") if value is None else value


def parse_axes(texts: Sequence[str]) -> tuple[Axis, ...]:
    """Parses `NAME=SPEC` words of a command line, one axis each.

    Raises:
        CallerError: an unknown name, a name twice, a value that is not a number or out of range, too many cells.
    """
    axes: list[Axis] = []
    full = {**{short: name for name, short in SHORT.items()}, **OLDER}
    for text in texts:
        name, equals, spec = text.partition("=")
        name = full.get(name.strip(), name.strip())
        if not equals:
            raise CallerError(f"--grid {text!r}: expected NAME=SPEC, such as continuation_max_attempts=1..6")
        if name not in NAMES:
            raise CallerError(f"--grid {name!r}: not a limit that a replay uses; expected one of {', '.join(NAMES)}")
        if any(axis.name == name for axis in axes):
            raise CallerError(f"--grid {name}: given twice; put all values into one list")
        axes.append(Axis(name, values_of(name, spec)))
    cell_count(axes)
    return tuple(axes)


def cell_count(axes: Iterable[Axis]) -> int:
    """The number of cells that the axes make.

    Raises:
        CallerError: too many.
    """
    cells = 1
    for axis in axes:
        cells *= len(axis.values)
    if cells > MOST_CELLS:
        raise CallerError(f"the grid has {cells:,} cells; at most {MOST_CELLS:,} are run")
    return cells


_RANGE = re.compile(r"([0-9_]+)\.\.([0-9_]+)(?:([/*])([0-9_]+))?")


def values_of(name: str, spec: str) -> tuple[Value, ...]:
    """The values of one axis from its spec.

    Raises:
        CallerError: no number or range, or a value that the limit does not take.
    """
    found: set[Value] = set()
    for part in spec.split(","):
        found.update(_part(name, part.strip()))
        if len(found) > MOST_VALUES:
            raise CallerError(f"--grid {name}: more than {MOST_VALUES:,} values")
    numbers = sorted(value for value in found if value is not None)
    for value in (*numbers[:1], *numbers[-1:], *([None] if None in found else [])):
        settings_of({name: _typed(value)}, Settings())  # the limit itself says what it takes
    return (*numbers, *([None] if None in found else []))


def _typed(value: Value) -> str:
    return "none" if value is None else str(value)


def _part(name: str, text: str) -> Iterable[Value]:
    if text.lower() in ("none", "default", "recorded"):
        return (None,)
    if re.fullmatch(r"[0-9][0-9_]{0,17}", text):
        return (int(text),)
    match = _RANGE.fullmatch(text)
    if match is None:
        raise CallerError(f"--grid {name}: {text!r} is neither a number nor a range such as "
                          "1..6, 64..512/64 or 64..4096*2")
    low, high, by = int(match[1]), int(match[2]), int(match[4] or 1)
    if low > high:
        raise CallerError(f"--grid {name}: {text!r} begins above its end")
    if match[3] == "*":
        if by < 2 or low < 1:
            raise CallerError(f"--grid {name}: {text!r} never grows; a factor is at least 2, and the first value 1")
        return _geometric(low, high, by)
    if by < 1:
        raise CallerError(f"--grid {name}: {text!r} never grows; a step is at least 1")
    if (high - low) // by >= MOST_VALUES:
        raise CallerError(f"--grid {name}: more than {MOST_VALUES:,} values")
    return range(low, high + 1, by)


def _geometric(low: int, high: int, factor: int) -> list[int]:
    values = [low]
    while values[-1] * factor <= high:
        values.append(values[-1] * factor)
    return values


def default_axes(case: Case, simulate: bool) -> tuple[Axis, ...]:
    """The default axes: attempts from 0 to 6 or the recorded number, by budgets around the recorded max_tokens.

    Over a recording max_tokens changes nothing, so the total is varied itself. Where no request names a cap, its
    place is taken by the longest response. Where not all name the same, what each was recorded with stands beside.
    """
    asked = max((_continuations(turn.links) for turn in case.recording.turns), default=0)
    attempts = Axis(ATTEMPTS, tuple(range(max(6, asked) + 1)))
    caps = Counter(
        each.request.max_tokens for each in case.recording.exchanges
        if each.request is not None and (each.request.max_tokens or 0) > 0
    )
    usual = caps.most_common(1)[0][0] if caps else max(
        (each.response.usage.output_tokens or 0 for each in case.recording.exchanges
         if each.response.usage and impossible(each.response) is None), default=0
    )
    if not usual:
        return (attempts,)
    around = sorted({max(1, usual // 4), max(1, usual // 2), usual, usual * 2, usual * 4})
    if usual // 4 > MOST:
        return (attempts,)  # no budget that anybody could set
    if simulate:
        recorded = () if len(caps) == 1 and caps.total() == len(case.recording.exchanges) else (None,)
        return attempts, Axis(INITIAL, (*(value for value in around if value <= MOST), *recorded))
    return attempts, Axis(TOKENS, tuple(usual * by for by in (1, 2, 4, 8, 16) if usual * by <= MOST))


def _continuations(links: Sequence[Link]) -> int:
    return sum(link.place is TurnPlace.CONTINUATION for link in links)
