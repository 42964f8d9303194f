"""What the servers send, checked in the bytes by hand: words, quirks, and what is left of a cut call."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from inspector.provider.dialect_rows import DialectRow, rows, url
from inspector.provider.dialects import dialects_named
from inspector.provider.scenarios import SCENARIOS, cut, tokens
from loop_core.errors import CallerError
from loop_core.values import ReasoningPart, TextPart, ToolCall
from loop_core.wire.eventstream import EventStream

PREFIX = '{"path": "report.md", "content": "# Queue\\n\\nSaturated from 09:14 to 09:33. The second'
"""32 tokens are 128 characters: 8 tokens of text, 10 characters of a name, and these 86."""


def row(name: str, scenario: str = "call-cut", budget: int | None = None) -> DialectRow:
    (found,) = [each for each in rows(SCENARIOS[scenario], budget, dialects_named((name,))) if each.name == name]
    assert isinstance(found, DialectRow)
    return found


def events(name: str, scenario: str = "call-cut", budget: int | None = None) -> list[dict[str, Any]]:
    lines = b"".join(row(name, scenario, budget).pieces).decode().splitlines()
    return [json.loads(line[5:]) for line in lines if line.startswith("data:") and line[5:].strip() != "[DONE]"]


def whole(name: str, scenario: str = "call-cut", budget: int | None = None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(b"".join(row(name, scenario, budget).pieces))
    return found


def call_deltas(name: str, scenario: str = "call-cut") -> list[dict[str, Any]]:
    return [call for event in events(name, scenario) for choice in event["choices"]
            for call in choice["delta"].get("tool_calls", ())]


def finish(found: list[dict[str, Any]]) -> list[str]:
    return [choice["finish_reason"] for event in found for choice in event.get("choices", ())
            if choice.get("finish_reason")]


# -- the cut ---------------------------------------------------------------------------------------------------------


def test_a_budget_ends_at_a_character() -> None:
    parts = SCENARIOS["call-cut"].parts
    assert parts[0] == TextPart("I write the report to a file.")  # 29 characters: 8 tokens
    made = cut(parts, 32)
    assert made.parts == (parts[0], ToolCall(None, "write_file", PREFIX))
    assert (made.whole, made.tokens, made.thinking) == (False, 32, 0)
    assert made.cut_call is parts[1]


@pytest.mark.parametrize(("budget", "kept"), [
    (2, 1),  # 8 characters of text
    (8, 1),  # the text, and nothing more
    (10, 1),  # 8 characters do not hold a name of 10
    (11, 2),  # the name and 2 characters of the arguments
])
def test_a_name_comes_whole_or_not_at_all(budget: int, kept: int) -> None:
    made = cut(SCENARIOS["call-cut"].parts, budget)
    assert len(made.parts) == kept
    assert (made.cut_call is not None) is (kept == 2)
    assert made.tokens == budget


def test_an_answer_that_fits_is_whole() -> None:
    parts = (ReasoningPart("a" * 8), TextPart("b" * 9))
    assert tokens("b" * 9) == 3
    assert cut(parts, 5).whole
    assert not cut(parts, 4).whole
    assert cut(parts, 4).parts == (ReasoningPart("a" * 8), TextPart("b" * 8))
    assert cut(parts, 3, free_thinking=True).whole
    assert cut(parts, 2, free_thinking=True).parts == (ReasoningPart("a" * 8), TextPart("b" * 8))
    assert cut(parts, None).whole


# -- chat completions ------------------------------------------------------------------------------------------------


def test_mimo_ends_with_choices_and_no_reason() -> None:
    found = events("openai_chat/mimo")
    assert finish(found) == []
    assert found[-1]["choices"] == []
    assert found[-1]["usage"]["completion_tokens"] == 32
    assert b"[DONE]" not in b"".join(row("openai_chat/mimo").pieces)
    assert finish(events("openai_chat/mimo", "call-done")) == ["tool_calls"]


@pytest.mark.parametrize("name", ["openai_chat/vllm", "openai_chat/openrouter", "openai_chat/generic+router"])
def test_the_lie_stands_over_a_prefix(name: str) -> None:
    assert finish(events(name)) == ["tool_calls"]
    assert "".join(call["function"].get("arguments", "") for call in call_deltas(name)) == PREFIX


def test_the_native_word_stands_beside_the_routers() -> None:
    ends = [choice for event in events("openai_chat/openrouter") for choice in event["choices"]
            if choice.get("finish_reason")]
    assert [end["native_finish_reason"] for end in ends] == ["length"]
    text = [choice for event in events("openai_chat/openrouter", "text-cut") for choice in event["choices"]
            if choice.get("finish_reason")]
    assert [(end["finish_reason"], end["native_finish_reason"]) for end in text] == [("stop", "MAX_TOKENS")]


def test_an_emptied_call_has_the_arguments_of_no_call() -> None:
    assert "".join(call["function"]["arguments"] for call in call_deltas("openai_chat/vllm+empty")) == "{}"


def test_markup_is_never_closed() -> None:
    said = whole("openai_chat/vllm+markup")["choices"][0]["message"]
    assert said["content"].endswith(f'\n<tool_call>\n{{"name": "write_file", "arguments": {PREFIX}')
    assert "</tool_call>" not in said["content"]
    assert "tool_calls" not in said


@pytest.mark.parametrize("name", ["openai_chat/litellm", "openai_chat/ollama", "openai_chat/gemini"])
def test_a_dropped_call_leaves_nothing(name: str) -> None:
    assert call_deltas(name) == []
    assert row(name).losses == ("the call write_file with 86 characters of arguments",)


def test_the_call_before_a_dropped_one_comes() -> None:
    assert [call["function"]["name"] for call in call_deltas("openai_chat/litellm", "two-calls")
            if "name" in call["function"]] == ["page_oncall"]
    assert finish(events("openai_chat/litellm", "two-calls")) == ["tool_calls"]


@pytest.mark.parametrize(("name", "indices"), [
    ("openai_chat/openai", {0, 1}),
    ("openai_chat/ollama", {0}),
    ("openai_chat/dynamo", {0}),
    ("openai_chat/gemini", {None}),
    ("openai_chat/sglang", {None}),
])
def test_the_index_of_calls(name: str, indices: set[int | None]) -> None:
    assert {call.get("index") for call in call_deltas(name, "two-calls")} <= indices
    assert indices <= {call.get("index") for call in call_deltas(name, "two-calls")}
    told = row(name, "two-calls")
    assert next(call.name for call in told.exchange.response.tool_calls) == "page_oncall"


@pytest.mark.parametrize("name", ["openai_chat/lm_studio", "openai_chat/oci"])
def test_every_piece_has_an_id_of_its_own(name: str) -> None:
    calls = call_deltas(name)
    assert len({call["id"] for call in calls}) == len(calls) > 2
    assert [call["function"]["name"] for call in calls] == ["write_file", *[""] * (len(calls) - 1)]
    (call,) = row(name).exchange.response.tool_calls
    assert call.arguments == PREFIX


def test_later_pieces_with_another_index() -> None:
    first, *rest = call_deltas("openai_chat/cerebras")
    assert (first["index"], {call["index"] for call in rest}) == (0, {1})
    assert all("id" not in call for call in rest)
    (call,) = row("openai_chat/cerebras").exchange.response.tool_calls
    assert call.arguments == PREFIX


def test_one_object_in_the_place_of_a_list() -> None:
    sent = [choice["delta"]["tool_calls"] for event in events("openai_chat/tgi") for choice in event["choices"]
            if "tool_calls" in choice["delta"]]
    assert all(isinstance(call, dict) and call["id"] == "" for call in sent)
    (call,) = row("openai_chat/tgi").exchange.response.tool_calls
    assert (call.id, call.arguments) == (None, PREFIX)


def test_complete_arguments_as_an_object() -> None:
    calls = whole("openai_chat/mistral", "two-calls")["choices"][0]["message"]["tool_calls"]
    assert [type(call["function"]["arguments"]) for call in calls] == [dict, str]


def test_text_and_calls_in_two_choices() -> None:
    first, second = whole("openai_chat/github_copilot")["choices"]
    assert "tool_calls" not in first["message"]
    assert (second["message"]["content"], len(second["message"]["tool_calls"])) == (None, 1)
    assert row("openai_chat/github_copilot").exchange.response.text == "I write the report to a file."


def test_usage_inside_the_choice() -> None:
    found = events("openai_chat/moonshot")
    assert found[-1]["choices"][0]["usage"]["completion_tokens"] == 32
    assert not any("usage" in event for event in found)
    usage = row("openai_chat/moonshot").exchange.response.usage
    assert usage is not None
    assert usage.output_tokens == 32


def test_thinking_left_out_of_the_count() -> None:
    usage = events("openai_chat/xai", "thinking")[-1]["usage"]
    thought, said = SCENARIOS["thinking"].parts
    assert isinstance(thought, ReasoningPart)
    assert isinstance(said, TextPart)
    assert usage["completion_tokens"] == tokens(said.text) == 12
    assert usage["completion_tokens_details"]["reasoning_tokens"] == tokens(thought.text)
    assert usage["total_tokens"] == 60 + 12 + tokens(thought.text)


def test_a_filter_speaks_first() -> None:
    first, *rest = events("openai_chat/azure_openai")
    assert (first["choices"], "prompt_filter_results" in first) == ([], True)
    assert not any("prompt_filter_results" in event for event in rest)


def test_a_refused_call_is_an_http_error() -> None:
    made = row("openai_chat/groq", "malformed-call")
    assert made.exchange.response.http_status == 400
    assert whole("openai_chat/groq", "malformed-call")["error"]["failed_generation"].startswith("<function=write_file>")


# -- the others ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "status", "reason", "item"), [
    ("openai", "incomplete", {"reason": "max_output_tokens"}, "incomplete"),
    ("llama_cpp", "completed", None, "completed"),
    ("generic+completed", "completed", None, "completed"),
    ("generic+bare", "incomplete", None, "incomplete"),
])
def test_responses_ends_by_its_status(name: str, status: str, reason: dict[str, str] | None, item: str) -> None:
    last = events(f"openai_responses/{name}")[-1]
    response = last["response"]
    assert (last["type"], response["status"]) == (f"response.{status}", status)
    assert response["incomplete_details"] == reason
    assert (response["output"][-1]["status"], response["output"][-1]["arguments"]) == (item, PREFIX)


@pytest.mark.parametrize(("name", "stops"), [("anthropic", [0, 1]), ("anthropic+open", [0])])
def test_the_end_of_a_block(name: str, stops: list[int]) -> None:
    found = events(f"anthropic_messages/{name}")
    assert [event["index"] for event in found if event["type"] == "content_block_stop"] == stops
    assert "".join(event["delta"].get("partial_json", "") for event in found
                   if event["type"] == "content_block_delta") == PREFIX


@pytest.mark.parametrize(("name", "block"), [
    ("anthropic_messages/anthropic+whole", lambda body: body["content"][-1]["input"]),
    ("bedrock_converse/bedrock+whole", lambda body: body["output"]["message"]["content"][-1]["toolUse"]["input"]),
])
def test_a_whole_body_holds_the_members_that_were_complete(name: str, block: Any) -> None:
    assert block(whole(name)) == {"path": "report.md"}
    assert row(name).losses == ("arguments of write_file: 20 of 86 characters came",)


def test_bedrock_leaves_the_block_open() -> None:
    stream = EventStream()
    frames = stream.feed(b"".join(row("bedrock_converse/bedrock").pieces))
    names = [name for _, name, _, _ in frames]
    assert names.count("contentBlockStart") == names.count("contentBlockStop") == 1  # of the call; of the text
    assert names[-2:] == ["messageStop", "metadata"]


@pytest.mark.parametrize("name", ["gemini_generate/gemini", "gemini_generate/gemini+malformed", "ollama_chat/ollama"])
def test_a_call_that_is_no_object_is_not_sent(name: str) -> None:
    sent = b"".join(row(name).pieces)
    assert b"write_file" not in sent
    assert b"report.md" not in sent


def test_a_habit_that_must_be_asked_for_is_asked_for() -> None:
    """OpenAI says stop over calls only where one is named, Vertex sends values only where it is told to."""
    named, values = row("openai_chat/openai+named").exchange, row("gemini_generate/vertex").exchange
    assert named.request is not None
    assert named.request.tool_choice == "tool:write_file"
    assert values.request_json["toolConfig"]["functionCallingConfig"] == {"streamFunctionCallArguments": True}
    assert row("openai_chat/openai").exchange.request_json.keys().isdisjoint({"tool_choice", "toolConfig"})


def test_vertex_leaves_the_last_value_open() -> None:
    calls = [part["functionCall"] for event in events("gemini_generate/vertex")
             for part in event["candidates"][0]["content"]["parts"] if "functionCall" in part]
    assert calls[0] == {"name": "write_file", "willContinue": True}
    assert calls[-1]["willContinue"] is True
    values = [value for call in calls[1:] for value in call["partialArgs"]]
    assert "".join(value["stringValue"] for value in values if value["jsonPath"] == "$.path") == "report.md"
    assert "".join(value["stringValue"] for value in values if value["jsonPath"] == "$.content") == json.loads(
        PREFIX + '"}')["content"]
    assert values[-1]["willContinue"] is True
    done = row("gemini_generate/vertex", "two-calls").exchange.response.tool_calls
    assert [call.closed for call in done] == [True, False]


def test_a_lost_stream_has_no_end() -> None:
    assert finish(events("openai_chat/openai", "stream-breaks")) == []
    assert b"[DONE]" not in b"".join(row("openai_chat/openai", "stream-breaks").pieces)
    assert b"message_stop" not in b"".join(row("anthropic_messages/anthropic", "stream-breaks").pieces)
    assert b"messageStop" not in b"".join(row("bedrock_converse/bedrock", "stream-breaks").pieces)
    last = json.loads(row("ollama_chat/ollama", "stream-breaks").pieces[-1])
    assert (last["done"], last.get("done_reason")) == (True, None)


# -- asked for by name -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "names"), [
    (("mimo",), ["openai_chat/mimo"]),
    (("openai_chat/vllm",), ["openai_chat/vllm", "openai_chat/vllm+empty", "openai_chat/vllm+markup"]),
    (("openai_chat/vllm+empty",), ["openai_chat/vllm+empty"]),
    (("vllm+empty", "anthropic+open"), ["openai_chat/vllm+empty", "anthropic_messages/anthropic+open"]),
    (("bedrock_converse", "ollama_chat"), ["bedrock_converse/bedrock", "bedrock_converse/bedrock+whole",
                                           "ollama_chat/ollama", "ollama_chat/ollama+markup"]),
])
def test_dialects_are_chosen_by_name(words: tuple[str, ...], names: list[str]) -> None:
    assert [dialect.name for dialect in dialects_named(words)] == names


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(CallerError, match="no dialect is called 'vlm'"):
        dialects_named(("vllm", "vlm"))


# -- official clients as referees ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["openai", "mimo", "vllm", "openrouter", "azure_openai", "moonshot", "xai", "ollama"])
def test_the_openai_sdk_reads_the_stream(name: str) -> None:
    chunk = pytest.importorskip("openai.types.chat").ChatCompletionChunk
    read = [chunk.model_validate(event) for event in events(f"openai_chat/{name}", "two-calls")]
    said = "".join(choice.delta.content or "" for each in read for choice in each.choices)
    assert said == "I write the report to a file."
    names = [call.function.name for each in read for choice in each.choices for call in choice.delta.tool_calls or ()
             if call.function.name]
    assert names == (["page_oncall"] if name == "ollama" else ["page_oncall", "write_file"])


@pytest.mark.parametrize("name", ["openai", "llama_cpp", "generic+bare"])
def test_the_openai_sdk_reads_the_end_of_a_response(name: str) -> None:
    responses, models = pytest.importorskip("openai.types.responses"), pytest.importorskip("openai._models")
    read = models.construct_type(type_=responses.Response, value=events(f"openai_responses/{name}")[-1]["response"])
    assert isinstance(read.output[-1], responses.ResponseFunctionToolCall)
    assert read.output[-1].arguments == PREFIX


def test_the_genai_sdk_reads_values_that_continue() -> None:
    types = pytest.importorskip("google.genai.types")
    read = [types.GenerateContentResponse.model_validate(event) for event in events("gemini_generate/vertex")]
    calls = [part.function_call for each in read for part in each.candidates[0].content.parts if part.function_call]
    assert calls[0].name == "write_file"
    assert calls[-1].will_continue
    assert calls[-1].partial_args[-1].will_continue


@pytest.mark.parametrize(("name", "address"), [
    ("bedrock_converse/bedrock", r"https://bedrock-runtime\.[a-z0-9-]+\.amazonaws\.com/"),
    ("gemini_generate/vertex", r"https://[a-z0-9-]+-aiplatform\.googleapis\.com/"),
    ("openai_chat/azure_openai", r"https://[a-z]+\.openai\.azure\.com/"),
    ("openai_chat/oci", r"https://inference\.generativeai\.[a-z.-]+\.oraclecloud\.com/"),
    ("openai_chat/openai", r"https://api\.openai\.com/"), ("ollama_chat/ollama", "http://127.0.0.1:11434/"),
])
def test_a_request_goes_to_an_address_that_the_provider_documents(name: str, address: str) -> None:
    dialect = dialects_named((name,))[0]
    assert re.match(address, url(dialect, dialect.stream))
