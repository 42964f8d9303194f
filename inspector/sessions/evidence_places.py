"""Finds the byte ranges of evidence in a response, including evidence of the judge's rules.

The judge has values, not bytes. If one of its rules uses a value of the response (a router's word, a token count), the
body is decoded a second time with offsets (`inspector.sessions.provenance`), only for the responses concerned.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from inspector.sessions.reasons import ABSENT
from inspector.sessions.recording import Exchange
from inspector.sessions.stored_rows import FileChangedError
from loop_core.values import At, Evidence, ExchangePart, FactQuote, Finding
from loop_core.wire import wire
from loop_core.wire.json_values import byte_span, path_of
from loop_core.wire.servers import GENERIC

if TYPE_CHECKING:
    from inspector.sessions.provenance import Provenance

NATIVE = "native.*"
"""The fact name for a router's own words (`Profile.native_fields`)."""
IMPOSSIBLE = "usage.impossible"
"""The rule about a token count that is too large for the answer."""
FACTS: Mapping[str, tuple[str, ...]] = {
    "judge.native_word": (NATIVE,),
    "judge.usage_at_cap": ("usage.output_tokens",),
    IMPOSSIBLE: ("usage.output_tokens",),
    "judge.context_full": ("native.truncated", "usage.input_tokens"),
    "usage.reasoning": ("usage.reasoning_tokens",),
}
"""Rule of the judge -> names, in provenance, of the facts that it uses. Wire formats list those of their own rules."""


@lru_cache(maxsize=8)  # several successive rules may concern one response
def _readings(exchange: Exchange) -> Provenance | None:
    from inspector.sessions.provenance import readings  # rarely needed: most evidence already has its place

    return readings(exchange)


def evidence(exchange: Exchange, evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """The same evidence, with the byte range of each rule's value if it is known."""
    return tuple([each._replace(at=_own_place(exchange, each)) for each in evidence])


def finding(exchange: Exchange, finding: Finding) -> Finding:
    """The same finding, with the byte range of its value if it is known."""
    at = _own_place(exchange, finding)
    return finding if at is finding.at else finding._replace(at=at)


def _own_place(exchange: Exchange, each: Evidence | Finding) -> At | None:
    if each.rule == ABSENT:
        return each.at  # most rows of Claude Code have no word: finding each `null` takes a quarter of the reading time
    return _place(exchange, each.rule, each.quote) if each.at is None else value_place(exchange, each.at)


def value_place(exchange: Exchange, at: At) -> At:
    """The place of the value that the pointer names within its frame. The place stays unchanged if its frame has no
    such value or is too large, or if it is several frames, such as all those of a call."""
    if not (at.part is ExchangePart.BODY and at.pointer and at.start is not None and at.end is not None
            and at.end - at.start <= _SEARCHED_FRAME and exchange.recorded):
        return at
    try:
        frame = exchange.body[at.start : at.end]
    except FileChangedError:
        return at
    opening = _OBJECT.search(frame)
    if opening is None:
        return at
    first = frame[opening.start() :]
    whole = byte_span(first, 0)
    alone = whole is None or _OBJECT.search(first, whole[1]) is None
    span = byte_span(first, at.start + opening.start(), *path_of(at.pointer)) if alone else None
    return at if span is None else at._replace(start=span[0], end=span[1])


_OBJECT = re.compile(rb'\{\s*["}]')
"""Matches the beginning of a JSON object. A brace alone may be a byte of a binary frame's length or checksum."""
_SEARCHED_FRAME = 1 << 16
"""The largest number of bytes of a frame in which a value is looked up: all are parsed while the user waits."""


def _place(exchange: Exchange, rule: str, quote: FactQuote | None) -> At | None:
    if quote is not None:
        return _place_of_quote(exchange, quote)
    facts = FACTS.get(rule) or wire(exchange.api).rules.get(rule, ())
    if NATIVE in facts and exchange.recorded and exchange.recorder is None:
        return _word(exchange)
    return _place_of_fact(exchange, facts)


def _place_of_fact(exchange: Exchange, facts: Iterable[str]) -> At | None:
    """The place of the first of these facts that the body has."""
    read = _readings(exchange) if facts else None
    for fact in facts:
        pieces = read.of(fact) if read is not None else ()
        if pieces:
            return At(ExchangePart.BODY, pieces[0].start, pieces[-1].end, pieces[0].pointer)
    return None


def _word(exchange: Exchange) -> At | None:
    """The place of a router's own word: the last member with that name and value. The member is searched as text,
    because every answer of a router has such a word, and a second decoding would double the cost. Inside a JSON string
    quotes are escaped, so an answer's text cannot match. The words of single servers may be beside the choices."""
    for name in exchange.profile.native_fields:
        native_word = exchange.response.native.get(name)
        if native_word and name not in GENERIC.native_fields:
            return _place_of_fact(exchange, (f"native.{name}",))
        # The last one, because a stream repeats the member in each event, null until the end.
        member = _MEMBER % re.escape(name.encode())
        found = [match for match in re.finditer(member, exchange.body)
                 if native_word and _value(match[1]) == native_word]
        if found:
            # Routers put their own word beside the stop word, or into an object beside it (LiteLLM).
            places = (rule.at for rule in exchange.response.stop_reason.evidence if rule.at is not None)
            word = next((at.pointer for at in places), None)
            start = found[-1].start()
            inside = _OPEN_OBJECT.search(exchange.body, max(0, start - _SEARCHED_BYTES), start)
            holder = "" if inside is None else f"/{inside[1].decode()}"
            beside = None if word is None else f"{word.rpartition('/')[0]}{holder}/{name}"
            return At(ExchangePart.BODY, found[-1].start(1), found[-1].end(1), beside)
    return None


_MEMBER = rb'(?<!\\)"%s"\s*:\s*("(?:[^"\\]|\\.)*"|[^\s,}\]]+)'
_SEARCHED_BYTES = 2_000
_OPEN_OBJECT = re.compile(rb'(?<!\\)"(\w+)"\s*:\s*\{[^{}]*\Z')
"""Matches the name of the innermost object that is still open at the end of a text."""


def _value(raw: bytes) -> str | None:
    try:
        value = json.loads(raw)
    except ValueError:
        return None
    return value if isinstance(value, str) else json.dumps(value)


def _place_of_quote(exchange: Exchange, quote: FactQuote) -> At | None:
    read, at = _readings(exchange), 0
    found: list[tuple[int, int, str]] = []
    for piece in read.of(quote.fact) if read is not None else ():
        places = spots(exchange.body[piece.start : piece.end].decode("utf-8", "replace"))
        first, last = max(quote.start - at, 0), min(quote.end - at, len(places) - 1)
        if first < last:
            found.append((piece.start + places[first], piece.start + places[last], piece.pointer))
        at += len(places) - 1
    return At(ExchangePart.BODY, found[0][0], found[-1][1], found[0][2]) if found else None


_CHARACTER = r"(?s)\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|."


def spots(literal: str) -> list[int]:
    """The byte offset of each character of a JSON string in its literal, and that of the end of the last."""
    inner = literal[1:-1]
    found, at = [1], 1
    for character in re.findall(_CHARACTER, inner):
        at += len(character.encode("utf-8", "replace"))
        found.append(at)
    return found
