"""Texts that a provider sends twice: a stream that repeats at its end what it said before. Where the two differ, a
call is held and a text is reported, with both places, since nothing shows which of them is meant.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from loop_core.values import At, ResponsePart, Severity, TextPart, ToolCall

_SHOWN_BEFORE, _SHOWN = 20, 60
"""The numbers of characters of a text that a finding shows: before the first difference, and altogether."""


class Copy(NamedTuple):
    """One of several texts of the same thing, and the byte at which it begins; None if that is not known."""

    text: str
    begin: int | None


def difference(what: str, text: str, other: Copy) -> str:
    """The message about two different texts: both from a little before their first difference on."""
    place = next((i for i, (one, two) in enumerate(zip(text, other.text, strict=False)) if one != two),
                 min(len(text), len(other.text)))
    where = "elsewhere" if other.begin is None else f"from byte {other.begin:,} on"
    one, two = _around(text, place), _around(other.text, place)
    return f"the provider sent two texts of {what}: {one!r}, and {where} {two!r}"


def _around(text: str, place: int) -> str:
    start = max(0, place - _SHOWN_BEFORE)
    end = start + _SHOWN
    return f"{'…' if start else ''}{text[start:end]}{'…' if len(text) > end else ''}"


def is_same_json(one: str, other: str) -> bool:
    """Whether two texts are equal, or the same JSON in another spacing or with its members in another order, as a
    gateway may write it."""
    if one == other:
        return True
    try:
        return json.dumps(json.loads(one), sort_keys=True) == json.dumps(json.loads(other), sort_keys=True)
    except (ValueError, RecursionError):
        return False


class Difference(NamedTuple):
    """Two different texts of one thing, as a finding about them."""

    rule: str
    message: str
    at: At | None
    severity: Severity


def compare(
    parts: Sequence[ResponsePart], repeated: Sequence[ResponsePart], end: At
) -> tuple[list[ResponsePart], list[Difference]]:
    """The streamed parts of an answer, whose calls are open if the end repeats them otherwise, and what differs.
    `end` is the place of the event with the repetition. An end that repeats no text, or no call, says nothing about
    them."""
    found = list(_text_differences(parts, repeated, end))
    others = [part for part in repeated if type(part) is ToolCall]
    compared: list[ResponsePart] = []
    for part in parts:
        other = _fitting(part, others) if type(part) is ToolCall and others else None
        if type(part) is ToolCall and other is not None:
            others.remove(other)
            if other.name != part.name or not is_same_json(part.arguments or "", other.arguments or ""):
                message = difference(f"a call of {part.name or 'no tool'}", f"{part.name} {part.arguments or ''}",
                                     Copy(f"{other.name} {other.arguments or ''}", end.start))
                found.append(Difference("call_differs", message, part.at, Severity.ERROR))
                part = part._replace(closed=False, other_arguments=other.arguments or "")
        compared.append(part)
    return compared, found


def _fitting(call: ToolCall, others: Sequence[ToolCall]) -> ToolCall | None:
    """The repetition of a call: by its id, and where no id is known by its place."""
    if call.id is None:
        return others[0] if others[0].id is None else None
    return next((other for other in others if other.id == call.id), None)


def _text_differences(
    parts: Sequence[ResponsePart], repeated: Sequence[ResponsePart], end: At
) -> Iterator[Difference]:
    one, two = ("".join([part.text for part in each if type(part) is TextPart]) for each in (parts, repeated))
    if two and one.strip() != two.strip():  # a server may trim what it repeats
        yield Difference("text_differs", difference("the answer", one, Copy(two, end.start)), end, Severity.WARNING)
