"""The mouse, on every screen: keys at the foot, rows, lists over a screen; the wheel scrolls the pane under it."""

from __future__ import annotations

from asyncio import sleep
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.events import MouseDown, MouseUp
from textual.pilot import Pilot
from textual.widgets._toast import Toast

from inspector.provider.dialect_output import TableQuery
from inspector.report.lines.spans import Tone
from inspector.tui.app import LoopInspector
from inspector.tui.breakpoints import BreakpointList
from inspector.tui.key_words import key_of
from inspector.tui.keys import HelpScreen
from inspector.tui.lists import Choose
from inspector.tui.panels import Dialog, KeyNote, key_note
from inspector.tui.questions import Prompt
from inspector.tui.run_views import RunTree
from inspector.tui.turns_screen import TurnsScreen
from tests.scenes.app import check_wheel, entry, page, screen_rows, stream, until, user
from tests.scenes.provider import rows_by_query
from tests.scenes.rows import share
from tests.scenes.transcripts import block, claude, prompt, text

AppOn = Callable[..., LoopInspector]
SCREENS = {"session": "", "policies": "p", "providers": "P", "tune": "u"}


@pytest.fixture(autouse=True)
def _rows_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TableQuery, "rows", rows_by_query)


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


async def test_one_message_stands_over_a_screen_and_two_quick_clicks_on_it_do_no_harm(app_on: AppOn) -> None:
    async with app_on().run_test(size=(80, 24), notifications=True) as pilot:
        await pilot.press(":")  # a line, which has no place for a message
        for message in ("one", "two"):
            pilot.app.tell(message)
            await pilot.pause()
        await until(pilot, lambda: "two" in page(pilot.app))
        assert len(pilot.app.screen.query(Toast)) == 1
        toast = pilot.app.screen.query_one(Toast)
        at, driver = toast.region, pilot.app._driver
        assert driver is not None
        for _ in range(2):
            for kind in (MouseDown, MouseUp):
                driver.process_message(kind(None, at.x + 2, at.y, 0, 0, 1, False, False, False))
            while toast.parent is not None:  # the first click has removed it, which the second finds still drawn
                await sleep(0)
        await pilot.pause()
        assert not pilot.app.screen.query(Toast)


async def test_a_key_at_the_foot_is_clicked(app_on: AppOn) -> None:
    async with app_on().run_test(size=(60, 20)) as pilot:
        session = pilot.app.screen
        for name, keys in SCREENS.items():
            await open_screen(pilot, *keys)
            below = pilot.app.screen
            for size in share(((60, 20), (80, 24), (160, 45)), name):
                await pilot.resize_terminal(*size)
                await pilot.pause()
                await click_words(pilot, "? help")
                assert isinstance(pilot.app.screen, HelpScreen), (name, size)
                await pilot.press("escape")
                assert pilot.app.screen is below, (name, size)
            await pilot.press(*["escape"] * bool(keys))
            assert pilot.app.screen is session, name


async def test_a_key_at_the_foot_of_the_table_of_turns_is_clicked(app_on: AppOn) -> None:
    async with app_on(as_table=True, begins=None).run_test(size=(80, 24)) as pilot:
        assert isinstance(pilot.app.screen, TurnsScreen)
        assert "f filter  / search  ! worst  p policies  L live  ? help" in screen_rows(pilot.app)[-1]
        await click_words(pilot, "? help")
        assert isinstance(pilot.app.screen, HelpScreen)


async def test_the_wheel_scrolls_each_pane_under_it_and_no_other(app_on: AppOn) -> None:
    async with app_on().run_test(size=(120, 15)) as pilot:
        session = pilot.app.screen
        for keys in (*SCREENS.values(), "?"):
            await open_screen(pilot, *keys)
            if keys == SCREENS["tune"]:
                await pilot.press("g")  # the best cell, at which it opens, stands at the foot of the map
            await check_wheel(pilot)
            await pilot.press(*["escape"] * bool(keys))
            assert pilot.app.screen is session


async def test_the_wheel_scrolls_the_table_of_turns(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number:02}.jsonl").write_text(claude(prompt("hi"), block(text("Hello."), stop="end_turn")))
    async with LoopInspector([str(tmp_path)]).run_test(size=(120, 15)) as pilot:
        while pilot.app.screen.reading:
            await pilot.pause(0.02)
        assert isinstance(pilot.app.screen, TurnsScreen)
        await check_wheel(pilot)


