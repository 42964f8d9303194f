"""Anthropic Messages: `POST /v1/messages`, also as hosted on Vertex.

This module holds the `Format`, and encodes a `ChatResponse` as the bytes that the Messages API would send, whole or as
an event stream. The stop word is that of the response; a stream without one ends without `message_delta`. A response
that the format cannot carry raises `EncodeError`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from loop_core.errors import EncodeError
from loop_core.values import CallKind, ChatResponse, OpaquePart, ReasoningPart, ResponsePart, TextPart, ToolCall, Usage
from loop_core.wire.anthropic_messages.decode import Decoder, handovers
from loop_core.wire.anthropic_messages.request import ASKING_LOSES, encode_request, read_request
from loop_core.wire.anthropic_messages.table import (
    API,
    FIELDS,
    LOSES,
    PATHS,
    READS,
    STREAM_READS,
    completes,
    recognises,
    unflatten,
)
from loop_core.wire.body import compact, non_null, object_text, opaque_object, pieces, to_bytes
from loop_core.wire.failures import read_error
from loop_core.wire.format import VERSION, Format, Home, Prefill

_NEWLINE = re.compile(r"\r\n|\n|\r")
_CALL_TYPES = {CallKind.FUNCTION: "tool_use", CallKind.SERVER: "server_tool_use"}


@dataclass(slots=True, eq=False, repr=False)
class _Block:
    """A content block to be sent: a part, its type, and fields that the decoder kept as a separate part."""

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
        return iter([to_bytes(_error(response))])
    blocks = _blocks(response.parts)
    if stream:
        return iter([_event(event) for event in _events(response, blocks, max(1, chunk))])
    return iter([to_bytes(_whole(response, blocks))])


# -- a response as blocks ----------------------------------------------------------------------------------------


def _blocks(parts: tuple[ResponsePart, ...]) -> list[_Block]:
    blocks: list[_Block] = []
    for part in parts:
        if isinstance(part, OpaquePart) and part.type.endswith(FIELDS):
            if not blocks or isinstance(blocks[-1].part, OpaquePart):
                raise EncodeError("fields without the block that they belong to", api=API, what="opaque")
            blocks[-1].type = part.type[: -len(FIELDS)]
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
    if part.kind not in _CALL_TYPES:
        raise EncodeError("only calls with JSON arguments exist here", api=API, what=f"{part.kind} call")
    return _CALL_TYPES[part.kind]


# -- whole -------------------------------------------------------------------------------------------------------


def _whole(response: ChatResponse, blocks: list[_Block]) -> str:
    calls = [block for block in blocks if block.type == "tool_use"]
    complete = completes(response.stop_reason)
    for block in blocks:
        part = block.part
        if isinstance(part, ToolCall):
            says = response.stop_reason.raw is not None and (complete or not calls or block is not calls[-1])
            if part.closed is not says:
                raise EncodeError("a whole body cannot say whether this call was closed", api=API, what="call.closed")
    content = "[" + ",".join(_whole_block(block) for block in blocks) + "]"
    return _message(response, content, response.stop_reason.raw, _usage(response.usage), native=True)


def _whole_block(block: _Block) -> str:
    part, rest = block.part, block.fields
    if isinstance(part, OpaquePart):
        return part.json
    if isinstance(part, TextPart):
        return compact({"type": "text", "text": part.text, **rest})
    if isinstance(part, ReasoningPart):
        return compact({**_thinking(part, part.text), **rest})
    return _call(block, part, object_text(part, API))


def _thinking(part: ReasoningPart, text: str) -> dict[str, Any]:
    if part.data is not None:
        if part.text or part.signature:
            raise EncodeError("redacted thinking has neither text nor signature", api=API, what="reasoning.data")
        return {"type": "redacted_thinking", "data": part.data}
    return {"type": "thinking", "thinking": text, "signature": part.signature or ""}  # required


def _call(block: _Block, call: ToolCall, identifier: str | None) -> str:
    members = [f'"type":{compact(block.type)}']
    if call.id is not None:
        members.append(f'"id":{compact(call.id)}')
    members.append(f'"name":{compact(call.name)}')
    if identifier is not None:
        members.append(f'"input":{identifier}')
    members += [f"{compact(name)}:{compact(value)}" for name, value in block.fields.items()]
    return "{" + ",".join(members) + "}"


# -- stream ------------------------------------------------------------------------------------------------------


def _events(response: ChatResponse, blocks: list[_Block], chunk: int) -> Iterator[tuple[str, str]]:
    raw, ends = response.stop_reason.raw, response.stop_reason.raw is not None
    usage = _usage(response.usage)
    # message_start counts one token of output, message_delta all of them (API docs, Streaming).
    early = {name: 1 if name == "output_tokens" else n for name, n in usage.items() if name != "output_tokens_details"}
    message = _message(response, "[]", None, early if ends else usage, native=not ends)
    yield "message_start", f'{{"type":"message_start","message":{message}}}'
    for index, block in enumerate(blocks):
        yield from _block_events(index, block, chunk)
    if raw is not None:
        yield "message_delta", _message_delta(response, raw, usage)
    if response.error is not None:
        yield "error", _error(response)
    elif ends:
        yield "message_stop", '{"type":"message_stop"}'


def _block_events(index: int, block: _Block, chunk: int) -> Iterator[tuple[str, str]]:
    part, deltas, closed = block.part, list[dict[str, Any]](), True
    if isinstance(part, OpaquePart):
        start = part.json
    elif isinstance(part, TextPart):
        rest = dict(block.fields)
        cited = rest.pop("citations", None) or []
        start = compact({"type": "text", "text": "", **({"citations": []} if cited else {}), **rest})
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(part.text, chunk)]
        deltas += [{"type": "citations_delta", "citation": citation} for citation in cited]
    elif isinstance(part, ReasoningPart):
        start = compact({**_thinking(part, ""), **({} if part.data else {"signature": ""}), **block.fields})
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(part.text, chunk)]
        if part.signature is not None:
            deltas.append({"type": "signature_delta", "signature": part.signature})
    else:
        closed = part.closed
        start, deltas = _call_start(block, part, chunk)
    yield "content_block_start", f'{{"type":"content_block_start","index":{index},"content_block":{start}}}'
    for delta in deltas:
        yield "content_block_delta", compact({"type": "content_block_delta", "index": index, "delta": delta})
    if closed:
        yield "content_block_stop", f'{{"type":"content_block_stop","index":{index}}}'


def _call_start(block: _Block, call: ToolCall, chunk: int) -> tuple[str, list[dict[str, Any]]]:
    text = call.arguments
    if text is None:
        return _call(block, call, None), []
    if not text and call.closed:
        raise EncodeError("a closed block without characters means {}", api=API, what="call.arguments")
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(text, chunk)]
    return _call(block, call, "{}"), deltas  # every block begins with an empty input (API docs, Streaming)


def _message_delta(response: ChatResponse, raw: str, usage: dict[str, Any]) -> str:
    members = [f'"stop_reason":{compact(raw)}', f'"stop_sequence":{_native(response, "stop_sequence") or "null"}']
    members += [f'"{name}":{text}' for name in ("stop_details", "container") if (text := _native(response, name))]
    edits = _native(response, "context_management")
    return (
        '{"type":"message_delta","delta":{' + ",".join(members) + "}"
        + (f',"usage":{_write_counts(response, usage)}' if response.usage is not None else "")
        + (f',"context_management":{edits}' if edits else "")
        + "}"
    )


# -- shared ------------------------------------------------------------------------------------------------------


def _message(
    response: ChatResponse, content: str, raw: str | None, usage: dict[str, Any], *, native: bool
) -> str:
    members = [f'"id":{compact(response.id)}'] if response.id is not None else []
    members += ['"type":"message"', '"role":"assistant"']
    if response.model is not None:
        members.append(f'"model":{compact(response.model)}')
    members += [f'"content":{content}', f'"stop_reason":{compact(raw)}']
    members.append(f'"stop_sequence":{(native and _native(response, "stop_sequence")) or "null"}')
    if native:
        names = ("stop_details", "container", "context_management")
        members += [f'"{name}":{text}' for name in names if (text := _native(response, name))]
    if response.usage is not None:
        members.append(f'"usage":{_write_counts(response, usage) if native else compact(usage)}')
    return "{" + ",".join(members) + "}"


def _native(response: ChatResponse, name: str) -> str | None:
    words = dict(response.native)
    if name == "stop_details":
        if response.refusal is not None:
            words["stop_details.explanation"] = response.refusal
        if any(word.startswith("stop_details.") for word in words):
            words.setdefault("stop_details.type", "refusal")  # the only type there is, left out when it was read
    return unflatten(words, name)


def _usage(usage: Usage | None) -> dict[str, Any]:
    if usage is None:
        return {}
    details = None if usage.reasoning_tokens is None else {"thinking_tokens": usage.reasoning_tokens}
    return non_null(input_tokens=usage.input_tokens, cache_read_input_tokens=usage.cached_tokens,
                    output_tokens=usage.output_tokens, output_tokens_details=details)


def _write_counts(response: ChatResponse, usage: dict[str, Any]) -> str:
    """Adds to the counts the usage of each iteration, if it is known."""
    by_iteration = response.native.get("usage.iterations")
    if by_iteration is None:
        return compact(usage)
    return "{" + ",".join([*([compact(usage)[1:-1]] if usage else []), f'"iterations":{by_iteration}']) + "}"


def _error(response: ChatResponse) -> str:
    error = response.error
    if error is None:
        return ""
    body: dict[str, Any] = {
        "type": "error", "error": non_null(type=error.type, message=error.message, code=error.code)}
    if "request_id" in response.native:
        body["request_id"] = response.native["request_id"]
    if read_error(body, response.http_status) != error:
        raise EncodeError("the error body does not say all of this error", api=API, what="error")
    return compact(body)


def _event(event: tuple[str, str]) -> bytes:
    name, payload = event
    lines = _NEWLINE.split(payload)  # verbatim JSON may have been indented
    return to_bytes(f"event: {name}\n" + "".join(f"data: {line}\n" for line in lines) + "\n")


# -- The format -----------------------------------------------------------------------------------------------------


FORMAT = Format(
    decoder=Decoder,
    paths=PATHS,
    recognises=recognises,
    reads=READS,
    stream_reads=STREAM_READS,
    read_request=read_request,
    encode=encode,
    loses=LOSES,
    encode_request=encode_request,
    asking_loses=ASKING_LOSES,
    path=lambda request: "/messages",
    home=Home("https://api.anthropic.com", "/v1", VERSION, "x-api-key", (("anthropic-version", "2023-06-01"),)),
    provider="anthropic",
    word_paths=(("stop_reason",),),
    prefills=frozenset({Prefill.PLAIN}),
    cached_apart=True,  # input_tokens leaves out what the cache held (API docs, prompt caching)
    handovers=handovers,
)
