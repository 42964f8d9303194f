"""Clients that mean no good, or no HTTP: the server goes on answering, and says so in single lines, sparingly."""

from __future__ import annotations

import asyncio
import errno
import re
import resource
import socket
import ssl
import sys
from contextlib import AbstractAsyncContextManager, ExitStack, suppress
from pathlib import Path

import pytest
from aiohttp import ClientSession, CookieJar
from aiohttp.http_exceptions import BadHttpMessage

from inspector.commands import serve
from inspector.provider.listener import Certificate, ProblemLog, listening, load_certificate
from inspector.web import app_server
from inspector.web.browser import Entrance
from tests.scenes.web import ECHO, SAMPLE, TOKEN, Program, next_message, program

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of another process are set as on Linux")


def make_server(said: list[str], encrypted: bool = False) -> app_server.AppServer:
    entrance = Entrance(TOKEN, "the-cookie", encrypted=encrypted)
    return app_server.AppServer([sys.executable, "-c", ECHO], entrance, title="x", most=2, tell=said.append,
                                environment={}, idle=0.0)


def listens(at: app_server.AppServer, patience: float = 10, certificate: Certificate | None = None
            ) -> AbstractAsyncContextManager[int]:
    return listening(at.application(), at.trouble, "127.0.0.1", 0, patience=patience, grace=1, certificate=certificate)


async def answers(origin: str, token: str = TOKEN, **more: object) -> int:
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session, \
            session.get(f"{origin}/?token={token}", **more) as page:
        return page.status


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"])
async def test_a_head_that_does_not_come_in_time_ends_the_connection(sent: bytes) -> None:
    said: list[str] = []
    async with listens(make_server(said), patience=0.3) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        assert await asyncio.wait_for(reader.read(), 30) == b""
        writer.close()
        assert await answers(f"http://127.0.0.1:{port}") == 200
    assert said == []


async def test_a_head_that_drips_ends_the_connection_too() -> None:
    async with listens(make_server([]), patience=0.3) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)

        async def drip() -> None:
            writer.write(b"GET / HTTP/1.1\r\n")
            while not writer.is_closing():
                writer.write(b"X-A: b\r\n")
                await asyncio.sleep(0.02)

        dripping = asyncio.create_task(drip())
        with suppress(ConnectionError):  # what was still sent met nobody
            assert await asyncio.wait_for(reader.read(), 30) == b""
        dripping.cancel()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


def test_a_head_has_ten_seconds() -> None:
    assert app_server.HEAD_WAIT == 10


async def test_what_is_no_request_is_one_line_and_the_next_ones_are_counted() -> None:
    said: list[str] = []
    at = make_server(said)
    now = [0.0]
    at.trouble = ProblemLog(said.append, lambda: now[0])

    async def send_malformed() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n")
        assert re.match(rb"HTTP/1.[01] 400 ", await asyncio.wait_for(reader.read(), 30))
        writer.close()

    async with listens(at) as port:
        for _ in range(4):
            await send_malformed()
        assert len(said) == 1
        assert said[0].startswith("a malformed request was refused: ")
        now[0] = 60
        await send_malformed()
    assert len(said) == 2
    assert said[1].endswith("(3 more since the last line)")


