"""Leaves out files and turns that the given files contain twice.

A file may be named twice, or have a copy with equal bytes or with shortened texts. The file of a resumed or forked
session of Claude Code and of a branched session of Qwen Code begins with the rows of the earlier session; that of a
continued trajectory in ATIF may. Zoo Code copies the tasks of Roo Code, and goes on in its copy.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from inspector.sessions.importers import IMPORTERS
from inspector.sessions.intake import STDIN
from inspector.sessions.notices import Notice
from inspector.sessions.recording import Exchange, Input, TurnRecord
from inspector.sessions.traffic import moment

OpenedFile = tuple[Input, list[Exchange]]
"""A file and the exchanges that were read from it."""
COPYING = frozenset({"claude-code", "atif", "qwen", "roo"})
"""The formats whose files may begin with a copy of the rows of another file, with the same ids and times."""


def is_spread(source: Input) -> bool:
    """Whether the file is one of a logger that writes one pair per file, so that a conversation is spread over the
    files of its folder."""
    return source.format == "pairs" and source.responses == 1


def session_key(source: Input) -> tuple[bool, str]:
    """A key that the files of one session share. All files of a folder share one if a logger spread a session over
    them; any other file has its own."""
    spread = is_spread(source)
    return spread, os.path.dirname(source.path) if spread else source.path


def files_by_session(sources: Sequence[Input]) -> dict[str, tuple[str, ...]]:
    """Path of a file -> the paths that are opened for its session: all files over which a logger spread it; for the
    file of a subagent, the main file that it is read with."""
    mains = {folder: source.path for source in sources if (folder := _folder_beside(source))}
    sessions: dict[tuple[bool, str], list[str]] = {}
    for source in sources:
        sessions.setdefault(session_key(source), []).append(source.path)
    spread = {path: tuple(paths) for paths in sessions.values() for path in paths}
    main_of = {path: next((mains[each] for each in _folders_above(path) if each in mains), path) for path in spread}
    return {path: spread[main] for path, main in main_of.items()}


def _folders_above(path: str) -> Iterator[str]:
    """The folders of a file, the innermost first."""
    while (folder := os.path.dirname(path)) not in ("", path):
        yield folder
        path = folder


def _folder_beside(source: Input) -> str:
    """The folder of the further files that belong to a file; empty if its format has none."""
    folder = IMPORTERS[source.format].beside.split("/*")[0] if source.format in IMPORTERS else ""
    stem = os.path.dirname(source.path) if folder.startswith("../") else os.path.splitext(source.path)[0]
    return folder and os.path.join(stem, folder.removeprefix("../"))


WHOLE_FILES: Mapping[str, str] = {"transcript.jsonl": "transcript_full.jsonl", "context.jsonl": "wire.jsonl"}
"""Name of a file with less of a session -> name of the file beside it with the same steps in full. In the former,
Antigravity shortens long texts, and Kimi CLI leaves out times, token counts and ends."""
PIECE = 1 << 20
"""The number of bytes of a file that are read at a time to compare it with others."""


def equal_files(paths: Iterable[str]) -> dict[str, str]:
    """Path of a file with the same bytes as an earlier one -> path of the first such file; and path of a shortened file
    -> path of the whole one. Only files of equal size are read."""
    given = dict.fromkeys(paths)
    wholes = {path: whole for path in given if (whole := _whole_file(path)) in given}
    sizes: dict[int, list[str]] = {}
    for path in (path for path in given if path not in wholes):
        with suppress(OSError):  # it may be removed between the two calls
            if path != STDIN and os.path.isfile(path):
                sizes.setdefault(os.path.getsize(path), []).append(path)
    found: dict[str, str] = {}
    for same in (group for size, group in sizes.items() if size and len(group) > 1):
        firsts: dict[bytes, str] = {}
        for path in same:
            with suppress(OSError):  # an unreadable file is reported when it is opened
                first = firsts.setdefault(_digest(path), path)
                found |= {path: first} if first != path else {}
    return found | {path: found.get(whole, whole) for path, whole in wholes.items()}


def _whole_file(path: str) -> str:
    """The path of the whole file beside one that is shortened; empty for any other file."""
    folder, name = os.path.split(path)
    return os.path.join(folder, WHOLE_FILES[name]) if name in WHOLE_FILES else ""


def is_shortened(path: str, first: str) -> bool:
    """Whether the file `path` has the steps of the file `first` with less of each."""
    return WHOLE_FILES.get(os.path.basename(path)) == os.path.basename(first)


def relation(path: str, first: str) -> str:
    """The words between the name of a file that is left out and the name of the file that is counted."""
    return "a shortened copy of" if is_shortened(path, first) else "byte for byte the same as"


def _digest(path: str) -> bytes:
    import hashlib

    digest = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.digest()


def equal_input(path: str, first: str, format_name: str = "unknown") -> Input:
    """The result for a file that is left out, because it has the same bytes or steps as the file `first`."""
    notice = Notice(f"{relation(path, first)} {first}, whose turns are counted; they are not counted twice")
    return Input(path, format_name, 0, statements=(notice,), same_as=first)


_LAST = "~"
"""A text that sorts after the time of any answer."""


def stored_keys(exchanges: Iterable[Exchange]) -> tuple[str, ...]:
    """The keys of answers. An answer and its copies have equal keys, in every process, and keys sort by time. The key
    of an answer without a time is empty, because such answers may be equal by chance."""
    return tuple("" if exchange.started is None else _key(exchange, exchange.started) for exchange in exchanges)


def _key(exchange: Exchange, started: str) -> str:
    import hashlib  # takes 4 ms, and a command over one file does not need it

    response = exchange.response
    content = response.id, started, response.text, tuple((call.id, call.arguments) for call in response.tool_calls)
    digest = hashlib.blake2b(repr(content).encode("utf-8", "replace"), digest_size=8).hexdigest()
    return f"{moment(started) or 0:020} {digest}"


Turns = Sequence[Sequence[str]]
"""The turns of a file, each as the keys of its answers."""


class Copies(NamedTuple):
    """The turns and files that are copies of older ones."""

    turns: dict[str, dict[int, str]]
    """Path of a file that begins with copies -> index of each copied turn -> path of the original."""
    whole_files: dict[str, tuple[str, ...]]
    """Path of a file without an answer of its own, such as a copy of a whole file -> paths of the files that have its
    answers too. Nothing is left out of it, so its turns count twice."""


def copies_in(files: Mapping[str, Turns]) -> Copies:
    """The copies in files, which are given by path. A turn is a copy if each of its answers is also in an older file,
    and if it ended before the first own turn of its file. A file without an own turn stays whole, because the rows
    after the copied ones may differ."""
    files = _files_in_common(files)
    answers = {path: list(chain.from_iterable(turns)) for path, turns in files.items()}
    holders = _holders(answers)
    copies = {path: _copies_of(path, turns, holders) for path, turns in files.items()}
    return Copies(
        {path: turns for path, turns in copies.items() if turns},
        {path: tuple(dict.fromkeys(holders[key] for key in keys)) for path, keys in answers.items()
         if keys and all(holders.get(key, path) != path for key in keys)})


def _holders(answers: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The key of each answer that several files have -> the oldest of these files."""
    shared = _shared_keys(answers.values())

    def age(path: str) -> tuple[bool, str, int, str]:
        """A sort key: the oldest file ends after the shared answers, or has the earliest answer of its own."""
        own = min((key for key in answers[path] if key and key not in shared), default="")
        return own != "", own, len(answers[path]), path

    holders: dict[str, str] = {}
    for path in sorted(answers, key=age):
        for key in shared.intersection(answers[path]):
            holders.setdefault(key, path)
    return holders


