"""Converts the view of a session to spans: one trace per turn, with a span for each answer and each tool run.

A turn is `invoke_agent`, an exchange `chat`, a result that was sent back to the model `execute_tool`. The finish reason
is the provider's own word; its meaning, and the decisions of gate and machine, are in our own attributes. The first
section writes message contents in the conventions' JSON. The module is pure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from inspector.export import conventions
from inspector.export.conventions import (
    OURS,
    Attribute,
    Attributes,
    Clock,
    Operation,
    OtelKind,
    OtelSpan,
    SpanEvent,
    Times,
    When,
    compact,
    first_moment,
)
from inspector.report.facts import ResponseFacts, TurnFacts, View
from inspector.report.run_answers import fidelity_of
from inspector.report.verdict import identifier
from inspector.sessions import redact
from inspector.sessions.places import results_in
from inspector.sessions.reasons import named_api
from inspector.sessions.recording import Exchange, ToolAnswer, TurnPlace, late_answers
from loop_core.judge.arguments import parse
from loop_core.judge.gate import Admission, Verdict
from loop_core.turn.history import results_for
from loop_core.values import (
    MessagePart,
    OpaquePart,
    ReasoningPart,
    Role,
    Severity,
    Stop,
    TextPart,
    ToolCall,
    ToolResultPart,
    TransportEnd,
)

# -- Message contents, in the conventions' JSON for messages ---------------------------------------------------------
# They are written only if the operator asks for them.


def of_answer(exchange: Exchange) -> dict[str, Attribute | None]:
    """The messages of a request and its answer, as the conventions write them."""
    request, response = exchange.request, exchange.response
    output_message: Mapping[str, Any] = {"role": "assistant", "parts": _parts(response.parts),
                                         # the conventions' JSON schema of output messages requires it
                                         "finish_reason": response.raw_stop_reason or ""}
    found: dict[str, Attribute | None] = {conventions.OUTPUT_MESSAGES: _json([output_message])}
    if request is not None:
        system = [part for message in request.messages if message.role is Role.SYSTEM for part in _parts(message.parts)]
        history = [{"role": message.role.value, "parts": _parts(message.parts)} for message in request.messages
                   if message.role is not Role.SYSTEM]
        tools = [{"type": tool.kind.value, "name": tool.name, "description": tool.description,
                  "parameters": tool.schema} for tool in request.tools]
        found |= {conventions.SYSTEM_INSTRUCTIONS: _json(system), conventions.INPUT_MESSAGES: _json(history),
                  conventions.TOOL_DEFINITIONS: _json(tools)}
    return found


def _parts(parts: Iterable[MessagePart]) -> list[dict[str, Any]]:
    return [_part(part) for part in parts]


def _part(part: MessagePart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "content": part.text}
    if isinstance(part, ReasoningPart):
        return {"type": "reasoning", "content": part.text}
    if isinstance(part, ToolCall):
        value = parse(part.arguments).value  # cut arguments stay text
        return {"type": "tool_call", "id": part.id, "name": part.name,
                "arguments": part.arguments if value is None else value}
    if isinstance(part, OpaquePart):
        return {"type": part.type}
    return {"type": "tool_call_response", "id": part.call_id, "response": part.text}


def _json(value: list[Any]) -> str | None:
    return json.dumps(value, ensure_ascii=False) if value else None


SERVICE = "loop-inspector"
NO_ERROR = frozenset({"completed", "unrecorded"})
"""The terminal reasons that do not make a turn an error."""
FAILED: Mapping[Stop, str] = {
    Stop.ERROR: "error", Stop.INTERRUPTED: "interrupted", Stop.CANCELLED: "cancelled",
    Stop.MALFORMED_TOOL_CALL: "malformed_tool_call",
}
"""Effective stop reason that makes an answer an error -> the error's type, if the answer has no more specific one."""


