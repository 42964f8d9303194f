"""Bedrock Converse: each stop word, each quirk, both directions, and recorded traffic as the referee."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loop_core.errors import DecodeError, EncodeError
from loop_core.values import (
    ArgsForm,
    At,
    CallKind,
    ChatResponse,
    ExchangePart,
    OpaquePart,
    ProviderError,
    ReasoningPart,
    Role,
    Severity,
    Stop,
    StopReason,
    TextPart,
    ToolCall,
    ToolResultPart,
    Usage,
)
from loop_core.wire import decode
from loop_core.wire.bedrock_converse import encode, read_request
from loop_core.wire.bedrock_converse.table import LOSES, PATHS, STOP_REASONS, recognises
from loop_core.wire.eventstream import EventStream, encode_frame, event_frame, exception_frame
from tests.scenes.essence import essence
from tests.scenes.rows import each_row

API = "bedrock_converse"
CORPUS = Path(os.environ.get("LOOP_INSPECTOR_CORPUS") or Path(__file__).parents[3] / "shared" / "corpus")

Event = tuple[str, dict[str, Any]]


def frames(*events: Event) -> bytes:
    return b"".join(event_frame(name, json.dumps({**content, "p": "abc"}).encode()) for name, content in events)


def lines(*events: Event) -> bytes:
    return b"".join(json.dumps({name: content}).encode() + b"\n" for name, content in events)


def block(index: int, *deltas: dict[str, Any], start: dict[str, Any] | None = None, stop: bool = True) -> list[Event]:
    events: list[Event] = []
    if start is not None:
        events.append(("contentBlockStart", {"contentBlockIndex": index, "start": start}))
    events += [("contentBlockDelta", {"contentBlockIndex": index, "delta": delta}) for delta in deltas]
    return events + ([("contentBlockStop", {"contentBlockIndex": index})] if stop else [])


def call_block(index: int, *pieces: str, stop: bool = True, **use: Any) -> list[Event]:
    start = {"toolUse": {"toolUseId": f"tooluse_{index}", "name": "get_weather", **use}}
    return block(index, *({"toolUse": {"input": piece}} for piece in pieces), start=start, stop=stop)


START: Event = ("messageStart", {"role": "assistant"})
USAGE: Event = ("metadata", {"usage": {"inputTokens": 25, "outputTokens": 15, "totalTokens": 40,
                                       "cacheReadInputTokens": 7}, "metrics": {"latencyMs": 608}})


def message_stop(reason: Any, **fields: Any) -> Event:
    return ("messageStop", {"stopReason": reason, **fields})


def whole(content: Any, reason: Any, **fields: Any) -> bytes:
    body = {"metrics": {"latencyMs": 608}, "output": {"message": {"content": content, "role": "assistant"}},
            "stopReason": reason, "usage": {"inputTokens": 25, "outputTokens": 15, "totalTokens": 40}}
    return json.dumps({**body, **fields}).encode()


CALL = {"toolUse": {"toolUseId": "tooluse_1", "name": "get_weather", "input": {"city": "Bern"}}}

WORDS = [
    ("end_turn", Stop.END_TURN, None),
    ("stop_sequence", Stop.END_TURN, None),
    ("tool_use", Stop.TOOL_CALL, None),
    ("max_tokens", Stop.MAX_TOKENS, None),
    ("model_context_window_exceeded", Stop.CONTEXT_WINDOW_EXCEEDED, None),
    ("guardrail_intervened", Stop.SAFETY_BLOCKED, "guardrail"),
    ("content_filtered", Stop.SAFETY_BLOCKED, "content_filter"),
    ("malformed_tool_use", Stop.MALFORMED_TOOL_CALL, None),
    ("malformed_model_output", Stop.ERROR, "retryable: model output malformed"),
]
MEANS = {word: (stop, detail) for word, stop, detail in WORDS}


# -- why it stopped ----------------------------------------------------------------------------------------------


@each_row(("word", "stop", "detail"), WORDS)
def test_stop_words_of_a_stream(word: str, stop: Stop, detail: str | None) -> None:
    body = frames(START, *block(0, {"text": "Hi"}), message_stop(word), USAGE)
    got = decode(API, body)
    assert (got.stop_reason.normalized, got.stop_reason.detail, got.raw_stop_reason) == (stop, detail, word)
    assert (got.saw_stop_reason, got.saw_done, got.streaming, got.text) == (True, True, True, "Hi")
    (seen,) = got.stop_reason.evidence
    assert seen.at is not None
    assert seen.at.pointer == "/stopReason"
    assert b"messageStop" in body[seen.at.start : seen.at.end]
    assert len(EventStream().feed(body[seen.at.start : seen.at.end])) == 1


@each_row(("word", "stop", "detail"), WORDS)
def test_stop_words_of_a_whole_body(word: str, stop: Stop, detail: str | None) -> None:
    body = whole([{"text": "Hi"}], word)
    got = decode(API, body)
    assert (got.stop_reason.normalized, got.stop_reason.detail, got.raw_stop_reason) == (stop, detail, word)
    assert (got.text, got.streaming) == ("Hi", False)
    (seen,) = got.stop_reason.evidence
    assert seen.at is not None
    assert body[seen.at.start : seen.at.end] == json.dumps(word).encode()


def test_every_word_of_the_table_is_tried_above() -> None:
    assert {word for word, *_ in WORDS} == set(STOP_REASONS)


@each_row("body", [
    frames(START, *block(0, {"text": "Hi"})),
    frames(START, *block(0, {"text": "Hi"}), message_stop(None), USAGE),
    frames(START, *block(0, {"text": "Hi"}), USAGE),
    lines(START, *block(0, {"text": "Hi"})),
    whole([{"text": "Hi"}], None),
])
def test_an_absent_reason_is_interrupted(body: bytes) -> None:
    got = decode(API, body)
    assert (got.stop_reason.normalized, got.raw_stop_reason, got.text) == (Stop.INTERRUPTED, None, "Hi")


def test_an_empty_word_is_interrupted_and_an_unknown_one_unknown() -> None:
    assert decode(API, frames(START, message_stop(""))).stop_reason.normalized is Stop.INTERRUPTED
    got = decode(API, frames(START, message_stop("galaxy")))
    assert (got.stop_reason.normalized, got.raw_stop_reason) == (Stop.UNKNOWN, "galaxy")


@pytest.mark.parametrize("body", [whole([], "tool_use"), frames(START, message_stop("tool_use"))])
def test_tool_use_without_a_call_is_told(body: bytes) -> None:
    assert [f.rule for f in decode(API, body).findings] == ["bedrock_converse.tool_use_without_call"]


# -- blocks of a stream ------------------------------------------------------------------------------------------


BLOCKS: list[Event] = [
    START,
    *block(0, {"reasoningContent": {"text": "Let me "}}, {"reasoningContent": {"text": "see."}},
           {"reasoningContent": {"signature": "EqQB"}}),
    *block(1, {"reasoningContent": {"redactedContent": "EmwK"}}),
    *block(2, {"text": "Gr"}, {"text": "üezi"}),
    *call_block(3, "", '{"city":', ' "Bern"}'),
    message_stop("tool_use"), USAGE,
]


@pytest.mark.parametrize("write", [frames, lines])
def test_blocks_come_in_order_with_their_exact_characters(write: Any) -> None:
    body = write(*BLOCKS)
    got = decode(API, body)
    thinking, redacted, text, call = got.parts
    assert thinking == ReasoningPart("Let me see.", signature="EqQB")
    assert redacted == ReasoningPart("", data="EmwK")
    assert text == TextPart("Grüezi")
    assert isinstance(call, ToolCall)
    assert (call.id, call.name, call.arguments) == ("tooluse_3", "get_weather", '{"city": "Bern"}')
    assert (call.closed, call.kind, call.form) == (True, CallKind.FUNCTION, ArgsForm.STRING)
    assert call.at is not None
    assert body[call.at.start : call.at.end].count(b"contentBlockDelta") == 3
    assert (got.usage, got.findings, got.streaming) == (Usage(25, 15, None, 7), (), True)


def test_lines_say_where_the_word_stands() -> None:
    (seen,) = decode(API, lines(*BLOCKS)).stop_reason.evidence
    assert seen.at is not None
    assert seen.at.pointer == "/messageStop/stopReason"


def test_a_cut_call_keeps_its_prefix_and_stays_open() -> None:
    got = decode(API, frames(START, *call_block(0, '{"city": "Be', stop=False), message_stop("max_tokens"), USAGE))
    assert [(c.arguments, c.closed) for c in got.tool_calls] == [('{"city": "Be', False)]
    (finding,) = got.findings
    assert finding.rule == "bedrock_converse.block_not_closed"
    # The block reaches from its first frame to the frame of the stop reason.
    before, block = frames(START), frames(*call_block(0, '{"city": "Be', stop=False))
    assert finding.at == At(ExchangePart.BODY, len(before), len(before) + len(block))
    assert got.usage == Usage(25, 15, None, 7)


def test_a_call_without_characters_has_empty_arguments() -> None:
    got = decode(API, frames(START, *call_block(0), message_stop("tool_use")))
    assert [(c.arguments, c.form, c.closed) for c in got.tool_calls] == [("", ArgsForm.STRING, True)]


def test_server_tools_are_the_providers_own() -> None:
    got = decode(API, frames(
        START,
        *call_block(0, '{"query": "x"}', type="server_tool_use"),
        *block(1, {"toolResult": [{"text": "a"}]}, {"toolResult": [{"json": {"b": 1}}]},
               start={"toolResult": {"toolUseId": "tooluse_0", "status": "success"}}),
        message_stop("end_turn"),
    ))
    assert got.tool_calls == ()
    assert [(c.kind, c.arguments) for c in got.server_calls] == [(CallKind.SERVER, '{"query": "x"}')]
    result = got.parts[1]
    assert isinstance(result, OpaquePart)
    assert json.loads(result.json) == {"toolResult": {
        "toolUseId": "tooluse_0", "status": "success", "content": [{"text": "a"}, {"json": {"b": 1}}]}}


WEB = {"location": {"web": {"url": "https://example.org/"}}}


def test_citations_stand_before_after_or_apart_from_their_text() -> None:
    got = decode(API, frames(START, *block(0, {"citation": WEB}, {"text": "So"}), *block(1, {"text": "it"}),
                             *block(2, {"citation": WEB}), message_stop("end_turn")))
    cited = {"citations": [WEB]}
    assert [(type(p), json.loads(p.json) if isinstance(p, OpaquePart) else p.text) for p in got.parts] == [  # type: ignore[union-attr]
        (TextPart, "So"), (OpaquePart, cited), (TextPart, "it"), (OpaquePart, {"citationsContent": cited})]


def test_a_delta_with_several_members_loses_none() -> None:
    both = {"reasoningContent": {"text": "m", "signature": "EqQB"}}
    got = decode(API, frames(START, *block(0, {"reasoningContent": {"text": "h"}}, both),
                             *block(1, {"text": "So"}, {"text": "!", "citation": WEB}), message_stop("end_turn")))
    assert got.parts[:2] == (ReasoningPart("hm", "EqQB"), TextPart("So!"))
    assert [p.type for p in got.parts[2:] if isinstance(p, OpaquePart)] == ["citationsContent.fields"]


def test_a_delta_for_a_call_that_never_began_is_never_a_closed_call() -> None:
    got = decode(API, frames(START, *call_block(0, '{"city": "Bern"}')[1:], message_stop("tool_use")))
    assert [(c.name, c.arguments, c.closed) for c in got.tool_calls] == [("", '{"city": "Bern"}', False)]
    assert "bedrock_converse.delta_without_start" in {f.rule for f in got.findings}


def test_a_closed_call_does_not_change() -> None:
    late = call_block(0, '{"city": "Bern"}', "RUBBISH")
    late[2], late[3] = late[3], late[2]
    got = decode(API, frames(START, *late, message_stop("tool_use")))
    assert [(c.arguments, c.closed) for c in got.tool_calls] == [('{"city": "Bern"}', True), ("RUBBISH", False)]


def test_an_unknown_event_with_a_piece_of_a_call_is_told() -> None:
    piece = {"contentBlockIndex": 0, "delta": {"toolUse": {"input": '"b": 1'}}}
    got = decode(API, frames(START, *call_block(0, "{}"), ("toolUseDelta", piece), message_stop("tool_use")))
    assert [f.rule for f in got.findings] == ["bedrock_converse.call_unread_value"]


def test_text_cannot_slip_into_arguments() -> None:
    events = call_block(0, '{"a":')
    events.insert(2, ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "x"}}))
    got = decode(API, frames(START, *events, message_stop("tool_use")))
    assert got.tool_calls[0].arguments == '{"a":'
    assert [f.rule for f in got.findings] == ["bedrock_converse.call_unread_value"]


@pytest.mark.parametrize(("events", "rule"), [
    ([*call_block(0, stop=False), *call_block(0)], "repeated_index"),
    ([("brandNewEvent", {})], "unknown_event"),
])
def test_odd_events_are_told(events: list[Event], rule: str) -> None:
    got = decode(API, frames(START, *events))
    assert f"bedrock_converse.{rule}" in {f.rule for f in got.findings}


def test_an_unknown_block_is_kept() -> None:
    got = decode(API, frames(START, *block(0, {"image": {"source": {"bytes": "AA=="}}},
                                           start={"image": {"format": "png"}}), message_stop("end_turn")))
    (part,) = got.parts
    assert isinstance(part, OpaquePart)
    assert json.loads(part.json) == {"image": {"format": "png", "source": {"bytes": "AA=="}}}


# -- blocks of a whole body --------------------------------------------------------------------------------------


def test_a_whole_body_gives_arguments_verbatim() -> None:
    body = whole([{"text": "ok"}, CALL], "tool_use").replace(b'"Bern"', b'"B\\u0065rn" ')
    (call,) = decode(API, body).tool_calls
    assert (call.arguments, call.form, call.closed) == ('{"city": "B\\u0065rn" }', ArgsForm.OBJECT, True)
    assert call.at is not None
    assert body[call.at.start : call.at.end].startswith(b'{"toolUse"')


@each_row(("reason", "closed"), [
    ("tool_use", [True, True]),
    ("end_turn", [True, True]),
    ("max_tokens", [True, False]),
    ("stop_sequence", [True, False]),
    ("malformed_tool_use", [True, False]),
    ("galaxy", [True, False]),
    (None, [False, False]),
])
def test_the_last_call_of_a_whole_body_is_open_unless_the_reason_completes_it(
    reason: str | None, closed: list[bool]
) -> None:
    another = {"toolUse": {**CALL["toolUse"], "toolUseId": "tooluse_2"}}
    got = decode(API, whole([CALL, another], reason))
    assert [call.closed for call in got.tool_calls] == closed


def test_a_whole_body_of_every_block() -> None:
    cited = {"content": [{"text": "a"}, {"text": "b"}], "citations": [WEB]}
    opaque = {"video": {"format": "mp4"}}
    got = decode(API, whole([
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
        {"reasoningContent": {"redactedContent": "EmwK"}}, {"citationsContent": cited}, opaque,
        {"citationsContent": {"citations": [WEB]}}, {"toolUse": {"name": "f", "input": '{"a":'}},
        {"toolUse": {"name": "g"}},
    ], "end_turn"))
    assert got.parts[:3] == (ReasoningPart("hm", "s"), ReasoningPart("", data="EmwK"), TextPart("ab"))
    extra, video, alone = got.parts[3:6]
    assert isinstance(extra, OpaquePart)
    assert json.loads(extra.json) == {"citations": [WEB]}
    assert video == OpaquePart("video", json.dumps(opaque))
    assert isinstance(alone, OpaquePart)
    assert alone.type == "citationsContent"
    assert [(c.arguments, c.form) for c in got.tool_calls] == [('{"a":', ArgsForm.STRING), (None, ArgsForm.OBJECT)]


def test_an_indented_body_is_whole_and_not_lines() -> None:
    body = json.dumps(json.loads(whole([{"text": "Hi"}], "end_turn")), indent=2).encode()
    got = decode(API, [body[:1], body[1:40], body[40:]])
    assert (got.raw_stop_reason, got.text, got.streaming) == ("end_turn", "Hi", False)


def test_a_cut_body_is_interrupted() -> None:
    got = decode(API, whole([CALL], "tool_use")[:-1])
    assert (got.stop_reason.normalized, got.tool_calls) == (Stop.INTERRUPTED, ())


# -- native words ------------------------------------------------------------------------------------------------


def test_native_words_and_the_routed_model() -> None:
    trace = {"guardrail": {"actionReason": "Guardrail blocked."}, "promptRouter": {"invokedModelId": "nova"}}
    fields = {"additionalModelResponseFields": {"stop_sequence": "S"}}
    want = {"trace.guardrail.actionReason": "Guardrail blocked.",
            "additionalModelResponseFields": '{"stop_sequence":"S"}'}
    for body in (whole([], "guardrail_intervened", trace=trace, **fields),
                 frames(START, message_stop("guardrail_intervened", **fields), ("metadata", {"trace": trace}))):
        got = decode(API, body)
        assert (got.native, got.model) == (want, "nova")


# -- errors ------------------------------------------------------------------------------------------------------


EXCEPTIONS = [("internalServerException", "retryable"), ("modelStreamErrorException", "retryable"),
              ("throttlingException", "retryable"), ("serviceUnavailableException", "retryable"),
              ("validationException", "fatal")]


@each_row(("kind", "detail"), EXCEPTIONS)
def test_an_exception_frame_is_an_error(kind: str, detail: str) -> None:
    begun = [START, *block(0, {"text": "Hi"})]
    for body in (frames(*begun) + exception_frame(kind, b'{"message":"Oops","p":"a"}'),
                 lines(*begun, (kind, {"message": "Oops"}))):
        got = decode(API, body, http_status=200)
        assert (got.stop_reason.normalized, got.stop_reason.detail, got.text) == (Stop.ERROR, detail, "Hi")
        assert got.error == ProviderError("Oops", kind, None, detail == "retryable")


def test_an_exception_about_the_context_is_its_own_reason() -> None:
    body = frames(START) + exception_frame("validationException", b'{"message":"Input is too long for this model"}')
    assert decode(API, body).stop_reason.normalized is Stop.CONTEXT_WINDOW_EXCEEDED


def test_an_exception_after_the_stop_outranks_it() -> None:
    body = frames(START, *call_block(0, "{}"), message_stop("tool_use")) + exception_frame("throttlingException", b"")
    got = decode(API, body)
    assert (got.stop_reason.normalized, got.raw_stop_reason) == (Stop.ERROR, "tool_use")


def test_an_error_frame_has_its_message_in_a_header() -> None:
    error = encode_frame(b"", [(":message-type", "error"), (":error-code", "InternalServerError"),
                               (":error-message", "broken")])
    got = decode(API, frames(START) + error)
    assert got.error == ProviderError("broken", "InternalServerError", None, True)
    assert got.stop_reason.normalized is Stop.ERROR


def test_an_http_error_takes_its_type_from_the_header() -> None:
    got = decode(API, b'{"message":"Too many tokens, wait."}', http_status=400,
                 headers=[("x-amzn-ErrorType", "ThrottlingException:http://internal.amazon.com/coral/")])
    assert got.error == ProviderError("Too many tokens, wait.", "ThrottlingException", None, True)
    assert (got.stop_reason.normalized, got.findings) == (Stop.ERROR, ())


def test_a_proxys_page_is_an_error_and_no_stream() -> None:
    got = decode(API, b"<html>Bad gateway</html>", http_status=502)
    assert got.error is not None
    assert (got.error.message, got.streaming, got.findings) == ("<html>Bad gateway</html>", False, ())


@pytest.mark.parametrize("body", [b"hello", b"\x89PNG\r\n\x1a\n"])
def test_other_bytes_are_no_body(body: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(API, body)


def test_a_body_of_another_api_is_told() -> None:
    got = decode(API, b'{"choices": []}')
    assert [f.rule for f in got.findings] == ["bedrock_converse.no_message"]


# -- damage ------------------------------------------------------------------------------------------------------


STORY_EVENTS = [START, *block(0, {"text": "Zürich "}, {"text": "😀"}), *call_block(1, "", '{"city": "Be', 'rn"}'),
                *call_block(2, '{"city": "Genève"}'), message_stop("tool_use"), USAGE]
STORY = frames(*STORY_EVENTS)


def test_any_chunking_decodes_alike() -> None:
    for body in (STORY, lines(*STORY_EVENTS), whole([CALL], "tool_use")):
        want = asdict(decode(API, body))
        for at in range(0, len(body), 5):
            assert asdict(decode(API, [body[:at], body[at:]])) == want
        for size in (1, 2, 3, 7, 64):
            assert asdict(decode(API, [body[i : i + size] for i in range(0, len(body), size)])) == want


def test_a_stream_cut_at_any_byte_claims_nothing_that_it_does_not_know() -> None:
    split = EventStream().feed(STORY)
    final = {call.id: call.arguments for call in decode(API, STORY).tool_calls}
    told = next(end for _, name, _, end in split if name == "messageStop")
    stops = [end for _, name, _, end in split if name == "contentBlockStop"][1:]
    ends = {end for *_, end in split}
    for at in range(1, len(STORY)):
        got = decode(API, STORY[:at])
        want = (Stop.INTERRUPTED, None) if at < told else (Stop.TOOL_CALL, "tool_use")
        assert (got.stop_reason.normalized, got.raw_stop_reason) == want, at
        for call, end in zip(got.tool_calls, stops, strict=False):
            assert call.closed == (at >= end)
            assert not call.closed or call.arguments == final[call.id]
        assert ("frame.cut" in {f.rule for f in got.findings}) == (at not in ends), at
        rules = [seen.rule for seen in got.stop_reason.evidence]
        assert ("cut" in rules) == (at not in ends and at < told), at


def test_a_flipped_bit_ends_what_can_be_read() -> None:
    split = EventStream().feed(STORY)
    told = next(start for _, name, start, _ in split if name == "messageStop")
    for at in range(1, told):
        got = decode(API, STORY[:at] + bytes((STORY[at] ^ 0x10,)) + STORY[at + 1 :])
        assert got.stop_reason.normalized is Stop.INTERRUPTED
        (damage,) = [f for f in got.findings if f.rule.startswith(("eventstream.", "frame.cut"))]
        assert damage.severity is (Severity.WARNING if damage.rule == "frame.cut" else Severity.ERROR)


def test_lines_cut_at_any_byte_claim_nothing_that_they_do_not_know() -> None:
    body = lines(*STORY_EVENTS)
    told = body.index(b"\n", body.index(b'{"messageStop"'))
    for at in range(len(body)):
        got = decode(API, body[:at])
        assert got.stop_reason.normalized is (Stop.INTERRUPTED if at < told else Stop.TOOL_CALL), at


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_fuzzed_bytes_raise_nothing_but_the_typed_error(data: st.DataObject) -> None:
    bodies = [STORY, lines(*STORY_EVENTS), whole([CALL, {"text": "a"}], "tool_use")]
    body = bytearray(data.draw(st.sampled_from(bodies)))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(body) - 1))
        body[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    with suppress(DecodeError):
        decode(API, bytes(body))


ODD = [None, 5, "x", [], {}, [None], {"text": []}, True]


@each_row("odd", ODD)
def test_fields_of_the_wrong_type_do_not_crash(odd: Any) -> None:
    kinds = ("text", "toolUse", "reasoningContent", "toolResult", "citation", "image", "new")
    body = frames(
        START, ("contentBlockStart", {"contentBlockIndex": odd, "start": odd}), ("contentBlockStop", {}),
        *(event for i, kind in enumerate(kinds) for event in block(i, {kind: odd}, {kind: {"input": odd, "text": 1}})),
        *(event for i, kind in enumerate(kinds) for event in block(i, {kind: odd}, start={kind: odd}, stop=False)),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": odd}), ("messageStop", {"stopReason": odd}),
        ("metadata", {"usage": odd, "trace": odd}),
        ("metadata", {"usage": {"inputTokens": odd}, "trace": {"guardrail": odd}}),
    ) + exception_frame("x", json.dumps({"message": odd}).encode())
    assert decode(API, body).error is not None
    content = [odd, *({kind: odd} for kind in kinds), {"toolUse": {"input": odd, "name": odd}},
               {"reasoningContent": {"reasoningText": odd}}, {"citationsContent": {"content": odd, "citations": odd}}]
    assert decode(API, whole(content, "tool_use", usage=odd, trace=odd)).raw_stop_reason == "tool_use"
    assert decode(API, whole(odd, "end_turn", output=odd)).raw_stop_reason == "end_turn"


# -- encode ------------------------------------------------------------------------------------------------------


def full(stop: str | None = "tool_use", closed: bool = True) -> ChatResponse:
    server = '{"toolResult":{"toolUseId":"s","status":"success","content":[{"text":"a"}]}}'
    return ChatResponse(
        api=API,
        parts=(
            ReasoningPart("hm, well", signature="EqQB"),
            ReasoningPart("", data="EmwK"),
            TextPart("Grüezi mitenand, 😀\n"),
            OpaquePart("citationsContent.fields", '{"citations":[{"title":"a"},{"title":"b"}]}'),
            OpaquePart("citationsContent", '{"citationsContent":{"citations":[{"title":"c"}]}}'),
            ToolCall("s", "nova_grounding", '{"query":"x"}', stop is not None, CallKind.SERVER),
            OpaquePart("toolResult", server),
            ToolCall("tooluse_1", "get_weather", '{"city": "Bern", "n": 1.0}', closed),
        ),
        stop_reason=StopReason(MEANS[stop][0] if stop else Stop.INTERRUPTED, stop),
        usage=Usage(40, 15, None, 7),
        native={"trace.guardrail.actionReason": "No action."} | (
            {"additionalModelResponseFields": '{"a":1}'} if stop else {}),
    )


@each_row("stream", [False, True])
@each_row(("stop", "closed"), [("tool_use", True), ("max_tokens", False), (None, False)])
def test_a_response_survives_the_round_trip(stream: bool, stop: str | None, closed: bool) -> None:
    given_ = full(stop, closed)
    got = decode(API, encode(given_, stream=stream, chunk=3))
    assert essence(got, LOSES) == essence(given_, LOSES)
    assert [f.rule for f in got.findings if f.rule != "bedrock_converse.block_not_closed"] == []


def test_a_stream_is_one_item_a_frame_cut_as_asked() -> None:
    items = list(encode(ChatResponse(API, (TextPart("abcdef"),), StopReason(Stop.END_TURN, "end_turn"), Usage(1, 2)),
                        stream=True, chunk=4))
    assert [EventStream().feed(item)[0][1] for item in items] == [
        "messageStart", "contentBlockDelta", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"]


def test_an_interrupted_stream_has_no_terminal() -> None:
    body = b"".join(encode(replace(full(None, False), usage=None, native={}), stream=True))
    assert b"messageStop" not in body
    assert b"metadata" not in body


def test_errors_survive_the_round_trip() -> None:
    error = ProviderError("slow down", "throttlingException", None, True)
    given_ = ChatResponse(API, (TextPart("Hi"),), StopReason(Stop.ERROR, None, "retryable"), error=error)
    assert essence(decode(API, encode(given_, stream=True)), LOSES) == essence(given_, LOSES)
    early = replace(given_, parts=(), http_status=429)
    for stream in (False, True):
        assert essence(decode(API, encode(early, stream=stream), http_status=429), LOSES) == essence(early, LOSES)


def test_lone_surrogates_survive() -> None:
    given_ = ChatResponse(API, (TextPart("a\ud83d"),), StopReason(Stop.END_TURN, "end_turn"))
    for stream in (False, True):
        assert decode(API, encode(given_, stream=stream)).text == "a\ud83d"


def reply(*parts: Any, stop: str = "tool_use", **fields: Any) -> ChatResponse:
    return ChatResponse(API, parts, StopReason(MEANS[stop][0], stop), **fields)


@each_row(("response", "stream", "what"), [
    (reply(ToolCall("a", "f", '{"city": "Be', True)), False, "call.arguments"),
    (reply(ToolCall("a", "f", "", True)), False, "call.arguments"),
    (reply(ToolCall("a", "f", '{"a":1} ', True)), False, "call.arguments"),
    (reply(ToolCall("a", "f", '{"a": Infinity}', True)), False, "call.arguments"),
    (reply(ToolCall("a", "f", None, True)), True, "call.arguments"),
    (reply(ToolCall("a", "f", "{}", True), stop="max_tokens"), False, "call.closed"),
    (reply(ToolCall("a", "f", "{}", False)), False, "call.closed"),
    (reply(ToolCall("a", "f", "free", True, CallKind.CUSTOM)), True, "custom call"),
    (reply(OpaquePart("x", "not json")), True, "opaque"),
    (reply(OpaquePart("x", '{"y": 1}')), True, "opaque"),
    (reply(OpaquePart("x", '{"x": 1}')), True, "opaque"),
    (reply(OpaquePart("citationsContent.fields", "{}")), True, "opaque"),
    (reply(ReasoningPart("readable", data="x")), True, "reasoning.data"),
    (reply(continuation_token="t"), True, "continuation_token"),
    (reply(error=ProviderError("a"), http_status=500), False, "error"),
    (ChatResponse(API, error=ProviderError("a")), True, "error"),
    (ChatResponse(API, error=ProviderError("a")), False, "error"),
    (ChatResponse(API, error=ProviderError("a", None, "code"), http_status=400), False, "error"),
])
def test_what_cannot_be_carried_is_refused(response: ChatResponse, stream: bool, what: str) -> None:
    with pytest.raises(EncodeError) as caught:
        encode(response, stream=stream)
    assert caught.value.what == what


# -- botocore as referee -----------------------------------------------------------------------------------------


class Raw:
    """What botocore reads a body from."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield from (self.body[i : i + 50] for i in range(0, len(self.body), 50))

    def read(self, *_: Any) -> bytes:
        return self.body


