"""Live sources against a server that misbehaves: every end of the bytes is told for what it is, within its bounds."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import httpx
import pytest

from inspector.live.recorder import Recorder
from inspector.sessions import open_paths
from loop_core.client import exchange
from loop_core.client.address import Server, expected_profile, key_header, public_url, url_of
from loop_core.client.exchange import Connection, Observer, ResponseReader, Retries, Timeouts, retry_after
from loop_core.client.incoming import ChecksumError, ContentDecodeError
from loop_core.client.mask import Mask
from loop_core.client.outgoing import LiveRequest
from loop_core.client.streaming import MaskedText
from loop_core.client.threads import AfterStopError
from loop_core.client.transport import AsyncLive, Live
from loop_core.errors import CallerError
from loop_core.turn.loop import arun, run
from loop_core.turn.state import RequestPlace, RunTools, ToolResults, Turn
from loop_core.turn.tools import Toolbox
from loop_core.values import Message, Role, Stop, TextPart, Tool, ToolCall, TransportEnd, Usage
from loop_core.wire import wire
from tests.scenes.live import (
    ERROR,
    KINDS,
    PATIENT,
    QUICK,
    EventLog,
    answer,
    async_turn,
    holds,
    plan,
    request,
    server,
    streams,
    sync_turn,
)
from tests.scenes.loopback import Fake, Peer
from tests.scenes.provider import CALLING

each_format = pytest.mark.parametrize("api", CALLING)
RunTurn = Callable[..., tuple[Turn, EventLog]]


@pytest.fixture(params=[sync_turn, async_turn], ids=["sync", "async"])
def run_turn(request: pytest.FixtureRequest) -> RunTurn:
    made: RunTurn = request.param
    return made


DONE = b"data: [DONE]\n\n"


def is_whole(api: str, got: bytes, sent: bytes) -> bool:
    """Whether an answer was read to its end. Cohere sends `[DONE]` after that, for which no client waits."""
    return got == sent or (api == "cohere_chat" and got + DONE == sent)


@each_format
def test_an_answer_that_was_cut_is_continued(api: str, fake: Fake, run_turn: RunTurn) -> None:
    fake.answers = [streams(api, answer(api, "One, two, ", Stop.MAX_TOKENS)),
                    streams(api, answer(api, "three.", Stop.END_TURN))]
    turn, told = run_turn(api, fake)
    assert (turn.terminal, turn.joined_answer().text) == ("completed", "One, two, three.")
    asked = [got.json for got in fake.got]
    assert len(asked) == 2
    assert "One, two, " in str(asked[1])
    path = url_of(server(api, fake.url), wire(api).path(request(api))).removeprefix(fake.url)
    assert fake.got[0].line == f"POST {path} HTTP/1.1"
    bodies = [heard.body for heard in told.of("ended")]
    sent = [b"".join(answer(api, *each)) for each in (("One, two, ", Stop.MAX_TOKENS), ("three.", Stop.END_TURN))]
    assert b"".join(told.of("came")) == b"".join(bodies)
    assert all(is_whole(api, got, whole) for got, whole in zip(bodies, sent, strict=True))
    assert [heard.response.transport_end for heard in told.of("ended")] == [TransportEnd.EOF] * 2


@each_format
def test_calls_are_run_and_their_results_sent(api: str, fake: Fake, run_turn: RunTurn) -> None:
    call = ToolCall(None if api == "ollama_chat" else "call_1", "weather", '{"city":"Oslo"}', closed=True)
    fake.answers = [streams(api, answer(api, "", Stop.TOOL_CALL, call)),
                    streams(api, answer(api, "Sunny.", Stop.END_TURN))]
    ran: list[Any] = []

    def weather(arguments: Any) -> str:
        ran.append(arguments)
        return "sun"

    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    turn, told = run_turn(api, fake, toolbox=Toolbox({"weather": weather}), tools=(Tool("weather", schema),))
    assert ran == [{"city": "Oslo"}]
    assert (turn.terminal, turn.joined_answer().text) == ("completed", "Sunny.")
    assert "sun" in fake.got[1].body.decode()
    assert [part.text for results in told.of("ran") for part in results] == ["sun"]


@each_format
def test_a_connection_that_breaks_inside_a_frame_interrupts(api: str, fake: Fake, run_turn: RunTurn) -> None:
    pieces = answer(api, "One, two, three, four, five, six", Stop.END_TURN)
    text = next(place for place, piece in enumerate(pieces) if holds(api, piece, "six"))
    seen = b"".join(pieces[: text + 1]) + pieces[text + 1][:10]

    def reset(peer: Peer) -> None:
        time.sleep(0.05)  # what was sent arrives before the reset overtakes it
        peer.reset()

    fake.answers = [streams(api, [seen], reset)]
    turn, told = run_turn(api, fake)
    assert turn.terminal == "interrupted"
    assert len(fake.got) == 1, "text was seen: it is not asked for again"
    (heard,) = told.of("ended")
    assert heard.response.transport_end is TransportEnd.RESET
    assert [f.rule for f in heard.response.findings if f.rule.startswith("transport.")] == ["transport.reset"]


@each_format
def test_a_cut_call_is_never_run(api: str, fake: Fake, run_turn: RunTurn) -> None:
    """Cut at every frame: whatever came, no tool runs unless the call and its reason were there."""
    call = ToolCall(None if api == "ollama_chat" else "call_1", "weather", '{"city":"Oslo"}', closed=True)
    pieces = answer(api, "So:", Stop.TOOL_CALL, call)
    ran: list[Any] = []

    def weather(arguments: Any) -> str:
        ran.append(arguments)
        return "sun"

    for end in range(len(pieces)):
        fake.got.clear()
        fake.answers = [streams(api, [*pieces[:end], pieces[end][: len(pieces[end]) // 2]]),
                        streams(api, answer(api, "Done.", Stop.END_TURN))]
        turn, told = run_turn(api, fake, toolbox=Toolbox({"weather": weather}), tools=(Tool("weather"),))
        first = told.of("ended")[0].judgement.stop.normalized
        assert bool(ran) is (first is Stop.TOOL_CALL), f"cut in frame {end} of {len(pieces)}"
        assert turn.terminal in ("interrupted", "completed", "error")
        ran.clear()


def test_a_server_that_falls_silent_times_out(fake: Fake, run_turn: RunTurn) -> None:
    pieces = answer("openai_chat", "One, two", Stop.END_TURN)
    fake.answers = [streams("openai_chat", pieces[:2], Peer.hold)]
    began = time.monotonic()
    turn, told = run_turn("openai_chat", fake)
    assert time.monotonic() - began < 6
    assert turn.terminal == "interrupted"
    (heard,) = told.of("ended")
    assert heard.response.transport_end is TransportEnd.TIMEOUT
    assert "was silent for 0.4 s" in heard.problem


def test_a_server_that_drips_for_ever_is_given_up(fake: Fake, run_turn: RunTurn) -> None:
    def drip(peer: Peer) -> None:
        for _ in range(2_000):
            peer.send(b": still here\n\n")
            time.sleep(0.02)

    fake.answers = [streams("openai_chat", [], drip)]
    line = Connection(Timeouts(silence=0.4, whole=0.3), Retries(most=0))
    began = time.monotonic()
    turn, told = run_turn("openai_chat", fake, line=line)
    assert time.monotonic() - began < 6, "it waited for the drip to end"
    assert told.of("ended")[0].response.transport_end is TransportEnd.TIMEOUT
    assert turn.terminal == "interrupted"


CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


@pytest.mark.parametrize(("begin", "unit", "pause"), [
    (b"HTTP/1.1 200 OK\r\n", b"x: y\r\n", 0.02), (b"", CONTINUE, 0.02), (b"", CONTINUE * 100, 0.0)])
def test_a_head_without_an_end_is_given_up(
    begin: bytes, unit: bytes, pause: float, fake: Fake, run_turn: RunTurn
) -> None:
    def endless(peer: Peer) -> None:
        peer.send(begin)
        while not peer.stop.wait(pause):
            peer.send(unit)

    fake.answers = [endless]
    line = Connection(Timeouts(silence=5, whole=0.5), Retries(most=0))
    began = time.monotonic()
    turn, told = run_turn("openai_chat", fake, line=line)
    assert time.monotonic() - began < 4
    assert turn.terminal == "interrupted"
    assert [(heard.response.transport_end, heard.problem) for heard in told.of("ended")] == [
        (TransportEnd.TIMEOUT, "no end after 0.5 s")]


def test_the_time_for_an_answer_holds_on_a_connection_that_is_used_again(fake: Fake, run_turn: RunTurn) -> None:
    """The second answer comes over the connection of the first, and its body, whose length is not said, hangs."""
    seen: list[Peer] = []

    def first(peer: Peer) -> None:
        seen.append(peer)
        body = json.dumps(ERROR).encode()
        peer.send(b"HTTP/1.1 503 X\r\ncontent-type: application/json\r\nretry-after: 0\r\n"
                  b"content-length: %d\r\n\r\n" % len(body) + body)
        peer.connection.recv(65536)
        peer.send(b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\r\n")
        peer.send(answer("openai_chat", "One", Stop.END_TURN)[0])
        peer.hold()

    fake.answers = [first]
    turn, told = run_turn("openai_chat", fake, line=Connection(Timeouts(silence=20, whole=0.5),
                                                               Retries(most=1, first=0)))
    assert len(seen) == 1
    assert turn.terminal == "interrupted"
    assert told.of("ended")[-1].problem == "no end after 0.5 s"


def test_no_thread_outlives_an_answer(fake: Fake) -> None:
    fake.answers = [streams("openai_chat", answer("openai_chat", "One", Stop.END_TURN))]
    before = {thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)}
    turn, _ = sync_turn("openai_chat", fake, line=Connection(Timeouts(whole=1000)))
    assert turn.terminal == "completed"
    left = [each for each in threading.enumerate() if isinstance(each, threading.Timer) and each not in before]
    for each in left:
        each.join(2)
    assert not [each for each in left if each.is_alive()]


def test_a_slow_disk_is_no_slow_server(fake: Fake) -> None:
    """A recorder whose disk does not answer fails as it does otherwise: the server sent its answer in time."""
    class Slow(Observer):
        def on_data(self, number: int, data: bytes, ms: float) -> None:
            raise TimeoutError("the disk")

    fake.answers = [streams("openai_chat", answer("openai_chat", "One", Stop.END_TURN))] * 2

    async def one_turn() -> None:
        async with AsyncLive(server("openai_chat", fake.url), Slow()) as source:
            await arun("t", request("openai_chat"), source, plan("openai_chat"))

    with pytest.raises(TimeoutError, match="the disk"):
        asyncio.run(one_turn())
    with Live(server("openai_chat", fake.url), Slow()) as source, pytest.raises(TimeoutError, match="the disk"):
        run("t", request("openai_chat"), source, plan("openai_chat"))


@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_a_refusal_is_retried_as_the_server_says(status: int, fake: Fake, run_turn: RunTurn) -> None:
    fake.answers = [lambda peer: peer.whole(status, ERROR, retry_after="0.05"),
                    streams("openai_chat", answer("openai_chat", "Hi", Stop.END_TURN))]
    turn, told = run_turn("openai_chat", fake)
    assert (turn.terminal, turn.joined_answer().text) == ("completed", "Hi")
    assert told.of("waits") == [0.05]
    assert [ask.attempt for ask in told.of("asked")] == [0, 1]
    assert fake.got[0].body == fake.got[1].body
    assert turn.evaluation is not None
    assert turn.evaluation.number == 1, "the answer is the second exchange of the run"


def test_retries_are_bounded_and_then_it_is_an_error(fake: Fake, run_turn: RunTurn) -> None:
    fake.answers = [lambda peer: peer.whole(429, ERROR)]
    turn, told = run_turn("openai_chat", fake)
    assert turn.terminal == "error"
    assert len(fake.got) == 3
    assert told.of("waits") == [0.01, 0.02]


@pytest.mark.parametrize("wait", ["3600", "inf", "1e400", "315360000"])
def test_a_server_that_wants_too_long_a_wait_is_not_waited_for(wait: str, fake: Fake, run_turn: RunTurn) -> None:
    fake.answers = [lambda peer: peer.whole(429, ERROR, retry_after=wait)]
    turn, told = run_turn("openai_chat", fake)
    assert (turn.terminal, len(fake.got), told.of("waits")) == ("error", 1, [])
    assert turn.notice == f"No answer came: the provider reported: HTTP 429, slow down (retry-after: {wait})."


def test_a_bad_request_is_not_retried(fake: Fake, run_turn: RunTurn) -> None:
    fake.answers = [lambda peer: peer.whole(400, {"error": {"message": "no such model", "type": "invalid"}})]
    turn, _ = run_turn("openai_chat", fake)
    assert (turn.terminal, len(fake.got)) == ("error", 1)


def test_an_error_after_text_is_an_error_and_not_retried(fake: Fake, run_turn: RunTurn) -> None:
    pieces = answer("openai_chat", "One, two", Stop.END_TURN)
    error = b'data: {"error": {"message": "overloaded", "code": 503}}\n\n'
    fake.answers = [streams("openai_chat", [*pieces[:2], error])]
    turn, told = run_turn("openai_chat", fake)
    assert (turn.terminal, len(fake.got)) == ("error", 1)
    assert told.of("ended")[0].response.error.message == "overloaded"


@pytest.mark.parametrize(("coding", "requests"), [("br", 1), ("gzip", 3)])
def test_only_a_coding_that_broke_is_asked_for_again(coding: str, requests: int, fake: Fake, run_turn: RunTurn) -> None:
    """A server that packs its answers in a way that is not unpacked would do so again, for the price of an answer."""
    def send_unpacked(peer: Peer) -> None:
        peer.head(content_encoding=coding)
        peer.send(b"not packed at all")

    fake.answers = [send_unpacked]
    turn, _ = run_turn("openai_chat", fake)
    assert (turn.terminal, len(fake.got)) == ("interrupted", requests)


@pytest.mark.parametrize("bytes_", [b"hello\r\n\r\n", b"HTTP/2 200\r\n\r\n", b"\0\1\2\r\n\r\n",
                                    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"])
def test_what_is_not_http_is_told_as_that_and_not_as_a_broken_connection(
    bytes_: bytes, fake: Fake, run_turn: RunTurn,
) -> None:
    fake.answers = [lambda peer: peer.send(bytes_)]
    turn, told = run_turn("openai_chat", fake)
    assert (turn.terminal, len(fake.got)) == ("interrupted", 3)
    assert told.of("ended")[0].problem == f"{fake.url[7:]} sent what cannot be read as HTTP/1.1"


def test_no_credential_in_the_address_of_a_redirect_is_shown(fake: Fake, run_turn: RunTurn) -> None:
    """Neither the user before the host nor the query: a page to log in may have a token in it."""
    address = "https://alice:s3cr3t-w0rd@login.example:8443/in;a=1?token=t0k3n-0f-4l1c3#k3y"
    fake.answers = [lambda peer: peer.head(302, location=address)]
    turn, _ = run_turn("openai_chat", fake)
    assert turn.notice == ("No answer came: the provider reported: HTTP 302 redirects to "
                           "https://login.example:8443/in;a=1.")


def test_an_object_that_is_no_answer_is_told_as_none(fake: Fake, run_turn: RunTurn) -> None:
    fake.answers = [lambda peer: peer.whole(200, {"message": "not here"})]
    turn, _ = run_turn("openai_chat", fake)
    assert turn.terminal == "error"
    assert turn.notice == "No answer came: the response contains no answer and no stop reason."


def test_a_page_in_place_of_an_answer_is_an_error(fake: Fake, run_turn: RunTurn) -> None:
    def page(peer: Peer) -> None:
        peer.head(kind="text/html")
        peer.send(b"<html>Sign in</html>")

    fake.answers = [page]
    turn, told = run_turn("openai_chat", fake)
    assert turn.terminal == "error"
    assert "neither JSON nor an event stream" in told.of("ended")[0].response.error.message
    assert told.of("came") == [b"<html>Sign in</html>"]


def test_nobody_there_is_retried_and_then_interrupted(run_turn: RunTurn) -> None:
    turn, told = run_turn("openai_chat", Fake("http://127.0.0.1:9"))
    assert turn.terminal == "interrupted"
    assert [heard.status for heard in told.of("ended")] == [None, None, None]
    assert told.of("ended")[0].response.transport_end is TransportEnd.RESET
    assert told.of("ended")[0].problem == "no connection to 127.0.0.1:9: Connection refused"


def test_a_response_in_the_background_is_fetched_until_it_is_there(fake: Fake, run_turn: RunTurn) -> None:
    queued = {"id": "resp_7", "object": "response", "status": "queued", "background": True, "output": []}
    said = {"type": "message", "id": "m", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "Done.", "annotations": []}]}
    fake.answers = [lambda peer: peer.whole(200, queued),
                    lambda peer: peer.whole(200, {**queued, "status": "in_progress"}),
                    lambda peer: peer.whole(200, {**queued, "status": "completed", "output": [said]})]
    turn, _ = run_turn("openai_responses", fake)
    assert (turn.terminal, turn.joined_answer().text) == ("completed", "Done.")
    assert [got.line for got in fake.got] == [
        "POST /v1/responses HTTP/1.1", "GET /v1/responses/resp_7 HTTP/1.1", "GET /v1/responses/resp_7 HTTP/1.1"]


def test_a_prefill_is_sent_in_the_servers_own_way(fake: Fake, run_turn: RunTurn) -> None:
    fake.answers = [streams("openai_chat", answer("openai_chat", "One, ", Stop.MAX_TOKENS)),
                    streams("openai_chat", answer("openai_chat", "two.", Stop.END_TURN))]
    told = EventLog()
    asked = Server("openai_chat", fake.url, profile="vllm")
    with Live(asked, told, None, QUICK) as source:
        trace = run("t", request("openai_chat"), source, plan("openai_chat", "vllm"))
    assert trace.steps[-1].turn.joined_answer().text == "One, two."
    second = fake.got[1].json
    assert second["messages"][-1] == {"role": "assistant", "content": "One,"}
    assert (second["continue_final_message"], second["add_generation_prompt"]) == (True, False)


@pytest.mark.parametrize(("raised", "end", "said"), [
    (httpx.ConnectTimeout("x"), TransportEnd.TIMEOUT, "no connection to 127.0.0.1:9 in time"),
    (httpx.ReadTimeout("x"), TransportEnd.TIMEOUT, "127.0.0.1:9 was silent for 0.4 s"),
    (httpx.ProxyError("http://user:pass@proxy"), TransportEnd.RESET, "the proxy does not lead to 127.0.0.1:9"),
    (httpx.ProxyError("407 Proxy Authentication Required"), TransportEnd.ABORTED,
     "the proxy wants another user or password to lead to 127.0.0.1:9"),
    (httpx.ConnectError("refused"), TransportEnd.RESET, "no connection to 127.0.0.1:9: refused"),
    (AfterStopError(), TransportEnd.TIMEOUT,
     "127.0.0.1:9 sent nothing of the answer for 10 s after its stop word or error"),
    (httpx.RemoteProtocolError("peer closed connection x"), TransportEnd.RESET, "127.0.0.1:9 broke the connection"),
    (httpx.ReadError("x"), TransportEnd.RESET, "127.0.0.1:9 broke the connection"),
    (httpx.RemoteProtocolError("<StreamReset stream_id:1>"), TransportEnd.RESET, "127.0.0.1:9 broke the connection"),
    (httpx.RemoteProtocolError("x"), TransportEnd.RESET, "127.0.0.1:9 sent what cannot be read as HTTP/1.1"),
    (ContentDecodeError("sent what is no gzip"), TransportEnd.RESET, "127.0.0.1:9 sent what is no gzip"),
    (ChecksumError("sent what is not whole"), TransportEnd.DAMAGED, "127.0.0.1:9 sent what is not whole"),
])
def test_what_httpx_raises_is_told_in_our_words(
    raised: Exception, end: TransportEnd, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*words: Any, **more: Any) -> Any:
        raise raised

    told = EventLog()
    line = Connection(QUICK.timeouts, Retries(most=0))
    with Live(server("openai_chat", "http://127.0.0.1:9"), told, None, line) as source:
        monkeypatch.setattr(source._client, "stream", fail)
        run("t", request("openai_chat"), source, plan("openai_chat"))
    (heard,) = told.of("ended")
    assert (heard.response.transport_end, heard.problem) == (end, said)


def test_what_broke_after_a_silence_is_told_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*words: Any, **more: Any) -> Any:
        raise httpx.ReadError("x")

    told = EventLog()
    monkeypatch.setattr(exchange, "SHOWN_SILENCE", 0.0)
    line = Connection(QUICK.timeouts, Retries(0))
    with Live(server("openai_chat", "http://127.0.0.1:9"), told, None, line) as source:
        monkeypatch.setattr(source._client, "stream", fail)
        run("t", request("openai_chat"), source, plan("openai_chat"))
    (heard,) = told.of("ended")
    assert heard.problem == "127.0.0.1:9 was silent for 0 s, and then broke the connection"


def test_a_connection_that_breaks_after_a_silence_says_how_long_it_was() -> None:
    ask = LiveRequest(0, request("openai_chat"), RequestPlace.REQUEST, 0, "POST", "http://127.0.0.1:9", (), {}, None)
    reader = ResponseReader(ask, server("openai_chat", "http://127.0.0.1:9"), Observer())
    assert reader.silence_until(1_900) == ""
    assert reader.silence_until(30_000) == "was silent for 30 s, and then "
    reader.begin(200, (), 4_000)
    assert reader.silence_until(7_000) == "was silent for 3 s, and then "
    reader.feed(b"data: {}\n\n", 9_000)
    assert reader.silence_until(10_000) == ""
    assert reader.silence_until(14_000) == "was silent for 5 s, and then "


# -- cancelling ------------------------------------------------------------------------------------------------------


async def cancelled_after(api: str, fake: Fake, pieces: list[bytes]) -> tuple[Turn, EventLog]:
    """A turn that is cancelled when these pieces have been sent."""
    sent, told, loop = asyncio.Event(), EventLog(), asyncio.get_running_loop()

    def then(peer: Peer) -> None:
        loop.call_soon_threadsafe(sent.set)
        peer.hold()

    fake.answers = [streams(api, pieces, then)]
    async with AsyncLive(server(api, fake.url), told, None, QUICK) as source:
        running = asyncio.create_task(arun("t", request(api), source, plan(api)))
        await sent.wait()
        source.cancel()
        trace = await running
    return trace.steps[-1].turn, told


@pytest.mark.parametrize("api", ["openai_chat", "anthropic_messages", "bedrock_converse"])
def test_cancel_at_every_frame_is_cancelled_and_no_error(api: str, fake: Fake) -> None:
    pieces = answer(api, "One, two, three", Stop.END_TURN)
    for count in range(1, len(pieces) - 1):
        turn, told = asyncio.run(cancelled_after(api, fake, pieces[:count]))
        assert turn.terminal == "cancelled", f"after {count} frames"
        assert [heard.response.transport_end for heard in told.of("ended")] == [TransportEnd.ABORTED]


def test_cancel_while_waiting_for_a_retry_and_while_a_tool_runs(fake: Fake) -> None:
    release = threading.Event()

    async def waiting() -> str | None:
        fake.answers = [lambda peer: peer.whole(429, ERROR, retry_after="50")]
        line = Connection(QUICK.timeouts, Retries(longest=100))
        told = EventLog()
        async with AsyncLive(server("openai_chat", fake.url), told, None, line) as source:
            running = asyncio.create_task(arun("t", request("openai_chat"), source, plan("openai_chat")))
            while not told.of("waits"):
                await asyncio.sleep(0.01)
            source.cancel()
            return (await running).steps[-1].turn.terminal

    async def tool() -> str | None:
        call = ToolCall("c", "wait", "{}", closed=True)
        fake.got.clear()
        fake.answers = [streams("openai_chat", answer("openai_chat", "", Stop.TOOL_CALL, call))]
        started = threading.Event()

        def wait(arguments: Any) -> str:
            started.set()
            release.wait(10)
            return "late"

        box = Toolbox({"wait": wait})
        async with AsyncLive(server("openai_chat", fake.url), EventLog(), box, QUICK) as source:
            asked = request("openai_chat", tools=(Tool("wait", {"type": "object"}),))
            running = asyncio.create_task(arun("t", asked, source, plan("openai_chat")))
            while not started.is_set():
                await asyncio.sleep(0.01)
            source.cancel()
            threading.Timer(0.05, release.set).start()
            return (await running).steps[-1].turn.terminal

    assert asyncio.run(waiting()) == "cancelled"
    assert asyncio.run(tool()) == "cancelled"


def test_an_interrupt_from_the_keyboard_goes_through_once_the_observer_was_told(fake: Fake) -> None:
    class Impatient(EventLog):
        def on_data(self, number: int, data: bytes, ms: float) -> None:
            raise KeyboardInterrupt

    fake.answers = [streams("openai_chat", answer("openai_chat", "One", Stop.END_TURN), Peer.hold)]
    told = Impatient()
    with Live(server("openai_chat", fake.url), told, None, QUICK) as source, pytest.raises(KeyboardInterrupt):
        run("t", request("openai_chat"), source, plan("openai_chat"))
    assert told.of("ended")[0].response.transport_end is TransportEnd.ABORTED
    assert [name for name, _ in told] == ["asked", "begun", "ended", "interrupted"]
    assert told.of("interrupted") == [(0, False)]


def test_an_interrupt_goes_through_wherever_a_run_waits(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a tool, before a retry, and before a response is fetched again: with the exchange that it came after."""
    def tool(arguments: Any) -> str:
        raise KeyboardInterrupt

    call = ToolCall("call_1", "weather", "{}", closed=True)
    fake.answers = [streams("openai_chat", answer("openai_chat", "", Stop.TOOL_CALL, call))]
    told = EventLog()
    tools = (Tool("weather", {"type": "object"}),)
    with Live(server("openai_chat", fake.url), told, Toolbox({"weather": tool}), QUICK) as source, \
            pytest.raises(KeyboardInterrupt):
        run("t", request("openai_chat", tools=tools), source, plan("openai_chat"))
    assert told.of("interrupted") == [(0, True)]

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("loop_core.client.transport.time.sleep", interrupt)
    fake.got.clear()
    fake.answers = [lambda peer: peer.whole(503, {})]
    told = EventLog()
    with Live(server("openai_chat", fake.url), told, None, QUICK) as source, pytest.raises(KeyboardInterrupt):
        run("t", request("openai_chat"), source, plan("openai_chat"))
    assert told.of("interrupted") == [(0, False)]


