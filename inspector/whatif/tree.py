"""The runs of one session as a tree, comparisons of runs, and the alignment of the steps of two turns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby, zip_longest
from typing import Any, NamedTuple

from inspector.config.settings import Settings, name_of, record_of, settings_of
from inspector.replay import Replay, TurnRun
from inspector.report.facts import TurnFacts, View, view
from loop_core.errors import CallerError
from loop_core.turn.state import Finish, RunTools, Send, State
from loop_core.turn.trace import Step, first_difference, step_key

ORIGINAL = "original"
"""The name and the key of the run with which a session opens."""

# -- A what-if -------------------------------------------------------------------------------------------------------
# The same case under other settings, compared with the run that it was made from, or with any other run. A branch never
# changes the run that it was made from, and shares with it every step that its settings do not change.


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Branch:
    """One run compared with another: by default with the run that it was made from."""

    name: str
    """The change in an operator's words: `attempts=5`, `attempts=5 from step 7`."""
    original: View
    """The other run."""
    view: View
    difference: int | None
    """The index of the first step that differs; None if no step differs."""
    changed_turns: tuple[TurnFacts, ...]
    """The turns whose end differs, with their facts in the branch."""
    unrecorded: tuple[TurnFacts, ...]
    """The turns in which the branch requests more than was recorded."""
    beside: str = ORIGINAL
    """The name of the other run."""


def original_of(branch: Branch, turn: TurnFacts) -> TurnFacts:
    """The turn of the other run with the same index."""
    return branch.original.turns[branch.view.number(turn) - 1]


def branch(parent: View, settings: Settings, since: int = 0, beside: str = ORIGINAL) -> Branch:
    """Runs the case again under other settings, which hold from step `since`; `beside` is the parent's name. Raises
    `CallerError` if the parent has no such step."""
    from inspector.replay.rerun import rerun  # imported here, which saves 2 ms of the first frame

    new_run = rerun(parent.replay, settings, since)
    name = name_of(parent.replay.settings, settings) + (f" from step {since + 1}" if since else "")
    return compare(parent, view(new_run, parent), name, beside)


def compare(left: View, right: View, name: str = "", beside: str = ORIGINAL) -> Branch:
    """Compares any two runs of one recording: the right one with the left one."""
    changed = tuple(now for then, now in zip(left.turns, right.turns, strict=True) if then is not now and _end(
        then) != _end(now))
    unrecorded = tuple(turn for turn in right.turns if turn.final_state is State.UNRECORDED)
    first = first_difference(left.replay.trace, right.replay.trace)
    return Branch(name, left, right, first, changed, unrecorded, beside)


def _end(turn: TurnFacts) -> tuple[State, str, str]:
    return (turn.final_state, turn.terminal, turn.joined_text.text)


class Preview(NamedTuple):
    """The effect of a change before a branch is made."""

    difference: int | None
    """The index of the first step that would differ; None if no step would."""
    steps: int
    """The number of steps that would change or disappear."""
    turns: tuple[int, ...]
    """The indices of the turns whose end would differ."""


def preview(run: Replay, settings: Settings, since: int) -> Preview:
    """The effect of a change, computed fast enough for each key while the change is typed. Raises `CallerError` if the
    run has no such step."""
    from inspector.replay.rerun import rerun

    new_run = rerun(run, settings, since)
    steps, turns = 0, []
    for index, (old, new) in enumerate(zip(run.turns, new_run.turns, strict=True)):
        if old.same_steps(new):
            continue
        steps += sum(not row.same for row in step_pairs(old, new))
        then, now = old.final_turn, new.final_turn
        ends = [(turn.outcome or turn.state, turn.terminal, turn.joined_answer().text) for turn in (then, now)]
        if ends[0] != ends[1]:
            turns.append(index)
    return Preview(first_difference(run.trace, new_run.trace), steps, tuple(turns))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Node:
    """One run, and its parent."""

    key: str
    name: str
    """The changes of the run against its parent, in words."""
    view: View
    parent: Node | None = None
    branch: Branch | None = None
    """The comparison of the run with its parent; None for the original."""

    @property
    def depth(self) -> int:
        """The number of branches from the original to this run."""
        return 0 if self.parent is None else self.parent.depth + 1

    @property
    def path(self) -> str:
        """All changes since the original, separated by ` / `."""
        if self.parent is None or self.parent.parent is None:
            return self.name
        return f"{self.parent.path} / {self.name}"


