"""OpenAI Chat Completions and the servers that speak it.

This module holds the `Format`, and encodes a `ChatResponse`, whole or as an event stream. Decoding these bytes gives
the same response, except for what `LOSES` lists. Verbatim JSON (object arguments, blocks that are not interpreted) is
written unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loop_core.errors import EncodeError
from loop_core.json_parser import from_json
from loop_core.values import ArgsForm, CallKind, ChatResponse, OpaquePart, ReasoningPart, TextPart, ToolCall
from loop_core.wire.body import RawJSON, dump, misfits, pieces, sse_event
from loop_core.wire.format import ANY_PATH, Format, Home, Prefill
from loop_core.wire.openai_chat import table
from loop_core.wire.openai_chat.decode import Decoder
from loop_core.wire.openai_chat.request import ASKING_LOSES, encode_request, read_request
from loop_core.wire.openai_chat.table import API

_KNOWN_WORDS = {*table.CHOICE_WORDS, *table.BODY_WORDS, *table.ERROR_WORDS, table.EARLIER, table.FILTERS,
          table.PROMPT_FILTERS}
_LISTS = frozenset(table.MESSAGE_BLOCKS) - {"audio"}  # a message has one `audio`, and several of the others


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
    yield from misfits(response, _KNOWN_WORDS)
    if table.EARLIER in response.native and not stream:
        yield f"native.{table.EARLIER}", "a whole body has one finish reason"
    if response.error is None and any(name in response.native for name in table.ERROR_WORDS):
        yield "native.failed_generation", "there is no error to hold it"
    if not stream and sum(type(part) is OpaquePart and part.type == "message.audio" for part in response.parts) > 1:
        yield "opaque.message.audio", "a whole message holds one sound"
    for part in response.parts:
        if type(part) is OpaquePart and not _fits(part):
            yield f"opaque.{part.type}", f"a chat completion has no block {part.type!r}"
        elif type(part) is ToolCall and part.kind is not CallKind.SERVER:
            yield from _call_losses(part, bool(response.stop_reason.raw), stream)


def _call_losses(call: ToolCall, stopped: bool, stream: bool) -> Iterator[tuple[str, str]]:
    if call.closed != stopped:
        yield "call.closed", "a call is closed by the finish reason and by nothing else"
    if call.form is ArgsForm.OBJECT and not _is_json(call.arguments):
        yield "call.arguments", "arguments that are sent as an object cannot be cut"
    if stream and call.id is None and not call.name:
        yield "call.name", "a streamed call begins with an id or a name"
    if call.kind is CallKind.CUSTOM and call.form is ArgsForm.OBJECT:
        yield "call.form", "the input of a custom tool is text"


def _is_json(text: str | None) -> bool:
    try:
        return text is not None and type(from_json(text.encode())) is not str
    except (ValueError, TypeError):  # a lone surrogate is a TypeError
        return False


def _fits(part: OpaquePart) -> bool:
    where, _, name = part.type.partition(".")
    return bool(part.json) and (where == "content" or (where == "message" and name in table.MESSAGE_BLOCKS))


# -- whole -----------------------------------------------------------------------------------------------------------


def _body(response: ChatResponse) -> dict[str, Any]:
    error = _error(response)
    if error is not None and not (response.parts or response.stop_reason.raw is not None or response.usage):
        return {**_head(response), **error} if response.id or response.model else error
    body = {**_head(response), "object": "chat.completion", "created": 0}  # the engine has no clock
    message: dict[str, Any] = {"role": "assistant", "content": _content(response), "refusal": response.refusal}
    for fields in (_reasoning(response), _blocks(response), _calls(response)):
        message.update(fields)
    body["choices"] = [{"index": 0, "message": message, "logprobs": None, **_end(response)}]
    return {**body, **_metadata(response), **(error or {})}


def _content(response: ChatResponse) -> Any:
    blocks = [RawJSON(p.json) for p in response.parts if type(p) is OpaquePart and p.type.startswith("content.")]
    if not blocks:
        return response.text
    return [*([{"type": "text", "text": response.text}] if response.text else []), *blocks]


def _calls(response: ChatResponse) -> dict[str, Any]:
    calls = response.tool_calls
    if _is_deprecated_call(response):
        call = calls[0]
        return {"function_call": {"name": call.name, **_arguments(call)}}
    return {"tool_calls": [_call(call) for call in calls]} if calls else {}


def _is_deprecated_call(response: ChatResponse) -> bool:
    calls = response.tool_calls
    # The decoder does not mark the deprecated field, but under this word only its call has no id.
    return (response.stop_reason.raw == "function_call" and len(calls) == 1 and calls[0].id is None
            and bool(calls[0].name) and calls[0].kind is CallKind.FUNCTION)


def _call(call: ToolCall, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
    key, kind = ("custom", "custom") if call.kind is CallKind.CUSTOM else ("function", "function")
    argument_member = _arguments(call) if arguments is None else arguments
    value: dict[str, Any] = {"id": call.id, "type": kind, key: {"name": call.name, **argument_member}}
    if call.id is None:
        del value["id"]
    if call.signature is not None:
        # as in Gemini's compatible endpoint
        value["extra_content"] = {"google": {"thought_signature": call.signature}}
    return value


def _arguments(call: ToolCall) -> dict[str, Any]:
    if call.arguments is None:
        return {}
    value = RawJSON(call.arguments) if call.form is ArgsForm.OBJECT else call.arguments
    return {"input" if call.kind is CallKind.CUSTOM else "arguments": value}


def _reasoning(response: ChatResponse) -> dict[str, Any]:
    """The reasoning as one plain field, or as OpenRouter's blocks if it is more than a single text."""
    parts = [part for part in response.parts if type(part) is ReasoningPart]
    if not parts:
        return {}
    if len(parts) == 1 and not (parts[0].signature or parts[0].data or parts[0].item_id):
        return {"reasoning_content": parts[0].text}
    return {"reasoning_details": [detail for i, part in enumerate(parts) for detail in _details(i, part)]}


