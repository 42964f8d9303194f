"""One turn in all cells: as few runs as there are stems, then a lookup for each cell."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from inspector.case import Case, limits_for
from inspector.replay import bounded_by, first_run
from inspector.sessions.values import TurnRecord
from inspector.settings import INITIAL
from inspector.tune.axes import TOKENS, Value, size_of
from inspector.tune.grid import APART, End, Grid, Group
from inspector.tune.stem import Stem, end_at, stem, stops
from loop_core.frozen import replace
from loop_core.limits import Limits, token_stop
from loop_core.trace import Fidelity
from loop_core.turn import State
from loop_core.values import Request

Swept: TypeAlias = tuple[tuple[End, ...], bytes]
"""The distinct ends, and which of them each cell has, group after group, as an array of unsigned ints."""
Shape: TypeAlias = "tuple[tuple[int, ...], array[int]]"
"""The distinct ranks at which cells leave a stem, and which of them each cell has."""
Shapes: TypeAlias = dict[tuple[tuple[int, ...], ...], Shape]
"""Shapes by the ranks along each axis."""
DERIVED = Limits()
"""Limits whose total follows from the initial max_tokens."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """One turn, and what its runs share."""

    case: Case
    record: TurnRecord
    grid: Grid
    shapes: Shapes = field(default_factory=dict)
    """May be shared by the turns of one grid."""
    enough: list[tuple[int, Stem]] = field(default_factory=list)
    """Budgets that were found to cut nothing, with their stems."""

    def swept(self, groups: Sequence[Group]) -> Swept:
        """The turn in the cells of some groups.

        Raises:
            CallerError: the session file holds a limit that does not exist or is out of range.
        """
        ends: dict[End, int] = {}
        codes: list[bytes] = []
        along: dict[int, list[Sequence[int]]] = {}
        met: dict[tuple[int, int], int] = {}
        stems = self._stems(groups)
        for group, made in zip(groups, stems, strict=True):
            if id(made) not in along:
                along[id(made)] = self._along(made)
            ranks, own = self._shape(group, made, along[id(made)])
            for rank in ranks:
                if (id(made), rank) not in met:
                    met[id(made), rank] = ends.setdefault(end_at(made, rank), len(ends))
            places = [met[id(made), rank] for rank in ranks]
            straight = places == list(range(len(places)))
            codes.append(own.tobytes() if straight else array("I", map(places.__getitem__, own)).tobytes())
        return tuple(ends), b"".join(codes)

    # -- what is in force --------------------------------------------------------------------------------------------

    @cached_property
    def limits(self) -> Limits:
        """The limits in force where no axis says otherwise: the operator's, the file's, the defaults."""
        opening = self.case.loaded.exchanges[self.record.links[0].index]
        base = self.grid.base
        return limits_for(self.case, opening.path, replace(base, explicit=base.explicit | set(self.grid.names)))

    def _total(self, group: Group) -> Value:
        """The total of a group, where it is varied, or the one in force."""
        return group.fixed.get(TOKENS, self.limits.continuation_max_total_completion_tokens)

    @cached_property
    def _request(self) -> Request:
        opening = self.case.loaded.exchanges[self.record.links[0].index]
        return opening.request or Request(opening.api)

    @property
    def _asked(self) -> int | None:
        """The output cap that the turn was recorded with."""
        return self._request.max_tokens

    def _initial(self, group: Group) -> Value:
        return group.fixed.get(INITIAL, self.grid.base.max_tokens)

    def _cap(self, total: Value, initial: Value) -> int | None:
        """The bound on output tokens under a total (None: derived) and an initial max_tokens (None: as recorded)."""
        if total is not None:
            return total
        if initial is None or not self.grid.base.simulate:
            return DERIVED.token_cap(self._asked)
        return DERIVED.token_cap(bounded_by(self._asked, initial) or None)

    # -- runs --------------------------------------------------------------------------------------------------------

    def _run(self, groups: Sequence[Group]) -> Stem:
        """The stem of cells that differ only in what guards look at."""
        values: dict[str, Value] = {axis.name: max(axis.values, key=size_of) for axis in self.grid.axes}
        values.update((name, value) for name, value in groups[0].fixed.items() if name not in (INITIAL, TOKENS))
        pairs = [(self._total(group), self._initial(group)) for group in groups]
        total, initial = max(pairs, key=lambda pair: size_of(self._cap(*pair)))
        if TOKENS in values:
            values[TOKENS] = total
        if INITIAL in values:
            values[INITIAL] = initial
        return stem(first_run(self.case, self.record, self.grid.settings_with(values)), self.grid.base.simulate)

    def _stems(self, groups: Sequence[Group]) -> list[Stem]:
        """A stem for each group, as few as will do."""
        if self.grid.base.simulate:
            return [self._simulated(group) for group in groups]
        # Over a recording max_tokens changes only the derived cap, and the total only which guard stops the turn,
        # unless answers do not tell their tokens.
        alike: dict[Value, list[Group]] = {}
        for group in groups:
            alike.setdefault(group.fixed.get("min_progress_chars"), []).append(group)
        shared = {value: self._run(members) for value, members in alike.items()}
        made = [shared[group.fixed.get("min_progress_chars")] for group in groups]
        return [each if each.largest is not None else self._run([group])
                for each, group in zip(made, groups, strict=True)]

    def _simulated(self, group: Group) -> Stem:
        """The stem under one budget. What no budget cuts is the same under every larger one, and needs no run there.

        An answer that was recorded cut stands as it is where the budget is the one that it was recorded with; what
        is known of the other budgets says nothing of those.
        """
        initial, total = self._initial(group), self._total(group)
        bounded = total is not None and (initial is None or total < initial)
        if bounded or not {INITIAL} <= set(group.fixed) <= {INITIAL, TOKENS} or initial in self._recorded_budgets:
            return self._run([group])
        if self._uncut is not None and size_of(initial) >= self._uncut[0]:
            return self._uncut[1]
        for least, made in self.enough:
            if size_of(initial) >= least:
                return made
        made = self._run([group])
        if made.uncut and initial is not None:
            self.enough.append((initial, made))
        return made

    @cached_property
    def _recorded_budgets(self) -> frozenset[Value]:
        """The budgets under which answers may stand as they were recorded: those asked for, and those spent."""
        exchanges = [self.case.loaded.exchanges[link.index] for link in self.record.links]
        asked = {each.request.max_tokens for each in exchanges if each.request is not None}
        usages = [each.response.usage for each in exchanges if each.response.usage is not None]
        return frozenset({None, *asked, *(usage.output_tokens for usage in usages),
                          *(usage.visible_tokens for usage in usages)})

    @cached_property
    def _uncut(self) -> tuple[int, Stem] | None:
        """The turn as it was recorded, and its largest answer, where no budget cut any of it."""
        made = self._run([Group({INITIAL: None}, array("I"))])
        recorded = made.uncut and made.end.fidelity == Fidelity.RECORDED and made.end.state is not State.UNRECORDED
        return (made.largest, made) if recorded and made.largest is not None else None

    # -- cells -------------------------------------------------------------------------------------------------------

    def _shape(self, group: Group, made: Stem, along: list[Sequence[int]]) -> Shape:
        """Where the cells of a group leave a stem; turns that go alike share it."""
        initial = self._initial(group)
        request = self._request if initial is None else replace(self._request, max_tokens=initial)
        cap = token_stop(self._cap(self._total(group), initial), request, made.lacks)
        rows = [stops(made, TOKENS, [cap]), *along]
        key = tuple(map(tuple, rows))
        if key not in self.shapes:
            self.shapes[key] = _shape(rows)
        return self.shapes[key]

    def _along(self, made: Stem) -> list[Sequence[int]]:
        """Where the values of each axis leave a stem."""
        return [stops(made, axis.name, axis.values) for axis in self.grid.axes if axis.name not in APART]


def _shape(rows: Sequence[Sequence[int]]) -> Shape:
    ranks: Sequence[int] = rows[0]
    for row in rows[1:]:
        ranks = [rank if rank < other else other for rank in ranks for other in row]
    distinct = sorted(set(ranks))
    place = {rank: number for number, rank in enumerate(distinct)}
    return tuple(distinct), array("I", map(place.__getitem__, ranks))