# -- what is shared --------------------------------------------------------------------------------------------------


def test_tasks_that_share_a_source_have_exchanges_of_their_own(fake: Fake, tmp_path: Path) -> None:
    """Ten turns at once, each refused once, then with a call, then its end: in one recording every answer and every
    result stands with the request of its own turn.
    """
    turns, call = range(10), ToolCall("call_1", "weather", "{}", closed=True)
    tools = (Tool("weather", {"type": "object"}),)
    refused: set[str] = set()

    def play(peer: Peer) -> None:
        body = next(got.json for got in fake.got if got.peer is peer)
        who = body["messages"][0]["content"]
        if who not in refused:
            refused.add(who)
            peer.whole(503, {"error": {"message": f"not yet, {who}"}})
        elif body["messages"][-1]["role"] == "tool":
            streams("openai_chat", answer("openai_chat", f"{who} is done.", Stop.END_TURN))(peer)
        else:
            streams("openai_chat", answer("openai_chat", f"{who} calls.", Stop.TOOL_CALL, call))(peer)

    fake.answers = [play]
    path = tmp_path / "s.jsonl"
    recorder = Recorder(path)

    class Box:
        def run(self, effect: RunTools, turn: Turn) -> ToolResults:
            ran = Toolbox({"weather": lambda _: "sun"}).run(effect, turn)
            return ran._replace(results=tuple(part._replace(text=f"for {turn.id}") for part in ran.results))

    async def all_texts() -> list[str | None]:
        async with AsyncLive(server("openai_chat", fake.url), recorder, Box(), PATIENT) as it:
            traces = await asyncio.gather(*(
                arun(f"turn {turn}", replace(request("openai_chat", tools=tools), messages=(
                    Message(Role.USER, (TextPart(f"turn {turn}"),)),)), it, plan("openai_chat")) for turn in turns))
        return [trace.steps[-1].turn.joined_answer().text for trace in traces]

    assert asyncio.run(all_texts()) == [f"turn {turn} is done." for turn in turns]
    recorder.close()
    records = [json.loads(line) for line in path.read_text().splitlines()]
    asked = {each["id"]: each for each in records if each.get("type") == "request"}
    assert len(asked) == len([each for each in records if each.get("type") == "request"]) == 30
    who = {number: each["body"]["messages"][0]["content"] for number, each in asked.items()}
    for each in asked.values():
        if "retries" in each:
            assert who[each["retries"]] == who[each["id"]]
    assert len([each for each in asked.values() if "retries" in each]) == 10
    said: dict[str, str] = {}
    for each in records:
        if each.get("type") == "bytes":
            said[each["request"]] = said.get(each["request"], "") + each["text"]
        if each.get("type") == "tool_result":
            assert each["text"] == f"for {who[each['request']]}"
    assert len(said) == 30
    for number, text in said.items():
        assert {f"turn {turn}" for turn in turns if f"turn {turn}" in text} == {who[number]}
    (given,) = open_paths([str(path)]).inputs
    assert given.error is None


