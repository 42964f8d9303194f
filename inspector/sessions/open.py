"""Opens paths and reads all sessions in them. All recorded sessions are read through this module.

A bad input never hides the others. The importer of a file is chosen by the registry of importers.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import IO, NamedTuple

from inspector.config import files
from inspector.sessions import COMPANION, NO_ANSWER, intake, redact
from inspector.sessions.build import UnbuiltExchange, build, mask_seams
from inspector.sessions.copies import OpenedFile, each_once, equal_files, equal_input, is_spread, session_key
from inspector.sessions.file_format import HEAD, entry_name, entry_word
from inspector.sessions.importers import EXPECTED, IMPORTERS, SQLITE
from inspector.sessions.importers.recognition import choose, importer, reading_of, recognise
from inspector.sessions.intake import STDIN, unpack
from inspector.sessions.notices import Notice, mask_notice, notice_of
from inspector.sessions.recording import (
    ODD,
    Exchange,
    FileReading,
    Input,
    Options,
    RawExchange,
    Recording,
    SessionAbout,
    Skipped,
    TurnPlace,
    TurnRecord,
    UnreadableError,
    unusable,
)
from inspector.sessions.thread import thread
from loop_core.wire import wire
from loop_core.wire.profiles import profile_named

_LONGEST_NAME = 24
"""The largest length of a file name that is shown whole; longer ones, mostly ids, are shortened."""


class FileGroup(NamedTuple):
    """The files of one session, which give the same recording again, or an unreadable file; none for progress."""

    paths: tuple[str, ...]
    recording: Recording
    done: int
    """The number of files out of `total` that have been examined so far."""
    total: int


def open_paths(
    paths: Sequence[str], *, api: str | None = None, profile: str | None = None, stdin: bytes | None = None,
    listed: bool = False,
) -> Recording:
    """Reads files and folders; `-` is standard input, whose bytes are `stdin`; `listed`: they were found in a folder.
    Raises `CallerError` if there is no such API or profile."""
    options = options_of(api, profile)._replace(listed=listed)
    return join_files(each_once((one for path in paths for one in _open(path, options, stdin)), turns_of))


def open_beginning(path: str, size: int, *, api: str | None = None, profile: str | None = None) -> Recording | None:
    """The recording in the first `size` bytes of a file; None if they cannot be read alone, or have no exchange. Raises
    `CallerError` if there is no such API or profile."""
    try:
        files.check_bounds(path)
        with open(path, "rb") as file:
            data = file.read(size)
    except (OSError, intake.BoundError):
        return None
    name = choose(data[:HEAD], path)
    if name is None:
        return None
    row = IMPORTERS[name]
    whole = data[: data.rfind(b"\n") + 1] if row.grows else importer(name).beginning(data) if row.begins else b""
    opened = _read(path, whole, options_of(api, profile))
    return join_files([opened]) if opened[1] else None


def open_each(
    paths: Sequence[str], *, api: str | None, profile: str | None, compare: bool = True
) -> Iterator[FileGroup]:
    """Reads files and folders one after another, so that only one session is in memory at a time. Sessions that a
    logger spread over the files of a folder come last, one folder at a time. With `compare`, a file with the same bytes
    as an earlier one is left out. Raises `CallerError` if there is no such API or profile."""
    from inspector.sessions.folders import files_of  # this import costs 2 ms of the start
    options = options_of(api, profile)
    every, shut = files_of(paths)

    def unread(name: str, why: str, done: int) -> FileGroup:
        return FileGroup((name,), Recording((Input(name, "unknown", 0, error=why),), (), ()), done, len(every))

    for why in shut:
        yield unread(why.split(": ", 1)[0], why, 0)
    spread: dict[str, list[OpenedFile]] = {}
    beside: set[str] = set()
    equal = equal_files(name for name, _ in every) if compare else {}
    every = sorted(every, key=lambda each: each[0] in equal)  # a file is read before its copies
    read: set[str] = set()
    for done, (name, listed) in enumerate(every, start=1):
        if name in beside:
            continue
        if (first := equal.get(name)) in read:
            yield FileGroup((name,), Recording((equal_input(name, first),), (), ()), done, len(every))
            continue
        skipped, found = _of_folder(name, options) if listed else ("", list(_open(name, options, None)))
        if skipped and not skipped.endswith(COMPANION):
            yield unread(name, skipped, done)
        if skipped:
            continue
        beside.update(source.path for source, _ in found[1:])
        if later := is_spread(found[0][0]):
            spread.setdefault(os.path.dirname(name), []).extend(found)
        elif found[0][1]:
            read.add(name)
        yield FileGroup(() if later else (name,), join_files([] if later else found), done, len(every))
    for group in spread.values():
        yield FileGroup(tuple(source.path for source, _ in group), join_files(group), len(every), len(every))


def options_of(api: str | None, profile: str | None) -> Options:
    """The options for reading. Raises `CallerError` if there is no such API or profile."""
    if api is not None:
        wire(api)
    if profile is not None:
        profile_named(profile)
    return Options(api, profile, intake.Room())


def _open(path: str, options: Options, stdin: bytes | None) -> Iterator[OpenedFile]:
    try:
        if path == STDIN:
            if len(stdin or b"") > intake.most():
                raise intake.BoundError(intake.too_large())
            source, found = _read(path, stdin or b"", options)
        else:
            files.check_bounds(path)
            if os.path.isdir(path):
                yield from _folder(path, options)
                return
            source, found = read_file(path, options)
    except (OSError, intake.BoundError) as why:
        yield unread_file(path, why)
        return
    yield source, found
    yield from files_beside(source, options)


def files_beside(
    source: Input, options: Options, read: Callable[[str], OpenedFile] | None = None
) -> Iterator[OpenedFile]:
    """Reads the further files of a session, such as its subagents' transcripts in the folder with its name."""
    pattern = IMPORTERS[source.format].beside if source.format in IMPORTERS else ""
    if not pattern:
        return
    from glob import escape, glob
    stem = escape(os.path.splitext(source.path)[0])  # the path may contain brackets
    if pattern.startswith("../"):
        stem, pattern = os.path.dirname(stem), pattern[3:]
    for name in sorted(glob(os.path.join(stem, pattern), recursive=True)):
        try:
            files.check_bounds(name)
            intake.check_regular(name)
            child, found = read(name) if read is not None else _read(name, intake.file_bytes(name), options)
            if not (child.error or "").endswith(COMPANION):
                below = f"{_name(source)} › {_name(child)}"
                yield child, [replace(each, session=each.session or below) for each in found]
        except (OSError, intake.BoundError) as why:
            yield unread_file(name, why)