def client(body: bytes, status: int = 200, content_type: str = "application/json") -> Any:
    session = pytest.importorskip("botocore.session")
    awsrequest = pytest.importorskip("botocore.awsrequest")
    made = session.Session().create_client(
        "bedrock-runtime", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")

    def answer(request: Any, **_: Any) -> Any:
        return awsrequest.AWSResponse(request.url, status, {"content-type": content_type}, Raw(body))

    made.meta.events.register("before-send.bedrock-runtime", answer)
    return made


ASK: dict[str, Any] = {"modelId": "nova", "messages": [{"role": "user", "content": [{"text": "x"}]}]}


def test_botocore_reads_a_whole_body() -> None:
    got = client(b"".join(encode(full()))).converse(**ASK)
    content = got["output"]["message"]["content"]
    assert got["stopReason"] == "tool_use"
    assert content[0]["reasoningContent"]["reasoningText"] == {"text": "hm, well", "signature": "EqQB"}
    assert base64.b64encode(content[1]["reasoningContent"]["redactedContent"]) == b"EmwK"
    assert content[2]["citationsContent"]["content"] == [{"text": "Grüezi mitenand, 😀\n"}]
    assert content[5]["toolResult"]["content"] == [{"text": "a"}]
    assert content[6]["toolUse"] == {
        "toolUseId": "tooluse_1", "name": "get_weather", "input": {"city": "Bern", "n": 1.0}}
    assert got["usage"] == {"inputTokens": 40, "outputTokens": 15, "totalTokens": 55, "cacheReadInputTokens": 7}


def test_botocore_reads_a_stream() -> None:
    body = b"".join(encode(full(), stream=True, chunk=5))
    events = list(client(body, content_type="application/vnd.amazon.eventstream").converse_stream(**ASK)["stream"])
    assert events[0] == {"messageStart": {"role": "assistant"}}
    deltas = [event["contentBlockDelta"] for event in events if "contentBlockDelta" in event]
    assert "".join(d["delta"].get("text", "") for d in deltas) == "Grüezi mitenand, 😀\n"
    assert "".join(d["delta"]["toolUse"]["input"] for d in deltas if d["contentBlockIndex"] == 6) == (
        '{"city": "Bern", "n": 1.0}')
    assert [d["delta"]["toolResult"] for d in deltas if "toolResult" in d["delta"]] == [[{"text": "a"}]]
    assert next(e["messageStop"] for e in events if "messageStop" in e)["stopReason"] == "tool_use"
    assert events[-1]["metadata"]["usage"]["outputTokens"] == 15


def test_botocore_raises_on_the_errors_that_are_written() -> None:
    exceptions = pytest.importorskip("botocore.exceptions")
    error = ProviderError("slow down", "throttlingException", None, True)
    given_ = ChatResponse(API, (TextPart("Hi"),), StopReason(Stop.ERROR), error=error)
    body = b"".join(encode(given_, stream=True))
    stream = client(body, content_type="application/vnd.amazon.eventstream").converse_stream(**ASK)["stream"]
    with pytest.raises(exceptions.EventStreamError, match="throttlingException"):
        list(stream)
    refused = ProviderError("slow down", "ValidationException")
    early = replace(given_, parts=(), http_status=400, error=refused)
    with pytest.raises(exceptions.ClientError, match="ValidationException"):
        client(b"".join(encode(early)), 400).converse(**ASK)


# -- requests ----------------------------------------------------------------------------------------------------


def test_a_request_in_the_fields_words() -> None:
    got = read_request({
        "system": [{"text": "Be brief."}],
        "messages": [
            {"role": "user", "content": [{"text": "Weather?"}, {"image": {"format": "png"}}]},
            {"role": "assistant", "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}}, {"text": "I look."},
                {"toolUse": {"toolUseId": "t1", "name": "w", "input": {"c": "é"}}},
                {"toolUse": {"toolUseId": "s1", "name": "nova", "input": {}, "type": "server_tool_use"}}]},
            {"role": "user", "content": [{"toolResult": {
                "toolUseId": "t1", "content": [{"text": "sun"}, {"json": {"a": 1}}], "status": "error"}}]},
            "odd", {"role": "martian"},
        ],
        "inferenceConfig": {"maxTokens": 300},
        "toolConfig": {"tools": [
            {"toolSpec": {"name": "w", "description": "d", "inputSchema": {"json": {"type": "object"}}}},
            {"systemTool": {"name": "nova_grounding"}}, {"cachePoint": {"type": "default"}}, 5],
            "toolChoice": {"tool": {"name": "w"}}},
    }, "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.nova-lite-v1%3A0/converse-stream")
    assert (got.model, got.max_tokens, got.stream, got.tool_choice) == ("us.nova-lite-v1:0", 300, True, "tool:w")
    assert [m.role for m in got.messages] == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL]
    assert got.messages[1].parts == (TextPart("Weather?"), OpaquePart("image", '{"image":{"format":"png"}}'))
    said = got.messages[2]
    assert said.parts[0] == ReasoningPart("hm", "s")
    assert [(c.id, c.name, c.arguments, c.closed, c.form) for c in said.tool_calls] == [
        ("t1", "w", '{"c":"é"}', True, ArgsForm.OBJECT)]
    assert [p.kind for p in said.parts if isinstance(p, ToolCall)] == [CallKind.FUNCTION, CallKind.SERVER]
    assert got.messages[3].results == (
        ToolResultPart("t1", "w", 'sun{"a":1}', True, '[{"text":"sun"},{"json":{"a":1}}]'),)
    assert [(t.name, t.kind, t.schema) for t in got.tools] == [
        ("w", CallKind.FUNCTION, {"type": "object"}), ("nova_grounding", CallKind.SERVER, None)]


