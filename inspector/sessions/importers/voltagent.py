"""Databases in which VoltAgent stores conversations (`LibSQLMemoryAdapter`).

A message of the assistant has the parts of all answers of a run, as the AI SDK stores them. The table of steps says to
which answer a call belongs, and has the counts and, until the call has a result, the arguments. Stop words, caps,
models and errors are not stored: a text that was cut, or whose stream broke off, looks like any other. VoltAgent
refuses a call whose arguments were not JSON and stores `{}` for them; the refusal quotes them. `{}` also stands for
arguments of which nothing came. Source: 120 runs of @voltagent/core 2.10 with @voltagent/libsql 2.1 over two APIs;
`recordStepResults`, `ConversationBuffer`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from inspector.sessions.importers.ai_sdk_messages import RESULTS, UNFINISHED, take_part
from inspector.sessions.importers.database import has, record_of, schema, snapshot
from inspector.sessions.importers.opencode_records import REFUSED
from inspector.sessions.importers.recognition import own_tables
from inspector.sessions.importers.records import number_records
from inspector.sessions.reasons import UNREAD_CALL, unrecorded_reason
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, any_text, text_of
from inspector.sessions.transcripts.chat_messages import ChatReader, call_of, pointer_at
from inspector.sessions.transcripts.member_values import counts_of, known_text, number_of, numbered_objects, object_of
from loop_core.values import CallKind, Finding, Severity, ToolCall, ToolResultPart, Usage

FIELDS: Fields = {"": {"role": (str,), "parts": (list,), "steps": (list,)}}
_STEPS = ("id", "step_index", "type", "content", "arguments", "usage")
_RECORD = ("conversation_id", "title", "role", "parts", "created_at", "steps")
_JSON = frozenset({"parts", "steps", "arguments", "usage"})
_UNNAMED = "New Chat 2"
"""The beginning of the title of a conversation that nobody named; a time follows."""
_TOOL = "tool-"
_FAILED = "error-"
"""The beginning of the type of an output that is an error; the others are `text`, `json` and `content`."""

Part = tuple[int, dict[str, Any]]
"""A part of a message, or one of the steps beside it, with its number."""


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer in the database."""
    return _Conversations(path, options).read_records(number_records(_records(path)))


def _prefixes(path: str) -> list[str]:
    """The beginnings of the names of the tables; the application may choose them."""
    return [name.removesuffix("messages") for name in own_tables("voltagent", schema(path))]


def _records(path: str) -> Iterator[bytes]:
    """The messages in the order of their times, each with the title of its conversation and the steps of its run."""
    with snapshot(path) as database:
        for prefix in _prefixes(path):
            quoted = prefix.replace('"', '""')
            titles, steps = dict[Any, Any](), defaultdict[Any, list[str]](list)
            if has(schema(path), f"{prefix}conversations", "id", "title"):
                titles.update(map(tuple, database.execute(f'SELECT id, title FROM "{quoted}conversations"')))  # noqa: S608
            if has(schema(path), f"{prefix}steps", "operation_id", *_STEPS):
                for run, *row in database.execute(
                        f'SELECT operation_id, {", ".join(_STEPS)} FROM "{quoted}steps" ORDER BY rowid'):  # noqa: S608
                    steps[run].append(record_of(_STEPS, tuple(row), "", _JSON).decode())
            # the path of a JSON function would fail for a text that is not JSON
            query = f"""SELECT conversation_id, role, parts, created_at,
                        CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.operationId') END AS run
                        FROM "{quoted}messages" ORDER BY created_at, rowid"""  # noqa: S608
            for key, role, parts, created, run in database.execute(query):
                beside = f"[{','.join(steps.get(run, ()))}]" if role == "assistant" else None
                yield record_of(_RECORD, (key, titles.get(key), role, parts, created, beside), "", _JSON)


class _Conversations(ChatReader):
    name, agent, fields = "voltagent", "VoltAgent", FIELDS
    unit, row_word = "row", ("a row", "rows")
    unanswered = "end a conversation with a message of the user, as a request that failed leaves it"

    def session_of(self, value: dict[str, Any]) -> str:
        key = known_text(value.get("conversation_id")) or self.session
        title = known_text(value.get("title")) or ""
        self.titles[key] = key if title.startswith(_UNNAMED) else title or key
        return key

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        role = line.value.get("role")
        if role == "user":
            return self.say(line, place, text_of(line.value.get("parts")))
        if role == "assistant":
            self._message(line)
        else:
            lines.count(role, frozenset({"system"}))
        return self.here

    def _message(self, line: TranscriptLine) -> None:
        """Reads the answers in a message, each with the results of its calls."""
        steps = _places(numbered_objects(line.value.get("steps")))
        for count, parts in enumerate(_answers(numbered_objects(line.value.get("parts")), steps), 1):
            answer = self.answer(line, self.here, key=f"row:{line.number}:{count}", begin=line.value.get("created_at"))
            answer.word_at, answer.unended = answer.take(line), True
            results = [part for each in parts for part in _take(answer, line, each, steps)]
            answer.usage = _usage(answer, steps)
            if not parts:
                answer.findings.append(Finding("transcript.not_stored", Severity.INFO, f"row {line.number}: VoltAgent "
                                               "stored no part of this answer: it was empty, or its request failed",
                                               answer.word_at))
            _doubt_empty(answer)
            denied = any(part.get("state") == "output-denied" for _, part in parts)
            self.results(line, self.here, *results, denied=denied)


