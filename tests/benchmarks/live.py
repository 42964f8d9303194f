"""A live turn whose events arrive one by one: against a client that only reads them, and against the SDKs' helpers.

The server is a process of its own, on the loopback. It flushes every event singly and lets some time pass before the
next, so that each is read alone, as a model's are; it does not sleep meanwhile, since what a processor costs that wakes
up differs from run to run by more than what is measured. What counts is the CPU time of this process.

    python live.py serve        the server: prints its port, and answers until it is ended
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

PAUSE = 0.0001
"""Seconds between two events: twice what reading one costs."""
ROUNDS = 12
PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
    "gemini_generate": "/v1beta/models/m:streamGenerateContent",
    "ollama_chat": "/api/chat",
}
KEY = "sk-no-such-key-0123456789"


def events(api: str) -> list[bytes]:
    """The events of a stream of about 3,000."""
    from streams import STREAMS

    gap = b"\n" if api == "ollama_chat" else b"\n\n"
    return [part + gap for part in STREAMS[api]().split(gap) if part]


# -- the server ------------------------------------------------------------------------------------------------------


def serve() -> None:
    """Answers one connection after the other; the path says in which format."""
    made = {path: [b"%x\r\n%b\r\n" % (len(each), each) for each in events(api)] for api, path in PATHS.items()}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):  # a client may go before the end: it has what it asked for
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                answer(connection, made)


def answer(connection: socket.socket, made: dict[str, list[bytes]]) -> None:
    head, _, body = connection.recv(1 << 16).partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    length = next(int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length:"))
    while len(body) < length:
        body += connection.recv(1 << 16)
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"
                       b"connection: close\r\n\r\n")
    for chunk in made[lines[0].split()[1].partition("?")[0]]:
        connection.sendall(chunk)
        end = time.perf_counter() + PAUSE
        while time.perf_counter() < end:
            pass
    connection.sendall(b"0\r\n\r\n")


@contextlib.contextmanager
def server() -> Iterator[str]:
    """The address of a server that is there for as long as the block."""
    with subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


# -- the clients -----------------------------------------------------------------------------------------------------


def report() -> Iterator[object]:
    """A turn in each format, without and with a recorder, then the SDKs."""
    from measure import Line, best, milliseconds

    with server() as url, tempfile.TemporaryDirectory() as folder:
        for api, path in PATHS.items():
            took = best({"bare": bare(url + path), "turn": turn(url, api), "recorded": turn(url, api, folder)}, ROUNDS)
            yield Line(f"a live turn of {api} ÷ httpx", took["turn"] / took["bare"], most=1.5,
                       note=milliseconds(took["turn"], took["bare"]))
            yield Line(f"recorded, of {api} ÷ httpx", took["recorded"] / took["bare"],
                       note=milliseconds(took["recorded"], took["bare"]))
    yield from _above("openai", "openai_chat", openai_helper)
    yield from _above("anthropic", "anthropic_messages", anthropic_helper)


def bare(url: str) -> Callable[[], object]:
    """httpx reading the stream, and nothing else."""
    import httpx

    client = httpx.Client(timeout=60)

    def run() -> int:
        with client.stream("POST", url, content=b"{}") as response:
            return sum(len(data) for data in response.iter_bytes())

    return run


def turn(url: str, api: str, folder: str | None = None) -> Callable[[], object]:
    """A whole turn of ours, which ends where it would run the streamed call; recorded where a folder is given."""
    from inspector.live.recorder import Recorder
    from inspector.sessions import redact
    from loop_core.client.address import Server
    from loop_core.client.transport import Live
    from loop_core.turn.limits import Limits
    from loop_core.turn.loop import Plan, run

    target = Server(api, f"{url}/v1" if api.startswith("openai") else url, key=KEY)
    path = Path(folder or ".") / f"{api}.jsonl"

    def run_turn() -> object:
        with contextlib.ExitStack() as stack:
            recorder = None
            if folder is not None:
                path.unlink(missing_ok=True)
                recorder = Recorder(path)
                stack.callback(recorder.close)
            source = stack.enter_context(Live(target, recorder, redact=redact.body))
            made = run("t", _request(api), source, Plan(Limits(max_tool_steps=0)))
        ended = made.steps[-1].turn
        if ended.evaluation is None or ended.evaluation.response.usage is None:
            raise RuntimeError(f"{api}: the answer was not read: {ended.notice}")
        return made

    return run_turn


def _request(api: str) -> Any:
    from loop_core.values import Message, Request, Role, TextPart

    return Request(api, (Message(Role.USER, (TextPart("x"),)),), "m", max_tokens=4_096, stream=True)


# -- what is done with the pieces, whoever reads them ----------------------------------------------------------------


def _above(name: str, api: str, make: Callable[[Any], Callable[[], object]]) -> Iterator[object]:
    """What we do with the pieces, against what an SDK's helper does with them above the HTTP client that it uses."""
    from measure import Line, Skip, best, milliseconds

    title = f"above the transport, {api}: ours ÷ the {name} SDK"
    try:
        try:
            import httpx2 as http
        except ImportError:
            import httpx as http  # the SDKs' earlier releases
        client = _client(http, events(api))
        helper = make(client)
    except ImportError as why:
        yield Skip(title, f"not installed ({why}); pip install '.[sdks]'")
        return

    def read() -> int:
        with client.stream("POST", "http://localhost/", content=b"{}") as response:
            return sum(len(data) for data in response.iter_bytes())

    took = best({"ours": our_reader(api), "theirs": helper, "read": read}, 8)
    theirs = took["theirs"] - took["read"]
    yield Line(title, took["ours"] / theirs, most=0.1, note=milliseconds(took["ours"], theirs))


