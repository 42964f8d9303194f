"""Output of `curl --trace` and `curl --trace-ascii`: dumps of the bytes that were sent and received.

A block has a line such as `<= Recv data, 416 bytes (0x1a0)` and the dump below it: 16 bytes a row in hexadecimal, or up
to 64 characters a row as text. A row of text ends early at CRLF, which is not printed but visible in the offsets of the
rows. Any other byte that is not printable is printed as a dot. JSON has dots only in strings and numbers, so other dots
in a body are line ends; a dot in a string may be any byte. `--trace-time` and `--trace-ids` add a time and the numbers
of the transfer and its connection before a line. Source: curl 7.88 and 8.17 `src/tool_cb_dbg.c`, `lib/transfer.c`,
`lib/http2.c`, `lib/multi.c`, `lib/cf-socket.c`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from inspector.sessions import traffic
from inspector.sessions.importers.httprr import exchange_of
from inspector.sessions.intake import Room
from inspector.sessions.recording import FileReading, Options, RawExchange, UnreadableError
from loop_core.values import TransportEnd

_LINE = re.compile(
    rb"^(?:[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6} )?(?:\[(?P<id>[0-9a-z]{1,16})-[0-9a-z]{1,16}\] )?"
    rb"(?:== Info: (?P<note>.*)|(?P<way>=> Send|<= Recv) (?P<part>header|data|SSL data), "
    rb"(?P<size>[0-9]{1,12}) bytes \(0x[0-9a-f]{1,12}\)\r?$)",
    re.MULTILINE)
_ROW = re.compile(rb"(?P<at>[0-9a-f]{4,12}):(?: (?P<text>.*))?")
_WIDTH = 16
"""The number of bytes in a row in hexadecimal."""
_HEX = re.compile(rb"(?:[0-9a-f]{2} ){1,16}")
_DOT = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|\Z)|^event: ?[\w.]*?(?=\.data:)|(?<=\.)event: ?[\w.]*?(?=\.data:)'
                  rb"|[0-9]\.[0-9]|\.", re.DOTALL)
"""Matches a value that may contain dots (a string, the name of an event, a number), or a dot alone."""
ENDS: tuple[tuple[str, TransportEnd], ...] = (
    (r"transfer closed with (?:outstanding read data|[0-9]+ bytes) remaining", TransportEnd.RESET),
    (r"end of response with [0-9]+ bytes missing", TransportEnd.RESET),
    (r"Recv failure: ", TransportEnd.RESET),
    (r"HTTP/[23] stream [0-9]+ was not closed cleanly", TransportEnd.RESET),
    (r"Empty reply from server", TransportEnd.RESET),
    (r"Operation timed out after [0-9]+ milliseconds", TransportEnd.TIMEOUT),
    (r"Operation too slow", TransportEnd.TIMEOUT),
)
"""Pattern of the beginning of a note of curl, and the end of the bytes of its transfer."""
DOTS = ("curl --trace-ascii prints a dot for each byte that is not printable ASCII: line ends between JSON values were "
        "put back, and any dot in a text may be another character; curl --trace keeps every byte")


@dataclass(slots=True, eq=False, repr=False)
class _Transfer:
    """The bytes of one transfer."""

    sent: bytearray = field(default_factory=bytearray)
    head: bytearray = field(default_factory=bytearray)
    body: bytearray = field(default_factory=bytearray)
    dotted: bool = False
    """Whether the bytes were printed as text."""
    end: TransportEnd | None = None
    problem: str = ""


class _Block(NamedTuple):
    data: bytes
    dotted: bool
    next_row: int
    """The index of the first line after the block."""


def sniff(head: bytes, path: str) -> int:
    """Recognises the line before a dump."""
    return 100 if any(line["way"] for line in _LINE.finditer(head)) else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads all transfers; in a damaged file those before the damage, and of a cut answer the part before the cut."""
    reading, room = FileReading(), options.room or Room()
    transfers = [each for each in _transfers(data, reading) if not each.sent.startswith(b"CONNECT ")]
    if not any(each.head or each.problem for each in transfers):
        raise UnreadableError("a trace of curl without an answer: expected a line such as "
                              "`<= Recv header, 17 bytes (0x11)` with the bytes below it")
    for entry, each in enumerate(transfers):
        if not each.head and not each.problem:
            reading.add(entry, "a request without an answer")
            continue
        raw = exchange_of(entry, bytes(each.sent), bytes(each.head + each.body), room)
        if isinstance(raw, RawExchange):
            raw.end, raw.problem = each.end or raw.end, each.problem
            if each.dotted and traffic.header(raw.headers, "content-encoding") not in ("", "identity"):
                raw.without_body("packed, and printed as text, which keeps none of its bytes")
            elif each.dotted:
                raw.body = _with_line_ends(raw.body)
                raw.request_text = raw.request_text and _with_line_ends(raw.request_text.encode()).decode()
        reading.add(entry, raw)
    if any(each.dotted for each in transfers):
        reading.notices.append(DOTS)
    if reading.error is not None:
        reading.mark_cut()
    return reading


