"""Computes output caps, refused fields and counters: how many tokens the next request may use, and what each event adds
to the spend of a turn.

A larger cap, a forced call and a prefill are tried, since they save requests. If a server refuses one of them with a
400 or 422, the request is sent once more without the refused field. The functions are pure; the moves of the machine
call them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from loop_core.errors import TransitionError
from loop_core.judge import endings
from loop_core.judge.arguments import ArgumentShape, parse
from loop_core.judge.gate import Admission, Verdict, admit_all
from loop_core.judge.signs import stops_in_the_middle
from loop_core.turn import history
from loop_core.turn.continuation import Method, Segment
from loop_core.turn.limits import Limits, Spend, bound_result, least_cap
from loop_core.turn.policy import Dispatch, Policy, ReasonSource, Signal, word_of
from loop_core.turn.seam import added_chars, join, should_ask_again
from loop_core.turn.state import (
    CallAnswer,
    Evaluation,
    Event,
    NotRecorded,
    ProviderResponse,
    RequestPlace,
    RunTools,
    Send,
    State,
    ToolResults,
    Turn,
)
from loop_core.values import CallKind, Message, Request, Role, Stop, ToolCall

TEXT_LOST = "answer.text_lost"
"""The rule of the finding that a recorder left out the text of an answer, which may have brought some."""


def first_cap(request: Request, limits: Limits, policy: Policy) -> int | None:
    """The output cap of a turn's first request: the request's own, within the token bound."""
    bound = limits.continuation_max_total_completion_tokens
    if bound is None or not policy.lacks.isdisjoint(("tokens", "room")):
        return request.max_tokens  # a derived bound is no smaller
    # The format's least cap outranks the bound: Responses refuses less than 16 tokens, and Messages a cap within the
    # thinking budget. Such a request would only fail.
    return max(least_cap(request), bound if request.max_tokens is None else min(bound, request.max_tokens))


def cap_within_bound(turn: Turn, cap: int | None) -> int | None:
    """Limits an output cap to the rest of the token bound; guards ensure that a request fits at all."""
    room = turn.room
    return room if cap is None else cap if room is None else min(cap, room)


class RefusalRow(NamedTuple):
    """A field that the engine adds and a server may refuse (`REFUSED_STATUS`), and the words of that error."""

    name: str
    applies: Callable[[Turn, Send], bool]
    words: re.Pattern[str]


REFUSALS: tuple[RefusalRow, ...] = (
    RefusalRow("cap", lambda turn, sent: sent.lower_cap is not None, re.compile("token|num_predict", re.IGNORECASE)),
    RefusalRow("choice",
               lambda turn, sent: sent.place is RequestPlace.REPAIR and sent.tool_choice != turn.request.tool_choice,
               re.compile("tool|function|thinking", re.IGNORECASE)),
    # Any message counts: servers refuse a prefill in many different words, and the anchor is requested instead.
    RefusalRow("prefill", lambda turn, sent: turn.answers[-1][-1].method is Method.PREFILL, re.compile("")),
)
"""The fields that a server may refuse: a larger cap, a forced call and a prefill. A refused field is left out of the
next request and not tried again."""
REFUSED_STATUS = frozenset({400, 422})


def current_refusal(turn: Turn) -> RefusalRow | None:
    """The field, added by the engine, that the server has just refused; None if its answer is not such a refusal."""
    # Providers refuse a field with 400, servers built on FastAPI by default with 422. Policies of other loops
    # (`settles` is False) use no such fields.
    evaluation, send = turn.evaluation, turn.last_send
    if (evaluation is None or send is None or evaluation.response.http_status not in REFUSED_STATUS
            or not turn.policy.settles):
        return None
    error = evaluation.response.error
    # The first request is the caller's own: if it is refused, no added field can be the reason.
    if error is None or send.place not in (RequestPlace.CONTINUATION, RequestPlace.REPAIR):
        return None
    # The member that names the field differs: OpenAI uses `code`, Anthropic only `message`.
    message = " ".join(word for word in (error.code, error.type, error.message) if word)
    return next((row for row in REFUSALS
                 if row.name not in turn.refusals and row.applies(turn, send) and row.words.search(message)), None)


def next_cap(turn: Turn, raise_cap: bool) -> tuple[int | None, int | None]:
    """The next request's cap, doubled if the last was too small; and the cap to use again if the server refuses it."""
    send = turn.last_send
    if send is None or send.max_tokens is None:
        return cap_within_bound(turn, None), None
    if is_refused(turn):
        # After a refused cap, the cap that the server accepted before; after another refused field, the same cap.
        if "cap" in turn.refusals and send.lower_cap is not None:
            return cap_within_bound(turn, send.lower_cap), None
        return cap_within_bound(turn, send.max_tokens), send.lower_cap
    # Never less than before: a smaller budget would cut the rest too (hermes-agent #26427).
    if not raise_cap or "cap" in turn.refusals:
        return cap_within_bound(turn, send.max_tokens), None
    # Under the same cap the same oversized call would be cut at the same place again (pi#8227).
    more = cap_within_bound(turn, send.max_tokens * 2)
    return more, send.max_tokens if more is not None and more > send.max_tokens else None