def test_a_client_that_is_handed_in_stays_open_and_takes_no_key_elsewhere(fake: Fake) -> None:
    other = "http://127.0.0.1:9/elsewhere"
    fake.answers = [streams("openai_chat", answer("openai_chat", "One.", Stop.END_TURN)),
                    lambda peer: peer.whole(307, {}, location=other)]
    with httpx.Client(follow_redirects=True) as client:
        for terminal in ("completed", "error"):
            with Live(server("openai_chat", fake.url, KEY), None, None, QUICK, client=client) as source:
                turn = run("t", request("openai_chat"), source, plan("openai_chat")).steps[-1].turn
            assert turn.terminal == terminal
            assert not client.is_closed
    assert [got.headers["authorization"] for got in fake.got] == [f"Bearer {KEY}"] * 2


@pytest.mark.parametrize("address", ["javascript:alert(1)", "mailto:nobody", "http:x"])
def test_a_redirect_to_what_is_no_address_ends_the_turn(fake: Fake, address: str) -> None:
    fake.answers = [lambda peer: peer.whole(302, {}, location=address)]
    with Live(server("openai_chat", fake.url, KEY), None, None, QUICK) as source:
        turn = run("t", request("openai_chat"), source, plan("openai_chat")).steps[-1].turn
    assert turn.terminal in ("interrupted", "error")
    assert turn.notice
    assert "the HTTP client failed" not in turn.notice
    assert len(fake.got) == 1, "asking again would be redirected again"


