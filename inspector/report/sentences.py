"""Writes the sentence of a verdict: what was sent and what was decided, in plain words."""

from __future__ import annotations

from collections.abc import Mapping

from inspector.replay.token_counts import impossible_count
from inspector.report.advice import UNFINISHED, is_cut_below_cap, limit_words
from inspector.report.error_advice import is_redirect
from inspector.report.findings import CUT_WORDS, is_suspicion
from inspector.report.judged_turn import JudgedTurn, all_reasoning, arguments_unread, nothing_read
from inspector.sessions.reasons import named_api, reason_text, recorder_word
from inspector.sessions.recording import Exchange, TurnPlace
from inspector.sessions.thread import response_number
from loop_core.judge.arguments import ArgumentShape, is_phantom, parse_call
from loop_core.judge.endings import DAMAGED, REPEATED_MEMBER_RULES
from loop_core.judge.gate import Verdict
from loop_core.turn.moves import with_status
from loop_core.turn.policy import dispatched_calls, is_runnable
from loop_core.turn.state import RequestPlace
from loop_core.values import BREAKS, ArgsForm, CallKind, ChatResponse, Stop, Usage


def who(turn: JudgedTurn) -> str:
    """The source of the response: the format or the model, and the server if known."""
    exchange, name = turn.exchange, _format_or_model(turn.exchange)
    same = exchange.profile.name in (exchange.api, "generic") or exchange.profile.name.startswith("generic")
    return name if same else f"{name} ({exchange.profile.name})"


def _format_or_model(exchange: Exchange) -> str:
    return named_api(exchange) or short(exchange.model or "the model")


def format_name(exchange: Exchange) -> str:
    """The wire format of an answer, as a report names it."""
    return named_api(exchange) or "wire format not recorded"


LONGEST = 80
"""The largest number of characters of a provider's word or a tool's name that a sentence shows."""


def short(text: str) -> str:
    """A word from outside, cut for a sentence: the name of a called tool may be a page long."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


REQUEST_WORDS: Mapping[RequestPlace, str] = {
    RequestPlace.REQUEST: "request with results", RequestPlace.CONTINUATION: "continuation",
    RequestPlace.REPAIR: "repair", RequestPlace.RESUME: "resumption", RequestPlace.NUDGE: "retry of an empty answer",
}
"""Place of a further request in a turn -> its name before its number."""


OTHER_WORDS = (".earlier_reason", ".output.status:incomplete")
"""The ends of the names of rules by which a word other than the quoted one says that the answer was cut."""


def budget(turn: JudgedTurn) -> str:
    """The stop reason as sent, and how much of the cap was used."""
    exchange = turn.exchange
    usage, cap = exchange.response.usage, exchange.cap
    raw = exchange.response.raw_stop_reason
    judged = turn.judgement
    # Anthropic also counts at the beginning of a stream; if the stream broke off, that count is not the answer's.
    broke = raw is None and exchange.response.streaming and turn.word is Stop.INTERRUPTED and not judged.cap_reached
    used = usage.output_tokens if usage and not broke and impossible_count(exchange.response) != 0 else None
    word = f"{reason_text(exchange.response.stop_reason)}{_break(turn)}" if raw is None else f'"{short(raw)}"'
    clean = judged.mapped.normalized not in CUT_WORDS or judged.mapped.evidence[-1].rule.endswith(OTHER_WORDS)
    if raw is not None and judged.stop.normalized in CUT_WORDS and clean:
        # Without these words the sentence would quote `stop` or `tool_calls` as if the answer were whole.
        word += f" though it {'may be' if is_suspicion(turn.judgement) else 'was'} cut"
    # With `n` choices the usage is the sum over all of them, while the cap holds for each.
    if used is not None and exchange.response.other_choices:
        each = "" if cap is None else f" of at most {cap:,} each"
        return f"{word}, {used:,} tokens in {exchange.response.other_choices + 1} choices{each}{_reasoning(turn)}"
    if usage is not None and used is not None and cap is not None and used > cap:
        return f"{word}, {_above_cap(usage, used, cap)}"
    if used is not None and cap is not None:
        cutter = "cut by the provider at " if is_cut_below_cap(turn) else ""
        return f"{word}, {cutter}{used:,} of {cap:,} tokens{_reasoning(turn)}"
    if used is not None:
        return f"{word}, {used:,} tokens{_reasoning(turn)}"
    return f"{word}, cap {cap:,}{_reasoning(turn)}" if cap is not None else f"{word}{_reasoning(turn)}"


def _cut(turn: JudgedTurn) -> str:
    return "may have cut" if is_suspicion(turn.judgement) else "cut"


def only_reasoning_above(usage: Usage, cap: int) -> bool:
    """Whether the output exceeds `cap` only by its reasoning, which some servers do not count against the cap."""
    return usage.visible_tokens is not None and usage.visible_tokens <= cap < (usage.output_tokens or 0)


def _above_cap(usage: Usage, used: int, cap: int) -> str:
    """The part of a sentence about more output tokens than the cap, worded so that the counts add up."""
    if only_reasoning_above(usage, cap):
        visible = usage.visible_tokens
        rest = f"the other {visible:,} are within the cap of {cap:,}" if visible else f"the cap was {cap:,}"
        return f"{used:,} output tokens, {usage.reasoning_tokens:,} of them on reasoning: {rest}"
    return f"{used:,} output tokens, more than the cap of {cap:,}"


def _reasoning(turn: JudgedTurn) -> str:
    """The reasoning's share of the budget that cut the answer."""
    if all_reasoning(turn):
        return ", all spent on reasoning"
    usage = turn.exchange.response.usage
    if turn.word is Stop.MAX_TOKENS and usage is not None and usage.reasoning_tokens:
        return f", {usage.reasoning_tokens:,} of them on reasoning"
    return ""


