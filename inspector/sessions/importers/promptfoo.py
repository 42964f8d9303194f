"""Results of promptfoo (`promptfoo eval -o out.json`, or its database): each is one answer to one request.

The stop word (`finishReason`) is promptfoo's translation for OpenAI and Anthropic, and the provider's in lower case for
others. For Responses, promptfoo stores the provider's object (`raw`) instead. Calls of Claude and of Bedrock's Converse
are JSON in the text. A failed assertion (`error` beside a response without one) is no failure of the request. Sources:
promptfoo 0.121 `util/finishReason.ts`, and 36 results that it wrote over three APIs; the database of promptfoo 0.123.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from inspector.sessions.importers import SQLITE
from inspector.sessions.importers.database import records_of, snapshot
from inspector.sessions.importers.records import first_look, list_pieces, number_records, object_lines
from inspector.sessions.importers.span_messages import SpanMessage, load_json, message_of, take_output
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.stored_rows import UnbuiltRecord
from inspector.sessions.traffic import loads, written_status
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, text_of
from inspector.sessions.transcripts.chat_messages import ChatReader, pointer_at
from inspector.sessions.transcripts.member_values import api_of, cap_of, known_text, object_of, objects_of, usage_in
from inspector.sessions.transcripts.provider_answers import take_provider_word, take_word
from loop_core.values import At

APIS: Mapping[str, str] = {
    "openai:chat": "openai_chat", "openai:responses": "openai_responses", "anthropic:messages": "anthropic_messages",
}
"""Beginning of a provider's id in promptfoo -> its wire format."""
FILTERED = "Content filtered by provider"
"""The text that promptfoo writes instead of a text that a filter left out."""
CALLS_IN_TEXT = re.compile("anthropic:|bedrock:converse:|(?:bedrock|vertex):.*claude")
"""Matches the ids of providers whose calls promptfoo writes into the text; the text of others has no calls."""
_BLOCK = {"type", "id", "name", "input"}
"""The members of a call that promptfoo writes into the text."""
THOUGHT = re.compile(r"(?s)Thinking: (?:(.*?)\nSignature: [^\n]*|(.*?))(?:\n\n|\Z)")
"""Matches reasoning, which promptfoo writes before the text: Claude's with a signature, others' up to an empty line."""
FIELDS: Fields = {"": {"provider": (dict, str), "prompt": (dict,), "response": (dict,), "error": (str,)}}


COLUMNS = ("provider", "prompt", "response", "error")
"""The columns of a result in the database that are read; all but the last hold JSON."""


