"""The framings: every split of the bytes gives the same frames, and their places are places in those bytes.

The references here are written from the documents (the HTML standard's event stream, RFC 8259, RFC 6901) over the whole
bytes, one line or one character at a time; the modules under test never see more than a chunk.
"""

from __future__ import annotations

import json
import re
import time
import tracemalloc
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from loop_core.formats import FORMATS
from loop_core.wire import decode_response, decoder
from loop_core.wire.failures import MOST_OF_A_RULE
from loop_core.wire.framing import SSE, Frame
from loop_core.wire.json_values import NDJSON, JSONArray, JSONSequence, byte_span, char_span, path_of, pointer, slice_of
from tests.scenes.rows import each_row

BOM = b"\xef\xbb\xbf"


def whole(framing: Any, data: bytes) -> list[Frame]:
    return [*framing.feed(data), *framing.flush()]


def split(framing: Any, data: bytes, cuts: list[int]) -> list[Frame]:
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    frames = [frame for a, b in pairwise(edges) for frame in framing.feed(data[a:b])]
    return [*frames, *framing.flush()]


def every_split(kind: type[Any], data: bytes) -> None:
    """Byte by byte, and cut once at every place."""
    expected = whole(kind(), data)
    assert split(kind(), data, list(range(len(data)))) == expected
    for cut in range(len(data) + 1):
        assert split(kind(), data, [cut]) == expected, cut


cuts = st.lists(st.integers(0, 400), max_size=12)

# -- server-sent events ----------------------------------------------------------------------------------------------


def events_by_the_standard(data: bytes) -> list[tuple[bytes, str | None]]:
    """The HTML standard's algorithm, line by line; what is pending at the end is an event, unlike there.

    Two additions: lines that are no JSON together and JSON each are events of their own, and `error:` reports an error.
    """
    text = data.removeprefix(BOM)
    lines = re.split(rb"\r\n|\n|\r", text)
    events: list[tuple[bytes, str | None]] = []
    values: list[bytes] = []
    singles: list[tuple[bytes, str | None]] = []
    name = own = None
    error = False
    for number, line in enumerate([*lines, b""]):
        field, colon, value = line.partition(b":")
        value = value.removeprefix(b" ") if colon else b""
        if not line:
            at_end = number >= len(lines) - 1
            if error or (len(values) > 1 and not parses(b"\n".join(values)) and each_parses(values, at_end)):
                events.extend(singles)
            elif values:
                events.append((b"\n".join(values), name))
            values, singles, error, name, own = [], [], False, None, None
        elif field == b"data":
            values.append(value)
            if colon:
                singles.append((value, own))
                own = None
        elif field == b"event" and colon:
            name = own = value.strip().decode("utf-8", "replace") or None
        elif field == b"error" and colon:
            told = value.strip()
            said = told if parses(told) else json.dumps(told.decode("utf-8", "replace")).encode()
            singles.append((b'{"error":' + said + b"}", own))
            error, own = True, None
    return events


def parses(data: bytes) -> bool:
    try:
        json.loads(data)
    except ValueError:
        return False
    return True


def each_parses(values: list[bytes], at_end: bool) -> bool:
    """Whether each is an object, a list or the end mark; the last of a body may be cut."""
    told = values[:-1] if at_end and values[-1][:1] in (b"", b"{", b"[") else values
    return all(value.strip() == b"[DONE]" or (value.strip()[:1] in (b"{", b"[") and parses(value)) for value in told)


