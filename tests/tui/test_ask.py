"""Asking live from the app: where it goes and for how much before anything leaves, progress, giving up, the branch."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Input

from inspector.export import FORMS
from inspector.live.branch_run import BranchRun
from inspector.tui import live_run as asking
from inspector.tui.app import LoopInspector
from inspector.tui.limits_form import LIVE, LimitsForm
from inspector.tui.live_run import AskLive
from inspector.tui.panels import Cycle
from inspector.tui.session_files import ReadingOptions, load
from inspector.tui.session_screen import Exports, SessionScreen
from loop_core.values import Stop
from tests.scenes.app import page, until, view_text
from tests.scenes.live import answer, streams
from tests.scenes.live_branch import request_body, write_two_turns
from tests.scenes.loopback import Fake, Peer

SIZES = [(80, 24), (160, 45)]
CHAT = "openai_chat"
MakeApp = Callable[[], LoopInspector]


def says(text: str, stop: Stop = Stop.END_TURN) -> Callable[[Peer], None]:
    return streams(CHAT, answer(CHAT, text, stop))


def session(pilot: Pilot[Any]) -> SessionScreen:
    screen = pilot.app.screen
    assert isinstance(screen, SessionScreen)
    return screen


@pytest.fixture
def make_app(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeApp:
    monkeypatch.setattr(asking, "REPEAT_TIME", 0.0)  # a test's keys come faster than a hand's
    path = write_two_turns(fake.url, tmp_path / "s.har")
    return lambda: LoopInspector([path], opened_already=load([path], ReadingOptions()))


async def form_with_live(pilot: Pilot[Any], key: str = "e") -> LimitsForm:
    await pilot.press(key)
    form = pilot.app.screen
    assert isinstance(form, LimitsForm)
    form.query_one("#source", Cycle).focus()
    await pilot.press("l")
    assert form.query_one("#source", Cycle).value == LIVE
    return form


@pytest.mark.parametrize("size", SIZES)
async def test_what_it_costs_stands_before_it_leaves(make_app: MakeApp, fake: Fake, size: tuple[int, int]) -> None:
    fake.answers = [says("Eins, zwei, drei.")]
    async with make_app().run_test(size=size) as pilot:
        await form_with_live(pilot)
        await until(pilot, lambda: "asks the provider: enter shows where, and for how much" in page(pilot.app))
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, AskLive)
        shown = page(pilot.app)
        for said in ("Ask turn 1 live again, from step 1 on", f"{fake.url}/v1/chat/completions", "model m · generic",
                     "no key: LOOP_INSPECTOR_API_KEY is not set", "6 requests, 240 tokens out, about 3,000 in",
                     "a bound, not a forecast: only if every limit is used up",
                     "= 20: 1 first request (max_tokens)", "+ 60: 3 continuations",
                     "+ 80: 1 repair (continuation_tool_repair_attempts)",
                     "+ 80: 1 retry of an empty answer (max_empty_retries)",
                     "80: the cap of 20, doubled by each repair or retry",
                     "each up to 3 times again if no answer comes: 24 requests", "nothing is sent yet",
                     "y asks the provider now", "model          as it was recorded"):
            assert said in shown, said
        assert fake.got == []
        await pilot.press("y")
        await until(pilot, lambda: len(session(pilot).runs.every) == 2)
        await pilot.pause()
        screen = session(pilot)
        step = screen.run.view.steps[screen.step]
        assert (step.fidelity.value, step.turn.terminal) == ("LIVE", "completed")
        assert fake.got[0].json == request_body()
        assert "LIVE from step 2 on" in view_text(pilot.app)
        assert f"{fake.url}/v1/chat/completions, model m" in view_text(pilot.app)
        assert "LIVE" in page(pilot.app)
        await pilot.press("5")
        await pilot.press("3")
        assert "LIVE response 4" in view_text(pilot.app)
        assert screen.runs.tree.every[1].name.startswith("live 2")


async def test_a_wrong_address_is_told_with_the_name_of_its_field(make_app: MakeApp, fake: Fake) -> None:
    async with make_app().run_test(size=SIZES[0]) as pilot:
        await form_with_live(pilot)
        await until(pilot, lambda: "asks the provider: enter shows where" in page(pilot.app))
        await pilot.press("enter")
        await pilot.pause()
        pilot.app.screen.query_one("#base-url", Input).value = "nowhere"
        await until(pilot, lambda: "cannot         base-url: expected http://HOST" in page(pilot.app))
        assert "nothing can be sent" in page(pilot.app)


async def test_a_stand_in_answers_without_a_key_and_nobody_else_is_asked(make_app: MakeApp, fake: Fake) -> None:
    async with make_app().run_test(size=(60, 20)) as pilot:
        for number, size in enumerate([(60, 20), *SIZES], 1):
            await pilot.resize_terminal(*size)
            await form_with_live(pilot)
            await pilot.press("enter")
            await until(pilot, lambda: "p asks a stand-in" in page(pilot.app))
            await pilot.press("p")
            await until(pilot, lambda number=number: len(session(pilot).runs.every) == number + 1)
            await pilot.pause()
            screen = session(pilot)
            step = screen.run.view.steps[screen.step]
            assert (step.fidelity.value, step.turn.terminal) == ("SIMULATED", "completed"), size
            assert "stand-in 2" in screen.runs.tree.every[number].name, size  # the year follows
            assert "what was not recorded is made up" in " ".join(view_text(pilot.app).split()), size
            assert "asked live" not in view_text(pilot.app), size
            await pilot.press("2")
            assert "SIMULATED response 4" in view_text(pilot.app), size
            assert fake.got == [], size
            await pilot.press("R", "g", "enter")  # the original again


async def test_a_run_is_shown_also_if_the_saved_branches_are_read_while_it_is_asked(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    restore, run = SessionScreen.restore, BranchRun.run
    monkeypatch.setattr(SessionScreen, "restore", lambda self: None)
    async with make_app().run_test(size=SIZES[0]) as pilot:
        screen = session(pilot)

        async def slowly(self: BranchRun) -> Any:
            restore(screen)
            while screen.runs.store is None:  # the pilot waits for this worker, so it cannot wait here too
                await asyncio.sleep(0.001)
            return await run(self)

        monkeypatch.setattr(BranchRun, "run", slowly)
        await form_with_live(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: "p asks a stand-in" in page(pilot.app))
        await pilot.press("p")
        await until(pilot, lambda: len(screen.runs.every) == 2 and not screen.branches.live.under_way)
        assert screen.runs.index == 1
        assert "is over" not in screen.note


async def test_a_provider_that_needs_a_key_is_not_asked_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "REPEAT_TIME", 0.0)
    for name in ("OPENAI_API_KEY", "LOOP_INSPECTOR_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    path = write_two_turns("https://api.openai.com", tmp_path / "s.har")
    app = LoopInspector([path], opened_already=load([path], ReadingOptions()))
    says = "✖ none: set OPENAI_API_KEY: api.openai.com needs a key"
    async with app.run_test(size=SIZES[0]) as pilot:
        for size in SIZES:
            await pilot.resize_terminal(*size)
            await form_with_live(pilot)
            await pilot.press("enter")
            await until(pilot, lambda: says in page(pilot.app))
            assert "no key is set · p asks a stand-in · esc leaves" in page(pilot.app), size
            assert "y asks" not in page(pilot.app), "no key is offered that would send nothing"
            await pilot.press("y")
            assert "nothing was sent · no key is set · p asks a stand-in · esc leaves" in page(pilot.app), size
            assert isinstance(pilot.app.screen, AskLive), size
            await pilot.press("escape")
            assert not session(pilot).branches.live.under_way, size


async def test_nothing_leaves_unless_it_is_said(make_app: MakeApp, fake: Fake) -> None:
    async with make_app().run_test(size=(80, 24)) as pilot:
        for keys in [["escape"], ["enter", "escape"], ["enter", "enter", "enter", "escape"]]:
            await form_with_live(pilot)
            await pilot.press(*keys)
            await pilot.pause(0.05)
            assert fake.got == [], keys
            assert len(session(pilot).runs.every) == 1, keys
            assert not isinstance(pilot.app.screen, AskLive), keys


async def test_a_key_that_is_held_down_asks_nothing(
    make_app: MakeApp, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "REPEAT_TIME", 60.0)
    async with make_app().run_test(size=(80, 24)) as pilot:
        await form_with_live(pilot)
        await pilot.press("enter", "y", "y", "y")
        assert isinstance(pilot.app.screen, AskLive)
        assert fake.got == []


async def test_a_key_that_was_struck_before_the_question_was_shown_asks_nothing(make_app: MakeApp, fake: Fake) -> None:
    fake.answers = [says("Eins, zwei, drei.")]
    async with make_app().run_test(size=(80, 24)) as pilot:
        await form_with_live(pilot)
        for key, char in (("enter", "\r"), ("y", "y")):
            pilot.app.post_message(Key(key, char))
        await until(pilot, lambda: "y asks the provider now" in page(pilot.app))
        await pilot.pause(0.1)
        assert isinstance(pilot.app.screen, AskLive)
        assert fake.got == []
        await pilot.press("y")
        await until(pilot, lambda: bool(fake.got))


async def test_another_budget_from_this_step_on(make_app: MakeApp, fake: Fake) -> None:
    fake.answers = [says("drei.")]
    async with make_app().run_test(size=(80, 24)) as pilot:
        session(pilot).step = 4
        form = await form_with_live(pilot, "E")
        form.query_one("#max_tokens", Input).value = "7"
        await pilot.press("enter")
        assert "Ask turn 1 live again, from step 5 on" in page(pilot.app)
        assert any(row.split()[1:] == ["settings", "max_tokens=7", "│"] for row in page(pilot.app).splitlines())
        await pilot.press("y")
        await until(pilot, lambda: len(session(pilot).runs.every) == 2)
        await pilot.pause()
        view = session(pilot).run.view
        assert view.replay.trace.departure == 4
        assert view.turns[0].joined_text.text == "One, two, drei."
        assert fake.got[0].json["max_tokens"] == 7


async def test_address_and_model_are_typed_and_looked_at(make_app: MakeApp, fake: Fake) -> None:
    fake.answers = [says("Hi.")]
    async with make_app().run_test(size=(80, 24)) as pilot:
        await form_with_live(pilot)
        await pilot.press("enter", "tab", *"ftp")
        await until(pilot, lambda: "expected http://HOST" in page(pilot.app))
        assert "nothing can be sent · p asks a stand-in" in page(pilot.app)
        await pilot.press("escape")
        await form_with_live(pilot)
        await pilot.press("enter", "tab", "tab", *"yy")
        await until(pilot, lambda: "model yy" in page(pilot.app))
        assert fake.got == []  # a letter in a field is no answer
        await pilot.press("enter", "y")
        await until(pilot, lambda: len(session(pilot).runs.every) == 2)
        assert fake.got[0].json["model"] == "yy"


async def test_a_run_is_told_from_the_moment_it_is_confirmed(make_app: MakeApp, fake: Fake) -> None:
    fake.answers = [lambda peer: peer.hold()] * 3
    begins = re.compile(r"LIVE request 1 of at most 6 · \d+ s · 0 characters · esc stops it · turn 1 asks")
    async with make_app().run_test(size=(60, 20)) as pilot:
        for size in [(60, 20), *SIZES]:
            await pilot.resize_terminal(*size)
            await form_with_live(pilot)
            session_under = next(each for each in pilot.app.screen_stack if isinstance(each, SessionScreen))
            session_under.note = "turn 1: enter, then y asks the provider, or p a stand-in without a key"
            await pilot.press("enter", "y")
            # with the next frame
            await until(pilot, lambda: begins.search(" ".join(page(pilot.app).split())) is not None)
            assert "then y asks" not in page(pilot.app), size
            await until(pilot, lambda: " · 1 s · " in page(pilot.app))
            await pilot.press("escape")
            await until(pilot, lambda: "esc stops it" not in page(pilot.app))
            await pilot.press("R", "g", "enter")  # the original again


@pytest.mark.parametrize("key", ["A", "escape"])
async def test_a_run_under_way_is_told_and_can_be_given_up(make_app: MakeApp, fake: Fake, key: str) -> None:
    def begins(peer: Peer) -> None:
        peer.head()
        peer.send(answer(CHAT, "And then", Stop.END_TURN)[0])
        peer.hold()

    fake.answers = [says("Eins, ", Stop.MAX_TOKENS), begins]
    async with make_app().run_test(size=(80, 24)) as pilot:
        await form_with_live(pilot)
        await pilot.press("enter", "y")
        await until(pilot, lambda: "LIVE  request 2 of at most 6 · " in page(pilot.app))
        for _ in range(2):  # whatever is pressed, the line stays
            shown = " ".join(page(pilot.app).split())
            assert " characters · esc stops it" in shown
            assert f"turn 1 asks {fake.url}/v1/chat/completions, model m" in shown
            await pilot.press("space", "s", "backspace")
        await pilot.press("space")
        assert session(pilot).step == 1  # everything goes on meanwhile
        await pilot.press("backspace")
        form = await form_with_live(pilot)
        assert form.is_current
        await pilot.press("enter")
        assert "a live run is under way: esc stops it" in page(pilot.app)
        await pilot.press(key)
        await until(pilot, lambda: len(session(pilot).runs.every) == 2)
        await pilot.pause()
        assert "esc stops it" not in page(pilot.app)
        run = session(pilot).runs.every[1]
        assert run.view.turns[0].terminal == "cancelled"
        assert run.view.turns[0].joined_text.text == "Eins, "
        await pilot.press("A")
        assert len(session(pilot).runs.every) == 2


async def test_errors_are_shown_as_the_machine_ends(make_app: MakeApp, fake: Fake) -> None:
    fake.answers = [lambda peer: peer.whole(401, {"error": {"message": "[red]who[/] are you"}})]
    async with make_app().run_test(size=(80, 24)) as pilot:
        await form_with_live(pilot)
        await pilot.press("enter", "y")
        await until(pilot, lambda: len(session(pilot).runs.every) == 2)
        await pilot.pause()
        assert session(pilot).run.view.turns[0].terminal == "error"
        assert "LIVE" in page(pilot.app)
        assert "turn 1 ends in" in page(pilot.app)


async def test_it_is_there_again_and_nobody_is_asked(make_app: MakeApp, fake: Fake, tmp_path: Path) -> None:
    fake.answers = [says("Eins.")]
    async with make_app().run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: session(pilot).runs.store is not None)
        await form_with_live(pilot)
        await pilot.press("enter", "y")
        await until(pilot, lambda: len(session(pilot).runs.every) == 2)
        before = session(pilot).runs.tree.every[1]
    async with make_app().run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: len(session(pilot).runs.every) == 2)
        again = session(pilot).runs.tree.every[1]
        assert (again.key, again.name) == (before.key, before.name)
        assert again.view.turns[0].joined_text.text == "Eins."
        assert {step.fidelity.value for step in again.view.steps[1:again.view.turns[0].run.end]} == {"LIVE"}
        await pilot.press("R", "down", "enter", "u")
        await pilot.app.workers.wait_for_complete()
        await pilot.press("escape", "p")
        await pilot.app.workers.wait_for_complete()
        await pilot.press("escape", "R", "down", "b")
        await pilot.pause()
    assert len(fake.got) == 1
    (record,) = (tmp_path / "data" / "live").iterdir()
    assert json.loads(record.read_text().splitlines()[-1])["end_state"] == "completed"


async def test_a_program_that_ends_meanwhile_keeps_it_as_cancelled(make_app: MakeApp, fake: Fake) -> None:
    def begins(peer: Peer) -> None:
        peer.head()
        peer.send(answer(CHAT, "And then", Stop.END_TURN)[0])
        peer.hold()

    fake.answers = [begins]
    async with make_app().run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: session(pilot).runs.store is not None)
        await form_with_live(pilot)
        await pilot.press("enter", "y")
        await until(pilot, lambda: bool(fake.got))
        await asyncio.sleep(0.05)
    async with make_app().run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: len(session(pilot).runs.every) == 2)
        assert session(pilot).runs.every[1].view.turns[0].terminal == "cancelled"
    assert len(fake.got) == 1


async def test_a_transcript_says_why_not() -> None:
    path = "sample_sessions/19-pi-length-and-a-call-that-ran.jsonl"
    app = LoopInspector([path], opened_already=load([path], ReadingOptions()))
    async with app.run_test(size=(80, 24)) as pilot:
        await form_with_live(pilot)
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, LimitsForm)
        assert "live: this is a transcript of pi" in page(pilot.app) or "this is a transcript of pi" in page(pilot.app)


async def test_no_key_is_shown_copied_or_written(
    make_app: MakeApp, fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "any-secret-0123456789abcdef"
    monkeypatch.setenv("LOOP_INSPECTOR_API_KEY", key)
    copied: list[str] = []
    monkeypatch.setattr(LoopInspector, "copy_to_clipboard", lambda self, text: copied.append(text))

    def echoes(peer: Peer) -> None:
        got = fake.got[-1]
        peer.whole(200, {"id": "c", "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": {
            "role": "assistant", "content": f"{got.headers} {got.line} {got.body.decode()}"}}]}, set_cookie=f"a={key}")

    fake.answers = [echoes]
    shown: list[str] = []
    async with make_app().run_test(size=(160, 45)) as pilot:
        await until(pilot, lambda: session(pilot).runs.store is not None)
        await form_with_live(pilot)
        await pilot.press("enter")
        shown.append(page(pilot.app))
        assert "key from LOOP_INSPECTOR_API_KEY" in shown[0]
        await pilot.press("y")
        await until(pilot, lambda: len(session(pilot).runs.every) == 2)
        await pilot.pause()
        for step in range(len(session(pilot).run.view.steps)):
            session(pilot).step = step
            for tab in "1234567":
                await pilot.press(tab, "y", *("v", "y") * (5 if tab == "3" else 1))
                shown += [page(pilot.app), view_text(pilot.app)]
        await pilot.press("Y")
        shown.append(pilot.app.export_screenshot())
        exports = next(part for part in session(pilot).parts if isinstance(part, Exports))
        for form in FORMS:
            session(pilot).step = 1
            for name, text in exports.files(form, "").items():
                (tmp_path / f"out-{form}-{name}").write_text(text)
    assert fake.got[0].headers["authorization"] == f"Bearer {key}"
    assert len(copied) > 20
    for text in [*shown, *copied]:
        assert key not in text
    files = [each for each in tmp_path.rglob("*") if each.is_file()]
    assert any(each.parent.name == "live" for each in files)
    assert sum(each.name.startswith("out-") for each in files) > 5
    for each in files:
        assert key.encode() not in each.read_bytes(), each
