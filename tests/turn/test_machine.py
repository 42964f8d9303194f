"""The machine: every row of its table is reached by real events, and nothing moves that has no row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from loop_core.errors import UNREADABLE, TransitionError
from loop_core.judge.endings import Ending
from loop_core.judge.gate import Admission
from loop_core.turn.continuation import Method
from loop_core.turn.history import Ability
from loop_core.turn.limits import Limits
from loop_core.turn.machine import TRANSITIONS, begin, step
from loop_core.turn.policy import STRICT, Signal
from loop_core.turn.presets import ZEROCLAW_RFI, ZOO_BEFORE
from loop_core.turn.state import (
    ENDED,
    Cancel,
    Event,
    NotRecorded,
    ProviderResponse,
    RequestPlace,
    RunTools,
    Send,
    State,
    Tick,
    ToolResults,
    Turn,
)
from loop_core.values import (
    Finding,
    Message,
    OpaquePart,
    ProviderError,
    ReasoningPart,
    Role,
    Severity,
    Stop,
    StopReason,
    TextPart,
    ToolCall,
    ToolResultPart,
)
from tests.scenes.rows import each_row
from tests.scenes.turns import (
    ASKED,
    BAD,
    CUT,
    GOOD,
    REQUEST,
    alphabet,
    answer,
    as_event,
    call,
    dispatches,
    drive,
    error,
    finish,
    last,
    path,
    rejection,
    reply,
    sends,
)

ABC = alphabet()
SORRY = answer(Stop.END_TURN, "I'm sorry, but I can't see what came before.")
MIDDLE = answer(Stop.MAX_TOKENS, "```\ndef add_numbers(a, b):\n    return a + b\nprint(add_numbers(10, 20))")
REPEATED = answer(Stop.END_TURN, "print(add_numbers(10, 20))\n")
TICK, CANCEL, GONE = Tick(), Cancel(), NotRecorded()
END, CALL, TEXT, EMPTY, CUT_CALL, PAUSED = (ABC[n] for n in ("end", "call", "text", "empty", "cut", "paused"))
NOTHING, NO_CALL, REFUSED = (ABC[n] for n in ("nothing", "no call", "refused"))
PAUSED_AT_LENGTH = answer(Stop.PAUSED, "wait", OpaquePart("server_tool", "{}"), detail="echo", tokens=50)
CALL_AT_LENGTH = answer(Stop.TOOL_CALL, call(), tokens=50)
NOTHING_AT_LENGTH = answer(Stop.END_TURN, tokens=50)
ROOM = {"continuation_max_total_completion_tokens": 100}
"""A bound that a cut answer uses up."""
WORDLESS_NOTHING = as_event(replace(reply(Stop.UNKNOWN), stop_reason=StopReason(Stop.UNKNOWN)))
WORDLESS_REFUSAL = as_event(replace(reply(Stop.UNKNOWN), stop_reason=StopReason(Stop.UNKNOWN), refusal="I cannot."))
WORDLESS = as_event(replace(reply(Stop.UNKNOWN, "It is written."), stop_reason=StopReason(Stop.UNKNOWN)))
EMPTY_WORD = as_event(replace(reply(Stop.UNKNOWN, "It is written."), stop_reason=StopReason(Stop.UNKNOWN, "")))
RAN = ToolResults((ToolResultPart("c1", "write", "ok"), ToolResultPart("c2", "now", "noon")))
NP, RN = State.NUDGE_PENDING, State.REQUEST_NUDGE
R, E, X, CP, RC, RP, RR, RS, AP, A, C, U = (
    State.REQUEST, State.EVALUATE_STOP, State.EXECUTE_TOOLS, State.CONTINUE_PENDING, State.REQUEST_CONTINUATION,
    State.REPAIR_PENDING, State.REQUEST_TOOL_REPAIR, State.RESUME, State.ABORT_PARTIAL, State.ABORT, State.COMPLETE,
    State.UNRECORDED,
)


def with_ending(ending: Ending) -> ProviderResponse:
    """An answer that the judge says ended so."""
    said = answer(Stop.END_TURN, "so")
    return said._replace(judgement=said.judgement._replace(ending=ending))


def limits_of(given: dict[str, Any]) -> Limits:
    return Limits(**{name: value for name, value in given.items() if name != "policy"})


def walk(events: Sequence[Event], limits: dict[str, Any] | None = None) -> list[Turn]:
    limits = limits or {}
    turn, _ = begin("t", REQUEST, limits_of(limits), limits.get("policy", STRICT))
    turns = [turn]
    for event in events:
        turn, _ = step(turn, event)
        turns.append(turn)
    return turns


ROWS: list[tuple[State, str, State, str | None, list[Event], dict[str, Any]]] = [
    # from, signal, to, terminal reason, the events that make the move (the last one makes it), limits and policy
    (R, "provider_response", E, None, [END], {}),
    (R, "Cancelled", A, "cancelled", [CANCEL], {}),
    (R, "not_recorded", U, "unrecorded", [GONE], {}),
    (E, "EndTurn", C, "completed", [END, TICK], {}),
    (E, "ToolCall", X, None, [CALL, TICK], {}),
    (E, "MaxTokens", CP, None, [TEXT, TICK], {}),
    (E, "AnchorMissing", CP, None, [TEXT, TICK, TICK, SORRY, TICK], {}),
    (E, "PartialToolCall", RP, None, [CUT_CALL, TICK], {}),
    (E, "Paused", RS, None, [PAUSED, TICK], {}),
    (E, "SafetyBlocked", A, "safety_blocked", [ABC["safety"], TICK], {}),
    (E, "ContextWindowExceeded", A, "context_window_exceeded", [ABC["context"], TICK], {}),
    (E, "Cancelled", A, "cancelled", [ABC["cancelled"], TICK], {}),
    (E, "Interrupted", AP, "interrupted", [ABC["interrupted"], TICK], {}),
    (E, "no_progress", AP, "no_progress", [MIDDLE, TICK, TICK, REPEATED, TICK], {}),
    (E, "Unknown", AP, "error", [ABC["unknown"], TICK], {}),
    (E, "Error", AP, "error", [ABC["error"], TICK], {}),
    (E, "NeverFinalized", A, "stuck", [CUT_CALL, TICK], {"policy": ZOO_BEFORE}),
    (X, "tool_results_appended", R, None, [CALL, TICK, RAN], {}),
    (X, "step_limit", AP, "step_limit", [CALL, TICK, TICK], {"max_tool_steps": 0}),
    (X, "no_progress", AP, "no_progress", [CALL, TICK, RAN, CALL, TICK, TICK], {"max_identical_calls": 1}),
    (X, "Cancelled", A, "cancelled", [CALL, TICK, CANCEL], {}),
    (X, "not_recorded", U, "unrecorded", [CALL, TICK, GONE], {}),
    (CP, "under_limits", RC, None, [TEXT, TICK, TICK], {}),
    (CP, "EndTurn", C, "completed", [TEXT, TICK, TICK, SORRY, TICK, TICK], {"continuation_max_attempts": 1}),
    (CP, "retry_limit", AP, "retry_limit", [TEXT, TICK, TICK], {"continuation_max_attempts": 0}),
    (CP, "budget_exhausted", AP, "budget_exhausted", [TEXT, TICK, TICK], {"continuation_max_output_chars": 1}),
    (CP, "no_progress", AP, "no_progress", [EMPTY, TICK, TICK], {"max_thinking_only": 0}),
    (RC, "provider_response", E, None, [TEXT, TICK, TICK, END], {}),
    (RC, "Cancelled", A, "cancelled", [TEXT, TICK, TICK, CANCEL], {}),
    (RC, "not_recorded", U, "unrecorded", [TEXT, TICK, TICK, GONE], {}),
    (RP, "under_limits", RR, None, [CUT_CALL, TICK, TICK], {}),
    (RP, "repair_failed", AP, "repair_failed", [CUT_CALL, TICK, TICK], {"continuation_tool_repair_attempts": 0}),
    (RR, "provider_response", E, None, [CUT_CALL, TICK, TICK, CALL], {}),
    (RR, "Cancelled", A, "cancelled", [CUT_CALL, TICK, TICK, CANCEL], {}),
    (RR, "not_recorded", U, "unrecorded", [CUT_CALL, TICK, TICK, GONE], {}),
    (RS, "provider_response", E, None, [PAUSED, TICK, END], {}),
    (RS, "no_progress", AP, "no_progress", [PAUSED, TICK, TICK], {"max_resumes": 0}),
    (RS, "Cancelled", A, "cancelled", [PAUSED, TICK, CANCEL], {}),
    (RS, "not_recorded", U, "unrecorded", [PAUSED, TICK, GONE], {}),
    (E, "EmptyAnswer", NP, None, [NOTHING, TICK], {}),
    (E, "NoAnswer", AP, "no_answer", [NO_CALL, TICK], {}),
    (E, "ContinuationRefused", CP, None, [EMPTY, TICK, TICK, REFUSED, TICK], {}),
    (E, "RepairRefused", RP, None, [CUT_CALL, TICK, TICK, REFUSED, TICK], {}),
    (X, "budget_exhausted", AP, "budget_exhausted", [TEXT, TICK, TICK, CALL_AT_LENGTH, TICK, TICK],
     {"continuation_max_total_completion_tokens": 150}),
    (RP, "budget_exhausted", AP, "budget_exhausted", [CUT_CALL, TICK, TICK], ROOM),
    (RS, "budget_exhausted", AP, "budget_exhausted", [TEXT, TICK, TICK, PAUSED_AT_LENGTH, TICK, TICK],
     {"continuation_max_total_completion_tokens": 150}),
    (NP, "under_limits", RN, None, [NOTHING, TICK, TICK], {}),
    (NP, "NoAnswer", AP, "no_answer", [NOTHING, TICK, TICK], {"max_empty_retries": 0}),
    (NP, "budget_exhausted", AP, "budget_exhausted", [TEXT, TICK, TICK, NOTHING_AT_LENGTH, TICK, TICK],
     {"continuation_max_total_completion_tokens": 150}),
    (RN, "provider_response", E, None, [NOTHING, TICK, TICK, END], {}),
    (RN, "Cancelled", A, "cancelled", [NOTHING, TICK, TICK, CANCEL], {}),
    (RN, "not_recorded", U, "unrecorded", [NOTHING, TICK, TICK, GONE], {}),
    (AP, "return_partial_with_notice", C, "error", [ABC["error"], TICK, TICK], {}),
]


@each_row(("before", "signal", "after", "terminal", "events", "limits"), ROWS)
def test_a_move(
    before: State, signal: str, after: State, terminal: str | None, events: list[Event], limits: dict[str, Any]
) -> None:
    *_, came_from, turn = walk(events, limits)
    assert came_from.state is before
    assert (turn.signal, turn.state) == (Signal(signal), after)
    assert turn.terminal == terminal
    if before is not AP:
        assert turn.outcome is (after if terminal else None)
    assert turn.ended == (after in (A, C, U))


def test_every_row_of_the_table_is_among_the_moves() -> None:
    assert {(row[0], Signal(row[1])) for row in ROWS} == set(TRANSITIONS)


EVENTS: dict[str, Event] = {"response": END, "results": RAN, "tick": TICK, "cancel": CANCEL, "gone": GONE}
WAYS: dict[State, list[Event]] = {
    R: [], E: [END], X: [CALL, TICK], CP: [TEXT, TICK], RC: [TEXT, TICK, TICK], RP: [CUT_CALL, TICK],
    RR: [CUT_CALL, TICK, TICK], NP: [NOTHING, TICK], RN: [NOTHING, TICK, TICK], RS: [PAUSED, TICK],
    AP: [ABC["error"], TICK], A: [CANCEL], C: [END, TICK], U: [GONE],
}
ALLOWED: dict[State, set[str]] = {
    R: {"response", "cancel", "gone"}, E: {"tick", "cancel"}, X: {"results", "cancel", "gone"}, CP: {"tick"},
    RC: {"response", "cancel", "gone"}, RP: {"tick"}, RR: {"response", "cancel", "gone"},
    NP: {"tick"}, RN: {"response", "cancel", "gone"}, RS: {"response", "cancel", "gone"},
    AP: {"tick"}, A: set(), C: set(), U: set(),
}


@each_row("state", list(State))
@each_row("event", list(EVENTS))
def test_an_event_that_cannot_happen_is_refused(state: State, event: str) -> None:
    turn = walk(WAYS[state])[-1]
    assert turn.state is state
    if event in ALLOWED[state]:
        assert step(turn, EVENTS[event])[0].state is not state
    else:
        with pytest.raises(TransitionError):
            step(turn, EVENTS[event])


def test_what_is_no_event_and_what_cannot_follow_is_refused_with_what_could() -> None:
    with pytest.raises(TransitionError, match=r"event: expected ProviderResponse, .* or Tick, not str"):
        step(walk([])[-1], "hello")  # type: ignore[arg-type]
    with pytest.raises(TransitionError, match=r"Request: expected ProviderResponse, Cancel, NotRecorded .* not Tick"):
        step(walk([])[-1])
    with pytest.raises(TransitionError, match=r"EvaluateStop: expected Cancel, Tick .* not ProviderResponse"):
        walk([END, END])
    with pytest.raises(TransitionError, match="the turn has ended"):
        step(walk([END, TICK])[-1])


def test_a_policy_that_leads_nowhere_is_named() -> None:
    nowhere = replace(STRICT, name="mine", signals={**STRICT.signals, Stop.END_TURN: (Signal.STEP_LIMIT,) * 3})
    turn = walk([END])[-1]._replace(policy=nowhere)
    with pytest.raises(TransitionError, match="the policy mine leads to step_limit, and the state EvaluateStop has no"):
        step(turn)


def test_what_was_not_asked_for_is_refused() -> None:
    """A guard has stopped the state that was entered: no tools were run there, and no request left."""
    with pytest.raises(TransitionError, match="nothing was asked for"):
        walk([CALL, TICK, RAN], {"max_tool_steps": 0})
    with pytest.raises(TransitionError, match="nothing was asked for"):
        walk([PAUSED, TICK, END], {"max_resumes": 0})


def test_an_ended_turn_is_not_reopened() -> None:
    for state in ENDED:
        turn = walk(WAYS[state])[-1]
        for event in (CALL, RAN, TICK):
            with pytest.raises(TransitionError):
                step(turn, event)


def test_a_step_changes_nothing_in_the_turn_that_it_is_given() -> None:
    turn = walk([CALL, TICK])[-1]
    before = (turn.state, turn.history, turn.spend, turn.answers)
    once, again = step(turn, RAN)[0], step(turn, RAN)[0]
    assert (turn.state, turn.history, turn.spend, turn.answers) == before
    assert (once.history, once.spend) == (again.history, again.spend)


LEAKED = with_ending(Ending.CALL_LEAKED)
COMMENTARY = with_ending(Ending.COMMENTARY_ONLY)

# -- terminals -------------------------------------------------------------------------------------------------------

ENDS: list[tuple[str, State, State, list[Event], dict[str, Any], str | None]] = [
    # terminal reason, where it was decided, the last state, events, limits, a word of the notice
    ("completed", C, C, [END], {}, None),
    ("retry_limit", AP, C, [TEXT], {"continuation_max_attempts": 0}, "continuation_max_attempts (0) is reached"),
    ("budget_exhausted", AP, C, [TEXT], {"continuation_max_total_completion_tokens": 100}, "100 tokens, 15 characters"),
    ("safety_blocked", A, A, [ABC["safety"]], {}, "filter"),
    ("context_window_exceeded", A, A, [ABC["context"]], {}, "context window is full"),
    ("cancelled", A, A, [CANCEL], {}, "cancelled"),
    ("interrupted", AP, C, [ABC["interrupted"]], {}, "without a stop reason"),
    ("error", AP, C, [ABC["error"]], {}, "overloaded"),
    ("error", AP, C, [ABC["unknown"]], {}, "'entropy' is unknown"),
    ("error", AP, C, [WORDLESS], {}, "its stop reason is not known"),
    ("error", AP, C, [EMPTY_WORD], {}, "its stop reason is not known"),
    ("error", AP, C, [WORDLESS_NOTHING], {}, "No answer came: the response contains no answer and no stop reason"),
    ("error", AP, C, [WORDLESS_REFUSAL], {}, "may be incomplete: its stop reason is not known"),
    ("no_progress", AP, C, [EMPTY], {"max_thinking_only": 0}, "nothing new"),
    ("repair_failed", AP, C, [CUT_CALL, CUT_CALL], {},
     "raise the output limit, split the work into smaller parts, or simplify"),
    ("step_limit", AP, C, [CALL], {"max_tool_steps": 0}, "max_tool_steps"),
    ("unrecorded", U, U, [], {}, "never recorded"),
    ("stuck", A, A, [CUT_CALL], {"policy": ZOO_BEFORE}, "never finishes"),
    ("no_answer", AP, C, [NOTHING, NOTHING], {}, "neither text nor a tool call"),
    ("no_answer", AP, C, [ABC["thought"], ABC["thought"]], {}, "only reasoning"),
    ("no_answer", AP, C, [LEAKED], {}, "as markup"),
    ("no_answer", AP, C, [NO_CALL], {}, "none came"),
    ("no_answer", AP, C, [COMMENTARY], {}, "only commentary"),
]


@each_row(("terminal", "outcome", "final", "events", "limits", "word"), ENDS)
def test_an_end(
    terminal: str, outcome: State, final: State, events: list[Event], limits: dict[str, Any], word: str | None
) -> None:
    trace = drive(events, limits_of(limits), policy=limits.get("policy", STRICT))
    turn = last(trace)
    assert (turn.terminal, turn.outcome, turn.state) == (terminal, outcome, final)
    assert finish(trace).terminal == terminal
    assert finish(trace).notice == turn.notice
    assert (word is None and turn.notice is None) or (word is not None and word in (turn.notice or ""))


def test_a_notice_is_no_text_of_the_answer() -> None:
    turn = last(drive([TEXT], Limits(continuation_max_attempts=0)))
    assert turn.joined_answer().text == "the first part "
    assert not any(turn.notice in message.text for message in turn.history if turn.notice)


@pytest.mark.parametrize(("attempts", "words"), [
    (0, "it was cut and"), (1, "it was cut once more and"), (2, "it was cut 2 more times and"),
])
def test_a_notice_counts_the_further_cuts_in_words_that_fit(attempts: int, words: str) -> None:
    cut = [answer(Stop.MAX_TOKENS, each, tokens=10) for each in ("the first ", "the second ", "the third ")]
    turn = last(drive(cut[: attempts + 1], Limits(continuation_max_attempts=attempts)))
    said = f"The answer is incomplete: {words} continuation_max_attempts ({attempts}) is reached."
    assert turn.notice is not None
    assert turn.notice.startswith(said)


@pytest.mark.parametrize("message", ["The server had an error.", "The server had an error"])
def test_a_notice_of_an_error_ends_in_one_full_stop(message: str) -> None:
    turn = last(drive([error(message)]))
    assert turn.notice == "No answer came: the provider reported: The server had an error."


def test_an_error_without_words_still_has_a_notice() -> None:
    turn = last(drive([answer(Stop.ERROR)]))
    assert turn.notice == "No answer came: the provider reported an error."


@pytest.mark.parametrize("rule", ["frame.invalid", "frame.shape"])
def test_an_answer_of_which_an_event_was_not_read_is_not_passed_off_as_whole(rule: str) -> None:
    lost = Finding(rule, Severity.WARNING, "a frame is not valid JSON")
    turn = last(drive([answer(Stop.END_TURN, "Half is gone.", findings=(lost,))]))
    assert turn.terminal == "completed"
    assert turn.notice == "A part of the answer may be missing: the provider sent an event that could not be read."
    assert last(drive([answer(Stop.END_TURN, "All is here.")])).notice is None


def test_an_answer_that_does_not_match_its_checksum_is_not_passed_off_as_whole() -> None:
    damage = Finding("transport.damaged", Severity.WARNING, "x")
    turn = last(drive([answer(Stop.END_TURN, "All is here.", findings=(damage,))]))
    assert turn.notice == "Any part of the answer may be wrong: it does not match its checksum."


@pytest.mark.parametrize("rule", ["frame.repeated_member", "body.repeated_member"])
def test_an_answer_with_two_values_of_a_member_is_not_passed_off_as_sure(rule: str) -> None:
    twice = Finding(rule, Severity.WARNING, "a frame has the key 'content' twice, with two values")
    turn = last(drive([answer(Stop.END_TURN, "Never mind.", findings=(twice,))]))
    assert turn.terminal == "completed"
    assert turn.notice is not None
    assert turn.notice.startswith("Nothing shows which of two values is meant: the provider sent a key twice")


@each_row("rule", ["frame.invalid", "frame.shape", "body.shape"])
@each_row("text", ["", " \n"])
def test_an_answer_of_which_nothing_was_read_completes_no_turn(rule: str, text: str) -> None:
    lost = Finding(rule, Severity.WARNING, "a frame is not valid JSON")
    steps = drive([answer(Stop.END_TURN, text, findings=(lost,))])
    assert last(steps).terminal == "no_answer"
    assert last(steps).notice == "There is no answer: the provider sent an event that could not be read."
    begun = drive([answer(Stop.MAX_TOKENS, "The first half, "), answer(Stop.END_TURN, text, findings=(lost,))])
    assert last(begun).joined_answer().text.startswith("The first half,")
    assert last(begun).notice is not None
    assert last(begun).terminal != "no_answer", "the first half is one"
    picture = drive([answer(Stop.END_TURN, OpaquePart("image", "{}"), text, findings=(lost,))])
    assert last(picture).terminal == "completed", "something was read"
    only_words = drive([answer(Stop.END_TURN, text, findings=(lost,))], policy=ZEROCLAW_RFI)
    assert last(only_words).terminal == "completed", "an agent that reads nothing but the word"


def test_a_notice_holds_nothing_that_a_terminal_would_obey() -> None:
    page = "<b>\r\n\x1b[31mBad\u202e gateway\x9b0m</b>\n\n"
    turn = last(drive([answer(Stop.ERROR, error=ProviderError(page))]))
    assert turn.notice is not None
    assert turn.notice.endswith("the provider reported: <b> [31mBad gateway 0m</b>.")
    lost = last(drive([answer(Stop.MAX_TOKENS, call('{"path": "a', name="write\n\x1b[2Jfile"))] * 2))
    assert lost.notice is not None
    assert lost.notice.startswith("The tool call write [2Jfile was not completed")


@each_row(("changes", "notice"), [
    ({"http_status": 503, "error": ProviderError("busy")}, "No answer came: the provider reported: HTTP 503, busy."),
    ({"http_status": 502, "error": ProviderError("")}, "No answer came: the provider reported: HTTP 502."),
    ({"error": ProviderError("the body is a page", UNREADABLE)}, "No answer came: the body is a page."),
    ({"http_status": 200}, "No answer came: the response is empty."),
    ({"http_status": 200, "size": 9}, "No answer came: the response contains no answer and no stop reason."),
    ({"size": 9, "findings": (Finding("body.cut", Severity.WARNING, "the body is cut"),)},
     "No answer came: the body is cut."),
    ({"findings": (Finding("transport.reset", Severity.WARNING, "no connection to h: refused"),)},
     "No answer came: no connection to h: refused."),
    ({"parts": (TextPart("One,"),),
      "findings": (Finding("transport.timeout", Severity.WARNING, "h was silent for 1 s"),)},
     "The answer is incomplete: it ended without a stop reason (h was silent for 1 s)."),
    ({"parts": (TextPart("One,"),), "http_status": 200, "error": ProviderError("overloaded")},
     "The answer may be incomplete: the provider reported: overloaded."),
])
def test_the_notice_of_a_failed_request_names_what_failed(changes: dict[str, Any], notice: str) -> None:
    word = Stop.ERROR if "error" in changes else Stop.INTERRUPTED
    parts = changes.get("parts", ())
    more = {name: value for name, value in changes.items() if name != "parts"}
    assert last(drive([answer(word, *parts, **more)])).notice == notice


def test_a_refusal_in_the_models_own_words_is_no_filters() -> None:
    said = {refusal: last(drive([answer(Stop.SAFETY_BLOCKED, refusal=refusal)])).notice
            for refusal in (None, "I can't.")}
    assert said == {None: "The answer was blocked by a filter.", "I can't.": "The model declined to answer."}


# -- what is sent ----------------------------------------------------------------------------------------------------


def send_of(trace_events: list[Event], *, number: int = -1, **more: Any) -> Send:
    return sends(drive(trace_events, **more))[number]


def test_the_first_request_is_the_one_that_was_asked_for() -> None:
    request = replace(REQUEST, tool_choice="any")
    send = sends(drive([END], request=request))[0]
    assert (send.place, send.ordinal, send.method, send.new_messages) == (RequestPlace.REQUEST, 0, Method.FIRST, ())
    assert (send.max_tokens, send.tool_choice) == (100, "any")


def test_a_continuation_by_anchor_sends_the_text_and_the_hint() -> None:
    send = send_of([TEXT, END])
    assert (send.place, send.ordinal, send.method, send.max_tokens) == (RequestPlace.CONTINUATION, 1, Method.ANCHOR,
                                                                        100)
    assert send.anchor == "the first part "
    said, asked = send.new_messages
    assert said == Message(Role.ASSISTANT, (TextPart("the first part "),))
    assert asked.role is Role.SYSTEM
    assert "<last>the first part </last>" in asked.text
    user = send_of([TEXT, END], ability=Ability(system_hint=False))
    assert user.new_messages[1].role is Role.USER


def test_a_continuation_by_prefill_sends_the_text_as_the_answers_beginning() -> None:
    able = Ability(prefill=True)
    trace = drive([TEXT, answer(Stop.MAX_TOKENS, "and more", tokens=9), END], ability=able)
    first, second = sends(trace)[1:]
    assert first.method is second.method is Method.PREFILL
    assert first.new_messages == (Message(Role.ASSISTANT, (TextPart("the first part"),)),)
    assert first.stripped == " "
    assert second.new_messages == (Message(Role.ASSISTANT, (TextPart("the first part and more"),)),)
    assert last(trace).history == (ASKED,), "a prefill is part of the answer, not of the history"
    assert last(trace).joined_answer().text == "the first part and moredone."


def test_a_continuation_keeps_the_tool_choice_of_the_request() -> None:
    request = replace(REQUEST, tool_choice="none")
    for events in ([TEXT, END], [EMPTY, END], [PAUSED, END]):
        assert {send.tool_choice for send in sends(drive(events, request=request))} == {"none"}


def test_the_cap_never_shrinks() -> None:
    events = [EMPTY, TEXT, PAUSED, answer(Stop.MAX_TOKENS, "again "), CUT_CALL, CALL, END]
    caps = [send.max_tokens for send in sends(drive(events, Limits(continuation_max_total_completion_tokens=10_000)))]
    assert caps == [100, 200, 200, 200, 200, 400, 100], "only a new request begins with the request's own cap again"


def test_a_cap_that_is_not_known_stays_unknown() -> None:
    request = replace(REQUEST, max_tokens=None)
    assert {send.max_tokens for send in sends(drive([EMPTY, TEXT, END], request=request))} == {None}


def test_a_retry_without_visible_text_is_the_same_request_with_more_room() -> None:
    send = send_of([EMPTY, END])
    assert (send.place, send.method, send.new_messages, send.max_tokens) == (RequestPlace.CONTINUATION, Method.BOOST,
                                                                             (), 200)


def test_such_a_retry_still_expects_the_anchor_that_was_asked_for() -> None:
    trace = drive([TEXT, EMPTY, answer(Stop.END_TURN, "the first part and the rest")])
    assert [send.anchor for send in sends(trace)[1:]] == ["the first part ", "the first part "]
    assert last(trace).joined_answer().text == "the first part and the rest"


def test_a_prefill_that_brought_only_thinking_is_sent_again_with_more_room() -> None:
    trace = drive([TEXT, EMPTY, END], ability=Ability(prefill=True))
    assert {send.method for send in sends(trace)[1:]} == {Method.PREFILL}
    assert [send.max_tokens for send in sends(trace)] == [100, 100, 200]


@pytest.mark.parametrize("rest", [["The answer."], ["It", "It is."]])
def test_white_space_alone_is_nothing_visible_and_no_part_of_the_answer_to_the_repeated_request(
    rest: list[str]
) -> None:
    """A model may fill its budget with line breaks; they count as no progress, and stand before no answer."""
    blank = answer(Stop.MAX_TOKENS, "\n" * 80, tokens=100)
    *cut, end = rest
    trace = drive([blank, *(answer(Stop.MAX_TOKENS, text, tokens=200) for text in cut), answer(Stop.END_TURN, end)])
    assert [send.max_tokens for send in sends(trace)][:2] == [100, 200]
    assert (last(trace).terminal, last(trace).joined_answer().text) == ("completed", rest[-1])
    again = drive([blank, blank, END])
    assert (last(again).terminal, len(sends(again))) == ("no_progress", 2)


def test_white_space_behind_a_text_is_a_part_of_it_that_adds_little() -> None:
    """A continuation of one blank counts as progress of one character, and is no repeated request."""
    first, blank = (answer(Stop.MAX_TOKENS, text, tokens=100) for text in ("One is water,", " "))
    trace = drive([first, blank, answer(Stop.END_TURN, "and two is fire.")], Limits(min_progress_chars=2))
    assert (last(trace).terminal, len(sends(trace))) == ("no_progress", 2)


def test_white_space_before_a_nudge_is_no_part_of_the_answer() -> None:
    trace = drive([answer(Stop.END_TURN, " \n"), END], Limits(max_empty_retries=1))
    assert last(trace).joined_answer().text == END.response.text


def test_a_nudge_keeps_the_cap_and_the_tool_choice_of_the_request() -> None:
    request = replace(REQUEST, tool_choice="any")
    send = sends(drive([answer(Stop.END_TURN), END], Limits(max_empty_retries=1), request=request))[1]
    assert (send.place, send.max_tokens, send.tool_choice) == (RequestPlace.NUDGE, 100, "any")


def test_a_repair_asks_for_the_call_alone_and_forces_it() -> None:
    only = answer(Stop.MAX_TOKENS, "I will.", call(CUT), tokens=100)
    trace = drive([only, CALL, END])
    send = sends(trace)[1]
    assert (send.place, send.ordinal, send.method) == (RequestPlace.REPAIR, 1, Method.REPAIR)
    assert (send.tool_choice, send.max_tokens) == ("tool:write", 200), "the cap was too small for it"
    said, asked = send.new_messages
    assert said == Message(Role.ASSISTANT, (TextPart("I will."),)), "the held call is in no message"
    assert "the tool call write" in asked.text
    assert sends(trace)[2].tool_choice is None, "the choice is free again"


def test_a_repair_of_several_tools_or_of_none_that_is_known_forces_any() -> None:
    two = answer(Stop.MAX_TOKENS, call(), call(CUT, "now", "c2"), tokens=100)
    assert send_of([two, END], number=1).tool_choice == "any"
    assert send_of([ABC["malformed"], END], number=1).tool_choice == "any"
    undeclared = answer(Stop.MAX_TOKENS, call(CUT, "publish"), tokens=100)
    assert send_of([undeclared, END], number=1).tool_choice == "any", "a choice of it would be refused"


@each_row(("detail", "method"), [
    ("echo", Method.ECHO), (None, Method.ECHO), ("token", Method.TOKEN), ("poll", Method.POLL), ("server", Method.POLL),
])
def test_a_pause_is_resumed_as_its_detail_says(detail: str | None, method: Method) -> None:
    block = OpaquePart("server_tool", "{}")
    send = send_of([answer(Stop.PAUSED, "wait", block, detail=detail), END])
    assert (send.place, send.ordinal, send.method) == (RequestPlace.RESUME, 1, method)
    echoed = (Message(Role.ASSISTANT, (TextPart("wait"), block)),)
    assert send.new_messages == (echoed if method is Method.ECHO else ())


@pytest.mark.parametrize(("rest", "text"), [
    ("Found.", "I search. \nFound."), (" \nFound.", "I search. \nFound."), ("\nFound.", "I search. \n\nFound."),
])
def test_white_space_at_the_end_of_a_pause_is_not_sent_and_not_lost(rest: str, text: str) -> None:
    """Anthropic refuses a request that ends in white space of the assistant's, and cannot tell a pause from a
    prefill."""
    trace = drive([answer(Stop.PAUSED, "I search. \n", detail="echo"), answer(Stop.END_TURN, rest)])
    send = sends(trace)[1]
    assert (send.method, send.stripped) == (Method.ECHO, " \n")
    assert send.new_messages == (Message(Role.ASSISTANT, (TextPart("I search."),)),)
    assert last(trace).joined_answer().text == text


def test_an_echo_is_in_the_next_request_exactly_once() -> None:
    trace = drive([PAUSED, CALL, END])
    texts = [message.text for message in (*last(trace).history,)]
    assert texts.count("wait") == 1
    resumed = next(s for s in trace.steps if s.state is RS)
    send = next(e for e in resumed.effects if isinstance(e, Send))
    assert resumed.turn.history == (ASKED,), "what a request adds comes on top of the history"
    assert len(send.new_messages) == 1


@pytest.mark.parametrize("detail", ["token", "poll"])
def test_what_a_token_or_a_poll_brought_is_in_the_history_with_what_came_before(detail: str) -> None:
    first = answer(Stop.PAUSED, "one ", detail=detail)
    second = answer(Stop.TOOL_CALL, "one two" if detail == "poll" else "two", call())
    turn = last(drive([first, second, END]))
    assert turn.history[1] == Message(Role.ASSISTANT, (TextPart("one two"), call()))


def test_a_poll_that_brings_nothing_new_loses_nothing() -> None:
    first, second = answer(Stop.PAUSED, "one ", detail="poll"), answer(Stop.TOOL_CALL, call())
    turn = last(drive([first, second, END]))
    assert turn.history[1] == Message(Role.ASSISTANT, (TextPart("one "), call()))


def test_a_loop_that_has_no_way_to_continue_says_so() -> None:
    never = replace(last(drive([])).policy, methods=())
    turn = last(drive([TEXT, END], policy=never))
    assert (turn.terminal, turn.notice) == (
        "retry_limit", "The answer is incomplete: it was cut, and this loop has no way to continue it.",
    )


# -- calls -----------------------------------------------------------------------------------------------------------


def test_a_rejected_call_gets_its_error_and_its_siblings_run() -> None:
    trace = drive([answer(Stop.TOOL_CALL, call(), call(BAD, id="c2"), call(id="c3")), END])
    (effect,) = dispatches(trace)
    assert [v.call.id for v in effect.released] == ["c1", "c3"]
    (rejected,) = effect.answers
    assert (rejected.verdict.admission, rejected.place, rejected.result.call_id) == (Admission.REJECTED, 1, "c2")
    assert rejected.result.is_error
    assert last(trace).terminal == "completed"


def test_one_held_call_stops_the_batch() -> None:
    for odd in (call(CUT, id="c2"), call("", id="c2"), call(closed=False, id="c2")):
        trace = drive([answer(Stop.TOOL_CALL, call(), odd), END])
        assert dispatches(trace) == []
        assert path(trace)[2] is RP


def test_a_phantom_is_neither_run_nor_answered() -> None:
    trace = drive([answer(Stop.TOOL_CALL, call(), ToolCall(None, "", "")), END])
    (effect,) = dispatches(trace)
    assert [v.call for v in effect.batch] == [call()]
    assert [part.call_id for part in last(trace).history[-1].results] == ["c1"]
    only = drive([answer(Stop.TOOL_CALL, "text", ToolCall(None, "", ""))])
    assert last(only).terminal == "no_answer"


def test_a_reason_that_asks_for_tools_without_a_call_ends_the_turn() -> None:
    """mastra PR #14187: it looped for ever."""
    assert last(drive([answer(Stop.TOOL_CALL, "text")])).terminal == "no_answer"


