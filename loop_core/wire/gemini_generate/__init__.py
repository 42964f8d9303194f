"""Gemini generateContent (Gemini API and Vertex AI): whole, as server-sent events, or as a streamed array.

This module holds the `Format`, and encodes a `ChatResponse` as one JSON body or as server-sent events. Decoding these
bytes gives the same response, except for what `LOSES` lists. Verbatim JSON (arguments, parts that are not interpreted)
is written unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from loop_core.errors import EncodeError
from loop_core.values import (
    CallKind,
    ChatResponse,
    OpaquePart,
    ProviderError,
    ReasoningPart,
    ResponsePart,
    Stop,
    TextPart,
    ToolCall,
    Usage,
)
from loop_core.wire.body import RawJSON, dump, non_null, pieces, read_object, sse_event
from loop_core.wire.format import VERSION, Format, Home
from loop_core.wire.gemini_generate import table
from loop_core.wire.gemini_generate.decode import Decoder
from loop_core.wire.gemini_generate.request import ASKING_LOSES, encode_request, path, read_request
from loop_core.wire.gemini_generate.table import API


def encode(response: ChatResponse, *, stream: bool = False, chunk: int = 16) -> Iterator[bytes]:
    """The body: one item when whole, one item per event when streamed, with `chunk` characters of text in each."""
    for what, why in _losses(response, stream):
        raise EncodeError(why, api=API, what=what)
    if stream:
        yield from _stream(response, max(1, chunk))
    else:
        yield dump(_body(response)).encode()


# -- what cannot be carried ------------------------------------------------------------------------------------------


def _losses(response: ChatResponse, stream: bool) -> Iterator[tuple[str, str]]:
    if response.refusal is not None:
        yield "refusal", "a refusal is a finish reason here and has no text"
    if response.stop_reason.raw is None and not _speaks_without_reason(response):
        yield "stop_reason", f"{response.stop_reason.normalized} has no finish reason of the provider"
    for name in response.native:
        if name not in table.NATIVE:
            yield f"native.{name}", f"generateContent has no field {name!r}"
    usage = response.usage
    if usage is not None and usage.reasoning_tokens is not None and (
            usage.output_tokens is None or usage.output_tokens < usage.reasoning_tokens):
        yield "usage.reasoning_tokens", "thoughts are part of the output tokens"
    for part in response.parts:
        yield from _part_losses(part, bool(response.stop_reason.raw), stream)


def _speaks_without_reason(response: ChatResponse) -> bool:
    """Whether the bytes show the stop reason although they hold no finish reason."""
    stop = response.stop_reason
    if response.error is not None or stop.normalized is Stop.INTERRUPTED:
        return True
    if stop.normalized is Stop.PAUSED:
        return response.continuation_token is not None
    return stop.normalized is Stop.SAFETY_BLOCKED and "blockReason" in response.native


def _part_losses(part: ResponsePart, stopped: bool, stream: bool) -> Iterator[tuple[str, str]]:
    verbatim = ""
    if isinstance(part, ReasoningPart):
        if part.data is not None:
            yield "reasoning.data", "thoughts are text and a signature"
        if not (part.text or part.signature):
            yield "reasoning.text", "an empty thought looks like no thought"
    elif isinstance(part, OpaquePart):
        verbatim = part.json
        if part.type not in (read_object(part.json) or {}):
            yield "opaque", f"a part has no field {part.type!r}"
    elif isinstance(part, ToolCall):
        verbatim = part.arguments or ""
        if part.kind is not CallKind.FUNCTION:
            yield "call.kind", f"a functionCall is a function of the caller, never {part.kind}"
        if part.arguments is not None and read_object(part.arguments) is None:
            yield "call.arguments", "arguments are sent as an object, which cannot be cut"
        if part.closed != stopped:
            yield "call.closed", "a call is closed by the finish reason and by nothing else"
    if stream and "\r" in verbatim:
        yield "line_breaks", "a carriage return ends a line of an event"


# -- what is sent ----------------------------------------------------------------------------------------------------


def _body(response: ChatResponse) -> dict[str, Any]:
    parts = [wire for part in response.parts for wire in _parts(part, 0)]
    end, body = _end(response), {**_feedback(response), **_metadata(response), **_error(response.error)}
    return {"candidates": [_candidate(parts, end)], **body} if parts or end or not body else body


def _stream(response: ChatResponse, chunk: int) -> Iterator[bytes]:
    head = _metadata(response, usage=False)
    for part in response.parts:
        for wire in _parts(part, chunk):
            yield _event({"candidates": [_candidate([wire])], **head})
    end, last = _end(response), {**_feedback(response), **_metadata(response)}
    if end:
        yield _event({"candidates": [_candidate([{"text": ""}], end)], **last})
    elif last.keys() - head.keys() or (head and not response.parts and response.error is None):
        yield _event(last)
    if response.error is not None:
        yield _event(_error(response.error))


_event = partial(sse_event, end="\r\n")


def _candidate(parts: list[dict[str, Any] | RawJSON], end: dict[str, Any] | None = None) -> dict[str, Any]:
    content = {"parts": parts, "role": "model"} if parts else {"role": "model"}
    return {"content": content, **(end or {}), "index": 0}


def _parts(part: ResponsePart, chunk: int) -> Iterator[dict[str, Any] | RawJSON]:
    """Gemini's parts for a part of the response; text in pieces of `chunk` characters, or whole if that is 0."""
    if isinstance(part, OpaquePart):
        yield RawJSON(part.json)
    elif isinstance(part, ToolCall):
        call = non_null(id=part.id, name=part.name, args=None if part.arguments is None else RawJSON(part.arguments))
        yield {"functionCall": call, **non_null(thoughtSignature=part.signature)}
    elif isinstance(part, TextPart):
        for piece in pieces(part.text, chunk or max(1, len(part.text))):
            yield {"text": piece}
    elif isinstance(part, ReasoningPart):
        signature = non_null(thoughtSignature=part.signature)
        if not part.text:
            yield {"text": "", **signature}
            return
        *first, final = pieces(part.text, chunk or len(part.text))  # the signature ends a thought
        for piece in first:
            yield {"text": piece, "thought": True}
        yield {"text": final, "thought": True, **signature}


