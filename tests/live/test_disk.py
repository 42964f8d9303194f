"""A disk that fills up, or refuses, at any write of a run: the recording ends with one line, and the turn goes on."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inspector.config.settings import Settings
from inspector.live.headless import LiveResult, run_live
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.facts import View, view
from inspector.sessions import native, open_paths
from loop_core.client.address import Server
from loop_core.errors import CallerError
from loop_core.turn.tools import Toolbox
from loop_core.values import Stop, Tool, ToolCall
from tests.live.test_run import ROOT, chat
from tests.scenes.live import ERROR, QUICK, answer, request, streams
from tests.scenes.loopback import Fake, Peer

API = "openai_chat"


class Filling(io.RawIOBase):
    """A file on a disk that takes so many writes, half of the next one, and no more."""

    def __init__(self, path: str, takes: int) -> None:
        self.file = open(path, "ab", buffering=0)  # noqa: SIM115  (closed by close)
        self.takes, self.writes = takes, 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.file.tell()

    def write(self, data: Any) -> int:
        self.writes += 1
        if self.writes == self.takes + 1 and len(data) > 1:
            return self.file.write(bytes(data)[: len(data) // 2]) or 0  # a full disk takes what it has room for
        if self.writes > self.takes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self.file.write(bytes(data)) or 0

    def close(self) -> None:
        self.file.close()
        super().close()


def run_on(fake: Fake, path: Path, monkeypatch: pytest.MonkeyPatch, takes: int) -> tuple[LiveResult, Filling]:
    """A turn with a refusal, a call and a continuation, on such a disk."""
    made: list[Filling] = []

    def open_filling(path: str, mode: str) -> io.BufferedWriter:
        assert mode == "ab"
        made.append(Filling(path, takes))
        return io.BufferedWriter(made[-1])

    call = ToolCall("call_1", "weather", '{"city":"Oslo"}', closed=True)
    fake.got.clear()
    fake.answers = [lambda peer: peer.whole(429, ERROR, retry_after="0"),
                    streams(API, [b"".join(answer(API, "", Stop.TOOL_CALL, call))]),
                    streams(API, [b"".join(answer(API, "It is sunny, ", Stop.MAX_TOKENS))]),
                    streams(API, [b"".join(answer(API, "and warm.", Stop.END_TURN))])]
    monkeypatch.setattr(native, "open", open_filling, raising=False)
    try:
        ran = run_live(request(API, tools=(Tool("weather", {"type": "object"}),)), Server(API, fake.url), Settings(),
                       Toolbox({"weather": lambda _: "sun"}), str(path), QUICK)
    finally:
        monkeypatch.undo()
    return ran, made[0]


def opened_again(path: Path) -> View:
    return view(replay(open_case(open_paths([str(path)]))))


def shows_the_cut(seen: View) -> bool:
    """Whether it is told that the recording is cut in the last answer, or what came behind it is unknown."""
    last, notices = seen.responses[-1].exchange, " ".join(seen.inputs[0].notices)
    whole = last.response.saw_stop_reason and "the recording stopped while it ran" in notices
    rules = {noted.finding.rule for noted in seen.findings if noted.response == len(seen.responses) - 1}
    return "session.recording_cut" in rules or last.cut_after or whole


def test_a_disk_that_is_full_at_any_write(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, disk = run_on(fake, tmp_path / "whole.jsonl", monkeypatch, 10_000)
    assert (whole.terminal, whole.failure) == ("completed", None)
    count = disk.writes
    assert count > 20
    for takes in range(count):
        path = tmp_path / f"{takes}.jsonl"
        if takes == 0:
            with pytest.raises(CallerError, match=r"--record .*0\.jsonl: No space left on device"):
                run_on(fake, path, monkeypatch, takes)
            assert fake.got == [], "nothing was asked: the recording could not be begun"
            continue
        ran, disk = run_on(fake, path, monkeypatch, takes)
        if disk.writes <= takes:
            assert ran.failure is None  # its pieces came together, and it had room for all
            break
        assert (ran.terminal, ran.exit) == ("completed", 0), takes
        assert ran.replay.turns[0].steps[-1].turn.joined_answer().text == "It is sunny, and warm."
        assert ran.failure == f"{path}: the recording stopped: No space left on device", takes
        kept = path.read_bytes()
        lines = kept.count(b"\n")
        assert lines == takes, "every record that was flushed is there, and nothing after it"
        again = opened_again(path)
        assert [given.error for given in again.inputs] == [None], takes
        if again.responses:
            assert shows_the_cut(again), takes
            path.write_bytes(kept[: kept.rfind(b"\n") + 1])  # a disk that took nothing of the last record
            assert shows_the_cut(opened_again(path)), takes
        for facts, heard in zip(again.responses, ran.replay.case.recording.exchanges, strict=False):
            assert heard.body.startswith(facts.exchange.body), takes


LIMITED = '''
import resource, sys
size = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
sys.dont_write_bytecode = True  # Python leaves a compiled module that such a limit cuts, and cannot load it again
from inspector.cli import run
run()
'''


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of file sizes here")
@pytest.mark.parametrize("size", [700, 5_000])
def test_a_process_that_may_write_no_more(size: int, fake: Fake, tmp_path: Path) -> None:
    """The operating system's own refusal, in a process of its own: its file may have this many bytes."""
    text = "word " * 2_000
    fake.answers = [streams(API, answer(API, text, Stop.MAX_TOKENS)),
                    streams(API, answer(API, "the end.", Stop.END_TURN))]
    record = tmp_path / "s.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(size), "run", *chat(fake, record, "--prompt", "x")], text=True, cwd=ROOT,
        capture_output=True, timeout=60, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    notice, failure = done.stderr.splitlines()
    assert notice.startswith("inspector: Nothing shows that segment 2 continues"), "it did not quote the words"
    assert failure == f"inspector: {record}: the recording stopped: File too large"
    assert "the end." in done.stdout
    assert record.stat().st_size <= size
    assert [given.error for given in open_paths([str(record)]).inputs] == [None]


