"""Asking again: a turn from one of its steps on, live, beside what else is done; one at a time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from inspector.tui.session.base import Base
from loop_core.errors import LoopError

if TYPE_CHECKING:
    from pathlib import Path

    from textual.timer import Timer

    from inspector.live.again import Asking, Wanted
    from inspector.settings import Settings
    from inspector.whatif.tree import Node

EVERY = 0.25
"""Seconds after which it is told how far a live run is."""


class Again(Base):
    """The live run that is under way."""

    TITLE_OF_KEYS = "What if"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("A", "give_up", "give up", tooltip="Give up the live run that is under way", id="live.cancel"),
    ]
    _asking: Asking | None = None
    _ticking: Timer | None = None
    _progress = ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """There is nothing to give up where nothing is asked."""
        return self._asking is not None if action == "give_up" else super().check_action(action, parameters)

    def ask_live(self, assignments: dict[str, str], since: int | None) -> None:
        """Shows what asking this turn live would cost, and asks it where the user says so."""
        from inspector.live.again import wanted
        from inspector.settings import settings_asked
        from inspector.tui.screens.ask import AskLive

        if self._asking is not None:
            self.note = "a live run is under way: A gives it up"
            return
        node, replay = self.runs.node, self.run.view.replay
        turn = replay.turn_at(self.step)
        first = replay.turns[turn].first if since is None else since
        settings = settings_asked(assignments, replay.settings)

        def look(base: str, model: str) -> Wanted:
            return wanted(replay, settings, first, os.environ, base=base, model=model or None)

        title = f"Ask turn {turn + 1} live again, from step {first + 1} on"
        self.app.push_screen(AskLive(title, look), lambda found: self._ask(found, node, settings, first))

    def _ask(self, wanted: Wanted | None, node: Node, settings: Settings, since: int) -> None:
        if wanted is None:
            self.note = "nothing was sent"
            return
        from dataclasses import replace

        from inspector.config.places import data_folder
        from inspector.live.again import Asking, new_name

        name = new_name()
        folder: Path = data_folder(os.environ) if self.runs.store is None else self.runs.store.folder
        self._asking = Asking(wanted, name, folder)
        self.runs.begin(node, replace(settings, live=name), since)
        self._ticking = self.set_interval(EVERY, self._tell_progress)
        self.refresh_bindings()
        self._tell_progress()
        self.run_worker(self._wait(self._asking, node, replace(settings, live=name), since), group="live")

    def action_give_up(self) -> None:
        """Gives it up; what was heard is kept."""
        if self._asking is not None:
            self._asking.cancel()

    def _tell_progress(self) -> None:
        if self._asking is not None and self.note in ("", self._progress):
            requests, chars = self._asking.progress()
            self._progress = f"LIVE  request {max(1, requests)} · {chars:,} characters · A gives it up"
            self.note = self._progress

    async def _wait(self, asking: Asking, node: Node, settings: Settings, since: int) -> None:
        """Waits for the run, and goes to its branch where the user has not gone elsewhere."""
        from inspector.report.inert import one_line

        try:
            heard, failure = await asking.run()
            index = self.runs.heard(node, settings, since, heard)
        except LoopError as why:
            self.runs.forget(node, settings, since)
            self._over(one_line(str(why)))
            return
        if self.runs.node is node and self.app.screen is self:
            self._over("")
            self.show_run(index)
        else:
            self._over(f"LIVE run {self.runs.every[index].name} is over · o goes between runs")
        if failure:
            self.note = one_line(failure)

    def _over(self, told: str) -> None:
        self._asking = None
        if self._ticking is not None:
            self._ticking.stop()
        self.refresh_bindings()
        self.note = told

    def show_run(self, index: int) -> None:
        """Goes to a run that was made."""
        raise NotImplementedError
