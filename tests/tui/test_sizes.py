"""The screens at any size from 60x15 to 160x45: what must be seen is seen, and nothing falls over while resizing."""

import random
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import pytest
from textual.events import MouseScrollDown
from textual.pilot import Pilot

from inspector.report.lines.spans import text_of
from inspector.tui.app import LoopInspector
from inspector.tui.lists import RowList
from inspector.tui.panels import Dialog
from inspector.tui.questions import Prompt
from inspector.tui.session_files import ReadingOptions, load
from inspector.tui.session_screen import SessionScreen
from inspector.tui.session_widgets import Tabs
from inspector.tui.text_view import TextView
from tests.scenes.app import cut_text, page, screen_rows, until
from tests.scenes.rows import share

AppOn = Callable[..., LoopInspector]
SAMPLE = "sample_sessions/01-cut-call-and-long-answer.session.jsonl"
SIZES = [(60, 15), (80, 24), (99, 30), (109, 30), (110, 30), (119, 40), (120, 40), (139, 40), (140, 45), (160, 45)]


async def each_size(pilot: Pilot[Any], sizes: Iterable[tuple[int, int]]) -> AsyncIterator[tuple[int, int]]:
    """The screen that is open, at each size in turn."""
    for size in sizes:
        await pilot.resize_terminal(*size)
        await pilot.pause()
        yield size


def always(app: LoopInspector) -> None:
    """What no size may hide: the turn's verdict, step, turn, state, stop reason, fidelity, the open tab, help."""
    rows = screen_rows(app)
    assert "LIMIT REACHED  turn 1 of 2" in rows[0], "the turn stands in the header; a narrow status line leaves it out"
    text = "\n".join(rows).replace("\u00a0", " ")
    assert isinstance(app.screen, SessionScreen)
    step = app.screen.run.view.steps[app.screen.step]
    for said in (f"{app.screen.step + 1}/28", step.state.value, "RECORDED", "? help"):
        assert said in text, said
    assert ("no answer yet" if step.turn.evaluation is None else '"length" → max_tokens') in rows[-2]
    # A limit is shown in words once something is spent: of "a0/3 t25% c0% r1/1" nobody could read which is which.
    attempts = step.turn.spend.attempts
    assert app.size.width < 80 or not attempts or f"attempts {attempts}/3" in rows[-2]
    assert all(len(row) == app.size.width for row in rows)


async def test_what_must_be_seen_is_seen_and_every_tab_is_whole_in_the_strip(app_on: AppOn) -> None:
    names = ["Merged", "Response", "Wire", "Calls", "Diff", "Events", "Machine"]
    async with app_on().run_test(size=SIZES[0]) as pilot:
        async for size in each_size(pilot, share(SIZES)):
            strip = next(row for row in screen_rows(pilot.app) if "Merged" in row).replace(" ", "")
            for number, name in enumerate(names, 1):
                assert f"{number}{name if size[0] >= 80 else name[:3]}" in strip, size
            for _ in range(5):
                always(pilot.app)
                await pilot.press("space")
            await pilot.press("colon", "1", "enter")


async def test_the_place_of_a_call_is_one_row_at_any_size() -> None:
    app = LoopInspector([SAMPLE])
    async with app.run_test(size=(60, 30)) as pilot:
        await pilot.press("enter", "4")
        async for size in each_size(pilot, [(60, 30), (80, 24), (120, 40), (160, 45)]):
            rows = [" ".join(cells.split()) for row in screen_rows(pilot.app) for cells in row.split("▏")]
            assert "where response 7 · step 22" in rows, size
            assert size[0] < 80 or "▣ HELD write_file incomplete the recorded agent ran it ▶ here" in rows, size


@pytest.mark.parametrize(("width", "shown"), [
    (90, "[1 Merged] 2 Response  3 Wire  4 Calls  5 Diff  6 Events  7 Machine  8 Steps"),
    (76, "[1Merged] 2Response  3Wire  4Calls  5Diff  6Events  7Machine  8Steps"),
    (60, "[1Merged] 2Resp  3Wire  4Call  5Diff  6Even  7Mach  8Step"),
    (52, "[1Merged] 2Res  3Wir  4Cal  5Dif  6Eve  7Mac  8Ste"),
    (45, "[1Merged] 2Re  3Wi  4Ca  5Di  6Ev  7Ma  8St"),
    (40, "[1Merged] 2  3  4  5  6  7  8"),
])
def test_the_tabs_lose_letters_before_a_number_is_lost(width: int, shown: str) -> None:
    assert text_of(Tabs().make(width)[0]).rstrip() == shown


