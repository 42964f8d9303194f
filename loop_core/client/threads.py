"""Waits on an event loop: for a function in a thread of its own, which can be given up, and at most so long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from threading import Thread
from typing import Any


async def run_in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function returns or raises.

    Not `asyncio.to_thread`: the end of the loop, and of the program, waits for its threads, so that a tool that hangs
    would hold up whoever has given it up.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = copy_context()

    def end(result: Any, why: BaseException | None) -> None:
        if not ended.done():  # whoever waited has given it up
            ended.set_result((result, why))

    def run() -> None:
        result, raised = None, None
        try:
            result = context.run(function, *arguments)
        except BaseException as why:  # noqa: BLE001  (raised again where it is waited for)
            raised = why
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(end, result, raised)

    Thread(target=run, name="loop_core", daemon=True).start()
    result, raised = await ended
    if raised is not None:
        raise raised
    return result


class WholeTimeoutError(Exception):
    """The longest time for one answer is over."""


@asynccontextmanager
async def at_most(seconds: float) -> AsyncIterator[None]:
    """Ends what runs inside after so many seconds.

    Raises:
        WholeTimeoutError: the time is over. A `TimeoutError` of an observer, whose disk is slow, is no such error.
    """
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except TimeoutError:
        if limit.expired():
            raise WholeTimeoutError from None
        raise
