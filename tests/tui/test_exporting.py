"""Exports and copies from the app: what is written, where, and what a terminal that takes no copy is told."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tui_scenes import page

from inspector.export import FORMS
from inspector.tui.app import LoopInspector
from inspector.tui.clipboard import REFUSING, refused
from inspector.tui.screens.choose import Choose
from inspector.tui.session.exporting import VIEWS

AppOn = Callable[..., LoopInspector]
THREE = (160, 45)


@pytest.mark.parametrize("form", [*VIEWS, *FORMS])
async def test_every_form_is_written_into_the_folder_that_is_named(
    app_on: AppOn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    place = tmp_path / "out"
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("]", "space", "x")
        assert isinstance(pilot.app.screen, Choose)
        await pilot.press(*["j"] * [*VIEWS, *FORMS].index(form), "enter", "backspace", *str(place), "enter")
        await pilot.pause()
        files = sorted(place.iterdir())
        assert len(files) == (2 if form in ("bug", "otlp") else 1)
        assert "written: " in page(pilot.app)
        assert all(path.stat().st_size > 20 for path in files)
        content = files[0].read_text("utf-8")
        if form == "svg":
            assert content.startswith("<svg")
            assert "EvaluateStop" in content
        if form == "view":
            assert "segment 1" in content


async def test_nothing_is_written_over(app_on: AppOn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("]", "space", "X")
        first = sorted(path.name for path in tmp_path.glob("loop-inspector-*"))
        assert len(first) == 2
        await pilot.press("X")
        assert len(list(tmp_path.glob("loop-inspector-*"))) == 4
        assert len(list(tmp_path.glob("loop-inspector-*-2.md"))) == 1


async def test_what_cannot_be_written_is_told(app_on: AppOn, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("x", "enter", "backspace", *str(tmp_path / "file"), "enter")
        assert "not written: " in page(pilot.app)
        await pilot.press("x", *["j"] * [*VIEWS, *FORMS].index("curl"), "enter", "enter")
        assert "choose a response" in page(pilot.app)  # the first step has none at hand
        await pilot.press("x", "escape")
        assert not isinstance(pilot.app.screen, Choose)


@pytest.mark.parametrize(("given", "says"), [
    ({"TERM": "linux"}, "the Linux console has no clipboard"),
    ({"TERM_PROGRAM": "Apple_Terminal"}, "Terminal.app ignores OSC 52"),
    ({"STY": "1.tty"}, "GNU screen does not pass OSC 52 on"),
    ({"VTE_VERSION": "6800"}, "VTE ignores OSC 52 before its version 0.76"),
    ({"VTE_VERSION": "7600"}, None), ({"TERM": "xterm-256color"}, None), ({}, None),
])
def test_terminals_that_take_no_copy_are_known(given: dict[str, str], says: str | None) -> None:
    assert refused(given) == says
    assert len(REFUSING) == 4


async def test_a_copy_that_would_be_lost_is_told(app_on: AppOn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM_PROGRAM", "Apple_Terminal")
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("y")
        assert "not copied: Terminal.app ignores OSC 52" in page(pilot.app)
        assert pilot.app.clipboard == ""
