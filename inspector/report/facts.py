"""The view model: everything that a report or a screen shows, as plain values computed from a `Replay`.

The view model decides what is shown; `explain`, `explain_document` and the screens only lay it out. Building it costs
one pass over responses, not over steps. The last part finds what the recorded agent did after each answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from inspector.config.settings import PriceTable, Settings
from inspector.replay import Replay, TurnRun, begin_replay, join_runs
from inspector.replay.case import ASKED_LIVE, Case
from inspector.replay.recorded_calls import REFUSED
from inspector.report.findings import ReportedFinding, as_decided, collect, recorded_findings, touched_since
from inspector.report.verdict import TurnVerdict, judge_turn
from inspector.sessions import evidence_places
from inspector.sessions.recording import Exchange, Input, Link, TurnPlace, TurnRecord
from inspector.sessions.thread import response_number
from loop_core.errors import CallerError
from loop_core.judge.classify import Judgement
from loop_core.judge.gate import Verdict
from loop_core.turn.continuation import JoinedText, Seam
from loop_core.turn.limits import Spend
from loop_core.turn.state import ProviderResponse, Recut, State, Turn
from loop_core.turn.trace import Fidelity, Step
from loop_core.values import Evidence
from loop_core.wire import wire


# Compared and hashed by identity: views are keys of caches, and hashing every field would take a pass over the session.
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ResponseFacts:
    """One response with all facts about it."""

    index: int
    exchange: Exchange
    judgement: Judgement
    verdicts: tuple[Verdict, ...]
    link: Link
    turn: str
    segment: int
    """The number of the response among the segments of its answer, from 1."""
    state: State | None
    """The engine's state after EvaluateStop, which is its decision about the response."""
    recorded_next: str
    step: int
    """The index in the trace of the step that evaluates the response."""
    recut: Recut | None = None
    """How a simulation made the response, whose index is then `UNRECORDED`; None for any other response."""
    live: bool = False
    """Whether a provider or a stand-in answered a request that was sent live from a step of the recording."""

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The evidence for the effective reason: each rule with its bytes, if known."""
        return evidence_places.evidence(self.exchange, self.judgement.stop.evidence)

    @property
    def handovers(self) -> Sequence[tuple[int, str]]:
        """The offsets in the text at which another model continued the answer, each with the two models."""
        return wire(self.exchange.api).handovers(self.exchange.response.parts)

    @property
    def agent(self) -> str:
        """The agent that sent the request, from its transcript or the request's headers; empty if unknown."""
        if self.exchange.recorder is not None:
            return self.exchange.recorder
        # First product (RFC 9110, 10.1.5). An SDK has its language for a version: `AsyncOpenAI/Python 2.14.0`.
        named = (value for name, value in self.exchange.request_headers if name.lower() == "user-agent")
        product, _, version = next(named, "").partition(" ")[0].partition("/")
        return f"{product.removeprefix('Async')} SDK" if version in ("Python", "JS", "Go", "Java", "Ruby") else product

    @property
    def is_made(self) -> bool:
        """Whether no recorded agent received the response, because it was simulated or requested live from a step."""
        return self.live or self.simulated

    @property
    def simulated(self) -> bool:
        """Whether no provider sent the response: it was cut again, or made by a dialect or a stand-in."""
        return self.recut is not None or self.exchange.simulated

    @property
    def fidelity(self) -> Fidelity:
        """How far the response can be trusted."""
        return Fidelity.SIMULATED if self.simulated else Fidelity.LIVE if self.live else Fidelity.RECORDED

    @property
    def why(self) -> str:
        """The reason for the response's place in its turn."""
        return "answered by a stand-in" if self.live and self.simulated else self.link.why or self.link.place.value

    @property
    def name(self) -> str:
        """The name of the response: its number, or the step of a simulation."""
        if self.live and not self.simulated:
            return f"LIVE response {response_number(self.index)}"
        if self.index < 0:
            return f"SIMULATED response of step {self.step + 1}"
        return f"{'SIMULATED ' if self.simulated else ''}response {response_number(self.index)}"


