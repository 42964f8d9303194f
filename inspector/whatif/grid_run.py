"""Runs a grid: every turn in every cell, on all cores, with progress; a cancelled run keeps its results."""

from __future__ import annotations

import gc
import os
import signal
import time
import warnings
from array import array
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, wraps
from itertools import chain
from math import inf
from operator import add
from typing import Any, Concatenate, ParamSpec, TypeVar

from inspector.replay.case import Case, case_as_profile
from inspector.report.findings import ReportedFinding, recorded_findings
from inspector.report.run_answers import file_names
from inspector.sessions import cores, end_with_caller
from inspector.whatif.grid import UNDONE_CODE, End, Grid, TurnGrid, Value
from inspector.whatif.sweep import Sweep, SweptEnds
from loop_core.turn.state import State

# -- Work shared by forked processes ---------------------------------------------------------------------------------
# The processes inherit their input, so that no large value is copied or sent. If a process dies or has an error, the
# caller does its remaining tasks, and gets the error itself.

POLL = 0.05
"""The largest number of seconds until a request to cancel is noticed."""
CHUNKS = 32
"""The number of chunks of tasks per process; a process that is done takes over chunks of another."""


def run_tasks(
    tasks: Sequence[int], work: Callable[[int], Any], jobs: int, cancelled: Callable[[], bool], alone: float = 0.0
) -> Iterator[tuple[int, Any]]:
    """Runs tasks, after `alone` seconds in processes; yields each with its result, and ends early when cancelled."""
    until = time.monotonic() + alone
    left = dict.fromkeys(reversed(tasks))  # the next one at the end, where it is taken out at once
    while left and not cancelled():
        if min(jobs, len(left)) > 1 and hasattr(os, "fork") and time.monotonic() >= until:
            for task, result in _share_tasks([*reversed(left)], work, min(jobs, len(left)), cancelled):
                del left[task]
                yield task, result
            until = inf  # tasks that workers left undone are done here
        else:
            task, _ = left.popitem()
            yield task, work(task)


