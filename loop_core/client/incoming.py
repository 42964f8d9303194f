"""Reads one answer until the server, a time limit or an exception ends it. Pure: the caller passes the clock and the
exceptions of the HTTP library."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from loop_core.client.exchange import LiveResponse, ResponseReader, Timeouts
from loop_core.client.threads import AfterStopError, WholeTimeoutError
from loop_core.errors import words_of
from loop_core.values import TransportEnd

# -- The content coding of a body ------------------------------------------------------------------------------------
# It is decoded in bounded steps, since a few bytes can expand to gigabytes. The client asks for no coding. If a server
# nevertheless uses gzip or deflate, it is decoded. Codings that can expand a byte further (br, zstd), and several
# codings of one body, are refused.

STEP = 1 << 20
"""The largest number of bytes that one step unpacks."""
_EITHER = 32 + zlib.MAX_WBITS
"""The format of compressed data: its header tells gzip from zlib, which is what `deflate` means (RFC 9110, section
8.4.1.2)."""
_DECODABLE = frozenset({"gzip", "x-gzip", "deflate"})
_REFUSED_CODINGS = frozenset({"br", "zstd", "compress", "x-compress", "dcb", "dcz"})  # IANA, HTTP Content Coding


class ContentDecodeError(Exception):
    """The coding of a body cannot be decoded. The message continues a sentence that begins with the server's name."""


class ChecksumError(ContentDecodeError):
    """The content does not match its checksum. Pieces of it may have been read before the checksum came."""


class RefusedCodingError(ContentDecodeError):
    """The body has a coding that is not supported. A second attempt would get the same one."""


class ContentDecoder:
    """The body of one answer without its content coding, piece by piece."""

    def __init__(self, coding: str) -> None:
        """`coding` is the header Content-Encoding. A word in it that names no coding, such as a character set, is
        ignored. Raises `RefusedCodingError` for a coding that is not supported."""
        names = [name for part in coding.split(",") if (name := part.strip().lower()) in _DECODABLE | _REFUSED_CODINGS]
        if len(names) > 1 or not _DECODABLE.issuperset(names):
            raise RefusedCodingError(f"sent content in the encoding {', '.join(names)[:40]}, which was not requested")
        self._inflate = zlib.decompressobj(_EITHER) if names else None

    @property
    def is_over(self) -> bool:
        """Whether no checksum is outstanding: the body is not coded, or its coding has ended."""
        return self._inflate is None or bool(self._inflate.eof)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decodes the next bytes; yields their content, in pieces of at most `STEP` bytes if it is coded. Raises
        `ContentDecodeError` if the content does not have the named coding."""
        if self._inflate is None:
            yield data
            return
        more = True
        while more:
            before = self._inflate.copy()
            try:
                piece = self._inflate.decompress(data, STEP)
            except zlib.error as why:
                if str(why).endswith(("data check", "length check")):
                    raise ChecksumError("sent content that does not match its checksum") from None
                yield from _up_to_fault(before, data)
                raise ContentDecodeError("sent content whose encoding is broken") from None
            data = self._inflate.unconsumed_tail
            if self._inflate.eof and self._inflate.unused_data:  # a body may have several members (RFC 1952, 2.2)
                data, self._inflate = self._inflate.unused_data, zlib.decompressobj(_EITHER)
            more = bool(data) or len(piece) == STEP
            if piece:
                yield piece


def _up_to_fault(inflate: Any, data: bytes) -> Iterator[bytes]:
    """Yields the content before a fault, byte by byte, because zlib returns nothing for a piece with a fault."""
    with suppress(zlib.error):
        for at in range(len(data)):
            if piece := inflate.decompress(data[at : at + 1]):
                yield piece


# -- One answer ------------------------------------------------------------------------------------------------------


class Failure(NamedTuple):
    """An exception that ends an answer."""

    kind: type[Exception]
    end: TransportEnd
    words: str
    may_have_arrived: bool = True
    """Whether the request may have reached the server."""
    begins: tuple[str, ...] = ("",)
    """The possible beginnings of the exception's message."""


