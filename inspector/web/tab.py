"""The process of one browser tab: its start, its input, its end, and the files that it delivers.

It uses textual-serve's protocol with three differences: the process is started without a shell, it always ends, and an
incomplete file never looks complete.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

GRACE = 3.0
"""The number of seconds that a process gets to exit by itself, before it gets SIGTERM, then SIGKILL."""
MOST_TEXT = 4_000
"""The most bytes of a process's last output on standard error, and of the stored place in the session."""

_START = "import os, sys; sys.path[:] = sys.argv.pop(1).split(os.pathsep); from inspector.cli import run; run()"
# The child process has the module path of the server, without the working directory.
_TERMINAL = ("STY", "TMUX", "VTE_VERSION", "COLORFGBG", "LINES", "WT_SESSION", "KITTY_WINDOW_ID")
# The environment variables that describe the terminal in which the server was started.
SCHEMES: Mapping[str, str] = {"dark": "15;0", "light": "0;15"}
"""Colour scheme that the browser prefers -> the value of COLORFGBG by which terminals report this scheme."""


def command(options: Sequence[str], paths: Sequence[str]) -> list[str]:
    """The command of a tab's process: the app on these paths, in this interpreter."""
    # With `-P` Python does not import modules from the working directory, which may contain anything.
    return [sys.executable, "-P", "-c", _START, os.pathsep.join(sys.path), "view", *options, "--", *paths]


WriteBytes = Callable[[bytes], Awaitable[None]]
WriteText = Callable[[str], Awaitable[None]]
_MODE = re.compile(rb"\x1b\[\?((?!2026)\d+)[hl]|\x1b\]11;[^\x1b]*\x1b\\")
"""Matches output that sets up a terminal: modes, except the mode for a single frame, and the colour around the cells.
"""


class TabFiles(DownloadManager):
    """The files that a process delivers, each once."""

    def __init__(self) -> None:
        super().__init__()
        self._whole: set[str] = set()
        self._delivered_keys: set[str] = set()

    async def chunk_received(self, delivery_key: str, chunk: bytes | str) -> None:
        """Notes the end of a file, which an empty chunk marks."""
        if not chunk:
            self._whole.add(delivery_key)
        await super().chunk_received(delivery_key, chunk)

    def take(self, key: str) -> str | None:
        """The name of a file that has not been downloaded yet; a further call for the key finds none."""
        found = self._active_downloads.get(key)
        if found is None or key in self._delivered_keys:
            return None
        self._delivered_keys.add(key)
        return found.file_name

    def is_whole(self, key: str) -> bool:
        """Whether the file has arrived completely."""
        return key in self._whole


