"""A stream that is ended early: what had arrived is kept, nothing more runs, and the conversation goes on."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from inspector.provider import Provider, serving
from loop_core import Server, aask, ask, astream, decode_request, encode_request, stream
from loop_core.client.threads import unless
from loop_core.errors import CallerError
from loop_core.values import Role
from tests.scenes.provider import CALLING

TEXT = "The queue was saturated. " * 8
SLOW: Mapping[str, Any] = {"name": "slow", "story": "A text in many pieces.", "prompt": "Explain.",
                           "answers": [{"text": TEXT}], "faults": [{"slow": 0.02}]}
TWO_CALLS: Mapping[str, Any] = {
    "name": "two-calls", "story": "Two calls in one answer.", "prompt": "Go.",
    "tools": [{"name": "work", "parameters": {"type": "object"}, "result": "ok"}],
    "answers": [{"text": "I run both.", "calls": [{"name": "work", "arguments": {"number": 1}},
                                                  {"name": "work", "arguments": {"number": 2}}]}, {"text": "Done."}],
}
each_format = pytest.mark.parametrize("api", CALLING)


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with serving(SLOW, TWO_CALLS) as running:
        yield running


def at(provider: Provider, api: str, model: str) -> Server:
    return Server(api, provider.bases[api], model=model)


@each_format
def test_what_had_arrived_is_the_answer_and_the_conversation_goes_on(provider: Provider, api: str) -> None:
    shown = ""
    with stream(at(provider, api, "slow"), "Explain.", max_tokens=256) as pieces:
        for piece in pieces:
            shown += piece
            if len(shown) > 30:
                break
    answer = pieces.answer
    assert (answer.terminal, answer.notice) == ("cancelled", "The turn was cancelled.")
    assert answer.text.startswith(shown)
    assert TEXT.startswith(answer.text.strip())
    assert [(message.role, message.text) for message in answer.history] == [
        (Role.USER, "Explain."), (Role.ASSISTANT, answer.text)]
    rest = answer.ask("Go on.")  # the provider sends what the history does not hold yet
    assert rest.terminal == "completed"
    assert (answer.text + rest.text).split() == TEXT.split()


def test_a_cancelled_task_leaves_an_answer(provider: Provider) -> None:
    async def leave() -> tuple[str, str]:
        pieces = astream(at(provider, "openai_chat", "slow"), "Explain.", max_tokens=256)
        came = asyncio.Event()

        async def read() -> None:
            async for _ in pieces:
                came.set()

        task = asyncio.create_task(read())
        await came.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return pieces.answer.terminal, pieces.answer.text

    terminal, text = asyncio.run(leave())
    assert terminal == "cancelled"
    assert text
    assert TEXT.startswith(text)


def test_a_stream_of_which_nothing_was_read_has_no_answer(provider: Provider) -> None:
    with stream(at(provider, "openai_chat", "slow"), "Explain.") as pieces:
        pass
    with pytest.raises(CallerError, match="has not been read to its end, and was not closed while"):
        pieces.answer  # noqa: B018


class Work:
    """A tool whose first call waits."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.started, self.go = threading.Event(), threading.Event()

    def work(self, number: int) -> str:
        """Works."""
        self.begun.append(number)
        self.started.set()
        self.go.wait(20)
        return "ok"


async def cancelled_in_the_first_call(provider: Provider, api: str, tool: Work, way: str) -> Any:
    """Cancels a turn while the first of two calls runs, lets that call end, and waits for its thread."""
    server = at(provider, api, "two-calls")
    pieces = astream(server, "Go.", tools=[tool.work], max_tokens=256)

    async def read() -> None:
        if way == "aask":
            await aask(server, "Go.", tools=[tool.work], max_tokens=256)
        async for _ in pieces:
            pass

    before = set(threading.enumerate())
    task = asyncio.create_task(read())
    await asyncio.to_thread(tool.started.wait, 20)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    tool.go.set()
    for thread in set(threading.enumerate()) - before:
        if thread.name == "loop_core":
            await asyncio.to_thread(thread.join, 20)
    return None if way == "aask" else pieces.answer


@each_format
@pytest.mark.parametrize("way", ["aask", "astream"])
def test_no_further_call_begins_after_the_turn_was_ended(provider: Provider, api: str, way: str) -> None:
    tool = Work()
    answer = asyncio.run(cancelled_in_the_first_call(provider, api, tool, way))
    assert tool.begun == [1]
    if answer is None:
        return
    assert answer.terminal == "cancelled"
    # Whoever goes on reads that the call may have had an effect, and no provider sees a call without its result.
    assert [message.tool_calls for message in answer.history] == [()] * 3
    assert "may have run in part: work." in answer.history[-1].text
    assert answer.ask("Go on.").terminal == "completed"


def test_work_after_the_stop_is_never_begun() -> None:
    begun: list[int] = []

    async def work() -> None:
        begun.append(1)

    async def run_after_stop() -> None:
        stop = asyncio.Event()
        stop.set()
        assert await unless(stop, work()) is None

    asyncio.run(run_after_stop())
    assert begun == []


def work(number: int) -> str:
    """Works."""
    return "ok"


@each_format
def test_a_history_is_stored_and_read_again(provider: Provider, api: str) -> None:
    answer = ask(at(provider, api, "two-calls"), "Go.", tools=[work], max_tokens=256)
    assert [message.role for message in answer.history][-2:] == [Role.TOOL, Role.ASSISTANT]
    assert [message.text for message in answer.history][-1] == "Done."
    stored = json.dumps(encode_request(api, replace(answer.turn.request, messages=answer.history)))
    assert "I run both." in stored
    again = decode_request(api, json.loads(stored))
    assert encode_request(api, replace(answer.turn.request, messages=again.messages)) == json.loads(stored)
