"""The input of a verdict: one turn with its responses, recorded or simulated."""

# Annotations are not postponed: of a named tuple each would be compiled from text at every start.
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from inspector.replay import Replay, TurnRun
from inspector.replay.case import AMBIGUITY, TURN_PLACES, Case, has_unrecorded_answer, stops_at_edit
from inspector.report.findings import RAN_CUT, RAN_UNPROVEN, RAN_UNSEEN, ReportedFinding, ending_that_counts, held_calls
from inspector.sessions.reasons import STOPPED, UNREAD_CALL, inference_of, is_unrecorded
from inspector.sessions.recording import Exchange, TurnPlace, TurnRecord
from loop_core.judge.classify import Judgement
from loop_core.judge.endings import UNFINISHED_TEXT, Ending, maybe_cut_at_cap
from loop_core.judge.gate import Admission, Verdict
from loop_core.turn.limits import GUARDS, TOTAL
from loop_core.turn.loop import NO_RECORDED_ANSWER
from loop_core.turn.moves import GUARD_PLACES, stopping_guard
from loop_core.turn.state import NotRecorded, ProviderResponse, RequestPlace, Send, State, Turn
from loop_core.turn.trace import Fidelity, Step
from loop_core.values import FINISHED, Evidence, Finding, Message, Request, Stop

BLOCKING = frozenset({"gate.incomplete", "gate.contradiction"})
"""The rules that hold a call for its own fault, not for the end of its answer or another call of its batch."""

# -- A simulated answer as an exchange -------------------------------------------------------------------------------
# It has the bytes that the provider would have sent, and their request, so that code that shows or judges an exchange
# needs no second path for answers that are in no recording.

PLACES: Mapping[RequestPlace, TurnPlace] = {**TURN_PLACES, RequestPlace.REQUEST: TurnPlace.REQUEST}
"""Place of a request, as the engine names it -> the place of the answer in its turn."""


def exchange_of(opening: Exchange, event: ProviderResponse, before: Turn) -> Exchange:
    """The exchange of a response that is in no recording; `opening` is the recorded exchange that began its turn."""
    body = event.recut.body if event.recut is not None else b""
    return replace(
        opening, request=request_of(before), stored_request=None, response=event.response, content=body, headers=(),
        request_headers=(), recorded=event.recut is not None, started=None, duration_ms=None, chunks=(),
        first_byte_ms=None, recorder=None, lines=(),
    )


def request_of(turn: Turn) -> Request:
    """The current or last request, with its cap."""
    cap = turn.last_send.max_tokens if turn.last_send is not None else turn.request.max_tokens
    return replace(turn.request, messages=messages_of(turn, turn.last_send), max_tokens=cap)


def messages_of(turn: Turn, send: Send | None) -> tuple[Message, ...]:
    """The messages of a request: the history, and those added for it."""
    return (*turn.history, *send.new_messages) if send is not None and send.new_messages else turn.history


def place_of(before: Turn) -> TurnPlace:
    """The place within the turn of the request that a response answers."""
    return PLACES[before.last_send.place] if before.last_send is not None else TurnPlace.REQUEST


class TurnAnswer(NamedTuple):
    """One response of a turn: recorded, or simulated."""

    exchange: Exchange
    judgement: Judgement
    verdicts: tuple[Verdict, ...]
    place: TurnPlace
    cut_unseen: bool = False
    """Whether a simulated budget cut the response and nothing in the response shows the cut."""
    recut: bool = False
    """Whether a simulation made the response; then it is known whether the response is cut."""

    @property
    def word(self) -> Stop:
        """The effective stop reason."""
        return self.judgement.stop.normalized

    @property
    def rules(self) -> frozenset[str]:
        """The rules of the findings about the response."""
        return frozenset(each.rule for each in (*self.exchange.response.findings, *self.judgement.findings))


