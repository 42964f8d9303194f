"""Session files of pi and of agents that use it (OpenClaw): `~/.pi/agent/sessions/…`, versions 1 to 3; and the events
that `pi --mode json` prints.

Entries form a tree (`id`, `parentId`), in version 1 a sequence. The stop words are pi's own; since pi 0.83 the
provider's word is stored too (`rawStopReason`). Labels, changes of the model or of thinking, and compactions are
entries that no request contained. Each event about a message repeats it, and only the last (`message_end`) has it in
full: before that, pi's stop word is a default, and the arguments of a call are the part that could be parsed. Sources:
pi's `docs/session-format.md` and `docs/json.md`; the words are those of pi's agent loop.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any

from inspector.sessions.importers.records import first_look
from inspector.sessions.notices import Notice, share
from inspector.sessions.reasons import (
    PROVIDER,
    RECORDER,
    error_reason,
    is_recorders,
    is_temporary,
    table_reason,
    unrecorded_reason,
)
from inspector.sessions.recording import Options, SessionAbout
from inspector.sessions.stored_rows import store_result
from inspector.sessions.traffic import written_status
from inspector.sessions.transcripts import Fields, TranscriptReader, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import InterimRow, TranscriptAnswer, TranscriptLine, TreePlace, text_of
from inspector.sessions.transcripts.chat_messages import pointer_at, take_call
from inspector.sessions.transcripts.ending_rules import wordless_notice
from inspector.sessions.transcripts.member_values import counts_of, input_count, known_text, numbered_objects, object_of
from loop_core.values import (
    WORDLESS,
    At,
    Evidence,
    OpaquePart,
    ProviderError,
    ReasoningPart,
    Stop,
    StopReason,
    TextPart,
    ToolResultPart,
    Usage,
)
from loop_core.wire import wire
from loop_core.wire.failures import RETRYABLE_STATUS, RETRYABLE_WORDS, StopRow

# -- The fields of an entry --------------------------------------------------------------------------------------------

STOPS: Mapping[str, StopRow] = {
    "stop": StopRow(Stop.END_TURN, None, "pi's agent loop: end_turn, pause_turn and stop_sequence"),
    "length": StopRow(Stop.MAX_TOKENS, None, "pi's agent loop: max_tokens"),
    "toolUse": StopRow(Stop.TOOL_CALL, None, "pi's agent loop: tool_use"),
    "error": StopRow(Stop.ERROR, "fatal", "pi's agent loop: refusal, sensitive, and failures of its own"),
    "aborted": StopRow(Stop.CANCELLED, None, "pi docs/session-format.md"),
}
"""Stop word of pi, which maps the providers' words before it stores them -> its meaning."""


UNMAPPED = re.compile(r"(?:Provider finish_reason|Unhandled stop reason): (?P<word>\w+)\Z")
"""Matches the error that pi writes for a word of the provider that it does not map to one of its own."""
RECEIVED = "\n\nReceived arguments:\n"
"""Precedes the model's own text in the error of a call whose arguments were not JSON; they are `{}` then (pi 1.3)."""
CLOSED = frozenset({"openai_responses", "gemini_generate"})
"""The wire formats in which `stop` without counts is only pi's default: pi has not read the end of the answer, which
has the counts. Releases before 0.83 do not read `response.incomplete` of Responses, nor an error in Gemini's stream."""
CALL_WORDS = CLOSED | {"anthropic_messages", "bedrock_converse"}
"""The wire formats in which `stop` beside calls is only pi's default, because complete calls have another word. In Chat
Completions some servers send `stop` with calls."""


