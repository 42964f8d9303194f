"""The picker: what agents on this machine wrote, the sample sessions, and the files that were opened before."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.screen import Screen
from textual.worker import get_current_worker

from inspector.config.bounds import bounds
from inspector.report.lines.spans import Role
from inspector.sessions.samples import samples, short
from inspector.tui.found import HEADING, judged, rows
from inspector.tui.messages import PathWanted, RowOpened
from inspector.tui.opening import Reading, recent
from inspector.tui.widgets.about import About
from inspector.tui.widgets.choices import Choice, Choices
from inspector.tui.widgets.keybar import KeyBar
from inspector.tui.widgets.note import note


def choices() -> list[Choice]:
    """Every session that can be picked, under its heading."""
    own = rows(os.environ)
    found = [Choice(HEADING), *own, Choice("")] if own else []
    found.append(Choice("Sample sessions"))
    within = bounds(os.environ)
    for each in samples():
        if not within.holds(str(each.path)):
            continue
        about = each.about
        found.append(Choice(each.title, short(each.path), about.story, about.provenance, about.end_state))
    remembered = [path for path in recent() if within.holds(path)]
    if remembered:
        found += [Choice(""), Choice("Recent files")]
        found += [Choice(os.path.basename(path), path, remembered=True) for path in remembered]
    return found


class PickerScreen(Screen[None]):
    """A list of sessions; the first is under the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "path", "open a path", tooltip="Open a file or folder by its path", id="picker.path"),
        Binding("L", "app.live", "live turn", id="picker.live",
                tooltip="A live turn: ask a provider or a local model, each effect by hand"),
        Binding("P", "providers", "providers", id="providers",
                tooltip="Providers side by side: one answer as each would tell of it"),
    ]
    DEFAULT_CSS = """
    #picker-title { height: 1; padding: 0 1; background: $surface; }
    #choices { height: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden; }
    #about { height: 8; padding: 0 1; border-top: hkey $border; }
    """
    note: reactive[str] = reactive("", init=False, repaint=False)

    def compose(self) -> ComposeResult:
        """A title, the list, what is known of the row at the cursor, the keys."""
        yield note(" Loop Inspector: why a response stopped, and what the loop did", Role.STRONG, id="picker-title")
        yield Choices(choices(), id="choices")
        yield About(id="about")
        yield KeyBar(id="keys").data_bind(PickerScreen.note)

    def on_mount(self) -> None:
        """Shows what is known of the first row."""
        listed = self.query_one(Choices)
        listed.focus()
        self.query_one(About).choice = listed.chosen
        self.watch(listed, "cursor", self._moved)
        unread = [choice for choice in listed.choices if choice.unread]
        if unread:
            self.call_after_refresh(self._judge, unread)

    @work(thread=True, exclusive=True)
    def _judge(self, unread: Sequence[Choice]) -> None:
        """Reads the transcripts one after the other, while keys are answered."""
        worker = get_current_worker()
        for choice in unread:
            filled = judged(choice)
            if worker.is_cancelled:
                return
            self.app.call_from_thread(self._fill, filled)

    def _fill(self, choice: Choice) -> None:
        if self.is_attached and self.query_one(Choices).fill(choice):
            self._moved()

    def _moved(self) -> None:
        self.query_one(About).choice = self.query_one(Choices).chosen

    @on(RowOpened)
    def _opened(self) -> None:
        choice = self.query_one(Choices).chosen
        if choice.path:
            self.post_message(PathWanted(choice.path, choice.remembered))

    def action_path(self) -> None:
        """Asks for a path."""
        from inspector.tui.screens.prompt import Prompt

        self.app.push_screen(Prompt("open", "a file or folder"), self._typed)

    def _typed(self, typed: str | None) -> None:
        if typed:
            self.post_message(PathWanted(os.path.expanduser(typed.strip()), True))

    def action_providers(self) -> None:
        """One intended answer as every provider tells of it."""
        from inspector.tui.screens.providers import ProvidersScreen

        reading: Reading | None = getattr(self.app, "reading", None)
        self.app.push_screen(ProvidersScreen((reading or Reading()).settings))