def test_an_async_client_that_is_handed_in_stays_open(fake: Fake) -> None:
    fake.answers = [streams("openai_chat", answer("openai_chat", "One.", Stop.END_TURN))]

    async def both_ends() -> list[str | None]:
        async with httpx.AsyncClient() as client:
            ends = []
            for _ in range(2):
                async with AsyncLive(server("openai_chat", fake.url), None, None, QUICK, client=client) as source:
                    ends.append((await arun("t", request("openai_chat"), source, plan("openai_chat"))).steps[-1])
                assert not client.is_closed
            return [end.turn.terminal for end in ends]

    assert asyncio.run(both_ends()) == ["completed", "completed"]


def test_a_client_of_our_own_is_closed(fake: Fake) -> None:
    with Live(server("openai_chat", fake.url), None, None, QUICK) as source:
        pass
    assert source._client.is_closed


@pytest.mark.parametrize("more", [{"auth": ("me", "word")}, {"headers": {"X-Api-Key": "k"}},
                                  {"headers": {"Authorization": "Bearer k"}}])
def test_a_client_with_credentials_of_its_own_is_refused(more: dict[str, Any]) -> None:
    with httpx.Client(**more) as client, pytest.raises(CallerError, match="expected them with the Server"):
        Live(server("openai_chat", "https://far.example"), client=client)
    with pytest.raises(CallerError, match="expected them with the Server"):
        AsyncLive(server("openai_chat", "https://far.example"), client=httpx.AsyncClient(**more))


