"""A large transcript of Claude Code: explained, and opened in the app, beside parsing its lines and an empty app."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from agent_session import write
from measure import Line, Report, Skip, milliseconds
from start import INSPECTOR, ROOT
from terminal import NotShownError, Terminal

APPS = str(Path(__file__).with_name("apps.py"))
MEGABYTES = int(os.environ.get("LOOP_INSPECTOR_MEGABYTES", "100"))
ROUNDS, FRAMES, KEYS = 2, 5, 60
LOOP = "import json,sys\nfor line in open(sys.argv[1], 'rb'): json.loads(line)"
VERDICT = "COMPLETE|INFERRED"
BASE_MB, ANSWER_KB, APP_MB, STEP_KB, STEPS = 60, 2, 100, 1, 3
"""What may be used: for the program, for each answer; for the app, for each of the steps of an answer."""


def cost_of(command: list[str]) -> tuple[float, float]:
    """CPU seconds of a command, and its peak memory in MB."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT)
    _, status, spent = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return spent.ru_utime + spent.ru_stime, spent.ru_maxrss / 1024


def report() -> Report:
    """`explain --json` and the app over one file."""
    if not sys.platform.startswith("linux"):
        yield Skip("a large transcript", "peak memory and the CPU clock of a process are read as Linux has them")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.jsonl"
        answers = write(path, MEGABYTES * 1_000_000)
        name = f"{MEGABYTES:,} MB, {answers:,} answers"
        loops, ours = [], []
        for _ in range(ROUNDS):
            loops.append(cost_of([sys.executable, "-c", LOOP, str(path)])[0])
            ours.append(cost_of([*INSPECTOR, "explain", "--json", str(path)]))
        took, peak = min(cpu for cpu, _ in ours), min(most for _, most in ours)
        yield Line(f"explain --json of {name} ÷ json.loads of its lines", took / min(loops), most=2.5,
                   note=milliseconds(took, min(loops)))
        most = BASE_MB + ANSWER_KB * answers / 1e3
        yield Line(f"peak memory of explain --json of {name}", peak, unit=" MB", most=most)
        try:
            yield from _app(str(path), name, answers)
        except NotShownError as why:
            yield Line(f"the app over {name}", float("inf"), most=0, note=str(why))


def _app(path: str, name: str, answers: int) -> Report:
    empty, ours = [], []
    for _ in range(FRAMES):
        with Terminal([sys.executable, APPS, "empty"], str(ROOT)) as terminal:
            empty.append(terminal.wait_for("empty app ready"))
        with Terminal([*INSPECTOR, path], str(ROOT)) as terminal:
            ours.append(terminal.wait_for(VERDICT))
    yield Line(f"first verdicts of {name} ÷ first frame of an empty app", min(ours) / min(empty), most=1.6,
               note=milliseconds(min(ours), min(empty)))
    with Terminal([*INSPECTOR, path], str(ROOT)) as terminal:
        terminal.wait_for(VERDICT)
        terminal.settle()
        took = []
        for number in range(KEYS):
            took.append(terminal.latency("jk"[number % 2]))
        terminal.settle(4.0, seconds=600)
        peak = terminal.peak()
    yield Line("a key while the rest is read, the median", sorted(took)[len(took) // 2] * 1000, unit=" ms", most=30)
    yield Line(f"peak memory of the app over {name}", peak, unit=" MB", most=APP_MB + STEP_KB * STEPS * answers / 1e3)
