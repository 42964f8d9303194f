"""What Anthropic's server demands of a Messages request: it permits no member that it does not know.

Members, ranges and values: anthropic 2.12.0 types/message_create_params.py and types/beta, and its API reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inspector.provider.checks.fields import Field, dots
from inspector.provider.checks.rules import Body, RequestError, Rule, inside, items, listed, turns, unpaired

KNOWN = (
    "anthropic_beta", "anthropic_version", "betas", "billing_policy", "cache_control", "compaction", "container",
    "context_management", "diagnostics", "fallback_credit_token", "fallbacks", "inference_geo", "max_tokens",
    "mcp_servers", "messages", "metadata", "model", "output_config", "output_format", "service_tier", "speed",
    "stop_sequences", "stream", "system", "temperature", "thinking", "thread", "tool_choice", "tools", "top_k",
    "top_p", "user_profile_id", "workspace_id",
)
"""The members of a request, those of betas and of clouds too."""

FIELDS: tuple[Field, ...] = (
    Field("model", "string", required=True),
    Field("max_tokens", "integer", required=True, least=1),
    Field("messages", "array", required=True),
    Field("messages[]", "object"),
    Field("messages[].role", "string", required=True, among=("user", "assistant", "system")),
    Field("messages[].content", "string|array", required=True),
    Field("messages[].content[]", "object"),
    Field("messages[].content[].type", "string", required=True),
    Field("messages[].content[type=text].text", "string", required=True),
    Field("messages[].content[type=tool_use].id", "string", required=True),
    Field("messages[].content[type=tool_use].name", "string", required=True),
    Field("messages[].content[type=tool_use].input", "object", required=True),
    Field("messages[].content[type=tool_result].tool_use_id", "string", required=True),
    Field("messages[].content[type=tool_result].content", "string|array"),
    Field("messages[].content[type=tool_result].is_error", "boolean"),
    Field("system", "string|array"),
    Field("stop_sequences", "array"),
    Field("stop_sequences[]", "string"),
    Field("stream", "boolean"),
    Field("temperature", "number", least=0, most=1),
    Field("top_p", "number", least=0, most=1),
    Field("top_k", "integer", least=0),
    Field("thinking", "object"),
    Field("thinking.type", "string", required=True, among=("enabled", "disabled", "adaptive")),
    Field("thinking[type=enabled].budget_tokens", "integer", required=True),
    Field("output_config", "object"),
    Field("output_config.format.type", "string", required=True, among=("json_schema",)),
    Field("output_config.format.schema", "object", required=True),
    Field("tools", "array"),
    Field("tools[]", "object"),
    Field("tools[!type].name", "string", required=True),
    Field("tools[!type].input_schema", "object", required=True),
    Field("tools[type=custom].name", "string", required=True),
    Field("tools[type=custom].input_schema", "object", required=True),
    Field("tool_choice", "object"),
    Field("tool_choice.type", "string", required=True, among=("auto", "any", "tool", "none")),
    Field("tool_choice[type=tool].name", "string", required=True),
)


def _some_message(body: Body) -> RequestError | None:
    if body.get("messages") or inside(body, "thread", "type") == "continue":
        return None
    return RequestError("messages: at least one message is expected")


def _first_role(body: Body) -> RequestError | None:
    history = turns(body.get("messages"), joined=True)
    if history and history[0].role != "user":
        return RequestError('messages: the first message must have the role "user"')
    return None


def _pairs(body: Body) -> RequestError | None:
    history = turns(body.get("messages"), joined=True)
    if inside(body, "thread", "type") == "continue":
        history = history[1:]  # what it answers is the server's to know
    found = unpaired(history, _call, _result)
    if found is None:
        return None
    if found.result:
        return RequestError(f"{dots(found.where)}: unexpected `tool_use_id` in a `tool_result` block: "
                            f"{found.ids[0][:80]}; the message before it has no `tool_use` block of this id")
    return RequestError(f"{dots(found.where)}: `tool_use` ids without `tool_result` blocks immediately after: "
                        f"{listed(found.ids)}; the next message must begin with one for each")


def _call(block: Mapping[str, Any]) -> str | None:
    return str(block.get("id")) if block.get("type") == "tool_use" else None


def _result(block: Mapping[str, Any]) -> str | None:
    return str(block.get("tool_use_id")) if block.get("type") == "tool_result" else None


def _choice(body: Body) -> RequestError | None:
    if inside(body, "thread", "type") == "continue":
        return None  # tools that were declared before hold on
    name = inside(body, "tool_choice", "name")
    if inside(body, "tool_choice", "type") in ("any", "tool") and not body.get("tools"):
        return RequestError("tool_choice: it may only be given together with tools")
    if inside(body, "tool_choice", "type") == "tool" and name not in [
            tool.get("name") for _, tool in items(body.get("tools"))]:
        return RequestError(f"tool_choice: the tool {name[:80]!r} is not found in the tools that are provided")
    return None


def _empty_text(body: Body) -> RequestError | None:
    for turn in turns(body.get("messages"), joined=False):
        for where, block in turn.blocks:
            if block.get("type") == "text" and block.get("text") == "":
                return RequestError(f"{dots(where[:2])}: text content must be non-empty")
    return None


def _last_blank(body: Body) -> RequestError | None:
    history = turns(body.get("messages"), joined=True)
    text = history[-1].blocks[-1][1].get("text") if history and history[-1].blocks else None
    if history and history[-1].role == "assistant" and isinstance(text, str) and text != text.rstrip():
        return RequestError("messages: the content of a final assistant message cannot end with whitespace")
    return None


def _blank_stop(body: Body) -> RequestError | None:
    if any(not stop.strip() for stop in body.get("stop_sequences") or ()):
        return RequestError("stop_sequences: each must contain something else than whitespace")
    return None


RULES: tuple[Rule, ...] = (
    Rule("some_message", _some_message, "API reference; in a thread its client sends none to go on after a pause"),
    Rule("first_role", _first_role, "API reference, Messages: the first message has the role user"),
    Rule("pairs", _pairs, "API docs, tool use: troubleshooting of tool_result blocks"),
    Rule("choice", _choice, "threads of copilot proxies: 400 invalid_request_error, no code"),
    Rule("empty_text", _empty_text, "hermes-agent#55092; API docs, errors"),
    Rule("last_blank", _last_blank, "API docs, prefill: no trailing whitespace"),
    Rule("blank_stop", _blank_stop, "API docs, errors of stop_sequences"),
)