def test_a_repair_that_brings_no_call_has_failed() -> None:
    for wrong in (END, TEXT, CUT_CALL, ABC["malformed"]):
        assert last(drive([CUT_CALL, wrong, CALL])).terminal == "repair_failed"
        twice = Limits(continuation_tool_repair_attempts=2)
        assert last(drive([CUT_CALL, wrong, CALL, END], twice)).terminal == "completed"


def test_a_repair_that_is_paused_is_still_a_repair() -> None:
    assert last(drive([CUT_CALL, PAUSED, END])).terminal == "repair_failed"
    assert last(drive([CUT_CALL, PAUSED, CALL, END])).terminal == "completed"


def test_a_repair_that_is_rejected_by_its_schema_has_come() -> None:
    trace = drive([CUT_CALL, ABC["rejected"], END])
    assert last(trace).terminal == "completed"
    assert dispatches(trace)[0].answers[0].verdict.admission is Admission.REJECTED


def test_repairs_and_continuations_have_budgets_of_their_own() -> None:
    events = [TEXT, CUT_CALL, CALL, answer(Stop.MAX_TOKENS, "more ", tokens=5), END]
    turn = last(drive(events, Limits(continuation_max_attempts=2, continuation_tool_repair_attempts=1)))
    assert (turn.terminal, turn.spend.continuations, turn.spend.repairs) == ("completed", 2, 1)


