"""Every format's stream, broken at every place: the end is told for what it is, and the recording says the same."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from inspector.live.recorder import Recorder
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.facts import View, view
from inspector.sessions import open_paths
from loop_core.client.exchange import Connection as Reach
from loop_core.client.exchange import Retries, Timeouts
from loop_core.client.transport import AsyncLive, Live
from loop_core.turn.loop import arun, run
from loop_core.turn.state import Turn
from loop_core.turn.tools import Toolbox
from loop_core.values import ChatResponse, Stop, StopReason, TextPart, Tool, ToolCall, TransportEnd
from loop_core.wire import decode, decoder, wire
from tests.scenes.live import KINDS, WORDS, answer, holds, plan, request, server
from tests.scenes.loop_server import Line, Loopback, ReadCounter, loopback
from tests.scenes.loopback import Fake, Peer
from tests.scenes.provider import CALLING
from tests.scenes.rows import share

each_format = pytest.mark.parametrize("api", CALLING)
PATIENT = Reach(Timeouts(connect=20, silence=20, whole=60, poll=0.01), Retries(most=0))
TOOLS = (Tool("weather", {"type": "object"}),)
INSIDE = 8
"""How many places inside frames are tried, evenly spread."""


class Broken(NamedTuple):
    """A way to break a stream."""

    name: str
    chunked: bool
    reset: bool
    end: TransportEnd


WAYS = (
    Broken("closed", False, False, TransportEnd.EOF),
    Broken("closed within chunks", True, False, TransportEnd.RESET),
    Broken("reset", False, True, TransportEnd.RESET),
    Broken("reset within chunks", True, True, TransportEnd.RESET),
)


def pieces_of(api: str) -> list[bytes]:
    """A stream with text and a complete call."""
    call = ToolCall(None if api == "ollama_chat" else "call_1", "weather", '{"city":"Oslo","days":12}', closed=True)
    return answer(api, "I shall look. Ã–slo", Stop.TOOL_CALL, call)


def is_over(api: str, body: bytes) -> bool:
    """Whether a body holds the end mark of an answer."""
    return bool(body.strip()) and decode(api, body).saw_done


def reason_at(api: str, pieces: list[bytes]) -> int:
    """Where the piece that says why it stopped begins: the last one that holds the word."""
    word = WORDS[api][2]
    index = max(index for index, piece in enumerate(pieces) if holds(api, piece, word))
    return len(b"".join(pieces[:index]))


def places(pieces: list[bytes]) -> Iterator[int]:
    """Every boundary between frames, the byte behind or before it in turn, and places inside the frames."""
    whole, at = len(b"".join(pieces)), 0
    found = {whole * k // (INSIDE + 1) for k in range(1, INSIDE + 1)}
    for number, piece in enumerate(pieces):
        found |= {at, at + (1 if number % 2 else len(piece) - 1)}
        at += len(piece)
    yield from sorted(found - {whole})


class RecordingCounter(ReadCounter):
    """Counts what comes, and records it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.recorder = Recorder(path)

    def on_request(self, ask: Any) -> None:
        super().on_request(ask)
        self.recorder.on_request(ask)

    def on_head(self, number: int, status: int, headers: Any) -> None:
        super().on_head(number, status, headers)
        self.recorder.on_head(number, status, headers)

    def on_data(self, number: int, data: bytes, ms: float) -> None:
        self.recorder.on_data(number, data, ms)
        super().on_data(number, data, ms)

    def on_end(self, heard: Any) -> None:
        self.recorder.on_end(heard)
        super().on_end(heard)

    def on_tools(self, number: int, results: Any) -> None:
        self.recorder.on_tools(number, results)


async def turn_of(api: str, host: Loopback, seen: RecordingCounter, ran: list[Any], stream: bool = True) -> Turn:
    def weather(arguments: Any) -> str:
        ran.append(arguments)
        return "sun"

    async with AsyncLive(server(api, host.url), seen, Toolbox({"weather": weather}), PATIENT) as source:
        trace = await arun("t", replace(request(api, tools=TOOLS), stream=stream), source, plan(api))
    seen.recorder.close()
    return trace.steps[-1].turn


def open_view(path: Path) -> View:
    return view(replay(open_case(open_paths([str(path)]))))


