"""Starts the app: reads inputs, opens it on them, and sets the exit code."""

from __future__ import annotations

import codecs
import gc
import os
import select
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from inspect import isabstract
from typing import TYPE_CHECKING

from rich.console import COLOR_SYSTEMS
from textual.driver import Driver

from inspector.config import KEYS
from inspector.config.settings import Settings
from inspector.report.lines.spans import one_line
from inspector.sessions.intake import heavy
from inspector.tui.app import UNREADABLE, LoopInspector
from inspector.tui.base_app import READ_EXIT
from inspector.tui.keys import check_keys
from inspector.tui.paint import check_theme
from inspector.tui.session_files import STDIN, OpenSession, ReadingOptions, load, place_from
from loop_core.errors import CallerError

if TYPE_CHECKING:
    from inspector.config import Config
    from inspector.live.headless import LiveStart


NO_KEYBOARD = "standard input is not a terminal, and there is none from which keys could be read"
SLICE = 0.001
"""The seconds after which the reading thread lets the thread of the keys run. With Python's default of 5 ms, the 90th
percentile of a key's delay on a busy machine is 61 ms instead of 43 ms. Reading takes 1 % longer."""


def run(
    paths: Sequence[str], *, api: str | None = None, profile: str | None = None, ascii: bool = False,  # noqa: A002
    settings: Settings | None = None,
    theme: str | None = None,
    keys: Mapping[str, str] | None = None,
    follow: bool = False,
) -> tuple[Sequence[str], int]:
    """Opens the app on these paths, or without paths on a table of the sessions found; returns what could not be read,
    and the exit code. Raises `LoopError` for an API, profile, theme or key binding that does not exist."""
    # All objects of the first frame stay, so collecting would only delay it; `on_ready` freezes them.
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
) -> tuple[Sequence[str], int]:
    begins = place_from(os.environ)
    paths = paths if begins is None else list(begins.paths)
    start: OpenSession | None = None
    # Small inputs are read before the first frame, so that the session appears at once; standard input can only be read
    # before the keyboard takes its place.
    if paths and (STDIN in paths or (not heavy(paths) and (len(paths) == 1 or begins is not None))):
        start = load(paths, reading)
        if not start.original.view.steps:
            return start.errors or ("no LLM traffic was found",), UNREADABLE
    if not _has_keyboard():
        return (NO_KEYBOARD,), UNREADABLE
    app = LoopInspector(paths, opened_already=start, reading=reading, plain=plain or not _takes_unicode(), theme=theme,
                        keys=keys, begins=begins, as_table=not reading.follow)
    app.opened_paths = tuple(paths) if start is not None else ()
    _end_with_terminal()
    code = app.run()
    # An unreadable input decides the exit code before the app's end does, so that a script notices it.
    return app.errors, UNREADABLE if app.errors else code or app.return_code or READ_EXIT


def run_live(start: LiveStart, config: Config) -> int:
    """Opens the app on a live turn whose first request waits for a key; returns the exit code for how the turn ended.
    Raises `LoopError` for a theme or key binding that does not exist."""
    check_config(config)
    if not _has_keyboard():
        raise CallerError(NO_KEYBOARD)
    app = LoopInspector(live=start, reading=ReadingOptions(settings=start.settings),
                        plain=config.ascii or not _takes_unicode(), theme=config.theme, keys=config.keys)
    _end_with_terminal()
    app.run()
    return app.return_code or 0


def _takes_unicode() -> bool:
    """Whether the stream on which Textual draws is UTF-8; any other would show `\\u2716` for a sign."""
    return sys.__stderr__ is None or codecs.lookup(sys.__stderr__.encoding).name == "utf-8"


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


def _check_variables() -> None:
    """Checks the environment variables of Textual that could end the app with a traceback. Raises `CallerError`."""
    colours, driver = os.environ.get("TEXTUAL_COLOR_SYSTEM", "auto"), os.environ.get("TEXTUAL_DRIVER")
    if colours not in ("auto", *COLOR_SYSTEMS):
        known = ", ".join(COLOR_SYSTEMS)
        raise CallerError(f"TEXTUAL_COLOR_SYSTEM={one_line(colours)}: expected auto, {known}")
    if driver is None:
        return
    module, _, name = driver.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError):
        found = None
    if not isinstance(found, type) or not issubclass(found, Driver) or isabstract(found):
        raise CallerError(f"TEXTUAL_DRIVER={one_line(driver)}: expected a driver of Textual as MODULE:CLASS, or none")


def _has_keyboard() -> bool:
    """Whether the app can read keys. If standard input is not a terminal, the controlling terminal replaces it. Raises
    `CallerError` for a variable of Textual with an invalid value."""
    _check_variables()
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


def _end_with_terminal() -> None:
    """Ends the program when its terminal is gone. SIGHUP may be ignored, or go to another session alone,
    and the thread that reads keys would then read the end of the terminal again and again."""
    if not sys.stdin.isatty() or not hasattr(select, "poll"):  # Windows has no poll
        return
    terminal = select.poll()
    terminal.register(sys.stdin.fileno(), 0)  # a hang-up is reported without being asked for

    def wait() -> None:
        if any(event & select.POLLHUP for _, event in terminal.poll()):
            os._exit(128 + signal.SIGHUP)  # as SIGHUP would: nothing can be shown any more

    threading.Thread(target=wait, daemon=True).start()
