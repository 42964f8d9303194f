"""The two themes of the app: calm colours on dark and on light, with enough contrast for small text."""

from __future__ import annotations

from textual.theme import Theme

DARK, LIGHT = "inspector-dark", "inspector-light"

THEMES = (
    Theme(
        DARK, primary="#6cb6ff", secondary="#b794f6", accent="#5ad1c8", success="#7ccf8a", warning="#e0af5c",
        error="#ff7d78", foreground="#d4dbe4", background="#12161c", surface="#161b23", panel="#1f2631",
        boost="#232b37", dark=True,
        variables={
            "rule": "#3b4656", "muted": "#8b97a8", "ahead": "#6d7888", "cursor": "#263448",
            "border": "#2d3644", "scrollbar": "#2d3644", "scrollbar-background": "#12161c",
            "scrollbar-hover": "#4a5669", "scrollbar-active": "#6cb6ff", "scrollbar-background-hover": "#12161c",
            "scrollbar-background-active": "#12161c", "scrollbar-corner-color": "#12161c",
        },
    ),
    Theme(
        LIGHT, primary="#0b5cad", secondary="#7440b8", accent="#0a6d73", success="#1c7234", warning="#8a5a00",
        error="#b3261e", foreground="#1d2530", background="#fbfbf9", surface="#f4f4f0", panel="#e9e9e3",
        boost="#e2e2da", dark=False,
        variables={
            "rule": "#b9bdb9", "muted": "#5b6470", "ahead": "#7a828c", "cursor": "#dbe7f5",
            "border": "#d0d2cc", "scrollbar": "#c9ccc6", "scrollbar-background": "#fbfbf9",
            "scrollbar-hover": "#a9aea9", "scrollbar-active": "#0b5cad", "scrollbar-background-hover": "#fbfbf9",
            "scrollbar-background-active": "#fbfbf9", "scrollbar-corner-color": "#fbfbf9",
        },
    ),
)

OWN = ("rule", "muted", "ahead", "cursor")
"""The variables that only our themes name."""


def own_colours(dark: bool) -> dict[str, str]:
    """Their values for a theme that does not name them."""
    theme = next(each for each in THEMES if each.dark == dark)
    return {name: theme.variables[name] for name in OWN}
