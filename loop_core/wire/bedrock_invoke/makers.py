"""Encodes answers as Claude, Nova, Llama and Mistral write them on Bedrock, and decodes and encodes requests.

Nova's are those of Converse. Llama and Mistral's older models take one prompt, in the model's own template, and answer
with one text; Mistral's newer models use the messages of Chat Completions. An answer to encode has Claude's stop words,
which each maker's own words replace. Sources: AWS guide, "Amazon Nova", "Meta Llama models", "Mistral AI text
completion", "Mistral AI chat completion"; recorded traffic.

The second half decodes and encodes requests; the model in the URL names the maker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import quote, unquote

from loop_core.errors import EncodeError
from loop_core.json_parser import from_json
from loop_core.values import ChatResponse, Message, Request, Role, TextPart, ToolCall
from loop_core.wire import asking
from loop_core.wire.anthropic_messages import encode as encode_message
from loop_core.wire.anthropic_messages.request import ASKING_LOSES as MESSAGES_LOSE
from loop_core.wire.anthropic_messages.request import encode_request as messages_request
from loop_core.wire.anthropic_messages.request import read_request as read_messages
from loop_core.wire.bedrock_converse import encode as encode_converse
from loop_core.wire.bedrock_converse.request import encode_request as converse_request
from loop_core.wire.bedrock_converse.request import read_request as read_converse
from loop_core.wire.body import compact, mapping_of, merge, non_null, pieces, rest, token_count, word
from loop_core.wire.eventstream import EventStream
from loop_core.wire.framing import SSE
from loop_core.wire.openai_chat.request import encode_request as chat_request
from loop_core.wire.openai_chat.request import read_request as read_chat

API = "bedrock_invoke"
NOVA = re.compile(r"amazon\.nova")
LLAMA = re.compile(r"\bmeta\.llama")
MISTRAL_CHAT = re.compile(r"\bmistral\.(?:mistral-large|pixtral|magistral|ministral|devstral|voxtral)")
MISTRAL = re.compile(r"\bmistral\.")
METRICS = "amazon-bedrock-invocationMetrics"
"""The name of the field in a stream's last chunk that holds Bedrock's own token counts."""
NOVA_COUNTS: Mapping[str, str] = {
    "cacheReadInputTokenCount": "cacheReadInputTokens", "cacheWriteInputTokenCount": "cacheWriteInputTokens",
}
"""Name of a token count in Nova's bodies -> its name in Converse."""
WORDS: Mapping[str, str] = {
    "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
}
"""Stop word of Claude -> stop word of Llama and Mistral."""

Write = Callable[[ChatResponse, bool, int], Iterable[bytes]]
"""Encodes a response as one body, or as the events of a stream with this many characters of text in each."""


def encode_claude(response: ChatResponse, stream: bool, chunk: int) -> Iterator[bytes]:
    """A message, or its events."""
    written = list(encode_message(replace(response, api="anthropic_messages"), stream=stream, chunk=chunk))
    if not stream:
        yield from written
        return
    events = SSE()
    yield from (piece[0] for piece in (*events.feed(b"".join(written)), *events.flush()))


def encode_nova(response: ChatResponse, stream: bool, chunk: int) -> Iterator[bytes]:
    """A body of Converse, or its events, each in an object under its name."""
    bare = replace(response, api="bedrock_converse", model=None, id=None)
    for piece in encode_converse(bare, stream=stream, chunk=chunk):
        if not stream:
            yield compact(rest(_nova_counts(from_json(piece)), "metrics")).encode()
            continue
        ((payload, name, *_),) = EventStream().feed(piece)
        event = from_json(payload)
        if name == "metadata":
            counted = {"metadata": {**_nova_counts(event), "metrics": {}}}  # recorded: empty here, filled in Converse
            yield compact({**counted, **_metrics(response)}).encode()
        else:
            yield compact({name: event}).encode()


def _nova_counts(value: dict[str, Any]) -> dict[str, Any]:
    """A body or an event with its counts as Nova names them."""
    named = {other: name for name, other in NOVA_COUNTS.items()}
    usage = {named.get(name, name): count for name, count in mapping_of(value.get("usage")).items()}
    return {**value, "usage": usage} if usage else value


