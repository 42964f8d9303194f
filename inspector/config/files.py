"""Writing: folders and files of ours for nobody else; files that are written beside their place, then renamed.

Further down: where things are kept.
"""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

FOLDER, FILE = 0o700, 0o600
"""What is kept of sessions is for its owner alone."""
_BINARY = getattr(os, "O_BINARY", 0)


def private_folder(path: Path) -> None:
    """Makes a folder of ours, and what is missing above it, for its owner alone; one that is there is closed too.

    Raises:
        OSError: it cannot be made.
    """
    new_folder(path)
    with suppress(OSError):  # one that belongs to somebody else is as it is
        if path.stat().st_mode & 0o077:
            path.chmod(FOLDER)


def new_folder(path: Path) -> None:
    """Makes a folder, and what is missing above it, for its owner alone; one that is there stays as it is.

    Raises:
        OSError: it cannot be made.
    """
    if path.is_dir():
        return
    new_folder(path.parent)
    path.mkdir(FOLDER, exist_ok=True)


def private_file(path: str | Path) -> None:
    """Makes a file for its owner alone where there is none.

    Raises:
        OSError: it cannot be made.
    """
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | _BINARY, FILE))


def replace_all(files: Mapping[Path, bytes], mode: int = 0o666) -> None:
    """Writes all of the files beside their places, then renames them: a full disk leaves what was there whole.

    Raises:
        OSError: one cannot be written; no file is new then, unless a rename failed between two others.
    """
    made: list[tuple[Path, Path]] = []
    try:
        for path, data in files.items():
            target = Path(os.path.realpath(path))  # a link stays one
            if target.exists() and not target.is_file():
                target.write_bytes(data)  # a FIFO or a device: there is nothing to leave whole
                continue
            beside = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.tmp")
            made.append((beside, target))
            _write(beside, data, stat.S_IMODE(target.stat().st_mode) if target.exists() else None, mode)
        for beside, target in made:
            os.replace(beside, target)
    finally:
        for beside, _ in made:
            with suppress(OSError):
                beside.unlink()


def _write(path: Path, data: bytes, kept: int | None, mode: int) -> None:
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, mode)
    with os.fdopen(number, "wb") as file:
        if kept is not None:
            with suppress(OSError):
                path.chmod(kept)
        file.write(data)
        file.flush()
        os.fsync(number)


# -- Where things are kept -------------------------------------------------------------------------------------------
# The operator's configuration, the project's, our data. Nothing is written here.

APP = "loop-inspector"
PROJECT_FILE = "loop-inspector.toml"
CONFIG_VARIABLE = "LOOP_INSPECTOR_CONFIG"
"""A file in place of the operator's own; empty for none at all."""
DATA_VARIABLE = "LOOP_INSPECTOR_DATA"
"""A folder in place of our data folder."""


def user_file(environment: Mapping[str, str]) -> Path | None:
    """The operator's configuration, whether it is there or not; None where they want none."""
    given = environment.get(CONFIG_VARIABLE)
    if given is not None:
        return Path(given) if given else None
    return _config_home(environment) / "config.toml"


def _config_home(environment: Mapping[str, str]) -> Path:
    """Our folder among the operator's configurations.

    It is asked for at every start. On Linux with a home the XDG specification says where it is; importing platformdirs,
    which knows all the rest, takes longer than reading a small recording.
    """
    home, given = environment.get("HOME", ""), environment.get("XDG_CONFIG_HOME", "")
    if sys.platform == "linux" and os.path.isabs(home) and "ANDROID_ROOT" not in environment:
        return Path(given if os.path.isabs(given) else f"{home}/.config") / APP
    from platformdirs import user_config_path

    return user_config_path(APP, appauthor=False)


def project_file(start: Path | None = None) -> Path | None:
    """The project's configuration: the nearest above the working directory, up to its repository's root."""
    here = start or Path.cwd()
    for folder in (here, *here.parents):
        if (folder / PROJECT_FILE).is_file():
            return folder / PROJECT_FILE
        if (folder / ".git").exists():
            return None
    return None


def files(environment: Mapping[str, str]) -> list[Path]:
    """The configurations that are there, in the order in which they are read."""
    user = user_file(environment)
    if user is None and environment.get(CONFIG_VARIABLE) == "":
        return []
    found = [user] if user is not None and (user.is_file() or CONFIG_VARIABLE in environment) else []
    project = project_file()
    return [*found, *([project] if project is not None else [])]


def data_folder(environment: Mapping[str, str]) -> Path:
    """Where branches, marks and notes are kept."""
    given = environment.get(DATA_VARIABLE)
    if given:
        return Path(given)
    from platformdirs import user_data_path

    return user_data_path(APP, appauthor=False)


def state_folder() -> Path:
    """Where recent files and the last theme are remembered."""
    from platformdirs import user_state_path

    return user_state_path(APP, appauthor=False)
