"""The browser of the system, driven by Playwright: nothing is downloaded, and it asks nobody for anything."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = ("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--hide-scrollbars")
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x1b\x07]*(?:\x07|\x1b\\))")


def browser_path() -> str | None:
    """The path of a browser; None where there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    sandbox = () if os.name == "nt" or os.geteuid() else ("--no-sandbox",)  # root cannot have one
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=browser_path(), args=[*QUIET, *sandbox])
        try:
            yield opened
        finally:
            opened.close()


class PageRecord:
    """A page with all that it asked for, said and drew."""

    def __init__(self, context: Any, size: tuple[int, int] = (1200, 720)) -> None:
        self.page = context.new_page()
        self.page.set_viewport_size({"width": size[0], "height": size[1]})
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self.drawn = ""
        self.sent: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda said: said.type in ("error", "warning") and self.complaints.append(said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("websocket", self._socket)

    def _socket(self, socket: Any) -> None:
        self.asked.append(socket.url)
        self.drawn = ""
        socket.on("framereceived", self._receive)
        socket.on("framesent", lambda frame: self.sent.append(frame))

    def _receive(self, frame: str | bytes) -> None:
        if isinstance(frame, bytes):
            self.drawn += _ESCAPES.sub("", frame.decode("utf-8", "replace"))

    def shows(self, text: str, seconds: float = 60) -> None:
        """Waits until the app has drawn a text since the last that was waited for."""
        left = seconds * 20
        while text not in self.drawn:
            left -= 1
            assert left > 0, f"{text!r} was not drawn; last: {self.drawn[-300:]!r}"
            self.page.wait_for_timeout(50)
        self.drawn = self.drawn.rpartition(text)[2]

    def size(self) -> tuple[int, int]:
        """Columns and rows that the page last told the app."""
        told = next(frame for frame in reversed(self.sent) if frame.startswith('["resize"'))
        columns, rows = map(int, re.findall(r"\d+", told))
        return columns, rows

    def cell(self, column: int, row: int) -> tuple[float, float]:
        """The middle of a cell in the page."""
        columns, rows = self.size()
        box = self.page.locator(".xterm-screen").bounding_box()
        return (box["x"] + box["width"] * (column + 0.5) / columns, box["y"] + box["height"] * (row + 0.5) / rows)
