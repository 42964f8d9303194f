"""Connections that stay open behind the end of an answer: one rule for all formats, and what comes behind is kept."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from loop_core import stream
from loop_core.client.exchange import Connection, Timeouts
from loop_core.client.transport import Live
from loop_core.turn.loop import run
from loop_core.turn.state import Turn
from loop_core.values import Stop, TransportEnd, Usage
from tests.scenes.live import ERROR, WORDS, EventLog, answer, async_turn, plan, request, server, streams, sync_turn
from tests.scenes.loopback import Answer, Fake, Peer, read

RunTurn = Callable[..., tuple[Turn, EventLog]]


@pytest.fixture(params=[sync_turn, async_turn], ids=["sync", "async"])
def run_turn(request: pytest.FixtureRequest) -> RunTurn:
    made: RunTurn = request.param
    return made


OPEN = Connection(Timeouts(silence=20, after_end=0.3, after_stop=0.6))
"""For a connection that is kept open behind the end of an answer."""
LATE = {"openai_responses": b'data: {"type":"response.note"}\n\n', "ollama_chat": b'{"model":"m","note":1}\n'}
"""Format -> an event that may follow its last one; for the others a comment."""


@pytest.mark.parametrize("api", WORDS)
def test_an_answer_that_is_over_is_not_waited_on(api: str, fake: Fake, run_turn: RunTurn) -> None:
    """Some servers keep the socket open behind the last event. What comes at once is kept, what comes later is not."""
    late = LATE.get(api, b": behind the end\n\n") if api not in ("bedrock_converse", "bedrock_invoke") else b""

    def then(peer: Peer) -> None:
        peer.hold(0.05)  # the bytes come in a piece of their own
        peer.send(late)
        for _ in range(30):  # a sign of life now and then says nothing about the answer
            peer.hold(0.1)
            peer.send(b": alive\n\n" if "bedrock" not in api else b"")
        peer.hold()

    pieces = answer(api, "One", Stop.END_TURN, usage=Usage(3, 7))
    fake.answers = [streams(api, pieces, then)]
    began = time.monotonic()
    turn, told = run_turn(api, fake, line=OPEN)
    assert time.monotonic() - began < 2.5, "it waited for more than the time behind the end"
    assert (turn.terminal, turn.joined_answer().text, len(fake.got)) == ("completed", "One", 1)
    (heard,) = told.of("ended")
    assert heard.body.startswith(b"".join(pieces) + late)
    # Gemini has no last event: the finish reason may be followed by more.
    ends_openly = api == "gemini_generate"
    assert heard.response.transport_end is (TransportEnd.TIMEOUT if ends_openly else TransportEnd.EOF)
    nothing = f"{fake.url[7:]} sent nothing of the answer for 0.6 s after its stop word or error"
    assert heard.problem == (nothing if ends_openly else "")


def test_what_follows_a_stop_word_in_time_is_read(fake: Fake, run_turn: RunTurn) -> None:
    """The wait begins again with each event: text may follow a finish reason of Gemini."""
    first, second = answer("gemini_generate", "One", Stop.END_TURN), answer("gemini_generate", " two", Stop.END_TURN)

    def then(peer: Peer) -> None:
        for piece in (*second[:-1], *second):
            peer.hold(0.3)
            peer.send(piece)

    fake.answers = [streams("gemini_generate", first, then)]
    turn, told = run_turn("gemini_generate", fake, line=OPEN)
    assert turn.joined_answer().text.startswith("One two")
    assert told.of("ended")[0].response.transport_end is TransportEnd.EOF


def chat(index: int, text: str, reason: str | None) -> dict[str, Any]:
    choice = {"index": index, "delta": {"content": text}, "finish_reason": reason}
    return {"id": "x", "model": "m", "choices": [choice]}


def gemini(*candidates: tuple[str, str | None], index: int = 0) -> dict[str, Any]:
    return {"candidates": [{"index": index + at, "content": {"parts": [{"text": text}]},
                            **({} if reason is None else {"finishReason": reason})}
                           for at, (text, reason) in enumerate(candidates)]}


FAR = {
    "an empty word": ("openai_chat", 1, [chat(0, "One", "")], [chat(0, " two", "stop")]),
    "Gemini's empty word": ("gemini_generate", 1, [gemini(("One", ""))], [gemini((" two", "STOP"))]),
    "a word in every chunk": (
        "gemini_generate", 1, [gemini(("One", "STOP")), gemini((" t", "STOP"))], [gemini(("wo", "STOP"))]),
    "the other choice": ("openai_chat", 2, [chat(0, "One", None), chat(1, "Uno", "stop")], [chat(0, " two", "stop")]),
    "the other choice has not begun": ("openai_chat", 2, [chat(1, "Uno", "stop")], [chat(0, "One two", "stop")]),
    "the other candidate": (
        "gemini_generate", 2, [gemini(("One two", "STOP"), ("Uno", None))], [gemini((" dos", "STOP"), index=1)]),
}
"""What ends no answer -> format, number of choices, what comes before a silence and behind it."""


@pytest.mark.parametrize("case", FAR)
def test_a_word_that_ends_nothing_begins_no_wait(case: str, fake: Fake) -> None:
    """Some servers write an empty finish reason into every chunk, and choices end far apart."""
    api, count, before, behind = FAR[case]
    first, last = (b"".join(b"data: %s\n\n" % json.dumps(each).encode() for each in events)
                   for events in (before, behind))

    def then(peer: Peer) -> None:
        peer.hold(0.9)
        peer.send(last)

    fake.answers, told = [streams(api, [first], then)], EventLog()
    with Live(server(api, fake.url), told, None, OPEN) as source:
        ended = run("t", replace(request(api), n=count), source, plan(api)).steps[-1].turn
    (heard,) = told.of("ended")
    assert (heard.problem, heard.body) == ("", first + last)
    assert (ended.terminal, ended.joined_answer().text) == ("completed", "One two")


@pytest.mark.parametrize("then", [Peer.hold, None], ids=["open", "closed"])
def test_a_prompt_that_gemini_blocks_is_neither_waited_on_nor_sent_again(
    then: Callable[[Peer], None] | None, fake: Fake, run_turn: RunTurn
) -> None:
    fake.answers = [streams("gemini_generate", [b'data: {"promptFeedback":{"blockReason":"SAFETY"}}\n\n'], then)]
    began = time.monotonic()
    turn, _ = run_turn("gemini_generate", fake, line=OPEN)
    assert (turn.terminal, len(fake.got), time.monotonic() - began < 4) == ("safety_blocked", 1, True)


def test_a_reader_that_takes_its_time_over_a_piece_is_no_silence_of_the_server(fake: Fake) -> None:
    """The event loop of `stream` stands still between two pieces, while the rest of the answer comes."""
    def then(peer: Peer) -> None:
        peer.hold(0.1)
        peer.send(b"data: %s\n\n" % json.dumps(gemini((" two", "STOP"))).encode())
        peer.hold(0.1)

    fake.answers, told = [streams("gemini_generate", [b'data: {"candidates":[]}\n\n'], then)], EventLog()
    pieces = stream(server("gemini_generate", fake.url), request("gemini_generate"), line=OPEN, observer=told)
    for _ in pieces:
        time.sleep(1)
    (heard,) = told.of("ended")
    assert (heard.problem, heard.response.transport_end, pieces.answer.terminal) == ("", TransportEnd.EOF, "completed")


def test_an_error_right_behind_the_end_of_a_message_is_read_live_too(fake: Fake, run_turn: RunTurn) -> None:
    """It fails the request of Anthropic's client, and a recording of the same bytes says so."""
    error = b'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"lost"}}\n\n'

    def then(peer: Peer) -> None:
        peer.hold(0.05)
        peer.send(error)

    fake.answers = [streams("anthropic_messages", answer("anthropic_messages", "One", Stop.END_TURN), then)]
    turn, told = run_turn("anthropic_messages", fake, line=OPEN)
    (heard,) = told.of("ended")
    assert heard.body.endswith(error)
    assert (turn.terminal, heard.response.error.message) == ("error", "lost")


