"""Claude Code's transcripts: `~/.claude/projects/<folder>/<session>.jsonl`, the subagents' files below it, and the
output of `claude -p` as stream-json or as a result alone; also the rows as one list, as the action for GitHub stores
them, or in one object, as the web version does (`loglines`).

The rows form a tree (`parentUuid`). Each content block of an answer is a row, with the answer's message id. Rows that
no request contained (hooks, snapshots, progress) are skipped. A row of the agent about a failure is a failed answer, or
shows how the previous answer ended. The format is undocumented and changes, so rows of an unknown shape are counted and
reported. In the stream, and in the files of iFlow, a row follows the previous row. `claude_rows` reads single rows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from functools import partial
from sys import intern
from typing import IO, Any

from inspector.sessions.importers import claude_rows
from inspector.sessions.importers.records import first_look, first_value, list_pieces
from inspector.sessions.reasons import INFERRED, RECORDER
from inspector.sessions.recording import FileReading, Options, SessionAbout, Skipped, UnreadableError, below_file
from inspector.sessions.transcripts import Fields, Kinds, TranscriptReader, TranscriptRows
from inspector.sessions.transcripts.answer import InterimRow, TranscriptAnswer, TranscriptLine, TreePlace, text_of
from inspector.sessions.transcripts.ending_rules import provider_stop, wordless_notice
from inspector.sessions.transcripts.member_values import object_of, objects_of, text_or_none
from loop_core.values import At, Evidence, ResponsePart, Stop, StopReason, TextPart, ToolCall
from loop_core.wire.anthropic_messages.table import API, STOP_REASONS, read_block

SYNTHETIC = "<synthetic>"
"""The model's name in rows that Claude Code wrote itself."""
NO_EXCHANGE = frozenset({
    "agent-color", "agent-name", "agent-setting", "ai-title", "api-request", "api-request-blob", "api-request-shape",
    "atis-latch", "attachment", "attribution-snapshot", "bridge-session", "content-replacement", "cost-state",
    "custom-title", "file-history-delta", "file-history-snapshot", "fork-context-ref", "frame-link", "last-prompt",
    "marble-origami-commit", "marble-origami-snapshot", "mode", "permission-mode", "pr-link", "progress",
    "queue-operation", "rate_limit_event", "relocated", "result", "speculation-accept", "stream_event", "summary",
    "system", "tag", "task-summary", "tools-used", "worktree-state",
})
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
WEB = "loglines"
"""The member with the rows, in the object that Claude Code's web version exports for a session."""
_PARENT = re.compile(rb'"parentUuid"\s*:\s*(?:null|")')
QWEN = frozenset({"systemPayload", "managedSession"})
"""Members of rows of Qwen Code, which otherwise look like those of Claude Code."""


def sniff(head: bytes, path: str) -> int:
    """Recognises a row of the tree, or a record that only Claude Code writes, among the first lines."""
    parsed_head, listed = first_look(head), path_of_rows(head)
    rows = parsed_head.objects if listed is None else objects_of(
        (parsed_head.first[WEB] if listed else parsed_head.first)[:8])
    for value in rows:
        if _is_row(value):
            qwen = "parts" in object_of(value.get("message")) or not value.keys().isdisjoint(QWEN)
            return 0 if qwen else 100  # Qwen Code's rows look the same
    if any("apiKeySource" in row and "tools" not in row for row in rows):
        return 0  # Cursor's stream
    if any(map(_is_message, rows)) or any(map(claude_rows.begins_stream, rows)):
        return 80
    return 90 if parsed_head.text[:1] == b"{" and _PARENT.search(head) and b'"sessionId"' in head else 0


def path_of_rows(data: bytes) -> tuple[str, ...] | None:
    """The path of the list of rows in a file that is one list or object; None for a file of lines."""
    first = first_value(data)
    if isinstance(first, list):
        return ()
    return (WEB,) if isinstance(object_of(first).get(WEB), list) else None


