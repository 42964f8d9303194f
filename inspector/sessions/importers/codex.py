"""Rollout files of Codex CLI: `$CODEX_HOME/sessions/YYYY/MM/DD/rollout-….jsonl`, also archived and packed with zstd.
Those of the first releases, `rollout-….json`, are one object (codex-cli/src/utils/storage/save-rollout.ts).

A rollout has the items of answers and the events of the agent, but no stop reason: Codex turns `response.incomplete`
into an error, retries, and then ends the turn. The bounds of an answer are inferred: its items end at the row with the
counts of its response or, in older files, at the next token count or at the results of its calls. If a text is in an
item and in an event, the item is read. Sources: codex-rs/rollout and codex-rs/protocol. Files of 2025 are flat, without
`payload`.
"""

from __future__ import annotations

from typing import IO, Any

from inspector.sessions import intake
from inspector.sessions.importers import codex_items as items
from inspector.sessions.importers.records import first_look, list_pieces, whole_object
from inspector.sessions.reasons import INFERRED, RECORDER
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import TranscriptReader, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import InterimRow, TranscriptAnswer, TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import ChatReader
from inspector.sessions.transcripts.ending_rules import ERROR_MARKS, provider_stop
from inspector.sessions.transcripts.member_values import known_text, object_of, text_or_none
from loop_core.values import Evidence, Finding, Severity, StopReason, TextPart, ToolResultPart, Usage
from loop_core.wire import wire

API = "openai_responses"
"""The wire format that Codex CLI uses for every model."""
COMPACTED = "line {}: the history was compacted before this answer"