def _share_tasks(
    tasks: Sequence[int], work: Callable[[int], Any], jobs: int, cancelled: Callable[[], bool]
) -> Iterator[tuple[int, Any]]:
    from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait  # most grids end before this import
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    size = -(-len(tasks) // (jobs * CHUNKS))
    chunks = [tasks[start : start + size] for start in range(0, len(tasks), size)]
    context = get_context("fork")
    stop = context.RawValue("b", 0)  # shared memory without a lock, which a worker could die with

    def run_chunk(tasks: Sequence[int]) -> Chunk:
        return [(task, work(task)) for task in tasks if not stop.value]

    pool = ProcessPoolExecutor(jobs, context, _begin_worker, (run_chunk,))
    try:
        with warnings.catch_warnings():
            # Python warns of a fork beside other threads; a worker only computes, and shares no lock with them.
            warnings.simplefilter("ignore", DeprecationWarning)
            waiting = {pool.submit(_run_chunk, chunk) for chunk in chunks}
        while waiting and not cancelled():
            done, waiting = wait(waiting, POLL, FIRST_COMPLETED)
            for future in done:
                if future.exception() is None:
                    yield from future.result()
    except BrokenProcessPool:
        pass  # a worker died while it received its tasks
    finally:
        stop.value = 1
        pool.shutdown(cancel_futures=True)


Chunk = list[tuple[int, Any]]
"""Tasks with their results."""
_work_here: Callable[[Sequence[int]], Chunk]
"""In a worker: the function that runs a chunk of tasks. A worker can inherit a function, but not receive one."""


def _begin_worker(work: Callable[[Sequence[int]], Chunk]) -> None:
    global _work_here
    _work_here = work
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the caller decides
    gc.disable()
    end_with_caller()


def _run_chunk(tasks: Sequence[int]) -> Chunk:
    return _work_here(tasks)


Progress = Callable[[int, int], None]
"""A callback with the number of finished parts of the work and the number of all parts."""
ALONE = 0.1
"""The seconds for which this process works alone; most grids need no further process."""


@dataclass(frozen=True, slots=True)
class SmallestCap:
    """The smallest max_tokens that is enough, with the values of all axes."""

    values: tuple[Value, ...]
    cell: int
    """The cell of the map that shows this max_tokens: the one with the next larger value of the grid."""
    ends: tuple[End, ...]
    """The end of each of the turns with this max_tokens."""
    below: tuple[End, ...] = ()
    """The end of each turn with one token less; empty if there is no smaller max_tokens, or if none was searched."""
    below_values: tuple[Value, ...] = ()


def _sum_of(value: Callable[[End], int]) -> cached_property[list[int]]:
    """For each cell, the sum of a value of the ends of all turns. Turns that were not run count as 0."""

    def sums(tuned: TunedGrid) -> list[int]:
        if not tuned.done:  # 100,000 blank turns would take 0.2 s in the app's own thread
            return [0] * tuned.grid.size
        # Turns with equal runs share their codes, and are summed before the cells are examined.
        alike: dict[int, tuple[array[int], list[int]]] = {}
        for turn in tuned.turns:
            values = list(map(value, turn.ends))
            codes, of_ends = alike.setdefault(id(turn.codes), (turn.codes, [0] * len(values)))
            of_ends[:] = map(add, of_ends, values)
        totals = [0] * tuned.grid.size
        for codes, of_ends in alike.values():
            by_code = {UNDONE_CODE: 0, **dict(enumerate(of_ends))}
            totals = list(map(add, totals, map(by_code.__getitem__, codes)))
        return totals

    return cached_property(sums)


@dataclass(frozen=True, slots=True)
class Edge:
    """The smallest max_tokens of some turns, with all other limits as in their best cell."""

    budget: int
    turns: tuple[int, ...]
    """The indices of the turns in the session."""
    ends: tuple[End, ...]
    """The end of each turn with this max_tokens."""
    below: tuple[End, ...]
    """The end of each turn with one token less; empty if there is no smaller max_tokens."""
    grain: str
    """The precision with which the max_tokens is known, in words."""

    @property
    def worse(self) -> tuple[int, ...]:
        """The turns that would cost more, or not complete, with one token less: indices into `ends`."""
        pairs = zip(self.below, self.ends, strict=False)
        return tuple(place for place, (below, end) in enumerate(pairs) if not is_as_good([below], [end]))


def cost(ends: Sequence[End]) -> tuple[int, int]:
    """The cost of turns together: their output tokens, then their requests."""
    return sum(end.spend.output_tokens for end in ends), sum(end.spend.requests for end in ends)


def is_as_good(candidate: Sequence[End], ends: Sequence[End]) -> bool:
    """Whether turns do as well as in `ends`: each that completes there completes here, at no higher total cost."""
    all_complete = all(now.complete for now, end in zip(candidate, ends, strict=True) if end.complete)
    return all_complete and cost(candidate) <= cost(ends)


@dataclass(frozen=True)
class TunedGrid:
    """A grid with its results, complete or cancelled."""

    grid: Grid
    turns: tuple[TurnGrid, ...]
    done: int
    """The number of finished parts of the work, out of `parts`; smaller if the run was cancelled."""
    parts: int
    case: Case | None = None
    """The case that was run, for searches between the values of the grid."""
    findings: Sequence[tuple[ReportedFinding, ...]] = ()
    """The findings about the recording of each turn."""
    searches: dict[Hashable, Any] = field(default_factory=dict, compare=False)
    """A search (`search_once`) and its arguments -> what it found."""

    # Each of these is a sum over all turns, for each cell.
    run_counts = _sum_of(lambda end: 1)
    """The number of turns that were run."""
    completed = _sum_of(lambda end: end.complete)
    """The number of complete turns (`End.complete`)."""
    incomplete = _sum_of(lambda end: not end.complete and end.state is not State.UNRECORDED)
    """The number of turns that are not complete, although the recording reaches their end."""
    unrecorded = _sum_of(lambda end: end.state is State.UNRECORDED)
    """The number of turns that the recording does not contain to their end."""
    simulated = _sum_of(lambda end: end.simulated)
    """The number of turns that ended with a simulated answer."""
    tokens = _sum_of(lambda end: end.spend.output_tokens)
    """The number of output tokens."""
    requests = _sum_of(lambda end: end.spend.requests)
    """The number of requests."""
    segments = _sum_of(lambda end: end.segments)
    """The number of responses in the answers."""

    @property
    def cancelled(self) -> bool:
        """Whether some cells were not run."""
        return self.done < self.parts

    @cached_property
    def most_run(self) -> int:
        """The largest number of turns run in any cell: all of them, unless the run was cancelled."""
        return max(self.run_counts)

    @cached_property
    def files(self) -> Mapping[str, str]:
        """The path of each file -> its name."""
        return file_names({turn.path for turn in self.turns})

    def single_turn(self, turn: int | None) -> int | None:
        """The turn that is shown alone: the given one, or the only one; None if all are shown together."""
        return 0 if turn is None and len(self.turns) == 1 else turn

    def is_comparable(self, cell: int) -> bool:
        """Whether as many turns were run in a cell as in any other, so that its sums can be compared with theirs."""
        return 0 < self.run_counts[cell] == self.most_run

    def ends(self, turns: Sequence[int], cell: int) -> tuple[End, ...]:
        """The ends of these turns in a cell, without turns that were not run in it."""
        return tuple([end for turn in turns if (end := self.turns[turn].end(cell)) is not None])


P = ParamSpec("P")
T = TypeVar("T")


def search_once(search: Callable[Concatenate[TunedGrid, P], T]) -> Callable[Concatenate[TunedGrid, P], T]:
    """Decorates a search in a grid to store its results in the grid, so that it is made only once."""

    @wraps(search)
    def search_or_recall(tuning: TunedGrid, /, *arguments: P.args, **named: P.kwargs) -> T:
        key = (search, arguments, *named.items())
        if key not in tuning.searches:
            tuning.searches[key] = search(tuning, *arguments, **named)
        result: T = tuning.searches[key]
        return result

    return search_or_recall


def tune(
    case: Case,
    grid: Grid,
    jobs: int | None = None,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> TunedGrid:
    """Runs every turn of the case in every cell of the grid. `jobs` bounds the processes, None: one for each core.
    `cancelled` is called repeatedly; once it returns true, the results so far are returned. Raises `CallerError` if a
    session file holds a limit that does not exist or is out of range, or there is no such profile."""
    stop = cancelled or (lambda: False)
    case = case_as_profile(case, grid.base.profile)
    records = case.recording.turns
    # Simulated cells with different max_tokens share no run, so each group is one part of the work.
    each = [(group,) for group in grid.groups] if grid.base.simulate else [grid.groups]
    parts = len(records) * len(each)
    findings = recorded_findings(case)
    sweeps = [Sweep(case, record, grid, of_turn) for record, of_turn in zip(records, findings, strict=True)]
    places: list[dict[End, int]] = [{} for _ in records]
    codes = [array("I", [UNDONE_CODE]) * grid.size for _ in records]

    def work(part: int) -> SweptEnds:
        which, turn = divmod(part, len(records))
        return sweeps[turn].sweep(each[which])

    done = 0
    for part, (ends, swept) in run_tasks(range(parts), work, jobs or cores(), stop, ALONE):
        which, turn = divmod(part, len(records))
        own = [places[turn].setdefault(end, len(places[turn])) for end in ends]
        cells = chain.from_iterable(group.cells for group in each[which])
        for cell, code in zip(cells, swept, strict=True):
            codes[turn][cell] = own[code]
        done += 1
        if progress is not None:
            progress(done, parts)
    alike: dict[bytes, tuple[list[int], array[int]]] = {}  # turns with equal results share their codes
    found: list[TurnGrid] = []
    for record, ended, turn_codes in zip(records, places, codes, strict=True):
        key = turn_codes.tobytes()
        if key not in alike:
            alike[key] = _reorder(turn_codes)
        ends, (first, cells_ends) = tuple(ended), alike[key]
        path = case.opening(record).path
        found.append(TurnGrid(record.id, path, tuple([ends[code] for code in first]), cells_ends))
    return TunedGrid(grid, tuple(found), done, parts, case, findings)


def blank(case: Case, grid: Grid) -> TunedGrid:
    """The grid before any turn was run. The turns are not examined, which would take seconds if they are many."""
    codes = array("I", [UNDONE_CODE]) * grid.size
    turns = [TurnGrid(record.id, case.opening(record).path, (), codes) for record in case.recording.turns]
    return TunedGrid(grid, tuple(turns), 0, len(turns), case)


def _reorder(codes: Sequence[int]) -> tuple[list[int], array[int]]:
    """The codes in the order of their first cells, and each cell's index among them: processes end in any order."""
    first = [code for code in dict.fromkeys(codes) if code != UNDONE_CODE]
    place = {UNDONE_CODE: UNDONE_CODE, **{code: number for number, code in enumerate(first)}}
    return first, array("I", map(place.__getitem__, codes))
