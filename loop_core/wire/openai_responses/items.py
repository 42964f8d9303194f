"""Converts output items to parts of the response.

`decode` reads the events with items, and decides how a response ended. An item that is not interpreted keeps its
verbatim JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from loop_core.json_parser import JsonPath
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
from loop_core.wire.body import compact, misfits_type, read_object, string
from loop_core.wire.json_values import slice_of
from loop_core.wire.openai_responses.table import CLIENT_ITEMS, KNOWN_RESULTS, SERVER_ITEMS, runs_itself
from loop_core.wire.reads import UNREAD, UNREAD_CALL
from loop_core.wire.response_calls import Copy, difference, is_same_json

# -- One output item while it arrives, and whether all that the provider sent of it agrees ---------------------------
# A stream holds most values several times: in pieces, in an event that repeats the whole field, in the finished item,
# and in the final response. The last whole text counts; a call with two different texts stays open.

_WORDS = ("text", "refusal")
"""The visible fields of a message."""


class GrowingItem:
    """One output item: its latest JSON, the pieces of its deltas, and whether it ended."""

    __slots__ = ("announced", "at", "begins", "done", "finals", "frame", "gap", "path", "pieces", "value", "wholes")

    def __init__(self, value: Mapping[str, Any], frame: bytes, path: JsonPath, at: At, done: bool) -> None:
        self.value = value
        self.frame = frame
        """The JSON text that holds `value`, at `path`."""
        self.path, self.at = path, at
        self.done = done
        """Whether the provider ended the item or listed it in its final response."""
        self.announced = value
        """The JSON with which the item began."""
        self.wholes: list[tuple[Mapping[str, Any], At]] = [(value, at)] if done else []
        """Each JSON that the provider sent as the whole item, with its place; the last one is `value`."""
        self.gap = False
        """Whether the event numbers show that an event inside the item is missing or repeated."""
        self.pieces: dict[tuple[str, int], list[str]] = {}
        self.finals: dict[tuple[str, int], str] = {}
        self.begins: dict[tuple[str, bool], int] = {}
        """Field, and whether it is a whole repetition -> the offset of its first piece or first repetition."""

    def replace(self, value: Mapping[str, Any], frame: bytes, path: JsonPath, at: At) -> None:
        """Replaces the item's JSON by that of the whole item; not by a renamed call, whose first id clients answer, and
        no call by an item of another type."""
        lost = is_call(self.value) and self.value.get("type") != value.get("type")
        if path[0] != "item" and (lost or (is_call(value) and not {*_ids(self.value)} & {*_ids(value)})):
            return
        self.value, self.frame, self.path, self.at, self.done = value, frame, path, at, True
        self.wholes.append((value, at))

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


def payload(item: GrowingItem, field: str) -> tuple[str | None, Copy | None]:
    """Returns the payload of a call, and a second text if its pieces, their repetition and the whole items disagree.
    Such a call stays open, because nothing shows which text the model meant."""
    pieces = "".join(item.pieces.get((field, 0), ()))
    final, value = item.finals.get((field, 0)), item.value.get(field)
    word = string(value) if field == "input" or isinstance(value, str | None) else item.verbatim(field)
    copies = [Copy(pieces, item.begins.get((field, False))), Copy(final or "", item.begins.get((field, True))),
              *(Copy(_as_text(whole.get(field)), at.start) for whole, at in item.wholes)]
    text = (word or final or pieces or word) if item.done else final if final is not None else pieces or word
    announced = _as_text(item.announced.get(field))
    if field == "arguments" and read_object(announced):  # `{}` may mean "nothing yet"
        copies.append(Copy(announced, None))
    is_same = is_same_json if field == "arguments" else str.__eq__
    other = next((copy for copy in copies if copy.text and text and not is_same(text, copy.text)), None)
    if other is None and pieces and (final == "" or (item.done and not word)):
        other = Copy("", None)  # an end without the streamed text
    return text, other


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else compact(value)


def is_confirmed(item: GrowingItem, text: str | None) -> bool:
    """Whether the pieces of a call form the text of its whole item: then no piece is missing or repeated, and the gap
    in the event numbers was another event, such as a `keepalive` that a gateway left out."""
    pieces = "".join(["".join(each) for (field, _), each in item.pieces.items() if field in ("arguments", "input")])
    return bool(pieces) and pieces == text and any(text in (value.get("arguments"), value.get("input"))
                                                   for value, _ in item.wholes)


def other_name(item: GrowingItem) -> str | None:
    """A second tool name that the provider sent for a call; None if all agree."""
    name = string(item.value.get("name")) or ""
    names = [string(value.get("name")) for value in (item.announced, *(value for value, _ in item.wholes))]
    return next((other for other in names if other and other != name), None)


def other_item(item: GrowingItem) -> Copy | None:
    """Returns another JSON of a whole item if a common member differs; None if all agree. The status may differ, and
    the item's own id if results use `call_id`."""
    for value, at in item.wholes[:-1]:
        common = (value.keys() & item.value.keys()) - ({"status", "id"} if call_id(value) else {"status"})
        if any(compact(value[name], sort=True) != compact(item.value[name], sort=True) for name in common):
            return Copy(compact(value), at.start)
    return None


