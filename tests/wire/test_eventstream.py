"""The binary event stream: published vectors, botocore as referee, and every way to damage a frame."""

from __future__ import annotations

import base64
import json
import os
import struct
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loop_core.wire.eventstream import (
    MAX_HEADERS,
    MAX_PAYLOAD,
    EventStream,
    encode_frame,
    event_frame,
    exception_frame,
    read_headers,
)
from loop_core.wire.framing import Frame
from tests.scenes.rows import each_row

CORPUS = Path(os.environ.get("LOOP_INSPECTOR_CORPUS") or Path(__file__).parents[3] / "shared" / "corpus")

# The vectors of Amazon's own test suites for this framing (smithy event-stream specification).
EMPTY = bytes.fromhex("000000100000000005c248eb7d98c8ff")
PAYLOAD = bytes.fromhex("0000001d00000000fd528c5a7b27666f6f273a27626172277dc3653936")
ONE_HEADER = bytes.fromhex(
    "0000003d0000002007fd83960c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e"
    "7b27666f6f273a27626172277d8d9c08b1"
)


def split(*chunks: bytes) -> list[Frame]:
    stream = EventStream()
    frames = [frame for chunk in chunks for frame in stream.feed(chunk)]
    return frames + stream.flush()


def raw_frame(headers: bytes, payload: bytes) -> bytes:
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack(">I", crc32(prelude)) + headers + payload
    return message + struct.pack(">I", crc32(message))


def header(name: bytes, kind: int, value: bytes) -> bytes:
    return bytes((len(name),)) + name + bytes((kind,)) + value


def text(value: bytes) -> bytes:
    return struct.pack(">H", len(value)) + value


def test_published_vectors_are_read() -> None:
    assert split(EMPTY) == [(b"", "", 0, 16)]
    assert split(PAYLOAD) == [(b"{'foo':'bar'}", "", 0, 29)]
    assert split(ONE_HEADER) == [(b"{'foo':'bar'}", "", 0, 61)]


def test_published_vectors_are_written() -> None:
    assert encode_frame(b"", ()) == EMPTY
    assert encode_frame(b"{'foo':'bar'}", ()) == PAYLOAD
    assert encode_frame(b"{'foo':'bar'}", [("content-type", "application/json")]) == ONE_HEADER


STORY = (
    event_frame("messageStart", b'{"role":"assistant"}')
    + event_frame("contentBlockDelta", '{"contentBlockIndex":0,"delta":{"text":"Zürich"}}'.encode())
    + event_frame("contentBlockDelta", b'{"contentBlockIndex":0,"delta":{"text":"Geneve."}}')
    + event_frame("messageStop", b'{"stopReason":"end_turn"}')
)
NAMES = ["messageStart", "contentBlockDelta", "contentBlockDelta", "messageStop"]


def test_events_have_their_name_and_place() -> None:
    frames = split(STORY)
    assert [frame[1] for frame in frames] == NAMES
    assert frames[0][2] == 0
    assert [frame[2] for frame in frames[1:]] == [frame[3] for frame in frames[:-1]]
    assert frames[-1][3] == len(STORY)
    for payload, _, start, end in frames:
        assert STORY[end - 4 - len(payload) : end - 4] == payload
        assert STORY[start : start + 4] == struct.pack(">I", end - start)


def test_any_chunking_gives_the_same_frames() -> None:
    want = split(STORY)
    for at in range(len(STORY)):
        assert split(STORY[:at], STORY[at:]) == want
    for size in (1, 2, 3, 5, 16, 64):
        assert split(*(STORY[i : i + size] for i in range(0, len(STORY), size))) == want


def test_a_cut_inside_a_frame_is_told_and_what_came_before_stays() -> None:
    want = split(STORY)
    ends = {0, *(frame[3] for frame in want)}
    for at in range(len(STORY)):
        got = split(STORY[:at])
        whole = [frame for frame in want if frame[3] <= at]
        last = whole[-1][3] if whole else 0
        assert got == (whole if at in ends else [*whole, (b"{}", ":broken:cut", last, at)])


def test_a_flipped_bit_anywhere_ends_what_can_be_read() -> None:
    want = split(STORY)
    for at in range(len(STORY)):
        for bit in range(8):
            damaged = bytearray(STORY)
            damaged[at] ^= 1 << bit
            got = split(bytes(damaged))
            before = [frame for frame in want if frame[3] <= at]
            assert got[:-1] == before, (at, bit)
            assert str(got[-1][1]).startswith(":broken:"), (at, bit)
            assert got[-1][2] == (before[-1][3] if before else 0)


def test_nothing_is_read_behind_a_broken_frame() -> None:
    stream = EventStream()
    assert [frame[1] for frame in stream.feed(b"\0" * 12)] == [":broken:prelude_crc"]
    assert stream.feed(STORY) == []
    assert stream.flush() == []


@each_row(("total", "headers"), [
    (15, 0), (0, 0), (100, 90), (100, 200), (16 + MAX_HEADERS + 1, MAX_HEADERS + 1), (16 + MAX_PAYLOAD + 1, 0),
])
def test_impossible_lengths_break_at_once(total: int, headers: int) -> None:
    prelude = struct.pack(">II", total, headers)
    ((_, name, start, _),) = split(prelude + struct.pack(">I", crc32(prelude)))
    assert (name, start) == (":broken:length", 0)


