"""Events of OpenHands: the lists of version 0, and the conversations of the SDK of version 1.

Version 0 writes one list of actions and observations. Each action of an answer with calls contains LiteLLM's whole
answer (`tool_call_metadata.model_response`); an answer of text alone does not. Evaluations of 2024 store pairs of an
action and its observation. OpenHands' resolver stores bare events, without source or id, and with the arguments beside
the action. Version 1 writes `base_state.json` and a file for each event below `events/`: calls as received, with the id
of their answer (`llm_response_id`); token counts are in the state, and there is no stop word. Sources: OpenHands
`events/serialization`, software-agent-sdk `event/llm_convertible`.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from functools import partial
from typing import Any

from inspector.sessions import COMPANION, redact
from inspector.sessions.importers import openhands_events as events
from inspector.sessions.importers.records import Piece, first_look, first_value, list_pieces, object_in, object_lines
from inspector.sessions.intake import sibling
from inspector.sessions.reasons import inferred_reason
from inspector.sessions.recording import FileReading, Options, TurnPlace, UnreadableError
from inspector.sessions.traffic import loads
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import InterimRow, TranscriptAnswer, TranscriptLine, TreePlace, text_of
from inspector.sessions.transcripts.chat_messages import (
    ChatReader,
    call_of,
    command_call,
    pointer_at,
    take_call,
    unanswered_call,
)
from inspector.sessions.transcripts.member_values import first_text, known_text, number_of, object_of, objects_of
from inspector.sessions.transcripts.provider_answers import take_litellm, take_litellm_end, take_provider_word
from loop_core.values import At, Stop, TextPart, ToolCall

FIELDS: Fields = {
    "": {
        "source": (str,), "action": (str, dict), "observation": (str, dict), "args": (dict,), "extras": (dict,),
        "cause": (int,), "content": (str,), "tool_call_metadata": (dict,), "kind": (str,), "llm_message": (dict,),
        "tool_call": (dict,), "tool_call_id": (str,), "llm_response_id": (str,), "error": (str,),
    },
    "tool_call_metadata": {"model_response": (dict,), "tool_call_id": (str,), "function_name": (str,)},
}


def sniff(head: bytes, path: str) -> int:
    """Recognises a list of events, one event, an object with a history of events, or the state of a conversation."""
    look = first_look(head)
    if isinstance(look.first, list):
        return 100 if any(events.is_event(value) for value in look.first[:4]) else 0
    alone = events.is_state(look.first) or events.is_event(look.first)
    return max((*map(_sniff_run, look.objects), 95 if alone else 0))


def _sniff_run(value: dict[str, Any]) -> int:
    """The score of an object that may have the events of a run."""
    held = next((each for each in map(value.get, events.LISTS) if isinstance(each, list)), None)
    if held and (events.is_event(held[0]) or events.is_pair(held[0])):
        return 100
    if held and events.is_bare(held[0]):
        return 90
    return 80 if held is None and value.keys() >= {"instance_id", "test_result"} else 0  # events after a long patch


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer in the events. Raises `UnreadableError` if the file belongs to a conversation that is read
    from another file: its state, or its first event."""
    reader = _Events(path, options)
    return reader.read_records(_pieces(data, path, reader))


def _pieces(data: bytes, path: str, reader: _Events) -> Iterator[Piece]:
    first = first_value(data)
    if isinstance(first, list):
        return list_pieces(data)
    if not isinstance(first, dict):
        raise UnreadableError("not events: expected a list of them, or an object")
    lines = object_lines(data)
    if events.is_event(first):
        if lines:
            return ((number, line, number == len(lines)) for number, line in enumerate(lines, 1))
        return _event_files(data, path) if events.is_sdk_event(first) else iter([(1, data, True)])
    if events.is_state(first):
        reader.state(data)
        folder = os.path.join(os.path.dirname(os.path.abspath(path)), "events")
        return _files(path, sorted(glob.glob(os.path.join(glob.escape(folder), "*.json"))))
    # Without a list in the head, the file is an evaluation with a long patch, whose events are in `history`.
    name = next((name for name in events.LISTS if isinstance(first.get(name), list)), events.LISTS[0])
    if lines:
        return reader.several(reader.runs_of(lines, name))
    reader.error = _text_at(data, "error") or ""
    return _events(data, name)


def _events(data: bytes, name: str) -> Iterator[Piece]:
    """The events of a run; a pair gives its two events."""
    number = 0
    for _, piece, last in list_pieces(data, name):
        for _, event, cut in list_pieces(piece) if piece[:1] == b"[" else ((0, piece, last),):
            number += 1
            yield number, event, last or cut


