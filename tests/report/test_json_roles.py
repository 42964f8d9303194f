"""JSON is shown with the role of each piece: broken or cut, no byte changes, and only what is seen costs."""

from __future__ import annotations

import json
import time
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from inspector.report.lines import body_slices
from inspector.report.lines.body_slices import CHUNK, InString, JsonLines, after, json_pieces
from inspector.report.lines.slices import Slices, text_of_bytes
from inspector.report.lines.spans import LONGEST, Span, Tone, text_of
from inspector.report.lines.wire import wire
from tests.report.test_inert import HOSTILE, dangerous
from tests.scenes.costs import IN_PROPORTION, growth
from tests.scenes.recordings import ASKS, chat, cut_stream, pair_of, show, user
from tests.scenes.rows import each_row

NAMES = {Tone.KEY: "name", Tone.STRING: "string", Tone.NUMBER: "number", Tone.DIM: "mark"}


def pieces_of(text: str, inside: InString = InString.NO, following: str = "") -> list[tuple[str, str]]:
    return [(text[start:end], NAMES[role]) for start, end, role in json_pieces(text, inside, following)]


def sheet(body: bytes) -> Slices:
    return Slices([], body, body_slices.raw_lines(body), [], (), None, True)


@each_row(("text", "pieces"), [
    ('{"a": "b"}', [("{", "mark"), ('"a"', "name"), (":", "mark"), ('"b"', "string"), ("}", "mark")]),
    ('"a" : 1', [('"a"', "name"), (":", "mark"), ("1", "number")]),
    ("[-1.5e+3, 0,true]", [("[", "mark"), ("-1.5e+3", "number"), (",", "mark"), ("0", "number"), (",", "mark"),
                           ("true", "number"), ("]", "mark")]),
    ("null,false", [("null", "number"), (",", "mark"), ("false", "number")]),
    (r'"a\"b\\", 1', [(r'"a\"b\\"', "string"), (",", "mark"), ("1", "number")]),
    ('"the end is mis', [('"the end is mis', "string")]),
    ('"cut behind a \\', [('"cut behind a \\', "string")]),
    ("nullable v1.2 truely x1", []),
    ("data: [DONE]", [(":", "mark"), ("[", "mark"), ("]", "mark")]),
    ("", []),
])
def test_a_piece_is_what_it_looks_like(text: str, pieces: list[tuple[str, str]]) -> None:
    assert pieces_of(text) == pieces


def test_a_piece_may_begin_inside_a_string() -> None:
    assert pieces_of('rest": 1', InString.YES)[0] == ('rest"', "string")
    assert pieces_of('"rest", 1', InString.ESCAPED)[0] == ('"rest"', "string")
    assert pieces_of("all of it", InString.YES) == [("all of it", "string")]
    assert pieces_of('"name"', following=" : 1") == [('"name"', "name")]
    assert pieces_of('"name"', following=", 1") == [('"name"', "string")]


@given(st.text(st.sampled_from('"\\{}:,1a \n'), max_size=60), st.integers(0, 60))
def test_a_text_in_two_pieces_has_the_roles_of_the_whole(text: str, at: int) -> None:
    """Except for a name that is cut: its beginning cannot know, and a number or word on both sides."""
    head, tail = text[:at], text[at:]
    inside = after(head)
    assert after(tail, inside) == after(text)
    strings = [False] * len(text)
    for start, end, role in json_pieces(text, InString.NO):
        strings[start:end] = [role in (Tone.STRING, Tone.KEY)] * (end - start)
    apart = [False] * len(text)
    for begin, piece, state in ((0, head, InString.NO), (at, tail, inside)):
        for start, end, role in json_pieces(piece, state):
            apart[begin + start : begin + end] = [role in (Tone.STRING, Tone.KEY)] * (end - start)
    assert apart == strings


@given(st.binary(max_size=300), st.integers(10, 60))
def test_no_byte_is_changed_whatever_it_is(body: bytes, width: int) -> None:
    plain = Slices([], body, body_slices.raw_lines(body), [], ())
    with_roles = sheet(body)
    for index in range(len(plain)):
        assert text_of(with_roles.unbroken(index)) == text_of(plain.line(index))
        rows = [text_of(row) for row in with_roles.rows(index, width)]
        assert rows == [text_of(row) for row in plain.rows(index, width)]
        assert with_roles.height(index, width) == len(rows)


def test_a_long_line_keeps_its_roles_where_it_is_broken() -> None:
    body = json.dumps({"long": "x" * (CHUNK * 2), "then": [1, "y" * CHUNK]}).encode()
    shown_lines = [sheet(body).unbroken(index) for index in range(4)]
    assert [line[-1].role for line in shown_lines[:2]] == [Tone.STRING, Tone.STRING]
    assert (Span('"then"', Tone.KEY) in shown_lines[2]) is True
    assert Span("1", Tone.NUMBER) in shown_lines[2]
    last_first = sheet(body)  # asked for the last line at first
    assert last_first.unbroken(3) == sheet(body).unbroken(3)
    assert last_first.unbroken(3)[1].role is Tone.STRING


