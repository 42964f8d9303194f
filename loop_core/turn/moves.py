"""Computes the effects of entering a state, and the notice at the end of a turn.

The functions are pure. The table in `machine` decides which state is entered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from loop_core.errors import UNREADABLE, failure_words
from loop_core.formats import format_entry
from loop_core.judge import gate
from loop_core.judge.classify import LOST_FRAME_RULES
from loop_core.judge.endings import DAMAGED, REPEATED_MEMBER_RULES, Ending, is_unread
from loop_core.judge.gate import Admission, Verdict
from loop_core.turn import costs, history
from loop_core.turn.continuation import QUOTE_MARKS, Method, mark_for
from loop_core.turn.costs import batch_of, is_cut, misses_anchor
from loop_core.turn.limits import Guard, exceeded_guard
from loop_core.turn.policy import Signal
from loop_core.turn.state import ENDED, Effect, Evaluation, Finish, RequestPlace, Send, State, Turn
from loop_core.values import ChatResponse, Message, Role, Stop, TextPart

TERMINAL_SIGNALS: Mapping[str, Signal] = {
    "retry_limit": Signal.RETRY_LIMIT,
    "budget_exhausted": Signal.BUDGET_EXHAUSTED,
    "no_progress": Signal.NO_PROGRESS,
    "repair_failed": Signal.REPAIR_FAILED,
    "step_limit": Signal.STEP_LIMIT,
    "no_answer": Signal.NO_ANSWER,
}

GUARD_PLACES: Mapping[State, str] = {
    State.CONTINUE_PENDING: "continuation",
    State.REPAIR_PENDING: "repair",
    State.EXECUTE_TOOLS: "tools",
    State.RESUME: "resume",
    State.NUDGE_PENDING: "nudge",
}
"""State -> the place in `limits.GUARDS` whose guards are checked in this state."""


def guard_signal(turn: Turn) -> Signal | None:
    """The signal of the first guard that stops this state; None if the limits hold or none applies."""
    place = GUARD_PLACES.get(turn.state)
    if place is None or (turn.state is State.RESUME and turn.last_send is not None):
        return None  # a request is pending
    guard = _guard(place, turn)
    if guard is not None:
        return TERMINAL_SIGNALS[guard.terminal]
    # A policy without continuation ends with the same signal; its notice differs (`not_continued`).
    return Signal.RETRY_LIMIT if turn.state is State.CONTINUE_PENDING and not can_continue(turn) else None


def stopping_guard(turn: Turn) -> Guard | None:
    """The guard that stops a turn in its current state; None if none does."""
    place = GUARD_PLACES.get(turn.state)
    return None if place is None else _guard(place, turn)


def _guard(place: str, turn: Turn) -> Guard | None:
    return exceeded_guard(place, turn.limits, turn.spend, turn.token_stop, turn.policy.lacks)


def can_continue(turn: Turn) -> bool:
    """Whether the policy continues a cut answer by a method that the server supports. An answer without text needs no
    method: it is requested again."""
    methods, text = turn.policy.methods, turn.tail
    return bool(methods) and (not text.strip() or history.method_for(methods, text, _ability(turn)) is not None)


def _ability(turn: Turn) -> history.Ability:
    """The server's abilities, without those that it has refused."""
    return turn.ability._replace(prefill=False) if "prefill" in turn.refusals else turn.ability


# -- what a state does when it is entered ----------------------------------------------------------------------------


def enter(turn: Turn) -> tuple[Turn, tuple[Effect, ...]]:
    """Enters a state; returns the turn after it, and the effects to carry out."""
    move = _ENTER.get(turn.state)
    return (turn, ()) if move is None else move(turn)


def _enter_request(turn: Turn) -> tuple[Turn, tuple[Effect, ...]]:
    spent = turn.spend._replace(requests=turn.spend.requests + 1)
    request = turn.request
    cap = costs.cap_within_bound(turn, request.max_tokens)
    # No new messages: the results of the tools are already in the history that this request sends.
    send = Send(RequestPlace.REQUEST, spent.tool_steps, Method.FIRST, (), cap, request.tool_choice)
    return turn._replace(spend=spent, last_send=send, answers=(*turn.answers, ())), (send,)


