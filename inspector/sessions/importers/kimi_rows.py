"""What the records of Kimi Code and of the older Kimi CLI share: names, texts, counts, and their order."""

from __future__ import annotations

from typing import Any

from inspector.sessions.recording import Options
from inspector.sessions.transcripts import Fields, TranscriptReader
from inspector.sessions.transcripts.answer import InterimRow, TranscriptAnswer, TranscriptLine, TreePlace, content_text
from inspector.sessions.transcripts.ending_rules import infer
from loop_core.values import Finding, Severity, Usage

ROWS = frozenset({
    "metadata", "config.update", "tools.set_active_tools", "turn.prompt", "turn.steer", "turn.cancel", "turn.ended",
    "context.append_message", "context.append_loop_event", "context.apply_compaction", "llm.tools_snapshot",
    "llm.request", "usage.record", "permission.set_mode", "permission.record_approval_result", "profile.bind",
    "plugin.session_start", "runtime.set_binding", "token_counting.measured", "token_counting.turn_recorded",
    "plan_mode.enter", "plan_mode.exit", "full_compaction.begin", "full_compaction.complete", "step.begin",
    "StatusUpdate", "StepBegin", "TurnBegin", "TurnEnd", "CompactionBegin", "CompactionEnd", "ApprovalRequest",
    "ApprovalRequestResolved", "ApprovalResponse", "ToolCallPart", "StepRetry", "SubagentEvent",
})
"""Records that are known; those that hold no exchange are counted."""
FIELDS: Fields = {
    "": {"type": (str,), "event": (dict,), "message": (dict,), "model": (str,), "maxTokens": (int,)},
    "event": {
        "type": (str,), "uuid": (str,), "stepUuid": (str,), "toolCallId": (str,), "name": (str,), "usage": (dict,),
        "finishReason": (str,), "providerFinishReason": (str,), "rawFinishReason": (str,), "part": (dict,),
    },
}
"""What is read of a record, and the types that it can have."""


def text_of(value: Any) -> str:
    """The text of a message, of an input, of a tool's output."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return text_of(value.get("text") or value.get("output") or value.get("message") or value.get("content") or "")
    return content_text(value)


def usage_of(usage: Any) -> Usage | None:
    """Counts of tokens; the input is given in three parts."""
    if not isinstance(usage, dict):
        return None

    def count(*names: str) -> int | None:
        return next((usage[name] for name in names if type(usage.get(name)) is int), None)

    parts = [count("inputOther", "input_other"), count("inputCacheRead", "input_cache_read"),
             count("inputCacheCreation", "input_cache_creation")]
    known = [part for part in parts if part is not None]
    return Usage(sum(known) if known else None, count("output"), None, parts[1])


class KimiReader(TranscriptReader):
    """What both clients share: rows one after the other, without a tree."""

    name, fields = "kimi", FIELDS
    key, row_word = "", ("a record", "records")
    several_apis = steered = True

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.place = TreePlace(None)
        self.compacted: str | None = None

    def above(self, value: dict[str, Any]) -> TreePlace:
        """The last place."""
        return self.place

    def keep(self, line: TranscriptLine, place: TreePlace) -> None:
        """The place of the next record."""
        self.place = place

    def follow(self, row: InterimRow, place: TreePlace) -> TreePlace:
        """A row after the answer of this place."""
        if place.answer is not None:
            place.answer.follow(row)
        return place if row.mark == "ended" else TreePlace(place.answer, (place.since, row))

    def note_compaction(self, answer: TranscriptAnswer) -> None:
        """That the history was compacted before an answer."""
        if self.compacted is not None:
            answer.findings.append(Finding("transcript.compacted", Severity.INFO, self.compacted))
            self.compacted = None

    def settle(self) -> None:
        """Where a step has no word, what the others show."""
        for answer in self.answers:
            caps = frozenset() if answer.cap is None else frozenset({answer.cap})
            answer.stop = answer.stop or infer(answer, caps)
        ends = [answer.end() for answer in self.answers]
        self.reading.acts += [end for end in ends if end is not None]