def test_nothing_that_comes_later_makes_a_held_call_ready() -> None:
    """No reopening: what a clean response releases are its own calls."""
    held = answer(Stop.MAX_TOKENS, call('{"path": "held"}'), tokens=100)
    for later in ([CALL, END], [answer(Stop.TOOL_CALL, call('{"path": "other"}')), END], [END], [PAUSED, CALL, END]):
        for effect in dispatches(drive([held, *later], Limits(continuation_tool_repair_attempts=3))):
            assert not any(v.call.arguments == '{"path": "held"}' for v in effect.batch)
    promoted = [held, answer(Stop.END_TURN, "go on"), answer(Stop.END_TURN, "go on")]
    assert dispatches(drive(promoted, Limits(continuation_tool_repair_attempts=3))) == []


def test_the_same_response_judged_again_is_held_again() -> None:
    response = answer(Stop.MAX_TOKENS, call(), tokens=100).response
    assert dispatches(drive([as_event(response), as_event(response), as_event(response)])) == []


def test_a_promoted_call_runs() -> None:
    assert len(dispatches(drive([answer(Stop.END_TURN, call()), END]))) == 1


def test_steering_goes_into_the_history_behind_the_results() -> None:
    said = Message(Role.USER, (TextPart("stop that"),))
    turn = walk([CALL, TICK, RAN._replace(steering=(said,))])[-1]
    assert [message.role for message in turn.history] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.USER]
    assert turn.history[-1] == said