@each_format
def test_a_network_that_is_cut_anywhere_interrupts_and_releases_no_call(api: str, tmp_path: Path) -> None:
    """A clean close at each place, and a second way at every other; every way at the ends and around the reason."""
    pieces = pieces_of(api)
    whole, reason = b"".join(pieces), reason_at(api, pieces)
    last = answer(api, "Done.", Stop.END_TURN)

    async def cut(host: Loopback, way: Broken, at: int) -> None:
        path = tmp_path / f"{way.name} {at}.jsonl"
        seen, ran = RecordingCounter(path), list[Any]()

        async def break_off(line: Line) -> None:
            await line.head(KINDS.get(api, "text/event-stream"))
            await line.send(whole[:at])
            await seen.until(at)
            line.reset() if way.reset else line.leave()

        async def finish(line: Line) -> None:
            await line.head(KINDS.get(api, "text/event-stream"))
            await line.send(b"".join(last))
            line.finish()

        host.plays, host.asked, host.chunked = [break_off, finish], 0, way.chunked
        turn = await turn_of(api, host, seen, ran)
        where = f"{way.name} after {at} of {len(whole)} bytes: {whole[max(0, at - 20):at]!r}"
        first = seen.heard[0]
        assert first.body == whole[:at], where
        over = decoder(api)
        over.feed(first.body)
        assert first.response.transport_end is (TransportEnd.EOF if over.is_over else way.end), where
        released = first.judgement.stop.normalized is Stop.TOOL_CALL
        assert bool(ran) is released, where
        if at <= reason:
            assert turn.terminal == "interrupted", where
            assert (ran, len(seen.heard), host.asked) == ([], 1, 1), where
        else:
            assert turn.terminal == ("completed" if released else "interrupted"), where
        if released:
            assert ran == [{"city": "Oslo", "days": 12}], where
        again = open_view(path)
        assert [given.error for given in again.inputs] == [None], where
        assert [facts.judgement for facts in again.responses] == [heard.judgement for heard in seen.heard], where
        assert [facts.exchange.body for facts in again.responses] == [heard.body for heard in seen.heard], where
        assert [facts.exchange.response.transport_end for facts in again.responses] == [
            heard.response.transport_end for heard in seen.heard], where
        assert again.turns[0].terminal == turn.terminal, where

    async def all_of_them() -> int:
        ends = {reason - 1, reason, reason + 1}
        found = sorted({*places(pieces), *ends})
        marked = {found[0], found[-1], *ends}
        async with loopback() as host:
            cells = [(way, at) for number, at in enumerate(found) for way in (
                WAYS if at in marked else (WAYS[0], WAYS[1 + number // 2 % 3])[: 1 + number % 2])]
            for way, at in share(cells, CALLING.index(api)):
                await cut(host, way, at)
        return len(found)

    assert asyncio.run(all_of_them()) > len(pieces) + INSIDE // 2


@each_format
def test_a_whole_answer_that_is_cut_anywhere_interrupts_and_releases_no_call(api: str, tmp_path: Path) -> None:
    """In chunks or without, in turn; both ways at the first and the last byte."""
    call = ToolCall(None if api == "ollama_chat" else "call_1", "weather", '{"city":"Oslo"}', closed=True)
    said = ChatResponse(api, (TextPart("I shall look."), call), StopReason(Stop.TOOL_CALL, WORDS[api][2]))
    body = b"".join(wire(api).encode(said, stream=False))

    async def all_of_them() -> None:
        async with loopback() as host:
            found = sorted({*range(0, len(body), 1 + len(body) // 12), len(body) - 1})
            cells = [(at, chunked) for number, at in enumerate(found) for chunked in (True, False)
                     if chunked is bool(number % 2) or at in (found[0], found[-1])]
            for at, chunked in share(cells, CALLING.index(api)):
                host.chunked, path = chunked, tmp_path / f"{at}-{chunked}.jsonl"
                seen, ran = RecordingCounter(path), list[Any]()

                async def break_off(line: Line, at: int = at, seen: RecordingCounter = seen) -> None:
                    await line.head("application/json")
                    await line.send(body[:at])
                    await seen.until(at)
                    line.leave()

                host.plays, host.asked = [break_off], 0
                turn = await turn_of(api, host, seen, ran, stream=False)
                where = f"after {at} of {len(body)} bytes, {chunked=}"
                (heard,) = seen.heard
                assert (turn.terminal, ran, heard.body) == ("interrupted", [], body[:at]), where
                assert heard.response.transport_end is (TransportEnd.RESET if chunked else TransportEnd.EOF), where
                again = open_view(path)
                assert [facts.judgement for facts in again.responses] == [heard.judgement], where
                assert again.turns[0].terminal == "interrupted", where

    asyncio.run(all_of_them())


@each_format
def test_a_cancel_at_every_frame_is_a_cancel(api: str, tmp_path: Path) -> None:
    pieces = pieces_of(api)
    kind = KINDS.get(api, "text/event-stream")

    async def cancel_at(host: Loopback, count: int) -> None:
        seen, closed, ran = RecordingCounter(tmp_path / f"{count}.jsonl"), asyncio.Event(), list[Any]()
        sent = b"".join(pieces[:max(count, 0)])

        async def hold(line: Line) -> None:
            if count >= 0:
                await line.head(kind)
                await line.send(sent)
            await line.wait_closed()
            closed.set()

        host.plays, host.asked = [hold], 0
        async with AsyncLive(server(api, host.url), seen, Toolbox({"weather": ran.append}), PATIENT) as source:
            running = asyncio.create_task(arun("t", request(api, tools=TOOLS), source, plan(api)))
            if count >= 0:
                await seen.until(len(sent))
            else:
                while not host.asked:
                    await asyncio.sleep(0)
            source.cancel()
            turn = (await running).steps[-1].turn
            await asyncio.wait_for(closed.wait(), 20)  # before the source is closed: the connection was given up
        seen.recorder.close()
        where = f"cancelled after {count} of {len(pieces)} frames"
        assert (turn.terminal, ran, host.asked) == ("cancelled", [], 1), where
        (heard,) = seen.heard
        assert heard.response.transport_end is TransportEnd.ABORTED, where
        assert heard.body == sent, where
        again = open_view(tmp_path / f"{count}.jsonl")
        assert [given.error for given in again.inputs] == [None], where
        (facts,) = again.responses
        assert facts.judgement == heard.judgement, where
        assert facts.exchange.response.transport_end is TransportEnd.ABORTED, where

    async def all_of_them() -> None:
        async with loopback() as host:
            for count in range(-1, len(pieces)):
                # At the end of the answer there is nothing left to give up; Cohere sends `[DONE]` after that.
                if b"".join(pieces[count:]) and not is_over(api, b"".join(pieces[: max(count, 0)])):
                    await cancel_at(host, count)

    asyncio.run(all_of_them())


class Impatient(Recorder):
    """Interrupts when so many bytes are there."""

    def __init__(self, path: Path, size: int) -> None:
        super().__init__(path)
        self.left = size

    def on_data(self, number: int, data: bytes, ms: float) -> None:
        super().on_data(number, data, ms)
        self.left -= len(data)
        if not self.left:
            raise KeyboardInterrupt


# -- what is no HTTP, or no honest one -------------------------------------------------------------------------------

STREAM = b"".join(answer("openai_chat", "One two three", Stop.END_TURN))
DONE = b"data: [DONE]\n\n"
OK = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
SHUT = b"connection: close\r\n\r\n"


def chunks(data: bytes, last: bytes = b"0\r\n\r\n") -> bytes:
    return b"transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(data), data) + last


BROKE, CODED = "broke the connection", "sent content whose encoding is broken"
NO_HTTP = "sent what cannot be read as HTTP/1.1"
NOT_ASKED = "sent content in the encoding {}, which was not requested"
ODD: dict[str, tuple[bytes, str, TransportEnd, str]] = {
    "nothing": (b"", "interrupted", TransportEnd.RESET, BROKE),
    "noise": (b"\x00\xff\x00noise\r\n\r\n", "interrupted", TransportEnd.RESET, NO_HTTP),
    "no number for a status": (b"HTTP/1.1 abc OK\r\n\r\n", "interrupted", TransportEnd.RESET, NO_HTTP),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "interrupted", TransportEnd.RESET, NO_HTTP),
    "no head": (STREAM, "interrupted", TransportEnd.RESET, NO_HTTP),
    "half a head": (b"HTTP/1.1 200 OK\r\ncontent-ty", "interrupted", TransportEnd.RESET, BROKE),
    "an endless header": (b"HTTP/1.1 200 OK\r\nx: " + b"a" * 200_000, "interrupted", TransportEnd.RESET, NO_HTTP),
    "two lengths": (OK + b"content-length: 5\r\ncontent-length: 6\r\n\r\n" + STREAM, "interrupted",
                    TransportEnd.RESET, NO_HTTP),
    "a negative length": (OK + b"content-length: -5\r\n\r\n" + STREAM, "interrupted", TransportEnd.RESET, NO_HTTP),
    "too short a length": (OK + b"content-length: 20\r\n\r\n" + STREAM, "interrupted", TransportEnd.EOF, ""),
    "too long a length": (OK + b"content-length: 99999\r\n\r\n" + STREAM.removesuffix(DONE), "completed",
                          TransportEnd.RESET, BROKE),
    "chunks without sizes": (OK + b"transfer-encoding: chunked\r\n\r\nzz\r\n" + STREAM, "interrupted",
                             TransportEnd.RESET, NO_HTTP),
    "chunks without an end": (OK + chunks(STREAM.removesuffix(DONE), b""), "completed", TransportEnd.RESET, BROKE),
    "a coding that nobody asked for": (OK + b"content-encoding: gzip\r\n" + SHUT + gzip.compress(STREAM), "completed",
                                       TransportEnd.EOF, ""),
    "a coding that is cut": (OK + b"content-encoding: gzip\r\n" + SHUT + gzip.compress(STREAM)[:-60], "interrupted",
                             TransportEnd.EOF, ""),
    "a coding that is none": (OK + b"content-encoding: gzip\r\n" + SHUT + STREAM, "interrupted", TransportEnd.RESET,
                              CODED),
    "a character set for a coding": (OK + b"content-encoding: utf-8\r\n" + SHUT + STREAM, "completed",
                                     TransportEnd.EOF, ""),
    "a coding that makes gigabytes of nothing": (OK + b"content-encoding: br\r\n" + SHUT + STREAM, "interrupted",
                                                 TransportEnd.ABORTED, NOT_ASKED.format("br")),
    "a coding over a coding": (OK + b"content-encoding: gzip, gzip\r\n" + SHUT + gzip.compress(gzip.compress(STREAM)),
                               "interrupted", TransportEnd.ABORTED, NOT_ASKED.format("gzip, gzip")),
    "a word before the answer": (b"HTTP/1.1 100 Continue\r\n\r\n" + OK + SHUT + STREAM, "completed", TransportEnd.EOF,
                                 ""),
    "another protocol": (b"HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n", "interrupted", TransportEnd.RESET, NO_HTTP),
    "no content": (b"HTTP/1.1 204 None\r\n\r\n", "interrupted", TransportEnd.EOF, ""),
    "another place": (b"HTTP/1.1 301 Moved\r\nlocation: http://127.0.0.1:1/\r\n" + SHUT, "error",
                      TransportEnd.EOF, ""),
    "headers in no encoding": (OK + b"x-y: \xff\xfe\r\n" + SHUT + STREAM, "completed", TransportEnd.EOF, ""),
}
"""What a server sends -> how the turn ends, how the bytes did, and what is said of it. A reason that came is one."""


def test_whatever_a_server_sends_is_an_end_and_no_crash(tmp_path: Path) -> None:
    async def all_of_them() -> None:
        async with loopback() as host:
            for number, (name, (raw, terminal, end, said)) in enumerate(ODD.items()):
                seen = RecordingCounter(tmp_path / f"{number}.jsonl")

                async def play(line: Line, raw: bytes = raw) -> None:
                    line.writer.write(raw)
                    await line.writer.drain()
                    line.leave()

                host.plays, host.asked = [play], 0
                turn = await turn_of("openai_chat", host, seen, [])
                (heard,) = seen.heard
                assert (turn.terminal, heard.response.transport_end) == (terminal, end), name
                assert heard.problem.endswith(said), name
                assert bool(heard.problem) is bool(said), name
                again = open_view(tmp_path / f"{number}.jsonl")
                assert [given.error for given in again.inputs] == [None], name
                assert [facts.judgement for facts in again.responses] == [heard.judgement], name

    asyncio.run(all_of_them())


def test_an_interrupt_from_the_keyboard_at_every_frame(fake: Fake, tmp_path: Path) -> None:
    api = "anthropic_messages"
    pieces = pieces_of(api)

    for after in range(1, len(pieces)):
        def play(peer: Peer) -> None:
            peer.head()
            for piece in pieces[:after]:  # noqa: B023  (played within this round)
                peer.send(piece)
            peer.hold()

        fake.answers = [play]
        recorder = Impatient(tmp_path / f"{after}.jsonl", len(b"".join(pieces[:after])))
        with Live(server(api, fake.url), recorder, None, PATIENT) as source, pytest.raises(KeyboardInterrupt):
            run("t", request(api), source, plan(api))
        assert recorder.closed
        last = [json.loads(line) for line in (tmp_path / f"{after}.jsonl").read_text().splitlines()][-3:]
        assert [each["type"] for each in last] == ["end", "cancel", "about"]
        (facts,) = open_view(tmp_path / f"{after}.jsonl").responses
        assert facts.exchange.body == b"".join(pieces[:after])
        assert facts.exchange.response.transport_end is TransportEnd.ABORTED
