"""A picture of each screen at both sizes: for looks only; what a screen says is tested elsewhere."""

from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.provider.dialect_output import TableQuery
from inspector.tui.app import LoopInspector
from inspector.tui.session_files import ReadingOptions, load
from tests.scenes.app import Album, page, story, until
from tests.scenes.app import album as album
from tests.scenes.provider import rows_by_query

AppOn = Callable[..., LoopInspector]
SIZES = [(80, 24), (160, 45)]
PICTURES: tuple[dict[str, tuple[str, ...]], ...] = (
    {"merged": ("space",) * 4},
    {"sides": ("}", "}", "v")},
    {"response": ("]", "space", "2"), "calls": ("4",)},
    {"wire": ("]", "space", "3"), "fact": ("v", *".....")},
    {"limits": ("e", "x")},
    {"ask": ("e", "up", "up", "l", "enter")},
    {"branch": ("e", "5", "enter"), "runs": ("R",), "beside": ("g", "d")},
    {"help": ("?",)},
    {"breakpoints": ("space", "space", "b", "enter")},
    {"filter": ("f", *"held", "enter")},
    {"export": ("x",)},
)
"""The pictures that one app is taken of in turn, and the keys to each from the one before it."""


async def test_a_session(app_on: AppOn, album: Album, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for size in SIZES:
        for number, pictures in enumerate(PICTURES):
            monkeypatch.setenv("LOOP_INSPECTOR_DATA", str(tmp_path / f"{size}{number}"))  # no run of another app
            async with app_on().run_test(size=size) as pilot:
                for name, keys in pictures.items():
                    await pilot.press(*keys)
                    if name == "limits":  # its preview comes once no key has come for a moment
                        await until(pilot, lambda pilot=pilot: "a value is invalid" in page(pilot.app))
                    await pilot.pause()
                    album.compare(pilot, name)
    assert album.different == []


async def test_the_table_of_turns(album: Album, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("inspector.tui.turn_list.time.time", lambda: 1_780_000_000.0)
    story(tmp_path)
    for size in ((80, 24), (120, 30), (160, 45)):
        app = LoopInspector(["story.har"], opened_already=load(["story.har"], ReadingOptions()), as_table=True)
        async with app.run_test(size=size) as pilot:
            await pilot.press("down")
            await pilot.pause()
            album.compare(pilot, "")
    assert album.different == []


TABLES = {
    "policies": ("p", ("}", "down")),
    "providers": ("P", ("down", "down")),
    "tune": ("u", ("down",)),
}


async def test_a_table(app_on: AppOn, album: Album, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TableQuery, "rows", rows_by_query)
    for size in SIZES:
        async with app_on().run_test(size=size) as pilot:
            for name, (key, then) in TABLES.items():
                await pilot.press(key)
                await pilot.app.workers.wait_for_complete()
                await pilot.pause()
                await pilot.press(*then)
                await pilot.pause()
                album.compare(pilot, name)
                await pilot.press("escape")
    assert album.different == []