def take_content(answer: TranscriptAnswer, content: Any, line: TranscriptLine, at: At) -> None:
    """Reads the parts of an answer. Arguments are the row's JSON, which pi has parsed and perhaps repaired."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    path = ("message", "content") if "message" in line.value else ("content",)
    for number, block in numbered_objects(blocks):
        kind = block.get("type")
        slice_at = partial(slice_of, line.data, *path, number)
        if kind == "text" and isinstance(block.get("text"), str):
            answer.parts.append(TextPart(block["text"]))
        elif kind == "thinking" and isinstance(block.get("thinking"), str):
            answer.parts.append(ReasoningPart(block["thinking"]))
        elif kind == "toolCall":
            given = (known_text(block.get("argumentsError")) or "").partition(RECEIVED)[2]
            take_call(answer, {**block, "arguments": given} if given else block, line, at, *path, number)
        else:
            answer.parts.append(OpaquePart(str(kind), slice_at() or "{}"))


def take_end(answer: TranscriptAnswer, message: dict[str, Any], at: At, *path: str) -> None:
    """Reads the recorder's stop word, and the provider's if it is stored too, of the message at `path` of a row."""
    word = message.get("stopReason")
    answer.word_at = place = pointer_at(at, *path, "stopReason")
    if not isinstance(word, str) or not word:
        return  # inferred later, from the following rows
    row = STOPS.get(word)
    if row.stop is Stop.ERROR if row else isinstance(message.get("errorMessage"), str):
        answer.error = _error(known_text(message.get("errorMessage")) or "")
        answer.stop = error_reason(answer.error, place, word)
    else:
        answer.stop = table_reason(word, STOPS, place, "pi.stop_reasons")
    raw, in_message = message.get("rawStopReason"), UNMAPPED.match(answer.error.message) if answer.error else None
    if isinstance(raw, str) and raw:
        _take_raw(answer, answer.stop, raw, pointer_at(at, *path, "rawStopReason"))
    elif in_message is not None:
        _take_raw(answer, answer.stop, in_message["word"], pointer_at(at, *path, "errorMessage"))
    elif word == "stop" and answer.api in CALL_WORDS and answer.calls:
        answer.stop = StopReason(Stop.INTERRUPTED, None, None, (Evidence(RECORDER, place, word),))
    elif word == "stop" and answer.api in CLOSED and answer.parts and not any(answer.usage or ()):
        answer.stop = unrecorded_reason(place)


def _take_raw(answer: TranscriptAnswer, stop: StopReason, raw: str, at: At) -> None:
    """Adds the provider's own word. It counts if it is for a cut, a filter, a pause or a failure, which pi's word may
    hide. A clean or unknown word does not replace pi's, because pi knows the calls, an abort and a failure after the
    word. If both are errors, pi's counts, because it has a message."""
    table = wire(answer.api).stop_reasons
    # pi joins the status of the Responses API and its reason with a dot.
    row = table.get(raw) or table.get(raw.replace(".", ":", 1))
    provider = Evidence(PROVIDER, at, raw)
    is_known = stop.normalized == Stop.CANCELLED or (row is not None and row.stop == stop.normalized == Stop.ERROR)
    if row is not None and row.stop not in WORDLESS and not is_known:
        answer.word, answer.error, answer.word_at = raw, None, at
        answer.stop = StopReason(row.stop, raw, row.detail, (provider, Evidence(f"{answer.api}.stop_reasons", at, raw)))
    elif stop.normalized not in (Stop.ERROR, Stop.CANCELLED):
        answer.word, answer.stop = raw, stop._replace(raw=raw, evidence=(provider, stop.evidence[-1]))


def _error(message: str) -> ProviderError:
    """The error in pi's message about a failure; the message may begin with the HTTP status."""
    words = message.replace(":", " ").replace('"', " ").lower().split()
    status = written_status(words[0]) if words else None
    retryable = status in RETRYABLE_STATUS or not RETRYABLE_WORDS.isdisjoint(words) or (
        status is None and is_temporary(message))
    return ProviderError(message, None, None if status is None else str(status), retryable)


def usage_of(usage: Any, api: str) -> Usage | None:
    """Token counts in pi's names. The input excludes cached tokens, unless the total shows that it includes them."""
    if not isinstance(usage, dict):
        return None
    input_tokens, output_tokens, cached, written, total = counts_of(
        usage, "input", "output", "cacheRead", "cacheWrite", "totalTokens")
    # A total that equals input plus output shows that cached tokens are part of the input.
    if total is None or total != (input_tokens or 0) + (output_tokens or 0):
        input_tokens = input_count(api, input_tokens, cached, written)
    return Usage(input_tokens, output_tokens, None, cached, written)


