"""Decodes the body of a generateContent request into a `Request`, and encodes it again.

Decoding raises nothing for a recorded body: an unknown part is kept as an opaque part, a malformed message is skipped.
The second half encodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from loop_core.errors import EncodeError
from loop_core.values import (
    ArgsForm,
    CallKind,
    Message,
    MessagePart,
    OpaquePart,
    ReasoningPart,
    Request,
    Role,
    TextPart,
    Tool,
    ToolCall,
    ToolResultPart,
)
from loop_core.wire import asking
from loop_core.wire.body import (
    dump,
    integer,
    list_of,
    mapping_of,
    merge,
    non_null,
    opaque_object,
    rest,
    string,
    token_count,
    word,
)
from loop_core.wire.gemini_generate.table import API, PATHS, REQUEST_WRAPPER, SNAKE, get, problems

_ROLES: Mapping[str, Role] = {"user": Role.USER, "model": Role.ASSISTANT, "function": Role.TOOL, "system": Role.SYSTEM}
# VALIDATED lets the model choose too
_MODES: Mapping[str, str] = {"AUTO": "auto", "ANY": "any", "NONE": "none", "VALIDATED": "auto"}


_READ_FIELDS = tuple(
    spelled
    for name in ("model", "contents", "config", "systemInstruction", "tools", "continuationToken", "maxOutputTokens",
                 "candidateCount", "generationConfig.maxOutputTokens", "generationConfig.candidateCount",
                 "toolConfig.functionCallingConfig")
    for spelled in (name, ".".join(SNAKE.get(key, key) for key in name.split(".")))
)
"""The fields of a body that are read into the `Request`, in both spellings."""


def read_request(body: Mapping[str, Any], url: str = "") -> Request:
    """The `Request` for a recorded body; the model and whether it streams are in `url`."""
    served, wrapped = PATHS[0].search(url), body.get(REQUEST_WRAPPER)
    if isinstance(wrapped, dict) and "contents" not in body:
        served, body = None, {**wrapped, "model": body.get("model")}
    inner = body.get("config")
    # Recordings of SDKs hold the client's arguments, with everything else in `config`.
    body = {**body, **inner} if isinstance(inner, dict) else body
    settings = get(body, "generationConfig")
    settings = settings if isinstance(settings, dict) else body
    calling = get(mapping_of(get(body, "toolConfig")), "functionCallingConfig")
    system = tuple(_parts(get(body, "systemInstruction")))
    messages = [Message(Role.SYSTEM, system)] if system else []
    messages += [message for item in list_of(body.get("contents")) if (message := _message(item))]
    model = served["model"] if served else string(body.get("model"))
    return Request(
        api=API,
        messages=tuple(messages),
        model=model.rpartition("/")[2] if model else None,  # `models/…`, `publishers/google/models/…`
        tools=asking.with_allowed_names((tool for item in list_of(body.get("tools")) for tool in _tools(item)),
                                        get(mapping_of(calling), "allowedFunctionNames")),
        tool_choice=_choice(calling),
        max_tokens=token_count(get(settings, "maxOutputTokens")),
        stream="streamGenerateContent" in url or "generate_content_stream" in url,
        n=integer(get(settings, "candidateCount")) or 1,
        continuation_token=word(get(body, "continuationToken")),
        extra=rest(body, *_READ_FIELDS),
    )


def _message(item: Any) -> Message | None:
    if isinstance(item, str):
        return Message(Role.USER, (TextPart(item),))
    if not isinstance(item, dict):
        return None
    role = _ROLES.get(str(item.get("role", "user")))
    if role is None:
        return None
    return asking.message_of(role, _parts(item))


def _parts(content: Any) -> Iterator[MessagePart]:
    if isinstance(content, str):
        yield TextPart(content)
        return
    parts = content.get("parts") if isinstance(content, dict) else content
    for part in [parts] if isinstance(parts, dict) else list_of(parts):
        if isinstance(part, str):
            yield TextPart(part)
        elif isinstance(part, dict):
            yield _part(part)


def _part(part: Mapping[str, Any]) -> MessagePart:
    text = part.get("text")
    signature = string(get(part, "thoughtSignature"))
    call, answer = get(part, "functionCall"), get(part, "functionResponse")
    if isinstance(call, dict):
        arguments = dump(call["args"]) if "args" in call else None
        return ToolCall(word(call.get("id")), word(call.get("name")) or "", arguments, closed=True,
                        form=ArgsForm.OBJECT, signature=signature)
    if isinstance(answer, dict):
        return _result(answer)
    if isinstance(text, str):
        # Gemini 3 signs an answer in a part of empty text, which is sent back unchanged.
        thought = part.get("thought") is True or (not text and signature is not None)
        return ReasoningPart(text, signature) if thought else TextPart(text)
    if signature is not None and len(part) == 1:
        return ReasoningPart("", signature)
    kind = next((key for key in part if key not in ("thoughtSignature", "thought_signature", "thought")), "part")
    return OpaquePart(kind, dump(part))


def _result(answer: Mapping[str, Any]) -> ToolResultPart:
    """A tool's result: in Gemini an object, in which `output` or `result` is the answer and `error` the failure."""
    response = answer.get("response")
    text, failed = "" if response is None else dump(response), False
    if isinstance(response, dict):
        failed = "error" in response
        only = next(iter(response.values())) if len(response) == 1 else None
        if isinstance(only, str) and response.keys() <= {"output", "result", "error", "content"}:
            text = only
    return ToolResultPart(word(answer.get("id")), word(answer.get("name")), text, failed)


