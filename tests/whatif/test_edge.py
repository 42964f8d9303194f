"""Between the values of a grid: the smallest max_tokens, to the token, and the grain at which it is known."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from inspector.config.settings import INITIAL, Settings
from inspector.report.lines.spans import text_of
from inspector.whatif import smallest as edge
from inspector.whatif.grid import Axis, End, Grid
from inspector.whatif.grid_lines import grain_line
from inspector.whatif.grid_run import tune
from inspector.whatif.smallest import cost, knee, smallest_limits
from tests.scenes.recordings import ASKS, chat, lines, pair_of, user
from tests.whatif.test_simulation import WORDS, case_of, stream
from tests.whatif.test_sweep import brute, stories

SAMPLE = "sample:02"
"""Its answer has 134 tokens in three segments, by its own usage; the shortest was cut at 56."""


def grid(*budgets: int | None, attempts: tuple[int, ...] = (0, 9), simulate: bool = True) -> Grid:
    return Grid((Axis("continuation_max_attempts", attempts), Axis(INITIAL, budgets)), Settings(simulate=simulate))


def test_the_smallest_budget_is_as_many_tokens_as_the_answer_has():
    """12 words of a token each, and the end mark: 13 in one request, and with 12 a second one is needed."""
    case = case_of(pair_of(ASKS, stream(*WORDS, tokens=13), max_tokens=100, stream=True))
    found = smallest_limits(tune(case, grid(4, 64)), 0)
    assert (found.edge.budget, found.edge.grain) == (13, "to the token")
    assert cost([found.at_edge]) == (13, 1)
    assert found.edge.below[0].spend.requests == 1
    assert not found.edge.below[0].complete, "no attempts"
    assert edge.limits_of(found.budget, found.at_edge)[INITIAL] == 13


def test_fewest_output_tokens_go_before_fewest_requests(inspector):
    """A cut call is paid for again: 61 tokens let sample 05 send its call at once, 60 make it cost 115."""
    told = json.loads(inspector("tune", "sample:05", "--json").out)["turns"][0]
    best = told["ends"][told["cells"][told["smallest"]["cell"]]]
    assert all(end["output_tokens"] >= best["output_tokens"] for end in told["ends"]
               if end["terminal_reason"] == "completed")
    assert told["smallest"]["below"]["output_tokens"] > best["output_tokens"]


@pytest.mark.parametrize(("url", "found"), [
    ("https://api.openai.com/v1/chat/completions", edge.EXACT), ("https://api.x.ai/v1/chat/completions", edge.EXACT),
    ("https://llm.example/v1/chat/completions", edge.THINKING),
], ids=["openai", "xai", "unknown"])
def test_thinking_that_an_unknown_server_may_count_leaves_the_number_a_guess(url: str, found: str) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 30, "completion_tokens_details": {"reasoning_tokens": 20}}
    case = case_of(pair_of(ASKS, chat("a" * 40, usage=usage), max_tokens=50, url=url))
    limits = smallest_limits(tune(case, grid(2, 64)), 0)
    assert limits.edge.grain == found
    assert text_of(grain_line(limits.edge)).startswith("known" if found == edge.EXACT else "estimated: max_tokens")


@pytest.mark.parametrize("tokens", [None, 0])  # a gateway writes 0 where it knows no count
def test_what_was_only_counted_in_characters_says_so(tokens: int | None):
    case = case_of(pair_of(ASKS, chat("a" * 40, tokens=tokens), max_tokens=50))
    found = smallest_limits(tune(case, grid(2, 64)), 0)
    assert (found.edge.budget, found.edge.grain) == (10, edge.UNCOUNTED)
    told = text_of(grain_line(found.edge))
    assert told.startswith("estimated: max_tokens 10 because some answers report no tokens: four characters")
    assert "known" not in told
    both = chat("a" * 40, tokens=26)  # of two choices
    both["choices"].append({**both["choices"][0], "index": 1})
    found = smallest_limits(tune(case_of(pair_of(ASKS, both, max_tokens=50, n=2)), grid(2, 64)), 0)
    assert (found.edge.budget, found.edge.grain) == (10, edge.UNCOUNTED)


def test_over_a_recording_the_grain_is_its_responses():
    case = case_of(pair_of(ASKS, stream(*WORDS, tokens=13), max_tokens=100, stream=True))
    found = smallest_limits(tune(case, grid(4, 64, simulate=False)), 0)
    assert found.edge.grain == edge.RESPONSES
    assert text_of(grain_line(found.edge)).startswith("known: max_tokens ")
    assert found.edge.budget == 1, "max_tokens cuts no recorded response"


def test_a_budget_as_recorded_has_no_edge():
    case = case_of(pair_of(ASKS, stream(*WORDS, tokens=13), max_tokens=100, stream=True))
    assert smallest_limits(tune(case, grid(None)), 0).edge is None


@hypothesis_settings(max_examples=20, deadline=None)
@given(stories, st.sets(st.integers(1, 150), min_size=1, max_size=3))
def test_the_edge_costs_no_more_than_the_cell_and_one_token_less_does(exchanges, budgets):
    case = case_of(*exchanges)
    tuned = tune(case, grid(*sorted(budgets)), jobs=1)
    for number in range(len(case.recording.turns)):
        found = smallest_limits(tuned, number)
        if found is None or found.edge is None:
            continue
        chosen = dict(zip(tuned.grid.names, tuned.grid.values(found.cell), strict=True))
        for budget, wanted in ((found.edge.budget, True), (found.edge.budget - 1, False)):
            if budget:
                given_ = tuned.grid.settings_with({**chosen, INITIAL: budget})
                end = brute(case, given_)[number]
                assert (end.complete and cost([end]) <= cost([found.end])) is wanted, budget


# -- all turns together ----------------------------------------------------------------------------------------------


def turns_of(*sizes: int):
    """A turn for each size, of as many words, each a token, and the end mark."""
    return case_of(*(
        pair_of([user(f"question {number}")], stream(*(f"word{word} " for word in range(size)), tokens=size + 1),
              max_tokens=100, stream=True)
        for number, size in enumerate(sizes)))


def test_what_is_enough_for_all_turns_is_known_to_the_token():
    """7, 21 and 13 tokens: 21 cut none of them, and 20 cut the second turn alone."""
    case = turns_of(6, 20, 12)
    found = knee(tune(case, grid(4, 64)))
    assert (found.budget, found.edge.grain) == (21, "to the token")
    assert (found.edge.turns, found.edge.worse) == ((0, 1, 2), (1,))
    assert cost(found.edge.ends) == (7 + 21 + 13, 3)
    assert [end.complete for end in found.edge.below] == [True, False, True], "no attempts"


def test_the_coarsest_grain_is_that_of_all_turns():
    case = case_of(pair_of([user("one")], stream(*WORDS, tokens=13), max_tokens=100, stream=True),
                   pair_of([user("two")], chat("a" * 40, tokens=None), max_tokens=50))
    found = knee(tune(case, grid(4, 64)))
    assert (found.budget, found.edge.grain) == (13, edge.UNCOUNTED)


def test_without_max_tokens_on_the_grid_nothing_is_refined():
    made = tune(turns_of(6, 20), Grid((Axis("continuation_max_attempts", (0, 3)),)))
    assert knee(made).edge is None
    assert knee(tune(turns_of(6, 20), grid(None))).edge is None, "as recorded is no number"


@hypothesis_settings(max_examples=14, deadline=None)
@given(st.lists(st.integers(0, 24), min_size=1, max_size=4), st.sets(st.integers(1, 40), min_size=1, max_size=3),
       st.sampled_from([(0,), (2,), (0, 5)]))
def test_no_budget_at_all_is_better_than_the_one_that_is_enough_for_all(sizes, budgets, attempts):
    """Every budget up to that of the cell, each by a replay of its own."""
    case = turns_of(*sizes)
    tuned = tune(case, grid(*sorted(budgets), attempts=attempts), jobs=1)
    found = knee(tuned)
    if found is None or found.edge is None:
        return
    chosen = dict(zip(tuned.grid.names, tuned.grid.values(found.enough.cell), strict=True))
    every = {budget: brute(case, tuned.grid.settings_with({**chosen, INITIAL: budget}))
             for budget in range(1, chosen[INITIAL] + 1)}
    whole = {budget: cost(ends) for budget, ends in every.items()
             if all(end.complete for end, best in zip(ends, every[chosen[INITIAL]], strict=True) if best.complete)}
    least = min(whole.values())
    assert found.budget == min(budget for budget, spent in whole.items() if spent == least)
    assert cost(found.edge.ends) == least


@hypothesis_settings(max_examples=20, deadline=None)
@given(st.lists(stories, min_size=2, max_size=3), st.sets(st.integers(1, 150), min_size=1, max_size=2))
def test_the_edge_of_all_turns_keeps_what_the_cell_does_and_one_token_less_does_not(told, budgets):
    case = case_of(*(exchange for story in told for exchange in story))
    tuned = tune(case, grid(*sorted(budgets)), jobs=1)
    found = knee(tuned)
    if found is None or found.edge is None:
        return
    chosen = dict(zip(tuned.grid.names, tuned.grid.values(found.enough.cell), strict=True))

    def at(budget: int) -> list[End]:
        return brute(case, tuned.grid.settings_with({**chosen, INITIAL: budget}))

    cell = at(chosen[INITIAL])
    assert edge.is_as_good(at(found.budget), cell)
    if found.budget > 1:
        below = at(found.budget - 1)
        assert not edge.is_as_good(below, cell)
        for place, (less, kept) in enumerate(zip(below, at(found.budget), strict=True)):
            assert (place in found.edge.worse) is not edge.is_as_good([less], [kept])


# -- every form that a grid is told in -------------------------------------------------------------------------------


def test_text_says_the_budget_and_its_grain_and_runs_it(inspector):
    told = inspector("tune", SAMPLE).out
    assert " ".join(told.split()).startswith(
        "1 OF 1 CAN COMPLETE smallest max_tokens 20 with up to 6 continuations (in column 28): 7 answers, a guess "
        "(from the recording 56 with up to 2 continuations) · fewest output tokens 134 with max_tokens 134 and no "
        "continuations: a guess "
        "grid")
    assert "1 answer, 134 output tokens" in told
    assert " 0 tokens" not in told
    assert "max_tokens 134 to the token; with 133" in " ".join(told.split())
    assert told.endswith("--set max_tokens=134 --simulate\n")


def test_json_and_csv_say_the_budget_and_its_grain(inspector):
    found = json.loads(inspector("tune", SAMPLE, "--json").out)["turns"][0]["smallest"]
    assert (found["limits"][INITIAL], found["grain"]) == (134, "to the token")
    assert found["below"]["terminal_reason"] != "completed"
    rows = list(csv.DictReader(io.StringIO(inspector("tune", SAMPLE, "--csv", "-").out)))
    assert [(row["max_tokens"], row["fewest_max_tokens"], row["grain"]) for row in rows if row["grain"]] == [
        ("134", "134", "to the token")]
    assert [(row["continuation_max_attempts"], row["max_tokens"], row["smallest_max_tokens"]) for row in rows
            if row["smallest_max_tokens"]] == [("6", "28", "20")], "what text and JSON call so"


@pytest.fixture
def two(tmp_path):
    """Turns of 13 and of 5 tokens in one file."""
    path = tmp_path / "two.jsonl"
    path.write_bytes(lines(pair_of([user("one")], stream(*WORDS, tokens=13), max_tokens=100, stream=True),
                           pair_of([user("two")], stream(*WORDS[:4], tokens=5), max_tokens=100, stream=True)))
    return str(path)


AXES = ("--grid", "attempts=0", "--grid", "max_tokens=4,64")


def test_text_says_what_is_enough_for_all_turns_and_runs_it(two, inspector):
    told = inspector("tune", two, *AXES).out
    assert " ".join(told.split()).startswith(
        "2 OF 2 CAN COMPLETE smallest max_tokens 13 with no continuations (in column 64): from the recording · "
        "fewest output tokens 18 with max_tokens 13 and no continuations (in column 64): from the recording grid")
    rows = " ".join(told[told.index("for all turns"):].split())
    assert "fewest output tokens with max_tokens 13 and no continuations 2 of 2 complete · 18 output tokens" in rows
    assert "known: max_tokens 13 to the token; with 12 turn 1 fails: the limit attempts stops it after 1 answer" in rows
    command = told.splitlines()[-1]
    assert "--set max_tokens=13 --simulate" in command


def test_json_and_csv_say_what_is_enough_for_all_turns(two, inspector):
    enough = json.loads(inspector("tune", two, *AXES, "--json").out)["enough"]
    assert enough == {
        "cell": 1, "completed": 2, "output_tokens": 18,
        "edge": {"max_tokens": 13, "grain": "to the token", "completed": 2, "output_tokens": 18, "requests": 2,
                 "below": {"completed": 1, "output_tokens": 17, "requests": 2, "worse": [1]}},
        "every_larger": True}
    rows = list(csv.DictReader(io.StringIO(inspector("tune", two, *AXES, "--csv", "-").out)))
    assert [(row["max_tokens"], row["turn"], row["enough_max_tokens"], row["enough_grain"]) for row in rows] == [
        ("4", "1", "", ""), ("4", "2", "", ""), ("64", "1", "13", "to the token"), ("64", "2", "13", "to the token")]


@pytest.mark.parametrize("budgets", [(134,), (133, 134), (1, 134, 9_000)])
def test_an_edge_on_the_grid_is_found_too(budgets, inspector):
    asked_for = ",".join(map(str, budgets))
    told = json.loads(inspector("tune", SAMPLE, "--grid", f"max_tokens={asked_for}", "--grid", "attempts=0",
                                "--json").out)
    assert told["turns"][0]["smallest"]["limits"][INITIAL] == 134
