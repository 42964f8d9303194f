"""Hostile text made inert: nothing that a transcript holds reaches a terminal as a command.

Control characters, escape sequences, bidirectional overrides and other invisible format characters are shown as visible
marks. Line breaks and tabs stay. Markup is no concern here: no renderer of this project parses any.
"""

from __future__ import annotations

import re

_FORMAT = (
    "\x80-\x9f"  # C1: an 8-bit terminal takes 0x9B for ESC [
    "\u00ad\u061c\u180e"
    "\u200b-\u200f"  # zero width, and left-to-right marks
    "\u2028-\u202e"  # separators, and bidirectional embeddings and overrides
    "\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f"  # tags
    "\ud800-\udfff"  # lone surrogates cannot be written out
)
_ANY = re.compile(f"[\x00-\x08\x0b-\x1f\x7f{_FORMAT}]")  # ranges: a class of single characters takes long to compile
_DELETE, _PICTURES = 0x7F, 0x2400


def _mark(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < ord(" "):
        return chr(_PICTURES + code)
    return "\u2421" if code == _DELETE else f"<{code:04X}>"


def inert(text: str) -> str:
    """`text` with every control and format character as a visible mark; line breaks and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    return _ANY.sub(_mark, text)


def one_line(text: str, width: int | None = None) -> str:
    """`text` inert and on one line, line breaks as a mark; cut to `width` characters with an ellipsis."""
    line = inert(text).replace("\n", "\u23ce").replace("\t", " ")
    if width is not None and len(line) > width:
        return line[: max(0, width - 1)] + "…"
    return line
