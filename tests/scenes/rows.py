"""Many small rows as one test: what pytest does around a test costs more than such a row does."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any


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
