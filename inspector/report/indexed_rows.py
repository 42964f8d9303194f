"""The rows of files, from the index if they are unchanged, else by reading the files one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from inspector.config.settings import Settings
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.facts import view
from inspector.report.turn_index import TurnIndex, state_of
from inspector.report.turn_rows import TurnRow, rows_of
from inspector.sessions.open import open_each


class ReadRows(NamedTuple):
    """Rows by the first path of their session, and the progress of reading."""

    rows: list[tuple[str, list[TurnRow]]]
    done: int
    total: int
    note: str = ""
    """Why the index is not used."""


def index_for(api: str | None, profile: str | None, settings: Settings) -> TurnIndex:
    """The index of rows that were read with these options."""
    return TurnIndex(repr((api, profile, settings)))


def read_rows(
    paths: Sequence[str], api: str | None, profile: str | None, settings: Settings, indexed: bool = True
) -> Iterator[ReadRows]:
    """The rows of files; those in the index come first, at once.

    Raises:
        CallerError: there is no such API or profile.
    """
    index = index_for(api, profile, settings) if indexed else None
    try:
        known = index.rows(paths) if index is not None else {}
        left = [path for path in paths if path not in known]
        total = len(paths)
        if index is not None:
            yield ReadRows(list(known.items()), len(known), total, index.note)
        states = {path: state_of(path) for path in left} if index is not None else {}
        for group in open_each(left, api=api, profile=profile) if left else ():
            found = rows_of(view(replay(open_case(group.loaded), settings)), group.paths)
            if index is not None and len(group.paths) == 1 and group.paths[0] in states:
                index.keep(group.paths[0], states[group.paths[0]], found)
            yield ReadRows([(group.paths[0], found)], len(known) + group.done, len(known) + group.total)
    finally:
        if index is not None:
            index.close()
