"""The table of turns: what it lists, in which order, what its keys do, and the way into a session and back."""

import gc
import os
import re
import sqlite3
import threading
import time
import weakref
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from textual.events import MouseDown, MouseUp
from textual.widgets import Input

from inspector.report import turn_rows, turn_table
from inspector.report.lines.spans import Span, text_of
from inspector.report.turn_rows import TurnRow
from inspector.sessions import intake
from inspector.sessions.folders import samples
from inspector.sessions.open import open_each
from inspector.tui import table_growth, turns_reading, turns_screen
from inspector.tui.app import MANY_RESPONSES, UNREADABLE, LoopInspector
from inspector.tui.attention import VerdictSheet
from inspector.tui.growth import PERIOD
from inspector.tui.key_words import TABS
from inspector.tui.keys import HelpScreen
from inspector.tui.lists import ChoiceList
from inspector.tui.live_run import AskLive
from inspector.tui.panels import WrappedLines
from inspector.tui.policies_screen import PoliciesScreen
from inspector.tui.questions import Prompt
from inspector.tui.session_files import ReadingOptions, load
from inspector.tui.session_screen import SessionScreen
from inspector.tui.turn_counts import flow_groups
from inspector.tui.turn_list import Section, TurnList, found_sections, rows_of_session
from inspector.tui.turns_screen import LARGE, LARGEST_READ, TurnsScreen
from tests.scenes.app import page, until, view_text
from tests.scenes.recordings import ASKS, chat, exchange, lines, pair_of, user
from tests.scenes.transcripts import MISSING, block, claude, failure, pi, pi_reply, pi_user, prompt, result, text, use

FREEZE = gc.freeze
"""Exempts all objects from garbage collection; `conftest.py` takes it from the tests."""
SIZE = (120, 40)
CUT = claude(prompt("write the plan"), block(use()), result(MISSING, error=True))
LOST = claude(prompt("write it all"), failure())
ENDED = claude(prompt("say hello"), block(text("Hello."), stop="end_turn"))
ZEBRA = claude(prompt("look for a zebra"), failure()) + "\n" * 400_000
SOME = 300_000
"""The bytes from which on a file counts as large in these tests."""


def home() -> Path:
    return Path(os.environ["HOME"])


def wrote(below: str, content: str, at: float) -> str:
    path = home() / below
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    os.utime(path, (at, at))
    return str(path)


async def read(app: LoopInspector, pilot) -> TurnList:
    while app.screen.reading:
        await pilot.pause(0.02)
    await pilot.pause()
    return app.screen.query_one(TurnList)


def listed_rows(listed: TurnList) -> list[TurnRow]:
    return [row for row in listed.entries if isinstance(row, TurnRow)]


