"""What a tab says: the frames of the page are read, everything else is refused with what was expected."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual._xterm_parser import XTermParser

from inspector.web.browser import MOST_CELLS, FocusFrame, FrameError, InputFrame, PingFrame, SizeFrame, frame_of


@pytest.mark.parametrize(("text", "frame"), [
    ('["stdin", "\\u001b[A"]', InputFrame(b"\x1b[A")),
    ('["stdin", "gr\\u00fcn"]', InputFrame("grün".encode())),
    ('["stdin", "\\ud800"]', InputFrame(b"?")),
    ('["resize", {"width": 120, "height": 40}]', SizeFrame(120, 40)),
    ('["resize", {"width": 1000000000, "height": 1}]', SizeFrame(MOST_CELLS, 1)),
    ('["ping", "1700000000000"]', PingFrame("1700000000000")),
    ('["focus"]', FocusFrame(True)),
    ('["blur"]', FocusFrame(False)),
])
def test_the_frames_of_the_page(text: str, frame: object) -> None:
    assert frame_of(text) == frame


@pytest.mark.parametrize(("typed", "keys"), [
    (["\x1b", "u"], ["escape", "u"]),  # however quickly they follow each other
    (["\x1b", "\x1b[A", "\x1b"], ["escape", "up", "escape"]),
    (["\x1bf"], ["ctrl+right"]),  # alt and a letter are one frame, and stay one key
])
def test_each_key_of_the_page_is_read_as_that_key(typed: list[str], keys: list[str]) -> None:
    frames = [frame_of(json.dumps(["stdin", each])) for each in typed]
    parser = XTermParser()
    assert [event.key for frame in frames for event in parser.feed(frame.data.decode())] == keys


@pytest.mark.parametrize(("text", "says"), [
    ("", "not JSON"), ("{", "not JSON"), ("[" * 100_000, "not JSON"), ('{"stdin": 1}', "unknown frame"),
    ("[]", "unknown frame"), ('[["stdin"], "x"]', "unknown frame"), ('["shell", "rm"]', "one of stdin, resize"),
    ('["stdin"]', "stdin: expected a text"), ('["stdin", 7]', "stdin: expected a text"), ('["ping", {}]', "ping"),
    ('["resize", [80, 24]]', "an object with width and height"), ('["resize", {"width": 80}]', "height"),
    ('["resize", {"width": true, "height": 1}]', "width"), ('["resize", {"width": -1, "height": 24}]', "width"),
    ('["resize", {"width": 80, "height": 24.5}]', "height"), ('["resize", {"width": NaN, "height": 24}]', "width"),
    ('["resize", {"width": 80, "height": 0}]', "height: expected a whole number from 1"),
])
def test_crafted_frames_are_refused(text: str, says: str) -> None:
    with pytest.raises(FrameError, match=says.replace("[", r"\[")):
        frame_of(text)


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
                    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)
WORDS = st.sampled_from(["stdin", "resize", "ping", "focus", "blur"])


@given(st.text() | JSON.map(json.dumps) | st.tuples(WORDS, JSON).map(json.dumps))
def test_a_frame_is_read_or_refused_and_nothing_else_happens(text: str) -> None:
    try:
        frame = frame_of(text)
    except FrameError:
        return
    assert isinstance(frame, InputFrame | SizeFrame | PingFrame | FocusFrame)
    if isinstance(frame, SizeFrame):
        assert 1 <= frame.width <= MOST_CELLS
        assert 1 <= frame.height <= MOST_CELLS
