"""The mouse, on every screen: keys at the foot, rows, lists over a screen; the wheel scrolls the pane under it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from inspector.report.lines.spans import Tone
from inspector.tui.app import LoopInspector
from inspector.tui.breakpoints import BreakpointList
from inspector.tui.key_words import key_of
from inspector.tui.keys import HelpScreen
from inspector.tui.lists import Choose
from inspector.tui.panels import Dialog, KeyNote, key_note
from inspector.tui.questions import Prompt
from inspector.tui.run_tree import RunTree
from inspector.tui.turns_screen import TurnsScreen
from tests.scenes.app import check_wheel, entry, screen_rows, stream, until, user
from tests.scenes.transcripts import block, claude, prompt, text

AppOn = Callable[..., LoopInspector]
SCREENS = {"session": "", "policies": "p", "providers": "P", "tune": "u"}


async def open_screen(pilot: Pilot[Any], *keys: str) -> None:
    """Another screen, once it is drawn and nothing runs."""
    for key in keys:
        await pilot.press(key)
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def click_words(pilot: Pilot[Any], words: str) -> None:
    """A click on the first place of the screen where these words stand."""
    y = next(at for at, row in enumerate(screen_rows(pilot.app)) if words in row)
    await pilot.click(offset=(screen_rows(pilot.app)[y].index(words), y))
    await pilot.pause()


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (160, 45)])
@pytest.mark.parametrize("keys", SCREENS.values(), ids=SCREENS)
async def test_a_key_at_the_foot_is_clicked(app_on: AppOn, keys: str, size: tuple[int, int]) -> None:
    async with app_on().run_test(size=size) as pilot:
        await open_screen(pilot, *keys)
        below = pilot.app.screen
        await click_words(pilot, "? help")
        assert isinstance(pilot.app.screen, HelpScreen)
        await pilot.press("escape")
        assert pilot.app.screen is below


async def test_a_key_at_the_foot_of_the_table_of_turns_is_clicked(app_on: AppOn) -> None:
    async with app_on(as_table=True, begins=None).run_test(size=(80, 24)) as pilot:
        assert isinstance(pilot.app.screen, TurnsScreen)
        assert "f filter  / search  ! worst  p policies  L live  ? help" in screen_rows(pilot.app)[-1]
        await click_words(pilot, "? help")
        assert isinstance(pilot.app.screen, HelpScreen)


@pytest.mark.parametrize("keys", [*SCREENS.values(), "?"], ids=[*SCREENS, "help"])
async def test_the_wheel_scrolls_each_pane_under_it_and_no_other(app_on: AppOn, keys: str) -> None:
    async with app_on().run_test(size=(120, 15)) as pilot:
        await open_screen(pilot, *keys)
        if keys == SCREENS["tune"]:
            await pilot.press("g")  # the best cell, at which it opens, stands at the foot of the map
        await check_wheel(pilot)


async def test_the_wheel_scrolls_the_table_of_turns(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number:02}.jsonl").write_text(claude(prompt("hi"), block(text("Hello."), stop="end_turn")))
    async with LoopInspector([str(tmp_path)]).run_test(size=(120, 15)) as pilot:
        while pilot.app.screen.reading:
            await pilot.pause(0.02)
        assert isinstance(pilot.app.screen, TurnsScreen)
        await check_wheel(pilot)


@pytest.mark.parametrize(("keys", "over"), [
    (("b",), BreakpointList), (("e", "5", "enter", "R"), RunTree), (("P", "s"), Choose), (("x",), Choose),
])
async def test_a_row_of_a_list_over_the_screen_is_clicked(app_on: AppOn, keys: tuple[str, ...], over: type) -> None:
    async with app_on().run_test(size=(120, 35)) as pilot:
        await open_screen(pilot, *keys)
        assert isinstance(pilot.app.screen, over)
        listed = pilot.app.focused
        before = listed.cursor
        y = next(at for at in range(listed.count) if listed.selectable(at) and at != before)
        await pilot.click(listed, offset=(3, y - int(listed.scroll_offset.y)))
        await pilot.pause()
        assert not listed.is_attached or listed.cursor == y


async def test_a_field_of_the_form_is_clicked(app_on: AppOn) -> None:
    async with app_on().run_test(size=(120, 45)) as pilot:
        await open_screen(pilot, "e")
        first = pilot.app.focused
        other = next(each for each in pilot.app.screen.focus_chain if each is not first)
        await pilot.click(other)
        assert pilot.app.focused is other


@pytest.mark.parametrize(("keys", "words", "after"), [
    ("e", "esc leaves", "SessionScreen"), ("b", "a type one", "Prompt"), ("x", "enter chooses", "Prompt"),
    ("e", "fields", "LimitsForm"), ("W", "F4 asks live", "AskLive"), ("W", "esc leaves", "SessionScreen"),
])
async def test_a_key_in_the_note_of_a_form_is_clicked(app_on: AppOn, keys: str, words: str, after: str) -> None:
    async with app_on().run_test(size=(120, 45)) as pilot:
        await open_screen(pilot, *keys)
        await click_words(pilot, words)
        await until(pilot, lambda: type(pilot.app.screen).__name__ == after)


async def test_each_key_that_a_note_names_can_be_clicked(app_on: AppOn) -> None:
    keys: list[str] = []
    async with app_on().run_test(size=(120, 45)) as pilot:
        shown = key_note("enter a · esc b · space c · tab d · ^s e · F3 f · F4 g · x h · ↑ ↓ fields · ] j · ; k")
        await pilot.app.screen.mount(shown)
        await pilot.pause()
        pilot.app.simulate_key = keys.append
        for x in (0, 10, 18, 28, 36, 43, 50, 57, 63, 65, 67, 76, 82):
            await pilot.click(shown, offset=(x, 0))
    assert keys == ["enter", "escape", "space", "tab", "ctrl+s", "f3", "f4", "x", "up", "down", "down",
                    "right_square_bracket", "semicolon"]


async def test_a_key_that_a_text_or_a_note_names_is_clicked(app_on: AppOn) -> None:
    async with app_on().run_test(size=(160, 45)) as pilot:
        await open_screen(pilot, "5")
        await click_words(pilot, "v changes")
        assert "Request of response" in "\n".join(screen_rows(pilot.app))
        await open_screen(pilot, "n")
        assert "nothing was searched yet: / searches" in screen_rows(pilot.app)[-1]
        await click_words(pilot, "/ searches")
        await until(pilot, lambda: isinstance(pilot.app.screen, Prompt))


@pytest.mark.parametrize(("keys", "word", "over"), [
    ("f", "esc", "SessionScreen"), ("f", "enter", "SessionScreen"), ("/", "esc", "SessionScreen"),
    ("ue", "esc", "TuneScreen"), ("P:", "esc", "ProvidersScreen")])
@pytest.mark.parametrize("width", [60, 120])
async def test_the_keys_of_a_line_at_the_foot_are_clicked(
    app_on: AppOn, width: int, keys: str, word: str, over: str
) -> None:
    async with app_on().run_test(size=(width, 30)) as pilot:
        for key in keys:
            await open_screen(pilot, key)
        assert isinstance(pilot.app.screen, Prompt)
        await pilot.click(offset=(screen_rows(pilot.app)[-1].rindex(word), 29))
        await pilot.pause()
        assert type(pilot.app.screen).__name__ == over


@pytest.mark.parametrize("keys", ["e", "b", "x", "R", "V", "d", "L", "F", "FENTER", "LENTERi", "LENTERI", "W"])
async def test_a_note_names_only_keys_that_the_box_has(app_on: AppOn, keys: str) -> None:
    """An `a` that begins a note looked like a key: `a key is missing`."""
    entries = [entry([user("Write it.")], stream("Half", "length", 64))]
    async with app_on(entries).run_test(size=(120, 40)) as pilot:
        for key in keys.replace("ENTER", "\n"):
            await open_screen(pilot, "enter" if key == "\n" else key)
        screen = pilot.app.screen
        assert isinstance(screen, Dialog)
        named = [key_of(span.text) for note in screen.query(KeyNote) for span in note.line if span.role is Tone.PRESS]
        assert named
        assert set(named) <= set(screen.active_bindings)