def words(value: Mapping[str, Any]) -> str:
    """The visible text of a message, from the JSON of the whole message."""
    content = value.get("content")
    if isinstance(content, str):
        return content
    parts: Sequence[Any] = content if isinstance(content, list) else ()
    return "".join([part[field] for part in parts if isinstance(part, dict) for field in _WORDS
                    if type(part.get(field)) is str])


def streamed_words(item: GrowingItem) -> str:
    """The visible text of a message, from the pieces."""
    return "".join([text for _, _, text in item.streamed_values(*_WORDS)])


def other_words(item: GrowingItem, text: str) -> Copy | None:
    """Returns a text of a message that differs from `text`, which counts; None if all agree. It does not make the
    answer incomplete, since nothing shows that the whole message is wrong."""
    pieces = "".join(["".join(item.pieces[key]) for key in sorted(item.pieces, key=lambda key: key[1])
                      if key[0] in _WORDS])
    begins = [item.begins[key] for key in item.begins if key[0] in _WORDS]
    copies = [Copy(pieces, min(begins, default=None)), Copy(streamed_words(item), max(begins, default=None)),
              *(Copy(words(value), at.start) for value, at in item.wholes)]
    if item.done and text.strip() and not words(item.value):
        return Copy("", item.at.start)
    # A server may trim what it repeats, such as a text before a call (mlx-node PR#45).
    return next((copy for copy in copies if copy.text.strip() and copy.text.strip() != text.strip()), None)


# -- the items of the final response, beside those that were streamed ------------------------------------------------


def call_id(value: Mapping[str, Any]) -> str | None:
    """The id that a result has to name; None if it is missing or empty (xAI sends empty ids)."""
    return string(value.get("call_id")) or None


def _ids(value: Mapping[str, Any]) -> list[Any]:
    return [key for key in (value.get("id"), call_id(value)) if key]


def streamed_items(streamed: Sequence[GrowingItem], values: Sequence[Mapping[str, Any]]) -> list[GrowingItem | None]:
    """The streamed item of each item of the final response; None if it was not streamed. Items are matched by id, not
    by index, because the final list may lack items. If it renames messages, which have no second id, they are matched
    in order."""
    by_id = {key: item for item in reversed(streamed) for key in _ids(item.value)}  # of two, the first
    taken: set[int] = set()
    found: list[GrowingItem | None] = []
    for value in values:
        before = next((by_id[key] for key in _ids(value) if key in by_id), None)
        found.append(before if id(before) not in taken else None)
        taken.add(id(before))
    left: dict[str, list[GrowingItem]] = {}
    for item in streamed:
        if id(item) not in taken and (_is_message(item.value) or (item.done and is_call(item.value))):
            left.setdefault(_likeness(item.value), []).append(item)
    for at, value in enumerate(values):
        if found[at] is None and (alike := left.get(_likeness(value))):
            found[at] = alike.pop(0)
    return found


def _likeness(value: Mapping[str, Any]) -> str:
    """The part of a message or of a call that a new id leaves as it is."""
    names = ("type",) if _is_message(value) else ("type", "name", "arguments", "input", "action")
    return compact({name: value.get(name) for name in names})