def sniff(head: bytes, path: str) -> int:
    """Recognises an evaluation with its id, or a result."""
    first = object_of(first_look(head).first)
    return 96 if {"evalId", "results"} <= first.keys() or {"promptIdx", "testCase", "provider"} <= first.keys() else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every result."""
    reader = _Results(path, options)
    if data.startswith(SQLITE):
        return reader.read_records(number_records(_rows(path)))
    first = object_of(first_look(data).first)
    reader.caps = _caps(data)
    if "promptIdx" in first:
        return reader.read_records(number_records(object_lines(data) or [data]))
    return reader.read_records(list(list_pieces(data, "results", "results")))


def _rows(path: str) -> Iterator[UnbuiltRecord]:
    with snapshot(path) as database:
        rows = database.execute("SELECT * FROM eval_results ORDER BY rowid")
        yield from records_of(rows, COLUMNS, frozenset(COLUMNS[:-1]))


def _caps(data: bytes) -> dict[str, int]:
    """Label or id of a provider -> the output cap in the settings of the evaluation, unless there are several."""
    try:
        config = object_of(object_of(loads(data)).get("config"))
    except ValueError:
        return {}
    found: dict[str, set[int | None]] = {}
    for each in objects_of(config.get("providers")):
        name = known_text(each.get("label")) or known_text(each.get("id")) or ""
        found.setdefault(name, set()).add(cap_of(object_of(each.get("config"))))
    return {name: cap for name, caps in found.items() if len(caps) == 1 and (cap := next(iter(caps)))}


class _Results(ChatReader):
    name, agent, fields = "promptfoo", "promptfoo", FIELDS
    unit, row_word = "result", ("a result", "results")
    words = "stop reasons are promptfoo's own (finishReason), or the provider's if the result holds its object (raw)"

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.caps: dict[str, int] = {}

    def above(self, value: dict[str, Any]) -> TreePlace:
        """An empty place, because no result follows another one."""
        return TreePlace(None)

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """Reads one result: its prompt and its answer."""
        value = line.value
        provider, response = value.get("provider"), object_of(value.get("response"))
        ident = known_text(object_of(provider).get("id")) or known_text(provider) or ""
        label = known_text(object_of(provider).get("label")) or ident
        place = self.say(line, place, _prompt(object_of(value.get("prompt")).get("raw")))
        answer = self.answer(line, place, model=ident.split(":")[-1])
        answer.session = f"{label} · {line.number}"  # unique: equal requests of an evaluation are no retries
        answer.named_api = api_of(APIS, ident) or answer.named_api
        answer.cap = cap_of(object_of(object_of(provider).get("config"))) or self.caps.get(label)
        at = answer.word_at = answer.take(line)
        error = known_text(response.get("error")) or (None if response else known_text(value.get("error")))
        if error is not None:
            status = written_status(object_of(object_of(response.get("metadata")).get("http")).get("status"))
            answer.fail(error, pointer_at(at, *(("response",) if response else ()), "error"),
                        status if status is None or status >= 400 else None)
        else:
            _take_answer(answer, response, at, CALLS_IN_TEXT.match(ident) is not None)
        return TreePlace(answer)


def _take_answer(answer: TranscriptAnswer, response: dict[str, Any], at: At, calls_in_text: bool) -> None:
    raw, word = object_of(load_json(response.get("raw"))), known_text(response.get("finishReason"))
    counts = object_of(response.get("tokenUsage"))
    counts = {**counts, **object_of(counts.get("completionDetails"))}
    answer.usage = usage_in(counts, "prompt", "completion", "reasoning")
    if raw.get("object") == "response":
        for item in objects_of(raw.get("output")):
            take_output(answer, message_of(item), at)
        take_provider_word(answer, raw, at, "response", "raw")
        return
    output, thought = response.get("output"), THOUGHT.match(str(response.get("output")))
    if isinstance(output, str) and thought and (thought[1] or (answer.usage and answer.usage.reasoning_tokens)):
        answer.add_thought(thought[1] or thought[2])
        output = output[thought.end() :]
    take_output(answer, _message(output, calls_in_text), at)
    if word is not None:
        answer.word_at = pointer_at(at, "response", "finishReason")
        take_word(answer, word, answer.word_at, "promptfoo.finish_reasons", empty=False)


def _message(output: Any, calls_in_text: bool) -> SpanMessage:
    """The answer in an output: a text, perhaps with calls as JSON; the calls, or the message of a client."""
    if isinstance(output, list) and objects_of(output) and all("function" in each for each in objects_of(output)):
        return message_of({"tool_calls": output})
    members = object_of(output)
    if members.keys() == {"name", "arguments"}:  # the oldest form of calls in Chat Completions
        return message_of({"function_call": members})
    if "role" in members:
        return message_of(members)
    if not isinstance(output, str):
        return SpanMessage("", "" if output is None else json.dumps(output, ensure_ascii=False))
    pieces = output.split("\n\n") if calls_in_text else []
    blocks = [block for block in map(object_of, map(load_json, pieces)) if _is_call(block)]
    text = "\n\n".join(piece for piece in pieces if not _is_call(object_of(load_json(piece))))
    return message_of({"content": [{"type": "text", "text": text}, *blocks]}) if blocks else SpanMessage(
        "", "" if output == FILTERED else output)


def _is_call(block: dict[str, Any]) -> bool:
    return block.get("type") == "tool_use" and block.keys() >= _BLOCK


def _prompt(raw: Any) -> str:
    """The last message of the user in a prompt, which is a text or messages as JSON."""
    listed = objects_of(load_json(raw))
    asked = [text_of(each.get("content")) for each in listed if each.get("role") == "user"]
    return asked[-1] if asked else str(raw or "")
