"""Claude Code's transcripts: `~/.claude/projects/<folder>/<session>.jsonl`, and the subagents' files below it.

Owns the tree of rows (`parentUuid`): an answer of the model is written as one row a content block, all with its message
id; a row that no request carried (hooks, snapshots, progress) is passed through; a row of the agent about a failure is
an answer that failed, or says how the answer before it ended. The format is not documented, and its fields drift: what
is of another shape is counted and told.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from inspector.sessions.recording import ODD, About, Exchange, Options, Reading, Skipped, UnreadableError
from inspector.sessions.transcripts import provenance
from inspector.sessions.transcripts.answer import Answer, Said, Where, early_usage
from inspector.sessions.transcripts.claude_rows import (
    ABORTED,
    BLOCKED,
    CAP_EXCEEDED,
    CONTEXT_FULL,
    ended,
    error_of,
    retried,
    said,
    stop_of,
    stopped,
    take_end,
    text_of,
)
from inspector.sessions.transcripts.jsonl import Fields, Kinds, Line, Lines, slice_of
from loop_core.values import At, Evidence, Stop, StopReason, TextPart
from loop_core.wire.anthropic_messages.blocks import read_block
from loop_core.wire.anthropic_messages.table import API
from loop_core.wire.failures import classify
from loop_core.wire.profiles import Chosen, choose, named

NAME = "claude-code"
SYNTHETIC = "<synthetic>"
"""The model's name on rows that Claude Code wrote itself."""
PASSED = frozenset({
    "agent-name", "ai-title", "attachment", "bridge-session", "cost-state", "custom-title", "file-history-snapshot",
    "last-prompt", "mode", "permission-mode", "pr-link", "progress", "queue-operation", "summary", "system", "tag",
})
"""Types of records that carry nothing of an exchange."""
TITLES = ("customTitle", "aiTitle", "summary")
_HOOK: Kinds = {"hookEvent": (str,), "hookName": (str,)}
FIELDS: Fields = {
    "": {
        "type": (str,), "uuid": (str,), "parentUuid": (str,), "logicalParentUuid": (str,), "agentId": (str,),
        "requestId": (str,), "timestamp": (str,), "isSidechain": (bool,), "isMeta": (bool,), "message": (dict,),
    },
    "message": {
        "id": (str,), "model": (str,), "content": (list, str), "stop_reason": (str,), "usage": (dict,),
    },
    "data": _HOOK,
    "attachment": _HOOK,
}
"""What is read of a row, and the types that it can have."""
_TEXT = frozenset({"type", "text"})


def read(data: bytes, path: str, options: Options) -> Reading:
    """Every answer in the file.

    Raises:
        UnreadableError: another API than its own was asked for.
    """
    if options.api not in (None, API):
        raise UnreadableError(f"its answers are {API}, not {options.api}: expected `--api {API}`, or none")
    return _Session(path, options).read(data)


