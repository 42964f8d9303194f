"""What is kept of a session: acts in a file that survives a kill at any byte, two programs, and a newer one."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from inspector.config.settings import Settings, settings_of
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.facts import view
from inspector.sessions import open_paths
from inspector.whatif import branch_report
from inspector.whatif.store import ACTS, MARK, NewerError, Store, open_store, session_hash
from inspector.whatif.tree import ORIGINAL, Tree
from loop_core.errors import CallerError, LoopError
from tests.scenes.recordings import PARTS, cut_call_ran, cut_text, lines

ROOT = Path(__file__).resolve().parents[2]


def state(store: Store) -> tuple:
    kept = store.kept
    return (kept.branches, kept.marks, kept.notes, kept.breakpoints)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sessions" / "abc.jsonl"


def fill_store(path: Path) -> Store:
    store = Store(path)
    store.branch("k1", ORIGINAL, {"set": {"continuation_max_attempts": "5"}}, 0)
    store.branch("k2", "k1", {"set": {"max_tokens": "80"}}, 6)
    store.mark(ORIGINAL, 3)
    store.mark("k2", 8)
    store.note(ORIGINAL, None, "looked at by two of us: Grüße 🦊")
    store.note("k2", 8, "here it goes wrong")
    store.breakpoint("state:Abort", True)
    store.breakpoint("budget>=80%", False)
    return store


def test_what_was_done_is_there_again(path):
    store = fill_store(path)
    again = Store(path)
    assert state(again) == state(store)
    assert list(again.kept.branches) == ["k1", "k2"]
    assert again.kept.branches["k2"] == {"parent": "k1", "settings": {"set": {"max_tokens": "80"}}, "from_step": 7}
    assert again.kept.marks == {(ORIGINAL, 3), ("k2", 8)}
    assert again.kept.notes == {(ORIGINAL, None): "looked at by two of us: Grüße 🦊", ("k2", 8): "here it goes wrong"}
    assert again.kept.breakpoints == {"state:Abort": True, "budget>=80%": False}
    assert (store.notices, again.notices) == ([], [])


def test_what_is_taken_away_is_gone(path):
    store = fill_store(path)
    store.mark(ORIGINAL, 3, on=False)
    store.note(ORIGINAL, None, "")
    store.breakpoint("state:Abort", None)
    store.breakpoint("budget>=80%", True)
    store.note(ORIGINAL, None, "and again")
    for each in (store, Store(path)):
        assert each.kept.marks == {("k2", 8)}
        assert each.kept.notes == {("k2", 8): "here it goes wrong", (ORIGINAL, None): "and again"}
        assert each.kept.breakpoints == {"budget>=80%": True}
    store.forget("k1")  # and what was made from it, and what stands on that
    for each in (store, Store(path)):
        assert each.kept.branches == {}
        assert each.kept.marks == set()
        assert each.kept.notes == {(ORIGINAL, None): "and again"}


def test_the_file_says_its_version_and_counts_steps_from_1(path):
    fill_store(path)
    rows = [json.loads(line) for line in path.read_text("ascii").splitlines()]
    assert rows[0] == {MARK: 1, "session": "abc"}
    assert rows[3] == {"act": "mark", "run": "original", "step": 4, "on": True}
    assert rows[5]["step"] is None
    assert {row["act"] for row in rows[1:]} | {"forget"} == set(ACTS)
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0  # notes are nobody else's


def test_no_credential_reaches_the_file(path):
    key = "sk-ant-api03-" + "a1B2c3D4" * 8
    store = Store(path)
    store.note(ORIGINAL, None, f"it was sent with {key}")
    store.breakpoint(f"~b {key}", True)
    assert key.encode() not in path.read_bytes()
    assert key not in str(state(store))


# -- cut ----------------------------------------------------------------------------------------------------------


def test_a_file_that_is_cut_at_any_byte_keeps_what_is_whole_and_goes_on(tmp_path):
    whole = tmp_path / "whole.jsonl"
    fill_store(whole)
    data = whole.read_bytes()
    path = tmp_path / "cut.jsonl"
    for size in range(len(data)):
        path.write_bytes(data[:size])
        store = Store(path)
        ends = data[:size].count(b"\n")
        want = tmp_path / "want.jsonl"
        want.write_bytes(b"".join(line + b"\n" for line in data[:size].split(b"\n")[:ends]))
        assert state(store) == state(Store(want)), size
        clean = size == 0 or data[size - 1 : size] == b"\n"
        assert store.notices == ([] if clean else [f"{path}: line {ends + 1}: cut; it is kept and not read"])
        store.mark("new", 1)
        assert path.read_bytes().startswith(data[:size])  # what was cut is kept
        again = Store(path)
        # A line that lacks only its end is whole when the next begins.
        assert ("new", 1) in again.kept.marks
        assert again.kept.marks - {("new", 1)} >= Store(want).kept.marks
        assert len(again.notices) <= 1


def test_a_program_that_is_killed_loses_nothing_that_it_said_was_kept(tmp_path):
    path = tmp_path / "killed.jsonl"
    code = ("import sys; from pathlib import Path; from inspector.whatif.store import Store\n"
            "store = Store(Path(sys.argv[1]))\n"
            "for n in range(10**6): store.mark('r', n); sys.stdout.write('.'); sys.stdout.flush()")
    process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, cwd=ROOT,
                               env={**os.environ, "PYTHONPATH": str(ROOT)})
    process.stdout.read(50)
    process.send_signal(signal.SIGKILL)
    said = 50 + len(process.stdout.read())
    process.stdout.close()
    process.wait()
    marks = Store(path).kept.marks
    assert said <= len(marks) <= said + 1
    assert marks == {("r", n) for n in range(len(marks))}


BEGUN = (b'{"act":"ma', b"{", b'{"act":"mark","run":"r","step":1,"on":tru')


@hypothesis_settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["mark", "note", "branch", "breakpoint", "forget"]), st.integers(0, 3),
                          st.booleans()), max_size=12), st.data())
def test_acts_come_back_whatever_is_cut_between_them(tmp_path_factory, acts, data):
    path = tmp_path_factory.mktemp("s") / "s.jsonl"
    plain = Store(path.with_name("plain.jsonl"))
    for kind, number, on in acts:
        for store in (plain, Store(path)):
            if kind == "mark":
                store.mark("r", number, on)
            elif kind == "note":
                store.note("r", number, "text" if on else "")
            elif kind == "branch":
                store.branch(f"k{number}", ORIGINAL if number == 0 else f"k{number - 1}", {}, number)
            elif kind == "breakpoint":
                store.breakpoint(f"b{number}", on)
            else:
                store.forget(f"k{number}")
        if data.draw(st.booleans()):  # another program begins a line and dies
            with path.open("ab") as file:
                file.write(data.draw(st.sampled_from(BEGUN)))
    assert state(Store(path)) == state(plain)


@pytest.mark.parametrize("line", [
    b'{"act":"mark","run":"r","step":0,"on":true}', b'{"act":"mark","run":"r","step":true,"on":true}',
    b'{"act":"mark","run":"r","on":true}', b'{"act":"mark","run":5,"step":1,"on":true}', b'{"act":"sing"}', b'[1]',
    b'{"act":["mark"]}', b'{"act":"branch","key":"k","parent":"original","settings":[],"from_step":1}', b"\xff\xfe",
    b"[" * 100_000,
])
def test_a_line_that_is_no_act_is_told_and_hides_no_other(path, line):
    store = fill_store(path)
    with path.open("ab") as file:
        file.write(line + b"\n")
    again = Store(path)
    again.mark("r", 5)
    assert len(again.notices) == 1
    assert again.notices[0].startswith(f"{path}: line 10: ")
    assert again.kept.marks == store.kept.marks | {("r", 5)}
    assert line + b"\n" in path.read_bytes()


# -- newer, unwritable ------------------------------------------------------------------------------------------------


def test_a_file_of_a_newer_version_is_refused_and_left_as_it_is(path):
    path.parent.mkdir()
    data = json.dumps({MARK: 2, "session": "abc"}).encode() + b'\n{"act":"dance"}\n'
    path.write_bytes(data)
    with pytest.raises(NewerError, match=r"abc\.jsonl: line 1: branches of version 2, written by a newer program"):
        Store(path)
    assert path.read_bytes() == data
    assert issubclass(NewerError, LoopError)


def test_a_newer_program_that_comes_along_is_not_written_over(path):
    store = fill_store(path)
    newer = json.dumps({MARK: 2}).encode() + b"\n"
    with path.open("ab") as file:
        file.write(newer)
    data = path.read_bytes()
    with pytest.raises(NewerError):
        store.mark("r", 1)
    assert path.read_bytes() == data


def test_a_folder_that_cannot_be_written_is_one_note_and_no_failure(tmp_path):
    (tmp_path / "file").write_text("no folder")
    store = Store(tmp_path / "file" / "sessions" / "abc.jsonl")
    store.mark("r", 1)
    store.note("r", 1, "still here")
    assert (store.kept.marks, store.kept.notes) == ({("r", 1)}, {("r", 1): "still here"})
    (notice,) = [each for each in store.notices if "cannot be written" in each]
    assert "nothing is kept" in notice


def test_a_branch_that_could_not_be_written_is_known_as_such_until_it_is(tmp_path):
    (tmp_path / "file").write_text("no folder")
    store = Store(tmp_path / "file" / "sessions" / "abc.jsonl")
    store.branch("k1", "original", {"set": {}}, 0)
    store.mark("k1", 1)
    assert list(store.unkept) == ["k1"]
    assert "cannot be written" in store.unkept["k1"]
    (tmp_path / "file").unlink()
    store.branch("k1", "original", {"set": {}}, 0)
    assert store.unkept == {}
    assert list(Store(store.path).kept.branches) == ["k1"]


def test_a_branch_that_a_newer_program_keeps_out_is_known_as_such(path):
    store = fill_store(path)
    with path.open("ab") as file:
        file.write(json.dumps({MARK: 2}).encode() + b"\n")
    with pytest.raises(NewerError):
        store.branch("k9", "original", {"set": {}}, 0)
    assert "written by a newer program" in store.unkept["k9"]


@pytest.mark.skipif(os.geteuid() == 0 if hasattr(os, "geteuid") else True, reason="root may write anywhere")
def test_a_folder_without_permission_is_the_same(tmp_path):
    tmp_path.chmod(0o500)
    store = Store(tmp_path / "sessions" / "abc.jsonl")
    store.mark("r", 1)
    assert len(store.notices) == 1


def test_a_file_that_was_taken_away_is_begun_anew(path):
    store = fill_store(path)
    path.unlink()
    store.mark("r", 1)
    assert Store(path).kept.marks == {("r", 1)}
    assert Store(path).notices == []


# -- two programs -----------------------------------------------------------------------------------------------------


def test_each_reads_what_the_other_wrote(path):
    one, other = Store(path), Store(path)
    one.mark("r", 1)
    other.mark("r", 2)  # it sees the mark before it writes its own
    assert other.kept.marks == {("r", 1), ("r", 2)}
    one.mark("r", 3)
    assert one.kept.marks == {("r", 1), ("r", 2), ("r", 3)}
    assert path.read_bytes().count(MARK.encode()) == 1


def test_two_processes_lose_and_mix_no_line(tmp_path):
    path, count = tmp_path / "two" / "s.jsonl", 150
    code = ("import sys; from pathlib import Path; from inspector.whatif.store import Store\n"
            "store = Store(Path(sys.argv[1]))\n"
            "for n in range(int(sys.argv[3])): store.note(sys.argv[2], n, 'a longer text ' * 700)")
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(path), name, str(count)], cwd=ROOT,
                         env={**os.environ, "PYTHONPATH": str(ROOT)})
        for name in ("one", "two", "three")
    ]
    assert [process.wait(timeout=60) for process in running] == [0, 0, 0]
    store = Store(path)
    assert set(store.kept.notes) == {(name, n) for name in ("one", "two", "three") for n in range(count)}
    assert store.notices == []
    assert path.read_bytes().count(MARK.encode()) == 1


# -- a session --------------------------------------------------------------------------------------------------------


@pytest.fixture
def read(tmp_path):
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    one.write_bytes(lines(*cut_text(*PARTS)))
    two.write_bytes(lines(*cut_call_ran()))
    return one, two


def test_a_session_is_known_by_its_bytes_in_their_order(read, tmp_path):
    one, two = read
    copy = tmp_path / "elsewhere.jsonl"
    copy.write_bytes(one.read_bytes())
    of = lambda *paths: session_hash(open_paths([str(path) for path in paths]), None)  # noqa: E731
    assert of(one) == of(copy)
    assert len({of(one), of(two), of(one, two), of(two, one)}) == 4  # steps are numbered through all files
    assert of(one, tmp_path / "missing") == of(one)
    data = one.read_bytes()
    assert session_hash(open_paths(["-"], stdin=data), data) == of(one)


def test_a_store_stands_in_our_folder_and_in_no_other(read, tmp_path):
    one, _ = read
    data = tmp_path / "data"
    before = sorted(tmp_path.iterdir())
    store = open_store(open_paths([str(one)]), {"LOOP_INSPECTOR_DATA": str(data)})
    assert sorted(tmp_path.iterdir()) == before  # looking writes nothing
    store.mark(ORIGINAL, 0)
    assert store.path.parent == data / "sessions"
    assert sorted(tmp_path.iterdir()) == sorted([*before, data])


def test_a_file_that_is_gone_has_no_store(read, tmp_path):
    one, _ = read
    loaded = open_paths([str(one)])
    one.unlink()
    with pytest.raises(CallerError, match="cannot be read again"):
        open_store(loaded, {"LOOP_INSPECTOR_DATA": str(tmp_path)})


def test_the_runs_of_a_session_are_made_again_from_what_is_kept(read, path):
    one, _ = read
    original = view(replay(open_case(open_paths([str(one)]))))
    tree, store = Tree(original), Store(path)
    first, _ = tree.add(tree.original, settings_of({"continuation_max_attempts": "5"}, Settings()))
    second, _ = tree.add(first, settings_of({"seam": "concat"}, first.view.replay.settings), 4)
    branch_report.save_branch(store, second)  # its parent too
    again, notices = branch_report.restore_tree(original, Store(path))
    assert notices == []
    assert [(node.key, node.path) for node in again.every] == [(node.key, node.path) for node in tree.every]
    assert again.every[2].view.replay.stretches == second.view.replay.stretches
    branch_report.save_branch(store, second)
    assert path.read_bytes().count(b'"act":"branch"') == 2


def test_a_branch_that_cannot_be_made_is_told_and_kept(read, path):
    one, _ = read
    original = view(replay(open_case(open_paths([str(one)]))))
    store = Store(path)
    store.branch("far", ORIGINAL, {"set": {"max_tokens": "9"}}, 10**6)
    store.branch("odd", ORIGINAL, {"set": {"hope": "9"}}, 0)
    store.branch("lost", "nobody", {}, 0)
    store.branch("good", ORIGINAL, {"set": {"max_tokens": "9"}}, 0)
    tree, notices = branch_report.restore_tree(original, store)
    assert [node.key for node in tree.every] == [ORIGINAL, "good"]
    assert [notice.split(":")[0] for notice in notices] == ["branch far", "branch odd", "branch lost"]
    assert "step 1,000,001" in notices[0]
    assert "unknown setting 'hope'" in notices[1]
    assert list(Store(path).kept.branches) == ["far", "odd", "lost", "good"]


def test_it_is_quick_enough_to_be_asked_at_every_key(path):
    store = Store(path)
    start = time.process_time()
    for number in range(200):
        store.mark("r", number)
    assert time.process_time() - start < 1
