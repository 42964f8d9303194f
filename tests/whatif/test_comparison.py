"""A branch beside its original: what the change did, first; then each turn, its spend, and its text as a diff."""

from __future__ import annotations

import json

from inspector.config.settings import Settings, settings_of
from inspector.whatif.branch_report import summary, text, values
from inspector.whatif.tree import branch
from tests.report.test_inert import HOSTILE, dangerous
from tests.scenes.recordings import ASKS, PARTS, chat, cut_call_ran, cut_text, pair_of, show, user


def branch_with(found, **assignments):
    return branch(found, settings_of({name: str(value) for name, value in assignments.items()}, Settings()))


def test_attempts_that_were_too_few():
    made = branch_with(show(*cut_text(*PARTS)), continuation_max_attempts=5)
    said = text(made).splitlines()
    assert said[0] == "attempts=5: turn 1 ends in Complete"
    assert said[1] == "fidelity: RECORDED; the recording answers everything that was asked"
    assert "turn 1 of 1 (t1): AbortPartial, retry_limit became Complete" in said
    assert any(line.startswith("  verdict: LIMIT REACHED became CUT, COMPLETED · ") for line in said)
    assert "  segments: 4 became 5" in said
    # Four cut answers of 10 tokens, and the continuation that completed them, of 5.
    chars = len("".join(PARTS))
    spent = f"attempts 4 of 5, cont_tokens 45 of no bound, cont_chars {chars} of 120,000, repairs 0 of 1"
    assert f"  spent: 45 output tokens, {spent}" in said
    assert "  -" + "".join(PARTS[:4]) in said
    assert "  +" + "".join(PARTS) in said


def test_a_policy_that_runs_a_cut_call_to_the_end_is_not_said_to_complete_the_turn():
    made = branch_with(show(*cut_call_ran()), policy="pi-presence")
    said = text(made).splitlines()
    assert said[0] == "policy=pi-presence: turn 1 ends in Complete, CUT CALL RUN"
    assert "  verdict: CUT CALL RUN, as before" in said


def test_a_call_that_another_policy_would_run_is_named():
    said = text(branch_with(show(*cut_call_ran()[:1]), policy="pi-presence"))
    assert "  verdict: CALL HELD, as before · " in said
    assert "; policy pi-presence runs such a call, here it was not run\n" in said


def test_the_first_difference_is_where_the_guard_stood():
    # Request, then three times EvaluateStop > ContinuePending > RequestContinuation, then EvaluateStop,
    # ContinuePending: eleven-and-one steps alike, and the next is AbortPartial or RequestContinuation.
    found = show(*cut_text(*PARTS))
    made = branch_with(found, continuation_max_attempts=5)
    alike = 1 + 3 * 3 + 2
    assert made.difference == alike
    assert (
        f"first difference: step {alike + 1}, AbortPartial (retry_limit) became RequestContinuation (under_limits)"
        in text(made)
    )
    assert values(made)["first_difference"] == alike + 1


def test_nothing_changes():
    made = branch_with(show(*cut_text(*PARTS[:2])))
    assert summary(made) == "nothing changes"
    assert text(made).startswith("unchanged: nothing changes\n")
    assert "as before" in text(made)
    assert "first difference" not in text(made)
    assert values(made)["first_difference"] is None


def test_where_the_recording_ends_it_says_so():
    found = show(*cut_text(*PARTS[:4], last="length"))
    made = branch_with(found, continuation_max_attempts=9)
    assert "what is asked at step" in text(made)
    assert "AbortPartial, retry_limit became Unrecorded" in text(made)
    (turn,) = values(made)["turns"]
    assert turn["unrecorded"] is True
    assert turn["after"] == {"final_state": "Unrecorded", "terminal_reason": "unrecorded"}


def test_fewer_attempts_give_a_shorter_answer():
    made = branch_with(show(*cut_text(*PARTS[:3])), continuation_max_attempts=1)
    assert summary(made) == "turn 1 ends in AbortPartial, retry_limit"
    (turn,) = values(made)["turns"]
    assert turn["spent"]["attempts"] == 1
    assert turn["limits"]["attempts"] == 1
    assert turn["merged_text_diff"][-2:] == ["-" + "".join(PARTS[:3]), "+" + "".join(PARTS[:2])]


def test_many_turns_that_end_otherwise_are_counted():
    second = [
        pair_of([user("and now " + str(n)), *each["request"]["body"]["messages"][1:]], each["response"]["body"])
        for n, each in [(1, each) for each in cut_text(*PARTS)]
    ]
    made = branch_with(show(*cut_text(*PARTS), *second), continuation_max_attempts=5)
    assert summary(made) == "turn 1 ends in Complete (and 1 more turn changes)"


