"""All files of a table of turns, opened as one session, with a view over the whole: tuning, or the policies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from inspector.report.lines.spans import one_line
from inspector.tui.session_files import OpenSession, ReadingOptions, load, reading_of
from loop_core.errors import LoopError

if TYPE_CHECKING:
    from inspector.tui.turns_screen import TurnsScreen


def open_over_all(table: TurnsScreen, view: str) -> None:
    """Opens the session, then the view over it (the action of a key of the session screen); says why not."""
    if table.opened is not None and not table.reading:
        _show(table, table.opened, view)
    elif table.opened is None and not table.named:
        table.note = "these files were never meant as one session: o opens a folder, enter one of them"
    elif table.reading:
        table.note = "the files are still being read"
    else:
        table.note = "reading all files as one session…"
        paths = [path for section in table.sections for path in section.paths]
        table.run_worker(partial(_read, table, paths, reading_of(table.app), view), thread=True, exclusive=True)


def _read(table: TurnsScreen, paths: Sequence[str], reading: ReadingOptions, view: str) -> None:
    try:
        read = load(paths, reading)
    except LoopError as why:
        table.app.call_from_thread(setattr, table, "note", one_line(str(why)))
        return
    table.app.call_from_thread(_show, table, read, view)


def _show(table: TurnsScreen, read: OpenSession, view: str) -> None:
    from inspector.tui.session_screen import SessionScreen

    if not table.is_current:
        return  # left meanwhile
    if not read.original.view.steps:
        table.note = "no turn was read"
        return
    table.note = ""
    session = SessionScreen(read, None)
    table.app.push_screen(session)
    session.call_after_refresh(getattr(session, f"action_{view}"))
