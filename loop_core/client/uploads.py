"""Reads an answer that comes while its request is still being sent, on an event loop.

A server may refuse a large request (413) before it has read all of it, and close the connection. asyncio throws away
what has arrived on a connection to which it can write no longer, so the answer must be read meanwhile. Without an event
loop the system keeps it, unless the connection is encrypted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import httpcore

PIECE = 65_536
"""The number of bytes that are read at a time while a request is sent."""
INTERIM = b"HTTP/1.1 1"
"""The beginning of an answer that is only announced (100 Continue, 103 Early Hints): the request is still wanted."""


class ReadingStream(httpcore.AsyncNetworkStream):
    """A connection on which whatever arrives is read while something is sent."""

    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner
        self._early: asyncio.Task[bytes] | None = None

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """The bytes that came while something was sent, else the next ones."""
        if self._early is None:
            return await self._inner.read(max_bytes, timeout)
        done, _ = await asyncio.wait({self._early}, timeout=timeout)
        if not done:
            raise httpcore.ReadTimeout
        early, self._early = self._early, None
        return early.result()

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Sends the bytes. Raises `WriteError`, behind which httpcore reads the answer, if that has begun."""
        if self._early is None:
            self._early = asyncio.ensure_future(self._inner.read(PIECE))
        sending = asyncio.ensure_future(self._inner.write(buffer, timeout))
        try:
            await asyncio.wait({sending, self._early}, return_when=asyncio.FIRST_COMPLETED)
            if not sending.done() and not self._answered():
                await asyncio.wait({sending})
            if not sending.done():
                raise httpcore.WriteError
            sending.result()
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    def _answered(self) -> bool:
        """Whether a final answer has begun, or the connection has ended."""
        early = self._early
        if early is None or not early.done() or early.cancelled():
            return False
        return early.exception() is not None or not early.result().startswith(INTERIM)

    async def aclose(self) -> None:
        """Closes the connection."""
        if self._early is not None:
            self._early.cancel()
            await asyncio.gather(self._early, return_exceptions=True)
        await self._inner.aclose()

    async def start_tls(self, ssl_context: Any, server_hostname: str | None = None,
                        timeout: float | None = None) -> httpcore.AsyncNetworkStream:
        """The same connection, encrypted."""
        return ReadingStream(await self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        """What is known of the connection."""
        return self._inner.get_extra_info(info)


class ReadingBackend(httpcore.AsyncNetworkBackend):
    """Makes connections of the kind above."""

    def __init__(self, inner: httpcore.AsyncNetworkBackend) -> None:
        self._inner = inner

    async def connect_tcp(self, *words: Any, **named: Any) -> httpcore.AsyncNetworkStream:
        """A connection to a host."""
        return ReadingStream(await self._inner.connect_tcp(*words, **named))

    async def sleep(self, seconds: float) -> None:
        """Waits for this time."""
        await self._inner.sleep(seconds)


def read_while_sending(transports: Iterable[Any]) -> None:
    """Lets the connections of these transports of httpx read while they send. httpx has no setting for it; where its
    insides are others, an answer that comes early is lost as before."""
    for transport in transports:
        with suppress(AttributeError):
            pool = transport._pool
            pool._network_backend = ReadingBackend(pool._network_backend)
