"""Traces of curl: both forms of its dumps, what the form as text loses, and how a transfer ended."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator

import pytest

from inspector.sessions.importers.curl_trace import DOTS, sniff
from loop_core.values import TransportEnd
from tests.scenes.rows import each_row
from tests.scenes.transcripts import show

KEY = "sk-proj-abcdefghijklmnopqrstuvwx123456"
ASKED = '{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Grüße"}]}'
SENT = (f"POST /v1/chat/completions HTTP/1.1\r\nHost: api.openai.com\r\nAuthorization: Bearer {KEY}\r\n"
        "Content-Type: application/json\r\n\r\n")
HEAD = ("HTTP/1.1 200 OK\r\n", "content-type: application/json\r\n", "\r\n")
SAID = ('{"id": "c", "object": "chat.completion", "model": "m", "choices": [{"index": 0, "finish_reason": "length",'
        ' "message": {"role": "assistant", "content": "a 0.5 a.m."}}], "usage": {"prompt_tokens": 3,'
        ' "completion_tokens": 9}}')
STREAM = [f"data: {each}\n\n" for each in (
    '{"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [{"index": 0, "delta": '
    '{"content": "hi}.data: x"}}]}',
    '{"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [{"index": 0, "delta": {}, '
    '"finish_reason": "length"}]}', "[DONE]")]
FORMS = ["--trace", "--trace-ascii"]
LEFT = "Connection #0 to host api.openai.com left intact"


def rows(data: bytes, form: str) -> Iterator[str]:
    """The rows of a dump, as curl writes them."""
    at = 0
    while at < len(data):
        if form == "--trace":
            row = data[at : at + 16]
            yield f"{at:04x}: {row.hex(' '):<47} {dots(row)}"
            at += 16
        else:
            row = data[at : at + 64].split(b"\r\n")[0]
            yield f"{at:04x}: {dots(row)}"
            at += len(row) + 2 * data.startswith(b"\r\n", at + len(row))


def dots(row: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 128 else "." for byte in row)


def block(what: str, text: str | bytes, form: str, before: str = "") -> str:
    """A line and the dump below it."""
    data = text.encode() if isinstance(text, str) else text
    return "\n".join([f"{before}{what}, {len(data)} bytes (0x{len(data):x})", *rows(data, form), ""])


def trace(form: str, *pieces: str | bytes, head: tuple[str, ...] = HEAD, notes: tuple[str, ...] = (LEFT,),
          before: str = "", asked: str = ASKED) -> str:
    """The trace of one transfer, whose answer comes in these pieces."""
    return "".join([
        f"{before}== Info:   Trying 1.2.3.4:443...\n", block("=> Send SSL data", b"\x16\x03\x01", form, before),
        block("=> Send header", SENT, form, before), block("=> Send data", asked, form, before),
        *(block("<= Recv header", line, form, before) for line in head),
        *(block("<= Recv data", piece, form, before) for piece in pieces),
        *(f"{before}== Info: {note}\n" for note in notes)])


def chunks(*texts: str) -> list[str]:
    return [f"{len(text.encode()):x}\r\n{text}\r\n" for text in texts] + ["0\r\n\r\n"]


CHUNKED = (HEAD[0], "content-type: text/event-stream\r\n", "Transfer-Encoding: chunked\r\n", "\r\n")


@pytest.mark.parametrize("form", FORMS)
def test_a_whole_answer_and_its_request(tmp_path, form):
    text = trace(form, SAID)
    seen = show(text, tmp_path)
    (facts,) = seen.responses
    exchange = facts.exchange
    assert (sniff(text.encode(), ""), seen.inputs[0].format) == (100, "curl-trace")
    assert exchange.url == "https://api.openai.com/v1/chat/completions"
    assert exchange.body == SAID.encode()
    assert (exchange.response.stop_reason.raw, exchange.response.text) == ("length", "a 0.5 a.m.")
    assert exchange.request.max_tokens == 9
    assert KEY not in repr(exchange.request_headers)


@pytest.mark.parametrize("form", FORMS)
def test_a_stream_in_chunks_is_read_byte_for_byte(tmp_path, form):
    pieces = chunks(*STREAM)
    text = trace(form, pieces[0][:50], pieces[0][50:] + pieces[1], *pieces[2:], head=CHUNKED)
    (facts,) = show(text, tmp_path).responses
    assert facts.exchange.body == "".join(STREAM).encode()
    assert (facts.exchange.response.text, facts.exchange.response.stop_reason.raw) == ("hi}.data: x", "length")
    assert [found.rule for found in facts.exchange.response.findings] == []


def test_a_trace_as_text_says_what_it_lost_and_one_in_hexadecimal_has_it(tmp_path):
    body = SAID.replace("a 0.5 a.m.", "Größe.")
    seen = show(trace(FORMS[1], body), tmp_path)
    assert seen.responses[0].exchange.response.text == "Gr....e."  # each of the two letters has two bytes
    (notice,) = seen.inputs[0].notices
    assert DOTS in notice
    seen = show(trace(FORMS[0], body), tmp_path)
    assert seen.responses[0].exchange.response.text == "Größe."
    assert not seen.inputs[0].notices
    (asked,) = [message.text for message in seen.responses[0].exchange.request.messages]
    assert asked == "Grüße"


@pytest.mark.parametrize("form", FORMS)
def test_line_ends_between_values_and_before_events(tmp_path, form):
    pretty = json.dumps({**json.loads(SAID), "x": [0.5, 1]}, indent=2) + "\n"
    (facts,) = show(trace(form, pretty), tmp_path).responses
    assert facts.exchange.body == pretty.encode()
    events = [{"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "c",
               "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}}, {"type": "message_stop"}]
    stream = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)
    dotted = "event: response.created\ndata: {}\n\n: note\n\n"
    (facts,) = show(trace(form, stream + dotted, head=CHUNKED[:2] + HEAD[2:]), tmp_path).responses
    assert facts.exchange.body == (stream + dotted).encode()


@each_row("form", FORMS)
@each_row("before", ["14:07:33.123456 ", "[0-0] ", "14:07:33.123456 [0-0] "])
def test_times_and_numbers_of_transfers_before_the_lines(tmp_path, form, before):
    (facts,) = show(trace(form, SAID, before=before), tmp_path).responses
    assert facts.exchange.body == SAID.encode()


@pytest.mark.parametrize("form", FORMS)
def test_transfers_of_one_file_are_told_apart_also_where_they_run_at_once(tmp_path, form):
    later = SAID.replace("a 0.5 a.m.", "two")
    behind = show(trace(form, SAID) + trace(form, later), tmp_path)
    assert [facts.exchange.response.text for facts in behind.responses] == ["a 0.5 a.m.", "two"]
    first, second = (re.split(rf"(?=\[{key}-{key}\] )", trace(form, each, before=f"[{key}-{key}] "))
                     for key, each in enumerate((SAID, later)))
    at_once = show("".join(piece for pair in zip(first, second, strict=True) for piece in pair), tmp_path)
    assert [facts.exchange.response.text for facts in at_once.responses] == ["a 0.5 a.m.", "two"]


@pytest.mark.parametrize("form", FORMS)
def test_only_the_answer_counts_of_several_heads(tmp_path, form):
    proxy = block("=> Send header", "CONNECT api.openai.com:443 HTTP/1.1\r\n\r\n", form) + block(
        "<= Recv header", "HTTP/1.1 200 Connection established\r\n", form) + block("<= Recv header", "\r\n", form)
    text = trace(form, SAID, head=("HTTP/1.1 100 Continue\r\n", "\r\n", *HEAD))
    trailer = block("<= Recv header", "x-late: 1\r\n", form)
    (facts,) = show(proxy + text + trailer, tmp_path).responses
    assert facts.exchange.body == SAID.encode()


@each_row("form", FORMS)
@each_row(("note", "end"), [
    ("transfer closed with outstanding read data remaining", TransportEnd.RESET),
    ("transfer closed with 17 bytes remaining to read", TransportEnd.RESET),
    ("end of response with 17 bytes missing", TransportEnd.RESET),
    ("Recv failure: Connection reset by peer", TransportEnd.RESET),
    ("HTTP/2 stream 1 was not closed cleanly: INTERNAL_ERROR (err 2)", TransportEnd.RESET),
    ("Operation timed out after 5001 milliseconds with 90 bytes received", TransportEnd.TIMEOUT),
    ("Operation too slow. Less than 10 bytes/sec transferred the last 3 seconds", TransportEnd.TIMEOUT),
])
def test_a_note_of_curl_says_how_the_bytes_ended(tmp_path, form, note, end):
    text = trace(form, chunks(STREAM[0])[0], head=CHUNKED, notes=(note, "Closing connection 0"))
    seen = show(text, tmp_path)
    (facts,) = seen.responses
    assert (facts.exchange.response.transport_end, facts.exchange.response.text) == (end, "hi}.data: x")
    assert seen.turns[0].verdict.word == "INTERRUPTED"


@pytest.mark.parametrize("form", FORMS)
def test_a_request_without_an_answer(tmp_path, form):
    (facts,) = show(trace(form, head=(), notes=("Empty reply from server",)), tmp_path).responses
    assert (facts.exchange.response.transport_end, facts.exchange.body) == (TransportEnd.RESET, b"")
    seen = show(trace(form, head=()), tmp_path)
    assert "a trace of curl without an answer: expected a line such as" in str(seen.inputs[0].error)


@pytest.mark.parametrize("form", FORMS)
def test_a_damaged_dump_is_read_up_to_the_damage(tmp_path, form):
    lines = trace(form, *chunks(*STREAM), head=CHUNKED).splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if line.startswith("<= Recv data")) + 2
    seen = show("".join([*lines[:at], *lines[at + 1 :]]), tmp_path)
    # the first row: 16 bytes, or the length of the first chunk without its CRLF
    expected = {"--trace": 0x10, "--trace-ascii": 2}[form]
    assert f"line {at + 1}: expected byte {expected:#x} of the " in seen.inputs[0].error
    (facts,) = seen.responses
    assert facts.exchange.response.transport_end is TransportEnd.CUT
    assert facts.exchange.response.stop_reason.raw is None


def test_a_packed_body_is_unpacked_and_one_as_text_is_not_guessed(tmp_path):
    packed, head = gzip.compress(SAID.encode()), (HEAD[0], "content-encoding: gzip\r\n", *HEAD[1:])
    (facts,) = show(trace(FORMS[0], packed, head=head), tmp_path).responses
    assert facts.exchange.body == SAID.encode()
    seen = show(trace(FORMS[1], packed, head=head), tmp_path)
    (facts,) = seen.responses
    assert facts.exchange.body == b""
    assert "packed, and printed as text" in repr(facts.exchange.response.stop_reason.evidence)


@pytest.mark.parametrize("text", [
    "no trace", '{"text": "=> Send header, 5 bytes (0x5)"}', "I saw => Send header, 5 bytes (0x5) there",
])
def test_other_texts_are_no_traces(text):
    assert sniff(text.encode(), "") == 0
