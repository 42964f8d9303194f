"""The official SDKs as clients: one question each, streamed or whole, and what the SDK made of the answer.

A module is skipped where its SDK is not installed; see the extra `sdks`.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest

from inspector.provider.scenarios import DeclaredTool
from loop_core.wire.servers import (
    CHAT,
    COHERE,
    COMPLETIONS,
    CONVERSE,
    GEMINI,
    GENERATE,
    INVOKE,
    MESSAGES,
    OLLAMA,
    RESPONSES,
)


@dataclass
class Saw:
    """What one SDK saw of one answer."""

    text: str = ""
    thinking: str = ""
    calls: list[list[str]] = field(default_factory=list)
    """Name and arguments of each call, as JSON text."""
    reason: str | None = None
    tokens: int | None = None
    model: str | None = None


@dataclass(frozen=True)
class Question:
    """What is asked."""

    url: str
    model: str
    prompt: str
    cap: int
    stream: bool
    tools: tuple[DeclaredTool, ...] = ()


Ask = Callable[[Question], Saw]


def _openai(url: str) -> Any:
    return pytest.importorskip("openai").OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)


def _anthropic(url: str) -> Any:
    return pytest.importorskip("anthropic").Anthropic(base_url=url, api_key="any", max_retries=0)


def _genai(url: str) -> Any:
    return pytest.importorskip("google.genai").Client(api_key="any", http_options={
        "base_url": url, "retry_options": {"attempts": 1}})


def _boto3(url: str) -> Any:
    once = pytest.importorskip("botocore.config").Config(retries={"total_max_attempts": 1})
    return pytest.importorskip("boto3").client(
        "bedrock-runtime", endpoint_url=url, region_name="us-east-1", aws_access_key_id="any",
        aws_secret_access_key="any", config=once)


def _ollama(url: str) -> Any:
    return pytest.importorskip("ollama").Client(host=url)


def _cohere(url: str) -> Any:
    return pytest.importorskip("cohere").ClientV2(base_url=url, api_key="any")


_CLIENTS = {COHERE: _cohere, CHAT: _openai, MESSAGES: _anthropic, GEMINI: _genai, CONVERSE: _boto3, OLLAMA: _ollama}


@cache
def client_of(api: str, url: str) -> Any:
    """The SDK's client for a provider; making one takes longer than an answer."""
    client = _CLIENTS[api](url)
    inner = client._client_wrapper.httpx_client.httpx_client if api == COHERE else getattr(client, "_client", None)
    _OPEN.append(client if hasattr(client, "close") else inner)
    return client


_OPEN: list[Any] = []


def close_all() -> None:
    """Closes every client that was made."""
    client_of.cache_clear()
    while _OPEN:
        _OPEN.pop().close()


def openai_chat(question: Question) -> Saw:
    openai = pytest.importorskip("openai")
    tools = [{"type": "function", "function": {"name": each.tool.name, "parameters": each.tool.schema}}
             for each in question.tools]
    saw = Saw()
    came = client_of(CHAT, question.url).chat.completions.create(
        model=question.model, messages=[{"role": "user", "content": question.prompt}], max_tokens=question.cap,
        stream=question.stream, tools=tools or openai.omit)
    for event in came if question.stream else [came]:
        saw.model = event.model or saw.model
        if event.usage is not None:
            saw.tokens = event.usage.completion_tokens
        for choice in event.choices:
            said = choice.delta if question.stream else choice.message
            saw.text += said.content or ""
            saw.thinking += getattr(said, "reasoning_content", None) or ""
            saw.reason = choice.finish_reason or saw.reason
            for call in said.tool_calls or ():
                if call.function.name:
                    saw.calls.append([call.function.name, ""])
                saw.calls[-1][1] += call.function.arguments or ""
    return saw