def _details(index: int, part: ReasoningPart) -> Iterator[dict[str, Any]]:
    shared: dict[str, Any] = {"index": index} if part.item_id is None else {"index": index, "id": part.item_id}
    if part.text or part.signature is not None or part.data is None:
        kind, key = ("reasoning.text", "text") if part.data is None else ("reasoning.summary", "summary")
        detail = {"type": kind, key: part.text, **shared}
        yield detail if part.signature is None else {**detail, "signature": part.signature}
    if part.data is not None:
        yield {"type": "reasoning.encrypted", "data": part.data, **shared}


def _blocks(response: ChatResponse) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in response.parts:
        if type(part) is OpaquePart and part.type.startswith("message."):
            name = part.type.partition(".")[2]
            if name in _LISTS:
                found.setdefault(name, []).append(RawJSON(part.json))
            else:
                found[name] = RawJSON(part.json)
    return found


def _end(response: ChatResponse) -> dict[str, Any]:
    """The finish reason and the other words about the end."""
    end: dict[str, Any] = {"finish_reason": response.stop_reason.raw}
    end.update({name: response.native[name] for name in table.CHOICE_WORDS if name in response.native})
    if table.FILTERS in response.native:
        end[table.FILTERS] = _filter_results(response.native[table.FILTERS])
    return end


def _filter_results(names: str) -> dict[str, Any]:
    return {name: {"filtered": True, "severity": "high"} for name in names.split(",")}


def _head(response: ChatResponse) -> dict[str, Any]:
    return {"id": response.id or "", "model": response.model or ""}


def _metadata(response: ChatResponse) -> dict[str, Any]:
    native = response.native
    beside = table.write_body_words(response)
    if table.PROMPT_FILTERS in native:
        results = _filter_results(native[table.PROMPT_FILTERS])
        beside[table.PROMPT_FILTERS] = [{"prompt_index": 0, table.FILTERS: results}]
    if response.usage is not None:
        beside["usage"] = table.write_usage(response.usage)
    return beside


def _error(response: ChatResponse) -> dict[str, Any] | None:
    error = response.error
    if error is None:
        return None
    inner: dict[str, Any] = {"message": error.message, "type": error.type, "code": error.code}
    inner.update({name: response.native[name] for name in table.ERROR_WORDS if name in response.native})
    return {"error": inner}


# -- streamed --------------------------------------------------------------------------------------------------------