def key_of(parent: str, settings: Settings, since: int) -> str:
    """The key of a branch: twelve hexadecimal digits, computed from its parent's key, its settings and its step."""
    from hashlib import sha256

    document = json.dumps([parent, record_of(settings), since], sort_keys=True, ensure_ascii=True)
    return sha256(document.encode("utf-8", "backslashreplace")).hexdigest()[:12]


class Tree:
    """The runs in the order in which they were made; parents come before their branches."""

    def __init__(self, original: View) -> None:
        self.original = Node(ORIGINAL, ORIGINAL, original)
        self.every: list[Node] = [self.original]

    def add(
        self, parent: Node, settings: Settings, since: int | None = None, key: str | None = None
    ) -> tuple[Node, bool]:
        """The branch of a node with these settings, and whether it is new: an equal branch is reused. The settings hold
        from step `since`; None: from the step from which the parent's hold. `key` is the key under which the branch was
        saved. Raises `CallerError` if the parent has no such step, or a setting cannot be used."""
        replay = parent.view.replay
        since = replay.since if since is None else since
        if settings == replay.settings and since >= replay.since:
            return parent, False
        earlier = [stretch for stretch in replay.stretches if stretch.since < since]
        stretches = (*earlier, (since, settings))
        found = next((node for node in self.every if node.view.replay.stretches == stretches), None)
        if found is not None:
            return found, False
        new_branch = branch(parent.view, settings, since, parent.path)
        node = Node(key or key_of(parent.key, settings, since), new_branch.name, new_branch.view, parent, new_branch)
        self.every.append(node)
        return node, True

    def try_settings(self, start: Node, stretches: Sequence[tuple[int | None, Mapping[str, str]]]) -> Node:
        """The branch in which these assignments hold from these steps, one after another. Raises `CallerError` for a
        step or a name that does not exist, or a value out of range."""
        node = start
        for since, assignments in stretches:
            node, _ = self.add(node, settings_of(assignments, node.view.replay.settings), since)
        return node

    def beside(self, node: Node, other: Node) -> Branch:
        """A run compared with any other; with its parent if both are the same run."""
        if node is other:
            return node.branch or compare(node.view, node.view, "unchanged", node.path)
        if node.branch is not None and node.parent is other:
            return node.branch
        line = [each for each in reversed(path_to(node)) if each not in path_to(other)]
        return compare(other.view, node.view, ", ".join(each.name for each in line) or node.name, other.path)

    def remove(self, node: Node) -> list[Node]:
        """Removes a branch and its descendants; returns the removed nodes. The original stays."""
        if node is self.original:
            return []
        gone = [each for each in self.every if node in path_to(each)]
        self.every = [each for each in self.every if each not in gone]
        return gone

    def rows(self) -> Iterator[tuple[Node, tuple[bool, ...]]]:
        """The nodes in drawing order, parents first; with each, for every level below the original, whether a sibling
        follows."""
        yield from self._below(self.original, ())

    def _below(self, node: Node, follows: tuple[bool, ...]) -> Iterator[tuple[Node, tuple[bool, ...]]]:
        yield node, follows
        children = [each for each in self.every if each.parent is node]
        for number, child in enumerate(children):
            yield from self._below(child, (*follows, number < len(children) - 1))

    def find(self, name: str) -> Node:
        """The run with this key, abbreviated key, path or name. Raises `CallerError` if there is none, or several."""
        for fits in (
            [each for each in self.every if name in (each.key, each.path)],
            [each for each in self.every if each.name == name],
            [each for each in self.every if len(name) >= 4 and each.key.startswith(name)],
        ):
            if len(fits) == 1:
                return fits[0]
            if fits:
                raise CallerError(f"run {name!r}: {len(fits)} have that name; their keys are "
                                  + ", ".join(each.key for each in fits))
        paths = ", ".join(each.path for each in self.every)
        raise CallerError(f"there is no run {name!r}; the runs are {paths}")


def tree_prefix(follows: tuple[bool, ...]) -> str:
    """The drawn branches before a node of a tree."""
    if not follows:
        return ""
    return "".join("│ " if more else "  " for more in follows[:-1]) + ("├ " if follows[-1] else "└ ")


def path_to(node: Node) -> list[Node]:
    """A run and its ancestors, the original last."""
    return [node] if node.parent is None else [node, *path_to(node.parent)]


# -- The steps of two turns, aligned: of one turn in two runs, or of any two turns ------------------------------------
# Two runs of one turn evaluate the same responses, so steps are paired by the responses that came before them. Two
# different turns are aligned by the longest sequences of moves that they have in common.


