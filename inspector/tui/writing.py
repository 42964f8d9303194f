"""Files that the app writes into a folder that was typed: never over another, and a failure is a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from inspector.export.write import write
from loop_core.errors import LoopError


def written(folder: str, make: Callable[[], Mapping[str, str]]) -> str:
    """Makes files (name -> content) and writes them into a folder; what to say of it."""
    place = Path(folder).expanduser()
    try:
        paths = write(_apart(make(), place), str(place))
    except LoopError as why:
        return f"not written: {why}"
    return f"written: {', '.join(paths)}"


def _apart(files: Mapping[str, str], place: Path) -> Mapping[str, str]:
    """The files under names that are not taken yet: nothing is ever written over."""
    number = 1
    while True:
        named = {name if number == 1 else _numbered(name, number): content for name, content in files.items()}
        if not any((place / name).exists() for name in named):
            return named
        number += 1


def _numbered(name: str, number: int) -> str:
    stem, dot, suffix = name.partition(".")
    return f"{stem}-{number}{dot}{suffix}"
