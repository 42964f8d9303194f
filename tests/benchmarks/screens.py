"""The app in a terminal: its first frame, a key among 100,000 steps, and doing nothing."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from measure import Line, Report, Skipped, milliseconds
from start import INSPECTOR, ROOT
from terminal import NotShownError, Terminal

APPS = str(Path(__file__).with_name("apps.py"))
FRAMES, ROUNDS, KEYS = 7, 3, 40
FIRST_STEP = r"EvaluateStop|Request"
STEPS_IN_A_TURN = 3
"""Request, EvaluateStop, Complete."""


def session(folder: Path, steps: int) -> str:
    """A file of so many steps: turns of one answered request each."""
    path = folder / f"{steps}.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(-(-steps // STEPS_IN_A_TURN)):
            asked = {"model": "m", "messages": [{"role": "user", "content": f"question {number}"}]}
            said = {"role": "assistant", "content": f"answer {number}"}
            answered = {"id": f"r{number}", "object": "chat.completion", "model": "m", "choices": [
                {"index": 0, "message": said, "finish_reason": "stop"}]}
            file.write(json.dumps({"request": asked, "response": answered}) + "\n")
    return str(path)


def first_frame(command: list[str], marker: str) -> float:
    with Terminal(command, str(ROOT)) as terminal:
        return terminal.wait_for(marker)


def key_and_idle(command: list[str], marker: str, key: str = "j") -> tuple[float, float]:
    """CPU seconds of one key, and of an idle second."""
    with Terminal(command, str(ROOT)) as terminal:
        terminal.wait_for(marker, seconds=300)
        terminal.settle(1.0, seconds=300)
        terminal.press(key, 5)
        return terminal.press(key, KEYS), terminal.idle(3)


def report() -> Report:
    """Everything that needs a pseudo-terminal."""
    if not sys.platform.startswith("linux"):
        yield Skipped("the app in a terminal", "the process CPU clock of another process is read as Linux numbers it")
        return
    if not (ROOT / "inspector" / "tui" / "app.py").exists():
        yield Skipped("the app in a terminal", "there is no inspector/tui/app.py")
        return
    from inspector.sessions.samples import samples

    sample = str(samples()[0].path)
    for name, lines in (("the first frame", _first_frame(sample)), ("keys and idling", _keys())):
        try:
            yield from lines
        except NotShownError as why:
            yield Line(name, float("inf"), most=0, note=str(why))


def _first_frame(sample: str) -> Report:
    empty, ours = [], []
    for _ in range(FRAMES + 1):  # the first of each fills the caches; it is never the least
        empty.append(first_frame([sys.executable, APPS, "empty"], "empty app ready"))
        ours.append(first_frame([*INSPECTOR, sample], FIRST_STEP))
    yield Line("first step of a sample ÷ first frame of an empty app", min(ours) / min(empty), most=1.8,
               note=milliseconds(min(ours), min(empty)))


def _keys() -> Report:
    with tempfile.TemporaryDirectory() as folder:
        many, few = session(Path(folder), 100_000), session(Path(folder), 100)
        bare, ours, small, idle = [], [], [], []
        for _ in range(ROUNDS):
            bare.append(key_and_idle([sys.executable, APPS, "list", "100000"], r"EvaluateStop")[0])
            key, rest = key_and_idle([*INSPECTOR, many], FIRST_STEP)
            ours.append(key)
            idle.append(rest)
            small.append(key_and_idle([*INSPECTOR, few], FIRST_STEP)[0])
    yield Line("a key among 100,000 steps ÷ bare list of 100,000 rows", min(ours) / min(bare), most=2,
               note=milliseconds(min(ours), min(bare)))
    yield Line("a key among 100,000 steps ÷ among 100", min(ours) / min(small), most=1.3,
               note=milliseconds(min(ours), min(small)))
    yield Line("idle, CPU of one second", min(idle) * 1000, unit=" ms", most=3)
