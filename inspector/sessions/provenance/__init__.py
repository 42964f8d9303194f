"""Finds the bytes of each fact of a response, by a second decoding that keeps the frames. It is done only for displayed
responses.

The format's table states which values may be a fact, and the response has each fact's value. The pieces that form
exactly this value are its bytes. Places are byte ranges of the decoded body; that of a string includes its quotes.

    body -> the decoder's frames -> values that rows name -> pieces that make the facts of the response -> Provenance

`inspector.sessions.evidence_places` adds places to the judge's evidence.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import accumulate
from typing import Any, NamedTuple

from inspector.sessions.provenance.pieces import FactText, Frame, Supply, TextPiece, frames
from inspector.sessions.recording import Exchange
from loop_core.errors import DecodeError
from loop_core.values import At, CallKind, ChatResponse, ExchangePart, ReasoningPart, TextPart, ToolCall
from loop_core.wire import wire
from loop_core.wire.json_values import byte_span, path_of
from loop_core.wire.reads import FactValue

_COUNTS = ("input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens", "cache_write_tokens")


class FactRead(NamedTuple):
    """Bytes `start` to `end` of the body became `fact`, or a piece of it."""

    fact: str
    start: int
    end: int
    pointer: str
    """The JSON pointer of the value in its frame."""
    again: bool = False
    """Whether the piece repeats other bytes of the fact; the pieces without repetitions form it in order."""


class Provenance(NamedTuple):
    """The facts of one body with their bytes, by fact and by byte; `provenance` computes it."""

    by_fact: Mapping[str, tuple[FactRead, ...]]
    """Name of a fact -> its pieces in order, then its repetitions."""
    by_start: tuple[FactRead, ...]
    reach: tuple[int, ...]
    """For each element of `by_start`, the largest end of the elements up to it."""

    @property
    def facts(self) -> tuple[str, ...]:
        """The facts that have bytes: `stop_reason`, `usage.output_tokens`, `text`, `tool_calls[0].arguments`, …"""
        return tuple(self.by_fact)

    def of(self, fact: str) -> tuple[FactRead, ...]:
        """The bytes of a fact, in the order in which they form it, without repetitions."""
        return tuple(read for read in self.by_fact.get(fact, ()) if not read.again)

    def at(self, offset: int) -> tuple[FactRead, ...]:
        """The facts of the byte at `offset`, the shortest piece first; empty if there are none."""
        found: list[FactRead] = []
        index = bisect_right(self.by_start, offset, key=lambda read: read.start) - 1
        while index >= 0 and self.reach[index] > offset:
            if self.by_start[index].end > offset:
                found.append(self.by_start[index])
            index -= 1
        return tuple(sorted(found, key=lambda read: (read.end - read.start, read.again)))


def provenance(api: str, body: bytes, response: ChatResponse | None = None, **options: Any) -> Provenance:
    """Finds the bytes of `body` for each fact of `response`, by default the result of `decode` with `options`. Raises
    `CallerError` if there is no such API, and `DecodeError` if the bytes are not a body of it."""
    if response is not None:
        options.setdefault("http_status", response.http_status)
    read, decoded = frames(api, body, **options)
    response, rows = response or decoded, wire(api).reads
    values = [(frame, found) for frame in read for found in frame.values(rows)]
    by_fact: dict[str, dict[FactRead, None]] = defaultdict(dict)
    for reads in (_stop(response, read, values), _single(response, values), _counts(response, values),
                  _texts(response, values)):
        for each in reads:
            by_fact[each.fact].setdefault(each)
    by_start = sorted((each for reads in by_fact.values() for each in reads), key=lambda each: each.start)
    return Provenance(
        {fact: tuple(sorted(reads, key=lambda each: each.again)) for fact, reads in by_fact.items()},
        tuple(by_start),
        tuple(accumulate((each.end for each in by_start), max)),
    )


_Values = Sequence[tuple[Frame, FactValue]]
"""The values in a body that match rows of the format's table, each with its frame."""


def _read(fact: str, found: FactValue, again: bool = False) -> FactRead:
    return FactRead(fact, found.start, found.end, found.pointer, again)


# -- facts of one value ----------------------------------------------------------------------------------------------


def _stop(response: ChatResponse, read: Sequence[Frame], values: _Values) -> Iterator[FactRead]:
    """The places in the decoder's own evidence, and the values that match rows in the same frame."""
    starts = [frame.start for frame in read]
    error_read = any(found.row.fact == "error" for _, found in values)
    for evidence in response.stop_reason.evidence:
        at = evidence.at
        if at is None or at.part is not ExchangePart.BODY or at.start is None or at.end is None or at.end <= at.start:
            continue
        frame = read[max(0, bisect_right(starts, at.start) - 1)] if read else None
        yield from (_read("stop_reason", found) for owner, found in values
                    if owner is frame and found.row.fact == "stop_reason")
        span = None
        if frame is not None and frame.pieces and at.end <= frame.end:
            span = byte_span(frame.payload, 0, *path_of(at.pointer or ""))
        start, end = (at.start, at.end) if frame is None or span is None else frame.place(*span)
        yield FactRead("stop_reason", start, end, at.pointer or "")
        if evidence.rule.startswith("error.") and not error_read:
            yield FactRead("error", start, end, at.pointer or "")


