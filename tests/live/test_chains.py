"""Requests whose history the server keeps: what follows goes on from the last response's id, and reads back so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inspector.config.settings import Settings
from inspector.live.headless import LiveResult, run_live
from inspector.provider import PlacedFault, Provider, Story, serving
from inspector.provider.connection import AnsweredRequest
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.facts import view
from inspector.sessions import open_paths
from loop_core.client.address import Server
from loop_core.turn.tools import Toolbox
from loop_core.values import Message, Request, Role, TextPart
from tests.scenes.live import PATIENT
from tests.scenes.provider import BASES, PAGE, TEXT, TOOLS, WRITE

API = "openai_responses"
CUT_TEXT = Story("cut-text", "a text is cut", BASES["text"], TOOLS, (PlacedFault("cut", 20, 0, 0),))
CUT_CALL = Story("cut-call", "a call is cut", BASES["call"], TOOLS, (PlacedFault("cut", 14, 0, 0),))
CUT_BATCH = Story("cut-batch", "the second of two calls is cut", BASES["calls"], TOOLS, (PlacedFault("cut", 24, 0, 0),))
WHOLE = Story("whole", "nothing is cut", BASES["call"], TOOLS)


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with serving(CUT_TEXT, CUT_CALL, CUT_BATCH, WHOLE) as running:
        yield running


def run_story(
    provider: Provider, story: Story, path: Path, *, stream: bool = True, **more: Any
) -> tuple[LiveResult, list[AnsweredRequest]]:
    seen = len(provider.seen)
    lead, said = Message(Role.SYSTEM, (TextPart("Be brief."),)), Message(Role.USER, (TextPart("Go on."),))
    asked = Request(API, (lead, said), story.name, (WRITE, PAGE), max_tokens=400, stream=stream, **more)
    tools = Toolbox({each.name: lambda _: "done" for each in (WRITE, PAGE)})
    done = run_live(asked, Server(API, provider.bases[API]), Settings(), tools, str(path), PATIENT)
    return done, [request for request in provider.seen[seen:] if request.body is not None]


def ids(done: LiveResult) -> list[str | None]:
    return [exchange.response.id for exchange in done.replay.case.recording.exchanges]


def same_when_read(done: LiveResult, path: Path) -> None:
    live, again = view(done.replay), view(replay(open_case(open_paths([str(path)]))))
    assert [turn.joined_text.text for turn in again.turns] == [turn.joined_text.text for turn in live.turns]
    assert [turn.terminal for turn in again.turns] == [turn.terminal for turn in live.turns]


@pytest.mark.parametrize("stream", [True, False])
def test_a_continuation_goes_on_from_the_last_id_and_sends_nothing_again(
    provider: Provider, stream: bool, tmp_path: Path
) -> None:
    done, (first, second, *more) = run_story(provider, CUT_TEXT, tmp_path / "s.jsonl", stream=stream,
                                             extra={"store": True})
    assert (done.terminal, more) == ("completed", [])
    assert view(done.replay).turns[0].joined_text.text == TEXT
    assert "previous_response_id" not in first.body
    assert second.body["previous_response_id"] == ids(done)[0]
    assert second.body["instructions"] == "Be brief.", "instructions do not carry over"
    assert second.body["store"] is True
    (hint,) = second.body["input"]
    assert (hint["role"], "Go on." in hint["content"]) == ("system", False)
    same_when_read(done, tmp_path / "s.jsonl")


@pytest.mark.parametrize("story", [CUT_CALL, CUT_BATCH], ids=lambda story: story.name)
@pytest.mark.parametrize("stream", [True, False])
def test_a_repair_answers_the_calls_that_the_server_keeps_and_asks_for_them(
    provider: Provider, story: Story, stream: bool, tmp_path: Path
) -> None:
    done, (_, second, third) = run_story(provider, story, tmp_path / "s.jsonl", stream=stream, extra={"store": True})
    assert done.terminal == "completed"
    first = done.replay.case.recording.exchanges[0].response
    assert second.body["previous_response_id"] == first.id
    *outputs, asks = second.body["input"]
    assert [(item["type"], item["call_id"]) for item in outputs] == [
        ("function_call_output", call.id) for call in first.tool_calls]
    assert all(item["output"].startswith("Not run: ") for item in outputs)
    assert asks["role"] == "system"
    repaired = done.replay.case.recording.exchanges[1].response
    assert third.body["previous_response_id"] == repaired.id
    assert third.body["input"] == [
        {"type": "function_call_output", "call_id": call.id, "output": "done"} for call in repaired.tool_calls]
    same_when_read(done, tmp_path / "s.jsonl")


@pytest.mark.parametrize("chain", [{"extra": {"store": True}}, {"background": True}], ids=["stored", "background"])
def test_results_go_on_from_the_call_that_the_server_keeps(
    provider: Provider, chain: dict[str, Any], tmp_path: Path
) -> None:
    done, (_, second) = run_story(provider, WHOLE, tmp_path / "s.jsonl", **chain)
    assert done.terminal == "completed"
    assert second.body["previous_response_id"] == ids(done)[0]
    assert [item["type"] for item in second.body["input"]] == ["function_call_output"]
    same_when_read(done, tmp_path / "s.jsonl")


def test_without_a_chain_the_whole_history_is_sent(provider: Provider, tmp_path: Path) -> None:
    done, (_, second) = run_story(provider, CUT_TEXT, tmp_path / "s.jsonl", extra={"store": False})
    assert done.terminal == "completed"
    assert "previous_response_id" not in second.body
    assert second.body["input"][0]["content"] == "Go on."


@pytest.mark.parametrize("story", [CUT_TEXT, CUT_CALL], ids=lambda story: story.name)
def test_a_chain_that_is_not_stored_ends_with_a_notice(provider: Provider, story: Story, tmp_path: Path) -> None:
    began = f"resp_{story.name}.0.0.0.0.0.0.0"
    done, sent = run_story(provider, story, tmp_path / "s.jsonl", previous_id=began, extra={"store": False})
    assert [request.body["previous_response_id"] for request in sent] == [began]
    ended = done.replay.trace.steps[-1].turn
    assert done.exit != 0
    assert "store: false" in (ended.notice or "")
    assert done.replay.case.recording.exchanges[0].response.text, "what came is kept"
    same_when_read(done, tmp_path / "s.jsonl")
