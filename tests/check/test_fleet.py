"""The program of docs/fleet.md, run as it stands on two workers of which one is killed: the report is the same."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from inspector.check import check_file, merge
from tests.scenes.recordings import ASKS, chat, lines, pair_of, user

ROOT = Path(__file__).parents[2]
distributed = pytest.importorskip("distributed")


@pytest.mark.filterwarnings("ignore")
def test_a_worker_that_is_killed_costs_no_file(tmp_path, monkeypatch):
    for number in range(24):
        held = [pair_of([user(f"{number}?")], chat(f"Half of {number}", "length"), max_tokens=7)] if number % 3 else []
        (tmp_path / f"{number:02}.jsonl").write_bytes(lines(pair_of(ASKS, chat("All."), max_tokens=50), *held))
    (tmp_path / "99.jsonl").write_text("no session at all")
    (page,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "fleet.md").read_text("utf-8"), re.DOTALL)
    assert len(page.split('if __name__')[0].strip().splitlines()) <= 22
    # The workers are processes of their own: they find the package where the tests do.
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    program = {"__name__": "fleet_page"}
    exec(compile(page, "fleet.md", "exec"), program)
    killed = tmp_path / "killed"
    check = program["check"]

    def check_or_die(url):
        """Kills the worker that is given this file first: the file is under way when it dies, in every run."""
        if url.endswith("12.jsonl") and not killed.exists():
            killed.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return check(url)

    program["check"] = check_or_die
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
                                  local_directory=str(tmp_path / "scratch")) as cluster, \
            distributed.Client(cluster) as client:
        pids = client.run(os.getpid)
        report = program["check_all"](client, f"file://{tmp_path}/*.jsonl")
    assert int(killed.read_text()) in pids.values(), "one of the two workers died"
    alone = merge(check_file(path.read_bytes(), name=f"file://{path}") for path in sorted(tmp_path.glob("*.jsonl")))
    assert report == alone
    assert len(report.problems) == 16
    assert len(report.errors) == 1
    assert program["sarif"](report)
