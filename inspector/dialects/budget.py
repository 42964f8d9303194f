"""Where an answer ends when its budget is spent: the parts that came, and what they cost.

Tokens are ESTIMATED: four characters are one, and a token begun counts whole. No tokenizer is asked, so that the same
answer is cut at the same character for every provider.
"""

from __future__ import annotations

from collections.abc import Sequence

from loop_core.frozen import frozen, replace
from loop_core.values import ReasoningPart, ResponsePart, TextPart, ToolCall

CHARACTERS = 4
"""Characters of one estimated token."""


@frozen
class Cut:
    """As much of an answer as a budget allows."""

    parts: tuple[ResponsePart, ...]
    whole: bool
    """Nothing was left out."""
    inside: ToolCall | None
    """The intended call in whose arguments the cut lies; its beginning is the last of `parts`."""
    tokens: int
    thinking: int
    """How many of `tokens` were thinking."""


def tokens(text: str) -> int:
    """The estimated tokens of a text."""
    return -(-len(text) // CHARACTERS)


def cost(part: ResponsePart) -> int:
    """The estimated tokens of one part; the name of a call counts."""
    return tokens(_text(part))


def cut(parts: Sequence[ResponsePart], budget: int | None, free_thinking: bool = False) -> Cut:
    """The parts that fit into `budget` tokens; None is no bound. With `free_thinking`, thinking costs nothing of it."""
    kept: list[ResponsePart] = []
    spent = thinking = 0
    for part in parts:
        size = cost(part)
        free = free_thinking and isinstance(part, ReasoningPart)
        room = size if free or budget is None else budget - (spent - (thinking if free_thinking else 0))
        last = part if size <= room else _beginning(part, room * CHARACTERS)
        came = min(size, room)
        spent += came
        thinking += came if isinstance(part, ReasoningPart) else 0
        if last is not None:
            kept.append(last)
        if last is not part:
            inside = part if isinstance(part, ToolCall) and last is not None else None
            return Cut(tuple(kept), False, inside, spent, thinking)
    return Cut(tuple(kept), True, None, spent, thinking)


def _text(part: ResponsePart) -> str:
    if isinstance(part, ToolCall):
        return part.name + (part.arguments or "")
    return part.text if isinstance(part, (TextPart, ReasoningPart)) else ""


def _beginning(part: ResponsePart, characters: int) -> ResponsePart | None:
    """The first characters of a part; None where it was not begun."""
    if characters <= 0:
        return None
    if isinstance(part, (TextPart, ReasoningPart)):
        return replace(part, text=part.text[:characters])
    if isinstance(part, ToolCall) and characters >= len(part.name):
        return replace(part, arguments=(part.arguments or "")[: characters - len(part.name)])
    return None  # a name comes whole or not at all
