"""Sessions of the Kimi CLI in Python (`~/.kimi/sessions/*/*/wire.jsonl`), and the common reader of both Kimi clients.

The files have the events between the CLI's engine and its screen, without stop words and output caps. The events of a
subagent are wrapped in events of its parent, and form a session below that of the file. The history for the model
(`context.jsonl`, in releases of 2025 `<session>.jsonl`) is a file of messages. Sources: kimi-cli's `src/kimi_cli/wire`,
`src/kimi_cli/soul/context.py`.
"""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

from inspector.config import files as bounds
from inspector.sessions import redact
from inspector.sessions.importers.records import object_beside
from inspector.sessions.recording import Options, SessionAbout, below_file
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import InterimRow, TranscriptAnswer, TranscriptLine, TreePlace, text_of
from inspector.sessions.transcripts.chat_messages import ChatReader, MessageReader, pointer_at
from inspector.sessions.transcripts.member_values import (
    first_count,
    first_text,
    input_count,
    known_text,
    moment_text,
    number_of,
    object_of,
    text_or_none,
)
from loop_core.judge.arguments import ArgumentShape, parse
from loop_core.values import At, ExchangePart, ReasoningPart, TextPart, ToolCall, ToolResultPart, Usage

ROWS = frozenset({
    "metadata", "config.update", "tools.set_active_tools", "turn.prompt", "turn.steer", "turn.cancel", "turn.ended",
    "context.append_message", "context.append_loop_event", "context.apply_compaction", "llm.tools_snapshot",
    "llm.request", "usage.record", "permission.set_mode", "permission.record_approval_result", "profile.bind",
    "plugin.session_start", "runtime.set_binding", "token_counting.measured", "token_counting.turn_recorded",
    "plan_mode.enter", "plan_mode.exit", "full_compaction.begin", "full_compaction.complete", "step.begin",
    "agent.message.appended", "agent.turn.started", "agent.turn.ended", "prompt.accepted", "task.started",
    "task.terminated", "interaction.request", "interaction.resolved", "turn.step.retrying", "turn.step.interrupted",
    "tools.update_store", "tools.register_user_tool", "tools.unregister_user_tool", "tools.reset_active_tools",
    "context.clear", "context.undo", "forked", "prompt.aborted", "prompt.completed", "prompt.steered",
    "full_compaction.cancel", "token_counting.rebased", "token_counting.truncated", "plan_mode.cancel", "plan.revision",
    "goal.create", "goal.update", "goal.clear", "mcp.tools_discovered", "interruptionReminder.recorded",
    "file_history.checkpoint", "file_history.tracked", "task.waitDelivered", "context.update_token_count",
    "micro_compaction.apply", "swarm_mode.enter", "swarm_mode.exit", "tower_mode.enter", "tower_mode.exit", "cron.add",
    "cron.delete", "cron.cursor", "staleGuard.recorded", "staleGuard.cleared", "subagent.spawned", "subagent.started",
    "subagent.suspended", "subagent.completed", "subagent.failed", "subagent.cancelled",
    "StatusUpdate", "StepBegin", "TurnBegin", "TurnEnd", "CompactionBegin", "CompactionEnd", "ApprovalRequest",
    "ApprovalRequestResolved", "ApprovalResponse", "ToolCallPart", "StepRetry", "SubagentEvent", "HookTriggered",
    "HookResolved", "HookRequest", "MCPLoadingBegin", "MCPLoadingEnd", "Notification", "PlanDisplay", "QuestionRequest",
    "ToolCallRequest",
})
"""The known types of records; those without a part of an exchange are counted."""
FIELDS: Fields = {
    "": {"type": (str,), "event": (dict,), "message": (dict, str), "model": (str,), "maxTokens": (int,)},
    "event": {
        "type": (str,), "uuid": (str,), "stepUuid": (str,), "toolCallId": (str,), "name": (str,), "usage": (dict,),
        "finishReason": (str,), "providerFinishReason": (str,), "rawFinishReason": (str,), "part": (dict,),
    },
}


def value_text(value: Any) -> str:
    """The text of a message, an input or a tool's output."""
    while isinstance(value, dict):
        value = next((value[name] for name in ("text", "output", "message", "content") if value.get(name)), "")
    return text_of(value)


def usage_of(usage: Any, api: str) -> Usage | None:
    """Token counts of a wire format; the input is split into three counts."""
    if not isinstance(usage, dict):
        return None

    # Kimi Code's spelling, then the Python client's
    cached = first_count(usage, "inputCacheRead", "input_cache_read")
    written = first_count(usage, "inputCacheCreation", "input_cache_creation")
    input_tokens = input_count(api, first_count(usage, "inputOther", "input_other"), cached, written)
    return Usage(input_tokens, number_of(usage.get("output")), None, cached, written)


