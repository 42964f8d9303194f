"""Another message or tool result in the app: the list of what was given, the editor, the run that it makes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import TextArea

from inspector.tui import live_run
from inspector.tui.app import LoopInspector
from inspector.tui.lists import Choose
from inspector.tui.live_run import AskLive
from inspector.tui.session_files import ReadingOptions, load
from inspector.tui.session_screen import SessionScreen
from inspector.tui.text_editors import InputEditor
from loop_core.values import Stop
from tests.scenes.app import HOSTILE, assistant, body, cut_text, entry, hostile, page, result, until, user, view_text
from tests.scenes.live import answer, streams
from tests.scenes.live_branch import with_a_call as recorded_call
from tests.scenes.loopback import Fake

AppOn = Callable[..., LoopInspector]
WHOLE = '{"path": "report.md", "content": "Three regions."}'


def with_a_call() -> list[dict[str, Any]]:
    """A call that is run, and the answer to its result."""
    ask = user("Put it into report.md.")
    return [entry([ask], body(assistant("Writing it now.", WHOLE), "tool_calls", 20)),
            entry([ask, assistant("Writing it now.", WHOLE), result("ok, 28 bytes")],
                  body(assistant("The report is in report.md."), "stop", 8))]


def session(pilot: Pilot[Any]) -> SessionScreen:
    screen = pilot.app.screen
    assert isinstance(screen, SessionScreen)
    return screen


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (160, 45)])
async def test_another_tool_result_is_a_run_that_says_where_the_recording_stops(
    app_on: AppOn, size: tuple[int, int]
) -> None:
    async with app_on(with_a_call()).run_test(size=size) as pilot:
        session(pilot).step = 4
        await pilot.press("W")
        assert isinstance(pilot.app.screen, Choose)
        assert "▶ 2 result of write_file" in page(pilot.app), "what was given last before the step at the cursor"
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, InputEditor)
        assert pilot.app.screen.query_one(TextArea).text == "ok, 28 bytes"
        assert "given at step 4" in page(pilot.app)
        await pilot.press("!", "f2")
        screen = session(pilot)
        assert screen.run.name == "input 2 of turn 1 edited from step 4"
        assert screen.run.view.replay.settings.edits[0].text == "ok, 28 bytes!"
        assert [step.state.value for step in screen.run.view.steps] == [
            "Request", "EvaluateStop", "ExecuteTools", "Request", "Unrecorded"]
        assert "the recording stops answering at step 5" in page(pilot.app)
        assert "EDITED, NOT ASKED" in page(pilot.app)
        shown = view_text(pilot.app)
        assert "turn 1, input 2 (result of write_file), 12 characters became 13" in shown
        assert "ok, 28 bytes" in shown
        await pilot.press("W", "enter")
        assert pilot.app.screen.query_one(TextArea).text == "ok, 28 bytes!", "the text in force in this run"


async def test_the_only_message_is_edited_at_once_and_given_up_at_the_second_escape(app_on: AppOn) -> None:
    async with app_on(cut_text()).run_test(size=(80, 24)) as pilot:
        await pilot.press("W")
        assert isinstance(pilot.app.screen, InputEditor)
        await pilot.press("f2")
        assert "the text is unchanged" in page(pilot.app)
        await pilot.press(*" Now.", "escape")
        assert "esc again discards what was typed" in page(pilot.app)
        await pilot.press("escape")
        assert len(session(pilot).runs.every) == 1
        await pilot.press("W", *" Now.", "ctrl+s")
        assert [step.state.value for step in session(pilot).run.view.steps] == ["Request", "Unrecorded"]
        await pilot.press("Y")
        assert "--edit '1.1=Write the report. Now.'" in pilot.app.clipboard
        await pilot.press("W", "escape")
        assert isinstance(pilot.app.screen, SessionScreen)


async def test_asking_live_says_first_where_it_goes(app_on: AppOn) -> None:
    async with app_on(cut_text()).run_test(size=(80, 24)) as pilot:
        await pilot.press("W", *" Now.", "f4")
        assert isinstance(pilot.app.screen, AskLive)
        shown = page(pilot.app)
        assert "from step 1 on" in shown
        assert "input 1 of turn 1 edited" in shown
        await pilot.press("escape")
        assert "nothing was sent" in page(pilot.app)


async def test_a_hostile_text_is_shown_by_marks(app_on: AppOn) -> None:
    async with app_on(hostile()[:1]).run_test(size=(120, 35)) as pilot:
        await pilot.press("W")
        area = pilot.app.screen.query_one(TextArea)
        assert not set("\x1b\x07\x9b\u202e\x00") & set(area.text)
        assert "Control characters are shown as marks" in page(pilot.app)
        await pilot.press("f4", "escape")
        await pilot.press("W", "f2")
        assert "the text is unchanged" in page(pilot.app)
        assert HOSTILE[:5] in area.text


async def test_an_edited_result_is_asked_live_from_the_editor(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_run, "REPEAT_TIME", 0.0)  # a test's keys come faster than a hand's
    fake.answers = [streams("openai_chat", answer("openai_chat", "It rains.", Stop.END_TURN))]
    path = recorded_call(fake.url, tmp_path / "s.har")
    app = LoopInspector([path], opened_already=load([path], ReadingOptions()))
    async with app.run_test(size=(80, 24)) as pilot:
        session(pilot).step = len(session(pilot).run.view.steps) - 1
        await pilot.press("W", "enter")
        area = app.screen.query_one(TextArea)
        assert area.text == "snow"
        area.text = "rain"
        await pilot.press("f4")
        assert "Ask turn 1 live again, from step 4 on" in page(app)
        assert fake.got == []
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, SessionScreen) and len(app.screen.runs.every) == 2)
        view = session(pilot).run.view
        assert view.turns[0].joined_text.text == "It rains."
        assert view.turns[0].verdict.word != "EDITED, NOT ASKED"
        assert fake.got[0].json["messages"][-1]["content"] == "rain"
        assert "turn 1, input 2 (result of weather), 4 characters became 4" in view_text(app)
