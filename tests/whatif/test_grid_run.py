"""Running a grid: alone or in several processes the same, with progress, and with a cancel that keeps what was done."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from inspector.config.settings import Settings
from inspector.replay.case import open_case
from inspector.sessions import open_paths
from inspector.sessions.folders import samples
from inspector.whatif import grid_run
from inspector.whatif.grid import Grid, parse_axes
from inspector.whatif.grid_run import blank, tune
from loop_core.errors import CallerError
from tests.scenes.recordings import lines
from tests.whatif.test_sweep import story

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
GRID = Grid(parse_axes(["attempts=0..4", "max_tokens=10,40,100"]))


@pytest.fixture
def case():
    return open_case(open_paths([str(sample.path) for sample in samples()]))


@pytest.fixture
def at_once(monkeypatch):
    """No moment of working alone: other processes are started for the smallest grid."""
    monkeypatch.setattr(grid_run, "ALONE", -1.0)


def test_a_blank_grid_is_the_one_before_any_turn_was_run_and_reads_no_turn(case, monkeypatch):
    stopped = tune(case, GRID, jobs=1, cancelled=lambda: True)
    monkeypatch.setattr(grid_run, "recorded_findings", None)
    made = blank(case, GRID)
    assert (made.turns, made.run_counts, made.done) == (stopped.turns, stopped.run_counts, 0)
    assert made.cancelled


def test_turns_that_go_alike_share_their_cells(tmp_path):
    grid = Grid(GRID.axes, Settings(simulate=True))
    sample = samples()[0].path
    copy = tmp_path / sample.name
    copy.write_bytes(sample.read_bytes() + b"\n")  # the very same bytes would be read once
    twice = open_case(open_paths([str(sample), str(copy)]))
    made = tune(twice, grid, jobs=1)
    half = len(made.turns) // 2
    assert [turn.codes for turn in made.turns[:half]] == [turn.codes for turn in made.turns[half:]]
    assert all(one.codes is other.codes for one, other in zip(made.turns, made.turns[half:], strict=False))
    assert made.tokens == [2 * tokens for tokens in tune(
        open_case(open_paths([str(sample)])), grid, jobs=1).tokens]


@forks
def test_several_processes_give_the_same(case, at_once, monkeypatch):
    alone = tune(case, GRID, jobs=1)
    monkeypatch.setattr(grid_run.os, "fork", forked := CallCounter(os.fork))
    together = tune(case, GRID, jobs=2)
    assert forked.times == 2
    assert [(turn.id, turn.ends, turn.codes) for turn in together.turns] == [
        (turn.id, turn.ends, turn.codes) for turn in alone.turns]
    assert not together.cancelled


def test_parts_that_come_back_in_another_order_give_the_same(case, monkeypatch):
    grid = Grid(GRID.axes, Settings(simulate=True))
    usual = tune(case, grid, jobs=1)
    assert max(len(turn.ends) for turn in usual.turns) > 1
    monkeypatch.setattr(grid_run, "run_tasks", lambda all_, work, *_: ((part, work(part)) for part in reversed(all_)))
    turned = tune(case, grid, jobs=1)
    assert [(turn.ends, turn.codes) for turn in turned.turns] == [(turn.ends, turn.codes) for turn in usual.turns]


class CallCounter:
    def __init__(self, of):
        self.of, self.times = of, 0

    def __call__(self):
        self.times += 1
        return self.of()


@forks
def test_it_runs_beside_other_threads_too(case, at_once):
    """As it does in the app: forking beside a thread warns in newer Pythons, and warnings are errors here."""
    found = []
    thread = threading.Thread(target=lambda: found.append(tune(case, GRID, jobs=2)))
    thread.start()
    thread.join(30)
    assert not found[0].cancelled


@forks
def test_what_a_dead_process_left_is_done_here():
    here = os.getpid()

    def work(task: int) -> int:
        if os.getpid() != here and task == 3:
            os._exit(7)
        return task * task

    assert dict(grid_run.run_tasks(range(8), work, 2, lambda: False)) == {task: task * task for task in range(8)}


def test_many_tasks_take_no_longer_each_than_few():
    began = time.process_time()
    assert [task for task, _ in grid_run.run_tasks(range(200_000), abs, 1, lambda: False)] == [*range(200_000)]
    assert time.process_time() - began < 4


@forks
def test_an_error_in_a_process_is_raised_here(capfd):
    def work(task: int) -> int:
        if task == 5:
            raise CallerError("no such limit")
        return task

    with pytest.raises(CallerError, match="no such limit"):
        list(grid_run.run_tasks(range(8), work, 2, lambda: False))
    assert capfd.readouterr() == ("", "")


@forks
def test_a_cancel_ends_the_processes(monkeypatch):
    done, started, fork = [], [], os.fork
    monkeypatch.setattr(os, "fork", lambda: started.append(fork()) or started[-1])
    for task, _ in grid_run.run_tasks(range(10_000), lambda task: sum(range(3_000)), 2, lambda: len(done) >= 5):
        done.append(task)
    assert 5 <= len(done) < 10_000
    assert len(started) == 2
    for process in started:
        with pytest.raises(ChildProcessError):
            os.waitpid(process, os.WNOHANG)


SHARES = """
import time
from inspector.whatif.grid_run import run_tasks

