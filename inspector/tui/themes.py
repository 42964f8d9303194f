"""The themes of the app beside Textual's own: dark, light, high contrast, and the terminal's own sixteen colours.

Every role of `paint.LOOKS` that is text reaches WCAG AA (4.5 : 1) on every background of the dark and the light theme,
and AAA (7 : 1) in the theme of high contrast. Which colours the ANSI theme has, the terminal decides.
"""

from __future__ import annotations

from textual.theme import BUILTIN_THEMES, Theme

DARK, LIGHT, CONTRAST, ANSI = "inspector-dark", "inspector-light", "inspector-contrast", "inspector-ansi"
OWN = ("rule", "muted", "ahead", "cursor")
"""The variables that only our themes name."""


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
                   "text-disabled": "#c4c4c4",
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


def own_colours(theme: Theme) -> dict[str, str]:
    """Values of our variables for a theme that does not name them."""
    like = ANSI if theme.ansi else DARK if theme.dark else LIGHT
    return {name: colour for own in THEMES if own.name == like for name, colour in own.variables.items() if name in OWN}
