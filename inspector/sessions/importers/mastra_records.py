"""Makes the records of Mastra's sessions from its spans and its stored messages.

A record is a run of an agent with the user's message, the decision about a call, an answer, or a message. The record
of an answer has the rows of its spans: of the step, of the request (`model_inference`, in older releases the
generation), of the pieces of the stream and of the tools. A thread is a session. A run within another one, and a
further generation of a run, such as that of a title, is a session below it. A message is left out if its answer is in
the spans too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from inspector.sessions.importers.database import Schema, has, jsonb_text, record_of
from inspector.sessions.importers.recognition import own_tables
from inspector.sessions.importers.records import compact_json, member_name, object_in, with_ids
from inspector.sessions.transcripts.member_values import first_text, known_text, object_of, objects_of

if TYPE_CHECKING:
    import sqlite3

SPANS, MESSAGES, THREADS = "mastra_ai_spans", "mastra_messages", "mastra_threads"
"""The names of Mastra's tables."""
RUN, GENERATION, STEP = "agent_run", "model_generation", "model_step"
"""The types of the spans of an agent, of its requests until it is done, and of a request with the tools after it."""
INFERENCE, CHUNK = "model_inference", "model_chunk"
"""The types of the spans of a request alone, and of a piece of its stream."""
OLD_TYPES: Mapping[str, str] = {"llm_generation": GENERATION, "llm_step": STEP, "llm_chunk": CHUNK}
"""The types before 0.23. Before 0.22 there were no steps."""
CHUNKS = frozenset({CHUNK, "llm_chunk"})
TOOLS = frozenset({"tool_call", "mcp_tool_call"})
"""The types of the spans of tools that Mastra ran."""
UNNAMED = "New Thread "
"""The beginning of the title of a thread that has none, in older releases."""
_HEAD = ("traceId", "spanId", "parentSpanId", "startedAt", "endedAt", "spanType", "name")
_ANSWER = ("spanId", "startedAt", "attributes", "output", "error")
_INSIDE: Mapping[str, tuple[str, ...]] = {
    INFERENCE: ("spanType", "attributes"), CHUNK: ("spanType", "attributes", "output"),
    **dict.fromkeys(TOOLS, ("spanType", "name", "attributes", "output", "error", "endedAt"))}
_JSON = frozenset({"attributes", "input", "output", "error", "metadata"})


class SpanHead(NamedTuple):
    """The members of a span by which its place among the others is found."""

    trace: str
    id: str
    parent: str
    start: str
    end: str
    kind: str
    name: str
    thread: str
    message: str
    """The id of the message in which Mastra stores the answer of a step."""
    is_finished: bool
    """Whether a step has a stop word."""
    place: Any
    """The place from which the span is read."""


ReadSpan = Callable[[Any, tuple[str, ...]], bytes]
"""Reads some members of the span at a place, as the JSON of an object."""
DatedRecord = tuple[str, bytes]
"""A record with the time by which records are ordered: the start of its trace, or of its exchange of messages."""


@dataclass(slots=True)
class AgentRun:
    """A run of an agent, or another chain of requests, while its spans are visited."""

    session: str
    title: str
    parent: str
    facts: dict[str, Any]
    """The members of the run's own span."""
    generations: int = 0

    def record(self, **members: bytes) -> bytes:
        """A record of the run, with these members as JSON."""
        ids = compact_json({"session": self.session, "title": self.title, "parent": self.parent})
        return ids[:-1] + b"".join(b"," + member_name(name) + value for name, value in members.items()) + b"}"


