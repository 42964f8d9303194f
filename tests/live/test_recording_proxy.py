"""The recording proxy: what a client gets, what the provider is sent, and what the recording holds of both."""

from __future__ import annotations

import asyncio
import base64
import errno
import gzip
import json
import os
import signal
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import brotli
import httpx
import pytest
import zstandard

from inspector.commands.providers import _outcome
from inspector.live import proxy
from inspector.live.proxy import HANDLING, Proxy, Traffic
from inspector.live.recorder import Recorder
from inspector.live.upstreams import upstreams
from inspector.provider import PlacedFault, Provider, Story, serving
from inspector.provider.listener import ProblemLog, listening
from inspector.sessions.folders import transcripts
from inspector.sessions.intake import unpack
from inspector.sessions.native import SessionWriter
from inspector.sessions.open import open_paths
from inspector.sessions.recording import Exchange
from loop_core.errors import CallerError
from loop_core.formats import FORMATS
from loop_core.values import Stop, TransportEnd
from tests.scenes.command import Output
from tests.scenes.loop_server import Line, loopback
from tests.scenes.loopback import Fake, Peer
from tests.scenes.provider import BASES, CALLING, TOOLS, each_way, play, reply
from tests.scenes.rows import share

Inspector = Callable[..., Output]
KEY = "sk-live-4f9Qd8Zr2Lk7Wm3Xv6Tb1Nc5"
CHUNK = b'data: {"choices":[{"index":0,"delta":{"content":"Half of"}}]}\n\n'
ASKED = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Go on."}]}
ANSWER = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}
END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


@asynccontextmanager
async def proxied(to: str, file: Path) -> AsyncIterator[str]:
    """The URL at which a proxy stands for the server at `to`."""
    asked = upstreams(to, {})
    recorder = Recorder(file)
    proxy = Proxy(asked, recorder, lambda _: None)
    problems = ProblemLog(pytest.fail)
    async with listening(proxy.app, problems, "127.0.0.1", 0, patience=60, grace=1, **HANDLING) as port:
        yield asked.variables(f"http://127.0.0.1:{port}")["ANTHROPIC_BASE_URL"]
    recorder.close()


def client() -> httpx.AsyncClient:
    return httpx.AsyncClient(trust_env=False)


def recorded(file: Path) -> tuple[Exchange, ...]:
    return open_paths([str(file)]).exchanges


STORIES = (
    Story("text", "cut once", BASES["text"], TOOLS, (PlacedFault("cut", 12, 0, 0),), seed=3),
    Story("call", "a call that is cut", BASES["call"], TOOLS, (PlacedFault("cut", 20, 0, 0),), seed=3),
    Story("gone", "the connection ends early", BASES["text"], TOOLS, (PlacedFault("dropped", 2, 0, 0),), seed=3),
)
NAMED = {story.name: story for story in STORIES}


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with serving(*STORIES, pace=0) as running:
        yield running


@pytest.mark.parametrize(("story", "ways"), [
    ("text", each_way), ("call", [way for way in each_way if way[0] in CALLING]),
    ("gone", [(api, True) for api in FORMATS]),  # a whole body is one frame
], ids=["text", "call", "gone"])
async def test_a_turn_through_the_proxy_is_the_same_and_each_of_its_exchanges_is_recorded(
    story: str, ways: list[tuple[str, bool]], provider: Provider, tmp_path: Path,
) -> None:
    came = list[tuple[str, bool]]()
    async with proxied(provider.url, tmp_path / "a.jsonl") as url:
        for api, stream in (way for row, name in enumerate(FORMATS) for way in share(
                [each for each in ways if each[0] == name], row)):
            direct = await asyncio.to_thread(play, provider, api, stream, story)
            before = len(provider.seen)
            through = await asyncio.to_thread(play, replace(provider, url=url), api, stream, story)
            assert (through.text, through.ran, through.turn.terminal) == (
                direct.text, direct.ran, direct.turn.terminal), (api, stream)
            came += [(seen.api, stream) for seen in provider.seen[before:]]
    exchanges = recorded(tmp_path / "a.jsonl")
    assert [(each.api, each.request.model) for each in exchanges if each.request is not None] == [
        (api, story) for api, _ in came]
    for each, (_, stream) in zip(exchanges, came, strict=True):
        assert each.request is not None
        sent = b"".join(reply(NAMED[story], each.request, stream).frames)
        if story == "gone":
            assert each.response.transport_end is TransportEnd.RESET
            assert sent.startswith(each.body)
            assert each.body != sent
        else:
            assert each.body == sent


# -- what the bytes are ----------------------------------------------------------------------------------------------