# -- keys and addresses ----------------------------------------------------------------------------------------------

KEY = "sk-live-0123456789abcdefghij"


@each_format
def test_the_key_is_sent_and_shown_to_nobody(api: str, fake: Fake, run_turn: RunTurn) -> None:
    """The server repeats it in a header and in the text, in pieces of one byte."""
    text = b"".join(answer(api, f"Your key is {KEY}.", Stop.END_TURN)) if api != "bedrock_converse" else b"".join(
        answer(api, "Hi", Stop.END_TURN))

    def play(peer: Peer) -> None:
        peer.head(kind=KINDS.get(api, "text/event-stream"), x_debug=f"seen {KEY}")
        for byte in text:
            peer.send(bytes([byte]))

    fake.answers = [play]
    turn, told = run_turn(api, fake, key=KEY)
    assert KEY in str(fake.got[0].headers)
    assert turn.terminal == "completed"
    heard = told.of("ended")[0]
    assert KEY not in repr([told, turn, heard.ask, heard.response, heard.headers, heard.body])
    assert KEY.encode() not in b"".join(told.of("came"))
    # A mask keeps the length, so that offsets stay true. Of Cohere's `[DONE]` any part may be left unread (`is_whole`).
    unread = text[len(heard.body) :]
    assert not unread or (api == "cohere_chat" and DONE.endswith(unread))