def test_missing_results_are_said_to_be_missing() -> None:
    turn = walk([CALL, TICK, ToolResults(RAN.results[1:])])[-1]
    assert [(r.call_id, r.is_error) for r in turn.history[-1].results] == [("c1", True), ("c2", False)]


# -- what stays as it is ---------------------------------------------------------------------------------------------


def test_an_untruncated_response_passes_through_unchanged() -> None:
    """ZeroClaw RFI 2309: "ensure non-truncated normal responses are unchanged"."""
    text = "  a text\n\nwith its own white space \n"
    trace = drive([answer(Stop.END_TURN, ReasoningPart("hm"), text)])
    turn = last(trace)
    assert path(trace) == [R, E, C]
    assert turn.joined_answer().text == text
    assert turn.joined_answer().seams == ()
    assert (turn.spend.requests, turn.spend.continuation_tokens, turn.spend.continuations) == (1, 0, 0)
    assert turn.notice is None
    ran = last(drive([answer(Stop.TOOL_CALL, "first", call()), answer(Stop.END_TURN, text)]))
    assert ran.history[1] == Message(Role.ASSISTANT, (TextPart("first"), call(GOOD)))
    assert [ran.joined_answer(n).text for n in range(2)] == ["first", text]


@pytest.mark.parametrize(("text", "silent"), [
    ("__SILENT__", "__SILENT__"), (" HEARTBEAT_OK\n", "HEARTBEAT_OK"), ("not __SILENT__", None),
])
def test_a_silent_ending_is_recognised_and_ends_like_any_other(text: str, silent: str | None) -> None:
    """pi's agent loop."""
    trace = drive([answer(Stop.END_TURN, text)])
    assert finish(trace).silent == silent
    assert finish(trace).terminal == "completed"
    assert last(trace).joined_answer().text == text