def _transfers(data: bytes, reading: FileReading) -> list[_Transfer]:
    """The transfers, in the order of their beginnings. Damage, after which nothing is read, is reported to
    `reading`."""
    found: list[_Transfer] = []
    current: dict[bytes | None, _Transfer] = {}
    rows = [row.removesuffix(b"\r") for row in data.split(b"\n")]
    at = 0
    while at < len(rows):
        line = _LINE.match(rows[at])
        at += 1
        if line is None:
            continue
        key, size = line["id"], int(line["size"] or 0)
        if line["way"] is None:
            _take_note(current.get(key), line["note"].decode("utf-8", "replace").strip())
            continue
        block = _block(rows, at, size)
        transfer = current.get(key)
        if line["part"] != b"SSL data":
            begins = line["way"] == b"=> Send" and line["part"] == b"header"
            if transfer is None or (begins and (transfer.head or b"\r\n\r\n" in transfer.sent)):
                transfer = current[key] = _Transfer()
                found.append(transfer)
            _take(transfer, line, block)
        if len(block.data) < size:
            reading.error = (f"line {block.next_row + 1}: expected byte {len(block.data):#x} of the {size:,} bytes "
                             f"that line {at} announces; the part before was read")
            if transfer is not None and line["way"] == b"<= Recv":
                transfer.end = TransportEnd.CUT
            break
        at = block.next_row
    return found


def _take(transfer: _Transfer, line: re.Match[bytes], block: _Block) -> None:
    """Adds a block to the bytes of its transfer. An interim response (`100 Continue`) and the headers after a body are
    left out."""
    transfer.dotted |= block.dotted
    if line["way"] == b"=> Send":
        transfer.sent += block.data
    elif line["part"] == b"data":
        transfer.body += block.data
    elif not transfer.body:
        transfer.head = bytearray() if block.data.startswith(b"HTTP/") else transfer.head
        transfer.head += block.data


def _take_note(transfer: _Transfer | None, note: str) -> None:
    """Sets the end of a transfer's bytes by a note of curl."""
    end = next((end for pattern, end in ENDS if re.match(pattern, note)), None)
    if transfer is not None and end is not None and transfer.end is None:
        transfer.end, transfer.problem = end, note


def _block(rows: list[bytes], at: int, size: int) -> _Block:
    """The bytes of a block whose dump begins at a row; fewer than its size if the dump is damaged."""
    data, dotted = bytearray(), False
    for offset, text in _rows(rows, at):
        width = min(_WIDTH, size - len(data))
        pairs = text[: 3 * width]
        if not dotted and len(pairs) == 3 * width > 0 and _HEX.fullmatch(pairs) and offset == len(data):
            data += bytes.fromhex(pairs.decode())
        elif (not data or dotted) and offset - len(data) in (0, 2) and offset + len(text) <= size:
            data += b"\r\n" * (offset > len(data)) + text
            dotted = True
        else:
            break
        at += 1
    if dotted and size - len(data) == 2:
        data += b"\r\n"
    return _Block(bytes(data), dotted, at)


def _rows(rows: list[bytes], at: int) -> Iterator[tuple[int, bytes]]:
    """The rows of a dump, each with its offset."""
    for number in range(at, len(rows)):
        found = _ROW.fullmatch(rows[number])
        if found is None:
            return
        yield int(found["at"], 16), found["text"] or b""


def _with_line_ends(body: bytes) -> bytes:
    """A body of JSON or of events, in which line ends replace the dots that are not its own."""
    return _DOT.sub(lambda match: b"\n" if match[0] == b"." else match[0], body)