def _tools(item: Any) -> Iterator[Tool]:
    if not isinstance(item, dict):
        return
    for key, value in item.items():
        if key not in ("functionDeclarations", "function_declarations"):
            yield Tool(key, kind=CallKind.SERVER, declaration={key: value})
            continue
        for declared in list_of(value):
            if isinstance(declared, dict) and isinstance(declared.get("name"), str):
                yield _tool(declared)


def _tool(declared: Mapping[str, Any]) -> Tool:
    schema, dialect = get(declared, "parametersJsonSchema"), "json_schema"
    if not isinstance(schema, dict):
        schema, dialect = declared.get("parameters"), "openapi"
    tool = asking.tool_of(declared, declared["name"], schema, declared)
    return tool if tool.schema is None else tool._replace(dialect=dialect)


def _choice(calling: Any) -> str | None:
    if not isinstance(calling, dict):
        return None
    mode = _MODES.get(str(calling.get("mode", "AUTO")).upper())
    allowed = get(calling, "allowedFunctionNames")
    if mode == "any" and isinstance(allowed, list) and len(allowed) == 1:  # the way to force one tool
        return f"tool:{allowed[0]}"
    return mode


# -- Request -> the body that generateContent expects ----------------------------------------------------------------
# The path holds the model and says whether the answer is streamed. A schema that Gemini does not accept is refused with
# its place: see `table.problems`.

CHOICES: Mapping[str, Any] = {"auto": {"mode": "AUTO"}, "any": {"mode": "ANY"}, "none": {"mode": "NONE"}}
ASKING_LOSES: Mapping[str, str] = {
    "message.grouping": "the system prompt is one list of parts, and neighbours of one role are one content",
    "result.json": "an image in a result is a part beside it here",
    **asking.usual_losses("reasoning.data", *asking.ITEM_FIELDS, "call.form", "call.status", "call.item_id",
                          "previous_id", "background"),
}
_ROLE_WORDS: Mapping[Role, str] = {Role.USER: "user", Role.ASSISTANT: "model", Role.TOOL: "user", Role.SYSTEM: "user"}
SCHEMA_FIELDS: Mapping[str, str] = {"json_schema": "parametersJsonSchema", "openapi": "parameters"}
"""Dialect of a schema -> its field. A declaration may have only one of them (google-genai 3.4.0 types.py)."""


def path(request: Request) -> str:
    """The path of the request below the API version."""
    word = "streamGenerateContent?alt=sse" if request.stream else "generateContent"
    return f"/models/{quote(request.model or '', safe='')}:{word}"


