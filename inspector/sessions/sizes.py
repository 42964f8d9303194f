"""How much there is to read, before anything is read."""

from __future__ import annotations

import os
from collections.abc import Sequence

HEAVY = 4_000_000
"""Bytes from which reading is done behind a screen that says so."""


def heavy(paths: Sequence[str]) -> bool:
    """Whether reading these will take a moment."""
    return any(_size(path) > HEAVY for path in paths)


def _size(path: str) -> int:
    try:
        return HEAVY + 1 if os.path.isdir(path) else os.path.getsize(path)
    except OSError:
        return 0
