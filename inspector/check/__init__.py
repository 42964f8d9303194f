"""Checks recorded sessions by rules, for `inspector check`: in CI, on fleets of machines and for agents.

`check_file` examines one file, or its bytes, and returns a `Report`: the problems that rules find in turns, and how the
turns ended. A report has plain values and no bytes of the session, so it is small, can be pickled and sent to another
process or machine, and can be merged with others (`merge`). `rules` has the rules.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from inspector.check.finders import RuleHit, deciding
from inspector.check.reports import FileProblems, Problem, Report, TurnEnd, merge
from inspector.check.rules import RULES, selected_rules
from inspector.config.settings import Settings
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.facts import TurnFacts, View, view
from inspector.report.lines.spans import one_line
from inspector.report.run_answers import used_responses
from inspector.report.times_and_costs import turn_times
from inspector.sessions import COMPANION, cores, end_with_caller, intake, open_paths, redact, without_collector
from inspector.sessions.copies import equal_files, may_copy, stored_keys
from inspector.sessions.folders import files_of, is_beside, is_session
from inspector.sessions.intake import STDIN
from inspector.sessions.recording import ODD, Recording
from inspector.sessions.traffic import moment
from loop_core.values import At, Severity

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["FileProblems", "Problem", "Report", "check_file", "check_paths", "merge"]

LONGEST = 400
"""The largest number of characters of a message."""


def check_file(
    path_or_bytes: str | os.PathLike[str] | bytes, rules: Sequence[str] | None = None, *, name: str = "",
    api: str | None = None, profile: str | None = None, filter_text: str = "",
) -> Report:
    """Checks one file, or its bytes, together with the files of its session.

    `rules` are ids of `inspector.check.rules.RULES`; None: all. `name` is the file name to report for bytes.
    `filter_text` is a filter expression: only turns with an answer that matches are checked.

    Raises:
        CallerError: there is no such rule, API or profile, or the filter cannot be read.
    """
    ids = selected_rules() if rules is None else [each for each in selected_rules(rules) if each in set(rules)]
    stdin = path_or_bytes if isinstance(path_or_bytes, bytes) else None
    path = STDIN if isinstance(path_or_bytes, bytes) else os.fspath(path_or_bytes)
    return check_paths_together((path,), ids, name=name, api=api, profile=profile, filter_text=filter_text, stdin=stdin)


@without_collector
def check_paths_together(
    paths: Sequence[str], ids: Sequence[str], *, name: str = "", api: str | None, profile: str | None,
    filter_text: str, stdin: bytes | None = None, from_folder: bool = False,
) -> Report:
    """Checks several files as one session. With `from_folder`, a file that is not a session is counted, not reported.
    """
    if filter_text:
        from inspector.report import filters  # most runs need no filter, and the import builds a table of its words

        expression = filters.parse(filter_text)
    if from_folder and not any(map(is_session, paths)):
        shut = [path for path in paths if os.path.isfile(path) and not os.access(path, os.R_OK)]
        return Report(tuple(FileProblems(path, error=f"{one_line(path)}: cannot be read: Permission denied")
                            for path in shut), skipped=len(paths) - len(shut))
    loaded = open_paths(paths, api=api, profile=profile, stdin=stdin, listed=from_folder)
    session_view = view(replay(open_case(loaded), Settings()))
    only = set(filters.responses(expression, session_view)) if filter_text else None
    return _report(session_view, loaded, ids, only, name, from_folder)


def _report(
    view: View, recording: Recording, ids: Sequence[str], only: set[int] | None, name: str, from_folder: bool
) -> Report:
    numbers: Counter[str] = Counter()
    problems: dict[str, list[Problem]] = {}
    turns: dict[str, list[TurnEnd]] = {}
    keys: dict[str, list[tuple[str, ...]]] = {source.path: [] for source in recording.inputs if may_copy(source)}
    for turn in view.turns:
        path = view.path_of(turn)
        numbers[path] += 1
        number = numbers[path]
        if path in keys:
            keys[path].append(stored_keys(view.responses[index].exchange for index in turn.responses))
        if only is None or not only.isdisjoint(link.index for link in turn.run.record.links):
            problems.setdefault(path, []).extend(_problems(view, turn, ids, name or path, number))
            turns.setdefault(path, []).append(_turn_end(view, turn, number))
    files = [source for source in recording.inputs if source.format != "folder"]
    listed = [source for source in files if not (from_folder and (source.error or "").endswith(COMPANION))]
    return Report(tuple(
        FileProblems(
            name or source.path, tuple(problems.get(source.path, ())), tuple(turns.get(source.path, ())),
            one_line(redact.text(source.error or ""), LONGEST),
            tuple(sorted(Counter(each.unread_format for each in source.skipped if each.unread_format).items())),
            tuple(keys.get(source.path, ())))
        for source in listed),
        sum(len(source.skipped) for source in recording.inputs if source.format == "folder") + len(files) - len(listed),
        len(listed) == 1 and listed[0].format == "pairs" and len(recording.exchanges) == 1)


def _problems(view: View, turn: TurnFacts, ids: Sequence[str], file: str, number: int) -> Iterator[Problem]:
    counts: Counter[tuple[str, str]] = Counter()
    for name in ids:
        rule = RULES[name]
        try:
            hits = list(dict.fromkeys(rule.find(view, turn)))  # two sources of a rule may report the same thing
        except ODD:
            continue  # an odd value in a request must not hide the findings of other rules
        for hit in hits:
            yield _problem(view, turn, hit, name, rule.severity, file, number, counts)


def _problem(
    view: View, turn: TurnFacts, hit: RuleHit, name: str, severity: Severity, file: str, number: int,
    counts: Counter[tuple[str, str]],
) -> Problem:
    facts = view.responses[hit.response] if hit.response is not None else deciding(view, turn)
    severity = Severity.WARNING if severity is Severity.ERROR and not hit.sure else severity
    message = one_line(redact.text(hit.message), LONGEST)  # masked first: a cut credential is not recognized
    if facts is None:
        return Problem(name, severity.value, message, file, number, fingerprint=_fingerprint(name, turn.id.encode(), 0))
    exchange = facts.exchange
    key = (name, sha256(exchange.body).hexdigest())  # counted by body: two answers with equal bytes stay two problems
    counts[key] += 1
    at = hit.at or At()
    in_body = at.part.value == "body" and at.start is not None
    return Problem(
        name, severity.value, message, file, number, exchange.entry, exchange.lines[0] if exchange.lines else None,
        at.start if in_body else None, at.end if in_body else None, redact.text(at.pointer or ""),
        exchange.model or "", facts.agent, _fingerprint(name, exchange.body, counts[key]),
    )


def _fingerprint(rule: str, body: bytes, count: int) -> str:
    """A hash of the rule, the bytes of the answer and a count; the same if lines move or files are renamed."""
    return sha256(b"\0".join((rule.encode(), sha256(body).digest(), str(count).encode()))).hexdigest()[:32]


def _turn_end(view: View, turn: TurnFacts, number: int) -> TurnEnd:
    facts = deciding(view, turn)
    answers = used_responses(view, turn)
    counts = [each.exchange.response.usage.output_tokens if each.exchange.response.usage else None for each in answers]
    times = turn_times(view, turn)
    start = moment(times.started) if times is not None else None
    return TurnEnd(
        number, turn.verdict.word, turn.verdict.severity.value, turn.verdict.complete,
        facts.exchange.model or "" if facts else "", facts.agent if facts else "", _day(start),
        facts.judgement.stop.normalized.value if facts else "",
        sum(count for count in counts if count is not None), counts.count(None),
        turn.verdict.simulated)


def _day(nanoseconds: float | None) -> str:
    if nanoseconds is None:
        return ""
    try:
        return datetime.fromtimestamp(nanoseconds / 1e9, UTC).strftime("%Y-%m-%d")
    except (OverflowError, OSError, ValueError):
        return ""


# -- Many files on all cores: a pool of processes examines them, and the reports are merged ---------------------------
# A file that belongs to the session of another file (the transcript of a subagent) is examined with that file. If a
# logger spread exchanges over the files of a folder, these are examined together at the end.

FEW = 4
"""The number of files below which no second process is started: its start (0.1 s) takes longer than it saves."""
SMALL = 24_000_000
"""The number of bytes below which one process checks all (3 s); with several, each spends 0.3 s on imports."""
AHEAD = 4
"""The number of files per process that are submitted at a time, so that finished reports do not pile up."""


class FileTask(NamedTuple):
    """The input of one task for a process."""

    paths: tuple[str, ...]
    ids: tuple[str, ...]
    api: str | None
    profile: str | None
    expression: str
    listed: bool
    """Whether the files were found in a folder, where a file that is not a session is counted and not reported."""
    most: int
    """The largest number of bytes that is read from one input."""


def check_paths(
    paths: Sequence[str], ids: Sequence[str], *, api: str | None = None, profile: str | None = None,
    filter_text: str = "", jobs: int | None, stdin: bytes | None = None,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Report:
    """Checks files and folders with these rules; `-` is standard input, whose bytes are an argument. `jobs` processes
    share the work; None: one for each core, or only one if there is little work. `progress` is called with the number
    of finished files. Raises `CallerError` if there is no such API or profile, or the filter cannot be read."""
    first = check_paths_together([STDIN], ids, api=api, profile=profile, filter_text=filter_text, stdin=stdin) \
        if STDIN in paths else Report()
    every, shut = files_of([path for path in paths if path != STDIN])
    names = {name for name, _ in every}
    tasks = [FileTask((name,), tuple(ids), api, profile, filter_text, listed, intake.most())
             for name, listed in every if not is_beside(name, names)]
    jobs = min(jobs or _jobs(tasks), len(tasks) or 1)
    reports = [first, *(Report((FileProblems(why.split(": ", 1)[0], error=why),)) for why in shut)]
    # Exchanges of a logger, whose conversation may be spread over several files of a folder.
    alone: dict[str, list[tuple[FileTask, Report]]] = {}
    for done, (task, report) in enumerate(_results(tasks, jobs), start=1):
        progress(done, len(tasks))
        if report.spread:
            alone.setdefault(os.path.dirname(task.paths[0]), []).append((task, report))
        else:
            reports.append(report)
    equal = equal_files(file.path for report in reports for file in report.files if file.every_turn)
    reports = [report._replace(files=tuple(
        file._replace(same_as=equal.get(file.path, "")) for file in report.files)) for report in reports]
    for group in alone.values():
        task, report = group[0]
        paths = tuple(sorted(path for task, _ in group for path in task.paths))
        reports.append(report if len(group) == 1 else examine(task._replace(paths=paths)))
    return merge(reports)


def _jobs(tasks: Sequence[FileTask]) -> int:
    """The number of processes: one for each core, or only one for little work."""
    size = sum(os.path.getsize(path) for task in tasks for path in task.paths if os.path.isfile(path))
    return cores() if size >= SMALL else 1


def examine(task: FileTask) -> Report:
    """Checks the files of one task; it runs in a worker process."""
    intake.set_maximum(task.most)  # a spawned process does not inherit the maximum from the command line
    return check_paths_together(task.paths, task.ids, api=task.api, profile=task.profile, filter_text=task.expression,
                                from_folder=task.listed)


def _results(tasks: Sequence[FileTask], jobs: int) -> Iterator[tuple[FileTask, Report]]:
    if jobs < 2 or len(tasks) < FEW:
        yield from ((task, examine(task)) for task in tasks)
        return
    from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    # The first file is checked in this process, so that the forked processes inherit the imported modules and compiled
    # patterns (this saves 0.2 s).
    yield tasks[0], examine(tasks[0])
    left = list(reversed(tasks[1:]))  # tasks are taken from the end, which is cheap for a list
    running: dict[Future[Report], FileTask] = {}
    done = {tasks[0]}
    try:
        # The processes are forked from one that only reads, so that they inherit its imported modules.
        context = get_context("fork" if hasattr(os, "fork") else "spawn")
        with ProcessPoolExecutor(jobs, context, end_with_caller) as pool:
            while left or running:
                while left and len(running) < jobs * AHEAD:
                    task = left.pop()
                    running[pool.submit(examine, task)] = task
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    task = running.pop(future)
                    report = future.result()
                    done.add(task)
                    yield task, report
    except BrokenProcessPool:  # a process was killed, perhaps for its memory use, and this process does the rest
        yield from ((task, examine(task)) for task in tasks if task not in done)
