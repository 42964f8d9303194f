"""A generateContent request body -> Request: what was asked, in the field's words.

Reads what a recording holds and never complains: an odd part is kept opaque, an odd message is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

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
from loop_core.wire.body import rest
from loop_core.wire.gemini_generate.table import API, PATHS, SNAKE, get
from loop_core.wire.jsontext import dump

_ROLES: Mapping[str, Role] = {"user": Role.USER, "model": Role.ASSISTANT, "function": Role.TOOL, "system": Role.SYSTEM}
_MODES: Mapping[str, str] = {"AUTO": "auto", "ANY": "any", "NONE": "none", "VALIDATED": "auto"}


_TAKEN = tuple(
    spelled
    for name in ("model", "contents", "config", "systemInstruction", "tools", "continuationToken", "maxOutputTokens",
                 "candidateCount", "generationConfig.maxOutputTokens", "generationConfig.candidateCount",
                 "toolConfig.functionCallingConfig")
    for spelled in (name, ".".join(SNAKE.get(key, key) for key in name.split(".")))
)
"""The fields that are read, in both spellings."""


def read_request(body: Mapping[str, Any], url: str = "") -> Request:
    """What a recorded request asks for; the model and the streaming stand in `url`."""
    served = PATHS[0].search(url)
    inner = body.get("config")
    # The client's own arguments, as SDK recordings keep them, hold everything else in `config`.
    body = {**body, **inner} if isinstance(inner, dict) else body
    settings = get(body, "generationConfig")
    settings = settings if isinstance(settings, dict) else body
    system = tuple(_parts(get(body, "systemInstruction")))
    contents = body.get("contents")
    messages = [Message(Role.SYSTEM, system)] if system else []
    messages += [message for item in _list(contents) if (message := _message(item))]
    named = body.get("model")
    model = served["model"] if served else named if isinstance(named, str) else None
    token = get(body, "continuationToken")
    return Request(
        api=API,
        messages=tuple(messages),
        model=model.rpartition("/")[2] if model else None,
        tools=tuple(tool for item in _list(body.get("tools")) for tool in _tools(item)),
        tool_choice=_choice(get(body, "toolConfig")),
        max_tokens=_count(get(settings, "maxOutputTokens")),
        stream="streamGenerateContent" in url or "generate_content_stream" in url,
        n=_count(get(settings, "candidateCount")) or 1,
        continuation_token=token if isinstance(token, str) and token else None,
        extra=rest(body, *_TAKEN),
    )


def _message(item: Any) -> Message | None:
    if isinstance(item, str):
        return Message(Role.USER, (TextPart(item),))
    if not isinstance(item, dict):
        return None
    role = _ROLES.get(str(item.get("role", "user")))
    if role is None:
        return None
    parts = tuple(_parts(item))
    if parts and all(type(part) is ToolResultPart for part in parts):
        role = Role.TOOL  # results travel in a user message
    return Message(role, parts)


def _parts(content: Any) -> Iterator[MessagePart]:
    if isinstance(content, str):
        yield TextPart(content)
        return
    parts = content.get("parts") if isinstance(content, dict) else content
    for part in [parts] if isinstance(parts, dict) else _list(parts):
        if isinstance(part, str):
            yield TextPart(part)
        elif isinstance(part, dict):
            yield _part(part)


def _part(part: Mapping[str, Any]) -> MessagePart:
    text = part.get("text")
    signature = get(part, "thoughtSignature")
    signature = signature if isinstance(signature, str) else None
    call, answer = get(part, "functionCall"), get(part, "functionResponse")
    if isinstance(call, dict):
        arguments = dump(call["args"]) if "args" in call else None
        return ToolCall(_word(call.get("id")), _word(call.get("name")) or "", arguments, closed=True,
                        form=ArgsForm.OBJECT, signature=signature)
    if isinstance(answer, dict):
        return _result(answer)
    if isinstance(text, str):
        thought = part.get("thought") is True or (not text and signature is not None)
        return ReasoningPart(text, signature) if thought else TextPart(text)
    if signature is not None and len(part) == 1:
        return ReasoningPart("", signature)
    kind = next((key for key in part if key not in ("thoughtSignature", "thought_signature", "thought")), "part")
    return OpaquePart(kind, dump(part))


def _result(answer: Mapping[str, Any]) -> ToolResultPart:
    """What a tool answered: always an object, in which `output` or `result` is the answer and `error` the failure."""
    response = answer.get("response")
    text, failed = "" if response is None else dump(response), False
    if isinstance(response, dict):
        failed = "error" in response
        only = next(iter(response.values())) if len(response) == 1 else None
        if isinstance(only, str) and response.keys() <= {"output", "result", "error", "content"}:
            text = only
    return ToolResultPart(_word(answer.get("id")), _word(answer.get("name")), text, failed)


def _tools(item: Any) -> Iterator[Tool]:
    if not isinstance(item, dict):
        return
    for key, value in item.items():
        if key not in ("functionDeclarations", "function_declarations"):
            yield Tool(key, kind=CallKind.SERVER, declared={key: value})
            continue
        for declared in _list(value):
            if isinstance(declared, dict) and isinstance(declared.get("name"), str):
                yield _tool(declared)


def _tool(declared: Mapping[str, Any]) -> Tool:
    schema, dialect = get(declared, "parametersJsonSchema"), "json_schema"
    if not isinstance(schema, dict):
        schema, dialect = declared.get("parameters"), "openapi"
    described = declared.get("description")
    return Tool(
        declared["name"],
        schema if isinstance(schema, dict) else None,
        described if isinstance(described, str) else "",
        dialect=dialect if isinstance(schema, dict) else "json_schema",
        declared=declared,
    )


def _choice(config: Any) -> str | None:
    calling = get(config, "functionCallingConfig") if isinstance(config, dict) else None
    if not isinstance(calling, dict):
        return None
    mode = _MODES.get(str(calling.get("mode", "AUTO")).upper())
    allowed = get(calling, "allowedFunctionNames")
    if mode == "any" and isinstance(allowed, list) and len(allowed) == 1:
        return f"tool:{allowed[0]}"
    return mode


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _count(value: Any) -> int | None:
    return value if type(value) is int else None


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
