"""Asking again: a turn from one of its steps on, live, beside what else is done; one at a time.

Further down: exporting.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from inspector.report.lines.spans import text_of
from inspector.tui.session.base import Base
from loop_core.errors import LoopError

if TYPE_CHECKING:
    from pathlib import Path

    from textual.timer import Timer

    from inspector.config.settings import Settings
    from inspector.live.again import Asking, Wanted
    from inspector.tui.writing import Make
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
        from inspector.config.settings import settings_asked
        from inspector.live.again import wanted
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

        from inspector.config.files import data_folder
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
        from inspector.report.lines.spans import one_line

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


# -- Exporting -------------------------------------------------------------------------------------------------------
# The view, the session, a response or a bug report, into a folder that is named or as a download.

VIEWS: Mapping[str, str] = {
    "svg": "this screen as a picture (SVG)",
    "view": "what this view shows, as text",
}
"""Forms that only the app has, beside those of `inspector export`."""


class Exporting(Base):
    """What leaves the program."""

    TITLE_OF_KEYS = "Export"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "export", "export", tooltip="Write a page, a picture, a session file, curl, a test, a bug report",
                id="export"),
        Binding("X", "report", "Bug report", show=False, id="report",
                tooltip="Write a bug report: the smallest session that shows this turn's finding, without credentials"),
    ]

    def action_export(self) -> None:
        """Asks for a form, then for a folder; a browser takes the file by itself."""
        from inspector.export import FORMS
        from inspector.tui.screens.ask import Choose
        from inspector.tui.writing import picture as pictured

        rows = [*VIEWS.items(), *((name, form.about) for name, form in FORMS.items())]
        picture = pictured(self.app)

        def chosen(form: str | None) -> None:
            if form is not None:
                self._leave(lambda: self._files(form, picture))

        self.app.push_screen(Choose("Export", rows), chosen)

    def action_report(self) -> None:
        """A bug report into the working directory, or as a download."""
        self._leave(lambda: self._files("bug", ""), ".")

    def _files(self, form: str, picture: str) -> Mapping[str, str]:
        from inspector.export import FORMS, Chosen
        from inspector.export.write import name_of
        from inspector.report.facts import answer_at
        from inspector.sessions import redact

        view = self.run.view
        name = name_of(view)
        if form == "svg":
            return {f"{name}-{self.tab}.svg": redact.text(picture)}
        if form == "view":
            lines = [text_of(self.sheet.line(at)) for at in range(len(self.sheet))]
            return {f"{name}-{self.tab}.txt": redact.text("\n".join(lines)) + "\n"}
        facts = answer_at(view, self.step) if view.steps else None
        turn = view.turn_of(self.step) if form == "bug" and view.steps else None
        return FORMS[form].make(Chosen(view, turn, facts, name))

    def _leave(self, make: Make, folder: str | None = None) -> None:
        from inspector.tui.writing import leave

        def say(text: str) -> None:
            self.note = text

        leave(self.app, make, say, folder)