class _Rollout(ChatReader):
    name, agent, fields = "codex", "Codex CLI", items.FIELDS
    unit, row_word = "line", ("a line", "lines")
    several_apis, steered, reread = False, True, 16
    words = ("Codex keeps no stop reason and no output cap: what is shown of the ends of its answers is inferred, and "
             "says so")

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.counted = self.uncounted = self.stated = False
        """Whether the file has token counts, a row was read as if it had none, and items have a status."""
        self.early: bool | None = None
        """Whether a token count precedes its items, as in files of 2025; None before the first count."""
        self.by_response = False
        """Whether the file has counts for each response; then token counts are not read."""
        self.left: TranscriptAnswer | None = None  # its stream ended without counts of its own
        self.ahead: Usage | None = None
        """The token count of the following items."""
        self.over: TranscriptAnswer | None = None
        """The answer whose response has just ended, to which an error about a cut belongs."""
        self.total: Any = None
        """The running total in the last token count."""
        self.texts: set[int] = set()
        """The hashes of the texts in items. Events that repeat such a text are skipped."""
        self.alone: set[int] = set()
        """The hashes of texts from events that were in no item when the event was read."""
        self.event_texts: set[str] = set()
        """The texts of the current turn that were taken from events."""
        self.awaited: list[tuple[TranscriptLine, str]] = []
        """The lines and texts of events whose items are expected later in the turn."""
        self.threads = 0
        self.open: TranscriptAnswer | None = None
        """The answer to which the next item belongs."""
        self.starts: list[TreePlace] = []
        """The place before each message of the user, to which a rollback returns."""
        self.copied = False
        """Whether the current rows belong to a turn copied from the parent thread."""

    def read(self, data: bytes | IO[bytes]) -> FileReading:
        """Reads every answer in the file, after a first pass for texts and counts."""
        if isinstance(data, bytes):
            self.look_ahead(data)
        else:
            while piece := data.read(intake.PIECE):
                self.look_ahead(piece + data.readline())
            data.seek(0)
        return super().read(data)

    def look_ahead(self, data: bytes) -> bool:
        """Stores the texts of items, and whether there are counts; False if earlier rows would be read differently."""
        self.counted = self.counted or b'"last_token_usage"' in data
        self.texts |= items.texts_of_items(data)
        return not (self.counted and self.uncounted) and self.alone.isdisjoint(self.texts)

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        kind, payload = items.item_of(line.value)
        word = payload.get("type")
        copied = items.is_copied_turn(kind, payload, self.session_id) if self.parent_id else None
        if copied and not self.copied:  # the records right before a copied turn were copied too
            self.open, self.ahead, self.compacted, self.starts, self.awaited = None, None, "", [], []
            place = TreePlace(None)
        self.copied = self.copied if copied is None else copied
        if self.copied:
            self.remarks[f"belong to turns copied from the session {self.parent_id[:40]}, whose file shows them"] += 1
            self.copied = str(word) not in items.TURN_ENDS
            return place
        if kind == "response_item":
            return self._item(line, payload, lines, place)
        if kind == "event_msg" and isinstance(word, str):
            return self._event(line, word, payload, lines, place)
        if kind == "session_meta":
            self._header(payload)
        elif kind == "turn_context":
            self.model = payload["model"] if isinstance(payload.get("model"), str) else self.model
        elif kind == "token_usage_record":
            self._end_response(items.usage_of(payload, "usage"))
        elif kind == "compacted":
            place = self._compact(line, place, payload.get("message"))
        lines.count(kind, items.ENVELOPES | {"state"})
        return place

    def _header(self, payload: dict[str, Any]) -> None:
        """Reads a header. A fork has, after its own header, copies of those of its parents."""
        key = payload.get("id")
        self.threads += 1
        if self.threads > 1:
            if key != self.session_id:
                self.remarks["are headers of another thread, whose history this one begins with"] += 1
            return
        self.session_id = text_or_none(key) or ""
        source = object_of(payload.get("source"))
        begun = object_of(object_of(source.get("subagent")).get("thread_spawn"))
        parent = known_text(payload.get("parent_thread_id", begun.get("parent_thread_id")))
        self.parent_id = parent or known_text(payload.get("forked_from_id")) or ""
        if self.session_id and (parent or "subagent" in source):
            self.title = f"subagent {self.session_id[-12:]}"

    # -- items -------------------------------------------------------------------------------------------------------

    def _item(
        self, line: TranscriptLine, payload: dict[str, Any], lines: TranscriptRows, place: TreePlace
    ) -> TreePlace:
        kind, role = str(payload.get("type")), payload.get("role")
        if kind == "message" and role != "assistant":
            return self._message(line, items.item_text(payload.get("content")), place, own=role != "user")
        if kind.endswith("_output") or kind == "tool_result":
            return self._result(line, payload, place)
        if kind == "agent_message":  # from the agent that started this one
            return self._message(line, items.item_text(payload.get("content")), place, own=True)
        if items.DELIVERED in object_of(line.value.get("metadata")):
            self.remarks["are copies of texts that a tool delivered"] += 1
            return place
        if kind in items.NO_OUTPUT or kind == "None":
            lines.count(kind, items.NO_OUTPUT)
            return self._compact(line, place) if kind in items.COMPACTIONS else place
        if kind == "message":
            text = items.item_text(payload.get("content"))
            self.awaited = [each for each in self.awaited if each[1] != text]
            if text in self.event_texts:
                return place
        self._end_answered()
        answer, self.stated = self._answer(line, place), self.stated or "status" in payload
        items.take_part(answer, kind, payload, line)
        return TreePlace(answer)

    def _end_answered(self) -> None:
        """Ends an answer that was cut or broke, or whose calls all have results, even without a count in between. In
        files of 2025 results do not end answers, because each call of an answer is directly before its result."""
        answer = self.open
        done = answer is not None and self.early is not True and items.all_answered(answer)
        if answer is not None and (done or answer.word is not None or answer is self.left):
            self.open = None

    def _answer(self, line: TranscriptLine, place: TreePlace) -> TranscriptAnswer:
        """The open answer, or a new one that begins at this row."""
        if self.open is not None:
            return self.open
        self.open = answer = self.begin(f"line:{line.number}", API, self.model, place, line)
        self.over = None
        answer.usage, self.ahead = self.ahead, None
        self.note_compaction(answer)
        return self.add(answer)

    def _message(self, line: TranscriptLine, text: str, place: TreePlace, *, own: bool) -> TreePlace:
        """Reads a message to the model, from the user or from Codex (`own`)."""
        if any(row.text == text for row in place.rows()):
            return place  # repeated: the text is in an item and in an event
        own = own or items.OWN.match(text) is not None
        if not own:
            place = self._add_awaited(place)
            self.starts.append(place)
            self.event_texts.clear()
        mark = next((mark for beginning, mark in items.MARKS if beginning.match(text)), None)
        self.open, self.over = None, place.answer if mark == "filter" else None
        if self.over is not None:
            self.over.take(line)
        return place.after(InterimRow(line.number, text, own=own, mark=mark, unit=self.unit))

    def _result(self, line: TranscriptLine, payload: dict[str, Any], place: TreePlace) -> TreePlace:
        output = next((payload[name] for name in ("output", "tools", "result") if name in payload), None)
        failed = object_of(output).get("success") is False
        part = ToolResultPart(text_or_none(payload.get("call_id")), None, items.item_text(output), failed)
        if not self.counted:
            self.open, self.uncounted = None, True
        return self.results(line, place, part)

    # -- events ------------------------------------------------------------------------------------------------------

    def _event(
        self, line: TranscriptLine, kind: str, payload: dict[str, Any], lines: TranscriptRows, place: TreePlace
    ) -> TreePlace:
        message = payload.get("message")
        if kind == "user_message" and isinstance(message, str):
            return self._message(line, message, place, own=False)
        if kind == "agent_message" and isinstance(message, str):
            return self._event_text(line, message, place, "payload", "message")
        if kind == "item_completed" and isinstance(payload.get("item"), dict):
            return self._complete_item(line, payload["item"], lines, place)
        if kind == "token_count":
            return self._count(payload, place)
        if kind in ("error", "stream_error"):
            return self._failure(line, payload, place)
        if kind in ("task_complete", "turn_complete"):
            return self._complete(line, payload, place)
        if kind == "turn_aborted":
            place, self.open = self._add_awaited(place), None
            self.count_stopped(place)
            reason, mark = items.abort_of(payload)
            return place.after(InterimRow(line.number, reason, mark=mark))
        if kind == "thread_rolled_back" and type(payload.get("num_turns")) is int:
            return self._roll_back(payload["num_turns"], place)
        if kind == "thread_name_updated" and isinstance(payload.get("thread_name"), str):
            self.title = self.title or payload["thread_name"]
        lines.count(kind, frozenset({kind}))
        return place

    def _event_text(self, line: TranscriptLine, text: str, place: TreePlace, *path: str | int) -> TreePlace:
        """Reads a text of the model in an event, unless an item has it; some versions write only events."""
        json_text = slice_of(line.data, *path)
        there = place.answer is not None and any(type(part) is TextPart and part.text == text
                                                 for part in place.answer.parts)
        if not text or there:
            return place
        if json_text is not None and hash(json_text.encode()) in self.texts:
            self.awaited.append((line, text))
            return place
        if json_text is not None:
            self.alone.add(hash(json_text.encode()))
        return self._add_event_text(line, text, place)

    def _add_awaited(self, place: TreePlace) -> TreePlace:
        """Adds, at the end of a turn, the texts of events whose items did not follow."""
        for line, text in self.awaited:
            place = self._add_event_text(line, text, place)
        self.awaited = []
        return place

    def _add_event_text(self, line: TranscriptLine, text: str, place: TreePlace) -> TreePlace:
        self.event_texts.add(text)
        answer = self._answer(line, place)
        answer.take(line)
        answer.parts.append(TextPart(text))
        return TreePlace(answer)

    def _complete_item(
        self, line: TranscriptLine, item: dict[str, Any], lines: TranscriptRows, place: TreePlace
    ) -> TreePlace:
        """Reads the event that replaces `user_message` and `agent_message` in a paginated history."""
        kind, content = item.get("type"), item.get("content")
        if kind == "UserMessage":
            return self._message(line, items.item_text(content), place, own=False)
        if kind == "AgentMessage" and isinstance(content, list):
            for number, block in enumerate(content):
                where = ("payload", "item", "content", number, "text")
                place = self._event_text(line, items.item_text(block), place, *where)
            return place
        lines.count("item_completed", frozenset({"item_completed"}))
        return place

    def _count(self, payload: dict[str, Any], place: TreePlace) -> TreePlace:
        """Reads a token count: that of the previous answer or, in some files of 2025, of the following items."""
        info = object_of(payload.get("info"))
        usage, total = items.usage_of(info, "last_token_usage"), info.get("total_token_usage")
        if usage is None or self.by_response or (total is not None and total == self.total):
            self.left = self.open if self.stated else None
            return place  # Codex repeats the last count when rate limits change, in older files also within an answer
        self.total = total
        if self.early is None:
            self.early = self.threads < 2 and not self.answers and bool(self.starts)
        if self.open is not None and self.open.usage is None:
            self.open.usage = usage
        elif self.early:
            self.ahead = usage
        self.open = None
        return place

    def _end_response(self, usage: Usage | None) -> None:
        """Reads the counts of one response, which newer releases write after its items, before the results of its
        calls. Later token counts add nothing, and a cut response has none."""
        self.early, self.by_response = False, True
        self.over, self.open = self.open, None
        if self.over is None:
            self.ahead = usage
        else:
            self.over.usage = usage

    def _compact(self, line: TranscriptLine, place: TreePlace, message: Any = None) -> TreePlace:
        """Reads that the history was compacted. The previous response was the summary, not an answer."""
        self.compacted, self.ahead, above = COMPACTED.format(line.number), None, place.right_above
        if above is None or not items.is_summary(above, message):
            return place
        self.open = self.over = None  # what follows belongs to the next answer
        self.answers.remove(above)
        if above.above.answer is not None:
            above.above.answer.next.remove(above)
        self.remarks["hold the summary of a compacted history"] += 1
        return above.above

    def _complete(self, line: TranscriptLine, payload: dict[str, Any], place: TreePlace) -> TreePlace:
        """Reads the end of a turn: a failure, or the event by which Codex marks the turn as complete."""
        place = self._add_awaited(place)
        error, last_message, last = payload.get("error"), payload.get("last_agent_message"), place.answer
        silent = payload.get("last_agent_message", "") is None
        lost = not isinstance(error, dict) and any(
            row.is_user_message or (silent and row.results) for row in place.rows())
        if lost and isinstance(last_message, str) and last_message:
            place, lost = self._add_event_text(line, last_message, place), False
        elif lost:
            answer = self._answer(line, place)
            answer.take(line)
            place = TreePlace(answer)
        if isinstance(error, dict):
            failed = last is not None and last.error is not None and place.since is None
            place = place if failed else self._failure(line, error, place)
        elif place.answer is not None and (lost or silent):
            why = "no answer of the model stands in it" if lost else "it names no last message of the model"
            place.answer.findings.append(Finding(
                "transcript.no_last_message", Severity.INFO, f"line {line.number}: Codex ended the turn, and {why}"))
        else:
            place = place.after(InterimRow(line.number, "task_complete", mark="ended"))
        self.open = None
        return place

    def _failure(self, line: TranscriptLine, payload: dict[str, Any], place: TreePlace) -> TreePlace:
        """Reads an error: the end of the open answer, or a request without an answer."""
        inner = payload["error"] if isinstance(payload.get("error"), dict) else payload
        text = items.error_text(inner)
        info = inner.get("codex_error_info", inner.get("kind"))
        kind = info if isinstance(info, str) else next(iter(info), None) if isinstance(info, dict) else None
        cut = items.CUT.search(text)
        mark = "context" if kind == "context_window_exceeded" else items.CUTS.get(cut["why"]) if cut else None
        above = self.open or (self.over if cut else None)  # a full context refused the next request
        if above is not None and (mark or (cut and above.word)):  # of an unknown reason the status is the end
            above.take(line)
            self.open = None
            return TreePlace(above).after(InterimRow(line.number, text, own=mark is None, mark=mark))
        answer = above if above is not None else self._answer(line, place)
        at = answer.take(line)
        self.open = None
        if mark:
            answer.stop = StopReason(ERROR_MARKS[mark], None, None, (
                Evidence(RECORDER, at, text[:200]), Evidence(f"{INFERRED}error_row", at, text[:200])))
            return TreePlace(answer)
        answer.fail(text, at, items.status_of(info), kind)
        return TreePlace(answer)

    def _roll_back(self, turns: int, place: TreePlace) -> TreePlace:
        """Takes back the last turns; returns the place before them, where the next rows continue."""
        self.open = None
        if turns < 1 or not self.starts:
            return place
        left = max(0, len(self.starts) - turns)
        place, self.starts = self.starts[left], self.starts[:left]
        self.remarks["take back turns; what follows is another branch"] += 1
        return place

    # -- the whole file ----------------------------------------------------------------------------------------------

    def infer_end(self, answer: TranscriptAnswer) -> StopReason:
        """The stop reason of an answer, by the status of its items, else by the other rows."""
        stated = answer.word is not None
        return provider_stop(answer, frozenset(), wire(API).stop_reasons) if stated else super().infer_end(answer)

    def settle(self) -> None:
        self._add_awaited(self.last)
        super().settle()


class _Document(_Rollout):
    """A rollout of the first releases."""

    unit, row_word = "item", ("an item", "items")

    def read(self, data: bytes | IO[bytes]) -> FileReading:
        """Reads every answer in the file."""
        whole = data if isinstance(data, bytes) else data.read()
        self.look_ahead(whole)
        self._header(object_of(whole_object(whole).get("session")))
        return self.read_records(list_pieces(whole, "items"))


sniff = items.sniff


def reader(path: str, options: Options, head: bytes) -> TranscriptReader:
    """The reader of a file that begins with `head`. Raises `UnreadableError` for a packed copy in a folder."""
    items.refuse_copy(path, options)
    return (_Document if items.is_document(first_look(head).first) else _Rollout)(path, options)
