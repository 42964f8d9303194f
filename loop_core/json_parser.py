"""The engine's JSON parser: pydantic's, which is fast, limits nesting, and can read a JSON text that was cut.

The package `jiter` is that parser alone. If jiter is not installed, the same parser inside pydantic_core is used,
because the engine may require only pydantic, jsonschema-rs and httpx. Importing pydantic_core takes 19 ms more, a tenth
of the start of `inspector explain`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

JsonPath = tuple[str | int, ...]
"""The keys and indexes from the root of a JSON value to a value inside it."""

if TYPE_CHECKING:

    def from_json(data: bytes, /) -> Any:
        """The value of a JSON text. Raises ValueError if the text is not JSON."""

    def from_json_checked(data: bytes, /) -> Any:
        """The value of a JSON text in which no object names a member twice. Raises ValueError for any other text."""

    def from_json_rows(data: bytes, /) -> Any:
        """The value of one of many rows of JSON. Only member names are cached, since other strings seldom recur."""

    def from_json_prefix(data: bytes, /) -> Any:
        """The value of a JSON text that may end anywhere, also inside a string."""

else:
    try:
        from jiter import from_json

        from_json_checked = partial(from_json, catch_duplicate_keys=True)
        _ROWS, _PREFIX = {"cache_mode": "keys"}, {"partial_mode": "trailing-strings"}
    except ImportError:
        from pydantic_core import from_json

        def from_json_checked(data: bytes, /) -> Any:
            """As above; pydantic_core does not look for repeated names."""
            value = from_json(data)
            if _find_repeated(data):
                raise ValueError("a member is named twice")
            return value

        _ROWS, _PREFIX = {"cache_strings": "keys"}, {"allow_partial": "trailing-strings"}
    from_json_rows, from_json_prefix = partial(from_json, **_ROWS), partial(from_json, **_PREFIX)


LENIENT_RULES = frozenset({"frame.lenient", "body.lenient"})
"""The rules of findings about JSON with invalid UTF-8 or control characters, which this parser refuses."""


def repeated_members(data: bytes) -> list[tuple[str, Any, Any]]:
    """Returns the name, the earlier and the later value of each repeated member of an object; empty if there is none,
    or if the text is not JSON."""
    try:
        from_json_checked(data)
    except ValueError:
        return _find_repeated(data)
    return []


def _find_repeated(data: bytes) -> list[tuple[str, Any, Any]]:
    found: list[tuple[str, Any, Any]] = []

    def read(members: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        json_object: dict[str, Any] = {}
        for name, value in members:
            if name in json_object:
                found.append((name, json_object[name], value))
            json_object[name] = value
        return json_object

    try:
        json.loads(data.decode("utf-8", "replace"), object_pairs_hook=read, strict=False)
    except (ValueError, RecursionError):
        return []  # not JSON, or a number that only one of the two parsers reads
    return found
