"""The parts of the session screen, each alone on a stage without a terminal; how small the screen around them is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.actions import parse
from textual.screen import Screen

from inspector.tui.app import LoopInspector
from inspector.tui.branches import Branches
from inspector.tui.breakpoints import Breakpoint
from inspector.tui.command_line import CommandLine
from inspector.tui.live_screen import LiveScreen
from inspector.tui.remarks import RemarkBook
from inspector.tui.session_files import ReadingOptions, load
from inspector.tui.session_panes import Panes
from inspector.tui.session_screen import SessionScreen, Stepping
from inspector.tui.stage import SessionRuns, SessionStage
from loop_core.errors import CallerError
from tests.scenes.app import story


class Stage(SimpleNamespace):
    """Values in the place of reactives."""

    rows = property(SessionStage.rows.fget)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """What a part finds on its screen: the session, a step, a line to speak."""
    opened = load([str(story(tmp_path))], ReadingOptions())
    made = Stage(session=opened, runs=SessionRuns(opened), run=opened.original, step=0, note="", filtered="",
                           shown_outline=None, step_remarks=None, narrow=False)
    made.go = lambda step, otherwise: SessionStage.go(made, step, otherwise)
    made.show = lambda: None
    return made


def branching(found: list[Any]) -> Callable[[dict[str, str], int | None], None]:
    return lambda assignments, since: found.append((assignments, since))


def test_stepping_goes_by_steps_and_turns_and_says_where_it_ends(stage: Any) -> None:
    part = Stepping(stage, RemarkBook(stage))
    part.action_step(-1)
    assert stage.note == "this is the first step"
    part.action_step(1)
    assert stage.step == 1
    part.action_turn(1)
    assert stage.step == stage.run.view.turns[1].run.first
    part.action_turn(1)
    assert stage.note == "this is the last turn"
    part.action_proceed(1)
    assert stage.step == len(stage.run.view.steps) - 1
    assert "b sets breakpoints" in stage.note


def test_stepping_stops_at_the_breakpoints_of_the_book(stage: Any) -> None:
    book = RemarkBook(stage)
    book.breakpoints = (Breakpoint("held"),)
    part = Stepping(stage, book)
    part.action_proceed(1)
    assert stage.note == "breakpoint: held"
    stops = [stage.step]
    part.action_proceed(-1)
    assert stage.step == 0, stops


def test_what_follows_a_colon_is_a_step_or_settings(stage: Any) -> None:
    found: list[Any] = []
    part = CommandLine(stage, branching(found), lambda turn: None)
    part.read("3", {})()
    assert stage.step == 2
    with pytest.raises(CallerError, match="is not a step"):
        part.read("999", {})
    with pytest.raises(CallerError, match="expected 1 to"):
        part.read("turn " + "9" * 5_000, {})
    with pytest.raises(CallerError, match="is not a step: expected 1 to"):
        part.read("9" * 5_000, {})  # Python reads no number of so many digits
    part.read("max_tokens=80", {})()
    assert found == [({"max_tokens": "80"}, None)]


def test_what_follows_a_colon_is_a_turn_or_a_file(stage: Any) -> None:
    part = CommandLine(stage, branching([]), lambda turn: None)
    part.read("turn 2", {})()
    assert stage.step == stage.run.view.turns[1].run.first
    for line, why in (("turn", "expected 1 to 2"), ("turn x", "expected 1 to 2"), ("file story", "is one file")):
        with pytest.raises(CallerError, match=why):
            part.read(line, {})


def test_remarks_belong_to_a_run(stage: Any) -> None:
    book = RemarkBook(stage)
    book.action_mark()
    stage.step = 4
    book.action_mark()
    book._write_note("look")
    assert (book.marks, book.notes) == ({0, 4}, {4: "look"})
    book.action_to_mark(-1)
    assert stage.step == 0
    book.action_to_mark(-1)
    assert stage.note == "no mark before this step; m marks one"
    stage.runs.index, _ = stage.runs.under({"continuation_max_attempts": "5"}, None)
    book.show()
    assert book.marks == set()
    assert stage.step_remarks.marks == set()


def test_a_filter_narrows_what_is_listed(stage: Any) -> None:
    book = RemarkBook(stage)
    assert book._narrow("state:ContinuePending").endswith(f"of {len(stage.run.view.steps)} steps")
    assert stage.shown_outline is not stage.run.outline
    assert book._narrow("state:") != ""
    assert stage.filtered.startswith("state:ContinuePending"), "a mistake leaves the list as it is"
    assert book._narrow("") == "all steps are shown"
    assert stage.shown_outline is stage.run.outline


def test_panes_know_what_is_looked_at(stage: Any) -> None:
    part = Panes(stage)
    assert part.viewpoint.tab == "merged"
    part.action_mode()
    assert part.forms["merged"] == "side by side"
    part.tab = "events"
    part.action_mode()
    assert "has one form" in stage.note
    part.action_seam()
    assert stage.note.startswith("seams are tried in Merged")
    assert len(part.sheet()) > 0


def test_branches_say_where_there_is_only_one_run(stage: Any) -> None:
    book, panes = RemarkBook(stage), Panes(stage)
    Branches(stage, panes, book).action_run(1)
    assert stage.note == "there is only the original run; e makes another"


@pytest.mark.parametrize(("screen", "members", "classes"), [(SessionScreen, 40, 2), (LiveScreen, 60, 3)])
def test_a_screen_fits_on_a_page(screen: type, members: int, classes: int) -> None:
    assert len([name for name in dir(screen) if not hasattr(Screen, name)]) <= members
    assert sum(kind.__module__.startswith("inspector.") for kind in screen.__mro__) == classes


def test_every_part_is_taken_in_with_its_actions(stage: Any) -> None:
    screen = SessionScreen(stage.session, None)
    assert {type(part) for part in screen.parts} == set(SessionScreen.PARTS)
    for binding in SessionScreen.BINDINGS:
        namespace, name, _ = parse(binding.action)
        assert callable(getattr(LoopInspector if namespace == "app" else screen, f"action_{name}")), binding
