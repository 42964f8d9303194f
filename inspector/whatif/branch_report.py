"""Reports a branch compared with its original, and the saved branches of a session, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import unified_diff
from pathlib import Path
from typing import Any

from inspector.config.settings import command, from_record, record_of
from inspector.report.explain_document import document
from inspector.report.facts import TurnFacts, View
from inspector.report.lines.header import output
from inspector.report.lines.spans import count_of, inert, one_line
from inspector.report.lines.steps import end_words
from inspector.report.run_answers import fidelity_of
from inspector.whatif.branch_lines import edit_lines, edit_values, live_sources, stand_in_remark
from inspector.whatif.store import Store
from inspector.whatif.tree import ORIGINAL, Branch, Node, Tree, first_difference_of, original_of, tree_prefix
from loop_core.errors import CallerError
from loop_core.turn.state import ProviderResponse, Recut, Turn
from loop_core.turn.trace import Fidelity, limit_usage

SCHEMA = "loop-inspector/replay/2"


def text(branch: Branch) -> str:
    """The comparison as linear text, the conclusion first."""
    return "\n".join(_lines(branch)) + "\n"


def _lines(branch: Branch) -> Iterator[str]:
    if not branch.view.turns:
        yield one_line(branch.view.headline())
        return
    yield f"{branch.name}: {summary(branch)}"
    yield f"fidelity: {trust(branch)}"
    if branch.unrecorded and run_fidelity(branch) is not Fidelity.LIVE:
        yield "to go on: --live asks the provider, --stand-in makes an answer up on this machine"
    yield from (one_line(line) for line in edit_lines(branch))
    yield from (f"asked live: {one_line(line)}" for line in live_sources(branch))
    yield from (f"simulated: {line}" for line in stand_in_remark(branch))
    yield from (f"token boundaries: {line}" for line in boundaries(branch))
    if branch.difference is not None:
        old, new = (_step(view, branch.difference) for view in (branch.original, branch.view))
        became = f"{old} has another text" if old == new else f"{old} became {new}"
        yield f"first difference: step {branch.difference + 1:,}, {became}"
    alike = []
    turns = zip(branch.original.turns, branch.view.turns, strict=True)
    for then, now in sorted(turns, key=lambda pair: pair[0].verdict.rank):  # the worst first
        if first_difference_of(then.run, now.run) is None:
            alike.append(now)
            continue
        yield ""
        which = f"{branch.view.place(now)} ({now.id})"
        was, ends = end_words(then.final_turn), end_words(now.final_turn)
        yield f"{which}: {_change_text(was, ends) or f'{ends}, as before'}"
        said = f" · {one_line(now.verdict.sentence)}" if now.verdict.sentence != then.verdict.sentence else ""
        word = now.verdict.word
        yield f"  verdict: {_change_text(then.verdict.word, word) or f'{word}, as before'}{said}"
        yield f"  segments: {_change_text(then.segments, now.segments) or now.segments}"
        yield f"  spent: {spend_text(branch.view.end_of(now))}"
        if now.notice:
            yield f"  notice: {one_line(now.notice)}"
        yield from (f"  {line}" for line in merged_diff(then, now))
    if alike:
        yield ""
        yield f"{count_of(len(alike), 'turn')} as before"


def _change_text(then: object, now: object) -> str:
    return "" if then == now else f"{then} became {now}"


def summary(branch: Branch) -> str:
    """The effect of the change, in one sentence."""
    if branch.difference is None:
        return "nothing changes"
    if not branch.changed_turns:
        return "steps change, but every turn ends as before"
    pairs = [(original_of(branch, turn), turn) for turn in branch.changed_turns]
    # Turns that end in another state come before those with only another text; then the worst comes first.
    before, turn = min(pairs, key=lambda pair: (_same_end(*pair), pair[0].verdict.rank))
    effect = f"turn {branch.view.number(turn):,} ends in {end_words(turn.final_turn)}"
    if turn.terminal == "completed" and not turn.verdict.clean:  # a policy may run a cut call and go on to the end
        effect += f", {turn.verdict.word}"
    if _same_end(before, turn):
        effect += ", as before, with another text"
    more = len(pairs) - 1
    return effect + (f" (and {count_of(more, 'more turn changes', 'more turns change')})" if more else "")


def _same_end(before: TurnFacts, turn: TurnFacts) -> bool:
    return end_words(before.final_turn) == end_words(turn.final_turn)


def trust(branch: Branch) -> str:
    """The fidelity of the branch, where it leaves the recording, and whether the known answers suffice."""
    replay = branch.view.replay
    left = replay.trace.departure
    where = "" if left is None else f" from step {left + 1:,} (turn {replay.turn_at(left) + 1:,})"
    return f"{run_fidelity(branch).value}{where}; {_ends(branch)}"


def run_fidelity(branch: Branch) -> Fidelity:
    """The fidelity of the first step that departs from the recording; RECORDED if none does."""
    left = branch.view.replay.trace.departure
    return Fidelity.RECORDED if left is None else branch.view.steps[left].fidelity


def boundaries(branch: Branch) -> list[str]:
    """The bases on which the simulated answers' token boundaries are known: how often each was used, and why."""
    found: dict[str, list[Recut]] = {}
    for recut in _recuts(branch):
        found.setdefault(recut.basis, []).append(recut)
    texts = [f"{basis} for {count_of(len(cuts), 'answer')} ({cuts[0].note})" for basis, cuts in found.items()]
    guessed = _estimated_steps(branch)
    if guessed:
        step, recut = guessed[0]
        count = f"{len(guessed):,} of {count_of(sum(map(len, found.values())), 'cut')}"
        texts.append(f"ESTIMATED in {count}; at step {step + 1:,} {recut.between}")
    return texts


