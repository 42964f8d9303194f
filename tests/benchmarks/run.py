"""Prints the project's performance as ratios, each measured against its yardstick in the same run.

    python tests/benchmarks/run.py                    everything, some minutes
    python tests/benchmarks/run.py decoding corpus    only these groups
    python tests/benchmarks/run.py --once decoding    one round, to see that the benchmarks run: no bound counts

Exit code 1 where a bound is broken. docs/benchmarks.md tells what is measured and how.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE)]  # this checkout, and the modules beside this file
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # programs that are started are measured with their byte code cached

GROUPS = ("decoding", "simulated", "corpus", "masking", "whatif", "start", "size", "screens", "tuning", "serving",
          "browser", "live")


def main(groups: list[str]) -> int:
    """Runs the groups and prints a line for each measurement."""
    once = groups[:1] == ["--once"]
    if once:
        measure = import_module("measure")
        groups, measure.most_rounds = groups[1:], 1  # type: ignore[attr-defined]
    unknown = [name for name in groups if name not in GROUPS]
    if unknown:
        print(f"unknown group {unknown[0]!r}; expected {', '.join(GROUPS)}", file=sys.stderr)
        return 2
    failed = 0
    for group in groups or GROUPS:
        print(f"\n{group}", flush=True)
        for line in import_module(group).report():
            failed += line.verdict == "FAIL"
            print(line, flush=True)
    if once:
        return 0
    print(f"\n{failed} broken" if failed else "\nall bounds kept")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
