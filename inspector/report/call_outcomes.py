"""Finds the recorded outcome of tool calls: which ran on cut arguments, and what the agent sent back about them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

from inspector.report.facts import ENDS, ResponseFacts, View
from inspector.report.findings import FAILED, RAN, RAN_CUT, RAN_UNSEEN, shows_cut
from inspector.report.lines.spans import Line, Span, Tone, count_of
from inspector.sessions import redact
from inspector.sessions.reasons import inference_of, is_unrecorded
from loop_core.json_parser import JsonPath
from loop_core.judge.arguments import ArgumentShape, is_phantom, parse
from loop_core.judge.gate import Admission, Verdict
from loop_core.values import ArgsForm, Request, ToolCall
from loop_core.wire.json_values import pointer

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
    UNKNOWN = "unknown"
    """The file has neither a stop reason nor the text of the call's arguments, so it cannot show a cut."""
    NOT_RUN = "not run"
    """The call was cut, and the agent refused it or continued without its result."""


CLAUSES: Mapping[CutRun, str] = {
    CutRun.RAN_OBJECT: "{} known by the stop reason alone: arguments recorded already parsed look complete",
    CutRun.NOT_RUN: "{} refused, or without a result in what the agent sent next",
    CutRun.FAILED: "{} answered with an error: it may have run",
    CutRun.UNSEEN: "{} after which the recording ends",
    CutRun.UNKNOWN: "{} without a recorded stop reason, with arguments recorded already parsed: a cut would not show",
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
        is_stated = not is_unrecorded(stop) and inference_of(stop) is None
        return CutRun.WHOLE if is_stated or verdict.call.form is not ArgsForm.OBJECT else CutRun.UNKNOWN
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
    cut, open_ = ran + maybe + found[CutRun.NOT_RUN], maybe + found[CutRun.UNKNOWN]
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
