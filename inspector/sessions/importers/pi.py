"""Session files of pi and of what was made from it (OpenClaw): `~/.pi/agent/sessions/…`, versions 1 to 3.

Owns their tree (`id`, `parentId`; version 1 has none and is a line) and their words for the end of an answer, which are
pi's and no provider's. A label, a change of model or of thinking, a compaction are entries of the tree that no request
carried. Source: pi's `docs/session-format.md`; the words are those of seed 002.

Further down: the fields of pi's entries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any

from inspector.sessions.recording import ODD, About, Exchange, Options, Reading
from inspector.sessions.transcripts import provenance
from inspector.sessions.transcripts.answer import Answer, Said, Where
from inspector.sessions.transcripts.inference import infer
from inspector.sessions.transcripts.jsonl import Fields, Line, Lines, slice_of
from inspector.sessions.transcripts.refusals import connection_lost
from loop_core.errors import CallerError
from loop_core.values import (
    ArgsForm,
    At,
    CallKind,
    Evidence,
    Finding,
    OpaquePart,
    ProviderError,
    ReasoningPart,
    Severity,
    Stop,
    TextPart,
    ToolCall,
    ToolResultPart,
    Usage,
)
from loop_core.wire.base import Mapped
from loop_core.wire.failures import RETRYABLE_STATUS, RETRYABLE_WORDS, classify
from loop_core.wire.profiles import Chosen, choose, named

# -- The fields of pi's entries --------------------------------------------------------------------------------------
# An answer's parts, usage and end, and what stands between two answers.
# Pure functions of one entry; the tree of entries is the importer's.

STOPS: Mapping[str, Mapped] = {
    "stop": Mapped(Stop.END_TURN, None, "seed 002: end_turn, pause_turn and stop_sequence"),
    "length": Mapped(Stop.MAX_TOKENS, None, "seed 002: max_tokens"),
    "toolUse": Mapped(Stop.TOOL_CALL, None, "seed 002: tool_use"),
    "error": Mapped(Stop.ERROR, "fatal", "seed 002: refusal, sensitive, and failures of its own"),
    "aborted": Mapped(Stop.CANCELLED, None, "pi docs/session-format.md"),
}
"""pi's words; it maps the providers' before it writes them down."""


def take_content(answer: Answer, content: Any, line: Line, at: At) -> None:
    """The parts of an answer. Arguments are the JSON of the row: pi has parsed, and perhaps mended, what came."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    path = ("message", "content") if "message" in line.value else ("content",)
    for number, block in enumerate(blocks if isinstance(blocks, list) else ()):
        if not isinstance(block, dict):
            continue
        kind = block.get("type")
        slice_at = partial(slice_of, line.data, *path, number)
        if kind == "text" and isinstance(block.get("text"), str):
            answer.parts.append(TextPart(block["text"]))
        elif kind == "thinking" and isinstance(block.get("thinking"), str):
            answer.parts.append(ReasoningPart(block["thinking"], text(block.get("thinkingSignature"))))
        elif kind == "toolCall":
            given = block.get("arguments")
            arguments = given if isinstance(given, str) else None if given is None else slice_at("arguments")
            form = ArgsForm.STRING if isinstance(given, str) else ArgsForm.OBJECT
            here = At(at.part, at.start, at.end, f"/{'/'.join(path)}/{number}")
            answer.parts.append(
                ToolCall(text(block.get("id")), text(block.get("name")) or "", arguments, True,
                         CallKind.FUNCTION, form, at=here)
            )
        else:
            answer.parts.append(OpaquePart(str(kind), slice_at() or "{}"))


def take_end(answer: Answer, message: dict[str, Any], at: At) -> None:
    """The recorder's word, in our vocabulary."""
    word = message.get("stopReason")
    place = At(at.part, at.start, at.end, "/message/stopReason")
    answer.word_at = place
    if not isinstance(word, str) or not word:
        return  # inferred when what follows is known
    row = STOPS.get(word)
    if row.stop is Stop.ERROR if row else isinstance(message.get("errorMessage"), str):
        answer.error = _error(text(message.get("errorMessage")) or "")
        stop, detail, rule = classify(answer.error)
        answer.stop = provenance.said_by_recorder(stop, detail, place, word, rule)
    elif row is None:
        answer.stop = provenance.said_by_recorder(Stop.UNKNOWN, None, place, word, "unknown_word")
    else:
        answer.stop = provenance.said_by_recorder(row.stop, row.detail, place, word, "pi.stop_reasons")


