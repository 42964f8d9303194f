"""A grid of limits as a value: its axes, its cells, and the operator's request. An axis is written in these forms:

    1..6                 every whole number
    64..512/64           in steps of 64
    64..4096*2           each twice the one before
    64,128,recorded      a list of such forms; `recorded` is the recorded max_tokens, `default` the default total
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise, product
from math import prod

from inspector.config.settings import FULL_NAMES, INITIAL, Settings, command, settings_of
from inspector.replay.adjustments import raised_limits, with_recorded_rounds
from inspector.replay.case import Case
from inspector.replay.tokens import plausible_usage
from inspector.report.lines.spans import count_of
from inspector.sessions.recording import Exchange, TurnPlace
from loop_core.errors import CallerError
from loop_core.turn.limits import GUARDS, MOST, SHORT_NAMES, Limits, Spend
from loop_core.turn.state import State
from loop_core.turn.trace import Fidelity

Value = int | None
"""A value of an axis. None: as recorded (max_tokens), derived from max_tokens (total tokens), or without a bound."""

ATTEMPTS, TOKENS = "continuation_max_attempts", "continuation_max_total_completion_tokens"
OLDER_NAMES = {"tokens": TOKENS, "chars": "continuation_max_output_chars"}
"""Older name of a limit that may still be typed -> limit. It is not shown: it suggests a bound on the whole turn."""
NAMES = (*dict.fromkeys(guard.limit for guard in GUARDS), INITIAL)
"""The names of the limits that may be an axis: those that a replay checks, and the initial max_tokens."""

COUNTED: Mapping[str, tuple[str, str]] = {
    ATTEMPTS: ("continuation", "continuations"),
    TOKENS: ("token of continuations", "tokens of continuations"),
    "continuation_max_output_chars": ("character", "characters"),
    "continuation_tool_repair_attempts": ("repair", "repairs"),
}
"""Limit -> the noun for what it counts, singular and plural."""

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
        return SHORT_NAMES.get(self.name, self.name)

    def value_text(self, value: Value) -> str:
        """A value as displayed and as it may be typed."""
        if value is None:
            return "recorded" if self.name == INITIAL else "default"
        return f"{value:,}"

    def assignment(self, value: Value) -> str:
        """A value with the name of the axis: `attempts=5`."""
        return f"{self.short}={self.value_text(value)}"

    def phrase(self, value: Value) -> str:
        """A value in a sentence after "with": `up to 5 continuations`, `max_tokens 64`."""
        counted = COUNTED.get(self.name)
        if counted is None or value is None:
            return f"{self.short} {self.value_text(value)}"
        return f"up to {count_of(value, *counted)}" if value else f"no {counted[1]}"


def size_of(value: Value) -> float:
    """A bound as a number for comparison; None (no bound) is larger than any."""
    return float("inf") if value is None else value


def parse_axes(texts: Sequence[str]) -> tuple[Axis, ...]:
    """Parses `NAME=SPEC` words of a command line, one axis each. Raises `CallerError` for an unknown or repeated name,
    a value that is not a number or is out of range, or too many cells."""
    axes: list[Axis] = []
    full = {**FULL_NAMES, **OLDER_NAMES}
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
    """The number of cells that the axes make. Raises `CallerError` if there are too many."""
    cells = prod(len(axis.values) for axis in axes)
    if cells > MOST_CELLS:
        raise CallerError(f"the grid has {cells:,} cells; at most {MOST_CELLS:,} are run")
    return cells


_NUMBER = r"([0-9]{1,18})"
_RANGE = re.compile(rf"{_NUMBER}\.\.{_NUMBER}(?:([/*]){_NUMBER})?")


def values_of(name: str, spec: str) -> tuple[Value, ...]:
    """The values of an axis from its spec. Raises `CallerError` for an invalid spec, or a value that its limit refuses.
    """
    found: set[Value] = set()
    for part in spec.split(","):
        found.update(_parse_part(name, part.strip()))
        if len(found) > MOST_VALUES:
            raise CallerError(f"--grid {name}: more than {MOST_VALUES:,} values")
    values = sorted(found, key=size_of)
    for value in (values[0], *values[-2:]):  # the largest number may come before None
        settings_of({name: "none" if value is None else str(value)}, Settings())  # raises if the limit refuses it
    return tuple(values)


def _parse_part(name: str, text: str) -> Iterable[Value]:
    if text.lower() in ("none", "default", "recorded"):
        return (None,)
    digits = text.replace("_", "")
    if re.fullmatch(_NUMBER, digits):
        return (int(digits),)
    match = _RANGE.fullmatch(digits)
    if match is None:
        raise CallerError(f"--grid {name}: {text!r} is neither a number nor a range such as "
                          "1..6, 64..512/64 or 64..4096*2")
    low, high, by = int(match[1]), int(match[2]), int(match[4] or 1)
    if low > high:
        raise CallerError(f"--grid {name}: {text!r} begins above its end")
    if match[3] == "*":
        if by < 2 or low < 1:
            raise CallerError(f"--grid {name}: {text!r} never grows; a factor is at least 2, and the first value 1")
        values = [low]
        while values[-1] * by <= high:
            values.append(values[-1] * by)
        return values
    if by < 1:
        raise CallerError(f"--grid {name}: {text!r} never grows; a step is at least 1")
    if (high - low) // by >= MOST_VALUES:
        raise CallerError(f"--grid {name}: more than {MOST_VALUES:,} values")
    return range(low, high + 1, by)


def default_axes(case: Case, simulate: bool) -> tuple[Axis, ...]:
    """The default axes: attempts from 0 to 6 or the recorded number, and budgets around the recorded max_tokens, one of
    them enough for the longest answer with its continuations. Without simulation max_tokens changes nothing, so the
    total is varied instead. If no request has a cap, the size of the longest response is used. If requests have
    different caps, the value `recorded` (each with its own) is added."""
    continuations = [sum(link.place is TurnPlace.CONTINUATION for link in turn.links) for turn in case.recording.turns]
    attempts = Axis(ATTEMPTS, tuple(range(max([6, *continuations]) + 1)))
    caps = Counter(each.request.max_tokens for each in case.recording.exchanges
                   if each.request is not None and (each.request.max_tokens or 0) > 0)
    usual = caps.most_common(1)[0][0] if caps else max(map(_tokens, case.recording.exchanges), default=0)
    if not usual or usual // 4 > MOST:  # no operator could set such a budget
        return (attempts,)
    if simulate:
        around = sorted({max(1, usual // 4), max(1, usual // 2), usual, usual * 2, usual * 4,
                         max(usual, _longest_output(case))})
        recorded = () if len(caps) == 1 and caps.total() == len(case.recording.exchanges) else (None,)
        return attempts, Axis(INITIAL, (*(value for value in around if value <= MOST), *recorded))
    return attempts, Axis(TOKENS, tuple(usual * by for by in (1, 2, 4, 8, 16) if usual * by <= MOST))


def _longest_output(case: Case) -> int:
    """The output tokens of the longest answer with its continuations, as far as they were counted."""
    longest = 0
    for turn in case.recording.turns:
        whole = 0
        for link in turn.links:
            before = whole if link.place is TurnPlace.CONTINUATION else 0
            whole = before + _tokens(case.recording.exchanges[link.index])
            longest = max(longest, whole)
    return longest


def _tokens(exchange: Exchange) -> int:
    usage = plausible_usage(exchange.response)
    return (usage.output_tokens or 0) if usage is not None else 0


# -- The cells, the settings of each, and the end of each turn in each -----------------------------------------------
# A cell is a number; the last axis varies fastest. Results are small: the distinct ends of a turn, and a cell's index.

UNDONE_CODE = 0xFFFFFFFF
"""The code of a cell that was not run."""
SEPARATE_AXES = frozenset({INITIAL, "min_progress_chars", TOKENS})
"""The axes whose values may change a run before a guard stops it, so that their cells need separate runs."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group of cells that differ only in limits that guards check."""

    fixed: Mapping[str, Value]
    cells: array[int]


