"""Runs one case under every policy: a matrix of turns by policies, with a decision in each cell.

A decision states what the loop would have done, so only the first run of a turn counts; a run that ended in a failed
request that the agent repeated is skipped. The first row of `DECISIONS` that holds gives the decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from inspector.config.settings import Settings
from inspector.replay import Replay, TurnRun, replay
from inspector.replay.case import Case, links_of_loop
from inspector.report.findings import CUT_WORDS, ReportedFinding, held_calls, recorded_findings, shows_cut
from inspector.report.judged_turn import judged_turn_of
from inspector.report.lines.spans import cells, count_of, last_name
from inspector.report.run_answers import file_names
from inspector.report.sentences import REQUEST_WORDS, short
from inspector.report.verdict import is_unanswered, verdict_word
from inspector.sessions.recording import TurnPlace
from loop_core.judge.arguments import name_of
from loop_core.judge.gate import Admission, Verdict
from loop_core.turn.continuation import SeamRule
from loop_core.turn.moves import with_status
from loop_core.turn.policy import STRICT, Policy, Signal
from loop_core.turn.presets import POLICIES
from loop_core.turn.seam import join
from loop_core.turn.state import Evaluation, RunTools, Send, State, Turn
from loop_core.turn.trace import Fidelity, Step, Trace, first_difference
from loop_core.values import FINISHED, ChatResponse, Severity, Stop


class PolicyRun:
    """The run of one turn under one policy, as the rows of the decision table test it."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps
        self.turn: Turn = steps[-1].turn

    @cached_property
    def evaluations(self) -> list[Evaluation]:
        """The responses that the loop evaluated, in order."""
        return [s.turn.evaluation for s in self.steps if s.state is State.EVALUATE_STOP
                and s.turn.evaluation is not None]

    @cached_property
    def run_calls(self) -> list[tuple[Evaluation, Verdict]]:
        """The held calls that the loop runs, each with its response. They are only reported and never run."""
        return [
            (step.turn.evaluation, verdict)
            for step in self.steps if _begins_batch(step)
            for verdict in step.turn.would_run
            if step.turn.evaluation is not None and verdict.admission is Admission.HELD
        ]

    @cached_property
    def unrun_calls(self) -> list[Verdict]:
        """The held calls that the loop did not run."""
        ran = {id(verdict.call) for _, verdict in self.run_calls}
        return [v for evaluation in self.evaluations for v in held_calls(evaluation.verdicts) if id(v.call) not in ran]

    @cached_property
    def lost_calls(self) -> list[Verdict]:
        """The calls that could have run and that the loop never ran."""
        ran = {id(v.call) for step in self.steps if _begins_batch(step) for v in step.turn.would_run}
        ready = [v for evaluation in self.evaluations for v in evaluation.verdicts if v.admission is not Admission.HELD]
        return [verdict for verdict in ready if id(verdict.call) not in ran]

    @property
    def cut(self) -> tuple[Evaluation, Verdict] | None:
        """The first call that the loop ran in spite of evidence of a cut; arguments may be broken without a cut."""
        return next(((evaluation, verdict) for evaluation, verdict in self.run_calls
                     if shows_cut(evaluation.judgement, verdict)), None)

    @property
    def last(self) -> Stop | None:
        """The effective stop reason of the last response; None if there was none."""
        return self.evaluations[-1].judgement.stop.normalized if self.evaluations else None

    @property
    def is_completed(self) -> bool:
        """Whether the loop considers the turn finished."""
        return self.turn.terminal == "completed"

    @property
    def failed_response(self) -> ChatResponse | None:
        """The response to the loop's last request, if the request failed without any output; else None."""
        response = self.evaluations[-1].response if self.evaluations else None
        failed = response is not None and not response.parts and (response.error is not None or is_unanswered(response))
        return response if failed else None

    @property
    def lost_characters(self) -> int:
        """The number of characters that the loop's seams left out and that the careful rule keeps."""
        rule = self.turn.policy.seam
        joined = [(join(a, SeamRule.CAREFUL).text, join(a, rule).text) for a in self.turn.answers if len(a) > 1]
        return sum(max(0, len(careful) - len(own)) for careful, own in joined)

    @property
    def last_request(self) -> str:
        """The purpose of the loop's last request, in words."""
        effects = [effect for step in self.steps for effect in step.effects if isinstance(effect, (Send, RunTools))]
        last = effects[-1] if effects else None
        if isinstance(last, RunTools):
            return "the results of its calls"
        return f"{REQUEST_WORDS[last.place]} {last.ordinal}" if last is not None and last.ordinal else "a response"


def _name(verdict: Verdict) -> str:
    return short(name_of(verdict.call))


def _run_text(pair: tuple[Evaluation, Verdict]) -> str:
    evaluation, verdict = pair
    size = len(verdict.call.arguments or "")
    word = evaluation.judgement.stop.normalized
    taken = "" if evaluation.word is word else f", which it takes for {evaluation.word.value}"
    return f"{_name(verdict)} runs with the {size:,} characters that came, under {word.value}{taken}"