def test_silent_endings_are_configurable_and_count_only_at_a_peaceful_end() -> None:
    quiet = replace(last(drive([])).policy, silent_endings=("NOTHING",))
    assert finish(drive([answer(Stop.END_TURN, "NOTHING")], policy=quiet)).silent == "NOTHING"
    assert finish(drive([answer(Stop.END_TURN, "__SILENT__")], policy=quiet)).silent is None
    assert finish(drive([answer(Stop.INTERRUPTED, "__SILENT__")])).silent is None


def test_recorded_answers_say_themselves_how_they_were_asked_for() -> None:
    cut = as_event(reply(Stop.MAX_TOKENS, "the first part ", tokens=100), number=0, method=Method.FIRST)
    whole = reply(Stop.END_TURN, "the first part and")
    turn = last(drive([cut, as_event(whole, number=1, method=Method.PREFILL, stripped=" ", echoes=True)]))
    assert turn.joined_answer().text == "the first part and"
    assert [segment.response for segment in turn.answers[-1]] == [0, 1]
    assert [segment.method for segment in turn.answers[-1]] == [Method.FIRST, Method.PREFILL]


def test_effects_come_one_at_a_time() -> None:
    for events in ([TEXT, END], [CALL, END], [CUT_CALL, CALL, END], [PAUSED, END]):
        for each in drive(events).steps:
            assert len(each.effects) <= 1
            assert all(isinstance(effect, (Send, RunTools)) for effect in each.effects) or each.turn.ended


