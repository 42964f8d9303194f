"""Asking again: a turn from one of its steps on, live, beside what else is done; one at a time."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from inspector.report.lines.spans import one_line
from inspector.tui.session.stage import Part, SessionStage
from loop_core.errors import LoopError

if TYPE_CHECKING:
    from textual.timer import Timer

    from inspector.config.settings import Settings
    from inspector.live.again import Asking, Wanted
    from inspector.whatif.tree import Node

EVERY = 0.25
"""Seconds between two lines on how far a live run is."""


class LiveRun(Part):
    """The live run that is under way."""

    TITLE_OF_KEYS = "What if"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("A", "give_up", "give up", tooltip="Give up the live run that is under way", id="live.cancel"),
    ]

    def __init__(self, stage: SessionStage, show_run: Callable[[int], None]) -> None:
        """`show_run` goes to a run that was made."""
        super().__init__(stage)
        self._show_run = show_run
        self._asking: Asking | None = None
        self._ticking: Timer | None = None
        self._progress = ""

    @property
    def under_way(self) -> bool:
        """Whether a provider is being asked."""
        return self._asking is not None

    def ask(self, assignments: dict[str, str], since: int | None) -> None:
        """Shows what asking this turn live would cost, and asks it where the user says so."""
        from inspector.config.settings import settings_asked
        from inspector.live.again import wanted
        from inspector.tui.screens.ask import AskLive

        if self._asking is not None:
            self.stage.note = "a live run is under way: A gives it up"
            return
        node, replay = self.stage.runs.node, self.stage.run.view.replay
        turn = replay.turn_at(self.stage.step)
        first = replay.turns[turn].first if since is None else since
        settings = settings_asked(assignments, replay.settings)

        def look(base: str, model: str) -> Wanted:
            return wanted(replay, settings, first, os.environ, base=base, model=model or None)

        title = f"Ask turn {turn + 1} live again, from step {first + 1} on"
        self.stage.app.push_screen(AskLive(title, look), lambda found: self._begin(found, node, settings, first))

    def _begin(self, wanted: Wanted | None, node: Node, settings: Settings, since: int) -> None:
        if wanted is None:
            self.stage.note = "nothing was sent"
            return
        from inspector.config.files import data_folder
        from inspector.live.again import Asking, new_name

        name, runs = new_name(), self.stage.runs
        settings = replace(settings, live=name)
        folder = data_folder(os.environ) if runs.store is None else runs.store.folder
        self._asking = Asking(wanted, name, folder)
        runs.begin(node, settings, since)
        self._ticking = self.stage.set_interval(EVERY, self._show_progress)
        self.stage.refresh_bindings()
        self._show_progress()
        self.stage.run_worker(self._wait(self._asking, node, settings, since), group="live")

    def action_give_up(self) -> None:
        """Gives it up; what was heard is kept."""
        if self._asking is not None:
            self._asking.cancel()

    def _show_progress(self) -> None:
        if self._asking is not None and self.stage.note in ("", self._progress):
            requests, chars = self._asking.progress()
            self._progress = f"LIVE  request {max(1, requests)} · {chars:,} characters · A gives it up"
            self.stage.note = self._progress

    async def _wait(self, asking: Asking, node: Node, settings: Settings, since: int) -> None:
        """Waits for the run, and goes to its branch where the user has not gone elsewhere."""
        runs = self.stage.runs
        try:
            heard, failure = await asking.run()
            index = runs.heard(node, settings, since, heard)
        except LoopError as why:
            runs.forget(node, settings, since)
            self._end(one_line(str(why)))
            return
        if runs.node is node and self.stage.app.screen is self.stage:
            self._end("")
            self._show_run(index)
        else:
            self._end(f"LIVE run {runs.every[index].name} is over · o goes between runs")
        if failure:
            self.stage.note = one_line(failure)

    def _end(self, text: str) -> None:
        self._asking = None
        if self._ticking is not None:
            self._ticking.stop()
        self.stage.refresh_bindings()
        self.stage.note = text
