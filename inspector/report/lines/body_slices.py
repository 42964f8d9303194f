"""Splits a body into slices, one per line of a view: its lines, its labelled events, or its JSON as a tree; and a JSON
text into pieces with roles."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import pairwise
from json import JSONDecoder
from typing import NamedTuple

from inspector.report.lines.spans import (
    LONGEST,
    Line,
    LineSheet,
    Measure,
    Span,
    Tone,
    cells,
    count_of,
    inert,
    paragraphs,
    safe,
    wrap_line,
)
from inspector.report.times_and_costs import duration_text
from inspector.sessions.reasons import is_unreadable
from inspector.sessions.recording import Exchange
from loop_core.wire import wire as wire_format
from loop_core.wire.framing import SEPARATOR, SSE, Framing, TextSequence, Whole
from loop_core.wire.json_values import recorded_events

CHUNK = 4_096
"""The most bytes of a line; longer ones are broken, so that showing a part costs only that part."""


class Slice(NamedTuple):
    """Bytes `start` to `end` of the body, on one line."""

    start: int
    end: int
    indent: int = 0
    label: str = ""


PRETTY = 512 * 1024
"""The number of bytes at the beginning whose JSON is parsed; later bytes are shown as sent."""


def raw_lines(body: bytes, start: int = 0, last: int | None = None, label: str = "") -> list[Slice]:
    """The lines of a body; long ones are broken between characters."""
    found: list[Slice] = []
    last = len(body) if last is None else last
    while start < last:
        newline = body.find(b"\n", start, last)
        end = last if newline < 0 else newline
        found.extend(pieces(body, start, end, 0, label))
        start, label = end + 1, ""
    return found


def pieces(body: bytes, start: int, end: int, indent: int = 0, label: str = "") -> list[Slice]:
    """A range of bytes as slices of at most `CHUNK` bytes, broken between characters."""
    if end - start <= CHUNK:
        return [Slice(start, end, indent, label)]
    found: list[Slice] = []
    while start < end:
        stop = min(end, start + CHUNK)
        # A byte 10xxxxxx continues a character (RFC 3629), so a line must not begin with one.
        while stop < end and stop > start + 1 and body[stop] & 0xC0 == 0x80:
            stop -= 1
        found.append(Slice(start, stop, indent, label))
        start, label = stop, ""
    return found


def events_of(exchange: Exchange) -> tuple[list[Slice], str]:
    """The frames of a stream, or the only JSON value, each with its label; then the name of the pieces."""
    if exchange.recorder is not None:
        rows = row_slices(exchange) if exchange.lines else record_slices(exchange.body)
        return rows, f"{count_of(len(rows), 'row')} of {exchange.recorder}"
    framing = framing_of(exchange)
    if framing is not None:
        frames = [*framing.feed(exchange.body), *framing.flush()]
    elif not (exchange.response.streaming and (frames := recorded_events(exchange.body))):
        what = "not an answer of this format" if is_unreadable(exchange.response) else "one JSON value"
        return [Slice(0, len(exchange.body))], what
    found: list[Slice] = []
    ends = [chunk.end for chunk in exchange.chunks]
    before = 0
    for payload, name, start, end in frames:
        at = exchange.body.find(payload, start, end) if payload else -1
        low, high = (at, at + len(payload)) if at >= 0 else (start, end)
        chunk = bisect_left(ends, end)
        when, before = _when(exchange, chunk, before), chunk
        name_shown = safe(name).text if name else ""
        if len(found) < len(exchange.messages):
            name_shown = f"message {exchange.messages[len(found)]:,}"
        found.append(Slice(low, high, 0, " ".join(word for word in (when, name_shown) if word)))
    return found, f"{len(frames):,} {_CALLED.get(type(framing).__name__, 'values')}"


_CALLED: Mapping[str, str] = {
    "SSE": "events", "NDJSON": "lines", "EventStream": "frames", "TextSequence": "frames of a WebSocket",
}


def event_slices(exchange: Exchange) -> tuple[list[Slice], str]:
    """The frames of a stream, one per line; a single JSON value is shown parsed."""
    events, what = events_of(exchange)
    if exchange.recorder is None and len(events) == 1 and framing_of(exchange) is None:
        return _event_slices(exchange.body, events, what)
    return [piece for each in events for piece in raw_lines(exchange.body, each.start, each.end, each.label)], what


def parsed_slices(exchange: Exchange) -> tuple[list[Slice], str]:
    """The JSON of each frame as a tree."""
    return _event_slices(exchange.body, *events_of(exchange))


def _event_slices(body: bytes, events: Sequence[Slice], what: str) -> tuple[list[Slice], str]:
    """Events as trees in the first `PRETTY` bytes; later events have one line each."""
    found: list[Slice] = []
    whole = True
    for each in events:
        whole = whole and each.end <= PRETTY
        parse = whole and _JSON.match(body, each.start, each.end) is not None
        found += (pretty if parse else raw_lines)(body, each.start, each.end, each.label)
    return found, what if whole else f"{what}; after {PRETTY:,} bytes as sent"


def row_slices(exchange: Exchange) -> list[Slice]:
    """The rows of a transcript, each with its line number in the file."""
    found: list[Slice] = []
    start = 0
    for number in exchange.lines:
        newline = exchange.body.find(b"\n", start)
        end = len(exchange.body) if newline < 0 else newline
        found.append(Slice(start, end, 0, f"line {number:,}"))
        start = end + 1
    return found


def record_slices(body: bytes) -> list[Slice]:
    """The records of a database or a list, whose JSON may take several lines."""
    text = body.decode("latin-1")  # one character per byte, so the parser's positions are byte offsets
    found: list[Slice] = []
    start = 0
    while start < len(body):
        try:
            end = _RECORDS.raw_decode(text, start)[1]
        except (ValueError, RecursionError):  # cut, or not JSON: the rest is one piece
            end = len(body)
        found.append(Slice(start, end))
        start = end + 1
    if len(found) == 1:
        return found
    return [one._replace(label=f"row {number:,} of {len(found):,}") for number, one in enumerate(found, start=1)]


_RECORDS = JSONDecoder(strict=False)


LONG_WAIT = 1_000
"""The number of milliseconds without a byte from which a wait is shown, at the event that ended the wait."""


def _when(exchange: Exchange, chunk: int, before: int) -> str:
    """The time of the chunk that ends an event; `before` is the index of the chunk that ended the previous event."""
    if chunk >= len(exchange.chunks):
        return ""
    ms = exchange.chunks[chunk].ms
    wait = max((after.ms - one.ms for one, after in pairwise(exchange.chunks[before : chunk + 1])), default=0)
    return f"+{ms:,.0f}ms" + (f" after {duration_text(wait)}" if wait >= LONG_WAIT else "")


def framing_of(exchange: Exchange) -> Framing | None:
    """The framing of this body; None if it is one JSON value."""
    decoder, head = wire_format(exchange.api).decoder, _beginning(exchange)
    if head[:1] in (b"{", b"["):
        framing = decoder.object_framing if head[:1] == b"{" else decoder.array_framing
        return None if framing is Whole else framing()
    # SEPARATOR begins each record of a JSON text sequence (RFC 7464).
    if head.startswith(SEPARATOR):
        return TextSequence()
    if head.startswith((b"error:", b"data", b"event", b"id:", b"retry", b":")):
        return SSE()
    return decoder.binary_framing() if decoder.binary_framing is not None and exchange.response.streaming else None


def _beginning(exchange: Exchange) -> bytes:
    # A stream of server-sent events may begin with a byte order mark, which readers remove
    # (https://html.spec.whatwg.org/multipage/server-sent-events.html).
    return exchange.body[:256].removeprefix(b"\xef\xbb\xbf").lstrip()


def holds_json(exchange: Exchange) -> bool:
    """Whether the body is JSON or events of JSON, judging by its beginning."""
    return _beginning(exchange)[:1] in (b"{", b"[") or exchange.recorder is not None or framing_of(exchange) is not None


# Tokens are used instead of values, so that a cut body, which is no valid JSON, gets line breaks too.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"?|[{}\[\],]|[^"{}\[\],\s]+', re.DOTALL)


_JSON = re.compile(rb"\s*(?:\{|\[(?!DONE))")


def pretty(body: bytes, first: int = 0, last: int | None = None, label: str = "") -> list[Slice]:
    """A JSON text with line breaks between its tokens; the tokens' bytes are unchanged and complete."""
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


