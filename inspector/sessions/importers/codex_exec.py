"""The output of `codex exec --json`: events of threads, turns and items, one per line, without the user's messages.

An item of a tool is a call and, once it is completed, its result. The bounds of an answer are inferred: its items end
at a result. No stop reason is stored, only the error of a failed turn. Source: codex-rs/exec/src/exec_events.rs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from inspector.sessions.importers.codex import API
from inspector.sessions.importers.codex_items import COUNTS, CUT, item_text
from inspector.sessions.importers.records import first_look
from inspector.sessions.reasons import recorder_reason
from inspector.sessions.recording import Options
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import ChatReader, call_of, command_call, pointer_at
from inspector.sessions.transcripts.member_values import counts_of, known_text, object_of
from loop_core.values import Finding, Severity, Stop, TextPart, Usage
from loop_core.wire.failures import StopRow

EVENTS = frozenset({"thread.started", "turn.started", "item.started", "item.updated", "item.completed",
                    "turn.completed", "turn.failed"})
"""The types of events that show the format. `error` is not among them: Codex tries again after such an error."""
TOOLS: Mapping[str, tuple[str, str]] = {
    "command_execution": ("command", "aggregated_output"),
    "file_change": ("changes", "status"),
    "mcp_tool_call": ("arguments", "result"),
    "web_search": ("query", "status"),
    "collab_tool_call": ("prompt", "status"),  # of a subagent
}
"""Type of an item that is a call -> the members with its arguments and with its result."""
FULL = "Codex ran out of room in the model's context window"
CUTS: Mapping[str, StopRow] = {
    "max_output_tokens": StopRow(Stop.MAX_TOKENS, None, "OpenAI Responses, incomplete_details.reason"),
    FULL: StopRow(Stop.CONTEXT_WINDOW_EXCEEDED, None, "codex-rs/protocol/src/error.rs"),
}
"""Reason in the error about an incomplete response, or Codex's own words -> its meaning; any other is a failure."""
FIELDS: Fields = {"": {"type": (str,), "item": (dict,), "usage": (dict,), "error": (dict,)}}
_FAILED = frozenset({"failed", "declined"})


def sniff(head: bytes, path: str) -> int:
    """Recognises an event of this stream among the first lines."""
    kinds = (value.get("type") for value in first_look(head).objects)
    return 90 if any(isinstance(kind, str) and kind in EVENTS for kind in kinds) else 0


class _Stream(ChatReader):
    own_api = API
    name, agent, fields = "codex-exec", "Codex CLI", FIELDS
    unit, row_word = "line", ("an event", "events")

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.calls: set[str] = set()
        """The ids of the tool items that have begun in this turn."""

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value, kind = line.value, line.value.get("type")
        item = object_of(value.get("item"))
        if kind == "turn.started":
            self.calls.clear()  # item ids (`item_0` …) begin again in each turn
            return self.say(line, place, "")
        if kind == "turn.failed":
            return self._failure(line, object_of(value.get("error")), place)
        if kind in ("item.started", "item.completed"):
            return self._item(line, lines, item, place)
        if kind == "turn.completed" and len(self.answers) == 1:  # the counts are those of the whole thread
            self.answers[0].usage = Usage(*counts_of(object_of(value.get("usage")), *COUNTS))
        if kind == "turn.completed":
            return self._complete(line, place)
        lines.count(kind, EVENTS | {"error"})
        return place

    def _complete(self, line: TranscriptLine, place: TreePlace) -> TreePlace:
        """Reads the end of a turn. Only a message right before it shows that the last answer ended well."""
        last = place.right_above
        if last is not None and last.parts and type(last.parts[-1]) is TextPart:
            return self.say(line, place, "turn.completed", mark="ended")
        answer = last or self.stream_answer(line, place, "usage")
        message = f"line {line.number}: Codex ended the turn, and no message of the model stands before it"
        answer.findings.append(Finding("transcript.no_last_message", Severity.INFO, message))
        return TreePlace(answer)

    def _item(
        self, line: TranscriptLine, lines: TranscriptRows, item: dict[str, Any], place: TreePlace
    ) -> TreePlace:
        kind, whole = item.get("type"), line.value.get("type") == "item.completed"
        if kind in TOOLS:
            return self._tool(line, item, place, whole)
        text = known_text(item.get("text"))
        if kind not in ("agent_message", "reasoning") or text is None or not whole:
            lines.count(f"{line.value['type']}/{kind}", frozenset(
                f"{event}/{name}" for event in EVENTS for name in ("agent_message", "reasoning", "todo_list", "error")))
            return place
        answer = self.stream_answer(line, place, "item")
        (answer.add_text if kind == "agent_message" else answer.add_thought)(text)
        return TreePlace(answer)

    def _tool(self, line: TranscriptLine, item: dict[str, Any], place: TreePlace, whole: bool) -> TreePlace:
        """Reads a call when it begins, and its result when it is completed."""
        key, kind = known_text(item.get("id")), item["type"]
        input_member, output_member = TOOLS[kind]
        if key is None or key not in self.calls:
            answer = self.stream_answer(line, place, "item")
            at = pointer_at(answer.word_at, "item")
            arguments, name = item.get(input_member), known_text(item.get("tool")) or kind
            find = partial(slice_of, line.data, "item")
            if isinstance(arguments, dict):
                call = call_of(key, name, arguments, find, input_member, at)
            else:  # a command line, or the list of changes into which Codex parsed a patch
                call = command_call(arguments if isinstance(arguments, str) else find(input_member) or "", name, at)
            answer.parts.append(call._replace(id=key))
            place = TreePlace(answer)
            self.calls.update({key} if key else ())
        if not whole:
            return place
        error = object_of(item.get("error"))
        text = known_text(error.get("message")) or item_text(item.get(output_member) or "")
        code = item.get("exit_code")
        # Items report failures in different members: MCP calls in `error`, patches in `status`, commands in
        # `exit_code`.
        failed = bool(error) or item.get("status") in _FAILED or (type(code) is int and code != 0)
        return self.result(line, place, key, text, failed)

    def _failure(self, line: TranscriptLine, error: dict[str, Any], place: TreePlace) -> TreePlace:
        text = known_text(error.get("message")) or "no message"
        answer = self.stream_answer(line, place, "item")
        at = pointer_at(answer.word_at, "error", "message")
        cut = CUT.search(text)
        row = CUTS.get(cut["why"] if cut is not None else text[: len(FULL)])
        if row is None:
            answer.fail(text, at)
        else:
            answer.stop = recorder_reason(row.stop, row.detail, at, text[:200], "codex.incomplete")
        return TreePlace(answer)


reader = _Stream.of
