"""Reads one answer until the server, a time limit or an exception ends it. Pure: the caller passes the clock and the
exceptions of the HTTP library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit

from loop_core.client.coding import CodingError, Uncoding
from loop_core.client.exchange import LiveResponse, ResponseReader, Timeouts
from loop_core.client.threads import AfterStopError, WholeTimeoutError
from loop_core.errors import words_of
from loop_core.values import TransportEnd


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
    body: Uncoding = field(default_factory=lambda: Uncoding(""))
    response: LiveResponse | None = None
    telling: bool = False
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
        most = self.timeouts.after_end if self.is_over else self.timeouts.after_stop
        return min(left, most - (self.ms - self.reader.event_ms) / 1000)

    @property
    def late(self) -> bool:
        """Whether that time is over."""
        return self.left < 0

    def begin(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Takes status and headers."""
        self.telling = True
        self.reader.begin(status, headers, self.ms)
        self.telling = False
        self.body = Uncoding(",".join(value for name, value in headers if name.lower() == "content-encoding"))

    def take(self, data: bytes) -> bool:
        """Takes a piece of the body; False if no more is to be read."""
        for piece in self.body.feed(data):
            self.telling = True
            if not self.reader.feed(piece, self.ms):
                self.close(TransportEnd.EOF)
            elif self.late:
                self.answer()
            self.telling = False
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
        if self.is_over and not isinstance(why, CodingError):  # a wrong checksum is about the answer itself
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