def _estimated_steps(branch: Branch) -> list[tuple[int, Recut]]:
    """The steps whose answers a budget cut at an estimated place."""
    cuts = ((index, step.estimated_cut) for index, step in enumerate(branch.view.steps))
    return [(index, cut) for index, cut in cuts if cut is not None]


def _recuts(branch: Branch) -> list[Recut]:
    events = [step.event for step in branch.view.steps]
    return [each.recut for each in events if isinstance(each, ProviderResponse) and each.recut is not None]


def _ends(branch: Branch) -> str:
    if not branch.unrecorded:
        if run_fidelity(branch) is Fidelity.LIVE:
            return "what follows was asked live"
        simulated = branch.view.replay.trace.departure is not None
        return f"{'what it knows' if simulated else 'the recording'} answers everything that was asked"
    turn = branch.unrecorded[0]
    where = f"step {turn.run.deciding_step + 1:,} (turn {branch.view.number(turn):,})"
    if fidelity_of(branch.view, turn) is Fidelity.LIVE:
        return f"the live run stops at {where}"
    return f"what is asked at {where} was never recorded"


def _step(view: View, index: int) -> str:
    if index >= len(view.steps):
        return "the end"
    step = view.steps[index]
    return f"{step.state.value}" + (f" ({step.signal.value})" if step.signal else "")


def spend_text(turn: Turn) -> str:
    """The total output and what was spent of each limit, in words."""
    return ", ".join([output(turn.spend), *(
        f"{short} {spent:,} of {'no bound' if limit is None else f'{limit:,}'}"
        for _, short, spent, limit in limit_usage(turn)
    )])


def merged_diff(then: TurnFacts, now: TurnFacts) -> list[str]:
    """The merged texts as a unified diff without control characters; empty if they are equal."""
    before, after = inert(then.joined_text.text).split("\n"), inert(now.joined_text.text).split("\n")
    return list(unified_diff(before, after, "original", "branch", lineterm=""))


def values(branch: Branch) -> dict[str, Any]:
    """The comparison as one JSON document: the branch's `explain` document, and the differences."""
    left = branch.view.replay.trace.departure
    return {
        "schema": SCHEMA,
        "name": branch.name,
        "fidelity": run_fidelity(branch).value,
        "first_simulated": None if left is None or run_fidelity(branch) is Fidelity.LIVE else left + 1,
        "first_live": next((index + 1 for index, step in enumerate(branch.view.steps)
                            if step.fidelity is Fidelity.LIVE), None),
        "asked_live": live_sources(branch),
        **edit_values(branch),
        "token_boundaries": sorted({recut.basis for recut in _recuts(branch)}),
        "estimated": [{"step": step + 1, "least": recut.apart[0], "most": recut.apart[1]}
                      for step, recut in _estimated_steps(branch) if recut.apart is not None],
        "first_difference": None if branch.difference is None else branch.difference + 1,
        "summary": summary(branch),
        "turns": [
            {
                "id": now.id,
                "before": {"final_state": then.final_state.value, "terminal_reason": then.terminal},
                "after": {"final_state": now.final_state.value, "terminal_reason": now.terminal},
                "spent": {"requests": now.spend.requests,
                          "output_tokens": now.spend.output_tokens,
                          **{short: spent for _, short, spent, _ in limit_usage(now.final_turn)}},
                "limits": {short: limit for _, short, _, limit in limit_usage(branch.view.end_of(now))},
                "unrecorded": now in branch.unrecorded,
                "fidelity": fidelity_of(branch.view, now).value,
                "merged_text_diff": merged_diff(then, now),
            }
            for then, now in zip(branch.original.turns, branch.view.turns, strict=True)
        ],
        "explain": document(branch.view),
    }


# -- The saved runs of a session: made again from their settings, and listed with their ends ---------------------------


BRANCHES_SCHEMA = "loop-inspector/branches/1"


