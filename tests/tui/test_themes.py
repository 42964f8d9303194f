"""The themes: their contrast, how one is chosen, and that each shows the app."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.cells import cell_len
from rich.style import Style
from textual.color import Color
from textual.geometry import Region
from textual.screen import Screen
from textual.theme import BUILTIN_THEMES, Theme
from textual.widgets import Input

from inspector.commands.sessions import view_command
from inspector.report.lines.spans import Tone
from inspector.tui.app import LoopInspector
from inspector.tui.heat_map import HeatMap
from inspector.tui.paint import ANSI, CONTRAST, DARK, LIGHT, LOOKS, THEMES, Paint, own_colours, readable, with_contrast
from loop_core.errors import CallerError
from tests.scenes.app import page, story, until
from tests.scenes.rows import share

AppOn = Callable[..., LoopInspector]
BACKGROUNDS = ("background", "surface", "panel", "cursor")
DRAWN = {Tone.RULE, Tone.PAST}
"""Roles of lines and rules that separate text; no text has them."""


def luminance(colour: Color) -> float:
    """Relative luminance, as WCAG 2 defines it."""
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
              for value in (channel / 255 for channel in colour.rgb)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: Color, other: Color) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def colours(name: str) -> dict[str, Color]:
    """Every colour of one of our themes."""
    theme = next(each for each in THEMES if each.name == name)
    return {name: Color.parse(value) for name, value in theme.to_color_system().generate().items()
            if value.startswith("#")} | {name: Color.parse(value) for name, value in theme.variables.items()}


@pytest.mark.parametrize(("theme", "least"), [(DARK, 4.5), (LIGHT, 4.5), (CONTRAST, 7.0)])
def test_every_text_has_contrast_on_every_background(theme: str, least: float) -> None:
    found = colours(theme)
    for role in Tone:
        if role not in DRAWN or theme == CONTRAST:
            text = found[LOOKS[role][0] or "foreground"]
            for background in BACKGROUNDS:
                assert contrast(text, found[background]) >= least, (role, background)


TRUE_COLOURS = [each for each in (*THEMES, *BUILTIN_THEMES.values()) if not each.ansi]
"""The themes whose colours are known; those of the others are the terminal's."""


@pytest.mark.parametrize("theme", TRUE_COLOURS, ids=lambda each: each.name)
def test_every_text_can_be_read_in_every_theme(theme: Theme) -> None:
    variables = {**own_colours(theme), **theme.to_color_system().generate(), **theme.variables}
    found = readable(theme, with_contrast(theme, variables))
    drawn = {LOOKS[role][0] for role in DRAWN}
    for name in {"foreground", "text-muted", "text-disabled", *(look[0] for look in LOOKS.values())} - {"", *drawn}:
        for background in BACKGROUNDS:
            assert contrast(Color.parse(found[name]), Color.parse(found[background])) >= 4.5, (name, background)
    for background in BACKGROUNDS:  # of a focused field, which Textual moves by a twentieth to the colour of its text
        field = Color.parse(found[background]).blend(Color.parse(found["foreground"]), 0.05)
        for name in ("foreground", "text-disabled"):  # what is typed, and the hint
            assert contrast(Color.parse(found[name]), field) >= 4.5, (name, background)


def words_of(screen: Screen[Any], single: bool) -> list[tuple[str, Style]]:
    """The texts of letters and figures on a screen, without those of the dimmed screen below; `single`: only those of
    one word."""
    found = []
    for y, strip in enumerate(screen._compositor.render_strips()):
        x = 0
        for text, style, _ in strip:
            at, x = x, x + cell_len(text)
            if (style is not None and style.color and style.bgcolor
                    and text.strip().replace(" ", " " if single else "").isalnum()
                    and screen.get_widget_at(at, y)[0] is not screen):
                found.append((text, style))
    return found