def test_a_key_that_a_tool_prints_goes_no_further(fake: Fake, run_turn: RunTurn) -> None:
    call = ToolCall("c", "env", "{}", closed=True)
    fake.answers = [streams("openai_chat", answer("openai_chat", "", Stop.TOOL_CALL, call)),
                    streams("openai_chat", answer("openai_chat", "Done.", Stop.END_TURN))]
    box = Toolbox({"env": lambda arguments: f"OPENAI_API_KEY={KEY}"})
    _, told = run_turn("openai_chat", fake, key=KEY, toolbox=box, tools=(Tool("env", {"type": "object"}),))
    assert KEY not in repr(told)
    assert KEY.encode() not in fake.got[1].body


def test_a_key_that_came_in_pieces_is_masked_wherever_it_was_joined(fake: Fake, run_turn: RunTurn) -> None:
    """Responses sends arguments twice: whole, where the key is masked at once, and in pieces, which then differ."""
    call = ToolCall("c", "env", json.dumps({"key": KEY}), closed=True)
    events = answer("openai_responses", "", Stop.TOOL_CALL, call)
    assert sum(b"arguments.delta" in event for event in events) > 1
    fake.answers = [streams("openai_responses", events)]
    turn, told = run_turn("openai_responses", fake, key=KEY)
    assert "sent two texts" in repr(turn.evaluation), "the pieces were joined"
    assert KEY not in repr([turn, told.of("ended")[0].response, told.of("ended")[0].judgement])


def test_a_key_that_a_continuation_splits_is_never_whole_in_the_joined_text() -> None:
    key = "sk-proj-0123456789abcdefghij-KLM"
    for at in range(1, len(key)):
        for wrapped in ("{}", "<quoted>It is {}", "It is {}."):
            first, second = f"The key is {key[:at]}", wrapped.format(key[at:])
            assert key not in Mask([key]).text(first) + Mask([key]).text(second)
            assert key not in "".join(MaskedText([key]).of([text]) for text in (first, second))
    assert Mask([key]).text("sk-proj- is how keys begin") == "sk-proj- is how keys begin"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_a_mask_finds_a_secret_however_it_is_cut(size: int) -> None:
    text = f"x{KEY[:5]} {KEY}{KEY} and {KEY[:-1]} {KEY[:9]}".encode()
    mask = Mask([KEY])
    pieces = [mask.feed(text[at : at + size]) for at in range(0, len(text), size)] + [mask.flush()]
    stars = "*" * len(KEY)
    assert b"".join(pieces).decode() == f"x{KEY[:5]} {stars}{stars} and {KEY[:-1]} {KEY[:9]}"


