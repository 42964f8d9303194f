"""The verdict: which word a turn deserves, worst first, and one sentence that says what to change.

A table of rows, tried in order; the first whose test holds names the turn. A word and a glyph, never a colour alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from inspector.replay import Replay, TurnRun
from inspector.report.advice import Advice
from inspector.report.findings import CUT_WORDS, RAN_CUT, Noted, recording_cut
from inspector.report.look import Look, asked_live, look_at
from inspector.sessions.transcripts import provenance
from inspector.sessions.values import Place
from loop_core.arguments import Shape, parse
from loop_core.classify import LOST, NO_WORD, Ending
from loop_core.frozen import frozen, replace
from loop_core.turn import State
from loop_core.values import ArgsForm, ChatResponse, Severity, Stop, TransportEnd


class Row(NamedTuple):
    """One verdict: its word, its glyphs (and in ASCII), how bad it is (0 is worst), and when it holds."""

    word: str
    glyph: str
    ascii: str
    severity: Severity
    holds: Callable[[Look], bool]
    say: Callable[[Look], str]
    advise: Callable[[Look], str]
    sure: Callable[[Look], bool] = lambda look: True
    """Whether what it says is known, and not inferred: what is not is never shown as good."""


@frozen
class TurnVerdict:
    """The verdict on one turn."""

    turn: str
    rank: int
    word: str
    glyph: str
    ascii: str
    severity: Severity
    sentence: str
    advice: Advice | None
    sure: bool = True

    @property
    def id(self) -> str:
        """The word as programs read it: `TRUNCATED, ANSWER LOST` is `truncated_answer_lost`."""
        return identifier(self.word)

    @property
    def clean(self) -> bool:
        """Whether nothing needs attention."""
        return self.severity is Severity.INFO


def identifier(word: str) -> str:
    """A verdict's word in snake case."""
    return "_".join(re.findall(r"[a-z0-9]+", word.lower()))


def _who(look: Look) -> str:
    exchange = look.exchange
    same = exchange.profile.name in (exchange.api, "generic") or exchange.profile.name.startswith("generic")
    return exchange.api if same else f"{exchange.api} ({exchange.profile.name})"


def _budget(look: Look) -> str:
    exchange = look.exchange
    used = exchange.response.usage.output_tokens if exchange.response.usage else None
    cap = exchange.request.max_tokens if exchange.request else None
    raw = exchange.response.raw_stop_reason
    word = provenance.in_words(exchange.response.stop_reason) if raw is None else f'"{raw}"'
    if used is not None and cap is not None:
        return f"{word}, {used:,} of {cap:,} tokens"
    if used is not None:
        return f"{word}, {used:,} tokens"
    return f"{word}, cap {cap:,}" if cap is not None else word


def _cut_call(look: Look) -> str:
    exchange, verdict = look.exchange, look.cut_call
    if verdict is None:
        return _ended(look)
    size = len((verdict.call.arguments or "").encode("utf-8", "replace"))
    name = verdict.call.name or "a call"
    shape = parse(verdict.call.arguments).shape
    word = look.word
    if verdict.rule == "gate.contradiction":
        return f"{exchange.api} sent {name} twice, with arguments that differ; nothing tells which of the two is meant"
    if shape is Shape.CUT:
        said = f"cut {name} at byte {size:,} of its arguments"
    elif shape in (Shape.EMPTY, Shape.ABSENT):
        said = f"cut {name} before its arguments" if word in CUT_WORDS else f"sent {name} without arguments"
    elif shape is not Shape.COMPLETE:
        said = f"sent {name} with invalid arguments"
    elif word not in CUT_WORDS:
        said = f"sent {name} under a reason that releases no call"
    elif verdict.call.form is ArgsForm.OBJECT and size <= len("{}"):
        said = f"cut {name} before its arguments"
    elif verdict.call.form is ArgsForm.OBJECT:
        said = f"cut {name}, sent as a whole object in which a cut cannot be seen"
    elif not verdict.call.closed:
        said = f"never closed {name}, whose arguments parse as they stand"
    else:
        said = f"cut the batch of {name}, whose own arguments parse"
    return f"{exchange.api} {said} ({_budget(look)})"


