"""Trajectories in ATIF, the Agent Trajectory Interchange Format 1.0 to 1.7 (Harbor, NeMo Relay and others).

A file is one JSON object with steps. A step is a message of the user, or an answer of the agent with its calls, their
results and its token counts. There is no member for a stop word; some programs write one into `extra`. A step that was
copied from an earlier trajectory is not a new turn, nor is a repeated one. A step for several requests to the model
states their number. Source: Harbor, `docs/trajectory-format`, RFC 0001.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from inspector.sessions import redact
from inspector.sessions.importers.records import Piece, compact_json, first_look, first_value, list_pieces, object_in
from inspector.sessions.reasons import recorder_reason
from inspector.sessions.recording import FileReading, Options, below_file
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, text_of
from inspector.sessions.transcripts.chat_messages import ChatReader, pointer_at, take_call
from inspector.sessions.transcripts.member_values import (
    first_count,
    known_text,
    number_of,
    numbered_objects,
    object_of,
    objects_of,
)
from inspector.sessions.transcripts.provider_answers import row_of
from loop_core.values import At, Finding, Severity, ToolResultPart, Usage

WORDS = ("finish_reason", "stop_reason", "finish_reasons")
"""The names of a stop word in `extra` of a step or of its metrics; they differ by program."""
THOUGHT = ("reasoning_tokens", "reasoning_output_tokens")
"""The names of the count of reasoning tokens in `extra` of the metrics; the second is that of Codex."""
WRITTEN = ("cache_creation_input_tokens", "cache_write_tokens")
"""The names of the count of tokens written to the cache, also in `extra` of the metrics."""
FIELDS: Fields = {
    "": {
        "source": (str,), "message": (str, list), "timestamp": (str,), "model_name": (str,), "tool_calls": (list,),
        "reasoning_content": (str,), "observation": (dict,), "metrics": (dict,), "extra": (dict,),
        "llm_call_count": (int,), "is_copied_context": (bool,),
    },
}


def sniff(head: bytes, path: str) -> int:
    """Recognises an object with the format's version."""
    version = object_of(first_look(head).first).get("schema_version")
    return 100 if isinstance(version, str) and version.upper().startswith("ATIF") else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer of the trajectory and of the subagents within it."""
    reader = _Trajectory(path, options)
    return reader.read_records(reader.pieces(data))


class _Trajectory(ChatReader):
    name, agent, fields = "atif", "ATIF", FIELDS
    unit = "step"
    row_word = ("a step", "steps")

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.heads: dict[int, tuple[str | None, str]] = {}
        """Number of a trajectory's first step -> the trajectory's model and the name of its session."""
        self.seen: set[str] = set()
        """The answers so far, with their times."""

    def pieces(self, data: bytes) -> Iterator[Piece]:
        """The steps, then those of the subagents."""
        run = object_in(data) or object_of(first_value(data))
        self.title = known_text(object_of(run.get("agent")).get("name")) or ""
        further = run.get("continued_trajectory_ref")
        if isinstance(further, str) and further:
            self.reading.notices.append(f"the trajectory goes on in another file: {redact.text(further)[:120]}")
        children = run.get("subagent_trajectories")
        number = 0
        for place, trajectory in ((), run), *((("subagent_trajectories", n), each)
                                              for n, each in enumerate(children if isinstance(children, list) else ())):
            agent = object_of(object_of(trajectory).get("agent"))
            model = known_text(agent.get("model_name"))
            title = redact.text(known_text(agent.get("name")) or "subagent")[:80]
            session = below_file(f"{title} ({len(self.heads)})") if place else ""
            self.heads[number + 1] = redact.text(model) if model is not None else None, session
            for _, piece, last in list_pieces(data, *place, "steps"):
                number += 1
                yield number, piece, last

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value, source = line.value, line.value.get("source")
        # The steps of all trajectories are numbered in one sequence, so the first of each begins a new conversation.
        if line.number in self.heads:
            (self.model, self.session), place = self.heads[line.number], TreePlace(None)
        if value.get("is_copied_context") is True:
            self.remarks["are copied from an earlier trajectory"] += 1
            return place
        if source == "agent" and self._is_repeated(value):
            self.remarks["repeat a step before them, with its time"] += 1
            return place
        # 0 marks a step that the agent made without its model (ATIF 1.7).
        if source == "agent" and value.get("llm_call_count") != 0:
            return self._answer(line, place)
        if source == "user":
            return self.say(line, place, text_of(value.get("message")))
        if source == "agent":
            return self.say(line, place, text_of(value.get("message")), own=True)
        lines.count(source, frozenset({"system"}))
        return place

    def _is_repeated(self, value: dict[str, Any]) -> bool:
        """Whether an earlier step is equal except for its number. Equal steps without a time may be different ones."""
        when = known_text(value.get("timestamp"))
        same = compact_json({**value, "step_id": None}).decode()
        repeated = when is not None and same in self.seen
        self.seen.add(same)
        return repeated

    def _answer(self, line: TranscriptLine, place: TreePlace) -> TreePlace:
        value = line.value
        answer = self.answer(line, place, model=known_text(value.get("model_name")))
        at = answer.take(line)
        answer.add_thought(value.get("reasoning_content"))
        answer.add_text(text_of(value.get("message")))
        for number, call in numbered_objects(value.get("tool_calls")):
            take_call(answer, call, line, at, "tool_calls", number, key="tool_call_id", name="function_name")
        answer.usage = usage_of(value.get("metrics"))
        take_word(answer, value, at)
        merged = number_of(value.get("llm_call_count"))
        if merged is not None and merged > 1:
            message = f"the step stands for {merged} calls of the model: which of them ended how is not recorded"
            answer.findings.append(Finding("transcript.merged", Severity.INFO, message, at))
        results = tuple(ToolResultPart(known_text(result.get("source_call_id")), None, text_of(result.get("content")))
                        for result in objects_of(object_of(value.get("observation")).get("results")))
        after = TreePlace(answer)
        if not results:
            return after
        if answer.calls:
            return self.say(line, after, "", results)
        # Without calls, an observation is the next message of the environment (mini agents write commands as text).
        return self.say(line, after, "\n".join(part.text for part in results), own=True)


def take_word(answer: TranscriptAnswer, value: dict[str, Any], at: At) -> None:
    """Reads the stop word in `extra`, in the vocabulary of any provider."""
    answer.word_at = at
    for path in (("extra",), ("metrics", "extra")):
        holder: dict[str, Any] = value
        for name in path:
            holder = object_of(holder.get(name))
        for name in WORDS:
            member = holder.get(name)
            word = member[0] if isinstance(member, list) and len(member) == 1 else member
            if isinstance(word, str) and word:
                row = row_of(word)
                answer.stop = recorder_reason(row.stop, row.detail, pointer_at(at, *path, name), word, "atif.extra")
                return


def usage_of(metrics: Any) -> Usage | None:
    """The token counts of one step."""
    if not isinstance(metrics, dict):
        return None
    extra = object_of(metrics.get("extra"))
    return Usage(number_of(metrics.get("prompt_tokens")), number_of(metrics.get("completion_tokens")),
                 first_count(extra, *THOUGHT), number_of(metrics.get("cached_tokens")), first_count(extra, *WRITTEN))
