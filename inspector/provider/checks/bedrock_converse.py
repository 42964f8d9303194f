"""What Bedrock demands of a Converse request.

Members, ranges and values: botocore 1.44.5, the model of bedrock-runtime. What other APIs call a choice of answers or
probabilities is refused, at the top and among the fields for the model, where it would be passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from inspector.provider.checks.fields import Field, dots
from inspector.provider.checks.rules import Body, RequestError, Rule, inside, items, listed, turns, unpaired

OTHERS = ("n", "stop", "stop_sequences", "logprobs", "top_logprobs", "response_format")

FIELDS: tuple[Field, ...] = (
    Field("messages", "array", required=True, least=1),
    Field("messages[]", "object"),
    Field("messages[].role", "string", required=True, among=("user", "assistant", "system")),
    Field("messages[].content", "array", required=True, least=1),
    Field("messages[].content[]", "object"),
    Field("messages[].content[].text", "string"),
    Field("messages[].content[].toolUse", "object"),
    Field("messages[].content[].toolUse.toolUseId", "string", required=True),
    Field("messages[].content[].toolUse.name", "string", required=True),
    Field("messages[].content[].toolUse.input", "object", required=True),
    Field("messages[].content[].toolResult", "object"),
    Field("messages[].content[].toolResult.toolUseId", "string", required=True),
    Field("messages[].content[].toolResult.content", "array", required=True),
    Field("messages[].content[].toolResult.status", "string", among=("success", "error")),
    Field("system", "array"),
    Field("system[]", "object"),
    Field("inferenceConfig", "object"),
    Field("inferenceConfig.maxTokens", "integer", least=1),
    Field("inferenceConfig.temperature", "number", least=0, most=1),
    Field("inferenceConfig.topP", "number", least=0, most=1),
    Field("inferenceConfig.stopSequences", "array", most=2500),
    Field("inferenceConfig.stopSequences[]", "string"),
    Field("toolConfig", "object"),
    Field("toolConfig.tools", "array", required=True, least=1),
    Field("toolConfig.tools[].toolSpec", "object"),
    Field("toolConfig.tools[].toolSpec.name", "string", required=True),
    Field("toolConfig.tools[].toolSpec.inputSchema", "object", required=True),
    Field("toolConfig.toolChoice", "object"),
    Field("toolConfig.toolChoice.tool.name", "string", required=True),
    Field("outputConfig", "object"),
    Field("outputConfig.textFormat", "object"),
    Field("outputConfig.textFormat.type", "string", required=True, among=("json_schema",)),
    Field("outputConfig.textFormat.structure", "object", required=True),
    Field("additionalModelRequestFields", "object"),
    *(Field(f"{holder}{name}", only=()) for holder in ("", "additionalModelRequestFields.") for name in OTHERS),
)


def _first_role(body: Body) -> RequestError | None:
    history = turns(body.get("messages"), joined=False)
    if history and history[0].role != "user":
        return RequestError("A conversation must start with a message of the user.")
    return None


def _alternation(body: Body) -> RequestError | None:
    history = turns(body.get("messages"), joined=False)
    if any(one.role == other.role for one, other in pairwise(history)):
        return RequestError("A conversation must alternate between the roles user and assistant.")
    return None


def _pairs(body: Body) -> RequestError | None:
    history = turns(body.get("messages"), joined=False)
    found = unpaired([turn._replace(blocks=_results_first(turn.blocks)) for turn in history], _call, _result)
    if found is None:
        return None
    if found.result:
        return RequestError(f"The toolResult block at {dots(found.where)} has no toolUse block in the turn before it: "
                            f"{found.ids[0][:80]}")
    place = f"messages.{int(found.where[1]) + 1}.content"
    return RequestError(f"Expected toolResult blocks at {place} for the ids {listed(found.ids)}")


def _results_first(blocks: Any) -> Any:
    """In a turn of Converse results may stand after words."""
    return sorted(blocks, key=lambda each: _result(each[1]) is None)


def _call(block: Mapping[str, Any]) -> str | None:
    call = block.get("toolUse")
    runs_there = inside(call, "type") == "server_tool_use"
    return str(call.get("toolUseId")) if isinstance(call, Mapping) and not runs_there else None


def _result(block: Mapping[str, Any]) -> str | None:
    ident = inside(block, "toolResult", "toolUseId")
    runs_there = inside(block, "toolResult", "type") is not None  # what the provider ran stands with its call
    return str(ident) if ident is not None and not runs_there else None


def _undeclared(body: Body) -> RequestError | None:
    used = any("toolUse" in block or "toolResult" in block for turn in turns(body.get("messages"), joined=False)
               for _, block in turn.blocks)
    if used and body.get("toolConfig") is None:
        return RequestError("The toolConfig field must be defined where toolUse and toolResult content blocks are.")
    return None


def _choice(body: Body) -> RequestError | None:
    name = inside(body, "toolConfig", "toolChoice", "tool", "name")
    names = [inside(tool, "toolSpec", "name") for _, tool in items(inside(body, "toolConfig", "tools"))]
    if name is not None and name not in names:
        return RequestError(f"toolConfig.toolChoice.tool.name: no tool is declared as {str(name)[:80]!r}")
    return None


RULES: tuple[Rule, ...] = (
    Rule("first_role", _first_role, "langchain-aws threads: a conversation starts with the user"),
    Rule("alternation", _alternation, "dify#9294; langchainjs#6724"),
    Rule("undeclared", _undeclared, "User guide, tool use: toolConfig in every request of a conversation with calls"),
    Rule("pairs", _pairs, "aws-bedrock-js-plugin#664"),
    Rule("choice", _choice, "API reference, SpecificToolChoice: the name of a tool that the model must request"),
)