breaks = st.sampled_from([b"\n", b"\r\n", b"\r"])
payloads = st.sampled_from([
    b"{}", b'{"a": "b"}', b'{"a":', b'{"a":\n1}', '{"é": "€😀"}'.encode(), b"[DONE]", b"", b" x", b"a:b", b"\xff\xfe",
])
lines = st.one_of(
    st.builds(lambda text: b"data: " + text, payloads),
    st.builds(lambda text: b"data:" + text, payloads),
    st.just(b"data"),
    st.sampled_from([b'error: {"code": 500}', b"error: no more"]),
    st.sampled_from([b"event: delta", b"event:delta", b"event: other", b"event:", b": PROCESSING", b":", b"id: 7",
                     b"retry: 10", b"unknown: field", b"dataset: x", b"nonsense"]),
)


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Lines and blank lines in any order, each with a line break of its own; sometimes without the last one."""
    made = [draw(st.sampled_from([b"", BOM]))]
    same = draw(st.one_of(breaks, st.none()))
    for line in draw(st.lists(st.one_of(lines, st.just(b"")), max_size=14)):
        made += [line, same or draw(breaks)]
    if draw(st.booleans()) and len(made) > 1:
        made.pop()
    return b"".join(made)


@settings(max_examples=150)
@given(streams(), cuts)
@example(b"data: a\r\n\r\ndata: b\r\n\r\n", [8, 9, 10])
@example(b"data: a\n\n\r\ndata: b\r\rdata: c", [])
@example(BOM + b"\ndata: a\n\n", [1, 2])
def test_sse_reads_what_the_standard_reads(data: bytes, where: list[int]) -> None:
    expected = events_by_the_standard(data)
    frames = split(SSE(), data, where)
    assert [(payload, name) for payload, name, _, _ in frames] == expected
    assert frames == whole(SSE(), data)


@given(streams())
def test_sse_places_are_places_in_the_bytes(data: bytes) -> None:
    frames = whole(SSE(), data)
    for payload, name, start, end in frames:
        block = data[start:end]
        assert block == block.strip(b"\r\n")
        assert not re.search(rb"\r\n\r\n|\n\n|\r\r", block)
        if b"error:" not in data:  # beside an error, a `data` without a colon is no event and no line of one
            assert events_by_the_standard(block) == [(payload, name)]
    ends = [end for *_, end in frames]
    assert all(end <= start for end, (_, _, start, _) in zip(ends, frames[1:], strict=False))


SAMPLE = BOM + (
    ": ok\n\n"
    'event: delta\ndata: {"t": "é€😀"}\n\n'
    'event: delta\ndata: {"t": "2"}\n\n'
    "event: delta\rdata: one\rdata: two\r\r"
    'id: 3\r\ndata: {"t": "3"}\r\n\r\n'
    "data:4\n\n\n\n"
    "data: 5"
).encode()


def test_sse_by_hand() -> None:
    frames = whole(SSE(), SAMPLE)
    assert [(payload.decode(), name) for payload, name, _, _ in frames] == [
        ('{"t": "é€😀"}', "delta"), ('{"t": "2"}', "delta"), ("one\ntwo", "delta"), ('{"t": "3"}', None), ("4", None),
        ("5", None),
    ]
    assert [SAMPLE[start:end].decode() for *_, start, end in frames] == [
        'event: delta\ndata: {"t": "é€😀"}', 'event: delta\ndata: {"t": "2"}', "event: delta\rdata: one\rdata: two",
        'id: 3\r\ndata: {"t": "3"}', "data:4", "data: 5",
    ]


def test_sse_every_split_of_a_mixed_stream() -> None:
    every_split(SSE, SAMPLE)


@each_row("tail", [b"", b"\n", b"\r", b"\r\n"])
def test_sse_delivers_the_event_that_is_pending_at_the_end(tail: bytes) -> None:
    """openai-node#2725: the stop reason was in it."""
    data = b"data: a\n\ndata: b" + tail
    assert whole(SSE(), data) == [(b"a", None, 0, 7), (b"b", None, 9, 16)]


def test_sse_gives_an_event_as_soon_as_its_blank_line_is_there() -> None:
    framing = SSE()
    assert framing.feed(b"data: a\r\n") == []
    assert framing.feed(b"\r\n") == [(b"a", None, 0, 7)]
    assert framing.feed(b"data: b\n\n: x\r\ndata: c\n\n") == [(b"b", None, 11, 18), (b"c", None, 20, 32)]
    assert framing.feed(b"data: d\r\r") == [(b"d", None, 34, 41)]
    assert framing.flush() == []


def test_sse_delivers_a_bare_object_between_events() -> None:
    """google-genai 3.4.0 reads errors that a server writes into a stream without `data:`."""
    data = b'data: {"a": 1}\n\n{"error": {\n"code": 500}}\n'
    assert whole(SSE(), data) == [(b'{"a": 1}', None, 0, 14), (b'{"error": {\n"code": 500}}', None, 16, 41)]


def test_sse_does_not_take_one_event_for_the_next() -> None:
    """The prefix of the last event is remembered; a second line after it must not become part of the payload."""
    data = b"event: a\ndata: 1\n\nevent: a\ndata: 2\ndata: 3\n\nevent: a\ndata: 4\nevent: b\n\ndata: 5\n\n"
    assert [(payload, name) for payload, name, _, _ in whole(SSE(), data)] == [
        (b"1", "a"), (b"2\n3", "a"), (b"4", "b"), (b"5", None)
    ]


