"""Servers that answer before they have read the request: the answer is read, and is no broken connection."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from loop_core import Answer, Server, aask, ask, stream
from loop_core.client.exchange import Connection, Retries, Timeouts

LINE = Connection(Timeouts(connect=5, silence=10, whole=30), Retries(most=0))
LARGE = "x" * 6_000_000
TOO_LARGE = json.dumps({"error": {"message": "the request is too large", "type": "request_too_large"}}).encode()
WHOLE = json.dumps({"id": "1", "object": "chat.completion", "model": "m", "choices": [
    {"index": 0, "message": {"role": "assistant", "content": "Read."}, "finish_reason": "stop"}]}).encode()


def head(status: str, body: bytes) -> bytes:
    return (f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
            "connection: close\r\n\r\n").encode() + body


def refuse(connection: socket.socket) -> None:
    connection.recv(1_000)
    connection.sendall(head("413 Content Too Large", TOO_LARGE))


def refuse_and_wait(connection: socket.socket) -> None:
    refuse(connection)
    threading.Event().wait(8)


def announce_and_read(connection: socket.socket) -> None:
    data = connection.recv(1_000)
    connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    while not data.endswith(b"}"):
        data = data[-1:] + connection.recv(1_000_000)
    connection.sendall(head("200 OK", WHOLE))


@contextmanager
def listening(play: Callable[[socket.socket], None]) -> Iterator[str]:
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            play(connection)

    threading.Thread(target=serve, daemon=True).start()
    with listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def asked(server: Server) -> Answer:
    return ask(server, LARGE, line=LINE)


def asked_on_a_loop(server: Server) -> Answer:
    return asyncio.run(aask(server, LARGE, line=LINE))


def streamed(server: Server) -> Answer:
    with stream(server, LARGE, line=LINE) as pieces:
        "".join(pieces)
        return pieces.answer


@pytest.mark.parametrize(("way", "play"), [
    (asked, refuse), (asked_on_a_loop, refuse), (streamed, refuse), (asked_on_a_loop, refuse_and_wait),
])
def test_a_refusal_of_a_large_request_is_read_while_it_is_sent(
    way: Callable[[Server], Answer], play: Callable[[socket.socket], None],
) -> None:
    with listening(play) as url:
        answer = way(Server("openai_chat", url, model="m"))
    assert answer.terminal == "error"
    assert answer.notice == "No answer came: the provider reported: HTTP 413, the request is too large."


@pytest.mark.parametrize("way", [asked, asked_on_a_loop, streamed])
def test_an_answer_that_is_only_announced_does_not_end_the_upload(way: Callable[[Server], Answer]) -> None:
    with listening(announce_and_read) as url:
        answer = way(Server("openai_chat", url, model="m"))
    assert (answer.terminal, answer.text) == ("completed", "Read.")
