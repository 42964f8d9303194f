"""Sessions of Mastra: its database (`LibSQLStore`), and a trace or a thread's messages as its server returns them.

The spans have the AI SDK's word, the cap, the counts, and the arguments of a streamed call as received. Mastra runs a
call whose arguments were not JSON with `{}`, also in a cut answer. The messages have neither a word nor a cap, and `{}`
for such arguments. Source: 300 runs that @mastra/core 1.71 and 0.24 wrote over four APIs; `createTool` validation,
`convertFullStreamChunkToMastra`, and `ModelSpanTracker` of @mastra/observability 1.17.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from inspector.sessions.importers import SQLITE
from inspector.sessions.importers.ai_sdk_messages import steps_of, take_part
from inspector.sessions.importers.database import schema, snapshot
from inspector.sessions.importers.mastra_records import (
    CHUNKS,
    INFERENCE,
    TOOLS,
    database_records,
    object_records,
)
from inspector.sessions.importers.records import first_look, number_records, whole_object
from inspector.sessions.reasons import PROVIDER, inferred_reason, recorder_reason, unrecorded_reason
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, any_text, text_of
from inspector.sessions.transcripts.chat_messages import ChatReader, call_of, pointer_at
from inspector.sessions.transcripts.member_values import (
    cap_of,
    counts_of,
    first_text,
    known_text,
    numbered_objects,
    object_of,
    objects_of,
)
from inspector.sessions.transcripts.provider_answers import row_of, take_word
from inspector.sessions.wordings import refused_arguments
from loop_core.values import Evidence, Finding, Severity, Stop, StopReason, ToolCall, ToolResultPart, Usage

APIS: Mapping[str, str] = {
    "anthropic.messages": "anthropic_messages", "google.generative-ai": "gemini_generate",
    "google.vertex.chat": "gemini_generate", "amazon-bedrock": "bedrock_converse", "cohere.chat": "cohere_chat",
    ".responses": "openai_responses", ".chat": "openai_chat",
}
"""End of a provider's name in the AI SDK -> its wire format; the first that fits counts."""
SHORTENED = ("…[truncated]", '"[MaxDepth]"', ' more items]"', '"__truncated":')
"""The marks that Mastra leaves where it shortened a long or deeply nested value of a span (`deepClean`)."""
FIELDS: Fields = {"": {"session": (str,), "run": (dict,), "answer": (dict,), "inside": (list,), "role": (str,),
                       "parts": (list,), "metadata": (dict,)}}


