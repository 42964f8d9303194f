"""The four events of ZeroClaw RFI 2309, field by field, flat; two counters and two histograms folded from them."""

from __future__ import annotations

import json
from typing import Any

from loop_core.turn.limits import Limits
from loop_core.turn.state import Event
from loop_core.turn.trace import Metrics, fold_metrics, limit_usage
from loop_core.values import Stop
from tests.scenes.rows import each_row
from tests.scenes.turns import CUT, REQUEST, WRITE, alphabet, answer, call, drive, last, with_cap

ABC = alphabet()
END, CALL, TEXT, CUT_CALL, PAUSED = (ABC[n] for n in ("end", "call", "text", "cut", "paused"))
MORE = answer(Stop.MAX_TOKENS, "and more ", tokens=50)


def records(events: list[Event], limits: Limits | None = None, **more: Any) -> list[dict[str, Any]]:
    return list(drive(events, limits, **more).records)


def records_named(name: str, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [record for record in found if record["event"] == name]


def test_every_response_is_observed() -> None:
    """ZeroClaw RFI 2309: provider, model, normalized reason, raw reason, turn id, iteration."""
    found = records_named("stop_reason_observed", records([CALL, TEXT, END]))
    assert found[0] == {
        "event": "stop_reason_observed", "turn_id": "t1", "provider": "somebody", "model": "m-1",
        "normalized_reason": "tool_call", "raw_reason": "tool_calls", "iteration": 1,
    }
    assert [(r["normalized_reason"], r["raw_reason"], r["iteration"]) for r in found[1:]] == [
        ("max_tokens", "length", 2), ("end_turn", "stop", 3),
    ]


def test_the_observed_reason_is_the_effective_one_beside_the_raw_word() -> None:
    (found,) = records_named("stop_reason_observed", records([answer(Stop.TOOL_CALL, call(CUT))])[:1])
    assert (found["normalized_reason"], found["raw_reason"]) == ("max_tokens", "tool_calls")
    (absent,) = records_named("stop_reason_observed", records([answer(Stop.INTERRUPTED, "x")]))
    assert absent["raw_reason"] is None


def test_each_continuation_is_an_attempt_with_what_is_left() -> None:
    """ZeroClaw RFI 2309: attempt index, cumulative output tokens and chars, budget remaining."""
    found = records_named("continuation_attempt", records([TEXT, MORE, END]))
    assert found[0] == {
        "event": "continuation_attempt", "turn_id": "t1", "provider": "somebody", "model": "m-1", "attempt": 1,
        "cumulative_output_tokens": 100, "cumulative_output_chars": 15,
        "continuation_tokens": 100, "continuation_chars": 15,
        "attempts_remaining": 2, "tokens_remaining": 300, "chars_remaining": 119_985,
    }
    assert [(r["attempt"], r["cumulative_output_tokens"], r["attempts_remaining"]) for r in found[1:]] == [(2, 150, 1)]
    unbounded = records_named("continuation_attempt", records([TEXT, END], request=with_cap(REQUEST, None)))
    assert unbounded[0]["tokens_remaining"] is None


@each_row(("events", "limits", "terminal", "attempts"), [
    ([TEXT, END], {}, "completed", 1),
    ([TEXT, MORE, END], {"continuation_max_attempts": 1}, "retry_limit", 1),
    ([TEXT], {"continuation_max_attempts": 0}, "retry_limit", 0),
    ([TEXT], {"continuation_max_output_chars": 1}, "budget_exhausted", 0),
    ([TEXT, ABC["safety"]], {}, "safety_blocked", 1),
    ([CUT_CALL, CUT_CALL], {}, "repair_failed", 0),
    ([answer(Stop.MALFORMED_TOOL_CALL)] * 2, {}, "repair_failed", 0),
    ([answer(Stop.MAX_TOKENS)], {"max_thinking_only": 0}, "no_progress", 0),
    ([ABC["context"]], {}, "context_window_exceeded", 0),
])
def test_the_end_of_a_cut_turn_is_told(
    events: list[Event], limits: dict[str, Any], terminal: str, attempts: int
) -> None:
    (found,) = records_named("continuation_terminated", records(events, Limits(**limits)))
    assert found == {
        "event": "continuation_terminated", "turn_id": "t1", "provider": "somebody", "model": "m-1",
        "terminal_reason": terminal, "attempts": attempts,
    }


@each_row("events", [
    [END], [CALL, END], [PAUSED, END], [ABC["safety"]], [ABC["error"]], [ABC["operator"]],
])
def test_a_turn_that_was_never_cut_ends_without_that_event(events: list[Event]) -> None:
    assert records_named("continuation_terminated", records(events)) == []


# -- repairs ---------------------------------------------------------------------------------------------------------

ONLY_CUT = answer(Stop.MAX_TOKENS, call(CUT), tokens=100)


def repair(issue: str, attempted: bool, succeeded: bool, attempt: int) -> dict[str, Any]:
    return {
        "event": "tool_payload_repair", "turn_id": "t1", "provider": "somebody", "model": "m-1", "parse_issue": issue,
        "repair_attempted": attempted, "repair_succeeded": succeeded, "attempt": attempt,
    }


def test_a_repair_that_succeeded() -> None:
    """ZeroClaw RFI 2309: parse issue type, repair attempted, success or failure."""
    assert records_named("tool_payload_repair", records([ONLY_CUT, CALL, END])) == [repair("cut", True, True, 1)]


def test_a_repair_that_failed_and_one_that_was_not_attempted() -> None:
    assert records_named("tool_payload_repair", records([ONLY_CUT, END])) == [repair("cut", True, False, 1)]
    none = Limits(continuation_tool_repair_attempts=0)
    assert records_named("tool_payload_repair", records([ONLY_CUT], none)) == [repair("cut", False, False, 0)]


def test_each_attempt_of_several_is_told_once() -> None:
    twice = Limits(continuation_tool_repair_attempts=2)
    found = records_named("tool_payload_repair", records([ONLY_CUT, ONLY_CUT, CALL, END], twice))
    assert found == [repair("cut", True, False, 1), repair("cut", True, True, 2)]


def test_a_repair_that_pauses_is_not_decided_yet() -> None:
    assert records_named("tool_payload_repair", records([ONLY_CUT, PAUSED, CALL, END])) == [repair("cut", True, True,
                                                                                                   1)]


@each_row(("event", "issue"), [
    (answer(Stop.MALFORMED_TOOL_CALL), "no_call"),
    (answer(Stop.TOOL_CALL, call("nonsense")), "invalid"),
    (answer(Stop.TOOL_CALL, call("")), "empty"),
    (answer(Stop.TOOL_CALL, call(None)), "absent"),
    (answer(Stop.TOOL_CALL, call("[1]")), "not_object"),
    # A server appends such an empty call, or puts it first: it is no payload.
    (answer(Stop.TOOL_CALL, call(None, name=""), call("[1]")), "not_object"),
    (answer(Stop.MAX_TOKENS, call(), tokens=100), "complete"),
])
def test_what_was_wrong_with_the_payload_is_named(event: Event, issue: str) -> None:
    assert records_named("tool_payload_repair", records([event, CALL, END]))[0] == repair(issue, True, True, 1)


# -- form ------------------------------------------------------------------------------------------------------------


def test_records_are_flat_and_serialisable() -> None:
    events = [TEXT, CUT_CALL, CALL, ABC["unknown"]]
    for record in records(events):
        assert all(value is None or type(value) in (str, int, bool) for value in record.values()), record
        assert json.loads(json.dumps(record)) == record


# -- metrics ---------------------------------------------------------------------------------------------------------

WHO = ("somebody", "m-1")


def test_two_counters_and_two_histograms() -> None:
    """ZeroClaw RFI 2309, "Metrics"."""
    found = [
        *records([TEXT, MORE, END]),  # continued twice, completed
        *records([TEXT], Limits(continuation_max_attempts=0)),  # cut, not continued
        *records([CUT_CALL, CUT_CALL]),  # cut, not repaired
        *records([END]),
        *records([TEXT, END], provider="other"),
    ]
    metrics = fold_metrics(found)
    assert metrics.continuations == {WHO: 2, ("other", "m-1"): 1}
    assert metrics.truncation_exits == {WHO: 2}
    assert metrics.attempts_per_turn == {WHO: (2, 0, 0), ("other", "m-1"): (1,)}
    assert metrics.latency_ms == {}
    assert metrics.latency_missing == 2, "where times are absent, latency is not recorded"


@each_row(("events", "limits", "exits"), [
    ([TEXT], {"continuation_max_attempts": 0}, 1),
    ([TEXT], {"continuation_max_total_completion_tokens": 1}, 1),
    ([answer(Stop.MAX_TOKENS)], {"max_thinking_only": 0}, 1),
    ([CUT_CALL, END], {}, 1),
    ([ABC["context"]], {}, 1),
    ([TEXT, END], {}, 0),
    ([TEXT, ABC["safety"]], {}, 0),
    ([TEXT, ABC["error"]], {}, 0),
])
def test_an_exit_that_leaves_a_cut_turn_cut_is_counted(events: list[Event], limits: dict[str, Any], exits: int) -> None:
    assert fold_metrics(records(events, Limits(**limits))).truncation_exits == ({WHO: exits} if exits else {})


def test_latency_of_continued_turns_where_it_is_known() -> None:
    metrics = fold_metrics([*records([TEXT, END]), *records([END])], {"t1": 1250.0})
    assert metrics.latency_ms == {WHO: (1250.0,)}
    assert metrics.latency_missing == 0


def test_nothing_folds_to_nothing() -> None:
    assert fold_metrics(()) == Metrics()
    assert fold_metrics(records([END, END])) == Metrics()


def test_spent_stands_against_each_of_the_four_limits() -> None:
    turn = last(drive([TEXT, CUT_CALL, CALL, END], Limits(continuation_tool_repair_attempts=2)))
    assert limit_usage(turn) == (
        ("continuation_max_attempts", "attempts", 1, 3),
        ("continuation_max_total_completion_tokens", "cont_tokens", 200, 400),
        ("continuation_max_output_chars", "cont_chars", 22, 120_000),
        ("continuation_tool_repair_attempts", "repairs", 1, 2),
    )
    assert limit_usage(last(drive([END], request=with_cap(REQUEST, None))))[1][3] is None


def test_the_model_of_the_request_stands_where_the_response_names_none() -> None:
    from dataclasses import replace

    from loop_core.judge.classify import judge
    from loop_core.turn.state import ProviderResponse

    nameless = replace(answer(Stop.END_TURN, "x").response, model=None)
    (found,) = records([ProviderResponse(nameless, judge(nameless))])
    assert found["model"] == "m-1"
    (unknown,) = records([ProviderResponse(nameless, judge(nameless))],
                         request=replace(REQUEST, model=None, tools=(WRITE,)))
    assert unknown["model"] == ""
