"""A session whose file grows: a new row is on the screen soon, the verdict changes, the cursor stays."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from math import inf
from pathlib import Path
from time import monotonic, sleep, time

import pytest

from inspector.report import table_rows
from inspector.report.table_rows import GrownFiles
from inspector.report.turn_rows import TurnRow
from inspector.sessions import intake
from inspector.sessions.following import FollowedFile
from inspector.sessions.native import SessionWriter
from inspector.tui import breakpoints, growth, remarks, session_screen, table_growth, turns_reading
from inspector.tui.app import LoopInspector
from inspector.tui.growth import rest_seconds
from inspector.tui.session_files import ReadingOptions, load, load_followed, remember
from inspector.tui.turn_list import AGENTS, RECENT, TurnList
from inspector.tui.turns_screen import TurnsScreen
from inspector.whatif import branch_report
from inspector.whatif.store import Store
from tests.scenes.app import page, until
from tests.scenes.recordings import ASKS, chat, lines, pair_of, user
from tests.scenes.transcripts import block, claude, prompt, text

ROOT = Path(__file__).parents[2]
WHOLE = pair_of(ASKS, chat("All of it."), max_tokens=50)
LOST = pair_of([user("Two?")], chat("Half of it", "length"), max_tokens=7)


@pytest.fixture(autouse=True)
def searches_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_growth, "SEARCH", 0.1)
    monkeypatch.setattr(table_growth, "SEARCH_REST", 1.0)
    monkeypatch.setattr(table_growth, "AGES", 0.1)


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "s.jsonl"
    found.write_bytes(lines(WHOLE))
    return found


def app_on(path):
    reading = ReadingOptions(follow=True)
    return LoopInspector([str(path)], opened_already=load([str(path)], reading), reading=reading)


def add(path, *exchanges):
    with path.open("ab") as file:
        file.write(lines(*exchanges))


async def test_what_is_added_is_shown_and_a_cursor_at_the_end_stays_there(path) -> None:
    async with app_on(path).run_test(size=(120, 35)) as pilot:
        screen = pilot.app.screen
        steps = len(screen.run.view.steps)
        assert screen.step == steps - 1
        add(path, LOST)
        await until(pilot, lambda: len(screen.run.view.steps) > steps)
        assert screen.step == len(screen.run.view.steps) - 1
        assert "TRUNCATED" in page(pilot.app)


async def test_what_is_saved_is_loaded_when_the_file_is_still_and_never_brings_back_its_old_content(
    path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth, "STILL", 0.1)
    restore, read = branch_report.restore_tree, threading.Event()

    def slowly(*values):
        found = restore(*values)
        assert read.wait(20)
        return found

    monkeypatch.setattr(branch_report, "restore_tree", slowly)
    async with app_on(path).run_test(size=(120, 35)) as pilot:
        screen = pilot.app.screen
        steps = len(screen.run.view.steps)
        await until(pilot, lambda: any(worker.group == "kept" for worker in screen.workers))
        add(path, LOST)  # while what was saved of the first exchange is being loaded
        await until(pilot, lambda: len(screen.run.view.steps) > steps)
        grown = len(screen.run.view.steps)
        await pilot.press("m")
        read.set()
        await until(pilot, lambda: screen.runs.store is not None)
        assert len(screen.run.view.steps) == grown
        assert screen.step == grown - 1
        await until(pilot, lambda: len(Store(screen.runs.store.path).kept.marks) == 1)


@pytest.mark.parametrize(("took", "rest"), [(0.0, 0.0), (0.01, 0.02), (0.3, 0.05), (20.0, 0.05)])
def test_a_row_never_waits_long_for_the_next_reading(took: float, rest: float) -> None:
    assert rest_seconds(took, named=True) == rest


def test_a_large_file_that_nobody_named_leaves_time_for_other_work() -> None:
    assert rest_seconds(2.0, named=False) == 4.0


async def test_a_cursor_elsewhere_and_a_filter_stay(path) -> None:
    async with app_on(path).run_test(size=(120, 35)) as pilot:
        screen = pilot.app.screen
        await pilot.press("home")
        await pilot.press("f", *"stop:*", "enter")
        step, steps = screen.step, len(screen.run.view.steps)
        add(path, LOST)
        await until(pilot, lambda: len(screen.run.view.steps) > steps)
        assert screen.step == step
        assert screen.filtered.startswith("stop:*")


async def test_a_filter_stays_when_the_cursor_follows_the_end(path) -> None:
    async with app_on(path).run_test(size=(120, 35)) as pilot:
        screen = pilot.app.screen
        await pilot.press("f", *"end:completed", "enter", "end")
        steps = len(screen.run.view.steps)
        assert screen.step == steps - 1, "the last step, which the filter keeps"
        add(path, LOST)  # its end is another
        await until(pilot, lambda: len(screen.run.view.steps) > steps)
        assert screen.filtered.startswith("end:completed")
        assert screen.step == steps - 1


async def test_a_filter_over_many_steps_stays_while_the_file_grows_faster_than_they_are_looked_at(
    path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each addition all steps were listed again, and the search for those that the filter keeps began anew."""
    go_on, looks, look = threading.Event(), [], remarks.filter_steps

    def slowly(*given):
        looks.append(given)
        assert go_on.wait(20)
        return look(*given)

    monkeypatch.setattr(remarks, "MANY_STEPS", 0)
    monkeypatch.setattr(remarks, "filter_steps", slowly)
    add(path, LOST)
    async with app_on(path).run_test(size=(120, 35)) as pilot:
        screen = pilot.app.screen
        go_on.set()
        await pilot.press("f", *"end:completed", "enter")
        await until(pilot, lambda: bool(screen.filtered))
        kept, filtered = screen.rows.kept_steps, screen.filtered
        cut = kept[-1] + 1
        assert cut < len(screen.run.view.steps), "the answer that was cut, which the filter does not keep"
        go_on.clear()
        looks.clear()
        for _ in range(2):
            steps = len(screen.run.view.steps)
            add(path, LOST)
            await until(pilot, lambda least=steps: len(screen.run.view.steps) > least)
            assert (screen.filtered, screen.rows.keeps(cut)) == (filtered, False)
            assert screen.rows.kept_steps[: len(kept)] == kept
        assert len(looks) == 1, "the search goes on"
        add(path, WHOLE)
        go_on.set()
        await until(pilot, lambda: screen.filtered == f"end:completed: {2 * len(kept)} steps")
        assert len(screen.rows.kept_steps) == 2 * len(kept)