class TurnFacts(NamedTuple):
    """One turn as replayed, and its verdict."""

    run: TurnRun
    final_state: State
    """The state in which the turn was decided (`Turn.outcome`)."""
    terminal: str
    notice: str | None
    spend: Spend
    text: str
    seams: tuple[Seam, ...]
    verdict: TurnVerdict
    findings: tuple[ReportedFinding, ...] = ()

    @property
    def conversation(self) -> str:
        """The id of its conversation."""
        return self.run.record.conversation

    @property
    def responses(self) -> tuple[int, ...]:
        """The indices of its responses."""
        return self.run.record.responses

    @property
    def joined_text(self) -> JoinedText:
        """The merged text with its seams."""
        return JoinedText(self.text, self.seams)

    @property
    def final_turn(self) -> Turn:
        """The turn in the state in which the engine left it; in a long recording it is computed again."""
        return self.run.final_turn

    @property
    def id(self) -> str:
        """The turn's id, unique in the session."""
        return self.run.record.id

    @property
    def segments(self) -> int:
        """The number of responses in the turn's answers."""
        return sum(len(answer) for answer in self.final_turn.answers)


@dataclass(frozen=True, eq=False, repr=False)
class View:
    """A session with all facts that reports show. Without slots, so that `worst` can be cached."""

    replay: Replay
    inputs: tuple[Input, ...]
    responses: tuple[ResponseFacts, ...]
    turns: tuple[TurnFacts, ...]
    findings: tuple[ReportedFinding, ...]

    @property
    def steps(self) -> Sequence[Step]:
        """All steps, in order."""
        return self.replay.trace.steps

    @property
    def prices(self) -> PriceTable:
        """The configured prices of tokens."""
        return self.replay.settings.prices

    @cached_property
    def worst(self) -> TurnFacts | None:
        """The turn with the worst verdict; the first of several. Cached, because every key press shows its advice."""
        return min(self.turns, key=lambda turn: turn.verdict.rank, default=None)

    @property
    def error(self) -> str | None:
        """The first error of reading, if any."""
        return next((input_file.error for input_file in self.inputs if input_file.error), None)

    def headline(self) -> str:
        """The first line of every view: the worst verdict, its turn, and the advice."""
        worst = self.worst
        if worst is None:
            return f"NOTHING READ  {self.replay.case.recording.why_empty}"
        sentences = [worst.verdict.sentence, *([worst.verdict.advice.text] if worst.verdict.advice else [])]
        return f"{worst.verdict.word}  {self.place(worst)} · {' · '.join(sentences)}"

    def counts(self) -> tuple[tuple[str, int], ...]:
        """How many turns have each verdict, worst first; simulated turns after the recorded ones."""
        counted = Counter((each.verdict.simulated, each.verdict.rank, each.verdict.count_word) for each in self.turns)
        return tuple((key[-1], counted[key]) for key in sorted(counted))

    @property
    def complete(self) -> int:
        """The number of complete turns (`TurnVerdict.complete`)."""
        return sum(turn.verdict.complete for turn in self.turns)

    def number(self, turn: TurnFacts) -> int:
        """The number of a turn among all turns, from 1."""
        return self.replay.turn_at(turn.run.first) + 1

    def place(self, turn: TurnFacts) -> str:
        """The place of a turn among all turns, in words: `turn 3 of 12`."""
        return f"turn {self.number(turn):,} of {len(self.turns):,}"

    def numbered(self, number: int) -> TurnFacts:
        """The turn with a number from 1. Raises `CallerError` if there is none."""
        if not 1 <= number <= len(self.turns):
            raise CallerError(f"there is no turn {number:,}; expected 1 to {len(self.turns):,}")
        return self.turns[number - 1]

    def effective_step(self, step: int) -> Step:
        """A step with the limits that were in force at it."""
        return self.replay.effective_step(step)

    def end_of(self, turn: TurnFacts) -> Turn:
        """The last state of a turn in the machine, with the limits then in force."""
        return self.replay.effective_step(turn.run.deciding_step).turn

    def deciding_step(self, turn: TurnFacts) -> int:
        """The step that a turn's verdict is about: the evaluation of a response, or the step that ended the turn."""
        position = turn.verdict.answer
        if position is None:
            stopped = (step for step in range(turn.run.first, turn.run.deciding_step)
                       if self.steps[step].state in (State.ABORT_PARTIAL, State.ABORT))
            return next(stopped, turn.run.deciding_step)
        answers = [step for step in range(turn.run.first, turn.run.end)
                   if isinstance(self.steps[step].event, ProviderResponse)]
        recorded = [link.index for link in turn.run.record.links]
        if position < len(recorded):
            for step in answers:
                if self.steps[step].response == recorded[position]:
                    return step
        # For a simulated answer, or one that the engine never requested: the step of the nearest evaluated answer.
        return answers[min(position, len(answers) - 1)] if answers else turn.run.first

    def path_of(self, turn: TurnFacts) -> str:
        """The file with a turn's first answer."""
        return self.responses[turn.run.record.links[0].index].exchange.path

    def turn_of(self, step: int) -> TurnFacts:
        """The turn of a step."""
        return self.turns[self.replay.turn_at(step)]


