"""Filter, breakpoints, marks and notes in the app: each key does what its binding says."""

import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.pilot import Pilot

from inspector.report.lines.steps import Outline, is_interesting
from inspector.tui import breakpoints, session_screen
from inspector.tui.app import LoopInspector
from inspector.tui.breakpoints import Breakpoint, BreakpointList
from inspector.tui.session_screen import SessionScreen
from inspector.tui.session_widgets import StepList
from tests.scenes.app import page, screen_rows, store_open, until

AppOn = Callable[..., LoopInspector]
ONE_PANE, THREE = (80, 24), (160, 45)


def session(pilot: Pilot[Any]) -> SessionScreen:
    screen = pilot.app.screen_stack[-1] if isinstance(pilot.app.screen, SessionScreen) else pilot.app.screen_stack[0]
    assert isinstance(screen, SessionScreen)
    return screen


def step_rows(pilot: Pilot[Any]) -> list[str]:
    steps = session(pilot).query_one(StepList)
    return [line for line in (screen_rows(pilot.app)[steps.region.y + row][: steps.region.width]
                              for row in range(steps.region.height)) if line.strip(" │┃▕▏▐")]


async def test_a_filter_keeps_what_matches_and_says_how_much(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("f", *"state:ContinuePending", "enter")
        screen = session(pilot)
        kept = [i for i, step in enumerate(screen.run.view.steps) if step.state.value == "ContinuePending"]
        assert len(kept) == 5  # four of this loop, and one where the recorded agent went on
        assert sum("ContinuePending" in line for line in step_rows(pilot)) == 5
        assert not any("EvaluateStop" in line for line in step_rows(pilot))
        assert "state:ContinuePending: 5 steps" in page(pilot.app)
        # The cursor goes to the first that is kept, and moves among those only.
        assert screen.step == kept[0]
        await pilot.press("space")
        assert screen.step == kept[1]
        await pilot.press("j", "j", "j")
        assert screen.step == kept[4]
        await pilot.press("space")
        assert "this is the last step that the filter keeps" in page(pilot.app)
        await pilot.press("backspace")
        assert screen.step == kept[3]


async def test_a_filter_narrows_while_it_is_typed_and_one_that_is_left_wrong_or_empty_shows_all(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("f", *"held")
        await until(pilot, lambda: "of 28 steps" in page(pilot.app))
        assert not any("ContinuePending" in line for line in step_rows(pilot))
        await pilot.press("escape")
        assert any("ContinuePending" in line for line in step_rows(pilot))
        assert session(pilot).filtered == ""
        await pilot.press("f", *"stop>3", "enter")
        assert "column 5: stop is a word, not a number" in page(pilot.app)
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, SessionScreen)
        assert any("ContinuePending" in line for line in step_rows(pilot)), "nor does what was typed on the way narrow"
        await pilot.press("f", *"tool:nobody", "enter")
        assert "0 of 28 steps: nothing matches" in page(pilot.app)
        await until(pilot, lambda: any("ContinuePending" in line for line in step_rows(pilot)))
        await pilot.press("f", *"held", "enter")
        await until(pilot, lambda: not any("ContinuePending" in line for line in step_rows(pilot)))
        await pilot.press("f", *["backspace"] * 4, "enter")
        assert "all steps are shown" in page(pilot.app)
        await until(pilot, lambda: any("ContinuePending" in line for line in step_rows(pilot)))


async def test_a_filter_stays_over_another_run(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("f", *"state:ContinuePending", "enter", "e", "5", "enter")
        screen = session(pilot)
        assert len(screen.run.view.steps) != 28
        assert sum("ContinuePending" in line for line in step_rows(pilot)) == sum(
            step.state.value == "ContinuePending" for step in screen.run.view.steps)
        assert screen.filtered.startswith("state:ContinuePending: ")


async def test_continue_without_breakpoints_runs_to_the_ends(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press("c")
        assert session(pilot).step == 27
        assert "no breakpoint on the way" in page(pilot.app)
        await pilot.press("C")
        assert session(pilot).step == 0


async def test_a_breakpoint_is_offered_set_and_stops(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("space", "space", "b")
        assert isinstance(pilot.app.screen, BreakpointList)
        assert "+ state:ContinuePending" in page(pilot.app)
        assert "+ stop:max_tokens" in page(pilot.app)
        await pilot.press("enter")
        assert "● on  state:ContinuePending  stops 5 times" in page(pilot.app)
        await pilot.press("escape", "c")
        screen = session(pilot)
        assert screen.remarks.breakpoints == (Breakpoint("state:ContinuePending"),)
        hits = [i for i, step in enumerate(screen.run.view.steps) if step.state.value == "ContinuePending"]
        assert screen.step == hits[1]
        assert "breakpoint: state:ContinuePending" in page(pilot.app)
        await pilot.press("c", "c", "C")
        assert screen.step == hits[2]


async def test_among_many_steps_breakpoints_are_looked_for_without_holding_a_key(
    app_on: AppOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the steps of a long recording are made again, counting the stops of one took many seconds."""
    go_on, look, count = threading.Event(), breakpoints.next_stop, breakpoints.count_hits

    def wait_first(work: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given: work(*given) if go_on.wait(10) else None

    for module in (breakpoints, session_screen):
        monkeypatch.setattr(module, "MANY_STEPS", 0)
    monkeypatch.setattr(breakpoints, "next_stop", wait_first(look))
    monkeypatch.setattr(breakpoints, "count_hits", wait_first(count))
    async with app_on().run_test(size=(160, 45)) as pilot:
        await pilot.press("g", "b", "a", *"state:ContinuePending", "enter")
        await until(pilot, lambda: "state:ContinuePending  counting its stops…" in page(pilot.app))
        go_on.set()
        await until(pilot, lambda: "state:ContinuePending  stops 5 times" in page(pilot.app))
        await pilot.press("escape")
        go_on.clear()
        await pilot.press("c")
        assert "looking for a breakpoint…" in page(pilot.app)
        go_on.set()
        await until(pilot, lambda: "breakpoint: state:ContinuePending" in page(pilot.app))
        first = session(pilot).step
        go_on.clear()
        await pilot.press("c", "down")
        go_on.set()
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert session(pilot).step == first + 1, "whoever went elsewhere stays there"


async def test_among_many_steps_the_next_event_is_looked_for_without_holding_a_key(
    app_on: AppOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the last event of a long recording no key was read for seconds."""
    go_on, look = threading.Event(), Outline.interesting

    def wait_in_thread(self: Outline, step: int, direction: int, most: int | None = None) -> int | None:
        if threading.current_thread() is not threading.main_thread():
            go_on.wait(10)
        return look(self, step, direction, most)

    async with app_on().run_test(size=THREE) as pilot:
        screen = session(pilot)
        events = [at for at in range(len(screen.run.view.steps)) if is_interesting(screen.run.view.steps[at])]
        before, after = next((one, two) for one, two in pairwise(events) if two - one > 2)
        monkeypatch.setattr(session_screen, "MANY_STEPS", 1)
        monkeypatch.setattr(Outline, "interesting", wait_in_thread)
        screen.step = before
        await pilot.press("}")
        assert "looking for an event…" in page(pilot.app)
        go_on.set()
        await until(pilot, lambda: screen.step == after)
        screen.step = events[-1]
        await pilot.press("}")
        await until(pilot, lambda: "nothing out of the ordinary after this step" in page(pilot.app))
        go_on.clear()
        screen.step = after
        await pilot.press("{", "up")
        go_on.set()
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert screen.step == after - 1, "whoever went elsewhere stays there"


async def test_a_breakpoint_is_typed_switched_and_removed(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("b", "a", *"helt", "enter")
        assert "did you mean held? unknown term 'helt'" in page(pilot.app)
        await pilot.press("ctrl+u", *"held", "enter", "space")
        assert "○ off held" in page(pilot.app)
        await pilot.press("escape", "c")
        assert session(pilot).step == 27  # it is off
        await pilot.press("C", "b", "space", "escape", "c")
        seen_ = session(pilot).run.view.steps[session(pilot).step]
        assert seen_.state.value == "EvaluateStop"
        assert any(verdict.admission.value == "held" for verdict in seen_.turn.evaluation.verdicts)
        await pilot.press("b", "d", "escape")
        assert session(pilot).remarks.breakpoints == ()


async def test_marks_are_set_seen_and_gone_to(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("space", "space", "m")
        assert any("▶◆ 3" in line for line in step_rows(pilot))
        await pilot.press(*["space"] * 4, "m", "g", "apostrophe")
        assert session(pilot).step == 2
        await pilot.press("apostrophe")
        assert session(pilot).step == 6
        await pilot.press("apostrophe")
        assert "no mark after this step" in page(pilot.app)
        await pilot.press("quotation_mark", "m")
        assert session(pilot).remarks.marks == {6}
        await pilot.press("f", *"marked", "enter")
        assert session(pilot).step == 6


async def test_a_note_stands_beside_its_step(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("semicolon", *"look [b]here", "enter")
        assert any("✎ look [b]here" in line for line in step_rows(pilot))
        await pilot.press("space")
        assert page(pilot.app).count("look [b]here") == 1
        await pilot.press("backspace")
        assert page(pilot.app).count("look [b]here") == 2  # in the list, and in full at the foot
        await pilot.press("semicolon", *["backspace"] * 12, "enter")
        assert session(pilot).remarks.notes == {}


@pytest.mark.parametrize(("steps", "most"), [(28, 1), (5_000, 100)])
def test_a_held_key_runs_faster_but_never_far(steps: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from inspector.tui import session_screen

    listed = SimpleNamespace(neighbour=lambda step, by: step + by)
    stage = SimpleNamespace(step=0, rows=listed, run=SimpleNamespace(view=SimpleNamespace(steps=range(steps))))
    now = [0.0]
    monkeypatch.setattr(session_screen, "monotonic", lambda: now[0])
    part = session_screen.Stepping(stage, SimpleNamespace())
    strides = []
    for _ in range(80):
        now[0] += 0.03
        strides.append(part.target(1))
    assert strides[:8] == [1] * 8
    assert max(strides) == min(most, 2**9)
    assert strides == sorted(strides)
    now[0] += 0.2
    assert part.target(1) == 1
    assert part.target(-1) == -1


async def test_a_mark_and_a_note_that_cannot_be_kept_say_so_and_are_shown_so(
    app_on: AppOn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LOOP_INSPECTOR_DATA", str(tmp_path / "file"))
    async with app_on().run_test(size=THREE) as pilot:
        await store_open(pilot)
        await pilot.press("m")
        assert "not saved: " in page(pilot.app)
        assert "cannot be written" in page(pilot.app)
        (marked,) = [line for line in step_rows(pilot) if "◆" in line]
        assert "not saved" in marked
        await pilot.press("space", "semicolon", "x", "enter")
        assert "not saved: " in page(pilot.app)
        assert sum("not saved" in line for line in step_rows(pilot)) == 2


async def test_a_mark_that_is_kept_later_is_shown_as_kept(
    app_on: AppOn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "file"
    data.touch()
    monkeypatch.setenv("LOOP_INSPECTOR_DATA", str(data))
    async with app_on().run_test(size=THREE) as pilot:
        await store_open(pilot)
        await pilot.press("m")
        assert any("not saved" in line for line in step_rows(pilot))
        data.unlink()
        await pilot.press("m")
        await pilot.press("m")
        assert not any("not saved" in line for line in step_rows(pilot))
        assert any("◆" in line for line in step_rows(pilot))