def _name(source: Input) -> str:
    """The name of a session within the name of its child: its title, else its file name, shortened if it is long."""
    title = source.about.title if source.about is not None else ""
    stem = os.path.basename(source.path).split(".")[0]
    return title or (stem[:8] if len(stem) > _LONGEST_NAME else stem)


Build = Callable[[RawExchange, str, Options, redact.Counts | None], Exchange | UnbuiltExchange]


def read_file(path: str, options: Options, head: bytes = b"", build_one: Build | None = None) -> OpenedFile:
    """Reads one file. A large file that grows line by line is read in pieces, any other as a whole. Raises `OSError` if
    it cannot be read, and `BoundError` if it is a device, or larger than the maximum."""
    found = os.stat(path)
    intake.begin_file(path)
    if stat.S_ISREG(found.st_mode) and found.st_size > intake.HEAVY and intake.streams(found.st_size):
        with open(path, "rb") as file:
            name = choose(file.read(HEAD), path)
            if name is not None and IMPORTERS[name].grows:
                file.seek(0)
                return _import(path, name, file, options)
    return _read(path, _bytes_of(path, head), options, build_one)


def _bytes_of(path: str, head: bytes = b"") -> bytes:
    """The bytes of a file, but only the head of a database, whose importer reads it by path together with its log."""
    if not head and os.path.isfile(path):
        with open(path, "rb") as file:
            head = file.read(HEAD)
    return head if head.startswith(SQLITE) else intake.file_bytes(path, head)


def _unread(why: Exception) -> str:
    return f"cannot be read: {why.strerror or why}" if isinstance(why, OSError) else str(why)


def unread_file(path: str, why: Exception) -> OpenedFile:
    """The result for a file that cannot be read."""
    return _failed_input(path, _unread(why)), []


