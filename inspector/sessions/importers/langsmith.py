"""Runs of LangSmith from its client or its API: a list, lines, an object with `runs`, one run with its `child_runs`, or
the batches that the client sends (`post` and `patch`).

A run of the type `llm` is an answer. LangChain writes its own messages: the provider's stop word is in their
`response_metadata`, and a call whose arguments it could not parse is, unchanged, in `invalid_tool_calls`. Wrappers of
the providers' clients write a dump of the provider's object. Source: docs.langchain.com/langsmith/run-data-format; runs
that langchain-core 1.8 and langsmith 0.15 wrote, and @langchain/core 1.4 of LangChain.js.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from inspector.sessions.importers.langfuse import ToolRun, TraceReader
from inspector.sessions.importers.records import (
    Piece,
    complete,
    first_look,
    list_pieces,
    number_records,
    object_in,
    object_lines,
)
from inspector.sessions.importers.span_messages import SpanMessage, message_of, received_arguments, take_output
from inspector.sessions.importers.trace_order import TraceRecord, order_of_start
from inspector.sessions.reasons import inferred_reason, provider_reason
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import pointer_at, words_of
from inspector.sessions.transcripts.member_values import (
    cap_of,
    counts_of,
    known_text,
    moment_text,
    object_of,
    objects_of,
)
from inspector.sessions.transcripts.provider_answers import row_of, take_provider_word, take_word
from loop_core.values import At, Stop, ToolResultPart, Usage
from loop_core.wire import wire

FIELDS: Fields = {
    "": {"id": (str,), "run_type": (str,), "inputs": (dict,), "outputs": (dict,), "extra": (dict,), "error": (str,),
         "start_time": (str, int), "trace_id": (str,), "parent_run_id": (str,)},
}
ROLES: Mapping[str, str] = {"human": "user", "AIMessageChunk": "ai", "function": "tool"}
"""Type of a message of LangChain -> the role, if the type is no role."""
APIS: Mapping[str, str] = {
    "openai": "openai_chat", "azure": "openai_chat", "anthropic": "anthropic_messages",
    "google_genai": "gemini_generate", "amazon_bedrock": "bedrock_converse", "bedrock_converse": "bedrock_converse",
    "ollama": "ollama_chat", "cohere": "cohere_chat",
}
"""Name of a provider in LangChain -> its wire format, whose stop words are used."""
THREADS = ("thread_id", "session_id", "conversation_id")
"""The members of a run's metadata that name its conversation. Source: docs.langchain.com/langsmith/threads."""
_METADATA = ("generations", 0, 0, "message", "kwargs", "response_metadata")
FIRST_EVENT = frozenset({"id", "model", "model_name", "model_provider", "headers"})
"""The members of `response_metadata` after the first event of Responses; the last one adds the status and others."""
_TYPES = frozenset({"llm", "chain", "tool", "retriever", "embedding", "prompt", "parser"})


