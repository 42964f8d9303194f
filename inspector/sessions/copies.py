"""Leaves out files and turns that the given files contain twice.

A file may be named twice, and the file of a resumed or forked session of Claude Code begins with the rows of the
session before it, as that of a branched session of Qwen Code does, and that of a continued trajectory in ATIF may.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from inspector.sessions.intake import STDIN
from inspector.sessions.recording import Exchange, Input, TurnPlace
from loop_core.values import Role

OpenedFile = tuple[Input, list[Exchange]]
"""A file and the exchanges that were read from it."""
COPYING = frozenset({"claude-code", "atif", "qwen"})
"""The formats whose files may begin with a copy of the rows of another file, with the same ids and times."""


class CopyKey(NamedTuple):
    """What identifies an answer in the original and in its copies."""

    key: Hashable
    """None for an answer that is never recognised as a copy."""
    started: Any
    """The start, by which the original is told from a fork: a value that can be compared, of one type in all files."""


class Copies(NamedTuple):
    """The answers at the beginning of a file that another file contains too."""

    answers: int
    origin: int
    """The index of the file that has them first."""


def copies_in(files: Sequence[Sequence[CopyKey]]) -> list[Copies | None]:
    """For each file the copies that it begins with; None for a file that begins with none."""
    holders = Counter(key for keys in files for key in {one.key for one in keys} if key is not None)
    if all(count == 1 for count in holders.values()):
        return [None] * len(files)

    def age(at: int) -> tuple[bool, Any, int]:
        """The original is the file that goes on first after what both have, or that ends there."""
        own = next((one.started for one in files[at] if one.key is not None and holders[one.key] == 1), None)
        return own is not None, own, len(files[at])

    copies: list[Copies | None] = [None] * len(files)
    origins: dict[Hashable, int] = {}
    for at in sorted(range(len(files)), key=age):
        keys = [one.key for one in files[at]]
        count = next((place for place, key in enumerate(keys) if key is None or origins.get(key, at) == at), len(keys))
        if count:
            copies[at] = Copies(count, origins[keys[0]])
        for key in keys:
            origins.setdefault(key, at)
    return copies


def each_once(files: Iterable[OpenedFile]) -> list[OpenedFile]:
    """The files without those that were named twice (alone and in a folder, by a link, beside their session), and
    without copied turns."""
    once: dict[str, OpenedFile] = {}
    for one in files:
        path = one[0].path
        once.setdefault(path if path == STDIN else os.path.realpath(path), one)
    opened = list(once.values())
    return [one if copies is None else _without_copies(one, copies.answers, opened[copies.origin][0].path)
            for one, copies in zip(opened, copies_in([_keys(one) for one in opened]), strict=True)]


def may_copy(source: Input) -> bool:
    """Whether a file may begin with copies; a subagent's file never copies the answers of a session."""
    return source.format in COPYING and (source.about is None or not source.about.parent)


def stored_keys(exchanges: Iterable[Exchange]) -> tuple[str, ...]:
    """The keys of answers, the same in every process; empty for one that is never recognised as a copy."""
    import hashlib  # the import takes 4 ms, which a command over one file saves

    answers = (_identity(exchange) for exchange in exchanges)
    return tuple("" if answer is None else
                 hashlib.blake2b(repr(answer).encode("utf-8", "replace"), digest_size=8).hexdigest()
                 for answer in answers)


def _without_copies(one: OpenedFile, count: int, origin: str) -> OpenedFile:
    """The file without the turns that its first exchanges make up."""
    source, found = one
    while 0 < count < len(found) and not _opens_turn(found[count]):
        count -= 1  # a turn that continues in this file stays whole
    if not count or count == len(found):
        return one  # no new answer: the rows after the copied ones may still differ
    new_exchanges = found[count:]
    gone = {exchange.entry for exchange in found[:count]}
    notice = f"{source.path}: answers copied from another session, which are counted there ({origin}): {count:,}"
    return replace(
        source, responses=len(new_exchanges), notices=(*source.notices, notice),
        acts=tuple(act for act in source.acts if act.entry not in gone),
        answers=tuple(each for each in source.answers if each.entry not in gone)), new_exchanges


def _keys(one: OpenedFile) -> list[CopyKey]:
    source, found = one
    if not may_copy(source):
        return []
    answers = [(_identity(exchange), exchange.started) for exchange in found]
    return [CopyKey(None if answer is None else hash(answer), started) for answer, started in answers]


def _identity(exchange: Exchange) -> tuple[Any, ...] | None:
    """What an answer and its copy have in common; None without a time, since answers that were not timed may be equal
    by chance."""
    response = exchange.response
    return None if exchange.started is None else (response.id, exchange.started, response.text, tuple(
        (call.id, call.arguments) for call in response.tool_calls))


def _opens_turn(exchange: Exchange) -> bool:
    if exchange.recorded_place is TurnPlace.REQUEST:
        return True  # as behind the result of a call after which the operator went on otherwise
    roles = {message.role for message in exchange.request.messages} if exchange.request is not None else set()
    return roles == {Role.USER}
