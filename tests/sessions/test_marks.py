"""One pass finds what a search for each mark finds, in texts of every kind."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.sessions import redact
from inspector.sessions.marks import searcher

MARKS = redact.MARKS
FOUND = searcher(MARKS)
PIECES = ["s", "k", "-", " ", "\n", "\0", "é", "😀", "\ud800", "Bearer", "AI", "ghp"]
AROUND = st.lists(st.sampled_from(PIECES)).map("".join)


@given(AROUND, st.sampled_from(["", *MARKS]), AROUND)
def test_a_text_holds_a_mark_or_not(before: str, mark: str, after: str) -> None:
    text = before + mark + after
    assert FOUND(text) == any(each in text for each in MARKS)


@given(st.binary(), st.sampled_from(["", *MARKS]), st.binary())
def test_bytes_hold_a_mark_or_not_whether_they_are_text_or_none(before: bytes, mark: str, after: bytes) -> None:
    data = before + mark.encode() + after
    assert FOUND(data) == any(each.encode() in data for each in MARKS)


@pytest.mark.parametrize("marks", [redact.MARKS, redact._NAME_MARKS])
def test_marks_are_plain(marks: tuple[str, ...]) -> None:
    """They stand in a pattern as they are."""
    for mark in marks:
        assert mark
        assert mark.isascii()
        assert re.search(r"[\\.^$*+?{}\[\]|()]", mark) is None
        assert searcher(marks)(f"x{mark}x")
