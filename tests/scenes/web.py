"""Small programs that speak the protocol of a tab, a server around one, and what a browser would send to it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, ClientWebSocketResponse, CookieJar
from aiohttp.test_utils import TestServer

from inspector.web.app_server import AppServer
from inspector.web.browser import Entrance

TOKEN, COOKIE = "the-token", "the-cookie"
_BEGIN = """
import json, os, signal, sys, time
def send(kind, data): os.write(1, kind + len(data).to_bytes(4, "big") + data)
def tell(**what): send(b"D", json.dumps(what).encode())
read = sys.stdin.buffer.read
def packets():
    while head := read(5):
        yield head[:1].decode(), read(int.from_bytes(head[1:], "big"))
os.write(1, b"__GANGLION__\\n")
tell(pid=os.getpid(), argv=sys.argv[1:], env={name: os.environ.get(name) for name in (
    "COLUMNS", "ROWS", "COLORFGBG", "STY", "TERM", "TEXTUAL_DRIVER")})
"""
ECHO = _BEGIN + """
for kind, data in packets():
    if kind == "M" and json.loads(data)["type"] == "quit":
        break
    tell(kind=kind, data=data.decode())
"""
"""Tells of itself, then repeats every packet."""
STUBBORN = _BEGIN.replace('os.write(1, b"__', """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
if not child:
    time.sleep(600)
os.write(1, b"__""", 1) + """
tell(child=child)
while True:
    time.sleep(600)
"""
"""Has a child that holds its output, and leaves for nothing but SIGKILL."""
FLOODS = _BEGIN + """
while True:
    send(b"D", b"x" * 60000)
"""
"""Writes faster than anybody reads."""
QUITS = _BEGIN + """
sys.stderr.write("it ends here \\x1b[31m<b>badly</b>\\n")
"""
DELIVERS = _BEGIN + """
send(b"M", json.dumps({"type": "deliver_file_start", "key": "k1", "path": "/x/repört <1>.html",
    "open_method": "browser", "mime_type": "text/html", "encoding": "utf-8", "name": None}).encode())
from textual._binary_encode import dump
parts = [b"<script>1</script>", b"x" * 70000, b""][:int(sys.argv[1])]
for kind, data in packets():
    asked = json.loads(data) if kind == "M" else {"type": ""}
    if asked["type"] == "quit":
        break
    if asked["type"] == "deliver_chunk_request":
        if not parts:
            break
        send(b"P", dump(("deliver_chunk", "k1", parts.pop(0))))
"""
"""Hands a file over in as many parts as its argument says; the third ends it, without it the program does."""


class RunningServer:
    """A running server, and a client that has its cookie."""

    def __init__(self, server: AppServer, at: TestServer, session: ClientSession, said: list[str]) -> None:
        self.server, self.at, self.session, self.said = server, at, session, said

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.at.port}"

    def url(self, path: str) -> str:
        return f"http://{self.host}{path}"

    def headers(self, **changed: str | None) -> dict[str, str]:
        """What the page's own WebSocket sends; None leaves a header out."""
        given = {"Cookie": f"{self.server.cookie}={COOKIE}", "Origin": f"http://{self.host}", **changed}
        return {name.replace("_", "-"): value for name, value in given.items() if value is not None}

    def tab(self, path: str = "/ws/dark?width=100&height=30") -> Any:
        return self.session.ws_connect(self.url(path), headers=self.headers())


@asynccontextmanager
async def serving(
    program: str, *arguments: str, most: int = 4, idle: float = 0.0, clock: Callable[[], float] = time.monotonic,
    until: float = inf,
) -> AsyncIterator[RunningServer]:
    said: list[str] = []
    argv = [sys.executable, "-c", program, *arguments]
    server = AppServer(argv, Entrance(TOKEN, COOKIE, until=until), title="<a> & b", most=most, tell=said.append,
                       idle=idle, clock=clock, environment={})
    async with TestServer(server.application()) as at, ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
        yield RunningServer(server, at, session, said)


async def next_message(socket: ClientWebSocketResponse) -> dict[str, Any]:
    """The next that the program told of itself."""
    while True:
        data = await socket.receive_bytes(timeout=30)
        if data.startswith(b"{"):
            found: dict[str, Any] = json.loads(data)
            return found


async def words(socket: ClientWebSocketResponse) -> list[str]:
    """What the server said until it closed."""
    found = []
    async for message in socket:
        if isinstance(message.data, str):
            word, text = json.loads(message.data)
            if word == "said":
                found.append(text)
    return found


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except OSError:  # ended meanwhile, or a system without it
        return not Path("/proc/self").exists()
    return stat.rpartition(")")[2].split()[0] != "Z"  # one that has ended and that nobody has asked about is none


async def wait_for_end(pid: int, seconds: float = 30) -> bool:
    """Waits until a process has ended."""
    for _ in range(int(seconds / 0.02)):
        if not alive(pid):
            return True
        await asyncio.sleep(0.02)
    return False


async def empty(at: RunningServer, seconds: float = 30) -> None:
    """Waits until no process is left to the server."""
    async with asyncio.timeout(seconds):
        while at.server.tabs:
            await asyncio.sleep(0.02)


# -- the whole program ------------------------------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = str(ROOT / "sample_sessions" / "01-cut-call-and-long-answer.session.jsonl")
INSPECTOR = (sys.executable, "-c", "from inspector.cli import run; run()")


@dataclass
class Program:
    """`inspector serve` as a process, and the address that it printed."""

    process: subprocess.Popen[str]
    url: str

    @property
    def origin(self) -> str:
        return self.url.partition("/?")[0]

    def tabs(self) -> list[int]:
        """The processes of its tabs."""
        pid = self.process.pid
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def outcome(self) -> tuple[int, str]:
        """Its exit code, and what it said on standard error."""
        return self.process.wait(30), self.process.stderr.read() if self.process.stderr else ""


@contextmanager
def program(*arguments: str) -> Iterator[Program]:
    command = [*INSPECTOR, "serve", "--port", "0", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        try:
            assert process.stdout is not None
            yield Program(process, process.stdout.readline().strip())
        finally:
            process.terminate()
            process.wait(30)