def _client(http: Any, pieces: Sequence[bytes]) -> Any:
    """A client that is answered with these pieces, one by one."""

    class Stream(http.SyncByteStream):  # type: ignore[misc]
        def __iter__(self) -> Iterator[bytes]:
            return iter(pieces)

    def respond(request: object) -> Any:
        return http.Response(200, headers={"content-type": "text/event-stream"}, stream=Stream())

    return http.Client(transport=http.MockTransport(respond))


def our_reader(api: str) -> Callable[[], object]:
    """Masked, redacted, decoded and judged, piece by piece."""
    from inspector.sessions import redact
    from loop_core.client.address import Server
    from loop_core.client.exchange import Observer, ResponseReader
    from loop_core.client.outgoing import live_request
    from loop_core.turn.machine import begin
    from loop_core.values import TransportEnd

    target, pieces = Server(api, "http://127.0.0.1:9", key=KEY), events(api)
    _, (send,) = begin("t", _request(api))
    asked = live_request(target, _request(api), send, 0)

    def run() -> object:
        hearing = ResponseReader(asked, target, Observer(), redact.body)
        hearing.begin(200, [("content-type", "text/event-stream")])
        started = time.monotonic()
        for piece in pieces:
            if not hearing.feed(piece, round((time.monotonic() - started) * 1000, 3)):
                break
        return hearing.close(TransportEnd.EOF, 1.0)

    return run


def openai_helper(client: Any) -> Callable[[], object]:
    """`client.chat.completions.stream(...)` to its final completion."""
    import openai

    chat = openai.OpenAI(api_key="none", base_url="http://localhost/v1", http_client=client).chat.completions

    def run() -> object:
        with chat.stream(model="m", messages=[{"role": "user", "content": "x"}]) as stream:
            return stream.get_final_completion()

    return run


def anthropic_helper(client: Any) -> Callable[[], object]:
    """`client.messages.stream(...)` to its final message."""
    import anthropic

    messages = anthropic.Anthropic(api_key="none", base_url="http://localhost", http_client=client).messages

    def run() -> object:
        with messages.stream(model="m", max_tokens=4_096, messages=[{"role": "user", "content": "x"}]) as stream:
            return stream.get_final_message()

    return run


if __name__ == "__main__" and sys.argv[1:] == ["serve"]:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    serve()
