"""HTTP messages as text: the outputs of curl and HTTPie."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from inspector.sessions.importers.http_text import sniff
from loop_core.values import TransportEnd
from tests.scenes.rows import each_row
from tests.scenes.transcripts import show

URL = "https://api.openai.com/v1/chat/completions"
ASKED = '{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}'
SAID = ('{"id": "c", "object": "chat.completion", "model": "m", "choices": [{"index": 0, "finish_reason": "length",'
        ' "message": {"role": "assistant", "content": "hi"}}], "usage": {"prompt_tokens": 3, "completion_tokens": 9}}')
STREAM = "".join(f"data: {each}\n\n" for each in (
    '{"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [{"index": 0, "delta": '
    '{"content": "hi"}}]}',
    '{"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [{"index": 0, "delta": {}, '
    '"finish_reason": "length"}]}', "[DONE]"))
KEY = "sk-proj-abcdefghijklmnopqrstuvwx123456"
METER = ("  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current\n"
         "                                 Dload  Upload   Total   Spent    Left  Speed\n"
         "\r  0     0    0     0    0     0      0      0 --:--:-- --:--:-- --:--:--     0")
METER_END = "\r100  3683    0  3483  100   200  1202k  70721 --:--:--  0:00:01 --:--:-- 1798k\n"


def head(status: str = "200 OK", *headers: str, version: str = "1.1") -> str:
    """The head of an answer, as `curl -i` prints it."""
    return "\r\n".join([f"HTTP/{version} {status}", "content-type: application/json", *headers, "", ""])


def verbose(body: str, *after: str, status: str = "200 OK", meter: bool = False, body_last: bool = False) -> str:
    """What `curl -v` prints into one file; `body_last`: its output is buffered, and comes behind its messages."""
    before = (f"{METER if meter else ''}* Connected to api.openai.com (1.2.3.4) port 443 (#0)\n"
              f"> POST /v1/chat/completions HTTP/2\r\n> Host: api.openai.com\r\n> authorization: Bearer {KEY}\r\n> \r\n"
              f"}} [80 bytes data]\n* We are completely uploaded and fine\n< HTTP/2 {status}\r\n"
              "< content-type: application/json\r\n< \r\n{ [300 bytes data]\n" + (METER_END if meter else ""))
    notes = "* Connection #0 to host api.openai.com left intact\n" + "".join(after)
    return before + (notes + body if body_last else body + notes)


def words(seen: Any) -> list[str | None]:
    return [each.response.stop_reason.raw for each in seen.exchanges]


@each_row("body", [SAID, STREAM])
@each_row("text", [
    head() + "{}", head("200 ", version="2") + "{}", head().replace("\r\n", "\n") + "{}", "\ufeff" + head() + "{}",
    head("100 Continue") + head() + "{}", "HTTP/1.1 200 Connection established\r\n\r\n" + head() + "{}",
    f"$ curl -i {URL} -d @request.json\n" + head() + "{}",
])
def test_an_answer_with_its_head_is_the_providers_own(load, text, body):
    seen = load((text.format(body) if "{}" in text else text).encode(), "out.txt")
    assert (seen.inputs[0].format, seen.inputs[0].error, seen.inputs[0].skipped) == ("http-text", None, ())
    (one,) = seen.exchanges
    assert (one.body, one.api, one.response.http_status, one.url) == (body.encode(), "openai_chat", 200, "")
    assert words(seen) == ["length"]
    assert one.response.transport_end is TransportEnd.EOF


@each_row("body", [SAID, SAID + "\n", STREAM])
@each_row("meter", [False, True])
@each_row("body_last", [False, True])
def test_the_body_stands_anywhere_among_the_notes_of_curl(load, body, meter, body_last):
    seen = load(verbose(body, meter=meter, body_last=body_last).encode(), "out.txt")
    (one,) = seen.exchanges
    assert one.body == body.encode(), "the notes of curl are no part of the body"
    assert (one.url, one.request, words(seen)) == (URL, None, ["length"])
    assert KEY not in str(one.request_headers)
    assert dict(one.request_headers).keys() == {"Host", "authorization"}


def test_a_note_inside_the_stream_is_not_read_as_a_part_of_it(load):
    text = verbose(STREAM).replace("data: [DONE]", "{ [14 bytes data]\n* a note\ndata: [DONE]")
    assert [each.body for each in load(text.encode(), "out.txt").exchanges] == [STREAM.encode()]


def test_answers_behind_one_another_are_several(load):
    seen = load((head() + SAID + head() + STREAM + head("429 Too Many Requests") + '{"error": {"message": "slow"}}'
                   + head() + SAID).encode(), "out.txt")
    assert [each.body for each in seen.exchanges] == [SAID.encode(), STREAM.encode(), SAID.encode()]
    assert ([each.entry for each in seen.exchanges], words(seen)) == ([0, 1, 3], ["length"] * 3)
    # Without a request nothing says whose error it is.
    assert [(each.entry, each.why) for each in seen.inputs[0].skipped] == [(2, "failed before any answer: slow")]


def test_a_text_that_quotes_a_status_line_is_one_answer(load):
    said = SAID.replace('"hi"', json.dumps('{"a": 1}HTTP/1.1 200 OK\r\nHTTP/1.1 200 OK\r\ncurl: (18) transfer closed'))
    seen = load((head() + said).encode(), "out.txt")
    assert [each.body for each in seen.exchanges] == [said.encode()]
    assert seen.exchanges[0].response.transport_end is TransportEnd.EOF


@each_row(("line", "end"), [
    ("curl: (18) transfer closed with outstanding read data remaining", TransportEnd.RESET),
    ("curl: (28) Operation timed out after 2001 milliseconds with 680 bytes received", TransportEnd.TIMEOUT),
    ("curl: (56) Recv failure: Connection reset by peer", TransportEnd.RESET),
    ("curl: (92) HTTP/2 stream 1 was not closed cleanly: INTERNAL_ERROR (err 2)", TransportEnd.RESET),
    ("curl: (23) Failed writing body", TransportEnd.ABORTED),
])
@each_row("form", ["{head}{body}{line}\n", "{head}{body}\n{line}\n", "{line}\n{head}{body}"])
def test_how_the_connection_ended_is_what_curl_says(load, line, end, form):
    cut = STREAM[: STREAM.index('"finish_reason"')]
    seen = load(form.format(head=head(), body=cut, line=line).encode(), "out.txt")
    (one,) = seen.exchanges
    assert one.body.rstrip(b"\n") == cut.encode()
    assert (one.response.transport_end, one.response.stop_reason.raw) == (end, None)
    said = [each.message for each in one.response.findings if each.rule == f"transport.{end.value}"]
    assert said == [line.partition(") ")[2]]


@pytest.mark.parametrize(("cut", "sentence"), [
    ('"finish_reason"', "ended without a stop reason"), ("}}]}", "sent nothing that openai_chat defines as an answer"),
])
def test_the_verdict_says_how_the_connection_broke(cut, sentence, tmp_path):
    body = STREAM[: STREAM.index(cut)]
    verdict = show(f"{head()}{body}curl: (56) Recv failure: Connection reset by peer\n", tmp_path, name="out.txt"
                    ).turns[0].verdict
    assert (verdict.word, verdict.sentence) == (
        "INTERRUPTED", f"openai_chat {sentence} ({len(body)} bytes; Recv failure: Connection reset by peer)")


def test_the_end_stands_among_the_messages_of_curl(load):
    line = "curl: (28) Operation timed out after 2001 milliseconds with 680 bytes received\n"
    cut = STREAM[: STREAM.index("data: [DONE]") - 40]
    for body_last in (False, True):
        (one,) = load(verbose(cut, line, body_last=body_last).encode(), "out.txt").exchanges
        assert (one.body, one.response.transport_end) == (cut.encode(), TransportEnd.TIMEOUT)


def test_a_request_without_an_answer_is_an_exchange_that_failed(load):
    text = verbose(SAID).partition("< HTTP")[0] + "curl: (28) Operation timed out after 100 milliseconds\n"
    (one,) = load(text.encode(), "out.txt").exchanges
    assert (one.url, one.response.http_status, one.body) == (URL, None, b"")
    assert one.response.transport_end is TransportEnd.TIMEOUT


def test_without_a_connection_the_reason_is_in_the_error(load):
    text = "* Trying 127.0.0.1:1...\ncurl: (7) Failed to connect to 127.0.0.1 port 1\n"
    assert "Failed to connect to 127.0.0.1 port 1" in load(text.encode(), "out.txt").inputs[0].error
    for text in ("POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n\r\n{}", "> POST /v1/chat/completions HTTP/1.1\r\n"):
        assert "without an answer" in load(text.encode(), "out.txt").inputs[0].error


def test_a_request_is_read_with_its_answer(load):
    text = ("POST /v1/chat/completions HTTP/1.1\nHost: {}\nAuthorization: Bearer " + KEY + "\n\n"
            + json.dumps(json.loads(ASKED), indent=4) + "\n\n\n"
            + head() + json.dumps(json.loads(SAID), indent=4) + "\n\n\n")
    for host, url in (("api.openai.com", URL), ("127.0.0.1:8080", "http://127.0.0.1:8080/v1/chat/completions"),
                      ("api.openai.com:443", URL.replace("com/", "com:443/"))):
        seen = load((text.replace("{}", host, 1) * 2).encode(), "out.txt")
        assert [each.request.max_tokens for each in seen.exchanges] == [9, 9]
        assert [each.url for each in seen.exchanges] == [url, url]
        assert KEY not in str(seen.exchanges[0].request_headers)
        assert words(seen) == ["length", "length"]


def test_a_request_whose_answer_was_not_printed_is_counted(load):
    asked = "POST /v1/chat/completions HTTP/1.1\r\nHost: api.openai.com\r\n\r\n" + ASKED + "\n"
    seen = load((asked + asked + head() + SAID + "\n" + asked).encode(), "out.txt")
    assert [(each.entry, each.request.max_tokens) for each in seen.exchanges] == [(1, 9)]
    assert [(each.entry, each.why) for each in seen.inputs[0].skipped] == [
        (0, "a request without an answer"), (2, "a request without an answer")]


def test_chunks_are_joined_where_they_are_in_the_text(load):
    # `curl -i` prints what it has joined, with the header; `curl -i --raw` prints the marks.
    chunks = "".join(f"{len(each):x}\r\n{each}\r\n" for each in (STREAM[:40], STREAM[40:])) + "0\r\n\r\n"
    for body in (STREAM, STREAM.replace("\n", "\r\n"), chunks):
        seen = load((head("200 OK", "Transfer-Encoding: chunked") + body).encode(), "out.txt")
        assert seen.exchanges[0].body == (STREAM if body is chunks else body).encode()
        assert words(seen) == ["length"]


def test_a_packed_body_is_unpacked(load):
    seen = load(head("200 OK", "content-encoding: gzip").encode() + gzip.compress(SAID.encode()), "out.txt")
    assert (seen.exchanges[0].body, words(seen)) == (SAID.encode(), ["length"])


def test_a_head_alone_has_no_recorded_body(load):
    text = verbose("")
    for status, recorded in (("200 OK", False), ("500 Internal Server Error", True)):
        exchanges = load(text.replace("200", status.split()[0]).encode(), "out.txt").exchanges
        assert [each.recorded for each in exchanges] == [recorded], status


@each_row("text", [
    "* a list\n* in Markdown\n", "> a quote\n", "HTTP/1.1 is a protocol\n",
    "see https://a.example for HTTP/1.1 200 OK\n",
    '127.0.0.1 - "POST /v1/chat/completions HTTP/1.1" 200\n', "", "curl: (7)",
])
def test_other_text_is_not_taken(text):
    assert sniff(text.encode(), "a.txt") == 0


def test_at_any_cut_the_answer_is_what_the_file_has_of_it(load):
    text = verbose(STREAM).encode()
    start = text.index(b"data: ")
    for end in range(start + STREAM.index("\n"), len(text)):
        (one,) = load(text[:end], "out.txt").exchanges
        assert STREAM.encode().startswith(one.body) or end > start + len(STREAM)
