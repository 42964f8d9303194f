"""Reads and writes the native session file: append-only JSON Lines of inputs, from which all else is computed.

The reader has cheap checks of its own. The pydantic models (`native_models`) are imported only for writing, for the
schema, and to explain a bad record. A file cut at any byte keeps all records before it (docs/session-format.md).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO

from inspector.config.files import hold, is_held, private_file, replace_all
from inspector.sessions import detection, redact, traffic
from inspector.sessions.native_fields import bytes_of, lost_piece, optional_text, packed, place_of, time_of, written_id
from inspector.sessions.notices import Notice
from inspector.sessions.recording import (
    Act,
    Chunk,
    FileReading,
    Options,
    RawExchange,
    SessionAbout,
    ToolAnswer,
    UnreadableError,
)
from inspector.sessions.thread import response_number
from loop_core.errors import CallerError, failure_words
from loop_core.turn.limits import Limits
from loop_core.values import ToolResultPart, TransportEnd
from loop_core.wire import FORMATS

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import BaseModel

VERSION = 1
MARK = "loop_inspector_session"
_HEADER = re.compile(rf'"{MARK}"\s*:'.encode())
PRODUCER = "loop-inspector"
BY_US = f"live by {PRODUCER}"
"""The words in a recording's provenance that identify a live run of this program."""
NOT_RECORDED = "not_recorded"
"""The value of `end` in the `end` record of a response whose body was not recorded."""

FIELDS: Mapping[str, Mapping[str, tuple[type, ...]]] = {
    "about": {},
    "request": {"id": (str,)},
    "response": {"request": (str,)},
    "bytes": {"request": (str,)},
    "end": {"request": (str,), "end": (str,)},
    "tool_result": {"text": (str,)},
    "limits": {"values": (dict,)},
    "policy": {"name": (str,)},
    "note": {"text": (str,)},
    "cancel": {},
}
"""Type of a record -> the members that the reader needs, with their types. The pydantic models define all members."""
_OF_EXCHANGES = frozenset({"request", "response", "bytes", "end"})
"""The types of records that become exchanges, in which `build` masks credentials."""
_ABOUT = ("title", "story", "provenance", "end_state")

AGAIN = "sent again after"
"""The beginning of the note about a request that was sent again."""
STRICT = "strict"
"""The policy under which a recording is shown by default."""


class SessionWriter:
    """Appends records to a session file, flushes each one, and masks credentials before writing."""

    def __init__(self, path: str | Path, **about: str) -> None:
        private_file(path)
        self._file: BinaryIO = open(path, "ab")  # noqa: SIM115  # held open until close
        hold(self._file)
        try:
            if self._file.tell() == 0:
                self.append({MARK: VERSION, **about})
            elif not _ends_with_newline(path):
                self._file.write(b"\n")  # a cut record stays, and the next record begins a new line
        except OSError:
            with suppress(OSError):  # else Python 3.13 reports the unwritten buffer when the file is collected
                self._file.close()
            raise

    def append(self, record: BaseModel | Mapping[str, Any]) -> None:
        """Writes one record. Raises `ValueError` if it is not a record of the format."""
        from inspector.sessions.native_models import clean

        self._file.write(clean(record).encode() + b"\n")
        self._file.flush()

    def append_bytes(self, request: str, data: bytes, ms: float | None) -> None:
        """Writes a piece of a response body: as text if it is UTF-8, else as base64."""
        kind, piece = packed(data)
        # Written without the models: only these fields occur, and during a stream this is most of the work.
        when = {} if ms is None else {"ms": float(ms)}
        record = {"type": "bytes", "request": written_id(request), kind: piece, **when}
        self._file.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __enter__(self) -> SessionWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def write_session(path: str | Path, records: Iterable[BaseModel | Mapping[str, Any]], **about: str) -> None:
    """Writes a whole session to a file; a header is added unless the first record is one."""
    from pathlib import Path

    replace_all({Path(path): session_bytes(records, **about)})


