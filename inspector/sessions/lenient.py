"""JSON that is JSON and yet no UTF-8, or holds bare control characters: read all the same, in a slower second attempt.

The fast parser refuses lone surrogates (`"\\ud83d"`), which JavaScript writes when it cuts a string. They become
U+FFFD, so that nothing read here fails when it is written or shown.
"""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic_core import from_json

_ESCAPE = re.compile(
    r"\\(?:[^u]|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|u)"
)
_NUMBER = re.compile(r"(?<=[:\[,])\s*-?[0-9][-+0-9.eE]*\Z")
_LARGEST = 1e18
"""Milliseconds of thirty million years: what is larger is no time."""


def loads(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is none.
    """
    try:
        return from_json(text)
    except (ValueError, TypeError):
        return reparse(text)


def reparse(text: str | bytes) -> Any:
    """The same for a text that the fast parser refused.

    Raises:
        ValueError: it is no JSON in this way either.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    try:
        return json.loads(mend(text.removeprefix("\ufeff")), strict=False)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def begun(text: str) -> Any:
    """What there is of the value of a JSON text that is cut; a number at the cut may be cut itself, and is left out.

    Raises:
        ValueError: it is no beginning of one.
    """
    return from_json(_NUMBER.sub("", text).encode("utf-8", "replace"), allow_partial="trailing-strings")


def mend(text: str) -> str:
    """The same JSON text, as long, without lone surrogates."""
    return _ESCAPE.sub(lambda match: "\\ufffd" if match[1] else match[0], text)


def number(value: Any) -> float | None:
    """The number that `value` is; None where it is none, or one that no float can hold (JSON integers have no end)."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not -_LARGEST < value < _LARGEST:
        return None
    return float(value)


def utf8_error(data: bytes) -> str | None:
    """Where `data` is no UTF-8, in one line; None where it is."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as why:
        return f"invalid UTF-8 at byte {why.start}: expected UTF-8; the rest was read"
    return None