@pytest.mark.parametrize("api", ["openai_chat", "anthropic_messages", "gemini_generate", "openai_responses"])
def test_a_connection_that_breaks_behind_the_last_event_breaks_nothing(api: str, fake: Fake, run_turn: RunTurn) -> None:
    def then(peer: Peer) -> None:
        peer.hold(0.1)
        peer.reset()

    fake.answers = [streams(api, answer(api, "One", Stop.END_TURN), then)]
    turn, told = run_turn(api, fake, line=OPEN)
    end = told.of("ended")[0].response.transport_end
    assert (turn.terminal, end) == ("completed", TransportEnd.RESET if api == "gemini_generate" else TransportEnd.EOF)


def test_a_stream_that_ends_leaves_its_connection_for_the_next_request(fake: Fake, run_turn: RunTurn) -> None:
    def chunked_answer(text: str, stop: Stop) -> Answer:
        def play(peer: Peer) -> None:
            peer.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            for piece in answer("openai_chat", text, stop):
                peer.send(b"%x\r\n%s\r\n" % (len(piece), piece))
            peer.send(b"0\r\n\r\n")
            if stop is Stop.MAX_TOKENS and (got := read(peer.connection)) is not None:  # the same connection
                fake.got.append(got)
                chunked_answer(" two", Stop.END_TURN)(peer)

        return play

    fake.answers = [chunked_answer("One,", Stop.MAX_TOKENS), lambda peer: peer.whole(500, ERROR)]
    turn, _ = run_turn("openai_chat", fake, line=OPEN)
    assert (turn.terminal, turn.joined_answer().text, len(fake.got)) == ("completed", "One, two", 2)
