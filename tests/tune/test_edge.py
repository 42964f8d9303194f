"""Between the values of a grid: the smallest max_tokens, to the token, and the grain at which it is known."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from inspector.replay import first_run
from inspector.settings import INITIAL, Settings
from inspector.tune import edge
from inspector.tune.axes import Axis
from inspector.tune.edge import rank
from inspector.tune.grid import Grid
from inspector.tune.run import tune
from inspector.tune.smallest import smallest
from inspector.tune.stem import stem
from tests.scenes import ASKS, asked, chat
from tests.test_cli import inspector  # noqa: F401 - a fixture
from tests.test_simulation import WORDS, case_of, stream
from tests.tune.test_sweep import stories

SAMPLE = "sample:02"
"""Its answer has 134 tokens in three segments, by its own usage; the shortest was cut at 56."""


def grid(*budgets: int | None, attempts: tuple[int, ...] = (0, 9), simulate: bool = True) -> Grid:
    return Grid((Axis("continuation_max_attempts", attempts), Axis(INITIAL, budgets)), Settings(simulate=simulate))


def test_the_smallest_budget_is_as_many_tokens_as_the_answer_has():
    """12 words of a token each, and the end mark: 13 in one request, and with 12 a second one is needed."""
    case = case_of(asked(ASKS, stream(*WORDS, tokens=13), max_tokens=100, stream=True))
    found = smallest(tune(case, grid(4, 64)), 0)
    assert (found.edge.budget, found.edge.grain) == (13, "to the token")
    assert rank(found.edge.end) == (13, 1)
    assert found.edge.below.spent.requests == 1
    assert not found.edge.below.completed, "no attempts"
    assert found.limits[INITIAL] == 13


def test_fewest_output_tokens_go_before_fewest_requests(inspector):  # noqa: F811
    """A cut call is paid for again: 61 tokens let sample 05 send its call at once, 60 make it cost 115."""
    told = json.loads(inspector("tune", "sample:05", "--json").out)["turns"][0]
    best = told["ends"][told["cells"][told["smallest"]["cell"]]]
    assert all(end["output_tokens"] >= best["output_tokens"] for end in told["ends"]
               if end["terminal_reason"] == "completed")
    assert told["smallest"]["below"]["output_tokens"] > best["output_tokens"]


def test_what_was_only_counted_in_characters_says_so():
    case = case_of(asked(ASKS, chat("a" * 40, tokens=None), max_tokens=50))
    found = smallest(tune(case, grid(2, 64)), 0)
    assert (found.edge.budget, found.edge.grain) == (10, edge.UNCOUNTED)


def test_over_a_recording_the_grain_is_its_responses():
    case = case_of(asked(ASKS, stream(*WORDS, tokens=13), max_tokens=100, stream=True))
    found = smallest(tune(case, grid(4, 64, simulate=False)), 0)
    assert found.edge.grain == edge.RESPONSES
    assert found.edge.budget == 1, "max_tokens cuts no recorded response"


def test_a_budget_as_recorded_has_no_edge():
    case = case_of(asked(ASKS, stream(*WORDS, tokens=13), max_tokens=100, stream=True))
    assert smallest(tune(case, grid(None)), 0).edge is None


@hypothesis_settings(max_examples=40, deadline=None)
@given(stories, st.sets(st.integers(1, 150), min_size=1, max_size=3))
def test_the_edge_costs_no_more_than_the_cell_and_one_token_less_does(exchanges, budgets):
    case = case_of(*exchanges)
    tuned = tune(case, grid(*sorted(budgets)), jobs=1)
    for number, record in enumerate(case.loaded.turns):
        found = smallest(tuned, number)
        if found is None or found.edge is None:
            continue
        chosen = dict(zip(tuned.grid.names, tuned.grid.values(found.cell), strict=True))
        for budget, wanted in ((found.edge.budget, True), (found.edge.budget - 1, False)):
            if budget:
                given_ = tuned.grid.settings_with({**chosen, INITIAL: budget})
                end = stem(first_run(case, record, given_)).end
                assert (end.completed and rank(end) <= rank(found.end)) is wanted, budget


# -- every form that a grid is told in -------------------------------------------------------------------------------


def test_text_says_the_budget_and_its_grain_and_runs_it(inspector):  # noqa: F811
    told = inspector("tune", SAMPLE).out
    assert told.startswith("1 OF 1 COMPLETE  at most, from attempts=0, max_tokens=134 on\n")
    assert "134 output tokens · 1 request" in told
    assert " 0 tokens" not in told
    assert "max_tokens 134 to the token; with 133" in " ".join(told.split())
    assert told.endswith("--set max_tokens=134 --simulate\n")


def test_json_and_csv_say_the_budget_and_its_grain(inspector):  # noqa: F811
    found = json.loads(inspector("tune", SAMPLE, "--json").out)["turns"][0]["smallest"]
    assert (found["limits"][INITIAL], found["grain"]) == (134, "to the token")
    assert found["below"]["terminal_reason"] != "completed"
    rows = list(csv.DictReader(io.StringIO(inspector("tune", SAMPLE, "--csv", "-").out)))
    assert [(row["max_tokens"], row["smallest_max_tokens"], row["grain"]) for row in rows if row["grain"]] == [
        ("224", "134", "to the token")]


@pytest.mark.parametrize("budgets", [(134,), (133, 134), (1, 134, 9_000)])
def test_an_edge_on_the_grid_is_found_too(budgets, inspector):  # noqa: F811
    asked_for = ",".join(map(str, budgets))
    told = json.loads(inspector("tune", SAMPLE, "--grid", f"max_tokens={asked_for}", "--grid", "attempts=0",
                                "--json").out)
    assert told["turns"][0]["smallest"]["limits"][INITIAL] == 134
