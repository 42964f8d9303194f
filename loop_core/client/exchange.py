"""Reads the answer to one HTTP request, reports it to observers, and decides whether the request is repeated. Pure: no
I/O.

Every received byte passes the mask first, so a key that a server repeats never appears in a response, a report or a
recording.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from functools import wraps
from typing import Any

from loop_core.client.address import Server, expected_profile
from loop_core.client.mask import Mask, Redact
from loop_core.client.outgoing import LiveRequest
from loop_core.errors import UNREADABLE, CallerError, DecodeError, check_kinds, check_seconds
from loop_core.judge.classify import Judgement, judge
from loop_core.turn.state import ProviderResponse
from loop_core.values import (
    BREAKS,
    CallKind,
    ChatResponse,
    Finding,
    OpaquePart,
    ProviderError,
    Request,
    Severity,
    Stop,
    StopReason,
    ToolResultPart,
    TransportEnd,
)
from loop_core.wire import decode_response, decoder
from loop_core.wire.failures import RETRYABLE_STATUS
from loop_core.wire.framing import is_json
from loop_core.wire.profiles import ProfileChoice, choose, native_reading

MOST_BYTES = 64 * 1024 * 1024
"""The largest size of an answer in bytes. The client aborts a larger one."""
LONGEST_MARK = 32
"""The largest size in bytes of a mark of the end (`Decoder.closing`)."""
LINE_END = 10
"""The byte of a line feed. No end mark contains it, so none continues after a piece that ends with it, as events do."""
DECODE_SIZE = 4_096
"""The number of bytes of a stream that are decoded together. Decoding each event alone takes several times as long."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LiveResponse:
    """The answer to one live request, as far as it has arrived."""

    ask: LiveRequest
    response: ChatResponse
    judgement: Judgement
    profile_choice: ProfileChoice
    status: int | None
    """The HTTP status; None if no answer began."""
    headers: tuple[tuple[str, str], ...]
    body: bytes
    chunks: tuple[tuple[int, float], ...]
    """For each piece of the body, the number of bytes up to its end, and the milliseconds until it arrived."""
    ms: float
    problem: str = ""
    """A description of what went wrong with the connection; empty if nothing did."""
    may_have_arrived: bool = True
    """Whether the request may have reached the server. False only if no connection was made."""

    @property
    def event(self) -> ProviderResponse:
        """The answer as an event for the state machine."""
        return ProviderResponse(self.response, self.judgement, self.ask.number, live=True)


