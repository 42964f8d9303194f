"""How much is read: inputs up to the bound, compressed bodies together up to it, FIFOs with a writer, devices never."""

from __future__ import annotations

import base64
import gzip
import io
import json
import os
import socket
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import brotli
import click
import pytest
import zstandard

from inspector import cli, commands
from inspector.sessions import intake, open_paths
from inspector.sessions.intake import unpack
from inspector.sessions.traffic import headers as headers_of
from inspector.whatif.store import open_store
from loop_core.errors import CallerError
from tests.scenes.bodies import CHAT, chat_body

SAMPLE = Path(__file__).parents[2] / "sample_sessions/05-cut-call-repaired.session.jsonl"
PLAIN = b"data: {}\n\n" * 5_000
HEADER = '{"loop_inspector_session": 1}\n'


@pytest.fixture(autouse=True)
def _as_it_was():
    yield
    intake.set_maximum(intake.MOST)


def entry(body: bytes) -> dict:
    text = base64.b64encode(body).decode()
    return {"request": {"method": "POST", "url": CHAT},
            "response": {"status": 200, "content": {"encoding": "base64", "text": text}}}


def har(*bodies: bytes) -> bytes:
    return json.dumps({"log": {"entries": [entry(body) for body in bodies]}}).encode()


def archive(size: int) -> bytes:
    """A completion of that many bytes, packed."""
    return gzip.compress(chat_body("Hi").encode().ljust(size), mtime=0)


def error(path: str) -> str:
    (given,) = open_paths([path]).inputs
    return given.error or ""


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_compressed_bodies_are_bounded_together_and_the_rest_is_named(pack):
    intake.set_maximum(100_000)
    bodies = [pack(chat_body("Hi").encode().ljust(40_000)) for _ in range(4)]
    entries = [entry(body) for body in bodies]
    for each in entries:
        each["response"]["headers"] = [{"name": "content-encoding", "value": "deflate"}]
    loaded = open_paths(["-"], stdin=json.dumps({"log": {"entries": entries}}).encode())
    assert [each.entry for each in loaded.exchanges] == [0, 1]  # 2 of 40,000 fit
    assert [each.entry for each in loaded.inputs[0].skipped] == [2, 3]
    assert all("more than 100,000 bytes of all bodies together" in each.why for each in loaded.inputs[0].skipped)


def test_pairs_and_files_share_what_is_unpacked(tmp_path: Path):
    intake.set_maximum(100_000)
    packed = {"base64_string": base64.b64encode(archive(60_000)).decode()}
    pair = {"request": {"url": CHAT, "body": {"messages": []}}, "response": {"status": 200, "body": packed}}
    first, second = tmp_path / "a.jsonl", tmp_path / "b.har.gz"
    first.write_text(json.dumps(pair) + "\n")
    second.write_bytes(gzip.compress(har(chat_body("Hi").encode()).ljust(60_000)))
    given = open_paths([str(first), str(second)]).inputs
    assert (given[0].responses, given[0].error) == (1, None)
    assert "more than 100,000 bytes of all bodies together" in (given[1].error or "")
    assert open_paths([str(second)]).inputs[0].responses == 1  # alone it fits


def test_a_body_is_unpacked_in_pieces_and_thrown_away_where_it_is_too_large():
    intake.set_maximum(3 * intake.PIECE)
    bomb = gzip.compress(bytes(50 * intake.PIECE), mtime=0)
    assert len(bomb) < intake.PIECE // 8
    room = intake.Room()
    assert "far too large" in unpack(bomb, room=room)
    assert room.left < 0  # it was ended by the first piece that had no room
    assert unpack(gzip.compress(b"x" * 3 * intake.PIECE)) == b"x" * 3 * intake.PIECE
    assert "far too large" in unpack(gzip.compress(b"x" * (3 * intake.PIECE + 1)))


