"""The program's own files and folders: how they are written, where they are, and which paths a browser tab may open.

Stored files are accessible only to their owner; they are written under a temporary name, then renamed. An environment
variable has the bounds of a browser tab as JSON. Without it (in a terminal) everything may be opened; if it is damaged,
nothing.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import IO, TYPE_CHECKING, NamedTuple

from loop_core.errors import CallerError

if TYPE_CHECKING:
    from pathlib import Path

FOLDER, FILE = 0o700, 0o600
"""The permissions of stored folders and of stored files: only the owner has access."""
_BINARY = getattr(os, "O_BINARY", 0)


def private_folder(path: Path) -> None:
    """Makes one of our folders and its missing parents, accessible only to their owner; an existing folder is
    restricted too. Raises `OSError` if it cannot be made."""
    new_folder(path)
    with suppress(OSError):  # another owner's folder stays unchanged
        if path.stat().st_mode & 0o077:
            path.chmod(FOLDER)


def new_folder(path: Path) -> None:
    """Makes a folder and its missing parents, accessible only to their owner; an existing folder stays unchanged.
    Raises `OSError` if it cannot be made."""
    if path.is_dir():
        return
    new_folder(path.parent)
    path.mkdir(FOLDER, exist_ok=True)


def hold(file: IO[bytes]) -> None:
    """Locks a file that this process writes until the file is closed, so that readers see that it is not finished
    (`is_held`). Without effect on Windows, where nobody could read a locked file."""
    if sys.platform != "win32":
        import fcntl

        with suppress(OSError):
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_held(path: str) -> bool:
    """Whether a process that writes a file holds it; False if that cannot be known. Nothing is written."""
    if sys.platform != "win32" and os.path.isfile(path):
        import fcntl

        with suppress(OSError), open(path, "rb") as file:
            try:
                fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
    return False


def folder_named(path: str | Path) -> bool:
    """Makes the folder that an operator named for files, if its parent exists, so that a mistyped path makes no chain
    of folders; returns whether it is new. Raises `CallerError` if its parent does not exist, and `OSError` if it cannot
    be made."""
    from pathlib import Path

    folder = Path(path)
    if folder.is_dir():
        return False
    missing = [parent for parent in folder.parents if not parent.exists()]
    if missing:
        raise CallerError(f"there is no folder {missing[-1]}; only the last folder of a path is made")
    folder.mkdir(exist_ok=True)
    return True


def private_file(path: str | Path) -> None:
    """Makes a file, accessible only to its owner, if it does not exist. Raises `OSError` if it cannot be made, or if it
    is a FIFO, because opening one would wait."""
    if _is_fifo(path):
        raise OSError(errno.ESPIPE, "a FIFO: expected a regular file", str(path))
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | _BINARY, FILE))


def replace_all(files: Mapping[Path, bytes], mode: int = 0o666) -> None:
    """Writes all files under temporary names, then renames them, so that a full disk leaves the old files intact.
    Raises `OSError` if one cannot be written; no file has changed then, unless a rename failed after others."""
    renames: list[tuple[Path, Path]] = []
    import secrets  # takes 7 ms, and programs that only read do not need it
    from pathlib import Path

    try:
        for path, data in files.items():
            if path.exists() and not path.is_file():
                # A FIFO or a device is written in place, because it has no content to preserve. For `/dev/stdout` at a
                # pipe, and for `>(command)`, only this name can be opened, but not the target of the link.
                _write_in_place(path, data)
                continue
            target = Path(os.path.realpath(path))  # a link stays a link
            beside = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.tmp")
            renames.append((beside, target))
            _write(beside, data, stat.S_IMODE(target.stat().st_mode) if target.exists() else None, mode)
        for beside, target in renames:
            os.replace(beside, target)
    finally:
        for beside, _ in renames:
            with suppress(OSError):
                beside.unlink()


def _is_fifo(path: str | Path) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:
        return False


WAIT = 3.0
"""The number of seconds to wait for a reader of a FIFO; `open` would wait without end."""


def _write_in_place(path: Path, data: bytes) -> None:
    ends = time.monotonic() + WAIT
    while _is_fifo(path):
        try:
            number = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as why:
            if why.errno != errno.ENXIO:
                raise
            if time.monotonic() > ends:
                raise OSError(errno.ENXIO, f"a FIFO that nobody reads (waited {WAIT:g} s)", str(path)) from None
            time.sleep(0.02)
            continue
        os.set_blocking(number, True)
        with os.fdopen(number, "wb") as file:
            file.write(data)
        return
    path.write_bytes(data)


def _write(path: Path, data: bytes, former_mode: int | None, mode: int) -> None:
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, mode)
    with os.fdopen(number, "wb") as file:
        if former_mode is not None:
            with suppress(OSError):
                path.chmod(former_mode)
        file.write(data)
        file.flush()
        os.fsync(number)


# -- The paths of the operator's configuration, the project's, and our data ------------------------------------------
# Nothing is written here.

APP = "loop-inspector"
PROJECT_FILE = "loop-inspector.toml"
CONFIG_VARIABLE = "LOOP_INSPECTOR_CONFIG"
"""The variable with the path of a configuration file that replaces the operator's own; empty: none is read."""
DATA_VARIABLE = "LOOP_INSPECTOR_DATA"
"""The environment variable with the path of a folder that replaces the default data folder."""
CACHE_VARIABLE = "LOOP_INSPECTOR_CACHE"
"""The variable with the path of another cache folder; empty: there is no index of transcripts."""


