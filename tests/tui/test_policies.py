"""The policy matrix on its screen: every key, the mouse, a cell as a branch, the command line that says the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from shlex import split
from typing import Any

import pytest
from click.testing import CliRunner
from textual.pilot import Pilot

from inspector.cli import main
from inspector.config.settings import Settings
from inspector.replay.case import open_case
from inspector.sessions import open_paths
from inspector.tui.app import LoopInspector
from inspector.tui.policies_screen import PoliciesScreen, PolicyTable
from inspector.tui.session_files import ReadingOptions, load
from inspector.tui.session_screen import SessionScreen
from inspector.tui.text_view import TextView
from inspector.tui.tuning_screen import TuneScreen
from inspector.tui.turns_screen import TurnsScreen
from loop_core.turn.trace import step_key
from tests.scenes.app import (
    CUT_ARGUMENTS,
    HOSTILE,
    assistant,
    body,
    cut_text,
    entry,
    hostile,
    page,
    screen_rows,
    story,
    until,
    user,
    view_text,
)
from tests.tui.test_hostile import commands_in

AppOn = Callable[..., LoopInspector]
SMALL, LARGE = (80, 24), (160, 45)
# The story's first turn is continued to the limit; in its second, a call is cut in its JSON under `length`.
FIRST = ["limit", "limit", "limit", "lost text", "lost text", "lost text", "lost text"]
SECOND = ["held", "held", "held", "stuck", "ran cut", "ran cut", "held"]


async def open_matrix(pilot: Pilot[Any]) -> PolicyTable:
    """The matrix, once it is made."""
    await pilot.press("p")
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    assert isinstance(pilot.app.screen, PoliciesScreen)
    return pilot.app.screen.query_one(PolicyTable)


async def test_the_matrix_has_a_row_for_each_turn_and_a_cell_says_whose_policy_it_is(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        cells = await open_matrix(pilot)
        assert cells.matrix is not None
        assert [[cell.decision.short for cell in row] for row in cells.matrix.rows] == [FIRST, SECOND]
        rows = screen_rows(pilot.app)
        assert "2 turns under 7 policies" in rows[0]
        assert rows[0].rstrip().endswith("run original  RECORDED")
        assert rows[1].split() == ["turn", "strict", "zeroclaw-", "zeroclaw-", "zoo-", "zoo-", "pi-", "botnexus"]
        assert rows[3].replace("▶", " ").split() == ["1", *" ".join(FIRST).split()]
        assert rows[4].split() == ["2", *" ".join(SECOND).split()]
        for rights, whose in ((0, "This engine's own: nothing unfinished counts"), (2, "ZeroClaw as it was merged:"),
                              (4, "BotNexus:")):
            await pilot.press(*["l"] * rights)
            assert f"policy         {whose}" in page(pilot.app)


async def test_policies_that_have_no_room_are_counted(app_on: AppOn) -> None:
    async with app_on().run_test(size=(60, 24)) as pilot:
        await open_matrix(pilot)
        for width, said in ((60, "5 of 7 policies ← →  run original  RECORDED"), (80, "2 turns under 7 policies")):
            await pilot.resize_terminal(width, 24)
            head = screen_rows(pilot.app)[0]
            assert said in head, (width, said)
            assert ("← →" in head) is (width == 60), (width, said)


async def test_the_names_of_the_policies_are_whole_again_after_a_small_terminal(app_on: AppOn) -> None:
    """Their head kept the height of the small one, and two policies of one agent then had the same name."""
    async with app_on().run_test(size=SMALL) as pilot:
        await open_matrix(pilot)
        before = screen_rows(pilot.app)
        for size in ((20, 8), SMALL, (60, 20), (20, 8), LARGE, SMALL):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda wanted=size: pilot.app.screen.size == wanted)
            if size == SMALL:
                await until(pilot, lambda: screen_rows(pilot.app)[:5] == before[:5])


async def test_one_of_a_thing_is_no_plural(app_on: AppOn) -> None:
    async with app_on(cut_text()).run_test(size=LARGE) as pilot:
        await pilot.press("e", "1", "enter")
        await open_matrix(pilot)
        assert "1 turn under 7 policies" in page(pilot.app)
        assert "0 of 1 turn, by the verdict of each" in view_text(pilot.app)
        assert "retry_limit after 1 continuation\n" in view_text(pilot.app)


async def test_the_details_of_a_cell_scroll_down_and_never_sideways_and_tab_goes_to_them(app_on: AppOn) -> None:
    """They are wrapped to their width, which the scroll bar beside them does not change."""
    async with app_on().run_test(size=SMALL) as pilot:
        await open_matrix(pilot)
        detail = pilot.app.screen.query_one("#detail", TextView)
        bars = set()
        for key in ("j", "l", "tab", "tab", "k"):
            await pilot.press(key)
            await pilot.pause()
            bars.add((detail.show_vertical_scrollbar, detail.show_horizontal_scrollbar))
        assert (True, False) in bars
        assert not any(sideways for _, sideways in bars)
        cells = pilot.app.screen.query_one(PolicyTable)
        await pilot.press("down", "tab")
        assert detail.has_focus
        await pilot.press("G")
        assert detail.scroll_offset.y > 0
        assert cells.here == (1, 1)
        await pilot.press("tab")
        assert cells.has_focus


async def test_the_file_of_a_turn_is_named_where_there_are_several(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("first.har", "second.har")]
    for path in paths:
        cut = entry([user(path)], body(assistant("The first of"), "length", 64))
        Path(path).write_text(json.dumps({"log": {"entries": [cut]}}))
    app = LoopInspector(paths, opened_already=load(paths, ReadingOptions()))
    async with app.run_test(size=LARGE) as pilot:
        cells = await open_matrix(pilot)
        assert screen_rows(app)[1].split()[:2] == ["turn", "file"]
        assert [row.split()[:2] for row in screen_rows(app)[2:4]] == [["1", "first.har"], ["2", "second.har"]]
        assert "file           turn 1 of first.har" in page(app)
        x = screen_rows(app)[2].index("▶")
        await pilot.click(offset=(x + 2, 3))
        assert cells.here == (1, 0)


async def test_it_opens_at_the_turn_of_the_session_if_policies_differ_there(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        for turn in (1, 2):
            await pilot.press(":", *f"turn {turn}", "enter")
            cells = await open_matrix(pilot)
            assert cells.here == (turn - 1, 0)
            await pilot.press("escape")


async def test_it_opens_at_the_turn_of_the_row_that_the_cursor_is_at_in_a_table(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("a.har", "b.har")]
    for path in paths:
        asks = [entry([user(f"{path} {n}")], body(assistant("Half"), "length", 64)) for n in range(2)]
        Path(path).write_text(json.dumps({"log": {"entries": asks}}))
    app = LoopInspector(paths)
    async with app.run_test(size=LARGE) as pilot:
        table = app.screen
        assert isinstance(table, TurnsScreen)
        await until(pilot, lambda: not table.reading)
        for _ in range(4):
            row = table.turn_list.current_row
            assert row is not None
            await pilot.press("p")
            await until(pilot, lambda: isinstance(app.screen, PoliciesScreen))
            await app.workers.wait_for_complete()
            await pilot.pause()
            cells = app.screen.query_one(PolicyTable)
            assert cells.matrix is not None
            assert (cells.matrix.paths[cells.here[0]], cells.here[0] % 2 + 1) == (row.file, row.number)
            await pilot.press("escape", "j")


async def test_keys_move_among_the_cells_and_the_reason_is_told_in_full(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        cells = await open_matrix(pilot)
        for keys, here in (
            ("l", (0, 1)), ("right", (0, 2)), ("h", (0, 1)), ("left", (0, 0)), ("left", (0, 0)), ("j", (1, 0)),
            ("down", (1, 0)), ("k", (0, 0)), ("end", (1, 0)), ("home", (0, 0)), ("G", (1, 0)), ("g", (0, 0)),
            ("down", (1, 0)), ("up", (0, 0)),
        ):
            await pilot.press(keys)
            assert cells.here == here, keys
        await pilot.press("j", *["l"] * 9)
        assert cells.here == (1, 6)
        await pilot.press("h", "h")
        # The arguments are 62 characters long as they were written into the fixture.
        assert len(CUT_ARGUMENTS) == 62
        for said in ("turn 2 under zoo-after", "ran a cut call", "write_file runs with the 62 characters that came"):
            assert said in view_text(pilot.app)
            assert said in page(pilot.app)


async def test_braces_go_to_what_differs_from_strict_and_the_search_to_what_it_finds(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        cells = await open_matrix(pilot)
        for key, here in (("}", (0, 3)), ("}", (0, 4)), ("{", (0, 3)), ("{", (0, 3))):
            await pilot.press(key)
            assert cells.here == here
        assert "every policy does the same as strict before this cell" in page(pilot.app)
        await pilot.press("n")
        assert "nothing was searched yet" in page(pilot.app)
        await pilot.press("/", *"ran", "enter")
        assert cells.here == (1, 4)
        await pilot.press("n")
        assert cells.here == (1, 5)
        await pilot.press("N", "N")
        assert cells.here == (1, 5)
        await pilot.press("/", *"xyz", "enter")
        await until(pilot, lambda: "'xyz' is not in this table" in page(pilot.app))


async def test_a_click_chooses_a_cell_and_a_second_one_opens_it(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        cells = await open_matrix(pilot)
        rows = screen_rows(pilot.app)
        x, y = rows[4].index("stuck"), 4
        await pilot.click(offset=(x + 2, y))
        assert cells.here == (1, 3)
        await pilot.click(offset=(rows[3].index("limit"), 3))
        assert cells.here == (0, 0)
        await pilot.click(offset=(x, y), times=2)
        await pilot.pause()
        assert isinstance(pilot.app.screen, SessionScreen)
        assert pilot.app.screen.run.name == "policy=zoo-before"


async def test_enter_opens_the_cell_as_a_branch_where_it_parts_from_strict(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        for size in [SMALL, LARGE]:
            await pilot.resize_terminal(*size)
            cells = await open_matrix(pilot)
            matrix = cells.matrix
            assert matrix is not None, size
            assert (", 0 complete under strict" in screen_rows(pilot.app)[0]) is (size == LARGE), size
            assert "complete       0 of 2 turns, by the verdict of each" in view_text(pilot.app), size
            await pilot.press("j", "l", "l", "l", "l", "enter")
            screen = pilot.app.screen
            assert isinstance(screen, SessionScreen), size
            assert screen.run.view.replay.settings.policy.name == "zoo-after", size
            strict = screen.runs.every[0].view.steps
            own = screen.run.view.steps
            first = screen.run.view.turns[1].run.first
            # The step at which the cursor stands is the first of the turn with another state than strict's.
            far = screen.step - first
            offset = matrix.replays[0].turns[1].first
            assert [step.state for step in own[first : screen.step]] == [s.state for s in strict[offset : offset + far]]
            assert own[screen.step].state is not strict[offset + far].state, size
            assert "turn 2: ran a cut call · differs from strict here" in page(pilot.app), size
            assert screen.panes.tab == "diff", size
            await pilot.press("o")
            assert screen.run.name == "original", size
            # The same cell again is the same run.
            await open_matrix(pilot)
            await pilot.press("j", "l", "l", "l", "l", "enter")
            assert len(screen.runs.every) == 2, size
            assert screen.runs.index == 1, size
            await pilot.press("o")


async def test_the_cell_of_strict_is_the_run_itself_and_back_leads_to_it_as_it_was(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        await pilot.press("space")
        await open_matrix(pilot)
        await pilot.press("escape")
        screen = pilot.app.screen
        assert isinstance(screen, SessionScreen)
        assert (screen.step, len(screen.runs.every)) == (1, 1), "back leads to the session as it was"
        await open_matrix(pilot)
        await pilot.press("j", "enter")
        screen = pilot.app.screen
        assert isinstance(screen, SessionScreen)
        assert (screen.runs.index, len(screen.runs.every)) == (0, 1)
        assert screen.step == screen.run.view.turns[1].run.first
        assert "nothing differs from strict · p goes back to the policies" in " ".join(page(pilot.app).split())


async def test_the_limits_of_the_run_hold_in_the_matrix(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        await pilot.press("e", "5", "enter")
        cells = await open_matrix(pilot)
        assert cells.matrix is not None
        assert (cells.matrix.rows[0][0].decision.short, cells.matrix.rows[0][0].continuations) == ("continued", 5)
        assert "run attempts=5" in page(pilot.app)
        await pilot.press("y")
        assert "--set continuation_max_attempts=5" in pilot.app.clipboard


async def test_the_copied_command_prints_the_same_matrix(
    app_on: AppOn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    async with app_on().run_test(size=SMALL) as pilot:
        await open_matrix(pilot)
        await pilot.press("y")
        words = split(pilot.app.clipboard)
        assert words[:2] == ["inspector", "policies"]
        assert "copied" in page(pilot.app)
        printed = CliRunner().invoke(main, words[1:])
        assert printed.exit_code == 0
        await pilot.press("x", "ctrl+u", *"out", "enter")
        assert (tmp_path / "out" / "policies.txt").read_text(encoding="utf-8") == printed.output
        for option, name in (("--csv=-", "policies.csv"), ("--json", "policies.json")):
            printed = CliRunner().invoke(main, [*words[1:], option])
            kept = (tmp_path / "out" / name).read_text(encoding="utf-8")
            assert (json.loads(kept) == json.loads(printed.output)) if option == "--json" else kept == printed.output
        assert "written, in a new folder: " in page(pilot.app)


def test_a_simulated_matrix_says_so(tmp_path: Path) -> None:
    path = str(story(tmp_path))
    assert "policies, RECORDED" in CliRunner().invoke(main, ["policies", path]).output
    assert "policies, RECORDED" in CliRunner().invoke(main, ["policies", path, "--simulate"]).output, "nothing differs"
    assert "policies, SIMULATED" in CliRunner().invoke(main, ["policies", path, "--set", "max_tokens=32"]).output


async def test_a_narrow_screen_shows_the_policies_around_the_cursor(app_on: AppOn) -> None:
    async with app_on().run_test(size=(60, 15)) as pilot:
        await open_matrix(pilot)
        assert "botnexus" not in screen_rows(pilot.app)[1]
        await pilot.press(*["l"] * 6)
        assert "botnexus" in screen_rows(pilot.app)[1]
        assert "▶lost text" in screen_rows(pilot.app)[3]
        await pilot.click(offset=(screen_rows(pilot.app)[1].index("botnexus"), 4))
        assert pilot.app.screen.query_one(PolicyTable).here == (1, 6)


async def test_the_keys_are_in_the_help_and_in_the_palette(app_on: AppOn) -> None:
    async with app_on().run_test(size=LARGE) as pilot:
        await pilot.press("?")
        rows = view_text(pilot.app).split("\n")
        assert "Policies by turns" in "\n".join(line for line in rows if line.startswith("p "))
        await pilot.press("escape")
        await open_matrix(pilot)
        assert "enter open" in screen_rows(pilot.app)[-1]
        await pilot.press("?")
        assert "The next cell in which a policy differs from strict" in view_text(pilot.app)


@pytest.mark.parametrize("plain", [False, True])
async def test_hostile_words_are_inert(app_on: AppOn, plain: bool) -> None:
    async with app_on(hostile(), plain=plain).run_test(size=LARGE) as pilot:
        cells = await open_matrix(pilot)
        assert cells.matrix is not None
        assert any("\x1b" in cell.why for row in cells.matrix.rows for cell in row)
        for _ in range(cells.count):
            for _ in range(7):
                assert commands_in(screen_rows(pilot.app)) == set()
                if plain:
                    assert [row for row in screen_rows(pilot.app) if not row.isascii()] == []
                await pilot.press("l")
            await pilot.press("j", *["h"] * 7)
        assert HOSTILE not in page(pilot.app)


async def test_a_session_without_turns_says_so() -> None:
    case = open_case(open_paths(["-"], stdin=b"{}\n"))
    app = LoopInspector()
    async with app.run_test(size=SMALL) as pilot:
        app.push_screen(PoliciesScreen(case, Settings(), "original", "inspector policies -", None, False))
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "no turns" in page(app)
        await pilot.press("j", "l", "}", "enter", "/", *"x", "enter")
        assert isinstance(app.screen, PoliciesScreen)
        assert "'x' is not in this table" in page(app)
        await pilot.press("tab")
        assert "no turns: nothing was read" in page(app)


async def test_a_long_session_is_scrolled_to_the_cell(app_on: AppOn) -> None:
    asks = [entry([user(f"Question {n}.")], body(assistant("An answer."), "stop", 4)) for n in range(60)]
    async with app_on([*asks, *cut_text()]).run_test(size=SMALL) as pilot:
        cells = await open_matrix(pilot)
        assert (cells.count, cells.here) == (2, (60, 0)), "it opens at the first turn in which the policies differ"
        assert " 1–60   60 turns in which all policies agree  finished 60" in page(pilot.app)
        await pilot.press("e")
        assert (cells.count, cells.here) == (61, (60, 0))
        assert "every turn has its line" in page(pilot.app)
        await pilot.press("}")
        assert cells.here == (60, 3)
        assert "▶lost text" in page(pilot.app)
        assert "turn 61 under zoo-before" in page(pilot.app)
        assert "61 of 61▔" in page(pilot.app), "the place of the row"


async def test_turns_in_which_all_agree_are_one_line_that_unfolds(app_on: AppOn) -> None:
    asks = [entry([user(f"Question {n}.")], body(assistant("An answer."), "stop", 4)) for n in range(9)]
    async with app_on([*asks, *cut_text()]).run_test(size=SMALL) as pilot:
        cells = await open_matrix(pilot)
        await pilot.press("g")
        assert "turns 1 to 9 under all policies" in view_text(pilot.app)
        assert "complete       9 of 9" in view_text(pilot.app)
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, PoliciesScreen), "a fold is no cell: it unfolds"
        assert (cells.count, cells.here) == (10, (0, 0))
        await pilot.press("e", "g")
        assert cells.count == 2
        await pilot.press("/", *"finished", "enter")
        assert cells.count == 10, "what is found in a fold is shown"
        await pilot.press("n")
        assert cells.here == (0, 1)
        await pilot.press("e")
        y = next(at for at, row in enumerate(screen_rows(pilot.app)) if "9 turns in which" in row)
        await pilot.click(offset=(20, y), times=2)
        assert cells.count == 10


async def test_a_run_that_parts_from_a_later_step_is_laid_out_from_the_first(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, SessionScreen)
        screen.branches.branch({"continuation_max_attempts": "1"}, 5)
        assert screen.run.view.replay.since == 5
        cells = await open_matrix(pilot)
        assert ", from the first step on" in screen_rows(pilot.app)[0]
        await pilot.press(*["l"] * 3, "enter")
        assert cells.matrix is not None
        assert screen.run.view.replay.since == 0
        assert screen.run.view.replay.settings.limits.continuation_max_attempts == 1
        assert list(map(step_key, screen.run.view.steps)) == list(map(step_key, cells.matrix.replays[3].trace.steps))


async def test_a_simulated_run_opens_its_cells_simulated(tmp_path: Path) -> None:
    path = str(story(tmp_path))
    smaller = ReadingOptions(settings=Settings(simulate=True, max_tokens=32))
    app = LoopInspector([path], opened_already=load([path], smaller))
    async with app.run_test(size=SMALL) as pilot:
        cells = await open_matrix(pilot)
        assert screen_rows(app)[0].rstrip().endswith("SIMULATED")
        await pilot.press("y", *["l"] * 3, "enter")
        words = split(app.clipboard)
        assert words[-2:] == ["--set", "max_tokens=32"]
        assert "SIMULATED" in CliRunner().invoke(main, words[1:]).output
        screen = app.screen
        assert isinstance(screen, SessionScreen)
        settings = screen.run.view.replay.settings
        assert (settings.simulate, settings.policy.name) == (True, "zoo-before")
        assert cells.matrix is not None
        assert list(map(step_key, screen.run.view.steps)) == list(map(step_key, cells.matrix.replays[3].trace.steps))


async def test_a_key_of_the_session_below_is_said_to_be_one_screen_back(app_on: AppOn) -> None:
    """The session lies behind the table of policies: nobody has to look for it in the table of turns."""
    async with app_on().run_test(size=(80, 24)) as pilot:
        await pilot.press("p")
        await until(pilot, lambda: isinstance(pilot.app.screen, PoliciesScreen))
        await pilot.press("u")
        assert "u works one screen back (esc): Run the session under a grid of limits" in page(pilot.app)
        await pilot.press("escape", "u")
        assert isinstance(pilot.app.screen, TuneScreen)