def ending_words(turn: JudgedTurn) -> str:
    """How the deciding response ended."""
    return f"{who(turn)} ended with {budget(turn)}"


TOOLS_NAMED = 2
"""The largest number of tools that a sentence names; with more it gives the number of calls."""


def end_note(turn: JudgedTurn) -> str:
    """Remarks on the turn's last answer, where they apply: its connection broke, it calls tools."""
    response = turn.answers[-1].exchange.response
    broke = response.transport_end in BREAKS
    note = "; then its connection broke, which some clients take for a failure" if broke else ""
    if not turn.ends_at_call:
        return note
    calls = [call for call in response.tool_calls if not is_phantom(call)]
    names = list(dict.fromkeys(short(call.name or "a tool without a name") for call in calls))
    tools = " and ".join(names) if len(names) <= TOOLS_NAMED else f"{len(calls)} tool calls"
    after = "no later answer of this turn is in its file"
    if turn.may_follow:
        number = response_number(turn.may_follow[0])
        after = f"it is not known whether response {number} comes next: its request fits several answers"
    return f"{note}; the answer is complete and asks for {tools}, and {after}"


def attempt_words(turn: JudgedTurn) -> str:
    """Why the request of a turn was sent again: a refusal, a failure, or the cut of its first answer."""
    if Stop.SAFETY_BLOCKED in turn.words:
        return "refusal"
    cut = Stop.MAX_TOKENS in turn.words and turn.words.isdisjoint((Stop.ERROR, Stop.INTERRUPTED))
    return "cut" if cut else "failure"


def gap(turn: JudgedTurn) -> str:
    """The remark that the request after a cut answer, or its reason, was not recorded or not followed; else empty."""
    if turn.is_retry_guessed:
        return "; it is a guess that the same request was sent again because of the cut: an output cap was not recorded"
    if turn.has_unseen_seam:
        return "; the agent had continued a cut answer, and nothing checked that the two belong together"
    note = "; it is a guess that the next answer is its rest: the request between them was not recorded"
    return note if turn.is_continuation_guessed else ""