@pytest.mark.parametrize("size", [(112, 30), (120, 35), (139, 40)])
async def test_the_machine_is_one_row_where_the_text_needs_the_room(app_on: AppOn, size: tuple[int, int]) -> None:
    async with app_on().run_test(size=size) as pilot:
        await pilot.press("space")
        assert "S machine  Request → ▶ EvaluateStop → ContinuePending" in page(pilot.app)
        assert "MACHINE" not in page(pilot.app)
        await pilot.press("S")
        await pilot.pause()
        assert "MACHINE" in page(pilot.app)
        assert "SPENT" in page(pilot.app)
        await pilot.press("S")
        await pilot.pause()
        await pilot.click("#machine")
        await pilot.pause()
        assert "MACHINE" in page(pilot.app)


async def test_a_session_that_loses_its_panes_takes_another_size(app_on: AppOn) -> None:
    """A screen that is removed loses its panes first, and may be told of a size after that."""
    async with app_on().run_test(size=(80, 24)) as pilot:
        await pilot.app.screen.query_one("#body").remove()
        await pilot.resize_terminal(120, 35)
        assert pilot.app.is_running


async def test_the_machine_can_be_folded_where_there_is_room_and_is_a_tab_where_there_is_none(app_on: AppOn) -> None:
    async with app_on().run_test(size=(160, 45)) as pilot:
        assert "MACHINE" in page(pilot.app)
        await pilot.press("S")
        await pilot.pause()
        assert "MACHINE" not in page(pilot.app)
        assert "S machine  ▶ Request → EvaluateStop  by the first request" in page(pilot.app)
    async with app_on().run_test(size=(80, 24)) as pilot:
        await pilot.press("S")
        assert "[7Machine]" in page(pilot.app)


async def test_the_machine_names_each_state_that_follows_in_full() -> None:
    app = LoopInspector([SAMPLE])
    async with app.run_test(size=(160, 45)) as pilot:
        await pilot.press("enter")
        rows = [row.rpartition("▏")[2].strip() for row in screen_rows(app)]
        at = rows.index("MACHINE")
        assert "next PartialToolCall → RepairPending or EndTurn → Complete" in " ".join(" ".join(rows[at:]).split())


@pytest.mark.parametrize("pane", ["#steps", "#text"])
async def test_the_wheel_scrolls_the_pane_under_it(app_on: AppOn, pane: str) -> None:
    async with app_on().run_test(size=(160, 15)) as pilot:
        await pilot.press("3")
        widget = pilot.app.screen.query_one(pane)
        before = screen_rows(pilot.app)
        assert widget.max_scroll_y > 2
        await pilot._post_mouse_events([MouseScrollDown] * 3, pane, (3, 3))
        await pilot.pause()
        assert widget.scroll_offset.y > 0
        assert screen_rows(pilot.app) != before
        assert pilot.app.screen.step == 0, "the wheel moves the view, and no cursor"
        for other in ("#steps", "#text"):
            assert other == pane or pilot.app.screen.query_one(other).scroll_offset.y == 0


async def test_every_tab_is_opened_by_a_click(app_on: AppOn) -> None:
    async with app_on().run_test(size=(80, 24)) as pilot:
        await pilot.press("space")
        for title in ("Response", "Wire", "Calls", "Diff", "Events", "Machine", "Steps", "Merged"):
            row = next(at for at, text in enumerate(screen_rows(pilot.app)) if "Merged" in text)
            await pilot.click("#tabs", offset=(screen_rows(pilot.app)[row].index(title) + 1, 0))
            await pilot.pause()
            assert f"{title}]" in page(pilot.app)


async def test_resizing_at_random_keeps_the_step_and_the_screen_whole(app_on: AppOn) -> None:
    chance = random.Random(7)
    async with app_on().run_test(size=(160, 45)) as pilot:
        await pilot.press("space", "space", "space", "space")
        for width, height, tab in share([
            (chance.randint(60, 160), chance.randint(15, 45), chance.choice("1234567")) for _ in range(25)
        ]):
            await pilot.resize_terminal(width, height)
            await pilot.press(tab)
            await pilot.pause()
            assert pilot.app.screen.step == 4
            always(pilot.app)
            assert pilot.app.focused is not None
            assert pilot.app.focused.display


