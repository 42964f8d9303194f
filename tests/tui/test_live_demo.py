"""A live turn without a key, an address or a second terminal: a scenario of the form, a row of the providers."""

import json
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Input

from inspector.config.settings import Settings
from inspector.live.scripted import row_turn
from inspector.provider.dialect_rows import DialectRow
from inspector.report.lines.spans import text_of
from inspector.tui.app import LoopInspector
from inspector.tui.live_forms import LiveForm, keep_typed, last_typed
from inspector.tui.live_screen import UNSEEN_CUT, LiveScreen
from inspector.tui.messages import LiveWanted
from inspector.tui.panels import Cycle
from inspector.tui.providers_screen import ProvidersScreen
from inspector.tui.session_screen import SessionScreen
from inspector.tui.text_view import TextView
from tests.scenes.app import page, until, view_text
from tests.scenes.provider import table_rows

SIZE = (80, 24)
KEY = "sk-live-0123456789abcdefghij"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOP_INSPECTOR_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def listens(url: str) -> bool:
    with socket.socket() as made:
        return made.connect_ex(("127.0.0.1", urlsplit(url).port or 0)) == 0


def live(pilot: Pilot[Any]) -> LiveScreen:
    assert isinstance(pilot.app.screen, LiveScreen)
    return pilot.app.screen


async def test_two_keys_begin_a_scenario_and_its_end_ends_the_server() -> None:
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("L")
        await pilot.pause()
        form = app.screen
        assert isinstance(form, LiveForm)
        await until(pilot, lambda: "A router reports tool calls as complete" in page(app))
        shown = page(app)
        assert "who answers         < lying-router >" in shown
        said = " ".join(shown.replace("│", " ").split())
        assert "Its stop word is false. It cuts once, at 16 tokens, whatever max_tokens is." in said
        assert "no key" in shown
        assert "base URL" not in shown
        assert "Page the team and write it down." in shown
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))
        screen = live(pilot)
        server = screen.driver.start.server
        assert server.key == ""
        assert listens(server.base)
        assert "WAITS  to send the first request" in page(app)
        lies = "the built-in provider answers: lying-router as openai_chat · Its stop word is false."
        await until(pilot, lambda: lies in " ".join(page(app).split()))
        assert server.base in view_text(app)
        await pilot.press("d")
        asks = "to send repair 1, which asks for the held call again"
        await until(pilot, lambda: asks in " ".join(page(app).split()))
        assert lies in " ".join(page(app).split())
        await pilot.press("2")
        assert "this loop      RepairPending" in page(app)
        assert "the agent " not in page(app), "no recorded agent received this answer"
        await pilot.press("D")
        await until(pilot, lambda: screen.is_finished)
        assert screen.driver.stepper.last.turn.terminal == "completed"
        assert screen.run.view.turns[0].verdict.word == "CALL REPAIRED", "the call was held, whatever the router said"
        await until(pilot, lambda: not listens(server.base))


async def test_the_form_says_whether_a_stop_word_is_true_and_gives_a_chosen_wire_format_back() -> None:
    """A scenario may need another wire format than the one that was chosen."""
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("L")
        await until(pilot, lambda: "no key" in page(app))
        scenario, api = (app.screen.query_one(f"#{name}", Cycle) for name in ("scenario", "api"))
        scenario.focus()
        for letter, word in (("n", "Its stop word is false."), ("r", "Its stop word is true."),
                             ("s", "No stop word comes.")):
            await pilot.press(letter)  # no-call, rate-limited, stalled
            await until(pilot, lambda word=word: word in " ".join(page(app).replace("│", " ").split()))
        scenario.value = "lying-router"
        api.value = "ollama_chat"
        for name, shown in (("paused", "anthropic_messages"), ("lying-router", "ollama_chat"),
                            ("commentary", "openai_responses"), ("a real server", "ollama_chat")):
            scenario.value = name
            await until(pilot, lambda shown=shown: api.value == shown)


@pytest.mark.parametrize("size", [(80, 24), (60, 20)])
async def test_a_key_that_was_struck_before_the_turn_was_shown_counts(size: tuple[int, int]) -> None:
    app = LoopInspector()
    async with app.run_test(size=size) as pilot:
        await pilot.press("L")
        await until(pilot, lambda: "no key" in page(app))
        for key, char in (("enter", "\r"), ("D", "D")):
            app.post_message(Key(key, char))
        await until(pilot, lambda: isinstance(app.screen, LiveScreen) and app.screen.is_finished)
        assert live(pilot).driver.stepper.last.turn.terminal == "completed"
        assert "was pressed before" not in page(app)


async def test_a_cut_that_no_byte_shows_is_said_where_the_verdict_cannot_know_it() -> None:
    row = next(row for row in table_rows("text-cut") if isinstance(row, DialectRow) and row.blind)
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        app.post_message(LiveWanted(row_turn(row, Settings())))
        await until(pilot, lambda: isinstance(app.screen, LiveScreen) and app.screen.is_finished)
        verdict = live(pilot).run.view.turns[0].verdict
        assert (verdict.word, verdict.complete) == ("MAYBE CUT", False)
        await pilot.press("home")  # the note at the foot is gone at the next key, and this line is not
        assert UNSEEN_CUT in page(app)
        assert f"the built-in provider answers: text-cut as {row.name}" in page(app)
        await pilot.press("V")
        shown = app.screen.query_one(TextView).sheet
        assert {UNSEEN_CUT, row.blind} <= {text_of(shown.line(at)[1:]) for at in range(len(shown))}


