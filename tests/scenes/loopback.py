"""A server that does exactly what a test says, byte by byte, on loopback. It plays no provider."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest


@dataclass
class Got:
    """One request as it arrived."""

    line: str
    headers: dict[str, str]
    body: bytes
    peer: Any = None
    """Who answers it."""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Peer:
    """The other end of one connection: what an answer of a test does with it."""

    def __init__(self, connection: socket.socket, stop: threading.Event) -> None:
        self.connection, self.stop = connection, stop

    def head(self, status: int = 200, kind: str = "text/event-stream", **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} X", f"content-type: {kind}", "connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send("\r\n".join([*lines, "", ""]).encode())

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def whole(self, status: int, value: Any, **headers: str) -> None:
        self.head(status, "application/json", **headers)
        self.send(json.dumps(value).encode())

    def reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def hold(self, seconds: float = 30) -> None:
        """Keeps the connection open and says nothing."""
        self.stop.wait(seconds)


Answer = Callable[[Peer], None]


@dataclass
class Fake:
    """Answers in order; the last one answers all that follow."""

    url: str
    answers: list[Answer] = field(default_factory=list)
    got: list[Got] = field(default_factory=list)


@pytest.fixture
def fake() -> Iterator[Fake]:
    listener = socket.create_server(("127.0.0.1", 0))
    stop, lock = threading.Event(), threading.Lock()
    made = Fake(f"http://127.0.0.1:{listener.getsockname()[1]}")

    def serve(connection: socket.socket) -> None:
        with connection:
            try:
                got = read(connection)
                if got is None:
                    return
                got.peer = Peer(connection, stop)
                with lock:
                    made.got.append(got)
                    count = len(made.got)
                made.answers[min(count, len(made.answers)) - 1](got.peer)
            except OSError:
                return  # the client went away: what it made of that is the test's matter

    def accept() -> None:
        while not stop.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    acceptor = threading.Thread(target=accept, daemon=True)
    acceptor.start()
    yield made
    stop.set()
    # The thread ends before its socket is closed: else it might accept at the same number, which the listener of the
    # next test gets, and answer that test with the answers of this one.
    socket.create_connection(listener.getsockname()).close()
    acceptor.join()
    listener.close()


def read(connection: socket.socket) -> Got | None:
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    line, *rest = head.decode().split("\r\n")
    headers: dict[str, str] = {}
    for name, _, value in (row.partition(":") for row in rest):
        before = headers.get(name.lower())
        headers[name.lower()] = value.strip() if before is None else f"{before}, {value.strip()}"
    while len(body) < int(headers.get("content-length", 0)):
        body += connection.recv(65536)
    return Got(line, headers, body)
