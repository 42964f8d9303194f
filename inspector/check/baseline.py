"""Baselines: the known problems as fingerprints, which stay the same if lines move or files are renamed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from inspector.check.examine import Problem, Report
from loop_core.errors import CallerError

SCHEMA = "loop-inspector/baseline/1"


def read(path: str) -> frozenset[str]:
    """The fingerprints of a baseline.

    Raises:
        CallerError: it is no baseline, or cannot be read.
    """
    try:
        value: Any = json.loads(Path(path).read_text("utf-8"))
    except OSError as why:
        raise CallerError(f"{path}: cannot be read: {why.strerror or why}") from None
    except (ValueError, RecursionError):
        raise CallerError(f"{path}: invalid JSON: expected a baseline of `inspector check --write-baseline`") from None
    known = value.get("problems") if isinstance(value, dict) and value.get("schema") == SCHEMA else None
    if not isinstance(known, dict):
        raise CallerError(f"{path}: no baseline: expected an object with \"schema\": \"{SCHEMA}\" and \"problems\"")
    return frozenset(known)


def baseline_text(report: Report) -> str:
    """A baseline of all problems of a report, with a description beside each fingerprint for people."""
    known = {problem.fingerprint: {"rule": problem.rule, "message": problem.message, "file": problem.file}
             for problem in sorted(report.problems, key=lambda each: (each.file, each.turn, each.rule))}
    return json.dumps({"schema": SCHEMA, "problems": known}, ensure_ascii=False, indent=1) + "\n"


def is_new(known: frozenset[str], problem: Problem) -> bool:
    """Whether a problem is not in the baseline."""
    return problem.fingerprint not in known