class JudgedTurn(NamedTuple):
    """One turn, as the rows of the verdict table test it."""

    final_turn: Turn
    answers: tuple[TurnAnswer, ...]
    """The recorded answers of the turn; if a simulation or a live server answered the engine, those answers."""
    simulated: bool
    """Whether `answers` come from a simulation or a live run, so that the recorded agent's actions do not matter."""
    rules: frozenset[str]
    held_calls: tuple[tuple[int, Verdict], ...]
    """Every held call of the turn with the position of its response; only those that the agent ran, if it ran any."""
    worst: int
    """The position of the deciding response: the last one without a clean effective reason, else the last one."""
    word: Stop
    """The effective stop reason of the deciding response; `cancelled` if a live run was cancelled."""
    stopped: bool = False
    """Whether a transcript has a note after the turn's last answer that the turn was stopped."""
    stop_note: str = ""
    """A transcript's note about a stop of the turn, with its place; the last one if there are several."""
    limit: tuple[str, int] | None = None
    """The limit that ended the turn, and its value; None if none did."""
    edited: bool = False
    """Whether the run ended because an input of the turn was edited."""
    unanswered: bool = False
    """Whether the run ended before any answer, because its first request is not in the recording."""
    given_up: bool = False
    """Whether this program's own live run recorded that it could not go on."""
    may_follow: tuple[int, ...] = ()
    """The indices of recorded answers that may continue this turn, but could also continue another one."""
    ran_uncut: tuple[Verdict, ...] = ()
    """The held calls that the recorded agent ran, and of which nothing shows that they were cut."""

    @property
    def has_simulated_answer(self) -> bool:
        """Whether the turn has an answer that no provider sent."""
        return any(answer.recut or answer.exchange.simulated for answer in self.answers)

    @property
    def exchange(self) -> Exchange:
        """The exchange of the deciding response."""
        return self.answers[self.worst].exchange

    @property
    def judgement(self) -> Judgement:
        """The deciding response's stop reason."""
        return self.answers[self.worst].judgement

    @property
    def words(self) -> frozenset[Stop]:
        """The effective stop reasons of all responses of the turn."""
        return frozenset(answer.word for answer in self.answers)

    @property
    def cut_call(self) -> Verdict | None:
        """The deciding response's held call that holds the others, else its last held call; None if none is held."""
        held = [verdict for index, verdict in reversed(self.held_calls) if index == self.worst]
        return next((verdict for verdict in held if verdict.rule in BLOCKING), held[0] if held else None)

    @property
    def last_word(self) -> Stop:
        """The effective reason of the turn's last response."""
        return self.answers[-1].word

    @property
    def reached_end(self) -> bool:
        """Whether the engine has evaluated the turn's last response."""
        evaluation = self.final_turn.evaluation
        return evaluation is not None and evaluation.response is self.answers[-1].exchange.response

    @property
    def at_cap(self) -> bool:
        """Whether the turn's last answer ended cleanly exactly at its cap, which may have cut it."""
        last = self.answers[-1]
        return not last.recut and last.word in FINISHED and maybe_cut_at_cap(
            last.exchange.response, last.exchange.request)

    @property
    def unfinished(self) -> Finding | None:
        """The finding that the text of the turn's last answer stops in the middle under a clean word."""
        last = self.answers[-1]
        found = () if last.recut else last.judgement.findings  # a simulation knows whether its answer is cut
        return next((each for each in found if each.rule == UNFINISHED_TEXT), None)

    @property
    def ends_at_call(self) -> bool:
        """Whether the turn's last answer calls tools, so that the end of the turn is not known."""
        return self.last_word is Stop.TOOL_CALL and bool(self.answers[-1].exchange.response.tool_calls)

    @property
    def stopped_at_call(self) -> bool:
        """Whether the engine stopped at a call in the turn's last answer, because nothing is recorded after it."""
        return self.final_turn.outcome is State.UNRECORDED and self.reached_end and self.last_word is Stop.TOOL_CALL

    @property
    def awaits_result(self) -> bool:
        """Whether a simulated or live run stopped at a whole call, without its result or an answer to it."""
        return self.stopped_at_call and (self.simulated or self.given_up)

    @property
    def file_ends_at_call(self) -> bool:
        """Whether the turn waits for results of calls, and the file ends before they could be recorded."""
        waits = self.last_word is Stop.TOOL_CALL and self.word is Stop.TOOL_CALL
        held = any(position == len(self.answers) - 1 for position, _ in self.held_calls)
        return self.answers[-1].exchange.cut_after and waits and not held and not self.simulated

    @property
    def agent_ran_calls(self) -> bool:
        """Whether the turn's last answer, from a transcript, calls tools; its agent ran them, so no limit ended it."""
        return self.last_word is Stop.TOOL_CALL and self.answers[-1].exchange.recorder is not None

    @property
    def inference(self) -> Evidence | None:
        """How the end of the turn's last response was inferred, if no stop word was recorded and it looks whole."""
        stop = self.answers[-1].judgement.stop
        return inference_of(stop) if stop.normalized in FINISHED else None

    @property
    def ending(self) -> Ending | None:
        """How the deciding response ended if it only looks finished; an intended silence does not count."""
        return ending_that_counts(self.judgement, self.final_turn)

    @property
    def cut(self) -> bool:
        """Whether a budget cut the deciding response, with or without a stop word for it."""
        wordless = self.word in (Stop.INTERRUPTED, Stop.UNKNOWN)
        return self.word is Stop.MAX_TOKENS or (wordless and self.judgement.cap_reached)

    @property
    def is_continuation_guessed(self) -> bool:
        """Whether an answer counts as the rest of a cut one only because a transcript has it next."""
        return any(map(_is_guessed, self.answers))

    @property
    def is_retry_guessed(self) -> bool:
        """Whether a request counts as a cut one that was sent again only because it is the same: a transcript states
        neither that nor both output caps."""
        return any(
            after.place is TurnPlace.RETRY and before.word is Stop.MAX_TOKENS and after.exchange.recorder is not None
            and after.exchange.recorded_place is None and None in (before.exchange.cap, after.exchange.cap)
            for before, after in pairwise(self.answers))

    @property
    def has_unseen_seam(self) -> bool:
        """Whether the agent continued a cut answer where the engine no longer followed it, and so checked no seam."""
        return bool(_continued(self.answers)) and not self.reached_end

    @property
    def rejected_calls(self) -> tuple[Verdict, ...]:
        """The rejected calls of the last response, whose outcome is not recorded."""
        return tuple(v for v in self.answers[-1].verdicts if v.admission is Admission.REJECTED)

    @property
    def stays_paused(self) -> bool:
        """Whether the turn ends with a paused answer: in the recording, or under a policy that takes a pause for the
        end. A limit of ours does not count, because the recorded agent may have resumed the answer more often."""
        by = self.final_turn.evaluation
        taken = by is not None and by.judgement.stop.normalized is Stop.PAUSED
        return (taken and not self.reached_end and self.limit is None) or self.last_word is Stop.PAUSED

    @property
    def is_repaired(self) -> bool:
        """Whether the turn ended with a response that ended cleanly, such as a whole call, whatever the policy made of
        it. That response does not repair what was cut later, if the agent continued after our engine's end."""
        by = self.final_turn.evaluation.judgement if self.final_turn.evaluation else None
        ended = (self.final_turn.terminal == "completed" and self.reached_end) or self.stopped_at_call
        return ended and by is not None and _clean(by, self.final_turn)


