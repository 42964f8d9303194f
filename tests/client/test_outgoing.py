"""The next request of a turn, and how one server wants it: each way of continuing, in every format that has it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loop_core.client.address import Server
from loop_core.client.outgoing import ability, body_of, http_request, request_for, with_reduced_tools
from loop_core.errors import CallerError, EncodeError
from loop_core.judge.classify import judge
from loop_core.turn.continuation import Method
from loop_core.turn.history import Ability
from loop_core.turn.machine import begin, step
from loop_core.turn.state import ProviderResponse, RequestPlace, RunTools, Send, Tick, ToolResults, Turn
from loop_core.values import (
    CallKind,
    ChatResponse,
    Message,
    Request,
    Role,
    Stop,
    StopReason,
    TextPart,
    Tool,
    ToolCall,
    ToolResultPart,
)
from loop_core.wire import wire
from loop_core.wire.format import Prefill
from loop_core.wire.profiles import PROFILES, for_model, profile_named
from tests.scenes.provider import CALLING

ASK = Message(Role.USER, (TextPart("Tell me."),))


def first_send(turn: Turn, effects: tuple[Any, ...]) -> Send:
    assert isinstance(effects[0], Send)
    return effects[0]


def turn_after(turn: Turn, text: str | None, stop: Stop, *calls: ToolCall, **more: Any) -> tuple[Turn, tuple[Any, ...]]:
    """The turn after an answer, moved until it asks for something."""
    parts = ((TextPart(text),) if text else ()) + calls
    response = ChatResponse(turn.request.api, parts, StopReason(stop, stop.value, more.pop("detail", None)), **more)
    turn, effects = step(turn, ProviderResponse(response, judge(response, turn.request, PROFILES["generic"])))
    while not effects:
        turn, effects = step(turn, Tick())
    return turn, effects


def start(api: str, allows: Ability, **more: Any) -> Turn:
    request = Request(api, (ASK,), "m", max_tokens=100, extra={"temperature": 0}, **more)
    return begin("t", request, ability=allows)[0]


def test_the_first_request_is_the_request() -> None:
    turn, effects = begin("t", Request("openai_chat", (ASK,), "m", max_tokens=100, tool_choice="auto"))
    request = request_for(turn, first_send(turn, effects))
    assert (request.messages, request.max_tokens, request.tool_choice) == ((ASK,), 100, "auto")


@pytest.mark.parametrize(("profile", "signed"), [
    ("gemini", True), ("vertex", True), ("github_copilot", True), ("openrouter", True), ("vercel_gateway", True),
    ("litellm", True), ("portkey", True), ("generic", True), ("openai", False), ("azure_openai", False),
    ("mistral", False), ("vllm", False),
])
def test_a_thought_signature_goes_only_where_gemini_may_be(profile: str, signed: bool) -> None:
    call = ToolCall("c1", "look", "{}", closed=True, signature="c2ln")
    request = Request("openai_chat", (ASK, Message(Role.ASSISTANT, (call,)),
                                      Message(Role.TOOL, (ToolResultPart("c1", "look", "ok"),))), "m")
    (written,) = body_of(request, PROFILES[profile])["messages"][1]["tool_calls"]
    assert written.get("extra_content") == ({"google": {"thought_signature": "c2ln"}} if signed else None)
    assert written["function"] == {"name": "look", "arguments": "{}"}


def test_a_prefill_ends_the_history_and_never_stays_in_it() -> None:
    turn, effects = turn_after(start("anthropic_messages", Ability(prefill=True)), "One, two \n", Stop.MAX_TOKENS)
    request = request_for(turn, first_send(turn, effects))
    assert request.messages == (ASK, Message(Role.ASSISTANT, (TextPart("One, two"),)))
    assert request.extra == {"temperature": 0}
    turn, effects = turn_after(turn, "three", Stop.MAX_TOKENS)
    assert request_for(turn, first_send(turn, effects)).messages == (
        ASK, Message(Role.ASSISTANT, (TextPart("One, two \nthree"),)))


@pytest.mark.parametrize(("api", "role"), [
    ("openai_chat", Role.SYSTEM), ("openai_responses", Role.SYSTEM), ("ollama_chat", Role.SYSTEM),
    ("anthropic_messages", Role.USER), ("gemini_generate", Role.USER), ("bedrock_converse", Role.USER),
])
def test_without_prefill_a_message_asks_to_go_on(api: str, role: Role) -> None:
    """System-side where the format takes it (ZeroClaw RFI 2309); else the conversation has to end with the user."""
    turn, effects = turn_after(start(api, ability(PROFILES["generic"], api)), "One, two", Stop.MAX_TOKENS)
    send = first_send(turn, effects)
    messages = request_for(turn, send).messages
    assert messages[:2] == (ASK, Message(Role.ASSISTANT, (TextPart("One, two"),)))
    assert messages[2].role is role
    assert "One, two" in messages[2].text if send.method is Method.ANCHOR else "Continue exactly" in messages[2].text


def test_a_history_only_grows() -> None:
    turn, effects = turn_after(start("openai_chat", Ability()), "One, ", Stop.MAX_TOKENS)
    first = request_for(turn, first_send(turn, effects)).messages
    turn, effects = turn_after(turn, "two, ", Stop.MAX_TOKENS)
    assert request_for(turn, first_send(turn, effects)).messages[: len(first)] == first


def test_nothing_visible_is_asked_again_with_twice_the_cap() -> None:
    turn, effects = turn_after(start("openai_chat", Ability()), None, Stop.MAX_TOKENS)
    request = request_for(turn, first_send(turn, effects))
    assert (request.messages, request.max_tokens) == ((ASK,), 200)


def test_a_repair_forces_the_call_and_doubles_the_cap_that_cut_it() -> None:
    turn = start("openai_chat", Ability(), tools=(Tool("w"),))
    turn, effects = turn_after(turn, "So:", Stop.MAX_TOKENS, ToolCall("c", "w", '{"a'))
    request = request_for(turn, first_send(turn, effects))
    assert (request.tool_choice, request.max_tokens) == ("tool:w", 200)
    assert request.messages[1] == Message(Role.ASSISTANT, (TextPart("So:"),))
    assert "w" in request.messages[2].text


def test_results_go_back_behind_their_calls() -> None:
    call = ToolCall("c", "w", "{}", closed=True)
    turn, effects = turn_after(start("openai_chat", Ability(), tools=(Tool("w", {"type": "object"}),)), None,
                               Stop.TOOL_CALL, call)
    assert isinstance(effects[0], RunTools)
    turn, effects = step(turn, ToolResults((ToolResultPart("c", "w", "sun"),)))
    assert request_for(turn, first_send(turn, effects)).messages == (
        ASK, Message(Role.ASSISTANT, (call,)), Message(Role.TOOL, (ToolResultPart("c", "w", "sun"),)))


@pytest.mark.parametrize(("asked", "sent_on"), [
    ({}, "c_1"),
    ({"container": {"skills": [{"skill_id": "pdf"}]}}, {"id": "c_1", "skills": [{"skill_id": "pdf"}]}),
    ({"container": {"id": "c_0", "skills": []}}, {"id": "c_0", "skills": []}),
    ({"container": {"id": None, "skills": []}}, {"id": "c_1", "skills": []}),
    ({"container": "c_0"}, "c_0"),
])
def test_the_container_of_a_paused_answer_is_named_again(asked: dict[str, Any], sent_on: Any) -> None:
    request = Request("anthropic_messages", (ASK,), "m", max_tokens=100, extra=asked)
    turn, effects = turn_after(begin("t", request)[0], "Searching", Stop.PAUSED, detail="echo",
                               native={"container.id": "c_1", "container.expires_at": "2026"})
    assert body_of(request_for(turn, first_send(turn, effects)), PROFILES["anthropic"])["container"] == sent_on
    turn, effects = turn_after(begin("t", request)[0], "Searching", Stop.PAUSED, detail="echo")
    assert request_for(turn, first_send(turn, effects)).extra == asked


def test_a_paused_answer_is_echoed_and_a_token_is_sent_with_the_same_request() -> None:
    turn, effects = turn_after(start("anthropic_messages", Ability()), "Searching", Stop.PAUSED, detail="echo")
    assert request_for(turn, first_send(turn, effects)).messages == (ASK,
                                                                     Message(Role.ASSISTANT, (TextPart("Searching"),)))
    turn, effects = turn_after(start("gemini_generate", Ability()), "So", Stop.PAUSED, detail="token",
                               continuation_token="dG9r")
    request = request_for(turn, first_send(turn, effects))
    assert (request.messages, request.continuation_token) == ((ASK,), "dG9r")
    assert body_of(request, PROFILES["gemini"])["continuationToken"] == "dG9r"


def chain(ident: str | None = "resp_1", previous: str | None = None, **extra: Any) -> tuple[Turn, Send]:
    """A request of Responses whose answer was cut, and the continuation that is to be asked for."""
    request = Request("openai_responses", (ASK,), "m", max_tokens=100, previous_id=previous, extra=extra)
    turn, _ = begin("t", request)
    turn, effects = turn_after(turn, "One, two", Stop.MAX_TOKENS, id=ident)
    return turn, first_send(turn, effects)


@pytest.mark.parametrize(("previous", "extra"), [("resp_0", {}), (None, {"store": True}), ("resp_0", {"store": True})])
def test_what_the_server_keeps_is_named_by_id_and_not_sent_again(previous: str | None, extra: dict[str, Any]) -> None:
    request = request_for(*chain(previous=previous, **extra))
    assert request.previous_id == "resp_1"
    assert [message.role for message in request.messages] == [Role.SYSTEM]
    body = body_of(request, PROFILES["openai"])
    assert [item["role"] for item in body["input"]] == ["system"], "a hint alone is asked, and no instruction"


def test_what_the_server_does_not_keep_is_sent_again() -> None:
    for extra in ({}, {"store": False}, {"store": None}):
        request = request_for(*chain(**extra))
        assert request.previous_id is None
        assert [message.role for message in request.messages] == [Role.USER, Role.ASSISTANT, Role.SYSTEM]


@pytest.mark.parametrize(("ident", "extra", "why"), [
    (None, {}, "has no id"), ("resp_1", {"store": False}, "store: false"),
])
def test_a_chain_that_cannot_be_gone_on_with_says_why(ident: str | None, extra: dict[str, Any], why: str) -> None:
    with pytest.raises(CallerError, match=why):
        request_for(*chain(ident, "resp_0", **extra))


@pytest.mark.parametrize(("method", "place"), [
    (Method.HINT, RequestPlace.CONTINUATION), (Method.ANCHOR, RequestPlace.CONTINUATION),
    (Method.AGAIN, RequestPlace.CONTINUATION),
    (Method.REPAIR, RequestPlace.REPAIR),
])
def test_each_way_of_going_on_names_the_last_response_and_leaves_its_text_out(method: Method,
                                                                              place: RequestPlace) -> None:
    turn, _ = chain(previous="resp_0")
    added = (Message(Role.ASSISTANT, (TextPart("One, two"),)), Message(Role.SYSTEM, (TextPart("Go on."),)))
    request = request_for(turn, Send(place, 1, method, added, 100))
    assert (request.previous_id, [message.text for message in request.messages]) == ("resp_1", ["Go on."])


def test_words_that_are_asked_for_once_more_go_on_from_the_answer_that_left_them_out() -> None:
    turn, _ = chain(previous="resp_0")
    turn, effects = turn_after(turn, "Sure! Here is the rest: three, four.", Stop.END_TURN, id="resp_2")
    send = first_send(turn, effects)
    assert send.method is Method.AGAIN
    request = request_for(turn, send)
    assert request.previous_id == "resp_2"
    assert [message.role for message in request.messages] == [Role.SYSTEM]


def test_a_conversation_of_the_server_gets_what_is_new_and_no_id() -> None:
    request = request_for(*chain(conversation="conv_1"))
    assert (request.previous_id, request.extra) == (None, {"conversation": "conv_1"})
    assert [message.role for message in request.messages] == [Role.SYSTEM]
    turn, _ = begin("t", replace(request, messages=(ASK,), max_tokens=9))
    turn, effects = turn_after(turn, None, Stop.MAX_TOKENS, id="resp_1")
    with pytest.raises(CallerError, match="twice"):
        request_for(turn, first_send(turn, effects))


def test_a_chained_request_that_brought_nothing_is_sent_again_from_where_the_turn_began() -> None:
    turn, _ = chain(previous="resp_0")
    turn, effects = turn_after(turn, None, Stop.MAX_TOKENS, id="resp_2")
    request = request_for(turn, first_send(turn, effects))
    assert request.previous_id == "resp_0"
    assert [message.role for message in request.messages] == [Role.USER, Role.ASSISTANT, Role.SYSTEM]


def test_results_of_a_free_form_tool_are_told_by_its_declaration() -> None:
    tool = Tool("sh", kind=CallKind.CUSTOM)
    request = Request("openai_responses", (ASK,), "m", (tool,), max_tokens=9, extra={"store": True})
    turn, effects = turn_after(begin("t", request)[0], None, Stop.TOOL_CALL,
                               ToolCall("c", "sh", "ls", closed=True, kind=CallKind.CUSTOM), id="resp_1")
    assert isinstance(effects[0], RunTools)
    turn, effects = step(turn, ToolResults((ToolResultPart("c", "sh", "a.txt"),)))
    assert body_of(request_for(turn, first_send(turn, effects)), PROFILES["openai"])["input"] == [
        {"type": "custom_tool_call_output", "call_id": "c", "output": "a.txt"}]


def test_a_token_that_never_came_cannot_be_sent() -> None:
    turn = start("gemini_generate", Ability())
    with pytest.raises(CallerError, match="held none"):
        request_for(turn, Send(RequestPlace.RESUME, 1, Method.TOKEN))


# -- what a server or a model allows ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("api", "profile", "model", "prefills"), [
    ("anthropic_messages", "anthropic", "claude-3-5-sonnet-20241022", True),
    ("anthropic_messages", "anthropic", "claude-haiku-4-5-20251001", True),
    ("anthropic_messages", "anthropic", "claude-opus-4-5", True),
    ("anthropic_messages", "anthropic", "claude-sonnet-4-6", False),
    ("anthropic_messages", "anthropic", "claude-opus-4-8", False),
    ("anthropic_messages", "anthropic", "claude-sonnet-5-20260601", False),
    ("bedrock_converse", "bedrock", "us.anthropic.claude-3-7-sonnet-20250219-v1:0", True),
    ("bedrock_converse", "bedrock", "us.anthropic.claude-opus-4-6-v1:0", False),
    ("bedrock_converse", "bedrock", "amazon.nova-lite-v1:0", False),
    ("openai_chat", "openrouter", "anthropic/claude-3-5-haiku", True),
    ("openai_chat", "openrouter", "anthropic/claude-sonnet-4-6", False),
    ("openai_chat", "openai", "gpt-4o", False),
    ("openai_chat", "mistral", "mistral-large", True),
    ("openai_chat", "deepseek", "deepseek-chat", True),
    ("openai_chat", "moonshot", "kimi-k2", True),
    ("openai_chat", "vllm", "any", True),
    ("openai_chat", "llama_cpp", "any", True),
    ("openai_responses", "llama_cpp", "any", False),
    ("anthropic_messages", "moonshot", "kimi-k2", False),
    ("gemini_generate", "gemini", "gemini-3-pro", False),
    ("ollama_chat", "ollama", "llama3.2", False),
    ("ollama_generate", "ollama", "llama3.2", False),
    ("openai_completions", "vllm", "any", True),
    ("openai_completions", "openai", "gpt-3.5-turbo-instruct", True),
    ("anthropic_complete", "anthropic", "claude-2.1", True),
])
def test_a_prefill_is_asked_for_only_where_it_is_taken(api: str, profile: str, model: str, prefills: bool) -> None:
    """Continuation notes, part B: Claude from 4.6 on answers 400 to a conversation that ends with the assistant."""
    allows = ability(profile_named(profile, model).profile, api)
    assert allows.prefill is prefills
    turn, effects = turn_after(start(api, allows), "One, two", Stop.MAX_TOKENS)
    request = request_for(turn, first_send(turn, effects))
    assert (request.messages[-1].role is Role.ASSISTANT) is prefills


@pytest.mark.parametrize(("profile", "message", "body"), [
    ("mistral", {"prefix": True}, {}),
    ("deepseek", {"prefix": True}, {}),
    ("moonshot", {"partial": True}, {}),
    ("vllm", {}, {"continue_final_message": True, "add_generation_prompt": False}),
    ("llama_cpp", {}, {}),
])
def test_each_server_is_told_of_a_prefill_in_its_own_way(
    profile: str, message: dict[str, Any], body: dict[str, Any]
) -> None:
    said = Message(Role.ASSISTANT, (TextPart("One"),))
    request = Request("openai_chat", (ASK, said), "m", max_tokens=5)
    made = body_of(request, PROFILES[profile], Method.PREFILL)
    assert made == {"model": "m", "max_tokens": 5, **body, "messages": [
        {"role": "user", "content": "Tell me."}, {"role": "assistant", "content": "One", **message}]}
    plain = body_of(request, PROFILES[profile])
    assert plain["messages"][-1] == {"role": "assistant", "content": "One"}


@pytest.mark.parametrize(("profile", "field"), [
    ("openai", "max_completion_tokens"), ("azure_openai", "max_completion_tokens"), ("generic", "max_tokens"),
])
def test_the_cap_is_named_as_the_server_wants_it(profile: str, field: str) -> None:
    body = body_of(Request("openai_chat", (ASK,), "m", max_tokens=5), PROFILES[profile])
    assert {key for key in body if key.startswith("max")} == {field}
    assert body[field] == 5


@pytest.mark.parametrize("api", CALLING)
def test_every_way_of_continuing_that_a_profile_knows_fits_its_format(api: str) -> None:
    """A profile may serve several formats: a prefill of one is never asked for in another."""
    for profile in PROFILES.values():
        for prefill in Prefill:
            allows = ability(for_model(profile, None)._replace(prefill=prefill), api)
            assert allows.prefill is (prefill is not Prefill.NONE and prefill in wire(api).prefills)


def test_schemas_are_reduced_when_asked() -> None:
    tool = Tool("t", {"type": "object", "properties": {"a": {"const": 1}}})
    assert with_reduced_tools(Request("gemini_generate", tools=(tool,))).tools[0].schema == {
        "type": "object", "properties": {"a": {"enum": [1], "type": "integer"}}}
    assert with_reduced_tools(Request("openai_chat", tools=(tool,))).tools == (tool,)


@pytest.mark.parametrize(("profile", "asks"), [("openai", True), ("generic", True), ("vllm", True), ("mistral", False)])
def test_a_streamed_chat_asks_for_its_usage_where_the_server_takes_that(profile: str, asks: bool) -> None:
    request = Request("openai_chat", (ASK,), "m", stream=True)
    assert body_of(request, PROFILES[profile]).get("stream_options") == ({"include_usage": True} if asks else None)
    assert "stream_options" not in body_of(replace(request, stream=False), PROFILES[profile])
    own = replace(request, extra={"stream_options": {"include_usage": False}})
    assert body_of(own, PROFILES[profile])["stream_options"] == {"include_usage": False}


def test_a_kept_interaction_is_gone_on_from_by_its_id() -> None:
    asked = Request("gemini_interactions", (ASK,), "m", max_tokens=100, extra={"store": True})
    turn, effects = turn_after(begin("t", asked)[0], "One, ", Stop.MAX_TOKENS, id="v1_1")
    request = request_for(turn, first_send(turn, effects))
    assert request.previous_id == "v1_1"
    assert ASK not in request.messages


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(("value", "why"), [
    (object(), "not JSON serializable"), (b"x", "not JSON serializable"), (CIRCLE, "nested too deeply or holds itself"),
    (float("nan"), "NaN is not a JSON number"),
    ({"top_p": float("-inf")}, "-Infinity is not a JSON number"), (10**5000, "digits"),
], ids=["object", "bytes", "circle", "nan", "infinite", "digits"])
def test_what_is_no_json_is_refused_before_anything_is_sent(value: Any, why: str) -> None:
    asked = Request("openai_chat", (ASK,), "m", stream=True, extra={"user": value})
    turn, effects = begin("t", asked)
    with pytest.raises(EncodeError, match=why):
        http_request(Server("openai_chat", "http://127.0.0.1:9"), turn, first_send(turn, effects))


def test_a_text_that_speaks_of_no_numbers_is_sent() -> None:
    asked = Request("openai_chat", (Message(Role.USER, (TextPart("Is NaN below Infinity?"),)),), "m", stream=True)
    turn, effects = begin("t", asked)
    assert b"Is NaN below Infinity?" in http_request(Server("openai_chat"), turn, first_send(turn, effects)).content