class KimiReader(ChatReader):
    """The common reader of both clients."""

    name, fields = "kimi", FIELDS
    unit, row_word = "line", ("a record", "records")
    steered = True


FAILED = "the step failed; Kimi CLI does not record why"
"""The error for `StepInterrupted`. Kimi CLI writes this event if a step ends in an exception (`kimisoul.py`), and
nothing if the user stops a step. In November 2025, before files stated a protocol, it wrote the event for both."""
WITHIN = "the turn ended within a step, whose answer was not complete"
"""The words for `TurnEnd` after a step without counts; Kimi CLI also writes this event if the user cancels the step."""
INPUTS = {"TurnBegin": "user_input", "SteerInput": "user_input", "BtwBegin": "question"}
"""Type of an event with a text of the user -> the member with the text."""
SIDE = frozenset({"BtwBegin", "BtwEnd"})
"""The events of a side question (`/btw`), which is no part of the conversation (`soul/btw.py`)."""
_SUBAGENT_ID = re.compile(r"[\w-]{1,80}")
"""Matches the id of a subagent. The id is a folder's name, so it must not lead out of the session's folder."""


def _attempt(error_type: str | None, status: int | None) -> str:
    """The end of an attempt, in words."""
    return f"{error_type or 'no reason is recorded'}{'' if status is None else f', HTTP {status}'}"


class WireEvent(NamedTuple):
    """An event of the CLI's wire; `agent` is the subagent that sent it, or the call that started it."""

    kind: Any
    payload: dict[str, Any]
    agent: str = ""
    title: str = ""


def event_of(value: dict[str, Any]) -> WireEvent:
    """The innermost event of a row; events of subagents are unwrapped."""
    # `params`: an event in JSON-RPC (`--wire`)
    event, agent, title = object_of(value.get("message", value.get("params"))), "", ""
    while event.get("type") == "SubagentEvent":  # subagents may begin subagents
        payload = object_of(event.get("payload"))
        # Newer releases name the agent, older ones only the call that started it.
        name = first_text(*map(payload.get, ("agent_id", "parent_tool_call_id", "task_tool_call_id")))
        inner = object_of(payload.get("event"))
        if not name or not inner:
            break
        event, agent, title = inner, name, known_text(payload.get("subagent_type")) or "subagent"
    kind, payload = event.get("type"), object_of(event.get("payload"))
    if kind in SIDE:
        agent, title = f"btw {first_text(payload.get('id'))}", "side question"
    return WireEvent(kind, payload, agent, title)


