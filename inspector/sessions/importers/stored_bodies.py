"""Reads bodies in the forms in which recorders store them: wrapped in other values, and streams as lists."""

from __future__ import annotations

import binascii
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from inspector.sessions.importers.records import complete, object_in
from inspector.sessions.intake import Room, sibling
from inspector.sessions.transcripts.member_values import known_text, numbered_objects, object_of, objects_of
from loop_core.json_parser import JsonPath
from loop_core.wire.json_values import char_span

DUMP = "__data__"
"""The member with the JSON of an SDK's object, beside the object's type (Llama Stack's recordings)."""
KINDS: Mapping[str, tuple[str, ...]] = {
    "json": ("value",), "text": ("value",), "base64": ("value",), "sse": ("chunks",), "empty": ()}
"""Kind of a body in the cassettes of Braintrust's SDK -> the member with the body."""
SEGMENTS = "body_segments"
"""The member with the body in the replays of Google's Gen AI SDKs, as a list of JSON values."""

WIREMOCK_PACKED = "base64Body"
"""The member of a mapping of WireMock with the body of an answer in base64."""
WIREMOCK_FILE = "bodyFileName"
"""The member of a mapping of WireMock with the name of the file with the body of an answer."""
PACKED = ("base64_string", "b64", WIREMOCK_PACKED)
"""The members whose text is base64: Ruby's VCR with `preserve_exact_body_bytes`, ReqLLM, WireMock."""
_AROUND = frozenset({"string", "encoding", "decoded", *PACKED})
PROVIDER_DATA = "provider_data"
"""The member with the provider's own answer in DSPy's version of it (3.4 and later), which has other stop words, and an
object in place of arguments that are not JSON."""
_WHOLE = frozenset({"chat.completion", "response", "message"})
"""What a whole answer calls itself in `object` or `type`. Of a stream, DSPy keeps only the last event, which
in Gemini's format looks like a whole answer."""


def cassette(value: Any, path: JsonPath) -> tuple[Any, JsonPath]:
    """The text in `{"string": …}`, the form of bodies in cassettes, the JSON of an SDK's object, or the only one of
    several pieces (`SEGMENTS`), or the provider's answer in DSPy's version of it; and its path."""
    if path and path[-1] == SEGMENTS and isinstance(value, list) and len(value) == 1:
        return value[0], (*path, 0)
    if isinstance(value, dict):
        for key in ("string", *PACKED):
            if isinstance(value.get(key), str) and set(value) <= _AROUND:
                return value[key], (*path, key)
        if DUMP in value and len(value) == 2:
            return value[DUMP], (*path, DUMP)
        if "finish_reason" in value and "parts" in object_of(value.get("message")):
            answer = object_of(value.get(PROVIDER_DATA))
            whole = _WHOLE & {known_text(answer.get("object")), known_text(answer.get("type"))}
            return answer if whole else None, (*path, PROVIDER_DATA)
        if (kind := str(value.get("kind"))) in KINDS and value.keys() <= {"kind", "contentType", *KINDS[kind]}:
            held = next((value[name] for name in KINDS[kind] if name in value), "")
            return f"base64:{held}" if kind == "base64" else held, (*path, *KINDS[kind])
        data = value.get("data") if value.get("encoding") == "base64" else None
        if isinstance(data, str) and value.keys() <= {"data", "encoding", "size"}:  # Zen MCP's http_transport_recorder
            return f"base64:{data}", (*path, "data")
        if kind == "binary" and "sha256" in value:
            return None, path  # in a file beside the cassette
    return value, path


ROW_NAMES = ("custom_id", "recordId")
"""The members with the name of a row of a batch: of OpenAI, Anthropic and Mistral, and of Bedrock."""


def batch_row(value: dict[str, Any], entry: int) -> str:
    """The name of a row of a batch, by which rows with equal requests are not taken for retries; empty for any other
    record. Gemini's rows have a `key`, which other logs have for other purposes. Vertex AI needs no names."""
    names = (*ROW_NAMES, "key") if "contents" in object_of(value.get("request")) else ROW_NAMES
    named = next((value[name] for name in names if known_text(value.get(name))), "")
    return named or (f"row {entry + 1}" if "processed_time" in value else "")


def batch_line(value: Any, path: JsonPath) -> tuple[Any, JsonPath]:
    """The message in a line of an Anthropic batch's results, and its path."""
    if isinstance(value, dict) and value.get("type") in ("succeeded", "errored"):
        for key in ("message", "error"):
            if key in value:
                return value[key], (*path, key)
    return value, path


def word_of(answer: Any) -> str | None:
    """The stop word of an answer of Chat Completions; None if there is none. A program that makes calls of tags in the
    text may change the provider's word; if the words are equal, its version is what its agent received."""
    choices = objects_of(object_of(answer).get("choices"))
    return known_text(choices[0].get("finish_reason")) if choices else None


def request_beside(value: dict[str, Any]) -> str | None:
    """The request as JSON, if its members are beside an answer that is an object: in events of AutoGen, and in DSPy's
    history, where `kwargs` has the others. None for any other record."""
    if not (isinstance(value.get("messages"), list) and isinstance(value.get("response"), dict)):
        return None
    members = {name: value[name] for name in ("messages", "tools") if value.get(name)}
    return json.dumps({**members, **object_of(value.get("kwargs"))})


def unpack_pieces(text: str) -> bytes:
    """The bytes of a stream whose pieces were stored as base64, one per line."""
    return b"".join(map(binascii.a2b_base64, text.split("\n")))


def list_around(value: Any) -> str | None:
    """The member of an answer to which a value belongs, if it is a lone choice or candidate; None for any other
    value."""
    members = object_of(value)
    if members.keys() >= {"message", "finish_reason"}:
        return "choices"
    return "candidates" if "finishReason" in members and "parts" in object_of(members.get("content")) else None


