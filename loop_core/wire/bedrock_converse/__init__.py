"""Bedrock Converse and ConverseStream: `POST /model/{id}/converse` and `/converse-stream`.

This module holds the `Format`, and encodes a `ChatResponse` as Converse sends it: a whole body, or frames of the binary
event stream. The stop word is that of the response; a stream without one ends without `messageStop`. A response that
the format cannot carry raises `EncodeError`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from loop_core.errors import EncodeError
from loop_core.values import CallKind, ChatResponse, OpaquePart, ReasoningPart, ResponsePart, TextPart, ToolCall
from loop_core.wire.bedrock_converse import table
from loop_core.wire.bedrock_converse.decode import Decoder
from loop_core.wire.bedrock_converse.request import ASKING_LOSES, encode_request, path, read_request, write_block
from loop_core.wire.bedrock_converse.table import API
from loop_core.wire.body import RawJSON, dump, non_null, object_text, opaque_object, pieces, to_bytes, total_of
from loop_core.wire.eventstream import CONTENT_TYPE, event_frame, exception_frame
from loop_core.wire.failures import read_error
from loop_core.wire.format import ANY_PATH, Format, Home, Prefill
from loop_core.wire.response_calls import completes

Event = tuple[str, dict[str, Any]]
"""One frame: its `:event-type` and its JSON value."""
METRICS = {"metrics": {"latencyMs": 0}}
"""A member of every answer. The latency is zero because the engine has no clock."""


@dataclass(slots=True)
class _Block:
    """A content block to send: a part, and citations that the decoder kept as a separate part."""

    part: ResponsePart
    citations: list[Any] = field(default_factory=list)


def encode(response: ChatResponse, *, stream: bool = False, chunk: int = 16) -> Iterator[bytes]:
    """The bytes of this response, one item per frame; `chunk` is the characters in one delta."""
    if response.continuation_token is not None:
        raise EncodeError("there is no continuation token", api=API, what="continuation_token")
    failed = response.http_status is not None and response.http_status >= 400
    if response.error is not None and (failed or not stream):
        if response.parts or response.stop_reason.raw is not None or not failed:
            raise EncodeError("an error body has an HTTP error status and no content", api=API, what="error")
        return iter([to_bytes(dump(_error_body(response)))])
    blocks = _blocks(response.parts)
    if not stream:
        return iter([to_bytes(dump(_whole(response, blocks)))])
    frames = [event_frame(name, to_bytes(dump(value))) for name, value in _events(response, blocks, max(1, chunk))]
    if response.error is not None:
        frames.append(_exception(response))
    return iter(frames)


def _blocks(parts: tuple[ResponsePart, ...]) -> list[_Block]:
    blocks: list[_Block] = []
    for part in parts:
        if isinstance(part, OpaquePart) and part.type == "citationsContent" + table.FIELDS:
            if not blocks or not isinstance(blocks[-1].part, TextPart):
                raise EncodeError("citations without the text that they belong to", api=API, what="opaque")
            blocks[-1].citations = list(opaque_object(part, API).get("citations") or ())
        elif isinstance(part, ToolCall) and part.kind is CallKind.CUSTOM:
            raise EncodeError("only calls with JSON arguments exist here", api=API, what="custom call")
        elif isinstance(part, OpaquePart) and part.type not in opaque_object(part, API):
            raise EncodeError(f"no content block is called {part.type}", api=API, what="opaque")
        elif isinstance(part, ReasoningPart) and part.data is not None and (part.text or part.signature):
            raise EncodeError("redacted reasoning has neither text nor signature", api=API, what="reasoning.data")
        else:
            blocks.append(_Block(part))
    return blocks


# -- whole -------------------------------------------------------------------------------------------------------


def _whole(response: ChatResponse, blocks: list[_Block]) -> dict[str, Any]:
    calls = [block for block in blocks if isinstance(block.part, ToolCall)]
    complete, raw = completes(response.stop_reason), response.stop_reason.raw
    for block in calls:
        says = raw is not None and (complete or block is not calls[-1])
        if isinstance(block.part, ToolCall) and block.part.closed is not says:
            raise EncodeError("a whole body cannot say whether this call was closed", api=API, what="call.closed")
    content = [_whole_block(block) for block in blocks]
    return {"output": {"message": {"content": content, "role": "assistant"}}, **non_null(stopReason=raw),
            **_tail(response), **_fields(response), **METRICS}


def _whole_block(block: _Block) -> Any:
    part = block.part
    if isinstance(part, OpaquePart):
        return RawJSON(part.json)
    if isinstance(part, TextPart) and block.citations:
        return {"citationsContent": {"content": [{"text": part.text}], "citations": block.citations}}
    if not isinstance(part, ToolCall):
        return write_block(part)
    arguments = object_text(part, API)
    return {"toolUse": {**_use(part), **non_null(input=None if arguments is None else RawJSON(arguments))}}


def _use(call: ToolCall) -> dict[str, Any]:
    return non_null(toolUseId=call.id, name=call.name, type=table.SERVER_TOOL if call.kind is CallKind.SERVER else None)


# -- stream ------------------------------------------------------------------------------------------------------


def _events(response: ChatResponse, blocks: list[_Block], chunk: int) -> Iterator[Event]:
    yield "messageStart", {"role": "assistant"}
    for index, block in enumerate(blocks):
        closed = not isinstance(block.part, ToolCall) or block.part.closed
        start, deltas = _stream_block(block, chunk)
        if start is not None:
            yield "contentBlockStart", {"contentBlockIndex": index, "start": start}
        for delta in deltas:
            yield "contentBlockDelta", {"contentBlockIndex": index, "delta": delta}
        if closed:
            yield "contentBlockStop", {"contentBlockIndex": index}
    if response.stop_reason.raw is not None:
        yield "messageStop", {"stopReason": response.stop_reason.raw, **_fields(response)}
    tail = _tail(response)
    if tail:
        yield "metadata", {**tail, **METRICS}


def _stream_block(block: _Block, chunk: int) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    part = block.part
    if isinstance(part, TextPart):
        # a text block has no start, so even an empty one needs a delta
        deltas: list[dict[str, Any]] = [{"text": piece} for piece in pieces(part.text, chunk) or [""]]
        return None, deltas + [{"citation": citation} for citation in block.citations]
    if isinstance(part, ReasoningPart):
        inner: list[dict[str, str]] = [{"text": piece} for piece in pieces(part.text, chunk)]
        if part.data is not None:
            inner = [{"redactedContent": part.data}]
        elif part.signature is not None:
            inner.append({"signature": part.signature})
        return None, [{"reasoningContent": piece} for piece in inner or [{"text": ""}]]
    if isinstance(part, ToolCall):
        if part.arguments is None:
            raise EncodeError("a stream has no absent arguments", api=API, what="call.arguments")
        return {"toolUse": _use(part)}, [{"toolUse": {"input": piece}} for piece in pieces(part.arguments, chunk)]
    return _stream_opaque(part)


def _stream_opaque(part: OpaquePart) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    block = opaque_object(part, API)
    value = block[part.type]
    if not isinstance(value, dict):
        raise EncodeError(f"a stream has no {part.type} block", api=API, what="opaque")
    if part.type == "citationsContent" and set(value) == {"citations"}:
        return None, [{"citation": citation} for citation in value["citations"]]
    # a start without the content, which comes as a delta
    if part.type == "toolResult" and isinstance(value.get("content"), list):
        start = {name: member for name, member in value.items() if name != "content"}
        return {"toolResult": start}, [{"toolResult": value["content"]}]
    return {part.type: value}, []


# -- shared ------------------------------------------------------------------------------------------------------


def _tail(response: ChatResponse) -> dict[str, Any]:
    members: dict[str, Any] = {}
    usage = response.usage
    if usage is not None:
        members["usage"] = non_null(
            inputTokens=usage.input_tokens, outputTokens=usage.output_tokens,
            totalTokens=total_of(usage), cacheReadInputTokens=usage.cached_tokens,
            cacheWriteInputTokens=usage.cache_write_tokens)
    reason = response.native.get("trace.guardrail.actionReason")
    return {**members, **({} if reason is None else {"trace": {"guardrail": {"actionReason": reason}}})}


def _fields(response: ChatResponse) -> dict[str, Any]:
    name = "additionalModelResponseFields"
    return {name: RawJSON(response.native[name])} if name in response.native else {}


def _error_body(response: ChatResponse) -> dict[str, Any]:
    error = response.error
    assert error is not None  # noqa: S101 - checked before
    body = {"message": error.message, **non_null(__type=error.type)}
    if read_error(body, response.http_status) != error:
        raise EncodeError("the error body does not say all of this error", api=API, what="error")
    return body


def _exception(response: ChatResponse) -> bytes:
    error = response.error
    if error is None or error.type is None or error.code is not None:
        raise EncodeError("an exception frame has a type and no code", api=API, what="error")
    return exception_frame(error.type, to_bytes(dump({"message": error.message})))


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
    path=path,
    home=Home("https://bedrock-runtime.us-east-1.amazonaws.com", "", ANY_PATH, "authorization"),
    provider="aws.bedrock",
    word_paths=(("stopReason",),),
    stream_type=CONTENT_TYPE,
    prefills=frozenset({Prefill.PLAIN}),
    signed_alike=frozenset({"anthropic_messages", "bedrock_invoke"}),  # as in Messages
    cached_apart=True,  # inputTokens leaves out what the cache held (API reference, TokenUsage)
    region="us-east-1",
)
