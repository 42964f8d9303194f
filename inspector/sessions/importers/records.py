"""Parses the beginning of a file for every importer's `sniff`, and reads records that are not lines.

Such records are rows of tables and elements of lists, each as JSON, and members of a ZIP archive.
"""

from __future__ import annotations

import io
import json
import re
import zlib
from collections.abc import Hashable, Iterable, Iterator
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

from inspector.sessions import redact, traffic
from inspector.sessions.file_format import LONG_HEAD
from inspector.sessions.intake import PIECE, Room, sibling, too_large, unpack
from inspector.sessions.recording import UnreadableError
from inspector.sessions.stored_rows import UnbuiltRecord
from inspector.sessions.traffic import parse_prefix
from loop_core.json_parser import JsonPath
from loop_core.wire.json_values import char_span

_LINES = 8
"""The number of lines at the beginning of a file that are parsed for `sniff`."""


class FileHead(NamedTuple):
    """The parsed beginning of a file."""

    first: Any
    """The first JSON value, perhaps cut; None if the file does not begin with JSON."""
    lines: tuple[Any, ...]
    """The JSON values of the first lines, the last one perhaps cut; empty for a file of one line."""
    text: bytes
    """The head without byte order mark and leading white space."""

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The objects in the first value and in the values of the first lines."""
        return [value for value in (self.first, *self.lines) if isinstance(value, dict)]

    def has(self, members: frozenset[str]) -> bool:
        """Whether one of the values is an object with these members."""
        return any(members <= value.keys() for value in self.objects)


@lru_cache(maxsize=4)
def first_look(head: bytes) -> FileHead:
    """Parses the beginning of a file; if it begins with damaged rows, from the first whole one on."""
    # Windows PowerShell writes UTF-8 with a byte order mark.
    text = (head[3:] if head.startswith(b"\xef\xbb\xbf") else head).lstrip()
    parsed_head = _look(text)
    if parsed_head.first is None or (not parsed_head.lines and text.startswith(b"{")):
        rest = text
        for _ in range(_LINES):
            # A followed file, or one whose first part was removed, may begin within a row.
            _, _, rest = rest.partition(b"\n")
            if not rest.startswith(b'{"'):
                break
            if complete(rest.partition(b"\n")[0]):
                return _look(rest)
    return parsed_head


def look_at(data: bytes) -> FileHead:
    """The parsed beginning of a whole file."""
    return first_look(data[:LONG_HEAD])


def first_value(data: bytes) -> Any:
    """The first JSON value of a whole file, perhaps cut; None if there is none."""
    return look_at(data).first


def _look(text: bytes) -> FileHead:
    if text[:1] not in (b"{", b"["):
        return FileHead(None, (), text)
    end = text.find(b"\n")
    first_line = parse_prefix(text[:end]) if end > 0 else None
    if end > 0 and first_line is not None and complete(text[:end]):
        # there may be blank lines in between
        lines = [line for line in text.split(b"\n", _LINES * 4)[: _LINES * 4] if line.strip()]
        values = [value for value in map(parse_prefix, lines[:_LINES]) if value is not None]
        return FileHead(first_line, tuple(values), text)
    return FileHead(parse_prefix(text), (), text)


def complete(text: str | bytes) -> bool:
    """Whether `text` is one whole JSON value."""
    try:
        traffic.loads(text)
    except ValueError:
        return False
    return True


def first_lines(data: bytes) -> bytes:
    """The complete lines in the first bytes of a file; empty if the first line is not JSON."""
    return data[: data.rfind(b"\n") + 1] if complete(data[: data.find(b"\n")]) else b""


# -- Records that are not lines --------------------------------------------------------------------------------------

Piece = tuple[int, bytes, bool]
"""The number of a record, its JSON, and whether the record may be cut, like the last one of a cut file."""


_Record = TypeVar("_Record", bound=bytes | UnbuiltRecord)


def number_records(pieces: Iterable[_Record], cut: bool = False) -> Iterator[tuple[int, _Record, bool]]:
    """Records with their numbers. `cut`: the file is cut, so its last record may not be JSON."""
    return ((number, piece, cut) for number, piece in enumerate(pieces, start=1))


def in_order(row: dict[str, Any]) -> tuple[float, float, str]:
    """The sort key of a row: its number, its time and its id, if it has them; columns differ by version."""
    numbers = (row.get(name) for name in ("seq", "time_created"))
    first, second = (float(at) if isinstance(at, (int, float)) else 0.0 for at in numbers)
    return first, second, str(row.get("id"))


def in_tree(rows: list[dict[str, Any]], parent: str) -> Iterator[dict[str, Any]]:
    """Sessions in order, each followed by its children."""
    ids = {row.get("id") for row in rows}
    below: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        above = row.get(parent)
        below.setdefault(above if above in ids and above != row.get("id") else None, []).append(row)
    done: set[Any] = set()
    stack = list(reversed(below.get(None, [])))
    # Damaged parents may form a ring, which is not reached from any root.
    while stack or len(done) < len(ids):
        row = stack.pop() if stack else next(row for row in rows if row.get("id") not in done)
        if row.get("id") in done:
            continue
        done.add(row.get("id"))
        yield row
        stack += reversed(below.get(row.get("id"), []))


def with_ids(data: Any, **ids: Any) -> bytes:
    """A record's verbatim JSON with the ids of its columns as first members; unchanged if it is not an object."""
    text = data if isinstance(data, bytes) else str(data).encode("utf-8", "replace")
    inner = text.strip()
    if not inner.startswith(b"{") or not inner.endswith(b"}"):
        return inner or b"null"
    rest = inner[1:].lstrip()
    return compact_json(ids)[:-1] + (b"}" if rest == b"}" else b"," + rest)


