"""From a fact to its bytes and back, by every key and by the mouse."""

from collections.abc import Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from inspector.report.lines.slices import Bytes
from inspector.report.lines.spans import Tone, text_of
from inspector.tui import session_panes
from inspector.tui.app import LoopInspector
from inspector.tui.session_screen import SessionScreen
from inspector.tui.text_view import TextView
from tests.scenes.app import CUT_ARGUMENTS, page, screen_rows, until, view_text

AppOn = Callable[..., LoopInspector]
ONE_PANE, THREE = (80, 24), (160, 45)
HELD = ("]", "space")
"""To the response whose call is held."""


def session(pilot: Pilot[Any]) -> SessionScreen:
    screen = pilot.app.screen
    assert isinstance(screen, SessionScreen)
    return screen


def in_sight(pilot: Pilot[Any], role: Tone) -> str:
    """What is drawn in a role on the rows that are seen."""
    text = pilot.app.screen.query_one(TextView)
    found = []
    for row in map(text._row_at, range(text.size.height)):
        line = text._line_at(row)
        if line < len(text.sheet):
            rows = text.sheet.rows(line, text._laid[1])  # type: ignore[index]
            found += [span.text for span in rows[row - text._row_of(line)] if span.role is role]
    return "".join(found)


@pytest.mark.parametrize("size", [ONE_PANE, THREE])
async def test_a_fact_is_brought_into_sight_in_every_form(app_on: AppOn, size: tuple[int, int]) -> None:
    async with app_on().run_test(size=size) as pilot:
        await pilot.press(*HELD, "3")
        for _ in range(4):
            form = session(pilot).panes.forms["wire"]
            facts = session(pilot).panes.sheets.readings(session(pilot).panes.viewpoint)
            assert facts is not None
            for fact in facts.facts:
                await pilot.press(".")
                picked = session(pilot).panes.chosen_fact
                assert picked is not None
                assert picked.fact == fact, form
                assert in_sight(pilot, Tone.PICKED), (form, fact)
                assert fact[:20] in page(pilot.app)
            await pilot.press(".", ",")
            assert session(pilot).panes.chosen_fact == (facts.facts[-1], 0), form
            await pilot.press("v")


@pytest.mark.parametrize("forms", range(4))
async def test_the_head_and_its_keys_stay_above_the_bytes(app_on: AppOn, forms: int) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press(*HELD, "3", *"v" * forms)
        text = pilot.app.screen.query_one(TextView)
        assert text.scroll_offset.y > 0, "it opens at the bytes that decided"
        assert in_sight(pilot, Tone.MARK)
        for keys in ((), ("G",), ("pageup",), ("k",)):
            await pilot.press(*keys)
            first = int(text.region.y)
            assert [row.strip().startswith(words) for row, words in zip(
                screen_rows(pilot.app)[first : first + 3],
                (text_of(text.sheet.line(0)).strip(), "v ", ". next fact"), strict=True)] == [True] * 3
        await pilot.press(".")
        assert screen_rows(pilot.app)[first + 2].strip().startswith(". , fact 1 of 9: stop_reason = length")
        assert page(pilot.app).count("fact 1 of 9") == 1, "the note does not say it once more"