BODY_FORMS: Mapping[str, Callable[[Exchange], tuple[list[Slice], str]]] = {
    "events": event_slices, "parsed": parsed_slices, "raw": lambda exchange: (raw_lines(exchange.body), ""),
}
"""Form of the view -> the function that gives the lines of a body and their name."""


# -- The roles of the pieces of a JSON text, for colouring -----------------------------------------------------------
# Nothing is parsed, so a broken or cut text gets roles too. `InString` says whether a piece begins inside a string.
# Bytes are passed as Latin-1, one character per byte, so that positions in the text are byte offsets.


class InString(IntEnum):
    """Whether the first character of a piece is inside a string."""

    NO = 0
    YES = 1
    ESCAPED = 2
    """The first character is inside a string and follows a backslash."""


class JsonPiece(NamedTuple):
    """Characters `start` to `end`, and their role."""

    start: int
    end: int
    role: Tone


_REST = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*(?:"|(\\?)\Z)', re.DOTALL)
"""Matches the rest of a string up to its quote or the piece's end; a backslash there is a group of its own."""
_STRING = re.compile(f'"{_REST.pattern}', re.DOTALL)
_PIECE = re.compile(
    rf'(?P<string>{_STRING.pattern})'
    r"|(?P<number>(?<![\w.])-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.])|\b(?:true|false|null)\b)"
    r"|(?P<mark>[{}\[\],:]+)", re.DOTALL)
_NAMED = re.compile(r"\s*:")
ROLES = {"string": Tone.STRING, "number": Tone.NUMBER, "mark": Tone.DIM}
"""Group of `_PIECE` -> the role of its text. A string before a colon has the role of a name instead."""


def json_pieces(text: str, inside: InString, following: str = "") -> Iterator[JsonPiece]:
    """The pieces of a text that have a role. The text `following` it shows whether a string at its end is a name."""
    begin, whole = 0, text + following
    if inside is not InString.NO:
        rest = _REST.match(text, 1 if inside is InString.ESCAPED else 0)
        begin = len(text) if rest is None else rest.end()
        yield JsonPiece(0, begin, Tone.STRING)
    for token in _PIECE.finditer(text, begin):
        start, end = token.span()
        role = ROLES[token.lastgroup or "mark"]
        if role is Tone.STRING and _NAMED.match(whole, end):
            role = Tone.KEY
        yield JsonPiece(start, end, role)


def after(text: str, inside: InString = InString.NO) -> InString:
    """Whether the character after a piece is inside a string."""
    if not text:
        return inside
    at = 0
    if inside is not InString.NO:
        rest = _REST.match(text, 1 if inside is InString.ESCAPED else 0)
        if rest is None or rest[1] is not None:
            return InString.ESCAPED if rest is not None and rest[1] else InString.YES
        at = rest.end()
    strings = deque(_STRING.finditer(text, at), maxlen=1)
    if not strings or strings[0][1] is None:
        return InString.NO
    return InString.ESCAPED if strings[0][1] else InString.YES


# -- a JSON text made by the program, as lines -----------------------------------------------------------------------


class JsonLines(LineSheet):
    """A sheet of lines and then a JSON text, with a line break after every value; roles are assigned when shown."""

    def __init__(self, head: Sequence[Line], text: str) -> None:
        super().__init__(head, copy_text=lambda: text)
        self._head = head
        self._lines: list[str] = []
        self._inside: dict[int, InString] = {}
        for line in inert(text).split("\n"):
            if len(line) <= LONGEST:
                self._lines.append(line)
            else:
                self._break(line)

    def _break(self, line: str) -> None:
        """Splits a long line into parts, and stores which parts begin inside a string."""
        inside = InString.NO
        for (part,) in paragraphs(line):
            self._inside[len(self._lines)] = inside
            self._lines.append(part.text)
            inside = after(part.text, inside)

    def __len__(self) -> int:
        return len(self._head) + len(self._lines)

    def line(self, index: int) -> Line:
        """One line, without roles."""
        if index < len(self._head):
            return self._head[index]
        indent, value = self._split_indent(index - len(self._head))
        return indent, Span(value)

    def unbroken(self, index: int) -> Line:
        """The line with the role of each piece of JSON, computed only for displayed lines."""
        position = index - len(self._head)
        if position < 0:
            return self._head[index]
        indent, value = self._split_indent(position)
        found, at = list[Span](), 0
        for start, end, role in json_pieces(value, self._inside.get(position, InString.NO)):
            found += [Span(value[at:start]), Span(value[start:end], role)]
            at = end
        found.append(Span(value[at:]))
        return (indent, *(span for span in found if span.text))

    def _split_indent(self, position: int) -> tuple[Span, str]:
        """The indentation of a line, which its further rows repeat, and the value after it."""
        line = self._lines[position]
        value = line.lstrip(" ")
        return Span(line[: len(line) - len(value)]), value

    def height(self, index: int, width: int, measure: Measure = cells) -> int:
        """The number of rows of the line; roles do not change it."""
        position = index - len(self._head)
        if position >= 0 and self._lines[position].isascii() and len(self._lines[position]) <= width:
            return 1
        return len(wrap_line(self.line(index), width, measure))
