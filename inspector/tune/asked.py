"""What an operator asks for: which limits are varied, and whether what was not recorded is simulated.

The command line and the screen make their grids here, so that each can say what the other shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from inspector.case import Case
from inspector.settings import INITIAL, Settings, command
from inspector.tune.axes import Axis, default_axes
from inspector.tune.grid import Grid
from loop_core.limits import Limits

LISTED = 8
"""Values up to which a list says more than the range that it is."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A wish for a grid, over whatever is looked at."""

    axes: tuple[Axis, ...] = ()
    """Empty: those that suit what was recorded (`default_axes`)."""
    simulate: bool | None = None
    """None: where max_tokens is varied."""

    @property
    def simulates(self) -> bool:
        """Whether what was not recorded is simulated."""
        if self.simulate is not None:
            return self.simulate
        return not self.axes or any(axis.name == INITIAL for axis in self.axes)

    def grid(self, case: Case, base: Settings) -> Grid:
        """The grid over a case, with what is the same in all cells.

        Raises:
            CallerError: too many cells.
        """
        return Grid(self.axes or default_axes(case, self.simulates), replace(base, simulate=self.simulates))

    def command(
        self, grid: Grid, paths: Sequence[str], show: str, api: str | None = None, profile: str | None = None
    ) -> str:
        """The command line that gives the same grid headless, read as it was read here."""
        base = grid.base
        varied = {name: getattr(Limits(), name) for name in grid.names if name != INITIAL}
        cap = None if INITIAL in grid.names else base.max_tokens
        same = replace(base, limits=replace(base.limits, **varied), explicit=base.explicit - varied.keys(),
                       max_tokens=cap, simulate=cap is not None)
        words = [command(paths, same, api, profile, verb="tune")]
        words += [f"--grid {axis.short}={spec_of(axis)}" for axis in self.axes]
        if self.simulate is not None:
            words.append("--simulate" if self.simulate else "--recorded")
        return " ".join([*words, f"--show {show}"] if show != "outcome" else words)


def typed(axes: Sequence[Axis]) -> str:
    """The axes on one line, as they may be typed."""
    return " ".join(f"{axis.short}={spec_of(axis)}" for axis in axes)


def spec_of(axis: Axis) -> str:
    """The values of an axis as they may be typed: a range where they are one, else a list."""
    numbers = [value for value in axis.values if value is not None]
    parts = [_range(numbers)] if numbers else []
    return ",".join([*parts, axis.said(None)] if None in axis.values else parts)


def _range(numbers: Sequence[int]) -> str:
    first, last, count = numbers[0], numbers[-1], len(numbers)
    if count > 2 and last - first == count - 1:
        return f"{first}..{last}"
    if count > LISTED:
        step, factor = numbers[1] - first, numbers[1] // first if first else 0
        if numbers == list(range(first, last + 1, step)):
            return f"{first}..{last}/{step}"
        if all(one * factor == other for one, other in pairwise(numbers)):
            return f"{first}..{last}*{factor}"
    return ",".join(map(str, numbers))
