"""One live exchange without its I/O: what is asked, what comes back, and who is told of it. Pure; times are given.

Every byte that comes in passes the mask first, so that a server that repeats the key it was sent cannot make it appear
in a response, a report or a recording.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loop_core.client.address import (
    Server,
    headers_of,
    key_header,
    proof_shown,
    refuse_plain,
    shown,
    speaker,
    url_of,
)
from loop_core.client.mask import Mask, Redact
from loop_core.client.outgoing import ability, body_of, outgoing
from loop_core.errors import CallerError, DecodeError
from loop_core.judge.classify import Judged, judge
from loop_core.turn.history import Ability
from loop_core.turn.segments import Method
from loop_core.turn.state import Place, Responded, Send, Turn
from loop_core.values import (
    ChatResponse,
    Finding,
    ProviderError,
    Request,
    Severity,
    Stop,
    StopReason,
    ToolResultPart,
    TransportEnd,
)
from loop_core.wire import decode_response, decoder, wire
from loop_core.wire.body import dump
from loop_core.wire.profiles import Chosen, choose, native_reading

MOST_BYTES = 256 * 1024 * 1024
"""A longer answer is given up."""
LONGEST_MARK = 32
"""Bytes that no mark of an end (`Decoder.closing`) exceeds."""
LINE_END = 10
"""Stands in no mark, so that none is begun by a piece that ends with it, as events do."""
UNREADABLE = "decode"
"""The type of the error that stands for a body which is no answer of its format."""
AT_ONCE = 4_096
"""Bytes that are decoded together while a stream comes: an event by itself costs several times as much."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One HTTP request, without its credential."""

    number: int
    """Counts from 0 over everything that a run sends, retries included."""
    request: Request
    place: Place
    ordinal: int
    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: Mapping[str, Any] | None
    profile: str | None
    """Who will answer, where the address or the operator says; None where the answer must."""
    attempt: int = 0
    """0 for the first, then one more for each retry."""
    repeats: int | None = None
    """The number of the request that this one sends again."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Heard:
    """An answer, as far as it came."""

    ask: Ask
    response: ChatResponse
    judged: Judged
    speaker: Chosen
    status: int | None
    """None where no answer began."""
    headers: tuple[tuple[str, str], ...]
    body: bytes
    chunks: tuple[tuple[int, float], ...]
    """Where each piece of the body ends, and after how many milliseconds it was there."""
    ms: float
    problem: str = ""
    """What went wrong on the way, in words."""
    left: bool = True
    """Whether the request may have reached the server; False where no connection was made."""

    @property
    def event(self) -> Responded:
        """What the machine is told."""
        return Responded(self.response, self.judged, self.ask.number, live=True)


class Observer:
    """Is told of everything that a live source sends and hears; a recorder writes it down. This one does nothing.

    Where tasks share a source, what belongs to one exchange has its number, and others come in between.
    """

    def asked(self, ask: Ask) -> None:
        """A request is about to leave."""

    def begun(self, number: int, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """The head of its answer is there."""

    def came(self, number: int, data: bytes, ms: float) -> None:
        """A piece of the body is there."""

    def ended(self, heard: Heard) -> None:
        """The answer is over, or was given up."""

    def waits(self, number: int, seconds: float) -> None:
        """The same request is sent again after this time."""

    def ran(self, number: int, results: Sequence[ToolResultPart]) -> None:
        """The calls of this answer were run."""

    def interrupted(self, number: int, *, answered: bool) -> None:
        """The keyboard interrupted the run, which says nothing more: while this request was under way, or after its
        answer was taken in. -1: none had left.
        """


class Observers(Observer):
    """Tells several observers."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._each = tuple(observers)

    def asked(self, ask: Ask) -> None:
        """A request is about to leave."""
        for each in self._each:
            each.asked(ask)

    def begun(self, number: int, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """The head of its answer is there."""
        for each in self._each:
            each.begun(number, status, headers)

    def came(self, number: int, data: bytes, ms: float) -> None:
        """A piece of the body is there."""
        for each in self._each:
            each.came(number, data, ms)

    def ended(self, heard: Heard) -> None:
        """The answer is over, or was given up."""
        for each in self._each:
            each.ended(heard)

    def waits(self, number: int, seconds: float) -> None:
        """The same request is sent again after this time."""
        for each in self._each:
            each.waits(number, seconds)

    def ran(self, number: int, results: Sequence[ToolResultPart]) -> None:
        """The calls of this answer were run."""
        for each in self._each:
            each.ran(number, results)

    def interrupted(self, number: int, *, answered: bool) -> None:
        """The keyboard interrupted the run."""
        for each in self._each:
            each.interrupted(number, answered=answered)


def known(server: Server, request: Request) -> tuple[Ability, str]:
    """What a server allows for the model of a request, as far as continuing goes, and who it is."""
    profile = speaker(server, request.model).profile
    return ability(profile, server.api), profile.name


def asks(server: Server, send: Send, turn: Turn, number: int) -> Ask:
    """The HTTP request that an effect of a turn asks for, as it would leave now.

    Raises:
        LoopError: it cannot be sent in this format.
    """
    request = outgoing(turn, send)
    if send.method is Method.POLL:
        polled = turn.evaluated.response.id if turn.evaluated else None
        if not polled:
            raise CallerError("a response is to be fetched again, and it has no id")
        request = replace(request, previous_id=polled, stream=False)
    return ask(server, request, send, number)


def ask(server: Server, request: Request, send: Send, number: int) -> Ask:
    """The HTTP request for a request of the machine.

    Raises:
        EncodeError: the format cannot carry it.
    """
    chosen = speaker(server, request.model)
    path = wire(server.api).path(request)
    polled = send.method is Method.POLL
    if polled:
        path = f"{path}/{request.previous_id}"
    return Ask(
        number, request, send.place, send.ordinal, "GET" if polled else "POST", shown(url_of(server, path)),
        (*headers_of(server, chosen.profile.name, request.stream), *proof_shown(server, chosen.profile.name)),
        None if polled else body_of(request, chosen.profile, send.method),
        None if chosen.profile.name == "generic" else chosen.profile.name,
    )


@dataclass(frozen=True, slots=True, repr=False)
class HttpRequest:
    """One HTTP request as it leaves, its credential included: for what carries it, and for nothing that shows it."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    content: bytes
    request: Request
    """What it asks for; `read` takes it with the answer."""


def sealed(server: Server, asked: Ask) -> HttpRequest:
    """The request with the key or the signature put in, here and here only.

    Raises:
        LoopError: there is nothing to sign with.
    """
    profile = speaker(server, asked.request.model).profile.name
    path = wire(server.api).path(asked.request)
    if asked.method == "GET":
        path = f"{path}/{asked.request.previous_id}"
    proof = {name for name, _ in proof_shown(server, profile)}
    headers = [(name, value) for name, value in asked.headers if name not in proof]
    headers += key_header(server, profile)
    url, content = url_of(server, path), b"" if asked.body is None else dump(asked.body).encode()
    if server.sign is not None:
        headers += server.sign(asked.method, url, tuple(headers), content)
    return HttpRequest(asked.method, url, tuple(headers), content, asked.request)


def http_request(server: Server, turn: Turn, send: Send) -> HttpRequest:
    """The HTTP request that an effect of a turn asks for, for a transport of the caller's own.

    Raises:
        LoopError: it cannot be sent in this format, or a key would leave as plain text.
    """
    refuse_plain(server)
    return sealed(server, asks(server, send, turn, 0))


class Hearing:
    """One answer while it comes: `begin` with its head, `feed` its bytes, `close` it."""

    def __init__(self, asked: Ask, server: Server, observer: Observer, redact: Redact | None = None) -> None:
        self._server, self._observer, self._mask = server, observer, Mask(server.secrets, redact)
        self._speaker = speaker(server, asked.request.model)
        hidden = tuple((name, self._mask.text(value)) for name, value in asked.headers)
        self.ask = replace(asked, headers=hidden, body=self._mask.json(asked.body))
        self._came = None if getattr(type(observer), "came", None) is Observer.came else observer.came
        self._body: list[bytes] = []
        self._chunks: list[tuple[int, float]] = []
        self._size = 0
        self._status: int | None = None
        self._headers: tuple[tuple[str, str], ...] = ()
        self._problem: DecodeError | None = None
        self._decoder = self._new_decoder()
        self._waiting: list[bytes] = []  # pieces that are not decoded yet, and their bytes
        self._unread = 0
        self._last, self._ending = b"", False
        observer.asked(self.ask)

    def begin(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        """Takes status and headers."""
        self._status = status
        self._headers = tuple((name, self._mask.text(value)) for name, value in headers)
        self._decoder = self._new_decoder()
        self._observer.begun(self.ask.number, status, self._headers)

    def feed(self, data: bytes, ms: float) -> bool:
        """Takes the next bytes, `ms` after the request was sent; False where nothing more is to be read."""
        self._take(self._mask.feed(data), ms)
        return not self._decoder.saw_done and self._size <= MOST_BYTES

    def close(self, end: TransportEnd, ms: float, problem: str = "", left: bool = True) -> Heard:
        """The answer, as far as it came, judged; `left`: whether the request may have reached the server."""
        self._take(self._mask.flush(), ms)
        self._decode()
        if self._size > MOST_BYTES:
            end, problem = TransportEnd.ABORTED, f"more than {MOST_BYTES:,} bytes came"
        body, request = b"".join(self._body), self.ask.request
        chosen = self._speaker
        if self._server.profile is None and chosen.profile.name == "generic":
            chosen = choose(self._server.api, self.ask.url, self._headers, body, request.model)
        response = self._mask.response(self._decoded(chosen, body, end))
        if problem:
            problem = self._mask.text(problem)
            told = Finding(f"transport.{end.value}", Severity.WARNING, problem)
            response = replace(response, findings=(*response.findings, told))
        judged = judge(response, request, chosen.profile, native_reading(response, chosen.profile))
        heard = Heard(self.ask, response, judged, chosen, self._status, self._headers, body, tuple(self._chunks), ms,
                      problem, left)
        self._observer.ended(heard)
        return heard

    def _take(self, data: bytes, ms: float) -> None:
        if not data:
            return
        self._size += len(data)
        self._unread += len(data)
        self._chunks.append((self._size, ms))
        self._waiting.append(data)
        if self._came is not None:
            self._came(self.ask.number, self._mask.shapes(data), ms)
        if not self._ending:
            seen = self._last + data if self._last else data
            self._last = b"" if data[-1] == LINE_END else seen[-LONGEST_MARK:]
            for mark in self._decoder.closing:
                if mark in seen:
                    self._ending = True
        if self._ending or self._unread >= AT_ONCE:
            self._decode()

    def _decode(self) -> None:
        """Decodes what waits. Only its end is asked for before the answer is over, so that most of it can wait."""
        data = self._mask.shapes(b"".join(self._waiting))
        self._body.append(data)
        self._waiting, self._unread = [], 0
        if data and self._problem is None:
            try:
                self._decoder.feed(data)
            except DecodeError as why:
                self._problem = why

    def _new_decoder(self) -> Any:
        asked = self.ask.request
        return decoder(self._server.api, http_status=self._status, headers=self._headers, n=asked.n,
                       background=asked.background, words=self._speaker.profile.words)

    def _decoded(self, chosen: Chosen, body: bytes, end: TransportEnd) -> ChatResponse:
        asked = self.ask.request
        try:
            if self._problem is not None:
                raise self._problem
            if chosen.profile.words == self._speaker.profile.words:
                response: ChatResponse = self._decoder.close(end)
                return response
            return decode_response(self._server.api, body, http_status=self._status, headers=self._headers, n=asked.n,
                          background=asked.background, words=chosen.profile.words, end=end)
        except DecodeError as why:
            error = ProviderError(f"no {self._server.api} response: {why.message}", UNREADABLE)
            stop = StopReason(Stop.ERROR, None, "fatal")
            return ChatResponse(self._server.api, stop_reason=stop, http_status=self._status, error=error,
                                transport_end=end, size=len(body))
