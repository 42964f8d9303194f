"""What a move of the machine does and says: `entered`, `notice`. What it costs is in `costs`.

Pure functions from a turn to a turn; which move is made is decided in `machine`, by its table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from loop_core.judge import gate
from loop_core.judge.classify import Ending
from loop_core.judge.gate import Admission, Verdict
from loop_core.turn import costs, history
from loop_core.turn.costs import batch_of, is_cut, misses_anchor
from loop_core.turn.limits import Guard, tripped
from loop_core.turn.policy import Signal
from loop_core.turn.prompts import MARKS, mark_for
from loop_core.turn.segments import Method
from loop_core.turn.state import ENDED, Effect, Finish, Place, Send, State, Turn
from loop_core.values import Message, Role, TextPart

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


# -- what a state does when it is entered ----------------------------------------------------------------------------


def entered(turn: Turn) -> tuple[Turn, tuple[Effect, ...]]:
    """What a state does when it is entered: the effects, and the turn that they are noted in."""
    enter = _ENTER.get(turn.state)
    return (turn, ()) if enter is None else enter(turn)


def _enter_request(turn: Turn) -> tuple[Turn, tuple[Effect, ...]]:
    spent = turn.spent._replace(requests=turn.spent.requests + 1)
    asked = turn.request
    cap = costs.within(turn, asked.max_tokens)
    send = Send(Place.REQUEST, spent.tool_steps, Method.FIRST, (), cap, asked.tool_choice)
    return turn._replace(spent=spent, sent=send, answers=(*turn.answers, ())), (send,)


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
        left = gate.missing(turn.broken, came, turn.beside) if turn.policy.settles else ()
        beside = (*turn.beside, *(verdict for verdict in turn.broken if verdict not in left)) if left else ()
        turn = turn._replace(repairing=False, broken=left, beside=beside)
    return turn, (effect,)


def _enter_continuation(turn: Turn) -> tuple[Turn, tuple[Effect, ...]]:
    spent = turn.spent._replace(
        requests=turn.spent.requests + 1,
        attempts=turn.spent.attempts + 1,
        continuations=turn.spent.continuations + 1,
    )
    text, sent = history.whole(turn.tail), turn.sent
    choice = turn.request.tool_choice
    blank = turn.evaluated is not None and not turn.evaluated.response.text
    cap, lower = costs.raised(turn, blank)  # nothing visible came: a retry needs more room (hermes-agent #96973)
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
    return turn._replace(spent=spent, sent=send), (send,)


def unsettled(turn: Turn) -> tuple[Verdict, ...]:
    """The calls that were begun and neither ran nor were rejected: those of the response at hand, and earlier ones."""
    verdicts = turn.evaluated.verdicts if turn.evaluated else ()
    return (*verdicts, *gate.missing(turn.broken, (verdict.call for verdict in verdicts), turn.beside))


def _enter_repair(turn: Turn) -> tuple[Turn, tuple[Effect, ...]]:
    seen = turn.evaluated
    verdicts = unsettled(turn) or turn.broken
    spent = turn.spent._replace(requests=turn.spent.requests + 1, repairs=turn.spent.repairs + 1)
    said = history.assistant(seen.response, (), turn.tail) if seen else None
    added = (*((said,) if said else ()), history.repair(verdicts, turn.ability.system_hint, turn.beside))
    if costs.refused_now(turn):
        added = ()  # the message stands in the request that was refused, and so in the history
    cap, lower = costs.raised(turn, turn.policy.settles and is_cut(turn))
    choice = turn.request.tool_choice if "choice" in turn.refused else _choice(turn, verdicts)
    send = Send(Place.REPAIR, spent.repairs, Method.REPAIR, added, cap, tool_choice=choice, lower_cap=lower)
    return turn._replace(spent=spent, sent=send, repairing=True, broken=verdicts), (send,)


def _choice(turn: Turn, verdicts: Sequence[Verdict]) -> str | None:
    """One call alone is forced; of several none is, since that would forbid the others."""
    calls = gate.held(verdicts)
    declared = {tool.name for tool in turn.request.tools}
    if not declared:
        return None  # a choice among tools that are not declared would be refused
    return f"tool:{calls[0].name}" if len(calls) == 1 and calls[0].name in declared else "any"


def _enter_nudge(turn: Turn) -> tuple[Turn, tuple[Effect, ...]]:
    """The same request once more, and a message that its answer was empty; an answer that was begun goes on."""
    spent = turn.spent._replace(requests=turn.spent.requests + 1, empty_retries=turn.spent.empty_retries + 1)
    begun, sent, system = turn.merged().text, turn.sent, turn.ability.system_hint
    anchor = history.anchor_of(begun) if begun.strip() else ""
    mark = mark_for([begun, *(message.text for message in turn.history)]) if anchor else MARKS[0]
    unsaid = history.whole(turn.tail)  # what no request has as the assistant's yet
    said = (Message(Role.ASSISTANT, (TextPart(unsaid),)),) if anchor and unsaid.strip() else ()
    send = Send(
        Place.NUDGE, spent.empty_retries, Method.ANCHOR if anchor else Method.NUDGE,
        (*said, history.nudge(anchor, system, mark)), costs.within(turn, sent.max_tokens if sent else None),
        sent.tool_choice if sent else None, anchor=anchor, mark=mark,
    )
    return turn._replace(spent=spent, sent=send), (send,)


def _enter_resume(turn: Turn) -> tuple[Turn, tuple[Effect, ...]]:
    seen = turn.evaluated
    if seen is None or tripped("resume", turn.limits, turn.spent, turn.token_stop, turn.policy.lacks & {"room"}):
        return turn._replace(sent=None), ()  # the next tick leaves by the guard
    methods = {"token": Method.TOKEN, "poll": Method.POLL, "server": Method.POLL}
    method = methods.get(seen.judged.stop.detail or "", Method.ECHO)
    said = history.echo(seen.response, turn.tail) if method is Method.ECHO else None
    spent = turn.spent._replace(requests=turn.spent.requests + 1, resumes=turn.spent.resumes + 1)
    cap, choice = (turn.sent.max_tokens, turn.sent.tool_choice) if turn.sent else (None, None)
    send = Send(Place.RESUME, spent.resumes, method, (said,) if said else (), costs.within(turn, cap), choice)
    turn = turn._replace(spent=spent, sent=send)
    if turn.policy.settles and method is not Method.POLL and gate.held(seen.verdicts):
        turn = turn._replace(repairing=True, broken=unsettled(turn))  # it does not go back with the pause
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
    "retry_limit": "The answer is incomplete: it was cut{again} and "
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
    "interrupted": "The answer is incomplete: it ended without a stop reason.",
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


def _again(continuations: int) -> str:
    return "" if not continuations else " once more" if continuations == 1 else f" {continuations} times more"


def _of_end(turn: Turn, signal: Signal, terminal: str) -> str | None:
    stopped = signal is Signal.RETRY_LIMIT and _guard("continuation", turn) is None
    text = NOTICES.get("not_continued" if stopped else terminal)
    if text is None or "{" not in text:
        return text
    seen = turn.evaluated
    problem = "the provider reported an error"
    if seen is not None and seen.response.error is not None and seen.response.error.message:
        problem = f"the provider reported: {seen.response.error.message[:200].rstrip().removesuffix('.')}"
    elif signal is Signal.UNKNOWN and seen is not None:
        raw = seen.response.stop_reason.raw
        problem = "its stop reason is not known" if raw is None else f"the stop reason {raw!r} is unknown"
    return text.format(
        again=_again(turn.spent.continuations),
        continuation_max_attempts=turn.limits.continuation_max_attempts,
        tokens=turn.spent.continuation_tokens,
        chars=turn.spent.continuation_chars,
        tool_steps=turn.spent.tool_steps,
        repair=history.repair_failed(unsettled(turn), turn.beside),
        problem=problem,
        ending=ENDED_AS.get(seen.judged.ending, "nothing came") if seen and seen.judged.ending else "nothing came",
    )
