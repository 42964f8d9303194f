"""Makes the findings of a session, among them each difference between the recorded agent and this loop."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from operator import eq
from typing import NamedTuple

from inspector.replay import Replay, TurnRun
from inspector.replay.case import Case, results_after
from inspector.replay.recorded_calls import REFUSED
from inspector.replay.token_counts import impossible_count, text_bytes
from inspector.sessions import evidence_places
from inspector.sessions.reasons import UNDER_WAY, is_unrecorded, quotes_parser, why_missing
from inspector.sessions.recording import Exchange, Link, TurnPlace, TurnRecord, common_beginning, late_answers
from inspector.sessions.thread import response_number
from inspector.sessions.wordings import cut_result, is_error, known_hint, refusal
from loop_core.judge.arguments import ArgumentShape, is_phantom, parse
from loop_core.judge.classify import Judgement
from loop_core.judge.endings import SILENT, Ending
from loop_core.judge.gate import Admission, Verdict
from loop_core.turn.costs import is_text_whole
from loop_core.turn.state import State, Turn
from loop_core.values import (
    WORDLESS,
    At,
    ExchangePart,
    Finding,
    Role,
    Severity,
    Stop,
    StopReason,
    ToolCall,
    ToolResultPart,
    TransportEnd,
)
from loop_core.wire.failures import RECORDING_CUT, REDIRECTS

RAN_CUT = "agent.ran_held_call"
"""The recorded agent ran a call for which there is evidence of a cut."""
RAN_UNPROVEN = "agent.ran_unsure_call"
"""The recorded agent ran a call that was held for another reason."""
RAN = (RAN_CUT, RAN_UNPROVEN)
RAN_UNSEEN = "agent.ran_call_of_unseen_end"
"""The recorded agent ran a call of an answer whose end was not recorded."""
FAILED = "agent.failed_held_call"
RAN_IT = "the recorded agent ran it"
"""The words after HELD, the engine's decision about a call, if the agent ran the call."""
CUT_WORDS = frozenset({Stop.MAX_TOKENS, Stop.CONTEXT_WINDOW_EXCEEDED, Stop.INTERRUPTED})
"""The effective stop reasons of an incomplete answer."""
OF_HELD_CALLS = frozenset({RAN_CUT, RAN_UNPROVEN, RAN_UNSEEN, "agent.refused_held_call", FAILED})
"""The rules of findings about a held call that received a result."""


class ReportedFinding(NamedTuple):
    """A finding, and its subject: a response, a turn, or the whole session."""

    finding: Finding
    response: int | None = None
    turn: str | None = None
    call: Verdict | None = None
    """The held call that the finding is about, if any."""


def recording_cut(stop: StopReason) -> bool:
    """Whether the end of an answer is missing because the recording stopped."""
    return stop.normalized is Stop.UNKNOWN and stop.detail == RECORDING_CUT