# -- what only looks finished ----------------------------------------------------------------------------------------


def test_an_empty_answer_is_asked_for_once_more_with_a_message_that_says_so() -> None:
    trace = drive([NOTHING, END])
    send = sends(trace)[1]
    assert (send.place, send.ordinal, send.method, send.max_tokens) == (RequestPlace.NUDGE, 1, Method.NUDGE, 100)
    (asked,) = send.new_messages
    assert asked.text.startswith("Your previous response was empty")
    assert last(trace).terminal == "completed"
    assert last(trace).joined_answer().text == "done."


@pytest.mark.parametrize("ending", [Ending.CALL_LEAKED, Ending.NO_CALL, Ending.COMMENTARY_ONLY])
def test_what_is_no_answer_is_not_asked_for_again(ending: Ending) -> None:
    trace = drive([with_ending(ending), END])
    assert (last(trace).terminal, len(sends(trace))) == ("no_answer", 1)


def test_nothing_is_asked_again_where_silence_may_have_been_meant() -> None:
    unsure = NOTHING._replace(judgement=NOTHING.judgement._replace(ending_sure=False))
    trace = drive([unsure, END])
    assert (last(trace).terminal, len(sends(trace))) == ("no_answer", 1)
    wanted = replace(STRICT, allow_silence=True)
    assert last(drive([NOTHING], policy=wanted)).terminal == "completed"


