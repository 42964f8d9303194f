"""What a move of the machine costs, does and says: `cost`, `entered`, `notice`.

Pure functions from a turn to a turn; which move is made is decided in `machine`, by its table.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from loop_core import batch, caps, history
from loop_core.arguments import Shape, parse
from loop_core.classify import Ending
from loop_core.errors import TransitionError
from loop_core.frozen import changed, replace
from loop_core.gate import Admission, Verdict, admit_all
from loop_core.limits import Guard, Spent, bounded, tripped
from loop_core.middle import stops_in_the_middle
from loop_core.policy import Dispatch, Policy, Signal, word_of
from loop_core.prompts import MARKS, mark_for
from loop_core.seam import Method, Segment, added, asks_again
from loop_core.turn import (
    ENDED,
    Answer,
    Effect,
    Evaluated,
    Event,
    Finish,
    Place,
    Responded,
    RunTools,
    Send,
    State,
    ToolsRun,
    Turn,
)
from loop_core.values import CallKind, Message, Role, Stop, TextPart, ToolCall

_TERMINAL_SIGNALS: Mapping[str, Signal] = {
    "retry_limit": Signal.RETRY_LIMIT,
    "budget_exhausted": Signal.BUDGET_EXHAUSTED,
    "no_progress": Signal.NO_PROGRESS,
    "repair_failed": Signal.REPAIR_FAILED,
    "step_limit": Signal.STEP_LIMIT,
    "no_answer": Signal.NO_ANSWER,
}

GUARDED: Mapping[State, str] = {
    State.CONTINUE_PENDING: "continuation",
    State.REPAIR_PENDING: "repair",
    State.EXECUTE_TOOLS: "tools",
    State.RESUME: "resume",
    State.NUDGE_PENDING: "nudge",
}
"""State -> the place at which the guards of `limits.GUARDS` look at it."""


def guard_signal(turn: Turn) -> Signal | None:
    """The signal of the first guard that stops this state; None where the limits hold or none applies."""
    place = GUARDED.get(turn.state)
    if place is None or (turn.state is State.RESUME and turn.sent is not None):
        return None  # a request is under way
    guard = _guard(place, turn)
    if guard is not None:
        return _TERMINAL_SIGNALS[guard.terminal]
    return Signal.RETRY_LIMIT if turn.state is State.CONTINUE_PENDING and not continuable(turn) else None


def stopping(turn: Turn) -> Guard | None:
    """The guard that stops a turn in the state that it is in; None where none does."""
    place = GUARDED.get(turn.state)
    return None if place is None else _guard(place, turn)


def _guard(place: str, turn: Turn) -> Guard | None:
    return tripped(place, turn.limits, turn.spent, turn.token_stop, turn.policy.lacks)


def continuable(turn: Turn) -> bool:
    """Whether the policy continues at all, by a method that the server allows; blank text is simply asked for again."""
    methods, text = turn.policy.methods, turn.tail
    return bool(methods) and (not text.strip() or history.method_for(methods, text, _ability(turn)) is not None)


def _ability(turn: Turn) -> history.Ability:
    """What the server allows, less what it has refused."""
    return replace(turn.ability, prefill=False) if "prefill" in turn.refused else turn.ability


# -- what events and signals change ----------------------------------------------------------------------------------

Change = dict[str, Any]
"""Fields of a turn and their new values: a move makes one new turn, not one for each thing that it changes."""


def cost(turn: Turn, event: Event, signal: Signal) -> Change:
    """What this move takes in and spends."""
    if isinstance(event, Responded):
        return _received(turn, event)
    if turn.state is State.EVALUATE_STOP:
        return _spent_on_response(turn, signal)
    return _spent_on_tools(turn, event) if isinstance(event, ToolsRun) else {}


def _received(turn: Turn, event: Responded) -> Change:
    """An answer taken in: gated, read as the policy reads it, and added to the segments."""
    response, judged = event.response, event.judged
    verdicts = event.verdicts
    if verdicts is None:
        verdicts = admit_all(response.tool_calls, judged, turn.request.tools)
    word = word_of(turn.policy, response, judged, turn.provider)
    sent = turn.sent
    method = event.method or (sent.method if sent else Method.FIRST)
    recorded = event.method is not None
    asked = None if recorded else sent
    segment = Segment(
        response.text or "",
        method,
        event.anchor if asked is None else asked.anchor,
        event.stripped if asked is None else asked.stripped,
        event.echoes if recorded else turn.ability.echoes,
        event.index,
        event.mark if asked is None else asked.mark,
    )
    answers = (*turn.answers[:-1], (*turn.answers[-1], segment))
    told = turn.history
    if sent is not None and method is not Method.PREFILL:
        told = (*told, *sent.added)  # what was sent stays sent: the history only grows
    seen = Evaluated(response, judged, verdicts, event.index, word)
    return {"evaluated": seen, "answers": answers, "history": told, "spent": counted(turn, seen)}


def counted(turn: Turn, seen: Evaluated) -> Spent:
    """What a turn has spent once it has taken in this answer."""
    spent, sent = turn.spent, turn.sent
    truncated = cuts(seen, turn.policy)
    tokens, assumed = _tokens(seen, sent, truncated)
    chars = len(seen.response.text or "")
    counts: Change = {"output_tokens": spent.output_tokens + (tokens or 0), "output_chars": spent.output_chars + chars}
    if tokens is None and seen.response.parts:
        counts["uncounted"] = spent.uncounted + 1
    if truncated or (sent is not None and sent.place is Place.CONTINUATION):
        counts["continuation_tokens"] = spent.continuation_tokens + (tokens or 0)
        counts["tokens_assumed"] = spent.tokens_assumed + assumed
        counts["continuation_chars"] = spent.continuation_chars + chars
    return changed(spent, counts)


def _spent_on_response(turn: Turn, signal: Signal) -> Change:
    seen = turn.evaluated
    if seen is None:
        return {}
    spent, sent = turn.spent, turn.sent
    counts: Change = {}
    change: Change = {}
    if signal in (Signal.CONTINUATION_REFUSED, Signal.REPAIR_REFUSED):
        refused = caps.refusal(turn)
        if signal is Signal.REPAIR_REFUSED:
            counts["repairs_refused"] = spent.repairs_refused + 1
        else:
            counts["attempts"] = spent.attempts - 1  # none was made
        names = turn.refused | ({refused.name} if refused else frozenset())
        return {"refused": names, "spent": changed(spent, counts)}
    if signal is Signal.MAX_TOKENS:
        continuing = sent is not None and sent.place is Place.CONTINUATION
        empty = not seen.response.text
        stalled = continuing and not empty and _added(turn) < turn.limits.min_progress_chars
        stalled = stalled and not misses_anchor(turn)
        counts["thinking_only"] = spent.thinking_only + empty
        counts["stalled"] = spent.stalled + stalled
    elif turn.limits.attempts_scope == "response" and not is_cut(turn) and signal is not Signal.ANCHOR_MISSING:
        counts["attempts"] = 0
    if signal is Signal.TOOL_CALL:
        calls = tuple([(v.call.name, v.call.arguments) for v in seen.verdicts])
        counts["identical"] = spent.identical + 1 if calls == turn.last_calls else 1
        change["last_calls"] = calls
    return {**change, "spent": changed(spent, counts)} if counts else change


def is_cut(turn: Turn) -> bool:
    """Whether the response at hand was cut by a budget, as the policy reads it."""
    return turn.evaluated is not None and cuts(turn.evaluated, turn.policy)


def cuts(seen: Evaluated, policy: Policy) -> bool:
    """Whether a budget cut an answer, as a policy reads it."""
    if seen.word is Stop.MAX_TOKENS or not policy.cap_evidence:
        return seen.word is Stop.MAX_TOKENS
    if seen.word in (Stop.INTERRUPTED, Stop.UNKNOWN) and seen.judged.cap_reached:
        return True
    return seen.word is Stop.UNKNOWN and any(
        parse(call.arguments).shape is Shape.CUT for call in seen.response.tool_calls if call.kind is CallKind.FUNCTION)


def nothing_left(turn: Turn) -> bool:
    """Whether an empty response says that the text before it was whole: asked to go on, the model had no more to say.

    Where it was asked to quote the last words first, it has not even heard that; and a text that visibly stops in the
    middle is not whole.
    """
    segments = turn.answers[-1]
    if len(segments) < 2 or segments[-1].method not in _GOING_ON:
        return False
    text = turn.merged().text
    return bool(text.strip()) and stops_in_the_middle(text) is None


_GOING_ON = frozenset({Method.PREFILL, Method.HINT})


def misses_anchor(turn: Turn) -> bool:
    """Whether the response at hand did not begin with the words that it was to quote, and is asked for once more."""
    return bool(turn.policy.methods) and asks_again(turn.answers[-1], turn.policy.seam)


def _added(turn: Turn) -> int:
    """Characters that the last segment added to the answer, repetitions left out."""
    return added(turn.answers[-1], turn.policy.seam)


def _tokens(seen: Evaluated, sent: Send | None, truncated: bool) -> tuple[int | None, int]:
    """Output tokens of the response, and how many of them are assumed: a cut answer used the cap that was sent.

    None where neither tells them.
    """
    usage = seen.response.usage
    if usage is not None and usage.output_tokens is not None:
        return usage.output_tokens, 0
    cap = sent.max_tokens if sent else None
    return (cap, cap) if truncated and cap is not None else (None, 0)


def _spent_on_tools(turn: Turn, event: ToolsRun) -> Change:
    seen = turn.evaluated
    if seen is None:
        raise TransitionError("tool results without a response")
    results = batch_of(turn).whole(event.results)
    chars = sum(len(each.text) for each in results)
    if turn.policy.dispatch is not Dispatch.READY:
        said: Message | None = _as_received(turn, seen)
    else:
        said = history.assistant(seen.response, seen.verdicts, turn.tail, seen.judged.stop.normalized)
        results = history.answered(said.tool_calls, results) if said is not None else ()
    told = history.nameless(seen.verdicts, turn.ability.system_hint) if turn.policy.dispatch is Dispatch.READY else None
    messages = (
        *((said,) if said else ()), *((history.tool_message(results),) if results else ()), *((told,) if told else ()))
    if turn.broken and turn.sent is not None and turn.sent.place is Place.REPAIR:
        # What was asked for again and has not come: the model is told.
        note = history.not_run(turn.broken, turn.ability.system_hint, turn.beside)
        messages = (*messages, *((note,) if note else ()))
    spent = replace(
        turn.spent,
        tool_steps=turn.spent.tool_steps + 1,
        result_chars=turn.spent.result_chars + chars,
    )
    return {"history": (*turn.history, *messages, *event.steering), "spent": spent}


def _as_received(turn: Turn, seen: Evaluated) -> Message:
    """The response as another loop keeps it: with every call that it ran, whole or not."""
    ran = {id(verdict.call) for verdict in turn.would_run}
    parts = seen.response.parts
    return Message(Role.ASSISTANT, tuple(p for p in parts if type(p) is not ToolCall or _ours(p, ran)))


def _ours(call: ToolCall, ran: Container[int]) -> bool:
    return call.kind is CallKind.SERVER or id(call) in ran


# -- what a state does when it is entered ----------------------------------------------------------------------------


def entered(turn: Turn) -> tuple[Turn, tuple[Effect, ...]]:
    """What a state does when it is entered: the effects, and the turn that they are noted in."""
    enter = _ENTER.get(turn.state)
    return (turn, ()) if enter is None else enter(turn)


def _enter_request(turn: Turn) -> tuple[Turn, tuple[Effect, ...]]:
    spent = replace(turn.spent, requests=turn.spent.requests + 1)
    asked = turn.request
    cap = caps.within(turn, asked.max_tokens)
    send = Send(Place.REQUEST, spent.tool_steps, Method.FIRST, (), cap, asked.tool_choice)
    return replace(turn, spent=spent, sent=send, answers=(*turn.answers, ())), (send,)


def _enter_end(turn: Turn) -> tuple[Turn, tuple[Effect, ...]]:
    silent = None
    if turn.terminal == "completed":
        said = turn.merged().text.strip()
        silent = said if said in turn.policy.silent_endings else None
    return turn, (Finish(turn.terminal or "completed", turn.notice, silent),)


def _enter_tools(turn: Turn) -> tuple[Turn, tuple[Effect, ...]]:
    if guard_signal(turn) is not None or turn.evaluated is None:
        return turn, ()  # the next tick leaves by the guard
    effect = batch_of(turn)
    if turn.repairing or turn.broken:
        came = (verdict.call for verdict in effect.batch if verdict.admission is not Admission.HELD)
        left = batch.missing(turn.broken, came, turn.beside) if turn.policy.settles else ()
        beside = (*turn.beside, *(verdict for verdict in turn.broken if verdict not in left)) if left else ()
        turn = replace(turn, repairing=False, broken=left, beside=beside)
    return turn, (effect,)


def batch_of(turn: Turn) -> RunTools:
    """The batch that the policy takes for runnable: what may run of it, and what the rest is answered with."""
    released: list[Verdict] = []
    answers: list[Answer] = []
    for place, verdict in enumerate(turn.would_run):
        if verdict.admission is Admission.READY:
            released.append(verdict)
        else:
            part = history.result(verdict.call, f"Not run: {verdict.why}", is_error=True)
            answers.append(Answer(verdict, bounded(part, turn.limits, turn.spent.result_chars), place))
    return RunTools(tuple(released), tuple(answers))


def _enter_continuation(turn: Turn) -> tuple[Turn, tuple[Effect, ...]]:
    spent = replace(
        turn.spent,
        requests=turn.spent.requests + 1,
        attempts=turn.spent.attempts + 1,
        continuations=turn.spent.continuations + 1,
    )
    text, sent = history.whole(turn.tail), turn.sent
    choice = turn.request.tool_choice
    blank = turn.evaluated is not None and not turn.evaluated.response.text
    cap, lower = caps.raised(turn, blank)  # nothing visible came: a retry needs more room (hermes-agent #96973)
    ordinal = spent.continuations
    again = misses_anchor(turn)
    method = Method.AGAIN if again else history.method_for(turn.policy.methods, text, _ability(turn))
    if not text.strip() or method is None:
        # The same request again, its anchor still asked for; an empty assistant message would be refused.
        anchor, mark = (sent.anchor, sent.mark) if sent else ("", MARKS[0])
        send = Send(Place.CONTINUATION, ordinal, Method.BOOST, (), cap, choice, anchor=anchor, mark=mark,
                    lower_cap=lower)
    elif method is Method.PREFILL:
        message, stripped = history.prefill(text)
        send = Send(Place.CONTINUATION, ordinal, method, (message,), cap, choice, stripped=stripped, lower_cap=lower)
    else:
        anchor, mark = "", MARKS[0]
        if again:
            anchor, mark = turn.answers[-1][-1].anchor, turn.answers[-1][-1].mark
        elif method is Method.ANCHOR:
            anchor = history.anchor_of(turn.merged().text)
            mark = mark_for([text, *(message.text for message in turn.history)])
        said = Message(Role.ASSISTANT, (TextPart(text),))
        system = turn.ability.system_hint and turn.policy.system_hint
        asked = history.hint(anchor, system, mark, again)
        send = Send(Place.CONTINUATION, ordinal, method, (said, asked), cap, choice, anchor=anchor, mark=mark,
                    lower_cap=lower)
    return replace(turn, spent=spent, sent=send), (send,)


def unsettled(turn: Turn) -> tuple[Verdict, ...]:
    """The calls that were begun and neither ran nor were rejected: those of the response at hand, and earlier ones."""
    verdicts = turn.evaluated.verdicts if turn.evaluated else ()
    return (*verdicts, *batch.missing(turn.broken, (verdict.call for verdict in verdicts), turn.beside))


def _enter_repair(turn: Turn) -> tuple[Turn, tuple[Effect, ...]]:
    seen = turn.evaluated
    verdicts = unsettled(turn) or turn.broken
    spent = replace(turn.spent, requests=turn.spent.requests + 1, repairs=turn.spent.repairs + 1)
    said = history.assistant(seen.response, (), turn.tail) if seen else None
    added = (*((said,) if said else ()), history.repair(verdicts, turn.ability.system_hint, turn.beside))
    if caps.refused_now(turn):
        added = ()  # the message stands in the request that was refused, and so in the history
    cap, lower = caps.raised(turn, turn.policy.settles and is_cut(turn))
    choice = turn.request.tool_choice if "choice" in turn.refused else _choice(turn, verdicts)
    send = Send(Place.REPAIR, spent.repairs, Method.REPAIR, added, cap, tool_choice=choice, lower_cap=lower)
    return replace(turn, spent=spent, sent=send, repairing=True, broken=verdicts), (send,)


def _choice(turn: Turn, verdicts: Sequence[Verdict]) -> str | None:
    """One call alone is forced; of several none is, since that would forbid the others."""
    calls = batch.held(verdicts)
    declared = {tool.name for tool in turn.request.tools}
    if not declared:
        return None  # a choice among tools that are not declared would be refused
    return f"tool:{calls[0].name}" if len(calls) == 1 and calls[0].name in declared else "any"


def _enter_nudge(turn: Turn) -> tuple[Turn, tuple[Effect, ...]]:
    """The same request once more, and a message that its answer was empty; an answer that was begun goes on."""
    spent = replace(turn.spent, requests=turn.spent.requests + 1, empty_retries=turn.spent.empty_retries + 1)
    begun, sent, system = turn.merged().text, turn.sent, turn.ability.system_hint
    anchor = history.anchor_of(begun) if begun.strip() else ""
    mark = mark_for([begun, *(message.text for message in turn.history)]) if anchor else MARKS[0]
    unsaid = history.whole(turn.tail)  # what no request has as the assistant's yet
    said = (Message(Role.ASSISTANT, (TextPart(unsaid),)),) if anchor and unsaid.strip() else ()
    send = Send(
        Place.NUDGE, spent.empty_retries, Method.ANCHOR if anchor else Method.NUDGE,
        (*said, history.nudge(anchor, system, mark)), caps.within(turn, sent.max_tokens if sent else None),
        sent.tool_choice if sent else None, anchor=anchor, mark=mark,
    )
    return replace(turn, spent=spent, sent=send), (send,)


def _enter_resume(turn: Turn) -> tuple[Turn, tuple[Effect, ...]]:
    seen = turn.evaluated
    if seen is None or tripped("resume", turn.limits, turn.spent, turn.token_stop, turn.policy.lacks & {"room"}):
        return replace(turn, sent=None), ()  # the next tick leaves by the guard
    methods = {"token": Method.TOKEN, "poll": Method.POLL, "server": Method.POLL}
    method = methods.get(seen.judged.stop.detail or "", Method.ECHO)
    said = history.echo(seen.response, turn.tail) if method is Method.ECHO else None
    spent = replace(turn.spent, requests=turn.spent.requests + 1, resumes=turn.spent.resumes + 1)
    cap, choice = (turn.sent.max_tokens, turn.sent.tool_choice) if turn.sent else (None, None)
    send = Send(Place.RESUME, spent.resumes, method, (said,) if said else (), caps.within(turn, cap), choice)
    turn = replace(turn, spent=spent, sent=send)
    if turn.policy.settles and method is not Method.POLL and batch.held(seen.verdicts):
        turn = replace(turn, repairing=True, broken=unsettled(turn))  # it does not go back with the pause
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
"""State -> what is done when it is entered; the others do nothing."""


def concluded(turn: Turn) -> tuple[Message, ...]:
    """The history after the turn: its last answer without its calls, and a note to the model where one was not run."""
    seen = turn.evaluated
    if seen is None or not turn.answers[-1]:
        return turn.history  # the last response is in it, with its results
    if not turn.policy.strips and seen.response.tool_calls:
        return (*turn.history, Message(Role.ASSISTANT, seen.response.parts))
    said = history.assistant(seen.response, (), turn.tail, seen.judged.stop.normalized)
    note = history.not_run(turn.broken or seen.verdicts, turn.ability.system_hint)
    return (*turn.history, *((said,) if said else ()), *((note,) if note else ()))


# -- notices ---------------------------------------------------------------------------------------------------------

NOTICES: Mapping[str, str] = {
    "retry_limit": "The answer is incomplete: it was cut {continuations} times more and "
    "continuation_max_attempts ({continuation_max_attempts}) is reached.",
    "not_continued": "The answer is incomplete: it was cut, and this loop has no way to continue it.",
    "budget_exhausted": "The answer is incomplete: the budget for continuations is spent "
    "({tokens:,} tokens, {chars:,} characters).",
    "seam_unverified": "Nothing shows that segment {segment} goes on from the text before it "
    "(character {at:,}): {why}.",
    "no_progress": "The turn was ended: the last request brought nothing new.",
    "repair_failed": "{repair}",
    "no_answer": "There is no answer: {ending}.",
    "step_limit": "The turn was ended after {tool_steps} rounds of tools (max_tool_steps).",
    "interrupted": "The answer is incomplete: the stream ended without a stop reason.",
    "error": "The answer may be incomplete: {problem}.",
    "safety_blocked": "The answer was blocked by a filter.",
    "context_window_exceeded": "The answer is incomplete: the context window is full; a continuation cannot succeed.",
    "cancelled": "The turn was cancelled.",
    "stuck": "A tool call was begun and this loop never ends it: it waits for ever, or shows an invalid call.",
    "unrecorded": "The recording ends here: what this loop asks for next was never recorded.",
}
"""Terminal reason -> what the operator is told. Notices are events, never assistant text."""


ENDED_AS: Mapping[Ending, str] = {
    Ending.EMPTY_ANSWER: "the response holds neither text nor a tool call",
    Ending.REASONING_ONLY: "the response is all reasoning",
    Ending.CALL_LEAKED: "a tool call stands as markup in the text, where nothing runs it",
    Ending.NO_CALL: "the stop reason speaks of a tool call, and none came",
    Ending.COMMENTARY_ONLY: "the output is commentary alone",
}
"""What an ending that only looks finished was, for the operator."""


def notice(turn: Turn, signal: Signal, terminal: str) -> str | None:
    """What the operator is told about an end; None where all is well."""
    told = _of_end(turn, signal, terminal)
    doubts = turn.doubts
    if not doubts:
        return told
    doubt = NOTICES["seam_unverified"].format(segment=doubts[0].index + 1, at=doubts[0].at, why=doubts[0].why)
    return f"{told} {doubt}" if told else doubt


def _of_end(turn: Turn, signal: Signal, terminal: str) -> str | None:
    stopped = signal is Signal.RETRY_LIMIT and _guard("continuation", turn) is None
    text = NOTICES.get("not_continued" if stopped else terminal)
    if text is None or "{" not in text:
        return text
    seen = turn.evaluated
    problem = "the provider reported an error"
    if seen is not None and seen.response.error is not None and seen.response.error.message:
        problem = f"the provider reported: {seen.response.error.message[:200]}"
    elif signal is Signal.UNKNOWN and seen is not None:
        raw = seen.response.stop_reason.raw
        problem = "its stop reason is not known" if raw is None else f"the stop reason {raw!r} is unknown"
    return text.format(
        continuations=turn.spent.continuations,
        continuation_max_attempts=turn.limits.continuation_max_attempts,
        tokens=turn.spent.continuation_tokens,
        chars=turn.spent.continuation_chars,
        tool_steps=turn.spent.tool_steps,
        repair=history.repair_failed(unsettled(turn), turn.beside),
        problem=problem,
        ending=ENDED_AS.get(seen.judged.ending, "nothing came") if seen and seen.judged.ending else "nothing came",
    )
