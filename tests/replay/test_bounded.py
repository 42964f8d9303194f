"""A bound on tokens that an operator sets: a larger recorded answer is no answer to a request that asks for less."""

from __future__ import annotations

import pytest

from inspector.config.settings import settings_of
from inspector.replay import Settings, replay
from inspector.replay.case import open_case
from inspector.sessions.open import open_paths
from loop_core.turn.state import State
from tests.scenes.recordings import PARTS, cut_text, lines
from tests.scenes.rows import each_row

TOTAL = "continuation_max_total_completion_tokens"


def final_turn(total: int | None, *, tokens: int = 10, cap: int | None = None, policy: str = "strict"):
    """The end of a turn of five answers, of which each cut one has `tokens` and the last 5, under a bound."""
    case = open_case(open_paths(["-"], stdin=lines(*cut_text(*PARTS, tokens=tokens, max_tokens=cap))))
    named = {"continuation_max_attempts": "9", "policy": policy, **({} if total is None else {TOTAL: str(total)})}
    return replay(case, settings_of(named, Settings())).turns[0].final_turn


@each_row(("total", "segments", "state"), [
    (9, 1, State.ABORT_PARTIAL),  # the first answer is given whatever the bound, since it was cut
    (10, 1, State.ABORT_PARTIAL),
    (11, 1, State.UNRECORDED),
    (19, 1, State.UNRECORDED),
    (20, 2, State.ABORT_PARTIAL),
    (44, 4, State.UNRECORDED),
    (45, 5, State.COMPLETE),
    (None, 5, State.COMPLETE),
])
def test_an_answer_that_the_bound_leaves_no_room_for_is_not_given(
    total: int | None, segments: int, state: State
) -> None:
    turn = final_turn(total)
    assert (sum(map(len, turn.answers)), turn.outcome) == (segments, state)


@pytest.mark.parametrize("simulate", ["no", "yes"])
def test_a_whole_answer_that_the_bound_would_have_cut_is_not_called_complete(simulate: str) -> None:
    case = open_case(open_paths(["-"], stdin=lines(*cut_text("One, two, three, four.", tokens=10, max_tokens=40))))

    def end(total: int) -> tuple[State | None, str]:
        turn = replay(case, settings_of({TOTAL: str(total), "simulate": simulate}, Settings())).turns[0].final_turn
        return turn.outcome, turn.joined_answer().text if turn.answers[-1] else ""

    used = case.recording.exchanges[0].response.usage.output_tokens
    assert end(used) == (State.COMPLETE, "One, two, three, four.")
    if simulate == "no":
        assert end(used - 1) == (State.UNRECORDED, "")
    else:
        state, text = end(used - 1)
        assert state is State.ABORT_PARTIAL
        assert "One, two, three, four.".startswith(text)


def test_the_notice_says_how_many_tokens_were_asked_for() -> None:
    assert final_turn(44).notice == "This loop asks for at most 4 tokens here, and the recorded answer has 5."


def test_what_an_answer_has_beyond_its_recorded_cap_does_not_count() -> None:
    """A server that counts reasoning apart reports more tokens than were asked for."""
    assert final_turn(45, tokens=30, cap=10).outcome is State.ABORT_PARTIAL, "the guard goes by what was spent"
    assert final_turn(70, tokens=30, cap=10).notice is not None
    assert sum(map(len, final_turn(70, tokens=30, cap=10).answers)) == 3


@pytest.mark.parametrize("policy", ["zeroclaw-rfi", "zeroclaw-merged"])
def test_a_policy_that_asks_without_a_bound_is_given_every_answer(policy: str) -> None:
    assert final_turn(44, policy=policy).outcome is State.COMPLETE


def test_an_answer_that_ended_at_its_cap_under_an_unknown_word_is_not_that_of_a_larger_cap() -> None:
    """Its rest was not recorded, if it has one: only a word that says so shows that it is whole."""
    for word, larger in (("ran_dry", State.UNRECORDED), ("stop", State.COMPLETE)):
        asked = lines(*cut_text("One, two, three, four, five.", last=word, max_tokens=5))
        case = open_case(open_paths(["-"], stdin=asked))
        ends = [replay(case, settings_of({"max_tokens": cap, "simulate": "yes"}, Settings())).turns[0].final_turn
                for cap in ("5", "50")]
        assert [end.outcome for end in ends] == [State.ABORT_PARTIAL if word == "ran_dry" else State.COMPLETE, larger]