def _text_at(line: bytes, name: str) -> str | None:
    found = slice_of(line, name)
    return known_text(loads(found.encode())) if found else None


MALFORMED = "_openhands_malformed_tool_call"
"""The member that marks arguments which the SDK wrote instead of the model's."""


def _reject(answer: TranscriptAnswer) -> None:
    """Marks calls as malformed whose arguments the SDK replaced, because they were not JSON (`agent.py`)."""
    errors = {call.id: stand_in.get("error") for call in answer.calls if call.arguments and MALFORMED in call.arguments
              and (stand_in := object_in(call.arguments)).get(MALFORMED) is True}
    if not errors:
        return
    answer.parts = [part._replace(arguments=None, closed=False)
                    if type(part) is ToolCall and part.id in errors else part for part in answer.parts]
    if answer.stop is None or answer.stop.normalized in (Stop.TOOL_CALL, Stop.END_TURN):
        before = answer.stop.evidence if answer.stop is not None else ()
        reason = inferred_reason(Stop.MALFORMED_TOOL_CALL, answer.word_at, "call_rejected", At(),
                                 f"the SDK could not read the arguments of a call: {next(iter(errors.values()))}"[:300])
        answer.stop = reason._replace(evidence=(*before, reason.evidence[-1])) if before else reason


_EVENT = "one event of a conversation, read with "


def _event_files(data: bytes, path: str) -> Iterator[Piece]:
    """The events of a conversation without a state, for its first file; for any other file, its only event."""
    folder, own = os.path.split(os.path.abspath(path))
    if os.path.exists(os.path.join(os.path.dirname(folder), "base_state.json")):
        raise UnreadableError(f"{_EVENT}the base_state.json of the folder above{COMPANION}")
    names = sorted(glob.glob(os.path.join(glob.escape(folder), "event-*.json"))) if own.startswith("event-") else []
    if len(names) < 2:
        return iter([(1, data, True)])
    if own != os.path.basename(names[0]):
        raise UnreadableError(f"{_EVENT}the first, {os.path.basename(names[0])}{COMPANION}")
    return _files(path, names)


def _files(path: str, names: list[str]) -> Iterator[Piece]:
    folder = os.path.dirname(os.path.abspath(path))
    for number, name in enumerate(names, 1):
        data = sibling(path, os.path.relpath(name, folder))
        if data is not None:
            yield number, data.strip(), False


