"""Changes the frames of a played answer as real servers would: decodes them to JSON values and encodes them again.

The module reads the framings that the encoders write. It knows a format only by its `Serving`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from inspector.provider.scenarios import PlayedScenario
from loop_core.judge.arguments import parse_leniently
from loop_core.wire import wire
from loop_core.wire.body import compact, pieces, read_object
from loop_core.wire.eventstream import event_frame
from loop_core.wire.framing import Whole

Event = dict[str, Any]
JSON = "application/json"


def _by_lines(api: str) -> bool:
    return wire(api).decoder.object_framing is not Whole


def read(api: str, frame: bytes) -> tuple[str | None, Event] | None:
    """The name and the JSON object of one frame of a stream; None if it has none (`[DONE]`)."""
    binary = wire(api).decoder.binary_framing
    if binary is not None:
        found = binary().feed(frame)
        value = read_object(found[0][0].decode()) if found else None
        # InvokeModel's stream wraps each event of Anthropic's in base64 (AWS, "InvokeModelWithResponseStream").
        if value is not None and found[0][1] == (wire(api).serving.wrapped or None):
            value = read_object(base64.b64decode(value["bytes"]).decode())
            return None if value is None else (value.get("type"), value)
        return None if value is None else (found[0][1], value)
    if _by_lines(api):
        value = read_object(frame.decode())
        return None if value is None else (None, value)
    lines = frame.decode().splitlines()
    names = [line[6:].strip() for line in lines if line.startswith("event:")]
    value = read_object("\n".join(line[5:].strip() for line in lines if line.startswith("data:")))
    return None if value is None else (names[0] if names else None, value)


def write(api: str, name: str | None, value: Event) -> bytes:
    """One encoded frame of a stream."""
    text = compact(value).encode()
    if wrapped := wire(api).serving.wrapped:
        return event_frame(wrapped, compact({"bytes": base64.b64encode(text).decode()}).encode())
    if wire(api).decoder.binary_framing is not None:
        return event_frame(name or "", text)
    if _by_lines(api):
        return text + b"\n"
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + text + wire(api).serving.frame_end


def change_values(
    api: str, stream: bool, frames: Iterable[bytes], change: Callable[[Event], bool]
) -> tuple[bytes, ...]:
    """The frames of a stream, or the body of an answer; those that `change` changed are encoded again."""
    new_frames: list[bytes] = []
    for frame in frames:
        name, value = (read(api, frame) if stream else (None, read_object(frame.decode()))) or (None, None)
        if value is not None and change(value):
            frame = write(api, name, value) if stream else compact(value).encode()
        new_frames.append(frame)
    return tuple(new_frames)


def unreadable(api: str, frame: bytes) -> bytes:
    """The frame with an unreadable payload or checksum; the framing stays valid."""
    if wire(api).decoder.binary_framing is not None:
        return frame[:-1] + bytes([frame[-1] ^ 0xFF])  # a message ends with its CRC (AWS event stream encoding)
    name, value = read(api, frame) or (None, {})
    return write(api, name, value).replace(b"{", b"{{", 1)


def without_text(api: str, frame: bytes) -> bytes | None:
    """The same delta without text; None if the frame is not a delta of text."""
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
    try:
        holder, key = wire(api).serving.text(name, value)
    except (KeyError, IndexError, TypeError):
        return None
    return (holder, key) if isinstance(holder.get(key), str) else None


# -- the stop reason -------------------------------------------------------------------------------------------------


def without_reason(api: str, stream: bool, frames: Iterable[bytes]) -> tuple[bytes, ...]:
    """The answer without its stop reason; all else stays, including usage and the end mark. If the last event is the
    reason itself, the usage in it is lost too."""
    ends = wire(api).serving.stop_place.events
    if stream and ends:
        return tuple(frame for frame in frames if (read(api, frame) or ("", {}))[0] not in ends)
    return change_values(api, stream, frames, lambda value: _remove_reason(api, value))


def _remove_reason(api: str, value: Event) -> bool:
    """Removes the stop reason, if the value holds one; returns whether it did."""
    place = wire(api).serving.stop_place
    found = [(holder, key) for holder in place.holders(value) for key in place.keys if holder.get(key) is not None]
    for holder, key in found:
        if place.null:
            holder[key] = None
        else:
            del holder[key]
    return bool(found)


def as_array(frames: Iterable[bytes]) -> tuple[bytes, ...]:
    """A stream as one array of the same values."""
    array_pieces: list[bytes] = []
    for frame in frames:
        payload = b"\n".join(line[5:].strip() for line in frame.splitlines() if line.startswith(b"data:"))
        array_pieces.append((b",\r\n" if array_pieces else b"[") + payload)
    return (*array_pieces, b"\n]") if array_pieces else (b"[]",)  # as Gemini ends it (recorded)


# -- times -----------------------------------------------------------------------------------------------------------


def with_times(api: str, stream: bool, frames: Iterable[bytes]) -> tuple[bytes, ...]:
    """The frames of an answer, or its body, with the times at which they are sent."""
    change = wire(api).serving.set_times
    return tuple(frames) if change is None else change_values(api, stream, frames, change)


# -- How servers change the shape of an answer -----------------------------------------------------------------------
# Each `Quirk` takes the JSON values of one answer (the events of a stream, or one body) and returns those that the
# server would have sent. The encoders write the shapes of the format's documentation, quirks those of single servers.


Quirk = Callable[[list[Event], PlayedScenario], list[Event]]

PIECE = 12
"""Characters in one piece of a stream."""


def apply_quirks(frames: list[bytes], quirks: tuple[Quirk, ...], play: PlayedScenario) -> list[bytes]:
    """The answer with the server's quirks; end marks that are not JSON (`[DONE]`) stay."""
    if not quirks:
        return frames
    decoded = [(read_object(piece.decode().removeprefix("data:").strip()), piece) for piece in frames]
    events = [event for event, _ in decoded if event is not None]
    for quirk in quirks:
        events = quirk(events, play)
    streamed = frames[0].startswith(b"data:")
    end = b"\r\n\r\n" if frames[0].endswith(b"\r\n\r\n") else b"\n\n"
    written = [b"data: " + compact(event).encode() + end if streamed else compact(event).encode() for event in events]
    return written + [piece for event, piece in decoded if event is None]