def test_far_in_a_long_line_there_are_no_roles_and_no_wait() -> None:
    body = b'{"a": "' + b"x" * 30_000_000 + b'"}'
    far = sheet(body)
    began = time.process_time()
    line = far.unbroken(7_000)
    assert time.process_time() - began < 0.2
    assert [span.role for span in line[1:]] == [Tone.PLAIN]
    assert len(far._inside) < 10  # nothing is remembered of lines that were not looked through


@each_row(("body", "mode", "coloured"), [
    (json.dumps(chat("Hi")), "events", True),
    (json.dumps(chat("Hi")), "raw", True),
    (cut_stream("Hi"), "events", True),
    (cut_stream("Hi"), "raw", True),
    ('<html class="error">502</html>', "raw", False),
    ('<html class="error">502</html>', "events", False),
])
def test_bodies_of_json_have_roles_and_others_have_none(body: str, mode: str, coloured: bool) -> None:
    facts = show(pair_of(ASKS, chat("Hi"))).responses[0]
    found = wire(replace(facts, exchange=replace(facts.exchange, content=body.encode())), mode)
    roles = {span.role for index in range(len(found)) for span in found.unbroken(index)}
    assert ({Tone.STRING, Tone.NUMBER} <= roles) is coloured


def test_binary_frames_have_roles_in_their_payloads_alone() -> None:
    facts = show(pair_of(ASKS, chat("Hi"))).responses[0]
    body = b"\0\0\0\x1c" + b'{"a": "b", "c": 1}'
    facts = replace(facts, exchange=replace(facts.exchange, content=body))
    found = wire(facts, "raw")
    assert Tone.STRING not in {span.role for index in range(len(found)) for span in found.unbroken(index)}


def test_the_stop_word_stands_out_of_the_other_strings() -> None:
    facts = show(pair_of(ASKS, chat("It begins", "length"))).responses[0]
    found = wire(facts, "events")
    (mark,) = [span.text for span in found.unbroken(found.focus) if span.role is Tone.MARK]
    assert mark == '"length"'
    assert Span('"finish_reason"', Tone.KEY) in found.unbroken(found.focus)


# -- requests --------------------------------------------------------------------------------------------------------


def test_a_request_has_roles() -> None:
    facts = show(pair_of([user("hi")], chat("ok"), max_tokens=7, stream=False)).responses[0]
    found = wire(facts, "request")
    spans = [span for index in range(len(found)) for span in found.unbroken(index)]
    assert Span('"max_tokens"', Tone.KEY) in spans
    assert Span("7", Tone.NUMBER) in spans
    assert Span("false", Tone.NUMBER) in spans
    assert Span('"hi"', Tone.STRING) in spans
    assert json.loads(found.copy_text()) == facts.exchange.request_json


@given(st.text(max_size=40), st.integers(8, 50))
def test_rows_and_heights_of_a_request_agree(said: str, width: int) -> None:
    text = json.dumps({"a": {"b": [said, said * 7]}}, ensure_ascii=False, indent=2)
    found = JsonLines([(Span("head"),)], text)
    for index in range(len(found)):
        assert found.height(index, width) == len(found.rows(index, width))
        assert text_of(found.unbroken(index)) == text_of(found.line(index))


def test_a_long_text_of_a_request_is_a_string_to_its_end() -> None:
    said = "word " * LONGEST + 'a "quote"'
    found = JsonLines([], json.dumps({"content": said, "n": 1}, indent=2))
    lines = [found.unbroken(index) for index in range(len(found))]
    assert len(lines) > 6
    assert all({span.role for span in line if span.text.strip()} == {Tone.STRING} for line in lines[2:-3])
    assert Span("1", Tone.NUMBER) in lines[-2]


def test_hostile_text_of_a_request_is_inert() -> None:
    found = JsonLines([], json.dumps({"said": "".join(HOSTILE)}, ensure_ascii=False, indent=2))
    assert not any(dangerous(text_of(found.unbroken(index))) for index in range(len(found)))


def test_what_is_searched_in_a_request_is_found() -> None:
    found = JsonLines([(Span("alpha in the head"),)], json.dumps({"a": 1, "b": "Alpha"}, indent=2))
    assert found.find("alpha", 0, 1) == 0
    assert found.find("alpha", 1, 1) == 3
    assert found.find("alpha", 2, -1) == 0
    assert found.find("gamma", 0, 1) is None
    (row,) = found.rows(3, 80, needle="alpha")
    assert Span("Alpha", Tone.MATCH) in row


def test_a_large_request_is_laid_out_at_once() -> None:
    def lay_out(text: str) -> None:
        found = JsonLines([], text)
        assert sum(found.height(index, 80) for index in range(len(found))) == len(found)

    def make(count: int) -> str:
        return json.dumps([{"id": number, "name": "xxxxx"} for number in range(count)], indent=2)

    assert growth(lay_out, make, 10_000) < IN_PROPORTION


def test_bytes_that_are_no_text_stay_marks() -> None:
    body = b'{"a": "\xff\x1b[31m"}'
    assert text_of(sheet(body).unbroken(0)).endswith(text_of_bytes(body))
