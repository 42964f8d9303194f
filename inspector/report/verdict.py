"""Decides the verdict on a turn (a word and glyph, a sentence, an advice) by the first row of a table that holds."""

# Annotations are not postponed: of a named tuple each would be compiled from text at every start.
import re
from collections.abc import Callable, Sequence
from sys import intern
from typing import NamedTuple

from inspector.replay import Replay, TurnRun
from inspector.report import sentences as say
from inspector.report.advice import (
    NEVER_RUN,
    Advice,
    Situation,
    about_rejected,
    about_silence,
    ask_live,
    at_gap,
    guessed_advice,
    model_declined,
    situation,
    tested_advice,
)
from inspector.report.error_advice import about_error
from inspector.report.findings import RAN_CUT, ReportedFinding, recording_cut
from inspector.report.judged_turn import BLOCKING, JudgedTurn, is_requested_again, judged_turn_of, nothing_read
from inspector.sessions.reasons import UNDER_WAY, is_unrecorded, why_missing
from inspector.sessions.recording import TurnPlace
from loop_core.judge.classify import NO_WORD
from loop_core.judge.endings import Ending
from loop_core.turn.state import State
from loop_core.turn.trace import Fidelity
from loop_core.values import BREAKS, FINISHED, ChatResponse, Severity, Stop, TransportEnd, shared

NOT_READ, IN_PART, SKIPPED, SAME = UNREAD = ("NOT READ", "READ IN PART", "ENTRY SKIPPED", "SAME FILE")
"""The words of rows without a verdict: unread, damaged and read in part, skipped, same bytes as another file."""


class VerdictRow(NamedTuple):
    """One verdict: its word, its glyphs (also in ASCII), its severity, and its condition."""

    word: str
    glyph: str
    ascii: str
    severity: Severity
    holds: Callable[[JudgedTurn], bool]
    say: Callable[[JudgedTurn], str]
    advise: Callable[[JudgedTurn], str | Situation] = lambda turn: ""
    """The function that gives the advice: a text, or the situation of the turn, for which settings may be tried."""
    sure: Callable[[JudgedTurn], bool] = lambda turn: True
    """Whether the end of the turn is known; a turn whose end is inferred or not reached is never complete."""
    of_last: bool = False
    """Whether the verdict is about the last answer of the turn, instead of the deciding one."""
    of_end: Callable[[JudgedTurn], bool] = lambda turn: False
    """Whether the verdict is about how the engine ended the turn, instead of about an answer."""

    def answer(self, turn: JudgedTurn) -> int | None:
        """The position of the answer that the verdict is about; None if it is about the end."""
        return None if self.of_end(turn) else len(turn.answers) - 1 if self.of_last else turn.worst


class TurnVerdict(NamedTuple):
    """The verdict on one turn; many turns of a recording share one object."""

    rank: int
    word: str
    glyph: str
    ascii: str
    severity: Severity
    sentence: str
    advice: Advice | None
    sure: bool = True
    answer: int | None = 0
    """The index in the turn of the answer that the verdict is about; None: it is about the engine's end of the turn."""
    simulated: bool = False
    """Whether the turn has an answer that no provider sent. Such a turn is counted separately from recorded ones."""

    @property
    def count_word(self) -> str:
        """The word under which the turn is counted."""
        return f"{Fidelity.SIMULATED} {self.word}" if self.simulated else self.word

    @property
    def id(self) -> str:
        """The verdict's word for programs: `TRUNCATED, ANSWER LOST` is `truncated_answer_lost`."""
        return identifier(self.word)

    @property
    def clean(self) -> bool:
        """Whether nothing needs attention."""
        return self.severity is Severity.INFO

    @property
    def complete(self) -> bool:
        """Whether the turn is complete; every view counts complete turns by this."""
        return is_complete(self.severity, self.sure)


def is_complete(severity: Severity, sure: bool) -> bool:
    """Whether a turn with this verdict is complete: it needs no attention, and its end is known."""
    return severity is Severity.INFO and sure


