"""The tuning screen: every key and click of it, stopping, leaving, and what it shows of sessions of any size."""

import csv
import json
import re
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Input

from inspector.config.settings import Settings, command
from inspector.replay.case import open_case
from inspector.report.lines.spans import Tone, text_of, wrap_line
from inspector.sessions import open_paths
from inspector.tui import branches, turns_reading
from inspector.tui.app import LoopInspector
from inspector.tui.attention import VerdictSheet
from inspector.tui.heat_map import HeatMap
from inspector.tui.keys import HelpScreen
from inspector.tui.policies_screen import PoliciesScreen
from inspector.tui.questions import AxesPrompt, FilterPrompt
from inspector.tui.session_files import load, session_of
from inspector.tui.session_screen import SessionScreen
from inspector.tui.stage import SessionStage
from inspector.tui.tuning_screen import TuneScreen
from inspector.tui.tuning_table import GridOutcome, TuningTable, outcome_of, table_over
from inspector.tui.turns_screen import TurnsScreen
from inspector.whatif import grid_run as grids
from inspector.whatif.grid import ATTEMPTS, GridRequest, parse_axes
from inspector.whatif.grid_run import tune
from inspector.whatif.heat import LEAST_CAP_MARK, MEASURES, cell_sheet
from inspector.whatif.smallest import cost
from inspector.whatif.smallest_cap import fewest_tokens_of_all
from tests.scenes.app import HOSTILE, cut_text, har, hostile, page, screen_rows, until
from tests.scenes.recordings import ASKS, TOOLS, WHOLE, call, chat, pair_of
from tests.tui.test_hostile import commands_in
from tests.whatif.test_simulation import case_of

AppOn = Callable[..., LoopInspector]
SMALL, WIDE = (80, 24), (160, 45)
BOTH = pytest.mark.parametrize("size", [SMALL, WIDE], ids=["small", "wide"])


async def settle(pilot: Pilot[Any]) -> TuneScreen:
    """The screen when its grid has run."""
    screen = pilot.app.screen
    assert isinstance(screen, TuneScreen)
    await until(pilot, lambda: not screen.running)
    return screen


def test_the_verdict_on_a_cell_has_the_colour_that_it_has_elsewhere() -> None:
    case = open_case(open_paths(["sample_sessions/01-cut-call-and-long-answer.session.jsonl"]))
    made = tune(case, GridRequest(parse_axes(["attempts=3"])).grid(case, Settings()), jobs=1)
    lines = {text_of(line): line for line in cell_sheet(made, 0, 1, None)}
    line = next(line for said, line in lines.items() if said.startswith("verdict"))
    assert (line[-1].text, line[-1].role) == ("CUT CALL RUN", Tone.ERROR)