def _enter_end(turn: Turn) -> tuple[Turn, tuple[Effect, ...]]:
    silent = None
    # A cut answer may begin with such a word by chance, so only a finished one is silent.
    if turn.terminal == "completed":
        text = turn.joined_answer().text.strip()
        silent = text if text in turn.policy.silent_endings else None
    return turn, (Finish(turn.terminal or "completed", turn.notice, silent),)


def _enter_tools(turn: Turn) -> tuple[Turn, tuple[Effect, ...]]:
    if guard_signal(turn) is not None or turn.evaluation is None:
        return turn, ()  # the next tick leaves by the guard
    effect = batch_of(turn)
    if turn.repairing or turn.unrepaired:
        received = (verdict.call for verdict in effect.batch if verdict.admission is not Admission.HELD)
        # A repair may bring only some calls of the batch. These run; the others stay in `unrepaired`, so that the turn
        # cannot end as if nothing were missing.
        missing = gate.missing_calls(turn.unrepaired, received, turn.repaired_siblings) if turn.policy.settles else ()
        siblings = (*turn.repaired_siblings,
                    *(verdict for verdict in turn.unrepaired if verdict not in missing)) if missing else ()
        turn = turn._replace(repairing=False, unrepaired=missing, repaired_siblings=siblings)
    return turn, (effect,)


def _enter_continuation(turn: Turn) -> tuple[Turn, tuple[Effect, ...]]:
    spent = turn.spend._replace(
        requests=turn.spend.requests + 1,
        attempts=turn.spend.attempts + 1,
        continuations=turn.spend.continuations + 1,
    )
    # A token may end inside a surrogate pair, and servers refuse JSON with half a pair.
    text, previous = history.whole_characters(turn.tail), turn.last_send
    # A retry after an answer without visible text needs a larger cap (hermes-agent #96973).
    cap, lower = costs.next_cap(turn, costs.nothing_visible_came(turn))
    # The quotation is requested again before more text is added to an unverified seam.
    again = misses_anchor(turn)
    method = Method.AGAIN if again else history.method_for(turn.policy.methods, text, _ability(turn))
    messages: tuple[Message, ...] = ()
    anchor, mark, stripped = "", QUOTE_MARKS[0], ""
    if not text.strip() or method is None:
        method = Method.BOOST
        # The same request with the same anchor, since an empty message is refused (hermes-agent #99622).
        if previous:
            anchor, mark = previous.anchor, previous.mark
    elif method is Method.PREFILL:
        message, stripped = history.prefill_message(text)
        messages = (message,)
    else:
        if again:
            anchor, mark = turn.answers[-1][-1].anchor, turn.answers[-1][-1].mark
        elif method is Method.ANCHOR:
            anchor = history.anchor_of(turn.joined_answer().text)
            # The tags must be new to the whole conversation, or the model could close tags of another message.
            mark = mark_for(text, turn.history)
        # Only text goes back: the cut response may have held calls and opaque blocks that must not be repeated.
        partial = Message(Role.ASSISTANT, (TextPart(text),))
        system = turn.ability.system_hint and turn.policy.system_hint
        messages = (partial, history.hint_message(anchor, system, mark, again))
    send = Send(RequestPlace.CONTINUATION, spent.continuations, method, messages, cap, turn.request.tool_choice,
                anchor=anchor, mark=mark, stripped=stripped, lower_cap=lower)
    return turn._replace(spend=spent, last_send=send), (send,)


def unsettled_calls(turn: Turn) -> tuple[Verdict, ...]:
    """The calls of the current response, and the held calls of earlier responses that it does not repeat."""
    verdicts = turn.evaluation.verdicts if turn.evaluation else ()
    return (*verdicts,
            *gate.missing_calls(turn.unrepaired, (verdict.call for verdict in verdicts), turn.repaired_siblings))


