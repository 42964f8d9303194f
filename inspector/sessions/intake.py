"""Reads and unpacks files, streams and bodies, up to a maximum size; devices are not read.

The maximum is global to the process and set by `--max-bytes`, so commands and screens need not pass it on. A regular
file that an importer reads in pieces may be larger, unless the maximum was set (`streams`). Compressed bytes are
unpacked in pieces up to the same maximum.
"""

from __future__ import annotations

import codecs
import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import IO

from inspector.config import files as bounds
from loop_core.errors import CallerError

STDIN = "-"
MOST = 256 << 20
"""The default maximum size in bytes, a thousand times that of a long session of an agent."""
PIECE = 1 << 20
WAIT = 3.0
"""The number of seconds to wait for a writer of a FIFO."""

# Reading `/dev/zero` never ends, and reading `/dev/tty` takes key presses away from the program.
_REFUSED_KINDS = ((stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"), (stat.S_ISSOCK, "a socket"))
_most = MOST


def most() -> int:
    """The maximum number of bytes read from one input, and unpacked from all compressed bodies together."""
    return _most


def set_maximum(number: int) -> None:
    """Sets the maximum number of bytes for this process."""
    global _most
    _most = number


def streams(size: int) -> bool:
    """Whether a file that is read in pieces may have this size: any size, unless another maximum was set."""
    return _most == MOST or size <= _most


def input_name(path: str) -> str:
    """The name of an input in messages; an invisible one, such as the value of an empty variable, is quoted."""
    return "standard input" if path == STDIN else path if path.strip() else repr(path)


_file, _read, _judged = "", 0, 0.0


class StoppedError(Exception):
    """The caller stopped the reading."""


_stopped: ContextVar[Callable[[], bool] | None] = ContextVar("stopped", default=None)


@contextmanager
def stopping_when(should_stop: Callable[[], bool]) -> Iterator[None]:
    """In this block reading raises `StoppedError` as soon as `should_stop()` is true. Only its progress is stored."""
    token = _stopped.set(should_stop)
    try:
        yield
    finally:
        _stopped.reset(token)


def stop_if_asked() -> bool:
    """Raises `StoppedError` if reading was stopped; returns whether it can be. Loops that take seconds call this."""
    should_stop = _stopped.get()
    if should_stop is not None and should_stop():
        raise StoppedError
    return should_stop is not None


def begin_file(path: str) -> None:
    """Stores which file is being read. Raises `StoppedError` if reading was stopped."""
    global _file, _read, _judged
    if stop_if_asked():
        _file, _read, _judged = path, 0, 0.0


def note_read(place: int) -> None:
    """Stores how many bytes of the current file were read. Raises `StoppedError` if reading was stopped."""
    global _read
    _read = place if stop_if_asked() else _read


def note_judged(share: float) -> None:
    """Stores which share of the turns is judged. Raises `StoppedError` if reading was stopped."""
    global _judged
    _judged = share if stop_if_asked() else _judged


def progress() -> tuple[str, int, float]:
    """The path of the current or last file (empty before the first), its bytes read, and its share of judged turns."""
    return _file, _read, _judged


class BoundError(Exception):
    """The input is refused for its kind or size; the text is one line, without the input's name."""


class Room:
    """The number of bytes that may still be unpacked. A body that was too large uses up all of it."""

    __slots__ = ("left",)

    def __init__(self, left: int | None = None) -> None:
        self.left = most() if left is None else left

    def take(self, size: int) -> bool:
        """Reserves this many bytes; returns whether there was room."""
        self.left = max(-1, self.left - size)  # -1: used up, also for smaller sizes
        return self.left >= 0


def too_large() -> str:
    """The error message for an input above the maximum."""
    return f"more than {most():,} bytes, which is not read: --max-bytes N reads more"


def rest_of_line(file: IO[bytes]) -> bytes:
    """The bytes up to the end of a line. Raises `BoundError` if they are more than the maximum."""
    rest = file.readline(most() + 1)
    if len(rest) > most():
        raise BoundError(f"a line is {too_large()}")
    return rest


def last_opening(data: bytes) -> int:
    """The place of the last line that is only `{`, which begins a record in several lines; -1 if there is none."""
    lines = b"\n" + data
    return max(lines.rfind(b"\n{\n"), lines.rfind(b"\n{\r\n"))


def rest_of_record(file: IO[bytes], piece: bytes) -> bytes:
    """The bytes after `piece` up to the end of a line or, if a formatter wrote the record in several lines, up to the
    end of that record. Raises `BoundError` if they are more than the maximum."""
    rest = rest_of_line(file)
    data = piece + rest
    at = last_opening(data)
    if at < 0 or data.find(b"\n}", at) >= 0:
        return rest
    lines, line, size = [rest], b" ", len(rest)  # `rest` may be the end of a line, which tells nothing
    while (line.startswith((b" ", b"\t")) or line in (b"{\n", b"{\r\n")) and size <= most():
        line = rest_of_line(file)
        lines.append(line)
        size += len(line)
    if size > most():
        raise BoundError(f"a record is {too_large()}")
    return b"".join(lines)


def file_bytes(path: str, start: bytes = b"") -> bytes:
    """The bytes of a file or a FIFO; `start` has the first bytes of a regular file if they were read before. Raises
    `OSError` if it cannot be read, and `BoundError` if it is a device, larger than the maximum, or a FIFO without a
    writer."""
    found = os.stat(path)
    for of_kind, what in _REFUSED_KINDS:
        if of_kind(found.st_mode):
            raise BoundError(f"{what}: expected a regular file, a FIFO or `-`")
    if stat.S_ISFIFO(found.st_mode):
        return _fifo(path)
    if found.st_size > most():
        raise BoundError(too_large())
    with open(path, "rb") as file:
        file.seek(len(start))
        return _drain(file, start)


def named_file(path: str) -> bytes:
    """The bytes of a file that an operator named. Raises `CallerError` if it cannot be read."""
    try:
        return file_bytes(path)
    except (OSError, BoundError) as why:
        raise CallerError(f"{path}: cannot be read: {getattr(why, 'strerror', None) or why}") from None


def check_regular(path: str) -> None:
    """Raises `BoundError` if a further file of a session is not regular: each FIFO would take seconds."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise BoundError("no regular file, which is not read beside a session")


def sibling(path: str, name: str) -> bytes | None:
    """The bytes of another file, by its path relative to that of `path`; None if it cannot be read or is irregular."""
    beside = os.path.join(os.path.dirname(path), name)
    try:
        bounds.check_bounds(beside)
        return file_bytes(beside) if os.path.isfile(beside) else None
    except (OSError, BoundError):
        return None


def standard_input() -> bytes:
    """The bytes of standard input, and one byte more than the maximum if it is longer."""
    found = bytearray()
    while len(found) <= most() and (piece := sys.stdin.buffer.read(min(PIECE, most() + 1 - len(found)))):
        found += piece
    return bytes(found)


def _drain(file: IO[bytes], start: bytes) -> bytes:
    pieces, size = [start], len(start)
    while piece := file.read(PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > most():  # the file may have grown, and files of /proc report the size 0
            raise BoundError(too_large())
    return b"".join(pieces)


def _fifo(path: str) -> bytes:
    """Reads a FIFO, which is opened non-blocking, because `open` would wait for a writer forever."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(number, "rb", buffering=0) as file:
        start, ends = b"", time.monotonic() + WAIT
        while not start:
            try:
                start = os.read(number, PIECE)
            except BlockingIOError:
                break  # a writer exists and has written nothing yet
            if not start:  # there is no writer
                if time.monotonic() > ends:
                    raise BoundError(f"a FIFO that nobody writes to (waited {WAIT:g} s)")
                time.sleep(0.02)
        os.set_blocking(number, True)
        return _drain(file, start)


# -- Compressed bytes -> plain bytes, in pieces and bounded ----------------------------------------------------------
# For recorded bodies with a content encoding, and for packed files.

_FEED_BYTES = 1 << 16
"""The number of compressed bytes for each call of the decompressor, which copies the bytes that it does not consume."""
_ZSTD = b"\x28\xb5\x2f\xfd"
PACKED = (b"\x1f\x8b", _ZSTD)
"""The first bytes of gzip and zstd data, which are unpacked whatever the file's name or the header is."""
_HEAD = 256
"""The number of bytes at the beginning of a body that are text only if it is not compressed, whatever its header says.
Its first byte alone tells nothing: an event stream may begin with a comment, and brotli data with `[`."""
_CONTROL = frozenset(range(32)) - frozenset(b"\t\r\n")
# RFC 8878, section 3.1.1.1.2: a decoder should support at least 8 MB, and may refuse more.
_WINDOW = 1 << 27
"""The largest window in bytes that a zstd stream may need: the default of `zstd --long`."""

DAMAGED = "its body is compressed and damaged"
"""The reason why bytes within the maximum cannot be unpacked."""


def unpack(data: bytes, headers: Iterable[tuple[str, str]] = (), room: Room | None = None) -> bytes | str:
    """The unpacked bytes, or the reason why they cannot be unpacked. A coding that `headers` name counts only if the
    bytes agree with it; the last one was applied last (RFC 9110, 8.4). `room` bounds the unpacked bytes of all bodies
    together; a body that does not fit is dropped."""
    room = room or Room()
    codings = ",".join(str(value) for name, value in headers if str(name).lower() == "content-encoding").split(",")
    for coding in reversed(codings):
        if (pieces := _pieces(data, coding.strip().lower())) is None:
            continue
        found = []
        try:
            for piece in pieces:
                if not room.take(len(piece)):
                    return ("its body is compressed and far too large: "
                            f"more than {most():,} bytes of all bodies together")
                found.append(piece)
        except ValueError:
            return DAMAGED
        data = b"".join(found)
    return data


def _pieces(data: bytes, coding: str) -> Iterator[bytes] | None:
    """The unpacked bytes in pieces; None if the bytes do not have the coding."""
    # The bytes count more than the header, which recorders may keep although they have unpacked the body.
    if data.startswith(PACKED):
        return _unpack(data)
    if _is_text(data[:_HEAD]):
        return None
    if coding == "deflate":
        # In HTTP `deflate` has zlib's wrapper, but some servers send the bare stream (RFC 9110, 8.4.1.2). 0x78 begins
        # zlib's header for a window of 32 kB (RFC 1950).
        return _inflate(data, 15 if data[:1] == b"\x78" else -15)
    return _brotli(data) if coding == "br" else None


def _is_text(head: bytes) -> bool:
    """Whether the first bytes of a body are text; they may end within a character."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return _CONTROL.isdisjoint(head)


def unpacked_head(data: bytes, size: int) -> bytes | None:
    """The first `size` unpacked bytes of gzip or zstd data; None for other data, or if none can be unpacked."""
    plain = b""
    with suppress(ValueError):
        for piece in _unpack(data) if data.startswith(PACKED) else ():
            plain += piece
            if len(plain) >= size:
                break
    return plain[:size] or None


# Functions that unpack a stream in pieces. A cut stream ends early; a damaged or empty one raises ValueError.


def _unpack(data: bytes) -> Iterator[bytes]:
    # 15 bits of history in gzip's wrapper (zlib.h, inflateInit2)
    return _zstd(data) if data[:4] == _ZSTD else _inflate(data, 31)


def _inflate(data: bytes, wbits: int) -> Iterator[bytes]:
    import zlib

    stream, any_piece = zlib.decompressobj(wbits), False
    try:
        for start in range(0, len(data), _FEED_BYTES):
            waiting = data[start : start + _FEED_BYTES]
            while waiting:
                if stream.eof:
                    # Gzip data may consist of several members (RFC 1952, 2.2); the first bytes of one may be split
                    # between two portions.
                    if wbits != 31 or not b"\x1f\x8b".startswith(waiting[:2]):
                        return
                    stream = zlib.decompressobj(wbits)
                # In bounded pieces, because a few bytes may unpack to gigabytes.
                piece = stream.decompress(waiting, PIECE)
                waiting = stream.unused_data if stream.eof else stream.unconsumed_tail
                any_piece = any_piece or bool(piece)
                yield piece
    except zlib.error as why:
        raise ValueError(str(why)) from why
    if not any_piece and not stream.eof:
        raise ValueError("no byte of it can be unpacked")


def _zstd(data: bytes) -> Iterator[bytes]:
    import zstandard

    unpacker = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    any_piece = False
    try:
        # a file may consist of several frames (RFC 8878, 3)
        with unpacker.stream_reader(data, read_across_frames=True) as reader:
            while piece := reader.read(PIECE):
                any_piece = True
                yield piece
    except zstandard.ZstdError as why:
        raise ValueError(str(why)) from why
    if not any_piece:
        raise ValueError("no byte of it can be unpacked")


def _brotli(data: bytes) -> Iterator[bytes]:
    import brotli

    stream, any_piece = brotli.Decompressor(), False
    try:
        piece = stream.process(data, output_buffer_limit=PIECE)
        while piece:
            any_piece = True
            yield piece
            piece = b"" if stream.is_finished() else stream.process(b"", output_buffer_limit=PIECE)
    except brotli.error as why:
        raise ValueError(str(why)) from why
    if not any_piece:
        raise ValueError("no byte of it can be unpacked")


# -- How much there is to read, before anything is read --------------------------------------------------------------

HEAVY = 4_000_000
"""The size in bytes from which the app shows the progress of reading."""


def heavy(paths: Sequence[str]) -> bool:
    """Whether reading these paths may take noticeable time: a large file, or any folder."""
    return any(os.path.isdir(path) or size_of(path) > HEAVY for path in paths)


def size_of(path: str) -> int:
    """The size of a file in bytes; 0 if it cannot be found out."""
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