def _end(response: ChatResponse) -> dict[str, Any]:
    """The fields of a candidate that describe its end."""
    raw = response.stop_reason.raw
    # With `enum-encoding=int` a word is a number, and must be written as one.
    return non_null(
        finishReason=raw if raw is None else _as_number(raw),
        finishMessage=response.native.get("finishMessage"),
        continuationToken=response.continuation_token,
    )


def _as_number(word: str) -> str | int:
    """Returns the number that a word spells; else the word. No enum has a number of more than ten digits."""
    number = int(word) if word.isascii() and word.isdigit() and len(word) <= 10 else None
    return word if number is None or str(number) != word else number


def _feedback(response: ChatResponse) -> dict[str, Any]:
    words = {name: response.native.get(name) for name, place in table.NATIVE.items() if place == "promptFeedback"}
    found = non_null(**words)
    return {"promptFeedback": found} if found else {}


def _metadata(response: ChatResponse, *, usage: bool = True) -> dict[str, Any]:
    counts = _usage(response.usage) if usage and response.usage is not None else None
    return non_null(usageMetadata=counts, modelVersion=response.model, responseId=response.id)


def _usage(usage: Usage) -> dict[str, Any]:
    visible = usage.visible_tokens
    if not visible and usage.reasoning_tokens:
        visible = None  # as sent when thinking used all tokens
    total = (usage.input_tokens or 0) + (usage.output_tokens or 0)
    return non_null(
        promptTokenCount=usage.input_tokens,
        candidatesTokenCount=visible,
        totalTokenCount=total,
        cachedContentTokenCount=usage.cached_tokens,
        thoughtsTokenCount=usage.reasoning_tokens,
    )


def _error(error: ProviderError | None) -> dict[str, Any]:
    if error is None:
        return {}
    code = error.code if error.code is None else _as_number(error.code)
    return {"error": non_null(code=code, message=error.message, status=error.type)}


FORMAT = Format(
    decoder=Decoder,
    paths=table.PATHS,
    recognises=table.recognises,
    reads=table.READS,
    stream_reads=table.STREAM_READS,
    read_request=read_request,
    encode=encode,
    loses=table.LOSES,
    encode_request=encode_request,
    asking_loses=ASKING_LOSES,
    path=path,  # holds model and streaming
    home=Home("https://generativelanguage.googleapis.com", "/v1beta", VERSION, "x-goog-api-key",
              variables=("GOOGLE_GEMINI_BASE_URL",)),
    provider="gcp.gemini",
    word_paths=(("candidates", 0, "finishReason"), ("candidates", 0, "finish_reason")),
    reduced=table.reduce_schema,
    history="contents",
)