def _places(steps: list[Part]) -> Mapping[str | None, Part]:
    """The steps by what their parts are found by: the id of a call, or a text, unless two steps have the same."""
    found: dict[str | None, list[Part]] = defaultdict(list)
    for number, step in steps:
        found[known_text(step.get("content" if step.get("type") == "text" else "id"))].append((number, step))
    return {key: places[0] for key, places in found.items() if len(places) == 1}


def _answers(parts: list[Part], steps: Mapping[str | None, Part]) -> list[list[Part]]:
    """The parts of each answer of a message. VoltAgent marks only a text after a call as the beginning of a step. A
    call begins an answer if the steps say so; without them, if VoltAgent refused the call before it, because nothing
    comes after a cut."""
    found: list[list[Part]] = [[]]
    last: dict[str, Any] = {}  # the call before
    for number, part in parts:
        is_call = (known_text(part.get("type")) or "").startswith(_TOOL)
        places = [steps[key][1].get("step_index") for each in (last, part)
                  if (key := known_text(each.get("toolCallId"))) in steps]
        new_step = places[0] != places[1] if len(places) == 2 else _refused(last) is not None
        if last and (new_step or not is_call) and last.get("providerExecuted") is not True:
            found.append([])
        last = part if is_call else {}
        if part.get("type") != "step-start":
            found[-1].append((number, part))
    return found


def _take(
    answer: TranscriptAnswer, line: TranscriptLine, held: Part, steps: Mapping[str | None, Part]
) -> list[ToolResultPart]:
    """Reads a part of an answer; returns the result of a call, if the part has one."""
    number, part = held
    kind, state = known_text(part.get("type")) or "", known_text(part.get("state")) or ""
    if not kind.startswith(_TOOL):
        return take_part(answer, part, line, answer.word_at, number)
    key, name = known_text(part.get("toolCallId")), kind.removeprefix(_TOOL)
    row, step = steps.get(key, (0, {}))
    quoted = _refused(part)
    call = call_of(key, name, part.get("input"), partial(slice_of, line.data, "parts", number), "input",
                   pointer_at(answer.word_at, "parts", number, "input"))
    if isinstance(step.get("arguments"), str):
        call = ToolCall(key, name, step["arguments"], True, at=pointer_at(answer.word_at, "steps", row, "arguments"))
    elif quoted is not None:
        call = ToolCall(key, name, quoted, True, at=pointer_at(answer.word_at, "parts", number, "output", "value"))
    if quoted is not None:
        answer.findings.append(Finding(UNREAD_CALL, Severity.INFO, "VoltAgent could not parse the arguments of a call",
                                       call.at))
    run = CallKind.SERVER if part.get("providerExecuted") is True else call.kind
    answer.parts.append(call._replace(kind=run, closed=state not in UNFINISHED))
    return [_result(part, key, name, RESULTS[state])] if state in RESULTS else []


def _refused(part: dict[str, Any]) -> str | None:
    """The arguments of a call that were not JSON; the result quotes them."""
    output = object_of(part.get("output"))
    found = REFUSED.match(known_text(output.get("value")) or "") if output.get("type") == "error-text" else None
    return None if found is None else found[1]


def _result(part: dict[str, Any], key: str | None, name: str, failed: bool) -> ToolResultPart:
    """The result of a call. VoltAgent stores the error of a tool as an object with a message and a stack."""
    output = object_of(part.get("output"))
    value = output.get("value", part.get("output"))
    error = object_of(value)
    if error.get("error") is True and isinstance(error.get("message"), str):
        return ToolResultPart(key, name, error["message"], True)
    text = known_text(part.get("errorText")) or any_text(value)
    return ToolResultPart(key, name, text, failed or str(output.get("type")).startswith(_FAILED))


def _usage(answer: TranscriptAnswer, steps: Mapping[str | None, Part]) -> Usage | None:
    """The counts of the step with a call of an answer, or with its text; zeros stand for counts that never came."""
    keys = [*(call.id for call in answer.calls), (answer.text or "").strip()]
    usage = next((object_of(steps[key][1].get("usage")) for key in keys if key in steps), {})
    if not any(number_of(usage.get(name)) for name in ("promptTokens", "completionTokens")):
        return None
    return Usage(*counts_of(usage, "promptTokens", "completionTokens", "reasoningTokens", "cachedInputTokens", None))


def _doubt_empty(answer: TranscriptAnswer) -> None:
    """Doubts calls with `{}`, which VoltAgent also stores if an answer was cut before the arguments: the end of such an
    answer is not inferred from the results."""
    for call in answer.calls:
        if call.arguments == "{}":
            message = "the call has no arguments, or none came: VoltAgent stores {} for both"
            answer.findings.append(Finding("transcript.empty_arguments", Severity.INFO, message, call.at))
            answer.stop = unrecorded_reason(answer.word_at)