def spans(
    view: View, now: int, *, with_content: bool = False, only: Sequence[int] | None = None
) -> tuple[OtelSpan, ...]:
    """The spans of a session, or of the turns with the indices `only`. `now`, in nanoseconds since the epoch, is the
    start if no time was recorded. `with_content` adds message contents."""
    session_spans: list[OtelSpan] = []
    clock = Clock(first_moment(facts.exchange for facts in view.responses) or now)
    results = late_answers(view.inputs)
    for index, turn in enumerate(view.turns):
        if only is None or index in only:
            clock.at = first_moment(view.responses[each].exchange for each in turn.responses) or clock.at
            session_spans += _turn(view, turn, clock, len(session_spans), results, with_content)
    return tuple(session_spans)


def _turn(view: View, turn: TurnFacts, clock: Clock, at: int, notes: _Results, with_content: bool) -> list[OtelSpan]:
    answers = [view.responses[index] for index in turn.responses]
    below: list[OtelSpan] = []
    ends: dict[int, int] = {}
    bases: list[Times] = []
    for position, facts in enumerate(answers):
        when = clock.exchange(facts.exchange)
        ends[facts.index] = when.end
        bases.append(when.basis)
        below.append(_clean(_answer(facts, when, at, with_content)))
        following = answers[position + 1] if position + 1 < len(answers) else None
        for part, verdict, until in _tool_results(notes, facts, following):
            since = when.end if when.basis in (Times.RECORDED, Times.LENGTH) else None
            below.append(_clean(_tool(part, verdict, clock.tool(since, until), at, with_content)))
    start, end = min(span.start for span in below), max(span.end for span in below)
    opening, ended = answers[0].exchange, view.end_of(turn)
    spent = ended.spend
    failed = failure(turn)
    attributes = {
        conventions.OPERATION: Operation.INVOKE_AGENT.value, **who(opening), conventions.REQUEST_MODEL: _model(opening),
        conventions.ERROR_TYPE: failed,
        f"{OURS}turn.id": turn.id, f"{OURS}conversation": turn.conversation,
        f"{OURS}turn.terminal_reason": turn.terminal, f"{OURS}turn.state": turn.final_state.value,
        f"{OURS}turn.verdict": turn.verdict.word, f"{OURS}turn.finding_rules": tuple(
            dict.fromkeys(note.finding.rule for note in turn.findings)),
        f"{OURS}turn.requests": spent.requests, f"{OURS}turn.continuations": spent.continuations,
        f"{OURS}turn.repairs": spent.repairs, f"{OURS}turn.output_tokens": spent.output_tokens,
        f"{OURS}turn.continuation_tokens": spent.continuation_tokens,
        f"{OURS}policy": ended.policy.name, f"{OURS}fidelity": fidelity_of(view, turn).value,
        f"{OURS}times": max(bases, key=list(Times).index).value,
    }
    events = tuple(_events(view, turn, ends, end))
    own = OtelSpan(Operation.INVOKE_AGENT.value, OtelKind.INTERNAL, start, end, compact(attributes), None, events,
                   failed, _seed(turn, answers))
    return [_clean(own), *below]


def failure(turn: TurnFacts) -> str | None:
    """Why a turn failed: its verdict in one word, or its terminal reason; None if it succeeded. A cut call that ran is
    a failure although the agent completed its turn; a recording that ends early is not."""
    if turn.verdict.severity is Severity.ERROR:
        return identifier(turn.verdict.word)
    return None if turn.terminal in NO_ERROR else turn.terminal


def _seed(turn: TurnFacts, answers: Sequence[ResponseFacts]) -> bytes:
    """The seed of a trace's ids: the same recording always gives the same ids."""
    digest = hashlib.sha256(turn.id.encode("utf-8", "backslashreplace"))
    for facts in answers:
        exchange = facts.exchange
        named = f"\0{exchange.url}\0{exchange.started}\0{exchange.entry}\0{exchange.response.id}\0"
        digest.update(named.encode("utf-8", "backslashreplace"))
        digest.update(exchange.body)
    return digest.digest()


def _events(view: View, turn: TurnFacts, ends: Mapping[int, int], last: int) -> Iterator[SpanEvent]:
    """The structured events of the run that decided the turn, each with the time of the answer before it."""
    at = min(ends.values(), default=last)
    for index in range(turn.run.first, turn.run.deciding_step + 1):
        step = view.effective_step(index)
        at = ends.get(step.response, at) if step.response is not None else at
        for record in step.records:
            members = {f"{OURS}{name}": value for name, value in record.items()
                       if name not in ("event", "turn_id", "provider", "model")}  # the span has these already
            yield SpanEvent(f"{OURS}{record['event']}", at, compact(members))


