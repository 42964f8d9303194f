"""What is asked of the dialects: a scenario, a budget and a policy; and the command line that asks the same."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace

from inspector.dialects.run import Row, Told, rows
from inspector.dialects.saving import file_name
from inspector.dialects.scenarios import SCENARIOS, Scenario
from inspector.settings import Settings

MOST = 1_000_000
"""Tokens of a budget at most."""
STEPS = ((16, 1), (64, 4), (256, 16))
"""Below which budget it is changed by how much."""
COARSEST = 64
"""By how much beyond."""
FOLDER = "rows"
"""Where the command line that opens a row puts it."""


FIRST = next(iter(SCENARIOS.values()))


@dataclass(frozen=True, slots=True)
class Asked:
    """One question."""

    scenario: Scenario = FIRST
    budget: int | None = None
    """None: the scenario's own."""
    settings: Settings = field(default_factory=Settings)
    each: bool = False
    """Every dialect on a line of its own, also those that say the same."""

    @property
    def limit(self) -> int:
        """The budget in force."""
        return self.scenario.budget if self.budget is None else self.budget

    def rows(self) -> tuple[Told, ...]:
        """The answers."""
        return rows(self.scenario, self.budget, settings=self.settings)

    def turned(self, by: int) -> Asked:
        """The same of the next or previous scenario, under its own budget."""
        every = list(SCENARIOS.values())
        return replace(self, scenario=every[(every.index(self.scenario) + by) % len(every)], budget=None)

    def stepped(self, by: int) -> Asked:
        """The same with a larger or smaller budget."""
        return replace(self, budget=stepped(self.limit, by))

    def command(self) -> str:
        """The command line that shows the same table."""
        return shlex.join([*self._words(), *(["--each"] if self.each else [])])

    def command_for(self, row: Row) -> str:
        """The command line that writes the session of a row to `path_of` it."""
        return shlex.join([*self._words(), "--only", row.name, "--save", FOLDER])

    def _words(self) -> list[str]:
        words = ["inspector", "providers", self.scenario.name]
        if self.budget is not None:
            words += ["--budget", f"{self.budget}"]
        return [*words, "--policy", self.settings.policy.name]


def path_of(row: Row) -> str:
    """Where `command_for` puts the session of a row."""
    return f"{FOLDER}/{file_name(row)}"


def stepped(budget: int, by: int) -> int:
    """The next larger or smaller budget: a small one changes by ones, a larger one by more."""
    size = next((size for most, size in STEPS if budget + min(by, 0) < most), COARSEST)
    following = budget // size + 1 if by > 0 else -(-budget // size) - 1
    return max(1, min(MOST, following * size))
