"""The pieces that a provider sends, taken apart and put together again: what faults change is in here as JSON values.

Owns the framings of the six formats as far as their encoders write them. Knows no fault.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from loop_core.wire.eventstream import EventStream, event_frame
from loop_core.wire.jsontext import compact, read_object
from loop_core.wire.openai_responses.table import TERMINAL_EVENTS
from loop_core.wire.servers import CHAT, CONVERSE, GEMINI, MESSAGES, OLLAMA, RESPONSES

Event = dict[str, Any]
STREAMS = {CONVERSE: "application/vnd.amazon.eventstream", OLLAMA: "application/x-ndjson"}
"""Content types of streams that are no server-sent events."""
SSE = "text/event-stream"
JSON = "application/json"


def kind_of(api: str, stream: bool) -> str:
    """The content type of an answer."""
    return STREAMS.get(api, SSE) if stream else JSON


def read(api: str, frame: bytes) -> tuple[str | None, Event] | None:
    """The name and the JSON object of one piece of a stream; None where it holds none (`[DONE]`)."""
    if api == CONVERSE:
        found = EventStream().feed(frame)
        value = read_object(found[0][0].decode()) if found else None
        return None if value is None else (found[0][1], value)
    if api == OLLAMA:
        value = read_object(frame.decode())
        return None if value is None else (None, value)
    lines = frame.decode().splitlines()
    names = [line[6:].strip() for line in lines if line.startswith("event:")]
    value = read_object("\n".join(line[5:].strip() for line in lines if line.startswith("data:")))
    return None if value is None else (names[0] if names else None, value)


def write(api: str, name: str | None, value: Event) -> bytes:
    """One piece of a stream."""
    text = compact(value).encode()
    if api == CONVERSE:
        return event_frame(name or "", text)
    if api == OLLAMA:
        return text + b"\n"
    end = b"\r\n\r\n" if api == GEMINI else b"\n\n"
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + text + end


def changed(api: str, frames: Iterable[bytes], change: Callable[[str | None, Event], bool]) -> tuple[bytes, ...]:
    """The frames, those whose value `change` says it has changed written anew."""
    made: list[bytes] = []
    for frame in frames:
        found = read(api, frame)
        made.append(write(api, *found) if found is not None and change(*found) else frame)
    return tuple(made)


def unreadable(api: str, frame: bytes) -> bytes:
    """The frame with a payload, or a checksum, that cannot be read; the framing stays as it is."""
    if api == CONVERSE:
        return frame[:-1] + bytes([frame[-1] ^ 0xFF])
    name, value = read(api, frame) or (None, {})
    return write(api, name, value).replace(b"{", b"{{", 1)


def emptied(api: str, frame: bytes) -> bytes | None:
    """The same delta without text; None where the frame is no delta of text."""
    found = read(api, frame)
    if found is None:
        return None
    name, value = found
    holder = _text_holder(api, name, value)
    if holder is None:
        return None
    holder[0][holder[1]] = ""
    return write(api, name, value)


def _text_holder(api: str, name: str | None, value: Event) -> tuple[Event, str] | None:
    """The object that holds a delta's text, and under which key."""
    try:
        held, key = _HOLDERS[api](name, value)
    except (KeyError, IndexError, TypeError):
        return None
    return (held, key) if isinstance(held.get(key), str) else None


def _converse(name: str | None, value: Event) -> tuple[Event, str]:
    return (value["delta"], "text") if name == "contentBlockDelta" else ({}, "")


_HOLDERS: dict[str, Callable[[str | None, Event], tuple[Event, str]]] = {
    CHAT: lambda name, value: (value["choices"][0]["delta"], "content"),
    RESPONSES: lambda name, value: (value, "delta") if name == "response.output_text.delta" else ({}, ""),
    MESSAGES: lambda name, value: (value["delta"], "text") if name == "content_block_delta" else ({}, ""),
    GEMINI: lambda name, value: (value["candidates"][0]["content"]["parts"][0], "text"),
    CONVERSE: _converse,
    OLLAMA: lambda name, value: (value["message"], "content"),
}
"""Format -> where a delta's text stands."""


def indexed(api: str, name: str | None, value: Event) -> list[tuple[Event, str]]:
    """The objects that say by an index to which part they belong, and under which key."""
    if api == CHAT:
        choices = value.get("choices") or ()
        calls = [call for choice in choices for call in choice.get("delta", {}).get("tool_calls", ())]
        return [(call, "index") for call in calls]
    key = _INDEXES.get(api)
    return [(value, key)] if key is not None and key in value else []


_INDEXES = {RESPONSES: "output_index", MESSAGES: "index", CONVERSE: "contentBlockIndex"}


# -- the stop reason -------------------------------------------------------------------------------------------------


def without_reason(api: str, stream: bool, frames: Iterable[bytes]) -> tuple[bytes, ...]:
    """The answer without its stop reason; all else is sent as it was, usage and the mark of the end too.

    What ends a Responses stream is the reason itself, and the usage stands in it.
    """
    if stream and api == RESPONSES:
        return tuple(frame for frame in frames if (read(api, frame) or ("", {}))[0] not in TERMINAL_EVENTS)
    if stream:
        return changed(api, frames, lambda name, value: _silenced(api, value))
    (body,) = frames
    value = read_object(body.decode())
    return (compact(value).encode(),) if value is not None and _silenced(api, value) else (body,)


class _Told(NamedTuple):
    """Where a format tells the reason."""

    holders: Callable[[Event], Sequence[Event]]
    """The objects that may hold it, in a body or an event."""
    keys: tuple[str, ...]
    null: bool = False
    """Whether it is null where there is none; else it is left out."""


def _silenced(api: str, value: Event) -> bool:
    """Takes the reason out, as far as it stands there; whether it did."""
    told = _TOLD[api]
    found = [(holder, key) for holder in told.holders(value) for key in told.keys if holder.get(key) is not None]
    for holder, key in found:
        if told.null:
            holder[key] = None
        else:
            del holder[key]
    return bool(found)


_TOLD: dict[str, _Told] = {
    CHAT: _Told(lambda value: value.get("choices", ()), ("finish_reason", "native_finish_reason"), null=True),
    RESPONSES: _Told(lambda value: (value,), ("status", "incomplete_details"), null=True),
    MESSAGES: _Told(lambda value: (value.get("delta", value),), ("stop_reason",), null=True),
    GEMINI: _Told(lambda value: value.get("candidates", ()), ("finishReason", "finishMessage")),
    CONVERSE: _Told(lambda value: (value,), ("stopReason",)),
    OLLAMA: _Told(lambda value: (value,), ("done_reason",)),
}


def as_array(frames: Iterable[bytes]) -> tuple[bytes, ...]:
    """Gemini's stream without `alt=sse`: the same values as the elements of one array."""
    made: list[bytes] = []
    for frame in frames:
        payload = b"\n".join(line[5:].strip() for line in frame.splitlines() if line.startswith(b"data:"))
        made.append((b",\r\n" if made else b"[") + payload)
    return (*made, b"]") if made else (b"[]",)


def array_error(body: bytes) -> bytes:
    """A body as the one element of an array: how Gemini tells of an error in place of a stream."""
    return b"[" + body + b"]" if json.loads(body) else body
