"""Trajectories of mini-swe-agent (`.traj.json`): an object with `messages`, or in older versions a list of messages.

An answer has LiteLLM's response (`extra.response`), with the stop word and the token counts, or is itself an answer of
the Responses API. An unusable answer is in the `extra.response` of the message that complains about it. Older files
have only text, with the command in a code block. Source: mini-swe-agent 2.4.6 `models/litellm_model.py`,
`models/utils/actions_*.py`.
"""

from __future__ import annotations

import re
from typing import Any

from inspector.sessions import redact
from inspector.sessions.importers.records import first_look, list_pieces, object_in
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, text_of
from inspector.sessions.transcripts.chat_messages import (
    ChatReader,
    command_call,
    pointer_at,
    take_call,
    take_message,
    unanswered_call,
)
from inspector.sessions.transcripts.member_values import (
    cap_of,
    counts_of,
    known_text,
    moment_text,
    number_of,
    numbered_objects,
    object_of,
    objects_of,
)
from inspector.sessions.transcripts.provider_answers import take_litellm, take_litellm_end, take_provider_word
from loop_core.values import At, ReasoningPart, TextPart, Usage

COMMAND = re.compile(r"```(?:mswea_bash_command|bash)\s*\n(.*?)\n```", re.DOTALL)
"""Matches the command in an answer of a model without tools; an answer must have exactly one."""
NAMES = (b"mswea", b"COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", b"MICRO_SWE_AGENT_FINAL_OUTPUT")
"""Texts of which the first messages of every file contain one."""
BY_USER = re.compile(r"(?:Commands? not executed|Interrupted by user)\b")
"""Matches the beginning of an older version's message about a rejected command or an interruption."""
NEW_TASK = "UserNewTask"
"""The kind of the message with which the user continues after the work was submitted."""
SUBMITTED = "Submitted"
FIELDS: Fields = {
    "": {
        "role": (str,), "content": (str, list), "tool_calls": (list,), "tool_call_id": (str,), "call_id": (str,),
        "output": (str, list), "extra": (dict,), "timestamp": (float, int),
    },
    "extra": {
        "response": (dict, str), "actions": (list,), "interrupt_type": (str,), "exit_status": (str,),
    },
}


