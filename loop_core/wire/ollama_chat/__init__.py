"""Ollama's own chat endpoint, `/api/chat`: newline-delimited JSON, or one JSON object.

This module holds the `Format` and everything but the decoder. It encodes a `ChatResponse`; decoding these bytes gives
the same response, except for what `LOSES` lists. It decodes the body of a request (malformed messages and tools are
skipped) and encodes it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from loop_core.errors import EncodeError
from loop_core.values import (
    ArgsForm,
    CallKind,
    ChatResponse,
    Message,
    MessagePart,
    OpaquePart,
    ReasoningPart,
    Request,
    ResponsePart,
    Role,
    Stop,
    TextPart,
    Tool,
    ToolCall,
    ToolResultPart,
)
from loop_core.wire import asking
from loop_core.wire.body import (
    RawJSON,
    dump,
    list_of,
    mapping_of,
    merge,
    misfits,
    non_null,
    opaque,
    pieces,
    read_object,
    rest,
    string,
    token_count,
    word,
)
from loop_core.wire.format import Format, Home
from loop_core.wire.ollama_chat.decode import (
    API,
    DURATIONS,
    LOADS,
    LOSES,
    PATHS,
    READS,
    STREAM_READS,
    Decoder,
    recognises,
)

_CREATED = "1970-01-01T00:00:00Z"  # the engine has no clock
_ORDER = (ReasoningPart, TextPart, ToolCall)
"""The order of the fields of one message: thinking, content, tool_calls."""


def encode(response: ChatResponse, *, stream: bool = False, chunk: int = 16) -> Iterator[bytes]:
    """The body: one item when whole, one item per line when streamed, with `chunk` characters of text in each."""
    for what, why in losses(response, stream):
        raise EncodeError(why, api=API, what=what)
    if stream:
        for line in lines_of(response, max(1, chunk)):
            yield dump(line).encode() + b"\n"
    else:
        yield dump(body_of(response)).encode()


# -- what cannot be carried ------------------------------------------------------------------------------------------


def losses(response: ChatResponse, stream: bool) -> Iterator[tuple[str, str]]:
    """The parts of the response that Ollama cannot carry, with the reason."""
    stop = response.stop_reason
    if stop.raw is None and response.error is None and stop.normalized is not Stop.INTERRUPTED:
        yield "stop_reason", f"{stop.normalized} has no done_reason"
    if response.refusal is not None:
        yield "refusal", "a refusal is ordinary text here"
    yield from misfits(response)
    order = [_ORDER.index(type(part)) for part in response.parts if type(part) in _ORDER]
    if not stream and order != sorted(order):
        yield "parts.order", "one message holds its thinking, then its text, then its calls"
    for part in response.parts:
        yield from _part_losses(part, bool(stop.raw), stream)


def _part_losses(part: ResponsePart, stopped: bool, stream: bool) -> Iterator[tuple[str, str]]:
    if isinstance(part, OpaquePart):
        yield "opaque", "a message holds thinking, text and calls"
    elif isinstance(part, ReasoningPart):
        if part.data is not None:
            yield "reasoning.data", "thinking is text"
        if not part.text:
            yield "reasoning.text", "empty thinking looks like no thinking"
    elif isinstance(part, ToolCall):
        if part.kind is not CallKind.FUNCTION:
            yield "call.kind", f"a call is a function of the caller, never {part.kind}"
        if part.arguments is not None and read_object(part.arguments) is None:
            yield "call.arguments", "arguments are sent as an object, which cannot be cut"
        # an object is encoded as received, with its line breaks
        elif stream and part.arguments is not None and "\n" in part.arguments:
            yield "call.arguments", "a line break ends the line"
        if part.closed != stopped:
            yield "call.closed", "a call is closed by the done_reason and by nothing else"


# -- what is sent ----------------------------------------------------------------------------------------------------


def body_of(response: ChatResponse) -> dict[str, Any]:
    """The object of a whole body."""
    error = _error(response)
    if error and not response.parts and response.stop_reason.raw is None and response.usage is None:
        return error
    message: dict[str, Any] = {"role": "assistant", "content": response.text or ""}
    if response.reasoning_content is not None:
        message["thinking"] = response.reasoning_content
    calls = [_answer_call(part) for part in response.parts if isinstance(part, ToolCall)]
    if calls:
        message["tool_calls"] = calls
    return {**_line(response, message), **_end(response), **error}


def lines_of(response: ChatResponse, chunk: int) -> Iterator[dict[str, Any]]:
    """The objects of a stream."""
    for part in response.parts:
        if isinstance(part, ToolCall):
            yield _line(response, {"role": "assistant", "content": "", "tool_calls": [_answer_call(part)]})
        elif isinstance(part, ReasoningPart):
            for piece in pieces(part.text, chunk):
                yield _line(response, {"role": "assistant", "content": "", "thinking": piece})
        elif isinstance(part, TextPart):
            for piece in pieces(part.text, chunk):
                yield _line(response, {"role": "assistant", "content": piece})
    end = _end(response)
    if end or (response.model and not response.parts and response.error is None):
        yield {**_line(response, {"role": "assistant", "content": ""}), **end}
    if response.error is not None:
        yield _error(response)


def _line(response: ChatResponse, message: dict[str, Any]) -> dict[str, Any]:
    return {"model": response.model or "", "created_at": _CREATED, "message": message, "done": False}


def _answer_call(call: ToolCall) -> dict[str, Any]:
    function: dict[str, Any] = {"name": call.name}
    if call.arguments is not None:
        function["arguments"] = RawJSON(call.arguments)
    return {"function": function} if call.id is None else {"id": call.id, "function": function}


def _end(response: ChatResponse) -> dict[str, Any]:
    """The fields that the last line adds; none if the response has no end."""
    raw, usage = response.stop_reason.raw, response.usage
    if raw is None and usage is None and not response.saw_done:
        return {}
    end: dict[str, Any] = {"done": True} if raw is None else {"done": True, "done_reason": raw}
    end.update(dict.fromkeys(DURATIONS, 0))
    if usage is not None:
        end.update(non_null(prompt_eval_count=usage.input_tokens, eval_count=usage.output_tokens))
    return end


def _error(response: ChatResponse) -> dict[str, Any]:
    if response.error is None:
        return {}
    return non_null(error=response.error.message, type=response.error.type, code=response.error.code)


# -- A request body -> `Request` --------------------------------------------------------------------------------------

_ROLES: Mapping[str, Role] = {role.value: role for role in Role}


def read_request(body: Mapping[str, Any], url: str = "") -> Request:
    """The `Request` for a recorded body; Ollama streams unless the request says otherwise."""
    cap = token_count(mapping_of(body.get("options")).get("num_predict"))
    return Request(
        api=API,
        messages=tuple(message for item in list_of(body.get("messages")) if (message := _read_message(item))),
        model=word(body.get("model")),
        tools=tuple(tool for item in list_of(body.get("tools")) if (tool := _read_tool(item))),
        max_tokens=cap or None,  # -1 is no limit, -2 the rest of the context
        stream=body.get("stream") is not False,
        extra=rest(body, "model", "messages", "tools", "stream", "options.num_predict"),
    )


def _read_message(item: Any) -> Message | None:
    role = _ROLES.get(str(item.get("role"))) if isinstance(item, Mapping) else None
    return None if role is None else Message(role, tuple(_read_parts(item, role)))


def _read_parts(item: Mapping[str, Any], role: Role) -> Iterator[MessagePart]:
    text = string(item.get("content")) or ""
    if role is Role.TOOL:
        # `tool_name` is Ollama's, `name` that of OpenAI's clients
        name = word(item.get("tool_name")) or word(item.get("name"))
        yield ToolResultPart(word(item.get("tool_call_id")), name, text)
        return
    if thinking := word(item.get("thinking")):
        yield ReasoningPart(thinking)
    if text:
        yield TextPart(text)
    for image in list_of(item.get("images")):
        yield OpaquePart("image", dump(image))
    for call in list_of(item.get("tool_calls")):
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            yield _read_call(call, function)


def _read_call(call: Mapping[str, Any], function: Mapping[str, Any]) -> ToolCall:
    value = function.get("arguments")
    form = ArgsForm.STRING if isinstance(value, str) else ArgsForm.OBJECT
    sent = value if isinstance(value, str) else dump(value) if "arguments" in function else None
    return ToolCall(word(call.get("id")), word(function.get("name")) or "", sent, closed=True, form=form)


def _read_tool(item: Any) -> Tool | None:
    function = mapping_of(mapping_of(item).get("function"))
    name = word(function.get("name"))
    if name is None:
        return None
    return asking.tool_of(function, name, function.get("parameters"), item)


# -- Request -> the body that Ollama's chat expects ------------------------------------------------------------------

CHOICES: Mapping[str, str | None] = {"auto": None, "any": None, "none": None}
ASKING_LOSES: Mapping[str, str] = {
    "text.grouping": "the texts of a message are one",
    "tool_choice": "the format has no tool choice: a call cannot be forced, and `none` declares no tools",
    **asking.usual_losses("message.grouping", *asking.REASONING_FIELDS, *asking.CALL_FIELDS, "result.is_error",
                          "result.json", *asking.STORED),
}


def encode_request(request: Request) -> dict[str, Any]:
    """The body of the request."""
    asking.one_choice(request, API)
    choice = request.tool_choice
    asking.tool_choice(choice, CHOICES, API, lambda name: None)  # only to refuse an unknown word
    body = non_null(model=request.model)
    # Ollama pairs results with calls by name.
    history = asking.with_names(asking.with_ids(request.messages, missing=False))
    body["messages"] = [item for message in history for item in _messages(message)]
    if request.tools and choice != "none":
        body["tools"] = asking.declarations(request.tools, _write_tool)
    body["stream"] = request.stream  # Ollama streams by default
    if request.max_tokens is not None:
        body["options"] = {"num_predict": request.max_tokens}
    return merge(body, request.extra)


def _messages(message: Message) -> Iterator[dict[str, Any]]:
    for result in message.results:
        yield {"role": "tool", "content": result.text, **non_null(tool_name=result.name, tool_call_id=result.call_id)}
    others = [part for part in message.parts if type(part) is not ToolResultPart]
    if not others and message.results:
        return
    item: dict[str, Any] = {"role": asking.role_word(message.role), "content": message.text}
    thinking = "".join(part.text for part in others if type(part) is ReasoningPart)
    images = [opaque(part, API) for part in others if type(part) is OpaquePart]
    calls = [_write_call(part) for part in others if type(part) is ToolCall]
    yield item | non_null(thinking=thinking or None, images=images or None, tool_calls=calls or None)


def _write_call(call: ToolCall) -> dict[str, Any]:
    if call.kind is not CallKind.FUNCTION:
        raise asking.refuse(call, API)
    return {**non_null(id=call.id), "function": {"name": call.name, "arguments": asking.arguments(call, API)}}


def _write_tool(tool: Tool) -> Mapping[str, Any]:
    schema = non_null(parameters=tool.schema)
    return {"type": "function", "function": {"name": tool.name, **asking.describe(tool), **schema}}


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
    # The computer's own server asks for no key; ollama.com does (Ollama docs, cloud).
    home=Home("http://127.0.0.1:11434", "/api", re.compile(r"/api$"), "authorization", variables=("OLLAMA_HOST",)),
    provider="ollama",
    word_paths=(("done_reason",),),
    loads=LOADS,
    stream_type="application/x-ndjson",
)
