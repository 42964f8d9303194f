"""What the official SDKs declare of an answer, applied strictly to the bytes of one.

The SDKs build their objects without checking them, so an answer that an SDK reads may still lack what its types
demand. Here every member must be declared, at any depth, every required one be there, every value have its exact type,
and every word be one of those that are listed. `EXTRA` has what real servers send and the types lack.
"""

from __future__ import annotations

import base64
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, get_args

import pytest

from loop_core.wire.servers import (
    CHAT,
    COHERE,
    COMPLETE,
    COMPLETIONS,
    CONVERSE,
    GEMINI,
    GENERATE,
    INVOKE,
    MESSAGES,
    OLLAMA,
    RESPONSES,
)

Value = dict[str, Any]


class Event(NamedTuple):
    """One event of a stream, or a whole body."""

    name: str | None
    value: Any


class Extra(NamedTuple):
    """A member that a server sends and the SDK does not declare."""

    api: str
    key: str
    place: str
    """The members that lead to it, lists left out."""
    kind: type
    source: str


EXTRA = (
    Extra(CHAT, "reasoning_content", "choices.delta", str, "DeepSeek, api-docs.deepseek.com"),
    Extra(CHAT, "reasoning_content", "choices.message", str, "DeepSeek, api-docs.deepseek.com"),
)
"""One row each; a row that no answer needs fails a test."""


# -- framings --------------------------------------------------------------------------------------------------------


def events(api: str, stream: bool, body: bytes) -> list[Event]:
    """What a body holds, by the rules of its framing; the mark `[DONE]` is left out."""
    if not stream:
        return [Event(None, json.loads(body))]
    if api == CONVERSE:
        return list(_frames(body))
    if api == INVOKE:
        return [_inner_event(event) for event in _frames(body)]
    if api in (OLLAMA, GENERATE):
        assert body.endswith(b"\n")
        return [Event(None, json.loads(line)) for line in body.splitlines()]
    return list(_sse_events(body))


def _inner_event(event: Event) -> Event:
    """What a chunk of InvokeModel holds; an exception stands by itself."""
    if event.name != "chunk":
        return event
    assert set(event.value) == {"bytes"}
    inner = json.loads(base64.b64decode(event.value["bytes"], validate=True))
    return Event(inner["type"], inner)


def _frames(body: bytes) -> Iterator[Event]:
    buffer = pytest.importorskip("botocore.eventstream").EventStreamBuffer()
    buffer.add_data(body)
    for message in buffer:
        headers = message.headers
        kind = headers[":message-type"]
        assert (kind, headers[":content-type"]) in (("event", "application/json"), ("exception", "application/json"))
        yield Event(headers[f":{kind}-type"], json.loads(message.payload))
    assert not buffer._data, "bytes behind the last frame"


def _sse_events(body: bytes) -> Iterator[Event]:
    *blocks, rest = body.decode().replace("\r\n", "\n").split("\n\n")
    assert not rest, "an event without its blank line is never dispatched"
    for number, block in enumerate(blocks, 1):
        fields = [line.partition(":") for line in block.split("\n")]
        assert {name for name, _, _ in fields} <= {"event", "data"}
        data = "\n".join(text.removeprefix(" ") for name, _, text in fields if name == "data")
        names = [text.removeprefix(" ") for name, _, text in fields if name == "event"]
        if data == "[DONE]":
            assert number == len(blocks), "something follows the mark of the end"
        else:
            yield Event(names[0] if names else None, json.loads(data))


# -- types -----------------------------------------------------------------------------------------------------------


def complaints(api: str, stream: bool, event: Event) -> list[str]:
    """What the SDK's types have against a body or an event; empty where it is valid."""
    value = event.value
    if not isinstance(value, dict):
        return [f"expected an object, and this is {type(value).__name__}"]
    value = _without_extra(api, value)
    if _is_error(api, event):
        return ERRORS[api](event.name, value)
    return TYPES[api](stream, event.name, value)