def is_refused(turn: Turn) -> bool:
    """Whether the response refuses a field that the engine added; the next request leaves it out."""
    evaluation = turn.evaluation
    return bool(turn.refusals) and evaluation is not None and evaluation.response.http_status in REFUSED_STATUS


# -- What an event costs a turn: tokens, attempts and characters, counted in the step that receives it ---------------


Change = dict[str, Any]
"""Name of a turn's field -> its new value. A move makes one new turn, not one for each changed field."""


def cost(turn: Turn, event: Event, signal: Signal) -> Change:
    """The changed fields of a turn after this move: its counters, and what it received."""
    if isinstance(event, ProviderResponse):
        return _response_change(turn, event)
    if turn.state is State.EVALUATE_STOP:
        return _evaluation_change(turn, signal)
    if isinstance(event, NotRecorded):
        return _unsent_change(turn)
    return _tools_change(turn, event) if isinstance(event, ToolResults) else {}


UNSENT: Mapping[State, tuple[str, ...]] = {
    State.REQUEST: ("requests",),
    State.REQUEST_CONTINUATION: ("requests", "attempts", "continuations"),
    State.REQUEST_TOOL_REPAIR: ("requests", "repairs"),
    State.RESUME: ("requests", "resumes"),
    State.REQUEST_NUDGE: ("requests", "empty_retries"),
}
"""State -> the counters that the request of this state has raised."""


def _unsent_change(turn: Turn) -> Change:
    """The changes for a request that was never sent, because nothing was recorded for its place: it is not counted."""
    spent = turn.spend
    names = UNSENT.get(turn.state, ()) if turn.last_send is not None else ()  # a resumption may wait for its guard
    counts = {name: getattr(spent, name) - 1 for name in names}
    return {"spend": spent._replace(**counts)} if counts else {}


def _response_change(turn: Turn, event: ProviderResponse) -> Change:
    """The changes for a received answer: its calls are gated, the policy reads it, and its text joins the segments."""
    response, judged = event.response, event.judgement
    # A replay gates each answer once and passes the verdicts to every policy and limit that it tries.
    verdicts = event.verdicts
    if verdicts is None:
        choice = turn.last_send.tool_choice if turn.last_send else turn.request.tool_choice
        verdicts = admit_all(response.tool_calls, judged, turn.request.tools, choice)
    word = word_of(turn.policy, response, judged, turn.provider)
    send = turn.last_send
    method = event.method or (send.method if send else Method.FIRST)
    recorded = event.method is not None
    # A recorded answer responds to the recorded agent's prompt, so its own anchor and white space decide the seam.
    # `send` describes only an answer to the engine's request.
    source = event if recorded or send is None else send
    segment = Segment(response.text or "", method, source.anchor, source.stripped,
                      event.echoes if recorded else turn.ability.echoes, event.number, source.mark)
    answers = (*turn.answers[:-1], (*turn.answers[-1], segment))
    messages = turn.history
    # A prefill is not a message of its own: the answer continues it, and both enter the history as one message later.
    if send is not None and method is not Method.PREFILL:
        messages = (*messages, *send.new_messages)  # the history only grows
    evaluation = Evaluation(response, judged, verdicts, event.number, word)
    return {"evaluation": evaluation, "answers": answers, "history": messages, "spend": spend_after(turn, evaluation)}


def spend_after(turn: Turn, evaluation: Evaluation) -> Spend:
    """The spend of a turn after it has received this answer."""
    spent, send = turn.spend, turn.last_send
    truncated = is_budget_cut(evaluation, turn.policy)
    tokens, assumed = _tokens(evaluation, send, truncated)
    chars = len(evaluation.response.text or "")
    counts: Change = {"output_tokens": spent.output_tokens + (tokens or 0), "output_chars": spent.output_chars + chars}
    # An answer without parts may have cost nothing; one with parts cost an unknown number of tokens.
    if tokens is None and evaluation.response.parts:
        counts["uncounted"] = spent.uncounted + 1
    # The truncated answer counts as well as its continuations: ZeroClaw RFI 2309 bounds their total. An answer that is
    # whole and continues nothing leaves the budget as it was.
    if truncated or (send is not None and send.place is RequestPlace.CONTINUATION):
        counts["continuation_tokens"] = spent.continuation_tokens + (tokens or 0)
        counts["tokens_assumed"] = spent.tokens_assumed + assumed
        counts["continuation_chars"] = spent.continuation_chars + chars
    return spent._replace(**counts)