def openai_responses(question: Question) -> Saw:
    openai = pytest.importorskip("openai")
    tools = [{"type": "function", "name": each.tool.name, "parameters": each.tool.schema, "strict": False}
             for each in question.tools]
    came = client_of(CHAT, question.url).responses.create(
        model=question.model, input=question.prompt, max_output_tokens=question.cap, stream=question.stream,
        tools=tools or openai.omit)
    saw = Saw()
    if not question.stream:
        return _response(saw, came)
    for event in came:
        if event.type == "response.output_text.delta":
            saw.text += event.delta
        elif event.type == "response.function_call_arguments.delta":
            saw.calls[-1][1] += event.delta
        elif event.type == "response.output_item.added" and event.item.type == "function_call":
            saw.calls.append([event.item.name, ""])
        elif event.type == "response.reasoning_summary_text.delta":
            saw.thinking += event.delta
        elif event.type == "error":
            raise openai.APIError(event.model_dump_json(), None, body=None)
        elif event.type in ("response.completed", "response.incomplete", "response.failed"):
            whole = _response(Saw(), event.response)
            assert (whole.text, whole.calls) == (saw.text, saw.calls), "the end repeats what was streamed"
            saw.reason, saw.tokens, saw.model = whole.reason, whole.tokens, whole.model
            if event.type == "response.failed":
                raise openai.APIError(event.model_dump_json(), None, body=None)
    return saw


def _response(saw: Saw, response: Any) -> Saw:
    saw.text, saw.model = response.output_text, response.model
    saw.calls = [[item.name, item.arguments] for item in response.output if item.type == "function_call"]
    for item in response.output:
        if item.type == "reasoning":
            saw.thinking += "".join(part.text for part in item.summary)
    saw.tokens = response.usage.output_tokens if response.usage else None
    why = response.incomplete_details.reason if response.incomplete_details else None
    saw.reason = f"{response.status}:{why}" if why else response.status
    return saw


def anthropic_messages(question: Question) -> Saw:
    anthropic = pytest.importorskip("anthropic")
    tools = [{"name": each.tool.name, "input_schema": each.tool.schema} for each in question.tools]
    saw = Saw()
    came = client_of(MESSAGES, question.url).messages.create(
        model=question.model, messages=[{"role": "user", "content": question.prompt}], max_tokens=question.cap,
        stream=question.stream, tools=tools or anthropic.omit)
    if not question.stream:
        saw.model, saw.reason, saw.tokens = came.model, came.stop_reason, came.usage and came.usage.output_tokens
        for block in came.content:
            saw.text += block.text if block.type == "text" else ""
            saw.thinking += block.thinking if block.type == "thinking" else ""
            if block.type == "tool_use":
                saw.calls.append([block.name, json.dumps(block.input)])
        return saw
    for event in came:
        if event.type == "message_start":
            saw.model = event.message.model
        elif event.type == "content_block_start" and event.content_block.type == "tool_use":
            saw.calls.append([event.content_block.name, ""])
        elif event.type == "content_block_delta":
            delta = event.delta
            saw.text += delta.text if delta.type == "text_delta" else ""
            saw.thinking += delta.thinking if delta.type == "thinking_delta" else ""
            if delta.type == "input_json_delta":
                saw.calls[-1][1] += delta.partial_json
        elif event.type == "message_delta":
            saw.reason, saw.tokens = event.delta.stop_reason, event.usage.output_tokens
    return saw


def gemini_generate(question: Question) -> Saw:
    declared = [{"name": each.tool.name, "parameters_json_schema": each.tool.schema} for each in question.tools]
    tools = {"tools": [{"function_declarations": declared}]} if declared else {}
    config = {"max_output_tokens": question.cap, **tools}
    saw = Saw()
    client = client_of(GEMINI, question.url)
    ask = client.models.generate_content_stream if question.stream else client.models.generate_content
    came = ask(model=question.model, contents=question.prompt, config=config)
    for event in came if question.stream else [came]:
        saw.model = event.model_version or saw.model
        counted = event.usage_metadata
        if counted is not None:
            saw.tokens = (counted.candidates_token_count or 0) + (counted.thoughts_token_count or 0)
        for candidate in event.candidates or ():
            saw.reason = candidate.finish_reason.value if candidate.finish_reason else saw.reason
            for part in (candidate.content.parts if candidate.content else None) or ():
                if part.function_call:
                    saw.calls.append([part.function_call.name, json.dumps(part.function_call.args)])
                elif part.thought:
                    saw.thinking += part.text or ""
                else:
                    saw.text += part.text or ""
    return saw


