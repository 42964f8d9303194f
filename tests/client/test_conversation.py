"""`ask` and its kin against the scripted provider: a turn in one statement, whatever the server does to it."""

from __future__ import annotations

import asyncio
import gc
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.provider import Provider, serving
from loop_core import (
    Answer,
    Limits,
    Message,
    Plan,
    Request,
    Server,
    ToolError,
    aask,
    ask,
    astream,
    encode_response,
    preset,
    read,
    run,
    stream,
)
from loop_core.client.exchange import Connection, Retries
from loop_core.client.streaming import ShownText
from loop_core.errors import CallerError, EncodeError
from loop_core.judge.gate import Admission
from loop_core.turn.machine import TRANSITIONS
from loop_core.turn.policy import STRICT
from loop_core.turn.state import Event, RunTools, Send, Turn
from loop_core.values import ChatResponse, Role, Stop, StopReason, TextPart, TransportEnd, Usage
from tests.scenes.live import PATIENT, QUICK, EventLog
from tests.scenes.provider import CALLING

each_format = pytest.mark.parametrize("api", CALLING)
SCENARIOS = ("text", "cut-twice", "call", "cut-call", "restart", "filtered", "reset", "thinking")
FURTHER = ("stalled",)
QUIET = {"name": "quiet", "story": "Nothing is to be shown.", "prompt": "Anything new?",
         "answers": [{"text": "HEARTBEAT_OK"}]}
KEY = "sk-test-0123456789abcdef-0123456789abcdef"
PARROT = {**QUIET, "name": "parrot", "answers": [{"text": f"You sent me {KEY}, and I tell everybody."}]}
NEARLY = {**QUIET, "name": "nearly", "answers": [{"text": "HEARTBEAT_OK, and the disk is full."}]}


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with serving(*SCENARIOS, *FURTHER, QUIET, NEARLY, PARROT) as running:
        yield running


def at(provider: Provider, api: str, model: str) -> Server:
    return Server(api, provider.bases[api], model=model)


def on_call(team: str) -> str:
    """Tells who is on call for a team."""
    return "Ada"


class Files:
    """A folder."""

    def __init__(self) -> None:
        self.written: list[tuple[str, str]] = []

    def tool(self) -> Any:
        def write_file(path: str, content: str) -> str:
            """Writes a file."""
            self.written.append((path, content))
            return f"{len(content)} bytes written"

        return write_file


# -- ask -------------------------------------------------------------------------------------------------------------


@each_format
def test_a_tool_is_run_and_its_result_answered(provider: Provider, api: str) -> None:
    answer = ask(at(provider, api, "call"), "Who is on call?", tools=[on_call], max_tokens=256)
    assert (answer.terminal, answer.notice, answer.text) == ("completed", None, "Ada is on call for the platform.")
    assert [(v.call.name, v.arguments, v.admission) for v in answer.calls] \
        == [("on_call", {"team": "platform"}, Admission.READY)]
    (results,) = [message.results for message in answer.turn.history if message.results]
    assert [part.text for part in results] == ["Ada"]
    heard = [step.event.response for step in answer.trace.steps if hasattr(step.event, "response")]
    assert answer.usage is not None
    assert answer.usage.output_tokens == sum(each.usage.output_tokens for each in heard)


@each_format
def test_a_cut_call_runs_once_and_whole(provider: Provider, api: str) -> None:
    files = Files()
    answer = ask(at(provider, api, "cut-call"), "Write the report to a file.", tools=[files.tool()], max_tokens=256)
    assert (answer.terminal, answer.text) == ("completed", "The report is in report.md.")
    assert files.written == [("report.md", "Saturated from 09:14 to 09:33; no message was lost.")]
    assert [verdict.admission for verdict in answer.calls][-1] is Admission.READY
    assert sum(verdict.admission is Admission.READY for verdict in answer.calls) == 1


def test_a_cut_answer_is_whole_and_its_limits_are_those_that_were_given(provider: Provider) -> None:
    server = at(provider, "openai_chat", "cut-twice")
    whole = ask(server, "Explain the failed deploy.", max_tokens=256)
    assert whole.terminal == "completed"
    assert len(whole.turn.answers[-1]) == 3
    once = ask(server, "Explain the failed deploy.", max_tokens=256, limits=Limits(continuation_max_attempts=1))
    assert once.terminal == "retry_limit"
    assert once.notice is not None
    assert "continuation_max_attempts (1)" in once.notice
    assert whole.text.startswith(once.text)
    assert once.text != whole.text


