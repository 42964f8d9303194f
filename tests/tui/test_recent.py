"""The start without a path: samples, recent files, a path that is typed."""

import json
from pathlib import Path

import pytest
from textual.widgets import Input

from inspector.sessions.folders import samples, short
from inspector.tui import session_files
from inspector.tui.app import LoopInspector
from inspector.tui.questions import PathSuggester
from inspector.tui.session_screen import SessionScreen
from inspector.tui.turn_counts import first_note
from inspector.tui.turn_list import AGENTS, RECENT, SAMPLES, Section, TurnList, found_sections
from inspector.tui.turns_screen import TurnsScreen
from tests.scenes.app import page, story, until

SIZE = (120, 40)


async def read(app: LoopInspector, pilot) -> TurnList:
    while app.screen.reading:
        await pilot.pause(0.02)
    await pilot.pause()
    return app.screen.query_one(TurnList)


async def test_the_samples_are_listed_by_their_titles_and_the_one_under_the_cursor_is_told_and_opened() -> None:
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        listed = await read(app, pilot)
        assert listed.entries[0] == SAMPLES
        assert [row.paths[0] for row in listed.entries[1:]] == [short(sample.path) for sample in samples()]
        assert listed.current_row.name == samples()[0].title
        assert listed.current_row.paths == (short(samples()[0].path),)
        assert f"1 of {len(samples())}▔" in page(app), "titles of sections do not count"
        shown = page(app)
        assert "▶ ✖ CUT CALL RUN   A gateway that" in shown
        assert "the agent ran it" in shown
        assert "1 CUT CALL RUN · 1 LIMIT REACHED" in shown
        assert "Recent files" not in shown
        assert "no agent sessions are in the usual folders · o opens a path" in shown
        await pilot.press("enter")
        assert isinstance(app.screen, SessionScreen)
        assert app.screen.session.paths == (short(samples()[0].path),)
        view = app.screen.run.view
        assert app.screen.step == view.deciding_step(view.worst) > 0, "it opens at the worst turn"
        await pilot.press("q")
        assert isinstance(app.screen, TurnsScreen)
        assert listed.current_row.paths == (short(samples()[0].path),), "q comes back to the row"
        await pilot.press("j")
        assert listed.current_row.paths == (short(samples()[1].path),)
        assert "ended with" in page(app) or "completed" in page(app)
        await pilot.press("G")
        assert listed.current_row.paths == (short(samples()[-1].path),)
        assert f"{len(samples())} of {len(samples())}▔" in page(app)
        await pilot.press("q")
        assert app.return_value == 0


def test_a_table_with_sessions_of_agents_begins_without_a_note() -> None:
    assert first_note([Section(AGENTS, ("a.jsonl",)), Section(SAMPLES, ("b.jsonl",))]) == ""


async def test_a_sample_is_not_remembered_and_a_path_is(tmp_path: Path) -> None:
    path = story(tmp_path)
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        await read(app, pilot)
        await pilot.press("enter", "q")
        assert not session_files.state_path(session_files.RECENT_FILE).exists()
        await pilot.press("o", *str(path), "enter")
        assert session_files.recent_files() == [str(path)]
    assert json.loads(session_files.state_path(session_files.RECENT_FILE).read_text()) == [str(path)]
    app = LoopInspector()
    async with app.run_test(size=(120, 50)) as pilot:
        listed = await read(app, pilot)
        assert "Recent files" in page(app)
        await pilot.press("G")
        assert listed.current_row.paths == (str(path),)


def test_a_recent_file_that_is_listed_above_is_not_listed_twice(tmp_path: Path) -> None:
    agents = tmp_path / "home" / ".claude" / "projects" / "p"
    agents.mkdir(parents=True)
    of_agent, other = agents / "0a1b2c3d-0000-4000-8000-000000000000.jsonl", story(tmp_path)
    of_agent.write_bytes(next(each.path for each in samples() if each.name.startswith("18")).read_bytes())
    session_files.remember([str(of_agent), str(samples()[0].path), str(other)])
    sections = {each.title: each.paths for each in found_sections({"HOME": str(tmp_path / "home")})}
    assert sections[RECENT] == (str(other),)
    assert sections[AGENTS] == (str(of_agent),)
    assert sections[SAMPLES][0] == short(samples()[0].path)


