"""The bytes of a response, the facts that were read from them, and its request: events, lines or frames with offsets.

Which bytes gave the stop reason is marked in every one of them. The body is split by the framing of its wire format,
once, and only when a view of it is opened. Below the sheets: which facts there are, what each says, what a range of
bytes became.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from inspector.report.facts import ResponseFacts
from inspector.report.lines.diff import message_lines
from inspector.report.lines.slices import Hex, Range, Slice, Slices
from inspector.report.lines.spans import Line, Listed, Role, Sheet, Span, field, joined, paragraphs, safe
from inspector.report.times import time_phrases
from inspector.sessions.provenance import FactRead, Provenance
from inspector.sessions.recording import Exchange
from loop_core.values import At, ChatResponse, Evidence, ExchangePart, ToolCall
from loop_core.wire import wire as wire_format
from loop_core.wire.framing import SEPARATOR, SSE, Framing, TextSequence, Whole
from loop_core.wire.json_values import byte_span, path_of

MODES = ("events", "parsed", "raw", "hex", "request")
TOLD = 2
"""The line of the head that tells of the fact that is picked."""
CHUNK = 4_096
"""Bytes of a line; a longer one is broken, so that showing a part of it costs what the part costs."""
PRETTY = 512 * 1024
"""Bytes of a body whose JSON is parsed; what lies behind them is shown as it was sent."""


def wire(facts: ResponseFacts, mode: str) -> Sheet:
    """The sheet of one response in one of `MODES`."""
    exchange = facts.exchange
    if mode == "request":
        return request_sheet(facts)
    if not exchange.recorded:
        return Listed([*_head(facts, mode, ""), (Span("the body was not recorded", Role.WARN),)])
    marks = evidence_ranges(exchange, facts.evidence)
    tail: Line = (Span(f"{'':>9} ", Role.DIM), Span(f"end of body: {len(exchange.body):,} bytes", Role.RULE))
    if mode == "hex":
        return Hex(_head(facts, mode, ""), exchange.body, marks, tail, TOLD)
    slices, what = _FORMS[mode](exchange)
    return Slices(_head(facts, mode, what), exchange.body, slices, marks, tail, TOLD)


def _head(facts: ResponseFacts, mode: str, what: str) -> list[Line]:
    exchange = facts.exchange
    status = "" if exchange.response.http_status is None else f"HTTP {exchange.response.http_status}"
    parts = [(Span(facts.name, Role.WARN if facts.is_made else Role.STRONG),), (safe(exchange.api),)]
    parts += [(Span(each),) for each in (status, what) if each]
    modes: list[Span] = []
    for each in MODES:
        modes += [Span(f" {each} ", Role.HERE if each == mode else Role.DIM)]
    told = HINT if exchange.recorded and exchange.recorder is None else NONE
    lines: list[Line] = [joined(parts), (Span("shown as ", Role.DIM), *modes, Span(" v changes", Role.DIM)), told]
    times = time_phrases(exchange)
    if times:
        lines.append((Span("times ", Role.DIM), *joined([(safe(each),) for each in times])))
    for seen in facts.evidence:
        lines.append((Span("read ", Role.DIM), safe(seen.rule, Role.KEY), Span(f" at {place(seen.at)}", Role.DIM)))
    return [*lines, ()]


def place(at: At | None) -> str:
    """A place in words."""
    if at is None:
        return "no one place"
    where = at.part.value
    if at.start is not None and at.end is not None:
        where += f" {at.start:,}–{at.end:,}" if at.end > at.start else f" {at.start:,}"
    return f"{where} {at.pointer}" if at.pointer else where


# -- marks -----------------------------------------------------------------------------------------------------------


def evidence_ranges(exchange: Exchange, evidence: Sequence[Evidence]) -> list[Range]:
    """The bytes of the body that the stop reason was read from, the value itself where it can be found."""
    found: list[Range] = []
    for seen in evidence:
        at = seen.at
        if at is None or at.part is not ExchangePart.BODY or at.start is None:
            continue
        span = (at.start, at.start if at.end is None else at.end)
        found.append(value_range(exchange.body, span, at.pointer) or span)
    return found


def value_range(body: bytes, span: Range, pointer: str | None) -> Range | None:
    """The value that a pointer names inside a frame; None where it cannot be found there."""
    if not pointer or span[1] - span[0] > CHUNK * 16:
        return None
    start = body.find(b"{", span[0], span[1])
    return byte_span(body[start : span[1]], start, *path_of(pointer)) if start >= 0 else None


# -- slices ----------------------------------------------------------------------------------------------------------


def raw_lines(body: bytes, start: int = 0, last: int | None = None, label: str = "") -> list[Slice]:
    """The lines of a body, long ones broken between characters."""
    found: list[Slice] = []
    last = len(body) if last is None else last
    while start < last:
        newline = body.find(b"\n", start, last)
        end = last if newline < 0 else newline
        found.extend(pieces(body, start, end, 0, label))
        start, label = end + 1, ""
    return found


def pieces(body: bytes, start: int, end: int, indent: int = 0, label: str = "") -> list[Slice]:
    """A range as slices of at most `CHUNK` bytes that end between two characters."""
    if end - start <= CHUNK:
        return [Slice(start, end, indent, label)]
    found: list[Slice] = []
    while start < end:
        stop = min(end, start + CHUNK)
        while stop < end and stop > start + 1 and body[stop] & 0xC0 == 0x80:
            stop -= 1
        found.append(Slice(start, stop, indent, label))
        start, label = stop, ""
    return found


def events_of(exchange: Exchange) -> tuple[list[Slice], str]:
    """The frames of a stream, each in one piece, or the one JSON value, and what they are called."""
    if exchange.recorder is not None:
        return row_slices(exchange), f"{len(exchange.lines):,} rows of {exchange.recorder}"
    framing = framing_of(exchange)
    if framing is None:
        return [Slice(0, len(exchange.body))], "one JSON value"
    frames = [*framing.feed(exchange.body), *framing.flush()]
    found: list[Slice] = []
    ends = [chunk.end for chunk in exchange.chunks]
    for payload, name, start, end in frames:
        at = exchange.body.find(payload, start, end) if payload else -1
        low, high = (at, at + len(payload)) if at >= 0 else (start, end)
        when = _when(exchange, ends, end)
        told = f"message {exchange.messages[len(found)]:,}" if len(found) < len(exchange.messages) else _named(name)
        found.append(Slice(low, high, 0, " ".join(word for word in (when, told) if word)))
    return found, f"{len(frames):,} {_CALLED.get(type(framing).__name__, 'values')}"


_CALLED: Mapping[str, str] = {
    "SSE": "events", "NDJSON": "lines", "EventStream": "frames", "TextSequence": "frames of a WebSocket",
}
"""Framing -> what its pieces are called."""


def event_slices(exchange: Exchange) -> tuple[list[Slice], str]:
    """The frames of a stream, a line each; one JSON value is parsed."""
    events, what = events_of(exchange)
    if exchange.recorder is None and framing_of(exchange) is None:
        return _parsed(exchange.body, events, what)
    return [piece for each in events for piece in pieces(exchange.body, *each)], what


def parsed_slices(exchange: Exchange) -> tuple[list[Slice], str]:
    """The JSON of each frame as a tree."""
    return _parsed(exchange.body, *events_of(exchange))


def _parsed(body: bytes, events: Sequence[Slice], what: str) -> tuple[list[Slice], str]:
    """Events as trees, as far as `PRETTY` reaches; those behind it a line each."""
    found: list[Slice] = []
    whole = True
    for each in events:
        whole = whole and each.end <= PRETTY
        parse = whole and _JSON.match(body, each.start, each.end) is not None
        found += (pretty if parse else raw_lines)(body, each.start, each.end, each.label)
    return found, what if whole else f"{what}; behind {PRETTY:,} bytes as sent"


def _raw(exchange: Exchange) -> tuple[list[Slice], str]:
    return raw_lines(exchange.body), ""


def row_slices(exchange: Exchange) -> list[Slice]:
    """The rows of a transcript, each with its line in the file."""
    found: list[Slice] = []
    start = 0
    for number in exchange.lines:
        newline = exchange.body.find(b"\n", start)
        end = len(exchange.body) if newline < 0 else newline
        found.append(Slice(start, end, 0, f"line {number:,}"))
        start = end + 1
    return found


def _named(name: str | None) -> str:
    return safe(name).text if name else ""


def _when(exchange: Exchange, ends: Sequence[int], end: int) -> str:
    index = bisect_left(ends, end)
    return f"+{exchange.chunks[index].ms:,.0f}ms" if index < len(ends) else ""


def framing_of(exchange: Exchange) -> Framing | None:
    """The framing that splits this body; None where it is one JSON value."""
    decoder = wire_format(exchange.api).decoder
    head = exchange.body[:256].removeprefix(b"\xef\xbb\xbf").lstrip()
    if head[:1] in (b"{", b"["):
        framing = decoder.object_framing if head[:1] == b"{" else decoder.array_framing
        return None if framing is Whole else framing()
    if head.startswith(SEPARATOR):
        return TextSequence()
    if head.startswith((b"error:", b"data", b"event", b"id:", b"retry", b":")):
        return SSE()
    return decoder.binary_framing() if decoder.binary_framing is not None and exchange.response.streaming else None


_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"?|[{}\[\],]|[^"{}\[\],\s]+', re.DOTALL)


_JSON = re.compile(rb"\s*(?:\{|\[(?!DONE))")


def pretty(body: bytes, first: int = 0, last: int | None = None, label: str = "") -> list[Slice]:
    """A JSON text with line breaks of ours between its tokens; no byte of a token is changed, and none is left out."""
    found: list[Slice] = []
    depth, start, end = 0, -1, -1
    for token in _TOKEN.finditer(body, first, len(body) if last is None else last):
        mark = token.group()
        if mark in (b"}", b"]"):
            empty = start >= 0 and body[start:end].rstrip()[-1:] in (b"{", b"[")
            if start >= 0 and not empty:
                found.extend(pieces(body, start, end, depth * 2))
                start = -1
            depth = max(0, depth - 1)
            start, end = (start if start >= 0 else token.start()), token.end()
            continue
        if start >= 0 and body[start:end][-1:] in (b"{", b"["):
            found.extend(pieces(body, start, end, (depth - 1) * 2))
            start = -1
        start, end = (start if start >= 0 else token.start()), token.end()
        if mark in (b"{", b"["):
            depth += 1
        elif mark == b",":
            found.extend(pieces(body, start, end, depth * 2))
            start = -1
    if start >= 0:
        found.extend(pieces(body, start, end, depth * 2))
    return [found[0]._replace(label=label), *found[1:]] if found else [Slice(first, first, 0, label)]


_FORMS: Mapping[str, Callable[[Exchange], tuple[list[Slice], str]]] = {
    "events": event_slices, "parsed": parsed_slices, "raw": _raw,
}
"""Form -> the lines of a body, and what they are called."""


# -- the request -----------------------------------------------------------------------------------------------------


def _unrecorded(facts: ResponseFacts) -> list[Line]:
    """A request of which there is no body: what our machine sends, where an answer is simulated."""
    request = facts.exchange.request
    if facts.recut is None or request is None:
        return [(Span("the request body was not recorded", Role.WARN),)]
    cap = "no max_tokens" if request.max_tokens is None else f"max_tokens {request.max_tokens:,}"
    made = f"SIMULATED: what our machine sends, {cap}, {len(request.messages):,} messages"
    return [(Span(made, Role.WARN),), *(line for each in request.messages for line in message_lines(each))]


def request_sheet(facts: ResponseFacts) -> Listed:
    """What was asked: the address, the headers, and the body as recorded."""
    exchange = facts.exchange
    lines: list[Line] = [
        (Span("request ", Role.STRONG), safe(exchange.url or "no URL was recorded")),
        (Span("shown as ", Role.DIM), *(Span(f" {m} ", Role.HERE if m == "request" else Role.DIM) for m in MODES),
         Span(" v changes", Role.DIM)), (),
    ]
    for title, headers in (("request headers", exchange.request_headers), ("response headers", exchange.headers)):
        if headers:
            lines.append((Span(title, Role.TITLE),))
            lines += [field(safe(name).text + " ", safe(value)) for name, value in headers]
            lines.append(())
    if exchange.request_json is None:
        lines += _unrecorded(facts)
        return Listed(lines)
    text = json.dumps(exchange.request_json, ensure_ascii=False, indent=2)
    lines.append((Span("request body", Role.TITLE),))
    return Listed([*lines, *paragraphs(text)], copied=lambda: text)


# -- Facts and the bytes they were read from -------------------------------------------------------------------------


VALUE_SHOWN = 40
"""Characters of a fact's value that are shown."""
HINT: Line = (
    Span(". ", Role.KEY), Span("next fact  ", Role.DIM), Span(", ", Role.KEY), Span("fact before: ", Role.DIM),
    Span("the bytes that each was read from", Role.DIM),
)
NONE: Line = (Span("no fact was read from these bytes", Role.DIM),)