def test_the_error_of_a_provider_stands_beside_the_words_about_it(provider: Provider) -> None:
    refused = ask(at(provider, "openai_chat", "no-such-scenario"), "Hello?")
    assert refused.error is not None
    assert (refused.terminal, refused.error.retryable) == ("error", False)
    assert refused.error.message in (refused.notice or "")
    with serving("error-after-200") as failing:
        broken = ask(at(failing, "openai_chat", "m"), "Hello?", line=Connection(retries=Retries(most=0)))
    assert (broken.terminal, broken.error is not None, broken.text != "") == ("error", True, True)
    unreachable = ask(Server("openai_chat", "http://127.0.0.1:9", model="m"), "Hello?",
                      line=Connection(retries=Retries(most=0)))
    assert (unreachable.terminal, unreachable.error) == ("interrupted", None)
    assert ask(at(provider, "openai_chat", "text"), "Hello?", max_tokens=256).error is None


def test_every_end_of_a_turn_stands_beside_the_attribute() -> None:
    ends = {row.terminal for row in TRANSITIONS.values() if row.terminal is not None}
    assert set(re.findall("`([a-z_]+)`", Answer.terminal.__doc__ or "")) == ends


class Expiring:
    """Signs so many requests, then has no credentials any more, as a session that ends."""

    secrets = ()

    def __init__(self, times: int) -> None:
        self.times, self.calls = times, 0

    def __call__(self, method: str, url: str, headers: Any, content: bytes) -> tuple[tuple[str, str], ...]:
        self.calls += 1
        if self.calls > self.times:
            raise CallerError("the session has ended")
        return ()


@pytest.mark.parametrize("asks", [ask, lambda *given, **named: asyncio.run(aask(*given, **named))])
def test_a_later_request_that_cannot_be_signed_ends_the_turn_with_what_was_read(provider: Provider, asks: Any) -> None:
    server = replace(at(provider, "openai_chat", "cut-twice"), sign=Expiring(1))
    answer = asks(server, "Explain the failed deploy.", max_tokens=256)
    assert answer.terminal == "unrecorded"
    assert answer.text
    assert "the session has ended" in answer.notice


def test_an_answer_whose_repetition_cannot_be_signed_stays_the_answer() -> None:
    signer = Expiring(1)
    answer = ask(Server("openai_chat", "http://127.0.0.1:9/v1", model="m", sign=signer), "Hello?",
                 line=Connection(retries=Retries(2, first=0.01)))
    assert signer.calls == 2
    assert answer.terminal == "interrupted"
    assert "127.0.0.1:9" in answer.notice


def test_the_first_request_that_cannot_be_signed_is_refused(provider: Provider) -> None:
    with pytest.raises(CallerError, match="the session has ended"):
        ask(replace(at(provider, "openai_chat", "text"), sign=Expiring(0)), "Hello?")


def test_the_policy_may_be_named(provider: Provider) -> None:
    server = at(provider, "openai_chat", "cut-twice")
    for policy in ("pi-presence", preset("pi-presence")):
        assert ask(server, "Explain.", policy=policy, max_tokens=256).turn.policy.name == "pi-presence"
    with pytest.raises(CallerError, match="unknown policy 'lax'"):
        ask(server, "Explain.", policy="lax")


@each_format
def test_a_conversation_goes_on_from_what_was_said(provider: Provider, api: str) -> None:
    seen = len(provider.seen)
    first = ask(at(provider, api, "call"), "Who is on call?", tools=[on_call], max_tokens=256)
    second = first.ask("And tomorrow?")
    said = [(message.role, message.text) for message in second.turn.request.messages]
    assert said[0] == (Role.USER, "Who is on call?")
    assert said[-2:] == [(Role.ASSISTANT, first.text), (Role.USER, "And tomorrow?")]
    assert [first.turn.id, second.turn.id, second.ask("Then?").turn.id] == ["t1", "t2", "t3"]
    assert [tool.name for tool in second.turn.request.tools] == ["on_call"]
    assert len(provider.seen) > seen + 2


def test_what_the_server_keeps_is_not_said_to_it_twice(provider: Provider) -> None:
    asked = Request("openai_responses", (Message(Role.USER, (TextPart("Hello?"),)),), stream=True,
                    extra={"conversation": "conv_1"})
    answer = ask(at(provider, "openai_responses", "text"), asked, max_tokens=256)
    assert answer.terminal == "completed"
    seen = len(provider.seen)
    for go_on in (answer.ask, answer.stream, answer.astream):
        with pytest.raises(CallerError, match="would get the history twice: expected ask"):
            go_on("And then?")
    with pytest.raises(CallerError, match="would get the history twice"):
        asyncio.run(answer.aask("And then?"))
    assert len(provider.seen) == seen
    # A chain goes on from what the turn began from, so that nothing stands in it twice.
    chained = ask(at(provider, "openai_responses", "text"), replace(asked, extra={"store": True}), max_tokens=256)
    assert chained.ask("And then?").turn.request.messages[-1].text == "And then?"


