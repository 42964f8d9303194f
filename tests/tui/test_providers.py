"""Providers side by side on their screen: every key, the mouse, a row as a session, and the same as a command line."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from shlex import split
from typing import Any

import pytest
from click.testing import CliRunner
from textual.pilot import Pilot
from textual.widgets import Input

from inspector.cli import main
from inspector.config.settings import Settings
from inspector.provider.dialect_output import TableQuery
from inspector.provider.dialect_rows import TableRow
from inspector.provider.dialects import DIALECTS
from inspector.provider.scenarios import SCENARIOS
from inspector.tui import launch as entry
from inspector.tui.app import LoopInspector
from inspector.tui.delivery import deliver
from inspector.tui.lists import Choose
from inspector.tui.providers_screen import DialectTable, ProvidersScreen
from inspector.tui.session_screen import Exports, SessionScreen
from inspector.tui.text_view import TextView
from inspector.tui.turns_screen import TurnsScreen
from tests.scenes.app import page, screen_rows, until, view_text
from tests.scenes.provider import rows_by_query
from tests.scenes.rows import share

AppOn = Callable[..., LoopInspector]
SMALL, LARGE = (80, 24), (160, 45)


@pytest.fixture(autouse=True)
def _rows_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TableQuery, "rows", rows_by_query)


class ProvidersApp(LoopInspector):
    """The app on this screen alone."""

    CSS_PATH = str(Path(entry.__file__).with_name("app.tcss"))

    def get_default_screen(self) -> ProvidersScreen:
        return ProvidersScreen(Settings())


async def settled_rows(pilot: Pilot[Any]) -> DialectTable:
    """The rows, once they are the answer to what was asked last."""
    screen = pilot.app.screen
    assert isinstance(screen, ProvidersScreen)
    for _ in range(20):
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        if not screen._busy and screen._head.size.height == len(screen._head.make(screen._head.size.width)):
            break
    assert screen._answered is not None
    return screen.query_one(DialectTable)


def chosen(rows: DialectTable) -> str:
    assert rows.current_entry is not None
    return rows.current_entry.row.name


async def test_every_dialect_is_there_with_what_matters_most() -> None:
    async with ProvidersApp().run_test(size=SMALL) as pilot:
        rows = await settled_rows(pilot)
        entries = [each for each in rows.list_lines if not isinstance(each, str)]
        assert sum(1 + len(entry.equal_rows) for entry in entries) == len(DIALECTS)
        for size in (SMALL, LARGE):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            shown = screen_rows(pilot.app)
            assert shown[0].split()[:2] == ["call-cut", "1/13"]
            assert shown[0].rstrip().endswith("32 tokens ESTIMATED  SIMULATED")
            assert "looks finished: 8 by the provider's word, 0 after this program's check" in page(pilot.app)
            vllm = next(row for row in shown if row.lstrip(" ▶").startswith("vllm +2"))
            for said in ("tool_calls", "max_tokens", "hold, repair"):
                assert said in vllm
        for said in ("tool_call → max_tokens", "prefix of a string", "all 4 !", "cut arguments"):
            assert said in vllm


async def test_the_row_at_the_cursor_is_told_below(app_on: AppOn) -> None:
    async with ProvidersApp().run_test(size=SMALL) as pilot:
        rows = await settled_rows(pilot)
        dialects = sum(map(rows.selectable, range(rows.count)))
        assert f"▔1 of {dialects}▔" in page(pilot.app), "headings do not count"
        assert chosen(rows) == "openai_chat/openai"
        assert "says the same" in view_text(pilot.app)
        await pilot.press("j", "down")
        assert chosen(rows) == "openai_chat/vllm"
        assert "its call parser says tool_calls, whatever ended the call" in page(pilot.app)
        await pilot.press("G")
        assert chosen(rows) == "anthropic_complete/anthropic"
        # Headings are passed over.
        await pilot.press("k")
        assert chosen(rows) == "cohere_chat/cohere"
        await pilot.press(*["k"] * 5)
        assert chosen(rows) == "gemini_interactions/gemini+whole"
        await pilot.press("k")
        assert chosen(rows) == "gemini_interactions/gemini"
        await pilot.press("k")
        assert chosen(rows) == "ollama_chat/ollama+markup"
        await pilot.press("g")
        assert chosen(rows) == "openai_chat/openai"
        await pilot.press("tab")
        text = pilot.app.screen.query_one(TextView)
        assert text.has_focus
        assert text.size.height > rows.size.height
        await pilot.press("tab")
        assert rows.has_focus
        assert text.size.height < rows.size.height


async def test_left_and_right_change_the_scenario_and_the_cursor_stays_on_its_dialect() -> None:
    names = list(SCENARIOS)
    async with ProvidersApp().run_test(size=SMALL) as pilot:
        rows = await settled_rows(pilot)
        await pilot.press("j", "j")
        for key, number in (("right", 1), ("l", 2), ("left", 1), ("h", 0), ("left", 12), ("right", 0)):
            await pilot.press(key)
            await settled_rows(pilot)
            scenario = SCENARIOS[names[number]]
            assert screen_rows(pilot.app)[0].split()[:2] == [scenario.name, f"{number + 1}/13"]
            assert scenario.name in view_text(pilot.app)
            assert f"{scenario.budget:,} tokens" in screen_rows(pilot.app)[0]
            assert "openai_chat/vllm" in (chosen(rows), *(like.name for like in rows.current_entry.equal_rows))


async def test_s_chooses_a_scenario_by_its_title() -> None:
    async with ProvidersApp().run_test(size=SMALL) as pilot:
        await settled_rows(pilot)
        await pilot.press("s")
        assert isinstance(pilot.app.screen, Choose)
        assert "thinking takes the whole budget" in page(pilot.app)
        await pilot.press("down", "down", "down", "down", "enter")
        await settled_rows(pilot)
        assert screen_rows(pilot.app)[0].split()[0] == "thinking"
        await pilot.press("s", "escape")
        assert screen_rows(pilot.app)[0].split()[0] == "thinking"


async def test_the_budget_is_changed_and_all_run_again() -> None:
    async with ProvidersApp().run_test(size=SMALL) as pilot:
        rows = await settled_rows(pilot)
        for key, budget in (("minus", 28), ("plus", 32), ("equals_sign", 36)):
            await pilot.press(key)
            await settled_rows(pilot)
            assert f"{budget} tokens" in screen_rows(pilot.app)[0]
            assert rows.current_entry is not None
            assert rows.current_entry.row.play.budget == budget
        # The answer is 53 tokens long: 27 characters of text, and 11 and 170 of the call.
        await pilot.press(":", *"256", "enter")
        await settled_rows(pilot)
        assert "call-cut, budget 256 tokens" in view_text(pilot.app)
        assert "run calls" in page(pilot.app)
        await pilot.press(":", "enter")
        await settled_rows(pilot)
        assert "32 tokens" in screen_rows(pilot.app)[0]
        for wrong in ("0", "-5", "x", "99999999999", "0000005" + "0" * 12):
            await pilot.press(":", *wrong, "enter")
            assert ("is not a command here" if wrong == "x" else
                    f"'{wrong}' is not a budget: expected 1 to 1,000,000") in page(pilot.app)
            assert pilot.app.screen.query_one(Input).value == wrong, "the line stays open for correction"
            await pilot.press("escape")
            assert "32 tokens" in screen_rows(pilot.app)[0]
        await pilot.press(":", *"more", "enter")
        await settled_rows(pilot)
        assert "36 tokens" in screen_rows(pilot.app)[0], "the name of a key's action, as after a colon elsewhere"


async def test_keys_that_come_faster_than_the_rows_end_with_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    plain = TableQuery.rows
    answers_may_come = threading.Event()

    def slowly(self: TableQuery) -> tuple[TableRow, ...]:
        asked.append(self.limit)
        answers_may_come.wait(60)
        return plain(self)

    monkeypatch.setattr(TableQuery, "rows", slowly)
    answers_may_come.set()
    async with ProvidersApp().run_test(size=SMALL) as pilot:
        rows = await settled_rows(pilot)
        answers_may_come.clear()
        await pilot.press(*["plus"] * 8)
        assert "64 tokens" in screen_rows(pilot.app)[0]
        # No row of an earlier question is opened under the title of a later one.
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, ProvidersScreen)
        assert "the dialects are still being run" in page(pilot.app)
        answers_may_come.set()
        await settled_rows(pilot)
        assert rows.current_entry is not None
        assert rows.current_entry.row.play.budget == 64
        # One at a time: 36 was being worked out, and what was passed over meanwhile was never asked.
        assert asked == [32, 36, 64]


async def test_moves_before_there_are_rows_are_made_once_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, answers_may_come = TableQuery.rows, threading.Event()
    monkeypatch.setattr(TableQuery, "rows", lambda query: answers_may_come.wait(60) and plain(query))
    async with ProvidersApp().run_test(size=SMALL) as pilot:
        await pilot.press("down", "down", "down", "up")
        answers_may_come.set()
        late = (await settled_rows(pilot)).cursor
    async with ProvidersApp().run_test(size=SMALL) as pilot:
        rows = await settled_rows(pilot)
        first = rows.cursor
        await pilot.press("down", "down")
        assert first < rows.cursor == late


async def test_a_policy_is_chosen_and_decides() -> None:
    async with ProvidersApp().run_test(size=LARGE) as pilot:
        await settled_rows(pilot)
        await pilot.press("p")
        assert "Zoo Code" in page(pilot.app)
        listed = pilot.app.screen
        assert isinstance(listed, Choose)
        place = [word for word, _ in listed._words.entries].index("pi-presence")
        await pilot.press(*["down"] * place, "enter")
        await settled_rows(pilot)
        assert "what a loop does (policy pi-presence): " in page(pilot.app)
        assert "run held call" in page(pilot.app)
        await pilot.press("y")
        assert pilot.app.clipboard == "inspector providers call-cut --policy pi-presence"


async def test_e_unfolds_rows_that_say_the_same_and_folds_them_again() -> None:
    async with ProvidersApp().run_test(size=SMALL) as pilot:
        rows = await settled_rows(pilot)
        folded = rows.count
        await pilot.press("e")
        apis = len({dialect.api for dialect in DIALECTS})
        assert rows.count == len(DIALECTS) + apis
        await pilot.press(*["j"] * 8)
        hidden = chosen(rows)
        await pilot.press("e")
        assert rows.count == folded
        assert rows.current_entry is not None
        assert hidden in (rows.current_entry.row.name, *(like.name for like in rows.current_entry.equal_rows))


async def test_enter_opens_the_row_as_a_session_and_back_returns(tmp_path: Path) -> None:
    async with ProvidersApp().run_test(size=LARGE) as pilot:
        await settled_rows(pilot)
        await pilot.press("j", "j", "enter")
        screen = pilot.app.screen
        assert isinstance(screen, SessionScreen)
        assert "no provider was asked: call-cut, openai_chat vllm" in page(pilot.app)
        assert "HELD" in page(pilot.app)
        assert "SIMULATED" in page(pilot.app)
        assert "RECORDED" not in page(pilot.app)
        assert screen.session.case.recording.exchanges[0].response.raw_stop_reason == "tool_calls"
        await pilot.press("Y")
        first, _, second = pilot.app.clipboard.partition(" && ")
        assert first == "inspector providers call-cut --policy strict --only openai_chat/vllm --save rows"
        assert second == "inspector replay rows/call-cut.openai_chat.vllm.session.jsonl"
        await pilot.press("p")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        await pilot.press("y")
        assert pilot.app.clipboard == f"{first} && {second.replace('replay', 'policies')}"
        await pilot.press("escape", "escape")
        assert isinstance(pilot.app.screen, ProvidersScreen)
        assert chosen(await settled_rows(pilot)) == "openai_chat/vllm"


async def test_a_session_of_a_row_can_be_exported_in_every_form(tmp_path: Path) -> None:
    from inspector.export import FORMS

    async with ProvidersApp().run_test(size=LARGE) as pilot:
        await settled_rows(pilot)
        await pilot.press("j", "j", "enter", "space")
        screen = pilot.app.screen
        assert isinstance(screen, SessionScreen)
        exports = next(part for part in screen.parts if isinstance(part, Exports))
        for form in FORMS:
            deliver(screen, lambda form=form: exports.files(form, ""), form, str(tmp_path))
            await pilot.pause()
            # No provider sent what the row says, so there is none to report it to.
            says = "not written: turn 1 is SIMULATED" if form == "bug" else "written: "
            assert screen.note.startswith(says), (form, screen.note)


async def test_a_click_chooses_a_row_and_a_second_one_opens_it() -> None:
    async with ProvidersApp().run_test(size=SMALL) as pilot:
        rows = await settled_rows(pilot)
        y = next(at for at, row in enumerate(screen_rows(pilot.app)) if "generic+leak" in row)
        await pilot.click(offset=(20, y))
        assert chosen(rows) == "openai_chat/generic+leak"
        assert "unclosed markup" in " ".join(view_text(pilot.app).split())
        await pilot.click(offset=(20, y), times=2)
        await pilot.pause()
        assert isinstance(pilot.app.screen, SessionScreen)


async def test_a_dialect_that_says_nothing_opens_nothing() -> None:
    async with ProvidersApp().run_test(size=SMALL) as pilot:
        rows = await settled_rows(pilot)
        await pilot.press("s", *["down"] * list(SCENARIOS).index("paused"), "enter")
        await settled_rows(pilot)
        await pilot.press("/", *"nothing is known", "enter")
        assert "nothing is known of how it says so" in view_text(pilot.app)
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, ProvidersScreen)
        assert "there is no session to open" in page(pilot.app)
        assert rows.current_entry is not None


async def test_search_goes_round_the_rows() -> None:
    async with ProvidersApp().run_test(size=SMALL) as pilot:
        rows = await settled_rows(pilot)
        await pilot.press("/", *"markup", "enter")
        await until(pilot, lambda: chosen(rows) != "openai_chat/openai")
        found = [chosen(rows)]
        for _ in range(3):
            await pilot.press("n")
            found.append(chosen(rows))
        assert found == ["openai_chat/vllm+markup", "openai_chat/generic+leak", "ollama_chat/ollama+markup",
                         "openai_chat/vllm+markup"]
        await pilot.press("N")
        assert chosen(rows) == "ollama_chat/ollama+markup"


async def test_the_table_is_written_as_the_command_prints_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOOP_INSPECTOR_CONFIG", "")
    monkeypatch.chdir(tmp_path)
    async with ProvidersApp().run_test(size=SMALL) as pilot:
        await settled_rows(pilot)
        await pilot.press("e", "minus")
        await settled_rows(pilot)
        await pilot.press("y", "x", "ctrl+u", *"out", "enter")
        words = split(pilot.app.clipboard)
        assert words == ["inspector", "providers", "call-cut", "--budget", "28", "--policy", "strict", "--each"]
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("LINES", "24")
    printed = CliRunner().invoke(main, words[1:])
    assert (tmp_path / "out" / "providers-call-cut.txt").read_text(encoding="utf-8") == printed.stdout
    printed = CliRunner().invoke(main, [*words[1:], "--json"])
    assert json.loads((tmp_path / "out" / "providers-call-cut.json").read_text()) == json.loads(printed.stdout)


async def test_it_opens_from_a_session_and_from_the_table_of_turns(app_on: AppOn) -> None:
    async with app_on().run_test(size=SMALL) as pilot:
        await pilot.press("P")
        await settled_rows(pilot)
        await pilot.press("q")
        assert isinstance(pilot.app.screen, SessionScreen)
    app = LoopInspector()
    async with app.run_test(size=SMALL) as pilot:
        assert isinstance(app.screen, TurnsScreen)
        await pilot.press("P")
        await settled_rows(pilot)
        await pilot.press("escape")
        assert isinstance(app.screen, TurnsScreen)


async def test_keys_before_the_first_rows_do_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, pressed = TableQuery.rows, threading.Event()

    def later(self: TableQuery) -> tuple[TableRow, ...]:
        assert pressed.wait(20)
        return plain(self)

    monkeypatch.setattr(TableQuery, "rows", later)
    async with ProvidersApp().run_test(size=SMALL) as pilot:
        assert "every dialect is run" in page(pilot.app)
        await pilot.press("j", "k", "G", "enter", "e", "y", "n", "/", "x", "enter", "tab", "tab")
        pressed.set()
        rows = await settled_rows(pilot)
        assert rows.count == len(DIALECTS) + len({dialect.api for dialect in DIALECTS})


async def test_ascii_is_ascii_in_every_scenario_at_every_size() -> None:
    async with ProvidersApp(plain=True).run_test(size=LARGE) as pilot:
        for scenario in SCENARIOS:
            for size in share(((60, 15), SMALL, LARGE), scenario):
                await pilot.resize_terminal(*size)
                await settled_rows(pilot)
                rows = screen_rows(pilot.app)
                assert scenario in rows[0]
                assert [row for row in rows if not row.isascii() or len(row) != size[0]] == []
            await pilot.press("right")


async def test_the_columns_follow_the_width() -> None:
    async with ProvidersApp().run_test(size=LARGE) as pilot:
        await settled_rows(pilot)
        assert "seen by" in page(pilot.app)
        await pilot.resize_terminal(*SMALL)
        await pilot.pause()
        row = next(row for row in screen_rows(pilot.app) if "dialect" in row)
        assert row.split() == ["dialect", "raw", "word", "effective", "decision"]
        assert all(len(line) == 80 for line in screen_rows(pilot.app))