def view(replay: Replay, beside: View | None = None) -> View:
    """The view model of a replay; values that do not differ from those of the view `beside` are reused."""
    if beside is not None and beside.replay.case is replay.case:
        return _beside(replay, beside)
    turns = [] if beside is None else [*beside.turns[: _same_turns(replay, beside)]]
    responses = {index: beside.responses[index] for turn in turns for index in turn.responses} if beside else {}
    parents, spends = parents_in(run.record for run in replay.turns), dict[Spend, Spend]()
    added = collect(replay, [turn.findings for turn in turns])
    for run, findings in zip(replay.turns[len(turns) :], added, strict=True):
        same = None if beside is None else _same_turn(beside, len(turns), run, findings)
        turns.append(same or _turn(replay, run, findings, spends))
        responses |= _responses(replay, run, parents)
    return _view(replay, responses, turns)


def view_of_case(case: Case, settings: Settings) -> View:
    """`view(replay(case, settings))`, one turn at a time: the steps of a long recording are made once and not kept."""
    replay, runs = begin_replay(case, settings)
    parents, spends = parents_in(replay.case.recording.turns), dict[Spend, Spend]()
    turns, responses = list[TurnFacts](), dict[int, ResponseFacts]()
    for run, findings in zip(runs, recorded_findings(replay.case), strict=True):
        turns.append(_turn(replay, run, as_decided(replay, run, findings), spends))
        responses |= _responses(replay, run, parents)
    return _view(join_runs(replay.case, settings, replay.turns), responses, turns)


def _same_turns(replay: Replay, before: View) -> int:
    """The number of turns at the beginning whose facts are unchanged since an earlier reading of the same recording."""
    touched = touched_since(before.replay.case, replay.case)
    for number, (run, turn) in enumerate(zip(replay.turns, before.turns, strict=False)):
        # The facts of a turn change if its run changed, or if a later row shows what followed one of its answers.
        if run is not turn.run or not touched.isdisjoint(turn.responses):
            return number
    return min(len(replay.turns), len(before.turns))


def _same_turn(before: View, number: int, run: TurnRun, findings: tuple[ReportedFinding, ...]) -> TurnFacts | None:
    """The earlier facts of a turn, with its verdict and advice, if its run and findings are unchanged; else None."""
    old = before.turns[number] if number < len(before.turns) else None
    if old is None or run.record is not old.run.record or not run.same_steps(old.run) or findings != old.findings:
        return None
    return old._replace(run=run)


def _view(replay: Replay, responses: Mapping[int, ResponseFacts], turns: Sequence[TurnFacts]) -> View:
    findings = tuple(chain.from_iterable([turn.findings for turn in turns]))
    in_order = tuple([responses[index] for index in sorted(responses)])
    return View(replay, replay.case.recording.inputs, in_order, tuple(turns), findings)


def _turn(replay: Replay, run: TurnRun, findings: tuple[ReportedFinding, ...], spends: dict[Spend, Spend]) -> TurnFacts:
    """The facts of a turn. Turns with equal counts share one object through `spends`, as many short turns do."""
    ended = run.final_turn
    return TurnFacts(
        run, ended.outcome or ended.state, ended.terminal or "", ended.notice,
        spends.setdefault(ended.spend, ended.spend), *ended.joined_answer(), judge_turn(replay, run, findings),
        findings)