class Picked(NamedTuple):
    """A fact that is looked at, and which of the readings that made it."""

    fact: str
    reading: int = 0


def next_fact(found: Provenance, picked: Picked | None, by: int) -> Picked | None:
    """The next or previous fact, round the end; None where there is none."""
    facts = found.facts
    if not facts:
        return None
    if picked is None or picked.fact not in facts:
        return Picked(facts[0 if by > 0 else -1])
    return Picked(facts[(facts.index(picked.fact) + by) % len(facts)])


def next_reading(found: Provenance, picked: Picked, by: int) -> Picked:
    """The next or previous reading of the same fact, round the end."""
    return Picked(picked.fact, (picked.reading + by) % len(found.by_fact[picked.fact]))


def readings_in(found: Provenance, start: int, end: int) -> list[FactRead]:
    """What the bytes from `start` to `end` became, in the order of the bytes."""
    last = bisect_left(found.by_start, end, key=lambda read: read.start)
    inside: list[FactRead] = []
    index = last - 1
    while index >= 0 and found.reach[index] > start:
        if found.by_start[index].end > start:
            inside.append(found.by_start[index])
        index -= 1
    return inside[::-1]


def picked_of(found: Provenance, read: FactRead) -> Picked:
    """A reading as what is looked at."""
    return Picked(read.fact, found.by_fact[read.fact].index(read))


