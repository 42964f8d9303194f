"""What OpenAI's server demands of a Responses request; members of other APIs are refused by name.

Members, ranges and values: openai 3.54.0 types/responses/response_create_params.py and its API reference. There the
least `max_output_tokens` is 16; here it is 1, so that scenarios can be cut early.
"""

from __future__ import annotations

from collections.abc import Mapping

from inspector.provider.checks.fields import Field
from inspector.provider.checks.rules import Body, RequestError, Rule, inside, items

INCLUDES = (
    "file_search_call.results", "web_search_call.results", "web_search_call.action.sources",
    "message.input_image.image_url", "computer_call_output.output.image_url", "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
)
"""`message.output_text.logprobs` is refused: a scripted answer has no probabilities."""
ELSEWHERE = {
    "response_format": "text.format", "max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens",
    "messages": "input", "functions": "tools",
}
"""Members of Chat Completions -> what they are called here; the server names it."""

FIELDS: tuple[Field, ...] = (
    *(Field(old, only=(), hint=f"in the Responses API it is {new}") for old, new in ELSEWHERE.items()),
    *(Field(name, only=(), code="unknown_parameter") for name in ("stop", "n", "logprobs")),
    Field("model", "string", required=True),
    Field("input", "string|array"),
    Field("input[]", "object"),
    Field("input[].role", "string", among=("user", "assistant", "system", "developer")),
    Field("input[type=message].role", "string", required=True),
    Field("input[type=message].content", "string|array", required=True),
    Field("input[!type].role", "string", required=True),
    Field("input[!type].content", "string|array", required=True),
    Field("input[type=function_call].call_id", "string", required=True),
    Field("input[type=function_call].name", "string", required=True),
    Field("input[type=function_call].arguments", "string", required=True),
    Field("input[type=function_call_output].call_id", "string", required=True),
    Field("input[type=function_call_output].output", "string|array", required=True),
    Field("instructions", "string|array"),
    Field("previous_response_id", "string"),
    Field("max_output_tokens", "integer", least=1),
    Field("stream", "boolean"),
    Field("background", "boolean"),
    Field("store", "boolean"),
    Field("temperature", "number", least=0, most=2),
    Field("top_p", "number", least=0, most=1),
    Field("top_logprobs", "integer", only=(0,)),
    Field("include", "array"),
    Field("include[]", "string", among=INCLUDES),
    Field("text", "object"),
    Field("text.format", "object"),
    Field("text.format.type", "string", required=True, among=("text", "json_object", "json_schema")),
    Field("text.format[type=json_schema].name", "string", required=True),
    Field("text.format[type=json_schema].schema", "object", required=True),
    Field("reasoning", "object"),
    Field("tools", "array"),
    Field("tools[]", "object"),
    Field("tools[].type", "string", required=True),
    Field("tools[type=function].name", "string", required=True),
    Field("tools[type=function].parameters", "object"),
    Field("tool_choice", "string|object"),
)

CALLS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
"""Calls -> what answers them."""
KEPT = ("previous_response_id", "conversation", "prompt")
"""Members behind which the provider keeps more of the history."""


def _something(body: Body) -> RequestError | None:
    if any(body.get(name) is not None for name in ("input", *KEPT)):
        return None
    return RequestError("one of 'input', 'previous_response_id', 'conversation' and 'prompt' is expected",
                        code="missing_required_parameter", param="input")


def _pairs(body: Body) -> RequestError | None:
    found = [(str(item.get("type")), str(item.get("call_id"))[:80]) for _, item in items(body.get("input"))]
    whole = all(body.get(name) is None for name in KEPT) and not any(kind == "item_reference" for kind, _ in found)
    waiting, called = dict[tuple[str, str], None](), set[tuple[str, str]]()
    for kind, ident in found:
        if kind in CALLS:
            waiting[CALLS[kind], ident] = None
            called.add((CALLS[kind], ident))
        elif kind in CALLS.values():
            waiting.pop((kind, ident), None)
            if whole and (kind, ident) not in called:
                return RequestError(f"No tool call found for function call output with call_id {ident}.", param="input")
    for _, ident in waiting:
        return RequestError(f"No tool output found for function call {ident}.", param="input")
    return None


def _choice(body: Body) -> RequestError | None:
    choice, tools = body.get("tool_choice"), body.get("tools")
    if isinstance(choice, str) and choice not in ("none", "auto", "required"):
        return RequestError(f"'tool_choice' is {choice[:80]!r}: expected none, auto or required", code="invalid_value",
                            param="tool_choice")
    if not isinstance(choice, Mapping) or choice.get("type") not in ("function", "custom"):
        return None
    if choice.get("name") not in [inside(tool, "name") for _, tool in items(tools)]:
        return RequestError(f"the tool choice {str(choice.get('name'))[:80]!r} is not among 'tools'",
                            param="tool_choice")
    return None


RULES: tuple[Rule, ...] = (
    Rule("something", _something, "API reference: input, a previous response, a conversation or a prompt"),
    # These two sentences are what clients look for in the message; there is no code to go by.
    Rule("pairs", _pairs, "copilot-cli#4572 and many clients' tests: the two messages, param input, no code"),
    Rule("choice", _choice, "vercel/ai and codex threads: param tool_choice, no code"),
)