def _is_error(api: str, event: Event) -> bool:
    """Whether an event, or a body under HTTP 200, tells of an error instead of an answer."""
    if api == MESSAGES:
        return bool(event.value.get("type") == "error")
    if api == RESPONSES:
        return "error" in event.value and "object" not in event.value
    return api != CONVERSE and "error" in event.value


def refusal_complaints(api: str, status: int, body: bytes) -> list[str]:
    """What the SDK's types have against the body of an HTTP error."""
    value = json.loads(body)
    if api in (CONVERSE, INVOKE):
        shape = _shapes().shape_for(value.pop("__type"))
        if status != ANTHROPICS_OWN and shape.metadata["error"]["httpStatusCode"] != status:
            return [f"{shape.name} is told with another status than {status}"]
        return _misfits(shape, value, "")
    return ERRORS[api](None, value)


ANTHROPICS_OWN = 529
"""A status that only Anthropic has; a scenario may ask for it in any format."""
USED: set[Extra] = set()
"""Rows of `EXTRA` that an answer needed."""


def _without_extra(api: str, value: Value) -> Value:
    rows = [row for row in EXTRA if row.api == api]

    def clear(inner: Any, place: tuple[str, ...]) -> Any:
        if isinstance(inner, list):
            return [clear(each, place) for each in inner]
        if not isinstance(inner, dict):
            return inner
        found = [row for row in rows if row.place == ".".join(place) and type(inner.get(row.key)) is row.kind]
        USED.update(found)
        gone = {row.key for row in found}
        return {key: clear(each, (*place, key)) for key, each in inner.items() if key not in gone}

    return clear(value, ()) if rows else value


@cache
def _adapter(model: Any) -> Any:
    return pytest.importorskip("pydantic", minversion="2.12").TypeAdapter(model)


def _valid(model: Any, value: Any) -> list[str]:
    """What pydantic says, strictly, of the JSON text, in which a word stands for a member of an enum."""
    from pydantic import ValidationError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # google-genai takes any word for an enum, and warns
            _adapter(model).validate_json(json.dumps(value), strict=True, extra="forbid", by_alias=True, by_name=False)
    except ValidationError as found:
        return _pertinent(each for each in found.errors(include_url=False) if not _is_base64(each))
    except (UserWarning, AttributeError) as why:  # the latter of its enums, for what is no text
        return [str(why)]
    return []


def _is_base64(error: Mapping[str, Any]) -> bool:
    """Whether a text that is no bytes, strictly, is read as bytes: JSON has no other way to say them."""
    from pydantic import ConfigDict, TypeAdapter, ValidationError

    if error["type"] != "bytes_type" or not isinstance(error["input"], str):
        return False
    try:
        TypeAdapter(bytes, config=ConfigDict(val_json_bytes="base64")).validate_json(json.dumps(error["input"]))
    except ValidationError:
        return False
    return True


def _pertinent(errors: Iterable[Mapping[str, Any]]) -> list[str]:
    """The errors without those of the members of a union that have another `type`."""
    found = list(errors)
    others = [each["loc"][:-1] for each in found if each["type"] == "literal_error" and each["loc"][-1] == "type"]
    own = [each for each in found if not any(each["loc"][: len(other)] == other for other in others)]
    return [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in own or found]


@cache
def _by_type(union: Any) -> dict[str, Any]:
    """The models of a union by the words of their `type`."""
    members = get_args(get_args(union)[0])
    return {word: model for model in members for word in get_args(model.model_fields["type"].annotation)}


def _named_event(models: Mapping[str, Any], name: str | None, value: Value) -> list[str]:
    kind = value.get("type")
    if kind != name:
        return [f"the event is called {name!r}, and its type is {kind!r}"]
    return _valid(models[kind], value) if kind in models else [f"no event is called {kind!r}"]


# -- OpenAI ----------------------------------------------------------------------------------------------------------


def _chat(stream: bool, name: str | None, value: Value) -> list[str]:
    chat = pytest.importorskip("openai.types.chat")
    return _valid(chat.ChatCompletionChunk if stream else chat.ChatCompletion, value)