# -- lines -----------------------------------------------------------------------------------------------------------

values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 99999), st.text(max_size=8),
              st.sampled_from(['"', "\\", '\\"', "}{", "[]", "},{", "\n,", "]}\n,\n{", "é", "\u2028"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=4), values, max_size=3)
texts = st.builds(
    lambda value, indent, ascii_: json.dumps(value, indent=indent, ensure_ascii=ascii_).encode(),
    objects, st.sampled_from([None, 2]), st.booleans(),
)
line_texts = st.builds(lambda value, ascii_: json.dumps(value, ensure_ascii=ascii_).encode(), objects, st.booleans())


@given(st.lists(line_texts, min_size=1, max_size=6), st.sampled_from([b"", BOM]), breaks.filter(lambda b: b != b"\r"),
       st.booleans(), cuts)
def test_ndjson_gives_every_line(made: list[bytes], bom: bytes, ending: bytes, last: bool, where: list[int]) -> None:
    data = bom + ending.join(made) + (ending if last else b"")
    frames = split(NDJSON(), data, where)
    assert [payload.rstrip() for payload, *_ in frames] == made
    assert all(data[start:end] == payload for payload, _, start, end in frames)
    assert frames == whole(NDJSON(), data)


def test_ndjson_by_hand() -> None:
    data = b'\n{"a": 1}\n\n{"b": 2}\n{"c'
    assert whole(NDJSON(), data) == [
        (b'{"a": 1}', None, 1, 9), (b'{"b": 2}', None, 11, 19), (b'{"c', None, 20, 23)
    ]
    every_split(NDJSON, data)


def test_ndjson_reads_values_that_are_printed_over_lines() -> None:
    first, second = json.dumps({"a": {"b": "}"}}, indent=2), json.dumps({"c": [1]}, indent=2)
    data = f"{first}\n{second}\n".encode()
    frames = whole(NDJSON(), data)
    assert [json.loads(payload) for payload, *_ in frames] == [{"a": {"b": "}"}}, {"c": [1]}]
    assert all(data[start:end] == payload for payload, _, start, end in frames)
    every_split(NDJSON, data)


def test_ndjson_keeps_a_line_that_is_cut() -> None:
    assert whole(NDJSON(), b'{\n "a": 1,\n') == [(b'{\n "a": 1,\n', None, 0, 11)]


# -- arrays ----------------------------------------------------------------------------------------------------------

separators = st.sampled_from([b",", b"\n,\r\n", b"\n,\n", b" , ", b",\n", b"\r\n,\r\n"])


@settings(max_examples=80)
@given(st.lists(texts, max_size=6), separators, st.sampled_from([b"", BOM]), st.booleans(), cuts)
def test_array_gives_every_element(
    made: list[bytes], between: bytes, bom: bytes, closed: bool, where: list[int]
) -> None:
    data = bom + b"[" + between.join(made) + (b"\n]\n" if closed else b"\n")
    framing = JSONArray()
    frames = split(framing, data, where)
    assert [payload for payload, *_ in frames] == made
    assert all(data[start:end] == payload for payload, _, start, end in frames)
    assert framing.closed is closed


@given(st.lists(texts, max_size=6), st.sampled_from([b"", b"\n", b" "]), cuts)
def test_sequence_gives_every_value(made: list[bytes], between: bytes, where: list[int]) -> None:
    data = between.join(made)
    frames = split(JSONSequence(), data, where)
    assert [payload for payload, *_ in frames] == made
    assert all(data[start:end] == payload for payload, _, start, end in frames)


PRETTY = b'[{\n  "t": "a\\"}\\n,{"\n}\n,\r\n{\n  "t": ["b", {"c": "\\\\"}]\n}\n,\r\n{\n  "t": "d"\n}\n]'
"""As Google streams it: the comma on a line of its own."""


def test_array_by_hand() -> None:
    framing = JSONArray()
    frames = whole(framing, PRETTY)
    assert [json.loads(payload)["t"] for payload, *_ in frames] == ['a"}\n,{', ["b", {"c": "\\"}], "d"]
    assert [(start, end) for *_, start, end in frames] == [(1, 22), (26, 55), (59, 73)]
    assert framing.closed
    every_split(JSONArray, PRETTY)


