"""Textual's driver in a tab's process: ends the app with the server, writes whole packets, tracks the page's focus."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Event, Lock

from textual import messages
from textual.app import App
from textual.drivers.web_driver import WebDriver
from textual.theme import Theme


def whole_packets(write: Callable[[bytes], int]) -> Callable[[bytes], int]:
    """Wraps a writer so that each packet is written completely before the next. The app's thread writes frames and
    another thread writes files, and a pipe may interleave writes longer than its buffer unit.
    """
    lock = Lock()

    def write_packet(data: bytes) -> int:
        with lock:
            left = memoryview(data)
            while left:
                left = left[write(left) :]  # type: ignore[arg-type]  # any buffer is written
        return len(data)

    return write_packet


class TabDriver(WebDriver):
    """The driver of one tab."""

    def __init__(
        self, app: App[object], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._write = whole_packets(lambda data: os.write(self.fileno, data))  # type: ignore[assignment]
        self._first_paint = Event()

    def start_application_mode(self) -> None:
        """Starts reading input only after the app has lost its first focus, which would undo an earlier focus event."""
        super().start_application_mode()
        self._app.theme_changed_signal.subscribe(self._app, self._set_page_colour)
        self._set_page_colour(self._app.current_theme)
        self._app.call_later(self._first_paint.set)

    def _set_page_colour(self, theme: Theme) -> None:
        """Gives the part of the page around the cells the theme's background colour."""
        if theme.background is not None:
            self.write(f"\x1b]11;{theme.background}\x1b\\")

    def stop_application_mode(self) -> None:
        """Stops reading input, even if the reading thread has not started."""
        super().stop_application_mode()
        self._first_paint.set()

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        """Reports the place in the session to the server when the page loses the focus."""
        if packet_type == "blur":
            found = getattr(self._app, "where", None)
            if found is not None:
                self.write_meta({"type": "place", "place": found.as_json()})
        super().on_meta(packet_type, payload)

    def run_input_thread(self) -> None:
        """Reads input; at its end the server is gone, and the app exits."""
        self._first_paint.wait()
        super().run_input_thread()
        if not self.exit_event.is_set():
            self._app.post_message(messages.ExitApp())