async def test_what_a_dialog_shows_can_be_read(app_on: AppOn) -> None:
    """Also the hints in its fields, what is selected in one, and the words below a command of the palette."""
    async with app_on().run_test(size=(120, 40)) as pilot:
        app = pilot.app
        below = app.screen
        for key in ("e", "L", "question_mark", "slash", "ctrl+p"):
            await pilot.press(key)
            for theme in share(
                (DARK, LIGHT, CONTRAST, "textual-light", "atom-one-light", "atom-one-dark", "flexoki"), key
            ):
                app.theme = theme
                await pilot.pause()
                screen, single = app.screen, key != "ctrl+p"  # few entries of the palette are one word
                assert screen is not below
                # the palette empties its list until it has found all that it offers
                await until(pilot, lambda screen=screen, single=single: bool(words_of(screen, single)))
                for text, style in words_of(screen, single):
                    assert not style.dim
                    text_and_back = [Color(*colour.get_truecolor()) for colour in (style.color, style.bgcolor)]
                    assert contrast(*text_and_back) >= 4.5, (key, theme, text)
            await pilot.press("escape")
            assert app.screen is below


async def test_each_theme_shows_the_app(app_on: AppOn) -> None:
    themes = (LIGHT, DARK, CONTRAST, ANSI, "nord", "textual-light", "ansi-dark", "ansi-light", "gruvbox")
    async with app_on(theme=LIGHT).run_test(size=(120, 30)) as pilot:
        assert pilot.app.theme == LIGHT
        for theme in themes:
            pilot.app.theme = theme
            await pilot.pause()
            assert "CUT CALL RUN" in page(pilot.app), theme
            assert pilot.app.paint.on(Style())[Tone.KEY].color == Color.parse(
                pilot.app.theme_variables["accent" if theme.startswith("inspector") else "text-accent"]).rich_color
        await pilot.press("e")
        for theme in themes:
            pilot.app.theme = theme
            await pilot.pause()
            assert "policy" in page(pilot.app), theme


async def test_the_ansi_theme_uses_the_terminals_own_colours(app_on: AppOn) -> None:
    async with app_on(theme=ANSI).run_test(size=(120, 30)) as pilot:
        assert pilot.app.native_ansi_color
        used = {segment.style.color for strip in pilot.app.screen._compositor.render_strips() for segment in strip
                if segment.style is not None and segment.style.color is not None}
        assert used
        assert all(colour.is_system_defined or colour.is_default for colour in used), used
        paint = Paint(pilot.app.theme_variables)
        assert paint.cursor.reverse
        assert {style.color for style in paint.on(paint.cursor).values()} == {None}, "one row, no patches"


async def test_the_chosen_cell_can_be_told_from_its_reversed_row(app_on: AppOn) -> None:
    async with app_on(theme=ANSI).run_test(size=(120, 30)) as pilot:
        await pilot.press("p")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        row = next(strip for strip in pilot.app.screen._compositor.render_strips() if "▶" in strip.text)
        plain = [segment.text for segment in row if segment.style is not None and not segment.style.reverse]
        assert [text for text in plain if text.strip()] == [row.text.partition("▶")[2].split()[0]]


async def test_the_chosen_cell_of_the_heat_map_has_one_background(app_on: AppOn) -> None:
    """A colour in a reversed cell would become the background of its word."""
    async with app_on(theme=ANSI).run_test(size=(120, 30)) as pilot:
        await pilot.press("u")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        row = next(strip for strip in pilot.app.screen.query_one(HeatMap).render_lines(Region(0, 0, 120, 30))
                   if "◀" in strip.text)
        cell = [part for part in row if part.style is not None and part.style.reverse]
        assert cell[0].text in {"✓", "■"}
        assert any("◀" in part.text for part in cell)
        assert {part.style and part.style.color for part in cell} == {None}
        assert all(part.style and part.style.bold for part in cell), "it has the focus"