def answer_with(*pieces: bytes) -> Any:
    async def play_pieces(line: Line) -> None:
        await line.head("text/event-stream")
        for piece in pieces:
            await line.send(piece)
        line.finish()

    return play_pieces


async def test_every_byte_is_passed_on_and_recorded_with_its_time(tmp_path: Path) -> None:
    async with loopback() as server, proxied(server.url, file := tmp_path / "a.jsonl") as url, client() as http:
        server.chunked, server.plays = True, [answer_with(CHUNK, END)]
        got = await http.post(f"{url}/v1/chat/completions", json=ASKED)
    assert got.content == CHUNK + END
    (exchange,) = recorded(file)
    assert exchange.body == CHUNK + END
    assert exchange.url == f"{server.url}/v1/chat/completions"
    assert exchange.request_json == ASKED
    assert exchange.chunks
    assert exchange.started is not None
    assert exchange.response.stop_reason.normalized is Stop.END_TURN


async def test_an_answer_that_is_reset_is_cut_for_the_client_too(tmp_path: Path) -> None:
    async def reset(line: Line) -> None:
        await line.head("text/event-stream")
        await line.send(CHUNK)
        await asyncio.sleep(0.2)
        line.reset()

    async with loopback() as server, proxied(server.url, file := tmp_path / "a.jsonl") as url, client() as http:
        server.chunked, server.plays = True, [reset]
        with pytest.raises(httpx.ReadError):  # RemoteProtocolError: a connection that was closed
            await http.post(f"{url}/v1/chat/completions", json=ASKED)
    (exchange,) = recorded(file)
    assert (exchange.body, exchange.response.transport_end) == (CHUNK, TransportEnd.RESET)
    assert exchange.response.stop_reason.normalized is Stop.INTERRUPTED
    host = server.url.removeprefix("http://")
    assert exchange.response.broken_connection == f"{host} closed the connection before the body was complete"


