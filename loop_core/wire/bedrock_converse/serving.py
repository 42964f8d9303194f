"""Describes how the scripted provider plays a Converse server: stop words, and checks of a request."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from loop_core.wire import demands, serving
from loop_core.wire.demands import Body, Condition, Demands, JSONShape, Member, RequestError
from loop_core.wire.serving import CallFraming, CutCallForm, Event, Moment, PeerWords, Spelling

SAYS: Mapping[Moment, Spelling] = {
    Moment.ENDED: serving.say("end_turn"),
    Moment.CALLED: serving.say("tool_use"),
    **serving.budget_words("max_tokens", full="model_context_window_exceeded"),
    Moment.FILTERED: serving.say("guardrail_intervened"),
    Moment.MALFORMED: serving.say("malformed_tool_use"),
    Moment.FAILED: serving.fails(None, "The model stream failed.", "modelStreamErrorException"),
    Moment.BROKEN: serving.say(None, CutCallForm.OPEN),  # the block's end is lost with the connection
}
PEERS: Mapping[str, PeerWords] = {
    "end_turn": serving.PEER_STOP,
    "tool_use": serving.PEER_CALL,
    "max_tokens": serving.PEER_LENGTH,
    "model_context_window_exceeded": ("length", "other", "length", "length"),
    "guardrail_intervened": serving.PEER_FILTER,
    "malformed_tool_use": ("stop", "other", "error", "error"),
    serving.PEER_ABSENT: ("", "other", "none", "error"),
    serving.PEER_FAILURE: serving.PEER_FAILED,
}
CANNOT: Mapping[str, str] = serving.usual_reasons(
    "paused", "malformed_call whole", "fallback", "commentary", "empty_choices", "done_without_reason",
    "wandering_index", "fresh_ids")
# After a broken frame nothing can be read, not even the stop reason; a broken event of text is only skipped.
ENDS: Mapping[str, str] = {"malformed_frame": "interrupted"}
ERRORS: Mapping[int, str] = {
    400: "ValidationException", 404: "ResourceNotFoundException", 429: "ThrottlingException",
    500: "InternalServerException", 503: "ServiceUnavailableException", 529: "ServiceUnavailableException",
}


def _set_times(value: Event) -> bool:
    metrics = value.get("metrics")
    if not isinstance(metrics, dict):
        return False
    metrics["latencyMs"] = sum(serving.nanoseconds(value.get("usage"), "inputTokens", "outputTokens")) // 1_000_000
    return True


# -- What it demands -------------------------------------------------------------------------------------------------
# Members, ranges and values: botocore 1.44.5, the model of bedrock-runtime. Fields that request several answers or
# probabilities in other APIs are refused, at the top and among the fields for the model, where the real server would
# ignore them.

OTHERS = ("n", "stop", "stop_sequences", "logprobs", "top_logprobs", "response_format")

MEMBERS: tuple[Member, ...] = (
    Member("messages", "array", required=True, least=1),
    Member("messages[].role", "string", required=True, among=("user", "assistant", "system")),
    Member("messages[].content", "array", required=True, least=1),
    Member("messages[].content[].text", "string"),
    Member("messages[].content[].toolUse.toolUseId", "string", required=True),
    Member("messages[].content[].toolUse.name", "string", required=True),
    Member("messages[].content[].toolUse.input", "object", required=True),
    Member("messages[].content[].toolResult.toolUseId", "string", required=True),
    Member("messages[].content[].toolResult.content", "array", required=True),
    Member("messages[].content[].toolResult.status", "string", among=("success", "error")),
    Member("system[]", "object"),
    Member("inferenceConfig.maxTokens", "integer", least=1),
    Member("inferenceConfig.temperature", "number", least=0, most=1),
    Member("inferenceConfig.topP", "number", least=0, most=1),
    Member("inferenceConfig.stopSequences", "array", most=2500),
    Member("inferenceConfig.stopSequences[]", "string"),
    Member("toolConfig.tools", "array", required=True, least=1),
    Member("toolConfig.tools[].toolSpec.name", "string", required=True),
    Member("toolConfig.tools[].toolSpec.inputSchema", "object", required=True),
    Member("toolConfig.toolChoice.tool.name", "string", required=True),
    Member("outputConfig.textFormat.type", "string", required=True, among=("json_schema",)),
    Member("outputConfig.textFormat.structure", "object", required=True),
    *(Member(f"{holder}{name}", only=()) for holder in ("", "additionalModelRequestFields.") for name in OTHERS),
)


def _first_role(body: Body) -> RequestError | None:
    history = demands.turns(body.get("messages"), joined=False)
    if history and history[0].role != "user":
        return RequestError("A conversation must start with a message of the user.")
    return None


def _alternation(body: Body) -> RequestError | None:
    history = demands.turns(body.get("messages"), joined=False)
    if any(one.role == other.role for one, other in pairwise(history)):
        return RequestError("A conversation must alternate between the roles user and assistant.")
    return None


def _pairs(body: Body) -> RequestError | None:
    # Results first, because Converse also accepts results after text.
    history = [turn._replace(blocks=sorted(turn.blocks, key=lambda each: _result(each[1]) is None))
               for turn in demands.turns(body.get("messages"), joined=False)]
    found = demands.first_unpaired(history, _call, _result)
    if found is None:
        return None
    if found.result:
        return RequestError(f"The toolResult block at {demands.dots(found.where)} has no toolUse block in the turn "
                            f"before it: {found.ids[0][:80]}")
    place = f"messages.{int(found.where[1]) + 1}.content"
    return RequestError(f"Expected toolResult blocks at {place} for the ids {demands.first_ids(found.ids)}")


def _call(block: Mapping[str, Any]) -> str | None:
    call = block.get("toolUse")
    runs_there = demands.inside(call, "type") == "server_tool_use"
    return str(call.get("toolUseId")) if isinstance(call, Mapping) and not runs_there else None


def _result(block: Mapping[str, Any]) -> str | None:
    ident = demands.inside(block, "toolResult", "toolUseId")
    # The provider's own results are beside their calls.
    runs_there = demands.inside(block, "toolResult", "type") is not None
    return str(ident) if ident is not None and not runs_there else None


def _tool_config(body: Body) -> RequestError | None:
    used = any("toolUse" in block or "toolResult" in block for turn in demands.turns(body.get("messages"), joined=False)
               for _, block in turn.blocks)
    if used and body.get("toolConfig") is None:
        return RequestError("The toolConfig field must be defined where toolUse and toolResult content blocks are.")
    return None


def _choice(body: Body) -> RequestError | None:
    name = demands.inside(body, "toolConfig", "toolChoice", "tool", "name")
    tools = demands.items(demands.inside(body, "toolConfig", "tools"))
    names = [demands.inside(tool, "toolSpec", "name") for _, tool in tools]
    if name is not None and name not in names:
        return RequestError(f"toolConfig.toolChoice.tool.name: no tool is declared as {str(name)[:80]!r}")
    return None


CONDITIONS: tuple[Condition, ...] = (
    Condition("first_role", _first_role, "langchain-aws threads: a conversation starts with the user"),
    Condition("alternation", _alternation, "dify#9294; langchainjs#6724"),
    Condition("undeclared", _tool_config,
              "User guide, tool use: toolConfig in every request of a conversation with calls"),
    Condition("pairs", _pairs, "aws-bedrock-js-plugin#664"),
    Condition("choice", _choice, "API reference, SpecificToolChoice: the name of a tool that the model must request"),
)


def _uuid(digits: str) -> str:
    # AWS's request ids are UUIDs
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _json_shape(extra: Body) -> JSONShape | None:
    text = demands.inside(extra, "outputConfig", "textFormat", "structure", "jsonSchema", "schema")
    if text is None:
        return None
    try:
        return JSONShape("outputConfig.textFormat", json.loads(text))
    except (TypeError, ValueError):
        return JSONShape("outputConfig.textFormat", False)  # no schema: `match_json` refuses it


SERVING = serving.Serving(
    own=serving.OwnServer("bedrock", "anthropic.claude-sonnet-4-5", "goose#11838",
                          "the block of a cut call may never end",
                          whole="botocore 1.44.5 service-2.json: input is a document"),
    base="",
    client='boto3.client("bedrock-runtime", endpoint_url="{base}", region_name="us-east-1", '
           'aws_access_key_id="any", aws_secret_access_key="any")',
    says=SAYS,
    text=serving.text_in("contentBlockDelta", "delta", "text"),
    stop_place=serving.StopPlace(serving.itself, ("stopReason",)),
    call_form=CutCallForm.OPEN,
    calls=CallFraming.BLOCKS,
    call_id="tooluse_{}",
    names_model=False,
    indexes=serving.index_under("contentBlockIndex"),
    errors=ERRORS,
    error_body=lambda refused: {"message": refused.message, "__type": refused.kind},
    error_header="x-amzn-errortype",
    stops=("inferenceConfig", "stopSequences"),
    stop_string_word="stop_sequence",
    cannot=CANNOT,
    ends=ENDS,
    demands=Demands(MEMBERS, CONDITIONS),
    json_shape=_json_shape,
    request_id=serving.RequestId("x-amzn-requestid", _uuid),
    set_times=_set_times,
    count=serving.TokenCount(re.compile(r"/model/(?P<model>[^/?#]+)/count-tokens/?(?=$|[?#])"),
                             lambda count: {"inputTokens": count},
                             lambda body: demands.inside(body, "input", "converse")),
    near=re.compile(r"/model/"),
    peers=PEERS,
)