async def test_the_words_below_the_chosen_command_have_the_colour_of_its_row(app_on: AppOn) -> None:
    """The terminal's own colour of texts, white on a dark terminal, cannot be read on a row that is white."""
    async with app_on(theme=ANSI).run_test(size=(100, 30)) as pilot:
        await pilot.press("ctrl+p", *"light or dark")
        await until(pilot, lambda: "Light or dark (t)" in page(pilot.app))
        for theme in (ANSI, "ansi-dark", "ansi-light"):
            pilot.app.theme = theme
            await pilot.pause()
            rows = list(pilot.app.screen._compositor.render_strips())
            at = next(y for y, strip in enumerate(rows) if "Light or dark (t)" in strip.text)
            looks = [{(part.style.color, part.style.bgcolor) for part in rows[y] if part.style and part.text.strip()}
                     for y in (at, at + 1)]
            assert looks[0] == looks[1], theme
            assert len(looks[0]) == 1, theme


async def test_a_hint_in_the_focused_field_stands_on_the_terminals_own_background(app_on: AppOn) -> None:
    """Behind a dim text none of the sixteen colours is readable in every terminal; the field is underlined instead."""
    async with app_on(theme=ANSI).run_test(size=(120, 35)) as pilot:
        await pilot.press("L")
        for theme in (ANSI, "ansi-light"):
            pilot.app.theme = theme
            await pilot.pause()
            field = pilot.app.focused
            assert isinstance(field, Input)
            assert field.rich_style.bgcolor is not None
            assert field.rich_style.bgcolor.is_default
            assert field.rich_style.underline
            await pilot.press("down")
            assert not field.rich_style.underline
            await pilot.press("up")


@pytest.mark.parametrize("theme", ["nord", "textual-light", "ansi-dark"])
def test_a_theme_that_does_not_name_our_colours_has_them(theme: str) -> None:
    own = own_colours(BUILTIN_THEMES[theme])
    assert set(own) == {"rule", "muted", "ahead", "cursor"}
    assert all(value.startswith("ansi_") for value in own.values()) == BUILTIN_THEMES[theme].ansi


async def test_the_palette_offers_every_theme(app_on: AppOn) -> None:
    async with app_on().run_test(size=(80, 24)) as pilot:
        assert {DARK, LIGHT, CONTRAST, ANSI, *BUILTIN_THEMES} <= set(pilot.app.available_themes)
        await pilot.press("ctrl+p", *"choose a theme")
        await until(pilot, lambda: "Choose a theme" in page(pilot.app))
        await pilot.press("enter")
        await until(pilot, lambda: "ansi-dark" in page(pilot.app))
        await pilot.press(*CONTRAST)
        await until(pilot, lambda: "ansi-dark" not in page(pilot.app))
        await pilot.press("enter")
        await until(pilot, lambda: pilot.app.theme == CONTRAST)


def test_a_theme_that_does_not_exist_is_refused_with_those_that_do(app_on: AppOn) -> None:
    with pytest.raises(CallerError, match="inspector-contrast"):
        app_on(theme="zzzz")


@pytest.mark.parametrize(("flags", "theme"), [((), LIGHT), (("--theme", CONTRAST), CONTRAST)])
def test_a_theme_of_the_command_line_goes_before_the_configured_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, flags: tuple[str, ...], theme: str
) -> None:
    found: dict[str, object] = {}
    monkeypatch.setenv("LOOP_INSPECTOR_THEME", LIGHT)
    monkeypatch.setattr("inspector.commands.has_terminal", lambda: True)
    monkeypatch.setattr("inspector.tui.launch.run", lambda paths, **options: found.update(options) or ((), 0))
    CliRunner().invoke(view_command, [str(story(tmp_path)), *flags])
    assert found["theme"] == theme


ODD_TEXTS = (
    "plain text", "", "a\tb", "\x1b[31m", "\x7f", "\u00e9", "e\u0301", "\u65e5\u672c", "\U0001f469\u200d", "a\u200bb")


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_a_text_is_as_wide_as_rich_draws_it(text: str) -> None:
    assert Paint({}).measure(text) == cell_len(text)