async def test_the_marked_bytes_stay_in_sight_at_another_size(app_on: AppOn) -> None:
    async with app_on().run_test(size=(160, 45)) as pilot:
        await pilot.press("}", "3", ".")
        text = pilot.app.screen.query_one("#text", TextView)
        for size in ((80, 24), (100, 30), (160, 45), (50, 15), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            top = int(text.scroll_offset.y)
            assert top <= text._last_picked() < top + text.size.height, size


async def test_the_list_stays_open_when_the_screen_grows_and_shrinks(app_on: AppOn) -> None:
    async with app_on().run_test(size=(80, 24)) as pilot:
        await pilot.press("8")
        await pilot.resize_terminal(160, 45)
        await pilot.pause()
        assert "[1 Merged]" in page(pilot.app)
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert "[8Steps]" in page(pilot.app)


async def test_the_cursor_stays_in_sight_in_a_low_screen(app_on: AppOn) -> None:
    async with app_on(cut_text()[:3]).run_test(size=(80, 15)) as pilot:
        await pilot.press("8")
        steps = len(pilot.app.screen.run.view.steps)
        assert steps > pilot.app.screen.query_one("#steps").size.height > 0
        for step in range(steps):
            assert f"▶ {step + 1:>2} " in page(pilot.app)
            await pilot.press("j")
        for step in range(steps - 1, -1, -1):
            assert f"▶ {step + 1:>2} " in page(pilot.app)
            await pilot.press("k")


async def test_the_form_and_the_help_fit_eighty_by_twenty_four(app_on: AppOn) -> None:
    async with app_on().run_test(size=(80, 24)) as pilot:
        await pilot.press("e")
        assert "enter runs · esc leaves" in page(pilot.app)
        await pilot.press("escape", "?")
        assert "Move" in page(pilot.app)


async def test_a_note_that_is_longer_than_a_row_takes_more_rows() -> None:
    path = "sample_sessions/12-safety-block.session.jsonl"
    app = LoopInspector([path], opened_already=load([path], ReadingOptions()))
    async with app.run_test(size=(60, 15)) as pilot:
        async for size in each_size(pilot, [(60, 15), (60, 20), (80, 24), (160, 45)]):
            await pilot.press("F")
            said = ("turn 1: F runs nothing, because no setting changes this · change the prompt or the filter; a "
                    "continuation will not help")
            assert said in " ".join(page(app).split()), size
            assert all(len(row) == size[0] for row in screen_rows(app)), size
            await pilot.press("space")
            assert "? help" in screen_rows(app)[-1], size
            assert "step" in screen_rows(app)[-2] or "/3" in screen_rows(app)[-2], size
            await pilot.press("home")


BOXES = {
    "L": "enter begins · esc leaves · ↑ ↓ fields · ← → words",
    "R": "enter goes there · d beside this run · x removes it · esc leaves",
    "b": "space on/off · a type one · d remove · esc close, then c runs to the next",
    "e": "enter runs · esc leaves · ↑ ↓ fields · ← → words",
    "V": "↑ ↓ scroll · 1 to 8 open a tab · esc closes",
    "W": "enter chooses · esc leaves",
    "x": "enter chooses · esc leaves",
    "d": "enter chooses · esc leaves",
    "F": "enter shows costs · esc leaves · ↑ ↓ fields · ← → words",
}


async def test_a_box_names_its_keys_in_full_at_any_size() -> None:
    """In the smallest terminal it opens; in the others it is drawn again."""
    app = LoopInspector([SAMPLE], opened_already=load([SAMPLE], ReadingOptions()))
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.press("exclamation_mark", "exclamation_mark")
        for keys, said in BOXES.items():
            await pilot.resize_terminal(40, 10)
            await pilot.press(keys)
            async for size in each_size(pilot, share([(40, 10), (60, 15), (60, 20), (80, 24)], keys)):
                assert isinstance(app.screen, Dialog), keys
                rows = screen_rows(app)
                assert said in " ".join(" ".join(row.strip("│ ") for row in rows).split()), (keys, size)
                assert rows[-1].strip("╰─╯ ") == "" or size[1] > 10, "the box has its lower edge"
            await pilot.press("escape")


async def test_the_last_row_of_a_list_in_a_box_is_seen_in_the_smallest_terminal() -> None:
    """The foot of the box, or its edge, hid the last rows of a list that was higher than its room."""
    app = LoopInspector([SAMPLE], opened_already=load([SAMPLE], ReadingOptions()))
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.press("exclamation_mark", "exclamation_mark")
        for keys in "xbd":
            await pilot.press(keys)
            await pilot.pause()
            listed = app.screen.query_one(RowList)
            for _ in range(listed.count):
                assert sum("▶" in row for row in screen_rows(app)) == 1, keys
                await pilot.press("down")
            await pilot.press("escape")


async def test_a_line_to_type_in_says_how_to_leave_at_any_size() -> None:
    app = LoopInspector([SAMPLE])
    async with app.run_test(size=(40, 10)) as pilot:
        for keys in ("f", "slash", "colon", "o", "x"):
            await pilot.resize_terminal(40, 10)
            await pilot.press(keys)
            async for width, _ in each_size(pilot, [(40, 10), (59, 10), (60, 10), (80, 10)]):
                assert isinstance(app.screen, Prompt), keys
                said = " enter · esc" if width >= 60 else "  esc"
                assert screen_rows(app)[-1].rstrip().endswith(said), (keys, width)
            await pilot.press("escape")


async def test_the_preview_of_the_limits_is_whole_in_sixty_columns(app_on: AppOn) -> None:
    async with app_on().run_test(size=(60, 20)) as pilot:
        def said() -> str:
            return " ".join(" ".join(row.strip("│ ") for row in screen_rows(pilot.app)).split())

        await pilot.press("e", "5")
        whole = "would change 8 steps from step 13 · turn 1 would end differently ▶ original"
        await until(pilot, lambda: whole in said())
        assert "enter runs · esc leaves" in said()


async def test_the_end_of_a_verdict_that_is_longer_than_its_box_can_be_reached() -> None:
    app = LoopInspector([SAMPLE], opened_already=load([SAMPLE], ReadingOptions()))
    async with app.run_test(size=(60, 15)) as pilot:
        await pilot.press("!", "V")
        async for size in each_size(pilot, [(60, 15), (60, 20), (80, 24)]):
            await pilot.press("home", "end")
            assert "session        run original" in page(app), size


async def test_the_table_of_providers_has_rows_in_the_smallest_terminal(app_on: AppOn) -> None:
    """The counts above the table took all rows of a terminal of 40 x 10."""
    async with app_on().run_test(size=(40, 10)) as pilot:
        await pilot.press("P")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert any("▶" in row for row in screen_rows(pilot.app))


async def test_a_terminal_of_one_cell_ends_no_screen() -> None:
    app = LoopInspector([SAMPLE], opened_already=load([SAMPLE], ReadingOptions()))
    async with app.run_test(size=(80, 24)) as pilot:
        below = app.screen
        for row, keys in enumerate(("", "e", "W", "u", "p", "P", "L", "R", "question_mark")):
            await pilot.press(*[keys] * bool(keys))
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert (app.screen is below) is not bool(keys)
            before = screen_rows(app)
            async for _ in each_size(pilot, [*share([(20, 5), (1, 1), (10, 3)], row), (80, 24)]):
                await app.workers.wait_for_complete()
                await pilot.pause()
            assert screen_rows(app)[0] == before[0], keys
            await pilot.press(*["escape"] * bool(keys))
            assert app.screen is below, keys


async def test_a_form_shows_its_fields_beside_their_names_in_the_smallest_terminal() -> None:
    """The names alone were as wide as the box."""
    app = LoopInspector([SAMPLE], opened_already=load([SAMPLE], ReadingOptions()))
    async with app.run_test(size=(40, 10)) as pilot:
        for keys, fields in ((("e",), ["3", "default", "120000", "1", "recorded"]),
                             (("escape", "L"), ["< lying-router >", "< openai_chat >", "< by address >"]),
                             (("enter", "i"), ["1024", "3", "4 × max_tokens", "120000", "1"])):
            for key in keys:
                await pilot.press(key)
                await app.workers.wait_for_complete()
                await pilot.pause()
            rows = "\n".join(screen_rows(app)[2:7])
            assert [each for each in fields if each in rows.replace("…", " ").split() or f" {each}" in rows] == fields