def _enter_repair(turn: Turn) -> tuple[Turn, tuple[Effect, ...]]:
    evaluation = turn.evaluation
    # `unsettled_calls` drops earlier calls without a name, which no answer can match. If only such calls are missing,
    # the message still asks for "the tool call".
    verdicts = unsettled_calls(turn) or turn.unrepaired
    spent = turn.spend._replace(requests=turn.spend.requests + 1, repairs=turn.spend.repairs + 1)
    reply = history.assistant_message(evaluation.response, (), turn.tail) if evaluation else None
    messages = (*((reply,) if reply else ()),
                history.repair_message(verdicts, turn.ability.system_hint, turn.repaired_siblings))
    if costs.is_refused(turn):
        messages = ()  # the refused request held the message, so the history has it already
    # Doubled only if the budget cut the call. A larger cap does not help a malformed call.
    cap, lower = costs.next_cap(turn, turn.policy.settles and is_cut(turn))
    choice = turn.request.tool_choice if "choice" in turn.refusals else _choice(turn, verdicts)
    send = Send(RequestPlace.REPAIR, spent.repairs, Method.REPAIR, messages, cap, tool_choice=choice, lower_cap=lower)
    return turn._replace(spend=spent, last_send=send, repairing=True, unrepaired=verdicts), (send,)


def _choice(turn: Turn, verdicts: Sequence[Verdict]) -> str | None:
    """The tool choice of a repair: a single held call is forced; for several, any tool, since forcing one would forbid
    the others."""
    calls = gate.held_calls(verdicts)
    declared = {tool.name for tool in turn.request.tools}
    if not declared:
        return None  # a choice among tools that are not declared would be refused
    if turn.request.tool_choice == "none" or not format_entry(turn.request.api).forces_tool:
        return turn.request.tool_choice  # calls are forbidden, or the format cannot force one
    return f"tool:{calls[0].name}" if len(calls) == 1 and calls[0].name in declared else "any"


def _enter_nudge(turn: Turn) -> tuple[Turn, tuple[Effect, ...]]:
    """Sends the same request again with a message that its answer was empty; an answer that had begun is continued."""
    spent = turn.spend._replace(requests=turn.spend.requests + 1, empty_retries=turn.spend.empty_retries + 1)
    begun, previous, system = turn.joined_answer().text, turn.last_send, turn.ability.system_hint
    anchor = history.anchor_of(begun) if begun.strip() else ""
    mark = mark_for(begun, turn.history) if anchor else QUOTE_MARKS[0]
    unsaid = history.whole_characters(turn.tail)  # text that no request contains yet
    partial = (Message(Role.ASSISTANT, (TextPart(unsaid),)),) if anchor and unsaid.strip() else ()
    send = Send(
        RequestPlace.NUDGE, spent.empty_retries, Method.ANCHOR if anchor else Method.NUDGE,
        (*partial, history.nudge_message(anchor, system, mark)),
        costs.cap_within_bound(turn, previous.max_tokens if previous else None),
        previous.tool_choice if previous else None, anchor=anchor, mark=mark,
    )
    return turn._replace(spend=spent, last_send=send), (send,)


def _enter_resume(turn: Turn) -> tuple[Turn, tuple[Effect, ...]]:
    evaluation = turn.evaluation
    lacks = turn.policy.lacks & {"room"}
    if evaluation is None or exceeded_guard("resume", turn.limits, turn.spend, turn.token_stop, lacks):
        return turn._replace(last_send=None), ()  # the next tick leaves by the guard
    # The detail in the format's table says how a pause is resumed: `token` for Gemini's CONTINUATION, `poll` for a
    # background response, `echo` for Anthropic's pause_turn, `server` if the provider continues by itself, so that only
    # polling is needed.
    methods = {"token": Method.TOKEN, "poll": Method.POLL, "server": Method.POLL}
    method = methods.get(evaluation.judgement.stop.detail or "", Method.ECHO)
    echo, stripped = history.echo_message(evaluation.response, turn.tail) if method is Method.ECHO else (None, "")
    spent = turn.spend._replace(requests=turn.spend.requests + 1, resumes=turn.spend.resumes + 1)
    cap, choice = (turn.last_send.max_tokens, turn.last_send.tool_choice) if turn.last_send else (None, None)
    send = Send(RequestPlace.RESUME, spent.resumes, method, (echo,) if echo else (), costs.cap_within_bound(turn, cap),
                choice, stripped=stripped)
    turn = turn._replace(spend=spent, last_send=send)
    if turn.policy.settles and method is not Method.POLL and gate.held_calls(evaluation.verdicts):
        turn = turn._replace(repairing=True, unrepaired=unsettled_calls(turn))  # the held call is not sent back
    return turn, (send,)