def home_of_user() -> str:
    """The user's home by the system's list of users; `/`, as in containers, for a user who is not in it."""
    import pwd  # Windows has no such module

    found = ""
    with suppress(KeyError):
        found = pwd.getpwuid(os.getuid()).pw_dir
    return found if os.path.isabs(found) else "/"


def user_file(environment: Mapping[str, str]) -> str | None:
    """The path of the user's configuration file, whether it exists or not; None if the user disabled it."""
    path = environment.get(CONFIG_VARIABLE)
    if path is not None:
        return path or None
    return os.path.join(_config_home(environment), "config.toml")


def _config_home(environment: Mapping[str, str]) -> str:
    """Our folder within the operator's configuration folder."""
    # Needed at every start, so on Linux it is found by the XDG specification and as a string: platformdirs, which finds
    # it on other systems, takes longer to import than a small recording to read, and `Path` objects cost time too.
    home, config_home = environment.get("HOME", ""), environment.get("XDG_CONFIG_HOME", "")
    if sys.platform == "linux" and os.path.isabs(home) and "ANDROID_ROOT" not in environment:
        return os.path.join(config_home, APP) if os.path.isabs(config_home) else os.path.join(home, ".config", APP)
    from platformdirs import user_config_dir

    return user_config_dir(APP, appauthor=False)


def project_file() -> str | None:
    """The project's configuration file: the nearest one in or above the working directory, within its repository."""
    try:
        folder, below = os.getcwd(), ""
    except OSError:  # the working directory was removed
        return None
    while folder != below:
        found = os.path.join(folder, PROJECT_FILE)
        if os.path.isfile(found):
            return found
        if os.path.exists(os.path.join(folder, ".git")):
            return None
        folder, below = os.path.dirname(folder), folder
    return None


def config_files(environment: Mapping[str, str]) -> list[str]:
    """The existing configuration files, in the order in which they are read."""
    user = user_file(environment)
    if user is None and environment.get(CONFIG_VARIABLE) == "":
        return []
    found = [user] if user is not None and (os.path.isfile(user) or CONFIG_VARIABLE in environment) else []
    project = project_file()
    return [*found, *([project] if project is not None else [])]


def data_folder(environment: Mapping[str, str]) -> Path:
    """The folder of branches, marks and notes."""
    from pathlib import Path

    path = environment.get(DATA_VARIABLE)
    if path:
        return Path(path)
    from platformdirs import user_data_path

    return user_data_path(APP, appauthor=False)