def _files_in_common(files: Mapping[str, Turns]) -> Mapping[str, Turns]:
    """The files that have the first answer of another file, or whose first answer another file has. They are few, so
    most files need not be compared."""
    firsts = {turns[0][0] for turns in files.values() if turns and turns[0]} - {""}
    found = {path: firsts.intersection(chain.from_iterable(turns)) for path, turns in files.items()}
    common = {key for key, count in Counter(chain.from_iterable(found.values())).items() if count > 1}
    return {path: turns for path, turns in files.items() if not common.isdisjoint(found[path])}


def _copies_of(path: str, turns: Turns, holders: Mapping[str, str]) -> dict[int, str]:
    own = {number for number, keys in enumerate(turns) if any(holders.get(key, path) == path for key in keys)}
    # The turn after a turn shows how its calls ended, so none is left out between turns that stay.
    first = min(((_time(key), number) for number in own for key in turns[number] if key), default=(_LAST, 0))
    end = min((number for number in own if "" in turns[number]), default=len(turns)) if own else 0
    return {number: holders[keys[-1]] for number, keys in enumerate(turns[:end])
            if number not in own and keys and (_time(max(keys)), number) < first}


def _time(key: str) -> str:
    return key.partition(" ")[0]


def _shared_keys(files: Iterable[Iterable[str]]) -> set[str]:
    firsts: dict[str, int] = {}
    return {key for at, keys in enumerate(files) for key in keys if firsts.setdefault(key, at) != at} - {""}