def test_on_an_event_loop_it_is_the_same(provider: Provider) -> None:
    async def both() -> tuple[Any, Any]:
        server = at(provider, "anthropic_messages", "call")
        first, other = await asyncio.gather(*[
            aask(server, "Who is on call?", tools=[on_call], max_tokens=256) for _ in range(2)])
        assert other.text == first.text
        return first, await first.aask("And tomorrow?")

    first, second = asyncio.run(both())
    assert (first.terminal, first.text) == ("completed", "Ada is on call for the platform.")
    assert second.turn.request.messages[-1].text == "And tomorrow?"


def test_a_server_that_is_not_there_is_an_end_and_no_exception() -> None:
    answer = ask(Server("openai_chat", "http://127.0.0.1:9", model="m"), "Hello?", line=QUICK)
    assert answer.terminal in ("error", "interrupted")
    assert (answer.text, answer.calls, answer.usage) == ("", (), None)
    assert answer.notice


def test_a_silent_word_is_no_text(provider: Provider) -> None:
    answer = ask(at(provider, "openai_chat", "quiet"), "Anything new?", max_tokens=256)
    assert (answer.text, answer.silent, answer.terminal) == ("", "HEARTBEAT_OK", "completed")


def test_an_observer_is_told(provider: Provider) -> None:
    told = EventLog()
    ask(at(provider, "openai_chat", "text"), "Hello?", max_tokens=256, observer=told)  # type: ignore[arg-type]
    assert [name for name, _ in told if name != "came"] == ["asked", "begun", "ended"]
    told.clear()
    pieces = list(stream(at(provider, "openai_chat", "text"), "Hello?", max_tokens=256,
                         observer=told))  # type: ignore[arg-type]
    assert [name for name, _ in told if name != "came"] == ["asked", "begun", "ended"]
    assert b"".join(told.of("came")).count(b"data:") >= len(pieces)


# -- what is asked ---------------------------------------------------------------------------------------------------


@each_format
def test_a_history_and_a_request_may_be_asked(provider: Provider, api: str) -> None:
    server = at(provider, api, "text")
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello?"}]
    messages = [Message(Role.SYSTEM, (TextPart("Be brief."),)), Message(Role.USER, (TextPart("Hello?"),))]
    for prompt in (chat, messages, Request(api, tuple(messages), "text", stream=True)):
        answer = ask(server, prompt, max_tokens=256)
        assert answer.terminal == "completed"
        assert [(message.role, message.text) for message in answer.turn.request.messages] \
            == [(Role.SYSTEM, "Be brief."), (Role.USER, "Hello?")]
        assert (answer.turn.request.model, answer.turn.request.max_tokens) == ("text", 256)


@pytest.mark.parametrize(("role", "read_as"), [
    ("system", Role.SYSTEM), ("developer", Role.SYSTEM), ("user", Role.USER), ("assistant", Role.ASSISTANT),
    ("tool", Role.TOOL),
])
def test_every_role_of_a_chat_may_be_asked(role: str, read_as: Role) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "on_call", "arguments": "{}"}}
    chat: list[dict[str, Any]] = [{"role": role, "content": "Hello?"}]
    if role == "tool":
        chat = [{"role": "assistant", "content": None, "tool_calls": [call]}, {**chat[0], "tool_call_id": "c1"}]
    answer = ask(Server("openai_chat", "http://127.0.0.1:9", model="m"), chat, line=Connection(retries=Retries(most=0)))
    assert answer.turn.request.messages[-1].role is read_as


@pytest.mark.parametrize(("prompt", "why"), [
    (None, "prompt: expected a text, or a list of messages, not NoneType"),
    (b"hi", "prompt: expected a text, or a list of messages, not bytes"),
    ("", "there is nothing to send"),
    ([], "there is nothing to send"),
    ([{"role": "user", "content": ""}], "there is nothing to send"),
    ([{"rol": "user", "content": "hi"}], "expected a role that is one of assistant, developer, .*, not None"),
    ([{"role": "bot", "content": "hi"}], "expected a role that is one of .*, not 'bot'"),
    (["hi"], "not a message: expected {'role': …, 'content': …}, not str"),
    (Request("openai_chat", ({"role": "user", "content": "hi"},)), "not a message: a Message has a Role and parts"),
    (Request("openai_chat", (Message("user", ("hi",)),)), "not a message: a Message has a Role and parts"),
    (Request("ollama_chat"), "a request of ollama_chat was given for a server of openai_chat"),
])
def test_what_is_no_question_is_refused(prompt: Any, why: str) -> None:
    with pytest.raises(CallerError, match=why):
        ask(Server("openai_chat", "http://127.0.0.1:9"), prompt)


