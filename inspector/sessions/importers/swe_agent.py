"""Trajectories of SWE-agent (`.traj`), and the files of its demonstrations: one JSON object with `history`.

The history is a list of messages. An assistant message has the command that SWE-agent extracted from its text
(`action`) or the model's calls (`tool_calls`); the next message is the result. In a file without a history, the steps
of `trajectory` have the same. No stop word is stored: `info.exit_status` is the outcome of the whole run. Source:
SWE-agent `sweagent/agent/agents.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from inspector.sessions import redact
from inspector.sessions.importers.records import Piece, first_look, list_pieces, object_in
from inspector.sessions.reasons import error_in_text, is_unrecorded, recorder_reason
from inspector.sessions.recording import FileReading, Options, UnreadableError
from inspector.sessions.stored_rows import row_bytes
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import InterimRow, TranscriptAnswer, TranscriptLine, TreePlace, text_of
from inspector.sessions.transcripts.chat_messages import (
    ChatReader,
    command_call,
    pointer_at,
    take_message,
    unanswered_call,
)
from inspector.sessions.transcripts.member_values import known_text, number_of, object_of, objects_of
from loop_core.values import At, ExchangePart, Finding, Severity, Stop, ToolResultPart
from loop_core.wire.failures import StopRow

LISTS = ("history", "trajectory")
"""The members that may have messages or steps; the first that is not empty is read."""
EXIT = re.compile(r"Exit(?:ing)? due to (.*)", re.DOTALL)
"""Matches SWE-agent's text instead of an answer when it gives up the run (`handle_error_with_autosubmission`)."""
REFUSED: Mapping[str, StopRow] = {
    "context window": StopRow(Stop.CONTEXT_WINDOW_EXCEEDED, None, "SWE-agent agents.py, exit_context"),
    "retry error": StopRow(Stop.ERROR, "fatal", "SWE-agent agents.py, exit_api"),
}
"""Beginning of the reason for giving up the run -> the stop reason; for other reasons no request was sent."""
FIELDS: Fields = {
    "": {
        "role": (str,), "content": (str, list), "thought": (str,), "action": (str,), "tool_calls": (list,),
        "tool_call_ids": (list,), "is_demo": (bool,), "message_type": (str,), "response": (str,), "observation": (str,),
    },
}
SUBMITTED = "submitted"
"""The exit status of a run that ended after its last command was run."""
_ROLES = frozenset({"system", "user", "assistant", "tool"})