@dataclass(frozen=True, slots=True)
class End:
    """The end of one turn in one cell, and what the turn spent."""

    state: State
    """The state in which the turn was decided (`Turn.outcome`)."""
    terminal: str
    limit: str
    """The limit that stopped the turn; empty if none did."""
    segments: int
    spend: Spend
    fidelity: str
    needs: tuple[tuple[str, int], ...] = ()
    """The smallest value of each limit with which the turn has this end, to one unit; empty if a guard stopped it."""
    cut_unseen: bool = False
    """Whether a simulated budget cut an answer that the server reports as finished."""
    verdict: str = ""
    """The word of the verdict on the turn."""
    complete: bool = False
    """Whether the turn is complete by its verdict, and neither a varied limit nor an unseen cut ended it."""

    @property
    def simulated(self) -> bool:
        """Whether this end rests on simulated answers."""
        return self.fidelity == Fidelity.SIMULATED

    @property
    def glyph_state(self) -> State:
        """The state whose glyph represents this end."""
        if self.complete:
            return State.COMPLETE
        return State.ABORT_PARTIAL if self.state is State.COMPLETE else self.state


@dataclass(frozen=True)
class Grid:
    """The axes, and the settings that all cells share; an axis overrides the base's value of its limit. Raises
    `CallerError` if there is no axis, or there are too many cells."""

    axes: tuple[Axis, ...]
    base: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        if not self.axes or not cell_count(self.axes):
            raise CallerError("a grid needs at least one axis with one value")

    @cached_property
    def size(self) -> int:
        """The number of cells."""
        return cell_count(self.axes)

    @property
    def names(self) -> tuple[str, ...]:
        """The limits that vary."""
        return tuple(axis.name for axis in self.axes)

    def values(self, cell: int) -> tuple[Value, ...]:
        """The value of each axis in a cell."""
        found: tuple[Value, ...] = ()
        for axis in reversed(self.axes):
            cell, place = divmod(cell, len(axis.values))
            found = (axis.values[place], *found)
        return found

    def cell(self, values: Sequence[Value]) -> int:
        """The cell with these values, one for each axis. Raises `CallerError` for a value that is not on its axis."""
        cell = 0
        for axis, value in zip(self.axes, values, strict=True):
            if value not in axis.values:
                raise CallerError(f"{axis.name}: {value!r} is not on the grid")
            cell = cell * len(axis.values) + axis.values.index(value)
        return cell

    def by_limit(self, values: Sequence[Value]) -> dict[str, Value]:
        """The values of a cell by their limits."""
        return dict(zip(self.names, values, strict=True))

    def limits(self, cell: int, budget: Value = None) -> dict[str, Value]:
        """The values of a cell by their limits; with `budget` as its max_tokens, if given."""
        return self.by_limit(self.values(cell)) | ({} if budget is None else {INITIAL: budget})

    def cap_in(self, values: Sequence[Value]) -> Value:
        """The max_tokens among the values of a cell; None if it is the recorded one."""
        return self.by_limit(values).get(INITIAL)

    def settings(self, cell: int, budget: Value = None) -> Settings:
        """The settings of a cell, from which a branch can be made; with `budget` as its max_tokens, if given."""
        return self.settings_with(self.limits(cell, budget))

    def settings_with(self, values: Mapping[str, Value]) -> Settings:
        """The settings of the base with these limits."""
        typed = {name: "none" if value is None else str(value) for name, value in values.items() if name != INITIAL}
        settings = settings_of(typed, self.base)
        return replace(settings, max_tokens=values[INITIAL]) if INITIAL in values else settings

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The cells grouped by the values of the axes that guards do not check."""
        apart = {name: place for place, name in enumerate(self.names) if name in SEPARATE_AXES}
        cells: dict[tuple[Value, ...], array[int]] = {}
        for cell, values in enumerate(product(*(axis.values for axis in self.axes))):
            cells.setdefault(tuple([values[place] for place in apart.values()]), array("I")).append(cell)
        return tuple(Group(dict(zip(apart, fixed, strict=True)), own) for fixed, own in cells.items())


@dataclass(frozen=True, slots=True)
class TurnGrid:
    """One turn in every cell."""

    id: str
    path: str
    """The file in which the turn begins."""
    ends: tuple[End, ...]
    """The distinct ends of the turn, in the order of the first cells that have them."""
    codes: array[int]
    """For each cell the index of the turn's end in `ends`, or `UNDONE_CODE`."""

    def end(self, cell: int) -> End | None:
        """The end of the turn in a cell; None if the cell was not run."""
        code = self.codes[cell]
        return None if code == UNDONE_CODE else self.ends[code]

    @property
    def is_constant(self) -> bool:
        """Whether the turn ends in the same way in every cell."""
        return len(self.ends) == 1 and UNDONE_CODE not in self.codes


