"""Many small rows as one test: what pytest does around a test costs more than such a row does; and a share of a sweep.

A sweep runs the same code over many cells that differ by their data alone. A run tries one share of each sweep, by the
commit, so that many commits try all cells; `SWEEPS=all` tries all, `SWEEPS=3` the third share.
"""

from __future__ import annotations

import inspect
import os
import subprocess
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

SHARES = 8
T = TypeVar("T")


def chosen_share() -> int | None:
    """The share that this run tries, from 1 on: that which SWEEPS names, else by the commit; None means all of them."""
    choice = os.environ.get("SWEEPS")
    if choice == "all":
        return None
    if not choice:
        found = ""
        with suppress(OSError):  # there is no git
            found = subprocess.run(["git", "rev-parse", "--verify", "HEAD"], cwd=Path(__file__).parent,
                                   capture_output=True, text=True, check=False).stdout
        choice = str(int(found or "0", 16) % SHARES + 1)
    if choice not in map(str, range(1, SHARES + 1)):
        raise ValueError(f"SWEEPS={choice}: expected all, or a number from 1 to {SHARES}")
    return int(choice)


SHARE = chosen_share()


def share(cells: Iterable[T], row: int | str = 0) -> list[T]:
    """The cells of one row of a sweep that this run tries: every eighth, and at least one. Another row begins at
    another cell."""
    every = list(cells)
    if SHARE is None or not every:
        return every
    number = crc32(row.encode()) if isinstance(row, str) else row
    first = (SHARE - 1 + number) % min(SHARES, len(every))
    return every[first::SHARES]


def each_row(names: str | tuple[str, ...], rows: Iterable[Any]) -> Callable[..., Any]:
    """As `pytest.mark.parametrize`, but in one test, which names the row that fails. Fixtures are made once for all
    rows; a `tmp_path` has a folder for each."""
    columns = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else names
    table = [row if len(columns) > 1 else (row,) for row in rows]
    assert table, "no rows"

    def of(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @wraps(test)
        def each(**fixtures: Any) -> None:
            for number, row in enumerate(table):
                own = dict(fixtures)
                if "tmp_path" in own:
                    own["tmp_path"] /= str(number)
                    own["tmp_path"].mkdir()
                try:
                    test(**own, **dict(zip(columns, row, strict=True)))
                except BaseException as why:
                    why.add_note(f"row {number}: {', '.join(columns)} = {', '.join(map(repr, row))[:500]}")
                    raise

        each.__signature__ = signature.replace(
            parameters=[found for name, found in signature.parameters.items() if name not in columns])
        return each

    return of
