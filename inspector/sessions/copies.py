"""Leaves out files and turns that the given files contain twice.

A file may be named twice, and the file of a resumed or forked session of Claude Code begins with the rows of the
session before it, as that of a branched session of Qwen Code does, and that of a continued trajectory in ATIF may.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace

from inspector.sessions.intake import STDIN
from inspector.sessions.recording import Exchange, Input
from loop_core.values import Role

OpenedFile = tuple[Input, list[Exchange]]
"""A file and the exchanges that were read from it."""
COPYING = frozenset({"claude-code", "atif", "qwen"})
"""The formats whose files may begin with a copy of the rows of another file, with the same ids and times."""


def each_once(files: Iterable[OpenedFile]) -> Iterator[OpenedFile]:
    """The files without those that were named twice (alone and in a folder, by a link, beside their session), and
    without copied turns."""
    seen: set[str] = set()
    copied = CopiedTurns()
    for one in files:
        path = one[0].path
        place = path if path == STDIN else os.path.realpath(path)
        if place not in seen:
            seen.add(place)
            yield copied.without(one)


class CopiedTurns:
    """The answers of the files so far, by which copies at the beginning of a later file are recognised."""

    def __init__(self) -> None:
        self._files: dict[int, str] = {}
        """Hash of an answer -> the first file that contained the answer."""

    def without(self, one: OpenedFile) -> OpenedFile:
        """The file without the turns at its beginning that an earlier file contains too."""
        source, found = one
        if source.format not in COPYING or (source.about is not None and source.about.parent):
            return one  # a subagent's file never copies the answers of a session
        keys = [_key(exchange) for exchange in found]
        count = next((at for at, key in enumerate(keys)
                      if key is None or self._files.get(key, source.path) == source.path), len(keys))
        while 0 < count < len(found) and not _opens_turn(found[count]):
            count -= 1  # a turn that continues in this file stays whole
        first = self._files.get(keys[0]) if count and keys[0] is not None else None
        for key in filter(None, keys):
            self._files.setdefault(key, source.path)
        if first is None or count == len(found):
            return one  # no new answer: the rows after the copied ones may still differ
        kept = found[count:]
        gone = {exchange.entry for exchange in found[:count]}
        notice = f"{source.path}: answers copied from another session, which are counted there ({first}): {count:,}"
        return replace(
            source, responses=len(kept), notices=(*source.notices, notice),
            acts=tuple(act for act in source.acts if act.entry not in gone),
            answers=tuple(each for each in source.answers if each.entry not in gone)), kept


def _key(exchange: Exchange) -> int | None:
    """The hash of an answer; None without a time, since answers that were not timed may be equal by chance."""
    response = exchange.response
    return None if exchange.started is None else hash((response.id, exchange.started, response.text, tuple(
        (call.id, call.arguments) for call in response.tool_calls)))


def _opens_turn(exchange: Exchange) -> bool:
    roles = {message.role for message in exchange.request.messages} if exchange.request is not None else set()
    return roles == {Role.USER}
