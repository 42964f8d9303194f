"""What is written: for its owner alone where it is ours, and whole or not at all where it is an export."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from inspector import cli
from inspector.config import files
from inspector.config.files import new_folder, private_file, private_folder, replace_all
from inspector.export import write
from inspector.live.recorder import Recorder
from inspector.sessions.folders import samples
from inspector.sessions.native import write_session
from inspector.tui import session_files
from inspector.whatif.store import Store
from loop_core.errors import CallerError

SAMPLE = str(samples()[0].path)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def _open_to_all():
    before = os.umask(0o022)
    yield
    os.umask(before)


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_folders_of_ours_are_for_their_owner_alone(tmp_path: Path):
    private_folder(tmp_path / "a" / "b")
    assert [mode(tmp_path / "a"), mode(tmp_path / "a" / "b")] == [0o700, 0o700]
    (tmp_path / "old").mkdir(0o755)
    private_folder(tmp_path / "old")
    assert mode(tmp_path / "old") == 0o700
    (tmp_path / "theirs").mkdir(0o755)
    new_folder(tmp_path / "theirs" / "new")
    assert [mode(tmp_path / "theirs"), mode(tmp_path / "theirs" / "new")] == [0o755, 0o700]


def test_recordings_and_branches_are_for_their_owner_alone(tmp_path: Path):
    recorder = Recorder(tmp_path / "live" / "run.jsonl")
    recorder.close()
    assert [mode(tmp_path / "live"), mode(tmp_path / "live" / "run.jsonl")] == [0o700, 0o600]
    (tmp_path / "sessions").mkdir(0o755)
    (tmp_path / "sessions" / "s.jsonl").touch(0o644)  # as an older version left them
    store = Store(tmp_path / "sessions" / "s.jsonl")
    store.mark("original", 0)
    assert store.notices == []
    assert [mode(tmp_path / "sessions"), mode(store.path)] == [0o700, 0o600]


def test_recent_files_and_the_theme_are_for_their_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    place = tmp_path / "state" / "recent.json"
    monkeypatch.setattr(session_files, "state_folder", lambda: place.parent)
    session_files.remember([SAMPLE])
    session_files.keep_state("theme", b"nord")
    assert mode(place.parent) == 0o700
    assert [mode(each) for each in sorted(place.parent.iterdir())] == [0o600] * 3  # the list, its lock, the theme
    place.chmod(0o644)
    session_files.remember([SAMPLE])
    assert mode(place) == 0o600
    monkeypatch.setattr(os, "replace", full)
    session_files.remember([__file__])
    assert json.loads(place.read_text()) == [SAMPLE]


def test_recent_files_of_many_programs_are_all_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(session_files, "state_folder", lambda: tmp_path)
    paths = [tmp_path / f"{number}.har" for number in range(session_files.RECENT)]
    for path in paths:
        path.touch()
    each = [threading.Thread(target=session_files.remember, args=([str(path)],)) for path in paths]
    for one in each:
        one.start()
    for one in each:
        one.join()
    assert set(session_files.recent_files()) == {str(path) for path in paths}


@pytest.mark.parametrize("fails", ["replace", "fsync", "open"])
def test_a_full_disk_leaves_the_old_file_whole_and_no_other(fails: str, tmp_path: Path, monkeypatch):
    old, new = tmp_path / "a.html", tmp_path / "b.html"
    old.write_text("old")
    monkeypatch.setattr(files.os, fails, full)
    with pytest.raises(CallerError, match="No space left on device"):
        write({"a.html": "new", "b.html": "new"}, str(tmp_path), force=True)
    with pytest.raises(OSError, match="No space"):
        write_session(new, [])
    monkeypatch.undo()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.html": "old"}


def test_a_file_that_is_replaced_keeps_its_mode_and_a_link_stays_one(tmp_path: Path):
    old, link = tmp_path / "a", tmp_path / "l"
    old.write_text("old")
    old.chmod(0o640)
    link.symlink_to(old)
    replace_all({link: b"new", tmp_path / "b": b"new"})
    assert (old.read_text(), link.is_symlink(), mode(old), mode(tmp_path / "b")) == ("new", True, 0o640, 0o644)


@pytest.mark.parametrize("home", [None, "", "relative"])
def test_a_user_without_a_home_can_read_a_session(home: str | None):
    """As in a container, under a number that stands for no user."""
    environment = {name: value for name, value in os.environ.items()
                   if name != "HOME" and not name.startswith(("XDG_", "LOOP_INSPECTOR_"))}
    code = ("import pwd, sys; from inspector import cli\n"
            "def unknown(number): raise KeyError\n"
            "pwd.getpwuid = unknown\n"
            "for words in ('explain sample:08', 'locate', 'branches sample:08', 'config'):\n"
            "    sys.argv[1:] = words.split()\n"
            "    try: cli.run()\n"
            "    except SystemExit as end: print(words, 'ends with', end.code or 0)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False,
                          env=environment | ({} if home is None else {"HOME": home}))
    assert (done.returncode, done.stderr, done.stdout.count(" ends with 0\n")) == (0, "", 4)
    assert "config  /.config/loop-inspector/config.toml\n" in done.stdout


def test_a_working_directory_that_was_removed_is_no_error(tmp_path: Path):
    gone = tmp_path / "gone"
    for arguments in ("explain", "check --fail-on never --format sarif", "check --fail-on never --format github"):
        gone.mkdir()
        line = f'cd "{gone}" && rmdir "{gone}" && "{sys.executable}" -m inspector {arguments} sample:08'
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False,
                              env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])})
        assert (done.returncode, done.stderr) == (0, "")


def test_what_stands_for_a_pipe_is_written_to():
    reader, writer = os.pipe()
    replace_all({Path(f"/dev/fd/{writer}"): b"a,b"})
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        assert file.read() == b"a,b"


def test_what_is_no_file_is_written_to(tmp_path: Path):
    os.mkfifo(tmp_path / "f")
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "f").read_bytes()))
    reader.start()
    replace_all({tmp_path / "f": b"a,b"})
    reader.join()
    assert got == [b"a,b"]
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_a_fifo_that_nobody_reads_is_not_waited_for(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(files, "WAIT", 0.05)
    os.mkfifo(tmp_path / "f")
    with pytest.raises(OSError, match="a FIFO that nobody reads"):
        replace_all({tmp_path / "f": b"a,b"})
    with pytest.raises(OSError, match="a FIFO: expected a regular file"):
        private_file(tmp_path / "f")


def run(*args: str) -> int:
    with pytest.raises(SystemExit) as end:
        cli.main(list(args))
    return int(end.value.code or 0)


def test_a_grid_is_not_written_over_a_file_unless_it_is_said(tmp_path: Path, monkeypatch, capsys):
    target = tmp_path / "grid.csv"
    target.write_text("mine")
    args = ["tune", SAMPLE, "--grid", "attempts=1", "--jobs", "1", "--csv", str(target)]
    with pytest.raises(CallerError, match="exists; --force overwrites it"):
        cli.main(args, standalone_mode=False)
    assert target.read_text() == "mine"
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(CallerError, match="No space left"):
        cli.main([*args, "--force"], standalone_mode=False)
    assert target.read_text() == "mine"
    monkeypatch.undo()
    assert run(*args, "--force") == 0
    assert target.read_text().startswith("continuation_max_attempts,turn,")
    with pytest.raises(CallerError, match="this session was read"):
        cli.main([*args[:-1], SAMPLE, "--force"], standalone_mode=False)


def test_a_save_that_kept_nothing_says_so_and_fails(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setenv("LOOP_INSPECTOR_DATA", str(tmp_path / "data"))
    args = ["replay", SAMPLE, "--set", "continuation_max_attempts=1", "--save"]
    assert run(*args) == 0
    assert capsys.readouterr().err == ""
    assert run(*args) == 0  # it is kept already
    assert run("replay", SAMPLE, "--save") == 2
    assert "nothing was saved, because this run is the original" in capsys.readouterr().err
    (tmp_path / "file").touch()
    monkeypatch.setenv("LOOP_INSPECTOR_DATA", str(tmp_path / "file"))
    assert run(*args) == 2
    assert "cannot be written, so nothing is kept" in capsys.readouterr().err
