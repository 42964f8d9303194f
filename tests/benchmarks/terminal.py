"""A program in a pseudo-terminal of its own: what it shows, what it costs, what a key costs. Linux only.

CPU is read from the process's own clock, so that work of others on the machine does not count.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import tempfile
import termios
import time
from collections.abc import Sequence
from types import TracebackType

COLUMNS, ROWS = 120, 40
ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]P_^X][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-OQ-WYZ`-~])")
QUESTIONS = {
    b"\x1b[?2026$p": b"\x1b[?2026;2$y",  # synchronized output: known
    b"\x1b[c": b"\x1b[?62;22c",
    b"\x1b[6n": b"\x1b[1;1R",
}
"""What a program may ask its terminal, and what this one answers."""


class NotShownError(Exception):
    """The program did not show what was waited for."""


class Terminal:
    """Runs a command in a pty; `wait_for`, `press` and `idle` measure it."""

    def __init__(self, command: Sequence[str], cwd: str) -> None:
        self._home = tempfile.TemporaryDirectory()
        self.shown = b""
        """Everything that came, escape sequences removed."""
        self._tail = b""
        env = {name: value for name, value in os.environ.items() if not name.startswith(("TEXTUAL", "XDG_"))}
        env |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "HOME": self._home.name}
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            os.chdir(cwd)
            os.execvpe(command[0], list(command), env)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._fd)
        self._home.cleanup()

    def cpu(self) -> float:
        """CPU seconds of the program since exec, all its threads."""
        return time.clock_gettime((~self._pid << 3) | 2)

    def wait_for(self, marker: str, seconds: float = 60) -> float:
        """CPU seconds until `marker` (a regular expression) has been written."""
        pattern = re.compile(marker.encode())
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._read(0.05)
            if pattern.search(self.shown):
                return self.cpu()
        raise NotShownError(f"{marker!r} was not shown in {seconds} s; {self._last()}")

    def settle(self, quiet: float = 0.25, seconds: float = 60) -> None:
        """Reads until nothing has come for `quiet` seconds."""
        end = time.monotonic() + seconds
        while self._read(quiet):
            if time.monotonic() > end:
                raise NotShownError(f"still drawing after {seconds} s")

    def press(self, key: str, times: int, quiet: float = 0.06) -> float:
        """CPU seconds of one press, each drawn before the next."""
        start = self.cpu()
        for _ in range(times):
            os.write(self._fd, key.encode())
            self.settle(quiet)
        return (self.cpu() - start) / times

    def latency(self, key: str) -> float:
        """Seconds from a key to the first that is drawn after it."""
        self.settle(0.03)
        start = time.monotonic()
        os.write(self._fd, key.encode())
        self._read(2)
        return time.monotonic() - start

    def peak(self) -> float:
        """The most memory that the program had, in MB."""
        with open(f"/proc/{self._pid}/status", encoding="utf-8") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024

    def idle(self, seconds: float) -> float:
        """CPU seconds a second while nothing is asked."""
        start, clock = self.cpu(), time.monotonic()
        while time.monotonic() - clock < seconds:
            self._read(seconds / 10)
        return (self.cpu() - start) / (time.monotonic() - clock)

    def _last(self) -> str:
        """The end of what was shown, on one line."""
        return f"last shown: {' '.join(self.shown.decode('utf-8', 'replace').split())[-200:]!r}"

    def _read(self, wait: float) -> bool:
        ready, _, _ = select.select([self._fd], [], [], wait)
        if not ready:
            return False
        try:
            data = os.read(self._fd, 1 << 16)
        except OSError:  # the program has ended
            raise NotShownError(f"the program ended; {self._last()}") from None
        for question, reply in QUESTIONS.items():
            if question in data:
                os.write(self._fd, reply)
        whole = self._tail + data
        cut = whole.rfind(b"\x1b", max(0, len(whole) - 64))
        self._tail = whole[cut:] if cut >= 0 and not ESCAPES.match(whole, cut) else b""
        self.shown = (self.shown + ESCAPES.sub(b"", whole[: len(whole) - len(self._tail)]))[-200_000:]
        return True
