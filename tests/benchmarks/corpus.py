"""The recorded corpus, where it is at hand: replaying against decoding, explaining against reading JSON."""

from __future__ import annotations

import functools
import gc
import json
import os
from pathlib import Path

from measure import Line, Report, Skip, best, milliseconds

from inspector.check import check_paths, report_forms
from inspector.check.rules import selected_rules
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.explain_document import document
from inspector.report.facts import view
from inspector.sessions import open_paths, without_collector
from loop_core import decode

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 5


def recordings() -> list[str]:
    """The HAR files of the corpus; none where it is absent."""
    folder = Path(os.environ.get("LOOP_INSPECTOR_CORPUS") or ROOT.parent / "shared" / "corpus")
    return sorted(str(path) for path in (folder / "har").rglob("*.har"))


def forget() -> None:
    """Empties every cache of ours, so that each round pays for all."""
    for found in gc.get_objects():
        if isinstance(found, functools._lru_cache_wrapper):
            owner = found.__module__ or ""
            if owner.split(".")[0] in ("inspector", "loop_core") and owner != "loop_core.wire":
                found.cache_clear()


@without_collector  # as the command does
def explain(paths: list[str]) -> object:
    forget()
    return document(view(replay(open_case(open_paths(paths)))))


def read_json(paths: list[str]) -> None:
    for path in paths:
        with open(path, "rb") as file:
            json.loads(file.read())


def report() -> Report:
    """Replay and explanation of all recordings together."""
    paths = recordings()
    if not paths:
        yield Skip("machine replay ÷ decoding", "no corpus; name its folder with LOOP_INSPECTOR_CORPUS")
        return
    case = open_case(open_paths(paths))
    sent = [(each.api, each.body, each.response.http_status, each.headers)
            for each in case.recording.exchanges if each.recorded]

    def decode_all() -> None:
        for api, body, status, headers in sent:
            decode(api, body, http_status=status, headers=headers)

    def replay_all() -> None:
        replay(case)

    took = best({"replay": replay_all, "decode": decode_all, "judge": lambda: open_case(case.recording)}, ROUNDS)
    yield Line(f"machine replay ÷ decoding, {len(sent):,} recorded exchanges", took["replay"] / took["decode"],
               most=0.3, note=milliseconds(took["replay"], took["decode"]))
    yield Line("judging ÷ decoding", took["judge"] / took["decode"], note=milliseconds(took["judge"], took["decode"]))
    took = best({"explain": lambda: explain(paths), "json": lambda: read_json(paths)}, ROUNDS)
    yield Line(f"explaining {len(paths)} HAR files ÷ json.loads of them", took["explain"] / took["json"], most=10,
               note=milliseconds(took["explain"], took["json"]))
    took = best({"check": lambda: check_all(paths), "explain": lambda: explain_all(paths)}, ROUNDS)
    yield Line(f"checking {len(paths)} HAR files in one process ÷ `explain --json` of them", took["check"] /
               took["explain"], most=1.2, note=milliseconds(took["check"], took["explain"]))


def check_all(paths: list[str]) -> None:
    forget()
    report_forms.as_json(check_paths(paths, selected_rules(), jobs=1))


def explain_all(paths: list[str]) -> None:
    json.dumps(explain(paths))
