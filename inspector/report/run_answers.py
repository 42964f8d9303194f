"""Finds the answers of a run (recorded, or built from the steps of a simulation), its blocks and what calls became."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from os.path import commonpath, dirname, relpath
from typing import Any, NamedTuple

from inspector.config.settings import Settings, name_of
from inspector.replay import TurnRun
from inspector.replay.case import has_unrecorded_answer
from inspector.report.facts import ENDS, ResponseFacts, TurnFacts, View
from inspector.report.findings import FAILED, RAN, RAN_CUT, RAN_UNSEEN, shows_cut
from inspector.report.judged_turn import exchange_of, place_of
from inspector.report.lines.spans import Line, Span, Tone, count_of
from inspector.sessions import redact
from inspector.sessions.reasons import inference_of, is_unrecorded
from inspector.sessions.recording import Link
from loop_core.json_parser import JsonPath
from loop_core.judge.arguments import ArgumentShape, is_phantom, parse
from loop_core.judge.gate import Admission, Verdict
from loop_core.turn.state import ProviderResponse, State
from loop_core.turn.trace import Fidelity
from loop_core.values import ArgsForm, Request, ToolCall
from loop_core.wire.json_values import pointer

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


def is_simulated(view: View, end: int) -> bool:
    """Whether any response of the run that ends before step `end` was never recorded."""
    return has_unrecorded_answer(view.steps[end - 1].turn)


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


def blocks_of(view: View) -> tuple[Block, ...]:
    """The blocks of a view, in order."""
    exchanges, found = view.replay.case.recording.exchanges, list[Block]()
    for number, turn in enumerate(view.turns):
        firsts, path = _starts(view, turn.run), exchanges[turn.responses[0]].path if turn.responses else ""
        found += [Block(*places, number, run, path) for run, places in enumerate(pairwise((*firsts, turn.run.end)))]
    return tuple(found)


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


# -- The outcomes of tool calls: which ran on cut arguments, and what the agent sent back about them -----------------


INCOMPLETE = "gate.incomplete"


class CutRun(StrEnum):
    """What the recording shows of one call."""

    WHOLE = "whole"
    """The call's arguments are whole, and it did not run from a cut answer."""
    RAN = "ran"
    RAN_OBJECT = "ran object"
    """The call ran, and only the stop reason shows the cut, because its format sends arguments as a parsed object."""
    RAN_WHOLE = "ran whole"
    """The call ran on whole arguments, although its answer was cut."""
    RAN_BROKEN = "ran broken"
    """The call ran on incomplete arguments, and nothing shows a cut."""
    FAILED = "failed"
    """The agent answered the cut call with an error. The call may have run, since a tool that ran may fail."""
    UNSEEN = "unseen"
    """The call was cut, and the recording ends after it."""
    UNTOLD = "untold"
    """The file has neither a stop reason nor the text of the call's arguments, so it cannot show a cut."""
    NOT_RUN = "not run"
    """The call was cut, and the agent refused it or continued without its result."""


CLAUSES: Mapping[CutRun, str] = {
    CutRun.RAN_OBJECT: "{} known by the stop reason alone: arguments recorded already parsed look complete",
    CutRun.NOT_RUN: "{} refused, or without a result in what the agent sent next",
    CutRun.FAILED: "{} answered with an error: it may have run",
    CutRun.UNSEEN: "{} after which the recording ends",
    CutRun.UNTOLD: "{} without a recorded stop reason, with arguments recorded already parsed: a cut could not be seen",
    CutRun.RAN_BROKEN: "{} ran on arguments not known to be complete; nothing shows a cut",
    CutRun.RAN_WHOLE: "{} ran on complete arguments, although its answer was cut",
}
"""Outcome -> the remark after the counts; `{}` stands for the number of calls."""


def cut_run(view: View, facts: ResponseFacts, verdict: Verdict) -> CutRun:
    """The outcome of a call of a recorded response."""
    rules = {note.finding.rule for note in view.turn_of(facts.step).findings
             if note.response == facts.index and note.call == verdict}
    shape = parse(verdict.call.arguments).shape
    # Without arguments a call means an empty object if its tool needs none. In a cut answer they may be missing.
    none_came = shape.is_missing and shows_cut(facts.judgement, verdict)
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
    """The number of calls with each outcome in these answers. Answers that no agent received are left out."""
    return Counter(cut_run(view, facts, verdict) for facts in answers if not facts.is_made
                   for verdict in facts.verdicts if not is_phantom(verdict.call))


@lru_cache(maxsize=1)  # a long session is counted once, and only the last view is kept in memory
def _of_session(view: View) -> Counter[CutRun]:
    return count_runs(view, view.responses)


def answer_line(found: Counter[CutRun]) -> Line:
    """The answer to `did a tool run on cut arguments?`, with the number of checked calls; empty without a call."""
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


# -- A held call and its result in what the agent sent next ----------------------------------------------------------


class SentBackAs(StrEnum):
    """The kind of an object about a call in a request; the value is the beginning of its title."""

    SAME = "the call {name} as the agent sent it back"
    CHANGED = "the call {name} as the agent sent it back, with arguments that the provider did not send"
    RESULT = "the result of {name}, which the agent sent back"


class SentBack(NamedTuple):
    """An object with the id of a call, in a later request."""

    kind: SentBackAs
    answer: ResponseFacts
    pointer: str
    """The JSON pointer to the object in the request."""
    text: str
    """The object as JSON, with credentials masked."""


def sent_back(view: View, facts: ResponseFacts, call: ToolCall) -> list[SentBack]:
    """The objects with the id of a call, in the first recorded request of the turn after the call that has any."""
    if not call.id:
        return []
    for index in view.turn_of(facts.step).responses:
        later = view.responses[index]
        request, body = later.exchange.request, later.exchange.request_json
        if index <= facts.index or later.live or request is None:
            continue
        objects = [*_with_id(body, call.id, ())] or ([*_with_id(body, call.item_id, ())] if call.item_id else [])
        if objects:
            # In a history a call comes before its result, whatever the format calls their fields.
            kinds = _kinds(request, call)
            return [SentBack(kinds[at] if at < len(kinds) else SentBackAs.RESULT, later, pointer(*path),
                             redact.text(json.dumps(redact.values(value), ensure_ascii=False)))
                    for at, (path, value) in enumerate(objects)]
    return []


def _kinds(request: Request, call: ToolCall) -> list[SentBackAs]:
    """The kinds of the objects with this id, in the order of the history."""
    own = {call.id, call.item_id} - {None}
    return [SentBackAs.SAME if _equal(each, call) else SentBackAs.CHANGED
            for message in request.messages for each in message.tool_calls if each.id in own]


def _equal(one: ToolCall, other: ToolCall) -> bool:
    if one.arguments == other.arguments:
        return True
    left, right = parse(one.arguments).value, parse(other.arguments).value  # a format may write them as an object
    return left is not None and left == right


def _with_id(value: Any, call_id: str, path: JsonPath) -> Iterator[tuple[JsonPath, Any]]:
    """The objects within a value that hold this id as one of their members, in document order."""
    if isinstance(value, dict):
        if any(each == call_id for each in value.values() if isinstance(each, str)):
            yield path, value
        for key, each in value.items():
            yield from _with_id(each, call_id, (*path, key))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _with_id(each, call_id, (*path, number))