MESSAGE_CHARS = 100
"""The largest number of characters of an error's message that a reason quotes."""


def _describe_failure(run: PolicyRun) -> str:
    response = run.failed_response
    error = response.error if response is not None else None
    words = " ".join((error.message or error.type or error.code or "").split()) if error is not None else ""
    problem = with_status(response, words[:MESSAGE_CHARS]) if response is not None else ""
    which = f"the request for {run.last_request}" if len(run.evaluations) > 1 else "the request"
    return f"{which} failed ({problem or 'nothing came back'}); no part of an answer came that could be lost"


def _describe_end(run: PolicyRun) -> str:
    return f"{run.last.value if run.last else 'nothing'} is treated as a finished answer"


def _describe_loss(run: PolicyRun) -> str:
    if run.last in _UNFINISHED:
        return f"{_describe_end(run)}; the rest is never asked for"
    return f"its seams leave out {count_of(run.lost_characters, 'character')} that strict keeps"


def _holds(run: PolicyRun) -> bool:
    if not run.unrun_calls:
        return False
    if not run.is_completed:
        return bool(run.evaluations and held_calls(run.evaluations[-1].verdicts)) or run.turn.repairing
    return not _has_run_after(run)


def _has_run_after(run: PolicyRun) -> bool:
    """Whether a batch of calls ran after a call was held, because the model sent the call again."""
    since = next((i for i, step in enumerate(run.steps) if step.state is State.EVALUATE_STOP
                  and step.turn.evaluation is not None and held_calls(step.turn.evaluation.verdicts)), len(run.steps))
    return any(_begins_batch(step) for step in run.steps[since:])


def _begins_batch(step: Step) -> bool:
    """Whether the loop begins a batch at this step."""
    return any(isinstance(effect, RunTools) for effect in step.effects)


def _describe_held(run: PolicyRun) -> str:
    name = _name(run.unrun_calls[-1])
    if run.is_completed:
        return f"{name} does not run; the turn is treated as finished without it"
    if run.turn.terminal == "unrecorded":
        return f"{name} does not run; the loop asks for {run.last_request}, never recorded"
    return f"{name} does not run; the turn ends with a notice ({run.turn.terminal})"


_UNFINISHED = CUT_WORDS | {Stop.PAUSED}
_LIMITS = ("retry_limit", "budget_exhausted", "no_progress", "step_limit")


class Decision(NamedTuple):
    """One word for what a loop did with a turn: long and short forms, its severity, and its condition."""

    word: str
    short: str
    severity: Severity
    holds: Callable[[PolicyRun], bool]
    why: Callable[[PolicyRun], str]
    older: str = ""
    """The word in documents for programs, if it differs from the displayed word, which has changed."""

    @property
    def id(self) -> str:
        """The word for programs."""
        return self.older or self.word


DECISIONS: tuple[Decision, ...] = (
    Decision("ran a cut call", "ran cut", Severity.ERROR,
             lambda run: run.cut is not None,
             lambda run: _run_text(run.cut or run.run_calls[0])),
    Decision("ran a held call", "ran held", Severity.ERROR,
             lambda run: bool(run.run_calls),
             lambda run: _run_text(run.run_calls[0])),
    Decision("stuck", "stuck", Severity.ERROR,
             lambda run: run.turn.terminal == "stuck",
             lambda run: f"{_name(run.evaluations[-1].verdicts[-1])} is begun and never ended"),
    Decision("held", "held", Severity.WARNING, _holds, _describe_held),
    # No loop takes this for an answer, because its client raises an error.
    Decision("request failed", "failed", Severity.WARNING,
             lambda run: run.failed_response is not None, _describe_failure),
    Decision("lost text", "lost text", Severity.ERROR,
             lambda run: run.is_completed and (run.last in _UNFINISHED or run.lost_characters > 0),
             _describe_loss),
    Decision("lost a call", "lost call", Severity.ERROR,
             lambda run: run.is_completed and bool(run.lost_calls),
             lambda run: f"{_name(run.lost_calls[0])} is complete and allowed; "
                          "the turn is treated as finished without it"),
    Decision("ignored the stop reason", "ignored", Severity.ERROR,
             lambda run: run.is_completed and run.last not in FINISHED,
             _describe_end, "missed the reason"),
    Decision("stopped at a limit", "limit", Severity.WARNING,
             lambda run: run.turn.terminal in _LIMITS,
             lambda run: f"{run.turn.terminal} after {count_of(run.turn.spend.continuations, 'continuation')}"),
    Decision("goes on", "goes on", Severity.INFO,
             lambda run: run.turn.terminal == "unrecorded",
             lambda run: f"asks for {run.last_request}, never recorded"),
    Decision("gave up with a notice", "gave up", Severity.WARNING,
             lambda run: not run.is_completed,
             lambda run: f"{run.turn.terminal}: {run.turn.notice or 'no notice'}", "ended with a notice"),
    Decision("repaired", "repaired", Severity.INFO,
             lambda run: bool(run.unrun_calls) or run.turn.spend.repairs > 0,
             lambda run: "a call was held, asked for again, and came complete"),
    Decision("continued", "continued", Severity.INFO,
             lambda run: run.turn.spend.continuations > 0,
             lambda run: f"finished after {count_of(run.turn.spend.continuations, 'continuation')}"),
    Decision("finished", "finished", Severity.INFO,
             lambda run: True,
             lambda run: "resumed and finished" if run.turn.spend.resumes else "finished"),
)
"""The decisions, worst first. The first row that holds names the decision, and the last row always holds."""