_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
"""The encoder of `compact_json`, created once, because `json.dumps` would create one for each value."""


def compact_json(value: Any) -> bytes:
    """A value as compact JSON."""
    return _COMPACT.encode(value).encode("utf-8", "replace")


def as_text(value: Any) -> str:
    """A value of a recorder that stores a text also as bytes, as a text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


@lru_cache(maxsize=256)
def member_name(name: str) -> bytes:
    """The name of a member as JSON, up to its value."""
    return compact_json(name) + b":"


_DECODER = json.JSONDecoder(strict=False, parse_int=str, parse_float=str)  # numbers of any length are skipped
_BLANK = " \t\r\n,"


def values_in(text: str, at: int) -> Iterator[tuple[int, int | None]]:
    """The start and end of each value in a JSON list, whose values begin at `at`; a cut value has the end None."""
    while True:
        while at < len(text) and text[at] in _BLANK:
            at += 1
        if at >= len(text) or text[at] == "]":
            return
        try:
            end = _DECODER.raw_decode(text, at)[1]
        except (ValueError, RecursionError):
            yield at, None
            return
        yield at, end
        at = end


def list_pieces(data: bytes, *path: str | int) -> Iterator[Piece]:
    """The elements of the list at `path`, byte for byte, numbered from 1; in a cut file up to the cut."""
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")  # invalid UTF-8 stays byte for byte
    at = _opening(text, path)
    for number, (start, end) in enumerate(values_in(text, at) if at is not None else (), 1):
        yield number, text[start:end].encode("utf-8", "surrogateescape"), end is None


def is_list(data: bytes) -> bool:
    """Whether a file is one JSON list."""
    return data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"["


def list_lines(data: bytes) -> bytes:
    """The elements of a list as lines, for rows that `jq -s` joined; each on the line where it begins, unless an
    earlier one begins there."""
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    lines: list[str] = []
    seen = line = 0
    for start, end in values_in(text, text.index("[") + 1):
        line += text.count("\n", seen, start)
        lines += [""] * (line - len(lines))
        lines.append(text[start:end].replace("\n", " "))
        seen = start
    return "\n".join(lines).encode("utf-8", "surrogateescape") + b"\n" * text.rstrip().endswith("]")


def elements(data: bytes, *path: str | int) -> Iterator[bytes]:
    """The elements of the list at `path`, byte for byte, without their numbers."""
    return (piece.strip() for _, piece, _ in list_pieces(data, *path))


def _opening(text: str, path: JsonPath) -> int | None:
    """The position after the opening bracket of the list at `path`; None if there is no such list."""
    span = char_span(text, *path)
    if span is not None:
        return span[0] + 1 if text[span[0]] == "[" else None
    if path and char_span(text) is not None:
        return None  # the file is complete and has no such list
    if not path:
        begun = re.match(r"\s*\[", text)
    else:  # a cut file, in which the enclosing values have no end
        begun = re.search(rf'"{re.escape(str(path[-1]))}"\s*:\s*\[', text)
    return None if begun is None else begun.end()


def object_lines(data: bytes) -> list[bytes]:
    """The lines of a file whose first line is a whole JSON object; none for any other file, or one of a single line."""
    lines = [line for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip()]
    return lines if len(lines) > 1 and complete(lines[0]) else []


def object_in(text: str | bytes) -> dict[str, Any]:
    """The object in a JSON text; an empty object for any other text."""
    try:
        value = traffic.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def object_beside(path: str, name: str, *, cut: bool = False) -> dict[str, Any]:
    """The object in another file, by its path relative to that of `path`, with credentials masked; empty if there is
    none. With `cut`, a cut file is read up to the cut."""
    data = sibling(path, name)
    if data is None:
        return {}
    masked = redact.body(data)
    value: Any = first_look(masked).first if cut else object_in(masked)
    return value if isinstance(value, dict) else {}


def whole_object(data: bytes) -> dict[str, Any]:
    """The object in a file, even if it is cut. Raises `UnreadableError` if it is not an object."""
    value = parse_prefix(data.removeprefix(b"\xef\xbb\xbf"))
    if not isinstance(value, dict):
        raise UnreadableError("not a JSON object: expected one that holds a session")
    return value


# -- The members of a ZIP archive in memory --------------------------------------------------------------------------
# Members are stored, deflated, or compressed with zstd (method 93), which `zipfile` reads only from Python 3.14 on.
# Nothing is unpacked beyond a maximum. If the writer was killed, the archive has no directory at its end; it is read by
# the local header before each member.

_LOCAL = b"PK\x03\x04"
_HEADER = 30
"""The number of bytes of a local file header before the name (PKWARE APPNOTE, section 4.3.7)."""
_STORED, _DEFLATED, _ZSTD = 0, 8, 93


class ZipMember(NamedTuple):
    """One member: its name, its compression, and the offset of its header."""

    name: str
    method: int
    start: int
    size: int
    """The compressed size in bytes."""


def zip_members(data: bytes) -> list[ZipMember]:
    """The members in the archive's directory; without a directory, those before the first damage."""
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return [ZipMember(each.filename, each.compress_type, each.header_offset, each.compress_size)
                    for each in archive.infolist()]
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
        return list(_by_headers(data))