def sniff(head: bytes, path: str) -> int:
    """Recognises the spans of a trace, or stored messages."""
    first = object_of(first_look(head).first)
    span = next(iter(objects_of(first.get("spans"))), {})
    message = next(iter(objects_of(first.get("messages"))), {})
    return 96 if {"spanId", "spanType"} <= span.keys() or object_of(message.get("content")).get("format") == 2 else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer."""
    reader = _Sessions(path, options)
    return reader.read_records(number_records(
        _database_rows(path) if data.startswith(SQLITE) else object_records(whole_object(data))))


def _database_rows(path: str) -> Iterator[bytes]:
    with snapshot(path) as database:
        yield from database_records(database, schema(path))


class _Sessions(ChatReader):
    name, agent, fields = "mastra", "Mastra", FIELDS
    unit, row_word = "record", ("a record", "records")

    def session_of(self, value: dict[str, Any]) -> str:
        """The session of a record, whose title and parent are also stored."""
        session, parent = known_text(value.get("session")) or "", known_text(value.get("parent"))
        self.titles.setdefault(session, known_text(value.get("title")) or session)
        if parent is not None:
            self.parents[session] = parent
        return session

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """Reads a run, an answer with the results of its calls, or a message."""
        value = line.value
        if "run" in value:
            return self.say(line, place, _prompt(object_of(value["run"]).get("input")))
        if "resumed" in value:
            return self._decide(line, object_of(object_of(value["resumed"]).get("input")))
        if "answer" in value:
            answer = self._answer(line, object_of(value["answer"]))
            earlier = "merged" in value and (answer.stop is None or answer.stop.normalized is not Stop.TOOL_CALL)
            return self.results(line, self.here, *([] if earlier else _results(objects_of(value["inside"]))))
        if value.get("role") == "user" or _is_said_by_user(value):
            return self.say(line, place, _text_of_parts(value))
        if value.get("role") == "assistant":
            self._message(line)
        else:
            lines.count(value.get("role"), frozenset({"system", "tool", "signal"}))
        return self.here

    def _decide(self, line: TranscriptLine, decision: dict[str, Any]) -> TreePlace:
        """Reads the user's decision about a call; an approved one has a result later."""
        if decision.get("approved") is not False:
            return self.here
        part = ToolResultPart(known_text(decision.get("toolCallId")), known_text(decision.get("toolName")),
                              "the user did not approve the call", True)
        return self.results(line, self.here, part, denied=True)

    # -- spans -------------------------------------------------------------------------------------------------------

    def _answer(self, line: TranscriptLine, span: dict[str, Any]) -> TranscriptAnswer:
        """Reads an answer from its spans."""
        inside = numbered_objects(line.value.get("inside"))
        attributes = object_of(span.get("attributes"))
        request = next((object_of(each.get("attributes")) for _, each in inside if each.get("spanType") == INFERENCE), (
            object_of(object_of(line.value.get("generation")).get("attributes")) or attributes))
        answer = self.answer(line, self.here, model=request.get("responseModel") or request.get("model"),
                             key=f"span:{span.get('spanId')}", api=_api_of(request.get("provider")),
                             begin=span.get("startedAt"))
        answer.cap, answer.unended = cap_of(object_of(request.get("parameters"))), True
        at = answer.word_at = answer.take(line)
        _take_parts(answer, line, object_of(span.get("output")), [
            (number, each) for number, each in inside if each.get("spanType") in CHUNKS])
        usage = object_of(attributes.get("usage"))
        answer.usage = Usage(*counts_of(usage, "inputTokens", "outputTokens"), *counts_of(
            object_of(usage.get("outputDetails")), "reasoning"), *counts_of(
            object_of(usage.get("inputDetails")), "cacheRead", "cacheWrite")) if usage else None
        if line.value.get("status") == "aborted":
            status = pointer_at(at, "status")
            answer.stop = recorder_reason(Stop.CANCELLED, None, status, "aborted", "mastra.run_status")
        self._end(answer, line, known_text(attributes.get("finishReason")), "output" in span)
        if any(mark in str(slice_of(line.data, "answer", "output")) for mark in SHORTENED):
            answer.findings.append(Finding("transcript.shortened", Severity.WARNING,
                                           "Mastra left out parts of long or deeply nested values of this answer", at))
        if "merged" in line.value:
            answer.findings.append(Finding("transcript.merged", Severity.INFO, "Mastra wrote one span for several "
                                           "requests; how those before the last ended is not recorded", at))
        return answer

    def _end(self, answer: TranscriptAnswer, line: TranscriptLine, word: str | None, has_output: bool) -> None:
        """Reads how an answer ended. For a failure, the error is in the span of the run, the generation or a piece."""
        if word is None:
            return
        at = answer.word_at = pointer_at(answer.word_at, "answer", "attributes", "finishReason")
        if word == "error":
            found = [object_of(line.value.get("failure")), *(
                object_of(each.get("output")) for each in objects_of(line.value.get("inside")))]
            error = next((held for each in found if (held := object_of(each.get("error")))), {})
            raw = known_text(object_of(error.get("details")).get("rawFinishReason"))
            row = row_of(raw or "")
            if raw is not None and row.stop is not Stop.UNKNOWN:
                place = pointer_at(at, "failure", "error", "details", "rawFinishReason")
                evidence = Evidence(PROVIDER, place, raw), Evidence("mastra.raw_finish_reason", place, raw)
                answer.word, answer.stop = raw, StopReason(row.stop, raw, row.detail, evidence)
                return
            answer.fail(first_text(error.get("message"), "Mastra wrote no message"), at, kind=known_text(
                error.get("name")), word=word)
            return
        rule = "unknown_word" if row_of(word).stop is Stop.UNKNOWN else "mastra.finish_reasons"
        take_word(answer, word, at, rule, empty=not has_output and not answer.parts)

    # -- messages ----------------------------------------------------------------------------------------------------

    def _message(self, line: TranscriptLine) -> None:
        """Reads the answers in a message, one for each step."""
        about = object_of(line.value.get("metadata"))
        for step, parts in enumerate(steps_of(numbered_objects(line.value.get("parts"))), 1):
            answer = self.answer(line, self.here, model=about.get("modelId"), key=f"message:{line.number}:{step}",
                                 api=_api_of(about.get("provider")), begin=line.value.get("created"))
            at = answer.word_at = answer.take(line)
            results: list[ToolResultPart] = []
            for number, part in parts:
                if part.get("type") == "error":
                    error = object_of(part.get("error"))
                    answer.fail(first_text(error.get("message"), "Mastra wrote no message"),
                                pointer_at(at, "parts", number), kind=known_text(error.get("name")))
                    continue
                found = take_part(answer, part, line, at, number)
                held = object_of(object_of(part.get("toolInvocation")).get("result"))
                results += [_refused(each, held) for each in found]
            _doubt_empty(answer, results)
            self.results(line, self.here, *results)


