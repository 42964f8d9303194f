"""A tool in a thread, in each way to ask: what it raises is raised as it is, and one that hangs holds up nobody."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from loop_core import Answer, Connection, Limits, Server, Timeouts, aask, ask, astream, stream
from loop_core.client.threads import run_in_thread
from loop_core.errors import CallerError
from loop_core.values import Stop, ToolCall
from tests.scenes.live import PATIENT, answer, streams
from tests.scenes.loopback import Fake

CALL = ToolCall("c1", "tool", "{}", closed=True)


def by_stream(*arguments: Any, **more: Any) -> Answer:
    pieces = stream(*arguments, **more)
    list(pieces)
    return pieces.answer


async def by_astream(*arguments: Any, **more: Any) -> Answer:
    pieces = astream(*arguments, **more)
    async for _ in pieces:
        pass
    return pieces.answer


WAYS: dict[str, Callable[..., Answer]] = {
    "ask": ask, "stream": by_stream,
    "aask": lambda *arguments, **more: asyncio.run(aask(*arguments, **more)),
    "astream": lambda *arguments, **more: asyncio.run(by_astream(*arguments, **more)),
}


class OwnError(BaseException):
    """What is no Exception, of a tool's own."""


@pytest.fixture
def server(fake: Fake) -> Server:
    fake.answers = [streams("openai_chat", answer("openai_chat", "Let me see.", Stop.TOOL_CALL, CALL)),
                    streams("openai_chat", answer("openai_chat", "Done.", Stop.END_TURN))]
    return Server("openai_chat", fake.url, model="m")


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, OwnError])
@pytest.mark.parametrize("way", WAYS)
def test_what_ends_a_program_goes_through_as_it_is(way: str, kind: type[BaseException], server: Server) -> None:
    def tool() -> str:
        raise kind("enough")

    with pytest.raises(kind) as raised:
        WAYS[way](server, "Hello?", tools=[tool], line=PATIENT)
    assert str(raised.value) == "enough"


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_whose_own_task_was_cancelled_ends_no_turn(way: str, server: Server, fake: Fake) -> None:
    def tool() -> str:
        raise asyncio.CancelledError

    assert WAYS[way](server, "Hello?", tools=[tool], line=PATIENT).text == "Done."
    assert b"Failed: CancelledError" in fake.got[1].body


@pytest.fixture
def hanging() -> Iterator[Callable[[], str]]:
    release = threading.Event()

    def tool() -> str:
        release.wait(30)
        return "late"

    yield tool
    release.set()


def test_a_tool_that_hangs_holds_up_nobody_who_gave_it_up(server: Server, hanging: Callable[[], str]) -> None:
    async def impatient() -> None:
        async with asyncio.timeout(0.3):
            await aask(server, "Hello?", tools=[hanging], line=PATIENT)

    async def reads_once() -> None:
        async with astream(server, "Hello?", tools=[hanging], line=PATIENT) as pieces:
            async for _ in pieces:
                await asyncio.sleep(0.3)  # the tool runs meanwhile
                break

    began = time.monotonic()
    with pytest.raises(TimeoutError):
        asyncio.run(impatient())  # waits for the loop's own threads too
    asyncio.run(reads_once())
    assert time.monotonic() - began < 15


def test_a_thread_has_the_context_of_its_caller() -> None:
    who: ContextVar[str] = ContextVar("who")

    async def main() -> str:
        who.set("me")
        result: str = await run_in_thread(who.get)
        return result

    assert asyncio.run(main()) == "me"


@pytest.mark.parametrize(("more", "why"), [
    ({"policy": None}, "policy: expected Policy, not NoneType"), ({"limits": 5}, "limits: expected Limits, not int"),
    ({"max_tokens": 0}, "max_tokens: 0 is not a whole number from 1"), ({"max_tokens": "5"}, "max_tokens: '5' is not"),
    ({"max_tokens": True}, "max_tokens: True is not"), ({"line": Timeouts()}, "line: expected Connection, not Time"),
    ({"server": "openai_chat"}, "server: expected Server, not str"),
])
def test_what_is_no_setting_is_refused(more: dict[str, Any], why: str) -> None:
    with pytest.raises(CallerError, match=why):
        ask(**{"server": Server("openai_chat", "http://127.0.0.1:9"), "prompt": "Hello?", **more})


@pytest.mark.parametrize(("more", "why"), [
    ({"timeouts": 30}, "timeouts: expected Timeouts, not int"), ({"retries": 3}, "retries: expected Retries, not int"),
    ({"proxy": 8080}, "proxy: expected a text, not int"),
])
def test_what_is_no_connection_is_refused_before_anything_is_sent(more: dict[str, Any], why: str) -> None:
    with pytest.raises(CallerError, match=why):
        Connection(**more)


def test_an_api_that_does_not_exist_is_refused_at_once() -> None:
    with pytest.raises(CallerError, match="unknown API 'openai'; expected one of openai_chat"):
        Server("openai", "http://127.0.0.1:9")


@pytest.mark.parametrize(("more", "why"), [
    ({"key": None}, "key: expected a text, not NoneType"), ({"model": 5}, "model: expected a text, not int"),
    ({"base": b"http://127.0.0.1"}, "base: expected a text, not bytes"),
    ({"headers": {"x": "y"}}, "headers: expected pairs"), ({"headers": (("x", "y", "z"),)}, "headers: expected pairs"),
    ({"headers": (5,)}, "headers: expected pairs"), ({"headers": (("x", None),)}, "headers: expected pairs"),
    ({"headers": ((None, "x"),)}, "headers: expected pairs"), ({"headers": ("xy",)}, "headers: expected pairs"),
    ({"hidden_words": "a-password"}, "hidden_words: expected a tuple of texts"),
    ({"insecure_http": "far.example"}, "insecure_http: expected a tuple of texts"),
    ({"version": 1}, "version: expected a text, not int"), ({"profile": 5}, "profile: expected a text, not int"),
])
def test_what_is_no_server_is_refused(more: dict[str, Any], why: str) -> None:
    with pytest.raises(CallerError, match=why):
        Server("openai_chat", **more)


@pytest.mark.parametrize("way", WAYS)
def test_half_a_character_at_the_end_of_an_answer_can_be_printed(way: str, server: Server, fake: Fake) -> None:
    """A cap that counts the halves of characters cuts between them."""
    fake.answers = [streams("openai_chat", [
        b'data: {"choices":[{"index":0,"delta":{"content":"Hi \\ud83d"},"finish_reason":"length"}]}\n\n'])]
    answer = WAYS[way](server, "Hello?", line=PATIENT, limits=Limits(continuation_max_attempts=0))
    assert answer.text == "Hi "
    pieces = list(stream(server, "Hello?", line=PATIENT, limits=Limits(continuation_max_attempts=0)))
    assert "".join(pieces) == "Hi "