def test_every_member_of_gzip_data_is_unpacked(monkeypatch: pytest.MonkeyPatch):
    members = [b"the first ", b"", b"and the second"]
    packed = b"".join(gzip.compress(member) for member in members)
    assert unpack(packed) == b"the first and the second"
    assert unpack(packed + b"padding behind it") == b"the first and the second"
    monkeypatch.setattr(intake, "_FEED_BYTES", len(gzip.compress(members[0])) + 1)  # the next member's mark is split
    assert unpack(packed) == b"the first and the second"


def test_a_cut_body_is_unpacked_as_far_as_it_goes_and_a_damaged_one_is_said_to_be():
    noise = os.urandom(300_000)
    packed = gzip.compress(noise)
    assert noise.startswith(unpack(packed[:200_000]))
    assert len(unpack(packed[:200_000])) > 100_000
    assert unpack(packed[:10]) == "its body is compressed and damaged"
    assert unpack(packed[:1000] + b"\xff" * 500 + packed[1500:]) == "its body is compressed and damaged"


@pytest.mark.parametrize("more", [0, 1])
def test_files_folders_and_standard_input_are_read_up_to_the_bound(more, tmp_path: Path, monkeypatch):
    text = har(chat_body("Hi").encode())
    path = tmp_path / "a.har"
    path.write_bytes(text)
    intake.set_maximum(len(text) - more)
    told = "" if not more else "--max-bytes N reads more"
    assert told in error(str(path))
    assert bool(error(str(path))) == bool(more)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    stdin = intake.standard_input()
    assert told in (open_paths(["-"], stdin=stdin).inputs[0].error or "")
    (tmp_path / "b.json").write_text(chat_body("Hi"))
    inputs = open_paths([str(tmp_path)]).inputs
    assert [given.format for given in inputs] == ["folder", *["har"] * (not more), "body"]
    assert [told in each.why for each in inputs[0].skipped] == [True] * more


def test_an_endless_standard_input_ends_at_the_bound(monkeypatch):
    class Endless(io.RawIOBase):
        given = 0

        def readable(self):
            return True

        def readinto(self, into):
            into[:] = bytes(len(into))
            Endless.given += len(into)
            return len(into)

    intake.set_maximum(5 * intake.PIECE)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Endless())))
    stdin = intake.standard_input()
    assert len(stdin) == 5 * intake.PIECE + 1
    assert Endless.given < 8 * intake.PIECE
    assert "--max-bytes" in (open_paths(["-"], stdin=stdin).inputs[0].error or "")


def test_a_device_and_a_socket_are_refused_by_name(tmp_path: Path):
    assert error("/dev/zero") == "/dev/zero: a device: expected a regular file, a FIFO or `-`"
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "s"))
        assert error(str(tmp_path / "s")).endswith("a socket: expected a regular file, a FIFO or `-`")


def fifo(tmp_path: Path) -> str:
    os.mkfifo(tmp_path / "f")
    return str(tmp_path / "f")


def test_a_fifo_is_read_to_its_end(tmp_path: Path):
    path, text = fifo(tmp_path), har(chat_body("Hi " * 50_000).encode())  # more than a pipe holds
    writer = threading.Thread(target=Path(path).write_bytes, args=(text,))
    writer.start()
    loaded = open_paths([path])
    writer.join()
    assert [each.response.text for each in loaded.exchanges] == ["Hi " * 50_000]
    with pytest.raises(CallerError, match="cannot be read again"):
        open_store(loaded, {"LOOP_INSPECTOR_DATA": str(tmp_path)})


