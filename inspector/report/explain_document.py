"""Makes the JSON document of `inspector explain --json`: a session as plain values, in a stable form for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from inspector.config.settings import NO_PRICES, PriceTable
from inspector.report.facts import ResponseFacts, TurnFacts, View
from inspector.report.findings import ReportedFinding
from inspector.report.run_answers import answers_of
from inspector.report.times_and_costs import (
    CostSum,
    RecordedTimes,
    TurnTimes,
    input_tokens,
    response_cost,
    session_cost,
    times_of,
    turn_cost,
    turn_times,
)
from inspector.report.verdict import TurnVerdict
from inspector.sessions.recording import Exchange, Input
from loop_core.judge.gate import Verdict
from loop_core.values import At, Usage

SCHEMA = "loop-inspector/explain/2"


def document(view: View, filtered: tuple[str, Sequence[int]] | None = None) -> dict[str, Any]:
    """The whole view as plain values, ready for `json.dumps`; with a filter, also the responses that match it."""
    return {name: list(value) if isinstance(value, Iterator) else value
            for name, value in members(view, filtered).items()}


def members(view: View, filtered: tuple[str, Sequence[int]] | None = None) -> dict[str, Any]:
    """The document with iterators in place of its long lists, so that each value is made when it is written."""
    simulates = any(each.settings.simulate for each in view.replay.stretches)
    left = view.replay.trace.departure if simulates else None  # it examines every step
    answers = () if left is None else answers_of(view, left, len(view.steps))
    simulated = [facts for _, facts in answers if facts.recut is not None]
    return {
        "schema": SCHEMA,
        "inputs": [
            {
                "path": input_file.path,
                "format": input_file.format,
                "responses": input_file.responses,
                "skipped": [{"entry": skipped.entry, "why": skipped.why} for skipped in input_file.skipped],
                **({"notices": list(input_file.notices)} if input_file.notices else {}),
                **({"notice_counts": counted} if (counted := _notice_counts(input_file)) else {}),
                **({"masked": dict(input_file.masked)} if input_file.masked else {}),
                **({"error": input_file.error} if input_file.error else {}),
            }
            for input_file in view.inputs
        ],
        "responses": (_response_values(facts, view.prices) for facts in view.responses),
        **({"simulated": [_simulated_answer(facts) for facts in simulated]} if simulated else {}),
        "turns": (_turn_values(view, turn) for turn in view.turns),
        "verdict": None if view.worst is None else _verdict(view.worst.verdict),
        "findings": (_finding(note) for note in view.findings),
        **_cost_of(session_cost(view), view.prices),
        **({} if filtered is None else {"filter": {"text": filtered[0], "responses": list(filtered[1])}}),
    }


def _notice_counts(source: Input) -> list[dict[str, Any]]:
    return [{"words": notice.words, "counts": dict(notice.counts), **({} if notice.of is None else {"of": notice.of})}
            for notice in source.statements if notice.counts]


def _simulated_answer(facts: ResponseFacts) -> dict[str, Any]:
    """A simulated answer: its content, the step that received it, and how it was made."""
    recut = facts.recut
    assert recut is not None  # noqa: S101 - only those are asked for
    return {**_response_values(facts, NO_PRICES), "entry": None, "step": facts.step + 1, "simulation": {
        "basis": recut.basis, "note": recut.note, "budget": recut.budget, "tokens": recut.tokens, "lost": recut.lost,
        "estimated": None if recut.apart is None else list(recut.apart)}}


def _response_values(facts: ResponseFacts, prices: PriceTable) -> dict[str, Any]:
    exchange, response, stop = facts.exchange, facts.exchange.response, facts.judgement.stop
    tokens = input_tokens(exchange)
    return {
        "path": exchange.path,
        "entry": exchange.entry,
        "api": exchange.api,
        "provider": provider(facts),
        "profile": exchange.profile.name,
        "model": exchange.model,
        "streaming": response.streaming,
        "http_status": response.http_status,
        "raw_stop_reason": response.raw_stop_reason,
        "mapped_stop_reason": facts.judgement.mapped.normalized.value,
        "stop_reason": stop.normalized.value,
        "stop_detail": stop.detail,
        "evidence": [{"rule": evidence.rule, "at": place_of(evidence.at)}
                     for evidence in (*exchange.profile_evidence, *facts.evidence)],
        "text": response.text,
        "reasoning": response.reasoning_content,
        "tool_calls": [_call(verdict) for verdict in facts.verdicts],
        "usage": {**(response.usage or Usage())._asdict(), "uncached_tokens": tokens.fresh if tokens else None},
        "turn": facts.turn,
        "segment": facts.segment,
        "state": facts.state.value if facts.state else None,
        **_times(exchange),
        **_cost(response_cost(facts, prices).amount, prices),
        **({"fidelity": facts.fidelity.value} if facts.is_made else {}),
    }


def _cost(amount: float | None, prices: PriceTable, **more: int) -> dict[str, Any]:
    """The cost; absent if the price or the usage is not known."""
    if amount is None:
        return {}
    currency = {"currency": prices.currency} if prices.currency else {}
    # Nine decimals hide the rounding errors of binary fractions and still show the price of a single token, which may
    # be below a millionth of the currency.
    return {"cost": {"amount": round(amount, 9), **currency, **more}}


def _cost_of(cost: CostSum | None, prices: PriceTable) -> dict[str, Any]:
    """The cost of several responses, and the number of those whose cost is known."""
    return {} if cost is None else _cost(cost.amount, prices, priced=cost.priced, responses=cost.responses)


def _times(exchange: Exchange) -> dict[str, Any]:
    """The recorded times; a time that was not recorded is absent."""
    times = times_of(exchange)
    if times is None:
        return {}
    gap = times.largest_gap
    return _time_values(times, largest_gap=None if gap is None else gap._asdict())


def _time_values(times: RecordedTimes | TurnTimes, **values: Any) -> dict[str, Any]:
    """The times with a value; some of the values may be given in another form."""
    every = {**times._asdict(), "clock": times.clock.value, **values}
    return {"times": {name: value for name, value in every.items() if value is not None}}


def provider(facts: ResponseFacts) -> str | None:
    """The host of the request, as the provider's name; None if no URL was recorded."""
    if not facts.exchange.url:
        return None
    try:
        return urlsplit(facts.exchange.url).netloc or None
    except ValueError:
        return None