@each_row(("choice", "word"), [({"auto": {}}, "auto"), ({"any": {}}, "any"), ({}, None), ("x", None)])
def test_tool_choice(choice: Any, word: str | None) -> None:
    assert read_request({"toolConfig": {"toolChoice": choice}}).tool_choice == word


@each_row(("url", "model", "stream"), [
    ("https://bedrock-runtime.us-east-1.amazonaws.com/model/a.b-v1:0/converse", "a.b-v1:0", False),
    ("/model/arn%3Aaws%3Abedrock%3A%3Aprofile%2Fus.x/converse", "arn:aws:bedrock::profile/us.x", False),
    ("/model/m/converse-stream?x=1", "m", True),
    ("/model/m/invoke", None, False),
])
def test_the_model_stands_in_the_url(url: str, model: str | None, stream: bool) -> None:
    got = read_request({}, url)
    assert (got.model, got.stream) == (model, stream)
    assert any(path.search(url) for path in PATHS) is (model is not None)


@each_row("odd", ODD)
def test_odd_requests_do_not_raise(odd: Any) -> None:
    got = read_request({"system": odd, "messages": [{"role": "user", "content": odd}, {"role": "user", "content": [
        odd, {"toolUse": odd}, {"toolResult": odd}, {"toolResult": {"content": odd}}, {"reasoningContent": odd}]}],
        "inferenceConfig": odd, "toolConfig": {"tools": odd, "toolChoice": odd}})
    assert got.api == API
    assert read_request({"messages": odd, "toolConfig": odd}).messages == ()