@dataclass(slots=True)
class IncomingAnswer:
    """One answer while it is read, under time limits; `response` is None until it is over."""

    reader: ResponseReader
    timeouts: Timeouts
    clock: Callable[[], float]
    failures: Sequence[Failure]
    """The exceptions that end the answer. The first matching row counts."""
    start: float = field(init=False)
    body: ContentDecoder = field(default_factory=lambda: ContentDecoder(""))
    response: LiveResponse | None = None
    in_observer: bool = False
    """Whether the observer is being called. An exception is then the observer's and is passed on."""

    def __post_init__(self) -> None:
        self.start = self.clock()

    @property
    def ms(self) -> float:
        """The milliseconds since the request was sent."""
        return round((self.clock() - self.start) * 1000, 3)

    @property
    def is_over(self) -> bool:
        """Whether the last event of the format was read. How the connection ends after it does not matter."""
        return bool(self.reader.decoder.is_over)

    @property
    def may_be_over(self) -> bool:
        """Whether the last event of the format, a stop word or an error was read."""
        return bool(self.reader.decoder.may_be_over)

    @property
    def left(self) -> float:
        """The seconds for which the answer is still read. Some servers keep the connection open after the last event
        (wire notes), and not every format has one."""
        left = self.timeouts.whole - self.ms / 1000
        if not self.may_be_over:
            return left
        most = self.timeouts.after_end if self.is_over and self.body.is_over else self.timeouts.after_stop
        return min(left, most - (self.ms - self.reader.event_ms) / 1000)

    @property
    def late(self) -> bool:
        """Whether that time is over."""
        return self.left < 0

    def begin(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Takes status and headers."""
        self.in_observer = True
        self.reader.begin(status, headers, self.ms)
        self.in_observer = False
        self.body = ContentDecoder(",".join(value for name, value in headers if name.lower() == "content-encoding"))

    def take(self, data: bytes) -> bool:
        """Takes a piece of the body; False if no more is to be read."""
        for piece in self.body.feed(data):
            self.in_observer = True
            if not self.reader.feed(piece, self.ms):
                self.close(TransportEnd.EOF)
            elif self.late:
                self.answer()
            self.in_observer = False
            if self.response is not None:
                return False
        return True

    def close(self, end: TransportEnd, problem: str = "", may_have_arrived: bool = True) -> LiveResponse:
        """The answer, which ends here unless something has ended it before."""
        if self.response is None:
            self.response = self.reader.close(end, self.ms, problem, may_have_arrived)
        return self.response

    def answer(self) -> LiveResponse:
        """The answer, which ends here because its bytes or its time ran out, unless something has ended it before."""
        if self.late:
            self.fail(WholeTimeoutError())
        return self.close(TransportEnd.EOF)

    def fail(self, why: Exception) -> None:
        """Ends the answer because of an error. A message of httpx may hold a proxy's address, so it is replaced."""
        if self.is_over and not isinstance(why, ContentDecodeError):  # a wrong checksum is about the answer itself
            self.close(TransportEnd.EOF)
            return
        host = urlsplit(self.reader.ask.url).netloc  # without the user and password that a URL may hold
        found = self._failure(why)
        if self.late and found.may_have_arrived:
            # `Cutter` shut the connection down.
            why = WholeTimeoutError() if self.ms > self.timeouts.whole * 1000 else AfterStopError()
            found = self._failure(why)
        problem = found.words.format(host=host, times=self.timeouts, silent=self.reader.silence_until(self.ms),
                                     why=_reason(why), foreign=" ".join(words_of(why).split()))
        self.close(found.end, problem, found.may_have_arrived)

    def _failure(self, why: Exception) -> Failure:
        return next(row for row in self.failures if isinstance(why, row.kind) and str(why).startswith(row.begins))


def _reason(why: BaseException) -> str:
    """The operating system's message about a connection error, which libraries wrap in their own; otherwise the
    error's."""
    found, words = why, str(why)
    while True:
        if isinstance(found, OSError) and found.strerror:  # asyncio's own message names the address
            words = "Connection refused" if isinstance(found, ConnectionRefusedError) else found.strerror
        several = getattr(found, "exceptions", ())  # of an `ExceptionGroup`: one for each address of a host
        inner = several[0] if several else found.__cause__ or found.__context__
        if inner is None:
            return words
        found = inner