def _error(message: str) -> ProviderError:
    """What pi wrote down of a failure: a message that may begin with the HTTP status."""
    words = message.replace(":", " ").replace('"', " ").lower().split()
    status = int(words[0]) if words and words[0].isdigit() and len(words[0]) == 3 else None
    retryable = status in RETRYABLE_STATUS or not RETRYABLE_WORDS.isdisjoint(words) or connection_lost(message)
    return ProviderError(message, None, None if status is None else str(status), retryable)


def usage_of(usage: Any) -> Usage | None:
    """Counts of tokens, by pi's names."""
    if not isinstance(usage, dict):
        return None
    counts = [usage.get(name) for name in ("input", "output", "cacheRead")]
    given, made, cached = (count if type(count) is int else None for count in counts)
    return Usage(given, made, None, cached)


def said(line: Line, role: str, message: dict[str, Any]) -> Said | None:
    """A message between two answers; None where no model was told of it."""
    content = message.get("content")
    words = content if isinstance(content, str) else "\n".join(_texts(content))
    if role == "toolResult":
        key, name = text(message.get("toolCallId")), text(message.get("toolName"))
        part = ToolResultPart(key, name, words, message.get("isError") is True)
        return Said(line.number, "", (part,))
    if role == "bashExecution":
        if message.get("excludeFromContext") is True:
            return None
        return Said(line.number, f"{message.get('command', '')}\n{message.get('output', '')}", own=True)
    return Said(line.number, words, own=role != "user")


def _texts(content: Any) -> list[str]:
    if not isinstance(content, list):
        return []
    return [
        block["text"] if isinstance(block.get("text"), str) else f"[{block.get('type')}]"
        for block in content if isinstance(block, dict)
    ]


def text(value: Any) -> str | None:
    """A text that is there and not empty."""
    return value if isinstance(value, str) and value else None

NAME = "pi"
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
"""pi's names of wire formats."""
ASSUMED = "openai_chat"
"""Taken where a message does not say what it was spoken in; nothing of the transcript depends on it."""
PASSED = frozenset({
    "session", "model_change", "thinking_level_change", "label", "session_info", "custom", "compaction",
    "branch_summary",
})
"""Entries that carry nothing of an exchange."""
FIELDS: Fields = {
    "": {"type": (str,), "id": (str,), "parentId": (str,), "message": (dict,)},
    "message": {
        "role": (str,), "content": (list, str), "api": (str,), "model": (str,), "usage": (dict,), "stopReason": (str,),
        "errorMessage": (str,), "toolCallId": (str,), "toolName": (str,), "isError": (bool,),
    },
}
"""What is read of an entry, and the types that it can have."""


def read(data: bytes, path: str, options: Options) -> Reading:
    """Every answer in the file, those of all branches."""
    return _Session(path, options).read(data)


