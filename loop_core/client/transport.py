"""Gets live answers over HTTP: the engine's only module with I/O and a clock, and the only one that imports httpx.

`Live` and `AsyncLive` are sources for `run` and `arun`. Both send a request, pass the bytes of its answer to a
`ResponseReader`, and report how the bytes ended. Other modules decide what is sent, what an answer means and when a
request is repeated. The two differ in `await`, and in what ends a wait that is too long.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from loop_core.client.address import SECRET_NAME, Server, loopback, refuse_plain_http
from loop_core.client.exchange import Connection, LiveResponse, Observer, ResponseReader
from loop_core.client.incoming import ChecksumError, ContentDecodeError, Failure, IncomingAnswer, RefusedCodingError
from loop_core.client.mask import Mask, Redact
from loop_core.client.outgoing import LiveRequest, known_ability, live_request_for, with_credentials
from loop_core.client.threads import MOMENT, AfterStopError, Cutter, WholeTimeoutError, at_most, run_in_thread, unless
from loop_core.errors import CallerError, LoopError, check_kinds, check_methods, foreign
from loop_core.turn.continuation import Method
from loop_core.turn.history import Ability
from loop_core.turn.state import Cancel, Event, NotRecorded, RunTools, Send, ToolResults, Turn
from loop_core.turn.tools import Toolbox, ToolRunner, until
from loop_core.values import Message, Request, TransportEnd
from loop_core.wire import wire

_Client = TypeVar("_Client", httpx.Client, httpx.AsyncClient)
RequestRewrite = Callable[[LiveRequest], LiveRequest]
"""A function that changes how a request is written, for example to repeat a recorded request exactly."""


def _client(line: Connection, kind: type[_Client], transport: type[Any], server: Server,
            client: _Client | None) -> _Client:
    """Returns the caller's client, or else an httpx client for this server. Raises `CallerError` if the proxy or the
    file of certificates cannot be used (httpx's message may hold a password, so it is replaced), or if the caller's
    client has credentials of its own, which could neither be masked nor kept from plain http."""
    if client is not None and (client.auth is not None or any(SECRET_NAME.search(name) for name in client.headers)):
        raise CallerError("the client holds credentials of its own (auth, headers): expected them with the Server")
    if client is not None:
        return client
    try:
        return kind(**_options(line, transport, server.base or wire(server.api).home.base))
    except OSError as why:
        problem = f"the certificates cannot be read (SSL_CERT_FILE, SSL_CERT_DIR): {why.strerror or 'no certificate'}"
        raise CallerError(problem) from None
    except ImportError:
        raise CallerError("a SOCKS proxy needs another package: pip install 'httpx[socks]'") from None
    except (httpx.InvalidURL, ValueError):
        raise CallerError("the proxy is not an address (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY): expected "
                          "http://HOST:PORT") from None


def _options(line: Connection, transport: type[Any], base: str) -> dict[str, Any]:
    options: dict[str, Any] = {"verify": _certificates()}
    if line.proxy is not None:
        options["proxy"] = line.proxy
    elif loopback(host := urlsplit(base).hostname or ""):  # a mount for the host overrides the environment's proxy
        options["mounts"] = {f"all://{f'[{host}]' if ':' in host else host}": transport(verify=_certificates())}
    return options


@cache
def _certificates() -> Any:
    """The trusted certificates, read once, as reading them takes longer than a small answer."""
    return httpx.create_ssl_context()


class _Source:
    """The common part of `Live` and `AsyncLive`: the number of requests sent, and the next request."""

    def __init__(
        self, server: Server, observer: Observer | None, toolbox: ToolRunner | None, line: Connection | None,
        redact: Redact | None, rewrite: RequestRewrite | None,
    ) -> None:
        check_kinds(("server", server, Server))
        refuse_plain_http(server)
        self.server, self.line, self._redact, self._rewrite = server, line or Connection(), redact, rewrite
        self.observer: Observer = Observer() if observer is None else observer
        check_methods("observer", self.observer, Observer)
        self.toolbox: ToolRunner = Toolbox() if toolbox is None else toolbox
        check_methods("toolbox", self.toolbox, ToolRunner)
        self.request_count = 0
        """The number of HTTP requests sent so far, which is also the number of the next one."""

    def knows(self, request: Request) -> tuple[Ability, str]:
        """The methods of continuation that the server supports, and its profile."""
        return known_ability(self.server, request)

    def _next_request(self, send: Send, turn: Turn) -> LiveRequest | NotRecorded:
        """The next request, which is numbered when it is sent; the end of the turn if a later request cannot be sent.
        Raises `LoopError` if the first request cannot be sent."""
        try:
            request = live_request_for(self.server, send, turn, self.request_count)
            with foreign():
                return request if self._rewrite is None else self._rewrite(request)
        except LoopError as why:
            return self._unsent(why, turn)

    def _unsent(self, why: LoopError, turn: Turn | None) -> NotRecorded:
        """The end of a turn; raises `why` if no response is judged yet, or if `turn` is None."""
        if not self.request_count or turn is None or turn.evaluation is None:
            raise why
        return self._given_up("The request could not be sent", why)

    def _given_up(self, what: str, why: LoopError) -> NotRecorded:
        return NotRecorded(f"{what}: {self._mask().text(str(why))}.")

    def _mask(self) -> Mask:
        return Mask((*self.server.secrets, *self.server.hidden_words), self._redact)

    @contextmanager
    def _incoming(self, request: LiveRequest) -> Iterator[IncomingAnswer]:
        """A context for reading the answer to a request: an error of httpx, or a cancellation, ends the answer."""
        # Numbered without an `await` in between, so that tasks that share a source never get the same number.
        numbered = replace(request, number=self.request_count)
        self.request_count += 1
        reader = ResponseReader(numbered, self.server, self.observer, self._redact)
        incoming = IncomingAnswer(reader, self.line.timeouts, time.monotonic, FAILURES)
        try:
            yield incoming
        except Exception as why:
            if incoming.in_observer:
                raise  # the observer's own: recording has failed
            incoming.fail(why)
        except (KeyboardInterrupt, asyncio.CancelledError):
            incoming.close(TransportEnd.ABORTED, "cancelled")
            raise

    def _http(self, request: LiveRequest) -> dict[str, Any]:
        """The request for httpx, its key or its signature included."""
        leaves, timeouts = with_credentials(self.server, request), self.line.timeouts
        # Set for each request, since a caller's client might follow a redirect and send the key to another host.
        return {"method": leaves.method, "url": leaves.url, "headers": leaves.headers, "follow_redirects": False,
                "timeout": httpx.Timeout(timeouts.silence, connect=timeouts.connect), "content": leaves.content}

    def _run(self, toolbox: ToolRunner, effect: RunTools, turn: Turn) -> Event:
        try:
            with foreign():
                return toolbox.run(effect, turn)
        except LoopError as why:
            return self._given_up("The tools failed, and may have run in part", why)

    def _masked_results(self, effect: RunTools, turn: Turn, event: Event) -> Event:
        """The results of the whole batch, with secrets masked: a tool may print its environment."""
        if not isinstance(event, ToolResults):
            return event
        mask = self._mask()
        results = effect.all_results(event.results)
        clean = event._replace(results=tuple(part._replace(text=mask.text(part.text)) for part in results))
        self.observer.on_tools(self._exchange_index(turn), clean.results)
        return clean

    def _exchange_index(self, turn: Turn) -> int:
        """The number of the exchange whose calls are run, not always the last; -1 if it was not sent here."""
        index = turn.evaluation.number if turn.evaluation is not None else None
        return index if index is not None and index < self.request_count else -1

    def _retry(self, answer: LiveResponse) -> tuple[LiveRequest, float] | None:
        """The same request once more, and the seconds to wait before it; None if it is not sent again."""
        seconds = self.line.retries.wait(answer)
        if seconds is None:
            return None
        self.observer.on_wait(answer.ask.number, seconds)
        return replace(answer.ask, attempt=answer.ask.attempt + 1, repeats=answer.ask.number), seconds


# A ConnectTimeout is a TimeoutException too, a ProxyError and a ConnectError are TransportErrors.
FAILURES: Sequence[Failure] = (
    Failure(httpx.ConnectTimeout, TransportEnd.TIMEOUT, "no connection to {host} in time", may_have_arrived=False),
    Failure(httpx.TimeoutException, TransportEnd.TIMEOUT, "{host} was silent for {times.silence:g} s"),
    Failure(httpx.ProxyError, TransportEnd.ABORTED, "the proxy wants another user or password to lead to {host}",
            may_have_arrived=False, begins=("407",)),
    Failure(httpx.ProxyError, TransportEnd.RESET, "the proxy does not lead to {host}", may_have_arrived=False),
    Failure(httpx.ConnectError, TransportEnd.RESET, "no connection to {host}: {why}", may_have_arrived=False),
    Failure(RefusedCodingError, TransportEnd.ABORTED, "{host} {why}"),
    Failure(ChecksumError, TransportEnd.DAMAGED, "{host} {why}"),
    Failure(ContentDecodeError, TransportEnd.RESET, "{host} {why}"),
    Failure(httpx.RemoteProtocolError, TransportEnd.RESET, "{host} {silent}broke the connection",
            begins=("Server disconnected", "peer closed", "<ConnectionTerminated", "<StreamReset")),
    Failure(httpx.RemoteProtocolError, TransportEnd.RESET, "{host} sent what cannot be read as HTTP/1.1"),
    Failure(httpx.TransportError, TransportEnd.RESET, "{host} {silent}broke the connection"),
    Failure(WholeTimeoutError, TransportEnd.TIMEOUT, "no end after {times.whole:g} s"),
    Failure(AfterStopError, TransportEnd.TIMEOUT,
            "{host} sent nothing of the answer for {times.after_stop:g} s after its stop word or error"),
    Failure(httpx.InvalidURL, TransportEnd.ABORTED, "{host}: no address to ask: {why}"),  # from a redirect
    Failure(Exception, TransportEnd.ABORTED, "{host}: the HTTP client failed: {foreign}"),  # the caller's client
)
"""The exceptions that end an answer, specific ones before general ones."""


class Live(_Source):
    """Sends requests to a server and waits for the answers, for one run at a time. Close it, or use it as a context.

    A keyboard interrupt is passed on after the observer was called, which closes the recording.
    """

    def __init__(
        self, server: Server, observer: Observer | None = None, toolbox: ToolRunner | None = None,
        line: Connection | None = None, redact: Redact | None = None, rewrite: RequestRewrite | None = None,
        client: httpx.Client | None = None,
    ) -> None:
        """Opens no connection yet.

        Args:
            server: the server that is asked, with its key.
            observer: an `Observer`, which receives everything that is sent and received; None for none.
            toolbox: runs the released calls, such as a `Toolbox`; None for one without tools, which answers each call
                with an error.
            line: timeouts, retries and the proxy; None for the defaults.
            redact: a function that masks further secrets in every byte that is received; None for none. The key of the
                server is masked in any case.
            rewrite: a function that changes how a request is written before it is sent; None for none.
            client: an HTTP client of the caller, who closes it; None for one that is made and closed here.

        Raises:
            CallerError: a key would leave as plain text, or the proxy, the certificates or the client cannot be used.
        """
        super().__init__(server, observer, toolbox, line, redact, rewrite)
        self._own = client is None
        self._client = _client(self.line, httpx.Client, httpx.HTTPTransport, server, client)
        self._cutter = Cutter()

    def respond(self, send: Send, turn: Turn) -> Event:
        """The server's answer; ends the turn if the request cannot be sent.

        Raises:
            LoopError: the first request cannot be sent in this format.
        """
        request = self._next_request(send, turn)
        if isinstance(request, NotRecorded):
            return request
        before = self.request_count
        try:
            if send.method is Method.POLL:
                time.sleep(self.line.timeouts.poll)
            answer: LiveResponse | None = None
            while True:
                try:
                    http = self._http(request)
                except LoopError as why:
                    return self._unsent(why, turn) if answer is None else answer.event
                answer = self._exchange(request, http)
                again = self._retry(answer)
                if again is None:
                    return answer.event
                request, seconds = again
                time.sleep(seconds)
        except KeyboardInterrupt:
            # Nothing was sent since; the previous answer was read.
            self.observer.on_interrupt(self.request_count - 1, answered=self.request_count == before)
            raise

    def _exchange(self, request: LiveRequest, http: dict[str, Any]) -> LiveResponse:
        if self._own:  # a caller's client may use several connections at a time
            http["extensions"] = {"trace": self._cutter.trace}
        with (self._incoming(request) as incoming, self._cutter.after(self.line.timeouts.whole) as within,
              self._client.stream(**http) as response):
            incoming.begin(response.status_code, response.headers.multi_items())
            for data in response.iter_raw():
                if not incoming.take(data) or (incoming.is_over and incoming.body.is_over and not self._own):
                    break
                if incoming.may_be_over:
                    within(incoming.left + MOMENT)
        return incoming.answer()

    def run_tools(self, effect: RunTools, turn: Turn) -> Event:
        """The results of the toolbox."""
        try:
            ran = self._run(self.toolbox, effect, turn)
        except KeyboardInterrupt:
            self.observer.on_interrupt(self._exchange_index(turn), answered=True)
            raise
        return self._masked_results(effect, turn, ran)

    def follow_up(self, turn: Turn) -> tuple[Message, ...]:
        """Nothing: a run is one turn."""
        return ()

    def close(self) -> None:
        """Closes the connections, unless the caller passed the HTTP client."""
        if self._own:
            self._client.close()

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *why: object) -> None:
        self.close()


class AsyncLive(_Source):
    """`Live` on an event loop, for any number of its tasks; `cancel` ends the turns of all of them."""

    def __init__(
        self, server: Server, observer: Observer | None = None, toolbox: ToolRunner | None = None,
        line: Connection | None = None, redact: Redact | None = None, rewrite: RequestRewrite | None = None,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        """The arguments are those of `Live`."""
        super().__init__(server, observer, toolbox, line, redact, rewrite)
        self._own = client is None
        self._client = _client(self.line, httpx.AsyncClient, httpx.AsyncHTTPTransport, server, client)
        self._cancelled = asyncio.Event()

    def cancel(self) -> None:
        """Cancels every turn: pending answers are aborted, and the machine receives `Cancel`."""
        self._cancelled.set()

    async def respond(self, send: Send, turn: Turn, request: LiveRequest | None = None) -> Event:
        """The server's answer; `Cancel` after `cancel`; the end of the turn if a later request cannot be sent.

        Raises:
            LoopError: the first request, or the one given instead of what the effect asks for, cannot be sent.
        """
        leaves = request or self._next_request(send, turn)
        if isinstance(leaves, NotRecorded):
            return leaves
        return await self._unless_cancelled(self._respond(send, leaves, None if request else turn))

    async def run_tools(self, effect: RunTools, turn: Turn) -> Event:
        """The results of the toolbox, which runs in a thread; `Cancel` after `cancel`, which does not wait for it.
        After the wait no further call of the batch is begun."""
        ends: list[bool] = []  # filled by the event loop, read by the tools' thread
        toolbox = until(self.toolbox, lambda: bool(ends))
        try:
            event = await self._unless_cancelled(run_in_thread(self._run, toolbox, effect, turn))
        finally:
            ends.append(True)
        return self._masked_results(effect, turn, event)

    async def follow_up(self, turn: Turn) -> tuple[Message, ...]:
        """Nothing: a run is one turn."""
        return ()

    async def _unless_cancelled(self, work: Coroutine[Any, Any, Event]) -> Event:
        event: Event | None = await unless(self._cancelled, work)
        return Cancel() if event is None else event

    async def _respond(self, send: Send, request: LiveRequest, turn: Turn | None) -> Event:
        if send.method is Method.POLL:
            await asyncio.sleep(self.line.timeouts.poll)
        answer: LiveResponse | None = None
        while True:
            try:
                # A signer may wait for new credentials.
                http = await run_in_thread(self._http, request) if self.server.sign else self._http(request)
            except LoopError as why:
                return self._unsent(why, turn) if answer is None else answer.event
            answer = await self._exchange(request, http)
            again = self._retry(answer)
            if again is None:
                return answer.event
            request, seconds = again
            await asyncio.sleep(seconds)

    async def _exchange(self, request: LiveRequest, http: dict[str, Any]) -> LiveResponse:
        with self._incoming(request) as incoming:
            # While a head never ends, no piece arrives after which the time is checked.
            async with at_most(self.line.timeouts.whole) as within, self._client.stream(**http) as response:
                incoming.begin(response.status_code, response.headers.multi_items())
                async for data in response.aiter_raw():
                    if not incoming.take(data):
                        break
                    if incoming.may_be_over:
                        within(incoming.left + MOMENT)
        return incoming.close(TransportEnd.EOF)  # `at_most` ended a late answer before

    async def aclose(self) -> None:
        """Closes the connections, unless the caller passed the HTTP client."""
        if self._own:
            await self._client.aclose()

    async def __aenter__(self) -> AsyncLive:
        return self

    async def __aexit__(self, *why: object) -> None:
        await self.aclose()
