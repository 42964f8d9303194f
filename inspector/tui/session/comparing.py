"""Comparing: the run under every policy, and one answer from every provider, each on a screen of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from inspector.settings import command
from inspector.tui.session.running import Running
from loop_core.policy import STRICT

if TYPE_CHECKING:
    from inspector.whatif.lines_policies import Place
    from inspector.whatif.policies import Matrix


class Comparing(Running):
    """Side by side."""

    TITLE_OF_KEYS = "Side by side"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "policies", "policies", id="policies",
                tooltip="Policies by turns: what each loop would have run, held, continued or lost"),
        Binding("P", "providers", "providers", id="providers",
                tooltip="Providers side by side: one answer as each would tell of it"),
    ]

    def action_policies(self) -> None:
        """Lays the session under every policy, with the other settings of this run, from the first step on."""
        from inspector.tui.screens.policies import PoliciesScreen

        settings, reading = replace(self.run.view.replay.settings, policy=STRICT), self._reading
        twin = command(self.runs.paths, settings, reading.api, reading.profile, verb="policies")
        run = self.run.name + (", from the first step on" if self.run.view.replay.since else "")
        self.app.push_screen(
            PoliciesScreen(self.runs.case, settings, run, self._runnable(twin)), self._policy_chosen)

    def _policy_chosen(self, chosen: tuple[Matrix, Place] | None) -> None:
        """Runs the session under the policy of a cell, and goes to where that parts from strict in the cell's turn."""
        if chosen is None:
            return
        from inspector.whatif import lines_policies as lines

        made, place = chosen
        index, _ = self.runs.under(lines.assignments(made, place), 0)
        self.against = "run"
        self._switch(index, "diff" if self.runs.every[index].branch is not None else None)
        self._go(lines.step_at(made, place), "")
        cell, turn = made.rows[place[0]][place[1]], place[0] + 1
        parts = "nothing differs from strict" if cell.step is None else "here it parts from strict"
        self.note = self.lost_or(f"run {self.run.name}: turn {turn}: {cell.decision.word} · {parts}")

    def action_providers(self) -> None:
        """One intended answer as every provider tells of it."""
        from inspector.tui.screens.providers import ProvidersScreen

        self.app.push_screen(ProvidersScreen(self._reading.settings))
