"""A server on the event loop of the test, for hundreds of answers that break at a given byte. It plays no provider."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from loop_core.client.exchange import LiveResponse, Observer
from loop_core.client.outgoing import LiveRequest


class Line:
    """The server's end of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, chunked: bool) -> None:
        self.reader, self.writer, self.chunked = reader, writer, chunked

    async def head(self, kind: str) -> None:
        framing = "transfer-encoding: chunked" if self.chunked else "connection: close"
        self.writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{framing}\r\n\r\n".encode())
        await self.writer.drain()

    async def send(self, data: bytes) -> None:
        if data:
            self.writer.write(b"%x\r\n%s\r\n" % (len(data), data) if self.chunked else data)
            await self.writer.drain()

    def finish(self) -> None:
        """The end of the body as HTTP says it, and a clean end of the connection."""
        if self.chunked:
            self.writer.write(b"0\r\n\r\n")
        self.writer.close()

    def leave(self) -> None:
        """A clean end of the connection, wherever the body is."""
        self.writer.close()

    def reset(self) -> None:
        """The connection is torn."""
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def wait_closed(self) -> None:
        """Waits until the client has closed its end."""
        try:
            while await self.reader.read(65536):
                pass
        except ConnectionError:
            return


Play = Callable[[Line], Awaitable[None]]


@dataclass
class Loopback:
    """Answers in order; the last one answers all that follow."""

    url: str = ""
    plays: list[Play] = field(default_factory=list)
    chunked: bool = False
    asked: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next((int(row.partition(b":")[2]) for row in head.lower().split(b"\r\n")
                           if row.startswith(b"content-length:")), 0)
            await reader.readexactly(length)
            play = self.plays[min(self.asked, len(self.plays) - 1)]
            self.asked += 1
            await play(Line(reader, writer, self.chunked))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client went away: what it made of that is the test's matter
        finally:
            writer.close()


@asynccontextmanager
async def loopback() -> AsyncIterator[Loopback]:
    made = Loopback()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        await server.wait_closed()


class ReadCounter(Observer):
    """Lets a server wait until the client has what was sent: a reset throws away what was not read yet."""

    def __init__(self) -> None:
        self.heard: list[LiveResponse] = []
        self.asks: list[LiveRequest] = []
        self.got = -1
        """Bytes of the body at hand; -1 before its head."""
        self._more = asyncio.Event()

    def on_request(self, ask: LiveRequest) -> None:
        self.asks.append(ask)
        self.got = -1

    def on_head(self, number: int, status: int, headers: object) -> None:
        self.got = 0
        self._more.set()

    def on_data(self, number: int, data: bytes, ms: float) -> None:
        self.got += len(data)
        self._more.set()

    def on_end(self, heard: LiveResponse) -> None:
        self.heard.append(heard)
        self._more.set()

    async def until(self, size: int) -> None:
        """Waits until so many bytes of the body are there; 0: its head."""
        while self.got < size:
            self._more.clear()
            await asyncio.wait_for(self._more.wait(), 20)
