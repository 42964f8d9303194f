"""`ChatResponse` -> the bytes of Ollama: one object, or one object per line.

Owns nothing but the writing: what `decode` reads from these bytes is the response again, `LOSES` left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from loop_core.errors import EncodeError
from loop_core.values import CallKind, ChatResponse, OpaquePart, ReasoningPart, ResponsePart, Stop, TextPart, ToolCall
from loop_core.wire.body import RawJSON, dump, pieces, read_object
from loop_core.wire.ollama_chat.decode import API

_CREATED = "1970-01-01T00:00:00Z"
_ORDER = (ReasoningPart, TextPart, ToolCall)
"""How the fields of one message stand: thinking, content, tool_calls."""
_DURATIONS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")


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
        yield "stop_reason", f"{stop.normalized} has no done_reason to be told by"
    if response.refusal is not None:
        yield "refusal", "a refusal is ordinary text here"
    if response.continuation_token is not None:
        yield "continuation_token", "nothing can be continued by a token"
    for name in response.native:
        yield f"native.{name}", f"a chat response has no field {name!r}"
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
            yield "reasoning.text", "empty thinking cannot be told from none"
    elif isinstance(part, ToolCall):
        if part.kind is not CallKind.FUNCTION:
            yield "call.kind", f"a call is a function of the caller, never {part.kind}"
        if part.arguments is not None and read_object(part.arguments) is None:
            yield "call.arguments", "arguments are sent as an object, which cannot be cut"
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
    """What the last line adds; nothing if the response never came to one."""
    raw, usage = response.stop_reason.raw, response.usage
    if raw is None and usage is None and not response.saw_done:
        return {}
    end: dict[str, Any] = {"done": True} if raw is None else {"done": True, "done_reason": raw}
    end.update(dict.fromkeys(_DURATIONS, 0))
    if usage is not None:
        counts = {"prompt_eval_count": usage.input_tokens, "eval_count": usage.output_tokens}
        end.update({name: count for name, count in counts.items() if count is not None})
    return end


def _error(response: ChatResponse) -> dict[str, Any]:
    if response.error is None:
        return {}
    words = {"error": response.error.message, "type": response.error.type, "code": response.error.code}
    return {name: word for name, word in words.items() if word is not None}
