"""What an operator asked for, by number and name, and the files that it becomes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from zlib import crc32

from inspector.config.files import replace_all
from inspector.export import FORMS, Chosen
from inspector.report.facts import View
from inspector.sessions import redact
from loop_core.errors import CallerError


def chosen(view: View, form: str, turn: int | None = None, response: int | None = None) -> Mapping[str, str]:
    """The files of one form: name -> content. Turns are numbered from 1, responses are indices.

    Raises:
        CallerError: there is no such form, turn or response, or the form cannot hold it.
    """
    if form not in FORMS:
        raise CallerError(f"unknown form {form!r}; expected one of {', '.join(FORMS)}")
    if turn is not None and turn > len(view.turns):
        raise CallerError(f"there is no turn {turn}; expected 1 to {len(view.turns)}")
    if response is not None and response >= len(view.responses):
        raise CallerError(f"there is no response {response}; expected 0 to {len(view.responses) - 1}")
    facts = None if response is None else view.responses[response]
    if facts is None and len(view.responses) == 1:
        facts = view.responses[0]
    return FORMS[form].make(Chosen(view, None if turn is None else view.turns[turn - 1], facts, name_of(view)))


def name_of(view: View) -> str:
    """What the files of a session are called: after the file that it was read from."""
    return stem_of(view.inputs[0].path) if len(view.inputs) == 1 else "sessions"


OWN = "session.jsonl"
"""What stands behind the first dot of session files, and is left out of the names of exports."""


def stem_of(path: str) -> str:
    """The name of a file without dots; no two that differ behind the first one have the same."""
    head, _, rest = Path(path).name.partition(".")
    stem = _word(head) or "session"
    if rest in ("", OWN):
        return stem
    if re.fullmatch(r"\w+(?:\.\w+)*", rest):  # then no other one has these hyphens
        return f"{stem}-{rest.replace('.', '-')}"
    return f"{stem}-{_word(rest)}-{crc32(rest.encode('utf-8', 'surrogateescape')):08x}"


def _word(text: str) -> str:
    return re.sub(r"[^\w-]+", "-", text).strip("-")


def encoded(content: str) -> bytes:
    """The bytes of a file, without credentials; what UTF-8 cannot hold is written as an escape."""
    return redact.text(content).encode("utf-8", "backslashreplace")


def write(files: Mapping[str, str], folder: str, force: bool = False) -> list[str]:
    """Writes the files; the paths that were written.

    Raises:
        CallerError: one is there already, or the folder cannot be written; what was there is whole.
    """
    paths = {Path(folder) / name: content for name, content in files.items()}
    there = [path for path in paths if path.exists()]
    if there and not force:
        raise CallerError(f"{there[0]}: is there already; --force writes over it")
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        replace_all({path: encoded(content) for path, content in paths.items()})
    except OSError as why:
        raise CallerError(f"{folder}: cannot be written: {why.strerror or why}") from None
    return [str(path) for path in paths]