def judged_turn_of(replay: Replay, turn: TurnRun, findings: Sequence[ReportedFinding]) -> JudgedTurn:
    """A turn, with its findings, as the verdict table tests it."""
    last = turn.end - 1 if stops_at_edit(turn.steps) else turn.deciding_step
    steps = turn.steps[: last + 1 - turn.first]
    ended = steps[-1].turn._replace(policy=replay.settings_at(last).belief)  # a shared step has that of another run
    limit, again = _limit(replay, turn, ended), is_requested_again(replay, turn)
    return judge_steps(replay.case, turn.record, steps, ended, findings, limit, again)


def judge_steps(
    case: Case, record: TurnRecord, steps: Sequence[Step], turn: Turn, findings: Sequence[ReportedFinding],
    limit: tuple[str, int] | None, requested_again: bool = False,
) -> JudgedTurn:
    """A turn as the verdict table tests it, from the steps that decided it and its last state. The recorded agent's
    actions do not matter if the engine's answers are simulated, live, or missing because they were never requested; but
    calls that it ran before an edited input count."""
    edited = stops_at_edit(steps)
    unanswered = not edited and turn.outcome is State.UNRECORDED and not any(
        isinstance(step.event, ProviderResponse) for step in steps)
    simulated = requested_again or edited or unanswered or has_unrecorded_answer(turn)
    answers = tuple(_answers_of_run(case, record, steps) if simulated else ()) or tuple([
        TurnAnswer(case.recording.exchanges[link.index], case.judgements[link.index], case.verdicts[link.index],
                   link.place) for link in record.links])
    if simulated:
        received = {step.event.number for step in steps if edited and isinstance(step.event, ProviderResponse)}
        findings = [note for note in findings if note.finding.rule == RAN_CUT and note.response in received]
    rules = frozenset(note.finding.rule for note in findings)
    places = {id(answer.exchange): position for position, answer in enumerate(answers)}
    # A cut call that the agent ran outweighs every other fault of the turn, because it has had effects.
    ran = [(places.get(id(case.recording.exchanges[n.response])), n.call) for n in findings
           if n.finding.rule == RAN_CUT and n.response is not None]
    calls = tuple((place, call) for place, call in ran if place is not None and call is not None)
    calls = calls or tuple((position, v) for position, each in enumerate(answers) for v in held_calls(each.verdicts))
    worst = calls[-1][0] if RAN_CUT in rules and calls else _deciding(answers, turn)
    cancelled = simulated and turn.terminal == "cancelled"
    # A cancelled run may have no bad answer; without this word its last answer would decide the verdict.
    word = Stop.CANCELLED if cancelled else answers[worst].word
    last = record.links[-1].index
    stops = [note for note in findings if note.finding.rule == STOPPED]
    stopped = any(note.response == last for note in stops)
    stop_note = stops[-1].finding.message + ("" if stopped else ", before this answer") if stops else ""
    event = steps[-1].event
    # Only this program's recordings give a reason for the end of a turn.
    given_up = isinstance(event, NotRecorded) and event.why not in ("", NO_RECORDED_ANSWER, AMBIGUITY)
    return JudgedTurn(
        turn, answers, simulated, rules, calls, worst, word, stopped, stop_note, limit, edited, unanswered, given_up,
        () if simulated else case.may_follow.get(last, ()),
        tuple(n.call for n in findings if n.finding.rule in (RAN_UNPROVEN, RAN_UNSEEN) and n.call is not None))


