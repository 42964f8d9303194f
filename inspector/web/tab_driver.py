"""Textual's driver for a browser, in the process of a tab: ends with its server, writes whole packets, knows the focus.

Named by TEXTUAL_DRIVER, which the server sets; loaded nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Event, Lock

from textual import messages
from textual.app import App
from textual.drivers.web_driver import WebDriver
from textual.theme import Theme


def whole_packets(write: Callable[[bytes], int]) -> Callable[[bytes], int]:
    """A writer that lets one packet end before the next begins: frames are written by the app's thread, files by the
    one that reads, and a pipe mixes what is longer than its unit.
    """
    lock = Lock()

    def written(data: bytes) -> int:
        with lock:
            left = memoryview(data)
            while left:
                left = left[write(left) :]  # type: ignore[arg-type]  # any buffer is written
        return len(data)

    return written


class TabDriver(WebDriver):
    """The driver of one tab."""

    def __init__(
        self, app: App[object], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._write = whole_packets(lambda data: os.write(self.fileno, data))  # type: ignore[assignment]
        self._painting = Event()

    def start_application_mode(self) -> None:
        """Input is read after the app has lost its first focus: a focus event before that would be undone."""
        super().start_application_mode()
        self._app.theme_changed_signal.subscribe(self._app, self._surround)
        self._surround(self._app.current_theme)
        self._app.call_later(self._painting.set)

    def _surround(self, theme: Theme) -> None:
        """What the cells leave over of the page gets the colour that they stand on."""
        if theme.background is not None:
            self.write(f"\x1b]11;{theme.background}\x1b\\")

    def stop_application_mode(self) -> None:
        """The thread that reads may not have begun."""
        super().stop_application_mode()
        self._painting.set()

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        """When the page loses the focus, reports the place in the session to the server."""
        if packet_type == "blur":
            found = getattr(self._app, "where", None)
            if found is not None:
                self.write_meta({"type": "place", "place": found.as_json()})
        super().on_meta(packet_type, payload)

    def run_input_thread(self) -> None:
        """Where input ends, the server is gone, and so is the app."""
        self._painting.wait()
        super().run_input_thread()
        if not self.exit_event.is_set():
            self._app.post_message(messages.ExitApp())