def restore_tree(original: View, store: Store) -> tuple[Tree, list[str]]:
    """The tree of the saved runs, and a line for each run that cannot be made again. All runs stay saved."""
    tree, notices = Tree(original), list(store.notices)
    nodes = {ORIGINAL: tree.original}
    for key, act in store.kept.branches.items():
        parent = nodes.get(act["parent"])
        if parent is None:
            notices.append(f"branch {key}: the run that it was made from is missing")
            continue
        try:
            problems = load_live_runs(original, live_run_in(act["settings"]), store.folder)
            notices += [f"branch {key}: {line}" for line in problems]
            settings = replace(from_record(act["settings"]), prices=original.prices)
            nodes[key], _ = tree.add(parent, settings, act["from_step"] - 1, key)
        except CallerError as why:
            notices.append(f"branch {key}: {why}")
    return tree, notices


def live_run_in(settings: Mapping[str, Any]) -> str | None:
    """The live run named in a record of settings."""
    changed = settings.get("set")
    name = changed.get("live") if isinstance(changed, Mapping) else None
    return name if isinstance(name, str) else None


def load_live_runs(original: View, name: str | None, folder: Path) -> list[str]:
    """Loads the recordings of live runs from the data folder; returns a line for each missing one. Raises `CallerError`
    if the recording that `name` names is missing or cannot be read."""
    live_runs = original.replay.case.live_runs
    if name is None or name in live_runs:
        return []
    from inspector.live.branch_run import recall  # imported here, because only a live branch needs it

    live_runs[name] = recall(name, folder)
    return [live_runs[name].problem] if live_runs[name].problem else []


def save_branch(store: Store, node: Node) -> None:
    """Saves a branch, and the branches that it was made from."""
    if node.parent is None or (node.key in store.kept.branches and node.key not in store.unkept):
        return
    save_branch(store, node.parent)
    replay = node.view.replay
    store.branch(node.key, node.parent.key, record_of(replay.settings), replay.since)


def command_of(node: Node, paths: Sequence[str], api: str | None = None, profile: str | None = None) -> str:
    """The command line that makes this run without the app."""
    replay = node.view.replay
    return command(paths, replay.settings, api, profile, replay.since, replay.earlier)


def branches_text(tree: Tree, store: Store) -> str:
    """The runs as a tree, each with its end, then the other saved data."""
    rows = [(tree_prefix(follows) + node.name, node) for node, follows in tree.rows()]
    width = max(len(one_line(title)) for title, _ in rows)
    lines = []
    for title, node in rows:
        description, branch = one_line(node.view.headline()), node.branch
        if branch is not None:
            parts = "" if branch.difference is None else f"; differs at step {branch.difference + 1:,}"
            description = f"{node.key}  {summary(branch)}{parts}"
        lines.append(f"{one_line(title):<{width}}  {description}")
    acts = store.kept
    lines += [f"mark  {_place(tree, run, step)}" for run, step in sorted(acts.marks)]
    lines += [f"note  {_place(tree, run, step)}: {one_line(note)}" for (run, step), note in acts.notes.items()]
    lines += [f"breakpoint  {one_line(each)}{'' if on else ' (off)'}" for each, on in acts.breakpoints.items()]
    return "\n".join(lines) + "\n"


def _place(tree: Tree, run: str, step: int | None) -> str:
    name = next((node.path for node in tree.every if node.key == run), run)
    where = "the session" if step is None else f"step {step + 1:,}"
    return one_line(where if run == ORIGINAL else f"{where} of {name}")


def branches_values(tree: Tree, store: Store, paths: Sequence[str]) -> dict[str, Any]:
    """The saved runs as one JSON document."""
    acts = store.kept
    return {
        "schema": BRANCHES_SCHEMA,
        "session": store.path.stem,
        "file": str(store.path),
        "branches": [_value(node, paths) for node in tree.every if node.parent is not None],
        "marks": [{"run": run, "step": step + 1} for run, step in sorted(acts.marks)],
        "notes": [{"run": run, "step": None if step is None else step + 1, "text": note}
                  for (run, step), note in acts.notes.items()],
        "breakpoints": [{"text": each, "on": on} for each, on in acts.breakpoints.items()],
    }


def _value(node: Node, paths: Sequence[str]) -> dict[str, Any]:
    replay, branch = node.view.replay, node.branch
    return {
        "key": node.key,
        "name": node.name,
        "path": node.path,
        "parent": node.parent.key if node.parent else None,
        "from_step": replay.since + 1,
        "settings": record_of(replay.settings),
        "first_difference": None if branch is None or branch.difference is None else branch.difference + 1,
        "summary": "" if branch is None else summary(branch),
        "turns": [{"id": turn.id, "final_state": turn.final_state.value, "terminal_reason": turn.terminal}
                  for turn in node.view.turns],
        "command": command_of(node, paths),
    }