@pytest.mark.parametrize("method", [Method.PREFILL, Method.HINT])
def test_an_empty_rest_says_that_a_text_was_whole_unless_it_stops_in_the_middle(method: Method) -> None:
    policy = replace(STRICT, methods=(method,))
    able = Ability(prefill=True)
    whole = answer(Stop.MAX_TOKENS, "That is all.", tokens=100)
    assert last(drive([whole, NOTHING], policy=policy, ability=able)).terminal == "completed"
    middle = answer(Stop.MAX_TOKENS, "First we take the,", tokens=100)
    trace = drive([middle, NOTHING, NOTHING], policy=policy, ability=able)
    assert (last(trace).terminal, sends(trace)[-1].anchor) == ("no_answer", "First we take the,")


def test_an_empty_rest_is_asked_for_once_more_where_words_were_to_be_quoted() -> None:
    trace = drive([answer(Stop.MAX_TOKENS, "That is all.", tokens=100), NOTHING, answer(Stop.END_TURN, "That is all.")])
    assert [send.place for send in sends(trace)] == [RequestPlace.REQUEST, RequestPlace.CONTINUATION,
                                                     RequestPlace.NUDGE]
    assert (last(trace).terminal, last(trace).joined_answer().text) == ("completed", "That is all.")


def test_a_rest_that_only_repeats_the_last_words_of_a_text_that_stops_in_the_middle_is_no_end() -> None:
    """SmolLM2 repeated the last line of a function, and left its code fence open."""
    for said in ("print(add_numbers(10, 20))", "print(add_numbers(10, 20))\n"):
        turn = last(drive([MIDDLE, answer(Stop.END_TURN, said)]))
        assert (turn.terminal, turn.spend.requests) == ("no_progress", 2)
        assert turn.joined_answer().text.strip() == MIDDLE.response.text
    assert last(drive([MIDDLE, answer(Stop.END_TURN, "print(add_numbers(10, 20))\n```")])).terminal == "completed"
    whole = answer(Stop.MAX_TOKENS, "Nobody had begun to look. That is all.")
    assert last(drive([whole, answer(Stop.END_TURN, whole.response.text or "")])).terminal == "completed"
    assert last(drive([MIDDLE, REPEATED], limits=Limits(min_progress_chars=0))).terminal == "completed"
    other = replace(STRICT, lacks=frozenset({"progress"}))
    assert last(drive([MIDDLE, REPEATED], policy=other)).terminal == "completed"
    doubtful = last(drive([MIDDLE, answer(Stop.END_TURN, "It is as it was.")]))
    assert (doubtful.terminal, bool(doubtful.doubtful_seams)) == ("completed", True)