def has_reasoning(turn: JudgedTurn) -> bool:
    """Whether the deciding response contains reasoning, visible or counted."""
    response = turn.exchange.response
    return bool((response.usage and response.usage.reasoning_tokens) or response.reasoning_content)


def all_reasoning(turn: JudgedTurn) -> bool:
    """Whether reasoning used up the budget of the deciding response, so that it has no text or call."""
    response = turn.exchange.response  # reasoning counts against the cap: platform.openai.com/docs/guides/reasoning
    return turn.cut and has_reasoning(turn) and not response.text and not response.tool_calls


def arguments_unread(turn: JudgedTurn) -> bool:
    """Whether the recorder left out the arguments of the cut call, because it could not read them."""
    call = None if turn.cut_call is None else turn.cut_call.call
    return call is not None and call.arguments is None and any(
        finding.rule == UNREAD_CALL and finding.at == call.at for finding in turn.exchange.response.findings)


def nothing_read(turn: JudgedTurn) -> bool:
    """Whether the deciding response has bytes, but none that its format knows."""
    response = turn.exchange.response
    content = response.parts or response.raw_stop_reason or response.error or response.usage or response.id
    return bool(response.size) and not content


_BY_LIMIT = frozenset(guard.terminal for guard in GUARDS)


def _limit(replay: Replay, turn: TurnRun, last_turn: Turn) -> tuple[str, int] | None:
    """The limit whose guard stopped the turn in its last guarded state, and its value; None if none did."""
    if last_turn.terminal not in _BY_LIMIT:
        return None
    for index in range(turn.deciding_step, turn.first - 1, -1):
        if replay.trace.steps[index].state in GUARD_PLACES:
            at = replay.effective_step(index).turn
            if (guard := stopping_guard(at)) is None:
                return None
            value = at.token_cap if guard.limit == TOTAL else getattr(at.limits, guard.limit)
            return None if value is None else (guard.limit, value)
    return None


