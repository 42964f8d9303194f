"""Reads the fallback blocks of Anthropic Messages, with which a model hands over to another one inside an answer: the
findings about them, and the calls that the first model had begun. The block itself stays verbatim."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loop_core.values import At, CallKind, OpaquePart, ResponsePart, TextPart, ToolCall
from loop_core.wire.anthropic_messages.table import FIELDS
from loop_core.wire.body import integer, list_of, mapping_of, read_object, word

BLOCK = "fallback"
ITERATION = "fallback_message"
"""The type of an entry of `usage.iterations` for the work of a fallback model (anthropic 2.12.0)."""

Remark = tuple[str, str, At]


def iterations_differ(iterations: Any) -> bool:
    """Whether usage per iteration differs from the total usage."""
    return isinstance(iterations, list) and (len(iterations) > 1 or bool(_fallback_models(iterations)))


def declined_calls(parts: Sequence[ResponsePart]) -> list[ToolCall]:
    """The calls of models that handed over to a fallback model. They must not be answered, so they are not calls of the
    response."""
    last = max((i for i, part in enumerate(parts) if _is_seam(part)), default=0)
    return [part for part in parts[:last] if type(part) is ToolCall and part.kind is CallKind.FUNCTION]


def answer_parts(parts: Sequence[ResponsePart]) -> list[ResponsePart]:
    """The parts without declined calls and without the fields that belong to them."""
    gone = {id(call) for call in declined_calls(parts)}
    answer: list[ResponsePart] = []
    for before, part in zip((None, *parts), parts, strict=False):
        extends = type(part) is OpaquePart and part.type.endswith(FIELDS) and id(before) in gone
        if id(part) not in gone and not extends:
            answer.append(part)
    return answer


def remarks(parts: Sequence[ResponsePart], iterations: Any, places: Sequence[At], end: At) -> Iterator[Remark]:
    """The findings that say which model wrote which part, one for each handover at its block; `end` is the place for an
    answer without blocks."""
    seams = [i for i, part in enumerate(parts) if _is_seam(part)]
    for number, (at, place) in enumerate(zip(seams, places, strict=False)):
        block = _value(parts[at])
        before, after = _model(block, "from"), _model(block, "to")
        begin = seams[number - 1] + 1 if number else 0
        characters = sum(len(part.text) for part in parts[begin:at] if type(part) is TextPart)
        whose = f"{characters:,} characters before this seam are its, what follows is by {after}"
        spent = _describe_iterations(iterations) if number == len(seams) - 1 else ""
        yield BLOCK, f"{before} gave way to {after}{_trigger(block)}: {whose}{spent}", place
    if not seams:
        for model in _fallback_models(iterations)[-1:]:
            yield BLOCK, f"the answer is by the fallback model {model}{_describe_iterations(iterations)}", end
    for call in declined_calls(parts):
        yield "fallback_call", f"the call {call.name} is of a model that gave way, and is left out", call.at or end


def handovers(parts: Sequence[ResponsePart]) -> list[tuple[int, str]]:
    """The handovers inside one answer: the index of the character at which another model continues, and a text that
    names both models."""
    found: list[tuple[int, str]] = []
    position = 0
    for part in parts:
        if type(part) is TextPart:
            position += len(part.text)
        elif _is_seam(part):
            block = _value(part)
            found.append((position, f"{_model(block, 'from')} gave way to {_model(block, 'to')}{_trigger(block)}"))
    return found


def _is_seam(part: ResponsePart) -> bool:
    return type(part) is OpaquePart and part.type == BLOCK


def _value(part: ResponsePart) -> Mapping[str, Any]:
    return mapping_of(read_object(part.json) if type(part) is OpaquePart else None)


def _model(block: Mapping[str, Any], side: str) -> str:
    return word(mapping_of(block.get(side)).get("model")) or "a model without a name"


def _trigger(block: Mapping[str, Any]) -> str:
    trigger = mapping_of(block.get("trigger"))
    named = ", ".join(filter(None, (word(trigger.get("type")), word(trigger.get("category")))))
    return f" ({named})" if named else ""


def _fallback_models(iterations: Any) -> list[str]:
    """The names of the fallback models that made an answer, from the usage per iteration."""
    usages = [mapping_of(each) for each in list_of(iterations)]
    return [str(usage.get("model")) for usage in usages if usage.get("type") == ITERATION]


def _describe_iterations(iterations: Any) -> str:
    counts = [integer(mapping_of(each).get("output_tokens")) for each in list_of(iterations)]
    sums = " + ".join(f"{count:,}" for count in counts if count is not None)
    return f"; output tokens by iteration: {sums}" if sums else ""