@each_row(("value", "event", "ours"), [
    (json.loads(whole([], "end_turn")), None, True),
    ({"contentBlockIndex": 0, "delta": {"text": "a"}}, None, True),
    ({"stopReason": "end_turn"}, "messageStop", True),
    ({"messageStop": {"stopReason": "end_turn"}}, None, True),
    ({"output": [{"type": "message"}], "object": "response"}, None, False),
    ({"type": "message", "content": []}, None, False),
    ({"metadata": {}, "choices": []}, None, False),
    ({"usage": {"inputTokens": 1}}, "metadata", True),
    ({"metadata": {"metrics": {"latencyMs": 1}}}, None, True),
    ({"metadata": {"trace": {}}}, None, True),
    ({"run_id": "01994ed8", "attempt": 1}, "metadata", False),
    ({"metadata": {"run_id": "01994ed8"}}, None, False),
    ({"message": "no"}, None, False),
])
def test_recognises(value: dict[str, Any], event: str | None, ours: bool) -> None:
    assert recognises(value, event) is ours


# -- recorded traffic --------------------------------------------------------------------------------------------


def recordings() -> Iterator[tuple[dict[str, Any], dict[str, Any], bytes]]:
    if not (CORPUS / "expected.jsonl").is_file():
        pytest.skip("no recorded traffic beside the repository (LOOP_INSPECTOR_CORPUS)")
    with (CORPUS / "expected.jsonl").open(encoding="utf-8") as rows:
        expected = [json.loads(row) for row in rows]
    hars: dict[str, list[Any]] = {}
    for facts in expected:
        if facts["api"] == API:
            name = facts["har"]
            if name not in hars:
                hars[name] = json.loads((CORPUS / "har" / name).read_text("utf-8"))["log"]["entries"]
            entry = hars[name][facts["entry"]]
            content = entry["response"]["content"]
            text = content.get("text") or ""
            yield facts, entry, base64.b64decode(text) if content.get("encoding") == "base64" else text.encode()


