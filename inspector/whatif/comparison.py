"""A branch beside its original, as text and as plain values.

First divergence, end states, spend, and the merged texts diffed.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff
from typing import Any

from inspector.report.document import document
from inspector.report.facts import TurnFacts, View
from inspector.report.lines.header import output
from inspector.report.lines.spans import inert, one_line
from inspector.whatif.tree import Branch
from loop_core.turn.state import ProviderResponse, Recut, Turn
from loop_core.turn.trace import Fidelity, limit_usage

SCHEMA = "loop-inspector/replay/1"


def text(made: Branch) -> str:
    """The comparison as linear text, the answer first."""
    return "\n".join(_lines(made)) + "\n"


def _lines(made: Branch) -> Iterator[str]:
    if not made.view.turns:
        yield one_line(made.view.headline())
        return
    yield f"{made.name}: {summary(made)}"
    yield f"fidelity: {fidelity(made)}; {_ends(made)}"
    yield from (f"asked live: {one_line(line)}" for line in asked(made))
    yield from (f"token boundaries: {line}" for line in boundaries(made))
    if made.difference is not None:
        yield f"first difference: step {made.difference + 1}, {_step(made.original, made.difference)} became " + _step(
            made.view, made.difference
        )
    for then, now in zip(made.original.turns, made.view.turns, strict=True):
        yield ""
        yield f"turn {made.view.number(now)} of {len(made.view.turns)} ({now.id}): {_end(then)} became {_end(now)}" if (
            _end(then) != _end(now)
        ) else f"turn {made.view.number(now)} of {len(made.view.turns)} ({now.id}): {_end(now)}, as before"
        yield f"  spent: {spend(made.view.end_of(now))}"
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


def fidelity(made: Branch) -> str:
    """How far the branch can be trusted, and where it leaves the recording."""
    left = made.view.replay.trace.departure
    if left is None:
        return worst(made).value
    where = f"step {left + 1} (turn {made.view.replay.turn_at(left) + 1})"
    return f"{worst(made).value} from {where}"


def worst(made: Branch) -> Fidelity:
    """The fidelity of the first step that leaves the recording; RECORDED where none does."""
    left = made.view.replay.trace.departure
    return Fidelity.RECORDED if left is None else made.view.steps[left].fidelity


def asked(made: Branch) -> list[str]:
    """Whom the live answers of a run came from: the address and the model, once each."""
    exchanges = [facts.exchange for facts in made.view.responses if facts.live]
    return list(dict.fromkeys(
        f"{each.url}, model {(each.request.model if each.request else None) or 'not named'}" for each in exchanges))


def boundaries(made: Branch) -> list[str]:
    """What told where tokens end in the simulated answers: each basis, for how many, and why for the first of them."""
    found: dict[str, list[Recut]] = {}
    for recut in _recuts(made):
        found.setdefault(recut.basis, []).append(recut)
    told = [f"{basis} for {len(cuts)} simulated ({cuts[0].note})" for basis, cuts in found.items()]
    guessed = list(_estimated(made))
    if guessed:
        step, recut = guessed[0]
        count = f"{len(guessed):,} of {sum(map(len, found.values())):,} cuts"
        told.append(f"ESTIMATED in {count}; at step {step + 1} {recut.between}")
    return told


def _estimated(made: Branch) -> Iterator[tuple[int, Recut]]:
    """The steps whose answers a budget cut at a place that is not known to the character."""
    for index, step in enumerate(made.view.steps):
        if step.estimated is not None:
            yield index, step.estimated


def _recuts(made: Branch) -> Iterator[Recut]:
    for step in made.view.steps:
        if isinstance(step.event, ProviderResponse) and step.event.recut is not None:
            yield step.event.recut


def _ends(made: Branch) -> str:
    if not made.unrecorded:
        if worst(made) is Fidelity.LIVE:
            return "what follows was asked live"
        simulated = made.view.replay.trace.departure is not None
        return f"{'what it knows' if simulated else 'the recording'} answers everything that was asked"
    turn = made.unrecorded[0]
    where = f"step {turn.run.decided + 1} (turn {made.view.number(turn)})"
    if made.view.steps[turn.run.decided].fidelity is Fidelity.LIVE:
        return f"the live run stops at {where}"
    return f"the recording ends at {where}: what is asked there was never recorded"


def _step(view: View, index: int) -> str:
    if index >= len(view.steps):
        return "the end"
    step = view.steps[index]
    return f"{step.state.value}" + (f" ({step.signal.value})" if step.signal else "")


def _end(turn: TurnFacts) -> str:
    return f"{turn.final_state.value} {turn.terminal}"


def spend(turn: Turn) -> str:
    """All output, and what is spent against each limit, in words."""
    return ", ".join([output(turn.spend), *(
        f"{short} {spent:,} of {'no bound' if limit is None else f'{limit:,}'}"
        for _, short, spent, limit in limit_usage(turn)
    )])


def merged_diff(then: TurnFacts, now: TurnFacts) -> list[str]:
    """The merged texts as a unified diff, inert; empty where they are equal."""
    before, after = inert(then.merged.text).split("\n"), inert(now.merged.text).split("\n")
    return list(unified_diff(before, after, "original", "branch", lineterm=""))


def values(made: Branch) -> dict[str, Any]:
    """The comparison as one JSON document: the branch's own `explain` document, and what differs."""
    left = made.view.replay.trace.departure
    return {
        "schema": SCHEMA,
        "name": made.name,
        "fidelity": worst(made).value,
        "first_simulated": None if left is None or worst(made) is Fidelity.LIVE else left + 1,
        "first_live": next((index + 1 for index, step in enumerate(made.view.steps)
                            if step.fidelity is Fidelity.LIVE), None),
        "asked_live": asked(made),
        "token_boundaries": sorted({recut.basis for recut in _recuts(made)}),
        "estimated": [{"step": step + 1, "least": recut.apart[0], "most": recut.apart[1]}
                      for step, recut in _estimated(made) if recut.apart is not None],
        "first_difference": None if made.difference is None else made.difference + 1,
        "summary": summary(made),
        "turns": [
            {
                "id": now.id,
                "before": {"final_state": then.final_state.value, "terminal_reason": then.terminal},
                "after": {"final_state": now.final_state.value, "terminal_reason": now.terminal},
                "spent": {"requests": now.ended.spend.requests, "output_tokens": now.ended.spend.output_tokens,
                          **{short: spent for _, short, spent, _ in limit_usage(now.ended)}},
                "limits": {short: limit for _, short, _, limit in limit_usage(made.view.end_of(now))},
                "unrecorded": now in made.unrecorded,
                "fidelity": made.view.steps[now.run.decided].fidelity.value,
                "merged_text_diff": merged_diff(then, now),
            }
            for then, now in zip(made.original.turns, made.view.turns, strict=True)
        ],
        "explain": document(made.view),
    }
