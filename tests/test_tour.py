"""Every command of the tour is run as it stands, and says what the tour says of it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COMMANDS = re.findall(r"^\$ (inspector .*)$", (ROOT / "docs" / "tour.md").read_text("utf-8"), re.MULTILINE)
SAYS = {
    "inspector explain sample:01 sample:08 sample:10": "by verdict: 2 cut call run · 1 call held · 1 limit reached",
    "inspector explain sample:01": "CUT CALL RUN  turn 2 of 2",
    "inspector explain sample:08 --filter 'stop:max_tokens !raw:length'": 'raw "tool_calls" > tool_call > max_tokens',
    "inspector replay sample:01 --set continuation_max_attempts=5": "turn 1 ends in Complete",
    "inspector replay sample:01 --set max_tokens=160 --simulate": "fidelity: SIMULATED from step",
    "inspector tune sample:01": "smallest max_tokens 35 with up to 6 continuations",
    "inspector policies sample:10": "ran a cut call",
    "inspector providers call-cut": "52 dialects",
    "inspector explain sample:18": "no stop reason recorded, max_tokens inferred",
    "inspector export sample:10 --to bug --out report": "loop-inspector-agent-ran_held_call.jsonl",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_tour(command: str, tmp_path: Path) -> None:
    words = shlex.split(command)
    ran = subprocess.run([sys.executable, "-m", *words], cwd=tmp_path, capture_output=True, text=True, check=False,
                         env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"})
    assert ran.returncode == 0
    assert ran.stderr in ("", "inspector: report: this folder is new\n")
    assert SAYS[command] in ran.stdout


def test_the_tour_has_no_other_commands() -> None:
    assert sorted(COMMANDS) == sorted(SAYS)


def test_what_the_readme_shows_of_a_report_is_what_is_said() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    block = re.search(r"^\$ inspector (explain .*)\n((?:.+\n)+?)```", readme, re.MULTILINE)
    assert block is not None
    ran = subprocess.run([sys.executable, "-m", "inspector", *block[1].split()], capture_output=True, text=True,
                         check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    shown = [line for line in block[2].splitlines() if line != "…"]
    said = ran.stdout.splitlines()
    assert [said.index(line) for line in shown] == sorted(said.index(line) for line in shown)
    assert said[0] == shown[0]


def test_a_sample_that_does_not_exist_is_told(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-m", "inspector", "explain", "sample:zz"], cwd=tmp_path, text=True,
                         capture_output=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert ran.returncode == 2
    assert ran.stderr == ("inspector: sample:zz: no sample session has a name that begins so; "
                          "`inspector samples` lists them\n")