async def test_the_map_of_many_turns_is_prepared_behind_a_note(
    app_on: AppOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another key works meanwhile; a second request replaces the first, and nothing opens over another screen."""
    go = Event()
    made: list[TuningTable] = []

    def slow(stage: SessionStage) -> TuningTable:
        go.wait(5)
        made.append(table_over(stage))
        return made[-1]

    monkeypatch.setattr("inspector.tui.tuning_table.table_over", slow)
    monkeypatch.setattr(branches, "MANY", 2)
    async with app_on().run_test(size=SMALL) as pilot:
        await pilot.app.workers.wait_for_complete()
        session = pilot.app.screen
        assert isinstance(session, SessionScreen)
        await pilot.press("u")
        assert "preparing the map of 2 turns…" in page(pilot.app)
        await pilot.press("4", "u")
        assert session.panes.tab == "calls"
        go.set()
        await until(pilot, lambda: isinstance(pilot.app.screen, TuneScreen))
        await until(pilot, lambda: len(made) == 2)
        assert [type(screen) for screen in pilot.app.screen_stack].count(TuneScreen) == 1
        assert "preparing" not in session.note
        await settle(pilot)
        await pilot.press("escape")
        go.clear()
        session.branches._table = None
        await pilot.press("u", "V")
        go.set()
        await pilot.app.workers.wait_for_complete()
        assert isinstance(pilot.app.screen, VerdictSheet)


def test_a_blank_grid_is_not_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "add", None)
    case = open_case(open_paths(["sample_sessions/02-text-cut-twice.session.jsonl"]))
    empty = grids.blank(case, GridRequest().grid(case, Settings()))
    assert all(measure.total(empty) == [0] * empty.grid.size for measure in MEASURES.values())


async def open_tune(pilot: Pilot[Any], axes: str = "") -> TuneScreen:
    """The screen over all turns of the session at hand, with these axes."""
    await pilot.app.workers.wait_for_complete()  # what was kept of the session is read
    with pytest.MonkeyPatch.context() as patch:
        if axes:
            patch.setattr(TuneScreen, "_start", lambda screen: None)  # the default grid is not run before the other
        await pilot.press("u")
    screen = pilot.app.screen
    assert isinstance(screen, TuneScreen)
    if axes:
        screen._axes(axes)
    await settle(pilot)
    screen._to_turn(0)
    screen._map.cell = next(iter(screen.table.best()), 0)
    return screen


async def open_again(pilot: Pilot[Any], size: tuple[int, int]) -> TuneScreen:
    """The screen of a grid that has run, opened anew in a terminal of this size."""
    if isinstance(pilot.app.screen, TuneScreen):
        await pilot.press("escape")
    await pilot.resize_terminal(*size)
    await pilot.press("u")
    return await settle(pilot)


async def type_line(pilot: Pilot[Any], text: str) -> None:
    """Something else in the line that asks."""
    pilot.app.screen.query_one(Input).value = text
    await pilot.press("enter")
    await pilot.pause()


def values(screen: TuneScreen) -> tuple[int | None, ...]:
    return screen.table.grid.values(screen.table.cell)


async def test_it_shows_the_map_the_cell_the_answer_and_how_far_to_trust_them(app_on: AppOn) -> None:
    """Turn 1 was cut five times at 64 tokens under a cap of 256: five continuations, 5 times 64 and the last 20."""
    async with app_on().run_test(size=SMALL) as pilot:
        screen = await open_tune(pilot, "attempts=4,5 tokens=128,1000")
        assert values(screen) == (5, 1000), "the cursor stands on the smallest budget"
        for size in (SMALL, WIDE):
            screen = await open_again(pilot, size)
            shown = page(pilot.app)
            told = ("1 OF 2 CAN COMPLETE, 1 unknown fewest output tokens 404 with up to 5 continuations and up to "
                    "1,000 tokens of continuations: from the recording")
            assert told in " ".join(shown.split()), size
            assert "4         ■ 0/2" in shown, size
            assert values(screen) == (5, 1000)
            assert "5         ■ 0/2   ∅ 1/2◆◀" in shown, "it opens on the smallest budget, whose mark is seen"
            assert "RECORDED in 4" in shown, size
            assert "SIMULATED" not in shown, size
            assert "✓ done  6 segments · 340 output tokens" in shown, size
            assert "all 2 turns" in shown, size
            screen.query_one("#cell" if size == SMALL else "#answers").scroll_end(animate=False)
            await pilot.pause()
            assert "4 cells · 2 turns" in page(pilot.app), size


async def test_it_opens_on_the_turn_at_the_cursor_also_where_it_was_open_before(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        session = pilot.app.screen
        assert isinstance(session, SessionScreen)
        view = session.run.view
        second = next(step for step in range(len(view.steps)) if view.replay.turn_at(step) == 1)
        session.go(second, "")
        await pilot.press("u")
        await settle(pilot)
        assert "turn 2 of 2" in page(pilot.app)
        assert "NOT KNOWN TO COMPLETE" in page(pilot.app), "it is shown although it completes nowhere"
        await pilot.press("[", "q", "u")
        assert "turn 1 of 2" in page(pilot.app), "the same turn again: the grid is as it was left"
        await pilot.press("]", "q")
        session.go(0, "")
        await pilot.press("u")
        assert "turn 1 of 2" in page(pilot.app), "another turn of the session"
        assert "▾◀" in page(pilot.app), "with the cursor on its best cell"


async def test_it_opens_on_the_turn_at_hand_where_not_every_turn_completes(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        await pilot.app.workers.wait_for_complete()
        await pilot.press("u")
        await settle(pilot)
        shown = page(pilot.app)
        assert "turn 1 of 2" in shown
        assert "▾◀" in shown, "the best cell has the mark of a turn that completes"
        await pilot.press("[")
        assert "all 2 turns" in page(pilot.app)


async def test_where_nothing_completes_it_opens_on_the_cell_that_the_conclusion_is_about() -> None:
    app = LoopInspector(["sample_sessions/01-cut-call-and-long-answer.session.jsonl"])
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press("enter", "u")
        screen = await settle(pilot)
        assert "NOT KNOWN TO COMPLETE  the recording ends first" in page(pilot.app)
        assert values(screen) == (0, 40), "the smallest limits that end like the largest: with 20 it is a guess"
        screen._to_turn(0)
        screen._axes("attempts=0 max_tokens=8,9")
        await settle(pilot)
        await pilot.pause()
        assert "NONE COMPLETES" in page(pilot.app)
        assert values(screen) == (0, 9), "for all turns, the largest"


def test_where_nothing_completes_the_cursor_begins_where_the_call_comes_whole() -> None:
    case = case_of(pair_of(ASKS, chat(None, "tool_calls", call(WHOLE), tokens=20), tools=TOOLS, max_tokens=40))
    table = TuningTable(case, Settings(), "original", "original", past_filter=False)
    table.ask(GridRequest(parse_axes(["attempts=0", "max_tokens=4,64,128"])))
    table.end(outcome_of(tune(case, table.grid, jobs=1)))
    assert not table.best()
    assert table.grid.values(table.cell) == (0, 64), "the call of 20 tokens is whole there; 128 is the largest"


async def test_simulated_cells_say_so_in_the_map_in_the_cell_and_in_the_head(app_on: AppOn) -> None:
    async with app_on().run_test(size=WIDE) as pilot:
        await open_tune(pilot, "attempts=0,1 max_tokens=32,256")
        shown = page(pilot.app)
        assert "0/2~" in shown
        assert "~ SIMULATED" in shown
        assert "SIMULATED in 2" in shown
        await pilot.press("g")
        assert "fidelity       SIMULATED in" in page(pilot.app)


async def test_arrows_and_letters_move_among_the_cells(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        screen = await open_tune(pilot, "attempts=1..9 tokens=1,2,3")
        for key, wanted in (("g", (1, 1)), ("l", (1, 2)), ("right", (1, 3)), ("l", (1, 3)), ("j", (2, 3)),
                            ("down", (3, 3)), ("h", (3, 2)), ("left", (3, 1)), ("k", (2, 1)), ("up", (1, 1)),
                            ("up", (1, 1)), ("G", (9, 3)), ("home", (1, 1)), ("end", (9, 3)), ("pageup", (1, 3)),
                            ("pagedown", (9, 3))):
            await pilot.press(key)
            if not key.startswith("page"):
                assert values(screen) == wanted, key
        assert "attempts=9, cont_tokens=3" in page(pilot.app)


async def test_the_cursor_is_always_in_sight_under_its_heading(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        screen = await open_tune(pilot, "attempts=1..40 tokens=1..30")
        for keys in (["g"], ["pagedown"], ["l"] * 9, ["j"] * 9, ["G"], ["k"] * 11, ["pageup"]):
            await pilot.press(*keys)
            await pilot.pause()
            rows = screen_rows(pilot.app)[3:20]
            here = [row for row in rows if "◀" in row and "here" not in row]
            assert len(here) == 1, keys
            attempts, tokens = values(screen)
            assert here[0].split()[0] == str(attempts)
            heading = [row for row in rows[: rows.index(here[0])] if row.split()[:1] == ["attempts"]][-1]
            begins = max(here[0].rfind(glyph, 0, here[0].index("◀")) for glyph in "■∅✓")
            assert heading[begins:].split()[0] == str(tokens), keys
            assert len([row for row in rows if row.split()[:1] == ["attempts"]]) == 1, "no second block"


async def test_columns_that_do_not_fit_are_scrolled_to_under_fixed_names(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        screen = await open_tune(pilot, "attempts=1..3 tokens=1..30")
        await pilot.press("g")
        heading = next(row for row in screen_rows(pilot.app) if row.split()[:1] == ["attempts"])
        assert heading.split()[1] == "1"
        assert heading.rstrip().endswith(">")
        assert "<" not in heading
        await pilot.press(*["l"] * 20)
        await pilot.pause()
        assert values(screen) == (1, 21)
        rows = screen_rows(pilot.app)
        at = next(place for place, row in enumerate(rows) if row.split()[:1] == ["attempts"])
        assert "<" in rows[at]
        assert rows[at].rstrip().endswith(">")
        assert [row.split()[0] for row in rows[at + 1 : at + 4]] == ["1", "2", "3"]
        wide = rows[at].index("20") - rows[at].index("19")
        assert screen.query_one("#map").scroll_offset.x % wide == 0, "no half column at the left"
        x = rows[at].index(" 19 ") + 1
        await pilot.click("#map", offset=(x - 1, 3))
        assert values(screen) == (2, 19), "a click counts what was scrolled"
        await pilot.press(*["l"] * 11)
        await pilot.pause()
        assert ">" not in next(row for row in screen_rows(pilot.app) if row.split()[:1] == ["attempts"])


async def test_no_column_is_cut_at_the_edge_and_no_heading_hidden_by_its_mark(app_on: AppOn) -> None:
    """In the map of one turn each cell has a word, and only five of seven columns fit in 80."""
    async with app_on().run_test(size=SMALL) as pilot:
        screen = await open_tune(pilot, "attempts=0..2 max_tokens=64,128,256,340,512,1024,recorded")
        await pilot.press("]", "g")
        await pilot.pause()
        rows = screen_rows(pilot.app)
        at = next(place for place, row in enumerate(rows) if row.split()[:1] == ["attempts"])
        shown = rows[at].split()
        assert shown == ["attempts", "64", "128", "256", "340", "512", ">"]
        marks = [screen.table.marks(True)[cell].text for cell in range(5)]
        assert [mark for mark in marks if mark not in rows[at + 1]] == [], "every cell is whole"
        assert sum(rows[at + 1].count(glyph) for glyph in "■∅✓") == 5, "no part of a sixth"
        await pilot.press(*["l"] * 6)
        await pilot.pause()
        assert screen_rows(pilot.app)[at].split()[-1] == "recorded"


async def test_a_long_conclusion_is_wrapped_and_not_cut(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        await open_tune(pilot, "attempts=0,1")
        await pilot.press("]", "]")
        shown = " ".join(page(pilot.app).split())
        assert "NOT KNOWN TO COMPLETE the recording ends first: only a live run can show what follows" in shown
        await pilot.click(offset=(4, next(y for y, row in enumerate(screen_rows(pilot.app)) if "[outcome]" in row)))
        assert "[outcome]" in page(pilot.app)


async def test_v_and_clicks_go_through_the_measures(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        await open_tune(pilot, "attempts=0..5")
        assert "[outcome]" in page(pilot.app)
        await pilot.press("v")
        assert "[spend]" in page(pilot.app)
        assert "output tokens of all responses" in page(pilot.app)
        await pilot.press("v")
        assert "[segments]" in page(pilot.app)
        await pilot.press("v")
        assert "[outcome]" in page(pilot.app)
        for name in ("segments", "outcome", "spend"):
            rows = screen_rows(pilot.app)
            y = next(at for at, row in enumerate(rows) if "segments" in row and "outcome" in row)
            await pilot.click(offset=(rows[y].index(name), y))
            assert f"[{name}]" in page(pilot.app)
        row = screen_rows(pilot.app)[-1]
        await pilot.click(offset=(row.index("v measure") + 1, 23))  # behind spend, the last of the three
        assert "[segments]" in page(pilot.app)
        await pilot.press("full_stop")
        assert "has no use now: Stop the run" in page(pilot.app)


async def test_brackets_and_a_number_choose_a_turn_or_all(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        await open_tune(pilot, "attempts=4,5")
        await pilot.press("]")
        assert "turn 1 of 2" in page(pilot.app)
        assert "COMPLETES  fewest output tokens 340 with up to 5 continuations: from" in page(pilot.app)
        assert "■ attempts" in page(pilot.app)
        await pilot.press("]")
        assert "turn 2 of 2" in page(pilot.app)
        assert "NOT KNOWN TO COMPLETE" in page(pilot.app)
        await pilot.press("]")
        assert "all 2 turns" in page(pilot.app)
        await pilot.press("[")
        assert "turn 2 of 2" in page(pilot.app)
        await pilot.press(":", "1", "enter")
        assert "turn 1 of 2" in page(pilot.app)
        await pilot.press(":", "9", "enter")
        assert "'9' is not a turn: expected 1 to 2, or 0 for all" in page(pilot.app)
        assert pilot.app.screen.query_one(Input).value == "9", "the line stays open for correction"
        pilot.app.screen.query_one(Input).value = "turn " + "9" * 5_000  # more digits than int() reads
        await pilot.press("enter")
        assert "999…' is not a turn:" in page(pilot.app), "cut as in every message"
        pilot.app.screen.query_one(Input).value = "0"
        await pilot.press("enter")
        assert "all 2 turns" in page(pilot.app)
        await pilot.press(":", *"turn  2", "enter")
        assert "turn 2 of 2" in page(pilot.app), "as after a colon elsewhere"
        await pilot.press(":", *"sho", "enter")
        await pilot.pause()
        assert "[spend]" in page(pilot.app), "the name of a key's action, as after a colon elsewhere"
        await pilot.press(":", *"wrong", "enter")
        assert "'wrong' is not a command here" in page(pilot.app)
        await pilot.press("escape", "v", "v", ":", "0", "enter")
        assert "all 2 turns" in page(pilot.app)
        await pilot.press(":", "escape")
        assert "all 2 turns" in page(pilot.app)


async def test_how_far_to_trust_a_turn_that_is_shown_alone_is_told_of_it_alone() -> None:
    app = LoopInspector(["sample_sessions/01-cut-call-and-long-answer.session.jsonl"])
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press("enter", "!", "u")
        screen = await settle(pilot)
        for turn, told in (
            (1, "of turn 1: RECORDED in 14 cells · SIMULATED in 35"),
            (2, "of turn 2: RECORDED in 35 cells · SIMULATED in 14 · the recording ends first in 42: their spend is a "
                "lower bound"),
            (0, "RECORDED in 14 cells · SIMULATED in 35 · the recording ends first in 42: their spend is a lower "
                "bound"),
        ):
            screen._to_turn(turn)
            lines = [text_of(line).split(maxsplit=1) for line in screen.table.answers()]
            assert next(line[1] for line in lines if line[:1] == ["fidelity"]) == told
            cells = re.findall(r"(?:RECORDED|SIMULATED) in \d+", told)
            assert text_of(screen.table.head(160, (0, 0))[0]).endswith(" ".join(cells)), "the title counts the same"


async def test_axes_are_edited_and_a_mistake_stands_beside_them(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        screen = await open_tune(pilot)
        await pilot.press("e")
        assert isinstance(pilot.app.screen, AxesPrompt)
        assert "attempts=0..6 max_tokens=64,128,256,340,512,1024,recorded" in page(pilot.app)
        assert "49 cells" in page(pilot.app)
        pilot.app.screen.query_one(Input).value = "attempts=3..1"
        await pilot.pause()
        assert "✖ continuation_max_attempts: '3..1' begins above its end" in page(pilot.app)
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, AxesPrompt), "what cannot be read is not handed over"
        await type_line(pilot, "attempts=4..5 tokens=9,99")
        await settle(pilot)
        assert screen.table.grid.size == 4
        assert screen.table.grid.base.simulate is False
        assert "4 cells · 2 turns" in page(pilot.app)
        await pilot.press("e", "ctrl+u", "enter")
        await settle(pilot)
        assert screen.table.grid.size == 49, "an empty line is the default"


async def test_s_keeps_to_the_recording_and_simulates_again(app_on: AppOn) -> None:
    async with app_on().run_test(size=WIDE) as pilot:
        screen = await open_tune(pilot, "attempts=0,1 max_tokens=64,256")
        assert screen.table.grid.base.simulate is True
        await pilot.press("s")
        await settle(pilot)
        assert screen.table.grid.base.simulate is False
        assert "RECORDED in 4" in page(pilot.app)
        assert "simulation off: recorded answers only" in page(pilot.app)
        await pilot.press("v")
        assert re.search(r"\[spend\].*simulation off", page(pilot.app)), "the head says it as long as it is so"
        await pilot.press("s")
        await settle(pilot)
        assert "simulation on: what was not recorded is simulated" in page(pilot.app)
        assert re.search(r"\[spend\].*simulation on", page(pilot.app))
        assert screen.table.grid.base.simulate is True


async def test_b_goes_to_the_smallest_budget(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        screen = await open_tune(pilot, "attempts=0..6")
        await pilot.press("g", "b")
        assert values(screen) == (5,)
        assert "fewest output tokens: attempts=5" in page(pilot.app)
        await pilot.press("]", "]", "b")
        assert "no cell completes it" in page(pilot.app)


# -- opening a cell --------------------------------------------------------------------------------------------------


async def test_what_is_enough_for_all_turns_is_told_to_the_token(app_on: AppOn) -> None:
    """Turn 1 holds 5 times 64 tokens and 20: without a continuation it takes 340 at once; turn 2 never completes."""
    async with app_on().run_test(size=WIDE) as pilot:
        await open_tune(pilot, "attempts=0 max_tokens=64,1000")
        assert ("1 OF 2 CAN COMPLETE, 1 unknown smallest max_tokens 340 with no continuations (in column 1,000): a "
                "guess · fewest output tokens 340 with max_tokens 340 and no continuations (in column 1,000): a "
                "guess") in " ".join(
                    page(pilot.app).split())
        assert "with 339 turn 1" in " ".join(page(pilot.app).split())
        await pilot.press("g", "b")
        assert "smallest max_tokens and fewest output tokens: attempts=0, max_tokens=340" in page(pilot.app)


async def test_enter_opens_the_cell_as_a_run_where_it_first_differs_and_u_comes_back(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        screen = await open_tune(pilot, "attempts=1,5")
        wanted = screen.table.grid.settings(1)
        await pilot.press("G", "enter")
        await pilot.pause()
        session = pilot.app.screen
        assert isinstance(session, SessionScreen)
        assert session.run.view.replay.settings == wanted
        original, made = session.runs.every[0].view.steps, session.run.view.steps
        assert session.step == session.run.branch.difference
        assert original[: session.step] == made[: session.step]
        assert "turn 1 differs from here on" in page(pilot.app)
        assert session.panes.tab == "diff"
        await pilot.press("u")
        again = pilot.app.screen
        assert isinstance(again, TuneScreen)
        assert again.table is screen.table
        assert not again.running, "it is not run again"
        assert values(again) == (5,)
        await pilot.press("g", "enter")
        await pilot.pause()
        session = pilot.app.screen
        assert isinstance(session, SessionScreen)
        assert len(session.runs.every) == 3
        assert session.run.view.replay.settings == screen.table.grid.settings(0)
        await pilot.press("u", "enter")
        await pilot.pause()
        assert len(session.runs.every) == 3, "a cell that was opened is the run that is there"


async def test_enter_opens_the_best_cell_with_the_value_that_b_names(app_on: AppOn) -> None:
    """Turn 1 needs 340 tokens at once, between the columns of 64 and 1,000."""
    async with app_on().run_test(size=SMALL) as pilot:
        screen = await open_tune(pilot, "attempts=0 max_tokens=64,1000")
        await pilot.press("g", "b")
        named = "attempts=0, max_tokens=340"
        assert f"smallest max_tokens and fewest output tokens: {named}" in page(pilot.app)
        told = " ".join(text_of(line) for line in screen.table.cell_lines())
        ends = fewest_tokens_of_all(screen.table.tuning).ends
        assert (f"enter opens {named}: smallest max_tokens and fewest output tokens; 1 of 2 turns complete, "
                f"{cost(ends)[0]:,} output tokens; the next larger cell of the map:") in told, "it spends other tokens"
        assert text_of(wrap_line(screen.table.cell_lines()[0], 30)[1])[:1].strip(), "a sentence, below no field"
        await pilot.press("Y")
        assert "max_tokens=340" in pilot.app.clipboard
        await pilot.press("enter")
        await pilot.pause()
        session = pilot.app.screen
        assert isinstance(session, SessionScreen)
        assert session.run.name == named
        assert session.run.view.turns[0].verdict.complete
        await pilot.press("u", "g", "G")
        assert "enter opens" not in page(pilot.app), "a cell that the cursor was moved to is opened as it is"
        assert screen.table.settings() == screen.table.grid.settings(1)
        await pilot.press("b", "]")
        assert screen.table.exact is None, "another turn has another best value"


async def test_enter_stays_with_the_turn_that_the_grid_shows(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        await open_tune(pilot, "max_tokens=16,60")
        for keys, turn in (("]]", 2), ("[", 1)):
            await pilot.press(*keys, "g", "enter")
            await pilot.pause()
            session = pilot.app.screen
            assert isinstance(session, SessionScreen)
            view = session.run.view
            assert view.number(view.turn_of(session.step)) == turn
            assert f"turn {turn} differs from here on" in page(pilot.app)
            assert f"turn {turn} of 2 · SIMULATED" in page(pilot.app)
            assert "step RECORDED" in page(pilot.app), "the request was recorded; the answer to it is simulated"
            await pilot.press("u")
        await open_tune(pilot, "attempts=1,5")
        await pilot.press(":", "2", "enter", "g", "enter")
        await pilot.pause()
        session = pilot.app.screen
        assert isinstance(session, SessionScreen)
        view = session.run.view
        assert session.step == view.deciding_step(view.turns[1])
        assert "nothing differs in turn 2 · u goes back to the grid" in page(pilot.app)


async def test_a_simulated_cell_opens_as_a_simulated_run(app_on: AppOn) -> None:
    async with app_on().run_test(size=WIDE) as pilot:
        screen = await open_tune(pilot, "max_tokens=40")
        await pilot.press("enter")
        await pilot.pause()
        session = pilot.app.screen
        assert isinstance(session, SessionScreen)
        assert session.run.view.replay.settings == screen.table.grid.settings(0)
        assert session.run.view.replay.settings.simulate
        assert [turn.final_state for turn in session.run.view.turns] == [
            turn.ends[0].state for turn in screen.table.tuning.turns]


async def test_a_cell_that_changes_nothing_says_so(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        await open_tune(pilot, "max_resumes=10")
        await pilot.press("enter")
        await pilot.pause()
        assert "nothing differs" in page(pilot.app)


async def test_the_grid_is_over_the_run_at_hand(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        await pilot.press("e", "5", "enter")
        session = pilot.app.screen
        assert isinstance(session, SessionScreen)
        assert session.runs.index == 1
        screen = await open_tune(pilot, "max_resumes=3,10")
        assert screen.table.base == session.run.view.replay.settings
        assert "run attempts=5" in page(pilot.app)
        assert "1 OF 2 CAN COMPLETE" in page(pilot.app)


# -- the mouse -------------------------------------------------------------------------------------------------------


async def test_a_click_goes_to_the_next_turn_and_back(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        await open_tune(pilot, "attempts=0,1")
        await pilot.press("]")
        for word, shown in (("next", "turn 2 of 2"), ("previous", "turn 1 of 2"), ("previous", "all 2 turns")):
            rows = screen_rows(pilot.app)
            y = next(at for at, row in enumerate(rows) if "[outcome]" in row)
            await pilot.click(offset=(rows[y].index(word), y))
            await pilot.pause()
            assert shown in next(row for row in screen_rows(pilot.app) if "[outcome]" in row)


async def test_a_small_terminal_shows_the_turn_before_its_keys_and_the_simulation(app_on: AppOn) -> None:
    async with app_on().run_test(size=(60, 20)) as pilot:
        await open_tune(pilot, "attempts=0,1")
        await pilot.press("]")
        for width, line in ((60, "[outcome] spend  segments    turn 1 of 2  simulation off"),
                            (48, "[outcome] spend  segments    turn 1 of 2"),
                            (40, "[outcome]   turn 1 of 2 simulation off")):
            await pilot.resize_terminal(width, 20)
            await pilot.pause()
            row = next(row for row in screen_rows(pilot.app) if "[outcome]" in row)
            assert row.split() == line.split()
        await pilot.press("]")
        for measure in ("outcome", "spend", "segments"):
            y, row = next((y, row) for y, row in enumerate(screen_rows(pilot.app)) if f"[{measure}]" in row)
            assert "turn 2 of 2" in row
            await pilot.click(offset=(row.index(measure), y))
            await pilot.pause()


async def test_a_click_moves_and_a_second_one_opens(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        await open_tune(pilot, "attempts=1,5 tokens=128,1000")
        for size in (SMALL, WIDE):
            screen = await open_again(pilot, size)
            rows = screen_rows(pilot.app)
            y = next(at for at, row in enumerate(rows) if row.split()[:2] == ["1", "■"])
            x = rows[y].index("0/2", rows[y].index("0/2") + 3)
            await pilot.click(offset=(x, y))
            assert values(screen) == (1, 1000)
            await pilot.click(offset=(x, y - 1))
            assert values(screen) == (1, 1000), "a heading is no cell"
            await pilot.click(offset=(x, y + 1), times=2)
            await pilot.pause()
            session = pilot.app.screen
            assert isinstance(session, SessionScreen), size
            assert session.run.view.replay.settings == screen.table.grid.settings(3)


# -- running ---------------------------------------------------------------------------------------------------------


class Slow:
    """The real thing, which waits before its third part until it is stopped or let go."""

    def __init__(self) -> None:
        self.go, self.waits, self.ended = Event(), Event(), Event()

    def begin_anew(self) -> None:
        for event in (self.go, self.waits, self.ended):
            event.clear()

    def __call__(self, case: Any, grid: Any, progress: Any = None, cancelled: Any = None) -> grids.TunedGrid:
        questions = 0

        def should_stop() -> bool:
            nonlocal questions
            questions += 1
            while questions == 3 and not cancelled() and not self.go.is_set():
                self.waits.set()
                time.sleep(0.005)
            return bool(cancelled())

        made = grids.tune(case, grid, jobs=1, progress=progress, cancelled=should_stop)
        self.ended.set()
        return made


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    made = Slow()
    monkeypatch.setattr("inspector.tui.tuning_screen.tune", made)
    return made


async def begin(pilot: Pilot[Any], slow: Slow, key: str = "u") -> TuneScreen:
    await pilot.press(key)
    await until(pilot, lambda: slow.waits.is_set() and "RUNNING" in (shown := page(pilot.app)) and "14%" in shown)
    screen = pilot.app.screen
    assert isinstance(screen, TuneScreen)
    return screen


@BOTH
async def test_the_map_is_shown_while_values_between_its_columns_are_searched(
    app_on: AppOn, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    go, waits = Event(), Event()

    def slow_outcome(tuned: grids.TunedGrid) -> GridOutcome:
        waits.set()
        go.wait(5)
        return outcome_of(tuned)

    monkeypatch.setattr("inspector.tui.tuning_screen.outcome_of", slow_outcome)
    async with app_on().run_test(size=size) as pilot:
        await pilot.app.workers.wait_for_complete()
        await pilot.press("u")
        await until(pilot, lambda: waits.is_set() and "SEARCHING" in page(pilot.app))
        screen = pilot.app.screen
        assert isinstance(screen, TuneScreen)
        shown = screen.table.marks(short=False)
        assert shown[0].text in page(pilot.app)
        assert LEAST_CAP_MARK not in page(pilot.app), "the best cells come with the conclusions"
        await pilot.press("l")
        assert screen.running
        go.set()
        await settle(pilot)
        assert screen.table.marks(short=False) == shown
        assert LEAST_CAP_MARK in page(pilot.app)
        assert screen.table.cell == 1, "the operator moved the cursor"
        for event in (go, waits):
            event.clear()
        await pilot.press("r")
        await until(pilot, waits.is_set)
        await pilot.press("escape")
        assert pilot.app.screen is screen
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, SessionScreen), "what was done is added up for seconds in a large session"
        go.set()


@BOTH
async def test_stopping_shows_what_was_done_and_says_so(app_on: AppOn, slow: Slow, size: tuple[int, int]) -> None:
    """Six budgets (340 is five cut answers of 64 tokens and one of 20) and the recorded ones, for two turns."""
    async with app_on().run_test(size=size) as pilot:
        for starts, stops in (("u", "escape"), ("r", ".")):
            slow.begin_anew()
            screen = await begin(pilot, slow, starts)
            assert screen.running
            assert "RUNNING" in page(pilot.app)
            assert "14%" in page(pilot.app)
            assert text_of(screen.table.head(80, (2, 14), stopping=True)[1]).startswith("STOPPING")
            assert text_of(screen.table.head(80, (14, 14))[1]).startswith("SEARCHING"), "what is left is no part"
            await pilot.press(stops)
            await settle(pilot)
            shown = page(pilot.app)
            assert "STOPPED  14% was run, the rest is blank  r runs it again" in shown, stops
            assert screen.table.tuning.cancelled
            first = next(row for row in screen_rows(pilot.app) if row.split()[:2] == ["0", "■"])
            assert first.count("■") == 1, "only the cells of the first budget were run"
            await pilot.press("G")
            assert "not run" in page(pilot.app)
            slow.go.set()
            await pilot.press("r")
            await settle(pilot)
            assert "STOPPED" not in page(pilot.app)
            assert not screen.table.tuning.cancelled
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, SessionScreen), "with nothing to stop, escape leaves"


async def test_a_key_struck_before_the_grid_is_seen_does_not_stop_it(app_on: AppOn, slow: Slow) -> None:
    async with app_on().run_test(size=WIDE) as pilot:
        await pilot.app.workers.wait_for_complete()
        for key in (Key("u", "u"), Key("escape", None)):
            assert pilot.app._driver is not None
            pilot.app._driver.send_message(key)
        await until(pilot, slow.waits.is_set)
        await until(
            pilot, lambda: "esc was pressed before this was on the screen, and stops nothing" in page(pilot.app))
        assert "RUNNING" in page(pilot.app)
        assert "STOPPING" not in page(pilot.app)
        await pilot.press("escape")
        await settle(pilot)
        assert "STOPPED  14%" in page(pilot.app)


async def test_what_a_key_says_about_a_running_grid_ends_with_the_run(app_on: AppOn, slow: Slow) -> None:
    """The note stood on, although nothing ran any more, and `b` did nothing for who had moved the cursor."""
    async with app_on().run_test(size=SMALL) as pilot:
        for starts, key in (("u", "b"), ("r", "x")):
            slow.begin_anew()
            screen = await begin(pilot, slow, starts)
            await pilot.press("g", "j", key)
            assert "stops it" in screen.note, key
            slow.go.set()
            await settle(pilot)
            await pilot.pause()
            assert screen.note == "", key
            assert (screen.table.cell in screen.table.best()) is (key == "b"), key


async def test_keys_are_answered_while_it_runs(app_on: AppOn, slow: Slow) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        screen = await begin(pilot, slow)
        await pilot.press("j", "l", "v", "]")
        assert values(screen) == (1, 128)
        assert "[spend]" in page(pilot.app)
        assert "turn 2 of 2" in page(pilot.app)
        for key in ("b", "enter"):  # enter opened the first cell, which nobody had chosen
            await pilot.press(key)
            assert pilot.app.screen is screen
            assert screen.note.startswith("the cursor goes to the best cell when the grid has run")
        await pilot.press("j", "l", "x")
        assert "still running" in page(pilot.app)
        await pilot.press("?")
        assert isinstance(pilot.app.screen, HelpScreen)
        await pilot.press(*"stop")
        assert "Stop the run" in page(pilot.app)
        await pilot.press("escape")
        slow.go.set()
        await settle(pilot)
        assert values(screen) == (1, 128), "the cursor was moved, so it stays"


async def test_other_axes_stop_the_run_that_goes_on(app_on: AppOn, slow: Slow) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        screen = await begin(pilot, slow)
        await pilot.press("e")
        await type_line(pilot, "attempts=1")
        await settle(pilot)
        assert screen.table.grid.size == 1
        assert not screen.table.tuning.cancelled
        assert slow.ended.wait(5)


async def test_leaving_stops_the_run_and_what_was_left_is_run_when_it_is_opened_again(
    app_on: AppOn, slow: Slow
) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        for stops, leaves in (((), "q"), (("escape",), "escape"), (("j",), "enter"), ((), "q")):
            slow.begin_anew()
            await begin(pilot, slow)
            await pilot.press(*stops)
            if stops == ("escape",):
                await settle(pilot)
            await pilot.press(leaves)
            await pilot.pause()
            assert isinstance(pilot.app.screen, SessionScreen), (stops, leaves)
            assert slow.ended.wait(5), (stops, leaves)
            if stops == ("escape",):
                pilot.app.screen.branches._table = None  # a grid that was stopped is not run again by itself
        slow.go.set()
        await pilot.press("u")
        screen = await settle(pilot)
        assert not screen.table.tuning.cancelled
        slow.begin_anew()
        await begin(pilot, slow, "r")
        await pilot.press("ctrl+q")
    assert slow.ended.wait(5)


async def test_several_processes_give_the_same(app_on: AppOn, monkeypatch: pytest.MonkeyPatch) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        screen = await open_tune(pilot)
        alone = screen.table.tuning
        monkeypatch.setattr(grids, "ALONE", 0.0)
        monkeypatch.setattr(grids, "cores", lambda: 2)
        await pilot.press("r")
        await settle(pilot)
        assert screen.table.tuning is not alone
        assert [[turn.end(cell) for cell in range(42)] for turn in screen.table.tuning.turns] == [
            [turn.end(cell) for cell in range(42)] for turn in alone.turns]


# -- taking away -----------------------------------------------------------------------------------------------------


async def test_y_copies_the_command_of_the_grid_and_shift_y_that_of_the_cell(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        screen = await open_tune(pilot, "attempts=1..3 tokens=128,1000")
        path = screen.table.paths[0]
        await pilot.press("v", "y")
        assert "copied" in page(pilot.app)
        assert shlex.split(pilot.app.clipboard) == [
            "inspector", "tune", path, "--grid", "attempts=1..3", "--grid", "cont_tokens=128,1000", "--show", "spend"]
        await pilot.press("G", "Y")
        assert pilot.app.clipboard == command([path], screen.table.grid.settings(5))
        assert shlex.split(pilot.app.clipboard)[-4:] == [
            "--set", f"{ATTEMPTS}=3", "--set", "continuation_max_total_completion_tokens=1000"]


async def test_x_writes_csv_or_json_into_a_folder_and_never_over_a_file(app_on: AppOn, tmp_path: Path) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        await open_tune(pilot, "attempts=1,5")
        folder = tmp_path / "out"
        for keys in (("enter",), ("j", "enter"), ("enter",)):
            await pilot.press("x", *keys)
            await type_line(pilot, str(folder))
            assert "written" in page(pilot.app)
        assert sorted(each.name for each in folder.iterdir()) == [
            "story-har-tune-2.csv", "story-har-tune.csv", "story-har-tune.json"]
        rows = list(csv.DictReader((folder / "story-har-tune.csv").read_text().splitlines()))
        assert [(row[ATTEMPTS], row["turn"], row["output_tokens"]) for row in rows] == [
            ("1", "1", "128"), ("1", "2", "64"), ("5", "1", "340"), ("5", "2", "64")]
        told = json.loads((folder / "story-har-tune.json").read_text())
        assert told["schema"] == "loop-inspector/tune/2"
        await pilot.press("x", "escape")
        await pilot.press("x", "enter", "escape")
        assert isinstance(pilot.app.screen, TuneScreen)
        await pilot.press("x", "enter")
        await type_line(pilot, str(folder / "story-har-tune.csv" / "in"))
        assert "not written" in page(pilot.app), "a file is no folder"


# -- sessions of any kind --------------------------------------------------------------------------------------------


async def test_an_empty_session_has_nothing_to_tune(tmp_path: Path) -> None:
    """The app opens no session without a turn; the screen itself holds one all the same."""
    path = tmp_path / "none.har"
    path.write_text(har([]))
    table = TuningTable(open_case(open_paths([str(path)])), Settings(), "", "original", False)
    async with LoopInspector().run_test(size=SMALL) as pilot:
        await pilot.app.push_screen(TuneScreen(table))
        await settle(pilot)
        assert "NOTHING TO TUNE  no LLM traffic was found" in page(pilot.app)
        await pilot.press("]")
        assert "there is no turn" in page(pilot.app)
        for key in ("j", "v", "b", "G", "r", "y", "s", "e"):
            await pilot.press(key)
        assert isinstance(pilot.app.screen, AxesPrompt)


async def test_one_turn_is_told_as_one(app_on: AppOn) -> None:
    async with app_on(cut_text()).run_test(size=SMALL) as pilot:
        await open_tune(pilot, "attempts=4,5")
        shown = page(pilot.app)
        assert "COMPLETES  fewest output tokens 340 with up to 5 continuations: from" in shown
        assert "turn 1 of 1" in shown
        assert "✓ done" in shown
        await pilot.press("]")
        assert "there is one turn" in page(pilot.app)


async def test_many_turns_are_cut_short_and_one_is_looked_at_alone(
    app_on: AppOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inspector.tui.tuning_table.MOST_LISTED", 1)
    async with app_on().run_test(size=WIDE) as pilot:
        await open_tune(pilot, "attempts=4,5")
        assert page(pilot.app).count("1 turn more, one at a time") == 2


@pytest.mark.parametrize(("size", "plain"), [(SMALL, True), (WIDE, False)], ids=["small", "wide"])
async def test_hostile_names_are_inert_and_ascii_is_ascii(tmp_path: Path, size: tuple[int, int], plain: bool) -> None:
    name = HOSTILE.replace("/", "").replace("\0", "")
    paths = [str(tmp_path / f"{at}{name}.har") for at in "12"]  # several files are named beside their turns
    for path, entries in zip(paths, (hostile(), cut_text()), strict=True):
        Path(path).write_text(har(entries))
    app = LoopInspector(paths, opened_already=session_of(open_case(open_paths(paths)), paths), plain=plain)
    async with app.run_test(size=size) as pilot:
        await open_tune(pilot, "attempts=0,1 max_tokens=8,64")
        for key in ("v", "]", "v", "]", "v", "j", "tab", "G", "tab", "e", "x", "escape", ":", "escape", "?", "escape"):
            await pilot.press(key)
            assert commands_in(screen_rows(pilot.app)) == set(), key
            assert key != "]" or "[bold red]markup[]" in page(pilot.app)
            assert not plain or [row for row in screen_rows(pilot.app) if not row.isascii()] == [], key


async def test_tab_goes_through_the_panes_that_are_seen(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        await open_tune(pilot, "attempts=1")
        for size, wanted in ((SMALL, ["cell", "map"]), (WIDE, ["cell", "answers", "map"])):
            await pilot.resize_terminal(*size)
            found = []
            for _ in wanted:
                await pilot.press("tab")
                found.append(pilot.app.focused.id)
            assert found == wanted


async def test_what_must_be_seen_is_seen_at_any_size(app_on: AppOn) -> None:
    async with app_on().run_test(size=(60, 15)) as pilot:
        await open_tune(pilot)
        for size in ((60, 15), (80, 24), (109, 30), (110, 30), (160, 45)):
            await open_again(pilot, size)
            shown = page(pilot.app)
            for said in ("Tune", "1 OF 2 CAN COMPLETE", "[outcome]", "attempts", "max_tokens", "◀", "? help",
                         "RECORDED"):
                assert said in shown, (size, said)
            await pilot.resize_terminal(100, 20)
            await pilot.pause()
            assert "◀" in page(pilot.app), size
            assert pilot.app.screen.query_one(HeatMap).has_focus, size


async def test_on_a_low_screen_the_cell_has_several_rows_and_the_legend_follows_it(app_on: AppOn) -> None:
    async with app_on().run_test(size=(60, 20)) as pilot:
        screen = await open_tune(pilot)
        assert screen._cell.content_size.height >= 3
        assert "✓ complete  ■ incomplete" not in page(pilot.app)
        await pilot.press("tab")
        for _ in range(40):
            if "✓ complete  ■ incomplete" in page(pilot.app):
                break
            await pilot.press("down")
        assert "✓ complete  ■ incomplete" in page(pilot.app)


async def test_no_row_of_the_legend_ends_within_an_entry_or_begins_with_a_blank(app_on: AppOn) -> None:
    async with app_on().run_test(size=(70, 40)) as pilot:
        screen = await open_tune(pilot)
        legend = screen.query_one("#legend")
        for width in range(60, 131, 7):
            await pilot.resize_terminal(width, 40)
            rows = [text_of(row) for row in legend.make(legend.size.width)]
            assert len(rows) > 1, width
            assert "".join(rows).endswith("◀\u00a0here"), width
            assert not any(row.startswith((" ", "\u00a0")) for row in rows), rows
            entries = [entry.strip() for row in rows for entry in row.replace("\u00a0", " ").split("  ")]
            assert {entry[0] for entry in entries} <= {*"✓■▷∅~▾◆◇◀", "t"}, rows  # `the word is the limit or reason`


SAMPLES = Path(__file__).parents[2] / "sample_sessions"


async def test_a_table_of_turns_is_tuned_and_laid_under_the_policies_as_a_whole_whatever_its_filter() -> None:
    app = LoopInspector([str(path) for path in sorted(SAMPLES.glob("0[12]*.jsonl"))])
    async with app.run_test(size=SMALL) as pilot:
        table = app.screen
        assert isinstance(table, TurnsScreen)
        await until(pilot, lambda: not table.reading)
        for narrowed, says in (("verdict:truncated", True), ("", False)):
            turns_reading.narrow(table, narrowed)
            for key, kind in (("p", PoliciesScreen), ("u", TuneScreen)):
                await pilot.press(key)
                await until(pilot, lambda kind=kind: isinstance(app.screen, kind))
                await app.workers.wait_for_complete()
                await pilot.pause()
                assert "3 turns" in page(app)
                assert ("all 3 turns, filter not applied" in page(app)) is says, (key, narrowed)
                if (key, narrowed) != ("u", ""):
                    await pilot.press("escape")
                    assert app.screen is table
        await settle(pilot)
        await pilot.press("enter")
        assert isinstance(app.screen, SessionScreen), "the whole as one session, where a cell was chosen"
        await pilot.press("u", "escape")
        assert isinstance(app.screen, SessionScreen)
        await pilot.press("escape")
        assert app.screen is table


async def test_reading_all_files_for_a_view_can_be_given_up_and_disturbs_no_question(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    go = Event()
    monkeypatch.setattr(turns_reading, "load", lambda *given: (go.wait(5), load(*given))[1])
    app = LoopInspector([str(path) for path in sorted(SAMPLES.glob("0[12]*.jsonl"))])
    async with app.run_test(size=SMALL) as pilot:
        table = app.screen
        assert isinstance(table, TurnsScreen)
        await until(pilot, lambda: not table.reading)
        for key in ("escape", "f"):
            go.clear()
            await pilot.press("u")
            assert "reading all files as one session… · esc gives up" in page(app)
            await pilot.press(key)
            go.set()
            await app.workers.wait_for_complete()
            await pilot.pause(0.3)
            if key == "escape":
                assert app.screen is table
                assert "given up: the view over all files is not opened" in page(app)
                await pilot.press("escape")
                assert "nothing is open that esc could close" in page(app)
        assert isinstance(app.screen, FilterPrompt)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, TuneScreen))
        table.note = turns_reading.JOINING
        turns_reading._show(table, table.session, "tune")
        assert table.note == "", "who has left the table finds no note of what has ended"


async def test_a_view_over_a_file_that_is_no_longer_there_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.har"
    path.write_bytes(next(SAMPLES.glob("02*.jsonl")).read_bytes())
    async with (app := LoopInspector([str(path)])).run_test(size=WIDE) as pilot:
        await until(pilot, lambda: isinstance(app.screen, SessionScreen))
        for key in ("u", "p"):
            await pilot.press(key)
            await until(pilot, lambda: not isinstance(app.screen, SessionScreen))
            assert "no longer exists" not in page(app)
            await pilot.press("escape")
        path.unlink()
        for key in ("u", "p"):
            await pilot.press(key)
            await until(pilot, lambda: not isinstance(app.screen, SessionScreen)
                        and "a.har no longer exists: this shows what was read of it" in page(app))
            await pilot.press("escape")


async def test_among_files_found_on_the_machine_a_view_is_over_the_session_of_the_row() -> None:
    app = LoopInspector()
    async with app.run_test(size=WIDE) as pilot:
        table = app.screen
        assert isinstance(table, TurnsScreen)
        await until(pilot, lambda: table.counts.turns and not table.reading)
        turns_reading.narrow(table, "file:*02-text-cut-twice*")
        for key, kind in (("u", TuneScreen), ("p", PoliciesScreen)):
            await pilot.press(key)
            await until(pilot, lambda kind=kind: isinstance(app.screen, kind))
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert "1 turn " in page(app), key
            await pilot.press("escape")


async def test_the_map_has_the_columns_that_it_needs_where_the_cell_keeps_enough() -> None:
    path = str(next(SAMPLES.glob("05*.jsonl")))
    app = LoopInspector([path])
    async with app.run_test(size=(120, 35)) as pilot:
        await pilot.pause()
        await open_tune(pilot, "attempts=0..3 max_tokens=15,30,60,120,240")
        heading = next(row for row in screen_rows(app) if row.split()[:1] == ["attempts"])
        assert ">" not in heading
        assert "■ repairs~" in page(app)
        assert "ends in" in page(app)
