"""Converts lines to Textual's strips, and defines the app's themes. Only this module uses colours and `--ascii`.

No markup is parsed: the text of a span becomes a segment unchanged. Roles with a meaning also differ in weight,
underline or reversal, so that a screen without colours shows the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.color import Color, ColorParseError
from textual.geometry import Region
from textual.strip import Strip
from textual.theme import BUILTIN_THEMES, Theme
from textual.widget import Widget

from inspector.config.settings import nearest
from inspector.report.lines.glyphs import ascii_line, ascii_text
from inspector.report.lines.spans import Line, Measure, Tone, clip, one_line
from loop_core.errors import CallerError

Look = tuple[str, str]
"""The name of a colour of the theme (empty for the widget's own colour), and the text attributes, such as bold."""

LOOKS: Mapping[Tone, Look] = {
    Tone.PLAIN: ("", ""),
    Tone.DIM: ("muted", ""),
    Tone.STRONG: ("", "bold"),
    Tone.TITLE: ("primary", "bold"),
    Tone.KEY: ("accent", ""),
    Tone.PRESS: ("accent", ""),
    Tone.RULE: ("rule", ""),
    Tone.OK: ("success", ""),
    Tone.WARN: ("warning", ""),
    Tone.ERROR: ("error", "bold"),
    Tone.RAW: ("warning", ""),
    Tone.NORMALIZED: ("primary", ""),
    Tone.SEAM: ("secondary", ""),
    Tone.HELD: ("error", "bold"),
    Tone.HERE: ("accent", "bold"),
    Tone.PAST: ("rule", ""),
    Tone.AHEAD: ("ahead", ""),
    Tone.ADDED: ("success", ""),
    Tone.REMOVED: ("error", ""),
    Tone.MARK: ("warning", "bold underline"),
    Tone.READ: ("primary", "underline"),
    Tone.PICKED: ("primary", "bold reverse"),
    Tone.MATCH: ("", "reverse"),
    Tone.STRING: ("secondary", ""),
    Tone.NUMBER: ("primary", ""),
}


class Paint:
    """The styles of a theme; `plain` is set for `--ascii`."""

    def __init__(self, variables: Mapping[str, str], plain: bool = False) -> None:
        self.plain = plain
        self.mark = "..." if plain else "…"
        self.measure: Measure = (lambda text: len(ascii_text(text))) if plain else terminal_cells
        background = _colour(variables, "cursor")
        # No colour of the terminal's sixteen is readable behind every text, so the row of the cursor is reversed.
        sixteen = background is None or background.is_system_defined
        self.cursor = Style(reverse=True) if sixteen else Style(bgcolor=background)
        self._styles = {role: _style(variables, look) for role, look in LOOKS.items()}
        self._based: dict[Style, dict[Tone, Style]] = {}

    def on(self, base: Style) -> dict[Tone, Style]:
        """The styles of all roles on a background."""
        found = self._based.get(base)
        if found is None:
            found = self._based[base] = {
                role: base + (_in_reversed_row(style) if base.reverse else style)
                for role, style in self._styles.items()}
        return found

    def strip(self, line: Line, width: int, base: Style, whole: bool = True) -> Strip:
        """One row of a widget at its full width; overflow is cut with a mark, unless the row scrolls."""
        line = ascii_line(line) if self.plain else line
        if whole:
            line = clip(line, width, cell_len, self.mark)
        styles = self.on(base)
        # Spans have no control characters any more; this is the last defence if one was forgotten.
        spans = [(text if text.isprintable() else one_line(text), role) for text, role in line if text]
        segments = [Segment(text, styles[role]) for text, role in spans]
        used = sum([cell_len(text) for text, _ in spans])
        if used < width:
            segments.append(Segment(" " * (width - used), base))
        return Strip(segments, max(used, width))

    def under_cursor(self, part: Strip, look: Style) -> Strip:
        """A part of a row, such as a cell, with the cursor on it."""
        if self.cursor.reverse:
            return Strip([Segment(text, _in_reversed_row(style or Style()) + look) for text, style, _ in part])
        return Strip(Segment.apply_style(part, post_style=self.cursor + look))


def _in_reversed_row(style: Style) -> Style:
    """A style in a reversed row: without a colour, which would become the background of its word, and reversed back if
    it is a reversed style, such as that of a match, which could otherwise not be distinguished from the row."""
    return style.without_color + Style(reverse=not style.reverse)


class RowsInOneStyle(Widget):
    """A widget whose rows have one style, read once for all rows, because Textual computes it at every access."""

    _base = Style()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draws rows."""
        self._base = self.rich_style
        return super().render_lines(crop)


def terminal_cells(text: str) -> int:
    """The number of cells as Rich draws them; computed without Rich for printable ASCII, to measure long texts fast."""
    return len(text) if text.isascii() and text.isprintable() else cell_len(text)


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
    """The paint of a widget's app."""
    found = getattr(app, "paint", None)
    return found if isinstance(found, Paint) else Paint(app.theme_variables)


# -- The themes of the app beside Textual's own: dark, light, high contrast, and the terminal's own sixteen colours --
# Every role of `paint.LOOKS` that is text reaches WCAG AA (4.5 : 1) on every background of the dark and the light
# theme, and AAA (7 : 1) in the theme of high contrast. The terminal decides the colours of the ANSI theme.


DARK, LIGHT, CONTRAST, ANSI = "inspector-dark", "inspector-light", "inspector-contrast", "inspector-ansi"
TEXTS = ("primary", "secondary", "accent", "success", "warning", "error")
"""The colours of a theme in which texts are written."""
BACKGROUNDS = ("background", "surface", "panel", "cursor")
"""The colours of a theme on which texts are written."""
LIKE: Mapping[str, str] = {
    "text-muted": "muted", "text-disabled": "muted",
    "block-cursor-blurred-background": "cursor", "block-cursor-blurred-foreground": "foreground",
    "input-selection-background": "text-primary", "input-selection-foreground": "background",
}
"""Variable of Textual's widgets (a hint in a field, the cursor's row in the palette, a selection in a field) -> the
variable whose colour it has here."""
FOCUS_TINT = 0.05
"""The share by which Textual moves the background of the focused field towards the colour of its text."""
LEAST_CONTRAST = 4.5
"""The least contrast of readable text, by level AA of WCAG 2."""
OWN = ("rule", "muted", "ahead", "cursor")
"""The variables that only the app's own themes define."""


def _bars(background: str, bar: str, hover: str, active: str) -> dict[str, str]:
    """The colours of scrollbars and borders."""
    return {
        "border": bar, "scrollbar": bar, "scrollbar-hover": hover, "scrollbar-active": active,
        "scrollbar-background": background, "scrollbar-background-hover": background,
        "scrollbar-background-active": background, "scrollbar-corner-color": background,
    }


THEMES = (
    Theme(
        DARK, primary="#6cb6ff", secondary="#b794f6", accent="#5ad1c8", success="#7ccf8a", warning="#e0af5c",
        error="#ff7d78", foreground="#d4dbe4", background="#12161c", surface="#161b23", panel="#1f2631",
        boost="#232b37", dark=True,
        variables={"rule": "#3b4656", "muted": "#9ba7b8", "ahead": "#919cad", "cursor": "#263448",
                   **_bars("#12161c", "#2d3644", "#4a5669", "#6cb6ff")},
    ),
    Theme(
        LIGHT, primary="#0b5cad", secondary="#7440b8", accent="#0a6d73", success="#1c7234", warning="#8a5a00",
        error="#b3261e", foreground="#1d2530", background="#fbfbf9", surface="#f4f4f0", panel="#e9e9e3",
        boost="#e2e2da", dark=False,
        variables={"rule": "#b9bdb9", "muted": "#555e6a", "ahead": "#5e6772", "cursor": "#dbe7f5",
                   **_bars("#fbfbf9", "#c9ccc6", "#a9aea9", "#0b5cad"), "border": "#d0d2cc"},
    ),
    Theme(
        CONTRAST, primary="#7fd4ff", secondary="#e3bcff", accent="#5fffe0", success="#86ff96", warning="#ffd75f",
        error="#ffa8a8", foreground="#ffffff", background="#000000", surface="#000000", panel="#181818",
        boost="#181818", dark=True,
        variables={"rule": "#b8b8b8", "muted": "#d6d6d6", "ahead": "#c4c4c4", "cursor": "#00264d",
                   **_bars("#000000", "#b8b8b8", "#ffffff", "#7fd4ff")},
    ),
    Theme(
        ANSI, primary="ansi_cyan", secondary="ansi_magenta", accent="ansi_cyan", success="ansi_green",
        warning="ansi_yellow", error="ansi_red", foreground="ansi_default", background="ansi_default",
        surface="ansi_default", panel="ansi_default", boost="ansi_default", dark=True, ansi=True,
        variables={**BUILTIN_THEMES["ansi-dark"].variables, "rule": "ansi_bright_black", "muted": "ansi_default",
                   "ahead": "ansi_bright_black", "cursor": "ansi_bright_black",
                   **_bars("ansi_default", "ansi_bright_black", "ansi_default", "ansi_cyan")},
    ),
)


def check_theme(name: str) -> None:
    """Raises `CallerError` if there is no theme of this name."""
    names = sorted({*(each.name for each in THEMES), *BUILTIN_THEMES})
    if name not in names:
        raise CallerError(f"theme: there is no theme {name!r}{nearest(name, names)}")


def own_colours(theme: Theme) -> dict[str, str]:
    """Our colour variables for a theme that does not define them."""
    like = ANSI if theme.ansi else DARK if theme.dark else LIGHT
    return {name: colour for own in THEMES if own.name == like for name, colour in own.variables.items() if name in OWN}


def readable(theme: Theme, variables: Mapping[str, str]) -> Mapping[str, str]:
    """The variables of a theme with the colours for texts. Textual's themes have other colours for texts than for
    areas; ours have the same."""
    if theme in THEMES:
        return variables
    return {**variables, **{name: variables[f"text-{name}"] for name in TEXTS}}


def with_contrast(theme: Theme, variables: Mapping[str, str]) -> dict[str, str]:
    """The variables of a theme, with each colour of texts moved towards white or black until it is readable on every
    background. The terminal's own colours, which are unknown here, are left alone."""
    if theme.ansi:
        return dict(variables)
    backgrounds = [Color.parse(variables[name]) for name in BACKGROUNDS]
    end = Color.parse("white" if theme.dark else "black")
    tinted = [each.blend(end, FOCUS_TINT) for each in backgrounds]
    foreground = _contrasting(Color.parse(variables["foreground"]), end, [*backgrounds, *tinted])
    fields = [each.blend(foreground, FOCUS_TINT) for each in backgrounds]
    moved = {name: _contrasting(Color.parse(variables[name]), end, [*backgrounds, *(fields if name == "muted" else ())])
             for name in ("muted", "ahead", *(f"text-{name}" for name in TEXTS))}
    every = {**variables, "foreground": foreground.hex, **{name: colour.hex for name, colour in moved.items()}}
    return every | {name: every[like] for name, like in LIKE.items()}


def _contrasting(colour: Color, end: Color, backgrounds: Sequence[Color]) -> Color:
    """The first colour on the way to `end` with at least `LEAST_CONTRAST` on every background; else `end`."""
    way = (colour.blend(end, step / 20) for step in range(20))
    return next((each for each in way if all(contrast(each, one) >= LEAST_CONTRAST for one in backgrounds)), end)


def contrast(one: Color, other: Color) -> float:
    """The contrast of two colours, as WCAG 2 defines it."""
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: Color) -> float:
    """Relative luminance, as WCAG 2 defines it."""
    red, green, blue = (value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
                        for value in colour.normalized)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
