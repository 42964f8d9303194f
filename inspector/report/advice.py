"""Advice: what to change about a turn, and how reliable the advice is.

A setting is recommended only after `trial` has run the turn with exactly that setting. If nothing can be tried, because
the rest was never recorded, the advice is a guess without a number, with its reason and a way to find out. The table
`SITUATIONS`, worst cause first, maps the cause of a verdict to the settings to try and to the guess.
"""

# Annotations are not postponed: of a named tuple each would be compiled from text at every start.
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import NamedTuple

from inspector.config.settings import INITIAL
from inspector.replay.recorded_calls import REFUSED
from inspector.report.judged_turn import JudgedTurn, all_reasoning, arguments_unread, has_reasoning, nothing_read
from inspector.sessions.recording import Exchange, TurnPlace
from loop_core.judge.arguments import parse_call
from loop_core.judge.classify import LOST_FRAME_RULES
from loop_core.judge.endings import hit_stop_string, num_ctx_of
from loop_core.judge.gate import Verdict
from loop_core.turn.limits import GUARDS, TOTAL, Spend
from loop_core.turn.trace import limit_usage
from loop_core.values import FINISHED, Request, Stop
from loop_core.wire import FORMATS, wire


class Basis(StrEnum):
    """How an advice was found, which decides how reliable it is."""

    RECORDED = "recorded"
    """The settings complete the turn when it is replayed over its recording."""
    SIMULATED = "simulated"
    """The settings complete the turn when the recorded output is cut again at other places."""
    ESTIMATED = "estimated"
    """Nothing was tried: the advice is a guess, with its reason in the text."""


class Advice(NamedTuple):
    """What to change about a turn."""

    text: str
    basis: Basis = Basis.ESTIMATED
    set: Mapping[str, str] | None = None
    """The settings of the run that was tried, as `--set` takes them; None if nothing was tried."""
    live: bool = False
    """Whether only a new answer of the provider can show what is enough."""
    guess: Mapping[str, str] | None = None
    """Larger values to try in a live run; nothing shows that they are large enough."""


NEVER_RUN = "never run a held call; "
"""The warning at the beginning of an advice. No key of the app stands for it."""
TRIED: Mapping[Basis, str] = {
    Basis.RECORDED: "a replay of the recording then completes the turn",
    Basis.SIMULATED: "a simulation then completes the turn, which is a guess",
}


def tested_advice(settings: Mapping[str, str], basis: Basis) -> Advice:
    """The advice to use settings under which the turn completed when tried."""
    changes = " and ".join(f"{name} to {int(value):,}" for name, value in settings.items())
    return Advice(f"raise {changes}: {TRIED[basis]}", basis, dict(settings))


COUNTS: Mapping[str, Callable[[Spend], int]] = {
    "continuation_max_attempts": lambda spent: spent.attempts,
    "continuation_max_total_completion_tokens": lambda spent: spent.continuation_tokens,
    "continuation_max_output_chars": lambda spent: spent.continuation_chars,
    "continuation_tool_repair_attempts": lambda spent: spent.repairs,
    "max_thinking_only": lambda spent: spent.thinking_only,
    "max_tool_steps": lambda spent: spent.tool_steps,
    "max_identical_calls": lambda spent: spent.identical,
}
"""Name of a limit -> the amount that was spent of the limit when it ended the turn."""


_ON_TOOLS = frozenset(guard.limit for guard in GUARDS if guard.place == "tools") - {TOTAL}
"""The limits on tool runs between two answers, which do not affect how an answer ends."""


def effective_limit(turn: JudgedTurn) -> tuple[str, int] | None:
    """The limit that ended the turn, and its value. None if a higher limit would change nothing: the deciding answer
    comes after the engine's run, and is an uncut last answer, or the limit is one on tool runs."""
    response = turn.final_turn.evaluation.response if turn.final_turn.evaluation is not None else None
    at = next((place for place, answer in enumerate(turn.answers) if answer.exchange.response is response), turn.worst)
    if turn.limit is None or at >= turn.worst:
        return turn.limit
    ends_in_it = turn.worst == len(turn.answers) - 1 and not turn.cut
    return None if ends_in_it or turn.limit[0] in _ON_TOOLS else turn.limit