def who(exchange: Exchange) -> dict[str, Attribute | None]:
    """The provider and the server of an answer."""
    address, port = server(exchange.url)
    return {conventions.PROVIDER: conventions.provider(exchange.profile.name, named_api(exchange)),
            conventions.SERVER_ADDRESS: address, conventions.SERVER_PORT: port}


def server(url: str) -> tuple[str | None, int | None]:
    """Host and port of an address; None for a part that it does not name."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None, None
    default = {"https": 443, "http": 80}.get(parts.scheme)  # the conventions want a port beside every address
    return (parts.hostname, port or default) if parts.hostname else (None, None)


def error_type(facts: ResponseFacts) -> str | None:
    """The error type of an answer: the provider's own type or code, else the HTTP status, else how the bytes ended."""
    response, word = facts.exchange.response, facts.judgement.stop.normalized
    if word not in FAILED:
        return None
    if response.error is not None and word is Stop.ERROR:
        named = response.error.type or response.error.code  # not the message: `error.type` must have few values
        status = str(response.http_status) if (response.http_status or 0) >= 400 else None
        return named or status or FAILED[word]
    if word is Stop.INTERRUPTED and response.transport_end is not TransportEnd.EOF:
        return response.transport_end.value
    return FAILED[word]


def operation(facts: ResponseFacts) -> dict[str, Attribute | None]:
    """The attributes that spans and measurements share."""
    exchange = facts.exchange
    return {
        conventions.OPERATION: Operation.CHAT.value, **who(exchange), conventions.REQUEST_MODEL: _model(exchange),
        conventions.RESPONSE_MODEL: exchange.response.model, conventions.ERROR_TYPE: error_type(facts),
        f"{OURS}fidelity": facts.fidelity.value if facts.is_made else None,
    }


def _model(exchange: Exchange) -> str | None:
    return (exchange.request.model if exchange.request else None) or None


def _answer(facts: ResponseFacts, when: When, parent: int, with_content: bool) -> OtelSpan:
    exchange, stop = facts.exchange, facts.judgement.stop
    response, request, usage = exchange.response, exchange.request, exchange.response.usage
    error = error_type(facts)
    first = first_chunk(facts)
    attributes: dict[str, Attribute | None] = {
        **operation(facts),
        conventions.REQUEST_MAX_TOKENS: request.max_tokens if request else None,
        conventions.REQUEST_STREAM: response.streaming,
        conventions.REQUEST_CHOICES: request.n if request and request.n != 1 else None,  # if not 1 (conventions)
        conventions.RESPONSE_ID: response.id,
        conventions.FINISH_REASONS: (response.raw_stop_reason,) if response.raw_stop_reason else None,
        conventions.FIRST_CHUNK: first,
        conventions.INPUT_TOKENS: usage.input_tokens if usage else None,
        conventions.OUTPUT_TOKENS: usage.output_tokens if usage else None,
        conventions.REASONING_TOKENS: usage.reasoning_tokens if usage else None,
        conventions.CACHED_TOKENS: usage.cached_tokens if usage else None,
        conventions.CACHE_WRITE_TOKENS: usage.cache_write_tokens if usage else None,
        conventions.HTTP_STATUS: response.http_status,
        f"{OURS}api": named_api(exchange), f"{OURS}profile": exchange.profile.name,
        f"{OURS}response.index": facts.index, f"{OURS}response.place": facts.link.place.value,
        f"{OURS}stop.normalized": stop.normalized.value, f"{OURS}stop.detail": stop.detail,
        f"{OURS}stop.mapped": facts.judgement.mapped.normalized.value,
        f"{OURS}stop.rules": tuple(dict.fromkeys(evidence.rule for evidence in stop.evidence)),
        f"{OURS}state": facts.state.value if facts.state else None,
        f"{OURS}transport.end": response.transport_end.value, f"{OURS}transport.saw_done": response.saw_done,
        f"{OURS}times": when.basis.value,
        **(of_answer(exchange) if with_content else {}),
    }
    name = " ".join(word for word in (Operation.CHAT.value, _model(exchange) or response.model) if word)  # `chat MODEL`
    calls = ({conventions.TOOL_NAME: verdict.call.name, conventions.TOOL_CALL_ID: verdict.call.id,
              f"{OURS}call.admission": verdict.admission.value, f"{OURS}call.rule": verdict.rule}
             for verdict in facts.verdicts)
    events = tuple(SpanEvent(f"{OURS}call", when.end, compact(call)) for call in calls)
    return OtelSpan(name, OtelKind.CLIENT, when.start, when.end, compact(attributes), parent, events, error)