def with_omitted(
    streamed: Sequence[GrowingItem], merged: Sequence[GrowingItem]
) -> tuple[list[GrowingItem], list[GrowingItem]]:
    """Returns the items of the final response with the streamed calls and texts that it leaves out, in stream order;
    and the latter alone. A left-out call has an id that must be answered, so it cannot be dropped. A text is left out
    if no message of the final response holds it."""
    named = {key for item in merged for key in _ids(item.value)}
    said, there = "".join([words(item.value) for item in merged]), {id(item) for item in merged}
    omitted: dict[int | None, list[GrowingItem]] = {}
    last: int | None = None
    for item in streamed:
        if id(item) in there:
            last = id(item)
            continue
        text = streamed_words(item) or words(item.value)
        is_lost_call = bool(call_id(item.value)) and named.isdisjoint(_ids(item.value))
        if is_lost_call or (_is_message(item.value) and text.strip() and text not in said):
            omitted.setdefault(last, []).append(item)
    whole = [*omitted.get(None, ()), *(each for item in merged for each in (item, *omitted.get(id(item), ())))]
    return whole, [item for items in omitted.values() for item in items]


def is_call(value: Mapping[str, Any]) -> bool:
    """Whether an item is a call that the client may have to run."""
    return value.get("type") in ("function_call", "custom_tool_call", *CLIENT_ITEMS)


def _is_message(value: Mapping[str, Any]) -> bool:
    return value.get("type") == "message"


# -- Items -> parts --------------------------------------------------------------------------------------------------

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
    if kind == "message" or (kind == "None" and "content" in item.value):  # "None" is a missing type
        return _message(item)
    if kind == "function_call":
        return _function(item, ended)
    if kind == "custom_tool_call":
        is_text = isinstance(item.value.get("input"), str | None)
        quirk = None if is_text else ("openai_responses.unread_value", UNREAD.format("input"), Severity.WARNING)
        return _call(item, ended, CallKind.CUSTOM, payload(item, "input"), quirk)
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
        rule = UNREAD_CALL if call_id(item.value) and item.value.get("arguments") else "unknown_item"
        quirk = (f"openai_responses.{rule}", f"an output item is of an unknown type: {kind[:80]}", Severity.INFO)
    return ItemReading((OpaquePart(kind, item.verbatim()),), quirk=quirk)


def _message(item: GrowingItem) -> ItemReading:
    parts, refusal = _message_parts(item)
    phase = string(item.value.get("phase"))
    if phase is not None:
        parts = [part._replace(phase=phase) if type(part) is TextPart else part for part in parts]
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
        elif isinstance(part, str):
            parts.append(TextPart(part))
        elif part:  # kept verbatim
            parts.append(OpaquePart(str(kind), item.verbatim("content", index)))
    if misfits_type(content, list) and not isinstance(content, str):
        parts.append(OpaquePart("content", item.verbatim("content")))
    if refusal or any(type(part) is TextPart and part.text for part in parts):
        return parts, refusal
    # A whole message without text does not replace the streamed text.
    streamed = item.streamed_values("text", "refusal")
    parts += [TextPart(text) for _, field, text in streamed if field == "text" and (text or not parts)]
    return parts, "".join(text for _, field, text in streamed if field == "refusal")


def _reasoning(item: GrowingItem) -> ReasoningPart:
    value = item.value
    found = item.streamed_values("reasoning") or item.streamed_values("summary")
    streamed = "\n\n".join(piece for _, _, piece in found)  # each part is a paragraph (`Format.joints`)
    whole = "\n\n".join(_texts(value.get("content"))) or "\n\n".join(_texts(value.get("summary")))
    text = (whole or streamed) if item.done else (streamed or whole)
    # The encrypted content in an item's announcement may be incomplete (openai ResponseReasoningItem).
    data = string(value.get("encrypted_content")) if item.done else None
    more = item.verbatim() if item.done and has_more_texts(value) else None
    return ReasoningPart(text, None, data, string(value.get("id")), more)


def has_more_texts(value: Mapping[str, Any]) -> bool:
    """Whether an item of reasoning holds more than one summary: the reasoning itself, or several summaries."""
    summary = value.get("summary")
    return bool(value.get("content")) or (isinstance(summary, list) and len(summary) > 1)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for part in value if isinstance(value, list) else ():
        if isinstance(part, dict) and type(part.get("text")) is str:
            yield part["text"]


def _function(item: GrowingItem, ended: bool) -> ItemReading:
    quirk = None if isinstance(item.value.get("arguments"), str | None) else (
        "openai_responses.arguments_object", "arguments were sent as JSON, not as a string", Severity.INFO)
    return _call(item, ended, CallKind.FUNCTION, payload(item, "arguments"), quirk)


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
    form = ArgsForm.STRING if isinstance(value.get("arguments"), str | None) else ArgsForm.OBJECT
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