KILLER = '''
import json, os, random, signal, sys, time
from inspector import cli
import inspector.live.headless, inspector.report.facts, inspector.report.explain, loop_core.client.transport
import inspector.sessions.native_models

url, folder, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
chance = random.Random(seed)
for number in range(int(sys.argv[4])):
    path = os.path.join(folder, f"{number}.jsonl")
    pid = os.fork()
    if pid == 0:
        sys.argv = ["inspector", "run", "--api", "openai_chat", "--model", "m", "--base-url", url, "--record", path,
                    "--prompt", "x"]
        try:
            cli.run()
        finally:
            os._exit(1)
    target, deadline = chance.randrange(1, 12_000), time.monotonic() + 60
    while time.monotonic() < deadline and (not os.path.exists(path) or os.path.getsize(path) < target):
        time.sleep(0.001)
    time.sleep(chance.random() * 0.003)
    flushed = os.path.getsize(path)
    os.kill(pid, signal.SIGKILL)
    ended = os.waitpid(pid, 0)[1]
    print(json.dumps([flushed, os.WTERMSIG(ended)]), flush=True)
'''


def test_a_process_that_is_killed_at_any_moment_loses_nothing_that_was_flushed(fake: Fake, tmp_path: Path) -> None:
    """Each round is a process of its own, forked from one that has everything imported."""
    rounds = 12
    event = b'data: {"choices":[{"index":0,"delta":{"content":"w%d "}}]}\n\n'
    sent = b"".join(event % number for number in range(20_000))

    def drip(peer: Peer) -> None:
        peer.head()
        for at in range(0, len(sent), 97):  # not at the ends of events
            peer.send(sent[at : at + 97])
            peer.stop.wait(0.0005)

    fake.answers = [drip]
    done = subprocess.run(
        [sys.executable, "-c", KILLER, fake.url, str(tmp_path), "7", str(rounds)], text=True, cwd=ROOT, timeout=240,
        capture_output=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [by for _, by in told] == [signal.SIGKILL] * rounds
    sizes = set()
    for number, (flushed, _) in enumerate(told):
        path = tmp_path / f"{number}.jsonl"
        kept = path.read_bytes()
        assert len(kept) >= flushed
        loaded = open_paths([str(path)])
        assert [given.error for given in loaded.inputs] == [None], number
        bodies = [exchange.body for exchange in loaded.exchanges if exchange.body]
        assert all(sent.startswith(body) for body in bodies), number
        whole = [json.loads(line) for line in kept.split(b"\n")[:-1]]
        recorded = "".join(row["text"] for row in whole if row.get("type") == "bytes")
        assert b"".join(bodies) == recorded.encode(), "every record that is whole is read, and no other"
        sizes.add(len(recorded))
    assert len(sizes) > rounds // 2, "the moments were not different"