for task, _ in run_tasks(range(6_400), lambda task: time.sleep(0.01), 2, lambda: False):
    print(task, flush=True)
"""


@forks
def test_the_processes_end_with_a_caller_that_is_killed():
    caller = subprocess.Popen([sys.executable, "-c", SHARES], stdout=subprocess.PIPE, text=True)
    assert caller.stdout.readline()
    caller.kill()
    caller.communicate(timeout=20)  # its output ends when the last process is gone


def test_progress_is_told_for_every_part_and_a_cancel_keeps_what_was_done(case):
    told = []
    made = tune(case, GRID, jobs=1, progress=lambda done, parts: told.append((done, parts)),
                cancelled=lambda: len(told) == 4)
    assert told == [(number, len(case.recording.turns)) for number in range(1, 5)]
    assert made.cancelled
    assert (made.done, made.parts) == (4, len(made.turns))
    whole = tune(case, GRID, jobs=1)
    assert [(turn.ends, turn.codes) for turn in made.turns[:4]] == [(t.ends, t.codes) for t in whole.turns[:4]]
    assert all(turn.ends == () and turn.end(0) is None for turn in made.turns[4:])
    assert made.run_counts == [4] * GRID.size


def test_sums_are_those_of_the_ends(case):
    made = tune(case, GRID)
    for cell in range(GRID.size):
        ends = [turn.end(cell) for turn in made.turns]
        assert made.completed[cell] == sum(end.complete for end in ends)
        assert made.tokens[cell] == sum(end.spend.output_tokens for end in ends)
        assert made.segments[cell] == sum(end.segments for end in ends)
        assert made.unrecorded[cell] == sum(end.terminal == "unrecorded" for end in ends)
        assert made.requests[cell] == sum(end.spend.requests for end in ends)
        assert made.simulated[cell] == 0
        assert made.is_comparable(cell)


def test_nothing_to_read_is_an_empty_grid():
    made = tune(open_case(open_paths(["-"], stdin=b"")), GRID)
    assert (made.turns, made.parts, made.cancelled) == ((), 0, False)


def test_a_limit_of_a_session_file_that_does_not_exist_is_an_error():
    loaded = open_paths(["-"], stdin=lines(*story(["answer"], 20, [1], False)))
    case = open_case(loaded)
    path = case.recording.exchanges[0].path
    broken = type(case)(case.recording, case.judgements, case.verdicts, {path: {"colour": 3}})
    with pytest.raises(CallerError, match="colour"):
        tune(broken, GRID)