def next_of(found: Provenance, reads: Sequence[FactRead], picked: Picked | None) -> Picked:
    """The reading of these after the one that is looked at, round the end; the first where it is none of them."""
    every = [picked_of(found, read) for read in reads]
    return every[(every.index(picked) + 1) % len(every)] if picked in every else every[0]


# -- in lines --------------------------------------------------------------------------------------------------------


def fact_line(found: Provenance, picked: Picked, response: ChatResponse) -> Line:
    """The fact that is looked at: its value, and where the reading stands."""
    facts, reads = found.facts, found.by_fact[picked.fact]
    read = reads[picked.reading]
    number = f"{picked.reading + 1:,} of {len(reads):,} slice{'' if len(reads) == 1 else 's'}"
    again = [(Span("said again", Role.WARN),)] if read.again else []
    value = value_of(response, picked.fact)
    shown = () if value is None else (Span(" = ", Role.DIM), safe(value, Role.STRONG, VALUE_SHOWN))
    return joined([
        (Span(f"fact {facts.index(picked.fact) + 1} of {len(facts)}: ", Role.DIM), safe(picked.fact, Role.KEY), *shown),
        (Span(f"bytes {read.start:,}–{read.end:,}"),), (Span(number),), *again,
    ])


def range_note(reads: Sequence[FactRead], start: int, end: int) -> str:
    """What a range of bytes became, in one short line."""
    names = list(dict.fromkeys(read.fact for read in reads))
    where = f"bytes {start:,}–{end:,}" if end - start > 1 else f"byte {start:,}"
    return f"{where} became {', '.join(names)}" if names else f"{where} became no fact"


_CALL = re.compile(r"(tool_calls|server_calls)\[(\d+)\]\.(id|name|arguments)")
_SAYS: Mapping[str, Callable[[ChatResponse], str | None]] = {
    "stop_reason": lambda response: response.raw_stop_reason,
    "text": lambda response: response.text,
    "reasoning": lambda response: response.reasoning_content,
    "refusal": lambda response: response.refusal,
    "id": lambda response: response.id,
    "model": lambda response: response.model,
    "error": lambda response: response.error.message if response.error else None,
}


def value_of(response: ChatResponse, fact: str) -> str | None:
    """What a fact says, by its name."""
    say = _SAYS.get(fact)
    if say is not None:
        return say(response)
    owner, _, name = fact.partition(".")
    if owner == "usage":
        count = getattr(response.usage, name, None)
        return None if count is None else f"{count:,}"
    match = _CALL.fullmatch(fact)
    if match is None:
        return None
    calls: Sequence[ToolCall] = response.tool_calls if match[1] == "tool_calls" else response.server_calls
    value = getattr(calls[int(match[2])], match[3]) if int(match[2]) < len(calls) else None
    return value if isinstance(value, str) else None