@pytest.mark.parametrize("key", [KEY, "a?b~c>d?e~f>g", "12345678"])
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_a_mask_finds_a_secret_that_base64_hides(key: str, size: int) -> None:
    for before in ("", "u:", "user:", "somebody:"):
        for after in ("", ":", ": and more"):
            for encoded in (b64encode, urlsafe_b64encode):
                said = encoded(f"{before}{key}{after}".encode())
                text = b"seen: Basic " + said + b" by me"
                mask = Mask([key])
                found = b"".join([mask.feed(text[at : at + size]) for at in range(0, len(text), size)] + [mask.flush()])
                assert len(found) == len(text)
                left = "".join("?" if byte == 42 else chr(byte) for byte in found[12:-6])
                # What is left are characters that hold the text beside the secret, and two bits of the secret at most.
                assert sum(letter == "?" for letter in left) >= len(key) * 8 // 6 - 1
                assert Mask([key]).text(text.decode()).encode() == found


def test_a_mask_leaves_other_base64_alone() -> None:
    for other in (KEY[:-1] + "X", KEY[1:], KEY.upper(), "a picture " * 100):
        said = b64encode(other.encode())
        mask = Mask([KEY])
        assert mask.feed(said) + mask.flush() == said


def test_a_key_that_the_error_of_a_server_holds_in_base64_is_shown_to_nobody(fake: Fake, run_turn: RunTurn) -> None:
    proof = b64encode(f"me:{KEY}".encode()).decode()
    fake.answers = [lambda peer: peer.whole(401, {"error": {"message": f"Basic {proof} is no key", "type": "x"}})]
    turn, told = run_turn("openai_chat", fake, key=KEY)
    assert "is no key" in (turn.notice or "")
    assert proof[6:] not in repr([turn, told, told.of("ended")[0].response, told.of("ended")[0].body])


def test_a_short_secret_is_a_word() -> None:
    assert Mask(["test"]).feed(b"a test") == b"a test"


@pytest.mark.parametrize(("api", "base", "path", "url"), [
    ("openai_chat", "", "/chat/completions", "https://api.openai.com/v1/chat/completions"),
    ("openai_chat", "http://h:1", "/chat/completions", "http://h:1/v1/chat/completions"),
    ("openai_chat", "http://h:1/v1/", "/chat/completions", "http://h:1/v1/chat/completions"),
    ("openai_chat", "https://openrouter.ai/api/v1", "/chat/completions", "https://openrouter.ai/api/v1/chat/completions"),
    ("openai_chat", "https://x.openai.azure.com/openai/deployments/d?api-version=1", "/chat/completions",
     "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=1"),
    ("anthropic_messages", "", "/messages", "https://api.anthropic.com/v1/messages"),
    ("anthropic_messages", "https://api.deepseek.com/anthropic", "/messages",
     "https://api.deepseek.com/anthropic/v1/messages"),
    ("anthropic_messages", "http://h/v1", "/messages", "http://h/v1/messages"),
    ("gemini_generate", "", "/models/m:streamGenerateContent?alt=sse",
     "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse"),
    ("gemini_generate", "https://a-aiplatform.googleapis.com/v1/projects/p/locations/a/publishers/google",
     "/models/m:generateContent",
     "https://a-aiplatform.googleapis.com/v1/projects/p/locations/a/publishers/google/models/m:generateContent"),
    ("bedrock_converse", "", "/model/m/converse", "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse"),
    ("ollama_chat", "", "/chat", "http://127.0.0.1:11434/api/chat"),
    ("ollama_chat", "http://h/api", "/chat", "http://h/api/chat"),
])
def test_where_a_request_goes(api: str, base: str, path: str, url: str) -> None:
    assert url_of(Server(api, base), path) == url


@pytest.mark.parametrize(("api", "profile", "header"), [
    ("openai_chat", "openai", ("authorization", f"Bearer {KEY}")),
    ("openai_chat", "azure_openai", ("api-key", KEY)),
    ("openai_chat", "azure_foundry", ("api-key", KEY)),
    ("anthropic_messages", "anthropic", ("x-api-key", KEY)),
    ("gemini_generate", "gemini", ("x-goog-api-key", KEY)),
    ("gemini_interactions", "gemini", ("x-goog-api-key", KEY)),
    ("gemini_generate", "vertex", ("authorization", f"Bearer {KEY}")),
    ("bedrock_converse", "bedrock", ("authorization", f"Bearer {KEY}")),
])
def test_the_header_of_the_key(api: str, profile: str, header: tuple[str, str]) -> None:
    assert key_header(Server(api, key=KEY), profile) == (header,)


def test_no_part_of_an_address_that_may_be_secret_is_shown() -> None:
    given = Server("openai_chat", "https://user:pass-word@h/v1?key=abcdefghij&api-version=1")
    assert public_url(url_of(given, "/chat/completions")) == "https://h/v1/chat/completions?key=REDACTED&api-version=1"
    assert {"user", "pass-word", "abcdefghij", b64encode(b"user:pass-word").decode()} == set(given.secrets)
    assert "pass-word" not in repr(given)
    assert "pass-word" not in repr(Server("openai_chat", key="pass-word"))


def test_deepseek_takes_a_prefill_under_beta_only() -> None:
    assert expected_profile(Server("openai_chat", "https://api.deepseek.com/v1"), "m").profile.prefill == "none"
    assert expected_profile(Server("openai_chat", "https://api.deepseek.com/beta"), "m").profile.prefill == "prefix"


@pytest.mark.parametrize("base", ["ftp://h", "h:80", "http://", "/v1", "http://h:99999", "http://h:0", "http://h:9x/v1",
                                  "http://[::1/v1", "http://a b/v1", "http://a..b", f"http://{'a' * 80}.com",
                                  "http://h\x00/", "http://h/v1\nx"])