async def test_the_screen_says_what_the_built_in_provider_plays_and_warns_of_nothing_that_bytes_show() -> None:
    row = next(row for row in table_rows("text-cut") if isinstance(row, DialectRow) and not row.blind)
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        app.post_message(LiveWanted(row_turn(row, Settings())))
        await until(pilot, lambda: isinstance(app.screen, LiveScreen) and app.screen.is_finished)
        assert f"the built-in provider answers: text-cut as {row.name}" in page(app)
        assert UNSEEN_CUT not in page(app)


async def test_leaving_the_app_in_the_middle_of_a_turn_ends_the_server() -> None:
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("L")
        await pilot.pause()
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))
        base = live(pilot).driver.start.server.base
        await pilot.press("d")
        await pilot.press("ctrl+q")
    assert not listens(base)


async def test_a_screen_that_fails_ends_the_server_too() -> None:
    app, bases = LoopInspector(), []

    def fails() -> None:
        raise RuntimeError("drawn no more")

    async def crash() -> None:
        async with app.run_test(size=SIZE) as pilot:
            await pilot.press("L")
            await pilot.pause()
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, LiveScreen))
            bases.append(live(pilot).driver.start.server.base)
            app.screen.call_later(fails)
            await until(pilot, lambda: app.return_code is not None)

    with pytest.raises(RuntimeError):
        await crash()
    assert bases
    assert not listens(bases[0])


async def test_the_form_has_the_last_values_again_and_a_real_server_has_its_own_fields() -> None:
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("L")
        await pilot.pause()
        await pilot.press("down", "t")  # a letter goes to the next scenario that begins with it
        await pilot.pause()
        assert app.screen.query_one("#scenario", Cycle).value == "text"
        await until(pilot, lambda: "A text that is complete" in page(app))
        await pilot.press("p")
        await pilot.pause()
        assert app.screen.query_one("#api", Cycle).value != "openai_chat", "one that can say that it pauses"
        await pilot.press("t")
        app.screen.query_one("#api", Cycle).value = "openai_chat"
        app.screen.query_one("#prompt", Input).value = "What happened?"
        app.screen.query_one("#assignments", Input).value = "max_tokens=20 x"
        await pilot.press("enter")
        await pilot.pause()
        assert "✖ " in page(app)
        app.screen.query_one("#assignments", Input).value = "max_tokens=20"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))
        assert '"What happened?"' in view_text(app)
        assert '"max_tokens": 20' in view_text(app)
        await pilot.press("D")
        await until(pilot, lambda: live(pilot).is_finished)
        await pilot.press("L")
        await pilot.pause()
        assert app.screen.query_one("#scenario", Cycle).value == "text"
        assert app.screen.query_one("#prompt", Input).value == "What happened?"
        app.screen.query_one("#scenario", Cycle).value = "a real server"
        await pilot.pause()
        assert "base URL" in page(app)
        assert "OPENAI_API_KEY" in page(app)
    keep_typed({"scenario": "a real server", "model": "m"})
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("L")
        await pilot.pause()
        await pilot.press(*"Hi.")
        assert app.screen.query_one("#prompt", Input).value == "Hi.", "it takes typing at once"


def test_no_credential_is_ever_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "correct-horse-battery-9")
    monkeypatch.setenv("OTHER", "x")
    keep_typed({"prompt": f"use {KEY}", "base": "http://me:hunter2secret@example.org", "model": "m", "key_env": KEY,
                "tools": "correct-horse-battery-9.json", "api": "openai_chat"})
    assert last_typed() == {"model": "m", "api": "openai_chat"}
    keep_typed({"key_env": "MY_KEY"})
    assert last_typed() == {"key_env": "MY_KEY"}
    files = list(tmp_path.rglob("live-form.json"))
    assert len(files) == 1
    assert files[0].stat().st_mode & 0o077 == 0
    for odd in (json.dumps([1]), "[" * 200_000):
        files[0].write_text(odd)
        assert last_typed() == {}


async def test_a_provider_s_row_is_played_live_and_opened_as_simulated() -> None:
    app = LoopInspector()
    async with app.run_test(size=(160, 45)) as pilot:
        await pilot.press("P")
        await until(pilot, lambda: "vllm" in page(app))
        screen = app.screen
        assert isinstance(screen, ProvidersScreen)
        table = screen._dialects
        at = next(index for index in range(table.count) if table.selectable(index)
                  and "vllm" in table.list_lines[index].row.name)  # type: ignore[union-attr]
        table.choose(at)
        row = table.current_entry.row  # type: ignore[union-attr]
        screen.action_play()
        assert screen.note.startswith("playing openai_chat/vllm"), "at once: the server takes a moment"
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))
        played = live(pilot)
        base = played.driver.start.server.base
        await until(pilot, lambda: played.is_finished)
        first = played.run.view.responses[0]
        assert first.exchange.response.raw_stop_reason == row.exchange.response.raw_stop_reason  # type: ignore[union-attr]
        assert first.judgement.stop.normalized is row.judgement.stop.normalized  # type: ignore[union-attr]
        await until(pilot, lambda: not listens(base))
        await pilot.press("q")
        await pilot.pause()
        assert app.screen is screen
        await pilot.press("enter")
        await until(pilot, lambda: type(app.screen) is SessionScreen)
        assert "SIMULATED" in page(app)