class _Events(ChatReader):
    name, agent, fields = "openhands", "OpenHands", FIELDS
    unit = "event"
    row_word = ("an event", "events")

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.open: dict[str, TranscriptAnswer] = {}
        self.calls: dict[int, str] = {}
        """In version 0: id of an event -> the id of the call that the event's action runs."""
        self.usages: dict[str, dict[str, Any]] = {}
        self.logged: dict[str, tuple[TranscriptLine, dict[str, Any]]] = {}
        """Id of a response -> the response of the client library, with its row, if it was logged."""
        self.errors: list[str] = []
        """The errors of an evaluation's runs that were not read so far; an empty text for a run without an error."""
        self.error = self.failure = ""
        """The error of the current run, and a failure without a later action of the agent."""
        self.at, self.finished = 0, False
        """The number of the current event; whether the state of version 1 says that the loop ended by itself."""

    def runs_of(self, lines: list[bytes], name: str) -> Iterator[tuple[str, Iterator[Piece]]]:
        """The runs of an evaluation, with the task or line as name; stores the error of each run that has events."""
        for number, line in enumerate(lines, 1):
            pieces = list(_events(line, name))
            if pieces:
                self.errors.append(_text_at(line, "error") or "")
            yield _text_at(line, "instance_id") or f"line {number}", iter(pieces)

    def close_run(self) -> None:
        """Marks the last answer of a failed run, which is not the end of a finished turn."""
        answer = self.last.answer
        why = f"the run ended with an error: {self.error[:200]}" if self.error else self.failure
        if answer is not None and why and not self.failure and events.is_done(answer):  # the grading after it failed
            self.remarks["end a run whose agent was done before the evaluation failed"] += 1
        elif answer is not None and why:
            answer.after.append(InterimRow(self.at, redact.text(why), mark="stopped", unit=self.unit))
        self.error = self.failure = ""

    def settle(self) -> None:
        """Marks calls as malformed whose arguments the SDK could not read; then infers other ends."""
        for answer in self.answers:
            _reject(answer)
        last = self.last.answer
        if self.finished and last is not None and not self.last.has_user_message:
            last.after.append(InterimRow(self.at, "finished", mark="ended", unit=self.unit))
        self.close_run()
        super().settle()

    def state(self, data: bytes) -> None:
        """Reads the state of a version 1 conversation: the model, the cap, and the counts of each answer."""
        state = object_in(data)
        self.finished = state.get("execution_status") == "finished"
        llm = object_of(object_of(state.get("agent")).get("llm"))
        self.model = known_text(llm.get("model"))
        self.cap = number_of(llm.get("max_output_tokens")) or None
        for metrics in object_of(object_of(state.get("stats")).get("usage_to_metrics")).values():
            for usage in objects_of(object_of(metrics).get("token_usages")):
                self.usages[str(usage.get("response_id"))] = usage

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value = line.value
        if self.begins(line):
            self.close_run()
            place = TreePlace(None)
            self.open.clear()
            self.calls.clear()
            self.error = self.errors.pop(0) if self.errors else ""
        self.at = line.number
        if events.is_sdk_event(value):
            return self._sdk(line, lines, place)
        kind, source = value.get("action"), value.get("source")
        if events.is_bare(value):  # the author is not stored; only an agent's message waits for an answer
            source = "agent" if kind != "message" or value.get("wait_for_response") is True else "user"
        meta = object_of(value.get("tool_call_metadata"))
        if isinstance(value.get("observation"), str):
            return self._observation(line, lines, place, meta)
        if not isinstance(kind, str) or kind in events.NO_EXCHANGE:
            lines.count(kind, events.NO_EXCHANGE)
            return place
        self.failure = ""
        if source == "user" or (source != "agent" and kind == "message"):
            return self.say(line, place, self._text_of_event(value), own=source != "user")
        return self._action(line, place, meta, kind)

    def _text_of_event(self, value: dict[str, Any]) -> str:
        return first_text(object_of(value.get("args")).get("content"), value.get("message"), value.get("content"))

    def _read_failure(
        self, line: TranscriptLine, place: TreePlace, what: str, why: str, kind: str | None = None
    ) -> TreePlace:
        """Reads a failure: of the request after a message of the user, else of the run."""
        failed = self.failed_request(line, place, why, after_results=False, kind=kind)
        if failed is not None:
            return failed
        self.failure = f"{what}: {why[:200]}"
        self.skip(line, self.failure)
        return place

    # -- version 0 ---------------------------------------------------------------------------------------------------

    def _action(self, line: TranscriptLine, place: TreePlace, meta: dict[str, Any], kind: str) -> TreePlace:
        """Reads an action of the agent: a call of the answer that the action contains, or an answer of its own."""
        value, key = line.value, known_text(meta.get("tool_call_id"))
        response = object_of(meta.get("model_response"))
        if type(value.get("id")) is int:
            self.calls[value["id"]] = key or f"event {value['id']}"
        name = known_text(response.get("id"))
        found = self.open.get(name) if name is not None else None
        if found is not None:
            # Each action of an answer with several calls repeats the whole answer, so a later one adds only its row.
            found.take(line)
            return place
        answer = self.answer(line, place, name or "")
        at = answer.take(line)
        if response.get("choices"):
            take_litellm(answer, response, None, line, at, "tool_call_metadata", "model_response")
            if name is not None:
                self.open[name] = answer
        elif kind == "message":
            answer.parts.append(TextPart(self._text_of_event(value)))
        elif kind == "finish" and key is None and events.last_words(value):
            answer.parts.append(TextPart(events.last_words(value)))
            return self.say(line, TreePlace(answer), "finish", mark="ended")
        else:
            self._plain(answer, line, meta, kind, at)
        return TreePlace(answer)

    def _plain(self, answer: TranscriptAnswer, line: TranscriptLine, meta: dict[str, Any], kind: str, at: At) -> None:
        """Reads an action whose answer was not recorded: its thought, and the arguments that OpenHands parsed."""
        bare = events.is_bare(line.value)
        args, number = object_of(line.value if bare else line.value.get("args")), line.value.get("id")
        answer.add_text(args.get("thought"))
        member = next((name for name in events.COMMANDS if known_text(args.get(name))), None)
        if bare and member is not None:
            answer.parts.append(command_call(args[member], kind, pointer_at(at, member)))
            return
        key = meta.get("tool_call_id") or (f"event {number}" if type(number) is int else None)
        answer.parts.append(call_of(key, known_text(meta.get("function_name")) or kind, args,
                                    partial(slice_of, line.data), "args", pointer_at(at, "args")))

    def _observation(
        self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace, meta: dict[str, Any]
    ) -> TreePlace:
        """Reads the result of an action, or a state of the loop."""
        value, kind = line.value, line.value["observation"]
        if kind == "agent_state_changed":
            extras = object_of(value.get("extras"))
            state, why = extras.get("agent_state"), known_text(extras.get("reason"))
            if state in events.ENDED and place.answer is not None:
                return self.say(line, place, str(state), mark="ended")
            if state == "stopped":
                return self.say(line, place, "", mark="interrupted")
            if state == "error":
                return self._read_failure(line, place, "the agent failed", why or "no reason given")
        if kind in events.NO_EXCHANGE:
            lines.count(kind, events.NO_EXCHANGE)
            return place
        cause = value.get("cause")
        key = known_text(meta.get("tool_call_id")) or (self.calls.get(cause) if type(cause) is int else None)
        text = first_text(value.get("content"), value.get("message"))
        if events.is_bare(value) and unanswered_call(place) is not None:
            return self.result(line, place, None, text, kind == "error", kind)
        # An observation without a cause is OpenHands' own, such as a change of its state.
        if key is None:
            return self.say(line, place, text, own=True)
        return self.result(line, place, key, text, kind in ("error", "user_rejected"), kind)

    # -- version 1 ---------------------------------------------------------------------------------------------------

    def _sdk(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value, kind, key = line.value, line.value.get("kind"), known_text(line.value.get("tool_call_id"))
        self.failure = "" if kind in ("MessageEvent", "ActionEvent") else self.failure
        if kind == "MessageEvent":
            message = object_of(value.get("llm_message"))
            if value.get("source") == "agent":
                return self._sdk_answer(line, place, message)
            return self.say(line, place, text_of(message.get("content")), own=value.get("source") != "user")
        if kind == "ActionEvent":
            return self._sdk_answer(line, place, value)
        if kind == "ObservationEvent":
            observation = object_of(value.get("observation"))
            return self.result(line, place, key, events.sdk_text(observation), observation.get("is_error") is True,
                               value.get("tool_name"))
        if kind in ("AgentErrorEvent", "UserRejectObservation"):
            refused = kind == "UserRejectObservation"
            why = known_text(value.get("rejection_reason" if refused else "error")) or ""
            # Claude Code's words for a refusal, by which later rules recognise it in a result.
            text = f"The user doesn't want to proceed with this tool use. {why}" if refused else why
            return self.result(line, place, key, text, True)
        if kind == "InterruptEvent":
            return self.say(line, place, "", mark="interrupted")
        if kind == "LLMCompletionLogEvent":
            self._note_log(line, value)
        if kind == "ConversationErrorEvent":
            why = first_text(value.get("detail"), value.get("code"), "no reason given")
            return self._read_failure(line, place, "the conversation failed", why, known_text(value.get("code")))
        lines.count(kind, events.NO_EXCHANGE)
        return place

    def _note_log(self, line: TranscriptLine, value: dict[str, Any]) -> None:
        """Stores a logged response, which is before or after the events of its answer."""
        text = value.get("log_data")
        response = object_of(object_in(text).get("response")) if isinstance(text, str) else {}
        name = known_text(response.get("id"))
        if name is not None:
            self.logged[name] = line, response
            if name in self.open:
                self._end_logged(self.open[name], name)

    def _end_logged(self, answer: TranscriptAnswer, name: str) -> None:
        """Reads the end of an answer from its logged response: JSON within a string, into which no pointer leads."""
        line, response = self.logged[name]
        at = pointer_at(answer.take(line), "log_data")
        if response.get("object") == "response":
            take_provider_word(answer, response, at)
        else:
            take_litellm_end(answer, response, None, at)
        answer.word_at = at
        if answer.stop is not None:
            answer.stop = answer.stop._replace(evidence=tuple(each._replace(at=at) for each in answer.stop.evidence))

    def _sdk_answer(self, line: TranscriptLine, place: TreePlace, message: dict[str, Any]) -> TreePlace:
        """Reads a message of the model, or one of the calls of an answer."""
        value = line.value
        name = known_text(value.get("llm_response_id"))
        answer = self.open.get(name) if name is not None else None
        fresh = answer is None
        if answer is None:
            answer = self.answer(line, place, name or "")
            answer.recorded_place = TurnPlace.NUDGE if events.is_nudged(place) else None
            usage = self.usages.get(name or "")
            answer.usage = events.sdk_usage(usage) if usage is not None else None
            if name is not None:
                self.open[name] = answer
                if name in self.logged:
                    self._end_logged(answer, name)
        at = answer.take(line)
        if fresh:
            answer.add_thought(message.get("reasoning_content"))
        text = text_of(message.get("content") if "content" in message else value.get("thought"))
        answer.parts += [TextPart(text)] if text and (fresh or text != answer.text) else []
        call = object_of(value.get("tool_call"))
        if call:
            take_call(answer, {**call, "id": call.get("id") or value.get("tool_call_id")}, line, at, "tool_call")
        return TreePlace(answer) if fresh else place
