"""Waits that can be cancelled: for a function in a thread, for an answer with a time limit, for the next piece of a
stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import copy_context
from threading import Thread, Timer
from typing import Any

from loop_core.errors import CallerError

MOMENT = 0.002
"""Seconds added to a timer, so that by any clock the time is over when the timer fires."""
CATCH_UP = 0.05
"""Seconds in which a loop that was blocked reads what arrived meanwhile; a busy machine takes several ms."""


def inside_a_loop() -> bool:
    """Whether an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def run_in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Runs a function in a thread of its own; returns what it returns, or raises what it raises. Not
    `asyncio.to_thread`: at their end the loop and the program wait for its threads, so a hanging tool would delay the
    task that cancelled it."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = copy_context()

    def end(result: Any, why: BaseException | None) -> None:
        if not ended.done():  # not if the waiting task was cancelled
            ended.set_result((result, why))

    def run() -> None:
        result, raised = None, None
        try:
            result = context.run(function, *arguments)
        except BaseException as why:  # noqa: BLE001  (raised again where it is waited for)
            raised = why
        with suppress(RuntimeError):  # the loop is closed: no task waits
            loop.call_soon_threadsafe(end, result, raised)

    Thread(target=run, name="loop_core", daemon=True).start()
    result, raised = await ended
    if raised is not None:
        raise raised
    return result


def pieces_in_turn(pieces: AsyncGenerator[str, None]) -> Generator[str, None, None]:
    """The pieces of a stream, each on the same event loop, which runs only while one is awaited. Raises `CallerError`
    if an event loop runs in this thread, and would be stopped meanwhile."""
    if inside_a_loop():
        raise CallerError("an event loop runs here, and a stream would block it: expected astream")
    with asyncio.Runner() as runner:  # one loop for all pieces: a connection belongs to the loop that opened it
        try:
            while (piece := runner.run(_next_piece(pieces))) is not None:
                yield piece
        except GeneratorExit:  # the caller stopped reading; after any other exception the turn is over
            runner.run(pieces.aclose())
            raise


async def _next_piece(pieces: AsyncGenerator[str, None]) -> str | None:
    # a coroutine, as `Runner.run` needs one: `anext` gives only an awaitable
    return await anext(pieces, None)


async def unless(stop: asyncio.Event, work: Coroutine[Any, Any, Any]) -> Any:
    """Returns the result of the work; None if `stop` is set first, which cancels the work. If it is set already, the
    work is not begun: it could run a tool or a paid request."""
    if stop.is_set():
        work.close()
        return None
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return None if stop.is_set() else working.result()
    finally:
        for task in (working, stopping):
            task.cancel()
        # This waits, so that an observer learns how the exchange ended before the turn ends.
        await asyncio.gather(working, stopping, return_exceptions=True)


class WholeTimeoutError(Exception):
    """The longest time for one answer is over."""


class AfterStopError(Exception):
    """The longest silence after a stop word is over."""


@asynccontextmanager
async def at_most(seconds: float) -> AsyncIterator[Callable[[float], None]]:
    """Ends the block after this many seconds, or after as many as the yielded function is called with. Raises
    `WholeTimeoutError` if the time is over. A `TimeoutError` of an observer is passed on, and a loop that was blocked
    first reads what arrived meanwhile."""
    limit, loop = asyncio.timeout(None), asyncio.get_running_loop()
    timers: list[asyncio.TimerHandle] = []

    def within(left: float) -> None:
        for timer in timers:
            timer.cancel()
        limit.reschedule(None)
        timers[:] = [loop.call_later(left, lambda: limit.reschedule(loop.time() + CATCH_UP))]

    try:
        async with limit:
            within(seconds)
            yield within
    except TimeoutError:
        if limit.expired():
            raise WholeTimeoutError from None
        raise
    finally:
        for timer in timers:
            timer.cancel()


class Cutter:
    """Ends the connection of a client without an event loop, which sends one request at a time. A reading thread cannot
    be interrupted, and httpx only limits the time between two pieces of a head. So another thread shuts the connection
    down, which ends the read."""

    def __init__(self) -> None:
        self._stream: Any = None
        self._over = False

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Notes the connection that a request opened (httpcore's extension `trace`); a later request may reuse it."""
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self._stream = info["return_value"]
            if self._over:
                self._cut()

    @contextmanager
    def after(self, seconds: float) -> Iterator[Callable[[float], None]]:
        """Ends the connection used in the block after this many seconds, or after as many as the yielded function is
        called with."""
        self._over = False
        timers: list[Timer] = []

        def within(left: float) -> None:
            for timer in timers:
                timer.cancel()
            timers[:] = [Timer(left, self._cut)]
            timers[0].daemon = True
            timers[0].start()

        within(seconds)
        try:
            yield within
        finally:
            timers[0].cancel()

    def _cut(self) -> None:
        self._over = True
        if self._stream is not None:
            with suppress(OSError):  # already ended
                self._stream.get_extra_info("socket").shutdown(2)  # both directions
