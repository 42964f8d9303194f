"""A transcript full of escape sequences, markup and bidirectional marks is shown, inert, in every view."""

import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.tui.app import LoopInspector
from inspector.tui.key_words import TABS
from inspector.tui.session_files import ReadingOptions, load
from tests.scenes.app import CUT_ARGUMENTS, HOSTILE, cut_text, entry, har, hostile, page, screen_rows, user, view_text
from tests.scenes.shapes import EVERY, SHAPES, places, put

AppOn = Callable[..., LoopInspector]


def commands_in(rows: list[str]) -> set[str]:
    """Characters that a terminal would obey: controls, format characters, surrogates."""
    return {repr(char) for char in {*"".join(rows)} if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")}


def test_the_scene_is_hostile() -> None:
    assert len(commands_in([HOSTILE])) == 8


@pytest.mark.parametrize(("size", "plain", "key", "steps"), [((80, 24), True, "}", 5), ((160, 45), False, "space", 9)])
async def test_no_view_lets_a_command_through(
    app_on: AppOn, size: tuple[int, int], plain: bool, key: str, steps: int
) -> None:
    """At each of the first steps, and without signs beyond ASCII at each event worth stopping at."""
    async with app_on(hostile(), plain=plain).run_test(size=size) as pilot:
        for step in range(steps):
            forms = {"wire": 5, "diff": 3} if plain or step % 3 == 1 else {}
            for tab in TABS:
                await pilot.press(tab.key)
                for form in range(forms.get(tab.name, 1)):
                    if form:
                        await pilot.press("v")
                    assert commands_in(screen_rows(pilot.app)) == set(), (tab.name, form)
            await pilot.press(key)


async def test_markup_is_text(app_on: AppOn) -> None:
    async with app_on(hostile()).run_test(size=(160, 45)) as pilot:
        await pilot.press("space")
        for key in "1245":
            await pilot.press(key)
            assert "[bold red]markup[/]" in page(pilot.app), key
            assert "␛[31mred␛[0m" in page(pilot.app), key


async def test_a_branch_and_the_form_are_inert_too(app_on: AppOn) -> None:
    async with app_on(hostile()).run_test(size=(120, 40)) as pilot:
        await pilot.press("e")
        assert commands_in(screen_rows(pilot.app)) == set()
        await pilot.press("1", "enter")
        assert commands_in(screen_rows(pilot.app)) == set()
        await pilot.press("/", "x", "enter", "?")
        assert commands_in(screen_rows(pilot.app)) == set()


async def test_a_file_name_is_inert(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[31m[red]b.har"
    path.write_text(har(cut_text()))
    app = LoopInspector([str(path)], opened_already=load([str(path)], ReadingOptions()))
    async with app.run_test(size=(120, 40)) as pilot:
        assert commands_in(screen_rows(app)) == set()
        assert "a␛[31m[red]b.har" in page(app)
        await pilot.press("Y")
        assert commands_in(screen_rows(app)) == set()


async def test_credentials_are_in_no_view(app_on: AppOn) -> None:
    key = "sk-proj-" + "a1B2" * 10
    secret = entry([user("x")], '{"choices": [{"index": 0, "message": {"role": "assistant", "content": "y"}, '
                                '"finish_reason": "stop"}]}', key=key)
    async with app_on([secret]).run_test(size=(160, 45)) as pilot:
        await pilot.press("space", "3", "v", "v", "v", "v")
        assert "REDACTED" in page(pilot.app)
        for tab in TABS:
            await pilot.press(tab.key)
            assert key not in page(pilot.app)


async def test_a_held_call_shows_its_cut(app_on: AppOn) -> None:
    async with app_on().run_test(size=(160, 45)) as pilot:
        await pilot.press("]", "space", "4")
        assert CUT_ARGUMENTS + "▌" in view_text(pilot.app)
        assert "▣ HELD write_file" in page(pilot.app)


async def test_the_first_screen_of_files_with_odd_values(tmp_path: Path) -> None:
    for shape in SHAPES[:4]:
        everywhere = [(at, odd) for at in places(shape.value) for odd in EVERY]
        for at, odd in everywhere[:: len(everywhere) // 3]:
            path = tmp_path / shape.name
            path.write_bytes(shape.file_bytes(put(shape.value, at, odd)))
            start = load([str(path)], ReadingOptions())
            if not start.original.view.steps:
                continue  # said on the command line, before there is a screen
            async with LoopInspector([str(path)], opened_already=start).run_test(size=(80, 24)) as pilot:
                assert "turn 1 of" in page(pilot.app), (shape.name, at, odd)