def test_array_is_not_misled_by_a_comma_on_a_line_inside_a_value() -> None:
    """A printer that puts commas first; the brackets in its strings even out what is still open."""
    data = b'[{"a":[{"t":"}]}"}\n,{"u":"{[{"}]}\n,{"b":1}]'
    frames = whole(JSONArray(), data)
    assert [json.loads(payload) for payload, *_ in frames] == [{"a": [{"t": "}]}"}, {"u": "{[{"}]}, {"b": 1}]
    every_split(JSONArray, data)


ODD = b'{"a":"\x01"}'
"""No JSON: a control character stands in its string. Its brackets are those of one value all the same."""


@each_row(("elements", "between"), [
    ([b'{"a":1}', b'{"a":2}', b'{"b":[{"a":3},{"a":4}]}', b'{"a":5}'], b","),
    ([b'{"a":1}', b'{"a":2}', b'{"a":[{"a":"}"},{"a":{"a":4}}]}', b'{"a":5}', b'{"a":6}'], b","),
    ([b'{"a":1}', b'{"a":2}', ODD, b'{"a":3}', ODD, ODD, b'{"a":4}'], b",\r\n"),
    ([b'{"a":1}', b'{"a":2}', b'{"b":3}', b'{"a":4}', b"[5]", b"{}", b'{"a":6}'], b"\n,\n"),
    ([b'{"a":"},{\\"a\\":"}', b'{"a":"},{"}', b'{"a":"}"}', b'{"a":"{"}'], b","),
])
def test_what_parted_two_elements_may_stand_anywhere(elements: list[bytes], between: bytes) -> None:
    data = b"[" + between.join(elements) + b"]"
    assert [payload for payload, *_ in whole(JSONArray(), data)] == elements
    every_split(JSONArray, data)
    sequence = b"\n".join(elements)
    assert [payload for payload, *_ in whole(JSONSequence(), sequence)] == elements
    every_split(JSONSequence, sequence)


