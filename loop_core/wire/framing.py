"""Splits the bytes of a body into frames: defines the interface of framings, and the framings of text.

These are server-sent events, whole bodies, and JSON text sequences, in which each text is between a record separator
and a line break (RFC 7464).
"""

from __future__ import annotations

import json
import re
from typing import Protocol

from loop_core.json_parser import from_json

# -- Server-sent events ----------------------------------------------------------------------------------------------
# Bytes in any chunks -> (payload, event name, start, end). It depends on no provider. Lines may end in LF, CR LF or CR,
# mixed; several `data:` lines join with LF; comment lines and unknown fields are skipped; an event that is pending at
# the end of the bytes is returned although its blank line is missing (openai-node#2725: the stop reason was lost with
# it). A bare JSON object between events is returned like one: servers write errors that way (google-genai 3.4.0
# `_iter_response_stream`). The value of a field `error:` (llama.cpp ends a stream so) and the plain text of an event
# named `error` are returned as an error object. A line that holds an object and is no field, such as one with blanks
# before `data:`, or the rest of one that a broken proxy split, is returned as a frame that is not JSON: clients differ
# in whether they read it. The rest of a field `data`, from its colon on, looks like a comment. If joined lines are not
# JSON but each line is, the server separates events by one line break, not two, and each line is an event.

Frame = tuple[bytes, str | None, int, int]
"""Payload, event name (None if it has none), and the offsets of the frame's first byte and of its end in the body."""

# Two line breaks in a row, of any kind: `\r\n` alone is one break, `\n\r` and `\r\r` are two (HTML standard, 9.2).
_BLANK = re.compile(rb"\r\n(?:\r\n?|\n)|\n(?:\r\n?|\n)|\r\r\n?")
_LONGEST_BLANK = 4  # the bytes of \r\n\r\n
_BREAKS = b"\r\n"
BOM = b"\xef\xbb\xbf"
_LINE = re.compile(rb"[^\r\n]+")
_DONE = b"[DONE]"
_UNREAD = b"unread: "  # begins a frame of a line that is no field, which is never JSON
_NO_EVENT = b"id:", b"retry:"
_ERROR = "error"
"""The name of an event whose payload is an error in any form; gateways send plain text."""


