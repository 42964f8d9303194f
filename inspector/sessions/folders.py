"""Finds files: those that a path names, the newest transcripts of agents, and the sample sessions.

The module reads names, times and the beginnings of files, but no whole session, and writes no file.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from heapq import nlargest
from pathlib import Path
from typing import NamedTuple

from inspector.config import files
from inspector.sessions import intake
from inspector.sessions.file_format import DATABASE_NAMES, HEAD
from inspector.sessions.importers import FOLDERS_BESIDE, IMPORTERS
from inspector.sessions.importers.recognition import choose
from inspector.sessions.intake import STDIN
from inspector.sessions.native import MARK
from inspector.sessions.recording import SessionAbout, Skipped
from loop_core.errors import CallerError
from loop_core.json_parser import from_json

_SKIPPED_FOLDERS = frozenset({".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv"})


def files_of(paths: Sequence[str]) -> tuple[list[tuple[str, bool]], list[str]]:
    """The files at paths and in folders, each once, with whether it was found in a folder; and the errors of
    folders."""
    shut: list[Skipped] = []
    found: dict[str, tuple[str, bool]] = {}
    for path in paths:
        below = () if path == STDIN or not os.path.isdir(path) else files_below(path, shut)
        # without files below it, the path itself is used: an empty folder is reported when it is opened
        for name, listed in [(name, True) for name in below] or [(path, False)]:
            found.setdefault(name if name == STDIN else os.path.realpath(name), (name, listed))
    return list(found.values()), [folder.why for folder in shut]


def is_session(path: str) -> bool:
    """Whether an importer recognises a file by its beginning; False if it cannot be read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        files.check_bounds(path)
        with open(path, "rb") as file:
            head = file.read(HEAD)
    except OSError:
        return False
    return bool(head) and choose(plain_head(head), path) is not None


def files_below(path: str, skips: list[Skipped]) -> Iterator[str]:
    """Every file below a folder, except in folders of version control, of packages and of this program's own files;
    `skips` receives the folders that cannot be opened."""
    def add_skip(why: OSError) -> None:
        skips.append(Skipped(len(skips), f"{why.filename}: cannot be read: {why.strerror}"))

    own = files.own_folders(os.environ)
    own_names = {os.path.basename(each) for each in own}  # so that links of few folders are resolved
    for folder, folders, names in os.walk(path, onerror=add_skip):
        within = files.bounds_of(os.environ)
        folders[:] = sorted(name for name in folders
                            if name not in _SKIPPED_FOLDERS and within.holds(os.path.join(folder, name))
                            and (name != "__files" or "mappings" not in folders)  # WireMock's mappings read them
                            and (name not in own_names or os.path.realpath(os.path.join(folder, name)) not in own))
        for name in sorted(names):
            yield os.path.join(folder, name)


def is_beside(path: str, sessions: Container[str]) -> bool:
    """Whether a file is in the folder of one of these sessions, and is therefore read with that session."""
    stems = [path.rpartition(f"{os.sep}{name}{os.sep}")[0] for name in FOLDERS_BESIDE]
    return any(f"{stem}{suffix}" in sessions for stem in stems if stem for suffix in (".jsonl", ".json"))


def plain_head(head: bytes) -> bytes:
    """The beginning of a compressed file, unpacked; a damaged one unchanged."""
    plain = intake.unpacked_head(head, HEAD)
    return head if plain is None else plain


# -- The default folders of agents' transcripts, and the newest transcripts in them ----------------------------------
# Only names and times are read. The folders are those of the rows in `inspector.sessions.importers`.

NEWEST = 10_000
"""The largest number of transcripts that are listed; older ones are left out."""
EMPTY = 1
"""The largest size of a file without a record: Mistral Vibe and Letta Code write such files before the first one."""
MOST_NAMES = 20_000
"""The largest number of names that are examined in one default folder."""


class Transcript(NamedTuple):
    """A file that an agent wrote, or a recording of an agent; not yet read."""

    modified: float
    """The time of the last change, in seconds since the epoch."""
    path: str
    size: int
    agent: str
    """The agent that wrote it; empty for a recording."""


def transcripts(environment: Mapping[str, str]) -> list[Transcript]:
    """The newest transcripts of all agents, and the recordings of agents; `environment` has the variables that name the
    folders."""
    within = files.bounds_of(environment)
    # two rows may name one folder, so the key is the path
    found = {each.path: each for each in _all_transcripts(environment) if within.holds(each.path)}
    # Codex CLI packs old sessions with zstd, and may leave the plain file beside the packed one; the plain one counts.
    plain = (each for path, each in found.items() if path.removesuffix(".zst") == path or path[:-4] not in found)
    return nlargest(NEWEST, plain)