def limit_words(turn: JudgedTurn) -> str:
    """The limit of our loop that ended the turn, with the amount spent and its value; empty if none did."""
    limit = effective_limit(turn)
    if limit is None:
        return ""
    name, value = limit
    spent = f"{COUNTS[name](turn.final_turn.spend):,} of " if name in COUNTS else ""
    return f"this loop's limit {name} ({spent}{value:,}) ended the turn"


UNFINISHED = "in_progress"
"""The status of a response that is not over yet, in the formats that have one. It says nothing about how it ended."""


class Situation(NamedTuple):
    """The cause of a turn's verdict, the settings to try in order of their cost, and the advice if none works."""

    name: str
    holds: Callable[[JudgedTurn], bool]
    guess: Callable[[JudgedTurn], str]
    tries: tuple[str, ...] = ()
    """The settings to try; `LIMIT` stands for the limit that ended the turn and those that would end it next."""


LIMIT = "limit"
SLACK, SHARE = 16, 10
"""How far a count may be from the cap that cut an answer: a number of tokens, and a divisor of the cap."""


def _visible_tokens(turn: JudgedTurn) -> tuple[int, int] | None:
    """The output tokens and the cap; None if they cannot be compared, as with reasoning or several choices."""
    response, cap = turn.exchange.response, turn.exchange.cap
    usage = response.usage
    # Reasoning may be counted in blocks or in a field of its own, so the sum may stop at another number than the cap.
    if usage is None or not usage.output_tokens or cap is None or has_reasoning(turn) or response.other_choices:
        return None
    if any(found.rule.endswith(".usage_uncounted") for found in response.findings):
        return None
    return usage.output_tokens, cap


def _messages_spent(turn: JudgedTurn) -> bool:
    return turn.judgement.stop.detail == "max_messages"