class _Session:
    """One file being read."""

    def __init__(self, path: str, options: Options) -> None:
        self.path, self.options = path, options
        self.reading = Reading()
        self.answers: list[Answer] = []
        self.places: dict[str, Where] = {}
        """Row -> what a row below it follows."""
        self.groups: dict[tuple[str | None, bool, str | None, str | None], Answer] = {}
        self.ids: set[str] = set()
        self.caps: set[int] = set()
        self.titles: dict[str, str] = {}
        self.agents: set[str] = set()
        self.told: Counter[str] = Counter()
        self.profiles: dict[str | None, Chosen] = {}

    def read(self, data: bytes) -> Reading:
        lines = Lines(data, FIELDS)
        reading = self.reading
        for line in lines:
            uuid = line.value.get("uuid")
            if isinstance(uuid, str) and uuid in self.places:
                self.told["repeat a row before them (same uuid)"] += 1
                continue
            where = self._above(line.value)
            try:
                where = self._row(line, lines, where)
            except ODD as why:
                lines.lost(line.number, why)
            if isinstance(uuid, str):
                self.places[uuid] = where
        caps = frozenset(self.caps)
        for answer in self.answers:
            early_usage(answer)
            if answer.stop is None:
                answer.stop = stop_of(answer, caps)
        for answer in self.answers:
            end = answer.end()
            reading.acts += [] if end is None else [end]
            reading.exchanges.append(self._exchange(answer))
            reading.answers += answer.answers()
        lines.report(reading)
        reading.masked = lines.masked
        reading.notices += [f"rows that {what}: {count:,}" for what, count in self.told.items()]
        self._summary()
        return reading

    # -- rows ------------------------------------------------------------------------------------------------------

    def _row(self, line: Line, lines: Lines, where: Where) -> Where:
        kind = line.value.get("type")
        if kind == "user":
            return self._user(line, where)
        if kind == "assistant":
            return self._assistant(line, where)
        lines.count(kind, PASSED)
        self._other(line, where)
        return where

    def _above(self, value: dict[str, Any]) -> Where:
        parent = value.get("parentUuid") or value.get("logicalParentUuid")
        if not isinstance(parent, str):
            return Where(None)
        found = self.places.get(parent)
        if found is None:
            self.told["name a parent that is not in the file before them"] += 1
            return Where(None)
        return found

    def _user(self, line: Line, where: Where) -> Where:
        value = line.value
        if value.get("isCompactSummary") is True:
            self.told["hold the summary of a compacted history"] += 1
            return where
        rows = said(line)
        if not rows:
            self.told["are of an unexpected shape"] += 1
        elif isinstance(value.get("agentId"), str):
            self.agents.add(value["agentId"])
        for row in rows:
            if row.mark == "interrupted" and any(each.typed for each in where.rows()):
                self.told["stop a request of the user of which nothing came"] += 1
            if where.answer is not None:
                where.answer.follow(row)
            if row.mark != "ended":
                where = Where(where.answer, (where.since, row))
        return where

    def _other(self, line: Line, where: Where) -> None:
        value = line.value
        for name in TITLES:
            if isinstance(value.get(name), str):
                self.titles[name] = value[name]
        end, stop = ended(value), stopped(value)
        if end is not None and where.answer is not None and where.since is None:
            where.answer.follow(Said(line.number, end, mark="ended"))
        elif stop is not None and where.answer is not None:
            where.answer.follow(Said(line.number, stop, mark="stopped"))
        elif value.get("subtype") == "api_error":
            why = f"a failed request that Claude Code sent again: {retried(value)}"
            self.reading.skipped.append(Skipped(line.number - 1, why))

    def _assistant(self, line: Line, where: Where) -> Where:
        value, message = line.value, line.value.get("message")
        if not isinstance(message, dict) or not isinstance(message.get("content"), (list, str)):
            self.told["are of an unexpected shape"] += 1
            return where
        text = text_of(message["content"])
        if value.get("isApiErrorMessage") is True or (
            message.get("model") == SYNTHETIC and text.startswith("API Error")
        ):
            return self._failure(line, message, text, where)
        if message.get("model") == SYNTHETIC:
            self.reading.skipped.append(Skipped(line.number - 1, "a message of Claude Code's own, and no model's"))
            return where
        answer = self._group(line, message, where)
        at = answer.take(line)
        self._blocks(answer, line, message["content"], at)
        take_end(answer, message, at)
        return Where(answer)

    def _group(self, line: Line, message: dict[str, Any], where: Where) -> Answer:
        """The answer that a row belongs to: that of its message id, or where it has none, that right above it."""
        value = line.value
        agent, name, request = (
            given if isinstance(given, str) else None
            for given in (value.get("agentId"), message.get("id"), value.get("requestId"))
        )
        key = (agent, value.get("isSidechain") is True, name, request)
        named_ = name is not None
        found = self.groups.get(key) if named_ else None
        if not named_ and where.answer is not None and where.since is None and self.groups.get(key) is where.answer:
            found = where.answer
        if found is not None:
            return found
        model = message.get("model")
        answer = self._open(line, message.get("id"), model if isinstance(model, str) else None, where)
        self.groups[key] = answer
        return answer

    def _open(self, line: Line, key: Any, model: str | None, where: Where) -> Answer:
        started = line.value.get("timestamp")
        uuid = line.value.get("uuid")
        name = key if isinstance(key, str) and key not in self.ids else f"{uuid or key or 'row'}:{line.number}"
        self.ids.add(name)
        answer = Answer(
            name, API, model, where, line.number, started if isinstance(started, str) else None,
        )
        if where.answer is not None:
            where.answer.next.append(answer)
        self.answers.append(answer)
        return answer

    def _blocks(self, answer: Answer, line: Line, content: Any, at: At) -> None:
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for number, block in enumerate(blocks):
            if not isinstance(block, dict):
                self.told["hold a block that is no object"] += 1
                continue
            if block in answer.blocks:
                continue  # a recorder that writes the answer so far on every row
            answer.blocks.append(block)
            if block.keys() == _TEXT and isinstance(block["text"], str):
                answer.parts.append(TextPart(block["text"]))
                continue
            here = At(at.part, at.start, at.end, f"/message/content/{number}")
            answer.parts += read_block(block, True, here, partial(slice_of, line.data, "message", "content", number))

    def _failure(self, line: Line, message: dict[str, Any], text: str, where: Where) -> Where:
        """A row about a failure: how the answer right above it ended, or an answer of which nothing is left."""
        exceeded = CAP_EXCEEDED.search(text)
        cap = int(exceeded[1].replace(",", "").replace("_", "")) if exceeded is not None and exceeded[1] else None
        cut = exceeded is not None or line.value.get("apiError") == "max_output_tokens"
        full = CONTEXT_FULL.search(text) is not None
        self.caps |= set() if cap is None else {cap}
        above = where.answer
        if (cut or full) and above is not None and where.since is None and above.open:
            above.take(line)
            above.cap = cap
            above.follow(Said(line.number, text, mark="cap" if cut else "context"))
            return where
        answer = self._open(line, message.get("id"), None, where)
        at = answer.take(line)
        row = Evidence(provenance.RECORDER, at, text[:200])
        if ABORTED.match(text):
            answer.stop = StopReason(Stop.CANCELLED, None, None, (row,))
        elif BLOCKED.search(text):
            answer.stop = StopReason(Stop.SAFETY_BLOCKED, None, "refusal", (row,))
        elif cut or full:
            answer.cap = cap
            stop = Stop.CONTEXT_WINDOW_EXCEEDED if full else Stop.MAX_TOKENS
            seen = Evidence(f"{provenance.INFERRED}error_row", at, text[:200])
            answer.stop = StopReason(stop, None, None, (row, seen))
        else:
            answer.error, answer.status = error_of(line.value, text)
            word, detail, rule = classify(answer.error)
            answer.stop = StopReason(word, None, detail, (row, Evidence(rule, at)))
        return Where(answer)

    # -- the file --------------------------------------------------------------------------------------------------

    def _exchange(self, answer: Answer) -> Exchange:
        chosen = self.profiles.get(answer.model)
        if chosen is None:
            chosen = self.profiles[answer.model] = self._profile(answer.model)
        mark = Evidence("transcript.claude_code", At(pointer="/type"), "rows of Claude Code, not the provider's bytes")
        return answer.exchange(self.path, NAME, chosen.profile, (mark, *chosen.evidence))

    def _profile(self, model: str | None) -> Chosen:
        if self.options.profile is not None:
            return named(self.options.profile, API, model)
        return choose(API, "", (), None, model)

    def _summary(self) -> None:
        reading = self.reading
        null = sum(answer.word is None and answer.error is None for answer in self.answers)
        if null:
            reading.notices.insert(0, (
                f"{null:,} of {len(self.answers):,} answers have no stop reason, as Claude Code writes them: what is "
                "shown for those is inferred from other rows, and says so"
            ))
        title = next((self.titles[name] for name in TITLES if name in self.titles), "")
        if len(self.agents) == 1 and not title:
            title = f"subagent {next(iter(self.agents))}"
        if title:
            reading.about = About(title=title)
