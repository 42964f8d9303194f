"""Nothing that a transcript holds reaches a terminal as a command, and nothing readable is lost."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from inspector.report import explain
from inspector.report.lines import wire
from inspector.report.lines.spans import inert, one_line
from loop_core.values import At, ExchangePart
from tests.scenes.rows import each_row

ESC, BEL, CSI_C1, ST_C1 = "\x1b", "\x07", "\x9b", "\x9c"
HOSTILE = {
    "colour": f"{ESC}[31mred{ESC}[0m",
    "title": f"{ESC}]0;owned{BEL}",
    "link": f"{ESC}]8;;https://evil.example{ESC}\\click{ESC}]8;;{ESC}\\",
    "clipboard": f"{ESC}]52;c;cm0gLXJmIC8={BEL}",
    "c1": f"{CSI_C1}2J{ST_C1}",
    "cursor": "fine\rEVIL\b\b\b\b",
    "bidi": "access\u202elevel\u202c \u2066x\u2069",
    "zero width": "ad\u200bmin\u200d\ufeff",
    "tags": "hi\U000e0041\U000e0042",
    "surrogate": "half \ud83d of it, \udc00 of that",
    "separators": "one\u2028two\u2029three\x85four\x0bfive\x0csix",
    "nul": "a\0b",
    "delete": "a\x7fb",
}


OVERRIDES = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
INVISIBLE = "\u00ad\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\U000e0001\U000e0041"


def dangerous(text: str) -> list[str]:
    """Characters by which text commands a terminal, misleads a reader, or cannot be written; no line break, no tab."""
    return [
        c
        for c in text
        if c not in "\n\t"
        and (
            unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")
            or unicodedata.bidirectional(c) in OVERRIDES
            or c in INVISIBLE
        )
    ]


@each_row("text", HOSTILE.values())
def test_hostile_text_is_shown_as_marks(text):
    assert dangerous(text)
    assert dangerous(inert(text)) == []
    inert(text).encode("utf-8")  # and can be written out


def test_an_escape_is_a_visible_mark_and_what_follows_it_stays_readable():
    assert inert(f"{ESC}[31mred") == "\u241b[31mred"
    assert inert("a\x7f") == "a\u2421"
    assert inert(f"{CSI_C1}2J") == "<009B>2J"
    assert inert("\u202e") == "<202E>"
    assert inert("\ud83d") == "<D83D>"


@each_row(
    "text", ["", "plain", "two\nlines\tand a tab", "Grüße, 世界, 🦊, é, ﷺ", "[bold]x[/bold] `code`"]
)
def test_what_is_harmless_stays_as_it_is(text):
    assert inert(text) == text


def test_line_breaks_of_windows_are_line_breaks():
    assert inert("one\r\ntwo") == "one\ntwo"
    assert inert("one\rtwo") == "one\u240dtwo"  # alone it would go back over the line


@given(st.text(st.characters(), max_size=30))
def test_no_text_at_all_gets_through(text):
    shown = inert(text)
    assert dangerous(shown) == []
    assert inert(shown) == shown
    shown.encode("utf-8")


@given(st.text(st.characters(), max_size=30), st.integers(1, 20))
def test_one_line_is_one_line_and_no_wider_than_asked(text, width):
    line = one_line(text, width)
    assert len(line) <= width
    assert len(line.splitlines()) <= 1
    assert dangerous(line) == []


def test_a_cut_line_says_that_it_is_cut():
    assert one_line("abcdef", 4) == "abc…"
    assert one_line("abcd", 4) == "abcd"
    assert one_line("a\nb\tc") == "a\u23ceb c"


@each_row("place", [explain.place, wire.place])
@each_row("text", HOSTILE.values())
def test_a_place_that_a_member_of_the_body_names_is_shown_as_marks(place, text):
    """A provider can send a field of any name, and the finding about it named its place as it was sent."""
    assert dangerous(place(At(ExchangePart.BODY, 1, 2, f"/choices/0/delta/{text}"))) == []
