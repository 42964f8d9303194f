"""Starts the app: reads inputs, and sets the exit code."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from inspector.config import KEYS
from inspector.config.settings import Settings
from inspector.report.lines.spans import one_line
from inspector.sessions.intake import heavy
from inspector.tui.app import UNREADABLE, LoopInspector
from inspector.tui.keys import check_keys
from inspector.tui.leaving import READ_EXIT
from inspector.tui.paint import check_theme
from inspector.tui.session_files import STDIN, OpenSession, ReadingOptions, load, place_from
from loop_core.errors import CallerError

if TYPE_CHECKING:
    from inspector.config import Config
    from inspector.live.headless import LiveStart


NO_KEYBOARD = "standard input is not a terminal, and there is none from which keys could be read"
SLICE = 0.001
"""The time in seconds after which the reading thread lets the thread of the keys run. With Python's default of 5 ms a
key waited several times: on a busy machine the 90th percentile of its delay was 61 ms, and is now 43 ms. Reading takes
1 % longer."""


def run(
    paths: Sequence[str], *, api: str | None = None, profile: str | None = None, ascii: bool = False,  # noqa: A002
    settings: Settings | None = None,
    theme: str | None = None,
    keys: Mapping[str, str] | None = None,
    follow: bool = False,
) -> int:
    """Opens the app on these paths, or without paths on a table of the sessions found; returns the exit code. Raises
    `LoopError` for an API, profile, theme or key binding that does not exist."""
    # What is built for the first frame stays, so collecting would only delay it; `on_ready` freezes it all.
    gc.disable()
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SLICE)
    try:
        if api is not None or profile is not None:
            from inspector.sessions.open import options_of  # a start without these options needs no importer yet

            options_of(api, profile)
        reading = ReadingOptions(api, profile, settings or Settings(), follow)
        return _run(list(paths), reading, ascii, theme, keys)
    finally:
        sys.setswitchinterval(usual)
        gc.enable()


def _run(
    paths: Sequence[str], reading: ReadingOptions, plain: bool, theme: str | None, keys: Mapping[str, str] | None,
) -> int:
    begins = place_from(os.environ)
    paths = paths if begins is None else list(begins.paths)
    start: OpenSession | None = None
    # Small inputs are read before the first frame, so that the session appears at once; standard input can only be read
    # before the keyboard takes its place.
    if paths and (STDIN in paths or (not heavy(paths) and (len(paths) == 1 or begins is not None))):
        start = load(paths, reading)
        if not start.original.view.steps:
            return _complain(start.errors or ("no LLM traffic was found",))
    if not _has_keyboard():
        return _complain((NO_KEYBOARD,))
    app = LoopInspector(paths, opened_already=start, reading=reading, plain=plain, theme=theme, keys=keys,
                        begins=begins, as_table=not reading.follow)
    app.opened_paths = tuple(paths) if start is not None else ()
    code = app.run()
    # An unreadable input counts more than how the app ended, so that a script notices it.
    return _complain(app.errors) or code or app.return_code or READ_EXIT


def run_live(start: LiveStart, config: Config) -> int:
    """Opens the app on a live turn whose first request waits for a key; returns the exit code for how the turn ended.
    Raises `LoopError` for a theme or key binding that does not exist."""
    check_config(config)
    if not _has_keyboard():
        raise CallerError(NO_KEYBOARD)
    app = LoopInspector(live=start, reading=ReadingOptions(settings=start.settings), plain=config.ascii,
                        theme=config.theme, keys=config.keys)
    app.run()
    return app.return_code or 0


def check_config(config: Config) -> None:
    """Checks the configured theme and keys, which only the app knows. Raises `CallerError` if one of them does
    not exist; the text says where it is configured."""
    for name, each in config.values.items():
        try:
            if name == "theme":
                check_theme(str(each.value))
            elif name.startswith(f"{KEYS}."):
                check_keys({name.removeprefix(f"{KEYS}."): str(each.value)})
        except CallerError as why:
            raise CallerError(f"{each.origin}: {why}") from None


def _complain(errors: Sequence[str]) -> int:
    for error in errors:
        sys.stderr.write(f"inspector: {one_line(error)}\n")
    return UNREADABLE if errors else READ_EXIT


def _has_keyboard() -> bool:
    """Whether the app can read keys. The terminal takes the place of a standard input that is none, such as a pipe."""
    if "TEXTUAL_DRIVER" in os.environ or sys.stdin.isatty():
        return True
    try:
        # The controlling terminal, even if standard input is a pipe (POSIX, XBD 10.1).
        terminal = os.open("/dev/tty", os.O_RDWR)
    except OSError:
        return False
    os.dup2(terminal, sys.stdin.fileno())
    os.close(terminal)
    return True