def _beside(replay: Replay, other: View) -> View:
    """The view of another replay of the same case; the facts of turns with the same steps are reused."""
    if replay.turns is other.replay.turns and replay.settings.policy.name == other.replay.settings.policy.name:
        return View(replay, other.inputs, other.responses, other.turns, other.findings)
    turns: list[TurnFacts] = []
    responses, parents = dict(enumerate(other.responses)), parents_in(run.record for run in replay.turns)
    for run, old in zip(replay.turns, other.turns, strict=True):
        if not old.verdict.clean and run.same_steps(old.run) and _policy(replay, run) != _policy(other.replay, old.run):
            old = old._replace(verdict=judge_turn(replay, run, old.findings))  # that on a held call names the policy
        if run is old.run:
            turns.append(old)
            continue
        if run.same_steps(old.run):
            # The same steps at another index: an earlier turn of this run is longer or shorter.
            turns.append(old._replace(run=run))
            for index in old.responses:
                facts = responses[index]
                responses[index] = replace(facts, step=facts.step + run.first - old.run.first)
            continue
        findings = as_decided(replay, run, old.findings)
        turns.append(_turn(replay, run, findings, {}))
        responses |= _responses(replay, run, parents)
    return _view(replay, responses, turns)


def _policy(replay: Replay, run: TurnRun) -> str:
    return replay.settings_at(run.deciding_step).policy.name


def _responses(replay: Replay, run: TurnRun, parents: Set[int | None]) -> dict[int, ResponseFacts]:
    """The facts of a turn's responses; `parents` are the answers that some recorded request continued."""
    case, steps = replay.case, run.steps
    found: dict[int, ResponseFacts] = {}
    at: dict[int | None, int] = {}
    for place, step in enumerate(steps):
        turn = step.turn
        if turn.state is State.EVALUATE_STOP and turn.evaluation is not None:
            at.setdefault(turn.evaluation.number, place)
    every = (*run.record.links, *run.record.remainder)
    # Answers to live requests are left out, since no recorded agent continued from them.
    links = [link for link in every if link.why != ASKED_LIVE]
    positions = {link.index: position for position, link in enumerate(links)}
    last = (links or run.record.links)[-1].index not in parents
    for link in every:
        place = at.get(link.index, 0)
        after = steps[place + 1] if place + 1 < len(steps) else steps[place]
        segments = steps[place].turn.answers[-1]
        found[link.index] = ResponseFacts(
            link.index, case.recording.exchanges[link.index], case.judgements[link.index],
            case.verdicts[link.index], link, run.record.id, max(1, len(segments)),
            after.state if after.previous_state is State.EVALUATE_STOP else None,
            NEVER if link.why == ASKED_LIVE else next_act(links, positions[link.index], last, case.verdicts[link.index],
                                                    case.may_follow.get(links[-1].index, ())),
            run.first + place, live=link.why == ASKED_LIVE,
        )
    return found


NEVER = "never saw this answer, which was requested afterwards"
ENDS = "the recording ends"
"""The text for an answer after which no request of the agent was recorded."""
ANSWERED_CALLS = "answered the calls"
NEXT_ACTS: Mapping[TurnPlace, str] = {
    TurnPlace.CONTINUATION: "asked to continue",
    TurnPlace.REPAIR: "asked for the call again",
    TurnPlace.TOOL_RESULT: ANSWERED_CALLS,
    TurnPlace.RESUME: "resumed it",
    TurnPlace.NUDGE: "asked for an answer again",
    TurnPlace.RETRY: "sent the request again",
    TurnPlace.REQUEST: "sent a new message",
}
"""Place of the agent's next request in the turn -> what the agent did. Every place has a row."""


def parents_in(records: Iterable[TurnRecord]) -> set[int | None]:
    """The answers that a recorded request continued, including those of turns that were sent live again."""
    return {link.parent for record in records for link in (*record.links, *record.remainder)}


def next_act(
    links: Sequence[Link], position: int, last: bool, verdicts: Sequence[Verdict], may_follow: Sequence[int]
) -> str:
    """What the agent did after the answer at a position of its turn; with `last`, no known request continues it."""
    unclear = f"it is not known whether response {response_number(may_follow[0])} comes next" if may_follow else ENDS
    went_on = unclear if last else "went on to a new turn"
    if position + 1 < len(links):
        place = links[position + 1].place
        went_on = NEXT_ACTS[place] if verdicts or place is not TurnPlace.TOOL_RESULT else "sent results of tools"
    refused = sum(verdict.rule == REFUSED for verdict in verdicts)
    if not refused:
        return went_on
    return f"refused {'the call' if len(verdicts) == 1 else f'{refused} of {len(verdicts)} calls'}, and {went_on}"
