"""An InvokeModel request body -> `Request`, and back: the model in the URL says whose body it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote

from loop_core.errors import EncodeError
from loop_core.values import Request, TextPart
from loop_core.wire.anthropic_messages.request import ASKING_LOSES as MESSAGES_LOSE
from loop_core.wire.anthropic_messages.request import encode_request as messages_request
from loop_core.wire.anthropic_messages.request import read_request as read_messages
from loop_core.wire.bedrock_converse.request import encode_request as converse_request
from loop_core.wire.bedrock_converse.request import read_request as read_converse
from loop_core.wire.bedrock_invoke.makers import (
    API,
    LLAMA,
    MISTRAL,
    MISTRAL_CHAT,
    NOVA,
    llama_prompt,
    mistral_prompt,
    read_prompt,
)
from loop_core.wire.body import integer, mapping_of, merge, non_null, one_choice, rest, word
from loop_core.wire.openai_chat.request import encode_request as chat_request
from loop_core.wire.openai_chat.request import read_request as read_chat

PATHS: tuple[re.Pattern[str], ...] = (
    re.compile(r"/model/(?P<model>(?![^/?#]*embed)[^/?#]+)/invoke(?P<stream>-with-response-stream)?/?(?:$|[?#])"),
)
VERSION = "bedrock-2023-05-31"
"""The value of `anthropic_version` that Bedrock asks of every body for Claude."""
_PROMPTS = ("prompt", "inputText", "message")
_CAPS = ("max_gen_len", "max_tokens", "max_tokens_to_sample")


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
        cap = integer(mapping_of(body.get("inferenceConfig")).get("max_new_tokens"))
        if cap is None or request.max_tokens is not None:
            return request
        return replace(request, max_tokens=cap, extra=rest(request.extra, "inferenceConfig.max_new_tokens"))
    return read_chat(body) if model else read_messages(body)


def _read_text(body: Mapping[str, Any]) -> Request:
    field = next((name for name in _PROMPTS if word(body.get(name))), None)
    cap_field = next((name for name in _CAPS if integer(body.get(name)) is not None), None)
    titan = integer(mapping_of(body.get("textGenerationConfig")).get("maxTokenCount"))
    taken = [name for name in (field, cap_field) if name] + ["textGenerationConfig.maxTokenCount"]
    messages = tuple(read_prompt(body[field])) if field else ()
    return Request(API, messages, max_tokens=body[cap_field] if cap_field else titan, extra=rest(body, *taken))


# -- `Request` -> the body for the model's maker -------------------------------------------------------------------

ASKING_LOSES: Mapping[str, str] = MESSAGES_LOSE


def path(request: Request) -> str:
    """The path of the request."""
    way = "invoke-with-response-stream" if request.stream else "invoke"
    return f"/model/{quote(request.model or '', safe='')}/{way}"


def encode_request(request: Request) -> dict[str, Any]:
    """The body of the request; a model of a maker whose bodies are not written is an `EncodeError` too."""
    model = request.model or ""
    if "anthropic." in model or "." not in model:  # an inference profile of one's own names no maker
        body = messages_request(replace(request, api="anthropic_messages", model=None, stream=False))
        return {"anthropic_version": VERSION, **rest(body, "model", "stream")}
    if NOVA.search(model):
        return converse_request(replace(request, api="bedrock_converse"))
    if MISTRAL_CHAT.search(model):
        return rest(chat_request(replace(request, api="openai_chat", model=None, stream=False)), "stream")
    for pattern, cap, write in ((LLAMA, "max_gen_len", llama_prompt), (MISTRAL, "max_tokens", mistral_prompt)):
        if pattern.search(model):
            one_choice(request, API)
            if request.tools:
                raise EncodeError(f"{model}: its requests declare no tools", api=API, what="tools")
            if any(type(part) is not TextPart for message in request.messages for part in message.parts):
                raise EncodeError(f"{model}: its prompt is text alone", api=API, what="parts")
            return merge({"prompt": write(request.messages), **non_null(**{cap: request.max_tokens})}, request.extra)
    said = "bodies can be written for Claude, Nova, Llama and Mistral only"
    raise EncodeError(f"{model or 'no model'}: {said}", api=API, what="model")