# -- The operator's request ------------------------------------------------------------------------------------------
# The command line and the screen both make their grids here, so that each can show the other's command or keys.
MOST_LISTED = 8
"""The largest number of values that are listed; more are shown as a range."""


@dataclass(frozen=True, slots=True)
class GridRequest:
    """The parameters of a grid, for any session."""

    axes: tuple[Axis, ...] = ()
    """The axes of the grid; empty: the axes that suit the recording (`default_axes`)."""
    simulate: bool | None = None
    """Whether to simulate unrecorded answers; None: if the grid varies max_tokens."""

    @property
    def simulates(self) -> bool:
        """Whether unrecorded answers are simulated."""
        by_axes = not self.axes or any(axis.name == INITIAL for axis in self.axes)
        return by_axes if self.simulate is None else self.simulate

    def grid(self, case: Case, base: Settings) -> Grid:
        """The grid over a case. Raises `CallerError` for too many cells."""
        raised = replace(with_recorded_rounds(case, base), simulate=self.simulates)
        return Grid(self.axes or default_axes(case, self.simulates), raised)

    def command(
        self, grid: Grid, paths: Sequence[str], show: str, api: str | None = None, profile: str | None = None
    ) -> str:
        """The command line that gives the same grid without the app."""
        base = grid.base
        varied = {name: getattr(Limits(), name) for name in (*grid.names, *raised_limits(base)) if name != INITIAL}
        cap = None if INITIAL in grid.names else base.max_tokens
        same = replace(base, limits=replace(base.limits, **varied), explicit=base.explicit - varied.keys(),
                       max_tokens=cap, simulate=cap is not None)
        simulate = {None: [], True: ["--simulate"], False: ["--recorded"]}[self.simulate]
        return " ".join([command(paths, same, api, profile, verb="tune"),
                         *(f"--grid {axis_text(axis)}" for axis in self.axes), *simulate,
                         *([f"--show {show}"] if show != "outcome" else [])])


def axis_text(axis: Axis) -> str:
    """An axis as it can be typed: its values as a range if possible, else as a list."""
    numbers = [value for value in axis.values if value is not None]
    parts = [_range(numbers)] if numbers else []
    return f"{axis.short}=" + ",".join([*parts, axis.value_text(None)] if None in axis.values else parts)


def _range(numbers: Sequence[int]) -> str:
    first, last, count = numbers[0], numbers[-1], len(numbers)
    if count > 2 and last - first == count - 1:
        return f"{first}..{last}"
    if count > MOST_LISTED:
        step, factor = numbers[1] - first, numbers[1] // first if first else 0
        if numbers == list(range(first, last + 1, step)):
            return f"{first}..{last}/{step}"
        if all(one * factor == other for one, other in pairwise(numbers)):
            return f"{first}..{last}*{factor}"
    return ",".join(map(str, numbers))
