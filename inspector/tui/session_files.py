"""Loads sessions for the screens, and remembers recent files, the theme and the last place.

The list of recent files is written only when files were opened by path; a folder that cannot be written is not an
error.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from inspector.config.files import FILE, PLACE_VARIABLE, check_bounds, private_folder, replace_all, state_folder
from inspector.config.settings import Settings
from inspector.replay.case import Case, open_case
from inspector.report.facts import View, view_of_case
from inspector.report.lines.spans import one_line
from inspector.report.lines.steps import Outline
from inspector.report.table_rows import FollowedView, likely_to_grow
from inspector.sessions import open_paths, without_collector
from inspector.sessions.intake import standard_input

if TYPE_CHECKING:
    from inspector.sessions.recording import Recording
    from inspector.whatif.tree import Branch

RECENT, RECENT_FILE = 12, "recent.json"
"""The largest number of recent files in the list, and the name of its file."""
LONG_IN_APP = 5_000
"""The number of exchanges from which a recording is long in the app, which keeps it for hours (`open_case`)."""
STDIN = "-"
REST = 2.0
"""The seconds of rest for each second of reading grown files, which then take a third of a core at most."""


def gone_note(recording: Recording) -> str:
    """The message about a file that was read and no longer exists; empty if all exist."""
    read = (source.path for source in recording.inputs if source.responses and source.path != STDIN)
    gone = next((path for path in read if not os.path.exists(path)), "")
    return f"{one_line(gone)} no longer exists: this shows what was read of it" if gone else ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Run:
    """One run of a session: the original, or a branch."""

    name: str
    view: View
    outline: Outline
    branch: Branch | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OpenSession:
    """A loaded session with its runs."""

    paths: tuple[str, ...]
    case: Case
    original: Run
    title: str = ""
    """The name of the session, if it was not read from a file."""
    before: str = ""
    """The command line that writes the session to its path, if it is not a file yet."""
    following: FollowedView | None = None
    """The view that reads additions to the session's files; None if the files are not followed."""
    part: bool = False
    """Whether only the beginning of its file was read."""

    @property
    def label(self) -> tuple[str, ...]:
        """The name of the session, or its paths."""
        if self.part:
            return tuple(f"{path}, only its beginning" for path in self.paths)
        return (self.title,) if self.title else self.paths

    @property
    def errors(self) -> tuple[str, ...]:
        """The inputs that could not be read, one line each."""
        return tuple(source.error for source in self.case.recording.inputs if source.error)


def command_with_files(before: str, command: str) -> str:
    """A command for the paths of a session, after the command that writes its files if they do not exist yet."""
    return f"{before} && {command}" if before else command


class ReadingOptions(NamedTuple):
    """How paths are read and replayed."""

    api: str | None = None
    profile: str | None = None
    settings: Settings = Settings()
    follow: bool = False
    """Whether the operator named the files as growing (`--follow`)."""


@runtime_checkable
class ReadingApp(Protocol):
    """An app with options for reading files."""

    reading: ReadingOptions


def reading_of(app: object) -> ReadingOptions:
    """The options with which an app reads files; the defaults for other apps."""
    return app.reading if isinstance(app, ReadingApp) else ReadingOptions()


@without_collector
def load(paths: Sequence[str], reading: ReadingOptions) -> OpenSession:
    """Reads the paths, replays their responses, and judges the turns. Raises `LoopError` for an API, profile, policy or
    limit that does not exist."""
    if reading.follow or (len(paths) == 1 and likely_to_grow(paths[0])):
        return load_followed(paths, reading)
    stdin = standard_input() if STDIN in paths else None
    loaded = open_paths(list(paths), api=reading.api, profile=reading.profile, stdin=stdin)
    return session_of(open_case(loaded, long_from=LONG_IN_APP), paths, reading.settings)


def load_followed(paths: Sequence[str], reading: ReadingOptions, view: FollowedView | None = None) -> OpenSession:
    """Loads growing files in their current state; unchanged turns of `view` are reused. Raises `LoopError` for an API,
    profile, policy or limit that does not exist."""
    view = view or FollowedView(paths, reading.api, reading.profile, reading.settings)
    current_view = view.read()
    return OpenSession(tuple(paths), current_view.replay.case, run_of("original", current_view), following=view)


BEGINNING = 3 << 17
"""The most bytes of a large file that are read before the first frame, if they hold `FEW` turns; they take 12 ms."""
FURTHEST, FEW = 1 << 23, 3
"""The most bytes that are read before the first frame to find this many turns, because one may fill megabytes; they
take 0.2 s."""
LEAST, SCREENFUL = 12 << 10, 40
"""The number of bytes that are read first, and the number of turns that fill a screen. The first bytes either hold this
many short turns, or show how many bytes hold them. With 100,000 short turns, the first verdicts take 317 ms of CPU time
after these bytes, and 404 ms after 64 kB."""