def words(listed: TurnList) -> list[str]:
    return [row.verdict.word if row.verdict else "NOT READ" for row in listed_rows(listed)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three sessions, in names that are not in the order of their verdicts, and a file that is none."""
    place = tmp_path / "runs"
    place.mkdir()
    (place / "a.jsonl").write_text(ENDED)
    (place / "b.jsonl").write_text(LOST)
    (place / "c.jsonl").write_text(CUT)
    (place / "notes.txt").write_text("nothing of a session")
    return place


# -- what nobody named ------------------------------------------------------------------------------------------------


async def test_the_newest_transcript_is_first_and_each_row_gets_its_verdict() -> None:
    old = wrote(".claude/projects/-work-old/a.jsonl", ENDED, 1_000)
    new = wrote(".claude/projects/-work-new/b.jsonl", CUT, 2_000)
    other = wrote(".pi/agent/sessions/--w--/c.jsonl", pi(pi_user("tell"), pi_reply(text("On"), stop="length")), 1_500)
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        listed = await read(app, pilot)
        assert [row.paths[0] for row in listed_rows(listed)][:3] == [new, other, old]
        assert listed.current_row.paths == (new,)
        shown = page(app)
        listing = shown[shown.index("Sessions of your agents"):]
        assert listing.index("CALL REJECTED") < listing.index("Sample sessions")
        assert words(listed)[:3] == ["CALL REJECTED", "TRUNCATED", "COMPLETE"]
        assert "message  write the plan" in shown
        assert "anthropic_messages ended with no stop reason recorded" in shown


async def test_the_samples_are_not_counted_among_what_the_operator_has() -> None:
    """Two transcripts of one turn each, one of them cut; every verdict of a sample would be a false alarm."""
    sessions = len(samples())
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        await read(app, pilot)
        assert page(app).startswith(f" {sessions} sample sessions with ")
        await pilot.press("!")
        assert app.screen.note.endswith(" samples that need attention")
    wrote(".claude/projects/-work-old/a.jsonl", ENDED, 1_000)
    wrote(".claude/projects/-work-new/b.jsonl", CUT, 2_000)
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        listed = await read(app, pilot)
        turns = sum(row.of for row in listed_rows(listed)[2:])
        assert page(app).startswith(
            f" 2 sessions with 2 turns + {sessions} samples · 1 needs attention + 1 complete · 1 ▣ CALL REJECTED\n")
        await pilot.press("!")
        assert app.screen.note == "the only session that needs attention"
        await pilot.press("v")
        assert page(app).startswith(f" 2 turns in 2 sessions + {turns} turns of samples · 1 needs attention")
        await pilot.press("f", *"held", "enter")
        assert f" of {turns + 2} turns" in page(app), "a filter is about all rows of the table"


async def test_a_row_is_there_before_its_file_was_read_and_opens_by_enter() -> None:
    path = wrote(".claude/projects/-work/a.jsonl", ENDED, 1_000)
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("enter")
        assert isinstance(app.screen, SessionScreen)
        assert app.screen.session.paths == (path,)
        await pilot.press("q")
        await read(app, pilot)
        assert isinstance(app.screen, TurnsScreen)
        assert "COMPLETE" in page(app)


async def test_the_key_of_a_tab_opens_the_turn_of_the_row_at_it(folder: Path) -> None:
    app = LoopInspector([str(folder)])
    async with app.run_test(size=(80, 24)) as pilot:
        listed = await read(app, pilot)
        await pilot.press("down")
        row = listed.current_row
        for tab in TABS:
            await pilot.press(tab.key)
            assert isinstance(app.screen, SessionScreen), tab.name
            assert (app.screen.session.paths, app.screen.step) == (row.paths, row.step)
            assert app.screen.open_tab == tab.name
            await pilot.press("q")
            assert isinstance(app.screen, TurnsScreen), tab.name
            assert listed.current_row is row, tab.name


async def test_the_keys_of_the_verdict_and_of_the_advice_work_on_a_row() -> None:
    app = LoopInspector(
        [f"sample_sessions/{name}.session.jsonl" for name in ("01-cut-call-and-long-answer", "02-text-cut-twice")])
    async with app.run_test(size=(120, 30)) as pilot:
        listed = await read(app, pilot)
        listed.cursor = next(at for at, row in enumerate(listed.entries) if row.verdict.word == "LIMIT REACHED")
        row = listed.current_row
        await pilot.pause()
        assert "change   F raise" in page(app)
        assert "F makes this run" not in " ".join(page(app).split()), "the key is named once"
        await pilot.press("V")
        await pilot.pause()
        assert isinstance(app.screen, VerdictSheet)
        await pilot.press("escape", "q", "F")
        await pilot.pause()
        assert isinstance(app.screen, SessionScreen)
        assert app.screen.session.paths == row.paths
        assert app.screen.runs.current.name == "attempts=5"
        assert "Run attempts=5 beside the original" in page(app)


async def test_enter_before_the_first_row_says_what_is_awaited(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()

    def slowly(paths, **options):
        for group in open_each(paths, **options):
            go.wait(60)
            go.clear()
            yield group

    monkeypatch.setattr("inspector.report.turn_index.open_each", slowly)
    monkeypatch.setattr(turns_reading, "BATCH", 0)
    app = LoopInspector([str(folder)])
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter")
        assert app.screen.note == "nothing is read yet: the rows come as the files are read"
        assert not app.screen.turn_list.chosen, "no row was chosen, so the cursor goes to the worst one at last"
        go.set()
        await until(pilot, lambda: ", then worst first…" in page(app))  # why rows will move
        assert "reading 1 of 4 files" in page(app)
        assert app.screen.note == "", "it is no longer true"
        monkeypatch.setattr(go, "clear", lambda: None)
        go.set()
        await read(app, pilot)
        assert "worst first…" not in page(app)


async def test_an_advice_that_only_a_live_run_shows_opens_its_form_from_a_row() -> None:
    app = LoopInspector(
        [f"sample_sessions/{name}.session.jsonl" for name in ("08-router-says-tool-calls", "02-text-cut-twice")])
    async with app.run_test(size=(80, 24)) as pilot:
        await read(app, pilot)
        await pilot.press("F", "enter")  # the second key waits for the form
        await pilot.pause()
        assert isinstance(app.screen, AskLive)


async def test_a_broken_file_shows_its_error_and_hides_no_other() -> None:
    broken = wrote(".claude/projects/-work/a.jsonl", "\x00\x01 nothing", 3_000)
    wrote(".claude/projects/-work/b.jsonl", "??", 2_000)
    wrote(".claude/projects/-work/c.jsonl", ENDED, 1_000)
    wrote(".claude/projects/-work/d.jsonl", "\n", 500)  # as an agent may write it before the first record
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        listed = await read(app, pilot)
        assert words(listed)[:4] == ["NOT READ", "NOT READ", "COMPLETE", "CUT CALL RUN"]
        assert listed_rows(listed)[0].paths == (broken,)
        assert "binary data at byte 0" in page(app)
        await pilot.press("enter")
        assert "not read: binary data" in app.screen.note


async def test_keys_are_answered_while_verdicts_come() -> None:
    for number in range(12):
        wrote(f".claude/projects/-work/{number}.jsonl", ENDED, 1_000 + number)
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("j", "j")
        listed = app.screen.query_one(TurnList)
        assert listed.current_row.paths[0].endswith("/9.jsonl")
        await read(app, pilot)
        assert listed.current_row.paths[0].endswith("/9.jsonl")


def test_a_large_file_is_listed_and_not_read() -> None:
    path = Path(wrote(".claude/projects/-work/a.jsonl", ENDED, 1_000))
    with path.open("ab") as file:
        file.truncate(LARGEST_READ + 1)
    screen = TurnsScreen(found_sections(os.environ), named=False)
    assert screen.turn_list.slots[str(path)][0].why == LARGE


async def test_a_large_file_that_grows_is_not_read(monkeypatch) -> None:
    monkeypatch.setattr(turns_screen, "LARGEST_READ", SOME)
    monkeypatch.setattr(table_growth, "SEARCH", 0.1)  # the samples are newer, so only a search finds that `small` grew
    monkeypatch.setattr(table_growth, "SEARCH_REST", 1.0)
    large, small = (wrote(f".claude/projects/-work/{name}.jsonl", session, 1)
                    for name, session in (("large", ZEBRA), ("small", ENDED)))
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        listed = await read(app, pilot)
        before = listed.slots[small]
        for path in (large, small):
            with open(path, "ab") as file:
                file.write(b"\n")
        await until(pilot, lambda: listed.slots[small] is not before)
        assert listed.slots[large][0].why == LARGE


async def test_a_search_reads_the_large_files_too_and_the_index_keeps_them(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("LOOP_INSPECTOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(turns_screen, "LARGEST_READ", SOME)
    large = wrote(".claude/projects/-work/large.jsonl", ZEBRA, 1)
    wrote(".claude/projects/-work/small.jsonl", ENDED, 2_000)
    go = threading.Event()

    def slowly(paths, **options):
        go.wait(60 if large in paths else 0)
        return open_each(paths, **options)

    monkeypatch.setattr("inspector.report.turn_index.open_each", slowly)
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        listed = await read(app, pilot)
        assert listed.slots[large][0].why == LARGE
        await pilot.press("/", *"zebra", "enter")
        assert app.screen.note == "'zebra' is in no turn that is listed · 1 large file to search, c stops"
        assert "reading 0 of 1 file…" in page(app)
        go.set()
        await read(app, pilot)
        assert listed.current_row.file == large
        assert "'zebra' is in turn 1" in app.screen.note
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        listed = await read(app, pilot)
        assert listed.slots[large][0].verdict is not None, "its rows are in the index"
        await pilot.press("/", *"zebra", "enter")
        assert not app.screen.reading
        assert listed.current_row.file == large


async def test_a_search_that_begins_while_files_are_read_goes_on_to_the_large_ones(monkeypatch) -> None:
    monkeypatch.setattr(turns_screen, "LARGEST_READ", SOME)
    large = wrote(".claude/projects/-work/large.jsonl", ZEBRA, 1)
    wrote(".claude/projects/-work/small.jsonl", ENDED, 2_000)
    go = threading.Event()

    def slowly(paths, **options):
        go.wait(60)
        return open_each(paths, **options)

    monkeypatch.setattr("inspector.report.turn_index.open_each", slowly)
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        listed = app.screen.query_one(TurnList)
        await pilot.press("/", *"zebra", "enter")
        assert app.screen.note == "'zebra' is in no turn that is listed"
        go.set()
        await until(pilot, lambda: "zebra' is in turn 1" in app.screen.note)
        assert listed.current_row.file == large


async def test_while_a_large_file_of_a_folder_is_read_its_share_is_shown(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "runs").mkdir()
    path = tmp_path / "runs" / "large.jsonl"
    path.write_bytes(lines(*(pair_of([user(f"question {number}")], chat("An answer.")) for number in range(4))))
    monkeypatch.setattr(intake, "HEAVY", 10)
    go, judge, note, note_judged = threading.Event(), threading.Event(), intake.note_read, intake.note_judged

    def to_the_half(place: int) -> None:
        note(place)
        if place * 2 >= path.stat().st_size:
            go.wait(20)

    def to_the_third_row(share: float) -> None:
        note_judged(share)
        if share * 8 == 7:
            judge.wait(20)

    monkeypatch.setattr(intake, "note_read", to_the_half)
    monkeypatch.setattr(turn_rows, "note_judged", to_the_third_row)
    app = LoopInspector([str(tmp_path / "runs")])
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "… 50 %" in page(app))
        rows_of_session(load(["sample_sessions/08-router-says-tool-calls.session.jsonl"], ReadingOptions()))
        assert intake.progress() == (str(path), path.stat().st_size // 2, 0), "a session that is opened meanwhile"
        go.set()
        await until(pilot, lambda: "… 88 % of the turns judged" in page(app))
        judge.set()
        await read(app, pilot)
        assert "%" not in page(app)
        assert "4 turns" in page(app)


async def test_reading_can_be_stopped_in_the_middle_of_a_file(monkeypatch) -> None:
    monkeypatch.setattr(turns_screen, "LARGEST_READ", SOME)
    monkeypatch.setattr(intake, "PIECE", 1000)
    wrote(".claude/projects/-work/large.jsonl", ZEBRA, 1)
    go, ended, places, note = threading.Event(), threading.Event(), list[int](), intake.note_read
    read_files = turns_reading._read_files

    def to_the_end(*given):
        try:
            read_files(*given)
        finally:
            ended.set()

    def slowly(place: int) -> None:
        places.append(place)
        go.wait(60)
        note(place)

    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        await read(app, pilot)
        monkeypatch.setattr(intake, "note_read", slowly)
        monkeypatch.setattr(turns_reading, "_read_files", to_the_end)
        await pilot.press("/", *"zebra", "enter")
        await until(pilot, lambda: bool(places))
        await pilot.press("c")
        assert app.screen.note.startswith("stopped: 0 of 1 files are read")
        go.set()
        await until(pilot, ended.is_set)
        assert len(places) == 1, "no piece is read after the one under way"
        await pilot.press("/", "enter")
        await read(app, pilot)
        assert "'zebra' is in turn 1" in app.screen.note


async def test_nothing_is_written_beside_a_transcript() -> None:
    path = wrote(".claude/projects/-work/a.jsonl", LOST, 1_000)
    before = sorted(str(each) for each in home().rglob("*"))
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        await read(app, pilot)
        await pilot.press("enter", "q")
    assert sorted(str(each) for each in home().rglob("*")) == before
    assert os.stat(path).st_mtime == 1_000


async def test_a_second_look_reads_nothing_and_writes_nothing_beside_the_files(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("LOOP_INSPECTOR_CACHE", str(tmp_path / "cache"))
    for number in range(40):
        wrote(f".claude/projects/-work/{number}.jsonl", LOST if number == 7 else ENDED, 1_000 + number)
    database = home() / ".local/share/opencode/opencode.db"
    database.parent.mkdir(parents=True)
    with closing(sqlite3.connect(database)) as made, made:
        made.execute("CREATE TABLE session (id)")
    before = {each: (each.stat().st_size, each.stat().st_mtime_ns) for each in home().rglob("*")}
    seen = []
    for _ in range(2):
        app = LoopInspector()
        async with app.run_test(size=SIZE) as pilot:
            seen.append(words(await read(app, pilot)))
        monkeypatch.setattr("inspector.report.turn_index.open_each", lambda paths, **_: iter(()))
    assert seen[0] == seen[1]
    assert seen[0].count("COMPLETE") >= 39
    assert {each: (each.stat().st_size, each.stat().st_mtime_ns) for each in home().rglob("*")} == before


async def test_reading_can_be_stopped(monkeypatch) -> None:
    for number in range(30):
        wrote(f".claude/projects/-work/{number}.jsonl", ENDED, 1_000 + number)
    go = threading.Event()

    def slowly(paths, **options):
        for group in open_each(paths, **options):
            go.wait(60)
            yield group

    monkeypatch.setattr("inspector.report.turn_index.open_each", slowly)
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(0.1)
        await pilot.press("c")
        assert "stopped" in app.screen.note
        go.set()
        await app.workers.wait_for_complete()
        await until(pilot, lambda: not app.screen.reading)
        assert "COMPLETE" not in words(app.screen.query_one(TurnList))
        await pilot.press("c")
        assert app.screen.note == "nothing is being read"


async def test_a_file_that_went_away_says_so() -> None:
    path = wrote(".claude/projects/-work/a.jsonl", ENDED, 1_000)
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        await read(app, pilot)
        Path(path).unlink()
        await pilot.press("enter")
        assert "cannot be read" in app.screen.note


async def test_a_hostile_name_and_message_are_inert() -> None:
    wrote(".claude/projects/-\x1b[31mred/a.jsonl", claude(prompt("\x1b]52;c;AAAA\x07 hi [bold]x"), failure()), 1_000)
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        await read(app, pilot)
        assert "\x1b" not in page(app)
        assert "[bold]x" in page(app)


# -- what was named ---------------------------------------------------------------------------------------------------


async def test_a_folder_is_listed_and_written_worst_first_and_what_was_not_read_comes_last_with_its_reason(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    app = LoopInspector([str(folder)])
    async with app.run_test(size=SIZE) as pilot:
        listed = await read(app, pilot)
        assert words(listed) == ["TRUNCATED", "CALL REJECTED", "COMPLETE", "NOT READ"]
        assert [os.path.basename(row.file) for row in listed_rows(listed)] == [
            "b.jsonl", "c.jsonl", "a.jsonl", "notes.txt"]
        assert listed.current_row.file.endswith("b.jsonl")
        shown = page(app)
        assert "3 turns in 3 sessions + 1 not read = 4 rows · 2 need attention + 1 complete" in shown
        assert "no session" in shown
        await pilot.press("x", "backspace", *"out", "enter")
    lines = (folder / "out" / "turns.csv").read_text().splitlines()
    assert lines[0].startswith("verdict,file,reason,turn,tokens")
    assert [line.split(",")[0] for line in lines[1:]] == ["truncated", "call_rejected", "complete", "not_read"]


async def test_a_long_name_of_a_file_leaves_room_for_the_number_of_its_row(tmp_path: Path) -> None:
    for name in ("n" * 240, "\u6587" * 80):
        (tmp_path / f"{name}.jsonl").write_text(claude(prompt("go"), block(text("Hello."), stop="end_turn")))
    app = LoopInspector([str(tmp_path)])
    async with app.run_test(size=SIZE) as pilot:
        await read(app, pilot)
        for row, size in ((1, SIZE), (1, (60, 20)), (2, (60, 20)), (2, (120, 35))):
            await pilot.resize_terminal(*size)
            await pilot.press("down" if row == 2 else "up")
            await pilot.pause()
            assert f"\u2026 \u00b7 row {row} of 2" in page(app), size


async def test_a_file_without_a_byte_is_called_empty(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(claude(prompt("go"), block(text("Hello."), stop="end_turn")))
    (tmp_path / "b.jsonl").touch()
    app = LoopInspector([str(tmp_path)])
    async with app.run_test(size=SIZE) as pilot:
        listed = await read(app, pilot)
        assert [(row.name, row.why) for row in listed_rows(listed)][1] == ("b", "empty")


@pytest.fixture
def resumed_folder(tmp_path: Path) -> Path:
    """A folder with a session and one that was resumed from it."""
    common = (prompt("say hello"), block(text("Hello."), stop="end_turn"), prompt("go on"),
              block(text("On."), "msg_02", stop="end_turn"))
    for name, more in (("a-resumed", (prompt("plan"), failure())), ("b-first", ())):
        (tmp_path / f"{name}.jsonl").write_text(claude(*common, *more))
    return tmp_path


async def test_a_resumed_session_shows_its_own_turns_and_names_the_file_of_those_that_it_copied(
    resumed_folder: Path
) -> None:
    app = LoopInspector([str(resumed_folder)])
    async with app.run_test(size=SIZE) as pilot:
        listed = await read(app, pilot)
        assert [(row.file.rpartition("/")[2], row.number) for row in listed_rows(listed)] == [
            ("a-resumed.jsonl", 3), ("b-first.jsonl", 1), ("b-first.jsonl", 2)]
        shown = page(app)
        assert "3 turns in 2 sessions (2 copies of turns left out)" in shown
        assert "3 of 3 (2 turns of its file are copies, listed with b-first.jsonl)" in shown
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SessionScreen))
        assert "turn 3 of 3" in page(app), "the file is opened whole"
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, TurnsScreen))
        await pilot.press("p")
        await until(pilot, lambda: isinstance(app.screen, PoliciesScreen))
        assert [screen.came_from for screen in app.screen_stack if isinstance(screen, SessionScreen)] == [0]


async def test_a_line_that_names_a_copied_turn_says_which_file_has_it(resumed_folder: Path) -> None:
    app = LoopInspector([str(resumed_folder)])
    async with app.run_test(size=SIZE) as pilot:
        for number, says in [
            (2, "turn 2: it is a copy, listed with b-first.jsonl"), (4, "no row of this session has it")]:
            assert (await read(app, pilot)).current_row.copied == 2, (number, says)
            await pilot.press(":", *f"turn {number}", "enter")
            await pilot.pause()
            assert says in page(app), (number, says)
            await pilot.press("escape")


async def test_a_view_over_all_begins_at_the_row_although_the_original_of_its_session_was_not_read(
    resumed_folder: Path
) -> None:
    app = LoopInspector([str(resumed_folder)])
    async with app.run_test(size=SIZE) as pilot:
        for number, turn in [(1, 1), (2, 2), (3, 0)]:
            listed = await read(app, pilot)
            listed.set_rows(str(resumed_folder / "b-first.jsonl"), [])  # as after reading was stopped
            listed.relist()
            listed.choose(next(at for at, row in enumerate(listed_rows(listed)) if row.number == number))
            await pilot.press("p")
            await until(pilot, lambda: isinstance(app.screen, PoliciesScreen))
            assert [screen.came_from for screen in app.screen_stack if isinstance(screen, SessionScreen)] == [turn]
            await pilot.press("escape")


async def test_sessions_of_one_name_are_told_apart_by_their_files(tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text(claude({"type": "ai-title", "aiTitle": "Make a plan"}) + CUT)
    (tmp_path / "two.jsonl").write_text(claude({"type": "ai-title", "aiTitle": "Make a plan"}) + LOST)
    (tmp_path / "three.jsonl").write_text(claude({"type": "ai-title", "aiTitle": "Say hello"}) + ENDED)
    async with (app := LoopInspector([str(tmp_path)])).run_test(size=SIZE) as pilot:
        listed = await read(app, pilot)
        shown = page(app)
        for said in ("one · Make a plan", "two · Make a plan", "Say hello"):
            assert said in shown
        assert "three · " not in shown
        assert {row.name for row in listed_rows(listed)} == {"Make a plan", "Say hello"}  # filters know the name alone


async def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    for below, content in (("mine", CUT), ("yours", LOST)):
        (tmp_path / below).mkdir()
        (tmp_path / below / "run.jsonl").write_text(content)
    async with (app := LoopInspector([str(tmp_path)])).run_test(size=SIZE) as pilot:
        await read(app, pilot)
        shown = page(app)
        assert "mine/run.jsonl" in shown
        assert "yours/run.jsonl" in shown
        assert "run · run" not in shown, "the name of the file twice tells nothing apart"


@pytest.mark.parametrize(("most", "wanted"), [
    (3, ["9 turns in 2 sessions + 4", "rows · 5 need attention", "1 CUT · 2 HELD · 2 BLOCKED"]),
    (2, ["9 turns in 2 sessions + 4 rows", "5 need attention"]), (1, ["9 turns in 2 sessions + 4 rows"]),
])
def test_how_many_turns_need_attention_is_never_left_out_for_a_count_of_what_was_left_out(
    most: int, wanted: list[str]
) -> None:
    groups = [(Span("9 turns in 2 sessions + 4 rows"),), (Span("5 need attention"),)]
    verdicts = [(Span(text),) for text in ("1 CUT", "2 HELD", "2 BLOCKED")]
    assert [text_of(row) for row in flow_groups(groups, verdicts, 26, most)] == wanted


@pytest.mark.parametrize(("most", "wanted"), [
    (3, ["9 turns in 2 sessions + 4 not read", "+ 1 row of skipped entries", "5 need attention · 1 CUT · 2 HELD"]),
    (2, ["9 turns in 2 sessions + 4 not read + 1 row of skipped entries", "5 need attention · 1 CUT · 2 HELD"]),
])
def test_a_count_that_is_longer_than_a_row_goes_on_in_the_next(most: int, wanted: list[str]) -> None:
    groups = [(Span("9 turns in 2 sessions + 4 not read + 1 row of skipped entries"),), (Span("5 need attention"),)]
    verdicts = [(Span(text),) for text in ("1 CUT", "2 HELD")]
    assert [text_of(row) for row in flow_groups(groups, verdicts, 35, most)] == wanted


@pytest.mark.parametrize("wide", [60, 120])
async def test_the_first_frame_says_where_sessions_are_looked_for(folder: Path, monkeypatch, wide: int) -> None:
    monkeypatch.setattr(turns_reading, "read_files", lambda *_: None)
    one, other = f"{folder}", f"{folder / 'a.jsonl'}"
    for paths, says in ([one], f"…{one[-31:]}"), ([one, other], "2 paths"):
        app = LoopInspector(paths)
        async with app.run_test(size=(wide, 20)):
            assert f"looking for sessions in {says}…\n" in page(app)
            assert "0 turns" not in page(app)
    monkeypatch.chdir(folder.parent)
    app = LoopInspector(["runs"])
    async with app.run_test(size=(wide, 20)):
        assert "looking for sessions in runs…" in page(app)


async def test_a_colon_takes_a_row_a_turn_or_a_file(folder: Path) -> None:
    (folder / "d.jsonl").write_text(claude(prompt("one"), failure(), prompt("two"), block(text("Y"), stop="end_turn")))
    app = LoopInspector([str(folder)])
    async with app.run_test(size=SIZE) as pilot:
        for line, row in [
            ("2", ("b.jsonl", 1)), ("file a", ("a.jsonl", 1)), ("file B.js", ("b.jsonl", 1)),
            ("turn 2", ("d.jsonl", 2)),
        ]:
            listed = await read(app, pilot)
            listed.choose(next(at for at, each in enumerate(listed_rows(listed)) if each.file.endswith("d.jsonl")))
            want = listed_rows(listed)[1] if line == "2" else None
            await pilot.press(":", *line, "enter")
            await pilot.pause()
            here = listed.current_row
            assert want in (None, here), (line, row)
            assert want or (here.file.rpartition("/")[2], here.number) == row, (line, row)


async def test_a_line_that_names_no_row_stays_open_with_the_reason(folder: Path) -> None:
    app = LoopInspector([str(folder)])
    async with app.run_test(size=(160, 30)) as pilot:
        for line, says in [
            ("0", "expected 1 to 4"), ("9" * 5000, "is not a row: expected 1 to 4"), ("file zz", "no file is called"),
            ("turn " + "x" * 5000, "no row of this session"),
            ("file runs", "4 files match"), ("turn 7", "no row of this session has it"),
            ("zz", "expected a row's number, turn 2, file NAME or a command, which tab completes"),
            ("max_tokens=80", "settings are for a session, which enter opens"),
        ]:
            listed = await read(app, pilot)
            await pilot.press(":")
            await pilot.pause()
            app.screen.query_one(Input).value = line
            await pilot.press("enter")
            await pilot.pause()
            assert says in page(app), line[:20]
            await pilot.press("escape")
            assert (app.screen, listed.cursor) == (listed.screen, 0), line[:20]


async def test_the_line_takes_the_name_of_any_command_and_what_is_typed_there_is_no_key(folder: Path) -> None:
    app = LoopInspector([str(folder)])
    async with app.run_test(size=SIZE) as pilot:
        listed = await read(app, pilot)
        await pilot.press(":", *"group", "enter")
        await pilot.pause()
        assert listed.by_file
        assert "one row per session" in app.screen.note
        theme = app.theme
        await pilot.press(":", *"turn 3")
        assert app.theme == theme, "letters behind the colon once changed the theme and ran all files under a grid"
        assert app.screen.query_one(Input).value == "turn 3"
        await pilot.press("escape")
        assert isinstance(app.screen, TurnsScreen)
        await pilot.press(":", *"hel", "enter")
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)


async def test_several_files_are_the_same_table(folder: Path) -> None:
    app = LoopInspector([str(folder / "a.jsonl"), str(folder / "b.jsonl")])
    async with app.run_test(size=SIZE) as pilot:
        assert words(await read(app, pilot)) == ["TRUNCATED", "COMPLETE"]


async def test_a_session_of_several_turns_begins_with_its_table_and_one_of_a_single_turn_does_not(
    folder: Path, tmp_path: Path
) -> None:
    many = tmp_path / "many.jsonl"
    many.write_text(claude(prompt("one"), block(text("Yes."), stop="end_turn"), prompt("two"), failure()))
    app = LoopInspector([str(many)], opened_already=load([str(many)], ReadingOptions()), as_table=True)
    async with app.run_test(size=SIZE) as pilot:
        listed = app.screen.query_one(TurnList)
        assert words(listed) == ["TRUNCATED", "COMPLETE"]
        await pilot.press("enter")
        view = app.screen.run.view
        assert app.screen.step == view.deciding_step(view.turns[1])
        await pilot.press("q")
        assert isinstance(app.screen, TurnsScreen)
    one = str(folder / "a.jsonl")
    app = LoopInspector([one], opened_already=load([one], ReadingOptions()), as_table=True)
    async with app.run_test(size=SIZE):
        assert isinstance(app.screen, SessionScreen)


async def test_every_row_opens_the_file_and_the_step_that_its_verdict_is_about(folder: Path) -> None:
    app = LoopInspector([str(folder)])
    async with app.run_test(size=SIZE) as pilot:
        listed = await read(app, pilot)
        for at, row in enumerate(listed_rows(listed)[:3]):
            listed.cursor = at
            await pilot.press("enter")
            assert app.screen.session.paths == row.paths
            view = app.screen.run.view
            assert app.screen.step == view.deciding_step(view.turns[row.number - 1])
            await pilot.press("q")
            assert listed.current_row == row
        await pilot.click("#turns-heading", offset=(30, 0))
        assert [row.name for row in listed_rows(listed)] == ["a", "b", "c", "notes"]
        await pilot.click("#turns", offset=(5, 2))
        assert listed.current_row.name == "c"
        await pilot.click("#turns", offset=(5, 2), times=2)
        assert isinstance(app.screen, SessionScreen)


async def test_a_folder_without_a_session_ends_the_program_with_the_reasons(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    app = LoopInspector([str(tmp_path)])
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.return_value is not None)
    assert app.return_value == UNREADABLE
    assert any("notes.txt: no session" in error for error in app.errors)


async def test_a_named_file_that_cannot_be_read_is_said_at_the_end_too(folder: Path) -> None:
    gone = str(folder / "gone.jsonl")
    app = LoopInspector([str(folder / "a.jsonl"), gone])
    async with app.run_test(size=SIZE) as pilot:
        assert words(await read(app, pilot)) == ["COMPLETE", "NOT READ"]
        await pilot.press("q")
    assert app.errors
    assert "cannot be read" in app.errors[0]


async def test_an_api_that_does_not_exist_ends_with_its_line_and_no_traceback(folder: Path) -> None:
    app = LoopInspector([str(folder)], reading=ReadingOptions(api="nope"))
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.return_value is not None)
    assert app.return_value == UNREADABLE
    assert "unknown API 'nope'; expected one of openai_chat" in app.errors[0]


# -- keys -------------------------------------------------------------------------------------------------------------


async def test_only_the_end_of_work_in_a_thread_removes_its_note(folder: Path) -> None:
    app = LoopInspector([str(folder)])
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: not app.screen.reading)
        for note in ("sorting…", "filtering…", "reading all files as one session… · esc gives up", "removed"):
            app.screen.note = note
            await pilot.press("down")
            assert app.screen.note == ("" if note == "removed" else note)


async def test_sorting_by_a_column_and_the_same_again_turns_it_round(folder: Path) -> None:
    app = LoopInspector([str(folder)])
    async with app.run_test(size=SIZE) as pilot:
        listed = await read(app, pilot)
        await pilot.press("s", "down", "enter")
        assert [row.name for row in listed_rows(listed)] == ["a", "b", "c", "notes"]
        assert "session▾" in page(app)
        await pilot.press("s")
        assert re.findall(r"(\w+) +enter reverses: by title, or file name", page(app)) == ["session"]
        rows = app.screen.query_one(ChoiceList).entries
        assert sum("enter reverses: " in about for _, about in rows) == 1, "what enter does now, and of no other column"
        await pilot.press("enter")
        assert [row.name for row in listed_rows(listed)] == ["notes", "c", "b", "a"]
        assert "session▴" in page(app)
        await pilot.press("s")
        assert "enter reverses" not in page(app)


async def test_an_amount_is_sorted_with_the_largest_first_as_the_list_of_columns_says(tmp_path: Path) -> None:
    for name, tokens, took in (("a", 7, 300), ("b", 900, 20), ("c", 30, 4_000)):
        pair = pair_of(ASKS, chat(name, tokens=tokens)) | {"duration_ms": took}
        (tmp_path / f"{name}.jsonl").write_bytes(lines(pair, pair))  # two pairs, as a file of one is part of its folder
    async with (app := LoopInspector([str(tmp_path)])).run_test(size=(160, 45)) as pilot:
        for column, order in [("tokens", ["b", "c", "a"]), ("took", ["c", "a", "b"])]:
            listed = await read(app, pilot)
            await pilot.press("s")
            assert re.search(rf" {column} .* first ", page(app)), (column, order)
            await pilot.press("escape")
            app.screen.sort_by(column)
            assert f"{column}▾" in page(app), (column, order)
            assert [*dict.fromkeys(row.name for row in listed_rows(listed))] == order, (column, order)


async def test_a_list_of_one_row_shows_that_of_the_cursor_and_not_its_heading() -> None:
    app = LoopInspector()
    async with app.run_test(size=(20, 8)) as pilot:
        await read(app, pilot)
        await until(pilot, lambda: "▶" in page(app))
        await pilot.press("down", "up")
        assert "▶" in page(app)


async def test_what_was_found_is_sorted_under_its_headings_and_the_first_row_is_shown() -> None:
    path = wrote(".claude/projects/-work/a.jsonl", ENDED, 1_000)
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        listed = await read(app, pilot)
        await pilot.press("s", "enter")
        assert "verdict▾" in page(app)
        heading, own, samples, worst, *_ = listed.entries
        assert (heading, samples) == ("Sessions of your agents, last written first", "Sample sessions")
        assert isinstance(own, TurnRow)
        assert own.file == path
        assert isinstance(worst, TurnRow)
        assert worst.verdict is not None
        assert worst.verdict.word == "CUT CALL RUN"
        assert listed.current_row is own
        await pilot.press("s", "enter")  # reversed; no row was chosen
        assert isinstance(listed.entries[1], TurnRow)
        assert listed.current_row is listed.entries[1]
        await pilot.press("down", "s", "down", "enter")
        chosen = listed.current_row
        assert chosen is not None
        assert chosen is not listed.entries[1], "a chosen row keeps the cursor"


async def test_the_list_of_columns_says_of_each_how_it_sorts(folder: Path) -> None:
    app = LoopInspector([str(folder)])
    async with app.run_test(size=SIZE) as pilot:
        await read(app, pilot)
        for keys in (("s",), ("escape", "v", "s")):
            await pilot.press(*keys)
            rows = [row.strip(" ▶") for row in page(app).split("│") if row.strip(" ▶").startswith(
                ("verdict ", "session ", "raw → reason ", "turn", "tokens", "calls", "model", "age", "agent", "took",
                 "what to change", "message"))]
            assert len(rows) == 12
            assert all(len(re.split(r"\s{2,}", row.strip())) == 2 for row in rows), rows
            assert "by title, or file name without one; turns in order" in page(app), "where a session's name is from"


async def test_a_second_click_opens_although_it_comes_late(folder: Path) -> None:
    app = LoopInspector([str(folder)])
    async with app.run_test(size=SIZE) as pilot:
        await read(app, pilot)
        for _ in range(2):  # the pilot's own clicks do not pass through the app, which counts them
            for kind in (MouseDown, MouseUp):
                app.post_message(kind(None, 5, 4, 0, 0, 1, False, False, False, 5, 4))
            await pilot.pause(0.7)
        assert isinstance(app.screen, SessionScreen)


async def test_a_filter_narrows_while_it_is_typed_and_escape_takes_it_back(folder: Path) -> None:
    app = LoopInspector([str(folder)])
    async with app.run_test(size=SIZE) as pilot:
        listed = await read(app, pilot)
        await pilot.press("f", *"attention", "enter")
        assert words(listed) == ["TRUNCATED", "CALL REJECTED"]
        assert "filter attention: 2 of 3 turns" in page(app)
        await pilot.press("f", *" stop:paused", "enter")
        assert words(listed) == []
        assert "no turn passes the filter" in page(app)
        await pilot.press("enter")
        assert "no turn passes the filter" in app.screen.note
        await pilot.press("f", *["backspace"] * 40, *"complete", "escape")
        assert words(listed) == []


async def test_what_a_filter_cannot_find_as_a_term_is_searched_or_told(folder: Path) -> None:
    app = LoopInspector([str(folder)])
    async with app.run_test(size=SIZE) as pilot:
        listed = await read(app, pilot)
        await pilot.press("f", *"hello")
        await until(pilot, lambda: '1 of 3 turns · "hello" as text' in page(app))
        await pilot.press("enter")
        assert [row.name for row in listed_rows(listed)] == ["a"]
        await pilot.press("f", *["backspace"] * 5, *"heldd")
        await until(pilot, lambda: '0 of 3 turns · "heldd" as text (did you mean held?)' in page(app))
        await pilot.press("ctrl+u", *"~b report", "enter")
        assert "~b searches contents that the table does not hold" in page(app)
        await pilot.press("f", "ctrl+u", *"model:claude-", "enter")
        said = '0 of 3 turns · no model is "claude-": model:claude-* finds "claude-'
        assert said in page(app), "it stays when the line is closed, since nothing else says why nothing is listed"
        await pilot.press("f")
        await until(pilot, lambda: said in page(app))
        await pilot.press("end", "*")
        await until(pilot, lambda: "2 of 3 turns" in page(app))  # a failed turn has a model of the recorder
        assert "no model" not in page(app)


async def test_a_mistake_in_a_filter_is_read_to_its_end_in_a_narrow_terminal(folder: Path) -> None:
    app = LoopInspector([str(folder)])
    async with app.run_test(size=(60, 20)) as pilot:
        await read(app, pilot)
        await pilot.press("f", *"model")
        said = 'column 1: model needs a value, such as model:…; in "quotes" it is searched as text'
        await until(pilot, lambda: said in " ".join(page(app).split()))


async def test_closed_sessions_are_freed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "freeze", FREEZE)
    async with (app := LoopInspector([str(folder)])).run_test(size=SIZE) as pilot:
        await read(app, pilot)
        opened: weakref.WeakSet[SessionScreen] = weakref.WeakSet()
        long = MANY_RESPONSES + 1
        for app._unsearched in (0, 0, long, long):  # at last as if long sessions had been opened and closed
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, SessionScreen))
            opened.add(app.screen)
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, TurnsScreen))
            await pilot.pause(2 * PERIOD)  # asyncio keeps a timer that was stopped, and its screen, until its time
            FREEZE()  # as the reading of the next file does
        assert len(opened) < 4


async def test_escape_removes_the_filter_of_the_table_and_f_offers_it_again(folder: Path) -> None:
    app = LoopInspector([str(folder)])
    async with app.run_test(size=SIZE) as pilot:
        listed = await read(app, pilot)
        await pilot.press("f", *"attention", "enter")
        assert "filter attention: 2 of 3 turns · 2 need attention + 0 complete" in page(app)
        await pilot.press("escape")
        assert len(words(listed)) == 4
        assert app.screen.note == "all turns · f offers the filter again"
        await pilot.press("escape")
        assert "nothing is open" in app.screen.note
        await pilot.press("f", "enter")
        assert words(listed) == ["TRUNCATED", "CALL REJECTED"]


async def test_the_file_of_a_row_stands_in_the_line_above_its_details(folder: Path) -> None:
    app = LoopInspector([str(folder)])
    async with app.run_test(size=(80, 24)) as pilot:
        listed = await read(app, pilot)
        for key in ("down", "down", "up"):
            await pilot.press(key)
            name = Path(listed.current_row.file).name
            assert f"{name} · row {listed.position}" in page(app)


@pytest.mark.parametrize(("written", "said"), [
    (pi(pi_user("tell"), pi_reply(text("On"), stop="length")), "max_tokens  what the recorder's word length means"),
    (claude(prompt("write"), block(use(), tokens=32_000)), "max_tokens  no word says it: inferred, see the evidence"),
    (claude(prompt("write"), block(text("On"), stop="max_tokens")), "max_tokens  what the format's table says"),
    (claude(prompt("say"), block(text("Hello."))), "unknown  no word says it"),
])
async def test_a_reason_without_a_word_is_not_said_to_be_in_a_table(tmp_path: Path, written: str, said: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(written)
    app = LoopInspector([str(path)])
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SessionScreen))
        await pilot.press("2")
        assert f"mapped         {said}" in view_text(app)


async def test_a_held_call_that_the_agent_ran_is_no_contradiction(tmp_path: Path) -> None:
    cut = [prompt("write"), block(use("toolu_1", file_path="a.md"), stop="max_tokens"),
           block(use("toolu_2", file_path="b.md"), stop="max_tokens")]
    (tmp_path / "a.jsonl").write_text(claude(*cut, result("ok", "toolu_1"), result("ok", "toolu_2")))
    (tmp_path / "b.jsonl").write_text(claude(*cut, result("ok", "toolu_1"), result(MISSING, "toolu_2", error=True)))
    app = LoopInspector([str(tmp_path)])
    async with app.run_test(size=SIZE) as pilot:
        await read(app, pilot)
        assert "2 held, but ran" in page(app)
        assert "2 held, 1 ran" in page(app)


async def test_the_line_of_a_file_ends_in_no_lone_word(folder: Path) -> None:
    app = LoopInspector([str(folder)])
    async with app.run_test(size=(100, 30)) as pilot:
        await read(app, pilot)
        rows = [line.rstrip(" │") for line in page(app).split("\n")]
        assert any(str(folder) in row for row in rows)
        assert not any(row.endswith(" in") for row in rows), "a lone word at the end of a row"


async def test_search_goes_through_messages_and_answers_and_says_where_there_is_nothing(folder: Path) -> None:
    app = LoopInspector([str(folder)])
    async with app.run_test(size=SIZE) as pilot:
        listed = await read(app, pilot)
        await pilot.press("n")
        assert "nothing was searched yet" in app.screen.note
        await pilot.press("/", *"HELLO", "enter")
        assert listed.current_row.name == "a"
        assert "'HELLO' is in this turn" in app.screen.note, "also where the cursor had not to move"
        await pilot.press("n")
        assert app.screen.note == "'HELLO' is in this turn · no other row has it", "a key that cannot move says why"
        assert f"turn     1 of 1 · {Path(listed.current_row.file).name} ·" in page(app), "before its folder"
        await pilot.press("/", *["backspace"] * 5, *"write", "enter")
        first = listed.current_row.name
        await pilot.press("n")
        assert {first, listed.current_row.name} == {"b", "c"}
        await pilot.press("/", *["backspace"] * 5, *"absent from all", "enter")
        assert "is in no turn that is listed" in app.screen.note


async def test_by_file_each_session_is_a_row_of_its_worst_turn(tmp_path: Path) -> None:
    many = tmp_path / "many.jsonl"
    many.write_text(claude(prompt("one"), block(text("Yes."), stop="end_turn"), prompt("two"), failure()))
    other = tmp_path / "other.jsonl"
    other.write_text(ENDED)
    app = LoopInspector([str(tmp_path / "many.jsonl"), str(other)])
    async with app.run_test(size=SIZE) as pilot:
        listed = await read(app, pilot)
        assert words(listed) == ["TRUNCATED", "COMPLETE", "COMPLETE"]
        await pilot.press("v")
        assert words(listed) == ["TRUNCATED", "COMPLETE"]
        assert "turns    1 TRUNCATED · 1 COMPLETE" in page(app)
        await pilot.press("down", "/", *"one", "enter")  # of the turn that is not the worst
        assert listed.current_row.name == "many"
        assert app.screen.note == "'one' is in turn 1, which enter opens · n the next, N the previous one"
        await pilot.press("enter")
        while not isinstance(app.screen, SessionScreen):
            await pilot.pause(0.02)
        assert app.screen.run.view.replay.turn_at(app.screen.step) == 0
        await pilot.press("escape", "v")
        assert len(words(listed)) == 3


async def test_by_file_turns_are_counted_and_sorted_by_their_count(tmp_path: Path) -> None:
    """The number of a turn and the number of turns are two columns with two names, which sort by what they show."""
    (tmp_path / "a.jsonl").write_text(LOST.replace("2026-02-06", "2026-02-07"))  # at another time, so no copy
    (tmp_path / "b.jsonl").write_text(claude(prompt("one"), failure(), prompt("two"),
                                             block(text("Y"), stop="end_turn")))
    async with (app := LoopInspector([str(tmp_path)])).run_test(size=SIZE) as pilot:
        listed = await read(app, pilot)
        app.screen.sort_by("turn")
        assert "turn▾" in page(app)
        await pilot.press("v")
        assert "turns▾" in page(app), "the place of the sorted column is kept"
        assert [row.name for row in listed_rows(listed)] == ["b", "a"]
        rows = [row for row in page(app).split("\n") if "TRUNCATED" in row and "→" in row]
        assert [row.split()[row.split().index("max_tokens") + 1] for row in rows] == ["2", "1"]
        await pilot.press("s")
        assert "the longest session first" in page(app)
        await pilot.press("escape", "v")
        assert "turn▾" in page(app)


async def test_a_subagent_is_listed_below_its_session_and_opens_at_its_turn() -> None:
    path = wrote(".claude/projects/-w/k1.jsonl", ENDED.replace("s-1", "k1"), 1_000)
    cut = CUT.replace("s-1", "k1").replace('"isSidechain": false', '"isSidechain": true, "agentId": "a1"')
    wrote(".claude/projects/-w/k1/subagents/agent-a1.jsonl", cut, 900)
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        listed = await read(app, pilot)
        session, subagent = listed_rows(listed)[:2]
        assert (session.paths, subagent.paths, subagent.name) == ((path,), (path,), "k1 › subagent a1")
        assert "  k1 " in page(app)
        assert "  └ subagent a1 " in page(app)
        await pilot.press("down", "enter")
        while not isinstance(app.screen, SessionScreen):
            await pilot.pause(0.02)
        assert app.screen.run.view.replay.turn_at(app.screen.step) + 1 == subagent.number


async def test_attention_goes_round_the_rows_that_need_it(folder: Path) -> None:
    app = LoopInspector([str(folder)])
    async with app.run_test(size=SIZE) as pilot:
        listed = await read(app, pilot)
        await pilot.press("!")
        assert listed.current_row.name == "c"
        assert app.screen.note == "2 of 2 turns that need attention"
        await pilot.press("!")
        assert listed.current_row.name == "b"
        assert app.screen.note == "1 of 2 turns that need attention"
        await pilot.press("f", *"complete", "enter", "!")
        assert "no turn that is listed needs attention" in app.screen.note


async def test_attention_is_worst_first_in_every_order_as_in_a_session(folder: Path) -> None:
    app = LoopInspector([str(folder)])
    async with app.run_test(size=SIZE) as pilot:
        listed = await read(app, pilot)
        worst = [row.name for row in listed_rows(listed)][:2]
        app.screen.sort_by("session")
        app.screen.sort_by("session")
        listed.cursor = next(at for at, row in enumerate(listed_rows(listed)) if row.name == "a")
        for name in (*worst, worst[0]):
            await pilot.press("!")
            assert listed.current_row.name == name


async def test_no_row_is_wider_than_the_screen_and_the_verdict_and_reason_are_always_seen(folder: Path) -> None:
    app = LoopInspector([str(folder)])
    async with app.run_test(size=(60, 20)) as pilot:
        for width in [60, 80, 120, 160]:
            await pilot.resize_terminal(width, 20)
            await read(app, pilot)
            shown = page(app)
            assert all(len(line) <= width for line in shown.splitlines()), width
            assert "✂ TRUNCATED" in shown, width
            assert "raw → reason" in shown, width
            assert "q quit" in shown, width


async def test_a_turn_that_was_opened_before_all_files_were_read_may_not_be_the_worst(folder: Path) -> None:
    app = LoopInspector([str(folder)])
    async with app.run_test(size=(100, 30)) as pilot:
        await read(app, pilot)
        table = app.screen
        for reading, note in ((True, turns_screen.OPENED_EARLY), (False, "")):
            table.reading = reading
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, SessionScreen))
            table.reading = False
            await pilot.press("q")
            await until(pilot, lambda: app.screen is table)
            assert table.note == note


async def test_rows_keep_their_places_while_files_are_read(folder: Path) -> None:
    listed = TurnList([Section("", (str(folder),))], by_file=False, id=None)
    for name in ("a", "b"):
        path = str(folder / f"{name}.jsonl")
        opened = load([path], ReadingOptions())
        listed.set_rows(path, rows_of_session(opened))
        listed.relist()
        assert listed_rows(listed)[0].name == "a"
    assert [row.name for row in listed_rows(listed)] == ["a", "b"]


async def test_rows_keep_their_places_also_under_a_column_until_all_files_are_read(folder: Path) -> None:
    listed = TurnList([Section("", (str(folder),))], by_file=False, id=None)
    listed.sort = "verdict"
    for name in ("a", "b", "c"):  # the first is complete, and sorts last
        path = str(folder / f"{name}.jsonl")
        listed.set_rows(path, rows_of_session(load([path], ReadingOptions())))
        listed.show_listing(listed.list_rows(listed.rows, listed.filter, growing=True))
    assert [row.name for row in listed_rows(listed)] == ["a", "b", "c"]
    listed.relist()
    assert [row.name for row in listed_rows(listed)] == ["b", "c", "a"]


async def test_a_filter_finds_the_rows_of_files_that_were_not_read_and_counts_them_apart(folder: Path) -> None:
    listed = TurnList([Section("", (str(folder),))], by_file=False, id=None)
    listed.set_rows("a", rows_of_session(load([str(folder / "a.jsonl")], ReadingOptions())))
    listed.set_rows("z", [turn_rows.unread_row(("z",), "z.har", "broken at byte 7")])
    for typed, said, names in (("verdict:not_read", "0 of 1 turn + 1 not read", ["z"]),
                               ("complete", "1 of 1 turn", ["a"]), ("!held", "1 of 1 turn + 1 not read", ["a", "z"])):
        listed.show_listing(listed.list_rows(listed.rows, listed.parse_filter(typed)))
        assert listed.listing.note == said
        assert [row.name for row in listed_rows(listed)] == names


async def test_many_rows_are_filtered_in_a_thread_and_a_note_stands_meanwhile(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, now = threading.Event(), TurnList.list_rows

    def slowly(listed, rows, wanted, growing=False):
        go.wait(60 if wanted is not None else 0)
        return now(listed, rows, wanted, growing)

    monkeypatch.setattr(TurnList, "list_rows", slowly)
    monkeypatch.setattr(turns_reading, "MANY_ROWS", 0)
    app = LoopInspector([str(folder)])
    async with app.run_test(size=(100, 24)) as pilot:
        table = app.screen
        await until(pilot, lambda: not table.reading and len(table.turn_list.entries) == 4)

        def says() -> str:
            return text_of(app.screen.query_one("#prompt-note", WrappedLines).lines[0])

        await pilot.press("f", *"complete")
        await until(pilot, lambda: says() == "filtering…")
        await pilot.press("x", "backspace")
        assert app.screen.query_one(Input).value == "complete", "keys work meanwhile"
        assert len(table.turn_list.entries) == 4
        table.turn_list.sort = "session"  # the order changes while the thread is at work
        go.set()
        await until(pilot, lambda: says() == "1 of 3 turns")
        assert (len(table.turn_list.entries), table.turn_list.listing.of[1]) == (1, "session")
        go.clear()
        await pilot.press("backspace", "enter")  # `complet` is searched as text
        await until(pilot, lambda: table.note == "filtering…")
        go.set()
        await until(pilot, lambda: table.note.startswith("1 of 3 turns · "))
        made, shown_notes = turn_table.Table.csv, []

        def slow_csv(self, rows):
            shown_notes.append(table.note)
            return made(self, rows)

        monkeypatch.setattr(turn_table.Table, "csv", slow_csv)
        await pilot.press("x")
        assert (type(app.screen), shown_notes) == (Prompt, []), "it asks for the folder before the table is made"
        app.screen.query_one(Input).value = str(folder / "out")
        await pilot.press("enter")
        await until(pilot, lambda: table.note.startswith("written"))
        assert shown_notes == ["making turns.csv…"]
        assert len((folder / "out" / "turns.csv").read_text().splitlines()) == 2, "a header and the row of the filter"


def test_rows_that_come_while_a_thread_looks_for_others_are_left_to_the_screen(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = TurnList([Section("", (str(folder),))], by_file=False, id=None)
    listed.set_rows("a", rows_of_session(load([str(folder / "a.jsonl")], ReadingOptions())))
    before, wanted, once, gathers = listed.rows, listed.parse_filter("complete"), turn_table.rows_once, []

    monkeypatch.setattr(turn_rows, "matches", lambda matches, row: listed.set_rows(
        "z", [turn_rows.unread_row(("z",), "z.har", "broken at byte 7")]) is None)
    monkeypatch.setattr(turn_table, "rows_once", lambda rows: gathers.append("in the thread") or once(rows))
    listing = listed.list_rows(before, wanted)
    # Another thread that goes through the files while one is added fails, or stores the rows without the new ones.
    assert gathers == []
    assert (len(listing.matching_rows), listing.note) == (1, "1 of 1 turn")
    assert len(listed.rows) == 2


async def test_a_filter_is_in_force_while_files_are_read_and_an_invalid_one_ends_the_search(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, now = threading.Event(), TurnList.list_rows

    def slowly(listed, rows, wanted, growing=False):
        go.wait(60 if wanted is not None else 0)
        if app.screen_stack[-2].reading:  # a file is read each time
            listed.set_rows("z", [turn_rows.unread_row(("z",), "z.har", "broken at byte 7")])
        return now(listed, rows, wanted, growing)

    app = LoopInspector([str(folder)])
    async with app.run_test(size=(100, 24)) as pilot:
        table = app.screen
        await until(pilot, lambda: not table.reading and len(table.turn_list.entries) == 4)
        monkeypatch.setattr(TurnList, "list_rows", slowly)
        monkeypatch.setattr(turns_reading, "MANY_ROWS", 0)

        def says() -> str:
            return text_of(app.screen.query_one("#prompt-note", WrappedLines).lines[0])

        await pilot.press("f", *"complete")
        await until(pilot, lambda: says() == "filtering…")
        table.reading = True
        go.set()
        await until(pilot, lambda: says() == "1 of 3 turns")
        go.clear()
        await pilot.press("backspace")
        await until(pilot, lambda: says() == "filtering…")
        go.set()
        table.action_stop()
        await until(pilot, lambda: says().startswith("1 of 3 turns · "))
        go.clear()
        await pilot.press("backspace")
        await until(pilot, lambda: says() == "filtering…")
        await pilot.press("(")
        await until(pilot, lambda: says().startswith("column "))
        go.set()
        await pilot.pause(0.2)
        assert says().startswith("column ")


async def test_a_row_that_is_read_takes_the_place_of_its_file(folder: Path) -> None:
    paths = [str(folder / f"{name}.jsonl") for name in ("c", "a", "b")]
    for by_file in (True, False):
        listed = TurnList([Section("", tuple(paths))], by_file=by_file, id=None)
        for path in paths:
            listed.set_rows(path, [TurnRow((path,), path, why=turns_screen.PENDING)])
        listed.relist()
        for path in reversed(paths):
            listed.set_rows(path, rows_of_session(load([path], ReadingOptions())))
            listed.show_listing(listed.list_rows(listed.rows, listed.filter, growing=True))
            assert [row.file for row in listed_rows(listed)] == paths


@pytest.mark.parametrize("keys", [["j"], ["j", "k"], ["k"], ["enter", "q"]])
async def test_the_cursor_stays_on_the_chosen_row_when_the_rows_are_sorted_at_last(
    folder: Path, monkeypatch: pytest.MonkeyPatch, keys: list[str]
) -> None:
    for number in range(30):
        (folder / f"a{number:02}.jsonl").write_text(ENDED + "\n" * (number + 1))  # files of the same bytes are one
    go = threading.Event()

    def slowly(paths, **options):
        for number, group in enumerate(open_each(paths, **options)):
            go.wait(60 if number > 9 else 0)
            yield group

    monkeypatch.setattr("inspector.report.turn_index.open_each", slowly)
    monkeypatch.setattr(turns_reading, "BATCH", 0.0)
    app = LoopInspector([str(folder)])
    async with app.run_test(size=(80, 24)) as pilot:
        listed = app.screen.query_one(TurnList)
        await until(pilot, lambda: len(listed.entries) > 3)
        await pilot.press(*keys)
        chosen = listed.current_row.file
        go.set()
        await read(app, pilot)
        assert words(listed)[0] == "TRUNCATED"
        assert listed.current_row.file == chosen
        assert "▶ ✓ COMPLETE" in page(app)


async def test_many_rows_are_listed_in_a_thread_while_files_are_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_on, go, last, now = threading.Event(), threading.Event(), threading.Event(), TurnList.list_rows
    listing = list[bool]()

    def one_by_one(paths, **options):
        for number, group in enumerate(open_each(paths, **options)):
            read_on.wait(60 if number > 1 else 0)
            yield group

    def slowly(listed, rows, wanted, growing=False):
        made = now(listed, rows, wanted, growing)
        listing.append(growing)
        (go if growing else last).wait(60)
        return made

    monkeypatch.setattr("inspector.report.turn_index.open_each", one_by_one)
    monkeypatch.setattr(TurnList, "list_rows", slowly)
    monkeypatch.setattr(turns_reading, "MANY_ROWS", 0)
    monkeypatch.setattr(turns_reading, "BATCH", 0.0)
    app = LoopInspector([str(folder)])
    async with app.run_test(size=(100, 24)) as pilot:
        table = app.screen
        await until(pilot, lambda: any(listing))
        await pilot.press("s", "escape")
        assert (table.turn_list.entries, table.counts.own.turns) == ([], 0), "keys work before the first listing"
        table.turn_list.sort = "session"  # the order changes while the thread is at work
        go.set()
        await until(pilot, lambda: table.turn_list.entries)
        assert (table.reading, table.turn_list.listing.of[1], listing.count(True)) == (True, "session", 2)
        await until(pilot, lambda: table.counts.own.turns)
        read_on.set()
        await until(pilot, lambda: False in listing)
        await pilot.press("s", "escape")
        assert table.turn_list.listing.of[0] is not table.turn_list.rows, "keys work before the last listing is made"
        table.turn_list.sort = "turn"
        last.set()
        await until(pilot, lambda: table.turn_list.listing.of[0] is table.turn_list.rows)
        assert (len(table.turn_list.entries), table.turn_list.listing.of[1], listing.count(False)) == (4, "turn", 2)
        assert table.counts.own.turns == 3
        await pilot.press("/", *"HELLO", "enter")
        await until(pilot, lambda: table.note.startswith("'HELLO' is in this turn"))
        assert table.turn_list.current_row.name == "a"
        last.clear()
        table.sort_by("verdict")
        table.sort_by("verdict")
        assert table.note == "sorting…"
        await pilot.resize_terminal(101, 24)  # which draws everything again
        await pilot.press("!")
        assert "turn▾" in page(app), "the heading is that of the rows below it"
        noted = table.turn_list.current_row
        last.set()
        await until(pilot, lambda: table.turn_list.listing.of[1:3] == ("verdict", True))
        await until(pilot, lambda: "verdict▴" in page(app))
        assert table.turn_list.current_row is noted, "what moved the cursor while rows were sorted is not undone"
        monkeypatch.setattr(TurnList, "list_rows", now)
        finder = TurnList.finder
        monkeypatch.setattr(TurnList, "finder", lambda *given: partial(lambda find: last.wait(60) and find(),
                                                                       finder(*given)))
        last.clear()
        table.note = ""
        await pilot.press("n")
        table.turn_list.relist()
        last.set()
        await until(pilot, lambda: table.note.startswith("'HELLO' is in this turn"))


async def test_a_file_is_reported_and_a_search_goes_on_though_rows_are_sorted_when_all_are_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, now = threading.Event(), TurnList.list_rows

    def slowly(listed, rows, wanted, growing=False):
        made = now(listed, rows, wanted, growing)
        go.wait(0 if growing else 60)
        return made

    monkeypatch.setattr(TurnList, "list_rows", slowly)
    monkeypatch.setattr(turns_reading, "MANY_ROWS", 0)
    app = LoopInspector([str(path) for path in sorted(folder.iterdir())])
    async with app.run_test(size=(100, 24)) as pilot:
        table = app.screen
        table._needle = "hello"
        await until(pilot, lambda: not table.reading)
        table.sort_by("session")
        go.set()
        await until(pilot, lambda: table.note.startswith("'hello' is in this turn") and app.errors)


async def test_rows_are_measured_beside_the_app_and_wait_for_one_clock(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        (folder / f"a{number:02}.jsonl").write_text(ENDED)
    app, measured, clocks = LoopInspector([str(folder)]), [], []
    widest, timer = TurnList.widest_of, TurnsScreen.set_timer

    def measure(listed: TurnList, rows: list[TurnRow]) -> dict[str, int]:
        measured.append(threading.current_thread() is threading.main_thread())
        return widest(listed, rows)

    monkeypatch.setattr(TurnList, "widest_of", measure)
    monkeypatch.setattr(TurnsScreen, "set_timer", lambda *given: clocks.append(given) or timer(*given))
    monkeypatch.setattr(turns_reading, "BATCH", 0.0)
    async with app.run_test(size=(80, 24)) as pilot:
        await read(app, pilot)
        assert len(measured) > 30
        assert not any(measured), "measuring 100,000 rows takes a third of a second, in which no key is answered"
        assert not clocks


async def test_rows_that_came_are_listed_while_the_next_file_takes_long(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listing waits ten times as long as the listing before took; a slow file after that must not hold rows back."""
    go, slow = threading.Event(), threading.Event()

    def slowly(paths, **options):
        for number, group in enumerate(open_each(paths, **options)):
            if number == 3:
                slow.set()
                go.wait(60)
            yield group

    relist = TurnList.relist

    def long(listed: TurnList, *, growing: bool = False) -> None:
        time.sleep(0.05)
        relist(listed, growing=growing)

    monkeypatch.setattr("inspector.report.turn_index.open_each", slowly)
    monkeypatch.setattr(turns_reading, "BATCH", 0.0)
    monkeypatch.setattr(TurnList, "relist", long)
    for number in range(3):
        (folder / f"a{number:02}.jsonl").write_text(ENDED)
    app = LoopInspector([str(folder)])
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, slow.is_set)
        try:
            await until(pilot, lambda: len(app.screen.query_one(TurnList).entries) == 3)
        finally:
            go.set()
        await read(app, pilot)