OTHER_IDS = {"COMPLETE SO FAR": "complete"}
"""Word of a verdict -> its id, if that is not the word: the recorded part of such a turn is complete."""


def identifier(word: str) -> str:
    """The id of a verdict's word, or of another word of a row: in snake case."""
    return OTHER_IDS.get(word) or "_".join(re.findall(r"[a-z0-9]+", word.lower()))


def _run_nothing(turn: JudgedTurn) -> Situation:
    """The advice of the turn's situation, preceded by the warning never to run a held call."""
    return (row := situation(turn))._replace(guess=lambda turn: f"{NEVER_RUN}{row.guess(turn)}")


HOLD_REASONS = frozenset({Stop.CONTEXT_WINDOW_EXCEEDED, Stop.INTERRUPTED, Stop.MALFORMED_TOOL_CALL})
"""Under these, and a cut by a budget, a held call decides the verdict; under INTERRUPTED only one that is broken."""
CUT_TERMINALS = ("retry_limit", "budget_exhausted")
"""The terminal reasons after which a cut answer stays cut, although it could be continued."""

# Anthropic docs, Handling stop reasons: `pause_turn` is resumed by sending the response back unchanged. OpenAI docs,
# Background mode: a response is fetched by its id; `steered` (openai 3.54.0): the server makes the next one itself.
RESUMED = {
    "poll": "ask for the response by its id until it is done",
    "server": "read the next response: the server makes it by itself",
    "token": "send the request again with the token of the response",
}
"""Way of resuming a paused response -> the advice; in any other way the response is sent back unchanged."""


def _only_looks_finished(
    ending: Ending, word: str, glyph: str, plain: str, advice: str | Callable[[JudgedTurn], str]
) -> VerdictRow:
    return VerdictRow(word, glyph, plain, Severity.ERROR,
               lambda turn: turn.ending is ending and not turn.is_repaired,
               lambda turn: f"{say.ending_words(turn)}, but {say.finding_of(turn)}",
               advice if callable(advice) else lambda turn: advice,
               lambda turn: turn.judgement.ending_sure)


