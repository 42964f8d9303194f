"""Limits as an operator sets them, and every guard: what it stops, with which reason, and what passes just below it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from loop_core.errors import CallerError
from loop_core.turn.limits import RANGES, SHORT_NAMES, Limits, whole_number
from loop_core.turn.state import Event, State
from loop_core.values import ReasoningPart, Stop
from tests.scenes.rows import each_row
from tests.scenes.turns import CUT, GOOD, REQUEST, alphabet, answer, call, drive, last, path, sends, with_cap


def test_the_seeds_defaults() -> None:
    """ZeroClaw RFI 2309: 3 continuations, 4 x the initial max_tokens, 120,000 characters, one repair."""
    limits = Limits()
    assert limits.continuation_max_attempts == 3
    assert limits.token_cap(1000) == 4000
    assert limits.token_cap(None) is None
    assert limits.continuation_max_output_chars == 120_000
    assert limits.continuation_tool_repair_attempts == 1
    assert tuple(SHORT_NAMES) == (
        "continuation_max_attempts", "continuation_max_total_completion_tokens", "continuation_max_output_chars",
        "continuation_tool_repair_attempts",
    )


def test_every_number_has_a_range() -> None:
    numbers = {field.name for field in fields(Limits)} - {"attempts_scope"}
    assert numbers == set(RANGES), "a limit without a range is checked nowhere, and a configuration file cannot set it"


@each_row(("typed", "number"), [
    ("1,000", 1_000), ("-1_000", -1_000), (" 07 ", 7), ("9" * 20, 10 ** 20 - 1),
    ("x", None), ("1.5", None), ("", None), ("\u0663", None),
])
def test_a_typed_number_is_a_number_however_long_it_is(typed: str, number: int | None) -> None:
    assert whole_number(typed) == number
    assert whole_number("9" * 5_000) == 10 ** 600 - 1, "int() refuses more than 4,300 digits"


def test_a_token_cap_that_is_set_outranks_the_derived_one() -> None:
    assert Limits(continuation_max_total_completion_tokens=7).token_cap(1000) == 7
    assert Limits(continuation_max_total_completion_tokens=7).token_cap(None) == 7


@each_row(("given", "value"), [("5", 5), (" 1_000 ", 1000), ("1,000", 1000), (12, 12)])
def test_text_is_read_as_an_operator_types_it(given: Any, value: int) -> None:
    assert Limits().with_values({"continuation_max_attempts": given}).continuation_max_attempts == value


@each_row("given", ["none", "None", "default", "", None])
def test_the_token_cap_may_be_derived_again(given: str | None) -> None:
    limits = Limits(continuation_max_total_completion_tokens=5)
    assert limits.with_values({"continuation_max_total_completion_tokens": given}).token_cap(10) == 40


def test_the_scope_is_a_word() -> None:
    assert Limits().with_values({"attempts_scope": " response "}).attempts_scope == "response"


@each_row(("name", "given"), [
    ("continuation_max_attempts", "five"),
    ("continuation_max_attempts", "3.5"),
    ("continuation_max_attempts", ""),
    ("continuation_max_attempts", "none"),
    ("continuation_max_attempts", None),
    ("continuation_max_attempts", True),
    ("continuation_max_attempts", "--5"),
    ("continuation_max_attempts", "\u00b2"),
    ("continuation_max_attempts", "9" * 5000),
    ("continuation_max_attempts", "-1"),
    ("continuation_max_attempts", "1001"),
    ("continuation_max_total_completion_tokens", "0"),
    ("continuation_max_output_chars", "0"),
    ("continuation_tool_repair_attempts", "101"),
    ("max_tool_steps", "-1"),
    ("max_follow_ups", "-1"),
    ("max_resumes", "-1"),
    ("max_identical_calls", "0"),
    ("max_thinking_only", "-1"),
    ("max_empty_retries", "-1"),
    ("min_progress_chars", "-1"),
    ("max_tool_result_chars", "99"),
    ("context_guard_chars", "99"),
    ("attempts_scope", "forever"),
    ("attempts_scope", 5),
    ("max_anything", "1"),
])
def test_what_is_no_limit_is_refused_by_name(name: str, given: Any) -> None:
    with pytest.raises(CallerError, match=name):
        Limits().with_values({name: given})


# -- the guards ------------------------------------------------------------------------------------------------------

ABC = alphabet()
TEXT, EMPTY, CALL, PAUSED, END = ABC["text"], ABC["empty"], ABC["call"], ABC["paused"], ABC["end"]
LONGER = answer(Stop.MAX_TOKENS, "and a second one ", tokens=10)
NOTHING = answer(Stop.END_TURN)
CUT_CALL = answer(Stop.MAX_TOKENS, call(CUT, closed=False))


def pieces(count: int, tokens: int | None = 10) -> list[Event]:
    return [answer(Stop.MAX_TOKENS, f"piece {number}, ", tokens=tokens) for number in range(count)]


def calls(count: int) -> list[Event]:
    return [answer(Stop.TOOL_CALL, call(f'{{"path": "{number}"}}')) for number in range(count)]


def same(count: int) -> list[Event]:
    return [answer(Stop.TOOL_CALL, call(GOOD)) for _ in range(count)]


STOPS: list[tuple[str, dict[str, Any], list[Event], list[Event], str]] = [
    # the guard, the limits, what passes just below it, what it stops, the terminal reason
    ("attempts", {"continuation_max_attempts": 2}, [*pieces(2), END], [*pieces(3), END], "retry_limit"),
    ("no attempts", {"continuation_max_attempts": 0}, [END], [*pieces(1), END], "retry_limit"),
    ("tokens", {"continuation_max_total_completion_tokens": 21}, [*pieces(2), END], [*pieces(3), END],
     "budget_exhausted"),
    ("chars", {"continuation_max_output_chars": 19}, [*pieces(2), END], [*pieces(3), END], "budget_exhausted"),
    ("thinking", {"max_thinking_only": 1}, [EMPTY, END], [EMPTY, EMPTY, END], "no_progress"),
    ("progress", {"min_progress_chars": 10}, [TEXT, LONGER, END], [TEXT, answer(Stop.MAX_TOKENS, "a bit"), END],
     "no_progress"),
    ("repairs", {"continuation_tool_repair_attempts": 2}, [CUT_CALL, CUT_CALL, CALL, END],
     [CUT_CALL, CUT_CALL, CUT_CALL, CALL, END], "repair_failed"),
    ("empty", {"max_empty_retries": 1}, [NOTHING, END], [NOTHING, NOTHING, END], "no_answer"),
    ("tool steps", {"max_tool_steps": 2}, [*calls(2), END], [*calls(3), END], "step_limit"),
    ("identical", {"max_identical_calls": 2}, [*same(2), *calls(1), *same(2), END], [*same(3), END], "no_progress"),
    ("resumes", {"max_resumes": 2}, [PAUSED, PAUSED, END], [PAUSED, PAUSED, PAUSED, END], "no_progress"),
]


@each_row(("guard", "limits", "passes", "stops", "terminal"), STOPS)
def test_a_guard_stops_what_exceeds_it_and_nothing_below(
    guard: str, limits: dict[str, Any], passes: list[Event], stops: list[Event], terminal: str
) -> None:
    assert last(drive(passes, Limits(**limits))).terminal == "completed"
    stopped = last(drive(stops, Limits(**limits)))
    assert stopped.terminal == terminal
    assert stopped.outcome is State.ABORT_PARTIAL
    assert stopped.notice
    # Beside a recording it says whose limit this is, since the recorded agent may have gone on to a good end.
    assert terminal not in ("no_progress", "step_limit") or stopped.notice.startswith("This loop ended the turn")


def test_a_guarded_state_sends_nothing_and_runs_nothing() -> None:
    assert len(sends(drive([*pieces(3), END], Limits(continuation_max_attempts=2)))) == 3
    trace = drive([*calls(2), END], Limits(max_tool_steps=1))
    assert path(trace)[-3:] == [State.EXECUTE_TOOLS, State.ABORT_PARTIAL, State.COMPLETE]
    assert last(trace).spend.tool_steps == 1


def test_the_first_guard_that_trips_gives_the_reason() -> None:
    limits = Limits(continuation_max_attempts=1, continuation_max_total_completion_tokens=1)
    assert last(drive(pieces(2), limits)).terminal == "budget_exhausted"
    limits = Limits(continuation_max_attempts=1, continuation_max_total_completion_tokens=20)
    assert last(drive(pieces(2), limits)).terminal == "retry_limit"


def test_no_guard_of_continuing_is_asked_outside_of_it() -> None:
    """DESIGN section 6: attempts and characters are consulted only in ContinuePending."""
    none = Limits(continuation_max_attempts=0, continuation_max_output_chars=1)
    assert last(drive([CUT_CALL, CALL, END], none)).terminal == "completed"


def test_tokens_that_were_not_reported_are_taken_from_the_cap_that_was_sent() -> None:
    silent = pieces(5, tokens=None)
    bound = Limits(continuation_max_total_completion_tokens=250)
    turn = last(drive(silent, bound, request=with_cap(REQUEST, 100)))
    assert turn.terminal == "budget_exhausted"
    assert (turn.spend.continuation_tokens, turn.spend.tokens_assumed) == (250, 250), "100, 100 and the 50 left"
    unbounded = last(drive(silent, request=with_cap(REQUEST, None)))
    assert unbounded.terminal == "retry_limit"
    assert (unbounded.spend.continuation_tokens, unbounded.spend.tokens_assumed) == (0, 0)


@pytest.mark.parametrize("tokens", [-1_000_000, 0])
def test_a_count_of_tokens_that_cannot_be_gives_no_budget(tokens: int) -> None:
    bound = Limits(continuation_max_attempts=9, continuation_max_total_completion_tokens=250)
    turn = last(drive(pieces(9, tokens=tokens), bound, request=with_cap(REQUEST, 100)))
    assert (turn.terminal, turn.spend.continuation_tokens) == ("budget_exhausted", 250), "as if none were reported"
    assert turn.spend.tokens_assumed == 250
    empty = last(drive([answer(Stop.MAX_TOKENS, tokens=0), END], bound, request=with_cap(REQUEST, 100)))
    assert (empty.terminal, empty.spend.tokens_assumed) == ("completed", 0), "without any part it may be true"


def test_reported_tokens_of_cut_responses_and_their_continuations_count_and_no_others() -> None:
    turn = last(drive([
        answer(Stop.TOOL_CALL, call(), tokens=7),
        answer(Stop.MAX_TOKENS, "one ", tokens=100),
        answer(Stop.END_TURN, "two", tokens=20),
    ]))
    assert (turn.spend.continuation_tokens, turn.spend.continuation_chars, turn.spend.tokens_assumed) == (120, 7, 0)
    assert (turn.spend.output_tokens, turn.spend.output_chars, turn.spend.uncounted) == (127, 7, 0)


def test_the_output_of_a_turn_is_that_of_every_response_repairs_and_uncut_answers_too() -> None:
    """Cut in a call at 40 tokens, the call again for 30, the answer after its result for 9."""
    turn = last(drive([
        answer(Stop.MAX_TOKENS, "I write.", call(CUT), tokens=40),
        answer(Stop.TOOL_CALL, call(), tokens=30),
        answer(Stop.END_TURN, "Written.", tokens=9),
    ]))
    assert (turn.spend.requests, turn.spend.output_tokens, turn.spend.output_chars) == (3, 79, 16)
    assert (turn.spend.continuation_tokens, turn.spend.continuation_chars) == (40, 8), "the cut one alone"


def test_a_response_that_nobody_counted_makes_the_output_a_lower_bound() -> None:
    turn = last(drive([answer(Stop.TOOL_CALL, call(), tokens=30), answer(Stop.END_TURN, "Written.")]))
    assert (turn.spend.output_tokens, turn.spend.tokens_assumed, turn.spend.uncounted) == (30, 0, 1)


def test_attempts_count_over_the_turn_or_over_the_response() -> None:
    events = [*pieces(2), CALL, *pieces(2), END]
    per_turn = last(drive(events, Limits(continuation_max_attempts=2)))
    assert (per_turn.terminal, per_turn.spend.attempts, per_turn.spend.continuations) == ("retry_limit", 2, 2)
    scoped = Limits(continuation_max_attempts=2, attempts_scope="response")
    per_response = last(drive(events, scoped))
    assert (per_response.terminal, per_response.spend.continuations) == ("completed", 4)
    assert last(drive([*pieces(3), END], scoped)).terminal == "retry_limit"


def test_a_thinking_only_answer_is_asked_for_again_with_more_room() -> None:
    trace = drive([answer(Stop.MAX_TOKENS, ReasoningPart("hm"), tokens=100), END])
    assert [send.max_tokens for send in sends(trace)] == [100, 200]
    assert last(trace).terminal == "completed"


# -- the bound holds for each request --------------------------------------------------------------------------------


def test_no_request_asks_for_more_than_what_is_left() -> None:
    trace = drive([*pieces(2, tokens=60), END], Limits(continuation_max_total_completion_tokens=130))
    assert [send.max_tokens for send in sends(trace)] == [100, 70, 10]
    trace = drive([END], Limits(continuation_max_total_completion_tokens=30))
    assert [send.max_tokens for send in sends(trace)] == [30], "the first request too"
    trace = drive([END], Limits(continuation_max_total_completion_tokens=30), request=with_cap(REQUEST, None))
    assert [send.max_tokens for send in sends(trace)] == [30]


def test_a_request_that_its_format_would_refuse_is_not_sent() -> None:
    """Responses takes no max_output_tokens below 16."""
    bound = Limits(continuation_max_total_completion_tokens=115)
    script = [answer(Stop.MAX_TOKENS, "one ", tokens=100), END]
    assert last(drive(script, bound)).terminal != "budget_exhausted"
    stopped = last(drive(script, bound, request=replace(REQUEST, api="openai_responses")))
    assert (stopped.terminal, stopped.spend.requests) == ("budget_exhausted", 1)
    thinking = replace(REQUEST, extra={"thinking": {"type": "enabled", "budget_tokens": 15}})
    assert last(drive(script, bound, request=thinking)).terminal == "budget_exhausted"


@each_row("spends", [
    [answer(Stop.MAX_TOKENS, call(CUT, closed=False), tokens=100), CALL, END],
    [answer(Stop.MAX_TOKENS, "one ", tokens=60), answer(Stop.END_TURN, tokens=40), END],
    [answer(Stop.MAX_TOKENS, "one ", tokens=60), answer(Stop.TOOL_CALL, call(), tokens=40), END],
    [answer(Stop.MAX_TOKENS, "one ", tokens=60), answer(Stop.PAUSED, "two ", tokens=40), END],
])
def test_where_nothing_is_left_no_other_request_follows(spends: list[Event]) -> None:
    stopped = drive(spends, Limits(continuation_max_total_completion_tokens=100))
    assert (last(stopped).terminal, last(stopped).spend.continuation_tokens) == ("budget_exhausted", 100)
    assert len(sends(stopped)) == spends.index(CALL if CALL in spends else END), "what spends it is the last"
    assert last(drive(spends, Limits(continuation_max_total_completion_tokens=101))).terminal == "completed"
