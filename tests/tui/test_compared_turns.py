"""Any two turns side by side in the app: of one session, by its number, or of two sessions."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from inspector.tui.app import LoopInspector
from inspector.tui.lists import Choose
from inspector.tui.messages import PathWanted
from inspector.tui.run_views import SideBySide
from inspector.tui.session_files import ReadingOptions, load
from inspector.tui.session_screen import SessionScreen
from tests.scenes.app import cut_call_ran, cut_text, page, story
from tests.tui.test_attention import fine

AppOn = Callable[..., LoopInspector]
BOTH = [*cut_text(), *cut_call_ran()]


def session(pilot: Pilot[Any]) -> SessionScreen:
    screen = pilot.app.screen
    assert isinstance(screen, SessionScreen)
    return screen


def words(pilot: Pilot[Any]) -> str:
    return " ".join(page(pilot.app).split())


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (160, 45)])
async def test_two_turns_of_a_session_stand_side_by_side(app_on: AppOn, size: tuple[int, int]) -> None:
    async with app_on(BOTH).run_test(size=size) as pilot:
        session(pilot).step = 0
        await pilot.press("d")
        assert isinstance(pilot.app.screen, Choose)
        assert "▶ turn 2" in page(pilot.app), "the worst of the others"
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, SideBySide)
        shown = words(pilot)
        assert "Two turns different: the number of answers (4 and 1), " in shown
        assert "the first difference is at" in shown, "nothing of it is cut off"
        assert "turn 1 · story.har" in shown
        assert "turn 2 · story.har" in shown
        assert "segments 4 ≠ 1" in shown
        await pilot.press("]")
        assert "these are two different turns" in page(pilot.app)
        await pilot.press("enter")
        assert session(pilot).run.view.replay.turn_at(session(pilot).step) == 1


async def test_turns_and_steps_beyond_a_thousand_are_written_alike_everywhere(app_on: AppOn) -> None:
    """Each place takes the number as it shows it."""
    entries = [each for number in range(1001) for each in fine(f"{number}")]
    async with app_on(entries).run_test(size=(120, 35)) as pilot:
        await pilot.press("colon", *"turn 1,001", "enter")
        steps = f"{len(session(pilot).run.view.steps):,}"
        assert steps in page(pilot.app)
        assert "turn 1,001/1,001" in page(pilot.app)
        assert "turn 1001" not in page(pilot.app)
        await pilot.press("d")
        await pilot.pause()
        assert "Compare turn 1,001 with" in page(pilot.app)
        await pilot.press("end", "enter")
        await pilot.pause()
        assert isinstance(pilot.app.screen, SideBySide)
        assert "turn 1,000 · " in words(pilot)


async def test_a_turn_is_compared_by_its_number(app_on: AppOn) -> None:
    async with app_on(BOTH).run_test(size=(120, 35)) as pilot:
        session(pilot).step = 0
        await pilot.press("colon", *"compare 2", "enter")
        assert isinstance(pilot.app.screen, SideBySide)
        await pilot.press("escape", "colon", *"compare 7", "enter")
        assert "expected 1 to 2" in page(pilot.app)
        await pilot.press("escape", "colon", *"compare", "enter")
        await pilot.pause()
        assert isinstance(pilot.app.screen, Choose), "without a number it is the key"


async def test_in_a_branch_the_same_turn_of_the_original_is_offered_first(app_on: AppOn) -> None:
    async with app_on(BOTH).run_test(size=(80, 24)) as pilot:
        session(pilot).branches.branch({"continuation_max_attempts": "1"})
        session(pilot).step = 0
        await pilot.press("d")
        assert "▶ original" in page(pilot.app)
        await pilot.press("enter")
        shown = words(pilot)
        assert isinstance(pilot.app.screen, SideBySide)
        assert "segments 4 ≠ 2" in shown
        assert "turn 1 · story.har · original" in shown
        await pilot.press("escape")
        session(pilot).branches.switch(0)
        await pilot.press("d")
        assert "original" not in words(pilot).split("Compare turn 1 with…")[1].split("enter chooses")[0]


async def test_the_turns_to_choose_from_name_their_file_only_where_there_are_several(
    app_on: AppOn, tmp_path: Path
) -> None:
    async with app_on(BOTH).run_test(size=(80, 24)) as pilot:
        await pilot.press("d")
        assert re.search(r"turn 2 .*CUT CALL RUN · openai_chat cut", page(pilot.app))
    paths = [str(story(tmp_path, entries, name)) for entries, name in (
        (cut_text(), "one.har"), (cut_call_ran(), "two.har"))]
    async with LoopInspector(paths, opened_already=load(paths, ReadingOptions())).run_test(size=(120, 35)) as pilot:
        await pilot.press("g", "d")
        assert re.search(r"turn 2 .*CUT CALL RUN · two.har · openai_chat", page(pilot.app))


async def test_a_turn_that_was_put_aside_stands_beside_one_of_another_session(app_on: AppOn, tmp_path: Path) -> None:
    async with app_on(cut_text()).run_test(size=(120, 35)) as pilot:
        await pilot.press("d")
        assert "▶ this turn" in page(pilot.app)
        await pilot.press("enter")
        assert "put aside · open another session and press d" in page(pilot.app)
        pilot.app.post_message(PathWanted(str(story(tmp_path, cut_call_ran(), "other.har"))))
        await pilot.pause()
        await pilot.app.workers.wait_for_complete()
        await pilot.press("d")
        assert "▶ put aside" in page(pilot.app)
        await pilot.press("enter")
        shown = words(pilot)
        assert "turn 1 · story.har" in shown
        assert "turn 1 · other.har" in shown
        assert "calls none ≠ write_file held" in shown
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, SessionScreen)


async def test_the_differences_are_readable_in_full_after_a_screen_became_low(app_on: AppOn) -> None:
    async with app_on(BOTH).run_test(size=(80, 24)) as pilot:
        await pilot.press("d", "enter")
        assert words(pilot).count("the first difference is at") == 1
        for size, times in (((60, 20), 1), ((120, 35), 1), ((60, 20), 1)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert words(pilot).count("the first difference is at") == times, size
