"""action.yml and the pre-commit hook run as they stand: the action's own script and the hook's entry, on files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.scenes.recordings import ASKS, chat, lines, pair_of, user

ROOT = Path(__file__).parents[2]


@pytest.fixture
def runs(tmp_path):
    """A folder with a clean session and one that is cut."""
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "a.session.jsonl").write_bytes(lines(pair_of(ASKS, chat("All of it."), max_tokens=50)))
    (folder / "b.session.jsonl").write_bytes(lines(pair_of([user("Two?")], chat("Half", "length"), max_tokens=7)))
    return folder


@pytest.mark.parametrize(("inputs", "code", "annotated"), [
    ({}, 1, True), ({"PATHS": "runs/b*.jsonl runs/a*.jsonl"}, 1, True),
    ({"FAIL_ON": "never"}, 0, True), ({"SELECT": "cut-call-executed"}, 0, False),
])
def test_the_action_annotates_the_run_and_writes_a_summary(runs, tmp_path, inputs, code, annotated):
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    check = action["runs"]["steps"][1]
    names = {name: re.search(r"inputs\.([\w-]+)", value)[1] for name, value in check["env"].items()}
    given = {name: str(action["inputs"][each].get("default", "")) for name, each in names.items()}
    tools = tmp_path / "loop-inspector" / "bin"
    tools.mkdir(parents=True)
    (tools / "inspector").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m inspector "$@"\n')
    (tools / "inspector").chmod(0o755)
    summary = tmp_path / "summary.md"
    ended = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", check["run"]], cwd=runs.parent, capture_output=True, text=True,
        check=False, env={**os.environ, **given, "PATHS": "runs", **inputs, "RUNNER_TEMP": str(tmp_path),
                          "GITHUB_STEP_SUMMARY": str(summary), "PYTHONPATH": str(ROOT)})
    assert ended.returncode == code, ended.stderr
    assert ("::error file=runs/b.session.jsonl,line=1,title=answer-cut::" in ended.stdout) is annotated
    assert ("`answer-cut`" in summary.read_text("utf-8")) is annotated


@pytest.mark.skipif(not os.environ.get("INSPECTOR_CLEAN"), reason="it installs from a registry: INSPECTOR_CLEAN=1")
def test_both_work_from_nothing(runs, tmp_path):
    """The action's steps, one after the other, with the runner's variables; the hook by pre-commit itself."""
    source = tmp_path / "source"
    subprocess.run(["git", "clone", "-q", ROOT, source], check=True)
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL", "LOOP_"))}
    runner = {**bare, "RUNNER_TEMP": str(tmp_path), "GITHUB_ACTION_PATH": str(source), "PATHS": "runs",
              "FAIL_ON": "error", "SELECT": "", "BASELINE": "", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    codes = [subprocess.run(["bash", "-e", "-o", "pipefail", "-c", step["run"]], cwd=runs.parent, env=runner,
                            check=False).returncode
             for step in yaml.safe_load((source / "action.yml").read_text("utf-8"))["runs"]["steps"]]
    assert codes == [0, 1]
    assert "`answer-cut`" in (tmp_path / "summary.md").read_text("utf-8")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "hooks"], check=True)
    subprocess.run([tmp_path / "hooks/bin/pip", "install", "-q", "pre-commit"], check=True, capture_output=True)
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *words], cwd=runs, check=True)
    words = [tmp_path / "hooks/bin/pre-commit", "try-repo", source, "loop-inspector-check", "--all-files"]
    ended = subprocess.run(words, cwd=runs, capture_output=True, text=True, check=False,
                           env={**bare, "PRE_COMMIT_HOME": str(tmp_path / "cache")})
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "answer-cut" in ended.stdout


def test_the_hook_takes_the_files_that_it_names(runs):
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    staged = [path for path in sorted(runs.iterdir()) if re.search(hook["files"], path.name)]
    assert len(staged) == 2
    words = hook["entry"].split()
    assert words[0] == "inspector"
    ended = subprocess.run([sys.executable, "-m", *words, *map(str, staged)], cwd=ROOT, capture_output=True, text=True,
                           check=False)
    assert ended.returncode == 1
    assert "answer-cut" in ended.stdout
