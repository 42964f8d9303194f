"""`inspector provider` in a process of its own: what it says, how it ends, and `inspector run` against it."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from inspector.cli import main
from inspector.provider import all_stories, reading
from inspector.provider.faults import FAULTS
from inspector.provider.hosts import address
from inspector.provider.reading import parse_story
from inspector.provider.server import greeting
from loop_core.errors import CallerError
from loop_core.formats import FORMATS
from loop_core.turn.seam import ANCHOR_CHARS
from tests.scenes.command import Output

ENVIRONMENT = {**os.environ, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"}


@contextmanager
def command(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """The command in a process: the process, its address, and what it has said until it listens."""
    with subprocess.Popen([sys.executable, "-m", "inspector", "provider", "--listen", "127.0.0.1:0", *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        try:
            assert process.stdout is not None
            said = ""
            for line in process.stdout:
                said += line
                if "Ctrl-C" in line:
                    break
            url = re.search(r"listens on (http://127\.0\.0\.1:\d+)", said)
            assert url, said
            yield process, url[1], said
        finally:
            process.kill()


def test_a_turn_of_inspector_run_is_cut_twice_and_exact_in_every_format(tmp_path: Path) -> None:
    text = all_stories()["cut-twice"].answers[0].text
    with command("cut-twice", "--pace", "0") as (process, url, said):
        assert "Scenario, whatever the model:" in said
        for api in FORMATS:
            base = f"{url}/v1" if api.startswith("openai") else url
            assert re.search(rf"{api}, as {api}/\w+\n    \S.*{re.escape(base)}", said), api
            done = CliRunner().invoke(main, [
                "run", "--api", api, "--model", "m", "--base-url", base, "--prompt", "Why?", "--set", "max_tokens=100",
                "--record", str(tmp_path / f"{api}.jsonl"), "--json"])
            assert done.exit_code == 0, (api, done.output)
            (turn,) = json.loads(done.stdout)["turns"]
            assert turn["terminal_reason"] == "completed"
            assert turn["merged_text"] == text, api
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, "")
    lines = out.splitlines()
    assert len(lines) == 3 * len(FORMATS)
    last = math.ceil((len(text) - 14 * 4 - (17 * 4 - ANCHOR_CHARS) + ANCHOR_CHARS) / 4)
    assert lines[:3] == [  # each continuation quotes the last words first
        "openai_chat: cut-twice answer 0 segment 0 (first): 14 of 100 tokens, cut; cut",
        "openai_chat: cut-twice answer 0 segment 1 (continuation): 17 of 100 tokens, cut; cut",
        f"openai_chat: cut-twice answer 0 segment 2 (continuation): {last} of 100 tokens, ended",
    ]


def test_a_call_is_cut_held_repaired_and_run(tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(CliRunner().invoke(main, ["provider", "--tools", "cut-call"]).stdout)
    with command() as (process, url, said):
        assert all(f"    {name} " in said for name in all_stories())
        done = CliRunner().invoke(main, [
            "run", "--api", "anthropic_messages", "--model", "cut-call", "--base-url", url, "--tools", str(tools),
            "--prompt", "Write it.", "--set", "max_tokens=100", "--record", str(tmp_path / "s.jsonl")])
        assert done.exit_code == 0, done.output
        assert done.stdout.startswith("CALL REPAIRED")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_lists_and_the_schema_are_printed() -> None:
    listed = CliRunner().invoke(main, ["provider", "--list"]).stdout
    for name in (*all_stories(), *FAULTS):
        assert re.search(rf"^  {re.escape(name)} +\S", listed, re.MULTILINE), name
    assert CliRunner().invoke(main, ["provider", "--schema"]).stdout == reading.schema()
    (tool,) = json.loads(CliRunner().invoke(main, ["provider", "--tools", "cut-call"]).stdout)
    assert (tool["name"], tool["result"]) == ("write_file", "61 bytes written")


def test_a_scenario_in_a_fifo_that_nobody_writes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.sessions.intake.WAIT", 0.2)
    os.mkfifo(tmp_path / "f.yaml")
    with pytest.raises(CallerError, match=r"f\.yaml: cannot be read: a FIFO that nobody writes to"):
        reading.read(tmp_path / "f.yaml")


@pytest.mark.parametrize(("words", "named"), [
    (["--list", "--schema"], "--schema"), (["--list", "text"], "[SCENARIO…]"), (["--schema", "--pace", "2"], "--pace"),
    (["--tools", "call", "--listen", "127.0.0.1:0"], "--listen"),
])
def test_nothing_goes_with_an_option_that_prints_a_text(words: list[str], named: str) -> None:
    done = CliRunner().invoke(main, ["provider", *words])
    said = f"{words[0]} prints its own text: it does not go with '{named}'"
    assert (done.exit_code, said in done.stderr) == (2, True)


@pytest.mark.parametrize(("arguments", "said"), [
    (["nobody"], "no scenario is called 'nobody'"),
    (["text", "--profile", "nobody"], "no dialect is called 'nobody'"),
    (["--listen", "0.0.0.0:8765"], "expected an address of this machine alone"),
    (["--listen", "8765"], "expected HOST:PORT, such as 127.0.0.1:8765"),
    (["--listen", "127.0.0.1:" + "4" * 5_000], "expected HOST:PORT, such as 127.0.0.1:8765"),
    (["--tools", "nobody"], "no scenario is called 'nobody'"),
])
def test_what_cannot_be_used_is_one_line(arguments: list[str], said: str, inspector: Callable[..., Output]) -> None:
    done = inspector("provider", *arguments)
    assert done.code == 2
    assert done.err.startswith("inspector: ")
    assert said in done.err
    assert done.err.count("\n") == 1
    assert done.out == ""


def test_a_port_in_use_is_one_line(inspector: Callable[..., Output]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = inspector("provider", "text", "--listen", f"127.0.0.1:{port}")
    assert (done.code, done.out) == (2, "")
    assert done.err == f"inspector: port {port} is in use; port 0 picks a free port\n"


@pytest.mark.parametrize(("listen", "host", "port"), [
    ("127.0.0.1:80", "127.0.0.1", 80), ("localhost:0", "127.0.0.1", 0), ("[::1]:9", "::1", 9),
    ("127.9.9.9:1", "127.9.9.9", 1),
])
def test_addresses_of_this_machine(listen: str, host: str, port: int) -> None:
    assert address(listen) == (host, port)


@pytest.mark.parametrize("listen", [":80", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "192.168.0.1:80",
                                    "[::]:80", "example.com:80", "127.0.0.1:-1", "127.0.0.1:٣"])
def test_addresses_of_others_and_none(listen: str) -> None:
    with pytest.raises(CallerError, match=r"^--listen "):
        address(listen)


def test_what_a_scenario_says_is_no_escape_and_no_command() -> None:
    bad = parse_story(b'name: mine\nstory: "\\e[31mRED\\e]0;pwned\\a"\nprompt: "$(touch x)`id` \\e[2J"\n'
                 b"answers: [{text: x}]\n", "mine.yaml")
    said = greeting("http://127.0.0.1:1", [bad], None)
    assert "\x1b" not in said
    assert "\x07" not in said
    words = shlex.split(next(line for line in said.splitlines() if "inspector run" in line))
    assert words[words.index("--model") + 1] == "mine"
    assert words[words.index("--prompt") + 1].startswith("$(touch x)`id` ")


def test_a_pace_that_is_no_number_is_refused() -> None:
    done = CliRunner().invoke(main, ["provider", "--pace", "nan"])
    assert done.exit_code == 2
    assert "'nan' is not a number from 0 to 1,000" in done.output


def test_one_origin_is_named_on_the_command_line_and_one_only() -> None:
    done = CliRunner().invoke(main, ["provider", "--cors", "*"])
    assert isinstance(done.exception, CallerError)
    assert "expected one origin without a path" in str(done.exception)


def test_a_named_origin_a_request_that_is_none_and_a_reader_that_leaves() -> None:
    with command("text", "--cors", "https://app.example") as (process, url, _):
        asked = urllib.request.Request(f"{url}/v1/models", headers={"Origin": "https://app.example"})
        with urllib.request.urlopen(asked, timeout=20) as answer:
            assert answer.headers["access-control-allow-origin"] == "https://app.example"
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as client:
            client.sendall(b"GET /?key=sk-hidden HTTP/1.1\r\nContent-Length: -1\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.0 400 ")
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "a malformed request was refused: BadHttpMessage\n", "without its bytes"
        process.stdout.close()  # as `inspector provider … | head` does
        body = json.dumps({"model": "text", "messages": [{"role": "user", "content": "x"}]}).encode()
        for _ in range(3):
            with urllib.request.urlopen(f"{url}/v1/chat/completions", body, timeout=20) as answer:
                assert answer.status == 200
        process.send_signal(signal.SIGTERM)
        assert (process.wait(20), process.stderr.read()) == (0, "")
