"""Reading a call's raw arguments: strictly for the gate, leniently for display only.

The strict parser accepts exactly one JSON object: no trailing text, no `NaN`, no key twice, no number out of range and
no lone surrogate, since two parsers would run two different calls, or one would fail. The lenient one shows what an
agent with a forgiving parser would have run; `{"n": 12` may have been 1200, so nothing it returns is ever released.
"""

from __future__ import annotations

import json
import math
import re
from enum import StrEnum
from typing import Any

from pydantic_core import from_json

from loop_core.frozen import frozen
from loop_core.values import ToolCall


class Shape(StrEnum):
    """What the raw characters are."""

    COMPLETE = "complete"
    """One JSON object and nothing else."""
    CUT = "cut"
    """The beginning of a JSON object: more characters could make it complete."""
    EMPTY = "empty"
    """No characters, or white space only."""
    ABSENT = "absent"
    NOT_OBJECT = "not_object"
    INVALID = "invalid"


@frozen
class Arguments:
    """The reading of one call's arguments; `stopped_at` counts characters."""

    shape: Shape
    value: dict[str, Any] | None = None
    stopped_at: int = 0
    problem: str = ""


def parse(raw: str | None) -> Arguments:
    """Reads raw arguments strictly."""
    if raw is None:
        return Arguments(Shape.ABSENT, problem="no arguments were sent")
    if not raw.strip():
        return Arguments(Shape.EMPTY, problem="the arguments are empty")
    try:
        value = _STRICT.decode(raw)
        if _SURROGATE.search(raw):
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as why:
        shape = Shape.CUT if _is_beginning(raw, why) else Shape.INVALID
        if why.msg.startswith("Unterminated string"):
            return Arguments(shape, None, len(raw), f"the string that begins at character {why.pos} is not closed")
        return Arguments(shape, stopped_at=why.pos, problem=_lower(why.msg))
    except UnicodeEncodeError:
        return Arguments(Shape.INVALID, stopped_at=len(raw), problem="a lone surrogate, which is no character")
    except ValueError as why:  # a key twice, NaN, a number too long to read
        return Arguments(Shape.INVALID, stopped_at=len(raw), problem=str(why))
    except RecursionError:
        return Arguments(Shape.INVALID, stopped_at=0, problem="nested too deeply")
    if not isinstance(value, dict):
        kind = _KINDS.get(type(value), "number")
        return Arguments(Shape.NOT_OBJECT, stopped_at=0, problem=f"a JSON {kind} where an object is due")
    return Arguments(Shape.COMPLETE, value, len(raw))


def parse_of(call: ToolCall) -> Arguments:
    """Reads the arguments of a call; where none were told, they are empty whatever stands for them."""
    return parse("" if call.untold else call.arguments)


def lenient(raw: str | None) -> Any:
    """What a forgiving parser would make of cut arguments, for display only; None where nothing can be read."""
    if not raw or not raw.strip():
        return {}
    try:
        return from_json(raw.encode("utf-8", "replace"), allow_partial="trailing-strings")
    except ValueError:
        return None


_KINDS = {str: "string", list: "array", bool: "boolean", type(None): "null"}
_SURROGATE = re.compile(r"[\ud800-\udfff]|\\u[dD][89a-fA-F]")
_LITERAL_TAIL = re.compile(r"(?:t|tr|tru|f|fa|fal|fals|n|nu|nul|-|\.|[eE][+-]?)\Z")
_ESCAPE_TAIL = re.compile(r"\\?u?[0-9a-fA-F]{0,4}\Z")


def _is_beginning(raw: str, why: json.JSONDecodeError) -> bool:
    """Whether the parser failed only because the text ended: more characters could make it complete."""
    if not raw.lstrip().startswith("{") or why.msg.startswith("Invalid control character"):
        return False
    rest = raw[why.pos :]
    if not rest.strip() or why.msg.startswith("Unterminated string"):
        return True
    if why.msg.startswith("Invalid \\uXXXX escape"):
        return _ESCAPE_TAIL.match(rest) is not None
    return _LITERAL_TAIL.match(rest) is not None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice!r} stands twice")
    return value


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"the number {digits[:40]} is out of range")
    return value


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


_STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