def _api_of(provider: Any) -> str | None:
    name = known_text(provider) or ""
    return next((api for end, api in APIS.items() if name.endswith(end)), None)


def _is_said_by_user(value: dict[str, Any]) -> bool:
    """Whether a message is a signal of the user, as which newer releases store what a user says."""
    signal = object_of(object_of(value.get("metadata")).get("signal"))
    return value.get("role") == "signal" and signal.get("type") in ("user", "user-message")


def _prompt(value: Any) -> str:
    """The last message of the user in the input of a run: a text, or messages."""
    listed = value if isinstance(value, list) else object_of(value).get("messages")
    if not isinstance(listed, list):
        return any_text(value)
    asked = [each if isinstance(each, str) else _text_of_parts(each) for each in listed
             if isinstance(each, str) or object_of(each).get("role") == "user"]
    return asked[-1] if asked else ""


def _text_of_parts(message: Any) -> str:
    """The text of a message, whose content is a text, parts, or an object with `parts`."""
    content = object_of(message).get("content")
    held = content if isinstance(content, dict) else object_of(message)
    return text_of(held["parts"]) if isinstance(held.get("parts"), list) else text_of(content)


def _take_parts(
    answer: TranscriptAnswer, line: TranscriptLine, output: dict[str, Any], chunks: Iterable[tuple[int, dict[str, Any]]]
) -> None:
    """Reads the parts of an answer. The arguments of a call are those of its piece of the stream, if there is one: of a
    call that was not JSON, it has the text."""
    pieces: dict[str, tuple[int, dict[str, Any]]] = {}
    texts: list[Any] = []
    for number, chunk in chunks:
        kind, held = object_of(chunk.get("attributes")).get("chunkType"), object_of(chunk.get("output"))
        if kind == "reasoning":
            answer.add_thought(held.get("text"))
        elif kind == "text" and "text" in held:
            texts.append(held["text"])
        elif kind == "tool-call" and (key := known_text(held.get("toolCallId"))) is not None:
            pieces[key] = number, held
    beside = object_of(object_of(line.value.get("text")).get("output")).get("text")
    for text in [output["text"]] if isinstance(output.get("text"), str) else texts or [beside]:
        answer.add_text(text)
    calls = numbered_objects(output.get("toolCalls"))
    for at, call in calls:
        number, piece = pieces.pop(known_text(call.get("toolCallId")) or "", (-1, {}))
        path, member = (("inside", number, "output"), "toolInput") if piece else (
            ("answer", "output", "toolCalls", at), "args")
        _add_call(answer, line, piece or call, member, *path)
    for number, piece in pieces.values():  # the answer ended before the call did, or its end is not recorded
        _add_call(answer, line, piece, "toolInput", "inside", number, "output", closed="toolCalls" not in output)