class KimiCliSession(KimiReader):
    """A file of the Kimi CLI in Python: events of its wire, without stop words and caps."""

    agent = "Kimi CLI"
    words = ("Kimi CLI keeps no stop reason and no output cap: what is shown of the ends of its answers is inferred, "
             "and says so")

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.sender = ""
        """The id of the subagent whose event is read; empty for the main agent."""
        self.open: dict[str, TranscriptAnswer] = {}
        """Agent -> the answer of the agent's current step."""
        self.stepping: set[str] = set()
        """The agents with an event about the beginning of a step; all their requests begin with such an event."""
        self.idle: set[str] = set()
        """The agents whose turn has begun, without a step so far."""
        self.marking: set[str] = set()
        """The agents whose answers end with a mark, a `StatusUpdate` with the counts or the id of the answer."""
        self.failures: dict[str, dict[str, Any]] = {}
        """Agent -> the last failed request of its current step."""
        self.compactions: dict[str, str] = {}
        """Agent -> the finding about a compaction, for the agent's next answer."""
        self.sessions: dict[str, str] = {"": ""}
        """Agent -> the name of the agent's session."""
        self.elsewhere: set[str] = set()
        """The subagents that have files of their own."""

    def lane(self, value: dict[str, Any]) -> str:
        """The agent that sent an event."""
        return event_of(value).agent

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """Reads an event."""
        kind, payload, agent, title = event_of(line.value)
        self.sender = agent
        if agent not in self.sessions:
            self.sessions[agent] = below_file(redact.text(f"{title[:80]} ({agent[-8:]})"))
            self.elsewhere |= {agent} if self._has_file(agent) else set()
        if agent in self.elsewhere:  # its own file is read too, so each answer would be counted twice
            self.remarks["are events of subagents, which the files in subagents/ show"] += 1
            return place
        if member := INPUTS.get(str(kind)):
            text = value_text(payload.get(member))
            if kind == "TurnBegin":
                self._begin_turn(text)
            return place.after(InterimRow(line.number, text))
        if kind == "BtwEnd":
            return self._end_side(line, payload, place)
        if kind == "TurnEnd":
            return self._end_turn(line, place)
        if kind == "StepInterrupted":
            return self._failure(line, place)
        if kind == "ToolResult":
            return self._result(line, payload, place)
        if kind == "ContentPart" and self.sender in self.idle:
            self.remarks["are texts of Kimi CLI itself: the output of a command, or why a hook stopped a prompt"] += 1
            return place
        if kind in ("ContentPart", "ToolCall"):
            return self._part(line, str(kind), payload, place)
        if kind == "ToolCallPart" and self.sender in self.open and isinstance(payload.get("arguments_part"), str):
            self._append_arguments(self.open[self.sender], line, payload["arguments_part"])
            return place
        if kind == "StatusUpdate" and (isinstance(payload.get("token_usage"), dict)
                                       or (payload.get("message_id") and self.sender in self.open)):
            return self._end_answer(line, payload, place)
        if kind == "StepRetry":
            return self._retry(line, payload, place)
        if kind == "StepBegin":
            self._begin_step()
        elif kind == "CompactionBegin":
            self.compactions[self.sender] = f"line {line.number}: the history was compacted before this answer"
        lines.count(line.value.get("type") if kind is None else kind, ROWS)
        return place

    def _begin_turn(self, text: str) -> None:
        """Reads the beginning of a turn, which may need no request: a command, or a prompt that a hook stops."""
        self.open.pop(self.sender, None)
        if self.sender in self.stepping or text.startswith("/"):
            self.idle.add(self.sender)

    def _begin_step(self) -> None:
        """Reads the beginning of a step: a request follows."""
        self.stepping.add(self.sender)
        self.idle.discard(self.sender)
        self.open.pop(self.sender, None)
        self.failures.pop(self.sender, None)

    def _end_answer(self, line: TranscriptLine, payload: dict[str, Any], place: TreePlace) -> TreePlace:
        """Reads the counts and the id of an answer, which are written when the answer is complete."""
        answer = self._answer(line, place)
        answer.usage = usage_of(payload.get("token_usage"), answer.api) or answer.usage
        answer.id = known_text(payload.get("message_id")) or answer.id
        answer.unended = False
        self.marking.add(self.sender)
        return place if place.answer is answer else TreePlace(answer)

    def _end_turn(self, line: TranscriptLine, place: TreePlace) -> TreePlace:
        """Reads the end of a turn. It is the end of the loop only if the turn had a step with a complete answer."""
        answer = self.open.pop(self.sender, None)
        if self.sender in self.idle:  # a command or a hook: no request was made
            self.idle.discard(self.sender)
            return place
        if answer is not None and answer.unended:
            return place.after(InterimRow(line.number, WITHIN, mark="stopped"))
        return place.after(InterimRow(line.number, "TurnEnd", mark="ended"))

    def _retry(self, line: TranscriptLine, payload: dict[str, Any], place: TreePlace) -> TreePlace:
        """Reads a request that failed and is sent again; the part of its answer that had arrived is a failed answer."""
        self.remarks["note a request that failed and was sent again"] += 1
        self.failures[self.sender] = payload
        answer = self.open.pop(self.sender, None)
        if answer is None:
            return place
        named, status = known_text(payload.get("error_type")), number_of(payload.get("status_code"))
        answer.fail(f"the request failed and was sent again ({_attempt(named, status)})", answer.take(line), status,
                    named)
        return TreePlace(answer)

    def _end_side(self, line: TranscriptLine, payload: dict[str, Any], place: TreePlace) -> TreePlace:
        """Reads the answer to a side question, or the reason why there is none."""
        answer, text = self._answer(line, place), known_text(payload.get("response"))
        self.open.pop(self.sender)
        if text is None:
            answer.fail(first_text(payload.get("error"), "no answer to the side question"), answer.word_at)
            return TreePlace(answer)
        answer.parts.append(TextPart(text))
        return TreePlace(answer).after(InterimRow(line.number, "BtwEnd", mark="ended"))

    def _failure(self, line: TranscriptLine, place: TreePlace) -> TreePlace:
        """Reads the end of a failed step, whose answer, which may be empty, ends in an error."""
        attempt = self.failures.pop(self.sender, {})
        answer = self.open.get(self.sender)
        if answer is not None and answer.usage is not None:  # the counts come with the whole answer
            self.open.pop(self.sender)
            return place.after(InterimRow(line.number, FAILED, mark="stopped"))
        answer = self._answer(line, place)
        named, status = known_text(attempt.get("error_type")), number_of(attempt.get("status_code"))
        message = f"{FAILED} (an attempt before it ended in {_attempt(named, status)})" if named else FAILED
        answer.fail(message, answer.take(line), kind=named)
        self.open.pop(self.sender)
        return TreePlace(answer)

    def _has_file(self, agent: str) -> bool:
        """Whether a subagent has a file of its own beside this one."""
        beside = os.path.join(os.path.dirname(self.path), "subagents", agent, "wire.jsonl")
        if _SUBAGENT_ID.fullmatch(agent) is None:
            return False
        try:
            bounds.check_bounds(beside)
            return os.path.getsize(beside) > 0
        except OSError:
            return False

    def _answer(self, line: TranscriptLine, place: TreePlace) -> TranscriptAnswer:
        """The answer of the current step; it begins with the first event of its output."""
        if self.sender not in self.open:
            answer = self.begin(f"line:{line.number}", None, None, place, line)
            answer.started = moment_text(line.value.get("timestamp"))
            answer.session = self.sessions[self.sender]
            answer.unended = self.sender in self.marking
            answer.take(line)
            self.compacted = self.compactions.pop(self.sender, "")
            self.note_compaction(answer)
            self.open[self.sender] = self.add(answer)
        return self.open[self.sender]

    def _append_arguments(self, answer: TranscriptAnswer, line: TranscriptLine, text: str) -> None:
        """Appends a piece of arguments to the last call; `--print` mode writes them as they stream."""
        last = answer.parts[-1] if answer.parts else None
        if type(last) is ToolCall:
            answer.take(line)
            answer.parts[-1] = last._replace(arguments=(last.arguments or "") + text)

    def _result(self, line: TranscriptLine, payload: dict[str, Any], place: TreePlace) -> TreePlace:
        output = payload.get("return_value", payload.get("result", payload))
        key = text_or_none(payload.get("tool_call_id", payload.get("id")))
        part = ToolResultPart(key, None, value_text(output), object_of(output).get("is_error") is True)
        return self.results(line, place, part)

    def _part(self, line: TranscriptLine, kind: str, payload: dict[str, Any], place: TreePlace) -> TreePlace:
        fresh = self.sender not in self.open
        answer = self._answer(line, place)
        # `_answer` has added the row to a new answer
        at = At(ExchangePart.BODY, 0, answer.size) if fresh else answer.take(line)
        function = payload.get("function")
        if kind == "ToolCall" and isinstance(function, dict):
            answer.parts.append(ToolCall(
                text_or_none(payload.get("id")), text_or_none(function.get("name")) or "",
                text_or_none(function.get("arguments")), True, at=pointer_at(at, "message", "payload")))
        elif payload.get("type") == "think":
            answer.parts.append(ReasoningPart(value_text(payload.get("think"))))
        else:
            answer.parts.append(TextPart(value_text(payload.get("text"))))
        return place if place.answer is answer else TreePlace(answer)

    def settle(self) -> None:
        """Also marks a last call with cut arguments and without a result as unfinished: a call of a complete answer is
        always passed to its tool, and has at least an error as its result."""
        for answer in self.answers:
            last = answer.parts[-1] if answer.parts else None
            cut = type(last) is ToolCall and parse(last.arguments).shape is ArgumentShape.CUT
            if type(last) is ToolCall and cut and answer.usage is None and last.id not in answer.results:
                answer.parts[-1] = last._replace(closed=False)
        super().settle()

    def summarise(self) -> None:
        """Also describes the file's session: its title, its id and its parent."""
        super().summarise()
        folder = os.path.dirname(self.path)
        session = folder.rpartition("/subagents/")[0]
        # the task of a subagent
        title = known_text(object_beside(self.path, "meta.json").get("description")) if session else None
        self.reading.about = SessionAbout(title or "", id=folder, parent=session)


MARKS = frozenset({"_checkpoint", "_usage", "_system_prompt"})
"""The roles of rows that are not messages. `_usage` counts the whole context, not one answer."""


class KimiHistory(MessageReader):
    """A history of the Kimi CLI in Python: messages of OpenAI's chat, without stop words, caps and counts."""

    name, agent = "kimi", "Kimi CLI"
    unit, row_word = "line", ("a row", "rows")
    marks = MARKS
    steered = True

    def own(self, text: str) -> bool:
        """Whether a text is a mark or a reminder, which the CLI adds to the history in the role of the user."""
        return text.startswith(("<system>", "<system-reminder>"))
