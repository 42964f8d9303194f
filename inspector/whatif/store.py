"""Saves the operator's work on a session: branches, marks, notes and breakpoints. Values that can be computed are not
saved.

Each session has one file in our data folder, named by the hash of the files that were read. It is append-only JSON
Lines: a header with the version, then acts (`docs/branches.md`). An act is one write at the end of the file, under a
lock, so that two programs on one session do not mix their lines; each reads what the other wrote before it writes. A
cut line is left in place, reported and ignored. A file of a newer version is not changed.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inspector.config.files import BRANCHES, FILE, data_folder, private_folder
from inspector.sessions import redact
from inspector.sessions.recording import Recording
from loop_core.errors import CallerError

# -- A lock on an open file, on each operating system ----------------------------------------------------------------
# On a file system without locks no lock is taken.


@contextmanager
def lock_file(number: int, shared: bool = False) -> Iterator[None]:
    """Locks the file, exclusively or shared with other readers; the lock ends with the program at the latest."""
    if sys.platform == "win32":
        import msvcrt

        place = os.lseek(number, 0, os.SEEK_CUR)
        os.lseek(number, 1 << 40, os.SEEK_SET)  # the lock is on this byte, which is never written
        try:
            msvcrt.locking(number, msvcrt.LK_LOCK, 1)
            locked = True
        except OSError:
            locked = False
        os.lseek(number, place, os.SEEK_SET)
        try:
            yield
        finally:
            if locked:
                os.lseek(number, 1 << 40, os.SEEK_SET)
                msvcrt.locking(number, msvcrt.LK_UNLCK, 1)
    else:
        import fcntl

        with suppress(OSError):
            fcntl.flock(number, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        try:
            yield
        finally:
            with suppress(OSError):
                fcntl.flock(number, fcntl.LOCK_UN)


VERSION = 1
MARK = "loop_inspector_branches"
Act = dict[str, Any]


class NewerError(CallerError):
    """The file was written by a newer program version; it is left unchanged."""


@dataclass(slots=True)
class StoredActs:
    """The saved state after all acts."""

    branches: dict[str, Act] = field(default_factory=dict)
    """Key of a branch -> its `parent`, `settings` and `from_step`; a parent precedes its branches."""
    marks: set[tuple[str, int]] = field(default_factory=set)
    """The marked steps, each as the key of its run and its index."""
    notes: dict[tuple[str, int | None], str] = field(default_factory=dict)
    """Key of a run and index of a step (None: the session as a whole) -> the text of the note."""
    breakpoints: dict[str, bool] = field(default_factory=dict)
    """Expression of a breakpoint -> whether the breakpoint is enabled."""


def _branch(acts: StoredActs, act: Act) -> None:
    acts.branches.setdefault(act["key"], {name: act[name] for name in ("parent", "settings", "from_step")})


def _forget(acts: StoredActs, act: Act) -> None:
    gone = {act["key"]}
    for key, each in acts.branches.items():  # parents first
        if each["parent"] in gone:
            gone.add(key)
    acts.branches = {key: each for key, each in acts.branches.items() if key not in gone}
    acts.marks = {mark for mark in acts.marks if mark[0] not in gone}
    acts.notes = {place: text for place, text in acts.notes.items() if place[0] not in gone}


def _mark(acts: StoredActs, act: Act) -> None:
    place = (act["run"], act["step"] - 1)
    (acts.marks.add if act["on"] else acts.marks.discard)(place)


def _note(acts: StoredActs, act: Act) -> None:
    place = (act["run"], None if act["step"] is None else act["step"] - 1)
    if act["text"]:
        acts.notes[place] = act["text"]
    else:
        acts.notes.pop(place, None)


def _breakpoint(acts: StoredActs, act: Act) -> None:
    if act["on"] is None:
        acts.breakpoints.pop(act["text"], None)
    else:
        acts.breakpoints[act["text"]] = act["on"]


_STEP = (int,)
ACTS: Mapping[str, tuple[Callable[[StoredActs, Act], None], Mapping[str, tuple[type, ...]]]] = {
    "branch": (_branch, {"key": (str,), "parent": (str,), "settings": (dict,), "from_step": _STEP}),
    "forget": (_forget, {"key": (str,)}),
    "mark": (_mark, {"run": (str,), "step": _STEP, "on": (bool,)}),
    "note": (_note, {"run": (str,), "step": (int, type(None)), "text": (str,)}),
    "breakpoint": (_breakpoint, {"text": (str,), "on": (bool, type(None))}),
}
"""Name of an act -> the function that applies it, and its fields with their types. Steps count from 1."""


def session_hash(recording: Recording, stdin: bytes | None) -> str:
    """The hash of the bytes of all files that were read, in order, because steps are numbered in that order. Raises
    `OSError` if a file can no longer be read."""
    from hashlib import file_digest, sha256

    whole = sha256()
    for source in recording.inputs:
        if source.format == "folder" or (source.error and not source.responses):
            continue
        if source.path != "-" and not stat.S_ISREG(os.stat(source.path).st_mode):
            raise OSError(errno.ESPIPE, "a pipe can be read only once", source.path)
        if source.path == "-":
            whole.update(sha256(stdin or b"").digest())
        else:
            with open(source.path, "rb") as file:  # in pieces, because a file may be larger than what is kept of it
                whole.update(file_digest(file, "sha256").digest())
    return whole.hexdigest()


class Store:
    """The saved data of one session and its file. Data that cannot be written is kept until the program ends."""

    def __init__(self, path: Path) -> None:
        """Reads the file, if it exists. Raises `NewerError` if the file is of a newer version."""
        self.path = path
        self.kept = StoredActs()
        self.notices: list[str] = []
        """The problems of reading and writing, one line each, without repetitions."""
        self.lost: list[Act] = []
        """The acts that could not be written, which are lost when the program ends."""
        self.failure = ""
        """The reason of the last failed write; empty if none failed."""
        self.unkept: dict[str, str] = {}
        """Key of an unwritten branch -> the reason; it is written again with each branch that is made from it."""
        self._read = 0
        self._lines = 0
        self._header = False
        try:
            with path.open("rb") as file, lock_file(file.fileno(), shared=True):
                self._take(file.read())
        except (FileNotFoundError, NotADirectoryError):
            pass  # nothing was saved yet
        except OSError as why:
            self._tell(f"{path}: cannot be read: {why.strerror or why}")

    @property
    def folder(self) -> Path:
        """The data folder."""
        return self.path.parent.parent

    # -- acts ------------------------------------------------------------------------------------------------------

    def branch(self, key: str, parent: str, settings: Mapping[str, Any], since: int) -> None:
        """Saves a branch: its key, its parent's key, its settings, and the index of the step from which they hold."""
        self._add({"act": "branch", "key": key, "parent": parent, "settings": dict(settings), "from_step": since + 1})

    def forget(self, key: str) -> None:
        """Deletes a branch, those made from it, and their marks and notes."""
        self._add({"act": "forget", "key": key})

    def mark(self, run: str, step: int, on: bool = True) -> None:
        """Sets or removes the mark on a step (by index) of a run."""
        self._add({"act": "mark", "run": run, "step": step + 1, "on": on})

    def note(self, run: str, step: int | None, text: str) -> None:
        """Saves a note on a step or on the session; an empty one deletes it. Credentials in it are masked."""
        number = None if step is None else step + 1
        self._add({"act": "note", "run": run, "step": number, "text": text})

    def breakpoint(self, text: str, on: bool | None) -> None:
        """Saves a breakpoint, enabled or disabled; None deletes it."""
        self._add({"act": "breakpoint", "text": text, "on": on})

    # -- inside ----------------------------------------------------------------------------------------------------

    def _add(self, act: Act) -> None:
        line = _line(act)
        try:
            private_folder(self.path.parent)
            # Under a lock, so that two programs do not mix their lines (docs/branches.md).
            number = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
            try:
                with lock_file(number):
                    if os.fstat(number).st_mode & 0o077:
                        os.chmod(self.path, FILE)  # an older version left the file accessible to other users
                    if os.fstat(number).st_size < self._read:  # the file was removed, and this one is new
                        self._read, self._lines, self._header = 0, 0, False
                    self._take(_read_from(number, self._read))
                    self._write(number, line)
            finally:
                os.close(number)
        except OSError as why:
            self._report_loss(act, f"{self.path.parent}: cannot be written, so nothing is kept: {why.strerror or why}")
            self._tell(self.failure)
        except NewerError as why:
            self._report_loss(act, str(why))
            raise
        else:
            self.unkept.pop(str(act.get("key")), None)

    def _report_loss(self, act: Act, why: str) -> None:
        self.failure = why
        self.lost.append(act)
        ACTS[act["act"]][0](self.kept, act)
        if act["act"] == "branch":
            self.unkept[act["key"]] = why

    def _write(self, number: int, line: bytes) -> None:
        """Appends a line in one write, so that a partial line can only be at the end of the file."""
        size = os.fstat(number).st_size
        lead = b"" if size == 0 or _read_from(number, size - 1) == b"\n" else b"\n"
        lead += b"" if self._header else _line({MARK: VERSION, "session": self.path.stem})
        whole = lead + line
        if os.write(number, whole) != len(whole):
            raise OSError(28, "the disk is full")
        self._take(_read_from(number, self._read))

    def _take(self, data: bytes) -> None:
        """Reads complete lines; a last line without its line end is left for the next reading, or is ignored."""
        whole = data.rfind(b"\n") + 1
        for line in data[:whole].split(b"\n")[:-1]:
            self._take_line(line, self._lines + 1)  # not counted if it raises: a newer line is refused at each attempt
            self._lines += 1
            self._read += len(line) + 1
        if data[whole:]:
            self._tell(f"{self.path}: line {self._lines + 1}: cut; it is kept and not read")

    def _take_line(self, line: bytes, number: int) -> None:
        if not line:
            return
        try:
            act = json.loads(line)
        except (ValueError, RecursionError):
            act = None
        if isinstance(act, dict) and MARK in act:
            version = act[MARK]
            if not isinstance(version, int) or version > VERSION:
                raise NewerError(f"{self.path}: line {number}: branches of version {version}, "
                                 f"written by a newer program: expected {VERSION} at most")
            self._header = True
        elif not isinstance(act, dict) or not self._header or not _is_valid(act):
            self._tell(f"{self.path}: line {number}: " + (
                "cut; it is kept and not read" if act is None else "an unknown act; it is kept"))
        else:
            ACTS[act["act"]][0](self.kept, act)

    def _tell(self, notice: str) -> None:
        if notice not in self.notices:
            self.notices.append(notice)


def _line(value: Act) -> bytes:
    return redact.text(json.dumps(value, ensure_ascii=True, separators=(",", ":"))).encode() + b"\n"


def _read_from(number: int, start: int) -> bytes:
    os.lseek(number, start, os.SEEK_SET)
    parts: list[bytes] = []
    while data := os.read(number, 1 << 20):
        parts.append(data)
    return b"".join(parts)


def _is_valid(act: Act) -> bool:
    """Whether the fields of an act have the right types and values."""
    _, fields = ACTS.get(str(act.get("act")), (None, None))
    return fields is not None and all(
        name in act and type(act[name]) in kinds and (type(act[name]) is not int or act[name] >= 1)
        for name, kinds in fields.items())


def open_store(recording: Recording, environment: Mapping[str, str], stdin: bytes | None = None) -> Store:
    """The store of a recording. Raises `NewerError` if its file is of a newer version, and `CallerError` if a file of
    the recording can no longer be read."""
    try:
        name = session_hash(recording, stdin)
    except OSError as why:
        raise CallerError(f"{why.filename}: cannot be read again: {why.strerror or why}") from None
    return Store(data_folder(environment) / BRANCHES / f"{name}.jsonl")
