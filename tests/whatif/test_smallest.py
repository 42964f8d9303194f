"""The fewest output tokens for a turn and the knee of all, by hand."""

from __future__ import annotations

from array import array

from inspector.replay.case import open_case
from inspector.report.lines.spans import plain, text_of
from inspector.sessions import open_paths
from inspector.sessions.folders import samples
from inspector.whatif.grid import UNDONE_CODE, Axis, End, Grid, TurnGrid, parse_axes
from inspector.whatif.grid_lines import budget_line, headline, smallest_lines
from inspector.whatif.grid_report import document
from inspector.whatif.grid_run import TunedGrid, tune
from inspector.whatif.smallest import cells_from, completes_in_larger, knee, smallest_limits, why_incomplete
from inspector.whatif.smallest_cap import Fewest
from loop_core.turn.limits import Spend
from loop_core.turn.state import State

CASES = {sample.path.stem[:2]: sample.path for sample in samples()}


def tune_case(number: str, *specs: str) -> TunedGrid:
    return tune(open_case(open_paths([str(CASES[number])])), Grid(parse_axes(specs)))


def test_the_first_sample_needs_five_attempts():
    """README of the samples: turn 1 needs five continuations; every response spends the whole 40 tokens."""
    made = tune_case("01", "attempts=0..6", "tokens=160,200,239,240,1000")
    first, second = (smallest_limits(made, number) for number in (0, 1))
    assert made.grid.values(first.cell) == (5, 240)
    assert first.by_axis == (5, 240)
    needs = dict(first.end.needs)
    assert needs["continuation_max_attempts"] == 5
    assert needs["continuation_max_total_completion_tokens"] == 6 * 40, "with less, the last request asks for less"
    assert (first.end.segments, first.end.spend.output_tokens) == (6, 6 * 40)
    assert second.cell is None
    assert why_incomplete(made, second.end) == "the recording ends first: only a live run can show what follows"
    # Turn 2 spends its 40 tokens in every cell.
    assert (knee(made).enough.cell, knee(made).enough.completed, knee(made).enough.tokens) == (first.cell, 1, 280)


def test_three_attempts_are_not_enough_for_it():
    made = tune_case("01", "attempts=0..4")
    found = smallest_limits(made, 0)
    assert found.cell is None
    assert found.by_axis == ()
    assert why_incomplete(made, found.end) == "the grid's largest continuation_max_attempts is not enough"
    assert knee(made) is None


def test_what_no_budget_helps_says_why():
    made = tune_case("12", "attempts=0..3")
    why = why_incomplete(made, smallest_limits(made, 0).end)
    assert why == "it ends in Abort (safety_blocked), whatever the budget"
    made = tune_case("01", "repairs=0..3")
    why = why_incomplete(made, smallest_limits(made, 0).end)
    assert why == "continuation_max_attempts stops it, which this grid does not vary"


def test_a_repair_is_a_budget_of_its_own():
    made = tune_case("05", "repairs=0..2", "attempts=0,3")
    found = smallest_limits(made, 0)
    assert made.grid.values(found.cell) == (1, 0)
    assert dict(found.end.needs)["continuation_tool_repair_attempts"] == 1


# -- made by hand ----------------------------------------------------------------------------------------------------


def end(tokens: int, done: bool = True) -> End:
    state, why = (State.COMPLETE, "completed") if done else (State.ABORT_PARTIAL, "retry_limit")
    limit, spent = "" if done else "continuation_max_attempts", Spend(requests=1, output_tokens=tokens)
    return End(state, why, limit, 1, spent, "RECORDED", complete=done)


def grid_of(*turns: list[End | None]) -> TunedGrid:
    made = []
    for number, cells in enumerate(turns):
        ends = tuple(dict.fromkeys(cell for cell in cells if cell is not None))
        codes = array("I", [UNDONE_CODE if cell is None else ends.index(cell) for cell in cells])
        made.append(TurnGrid(f"t{number}", "-", ends, codes))
    size = len(turns[0])
    left = sum(cell is None for cells in turns for cell in cells)
    return TunedGrid(Grid((Axis("continuation_max_attempts", tuple(range(size))),)), tuple(made), 9 - left, 9)


