"""Request -> the body that generateContent expects; model and streaming stand in the path.

A schema that Gemini does not take is refused with its place: see `schemas`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from loop_core.errors import EncodeError
from loop_core.values import (
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
from loop_core.wire.body import (
    arguments,
    forced,
    known,
    merged,
    opaque,
    refuse,
    split_system,
    unknown_choice,
    with_ids,
    with_names,
)
from loop_core.wire.gemini_generate.schemas import problems
from loop_core.wire.gemini_generate.table import API

CHOICES: Mapping[str, str] = {"auto": "AUTO", "any": "ANY", "none": "NONE"}
ASKING_LOSES: Mapping[str, str] = {
    "message.grouping": "the system prompt is one list of parts, and neighbours of one role are one content",
    "reasoning.data": "thinking is not encrypted here",
    "reasoning.item_id": "a part has no id",
    "call.form": "arguments are sent as an object",
    "call.status": "a functionCall has no status",
    "call.item_id": "a functionCall has one id",
    "result.json": "an image in a result is a part beside it here",
    "previous_id": "nothing is kept on the provider's side",
    "background": "there are no background responses",
}
_ROLES: Mapping[Role, str] = {Role.USER: "user", Role.ASSISTANT: "model", Role.TOOL: "user", Role.SYSTEM: "user"}
DECLARED_AS: Mapping[str, str] = {"json_schema": "parametersJsonSchema", "openapi": "parameters"}
"""Dialect of a schema -> the field that takes it; the two exclude each other (google-genai 3.4.0 types.py)."""


def path(request: Request) -> str:
    """Where the request goes, below the version of the API."""
    word = "streamGenerateContent?alt=sse" if request.stream else "generateContent"
    return f"/models/{quote(request.model or '', safe='')}:{word}"


def encode_request(request: Request) -> dict[str, Any]:
    """The body of the request.

    Raises:
        EncodeError: it holds what the format cannot carry; of a schema the message names the place.
    """
    said, history = split_system(with_names(with_ids(request.messages, missing=False)))
    body: dict[str, Any] = {}
    system = [_part(part) for message in said for part in message.parts]
    if system:
        body["systemInstruction"] = {"parts": system}
    body["contents"] = _contents(history)
    if request.tools:
        body["tools"] = _tools(request.tools)
    if request.tool_choice is not None:
        body["toolConfig"] = {"functionCallingConfig": _choice(request.tool_choice)}
    settings = known(maxOutputTokens=request.max_tokens, candidateCount=request.n if request.n != 1 else None)
    if settings:
        body["generationConfig"] = settings
    body |= known(continuationToken=request.continuation_token)
    return merged(body, request.extra)


def _contents(history: Iterable[Message]) -> list[dict[str, Any]]:
    """One content a message; the results of one round go into one, as they came out of one."""
    contents: list[dict[str, Any]] = []
    before: Role | None = None
    for message in history:
        parts = [_part(part) for part in message.parts]
        if before is Role.TOOL and message.role is Role.TOOL:
            contents[-1]["parts"] += parts
        elif parts:
            contents.append({"role": _ROLES[message.role], "parts": parts})
        else:
            continue  # a content without parts is refused
        before = message.role
    return contents


def _part(part: MessagePart) -> dict[str, Any]:
    if type(part) is TextPart:
        return {"text": part.text}
    if type(part) is ReasoningPart:
        if not part.text and part.signature is not None:
            return {"text": "", "thoughtSignature": part.signature}
        return {"text": part.text, "thought": True, **known(thoughtSignature=part.signature)}
    if type(part) is ToolResultPart:
        if part.name is None:
            raise EncodeError("a result needs the name of its function", api=API, what="result.name")
        return {"functionResponse": {**known(id=part.call_id), "name": part.name, "response": _answer(part)}}
    if type(part) is OpaquePart:
        value = opaque(part, API)
        if not isinstance(value, dict):
            raise EncodeError(f"the opaque {part.type} is no part", api=API, what="opaque")
        return value
    assert type(part) is ToolCall  # noqa: S101  (the kinds of parts are a closed list)
    if part.kind is not CallKind.FUNCTION:
        raise refuse(part, API)
    call = {**known(id=part.id), "name": part.name, "args": arguments(part, API)}
    return {"functionCall": call, **known(thoughtSignature=part.signature)}


def _answer(part: ToolResultPart) -> dict[str, Any]:
    """The object that a result must be; a text that is an object with other fields than these is that object."""
    try:
        value = json.loads(part.text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and value and ("error" in value) is part.is_error:
        return value
    return {"error" if part.is_error else "output": part.text}


def _tools(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """One list of functions for neighbours among them; what the provider runs itself stands beside."""
    made: list[dict[str, Any]] = []
    for tool in tools:
        if tool.kind is CallKind.SERVER:
            made.append(dict(tool.declared) if tool.declared is not None else {tool.name: {}})
            continue
        if not (made and "functionDeclarations" in made[-1]):
            made.append({"functionDeclarations": []})
        made[-1]["functionDeclarations"].append(_function(tool))
    return made


def _function(tool: Tool) -> Mapping[str, Any]:
    wrong = problems(tool)
    if wrong:
        raise EncodeError("; ".join(str(problem) for problem in wrong), api=API, what="schema")
    if tool.declared is not None:
        return tool.declared
    if tool.kind is not CallKind.FUNCTION:
        raise EncodeError(f"{tool.name}: there are no free-form tools", api=API, what="custom tool")
    said = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **said, **({DECLARED_AS[tool.dialect]: tool.schema} if tool.schema else {})}


def _choice(choice: str) -> dict[str, Any]:
    name = forced(choice)
    if name is not None:
        return {"mode": "ANY", "allowedFunctionNames": [name]}
    if choice not in CHOICES:
        raise unknown_choice(choice, API)
    return {"mode": CHOICES[choice]}