def test_elements_may_be_parted_in_many_ways() -> None:
    data = b"[" + b"".join(b'{"a":%d}%b,' % (number, b" " * (number // 2)) for number in range(60)) + b"{}]"
    assert len(whole(JSONArray(), data)) == 61
    every_split(JSONArray, data)


@pytest.mark.parametrize("between", [b",", b"\n,\r\n"])
def test_array_gives_an_element_as_soon_as_its_end_is_there(between: bytes) -> None:
    """A server sends each element when it has it: the last one must not wait for another."""
    framing = JSONArray()
    assert framing.feed(b'[{"a":[0]}') == [(b'{"a":[0]}', None, 1, 10)]
    for number in range(1, 6):
        frames = framing.feed(between + b'{"a":[%d]}' % number)
        assert [payload for payload, *_ in frames] == [b'{"a":[%d]}' % number]
        assert framing.feed(between + b'{"a":') == []
        assert [payload for payload, *_ in framing.feed(b"[9]}")] == [b'{"a":[9]}']
    assert framing.feed(b"]") == []
    assert framing.closed


@each_row("cut", range(1, len(PRETTY) - 1))
def test_array_that_is_cut_is_not_closed(cut: int) -> None:
    framing = JSONArray()
    frames = whole(framing, PRETTY[:cut])
    assert not framing.closed
    complete = [end for end in (22, 55, 73) if end <= cut]
    parsed = [payload for payload, *_ in frames if _parses(payload)]
    assert len(parsed) == len(complete)
    inside = any(start < cut < end for start, end in ((1, 22), (26, 55), (59, 73)))
    assert len(frames) == len(complete) + inside


def test_array_ignores_what_follows_it() -> None:
    framing = JSONArray()
    assert [payload for payload, *_ in whole(framing, b'[{"a":1}] [{"b":2}]')] == [b'{"a":1}']
    assert framing.closed


@given(st.binary(max_size=60), cuts)
def test_framings_take_any_bytes(data: bytes, where: list[int]) -> None:
    for kind in (SSE, NDJSON, JSONArray, JSONSequence):
        for _, _, start, end in split(kind(), b"[" + data, where):
            assert 0 <= start <= end <= len(data) + 1


def _parses(payload: bytes) -> bool:
    try:
        json.loads(payload)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (SSE, b"data: " + b"x" * 8_000_000),
        (SSE, b"data: x\r\n" * 800_000),
        (NDJSON, b'{"a": "' + b"x" * 8_000_000),
        (JSONArray, b'[{"a": "' + b"x" * 8_000_000),
    ],
    ids=["one line", "many lines", "ndjson", "array"],
)
def test_a_long_value_in_many_chunks_is_not_read_again_for_each(kind: type[Any], data: bytes) -> None:
    """Copying everything held back with every chunk would move 60 GB here, which no machine does within the bound."""
    framing = kind()
    start = time.process_time()
    for at in range(0, len(data), 512):
        assert framing.feed(data[at : at + 512]) == []
    assert len(framing.flush()) == 1
    assert time.process_time() - start < 5


@pytest.mark.parametrize("elements", [
    [b'{"a": 1}'] * 50_000,
    [ODD] * 50_000,
    [b'{"a": 1}', ODD] * 25_000,
    [b'{"a": 1}'] * 2 + [b'{"b": 1}'] * 50_000 + [b'{"a": 1}'],
    [b'{"%d": 1}' % number for number in range(50_000)],
    [b'{"a": 1}'] * 3 + [b'{"b": [' + b",".join([b'{"a": 1}'] * 50_000) + b"]}"],
], ids=["alike", "no JSON", "by turns", "another key", "other keys", "one with many"])
@pytest.mark.parametrize("size", [4_096, 1 << 30])
def test_an_array_on_one_line_is_read_once(elements: list[bytes], size: int) -> None:
    """Looking through all that follows for each element would take minutes."""
    data = b"[" + b",".join(elements) + b"]"
    start = time.process_time()
    framing = JSONArray()
    frames = [frame for at in range(0, len(data), size) for frame in framing.feed(data[at : at + size])]
    assert len(frames) + len(framing.flush()) == len(elements)
    assert time.process_time() - start < 5


# -- slices ----------------------------------------------------------------------------------------------------------


def paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths(inner, (*path, index))


@settings(max_examples=80)
@given(values, st.sampled_from([None, 1]), st.booleans(), st.sampled_from([b"", BOM]), st.integers(0, 50))
def test_slice_finds_every_value(value: Any, indent: int | None, ascii_: bool, bom: bytes, base: int) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_)
    body = bom + text.encode("utf-8", "surrogatepass")
    for path, inner in paths(value):
        found = slice_of(text, *path)
        assert found is not None
        assert json.loads(found) == inner
        assert found == found.strip()
        span = byte_span(body, base, *path)
        assert span is not None
        assert json.loads(body[span[0] - base : span[1] - base]) == inner
        assert path_of(pointer(*path)) == tuple(int(key) if str(key).isdecimal() and str(key).isascii() and
                                                str(int(key)) == str(key) else key for key in path)
        assert slice_of(text, *path_of(pointer(*path))) == found


def test_slice_is_verbatim() -> None:
    text = '{"a" : { "n": 1.50, "n": 10e2 ,"b":[1 , {"é/~": "\\u00e9"}]} }'
    assert slice_of(text, "a", "n") == "10e2"  # the last of equal keys, as parsers have it
    assert slice_of(text, "a", "b") == '[1 , {"é/~": "\\u00e9"}]'
    assert pointer("a", "b", 1, "é/~") == "/a/b/1/é~1~0"
    assert slice_of(text, *path_of("/a/b/1/é~1~0")) == '"\\u00e9"'
    assert byte_span(text.encode(), 5, "a", "b", 1) == (45, 63)
    assert text.encode()[40:58].decode() == '{"é/~": "\\u00e9"}'


@each_row("path", [("b",), ("a", 0), ("a", "n", "x"), (0,), ("a", "b", 2)])
def test_slice_of_what_is_not_there(path: tuple[str | int, ...]) -> None:
    assert slice_of('{"a": {"n": 1, "b": [1, 2]}}', *path) is None
    assert byte_span(b'{"a": {"n": 1, "b": [1, 2]}}', 0, *path) is None, "though another object has such a member"


@each_row("text", ["", "{", '{"a"', '{"a": ', '{"a": {"b": [1, 2', "nonsense", '{"a" "b"}', "[" * 5000])
def test_slice_of_a_cut_text(text: str) -> None:
    assert char_span(text, "a") is None


@pytest.mark.parametrize("number", [0, 15, 40])
def test_what_came_before_a_cut_has_a_place(number: int) -> None:
    text = json.dumps({"head": 1, "calls": [{"n": each, "text": "x"} for each in range(60)]})
    cut = text[: text.index(f'"n": {number + 1},')]
    assert slice_of(cut, "calls", number, "n") == str(number)
    assert slice_of(cut, "calls", number + 1, "n") is None
    assert slice_of(cut, "calls") is None


