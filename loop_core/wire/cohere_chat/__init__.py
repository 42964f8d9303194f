"""Cohere's chat: `POST /v2/chat`, and the responses of `/v1/chat`.

This module holds the `Format` and everything but the decoder. It encodes a `ChatResponse` as version 2 sends it, whole
or as events. It decodes requests of both versions (version 1 has a history and a single new message) and encodes those
of version 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from loop_core.errors import EncodeError
from loop_core.values import (
    CallKind,
    ChatResponse,
    Message,
    OpaquePart,
    ReasoningPart,
    Request,
    Role,
    TextPart,
    ToolCall,
)
from loop_core.wire import asking
from loop_core.wire.body import (
    RawJSON,
    compact,
    dump,
    list_of,
    mapping_of,
    merge,
    misfits,
    non_null,
    opaque_object,
    pieces,
    rest,
    sse_event,
    string,
    token_count,
    value_at,
    word,
)
from loop_core.wire.cohere_chat.decode import API, LOSES, PATHS, READS, STREAM_READS, Decoder, recognises
from loop_core.wire.format import VERSION, Format, Home
from loop_core.wire.openai_chat.request import read_request as read_chat


def encode(response: ChatResponse, *, stream: bool = False, chunk: int = 16) -> Iterator[bytes]:
    """The body: one item when whole, one item per event when streamed, with `chunk` characters of text in each."""
    for what, why in _losses(response, stream):
        raise EncodeError(why, api=API, what=what)
    error = response.error
    if error is not None and not response.parts and response.stop_reason.raw is None and not response.streaming:
        yield dump(non_null(id=response.id, message=error.message)).encode()
    elif stream:
        for event in _events(response, max(1, chunk)):
            yield sse_event(event, event["type"])
        if response.stop_reason.raw is not None:  # a stream that was cut has no end mark
            yield b"data: [DONE]\n\n"
    else:
        yield dump(_body(response)).encode()


def _losses(response: ChatResponse, stream: bool) -> Iterator[tuple[str, str]]:
    yield from misfits(response)
    if response.error is not None and not stream and response.parts:
        yield "error", "a whole answer holds no error"
    kinds = [type(part) is ToolCall for part in response.parts]  # True sorts after False: calls come last
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
    # an object without counts would be read as no usage
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


# -- A request body -> `Request` --------------------------------------------------------------------------------------

_CHOICES: Mapping[str, str] = {"REQUIRED": "any", "NONE": "none"}
_ROLES: Mapping[str, Role] = {"SYSTEM": Role.SYSTEM, "USER": Role.USER, "CHATBOT": Role.ASSISTANT}


def read_request(body: Mapping[str, Any], url: str = "") -> Request:
    """The `Request` for a recorded body."""
    if "messages" not in body and isinstance(body.get("message"), str):
        return _read_version_1(body)
    items = [_with_text(item) for item in list_of(body.get("messages")) if isinstance(item, Mapping)]
    request = read_chat({**rest(body, "tool_choice"), "messages": items})
    plans = [word(item.get("tool_plan")) for item in items]
    messages = (message._replace(parts=(ReasoningPart(plan), *message.parts)) if plan else message
                for message, plan in zip(request.messages, plans, strict=True))
    choice = string(body.get("tool_choice"))  # in Cohere's words, which `read_chat` cannot read
    return replace(request, api=API, messages=tuple(messages), tool_choice=_CHOICES.get(choice) if choice else None)


def _with_text(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message; in a result, the data of documents as text, since Cohere's guide writes results as documents."""
    blocks = [block if (data := value_at(block, ("document", "data"))) is None else
              {"type": "text", "text": data if isinstance(data, str) else compact(data)}
              for block in list_of(item.get("content"))]
    return {**item, "content": blocks} if item.get("role") == "tool" and blocks else item


def _read_version_1(body: Mapping[str, Any]) -> Request:
    """Reads a request of version 1, which holds a history and, in another member, the user's message."""
    history = (mapping_of(item) for item in list_of(body.get("chat_history")))
    messages = [(_ROLES.get(str(item.get("role")), Role.USER), word(item.get("message"))) for item in history]
    whole = [(Role.SYSTEM, word(body.get("preamble"))), *messages, (Role.USER, word(body.get("message")))]
    return Request(
        API, tuple(Message(role, (TextPart(text),)) for role, text in whole if text), word(body.get("model")),
        max_tokens=token_count(body.get("max_tokens")), stream=body.get("stream") is True,
        extra=rest(body, "message", "chat_history", "preamble", "model", "max_tokens", "stream"),
    )


# -- Request -> the body that the second version expects -------------------------------------------------------------

ASKING_LOSES: Mapping[str, str] = {
    "tool_choice": "no single tool can be forced, and auto is left out as the default",
    "tools": "where a single tool is forced the others are left out",
    **asking.usual_losses("message.grouping", *asking.REASONING_FIELDS, *asking.CALL_FIELDS, *asking.RESULT_FIELDS,
                          *asking.STORED),
}


def encode_request(request: Request) -> dict[str, Any]:
    """The body of the request."""
    asking.one_choice(request, API)
    forced = asking.forced_tool(request.tool_choice)
    words: dict[str, str | None] = {"auto": None, **{ours: theirs for theirs, ours in _CHOICES.items()}}
    tool_choice = asking.tool_choice(request.tool_choice, words, API, lambda name: "REQUIRED")
    tools = [tool for tool in request.tools if forced in (None, tool.name)]
    body = non_null(model=request.model)
    body["messages"] = [item for message in asking.with_ids(request.messages) for item in _messages(message)]
    if tools:
        body["tools"] = [tool.declaration or {"type": "function", "function": {
            "name": tool.name, "description": tool.description, "parameters": tool.schema or {"type": "object"}}}
            for tool in tools]
    body |= non_null(tool_choice=tool_choice, max_tokens=request.max_tokens)
    body["stream"] = request.stream
    return merge(body, request.extra)


def _messages(message: Message) -> Iterator[dict[str, Any]]:
    for result in message.results:
        yield {"role": "tool", "tool_call_id": result.call_id or "", "content": result.text}
    blocks: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, TextPart):
            blocks.append({"type": "text", "text": part.text})
        elif isinstance(part, ReasoningPart):
            blocks.append({"type": "thinking", "thinking": part.text})
        elif isinstance(part, ToolCall):
            if part.kind is not CallKind.FUNCTION:
                raise asking.refuse(part, API)
            calls.append({"id": part.id, "type": "function",
                          "function": {"name": part.name, "arguments": part.arguments or "{}"}})
        elif part not in message.results:
            blocks.append(opaque_object(part, API))  # type: ignore[arg-type]
    if not blocks and not calls and message.results:
        return
    only = blocks[0].get("text") if len(blocks) == 1 else None
    content: Any = only if isinstance(only, str) else blocks or None
    members = non_null(content=content if content or calls else "", tool_calls=calls or None)
    yield {"role": asking.role_word(message.role), **members}


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
    path=lambda request: "/chat",
    home=Home("https://api.cohere.com", "/v2", VERSION, "authorization", variables=("CO_API_URL",)),
    provider="cohere",
)