def _failed_input(path: str, why: str, format_name: str = "unknown", skips: tuple[Skipped, ...] = ()) -> Input:
    return Input(path, format_name, 0, skips, error=f"{intake.input_name(path)}: {redact.text(why)}")


def _folder(path: str, options: Options) -> Iterator[OpenedFile]:
    """An input for the folder itself, which counts the files without a session, then one for each session in it."""
    from inspector.sessions.folders import files_below

    skipped: list[Skipped] = []
    companions: list[str] = []
    sessions: list[OpenedFile] = []
    for number, name in enumerate(files_below(path, skipped)):
        why, found = _of_folder(name, options, alone=True)
        if why.endswith(COMPANION):
            companions.append(why[len(name) + 2 : -len(COMPANION)])
        elif why:
            skipped.append(Skipped(number, why))
        else:
            sessions += found
    if sessions:
        notices = (Notice("files that have no exchange of their own", Counter(companions)),) if companions else ()
        yield Input(path, "folder", 0, tuple(skipped), notices), []
        yield from sessions
    else:
        why = f"no session in this folder (files looked at: {len(skipped) + len(companions)}): {EXPECTED}"
        yield _failed_input(path, why, "folder", tuple(skipped)), []


def _of_folder(name: str, options: Options, alone: bool = False) -> tuple[str, list[OpenedFile]]:
    """Why a file of a folder is no session, or empty; its exchanges, and those of its further files unless `alone`."""
    from inspector.sessions.folders import plain_head

    try:
        if not stat.S_ISREG(os.stat(name).st_mode):
            return f"{name}: not a regular file", []
        files.check_bounds(name)
        with open(name, "rb") as file:
            head = file.read(HEAD)
        if not head or choose(plain_head(head), name) is None:
            from inspector.sessions.importers.known_formats import other_encoding

            return f"{name}: {'empty' if not head else other_encoding(head) or 'no session'}", []
        source, found = read_file(name, options._replace(listed=True), head)
    except (OSError, intake.BoundError) as why:
        return f"{name}: {_unread(why)}", []
    if source.error is not None and not found:
        return source.error, []
    return "", [(source, found), *(() if alone else files_beside(source, options))]


def _read(path: str, data: bytes, options: Options, build_one: Build | None = None) -> OpenedFile:
    if not data or data.isspace():
        return _failed_input(path, f"empty: {EXPECTED}"), []
    plain = unpack(data, room=options.room) if data.startswith(intake.PACKED) else data
    if isinstance(plain, str):
        return _failed_input(path, f"a packed file that is damaged or too large ({plain}): {EXPECTED}"), []
    name = recognise(plain, path)
    if name is None:
        from inspector.sessions.importers.known_formats import refusal, unknown

        why = refusal(plain[:HEAD], path) if plain.startswith(SQLITE) else unknown(plain, path)
        return _failed_input(path, why), []
    return _import(path, name, plain, options, build_one)


def _import(
    path: str, name: str, data: bytes | IO[bytes], options: Options, build_one: Build | None = None
) -> OpenedFile:
    try:
        reading = reading_of(name, data, path, options)
    except UnreadableError as why:
        return _failed_input(path, str(why), name), []
    except ODD as why:
        return _failed_input(path, f"a file that {unusable(why)}: {EXPECTED}", name), []
    return decode_reading(path, name, reading, options, build_one)


