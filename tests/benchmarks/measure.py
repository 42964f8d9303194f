"""Ratios measured side by side: rounds that alternate between the candidates, CPU time, the best of each.

CPU time and not wall time, because the machine is shared; the best and not the mean, because noise only adds.
"""

from __future__ import annotations

import gc
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the report; without a bound it is only told."""

    name: str
    value: float
    unit: str = "×"
    most: float | None = None
    least: float | None = None
    note: str = ""

    @property
    def verdict(self) -> str:
        """PASS or FAIL where there is a bound."""
        if self.most is None and self.least is None:
            return "    "
        kept = (self.most is None or self.value <= self.most) and (self.least is None or self.value >= self.least)
        return "PASS" if kept else "FAIL"

    def __str__(self) -> str:
        bound = ""
        if self.most is not None:
            bound = f"at most {self.most:g}{self.unit}"
        elif self.least is not None:
            bound = f"at least {self.least:g}{self.unit}"
        value = f"{self.value:.2f}{self.unit}"
        return f"{self.verdict}  {self.name:<58} {value:>10}  {bound:<16} {self.note}".rstrip()


@dataclass(frozen=True, slots=True)
class Skip:
    """A measurement that cannot be made here, and why."""

    name: str
    why: str

    verdict = "SKIP"

    def __str__(self) -> str:
        return f"SKIP  {self.name:<58} {self.why}"


Report = Iterator[Line | Skip]


most_rounds = 1_000
"""No measurement takes more rounds; one is enough to see that it runs (`run.py --once`)."""


def best(candidates: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The least CPU seconds of each candidate over a number of rounds, each round running all of them."""
    for run in candidates.values():
        run()  # imports, caches and the allocator settle
    found = dict.fromkeys(candidates, float("inf"))
    for _ in range(min(rounds, most_rounds)):
        for name, run in candidates.items():
            gc.collect()
            start = time.process_time()
            run()
            found[name] = min(found[name], time.process_time() - start)
    return found


def cpu_of(command: Sequence[str], *, cwd: str | None = None) -> float:
    """CPU seconds of a command from start to end, its children included."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=cwd)
    said = process.stderr.read() if process.stderr else b""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        told = said.decode(errors="replace")[-500:]
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {told}")
    return used.ru_utime + used.ru_stime


def milliseconds(*seconds: float) -> str:
    """Times beside each other, for a note."""
    return "(" + " / ".join(f"{each * 1000:.2f} ms" for each in seconds) + ")"
