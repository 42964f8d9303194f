"""Checks many files on all cores: a pool of processes takes them, and the reports are merged.

A file that belongs to another one's session (the transcript of a subagent) is looked at with it. Exchanges that a
logger spread over the files of a folder are looked at together, in the end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from inspector.check.examine import FileProblems, Report, check_paths_together, merge
from inspector.sessions import intake
from inspector.sessions.folders import STDIN, files_of
from inspector.sessions.importers import IMPORTERS

if TYPE_CHECKING:
    from concurrent.futures import Future

FEW = 4
"""Files below which the start of a second process takes longer than it saves (0.1 s each)."""
SMALL = 24_000_000
"""Bytes below which one process looks at all files: about 3 s; several spend 0.3 s more on what each imports."""
AHEAD = 4
"""Files for each process that are handed out before the first of them is back: reports wait in no long queue."""


class FileTask(NamedTuple):
    """The input of one task for a process."""

    paths: tuple[str, ...]
    ids: tuple[str, ...]
    api: str | None
    profile: str | None
    expression: str
    listed: bool
    """Whether a folder listed it: a file that is no session is then counted and not complained of."""
    most: int
    """Bytes that are read at most."""


class FileResult(NamedTuple):
    """The result of one task."""

    report: Report
    alone: bool = False
    """Whether it holds one exchange of a logger, whose conversation may lie over the files of the folder."""


def check_paths(
    paths: Sequence[str], ids: Sequence[str], *, api: str | None = None, profile: str | None = None, wanted: str = "",
    jobs: int | None = None, stdin: bytes | None = None, progress: Callable[[int, int], None] = lambda done, of: None,
) -> Report:
    """Checks files and folders with these rules; `-` is standard input, whose bytes are an argument.

    `jobs` processes share the work; None: as many as there are cores, and one where there is little. `progress` is told
    how many files are done.

    Raises:
        CallerError: there is no such API or profile, or the filter cannot be read.
    """
    first = check_paths_together([STDIN], ids, api=api, profile=profile, wanted=wanted, stdin=stdin) \
        if STDIN in paths else Report()
    every, shut = files_of([path for path in paths if path != STDIN])
    tasks = [FileTask((name,), tuple(ids), api, profile, wanted, listed, intake.most())
             for name, listed in every if not _beside(name, {each for each, _ in every})]
    jobs = min(jobs or _jobs(tasks), len(tasks) or 1)
    reports = [first, *(Report((FileProblems(why.split(": ", 1)[0], error=why),)) for why in shut)]
    alone: dict[str, list[FileTask]] = {}
    for done, (task, result) in enumerate(_results(tasks, jobs), start=1):
        progress(done, len(tasks))
        if result.alone:
            alone.setdefault(os.path.dirname(task.paths[0]), []).append(task)
        else:
            reports.append(result.report)
    for group in alone.values():
        together = group[0]._replace(paths=tuple(sorted(path for task in group for path in task.paths)))
        reports.append(examine(together).report)
    return merge(reports)


def _jobs(tasks: Sequence[FileTask]) -> int:
    """One process for each core, or one for little."""
    size = sum(os.path.getsize(path) for task in tasks for path in task.paths if os.path.isfile(path))
    return os.cpu_count() or 1 if size >= SMALL else 1


def examine(task: FileTask) -> FileResult:
    """Checks the files of one task; it runs in a worker process."""
    intake.set_maximum(task.most)
    report = check_paths_together(task.paths, task.ids, api=task.api, profile=task.profile, wanted=task.expression,
                                  listed=task.listed)
    return FileResult(report, len(task.paths) == 1 and report.spread)


def _results(tasks: Sequence[FileTask], jobs: int) -> Iterator[tuple[FileTask, FileResult]]:
    if jobs < 2 or len(tasks) < FEW:
        yield from ((task, examine(task)) for task in tasks)
        return
    from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    # The first is looked at here: what it imports and compiles, the processes that are forked then have (0.2 s less).
    yield tasks[0], examine(tasks[0])
    left = list(reversed(tasks[1:]))
    running: dict[Future[FileResult], FileTask] = {}
    done = {tasks[0]}
    try:
        # Forked from a process that only reads: what it has imported need not be imported again.
        with ProcessPoolExecutor(jobs, get_context("fork" if hasattr(os, "fork") else "spawn")) as pool:
            while left or running:
                while left and len(running) < jobs * AHEAD:
                    task = left.pop()
                    running[pool.submit(examine, task)] = task
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    task = running.pop(future)
                    result = future.result()
                    done.add(task)
                    yield task, result
    except BrokenProcessPool:  # one was killed, for its memory perhaps: what is left is done here
        yield from ((task, examine(task)) for task in tasks if task not in done)


_FOLDERS = frozenset(row.beside.rpartition("/")[0] for row in IMPORTERS.values() if row.beside)


def _beside(path: str, every: set[str]) -> bool:
    """Whether a file stands in the folder beside its session, where it is read with it."""
    folder, _ = os.path.split(path)
    for name in _FOLDERS:
        if folder.endswith(f"{os.sep}{name}"):
            stem = folder.removesuffix(f"{os.sep}{name}")
            if any(f"{stem}{suffix}" in every for suffix in (".jsonl", ".json")):
                return True
    return False