# -- what a server refuses -------------------------------------------------------------------------------------------

ALONE = answer(Stop.MAX_TOKENS, call(CUT), tokens=100)


@pytest.mark.parametrize("status", [400, 422])
def test_a_larger_cap_that_is_refused_is_the_old_one_again(status: int) -> None:
    no = REFUSED._replace(response=replace(REFUSED.response, http_status=status))
    trace = drive([ALONE, no, CALL, END])
    assert [(send.place, send.max_tokens) for send in sends(trace)[:3]] == [
        (RequestPlace.REQUEST, 100), (RequestPlace.REPAIR, 200), (RequestPlace.REPAIR, 100)]
    assert last(trace).terminal == "completed"


def test_a_forced_call_that_is_refused_is_free_the_next_time() -> None:
    trace = drive([ALONE, rejection("thinking does not go with a forced tool"), CALL, END])
    assert [send.tool_choice for send in sends(trace)[:3]] == [None, "tool:write", None]
    assert [send.max_tokens for send in sends(trace)[:3]] == [100, 200, 200]
    assert last(trace).spend.repairs_refused == 1


def test_a_prefill_that_is_refused_becomes_an_anchor() -> None:
    trace = drive([TEXT, rejection("prefill is not supported"), answer(Stop.END_TURN, "the first part and more")],
                  Limits(continuation_max_attempts=1), ability=Ability(prefill=True))
    assert [send.method for send in sends(trace)] == [Method.FIRST, Method.PREFILL, Method.ANCHOR]
    assert (last(trace).terminal, last(trace).joined_answer().text) == ("completed", "the first part and more")


def test_a_notice_does_not_count_what_a_server_refused_as_a_cut() -> None:
    forced = rejection("thinking does not go with a forced tool")
    turn = last(drive([ALONE, forced, CALL, TEXT, rejection("no prefill"), TEXT],
                      Limits(continuation_max_attempts=1), ability=Ability(prefill=True)))
    assert turn.notice is not None
    assert turn.notice.startswith("The answer is incomplete: it was cut once more and")


def test_a_refusal_of_anything_else_is_an_error() -> None:
    assert last(drive([ALONE, rejection("no such model")])).terminal == "error"
    assert last(drive([rejection("max_tokens is too large")])).terminal == "error"


@each_row("events", [
    [], [CALL, TICK, RAN], [TEXT, TICK, TICK], [CUT_CALL, TICK, TICK], [PAUSED, TICK], [NOTHING, TICK, TICK],
])
def test_a_request_that_no_recording_answers_was_never_sent_and_counts_for_nothing(events: list[Event]) -> None:
    turns = walk([*events, GONE])
    asking, ended = turns[-2].spend, turns[-1].spend
    assert turns[-1].state is State.UNRECORDED
    assert asking.requests == sum(isinstance(event, ProviderResponse) for event in events) + 1
    assert ended.requests == asking.requests - 1
    sent = next((turn.spend for turn in reversed(turns[:-2]) if turn.spend.requests == ended.requests), None)
    if sent is not None:  # what is left is what was spent before it, but for what its answer and the tools brought
        asked_for = ("attempts", "continuations", "repairs", "resumes", "empty_retries")
        assert [getattr(ended, name) for name in asked_for] == [getattr(sent, name) for name in asked_for]


def test_a_resumption_that_its_guard_stops_was_not_counted_and_is_not_taken_back() -> None:
    turns = walk([PAUSED, TICK, GONE], {"max_resumes": 0})
    assert (turns[-1].spend.requests, turns[-1].spend.resumes) == (1, 0)


def test_tools_without_recorded_results_take_no_request_back() -> None:
    turns = walk([CALL, TICK, GONE])
    assert turns[-1].spend.requests == turns[-2].spend.requests == 1