async def test_a_breakpoint_among_many_steps_is_found_although_the_file_grows_meanwhile(
    path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The note `looking for a breakpoint…` stayed, and nothing stopped."""
    go_on, look = threading.Event(), breakpoints.next_stop
    monkeypatch.setattr(session_screen, "MANY_STEPS", 0)
    monkeypatch.setattr(breakpoints, "next_stop", lambda *given: look(*given) if go_on.wait(20) else None)
    async with app_on(path).run_test(size=(120, 35)) as pilot:
        screen = pilot.app.screen
        screen.remarks.breakpoints = (breakpoints.Breakpoint("stop:max_tokens"),)
        await pilot.press("home", "c")
        steps = len(screen.run.view.steps)
        add(path, LOST)
        await until(pilot, lambda: len(screen.run.view.steps) > steps)
        assert screen.step == 0
        go_on.set()
        await until(pilot, lambda: screen.note == "breakpoint: stop:max_tokens")
        assert screen.step >= steps


async def test_while_other_runs_are_open_the_session_waits(path) -> None:
    async with app_on(path).run_test(size=(120, 45)) as pilot:
        screen = pilot.app.screen
        await pilot.press("e", *"5", "enter")
        await until(pilot, lambda: len(screen.runs.every) == 2)
        steps = len(screen.run.view.steps)
        add(path, LOST)
        await until(pilot, lambda: "it is read again when the other runs are closed" in page(pilot.app))
        await pilot.press("n")
        note = screen.note
        assert "read again" not in note
        await pilot.pause(0.3)
        assert screen.note == note  # it is said once
        assert len(screen.runs.every) == 2
        assert len(screen.run.view.steps) == steps


@pytest.mark.skipif(sys.platform == "win32", reason="no FIFO")
async def test_a_fifo_in_place_of_the_file_stops_nothing(path, monkeypatch) -> None:
    """To open it would wait for a writer: nothing more was read, and the app did not end."""
    monkeypatch.setattr(intake, "WAIT", 0.05)
    async with app_on(path).run_test(size=(120, 35)) as pilot:
        steps = len(pilot.app.screen.run.view.steps)
        path.unlink()
        os.mkfifo(path)
        try:
            await until(pilot, lambda: "a FIFO that nobody writes to" in " ".join(page(pilot.app).split()))
            path.unlink()
            path.write_bytes(lines(WHOLE, LOST))
            await until(pilot, lambda: len(pilot.app.screen.run.view.steps) > steps)
        finally:
            if path.is_fifo():
                os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))  # whoever waits for a writer goes on


async def test_a_file_that_is_cut_or_cannot_be_read_leaves_what_was_there(path) -> None:
    add(path, LOST)
    async with app_on(path).run_test(size=(120, 35)) as pilot:
        screen = pilot.app.screen
        steps = len(screen.run.view.steps)
        path.write_bytes(b"")
        await until(pilot, lambda: "nothing can be read of the file right now" in page(pilot.app))
        assert len(screen.run.view.steps) == steps
        path.write_bytes(lines(WHOLE))
        await until(pilot, lambda: len(screen.run.view.steps) < steps)
        assert "the file was truncated or rewritten: this is what it holds now" in page(pilot.app)
        assert screen.step < len(screen.run.view.steps)
        path.unlink()
        await until(pilot, lambda: "cannot be read: No such file" in " ".join(page(pilot.app).split()))
        path.write_bytes(lines(WHOLE, LOST))
        await until(pilot, lambda: len(screen.run.view.steps) == steps)
        assert screen.note == "following: additions to the file appear as they are written"


async def test_an_answer_whose_end_is_recorded_later_is_no_sign_of_a_truncated_file(tmp_path) -> None:
    """A turn whose end is unknown has a step more than one that ended, so the session lost a step as its file grew."""
    rows = [prompt("say hello"), block(text("Hello.")), {"type": "system", "subtype": "turn_duration", "durationMs": 9}]
    path = tmp_path / "session.jsonl"
    path.write_bytes(claude(*rows[:2]).encode())
    app = LoopInspector([str(path)], opened_already=load([str(path)], ReadingOptions()))
    async with app.run_test(size=(120, 35)) as pilot:
        steps = len(app.screen.run.view.steps)
        assert "END NOT RECORDED" in page(app)
        with path.open("ab") as file:
            file.write(claude(*rows).encode()[len(claude(*rows[:2]).encode()):])
        await until(pilot, lambda: len(app.screen.run.view.steps) < steps)
        await until(pilot, lambda: "END INFERRED" in page(app))
        assert app.screen.note == "following: additions to the file appear as they are written"


async def test_a_session_that_grows_is_read_on_although_nobody_named_it_as_growing(path) -> None:
    add(path, LOST)
    app = LoopInspector([str(path)], opened_already=load([str(path)], ReadingOptions()))
    async with app.run_test(size=(120, 35)) as pilot:
        screen = app.screen
        await pilot.press("home")
        steps = len(screen.run.view.steps)
        assert "following" not in page(app)
        add(path, WHOLE)
        await until(pilot, lambda: len(screen.run.view.steps) > steps)
        assert screen.step == 0
        assert screen.note == "following: additions to the file appear as they are written"


async def test_under_a_view_of_the_session_nothing_is_replaced_and_a_map_of_what_it_was_is_gone(path) -> None:
    add(path, LOST)
    async with app_on(path).run_test(size=(120, 35)) as pilot:
        screen = pilot.app.screen
        await pilot.press("u")
        await until(pilot, lambda: pilot.app.screen is not screen and pilot.app.screen.table.turn == 1)
        steps = len(screen.run.view.steps)
        path.write_bytes(lines(WHOLE))
        await pilot.pause(0.3)
        assert len(screen.run.view.steps) == steps
        await pilot.press("escape")
        await until(pilot, lambda: len(screen.run.view.steps) < steps)
        await pilot.press("u")
        await until(pilot, lambda: pilot.app.screen is not screen)
        assert len(pilot.app.screen.table.case.recording.turns) == 1


async def test_a_run_that_is_made_while_a_file_is_read_on_stays(path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, read = threading.Event(), threading.Event()

    def slowly(*values):
        reading.set()
        assert read.wait(20)
        return load_followed(*values)

    async with app_on(path).run_test(size=(120, 45)) as pilot:
        screen = pilot.app.screen
        await until(pilot, lambda: screen.runs.store is not None)
        monkeypatch.setattr(growth, "load_followed", slowly)
        add(path, LOST)
        await until(pilot, reading.is_set)
        await pilot.press("e", *"5", "enter")
        await until(pilot, lambda: len(screen.runs.every) == 2)
        read.set()
        await until(pilot, lambda: "it is read again when the other runs are closed" in screen.note)
        assert len(screen.runs.every) == 2


def turn_rows(app) -> list[tuple[str, str, int]]:
    return [(Path(row.paths[0]).name, row.verdict.word, row.number)
            for row in app.screen.turn_list.entries if isinstance(row, TurnRow)]


async def test_the_table_of_a_file_that_grows_has_a_row_for_each_new_turn(path, monkeypatch) -> None:
    monkeypatch.setattr(turns_reading, "MANY_ROWS", 0)  # as if it had very many rows, which a thread lists
    waits, list_rows = list[float](), TurnList.list_rows
    monkeypatch.setattr(TurnList, "list_rows", lambda listed, *given: (
        waits.append(listed.screen.rests_until if listed.is_mounted else 0), list_rows(listed, *given))[1])
    add(path, LOST)
    app = LoopInspector([str(path)], opened_already=load([str(path)], ReadingOptions()), as_table=True)
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: turn_rows(app) == [("s.jsonl", "TRUNCATED", 2), ("s.jsonl", "COMPLETE", 1)])
        add(path, pair_of([user("Three?")], chat("Half", "length"), max_tokens=7))
        await until(pilot, lambda: len(turn_rows(app)) == 3)
        assert turn_rows(app)[2] == ("s.jsonl", "TRUNCATED", 3)  # rows keep their places
        assert waits[-1] == inf, "no growth is read while rows are listed, which the next listing would end"
        path.write_bytes(b"")
        await pilot.pause(0.5)
        assert len(turn_rows(app)) == 3
        path.write_bytes(lines(WHOLE))
        await until(pilot, lambda: len(turn_rows(app)) == 1)


async def test_in_the_table_of_a_folder_the_row_of_a_file_that_grows_changes_in_its_place(path, monkeypatch) -> None:
    rows_of = GrownFiles.rows_of
    monkeypatch.setattr(GrownFiles, "rows_of", lambda *given: (sleep(0.3), rows_of(*given))[1])
    other = path.with_name("a.jsonl")
    other.write_bytes(lines(WHOLE, LOST))
    app = LoopInspector([str(path.parent)])
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: not app.screen.reading and len(turn_rows(app)) == 3)
        add(path, LOST)
        await until(pilot, lambda: len(turn_rows(app)) == 4)
        assert turn_rows(app)[-1] == ("s.jsonl", "TRUNCATED", 2)
        await until(pilot, lambda: app.screen.rests_until < inf)
        assert app.screen.rests_until < monotonic() + 0.2, "only the first reading is of the whole file"
        await pilot.press("end", "enter")
        steps = len(app.screen.run.view.steps)
        add(path, WHOLE)
        await until(pilot, lambda: len(app.screen.run.view.steps) > steps)
        await pilot.press("q")
        await until(pilot, lambda: len(turn_rows(app)) == 5)


@pytest.mark.skipif(sys.platform == "win32", reason="a locked file cannot be read there")
async def test_a_recorder_that_is_gone_changes_the_verdict_in_the_session_and_in_the_table(path, monkeypatch) -> None:
    """Neither the file nor the table changes with the time, but what they say does."""
    writers = [SessionWriter(path.with_name(name)) for name in ("t.jsonl", "u.jsonl")]
    for number, writer in enumerate(writers):
        asks = [user(f"What about {number}?")]
        writer.append({"type": "request", "id": "r1", "api": "openai_chat", "at": "2026-01-01T00:00:00+00:00",
                       "body": {"model": "m", "messages": asks}})
    app = LoopInspector([str(path.parent)])
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: not app.screen.reading and len(turn_rows(app)) == 3)
        assert turn_rows(app)[:2] == [("t.jsonl", "UNDER WAY", 1), ("u.jsonl", "UNDER WAY", 1)]
        monkeypatch.setattr("time.time", lambda: 1_767_225_600.0 + 3 * 86_400)  # three days after that moment
        await until(pilot, lambda: page(app).count(" 3d") == 2)
        writers[0].close()
        await until(pilot, lambda: ("t.jsonl", "RECORDING CUT", 1) in turn_rows(app))
        assert ("u.jsonl", "UNDER WAY", 1) in turn_rows(app)
        await pilot.press("down", "enter")
        assert "UNDER WAY" in page(app)
        writers[1].close()
        await until(pilot, lambda: "RECORDING CUT" in page(app) and "UNDER WAY" not in page(app))


async def test_a_new_file_in_a_folder_that_the_table_is_of_is_listed_last_without_losing_the_row(path) -> None:
    app = LoopInspector([str(path.parent)])
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: not app.screen.reading and len(turn_rows(app)) == 1)
        (path.parent / "notes.txt").write_text("nothing of a session")
        below = path.parent / "later"
        below.mkdir()
        (below / "new.jsonl").write_bytes(b"")  # an agent makes its file before it writes to it
        await pilot.pause(0.5)
        (below / "new.jsonl").write_bytes(lines(WHOLE, LOST))
        await until(pilot, lambda: len(turn_rows(app)) == 3)
        assert turn_rows(app) == [("s.jsonl", "COMPLETE", 1), ("new.jsonl", "TRUNCATED", 2),
                                  ("new.jsonl", "COMPLETE", 1)]
        assert app.screen.turn_list.current_row.paths == (str(path),)
        assert app.screen.note == "a new session: new"
        add(below / "new.jsonl", LOST)  # it is followed from now on
        await until(pilot, lambda: len(turn_rows(app)) == 4)


@pytest.mark.parametrize("place", ["a table of its turns", "a table of its folder", "its session"])
@pytest.mark.parametrize("age", [5, 3600])
async def test_a_file_that_an_agent_just_wrote_to_is_not_read_whole_when_it_grows(
    tmp_path, monkeypatch: pytest.MonkeyPatch, place: str, age: int
) -> None:
    monkeypatch.setattr(table_rows, "SHORTEST_FOLLOWED", 0)
    read_whole, whole = FollowedFile._read_whole, []
    monkeypatch.setattr(FollowedFile, "_read_whole", lambda *values: whole.append(1) or read_whole(*values))
    session = tmp_path / "s.jsonl"
    rows = claude(*(row for word in ("One", "Two", "Three") for row in (
        prompt(f"say {word}"), block(text(word), f"msg_{word}", stop="end_turn")))).splitlines(keepends=True)
    session.write_text("".join(rows[:4]))
    os.utime(session, (time() - age,) * 2)
    app = LoopInspector([str(tmp_path if place == "a table of its folder" else session)])
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, TurnsScreen) and app.screen.watched)
        if place == "its session":
            await pilot.press("enter")
        else:
            await until(pilot, lambda: app.screen.grown is not None or place == "a table of its turns" or age > 600)
        screen, before = app.screen, len(whole)
        assert before == (1 if age < 600 else 0), "the reader that continues is made only of a file likely to grow"
        with session.open("a") as file:
            file.writelines(rows[4:])
        if place == "its session":
            await until(pilot, lambda: len(screen.run.view.turns) == 3)
        else:
            await until(pilot, lambda: len(turn_rows(app)) == 3)
        assert len(whole) == 1


async def test_a_file_that_belongs_to_a_listed_session_is_no_session_of_its_own(tmp_path) -> None:
    session = tmp_path / "s.jsonl"
    session.write_text(claude(prompt("say hello"), block(text("Hello."), stop="end_turn")))
    app = LoopInspector([str(tmp_path)])
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: not app.screen.reading and len(turn_rows(app)) == 1)
        (tmp_path / "s" / "subagents").mkdir(parents=True)
        (tmp_path / "s" / "subagents" / "agent-1.jsonl").write_text(session.read_text())
        (tmp_path / "new.jsonl").write_text(claude(prompt("and now?"), block(text("Bye."), stop="end_turn")))
        await until(pilot, lambda: len(turn_rows(app)) == 2)
        await pilot.pause(0.3)
        assert [name for name, _, _ in turn_rows(app)] == ["s.jsonl", "new.jsonl"]


async def test_a_session_that_an_agent_begins_is_listed_first_among_the_transcripts() -> None:
    projects = Path(os.environ["HOME"], ".claude", "projects")
    app = LoopInspector()
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: not app.screen.reading)
        assert app.screen.sections[0].title == "Sample sessions"
        for number, word in enumerate(("one", "two"), start=1):
            place = projects / f"-work-{word}"
            place.mkdir(parents=True)
            (place / f"{word}.jsonl").write_text(
                claude(prompt(f"say {word}"), block(text(word.title()), stop="end_turn")))
            await until(pilot, lambda: len(app.screen.sections[0].paths) == number)  # noqa: B023
            assert app.screen.turn_list.entries[0] == app.screen.sections[0].title == AGENTS
            assert app.screen.note == f"a new session: {word}"
        assert [name for name, _, _ in turn_rows(app)[:2]] == ["two.jsonl", "one.jsonl"]
        await pilot.press("home", "enter")
        assert app.screen.session.paths == (str(projects / "-work-two" / "two.jsonl"),)


async def test_a_further_file_of_a_loggers_folder_goes_on_with_its_conversation(tmp_path) -> None:
    def write(number: int) -> None:
        talk = [user(f"question {each}") if each % 2 == 0 else {"role": "assistant", "content": f"answer {each - 1}"}
                for each in range(2 * number + 1)]
        (tmp_path / f"{number}.json").write_bytes(lines(pair_of(talk, chat(f"answer {2 * number}"), max_tokens=50)))

    write(0)
    app = LoopInspector([str(tmp_path)])
    async with app.run_test(size=(120, 35)) as pilot:
        for number in (1, 2):
            await until(pilot, lambda: app.screen.watched and len(turn_rows(app)) == number)  # noqa: B023
            write(number)
        await until(pilot, lambda: len(turn_rows(app)) == 3)
        assert [row.number for row in app.screen.turn_list.rows] == [1, 2, 3]
        assert len(app.screen.turn_list.slots) == 1


def transcript(word: str) -> str:
    return claude(prompt(f"say {word}"), block(text(word.title()), stop="end_turn"))


def names(app) -> list[str]:
    """The names of the listed files; headings as they are."""
    return [row if isinstance(row, str) else Path(row.paths[0]).name for row in app.screen.turn_list.entries]


async def test_a_folder_that_was_emptied_is_still_searched(path) -> None:
    app = LoopInspector([str(path.parent)])
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: app.screen.watched)
        path.unlink()
        await pilot.pause(0.5)
        path.with_name("new.jsonl").write_text(transcript("one"))
        await until(pilot, lambda: names(app) == ["s.jsonl", "new.jsonl"])


async def test_another_name_of_a_listed_file_and_a_copy_are_no_new_sessions(path) -> None:
    os.symlink(path, path.with_name("t.jsonl"))
    app = LoopInspector([str(path.parent)])
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: app.screen.watched)
        add(path, LOST)
        await until(pilot, lambda: len(turn_rows(app)) == 2)
        path.with_name("u.jsonl").write_bytes(path.read_bytes())
        path.with_name("new.jsonl").write_text(transcript("one"))
        await until(pilot, lambda: len(turn_rows(app)) == 3)
        await pilot.pause(0.5)
        assert (names(app), app.screen.note) == (["s.jsonl", "s.jsonl", "new.jsonl"], "a new session: new")


async def test_what_is_no_file_in_a_folder_stops_no_search(path) -> None:
    app = LoopInspector([str(path.parent)])
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: app.screen.watched)
        os.mkfifo(path.with_name("pipe.jsonl"))  # to open it would wait for a writer
        os.symlink("nowhere", path.with_name("dangling.jsonl"))
        os.symlink(path.parent, path.with_name("loop"))
        path.with_name("empty.jsonl").touch()
        await pilot.pause(1)
        path.with_name("new.jsonl").write_text(transcript("one"))
        await until(pilot, lambda: names(app) == ["s.jsonl", "new.jsonl"])


async def test_a_working_folder_that_was_removed_ends_no_table(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "work"
    (place / "logs").mkdir(parents=True)
    (place / "logs" / "a.jsonl").write_text(transcript("one"))
    monkeypatch.chdir(place)
    app = LoopInspector(["logs"])
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: app.screen.watched)
        shutil.rmtree(place)
        await until(pilot, lambda: "No such file" in app.screen.note)
        assert names(app) == ["a.jsonl"]


async def test_a_file_that_was_removed_stays_below_its_heading(tmp_path) -> None:
    projects, recent = Path(os.environ["HOME"], ".claude", "projects", "-work"), tmp_path / "recent.jsonl"
    projects.mkdir(parents=True)
    recent.write_text(transcript("recent"))
    remember([str(recent)])
    (projects / "one.jsonl").write_text(transcript("one"))
    app = LoopInspector()
    async with app.run_test(size=(120, 45)) as pilot:
        await until(pilot, lambda: app.screen.watched)
        before = names(app)
        assert before[-2:] == [RECENT, "recent.jsonl"]
        (projects / "one.jsonl").unlink()
        recent.unlink()
        (projects / "two.jsonl").write_text(transcript("two"))
        await until(pilot, lambda: names(app)[1] == "two.jsonl")
        assert names(app) == [before[0], "two.jsonl", *before[1:]]


def test_explain_follows_with_a_line_for_each_new_verdict(path) -> None:
    process = subprocess.Popen([sys.executable, "-m", "inspector", "explain", str(path), "--follow"], cwd=ROOT,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        first = process.stdout.readline()
        assert first.startswith("COMPLETE")
        while "merged text" not in first:
            first = process.stdout.readline()
        add(path, LOST)
        said = ""
        while not said.startswith("turn 2: "):
            said = process.stdout.readline()
        assert said.startswith("turn 2: TRUNCATED · the provider cut the answer: openai_chat")
        path.unlink()
        assert process.stderr.readline() == f"inspector: {path}: cannot be read: No such file or directory\n"
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in errors


@pytest.mark.parametrize("words", [("explain", "gone.jsonl", "--follow"), ("view", ".", "--follow"),
                                   ("view", "--follow"), ("explain", "FILE", "--follow", "--json")])
def test_what_cannot_be_followed_is_said(inspector, path, words) -> None:
    said = inspector(*(str(path) if word == "FILE" else word for word in words))
    assert said.code == 2
    assert "--follow" in said.err
    assert os.path.exists(path)
