"""Work shared by forked processes: they inherit what it needs, so that nothing large is ever copied or sent.

A process does every n-th task and writes each result to a pipe as soon as it is there. What one does not deliver,
because it died or met an error, the caller does itself, and meets the error. A forked process computes, writes and
leaves by `_exit`: it takes no lock that another thread of the program may have held.
"""

from __future__ import annotations

import gc
import marshal
import os
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from struct import Struct
from typing import Any

POLL = 0.05
"""Seconds after which a request to cancel is noticed."""
_HEAD = Struct("<II")
"""The number of a task and the size of its result."""


def cores() -> int:
    """How many processors this program may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def shared(
    tasks: Sequence[int], work: Callable[[int], Any], jobs: int, cancelled: Callable[[], bool]
) -> Iterator[tuple[int, Any]]:
    """Each task with its result, in the order in which they are done; ends early when cancelled.

    `work` gives plain values (tuples, strings, numbers, bytes).
    """
    jobs = min(jobs, len(tasks))
    left = set(tasks)
    if jobs > 1 and hasattr(os, "fork"):
        for task, result in _forked(tasks, work, jobs, cancelled):
            left.discard(task)
            yield task, result
    for task in tasks:
        if cancelled():
            return
        if task in left:
            yield task, work(task)


def _forked(
    tasks: Sequence[int], work: Callable[[int], Any], jobs: int, cancelled: Callable[[], bool]
) -> Iterator[tuple[int, Any]]:
    import selectors

    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        for number in range(jobs):
            pid, source = _start(tasks[number::jobs], work)
            stack.callback(_end, pid, source)
            selector.register(source, selectors.EVENT_READ, bytearray())
        while selector.get_map() and not cancelled():
            for ready, _ in selector.select(POLL):
                data = os.read(ready.fd, 1 << 16)
                if not data:
                    selector.unregister(ready.fd)
                ready.data.extend(data)
                yield from _whole(ready.data)


def _whole(buffer: bytearray) -> Iterator[tuple[int, Any]]:
    """Takes the results that have come whole out of a buffer."""
    at = 0
    while len(buffer) >= at + _HEAD.size:
        task, size = _HEAD.unpack_from(buffer, at)
        end = at + _HEAD.size + size
        if len(buffer) < end:
            break
        yield task, marshal.loads(buffer[at + _HEAD.size : end])  # noqa: S302 - written by our own process
        at = end
    del buffer[:at]


def _start(tasks: Sequence[int], work: Callable[[int], Any]) -> tuple[int, int]:
    source, sink = os.pipe()
    with warnings.catch_warnings():
        # Python warns of forking beside other threads; see above why it is safe here.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        os.close(sink)
        return pid, source
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the caller decides
        gc.disable()
        os.close(source)
        for task in tasks:
            told = marshal.dumps(work(task))
            _write(sink, _HEAD.pack(task, len(told)) + told)
        status = 0
    finally:
        os._exit(status)


def _write(sink: int, data: bytes) -> None:
    while data:
        data = data[os.write(sink, data) :]


def _end(pid: int, source: int) -> None:
    os.close(source)
    try:
        os.kill(pid, signal.SIGKILL)  # where it has ended already this says nothing to anybody
    finally:
        os.waitpid(pid, 0)
