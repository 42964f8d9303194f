"""Building many values at once, with the cyclic garbage collector out of the way.

What is read and replayed holds no cycles, but every few thousand new objects Python looks through all of them for some:
half of the time of opening a large recording went there. Afterwards the collector runs as before, but passes over what
is there by then: values like these go when they are let go of, and need no collector.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def without_collector(build: Callable[P, T]) -> Callable[P, T]:
    """`build` with the collector paused while it runs."""

    @wraps(build)
    def paused(*args: P.args, **kwargs: P.kwargs) -> T:
        running = gc.isenabled()
        gc.disable()
        try:
            return build(*args, **kwargs)
        finally:
            if running:
                gc.freeze()
                gc.enable()

    return paused
