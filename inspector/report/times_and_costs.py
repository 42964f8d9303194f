"""Times, input tokens and costs of responses and turns.

A time that was not recorded is None. A time was measured either while the provider's bytes arrived, or when the
recorder wrote a row of a transcript (`ClockSource`).

Some formats include tokens from the cache in the input tokens; others (`Format.cached_apart`) count them separately,
and those written to the cache too. A cost is never guessed: without a count, or without a price for one of the counted
kinds of tokens, a response has no cost. A sum gives the number of responses that it covers.
"""

# Annotations are not postponed: of a named tuple each would be compiled from text at every start.
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from inspector.config.settings import Price, PriceTable
from inspector.report.facts import ResponseFacts, TurnFacts, View
from inspector.sessions.recording import Exchange
from inspector.sessions.traffic import moment
from loop_core.values import TransportEnd, Usage
from loop_core.wire import wire

MOST_MS = 1e12
"""The most milliseconds that count as a time (over thirty years); more is an error of the recorder."""


class ClockSource(StrEnum):
    """The clock that a time comes from."""

    WIRE = "wire"
    """The clock of the client that recorded the provider's bytes."""
    RECORDER = "recorder"


class StreamGap(NamedTuple):
    """The longest time without a byte of the answer, and the offset of the next byte (or the end)."""

    ms: float
    at: int


class RecordedTimes(NamedTuple):
    """The recorded times of one exchange; at least one of them."""

    clock: ClockSource
    started: str | None = None
    """The recorded time at which the request was sent or, in a transcript, the first row of the answer was written."""
    duration_ms: float | None = None
    """Milliseconds from the request to the end of the answer."""
    first_byte_ms: float | None = None
    """Milliseconds from the request to the first byte of the answer's body."""
    largest_gap: StreamGap | None = None
    chunks: int | None = None
    """The number of pieces in which the body arrived, if the time of each is known."""


def times_of(exchange: Exchange) -> RecordedTimes | None:
    """The times of an exchange; None if the recording holds none, or if no server was asked."""
    if exchange.simulated:
        return None
    if exchange.recorder is not None:
        return RecordedTimes(ClockSource.RECORDER, exchange.started) if moment(exchange.started) is not None else None
    started = exchange.started if moment(exchange.started) is not None else None
    took, chunks = _length(exchange.duration_ms), exchange.chunks
    first = _length(chunks[0].ms if chunks else exchange.first_byte_ms)
    found = RecordedTimes(ClockSource.WIRE, started, took, first, _largest_gap(exchange), len(chunks) or None)
    return None if found == RecordedTimes(ClockSource.WIRE) else found


def _largest_gap(exchange: Exchange) -> StreamGap | None:
    """The longest wait after the first byte, including the wait before the end of the answer."""
    chunks = exchange.chunks
    if any(_length(chunk.ms) is None for chunk in chunks):
        return None
    # A clock that was set back gives a negative gap, which is left out.
    gaps = [StreamGap(round(after.ms - before.ms, 3), before.end) for before, after in pairwise(chunks)
            if after.ms >= before.ms]
    took = _length(exchange.duration_ms)
    if chunks and took is not None and took > chunks[-1].ms:
        gaps.append(StreamGap(round(took - chunks[-1].ms, 3), chunks[-1].end))
    return max(gaps, key=lambda gap: gap.ms, default=None)


class TurnTimes(NamedTuple):
    """The start and the duration of a turn; at least one of them."""

    clock: ClockSource
    started: str | None = None
    duration_ms: float | None = None
    """Milliseconds from the first request to the end of the last answer; in a transcript, from row to row."""
    answers_ms: float | None = None
    """The sum of the answers' durations in milliseconds; None unless every answer has one."""


def turn_times(view: View, turn: TurnFacts) -> TurnTimes | None:
    """The recorded times of a turn; None if there are none."""
    exchanges = [view.responses[index].exchange for index in turn.responses]
    opening, closing = exchanges[0], exchanges[-1]
    if opening.simulated:
        return None
    start, last = moment(opening.started), moment(closing.started)
    started = opening.started if start is not None else None
    if opening.recorder is not None:
        took = last - start if start is not None and last is not None and last > start else None
        found = TurnTimes(ClockSource.RECORDER, started, None if took is None else took / 1e6)
    else:
        lengths = [length(exchange) for exchange in exchanges]
        together = sum(each or 0 for each in lengths) / 1e6 if None not in lengths else None
        wall = together if len(exchanges) == 1 else None
        if start is not None and last is not None and lengths[-1] is not None and last + lengths[-1] >= start:
            wall = (last + lengths[-1] - start) / 1e6
            if together is not None and wall + len(exchanges) < together:
                wall = None  # less than the sum of the answers: these are not the times of the requests
        found = TurnTimes(ClockSource.WIRE, started, wall, together)
    return found if any(each is not None for each in found[1:]) else None


def took_phrase(times: TurnTimes) -> str:
    """The duration of a turn in words; empty if unknown."""
    if times.duration_ms is not None:
        rows = ", from the first to the last row of its answers" if times.clock is ClockSource.RECORDER else ""
        return f"took {duration_text(times.duration_ms)}{rows}"
    if times.answers_ms is not None:
        return f"took {duration_text(times.answers_ms)} in its answers; the time between them was not recorded"
    return ""


def duration_text(ms: float) -> str:
    """A duration in a unit that fits: `320 ms`, `4.1 s`, `2 min 5 s`, `3 h 20 min`."""
    if ms < 1_000:
        return f"{ms:,.0f} ms"
    seconds = ms / 1_000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min"


