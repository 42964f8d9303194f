"""The two yardsticks, as programs of their own: an empty Textual app, and a bare Line-API list of N rows.

    python apps.py empty
    python apps.py list 100000
"""

from __future__ import annotations

import os
import sys

os.environ.setdefault("TEXTUAL_FPS", "120")  # as `inspector` does; it is read when Textual is imported

from rich.segment import Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Static


class Empty(App[None]):
    def compose(self) -> ComposeResult:
        yield Static("empty app ready")


class Rows(ScrollView, can_focus=True):
    BINDINGS = [("j", "down", "Down")]  # noqa: RUF012 - as every Textual widget has them

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count, self.cursor = count, 0
        self.virtual_size = Size(80, count)

    def render_line(self, y: int) -> Strip:
        row = y + self.scroll_offset.y
        if row >= self.count:
            return Strip.blank(self.size.width)
        style = Style(reverse=True) if row == self.cursor else Style()
        text = f"{row:>7}  EvaluateStop        max_tokens".ljust(self.size.width)
        return Strip([Segment(text, style)])

    def action_down(self) -> None:
        self.cursor = min(self.count - 1, self.cursor + 1)
        self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False)
        self.refresh()


class List(App[None]):
    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def compose(self) -> ComposeResult:
        yield Rows(self.count)


if __name__ == "__main__":
    app = Empty() if sys.argv[1] == "empty" else List(int(sys.argv[2]))
    app.run()