def encode_request(request: Request) -> dict[str, Any]:
    """The body of the request; the message of an `EncodeError` about a schema names the place."""
    system_messages, history = asking.split_system(asking.with_names(asking.with_ids(request.messages, missing=False)))
    body: dict[str, Any] = {}
    system = [_write_part(part) for message in system_messages for part in message.parts]
    if system:
        body["systemInstruction"] = {"parts": system}
    body["contents"] = _contents(history)
    choice = asking.tool_choice(request.tool_choice, CHOICES, API,
                                lambda name: {"mode": "ANY", "allowedFunctionNames": [name]})
    if names := asking.allowed_names(request):  # refused with AUTO (API reference, FunctionCallingConfig)
        choice = {"mode": "ANY" if request.tool_choice == "any" else "VALIDATED", "allowedFunctionNames": names}
    settings = non_null(maxOutputTokens=request.max_tokens, candidateCount=request.n if request.n != 1 else None)
    body |= non_null(tools=_write_tools(request.tools) or None, toolConfig=choice and {"functionCallingConfig": choice},
                     generationConfig=settings or None, continuationToken=request.continuation_token)
    return merge(body, request.extra)


def _contents(history: Iterable[Message]) -> list[dict[str, Any]]:
    """One content for each message; the results of one round are in one content, because their calls came in one."""
    contents: list[dict[str, Any]] = []
    before: Role | None = None
    for message in history:
        parts = [_write_part(part) for part in message.parts]
        if before is Role.TOOL and message.role is Role.TOOL:
            contents[-1]["parts"] += parts
        elif parts:
            contents.append({"role": _ROLE_WORDS[message.role], "parts": parts})
        else:
            continue  # a content without parts is refused
        before = message.role
    return contents


def _write_part(part: MessagePart) -> dict[str, Any]:
    if type(part) is TextPart:
        return {"text": part.text}
    if type(part) is ReasoningPart:
        if not part.text and part.signature is not None:
            return {"text": "", "thoughtSignature": part.signature}
        return {"text": part.text, "thought": True, **non_null(thoughtSignature=part.signature)}
    if isinstance(part, ToolResultPart):
        if part.name is None:  # required (API reference, FunctionResponse)
            raise EncodeError("a result needs the name of its function", api=API, what="result.name")
        return {"functionResponse": {**non_null(id=part.call_id), "name": part.name, "response": _answer(part)}}
    if type(part) is OpaquePart:
        return opaque_object(part, API)
    assert type(part) is ToolCall  # noqa: S101  (the kinds of parts are a closed list)
    if part.kind is not CallKind.FUNCTION:
        raise asking.refuse(part, API)
    call = {**non_null(id=part.id), "name": part.name, "args": asking.arguments(part, API)}
    return {"functionCall": call, **non_null(thoughtSignature=part.signature)}


def _answer(part: ToolResultPart) -> dict[str, Any]:
    """The object for a tool result. A text that is a JSON object is sent as that object, unless it would contradict
    `is_error`."""
    value = asking.result_object(part.text)
    if value and ("error" in value) is part.is_error:  # otherwise it would contradict `is_error`
        return value
    return {"error" if part.is_error else "output": part.text}


def _write_tools(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """The `tools` of the body: consecutive functions share a list; tools of the provider have elements of their own."""
    elements: list[dict[str, Any]] = []
    for tool in tools:
        if tool.kind is CallKind.SERVER:
            elements.append(dict(tool.declaration) if tool.declaration is not None else {tool.name: {}})
            continue
        if not (elements and "functionDeclarations" in elements[-1]):
            elements.append({"functionDeclarations": []})
        elements[-1]["functionDeclarations"].append(_function(tool))
    return elements


def _function(tool: Tool) -> Mapping[str, Any]:
    wrong = problems(tool)
    if wrong:
        raise EncodeError("; ".join(str(problem) for problem in wrong), api=API, what="schema")
    if tool.declaration is not None:
        return tool.declaration
    if tool.kind is not CallKind.FUNCTION:
        raise EncodeError(f"{tool.name}: there are no free-form tools", api=API, what="custom tool")
    return {"name": tool.name, **asking.describe(tool),
            **({SCHEMA_FIELDS[tool.dialect]: tool.schema} if tool.schema else {})}
