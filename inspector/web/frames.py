"""What a tab says over its WebSocket, as values. Pure; whatever is malformed is refused, with what was expected.

The frames are those that textual-serve's page sends: a JSON array of a word and what belongs to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from loop_core.errors import LoopError

MOST_CELLS = 2_000
"""Columns or rows; a browser shows fewer, and the app draws every cell."""


class FrameError(LoopError):
    """A frame that the page never sends."""


class InputFrame(NamedTuple):
    """Keys, mouse and pasted text, as a terminal sends them."""

    data: bytes


class SizeFrame(NamedTuple):
    """Cells of the terminal."""

    width: int
    height: int


class PingFrame(NamedTuple):
    """To be answered with the same text."""

    text: str


class FocusFrame(NamedTuple):
    """Whether the page has the keyboard."""

    here: bool


Frame: TypeAlias = InputFrame | SizeFrame | PingFrame | FocusFrame


def frame_of(text: str) -> Frame:
    """One frame.

    Raises:
        FrameError: it is none that the page sends.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise FrameError("not JSON; expected an array of a word and its value") from None
    if not isinstance(value, list) or not value or not isinstance(value[0], str) or value[0] not in FRAMES:
        raise FrameError(f"unknown frame; expected an array that begins with one of {', '.join(FRAMES)}")
    return FRAMES[value[0]](value[1] if len(value) > 1 else None)


def cells(value: Any, name: str) -> int:
    """A number of columns or rows, at most as many as are drawn.

    Raises:
        FrameError: it is no positive whole number.
    """
    if type(value) is not int or value < 1:
        raise FrameError(f"{name}: expected a whole number from 1")
    return min(value, MOST_CELLS)


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise FrameError(f"{name}: expected a text")
    return value


def _resized(value: Any) -> SizeFrame:
    if not isinstance(value, dict):
        raise FrameError("resize: expected an object with width and height")
    return SizeFrame(cells(value.get("width"), "width"), cells(value.get("height"), "height"))


FRAMES: Mapping[str, Callable[[Any], Frame]] = {
    "stdin": lambda value: InputFrame(_text(value, "stdin").encode("utf-8", "replace")),
    "resize": _resized,
    "ping": lambda value: PingFrame(_text(value, "ping")[:64]),
    "focus": lambda value: FocusFrame(True),
    "blur": lambda value: FocusFrame(False),
}
"""Word -> how its value is read."""