def _is_row(value: dict[str, Any]) -> bool:
    if value.get("type") == "result" and {"subtype", "session_id", "total_cost_usd"} <= value.keys():
        return True  # other programs also write such results, but without a cost
    in_tree = "sessionId" in value and "uuid" in value and ("isSidechain" in value or "parentUuid" in value)
    return in_tree or value.get("type") in ("file-history-snapshot", "queue-operation") or "leafUuid" in value


def _is_message(value: dict[str, Any]) -> bool:
    """Whether a value is a message without a place in the tree: from the stream, or from a stripped transcript."""
    message = object_of(value.get("message"))
    return value.get("type") in ("user", "assistant") and isinstance(message.get("content"), (str, list))


def reader(path: str, options: Options, head: bytes) -> TranscriptReader:
    """The reader of one file. Raises `UnreadableError` if `--api` names another API than Messages."""
    if options.api not in (None, API):
        raise UnreadableError(f"its answers are {API}, not {options.api}: expected `--api {API}`, or none")
    return Session(path, options, path_of_rows(head))


class Session(TranscriptReader):
    """Reads one file of such rows."""

    name, agent, fields = "claude-code", "Claude Code", FIELDS
    key, row_word = "uuid", ("a row", "rows")

    def __init__(self, path: str, options: Options, listed: tuple[str, ...] | None = None) -> None:
        super().__init__(path, options)
        self.groups: dict[tuple[str | None, bool, str | None, str | None], TranscriptAnswer] = {}
        self.ids, self.caps = set[str](), set[int]()
        self.request_caps: dict[str | None, int] = {}
        """Id of a subagent, None for the main agent -> the output cap of its last request, until an answer to it."""
        self.titles: dict[str, str] = {}
        self.last: dict[Any, TreePlace] = {}
        """Agent (`agent_of`) -> the place after its last row."""
        self.agents: set[str] = set()
        self.author, self.session = claude_rows.agent_of({}), ""
        """The agent of the current row, and the name of the session to which the rows of a subagent belong."""
        self.listed = listed
        """The path of the list of rows in a file that is one list or object; None for a file of lines."""
        # The last answer, and its parts without the places of calls.
        self.written: tuple[TranscriptAnswer | None, set[tuple[object, ...]]] = None, set()
        self.run: str | None = None
        """The id of the current run, empty after its result; further runs may follow in the same file."""
        self.open_blocks: dict[Any, claude_rows.OpenBlock] = {}
        """Agent -> what the events of a stream have brought of its answer and is in no row."""

    def read(self, data: bytes | IO[bytes]) -> FileReading:
        """Reads every answer in a file of lines, or in one list of rows."""
        if self.listed is None:
            return super().read(data)
        self.unit = "row"
        return self.read_records(list_pieces(data if isinstance(data, bytes) else data.read(), *self.listed))

    def look_ahead(self, data: bytes) -> bool:
        """Whether the file consists of lines, so that added rows can be read alone."""
        return path_of_rows(data) is None

    def forget_places(self) -> None:
        """Frees the places of rows, and the answers and ids with which further rows would be compared."""
        super().forget_places()
        for held in (self.groups, self.ids, self.last):
            held.clear()

    def settle(self) -> None:
        """Sets the stop reasons: by the provider's word if a row has it, else by inference."""
        caps = frozenset(self.caps)
        self._take_open_blocks()
        for answer in self.answers:
            claude_rows.early_usage(answer)
            answer.stop = answer.stop or provider_stop(answer, caps, STOP_REASONS)
        super().settle()

    def common(self) -> frozenset[int]:
        """The output caps that the file states; an answer with exactly so many tokens was cut."""
        return frozenset(self.caps)

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """Reads a row of the user, of an answer, or about the session."""
        kind = line.value.get("type")
        if kind == "user":
            return self._user(line, place)
        if kind == "assistant":
            return self._assistant(line, place)
        if object_of(line.value.get("data")).get("type") == "agent_progress":  # 2.1.7 to 2.1.42, without any text
            self.remarks["hold calls of a subagent and their results; its answers are in its own file"] += 1
            return place
        lines.count(kind, NO_EXCHANGE)
        if kind == "result":
            self.run = ""
            self.open_blocks.clear()
            if not self.answers and isinstance(line.value.get("result"), str):
                return self._result_alone(line, place)
        elif line.value.get("subtype") == "init":
            before, self.run = self.run, str(line.value.get("session_id"))
            if before not in (None, self.run):  # of a further run; one that was killed wrote no result
                self._take_open_blocks()
                place = TreePlace(None)
        elif kind == "stream_event":
            block = claude_rows.block_after(line, self.open_blocks.pop(self.author, None), place)
            self.open_blocks |= {} if block is None else {self.author: block}
        self._other(line, place)
        return place

    def above(self, value: dict[str, Any]) -> TreePlace:
        """The place after the parent row; else after the agent's previous row, unless the row begins a tree."""
        self.author = claude_rows.agent_of(value)
        before = self.last.get(self.author) or TreePlace(None)
        if "parentUuid" not in value or claude_rows.is_of_iflow(value):
            return before
        # After a compaction `parentUuid` is null, and `logicalParentUuid` names the previous row.
        parent = value.get("parentUuid") or value.get("logicalParentUuid")
        if not isinstance(parent, str):
            return TreePlace(None)
        return self.parent(parent) or before.across_gap(value.get("type") == "assistant")

    def keep(self, line: TranscriptLine, place: TreePlace) -> None:
        """Stores the place after a row, also as the last one of its agent."""
        super().keep(line, place)
        self.last[self.author] = place

    def _user(self, line: TranscriptLine, where: TreePlace) -> TreePlace:
        value = line.value
        # The summary has the role of the user, but the user did not type it, so it begins no turn.
        if value.get("isCompactSummary") is True:
            self.remarks["hold the summary of a compacted history"] += 1
            return where
        rows = claude_rows.interim_rows(line, where.answer.calls if where.answer is not None else ())
        if not rows:
            self.remarks["are of an unexpected shape"] += 1
        elif isinstance(value.get("agentId"), str):
            self.agents.add(value["agentId"])
            self.session = str(value.get("sessionId") or "")
        for each in rows:
            row = each if each.unit == self.unit else each._replace(unit=self.unit)
            if row.mark == "interrupted":
                self.count_stopped(where)
            elif claude_rows.lacks_row(row, where):
                where = TreePlace(answer := self._begin(line, None, None, where))
                answer.take(line)
            elif row.mark in ("malformed", "broken") and where.answer is not None:
                claude_rows.take_note(where.answer, row, line)
            where = where.after(row)
        return where

    def _result_alone(self, line: TranscriptLine, where: TreePlace) -> TreePlace:
        """Adds the last answer of a run of which only the result was written (`--output-format json`)."""
        value, text = line.value, str(line.value["result"])
        if value.get("is_error") is True:
            return self._failure(line, {}, text, where)
        answer = self._begin(line, None, None, where)
        answer.parts.append(TextPart(text))
        claude_rows.take_stream_end(answer, line)
        turns = value.get("num_turns")
        if turns == 1:  # with more turns the counts are those of several answers
            claude_rows.take_end(answer, {"usage": value.get("usage")}, answer.word_at, "")
        elif type(turns) is int:
            self.reading.notices.append(f"only the last answer of a run of {turns:,} turns is in it")
        return TreePlace(answer)

    def _other(self, line: TranscriptLine, where: TreePlace) -> None:
        value = line.value
        if (cap := claude_rows.request_cap(value)) is not None:
            self.request_caps[text_or_none(value.get("agentId"))] = cap
        for name in TITLES:
            if isinstance(value.get(name), str):
                self.titles[name] = value[name]
        if where.answer is not None and value.get("type") in ("stream_event", "result"):
            claude_rows.take_stream_end(where.answer, line)
        end, stop = claude_rows.loop_end(value), claude_rows.hook_stop(value)
        if end is not None and where.answer is not None and where.since is None:
            where.answer.after.append(InterimRow(line.number, end, mark="ended"))
        elif stop is not None and where.answer is not None:
            where.answer.after.append(InterimRow(line.number, stop, mark="stopped"))
        elif value.get("subtype") == claude_rows.REFUSED:
            self._retract(line)
        elif value.get("subtype") in ("api_error", "api_retry"):
            why = "a failed request that Claude Code sent again: " + claude_rows.retry_note(value)
            self.reading.skipped.append(Skipped(line.number - 1, why))

    def _take_open_blocks(self) -> None:
        """Adds what is in no row, because a run ends within an answer, to the answer."""
        for author, last in self.open_blocks.items():
            if events := last.events():  # else rows have all of it
                self.author, message = author, last.message
                answer = last.answer or self._begin(events[0].line, message.get("id"), message.get("model"), last.where)
                claude_rows.take_open_block(answer, last.block, events)
        self.open_blocks.clear()

    def _retract(self, line: TranscriptLine) -> None:
        """Marks answers as refused whose rows Claude Code withdrew after the refusal, to ask another model."""
        for key in claude_rows.retracted_rows(line.value):
            answer = self.places.get(hash(key), TreePlace(None)).answer
            if answer is not None and answer.stop is None and answer.word is None:
                evidence = Evidence(RECORDER, answer.take(line), claude_rows.REFUSED)
                answer.stop = StopReason(Stop.SAFETY_BLOCKED, None, "refusal", (evidence,))

    def _assistant(self, line: TranscriptLine, where: TreePlace) -> TreePlace:
        value, message = line.value, line.value.get("message")
        if not isinstance(message, dict) or not isinstance(message.get("content"), (list, str)):
            self.remarks["are of an unexpected shape"] += 1
            return where
        failed = value.get("isApiErrorMessage") is True
        if failed or message.get("model") == SYNTHETIC:
            text = text_of(message["content"])
            if failed or text.startswith("API Error"):
                return self._failure(line, message, text, where)
            self.reading.skipped.append(Skipped(line.number - 1, "a message of Claude Code's own, and no model's"))
            return where
        again = claude_rows.calls_again(line, message["content"], where)
        if again and where.since is not None:
            self.remarks["repeat a call of the answer before them, which has its result"] += 1
            if len(again) == len(message["content"]):
                return where
        answer = (again and where.right_above) or self._group(line, message, where)
        if (block := self.open_blocks.get(self.author)) is not None and block.message.get("id") == message.get("id"):
            self.open_blocks[self.author] = claude_rows.OpenBlock(where, block.message, answer)
        at = answer.take(line)
        self._blocks(answer, line, message["content"], at, again)
        claude_rows.take_end(answer, message, at)
        return where if where.right_above is answer else TreePlace(answer)

    def _group(self, line: TranscriptLine, message: dict[str, Any], where: TreePlace) -> TranscriptAnswer:
        """The answer with the message id of a row; for a row without an id, the one right above; else a new one."""
        value = line.value
        agent, name = text_or_none(value.get("agentId")), text_or_none(message.get("id"))
        key = (agent, value.get("isSidechain") is True, name, claude_rows.request_of(value))
        found = self.groups.get(key)
        # One answer is several rows with the same message id, each with the same usage (a row for each content block).
        if found is not None and (key[2] is not None or (where.since is None and found is where.answer)):
            return found
        self.groups[key] = answer = self._begin(line, message.get("id"), message.get("model"), where)
        return answer

    def _begin(self, line: TranscriptLine, key: Any, model: Any, where: TreePlace) -> TranscriptAnswer:
        uuid = line.value.get("uuid")
        name = key if isinstance(key, str) and key not in self.ids else f"{uuid or key or 'row'}:{line.number}"
        self.ids.add(name)
        answer = self.add(self.begin(name, API, model, where, line))
        answer.recorded_place = claude_rows.place_after(where)
        answer.cap = self.request_caps.pop(text_or_none(line.value.get("agentId")), None)
        # Before agents had files of their own, subagents were written between the session's rows, without an id.
        if self.author[0] and not isinstance(line.value.get("agentId"), str):
            answer.session = below_file("subagent")
        return answer

    def _blocks(self, answer: TranscriptAnswer, line: TranscriptLine, content: Any, at: At,
                again: Collection[int]) -> None:
        for number, block in enumerate([{"type": "text", "text": content}] if isinstance(content, str) else content):
            if number in again:
                continue
            if not isinstance(block, dict):
                self.remarks["hold a block that is not an object"] += 1
                continue
            if type(block.get("name")) is str:
                block["name"] = intern(block["name"])  # a session calls few tools many times
            here = At(at.part, at.start, at.end, intern(f"/message/content/{number}"))
            find = partial(claude_rows.block_slice, line.data, number)
            parts = [*map(claude_rows.shorten_signature, read_block(claude_rows.as_sent(block), True, here, find))]
            if self.written[0] is not answer:
                self.written = answer, set(map(_without_place, answer.parts))
            if not (texts := set(map(_without_place, parts))) <= self.written[1]:
                answer.parts += parts  # some recorders repeat the whole answer so far in each row
                self.written[1].update(texts)

    def _failure(self, line: TranscriptLine, message: dict[str, Any], text: str, where: TreePlace) -> TreePlace:
        """Reads a row about a failure: how the answer above ended, or an answer without other rows."""
        exceeded = claude_rows.CAP_EXCEEDED.search(text)
        cap = int(exceeded[1].replace(",", "").replace("_", "")) if exceeded is not None and exceeded[1] else None
        cut = exceeded is not None or line.value.get("apiError") == "max_output_tokens"
        full = claude_rows.CONTEXT_FULL.search(text) is not None
        # The message states the cap, which also applies to the other answers of the file.
        self.caps |= set() if cap is None else {cap}
        above = where.answer
        # Claude Code writes the cut answer, then this row about it (claude-code #24055): they are one answer.
        if (cut or full) and above is not None and where.since is None and above.open:
            above.take(line)
            above.cap = cap or above.cap
            above.after.append(InterimRow(line.number, text, mark="cap" if cut else "context"))
            return where
        blocked = claude_rows.BLOCKED.search(text) is not None
        request = claude_rows.request_of(line.value)
        # What arrived before the failure is in rows of its request, perhaps above results of calls that ran meanwhile.
        begun = above is not None and above.open and all(row.results for row in where.rows()) and (
            claude_rows.MID_ANSWER.search(text) is not None or (request is not None and request == next(
                (key[3] for key, answer in reversed(self.groups.items()) if answer is above), None)))
        answer = above if begun and above is not None else self._begin(line, message.get("id"), None, where)
        at = answer.take(line)
        row = Evidence(RECORDER, at, text[:200])
        if claude_rows.ABORTED.match(text):
            answer.stop = StopReason(Stop.CANCELLED, None, None, (row,))
        elif blocked:
            if answer.word != claude_rows.REFUSAL:  # else the provider's own word is used
                answer.stop = StopReason(Stop.SAFETY_BLOCKED, None, claude_rows.REFUSAL, (row,))
        elif cut or full:
            answer.cap = cap or answer.cap
            stop = Stop.CONTEXT_WINDOW_EXCEEDED if full else Stop.MAX_TOKENS
            inference = Evidence(f"{INFERRED}error_row", at, text[:200])
            answer.stop = StopReason(stop, None, None, (row, inference))
        else:
            answer.fail(text, at, *claude_rows.error_of(line.value, text))
        return where if begun else TreePlace(answer)

    def summarise(self) -> None:
        """Also stores the session's title and ids, and reports the number of answers without a stop word."""
        self.reading.notices[:0] = wordless_notice(self.answers, self.agent)
        title = next((self.titles[name] for name in TITLES if name in self.titles), "")
        if len(self.agents) == 1 and not title:
            title = f"subagent {next(iter(self.agents))}"
        key = os.path.basename(self.path).removesuffix(".jsonl")
        begun = self.agents and self.session not in ("", key)
        self.reading.about = SessionAbout(title, id=key, parent=self.session if begun else "")


def _without_place(part: ResponsePart) -> tuple[object, ...]:
    return part[:-1] if type(part) is ToolCall else part  # `at` is the last field