class SSE:
    """An incremental splitter of server-sent events: `feed` returns the complete frames, `flush` the rest at the end. A
    frame extends from the first byte of its first line to the end of its last line, without the line break."""

    __slots__ = ("_broken", "_name", "_names", "_offset", "_pending", "_prefix", "_scanned", "single")

    def __init__(self) -> None:
        self.single: tuple[int, int] | None = None
        """The first place where single line breaks, instead of blank lines, separate events; None if there is none."""
        self._pending = bytearray()
        self._offset = 0  # of the first pending byte in the body
        self._scanned = 0  # no blank line begins in the pending bytes before this
        self._prefix = b"data: "  # the bytes before the last event's payload, which most events repeat
        self._name: str | None = None  # the event name in that prefix
        self._names: dict[bytes, str] = {}
        self._broken = -1  # where the last event ended whose last line is `data` without its colon

    def feed(self, data: bytes) -> list[Frame]:
        """Reads the next bytes; returns the events that are complete with them."""
        pending = self._pending
        if pending:
            pending += data
            if (b"\n" not in data and b"\r" not in data) or _BLANK.search(pending, self._scanned) is None:
                self._scanned = max(0, len(pending) - 3)  # three bytes of \r\n\r\n may have arrived
                return []
            data = bytes(pending)
        frames: list[Frame] = []
        used = self._split(data, frames)
        self._pending = bytearray(data[used:])
        self._offset += used
        self._scanned = max(0, len(self._pending) - 3)
        return frames

    def flush(self) -> list[Frame]:
        """The event that was pending when the bytes ended, if any."""
        frames: list[Frame] = []
        rest, self._pending, self._scanned = bytes(self._pending), bytearray(), 0
        self._event(rest, self._offset, frames, last=True)
        self._offset += len(rest)
        return frames

    def _split(self, data: bytes, frames: list[Frame]) -> int:
        """Appends the complete events; returns their size in bytes."""
        # A whole body is split by one C call, and an event like the one before costs one comparison, because decoding
        # may take at most twice as long as the JSON parser, and a search for any kind of blank line alone takes longer.
        # A body may mix line breaks: `_mixed_events` splits what CR LF does not.
        mixed = b"\r" in data
        separator = b"\r\n\r\n" if mixed else b"\n\n"
        blocks = data.split(separator)
        rest = blocks.pop()
        append, gap, position = frames.append, len(separator), self._offset
        prefix, name, width = self._prefix, self._name, len(self._prefix)
        for block in blocks:
            end = position + len(block)
            if block.startswith(prefix):
                payload = block[width:]
                if 10 not in payload and not (mixed and 13 in payload):  # as numbers: nine times faster than b"\n" in
                    append((payload, name, position, end))
                    position = end + gap
                    continue
            used = self._mixed_events(block, position, frames)
            self._event(block[used:], position + used, frames)
            prefix, name, width = self._prefix, self._name, len(self._prefix)
            position = end + gap
        used = self._mixed_events(rest, position, frames) if mixed else 0
        return position + used - self._offset

    def _mixed_events(self, data: bytes, start: int, frames: list[Frame]) -> int:
        """Appends the events that end in a blank line of any kind; returns their size in bytes."""
        used = 0
        for blank in _BLANK.finditer(data):
            self._event(data[used : blank.start()], start + used, frames)
            used = blank.end()
        return used

    def _event(self, block: bytes, start: int, frames: list[Frame], last: bool = False) -> None:
        if start == 0 and block.startswith(BOM):  # which may begin a stream (HTML standard, 9.2)
            block, start = block[3:], 3
        # A chunk may end inside a line break, and a body inside a blank line, so either end may hold a rest of one.
        stripped = block.lstrip(_BREAKS)
        start += len(block) - len(stripped)
        block = stripped.rstrip(_BREAKS)
        end = start + len(block)
        name: str | None = None
        data: list[bytes] = []
        unread: list[bytes] = []
        error: bytes | None = None
        for line in block.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"):
            # the common line first
            if line[:6] == b"data: ":  # one blank after the colon is not part of the value (HTML standard, 9.2)
                data.append(line[6:])
            elif line[:5] == b"data:":
                data.append(line[5:])
            elif line == b"data":
                data.append(b"")
            elif line[:6] == b"event:" and b'{"' not in line:
                name = self._event_name(line[6:].strip())
            elif line[:6] == b"error:":
                error = line[6:].strip()
            elif b'{"' in line and not line.startswith(_NO_EVENT) and (
                    line[:1] != b":" or data == [b""] or 0 <= self._broken >= start - _LONGEST_BLANK):
                unread.append(line)
        if line == b"data":
            self._broken = end
        if error is not None:
            self._line_events(block, start, frames)
        elif name == _ERROR and data and not data[0].lstrip().startswith((b"{", _DONE)):
            frames.append((_as_error(b"\n".join(data)), name, start, end))
        elif len(data) == 1:
            frames.append((data[0], name, start, end))
            # Only if the last line is the payload can the next event be split after the same prefix.
            if line[:6] == b"data: ":
                self._prefix, self._name = block[: len(block) - len(data[0])], name
        elif data:
            joined = b"\n".join(data)
            if is_json(joined) or not _each_is_json(data, last):
                frames.append((joined, name, start, end))
            else:
                self.single = self.single or (start, end)
                self._line_events(block, start, frames)
        elif block[:1] == b"{":
            frames.append((block, name, start, end))
            return
        frames += [(_UNREAD + line, None, start, end) for line in unread] if unread else ()

    def _line_events(self, block: bytes, start: int, frames: list[Frame]) -> None:
        """Appends an event for every `data:` and `error:` line, with the name in the `event:` line before it."""
        name: str | None = None
        begin: int | None = None  # of the event's first line
        for found in _LINE.finditer(block):
            line = found[0]
            key, colon, value = line.partition(b":")
            if not colon or key not in (b"data", b"event", b"error"):
                continue
            begin = found.start() if begin is None else begin
            if key == b"event":
                name = self._event_name(value.strip())
                continue
            payload = _as_error(value.strip()) if key == b"error" else value[value[:1] == b" " :]
            frames.append((payload, name, start + begin, start + found.end()))
            name, begin = None, None

    def _event_name(self, key: bytes) -> str | None:
        name = self._names.get(key)
        if name is None and key:
            name = self._names[key] = key.decode("utf-8", "replace")
        return name


def is_json(payload: bytes) -> bool:
    """Whether the bytes are one JSON value."""
    try:
        from_json(payload)
    except ValueError:
        return False
    return True


def _each_is_json(lines: list[bytes], last: bool) -> bool:
    """Whether every line is an object, a list or the end mark; the last line of a body may be cut."""
    whole = lines[:-1] if last and lines[-1][:1] in (b"", b"{", b"[") else lines
    return all(line.strip() == _DONE or (line.lstrip()[:1] in (b"{", b"[") and is_json(line)) for line in whole)