def test_a_base_that_is_no_address_is_refused(base: str) -> None:
    with pytest.raises(CallerError, match="--base-url"):
        Server("openai_chat", base)


@pytest.mark.parametrize("base", ["http://h", "https://h:1/v1", "http://[::1]:9/v1", "http://127.0.0.1",
                                  "http://bücher.example", "http://user:pa%20ss@h/?key=x"])
def test_a_base_that_is_an_address_is_taken(base: str) -> None:
    assert Server("openai_chat", base).base == base


@pytest.mark.parametrize(("variable", "value", "said"), [
    ("HTTP_PROXY", "socks5://u:a-secret-word@127.0.0.1:9", "a SOCKS proxy needs another package"),
    ("HTTPS_PROXY", "http://u:a-secret-word@127.0.0.1:9x", "the proxy is not an address"),
    ("ALL_PROXY", "ftp://u:a-secret-word@127.0.0.1:9", "the proxy is not an address"),
])
@pytest.mark.parametrize("kind", [Live, AsyncLive])
def test_a_proxy_that_cannot_be_used_is_told_without_its_address(
    kind: Any, variable: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(CallerError, match=said) as why:
        kind(Server("openai_chat", "http://h"))
    assert "a-secret-word" not in str(why.value)
    assert why.value.__cause__ is None
    assert why.value.__suppress_context__


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "localhost", "[::1]"])
def test_no_proxy_is_asked_for_this_machine(
    host: str, fake: Fake, run_turn: RunTurn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any address of loopback takes a key, so none of them may lead over a proxy; nobody listens there."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, fake.url)
    monkeypatch.setenv("NO_PROXY", "")
    fake.answers = [lambda peer: peer.whole(500, {})]
    turn, _ = run_turn("openai_chat", Fake(f"http://{host}:9/v1"), key=KEY)
    assert (turn.terminal, fake.got) == ("interrupted", [])


@pytest.mark.parametrize(("more", "said"), [
    ({"key": "sk-secret-0123456789 "}, "the key holds characters"), ({"key": "sk-secrét"}, "the key holds characters"),
    ({"headers": (("x-team", "Köln"),)}, "'x-team' holds"), ({"headers": (("x-team", "a\r\nb: c"),)}, "'x-team' holds"),
    ({"headers": (("x team", "a"),)}, "'x team' holds"), ({"headers": (("", "a"),)}, "'' holds"),
    ({"headers": (("Content-Length", "5"),)}, "how long a request is"),
    ({"headers": (("Transfer-Encoding", "chunked"),)}, "how long a request is"),
    ({"model": "m\ud800"}, "the name of the model"),
])
def test_a_header_that_cannot_be_sent_is_refused_before_anything_is(more: dict[str, Any], said: str) -> None:
    with pytest.raises(CallerError, match=said) as raised:
        Server("openai_chat", "https://h", **more)
    assert "secr" not in str(raised.value)


def test_certificates_that_cannot_be_read_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("loop_core.client.transport._certificates", missing)
    with pytest.raises(CallerError, match=r"certificates cannot be read \(SSL_CERT_FILE.*: No such file"):
        Live(Server("openai_chat", "http://h"))


@pytest.mark.parametrize(("headers", "seconds"), [
    ([("Retry-After", "2")], 2.0),
    ([("retry-after", "0.5")], 0.5),
    ([("retry-after-ms", "250"), ("retry-after", "2")], 0.25),
    ([("retry-after", "Wed, 21 Oct 2026 07:28:10 GMT"), ("date", "Wed, 21 Oct 2026 07:28:00 GMT")], 10.0),
    ([("retry-after", "Wed, 21 Oct 2026 07:27:00 GMT"), ("date", "Wed, 21 Oct 2026 07:28:00 GMT")], 0.0),
    ([("retry-after", "Wed, 21 Oct 2026 07:28:10 GMT")], None),
    ([("retry-after", "soon")], None),
    ([("retry-after", "1"), ("Retry-After", "4000")], 1.0),  # the one that the notice names
    ([("retry-after", "-1")], None),
    ([("retry-after", "inf")], inf),
    ([("retry-after", "1e400")], inf),
    ([("retry-after", "315360000")], 315_360_000.0),
    ([("retry-after", "nan")], None),
    ([("retry-after", f"Wed, 21 Oct {'9' * 20} 07:28:10 GMT"), ("date", "Wed, 21 Oct 2026 07:28:00 GMT")], None),
    ([("retry-after", "Wed, 21 Oct 2026 07:28:10 GMT"), ("date", f"Wed, 21 Oct 2026 07:28:00 +{'9' * 20}")], None),
    ([], None),
])
def test_how_long_a_server_asks_to_wait(headers: list[tuple[str, str]], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_usage_at_the_cap_is_judged_live_as_in_a_recording(fake: Fake, run_turn: RunTurn) -> None:
    pieces = answer("openai_chat", "One,", Stop.END_TURN, usage=Usage(5, 100))
    stamped = [piece.replace(b'"object"', b'"timings":{},"object"') for piece in pieces]
    fake.answers = [streams("openai_chat", stamped), streams("openai_chat", answer("openai_chat", "!", Stop.END_TURN))]
    turn, told = run_turn("openai_chat", fake)
    assert told.of("ended")[0].profile_choice.profile.name == "llama_cpp"
    assert told.of("ended")[0].judgement.stop.normalized is Stop.MAX_TOKENS
    assert turn.joined_answer().text == "One,!"


@each_format
def test_no_log_of_the_http_library_holds_the_key(
    api: str, fake: Fake, run_turn: RunTurn, caplog: pytest.LogCaptureFixture
) -> None:
    """docs/credentials.md says what the log of httpx and httpcore holds, for a program that switches it on."""
    fake.answers = [streams(api, answer(api, "Done.", Stop.END_TURN))]
    with caplog.at_level(1):
        run_turn(api, fake, key="an-api-key-for-this-test")
    assert any("an-api-key-for-this-test" in str(value) for got in fake.got for value in dict(got.headers).values())
    assert {record.name.partition(".")[0] for record in caplog.records} >= {"httpx", "httpcore"}
    assert "an-api-key-for-this-test" not in caplog.text