def result_text(value: Any, number: int) -> str:
    """The text of a result row."""
    return text_of(value["message"].get("content"))


def interim_row(line: TranscriptLine, role: str, message: dict[str, Any]) -> InterimRow | None:
    """The row for a message between two answers; None if it was never sent to a model."""
    words = text_of(message.get("content"))
    if role == "toolResult":
        key, name = known_text(message.get("toolCallId")), known_text(message.get("toolName"))
        part = ToolResultPart(key, name, words, message.get("isError") is True)
        return InterimRow(line.number, "", (store_result(part, line.place, 0, result_text),))
    if role == "bashExecution":
        if message.get("excludeFromContext") is True:  # a command typed with `!!`, whose output only the user sees
            return None
        return InterimRow(line.number, f"{message.get('command', '')}\n{message.get('output', '')}", own=True)
    return InterimRow(line.number, words, own=role != "user")


# -- The tree of entries -----------------------------------------------------------------------------------------------

APIS: Mapping[str, str] = {
    "anthropic-messages": "anthropic_messages",
    "openai-completions": "openai_chat",
    "mistral-conversations": "openai_chat",
    "openai-responses": "openai_responses",
    "azure-openai-responses": "openai_responses",
    "openai-codex-responses": "openai_responses",
    "google-generative-ai": "gemini_generate",
    "google-gemini-cli": "gemini_generate",
    "google-vertex": "gemini_generate",
    "bedrock-converse-stream": "bedrock_converse",
    "ollama": "ollama_chat",
    "ollama-chat": "ollama_chat",
}
"""pi's name of a wire format -> the id of the wire format."""
NO_EXCHANGE = frozenset({
    "session", "model_change", "thinking_level_change", "label", "session_info", "custom", "compaction",
    "branch_summary", "context_edit", "usage",
    # events of `pi --mode json`
    "agent_start", "agent_end", "agent_settled", "turn_start", "turn_end", "message_start", "message_update",
    "queue_update",
    "tool_execution_start", "tool_execution_update", "tool_execution_end", "auto_retry_start", "auto_retry_end",
    "compaction_start", "compaction_end", "auto_compaction_start", "auto_compaction_end",
})
COMPACTED = ("compaction_end", "auto_compaction_end")
MESSAGES = frozenset({"message", "custom_message", "message_end"})
FIELDS: Fields = {
    "": {"type": (str,), "id": (str,), "parentId": (str,), "message": (dict,)},
    "message": {
        "role": (str,), "content": (list, str), "api": (str,), "model": (str,), "usage": (dict,), "stopReason": (str,),
        "rawStopReason": (str,), "errorMessage": (str,), "toolCallId": (str,), "toolName": (str,), "isError": (bool,),
    },
}


def sniff(head: bytes, path: str) -> int:
    """Recognises the header in the first line; without one, a message by its members, in the tree or as an event."""
    parsed_head = first_look(head)
    first = parsed_head.first
    if isinstance(first, dict) and first.get("type") == "session" and "id" in first:
        return 100 if "cwd" in first or "version" in first else 0
    return 80 if any(map(_is_message, parsed_head.objects)) else 0


def _is_message(value: dict[str, Any]) -> bool:
    kind, message = value.get("type"), value.get("message")
    return isinstance(message, dict) and "role" in message and (
        kind in ("message_start", "message_end") or (kind == "message" and {"id", "parentId"} <= value.keys()))


OPENCLAW_FOLDER = ".openclaw"
"""The name of the folder of OpenClaw, which writes pi's format; in other folders, its entries identify it."""


