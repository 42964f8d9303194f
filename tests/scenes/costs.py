"""How the cost of work grows with its size, compared in one run: a slow or busy machine slows both sizes alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
IN_PROPORTION = 8.0
"""Growth below this is in proportion: four times the size takes 4 times as long, and not 16 times, as its square."""
SHORTEST = 0.005
"""A time of fewer seconds counts as this: it says nothing."""


def growth(work: Callable[[T], object], make: Callable[[int], T], size: int) -> float:
    """How many times as much CPU time the work on `make(4 * size)` takes as that on `make(size)`.

    The latter is run a second time if it was not in proportion: the slower of the two counts.
    """

    def seconds(given: T) -> float:
        began = time.process_time()
        work(given)
        return max(time.process_time() - began, SHORTEST)

    many, few = seconds(make(4 * size)), seconds(make(size))
    return many / few if many < few * IN_PROPORTION else many / max(few, seconds(make(size)))
