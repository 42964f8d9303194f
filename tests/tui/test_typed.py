"""Keys that are struck before the screen or the field that they are meant for is there: all arrive, in their order."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.events import Key, Paste
from textual.pilot import Pilot
from textual.widgets import Input

from inspector.tui.app import LoopInspector
from inspector.tui.base_app import PASSES, Follower
from inspector.tui.limits_form import LimitsForm
from inspector.tui.lists import Choose, RowList
from inspector.tui.session_files import ReadingOptions, load
from inspector.tui.session_screen import SessionScreen
from inspector.tui.turns_screen import TurnsScreen
from tests.scenes.app import cut_text, story, until

AppOn = Callable[..., LoopInspector]
NAMES = {":": "colon", "\r": "enter", "=": "equals_sign", "_": "underscore", "/": "slash", "?": "question_mark",
         ";": "semicolon", " ": "space", "\x1b": "escape"}


def strike(app: LoopInspector, text: str) -> None:
    """All keys at once, as a terminal hands them on that was pasted into or that waited."""
    for char in text:
        app.post_message(Key(NAMES.get(char, char), char))


async def test_a_number_that_is_struck_at_once_arrives(app_on: AppOn) -> None:
    async with app_on().run_test(size=(80, 24)) as pilot:
        session = pilot.app.screen
        assert isinstance(session, SessionScreen)
        for text, step in ((":10\r", 9), (":7\r", 6), (":999\r", 6)):
            strike(pilot.app, text)
            if text == ":999\r":  # it is no step, and the line stays open
                await until(pilot, lambda: [field.value for field in pilot.app.screen.query(Input)] == ["999"])
                await pilot.press("escape")
            await until(pilot, lambda step=step: pilot.app.screen is session and session.step == step)
            assert session.panes.tab == "merged", "a figure is no tab once a colon was struck"


async def test_a_form_and_a_list_take_what_is_struck_before_they_are_drawn(app_on: AppOn) -> None:
    async with app_on().run_test(size=(80, 24)) as pilot:
        strike(pilot.app, "xjj")
        await until(pilot, lambda: isinstance(pilot.app.screen, Choose)
                    and [each.cursor for each in pilot.app.screen.query(RowList)] == [2])
        await pilot.press("escape")
        strike(pilot.app, "e57")
        await until(pilot, lambda: isinstance(pilot.app.screen, LimitsForm) and bool(pilot.app.screen.query(Input)))
        await until(pilot, lambda: pilot.app.screen.query(Input).first().value.endswith("57"))


@pytest.fixture
def table(tmp_path: Path) -> LoopInspector:
    """The table of two files."""
    story(tmp_path, name="a.har")
    story(tmp_path, cut_text(), name="b.har")
    return LoopInspector([str(tmp_path)])


async def rows_read(app: LoopInspector, pilot: Pilot[Any]) -> None:
    await until(pilot, lambda: isinstance(app.screen, TurnsScreen) and not app.screen.reading)


async def test_a_session_and_its_form_take_what_is_struck_while_the_session_opens(table: LoopInspector) -> None:
    async with table.run_test(size=(80, 24)) as pilot:
        await rows_read(table, pilot)
        for keys, opened in (("\r4", "calls"), ("\r4G2", "response"), ("\r 7", "machine")):
            strike(table, keys)
            await until(pilot, lambda opened=opened: isinstance(table.screen, SessionScreen)
                        and table.screen.panes.tab == opened)
            await pilot.press("q")
            assert isinstance(table.screen, TurnsScreen)
        strike(table, "\re57")
        await until(pilot, lambda: isinstance(table.screen, LimitsForm) and bool(table.screen.query(Input)))
        await until(pilot, lambda: table.screen.query(Input).first().value.endswith("57"))


async def test_keys_wait_for_the_first_screen(tmp_path: Path) -> None:
    app = LoopInspector([str(story(tmp_path))], opened_already=load([str(story(tmp_path))], ReadingOptions()))
    strike(app, "4")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, SessionScreen) and app.screen.panes.tab == "calls")


async def test_what_is_pasted_behind_the_key_that_opens_a_field_arrives(table: LoopInspector) -> None:
    async with table.run_test(size=(80, 24)) as pilot:
        await rows_read(table, pilot)
        table.post_message(Key("slash", "/"))
        table.post_message(Paste("queue"))
        await until(pilot, lambda: [field.value for field in table.screen.query(Input)] == ["queue"])


async def test_keys_behind_the_enter_of_a_field_go_to_the_screen_below(app_on: AppOn) -> None:
    async with app_on().run_test(size=(80, 24)) as pilot:
        strike(pilot.app, ":10\r4 ")
        await until(pilot, lambda: getattr(pilot.app.screen, "step", 0) == 10)
        assert isinstance(pilot.app.screen, SessionScreen)
        assert pilot.app.screen.panes.tab == "calls"


async def test_sessions_that_are_opened_and_left_without_a_pause_leave_the_table(table: LoopInspector) -> None:
    async with table.run_test(size=(80, 24)) as pilot:
        await rows_read(table, pilot)
        opened = []
        table.screen_change_signal.subscribe(table.screen, lambda screen: opened.append(type(screen)), immediate=True)
        strike(table, "\r\x1b" * 10 + "j")
        await until(pilot, lambda: opened.count(SessionScreen) == 10 and isinstance(table.screen, TurnsScreen)
                    and table.screen.turn_list.cursor == 1)
        assert len(table.screen_stack) == 1


async def test_a_row_of_providers_takes_what_is_struck_behind_enter() -> None:
    app = LoopInspector()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("P")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        strike(app, "\r2")
        await until(pilot, lambda: isinstance(app.screen, SessionScreen) and app.screen.panes.tab == "response")


PANELS = {
    "filter": ("f", "held"), "search": ("/", "queue"), "command": (":", "seam"), "note": (";", "look"),
    "help": ("?", "step"), "limits": ("e", "77"), "breakpoint": ("ba", "held"), "filter of policies": ("p/", "pi"),
    "search of providers": ("P/", "vllm"), "budget of providers": ("P:", "64"), "turn of the grid": ("u:", "1"),
}


async def test_a_panel_with_a_field_takes_typing_at_once(app_on: AppOn) -> None:
    async with app_on().run_test(size=(80, 24)) as pilot:
        session = pilot.app.screen
        for name, (keys, text) in PANELS.items():
            for key in keys[:-1]:
                await pilot.press(NAMES.get(key, key))
            below = pilot.app.screen
            strike(pilot.app, keys[-1] + text)
            await until(pilot, lambda below=below, text=text: pilot.app.screen is not below and any(
                field.value.endswith(text) for field in pilot.app.screen.query(Input)))
            while pilot.app.screen is not session:
                assert pilot.app.screen is not None, name
                await pilot.press("escape")


async def test_a_follower_that_arrives_while_the_app_closes_finds_no_screen_and_no_error(app_on: AppOn) -> None:
    app = app_on()
    async with app.run_test(size=(80, 24)) as pilot:
        last = pilot.app.screen
    assert not app.screen_stack
    app._follow(PASSES)
    app._note_drawing(last)
    assert app._visible_screen is None or app._visible_screen[0] is last


async def test_keys_that_wait_when_the_app_ends_are_dropped(app_on: AppOn) -> None:
    """They were looked up on the screen, of which there is none any more, and the program ended with a traceback."""
    app = app_on()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        strike(app, "jjj")
    assert not app.screen_stack
    app._keys, app._follower = (Key("j", "j"),), Follower(1)
    await app._handle_follower(app._follower)


async def test_a_field_of_one_row_takes_every_pasted_line(app_on: AppOn) -> None:
    """Only the first line came in, and nothing said that the rest of a pasted prompt was lost."""
    async with app_on().run_test(size=(80, 24)) as pilot:
        for key in ("f", "slash", "colon", "L"):
            await pilot.press(key)
            await until(pilot, lambda: isinstance(pilot.app.focused, Input))
            pilot.app.focused.post_message(Paste("Plan it.\nThen write  it down.\r\n"))
            await until(pilot, lambda: pilot.app.focused.value == "Plan it. Then write  it down.")
            pilot.app.focused.post_message(Paste("\n"))
            await pilot.pause()
            assert pilot.app.focused.value == "Plan it. Then write  it down.", key
            await pilot.press("escape")