def _evaluation_change(turn: Turn, signal: Signal) -> Change:
    evaluation = turn.evaluation
    if evaluation is None:
        return {}
    spent, send = turn.spend, turn.last_send
    counts: Change = {}
    change: Change = {}
    if signal in (Signal.CONTINUATION_REFUSED, Signal.REPAIR_REFUSED):
        refusal = current_refusal(turn)
        if signal is Signal.REPAIR_REFUSED:
            counts["repairs_refused"] = spent.repairs_refused + 1
        else:
            counts["attempts"] = spent.attempts - 1  # the server made no continuation, so the attempt does not count
        names = turn.refusals | ({refusal.name} if refusal else frozenset())
        return {"refusals": names, "spend": spent._replace(**counts)}
    if signal is Signal.MAX_TOKENS:
        continuing = send is not None and send.place is RequestPlace.CONTINUATION
        lost = any(found.rule == TEXT_LOST for found in evaluation.response.findings)
        empty = nothing_visible_came(turn) and not lost
        # A segment that did not begin with the quotation is requested again and replaced, so its lack of progress does
        # not count.
        counted = continuing and not (empty or lost) and not misses_anchor(turn)
        stalled = counted and added_chars(turn.answers[-1], turn.policy.seam) < turn.limits.min_progress_chars
        counts["thinking_only"] = spent.thinking_only + empty
        counts["stalled"] = spent.stalled + stalled
    elif spent.attempts and turn.limits.attempts_scope == "response" and not (
        is_cut(turn) or signal is Signal.ANCHOR_MISSING
    ):
        counts["attempts"] = 0  # scope `response`: an answer that was not cut begins a new count
    if signal is Signal.TOOL_CALL:
        # Compared by raw text, without ids: each call has a new id, and parsing could call two texts equal.
        calls = tuple([(v.call.name, v.call.arguments) for v in evaluation.verdicts])
        identical = spent.identical + 1 if calls == turn.last_calls else 1
        if identical != spent.identical:  # mostly it stays 1, and no counter changes
            counts["identical"] = identical
        change["last_calls"] = calls
    return {**change, "spend": spent._replace(**counts)} if counts else change


def nothing_visible_came(turn: Turn) -> bool:
    """Whether the current response brought no text, or only white space where no text was before."""
    if turn.evaluation is None:
        return False
    return not turn.evaluation.response.text or not any(each.text.strip() for each in turn.answers[-1])


def is_cut(turn: Turn) -> bool:
    """Whether a budget cut the current response, as the policy reads it."""
    return turn.evaluation is not None and is_budget_cut(turn.evaluation, turn.policy)


def is_budget_cut(evaluation: Evaluation, policy: Policy) -> bool:
    """Whether a budget cut a response, as a policy reads it."""
    if evaluation.word is Stop.MAX_TOKENS or not policy.cap_evidence:
        return evaluation.word is Stop.MAX_TOKENS
    # A stream of MiMo's proxy ends without a finish reason (Zoo Code's analysis); usage at the cap shows the reason.
    if evaluation.word in (Stop.INTERRUPTED, Stop.UNKNOWN) and evaluation.judgement.cap_reached:
        return True
    # Only UNKNOWN, not INTERRUPTED: after a lost connection half a call is expected, and asking again with a larger cap
    # would not help. Free-form calls have no syntax that could show a cut.
    return evaluation.word is Stop.UNKNOWN and any(
        parse(call.arguments).shape is ArgumentShape.CUT for call in evaluation.response.tool_calls
        if call.kind is CallKind.FUNCTION)


def is_text_whole(turn: Turn) -> bool:
    """Whether an empty response shows that the text before it was complete: the model was asked to continue and added
    nothing. It shows nothing if the model was asked to quote the last words first, since the quotation is missing too;
    nor if the text visibly stops in the middle."""
    # BOOST and NUDGE repeat the request: an empty response to them says nothing about the text before.
    segments = turn.answers[-1]
    if len(segments) < 2 or segments[-1].method not in ASKS_FOR_THE_REST:
        return False
    text = turn.joined_answer().text
    return bool(text.strip()) and stops_in_the_middle(text) is None


def brought_nothing(turn: Turn) -> bool:
    """Whether the current response should have continued a text that stops in the middle, and only repeated words of
    it."""
    segments, policy = turn.answers[-1], turn.policy
    if (len(segments) < 2 or segments[-1].method not in _GOES_ON or policy.reads is not ReasonSource.EFFECTIVE
            or "progress" in policy.lacks or not turn.limits.min_progress_chars):
        return False
    text, before = join(segments, policy.seam), join(segments[:-1], policy.seam).text
    # A doubtful seam already shows that something may be missing.
    return (text.text.strip() == before.strip() and not text.doubtful_seams
            and stops_in_the_middle(before) is not None)