def sniff(head: bytes, path: str) -> int:
    """Recognises a run, or a list of runs, by members that every run has."""
    parsed_head = first_look(head)
    first = parsed_head.first
    listed = first if isinstance(first, list) else object_of(first).get("runs")
    batches = [run for value in parsed_head.objects for run in objects_of(value.get("post"))[:4]]
    found = [*parsed_head.objects, *objects_of(listed)[:4], *batches]
    return 98 if any(known_text(each.get("run_type")) in _TYPES and "inputs" in each for each in found) else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer, in the order of their start times."""
    reader = _Runs(path, options)
    pieces, reader.inner = order_of_start(_runs(data), _place_of)
    return reader.read_records(pieces)


def _runs(data: bytes) -> list[Piece]:
    if lines := object_lines(data):
        found = list(number_records(lines, cut=True))
    else:
        bare = data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"["
        found = list(list_pieces(data) if bare else list_pieces(data, "runs")) or [(1, data, False)]
    if b'"post"' in data or b'"patch"' in data:
        found = list(number_records(_join([piece for _, piece, _ in found]), cut=True))
    if b'"child_runs"' not in data:
        return found
    return list(number_records([each for _, piece, _ in found for each in _with_children(piece)]))


def _join(pieces: list[bytes]) -> list[bytes]:
    """The runs in a client's batches: the first part of each (`post`) joined with the later one (`patch`), which may be
    in another batch and may have its id only at the end of its `dotted_order`."""
    runs: dict[str, dict[str, Any]] = {}
    for value in map(object_in, pieces):
        batch = [*objects_of(value.get("post")), *objects_of(value.get("patch"))]
        for part in batch or filter(None, [value]):
            key = known_text(part.get("id")) or (known_text(part.get("dotted_order")) or "").rpartition("Z")[2]
            run = runs.setdefault(key or f"run {len(runs) + 1}", {"id": key} if key else {})
            run.update({name: member for name, member in part.items() if member is not None})
    damaged = [piece for piece in pieces if not complete(piece)]
    return [*(json.dumps(run).encode() for run in runs.values()), *damaged]


def _with_children(piece: bytes) -> Iterator[bytes]:
    """A run, then its child runs, each as a record of its own."""
    waiting = [object_in(piece)]
    if not waiting[0].get("child_runs"):
        yield piece
        return
    while waiting:
        run = waiting.pop()
        waiting += reversed(objects_of(run.pop("child_runs", None)))
        yield json.dumps(run).encode()


def _place_of(run: dict[str, Any]) -> TraceRecord:
    # LangChain and the wrapper of the provider's client may both record an answer, one within the other.
    return TraceRecord(moment_text(run.get("start_time")), known_text(run.get("id")), run.get("parent_run_id"),
                       run.get("run_type") == "llm")


def plain_message(value: Any) -> dict[str, Any]:
    """A message of LangChain, in any of its forms, as an object with `role` and `content`."""
    message = object_of(value)
    named = message.get("id") if message.get("lc") == 1 else None
    message = object_of(message.get("kwargs")) if message.get("lc") == 1 else message
    kind = known_text(message.get("role")) or known_text(message.get("type")) or _kind_of_class(named)
    message = object_of(message["data"]) if message.keys() == {"type", "data"} else message
    calls = objects_of(message.get("tool_calls"))
    content = message.get("content")
    received = dict(received_arguments(message)) if calls else {}
    calls = [{**each, "args": received.get(known_text(each.get("id")), each.get("args"))} for each in calls]
    if calls and isinstance(content, list):  # the blocks have the same calls in the provider's form
        content = [each for each in content if object_of(each).get("type") not in ("tool_use", "function_call")]
    return {**message, "role": ROLES.get(kind, kind), "content": content,
            "tool_calls": [*calls, *objects_of(message.get("invalid_tool_calls"))] or None}


def _kind_of_class(path: Any) -> str:
    """The type of a message by its class, which LangChain.js writes instead (`["langchain_core", …, "AIMessage"]`)."""
    name = known_text(path[-1]) if isinstance(path, list) and path else None
    return (name or "").removesuffix("Chunk").removesuffix("Message").lower()


def _messages(inputs: dict[str, Any]) -> Any:
    """The messages of a request. LangChain writes a list of requests, of which a run has one."""
    listed = inputs.get("messages", inputs.get("prompts", inputs.get("input")))
    listed = listed[0] if isinstance(listed, list) and listed and isinstance(listed[0], list) else listed
    if not isinstance(listed, list):
        return listed if isinstance(listed, str) else inputs
    texts = [{"role": "user", "content": each} if isinstance(each, str) else plain_message(each) for each in listed]
    return texts if "system" not in inputs else [{"role": "system", "content": inputs["system"]}, *texts]


def _run_of(value: dict[str, Any]) -> ToolRun:
    """The run of a tool: the call that it ran, and its result or error."""
    output = value.get("outputs")
    held = object_of(output).get("output")
    message = plain_message(held) if isinstance(held, dict) else {}
    shown = message.get("content") if message else object_of(output).get("output", output)
    text = known_text(value.get("error")) or (
        shown if isinstance(shown, str) else words_of(shown) if isinstance(shown, list) else json.dumps(shown))
    call = known_text(message.get("tool_call_id")) or known_text(object_of(value.get("extra")).get("tool_call_id"))
    failed = known_text(value.get("error")) is not None or message.get("status") == "error"
    return ToolRun(call, known_text(value.get("name")) or "", value.get("inputs"),
                   ToolResultPart(call, None, text, failed))


class _Runs(TraceReader):
    name, agent, fields = "langsmith", "LangSmith", FIELDS
    unit, row_word = "run", ("a run", "runs")

    def lane(self, value: dict[str, Any]) -> str:
        """The conversation of a run, else its trace."""
        metadata = object_of(object_of(value.get("extra")).get("metadata"))
        return next((name for key in THREADS if (name := known_text(metadata.get(key)))),
                    known_text(value.get("trace_id")) or "")

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """Reads an answer, or the result of a tool from its run."""
        value, kind = line.value, known_text(line.value.get("run_type"))
        self.trace = self.lane(value)
        if kind != "llm":
            lines.count(kind, _TYPES)
            if kind == "tool":
                self.note_tool(_run_of(value))
            return place
        if self.is_inner(value):
            return place
        extra = object_of(value.get("extra"))
        metadata, parameters = object_of(extra.get("metadata")), object_of(extra.get("invocation_params"))
        place = self.read_input(line, _messages(object_of(value.get("inputs"))))
        model = known_text(metadata.get("ls_model_name")) or known_text(parameters.get("model"))
        answer = self.answer(line, place, model=model)
        answer.started = moment_text(value.get("start_time"))
        self.traces[answer] = self.trace
        answer.cap = cap_of(parameters, {"max_tokens": metadata.get("ls_max_tokens")}, object_of(value.get("inputs")))
        provider = known_text(metadata.get("ls_provider")) or ""
        answer.named_api = APIS.get(provider, answer.named_api)
        at = answer.take(line)
        _read_output(answer, object_of(value.get("outputs")), provider, pointer_at(at, "outputs"))
        answer.usage = answer.usage or Usage(*counts_of(value, "prompt_tokens", "completion_tokens"))
        error = known_text(value.get("error"))
        if error is not None:
            self.fail(answer, error.partition("Traceback (most recent call last)")[0] or error, pointer_at(at, "error"))
        return self.place_after(answer)


def _read_output(answer: TranscriptAnswer, outputs: dict[str, Any], provider: str, at: At) -> None:
    """Reads the parts of an answer, its counts and its stop word."""
    batch = outputs.get("generations")
    listed = batch[0] if isinstance(batch, list) and batch and isinstance(batch[0], list) else batch
    generation = next(iter(objects_of(listed)), {})
    if not generation:
        _read_dump(answer, outputs, at)
        return
    message = plain_message(generation.get("message"))
    take_output(answer, message_of(message) if message.get("role") else
                SpanMessage("assistant", str(generation.get("text") or "")), at)
    status = object_of(message.get("response_metadata")).get("status_code")  # of a failed request
    answer.status = status if type(status) is int else None
    path = ("outputs", *(_METADATA if listed is not batch else _METADATA[:1] + _METADATA[2:]))
    word = known_text(object_of(generation.get("generation_info")).get("finish_reason"))
    if not take_message_end(answer, message, provider, at, *path) and word is not None:
        _take_word(answer, word, APIS.get(provider), pointer_at(at, *path[:-3], "generation_info", "finish_reason"))


def take_message_end(
    answer: TranscriptAnswer, message: dict[str, Any], provider: str, at: At, *path: str | int
) -> bool:
    """Reads the counts, the model and the stop word of a message of LangChain, whose metadata are at `path` of a row.
    False if it has no stop word. For a stream of Claude, LangChain.js has the word in `additional_kwargs`."""
    metadata = object_of(message.get("response_metadata"))
    answer.usage = _usage_of(message)
    answer.model = known_text(metadata.get("model_name")) or known_text(metadata.get("model")) or answer.model
    if take_provider_word(answer, metadata, at, *path):
        return True
    word = known_text(metadata.get("finish_reason"))
    if word is not None:
        _take_word(answer, word, APIS.get(provider), pointer_at(at, *path, "finish_reason"))
        return True
    if take_provider_word(answer, message.get("additional_kwargs"), at, *path[:-1], "additional_kwargs"):
        return True
    if (begun := _beginning_alone(metadata, object_of(message.get("additional_kwargs")), provider)) is None:
        return False
    place, note = pointer_at(at, *path[:-1], begun, "id"), "its message has the id of a stream, and nothing of its end"
    answer.stop = inferred_reason(Stop.INTERRUPTED, answer.word_at, "no_last_event", place, note)
    return True


def _beginning_alone(metadata: dict[str, Any], extra: dict[str, Any], provider: str) -> str | None:
    """The member of a message of LangChain with what only the first event of a stream brings, if its last one, with the
    status (Responses) or the stop reason (Messages in LangChain.js), left nothing; else None."""
    if provider == "openai" and str(metadata.get("id")).startswith("resp_") and metadata.keys() <= FIRST_EVENT:
        return "response_metadata"
    first = provider == "anthropic" and extra.get("type") == "message" and isinstance(extra.get("id"), str)
    return "additional_kwargs" if first and "stop_reason" not in extra.keys() | metadata.keys() else None


def _take_word(answer: TranscriptAnswer, word: str, api: str | None, at: At) -> None:
    """Sets the stop reason by the provider's word, which LangChain stores unchanged, with one member name for all."""
    answer.word, answer.word_at = word, at
    if api is not None and word in wire(api).stop_reasons:
        answer.stop = provider_reason(word, at, wire(api).stop_reasons, api)
        return
    rule = "unknown_word" if row_of(word).stop is Stop.UNKNOWN else "langsmith.finish_reasons"
    take_word(answer, word, at, rule, empty=not answer.parts)


