"""Delivers exported files: as a download in a browser, else into a folder that the operator names, without overwriting.

A failure is returned as a sentence for the note line instead of an exception.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

from textual.app import App
from textual.screen import Screen

from inspector.config.files import data_folder, private_folder
from inspector.report.lines.spans import count_of, one_line
from inspector.sessions import redact
from inspector.tui.messages import ask_operator
from loop_core.errors import LoopError

FileMaker = Callable[[], Mapping[str, str]]
"""A function that makes files: name -> content."""


def deliver(screen: Screen[Any], make: FileMaker, what: str, folder: str | None = None) -> None:
    """Delivers files and reports the result in the screen's note; without `folder`, asks where to write `what`."""
    app, say = screen.app, partial(setattr, screen, "note")
    # The process behind a browser tab may run on another machine, whose folders the operator cannot see.
    if app.is_web:
        say(download(app, make))
    elif folder is not None:
        say(write_files(folder, make))
    else:
        ask_folder(app, what, lambda place: say(write_files(place, make)))


def ask_folder(app: App[Any], what: str, then: Callable[[str], None]) -> None:
    """Asks for the folder to write `what` into; in a browser, which downloads files, `then` is called at once."""
    if app.is_web:
        then("")
        return
    from inspector.tui.questions import Prompt

    ask_operator(app, Prompt(f"write {what} into", "a folder", export_folder()), then)


def export_folder() -> str:
    """The default folder for exports, which is not the folder that the app was started in."""
    return shown_path(str(data_folder(os.environ) / "exports"))


def shown_path(path: str) -> str:
    """A path in full, with `~` for the operator's home folder."""
    return one_line(re.sub(rf"^{re.escape(str(Path.home()))}(?=/|$)", "~", os.path.abspath(path)))


def download(app: App[Any], make: FileMaker) -> str:
    """Offers files to the browser, several as one archive: it asks before it takes several downloads."""
    try:
        files = make()
    except LoopError as why:
        return f"not downloaded: {why}"
    name, content = _archive(files)
    app.deliver_binary(BytesIO(content), save_filename=name, mime_type="application/octet-stream")
    inside = f" with {', '.join(files)}" if len(files) > 1 else ""
    return f"handed to the browser: {name}{inside}"


def _archive(files: Mapping[str, str]) -> tuple[str, bytes]:
    from inspector.export import encode_file

    first = next(iter(files))
    if len(files) == 1:
        return first, encode_file(files[first])
    from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo  # 4 ms of the first frame

    archive = BytesIO()
    with ZipFile(archive, "w", ZIP_DEFLATED) as zipped:
        for name, content in files.items():
            # A ZipInfo without a time has the date 1980-01-01, so that the same files give the same archive.
            zipped.writestr(ZipInfo(name), encode_file(content), ZIP_DEFLATED)
    return f"{first.partition('.')[0]}.zip", archive.getvalue()


def picture(app: App[Any]) -> str:
    """The screen as SVG, without Textual's references to fonts on other servers."""
    # Otherwise every viewer of the picture would send a request for a font to a server.
    return re.sub(r"@font-face\s*\{.*?\}", "", app.export_screenshot(title="Loop Inspector"), flags=re.DOTALL)


def write_files(folder: str, make: FileMaker) -> str:
    """Makes files and writes them into a folder; returns the message about it."""
    from inspector.export import write

    if not folder.strip():  # an empty path is the working folder
        return "not written: expected a folder"
    place = Path(folder).expanduser()
    try:
        if folder == export_folder():
            private_folder(place)  # it is in the data folder, which nobody else may read
        paths, new = write(_rename_existing(make(), place), str(place))
    except LoopError as why:
        return f"not written: {why}"
    except OSError as why:
        return f"not written: {shown_path(folder)}: {why.strerror or why}"
    head = "written, in a new folder" if new else "written"
    if len(paths) == 1:
        return f"{head}: {shown_path(paths[0])}"
    names = ", ".join(Path(path).name for path in paths)
    return f"{head}: {len(paths)} files in {shown_path(str(place))}: {names}"


def _rename_existing(files: Mapping[str, str], place: Path) -> Mapping[str, str]:
    """The files, renamed if one of their names already exists, so that none is overwritten."""
    number = 1
    while True:
        named = {name if number == 1 else _number_name(name, number): content for name, content in files.items()}
        # All files of an export get the same number, so that they still belong together.
        if not any((place / name).exists() for name in named):
            return named
        number += 1


def _number_name(name: str, number: int) -> str:
    stem, dot, suffix = name.partition(".")
    return f"{stem}-{number}{dot}{suffix}"


# -- Copying (OSC 52), and whether this terminal supports it ---------------------------------------------------------
# A terminal does not report whether it copied a text; these are known to ignore it.

Environment = Mapping[str, str]

# The sequence is `ESC ] 52 ; c ; BASE64` (https://invisible-island.net/xterm/ctlseqs/ctlseqs.html).
CLIPBOARD_REFUSALS: tuple[tuple[Callable[[Environment], bool], str], ...] = (
    (lambda environment: environment.get("TERM") == "linux", "the Linux console has no clipboard"),
    (lambda environment: environment.get("TERM_PROGRAM") == "Apple_Terminal", "Terminal.app ignores OSC 52"),
    (lambda environment: "STY" in environment, "GNU screen does not pass OSC 52 on"),
    (lambda environment: 0 < _number(environment.get("VTE_VERSION")) < 7600,
     "VTE ignores OSC 52 before its version 0.76"),
)
"""A test for each kind of terminal that ignores OSC 52, and the message about that kind."""


MOST_COPIED = 1_000_000
"""The largest number of characters copied."""


def copy_text(app: App[Any], text: str) -> str:
    """Copies a text to the clipboard; returns the message about it."""
    lost = copy_refusal(os.environ)
    if lost is not None:
        return f"not copied: {lost}; x writes it to a file"
    # Copied text is usually pasted into a chat or an issue, so credentials are masked here too.
    text = redact.text(text)
    app.copy_to_clipboard(text[:MOST_COPIED])
    size = count_of(len(text), "character")
    if len(text) > MOST_COPIED:
        size = f"the first {MOST_COPIED:,} of {size}"
    quotation = f": {text}" if len(text) <= 60 and "\n" not in text else ""
    place = "browser" if app.is_web else "terminal"
    return f"copied {size}, if the {place} allows it (OSC 52){quotation}"


def copy_refusal(environment: Environment) -> str | None:
    """Why copying cannot work here; None if the terminal may support it."""
    return next((why for test, why in CLIPBOARD_REFUSALS if test(environment)), None)


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) <= 18 else 0
