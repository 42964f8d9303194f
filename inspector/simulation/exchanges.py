"""Simulation over recorded exchanges: finds what their bodies tell of tokens, and hands it to the engine's source."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from inspector.sessions.recording import Exchange
from inspector.simulation.simulate import Simulated
from inspector.simulation.tokens import Measured, measure, splitter
from loop_core.errors import DecodeError
from loop_core.judge.classify import Judged
from loop_core.turn.loop import Recorded
from loop_core.values import ChatResponse, Request, Stop
from loop_core.wire import deltas
from loop_core.wire.base import Pieces
from loop_core.wire.profile import Profile

Judge = Callable[[ChatResponse, Request | None, Profile], Judged]


def simulated(
    recorded: Recorded, exchanges: Sequence[Exchange], memo: dict[int, Measured], judge: Judge, budget_changed: bool
) -> Simulated:
    """A source over recorded answers. `memo` keeps what was measured, by the index of the exchange."""
    indices = [answer.index or 0 for _, _, answer in recorded.answers]
    profile = exchanges[indices[0]].profile

    def of(position: int) -> Measured:
        index = indices[position]
        if index not in memo:
            memo[index] = tokens_of(exchanges[index])
        return memo[index]

    return Simulated(
        recorded, of, lambda response, request: judge(response, request, profile),
        tuple(_cap(exchanges[index]) for index in indices), budget_changed,
        profile.words, profile.at_cap.get(recorded.answers[0][2].response.api),
        profile.reasoning_under_cap,
    )


def tokens_of(exchange: Exchange) -> Measured:
    """Where the tokens of a recorded response end."""
    response = exchange.response
    cap = _cap(exchange) if response.stop_reason.normalized is Stop.MAX_TOKENS else None
    model = response.model or (exchange.request.model if exchange.request else None)
    return measure(response, _chunks(exchange), cap, splitter(model), exchange.profile.reasoning_under_cap)


def _chunks(exchange: Exchange) -> Pieces | None:
    if not exchange.response.streaming:
        return None
    try:
        return deltas(exchange.api, exchange.body)
    except DecodeError:
        return None


def _cap(exchange: Exchange) -> int | None:
    return exchange.request.max_tokens if exchange.request else None