def test_the_worst_of_the_turns_that_change_is_told_first():
    second = [pair_of([user("and now"), *each["request"]["body"]["messages"][1:]], each["response"]["body"])
              for each in cut_text(*PARTS)]
    found = show(*cut_text(*PARTS, last="length"), *second)
    assert [turn.verdict.word for turn in found.turns] == ["TRUNCATED", "LIMIT REACHED"]
    made = branch_with(found, continuation_max_attempts=9)
    said = text(made)
    assert summary(made).startswith("turn 2 ends in Complete (and 1 more")
    assert said.index("turn 2 of 2") < said.index("turn 1 of 2")


def spoken_cut_call():
    """A cut call with a text before it, which is gone under a larger cap: nobody knows what would have been said."""
    cut, after = cut_call_ran()
    cut["response"]["body"]["choices"][0]["message"]["content"] = "Writing it down."
    return [cut, after]


def test_a_turn_that_ends_in_another_state_comes_before_one_with_another_text():
    found = show(*cut_text(*PARTS), *spoken_cut_call())
    assert [turn.verdict.word for turn in found.turns] == ["LIMIT REACHED", "CUT CALL RUN"], "the second is worse"
    made = branch_with(found, max_tokens=2000, simulate="yes")
    assert [turn.id for turn in made.changed_turns] == ["t1", "t2"]
    assert summary(made) == "turn 1 ends in Complete (and 1 more turn changes)"


def test_a_turn_that_ends_as_before_with_another_text_says_so():
    made = branch_with(show(*spoken_cut_call()), max_tokens=2000, simulate="yes")
    assert summary(made) == "turn 1 ends in Unrecorded, as before, with another text"


def test_turns_that_stay_as_they_were_are_one_line():
    others = [pair_of([user(f"and now {n}")], chat("done")) for n in range(3)]
    said = text(branch_with(show(*cut_text(*PARTS), *others), continuation_max_attempts=5))
    assert said.endswith("\n\n3 turns as before\n")
    assert said.count("Complete") == 2, "in the summary and in turn 1"


def test_another_first_cap_is_answered_by_the_simulation():
    # Budget 4 x 20 = 80: two cut answers of 40 use it up. A cap of 100 takes it along to 400.
    found = show(*cut_text(*PARTS[:3], tokens=40, max_tokens=20))
    made = branch_with(found, max_tokens=100)
    (turn,) = values(made)["turns"]
    assert (made.name, turn["fidelity"]) == ("max_tokens=100", "SIMULATED")
    assert turn["before"]["terminal_reason"] == "budget_exhausted"
    assert turn["after"]["terminal_reason"] == "completed"
    assert turn["limits"]["cont_tokens"] == 400


def test_the_document_holds_the_branchs_own_explanation():
    made = values(branch_with(show(*cut_text(*PARTS)), continuation_max_attempts=5))
    assert (made["schema"], made["name"], made["fidelity"]) == ("loop-inspector/replay/2", "attempts=5", "RECORDED")
    assert made["explain"]["schema"] == "loop-inspector/explain/2"
    assert made["explain"]["turns"][0]["final_state"] == "Complete"
    assert json.loads(json.dumps(made)) == made


def test_a_hostile_text_is_inert_in_the_diff():
    bad = "".join(HOSTILE.values())
    made = branch_with(show(*cut_text("one " + bad + " and", " two " + bad, " three")), continuation_max_attempts=1)
    assert values(made)["turns"][0]["merged_text_diff"]
    assert dangerous(text(made)) == []
    text(made).encode("utf-8")


def test_an_equal_turn_has_no_diff():
    made = branch_with(show(pair_of(ASKS, chat("whole"))), continuation_max_attempts=0)
    assert values(made)["turns"][0]["merged_text_diff"] == []
    assert summary(made) == "nothing changes"


def test_a_turn_has_its_place_among_thousands_in_the_same_words_everywhere():
    sessions = [pair_of([user(f"{number}?")], chat("So.")) for number in range(1_000)]
    found = show(*sessions, *cut_text(*PARTS))
    made = branch_with(found, continuation_max_attempts=5)
    assert "turn 1,001 of 1,001 (t1001): AbortPartial, retry_limit became Complete" in text(made).splitlines()
    assert "turn 1,001 of 1,001" in found.headline()