def _single(response: ChatResponse, values: _Values) -> Iterator[FactRead]:
    """The id, the model, native words and the error: the first value of each, and its repetitions."""
    words = [(f"native.{name}", text) for name, text in response.native.items()]
    for fact, text in (("id", response.id), ("model", response.model), *words):
        same = (found for _, found in values if found.row.fact == fact and found.text == text)
        yield from (_read(fact, found, again=number > 0) for number, found in enumerate(same))
    if response.error is not None:
        yield from (_read("error", found) for _, found in values if found.row.fact == "error")


def _counts(response: ChatResponse, values: _Values) -> Iterator[FactRead]:
    """Token counts of the last frame with the number, as one value or as several that add up."""
    for name in _COUNTS:
        fact, count = f"usage.{name}", getattr(response.usage, name, None)
        by_frame: dict[int, list[tuple[int, FactValue]]] = defaultdict(list)
        for frame, found in values:
            if found.row.fact == fact and (number := _number(found.text)) is not None:
                by_frame[frame.start].append((number, found))
        again = False
        # From the end, because counts of a stream are running totals, of which the decoder kept the last.
        for numbers in reversed(by_frame.values()):
            exact = [found for number, found in numbers if number == count][:1]
            if not exact and not again and sum(number for number, _ in numbers) == count:
                exact = [found for _, found in numbers]
            yield from (_read(fact, found, again) for found in exact)
            again = again or bool(exact)


def _number(text: str) -> int | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if number.is_integer() else None


# -- facts that may come in pieces -----------------------------------------------------------------------------------


def _texts(response: ChatResponse, values: _Values) -> Iterator[FactRead]:
    supplies: dict[str, Supply] = defaultdict(Supply)
    kinds = _texts_by_kind(response)
    for _, found in values:
        row = found.row
        if row.fact in kinds or row.fact in ("call", "call.value"):
            supplies[row.fact].add(TextPiece(found.text, found.string, found.start, found.end, found.pointer,
                                         (row.group, *found.key)))
    for kind, wanted in kinds.items():
        text_pieces = [(each, supplies[kind].take(each)) for each in wanted]
        for each, pieces in text_pieces:
            yield from (FactRead(each.fact, piece.start, piece.end, piece.pointer) for piece in pieces)
        for fact, piece in supplies[kind].repetitions(text_pieces):
            yield FactRead(fact, piece.start, piece.end, piece.pointer, again=True)
        if kind == "call.arguments" and "call.value" in supplies:
            yield from _put_together({each.fact for each, pieces in text_pieces if not pieces}, response, supplies)


def _put_together(facts: Set[str], response: ChatResponse, supplies: Mapping[str, Supply]) -> Iterator[FactRead]:
    """Arguments that the decoder builds from single values: all values between the beginnings of two calls."""
    places: dict[str, list[int]] = defaultdict(list)
    for piece in supplies["call"]:
        places[piece.pointer].append(piece.start)
    begun: list[tuple[int, str]] = []
    for fact, call in _calls(response):
        at = call.at or At()
        starts = places[at.pointer or ""]
        begun += [(start, f"{fact}.arguments") for start in starts[bisect_left(starts, at.start or 0) :][:1]]
    begun.sort()
    for piece in supplies["call.value"]:
        index = bisect_right(begun, (piece.start, "")) - 1
        if piece.text and index >= 0 and begun[index][1] in facts:
            yield FactRead(begun[index][1], piece.start, piece.end, piece.pointer)


def _calls(response: ChatResponse) -> Iterator[tuple[str, ToolCall]]:
    """Each call with its fact name: `tool_calls[0]` as in `ChatResponse.tool_calls`, `server_calls[0]`."""
    counts = {"tool_calls": 0, "server_calls": 0}
    for part in response.parts:
        if type(part) is ToolCall:
            owner = "server_calls" if part.kind is CallKind.SERVER else "tool_calls"
            yield f"{owner}[{counts[owner]}]", part
            counts[owner] += 1


def _texts_by_kind(response: ChatResponse) -> dict[str, list[FactText]]:
    """Kind of fact -> the texts of the response, in the order of its parts."""
    wanted: dict[str, list[FactText]] = defaultdict(list)
    joint = wire(response.api).joints.get("reasoning", "")
    for part in response.parts:
        if type(part) is TextPart and part.text:
            wanted["text"].append(FactText("text", part.text))
        elif type(part) is ReasoningPart and part.text:
            wanted["reasoning"].append(FactText("reasoning", part.text, joint=joint))
    if response.refusal:
        wanted["refusal"].append(FactText("refusal", response.refusal))
    for fact, call in _calls(response):
        after = (call.at.start if call.at is not None else None) or 0
        for kind, text in (("id", call.id), ("name", call.name or None), ("arguments", call.arguments)):
            if text is not None:
                wanted[f"call.{kind}"].append(FactText(f"{fact}.{kind}", text, after, cut=kind == "arguments"))
    return wanted


# -- of an exchange ------------------------------------------------------------------------------------------------


def readings(exchange: Exchange) -> Provenance | None:
    """The provenance of an exchange's body; None if it has no bytes of a provider, or cannot be decoded."""
    if not exchange.recorded or exchange.recorder is not None:
        return None
    try:
        return provenance(exchange.api, exchange.body, exchange.response)
    except DecodeError:
        return None