# -- Streams as lists of events or texts -------------------------------------------------------------------------------

FRAMED = "streams were recorded as lists of events; their framing was added"
EVENT_MEMBERS = frozenset({"event", "type", "name", "id", "lasteventid", "retry"})
"""The members, in lower case, of a server-sent event that a logger wrote as an object, without that of its data."""
TIMES = frozenset({"ts", "time", "timestamp", "at", "received_at", "created_at", "elapsed_ms", "seq", "index", "level"})
"""The members in which loggers write the time and the number of an event."""
HOLDERS = ("data", "Data", "chunk", "event", "payload", "raw")
"""The members in which loggers write an event as it was sent."""


def event_data(value: Any) -> str | None:
    """The member with an event as it was sent, in an object of a logger; None for any other object. No provider's own
    event has a `data` that is a text or an object: its other members are beside its type."""
    if not isinstance(value, dict) or len(value) < 2:
        return None
    name = next((name for name in HOLDERS if value.get(name) and isinstance(value[name], (str, dict))), None)
    if name is None:
        return None
    held, beside = value[name], {member.lower() for member in value if member != name}
    timed = beside <= TIMES and (isinstance(held, dict) or held.lstrip().startswith(("{", "[")))  # no other log line
    return name if timed or beside <= EVENT_MEMBERS else None


def frame_lines(texts: Iterable[str]) -> list[str]:
    """JSON texts, each on one line: an SDK's object as its JSON, a server-sent event as its data."""
    return [_one_line(_inner(text)) for text in texts]


def _inner(text: str) -> str:
    key = None
    if f'"{DUMP}"' in text:
        key = DUMP
    elif any(f'"{name}"' in text for name in HOLDERS):  # parsing every event would cost more than framing it
        key = event_data(object_in(text))
    span = char_span(text, key) if key is not None else None
    if span is None:
        return text
    inner = text[span[0] : span[1]]
    return str(json.loads(inner)) if inner.startswith('"') else inner


def _one_line(text: str) -> str:
    if "\n" not in text and "\r" not in text:
        return text
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except ValueError:
        return " ".join(text.split())  # not JSON; a line break would begin another field


_FIELDS = ("data:", "event:", "id:", "retry:", ":")
"""The beginnings of lines of server-sent events that are not blank."""


def join_stream(texts: Sequence[str]) -> str:
    """The body of a stream that was stored as its chunks, as its lines, as its events without the blank lines, or as
    the JSON of its events."""
    if len(texts) > 1 and all(text.startswith(_FIELDS) and "\n\n" not in f"{text}\n" for text in texts) and (
            any("\n" in text for text in texts)):
        last = texts[-1].rpartition("data:")[2].strip()
        return "\n\n".join(texts) + "\n\n" * (last == "[DONE]" or complete(last))
    are_lines = all("\n" not in text and (text.startswith(_FIELDS) or text in ("", "[DONE]") or complete(text))
                    for text in texts)
    return "\n".join([*texts, ""]) if are_lines else "".join(texts)


# Only mappings of WireMock have these members, in JSON (read as pairs) and in YAML (read as a cassette). The request is
# a pattern that a request must match, and the body of the answer may be in base64, or in a separate file.
# Source: WireMock's documentation, "Stubbing" and "Record and playback", and mappings that OpenTelemetry recorded.


def asked_body(request: dict[str, Any]) -> JsonPath:
    """The path, in a request of WireMock, of the pattern that requires a whole body; empty if there is none."""
    for number, pattern in numbered_objects(request.get("bodyPatterns")):
        # with `ignoreExtraElements`, the rest of the body was not recorded, such as its limits and tools
        if "equalToJson" in pattern and str(pattern.get("ignoreExtraElements")).lower() != "true":
            return "bodyPatterns", number, "equalToJson"
    return ()


def wiremock_interaction(value: Any) -> Any:
    """A mapping of WireMock with the members of the cassettes."""
    request, response = object_of(object_of(value).get("request")), object_of(object_of(value).get("response"))
    if not request or not response:
        return value
    asked: Any = request
    for key in asked_body(request):
        asked = asked[key]
    sent = {} if asked is request else {"body" if isinstance(asked, str) else "parsed_body": asked}
    packed, parsed = response.get(WIREMOCK_PACKED), response.get("jsonBody")
    body = {"string": response.get("body")} if packed is None else {"base64_string": packed}
    return {"request": {**request, "url": request.get("url") or request.get("urlPath"), **sent},
            "response": {**response, **({"body": body} if parsed is None else {"parsed_body": parsed})}}


def with_body_file(value: Any, path: str, room: Room | None) -> Any:
    """A mapping of WireMock with the body of its answer, which is in the folder `__files` beside `mappings`; any other
    value as it is. No other folder is read, whatever the mapping names."""
    response = object_of(object_of(value).get("response"))
    name = known_text(response.get(WIREMOCK_FILE))
    if not name:
        return value  # nearly every pair
    mappings = os.path.dirname(os.path.abspath(path))
    while os.path.basename(mappings) != "mappings" and mappings != os.path.dirname(mappings):
        mappings = os.path.dirname(mappings)
    folder = os.path.join(os.path.dirname(mappings), "__files")
    file = os.path.normpath(os.path.join(folder, name))
    if not os.path.basename(mappings) or not file.startswith(folder + os.sep):
        return value
    data = sibling(path, os.path.relpath(file, os.path.dirname(path) or "."))
    if data is None or not (room or Room()).take(len(data)):  # many mappings may name one large file
        return value
    return {**value, "response": {**response, WIREMOCK_PACKED: binascii.b2a_base64(data).decode()}}
