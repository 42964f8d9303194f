"""The view model: everything that a report or a screen shows, as plain values made from a `Replay`.

One place decides what is said; `text`, `document` and the screens only lay it out. Building it costs one pass over
responses, not over steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from inspector.pause import without_collector
from inspector.replay import Replay, TurnRun
from inspector.report.findings import Noted, collect
from inspector.report.verdict import ROWS, TurnVerdict, judge_turn
from inspector.sessions.values import Exchange, Input, Link
from loop_core.classify import Judged
from loop_core.gate import Verdict
from loop_core.seam import Joined
from loop_core.trace import Step
from loop_core.turn import State, Turn


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ResponseFacts:
    """One response, with everything that is said about it."""

    index: int
    exchange: Exchange
    judged: Judged
    verdicts: tuple[Verdict, ...]
    link: Link
    turn: str
    segment: int
    """Which segment of its answer it is, from 1."""
    state: State | None
    """What the machine decided about it: the state after EvaluateStop."""
    recorded_next: str
    """What the recorded agent did next, in words."""
    step: int
    """The step that evaluates it, by its index in the trace."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TurnFacts:
    """One turn under the machine, and its verdict."""

    run: TurnRun
    conversation: str
    responses: tuple[int, ...]
    ended: Turn
    """The turn as our machine left it."""
    final_state: State
    """Where it was decided (`Turn.outcome`)."""
    merged: Joined
    verdict: TurnVerdict

    @property
    def id(self) -> str:
        """The turn's id, unique in the session."""
        return self.run.record.id

    @property
    def terminal(self) -> str:
        """The terminal reason."""
        return self.ended.terminal or ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class View:
    """A session as every report shows it."""

    replay: Replay
    inputs: tuple[Input, ...]
    responses: tuple[ResponseFacts, ...]
    turns: tuple[TurnFacts, ...]
    findings: tuple[Noted, ...]

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps, in order."""
        return self.replay.trace.steps

    @property
    def worst(self) -> TurnFacts | None:
        """The turn whose verdict is worst; the first of equals."""
        return min(self.turns, key=lambda turn: turn.verdict.rank, default=None)

    def headline(self) -> str:
        """The first line of every view: the worst verdict, where, and what to change."""
        worst = self.worst
        if worst is None:
            errors = [given.error for given in self.inputs if given.error]
            return f"NOTHING READ  {errors[0]}" if errors else "NOTHING READ  no LLM traffic was found"
        place = f"turn {self.number(worst)} of {len(self.turns)}"
        said = [worst.verdict.sentence, *([worst.verdict.advice] if worst.verdict.advice else [])]
        return f"{worst.verdict.word}  {place} · {' · '.join(said)}"

    def counts(self) -> tuple[tuple[str, int], ...]:
        """How many turns have each verdict, worst first."""
        counted = Counter(turn.verdict.rank for turn in self.turns)
        return tuple((ROWS[rank].word, counted[rank]) for rank in sorted(counted))

    def number(self, turn: TurnFacts) -> int:
        """The turn's place among all turns, from 1."""
        return self.turns.index(turn) + 1

    def turn_of(self, step: int) -> TurnFacts:
        """The turn that a step belongs to."""
        return self.turns[self.replay.turn_at(step)]


@without_collector
def view(replay: Replay) -> View:
    """The view model of a replay."""
    noted = collect(replay)
    by_turn: dict[str | None, list[Noted]] = {}
    for note in noted:
        by_turn.setdefault(note.turn, []).append(note)
    steps = replay.trace.steps
    turns: list[TurnFacts] = []
    responses: dict[int, ResponseFacts] = {}
    parents = {link.parent for turn in replay.case.loaded.turns for link in turn.links}
    for run in replay.turns:
        record = run.record
        ended = steps[run.decided].turn
        verdict = judge_turn(replay, run, by_turn.get(record.id, ()))
        indices = tuple(link.index for link in record.links)
        final = ended.outcome or ended.state
        turns.append(TurnFacts(run, record.conversation, indices, ended, final, ended.merged(), verdict))
        responses.update(_responses(replay, run, indices[-1] not in parents))
    ordered = tuple(responses[index] for index in sorted(responses))
    return View(replay, replay.case.loaded.inputs, ordered, tuple(turns), tuple(noted))


def _responses(replay: Replay, run: TurnRun, last: bool) -> dict[int, ResponseFacts]:
    case, steps = replay.case, replay.trace.steps
    found: dict[int, ResponseFacts] = {}
    at = {step.response: index for index, step in reversed(list(enumerate(steps[run.first : run.end], run.first)))
          if step.state is State.EVALUATE_STOP}
    links = run.record.links
    for position, link in enumerate(links):
        index = at.get(link.index, run.first)
        after = steps[index + 1] if index + 1 < run.end else steps[index]
        segments = steps[index].turn.answers[-1]
        found[link.index] = ResponseFacts(
            link.index, case.loaded.exchanges[link.index], case.judged[link.index], case.verdicts[link.index], link,
            run.record.id, max(1, len(segments)), after.state if after.came_from is State.EVALUATE_STOP else None,
            _next(links, position, last), index,
        )
    return found


def _next(links: Sequence[Link], position: int, last: bool) -> str:
    if position + 1 < len(links):
        words = {
            "continuation": "asked to continue",
            "repair": "asked for the call again",
            "tool_result": "answered the calls",
            "resume": "resumed it",
            "retry": "sent the request again",
            "request": "sent a new message",
        }
        return words[links[position + 1].place.value]
    return "the recording ends" if last else "went on to a new turn"
