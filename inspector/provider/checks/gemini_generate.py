"""What Google's server demands of a generateContent request: it finds a field for every name, or refuses it.

Members and values: google-genai 3.4.0 models.py (what it sends) and types.py, and the API reference. Names are read in
both spellings, as the server does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from inspector.provider.checks.fields import Field
from inspector.provider.checks.rules import Body, RequestError, Rule, inside, items


def snake(name: str) -> str:
    """`functionCall` -> `function_call`."""
    return re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name)


def spellings(name: str) -> Sequence[str]:
    """A name in both spellings."""
    return (name, snake(name))


_KNOWN = (
    "contents", "tools", "toolConfig", "safetySettings", "systemInstruction", "generationConfig", "cachedContent",
    "model", "labels", "store", "serviceTier", "continuationToken", "modelArmorConfig", "outputConfig",
)
_KNOWN_SETTINGS = (
    "temperature", "topP", "topK", "candidateCount", "maxOutputTokens", "stopSequences", "responseLogprobs", "logprobs",
    "presencePenalty", "frequencyPenalty", "seed", "responseMimeType", "responseSchema", "responseJsonSchema",
    "responseFormat", "routingConfig", "modelSelectionConfig", "responseModalities", "mediaResolution", "speechConfig",
    "audioTimestamp", "thinkingConfig", "imageConfig", "enableEnhancedCivicAnswers", "enableAffectiveDialog",
    "audioTranscriptionConfig", "translationConfig", "streamFunctionCallArguments",
)
KNOWN = tuple(spelled for name in _KNOWN for spelled in spellings(name))
KNOWN_SETTINGS = tuple(spelled for name in (*_KNOWN_SETTINGS, "_responseJsonSchema") for spelled in spellings(name))

FIELDS: tuple[Field, ...] = (
    Field("contents", "array", required=True, least=1),
    Field("contents[]", "object"),
    Field("contents[].role", "string", among=("user", "model", "function")),
    Field("contents[].parts", "array|object", required=True, least=1),
    Field("contents[].parts[]", "object"),
    Field("contents[].parts[].text", "string"),
    Field("contents[].parts[].functionCall", "object"),
    Field("contents[].parts[].functionCall.name", "string", required=True),
    Field("contents[].parts[].functionCall.args", "object"),
    Field("contents[].parts[].functionResponse", "object"),
    Field("contents[].parts[].functionResponse.name", "string", required=True),
    Field("contents[].parts[].functionResponse.response", "object", required=True),
    Field("systemInstruction", "object"),
    Field("safetySettings", "array"),
    Field("generationConfig", "object"),
    Field("generationConfig.temperature", "number", least=0, most=2),
    Field("generationConfig.topP", "number", least=0, most=1),
    Field("generationConfig.topK", "number"),
    Field("generationConfig.maxOutputTokens", "integer", least=1),
    Field("generationConfig.candidateCount", "integer", only=(1,),
          hint="one answer is given, and several are asked for"),
    Field("generationConfig.stopSequences", "array", most=5),
    Field("generationConfig.stopSequences[]", "string"),
    Field("generationConfig.responseLogprobs", "boolean", only=(False,)),
    Field("generationConfig.logprobs", "integer", only=()),
    Field("generationConfig.responseMimeType", "string", among=("text/plain", "application/json")),
    Field("generationConfig.responseSchema", "object"),
    Field("tools", "array"),
    Field("tools[]", "object"),
    Field("tools[].functionDeclarations", "array"),
    Field("tools[].functionDeclarations[].name", "string", required=True),
    Field("tools[].functionDeclarations[].parameters", "object"),
    Field("toolConfig", "object"),
    Field("toolConfig.functionCallingConfig", "object"),
    Field("toolConfig.functionCallingConfig.mode", "string",
          among=("MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED")),
    Field("toolConfig.functionCallingConfig.allowedFunctionNames", "array"),
)


def member(value: Any, *names: str) -> Any:
    """The member at the end of these names, in either spelling."""
    for name in names:
        found = inside(value, name)
        value = inside(value, snake(name)) if found is None else found
    return value


def _pairs(body: Body) -> RequestError | None:
    """The calls of a model's turn against the answers of all that follows it up to the next one.

    Contents of the model in a row are one turn: Google's own client sends the pieces of a stream so.
    """
    called = answers = 0
    before: Any = None
    for _, content in items(body.get("contents")):
        role, parts = content.get("role"), [part for _, part in items(content.get("parts"))]
        if role == "model":
            if before != "model":
                if answers != called:
                    return _uneven()
                called = answers = 0
            called += sum(member(part, "functionCall") is not None for part in parts)
        else:
            answers += sum(member(part, "functionResponse") is not None for part in parts)
            if answers and not called:
                return RequestError("a function response turn must come immediately after a function call turn")
        before = role
    return _uneven() if before != "model" and answers != called else None


def _uneven() -> RequestError:
    return RequestError("the number of function response parts must be equal to the number of function call parts of "
                        "the function call turn")


def _choice(body: Body) -> RequestError | None:
    allowed = member(body, "toolConfig", "functionCallingConfig", "allowedFunctionNames") or ()
    names = [member(each, "name") for _, tool in items(body.get("tools"))
             for _, each in items(member(tool, "functionDeclarations"))]
    odd = next((name for name in allowed if name not in names), None)
    if odd is None:
        return None
    at = "toolConfig.functionCallingConfig.allowedFunctionNames"
    return RequestError(f"{at}: no function is declared as {str(odd)[:80]!r}", param=at)


def _schema_alone(body: Body) -> RequestError | None:
    schema = member(body, "generationConfig", "responseSchema")
    if schema is None or member(body, "generationConfig", "responseMimeType") == "application/json":
        return None
    return RequestError("generationConfig.responseSchema is only served with responseMimeType application/json")


RULES: tuple[Rule, ...] = (
    Rule("pairs", _pairs, "gemini-cli#5443, #7410, #4504"),
    Rule("choice", _choice, "API reference, FunctionCallingConfig: names should match FunctionDeclaration.name"),
    Rule("schema_alone", _schema_alone, "API reference, GenerationConfig.responseSchema: a compatible MIME type"),
)