async def test_nothing_is_passed_over_below_the_head(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press(*HELD, "3", "v", "g")
        text = pilot.app.screen.query_one(TextView)
        passed = list(map(text._row_at, range(text.size.height)))
        for _ in range(20):
            await pilot.press("pagedown")
            passed += map(text._row_at, range(text.size.height))
        assert {*passed} == {*range(text._ends[-1])}
        for key in ("k", "j"):
            await pilot.press(key)
            (row,) = [text.region.y + at for at in range(text.size.height) if text._row_at(at) == 1]
            await pilot.click(offset=(text.region.x + 20, row))  # on a word of the head, which is over other bytes
            assert session(pilot).panes.chosen_fact is None


async def test_a_low_view_gives_all_its_rows_to_the_bytes(app_on: AppOn) -> None:
    async with app_on().run_test(size=(80, 13)) as pilot:
        await pilot.press(*HELD, "3")
        text = pilot.app.screen.query_one(TextView)
        assert text.size.height < 9
        assert "  hex  request" not in page(pilot.app)
        assert in_sight(pilot, Tone.MARK)
        await pilot.press(".")
        assert page(pilot.app).count("fact 1 of 9") == 1, "the note says it, as the head is scrolled away"


async def test_the_head_names_the_fact(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("space", "3", ".")
        assert 'fact 1 of 6: stop_reason = length · bytes ' in page(pilot.app)
        assert in_sight(pilot, Tone.PICKED) == '"length"'


async def test_slices_are_gone_through_and_come_round(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press(*HELD, "3", ">")
        assert "no fact is selected yet" in page(pilot.app)
        panes = session(pilot).panes
        while panes.chosen_fact is None or panes.chosen_fact.fact != "tool_calls[0].arguments":
            await pilot.press(".")
        shown = []
        for _ in range(-(-len(CUT_ARGUMENTS) // 20)):
            shown.append(in_sight(pilot, Tone.PICKED)[1:-1].replace('\\"', '"'))
            await pilot.press(">")
        assert "".join(shown) == CUT_ARGUMENTS
        assert session(pilot).panes.chosen_fact.reading == 0
        await pilot.press("<")
        assert session(pilot).panes.chosen_fact.reading == len(shown) - 1


async def test_what_is_picked_stays_in_sight_where_a_long_note_takes_a_row(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press(*HELD, "3", ".")
        text = pilot.app.screen.query_one(TextView)
        session(pilot).note = ""
        await pilot.pause()
        picked, height = in_sight(pilot, Tone.PICKED), text.size.height
        while in_sight(pilot, Tone.PICKED):  # up, until it stands below the last row; then it stands in it
            text.scroll_to(y=text.scroll_offset.y - 1, animate=False, force=True)
            await pilot.pause()
        text.scroll_to(y=text.scroll_offset.y + 1, animate=False, force=True)
        await pilot.pause()
        session(pilot).note = "a long note " * 12
        await pilot.pause()
        assert text.size.height < height
        assert in_sight(pilot, Tone.PICKED) == picked


async def test_another_response_has_other_facts(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press("space", "3", ".", "space")
        assert session(pilot).panes.chosen_fact is not None  # the same response is still at hand
        await pilot.press("space", "space")
        assert session(pilot).panes.chosen_fact is None


async def test_a_key_opens_wire_from_any_tab_and_leaves_the_request(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press("space", "1", ".")
        assert session(pilot).panes.tab == "wire"
        await pilot.press("v", "v", "v", "v")
        assert session(pilot).panes.forms["wire"] == "request"
        await pilot.press(".")
        assert session(pilot).panes.forms["wire"] == "events"
        assert in_sight(pilot, Tone.PICKED)


async def test_where_no_response_has_come_there_is_no_fact(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press("3", ".")
        assert "no fact was read from these bytes" in page(pilot.app)


async def test_a_click_says_what_a_line_became_and_picks_the_byte(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("space", "3")
        text = pilot.app.screen.query_one(TextView)
        rows = screen_rows(pilot.app)
        row = next(number for number, line in enumerate(rows) if '"model": "gpt-5-mini"' in line)
        column = rows[row].index("gpt-5-mini") + 3
        await pilot.click(offset=(column, row))
        assert session(pilot).panes.chosen_fact is not None
        assert session(pilot).panes.chosen_fact.fact == "model"
        assert "became id, model, text" in page(pilot.app)
        assert text.scroll_offset.y == 0
        await pilot.click(offset=(rows[row].index("{"), row))  # no fact of its own: the next of the line
        assert session(pilot).panes.chosen_fact.fact == "text"


async def test_a_click_in_hex_picks_the_fact_of_the_byte(app_on: AppOn) -> None:
    async with app_on().run_test(size=(160, 45)) as pilot:
        await pilot.press("space", "3", "v", "v", "v", "tab", "z")
        await pilot.pause()
        sheet = session(pilot).sheet
        assert isinstance(sheet, Bytes)
        at = sheet.body.index(b"gpt-5-mini")
        line = sheet.line_of(at)
        text = pilot.app.screen.query_one(TextView)
        text.show_line(line)
        await pilot.pause()
        y = text.region.y + text._row_of(line) - int(text.scroll_offset.y)
        x = text.content_region.x + text_of(sheet.line(line)).rindex(chr(sheet.body[at]))
        await pilot.click(offset=(x, y))
        assert session(pilot).panes.chosen_fact is not None
        assert session(pilot).panes.chosen_fact.fact in ("model", "id")


async def test_enter_goes_through_what_is_in_sight(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press("space", "3", "g", "enter")
        first = session(pilot).panes.chosen_fact
        assert first is not None
        assert first.fact == "id"
        assert "became id, model, text" in page(pilot.app)
        await pilot.press("enter")
        assert session(pilot).panes.chosen_fact.fact == "model"


async def test_a_fact_of_the_response_leads_to_its_bytes(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("space", "2")
        rows = screen_rows(pilot.app)
        row = next(number for number, line in enumerate(rows) if "output 64 of 256" in line)
        await pilot.click(offset=(rows[row].index("output 64"), row))
        assert session(pilot).panes.tab == "wire"
        assert session(pilot).panes.chosen_fact.fact == "usage.output_tokens"
        assert in_sight(pilot, Tone.PICKED) == "64"
        await pilot.press("2", "enter")
        assert session(pilot).panes.chosen_fact.fact == "stop_reason"


async def test_a_click_beside_any_fact_does_nothing(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("space", "2")
        rows = screen_rows(pilot.app)
        row = next(number for number, line in enumerate(rows) if "this loop   " in line)
        before = view_text(pilot.app)
        await pilot.click(offset=(rows[row].index("this loop   "), row))
        assert session(pilot).panes.tab == "response"
        assert view_text(pilot.app) == before


async def test_a_large_body_is_traced_beside_the_screen(app_on: AppOn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_panes, "LARGE", 100)
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press("space", "3")
        session(pilot).action_fact(1)
        assert session(pilot).note == "finding out what 668 bytes became…"
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert in_sight(pilot, Tone.PICKED) == '"length"'
        session(pilot).action_fact(1)  # it is known now
        assert session(pilot).panes.chosen_fact.fact == "id"


async def test_what_was_asked_of_another_response_is_not_shown(
    app_on: AppOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_panes, "LARGE", 100)
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press("space", "3")
        session(pilot).action_fact(1)
        session(pilot).step = 4
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert session(pilot).panes.chosen_fact is None


async def test_a_match_that_wraps_is_marked_whole(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press("space", "3", "v", "v", "g")
        text = pilot.app.screen.query_one(TextView)
        sheet, width = text.sheet, text._laid[1]  # type: ignore[index]
        line = next(i for i in range(5, len(sheet)) if sheet.height(i, width) > 1)
        rows = sheet.rows(line, width)
        needle = (text_of(rows[0])[-4:] + text_of(rows[1]).strip()[:4])
        text.needle = needle
        await pilot.pause()
        found = text._make_rows(line, width, len)
        marked = "".join(span.text for row in found for span in row if span.role is Tone.MATCH)
        assert marked.startswith(needle)
        assert len(text._make_rows(line, width, len)) == len(rows)


@pytest.mark.parametrize(("size", "marked"), [(ONE_PANE, "null"), ((142, 38), "null32000"), (THREE, "null32000")])
async def test_of_the_rows_of_an_agent_only_what_decided_is_marked_and_that_is_said(
    size: tuple[int, int], marked: str
) -> None:
    app = LoopInspector(["sample_sessions/18-claude-code-cut-writes.jsonl"])
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: "CUT CALL RUN" in page(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SessionScreen))
        await pilot.press("3")
        assert in_sight(pilot, Tone.MARK) == marked
        says = "only the bytes that decided the end are marked"
        assert says in page(app)
        await pilot.press(".")
        assert session(pilot).note == says
