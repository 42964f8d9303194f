"""The pieces that a provider sends, taken apart and put together again: what faults change is in here as JSON values.

Owns the framings as far as the encoders write them. Knows no fault, and of a format what its `Serving` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from loop_core.wire import wire
from loop_core.wire.body import compact, read_object
from loop_core.wire.eventstream import event_frame
from loop_core.wire.framing import Whole

Event = dict[str, Any]
JSON = "application/json"


def kind_of(api: str, stream: bool) -> str:
    """The content type of an answer."""
    return wire(api).stream_type if stream else JSON


def _by_lines(api: str) -> bool:
    """Whether each value of a stream is a line."""
    return wire(api).decoder.object_framing is not Whole


def read(api: str, frame: bytes) -> tuple[str | None, Event] | None:
    """The name and the JSON object of one piece of a stream; None where it holds none (`[DONE]`)."""
    binary = wire(api).decoder.binary_framing
    if binary is not None:
        found = binary().feed(frame)
        value = read_object(found[0][0].decode()) if found else None
        return None if value is None else (found[0][1], value)
    if _by_lines(api):
        value = read_object(frame.decode())
        return None if value is None else (None, value)
    lines = frame.decode().splitlines()
    names = [line[6:].strip() for line in lines if line.startswith("event:")]
    value = read_object("\n".join(line[5:].strip() for line in lines if line.startswith("data:")))
    return None if value is None else (names[0] if names else None, value)


def write(api: str, name: str | None, value: Event) -> bytes:
    """One piece of a stream."""
    text = compact(value).encode()
    if wire(api).decoder.binary_framing is not None:
        return event_frame(name or "", text)
    if _by_lines(api):
        return text + b"\n"
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + text + wire(api).serving.frame_end


def change_values(api: str, frames: Iterable[bytes], change: Callable[[str | None, Event], bool]) -> tuple[bytes, ...]:
    """The frames, those whose value `change` says it has changed written anew."""
    made: list[bytes] = []
    for frame in frames:
        found = read(api, frame)
        made.append(write(api, *found) if found is not None and change(*found) else frame)
    return tuple(made)


def unreadable(api: str, frame: bytes) -> bytes:
    """The frame with a payload, or a checksum, that cannot be read; the framing stays as it is."""
    if wire(api).decoder.binary_framing is not None:
        return frame[:-1] + bytes([frame[-1] ^ 0xFF])
    name, value = read(api, frame) or (None, {})
    return write(api, name, value).replace(b"{", b"{{", 1)


def without_text(api: str, frame: bytes) -> bytes | None:
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
        held, key = wire(api).serving.text(name, value)
    except (KeyError, IndexError, TypeError):
        return None
    return (held, key) if isinstance(held.get(key), str) else None


# -- the stop reason -------------------------------------------------------------------------------------------------


def without_reason(api: str, stream: bool, frames: Iterable[bytes]) -> tuple[bytes, ...]:
    """The answer without its stop reason; all else is sent as it was, usage and the mark of the end too.

    Where the last event is the reason itself, the usage goes with it.
    """
    ends = wire(api).serving.told.events
    if stream and ends:
        return tuple(frame for frame in frames if (read(api, frame) or ("", {}))[0] not in ends)
    if stream:
        return change_values(api, frames, lambda name, value: _silenced(api, value))
    (body,) = frames
    value = read_object(body.decode())
    return (compact(value).encode(),) if value is not None and _silenced(api, value) else (body,)


def _silenced(api: str, value: Event) -> bool:
    """Takes the reason out, as far as it stands there; whether it did."""
    told = wire(api).serving.told
    found = [(holder, key) for holder in told.holders(value) for key in told.keys if holder.get(key) is not None]
    for holder, key in found:
        if told.null:
            holder[key] = None
        else:
            del holder[key]
    return bool(found)


def as_array(frames: Iterable[bytes]) -> tuple[bytes, ...]:
    """A stream as one array: the same values as its elements."""
    made: list[bytes] = []
    for frame in frames:
        payload = b"\n".join(line[5:].strip() for line in frame.splitlines() if line.startswith(b"data:"))
        made.append((b",\r\n" if made else b"[") + payload)
    return (*made, b"]") if made else (b"[]",)


def array_error(body: bytes) -> bytes:
    """A body as the one element of an array: how an error is told in place of a stream that is an array."""
    return b"[" + body + b"]"


# -- times -----------------------------------------------------------------------------------------------------------


def with_times(api: str, stream: bool, sent: Iterable[bytes]) -> tuple[bytes, ...]:
    """The frames of an answer, or its body, with their times."""
    change = wire(api).serving.dated
    if change is None:
        return tuple(sent)
    if stream:
        return change_values(api, sent, lambda name, value: change(value))
    made = []
    for body in sent:
        value = read_object(body.decode())
        made.append(compact(value).encode() if value is not None and change(value) else body)
    return tuple(made)