def encode_text(response: ChatResponse, stream: bool, chunk: int, llama: bool) -> Iterator[bytes]:
    """The body, or the events, of a model that answers with one text."""
    odd = next((part for part in response.parts if type(part) is not TextPart), None)
    if odd is not None:
        what = "call" if type(odd) is ToolCall else "reasoning"
        raise EncodeError(f"an answer of {response.model} is one text", api=API, what=what)
    counts = response.usage[:2] if response.usage else (None, None)
    if not stream:
        yield compact(_text(response.text or "", _reason(response), counts, llama)).encode()
        return
    text_pieces = pieces(response.text or "", chunk)
    for number, piece in enumerate(text_pieces):
        yield compact(_text(piece, None, (counts[0] if number == 0 else None, number + 1), llama)).encode()
    if response.stop_reason.raw is not None:
        last = _text("", _reason(response), (None, counts[1]), llama)
        yield compact({**last, **_metrics(response)}).encode()


def _text(text: str, reason: str | None, counts: tuple[int | None, int | None], llama: bool) -> dict[str, Any]:
    if not llama:
        return {"outputs": [{"text": text, "stop_reason": reason}]}
    return {"generation": text, "prompt_token_count": counts[0], "generation_token_count": counts[1],
            "stop_reason": reason}


def encode_chat(response: ChatResponse, stream: bool, chunk: int) -> Iterator[bytes]:
    """A body with the one choice of Mistral's chat, or its events. A call is written in one piece."""
    odd = next((part for part in response.parts if type(part) not in (TextPart, ToolCall)), None)
    if odd is not None:
        raise EncodeError(f"a message of {response.model} is text and calls", api=API, what="reasoning")
    calls = [{**non_null(id=call.id), "function": {"name": call.name, "arguments": call.arguments or ""}}
             for call in response.tool_calls]
    text, reason = response.text or "", _reason(response)
    if not stream:
        yield compact(_choice({"content": text, **({"tool_calls": calls} if calls else {})}, reason)).encode()
        return
    yield from (compact(_choice({"content": piece}, None)).encode() for piece in pieces(text, chunk))
    yield from (compact(_choice({"content": "", "tool_calls": [call]}, None)).encode() for call in calls)
    if reason is not None:
        yield compact({**_choice({"content": ""}, reason), **_metrics(response)}).encode()


def _choice(message: Mapping[str, Any], reason: str | None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"role": "assistant", **message}, "stop_reason": reason}]}


def _reason(response: ChatResponse) -> str | None:
    raw = response.stop_reason.raw
    return None if raw is None else WORDS.get(raw, raw)


def _metrics(response: ChatResponse) -> dict[str, Any]:
    usage = response.usage
    if usage is None or usage[:2] == (None, None):
        return {}
    named = non_null(inputTokenCount=usage.input_tokens, outputTokenCount=usage.output_tokens)
    return {METRICS: {**named, "invocationLatency": 0, "firstByteLatency": 0}}


WRITERS: tuple[tuple[re.Pattern[str], Write], ...] = (
    (NOVA, encode_nova), (LLAMA, partial(encode_text, llama=True)), (MISTRAL_CHAT, encode_chat),
    (MISTRAL, partial(encode_text, llama=False)),
)
"""Pattern of model names -> the function that writes answers of these models. The first pattern that fits counts."""

# -- A history as the prompt of a model, and back --------------------------------------------------------------------

_LLAMA_TURN = re.compile(r"<\|start_header_id\|>(system|user|assistant)<\|end_header_id\|>\n\n(.*?)(?:<\|eot_id\|>|\Z)",
                   re.DOTALL)
_MISTRAL_TURN = re.compile(r"\[INST\] (.*?) \[/INST\](?: ?(.*?)(?:</s>|(?=\[INST\])|\Z))?", re.DOTALL)


def llama_prompt(messages: Iterable[Message]) -> str:
    """The messages in the prompt template of Llama 3, up to the beginning of the model's answer."""
    turns = [f"<|start_header_id|>{message.role.value}<|end_header_id|>\n\n{message.text}<|eot_id|>"
             for message in messages]
    return "".join(["<|begin_of_text|>", *turns, "<|start_header_id|>assistant<|end_header_id|>\n\n"])


def mistral_prompt(messages: Iterable[Message]) -> str:
    """The messages in the prompt template of Mistral's text models; system messages go before the user's text."""
    prompt, system = "<s>", ""
    for message in messages:
        if message.role is Role.SYSTEM:
            system += f"{message.text}\n\n"
        elif message.role is Role.ASSISTANT:
            prompt += f" {message.text}</s>"
        else:
            prompt, system = f"{prompt}[INST] {system}{message.text} [/INST]", ""
    return prompt


