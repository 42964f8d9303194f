"""How the axes of a grid are typed, and what is taken where none are."""

from __future__ import annotations

import pytest

from inspector.config.settings import Settings, name_of, settings_of
from inspector.replay.case import open_case
from inspector.sessions import open_paths
from inspector.sessions.folders import samples
from inspector.whatif.grid import MOST_CELLS, Axis, Grid, default_axes, parse_axes
from loop_core.errors import CallerError
from loop_core.turn.limits import SHORT_NAMES, Limits
from tests.scenes.recordings import chat, lines, pair_of, user
from tests.scenes.rows import each_row


@each_row(("spec", "values"), [
    ("3", (3,)),
    ("1..4", (1, 2, 3, 4)),
    ("64..256/64", (64, 128, 192, 256)),
    ("64..300/100", (64, 164, 264)),
    ("64..600*2", (64, 128, 256, 512)),
    ("512, 64,128", (64, 128, 512)),
    ("10..12,11,20", (10, 11, 12, 20)),
    ("none,64", (64, None)),
    ("64,recorded", (64, None)),
    ("1_000", (1_000,)),
    ("6_", (6,)),
    ("1_..1__0/3_", (1, 4, 7, 10)),
    ("7..7", (7,)),
])
def test_values_are_typed_as_lists_and_ranges(spec, values):
    assert parse_axes([f"max_tokens={spec}"]) == (Axis("max_tokens", values),)


@pytest.mark.parametrize(("given", "says"), [
    ("max_tokens", "expected NAME=SPEC"),
    ("colour=1..3", "not a limit that a replay uses"),
    ("max_follow_ups=1..3", "not a limit that a replay uses"),
    ("max_tokens=", "is neither a number nor a range"),
    ("max_tokens=many", "is neither a number nor a range"),
    ("max_tokens=-1", "is neither a number nor a range"),
    ("max_tokens=4..1", "begins above its end"),
    ("max_tokens=1..9/0", "never grows"),
    ("max_tokens=1..9*1", "never grows"),
    ("max_tokens=0..9*2", "never grows"),
    ("max_tokens=0..9", "is not a whole number from 1"),
    ("attempts=0..1001", "from 0 to 1,000"),
    ("attempts=none", "is not a whole number"),
    ("max_tokens=1..999999999", "more than 10,000 values"),
    ("max_tokens=1..9\x1b[2J", "is neither a number"),
    ("max_tokens=_.._", "is neither a number"),
    pytest.param("max_tokens=1.." + "4" * 5_000, "is neither a number", id="endless"),
])
def test_what_cannot_be_read_is_one_clear_line(given, says):
    with pytest.raises(CallerError, match=says) as raised:
        parse_axes([given])
    assert "\x1b" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_short_names_are_those_that_every_screen_shows():
    assert [axis.name for axis in parse_axes(["attempts=1", "tokens=2", "chars=3", "repairs=4"])] == [
        "continuation_max_attempts", "continuation_max_total_completion_tokens", "continuation_max_output_chars",
        "continuation_tool_repair_attempts"]


@each_row("name", [
    "continuation_max_attempts", "continuation_max_total_completion_tokens", "continuation_max_output_chars",
    "continuation_tool_repair_attempts", "max_thinking_only", "min_progress_chars", "max_empty_retries",
    "max_tool_steps", "max_identical_calls", "max_resumes", "max_tokens",
])
def test_every_limit_that_ends_a_recorded_turn_is_an_axis(name):
    assert parse_axes([f"{name}=1,2"]) == (Axis(name, (1, 2)),)


def test_the_names_that_screens_show_may_be_typed():
    assert [axis.name for axis in parse_axes(["cont_tokens=1", "cont_chars=2"])] == [
        "continuation_max_total_completion_tokens", "continuation_max_output_chars"]


def test_one_limit_is_one_axis_and_grids_are_bounded():
    with pytest.raises(CallerError, match="given twice"):
        parse_axes(["attempts=1", "continuation_max_attempts=2"])
    with pytest.raises(CallerError, match=f"200,000 cells; at most {MOST_CELLS:,}"):
        parse_axes(["attempts=0..199", "max_tokens=1..1000"])
    with pytest.raises(CallerError, match="at least one axis"):
        Grid(())


def test_cells_are_counted_with_the_last_axis_fastest_and_give_their_settings():
    grid = Grid(parse_axes(["attempts=0..2", "tokens=none,50"]), Settings(Limits(max_resumes=4)))
    assert grid.size == 6
    assert [grid.values(cell) for cell in range(6)] == [(0, 50), (0, None), (1, 50), (1, None), (2, 50), (2, None)]
    assert all(grid.cell(grid.values(cell)) == cell for cell in range(6))
    made = grid.settings(2)
    assert made.limits == Limits(1, 50, max_resumes=4)
    assert made.explicit == {"continuation_max_attempts", "continuation_max_total_completion_tokens"}
    with pytest.raises(CallerError, match="not on the grid"):
        grid.cell((7, 50))


def test_a_value_that_is_shown_can_be_typed_again():
    for name in ("max_tokens", "tokens"):
        axis = parse_axes([f"{name}=none,2_000"])[0]
        typed = [axis.value_text(value).replace(",", "") for value in axis.values]
        assert [parse_axes([f"{name}={text}"])[0].values for text in typed] == [(2_000,), (None,)]


def test_default_axes_lie_around_what_was_recorded():
    first = open_case(open_paths([str(samples()[0].path)]))  # no caps; six answers of 40 tokens
    assert default_axes(first, False) == (
        Axis("continuation_max_attempts", (0, 1, 2, 3, 4, 5, 6)),
        Axis("continuation_max_total_completion_tokens", (40, 80, 160, 320, 640)))
    assert default_axes(first, True)[1] == Axis("max_tokens", (10, 20, 40, 80, 160, 240, None))
    capped = open_case(open_paths([str(samples()[2].path)]))
    assert default_axes(capped, True)[1] == Axis("max_tokens", (6, 12, 24, 48, 96))
    uncapped = lines(pair_of([user("hi")], chat("Hello", tokens=12)))
    case = open_case(open_paths(["-"], stdin=uncapped))
    assert default_axes(case, True)[1] == Axis("max_tokens", (3, 6, 12, 24, 48, None))
    silent = open_case(open_paths(["-"], stdin=lines(pair_of([user("hi")], chat("Hello", tokens=None)))))
    assert [axis.short for axis in default_axes(silent, True)] == ["attempts"]
    lies = open_case(open_paths(["-"], stdin=lines(pair_of([user("hi")], chat("Hello", tokens=2_000_000_000)))))
    assert [axis.short for axis in default_axes(lies, True)] == ["attempts"]
    endless = lines(pair_of([user("hi")], chat("Hello", tokens=12), max_tokens=10**30))
    for simulate in (True, False):  # that is no cap
        assert default_axes(open_case(open_paths(["-"], stdin=endless)), simulate) == default_axes(case, simulate)


def test_a_limit_has_one_short_name_in_the_grid_in_the_names_of_runs_and_in_set() -> None:
    for name, short in SHORT_NAMES.items():
        by_short, by_full = (settings_of({each: "7"}, Settings()) for each in (short, name))
        assert by_short == by_full
        assert name_of(Settings(), by_short) == f"{short}=7"
