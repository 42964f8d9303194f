"""The picker: what agents on this machine wrote, the sample sessions, and the files that were opened before.

Further down: the picker's list; what is known of the session at the picker's cursor; the transcripts that agents
left on this machine, as rows of the picker.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.reactive import reactive
from textual.screen import Screen
from textual.worker import get_current_worker

from inspector.config.files import bounds_of
from inspector.report.facts import View
from inspector.report.lines.spans import EMPTY, Line, Role, Span, field, safe, wrapped
from inspector.report.lines.steps import role_of
from inspector.sessions.agents import Transcript, samples, short, transcripts
from inspector.tui.keys import KeyBar
from inspector.tui.lists import RowList
from inspector.tui.messages import PathWanted, RowOpened
from inspector.tui.paint import paint_of
from inspector.tui.panels import Panel, note
from inspector.tui.session_files import ReadingOptions, load, reading_of, recent
from loop_core.errors import LoopError

# -- The picker's list -----------------------------------------------------------------------------------------------
# Sessions that can be opened, under a heading for each kind.

VERDICT = 52
"""Columns of a title that a verdict follows."""
STORY = 24
"""Columns of a verdict that the beginning of a story follows, where there is room."""


@dataclass(frozen=True, slots=True)
class SessionChoice:
    """A row: a session, or a heading where there is no path."""

    title: str
    path: str = ""
    story: str = ""
    provenance: str = ""
    end_state: str = ""
    remembered: bool = False
    """Whether it comes from the list of recent files."""
    verdict: str = ""
    """What is known of how it ended, at the end of the row."""
    role: Role = Role.PLAIN
    """How grave that is."""
    unread: bool = False
    """Whether its verdict is still to come."""


class Choices(RowList):
    """Sessions and headings."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "open", tooltip="Open the session", id="choices.open"),
    ]

    def __init__(self, choices: Sequence[SessionChoice], *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.choices = choices
        self.set_reactive(RowList.cursor, next((i for i, each in enumerate(choices) if each.path), 0))

    @property
    def count(self) -> int:
        """Sessions and headings."""
        return len(self.choices)

    def selectable(self, index: int) -> bool:
        """Headings are passed over."""
        return bool(self.choices[index].path)

    def row(self, index: int) -> Line:
        """A heading, or a session's title."""
        choice = self.choices[index]
        if not choice.path:
            return (Span(f" {choice.title}", Role.TITLE),) if choice.title else EMPTY
        here = index == self.cursor
        mark = Span(" ▶ " if here else "   ", Role.HERE)
        title = safe(choice.title, Role.STRONG if here else Role.PLAIN)
        if not choice.verdict:
            return (mark, title)
        gap = " " * max(2, VERDICT - len(title.text))
        verdict = safe(choice.verdict, choice.role, 60)
        rest = " " * max(2, STORY - len(verdict.text))
        return (mark, title, Span(gap), verdict, Span(rest), safe(choice.story, Role.DIM, 80))

    def fill(self, choice: SessionChoice) -> bool:
        """Puts a row in the place of that with the same path; whether it is the one at the cursor."""
        index = next((i for i, each in enumerate(self.choices) if each.path == choice.path and each.unread), None)
        if index is None:
            return False
        self.choices = [*self.choices[:index], choice, *self.choices[index + 1 :]]
        self.refresh(Region(0, index - int(self.scroll_offset.y), self.size.width, 1))
        return index == self.cursor

    @property
    def selected(self) -> SessionChoice:
        """The session at the cursor."""
        return self.choices[self.cursor]


# -- What is known of the session at the picker's cursor -------------------------------------------------------------
# Its story, where it comes from, and how it ends.


class ChoiceStory(Panel):
    """A few lines under the list."""

    choice: reactive[SessionChoice | None] = reactive(None, init=False, repaint=False)

    def watch_choice(self) -> None:
        """Another session."""
        self.changed()

    def make(self, width: int) -> Sequence[Line]:
        """The story over as many rows as it needs."""
        choice = self.choice
        if choice is None:
            return ()
        named = (("story", choice.story), ("from", choice.provenance), ("ends in", choice.end_state),
                 ("path", choice.path))
        measure = paint_of(self.app).measure
        return [row for name, text in named if text for row in wrapped(field(name, safe(text)), width, measure)]


# -- The transcripts that agents left on this machine, as rows of the picker -----------------------------------------
# What is known of a file before and after it was read.
# Reads files, read-only, one at a time and in a thread of the picker's; a file that cannot be read says so in its
# row.

READABLE = 16_000_000
"""Bytes; a larger file is not read for its verdict alone."""
HEADING = "Transcripts of your agents, newest first"


def transcript_rows(environment: Mapping[str, str]) -> list[SessionChoice]:
    """A row for each of the newest transcripts, from its name and times alone."""
    return [_row(each) for each in transcripts(environment)]


def _row(each: Transcript) -> SessionChoice:
    when = datetime.fromtimestamp(each.modified).strftime("%Y-%m-%d %H:%M")
    about = f"{each.agent}, {each.size:,} bytes, written {when}"
    large = each.size > READABLE
    return SessionChoice(
        f"{when[5:]}  {each.agent:<11}  {_name(each.path)}", each.path, provenance=about,
        verdict="large: open it to see" if large else "…", role=Role.DIM, unread=not large,
    )


def _name(path: str) -> str:
    """The project's folder, whose end says more than its beginning."""
    folder = os.path.basename(os.path.dirname(path))
    return folder.strip("-")[-28:] if folder != "sessions" else os.path.basename(path)[:28]


def judge_choice(choice: SessionChoice) -> SessionChoice:
    """The same row with what reading its file tells: the worst verdict, or why there is none."""
    try:
        opened = load((choice.path,), ReadingOptions())
    except LoopError as why:
        return replace(choice, verdict=f"cannot be read: {why}", role=Role.ERROR, unread=False)
    view = opened.original.view
    worst = view.worst
    if worst is None:
        why_not = next(iter(opened.errors), "no answer of a model in it")
        return replace(choice, verdict=why_not, role=Role.ERROR if opened.errors else Role.DIM, unread=False)
    seen = worst.verdict
    return replace(
        choice, verdict=f"{seen.glyph} {seen.word}", role=role_of(seen), story=_about(view),
        end_state=view.headline(), unread=False,
    )


def _about(view: View) -> str:
    """The session's own title, or what its user asked first."""
    title = next((given.about.title for given in view.inputs if given.about and given.about.title), "")
    asked = next((turn.run.record.user_text for turn in view.turns if turn.run.record.user_text), "")
    return title or asked[:400]


def session_choices() -> list[SessionChoice]:
    """Every session that can be picked, under its heading."""
    own = transcript_rows(os.environ)
    found = [SessionChoice(HEADING), *own, SessionChoice("")] if own else []
    found.append(SessionChoice("Sample sessions"))
    within = bounds_of(os.environ)
    for each in samples():
        if not within.holds(str(each.path)):
            continue
        about = each.about
        found.append(SessionChoice(each.title, short(each.path), about.story, about.provenance, about.end_state))
    remembered = [path for path in recent() if within.holds(path)]
    if remembered:
        found += [SessionChoice(""), SessionChoice("Recent files")]
        found += [SessionChoice(os.path.basename(path), path, remembered=True) for path in remembered]
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
        yield Choices(session_choices(), id="choices")
        yield ChoiceStory(id="about")
        yield KeyBar(id="keys").data_bind(PickerScreen.note)

    def on_mount(self) -> None:
        """Shows what is known of the first row."""
        listed = self.query_one(Choices)
        listed.focus()
        self.query_one(ChoiceStory).choice = listed.selected
        self.watch(listed, "cursor", self._moved)
        unread = [choice for choice in listed.choices if choice.unread]
        if unread:
            self.call_after_refresh(self._judge, unread)

    @work(thread=True, exclusive=True)
    def _judge(self, unread: Sequence[SessionChoice]) -> None:
        """Reads the transcripts one after the other, while keys are answered."""
        worker = get_current_worker()
        for choice in unread:
            filled = judge_choice(choice)
            if worker.is_cancelled:
                return
            self.app.call_from_thread(self._fill, filled)

    def _fill(self, choice: SessionChoice) -> None:
        if self.is_attached and self.query_one(Choices).fill(choice):
            self._moved()

    def _moved(self) -> None:
        self.query_one(ChoiceStory).choice = self.query_one(Choices).selected

    @on(RowOpened)
    def _opened(self) -> None:
        choice = self.query_one(Choices).selected
        if choice.path:
            self.post_message(PathWanted(choice.path, choice.remembered))

    def action_path(self) -> None:
        """Asks for a path."""
        from inspector.tui.questions import Prompt

        self.app.push_screen(Prompt("open", "a file or folder"), self._typed)

    def _typed(self, typed: str | None) -> None:
        if typed:
            self.post_message(PathWanted(os.path.expanduser(typed.strip()), True))

    def action_providers(self) -> None:
        """One intended answer as every provider tells of it."""
        from inspector.tui.providers_screen import ProvidersScreen

        self.app.push_screen(ProvidersScreen(reading_of(self.app).settings))