class Tab(AppService):
    """The process of one tab. `over` is set when the process has ended, announces its end, or must end."""

    def __init__(
        self, argv: Sequence[str], scheme: str, *, write_bytes: WriteBytes, write_str: WriteText,
        environment: Mapping[str, str], name: str,
    ) -> None:
        self.files = TabFiles()
        self.over = asyncio.Event()
        self.name = name
        """The name of the page that shows the tab, by which a reloaded page finds it; empty if it sent none."""
        self.place = ""
        """The user's place in the session when the page last lost the keyboard, as JSON; empty if none was reported."""
        self._modes: dict[bytes, bytes] = {}
        self._writers: tuple[WriteBytes, WriteText] | None = (write_bytes, write_str)
        # textual-serve expects the command line of a shell
        super().__init__(shlex.join(argv), write_bytes=self._pass_bytes, write_str=self._pass_text,
                         close=self._note_end, download_manager=self.files)
        self._argv, self._scheme, self._environment = list(argv), scheme, environment
        self._size = (0, 0)
        self._error_output = b""
        self._error_reader: asyncio.Task[None] | None = None

    @property
    def last_words(self) -> str:
        """The last output on standard error."""
        return self._error_output.decode("utf-8", "replace").strip()

    async def on_meta(self, data: bytes) -> None:
        """Stores the place in the session; other messages go to textual-serve."""
        message = json.loads(data)
        if message.get("type") == "place":
            self.place = json.dumps(message.get("place"))[:MOST_TEXT]
        else:
            await super().on_meta(data)

    async def _note_end(self) -> None:
        self.over.set()

    async def _pass_bytes(self, data: bytes) -> None:
        for found in _MODE.finditer(data):
            self._modes[found[1] or b"]11"] = found[0]  # the last setting of each mode is in force
        if self._writers is not None:
            await self._write_out(self._writers, self._writers[0](data))

    async def _pass_text(self, text: str) -> None:
        if self._writers is not None:
            await self._write_out(self._writers, self._writers[1](text))

    async def _write_out(self, writers: tuple[WriteBytes, WriteText], writing: Awaitable[None]) -> None:
        """Writes to the browser. If the browser has left, the process continues; only `over` marks its end."""
        try:
            await writing
        except (ConnectionError, asyncio.CancelledError):
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            if self._writers is writers:
                self._writers = None

    async def detach(self) -> None:
        """Notes that no browser shows the tab: its output is discarded."""
        self._writers = None
        await self.blur()

    async def attach(self, write_bytes: WriteBytes, write_str: WriteText, width: int, height: int) -> None:
        """Connects another page to the tab: its terminal is set up again, and everything is drawn again."""
        self._writers = (write_bytes, write_str)
        await write_bytes(b"".join(self._modes.values()))
        await self.set_terminal_size(width, max(1, height - 1) if height > 1 else 2)  # a new size redraws all
        await self.set_terminal_size(width, height)
        await self.focus()

    def _build_environment(self, width: int = 80, height: int = 24) -> dict[str, str]:
        environment = super()._build_environment(width, height)
        for name in _TERMINAL:
            environment.pop(name, None)
        return environment | {
            "TEXTUAL_DRIVER": "inspector.web.tab_driver:TabDriver", "TERM": "xterm-256color", "COLORTERM": "truecolor",
            "COLORFGBG": SCHEMES[self._scheme], **self._environment,
        }

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        """Starts the process without a shell, in its own session: Ctrl-C reaches only the server."""
        process = self._process = await asyncio.create_subprocess_exec(
            *self._argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=self._build_environment(width, height),
            start_new_session=True,
        )
        errors, process.stderr = process.stderr, asyncio.StreamReader()
        process.stderr.feed_eof()  # else textual-serve would store all of standard error and print it unchanged
        self._error_reader = asyncio.create_task(self._read_errors(errors))
        self._stdin = process.stdin
        return process

    async def _read_errors(self, stream: asyncio.StreamReader | None) -> None:
        while stream is not None and (data := await stream.read(4096)):
            self._error_output = (self._error_output + data)[-MOST_TEXT:]

    async def start(self, width: int, height: int) -> None:
        """Starts the process. Raises `OSError` if the system has no room for a further process."""
        self._size = width, height
        await super().start(width, height)
        if self._task is not None:
            self._task.add_done_callback(lambda _: self.over.set())

    async def set_terminal_size(self, width: int, height: int) -> None:
        """Sends the process a new terminal size. A page repeats its first size, for which all would be drawn twice."""
        if (width, height) != self._size:
            self._size = width, height
            await super().set_terminal_size(width, height)

    async def run(self) -> None:
        """Passes the process's output to the page until either ends; a cancelled reader is not an error."""
        with suppress(asyncio.CancelledError, ConnectionError):
            await super().run()

    async def stop(self) -> None:
        """Asks the process to exit, and ensures that it does."""
        process = self._process
        if process is None:
            return
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE):
                    await super().stop()
            if self._task is not None:  # the request to exit could not be sent in time
                self._task.cancel()
                await self._task
        finally:
            await self._end(process)

    async def _end(self, process: Process) -> None:
        """Waits until the process has ended; if it does not end by itself, it gets SIGTERM, then SIGKILL."""
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, number)  # its child processes get the signal too
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE / 3):
                    await _wait_for_end(process, self._error_reader)
                    return


async def _wait_for_end(process: Process, error_reader: asyncio.Task[None] | None) -> None:
    """Waits for all processes that have the output open, and reads it, because a full pipe would block their end."""
    while process.stdout is not None and await process.stdout.read(65_536):
        pass
    await process.wait()
    if error_reader is not None:
        await asyncio.shield(error_reader)