def lost_part(turn: JudgedTurn) -> str:
    """Why a part of the answer is missing or wrong."""
    if (rules := turn.answers[turn.worst].rules) & REPEATED_MEMBER_RULES:
        return "a JSON object in it has a duplicate key: nothing shows which of the two values is meant"
    return ("the answer does not match its checksum, so any part of it may be wrong" if DAMAGED in rules else
            "one of its frames could not be read, so a part of the answer is missing")


def notice(turn: JudgedTurn) -> str:
    """The notice with which a run ended, in the form of a sentence's end."""
    text = turn.final_turn.notice or ""
    return f"{text[:1].lower()}{text[1:].removesuffix('.')}"


def cut_words(turn: JudgedTurn) -> str:
    """Who cut the answer and how, and the limit that then ended the turn."""
    # The words about a cut below the cap already say who made it.
    is_provider_cut = turn.word is Stop.MAX_TOKENS and not is_cut_below_cap(turn)
    cutter = f"the provider {_cut(turn)} the answer: " if is_provider_cut else ""
    return _with_limit(f"{cutter}{ending_words(turn)}", turn)


def cut_call_words(turn: JudgedTurn) -> str:
    """Which call was cut and how, and the limit that then ended the turn."""
    return _with_limit(_cut_call(turn), turn)


def cut_call_held(turn: JudgedTurn) -> str:
    """Which call was cut and how, whether the policy in force runs such a call, and the limit that ended the turn."""
    policy, call = turn.final_turn.policy, turn.cut_call
    runs = call is not None and any(
        call in each.verdicts and is_runnable(policy, each.verdicts) and dispatched_calls(policy, (call,))
        for each in turn.answers)
    policy_words = f"; policy {policy.name} runs such a call, here it was not run" if runs else ""
    return _with_limit(f"{_cut_call(turn)}{policy_words}{_ran(turn, call)}", turn)


def _with_limit(text: str, turn: JudgedTurn) -> str:
    return f"{text}; {limit}" if (limit := limit_words(turn)) else text


def _cut_call(turn: JudgedTurn) -> str:
    """Which call was cut, and how; if there is none, how the response ended."""
    exchange, verdict = turn.exchange, turn.cut_call
    if verdict is None:
        return ending_words(turn)
    size, shape = len(verdict.call.arguments or ""), parse_call(verdict.call).shape
    name = f"{short(verdict.call.name or 'a call')}{_which(turn, turn.worst, verdict)}"
    word, cut = turn.word, _cut(turn)
    if verdict.rule == "gate.contradiction":
        clause = f"sent {name} twice with different arguments; nothing shows which are meant"
        return f"{_format_or_model(exchange)} {clause}"
    if shape is ArgumentShape.CUT:
        clause = f"cut {name} at character {size:,} of its arguments"
    elif arguments_unread(turn):
        clause = f"{cut if word in CUT_WORDS else 'sent'} {name}, whose arguments the recorder could not read"
    elif shape.is_missing:
        clause = f"cut {name} before its arguments" if word in CUT_WORDS else f"sent {name} without arguments"
    elif shape is not ArgumentShape.COMPLETE and verdict.call.kind is not CallKind.CUSTOM:
        clause = f"sent {name} with invalid arguments"
    elif word is Stop.MALFORMED_TOOL_CALL and "judge.lost_frame" in turn.answers[turn.worst].rules:
        clause = f"sent {name}, but {lost_part(turn)}"
    elif word not in CUT_WORDS:
        clause = f"sent {name} under a stop reason that allows no call"
    elif verdict.call.kind is CallKind.CUSTOM:
        clause = f"{cut} {name}, whose free text may end anywhere"
    # Gemini, Ollama, and Anthropic without streaming send parsed arguments, which never show a cut.
    elif verdict.call.form is ArgsForm.OBJECT and size <= len("{}"):
        clause = f"{cut} {name} before its arguments"
    # Calls arrive one after another, so if the last call was cut, the earlier ones are whole.
    elif verdict.call.form is ArgsForm.OBJECT and not (verdict.call.closed and _is_before_last(turn, verdict)):
        clause = f"{cut} {name}, whose arguments were recorded already parsed and so look complete"
    elif not verdict.call.closed:
        clause = f"never closed {name}, whose arguments parse as they stand"
    else:
        clause = f"{cut} the batch of {name}, whose own arguments parse"
    return f"{_format_or_model(exchange)} {clause} ({budget(turn)})"