class _Session:
    """One file being read."""

    def __init__(self, path: str, options: Options) -> None:
        self.path, self.options = path, options
        self.reading = Reading()
        self.answers: list[Answer] = []
        self.places: dict[str, Where] = {}
        self.last = Where(None)
        self.told: Counter[str] = Counter()
        self.labels: Counter[str] = Counter()
        self.compacted: str | None = None
        self.chosen: dict[tuple[str, str | None], Chosen] = {}
        self.assumed = 0
        self.title = ""

    def read(self, data: bytes) -> Reading:
        lines = Lines(data, FIELDS)
        for line in lines:
            value = line.value
            key = value.get("id")
            if isinstance(key, str) and key in self.places:
                self.told["repeat an entry before them (same id)"] += 1
                continue
            where = self._above(value)
            try:
                if value.get("type") in ("message", "custom_message"):
                    where = self._message(line, value, where)
                else:
                    lines.count(value.get("type"), PASSED)
                    self._other(line, value)
            except ODD as why:
                lines.lost(line.number, why)
            if isinstance(key, str):
                self.places[key] = where  # OpenClaw's first entries name the header as their parent
            if value.get("type") != "label":
                self.last = where
        for answer in self.answers:
            answer.stop = answer.stop or infer(answer, frozenset())
        for answer in self.answers:
            self.reading.exchanges.append(self._exchange(answer))
            self.reading.answers += answer.answers()
        lines.report(self.reading)
        self.reading.masked = lines.masked
        self._summary()
        return self.reading

    # -- entries ---------------------------------------------------------------------------------------------------

    def _above(self, value: dict[str, Any]) -> Where:
        if "parentId" not in value:
            return self.last  # version 1: each entry follows the one before
        parent = value["parentId"]
        if not isinstance(parent, str):
            return Where(None)
        found = self.places.get(parent)
        if found is None:
            if parent not in self._calls_of_last():
                self.told["name a parent that is not in the file before them"] += 1
                return Where(None)
            return self.last  # OpenClaw: a result names its call
        return found

    def _calls_of_last(self) -> set[str | None]:
        answer = self.last.answer
        return {call.id for call in answer.calls} if answer is not None else set()

    def _other(self, line: Line, value: dict[str, Any]) -> None:
        kind = value.get("type")
        if kind == "session_info" and isinstance(value.get("name"), str):
            self.title = value["name"]
        elif kind == "label" and isinstance(value.get("label"), str):
            self.labels[value["label"]] += 1
        elif kind == "compaction":
            before = value.get("tokensBefore")
            size = f" ({before:,} tokens before)" if type(before) is int else ""
            self.compacted = f"line {line.number}: the history was compacted before this answer{size}"

    def _message(self, line: Line, value: dict[str, Any], where: Where) -> Where:
        custom = value.get("type") == "custom_message"
        message = value if custom else value.get("message")
        role = message.get("role", "custom" if custom else None) if isinstance(message, dict) else None
        if not isinstance(message, dict) or not isinstance(role, str):
            self.told["are of an unexpected shape"] += 1
            return where
        if role == "assistant":
            return self._assistant(line, message, where)
        row = said(line, role, message)
        if row is None:
            return where
        if where.answer is not None:
            where.answer.follow(row)
        return Where(where.answer, (where.since, row))

    def _assistant(self, line: Line, message: dict[str, Any], where: Where) -> Where:
        api = APIS.get(str(message.get("api")))
        if api is None:
            api, self.assumed = self.options.api or ASSUMED, self.assumed + 1
        model = message.get("model")
        key = line.value.get("id")
        answer = Answer(
            f"{key if isinstance(key, str) else 'line'}:{line.number}", api, model if isinstance(model, str) else None,
            where, line.number, text(line.value.get("timestamp")),
        )
        at = answer.take(line)
        take_content(answer, message.get("content"), line, at)
        answer.usage = usage_of(message.get("usage"))
        take_end(answer, message, at)
        if self.compacted is not None:
            answer.findings.append(Finding("transcript.compacted", Severity.INFO, self.compacted))
            self.compacted = None
        if where.answer is not None:
            where.answer.next.append(answer)
        self.answers.append(answer)
        return Where(answer)

    # -- the file --------------------------------------------------------------------------------------------------

    def _exchange(self, answer: Answer) -> Exchange:
        key = (answer.api, answer.model)
        chosen = self.chosen.get(key)
        if chosen is None:
            chosen = self.chosen[key] = self._profile(*key)
        mark = Evidence("transcript.pi", At(pointer="/type"), "rows of pi, not the provider's bytes")
        return answer.exchange(self.path, NAME, chosen.profile, (mark, *chosen.evidence), steered=True)

    def _profile(self, api: str, model: str | None) -> Chosen:
        if self.options.profile is not None:
            try:
                return named(self.options.profile, api, model)
            except CallerError:
                pass  # one of several formats in the file, and not that profile's
        return choose(api, "", (), None, model)

    def _summary(self) -> None:
        notices = self.reading.notices
        if self.answers:
            notices.insert(0, "stop reasons are pi's own words for the providers', which are not in the file")
        if self.assumed:
            taken = self.options.api or ASSUMED
            notices.append(f"answers that do not say their API, taken for {taken}: {self.assumed:,}")
        if self.labels:
            notices.append(f"labels: {', '.join(sorted(self.labels)[:20])}")
        notices += [f"entries that {what}: {count:,}" for what, count in self.told.items()]
        if self.title:
            self.reading.about = About(title=self.title)