ROWS: tuple[VerdictRow, ...] = (
    # The worst verdict, because the effects of a call with cut arguments cannot be undone.
    VerdictRow("CUT CALL RUN", "✖", "x", Severity.ERROR,
        lambda turn: RAN_CUT in turn.rules,
        lambda turn: f"{say.cut_call_words(turn)}; the agent ran it",
        _run_nothing),
    # The missing part will never be requested, because the conversation has continued without it.
    VerdictRow("TRUNCATED, ANSWER LOST", "✂", "%", Severity.ERROR,
        lambda turn: "agent.took_cut_answer" in turn.rules,
        lambda turn: f"{say.cut_call_words(turn)}; the agent went on without the rest",
        situation),
    # These two come before every row that tests an answer, since there is none to test.
    VerdictRow("EDITED, NOT ASKED", "∅", "-", Severity.WARNING,
        lambda turn: turn.edited,
        lambda turn: f"{say.who(turn)} never received this input: it was edited, so no recorded answer belongs to it",
        ask_live),
    VerdictRow("UNANSWERED", "∅", "-", Severity.WARNING,
        lambda turn: turn.unanswered,
        lambda turn: f"{say.who(turn)}: the recording has no answer to the first request of this run",
        ask_live),
    # Before TRUNCATED, because a call that waits matters more than a text that is cut.
    VerdictRow("CALL HELD", "▣", "#", Severity.ERROR,
        lambda turn: turn.cut_call is not None and not turn.is_repaired and (turn.cut or (
            turn.word in HOLD_REASONS and (turn.word is not Stop.INTERRUPTED or turn.cut_call.rule in BLOCKING))),
        say.cut_call_held, situation),
    VerdictRow("MALFORMED CALL", "▣", "#", Severity.ERROR,
        lambda turn: turn.word is Stop.MALFORMED_TOOL_CALL and not turn.is_repaired,
        say.ending_words, situation),
    _only_looks_finished(
        # For instance vLLM without `--tool-call-parser` returns a call as text
        # (https://docs.vllm.ai/en/latest/features/tool_calling.html).
        Ending.CALL_LEAKED, "CALL LEAKED", "▣", "#",
        "start the server with the tool parser of its model, and look at its chat template; never run a call that is "
        "only text"),
    _only_looks_finished(
        Ending.NO_CALL, "NO CALL", "▣", "#",
        "send the request again; if the call is missing again, look at the tool parser of the server"),
    _only_looks_finished(
        Ending.COMMENTARY_ONLY, "COMMENTARY ONLY", "╳", "!",
        "send the answer back with the phase of every message unchanged, and ask the model to continue"),
    _only_looks_finished(
        Ending.REASONING_ONLY, "REASONING ONLY", "╳", "!", about_silence),
    _only_looks_finished(
        Ending.EMPTY_ANSWER, "EMPTY ANSWER", "╳", "!", about_silence),
    # Before TRUNCATED, because the operator can raise the limit.
    VerdictRow("LIMIT REACHED", "✂", "%", Severity.WARNING,
        lambda turn: (turn.final_turn.terminal in CUT_TERMINALS and turn.last_word in FINISHED)
        or (turn.limit is not None
            and (turn.simulated or (turn.reached_end and turn.last_word in FINISHED and not turn.agent_ran_calls))),
        say.limit_reached, situation, of_end=lambda turn: True),
    # Sure only with the provider's word; a token count that reaches the cap is strong evidence, but an inference.
    VerdictRow("TRUNCATED", "✂", "%", Severity.ERROR,
        lambda turn: turn.cut and turn.word is not Stop.INTERRUPTED and not turn.is_repaired,
        say.cut_words, situation, lambda turn: turn.word is Stop.MAX_TOKENS,
        # The engine did not evaluate answers that the recorded agent requested after the limit.
        of_end=lambda turn: turn.limit is not None and not turn.reached_end),
    VerdictRow("CONTEXT FULL", "▤", "=", Severity.ERROR,
        lambda turn: turn.word is Stop.CONTEXT_WINDOW_EXCEEDED,
        lambda turn: "; ".join(filter(None, (say.ending_words(turn), say.router_words(turn))))
        if turn.exchange.response.error is None
        else f"{say.who(turn)} refused the request: {say.failure(turn)}",
        situation),
    # Before INTERRUPTED: without a status line, the fault is in the address or the network, not in the stream.
    VerdictRow("NO ANSWER", "╳", "!", Severity.ERROR,
        lambda turn: turn.word is Stop.INTERRUPTED and not turn.is_repaired and is_unanswered(turn.exchange.response),
        lambda turn: f"{say.who(turn)} did not answer the request{say.unreached_reason(turn.exchange.response)}",
        lambda turn: "check the address, the network and the server; no answer began"),
    VerdictRow("INTERRUPTED", "╳", "!", Severity.ERROR,
        lambda turn: turn.word is Stop.INTERRUPTED and not turn.is_repaired,
        lambda turn: f"{say.who(turn)} {say.break_words(turn)}{say.held_beside(turn)}",
        situation),
    VerdictRow("ERROR", "╳", "!", Severity.ERROR,
        lambda turn: turn.word is Stop.ERROR,
        lambda turn: f"{say.who(turn)} failed: {say.failure(turn)}{say.held_beside(turn)}",
        about_error),
    VerdictRow("BLOCKED", "⊘", "0", Severity.WARNING,
        lambda turn: turn.word is Stop.SAFETY_BLOCKED,
        lambda turn: f"{say.who(turn)} {'declined to answer' if model_declined(turn) else 'filtered the answer'} "
        f"({say.detail(turn)}){say.filter_explanation(turn)}{say.held_beside(turn)}",
        situation),
    VerdictRow("UNDER WAY", "▷", ">", Severity.INFO,
        lambda turn: turn.judgement.stop.detail == UNDER_WAY,
        lambda turn: f"{say.who(turn)}: the answer is under way; {turn.exchange.response.size:,} bytes of it are "
        "recorded",
        sure=lambda turn: False),
    # Only a warning: the recorder stopped, and nothing shows a fault of the provider.
    VerdictRow("RECORDING CUT", "∅", "-", Severity.WARNING,
        lambda turn: recording_cut(turn.judgement.stop) or turn.file_ends_at_call,
        lambda turn: f"{say.ending_words(turn)}, and the recording ends right after it: "
        "what became of its calls is unknown"
        if turn.file_ends_at_call else
        f"{say.who(turn)}: the recording is cut after {turn.exchange.response.size:,} bytes of the answer, "
        "so how it ended is not known",
        lambda turn: "record the turn again; nothing shows that the server failed"),
    VerdictRow("END NOT RECORDED", "∅", "-", Severity.WARNING,
        lambda turn: is_unrecorded(turn.judgement.stop),
        lambda turn: f"{say.who(turn)}: how the answer ended was not recorded"
        f"{f'; the file says: {turn.stop_note}' if turn.stop_note else ', and nothing in the file shows it'}",
        lambda turn: "run the agent with `inspector record`, which keeps the end of every answer"),
    VerdictRow("NO STOP REASON", "?", "?", Severity.WARNING,
        lambda turn: turn.word is Stop.UNKNOWN and turn.judgement.stop.detail == NO_WORD,
        lambda turn: f"{say.who(turn)} {say.no_reason_words(turn)}; nothing shows that the answer is complete"
        f"{say.held_beside(turn)}",
        lambda turn: "look at the body: it contains no answer in this format" if nothing_read(turn) else
        "check the answer before you use it; do not run any call from it"),
    VerdictRow("UNKNOWN REASON", "?", "?", Severity.WARNING,
        lambda turn: turn.word is Stop.UNKNOWN and turn.exchange.recorded,
        lambda turn: f"{say.ending_words(turn)}{say.held_beside(turn)}", situation),
    VerdictRow("NOT RECORDED", "∅", "-", Severity.WARNING,
        lambda turn: not turn.exchange.recorded,
        lambda turn: f"{say.who(turn)}: {why_missing(turn.judgement.stop)}, so how the answer ended is not known",
        lambda turn: "record the traffic with a proxy; a browser leaves streams out of its HAR file"),
    # A pause is not an end: the provider expects another request.
    VerdictRow("PAUSED", "‖", "|", Severity.WARNING,
        lambda turn: turn.stays_paused,
        lambda turn: f"{say.who(turn)} {say.pause_words(turn)} ({say.detail(turn)})",
        lambda turn: RESUMED.get(turn.judgement.stop.detail or "", "send the response back unchanged")),
    VerdictRow("CANCELLED", "╳", "!", Severity.WARNING,
        lambda turn: turn.word is Stop.CANCELLED or turn.final_turn.terminal == "cancelled" or turn.stopped,
        lambda turn: f"{say.who(turn)} was cancelled" if turn.word is Stop.CANCELLED else
        f"{'the turn was stopped' if turn.stopped else 'the operator cancelled the turn'} after an answer "
        f"({say.budget(turn)})",
        lambda turn: "nothing to change"),
    VerdictRow("CALL NOT RUN", "▣", "#", Severity.ERROR,
        lambda turn: any(position == len(turn.answers) - 1 for position, _ in turn.held_calls),
        lambda turn: f"{say.who(turn)} ended with {say.budget(turn)}; {say.held_call(turn)}",
        lambda turn: "look at the call: it must not run as it is", of_last=True),
    VerdictRow("CALL REJECTED", "▣", "#", Severity.WARNING,
        lambda turn: bool(turn.rejected_calls),
        lambda turn: f"{say.ending_words(turn)}; its call "
        f"{say.short(turn.rejected_calls[-1].call.name or 'without a name')} is rejected: "
        f"{turn.rejected_calls[-1].why}",
        lambda turn: about_rejected(turn.rejected_calls[-1]), of_last=True),
    VerdictRow("GAP IN THE ANSWER", "╳", "!", Severity.ERROR, lambda turn: at_gap(turn) is not None,
        lambda turn: f"{say.ending_words(at_gap(turn) or turn)}, but {say.lost_part(at_gap(turn) or turn)}",
        lambda turn: "send the request again; Wire shows the frame"),
    # Only the simulation knows this cut; a live loop behind such a server would take the answer for finished.
    VerdictRow("CUT UNSEEN", "✂", "%", Severity.WARNING,
        lambda turn: any(answer.cut_unseen for answer in turn.answers),
        lambda turn: f"{say.ending_words(turn)}, but this budget cuts its answer, "
        "and nothing that the server sends shows it",
        lambda turn: "use a larger max_tokens: no loop can see this cut"),
    # Never sure: the text may be right, but nothing in the segments proves it.
    VerdictRow("SEAM UNVERIFIED", "≍", "~", Severity.WARNING,
        lambda turn: bool(turn.final_turn.doubtful_seams),
        lambda turn: f"{say.who(turn)} was cut and continued ({say.budget(turn)}); {say.seam(turn)}",
        lambda turn: "read the text around the seam; with max_tokens large enough for the whole answer there is none",
        sure=lambda turn: False),
    # A guess from the text alone, but few whole texts end like this. Routers send `stop` for unknown ends.
    VerdictRow("TEXT UNFINISHED", "≈", "~", Severity.WARNING,
        lambda turn: turn.unfinished is not None,
        lambda turn: f"{say.ending_words(_of_last(turn))}, but {turn.unfinished.message if turn.unfinished else ''}",
        lambda turn: "read the end of the text; if it was cut, ask for the rest and look at the server's log",
        sure=lambda turn: False, of_last=True),
    # Needs no attention, but is not counted as complete, because the recorder left out the stop word.
    VerdictRow("END INFERRED", "≈", "~", Severity.INFO,
        lambda turn: turn.inference is not None,
        lambda turn: f"{say.who(turn)}: no stop reason was recorded{say.cut_before(turn)}; {turn.last_word.value} is "
        f"inferred: {turn.inference.note if turn.inference else ''}",
        sure=lambda turn: False, of_last=True),
    # Some servers report a cut answer as finished, and few whole answers end exactly at their cap.
    VerdictRow("MAYBE CUT", "≈", "~", Severity.INFO,
        lambda turn: turn.at_cap,
        lambda turn: f"{say.ending_words(_of_last(turn))}; it used every token that its request allows, so it may be "
        "cut, although nothing else shows a cut",
        sure=lambda turn: False, of_last=True),
    # A recording may stop after any answer, so the last one counts. A run that stops at a call has not ended its turn.
    VerdictRow("AWAITS RESULT", "▷", ">", Severity.INFO,
        lambda turn: turn.awaits_result,
        lambda turn: f"{say.ending_words(_of_last(turn))}; the answer is complete, but the turn is not finished; "
        f"{say.notice(turn)}",
        sure=lambda turn: False, of_last=True),
    VerdictRow("CALL REPAIRED", "✓", "+", Severity.INFO,
        lambda turn: turn.is_repaired and (Stop.MALFORMED_TOOL_CALL in turn.words or any(
            turn.answers[position].word is not Stop.PAUSED for position, _ in turn.held_calls)),
        lambda turn: f"{say.who(turn)} sent a call that was held ({say.budget(turn)}); asked again, it sent the "
        f"complete call{say.end_note(turn)}", sure=lambda turn: not turn.ends_at_call),
    VerdictRow("CUT, COMPLETED", "✓", "+", Severity.INFO,
        lambda turn: turn.is_repaired and Stop.MAX_TOKENS in turn.words,
        lambda turn: f"{say.who(turn)} was cut and completed ({say.budget(turn)}){say.end_note(turn)}{say.gap(turn)}",
        sure=lambda turn: not (turn.ends_at_call or turn.is_continuation_guessed)),
    VerdictRow("RETRIED", "✓", "+", Severity.INFO,
        lambda turn: any(answer.place is TurnPlace.RETRY for answer in turn.answers),
        lambda turn: f"{say.who(turn)} was asked again after a {say.attempt_words(turn)} and ended with "
        f"{say.budget(_of_last(turn))}{say.end_note(turn)}{say.gap(turn)}",
        sure=lambda turn: not (turn.ends_at_call or turn.is_retry_guessed or turn.has_unseen_seam), of_last=True),
    # A recording may stop after any answer: nothing is wrong, but the end of the turn is unknown.
    VerdictRow("COMPLETE SO FAR", "▷", ">", Severity.INFO,
        lambda turn: turn.ends_at_call,
        lambda turn: f"{say.ending_words(_of_last(turn))}{say.end_note(turn)}",
        sure=lambda turn: False, of_last=True),
    VerdictRow("COMPLETE", "✓", "+", Severity.INFO,
        lambda turn: True,
        lambda turn: f"{say.ending_words(_of_last(turn))}{say.end_note(turn)}", of_last=True),
)
"""The verdicts, worst first; the last row always holds."""


