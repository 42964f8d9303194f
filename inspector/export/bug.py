"""A bug report: the smallest session that still shows what was found, and the command that shows it.

Exchanges are taken away one at a time as long as the session that is left, written out and read again, still gives the
same finding or verdict; so what is sent around holds little of the user's work, and the report was seen to be true.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version

from inspector.case import open_case
from inspector.export.blocks import Block, Heading, Items, Quote, Said, blocks
from inspector.export.exchange import records
from inspector.export.markdown import markdown
from inspector.replay import replay
from inspector.report.facts import TurnFacts, View, view
from inspector.sessions import open_paths
from inspector.sessions.native import session_bytes
from inspector.sessions.values import Exchange
from inspector.settings import Settings, command
from loop_core.errors import CallerError
from loop_core.values import Severity

MOST_TRIALS = 64
"""Re-readings that the search for a smaller session may take; exchanges of long turns are then dropped by halves."""

Shows = Callable[[View], bool]


def bug_report(seen: View, turn: TurnFacts) -> Mapping[str, str]:
    """File name -> content: the report and the session that it speaks of.

    Raises:
        CallerError: what is shown does not come back when the turn is read alone.
    """
    rule, shows = symptom(seen, turn)
    settings = seen.replay.settings
    exchanges = [seen.responses[index].exchange for index in turn.responses]
    if not shows(reread(exchanges, settings)):
        # What went before the turn matters: all of its conversation, then.
        ids = {other.id for other in seen.turns if other.conversation == turn.conversation}
        exchanges = [facts.exchange for facts in seen.responses if facts.turn in ids]
        if not shows(reread(exchanges, settings)):
            raise CallerError(f"turn {turn.id}: {rule} does not come back when its exchanges are read alone")
    smallest = shrink(exchanges, lambda some: shows(reread(some, settings)))
    name = f"loop-inspector-{rule.replace('.', '-')}"
    again = reread(smallest, settings)
    report = _report(again, name, rule, settings)
    return {f"{name}.jsonl": session_of(smallest, rule).decode("utf-8"), f"{name}.md": report}


def symptom(seen: View, turn: TurnFacts) -> tuple[str, Shows]:
    """What the report is about: the gravest finding of the turn, else its verdict; and whether a session shows it."""
    order = list(Severity)
    grave = [note.finding for note in seen.findings
             if note.turn == turn.id and note.finding.severity is not Severity.INFO]
    if grave:
        rule = min(grave, key=lambda finding: order.index(finding.severity)).rule
        return rule, lambda view_: any(note.finding.rule == rule for note in view_.findings)
    word = turn.verdict.word
    return word.lower().replace(",", "").replace(" ", "-"), lambda view_: any(
        each.verdict.word == word for each in view_.turns)


def session_of(exchanges: Sequence[Exchange], title: str) -> bytes:
    """A session file of these exchanges."""
    return session_bytes(records(exchanges), title=title, provenance="exported from a recording, credentials masked")


def reread(exchanges: Sequence[Exchange], settings: Settings) -> View:
    """The exchanges, written as a session file and read again."""
    return view(replay(open_case(open_paths(["-"], stdin=session_of(exchanges, ""))), settings))


def shrink(exchanges: Sequence[Exchange], holds: Callable[[Sequence[Exchange]], bool]) -> list[Exchange]:
    """The fewest exchanges, found by leaving out ever smaller pieces, for which `holds` is still true."""
    kept, trials = list(exchanges), 0
    size = max(1, len(kept) // 2)
    while len(kept) > 1 and trials < MOST_TRIALS:
        for start in range(0, len(kept), size):
            fewer = kept[:start] + kept[start + size :]
            trials += 1
            if fewer and holds(fewer):
                kept = fewer
                break
            if trials >= MOST_TRIALS:
                break
        else:
            if size == 1:
                break
            size = max(1, size // 2)
            continue
        size = min(size, max(1, len(kept) // 2))
    return kept


def _report(seen: View, name: str, rule: str, settings: Settings) -> str:
    path = f"{name}.jsonl"
    run = command([path], settings) if settings != Settings() else f"inspector explain {path}"
    versions = [f"{each} {_version(each)}" for each in ("loop-inspector", "textual", "pydantic")]
    head: list[Block] = [
        Heading(1, f"Bug report: {rule}"),
        Said(seen.headline()),
        Said("The session beside this report is the smallest that still shows it. To see it:"),
        Quote(run),
        Items((*versions, f"Python {platform.python_version()}", platform.system())),
    ]
    return markdown([*head, *list(blocks(seen))[1:]])


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed as a distribution"