def _call(verdict: Verdict) -> dict[str, Any]:
    call = verdict.call
    return {
        "id": call.id,
        "name": call.name,
        "arguments_raw": call.arguments,
        "verdict": verdict.admission.value,
        "why": verdict.why,
    }


def _turn_values(view: View, turn: TurnFacts) -> dict[str, Any]:
    times = turn_times(view, turn)
    return {
        "id": turn.id,
        "conversation": turn.conversation,
        "responses": list(turn.responses),
        "final_state": turn.final_state.value,
        "terminal_reason": turn.terminal,
        "merged_text": turn.joined_text.text,
        "continuations": turn.spend.continuations,
        "requests": turn.spend.requests,
        "output_tokens": turn.spend.output_tokens,
        "continuation_tokens": turn.spend.continuation_tokens,
        "notice": turn.notice,
        "verdict": _verdict(turn.verdict),
        **({} if times is None else _time_values(times)),
        **_cost_of(turn_cost(view, turn), view.prices),
    }


def _verdict(verdict: TurnVerdict) -> dict[str, Any]:
    advice = verdict.advice
    return {
        "id": verdict.id,
        "text": verdict.sentence,
        "severity": verdict.severity.value,
        "sure": verdict.sure,
        "advice": None if advice is None else {
            "text": advice.text, "basis": advice.basis.value, "set": None if advice.set is None else dict(advice.set)},
    }


def _finding(reported_finding: ReportedFinding) -> dict[str, Any]:
    return {
        "rule": reported_finding.finding.rule,
        "severity": reported_finding.finding.severity.value,
        "response": reported_finding.response,
        "turn": reported_finding.turn,
        "message": reported_finding.finding.message,
        "at": place_of(reported_finding.finding.at),
    }


def place_of(at: At | None) -> dict[str, Any] | None:
    """A place in an exchange as plain values."""
    return None if at is None else {"part": at.part.value, "start": at.start, "end": at.end, "pointer": at.pointer}


# -- Documents as JSON text ------------------------------------------------------------------------------------------
# The text is that of `json.dumps` with an indent of 1. A member whose value is an iterator is written a few items at a
# time, so that the document of a long session is never in memory as a whole.


def document_text(members: Mapping[str, Any]) -> Iterator[str]:
    """The text of a document, ASCII only."""
    before = "{\n "
    for name, value in members.items():
        yield f"{before}{json.dumps(name)}: "
        before = ",\n "
        if not isinstance(value, Iterator):
            yield _indented(value)
            continue
        opening = "["
        while batch := list(islice(value, AT_ONCE)):
            yield opening + _indented(batch)[1 : -len(_END)]
            opening = ","
        # An empty iterator has not opened its list yet.
        yield _END if opening == "," else "[]"
    yield "\n}" if members else "{}"


_END = "\n ]"
AT_ONCE = 16
"""The number of items of a long list that are made and written at once."""


def _indented(value: Any) -> str:
    """One value as text within the document, one level below it."""
    return json.dumps(value, indent=1).replace("\n", "\n ")