def _held_call(look: Look) -> str:
    _, verdict = look.held[-1]
    return f"its call {verdict.call.name or 'without a name'} is held: {verdict.why}"


def _raise(look: Look) -> str:
    exchange = look.exchange
    cap = exchange.request.max_tokens if exchange.request else None
    usage = exchange.response.usage
    used = usage.output_tokens if usage else None
    base = cap or used
    eaten = usage.reasoning_tokens if usage and usage.reasoning_tokens else 0
    if base is None:
        return "raise max_tokens"
    return f"raise max_tokens to ≥ {max(2 * base, base + eaten):,}"


CHANGES: Mapping[Stop, str] = {
    Stop.CONTEXT_WINDOW_EXCEEDED: "shorten the history; another continuation cannot succeed",
    Stop.MALFORMED_TOOL_CALL: "ask for the call again, with a simpler schema",
    Stop.INTERRUPTED: "send it again; this was no budget cut",
    Stop.SAFETY_BLOCKED: "change the prompt or the filter; a continuation will not help",
    Stop.UNKNOWN: "name the server with --profile, or report the word",
}
"""Reason -> what to change, where a larger budget would not help."""


def _change(look: Look) -> str:
    """What to change about the deciding reason."""
    if look.cut:
        return _raise(look)
    if look.cut_call is not None and look.cut_call.rule == "gate.contradiction":
        return "ask for the call again, and report both texts to the server"
    return CHANGES.get(look.word, "look at the response: nothing may run a call of it")


HOLDING = CUT_WORDS | {Stop.MALFORMED_TOOL_CALL}
"""Reasons under which a held call is what matters most."""

LIMIT_NAMES = {
    "retry_limit": "continuation_max_attempts",
    "budget_exhausted": "continuation_max_total_completion_tokens",
}
"""Terminal reasons by which a limit of ours ends a turn that could go on -> the limit."""


def _terminal(look: Look) -> str:
    return look.ended.terminal or ""


def _continuations(look: Look) -> int:
    """How many continuations the recorded agent needed."""
    return sum(answer.place is Place.CONTINUATION for answer in look.answers)


def _ended(look: Look) -> str:
    return f"{_who(look)} ended with {_budget(look)}"


def _finding_of(look: Look) -> str:
    """What the judge says of the ending."""
    rule = f"ending.{look.ending.value}" if look.ending is not None else ""
    return next((found.message for found in look.judged.findings if found.rule == rule), "")


def _only_looks_finished(ending: Ending, word: str, glyph: str, plain: str, advice: str) -> Row:
    return Row(word, glyph, plain, Severity.ERROR,
               lambda look: look.ending is ending and not look.repaired,
               lambda look: f"{_ended(look)}, but {_finding_of(look)}",
               lambda look: advice,
               lambda look: look.judged.ending_sure)


