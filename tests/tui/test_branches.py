"""What-ifs in the app: the form and its preview, from a step on, the tree, two side by side, and what is kept."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from inspector.tui.app import LoopInspector
from inspector.tui.breakpoints import Breakpoint
from inspector.tui.key_words import FIELD_DETAILS, FIELD_LABELS, OTHER_LIMITS, WORDS, word_meaning
from inspector.tui.limits_form import LimitsForm
from inspector.tui.panels import Cycle, Status
from inspector.tui.run_views import PairList, RunRows, RunTree, SideBySide
from inspector.tui.session_files import ReadingOptions, load
from inspector.tui.session_screen import SessionScreen
from loop_core.turn.presets import POLICIES
from tests.scenes.app import (
    PARTS,
    cut_call_ran,
    cut_text,
    entry,
    page,
    screen_rows,
    store_open,
    stream,
    until,
    user,
    view_text,
)

AppOn = Callable[..., LoopInspector]
THREE = (160, 45)


def session(pilot: Pilot[Any]) -> SessionScreen:
    screen = pilot.app.screen
    assert isinstance(screen, SessionScreen)
    return screen


async def settle(pilot: Pilot[Any]) -> None:
    """What is kept has been read, and what runs in threads has come back."""
    await store_open(pilot)
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def test_each_word_of_the_form_makes_a_branch(app_on: AppOn) -> None:
    async with app_on(cut_text()).run_test(size=(80, 24)) as pilot:
        for name, keys, value in [
            ("policy", ["p"], "pi-presence"), ("seam", ["right"], "careful"), ("method", ["left"], "hint"),
            ("profile", ["v"], "venice"), ("source", ["space"], "simulation"),
        ]:
            await pilot.press("e", *["down"] * (5 + WORDS.index(name)))
            form = pilot.app.screen
            assert isinstance(form, LimitsForm), name
            await pilot.press(*keys)
            assert form.query_one(f"#{name}", Cycle).value == value
            assert (word_meaning(name, value) or FIELD_DETAILS[name])[:40] in page(pilot.app), name
            assert bool(word_meaning(name, value)) is (name in ("policy", "seam")), name
            assert FIELD_LABELS[name], name
            await pilot.press("enter")
            settings = session(pilot).run.view.replay.settings
            found = "simulation" if name == "source" and settings.simulate else getattr(settings, name)
            assert (found.name if name == "policy" else found) == value, name
            await pilot.press("o")
            assert session(pilot).run.name == "original", name


async def test_the_form_says_what_a_change_would_do(app_on: AppOn) -> None:
    async with app_on(cut_text()).run_test(size=(80, 24)) as pilot:
        await pilot.press("e", "5")
        # The default of 3 stops at step 13 of 20; with 5 the run is 18 steps, 12 of them shared.
        changes = "would change 8 steps from step 13 · turn 1 would end differently"
        await until(pilot, lambda: changes in page(pilot.app))
        await pilot.press("x")
        await until(pilot, lambda: "a value is invalid: nothing would run" in page(pilot.app))
        assert "would change" not in page(pilot.app)
        await pilot.press("backspace", "backspace", "3")
        await until(pilot, lambda: "nothing is changed yet" in page(pilot.app))
        assert len(session_of(pilot).runs.every) == 1


async def test_several_turns_that_would_end_otherwise_are_plural(app_on: AppOn) -> None:
    async with app_on([*cut_text(), *cut_text(PARTS[1:])]).run_test(size=(80, 24)) as pilot:
        await pilot.press("e", "1")
        await until(pilot, lambda: "turns 1, 2 would end differently" in page(pilot.app))


def session_of(pilot: Pilot[Any]) -> SessionScreen:
    screen = pilot.app.screen_stack[0]
    assert isinstance(screen, SessionScreen)
    return screen


async def test_any_other_limit_is_typed_by_its_name(app_on: AppOn) -> None:
    async with app_on(cut_text()).run_test(size=(80, 24)) as pilot:
        await pilot.press("e", "up")
        assert pilot.app.focused.id == OTHER_LIMITS
        shown = page(pilot.app)
        assert all(name in shown for name in FIELD_DETAILS[OTHER_LIMITS].split(", ")), "each can be read at 80 by 24"
        assert "enter runs" in shown
        await pilot.press(*"max_tool_step=3", "enter")
        assert "unknown setting 'max_tool_step'; did you mean max_tool_steps?" in page(pilot.app)
        await pilot.press(*["backspace"] * 2, *"s=3 min_progress_chars=5000", "enter")
        limits = session(pilot).run.view.replay.settings.limits
        assert (limits.max_tool_steps, limits.min_progress_chars) == (3, 5000)
        assert session(pilot).run.view.turns[0].terminal == "no_progress"


async def test_a_cap_that_the_request_leaves_out_is_said_to_be_not_set(app_on: AppOn) -> None:
    for cap, said in ((None, "output cap of the first request · not set"), (64, "first request · now 64")):
        async with app_on([entry([user("Tell.")], stream("It", "length", 9), cap)]).run_test(size=(80, 24)) as pilot:
            await pilot.press("e", *["down"] * 4)
            assert said in page(pilot.app)


async def test_from_this_step_on_keeps_what_came_before(app_on: AppOn) -> None:
    async with app_on(cut_text()).run_test(size=THREE) as pilot:
        await pilot.press(*["space"] * 5, "E")
        assert "Run again from step 6 on" in page(pilot.app)
        await pilot.press("5", "enter")
        screen = session(pilot)
        before, after = screen.runs.every[0].view.steps, screen.run.view.steps
        assert screen.run.name == "attempts=5 from step 6"
        assert all(old is new for old, new in zip(before[:5], after[:5], strict=True))
        assert screen.run.view.turns[0].joined_text.text == "".join(PARTS)
        await pilot.press("Y")
        assert "--from-step 6" in pilot.app.clipboard


async def test_the_tree_shows_goes_and_takes_away(app_on: AppOn) -> None:
    async with app_on(cut_text()).run_test(size=THREE) as pilot:
        await pilot.press("e", "4", "enter", "e", "1", "enter", "R")
        assert isinstance(pilot.app.screen, RunTree)
        shown = page(pilot.app)
        assert "└ attempts=4" in shown
        assert "  └ attempts=1" in shown  # made from it, so it hangs below it
        await pilot.press("escape")
        assert "Run attempts=1 beside run attempts=4," in page(pilot.app)
        await pilot.press("R")
        await pilot.press("g", "enter")
        assert session(pilot).run.name == "original"
        await pilot.press("R", "j", "x")
        warning = "the same key again removes attempts=4 and 1 run made from it"
        assert warning in page(pilot.app), "x exports on every other screen"
        assert pilot.app.screen.query_one(RunRows).count == 3
        await pilot.press("j", "x")
        assert "the same key again removes attempts=1" in page(pilot.app), "the run at the cursor, and no other"
        await pilot.press("k", "x", "j", "k", "x")
        assert pilot.app.screen.query_one(RunRows).count == 3, "the question is over when the cursor leaves the run"
        await pilot.press("delete")
        assert "2 removed" in page(pilot.app)
        assert pilot.app.screen.query_one(RunRows).count == 1
        await pilot.press("x")
        assert "the original stays" in page(pilot.app)
        await pilot.press("d")
        assert "there is only the original run" in page(pilot.app)
        await pilot.press("escape", "o")
        assert "there is only the original run" in page(pilot.app)


async def test_the_tree_shows_how_each_run_ends_also_where_its_name_is_too_long(app_on: AppOn) -> None:
    async with app_on(cut_text()).run_test(size=(60, 20)) as pilot:
        await pilot.press("e", "5", "down", *"90000", "down", *"888888", "down", "2", "enter")
        name = session(pilot).run.name
        assert len(name) > 50, name
        await pilot.press("R")
        await pilot.pause()
        row = next(row for row in screen_rows(pilot.app) if "└ attempts=5" in row)
        assert name not in row
        assert "…  Complete" in row
        shown = " ".join(page(pilot.app).replace("│", " ").split())
        assert name in shown, "the row is whole below the list"
        assert "output tokens · differs at step" in shown
        await pilot.press("g")
        assert "differs at step" not in page(pilot.app)


async def test_two_runs_stand_side_by_side_on_their_first_difference_and_equal_steps_unfold(app_on: AppOn) -> None:
    async with app_on(cut_text()).run_test(size=THREE) as pilot:
        await pilot.press("e", "5", "enter", "R", "g", "enter", "R", "d")
        assert isinstance(pilot.app.screen, RunTree)
        assert "choose another run: d shows it beside the original" in page(pilot.app)
        await pilot.press("j", "d")
        assert isinstance(pilot.app.screen, SideBySide)
        await pilot.press("escape", "o", "R", "g", "d")
        screen = pilot.app.screen
        assert isinstance(screen, SideBySide)
        pairs = screen.query_one(PairList)
        assert pairs.entries[pairs.cursor] == (12, 12, False)
        shown = " ".join(page(pilot.app).split())
        assert "Turn 1 in both runs different: the number of answers (4 and 6), the text from character 234" in shown
        assert "ends as retry_limit (AbortPartial) ≠ Complete" in shown
        assert "segments 4 ≠ 6" in shown
        assert "1–12 12 equal steps │ 1–12" in shown
        assert "13 ■ AbortPartial retry_limit" in shown
        assert "13 → RequestContinuation 4" in shown
        assert "+ All three have been closed" in shown
        before = pairs.cursor
        await pilot.press("y")
        assert "1–12  12 equal steps" in pilot.app.clipboard
        assert "ends as     retry_limit (AbortPartial)" in pilot.app.clipboard
        assert "+ All three have been closed" in pilot.app.clipboard
        await pilot.press("}")
        assert pairs.cursor == before + 1
        await pilot.press("{", "{")
        assert "no difference before this step" in page(pilot.app)
        await pilot.press("tab", "tab", "enter")
        assert session(pilot).step == 12
        await pilot.press("R", "g", "d", "k", "enter")
        pairs = pilot.app.screen.query_one(PairList)
        assert pairs.entries[pairs.cursor] == (0, 0, True)
        assert "equal steps" not in page(pilot.app)
        assert "3 ◌ ContinuePending 0 of 3" in page(pilot.app)
        assert "3 ◌ ContinuePending 0 of 5" in page(pilot.app), "each under its own limit"
        await pilot.press("g", "enter")
        assert "this row is not a step" in page(pilot.app)
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, SessionScreen)


async def test_the_runs_are_compared_by_the_turn_at_the_cursor(app_on: AppOn) -> None:
    async with app_on([*cut_text(), *cut_call_ran()]).run_test(size=THREE) as pilot:
        await pilot.press("g", "e", "5", "enter", "R")
        assert "how turn 1 ends in each" in page(pilot.app)
        rows = rows_of_runs(pilot)
        assert ["AbortPartial, retry_limit" in rows[0], "Complete · " in rows[1]] == [True, True], "how turn 1 ends"
        await pilot.press("escape", "]", "R")
        rows = rows_of_runs(pilot)
        assert ["Unrecorded · " in row for row in rows] == [True, True], "how turn 2 ends"
        assert rows[1].endswith("the same in this turn")
        await pilot.press("g", "d")
        assert "Turn 2 in both runs  no step differs" in page(pilot.app)
        await pilot.press("[")
        assert "Turn 1 in both runs  different: the number of answers (4 and 6), the text" in page(pilot.app)
        await pilot.press("[")
        assert "this is the first turn" in page(pilot.app)
        await pilot.press("]", "]")
        assert "this is the last turn" in page(pilot.app)


async def test_diff_compares_the_original_run_with_its_latest_branch(app_on: AppOn) -> None:
    async with app_on(cut_text()).run_test(size=THREE) as pilot:
        await settle(pilot)
        await pilot.press("5", "v", "v")
        assert "this is the only run; e runs it again with other limits, and compares both here" in view_text(pilot.app)
        for cap in "05":
            await pilot.press("e", cap, "enter")
            await settle(pilot)
            beside = view_text(pilot.app)
            await pilot.press("R", "g", "enter")  # back to the original
            await settle(pilot)
            assert session(pilot).run.name == "original"
            assert f"Run attempts={cap} beside the original" in view_text(pilot.app)
            assert view_text(pilot.app) == beside, "the same comparison, whichever of the two is shown"


async def test_every_key_of_the_form_is_shown_at_60_columns(app_on: AppOn) -> None:
    async with app_on(cut_text(cap=64)[:-1]).run_test(size=(60, 20)) as pilot:
        for opens, does in (("e", "runs"), ("F", "shows costs")):
            await pilot.press(opens)
            await pilot.pause()
            assert f"enter {does} · esc leaves · ↑ ↓ fields · ← → words" in page(pilot.app)
            await pilot.press("escape")


async def test_what_was_tried_and_written_is_there_the_next_time(app_on: AppOn, tmp_path: Path) -> None:
    async with app_on(cut_text()).run_test(size=THREE) as pilot:
        await settle(pilot)
        await pilot.press("m", "space", "semicolon", *"look", "enter", "b", "enter", "escape", "e", "5", "enter", "m")
        await settle(pilot)
        marked = session(pilot).step
    assert len(list((tmp_path / "data").rglob("*.jsonl"))) == 1
    async with app_on(cut_text()).run_test(size=THREE) as pilot:
        await settle(pilot)
        screen = session(pilot)
        assert "saved earlier for this session: 1 branch, 2 marks, 1 note, 1 breakpoint" in page(pilot.app)
        assert screen.remarks.marks == {0}
        assert screen.remarks.notes == {1: "look"}
        assert [each.enabled for each in screen.remarks.breakpoints] == [True]
        await pilot.press("o")
        assert screen.run.name == "attempts=5"
        assert screen.remarks.marks == {marked}
        await pilot.press("R", "G", "x", "x", "escape", "b", "d", "escape")
    async with app_on(cut_text()).run_test(size=THREE) as pilot:
        await settle(pilot)
        assert [run.name for run in session(pilot).runs.every] == ["original"]
        assert session(pilot).remarks.breakpoints == ()


async def test_what_is_done_before_the_store_is_open_is_kept_too(
    app_on: AppOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SessionScreen, "restore", lambda self: None)
    async with app_on(cut_text()).run_test(size=THREE) as pilot:
        await pilot.press("m", "e", "5", "enter")
        screen = session(pilot)
        screen.remarks.restore()
        await settle(pilot)
        assert [run.name for run in screen.runs.every] == ["original", "attempts=5"]
        assert screen.run.name == "attempts=5"
    monkeypatch.undo()
    monkeypatch.setenv("LOOP_INSPECTOR_DATA", str(screen.runs.store.path.parents[1]))
    async with app_on(cut_text()).run_test(size=THREE) as pilot:
        await settle(pilot)
        assert session(pilot).remarks.marks == {0}
        assert len(session(pilot).runs.every) == 2


async def test_the_tree_that_is_opened_before_the_saved_runs_are_read_shows_them_then(
    app_on: AppOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with app_on(cut_text()).run_test(size=THREE) as pilot:
        await settle(pilot)
        await pilot.press("e", "5", "enter")
        await settle(pilot)
    restore = SessionScreen.restore
    monkeypatch.setattr(SessionScreen, "restore", lambda self: None)
    async with app_on(cut_text()).run_test(size=THREE) as pilot:
        screen = session(pilot)
        await pilot.press("R")
        assert "attempts=5" not in page(pilot.app)
        restore(screen)
        await until(pilot, lambda: screen.runs.store is not None)
        await until(pilot, lambda: "└ attempts=5" in page(pilot.app))
        await pilot.press("G", "x", "x", "g", "enter")
        assert [run.name for run in session(pilot).runs.every] == ["original"]


async def test_looking_alone_writes_nothing(app_on: AppOn, tmp_path: Path) -> None:
    async with app_on(cut_text()).run_test(size=THREE) as pilot:
        await settle(pilot)
        await pilot.press("space", "c", "f", *"held", "escape", "R", "escape", "b", "escape")
    assert not (tmp_path / "data").exists()


async def test_a_file_of_a_newer_version_is_left_alone_and_told(app_on: AppOn, tmp_path: Path) -> None:
    async with app_on(cut_text()).run_test(size=THREE) as pilot:
        await settle(pilot)
        await pilot.press("m")
    (kept,) = (tmp_path / "data").rglob("*.jsonl")
    newer = '{"loop_inspector_branches":99,"session":"x"}\n'
    kept.write_text(newer)
    async with app_on(cut_text()).run_test(size=THREE) as pilot:
        await settle(pilot)
        assert "nothing is kept of this session" in page(pilot.app)
        await pilot.press("m")
        assert session(pilot).remarks.breakpoints == ()
    assert kept.read_text() == newer
    assert Breakpoint("held").enabled


def rows_of_runs(pilot: Pilot[Any]) -> list[str]:
    """The rows of the open tree of runs, as text."""
    nodes = pilot.app.screen.query_one(RunRows)
    return ["".join(span.text for span in nodes.row(index)) for index in range(nodes.count)]


async def test_a_branch_that_cannot_be_kept_says_so_and_is_shown_so_until_it_can(
    app_on: AppOn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "file"
    data.touch()
    monkeypatch.setenv("LOOP_INSPECTOR_DATA", str(data))
    path = cut_text()
    async with app_on(path).run_test(size=THREE) as pilot:
        await settle(pilot)
        await pilot.press("e", "5", "enter")
        assert "not saved: " in page(pilot.app)
        assert "cannot be written" in page(pilot.app)
        await pilot.press("R")
        assert [("not saved" in row) for row in rows_of_runs(pilot)] == [False, True]
        await pilot.press("escape")
        data.unlink()
        await pilot.press("E", "7", "enter")  # a branch of the branch: both are written now
        assert "not saved" not in page(pilot.app)
        await pilot.press("R")
        assert [("not saved" in row) for row in rows_of_runs(pilot)] == [False, False, False]
    async with app_on(path).run_test(size=THREE) as pilot:
        await settle(pilot)
        assert len(session(pilot).runs.every) == 3


async def test_a_branch_that_was_made_before_the_store_was_open_says_that_it_is_not_kept(
    app_on: AppOn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "file"
    data.touch()
    monkeypatch.setenv("LOOP_INSPECTOR_DATA", str(data))
    monkeypatch.setattr(SessionScreen, "restore", lambda self: None)
    async with app_on(cut_text()).run_test(size=THREE) as pilot:
        await pilot.press("e", "5", "enter")
        assert "not saved" not in page(pilot.app)
        session(pilot).remarks.restore()
        await settle(pilot)
        assert "cannot be written" in page(pilot.app)
        await pilot.press("R")
        assert [("not saved" in row) for row in rows_of_runs(pilot)] == [False, True]


async def test_a_branch_that_is_taken_away_and_would_come_back_says_so(
    app_on: AppOn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    monkeypatch.setenv("LOOP_INSPECTOR_DATA", str(data))
    async with app_on(cut_text()).run_test(size=THREE) as pilot:
        await settle(pilot)
        await pilot.press("e", "5", "enter")
        data.rename(tmp_path / "elsewhere")
        data.touch()
        await pilot.press("R", "x", "x")
        assert "not saved: " in page(pilot.app)
        assert len(session_of(pilot).runs.every) == 1


async def test_a_branch_of_a_session_from_standard_input_says_that_it_is_not_kept(app_on: AppOn) -> None:
    app = app_on(cut_text())
    assert app._start is not None
    app._start = replace(app._start, paths=("-",))
    async with app.run_test(size=THREE) as pilot:
        await settle(pilot)
        await pilot.press("e", "5", "enter")
        assert "not saved: a session without a file" in page(pilot.app)


async def test_the_form_says_what_each_policy_does_as_it_is_chosen(app_on: AppOn) -> None:
    async with app_on(cut_text()).run_test(size=(80, 24)) as pilot:
        await pilot.press("e", *["down"] * 5)
        for policy in POLICIES.values():
            page_text = " ".join(page(pilot.app).replace("│", " ").split())
            assert f"{policy.name}: {policy.title} · p compares them all" in page_text
            await pilot.press("right")


async def test_going_to_a_run_with_more_steps_draws_no_step_that_the_other_lacks() -> None:
    """In the run without continuations the first turn has more steps, so a place in the second has a larger number."""
    path = "sample_sessions/01-cut-call-and-long-answer.session.jsonl"
    app = LoopInspector([path], opened_already=load([path], ReadingOptions()))
    async with app.run_test(size=(20, 5)) as pilot:
        await pilot.press("enter")
        await pilot.pause()
        session = app.screen
        assert isinstance(session, SessionScreen)
        await app.workers.wait_for_complete()
        short, last = session.run.view, len(session.run.view.steps) - 1
        session.runs.under({"continuation_max_attempts": "0"})
        session.step = last
        for size in ((20, 5), (80, 24), (160, 45)):
            await pilot.resize_terminal(*size)
            for _ in range(2):
                await pilot.press("o")
                await pilot.pause()
                assert session.run.view is not short, size
                assert session.step > last, "the same place, which the shorter run numbers otherwise"
                assert session.step == session.query_one(Status).step, size
                await pilot.press("o")
                await pilot.pause()
                assert session.run.view is short, size
                assert session.step == session.query_one(Status).step == last, size