def recordings_folder(environment: Mapping[str, str]) -> Path:
    """The folder of the recordings of agents that `inspector record` makes."""
    return data_folder(environment) / "recordings"


def cache_folder(environment: Mapping[str, str]) -> Path | None:
    """The folder of the index of transcripts; None if the operator disabled it."""
    from pathlib import Path

    path = environment.get(CACHE_VARIABLE)
    if path is not None:
        return Path(path) if path else None
    from platformdirs import user_cache_path

    return user_cache_path(APP, appauthor=False)


def state_folder() -> Path:
    """The folder of recent files and the last theme."""
    from platformdirs import user_state_path

    return user_state_path(APP, appauthor=False)


BRANCHES = "sessions"
"""The folder of branches, marks and notes in the data folder."""


def own_folders(environment: Mapping[str, str]) -> frozenset[str]:
    """The folders of files that only this program reads, as real paths, without those of recordings and exports."""
    data, state = data_folder(environment), state_folder()  # one and the same folder on some systems
    own = (cache_folder(environment), data / BRANCHES, None if state == data else state)
    return frozenset(os.path.realpath(path) for path in own if path is not None)


# -- What a tab of a browser may open ----------------------------------------------------------------------------------

BOUNDS_VARIABLE = "LOOP_INSPECTOR_TAB"
PLACE_VARIABLE = "LOOP_INSPECTOR_PLACE"
"""The variable with the place at which the process of a browser tab begins."""
OUTSIDE = "outside what is served: a tab opens only the paths given to `inspector serve`, their folders and our data"


class Bounds(NamedTuple):
    """The paths that may be opened, as real paths."""

    anything: bool = True
    files: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()
    """Folders that may be opened, together with the files directly in them."""
    trees: frozenset[str] = frozenset()
    """Folders that may be opened, together with everything below them."""
    tools: bool = True

    def holds(self, path: str) -> bool:
        """Whether a file or folder may be opened, after following links."""
        if self.anything:
            return True
        real = os.path.realpath(path)
        if real in self.files or real in self.folders:
            return True
        if os.path.dirname(real) in self.folders and not os.path.isdir(real):
            return True
        return any(real == tree or real.startswith(os.path.join(tree, "")) for tree in self.trees)


def bounds_text(paths: Sequence[str], tools: bool, environment: Mapping[str, str]) -> str:
    """The bounds of a browser tab with these paths, as text; without paths, the tab may open everything."""
    trees = [str(path) for path in paths if os.path.isdir(path)]
    files = [path for path in paths if path not in trees]
    return json.dumps({
        "anything": not paths, "tools": tools,
        "files": [os.path.realpath(path) for path in files],
        "folders": [os.path.realpath(os.path.dirname(os.path.abspath(path))) for path in files],
        "trees": [os.path.realpath(path) for path in [*trees, str(data_folder(environment))]],
    })


def bounds_of(environment: Mapping[str, str]) -> Bounds:
    """The bounds of this process."""
    return _read(environment.get(BOUNDS_VARIABLE))


@cache
def _read(text: str | None) -> Bounds:
    if text is None:
        return Bounds()
    try:
        value = json.loads(text)
        return Bounds(value["anything"] is True, frozenset(value["files"]), frozenset(value["folders"]),
                      frozenset(value["trees"]), value["tools"] is True)
    except (ValueError, TypeError, KeyError):
        return Bounds(anything=False, tools=False)


def check_bounds(path: str) -> None:
    """Checks that a path may be opened. Raises `PermissionError` if it may not."""
    if not bounds_of(os.environ).holds(path):
        raise PermissionError(errno.EACCES, OUTSIDE, path)


def check_tools(name: str) -> None:
    """Checks that Python tools may be run. Raises `CallerError` if they may not."""
    if not bounds_of(os.environ).tools:
        raise CallerError(f"--tools {name}: Python tools run in a tab only with `inspector serve --allow-tools`")