def _responses(stream: bool, name: str | None, value: Value) -> list[str]:
    responses = pytest.importorskip("openai.types.responses")
    if stream:
        return _named_event(_by_type(responses.ResponseStreamEvent), name, value)
    return _valid(responses.Response, value)


def _openai_error(name: str | None, value: Value) -> list[str]:
    shared = pytest.importorskip("openai.types.shared.error_object")
    return _only("error", value) or _valid(shared.ErrorObject, value["error"])


def _only(key: str, value: Value) -> list[str]:
    return [] if set(value) == {key} else [f"expected {key} and nothing else, and there is {', '.join(value)}"]


# -- Anthropic -------------------------------------------------------------------------------------------------------


def _messages(stream: bool, name: str | None, value: Value) -> list[str]:
    anthropic = pytest.importorskip("anthropic.types")
    if '"fallback"' in json.dumps(value):  # a block of the beta API alone
        beta = pytest.importorskip("anthropic.types.beta")
        union, message = beta.BetaRawMessageStreamEvent, beta.BetaMessage
    else:
        union, message = anthropic.RawMessageStreamEvent, anthropic.Message
    return _named_event(_by_type(union), name, value) if stream else _valid(message, value)


def _anthropic_error(name: str | None, value: Value) -> list[str]:
    if name not in (None, "error"):
        return [f"an error is called {name!r}"]
    return _valid(pytest.importorskip("anthropic.types").ErrorResponse, value)


# -- Google ----------------------------------------------------------------------------------------------------------


def _gemini(stream: bool, name: str | None, value: Value) -> list[str]:
    model = pytest.importorskip("google.genai.types").GenerateContentResponse
    found = _valid(model, value)
    if found:
        return found
    # A part checks itself before pydantic does, which is no longer strict then ("no" is false): what it made tells.
    made = _adapter(model).validate_python(value, by_alias=True, by_name=False)
    again = _adapter(model).dump_python(made, mode="json", by_alias=True, exclude_unset=True)
    same = json.dumps(again, sort_keys=True) == json.dumps(value, sort_keys=True)
    return [] if same else [f"{value} is read as {again}"]


def _google_error(name: str | None, value: Value) -> list[str]:
    """What the SDK's error reads, which has no model: google.rpc.Status."""
    found = pytest.importorskip("google.genai.errors").APIError(0, value)
    read = {"code": found.code, "message": found.message, "status": found.status}
    if value != {"error": read}:
        return [f"{value} is read as {read}"]
    return [f"{key} is {type(read[key]).__name__}" for key, kind in (("code", int), ("message", str), ("status", str))
            if type(read[key]) is not kind]


def _interactions(stream: bool, name: str | None, value: Value) -> list[str]:
    types = pytest.importorskip("google.genai._gaos.types.interactions")
    if stream and value.get("event_type") != name:
        return [f"the event is called {name!r}, and its type is {value.get('event_type')!r}"]
    return _surplus(types.InteractionSSEEvent if stream else types.Interaction, _without_kind(stream, value))


def _without_kind(stream: bool, value: Value) -> Value:
    """The body without `object`, which its server sends and only the events of the SDK declare."""
    return value if stream or value.get("object") != "interaction" else {
        key: each for key, each in value.items() if key != "object"}


def _interactions_error(name: str | None, value: Value) -> list[str]:
    types = pytest.importorskip("google.genai._gaos.types.interactions")
    if name is not None:
        return _surplus(types.InteractionSSEEvent, value)
    return _only("error", value) or _surplus(types.Error, value["error"])


def _surplus(model: Any, value: Value) -> list[str]:
    """What a model of this SDK, which takes anything, was given beside what it declares."""
    from pydantic import ValidationError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = _adapter(model).validate_python(value)
            again = _adapter(model).dump_python(made, mode="json", by_alias=True, exclude_unset=True)
    except (ValidationError, TypeError, AttributeError) as why:
        return [str(why)]
    again = {key: each for key, each in again.items() if key in value or not key.startswith("output_")}  # its own
    same = json.dumps(again, sort_keys=True) == json.dumps(value, sort_keys=True)
    return list(_unknown(made, "")) or ([] if same else [f"{value} is read as {again}"])


