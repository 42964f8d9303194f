"""The progress bar, only on a terminal, and Ctrl-C, which keeps what was done."""

from __future__ import annotations

import io
import json
import os
import signal

import pytest

from inspector import commands
from inspector.commands import interruptible, progress_bar
from inspector.whatif.sweep import Sweep
from tests.commands.test_cli import SAMPLE


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_sees_how_much_is_done_and_then_a_clean_line(monkeypatch):
    monkeypatch.setattr(commands, "DRAW_SECONDS", 0)
    stream = Terminal()
    with progress_bar(stream) as draw:
        draw(1, 2_000)
        draw(1_000, 2_000)
    _, first, half, blank, end = stream.getvalue().split("\r")
    assert first == f"[{'.' * 30}] 1 of 2,000  Ctrl-C stops"
    assert half.startswith(f"[{'#' * 15}{'.' * 15}] 1,000 of 2,000")
    assert blank == " " * len(half)
    assert end == ""


def test_no_terminal_sees_anything_and_a_quick_grid_draws_nothing(monkeypatch):
    for stream in (io.StringIO(), Terminal()):
        with progress_bar(stream) as draw:
            draw(1, 2)
        assert stream.getvalue() == ""
    monkeypatch.setattr(commands, "DRAW_SECONDS", 0)
    with progress_bar(stream := io.StringIO()) as draw:
        draw(1, 2)
    assert stream.getvalue() == ""


def test_the_first_interrupt_is_remembered_and_the_second_is_raised():
    before = signal.getsignal(signal.SIGINT)
    with interruptible() as asked:
        assert not asked()
        os.kill(os.getpid(), signal.SIGINT)
        assert asked()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_ends_the_command_with_what_was_done(inspector, monkeypatch):
    whole = Sweep.sweep

    def interrupt(self, groups):
        os.kill(os.getpid(), signal.SIGINT)
        return whole(self, groups)

    monkeypatch.setattr(Sweep, "sweep", interrupt)
    said = inspector("tune", SAMPLE, "--grid", "attempts=5", "--json")
    assert said.code == 0
    assert said.err == "inspector: cancelled; 1 of 2 parts were run\n"
    told = json.loads(said.out)
    assert told["cancelled"] is True
    assert [len(turn["ends"]) for turn in told["turns"]] == [1, 0]
