"""OpenAI Responses, and the servers that imitate it.

This module holds the `Format`, and encodes a `ChatResponse`, whole or streamed. Missing ids and times become constants.
A response that the format cannot express raises `EncodeError`, for example an open call under statuses that say it is
whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loop_core.errors import EncodeError
from loop_core.values import (
    ArgsForm,
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
from loop_core.wire.body import RawJSON, dump, json_value, non_null, pieces, total_of
from loop_core.wire.format import ANY_PATH, Format, Home
from loop_core.wire.openai_responses import table
from loop_core.wire.openai_responses.decode import Decoder
from loop_core.wire.openai_responses.items import closes
from loop_core.wire.openai_responses.request import ASKING_LOSES, encode_request, read_request
from loop_core.wire.openai_responses.table import API

Piece = ResponsePart | str
"""A part of a response, or its refusal as a bare string."""
JSONItem = dict[str, Any] | RawJSON
"""One output item in the form in which it is written."""


def encode(response: ChatResponse, *, stream: bool = False, chunk: int = 16) -> Iterator[bytes]:
    """The bytes that this provider would send; `chunk` is the characters of text or payload in one delta."""
    error, raw = response.error, response.stop_reason.raw
    refused = response.http_status is not None and response.http_status >= 400
    if error is not None and raw is None and (refused or not stream) and not response.parts:
        yield dump({"error": _error(error)}).encode()
        return
    status = None if raw is None else raw.partition(":")[0]
    items = _items(response, status, stream)
    if not stream:
        yield dump(_response(response, status, [whole for _, whole, _ in items])).encode()
        return
    yield from _Stream(response, status, max(1, chunk)).events(items)


class _Stream:
    """Writes the events of one response, with their numbers."""

    def __init__(self, response: ChatResponse, status: str | None, chunk: int) -> None:
        self.response, self.status, self.chunk = response, status, chunk
        self.number = 0

    def events(self, items: list[tuple[Piece, JSONItem, bool]]) -> Iterator[bytes]:
        """All events of the response; each of `items` is a part, its JSON, and whether it has ended."""
        response, status = self.response, self.status
        terminal = status is not None and status not in table.PENDING
        early = "in_progress" if terminal else status
        if early is not None or response.id is not None or response.model is not None:
            for kind in ("created", "queued" if early == "queued" else "in_progress"):
                yield self.event(f"response.{kind}", response=_response(response, early, [], early=terminal))
        for index, (part, whole, done) in enumerate(items):
            yield from self.item(index, part, whole, done)
        if terminal:
            named = {word: kind for kind, word in table.TERMINAL_EVENTS.items()}
            kind = named.get(str(status), "response.incomplete")
            yield self.event(kind, response=_response(response, status, [whole for _, whole, _ in items]))
        elif response.error is not None:
            # Flat, as documented, except for an error with a type, which the flat form cannot hold.
            error = _error(response.error)
            yield self.event("error", **(error if response.error.type is None else {"error": error}))

    def event(self, kind: str, **fields: Any) -> bytes:
        """One event; JSON that holds line ends takes several `data:` lines."""
        text = dump({"type": kind, "sequence_number": self.number, **fields})
        self.number += 1
        if "\r" in text:
            raise EncodeError("an event cannot carry a carriage return inside its JSON", api=API, what="opaque.json")
        lines = "".join(f"data: {line}\n" for line in text.split("\n"))
        return f"event: {kind}\n{lines}\n".encode()

    def item(self, index: int, part: Piece, whole: JSONItem, done: bool) -> Iterator[bytes]:
        """The events of one item: its announcement, its pieces, and its end."""
        announced: JSONItem = whole
        steps: list[tuple[str, str, str, str]] = []
        if isinstance(whole, dict):
            announced, steps = _announce_item(whole, part)
            if type(part) is ReasoningPart and not done:
                announced.pop("encrypted_content", None)  # counts only in a finished item
        yield self.event("response.output_item.added", output_index=index, item=announced)
        place: dict[str, Any] = {"item_id": whole.get("id") if isinstance(whole, dict) else None, "output_index": index}
        for kind, key, text, holder in steps:
            if holder:
                at = {**place, ("summary_index" if holder == "summary" else "content_index"): 0}
                opened, closed = _HOLDERS[holder]
                yield self.event(f"response.{opened}.added", **at, part=_content(holder, ""))
            else:
                at = place
            logprobs: dict[str, Any] = {"logprobs": []} if holder == "text" else {}  # required in events of a message
            for piece in pieces(text, self.chunk):
                yield self.event(f"response.{kind}.delta", **at, delta=piece, **logprobs)
            if done:
                yield self.event(f"response.{kind}.done", **at, **{key: text}, **logprobs)
                if holder:
                    yield self.event(f"response.{closed}.done", **at, part=_content(holder, text))
        if done:
            yield self.event("response.output_item.done", output_index=index, item=whole)


_HOLDERS: Mapping[str, tuple[str, str]] = {
    "text": ("content_part", "content_part"),
    "refusal": ("content_part", "content_part"),
    "summary": ("reasoning_summary_part", "reasoning_summary_part"),
}


def _content(holder: str, text: str) -> dict[str, Any]:
    if holder == "text":
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "refusal", "refusal": text} if holder == "refusal" else {"type": "summary_text", "text": text}


def _announce_item(whole: dict[str, Any], part: Piece) -> tuple[dict[str, Any], list[tuple[str, str, str, str]]]:
    """The item as it is announced, and its pieces: (event, key of the whole value that is repeated at the end, text,
    the object that holds it)."""
    first = {**whole}
    if first["type"] != "reasoning" and "status" in first:
        first["status"] = "in_progress"
    if isinstance(part, str):
        return {**first, "content": []}, [("refusal", "refusal", part, "refusal")]
    if type(part) is TextPart:
        return {**first, "content": []}, [("output_text", "text", part.text, "text")]
    if type(part) is ReasoningPart:
        steps = [("reasoning_summary_text", "text", part.text, "summary")] if part.text else []
        return {**first, "summary": []}, steps
    assert type(part) is ToolCall  # noqa: S101  (no other kind of part gets here)
    if part.form is ArgsForm.OBJECT or part.arguments is None:
        return first, []
    field = "input" if part.kind is CallKind.CUSTOM else "arguments"
    event = "custom_tool_call_input" if part.kind is CallKind.CUSTOM else "function_call_arguments"
    return {**first, field: ""}, [(event, field, part.arguments, "")]


def _items(response: ChatResponse, status: str | None, stream: bool) -> list[tuple[Piece, JSONItem, bool]]:
    cut = stream and (status is None or status in table.PENDING)
    parts: list[Piece] = list(response.parts)
    if response.refusal:
        parts.append(response.refusal)
    calls = [part for part in response.parts if type(part) is ToolCall]
    marked = "output.status" in response.native and not any(call.status == "incomplete" for call in calls)
    items: list[tuple[Piece, JSONItem, bool]] = []
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        done = not (cut and last)
        if type(part) is ToolCall:
            done = part.closed if cut else True
            items.append((part, _call(part, status, done), done))
        elif isinstance(part, (OpaquePart, ReasoningPart)) and part.json is not None:
            items.append((part, RawJSON(part.json), True))
        elif type(part) is ReasoningPart:
            items.append((part, _reasoning(part), done or part.data is not None))
        else:
            word = "incomplete" if last and (status == "incomplete" or marked) else "completed"
            holder, text = ("refusal", part) if isinstance(part, str) else ("text", part.text)  # type: ignore[union-attr]
            phase = part.phase if type(part) is TextPart and part.phase else response.native.get("phase")
            message = {"id": f"msg_{index}", "type": "message", "status": word, "role": "assistant",
                       **non_null(phase=phase),
                       "content": [_content(holder, str(text))]}
            items.append((part, message, done))
    return items


def _reasoning(part: ReasoningPart) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": part.text}] if part.text else []
    return {"type": "reasoning", "summary": summary, **non_null(id=part.item_id, encrypted_content=part.data)}


def _call(call: ToolCall, status: str | None, done: bool) -> JSONItem:
    if call.kind is CallKind.SERVER or (call.kind is CallKind.CUSTOM and call.form is ArgsForm.OBJECT):
        return _whole(call, status, done)
    custom = call.kind is CallKind.CUSTOM
    item = non_null(type="custom_tool_call" if custom else "function_call", id=call.item_id, call_id=call.id,
                    name=call.name, status=call.status)
    if call.arguments is not None:
        text = RawJSON(call.arguments) if call.form is ArgsForm.OBJECT else call.arguments
        item["input" if custom else "arguments"] = text
    ended = status == "completed"
    if call.status == "in_progress" and call.closed:
        item["caller"] = {"type": "program", "caller_id": ""}  # without it the call is not complete: `items.closes`
    if call.status is None and done and closes(item, ended) is not call.closed:
        item["status"] = "completed" if call.closed else "incomplete"  # a call of another format has no status
    _check(call, done and closes(item, ended))
    return item


def _whole(call: ToolCall, status: str | None, done: bool) -> RawJSON:
    value = json_value(call.arguments)
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise EncodeError(f"{call.name} is not an item of this format", api=API, what="server" if
                          call.kind is CallKind.SERVER else "call.arguments")
    _check(call, done and closes(value, status == "completed"))
    return RawJSON(call.arguments or "")


def _check(call: ToolCall, closed: bool) -> None:
    if closed is not call.closed:
        word = "closed" if call.closed else "open"
        raise EncodeError(f"{call.name} cannot be {word} with the status {call.status!r}", api=API, what="call.closed")


def _response(
    response: ChatResponse, status: str | None, output: list[JSONItem], early: bool = False
) -> dict[str, Any]:
    """The `response` object; with `early`, as it is before the end of the response."""
    native: Mapping[str, str] = {} if early else response.native
    raw = response.stop_reason.raw or ""
    reason = native.get("incomplete_details.reason") or (raw.partition(":")[2] if status == "incomplete" else "")
    whole = non_null(object="response", created_at=0, id=response.id, model=response.model, status=status)
    whole.update({
        # Otherwise `in_progress` would be read as a cut stream instead of an unfinished answer.
        "background": response.stop_reason.normalized is Stop.PAUSED and status in table.PENDING,
        "error": None if early or response.error is None else _error(response.error, native),
        "incomplete_details": {"reason": reason} if reason else None,
        # The members that the SDK requires of every response (openai 3.54.0 types/responses/response.py).
        "instructions": None, "metadata": {}, "output": output, "parallel_tool_calls": True,
        "temperature": None, "tool_choice": "auto", "tools": [], "top_p": None,
        "usage": None if early or response.usage is None else _usage(response.usage),
    })
    if "content_filters.blocked" in native:
        whole["content_filters"] = [{"blocked": True, "source_type": "completion"}]
    return whole


def _error(error: ProviderError, native: Mapping[str, str] | None = None) -> dict[str, Any]:
    value: dict[str, Any] = {"code": error.code, "message": error.message, "param": None}
    if error.type is not None:
        value["type"] = error.type
    steer = (native or {}).get("error.misalignment.steer.message")
    if steer is not None:
        value["misalignment"] = {"steer": {"message": steer}}
    return value


def _usage(usage: Usage) -> dict[str, Any]:
    # The API's `cache_write_tokens` is 0 if nothing was written to the cache.
    cached = None if usage.cached_tokens is None else {
        "cached_tokens": usage.cached_tokens, "cache_write_tokens": usage.cache_write_tokens or 0}
    thought = None if usage.reasoning_tokens is None else {"reasoning_tokens": usage.reasoning_tokens}
    return non_null(input_tokens=usage.input_tokens, input_tokens_details=cached, output_tokens=usage.output_tokens,
                    output_tokens_details=thought, total_tokens=total_of(usage))


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
    path=lambda request: "/responses",
    home=Home("https://api.openai.com", "/v1", ANY_PATH, "authorization"),
    provider="openai",
    history="input",
    whole_mark=("object", "response"),
    chained=table.is_chained,
    joints={"reasoning": "\n\n"},
    rules={f"{API}.refusal": ("refusal",)},
)