@without_collector
def load_beginning(paths: Sequence[str], reading: ReadingOptions) -> OpenSession | None:
    """Loads the first turns of one large file, if its format allows it; None if it does not, or if they are too few.
    Raises `LoopError` for an API, profile, policy or limit that does not exist."""
    if len(paths) != 1 or not os.path.isfile(paths[0]):
        return None
    from inspector.sessions.open import open_beginning

    opened = partial(open_beginning, paths[0], api=reading.api, profile=reading.profile)
    size = min(LEAST, BEGINNING)
    loaded = opened(size)
    if _turns_in(loaded) < SCREENFUL:
        size = min(BEGINNING, LEAST * SCREENFUL // max(1, _turns_in(loaded)))
        loaded = opened(size)
    while _turns_in(loaded) < FEW and size < min(FURTHEST, os.path.getsize(paths[0])):
        size = min(size * 4, FURTHEST)
        loaded = opened(size)
    if loaded is None or len(loaded.turns) < FEW:
        return None
    return replace(session_of(open_case(loaded, long_from=LONG_IN_APP), paths, reading.settings), part=True)


def _turns_in(loaded: Recording | None) -> int:
    return 0 if loaded is None else len(loaded.turns)


@without_collector
def session_of(case: Case, paths: Sequence[str], settings: Settings | None = None) -> OpenSession:
    """A case as a session for the screens."""
    return OpenSession(tuple(paths), case, run_of("original", view_of_case(case, settings or Settings())))


def run_of(name: str, view: View, branch: Branch | None = None) -> Run:
    """A run with its outline."""
    return Run(name, view, Outline(view), branch)


def why_unopenable(path: str) -> str:
    """Why a typed path cannot be opened; empty if it can, as far as its name shows."""
    try:
        check_bounds(path)
        os.stat(path)
    except OSError as why:
        return f"{path}: cannot be read: {why.strerror}"
    except ValueError:  # a character that no path can have
        return f"{path}: not a path"
    return ""


# -- recent files ----------------------------------------------------------------------------------------------------


def state_path(name: str) -> Path:
    """The path of a file of the state folder."""
    return state_folder() / name


def stored_state(name: str) -> Any:
    """The JSON value in a file of the state folder; None if there is none."""
    try:
        return json.loads(state_path(name).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def recent_files() -> list[str]:
    """The recent files that still exist, latest first."""
    value = stored_state(RECENT_FILE)
    # Another version, or a person, may have written the file, so nothing about its content is certain.
    found = [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
    return [path for path in found if os.path.exists(path)][:RECENT]


def remember(paths: Sequence[str]) -> None:
    """Puts paths at the head of the list, if it can be written."""
    new = [os.path.abspath(path) for path in paths if path != STDIN]
    if not new:
        return
    from inspector.whatif.store import lock_file

    try:
        target = state_path(RECENT_FILE)
        private_folder(target.parent)
        # Two instances may open files at the same time; without the lock, one could remove the other's entry.
        with open(target.parent / "lock", "ab", opener=partial(os.open, mode=FILE)) as file, lock_file(file.fileno()):
            other_paths = [path for path in recent_files() if path not in new]
            replace_all({target: json.dumps([*new, *other_paths][:RECENT]).encode()}, FILE)
            target.chmod(FILE)  # an older version left it readable to others
    except OSError:
        return


def last_theme() -> str | None:
    """The theme chosen last in the app; None if none was."""
    try:
        return state_path("theme").read_text(encoding="utf-8").strip() or None
    except (OSError, ValueError):
        return None


def keep_state(name: str, data: bytes) -> None:
    """Writes a file of the state folder, if it can be written."""
    with suppress(OSError):
        target = state_path(name)
        private_folder(target.parent)
        replace_all({target: data}, FILE)


# -- The place in the app, as a value that a later process can read --------------------------------------------------
# The place is the open paths with the current step and tab.

class ScreenPlace(NamedTuple):
    """A place in the original run of a session."""

    paths: tuple[str, ...]
    step: int = 0
    tab: str = ""
    action: str = ""
    """The action of the session's screen to run there, such as `verdict`; empty for none."""

    def as_json(self) -> dict[str, object]:
        """The place as JSON, for the server of a browser tab."""
        return {"paths": list(self.paths), "step": self.step, "tab": self.tab}


def place_of(value: Any) -> ScreenPlace | None:
    """The place in a JSON value, if it is one."""
    if not isinstance(value, Mapping):
        return None
    paths, step, tab = value.get("paths"), value.get("step"), value.get("tab")
    if not isinstance(paths, list) or not paths or not all(isinstance(path, str) for path in paths):
        return None
    if type(step) is not int or step < 0 or not isinstance(tab, str):
        return None
    return ScreenPlace(tuple(paths), step, tab)


def place_from(environment: Mapping[str, str]) -> ScreenPlace | None:
    """The place at which the app should begin; None if there is none, or its files no longer exist."""
    try:
        # The server of a browser tab sets it, so that reloading the page returns to the same place.
        found = place_of(json.loads(environment.get(PLACE_VARIABLE, "null")))
    except ValueError:
        return None
    return found if found is not None and all(os.path.exists(path) for path in found.paths) else None