@pytest.mark.parametrize(("total", "headers"), [(16 + MAX_HEADERS, MAX_HEADERS), (16 + MAX_PAYLOAD, 0)])
def test_the_largest_lengths_are_possible(total: int, headers: int) -> None:
    prelude = struct.pack(">II", total, headers)
    assert EventStream().feed(prelude + struct.pack(">I", crc32(prelude))) == []


def test_a_wrong_message_checksum_and_a_wrong_prelude_checksum_are_told_apart() -> None:
    assert split(STORY[:-1] + b"\0")[-1][1] == ":broken:message_crc"
    assert split(STORY[:8] + b"\0\0\0\0" + STORY[12:])[-1][1] == ":broken:prelude_crc"


def test_a_broken_prelude_ends_at_the_same_byte_however_the_bytes_are_cut() -> None:
    broken = STORY + b"\0" * 4 + STORY
    whole = split(broken)[-1]
    assert whole == (b"{}", ":broken:prelude_crc", len(STORY), len(STORY) + 12), "a prelude has twelve bytes"
    stream = EventStream()
    pieces = [frame for at in range(len(broken)) for frame in stream.feed(broken[at : at + 1])]
    assert pieces[-1] == whole


EVERY_TYPE = b"".join((
    header(b"t", 0, b""), header(b"f", 1, b""), header(b"i8", 2, b"\x05"), header(b"i16", 3, b"\0\x05"),
    header(b"i32", 4, b"\0\0\0\x05"), header(b"i64", 5, b"\0" * 7 + b"\x05"), header(b"bytes", 6, text(b"\xff\0")),
    header(b"when", 8, b"\0" * 8), header(b"uuid", 9, bytes(range(16))),
    header(b":event-type", 7, text("mésse".encode())),
))


def test_headers_of_every_type_are_stepped_over() -> None:
    assert split(raw_frame(EVERY_TYPE, b"{}")) == [(b"{}", "mésse", 0, 18 + len(EVERY_TYPE))]
    read = read_headers(EVERY_TYPE)
    assert read is not None
    assert (read["uuid"], read["bytes"], read["t"]) == (bytes(range(16)), b"\xff\0", b"")


@each_row("headers", [
    EVERY_TYPE[:-1], header(b"x", 10, b""), b"\x09ab", header(b"a", 0, b"") * 2, header(b"a", 6, b"\0"), b"\x01a",
    header(b"n", 5, b"\0"),
])
def test_headers_that_do_not_fit_are_broken(headers: bytes) -> None:
    assert read_headers(headers) is None
    assert split(raw_frame(headers, b"{}"))[0][1] == ":broken:headers"


def test_exceptions_and_errors_are_no_events() -> None:
    assert split(exception_frame("throttlingException", b'{"message":"slow"}'))[0][:2] == (
        b'{"message":"slow"}', ":exception:throttlingException")
    assert split(exception_frame("throttlingException", b""))[0][0] == b'{"message": ""}'
    error = encode_frame(b"", [(":message-type", "error"), (":error-code", "Internal"), (":error-message", 'a"b')])
    assert split(error)[0][:2] == (b'{"message": "a\\"b"}', ":error:Internal")


def test_an_event_cannot_pass_for_an_exception() -> None:
    assert split(event_frame(":exception:x", b"{}"))[0][1] == ""


def test_many_lengths_are_read_alike() -> None:
    frames = [event_frame("e", b"x" * size) for size in range(4200)]
    assert [len(frame[0]) for frame in split(b"".join(frames) + frames[0])] == [*range(4200), 0]


# -- botocore as referee -----------------------------------------------------------------------------------------


def referee(body: bytes) -> list[tuple[bytes, str]]:
    eventstream = pytest.importorskip("botocore.eventstream")
    buffer = eventstream.EventStreamBuffer()
    buffer.add_data(body)
    return [(message.payload, message.headers.get(":event-type", "")) for message in buffer]


WORDS = st.text(st.characters(codec="utf-8", exclude_characters=":"), min_size=1, max_size=20)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(WORDS, st.binary(max_size=200)), max_size=6))
def test_botocore_reads_what_is_written_and_what_is_read(events: list[tuple[str, bytes]]) -> None:
    body = b"".join(event_frame(name, payload) for name, payload in events)
    want = [(payload, name) for name, payload in events]
    assert referee(body) == want
    assert [frame[:2] for frame in split(body)] == want


def test_botocore_refuses_what_is_refused() -> None:
    eventstream = pytest.importorskip("botocore.eventstream")
    refused = (eventstream.ParserError, ValueError, KeyError, struct.error)
    for at in range(len(ONE_HEADER)):
        damaged = bytearray(ONE_HEADER)
        damaged[at] ^= 0x41
        with pytest.raises(refused):
            referee(bytes(damaged))
        assert str(split(bytes(damaged))[0][1]).startswith(":broken:")


def test_recorded_frames_are_the_ones_that_botocore_reads() -> None:
    if not (CORPUS / "har").is_dir():
        pytest.skip("no recorded traffic beside the repository (LOOP_INSPECTOR_CORPUS)")
    count = 0
    for har in sorted((CORPUS / "har").glob("bedrock_*/*.har")):
        for entry in json.loads(har.read_text("utf-8"))["log"]["entries"]:
            content = entry["response"]["content"]
            body = base64.b64decode(content.get("text") or "") if content.get("encoding") == "base64" else b""
            if body[:1] == b"\0":
                got = [frame[:2] for frame in split(body)]
                assert got == referee(body), entry["_id"]
                count += len(got)
    assert count > 300