def each_once(
    files: Iterable[OpenedFile], turns_of: Callable[[OpenedFile], Sequence[TurnRecord]]
) -> list[OpenedFile]:
    """The files without those named twice (alone and in a folder, by a link, beside their session), without the
    exchanges of those with the same bytes as another, and without copied turns. `turns_of` finds the turns of a
    file."""
    once: dict[str, OpenedFile] = {}
    for one in files:
        path = one[0].path
        once.setdefault(path if path == STDIN else os.path.realpath(path), one)
    opened = _without_equal(list(once.values()))
    if sum(may_copy(source) for source, _ in opened) < 2:
        return opened
    keys = {source.path: stored_keys(found) for source, found in opened if may_copy(source)}
    shared = _shared_keys(keys.values())
    turns = {one[0].path: [turn.responses for turn in turns_of(one)] for one in opened
             if not shared.isdisjoint(keys.get(one[0].path, ()))}
    by_turn = {path: [[keys[path][place] for place in places] for places in every] for path, every in turns.items()}
    copies, whole_files = copies_in(by_turn)
    return [_without_copies(one, turns[path], copies[path]) if path in copies else
            _with_notice(one, whole_files[path]) if path in whole_files else one
            for one in opened for path in [one[0].path]]


def _without_equal(opened: list[OpenedFile]) -> list[OpenedFile]:
    # Equal pairs of a logger stay: they are two requests, such as one that was sent again after the same error.
    equal = equal_files(one[0].path for one in opened if one[1] and not is_spread(one[0]))
    return [(equal_input(source.path, equal[source.path], source.format), []) if source.path in equal else
            (source, found) for source, found in opened]


def _with_notice(one: OpenedFile, origins: Sequence[str]) -> OpenedFile:
    source, found = one
    notice = Notice(f" is in {' and '.join(origins)} too, so its turns count twice", at="every answer of this file")
    return replace(source, statements=(*source.statements, notice)), found


def may_copy(source: Input) -> bool:
    """Whether a file may begin with copies; a subagent's file never does."""
    return source.format in COPYING and (source.about is None or not source.about.parent)


def _without_copies(one: OpenedFile, turns: Sequence[Sequence[int]], copies: Mapping[int, str]) -> OpenedFile:
    """The file without the turns at the indices in `copies`; each of `turns` has the indices of its exchanges."""
    source, found = one
    gone = {place for number in copies for place in turns[number]}
    entries = {found[place].entry for place in gone}
    new_exchanges = [exchange for place, exchange in enumerate(found) if place not in gone]
    answers = Counter(origin for number, origin in copies.items() for _ in turns[number])
    notices = (Notice(f"answers copied from another session, which are counted there ({origin})", {"": count})
               for origin, count in answers.items())
    return replace(
        source, responses=len(new_exchanges), statements=(*source.statements, *notices),
        acts=tuple(act for act in source.acts if act.entry not in entries),
        answers=tuple(each for each in source.answers if each.entry not in entries),
        copies={number + 1: origin for number, origin in copies.items()}), new_exchanges
