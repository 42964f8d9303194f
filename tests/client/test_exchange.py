"""One answer while it comes: whatever its pieces, it is read as a whole one is, and its end is known at once."""

from __future__ import annotations

import tracemalloc

import pytest

from loop_core.client.address import Server, headers_of
from loop_core.client.exchange import DECODE_SIZE, LINE_END, LONGEST_MARK, Observer, ResponseReader
from loop_core.client.outgoing import http_request, live_request
from loop_core.errors import CallerError
from loop_core.turn.machine import begin
from loop_core.values import Stop, ToolCall, TransportEnd, Usage
from loop_core.wire import decode, decode_request, decoder
from tests.scenes.live import EventLog, answer, request
from tests.scenes.provider import CALLING
from tests.scenes.rows import each_row

KEY = "sk-test-0123456789abcdef"
LONG = ToolCall("c1", "note", '{"text": "' + "many words " * (DECODE_SIZE // 4) + '"}', True)
SAYS_SO = "the last line is data: [DONE] and not message_stop"


def hearing(api: str, told: Observer | None = None) -> ResponseReader:
    server = Server(api, "http://127.0.0.1:9", key=KEY)
    asked = request(api)
    _, (send,) = begin("t", asked)
    heard = ResponseReader(live_request(server, asked, send, 0), server, told if told is not None else EventLog())
    heard.begin(200, ())
    return heard


def body(api: str, text: str, *calls: ToolCall) -> bytes:
    stop = Stop.TOOL_CALL if calls else Stop.END_TURN
    return b"".join(answer(api, text, stop, *calls, usage=Usage(3, 7)))


@pytest.mark.parametrize("size", [1, 7, 64, 5_000])
@pytest.mark.parametrize("api", CALLING)
def test_an_answer_in_pieces_is_the_answer(api: str, size: int) -> None:
    said = body(api, SAYS_SO, LONG) if size > 1 else body(api, SAYS_SO)
    told = EventLog()
    heard = hearing(api, told)
    for at in range(0, len(said), size):
        heard.feed(said[at : at + size], at / 10)
    done = heard.close(TransportEnd.EOF, 9.0)
    whole = decode(api, done.body)
    assert (done.response.parts, done.response.stop_reason) == (whole.parts, whole.stop_reason)
    assert done.response.saw_done is whole.saw_done
    assert done.response.text == SAYS_SO
    assert b"".join(told.of("came")) == done.body
    assert [end for end, _ in done.chunks][-1] == len(done.body)


KEYS = {"anthropic_messages": ("x-api-key", KEY), "gemini_generate": ("x-goog-api-key", KEY),
        "gemini_interactions": ("x-goog-api-key", KEY)}
"""Format -> the header that its provider documents for a key; the others take a bearer token."""


@pytest.mark.parametrize("api", CALLING)
def test_another_transport_gets_the_request_as_it_has_to_leave(api: str) -> None:
    server, asked = Server(api, "https://models.example", key=KEY), request(api)
    turn, (send,) = begin("t", asked)
    http = http_request(server, turn, send)  # type: ignore[arg-type]
    assert http.method == "POST"
    assert http.url.startswith("https://models.example/")
    assert KEYS.get(api, ("authorization", f"Bearer {KEY}")) in http.headers
    assert decode_request(api, http.content, url=http.url).messages == http.request.messages == asked.messages
    assert KEY not in repr(http)
    assert KEY not in http.url


def test_another_transport_gets_no_key_for_plain_http() -> None:
    turn, (send,) = begin("t", request("openai_chat"))
    with pytest.raises(CallerError, match="unencrypted"):
        http_request(Server("openai_chat", "http://models.example", key=KEY), turn, send)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["Hello.", SAYS_SO])
@pytest.mark.parametrize("api", CALLING)
def test_the_end_of_a_stream_is_known_with_its_last_byte(api: str, text: str) -> None:
    """Byte by byte, as the decoder itself would know it: a connection that is kept open is not waited for."""
    said = body(api, text)
    alone, heard = decoder(api), hearing(api)
    for at in range(len(said)):
        piece = said[at : at + 1]
        alone.feed(piece)
        heard.feed(piece, float(at))
        assert heard.decoder.is_over is alone.is_over
        assert (heard.decoder.raw is None) is (alone.raw is None)
        if alone.is_over:
            break
    # A chunk with a finish reason may not be the last one of Gemini.
    assert (alone.is_over, alone.raw) == ((False, "STOP") if api == "gemini_generate" else (True, alone.raw))
    came, over = heard.event_ms, alone.is_over
    heard.feed(b'data: {"late": 1}\n\n', 1_000_000)
    assert (heard.event_ms == came) is over, "what follows the last event does not prolong the answer"


@pytest.mark.parametrize("api", CALLING)
def test_no_mark_of_an_end_is_longer_than_what_is_kept(api: str) -> None:
    marks = decoder(api).closing
    assert marks
    assert all(0 < len(mark) <= LONGEST_MARK and LINE_END not in mark for mark in marks)


def test_a_body_of_no_known_kind_is_told_at_the_end_however_short_it_is() -> None:
    heard = hearing("openai_chat")
    assert heard.feed(b"<html>not yet</html>", 1.0)
    done = heard.close(TransportEnd.EOF, 2.0)
    assert done.response.error is not None
    assert done.response.error.message.startswith("not a response of openai_chat")


@pytest.mark.parametrize(("api", "kind"), [
    ("openai_chat", "text/event-stream"), ("gemini_interactions", "text/event-stream"),
    ("bedrock_converse", "application/vnd.amazon.eventstream"), ("ollama_chat", "application/x-ndjson"),
    ("bedrock_invoke", "application/vnd.amazon.eventstream"), ("ollama_generate", "application/x-ndjson"),
])
def test_a_stream_is_asked_for_in_the_framing_of_its_format(api: str, kind: str) -> None:
    assert ("accept", kind) in headers_of(Server(api), True)
    assert ("accept", "application/json") in headers_of(Server(api), False)


@each_row("opening", [b'data: {"choices": [{"delta": {"content": "', b'{"choices": [{"message": {"content": "'])
def test_an_answer_without_an_end_takes_a_few_times_the_memory_of_its_bytes(
    opening: bytes, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A line that never ended took 1.3 GB before the answer was given up."""
    monkeypatch.setattr("loop_core.client.exchange.MOST_BYTES", most := 1 << 20)
    heard = hearing("openai_chat", Observer())
    heard.feed(opening, 1)
    tracemalloc.start()
    while heard.feed(bytes(bytearray(b"x" * 65_536)), 2):
        pass
    heard.close(TransportEnd.EOF, 3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4.4 * most
