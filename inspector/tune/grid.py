"""A grid as a value: its cells, the settings of each, and how each turn ends in each.

A cell is a number, counted with the last axis fastest. Results are small: the distinct ends of a turn, and for each
cell which of them it is.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

from inspector.settings import INITIAL, Settings, settings_of
from inspector.tune.axes import TOKENS, Axis, Value, counted
from loop_core.errors import CallerError
from loop_core.frozen import replace
from loop_core.limits import Spent
from loop_core.turn import State

UNDONE = 0xFFFFFFFF
"""The code of a cell that was not run."""
APART = frozenset({INITIAL, "min_progress_chars", TOKENS})
"""Axes whose values may change what happens before a guard looks: cells that differ in one need runs of their own."""


@dataclass(frozen=True, slots=True)
class Group:
    """Cells that differ only in limits that guards look at."""

    fixed: Mapping[str, Value]
    cells: array[int]


@dataclass(frozen=True, slots=True)
class End:
    """How one turn ends in one cell, and what it spent until then."""

    state: State
    """Where it was decided (`Turn.outcome`)."""
    terminal: str
    limit: str
    """The limit that stopped it; empty where none did."""
    segments: int
    spent: Spent
    fidelity: str
    needs: tuple[tuple[str, int], ...] = ()
    """Where no guard stopped the turn: the smallest value of each limit that lets it get here, to the unit."""
    cut_unseen: bool = False
    """Whether a simulated budget cut an answer of it and the server calls that answer finished."""

    @property
    def completed(self) -> bool:
        """Whether the turn came to its end by itself, and nothing of its answers is missing."""
        return self.state is State.COMPLETE and not self.cut_unseen

    @property
    def looks(self) -> State:
        """The state whose sign it is shown with."""
        return State.ABORT_PARTIAL if self.cut_unseen and self.state is State.COMPLETE else self.state


@dataclass(frozen=True)
class Grid:
    """The axes, and what all cells share; where the base sets a limit that is varied, the axis goes before it.

    Raises:
        CallerError: no axis, or too many cells.
    """

    axes: tuple[Axis, ...]
    base: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        if not self.axes or not counted(self.axes):
            raise CallerError("a grid needs at least one axis with one value")

    @cached_property
    def size(self) -> int:
        """How many cells there are."""
        return counted(self.axes)

    @property
    def names(self) -> tuple[str, ...]:
        """The limits that are varied."""
        return tuple(axis.name for axis in self.axes)

    def values(self, cell: int) -> tuple[Value, ...]:
        """The value of each axis in a cell."""
        found: list[Value] = []
        for axis in reversed(self.axes):
            cell, place = divmod(cell, len(axis.values))
            found.append(axis.values[place])
        return tuple(reversed(found))

    def cell(self, values: Sequence[Value]) -> int:
        """The cell with these values, one for each axis.

        Raises:
            CallerError: a value that is not on its axis.
        """
        cell = 0
        for axis, value in zip(self.axes, values, strict=True):
            if value not in axis.values:
                raise CallerError(f"{axis.name}: {value!r} is not on the grid")
            cell = cell * len(axis.values) + axis.values.index(value)
        return cell

    def settings(self, cell: int) -> Settings:
        """The settings of a cell: what a branch is made from."""
        return self.settings_with(dict(zip(self.names, self.values(cell), strict=True)))

    def settings_with(self, values: Mapping[str, Value]) -> Settings:
        """The base with these limits set."""
        typed = {name: "none" if value is None else str(value) for name, value in values.items() if name != INITIAL}
        made = settings_of(typed, self.base)
        return replace(made, max_tokens=values[INITIAL]) if INITIAL in values else made

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The cells by the values of the axes that stand apart."""
        apart = [axis for axis in self.axes if axis.name in APART]
        found = []
        for chosen in product(*(axis.values for axis in apart)):
            fixed = dict(zip((axis.name for axis in apart), chosen, strict=True))
            found.append(Group(fixed, array("I", self._cells_with(fixed))))
        return tuple(found)

    def _cells_with(self, fixed: Mapping[str, Value]) -> Iterator[int]:
        places = [
            (axis.values.index(fixed[axis.name]),) if axis.name in fixed else range(len(axis.values))
            for axis in self.axes
        ]
        for chosen in product(*places):
            cell = 0
            for axis, place in zip(self.axes, chosen, strict=True):
                cell = cell * len(axis.values) + place
            yield cell


@dataclass(frozen=True, slots=True)
class TurnGrid:
    """One turn in every cell."""

    id: str
    path: str
    """The file that it begins in."""
    ends: tuple[End, ...]
    """The distinct ends, in the order in which they were met."""
    codes: array[int]
    """For each cell the end's place in `ends`, or `UNDONE`."""

    def end(self, cell: int) -> End | None:
        """How the turn ends in a cell; None where that was not run."""
        code = self.codes[cell]
        return None if code == UNDONE else self.ends[code]

    @property
    def steady(self) -> bool:
        """Whether the turn ends the same in every cell."""
        return len(self.ends) == 1 and UNDONE not in self.codes