def is_cut_below_cap(turn: JudgedTurn) -> bool:
    """Whether the deciding response was cut well below the request's cap, by a cap of the provider."""
    by_tokens = turn.cut and not (hit_stop_string(turn.exchange.response) or _messages_spent(turn))
    pair = _visible_tokens(turn) if by_tokens else None
    return pair is not None and pair[1] - pair[0] > max(SLACK, pair[1] // SHARE)


def _went_above(turn: JudgedTurn) -> bool:
    pair = _visible_tokens(turn) if turn.cut else None
    return pair is not None and pair[0] - pair[1] > max(SLACK // 2, pair[1] // SHARE)


def _no_cap(turn: JudgedTurn) -> bool:
    request = turn.exchange.request
    return turn.cut and can_be_asked(turn) and request is not None and request.max_tokens is None


def _limit(turn: JudgedTurn) -> str:
    """The name of the limit that ended the turn; empty if none did."""
    limit = effective_limit(turn)
    return limit[0] if limit is not None else ""


def _used_up(turn: JudgedTurn) -> list[str]:
    """The limit that ended the turn, and the used-up limits on continuations, which would end it next."""
    used_up = [name for name, _, spent, limit in limit_usage(turn.final_turn)
               if name.startswith("continuation_max_") and limit is not None and spent >= limit]
    return list(dict.fromkeys([_limit(turn), *used_up]))


def _word(stop: Stop) -> Callable[[JudgedTurn], bool]:
    return lambda turn: turn.word is stop


_full, _malformed, _broke, _blocked, _unknown = (_word(stop) for stop in (
    Stop.CONTEXT_WINDOW_EXCEEDED, Stop.MALFORMED_TOOL_CALL, Stop.INTERRUPTED, Stop.SAFETY_BLOCKED, Stop.UNKNOWN))


def _by_router(turn: JudgedTurn) -> bool:
    """Whether the stop word of the provider behind a router decided."""
    return any(found.rule == "judge.native_word" for found in turn.judgement.findings)


def _is_context_default(turn: JudgedTurn) -> bool:
    """Whether Ollama answered with its default context size, because the request set none."""
    exchange = turn.exchange
    return "ollama" in (exchange.profile.name, wire(exchange.api).provider) and num_ctx_of(exchange.request) is None


def _counts_cap(turn: JudgedTurn) -> bool:
    """Whether a server refused a request because its messages and its cap are too large together."""
    error = turn.exchange.response.error
    return error is not None and re.search(
        r"max_\w*tokens|maximum output tokens|in the (completion|output)\b", error.message) is not None


UNDECLARED = "undeclared tool"
"""The detail of a stop word that reports a call to a tool that the request did not declare."""


def model_declined(turn: JudgedTurn) -> bool:
    """Whether the model itself declined, in text under a clean stop word; no filter was involved."""
    stop = turn.judgement.stop
    # OpenAI reports the model's own refusal in `message.refusal` under the word `stop`
    # (https://platform.openai.com/docs/guides/structured-outputs); Anthropic's stop reason `refusal` comes from a
    # classifier beside the model
    # (https://docs.anthropic.com/en/docs/test-and-evaluate/strengthen-guardrails/handle-streaming-refusals).
    own = stop.detail == "refusal" and stop.raw != "refusal"  # `refusal` is the word of Anthropic's classifier
    return _blocked(turn) and own and turn.exchange.response.error is None


def _without_arguments(turn: JudgedTurn) -> bool:
    return (turn.cut_call is not None and not arguments_unread(turn)
            and parse_call(turn.cut_call.call).shape.is_missing)


def _says(text: str) -> Callable[[JudgedTurn], str]:
    return lambda turn: text


def _unknown_word(exchange: Exchange) -> str:
    """The advice about a stop word that the answer's format does not define; a router may pass on another format's."""
    word = exchange.response.raw_stop_reason or ""
    for api in FORMATS:
        row = wire(api).stop_reasons.get(word)
        if row is not None and row.stop is not Stop.UNKNOWN:
            return f"report the word: in {api} it means {row.stop.value}, and a router may have passed it on"
    is_known = not exchange.profile.name.startswith("generic")
    return "report the word" if is_known else "name the server with --profile, or report the word"


SITUATIONS: tuple[Situation, ...] = (
    # A cap of the server cuts every answer, whatever cap is requested, so only more continuations may help.
    Situation("a limit on cuts by another cap", lambda turn: _limit(turn) in RAISED and is_cut_below_cap(turn),
              lambda turn: f"raise {' and '.join(_used_up(turn))}: the answer ended below {INITIAL}", (LIMIT,)),
    # max_tokens first: the form of a live run (`_larger_values`) proposes it.
    Situation("a limit on cuts", lambda turn: _limit(turn) in RAISED and turn.cut,
              lambda turn: f"raise {INITIAL}, or {' and '.join(_used_up(turn))}", (LIMIT, INITIAL)),
    Situation("another limit", lambda turn: _limit(turn) in RAISED, lambda turn: f"raise {_limit(turn)}", (LIMIT,)),
    # A higher limit would only allow more repetitions of the same call, so nothing is tried.
    Situation("the same again", lambda turn: _limit(turn) == "max_identical_calls" and turn.cut_call is None,
              _says("change the prompt or the tool's result: the model keeps making the same call")),
    Situation("a stop string", lambda turn: turn.cut and hit_stop_string(turn.exchange.response), _says(
        "leave out the stop string, or choose one that no call can contain: it ended the answer")),
    Situation("messages", lambda turn: turn.cut and _messages_spent(turn), _says(
        "raise the number of messages that the response may have: that cut it, not a token limit")),
    # Routers and servers may lower the cap or set one without reporting it, such as a default of 8192 tokens
    # (openclaw/openclaw#71045).
    Situation("cut under a clean word", lambda turn: is_cut_below_cap(turn) and not _by_router(turn)
              and turn.judgement.mapped.normalized in FINISHED, _says(
        f"ask for the call again: the answer ended below {INITIAL}, and what cut the call is unknown")),
    # llama.cpp and Ollama also send `length` if the context is full.
    Situation("another cap below", is_cut_below_cap, _says(
        f"raise the cap or the context of the server or router: the answer ended below {INITIAL}, so raising that "
        "alone changes nothing")),
    Situation("the cap is not kept", _went_above, _says(
        f"set the cap at the server or router: it did not keep to {INITIAL}, so another value may change nothing")),
    Situation("reasoning", all_reasoning, _says(f"raise {INITIAL} or lower the reasoning effort"), (INITIAL,)),
    # Ollama's `length` may mean num_predict or num_ctx; without num_predict it mostly means num_ctx.
    Situation("neither cap nor context asked for", lambda turn: _no_cap(turn) and _is_context_default(turn),
              _says(f"set {INITIAL} and num_ctx: the request leaves both to the server"), (INITIAL,)),
    Situation("no cap asked for", _no_cap, _says(f"set {INITIAL}: the request leaves it to the server"),
              (INITIAL,)),
    Situation("cut", lambda turn: turn.cut, _says(f"raise {INITIAL}"), (INITIAL,)),
    Situation("contradiction", lambda turn: turn.cut_call is not None and turn.cut_call.rule == "gate.contradiction",
              _says("ask for the call again, and report both versions to the maintainers of the server")),
    Situation("request and cap too large", lambda turn: _full(turn) and _counts_cap(turn), _says(
        f"shorten the request or lower {INITIAL}: together they do not fit in the context window")),
    Situation("request too long", lambda turn: _full(turn) and turn.exchange.response.error is not None,
              _says("shorten the request: it does not fit in the context window")),
    Situation("context set too small", lambda turn: _full(turn) and num_ctx_of(turn.exchange.request) is not None,
              _says("raise num_ctx of the request, or shorten the history; another continuation cannot succeed")),
    # A continuation sends the whole answer back, so its request is longer than the one that did not fit.
    Situation("context full", _full,
              _says("shorten the history; another continuation cannot succeed")),
    Situation("undeclared tool", lambda turn: _malformed(turn) and turn.judgement.stop.detail == UNDECLARED,
              _says("declare the tool that the model wants to call, or remove its name from the prompts")),
    Situation("call without arguments", lambda turn: _malformed(turn) and _without_arguments(turn),
              _says("ask for the call again; if the tool takes no arguments, declare it with empty properties")),
    Situation("lost frame", lambda turn: _malformed(turn) and "judge.lost_frame" in turn.answers[turn.worst].rules,
              _says("ask for the call again; Wire shows the frame that was not read")),
    Situation("malformed call", _malformed, _says("ask for the call again, with a simpler schema")),
    Situation("nothing read", lambda turn: _broke(turn) and nothing_read(turn),
              _says("send the request again, and look at the body: no answer was found in it")),
    Situation("not finished behind a router", lambda turn: _broke(turn) and _by_router(turn), _says(
        "send the request again, or to the provider behind the router, which may be able to continue its answer")),
    # The provider's word says only that the answer ended, so the token counts are the only evidence.
    Situation("no reason given", lambda turn: _broke(turn) and not turn.exchange.response.broken_connection
              and bool(word := turn.exchange.response.raw_stop_reason) and word != UNFINISHED,
              _says("compare the tokens with the budget: whether it cut the answer is unknown")),
    Situation("interrupted", _broke, _says(
        "send the request again; nothing shows that a budget cut this answer")),
    # A continuation hint does not change the text to which a model or a filter objects.
    Situation("refused", model_declined, _says("change the prompt; a continuation will not help")),
    Situation("blocked", _blocked,
              _says("change the prompt or the filter; a continuation will not help")),
    # Gemini's OTHER; Ollama's load and unload, its answers to a request without messages (ollama llm/server.go).
    Situation("word without a reason", lambda turn: _unknown(turn) and any(
        evidence.rule.endswith(".stop_reasons") for evidence in turn.judgement.mapped.evidence), _says(
        "send the request again: the word is known but says nothing about the answer; run no call from it")),
    Situation("unknown word", _unknown, lambda turn: _unknown_word(turn.exchange)),
)
OTHERWISE = Situation("anything else", lambda turn: True, _says("look at the response; do not run any call from it"))

RAISED: Mapping[str, int] = {
    "continuation_max_attempts": 100,
    "continuation_max_total_completion_tokens": 1_000_000_000,
    "continuation_max_output_chars": 1_000_000_000,
    "continuation_tool_repair_attempts": 10,
    "max_thinking_only": 10,
    "max_tool_steps": 1_000,
}
"""Limit that advice may raise -> its highest value. More repetition or standstill would only prolong a turn."""


def situation(turn: JudgedTurn) -> Situation:
    """The situation of a turn."""
    return next((row for row in SITUATIONS if row.holds(turn)), OTHERWISE)


UNSEEN = "only a new live turn can show what is enough"
"""The end of a guess about an agent's transcript, whose requests are reconstructed and cannot be sent again."""
LIVE = "only a live run can show what is enough"
"""The end of a guess about a recorded request, which can be sent again."""


def guessed_advice(turn: JudgedTurn, row: Situation) -> Advice:
    """The advice if no setting could be tried, or none completed the turn."""
    guess = row.guess(turn)
    if not row.tries:
        return Advice(guess)
    live = can_be_asked(turn)
    return Advice(f"{guess}; {LIVE if live else UNSEEN}", live=live, guess=_larger_values(turn, row) if live else None)


LEAST_GUESS = 1_024
"""The smallest max_tokens that is proposed for a live run."""


def _larger_values(turn: JudgedTurn, row: Situation) -> Mapping[str, str] | None:
    """Twice the value in force: of max_tokens if that may help, else of the limits that the guess names."""
    if INITIAL in row.tries:
        usage = turn.exchange.response.usage
        used = usage.output_tokens if usage is not None and usage.output_tokens else 0
        cap = max(answer.exchange.cap or 0 for answer in turn.answers)  # a continuation may have asked with less
        # Doubling reaches a sufficient value in few attempts, and exceeds it by less than a factor of two.
        return {INITIAL: f"{max(2 * (cap or used), LEAST_GUESS)}"}
    now = {name: limit for name, _, _, limit in limit_usage(turn.final_turn)} | dict([turn.limit] if turn.limit else ())
    return {name: f"{max(1, 2 * value)}" for name in _used_up(turn) if (value := now.get(name)) is not None} or None


def can_be_asked(turn: JudgedTurn) -> bool:
    """Whether the recorded request is as it was sent; the requests of an agent's transcript are reconstructed."""
    exchange = turn.exchange
    return exchange.request is not None and exchange.recorder is None and bool(exchange.url)


WITHHELD: tuple[tuple[str, Callable[[Request], bool]], ...] = (
    ("the request forbids calls (tool_choice none): allow them if the model should use a tool, otherwise ",
     lambda request: request.tool_choice == "none"),
    ("the request offers no tools, although its history has calls: offer them, otherwise ",
     lambda request: not request.tools and any(message.tool_calls for message in request.messages)),
)
"""Properties of a request that may explain an empty answer: the advice about the property, and its condition."""


def at_gap(turn: JudgedTurn) -> JudgedTurn | None:
    """The turn as if its last answer of which a part was lost decided it; None if there is none. An answer that the
    judge corrected for it has another verdict, and one that was sent again is of no account."""
    for at, answer in reversed([*enumerate(turn.answers)] if not turn.simulated else []):
        again = any(after.place is TurnPlace.RETRY for after in turn.answers[at + 1 : at + 2])
        if answer.rules & LOST_FRAME_RULES and "judge.lost_frame" not in answer.rules and not again:
            return turn._replace(worst=at, word=answer.word)
    return None


def ask_live(turn: JudgedTurn) -> str:
    """How to get the answer to a request that is in no recording."""
    if turn.exchange.recorder is None:
        return "run the turn live (answers from: live; or --live)"
    return "only a new live turn can show the answer; a transcript does not hold the request to be sent"


def about_silence(turn: JudgedTurn) -> str:
    """The advice about an answer without visible content. A transcript has no request that could explain it."""
    exchange = turn.exchange
    request = exchange.request if exchange.recorder is None else None
    why = next((words for words, holds in WITHHELD if request is not None and holds(request)), "")
    return (f"{why}send the request again with a short message that asks for an answer; "
            "if an empty answer is wanted, set allow_silence")


ABOUT_REJECTED = {
    REFUSED: "nothing to change: the agent already answered the call with this error",
    "gate.forbidden": "do not run the call; let tool_choice allow it if the model should use this tool",
}
"""Rule of a rejected call -> the advice about it, if that is not to send the error back."""


def about_rejected(verdict: Verdict) -> str:
    """The advice about a rejected call."""
    return ABOUT_REJECTED.get(
        verdict.rule, "send the error back as the result of the call, so that the model can correct it")