def read_prompt(prompt: str) -> Iterator[Message]:
    """The messages of a prompt; a single message of the user if it follows neither template."""
    found = [(Role(role), text) for role, text in _LLAMA_TURN.findall(prompt)]
    if not found and "<<SYS>>" not in prompt:  # Llama 2's template, which contains [INST] too
        found = [each for question, answer in _MISTRAL_TURN.findall(prompt)
                 for each in ((Role.USER, question), (Role.ASSISTANT, answer.strip()))]
    yield from (Message(role, (TextPart(text),)) for role, text in found or [(Role.USER, prompt)] if text)


# -- A request body -> `Request` -----------------------------------------------------------------------------------


PATHS: tuple[re.Pattern[str], ...] = (
    # Embeddings, which are not answers, have the same path.
    re.compile(r"/model/(?P<model>(?![^/?#]*embed)[^/?#]+)/invoke(?P<stream>-with-response-stream)?/?(?:$|[?#])"),
)
VERSION = "bedrock-2023-05-31"
"""The value of `anthropic_version` that Bedrock requires in every body for Claude."""
_PROMPTS = ("prompt", "inputText", "message")
_CAPS = ("max_gen_len", "max_tokens", "max_tokens_to_sample", "maxTokens")


def read_request(body: Mapping[str, Any], url: str = "") -> Request:
    """The `Request` for a recorded body; the model and whether it streams are in `url`."""
    place = PATHS[0].search(url)
    model = unquote(place["model"]) if place else None
    return replace(_read(body, model or ""), api=API, model=model, stream=bool(place and place["stream"]))


def _read(body: Mapping[str, Any], model: str) -> Request:
    if "messages" not in body:
        return _read_text(body)
    if "anthropic_version" in body or "anthropic." in model:
        return read_messages(rest(body, "anthropic_version") if body.get("anthropic_version") == VERSION else body)
    if "amazon." in model or "inferenceConfig" in body or "toolConfig" in body:
        request = read_converse(body)
        cap = token_count(mapping_of(body.get("inferenceConfig")).get("max_new_tokens"))
        if cap is None or request.max_tokens is not None:
            return request
        return replace(request, max_tokens=cap, extra=rest(request.extra, "inferenceConfig.max_new_tokens"))
    return read_chat(body) if model else read_messages(body)


def _read_text(body: Mapping[str, Any]) -> Request:
    field = next((name for name in _PROMPTS if word(body.get(name))), None)
    cap_field = next((name for name in _CAPS if token_count(body.get(name)) is not None), None)
    titan = mapping_of(body.get("textGenerationConfig")).get("maxTokenCount")
    cap = token_count(body[cap_field] if cap_field else titan)
    taken = [name for name in (field, cap_field) if name] + ["textGenerationConfig.maxTokenCount"]
    messages = tuple(read_prompt(body[field])) if field else ()
    return Request(API, messages, max_tokens=cap, extra=rest(body, *taken))


# -- `Request` -> the body for the model's maker -------------------------------------------------------------------

ASKING_LOSES: Mapping[str, str] = MESSAGES_LOSE


def path(request: Request) -> str:
    """The path of the request."""
    way = "invoke-with-response-stream" if request.stream else "invoke"
    return f"/model/{quote(request.model or '', safe='')}/{way}"  # a model may be an ARN, with slashes in it


def encode_request(request: Request) -> dict[str, Any]:
    """The body of the request. Raises `EncodeError` also for a model of a maker whose bodies are not supported."""
    model = request.model or ""
    if "anthropic." in model or "." not in model:  # a custom inference profile names no maker
        body = messages_request(replace(request, api="anthropic_messages", model=None, stream=False))
        # AWS guide: the URL holds the model and the streaming, and the version is required.
        return {"anthropic_version": VERSION, **rest(body, "model", "stream")}
    if NOVA.search(model):
        return converse_request(replace(request, api="bedrock_converse"))
    if MISTRAL_CHAT.search(model):
        return dict(rest(chat_request(replace(request, api="openai_chat", model=None, stream=False)), "stream"))
    for pattern, cap, write in ((LLAMA, "max_gen_len", llama_prompt), (MISTRAL, "max_tokens", mistral_prompt)):
        if pattern.search(model):
            asking.one_choice(request, API)
            if request.tools:
                raise EncodeError(f"{model}: its requests declare no tools", api=API, what="tools")
            if any(type(part) is not TextPart for message in request.messages for part in message.parts):
                raise EncodeError(f"{model}: its prompt is text alone", api=API, what="parts")
            return merge({"prompt": write(request.messages), **non_null(**{cap: request.max_tokens})}, request.extra)
    reason = "bodies can be written for Claude, Nova, Llama and Mistral only"
    raise EncodeError(f"{model or 'no model'}: {reason}", api=API, what="model")
