"""The app in a terminal: its first frame, a key among 100,000 steps, and doing nothing."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from measure import Line, Report, Skip, milliseconds
from start import INSPECTOR, ROOT
from terminal import NotShownError, Terminal

APPS = str(Path(__file__).with_name("apps.py"))
FRAMES, ROUNDS, KEYS = 7, 4, 36
FIRST_STEP = r"EvaluateStop|Request"
TABLE = "verdict"
"""The first heading of the table of turns."""
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


def report() -> Report:
    """Everything that needs a pseudo-terminal."""
    if not sys.platform.startswith("linux"):
        yield Skip("the app in a terminal", "the process CPU clock of another process is read as Linux numbers it")
        return
    if not (ROOT / "inspector" / "tui" / "app.py").exists():
        yield Skip("the app in a terminal", "there is no inspector/tui/app.py")
        return
    from inspector.sessions.folders import samples

    sample = str(samples()[1].path)  # of one turn: several begin with the table of turns
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


def _key_times(terminals: Mapping[str, Terminal]) -> dict[str, float]:
    """Seconds of CPU of a key in each, turn and turn about, down and up the same rows."""
    took = dict.fromkeys(terminals, float("inf"))
    for _ in range(ROUNDS):  # so that all see the same machine
        for name, terminal in terminals.items():
            both = terminal.press("j", KEYS) + terminal.press("j" if name == "bare" else "k", KEYS)
            took[name] = min(took[name], both / 2)
    return took


def _keys() -> Report:
    with tempfile.TemporaryDirectory() as folder:
        many, few = session(Path(folder), 100_000), session(Path(folder), 100)
        commands = {
            "bare": ([sys.executable, APPS, "list", "100000"], "EvaluateStop"),
            "many": ([*INSPECTOR, many], TABLE), "few": ([*INSPECTOR, few], TABLE),
        }
        with ExitStack() as stack:
            terminals = {name: stack.enter_context(Terminal(command, str(ROOT)))
                         for name, (command, _) in commands.items()}
            for name, terminal in terminals.items():
                terminal.wait_for(commands[name][1], seconds=300)
                terminal.settle(1.0, seconds=300)
                terminal.press("j", 5)
            rows = _key_times(terminals)
            for name in ("many", "few"):
                terminals[name].press("\r", 1, quiet=1.0)
                terminals[name].wait_for(FIRST_STEP, seconds=300)
                terminals[name].settle(1.0, seconds=300)
                terminals[name].press("j", 5)
            took = _key_times(terminals)
            idle = min(terminals["many"].idle(3) for _ in range(3))
    yield Line("a key among 33,334 turns ÷ bare list of 100,000 rows", rows["many"] / rows["bare"], most=3,
               note=milliseconds(rows["many"], rows["bare"]))
    yield Line("a key among 33,334 turns ÷ among 34", rows["many"] / rows["few"], most=1.3,
               note=milliseconds(rows["many"], rows["few"]))
    yield Line("a key among 100,000 steps ÷ bare list of 100,000 rows", took["many"] / took["bare"], most=2,
               note=milliseconds(took["many"], took["bare"]))
    yield Line("a key among 100,000 steps ÷ among 100", took["many"] / took["few"], most=1.3,
               note=milliseconds(took["many"], took["few"]))
    yield Line("idle, CPU of one second", idle * 1000, unit=" ms", most=3)