def held_calls(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The held calls, without phantoms."""
    return [v for v in verdicts if v.admission is Admission.HELD and not is_phantom(v.call)]


def collect(replay: Replay, findings: Sequence[Sequence[ReportedFinding]]) -> list[tuple[ReportedFinding, ...]]:
    """The findings of each turn, in order: those about the recording, then the differences from the engine's decisions.
    `findings` are those of the first turns, known from an earlier reading; only those of the others are returned."""
    recorded = recorded_findings(replay.case, findings)
    return [as_decided(replay, *both) for both in zip(replay.turns[len(findings) :], recorded, strict=True)]


def recorded_findings(
    case: Case, findings: Sequence[Sequence[ReportedFinding]] = (),
) -> list[tuple[ReportedFinding, ...]]:
    """The findings about the recording, for each turn after those whose `findings` are given."""
    exchanges, records = case.recording.exchanges, case.recording.turns[len(findings) :]
    unknown = {_unknown_word(exchanges[each.response]) for of_turn in findings for each in of_turn
               if each.finding.rule == UNKNOWN_WORD and each.response is not None}
    children = _followers(records)
    late = late_answers(case.recording.inputs)
    found: list[tuple[ReportedFinding, ...]] = []
    for record in records:
        of_turn: list[ReportedFinding] = []
        for link in record.links:
            of_turn.extend(_of_response(case, link, record.id, unknown))
            exchange = case.recording.exchanges[link.index]
            after = [each.result for each in late.get((exchange.path, exchange.entry), ())]
            of_turn.extend(_findings_on_held_calls(case, link.index, children.get(link.index, ()), after, record.id))
        of_turn.extend(_cut_answer(case, record, children))
        found.append(tuple(of_turn))
    return found


def touched_since(old: Case, new: Case) -> set[int]:
    """The responses whose facts may differ in a later reading, because of a new request or a tool's result."""
    before, after = old.recording.turns, new.recording.turns
    same = common_beginning(before, after, eq)
    others = (link.parent for turn in (*before[same:], *after[same:]) for link in turn.links)
    found = {parent for parent in others if parent is not None}
    results = late_answers(old.recording.inputs), late_answers(new.recording.inputs)
    late = {place for place in {*results[0], *results[1]} if results[0].get(place) != results[1].get(place)}
    if late:
        found.update(index for index, each in enumerate(new.recording.exchanges) if (each.path, each.entry) in late)
    return found


def _followers(turns: Iterable[TurnRecord]) -> dict[int, list[Link]]:
    """Response -> the requests that the recorded agent sent next, including branches and those after a resumption, but
    not after a gap. If a turn was sent live again, its recorded requests still follow the turn before it."""
    found: dict[int, list[Link]] = {}
    resumed: dict[int, int | None] = {}
    for turn in turns:
        own = {link.index for link in turn.links}
        for link in (*turn.links, *(each for each in turn.remainder if each.parent not in own)):
            parent = None if link.gap else link.parent
            resumed |= {link.index: parent} if link.place is TurnPlace.RESUME else {}
            for _ in range(100):  # a background response may be fetched thousands of times
                if parent is not None:
                    found.setdefault(parent, []).append(link)
                    parent = resumed.get(parent)
    return found


UNKNOWN_WORD = "stop.unknown_word"


def _unknown_word(exchange: Exchange) -> tuple[str, str, str]:
    """The server, the model and the stop word of a response."""
    return exchange.profile.name, exchange.response.model or "", exchange.response.raw_stop_reason or ""


def _of_response(case: Case, link: Link, turn: str, unknown: set[tuple[str, str, str]]) -> Iterable[ReportedFinding]:
    exchange, judged = case.recording.exchanges[link.index], case.judgements[link.index]
    for finding in (*exchange.response.findings, *judged.findings):
        if finding.rule == UNKNOWN_WORD:
            word = _unknown_word(exchange)
            # One finding for each unknown word of a server, since every answer of a session may have the word.
            if word in unknown:
                continue
            unknown.add(word)
        yield ReportedFinding(evidence_places.finding(exchange, finding), link.index, turn)
    # A token stands for at least one byte of what was sent, so a count above the number of bytes is wrong; so is 0 for
    # a text.
    claimed = impossible_count(exchange.response)
    if claimed is not None:
        size = text_bytes(exchange.response)
        why = "nothing explains so many that were not sent" if claimed else "every text takes tokens"
        message = (f"usage claims {claimed:,} output tokens: the text has {size:,} bytes, and {why}; "
                   "simulations ignore the claim")
        severity = Severity.WARNING if claimed else Severity.INFO
        impossible = Finding(evidence_places.IMPOSSIBLE, severity, message)
        yield ReportedFinding(evidence_places.finding(exchange, impossible), link.index, turn)
    if link.ambiguous:
        others = ", ".join(map(response_number, link.ambiguous))
        message = f"it may follow any of responses {others}, so it begins a new turn"
        finding = Finding("thread.ambiguous", Severity.INFO, message, At(ExchangePart.REQUEST))
        yield ReportedFinding(finding, link.index, turn)
    failed = exchange.response.error is not None and exchange.response.transport_end is TransportEnd.CUT
    if recording_cut(judged.stop) or failed:
        size = exchange.response.size
        message = f"the recording is cut here, after {size:,} bytes of the answer; nothing shows that the server failed"
        at = At(ExchangePart.BODY, size, size)
        yield ReportedFinding(Finding("session.recording_cut", Severity.WARNING, message, at), link.index, turn)
    elif not exchange.recorded and judged.stop.detail != UNDER_WAY:
        message = f"{why_missing(judged.stop)}; how it ended is unknown"
        yield ReportedFinding(Finding("session.not_recorded", Severity.WARNING, message), link.index, turn)


def _findings_on_held_calls(
    case: Case, index: int, children: Sequence[Link], late: Sequence[ToolResultPart], turn: str
) -> Iterable[ReportedFinding]:
    """What the recorded agent did with held and rejected calls; a result that is not an error shows that one ran."""
    stop, refused = case.judgements[index].stop, case.recording.exchanges[index].refusals
    for verdict, answer, child in _answered_calls(case, index, children, late):
        where = f"request of response {response_number(child)}" if child is not None else "recording"
        name = verdict.call.name or "without a name"
        ran = f"the recorded agent ran {name}"
        did_not = verdict.call.id in refused or _refuses(answer, verdict.call)
        if verdict.admission is Admission.REJECTED:
            if did_not or is_error(answer) or verdict.rule == REFUSED or re.search(_AS_AN_ERROR, answer.text[:60]):
                continue
            message = f"{ran} ({where}), which this loop rejects: {verdict.why}"
            finding = Finding("agent.ran_rejected_call", Severity.WARNING, message, At(ExchangePart.REQUEST))
        elif did_not:
            message = f"the recorded agent refused the held call {name} ({where}); it did not run it"
            finding = Finding("agent.refused_held_call", Severity.INFO, message, At(ExchangePart.REQUEST))
        elif is_error(answer):
            message = f"the recorded agent answered the held call {name} with an error ({where}); it may have run"
            finding = Finding(FAILED, Severity.INFO, message, At(ExchangePart.REQUEST))
        elif is_unrecorded(stop):
            message = f"{ran} ({where}), which this loop holds: how the answer ended was not recorded"
            finding = Finding(RAN_UNSEEN, Severity.INFO, message, At(ExchangePart.REQUEST))
        elif not shows_cut(case.judgements[index], verdict):
            message = f"{ran} ({where}), which this loop holds: {verdict.why}; nothing shows that it was cut"
            finding = Finding(RAN_UNPROVEN, Severity.WARNING, message, At(ExchangePart.REQUEST))
        else:
            excerpt = answer.text if len(answer.text) <= 60 else f"{answer.text[:57]}…"
            message = f"{ran}, which this loop holds: the {where} has its result {excerpt!r}"
            finding = Finding(RAN_CUT, Severity.ERROR, message, At(ExchangePart.REQUEST))
        yield ReportedFinding(finding, index, turn, verdict)


def ran_calls(notes: Iterable[ReportedFinding], response: int) -> list[Verdict]:
    """The held calls of a response that the recorded agent ran nevertheless."""
    return [note.call for note in notes
            if note.response == response and note.call is not None and note.finding.rule in (*RAN, RAN_UNSEEN)]


def shows_cut(judgement: Judgement, verdict: Verdict) -> bool:
    """Whether a held call's arguments or its response's stop reason show a cut; after an interruption, only a call that
    had not ended is cut."""
    shape, word = parse(verdict.call.arguments).shape, judgement.stop.normalized
    # vLLM may report `tool_calls` for a call that the cap has cut (vllm-project/vllm#53269), so the count against the
    # cap decides whatever the word is.
    if shape is ArgumentShape.CUT or judgement.cap_reached or word in (Stop.MAX_TOKENS, Stop.CONTEXT_WINDOW_EXCEEDED):
        return True
    return word is Stop.INTERRUPTED and not verdict.call.closed and shape is not ArgumentShape.COMPLETE


def _answered_calls(
    case: Case, index: int, children: Sequence[Link], late: Sequence[ToolResultPart]
) -> list[tuple[Verdict, ToolResultPart, int | None]]:
    """The answered calls that this loop does not run, each with its result and the request that carried it."""
    calls = [v for v in case.verdicts[index] if not is_phantom(v.call)]
    held = [at for at, verdict in enumerate(calls) if verdict.admission is not Admission.READY]
    found: dict[int, tuple[Verdict, ToolResultPart, int | None]] = {}
    carried = [(child.index, _results(case, index, child)) for child in children] if held else ()
    for number, results in (*carried, (None, late)):
        for position in held:
            answer = None if position in found else _result_for(calls, position, results)
            if answer is not None:
                found[position] = calls[position], answer, number
    return [found[position] for position in sorted(found)]


def _results(case: Case, index: int, child: Link) -> Sequence[ToolResultPart]:
    """The results in a request that may belong to a response: after a resumption, not those of the answer it got."""
    results = results_after(case, index, child.index) if _continues(case, index, child) else ()
    if child.parent is None or child.parent == index:
        return results
    other = {call.id for call in case.recording.exchanges[child.parent].response.tool_calls}
    return [part for part in results if part.call_id and part.call_id not in other]


def _continues(case: Case, index: int, child: Link) -> bool:
    """Whether a request continues the conversation, instead of repeating the answered request."""
    before, after = case.recording.exchanges[index].request, case.recording.exchanges[child.index].request
    if before is None or after is None:
        return False
    was, now = (sum(message.role is Role.ASSISTANT for message in request.messages) for request in (before, after))
    return bool(after.previous_id) or now > was or child.place is TurnPlace.TOOL_RESULT


_SEARCHED_CHARACTERS = 240
"""The number of first characters of a result in which a refusal must occur; later text may come from a file."""
_AS_AN_ERROR = r"(?i)error|exception|failed|invalid|missing|required|unknown|no such|not (?:found|exist)"
"""Matches words at the beginning of a result that may be an error; the results of Chat Completions have no mark."""
_OF_THE_CALL = r"(?i)\b(?:calls?|arguments?|payload|json|not (?:been )?(?:executed|run))\b"  # compiled when it is used


def _refuses(answer: ToolResultPart, call: ToolCall) -> bool:
    """Whether a result's text says that its call did not run; many formats have no field for that. An error is not
    enough, because a tool that ran may have failed. The words must be about the call and come first, because other
    text, such as a note that the result was truncated, says nothing about the call."""
    beginning = answer.text[:_SEARCHED_CHARACTERS]
    refused = refusal(answer, call.name) is not None or quotes_parser(beginning, call)
    return refused or (cut_result(beginning) is not None and re.search(_OF_THE_CALL, beginning) is not None)


def _result_for(calls: Sequence[Verdict], position: int, results: Sequence[ToolResultPart]) -> ToolResultPart | None:
    call = calls[position].call
    own = [part for part in results if part.call_id and part.call_id in (call.id, call.item_id)]  # chatlas: the item's
    if own:  # of several results, one that is not an error shows that the call ran
        return next((part for part in own if not is_error(part) and not _refuses(part, call)), own[0])
    # Gemini and Ollama may send results without an id; then the n-th result with a name answers the n-th call of that
    # name, and without names the n-th result answers the n-th call.
    named = [part for part in results if part.call_id is None and part.name == call.name]
    before = sum(each.call.name == call.name for each in calls[:position]) if named else position
    named = named or [part for part in results if part.call_id is None and not part.name]
    return named[before] if before < len(named) else None


def is_suspicion(judgement: Judgement) -> bool:
    """Whether a spent budget is the only evidence that the answer was cut."""
    return any(note.rule == "judge.usage_at_cap" and note.severity is Severity.WARNING for note in judgement.findings)


def _cut_answer(case: Case, record: TurnRecord, children: Mapping[int, Sequence[Link]]) -> Iterable[ReportedFinding]:
    last = record.links[-1].index
    judged = case.judgements[last]
    word = judged.stop.normalized
    after = [child for child in children.get(last, ()) if child.place is TurnPlace.REQUEST]
    if after and word in CUT_WORDS and not is_suspicion(judged) and not any(_asks_again(case, one) for one in after):
        message = f"the answer ended with {word.value}, and the conversation went on without the rest of it"
        yield ReportedFinding(Finding("agent.took_cut_answer", Severity.ERROR, message), last, record.id)


_ASKS_FOR_REST = (
    r"(?i)\b(?:continue|go on|go ahead|keep going|carry on|resume|proceed|finish|retry|again|repeat|resend|redo|"
    r"start over|cut off|cut short|truncated|incomplete|unfinished|the rest|left off|you stopped|smaller|shorter)\b"
)
"""Matches words that may ask for the rest of a cut answer; after them, no finding reports the rest as lost."""


def _asks_again(case: Case, child: Link) -> bool:
    """Whether a new message may ask, in any words, for the rest of the answer or for the whole answer again."""
    request = case.recording.exchanges[child.index].request
    message_text = request.messages[-1].text[:_SEARCHED_CHARACTERS] if request is not None and request.messages else ""
    return known_hint(message_text) is not None or re.search(_ASKS_FOR_REST, message_text) is not None


# -- What depends on the engine's decisions, not on the recording alone ----------------------------------------------


def as_decided(replay: Replay, turn: TurnRun, notes: Iterable[ReportedFinding]) -> tuple[ReportedFinding, ...]:
    """The findings of a turn in this run; an empty answer that the engine accepts as an end is not an error."""
    kept = [note for note in notes if note.finding.rule != ANOTHER_WAY]
    return (*(_weigh(replay.case, turn, note) for note in kept), *another_way(replay, turn))


def _weigh(case: Case, turn: TurnRun, note: ReportedFinding) -> ReportedFinding:
    if note.response is None or note.finding.rule not in _SILENCE:
        return note
    judgement = case.judgements[note.response]
    severity = next(each.severity for each in judgement.findings if each.rule == note.finding.rule)
    if ending_that_counts(judgement, turn.final_turn) is None:
        severity = Severity.INFO
    return note._replace(finding=note.finding._replace(severity=severity))


_SILENCE = frozenset(f"ending.{each.value}" for each in SILENT)


def ending_that_counts(judgement: Judgement, turn: Turn) -> Ending | None:
    """The ending of an answer; None for an empty answer that was wanted, or that follows a text that was whole."""
    # `allow_silence`: the prompt allows an empty answer, as for an agent that may have nothing to say.
    silent = judgement.ending in SILENT and (turn.policy.allow_silence or _adds_nothing(judgement, turn))
    return None if silent else judgement.ending


def _adds_nothing(judgement: Judgement, turn: Turn) -> bool:
    """Whether an empty answer ended a turn whose text was already whole; the machine decides it in the same way."""
    last = turn.evaluation is not None and turn.evaluation.judgement is judgement
    return last and turn.terminal == "completed" and judgement.ending_sure and is_text_whole(turn)


ANOTHER_WAY = "agent.went_another_way"
"""The rule of the finding that the recorded agent did something else than the engine."""


def another_way(replay: Replay, turn: TurnRun) -> Iterable[ReportedFinding]:
    """A finding if the engine ends a turn, or requests something else, before the recorded agent was done."""
    if turn.runs < 2:
        return
    ended, links = replay.trace.steps[turn.deciding_step].turn, turn.record.links
    reached = ended.evaluation.number if ended.evaluation else None
    if ended.evaluation is not None and is_unrecorded(ended.evaluation.judgement.stop):
        return  # the engine stops because the end of the answer was not recorded
    after = [link.index for link in links].index(reached) + 1 if reached is not None else 0
    place = links[after].place.value if after < len(links) else "request"
    bad = _last_stop(replay.case, links[after:])
    response = None if reached is None else replay.case.recording.exchanges[reached].response
    again = response and response.error and (response.error.retryable or response.http_status in REDIRECTS)
    if place == TurnPlace.RETRY and again and not bad:
        return  # a client sends such a request again, if only to another address, and got an answer
    when = "" if reached is None else f" after response {response_number(reached)}"
    message = f"this loop {_waiting_for(replay, turn)}{when}; the recorded agent went on with a {place}{bad}"
    yield ReportedFinding(Finding(ANOTHER_WAY, Severity.WARNING, message), reached, turn.record.id)


def _last_stop(case: Case, rest: Sequence[Link]) -> str:
    """How the last answer of the recorded agent ended, if it ended badly: the verdict is about an answer before it."""
    stop = case.judgements[rest[-1].index].stop.normalized if rest else Stop.UNKNOWN
    if stop in WORDLESS:
        return ""
    return f", whose last answer, response {response_number(rest[-1].index)}, ended in {stop.value}"


def _waiting_for(replay: Replay, turn: TurnRun) -> str:
    step = replay.trace.steps[turn.deciding_step]
    if step.state is not State.UNRECORDED:
        return f"ended the turn ({step.turn.terminal})"
    state = step.previous_state
    wanted = {
        State.REQUEST_TOOL_REPAIR: "asked for the held call again",
        State.EXECUTE_TOOLS: "ran the ready calls", State.REQUEST_CONTINUATION: "asked for a continuation",
        State.RESUME: "resumed the paused response", State.REQUEST_NUDGE: "asked once more for an answer",
    }
    return wanted.get(state, "asked for the next response") if state is not None else "asked for a response"