def gemini_interactions(question: Question) -> Saw:
    client = client_of(GEMINI, question.url)
    warnings.filterwarnings("ignore", message="Interaction stopped before completion")  # a pause is what is asked for
    tools = [{"type": "function", "name": each.tool.name, "parameters": each.tool.schema} for each in question.tools]
    came = client.interactions.create(
        model=question.model, input=question.prompt, stream=question.stream, automatic_continuation=False,
        generation_config={"max_output_tokens": question.cap}, **({"tools": tools} if tools else {}))
    saw = Saw()
    if not question.stream:
        saw.reason, saw.model = came.status, came.model
        saw.tokens = _tokens(came.usage)
        for step in came.steps or ():
            if step.type == "model_output":
                saw.text += "".join(each.text for each in step.content)
            elif step.type == "thought":
                saw.thinking += "".join(each.text for each in step.summary or ())
            elif step.type == "function_call":
                saw.calls.append([step.name, json.dumps(step.arguments)])
        return saw
    for event in came:
        if event.event_type == "error":
            raise pytest.importorskip("google.genai.errors").APIError(500, {"error": {"message": event.error.message}})
        if event.event_type in ("interaction.created", "interaction.completed"):
            saw.model = event.interaction.model or saw.model
            ended = event.event_type == "interaction.completed"
            saw.reason = event.interaction.status if ended else saw.reason
            saw.tokens = _tokens(event.interaction.usage) if ended else saw.tokens
        elif event.event_type == "step.start" and event.step.type == "function_call":
            saw.calls.append([event.step.name, ""])
        elif event.event_type == "step.delta":
            delta = event.delta
            saw.text += delta.text if delta.type == "text" else ""
            saw.thinking += delta.content.text if delta.type == "thought_summary" else ""
            if delta.type == "arguments_delta":
                saw.calls[-1][1] += delta.arguments
    return saw


def _tokens(usage: Any) -> int | None:
    return None if usage is None else (usage.total_output_tokens or 0) + (usage.total_thought_tokens or 0)


def bedrock_converse(question: Question) -> Saw:
    specs = [{"toolSpec": {"name": each.tool.name, "inputSchema": {"json": each.tool.schema}}}
             for each in question.tools]
    asked: dict[str, Any] = {
        "modelId": question.model, "messages": [{"role": "user", "content": [{"text": question.prompt}]}],
        "inferenceConfig": {"maxTokens": question.cap}, **({"toolConfig": {"tools": specs}} if specs else {}),
    }
    saw = Saw(model=question.model)  # a Converse answer does not name it
    client = client_of(CONVERSE, question.url)
    if not question.stream:
        came = client.converse(**asked)
        saw.reason, saw.tokens = came.get("stopReason"), came.get("usage", {}).get("outputTokens")
        for block in came["output"]["message"]["content"]:
            saw.text += block.get("text", "")
            saw.thinking += block.get("reasoningContent", {}).get("reasoningText", {}).get("text", "")
            if "toolUse" in block:
                saw.calls.append([block["toolUse"]["name"], json.dumps(block["toolUse"]["input"])])
        return saw
    with closing(client.converse_stream(**asked)["stream"]) as events:
        for event in events:
            delta = event.get("contentBlockDelta", {}).get("delta", {})
            saw.text += delta.get("text", "")
            saw.thinking += delta.get("reasoningContent", {}).get("text", "")
            start = event.get("contentBlockStart", {}).get("start", {})
            if "toolUse" in start:
                saw.calls.append([start["toolUse"]["name"], ""])
            if "toolUse" in delta:
                saw.calls[-1][1] += delta["toolUse"]["input"]
            saw.reason = event.get("messageStop", {}).get("stopReason", saw.reason)
            saw.tokens = event.get("metadata", {}).get("usage", {}).get("outputTokens", saw.tokens)
    return saw


def ollama_chat(question: Question) -> Saw:
    tools = [{"type": "function", "function": {"name": each.tool.name, "parameters": each.tool.schema}}
             for each in question.tools]
    saw = Saw()
    came = client_of(OLLAMA, question.url).chat(
        model=question.model, messages=[{"role": "user", "content": question.prompt}], stream=question.stream,
        tools=tools, options={"num_predict": question.cap})
    for event in came if question.stream else [came]:
        saw.model = event.model
        saw.text += event.message.content or ""
        saw.thinking += event.message.thinking or ""
        saw.reason, saw.tokens = event.done_reason or saw.reason, event.eval_count or saw.tokens
        for call in event.message.tool_calls or ():
            saw.calls.append([call.function.name, json.dumps(dict(call.function.arguments))])
    return saw