class StepPair(NamedTuple):
    """The index of a step of the left turn and of one of the right turn; None on a side without a step."""

    left: int | None
    right: int | None
    same: bool
    """Whether the two steps are the same move with the same outcome."""

    @property
    def number(self) -> int:
        """The number of the right step, from 1; if there is none, that of the left one."""
        return (self.right if self.right is not None else self.left or 0) + 1


class EqualSteps(NamedTuple):
    """Consecutive steps that both turns share."""

    left: int
    """The index of the first of these steps in the left turn."""
    right: int
    size: int
    """The number of these steps."""


SMALL = 2_000
"""The number of steps up to which two turns are searched for common sequences. Longer turns are paired in order."""


def move_key(step: Step) -> tuple[Any, ...]:
    """What makes steps of different turns equal: move, stop word, request and end, but not number or spend."""
    turn, evaluation = step.turn, step.turn.evaluation
    word = evaluation.word if evaluation is not None and step.state is State.EVALUATE_STOP else None
    sends = tuple((each.place, each.ordinal, each.method) for each in step.effects if isinstance(each, Send))
    calls = tuple(tuple((verdict.call.name, verdict.admission) for verdict in each.batch)
                  for each in step.effects if isinstance(each, RunTools))
    ends = tuple(each.terminal for each in step.effects if isinstance(each, Finish))
    return (turn.state, step.signal, word, sends, calls, ends)


def step_pairs(left: TurnRun, right: TurnRun) -> list[StepPair]:
    """The pairs of all steps of one turn in two runs, in order."""
    if left.same_steps(right):
        return [StepPair(left.first + at, right.first + at, True) for at in range(left.end - left.first)]

    def same(one: int, other: int) -> bool:
        before, after = left.steps[one], right.steps[other]
        return before is after or step_key(before) == step_key(after)

    groups = zip_longest(_groups(left.steps), _groups(right.steps), fillvalue=range(0))
    return list(_pair_steps(left, right, groups, same))


def move_pairs(left: TurnRun, right: TurnRun) -> list[StepPair]:
    """The pairs of all steps of two different turns, in order; steps with equal moves are paired."""
    old, new = ([move_key(step) for step in run.steps] for run in (left, right))
    if max(len(old), len(new)) > SMALL:
        groups = [(range(len(old)), range(len(new)))]
    else:
        blocks = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        groups = [(range(i, j), range(k, m)) for _, i, j, k, m in blocks]
    return list(_pair_steps(left, right, groups, lambda one, other: old[one] == new[other]))


def _pair_steps(
    left: TurnRun, right: TurnRun, groups: Iterable[tuple[range, range]], same: Callable[[int, int], bool]
) -> Iterator[StepPair]:
    """The steps of both turns beside each other, group by group."""
    for ones, others in groups:
        for one, other in zip_longest(ones, others):
            equal = one is not None and other is not None and same(one, other)
            yield StepPair(None if one is None else left.first + one, None if other is None else right.first + other,
                           equal)


def first_difference_of(left: TurnRun, right: TurnRun) -> StepPair | None:
    """The first pair of steps in which one turn differs between two runs; None if none does."""
    return next((pair for pair in step_pairs(left, right) if not pair.same), None)


def differing_step(branch: Branch, turn: int | None) -> int | None:
    """The first step of a run, in the turn with this index or in any, that differs from the other run; None if none."""
    if turn is None:
        return branch.difference
    run = branch.view.turns[turn].run
    found = first_difference_of(branch.original.turns[turn].run, run)
    # A turn that is only shorter differs at its last step.
    return None if found is None else run.end - 1 if found.right is None else found.right


def _groups(steps: Sequence[Step]) -> list[range]:
    """The steps in groups, each but the first beginning with the evaluation of a response."""
    starts = [index for index, step in enumerate(steps) if step.state is State.EVALUATE_STOP]
    return [range(first, end) for first, end in zip([0, *starts], [*starts, len(steps)], strict=True)]


def fold_pairs(pairs: Sequence[StepPair]) -> list[StepPair | EqualSteps]:
    """The pairs with two or more consecutive equal ones folded into one."""
    found: list[StepPair | EqualSteps] = []
    for same, group in groupby(pairs, key=lambda pair: pair.same):
        few = list(group)
        first = few[0]
        if same and len(few) > 1 and first.left is not None and first.right is not None:
            found.append(EqualSteps(first.left, first.right, len(few)))
        else:
            found += few
    return found


def unfold_pair(equal: EqualSteps) -> list[StepPair]:
    """The pairs that were folded into one value."""
    return [StepPair(equal.left + at, equal.right + at, True) for at in range(equal.size)]