class SpanForest:
    """The spans of a file, in the order of their start times."""

    def __init__(self, heads: Iterable[SpanHead], read: ReadSpan) -> None:
        self._read = read
        self._below: defaultdict[int, list[SpanHead]] = defaultdict(list)
        """The `id()` of a span -> the spans within it. By their own ids, two spans with one id could form a ring."""
        ordered = sorted(heads, key=lambda head: head.start)  # equal times keep the order of the file
        self._by_id = {(head.trace, head.id): head for head in reversed(ordered)}  # of two with one id, the first
        self._roots: list[SpanHead] = []
        for head in ordered:
            above = self._by_id.get((head.trace, head.parent))
            within = self._roots if above is None or above is head else self._below[id(above)]
            within.append(head)
        self.threads: defaultdict[str, list[SpanHead]] = defaultdict(list)
        """Thread -> its runs that are not within another one."""
        for head in self._roots:
            for each in (head, *self._inside(head)):
                if each.kind == RUN and each.thread:
                    self.threads[each.thread].append(each)
        unended = {head.trace for runs in self.threads.values() for head in runs if not head.end}
        ended = [head for head in ordered if head.kind == STEP and head.trace not in unended]
        self.traces = {head.trace for head in ended}
        self.messages = {head.message for head in ended if head.message}
        self.replaced: set[str] = set()
        """The traces that were not ended, and whose answers are read from the messages."""

    def has_answer(self, thread: str, message: str | None, trace: str | None, created: str) -> bool:
        """Whether the answer in a message is in the spans too. The message of an aborted run names no trace, so the
        time of the user's message decides (`created`). The message has more if the run's end is not in the spans."""
        if message in self.messages or trace in self.traces:
            return True
        runs = self.threads.get(thread, [])
        before = bisect_right(runs, created, key=lambda run: run.start)
        if before and not runs[before - 1].end:
            self.replaced.add(runs[before - 1].trace)
        return before > 0 and created <= runs[before - 1].end

    def records(self, titles: Mapping[str, str]) -> Iterator[DatedRecord]:
        """Every run and every answer."""
        for root in self._roots:
            waiting: list[tuple[SpanHead, AgentRun | None]] = [(root, None)]
            while waiting and root.trace not in self.replaced:
                head, run = waiting.pop()
                below = self._below.get(id(head), [])
                resumed = head.kind == RUN and self._kind_above(head) == GENERATION  # after an approval
                if run is not None and resumed:
                    run.generations = 0
                    yield root.start, run.record(resumed=self._read(head.place, ("input",)))
                elif head.kind == RUN or (head.kind in (GENERATION, STEP) and (run is None or (
                        head.kind == GENERATION and run.generations))):
                    run = self._run_at(head, run, titles)
                    yield root.start, run.record(run=compact_json(run.facts))
                if run is not None and head.kind == GENERATION:
                    run.generations += 1
                    if not any(each.kind == STEP for each in below):
                        yield root.start, run.record(**self._answer(head, run))
                elif run is not None and head.kind == STEP and not self._is_repeated(head):
                    yield root.start, run.record(**self._answer(head, run))
                waiting += [(each, run) for each in reversed(below)]

    def _kind_above(self, head: SpanHead) -> str:
        above = self._by_id.get((head.trace, head.parent))
        return "" if above is None else above.kind

    def _run_at(self, head: SpanHead, around: AgentRun | None, titles: Mapping[str, str]) -> AgentRun:
        facts = object_in(self._read(head.place, ("startedAt", "input", "output", "error")))
        facts["status"] = object_of(facts.pop("output", None)).get("status")
        if around is None and head.thread:
            return AgentRun(head.thread, titles.get(head.thread) or head.thread, "", facts)
        return AgentRun(f"{head.trace}/{head.id}", head.name, around.session if around else "", facts)

    def _answer(self, head: SpanHead, run: AgentRun) -> dict[str, bytes]:
        """The members of an answer's record: its spans, those within it, the settings and the failure around it."""
        inside, above = self._inside(head), self._by_id.get((head.trace, head.parent))
        found = {"answer": self._read(head.place, _ANSWER)}
        beside = self._below.get(id(above), []) if head.kind == GENERATION else []
        if head is next((each for each in beside if each.kind == GENERATION), None):
            tools = [each for each in beside if each.kind in TOOLS]
            if tools:  # the span is of all requests, with these tools in between
                found["merged"], inside = b"true", inside + tools
        if above is not None and above.kind == GENERATION:
            beside = self._below[id(above)]
            if head is next(each for each in beside if each.kind == STEP):
                inside += [each for each in beside if each.kind in TOOLS]  # a call that waited for an approval
                if not head.is_finished:
                    found["text"] = self._read(above.place, ("output",))
            if not any(each.kind == INFERENCE for each in inside):
                found["generation"] = self._read(above.place, ("attributes",))
            found["failure"] = self._read(above.place, ("error",))
        if run.facts.get("error") is not None:
            found["failure"] = compact_json({"error": run.facts["error"]})
        if not head.is_finished and run.facts["status"] is not None:
            found["status"] = compact_json(run.facts["status"])
        rows = (self._read(each.place, _INSIDE[each.kind]) for each in inside if each.kind in _INSIDE)
        return {**found, "inside": b"[" + b",".join(rows) + b"]"}

    def _is_repeated(self, head: SpanHead) -> bool:
        """Whether a step that waited for an approval is also in a step of the run that was resumed."""
        calls = set() if head.is_finished else {
            _call_in(self._read(each.place, ("output",))) for each in self._inside(head) if each.kind == CHUNK}
        above = self._by_id.get((head.trace, head.parent))
        runs = [each for each in self._below.get(id(above), []) if each.kind == RUN] if calls else []
        steps = [each for run in runs for generation in self._below.get(id(run), [])
                 for each in self._below.get(id(generation), []) if each.kind == STEP]
        return any(known_text(call.get("toolCallId")) in calls - {None} for each in steps for call in objects_of(
            object_of(object_in(self._read(each.place, ("output",))).get("output")).get("toolCalls")))

    def _inside(self, head: SpanHead) -> list[SpanHead]:
        """The spans within a span, down to those of further runs and generations."""
        found, waiting = list[SpanHead](), list(reversed(self._below.get(id(head), [])))
        while waiting:
            found.append(each := waiting.pop())
            if each.kind not in (RUN, GENERATION):
                waiting += reversed(self._below.get(id(each), []))
        return found


