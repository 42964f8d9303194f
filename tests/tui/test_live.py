"""A live turn in the app, against a server on loopback: each key, each path, and what is left when it is over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, TextArea

from inspector.config.settings import Settings
from inspector.live.headless import LiveOptions, LiveStart, start
from inspector.live.stepper import Phase
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.facts import View, view
from inspector.sessions import open_paths
from inspector.tui.app import LoopInspector
from inspector.tui.lists import Choose
from inspector.tui.live_controls import CallsForm, ResultEditor
from inspector.tui.live_forms import BudgetForm, LiveForm
from inspector.tui.live_screen import LiveScreen
from inspector.tui.panels import Cycle
from inspector.tui.run_views import SideBySide
from inspector.tui.session_screen import SessionScreen
from inspector.tui.text_editors import BodyEditor, NotJSONError, body_of
from inspector.tui.text_view import TextView
from inspector.tui.turns_screen import TurnsScreen
from loop_core.client.exchange import Connection, Retries, Timeouts
from loop_core.turn.state import Finish, RunTools, Send
from loop_core.values import Stop, ToolCall, Usage
from tests.scenes.app import Album, check_wheel, page, until, view_text
from tests.scenes.app import album as album
from tests.scenes.live import ERROR, answer, streams
from tests.scenes.loopback import Fake, Peer

ROOT = Path(__file__).parents[2]
A = "openai_chat"
KEY = "sk-live-0123456789abcdefghij"
CUT = streams(A, answer(A, "One, two, ", Stop.MAX_TOKENS, usage=Usage(3, 20)))
END = streams(A, answer(A, "three.", Stop.END_TURN, usage=Usage(3, 4)))
CALL = ToolCall("call_1", "weather", '{"city":"Oslo"}', closed=True)
OTHER = ToolCall("call_2", "clock", '{"zone":"UTC"}', closed=True)
LONG = answer(A, "One, two, three, four, five, six, seven.", Stop.END_TURN)
TOOLS = '[{"name": "weather", "parameters": {"type": "object"}, "result": "sun"}, {"name": "clock"}]'
SIZE = (80, 24)


PATIENT = Connection(Timeouts(connect=2, silence=30, whole=30, poll=0.01), Retries(most=2, longest=1, first=0.01))


def live(begun: LiveStart, line: Connection = PATIENT, **options: Any) -> LoopInspector:
    """The app on a live turn that gives up quickly."""
    app = LoopInspector(live=begun, **options)
    app._live_screen = lambda start: LiveScreen(start, line)  # type: ignore[method-assign]
    return app


def live_start(fake: Fake, folder: Path, **typed: Any) -> LiveStart:
    given = {"base": fake.url, "prompt": "Count.", "record": str(folder / "s.jsonl"),
             "assignments": ("max_tokens=20",), **typed}
    return start(LiveOptions(A, "m", **given), Settings())


def start_with_tools(fake: Fake, folder: Path, **typed: Any) -> LiveStart:
    (folder / "tools.json").write_text(TOOLS)
    return live_start(fake, folder, tools=str(folder / "tools.json"), **typed)


def again(folder: Path) -> View:
    return view(replay(open_case(open_paths([str(folder / "s.jsonl")]))))


def screen(pilot: Pilot[Any]) -> LiveScreen:
    found = pilot.app.screen_stack[-1]
    assert isinstance(found, LiveScreen)
    return found


def waits(pilot: Pilot[Any], *effects: type) -> Callable[[], bool]:
    def is_waiting() -> bool:
        live = screen(pilot).driver.live
        return live.phase is Phase.WAITING and isinstance(live.pending, effects)

    return is_waiting


def over(pilot: Pilot[Any]) -> Callable[[], bool]:
    return lambda: screen(pilot).is_finished


class HeldAnswer:
    """An answer that is sent piece by piece, as far as a test lets it."""

    def __init__(self, pieces: list[bytes], first: int) -> None:
        self.pieces, self.first, self.go = pieces, first, threading.Event()

    def __call__(self, peer: Peer) -> None:
        peer.head()
        for piece in self.pieces[: self.first]:
            peer.send(piece)
        self.go.wait(30)
        for piece in self.pieces[self.first :]:
            peer.send(piece)


# -- stepping --------------------------------------------------------------------------------------------------------


async def test_a_cut_answer_is_stepped_to_its_end_and_becomes_its_recording(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [CUT, END]
    async with live(live_start(fake, tmp_path)).run_test(size=SIZE) as pilot:
        await pilot.pause()
        assert "WAITS  to send the first request of the turn" in page(pilot.app)
        assert '"max_tokens": 20' in view_text(pilot.app)
        assert f"POST {fake.url}/v1/chat/completions" in view_text(pilot.app)
        assert fake.got == []
        await pilot.press("space")
        assert screen(pilot).note == "this is the last step · d runs the waiting step"
        await pilot.press("d")
        await until(pilot, waits(pilot, Send))
        assert len(fake.got) == 1
        assert "One, two, " in view_text(pilot.app)
        assert "NEXT REQUEST" in view_text(pilot.app)
        assert "continuation 1" in page(pilot.app)
        assert "RequestContinuation LIVE \"length\" → max_tokens attempts 1/3" in page(pilot.app)
        await pilot.press("d")
        await until(pilot, waits(pilot, Finish))
        assert "the turn ended: completed" in page(pilot.app)
        await pilot.press("d")
        await until(pilot, over(pilot))
        assert "SEAM UNVERIFIED" in page(pilot.app), "the server was asked to quote the last words, and did not"
        assert "LIVE" in page(pilot.app), "it is a recording now, made from a live turn on this very screen"
        assert "RECORDED" not in page(pilot.app)
        assert "recorded in" in page(pilot.app)
        steps = len(screen(pilot).run.view.steps)
        await pilot.press("space")
        assert screen(pilot).note == "this is the last step"
        await pilot.press("backspace", "backspace")
        assert screen(pilot).step == steps - 3
        await pilot.press("3")
        assert "[DONE]" in view_text(pilot.app)
        await pilot.press("e", *"0", "enter")
        assert len(screen(pilot).runs.every) == 2, "what-ifs work on the recording"
    assert [turn.joined_text.text for turn in again(tmp_path).turns] == ["One, two, three."]


async def test_the_wheel_scrolls_the_pane_under_it(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [CUT]
    async with live(live_start(fake, tmp_path)).run_test(size=(120, 15)) as pilot:
        await pilot.press("d")
        await until(pilot, waits(pilot, Send))
        await check_wheel(pilot)


async def test_keys_mean_something_only_where_they_can(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [CUT]
    async with live(live_start(fake, tmp_path)).run_test(size=(160, 45)) as pilot:
        await pilot.pause()

        def keys() -> set[str]:
            return {found.binding.id or "" for found in pilot.app.screen.active_bindings.values() if found.enabled}

        assert {"live.do", "live.run", "live.edit", "live.body", "live.cancel"} <= keys()
        assert keys().isdisjoint({"live.pause", "live.again", "live.say", "limits", "tune", "export", "mark"})
        for key in ("x", "o"):
            await pilot.press(key)
            assert f"{key} works when the turn is over (D runs it to its end): " in page(pilot.app)
        await pilot.press("question_mark")
        await pilot.pause()
        assert "Live turn" in view_text(pilot.app)
        assert "Carry out what waits" in view_text(pilot.app)
        await pilot.press("escape", "A")
        await until(pilot, waits(pilot, Finish))
        assert {"live.do", "live.say"} <= keys()
        assert keys().isdisjoint({"live.cancel", "live.body"})
        await pilot.press("d")
        await until(pilot, over(pilot))
        assert not any(name.startswith("live.") for name in keys())
        assert {"limits", "tune", "export", "mark"} <= keys()
        assert "nothing was sent" in page(pilot.app)
    assert not (tmp_path / "s.jsonl").exists()


async def test_a_turn_without_an_answer_is_compared(fake: Fake, tmp_path: Path) -> None:
    async with live(live_start(fake, tmp_path)).run_test(size=SIZE) as pilot:
        await pilot.press("colon", *"compare 1", "enter")
        assert isinstance(pilot.app.screen, SideBySide)
        assert "Turn 1 in both runs" in page(pilot.app)


async def test_before_an_answer_nothing_is_put_side_by_side(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [CUT]
    async with live(live_start(fake, tmp_path)).run_test(size=SIZE) as pilot:
        await pilot.press("v")
        assert "there is no answer yet to show side by side" in page(pilot.app)
        await pilot.press("d")
        await until(pilot, lambda: bool(screen(pilot).run.view.steps[-1].turn.answers))
        await pilot.press("v")
        assert "there is no seam in this turn" in view_text(pilot.app)


async def test_keys_are_remapped_and_the_screen_names_the_new_ones(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [CUT]
    async with live(live_start(fake, tmp_path), keys={"live.do": "f5"}).run_test(size=SIZE) as pilot:
        await pilot.pause()
        assert "f5 sends" in page(pilot.app)
        await pilot.press("d")
        await pilot.pause()
        assert fake.got == []
        await pilot.press("f5")
        await until(pilot, lambda: len(fake.got) == 1)
        await until(pilot, waits(pilot, Send))


async def test_run_and_pause(fake: Fake, tmp_path: Path) -> None:
    held = HeldAnswer(answer(A, "and a half, ", Stop.MAX_TOKENS), 1)
    fake.answers = [CUT, held, END]
    async with live(live_start(fake, tmp_path)).run_test(size=SIZE) as pilot:
        await pilot.press("D")
        await until(pilot, lambda: len(fake.got) == 2)
        await pilot.press("a")
        held.go.set()
        await until(pilot, waits(pilot, Send))
        assert len(fake.got) == 2
        await pilot.press("D")
        await until(pilot, over(pilot))
    assert again(tmp_path).turns[0].joined_text.text == "One, two, and a half, three."


# -- editing ---------------------------------------------------------------------------------------------------------


async def test_budget_and_limits_are_edited_before_the_request_leaves(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [CUT, END]
    async with live(live_start(fake, tmp_path)).run_test(size=SIZE) as pilot:
        await pilot.press("i")
        await pilot.pause()
        assert isinstance(pilot.app.screen, BudgetForm)
        field = pilot.app.screen.query_one("#max_tokens", Input)
        assert field.value == "20"
        field.value = "many"
        await pilot.press("enter")
        assert "✖ max_tokens: 'many' is not a whole number" in page(pilot.app)
        field.value = "33"
        pilot.app.screen.query_one("#continuation_max_attempts", Input).value = "7"
        pilot.app.screen.query_one("#others", Input).value = "max_tool_steps=2"
        await pilot.press("enter")
        await pilot.pause()
        assert '"max_tokens": 33' in view_text(pilot.app)
        assert "max_tokens edited" in page(pilot.app)
        await pilot.press("d")
        await until(pilot, waits(pilot, Send))
        await pilot.press("i")
        await pilot.pause()
        pilot.app.screen.query_one("#continuation_max_attempts", Input).value = "0"
        await pilot.press("enter")
        assert "cannot be changed before this step" in page(pilot.app)
        await pilot.press("escape", "D")
        await until(pilot, over(pilot))
        assert "tokens 18%" in page(pilot.app), "24 tokens of four times 33: nearer to its end than 1 of 7"
    assert [got.json["max_tokens"] for got in fake.got] == [33, 33]
    assert again(tmp_path).turns[0].final_turn.limits.continuation_max_attempts == 7


async def test_a_body_is_edited_and_a_wrong_one_is_not_sent(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [END]
    async with live(live_start(fake, tmp_path)).run_test(size=SIZE) as pilot:
        await pilot.press("I")
        await pilot.pause()
        assert isinstance(pilot.app.screen, BodyEditor)
        area = pilot.app.screen.query_one(TextArea)
        body = json.loads(area.text)
        area.text = '{\n  "model": "m",\n  "messages": [,]\n}'
        await pilot.press("f2")
        await pilot.pause()
        assert "✖ line 3, column 16: Expecting value" in page(pilot.app)
        assert area.cursor_location == (2, 15)
        area.text = '{"model": "m"}'
        await pilot.press("f2")
        await pilot.pause()
        assert "it holds no messages" in page(pilot.app)
        await pilot.press("escape")
        await pilot.pause()
        assert "esc again discards what was typed" in page(pilot.app)
        area.text = json.dumps({**body, "temperature": 0.5})
        await pilot.press("f2")
        await pilot.pause()
        assert fake.got == []
        assert '"temperature": 0.5' in view_text(pilot.app)
        await pilot.press("D")
        await until(pilot, over(pilot))
    assert fake.got[0].json == {**body, "temperature": 0.5}
    assert again(tmp_path).responses[0].exchange.request_json == fake.got[0].json


@pytest.mark.parametrize(("text", "said"), [
    ("{", "line 1, column 2: Expecting property name enclosed in double quotes"),
    ('{"a": 1,\n "a": 2}', "line 2, column 2: the key 'a' occurs twice"),
    ('{"a":\n NaN}', "line 2, column 2: NaN is not JSON"),
    ("[]", "line 1, column 1: expected an object"),
    ("[" * 100_000, "line 1, column 1: nested too deeply"),
    ('{"seed": %s}' % ("9" * 5_000), "line 1, column 1: a number has too many digits"),
])
def test_what_is_no_body_says_where(text: str, said: str) -> None:
    with pytest.raises(NotJSONError) as why:
        body_of(text)
    assert str(why.value) == said


# -- streaming -------------------------------------------------------------------------------------------------------


async def test_text_appears_as_it_streams_and_stepping_back_does_not_break_it(fake: Fake, tmp_path: Path) -> None:
    held = HeldAnswer(answer(A, "One, two, three, and four.", Stop.END_TURN), 2)
    fake.answers = [CUT, held]
    async with live(live_start(fake, tmp_path)).run_test(size=SIZE) as pilot:
        await pilot.press("d")
        await until(pilot, waits(pilot, Send))
        await pilot.press("d")
        await until(pilot, lambda: "three" in view_text(pilot.app))
        assert "STREAMING" in page(pilot.app)
        assert "segment 2 · still coming" in view_text(pilot.app)
        assert "quoted anchor, 10 characters cut" in view_text(pilot.app)
        assert view_text(pilot.app).count("One, two, ") == 2, "the first segment, and what was cut of the second"
        await until(pilot, lambda: "chars" in page(pilot.app).splitlines()[-2])
        assert "LIVE" in page(pilot.app).splitlines()[-2]
        for tab, seen in (("2", "three"), ("3", "data: "), ("6", "continuation_attempt"), ("1", "still coming")):
            await pilot.press(tab)
            await until(pilot, lambda seen=seen: seen in view_text(pilot.app))
        await pilot.press("backspace", "backspace")
        assert "still coming" not in view_text(pilot.app)
        at = screen(pilot).step
        held.go.set()
        await until(pilot, waits(pilot, Finish))
        assert screen(pilot).step == at, "whoever looked back still looks back"
        await pilot.press("d")
        await until(pilot, over(pilot))
    assert again(tmp_path).turns[0].joined_text.text == "One, two, three, and four."


async def test_a_key_pressed_while_an_answer_comes_says_when_it_works_until_it_does(
    fake: Fake, tmp_path: Path
) -> None:
    """It had no use, as the note went on to say beside the effect that waited for this key."""
    held = HeldAnswer(answer(A, "One, two, ", Stop.MAX_TOKENS), 2)
    fake.answers = [held]
    async with live(live_start(fake, tmp_path)).run_test(size=(160, 45)) as pilot:
        await pilot.press("d")
        await until(pilot, lambda: len(fake.got) == 1)
        for key in ("i", "I", "d"):
            await pilot.press(key)
            await pilot.pause()
            assert f"{key} works once what is under way is done: " in page(pilot.app)
        held.go.set()
        await until(pilot, waits(pilot, Send))
        assert "under way" not in page(pilot.app)


async def test_a_long_stream_follows_its_end_until_one_scrolls_away(fake: Fake, tmp_path: Path) -> None:
    held = HeldAnswer(answer(A, "".join(f"line {number}\n" for number in range(400)), Stop.END_TURN), 150)
    fake.answers = [held]
    async with live(live_start(fake, tmp_path)).run_test(size=SIZE) as pilot:
        await pilot.press("d")
        await until(pilot, lambda: "line 100" in view_text(pilot.app))
        text = pilot.app.screen.query_one(TextView)
        await until(pilot, lambda: text.scroll_offset.y == text.virtual_size.height - text.size.height > 0)
        await pilot.press("g")
        assert text.scroll_offset.y == 0
        held.go.set()
        await until(pilot, waits(pilot, Finish))
        await until(pilot, lambda: "ends in Complete" in page(pilot.app))
        await pilot.press("d")
        await until(pilot, over(pilot))


@pytest.mark.parametrize("tab", ["1", "2", "3"])
async def test_a_cancel_in_the_middle_is_cancelled_and_no_error(fake: Fake, tmp_path: Path, tab: str) -> None:
    fake.answers = [streams(A, LONG[:3], Peer.hold)]
    async with live(live_start(fake, tmp_path)).run_test(size=SIZE) as pilot:
        await pilot.press(tab, "d")
        await until(pilot, lambda: "two" in view_text(pilot.app))
        await pilot.press("A")
        await until(pilot, waits(pilot, Finish))
        assert "the turn ended: cancelled" in page(pilot.app)
        await pilot.press("d")
        await until(pilot, over(pilot))
        assert "CANCELLED" in page(pilot.app)
        assert screen(pilot).exit_code == 130
    assert again(tmp_path).turns[0].terminal == "cancelled"
    assert "two" in again(tmp_path).turns[0].joined_text.text


# -- tools -----------------------------------------------------------------------------------------------------------


async def test_each_call_is_answered_as_the_operator_says(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [streams(A, answer(A, "", Stop.TOOL_CALL, CALL, OTHER)), END]
    async with live(start_with_tools(fake, tmp_path)).run_test(size=SIZE) as pilot:
        await pilot.press("d")
        await until(pilot, waits(pilot, RunTools))
        assert "to answer 2 calls, 1 without an answer" in page(pilot.app)
        assert '"city": "Oslo"' in view_text(pilot.app)
        await pilot.press("i")
        await pilot.pause()
        assert isinstance(pilot.app.screen, CallsForm)
        assert "answered by its tool" in page(pilot.app)
        await pilot.press("f")
        assert "cannot be taken from a recording: choose another answer" in page(pilot.app)
        await pilot.press("z")
        await pilot.pause()
        assert pilot.app.screen.note.startswith("z works one screen back (esc): "), "the live turn is such a session"
        await pilot.press("D")
        assert pilot.app.screen.note.startswith("D works one screen back (esc): Carry out")
        await pilot.press("d")  # in another session it compares
        assert pilot.app.screen.note.startswith("d works one screen back (esc): Carry out")
        await pilot.press("down", "t")
        await pilot.pause()
        assert isinstance(pilot.app.screen, ResultEditor)
        await pilot.press(*"no clock", "f3", "f2")
        await pilot.pause()
        assert "answered by hand" in page(pilot.app)
        await pilot.press("up", "x", "r", "escape")
        await pilot.pause()
        assert "to answer 2 calls ·" in page(pilot.app)
        await pilot.press("D")
        await until(pilot, over(pilot))
    assert [message["content"] for message in fake.got[1].json["messages"][-2:]] == ["sun", "no clock"]
    notes = [act.value for given in again(tmp_path).inputs for act in given.acts if act.kind == "note"]
    assert notes == ["weather (call_1): run by its callable", "clock (call_2): typed by the operator"]


async def test_a_result_comes_from_a_recording(fake: Fake, tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    fake.answers = [streams(A, answer(A, "", Stop.TOOL_CALL, CALL)), END]
    async with live(start_with_tools(fake, tmp_path / "before")).run_test(size=SIZE) as pilot:
        await pilot.press("D")
        await until(pilot, over(pilot))
    fake.got.clear()
    begun = live_start(fake, tmp_path, messages=None, results=str(tmp_path / "before" / "s.jsonl"),
                       tools=str(tmp_path / "before" / "tools.json"))
    async with live(begun).run_test(size=SIZE) as pilot:
        await pilot.press("d")
        await until(pilot, waits(pilot, RunTools))
        assert "recorded: the same arguments" in view_text(pilot.app)
        await pilot.press("i", "x", "f", "escape", "D")
        await until(pilot, over(pilot))
    assert fake.got[1].json["messages"][-1]["content"] == "sun"


async def test_a_cut_call_is_held_then_repaired(fake: Fake, tmp_path: Path) -> None:
    cut = ToolCall("call_1", "weather", '{"city":"Os', closed=True)
    fake.answers = [streams(A, answer(A, "", Stop.MAX_TOKENS, cut)),
                    streams(A, answer(A, "", Stop.TOOL_CALL, CALL)), END]
    async with live(start_with_tools(fake, tmp_path)).run_test(size=SIZE) as pilot:
        await pilot.press("d")
        await until(pilot, waits(pilot, Send))
        assert "to send repair 1, which asks for the held call again" in page(pilot.app)
        assert "HELD weather" in view_text(pilot.app)
        await pilot.press("i")
        await pilot.pause()
        assert isinstance(pilot.app.screen, BudgetForm), "no form answers a held call"
        await pilot.press("escape", "D")
        await until(pilot, over(pilot))
        assert "CALL REPAIRED" in page(pilot.app)


# -- what goes wrong -------------------------------------------------------------------------------------------------


async def test_a_wait_counts_down_and_is_cancelled(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [lambda peer: peer.whole(429, ERROR, retry_after="40")]
    line = Connection(Timeouts(connect=2, silence=5, whole=5), Retries(most=2, longest=60))
    async with live(live_start(fake, tmp_path), line).run_test(size=SIZE) as pilot:
        await pilot.press("d")
        await until(pilot, lambda: "sent again in 39 s" in page(pilot.app))
        assert "RETRIES  HTTP 429" in page(pilot.app)
        assert "request 1  HTTP 429" in view_text(pilot.app)
        await pilot.press("A")
        await until(pilot, waits(pilot, Finish))
        assert "cancelled" in page(pilot.app)


async def test_a_refusal_is_told_and_can_be_edited_and_sent_again(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [lambda peer: peer.whole(401, {"error": {"message": "who are you"}}), END]
    async with live(live_start(fake, tmp_path)).run_test(size=SIZE) as pilot:
        await pilot.press("d")
        await until(pilot, lambda: screen(pilot).driver.live.failed_answer is not None)
        assert "NO ANSWER  HTTP 401, who are you" in page(pilot.app)
        assert "Traceback" not in page(pilot.app)
        await pilot.press("i")
        await pilot.pause()
        pilot.app.screen.query_one("#max_tokens", Input).value = "9"
        await pilot.press("enter", "T")
        await until(pilot, waits(pilot, Finish))
        await pilot.press("d")
        await until(pilot, over(pilot))
    assert [got.json["max_tokens"] for got in fake.got] == [20, 9]


async def test_nobody_there_is_told_and_the_turn_can_end(fake: Fake, tmp_path: Path) -> None:
    line = Connection(Timeouts(connect=2, silence=1, whole=5), Retries(most=0))
    async with live(live_start(fake, tmp_path, base="http://127.0.0.1:1"), line).run_test(size=SIZE) as pilot:
        await pilot.press("d")
        await until(pilot, lambda: "no connection to 127.0.0.1:1" in page(pilot.app))
        await pilot.press("d", "d", "d")
        await until(pilot, over(pilot))
    assert len(again(tmp_path).responses) == 1


async def test_an_answer_of_no_format_ends_the_turn_and_the_recording_shows_it(fake: Fake, tmp_path: Path) -> None:
    def page_of_a_proxy(peer: Peer) -> None:
        peer.head(kind="text/html")
        peer.send(b"<html>hello</html>")

    fake.answers = [page_of_a_proxy]
    async with live(live_start(fake, tmp_path)).run_test(size=SIZE) as pilot:
        await pilot.press("D")
        await until(pilot, over(pilot))
        assert "the body is not an answer: it begins with '<html>hello</html>'" in " ".join(page(pilot.app).split())
        assert "ERROR" in page(pilot.app)
        assert screen(pilot).exit_code == 6


async def test_a_recording_that_cannot_begin_stops_the_sending(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [END]
    begun = live_start(fake, tmp_path)
    (tmp_path / "s.jsonl").write_text("mine\n")
    async with live(begun).run_test(size=SIZE) as pilot:
        await pilot.press("D")
        await until(pilot, lambda: "the file exists" in page(pilot.app))
    assert fake.got == []
    assert (tmp_path / "s.jsonl").read_text() == "mine\n"


# -- the end ---------------------------------------------------------------------------------------------------------


async def test_something_more_is_said(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [END]
    async with live(live_start(fake, tmp_path)).run_test(size=SIZE) as pilot:
        await pilot.press("d")
        await until(pilot, waits(pilot, Finish))
        await pilot.press("M", *"And then?", "enter")
        await until(pilot, waits(pilot, Send))
        assert "turn 2/2" in page(pilot.app)
        assert "And then?" in view_text(pilot.app)
        await pilot.press("D")
        await until(pilot, over(pilot))
    assert len(again(tmp_path).turns) == 2


@pytest.mark.parametrize("key", ["q", "ctrl+q"])
async def test_leaving_while_it_streams_closes_the_recording(fake: Fake, tmp_path: Path, key: str) -> None:
    fake.answers = [streams(A, LONG[:3], Peer.hold)]
    app = live(live_start(fake, tmp_path))
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("d")
        await until(pilot, lambda: "two" in view_text(app))
        await pilot.press(key)
        if key == "q":
            await pilot.pause()
            assert isinstance(app.screen, Choose)
            assert "enter chooses · esc stays" in page(app), "one of the words to choose is to leave"
            await pilot.press("escape")
            await pilot.pause()
            assert screen(pilot).driver.live.phase is Phase.STREAMING, "whoever stays goes on"
            await pilot.press("q", "down", "enter")
        await until(pilot, lambda: app._exit)
    assert app.return_code == 130
    lines = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    assert [line["type"] for line in lines[-3:]] == ["end", "cancel", "about"]
    assert lines[-3]["problem"] == "cancelled"
    assert again(tmp_path).turns[0].terminal == "cancelled"


async def test_a_live_turn_says_which_key_is_missing_before_anything_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOP_INSPECTOR_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("L")
        await pilot.pause()
        for name, value in (("scenario", "a real server"), ("api", "openai_chat")):
            app.screen.query_one(f"#{name}", Cycle).value = value
        for name, value in (("model", "m"), ("prompt", "Count."), ("assignments", "max_tokens=7")):
            app.screen.query_one(f"#{name}", Input).value = value
        await pilot.press("enter")
        await pilot.pause()
        assert "✖ no key: set OPENAI_API_KEY: api.openai.com needs a key" in page(app)


async def test_the_form_begins_a_turn_from_the_table_of_turns_and_says_what_is_wrong(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.answers = [END]
    monkeypatch.setenv("LOOP_INSPECTOR_DATA", str(tmp_path / "data"))
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        assert isinstance(app.screen, TurnsScreen)
        await pilot.press("L")
        await pilot.pause()
        assert isinstance(app.screen, LiveForm)
        app.screen.query_one("#scenario", Cycle).value = "a real server"
        await pilot.press("enter")
        assert "✖ the model is not named" in page(app)
        for name, value in (("model", "m"), ("base", fake.url), ("prompt", "Count."), ("assignments", "max_tokens=x")):
            app.screen.query_one(f"#{name}", Input).value = value
        await pilot.press("enter")
        assert "✖ max_tokens: 'x' is not a whole number" in page(app)
        app.screen.query_one("#assignments", Input).value = "max_tokens=7"
        await pilot.press("enter")
        await pilot.pause()
        await pilot.press("D")
        await until(pilot, over(pilot))
        await pilot.press("q")
        await pilot.pause()
        assert isinstance(app.screen, TurnsScreen)
    assert fake.got[0].json["max_tokens"] == 7


async def test_the_form_says_before_enter_that_a_format_needs_max_tokens_and_names_its_own_fields(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOP_INSPECTOR_DATA", str(tmp_path / "data"))
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("L")
        await pilot.pause()
        app.screen.query_one("#scenario", Cycle).value = "a real server"
        for api, needed in (("anthropic_messages", True), ("openai_chat", False)):
            app.screen.query_one("#api", Cycle).value = api
            await pilot.pause()
            assert (f"{api} needs max_tokens: write it into limits" in page(app)) is needed
        app.screen.query_one("#scenario", Cycle).value = "text"
        app.screen.query_one("#api", Cycle).value = "anthropic_messages"
        await pilot.pause()
        assert "needs max_tokens" not in page(app), "a scenario has one"
        app.screen.query_one("#scenario", Cycle).value = "a real server"
        for name, value in (("model", "m"), ("base", "nowhere"), ("prompt", "Count."), ("assignments", "max_tokens=7")):
            app.screen.query_one(f"#{name}", Input).value = value
        await pilot.press("enter")
        assert "✖ base URL: expected http://HOST" in page(app)


async def test_it_is_in_the_palette_of_every_screen(app_on: Callable[..., LoopInspector]) -> None:
    app = app_on()
    async with app.run_test(size=SIZE) as pilot:
        assert isinstance(app.screen, SessionScreen)
        assert "live" in {found.binding.id for found in app.screen.active_bindings.values()}
        await pilot.press("L")
        await pilot.pause()
        assert isinstance(app.screen, LiveForm)


async def test_no_screen_picture_or_clipboard_holds_the_key(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", KEY)
    body = answer(A, f"Your key is {KEY}, is it not?", Stop.END_TURN)
    fake.answers = [lambda peer: peer.whole(401, {"error": {"message": f"wrong {KEY}"}}),
                    HeldAnswer(body, len(body) - 1)]
    app = live(live_start(fake, tmp_path, key_env="MINE"))
    seen: list[str] = []
    async with app.run_test(size=(160, 45)) as pilot:
        async def look() -> None:
            for tab in "123":
                await pilot.press(tab, "y")
                await pilot.pause()
                seen.extend([page(app), view_text(app), app.export_screenshot(), app.clipboard])
            await pilot.press("1")

        await look()
        await pilot.press("d")
        await until(pilot, lambda: screen(pilot).driver.live.failed_answer is not None)
        await look()
        await pilot.press("I")
        await pilot.pause()
        seen.append(page(app))
        await pilot.press("escape", "T")
        await until(pilot, lambda: "is it not" in view_text(app))
        await look()
        fake.answers[1].go.set()
        await until(pilot, waits(pilot, Finish))
        await pilot.press("d")
        await until(pilot, over(pilot))
        await look()
    assert KEY in fake.got[0].headers["authorization"]
    assert [at for at, text in enumerate(seen) if KEY in text] == []
    assert KEY.encode() not in (tmp_path / "s.jsonl").read_bytes()


def test_killed_while_it_streams_the_file_opens(fake: Fake, tmp_path: Path) -> None:
    def drip(peer: Peer) -> None:
        peer.head()
        for number in range(10_000):
            peer.send(b'data: {"choices":[{"index":0,"delta":{"content":"w%d "}}]}\n\n' % number)
            time.sleep(0.002)

    fake.answers = [drip]
    program = f"""
