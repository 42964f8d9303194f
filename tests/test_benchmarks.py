"""The benchmarks run: they are no part of the tests, and would else break unseen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.scenes.bodies import chat_stream, entry, har, user

ROOT = Path(__file__).resolve().parent.parent
GROUPS = ("simulated", "corpus", "masking")


def test_a_round_of_the_benchmarks_measures_all_that_they_name(tmp_path: Path) -> None:
    (tmp_path / "har").mkdir()
    streamed = entry([user("Hello.")], chat_stream("Hello, you."), mime="text/event-stream", stream=True)
    (tmp_path / "har" / "one.har").write_text(har(streamed))
    command = [sys.executable, "tests/benchmarks/run.py", "--once", *GROUPS]
    ran = subprocess.run(command, cwd=ROOT, env={**os.environ, "LOOP_INSPECTOR_CORPUS": str(tmp_path)},
                         capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    lines = [line for line in ran.stdout.splitlines() if line and line not in GROUPS]
    assert len(lines) == 6 + 4 + 1
    assert "1 recorded exchanges" in ran.stdout
    assert all(not line.startswith("SKIP") and "×" in line for line in lines)
