"""What the process of a browser's tab may open: the paths that were served, their folders and our data folder.

Without the variable, in a terminal, everything may be opened. It holds JSON; whatever else it holds, nothing may be.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from inspector.config.files import data_folder
from loop_core.errors import CallerError

VARIABLE = "LOOP_INSPECTOR_TAB"
OUTSIDE = "outside of what was served: a tab opens the paths given to `inspector serve`, their folders and our data"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What may be opened, all of it as real paths."""

    anything: bool = True
    files: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()
    """With what is directly in them."""
    trees: frozenset[str] = frozenset()
    """With everything below them."""
    tools: bool = True
    """Whether Python callables may be imported and run."""

    def holds(self, path: str) -> bool:
        """Whether a file or a folder may be opened; links are followed first."""
        if self.anything:
            return True
        real = os.path.realpath(path)
        if real in self.files or real in self.folders:
            return True
        if os.path.dirname(real) in self.folders and not os.path.isdir(real):
            return True
        return any(real == tree or real.startswith(os.path.join(tree, "")) for tree in self.trees)


def variable(paths: Sequence[str], tools: bool, environment: Mapping[str, str]) -> str:
    """The value for a tab on these paths; without any it may open everything."""
    trees = [str(path) for path in paths if os.path.isdir(path)]
    files = [path for path in paths if path not in trees]
    return json.dumps({
        "anything": not paths, "tools": tools,
        "files": [os.path.realpath(path) for path in files],
        "folders": [os.path.realpath(os.path.dirname(os.path.abspath(path))) for path in files],
        "trees": [os.path.realpath(path) for path in [*trees, str(data_folder(environment))]],
    })


def bounds(environment: Mapping[str, str]) -> Bounds:
    """The bounds of this process."""
    return _read(environment.get(VARIABLE))


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


def check(path: str) -> None:
    """Lets pass what may be opened.

    Raises:
        PermissionError: it may not.
    """
    if not bounds(os.environ).holds(path):
        raise PermissionError(errno.EACCES, OUTSIDE, path)


def check_tools(given: str) -> None:
    """Lets Python tools pass where they may be run.

    Raises:
        CallerError: they may not.
    """
    if not bounds(os.environ).tools:
        raise CallerError(f"--tools {given}: Python tools run in a tab only with `inspector serve --allow-tools`")