def _unknown(made: Any, place: str) -> Iterator[str]:
    """Members and words that the SDK keeps and does not know."""
    if isinstance(made, list):
        for each in made:
            yield from _unknown(each, place)
    elif getattr(made, "is_unknown", False):
        yield f"{place}: no such kind"
    elif hasattr(type(made), "model_fields"):
        extra = getattr(made, "__pydantic_extra__", None) or {}
        yield from (f"{place}.{key}: not declared" for key in extra)
        if getattr(made, "status", "completed") not in STATUSES:
            yield f"{place}.status: no such status"
        for key, each in vars(made).items():
            yield from _unknown(each, f"{place}.{key}")


STATUSES = frozenset({
    "in_progress", "requires_action", "completed", "failed", "cancelled", "incomplete", "budget_exceeded", "queued",
    "idle", "requires_continuation",
})
"""google-genai 3.6.1 InteractionStatus, which takes any other word too."""


# -- Bedrock ---------------------------------------------------------------------------------------------------------


@cache
def _shapes() -> Any:
    loader = pytest.importorskip("botocore.loaders").Loader()
    return pytest.importorskip("botocore.model").ServiceModel(loader.load_service_model("bedrock-runtime", "service-2"))


def _converse(stream: bool, name: str | None, value: Value) -> list[str]:
    if not stream:
        return _misfits(_shapes().shape_for("ConverseResponse"), value, "")
    members = _shapes().shape_for("ConverseStreamOutput").members
    return _misfits(members[name], value, str(name)) if name in members else [f"no event is called {name!r}"]


_PYTHON: Mapping[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "long": (int,), "boolean": (bool,), "float": (int, float),
    "double": (int, float), "blob": (str,), "list": (list,), "map": (dict,), "structure": (dict,),
}


def _misfits(shape: Any, value: Any, place: str) -> list[str]:
    """What a shape of botocore has against a value."""
    if getattr(shape, "is_document_type", False):
        return []
    kind = shape.type_name
    if type(value) not in _PYTHON[kind]:
        return [f"{place}: expected {kind}, and this is {type(value).__name__}"]
    if kind == "string":
        words = shape.enum
        return [f"{place}: {value!r} is none of {', '.join(words)}"] if words and value not in words else []
    if kind == "list":
        return [each for at, inner in enumerate(value) for each in _misfits(shape.member, inner, f"{place}[{at}]")]
    if kind == "map":
        return [each for key, inner in value.items() for each in _misfits(shape.value, inner, f"{place}.{key}")]
    return list(_structure(shape, value, place)) if kind == "structure" else []


def _structure(shape: Any, value: Value, place: str) -> Iterator[str]:
    names = {member.serialization.get("name", name): member for name, member in shape.members.items()}
    for key in shape.required_members:
        if key not in value:
            yield f"{place}.{key}: required, and not there"
    if getattr(shape, "is_tagged_union", False) and len(value) != 1:
        yield f"{place}: expected one member of a union, and there are {len(value)}"
    for key, inner in value.items():
        if key in names:
            yield from _misfits(names[key], inner, f"{place}.{key}")
        else:
            yield f"{place}.{key}: no member is called so"


# -- Ollama ----------------------------------------------------------------------------------------------------------


def _ollama(stream: bool, name: str | None, value: Value) -> list[str]:
    return _valid(pytest.importorskip("ollama").ChatResponse, value)


def _ollama_error(name: str | None, value: Value) -> list[str]:
    """`ollama.ResponseError` is made of the text under `error`."""
    return _only("error", value) or ([] if isinstance(value["error"], str) else ["an error is a text"])


# -- Cohere ----------------------------------------------------------------------------------------------------------