_ENTER: Mapping[State, Callable[[Turn], tuple[Turn, tuple[Effect, ...]]]] = {
    State.REQUEST: _enter_request,
    State.EXECUTE_TOOLS: _enter_tools,
    State.REQUEST_CONTINUATION: _enter_continuation,
    State.REQUEST_TOOL_REPAIR: _enter_repair,
    State.RESUME: _enter_resume,
    State.REQUEST_NUDGE: _enter_nudge,
    **dict.fromkeys(ENDED, _enter_end),
}
"""State -> the function that is called when it is entered. A state without a row does nothing."""


def final_history(turn: Turn) -> tuple[Message, ...]:
    """The history after the turn: its last answer without its calls, and a note to the model if a call did not run."""
    evaluation = turn.evaluation
    if evaluation is None or not turn.answers[-1]:
        return turn.history  # the last response is in it, with its results
    # Loops that keep such calls send a call without a result next time, which the what-if shows.
    if not turn.policy.strips and evaluation.response.tool_calls:
        return (*turn.history, Message(Role.ASSISTANT, evaluation.response.parts))
    reply = history.assistant_message(evaluation.response, (), turn.tail, evaluation.judgement.stop.normalized)
    note = history.not_run_note(turn.unrepaired or evaluation.verdicts, turn.ability.system_hint,
                                broken_off=turn.terminal in ("cancelled", "unrecorded"))
    return (*turn.history, *((reply,) if reply else ()), *((note,) if note else ()))


# -- notices ---------------------------------------------------------------------------------------------------------

NOTICES: Mapping[str, str] = {
    "retry_limit": "The answer is incomplete: it was cut{again} and "
    "continuation_max_attempts ({continuation_max_attempts}) is reached.",
    "not_continued": "The answer is incomplete: it was cut, and this loop has no way to continue it.",
    "budget_exhausted": "The answer is incomplete: the budget for continuations is spent "
    "({tokens:,} tokens, {chars:,} characters).",
    "frame_lost": "A part of the answer may be missing: the provider sent an event that could not be read.",
    "damaged": "Any part of the answer may be wrong: it does not match its checksum.",
    "member_repeated": "Nothing shows which of two values is meant: the provider sent a key twice, with two values.",
    "seam_unverified": "Nothing shows that segment {segment} continues the text before it "
    "(character {at:,}): {why}.",
    "no_progress": "This loop ended the turn: the last request added nothing new.",
    "repair_failed": "{repair}",
    "no_answer": "There is no answer: {ending}.",
    "step_limit": "This loop ended the turn after {tool_steps} rounds of tools (max_tool_steps).",
    "interrupted": "The answer is incomplete: it ended without a stop reason{cause}.",
    "error": "The answer may be incomplete: {problem}.",
    "nothing_came": "No answer came: {problem}.",
    "safety_blocked": "The answer was blocked by a filter.",
    "refused": "The model declined to answer.",
    "context_window_exceeded": "The answer is incomplete: the context window is full; a continuation cannot succeed.",
    "cancelled": "The turn was cancelled.",
    "stuck": "This loop never finishes a tool call that it began: it waits forever, or shows an invalid call.",
    "unrecorded": "The recording of this turn ends here: what this loop asks for next was never recorded.",
}
"""Terminal reason, or a special case of one -> the notice for the operator. Notices are events, never assistant
text."""


NO_PART = "the response contains no answer and no stop reason"
ENDING_NOTICES: Mapping[Ending, str] = {
    Ending.EMPTY_ANSWER: "the response contains neither text nor a tool call",
    Ending.REASONING_ONLY: "the response contains only reasoning",
    Ending.CALL_LEAKED: "the text contains a tool call as markup, which nothing runs",
    Ending.NO_CALL: "the stop reason reports a tool call, but none came",
    Ending.COMMENTARY_ONLY: "the output is only commentary",
}


def notice(turn: Turn, signal: Signal, terminal: str) -> str | None:
    """The notice for the operator at the end of a turn; None if all is well."""
    text = _end_text(turn, signal, terminal)
    evaluation, doubts = turn.evaluation, turn.doubtful_seams
    found = {each.rule for each in evaluation.response.findings} if evaluation is not None else set()
    if text is None and found & LOST_FRAME_RULES:
        name = "damaged" if DAMAGED in found else "member_repeated" if found & REPEATED_MEMBER_RULES else "frame_lost"
        text = NOTICES[name]
    if doubts:
        doubt = NOTICES["seam_unverified"].format(segment=doubts[0].segment + 1, at=doubts[0].at, why=doubts[0].why)
        text = f"{text} {doubt}" if text else doubt
    return None if text is None else printable(text)


