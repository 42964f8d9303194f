"""Recorded sessions of agents: reads them in any supported format, masks credentials, and finds the turns.

    path ─▶ folders: its files ─▶ intake: their bytes ─▶ importers.recognition: the format of each, and its importer
    importer of recorded traffic ─▶ RawExchange ─▶ build: the decoded Exchange
    importer of an agent's rows ─▶ transcripts: a TranscriptReader, which makes each Exchange itself
    exchanges of all files ─▶ thread: conversations and turns ─▶ Recording

`open` does all of this, and `redact` masks bytes and rows before they are decoded.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from inspector.sessions.recording import Recording

__all__ = ["exempt_from_collector", "open_paths", "without_collector"]
P = ParamSpec("P")
T = TypeVar("T")
NO_ANSWER = "it holds no answer of a model"
"""The notice about a readable file without an exchange."""
COMPANION = ": it has no exchange of its own"
"""The end of the error about a file that an agent writes beside its sessions, or that is read with one of them."""


def without_collector(build: Callable[P, T]) -> Callable[P, T]:
    """Wraps a function that reads a recording, so that the cyclic garbage collector pauses while it runs. Reading and
    replaying create no reference cycles, but Python searches all objects for cycles after every few thousand new ones.
    Afterwards the collector ignores all objects that exist then (`gc.freeze`)."""

    @wraps(build)
    def run_without_gc(*args: P.args, **kwargs: P.kwargs) -> T:
        running = gc.isenabled()  # the caller may have disabled the collector
        gc.disable()
        try:
            return build(*args, **kwargs)
        finally:
            if running:
                gc.freeze()
                gc.enable()

    return run_without_gc


def exempt_from_collector(search: bool) -> None:
    """Exempts all objects from garbage collection (`gc.freeze`), because recordings live on. With `search`, it first
    collects the cycles among all objects, including exempt ones, such as closed screens; this takes up to 0.3 s."""
    if search:
        gc.unfreeze()
        gc.collect()
    gc.freeze()


def open_paths(
    paths: Sequence[str], *, api: str | None = None, profile: str | None = None, stdin: bytes | None = None,
    listed: bool = False,
) -> Recording:
    """Reads files and folders; `-` is standard input, whose bytes are `stdin`; `listed`: they were found in a folder.
    Raises `CallerError` if there is no such API or profile."""
    from inspector.sessions.open import open_paths as read  # listing the samples needs no importer

    return read(paths, api=api, profile=profile, stdin=stdin, listed=listed)


def cores() -> int:
    """The number of processors available to this program."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def end_with_caller() -> None:
    """Makes this worker process end with its caller; if that is killed, it would otherwise wait for tasks forever."""
    threading.Thread(target=_wait_for_end, daemon=True).start()


def _wait_for_end() -> None:
    from multiprocessing import parent_process

    caller = parent_process()
    if caller is not None:
        caller.join()
    os._exit(1)