ROWS: tuple[Row, ...] = (
    Row("CUT CALL RUN", "✖", "x", Severity.ERROR,
        lambda look: RAN_CUT in look.rules,
        lambda look: f"{_cut_call(look)}; the agent ran it",
        lambda look: f"{_change(look)}; run nothing under this reason"),
    Row("TRUNCATED, ANSWER LOST", "✂", "%", Severity.ERROR,
        lambda look: "agent.took_cut_answer" in look.rules,
        lambda look: f"{_cut_call(look)}; the agent went on without the rest",
        _change),
    Row("CALL HELD", "▣", "#", Severity.ERROR,
        lambda look: look.cut_call is not None and not look.repaired and (look.word in HOLDING or look.cut),
        _cut_call, _change),
    Row("MALFORMED CALL", "▣", "#", Severity.ERROR,
        lambda look: look.word is Stop.MALFORMED_TOOL_CALL and not look.repaired,
        _ended, _change),
    _only_looks_finished(
        Ending.CALL_LEAKED, "CALL LEAKED", "▣", "#",
        "start the server with the tool parser of its model, and look at its chat template; nothing may run from text"),
    _only_looks_finished(
        Ending.NO_CALL, "NO CALL", "▣", "#",
        "send it again; where it comes back, the server lost the call: look at its tool parser"),
    _only_looks_finished(
        Ending.COMMENTARY_ONLY, "COMMENTARY ONLY", "╳", "!",
        "send it back and ask it to go on, with the phase of every message as it came"),
    _only_looks_finished(
        Ending.REASONING_ONLY, "REASONING ONLY", "╳", "!",
        "send it again with a short nudge to answer; where silence is wanted, set allow_silence"),
    _only_looks_finished(
        Ending.EMPTY_ANSWER, "EMPTY ANSWER", "╳", "!",
        "send it again with a short nudge to answer; where silence is wanted, set allow_silence"),
    Row("LIMIT REACHED", "✂", "%", Severity.WARNING,
        lambda look: _terminal(look) in LIMIT_NAMES and (
            look.simulated or look.last_word in (Stop.END_TURN, Stop.TOOL_CALL)),
        lambda look: f"{_who(look)} was cut again and again; {LIMIT_NAMES[_terminal(look)]} ends the turn" + (
            f" after {_continuations(look)} continuations ({_budget(look)})" if look.simulated else
            f", and the recorded agent finished it with {_continuations(look)} continuations"),
        lambda look: f"raise {LIMIT_NAMES[_terminal(look)]}" + (
            " or max_tokens" if look.simulated else
            f" to {_continuations(look)}" if _terminal(look) == "retry_limit" else "")),
    Row("TRUNCATED", "✂", "%", Severity.ERROR,
        lambda look: look.cut and look.word is not Stop.INTERRUPTED and not look.repaired,
        _ended, _raise, lambda look: look.word is Stop.MAX_TOKENS),
    Row("CONTEXT FULL", "▤", "=", Severity.ERROR,
        lambda look: look.word is Stop.CONTEXT_WINDOW_EXCEEDED,
        _ended, _change),
    Row("NO ANSWER", "╳", "!", Severity.ERROR,
        lambda look: look.word is Stop.INTERRUPTED and not look.repaired and _unanswered(look.exchange.response),
        lambda look: f"{_who(look)} was asked, and nobody answered{_unreached(look.exchange.response)}",
        lambda look: "look at the address, the network and the server; no answer was begun"),
    Row("INTERRUPTED", "╳", "!", Severity.ERROR,
        lambda look: look.word is Stop.INTERRUPTED and not look.repaired,
        lambda look: f"{_who(look)} {_broke(look.exchange.response)} ({look.exchange.response.size:,} bytes)",
        _change),
    Row("ERROR", "╳", "!", Severity.ERROR,
        lambda look: look.word is Stop.ERROR,
        lambda look: f"{_who(look)} failed: {_error(look)}",
        lambda look: "send it to the address that the answer names" if _sent_on(look) else
        "try again later" if "retryable" in (look.judged.stop.detail or "") else "change the request"),
    Row("BLOCKED", "⊘", "0", Severity.WARNING,
        lambda look: look.word is Stop.SAFETY_BLOCKED,
        lambda look: f"{_who(look)} filtered the answer ({_detail(look)}){_explained(look)}",
        _change),
    Row("RECORDING CUT", "∅", "-", Severity.WARNING,
        lambda look: recording_cut(look.judged.stop) or _cut_behind(look),
        lambda look: f"{_ended(look)}, and the recording is cut right behind it: what came of its calls is not known"
        if _cut_behind(look) else
        f"{_who(look)}: the recording is cut after {look.exchange.response.size:,} bytes of the answer, "
        "so how it ended is not known",
        lambda look: "record it again; nothing shows that the server failed"),
    Row("END NOT RECORDED", "∅", "-", Severity.WARNING,
        lambda look: look.unseen,
        lambda look: f"{_who(look)}: how the answer ended was not recorded, and nothing in the file shows it",
        lambda look: "record with a proxy to know"),
    Row("NO STOP REASON", "?", "?", Severity.WARNING,
        lambda look: look.word is Stop.UNKNOWN and look.judged.stop.detail == NO_WORD,
        lambda look: f"{_who(look)} {_wordless(look)}; nothing says that the answer is whole{_held_beside(look)}",
        lambda look: "look at the answer before it is used; nothing may run a call of it"),
    Row("UNKNOWN REASON", "?", "?", Severity.WARNING,
        lambda look: look.word is Stop.UNKNOWN and look.exchange.recorded,
        _ended, _change),
    Row("NOT RECORDED", "∅", "-", Severity.WARNING,
        lambda look: not look.exchange.recorded,
        lambda look: f"{look.exchange.api}: body not recorded, so nothing is known of its end",
        lambda look: "record with a proxy; a browser leaves streams out of its HAR"),
    Row("PAUSED", "‖", "|", Severity.WARNING,
        lambda look: look.last_word is Stop.PAUSED,
        lambda look: f"{_who(look)} paused and waits to be resumed ({_detail(look)})",
        lambda look: "send the response back as it is"),
    Row("CANCELLED", "╳", "!", Severity.WARNING,
        lambda look: look.word is Stop.CANCELLED or _terminal(look) == "cancelled" or look.stopped,
        lambda look: f"{_who(look)} was cancelled" if look.word is Stop.CANCELLED else
        f"{'the turn was stopped' if look.stopped else 'the operator cancelled the turn'} after {_budget(look)}",
        lambda look: "nothing to change"),
    Row("CALL NOT RUN", "▣", "#", Severity.ERROR,
        lambda look: any(position == len(look.answers) - 1 for position, _ in look.held),
        lambda look: f"{_who(look)} ended with {_budget(look)}; {_held_call(look)}",
        lambda look: "look at the call: nothing may run it as it is"),
    Row("CALL REJECTED", "▣", "#", Severity.WARNING,
        lambda look: bool(look.rejected),
        lambda look: f"{_ended(look)}; its call {look.rejected[-1].call.name or 'without a name'} is rejected: "
        f"{look.rejected[-1].why}",
        lambda look: "send the error back as the result of the call: the model can make it again"),
    Row("GAP IN THE ANSWER", "╳", "!", Severity.ERROR,
        lambda look: bool(look.rules & LOST) and "judge.lost_frame" not in look.rules,
        lambda look: f"{_ended(look)}, but a frame of it could not be read: what it held is missing",
        lambda look: "send it again; Wire shows the frame"),
    Row("SEAM UNVERIFIED", "≍", "~", Severity.WARNING,
        lambda look: bool(look.ended.doubts),
        lambda look: f"{_who(look)} was cut and continued ({_budget(look)}); {_seam(look)}",
        lambda look: "read what stands around the seam; with a max_tokens that the answer fits in there is none",
        sure=lambda look: False),
    Row("END INFERRED", "≈", "~", Severity.INFO,
        lambda look: look.inferred is not None,
        lambda look: f"{_who(look)}: no stop reason was recorded{_cut_before(look)}; {look.last_word.value} is "
        f"inferred: {look.inferred.note if look.inferred else ''}",
        lambda look: "", sure=lambda look: False),
    Row("CALL REPAIRED", "✓", "+", Severity.INFO,
        lambda look: look.repaired and (bool(look.held) or Stop.MALFORMED_TOOL_CALL in look.words),
        lambda look: f"{_who(look)} sent a call that was held, and whole when it was asked for again ({_budget(look)})",
        lambda look: ""),
    Row("CUT, COMPLETED", "✓", "+", Severity.INFO,
        lambda look: look.repaired and Stop.MAX_TOKENS in look.words,
        lambda look: f"{_who(look)} was cut and completed ({_budget(look)})",
        lambda look: ""),
    Row("RETRIED", "✓", "+", Severity.INFO,
        lambda look: any(answer.place is Place.RETRY for answer in look.answers),
        lambda look: f"{_who(look)} was asked again after a failure and ended with {_budget(look)}",
        lambda look: ""),
    Row("COMPLETE", "✓", "+", Severity.INFO,
        lambda look: True,
        lambda look: _ended(replace(look, worst=len(look.answers) - 1, word=look.last_word)),
        lambda look: ""),
)
"""Worst first; the last row always holds."""


