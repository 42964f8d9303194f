"""What is told of the scenarios as models, and what a request costs: documents in the shape of each server."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from inspector.provider.checks import check
from inspector.provider.checks.rules import inside
from inspector.provider.story import Story
from inspector.provider.times import DATE, MADE
from loop_core.values import Request
from loop_core.wire import wire
from loop_core.wire.servers import CONVERSE, GEMINI, MESSAGES, RESPONSES

OLLAMA_VERSION = "0.12.11"
"""The server whose API is spoken."""
DETAILS: Mapping[str, Any] = {
    "parent_model": "", "format": "gguf", "family": "scripted", "families": ["scripted"], "parameter_size": "1B",
    "quantization_level": "F16",
}
CONTEXT = 131_072
"""Tokens; nothing here ever fills them."""


def model(story: Story) -> dict[str, Any]:
    """A scenario as a model, in one object that OpenAI's, Anthropic's and Google's clients read."""
    name = story.name
    return {
        "id": name, "object": "model", "created": MADE, "owned_by": "loop-inspector",
        "type": "model", "display_name": story.story, "created_at": DATE,
        "name": f"models/{name}", "displayName": name, "description": story.story,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }


def models(stories: Sequence[Story]) -> dict[str, Any]:
    """The scenarios as models, in one document for the same clients."""
    rows = [model(story) for story in stories]
    return {"object": "list", "data": rows, "models": rows, "has_more": False, "first_id": rows[0]["id"],
            "last_id": rows[-1]["id"]}


def tags(stories: Sequence[Story]) -> dict[str, Any]:
    """The scenarios as Ollama's models."""
    return {"models": [{
        "name": story.name, "model": story.name, "modified_at": DATE, "size": len(_script(story)),
        "digest": hashlib.sha256(_script(story)).hexdigest(), "details": DETAILS,
    } for story in stories]}


def shown(story: Story) -> dict[str, Any]:
    """One of Ollama's models."""
    calls = any(answer.calls for answer in story.answers)
    thinks = any(answer.reasoning for answer in story.answers)
    return {
        "modelfile": f"FROM {story.name}\n", "parameters": "", "template": "{{ .Prompt }}", "license": "",
        "details": DETAILS,
        "model_info": {"general.architecture": "scripted", "general.basename": story.name,
                       "scripted.context_length": CONTEXT},
        "capabilities": ["completion", *(["tools"] if calls else []), *(["thinking"] if thinks else [])],
        "modified_at": DATE,
    }


def _script(story: Story) -> bytes:
    """What a scenario means to say: its weights, as it were."""
    return repr(story.answers).encode()


# -- tokens of a request ---------------------------------------------------------------------------------------------


class Count(NamedTuple):
    """Where the tokens of a request are asked for, and how that is answered."""

    api: str
    path: re.Pattern[str]
    asked: Callable[[Mapping[str, Any]], Any]
    """The body -> the request that is counted."""
    tell: Callable[[int], dict[str, Any]]
    given: frozenset[str] = frozenset()
    """What a request lacks that is only counted."""


def _contents(body: Mapping[str, Any]) -> Any:
    return body.get("generateContentRequest", body)


COUNTS: tuple[Count, ...] = (
    Count(MESSAGES, re.compile(r"/v1/messages/count_tokens/?(?=$|[?#])"), lambda body: body,
          lambda count: {"input_tokens": count}, frozenset({"max_tokens"})),
    Count(GEMINI, re.compile(r"/models/(?P<model>[^/:?#]+):countTokens(?=$|[?#])"), _contents,
          lambda count: {"totalTokens": count, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": count}]}),
    Count(RESPONSES, re.compile(r"/responses/input_tokens/?(?=$|[?#])"), lambda body: body,
          lambda count: {"object": "response.input_tokens", "input_tokens": count}, frozenset({"model", "something"})),
    Count(CONVERSE, re.compile(r"/model/(?P<model>[^/?#]+)/count-tokens/?(?=$|[?#])"),
          lambda body: inside(body, "input", "converse"), lambda count: {"inputTokens": count}),
)
"""One row for each format whose server counts."""


def counted(path: str) -> Count | None:
    """The row of a path; None where nothing is counted."""
    return next((row for row in COUNTS if row.path.search(path)), None)


def counting(row: Count, body: Mapping[str, Any], path: str) -> Request:
    """The request whose tokens are asked for.

    Raises:
        RequestError: the server would refuse it.
    """
    inner = row.asked(body)
    found = inner if isinstance(inner, Mapping) else {}
    check(row.api, found, given=row.given)
    request = wire(row.api).read_request(found, path)
    named = row.path.search(path)
    model = named.groupdict().get("model") if named else None
    return replace(request, model=model or request.model)