async def test_the_numbers_above_the_table_add_up_to_its_rows(folder: Path) -> None:
    two = claude(prompt("one"), block(text("Yes."), stop="end_turn"), prompt("two"), failure())
    (folder / "d.jsonl").write_text(two)
    app = LoopInspector([str(folder)])
    async with app.run_test(size=(80, 24)) as pilot:
        for by_file in [False, True]:
            listed = await read(app, pilot)
            if by_file:
                await pilot.press("v")
            said = "4 sessions with 5 turns + 1 not read = 5 rows" if by_file else (
                "5 turns in 4 sessions + 1 not read = 6 rows")
            assert said in page(app), by_file
            assert "3 need attention + 2 complete" in page(app), by_file
            assert f"row 1 of {len(listed_rows(listed))}" in page(app), by_file
            assert said.endswith(f"= {len(listed_rows(listed))} rows"), by_file


async def test_the_counts_above_the_table_are_whole_or_say_how_many_are_left_out() -> None:
    app = LoopInspector(["sample_sessions"])
    async with app.run_test(size=(60, 20)) as pilot:
        for size, rows in [((60, 20), 2), ((80, 24), 3), ((160, 45), 2)]:
            await pilot.resize_terminal(*size)
            await read(app, pilot)
            shown = page(app).splitlines()[:rows]
            assert "verdict▾" in page(app).splitlines()[rows], (size, rows)
            assert not any(line.rstrip().endswith("…") for line in shown), (size, rows)
            verdicts = [row.verdict for row in app.screen.turn_list.rows if row.verdict]
            kinds = len({verdict.word for verdict in verdicts if not verdict.complete})
            told_kinds = sum(shown_row.count(mark) for shown_row in shown for mark in "✖▣✂▤⊘≈")
            left = re.findall(r"(\d+) more verdicts?\b", " ".join(shown))
            assert told_kinds + sum(map(int, left)) == kinds, (size, rows)
            assert bool(left) is (size != (160, 45)), "what is left out is named"