def test_a_writer_that_has_written_nothing_yet_is_waited_for(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(intake, "WAIT", 0.0)
    path = fifo(tmp_path)
    number = os.open(path, os.O_RDWR)

    def write() -> None:
        os.write(number, har(chat_body("Hi").encode()))
        os.close(number)

    later = threading.Timer(0.3, write)
    later.start()
    loaded = open_paths([path])
    later.join()
    assert [each.response.text for each in loaded.exchanges] == ["Hi"]


def test_a_fifo_that_nobody_writes_to_is_an_error_and_hides_no_other(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(intake, "WAIT", 0.05)
    other = tmp_path / "a.json"
    other.write_text(chat_body("Hi"))
    given = open_paths([fifo(tmp_path), str(other)]).inputs
    assert "a FIFO that nobody writes to" in (given[0].error or "")
    assert given[1].responses == 1


def test_an_endless_fifo_ends_at_the_bound(tmp_path: Path):
    intake.set_maximum(3 * intake.PIECE)
    path = fifo(tmp_path)
    with subprocess.Popen(["sh", "-c", f"yes > {path}"], stderr=subprocess.DEVNULL) as writer:
        told = error(path)
        writer.wait()
    assert "more than 3,145,728 bytes" in told


def test_the_option_holds_for_its_command_alone(tmp_path: Path, capsys):
    path = tmp_path / "a.har"
    path.write_bytes(har(chat_body("Hi").encode()))
    with pytest.raises(SystemExit) as end:
        cli.main(["explain", str(path), "--max-bytes", "100"])
    assert end.value.code == commands.UNREADABLE
    assert "more than 100 bytes" in capsys.readouterr().err
    assert intake.most() == intake.MOST


def test_every_command_that_reads_has_the_option():
    commands = {name: cli.main.get_command(click.Context(cli.main), name) for name in cli.COMMANDS}
    reads = {name for name, command in commands.items() if {"paths", "api"} <= {each.name for each in command.params}}
    assert {"view", "serve", "explain", "replay", "policies", "tune", "branches", "export"} <= reads
    for name in reads:
        assert any("--max-bytes" in each.opts for each in commands[name].params), name


@pytest.mark.parametrize(
    ("packed", "coding"),
    [(zstandard.compress(PLAIN), ""), (zstandard.compress(PLAIN[:50]) + zstandard.compress(PLAIN[50:]), "zstd"),
     (brotli.compress(PLAIN), "br")],
)
def test_zstd_and_brotli_are_unpacked_up_to_the_bound(packed, coding, monkeypatch):
    headers = [("Content-Encoding", coding)]
    assert unpack(packed, headers) == PLAIN
    cut = unpack(packed[:-1], headers)
    assert cut == "its body is compressed and damaged" or PLAIN.startswith(cut)
    assert unpack(b"data: {}\n\n", headers) == b"data: {}\n\n"
    monkeypatch.setattr(intake, "_most", 1000)
    assert "far too large" in str(unpack(packed, headers))


def test_a_packed_body_that_begins_like_a_plain_one_is_unpacked():
    """Brotli's first byte is `[` where the whole body, of more than 64 KB, is one block."""
    plain = json.dumps({"choices": [{"message": {"content": " ".join(map(str, range(20_000)))}}]}).encode()
    packed, coding = brotli.compress(plain), [("content-encoding", "br")]
    assert packed[:1] == b"["
    assert unpack(packed, coding) == plain
    text = '[{"é": 1}, "…"]\r\n\t'.encode() * 40
    for size in range(len(text)):  # a recorder unpacked it, and may have cut it inside a character
        assert unpack(text[:size], coding) == text[:size]


@pytest.mark.parametrize("coding", ["br", "deflate"])
@pytest.mark.parametrize("begins", [b": PROCESSING\n\n", b"retry: 3\n", b"id: 1\n", b"\xef\xbb\xbf", b"\n", b"<"])
def test_a_body_that_a_recorder_unpacked_may_begin_with_any_text(begins, coding):
    """Only JSON, and streams that begin with `data` or `event`, were read; others were damaged, as it was said."""
    body = begins + b"data: {}\n\n"
    assert unpack(body, [("content-encoding", coding)]) == body


def test_brotli_rubbish_is_named():
    assert unpack(b"\xff" * 40, [("content-encoding", "br")]) == "its body is compressed and damaged"


def test_a_zstd_file_is_read_as_what_it_holds(tmp_path):
    (tmp_path / "s.jsonl.zst").write_bytes(zstandard.compress(SAMPLE.read_bytes()))
    packed, plain = open_paths([str(tmp_path / "s.jsonl.zst")]), open_paths([str(SAMPLE)])
    assert [each.body for each in packed.exchanges] == [each.body for each in plain.exchanges] != []


@pytest.mark.parametrize("headers", [
    [("Content-Encoding", "gzip, br")], [("content-encoding", "gzip"), ("Content-Encoding", "br")],
    headers_of({"content-encoding": ["gzip", "br"]}),
])
def test_several_codings_of_a_body_are_undone_from_the_last_to_the_first(headers: list[tuple[str, str]]):
    packed = brotli.compress(gzip.compress(b'{"a": 1}'))
    assert unpack(packed, headers) == b'{"a": 1}'
    assert unpack(gzip.compress(b'{"a": 1}'), headers) == b'{"a": 1}', "the recorder undid the last one"
    assert unpack(b'{"a": 1}', headers) == b'{"a": 1}'
    assert unpack(brotli.compress(gzip.compress(b"{}")[:10] + b"\xff" * 20), headers) == intake.DAMAGED


def test_a_body_is_unpacked_once_for_each_coding_and_within_the_bound():
    twice = gzip.compress(gzip.compress(b'{"a": 1}'))
    assert unpack(twice, [("content-encoding", "gzip")]) == gzip.compress(b'{"a": 1}')
    assert unpack(twice, [("content-encoding", "gzip, gzip")]) == b'{"a": 1}'
    assert unpack(zlib.compress(brotli.compress(b'{"a": 1}')), [("content-encoding", "br, x, deflate")]) == b'{"a": 1}'
    intake.set_maximum(1000)
    bomb = brotli.compress(gzip.compress(b"x" * 100_000))
    assert "far too large" in unpack(bomb, [("content-encoding", "gzip, br")])


def test_a_fifo_beside_a_file_is_not_waited_for(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "message_1.json")
    (tmp_path / "message_2.json").write_bytes(b"{}")
    monkeypatch.setattr(intake, "_fifo", pytest.fail)
    assert [intake.sibling(str(tmp_path / "a"), f"message_{at}.json") for at in (1, 2, 3)] == [None, b"{}", None]


def test_a_fifo_among_the_further_files_of_a_session_is_not_waited_for(tmp_path, monkeypatch):
    from tests.scenes.shapes import CLAUDE

    main, below = tmp_path / "s.jsonl", tmp_path / "s" / "subagents"
    main.write_text("".join(f"{json.dumps(row)}\n" for row in CLAUDE))
    below.mkdir(parents=True)
    os.mkfifo(below / "agent-1.jsonl")
    (below / "agent-2.jsonl").symlink_to("/dev/zero")
    monkeypatch.setattr(intake, "_fifo", pytest.fail)
    read = open_paths([str(main)])
    assert read.exchanges
    assert [source.error.rpartition(": ")[2] for source in read.inputs if source.error] == [
        "no regular file, which is not read beside a session"] * 2


def test_a_line_of_a_transcript_is_read_up_to_the_bound():
    line = io.BytesIO(b"x" * 999 + b"\n" + b"x" * 1000 + b"\n")
    intake.set_maximum(1000)
    assert len(intake.rest_of_line(line)) == 1000
    with pytest.raises(intake.BoundError, match="a line is more than 1,000 bytes"):
        intake.rest_of_line(line)


def test_an_endless_line_of_a_transcript_ends_at_the_bound(tmp_path, monkeypatch):
    from tests.scenes.shapes import CLAUDE

    file = tmp_path / "s.jsonl"
    file.write_bytes("".join(f"{json.dumps(row)}\n" for row in CLAUDE).encode() + b"\0" * (6 << 20))
    monkeypatch.setattr(intake, "HEAVY", 1 << 20)
    monkeypatch.setattr(intake, "MOST", 4 << 20)
    intake.set_maximum(4 << 20)
    (read,) = open_paths([str(file)]).inputs
    assert "a line is more than 4,194,304 bytes" in (read.error or "")