def _usage_of(holder: dict[str, Any]) -> Usage | None:
    """The token counts, which LangChain and the wrappers write in the same form for all providers."""
    counts = object_of(holder.get("usage_metadata"))
    return Usage(
        *counts_of(counts, "input_tokens", "output_tokens"),
        *counts_of(object_of(counts.get("output_token_details")), "reasoning"),
        *counts_of(object_of(counts.get("input_token_details")), "cache_read", "cache_creation")) if counts else None


def _read_dump(answer: TranscriptAnswer, outputs: dict[str, Any], at: At) -> None:
    """Reads the dump of a provider's object, written by a wrapper of the client."""
    body = object_of(outputs.get("output")) or outputs
    path = ("outputs",) if body is outputs else ("outputs", "output")
    choice = next(iter(objects_of(body.get("choices"))), {})
    candidate = next(iter(objects_of(body.get("candidates"))), {})
    held = objects_of(body.get("messages")) or objects_of(body.get("output")) or [
        object_of(choice.get("message")) or object_of(candidate.get("content")) or body]
    for message in held:
        take_output(answer, message_of(plain_message(message)), at)
    answer.model = known_text(body.get("model")) or answer.model
    answer.usage = _usage_of(body) or _usage_of(outputs)
    answer.word_at = at
    # In 2024 the client for JavaScript wrote the last choice of a stream instead of its word.
    word = known_text(object_of(choice.get("finish_reason")).get("finish_reason"))
    if word is not None:
        _take_word(answer, word, "openai_chat", pointer_at(at, *path, "choices", 0, "finish_reason", "finish_reason"))
    else:
        take_provider_word(answer, body, at, *path)
