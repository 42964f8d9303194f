"""A turn is replayed under at least the rounds that it was recorded with."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inspector.config.settings import Settings
from inspector.replay import replay
from inspector.replay.adjustments import raised_limits, with_recorded_rounds
from inspector.replay.case import open_case
from inspector.report.lines.spans import plain
from inspector.sessions import open_paths
from inspector.whatif.grid import GridRequest, parse_axes
from inspector.whatif.grid_lines import parameter_lines
from inspector.whatif.grid_run import tune
from loop_core.turn.limits import Limits
from loop_core.turn.state import State
from tests.scenes.recordings import ASKS, assistant, call, chat, lines, message, pair_of, result
from tests.scenes.rows import each_row


def tool_rounds(rounds: int, same: bool = False) -> list[dict[str, Any]]:
    """A turn with so many rounds of tools, its third answer the longest, and an answer after them."""
    history, made = list(ASKS), []
    for number in range(rounds):
        long = "x" * 400 if number == 2 and not same else ""
        own = call(json.dumps({"path": "same" if same else f"{number}.md", "content": long}), f"call_{number}")
        made.append(pair_of(list(history), chat(None, "tool_calls", own, tokens=100 if long else 10)))
        history += [assistant(None, own), result(key=f"call_{number}")]
    return [*made, pair_of(history, chat("All are written.", tokens=10))]


def case_of(*exchanges: dict[str, Any]) -> Any:
    return open_case(open_paths(["-"], stdin=lines(*exchanges)))


def test_a_recorded_end_is_not_failed_by_rounds_of_tools_that_the_recording_has():
    case = case_of(*tool_rounds(12))
    grid = GridRequest(parse_axes(["repairs=0,3", "max_tokens=50,99,100"])).grid(case, Settings())
    made = tune(case, grid, jobs=1)
    ends = {grid.values(cell): made.turns[0].end(cell) for cell in range(grid.size)}
    assert {end.limit for end in ends.values()} <= {"continuation_tool_repair_attempts", ""}, "and no max_tool_steps"
    assert ends[0, 100].complete
    assert ends[0, 100].state is State.COMPLETE, "this loop comes to the recorded end too"
    assert ends[3, 99].complete, "one token less is one more request, and the same end"


@each_row(("exchanges", "raised"), [
    (tool_rounds(10), {}), (tool_rounds(11), {"max_tool_steps": 11}),
    (tool_rounds(4, same=True), {"max_identical_calls": 4}),
    (tool_rounds(3, same=True), {}),
])
def test_a_limit_is_raised_to_what_was_recorded_and_no_further(exchanges, raised):
    assert raised_limits(with_recorded_rounds(case_of(*exchanges), Settings())) == raised


def test_resumptions_that_were_recorded_are_allowed_too():
    url, history, made = "https://api.anthropic.com/v1/messages", list(ASKS), []
    for number in range(12):
        block = {"type": "text", "text": f"part {number}"}
        made.append(pair_of(list(history), message([block], "pause_turn" if number < 11 else "end_turn"), url=url))
        history.append({"role": "assistant", "content": [block]})
    assert raised_limits(with_recorded_rounds(case_of(*made), Settings())) == {"max_resumes": 11}


@pytest.mark.parametrize("chosen", [{"explicit": frozenset({"max_tool_steps"})},
                                    {"configured": frozenset({"max_tool_steps"})}])
def test_what_an_operator_has_chosen_stays(chosen):
    settings = Settings(Limits(max_tool_steps=2), **chosen)
    assert with_recorded_rounds(case_of(*tool_rounds(12)), settings) == settings
    assert raised_limits(Settings(Limits(max_tool_steps=40), **chosen)) == {}


@each_row(("settings", "in_file", "most"), [
    (Settings(), {}, 12), (Settings(explicit=frozenset({"max_tool_steps"})), {}, 10),
    (Settings(configured=frozenset({"max_tool_steps"})), {}, 10), (Settings(), {"max_tool_steps": 5}, 5),
    (Settings(Limits(max_tool_steps=7)), {}, 7), (Settings(Limits(max_tool_steps=40)), {}, 40),
])
def test_a_replay_comes_to_the_recorded_end_unless_a_limit_was_chosen(settings, in_file, most):
    case = case_of(*tool_rounds(12))
    case.limits_by_path["-"] = in_file
    found = replay(case, settings)
    assert found.effective_step(len(found.trace.steps) - 1).turn.limits.max_tool_steps == most
    turn = found.turns[0]
    assert (turn.runs, turn.final_turn.terminal) == ((1, "completed") if most >= 12 else (13 // (most + 1) + 1,
                                                                                          "step_limit"))
    assert found.turns[0].final_turn.spend.tool_steps == min(12, most)


def test_a_turn_of_very_many_rounds_is_replayed_in_several_runs(monkeypatch):
    monkeypatch.setattr("inspector.replay.adjustments._MOST_ROUNDS", 12)
    turn = replay(case_of(*tool_rounds(13))).turns[0]
    assert (turn.runs, turn.final_turn.terminal, turn.final_turn.spend.tool_steps) == (2, "step_limit", 12)


def test_calls_that_come_again_still_end_a_replay():
    found = replay(case_of(*tool_rounds(12, same=True)))
    assert found.turns[0].final_turn.terminal == "no_progress"


def test_limits_that_the_recording_names_stay():
    case = case_of(*tool_rounds(12))
    case.limits_by_path["-"] = {"max_tool_steps": 5}
    assert with_recorded_rounds(case, Settings()) == Settings()


def test_the_sheet_says_which_limit_was_raised_and_the_commands_give_the_same():
    case = case_of(*tool_rounds(12))
    request = GridRequest(parse_axes(["attempts=0", "max_tokens=99,100"]))
    grid = request.grid(case, Settings())
    told = plain(list(parameter_lines(tune(case, grid, jobs=1))))
    assert "max_tool_steps 12, as many as a recorded turn has: the default of 10 would end it first" in told
    assert "max_tool_steps" not in request.command(grid, ["a.jsonl"], "outcome"), "a grid finds it by itself"
    varied = GridRequest(parse_axes(["max_tool_steps=2,12"])).grid(case, Settings())
    assert "as many as" not in plain(list(parameter_lines(tune(case, varied, jobs=1)))), "what is varied is an axis"