def _of_last(turn: JudgedTurn) -> JudgedTurn:
    """The turn as if its last answer decided it."""
    return turn._replace(worst=len(turn.answers) - 1, word=turn.last_word)


def is_unanswered(response: ChatResponse) -> bool:
    """Whether a request was sent, or failed to be sent, and not even a status line came back."""
    ended = response.transport_end in BREAKS | {TransportEnd.ABORTED}
    return ended and response.http_status is None and not response.size


def judge_turn(replay: Replay, turn: TurnRun, findings: Sequence[ReportedFinding]) -> TurnVerdict:
    """The verdict on a turn with its findings; if a simulation answered the engine, on the simulated outcome."""
    judged = judged_turn_of(replay, turn, findings)
    rank, row = row_of(judged)
    sentence, advice = row.say(judged), _advice(replay, turn, findings, judged, row.advise(judged))
    if judged.simulated and not judged.edited and not judged.unanswered:
        open_end = judged.final_turn.outcome is State.UNRECORDED and not judged.awaits_result  # that row says so itself
        never = "what it asks for next was never recorded"
        end = f"; {judged.final_turn.notice if is_requested_again(replay, turn) else never}" if open_end else ""
        live = replay.trace.steps[turn.deciding_step].fidelity is Fidelity.LIVE
        sentence = f"{'LIVE' if live else 'SIMULATED'}: {sentence}{end}"
    elif judged.has_simulated_answer and not judged.simulated:  # the recorded answers come from a stand-in
        sentence = f"SIMULATED: {sentence}"
    verdict = TurnVerdict(rank, row.word, row.glyph, row.ascii, row.severity, intern(sentence), advice,
                          row.sure(judged), row.answer(judged), judged.has_simulated_answer)
    return shared(verdict) if advice is None else verdict  # a verdict with advice may hold settings, which have no hash


def row_of(turn: JudgedTurn) -> tuple[int, VerdictRow]:
    """The first row of the table that holds for a turn, and its rank."""
    return next((rank, row) for rank, row in enumerate(ROWS) if row.holds(turn))


def verdict_word(turn: JudgedTurn) -> tuple[str, bool]:
    """The word of a turn's verdict, and whether the turn is complete."""
    _, row = row_of(turn)
    return row.word, is_complete(row.severity, row.sure(turn))


def good(turn: JudgedTurn) -> bool:
    """Whether a turn is complete and the engine has finished it too."""
    return verdict_word(turn)[1] and turn.final_turn.terminal == "completed"


def _advice(
    replay: Replay, turn: TurnRun, findings: Sequence[ReportedFinding], judged: JudgedTurn, advice: str | Situation
) -> Advice | None:
    if isinstance(advice, str):
        return Advice(advice) if advice else None
    found = None
    if advice.tries:
        from inspector.report.trial import best_settings
        found = best_settings(replay, turn, findings, judged, advice.tries, good)
    return guessed_advice(judged, advice) if found is None else tested_advice(found.settings, found.basis)
