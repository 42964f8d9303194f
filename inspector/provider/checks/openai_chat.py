"""What OpenAI's server demands of a Chat Completions request. Unknown members are left alone: many servers have more.

Members, ranges and values: openai 3.54.0 types/chat/completion_create_params.py and its API reference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from inspector.provider.checks.fields import Field
from inspector.provider.checks.rules import Body, RequestError, Rule, inside, items, listed

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
FORMATS = ("text", "json_object", "json_schema")

FIELDS: tuple[Field, ...] = (
    Field("messages", "array", required=True, least=1),
    Field("messages[]", "object"),
    Field("messages[].role", "string", required=True, among=ROLES),
    Field("messages[].content", "string|array"),
    Field("messages[role=user].content", "string|array", required=True),
    Field("messages[role=system].content", "string|array", required=True),
    Field("messages[role=tool].tool_call_id", "string", required=True),
    Field("messages[].tool_calls", "array", least=1),
    Field("messages[].tool_calls[]", "object"),
    Field("messages[].tool_calls[].id", "string", required=True),
    Field("messages[].tool_calls[].function", "object"),
    Field("messages[].tool_calls[].function.name", "string", required=True),
    Field("messages[].tool_calls[].function.arguments", "string", required=True),
    Field("max_tokens", "integer", least=1),
    Field("max_completion_tokens", "integer", least=1),
    Field("stream", "boolean"),
    Field("stream_options", "object"),
    Field("temperature", "number", least=0, most=2),
    Field("top_p", "number", least=0, most=1),
    Field("presence_penalty", "number", least=-2, most=2),
    Field("frequency_penalty", "number", least=-2, most=2),
    Field("seed", "integer"),
    Field("parallel_tool_calls", "boolean"),
    Field("stop", "string|array", most=4),
    Field("stop[]", "string"),
    Field("n", "integer", least=1, only=(1,), code="unsupported_value",
          hint="one answer is given, and several are asked for"),
    Field("logprobs", "boolean", only=(False,)),
    Field("top_logprobs", "integer", only=(0,)),
    Field("response_format", "object"),
    Field("response_format.type", "string", required=True, among=FORMATS),
    Field("response_format[type=json_schema].json_schema", "object", required=True),
    Field("response_format.json_schema.name", "string", required=True),
    Field("response_format.json_schema.schema", "object"),
    Field("tools", "array"),
    Field("tools[]", "object"),
    Field("tools[].type", "string", required=True),
    Field("tools[type=function].function", "object", required=True),
    Field("tools[].function.name", "string", required=True),
    Field("tools[].function.parameters", "object"),
    Field("tool_choice", "string|object"),
    Field("tool_choice[type=function].function", "object", required=True),
)


def _model(body: Body) -> RequestError | None:
    return None if isinstance(body.get("model"), str) else RequestError("a model parameter is expected")


def _pairs(body: Body) -> RequestError | None:
    called, left = set[str](), dict[str, None]()
    for number, message in items(body.get("messages")):
        param = f"messages.[{number}].role"
        if message.get("role") == "tool":
            ident = message.get("tool_call_id")
            if str(ident) not in called:
                return RequestError(f"the message of the role tool with tool_call_id {str(ident)[:80]!r} does not "
                                    "follow a message with these 'tool_calls'", param=param)
            left.pop(str(ident), None)
            continue
        if left:
            return _unanswered(left, param)
        left = {str(call.get("id")): None for _, call in items(message.get("tool_calls"))}
        called = set(left)
    return _unanswered(left, "messages") if left else None


def _unanswered(left: Iterable[str], param: str) -> RequestError:
    return RequestError(
        "messages of the role tool must follow a message with 'tool_calls', one for each 'tool_call_id'; there are "
        f"none for {listed(left)}", param=param)


def _choice(body: Body) -> RequestError | None:
    choice, tools = body.get("tool_choice"), body.get("tools")
    if choice is None:
        return None
    if not tools:
        return RequestError("'tool_choice' is only allowed where 'tools' are given", param="tool_choice")
    if isinstance(choice, str):
        known = choice in ("none", "auto", "required")
        return None if known else RequestError(
            f"'tool_choice' is {choice[:80]!r}: expected none, auto or required", code="invalid_value",
            param="tool_choice")
    kind = choice.get("type") if isinstance(choice, Mapping) else None
    name = inside(choice, str(kind), "name")
    names = [inside(tool, str(kind), "name") for _, tool in items(tools)]
    if kind in ("function", "custom") and name not in names:
        return RequestError(f"the tool choice {str(name)[:80]!r} is not among 'tools'", param="tool_choice")
    return None


def _stream_options(body: Body) -> RequestError | None:
    if body.get("stream_options") is None or body.get("stream") is True:
        return None
    return RequestError("'stream_options' is only allowed where 'stream' is true", param="stream_options")


def _word_json(body: Body) -> RequestError | None:
    if inside(body, "response_format", "type") != "json_object" or "json" in str(body.get("messages")).lower():
        return None
    return RequestError("'messages' must contain the word json where 'response_format' is json_object",
                        param="messages")


RULES: tuple[Rule, ...] = (
    Rule("model", _model, "400 without code and param, as Azure and OpenAI answer"),
    Rule("pairs", _pairs, "GhidrAssist#45, openai-python threads: param messages.[N].role, no code"),
    Rule("choice", _choice, "dapr-agents#248; writer-framework PR#1013"),
    Rule("stream_options", _stream_options, "API reference: only set this when you set stream: true"),
    Rule("word_json", _word_json, "API reference, response_format: json_object"),
)
