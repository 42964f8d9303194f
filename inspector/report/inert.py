"""Hostile text made inert: nothing that a transcript holds reaches a terminal as a command.

Control characters, escape sequences, bidirectional overrides and other invisible format characters are shown as visible
marks. Line breaks and tabs stay. Markup is no concern here: no renderer of this project parses any.
"""

from __future__ import annotations

import re

_KEPT = "\n\t"
_CONTROL = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in _KEPT}
_CONTROL[0x7F] = "\u2421"
_CONTROL[0x0D] = "\u240d"
_FORMAT = (
    *range(0x80, 0xA0),  # C1: an 8-bit terminal takes 0x9B for ESC [
    0x00AD, 0x061C, 0x180E,
    *range(0x200B, 0x2010),  # zero width, and left-to-right marks
    *range(0x2028, 0x202F),  # separators, and bidirectional embeddings and overrides
    *range(0x2060, 0x2070),
    0xFEFF,
    *range(0xFFF9, 0xFFFC),
    *range(0xE0000, 0xE0080),  # tags
    *range(0xD800, 0xE000),  # lone surrogates cannot be written out
)
_TABLE = {**_CONTROL, **{code: f"<{code:04X}>" for code in _FORMAT}}
_ANY = re.compile("[" + "".join(re.escape(chr(code)) for code in _TABLE) + "]")


def inert(text: str) -> str:
    """`text` with every control and format character as a visible mark; line breaks and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    return text.translate(_TABLE) if _ANY.search(text) else text


def one_line(text: str, width: int | None = None) -> str:
    """`text` inert and on one line, line breaks as a mark; cut to `width` characters with an ellipsis."""
    line = inert(text).replace("\n", "\u23ce").replace("\t", " ")
    if width is not None and len(line) > width:
        return line[: max(0, width - 1)] + "…"
    return line