def printable(text: str) -> str:
    """Returns a notice as one line without control characters: an error's words and a call's name come from outside,
    and may hold terminal escapes."""
    return text if text.isprintable() else " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _times_more(continuations: int) -> str:
    return "" if not continuations else " once more" if continuations == 1 else f" {continuations} more times"


def _end_text(turn: Turn, signal: Signal, terminal: str) -> str | None:
    # No guard stopped the turn, so the policy had no way to continue: the notice must not name a limit.
    if signal is Signal.RETRY_LIMIT and _guard("continuation", turn) is None:
        terminal = "not_continued"
    evaluation = turn.evaluation
    response = evaluation.response if evaluation is not None else None
    if signal in (Signal.INTERRUPTED, Signal.ERROR, Signal.UNKNOWN) and response is not None and not (
            response.parts or response.refusal or turn.joined_answer().text):
        terminal = "nothing_came"
    if terminal == "safety_blocked" and response is not None and response.refusal:
        terminal = "refused"  # the model's own words, not a filter's
    text = NOTICES.get(terminal)
    if text is None or "{" not in text:
        return text
    return text.format(
        again=_times_more(turn.spend.continuations + turn.spend.repairs_refused - len(turn.refusals)),
        continuation_max_attempts=turn.limits.continuation_max_attempts,
        tokens=turn.spend.continuation_tokens,
        chars=turn.spend.continuation_chars,
        tool_steps=turn.spend.tool_steps,
        repair=history.repair_notice(unsettled_calls(turn), turn.repaired_siblings),
        problem=_problem(evaluation, signal),
        cause=f" ({cause})" if response is not None and (cause := response.broken_connection) else "",
        ending=_ending(evaluation),
    )


def _ending(evaluation: Evaluation | None) -> str:
    ending = evaluation.judgement.ending if evaluation is not None else None
    if ending is not None:
        return ENDING_NOTICES[ending]
    unread = evaluation is not None and is_unread(evaluation.response)
    return "the provider sent an event that could not be read" if unread else "nothing came"


def with_status(response: ChatResponse, words: str) -> str:
    """Describes a failure: the HTTP status, if that is an error, and the words; empty if neither is known."""
    return failure_words(response.http_status if (response.http_status or 0) >= 400 else None, words)


def _problem(evaluation: Evaluation | None, signal: Signal) -> str:
    """Describes, for the operator, the error that ended or prevented the last answer."""
    if evaluation is None:
        return "the provider reported an error"
    response = evaluation.response
    if response.error is None and signal is Signal.UNKNOWN:
        raw = response.stop_reason.raw
        if raw:
            unknown = evaluation.judgement.mapped.normalized is Stop.UNKNOWN
            return f"the stop reason {raw!r} {'is unknown' if unknown else 'does not say that its calls are complete'}"
        return "its stop reason is not known" if response.parts or response.refusal else NO_PART
    if response.error is None and signal is Signal.INTERRUPTED:
        cut = next((found.message for found in response.findings if found.rule == "body.cut"), "")
        return response.broken_connection or cut or (NO_PART if response.size else "the response is empty")
    # Error pages of gateways run to kilobytes of HTML; a notice is one line.
    words = " ".join(response.error.message[:200].split()).removesuffix(".") if response.error is not None else ""
    reason = with_status(response, words)
    if reason:
        wait = response.quota_metadata.retry_after if response.quota_metadata is not None else None
        said = "" if response.error is not None and response.error.type == UNREADABLE else "the provider reported: "
        return f"{said}{reason}{f' (retry-after: {wait[:40]})' if wait else ''}"
    judgement = evaluation.judgement
    if Stop.ERROR in (judgement.mapped.normalized, judgement.stop.normalized):
        return "the provider reported an error"
    # Another loop may fail where the provider reported no failure.
    raw = judgement.mapped.raw
    return f"the policy treats {'a missing stop reason' if raw is None else f'the stop reason {raw!r}'} as an error"
