"""The provider in a thread of its own, for tests: `with serving("cut-call") as provider: …`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from inspector.provider.app import application
from inspector.provider.asked import Seen
from inspector.provider.listening import bases
from inspector.provider.reading import story_of
from inspector.provider.story import Story
from loop_core.errors import CallerError

Given = Story | str | Mapping[str, Any]
"""A scenario: one that was read, a name or a path, or what a file would hold."""


class Provider:
    """A running provider."""

    def __init__(self, url: str, stories: Sequence[Story], seen: list[Seen]) -> None:
        self.url = url
        """Its address, without a path."""
        self.stories = tuple(stories)
        self.seen = seen
        """Every request, in the order in which they were answered."""

    @property
    def bases(self) -> Mapping[str, str]:
        """Wire format -> the base URL, as the official SDKs take it."""
        return bases(self.url)


@contextmanager
def serving(
    *scenarios: Given, profile: str | None = None, pace: float = 1.0, port: int = 0, cors: str | None = None
) -> Iterator[Provider]:
    """A provider on this machine alone that plays these scenarios (all that are shipped, where none is given).

    It ends with the block. Several are told apart by the `model` that a request names. Waits are multiplied by `pace`.
    Pages of the origin `cors` may read the answers.

    Raises:
        LoopError: a scenario or the profile cannot be used, or the port is taken.
    """
    stories = story_of(scenarios)
    seen: list[Seen] = []
    app = application(stories, profile=profile, pace=pace, seen=seen, cors=cors)
    loop = asyncio.new_event_loop()
    started: list[int | OSError] = []
    ready = threading.Event()
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)

    async def start() -> None:
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", port).start()
            started.append(runner.addresses[0][1])
        except OSError as why:
            started.append(why)

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(start())
        ready.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=run, name="scripted provider", daemon=True)
    thread.start()
    ready.wait()
    try:
        found = started[0]
        if isinstance(found, OSError):
            raise CallerError(f"127.0.0.1:{port}: cannot be listened on: {found.strerror or found}") from None
        yield Provider(f"http://127.0.0.1:{found}", stories, seen)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
