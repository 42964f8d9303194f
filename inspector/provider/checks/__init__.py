"""Requests as the real servers check them: a table of members and a few rules for each format."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from inspector.provider.checks import (
    anthropic_messages,
    bedrock_converse,
    gemini_generate,
    gemini_interactions,
    ollama_chat,
    openai_chat,
    openai_responses,
)
from inspector.provider.checks.fields import Field, Flaw, Found, Spellings, brackets, dots, first, plain, says
from inspector.provider.checks.fields import unknown as _unknown
from inspector.provider.checks.rules import RequestError, Rule
from loop_core.wire.servers import CHAT, CONVERSE, GEMINI, MESSAGES, OLLAMA, RESPONSES

CODES: Mapping[Flaw, str] = {
    Flaw.MISSING: "missing_required_parameter",
    Flaw.TYPE: "invalid_type",
    Flaw.VALUE: "invalid_value",
    Flaw.EMPTY: "empty_array",
    Flaw.LONG: "array_above_max_length",
    Flaw.UNSERVED: "unsupported_parameter",
}
"""What is wrong -> OpenAI's code for it."""
BOUNDS: Mapping[Flaw, str] = {Flaw.LOW: "{}_below_min_value", Flaw.HIGH: "{}_above_max_value"}
"""The same for numbers, whose type is named."""


def _code(found: Found) -> str | None:
    if found.field.code and found.flaw is Flaw.UNSERVED:
        return found.field.code
    if found.flaw in BOUNDS:
        return BOUNDS[found.flaw].format("integer" if found.field.types == "integer" else "decimal")
    return CODES.get(found.flaw)


def _openai(found: Found) -> RequestError:
    at = brackets(found.where)
    return RequestError(f"'{at}': {says(found)}", code=_code(found), param=at)


def _dotted(found: Found) -> RequestError:
    return RequestError(f"{dots(found.where)}: {says(found)}")


def _bracketed(found: Found) -> RequestError:
    at = brackets(found.where)
    return RequestError(f"{at}: {says(found)}", param=at)


class _Format(NamedTuple):
    """How one format is checked."""

    fields: tuple[Field, ...]
    rules: tuple[Rule, ...]
    tell: Callable[[Found], RequestError]
    spellings: Spellings = plain
    known: Mapping[str, tuple[str, ...]] = {}
    """Objects in which no other names are permitted."""


FORMATS: Mapping[str, _Format] = {
    CHAT: _Format(openai_chat.FIELDS, openai_chat.RULES, _openai),
    RESPONSES: _Format(openai_responses.FIELDS, openai_responses.RULES, _openai),
    MESSAGES: _Format(anthropic_messages.FIELDS, anthropic_messages.RULES, _dotted,
                      known={"": anthropic_messages.KNOWN}),
    GEMINI: _Format(gemini_generate.FIELDS, gemini_generate.RULES, _bracketed, gemini_generate.spellings,
                    known={"": gemini_generate.KNOWN, "generationConfig": gemini_generate.KNOWN_SETTINGS,
                           "generation_config": gemini_generate.KNOWN_SETTINGS}),
    CONVERSE: _Format(bedrock_converse.FIELDS, bedrock_converse.RULES, _dotted),
    OLLAMA: _Format(ollama_chat.FIELDS, ollama_chat.RULES, _dotted),
    "gemini_interactions": _Format(gemini_interactions.FIELDS, gemini_interactions.RULES, _dotted),
}


_NAMED = re.compile(r"/deployments/|/agents/|/publishers/")
"""Paths of servers that name the model, or the agent, themselves (Azure, Mistral, Vertex)."""


def names_model(path: str) -> frozenset[str]:
    """What a request need not say under this path."""
    return frozenset({"model"}) if _NAMED.search(path) else frozenset()


def check(api: str, body: Mapping[str, Any], *, given: frozenset[str] = frozenset()) -> None:
    """Looks at a request as the server of this format would; members in `given` are not asked for.

    Raises:
        RequestError: the server would refuse it.
    """
    row = FORMATS.get(api)
    if row is None:
        return
    fields = tuple(field for field in row.fields if field.path not in given)
    found = first(body, fields, row.spellings)
    for path, names in row.known.items():
        found = found or _unknown(body, path, names)
    if found is not None:
        raise row.tell(found)
    for rule in row.rules:
        error = rule.find(body) if rule.name not in given else None
        if error is not None:
            raise error


__all__ = ["FORMATS", "check", "names_model"]