def _as_error(line: bytes) -> bytes:
    """The value of a field `error:` as an error object; a value that is not JSON becomes its message."""
    value = line if is_json(line) else json.dumps(line.decode("utf-8", "replace")).encode()
    return b'{"error":' + value + b"}"


class Framing(Protocol):
    """An incremental splitter: bytes in, complete frames out."""

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that these bytes complete."""

    def flush(self) -> list[Frame]:
        """The rest of the bytes, at the end of the body."""


class Whole:
    """The framing of a body that is one JSON value: one frame, at the end."""

    __slots__ = ("_chunks",)

    def __init__(self) -> None:
        self._chunks: list[bytes] = []

    def feed(self, data: bytes) -> list[Frame]:
        """Stores the bytes; a JSON value is complete only at the end."""
        self._chunks.append(data)
        return []

    def flush(self) -> list[Frame]:
        """The whole body."""
        body, self._chunks = b"".join(self._chunks), []
        return [(body, None, 0, len(body))]


# -- JSON texts in a row, each between a record separator and a line break (RFC 7464) --------------------------------
# Messages of a WebSocket, joined.
# Framing only. The separator occurs in no JSON text, so a message may hold any line breaks of its own.

SEPARATOR = b"\x1e"


def text_sequence(messages: list[bytes]) -> bytes:
    """A body that is a JSON text sequence of these texts."""
    return b"".join(SEPARATOR + message + b"\n" for message in messages)


class TextSequence:
    """An incremental splitter of a JSON text sequence. A text is complete where the next one begins."""

    __slots__ = ("_offset", "_rest")

    def __init__(self) -> None:
        self._rest: list[bytes] = []  # of the text that is not complete yet, its separator included
        self._offset = 0  # of its first byte in the body

    def feed(self, data: bytes) -> list[Frame]:
        """Reads the next bytes; returns the texts that are complete with them."""
        if SEPARATOR not in data:
            self._rest.append(data)
            return []
        texts = b"".join([*self._rest, data]).split(SEPARATOR)
        self._rest = [texts.pop()]
        return self._frames(texts)

    def flush(self) -> list[Frame]:
        """The last text."""
        texts, self._rest = [b"".join(self._rest)], []
        return self._frames(texts)

    def _frames(self, texts: list[bytes]) -> list[Frame]:
        frames: list[Frame] = []
        for text in texts:
            payload = text.strip()
            if payload:
                start = self._offset + text.index(payload)
                frames.append((payload, None, start, start + len(payload)))
            self._offset += len(text) + len(SEPARATOR)
        return frames


# -- which framing a body has ----------------------------------------------------------------------------------------

_ERROR_FIELD = b"error:"
# A colon begins a comment; OpenRouter sends some before the first event (OpenRouter docs, Streaming).
_SSE_FIELDS = (b"data", b"event", b"id:", b"retry", b":")


def with_blank_lines(body: bytes) -> bytes:
    """Returns a body with line breaks in place of leading white space, so that its first line begins without any."""
    text = body.lstrip()
    return b"\n" * (len(body) - len(text)) + text


def framing_of(
    head: bytes, object_framing: type[Framing], array_framing: type[Framing], binary_framing: type[Framing] | None, *,
    final: bool, failed: bool,
) -> Framing | None:
    """Returns the framing of a body that begins with these bytes (all of it if `final`); None while they are too few.

    A body that begins with `{` or `[`, or with bytes that are not text, is framed as the format says. Any other text is
    kept whole if the response `failed`: the HTML page of a proxy is then the error's message. Raises `ValueError` if
    the body is neither JSON nor a stream."""
    text = head.removeprefix(BOM).lstrip()
    if not text or (not final and BOM.startswith(head)):  # one or two of the BOM's three bytes
        return None
    first = text[:1]
    if first == SEPARATOR:
        return TextSequence()
    if first == b"{":
        return object_framing()
    if first == b"[":
        return array_framing()
    if text.startswith(_SSE_FIELDS):
        return SSE()
    if not final and any(field.startswith(text) for field in (*_SSE_FIELDS, _ERROR_FIELD)):
        return None
    if binary_framing is not None and first < b" ":  # a frame begins with its length, which is not text
        return binary_framing()
    if failed:
        return Whole()
    if text.startswith(_ERROR_FIELD) or (final and any(field.startswith(text[: len(field)]) for field in _SSE_FIELDS)):
        return SSE()
    raise ValueError(head)
