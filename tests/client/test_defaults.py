"""A turn of which nothing is said but the server: what it allows is known without help."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from inspector.provider import PlacedFault, Story, serving
from loop_core.client.address import Server
from loop_core.client.conversation import ask
from loop_core.client.transport import AsyncLive, Live
from loop_core.errors import CallerError
from loop_core.formats import FORMATS
from loop_core.turn.loop import Plan, arun, run
from loop_core.values import Message, Request, Role, TextPart
from loop_core.wire import wire
from loop_core.wire.format import Prefill
from tests.scenes.live import PATIENT
from tests.scenes.provider import BASES, TEXT

CUT = Story("cut", "a text is cut", BASES["text"], faults=(PlacedFault("cut", 20, 0, 0),))
SYSTEM_AT_THE_END = {"openai_chat", "openai_responses", "ollama_chat"}
"""Formats whose servers take a system message behind an answer; Anthropic, Converse and Gemini have none there."""


@pytest.mark.parametrize("api", FORMATS)
@pytest.mark.parametrize("plan", [None, Plan()], ids=["none", "empty"])
def test_a_plan_of_nothing_asks_as_the_server_wants(api: str, plan: Plan | None) -> None:
    asked = Request(api, (Message(Role.USER, (TextPart("Go on."),)),), "cut", max_tokens=400, stream=True)
    with serving(CUT) as provider:
        server = Server(api, provider.bases[api])
        with Live(server, line=PATIENT) as source:
            turn = run("t", asked, source, plan).steps[-1].turn

        async def async_answer() -> str:
            async with AsyncLive(server, line=PATIENT) as source:
                return (await arun("t", asked, source, plan)).steps[-1].turn.joined_answer().text

        assert asyncio.run(async_answer()) == turn.joined_answer().text == TEXT
        sent = [seen.request.messages for seen in provider.seen]
    assert len(sent) == 4
    if wire(api).history == "prompt":  # one text, which ends with what was said or asks to go on
        (prompt,) = sent[1]
        assert prompt.text.endswith(TEXT[:80]) is (Prefill.NONE in wire(api).prefills)
    else:
        assert [message.role for message in sent[1][2:]] == [Role.SYSTEM if api in SYSTEM_AT_THE_END else Role.USER]
    assert turn.provider == "generic"


def test_what_a_plan_says_goes_before_what_the_server_says() -> None:
    asked = Request("anthropic_messages", (Message(Role.USER, (TextPart("Go on."),)),), "claude-3-5-haiku-latest",
                    max_tokens=400, stream=True)
    with serving(CUT) as provider:
        server = Server("anthropic_messages", provider.bases["anthropic_messages"], profile="anthropic")
        with Live(server, line=PATIENT) as source:
            known = run("t", asked, source).steps[-1].turn
            said = run("t", asked, source, Plan(provider="mine")).steps[-1].turn
    assert (known.ability.prefill, known.ability.echoes, known.provider) == (True, False, "anthropic")
    assert (said.ability.prefill, said.provider) == (True, "mine")


def test_a_number_is_no_connection() -> None:
    with pytest.raises(CallerError, match="line: expected Connection, not int"):
        ask(Server("openai_chat", "http://127.0.0.1:9", model="m"), "hello", line=30)  # type: ignore[arg-type]


def test_a_refused_address_says_which_field_of_a_program_it_concerns() -> None:
    with pytest.raises(CallerError, match=r"in a program: Server\.base"):
        Server("openai_chat", "localhost:8080")
    with pytest.raises(CallerError, match=r"Server\(…, insecure_http=\('far\.example',\)\) in a program"):
        ask(Server("openai_chat", "http://far.example", key="sk-secret"), "hello")


@pytest.mark.parametrize(("prompt", "why"), [
    ({"role": "user", "content": "hi"}, "a list of messages, not one message"),
    (Message(Role.USER, (TextPart("hi"),)), "a list of messages, not one message"),
    ([Message("user", (TextPart("hi"),))], "not a message: a Message has a Role and parts"),
    ([Message(Role.USER, ("hi",))], "not a message: a Message has a Role and parts"),
])
def test_what_looks_like_a_prompt_is_refused(prompt: Any, why: str) -> None:
    with pytest.raises(CallerError, match=why):
        ask(Server("openai_chat", "http://127.0.0.1:9", model="m"), prompt)
