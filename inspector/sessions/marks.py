"""Whether a text holds any of some marks, all of them looked for in one pass.

Python looks for one mark after the other, and twenty are looked for in every file, however large it is. The regular
expressions of pydantic_core, which are there for the JSON, find all at once, some twenty times as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from loop_core import fastjson


def searcher(marks: Iterable[str]) -> Callable[[str | bytes], bool]:
    """A test for any of these marks: plain ASCII, without characters that mean something in a pattern."""
    holds = fastjson.load().SchemaValidator({"type": "str", "pattern": "|".join(marks)}).isinstance_python

    def found(text: str | bytes) -> bool:
        # What is no UTF-8 would count as no text, and so as free of marks: it is made UTF-8 first.
        if not text.isascii():
            text = text.encode("utf-8", "replace") if isinstance(text, str) else text.decode("utf-8", "replace")
        return bool(holds(text))

    return found
