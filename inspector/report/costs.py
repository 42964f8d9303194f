"""What responses cost, where a price table is configured: only where both the price and the usage are known.

A cost is never guessed: without a count, or without a price for one of the kinds of tokens that were counted, a
response has none, and a sum says of how many responses it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from inspector.config.prices import MILLION, Price, PriceTable
from inspector.report.facts import ResponseFacts, TurnFacts, View
from inspector.report.token_counts import InputTokens, input_tokens
from loop_core.values import Usage


class ResponseCost(NamedTuple):
    """What a response cost, or why that is not known."""

    amount: float | None
    why: str = ""


class CostSum(NamedTuple):
    """What several responses cost, as far as it is known."""

    amount: float
    priced: int
    """Of how many responses the cost is known."""
    responses: int


def response_cost(facts: ResponseFacts, table: PriceTable) -> ResponseCost:
    """What a response cost by a price table."""
    exchange = facts.exchange
    if facts.simulated:
        return ResponseCost(None, "nobody was asked")
    names = [exchange.response.model, exchange.request.model if exchange.request is not None else None]
    found = [price for name in names if (price := table.of(name)) is not None]
    if not found:
        return ResponseCost(None, f"the table has no price for {names[0] or names[1] or 'a model that is not named'}")
    usage, given = exchange.response.usage, input_tokens(exchange)
    if usage is None or given is None or usage.output_tokens is None:
        return ResponseCost(None, "its tokens were not reported")
    return _cost(found[0], given, usage, usage.output_tokens)


def _cost(price: Price, given: InputTokens, usage: Usage, output: int) -> ResponseCost:
    counted = {"input": given.fresh, "cached_input": given.cached, "cache_write": given.written, "output": output}
    if price.reasoning is not None:
        visible = usage.visible_tokens
        if usage.reasoning_tokens is None or visible is None:
            return ResponseCost(None, "its reasoning tokens were not reported")
        counted |= {"reasoning": usage.reasoning_tokens, "output": visible}
    amount = 0.0
    for kind, tokens in counted.items():
        each = getattr(price, kind)
        if tokens and each is None:
            return ResponseCost(None, f"its model has no price for {kind.replace('_', ' ')}")
        amount += tokens * (each or 0.0)
    return ResponseCost(amount / MILLION)


def turn_cost(view: View, turn: TurnFacts) -> CostSum | None:
    """What the recorded responses of a turn cost; None where that is known of none."""
    return _sum([view.responses[index] for index in turn.responses], view.prices)


@lru_cache(maxsize=2)
def session_cost(view: View) -> CostSum | None:
    """What all recorded responses cost; None where that is known of none."""
    return _sum(view.responses, view.prices)


def _sum(responses: Iterable[ResponseFacts], table: PriceTable) -> CostSum | None:
    if not table.models:
        return None
    costs = [response_cost(facts, table).amount for facts in responses]
    known = [amount for amount in costs if amount is not None]
    return CostSum(sum(known), len(known), len(costs)) if known else None


def cost_text(cost: CostSum, table: PriceTable) -> str:
    """A sum in words; where it is not of all responses, of how many."""
    amount = table.shown(cost.amount)
    if cost.priced == cost.responses:
        return amount
    return f"{amount} for {cost.priced:,} of {cost.responses:,} responses, of the others it is not known"