def _all_transcripts(environment: Mapping[str, str]) -> Iterator[Transcript]:
    home = environment.get("HOME") or environment.get("USERPROFILE")
    for place in (each for row in IMPORTERS.values() for each in row.folders):
        root, parts, names = environment.get(place.variable) or "", place.parts, place.names
        if root and os.path.isfile(root):  # OPENCODE_DB and CLOUDTAP_DB name the file itself
            from glob import escape  # rarely needed, and it would delay each start

            (root, name), parts = os.path.split(os.path.abspath(root)), ()
            names = (escape(name),)
        root = root or (os.path.join(home, place.folder) if home and place.folder is not None else "")
        left = [MOST_NAMES]  # a list, because all levels of `_files` count down the same number
        for entry in _files(root, parts, names, left) if root else ():
            try:
                status = entry.stat()
            except OSError:
                continue
            if status.st_size > EMPTY:
                yield Transcript(max(status.st_mtime, _log_time(entry.path)), entry.path, status.st_size, place.agent)
    for entry in _files(str(files.recordings_folder(environment)), (), ("*.jsonl",), [MOST_NAMES]):
        with suppress(OSError):
            status = entry.stat()
            yield Transcript(status.st_mtime, entry.path, status.st_size, "")


def _log_time(path: str) -> float:
    """The time of a database's log, which has the newest rows; 0 if there is none."""
    if not path.endswith(DATABASE_NAMES):
        return 0.0
    try:
        return os.stat(f"{path}-wal").st_mtime
    except OSError:
        return 0.0


def _files(
    folder: str, parts: tuple[str, ...], names: tuple[str, ...], remaining: list[int]
) -> Iterator[os.DirEntry[str]]:
    """The files of these names below a folder; links are followed to files, never to folders."""
    if parts and parts[0] not in ("*", "**"):
        yield from _files(os.path.join(folder, parts[0]), parts[1:], names, remaining)
        return
    try:
        with os.scandir(folder) as found:
            entries = list(found)
    except OSError:
        return
    for entry in entries:
        remaining[0] -= 1
        if remaining[0] < 0:
            return
        try:
            is_folder, is_file = entry.is_dir(follow_symlinks=False), entry.is_file()
        except OSError:
            continue
        if is_folder and parts:
            yield from _files(entry.path, parts if parts[0] == "**" else parts[1:], names, remaining)
        elif is_file and parts in ((), ("**",)) and any(fnmatchcase(entry.name, name) for name in names):
            yield entry


# -- The sample sessions that come with the program ------------------------------------------------------------------
# They are in `sample_sessions/` at the root of a checkout, and inside the package in an installed wheel. Their titles
# come from the header of a session file, or for other formats from the table in the folder's README.

_ROW = re.compile(r"^\|\s*`(?P<name>[^`]+)`\s*\|(?P<cells>.*)\|\s*$", re.MULTILINE)
_HERE = Path(__file__).resolve().parents


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample session."""

    name: str
    path: Path
    about: SessionAbout

    @property
    def title(self) -> str:
        """The title in a list."""
        return self.about.title or self.name


def folder() -> Path | None:
    """The folder of the sample sessions; None if the program came without them."""
    return next((each for each in (_HERE[1] / "sample_sessions", _HERE[2] / "sample_sessions") if each.is_dir()), None)


def samples(place: Path | None = None) -> tuple[Sample, ...]:
    """All sample sessions, ordered by name. `place` is another folder to look in."""
    place = place or folder()
    if place is None:
        return ()
    readme = place / "README.md"
    rows = _rows(readme.read_text(encoding="utf-8")) if readme.is_file() else {}
    found = sorted(path for path in place.iterdir() if path.is_file() and path.suffix != ".md" and path.name[0] != ".")
    return tuple(Sample(path.name, path, _header(path) or rows.get(path.name, SessionAbout())) for path in found)


def find(name: str, place: Path | None = None) -> Sample | None:
    """The sample with this file name, with or without its suffix; None if there is none."""
    return next((each for each in samples(place) if name in (each.name, each.name.split(".", 1)[0])), None)


PREFIX = "sample:"


def locate(path: str) -> str:
    """The path of a sample session for `sample:NAME`, where NAME may be a beginning; any other path unchanged. Raises
    `CallerError` if no name of a sample session begins so."""
    if not path.startswith(PREFIX):
        return path
    wanted = path.removeprefix(PREFIX)
    found = next((each for each in samples() if wanted and each.name.startswith(wanted)), None)
    if found is None:
        raise CallerError(f"{path}: no sample session has a name that begins so; `inspector samples` lists them")
    return short(found.path)


def short(path: Path) -> str:
    """A path, relative to the working directory if it is below it."""
    try:
        return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)
    except OSError:  # the working directory was removed
        return str(path)


def _header(path: Path) -> SessionAbout | None:
    with path.open("rb") as file:
        line = file.readline(1 << 16)
    try:
        header = from_json(line)
    except ValueError:
        return None
    if not isinstance(header, dict) or MARK not in header:
        return None
    return SessionAbout(*(str(header.get(name, "")) for name in ("title", "story", "provenance", "end_state")))


def _rows(text: str) -> dict[str, SessionAbout]:
    """The rows of the README's table: file, title, story, provenance, end state; without a title, the story is the
    title."""
    rows: dict[str, SessionAbout] = {}
    for match in _ROW.finditer(text):
        cells = [cell.strip() for cell in match["cells"].split("|")]
        title, story, provenance, end_state = cells if len(cells) == 4 else [*cells[:1], *cells, "", "", ""][:4]
        rows[match["name"]] = SessionAbout(title, story, provenance, end_state)
    return rows
