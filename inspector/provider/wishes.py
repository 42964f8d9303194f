"""What a request asks of the answer's text: strings that end it, and JSON of a shape.

Read from what no reader of a format takes (`Request.extra`). A wish is honoured, or the request is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic_core import from_json

from inspector.provider.checks.gemini_generate import member
from inspector.provider.checks.rules import RequestError
from loop_core.judge.arguments import problems, usable
from loop_core.values import Request, ResponsePart, TextPart, Tool
from loop_core.wire import wire
from loop_core.wire.servers import CHAT, CONVERSE, GEMINI, MESSAGES, OLLAMA, RESPONSES


def stops(request: Request) -> tuple[str, ...]:
    """The strings that end the answer."""
    at = wire(request.api).serving.stops
    given = member(request.extra, *at) if at else None
    found = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    return tuple(each for each in found if isinstance(each, str) and each)


def stopped(parts: Sequence[ResponsePart], strings: Sequence[str]) -> tuple[tuple[ResponsePart, ...], str | None]:
    """The parts up to the first of these strings in the text, and the string; thinking is not looked at."""
    for number, part in enumerate(parts):
        if type(part) is not TextPart:
            continue
        found = [(at, string) for string in strings if (at := part.text.find(string)) >= 0]
        if found:
            at, string = min(found)
            kept = (TextPart(part.text[:at]),) if at else ()
            return (*parts[:number], *kept), string
    return tuple(parts), None


# -- JSON ------------------------------------------------------------------------------------------------------------


class Shape(NamedTuple):
    """The JSON that a text is to be."""

    at: str
    """The member that asks for it."""
    schema: Any = None
    """None: any."""
    dialect: str = "json_schema"


def _chat(extra: Any) -> Shape | None:
    asked = member(extra, "response_format", "type")
    if asked == "json_object":
        return Shape("response_format", {"type": "object"})
    return Shape("response_format", member(extra, "response_format", "json_schema", "schema")) if (
        asked == "json_schema") else None


def _responses(extra: Any) -> Shape | None:
    asked = member(extra, "text", "format", "type")
    if asked == "json_object":
        return Shape("text.format", {"type": "object"})
    return Shape("text.format", member(extra, "text", "format", "schema")) if asked == "json_schema" else None


def _messages(extra: Any) -> Shape | None:
    for at in (("output_config", "format"), ("output_format",)):
        if member(extra, *at, "type") == "json_schema":
            return Shape(".".join(at), member(extra, *at, "schema"))
    return None


def _gemini(extra: Any) -> Shape | None:
    settings = member(extra, "generationConfig")
    for name in ("responseJsonSchema", "_responseJsonSchema"):
        if member(settings, name) is not None:
            return Shape(f"generationConfig.{name}", member(settings, name))
    if member(settings, "responseSchema") is not None:
        return Shape("generationConfig.responseSchema", member(settings, "responseSchema"), "openapi")
    asked = member(settings, "responseMimeType") == "application/json"
    return Shape("generationConfig.responseMimeType") if asked else None


def _converse(extra: Any) -> Shape | None:
    text = member(extra, "outputConfig", "textFormat", "structure", "jsonSchema", "schema")
    if text is None:
        return None
    try:
        return Shape("outputConfig.textFormat", json.loads(text))
    except (TypeError, ValueError):
        return Shape("outputConfig.textFormat", False)


def _ollama(extra: Any) -> Shape | None:
    asked = member(extra, "format")
    return Shape("format", {"type": "object"} if asked == "json" else asked) if asked else None


def _interactions(extra: Any) -> Shape | None:
    asked = member(extra, "response_format")
    for each in asked if isinstance(asked, list) else [asked]:
        schema = member(each, "schema")
        if member(each, "type") == "text" and (member(each, "mime_type") == "application/json" or schema):
            return Shape("response_format", schema)
    return None


SHAPES: Mapping[str, Callable[[Any], Shape | None]] = {
    CHAT: _chat, RESPONSES: _responses, MESSAGES: _messages, GEMINI: _gemini, CONVERSE: _converse, OLLAMA: _ollama,
    "gemini_interactions": _interactions,
}
"""Format -> the JSON that a request asks for."""


def match(request: Request, text: str, name: str) -> None:
    """Looks whether the text of a scenario is the JSON that is asked for.

    Raises:
        RequestError: it is not, or the schema is none.
    """
    look = SHAPES.get(request.api)
    shape = look(request.extra) if look is not None else None
    if shape is None:
        return
    schema = shape.schema
    tool = Tool("answer", schema, dialect=shape.dialect) if isinstance(schema, Mapping) else None
    if schema is not None and (tool is None or not usable(tool)):
        raise RequestError(f"{shape.at}: the schema is no JSON schema", param=shape.at)
    if not text:
        return
    try:
        value = from_json(text)
    except ValueError:
        raise RequestError(f"{shape.at}: the scenario {name} answers with a text that is no JSON",
                           param=shape.at) from None
    wrong = problems(tool, value) if tool is not None else ()
    if wrong:
        raise RequestError(f"{shape.at}: the scenario {name} answers with JSON that the schema does not permit: "
                           f"{wrong[0][:200]}", param=shape.at)