def _by_headers(data: bytes) -> Iterator[ZipMember]:
    at = 0
    while data.startswith(_LOCAL, at) and at + _HEADER <= len(data):
        # PKWARE's APPNOTE, section 4.3.7: compression method at 8, compressed size at 18, lengths of name and extra at
        # 26.
        method, size = (int.from_bytes(data[at + first : at + last], "little") for first, last in ((8, 10), (18, 22)))
        body = _body_at(data, at)
        # A size of 0 means that the size follows the member (a data descriptor), so the next header cannot be found.
        if body + size > len(data) or not size:
            return
        name = data[at + _HEADER : at + _HEADER + int.from_bytes(data[at + 26 : at + 28], "little")]
        yield ZipMember(name.decode("utf-8", "replace"), method, at, size)
        at = body + size


def _body_at(data: bytes, at: int) -> int:
    name, extra = (int.from_bytes(data[at + first : at + first + 2], "little") for first in (26, 28))
    return at + _HEADER + name + extra


def zip_content(data: bytes, member: ZipMember, room: Room) -> bytes | str:
    """The bytes of a member, or the reason why they cannot be read."""
    if not data.startswith(_LOCAL, member.start):
        return "its header is damaged"
    begins = _body_at(data, member.start)
    packed = data[begins : begins + member.size]
    if len(packed) < member.size:
        return "it is cut"
    if member.method == _STORED:
        return packed if room.take(len(packed)) else too_large()
    if member.method == _ZSTD:
        return unpack(packed, room=room)
    if member.method != _DEFLATED:
        return f"it is packed by method {member.method}"
    return _inflate(packed, room)


def _inflate(packed: bytes, room: Room) -> bytes | str:
    stream, found, waiting = zlib.decompressobj(-15), [], packed  # negative: raw deflate, without zlib's header
    try:
        while not stream.eof and (piece := stream.decompress(waiting, PIECE)):
            waiting = stream.unconsumed_tail
            if not room.take(len(piece)):
                return too_large()
            found.append(piece)
    except zlib.error:
        return "it is damaged"
    return b"".join(found)


def beginnings(items: Iterable[Hashable], start: int = 0) -> list[int]:
    """A key for each beginning of a list: the empty one, the first item, the first two, and so on. Equal beginnings of
    two lists have equal keys, so that one look-up finds a list that another repeats. `start`: the key of the items
    before them."""
    return [*accumulate(items, lambda before, item: hash((before, item)), initial=start)]


STARTED = ("started", "startedDateTime", "timestamp", "time", "ts", "recorded_at", "created_at")
DURATIONS = ("duration_ms", "elapsed_ms", "latency_ms", "time_ms")


def start_text(value: dict[str, Any]) -> str | None:
    """The recorded start of an exchange; None if there is none."""
    for name in STARTED:
        found = value.get(name)
        if isinstance(found, str) and found:
            return found
        if (traffic.number(found) or 0) > 0:
            return str(found)
    return None


def duration(value: dict[str, Any]) -> float | None:
    """The duration of an exchange in milliseconds; None if it is not recorded."""
    return next((found for name in DURATIONS if (found := traffic.number(value.get(name))) is not None), None)
