"""What the recorded agent did beside what our machine decides: every difference is a finding.

Looks only at recorded facts (which request followed, which results it carried) and at verdicts. A guess is never made:
where the recording ends, it says that it ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inspector.replay import Case, Replay, TurnRun, results_in
from inspector.sessions.hints import cut_result
from inspector.sessions.values import Link, Place
from loop_core.classify import is_phantom
from loop_core.gate import Admission, Verdict
from loop_core.turn import State
from loop_core.values import At, Finding, Part, Severity, Stop, ToolResultPart

CUT_WORDS = frozenset({Stop.MAX_TOKENS, Stop.CONTEXT_WINDOW_EXCEEDED, Stop.INTERRUPTED})
"""Effective reasons of an answer that is not whole."""


@dataclass(frozen=True, slots=True)
class Noted:
    """A finding and what it is about: a response, a turn, or the whole session."""

    finding: Finding
    response: int | None = None
    turn: str | None = None


def held(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The held calls, phantoms left out."""
    return [v for v in verdicts if v.admission is Admission.HELD and not is_phantom(v.call)]


def collect(replay: Replay) -> list[Noted]:
    """All findings of a session, in the order of its turns."""
    case = replay.case
    found: list[Noted] = []
    unknown: set[tuple[str, str, str]] = set()
    conversations = _followers(case)
    for turn in replay.turns:
        links = turn.record.links
        for position, link in enumerate(links):
            found.extend(_of_response(case, link, turn.record.id, unknown))
            following = links[position + 1] if position + 1 < len(links) else None
            if following is not None:
                found.extend(_ran(case, link, following, turn.record.id))
        found.extend(_of_turn(replay, turn, turn.record.id in conversations))
    return found


def _followers(case: Case) -> set[str]:
    """The turns after which their conversation went on."""
    return {turn.id for conversation in case.loaded.conversations for turn in conversation.turns[:-1]}


def _of_response(case: Case, link: Link, turn: str, unknown: set[tuple[str, str, str]]) -> Iterable[Noted]:
    exchange, judged = case.loaded.exchanges[link.index], case.judged[link.index]
    for finding in (*exchange.response.findings, *judged.findings):
        if finding.rule == "stop.unknown_word":
            word = (exchange.profile.name, exchange.response.model or "", exchange.response.raw_stop_reason or "")
            if word in unknown:
                continue
            unknown.add(word)
        yield Noted(finding, link.index, turn)
    if link.ambiguous:
        others = ", ".join(str(index) for index in link.ambiguous)
        message = f"its parent is ambiguous (responses {others}), so it opens a turn of its own"
        yield Noted(Finding("thread.ambiguous", Severity.INFO, message, At(Part.REQUEST)), link.index, turn)
    if not exchange.recorded:
        message = "the body was not recorded; nothing can be said about its end"
        yield Noted(Finding("session.not_recorded", Severity.WARNING, message), link.index, turn)


def _ran(case: Case, link: Link, following: Link, turn: str) -> Iterable[Noted]:
    """Whether the recorded agent ran a held call: the next request answers it with a result that is no error."""
    if following.place not in (Place.TOOL_RESULT, Place.REPAIR):
        return
    results = results_in(case.loaded.exchanges[following.index])
    for position, verdict in enumerate(held(case.verdicts[link.index])):
        answer = _result_for(verdict, position, results)
        if answer is None:
            continue
        where = f"request of response {following.index}"
        name = verdict.call.name
        if _refuses(answer):
            message = f"the recorded agent answered the held call {name} with an error ({where}); it did not run it"
            yield Noted(Finding("agent.refused_held_call", Severity.INFO, message, At(Part.REQUEST)), link.index, turn)
        else:
            said = answer.text if len(answer.text) <= 60 else f"{answer.text[:57]}…"
            message = f"the recorded agent ran the held call {name}: the {where} holds its result {said!r}"
            yield Noted(Finding("agent.ran_held_call", Severity.ERROR, message, At(Part.REQUEST)), link.index, turn)


_OF_THE_CALL = re.compile(r"\b(?:calls?|arguments?|payload|json|not (?:been )?(?:executed|run))\b", re.IGNORECASE)


def _refuses(answer: ToolResultPart) -> bool:
    """Whether a result says that its call did not run: many formats have no mark for it, only words.

    A result that is itself truncated (`[output truncated]`) is no refusal: it must speak of the call.
    """
    return answer.is_error or (cut_result(answer.text) is not None and _OF_THE_CALL.search(answer.text[:600]) is not None)


def _result_for(verdict: Verdict, position: int, results: Sequence[ToolResultPart]) -> ToolResultPart | None:
    for part in results:
        if verdict.call.id and part.call_id == verdict.call.id:
            return part
    named = [part for part in results if part.call_id is None and part.name == verdict.call.name]
    return named[min(position, len(named) - 1)] if named else None


def _of_turn(replay: Replay, turn: TurnRun, followed: bool) -> Iterable[Noted]:
    case, links = replay.case, turn.record.links
    last = links[-1].index
    ended = replay.trace.steps[turn.decided].turn
    word = case.judged[last].stop.normalized
    if word in CUT_WORDS and followed:
        message = f"the answer was {word.value} and the conversation went on without the rest of it"
        yield Noted(Finding("agent.took_cut_answer", Severity.ERROR, message), last, turn.record.id)
    if turn.runs > 1:
        reached = ended.evaluated.index if ended.evaluated else None
        decided = _waiting_for(replay, turn)
        place = next((link.place.value for link in links if reached is not None and link.index > reached), "request")
        message = f"our machine {decided} after response {reached}; the recorded agent went on with a {place}"
        yield Noted(Finding("agent.went_another_way", Severity.WARNING, message), reached, turn.record.id)


def _waiting_for(replay: Replay, turn: TurnRun) -> str:
    step = replay.trace.steps[turn.decided]
    if step.state is not State.UNRECORDED:
        return f"ended the turn ({step.turn.terminal})"
    asked = step.came_from
    wanted = {
        State.REQUEST_CONTINUATION: "asked for a continuation",
        State.REQUEST_TOOL_REPAIR: "asked for the held call again",
        State.EXECUTE_TOOLS: "ran the ready calls",
        State.RESUME: "resumed the paused response",
    }
    return wanted.get(asked, "asked for the next response") if asked is not None else "asked for a response"
