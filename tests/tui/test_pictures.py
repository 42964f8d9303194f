"""A picture of each screen at both sizes: for looks only; what a screen says is tested elsewhere."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from inspector.tui.app import LoopInspector
from inspector.tui.session_files import ReadingOptions, load
from tests.scenes.app import page, story, until

AppOn = Callable[..., LoopInspector]
Compare = Callable[..., bool]
SIZES = [(80, 24), (160, 45)]
STEP_OF_THE_HELD_CALL = ("]", "space")
PICTURES = {
    "merged": ("space", "space", "space", "space"),
    "sides": ("}", "}", "v"),
    "response": (*STEP_OF_THE_HELD_CALL, "2"),
    "wire": (*STEP_OF_THE_HELD_CALL, "3"),
    "fact": (*STEP_OF_THE_HELD_CALL, "3", "v", *"....."),
    "calls": (*STEP_OF_THE_HELD_CALL, "4"),
    "limits": ("e", "x"),
    "ask": ("e", "up", "up", "l", "enter"),
    "branch": ("e", "5", "enter"),
    "help": ("?",),
    "runs": ("e", "5", "enter", "R"),
    "beside": ("e", "5", "enter", "R", "g", "d"),
    "breakpoints": ("space", "space", "b", "enter"),
    "filter": ("f", *"held", "enter"),
    "export": ("x",),
}


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", PICTURES)
def test_a_session(app_on: AppOn, snap_compare: Compare, name: str, size: tuple[int, int]) -> None:
    async def press_keys(pilot: Pilot[Any]) -> None:
        await pilot.press(*PICTURES[name])
        if name == "limits":  # its preview comes once no key has come for a moment
            await until(pilot, lambda: "a value is invalid" in page(pilot.app))
        await pilot.pause()

    assert snap_compare(app_on(), run_before=press_keys, terminal_size=size)


@pytest.mark.parametrize("size", [(80, 24), (120, 30), (160, 45)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_the_table_of_turns(snap_compare: Compare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                            size: tuple[int, int]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("inspector.tui.turn_list.time.time", lambda: 1_780_000_000.0)
    story(tmp_path)
    opened = load(["story.har"], ReadingOptions())
    app = LoopInspector(["story.har"], opened_already=opened, as_table=True)
    assert snap_compare(app, press=("down",), terminal_size=size)


TABLES = {
    "policies": ("p", ("}", "down")),
    "providers": ("P", ("down", "down")),
    "tune": ("u", ("down",)),
}


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", TABLES)
def test_a_table(app_on: AppOn, snap_compare: Compare, name: str, size: tuple[int, int]) -> None:
    key, then = TABLES[name]

    async def open_table(pilot: Pilot[Any]) -> None:
        await pilot.press(key)
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        await pilot.press(*then)
        await pilot.pause()

    assert snap_compare(app_on(), run_before=open_table, terminal_size=size)