EXPLANATIONS = ("finishMessage", "blockReasonMessage")
"""Other words of a provider that explain a filter, where it gives no text of refusal."""


def _seam(look: Look) -> str:
    """Of which segment nothing shows that it goes on from the text before it."""
    doubt = look.ended.doubts[0]
    return f"nothing shows that segment {doubt.index + 1} goes on from the text before it: {doubt.why}"


def _broke(response: ChatResponse) -> str:
    """How an answer broke off: in the middle of a stream or body, or with a word that gives no reason."""
    if response.raw_stop_reason:
        return f'says "{response.raw_stop_reason}" and no reason for it'
    return "ended without a stop reason" if response.streaming else "sent a body that is not whole"


def _wordless(look: Look) -> str:
    what = "a stream with its end mark" if look.exchange.response.streaming else "a whole body"
    return f"sent {what} and no stop reason in it ({look.exchange.response.size:,} bytes)"


def _held_beside(look: Look) -> str:
    return f"; {_held_call(look)}" if look.held else ""


def _unanswered(response: ChatResponse) -> bool:
    """Whether a request was sent, or tried to be, and not even a status came back."""
    ends = (TransportEnd.RESET, TransportEnd.TIMEOUT)
    return response.http_status is None and not response.size and response.transport_end in ends