class _Session(TranscriptReader):
    name, agent, fields = "pi", "pi", FIELDS
    several_apis = steered = True

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.last = TreePlace(None)
        self.labels: Counter[str] = Counter()
        self.begun = 0
        """The line of the event with which the current answer began; 0 after its end."""
        self.title = ""
        self.header: object = None
        """The id of the first row."""
        self.fork: object = None
        """The file of the session that this session continues."""
        if OPENCLAW_FOLDER in os.path.normpath(path).split(os.sep):
            self.writer = "openclaw"

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        if line.value.get("type") in MESSAGES:
            return self._message(line, line.value, place)
        lines.count(line.value.get("type"), NO_EXCHANGE)
        if line.value.get("type") == "session":
            self.header, self.fork = line.value.get("id"), line.value.get("parentSession")
        self._other(line, line.value)
        return place

    def keep(self, line: TranscriptLine, place: TreePlace) -> None:
        """Also stores the last place: version 1 has no parents, and in OpenClaw the header is a parent."""
        super().keep(line, place)
        if line.value.get("type") != "label":
            self.last = place

    def above(self, value: dict[str, Any]) -> TreePlace:
        """The place after the parent entry; else after the previous one, unless the entry begins a tree."""
        if "parentId" not in value:
            return self.last  # version 1: each entry follows the previous one
        parent = value["parentId"]
        if not isinstance(parent, str):
            return TreePlace(None)
        if parent == self.header:
            self.writer = "openclaw"  # pi's first entries have no parent
        calls = self.last.answer.calls if self.last.answer is not None else ()
        if hash(parent) not in self.places and any(call.id == parent for call in calls):
            return self.last  # OpenClaw: the parent of a result is its call
        return self.parent(parent) or self.last.across_gap(object_of(value.get("message")).get("role") == "assistant")

    def _other(self, line: TranscriptLine, value: dict[str, Any]) -> None:
        kind = value.get("type")
        if kind == "session_info" and isinstance(value.get("name"), str):
            self.title = value["name"]
        elif kind == "label" and isinstance(value.get("label"), str):
            self.labels[value["label"]] += 1
        elif kind == "message_start" and object_of(value.get("message")).get("role") == "assistant":
            self.begun = line.number
        elif kind == "compaction" or (kind in COMPACTED and value.get("result")):
            before = object_of(value.get("result", value)).get("tokensBefore")
            size = f" ({before:,} tokens before)" if type(before) is int else ""
            self.compacted = f"line {line.number}: the history was compacted before this answer{size}"

    def _message(self, line: TranscriptLine, value: dict[str, Any], where: TreePlace) -> TreePlace:
        custom = value.get("type") == "custom_message"
        message = value if custom else value.get("message")
        role = message.get("role", "custom" if custom else None) if isinstance(message, dict) else None
        if not isinstance(message, dict) or not isinstance(role, str):
            self.remarks["are of an unexpected shape"] += 1
            return where
        if role == "assistant":
            return self._assistant(line, message, where)
        row = interim_row(line, role, message)
        return where if row is None else where.after(row)

    def _assistant(self, line: TranscriptLine, message: dict[str, Any], where: TreePlace) -> TreePlace:
        self.begun = 0
        key = line.value.get("id")
        name = f"{key if isinstance(key, str) else 'line'}:{line.number}"
        answer = self.begin(name, APIS.get(str(message.get("api"))), message.get("model"), where, line)
        at = answer.take(line)
        take_content(answer, message.get("content"), line, at)
        answer.usage = usage_of(message.get("usage"), answer.api)
        take_end(answer, message, at, "message")
        self.note_compaction(answer)
        return TreePlace(self.add(answer))

    def summarise(self) -> None:
        super().summarise()
        own = sum(answer.word is None and is_recorders(answer.stop) for answer in self.answers)
        self.reading.notices[:0] = (*share(
            own, len(self.answers), "stop reasons are pi's own words for the providers', which are not in the file"),
            *wordless_notice(self.answers, "pi"))
        notices = self.reading.notices
        if self.begun:
            notices.append(Notice(": an answer begins here, and its end is not in the file: it was not read",
                                  at=f"line {self.begun}"))
        if self.labels:
            notices.append(f"the user's labels: {', '.join(sorted(self.labels)[:20])}")
        if isinstance(self.header, str):
            # A file is named TIME_ID.jsonl.
            parent = os.path.basename(self.fork).removesuffix(".jsonl") if isinstance(self.fork, str) else ""
            self.reading.about = SessionAbout(self.title, id=self.header, parent=parent.rpartition("_")[2])


reader = _Session.of
