"""A branch beside its original, as text and as plain values.

First divergence, end states, spend, and the merged texts diffed.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff
from typing import Any

from inspector.report.document import document
from inspector.report.facts import TurnFacts, View
from inspector.report.inert import inert, one_line
from inspector.whatif.branch import Branch
from loop_core.events import remaining

SCHEMA = "loop-inspector/replay/1"


def text(made: Branch) -> str:
    """The comparison as linear text, the answer first."""
    return "\n".join(_lines(made)) + "\n"


def _lines(made: Branch) -> Iterator[str]:
    if not made.view.turns:
        yield one_line(made.view.headline())
        return
    yield f"{made.name}: {summary(made)}"
    yield f"fidelity: RECORDED; {_ends(made)}"
    if made.difference is not None:
        yield f"first difference: step {made.difference + 1}, {_step(made.original, made.difference)} became " + _step(
            made.view, made.difference
        )
    for then, now in zip(made.original.turns, made.view.turns, strict=True):
        yield ""
        yield f"turn {made.view.number(now)} of {len(made.view.turns)} ({now.id}): {_end(then)} became {_end(now)}" if (
            _end(then) != _end(now)
        ) else f"turn {made.view.number(now)} of {len(made.view.turns)} ({now.id}): {_end(now)}, as before"
        yield f"  spent: {spend(now)}"
        if now.ended.notice:
            yield f"  notice: {one_line(now.ended.notice)}"
        yield from (f"  {line}" for line in merged_diff(then, now))


def summary(made: Branch) -> str:
    """What the change did, in one sentence."""
    if made.difference is None:
        return "nothing changes"
    if not made.changed:
        return "steps change, but every turn ends as before"
    first = made.changed[0]
    return f"turn {made.view.number(first)} ends in {_end(first)}" + (
        f" (and {len(made.changed) - 1} more turns end otherwise)" if len(made.changed) > 1 else ""
    )


def _ends(made: Branch) -> str:
    if not made.unrecorded:
        return "the recording answers everything that was asked"
    turn = made.unrecorded[0]
    where = f"step {turn.run.decided + 1} (turn {made.view.number(turn)})"
    return f"the recording ends at {where}: what is asked there was never recorded"


def _step(view: View, index: int) -> str:
    if index >= len(view.steps):
        return "the end"
    step = view.steps[index]
    return f"{step.state.value}" + (f" ({step.signal.value})" if step.signal else "")


def _end(turn: TurnFacts) -> str:
    return f"{turn.final_state.value} {turn.terminal}"


def spend(turn: TurnFacts) -> str:
    """Spent against each limit, in words."""
    return ", ".join(
        f"{short} {spent:,} of {'no bound' if limit is None else f'{limit:,}'}"
        for _, short, spent, limit in remaining(turn.ended)
    )


def merged_diff(then: TurnFacts, now: TurnFacts) -> list[str]:
    """The merged texts as a unified diff, inert; empty where they are equal."""
    before, after = inert(then.merged.text).split("\n"), inert(now.merged.text).split("\n")
    return list(unified_diff(before, after, "original", "branch", lineterm=""))


def values(made: Branch) -> dict[str, Any]:
    """The comparison as one JSON document: the branch's own `explain` document, and what differs."""
    return {
        "schema": SCHEMA,
        "name": made.name,
        "fidelity": "RECORDED",
        "first_difference": None if made.difference is None else made.difference + 1,
        "summary": summary(made),
        "turns": [
            {
                "id": now.id,
                "before": {"final_state": then.final_state.value, "terminal_reason": then.terminal},
                "after": {"final_state": now.final_state.value, "terminal_reason": now.terminal},
                "spent": {short: spent for _, short, spent, _ in remaining(now.ended)},
                "limits": {short: limit for _, short, _, limit in remaining(now.ended)},
                "unrecorded": now in made.unrecorded,
                "merged_text_diff": merged_diff(then, now),
            }
            for then, now in zip(made.original.turns, made.view.turns, strict=True)
        ],
        "explain": document(made.view),
    }
