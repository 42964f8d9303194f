"""Reads a model's answer that a log stores in the provider's own shape or in that of LiteLLM, and any provider's words.

A provider's answer is a dump of a client library's object: member names may have underscores, and words may be members
of an enumeration (`FinishReason.STOP`). Many harnesses use LiteLLM for every provider. It writes Chat Completions with
a word of OpenAI's for every answer: `stop` if the provider sent no reason, and for reasons that it does not know or
that report a failure. Newer releases also keep the provider's word if it differs (`native_finish_reason`). Source:
litellm 1.110.2, `types/utils.py` `Choices`, `core_helpers.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from inspector.sessions.reasons import (
    PROVIDER,
    missing_content_reason,
    provider_reason,
    recorder_reason,
    shortened_call_reason,
)
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine
from inspector.sessions.transcripts.chat_messages import pointer_at, take_message
from inspector.sessions.transcripts.member_values import known_text, numbered_objects, object_of, objects_of
from loop_core.json_parser import JsonPath
from loop_core.values import FINISHED, WORDLESS, At, Evidence, Stop, StopReason, Usage
from loop_core.wire import FORMATS, decode_response, wire
from loop_core.wire.body import value_at
from loop_core.wire.failures import StopRow
from loop_core.wire.openai_chat.table import API, STOP_REASONS, read_usage
from loop_core.wire.profiles import native_word

NATIVE = ("provider_specific_fields", "native_finish_reason")
"""The path of the provider's own word in a choice."""
FALLBACK = "stop"
"""The stop word that LiteLLM writes if it has no better one."""
_OTHER_WORDS = re.compile(r"(?:^|[/.])(?:anthropic[/.]|bedrock/|gemini/|vertex_ai/|cohere|claude-|gemini-)")
"""Matches the names of models whose APIs have stop words other than OpenAI's, which LiteLLM maps."""
CALLING = frozenset({"STOP", "completed"})
"""The words for a normal end in APIs that have no word for calls: Gemini's STOP and the `completed` of Responses."""
CALLS: tuple[tuple[JsonPath, str, tuple[str, ...]], ...] = (
    (("choices", 0, "message", "tool_calls"), "id", ("function", "arguments")),
    (("output",), "call_id", ("arguments",)),
)
"""The places of calls in answers of OpenAI's formats, the only ones with arguments as text: the path of the list, the
name of a call's id, and the path of its arguments."""


def take_provider_word(answer: TranscriptAnswer, value: Any, at: At, *path: str | int) -> bool:
    """Sets the stop reason by the word in the provider's answer `value`, at `path` of a row. False if it has no
    word."""
    if isinstance(value, dict) and value.get("object") == "response" and isinstance(value.get("status"), str):
        reason = value_at(value, ("incomplete_details", "reason"))
        word = f"{value['status']}:{reason}" if isinstance(reason, str) and reason else value["status"]
        place = pointer_at(at, *path, "status")
        answer.named_api = "openai_responses"
        take_api_word(answer, word, place, wire("openai_responses").stop_reasons)
        if answer.stop is not None and answer.stop.normalized in FINISHED:  # an item, a refusal or a filter may deny it
            stop = decode_response("openai_responses", json.dumps(value).encode()).stop_reason
            if stop.normalized not in FINISHED:
                answer.stop = stop._replace(evidence=(
                    answer.stop.evidence[0], *(each._replace(at=place) for each in stop.evidence)))
        return True
    for api, word_path in ((each, found) for each in FORMATS for found in wire(each).word_paths):
        word = value_at(value, word_path)
        if type(word) is int and str(word) in wire(api).stop_reasons:  # Gemini's words as numbers
            word = str(word)
        if isinstance(word, str) and word:
            word, place = word.removeprefix("FinishReason."), pointer_at(at, *path, *word_path)
            answer.named_api = api
            take_api_word(answer, word, place, wire(api).stop_reasons)
            return True
    return False


