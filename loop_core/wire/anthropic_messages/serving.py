"""Describes how the scripted provider plays a Messages server, and one of text completions: stop words, and checks of a
request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from loop_core.wire import demands, serving
from loop_core.wire.demands import Body, Condition, Demands, JSONShape, Member, RequestError
from loop_core.wire.serving import CallFraming, CutCallForm, Event, Moment, PeerWords, Spelling

SAYS: Mapping[Moment, Spelling] = {
    Moment.ENDED: serving.say("end_turn"),
    Moment.CALLED: serving.say("tool_use"),
    **serving.budget_words("max_tokens", full="model_context_window_exceeded"),
    Moment.FILTERED: serving.say("refusal"),
    Moment.PAUSED: serving.say("pause_turn"),
    Moment.MALFORMED: serving.say("tool_use"),
    Moment.FAILED: serving.fails(None, "Overloaded", "overloaded_error"),
    Moment.BROKEN: serving.say(None, CutCallForm.OPEN),  # the block's end is lost with the connection
}
PEERS: Mapping[str, PeerWords] = {
    "end_turn": serving.PEER_STOP,
    "tool_use": serving.PEER_CALL,
    "max_tokens": serving.PEER_LENGTH,
    "model_context_window_exceeded": ("length", "length", "length", "raises"),
    "refusal": serving.PEER_FILTER,
    "pause_turn": ("length", "stop", "suspended", "stop"),
    serving.PEER_ABSENT: ("stop", "interrupted", "none", "error"),
    serving.PEER_FAILURE: serving.PEER_FAILED,
}
CANNOT: Mapping[str, str] = serving.usual_reasons(
    "malformed_call whole", "commentary", "empty_choices", "done_without_reason", "wandering_index", "fresh_ids")
ERRORS: Mapping[int, str] = {
    400: "invalid_request_error", 404: "not_found_error", 429: "rate_limit_error", 500: "api_error", 503: "api_error",
    529: "overloaded_error",
}


def anthropic_error(why: serving.RequestRefusal) -> Event:
    """The body of an error from Anthropic."""
    return {"type": "error", "error": {"type": why.kind, "message": why.message}}


# -- What it demands: it permits no member that it does not know -----------------------------------------------------
# Members, ranges and values: anthropic 2.12.0 types/message_create_params.py and types/beta, and its API reference.

MEMBER_NAMES = (
    "anthropic_beta", "anthropic_version", "betas", "billing_policy", "cache_control", "compaction", "container",
    "context_management", "diagnostics", "fallback_credit_token", "fallbacks", "inference_geo", "max_tokens",
    "mcp_servers", "messages", "metadata", "model", "output_config", "output_format", "service_tier", "speed",
    "stop_sequences", "stream", "system", "temperature", "thinking", "thread", "tool_choice", "tools", "top_k",
    "top_p", "user_profile_id", "workspace_id",
)
"""The names of all members that a request may have, including those of betas and of cloud services."""

MEMBERS: tuple[Member, ...] = (
    Member("model", "string", required=True),
    Member("max_tokens", "integer", required=True, least=1),
    Member("messages", "array", required=True),
    Member("messages[].role", "string", required=True, among=("user", "assistant", "system")),
    Member("messages[].content", "string|array", required=True),
    Member("messages[].content[].type", "string", required=True),
    Member("messages[].content[type=text].text", "string", required=True),
    Member("messages[].content[type=tool_use].id", "string", required=True),
    Member("messages[].content[type=tool_use].name", "string", required=True),
    Member("messages[].content[type=tool_use].input", "object", required=True),
    Member("messages[].content[type=tool_result].tool_use_id", "string", required=True),
    Member("messages[].content[type=tool_result].content", "string|array"),
    Member("messages[].content[type=tool_result].is_error", "boolean"),
    Member("system", "string|array"),
    Member("stop_sequences[]", "string"),
    Member("stream", "boolean"),
    Member("temperature", "number", least=0, most=1),
    Member("top_p", "number", least=0, most=1),
    Member("top_k", "integer", least=0),
    Member("thinking.type", "string", required=True, among=("enabled", "disabled", "adaptive")),
    Member("thinking[type=enabled].budget_tokens", "integer", required=True),
    Member("output_config.format.type", "string", required=True, among=("json_schema",)),
    Member("output_config.format.schema", "object", required=True),
    Member("tools[]", "object"),
    Member("tools[!type].name", "string", required=True),
    Member("tools[!type].input_schema", "object", required=True),
    Member("tools[type=custom].name", "string", required=True),
    Member("tools[type=custom].input_schema", "object", required=True),
    Member("tool_choice.type", "string", required=True, among=("auto", "any", "tool", "none")),
    Member("tool_choice[type=tool].name", "string", required=True),
)


def _some_message(body: Body) -> RequestError | None:
    if body.get("messages") or demands.inside(body, "thread", "type") == "continue":
        return None
    return RequestError("messages: at least one message is expected")


def _pairs(body: Body) -> RequestError | None:
    # The server joins messages of one role that follow each other (API reference, messages).
    history = demands.turns(body.get("messages"), joined=True)
    if demands.inside(body, "thread", "type") == "continue":
        history = history[1:]  # only the server knows the calls that it answers
    found = demands.first_unpaired(history, _call, _result)
    if found is None:
        return None
    if found.result:
        return RequestError(f"{demands.dots(found.where)}: unexpected `tool_use_id` in a `tool_result` block: "
                            f"{found.ids[0][:80]}; the message before it has no `tool_use` block of this id")
    return RequestError(f"{demands.dots(found.where)}: `tool_use` ids without `tool_result` blocks immediately after: "
                        f"{demands.first_ids(found.ids)}; the next message must begin with one for each")


def _call(block: Mapping[str, Any]) -> str | None:
    return str(block.get("id")) if block.get("type") == "tool_use" else None


def _result(block: Mapping[str, Any]) -> str | None:
    return str(block.get("tool_use_id")) if block.get("type") == "tool_result" else None


def _choice(body: Body) -> RequestError | None:
    if demands.inside(body, "thread", "type") == "continue":
        return None  # tools that were declared before stay declared
    name = demands.inside(body, "tool_choice", "name")
    if demands.inside(body, "tool_choice", "type") in ("any", "tool") and not body.get("tools"):
        return RequestError("tool_choice: it may only be given together with tools")
    if demands.inside(body, "tool_choice", "type") == "tool" and name not in [
            tool.get("name") for _, tool in demands.items(body.get("tools"))]:
        return RequestError(f"tool_choice: the tool {name[:80]!r} is not found in the tools that are provided")
    return None


def _empty_text(body: Body) -> RequestError | None:
    for turn in demands.turns(body.get("messages"), joined=False):
        for where, block in turn.blocks:
            if block.get("type") == "text" and block.get("text") == "":
                return RequestError(f"{demands.dots(where[:2])}: text content must be non-empty")
    return None


def _last_blank(body: Body) -> RequestError | None:
    history = demands.turns(body.get("messages"), joined=True)
    text = history[-1].blocks[-1][1].get("text") if history and history[-1].blocks else None
    if history and history[-1].role == "assistant" and isinstance(text, str) and text != text.rstrip():
        return RequestError("messages: the content of a final assistant message cannot end with whitespace")
    return None


def _blank_stop(body: Body) -> RequestError | None:
    if any(not stop.strip() for stop in body.get("stop_sequences") or ()):
        return RequestError("stop_sequences: each must contain something else than whitespace")
    return None


CONDITIONS: tuple[Condition, ...] = (
    Condition("some_message", _some_message, "API reference; in a thread its client sends none to go on after a pause"),
    Condition("pairs", _pairs, "API docs, tool use: troubleshooting of tool_result blocks"),
    Condition("choice", _choice, "threads of copilot proxies: 400 invalid_request_error, no code"),
    Condition("empty_text", _empty_text, "hermes-agent#55092; API docs, errors"),
    Condition("last_blank", _last_blank, "API docs, prefill: no trailing whitespace"),
    Condition("blank_stop", _blank_stop, "API docs, errors of stop_sequences"),
)


def _json_shape(extra: Body) -> JSONShape | None:
    for at in (("output_config", "format"), ("output_format",)):
        if demands.inside(extra, *at, "type") == "json_schema":
            return JSONShape(".".join(at), demands.inside(extra, *at, "schema"))
    return None


SERVING = serving.Serving(
    own=serving.OwnServer("anthropic", "claude-sonnet-4-5", "anthropic 2.12.0 types/stop_reason.py",
                          whole="cynative PR#283"),
    base="",  # its SDK adds /v1 itself
    client='anthropic.Anthropic(base_url="{base}", api_key="any")',
    says=SAYS,
    text=serving.text_in("content_block_delta", "delta", "text"),
    stop_place=serving.StopPlace(serving.in_delta, ("stop_reason",), null=True),
    calls=CallFraming.BLOCKS,
    answer_id="msg_{}",
    call_id="toolu_{}",
    counts_early=True,  # message_start holds the input tokens
    indexes=serving.index_under("index"),
    errors=ERRORS,
    error_body=anthropic_error,
    stops=("stop_sequences",),
    stop_string_word="stop_sequence",
    stopped_field="stop_sequence",
    cannot=CANNOT,
    demands=Demands(MEMBERS, CONDITIONS, names={"": MEMBER_NAMES}),
    json_shape=_json_shape,
    # of the length of Anthropic's own
    request_id=serving.RequestId("request-id", "req_01{:.22}".format, in_errors=True),
    count=serving.TokenCount(re.compile(r"/v1/messages/count_tokens/?(?=$|[?#])"),
                             lambda count: {"input_tokens": count}, optional=frozenset({"max_tokens"})),
    near=re.compile(r"/messages(?=[/?#]|$)"),
    client_header="anthropic-version",
    peers=PEERS,
)


# -- Anthropic's text completions ---------------------------------------------------------------------------------


COMPLETE_SAYS: Mapping[Moment, Spelling] = {
    Moment.ENDED: serving.say("stop_sequence"),  # if the model ends by itself, the human's turn is the string
    Moment.CUT: serving.say("max_tokens"),
    Moment.FULL: serving.say("max_tokens"),
    Moment.FAILED: serving.fails(None, "Overloaded", "overloaded_error"),
}
COMPLETE_CANNOT: Mapping[str, str] = {
    **serving.ONLY_TEXT, **serving.usual_reasons("filtered", "empty_choices", "done_without_reason"),
}
COMPLETE_ENDS: Mapping[str, str] = {
    "context_full": "completed", "echoed": "no_progress", "no_reason stream": "interrupted",
}


# -- What it demands -------------------------------------------------------------------------------------------------
# Members: anthropic 0.125.0 types/completion_create_params.py. A prompt need not begin with "\n\nHuman:".

COMPLETE_MEMBERS: tuple[Member, ...] = (
    Member("model", "string", required=True),
    Member("prompt", "string", required=True),
    Member("max_tokens_to_sample", "integer", required=True, least=1),
    *(row for row in MEMBERS if row.path in ("stop_sequences[]", "stream", "temperature", "top_p", "top_k")),
    Member("metadata", "object"),
)

COMPLETE_SERVING = serving.Serving(
    own=serving.OwnServer("anthropic", "claude-2.1", "anthropic 0.125.0 types/completion.py"),
    base="",
    client='anthropic.Anthropic(base_url="{base}", api_key="any").completions',
    says=COMPLETE_SAYS,
    text=lambda name, value: (value, "completion"),
    stop_place=serving.StopPlace(serving.itself, ("stop_reason",), null=True),
    answer_id="compl_{}",
    errors=ERRORS,
    error_body=anthropic_error,
    stops=("stop_sequences",),
    stop_string_word="stop_sequence",
    stopped_field="stop",
    cannot=COMPLETE_CANNOT,
    ends=COMPLETE_ENDS,
    demands=Demands(COMPLETE_MEMBERS),
    request_id=serving.RequestId("request-id", "req_01{:.22}".format, in_errors=True),  # as in Messages
)
