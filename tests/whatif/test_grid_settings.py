"""What is asked for, and the command line that asks for the same."""

from __future__ import annotations

import json
import shlex

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from inspector.config.settings import Settings, settings_of
from inspector.replay.case import open_case
from inspector.sessions import open_paths
from inspector.sessions.folders import samples
from inspector.whatif.grid import ATTEMPTS, TOKENS, Axis, GridRequest, axis_text, parse_axes
from tests.scenes.rows import each_row

FIRST = str(samples()[0].path)


@each_row(("values", "spec"), [
    ((5, 6, 7, 8), "5..8"), ((1, 2), "1,2"), ((7,), "7"), ((None,), "default"), ((64, 128, None), "64,128,default"),
    (tuple(range(64, 1025, 64)), "64..1024/64"), (tuple(2**n for n in range(12)), "1..2048*2"),
    ((10, 20, 40, 80, 160), "10,20,40,80,160"),
])
def test_values_are_written_as_they_may_be_typed(values, spec):
    assert axis_text(Axis(TOKENS, values)).partition("=")[2] == spec
    assert parse_axes([f"tokens={spec}"]) == (Axis(TOKENS, values),)


@hypothesis_settings(deadline=None)
@given(st.sets(st.integers(1, 10**6), min_size=1, max_size=30), st.integers(1, 16), st.integers(1, 60), st.booleans())
def test_any_axes_are_read_back_from_what_is_typed(values, step, count, default):
    some = (*sorted(values), *((None,) if default else ()))
    axes = (Axis(TOKENS, some), Axis(ATTEMPTS, tuple(range(0, step * count, step))))
    assert parse_axes([*map(axis_text, axes)]) == axes


@each_row(("axes", "simulate", "wanted"), [
    ([], None, True), (["attempts=1..3"], None, False), (["max_tokens=64"], None, True),
    (["attempts=1..3"], True, True), (["max_tokens=64"], False, False), ([], False, False),
])
def test_it_is_simulated_where_max_tokens_is_varied_unless_it_is_said(axes, simulate, wanted):
    case = open_case(open_paths([FIRST]))
    grid = GridRequest(parse_axes(axes), simulate).grid(case, Settings(simulate=not wanted))
    assert grid.base.simulate is wanted
    assert ("max_tokens" in grid.names) is ((wanted and not axes) or axes == ["max_tokens=64"])


def test_the_command_line_says_what_is_varied_what_is_the_same_and_how_it_is_read():
    case = open_case(open_paths([FIRST]))
    base = settings_of({"continuation_max_attempts": "5", "max_resumes": "2", "max_tokens": "80"}, Settings())
    asked = GridRequest(parse_axes(["attempts=0..6", "tokens=100,none"]), simulate=True)
    assert shlex.split(asked.command(asked.grid(case, base), ["a b.har"], "spend", "openai_chat", "vllm")) == [
        "inspector", "tune", "a b.har", "--api", "openai_chat", "--profile", "vllm", "--set", "max_resumes=2",
        "--set", "max_tokens=80", "--grid", "attempts=0..6", "--grid", "cont_tokens=100,default", "--simulate",
        "--show", "spend"]


@pytest.mark.parametrize("asked", [
    GridRequest(), GridRequest((), False), GridRequest(parse_axes(["attempts=3,5"])),
    GridRequest(parse_axes(["max_tokens=20,recorded"]), False),
], ids=["defaults", "recorded", "attempts", "cap"])
def test_the_command_line_runs_the_same_grid(inspector, asked):
    case = open_case(open_paths([FIRST]))
    grid = asked.grid(case, settings_of({"max_identical_calls": "2", ATTEMPTS: "4"}, Settings()))
    words = shlex.split(asked.command(grid, [FIRST], "outcome"))
    told = json.loads(inspector(*words[1:], "--json").out)
    assert [(axis["name"], tuple(axis["values"])) for axis in told["axes"]] == [
        (axis.name, axis.values) for axis in grid.axes]
    assert told["simulate"] is grid.base.simulate