def take_api_word(answer: TranscriptAnswer, word: str, at: At, words: Mapping[str, StopRow]) -> None:
    """Sets the stop reason by the provider's word in the answer's wire format."""
    answer.word, answer.word_at = word, at
    answer.stop = provider_reason(word, at, words, answer.api)
    if answer.stop.normalized is Stop.END_TURN and answer.calls and word in CALLING:
        answer.stop = StopReason(Stop.TOOL_CALL, word, None,
                                 (Evidence(PROVIDER, at, word), Evidence(f"{answer.api}.calls", at, "it holds calls")))


def sent_arguments(response: dict[str, Any], key: str | None) -> tuple[JsonPath, str] | None:
    """The path and the text of a call's arguments in the provider's answer; None if they are not there."""
    for path, name, below in CALLS:
        for number, call in numbered_objects(value_at(response, path)):
            arguments = value_at(call, below)
            if key is not None and isinstance(arguments, str) and call.get(name) == key:
                return (*path, number, *below), arguments
    return None


def litellm_reason(word: str, model: str | None, at: At) -> StopReason:
    """The stop reason of an answer from LiteLLM: the provider's word, or LiteLLM's translation of a word of another
    vocabulary. A word of that other vocabulary, which some routers pass on, is the provider's."""
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
    """Reads the model, token counts and stop word of such an answer."""
    choice = next(iter(objects_of(payload.get("choices"))), {})
    answer.model = known_text(payload.get("model")) or answer.model
    answer.usage = read_usage(object_of(payload.get("usage")), answer.model) or answer.usage
    word, native = known_text(choice.get("finish_reason")), known_text(object_of(choice.get(NATIVE[0])).get(NATIVE[1]))
    answer.word_at = pointer_at(at, *path, "choices", 0, *(NATIVE if native else ("finish_reason",)))
    if native:
        row = STOP_REASONS.get(native) or native_word(native)
        answer.word = native
        answer.stop = provider_reason(native, answer.word_at, {native: row} if row else {}, "native")
    elif word:
        answer.word = word
        answer.stop = litellm_reason(word, model or answer.model, answer.word_at)


# -- Words of recorders that may be any provider's --------------------------------------------------------------------

_VOCABULARIES = ("openai_chat", "anthropic_messages", "gemini_generate", "cohere_chat", "openai_responses",
                 "bedrock_converse")
"""The wire formats whose stop words a recorder may write; the first that has a word decides what it means."""
OWN_WORDS = {
    "tool-calls": StopRow(Stop.TOOL_CALL, None, "AI SDK 5, FinishReason"),
    "content-filter": StopRow(Stop.SAFETY_BLOCKED, None, "AI SDK 5, FinishReason"),
    "interrupted": StopRow(Stop.INTERRUPTED, None, "AI SDK 7, FinishReason: a stream without a signal of its end"),
}
"""Stop word that only the AI SDK has -> its meaning. The semantic conventions and Cohere have `tool_call` too."""


def row_of(word: str) -> StopRow:
    """The stop-reason row of a word, of any API or convention."""
    bare = word.removeprefix("FinishReason.")  # as Python prints a member of an enumeration
    for table in chain((wire(api).stop_reasons for api in _VOCABULARIES), (OWN_WORDS,)):
        # Some instrumentations change the case of the provider's word.
        for spelling in (bare, bare.lower(), bare.upper()):
            if spelling in table:
                return table[spelling]
    return StopRow(Stop.UNKNOWN, None, "no table")


def deciding_word(words: Sequence[str]) -> str | None:
    """The word that counts if an answer has several: a word for a clean end must not hide a cut."""
    return next((word for word in words if row_of(word).stop not in WORDLESS), next(iter(words), None))


def take_word(answer: TranscriptAnswer, word: str, at: At, rule: str, *, empty: bool) -> None:
    """Sets the stop reason by the word of an instrumentation. `empty`: the record has no content of the answer, which
    instrumentations leave out by default, so only the counts show whether the model wrote nothing but reasoning."""
    row, counts = row_of(word), answer.usage or Usage()
    empty = empty and not (counts.input_tokens and counts.visible_tokens == 0)
    answer.word = word
    answer.stop = recorder_reason(row.stop, row.detail, at, word, rule)
    if empty and row.stop in FINISHED:
        answer.stop = missing_content_reason(answer.stop)
    elif row.stop in FINISHED and any(call.arguments is None for call in answer.calls):
        answer.stop = shortened_call_reason(answer.stop)