def _is_before_last(turn: JudgedTurn, verdict: Verdict) -> bool:
    """Whether another call of the deciding response comes after this one."""
    return turn.answers[turn.worst].verdicts[-1].call is not verdict.call


def _which(turn: JudgedTurn, position: int, verdict: Verdict) -> str:
    """The place of a call in its batch; empty if it is the only call."""
    # By identity: a model may send two equal calls in one answer.
    batch = turn.answers[position].verdicts
    place = next((place for place, each in enumerate(batch, 1) if each.call is verdict.call), None)
    return f" (call {place} of {len(batch)})" if place is not None and len(batch) > 1 else ""


def held_call(turn: JudgedTurn) -> str:
    """The last held call, the reason, and whether the agent ran it nevertheless."""
    position, verdict = turn.held_calls[-1]
    name = f"{short(verdict.call.name or 'without a name')}{_which(turn, position, verdict)}"
    whose = f"its call {name}" if position == turn.worst else f"the call {name} of an earlier answer"
    return f"{whose} is held: {verdict.why}{_ran(turn, verdict)}"


def _ran(turn: JudgedTurn, verdict: Verdict | None) -> str:
    """Which held call the agent ran although nothing shows that it was cut: this one, else another of the turn."""
    own = any(each is verdict for each in turn.ran_uncut)
    names = ["it"] if own else [short(each.call.name or "a call") for each in turn.ran_uncut[-1:]]
    return f"; the agent ran {names[0]}" if names else ""


def limit_reached(turn: JudgedTurn) -> str:
    """The limit that ended a turn that could have continued, and what the turn was doing."""
    from inspector.report.lines.spans import count_of  # imported here, because few turns need it

    limit = limit_words(turn) or "the policy ended the turn"
    if turn.last_word is Stop.TOOL_CALL and turn.reached_end:
        return f"{limit}: {who(turn)} asked for tools"
    cuts = sum(answer.cut_unseen or answer.word in CUT_WORDS for answer in turn.answers)
    clause = f"{who(turn)} was cut {count_of(cuts, 'time')}"
    if turn.simulated:
        return f"{limit}: {f'{clause} ({budget(turn)})' if cuts else ending_words(turn)}"
    return f"{limit}: {clause}, and the recorded agent finished it with {count_of(continuations(turn), 'continuation')}"


def continuations(turn: JudgedTurn) -> int:
    """How many continuations the recorded agent needed."""
    return sum(answer.place is TurnPlace.CONTINUATION for answer in turn.answers)


def finding_of(turn: JudgedTurn) -> str:
    """The judge's finding about the ending."""
    rule = f"ending.{turn.ending.value}" if turn.ending is not None else ""
    return next((found.message for found in turn.judgement.findings if found.rule == rule), "")


def seam(turn: JudgedTurn) -> str:
    """The remark about the first segment without evidence that it continues the text before it."""
    doubt = turn.final_turn.doubtful_seams[0]
    return f"nothing shows that segment {doubt.segment + 1} continues the text before it: {doubt.why}"


def break_words(turn: JudgedTurn) -> str:
    """The words for an answer that broke off, in the middle or with a stop word that gives no reason."""
    response = turn.exchange.response
    if turn.exchange.recorder is not None:  # its rows are not the provider's bytes
        return f"did not finish the answer ({budget(turn)})"
    return f"{_broke_off(turn, response)} ({response.size:,} bytes{_break(turn)})"


def _break(turn: JudgedTurn) -> str:
    """The client's error about the broken connection, as an addition to a sentence; empty if there is none."""
    return f"; {short(why)}" if (why := turn.exchange.response.broken_connection) else ""


