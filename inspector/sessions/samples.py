"""The sample sessions that come with the program: where they are, and what each is called.

They stand in `sample_sessions/` at the root of a checkout, and inside the package in an installed wheel. Titles come
from a session file's own header, or from the table in the folder's README for files of other formats.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from pydantic_core import from_json

from inspector.sessions.native import MARK
from inspector.sessions.values import About
from loop_core.errors import CallerError
from loop_core.frozen import frozen

_ROW = re.compile(r"^\|\s*`(?P<name>[^`]+)`\s*\|(?P<cells>.*)\|\s*$", re.MULTILINE)
_HERE = Path(__file__).resolve().parents


@frozen
class Sample:
    """One sample session."""

    name: str
    path: Path
    about: About

    @property
    def title(self) -> str:
        """What a list shows."""
        return self.about.title or self.name


def folder() -> Path | None:
    """The folder of the sample sessions; None where the program came without them."""
    return next((each for each in (_HERE[1] / "sample_sessions", _HERE[2] / "sample_sessions") if each.is_dir()), None)


def samples(place: Path | None = None) -> tuple[Sample, ...]:
    """All sample sessions in the order of their names; `place` is another folder to look in."""
    place = place or folder()
    if place is None:
        return ()
    readme = place / "README.md"
    rows = _rows(readme.read_text(encoding="utf-8")) if readme.is_file() else {}
    found = sorted(path for path in place.iterdir() if path.is_file() and path.suffix != ".md" and path.name[0] != ".")
    return tuple(Sample(path.name, path, _header(path) or rows.get(path.name, About())) for path in found)


def find(name: str, place: Path | None = None) -> Sample | None:
    """The sample with this file name, or with this name without its suffix; None where there is none."""
    return next((each for each in samples(place) if name in (each.name, each.name.split(".", 1)[0])), None)


PREFIX = "sample:"


def located(path: str) -> str:
    """The path of a sample session for `sample:NAME`, where the beginning of its name is enough; any other path as is.

    Raises:
        CallerError: no sample session has a name that begins so.
    """
    if not path.startswith(PREFIX):
        return path
    wanted = path.removeprefix(PREFIX)
    found = next((each for each in samples() if wanted and each.name.startswith(wanted)), None)
    if found is None:
        raise CallerError(f"{path}: no sample session has a name that begins so; `inspector samples` lists them")
    return short(found.path)


def short(path: Path) -> str:
    """A path from here, where it lies below the working directory; else whole."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def _header(path: Path) -> About | None:
    with path.open("rb") as file:
        line = file.readline(1 << 16)
    try:
        header = from_json(line)
    except ValueError:
        return None
    if not isinstance(header, dict) or MARK not in header:
        return None
    return About(*(str(header.get(name, "")) for name in ("title", "story", "provenance", "end_state")))


def _rows(text: str) -> dict[str, About]:
    """The rows of the README's table: file, title, story, provenance, end state; a title may be left out."""
    rows: dict[str, About] = {}
    for match in _ROW.finditer(text):
        cells = [cell.strip() for cell in match["cells"].split("|")]
        title, story, provenance, end_state = cells if len(cells) == 4 else [*cells[:1], *cells, "", "", ""][:4]
        rows[match["name"]] = About(title, story, provenance, end_state)
    return rows
