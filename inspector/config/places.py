"""Where things are kept: the operator's configuration, the project's, our data. Nothing is written here."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

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