async def test_a_client_that_leaves_ends_the_request_and_is_recorded_so(tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def wait(line: Line) -> None:
        await line.head("text/event-stream")
        await line.send(CHUNK)
        await line.wait_closed()
        ended.set()

    async with loopback() as server, proxied(server.url, file := tmp_path / "a.jsonl") as url:
        server.chunked, server.plays = True, [wait]
        async with client() as http, http.stream("POST", f"{url}/v1/chat/completions", json=ASKED) as got:
            assert await anext(got.aiter_raw()) == CHUNK
        await asyncio.wait_for(ended.wait(), 10)
    (exchange,) = recorded(file)
    assert (exchange.body, exchange.response.transport_end) == (CHUNK, TransportEnd.ABORTED)


def refuse(peer: Peer) -> None:
    peer.send(b"HTTP/1.1 407 X\r\ncontent-length: 0\r\n\r\n")


def say_nothing(_peer: Peer) -> None:
    """The connection is closed."""


def say_no_http(peer: Peer) -> None:
    peer.send(b"SSH-2.0-x\r\n\r\n")


def say_status_99(peer: Peer) -> None:
    peer.send(b"HTTP/1.1 099 X\r\ncontent-length: 2\r\n\r\n{}")


CLOSED = "http://127.0.0.1:9"


@pytest.mark.parametrize(("to", "environment", "answer", "problem"), [
    (CLOSED, {}, None, "cannot connect to 127.0.0.1:9: Connection refused"),
    ("http://127.0.0.1:9999", {}, None, "127.0.0.1:9999 took too long to accept the connection"),
    ("http://a.invalid", {"HTTP_PROXY": CLOSED}, None,
     "cannot connect to the proxy that the environment names: Connection refused"),
    ("https://a.invalid", {"HTTPS_PROXY": "{fake}"}, refuse,
     "the proxy that the environment names does not lead to a.invalid"),
    ("{fake}", {}, say_nothing, "{host} closed the connection without an answer"),
    ("{fake}", {}, say_no_http, "{host} sent what cannot be read as HTTP/1.1"),
    ("{fake}", {}, say_status_99, "{host} sent what cannot be read as HTTP/1.1"),
])
async def test_a_server_that_does_not_answer_is_an_error_for_the_client_and_a_failed_request(
    to: str, environment: dict[str, str], answer: Any, problem: str, fake: Fake, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connect = asyncio.selector_events.BaseSelectorEventLoop.sock_connect

    async def connect_to_all_but_one(loop: Any, sock: Any, address: Any) -> None:
        if address[1] == 9999:
            await asyncio.sleep(60)
        await connect(loop, sock, address)

    monkeypatch.setattr("asyncio.selector_events.BaseSelectorEventLoop.sock_connect", connect_to_all_but_one)
    monkeypatch.setattr("inspector.live.proxy.CONNECT_SECONDS", 0.2)
    for name, value in environment.items():
        monkeypatch.setenv(name, value.format(fake=fake.url))
    fake.answers = [answer]
    async with proxied(to.format(fake=fake.url), file := tmp_path / "a.jsonl") as url, client() as http:
        got = await http.post(f"{url}/v1/chat/completions", json=ASKED)
    words = problem.format(host=fake.url.removeprefix("http://"))
    assert (got.status_code, got.json()["error"]["message"]) == (502, f"inspector record: {words}")
    (exchange,) = recorded(file)
    assert exchange.response.transport_end in (TransportEnd.RESET, TransportEnd.TIMEOUT)
    assert exchange.response.broken_connection == words
    assert exchange.body == b""


async def test_a_server_without_tls_is_told_as_one(tmp_path: Path) -> None:
    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 X\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        to = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with proxied(to, tmp_path / "a.jsonl") as url, client() as http:
            got = await http.post(f"{url}/v1/chat/completions", json=ASKED)
    said = got.json()["error"]["message"]
    assert said.startswith(f"inspector record: cannot connect to {to[8:]}: ")
    assert "SSL" in said


@pytest.mark.parametrize(("coding", "body", "meant"), [
    ("gzip", gzip.compress(json.dumps(ASKED).encode(), mtime=0), ASKED),
    ("zstd", bytes.fromhex("28b52ffd0458110000") + b"{}" + bytes.fromhex("d194f27a"), {}),  # printf {} | zstd
], ids=("gzip", "zstd"))
async def test_a_coded_request_is_passed_on_as_it_is_and_recorded_in_plain(
    coding: str, body: bytes, meant: Any, fake: Fake, tmp_path: Path,
) -> None:
    fake.answers = [lambda peer: peer.whole(200, ANSWER)]
    async with proxied(fake.url, file := tmp_path / "a.jsonl") as url, client() as http:
        await http.post(f"{url}/v1/chat/completions", content=body, headers={"content-encoding": coding})
    assert (fake.got[0].body, fake.got[0].headers["content-encoding"]) == (body, coding)
    assert fake.got[0].headers["accept-encoding"] == "identity"
    (exchange,) = recorded(file)
    assert exchange.request_json == meant


@pytest.mark.parametrize(("size", "held"), [(1 << 20, True), ((1 << 20) + 1, False)])
async def test_a_large_request_body_that_is_no_text_is_passed_on_and_not_recorded(
    size: int, held: bool, fake: Fake, tmp_path: Path,
) -> None:
    fake.answers = [lambda peer: peer.whole(200, ANSWER)]
    async with proxied(fake.url, file := tmp_path / "a.jsonl") as url, client() as http:
        await http.post(f"{url}/v1/audio/transcriptions", content=b"\xff" * size)
    assert fake.got[0].body == b"\xff" * size
    assert ('"base64"' in file.read_text()) is held


def coded(body: bytes, coding: str, announced: int | None = None) -> Callable[[Peer], None]:
    def answer(peer: Peer) -> None:
        peer.head(200, "application/json", content_encoding=coding, content_length=str(announced or len(body)))
        peer.send(body)

    return answer


SHORT_ANSWER = json.dumps(ANSWER).encode()
ZSTD = zstandard.compress(SHORT_ANSWER)


@pytest.mark.parametrize(("coding", "body", "held", "end"), [
    ("gzip", gzip.compress(SHORT_ANSWER, mtime=0), SHORT_ANSWER, TransportEnd.EOF),
    ("deflate", zlib.compress(SHORT_ANSWER), SHORT_ANSWER, TransportEnd.EOF),
    ("gzip, gzip", gzip.compress(gzip.compress(SHORT_ANSWER, mtime=0), mtime=0), SHORT_ANSWER, TransportEnd.EOF),
    ("br", brotli.compress(SHORT_ANSWER), SHORT_ANSWER, TransportEnd.EOF),
    ("zstd", ZSTD, SHORT_ANSWER, TransportEnd.EOF),
    ("utf-8", SHORT_ANSWER, SHORT_ANSWER, TransportEnd.EOF),
    ("deflate", zlib.compress(SHORT_ANSWER)[2:-4], SHORT_ANSWER, TransportEnd.EOF),  # without zlib's wrapper
    ("gzip\r\nContent-Encoding: br", brotli.compress(gzip.compress(SHORT_ANSWER, mtime=0)), SHORT_ANSWER,
     TransportEnd.EOF),
    ("identity", bytes(3000), bytes(3000), TransportEnd.EOF),
    ("compress", b"\x1f\x9d\x90", b"", TransportEnd.CUT),
    ("gzip", b"\x1f\x9d\x90", b"", TransportEnd.CUT),
    ("gzip", gzip.compress(SHORT_ANSWER, mtime=0)[:-8] + bytes(8), SHORT_ANSWER, TransportEnd.DAMAGED),
    ("gzip", gzip.compress(bytes(3000), mtime=0), bytes(1000), TransportEnd.CUT),
    ("zstd", zstandard.compress(bytes(3000)), bytes(1000), TransportEnd.CUT),
    ("", bytes(3000), bytes(3000), TransportEnd.EOF),
])
async def test_a_coding_that_nobody_wanted_is_passed_on_and_undone_for_the_recording_up_to_a_bound(
    coding: str, body: bytes, held: bytes, end: TransportEnd, fake: Fake, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An answer of 2 MB became a recording of 1.4 GB, and one in zstd an error."""
    monkeypatch.setattr("inspector.live.proxy.MOST_RECORDED", 1000)
    unpacked: list[bytes | str] = []
    monkeypatch.setattr("inspector.live.proxy.unpack", lambda *of: unpacked.append(unpack(*of)) or unpacked[-1])
    fake.answers = [coded(body, coding)]
    async with proxied(fake.url, file := tmp_path / "a.jsonl") as url, client() as http, http.stream(
            "POST", f"{url}/v1/chat/completions", json=ASKED) as got:
        assert b"".join([piece async for piece in got.aiter_raw()]) == body
        assert got.headers.get_list("content-encoding") == coding.split("\r\nContent-Encoding: ")
        assert got.headers["content-length"] == str(len(body))
    assert all(isinstance(each, str) or len(each) <= 1000 for each in unpacked)
    (exchange,) = recorded(file)
    assert exchange.response.transport_end is end
    assert exchange.body == (held if end is TransportEnd.EOF else held[: len(exchange.body)])


@pytest.mark.parametrize("size", [-5, 3])
async def test_a_coded_answer_that_breaks_off_is_recorded_as_far_as_it_came(
    size: int, fake: Fake, tmp_path: Path,
) -> None:
    body = brotli.compress(CHUNK * 900, quality=0)
    fake.answers = [coded(body[:size], "br", len(body))]
    async with proxied(fake.url, file := tmp_path / "a.jsonl") as url, client() as http:
        with pytest.raises(httpx.RemoteProtocolError):
            await http.post(f"{url}/v1/chat/completions", json=ASKED)
    (exchange,) = recorded(file)
    assert exchange.response.transport_end is TransportEnd.RESET
    assert bool(exchange.body) is (size < 0)  # nothing can be unpacked from its first bytes
    assert (CHUNK * 900).startswith(exchange.body)


async def test_header_values_in_utf_8_and_long_ones_are_passed_on(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [lambda peer: peer.whole(200, ANSWER, x_city="Zürich")]
    async with proxied(fake.url, file := tmp_path / "a.jsonl") as url, client() as http:
        got = await http.post(f"{url}/v1/chat/completions?q={'a' * 20_000}", json=ASKED, headers={
            b"x-city": "Zürich".encode(), b"x-long": b"b" * 20_000})
    assert fake.got[0].headers["x-city"] == "Zürich"
    assert fake.got[0].headers["x-long"] == "b" * 20_000
    assert dict(got.headers.raw)[b"x-city"] == "Zürich".encode()
    (exchange,) = recorded(file)
    assert dict(exchange.request_headers)["x-city"] == "Zürich"


async def test_a_status_of_no_class_is_passed_on_and_read_as_a_failure(fake: Fake, tmp_path: Path) -> None:
    """RFC 9110 section 15: a client treats 600 to 999 as a server's error."""
    fake.answers = [lambda peer: peer.whole(999, ANSWER)]
    async with proxied(fake.url, file := tmp_path / "a.jsonl") as url, client() as http:
        assert (await http.post(f"{url}/v1/chat/completions", json=ASKED)).status_code == 999
    (exchange,) = recorded(file)
    assert exchange.response.stop_reason.normalized is Stop.ERROR


async def test_a_full_disk_ends_the_recording_and_not_the_agent(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(SessionWriter, "append_bytes", fail)
    fake.answers = [lambda peer: peer.whole(200, ANSWER)]
    async with proxied(fake.url, file := tmp_path / "a.jsonl") as url, client() as http:
        for _ in range(2):
            got = await http.post(f"{url}/v1/chat/completions", json=ASKED)
            assert got.json() == ANSWER
        (exchange,) = recorded(file)
    assert exchange.response.transport_end is TransportEnd.CUT
    assert exchange.response.stop_reason.detail == "recording_cut"  # and not under way, though the recorder still runs


# -- what is not passed on -------------------------------------------------------------------------------------------

OF_ONE_CONNECTION = {
    "connection": "x-own", "x-own": "1", "keep-alive": "timeout=5", "proxy-authenticate": "Basic", "te": "trailers",
    "proxy-authorization": "Basic eDp5", "proxy-connection": "keep-alive", "trailer": "x-sum", "upgrade": "h2c"}


async def test_what_is_about_one_connection_is_not_passed_on(fake: Fake, tmp_path: Path) -> None:
    """RFC 9110, section 7.6.1: such headers, and those that `Connection` names."""
    async def pieces() -> AsyncIterator[bytes]:
        yield json.dumps(ASKED).encode()

    fake.answers = [lambda peer: peer.whole(200, ANSWER, **OF_ONE_CONNECTION, x_kept="1")]
    async with proxied(fake.url, tmp_path / "a.jsonl") as url, client() as http:
        got = await http.post(f"{url}/v1/chat/completions", content=pieces(),
                              headers={**OF_ONE_CONNECTION, "x-kept": "1"})
    assert got.request.headers["transfer-encoding"] == "chunked"
    for passed_on in (fake.got[0].headers, dict(got.headers)):
        assert passed_on["x-kept"] == "1"
        assert "x-own" not in passed_on.pop("connection", "")
        assert not {*passed_on} & {*OF_ONE_CONNECTION}
    assert "transfer-encoding" not in fake.got[0].headers, "each side frames its bodies itself"
    assert (fake.got[0].json, got.json()) == (ASKED, ANSWER)


async def test_what_the_proxy_sets_itself_replaces_what_the_client_sent(fake: Fake, tmp_path: Path) -> None:
    """The client names the proxy, codings that a recording could not be read in, and a pause that the server, which
    knows nothing of it, would never end."""
    fake.answers = [lambda peer: peer.whole(200, ANSWER)]
    async with proxied(fake.url, tmp_path / "a.jsonl") as url, client() as http:
        got = await http.post(f"{url}/v1/chat/completions", json=ASKED, headers={
            "accept-encoding": "br, gzip", "expect": "100-continue"})
    sent = fake.got[0].headers
    assert (sent["host"], sent["accept-encoding"]) == (fake.url.removeprefix("http://"), "identity")
    assert "expect" not in sent
    assert (sent["content-length"], fake.got[0].json) == (got.request.headers["content-length"], ASKED)
    assert got.json() == ANSWER


async def test_credentials_reach_the_provider_and_no_file(fake: Fake, tmp_path: Path) -> None:
    echo = {"error": {"message": f"no account has the key {KEY}"}}
    fake.answers = [lambda peer: peer.whole(401, echo, set_cookie=f"session={KEY}")]
    async with proxied(fake.url, file := tmp_path / "a.jsonl") as url, client() as http:
        got = await http.post(f"{url}/v1/chat/completions?key={KEY}", json={**ASKED, "user": KEY},
                              headers={"authorization": f"Bearer {KEY}", "x-api-key": KEY})
        async with client() as other:
            again = await other.post(f"{url}/v1/chat/completions", json=ASKED)
    assert got.json() == echo
    assert fake.got[0].headers["authorization"] == f"Bearer {KEY}"
    assert f"key={KEY}" in fake.got[0].line
    assert "cookie" not in fake.got[1].headers
    assert again.status_code == 401
    written = file.read_text()
    assert KEY not in written
    assert KEY[8:] not in written


async def test_the_names_in_a_signature_of_aws_are_not_masked_in_the_frames_of_its_answer(
    provider: Provider, tmp_path: Path,
) -> None:
    signature = (f"AWS4-HMAC-SHA256 Credential={KEY}/20260101/us-east-1/bedrock/aws4_request, "
                 "SignedHeaders=content-type;host;x-amz-date, Signature=5f4dcc3b5aa765d61d8327deb882cf99")
    asked = {"messages": [{"role": "user", "content": [{"text": "hi"}]}], "inferenceConfig": {"maxTokens": 400}}
    async with proxied(provider.url, file := tmp_path / "a.jsonl") as url, client() as http:
        got = await http.post(f"{url}/model/text/converse-stream", json=asked, headers={
            "authorization": signature, "x-amz-date": "20260101T000000Z"})
    (exchange,) = recorded(file)
    assert b":content-type" in got.content
    assert exchange.body == got.content
    assert KEY not in file.read_text()


async def test_a_password_is_masked_where_an_answer_repeats_it_without_the_users_name(
    fake: Fake, tmp_path: Path,
) -> None:
    fake.answers = [lambda peer: peer.whole(401, {"error": f"wrong: {KEY[8:]}"}, x_user="alexandra")]
    async with proxied(fake.url, file := tmp_path / "a.jsonl") as url, client() as http:
        await http.post(f"{url}/v1/chat/completions", json=ASKED, auth=("alexandra", KEY[8:]))
    assert KEY[8:] not in file.read_text()
    assert "alexandra" in file.read_text()


async def test_credentials_of_any_header_are_masked_in_bodies_and_a_cookies_name_is_not(
    fake: Fake, tmp_path: Path,
) -> None:
    form = b"--x\r\n\r\n%s\r\n--x\r\n\r\n\xff\xfe\x00\r\n--x--\r\n" % KEY[8:].encode()
    fake.answers = [lambda peer: peer.whole(200, {"error": f"{KEY[8:]}, {KEY[9:]}"}),
                    lambda peer: peer.whole(200, {"error": f"choices of {KEY[8:]}"})]
    async with proxied(fake.url, file := tmp_path / "a.jsonl") as url, client() as http:
        await http.post(f"{url}/v1/files?pwd={KEY[9:]}", content=form, headers={"x-password": KEY[8:]})
        await http.post(f"{url}/v1/files", json={KEY[8:]: 1}, headers={"cookie": f"messages={KEY[8:]}; choices=1"})
    binary, named = (json.loads(row) for row in file.read_text().splitlines() if '"type": "request"' in row)
    assert base64.b64decode(binary["base64"]) == form.replace(KEY[8:].encode(), b"*" * len(KEY[8:]))
    assert named["body"] == {"*" * len(KEY[8:]): 1}
    assert KEY[9:] not in file.read_text()
    assert "choices of" in file.read_text()


@pytest.mark.parametrize(("path", "headers", "status"), [
    ("/example.org/v1/chat/completions", {}, 404),
    ("/v1/chat/completions", {}, 404),
    ("{own}/v1/chat/completions", {"host": "evil.example"}, 421),
    ("{own}/v1/chat/completions", {"origin": "https://evil.example"}, 403),
    ("{own}/v1/chat/completions", {"sec-fetch-site": "cross-site"}, 403),
    ("{own}/v1/responses", {"upgrade": "websocket", "connection": "upgrade"}, 426),
])
async def test_what_is_refused_reaches_no_server(
    path: str, headers: dict[str, str], status: int, fake: Fake, tmp_path: Path,
) -> None:
    async with proxied(fake.url, file := tmp_path / "a.jsonl") as url, client() as http:
        base, own = url.rpartition("/")[0], url.rpartition("/")[2]
        got = await http.post(base + path.format(own=f"/{own}"), json=ASKED, headers=headers)
    assert got.status_code == status
    assert got.json()["error"]["type"] == "recording_proxy"
    assert fake.got == []
    assert recorded(file) == ()


async def test_redirects_are_left_to_the_client(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [lambda peer: peer.whole(307, {}, location="http://127.0.0.1:9/elsewhere")]
    async with proxied(fake.url, tmp_path / "a.jsonl") as url, client() as http:
        got = await http.post(f"{url}/v1/chat/completions", json=ASKED)
    assert (got.status_code, got.headers["location"]) == (307, "http://127.0.0.1:9/elsewhere")


@pytest.mark.parametrize(("environment", "asked"), [
    ({"HTTP_PROXY": "http://{host}"}, True), ({"HTTP_PROXY": "{host}"}, True), ({"ALL_PROXY": "http://{host}"}, True),
    ({"HTTP_PROXY": "http://{host}", "NO_PROXY": "router.invalid:8080"}, False),
])
async def test_the_proxy_of_the_environment_is_used(
    environment: dict[str, str], asked: bool, fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value.format(host=fake.url.removeprefix("http://")))
    fake.answers = [lambda peer: peer.whole(200, ANSWER)]
    async with proxied("http://router.invalid:8080", tmp_path / "a.jsonl") as url, client() as http:
        got = await http.post(f"{url}/v1/chat/completions", json=ASKED)
    assert got.status_code == (200 if asked else 502)
    lines = [each.line for each in fake.got]
    assert lines == ["POST http://router.invalid:8080/v1/chat/completions HTTP/1.1"] * asked


# -- addresses -------------------------------------------------------------------------------------------------------


def test_without_an_address_each_variable_leads_to_its_own_provider() -> None:
    asked = upstreams(None, {})
    assert asked.variables("http://x") == {
        "OPENAI_BASE_URL": "http://x/api.openai.com/v1", "OPENAI_API_BASE": "http://x/api.openai.com/v1",
        "ANTHROPIC_BASE_URL": "http://x/api.anthropic.com", "ANTHROPIC_API_BASE": "http://x/api.anthropic.com",
        "GOOGLE_GEMINI_BASE_URL": "http://x/generativelanguage.googleapis.com",
        "OLLAMA_HOST": "http://x/127.0.0.1:11434", "CO_API_URL": "http://x/api.cohere.com",
    }
    assert asked.origins["api.openai.com"] == "https://api.openai.com"
    assert asked.origins["127.0.0.1:11434"] == "http://127.0.0.1:11434"


def test_an_address_in_the_environment_is_asked_in_place_of_the_providers_own() -> None:
    asked = upstreams(None, {"OPENAI_BASE_URL": "https://router.example/api/v1/", "OLLAMA_HOST": "box:11434"})
    named = asked.variables("http://x")
    assert named["OPENAI_BASE_URL"] == named["OPENAI_API_BASE"] == "http://x/router.example/api/v1"
    assert "api.openai.com" not in asked.origins  # the router's key would go there
    assert named["OLLAMA_HOST"] == "http://x/box:11434"
    assert asked.origins["box:11434"] == "http://box:11434"


def test_one_address_holds_for_all_variables_with_and_without_the_version() -> None:
    asked = upstreams("https://router.example/api/v1", {"OPENAI_BASE_URL": "https://other.example"})
    assert set(asked.origins.values()) == {"https://router.example"}
    assert {name: asked.paths[name] for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL")} == {
        "OPENAI_BASE_URL": "/router.example/api/v1", "ANTHROPIC_BASE_URL": "/router.example/api"}


@pytest.mark.parametrize("to", ["router.example", "ftp://router.example", "http://", "http://a:b@router.example",
                                "http://router.example?x=1", "http://router.example:0", "http://[x"])
def test_an_address_that_is_no_base_url_is_refused(to: str) -> None:
    with pytest.raises(CallerError, match="--to: expected a base URL"):
        upstreams(to, {})


def test_one_host_has_one_scheme() -> None:
    with pytest.raises(CallerError, match=r"one scheme for router\.example"):
        upstreams(None, {"OPENAI_BASE_URL": "http://router.example", "ANTHROPIC_BASE_URL": "https://router.example"})


@pytest.mark.parametrize(("path", "sent"), [
    ("/messages", "/v1/messages"), ("/messages?beta=true", "/v1/messages?beta=true"),
    ("/anthropic/messages", "/anthropic/v1/messages"), ("/v1/messages", "/v1/messages"),
    ("/v1/threads/t/messages", "/v1/threads/t/messages"), ("/v1/a%2Fb%20c", "/v1/a%2Fb%20c"),
])
async def test_a_path_is_passed_on_as_it_is_but_for_a_missing_version(
    path: str, sent: str, fake: Fake, tmp_path: Path,
) -> None:
    fake.answers = [lambda peer: peer.whole(200, {})]
    async with proxied(fake.url, tmp_path / "a.jsonl") as url, client() as http:
        await http.post(url + path, json=ASKED)
    assert fake.got[0].line == f"POST {sent} HTTP/1.1"


# -- the command -----------------------------------------------------------------------------------------------------

AGENT = """
import json, os, sys, urllib.request
request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions",
                                 json.dumps({"model": "text", "messages": [{"role": "user", "content": "hi"}],
                                             "max_tokens": 400}).encode(), {"content-type": "application/json"})
print(urllib.request.urlopen(request).status, os.environ["NO_PROXY"], os.environ["no_proxy"], sys.argv[1:])
sys.exit(7)
"""


def test_an_agent_is_run_and_its_exit_code_returned(provider: Provider, tmp_path: Path) -> None:
    file = tmp_path / "a b.jsonl"
    words = ("--to", f"{provider.url}/v1", "--record", file, sys.executable, "-c", AGENT, "--to", "x")
    ran = subprocess.run([sys.executable, "-m", "inspector", "record", *words], text=True, timeout=60,
                         capture_output=True, check=False)
    assert (ran.returncode, ran.stdout) == (7, "200 127.0.0.1,::1 127.0.0.1,::1 ['--to', 'x']\n")
    assert ran.stderr == f"inspector: 1 request recorded; open it with: inspector '{file}'\n"
    assert _outcome(1, None, "-x.jsonl").endswith(" inspector ./-x.jsonl")  # a path, and no option
    (exchange,) = recorded(file)
    assert exchange.request is not None
    assert exchange.request.model == "text"


def test_without_a_name_the_recording_is_where_the_table_finds_it(
    provider: Provider, inspector: Inspector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = {"LOOP_INSPECTOR_DATA": str(tmp_path / "data")}
    monkeypatch.setenv(*next(iter(data.items())))
    ran = inspector("record", "--to", f"{provider.url}/v1", sys.executable, "-c", AGENT)
    assert ran.code == 7
    (found,) = transcripts({"HOME": str(tmp_path), **data})
    assert found.path in ran.err
    assert found.path.endswith(f"-{Path(sys.executable).name}.jsonl")


def test_a_script_names_its_recording_and_no_other_argument_does(
    provider: Provider, inspector: Inspector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "notes.py").touch()
    monkeypatch.chdir(tmp_path)
    for script in ("my agent.py", "a.js", "a.mjs", "a.cjs", "a.ts", "a.sh"):
        (tmp_path / script).write_text(AGENT)
        monkeypatch.setenv("LOOP_INSPECTOR_DATA", str(tmp_path / f"data {script}"))
        ran = inspector("record", "--to", f"{provider.url}/v1", sys.executable, "-I", "-S", tmp_path / script,
                        "notes.py", KEY, "hunter2.py")
        assert ran.code == 7, (script, ran.err)
        (file,) = (tmp_path / f"data {script}" / "recordings").iterdir()
        assert file.name.endswith(f"-{Path(sys.executable).name}-{script}.jsonl"), script
        header = file.read_text().partition("\n")[0]
        assert json.loads(header)["title"] == f"{Path(sys.executable).name} {script}", script
        assert not any(word in header + file.name for word in (KEY, "notes", "hunter2")), script


def test_an_agent_that_sends_nothing_leaves_no_file(inspector: Inspector, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    ran = inspector("record", "--record", file, "true")
    assert (ran.code, file.exists()) == (0, False)
    assert "no request came to the proxy" in ran.err


def test_a_recording_that_stopped_is_said_at_each_request_and_fails_unless_an_agent_ran(
    inspector: Inspector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fill_disk(command: Any, listen: Any, asked: Any, recorder: Any, say: Any, show: Any) -> Traffic:
        say("POST one")
        recorder.failure = "the disk is full"
        say("POST two")
        return Traffic(2, 0)

    monkeypatch.setattr(proxy, "record", fill_disk)
    ran = inspector("record", "--record", tmp_path / "a.jsonl")
    assert ran.code == 2
    assert ran.err.splitlines() == [
        f"inspector: {line}" for line in ("POST one", "POST two", "the disk is full", "the disk is full")]
    assert inspector("record", "--record", tmp_path / "b.jsonl", "agent").code == 0


def test_an_agent_may_delete_its_recording(inspector: Inspector, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    ran = inspector("record", "--record", file, "sh", "-c", f'rm "{file}"; exit 3')
    assert (ran.code, file.exists(), ran.err.count("\n")) == (3, False, 1)


@pytest.mark.parametrize("proxy", ["socks5://name:hunter2@127.0.0.1:9", "http://[x", "http://:9", "name:hunter2@h:0"])
def test_a_proxy_of_the_environment_that_cannot_be_used_is_told_without_its_password(
    proxy: str, inspector: Inspector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    ran = inspector("record", "--record", file := tmp_path / "a.jsonl", "true")
    assert ran.code == 2
    assert ran.err == ("inspector: HTTPS_PROXY or ALL_PROXY: expected http://HOST…; SOCKS cannot be used\n")
    assert not file.exists()


def test_a_program_that_cannot_start_and_a_misplaced_option_are_told(inspector: Inspector, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    failed = inspector("record", "--record", file, "no-such-program")
    assert (failed.code, failed.err) == (2, "inspector: no-such-program: No such file or directory\n")
    assert not file.exists()
    assert "no option --nope" in inspector("record", "--nope", "agent").err
    assert "expected an address of this machine alone" in inspector("record", "--listen", "0.0.0.0:0", "agent").err


def test_without_an_agent_it_records_until_it_is_interrupted(provider: Provider, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    words = [sys.executable, "-m", "inspector", "record", "--to", f"{provider.url}/v1", "--record", str(file)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert "until Ctrl-C" in running.stderr.readline()
        url = running.stdout.readline().removeprefix("export OPENAI_BASE_URL=").strip()
        asked = {"model": "text", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 400}
        assert httpx.post(f"{url}/chat/completions", json=asked, trust_env=False).status_code == 200
        running.send_signal(signal.SIGINT)
        said = running.stderr.read()
    assert running.returncode == 0
    assert f"POST {provider.url}/v1/chat/completions: 200, " in said
    assert len(recorded(file)) == 1