def is_requested_again(replay: Replay, turn: TurnRun) -> bool:
    """Whether the response that decides a turn was requested again, from a server or a stand-in."""
    return turn.record.live_run is not None and replay.trace.steps[turn.deciding_step].fidelity is not Fidelity.RECORDED


def _answers_of_run(case: Case, record: TurnRecord, steps: Sequence[Step]) -> Iterator[TurnAnswer]:
    """Every response that the engine received in these steps."""
    exchanges = case.recording.exchanges
    for step in steps:
        event, evaluation = step.event, step.turn.evaluation
        if isinstance(event, ProviderResponse) and evaluation is not None and step.before is not None:
            index, opening = event.number, exchanges[record.links[0].index]
            exchange = exchange_of(opening, event, step.before) if index is None else exchanges[index]
            yield TurnAnswer(exchange, event.judgement, evaluation.verdicts, place_of(step.before), event.cut_unseen,
                             event.recut is not None)


def _clean(judgement: Judgement, turn: Turn) -> bool:
    """Whether an answer ended well."""
    return judgement.stop.normalized in FINISHED and ending_that_counts(judgement, turn) is None


def _is_guessed(answer: TurnAnswer) -> bool:
    """Whether an answer counts as the rest of the one before it only because a transcript has it next."""
    request = answer.exchange.request
    return (answer.place is TurnPlace.CONTINUATION and answer.exchange.recorder is not None
            and request is not None and not request.messages)


def _continued(answers: Sequence[TurnAnswer]) -> frozenset[int]:
    """The cut texts that the agent continued after a retry, which the engine does not follow."""
    again = next((place for place, answer in enumerate(answers) if answer.place is TurnPlace.RETRY), len(answers))
    return frozenset(place for place in range(again, len(answers) - 1) if answers[place].word is Stop.MAX_TOKENS
                     and not answers[place].verdicts and answers[place + 1].place is TurnPlace.CONTINUATION)


def _deciding(answers: Sequence[TurnAnswer], turn: Turn) -> int:
    last = len(answers) - 1
    # An answer of which nothing was recorded, as of a run that was killed, does not outweigh a fault before it.
    is_lost = is_unrecorded(answers[last].judgement.stop) and not answers[last].exchange.response.parts
    if not (is_lost or _clean(answers[last].judgement, turn)):
        return last
    # A failed attempt does not decide the turn once the agent's retry was answered.
    retried = {at for at, after in enumerate(answers[1:]) if after.place is TurnPlace.RETRY} | _continued(answers)
    # Nor does an answer whose end was not recorded, if the agent went on from it in a request that was recorded, or if
    # the last end is only inferred, so that the turn does not count as complete anyway.
    inferred = inference_of(answers[last].judgement.stop) is not None
    retried |= {place for place, (before, after) in enumerate(pairwise(answers)) if is_unrecorded(before.judgement.stop)
                and (inferred or before.judgement.stop.raw or not _is_guessed(after))}
    troubled = (i for i in reversed(range(last)) if not _clean(answers[i].judgement, turn) and i not in retried)
    return next(troubled, last)