def test_nothing_leaves_that_should_not() -> None:
    with pytest.raises(CallerError, match="unencrypted"):
        ask(Server("openai_chat", "http://models.example", key="sk-12345678"), "Hello?")


def test_what_the_api_requires_is_said_before_anything_is_sent() -> None:
    with pytest.raises(EncodeError, match="max_tokens"):
        ask(Server("anthropic_messages", "http://127.0.0.1:9", model="m"), "Hello?")


# -- streams ---------------------------------------------------------------------------------------------------------


@each_format
@pytest.mark.parametrize("model", SCENARIOS)
def test_what_is_shown_ends_with_the_answer(provider: Provider, api: str, model: str) -> None:
    files = Files()
    server = at(provider, api, model)
    shown = stream(server, "Go on.", tools=[on_call, files.tool()], max_tokens=256, line=QUICK)
    pieces = list(shown)
    assert all(pieces)
    text = "".join(pieces)
    assert text.endswith(shown.answer.text)
    if model in ("text", "cut-twice", "restart"):
        assert text == shown.answer.text
    if model in ("call", "cut-call"):
        before = {"call": "I look it up.", "cut-call": "I write the report to a file."}[model]
        assert text == f"{before}\n\n{shown.answer.text}"
    twin = ask(server, "Go on.", tools=[on_call, files.tool()], max_tokens=256, line=QUICK)
    assert (twin.text, twin.terminal) == (shown.answer.text, shown.answer.terminal)


@each_format
def test_a_silent_word_is_not_shown_and_what_begins_like_one_is(provider: Provider, api: str) -> None:
    quiet = stream(at(provider, api, "quiet"), "Anything new?", max_tokens=256)
    assert list(quiet) == []
    assert quiet.answer.silent == "HEARTBEAT_OK"
    nearly = stream(at(provider, api, "nearly"), "Anything new?", max_tokens=256)
    assert "".join(nearly) == "HEARTBEAT_OK, and the disk is full." == nearly.answer.text


@each_format
def test_a_key_that_the_server_repeats_in_pieces_is_not_shown(provider: Provider, api: str) -> None:
    server = Server(api, provider.bases[api], key=KEY, model="parrot")
    shown = stream(server, "What did I send?", max_tokens=256)
    text = "".join(shown)
    assert text == shown.answer.text == f"You sent me {'*' * len(KEY)}, and I tell everybody."


def test_a_stream_on_an_event_loop_and_the_next_message(provider: Provider) -> None:
    async def both() -> None:
        first = astream(at(provider, "openai_chat", "text"), "Hello?", max_tokens=256)
        with pytest.raises(CallerError, match="not been read to its end"):
            first.answer  # noqa: B018
        text = "".join([piece async for piece in first])
        assert text == first.answer.text
        then = first.answer.astream("And?")
        assert "".join([piece async for piece in then]) == then.answer.text
        with pytest.raises(CallerError, match="expected astream"):
            list(first.answer.stream("And here?"))

    asyncio.run(both())


def test_an_answer_goes_on_as_a_stream(provider: Provider) -> None:
    first = ask(at(provider, "openai_chat", "call"), "Who is on call?", tools=[on_call], max_tokens=256)
    then = first.stream("And tomorrow?")
    assert "".join(then).endswith(then.answer.text)
    assert then.answer.turn.id == "t2"
    assert [message.text for message in then.answer.turn.request.messages][-2:] == [first.text, "And tomorrow?"]


def test_to_stop_reading_ends_the_turn(provider: Provider) -> None:
    told = EventLog()
    server = at(provider, "openai_chat", "stalled")  # it begins an answer and falls silent
    with stream(server, "Explain.", max_tokens=256, line=PATIENT, observer=told) as pieces:  # type: ignore[arg-type]
        for _ in pieces:
            break
    assert [heard.response.transport_end for heard in told.of("ended")] == [TransportEnd.ABORTED]
    assert len(told.of("asked")) == 1
    assert (pieces.answer.terminal, pieces.answer.calls) == ("cancelled", ())