def sniff(head: bytes, path: str) -> int:
    """Recognises an object with the steps of a trajectory, or with a history of messages."""
    first = first_look(head).first
    if not isinstance(first, dict):
        return 0
    steps = objects_of(first.get("trajectory"))
    if "trajectory" in first and ("environment" in first or "history" in first or "info" in first):
        return 100
    if steps and "observation" in steps[0] and ("action" in steps[0] or "response" in steps[0]):
        return 95  # the head of a long file ends before the other members
    if "attempts" in first and "info" in first:
        return 90
    history = first.get("history")
    rows = history if isinstance(history, list) else []
    message = rows[0] if rows and isinstance(rows[0], dict) else {}
    return 90 if message.get("role") in _ROLES and "content" in message else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer of the run, including further attempts."""
    reader = _Trajectory(path, options)
    reader.about(data)
    attempts = _attempts(data)
    if attempts:
        return reader.read_records(reader.several(
            (f"attempt {number + 1}", _run(data, "attempts", number)) for number in range(attempts)))
    return reader.read_records(_run(data))


def _attempts(data: bytes) -> int:
    if b'"attempts"' not in data:
        return 0
    attempts = object_in(data).get("attempts")
    return len(attempts) if isinstance(attempts, list) else 0


def _run(data: bytes, *path: str | int) -> list[Piece]:
    return next(filter(None, (list(list_pieces(data, *path, name)) for name in LISTS)), [])


class _Trajectory(ChatReader):
    name, agent, fields = "swe-agent", "SWE-agent", FIELDS
    repairs = True

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.outcome = ("", "")
        """The last command in the steps, and its output."""
        self.status = ""
        self.requests = 0
        """The number of requests according to the facts about the run."""

    def about(self, data: bytes) -> None:
        """Reads the facts about the whole run: the model, the cap, the outcome."""
        run = object_in(data)
        if not run:
            return  # a cut file; its messages are read without these facts
        if not any(name in run for name in (*LISTS, "attempts")):
            raise UnreadableError("not a trajectory: expected an object with history or trajectory")
        replay = run.get("replay_config")  # an object, or an object as JSON text
        agent = (object_in(replay) if isinstance(replay, str) else object_of(replay)).get("agent")
        model = object_of(object_of(agent).get("model"))
        self.model = known_text(model.get("name"))
        self.cap = number_of(model.get("max_output_tokens")) or None
        info = object_of(run.get("info"))
        status, stats = known_text(info.get("exit_status")), object_of(info.get("model_stats"))
        if status is not None:
            self.status = redact.text(status)[:40]
            self.reading.notices.append(
                f"the run ended with exit_status {status[:80]!r}: its outcome, not a stop reason")
        self.requests = number_of(stats.get("api_calls")) or 0
        input_tokens, output_tokens = number_of(stats.get("tokens_sent")), number_of(stats.get("tokens_received"))
        if input_tokens or output_tokens:
            notice = f"tokens are counted for the whole run alone: {input_tokens or 0:,} in, {output_tokens or 0:,} out"
            self.reading.notices.append(notice)
        steps = objects_of(run.get("trajectory"))
        if steps and isinstance(steps[-1].get("action"), str) and isinstance(steps[-1].get("observation"), str):
            self.outcome = (steps[-1]["action"], redact.text(steps[-1]["observation"]))

    def settle(self) -> None:
        """Adds the result of the last command, which only the steps contain, and the outcome of the run."""
        last = self.last.answer
        call = unanswered_call(self.last)
        action = object_in(row_bytes(last.rows[-1])).get("action") if last is not None else None
        # In the steps, a command without a result has an empty output.
        if last is not None and call is not None and all(self.outcome) and self.outcome[0] == action:
            result = ToolResultPart(call.id, None, self.outcome[1])
            last.after.append(InterimRow(last.line + 1, "", (result,), unit=self.unit))
        super().settle()
        if last is None or not self.status or self.runs:
            return
        at = At(ExchangePart.REQUEST, None, None, "/info/exit_status")
        if self.status == SUBMITTED and call is not None and last.stop is not None and is_unrecorded(last.stop):
            last.stop = recorder_reason(Stop.TOOL_CALL, None, at, self.status, "swe_agent.exit_status")
        else:
            text = f"the run ended with exit_status {self.status!r}: the recorder's word for the run, not a stop reason"
            last.findings.append(Finding("transcript.exit_status", Severity.INFO, text, at))

    def summarise(self) -> None:
        """Reports the number of answers that the history lacks: one without a usable command is only in the steps."""
        super().summarise()
        lacking = self.requests > len(self.answers) and not self.runs
        if lacking:
            self.reading.notices.append(f"the run made {self.requests:,} requests, and its history has the answers to "
                                        f"{len(self.answers):,} of them")

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value = line.value
        place = TreePlace(None) if self.begins(line) else place
        role = value.get("role")
        if role is None and ("response" in value or "observation" in value):
            return self._step(line, place)
        # An example in the prompt, whose answers are not from this run.
        if value.get("is_demo") is True or value.get("message_type") == "demonstration":
            lines.count("demonstration", frozenset({"demonstration"}))
        elif role == "assistant":
            return self._assistant(line, place)
        elif role in ("user", "tool"):
            return self._observation(line, place)
        else:
            lines.count(role, frozenset({"system"}))
        return place

    def _assistant(self, line: TranscriptLine, place: TreePlace) -> TreePlace:
        value = line.value
        exited = given_up(value, value.get("content"))
        if exited is not None:
            return self._exit(line, place, exited)
        answer = self.answer(line, place)
        at = answer.take(line)
        take_message(answer, value, line, at)
        if not answer.calls:
            take_command(answer, value, at)
        return TreePlace(answer)

    def _exit(self, line: TranscriptLine, place: TreePlace, match: re.Match[str]) -> TreePlace:
        """Reads the text with which SWE-agent gives up: a failed request, or the end of its loop."""
        row = next((row for words, row in REFUSED.items() if match[1].startswith(words)), None)
        if row is None:
            return self.say(line, place, redact.text(match[0])[:200], mark="stopped")
        answer = self.answer(line, place)
        at = pointer_at(answer.take(line), "thought")
        answer.error = error_in_text(match[0], None, None)
        answer.stop = recorder_reason(row.stop, row.detail, at, match[0][:80], "swe_agent.exits")
        return TreePlace(answer)

    def _observation(self, line: TranscriptLine, place: TreePlace) -> TreePlace:
        value = line.value
        text, ids = text_of(value.get("content")), value.get("tool_call_ids")
        key = known_text(ids[0]) if isinstance(ids, list) and ids else None
        if key is not None or unanswered_call(place) is not None:
            return self.result(line, place, key, text)
        return self.say(line, place, text, own=place.answer is not None)

    def _step(self, line: TranscriptLine, place: TreePlace) -> TreePlace:
        value = line.value
        exited = given_up(value, value.get("response"))
        if exited is not None:
            return self._exit(line, place, exited)
        answer = self.answer(line, place)
        at = answer.take(line)
        # `response` is the whole text, `thought` only the part before the command.
        answer.add_text(known_text(value.get("response")) or value.get("thought"))
        take_command(answer, value, at)
        observation = value.get("observation")
        if not isinstance(observation, str):
            return TreePlace(answer)
        results = (ToolResultPart(None, None, observation),) if answer.calls else ()
        return self.say(line, TreePlace(answer), "" if results else observation, results, own=True)


def take_command(answer: TranscriptAnswer, value: dict[str, Any], at: At) -> None:
    """Reads the command that SWE-agent extracted from the text of an answer; the first word is the tool's name."""
    action = known_text(value.get("action"))
    if action is not None and action.strip():
        answer.parts.append(command_call(action, action.split()[0], pointer_at(at, "action")))


def given_up(value: dict[str, Any], text: Any) -> re.Match[str] | None:
    """The match of SWE-agent's text about giving up the run; None for an answer of the model."""
    action, thought = value.get("action") or "", value.get("thought")
    idle = isinstance(action, str) and (not action.strip() or action.startswith("exit_"))
    if not idle or value.get("tool_calls") or not isinstance(thought, str) or text != thought:
        return None
    return EXIT.fullmatch(thought)