def _call_in(chunk: bytes) -> str | None:
    return known_text(object_of(object_in(chunk).get("output")).get("toolCallId"))


def head_of(span: Mapping[str, Any], place: Any) -> SpanHead:
    """The head of a span, whose metadata name its thread."""
    trace, key, parent, start, end, kind, name = (known_text(span.get(member)) or "" for member in _HEAD)
    thread = known_text(object_of(span.get("metadata")).get("threadId")) or ""
    kind = OLD_TYPES.get(kind, kind)
    attributes = object_of(span.get("attributes")) if kind == STEP else {}
    return SpanHead(trace, key, parent, start, end, kind, name, thread, known_text(attributes.get("messageId")) or "",
                    known_text(attributes.get("finishReason")) is not None, place)


def members_of(span: Any, names: tuple[str, ...]) -> bytes:
    """Some members of a span that is an object."""
    return compact_json({name: span[name] for name in names if span.get(name) is not None})


# -- The database ----------------------------------------------------------------------------------------------------


def database_records(database: sqlite3.Connection, found: Schema) -> Iterator[bytes]:
    """The records of a database, in the order of their times."""
    titles = {}
    if has(found, THREADS, "id", "title"):
        titles = {str(key): str(title) for key, title in database.execute("SELECT id, title FROM mastra_threads")
                  if title and not str(title).startswith(UNNAMED)}
    tables = own_tables("mastra", found)
    heads = _heads(database) if SPANS in tables else []
    forest = SpanForest(heads, lambda place, names: _row(database, place, names))
    messages: list[DatedRecord] = []
    if MESSAGES in tables:
        rows = database.execute(
            "SELECT id, thread_id, role, createdAt, content FROM mastra_messages ORDER BY createdAt, rowid")
        messages += message_records(map(tuple, rows), forest, titles)
    yield from (record for _, record in sorted([*forest.records(titles), *messages], key=lambda each: each[0]))


def _heads(database: sqlite3.Connection) -> Iterator[SpanHead]:
    for row in database.execute(
            "SELECT rowid, traceId, spanId, parentSpanId, startedAt, endedAt, spanType, name, metadata, "
            "CASE WHEN spanType IN ('model_step', 'llm_step') THEN attributes END AS attributes "
            "FROM mastra_ai_spans ORDER BY rowid"):
        held = {name: object_in(text) for name in ("metadata", "attributes") if (text := _plain(row[name]))}
        yield head_of({**{name: row[name] for name in _HEAD}, **held}, row["rowid"])


def _row(database: sqlite3.Connection, place: Any, names: tuple[str, ...]) -> bytes:
    query = f"SELECT {', '.join(names)} FROM {SPANS} WHERE rowid = ?"  # noqa: S608 - the names are constants
    return record_of(names, tuple(map(_plain, database.execute(query, (place,)).fetchone())), "", _JSON)


def _plain(value: Any) -> Any:
    """The value of a column; the JSON of one in SQLite's binary form, nothing for a damaged one."""
    if not isinstance(value, bytes):
        return value
    try:
        return jsonb_text(value).decode("utf-8", "replace")
    except ValueError:
        return None


# -- Messages --------------------------------------------------------------------------------------------------------


def message_records(
    rows: Iterable[tuple[Any, ...]], forest: SpanForest, titles: Mapping[str, str]
) -> Iterator[DatedRecord]:
    """The messages whose answer is not in the spans, each with the messages before it. A row has the
    columns `id`, `thread_id`, `role`, `createdAt` and `content`."""
    waiting: defaultdict[str, list[tuple[str, bytes]]] = defaultdict(list)
    """Thread -> its messages since the last answer."""
    for key, thread, role, created, content in rows:
        name = str(thread)
        text = content if isinstance(content, bytes) else str(content).encode("utf-8", "replace")
        record = with_ids(text, session=name, title=titles.get(name) or name, id=key, role=role, created=created)
        waiting[name].append((str(created), record))
        if role == "assistant":
            exchange = waiting.pop(name)
            about = object_of(object_in(text).get("metadata")) if name in forest.threads else {}
            if not forest.has_answer(name, known_text(key), known_text(about.get("traceId")), exchange[0][0]):
                yield from ((exchange[0][0], each) for _, each in exchange)
    for name, exchange in waiting.items():
        if name not in forest.threads:  # else the spans have the request that got no answer
            yield from ((exchange[0][0], each) for _, each in exchange)


def object_records(value: Mapping[str, Any]) -> Iterator[bytes]:
    """The records of a trace or of the messages of a thread, as Mastra's server returns them."""
    forest = SpanForest([head_of(span, span) for span in objects_of(value.get("spans"))], members_of)
    rows = [(each.get("id"), first_text(each.get("threadId"), each.get("thread_id")), each.get("role"),
             str(each.get("createdAt")), compact_json(each.get("content")))
            for each in objects_of(value.get("messages"))]
    for _, record in (*forest.records({}), *message_records(rows, forest, {})):
        yield record
