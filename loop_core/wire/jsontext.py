"""JSON text in which some values stand exactly as they were received. Knows no format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any

from pydantic_core import from_json

_COMPACT, _SORTED = (
    # Made once: `json.dumps` makes an encoder for every call that asks for anything.
    json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=sort).encode for sort in (False, True)
)


class Raw(str):
    """JSON that is written as it stands."""

    __slots__ = ()


def compact(value: Any, *, sort: bool = False) -> str:
    """JSON text without blanks, characters as they are."""
    return (_SORTED if sort else _COMPACT)(value)


def dump(value: Any) -> str:
    """Compact JSON, characters as they are; `Raw` values stand verbatim."""
    kind = type(value)
    if kind is str:
        text = encode_basestring(value)
        if text.isprintable() or not any("\ud800" <= char <= "\udfff" for char in text):
            return text
        return json.dumps(value)  # a lone surrogate is no UTF-8: it can only stand as an escape
    if kind is dict:
        return "{" + ",".join([_name(key) + dump(item) for key, item in value.items()]) + "}"
    if value is None:
        return "null"
    if kind is int:
        return repr(value)
    if kind is list or kind is tuple:
        return "[" + ",".join([dump(item) for item in value]) + "]"
    if kind is Raw:
        return str(value)
    return dump(dict(value)) if isinstance(value, Mapping) else _COMPACT(value)


@lru_cache(maxsize=1024)
def _name(key: str) -> str:
    """A member's name; a stream has few, again and again."""
    return f"{dump(key)}:"


def mended(text: str) -> str:
    """A text whose surrogate pairs are characters again, also where pieces split them.

    Half a character at either end stays: the other half may come with the next response. One in the middle is lost.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        begin = "\udc00" <= text[0] <= "\udfff"
        end = len(text) - ("\ud800" <= text[-1] <= "\udbff")
        inner = text[begin:end].encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text[:begin] + inner + text[end:]
    return text


def read_object(text: str) -> dict[str, Any] | None:
    """The JSON object that `text` is; None where it is none, or cut."""
    try:
        value = from_json(text)
    except (ValueError, TypeError):  # a lone surrogate is no text to the parser
        return None
    return value if isinstance(value, dict) else None


def pieces(text: str, size: int) -> list[str]:
    """`text` in pieces of `size` characters; none where it is empty."""
    return [text[start : start + size] for start in range(0, len(text), size)]