async def test_a_row_of_a_list_over_the_screen_is_clicked(app_on: AppOn) -> None:
    async with app_on().run_test(size=(120, 35)) as pilot:
        session = pilot.app.screen
        for keys, over in ((("b",), BreakpointList), (("P", "s"), Choose), (("x",), Choose),
                           (("e", "5", "enter", "R"), RunTree)):
            await open_screen(pilot, *keys)
            assert isinstance(pilot.app.screen, over), keys
            listed = pilot.app.focused
            before = listed.cursor
            y = next(at for at in range(listed.count) if listed.selectable(at) and at != before)
            await pilot.click(listed, offset=(3, y - int(listed.scroll_offset.y)))
            await pilot.pause()
            assert not listed.is_attached or listed.cursor == y, keys
            while pilot.app.screen is not session:
                await pilot.press("escape")


async def test_a_field_of_a_form_and_each_key_in_its_note_are_clicked(app_on: AppOn) -> None:
    async with app_on().run_test(size=(120, 45)) as pilot:
        session = pilot.app.screen

        async def click_key(words: str, after: str) -> None:
            await click_words(pilot, words)
            await until(pilot, lambda: type(pilot.app.screen).__name__ == after)

        await open_screen(pilot, "e")
        first = pilot.app.focused
        other = next(each for each in pilot.app.screen.focus_chain if each is not first)
        await pilot.click(other)
        assert pilot.app.focused is other
        await click_key("fields", "LimitsForm")
        await click_key("esc leaves", "SessionScreen")
        for keys, words, after in (("b", "a type one", "Prompt"), ("x", "enter chooses", "Prompt"),
                                   ("W", "esc leaves", "SessionScreen"), ("W", "F4 asks live", "AskLive")):
            await open_screen(pilot, keys)
            await click_key(words, after)
            while pilot.app.screen is not session and after == "Prompt":
                await pilot.press("escape")


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
        await click_words(pilot, "v [step]")
        assert "Request of response" in "\n".join(screen_rows(pilot.app))
        await open_screen(pilot, "space", "3")
        for form, shown in (("raw", "[raw]"), ("parsed", "[parsed]"), ("request", "[request]"), ("events", "[events]")):
            await click_words(pilot, f" {form} ")
            await until(pilot, lambda shown=shown: "v " in page(pilot.app) and shown in page(pilot.app))
        await pilot.resize_terminal(41, 24)  # where the words around the forms pushed the last one onto another row
        for form in ("request", "hex", "events"):
            await click_words(pilot, f" {form}")
            await until(pilot, lambda form=form: f"[{form}]" in page(pilot.app))
        await pilot.resize_terminal(160, 45)
        await open_screen(pilot, "n")
        assert "nothing was searched yet: / searches" in screen_rows(pilot.app)[-1]
        await click_words(pilot, "/ searches")
        await until(pilot, lambda: isinstance(pilot.app.screen, Prompt))


async def test_the_keys_of_a_line_at_the_foot_are_clicked(app_on: AppOn) -> None:
    async with app_on().run_test(size=(60, 30)) as pilot:
        session = pilot.app.screen
        for keys, word, over in (("f", "esc", "SessionScreen"), ("f", "enter", "SessionScreen"),
                                 ("/", "esc", "SessionScreen"), ("ue", "esc", "TuneScreen"),
                                 ("P:", "esc", "ProvidersScreen")):
            for key in keys[:-1]:
                await open_screen(pilot, key)
            for width in share((60, 120), keys):
                await pilot.resize_terminal(width, 30)
                await open_screen(pilot, keys[-1])
                assert isinstance(pilot.app.screen, Prompt), (keys, width)
                await pilot.click(offset=(screen_rows(pilot.app)[-1].rindex(word), 29))
                await pilot.pause()
                assert type(pilot.app.screen).__name__ == over, (keys, width)
            await pilot.press(*["escape"] * len(keys[:-1]))
            assert pilot.app.screen is session


async def test_a_note_names_only_keys_that_the_box_has(app_on: AppOn) -> None:
    """An `a` that begins a note looked like a key: `a key is missing`."""
    entries = [entry([user("Write it.")], stream("Half", "length", 64))]
    async with app_on(entries).run_test(size=(120, 40)) as pilot:
        # A slash goes on in the box that is open; F enter shows what it costs, and the last two are over a live turn.
        for keys in ("e", "b", "x", "R", "V", "d", "W", "F", "/ENTER", "L", "LENTERi", "I"):
            if not keys.startswith("/"):
                while isinstance(pilot.app.screen, Dialog):
                    await pilot.press("escape")
            for key in keys.removeprefix("/").replace("ENTER", "\n"):
                await open_screen(pilot, "enter" if key == "\n" else key)
            screen = pilot.app.screen
            assert isinstance(screen, Dialog), keys
            shown = [span for note in screen.query(KeyNote) for span in note.line]
            named = [key_of(span.text) for span in shown if span.role is Tone.PRESS]
            assert named, keys
            assert set(named) <= set(screen.active_bindings), keys