async def test_simulated_turns_are_named_beside_the_recorded_ones(tmp_path: Path) -> None:
    text = Path("sample_sessions/16-completed-at-the-cap.session.jsonl").read_text("utf-8")
    made = re.sub(r'("type": ?"response")', r'\1, "simulated": true', text)
    (tmp_path / "made.session.jsonl").write_text(made)
    (tmp_path / "recorded.session.jsonl").write_text(text)
    app = LoopInspector([str(tmp_path)])
    async with app.run_test(size=(80, 24)) as pilot:
        await read(app, pilot)
        shown = page(app)
        assert "1 turn + 1 SIMULATED (~) in 2 sessions" in shown
        rows = [row[3:16] for row in shown.splitlines() if "✂ TRUNCATED" in row and "completed →" in row]
        assert rows == ["✂ TRUNCATED~ ", "✂ TRUNCATED  "], "the sign is on one of two rows"
        assert "1 needs attention + 0 complete" in shown
        assert "1 ✂ TRUNCATED · 1 ✂ SIMULATED TRUNCATED" in shown
        await pilot.press("v")
        assert "2 sessions with 1 turn + 1 SIMULATED (~)" in page(app)
        made_row = next(at for at, row in enumerate(app.screen.turn_list.entries) if row.verdict.simulated)
        app.screen.turn_list.choose(made_row)
        await pilot.pause()
        assert "✂ TRUNCATED~  SIMULATED: " in page(app), "the row that explains the sign"
        await pilot.press("enter")
        assert "✂ TRUNCATED  turn 1 of 1 · SIMULATED: " in page(app).splitlines()[0]