def time_phrases(exchange: Exchange) -> list[str]:
    """The times of an exchange, each in a few words; nothing if none is recorded."""
    times = times_of(exchange)
    if times is None:
        return []
    if times.clock is ClockSource.RECORDER:
        return [f"row written {times.started}", f"{exchange.recorder}'s clock; when bytes came was not recorded"]
    found: list[str] = []
    if times.first_byte_ms is not None:
        found.append(f"first byte after {duration_text(times.first_byte_ms)}")
    if times.duration_ms is not None:
        answer = exchange.response
        whole = answer.transport_end is TransportEnd.EOF and answer.saw_stop_reason
        found.append(f"{'whole' if whole else 'ended'} after {duration_text(times.duration_ms)}")
    gap = times.largest_gap
    if gap is not None and round(gap.ms):  # 0 ms is none
        place = "before the end" if gap.at >= exchange.size else f"at byte {gap.at:,}"
        found.append(f"largest gap {duration_text(gap.ms)} {place}")
    if times.started is not None:
        found.append(f"sent {times.started}")
    return found


# -- Durations ---------------------------------------------------------------------------------------------------------


def length(exchange: Exchange) -> int | None:
    """The duration of an exchange in nanoseconds; None if it was not recorded."""
    took = _length(exchange.duration_ms)
    return None if took is None else int(took * 1_000_000)


def length_ms(exchange: Exchange) -> float | None:
    """The duration of an exchange in milliseconds; None for an answer that was never received."""
    return None if exchange.simulated else _length(exchange.duration_ms)


def _length(ms: float | None) -> float | None:
    return ms if ms is not None and 0 <= ms < MOST_MS else None


# -- Input tokens ------------------------------------------------------------------------------------------------------

BYTES_A_TOKEN = 4
"""The rough number of bytes per token (https://help.openai.com/en/articles/4936856): English has more, code fewer."""


class InputTokens(NamedTuple):
    """The number of input tokens, by how the provider handled them."""

    fresh: int
    cached: int = 0
    written: int = 0
    """The number of tokens that were processed and written to the cache."""

    @property
    def total(self) -> int:
        """The tokens of the whole context."""
        return self.fresh + self.cached + self.written


def input_tokens(exchange: Exchange) -> InputTokens | None:
    """The input tokens that the provider reported; None if it reported none, or contradicts itself."""
    usage = exchange.response.usage
    if usage is None or usage.input_tokens is None:
        return None
    input_count, cached, written = usage.input_tokens, usage.cached_tokens or 0, usage.cache_write_tokens or 0
    # Anthropic's `input_tokens` leaves out cached tokens
    # (https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching); OpenAI's `prompt_tokens` includes them
    # (https://platform.openai.com/docs/guides/prompt-caching).
    fresh = input_count if wire(exchange.api).cached_apart else input_count - cached - written
    found = InputTokens(fresh, cached, written)
    # More cached tokens than input tokens contradict the format's way of counting; a guess would give a wrong cost.
    return found if min(found) >= 0 else None


def estimated_tokens(text: str) -> int:
    """A rough token count of a text, guessed from its size."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN)


# -- The cost of responses by a configured price table, if both the price and the usage are known --------------------


class ResponseCost(NamedTuple):
    """The cost of a response, or why it is unknown."""

    amount: float | None
    why: str = ""


class CostSum(NamedTuple):
    """The cost of several responses, as far as known."""

    amount: float
    priced: int
    responses: int


def response_cost(facts: ResponseFacts, table: PriceTable) -> ResponseCost:
    """The cost of a response by a price table."""
    exchange = facts.exchange
    if facts.simulated:
        return ResponseCost(None, "no provider was asked")
    # The answer's model comes first, because the request's may be an alias.
    names = [exchange.response.model, exchange.request.model if exchange.request is not None else None]
    found = [price for name in names if (price := table.of(name)) is not None]
    if not found:
        return ResponseCost(None, f"the table has no price for {names[0] or names[1] or 'a model that is not named'}")
    usage, tokens = exchange.response.usage, input_tokens(exchange)
    if usage is None or tokens is None or usage.output_tokens is None:
        return ResponseCost(None, "its tokens were not reported")
    return _cost(found[0], tokens, usage, usage.output_tokens)


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
    return ResponseCost(amount / 1_000_000)  # prices are for a million tokens


def turn_cost(view: View, turn: TurnFacts) -> CostSum | None:
    """The cost of the recorded responses of a turn; None if it is known for none of them."""
    return _sum([view.responses[index] for index in turn.responses], view.prices)


@lru_cache(maxsize=2)
def session_cost(view: View) -> CostSum | None:
    """The cost of all recorded responses; None if it is known for none of them."""
    return _sum(view.responses, view.prices)


def _sum(responses: Iterable[ResponseFacts], table: PriceTable) -> CostSum | None:
    if not table.models:
        return None
    costs = [response_cost(facts, table).amount for facts in responses]
    amounts = [amount for amount in costs if amount is not None]
    return CostSum(sum(amounts), len(amounts), len(costs)) if amounts else None


def cost_text(cost: CostSum, table: PriceTable) -> str:
    """A sum in words, with the number of responses if it does not cover all."""
    amount = table.amount_text(cost.amount)
    if cost.priced == cost.responses:
        return amount
    return f"{amount} for {cost.priced:,} of {cost.responses:,} responses; unknown for the others"
