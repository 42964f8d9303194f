"""Sessions of Kimi CLI in Python (`~/.kimi/sessions/*/*/wire.jsonl`): events of its wire, without words and caps.

Source: kimi-cli's `src/kimi_cli/wire`.
"""

from __future__ import annotations

from typing import Any

from inspector.sessions.importers.kimi_rows import ROWS, KimiReader, text_of, usage_of
from inspector.sessions.recording import Options
from inspector.sessions.transcripts import TranscriptRows
from inspector.sessions.transcripts.answer import InterimRow, TranscriptAnswer, TranscriptLine, TreePlace
from inspector.sessions.transcripts.dialogue import ASSUMED, moment_text
from loop_core.values import ArgsForm, At, ExchangePart, ReasoningPart, TextPart, ToolCall, ToolResultPart


class KimiCliSession(KimiReader):
    """A file of Kimi CLI in Python: events of its wire, without words and caps."""

    agent = "Kimi CLI"

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.open: TranscriptAnswer | None = None

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """An event."""
        message = line.value.get("message", line.value.get("params"))
        if not isinstance(message, dict):
            lines.count(line.value.get("type"), ROWS)
            return place
        kind, payload = message.get("type"), message.get("payload")
        payload = payload if isinstance(payload, dict) else {}
        if kind == "TurnBegin":
            self.open = None
            return self.follow(InterimRow(line.number, text_of(payload.get("user_input"))), place)
        if kind == "SteerInput":
            return self.follow(InterimRow(line.number, text_of(payload.get("user_input"))), place)
        if kind == "TurnEnd":
            self.open = None
            return self.follow(InterimRow(line.number, "TurnEnd", mark="ended"), place)
        if kind == "StepInterrupted":
            self.open = None
            return self.follow(InterimRow(line.number, "the step was interrupted", mark="interrupted"), place)
        if kind == "ToolResult":
            return self._result(line, payload, place)
        if kind in ("ContentPart", "ToolCall"):
            return self._part(line, str(kind), payload, place)
        if kind == "ToolCallPart" and self.open is not None and isinstance(payload.get("arguments_part"), str):
            self._more(self.open, line, payload["arguments_part"])
            return place
        if kind == "StatusUpdate" and isinstance(payload.get("token_usage"), dict):
            answer = self._answer(line, place)
            answer.usage = usage_of(payload["token_usage"]) or answer.usage
            key = payload.get("message_id")
            answer.id = key if isinstance(key, str) and key else answer.id
            return place if place.answer is answer else TreePlace(answer)
        if kind == "StepBegin":
            self.open = None
        elif kind == "CompactionBegin":
            self.compacted = f"line {line.number}: the history was compacted before this answer"
        elif kind == "StepRetry":
            self.remarks["note a request that failed and was sent again"] += 1
        lines.count(kind, ROWS)
        return place

    def _answer(self, line: TranscriptLine, place: TreePlace) -> TranscriptAnswer:
        """The answer of the step, which begins with what comes first of it."""
        if self.open is None:
            self.open = answer = self.begin(f"line:{line.number}", self.options.api or ASSUMED, None, place, line)
            answer.started = moment_text(line.value.get("timestamp"))
            answer.take(line)
            self.note_compaction(answer)
            self.add(answer)
        return self.open

    def _more(self, answer: TranscriptAnswer, line: TranscriptLine, text: str) -> None:
        """The rest of the arguments of the last call, where they are written down as they came."""
        last = answer.parts[-1] if answer.parts else None
        if type(last) is ToolCall:
            answer.take(line)
            answer.parts[-1] = last._replace(arguments=(last.arguments or "") + text)

    def _result(self, line: TranscriptLine, payload: dict[str, Any], place: TreePlace) -> TreePlace:
        given = payload.get("return_value", payload.get("result", payload))
        failed = isinstance(given, dict) and given.get("is_error") is True
        key = payload.get("tool_call_id", payload.get("id"))
        part = ToolResultPart(key if isinstance(key, str) else None, None, text_of(given), failed)
        return self.follow(InterimRow(line.number, "", (part,)), place)

    def _part(self, line: TranscriptLine, kind: str, payload: dict[str, Any], place: TreePlace) -> TreePlace:
        fresh = self.open is None
        answer = self._answer(line, place)
        at = At(ExchangePart.BODY, 0, answer.size) if fresh else answer.take(line)
        function = payload.get("function")
        if kind == "ToolCall" and isinstance(function, dict):
            key, name, given = payload.get("id"), function.get("name"), function.get("arguments")
            answer.parts.append(ToolCall(
                key if isinstance(key, str) else None, name if isinstance(name, str) else "",
                given if isinstance(given, str) else None, True, form=ArgsForm.STRING,
                at=At(at.part, at.start, at.end, "/message/payload")))
        elif payload.get("type") == "think":
            answer.parts.append(ReasoningPart(text_of(payload.get("think"))))
        else:
            answer.parts.append(TextPart(text_of(payload.get("text"))))
        return place if place.answer is answer else TreePlace(answer)

    def summarise(self) -> None:
        """That it keeps no stop reason."""
        if self.answers:
            self.reading.notices.insert(0, "Kimi CLI keeps no stop reason and no output cap: what is shown of the ends "
                                        "of its answers is inferred, and says so")