async def test_rows_of_skipped_entries_are_not_counted_as_entries(tmp_path: Path) -> None:
    """Such a row stands for one or more entries, which it counts itself."""
    odd = exchange({"prompt": 1}, {"odd": 1}, url="https://models.example/v1/odd")
    (tmp_path / "some.jsonl").write_bytes(lines(pair_of(ASKS, chat("Done.")), odd, odd))
    app = LoopInspector([str(tmp_path)])
    async with app.run_test(size=(160, 45)) as pilot:
        await read(app, pilot)
        assert "1 turn in 1 session + 1 row of skipped entries = 2 rows" in page(app)
        assert "2 entries skipped" in page(app)
        await pilot.press("v")
        assert "1 session with 1 turn and 1 row of skipped entries ·" in page(app), "they have no row of their own"
        (tmp_path / "odd.jsonl").write_bytes(b"{}")
    app = LoopInspector([str(tmp_path)])
    async with app.run_test(size=(160, 45)) as pilot:
        await read(app, pilot)
        await pilot.press("v")
        assert "1 session with 1 turn and 1 row of skipped entries + 1 not read = 2 rows" in page(app)


async def test_details_that_have_no_room_say_where_they_are_shown_whole() -> None:
    app = LoopInspector(["sample_sessions"])
    async with app.run_test(size=(60, 20)) as pilot:
        await read(app, pilot)
        assert " · V shows all" in page(app)
        await pilot.press("V")
        assert "only a live run can show" in " ".join(view_text(app).split())


async def test_a_long_text_that_was_pasted_into_the_search_leaves_room_for_the_answer() -> None:
    app = LoopInspector(["sample_sessions"])
    async with app.run_test(size=(80, 24)) as pilot:
        await read(app, pilot)
        for before, said in (((), "is in no turn that is listed"), (("enter",), "is not in this view"),
                             (("enter", "tab"), "is in no step"), (("P",), "is not in this table")):
            await pilot.press(*before)
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert isinstance(app.screen, TurnsScreen) is (before == ())
            await pilot.press("slash")
            app.screen.query_one(Input).value = "lorem " * 500
            await pilot.press("enter")
            await pilot.pause()
            assert f"lorem lor…' {said}" in " ".join(page(app).split()), before
            while not isinstance(app.screen, TurnsScreen):
                await pilot.press("escape")