def cohere_chat(question: Question) -> Saw:
    client = client_of(COHERE, question.url)
    tools = [{"type": "function", "function": {"name": each.tool.name, "parameters": each.tool.schema}}
             for each in question.tools]
    asked: dict[str, Any] = {
        "model": question.model, "messages": [{"role": "user", "content": question.prompt}], "max_tokens": question.cap,
        "request_options": {"max_retries": 0}, **({"tools": tools} if tools else {})}
    saw = Saw()
    if not question.stream:
        came = client.chat(**asked)
        saw.reason, saw.tokens = came.finish_reason, came.usage and came.usage.tokens.output_tokens
        for block in came.message.content or ():
            saw.text += block.text if block.type == "text" else ""
            saw.thinking += block.thinking if block.type == "thinking" else ""
        saw.calls = [[call.function.name, call.function.arguments] for call in came.message.tool_calls or ()]
        return saw
    for event in client.chat_stream(**asked):
        if event.type == "content-delta":
            saw.text += event.delta.message.content.text or ""
            saw.thinking += event.delta.message.content.thinking or ""
        elif event.type == "tool-call-start":
            saw.calls.append([event.delta.message.tool_calls.function.name, ""])
        elif event.type == "tool-call-delta":
            saw.calls[-1][1] += event.delta.message.tool_calls.function.arguments
        elif event.type == "message-end":
            if event.delta.error:
                raise pytest.importorskip("cohere.core.api_error").ApiError(status_code=200, body=event.delta.error)
            saw.reason = event.delta.finish_reason
            saw.tokens = event.delta.usage and event.delta.usage.tokens.output_tokens
    return saw


def openai_completions(question: Question) -> Saw:
    came = client_of(CHAT, question.url).completions.create(
        model=question.model, prompt=question.prompt, max_tokens=question.cap, stream=question.stream)
    saw = Saw()
    for event in came if question.stream else [came]:
        saw.model = event.model or saw.model
        if event.usage is not None:
            saw.tokens = event.usage.completion_tokens
        for choice in event.choices:
            saw.text += choice.text
            saw.reason = choice.finish_reason or saw.reason
    return saw


def ollama_generate(question: Question) -> Saw:
    saw = Saw()
    came = client_of(OLLAMA, question.url).generate(
        model=question.model, prompt=question.prompt, stream=question.stream, options={"num_predict": question.cap})
    for event in came if question.stream else [came]:
        saw.model = event.model
        saw.text += event.response
        saw.thinking += event.thinking or ""
        saw.reason, saw.tokens = event.done_reason or saw.reason, event.eval_count or saw.tokens
    return saw


def bedrock_invoke(question: Question) -> Saw:
    """boto3 hands bytes over; what Claude's SDK makes of them is asked in `sdk_types`."""
    tools = [{"name": each.tool.name, "input_schema": each.tool.schema} for each in question.tools]
    body = json.dumps({
        "anthropic_version": "bedrock-2023-05-31", "max_tokens": question.cap,
        "messages": [{"role": "user", "content": question.prompt}], **({"tools": tools} if tools else {})})
    client, saw = client_of(CONVERSE, question.url), Saw()
    if not question.stream:
        came = json.loads(client.invoke_model(modelId=question.model, body=body)["body"].read())
        saw.model, saw.reason, saw.tokens = came["model"], came["stop_reason"], came["usage"]["output_tokens"]
        for block in came["content"]:
            saw.text += block.get("text", "")
            saw.thinking += block.get("thinking", "")
            if block["type"] == "tool_use":
                saw.calls.append([block["name"], json.dumps(block["input"])])
        return saw
    with closing(client.invoke_model_with_response_stream(modelId=question.model, body=body)["body"]) as chunks:
        for chunk in chunks:
            event = json.loads(chunk["chunk"]["bytes"])
            delta = event.get("delta", {})
            saw.model = event.get("message", {}).get("model", saw.model)
            saw.text += delta.get("text", "")
            saw.thinking += delta.get("thinking", "")
            if event.get("content_block", {}).get("type") == "tool_use":
                saw.calls.append([event["content_block"]["name"], ""])
            if "partial_json" in delta:
                saw.calls[-1][1] += delta["partial_json"]
            if event["type"] == "message_delta":
                saw.reason, saw.tokens = delta["stop_reason"], event["usage"]["output_tokens"]
    return saw


SDKS: Mapping[str, Ask] = {
    CHAT: openai_chat, RESPONSES: openai_responses, MESSAGES: anthropic_messages, GEMINI: gemini_generate,
    CONVERSE: bedrock_converse, OLLAMA: ollama_chat, "gemini_interactions": gemini_interactions,
    COHERE: cohere_chat, INVOKE: bedrock_invoke,
    COMPLETIONS: openai_completions, GENERATE: ollama_generate,
}
