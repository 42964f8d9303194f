"""Fallback blocks: where one model's output ends and another's begins, inside one answer.

Owns what is said of such a seam and of what the model that declined had begun. The block itself stays verbatim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic_core import from_json

from loop_core.values import At, CallKind, OpaquePart, ResponsePart, TextPart, ToolCall
from loop_core.wire.anthropic_messages.table import FIELDS

BLOCK = "fallback"
ITERATION = "fallback_message"
"""The type of an entry of `usage.iterations` whose model made the answer (anthropic 2.12.0)."""

Remark = tuple[str, str, At]


def worth_keeping(iterations: Any) -> bool:
    """Whether usage per iteration says more than usage as a whole."""
    return isinstance(iterations, list) and (len(iterations) > 1 or bool(_served(iterations)))


def declined(parts: Sequence[ResponsePart]) -> list[ToolCall]:
    """The calls of models that gave way: they are not to be answered, so they are none of the answer's."""
    last = max((i for i, part in enumerate(parts) if _is_seam(part)), default=0)
    return [part for part in parts[:last] if type(part) is ToolCall and part.kind is CallKind.FUNCTION]


def left(parts: Sequence[ResponsePart]) -> list[ResponsePart]:
    """The parts without those calls, and without the fields that belong to them."""
    gone = {id(call) for call in declined(parts)}
    kept: list[ResponsePart] = []
    for before, part in zip((None, *parts), parts, strict=False):
        extends = type(part) is OpaquePart and part.type.endswith(FIELDS) and id(before) in gone
        if id(part) not in gone and not extends:
            kept.append(part)
    return kept


def remarks(parts: Sequence[ResponsePart], iterations: Any, places: Sequence[At], end: At) -> Iterator[Remark]:
    """Which model made which part: one remark a seam, each at its block; `end` stands for an answer without one."""
    seams = [i for i, part in enumerate(parts) if _is_seam(part)]
    for number, (at, place) in enumerate(zip(seams, places, strict=False)):
        block = _value(parts[at])
        before, after = _model(block, "from"), _model(block, "to")
        begin = seams[number - 1] + 1 if number else 0
        said = sum(len(part.text) for part in parts[begin:at] if type(part) is TextPart)
        whose = f"{said:,} characters before this seam are its, what follows is by {after}"
        spent = _spent(iterations) if number == len(seams) - 1 else ""
        yield BLOCK, f"{before} gave way to {after}{_trigger(block)}: {whose}{spent}", place
    if not seams:
        for model in _served(iterations)[-1:]:
            yield BLOCK, f"the answer is by the fallback model {model}{_spent(iterations)}", end
    for call in declined(parts):
        yield "fallback_call", f"the call {call.name} is of a model that gave way, and is left out", call.at or end


def handovers(parts: Sequence[ResponsePart]) -> list[tuple[int, str]]:
    """The seams inside one answer: the character at which another model goes on, and who gave way to whom."""
    found: list[tuple[int, str]] = []
    said = 0
    for part in parts:
        if type(part) is TextPart:
            said += len(part.text)
        elif _is_seam(part):
            block = _value(part)
            found.append((said, f"{_model(block, 'from')} gave way to {_model(block, 'to')}{_trigger(block)}"))
    return found


def _is_seam(part: ResponsePart) -> bool:
    return type(part) is OpaquePart and part.type == BLOCK


def _value(part: ResponsePart) -> Mapping[str, Any]:
    try:
        value = from_json(part.json) if type(part) is OpaquePart else None
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {}


def _model(block: Mapping[str, Any], side: str) -> str:
    told = block.get(side)
    model = told.get("model") if isinstance(told, dict) else None
    return model if isinstance(model, str) and model else "a model without a name"


def _trigger(block: Mapping[str, Any]) -> str:
    told = block.get("trigger")
    words = [told.get(name) for name in ("type", "category")] if isinstance(told, dict) else []
    named = ", ".join(word for word in words if isinstance(word, str) and word)
    return f" ({named})" if named else ""


def _served(iterations: Any) -> list[str]:
    """The fallback models that made an answer."""
    given = iterations if isinstance(iterations, list) else []
    return [str(each.get("model")) for each in given if isinstance(each, dict) and each.get("type") == ITERATION]


def _spent(iterations: Any) -> str:
    given = iterations if isinstance(iterations, list) else []
    counts = [each.get("output_tokens") for each in given if isinstance(each, dict)]
    told = " + ".join(f"{count:,}" for count in counts if type(count) is int)
    return f"; output tokens by iteration: {told}" if told else ""
