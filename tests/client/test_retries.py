"""Which answers are asked for again: those of which nothing was seen, and never where it would stand twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, nan

import pytest

from loop_core.client.address import Server
from loop_core.client.exchange import LiveResponse, Observer, ResponseReader, Retries, Timeouts, is_stored, retryable
from loop_core.client.outgoing import LiveRequest, live_request
from loop_core.errors import CallerError
from loop_core.turn.continuation import Method
from loop_core.turn.state import RequestPlace, Send
from loop_core.values import CallKind, Request, Tool, TransportEnd
from tests.scenes.live import request

SERVER = Server("openai_chat", "http://127.0.0.1:9")
ROLE = b'data: {"choices":[{"index":0,"delta":{"role":"assistant"}}]}\n\n'
TEXT = b'data: {"choices":[{"index":0,"delta":{"content":"Once"}}]}\n\n'
THOUGHT = b'data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}\n\n'
REFUSED = b'data: {"choices":[{"index":0,"delta":{"refusal":"No."}}]}\n\n'
DONE = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
OVERLOADED = b'data: {"error":{"message":"overloaded","type":"overloaded_error"}}\n\n'
INVALID = b'data: {"error":{"message":"no such model","type":"invalid_request_error"}}\n\n'


def response_of(body: bytes, end: TransportEnd = TransportEnd.EOF, asked: Request | None = None, *,
                left: bool = True, status: int | None = 200) -> LiveResponse:
    asked = asked or request("openai_chat")
    made: LiveRequest = live_request(SERVER, asked, Send(RequestPlace.REQUEST, 0, Method.FIRST), 0)
    hearing = ResponseReader(made, SERVER, Observer())
    if status is not None:
        hearing.begin(status, [("content-type", "text/event-stream")])
    hearing.feed(body, 1)
    return hearing.close(end, 2, may_have_arrived=left)


@pytest.mark.parametrize(("body", "end", "again"), [
    (b"", TransportEnd.EOF, True), (ROLE, TransportEnd.EOF, True), (ROLE, TransportEnd.RESET, True),
    (ROLE, TransportEnd.TIMEOUT, True), (ROLE, TransportEnd.ABORTED, False), (THOUGHT, TransportEnd.RESET, True),
    (TEXT, TransportEnd.RESET, False), (REFUSED, TransportEnd.RESET, False), (ROLE + DONE, TransportEnd.EOF, False),
    (ROLE + DONE, TransportEnd.RESET, False), (OVERLOADED, TransportEnd.EOF, True), (INVALID, TransportEnd.EOF, False),
    (TEXT + OVERLOADED, TransportEnd.EOF, False), (b'{"choices": [{"message": {"content": "On', TransportEnd.EOF, True),
    (b"<html>Sign in</html>", TransportEnd.EOF, False),
])
def test_what_broke_before_it_was_seen_is_asked_for_again(body: bytes, end: TransportEnd, again: bool) -> None:
    assert retryable(response_of(body, end)) is again


@pytest.mark.parametrize("kept", [
    {"extra": {"store": True}}, {"extra": {"conversation": "c"}}, {"previous_id": "r"}, {"background": True},
])
def test_what_the_server_keeps_is_not_asked_for_twice(kept: dict[str, object]) -> None:
    asked = replace(request("openai_chat"), **kept)  # type: ignore[arg-type]
    assert is_stored(asked)
    assert not retryable(response_of(ROLE, asked=asked))
    assert not retryable(response_of(b"", TransportEnd.RESET, asked, status=None))
    assert retryable(response_of(b"", TransportEnd.RESET, asked, status=None, left=False)), "no connection was made"


def test_a_whole_body_may_hide_what_a_tool_of_the_server_did() -> None:
    body = b'{"choices": [{"message": {"content": "On'
    asked = replace(request("openai_chat"), tools=(Tool("search", kind=CallKind.SERVER),))
    made = response_of(body)
    assert not retryable(replace(made, ask=replace(made.ask, request=asked)))


def test_it_is_asked_for_again_within_the_bounds() -> None:
    bounds = Retries(most=2, first=0.5)
    made = response_of(ROLE)
    waits = [bounds.wait(replace(made, ask=replace(made.ask, attempt=attempt))) for attempt in range(3)]
    assert waits == [0.5, 1.0, None]


@pytest.mark.parametrize(("make", "why"), [
    (lambda: Timeouts(silence=inf), "silence: inf is not a number of seconds from 0 to 1,000,000"),
    (lambda: Timeouts(connect=-1), "connect: -1 is not"),
    (lambda: Timeouts(whole=nan), "whole: nan is not"),
    (lambda: Timeouts(poll="2"), "poll: '2' is not"),  # type: ignore[arg-type]
    (lambda: Retries(first=-1), "first: -1 is not"),
    (lambda: Retries(longest=2_000_000), "longest: 2000000 is not"),
])
def test_a_time_that_no_clock_can_wait_is_refused(make: Callable[[], object], why: str) -> None:
    with pytest.raises(CallerError, match=why):
        make()


@pytest.mark.parametrize("most", [-1, 1.5, "3", None, True])
def test_a_number_of_retries_that_is_none_is_refused_before_anything_is_sent(most: object) -> None:
    with pytest.raises(CallerError, match=f"most: {most!r} is not a whole number from 0"):
        Retries(most=most)  # type: ignore[arg-type]
