"""Lines to strips: the one place where a role gets a colour and where `--ascii` takes effect.

No markup is parsed anywhere: a span becomes a segment as it is. Every role that matters differs by weight, underline or
reversal too, so that a screen without colour says the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.cells import cell_len
from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.color import Color, ColorParseError
from textual.strip import Strip

from inspector.report.lines.glyphs import ascii_line, ascii_text
from inspector.report.lines.spans import Line, Measure, Role, clip, one_line

Look = tuple[str, str]
"""The theme's colour (empty: the widget's own) and the attributes."""

LOOKS: Mapping[Role, Look] = {
    Role.PLAIN: ("", ""),
    Role.DIM: ("muted", ""),
    Role.STRONG: ("", "bold"),
    Role.TITLE: ("primary", "bold"),
    Role.KEY: ("accent", ""),
    Role.PRESS: ("accent", ""),
    Role.RULE: ("rule", ""),
    Role.OK: ("success", ""),
    Role.WARN: ("warning", ""),
    Role.ERROR: ("error", "bold"),
    Role.RAW: ("warning", ""),
    Role.NORMALIZED: ("primary", ""),
    Role.SEAM: ("secondary", ""),
    Role.HELD: ("error", "bold"),
    Role.HERE: ("accent", "bold"),
    Role.PAST: ("rule", ""),
    Role.AHEAD: ("ahead", ""),
    Role.ADDED: ("success", ""),
    Role.REMOVED: ("error", ""),
    Role.MARK: ("warning", "bold underline"),
    Role.READ: ("primary", "underline"),
    Role.PICKED: ("primary", "bold reverse"),
    Role.MATCH: ("", "reverse"),
    Role.STRING: ("secondary", ""),
    Role.NUMBER: ("primary", ""),
}


class Paint:
    """The styles of one theme; `plain` is what `--ascii` asks for."""

    def __init__(self, variables: Mapping[str, str], plain: bool = False) -> None:
        self.plain = plain
        self.mark = "..." if plain else "…"
        self.measure: Measure = _ascii_cells if plain else cell_len
        background = _colour(variables, "cursor")
        # Of sixteen colours none lies behind every text: the row of the cursor is reversed.
        sixteen = background is None or background.is_system_defined
        self.cursor = Style(reverse=True) if sixteen else Style(bgcolor=background)
        self._styles = {role: _style(variables, look) for role, look in LOOKS.items()}
        self._based: dict[Style, dict[Role, Style]] = {}

    def translated(self, line: Line) -> Line:
        """The line in the characters that the terminal was said to have."""
        return ascii_line(line) if self.plain else line

    def on(self, base: Style) -> dict[Role, Style]:
        """The styles of all roles on a background."""
        found = self._based.get(base)
        if found is None:
            # In a reversed row a colour would become a background of its own, a patch for each word.
            found = self._based[base] = {
                role: base + (style.without_color if base.reverse else style) for role, style in self._styles.items()}
        return found

    def strip(self, line: Line, width: int, base: Style, whole: bool = True) -> Strip:
        """One row of a widget, as wide as it; what does not fit is left out with a mark, unless the row scrolls."""
        line = self.translated(line)
        if whole:
            line = clip(line, width, cell_len, self.mark)
        styles = self.on(base)
        # Every span is inert already; this holds even for one that was forgotten.
        shown = [(text if text.isprintable() else one_line(text), role) for text, role in line if text]
        segments = [Segment(text, styles[role]) for text, role in shown]
        used = sum([cell_len(text) for text, _ in shown])
        if used < width:
            segments.append(Segment(" " * (width - used), base))
        return Strip(segments, max(used, width))


def _ascii_cells(text: str) -> int:
    return len(ascii_text(text))


def _style(variables: Mapping[str, str], look: Look) -> Style:
    name, attributes = look
    style = Style.parse(attributes) if attributes else Style()
    return style + Style(color=_colour(variables, name)) if name else style


def _colour(variables: Mapping[str, str], name: str) -> RichColor | None:
    value = variables.get(name)
    if value is None:
        return None
    try:
        return Color.parse(value).rich_color
    except ColorParseError:
        return None


def paint_of(app: App[object]) -> Paint:
    """The paint of the app that a widget is in."""
    found = getattr(app, "paint", None)
    return found if isinstance(found, Paint) else Paint(app.theme_variables)
