"""Describes how the scripted provider plays Cohere's chat: stop words, and checks of a request of version 2."""

from __future__ import annotations

import re
from collections.abc import Mapping

from loop_core.wire import serving
from loop_core.wire.demands import Body, Condition, Demands, JSONShape, Member, RequestError, first_ids, inside, items
from loop_core.wire.serving import Moment, Spelling

SAYS: Mapping[Moment, Spelling] = {
    Moment.ENDED: serving.say("COMPLETE"),
    Moment.CALLED: serving.say("TOOL_CALL"),
    # one word for a full context and for max_tokens (docs, chat)
    **serving.budget_words("MAX_TOKENS", full="MAX_TOKENS"),
    Moment.MALFORMED: serving.say("TOOL_CALL"),
    Moment.FAILED: serving.fails("ERROR", "The generation failed."),
    Moment.BROKEN: serving.say(None),
}
CANNOT: Mapping[str, str] = serving.usual_reasons(
    "filtered", "paused", "fallback", "commentary", "empty_choices", "done_without_reason", "wandering_index",
    "fresh_ids")
ENDS: Mapping[str, str] = {"context_full": "completed"}


# -- What it demands -------------------------------------------------------------------------------------------------
# Members and values: cohere 7.3.1 v2/client.py and types; ranges: its docstrings.

ROLES = ("user", "assistant", "system", "tool")

MEMBERS: tuple[Member, ...] = (
    Member("message", only=(), hint="the first version is not played; the second one takes messages"),
    Member("model", "string", required=True),
    Member("messages", "array", required=True, least=1),
    Member("messages[].role", "string", required=True, among=ROLES),
    Member("messages[role=user].content", "string|array", required=True),
    Member("messages[role=system].content", "string|array", required=True),
    Member("messages[role=assistant].content", "string|array"),
    Member("messages[role=tool].tool_call_id", "string", required=True),
    Member("messages[role=tool].content", "string|array", required=True),
    Member("messages[].tool_calls[].id", "string", required=True),
    Member("messages[].tool_calls[].function.name", "string"),
    Member("messages[].tool_calls[].function.arguments", "string"),
    Member("max_tokens", "integer", least=1),
    Member("stream", "boolean"),
    Member("stop_sequences", "array", most=5),
    Member("stop_sequences[]", "string"),
    Member("temperature", "number", least=0),
    Member("seed", "integer"),
    Member("frequency_penalty", "number", least=0, most=1),
    Member("presence_penalty", "number", least=0, most=1),
    Member("k", "integer", least=0, most=500),
    Member("p", "number", least=0.01, most=0.99),
    Member("logprobs", "boolean", only=(False,)),
    Member("response_format.type", "string", required=True, among=("text", "json_object")),
    Member("response_format.json_schema", "object"),
    Member("thinking.type", "string", required=True, among=("enabled", "disabled")),
    Member("tools[].function", "object", required=True),
    Member("tools[].function.name", "string", required=True),
    Member("tools[].function.parameters", "object", required=True),
    Member("tool_choice", "string", among=("REQUIRED", "NONE")),
)


def _pairs(body: Body) -> RequestError | None:
    called = set[str]()
    for number, message in items(body.get("messages")):
        called |= {str(call.get("id")) for _, call in items(message.get("tool_calls"))}
        ident = str(message.get("tool_call_id"))
        if message.get("role") == "tool" and ident not in called:
            return RequestError(f"messages.{number}: no tool call before it has the id {first_ids([ident])}")
    return None


def _choice(body: Body) -> RequestError | None:
    if body.get("tool_choice") is None or body.get("tools"):
        return None
    return RequestError("tool_choice: it may only be given together with tools")


CONDITIONS: tuple[Condition, ...] = (
    Condition("pairs", _pairs, "docs, tool use: a tool message answers a call of the assistant message before it"),
    Condition("choice", _choice, "cohere 7.3.1 v2/client.py, tool_choice: tools must be passed in"),
)


def _json_shape(extra: Body) -> JSONShape | None:
    if inside(extra, "response_format", "type") != "json_object":
        return None
    schema = inside(extra, "response_format", "json_schema")
    return JSONShape("response_format", {"type": "object"} if schema is None else schema)


SERVING = serving.Serving(
    own=serving.OwnServer("cohere", "command-a-03-2025", "cohere 7.3.1 types/chat_finish_reason.py"),
    base="",
    client='cohere.ClientV2(base_url="{base}", api_key="any")',
    says=SAYS,
    text=serving.text_in("content-delta", "delta", "message", "content", "text"),
    stop_place=serving.StopPlace(serving.in_delta, ("finish_reason",)),
    answer_id="{}",
    call_id="call_{}",
    names_model=False,
    calls_last=True,
    indexes=serving.index_under("index"),
    errors={},
    error_body=lambda refused: {"message": refused.message},
    stops=("stop_sequences",),
    stop_string_word="STOP_SEQUENCE",
    cannot=CANNOT,
    ends=ENDS,
    demands=Demands(MEMBERS, CONDITIONS),
    json_shape=_json_shape,
    near=re.compile(r"/v2/"),
)