def test_a_stream_that_nothing_refers_to_any_more_ends_its_turn(provider: Provider) -> None:
    """The request would run on, and be paid for, until the garbage collector found it."""
    told, server = EventLog(), at(provider, "openai_chat", "stalled")

    def ends() -> list[TransportEnd]:
        return [heard.response.transport_end for heard in told.of("ended")]

    async def drop() -> None:
        async for _ in astream(server, "Explain.", max_tokens=256, line=PATIENT, observer=told):  # type: ignore[arg-type]
            break
        for _ in range(250):
            if len(ends()) == 2:
                return
            await asyncio.sleep(0.02)
        raise AssertionError("the request runs on")

    gc.disable()
    try:
        for _ in stream(server, "Explain.", max_tokens=256, line=PATIENT, observer=told):  # type: ignore[arg-type]
            break
        assert ends() == [TransportEnd.ABORTED]
        asyncio.run(drop())
        assert ends() == [TransportEnd.ABORTED] * 2
    finally:
        gc.enable()


def test_what_cannot_be_asked_is_raised_where_it_is_read() -> None:
    pieces = stream(Server("anthropic_messages", "http://127.0.0.1:9", model="m"), "Hello?")
    with pytest.raises(EncodeError, match="max_tokens"):
        list(pieces)


class Saying:
    """A source that answers from a list and shows what comes, in pieces, as a server would send it."""

    def __init__(self, shown: ShownText, answers: Sequence[tuple[str, str]], size: int) -> None:
        self.shown, self.answers, self.size = shown, iter(answers), size

    def respond(self, send: Send, turn: Turn) -> Event:
        text, word = next(self.answers, ("The end.", "stop"))
        self.shown.begin(turn, send)
        mapped = {"stop": Stop.END_TURN, "length": Stop.MAX_TOKENS}[word]
        response = ChatResponse("openai_chat", (TextPart(text),) if text else (), StopReason(mapped, word), Usage(1, 5))
        body = b"".join(encode_response("openai_chat", response, stream=True, chunk=3))
        self.shown.on_head(0, 200, ())
        for start, end in pairwise([*range(0, len(body), self.size), len(body)]):
            self.shown.on_data(0, body[start:end], 0.0)
        return read("openai_chat", body, request=turn.request).event

    def run_tools(self, effect: RunTools, turn: Turn) -> Event:
        raise ToolError("nothing was called")

    def follow_up(self, turn: Turn) -> tuple[Message, ...]:
        return ()


def test_a_text_is_shown_as_it_comes_and_a_continuation_once_its_seam_is_decided() -> None:
    pieces: list[str] = []
    shown = ShownText("openai_chat", (), STRICT, pieces.append)
    first, rest = "Once upon a time there was a queue that ", "held a thousand messages. " * 20
    said = Message(Role.USER, (TextPart("Tell me."),))
    source = Saying(shown, [(first, "length"), (first[-40:] + rest, "stop")], 30)
    trace = run("t1", Request("openai_chat", (said,), "m", stream=True), source, Plan())
    shown.finish(trace.steps[-1].turn, None)
    assert "".join(pieces) == trace.steps[-1].turn.joined_answer().text
    before = [piece for piece in pieces if piece in first]
    assert len(before) > 5, "three characters come with each event"
    assert len(pieces) - len(before) > 5, "long before its end"


ROW = "The queue was saturated from nine fourteen to nine thirty-three, and no message was lost at all. "
texts = st.one_of(
    st.sampled_from(["", " ", "\n", "HEARTBEAT_OK", "HEARTBEAT", "__SILENT__ ", ROW, ROW * 8, ROW[:40], ROW[40:]]),
    st.text(alphabet="ab \n", max_size=400), st.integers(0, len(ROW)).map(lambda at: ROW[at:] + ROW[:at] * 4),
)


@given(st.lists(st.tuples(texts, st.sampled_from(["length", "length", "stop"])), max_size=5), st.integers(1, 200))
@settings(max_examples=40, deadline=None)
def test_whatever_a_model_says_what_was_shown_ends_with_the_answer(answers: list[tuple[str, str]], size: int) -> None:
    pieces: list[str] = []
    shown = ShownText("openai_chat", (), STRICT, pieces.append)
    said = Message(Role.USER, (TextPart("Go on."),))
    trace = run("t1", Request("openai_chat", (said,), "m", stream=True), Saying(shown, answers, size), Plan())
    (end,) = trace.steps[-1].effects
    shown.finish(trace.steps[-1].turn, end.silent)  # type: ignore[union-attr]
    text = trace.steps[-1].turn.joined_answer().text
    if end.silent is None:  # type: ignore[union-attr]
        assert "".join(pieces).endswith(text)
        if len(trace.steps[-1].turn.answers[-1]) < 2:
            assert "".join(pieces) == text
    else:
        assert pieces == []
    assert json.dumps(pieces)
