"""`inspector serve` as a program with the real app: what it refuses, what a tab shows, how it ends."""

import asyncio
import re
import signal
import socket
import sys
from pathlib import Path

import pytest
from aiohttp import ClientSession, ClientWebSocketResponse, CookieJar

from inspector import cli
from inspector.commands import serve
from inspector.config import files
from inspector.web.app_server import SERVER_ENDED
from tests.scenes.web import SAMPLE, Program, program, wait_for_end, words

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked up as Linux lists them")


def refusal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What is said where nothing is served."""
    monkeypatch.setattr(sys, "argv", ["inspector", "serve", *map(str, arguments)])
    monkeypatch.setattr(serve, "_serve", lambda *_, **__: pytest.fail("it served"))
    with pytest.raises(SystemExit) as end:
        cli.run()
    said = capsys.readouterr()
    assert (end.value.code, said.out) == (2, "")
    return said.err


def test_bad_paths_are_told_before_anything_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missing, empty = tmp_path / "missing.har", tmp_path / "empty.jsonl"
    empty.write_text("")
    said = refusal(monkeypatch, capsys, missing)
    assert said == f"inspector: {missing}: cannot be read: No such file or directory\n"
    assert refusal(monkeypatch, capsys, empty).startswith(f"inspector: {empty}: ")
    assert refusal(monkeypatch, capsys, "sample:99").startswith("inspector: ")
    assert "profile" in refusal(monkeypatch, capsys, SAMPLE, "--profile", "nobody")


@pytest.mark.parametrize(("arguments", "says"), [
    (["-"], "standard input cannot be given to every tab; name a file"),
    (["--host", "0.0.0.0"], "--host 0.0.0.0: other machines could reach it; --expose allows that"),
    (["--host", "box.lan"], "other machines could reach it"), (["--host", "::"], "other machines could reach it"),
    (["--host", "192.168.1.7"], "other machines could reach it"), (["--sessions", "0"], "--sessions"),
    (["--port", "65536"], "--port"), (["--policy", "nobody"], "nobody"),
    (["--api", "nobody"], "unknown API 'nobody'"), (["--profile", "nobody"], "unknown profile 'nobody'"),
])
def test_bad_usage_is_one_line_that_says_what_is_wrong(
    arguments: list[str], says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert says in refusal(monkeypatch, capsys, *arguments).splitlines()[-1]


def test_a_port_in_use_and_an_address_that_is_none_are_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def serve_error(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["inspector", "serve", *arguments])
        with pytest.raises(SystemExit) as end:
            cli.run()
        told = capsys.readouterr()
        assert (end.value.code, told.out) == (2, "")
        return told.err

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert serve_error("--port", str(port)) == f"inspector: port {port} is in use; port 0 picks a free port\n"
    elsewhere = serve_error("--host", "203.0.113.77", "--expose", "--port", "0")
    assert re.fullmatch(r"inspector: cannot listen on 203\.0\.113\.77, port 0: .+\n", elsewhere)


@pytest.mark.parametrize("arguments", [[SAMPLE], [SAMPLE, "--allow-tools"], [], ["--allow-tools"]])
def test_a_tab_is_told_what_it_may_open(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, dict[str, str]] = {}
    monkeypatch.setattr(sys, "argv", ["inspector", "serve", *arguments])
    monkeypatch.setattr(serve, "_serve", lambda *_, **named: given.update(named))
    with pytest.raises(SystemExit):
        cli.run()
    told = files.bounds_of(given["environment"])
    assert told.tools is ("--allow-tools" in arguments)
    assert told.anything is (SAMPLE not in arguments)
    assert told.holds(SAMPLE)
    assert told.holds("/etc/passwd") is told.anything


# -- with the app -----------------------------------------------------------------------------------------------------


async def tab(session: ClientSession, served: Program) -> ClientWebSocketResponse:
    """What a browser does: the printed address, the page, the socket."""
    async with session.get(served.url) as page:
        assert page.status == 200
        assert "?" not in str(page.url)
    return await session.ws_connect(f"{served.origin}/ws/dark?width=120&height=40", origin=served.origin)


async def shows(socket: ClientWebSocketResponse, text: str) -> str:
    """Waits until the app has drawn a text."""
    seen = ""
    async with asyncio.timeout(90):  # an app that waits still says that it is there
        while text not in seen:
            seen += re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", (await socket.receive_bytes(timeout=60)).decode())
    return seen


async def test_the_app_is_drawn_and_hears_keys_and_a_signal_renews_the_token_of_a_tab_that_stays() -> None:
    with program(SAMPLE) as served:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43}", served.url)
        async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
            socket = await tab(session, served)
            await shows(socket, "CUT CALL RUN")  # the table of its turns, the worst first
            await socket.send_json(["stdin", "\r"])
            await shows(socket, "step 22/28")
            await socket.send_json(["stdin", " "])
            await shows(socket, "step 23/28")
            await socket.close()
        served.process.send_signal(signal.SIGUSR1)
        assert served.process.stdout is not None
        new = (await asyncio.to_thread(served.process.stdout.readline)).strip()
        assert new.partition("=")[0] == served.url.partition("=")[0]
        async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
            async with session.get(served.url) as refused:
                assert refused.status == 403
            socket = await tab(session, Program(served.process, new))
            seen = await shows(socket, "step 23/28")
            assert "CUT CALL RUN" in seen or "CUT CALL RUN" in await shows(socket, "CUT CALL RUN")
            await socket.send_json(["resize", {"width": 80, "height": 24}])
            await shows(socket, "[1Merged]")  # as a small terminal has it
            await socket.send_json(["stdin", "q"])
            await shows(socket, "raw → reason")
            await socket.send_json(["stdin", "q"])
            assert await words(socket) == []
            assert socket.close_code == 1000
        served.process.send_signal(signal.SIGINT)
        code, said = served.outcome()
    assert (code, said.count("\n")) == (0, 2), "the second line is about the new token"
    assert said.startswith("inspector: serving 01-cut-call-and-long-answer.session.jsonl")
    assert "token" in said.splitlines()[1]


@pytest.mark.parametrize(("option", "bounds"), [
    ("--idle", "from 0 to 10,000"), ("--token-hours", "above 0, up to 10,000"),
])
def test_a_time_that_is_no_number_is_refused(capsys: pytest.CaptureFixture[str], option: str, bounds: str) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["serve", "sample:01", option, "nan"])
    assert ended.value.code == 2
    assert f"invalid value for '{option}': 'nan' is not a number {bounds}" in capsys.readouterr().err


@LINUX
async def test_a_tab_that_ended_for_want_of_a_browser_is_opened_again_where_it_was() -> None:
    with program(SAMPLE, "--idle", "0.002") as served:
        async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
            socket = await tab(session, served)
            await shows(socket, "CUT CALL RUN")  # the table of its turns, the worst first
            await socket.send_json(["stdin", "\r"])
            await shows(socket, "step 22/28")
            await socket.send_json(["stdin", " "])
            await shows(socket, "step 23/28")
            (pid,) = served.tabs()
            await socket.close()
            assert await wait_for_end(pid)
            again = await tab(session, served)
            await shows(again, "step 23/28")
            assert pid not in served.tabs()
            await again.close()


@LINUX
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
async def test_every_process_ends_when_the_server_does(number: signal.Signals) -> None:
    """Asked to end, and killed: the app of a tab sees that nobody writes to it any more."""
    with program(SAMPLE) as served:
        async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
            socket = await tab(session, served)
            await shows(socket, "CUT CALL RUN")
            (pid,) = served.tabs()
            listening = asyncio.create_task(words(socket))
            served.process.send_signal(number)
            code, said = await asyncio.to_thread(served.outcome)
            assert await wait_for_end(pid)
            assert await listening == ([] if number == signal.SIGKILL else [SERVER_ENDED])
        assert code == (-signal.SIGKILL if number == signal.SIGKILL else 0)
        assert "Traceback" not in said


async def test_what_the_app_cannot_read_is_said_on_the_page(tmp_path: Path) -> None:
    """A file that takes a moment is not read before."""
    path = tmp_path / "large.jsonl"
    path.write_text("no session\n" * 500_000)
    with program(str(path)) as served:
        async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
            (said,) = await words(await tab(session, served))
        assert said.startswith(f"inspector: {path}: ")
        served.process.send_signal(signal.SIGTERM)
        assert served.outcome()[1].splitlines()[1:] == [said]
