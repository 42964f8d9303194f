"""Finds the answers of a run, recorded or built from the steps of a simulation, and its blocks of steps."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping
from os.path import commonpath, dirname, relpath
from typing import NamedTuple

from inspector.config.settings import Settings, name_of
from inspector.replay import TurnRun
from inspector.report.facts import ResponseFacts, TurnFacts, View
from inspector.report.judged_turn import exchange_of, place_of
from inspector.sessions.recording import Link
from loop_core.turn.state import ProviderResponse, State
from loop_core.turn.trace import Fidelity

UNRECORDED = -1
"""The index of an answer that is in no recording."""


def answering_step(view: View, step: int) -> int | None:
    """The step that received the current response; None before the first."""
    steps = view.steps
    if steps[step].turn.evaluation is None:
        return None
    while not isinstance(steps[step].event, ProviderResponse):
        step -= 1
    return step


def answer_at(view: View, step: int) -> ResponseFacts | None:
    """The current response at a step; None before the first."""
    index = view.steps[step].response
    if index is not None:
        return view.responses[index]
    at = answering_step(view, step)
    return None if at is None else _simulated_facts(view, at)


def answers_of(view: View, first: int, end: int) -> Iterator[tuple[int, ResponseFacts]]:
    """The responses that the steps `first` to `end` received, each with its step."""
    for step in range(first, end):
        if isinstance(view.steps[step].event, ProviderResponse):
            found = answer_at(view, step)
            if found is not None:
                yield step, found


def _simulated_facts(view: View, at: int) -> ResponseFacts:
    step = view.steps[at]
    event, evaluation, before = step.event, step.turn.evaluation, step.before
    assert isinstance(event, ProviderResponse)  # noqa: S101 - `answering_step` stops at one
    assert evaluation is not None  # noqa: S101 - such a step has evaluated its answer
    assert before is not None  # noqa: S101 - a request precedes every answer
    turn = view.turn_of(at)
    after = view.steps[at + 1] if at + 1 < turn.run.end else step
    # A simulated answer has no recorded request, so it gets the address and format of the first one of its turn.
    opening = view.replay.case.recording.exchanges[turn.responses[0]]
    cut = event.recut
    why = ("in no recording" if cut is None else
           "cut again without a cap" if cut.budget is None else f"cut again at max_tokens {cut.budget:,}")
    link = Link(UNRECORDED, place_of(before), before.last_send.ordinal if before.last_send else 0, why)
    return ResponseFacts(
        UNRECORDED, exchange_of(opening, event, before), evaluation.judgement, evaluation.verdicts, link, turn.id,
        len(step.turn.answers[-1]), after.state if after.previous_state is State.EVALUATE_STOP else None,
        "never saw this answer: it is in no recording", at, cut,
    )


def fidelity_of(view: View, turn: TurnFacts) -> Fidelity:
    """How far the answers that decided a turn can be trusted."""
    return view.steps[turn.run.deciding_step].fidelity


def used_responses(view: View, turn: TurnFacts) -> list[ResponseFacts]:
    """The responses of a turn that are in a file, without those that a live run or a stand-in replaced."""
    return [view.responses[link.index] for link in turn.run.record.links]


def recut_responses(view: View, turn: TurnFacts) -> list[ResponseFacts]:
    """The simulated answers of a turn, which are in no file: recorded output that was cut at another budget."""
    if not any(each.settings.simulate for each in view.replay.stretches):
        return []
    return [facts for _, facts in answers_of(view, turn.run.first, turn.run.end) if facts.recut is not None]


def settings_words(view: View) -> str:
    """The settings of a run that differ from the defaults, with the steps from which they hold; empty if none does."""
    before, words = Settings(), []
    for since, settings in view.replay.stretches:
        if settings != before and (name := name_of(before, settings)) != "unchanged":
            words.append(name + (f" from step {since + 1}" if since else ""))
        before = settings
    return "; ".join(words)


def branch_files(view: View) -> Iterator[tuple[str, str, int]]:
    """The files of answers that were requested again: path, who answered, and the number of responses."""
    live = [facts for facts in view.responses if facts.live]
    for path in dict.fromkeys(facts.exchange.path for facts in live):
        own = [facts for facts in live if facts.exchange.path == path]
        who = "SIMULATED: answered by a stand-in" if own[0].simulated else "LIVE: asked again"
        yield path, who, len(own)


# -- The runs of turns as blocks of steps, and short names of the files they were read from --------------------------


class Block(NamedTuple):
    """One run of one turn: a heading row, then its steps."""

    first: int
    end: int
    turn: int
    """The index of the turn in the view."""
    run: int
    path: str


class Blocks:
    """The blocks of a view, in order; each is made when it is looked at, because it takes ten times the memory."""

    __slots__ = ("_firsts", "_turns", "_view")

    def __init__(self, view: View) -> None:
        self._view = view
        self._firsts, self._turns = array("q"), array("q")
        """The first step of each block, and the index of its turn."""
        for number, turn in enumerate(view.turns):
            starts = _starts(view, turn.run)
            self._firsts.extend(starts)
            self._turns.extend([number] * len(starts))

    def __len__(self) -> int:
        return len(self._firsts)

    def __getitem__(self, index: int) -> Block:
        number = range(len(self))[index]  # as of a tuple: negative indices, and an IndexError beyond the end
        turn, firsts = self._turns[number], self._firsts
        end = firsts[number + 1] if number + 1 < len(firsts) else len(self._view.steps)
        responses, exchanges = self._view.turns[turn].responses, self._view.replay.case.recording.exchanges
        return Block(firsts[number], end, turn, number - bisect_left(self._turns, turn),
                     exchanges[responses[0]].path if responses else "")

    def __iter__(self) -> Iterator[Block]:
        return map(self.__getitem__, range(len(self)))

    def at_step(self, step: int) -> Block:
        """The block of a step."""
        return self[max(0, bisect_right(self._firsts, step) - 1)]


def _starts(view: View, run: TurnRun) -> list[int]:
    """The first step of each run of a turn."""
    if run.runs < 2:
        return [run.first]
    steps = view.steps
    return [run.first, *(at for at in range(run.first + 1, run.end) if steps[at].run != steps[at - 1].run)]


def file_names(paths: Collection[str]) -> Mapping[str, str]:
    """The name of each file: its path below the common folder of all files."""
    try:
        common = commonpath([dirname(path) for path in paths]) if len(paths) > 1 else ""
    except ValueError:  # relative and absolute paths have no common folder
        common = ""
    share = common != dirname(common)  # a path without its root would look as if it were below the working folder
    return {path: relpath(path, common) if share else path for path in paths}
