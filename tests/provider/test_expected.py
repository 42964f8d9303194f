"""What each fault does to an answer, one by one and by name: seen in the bytes and in how they are sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from inspector.provider.place import Sending
from inspector.provider.reply import Reply
from inspector.provider.scenarios import Kind, PlacedFault, Story
from loop_core.formats import FORMATS
from loop_core.turn.history import hint_message, repair_message
from loop_core.values import ChatResponse, Message, Request, Role, Stop, TextPart, ToolCall
from loop_core.wire import decode, wire
from loop_core.wire.servers import (
    CHAT,
    CONVERSE,
    GEMINI,
    MESSAGES,
    OLLAMA,
    RESPONSES,
)
from tests.scenes.provider import BASES, PAGE, TEXT, TOOLS, WRITE, reply

Check = Callable[[Reply, ChatResponse], bool]
WRITTEN_AS = BASES["call"][0].calls[0].arguments


def request_of(api: str, stream: bool, cap: int | None, kind: Kind, base: str) -> Request:
    said = [Message(Role.USER, (TextPart("Go on."),))]
    if kind is Kind.CONTINUATION:
        said += [Message(Role.ASSISTANT, (TextPart(TEXT[:80]),)), hint_message()]
    if kind is Kind.REPAIR:
        said += [Message(Role.ASSISTANT, (TextPart(BASES[base][0].text),)), repair_message(())]
    tools = () if wire(api).no_tools else (WRITE, PAGE)
    return Request(api, tuple(said), "m", tools, max_tokens=cap, stream=stream)


def play(name: str, value: Any, api: str = CHAT, stream: bool = True, base: str = "text", cap: int | None = None,
         kind: Kind = Kind.FIRST) -> tuple[Reply, ChatResponse]:
    story = Story("one", "one fault", BASES[base], TOOLS, (PlacedFault(name, value),) if name else ())
    made = reply(story, request_of(api, stream, cap, kind, base), stream)
    return made, decode(api, b"".join(made.frames), http_status=made.status)


def stops(word: Stop, text: str | None = TEXT) -> Check:
    return lambda made, came: came.stop_reason.normalized is word and came.text == text


def sends(**how: Any) -> Check:
    return lambda made, came: made.sending == replace(Sending(), **how) and came.text == TEXT


def finds(rule: str) -> Check:
    return lambda made, came: rule in [finding.rule for finding in came.findings]


def shape(*pieces: bytes, absent: bytes = b"") -> Check:
    def check(made: Reply, came: ChatResponse) -> bool:
        sent = b"".join(made.frames)
        return all(piece in sent for piece in pieces) and not (absent and absent in sent)

    return check


def calls(*names: str) -> Check:
    return lambda made, came: [call.name for call in came.tool_calls] == list(names)


ROWS: list[tuple[str, Any, dict[str, Any], Check]] = [
    ("cut", 12, {}, stops(Stop.MAX_TOKENS, TEXT[:48])),
    ("context_full", 12, {"api": MESSAGES}, stops(Stop.CONTEXT_WINDOW_EXCEEDED, TEXT[:48])),
    ("filtered", 12, {"api": CONVERSE}, stops(Stop.SAFETY_BLOCKED, TEXT[:48])),
    ("paused", 12, {"api": MESSAGES}, stops(Stop.PAUSED, TEXT[:48])),
    ("paused", 12, {"api": GEMINI, "stream": False}, lambda made, came: bool(came.continuation_token)),
    ("error_frame", 12, {"api": CONVERSE}, stops(Stop.ERROR, TEXT[:48])),
    ("error_frame", 12, {"stream": False}, lambda made, came: made.status == 500),
    ("malformed_call", True, {"base": "call"}, lambda made, came: came.tool_calls[0].arguments[:7] == "{path: "),
    ("restarted", True, {"kind": Kind.CONTINUATION}, stops(Stop.END_TURN, TEXT)),
    ("repeated", 7, {"kind": Kind.CONTINUATION}, stops(Stop.END_TURN, TEXT[73:])),
    ("refused_repair", "No.", {"base": "call", "kind": Kind.REPAIR}, stops(Stop.END_TURN, "No.")),
    ("empty", True, {}, lambda made, came: came.parts == () and came.raw_stop_reason == "stop"),
    ("empty", True, {"api": MESSAGES, "stream": False}, shape(b'"content":[]', b'"end_turn"')),
    ("reasoning_only", True, {"api": GEMINI}, lambda made, came: (came.text, came.reasoning_content) == (None, TEXT)),
    ("leaked_call", True, {"base": "call"}, lambda made, came: calls()(made, came) and (came.text or "").endswith(
        f'"arguments": {WRITTEN_AS}}}\n</tool_call>')),
    ("no_call", True, {"base": "call"},
     lambda made, came: calls()(made, came) and came.raw_stop_reason == "tool_calls"),
    ("no_call", True, {"api": CONVERSE, "base": "call", "stream": False}, shape(b'"tool_use"', absent=b"toolUse")),
    ("fallback", "claude-x", {"api": MESSAGES}, lambda made, came: came.text == TEXT and any(
        finding.message.startswith("m gave way to claude-x") for finding in came.findings)),
    ("commentary", True, {"api": RESPONSES}, shape(b'"phase":"commentary"')),
    ("commentary", True, {"api": RESPONSES, "stream": False},
     lambda made, came: came.native.get("phase") == "commentary" and came.text == TEXT),
    ("no_reason", True, {}, stops(Stop.INTERRUPTED)),
    ("empty_choices", True, {}, lambda made, came: came.raw_stop_reason is None and came.usage is not None),
    ("done_without_reason", True, {}, lambda made, came: came.raw_stop_reason is None and came.saw_done),
    ("done_without_reason", True, {"api": OLLAMA}, lambda made, came: came.raw_stop_reason is None and came.saw_done),
    ("wrong_reason", True, {"base": "call", "cap": 10}, lambda made, came: came.raw_stop_reason == "tool_calls"),
    ("wrong_reason", True, {"cap": 10}, lambda made, came: came.raw_stop_reason == "stop"),
    ("wrong_reason", "eos", {"cap": 10}, lambda made, came: came.raw_stop_reason == "eos"),
    ("unknown_reason", "dusk", {"api": RESPONSES}, lambda made, came: came.raw_stop_reason == "incomplete:dusk"),
    ("unknown_reason", True, {"api": GEMINI}, lambda made, came: came.raw_stop_reason == "ran_dry"),
    ("malformed_frame", 2, {}, finds("frame.invalid")),
    ("malformed_frame", 2, {"api": CONVERSE}, finds("eventstream.message_crc")),
    ("empty_deltas", True, {}, lambda made, came: b"".join(made.frames).count(b'"content":""') > 3),
    ("empty_deltas", True, {"api": RESPONSES}, shape(b'"delta":""')),
    ("empty_deltas", True, {"api": MESSAGES}, shape(b'{"type":"text_delta","text":""}')),
    ("empty_deltas", True, {"api": GEMINI}, lambda made, came: b"".join(made.frames).count(b'{"text":""}') > 3),
    ("empty_deltas", True, {"api": CONVERSE}, shape(b'"delta":{"text":""}')),
    ("empty_deltas", True, {"api": OLLAMA}, lambda made, came: b"".join(made.frames).count(b'"content":""') > 3),
    ("no_index", True, {"base": "call"}, shape(b'"tool_calls":[{"id":', absent=b'"tool_calls":[{"index"')),
    ("no_index", True, {"api": RESPONSES, "base": "call"}, shape(absent=b"output_index")),
    ("no_index", True, {"api": MESSAGES, "base": "call"}, shape(absent=b'"index"')),
    ("no_index", True, {"api": CONVERSE, "base": "call"}, shape(absent=b"contentBlockIndex")),
    ("one_index", True, {"base": "calls"}, shape(b'"tool_calls":[{"index":0', absent=b'"tool_calls":[{"index":1')),
    ("one_index", True, {"api": MESSAGES, "base": "calls"}, shape(b'"index":0', absent=b'"index":1')),
    ("wandering_index", True, {"base": "call"}, shape(b'"tool_calls":[{"index":1')),
    ("fresh_ids", True, {"base": "call"}, shape(b'"id":"call_1"', b'"id":"call_2"')),
    ("slow", 0.5, {}, sends(slow=0.5)),
    ("stalled", {"frame": 2, "seconds": 9}, {}, sends(stall=(2, 9))),
    ("reset", 3, {}, sends(reset=3)),
    ("dropped", 3, {}, sends(drop=3)),
    ("torn", 7, {}, sends(torn=7)),
]


@pytest.mark.parametrize(("name", "value", "how", "check"), ROWS, ids=[f"{row[0]}-{i}" for i, row in enumerate(ROWS)])
def test_a_fault_does_what_its_name_says(name: str, value: Any, how: dict[str, Any], check: Check) -> None:
    made, came = play(name, value, **how)
    assert check(made, came), (made.status, made.sending, came.stop_reason, came.text, b"".join(made.frames))
    assert made.faults == (name,)
    plain, text = play("", None, **how)
    assert not check(plain, text), "it does so without the fault too"


def test_a_cut_lies_under_the_cap_of_the_request() -> None:
    _, came = play("cut", 12, cap=5)
    assert came.text == TEXT[:20]


@pytest.mark.parametrize(("api", "stream", "kind"), [
    (CHAT, True, "text/event-stream"), (RESPONSES, True, "text/event-stream"), (MESSAGES, True, "text/event-stream"),
    (GEMINI, True, "text/event-stream"), (CONVERSE, True, "application/vnd.amazon.eventstream"),
    (OLLAMA, True, "application/x-ndjson"), (CHAT, False, "application/json"), (CONVERSE, False, "application/json"),
])
def test_what_an_answer_says_that_it_is(api: str, stream: bool, kind: str) -> None:
    assert play("", None, api, stream)[0].headers["content-type"] == kind


def test_a_prefill_is_echoed() -> None:
    story = Story("one", "x", BASES["text"], faults=(PlacedFault("echoed"),))
    history = (Message(Role.USER, (TextPart("Go."),)), Message(Role.ASSISTANT, (TextPart(TEXT[:50]),)))
    made = reply(story, Request(CHAT, history, "m", stream=True), True)
    assert decode(CHAT, b"".join(made.frames)).text == TEXT


def test_a_refusal_says_how_often_and_when_to_come_again() -> None:
    made, _ = play("rate_limited", {"times": 2, "retry_after": 1.5, "status": 429})
    assert made.refusals == 2
    assert made.refusal is not None
    assert (made.refusal.status, made.refusal.headers["retry-after"]) == (429, "1.5")


def test_calls_that_are_meant_come_whole_without_a_fault() -> None:
    made, came = play("", None, base="calls")
    assert [type(part) for part in came.parts] == [TextPart, ToolCall, ToolCall]
    assert made.sending == Sending()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("api", FORMATS)
def test_no_reason_drops_the_reason_and_nothing_else(api: str, stream: bool) -> None:
    (told, plain), (made, came) = play("", None, api, stream, cap=12), play("no_reason", True, api, stream, cap=12)
    assert plain.raw_stop_reason is not None
    gone = stream and api == RESPONSES  # the event that tells the reason holds the usage, and ends the stream
    assert came.raw_stop_reason == ("in_progress" if gone else None), "as the first events of a stream say"
    assert came.text == plain.text == TEXT[:48]
    assert came.usage == (None if gone else plain.usage)
    assert came.saw_done == (plain.saw_done and not gone)
    assert len(made.frames) == len(told.frames) - gone
    if wire(api).serving.wrapped and stream:
        return  # the word stands in base64
    word = f'"{plain.raw_stop_reason.rpartition(":")[2]}"'.encode()
    assert word in b"".join(told.frames)
    assert word not in b"".join(made.frames)