import asyncio, sys
sys.path[:0] = [{str(ROOT)!r}]
from inspector.live.headless import LiveOptions, start
from inspector.config.settings import Settings
from inspector.live.stepper import Phase
from inspector.tui.app import LoopInspector
typed = LiveOptions("openai_chat", "m", {fake.url!r}, prompt="x", record={str(tmp_path / "s.jsonl")!r})
begun = start(typed, Settings())
async def main():
    async with LoopInspector(live=begun).run_test(size=(80, 24)) as pilot:
        while pilot.app.screen.driver.live.phase is Phase.WAITING:  # a key before the screen is drawn sends nothing
            await pilot.press("d")
        await asyncio.sleep(60)
asyncio.run(main())
"""
    process = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, env={**os.environ, "HOME": str(tmp_path)})
    record = tmp_path / "s.jsonl"
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and (not record.exists() or record.stat().st_size < 6_000):
        time.sleep(0.01)
    written = record.read_bytes()
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=10)
    assert record.read_bytes().startswith(written)
    seen = again(tmp_path)
    assert (seen.responses[0].exchange.response.text or "").startswith("w0 w1 ")
    assert seen.turns[0].verdict.word == "RECORDING CUT", "what is missing was never written; the server is not blamed"


async def test_a_plain_terminal_gets_plain_characters(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [CUT, streams(A, answer(A, "", Stop.TOOL_CALL, CALL, OTHER))]
    async with live(start_with_tools(fake, tmp_path), plain=True).run_test(size=SIZE) as pilot:
        def plain() -> None:
            assert [row for row in page(pilot.app).splitlines() if not row.isascii()] == []

        for key in ("i", "I", "L"):
            await pilot.press(key)
            await pilot.pause()
            plain()
            await pilot.press("escape")
        await pilot.press("d")
        await until(pilot, waits(pilot, Send))
        plain()
        await pilot.press("d")
        await until(pilot, waits(pilot, RunTools))
        plain()
        await pilot.press("i", "t")
        await pilot.pause()
        plain()


# -- looks -----------------------------------------------------------------------------------------------------------

SIZES = [(80, 24), (160, 45)]
NOWHERE = "http://127.0.0.1:8080"


async def test_how_what_waits_looks(fake: Fake, tmp_path: Path, album: Album) -> None:
    async with live(start_with_tools(fake, tmp_path, base=NOWHERE)).run_test(size=SIZES[1]) as pilot:
        await pilot.pause()
        album.compare(pilot, "waits")
    async with live(start_with_tools(fake, tmp_path, base=NOWHERE)).run_test(size=SIZES[0]) as pilot:
        await pilot.pause()
        album.compare(pilot, "waits")
        for name, key in (("budget", "i"), ("body", "I"), ("form", "L")):
            await pilot.press(key)
            await pilot.pause()
            if name == "form":
                await until(pilot, lambda: "A router reports tool calls as complete" in page(pilot.app))
            album.compare(pilot, name)
            await pilot.press("escape")
    assert album.different == []


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", ["streams", "calls"])
def test_how_what_comes_looks(
    fake: Fake, tmp_path: Path, snap_compare: Callable[..., bool], name: str, size: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("inspector.report.lines.steps.times_of", lambda exchange: None)  # another time in every run
    held = HeldAnswer(answer(A, "One, two, three, four, five, and so on to the end of it.", Stop.END_TURN), 3)
    calls = streams(A, answer(A, "", Stop.TOOL_CALL, CALL, OTHER))
    fake.answers = [CUT, held] if name == "streams" else [calls]

    async def show_coming(pilot: Pilot[Any]) -> None:
        await pilot.press("d")
        if name == "calls":
            await until(pilot, waits(pilot, RunTools))
            await pilot.press("i", "down", "x")
            return
        await until(pilot, waits(pilot, Send))
        await pilot.press("d")
        await until(pilot, lambda: "four" in view_text(pilot.app))
        screen(pilot)._frames.pause()
        screen(pilot).coming = "+31 chars 1.5 s"
        await pilot.pause()

    assert snap_compare(live(start_with_tools(fake, tmp_path)), run_before=show_coming, terminal_size=size)
    held.go.set()