def _add_call(
    answer: TranscriptAnswer, line: TranscriptLine, call: dict[str, Any], member: str, *path: str | int,
    closed: bool = True,
) -> None:
    found = call_of(call.get("toolCallId"), call.get("toolName"), call.get(member), partial(slice_of, line.data, *path),
                    member, pointer_at(answer.word_at, *path, member))
    if member == "args" and found.arguments == "{}":
        _note_empty(answer, found)
    shortened = any(mark in (found.arguments or "") for mark in SHORTENED)
    answer.parts.append(found._replace(closed=closed, arguments=None if shortened else found.arguments))


def _results(inside: list[dict[str, Any]]) -> list[ToolResultPart]:
    """The results of tools: of their spans, or in older releases, whose spans name no call, of the pieces of the
    stream."""
    found = [_piece_result(object_of(each.get("output"))) for each in inside
             if object_of(each.get("attributes")).get("chunkType") in ("tool-result", "tool-error")
             and "toolCallId" in object_of(each.get("output"))]
    done = {part.call_id for part in found}
    for each in inside:
        key = known_text(object_of(each.get("attributes")).get("toolCallId"))
        if each.get("spanType") in TOOLS and "endedAt" in each and key not in done and (key is not None or not found):
            found.append(_span_result(each, key))
    return found


def _piece_result(output: dict[str, Any]) -> ToolResultPart:
    value = output.get("result", output.get("error"))
    part = ToolResultPart(known_text(output.get("toolCallId")), known_text(output.get("toolName")), any_text(value),
                          "error" in output)
    return _refused(part, object_of(value))


def _span_result(span: dict[str, Any], key: str | None) -> ToolResultPart:
    error, output = object_of(span.get("error")), span.get("output")
    name = (known_text(span.get("name")) or "").partition("'")[2].rstrip("'") or None
    text = first_text(error.get("message")) or any_text(output)
    return _refused(ToolResultPart(key, name, text, bool(error)), object_of(output))


def _refused(part: ToolResultPart, output: dict[str, Any]) -> ToolResultPart:
    """A result; the message of one with which Mastra refused the arguments of a call."""
    if output.get("error") is not True or not isinstance(output.get("message"), str):
        return part
    return ToolResultPart(part.call_id, part.name, output["message"], True)


def _doubt_empty(answer: TranscriptAnswer, results: list[ToolResultPart]) -> None:
    """Doubts calls with `{}`, which Mastra also stores for arguments that were not JSON, and runs: the end of such an
    answer is not inferred from the results. If Mastra refused them, the answer is malformed."""
    refused = {part.call_id for part in results if refused_arguments(part, part.name)}
    for at, call in enumerate(answer.parts):
        if type(call) is not ToolCall or call.arguments != "{}" or answer.error is not None:
            continue
        _note_empty(answer, call)
        answer.stop = answer.stop or unrecorded_reason(answer.word_at)
        if call.id in refused:
            answer.parts[at] = call._replace(closed=False)
            note = f"Mastra refuses {{}} for the call of {call.name}"
            answer.stop = inferred_reason(Stop.MALFORMED_TOOL_CALL, answer.word_at, "call_rejected", call.at, note)


def _note_empty(answer: TranscriptAnswer, call: ToolCall) -> None:
    message = "the call has no arguments, or they were not JSON: Mastra stores {} for both"
    answer.findings.append(Finding("transcript.empty_arguments", Severity.INFO, message, call.at))
