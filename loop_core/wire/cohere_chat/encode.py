"""`ChatResponse` -> the bytes of Cohere's version 2, whole or as events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loop_core.errors import EncodeError
from loop_core.values import CallKind, ChatResponse, OpaquePart, ReasoningPart, TextPart, ToolCall
from loop_core.wire.body import RawJSON, dump, non_null, pieces
from loop_core.wire.cohere_chat.decode import API


def encode(response: ChatResponse, *, stream: bool = False, chunk: int = 16) -> Iterator[bytes]:
    """The body: one item when whole, one item per event when streamed, with `chunk` characters of text in each."""
    for what, why in _losses(response, stream):
        raise EncodeError(why, api=API, what=what)
    error = response.error
    if error is not None and not response.parts and response.stop_reason.raw is None and not response.streaming:
        yield dump(non_null(id=response.id, message=error.message)).encode()
    elif stream:
        for event in _events(response, max(1, chunk)):
            yield f"event: {event['type']}\ndata: {dump(event)}\n\n".encode()
        if response.stop_reason.raw is not None:
            yield b"data: [DONE]\n\n"
    else:
        yield dump(_body(response)).encode()


def _losses(response: ChatResponse, stream: bool) -> Iterator[tuple[str, str]]:
    if response.continuation_token is not None:
        yield "continuation_token", "nothing can be continued by a token"
    for name in response.native:
        yield f"native.{name}", f"an answer has no field {name!r}"
    if response.error is not None and not stream and response.parts:
        yield "error", "a whole answer holds no error"
    kinds = [type(part) is ToolCall for part in response.parts]
    if not stream and kinds != sorted(kinds):
        yield "parts.order", "a message holds its content, then its calls"
    for part in response.parts:
        if isinstance(part, OpaquePart):
            yield "opaque", "a message holds thinking, text and calls"
        elif isinstance(part, ReasoningPart) and part.data is not None:
            yield "reasoning.data", "thinking is text"
        elif isinstance(part, ToolCall) and part.kind is CallKind.CUSTOM:
            yield "call.kind", "a call is a function of the caller"
        elif isinstance(part, ToolCall) and part.kind is CallKind.FUNCTION:
            if part.arguments is None or part.form != "string":
                yield "call.form", "arguments are a text"
            if not stream and part.closed != bool(response.stop_reason.raw):
                yield "call.closed", "a call of a whole answer is closed by the finish reason"


def _body(response: ChatResponse) -> dict[str, Any]:
    content = [_block(part) for part in response.parts if isinstance(part, (TextPart, ReasoningPart))]
    calls = [_call(call, call.arguments or "") for call in response.tool_calls]
    message = {"role": "assistant", **non_null(content=content or None, tool_calls=calls or None)}
    return {**non_null(id=response.id), "message": message, **_end(response)}


def _block(part: TextPart | ReasoningPart) -> dict[str, Any]:
    kind = "text" if isinstance(part, TextPart) else "thinking"
    return {"type": kind, kind: part.text}


def _call(call: ToolCall, arguments: str) -> dict[str, Any]:
    return {**non_null(id=call.id), "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _end(response: ChatResponse) -> dict[str, Any]:
    usage = response.usage
    if usage is None:
        return non_null(finish_reason=response.stop_reason.raw)
    tokens = non_null(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
    counts = {"tokens": tokens or RawJSON('{"input_tokens":null}'), **non_null(cached_tokens=usage.cached_tokens)}
    return {**non_null(finish_reason=response.stop_reason.raw), "usage": counts}


def _events(response: ChatResponse, chunk: int) -> Iterator[Mapping[str, Any]]:
    yield {"type": "message-start", **non_null(id=response.id), "delta": {"message": {"role": "assistant"}}}
    count = 0
    for index, part in enumerate(response.parts):
        if isinstance(part, (TextPart, ReasoningPart)):
            kind = "text" if isinstance(part, TextPart) else "thinking"
            yield _event("content-start", index, content={"type": kind, kind: ""})
            for piece in pieces(part.text, chunk):
                yield _event("content-delta", index, content={kind: piece})
            yield {"type": "content-end", "index": index}
        elif isinstance(part, ToolCall) and part.kind is CallKind.FUNCTION:
            yield _event("tool-call-start", count, tool_calls=_call(part, ""))
            for piece in pieces(part.arguments or "", chunk):
                yield _event("tool-call-delta", count, tool_calls={"function": {"arguments": piece}})
            if part.closed:
                yield {"type": "tool-call-end", "index": count}
            count += 1
    end = _end(response) | non_null(error=response.error.message if response.error else None)
    if end:
        yield {"type": "message-end", "delta": end}


def _event(kind: str, index: int, **message: Any) -> dict[str, Any]:
    return {"type": kind, "index": index, "delta": {"message": message}}