def test_slice_skips_numbers_that_python_does_not_read() -> None:
    text = '{"n": ' + "9" * 5000 + ', "a": 1}'
    assert slice_of(text, "a") == "1"
    assert slice_of(text, "n") == "9" * 5000


def test_span_counts_bytes_that_are_no_text() -> None:
    body = b'{"x": "\xff\xfe", "a": [1]}'
    span = byte_span(body, 0, "a")
    assert span == (17, 20)
    assert body[17:20] == b"[1]"


def test_digits_that_are_no_index_stay_names() -> None:
    assert path_of("/01/²/0/7") == ("01", "²", 0, 7)
    assert slice_of('{"0": {"7": true}}', *path_of("/0/7")) == "true"


def test_the_place_of_one_of_many_items_is_its_own() -> None:
    items = [{"n": number, "text": "é" * (number % 5)} for number in range(60)]
    body = json.dumps({"head": [1, 2], "calls": items}, ensure_ascii=False).encode()
    for number, item in enumerate(items):
        span = byte_span(body, 7, "calls", number, "n")
        assert span is not None
        assert body[span[0] - 7 : span[1] - 7] == str(number).encode()
        whole = byte_span(body, 0, "calls", number)
        assert whole is not None
        assert json.loads(body[slice(*whole)]) == item
    assert byte_span(body, 0, "calls", 60) is None


@pytest.mark.parametrize("api", FORMATS)
def test_blanks_before_an_answer_are_not_held_and_move_its_places(api: str) -> None:
    """Some servers send blank lines for minutes before an answer begins; a hostile one sends nothing else."""
    reading = decoder(api)
    tracemalloc.start()
    for _ in range(1_000):
        reading.feed(b"\n" * 2_000)
        reading.feed(b"")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000  # nothing that could be searched or copied again with each piece
    pieces = (b"  ", b"{", b'"error": {"message": "no such ', b'model"}}')
    for piece in pieces:
        reading.feed(piece)
    response = reading.close()
    assert response.error is not None
    assert response.error.message == "no such model"
    assert response.size == 2_000_000 + len(b"".join(pieces))


def test_where_a_body_breaks_is_said_alike_however_the_blanks_before_it_arrive() -> None:
    """OpenRouter sends lines of blanks before an answer that takes its time."""
    body = b"\n         \n\n         \n" + b'{"id": "r",\n "choices" 5}'
    said = {decode_response("openai_chat", pieces).findings[0].message
            for pieces in (body, [body[at : at + 1] for at in range(len(body))], [body[:13], body[13:]])}
    assert said == {"the body is not a complete JSON value (expected `:` at line 2 column 12)"}


@each_row("api", FORMATS)
def test_a_body_of_blanks_is_an_empty_one(api: str) -> None:
    assert decode_response(api, [b" ", b"\r\n"]).parts == ()


def test_a_stream_of_ever_new_events_leaves_a_bounded_number_of_findings() -> None:
    body = b"".join(b'data: {"type":"new_%d"}\n\n' % number for number in range(20_000))
    began = time.process_time()
    findings = decode_response("anthropic_messages", body).findings
    assert sum(found.rule == "anthropic_messages.unknown_event" for found in findings) == MOST_OF_A_RULE
    assert time.process_time() - began < 5


@each_row("blanks", [" ", "\t", "\r\n ", "\x0b", "\x0c\n", " \x0b ", "\ufeff ", "\ufeff\x0b"])
@each_row(("api", "body"), [
    ("openai_chat", 'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'),
    ("openai_chat", '{"choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}]}'),
    ("ollama_chat", '{"message":{"role":"assistant","content":"Hi"},"done":true,"done_reason":"stop"}\n'),
    ("gemini_generate", '[{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}]}]'),
])
def test_blanks_before_a_body_change_nothing_however_they_come(api: str, body: str, blanks: str) -> None:
    data = f"{blanks}{body}".encode()

    def read(size: int) -> Any:
        reading = decoder(api)
        for start in range(0, len(data), size):
            reading.feed(data[start : start + size])
        got = reading.close()
        return got.text, got.stop_reason, got.findings, got.streaming

    assert read(1) == read(2) == read(len(data))
    if not blanks.startswith("\ufeff"):
        assert read(1)[:2] == ("Hi", read(1)[1])
        assert read(1)[1].normalized == "end_turn"
