"""The table of turns by session: one row per session, with subagents' sessions below the session that started them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inspector.report.turn_rows import SessionKey, TurnRow, by_verdict
from inspector.sessions.recording import BELOW


def by_session(rows: Iterable[TurnRow]) -> dict[SessionKey, list[TurnRow]]:
    """The rows of each session; unread parts of a file go with its first session."""
    every = list(rows)
    firsts: dict[tuple[str, ...], SessionKey] = {}
    for row in every:
        if row.verdict is not None:
            firsts.setdefault(row.paths, row.session)
    sessions: dict[SessionKey, list[TurnRow]] = {}
    for row in every:
        key = row.session if row.verdict is not None else firsts.get(row.paths, row.session)
        sessions.setdefault(key, []).append(row)
    return sessions


def worst_of_sessions(rows: Iterable[TurnRow]) -> list[TurnRow]:
    """A row for each session: that of its worst turn, with the counts of its verdicts."""
    return [_worst(group) for group in by_session(rows).values()]


def _worst(group: Sequence[TurnRow]) -> TurnRow:
    worst = min(group, key=lambda row: row.severe)
    counted = tuple((seen.word, count) for seen, count in by_verdict(group))
    return worst._replace(turns=counted) if counted else worst


def has_families(rows: Iterable[TurnRow]) -> bool:
    """Whether any of the sessions may have been started by another."""
    return any(row.parent_id or BELOW in row.name for row in rows)


def in_families(sessions: Sequence[Sequence[TurnRow]]) -> list[TurnRow]:
    """The rows of sessions, with started sessions below their starter; a family takes the place of its first session.
    """
    parents = _parents([rows[0] for rows in sessions])
    children: dict[int, list[int]] = {}
    for at, parent in enumerate(parents):
        if parent is not None:
            children.setdefault(parent, []).append(at)
    rows: list[TurnRow] = []
    done: set[int] = set()
    for first in range(len(sessions)):
        left = [(_root(parents, first), 0)]
        while left:
            at, depth = left.pop()
            if at not in done:
                done.add(at)
                rows += [row._replace(depth=depth) for row in sessions[at]]
                left += [(child, depth + 1) for child in reversed(children.get(at, ()))]
    return rows


def _parents(heads: Sequence[TurnRow]) -> list[int | None]:
    """Which of the sessions began each, by its name in a file of several, else by the id that it names.

    A file has one id: it is that of the first of its sessions.
    """
    ids = {(heads[at].agent, heads[at].session_id): at for at in reversed(range(len(heads))) if heads[at].session_id}
    names = {head.session: at for at, head in enumerate(heads)}
    return [names.get((head.paths, head.name.rpartition(BELOW)[0]), ids.get((head.agent, head.parent_id)))
            for head in heads]


def _root(parents: Sequence[int | None], at: int) -> int:
    """The session above all that began one; of a ring, any."""
    passed = {at}
    while (parent := parents[at]) is not None and parent not in passed:
        passed.add(parent)
        at = parent
    return at