class Cell(NamedTuple):
    """What one policy did with one turn."""

    decision: Decision
    why: str
    """The reason in one sentence. It may contain text of the transcript, which is not inert yet."""
    continuations: int
    step: int | None
    """The index of the first step that differs from the run under strict, in this policy's run; None if none does."""
    complete: bool
    """Whether the turn is complete by its verdict; `decision` is only about the loop."""
    fidelity: Fidelity


@dataclass(frozen=True, eq=False, repr=False)
class Matrix:
    """The decisions of each policy about each turn: `rows[turn][policy]`."""

    replays: tuple[Replay, ...]
    """A run of the case for every policy; the first is the run under strict."""
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The policies, in the order of the columns."""
        return tuple(run.settings.policy for run in self.replays)

    @property
    def turns(self) -> Sequence[TurnRun]:
        """The turns, in the order of the rows."""
        return self.replays[0].turns

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The path of each turn's file."""
        case = self.replays[0].case
        return tuple(case.opening(turn.record).path for turn in self.turns)

    @cached_property
    def files(self) -> tuple[str, ...]:
        """The name of each turn's file; empty if there is only one."""
        names = file_names(set(self.paths))
        return tuple(names[path] for path in self.paths) if len(names) > 1 else ()

    @cached_property
    def widest_file(self) -> int:
        """The width in columns of the longest name in `files`."""
        return max(map(cells, self.files), default=0)

    @cached_property
    def _short_files(self) -> tuple[str, ...]:
        """The names in `files` without their common beginning, and without folders if they are unique without them."""
        names = tuple(map(last_name, self.files))
        names = names if len(set(names)) == len(set(self.files)) else self.files
        first, last = min(names), max(names)  # the names between these two share the same beginning
        common = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), 0)
        return names if common < 2 else tuple(f"…{name[common:]}" for name in names)

    def file_within(self, turn: int, columns: int) -> str:
        """The name of a turn's file; if it does not fit, the part that distinguishes it from the others."""
        return self.files[turn] if cells(self.files[turn]) <= columns else self._short_files[turn]

    def complete(self, policy: int) -> int:
        """The number of turns that are complete under a policy, by their verdict."""
        return sum(row[policy].complete for row in self.rows)

    @cached_property
    def fidelity(self) -> Fidelity:
        """The lowest fidelity of the matrix's cells."""
        found = {cell.fidelity for row in self.rows for cell in row}
        return next((each for each in (Fidelity.SIMULATED, Fidelity.LIVE) if each in found), Fidelity.RECORDED)


def matrix(case: Case, settings: Settings, policies: Sequence[Policy] = ()) -> Matrix:
    """Runs a case under `policies` (by default all presets), strict first, with the limits of `settings`."""
    chosen = (STRICT, *(p for p in (policies or POLICIES.values()) if p.name != STRICT.name))
    replays = tuple(replay(case, replace(settings, policy=policy)) for policy in chosen)
    findings = recorded_findings(replays[0].case)
    rows = tuple(tuple(_cells(replays, row, of_turn)) for row, of_turn in enumerate(findings))
    return Matrix(replays, rows)


def _cells(replays: Sequence[Replay], row: int, findings: Sequence[ReportedFinding]) -> Iterator[Cell]:
    theirs = replays[0].turns[row]
    by_strict = verdict_word(judged_turn_of(replays[0], theirs, findings))[1]
    for run in replays:
        turn = run.turns[row]
        of_policy = PolicyRun(_first_run(run, turn))
        decision = next(each for each in DECISIONS if each.holds(of_policy))
        differs = None if turn is theirs else first_difference(Trace(turn.steps), Trace(theirs.steps))
        step = None if differs is None else min(turn.first + differs, turn.end - 1)
        # A turn that runs as under strict has the same verdict.
        complete = by_strict if step is None else verdict_word(judged_turn_of(run, turn, findings))[1]
        yield Cell(decision, decision.why(of_policy), of_policy.turn.spend.continuations, step, complete,
                   of_policy.steps[-1].fidelity)


def _first_run(replay: Replay, turn: TurnRun) -> list[Step]:
    """The first run of the turn; a run that ended in a failed request which was repeated is skipped."""
    links, used = links_of_loop(replay.case, turn.record), 0
    for _, steps in groupby(turn.steps, key=lambda step: step.run):
        run = list(steps)
        used += max(1, sum(step.turn.signal is Signal.PROVIDER_RESPONSE for step in run))
        if used >= len(links) or links[used].place is not TurnPlace.RETRY:
            break
    return run
