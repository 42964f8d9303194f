"""Which held call is which: how a batch that was cut is told to the model, and what of it came again.

A call is known by its tool and, where the batch holds others of the same tool, by the arguments in which they differ.
Only arguments that had arrived whole count: what follows the last comma of cut arguments may have been longer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from loop_core.arguments import Shape, parse
from loop_core.classify import is_phantom
from loop_core.gate import Admission, Verdict
from loop_core.values import CallKind, ToolCall

LONGEST_MARK = 200
"""A longer text is no name of anything, and may well be worded otherwise when it comes again."""
SHOWN = 80

Marks = Mapping[str, Any]
"""Argument -> value, for the arguments that tell a call from others of its tool."""


def held(verdicts: Sequence[Verdict]) -> tuple[ToolCall, ...]:
    """The calls that are held, phantoms left out, and of equal ones the first."""
    found: dict[tuple[str, str | None], ToolCall] = {}
    for verdict in verdicts:
        call = verdict.call
        if verdict.admission is Admission.HELD and not is_phantom(call):
            found.setdefault((call.name, call.arguments), call)
    return tuple(found.values())


def names(verdicts: Sequence[Verdict], beside: Sequence[Verdict] = ()) -> tuple[str, ...]:
    """What the model is told of each held call: its tool, and the arguments that tell it from its siblings.

    `beside` are siblings that have come again by now.
    """
    calls = held(verdicts)
    marks = _marks(calls, held(beside))
    return tuple(dict.fromkeys(_name(call, own) for call, own in zip(calls, marks, strict=True)))


def missing(
    broken: Sequence[Verdict], came: Iterable[ToolCall], beside: Sequence[Verdict] = ()
) -> tuple[Verdict, ...]:
    """The held calls that are not among those that came; nameless ones are given up, since none can be known."""
    calls = held(broken)
    marked = sorted(zip(calls, _marks(calls, held(beside)), strict=True), key=lambda each: -len(each[1]))
    left = list(came)
    lost: set[int] = set()
    for call, marks in marked:
        fits = next((other for other in left if other.name == call.name and _has(other, marks)), None)
        if fits is not None:
            left.remove(fits)
        elif call.name:
            lost.add(id(call))
    return tuple(verdict for verdict in broken if id(verdict.call) in lost)


def _marks(calls: Sequence[ToolCall], beside: Sequence[ToolCall]) -> list[Marks]:
    """For each call the arguments in which it differs from another call of its tool."""
    every = [(call, _arrived(call)) for call in (*calls, *beside)]
    found: list[Marks] = []
    for call, own in every[: len(calls)]:
        others = [each for other, each in every if other is not call and other.name == call.name]
        found.append({name: value for name, value in own.items()
                      if any(_text(other.get(name)) != _text(value) for other in others)})
    return found


def _has(call: ToolCall, marks: Marks) -> bool:
    value = parse(call.arguments).value or {}
    return all(name in value and _text(value[name]) == _text(mark) for name, mark in marks.items())


def _arrived(call: ToolCall) -> dict[str, Any]:
    """The plain, short arguments that had arrived whole."""
    if call.kind is not CallKind.FUNCTION:
        return {}
    reading = parse(call.arguments)
    value = reading.value
    if reading.shape is Shape.CUT:
        value = parse(_until_last_comma(call.arguments or "")).value
    return {name: each for name, each in (value or {}).items()
            if isinstance(each, (str, int, float)) and len(str(each)) <= LONGEST_MARK}


def _until_last_comma(raw: str) -> str:
    """The members before the last comma of the outermost object, as an object."""
    depth, inside, escaped, last = 0, False, False, -1
    for place, char in enumerate(raw):
        if inside:
            escaped, inside = char == "\\" and not escaped, char != '"' or escaped
        elif char == '"':
            inside = True
        elif char in "{[":
            depth += 1
        elif char in "}]":
            depth -= 1
        elif char == "," and depth == 1:
            last = place
    return raw[:last] + "}" if last >= 0 else "{}"


def _name(call: ToolCall, marks: Marks) -> str:
    name = call.name or "a call whose name did not arrive"
    if not marks:
        return name
    told = ", ".join(f"{key} {_text(value)[:SHOWN]}" for key, value in marks.items())
    return f"{name} ({told})"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
