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

    Both are run a second time if it was not in proportion: of the long runs the quicker counts, of the short ones the
    slower. A busy machine slows a run by half; the square of four times the size takes sixteen times as long.
    """

    def seconds(given: T) -> float:
        began = time.process_time()
        work(given)
        return max(time.process_time() - began, SHORTEST)

    many, few = seconds(make(4 * size)), seconds(make(size))
    if many < few * IN_PROPORTION:
        return many / few
    return min(many, seconds(make(4 * size))) / max(few, seconds(make(size)))
