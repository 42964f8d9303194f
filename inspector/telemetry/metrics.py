"""From a session as it is viewed to measurements. Pure: seed 000's are folded from the same events that a log gets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inspector.report.facts import ResponseFacts, TurnFacts, View
from inspector.telemetry import names
from inspector.telemetry.names import OURS
from inspector.telemetry.points import Point, given, length, moment
from inspector.telemetry.spans import first_chunk, operation, who
from loop_core.turn.trace import Labels, Record, fold

_DECLINED = (names.ERROR_TYPE,)
_INT64 = 1 << 63
"""What a provider claims beyond is no count that an instrument can hold."""


def points(view: View, only: Sequence[int] | None = None) -> tuple[Point, ...]:
    """All measurements of a session; `only` names turns by their indices."""
    turns = [turn for index, turn in enumerate(view.turns) if only is None or index in only]
    made: list[Point] = []
    for turn in turns:
        for index in turn.responses:
            made += _of_answer(view.responses[index])
        opening = view.responses[turn.responses[0]].exchange
        made.append(Point(names.TURNS, 1, given({**who(opening), f"{OURS}turn.terminal_reason": turn.terminal})))
        made += _of_turn(view, turn)
    return tuple(made)


def _of_answer(facts: ResponseFacts) -> Iterator[Point]:
    exchange, common = facts.exchange, operation(facts)
    usage, first = exchange.response.usage, first_chunk(facts)
    counted = given({name: value for name, value in common.items() if name not in _DECLINED})
    counts = {} if usage is None else {"input": usage.input_tokens, "output": usage.output_tokens}
    for kind, tokens in counts.items():
        if tokens is not None and 0 <= tokens < _INT64:
            yield Point(names.TOKEN_USAGE, tokens, {**counted, names.TOKEN_TYPE: kind})
    took = length(exchange)
    if took is not None:
        yield Point(names.DURATION, took / 1e9, given(common))
    if first is not None:
        yield Point(names.TIME_TO_FIRST_CHUNK, first, counted)
    yield Point(names.RESPONSES, 1, {**given(common), f"{OURS}stop.normalized": facts.judged.stop.normalized.value})
    for verdict in facts.verdicts:
        yield Point(names.CALLS, 1, {**counted, f"{OURS}call.admission": verdict.admission.value,
                                     f"{OURS}call.rule": verdict.rule})


def _of_turn(view: View, turn: TurnFacts) -> Iterator[Point]:
    """Seed 000's, of the run in which the turn was decided."""
    records: list[Record] = []
    for index in range(turn.run.first, turn.run.decided + 1):
        records += view.shown(index).records
    took = duration(view, turn)
    folded = fold(records, {} if took is None else {record["turn_id"]: took / 1e6 for record in records})
    api = view.responses[turn.responses[0]].exchange.api

    def of(labels: Labels) -> dict[str, str]:
        model = {names.RESPONSE_MODEL: labels[1]} if labels[1] else {}
        return {names.PROVIDER: names.provider(labels[0], api), **model}

    for labels, count in folded.continuations.items():
        yield Point(names.CONTINUATIONS, count, of(labels))
    for labels, count in folded.truncation_exits.items():
        yield Point(names.TRUNCATION_EXITS, count, of(labels))
    for labels, attempts in folded.attempts_per_turn.items():
        yield from (Point(names.ATTEMPTS, attempt, of(labels)) for attempt in attempts)
    for labels, latencies in folded.latency_ms.items():
        yield from (Point(names.CONTINUED, latency / 1_000, of(labels)) for latency in latencies)
    if folded.latency_missing:
        yield Point(names.CONTINUED_UNTIMED, folded.latency_missing, {})


def duration(view: View, turn: TurnFacts) -> int | None:
    """Nanoseconds from the first request of a turn to the end of its last answer; None where that is not recorded."""
    opening = view.responses[turn.responses[0]].exchange
    closing = view.responses[turn.responses[-1]].exchange
    start, last, took = moment(opening.started), moment(closing.started), length(closing)
    if start is None or last is None or took is None or last + took < start:
        return None
    return last + took - start