# -- chat completions ------------------------------------------------------------------------------------------------


def _call_deltas(events: list[Event]) -> Iterator[Event]:
    for event in events:
        for choice in event.get("choices", ()):
            yield from choice.get("delta", choice.get("message", {})).get("tool_calls", ())


def no_index(events: list[Event], play: PlayedScenario) -> list[Event]:
    """Calls without their index."""
    for call in _call_deltas(events):
        call.pop("index", None)
    return events


def one_index(events: list[Event], play: PlayedScenario) -> list[Event]:
    """Every call with index 0."""
    for call in _call_deltas(events):
        call["index"] = 0
    return events


def wandering_index(events: list[Event], play: PlayedScenario) -> list[Event]:
    """Pieces after the first with another index and no id; only for a single call, as several could not be
    distinguished."""
    for call in _call_deltas(events):
        if "id" not in call and len([part for part in play.parts if hasattr(part, "arguments")]) == 1:
            call["index"] += 1
    return events


def fresh_ids(events: list[Event], play: PlayedScenario) -> list[Event]:
    """Every piece of a call with a new id, and an empty name after the first."""
    for number, call in enumerate(_call_deltas(events), 1):
        call["id"] = f"call_{number}"
        call["function"].setdefault("name", "")  # as OCI does (litellm PR#40040)
    return events


def one_object(events: list[Event], play: PlayedScenario) -> list[Event]:
    """`tool_calls` as a single call instead of a list, with an empty id."""
    for event in events:
        for choice in event.get("choices", ()):
            delta = choice.get("delta", {})
            if "tool_calls" in delta:
                delta["tool_calls"] = {**delta["tool_calls"][0], "id": ""}
    return events


