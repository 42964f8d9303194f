"""The runs of a session as they were kept: made again from their settings, and told with how they end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inspector.config.settings import command, from_record, record_of
from inspector.report.facts import View
from inspector.report.lines.spans import one_line
from inspector.whatif import comparison
from inspector.whatif.store import Store
from inspector.whatif.tree import ORIGINAL, Node, Tree, drawn
from loop_core.errors import CallerError

BRANCHES_SCHEMA = "loop-inspector/branches/1"


def restored(original: View, store: Store) -> tuple[Tree, list[str]]:
    """The tree of the runs that were kept, and a line for each that cannot be made; those stay kept."""
    tree, notices = Tree(original), list(store.notices)
    known = {ORIGINAL: tree.original}
    for key, act in store.kept.branches.items():
        parent = known.get(act["parent"])
        if parent is None:
            notices.append(f"branch {key}: the run that it was made from is not there")
            continue
        try:
            told = remembered(original, live_in(act["settings"]), store.folder)
            notices += [f"branch {key}: {line}" for line in told]
            known[key], _ = tree.add(parent, from_record(act["settings"]), act["from_step"] - 1, key)
        except CallerError as why:
            notices.append(f"branch {key}: {why}")
    return tree, notices


def live_in(settings: Mapping[str, Any]) -> str | None:
    """The live run that a record of settings names."""
    held = settings.get("set")
    name = held.get("live") if isinstance(held, Mapping) else None
    return name if isinstance(name, str) else None


def remembered(original: View, name: str | None, folder: Path) -> list[str]:
    """Has what a live run heard at hand, from its recording in the data folder; what is missing of it, a line each.

    Raises:
        CallerError: the recording is not there, or cannot be read.
    """
    heard = original.replay.case.heard
    if name is None or name in heard:
        return []
    from inspector.live.branch_run import recall  # only a live branch pays for it

    heard[name] = recall(name, folder)
    return [heard[name].problem] if heard[name].problem else []


def keep(store: Store, node: Node) -> None:
    """Keeps a branch, and those that it was made from."""
    if node.parent is None or (node.key in store.kept.branches and node.key not in store.unkept):
        return
    keep(store, node.parent)
    replay = node.view.replay
    store.branch(node.key, node.parent.key, record_of(replay.settings), replay.since)


def command_of(node: Node, paths: Sequence[str], api: str | None = None, profile: str | None = None) -> str:
    """The command line that makes this run headless."""
    replay = node.view.replay
    return command(paths, replay.settings, api, profile, replay.since, replay.earlier)


def branches_text(tree: Tree, store: Store) -> str:
    """The runs as a tree, each with its end; then what else is kept."""
    rows = [(drawn(follows) + node.name, node) for node, follows in tree.rows()]
    width = max(len(one_line(title)) for title, _ in rows)
    lines = []
    for title, node in rows:
        said = one_line(node.view.headline()) if node.branch is None else _branch_ends(node)
        key = "" if node.branch is None else f"{node.key}  "
        lines.append(f"{one_line(title):<{width}}  {key}{said}")
    kept = store.kept
    lines += [f"mark  {_place(tree, run, step)}" for run, step in sorted(kept.marks)]
    lines += [f"note  {_place(tree, run, step)}: {one_line(note)}" for (run, step), note in kept.notes.items()]
    lines += [f"breakpoint  {one_line(each)}{'' if on else ' (off)'}" for each, on in kept.breakpoints.items()]
    return "\n".join(lines) + "\n"


def _branch_ends(node: Node) -> str:
    made = node.branch
    if made is None or made.difference is None:
        return "nothing changes"
    return f"{comparison.summary(made)}; parts at step {made.difference + 1}"


def _place(tree: Tree, run: str, step: int | None) -> str:
    name = next((node.path for node in tree.every if node.key == run), run)
    where = "the session" if step is None else f"step {step + 1}"
    return one_line(where if run == ORIGINAL else f"{where} of {name}")


def branches_values(tree: Tree, store: Store, paths: Sequence[str]) -> dict[str, Any]:
    """The same as one JSON document."""
    kept = store.kept
    return {
        "schema": BRANCHES_SCHEMA,
        "session": store.path.stem,
        "file": str(store.path),
        "branches": [_value(node, paths) for node in tree.every if node.parent is not None],
        "marks": [{"run": run, "step": step + 1} for run, step in sorted(kept.marks)],
        "notes": [{"run": run, "step": None if step is None else step + 1, "text": note}
                  for (run, step), note in kept.notes.items()],
        "breakpoints": [{"text": each, "on": on} for each, on in kept.breakpoints.items()],
    }


def _value(node: Node, paths: Sequence[str]) -> dict[str, Any]:
    replay, made = node.view.replay, node.branch
    return {
        "key": node.key,
        "name": node.name,
        "path": node.path,
        "parent": node.parent.key if node.parent else None,
        "from_step": replay.since + 1,
        "settings": record_of(replay.settings),
        "first_difference": None if made is None or made.difference is None else made.difference + 1,
        "summary": "" if made is None else comparison.summary(made),
        "turns": [{"id": turn.id, "final_state": turn.final_state.value, "terminal_reason": turn.terminal}
                  for turn in node.view.turns],
        "command": command_of(node, paths),
    }
