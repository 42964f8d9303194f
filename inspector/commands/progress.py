"""The progress of long work in one line of a terminal, and Ctrl-C to stop it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TextIO

WIDTH = 30
EVERY = 0.1
"""Seconds between two drawings; a grid that is done sooner draws nothing."""


@contextmanager
def bar(stream: TextIO) -> Iterator[Callable[[int, int], None]]:
    """Draws a progress bar if `stream` is a terminal, and erases it at the end."""
    drawn = time.monotonic()
    length = 0

    def draw(done: int, parts: int) -> None:
        nonlocal drawn, length
        if time.monotonic() - drawn < EVERY:
            return
        drawn = time.monotonic()
        filled = WIDTH * done // parts
        told = f"[{'#' * filled}{'.' * (WIDTH - filled)}] {done:,} of {parts:,}  Ctrl-C stops"
        length = max(length, len(told))
        stream.write(f"\r{told:<{length}}")
        stream.flush()

    try:
        yield draw if stream.isatty() else lambda done, parts: None
    finally:
        if length:
            stream.write(f"\r{' ' * length}\r")
            stream.flush()


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Records Ctrl-C instead of raising it; a second Ctrl-C raises as usual."""
    asked = False

    def remember(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
