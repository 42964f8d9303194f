"""The counted input tokens of requests, and the costs of responses by the configured prices.

Formats count differently: some have what came from the cache among the input tokens, some beside them
(`Format.cached_apart`), and what was written to the cache stands apart then too. A cost is never guessed: without a
count, or without a price for one of the kinds of tokens that were counted, a response has none, and a sum says of how
many responses it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from inspector.config.prices import MILLION, Price, PriceTable
from inspector.report.facts import ResponseFacts, TurnFacts, View
from inspector.sessions.recording import Exchange
from loop_core.values import Usage
from loop_core.wire import wire

BYTES_A_TOKEN = 4
"""What a token takes of a text, about; English prose has somewhat more, code and other scripts less."""
_WRITTEN = (rb'"(?:cache_creation_input_tokens|cache(?:Creation|Write)InputTokens)"\s*:\s*([0-9]{1,15})'
            rb'(?=\s*[,}\]])')
"""The count of a body: inside a JSON string its quotes are escaped, so no text of an answer is taken for it."""


class InputTokens(NamedTuple):
    """The number of input tokens, by how the provider handled them."""

    fresh: int
    cached: int = 0
    """Read from the provider's cache."""
    written: int = 0
    """Read, and written to the cache."""

    @property
    def total(self) -> int:
        """The tokens of the whole context."""
        return self.fresh + self.cached + self.written


def input_tokens(exchange: Exchange) -> InputTokens | None:
    """The input tokens that the provider reported; None if it reported none, or contradicts itself."""
    usage = exchange.response.usage
    if usage is None or usage.input_tokens is None:
        return None
    given, cached = usage.input_tokens, usage.cached_tokens or 0
    if wire(exchange.api).cached_apart:
        counts = re.findall(_WRITTEN, exchange.body)
        found = InputTokens(given, cached, int(counts[-1]) if counts else 0)
    else:
        found = InputTokens(given - cached, cached)
    return found if min(found) >= 0 else None


def estimated_tokens(text: str) -> int:
    """A rough token count of a text, guessed from its size."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN)


# -- What responses cost, where a price table is configured: only where both the price and the usage are known -------
# A cost is never guessed: without a count, or without a price for one of the kinds of tokens that were counted, a
# response has none, and a sum says of how many responses it is.


class ResponseCost(NamedTuple):
    """The cost of a response, or why it is unknown."""

    amount: float | None
    why: str = ""


class CostSum(NamedTuple):
    """The cost of several responses, as far as known."""

    amount: float
    priced: int
    """Of how many responses the cost is known."""
    responses: int


def response_cost(facts: ResponseFacts, table: PriceTable) -> ResponseCost:
    """The cost of a response by a price table."""
    exchange = facts.exchange
    if facts.simulated:
        return ResponseCost(None, "no provider was asked")
    names = [exchange.response.model, exchange.request.model if exchange.request is not None else None]
    found = [price for name in names if (price := table.of(name)) is not None]
    if not found:
        return ResponseCost(None, f"the table has no price for {names[0] or names[1] or 'a model that is not named'}")
    usage, given = exchange.response.usage, input_tokens(exchange)
    if usage is None or given is None or usage.output_tokens is None:
        return ResponseCost(None, "its tokens were not reported")
    return _cost(found[0], given, usage, usage.output_tokens)


def _cost(price: Price, count: InputTokens, usage: Usage, output: int) -> ResponseCost:
    counted = {"input": count.fresh, "cached_input": count.cached, "cache_write": count.written, "output": output}
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
    """The cost of the recorded responses of a turn; None if that is known of none."""
    return _sum([view.responses[index] for index in turn.responses], view.prices)


@lru_cache(maxsize=2)
def session_cost(view: View) -> CostSum | None:
    """The cost of all recorded responses; None if that is known of none."""
    return _sum(view.responses, view.prices)


def _sum(responses: Iterable[ResponseFacts], table: PriceTable) -> CostSum | None:
    if not table.models:
        return None
    costs = [response_cost(facts, table).amount for facts in responses]
    known = [amount for amount in costs if amount is not None]
    return CostSum(sum(known), len(known), len(costs)) if known else None


def cost_text(cost: CostSum, table: PriceTable) -> str:
    """A sum in words, with the number of responses if it does not cover all."""
    amount = table.amount_text(cost.amount)
    if cost.priced == cost.responses:
        return amount
    return f"{amount} for {cost.priced:,} of {cost.responses:,} responses, of the others it is not known"