def as_recorded(call: ToolCall) -> str:
    """The facts hold objects dumped again by Python, and strings as they came."""
    text = call.arguments or ""
    return json.dumps(json.loads(text)) if call.form is ArgsForm.OBJECT else text


def parse(response: ChatResponse) -> dict[str, Any]:
    """The essence, with opaque JSON compared as values: a stream sends an indented block in pieces."""
    value = essence(response, LOSES)
    for part in value["parts"]:
        if part["kind"] == "opaque":
            part["json"] = json.loads(part["json"])
    return value


def test_recorded_responses_say_what_the_facts_say() -> None:
    count = 0
    for facts, entry, body in recordings():
        status = entry["response"]["status"]
        headers = [(header["name"], header["value"]) for header in entry["response"]["headers"]]
        got = decode(API, body, http_status=status, headers=headers)
        count += 1
        assert got.raw_stop_reason == next(iter(facts["raw_stop_reasons"]), None), facts["id"]
        assert [(c.name, as_recorded(c)[:400]) for c in got.tool_calls] == [
            (tool["name"], tool["args"][:400]) for tool in facts["tools"]], facts["id"]
        assert got.streaming is facts["streaming"], facts["id"]
        assert (got.error is not None) == (facts["kinds"] == ["http_error"]), facts["id"]
        if facts["provenance"] != "body_fixture_stream_reframed":  # those leave text blocks open
            assert got.findings == (), facts["id"]
        again = decode(API, encode(got, stream=got.streaming, chunk=7), http_status=status)
        assert essence(again, LOSES) == essence(got, LOSES), facts["id"]
        other = decode(API, encode(got, stream=not got.streaming, chunk=7), http_status=status)
        assert parse(other) == parse(got), facts["id"]
    assert count > 50


def test_recorded_requests_are_read() -> None:
    seen = 0
    for facts, entry, _ in recordings():
        text = entry["request"].get("postData", {}).get("text")
        if text:
            got = read_request(json.loads(text), entry["request"]["url"])
            seen += 1
            assert got.model, facts["id"]
            assert got.messages, facts["id"]
            assert got.stream is facts["streaming"], facts["id"]
    assert seen > 40


def test_recorded_bodies_of_all_formats_are_told_apart() -> None:
    if not (CORPUS / "har").is_dir():
        pytest.skip("no recorded traffic beside the repository (LOOP_INSPECTOR_CORPUS)")
    for har in sorted((CORPUS / "har").glob("*/*.har")):
        for entry in json.loads(har.read_text("utf-8"))["log"]["entries"]:
            text = entry["response"]["content"].get("text") or ""
            if not text.lstrip().startswith("{") or entry["response"]["status"] >= 400:
                continue
            try:
                body = json.loads(text)
            except ValueError:
                continue
            # Nova answers InvokeModel with the body of Converse.
            nova = har.parent.name == "bedrock_invoke" and "output" in body and "stopReason" in body
            assert recognises(body) is (har.parent.name == API or nova), entry["_id"]