class Observer:
    """Receives everything that a live source sends and receives, to record or show it.

    This base class does nothing. If several tasks share a source, their events interleave; the number of the exchange
    distinguishes them.
    """

    def on_request(self, ask: LiveRequest) -> None:
        """A request is about to leave."""

    def on_head(self, number: int, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """The status and headers of an answer have arrived."""

    def on_data(self, number: int, data: bytes, ms: float) -> None:
        """A piece of the body has arrived."""

    def on_end(self, answer: LiveResponse) -> None:
        """The answer has ended, or the client aborted it."""

    def on_wait(self, number: int, seconds: float) -> None:
        """The same request will be sent again after this time."""

    def on_tools(self, number: int, results: Sequence[ToolResultPart]) -> None:
        """The calls of this answer were run."""

    def on_interrupt(self, number: int, *, answered: bool) -> None:
        """The keyboard interrupted the run, while this request was under way or after its answer was read. No further
        event follows. The number is -1 if no request had left."""


def _to_each(event: Callable[..., None]) -> Callable[..., None]:
    """The method of `Observers` for an event of an observer."""

    @wraps(event)
    def pass_on(observers: Observers, *words: Any, **named: Any) -> None:
        for each in observers.every:
            getattr(each, event.__name__)(*words, **named)

    return pass_on


class Observers(Observer):
    """An observer that passes every event on to several observers."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self.every = tuple(observers)

    on_request = _to_each(Observer.on_request)
    on_head = _to_each(Observer.on_head)
    on_data = _to_each(Observer.on_data)
    on_end = _to_each(Observer.on_end)
    on_wait = _to_each(Observer.on_wait)
    on_tools = _to_each(Observer.on_tools)
    on_interrupt = _to_each(Observer.on_interrupt)


SHOWN_SILENCE = 2.0
"""The least silence, in seconds, that the description of a broken answer mentions."""
MASK_CONTEXT = 64
"""The number of bytes before a piece that are searched for credentials together with it."""


class ResponseReader:
    """Reads one answer while it arrives: `begin` with its head, `feed` its bytes, `close` it."""

    def __init__(self, request: LiveRequest, server: Server, observer: Observer, redact: Redact | None = None) -> None:
        self._server, self._observer, self._mask = server, observer, Mask(server.secrets, redact)
        self._expected = expected_profile(server, request.request.model)
        hidden = tuple((name, self._mask.text(value)) for name, value in request.headers)
        self.ask = replace(request, headers=hidden, body=self._mask.json(request.body))
        # If the observer takes no data, no piece is masked for it.
        self._on_data = None if getattr(type(observer), "on_data", None) is Observer.on_data else observer.on_data
        self._body: list[bytes] = []
        self._chunks: list[tuple[int, float]] = []
        self._size = 0
        self._status: int | None = None
        self._headers: tuple[tuple[str, str], ...] = ()
        self._problem: DecodeError | None = None
        self.decoder = self._new_decoder()
        self._shown = self._decoded_bytes = b""  # the last bytes that the observer and the decoder got, unmasked
        self._waiting: list[bytes] = []  # pieces that are not decoded yet, and their bytes
        self._unread = 0
        self._last, self._ending, self._last_ms = b"", False, 0.0
        self.event_ms = 0.0  # when the last event came, up to the last one of the format
        observer.on_request(self.ask)

    def begin(self, status: int, headers: Iterable[tuple[str, str]], ms: float = 0.0) -> None:
        """Reads status and headers, which came `ms` after the request was sent."""
        self._status, self._last_ms = status, ms
        self._headers = tuple((name, self._mask.text(value)) for name, value in headers)
        self.decoder = self._new_decoder()
        self._observer.on_head(self.ask.number, status, self._headers)

    def feed(self, data: bytes, ms: float) -> bool:
        """Reads the next bytes, received `ms` after the request was sent; False if there are too many of them."""
        self._last_ms = ms
        over, frame = self.decoder.is_over, self.decoder.frame
        self._take(self._mask.feed(data), ms)
        if not over and self.decoder.frame is not frame:
            self.event_ms = ms
        return self._size <= MOST_BYTES

    def silence_until(self, ms: float) -> str:
        """Describes how long the server was silent before the answer ended; empty if that was short."""
        seconds = (ms - self._last_ms) / 1000
        return f"was silent for {seconds:.0f} s, and then " if seconds >= SHOWN_SILENCE else ""

    def close(self, end: TransportEnd, ms: float, problem: str = "", may_have_arrived: bool = True) -> LiveResponse:
        """Judges the answer as far as it arrived; `may_have_arrived` is about the request, as in `LiveResponse`."""
        self._take(self._mask.flush(), ms)
        self._decode()
        if self._size > MOST_BYTES:
            end, problem = TransportEnd.ABORTED, f"more than {MOST_BYTES:,} bytes came"
        self._body = [body := b"".join(self._body)]  # the pieces are freed before the answer is decoded
        request = self.ask.request
        # The answer itself may identify the server; a port or a model was only a guess.
        chosen = self._expected if self._server.profile is not None else choose(
            self._server.api, self.ask.url, self._headers, body, request.model)
        response = self._mask.response(self._close_decoder(chosen, body, end))
        if problem:
            problem = self._mask.text(problem)
            broken = Finding(f"transport.{end.value}", Severity.WARNING, problem)
            response = replace(response, findings=(*response.findings, broken))
        judged = judge(response, request, chosen.profile, native_reading(response, chosen.profile))
        answer = LiveResponse(self.ask, response, judged, chosen, self._status, self._headers, body,
                              tuple(self._chunks), ms, problem, may_have_arrived)
        self._observer.on_end(answer)
        return answer

    def _take(self, data: bytes, ms: float) -> None:
        if not data:
            return
        self._size += len(data)
        self._unread += len(data)
        self._chunks.append((self._size, ms))
        self._waiting.append(data)
        if self._on_data is not None:
            self._on_data(self.ask.number, self._mask.mask_credentials(data, self._shown), ms)
            self._shown = (self._shown + data)[-MASK_CONTEXT:]
        if not self._ending:
            window = self._last + data if self._last else data
            # A mark may be split between two pieces, but holds no line break.
            self._last = b"" if data[-1] == LINE_END else window[-LONGEST_MARK:]
            for mark in self.decoder.closing:
                if mark in window:
                    self._ending = True
        if self._ending or self._unread >= DECODE_SIZE:
            self._decode()

    def _decode(self) -> None:
        """Decodes the buffered bytes. Until the end of the answer only its end mark matters, so decoding is delayed and
        done in large parts."""
        came = b"".join(self._waiting)
        data = self._mask.mask_credentials(came, self._decoded_bytes)
        self._decoded_bytes = (self._decoded_bytes + came)[-MASK_CONTEXT:]
        self._body.append(data)
        self._waiting, self._unread = [], 0
        if data and self._problem is None:
            try:
                self.decoder.feed(data)
            except DecodeError as why:
                self._problem = why

    def _new_decoder(self) -> Any:
        request = self.ask.request
        return decoder(self._server.api, http_status=self._status, headers=self._headers, n=request.n,
                       background=request.background, words=self._expected.profile.words)

    def _close_decoder(self, choice: ProfileChoice, body: bytes, end: TransportEnd) -> ChatResponse:
        request = self.ask.request
        try:
            if self._problem is not None:
                raise self._problem
            # A server other than the expected one may have stop words of its own: then the body is decoded again.
            if choice.profile.words == self._expected.profile.words:
                response: ChatResponse = self.decoder.close(end)
                return response
            return decode_response(self._server.api, body, http_status=self._status, headers=self._headers, n=request.n,
                          background=request.background, words=choice.profile.words, end=end)
        except DecodeError as why:
            error = ProviderError(f"not a response of {self._server.api}: {why.message}", UNREADABLE)
            stop = StopReason(Stop.ERROR, None, "fatal")
            return ChatResponse(self._server.api, stop_reason=stop, http_status=self._status, error=error,
                                transport_end=end, size=len(body))


# -- how long an answer is waited for, and whether the same request is sent again -----------------------------------


@dataclass(frozen=True, slots=True)
class Retries:
    """When a request is repeated, and how often.

    It is repeated if no answer arrived, or an answer broke before any of it was visible. The machine decides the rest.

    Args:
        most: how often one request is sent again, at most.
        longest: the longest wait in seconds. If a server asks for a longer one, the request is not sent again.
        first: the seconds before the first retry if the server names no time. They double with each retry.
    """

    most: int = 3
    longest: float = 60.0
    first: float = 1.0

    def __post_init__(self) -> None:
        if type(self.most) is not int or self.most < 0:
            raise CallerError(f"most: {self.most!r} is not a whole number from 0")
        check_seconds(self, ("longest", "first"))

    def wait(self, answer: LiveResponse) -> float | None:
        """Returns the seconds until the request is repeated; None if it is not."""
        attempt = answer.ask.attempt
        if attempt >= self.most or not retryable(answer):
            return None
        server_wait = retry_after(answer.headers)
        wait = min(self.first * 2**attempt, self.longest) if server_wait is None else server_wait
        return wait if wait <= self.longest else None


def retry_after(headers: Iterable[tuple[str, str]]) -> float | None:
    """The seconds that a server asks the client to wait, infinite ones too; None if it does not say. A date counts from
    the answer's own date."""
    # The first of several counts, as in the quota that is reported.
    fields = {name.lower(): value.strip() for name, value in reversed(tuple(headers))}
    # The more precise one first, as the openai SDK reads them.
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(fields[name]) / unit
        except (KeyError, ValueError):
            continue
        if seconds >= 0:  # false for `nan`, which float() reads
            return seconds
    try:
        until = parsedate_to_datetime(fields["retry-after"]) - parsedate_to_datetime(fields["date"])
    except (KeyError, ValueError, TypeError, OverflowError):  # OverflowError: a year or an hour of twenty digits
        return None
    return max(0.0, until.total_seconds())


def retryable(answer: LiveResponse) -> bool:
    """Whether the request may be repeated: another attempt may succeed, and nothing is shown or run twice."""
    if answer.status is None:
        lost = answer.response.transport_end in BREAKS
        return lost and not (answer.may_have_arrived and is_stored(answer.ask.request))  # the server may have stored it
    if answer.status >= 400:
        return answer.status in RETRYABLE_STATUS
    # A redirect is not followed, so a second attempt would be redirected again.
    return answer.status < 300 and is_broken(answer) and showed_nothing(answer) and not is_stored(answer.ask.request)


def is_broken(answer: LiveResponse) -> bool:
    """Whether an answer began and did not reach its end, and the client did not abort it."""
    response = answer.response
    if response.transport_end is TransportEnd.ABORTED:
        return False
    if response.error is not None and response.error.type == UNREADABLE:
        return answer.body.lstrip()[:1] in (b"{", b"[", b"")  # JSON that was cut, not a page of a gateway
    if response.error is not None:
        return response.error.retryable
    blocked = response.stop_reason.normalized is Stop.SAFETY_BLOCKED  # a prompt that is blocked has no stop word
    if response.saw_stop_reason or response.saw_done or blocked or answer.judgement.cap_reached:
        return False  # it reached its end or its budget
    return response.streaming or response.transport_end is not TransportEnd.EOF or not is_json(answer.body)


def showed_nothing(answer: LiveResponse) -> bool:
    """Whether an answer produced no visible output and started no tool of the server. A whole body is visible only when
    it is complete. If the request offers tools of the server, it counts as visible, because they may have run."""
    response, request = answer.response, answer.ask.request
    if response.refusal:
        return False
    if not response.streaming and any(tool.kind is CallKind.SERVER for tool in request.tools):
        return False
    if response.server_calls or any(type(part) is OpaquePart for part in response.parts):
        return False
    return not response.streaming or not (response.text or "").strip()


def is_stored(request: Request) -> bool:
    """Whether the server stores the request, so that repeating it would store it twice."""
    extra = request.extra
    return bool(request.background or request.previous_id or extra.get("store") is True or extra.get("conversation"))


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long a client waits for a server, in seconds.

    Args:
        connect: the longest time for making a connection.
        silence: the longest time before the first piece of an answer, and between two pieces.
        whole: the longest time for one answer. With a caller's client without an event loop it is only checked after
            each piece of the body; until the head has arrived, `silence` is the only limit.
        poll: the time between two requests for a response that is made in the background.
        after_end: the time for which a stream is still read after the last event of its format. What arrives then is
            kept, and the answer is whole in any case. A caller's client without an event loop closes at once.
        after_stop: the longest silence after a stop word or an error before the last event, or before a checksum.
    """

    connect: float = 10.0
    silence: float = 120.0
    whole: float = 1800.0
    poll: float = 2.0
    after_end: float = 0.25
    after_stop: float = 10.0

    def __post_init__(self) -> None:
        check_seconds(self, ("connect", "silence", "whole", "poll", "after_end", "after_stop"))


@dataclass(frozen=True, slots=True)
class Connection:
    """How to connect to a server: timeouts, retries and the URL of a proxy. If `proxy` is None, the environment decides
    (HTTPS_PROXY, NO_PROXY…), and requests to this machine use no proxy."""

    timeouts: Timeouts = field(default_factory=Timeouts)
    retries: Retries = field(default_factory=Retries)
    proxy: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_kinds(("timeouts", self.timeouts, Timeouts), ("retries", self.retries, Retries),
                    ("proxy", self.proxy or "", str))
