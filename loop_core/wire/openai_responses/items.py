"""Converts output items to parts of the response.

`decode` reads the events that bring items, and decides how a response ends. An item that is not interpreted keeps its
verbatim JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from loop_core.values import (
    ArgsForm,
    CallKind,
    OpaquePart,
    ReasoningPart,
    ResponsePart,
    Severity,
    TextPart,
    ToolCall,
)
from loop_core.wire.body import compact, string
from loop_core.wire.copies import Copy, difference
from loop_core.wire.openai_responses.growing import (
    GrowingItem,
    call_id,
    is_confirmed,
    other_item,
    other_name,
    other_words,
    payload,
)
from loop_core.wire.openai_responses.table import CLIENT_ITEMS, KNOWN_RESULTS, SERVER_ITEMS, runs_itself

Quirk = tuple[str, str, Severity]
"""A finding about an item, as rule, message and severity."""


class ItemReading(NamedTuple):
    """The meaning of one item."""

    parts: Sequence[ResponsePart] = ()
    refusal: str = ""
    quirk: Quirk | None = None


def closes(value: Mapping[str, Any], ended: bool) -> bool:
    """Whether the status of an ended item means that a call is complete. `ended` says whether the response's status is
    completed.

    An item without a status is whole in a completed response. `in_progress` there means that the item waits for its
    output: a call that a program makes, and the provider's own tools that the client runs (OpenAI's guide shows a
    `shell_call` in this way). For a plain function call this is a contradiction, and the call stays open.
    """
    status = value.get("status")
    if status is None:
        return ended
    if status == "completed":
        return True
    if status != "in_progress" or not ended:
        return False
    caller = value.get("caller")
    return value.get("type") in CLIENT_ITEMS or (isinstance(caller, dict) and caller.get("type") == "program")


def read(item: GrowingItem, ended: bool, result_ids: frozenset[str]) -> ItemReading:
    """The parts of one item."""
    kind = str(item.value.get("type"))
    if kind == "message" or (kind == "None" and "content" in item.value):  # "None": its type was left out
        return _message(item)
    if kind == "function_call":
        return _function(item, ended)
    if kind == "custom_tool_call":
        return _call(item, ended, CallKind.CUSTOM, payload(item, "input"))
    if kind == "reasoning":
        return ItemReading((_reasoning(item),))
    if kind in SERVER_ITEMS or (kind in CLIENT_ITEMS and runs_itself(item.value, result_ids)):
        name = item.value.get("name")
        own = name if isinstance(name, str) and name else SERVER_ITEMS.get(kind) or CLIENT_ITEMS[kind]
        return _item_as_call(item, own, CallKind.SERVER, ended)
    if kind in CLIENT_ITEMS:
        return _item_as_call(item, CLIENT_ITEMS[kind], CallKind.CUSTOM, ended)
    quirk = None
    if kind not in KNOWN_RESULTS:
        quirk = ("openai_responses.unknown_item", f"an output item is of an unknown type: {kind[:80]}",
                 Severity.INFO)
    return ItemReading((OpaquePart(kind, item.verbatim()),), quirk=quirk)


def _message(item: GrowingItem) -> ItemReading:
    parts, refusal = _message_parts(item)
    text = "".join([part.text for part in parts if type(part) is TextPart]) + refusal
    other = other_words(item, text)
    if other is None:
        return ItemReading(parts, refusal)
    message = difference("a message", text, other)
    return ItemReading(parts, refusal, ("openai_responses.text_differs", message, Severity.WARNING))


def _message_parts(item: GrowingItem) -> tuple[list[ResponsePart], str]:
    content = item.value.get("content")
    parts: list[ResponsePart] = []
    refusal = ""
    if isinstance(content, str) and (content or not item.pieces):
        return [TextPart(content)], ""
    for index, part in enumerate(content if isinstance(content, list) and (item.done or not item.pieces) else ()):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "refusal":
            refusal += string(part.get("refusal")) or ""
        elif kind in ("output_text", "text") and type(part.get("text")) is str:
            parts.append(TextPart(part["text"]))
        elif isinstance(part, dict):
            parts.append(OpaquePart(str(kind), item.verbatim("content", index)))
    if refusal or any(type(part) is TextPart and part.text for part in parts):
        return parts, refusal
    # A whole message without a word does not take back what was streamed.
    streamed = item.streamed_values("text", "refusal")
    parts += [TextPart(text) for _, field, text in streamed if field == "text" and (text or not parts)]
    return parts, "".join(text for _, field, text in streamed if field == "refusal")


def _reasoning(item: GrowingItem) -> ReasoningPart:
    value = item.value
    found = item.streamed_values("reasoning") or item.streamed_values("summary")
    streamed = "\n\n".join(piece for _, _, piece in found)  # each part is a paragraph (`Format.joints`)
    whole = "\n\n".join(_texts(value.get("content"))) or "\n\n".join(_texts(value.get("summary")))
    text = (whole or streamed) if item.done else (streamed or whole)
    # What the announcement of an item says of its encrypted content may be incomplete (openai ResponseReasoningItem).
    data = string(value.get("encrypted_content")) if item.done else None
    return ReasoningPart(text, None, data, string(value.get("id")))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for part in value if isinstance(value, list) else ():
        if isinstance(part, dict) and type(part.get("text")) is str:
            yield part["text"]


def _function(item: GrowingItem, ended: bool) -> ItemReading:
    arguments = item.value.get("arguments")
    if isinstance(arguments, (dict, list)):
        quirk = ("openai_responses.arguments_object", "arguments were sent as an object, not as a string",
                 Severity.INFO)
        return _call(item, ended, CallKind.FUNCTION, (item.verbatim("arguments"), None), quirk)
    return _call(item, ended, CallKind.FUNCTION, payload(item, "arguments"))


def _call(
    item: GrowingItem, ended: bool, kind: CallKind, texts: tuple[str | None, Copy | None], quirk: Quirk | None = None
) -> ItemReading:
    value, (text, other) = item.value, texts
    name, second = string(value.get("name")) or "", other_name(item)
    if other is not None:
        field = "arguments" if kind is CallKind.FUNCTION else "input"
        rule = "arguments_differ" if field == "arguments" else "input_differs"
        message = difference(f"the {field} of {name or 'a call'}", text or "", other)
        quirk = (f"openai_responses.{rule}", message, Severity.ERROR)
    elif second is not None:
        message = f"the provider gave two names of one call: {name[:80]!r} and {second[:80]!r}"
        quirk = ("openai_responses.name_differs", message, Severity.ERROR)
    whole = second is None and other is None and (not item.gap or is_confirmed(item, text))
    closed = whole and item.done and closes(value, ended)
    form = ArgsForm.OBJECT if isinstance(value.get("arguments"), (dict, list)) else ArgsForm.STRING
    call = ToolCall(call_id(value), name, text, closed, kind, form, string(value.get("status")),
                    string(value.get("id")), other_arguments=None if other is None else other.text, at=item.at)
    return ItemReading((call,), quirk=quirk)


def _item_as_call(item: GrowingItem, name: str, kind: CallKind, ended: bool) -> ItemReading:
    value = item.value
    own = string(value.get("id"))
    # An approval names the request's own id (openai types/responses/response_input_item.py, McpApprovalResponse).
    answer = call_id(value) or (own if value.get("type") == "mcp_approval_request" else None)
    other = other_item(item) if kind is CallKind.CUSTOM else None
    quirk = None
    if other is not None:
        quirk = ("openai_responses.item_differs", difference(f"the call {name}", compact(value), other),
                 Severity.ERROR)
    closed = other is None and not item.gap and item.done and closes(value, ended)
    call = ToolCall(answer, name, item.verbatim(), closed, kind, ArgsForm.OBJECT, string(value.get("status")), own,
                    other_arguments=None if other is None else other.text, at=item.at)
    return ItemReading((call,), quirk=quirk)