def sniff(head: bytes, path: str) -> int:
    """Recognises an object with messages and facts about the run, or a list of messages that name the agent."""
    first = first_look(head).first
    if isinstance(first, dict):
        info = object_of(first.get("info"))
        if str(first.get("trajectory_format", "")).startswith("mini-swe-agent"):
            return 100
        is_trajectory = "exit_status" in info or "mini_version" in info or "model_stats" in info
        is_trajectory = is_trajectory or ("messages" in first and path.lower().endswith(".traj.json"))
        return 90 if is_trajectory and "trajectory" not in first and "history" not in first else 0
    if isinstance(first, list) and first and isinstance(first[0], dict) and "role" in first[0]:
        return 90 if path.lower().endswith(".traj.json") or any(name in head for name in NAMES) else 0
    return 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer of the run."""
    reader = _Trajectory(path, options)
    bare = data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"["
    if not bare:
        reader.about(data)
    pieces = list_pieces(data) if bare else list_pieces(data, "messages")
    return reader.read_records(pieces)


class _Trajectory(ChatReader):
    name, agent, fields = "mini-swe-agent", "mini-swe-agent", FIELDS
    repairs = True

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.requests = 0
        """The number of requests according to the facts about the run."""

    def about(self, data: bytes) -> None:
        """Reads the facts about the whole run: the model, the cap, the outcome."""
        info = object_of(object_in(data).get("info"))  # empty for a cut file, whose messages are still read
        model = object_of(object_of(info.get("config")).get("model"))
        parameters = object_of(model.get("model_kwargs"))
        self.model = known_text(model.get("model_name"))
        self.cap = cap_of(parameters)
        self.requests = number_of(object_of(info.get("model_stats")).get("api_calls")) or 0
        status = known_text(info.get("exit_status"))
        if status is not None:
            self.reading.notices.append(f"the run ended with exit_status {redact.text(status)[:80]!r}: "
                                        "its outcome, not a stop reason")

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value, extra = line.value, object_of(line.value.get("extra"))
        role = value.get("role")
        if role == "assistant" or value.get("object") == "response":
            return self._assistant(line, place, extra)
        if role == "tool" or value.get("type") == "function_call_output":
            output = text_of(value.get("content") if role == "tool" else value.get("output"))
            key = known_text(value.get("tool_call_id")) or value.get("call_id")
            return self.result(line, place, key, output)
        if role == "exit":
            place = self._failure(line, extra, place)
            status = known_text(extra.get("exit_status")) or text_of(value.get("content"))[:80]
            ended = status == SUBMITTED
            note = status if ended else f"the agent ended the run ({status})"
            return self.say(line, place, note, mark="ended" if ended else "stopped")
        if role != "user":
            lines.count(role, frozenset({"system"}))
            return place
        return self._user(line, place, extra)

    def summarise(self) -> None:
        """Reports the number of answers that the file lacks; it may have only complaints about them."""
        super().summarise()
        if self.requests > len(self.answers):
            self.reading.notices.append(f"the run made {self.requests:,} requests, and the file has the answers to "
                                        f"{len(self.answers):,} of them")

    def _assistant(self, line: TranscriptLine, place: TreePlace, extra: dict[str, Any]) -> TreePlace:
        value, response = line.value, object_of(extra.get("response"))
        answer = self.answer(line, place, str(response.get("id") or ""))
        at = answer.take(line)
        answer.started = moment_text(extra.get("timestamp", value.get("timestamp"))) or answer.started
        if value.get("object") == "response":
            take_response(answer, value, line, at)
        else:
            take_message(answer, value, line, at)
            take_litellm_end(answer, response, self.model, at, "extra", "response")
        self._command(answer, extra, at)
        return TreePlace(answer)

    def _failure(self, line: TranscriptLine, extra: dict[str, Any], place: TreePlace) -> TreePlace:
        """Adds a failed request, if an exception ended the run and the file lacks an answer."""
        message = known_text(extra.get("exception_str"))
        if message is None or self.requests <= len(self.answers):
            return place  # the exception comes from a command or from the agent
        answer = self.answer(line, place)
        kind = known_text(extra.get("exit_status"))
        answer.fail(message, answer.take(line), kind=kind)
        return TreePlace(answer)

    def _command(self, answer: TranscriptAnswer, extra: dict[str, Any], at: At) -> None:
        """Adds the command of an answer without calls: the recorded one, else the one code block of its text."""
        if answer.calls:
            return
        listed = [known_text(action.get("command")) for action in objects_of(extra.get("actions"))]
        found = listed if "actions" in extra else COMMAND.findall(answer.text)
        # mini-swe-agent requires exactly one code block, and runs nothing if an answer has none or several.
        if len(found) == 1 and found[0]:
            answer.parts.append(command_call(found[0], "bash", pointer_at(at, "content")))

    def _user(self, line: TranscriptLine, place: TreePlace, extra: dict[str, Any]) -> TreePlace:
        """Reads the task, the output of a command, or a complaint, which may contain the rejected answer."""
        text, kind, response = text_of(line.value.get("content")), extra.get("interrupt_type"), extra.get("response")
        if isinstance(response, dict) and (response.get("choices") or response.get("object") == "response"):
            answer = self.answer(line, place, str(response.get("id") or ""))
            at = answer.take(line)
            if response.get("choices"):
                take_litellm(answer, response, self.model, line, at, "extra", "response")
            else:
                take_response(answer, response, line, at, "extra", "response")
            return self.say(line, TreePlace(answer), text, own=True)
        # In interactive mode, the user may give a new task after the model has submitted the first one.
        if kind == NEW_TASK and place.answer is not None:
            return self.say(line, self.say(line, place, SUBMITTED, mark="ended"), text)
        by_user = kind.startswith("User") if isinstance(kind, str) else kind is None and BY_USER.match(text) is not None
        if by_user and place.answer is not None:
            return self.say(line, self.say(line, place, "", mark="interrupted"), text)
        if place.answer is None:
            return self.say(line, place, text)
        if kind is None and unanswered_call(place) is not None:
            return self.result(line, place, None, text)
        return self.say(line, place, text, own=True)


def take_response(
    answer: TranscriptAnswer, value: dict[str, Any], line: TranscriptLine, at: At, *path: str | int
) -> None:
    """Reads an answer of the Responses API, `value` at `path` of a row: a message itself, or the answer that a
    complaint rejects."""
    for number, item in numbered_objects(value.get("output")):
        kind, where = item.get("type"), (*path, "output", number)
        if kind == "message":
            answer.parts.append(TextPart(text_of(item.get("content"))))
        elif kind == "reasoning":
            answer.parts.append(ReasoningPart(text_of(item.get("summary"))))
        elif kind == "function_call":
            key = "call_id" if item.get("call_id") else "id"
            take_call(answer, item, line, at, *where, key=key)
    answer.model = known_text(value.get("model")) or answer.model
    take_provider_word(answer, value, at, *path)
    counts = object_of(value.get("usage"))
    if counts:
        input_tokens, output_tokens = counts_of(counts, "input_tokens", "output_tokens")
        thought = number_of(object_of(counts.get("output_tokens_details")).get("reasoning_tokens"))
        cache = counts_of(object_of(counts.get("input_tokens_details")), "cached_tokens", "cache_write_tokens")
        answer.usage = Usage(input_tokens, output_tokens, thought, *cache)
