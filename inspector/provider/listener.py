"""Listens for connections for both servers (the app in a browser, the scripted provider): address, certificate, signals
that end them, and a log that limits repeated messages."""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from ssl import PROTOCOL_TLS_SERVER, SSLContext, SSLError
from typing import Any, TypeAlias

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from loop_core.errors import CallerError

Certificate: TypeAlias = SSLContext


def load_certificate(cert: str, key: str | None) -> Certificate:
    """A certificate chain and its private key, from files. Raises `CallerError` if it cannot be used."""
    certificate = SSLContext(PROTOCOL_TLS_SERVER)
    try:
        certificate.load_cert_chain(cert, key, password=lambda: "")  # never asks for a password
    except SSLError as why:
        problem = f"no certificate with its unencrypted key, in PEM ({why.reason or 'unknown'})"
        raise CallerError(f"--cert {cert}: {problem}") from None
    except OSError as why:
        raise CallerError(f"--cert {cert}{f', --key {key}' if key else ''}: {why.strerror or why}") from None
    return certificate


# -- Problems, reported in single, rare lines, so that a client cannot fill a log -------------------------------------


LOG_PERIOD = 60.0
"""The number of seconds between two lines of the same kind."""
NO_ROOM_ERRORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
MALFORMED, FAILED, CROWDED = "malformed", "failed", "crowded"
"""The kinds of messages: a malformed request, a request without an answer, no room for a further connection."""


class ProblemLog:
    """Logs each kind of message at most once a minute; the next message has the number of those left out."""

    def __init__(self, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._tell, self._clock = tell, clock
        self._since: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def __call__(self, kind: str, line: str) -> None:
        """Logs the message, or counts it."""
        now = self._clock()
        if kind in self._since and now - self._since[kind] < LOG_PERIOD:
            self._left_out[kind] = self._left_out.get(kind, 0) + 1
            return
        more = self._left_out.pop(kind, 0)
        self._since[kind] = now
        self._tell(f"{' '.join(line.split())[:200]}{f' ({more:,} more since the last line)' if more else ''}")

    def log_exception(self, why: BaseException | None, otherwise: str) -> None:
        """Logs an exception."""
        if isinstance(why, OSError) and why.errno in NO_ROOM_ERRORS:
            self(CROWDED, f"no room for a further connection or file: {why.strerror}; it goes on when one ends")
        elif isinstance(why, (HttpProcessingError, web.RequestPayloadError)):
            preface = "PRI/Upgrade" in str(why)  # the parser's name for the first line of HTTP/2
            self(MALFORMED, "a client was refused: it speaks only HTTP/2, and this server only HTTP/1.1" if preface else
                 f"a malformed request was refused: {type(why).__name__}")
        elif why is not None:
            self(FAILED, f"a request could not be answered: {type(why).__name__}: {why}")
        else:
            self(FAILED, otherwise)

    def handle_loop_exception(self, _loop: object, context: Mapping[str, Any]) -> None:
        """The exception handler of the event loop."""
        self.log_exception(context.get("exception"), str(context.get("message", "")))


class ProblemHandler(logging.Handler):
    """Handles aiohttp's log records, whose own lines contain tracebacks."""

    def __init__(self, sparing: ProblemLog) -> None:
        super().__init__(logging.WARNING)
        self._sparing = sparing

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one line, or none."""
        self._sparing.log_exception(record.exc_info[1] if record.exc_info else None, record.getMessage())


# -- Listening -------------------------------------------------------------------------------------------------------


def ending_signal() -> asyncio.Event:
    """An event that SIGINT, SIGTERM and SIGHUP (the terminal was closed) set instead of ending the program."""
    ending = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, ending.set)
    return ending


@asynccontextmanager
async def listening(
    application: web.Application, trouble: ProblemLog, host: str, port: int, *, patience: float, grace: float,
    certificate: Certificate | None = None, **handling: Any,
) -> AsyncIterator[int]:
    """Answers requests within the block, which receives the port. aiohttp closes a connection if no complete request
    head has arrived `patience` seconds after it was opened or after its last answer. At the end, requests in progress
    have `grace` seconds. `handling` goes to aiohttp's request handler. Raises `CallerError` if the server cannot listen
    on the address."""
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    loop.set_exception_handler(trouble.handle_loop_exception)
    log = logging.Logger(__name__, logging.WARNING)  # its records are passed to no other logger
    log.addHandler(ProblemHandler(trouble))
    # No access log, because the first address that a browser opens contains the token.
    runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=grace,
                           keepalive_timeout=patience, logger=log, **handling)
    await runner.setup()
    waits = {} if certificate is None else {"ssl": certificate, "ssl_handshake_timeout": patience}
    try:
        listener = await _listener(runner, host, port, waits)
        try:
            yield listener.sockets[0].getsockname()[1]
        finally:
            listener.close()
    finally:
        await runner.cleanup()
        loop.set_exception_handler(before)


async def _listener(runner: web.AppRunner, host: str, port: int, waits: Mapping[str, Any]) -> asyncio.Server:
    assert runner.server is not None  # noqa: S101  (it was set up)
    try:
        # Not aiohttp's TCPSite, which cannot bound the time of a TLS handshake.
        return await asyncio.get_running_loop().create_server(runner.server, host, port, **waits)
    except OSError as why:
        if why.errno == errno.EADDRINUSE:
            raise CallerError(f"port {port} is in use; port 0 picks a free port") from None
        raise CallerError(f"cannot listen on {host}, port {port}: {why.strerror or why}") from None


# -- Breaking a connection ---------------------------------------------------------------------------------------------

ARRIVAL = 0.02
"""Seconds before a connection is reset. A reset discards bytes that are still on their way."""
_LINGER = struct.pack("ii", 1, 0)  # on, 0 s: closing sends a reset at once instead of a FIN (socket(7), SO_LINGER)


async def break_off(http: web.Request, *, hard: bool) -> None:
    """Closes the connection without a proper end of the HTTP body; with `hard` by a reset."""
    transport = http.transport
    if transport is None:
        return
    await asyncio.sleep(ARRIVAL)
    found = transport.get_extra_info("socket")
    if hard and found is not None:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
    # `close` would first send the buffered bytes.
    transport.abort()
