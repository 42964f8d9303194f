"""Converts output items to parts of the response.

`decode` reads the events that bring items, and decides how a response ends. An item that is not interpreted keeps its
verbatim JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from loop_core.values import (
    ArgsForm,
    At,
    CallKind,
    OpaquePart,
    ReasoningPart,
    ResponsePart,
    Severity,
    TextPart,
    ToolCall,
)
from loop_core.wire.body import string
from loop_core.wire.json_values import slice_of
from loop_core.wire.openai_responses.table import CLIENT_ITEMS, KNOWN_RESULTS, SERVER_ITEMS, runs_itself

_MOST_CHARS = 80
"""The largest number of characters of a text that a finding shows."""


class GrowingItem:
    """One output item: its latest JSON, the pieces of its deltas, and whether it ended."""

    __slots__ = ("at", "done", "finals", "frame", "path", "pieces", "value")

    def __init__(self, value: Mapping[str, Any], frame: bytes, path: tuple[str | int, ...], at: At, done: bool) -> None:
        self.value = value
        self.frame = frame
        """The JSON text that holds `value`, at `path`."""
        self.path = path
        self.at = at
        self.done = done
        """Whether the provider ended the item or listed it in its final response."""
        self.pieces: dict[tuple[str, int], list[str]] = {}
        self.finals: dict[tuple[str, int], str] = {}

    def replace(self, value: Mapping[str, Any], frame: bytes, path: tuple[str | int, ...], at: At) -> None:
        """Replaces the announced item by the ended one."""
        self.value, self.frame, self.path, self.at, self.done = value, frame, path, at, True

    def streamed_values(self, *fields: str) -> list[tuple[int, str, str]]:
        """The streamed values of these fields, as (index, field, text) in order; a whole value that repeats the pieces
        replaces them."""
        keys = sorted({key for key in (*self.pieces, *self.finals) if key[0] in fields}, key=lambda key: key[1])
        return [(key[1], key[0], self.finals.get(key, "".join(self.pieces.get(key, ())))) for key in keys]

    def verbatim(self, *more: str | int) -> str:
        """The JSON characters of the item, or of a value inside it, as received."""
        text = self.frame.decode("utf-8", "replace").lstrip("\ufeff")
        found = slice_of(text, *self.path, *more)
        if found is not None:
            return found
        value: Any = self.value
        for key in more:
            value = value[key]
        return json.dumps(value, ensure_ascii=False)


class ItemReading(NamedTuple):
    """The meaning of one item."""

    parts: Sequence[ResponsePart] = ()
    refusal: str = ""
    quirk: tuple[str, str, Severity] | None = None
    """A finding about the item, as rule, message and severity; None if there is none."""


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
        return _custom(item, ended)
    if kind == "reasoning":
        return ItemReading((_reasoning(item),))
    if kind in SERVER_ITEMS or (kind in CLIENT_ITEMS and runs_itself(item.value, result_ids)):
        name = item.value.get("name")
        own = name if isinstance(name, str) and name else SERVER_ITEMS.get(kind) or CLIENT_ITEMS[kind]
        return ItemReading((_item_as_call(item, own, CallKind.SERVER, ended),))
    if kind in CLIENT_ITEMS:
        return ItemReading((_item_as_call(item, CLIENT_ITEMS[kind], CallKind.CUSTOM, ended),))
    quirk = None
    if kind not in KNOWN_RESULTS:
        quirk = ("openai_responses.unknown_item", f"an output item is of an unknown type: {kind[:80]}",
                 Severity.INFO)
    return ItemReading((OpaquePart(kind, item.verbatim()),), quirk=quirk)


def call_id(value: Mapping[str, Any]) -> str | None:
    """The id that a result has to name; None if it is missing or empty (xAI sends empty ids)."""
    return string(value.get("call_id")) or None


def _message(item: GrowingItem) -> ItemReading:
    content = item.value.get("content")
    if isinstance(content, str):
        return ItemReading((TextPart(content),))
    if not (isinstance(content, list) and content and (item.done or not item.pieces)):
        found = item.streamed_values("text", "refusal")
        return ItemReading([TextPart(text) for _, field, text in found if field == "text"],
                    "".join(text for _, field, text in found if field == "refusal"))
    parts: list[ResponsePart] = []
    refusal = ""
    for index, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "refusal":
            refusal += string(part.get("refusal")) or ""
        elif kind in ("output_text", "text") and type(part.get("text")) is str:
            parts.append(TextPart(part["text"]))
        elif isinstance(part, dict):
            parts.append(OpaquePart(str(kind), item.verbatim("content", index)))
    return ItemReading(parts, refusal)


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
    value = item.value
    arguments = value.get("arguments")
    form, quirk, other = ArgsForm.STRING, None, None
    if isinstance(arguments, (dict, list)):
        arguments, form = item.verbatim("arguments"), ArgsForm.OBJECT
        quirk = ("openai_responses.arguments_object", "arguments were sent as an object, not as a string",
                 Severity.INFO)
    else:
        arguments, other = _agreed_payload(item, string(arguments), "arguments")
        quirk = _difference(value, "arguments", arguments, other)
    call = ToolCall(call_id(value), string(value.get("name")) or "", arguments,
                    other is None and item.done and closes(value, ended), CallKind.FUNCTION, form,
                    string(value.get("status")), string(value.get("id")), other_arguments=other, at=item.at)
    return ItemReading((call,), quirk=quirk)


def _custom(item: GrowingItem, ended: bool) -> ItemReading:
    value = item.value
    payload, other = _agreed_payload(item, string(value.get("input")), "input")
    call = ToolCall(call_id(value), string(value.get("name")) or "", payload,
                    other is None and item.done and closes(value, ended), CallKind.CUSTOM, ArgsForm.STRING,
                    string(value.get("status")), string(value.get("id")), other_arguments=other, at=item.at)
    return ItemReading((call,), quirk=_difference(value, "input", payload, other))


def _difference(
    value: Mapping[str, Any], field: str, word: str | None, other: str | None
) -> tuple[str, str, Severity] | None:
    """The finding that names two different texts of a payload; None if there is only one."""
    if other is None:
        return None
    one, two = (text if len(text) <= _MOST_CHARS else f"{text[: _MOST_CHARS - 1]}…" for text in (word or "", other))
    name = string(value.get("name")) or "a call"
    return (f"openai_responses.{field}_differ" if field == "arguments" else "openai_responses.input_differs",
            f"the provider sent two texts of the {field} of {name}: {one!r}, and elsewhere {two!r}", Severity.ERROR)


def _agreed_payload(item: GrowingItem, word: str | None, field: str) -> tuple[str | None, str | None]:
    """The payload of a call, and a second text of it if its pieces, their repetition and the final item disagree.

    Such a call stays open, because nothing shows which text the model meant.
    """
    pieces = "".join(item.pieces.get((field, 0), ()))
    final = item.finals.get((field, 0))
    if item.done:
        payload = word or final or pieces or word
        texts = [pieces, final, word]
    else:
        payload = final if final is not None else pieces or word
        texts = [pieces, final]
    other = next((text for text in texts if text and payload and not _is_same_payload(payload, text, field)), None)
    if other is None and pieces and (final == "" or (item.done and not word)):
        other = ""  # an end that repeats nothing of what was streamed
    return payload, other


def _is_same_payload(one: str, other: str, field: str) -> bool:
    if one == other:
        return True
    if field != "arguments":
        return False
    try:  # a gateway may write the same JSON in another spacing, or its members in another order
        return json.dumps(json.loads(one), sort_keys=True) == json.dumps(json.loads(other), sort_keys=True)
    except (ValueError, RecursionError):
        return False


def _item_as_call(item: GrowingItem, name: str, kind: CallKind, ended: bool) -> ToolCall:
    value = item.value
    own = string(value.get("id"))
    # An approval names the request's own id (openai types/responses/response_input_item.py, McpApprovalResponse).
    answer = call_id(value) or (own if value.get("type") == "mcp_approval_request" else None)
    return ToolCall(answer, name, item.verbatim(), item.done and closes(value, ended), kind, ArgsForm.OBJECT,
                    string(value.get("status")), own, at=item.at)
