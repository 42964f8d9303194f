"""Every command of the tour is run as it stands, and says what the tour says of it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.scenes.command import Output

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
def test_a_command_of_the_tour(
    command: str, inspector: Callable[..., Output], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    ran = inspector(*shlex.split(command)[1:])
    assert ran.code == 0
    assert ran.err in ("", "inspector: report: this folder is new\n")
    assert SAYS[command] in ran.out


def test_the_tour_has_no_other_commands() -> None:
    assert sorted(COMMANDS) == sorted(SAYS)


def test_what_the_readme_shows_of_a_report_is_what_is_said(inspector: Callable[..., Output]) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    block = re.search(r"^\$ inspector (explain .*)\n((?:.+\n)+?)```", readme, re.MULTILINE)
    assert block is not None
    ran = inspector(*block[1].split())
    assert ran.code == 0
    shown = [line for line in block[2].splitlines() if line != "…"]
    said = ran.out.splitlines()
    assert [said.index(line) for line in shown] == sorted(said.index(line) for line in shown)
    assert said[0] == shown[0]


def test_a_sample_that_does_not_exist_is_told(inspector: Callable[..., Output]) -> None:
    ran = inspector("explain", "sample:zz")
    assert ran.code == 2
    assert ran.err == ("inspector: sample:zz: no sample session has a name that begins so; "
                       "`inspector samples` lists them\n")
