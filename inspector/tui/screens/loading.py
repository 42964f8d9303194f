"""What is seen while a large file is read."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.screen import Screen

from inspector.report.inert import one_line
from inspector.report.lines.spans import Role
from inspector.tui.widgets.note import note


class LoadingScreen(Screen[None]):
    """Says what is being read."""

    passing = True
    """It only leads to a session: back from there quits. (Textual cannot switch away from an app's first screen.)"""

    def __init__(self, paths: Sequence[str]) -> None:
        super().__init__()
        self._paths = paths

    def compose(self) -> ComposeResult:
        """One line a path."""
        yield note("Reading", Role.TITLE)
        for path in self._paths[:20]:
            yield note(f"  {one_line(path)}", Role.PLAIN)
