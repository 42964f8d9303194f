"""Gemini Interactions: `POST /v1beta/interactions`, whole or as server-sent events, stored by the server or not.

This module holds the `Format`, and encodes a `ChatResponse` as the Interactions API sends it. The status is that of the
response; a stream without one ends without its last interaction object. A response that the format cannot carry raises
`EncodeError`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from loop_core.errors import EncodeError
from loop_core.values import CallKind, ChatResponse, OpaquePart, ReasoningPart, ResponsePart, TextPart, ToolCall, Usage
from loop_core.wire.body import RawJSON, dump, non_null, object_text, opaque_object, pieces, sse_event, to_bytes
from loop_core.wire.failures import read_error
from loop_core.wire.format import VERSION, Format, Home
from loop_core.wire.gemini_interactions import table
from loop_core.wire.gemini_interactions.decode import Decoder
from loop_core.wire.gemini_interactions.request import ASKING_LOSES, encode_request, read_request
from loop_core.wire.gemini_interactions.table import API


def encode(response: ChatResponse, *, stream: bool = False, chunk: int = 16) -> Iterator[bytes]:
    """The bytes of this response, one item per event; `chunk` is the characters in one delta."""
    if response.refusal is not None:
        raise EncodeError("there is no refusal", api=API, what="refusal")
    if response.native:
        raise EncodeError("there is no other word about the end", api=API, what="native")
    failed = response.http_status is not None and response.http_status >= 400
    if response.error is not None and (failed or not stream):
        if response.parts or response.stop_reason.raw is not None:
            raise EncodeError("an error body holds no content", api=API, what="error beside content")
        return iter([to_bytes(dump({"error": _error(response)}))])
    if stream:
        return iter([sse_event(value, name) for name, value in _events(response, max(1, chunk))])
    return iter([to_bytes(dump(_whole(response)))])


# -- whole -----------------------------------------------------------------------------------------------------------


def _whole(response: ChatResponse) -> dict[str, Any]:
    calls = [part for part in response.parts if type(part) is ToolCall]
    raw = response.stop_reason.raw
    for part in calls:
        if part.closed is not (raw is not None and (raw in table.FINISHED or part is not calls[-1])):
            raise EncodeError("a whole body cannot say whether this call was closed", api=API, what="call.closed")
    steps = [_step(part, notes) for part, notes in _annotated_parts(response.parts)]
    return {**_head(response), **non_null(status=raw), "steps": steps, **_metadata(response)}


def _annotated_parts(parts: Sequence[ResponsePart]) -> Iterator[tuple[ResponsePart, str | None]]:
    """The parts, each with the annotations that follow it."""
    for part, follower in zip_longest(parts, parts[1:]):
        if type(part) is OpaquePart and part.type == table.NOTES:
            continue
        has_notes = type(follower) is OpaquePart and follower.type == table.NOTES
        if has_notes and type(part) is not TextPart:
            raise _stray()
        yield part, follower.json if has_notes and type(follower) is OpaquePart else None
    if parts and type(parts[0]) is OpaquePart and parts[0].type == table.NOTES:
        raise _stray()


def _step(part: ResponsePart, notes: str | None = None) -> Any:
    if type(part) is TextPart:
        beside = {} if notes is None else {"annotations": RawJSON(notes)}
        return {"type": table.OUTPUT, "content": [{"type": "text", "text": part.text, **beside}]}
    if type(part) is ReasoningPart:
        _check(part)
        summary = [{"type": "text", "text": part.text}] if part.text else None
        return {"type": table.THOUGHT, **non_null(signature=part.signature, summary=summary)}
    if type(part) is OpaquePart:
        if part.type.startswith(table.INSIDE):  # part of a model's output; any other is a separate step
            return {"type": table.OUTPUT, "content": [RawJSON(part.json)]}
        opaque_object(part, API)
        return RawJSON(part.json)
    assert type(part) is ToolCall  # noqa: S101  (the kinds of parts are a closed list)
    return _call(part, whole=True)


def _check(part: ReasoningPart) -> None:
    if part.data is not None:
        raise EncodeError("thinking is not encrypted here", api=API, what="reasoning.data")


def _call(call: ToolCall, whole: bool) -> dict[str, Any]:
    if call.kind is not CallKind.FUNCTION:
        raise EncodeError("only calls with JSON arguments exist here", api=API, what=f"{call.kind} call")
    arguments = object_text(call, API) if whole else None if call.arguments is None else "{}"
    sent = None if arguments is None else RawJSON(arguments)
    return {"type": table.CALL, "id": call.id or "", "name": call.name,
            **non_null(arguments=sent, signature=call.signature)}


# -- stream ----------------------------------------------------------------------------------------------------------


def _events(response: ChatResponse, chunk: int) -> Iterator[tuple[str, Any]]:
    raw, head = response.stop_reason.raw, _head(response)
    early = _metadata(response) if raw is None else {}  # an interrupted stream has counts only in its first event
    yield _event("interaction.created", interaction={**head, "status": "in_progress", **early})
    for index, (part, notes) in enumerate(_annotated_parts(response.parts)):
        yield from _step_events(index, part, notes, chunk)
    if response.error is not None:
        yield _event("error", error=_error(response))
    if raw is not None:
        yield _event("interaction.completed", interaction={**head, "status": raw, **_metadata(response)})
    if response.saw_done or raw is not None:
        yield "done", RawJSON("[DONE]")


def _step_events(index: int, part: ResponsePart, notes: str | None, chunk: int) -> Iterator[tuple[str, Any]]:
    deltas: list[dict[str, Any]] = []
    closed = True
    start: Any
    if type(part) is TextPart:
        start = {"type": table.OUTPUT}
        deltas = [{"type": "text", "text": piece} for piece in pieces(part.text, chunk)]
        if notes is not None:
            deltas.append({"type": "text_annotation_delta", "annotations": json.loads(notes)})
    elif type(part) is ReasoningPart:
        _check(part)
        start = {"type": table.THOUGHT}
        deltas = [{"type": "thought_summary", "content": {"type": "text", "text": piece}}
                  for piece in pieces(part.text, chunk)]
        if part.signature is not None:
            deltas.append({"type": "thought_signature", "signature": part.signature})
    elif type(part) is OpaquePart:
        start = _step(part)
    else:
        assert type(part) is ToolCall  # noqa: S101  (the kinds of parts are a closed list)
        closed, text = part.closed, part.arguments
        start = _call(part, whole=False)
        if text == "" and closed:
            raise EncodeError("an ended call without characters means {}", api=API, what="call.arguments")
        deltas = [{"type": "arguments_delta", "arguments": piece} for piece in pieces(text or "", chunk)]
    yield _event("step.start", index=index, step=start)
    yield from (_event("step.delta", index=index, delta=delta) for delta in deltas)
    if closed:
        yield _event("step.stop", index=index)


# -- shared ----------------------------------------------------------------------------------------------------------


def _event(kind: str, **members: Any) -> tuple[str, dict[str, Any]]:
    return kind, {"event_type": kind, **members}


def _head(response: ChatResponse) -> dict[str, Any]:
    return {"id": response.id or "", "object": "interaction", **non_null(model=response.model)}


def _metadata(response: ChatResponse) -> dict[str, Any]:
    """The fields of an interaction besides its status: usage, and the token to continue a paused one."""
    counts = None if response.usage is None else _usage(response.usage)
    return non_null(usage=counts, continuation_token=response.continuation_token)


def _usage(usage: Usage) -> dict[str, int]:
    taken, thought = usage.output_tokens, usage.reasoning_tokens
    if thought is not None:
        if taken is None or thought > taken:
            raise EncodeError("thoughts are counted beside the output", api=API, what="usage.reasoning_tokens")
        taken -= thought  # the API counts thoughts beside the output, not in it
    counts = {"input": usage.input_tokens, "output": taken, "thought": thought, "cached": usage.cached_tokens}
    totals = {f"total_{name}_tokens": count for name, count in counts.items() if count is not None}
    # Cached tokens are part of the input.
    return {**totals, "total_tokens": sum(count for name, count in counts.items() if count and name != "cached")}


def _error(response: ChatResponse) -> dict[str, Any]:
    error = response.error
    assert error is not None  # noqa: S101 - checked before
    value = non_null(message=error.message, code=error.code, type=error.type)
    if read_error({"error": value}, response.http_status) != error:
        raise EncodeError("the error body does not say all of this error", api=API, what="error")
    return value


def _stray() -> EncodeError:
    return EncodeError("annotations without the text that they belong to", api=API, what="opaque")


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
    path=lambda request: "/interactions",
    home=Home("https://generativelanguage.googleapis.com", "/v1beta", VERSION, "x-goog-api-key"),
    provider="gcp.gemini",
    played_in="gemini_generate.serving:INTERACTIONS_SERVING",
    history="input",
    chained=table.is_chained,
)