ASKS_FOR_THE_REST = frozenset({Method.PREFILL, Method.HINT})
"""The methods that ask for the rest of a text and for nothing else."""
_GOES_ON = ASKS_FOR_THE_REST | {Method.ANCHOR, Method.AGAIN}


def nothing_was_read(turn: Turn) -> bool:
    """Whether the turn has nothing to show because a part of the response could not be read."""
    response = turn.evaluation.response if turn.evaluation is not None else None
    lost = response is not None and endings.is_unread(response) and not endings.shows_anything(response)
    return lost and turn.policy.reads is ReasonSource.EFFECTIVE and not turn.joined_answer().text.strip()


def misses_anchor(turn: Turn) -> bool:
    """Whether the current response did not begin with the requested quotation, so that it is requested again."""
    return bool(turn.policy.methods) and should_ask_again(turn.answers[-1], turn.policy.seam)


def _tokens(evaluation: Evaluation, send: Send | None, truncated: bool) -> tuple[int | None, int]:
    """Output tokens of the response, None if unknown; and how many of them are assumed from the cap. A cut answer
    without usage counts as the whole cap that was sent: a stream that is cut loses its usage chunk, and a budget that
    did not count it would never be spent."""
    usage = evaluation.response.usage
    # A negative count (an overflowed counter) would give budget back, and 0 beside cut output (a server that does not
    # count) would never spend it: both count as unknown.
    least = 1 if truncated and evaluation.response.parts else 0
    if usage is not None and usage.output_tokens is not None and usage.output_tokens >= least:
        return usage.output_tokens, 0
    cap = send.max_tokens if send else None
    return (cap, cap) if truncated and cap is not None else (None, 0)


def _tools_change(turn: Turn, event: ToolResults) -> Change:
    evaluation = turn.evaluation
    if evaluation is None:
        raise TransitionError("tool results without a response")
    results = event.results
    if any(verdict.admission is not Admission.READY for verdict in evaluation.verdicts):
        results = batch_of(turn).all_results(results)  # complete if the whole batch was released
    chars = sum(each.size for each in results)
    # The history under another loop's policy includes held calls as that loop does, since a what-if has to show the
    # input of its model. The engine's own history leaves out every held call.
    reply: Message | None
    nameless: Message | None = None
    if turn.policy.dispatch is Dispatch.READY:
        reply = history.assistant_message(evaluation.response, evaluation.verdicts, turn.tail,
                                          evaluation.judgement.stop.normalized)
        results = history.results_for(reply.tool_calls, results) if reply is not None else ()
        nameless = history.nameless_note(evaluation.verdicts, turn.ability.system_hint)
    else:
        reply = _message_as_received(turn, evaluation)
    messages = (*((reply,) if reply else ()), *((history.tool_message(results),) if results else ()),
                *((nameless,) if nameless else ()))
    if turn.unrepaired and turn.last_send is not None and turn.last_send.place is RequestPlace.REPAIR:
        # A note to the model names a call that was requested again and never arrived.
        note = history.not_run_note(turn.unrepaired, turn.ability.system_hint, turn.repaired_siblings)
        messages = (*messages, *((note,) if note else ()))
    spent = turn.spend._replace(
        tool_steps=turn.spend.tool_steps + 1,
        result_chars=turn.spend.result_chars + chars,
    )
    return {"history": (*turn.history, *messages, *event.steering), "spend": spent}


def _message_as_received(turn: Turn, evaluation: Evaluation) -> Message:
    """The response as another loop keeps it: with every call that it ran, whole or not."""
    ran = {id(verdict.call) for verdict in turn.would_run}
    parts = evaluation.response.parts
    # By identity: two calls of a batch may be equal in every field.
    return Message(Role.ASSISTANT, tuple(part for part in parts if type(part) is not ToolCall
                                         or part.kind is CallKind.SERVER or id(part) in ran))


def batch_of(turn: Turn) -> RunTools:
    """The calls that the policy runs from this response, and the answers to the other calls."""
    released: list[Verdict] = []
    answers: list[CallAnswer] = []
    # A rejected call is answered with its error, so that the model can correct it, and not run. The place is kept
    # because formats without call ids (Gemini, Ollama) match results to calls by order.
    for place, verdict in enumerate(turn.would_run):
        if verdict.admission is Admission.READY:
            released.append(verdict)
        else:
            part = history.tool_result(verdict.call, f"Not run: {verdict.why}", is_error=True)
            answers.append(CallAnswer(verdict, bound_result(part, turn.limits, turn.spend.result_chars), place))
    return RunTools(tuple(released), tuple(answers))