def _stream(response: ChatResponse, chunk: int) -> Iterator[bytes]:
    head = {**_head(response), "object": "chat.completion.chunk", "created": 0}
    if table.PROMPT_FILTERS in response.native:
        yield sse_event({**head, "choices": [], table.PROMPT_FILTERS: _metadata(response)[table.PROMPT_FILTERS]})
    error, raw = _error(response), response.stop_reason.raw
    if response.parts or raw is not None or response.refusal:
        for delta in _deltas(response, chunk):
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
            yield sse_event({**head, "choices": [choice]})
    if table.EARLIER in response.native:
        reason = response.native[table.EARLIER]
        yield sse_event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    end = _end(response)
    if raw is not None or len(end) > 1:
        yield sse_event({**head, "choices": [{"index": 0, "delta": {}, "logprobs": None, **end}]})
    # Usage has a chunk of its own, without choices (API reference, stream_options.include_usage).
    last = {name: value for name, value in _metadata(response).items() if name != table.PROMPT_FILTERS}
    if last:
        yield sse_event({**head, "choices": [], **last})
    if error is not None:
        begun = bool(response.parts or raw is not None or response.refusal or last)
        # An error is a body of its own; if no chunk described the response before, it holds that description.
        yield sse_event({**head, **error} if not begun and (response.id or response.model) else error)
    if response.saw_done or (raw and error is None):  # a failed stream mostly ends without the mark
        yield b"data: [DONE]\n\n"


def _deltas(response: ChatResponse, chunk: int) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}  # OpenAI's streams begin so
    yield from _reasoning_deltas(response, chunk)
    for part in response.parts:
        if type(part) is TextPart:
            for piece in pieces(part.text, chunk):
                yield {"content": piece}
        elif type(part) is OpaquePart:
            where, _, name = part.type.partition(".")
            block: Any = RawJSON(part.json)
            yield {"content": [block]} if where == "content" else {name: [block] if name in _LISTS else block}
    for piece in pieces(response.refusal or "", chunk):
        yield {"refusal": piece}
    if _is_deprecated_call(response):
        call = response.tool_calls[0]
        for function in _deprecated_deltas(call, chunk):
            yield {"function_call": function}
        return
    for i, call in enumerate(response.tool_calls):
        for delta in _call_deltas(call, chunk):
            yield {"tool_calls": [{"index": i, **delta}]}


def _reasoning_deltas(response: ChatResponse, chunk: int) -> Iterator[dict[str, Any]]:
    fields = _reasoning(response)
    for piece in pieces(fields.get("reasoning_content", ""), chunk):
        yield {"reasoning_content": piece}
    for detail in fields.get("reasoning_details", ()):
        key = "summary" if "summary" in detail else "text"
        for piece in pieces(detail.pop(key, ""), chunk):
            yield {"reasoning_details": [{"type": detail["type"], key: piece, "index": detail["index"]}]}
        if len(detail) > 2:
            yield {"reasoning_details": [detail]}


def _call_deltas(call: ToolCall, chunk: int) -> Iterator[dict[str, Any]]:
    if call.arguments is None or call.form is ArgsForm.OBJECT:
        yield _call(call)
        return
    holder, key = ("custom", "input") if call.kind is CallKind.CUSTOM else ("function", "arguments")
    yield _call(call, {key: ""})  # id and name come first, the characters after them (wire notes)
    for piece in pieces(call.arguments, chunk):
        yield {holder: {key: piece}}


def _deprecated_deltas(call: ToolCall, chunk: int) -> Iterator[dict[str, Any]]:
    if call.arguments is None or call.form is ArgsForm.OBJECT:
        yield {"name": call.name, **_arguments(call)}
        return
    yield {"name": call.name, "arguments": ""}
    for piece in pieces(call.arguments, chunk):
        yield {"arguments": piece}


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
    path=lambda request: "/chat/completions",
    home=Home("https://api.openai.com", "/v1", ANY_PATH, "authorization",
              variables=("OPENAI_BASE_URL", "OPENAI_API_BASE")),
    provider="openai",
    word_paths=(("choices", 0, "finish_reason"),),
    whole_mark=("object", "chat.completion"),
    prefills=frozenset(Prefill) - {Prefill.NONE},  # the server's profile says which one works
    body_marks=True,
    rules={"openai_chat.usage_contradiction": ("usage.reasoning_tokens",),
           "openai_chat.usage_uncounted": ("usage.output_tokens",)},
)