def first_chunk(facts: ResponseFacts) -> float | None:
    """Seconds until the first piece of a streamed answer; None if that is not recorded."""
    chunks = facts.exchange.chunks
    return round(chunks[0].ms / 1_000, 6) if chunks and facts.exchange.response.streaming else None


_Results = Mapping[tuple[str, int | None], Sequence[ToolAnswer]]
"""File and entry of an answer -> its results (`late_answers`)."""


def _tool_results(
    notes: _Results, facts: ResponseFacts, following: ResponseFacts | None
) -> Iterator[tuple[ToolResultPart, Verdict | None, str | None]]:
    """The results of an answer's calls, sent back or else recorded separately, each with its call's verdict and its
    time."""
    exchange = facts.exchange
    answers = notes.get((exchange.path, exchange.entry), ())
    sent = (results_in(following.exchange, exchange.response.tool_calls)
            if following and following.link.place is TurnPlace.TOOL_RESULT else ())
    times = {(answer.result.call_id, answer.result.name): answer.at for answer in answers}
    parts = sent or [answer.result for answer in answers]
    matched = results_for([verdict.call for verdict in facts.verdicts], parts)
    verdicts = {id(part): verdict for part, verdict in zip(matched, facts.verdicts, strict=True)}
    for part in parts:
        at = next((at for (key, name), at in times.items() if key == part.call_id and (key or name == part.name)), None)
        yield part, verdicts.get(id(part)), at


def _tool(part: ToolResultPart, verdict: Verdict | None, when: When, parent: int, with_content: bool) -> OtelSpan:
    name = part.name or (verdict.call.name if verdict else "")
    unready = verdict.admission.value if verdict is not None and verdict.admission is not Admission.READY else None
    failed = unready or ("tool_error" if part.is_error else None)
    attributes: dict[str, Any] = {
        conventions.OPERATION: Operation.EXECUTE_TOOL.value, conventions.TOOL_NAME: name,
        conventions.TOOL_CALL_ID: part.call_id, conventions.TOOL_TYPE: "function", conventions.ERROR_TYPE: failed,
        f"{OURS}call.admission": verdict.admission.value if verdict else None,
        f"{OURS}call.rule": verdict.rule if verdict else None, f"{OURS}times": when.basis.value,
    }
    if with_content:
        attributes |= {conventions.TOOL_ARGUMENTS: verdict.call.arguments if verdict else None,
                       conventions.TOOL_RESULT: part.text}
    called = " ".join(word for word in (Operation.EXECUTE_TOOL.value, name) if word)  # `execute_tool NAME`
    return OtelSpan(called, OtelKind.INTERNAL, when.start, when.end, compact(attributes), parent, (), failed)


def _clean(span: OtelSpan) -> OtelSpan:
    """The same span, with well-known keys in its texts masked once more."""
    events = tuple(SpanEvent(event.name, event.at, _mask(event.attributes)) for event in span.events)
    return replace(span, name=_text(span.name), attributes=_mask(span.attributes), events=events)


def _mask(attributes: Attributes) -> Attributes:
    return {name: _text(value) if isinstance(value, str)
            else tuple(_text(each) for each in value) if isinstance(value, tuple) else value
            for name, value in attributes.items()}


def _text(value: str) -> str:
    return redact.text(value).encode("utf-8", "replace").decode()  # a lone surrogate cannot be written as UTF-8
