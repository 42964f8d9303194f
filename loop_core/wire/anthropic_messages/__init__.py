"""Anthropic Messages: `POST /v1/messages`, also as hosted on Vertex.

This module holds the `Format`, and encodes a `ChatResponse` as the bytes that the Messages API would send, whole or as
an event stream. The stop word is that of the response; a stream without one ends without `message_delta`. A response
that the format cannot carry raises `EncodeError`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from loop_core.errors import EncodeError
from loop_core.values import ChatResponse, OpaquePart, ReasoningPart, ResponsePart, TextPart, ToolCall
from loop_core.wire.anthropic_messages import table
from loop_core.wire.anthropic_messages.decode import Decoder
from loop_core.wire.anthropic_messages.request import ASKING_LOSES, CALL_TYPES, encode_request, read_request
from loop_core.wire.anthropic_messages.table import API
from loop_core.wire.body import RawJSON, dump, non_null, object_text, opaque_object, pieces, sse_event, to_bytes
from loop_core.wire.failures import read_error
from loop_core.wire.format import VERSION, Format, Home, Prefill
from loop_core.wire.response_calls import completes


@dataclass(slots=True, eq=False, repr=False)
class _Block:
    """A content block to send: a part, its type, and fields that the decoder kept as a separate part."""

    part: ResponsePart
    type: str
    fields: dict[str, Any] = field(default_factory=dict)


def encode(response: ChatResponse, *, stream: bool = False, chunk: int = 16) -> Iterator[bytes]:
    """The bytes of this response, one item per event; `chunk` is the characters in one delta."""
    if response.continuation_token is not None:
        raise EncodeError("there is no continuation token", api=API, what="continuation_token")
    failed = response.http_status is not None and response.http_status >= 400
    if response.error is not None and (failed or not stream):
        if response.parts or response.stop_reason.raw is not None:
            raise EncodeError("an error body holds no content", api=API, what="error beside content")
        return iter([to_bytes(dump(_error(response)))])
    blocks = _blocks(response.parts)
    if stream:
        return iter([sse_event(event, event["type"]) for event in _events(response, blocks, max(1, chunk))])
    return iter([to_bytes(dump(_whole(response, blocks)))])


# -- a response as blocks ----------------------------------------------------------------------------------------


def _blocks(parts: tuple[ResponsePart, ...]) -> list[_Block]:
    blocks: list[_Block] = []
    for part in parts:
        if isinstance(part, OpaquePart) and part.type.endswith(table.FIELDS):
            if not blocks or isinstance(blocks[-1].part, OpaquePart):
                raise EncodeError("fields without the block that they belong to", api=API, what="opaque")
            blocks[-1].type = part.type[: -len(table.FIELDS)]
            blocks[-1].fields = opaque_object(part, API)
        else:
            blocks.append(_Block(part, _type(part)))
    return blocks


def _type(part: ResponsePart) -> str:
    if isinstance(part, TextPart):
        return "text"
    if isinstance(part, ReasoningPart):
        return "thinking" if part.data is None else "redacted_thinking"
    if isinstance(part, OpaquePart):
        if not isinstance(opaque_object(part, API).get("type"), str):
            raise EncodeError("an opaque block without a type", api=API, what="opaque")
        return part.type
    if part.kind not in CALL_TYPES:
        raise EncodeError("only calls with JSON arguments exist here", api=API, what=f"{part.kind} call")
    return CALL_TYPES[part.kind]


# -- whole -------------------------------------------------------------------------------------------------------


def _whole(response: ChatResponse, blocks: list[_Block]) -> dict[str, Any]:
    calls = [block for block in blocks if block.type == "tool_use"]
    complete = completes(response.stop_reason)
    for block in blocks:
        part = block.part
        if isinstance(part, ToolCall):
            says = response.stop_reason.raw is not None and (complete or not calls or block is not calls[-1])
            if part.closed is not says:
                raise EncodeError("a whole body cannot say whether this call was closed", api=API, what="call.closed")
    content = [_whole_block(block) for block in blocks]
    return _message(response, content, response.stop_reason.raw, _usage(response), native=True)


def _whole_block(block: _Block) -> Any:
    part = block.part
    if isinstance(part, OpaquePart):
        return RawJSON(part.json)
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text, **block.fields}
    if isinstance(part, ReasoningPart):
        return {**_thinking(part, part.text), **block.fields}
    return _call(block, part, object_text(part, API))


def _thinking(part: ReasoningPart, text: str) -> dict[str, Any]:
    if part.data is not None:
        if part.text or part.signature:
            raise EncodeError("redacted thinking has neither text nor signature", api=API, what="reasoning.data")
        return {"type": "redacted_thinking", "data": part.data}
    return {"type": "thinking", "thinking": text, "signature": part.signature or ""}  # required


def _call(block: _Block, call: ToolCall, arguments: str | None) -> dict[str, Any]:
    sent = None if arguments is None else RawJSON(arguments)
    return {"type": block.type, **non_null(id=call.id, name=call.name, input=sent), **block.fields}


# -- stream ------------------------------------------------------------------------------------------------------


def _events(response: ChatResponse, blocks: list[_Block], chunk: int) -> Iterator[dict[str, Any]]:
    raw, usage = response.stop_reason.raw, _usage(response)
    # message_start counts one token of output, message_delta all of them (API docs, Streaming).
    early = {name: 1 if name == "output_tokens" else n for name, n in (usage or {}).items()
             if name not in ("output_tokens_details", "iterations")}
    first = usage if raw is None or usage is None else early
    yield {"type": "message_start", "message": _message(response, [], None, first, native=raw is None)}
    for index, block in enumerate(blocks):
        yield from _block_events(index, block, chunk)
    if raw is not None:
        delta = {"stop_reason": raw, "stop_sequence": _native(response, "stop_sequence"),
                 **_natives(response, "stop_details", "container")}
        yield {"type": "message_delta", "delta": delta, **non_null(usage=usage),
               **_natives(response, "context_management")}
    if response.error is not None:
        yield _error(response)
    elif raw is not None:
        yield {"type": "message_stop"}


def _block_events(index: int, block: _Block, chunk: int) -> Iterator[dict[str, Any]]:
    part, deltas, closed = block.part, list[dict[str, Any]](), True
    start: Any
    if isinstance(part, OpaquePart):
        start = RawJSON(part.json)
    elif isinstance(part, TextPart):
        rest = dict(block.fields)
        cited = rest.pop("citations", None) or []
        start = {"type": "text", "text": "", **({"citations": []} if cited else {}), **rest}
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(part.text, chunk)]
        deltas += [{"type": "citations_delta", "citation": citation} for citation in cited]
    elif isinstance(part, ReasoningPart):
        start = {**_thinking(part, ""), **({} if part.data else {"signature": ""}), **block.fields}
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(part.text, chunk)]
        if part.signature is not None:
            deltas.append({"type": "signature_delta", "signature": part.signature})
    else:
        closed, text = part.closed, part.arguments
        if text == "" and closed:
            raise EncodeError("a closed block without characters means {}", api=API, what="call.arguments")
        # Every block begins with an empty input (API docs, Streaming).
        start = _call(block, part, None if text is None else "{}")
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(text or "", chunk)]
    yield {"type": "content_block_start", "index": index, "content_block": start}
    yield from ({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
    if closed:
        yield {"type": "content_block_stop", "index": index}


# -- shared ------------------------------------------------------------------------------------------------------


def _message(response: ChatResponse, content: list[Any], raw: str | None, usage: dict[str, Any] | None, *,
             native: bool) -> dict[str, Any]:
    names = ("stop_details", "container", "context_management") if native else ()
    return {**non_null(id=response.id), "type": "message", "role": "assistant", **non_null(model=response.model),
            "content": content, "stop_reason": raw,
            "stop_sequence": _native(response, "stop_sequence") if native else None,
            **_natives(response, *names), **non_null(usage=usage)}


def _natives(response: ChatResponse, *names: str) -> dict[str, RawJSON]:
    return {name: native for name in names if (native := _native(response, name)) is not None}


def _native(response: ChatResponse, name: str) -> RawJSON | None:
    words = dict(response.native)
    if name == "stop_details":
        if response.refusal is not None:
            words["stop_details.explanation"] = response.refusal
        if any(word.startswith("stop_details.") for word in words):
            words.setdefault("stop_details.type", "refusal")  # the only type, left out by the decoder
    text = table.unflatten(words, name)
    return RawJSON(text) if text else None


def _usage(response: ChatResponse) -> dict[str, Any] | None:
    """The token counts, with those of each iteration if known."""
    usage, spent = response.usage, response.native.get("usage.iterations")
    if usage is None:
        return None
    details = None if usage.reasoning_tokens is None else {"thinking_tokens": usage.reasoning_tokens}
    return non_null(input_tokens=usage.input_tokens, cache_creation_input_tokens=usage.cache_write_tokens,
                    cache_read_input_tokens=usage.cached_tokens,
                    output_tokens=usage.output_tokens, output_tokens_details=details,
                    iterations=None if spent is None else RawJSON(spent))


def _error(response: ChatResponse) -> dict[str, Any]:
    error = response.error
    assert error is not None  # noqa: S101 - checked before
    body: dict[str, Any] = {
        "type": "error", "error": non_null(type=error.type, message=error.message, code=error.code),
        **non_null(request_id=response.native.get("request_id"))}
    if read_error(body, response.http_status) != error:
        raise EncodeError("the error body does not say all of this error", api=API, what="error")
    return body


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
    path=lambda request: "/messages",
    home=Home("https://api.anthropic.com", "/v1", VERSION, "x-api-key", (("anthropic-version", "2023-06-01"),),
              variables=("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE")),
    provider="anthropic",
    word_paths=(("stop_reason",),),
    whole_mark=("type", "message"),
    prefills=frozenset({Prefill.PLAIN}),
    # A signature of Claude holds on each of its hosts (Claude docs, Extended thinking).
    signed_alike=frozenset({"bedrock_converse", "bedrock_invoke"}),
    cached_apart=True,  # input_tokens leaves out what the cache held (API docs, prompt caching)
    handovers=table.handovers,
    container=("container.id", "container"),  # Anthropic API reference, Messages: container
)