def session_bytes(records: Iterable[BaseModel | Mapping[str, Any]], **about: str) -> bytes:
    """The bytes of a whole session file, credentials masked. Raises `ValueError` if a record is not of the format."""
    from inspector.sessions.native_models import clean

    lines = [clean(record) for record in records]
    if not lines or MARK not in json.loads(lines[0]):
        lines.insert(0, clean({MARK: VERSION, **about}))
    return "".join(f"{line}\n" for line in lines).encode("utf-8")


def sniff(head: bytes, path: str) -> int:
    """Recognises the header in the first line."""
    line = head.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0]
    return 100 if line.startswith(b"{") and _HEADER.search(line) is not None else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads the exchanges and the operator's acts in a session file. Raises `UnreadableError` if the file does not
    begin with the header of a version that this program can read."""
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    header = _parse(next(filter(bytes.strip, lines), b""))
    version = header.get(MARK) if isinstance(header, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise UnreadableError(f'line 1: no session header: expected {{"{MARK}": {VERSION}}}')
    if version > VERSION:
        raise UnreadableError(f"line 1: session format {version}, written by a newer program: "
                              f"expected {VERSION} at most")
    reading = _Reader(header, detection.suspicious(data), path).read(lines)
    reading.error = traffic.utf8_error(data[: data.rfind(b"\n") + 1])  # a cut last line may end inside a character
    return reading


def beginning(data: bytes) -> bytes:
    """The lines in the first bytes of a file, up to the last `end` record after which no request is open."""
    going: set[Any] = set()
    end = at = 0
    for line in data[: data.rfind(b"\n") + 1].split(b"\n"):
        at += len(line) + 1
        record = _parse(line)
        kind = record.get("type") if isinstance(record, dict) else None
        if kind == "request":
            going.add(str(record.get("id")))
        elif kind == "end":
            going.discard(str(record.get("request")))
            end = end if going else at
    return data[:end]


def _parse(line: bytes) -> Any:
    try:
        return traffic.loads(line)
    except ValueError:
        return None


def _ends_with_newline(path: str | Path) -> bool:
    with open(path, "rb") as file:
        file.seek(-1, 2)  # from the end
        return file.read(1) == b"\n"


class _Reader:
    """Reads the lines of one file into a `FileReading`; there is a method for each record type."""

    def __init__(self, header: Mapping[str, Any], suspicious: bool, path: str) -> None:
        self.path = path
        self.reading = FileReading()
        self.notices = self.reading.notices
        self.suspicious = suspicious
        self.about = {name: header[name] for name in _ABOUT if isinstance(header.get(name), str)}
        self.raws: dict[str, RawExchange] = {}
        self.bodies: dict[str, list[bytes]] = {}
        self.times: dict[str, list[Chunk]] = {}
        self.ended: set[str] = set()
        self.lost: set[str] = set()
        """The ids of requests whose answers lost a piece; the bytes after the gap are dropped."""
        self.unknown: Counter[str] = Counter()
        self.given_up: set[int | None] = set()
        """The entries of the exchanges that the operator cancelled: the recording did not cut their answers."""
        self.cut = False
        self.live = header.get("producer") == PRODUCER and BY_US in self.about.get("provenance", "")
        """Whether the file is a recording of this program's live run, whose last record states the end of the turn."""

    def read(self, lines: list[bytes]) -> FileReading:
        filled = [number for number, line in enumerate(lines) if line.strip()]
        for number in filled[1:]:
            self._line(number, lines[number], cut=number == len(lines) - 1)
        self.given_up = {act.entry for act in self.reading.acts if act.kind == "cancel" and not act.value}
        endless = self.live and "end_state" not in self.about
        growing = (endless or bool(self.raws.keys() - self.ended)) and is_held(self.path)
        for key, raw in self.raws.items():
            self._finish(key, raw, growing)
        if (self.cut or endless) and not growing:
            self.reading.mark_cut()
        if self.unknown:
            self.notices.append(Notice("records of unknown type were skipped", self.unknown))
        self.reading.about = SessionAbout(**self.about)
        return self.reading

    def _line(self, number: int, line: bytes, cut: bool) -> None:
        record = _parse(line)
        if record is None and cut:
            self.cut = True
            self._tell(f"line {number + 1}", f", the last, is cut after {len(line)} bytes; the part before it was read")
            return
        kind = record.get("type") if isinstance(record, dict) else None
        if not isinstance(kind, str):
            self._tell(f"line {number + 1}", " is not a record: expected a JSON object with a `type`")
            self._lose(lost_piece(line))
            return
        needed = FIELDS.get(kind)
        if needed is None:
            self.unknown[kind[:40] if kind.isprintable() else "?"] += 1
            return
        if self.suspicious and kind not in _OF_EXCHANGES:
            # The id of its request is only compared with other ids in the file, so it is not masked.
            record = redact.texts(record) | {name: record[name] for name in ("request",) if name in record}
        if all(isinstance(record.get(name), types) for name, types in needed.items()):
            try:
                getattr(self, f"_{kind}")(record)  # `kind` is a key of `FIELDS`
                return
            except (KeyError, TypeError, ValueError, OverflowError):
                pass
        from inspector.sessions.native_models import explain

        self._tell(f"line {number + 1}", f": {explain(record)}")

    def _tell(self, at: str, words: str) -> None:
        self.notices.append(Notice(words, at=at))

    def _lose(self, key: str | None) -> None:
        """Marks a piece of an answer as lost; a piece that names no request may belong to any open answer."""
        if key is not None:
            self.lost |= ({key} if key else set(self.raws)) - self.ended

    def _exchange(self, key: str) -> RawExchange:
        if key not in self.raws:
            self.raws[key] = RawExchange(len(self.raws), recorded=False)
        return self.raws[key]

    def _about(self, record: Mapping[str, Any]) -> None:
        self.about.update({name: record[name] for name in _ABOUT if isinstance(record.get(name), str)})

    def _request(self, record: Mapping[str, Any]) -> None:
        raw = self._exchange(record["id"])
        api = record.get("api")
        if api is not None and api not in FORMATS:
            raise ValueError("api")
        raw.api, raw.profile = api, optional_text(record, "profile")
        raw.url = optional_text(record, "url") or ""
        raw.method = optional_text(record, "method") or "POST"
        raw.request_headers = [(str(name), str(value)) for name, value in record.get("headers") or ()]
        raw.started = optional_text(record, "at")
        raw.again = optional_text(record, "retries") is not None
        raw.recorded_place = place_of(record)
        if record.get("body") is not None:
            raw.request_text = json.dumps(record["body"], ensure_ascii=False)
        else:
            data = bytes_of(record)
            raw.request_text = data.decode("utf-8", "replace") if data else None

    def _response(self, record: Mapping[str, Any]) -> None:
        raw = self._exchange(record["request"])
        status = record.get("status")
        raw.status, raw.recorded = traffic.http_status(status), True
        raw.simulated = record.get("simulated") is True
        raw.headers = [(str(name), str(value)) for name, value in record.get("headers") or ()]
        if status is not None and raw.status is None:
            raise ValueError("status")  # raised for the notice; the other members were used above

    def _bytes(self, record: Mapping[str, Any]) -> None:
        key = record["request"]
        self._exchange(key).recorded = True
        if key in self.lost:
            return
        try:
            data = bytes_of(record)
        except ValueError:
            self._lose(key)
            raise
        body = self.bodies.setdefault(key, [])
        body.append(data)
        ms = time_of(record)
        if ms is not None:
            times = self.times.setdefault(key, [])
            times.append(Chunk((times[-1].end if times else 0) + len(data), ms))

    def _end(self, record: Mapping[str, Any]) -> None:
        key, word = record["request"], record["end"]
        raw = self._exchange(key)
        if word == NOT_RECORDED:
            raw.recorded = False
        else:
            raw.end, raw.recorded = TransportEnd(word), True
            unsaid = "its content does not match its checksum" if raw.end is TransportEnd.DAMAGED else ""
            raw.problem = optional_text(record, "problem") or unsaid
        self.ended.add(key)
        raw.duration_ms = time_of(record) if record.get("ms") is not None else raw.duration_ms

    def _tool_result(self, record: Mapping[str, Any]) -> None:
        result = ToolResultPart(optional_text(record, "call_id"), optional_text(record, "name"), record["text"],
                                record.get("is_error") is True)
        raw = self._exchange_of(record)
        self.reading.answers.append(ToolAnswer(raw.entry if raw else None, result, optional_text(record, "at")))

    def _limits(self, record: Mapping[str, Any]) -> None:
        try:
            Limits().with_values(record["values"])
        except CallerError as why:
            self.notices.append(f"limits that cannot be used were skipped: {why}")
            return
        self._act("limits", record["values"], record)

    def _policy(self, record: Mapping[str, Any]) -> None:
        name = record["name"]
        if name != STRICT:
            self.notices.append(f"recorded under the policy {name!r}: --policy {name} shows what was run then")
        if record.get("allow_silence") is True:
            self.notices.append("recorded with allow_silence=yes: `inspector replay --set allow_silence=yes`, or "
                                "LOOP_INSPECTOR_ALLOW_SILENCE=yes, shows what was run then")
        self._act("policy", name, record)

    def _note(self, record: Mapping[str, Any]) -> None:
        text = record["text"]
        self._act("note", text, record)
        raw = self._exchange_of(record)
        if raw is not None and text.startswith(AGAIN):
            self.notices.append(sent_again(raw.entry, raw.status, raw.problem, text))

    def _cancel(self, record: Mapping[str, Any]) -> None:
        self._act("cancel", record.get("answered") is True, record)

    def _act(self, kind: str, value: Any, record: Mapping[str, Any]) -> None:
        raw = self._exchange_of(record)
        self.reading.acts.append(Act(kind, value, raw.entry if raw else None, optional_text(record, "at")))

    def _exchange_of(self, record: Mapping[str, Any]) -> RawExchange | None:
        return self.raws.get(record.get("request") or "")

    def _finish(self, key: str, raw: RawExchange, growing: bool) -> None:
        raw.body = b"".join(self.bodies.get(key, ()))
        chunks = self.times.get(key, [])
        # Times are used only if all pieces have one; a piece without would count as a part of another one.
        if len(chunks) == len(self.bodies.get(key, ())):
            raw.chunks = tuple(chunks)
        if raw.duration_ms is None and chunks:
            raw.duration_ms = chunks[-1].ms
        raw.clean = not self.suspicious
        if key in self.lost:
            raw.end = TransportEnd.CUT
            self._tell(f"exchange {raw.entry}", ": a piece of its answer is lost; what follows it is not read")
        elif key not in self.ended and (raw.recorded or raw.url or raw.request_text):
            # Unless it still runs, the recorder was killed while this response arrived; its last bytes are not its end.
            raw.end = TransportEnd.ABORTED if raw.entry in self.given_up else TransportEnd.CUT
            raw.growing = growing
            self._tell(f"exchange {raw.entry}", " has no `end`: " + (
                "it was under way when the file was read" if growing else "the recording stopped while it ran"))
        self.reading.raws.append(raw)


def sent_again(entry: int, status: int | None, problem: str, text: str) -> Notice:
    """The notice about a repeated request: the failure of its first attempt, and the text of the note."""
    why = failure_words(status, problem)
    return Notice(f": {why}; {text}" if why else f": {text}", at=f"response {response_number(entry)}")