def _broke_off(turn: JudgedTurn, response: ChatResponse) -> str:
    if nothing_read(turn):
        return f"sent nothing that {response.api} defines as an answer"
    if reason := router_words(turn):
        return f"did not finish the answer: {reason}"
    if response.raw_stop_reason == UNFINISHED:
        return f'ended while its status was "{UNFINISHED}"'
    if response.raw_stop_reason:
        return f'says "{short(response.raw_stop_reason)}" and gives no reason'
    return "ended without a stop reason" if response.streaming else "sent an incomplete body"


def router_words(turn: JudgedTurn) -> str:
    """The stop words of a response and of the engine or provider behind it, if the latter decided; else empty."""
    return next((found.message for found in turn.judgement.findings if found.rule == "judge.native_word"), "")


PAUSES = {
    "poll": "has not finished the answer; it must be fetched by its id",
    "server": "stopped the answer where it was steered, and goes on in a new response",
}
"""Way in which a paused response continues -> what it did. In any other case it waits for a request."""


def pause_words(turn: JudgedTurn) -> str:
    """The words for an answer that paused instead of ending."""
    return PAUSES.get(turn.judgement.stop.detail or "", "paused and waits to be resumed")


def no_reason_words(turn: JudgedTurn) -> str:
    """The words for a complete answer without a stop reason."""
    what = "a stream with its end mark" if turn.exchange.response.streaming else "a whole body"
    response = turn.exchange.response
    nothing = "neither an answer nor a" if nothing_read(turn) else "no"
    return f"sent {what} and {nothing} stop reason in it ({response.size:,} bytes)"


def held_beside(turn: JudgedTurn) -> str:
    """The held call as an addition to a sentence; empty if there is none."""
    return f"; {held_call(turn)}" if turn.held_calls else ""


def unreached_reason(response: ChatResponse) -> str:
    """Why no server answered, if known."""
    return f": {reason}" if (reason := response.broken_connection) else ""


def cut_before(turn: JudgedTurn) -> str:
    """The remark that an earlier answer of the turn was cut; empty if none was."""
    return ", and before it the answer was cut" if Stop.MAX_TOKENS in turn.words else ""


def failure(turn: JudgedTurn) -> str:
    """The error reported in place of an answer."""
    response, error = turn.exchange.response, turn.exchange.response.error
    message = error.message.strip() or error.type or error.code or "without a message" if error else _failure_word(turn)
    most = 300 if is_redirect(turn) else 100  # a redirect's address is useless if it is cut
    return with_status(response, message if len(message) <= most else f"{message[:most - 3]}…")


def _failure_word(turn: JudgedTurn) -> str:
    """A failure that was reported only as a stop word: the word and its meaning."""
    stop = turn.judgement.stop
    kind, _, meaning = (stop.detail or "").partition(": ")
    return ", ".join(word for word in (f'"{short(stop.raw)}"' if stop.raw else "", meaning or kind) if word) or "error"


EXPLANATIONS = ("finishMessage", "blockReasonMessage")
"""Members in which Gemini explains a filter (https://ai.google.dev/api/generate-content); others refuse in text."""


def filter_explanation(turn: JudgedTurn) -> str:
    """Why an answer was filtered, in the provider's words."""
    response = turn.exchange.response
    texts = (response.refusal, *(response.native.get(name) for name in EXPLANATIONS),
             response.error.message if response.error else None)
    explanation = " ".join(next((text for text in texts if text), "").split())
    return f": {explanation if len(explanation) <= 200 else explanation[:199] + '…'}" if explanation else ""


def detail(turn: JudgedTurn) -> str:
    """The stop reason's own words."""
    stop = turn.judgement.stop
    first = reason_text(stop) if recorder_word(stop) is not None else stop.raw
    words = [word for word in (first, stop.detail) if word]
    words = words[:1] if words[:1] == words[1:] else words
    words = [reason, *words[1:]] if (reason := router_words(turn)) else words
    if category := turn.exchange.response.native.get("stop_details.category"):
        words.append(f"category {category}")
    return ", ".join(words) if words else "no word sent"
