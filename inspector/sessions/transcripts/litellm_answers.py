"""Answers of LiteLLM, by which many harnesses speak to every provider, in the shape of Chat Completions.

LiteLLM writes a word of OpenAI's for every answer. It writes `stop` if the provider sent no reason, and for reasons
that it does not know or that report a failure. Newer releases also keep the provider's word if it differs
(`native_finish_reason`). Source: litellm 1.110.2, `types/utils.py` `Choices`, `core_helpers.py`.
"""

from __future__ import annotations

import re
from typing import Any

from inspector.sessions.reasons import provider_reason, recorder_reason
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine
from inspector.sessions.transcripts.chat_messages import pointer_at, take_message, usage_of
from inspector.sessions.transcripts.member_values import known_text, object_of, objects_of
from loop_core.values import At, StopReason
from loop_core.wire.openai_chat.table import API, STOP_REASONS
from loop_core.wire.profiles import native_word

NATIVE = ("provider_specific_fields", "native_finish_reason")
"""The path of the provider's own word in a choice."""
FALLBACK = "stop"
"""The stop word that LiteLLM writes if it has no better one."""
_OTHER_WORDS = re.compile(r"(?:^|[/.])(?:anthropic[/.]|bedrock/|gemini/|vertex_ai/|cohere|claude-|gemini-)")
"""Matches the names of models whose APIs have stop words other than OpenAI's, which LiteLLM maps."""


def litellm_reason(word: str, model: str | None, at: At) -> StopReason:
    """The stop reason of an answer from LiteLLM: the provider's word, or LiteLLM's own translation of another
    vocabulary. A word of that vocabulary itself, which some routers pass on, is the provider's again."""
    name = (model or "").lower()
    row = STOP_REASONS.get(word)
    own = native_word(word) if row is None and _OTHER_WORDS.search(name) is not None else None
    if own is not None:
        return provider_reason(word, at, {word: own}, "native")
    # OpenRouter and providers with OpenAI's words need no translation; only `stop` may still be LiteLLM's own.
    if row is None or (word != FALLBACK and ("openrouter/" in name or _OTHER_WORDS.search(name) is None)):
        return provider_reason(word, at, STOP_REASONS, API)
    return recorder_reason(row.stop, row.detail, at, word, "litellm.finish_reasons")


def take_litellm(
    answer: TranscriptAnswer, payload: dict[str, Any], model: str | None, line: TranscriptLine, at: At, *path: str
) -> None:
    """Reads the whole Chat Completions answer at `path` of a row. `model` is the requested model."""
    choice = next(iter(objects_of(payload.get("choices"))), {})
    place: tuple[Any, ...] = (*path, "choices", 0)
    take_message(answer, object_of(choice.get("message")), line, at, *place, "message")
    take_litellm_end(answer, payload, model, at, *path)


def take_litellm_end(answer: TranscriptAnswer, payload: dict[str, Any], model: str | None, at: At, *path: str) -> None:
    """Reads its model, token counts and stop word."""
    choice = next(iter(objects_of(payload.get("choices"))), {})
    answer.model = known_text(payload.get("model")) or answer.model
    answer.usage = usage_of(payload.get("usage")) or answer.usage
    word, native = known_text(choice.get("finish_reason")), known_text(object_of(choice.get(NATIVE[0])).get(NATIVE[1]))
    answer.word_at = pointer_at(at, *path, "choices", 0, *(NATIVE if native else ("finish_reason",)))
    if native:
        row = STOP_REASONS.get(native) or native_word(native)
        answer.word = native
        answer.stop = provider_reason(native, answer.word_at, {native: row} if row else {}, "native")
    elif word:
        answer.word = word
        answer.stop = litellm_reason(word, model or answer.model, answer.word_at)
