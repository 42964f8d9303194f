"""The scripted provider's events for a CPU second, beside a bare aiohttp server that writes as many constant chunks.

Both serve from processes of their own, asked turn and turn about over one connection each; what counts is the CPU of
the server, read from its own clock. Linux only.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from measure import Line, Report, Skip

from inspector.provider import Intent, Story
from inspector.provider.place import locate
from inspector.provider.reply import reply_at
from loop_core.client.address import Server, url_of
from loop_core.values import Message, Request, Role, TextPart
from loop_core.wire import FORMATS, wire

ROUNDS = 12
STORY = Story("bench", "a long text", (Intent(text="The queue was saturated for nineteen minutes. " * 800),))
SERVE = """
import sys
sys.path[:0] = [{root!r}, {here!r}]
from serving import STORY
from inspector.provider import serving
with serving(STORY) as provider:
    print(provider.url, flush=True)
    sys.stdin.read()
"""
BARE = """
import asyncio, json, sys
from aiohttp import web

async def answer(request):
    body = json.loads(await request.read())
    response = web.StreamResponse(headers={{"content-type": "text/event-stream"}})
    await response.prepare(request)
    piece = b"x" * body["size"]
    for _ in range(body["count"]):
        await response.write(piece)
    await response.write_eof()
    return response

async def main():
    app = web.Application()
    app.router.add_post("/", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(f"http://127.0.0.1:{{runner.addresses[0][1]}}", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await runner.cleanup()

asyncio.run(main())
"""


class Process:
    """A server in a process of its own."""

    def __init__(self, code: str, stack: ExitStack) -> None:
        here = Path(__file__).resolve().parent
        text = code.format(root=str(here.parents[1]), here=str(here))
        self.process = stack.enter_context(subprocess.Popen(
            [sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        self.connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=60)
        stack.callback(self.connection.close)

    def cpu(self) -> float:
        """CPU seconds so far."""
        return time.clock_gettime((~self.process.pid << 3) | 2)

    def ask(self, path: str, body: Any) -> int:
        """Asks once; the bytes that came."""
        self.connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        return len(self.connection.getresponse().read())


def least(asks: dict[str, tuple[Process, Callable[[], object]]]) -> dict[str, float]:
    """The least CPU seconds of each server for one answer, in rounds that alternate."""
    for _, ask in asks.values():
        ask()
    found = dict.fromkeys(asks, float("inf"))
    for _ in range(ROUNDS):
        for name, (server, ask) in asks.items():
            start = server.cpu()
            ask()
            found[name] = min(found[name], server.cpu() - start)
    return found


def report() -> Report:
    """Every format: an answer that is asked for again, and one that has to be encoded first."""
    if not sys.platform.startswith("linux"):
        yield Skip("serve events", "the CPU clock of another process is read on Linux only")
        return
    with ExitStack() as stack:
        ours, bare = Process(SERVE, stack), Process(BARE, stack)
        for api in FORMATS:
            request = Request(api, (Message(Role.USER, (TextPart("x"),)),), "m", max_tokens=90_000, stream=True)
            made = reply_at(STORY, request, locate(STORY, request), True, None).frames
            size = sum(map(len, made)) // len(made)
            body, path = wire(api).encode_request(request), url_of(Server(api, ours.url), wire(api).path(request))
            place = path.removeprefix(ours.url)
            caps = iter(range(80_000, 90_000))

            def fresh(request: Request = request, api: str = api, place: str = place, caps: Any = caps) -> object:
                return ours.ask(place, wire(api).encode_request(replace(request, max_tokens=next(caps))))

            asks: dict[str, tuple[Process, Callable[[], object]]] = {
                "served": (ours, partial(ours.ask, place, body)),
                "bare": (bare, partial(bare.ask, "/", {"size": size, "count": len(made)})),
                "fresh": (ours, fresh),
            }
            took = least(asks)
            rate = len(made) / took["served"]
            note = f"{len(made):,} events of {size:,} bytes, {rate:,.0f} a CPU second"
            ratio = took["bare"] / took["served"]
            yield Line(f"{api}: events a CPU second ÷ bare aiohttp", ratio, least=0.5, note=note)
            yield Line(f"{api}: the same, each answer encoded anew", took["bare"] / took["fresh"])
