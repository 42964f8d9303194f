"""Requests are checked as the real servers check them: what each refuses, in its own words, and what it takes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from inspector.provider.checks import check, match_json, members_in_path
from inspector.provider.reply import error_body
from inspector.provider.scenarios import Intent, Story
from loop_core.formats import FORMATS
from loop_core.turn.history import hint_message
from loop_core.values import Message, Request, Role, TextPart, Tool, ToolCall, ToolResultPart
from loop_core.wire import decode, wire
from loop_core.wire.demands import RequestError
from loop_core.wire.servers import (
    CHAT,
    COHERE,
    COMPLETE,
    COMPLETIONS,
    CONVERSE,
    GEMINI,
    GENERATE,
    INVOKE,
    MESSAGES,
    OLLAMA,
    RESPONSES,
)
from tests.scenes.cut_forms import CUT_FORMS
from tests.scenes.provider import CALLING, reply
from tests.scenes.refusals import (
    ASK,
    BODIES,
    DROP,
    HI,
    INTERACTIONS,
    PARTS,
    PATHS,
    REFUSALS,
    TELL,
    TOOL,
    Refusal,
    body_of,
    call,
    model,
    result,
    user,
    without,
)
from tests.scenes.rows import each_row

KINDS = {MESSAGES: "invalid_request_error", GEMINI: "INVALID_ARGUMENT", CONVERSE: "ValidationException",
         INVOKE: "ValidationException", COMPLETE: "invalid_request_error"}


def looked_at(api: str, body: dict[str, Any], text: str = "Plain words.") -> None:
    """What the provider does before it answers."""
    check(api, body)
    match_json(wire(api).read_request(body, PATHS[api]), text, "text")


@each_row(("api", "row"), [(api, row) for api, rows in REFUSALS.items() for row in rows])
def test_a_request_is_refused_as_the_server_refuses_it(api: str, row: Refusal) -> None:
    with pytest.raises(RequestError) as raised:
        looked_at(api, body_of(api, row))
    why = raised.value
    assert why.status == 400
    told = json.loads(error_body(api, why.status, str(why), why.code, why.param))
    if api in (CHAT, RESPONSES, COMPLETIONS):
        error = told["error"]
        assert (error["type"], error["param"], error["code"]) == (
            "invalid_request_error", row.place or None, row.code)
        return
    message = told["error"] if api in (OLLAMA, GENERATE) else told.get("error", told)["message"]
    assert message.startswith(row.place)
    if api == INTERACTIONS:
        assert told["error"]["code"] == "invalid_request"
        return
    words = {MESSAGES: lambda: told["error"]["type"], GEMINI: lambda: told["error"]["status"],
             CONVERSE: lambda: told["__type"], OLLAMA: lambda: None, COHERE: lambda: None,
             INVOKE: lambda: told["__type"], COMPLETE: lambda: told["error"]["type"], GENERATE: lambda: None}
    assert words[api]() == KINDS.get(api)
    if api == GEMINI and ": " in row.place:
        (violation,) = told["error"]["details"][0]["fieldViolations"]
        assert violation["field"] == row.place.partition(": ")[0]


@pytest.mark.parametrize("api", FORMATS)
def test_every_format_has_its_rows(api: str) -> None:
    assert len(REFUSALS[api]) >= 8
    looked_at(api, BODIES[api])


@pytest.mark.parametrize(("api", "more"), [
    (CHAT, {"n": 1, "logprobs": False, "stop": None, "response_format": {"type": "text"}, "top_k": 5}),
    (CHAT, {"messages": [HI, call(), result(), HI], "tools": [TOOL], "tool_choice": "required"}),
    (CHAT, {"messages": [HI, {"role": "assistant", "content": "Half of"}], "tools": [TOOL],
            "tool_choice": {"type": "function", "function": {"name": "f"}}}),
    (CHAT, {"stream": True, "stream_options": {"include_usage": True}}),
    (RESPONSES, {"input": DROP, "previous_response_id": "resp_1"}),
    (RESPONSES, {"input": [{"type": "function_call_output", "call_id": "c1", "output": "x"}],
                 "previous_response_id": "resp_1"}),
    (RESPONSES, {"input": DROP, "prompt": {"id": "pmpt_1"}}),
    (RESPONSES, {"input": [{"type": "function_call_output", "call_id": "c1", "output": "x"}],
                 "conversation": "conv_1"}),
    (RESPONSES, {"input": [{"type": "item_reference", "id": "fc_1"},
                           {"type": "function_call_output", "call_id": "c1", "output": "x"}]}),
    (RESPONSES, {"tools": [{"type": "web_search"}], "include": ["reasoning.encrypted_content"], "top_logprobs": 0}),
    (RESPONSES, {"include": ["file_search_call.results", "web_search_call.results", "web_search_call.action.sources"]}),
    (RESPONSES, {"include": ["message.input_image.image_url", "computer_call_output.output.image_url",
                             "code_interpreter_call.outputs"]}),
    (CHAT, {"messages": [{"role": "system", "content": "Be brief."}, {"role": "developer", "content": "Now."}, HI,
                         {"role": "function", "name": "f", "content": "x"}]}),
    (COHERE, {"messages": [{"role": "system", "content": "Be brief."}, HI]}),
    ("gemini_interactions", {"input": ["Hi."]}),
    (MESSAGES, {"messages": [HI, {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f",
                                                                    "input": {}}]},
                             {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}]},
                             {"role": "user", "content": "And now?"}]}),
    (MESSAGES, {"thread": {"type": "continue", "previous_message_id": "msg_1"}, "tool_choice": {"type": "any"},
                "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}]}]}),
    (MESSAGES, {"messages": [HI, HI, {"role": "system", "content": "Be brief."}], "tools": [{"type": "bash_20250124",
                                                                                             "name": "bash"}]}),
    (GEMINI, {"generation_config": {"max_output_tokens": 5, "candidate_count": 1}, "system_instruction": {
        "parts": {"text": "Be brief."}}}),
    # Google's own client sends the pieces of a stream as contents of their own.
    (GEMINI, {"contents": [PARTS, model({"text": "I look"}), model(ASK), model({"text": ""}), user(TELL)]}),
    (MESSAGES, {"thread": {"type": "continue", "previous_message_id": "msg_1"}, "messages": []}),
    (GEMINI, {"contents": [{"parts": [{"text": "Hi."}]}]}),
    (OLLAMA, {"messages": [{"role": "narrator", "content": "x"}, {"role": "tool", "content": "x"}], "unknown": 1,
              "options": {"num_predict": -1, "mystery": True}, "keep_alive": "5m", "think": "high", "format": ""}),
    (OLLAMA, {"messages": DROP}),
    (COHERE, {"messages": [HI, {"role": "assistant", "tool_plan": "I look.", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}, {
            "role": "tool", "tool_call_id": "c1", "content": [{"type": "document", "document": {"data": {}}}]}],
              "tools": [TOOL], "tool_choice": "REQUIRED", "safety_mode": "OFF", "k": 0, "p": 0.75}),
])
def test_what_the_server_takes_is_taken(api: str, more: dict[str, Any]) -> None:
    looked_at(api, without({**BODIES[api], **more}))


MESSAGES_WHOLE: dict[str, Any] = {
    "system": "Be brief.", "metadata": {"user_id": "u"}, "stop_sequences": ["x"], "temperature": 1, "top_k": 5,
    "top_p": 0.9, "thinking": {"type": "disabled"}, "tools": [], "tool_choice": {"type": "auto"}, "stream": True,
    "service_tier": "auto", "inference_geo": "us", "container": "c1", "cache_control": {"type": "ephemeral"},
    "output_config": {"effort": "low"}, "diagnostics": {}, "speed": "fast", "betas": ["b"], "mcp_servers": [],
    "context_management": {"edits": []}, "compaction": {}, "fallbacks": [], "fallback_credit_token": "t",
    "billing_policy": "p", "user_profile_id": "p1", "workspace_id": "w1",
    "output_format": {"type": "json_schema", "schema": {"type": "object"}},
    "anthropic_version": "vertex-2023-10-16", "anthropic_beta": ["b"],  # Vertex and Bedrock
}
"""Every member that Anthropic and the clouds document for a request, beside those that no request can be without."""
GEMINI_WHOLE: dict[str, Any] = {
    "contents": [PARTS], "tools": [], "toolConfig": {}, "safetySettings": [], "systemInstruction": {"parts": []},
    "cachedContent": "cachedContents/c", "model": "models/m", "labels": {}, "store": False, "serviceTier": "standard",
    "continuationToken": "dG9r", "modelArmorConfig": {}, "outputConfig": {},
    "generationConfig": {
        "temperature": 1, "topP": 0.9, "topK": 5, "candidateCount": 1, "maxOutputTokens": 9, "stopSequences": ["x"],
        "responseLogprobs": False, "logprobs": None, "presencePenalty": 0, "frequencyPenalty": 0, "seed": 1,
        "responseMimeType": "application/json", "responseSchema": {}, "responseJsonSchema": {},
        "_responseJsonSchema": {},
        "responseFormat": {}, "routingConfig": {}, "modelSelectionConfig": {}, "responseModalities": ["TEXT"],
        "mediaResolution": "MEDIA_RESOLUTION_LOW", "speechConfig": {}, "audioTimestamp": True, "thinkingConfig": {},
        "imageConfig": {}, "enableEnhancedCivicAnswers": False, "enableAffectiveDialog": False,
        "audioTranscriptionConfig": {}, "translationConfig": {}, "streamFunctionCallArguments": False,
    },
}


def snake_case(value: Any) -> Any:
    """The body with its members spelled as in protocol buffers."""
    if not isinstance(value, dict):
        return value
    return {re.sub("[A-Z]", lambda capital: "_" + capital[0].lower(), name): snake_case(inner)
            for name, inner in value.items()}


@pytest.mark.parametrize(("api", "body"), [
    (MESSAGES, {**BODIES[MESSAGES], **MESSAGES_WHOLE}),
    (MESSAGES, {**BODIES[MESSAGES], "thread": {"type": "continue", "previous_message_id": "m"}}),
    (GEMINI, GEMINI_WHOLE), (GEMINI, snake_case(GEMINI_WHOLE)),
])
def test_a_server_that_refuses_unknown_members_knows_its_own(api: str, body: dict[str, Any]) -> None:
    check(api, body)
    with pytest.raises(RequestError, match="unknown field"):
        check(api, {**body, "mystery": 1})


@pytest.mark.parametrize(("api", "kinds"), [
    (CHAT, "invalid_request_error invalid_request_error requests server_error server_error server_error"),
    (MESSAGES, "invalid_request_error not_found_error rate_limit_error api_error api_error overloaded_error"),
    (GEMINI, "INVALID_ARGUMENT NOT_FOUND RESOURCE_EXHAUSTED INTERNAL UNAVAILABLE UNAVAILABLE"),
    (INTERACTIONS, "invalid_request not_found resource_exhausted internal unavailable unavailable"),
    (CONVERSE, "ValidationException ResourceNotFoundException ThrottlingException InternalServerException "
               "ServiceUnavailableException ServiceUnavailableException"),
])
def test_an_error_has_the_type_that_goes_with_its_status(api: str, kinds: str) -> None:
    told = [json.loads(error_body(api, status, "Not today.")) for status in (400, 404, 429, 500, 503, 529)]
    field = {GEMINI: "status", INTERACTIONS: "code", CONVERSE: "__type"}.get(api, "type")
    assert [body.get("error", body)[field] for body in told] == kinds.split()


@pytest.mark.parametrize("path", ["/openai/deployments/gpt/chat/completions?api-version=1", "/v1/agents/completions"])
def test_a_path_that_names_the_model_spares_it(path: str) -> None:
    check(CHAT, {"messages": [HI]}, optional=members_in_path(path))
    assert members_in_path("/v1/chat/completions") == frozenset()


# -- the place of our own loop's requests ----------------------------------------------------------------------------

CALL = ToolCall("c1", "count", '{"to": 10}')
STORY = Story("count", "x", (
    Intent(text="One, two, three, four."), Intent("", "I count.", (CALL,)), Intent(text="Ten.")))
USER = Message(Role.USER, (TextPart("Go."),))


@pytest.mark.parametrize("api", FORMATS)
@pytest.mark.parametrize("history", [
    (USER, Message(Role.ASSISTANT, (TextPart("One, two,"),))),
    (USER, Message(Role.ASSISTANT, (TextPart("One, two,"),)), hint_message()),
    (USER, Message(Role.ASSISTANT, (TextPart("I count."), CALL)), Message(Role.TOOL, (
        ToolResultPart("c1", "count", "done"),)), USER),
])
def test_what_our_own_loop_sends_is_accepted(api: str, history: tuple[Message, ...]) -> None:
    if wire(api).no_tools and any(message.tool_calls for message in history):
        return
    tools = () if wire(api).no_tools else (Tool("count", {"type": "object"}),)
    for choice in (None,) if wire(api).no_tools else (None, "tool:count") if api != OLLAMA else (None,):
        asked = Request(api, history, "m", tools, choice, max_tokens=20)
        looked_at(api, dict(wire(api).encode_request(asked)))


@pytest.mark.parametrize("api", CALLING)
@pytest.mark.parametrize("form", CUT_FORMS)
def test_what_a_client_keeps_of_a_cut_call_is_accepted(api: str, form: str | None) -> None:
    """As a text where arguments are one, however little of it is JSON; else as an object, or an empty one."""
    texts = api in (CHAT, RESPONSES, COHERE)
    kept = (form or "") if texts or (form or "").endswith("}") else "{}"
    said = Message(Role.ASSISTANT, (TextPart("I count."), ToolCall("c1", "count", kept)))
    history = (USER, said, Message(Role.TOOL, (ToolResultPart("c1", "count", "Error: the arguments were cut."),)))
    asked = Request(api, history, "m", (Tool("count", {"type": "object"}),), max_tokens=20)
    looked_at(api, dict(wire(api).encode_request(asked)))


# -- strings that end an answer --------------------------------------------------------------------------------------

ENDING: dict[str, dict[str, Any]] = {
    CHAT: {"stop": "three"},
    MESSAGES: {"stop_sequences": ["nine", "three"]},
    GEMINI: {"generationConfig": {"stopSequences": ["three"]}},
    CONVERSE: {"inferenceConfig": {"stopSequences": ["three"]}},
    OLLAMA: {"options": {"stop": ["three"]}},
    COHERE: {"stop_sequences": ["nine", "three"]},
    INVOKE: {"stop_sequences": ["nine", "three"]},
    COMPLETIONS: {"stop": "three"}, COMPLETE: {"stop_sequences": ["three"]}, GENERATE: {"options": {"stop": ["three"]}},
    INTERACTIONS: {"generation_config": {"stop_sequences": ["three"]}},
}
WORDS = {CHAT: "stop", MESSAGES: "stop_sequence", GEMINI: "STOP", CONVERSE: "stop_sequence", OLLAMA: "stop",
         INTERACTIONS: "completed", COHERE: "STOP_SEQUENCE", INVOKE: "stop_sequence", COMPLETIONS: "stop",
         COMPLETE: "stop_sequence", GENERATE: "stop"}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("api", ENDING)
def test_a_stop_string_ends_the_answer_before_it(api: str, stream: bool) -> None:
    body = {**BODIES[api], **ENDING[api]}
    check(api, body)
    asked = wire(api).read_request(body, PATHS[api])
    came = reply(STORY, asked, stream)
    raw = b"".join(came.frames)
    answer = decode(api, raw)
    assert answer.text == "One, two, "
    assert answer.stop_reason.raw == WORDS[api]
    if api == COMPLETE:  # it counts no tokens, and names the string
        assert answer.native["stop"] == "three"
    else:
        assert answer.usage is not None
        assert answer.usage.output_tokens == 3  # ten characters
    if api == MESSAGES:
        assert b'"stop_sequence":"three"' in raw
    longer = {**BODIES[api], **json.loads(json.dumps(ENDING[api]).replace("three", "five"))}
    whole = decode(api, b"".join(reply(STORY, wire(api).read_request(longer, PATHS[api]), stream).frames))
    assert whole.text == STORY.answers[0].text
    assert whole.stop_reason.raw != "stop_sequence" or (api == COMPLETE and not whole.native)


@pytest.mark.parametrize("api", [api for api in FORMATS if api != RESPONSES])
def test_the_budget_ends_an_answer_before_a_later_stop_string(api: str) -> None:
    asked = wire(api).read_request({**BODIES[api], **ENDING[api]}, PATHS[api])
    asked = Request(api, asked.messages, "m", max_tokens=1, extra=asked.extra)
    answer = decode(api, b"".join(reply(STORY, asked, False).frames))
    assert answer.text == "One,"
    assert answer.stop_reason.raw != WORDS[api]


# -- JSON of a shape -------------------------------------------------------------------------------------------------

TEAM = {"type": "object", "properties": {"team": {"type": "string"}}, "required": ["team"]}
SHAPED: dict[str, dict[str, Any]] = {
    CHAT: {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": TEAM}}},
    RESPONSES: {"text": {"format": {"type": "json_schema", "name": "s", "schema": TEAM}}},
    MESSAGES: {"output_config": {"format": {"type": "json_schema", "schema": TEAM}}},
    GEMINI: {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": TEAM}},
    CONVERSE: {"outputConfig": {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": {
        "schema": json.dumps(TEAM)}}}}},
    OLLAMA: {"format": TEAM},
    COHERE: {"response_format": {"type": "json_object", "json_schema": TEAM}},
    GENERATE: {"format": TEAM},
    INVOKE: {"output_config": {"format": {"type": "json_schema", "schema": TEAM}}},
    INTERACTIONS: {"response_format": {"type": "text", "mime_type": "application/json", "schema": TEAM}},
}


@pytest.mark.parametrize("api", SHAPED)
def test_a_text_that_is_the_json_that_is_asked_for_is_sent(api: str) -> None:
    body = {**BODIES[api], **SHAPED[api]}
    looked_at(api, body, '{"team": "platform"}')
    looked_at(api, body, "")  # an answer of calls alone
    for text, why in (('{"crew": 1}', "that the schema does not permit"), ('{"team": "plat', "not JSON")):
        with pytest.raises(RequestError, match=why):
            looked_at(api, body, text)


def test_json_of_any_shape() -> None:
    asked = {CHAT: {"response_format": {"type": "json_object"}, "messages": [{"role": "user", "content": "json"}]},
             RESPONSES: {"text": {"format": {"type": "json_object"}}},
             GEMINI: {"generationConfig": {"responseMimeType": "application/json"}}, OLLAMA: {"format": "json"}}
    for api, more in asked.items():
        looked_at(api, {**BODIES[api], **more}, "{}")
    openapi = {"responseMimeType": "application/json", "responseSchema": {"type": "OBJECT", "required": ["team"]}}
    with pytest.raises(RequestError, match="does not permit"):
        looked_at(GEMINI, {**BODIES[GEMINI], "generationConfig": openapi}, "{}")
