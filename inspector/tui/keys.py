"""What the bindings say, for people: one reading of them for the key bar, the help and the palette."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from textual.binding import ActiveBinding
from textual.screen import Screen

NAMES: Mapping[str, str] = {
    "space": "space", "backspace": "⌫", "enter": "enter", "escape": "esc", "pagedown": "PgDn", "pageup": "PgUp",
    "home": "Home", "end": "End", "down": "↓", "up": "↑", "left": "←", "right": "→",
    "colon": ":", "slash": "/", "question_mark": "?", "left_square_bracket": "[", "right_square_bracket": "]",
    "left_curly_bracket": "{", "right_curly_bracket": "}", "f1": "F1",
}

LAST = ("help", "back")
"""Bindings that the key bar keeps whatever the width, at its end."""


def name_of(key: str) -> str:
    """A key as it is written on a keyboard."""
    if key.startswith("ctrl+"):
        return f"^{key.removeprefix('ctrl+')}"
    return NAMES.get(key, key)


def active(screen: Screen[object]) -> list[tuple[str, ActiveBinding]]:
    """The bindings that work on a screen now, each action once with all its keys."""
    grouped: dict[tuple[str, str], tuple[list[str], ActiveBinding]] = {}
    for key, found in screen.active_bindings.items():
        if found.enabled and found.binding.id:
            keys, _ = grouped.setdefault((found.binding.id, found.binding.action), ([], found))
            keys.append(name_of(key))
    return [(" ".join(keys), found) for keys, found in grouped.values()]


def shown_keys(screen: Screen[object]) -> Iterator[tuple[str, ActiveBinding]]:
    """The bindings that the key bar offers, in their order, help and leaving last."""
    found = [(keys.split(" ")[0], each) for keys, each in active(screen) if each.binding.show]
    yield from sorted(found, key=lambda pair: LAST.index(pair[1].binding.id) + 1 if pair[1].binding.id in LAST else 0)