async def test_a_client_that_speaks_only_http_2_is_told_of() -> None:
    said: list[str] = []
    async with listens(make_server(said)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        await asyncio.wait_for(reader.read(), 30)
        writer.close()
    assert said == ["a client was refused: it speaks only HTTP/2, and this server only HTTP/1.1"]


def test_each_kind_of_trouble_is_told_once_a_minute() -> None:
    said: list[str] = []
    now = [100.0]
    tell = ProblemLog(said.append, lambda: now[0])
    for _ in range(128):
        tell.handle_loop_exception(None, {"message": "socket.accept() out of system resource",
                                "exception": OSError(errno.EMFILE, "Too many open files")})
    tell.log_exception(BadHttpMessage("x"), "")
    tell.log_exception(ValueError("one\nof two lines" + "x" * 500), "")
    assert len(said) == 3
    assert said[0].startswith("no room for a further connection or file: Too many open files")
    assert all("\n" not in line and len(line) <= 200 for line in said)
    now[0] = 159.9
    tell.log_exception(OSError(errno.ENFILE, "Too many"), "")
    assert len(said) == 3
    now[0] = 160
    tell.log_exception(OSError(errno.ENFILE, "Too many"), "")
    assert said[3].endswith("(128 more since the last line)")


# -- the program ------------------------------------------------------------------------------------------------------


def connect(served: Program, count: int, stack: ExitStack) -> None:
    port = int(served.origin.rpartition(":")[2])
    for _ in range(count):
        each = stack.enter_context(socket.create_connection(("127.0.0.1", port), 30))
        each.sendall(b"GET / HTTP/1.1\r\n")


async def status_of(served: Program) -> int:
    return await answers(served.origin, served.url.rpartition("=")[2])


async def test_500_half_open_sockets_leave_it_answering() -> None:
    with program(SAMPLE) as served:
        with ExitStack() as stack:
            connect(served, 500, stack)
            assert await status_of(served) == 200
        assert await status_of(served) == 200
        served.process.terminate()
        code, said = served.outcome()
    assert (code, said.count("\n")) == (0, 1)


@LINUX
async def test_without_descriptors_it_waits_and_then_answers() -> None:
    with program(SAMPLE) as served:
        resource.prlimit(served.process.pid, resource.RLIMIT_NOFILE, (48, 48))
        assert served.process.stderr is not None
        begun = await asyncio.to_thread(served.process.stderr.readline)
        assert "serving" in begun
        with ExitStack() as stack:
            connect(served, 100, stack)
            line = await asyncio.wait_for(asyncio.to_thread(served.process.stderr.readline), 30)
            assert line.startswith("inspector: no room for a further connection or file: Too many open files")
        assert await asyncio.wait_for(status_of(served), 30) == 200
        served.process.terminate()
        code, said = served.outcome()
    assert (code, said) == (0, "")


async def test_rubbish_is_one_line_of_the_program() -> None:
    with program(SAMPLE) as served:
        for _ in range(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(served.origin.rpartition(":")[2]))
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n")
            await asyncio.wait_for(reader.read(), 30)
            writer.close()
        served.process.terminate()
        _, said = served.outcome()
    assert [line.partition(":")[0] for line in said.splitlines()] == ["inspector", "inspector"]
    assert "malformed request" in said.splitlines()[1]


# -- certificates -----------------------------------------------------------------------------------------------------


async def test_with_a_certificate_all_of_it_is_encrypted(certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    context = load_certificate(str(cert), str(key))
    trusts = ssl.create_default_context(cafile=str(cert))
    async with listens(make_server([], encrypted=True), patience=0.5, certificate=context) as port:
        origin = f"https://127.0.0.1:{port}"
        async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
            async with session.get(f"{origin}/?token={TOKEN}", ssl=trusts, allow_redirects=False) as answer:
                assert "Secure" in answer.headers["Set-Cookie"]
            async with session.ws_connect(f"{origin}/ws/dark", ssl=trusts, origin=origin) as tab:
                assert (await next_message(tab))["argv"] == []
            with pytest.raises(Exception, match="403"):
                await session.ws_connect(f"{origin}/ws/dark", ssl=trusts, origin=origin.replace("https", "http"))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)  # a handshake that never begins
        assert await asyncio.wait_for(reader.read(), 30) == b""
        writer.close()


def test_a_certificate_that_is_none_is_told(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    from loop_core.errors import CallerError

    cert, _ = certificate
    (tmp_path / "x.pem").write_text("x")
    for given, why in ((tmp_path / "x.pem", "no certificate"), (cert, "no certificate"), (tmp_path / "no", "No such")):
        with pytest.raises(CallerError, match=why):
            load_certificate(str(given), None)


@pytest.mark.parametrize("encrypted", [True, False])
def test_without_a_certificate_that_is_said_in_red(
    encrypted: bool, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines: list[tuple[str, str | None]] = []

    async def run(at: object, host: str, port: int, ready: object, context: object, renewed: object) -> None:
        assert callable(ready)
        ready(1)

    monkeypatch.setattr(app_server, "run", run)
    monkeypatch.setattr(serve.click, "secho", lambda text, fg=None, **_: lines.append((text, fg)))
    context = load_certificate(*map(str, certificate)) if encrypted else None
    serve._serve([], [], title="x", port=0, host="0.0.0.0", local=False, sessions=1, environment={},
                 certificate=context, idle=0, seconds=1)
    assert capsys.readouterr().out.startswith("https://" if encrypted else "http://")
    assert [colour for _, colour in lines] == ([] if encrypted else ["red"])
    assert encrypted or "NO CERTIFICATE" in lines[0][0]


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
def test_whatever_leaves_no_room_is_told_as_that(number: int) -> None:
    said: list[str] = []
    tell = ProblemLog(said.append, lambda: 0.0)
    tell.log_exception(OSError(number, "full"), "")
    tell.log_exception(OSError(errno.EIO, "broken"), "")
    assert said == ["no room for a further connection or file: full; it goes on when one ends",
                    "a request could not be answered: OSError: [Errno 5] broken"]