def object_arguments(events: list[Event], play: PlayedScenario) -> list[Event]:
    """Complete arguments as an object instead of a string."""
    for call in _call_deltas(events):
        whole = read_object(call["function"]["arguments"])
        if whole is not None:
            call["function"]["arguments"] = whole
    return events


def split_choices(events: list[Event], play: PlayedScenario) -> list[Event]:
    """The text in one choice of a whole body, the calls in another."""
    for event in events:
        (choice,) = event["choices"]
        message = choice["message"]
        if message.get("content") and "tool_calls" in message:
            calls = {**choice, "index": 1, "message": {"role": "assistant", "content": None,
                                                       "tool_calls": message.pop("tool_calls")}}
            event["choices"] = [choice, calls]
    return events


def usage_in_choice(events: list[Event], play: PlayedScenario) -> list[Event]:
    """Usage inside the choice that ends the stream."""
    ends = [event for event in events if any(choice.get("finish_reason") for choice in event.get("choices", ()))]
    if ends and "usage" in events[-1]:
        ends[-1]["choices"][0]["usage"] = events[-1]["usage"]
        return events[:-1]
    return events


def thinking_apart(events: list[Event], play: PlayedScenario) -> list[Event]:
    """`completion_tokens` without reasoning tokens, which only the total includes."""
    for event in events:
        usage = event.get("usage")
        if usage:
            # as xAI counts
            usage["completion_tokens"] -= usage.get("completion_tokens_details", {}).get("reasoning_tokens", 0)
    return events


def prompt_annotations(events: list[Event], play: PlayedScenario) -> list[Event]:
    """A first chunk without choices: the content filter's annotations of the prompt."""
    results = {"violence": {"filtered": False, "severity": "safe"}}
    # Azure's first chunk has no id, model or choices, so that clients that read `choices[0]` fail.
    return [{"id": "", "model": "", "object": "chat.completion.chunk", "created": 0, "choices": [],
             "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": results}]}, *events]


# -- Gemini ----------------------------------------------------------------------------------------------------------


def partial_values(events: list[Event], play: PlayedScenario) -> list[Event]:
    """Calls sent value by value (Vertex AI `streamFunctionCallArguments`); a cut call never ends."""
    new_events: list[Event] = []
    for event in events[:-1]:
        part = event["candidates"][0]["content"]["parts"][0]
        call = part.get("functionCall")
        new_events += [event] if call is None else _values(event, call["name"], call["args"], json.dumps(call["args"]))
    if play.cut_call is not None:
        cut = play.parts[-1]
        text = str(getattr(cut, "arguments", ""))
        new_events += _values(events[-1], play.cut_call.name, parse_leniently(text) or {}, text)
    return [*new_events, *events[-1:]]


def _values(like: Event, name: str, members: dict[str, Any], text: str) -> list[Event]:
    """The events of one call; a string in whose middle `text` ends stays open."""
    whole = read_object(text) is not None
    sent: list[Event] = [{"name": name, "willContinue": True}]
    for number, (key, value) in enumerate(members.items(), 1):
        path, last = f"$.{key}", number == len(members)
        parts = pieces(str(value), PIECE) or [""]
        sent += [{"partialArgs": [{"jsonPath": path, "stringValue": part, "willContinue": True}], "willContinue": True}
                 for part in parts]
        if whole or not last:
            sent.append({"partialArgs": [{"jsonPath": path, "stringValue": ""}], "willContinue": True})
    if whole:
        sent.append({})  # the end of a call: an object without `willContinue`
    head = {key: value for key, value in like.items() if key in ("modelVersion", "responseId")}
    return [{"candidates": [{"content": {"parts": [{"functionCall": call}], "role": "model"}, "index": 0}], **head}
            for call in sent]


WHOLE_ONLY = frozenset({split_choices, object_arguments})
"""The quirks that only a whole body can have."""
STREAM_ONLY = frozenset({
    no_index, one_index, wandering_index, fresh_ids, one_object, usage_in_choice, prompt_annotations, partial_values,
})
"""The quirks that only a stream can have."""