def test_the_knee_is_where_further_turns_begin_to_cost_more():
    """Spend 0, 10, 20, 100 for 0, 1, 2, 3 turns: the third turn costs 80 where the two before cost 10 each."""
    no = end(0, False)
    made = grid_of([no, end(10), end(10), end(10)], [no, no, end(10), end(10)], [no, no, no, end(80)])
    found = knee(made)
    assert [(point.completed, point.tokens) for point in found.curve] == [(0, 0), (1, 10), (2, 20), (3, 100)]
    assert (found.enough.cell, found.knee.cell) == (3, 2)


def test_an_even_curve_has_no_knee_and_a_larger_budget_for_nothing_is_not_on_it():
    no = end(0, False)
    made = grid_of([no, end(10), end(10), end(30)], [no, no, end(10), end(10)])
    found = knee(made)
    assert [point.cell for point in found.curve] == [0, 1, 2]
    assert found.knee == found.enough == found.curve[-1]


def test_cells_that_were_not_run_count_nowhere():
    no = end(0, False)
    made = grid_of([no, end(10), None], [no, None, None])
    assert made.run_counts == [2, 1, 0]
    assert made.completed == [0, 1, 0]
    assert [made.is_comparable(cell) for cell in range(3)] == [True, False, False]
    assert knee(made) is None, "the cell in which a turn completes was not run in the other"
    assert made.cancelled
    assert smallest_limits(made, 0).cell == 1
    assert knee(grid_of([None, None])) is None
    assert smallest_limits(grid_of([None, None]), 0) is None


def test_the_same_spend_names_the_strictest_cell():
    made = grid_of([end(5, False), end(10), end(10)])
    assert smallest_limits(made, 0).cell == 1
    assert knee(made).enough.cell == 1


# -- what larger budgets do ------------------------------------------------------------------------------------------


def plane_of(*rows: str) -> TunedGrid:
    """One turn under attempts by max_tokens, the last as recorded: `x` completes for 10 tokens, `X` for 20."""
    ends = {"x": end(10), "X": end(20), ".": end(0, False)}
    kinds = "".join(rows)
    places = tuple(dict.fromkeys(kinds))
    turn = TurnGrid("t1", "-", tuple(ends[kind] for kind in places), array("I", map(places.index, kinds)))
    budgets = *(100 * number for number in range(1, len(rows[0]))), None
    axes = Axis("continuation_max_attempts", tuple(range(len(rows)))), Axis("max_tokens", budgets)
    return TunedGrid(Grid(axes), (turn,), 1, 1)


def test_nothing_is_said_of_larger_cells_where_each_completes():
    made = plane_of("....", ".xX.", "XxX.")
    assert cells_from(made.grid, 5) == [5, 6, 9, 10], "as recorded is larger than no number"
    assert completes_in_larger(made, 5, 0)
    assert completes_in_larger(made, 5)
    assert text_of(budget_line(made, Fewest(5, None, ()), 0)) == "with max_tokens 200 and up to 1 continuation"
    assert text_of(headline(made)) == (
        "1 OF 1 CAN COMPLETE  fewest output tokens 10 with max_tokens 200 and up to 1 continuation: from the recording")


def test_it_is_said_where_a_larger_cell_does_not_complete():
    for rows in (("....", ".x.x", "XxXx"), ("....", ".xXx", "X.Xx"), ("....", ".xXx", "Xx.x")):
        made = plane_of(*rows)
        assert not completes_in_larger(made, 5, 0)
        assert not completes_in_larger(made, 5)
        assert text_of(headline(made)) == (
            "1 OF 1 CAN COMPLETE  fewest output tokens 10 with max_tokens 200 and up to 1 continuation, but not always "
            "with more: from the recording")
        told = document(made)
        assert told["enough"]["every_larger"] is False
        assert told["turns"][0]["smallest"]["every_larger"] is False


def test_a_cell_that_was_not_run_is_none_that_completes():
    made = grid_of([end(5, False), end(10), None])
    assert not completes_in_larger(made, 1, 0)
    assert not completes_in_larger(made, 1)


def test_smaller_values_that_complete_too_are_said_to_cost_no_less():
    made = plane_of("..X.", "XxX.")
    told = plain(list(smallest_lines(made, smallest_limits(made, 0))))
    assert "also completes, for no fewer output tokens, with: no continuations or max_tokens 100" in " ".join(
        told.split())
    made = plane_of("....", ".xX.")
    assert "completes also" not in plain(list(smallest_lines(made, smallest_limits(made, 0))))
