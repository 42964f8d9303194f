"""Counts tool calls that ran on cut arguments, as far as the recording shows it, and makes the line that states the
counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache

from inspector.report.facts import ResponseFacts, View
from inspector.report.findings import FAILED, RAN, RAN_CUT, RAN_UNSEEN, shows_cut
from inspector.report.lines.spans import Line, Span, Tone, count_of
from inspector.report.next_acts import ENDS
from inspector.sessions.reasons import inference_of, is_unrecorded
from loop_core.judge.arguments import ArgumentShape, is_phantom, parse
from loop_core.judge.gate import Admission, Verdict
from loop_core.values import ArgsForm

INCOMPLETE = "gate.incomplete"


class CutRun(StrEnum):
    """What the recording shows of one call."""

    WHOLE = "whole"
    """Its arguments are whole, and it did not run from a cut answer."""
    RAN = "ran"
    """It ran on cut arguments."""
    RAN_OBJECT = "ran object"
    """It ran, and the stop reason shows that it was cut, not its arguments, which are sent as a whole object."""
    RAN_WHOLE = "ran whole"
    """It ran on whole arguments, although its answer was cut."""
    RAN_BROKEN = "ran broken"
    """It ran on arguments that are not whole, and nothing shows a cut."""
    FAILED = "failed"
    """It was cut; the agent answered it with an error, which a tool that ran may give."""
    UNSEEN = "unseen"
    """It was cut, and the recording ends there."""
    UNTOLD = "untold"
    """The file has neither a stop reason nor the text of its arguments, so a cut could not be seen."""
    NOT_RUN = "not run"
    """It was cut; the agent refused it, or went on without a result of it."""


CLAUSES: Mapping[CutRun, str] = {
    CutRun.RAN_OBJECT: "{} known by the stop reason alone: in arguments sent as a whole object a cut cannot be seen",
    CutRun.NOT_RUN: "{} refused, or without a result in what the agent sent next",
    CutRun.FAILED: "{} answered with an error: it may have run",
    CutRun.UNSEEN: "{} where the recording ends",
    CutRun.UNTOLD: "{} without a recorded stop reason, sent as a whole object: a cut could not be seen",
    CutRun.RAN_BROKEN: "{} ran on arguments that are not whole; nothing shows a cut",
    CutRun.RAN_WHOLE: "{} ran on whole arguments, although its answer was cut",
}
"""The remarks that follow the counts, with the number of calls."""


def cut_run(view: View, facts: ResponseFacts, verdict: Verdict) -> CutRun:
    """What the recording shows of a call of a recorded response."""
    rules = {noted.finding.rule for noted in view.turn_of(facts.step).findings
             if noted.response == facts.index and noted.call == verdict}
    shape = parse(verdict.call.arguments).shape
    # No arguments mean an empty object where a tool needs none; of a cut answer they may be what never came.
    none_came = shape in (ArgumentShape.EMPTY, ArgumentShape.ABSENT) and shows_cut(facts.judgement, verdict)
    incomplete = verdict.admission is Admission.HELD and (verdict.rule == INCOMPLETE or none_came)
    if RAN_CUT in rules:
        ran = CutRun.RAN_OBJECT if shape is ArgumentShape.COMPLETE else CutRun.RAN
        return ran if incomplete else CutRun.RAN_WHOLE
    if not incomplete:
        stop = facts.judgement.stop
        told_of = not is_unrecorded(stop) and inference_of(stop) is None
        return CutRun.WHOLE if told_of or verdict.call.form is not ArgsForm.OBJECT else CutRun.UNTOLD
    if rules.intersection((*RAN, RAN_UNSEEN)):
        return CutRun.RAN_BROKEN
    if FAILED in rules:
        return CutRun.FAILED
    return CutRun.UNSEEN if not rules and facts.recorded_next.endswith(ENDS) else CutRun.NOT_RUN


def count_runs(view: View, answers: Iterable[ResponseFacts]) -> Counter[CutRun]:
    """How many calls of these answers are of each kind; calls of answers that no agent received are not counted."""
    return Counter(cut_run(view, facts, verdict) for facts in answers if not facts.is_made
                   for verdict in facts.verdicts if not is_phantom(verdict.call))


@lru_cache(maxsize=1)  # a long session is counted once, and no view is held that nobody looks at
def _of_session(view: View) -> Counter[CutRun]:
    return count_runs(view, view.responses)


def answer_line(found: Counter[CutRun]) -> Line:
    """The answer to `did a tool run on cut arguments?` with the number of calls that were checked; empty without a
    call."""
    checked, ran = found.total(), found[CutRun.RAN] + found[CutRun.RAN_OBJECT]
    if not checked:
        return ()
    maybe = found[CutRun.FAILED] + found[CutRun.UNSEEN]
    cut, open_ = ran + maybe + found[CutRun.NOT_RUN], maybe + found[CutRun.UNTOLD]
    head = (Span(f"{count_of(ran, 'tool')} ran on cut arguments", Tone.ERROR) if ran else
            Span("the recording does not show whether a tool ran on cut arguments", Tone.WARN) if open_ else
            Span("no tool ran on cut arguments", Tone.OK))
    clauses = "".join(f" · {text.format(found[kind])}" for kind, text in CLAUSES.items() if found[kind])
    return head, Span(f" ({count_of(checked, 'call')} checked, {cut or 'none'} cut){clauses}", Tone.DIM)


def cut_run_lines(view: View, turn: int) -> list[Line]:
    """The answer for a turn, and for the whole session if that has several turns."""
    of_turn = answer_line(count_runs(view, (view.responses[index] for index in view.turns[turn].responses)))
    lines: list[Line] = [(Span("this turn  ", Tone.KEY), *of_turn)] if of_turn else []
    of_all = answer_line(_of_session(view)) if len(view.turns) > 1 else ()
    return [*lines, (Span(f"all {len(view.turns):,} turns  ", Tone.KEY), *of_all)] if of_all else lines
