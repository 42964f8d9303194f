"""Keys that are struck before the field that they are meant for is there: all of them arrive, in their order."""

from collections.abc import Callable

import pytest
from textual.events import Key
from textual.widgets import Input

from inspector.tui.app import LoopInspector
from inspector.tui.limits_form import LimitsForm
from inspector.tui.lists import Choose, RowList
from inspector.tui.session_screen import SessionScreen
from tests.scenes.app import until

AppOn = Callable[..., LoopInspector]
NAMES = {":": "colon", "\r": "enter", "=": "equals_sign", "_": "underscore", "/": "slash", "?": "question_mark",
         ";": "semicolon"}


def strike(app: LoopInspector, text: str) -> None:
    """All keys at once, as a terminal hands them on that was pasted into or that waited."""
    for char in text:
        app.post_message(Key(NAMES.get(char, char), char))


@pytest.mark.parametrize(("text", "step"), [(":10\r", 9), (":7\r", 6), (":999\r", 0)])
async def test_a_number_that_is_struck_at_once_arrives(app_on: AppOn, text: str, step: int) -> None:
    async with app_on().run_test(size=(80, 24)) as pilot:
        strike(pilot.app, text)
        if step:
            await until(pilot, lambda: getattr(pilot.app.screen, "step", 0) == step)
        else:  # it is no step, and the line stays open
            await until(pilot, lambda: [field.value for field in pilot.app.screen.query(Input)] == ["999"])
            await pilot.press("escape")
        assert isinstance(pilot.app.screen, SessionScreen)
        assert pilot.app.screen.step == step
        assert pilot.app.screen.panes.tab == "merged", "a figure is no tab once a colon was struck"


async def test_a_form_takes_what_is_struck_before_it_is_drawn(app_on: AppOn) -> None:
    async with app_on().run_test(size=(160, 45)) as pilot:
        strike(pilot.app, "e57")
        await until(pilot, lambda: isinstance(pilot.app.screen, LimitsForm) and bool(pilot.app.screen.query(Input)))
        await until(pilot, lambda: pilot.app.screen.query(Input).first().value.endswith("57"))


async def test_a_list_takes_what_is_struck_before_it_is_drawn(app_on: AppOn) -> None:
    async with app_on().run_test(size=(160, 45)) as pilot:
        strike(pilot.app, "xjj")
        await until(pilot, lambda: isinstance(pilot.app.screen, Choose)
                    and [each.cursor for each in pilot.app.screen.query(RowList)] == [2])


PANELS = {
    "filter": ("f", "held"), "search": ("/", "queue"), "command": (":", "seam"), "note": (";", "look"),
    "help": ("?", "step"), "limits": ("e", "77"), "breakpoint": ("ba", "held"), "filter of policies": ("p/", "pi"),
    "search of providers": ("P/", "vllm"), "budget of providers": ("P:", "64"), "turn of the grid": ("u:", "1"),
}


@pytest.mark.parametrize(("keys", "text"), PANELS.values(), ids=PANELS)
async def test_a_panel_with_a_field_takes_typing_at_once(app_on: AppOn, keys: str, text: str) -> None:
    async with app_on().run_test(size=(120, 40)) as pilot:
        for key in keys[:-1]:
            await pilot.press(NAMES.get(key, key))
        strike(pilot.app, keys[-1] + text)
        await until(pilot, lambda: any(field.value.endswith(text) for field in pilot.app.screen.query(Input)))
