"""The provider's stop word and arguments, from the provider's answer as a log stores it, of any API.

The answer is a dump of an object of a client library: member names may have underscores, and words may be members of
an enumeration (`FinishReason.STOP`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inspector.sessions.reasons import PROVIDER, provider_reason
from inspector.sessions.transcripts.answer import TranscriptAnswer
from inspector.sessions.transcripts.chat_messages import pointer_at
from inspector.sessions.transcripts.member_values import object_of
from loop_core.values import At, Evidence, Stop, StopReason
from loop_core.wire import FORMATS, wire
from loop_core.wire.failures import StopRow
from loop_core.wire.openai_responses.table import STOP_REASONS as RESPONSES


def at_path(value: Any, path: tuple[str | int, ...]) -> Any:
    """The value at a path; None if there is none."""
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def take_provider_word(answer: TranscriptAnswer, value: Any, at: At, *path: str | int) -> bool:
    """Sets the stop reason by the word in the provider's answer `value`, at `path` of a row.

    False if there is none.
    """
    if isinstance(value, dict) and value.get("object") == "response" and isinstance(value.get("status"), str):
        reason = at_path(value, ("incomplete_details", "reason"))
        word = f"{value['status']}:{reason}" if isinstance(reason, str) and reason else value["status"]
        place = pointer_at(at, *path, "status")
        _take(answer, "openai_responses", word, place, RESPONSES)
        return True
    for api, word_path in ((each, found) for each in FORMATS for found in wire(each).word_paths):
        word = at_path(value, word_path)
        if type(word) is int and str(word) in wire(api).stop_reasons:  # Gemini's words as numbers
            word = str(word)
        if isinstance(word, str) and word:
            word, place = word.removeprefix("FinishReason."), pointer_at(at, *path, *word_path)
            _take(answer, api, word, place, wire(api).stop_reasons)
            return True
    return False


def _take(answer: TranscriptAnswer, api: str, word: str, at: At, words: Mapping[str, StopRow]) -> None:
    answer.api, answer.word, answer.word_at = api, word, at
    answer.stop = provider_reason(word, at, words, api)
    if answer.stop.normalized is Stop.END_TURN and answer.calls and word in CALLING:
        answer.stop = StopReason(Stop.TOOL_CALL, word, None,
                                 (Evidence(PROVIDER, at, word), Evidence(f"{api}.calls", at, "it holds calls")))


CALLING = frozenset({"STOP", "completed"})
"""The words for a normal end in APIs that have no word for calls: Gemini's STOP and the `completed` of Responses."""

CALLS: tuple[tuple[tuple[str | int, ...], str, tuple[str, ...]], ...] = (
    (("choices", 0, "message", "tool_calls"), "id", ("function", "arguments")),
    (("output",), "call_id", ("arguments",)),
)
"""Where the calls of an answer are in OpenAI's formats, the only ones with arguments as text: the place of the list,
the name of the id in a call, and the place of the arguments there."""


def sent_arguments(response: dict[str, Any], key: str | None) -> tuple[tuple[str | int, ...], str] | None:
    """The place and the text of the arguments of a call in the provider's answer; None if they are not there."""
    for path, name, below in CALLS:
        listed = at_path(response, path)
        for number, call in enumerate(listed if isinstance(listed, list) else ()):
            arguments = at_path(call, below)
            if key is not None and isinstance(arguments, str) and object_of(call).get(name) == key:
                return (*path, number, *below), arguments
    return None
