"""Effects carried out one by one against a server on loopback: what is sent and recorded, and reads the same."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from inspector.config.settings import Settings
from inspector.live.answers import CallDecision, Source
from inspector.live.driver import Driver
from inspector.live.headless import LiveOptions, start
from inspector.live.live_lines import activity_line, live_view, waiting_lines
from inspector.live.scripted import scenario_turn
from inspector.live.stepper import ArrivingAnswer, Phase
from inspector.provider import all_stories
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.facts import View, view
from inspector.report.lines.spans import text_of
from inspector.report.lines.steps import NO_REMARKS, step_line
from inspector.sessions import open_paths
from loop_core.client.exchange import Connection, Retries, Timeouts
from loop_core.errors import CallerError, LoopError
from loop_core.turn.limits import Limits
from loop_core.turn.state import Finish, RunTools, Send
from loop_core.turn.trace import step_key
from loop_core.values import Stop, ToolCall, Usage
from tests.scenes.live import ERROR, answer, streams
from tests.scenes.loopback import Fake, Peer

A = "openai_chat"
KEY = "sk-live-0123456789abcdefghij"
CUT = streams(A, answer(A, "One, two, ", Stop.MAX_TOKENS, usage=Usage(3, 20)))
END = streams(A, answer(A, "three.", Stop.END_TURN, usage=Usage(3, 4)))
CALL = ToolCall("call_1", "weather", '{"city":"Oslo"}', closed=True)
HELD = ToolCall("call_1", "weather", '{"city":"Os', closed=True)
TOOLS = [{"name": "weather", "parameters": {"type": "object"}}]
Play = Callable[[Driver], Awaitable[None]]


PATIENT = Connection(Timeouts(connect=5, silence=30, whole=30, poll=0.01), Retries(most=2, longest=1, first=0.01))


def driver_after(fake: Fake, folder: Path, play: Play, line: Connection = PATIENT, **typed: Any) -> Driver:
    """A driver after what its operator did."""
    given = {"base": fake.url, "prompt": "Count.", "record": str(folder / "s.jsonl"),
             "assignments": ("max_tokens=20",), **typed}

    async def run() -> Driver:
        driver = Driver(start(LiveOptions(A, "m", **given), Settings()), line=line, on_change=None)
        await play(driver)
        await driver.close()
        return driver

    return asyncio.run(run())


def again(folder: Path) -> View:
    return view(replay(open_case(open_paths([str(folder / "s.jsonl")]))))


def records(folder: Path, kind: str) -> list[dict[str, Any]]:
    lines = (json.loads(line) for line in (folder / "s.jsonl").read_text().splitlines())
    return [line for line in lines if line.get("type") == kind]


def same(driver: Driver, folder: Path) -> None:
    """The recording read again is the turn that was run."""
    live, file = live_view(driver), again(folder)
    here, there = (
        # A request holds of a tool's result neither whether it is an error nor its tool's name.
        [step_key(step)._replace(turn="", live_answer=None, model_input=None) for step in each.steps]
        for each in (live, file))
    assert here == there
    assert [turn.terminal for turn in live.turns] == [turn.terminal for turn in file.turns]
    assert [turn.joined_text for turn in live.turns] == [turn.joined_text for turn in file.turns]


async def until(met: Callable[[], bool]) -> None:
    for _ in range(2_000):
        if met():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came to that")


def activity_text(driver: Driver) -> str:
    return text_of(activity_line(driver, lambda name: f"<{name}>"))


def test_nothing_is_sent_or_written_before_the_operator_says_so(fake: Fake, tmp_path: Path) -> None:
    async def play(driver: Driver) -> None:
        assert isinstance(driver.live.pending, Send)
        assert "POST" in "\n".join(text_of(line) for line in waiting_lines(driver))

    driver = driver_after(fake, tmp_path, play)
    assert fake.got == []
    assert not (tmp_path / "s.jsonl").exists()
    assert driver.path is None


def test_the_turn_is_named_by_what_the_user_wrote_before_its_first_answer_as_after_it(
    fake: Fake, tmp_path: Path
) -> None:
    fake.answers = [END]
    history = [{"role": "user", "content": "Count."}, {"role": "assistant", "content": "One,"}]
    (tmp_path / "m.json").write_text(json.dumps(history))
    named: list[str] = []

    async def play(driver: Driver) -> None:
        named.append(live_view(driver).turns[0].run.record.user_text)
        await driver.run()

    driver = driver_after(fake, tmp_path, play, prompt=None, messages=str(tmp_path / "m.json"))
    assert [*named, live_view(driver).turns[0].run.record.user_text] == ["Count.", "Count."]


def test_a_silence_is_shown_for_as_long_as_it_lasts(fake: Fake, tmp_path: Path) -> None:
    async def play(driver: Driver) -> None:
        live = driver.live
        for phase in (Phase.ASKING, Phase.STREAMING):
            live.answer, live.phase, live.heard_at = ArrivingAnswer("openai_chat", 0, ()), phase, monotonic() - 5.2
            assert ", silent for 5 s" in activity_text(driver)
            live.heard_at = monotonic()
            assert "silent" not in activity_text(driver), "a moment is none"
        live.phase, live.heard_at, live.answer = Phase.WAITING, 0.0, None
        assert live.silent == 0, "nothing is waited for"

    driver_after(fake, tmp_path, play)


def test_a_piece_of_an_answer_ends_a_silence(fake: Fake, tmp_path: Path) -> None:
    async def play(driver: Driver) -> None:
        before = monotonic()
        await driver.act()
        assert before < driver.live.heard_at <= monotonic()

    fake.answers = [END]
    driver_after(fake, tmp_path, play)


@pytest.mark.parametrize(("scenario", "second"), [
    ("call", "to send request with results 1"), ("cut-twice", "to send continuation 1"),
    ("cut-call", "to send repair 1"), ("paused", "to send resumption 1"),
    ("empty", "to send retry of an empty answer 1"),
])
def test_the_second_request_of_a_turn_says_why_it_is_sent(
    scenario: str, second: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOP_INSPECTOR_DATA", str(tmp_path))
    story = all_stories()[scenario]
    turn = scenario_turn(story, LiveOptions("anthropic_messages", None), Settings())

    async def run() -> list[str]:
        driver, lines = Driver(turn.start, line=PATIENT, on_change=None), []
        while not isinstance(driver.live.pending, Finish):
            lines.append(activity_text(driver))
            await driver.act()
        await driver.close()
        return lines

    try:
        sent = [line for line in asyncio.run(run()) if second in line]
        assert sent
        assert not any("(nudge)" in line for line in sent), "the name says it already"
    finally:
        turn.server.close()


def test_a_cut_answer_is_stepped_to_its_end(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [CUT, END]
    seen_: list[str] = []

    async def play(driver: Driver) -> None:
        for _ in range(3):
            seen_.append(type(driver.live.pending).__name__)
            await driver.act()

    driver = driver_after(fake, tmp_path, play)
    assert seen_ == ["Send", "Send", "Finish"]
    assert driver.live.phase is Phase.OVER
    assert [got.json["max_tokens"] for got in fake.got] == [20, 20]
    assert live_view(driver).turns[0].joined_text.text == "One, two, three."
    assert records(tmp_path, "about")[-1]["end_state"] == "completed"
    same(driver, tmp_path)


def test_the_edited_request_is_the_one_that_is_sent_and_recorded(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [CUT, END]

    async def play(driver: Driver) -> None:
        driver.edit(Limits(continuation_max_attempts=1), ["continuation_max_attempts"], 33)
        await driver.act()
        assert driver.stepper.request is not None
        driver.edit_body({**(driver.stepper.request.body or {}), "temperature": 0.25})
        await driver.run()

    driver = driver_after(fake, tmp_path, play)
    assert [got.json["max_tokens"] for got in fake.got] == [33, 33]
    assert [got.json.get("temperature") for got in fake.got] == [None, 0.25]
    assert [record["body"] for record in records(tmp_path, "request")] == [got.json for got in fake.got]
    assert [note["text"] for note in records(tmp_path, "note")] == [
        "edited by the operator: max_tokens", "edited by the operator: body"]
    assert records(tmp_path, "limits")[-1]["values"] == {
        "continuation_max_attempts": 1, "max_empty_retries": 1}
    same(driver, tmp_path)


def test_run_goes_to_the_end_and_pause_waits_after_the_effect_under_way(fake: Fake, tmp_path: Path) -> None:
    paused = threading.Event()

    def slow(peer: Peer) -> None:
        paused.wait(20)
        streams(A, answer(A, "and a half, ", Stop.MAX_TOKENS))(peer)

    fake.answers = [CUT, slow, END]

    async def play(driver: Driver) -> None:
        running = asyncio.ensure_future(driver.run())
        await until(lambda: len(fake.got) == 2)
        driver.pause()
        paused.set()
        await running
        assert driver.live.phase is Phase.WAITING
        assert isinstance(driver.live.pending, Send)
        assert len(fake.got) == 2
        await driver.run()

    driver = driver_after(fake, tmp_path, play)
    assert driver.live.phase is Phase.OVER
    same(driver, tmp_path)


def test_run_while_an_answer_streams_goes_on_after_it(fake: Fake, tmp_path: Path) -> None:
    going = threading.Event()

    def slow(peer: Peer) -> None:
        going.wait(20)
        CUT(peer)

    fake.answers = [slow, END]

    async def play(driver: Driver) -> None:
        acting = asyncio.ensure_future(driver.act())
        await until(lambda: driver.live.phase is Phase.ASKING and len(fake.got) == 1)
        await driver.run()
        going.set()
        await acting

    assert driver_after(fake, tmp_path, play).live.phase is Phase.OVER


@pytest.mark.parametrize("pieces", [0, 1, 2])
def test_a_cancel_while_it_streams_is_cancelled_here_and_in_the_file(
    fake: Fake, tmp_path: Path, pieces: int
) -> None:
    sent = answer(A, "One, two, three, four, five, six", Stop.END_TURN)[:pieces]
    fake.answers = [streams(A, sent, Peer.hold)]

    async def play(driver: Driver) -> None:
        acting = asyncio.ensure_future(driver.act())
        await until(lambda: driver.live.phase is Phase.STREAMING and
                    driver.live.answer is not None and driver.live.answer.size == sum(map(len, sent)))
        driver.cancel()
        await acting
        assert driver.live.pending.terminal == "cancelled"  # type: ignore[union-attr]
        await driver.act()

    driver = driver_after(fake, tmp_path, play)
    assert records(tmp_path, "cancel") == [{"type": "cancel", "request": "r0"}]
    assert records(tmp_path, "end")[0]["end"] == "aborted"
    assert again(tmp_path).turns[0].verdict.word == "CANCELLED"
    same(driver, tmp_path)


def test_a_cancel_between_effects_is_the_same_turn_in_the_file(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [CUT]

    async def play(driver: Driver) -> None:
        await driver.act()
        driver.cancel()
        await driver.act()

    driver = driver_after(fake, tmp_path, play)
    assert records(tmp_path, "cancel") == [{"type": "cancel", "request": "r0", "answered": True}]
    assert len(fake.got) == 1
    same(driver, tmp_path)


def test_a_cancel_before_anything_was_sent_leaves_no_file(fake: Fake, tmp_path: Path) -> None:
    async def play(driver: Driver) -> None:
        driver.cancel()
        assert driver.live.pending.terminal == "cancelled"  # type: ignore[union-attr]
        await driver.act()

    assert driver_after(fake, tmp_path, play).live.phase is Phase.OVER
    assert not (tmp_path / "s.jsonl").exists()


WAITING = Connection(Timeouts(connect=2, silence=5, whole=5), Retries(most=2, longest=60, first=30))


def test_a_wait_is_told_with_its_seconds_and_can_be_cancelled(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [lambda peer: peer.whole(429, ERROR, retry_after="40")]

    async def play(driver: Driver) -> None:
        acting = asyncio.ensure_future(driver.act())
        await until(lambda: driver.live.phase is Phase.RETRYING)
        assert 38 < driver.live.seconds_left <= 40
        assert "HTTP 429" in activity_text(driver)
        assert "retry 1" in activity_text(driver)
        driver.cancel()
        await acting
        await driver.act()

    driver = driver_after(fake, tmp_path, play, WAITING)
    assert len(fake.got) == 1
    same(driver, tmp_path)


def test_a_retried_continuation_reads_as_one_request(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [CUT, lambda peer: peer.whole(429, ERROR, retry_after="0"),
                    lambda peer: peer.whole(503, ERROR, retry_after="0"),
                    streams(A, answer(A, "One, two, three.", Stop.END_TURN, usage=Usage(3, 4)))]

    driver = driver_after(fake, tmp_path, lambda driver: driver.run())
    assert [record.get("retries") for record in records(tmp_path, "request")] == [None, None, "r1", "r2"]
    file = again(tmp_path)
    assert len(file.responses) == 4
    assert file.turns[0].joined_text.text == "One, two, three."
    assert (file.turns[0].run.runs, file.turns[0].verdict.word) == (1, "CUT, COMPLETED")
    told = [text_of(step_line(file, index, 0, NO_REMARKS)) for index in range(len(file.steps))]
    assert [line.split()[-3:] for line in told if "EvaluateStop" in line] == [
        ["✂", "EvaluateStop", "max_tokens"], ["503", "then", "end_turn"]]
    assert sum("429, 503 then end_turn" in line for line in told) == 1
    live = live_view(driver)
    assert [text_of(step_line(live, index, 0, NO_REMARKS)) for index in range(len(live.steps))] == told
    same(driver, tmp_path)


def test_an_answer_that_was_none_can_be_sent_again(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [lambda peer: peer.whole(401, {"error": {"message": "who are you"}}), CUT,
                    lambda peer: peer.whole(401, {"error": {"message": "and you"}}), END]

    async def play(driver: Driver) -> None:
        await driver.act()
        assert activity_text(driver).startswith("╳ NO ANSWER  HTTP 401, who are you")
        assert len(driver.stepper.steps) == 1, "the machine was not told"
        await driver.send_again()
        await driver.act()
        assert driver.live.failed_answer is not None
        await driver.send_again()
        await driver.run()

    driver = driver_after(fake, tmp_path, play)
    assert live_view(driver).turns[0].joined_text.text == "One, two, three."
    same(driver, tmp_path)


def test_the_machine_may_have_it_instead(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [lambda peer: peer.whole(401, {"error": {"message": "who are you"}})]

    async def play(driver: Driver) -> None:
        with pytest.raises(CallerError, match="only a request that got no answer"):
            await driver.send_again()
        for _ in range(3):
            await driver.act()

    driver = driver_after(fake, tmp_path, play)
    assert driver.stepper.last.turn.terminal == "error"
    same(driver, tmp_path)


def test_nobody_there_is_told_without_a_traceback(fake: Fake, tmp_path: Path) -> None:
    async def play(driver: Driver) -> None:
        await driver.act()
        assert activity_text(driver).startswith("╳ NO ANSWER  no connection to 127.0.0.1:1")

    quick = Connection(Timeouts(connect=2, silence=0.4, whole=5), Retries(most=0))
    driver_after(fake, tmp_path, play, quick, base="http://127.0.0.1:1")


def tools(folder: Path) -> str:
    path = folder / "tools.json"
    path.write_text(json.dumps(TOOLS))
    return str(path)


def test_a_typed_result_is_what_the_model_reads(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [streams(A, answer(A, "", Stop.TOOL_CALL, CALL)), END]

    async def play(driver: Driver) -> None:
        await driver.act()
        effect = driver.live.pending
        assert isinstance(effect, RunTools)
        assert "1 without an answer" in activity_text(driver)
        driver.answers.decide(effect, 0, CallDecision(Source.TYPED, "rain", is_error=True))
        assert "typed by you, an error" in "\n".join(text_of(line) for line in waiting_lines(driver))
        await driver.run()

    driver = driver_after(fake, tmp_path, play, tools=tools(tmp_path))
    assert fake.got[1].json["messages"][-1] == {"role": "tool", "tool_call_id": "call_1", "content": "rain"}
    assert records(tmp_path, "tool_result")[0]["text"] == "rain"
    assert records(tmp_path, "note")[0]["text"] == "weather (call_1): typed by the operator"
    same(driver, tmp_path)


def test_a_held_call_is_repaired_and_never_waits_for_an_answer(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [streams(A, answer(A, "", Stop.MAX_TOKENS, HELD)),
                    streams(A, answer(A, "", Stop.TOOL_CALL, CALL)), END]
    waits: list[str] = []

    async def play(driver: Driver) -> None:
        while driver.live.phase is not Phase.OVER:
            waits.append(type(driver.live.pending).__name__)
            await driver.act()

    driver = driver_after(fake, tmp_path, play, tools=tools(tmp_path))
    assert waits == ["Send", "Send", "RunTools", "Send", "Finish"]
    assert again(tmp_path).responses[0].verdicts[0].admission.value == "held"
    same(driver, tmp_path)


def test_a_cancel_while_calls_wait(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [streams(A, answer(A, "", Stop.TOOL_CALL, CALL))]

    async def play(driver: Driver) -> None:
        await driver.act()
        driver.cancel()
        await driver.act()

    driver = driver_after(fake, tmp_path, play, tools=tools(tmp_path))
    assert again(tmp_path).turns[0].verdict.word == "CANCELLED", "a turn that was left is no complete one"
    same(driver, tmp_path)


def test_a_message_after_the_end_is_another_turn_of_the_recording(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [END]

    async def play(driver: Driver) -> None:
        with pytest.raises(CallerError, match="after the turn has ended"):
            driver.say("too early")
        await driver.act()
        driver.say("And then?")
        assert isinstance(driver.live.pending, Send)
        assert len(live_view(driver).turns) == 2
        await driver.run()

    driver = driver_after(fake, tmp_path, play)
    assert [message["content"] for message in fake.got[1].json["messages"]] == ["Count.", "three.", "And then?"]
    same(driver, tmp_path)


def test_a_turn_goes_on_after_a_cancel(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [streams(A, answer(A, "One, two, three", Stop.END_TURN)[:2], Peer.hold), END]

    async def play(driver: Driver) -> None:
        acting = asyncio.ensure_future(driver.act())
        await until(lambda: driver.live.answer is not None and driver.live.answer.size > 0)
        driver.cancel()
        await acting
        driver.say("In French, please.")
        await driver.run()

    driver = driver_after(fake, tmp_path, play)
    assert [turn.terminal for turn in again(tmp_path).turns] == ["cancelled", "completed"]
    same(driver, tmp_path)


def test_a_body_with_the_key_is_not_taken_and_the_key_is_nowhere(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", KEY)
    fake.answers = [lambda peer: peer.whole(401, {"error": {"message": f"wrong key {KEY}"}}), END]

    async def play(driver: Driver) -> None:
        assert driver.stepper.request is not None
        with pytest.raises(LoopError, match="contains the key"):
            driver.edit_body({**(driver.stepper.request.body or {}), "user": KEY})
        shown = [text_of(line) for line in waiting_lines(driver)]
        await driver.act()
        shown += [activity_text(driver), *(text_of(line) for line in waiting_lines(driver))]
        assert KEY not in "\n".join(shown)
        assert "wrong key ****" in "\n".join(shown)
        await driver.send_again()
        await driver.run()

    driver_after(fake, tmp_path, play, key_env="MINE")
    assert KEY in fake.got[0].headers["authorization"]
    assert KEY.encode() not in (tmp_path / "s.jsonl").read_bytes()


def test_a_refused_edit_changes_nothing(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [CUT, CUT, END]

    async def play(driver: Driver) -> None:
        await driver.act()
        await driver.act()
        before = driver.stepper
        with pytest.raises(CallerError, match="the turn cannot be changed before this step"):
            driver.edit(Limits(continuation_max_attempts=1), ["continuation_max_attempts"], 99)
        assert driver.stepper is before

    driver_after(fake, tmp_path, play)


def test_a_turn_under_way_is_seen_as_a_session(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [CUT]
    made: list[View] = []

    async def play(driver: Driver) -> None:
        made.append(live_view(driver))
        await driver.act()
        made.append(live_view(driver))
        assert isinstance(driver.live.pending, (Send, Finish))

    driver_after(fake, tmp_path, play)
    assert [turn.verdict.word for shown in made for turn in shown.turns] == ["LIVE", "LIVE"]
    assert [len(shown.responses) for shown in made] == [0, 1]
    assert all(step.fidelity.value == "LIVE" for shown in made for step in shown.steps)
    assert all(not turn.verdict.sure for shown in made for turn in shown.turns), "nothing is good before its end"


def test_a_proxy_that_is_no_address_is_told_and_nothing_is_recorded(fake: Fake, tmp_path: Path) -> None:
    async def play(driver: Driver) -> None:
        await driver.act()
        assert "the proxy is not an address" in activity_text(driver)
        assert driver.live.phase is Phase.WAITING

    driver_after(fake, tmp_path, play, Connection(proxy="ftp://127.0.0.1:9"))
    assert not (tmp_path / "s.jsonl").exists()