def _cohere(stream: bool, name: str | None, value: Value) -> list[str]:
    types = pytest.importorskip("cohere.v2.types")
    found = (_named_event(_by_type(types.V2ChatStreamResponse), name, value) if stream
             else _valid(types.V2ChatResponse, value))
    return found or list(_undeclared_words(value))


def _undeclared_words(value: Any, holder: str = "") -> Iterator[str]:
    """Words that this SDK lists, and beside which it takes anything."""
    from cohere.types import ChatContentStartEventDeltaMessageContentType, ChatFinishReason

    unions = {"finish_reason": ChatFinishReason, "content.type": ChatContentStartEventDeltaMessageContentType}
    for key, each in value.items() if isinstance(value, dict) else [(holder, item) for item in value]:
        union = unions.get(key) or unions.get(f"{holder}.{key}")
        if union is not None and each not in get_args(get_args(union)[0]):
            yield f"{key}: {each!r} is not among its words"
        elif isinstance(each, (dict, list)):
            yield from _undeclared_words(each, key)


def _cohere_error(name: str | None, value: Value) -> list[str]:
    """`cohere.core.ApiError` keeps any body; what its docs show is a message, and an id."""
    return [] if isinstance(value.get("message"), str) else ["an error has a message"]


# -- prompts ---------------------------------------------------------------------------------------------------------


def _completions(stream: bool, name: str | None, value: Value) -> list[str]:
    """A chunk is a completion whose choice may have no reason yet, and whose usage comes without choices."""
    types = pytest.importorskip("openai.types")
    choices = [{**choice, "finish_reason": choice.get("finish_reason") or "stop"} if stream and isinstance(choice, dict)
               and choice.get("finish_reason", 0) is None else choice for choice in value.get("choices") or ()]
    return _valid(types.Completion, {**value, "choices": choices} if isinstance(value.get("choices"), list) else value)


def _generate(stream: bool, name: str | None, value: Value) -> list[str]:
    return _valid(pytest.importorskip("ollama").GenerateResponse, value)


COMPLETION = {"type": str, "id": str, "completion": str, "model": str, "stop_reason": str, "stop": str}
"""anthropic 0.125.0 types/completion.py, the last version that has it before 1.0; `stop` is of older servers."""


def _complete(stream: bool, name: str | None, value: Value) -> list[str]:
    found = [f"{key} is not declared, or of another type" for key, each in value.items()
             if type(each) is not COMPLETION.get(key) and not (each is None and key in ("stop_reason", "stop"))]
    found += [f"{key} is missing" for key in ("type", "id", "completion", "model") if key not in value]
    right = value.get("type") == "completion" and name == ("completion" if stream else None)
    wrong_word = value.get("stop_reason") not in (None, "stop_sequence", "max_tokens")
    return found + ([] if right else ["this is no completion"]) + (["no such word"] if wrong_word else [])


def _invoke(stream: bool, name: str | None, value: Value) -> list[str]:
    """Claude's own events in the chunks, and Bedrock's exceptions beside them."""
    return _converse(stream, name, value) if str(name).endswith("Exception") else _messages(stream, name, value)


TYPES: Mapping[str, Callable[[bool, str | None, Value], list[str]]] = {
    CHAT: _chat, RESPONSES: _responses, MESSAGES: _messages, GEMINI: _gemini, CONVERSE: _converse, OLLAMA: _ollama,
    "gemini_interactions": _interactions, COHERE: _cohere,
    INVOKE: _invoke, COMPLETIONS: _completions, COMPLETE: _complete, GENERATE: _generate,
}
ERRORS: Mapping[str, Callable[[str | None, Value], list[str]]] = {
    CHAT: _openai_error, RESPONSES: _openai_error, MESSAGES: _anthropic_error, GEMINI: _google_error,
    OLLAMA: _ollama_error, "gemini_interactions": _interactions_error,
    COHERE: _cohere_error, COMPLETIONS: _openai_error, COMPLETE: _anthropic_error, GENERATE: _ollama_error,
}