def _unreached(response: ChatResponse) -> str:
    told = next((found.message for found in response.findings if found.rule.startswith("transport.")), "")
    return f": {told}" if told else ""


def _cut_behind(look: Look) -> bool:
    """Whether the turn waits for results of calls, and the file ends before they could be recorded."""
    waits = look.last_word is Stop.TOOL_CALL and look.word is Stop.TOOL_CALL
    held = any(position == len(look.answers) - 1 for position, _ in look.held)
    return look.answers[-1].exchange.cut_after and waits and not held and not look.simulated


def _cut_before(look: Look) -> str:
    return ", and before it the answer was cut" if Stop.MAX_TOKENS in look.words else ""


def _error(look: Look) -> str:
    error = look.exchange.response.error
    message = error.message if error else look.judged.stop.detail or "error"
    status = look.exchange.response.http_status
    most = 300 if _sent_on(look) else 100  # an address is no use without its end
    shown = message if len(message) <= most else f"{message[:most - 3]}…"
    return f"HTTP {status}, {shown}" if status and status >= 400 else shown


def _sent_on(look: Look) -> bool:
    """Whether the answer only names another address."""
    seen = [each.at for each in look.judged.stop.evidence if each.rule == "error.redirect"]
    return any(at is not None and at.pointer == "location" for at in seen)


def _explained(look: Look) -> str:
    """Why an answer was filtered, in the provider's words."""
    response = look.exchange.response
    told = (response.refusal, *(response.native.get(name) for name in EXPLANATIONS),
            response.error.message if response.error else None)
    said = " ".join(next((text for text in told if text), "").split())
    return f": {said if len(said) <= 200 else said[:199] + '…'}" if said else ""


def _detail(look: Look) -> str:
    stop = look.judged.stop
    words = [word for word in (stop.raw, stop.detail) if word]
    words = words[:1] if words[:1] == words[1:] else words
    category = look.exchange.response.native.get("stop_details.category")
    if category:
        words.append(f"category {category}")
    return ", ".join(words) if words else "no word sent"


def judge_turn(replay: Replay, turn: TurnRun, noted: Sequence[Noted]) -> TurnVerdict:
    """The verdict on a turn; `noted` are the findings of that turn.

    Where our machine was answered by a simulation, it is the simulated outcome that is judged, and the sentence says
    so; what the recorded agent did is then beside the point.
    """
    look = look_at(replay, turn, noted)
    rank, row = next((rank, row) for rank, row in enumerate(ROWS) if row.holds(look))
    said, advice = row.say(look), row.advise(look)
    if look.simulated:
        end = "; what it asks for next was never recorded" if look.ended.outcome is State.UNRECORDED else ""
        if end and asked_live(replay, turn):
            end = f"; {look.ended.notice}"
        said = f"{'LIVE' if asked_live(replay, turn) else 'SIMULATED'}: {said}{end}"
    return TurnVerdict(turn.record.id, rank, row.word, row.glyph, row.ascii, row.severity, said,
                       Advice(advice) if advice else None, row.sure(look))
