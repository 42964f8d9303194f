"""The JSON parser: pydantic's, which is fast, limits nesting, and reads a JSON text that was cut.

The package `jiter` is that parser alone. If jiter is not installed, the same parser inside pydantic_core is used,
because the engine may require only pydantic, jsonschema-rs and httpx. Importing pydantic_core takes 19 ms more, a tenth
of the start of `inspector explain`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:

    def from_json(data: bytes, /) -> Any:
        """The value of a JSON text. Raises ValueError if the text is not JSON."""

    def from_json_rows(data: bytes, /) -> Any:
        """The value of a JSON text, one of many rows: only names of members are cached, as other texts seldom recur."""

    def from_json_prefix(data: bytes, /) -> Any:
        """The value that a JSON text begins, as far as it goes; its last string may be cut."""

else:
    try:
        from jiter import from_json

        _ROWS, _PREFIX = {"cache_mode": "keys"}, {"partial_mode": "trailing-strings"}
    except ImportError:
        from pydantic_core import from_json

        _ROWS, _PREFIX = {"cache_strings": "keys"}, {"allow_partial": "trailing-strings"}
    from_json_rows, from_json_prefix = partial(from_json, **_ROWS), partial(from_json, **_PREFIX)