def decode_reading(
    path: str, format_name: str, reading: FileReading, options: Options, build_one: Build | None = None
) -> OpenedFile:
    """The result of an importer for one file, with its raw exchanges decoded."""
    exchanges = list(reading.exchanges)
    refused: list[tuple[RawExchange, UnbuiltExchange]] = []
    reading.raws.reverse()
    size, count = intake.size_of(path), len(reading.raws)
    while reading.raws:
        intake.note_read(size - size * len(reading.raws) // count)
        raw = reading.raws.pop()  # freed once it is decoded, because it takes as much memory as the result
        try:
            built = (build_one or build)(raw, path, options, reading.masked)
        except ODD as why:
            built = UnbuiltExchange(f"an exchange that {unusable(why)}")
        if isinstance(built, Exchange):
            exchanges.append(built)
        else:
            refused.append((raw, built))
    unbuilt = (Skipped(raw.entry, why.why) for raw, why in refused)
    skipped = [Skipped(each.entry, redact.text(each.why))
               for each in sorted([*reading.skipped, *unbuilt], key=lambda each: each.entry)]
    error, notices = reading.error, list(reading.notices)
    if not exchanges and error is None:
        error, notice = _why_empty(format_name, refused, skipped, options)
        notices.extend(notice)
    if format_name == "pairs" and not exchanges and error is None and not skipped and reading.notices:
        error = notice_of(notices.pop(0)).text  # all content is damaged
    source = Input(
        path, format_name, len(exchanges), tuple(skipped),
        # Importers quote the file, so credentials are masked in notices and descriptions too.
        tuple(map(mask_notice, notices)),
        f"{intake.input_name(path)}: {redact.text(error)}" if error else None,
        reading.about and SessionAbout(*map(redact.text, reading.about)),
        tuple(reading.acts), tuple(reading.answers), reading.masked,
    )
    return source, exchanges


def _why_empty(
    format_name: str, refused: list[tuple[RawExchange, UnbuiltExchange]], skips: list[Skipped], options: Options
) -> tuple[str | None, list[str]]:
    """The error of a file without exchanges; or None and a notice if the file is readable."""
    for raw, why in refused:
        if why.other is not None:
            at = entry_name(format_name, raw.entry)
            return f"{at} is {why.other}, not {options.api}: expected `--api {why.other}`, or none", []
    if refused and (format_name == "body" or all(why.undecodable for _, why in refused)):
        return refused[0][1].why, []
    words = f"{len(skips):,} {entry_word(format_name, len(skips) > 1)}"
    first = f"number {skips[0].entry + 1:,}: {skips[0].why}" if skips else ""
    return None, [f"no exchange of an API that is read among its {words} ({first})" if skips else NO_ANSWER]


# -- The recording of all files --------------------------------------------------------------------------------------


def join_files(
    files: Sequence[OpenedFile],
    thread: Callable[[list[Exchange], Sequence[Sequence[int]]], tuple[TurnRecord, ...]] = thread,
    mask_seams: Callable[
        [list[Exchange], Sequence[TurnRecord], Mapping[str, redact.Counts]], list[Exchange]] = mask_seams,
) -> Recording:
    """The recording of all files, with the turns within each session (`session_key`)."""
    inputs: list[Input] = []
    exchanges: list[Exchange] = []
    groups: dict[tuple[bool, str], list[int]] = {}
    for source, found in files:
        start = len(exchanges)
        exchanges.extend(found)
        inputs.append(source)
        if found:
            groups.setdefault(session_key(source), []).extend(range(start, len(exchanges)))
    _settle(exchanges, inputs)
    turns = thread(exchanges, list(groups.values()))
    _inherit(exchanges, turns)
    clean = mask_seams(exchanges, turns, {input_file.path: input_file.masked for input_file in inputs})
    return Recording(tuple(inputs), tuple(clean), turns)


def turns_of(one: OpenedFile) -> tuple[TurnRecord, ...]:
    """The turns of one file that is read alone."""
    source, found = one
    exchanges = list(found)
    _settle(exchanges, [source])
    return thread(exchanges, [range(len(exchanges))])


def _settle(exchanges: list[Exchange], inputs: Sequence[Input]) -> None:
    if any(exchange.recorder is not None for exchange in exchanges):
        # Only for transcripts, because this import loads a wire format and costs 2.4 ms of the start.
        from inspector.sessions.transcripts.ending_rules import settle

        settle(exchanges, inputs)


def _inherit(exchanges: list[Exchange], turns: Sequence[TurnRecord]) -> None:
    """Gives a polled response the request that it answers, whose tools and cap apply to it; and to a request of a
    thread of Messages that names no tools those of the answer before it, because the thread keeps them."""
    for link in (link for turn in turns for link in turn.links if link.parent is not None):
        one, parent = exchanges[link.index], exchanges[link.parent or 0]
        request, before = one.request, parent.request
        if before and request is None and link.place is TurnPlace.RESUME:
            exchanges[link.index] = replace(one, request=replace(before, previous_id=one.response.id, stream=False))
        elif before and request and request.previous_id and request.extra.get("thread") and not request.tools:
            exchanges[link.index] = replace(one, request=replace(request, tools=before.tools))