async def test_a_path_that_cannot_be_read_is_told_and_stays_for_correction(tmp_path: Path) -> None:
    app = LoopInspector()
    path = story(tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("o", *f"{path}x", "enter")
        said = " ".join(page(app).split())
        assert "cannot be read: No such file or directory" in said
        assert "enter tries again, esc leaves" in said
        await pilot.press("backspace", "enter")
        await until(pilot, lambda: isinstance(app.screen, TurnsScreen) and "2 turns in 1 session" in page(app))


async def test_tab_completes_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story(tmp_path, name="zebra.har")
    (tmp_path / "zz\x1b[31m.har").write_text("{}")
    (tmp_path / "inner").mkdir()
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("o", *str(tmp_path), "/", "z")
        await until(pilot, lambda: "zebra.har" in page(app))
        await pilot.press("tab")
        assert app.screen.query_one(Input).value == f"{tmp_path}/zebra.har"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, TurnsScreen) and "2 turns in 1 session" in page(app))
    complete = PathSuggester(session_files.why_unopenable).get_suggestion
    assert await complete(f"{tmp_path}/in") == f"{tmp_path}/inner/"
    for none in (f"{tmp_path}/zz", f"{tmp_path}/", f"{tmp_path}/no/z", "a\0b/c", ""):
        assert await complete(none) is None, "a name of control characters, no name, no such folder"

    def refuse(path: str) -> None:
        raise PermissionError(1, "outside of the folders that are served", path)

    monkeypatch.setattr(session_files, "check_bounds", refuse)
    assert await complete(f"{tmp_path}/in") is None, "a name in a folder that may not be read is not shown"


async def test_a_path_outside_the_allowed_folders_or_with_an_impossible_character_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert session_files.why_unopenable(str(story(tmp_path))) == ""
    assert session_files.why_unopenable("a\0b") == "a\0b: not a path"

    def refuse(path: str) -> None:
        raise PermissionError(1, "outside of the folders that are served", path)

    monkeypatch.setattr(session_files, "check_bounds", refuse)
    assert session_files.why_unopenable("/etc/passwd") == (
        "/etc/passwd: cannot be read: outside of the folders that are served")


def test_recent_files_that_are_gone_are_left_out(tmp_path: Path) -> None:
    there = story(tmp_path)
    session_files.remember([str(tmp_path / "gone.har")])
    session_files.remember([str(there)])
    assert session_files.recent_files() == [str(there)]


def test_the_last_file_comes_first_and_once(tmp_path: Path) -> None:
    one, two = story(tmp_path, name="one.har"), story(tmp_path, name="two.har")
    for path in (one, two, one):
        session_files.remember([str(path)])
    assert session_files.recent_files() == [str(one), str(two)]


def test_standard_input_is_not_remembered() -> None:
    session_files.remember(["-"])
    assert not session_files.state_path(session_files.RECENT_FILE).exists()


def test_a_place_that_cannot_be_written_or_read_fails_nothing(tmp_path: Path) -> None:
    there = story(tmp_path)
    session_files.state_path(session_files.RECENT_FILE).parent.write_text("a file where a folder is due")
    session_files.remember([str(there)])
    assert session_files.recent_files() == []
    session_files.state_path(session_files.RECENT_FILE).parent.unlink()
    session_files.state_path(session_files.RECENT_FILE).parent.mkdir()
    session_files.state_path(session_files.RECENT_FILE).write_text('{"no": "list"}')
    assert session_files.recent_files() == []
    session_files.state_path(session_files.RECENT_FILE).write_text("[" * 200_000)
    assert session_files.recent_files() == []


async def test_what_the_command_line_opened_is_remembered_once_it_is_seen(tmp_path: Path) -> None:
    path = story(tmp_path)
    app = LoopInspector([str(path)], opened_already=session_files.load([str(path)], session_files.ReadingOptions()))
    app.opened_paths = (str(path),)
    async with app.run_test(size=SIZE):
        pass
    assert session_files.recent_files() == [str(path)]
