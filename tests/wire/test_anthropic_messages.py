"""Anthropic Messages: each stop word, each quirk, both directions, and recorded traffic as the referee."""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loop_core.errors import DecodeError, EncodeError
from loop_core.reader import read
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
    Stop,
    StopReason,
    TextPart,
    ToolCall,
    ToolResultPart,
    Usage,
)
from loop_core.wire import decode
from loop_core.wire.anthropic_messages import encode, encode_request, read_request
from loop_core.wire.anthropic_messages.table import LOSES, PATHS, STOP_REASONS, recognises
from loop_core.wire.failures import StopRow
from tests.scenes.essence import essence
from tests.scenes.rows import each_row

API = "anthropic_messages"
CORPUS = Path(os.environ.get("LOOP_INSPECTOR_CORPUS") or Path(__file__).parents[3] / "shared" / "corpus")


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


def message_start(**fields: Any) -> dict[str, Any]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": [],
               "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 25, "output_tokens": 1}}
    return {"type": "message_start", "message": {**message, **fields}}


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any], stop: bool = True) -> list[dict[str, Any]]:
    events = [{"type": "content_block_start", "index": index, "content_block": start}]
    events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return events + ([{"type": "content_block_stop", "index": index}] if stop else [])


def text_block(index: int, *pieces: str) -> list[dict[str, Any]]:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": piece} for piece in pieces))


def call_block(index: int, *pieces: str, stop: bool = True, **start: Any) -> list[dict[str, Any]]:
    fields = {"type": "tool_use", "id": f"toolu_{index}", "name": "get_weather", "input": {}, **start}
    deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)
    return block(index, fields, *deltas, stop=stop)


def message_delta(reason: Any, usage: dict[str, Any] | None = None, **delta: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None, **delta},
            "usage": usage or {"output_tokens": 15}}


STOP = {"type": "message_stop"}


def whole(content: list[Any], reason: Any, **fields: Any) -> bytes:
    body = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": content,
            "stop_reason": reason, "stop_sequence": None, "usage": {"input_tokens": 25, "output_tokens": 15}}
    return json.dumps({**body, **fields}).encode()


CALL = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Bern"}}

WORDS = [
    ("end_turn", Stop.END_TURN, None),
    ("max_tokens", Stop.MAX_TOKENS, None),
    ("stop_sequence", Stop.END_TURN, None),
    ("tool_use", Stop.TOOL_CALL, None),
    ("pause_turn", Stop.PAUSED, "echo"),
    ("refusal", Stop.SAFETY_BLOCKED, "refusal"),
    ("model_context_window_exceeded", Stop.CONTEXT_WINDOW_EXCEEDED, None),
    ("compaction", Stop.PAUSED, "echo"),
    ("sensitive", Stop.SAFETY_BLOCKED, "sensitive"),
    ("error", Stop.ERROR, "retryable: server failure under HTTP 200"),
]
NAMED = {"stop_sequence": {"stop_sequence": "END"}}
MEANS = {word: (stop, detail) for word, stop, detail in WORDS}


# -- why it stopped ----------------------------------------------------------------------------------------------


@each_row(("word", "stop", "detail"), WORDS)
def test_stop_words_of_a_stream(word: str, stop: Stop, detail: str | None) -> None:
    body = sse(message_start(), *text_block(0, "Hi"), message_delta(word, **NAMED.get(word, {})), STOP)
    got = decode(API, body)
    assert (got.stop_reason.normalized, got.stop_reason.detail, got.raw_stop_reason) == (stop, detail, word)
    assert (got.saw_stop_reason, got.saw_done, got.streaming) == (True, True, True)
    (seen,) = got.stop_reason.evidence
    assert seen.at is not None
    assert seen.at.pointer == "/delta/stop_reason"
    assert body[seen.at.start : seen.at.end].startswith(b"event: message_delta\ndata: ")


@each_row(("word", "stop", "detail"), WORDS)
def test_stop_words_of_a_whole_body(word: str, stop: Stop, detail: str | None) -> None:
    body = json.dumps({**json.loads(whole([{"type": "text", "text": "Hi"}], word)), **NAMED.get(word, {})}).encode()
    got = decode(API, body)
    assert (got.stop_reason.normalized, got.stop_reason.detail, got.raw_stop_reason) == (stop, detail, word)
    assert (got.text, got.streaming, got.saw_done) == ("Hi", False, False)
    (seen,) = got.stop_reason.evidence
    assert seen.at is not None
    assert body[seen.at.start : seen.at.end] == json.dumps(word).encode()


def test_every_word_of_the_table_is_tried_above() -> None:
    assert {word for word, *_ in WORDS} == set(STOP_REASONS) - {"stop_sequence.unnamed"}


@pytest.mark.parametrize("unnamed", [{"stop_sequence": None}, {"stop_sequence": ""}, {}])
def test_a_stop_sequence_that_is_not_named_is_no_end(unnamed: dict[str, Any]) -> None:
    """Translators write the word over a filter, a failure and whatever they do not know."""
    message = {**json.loads(whole([{"type": "text", "text": "Hi"}], "stop_sequence"))}
    del message["stop_sequence"]
    delta = {"type": "message_delta", "delta": {"stop_reason": "stop_sequence", **unnamed}}
    for body in (json.dumps({**message, **unnamed}).encode(), sse(message_start(), *text_block(0, "Hi"), delta, STOP)):
        got = decode(API, body)
        assert (got.stop_reason.normalized, got.stop_reason.detail) == (Stop.UNKNOWN, "unnamed")
        assert got.raw_stop_reason == "stop_sequence"
        assert got.stop_reason.evidence[-1].rule == f"{API}.stop_sequence.unnamed"
        assert got.stop_reason.evidence[-1].at is not None
        own = decode(API, body, words={"stop_sequence": StopRow(Stop.END_TURN)})
        assert own.stop_reason.normalized is Stop.END_TURN, "a server whose own word it is"


@pytest.mark.parametrize("body", [
    sse(message_start(), *text_block(0, "Hi")),
    sse(message_start(), *text_block(0, "Hi"), message_delta(None), STOP),
    whole([{"type": "text", "text": "Hi"}], None),
], ids=["stream ends early", "null in a stream", "null in a body"])
def test_an_absent_reason_is_interrupted(body: bytes) -> None:
    got = decode(API, body)
    assert (got.stop_reason.normalized, got.raw_stop_reason, got.saw_stop_reason) == (Stop.INTERRUPTED, None, False)
    assert got.text == "Hi"


def test_an_empty_word_is_a_value_and_interrupted() -> None:
    got = decode(API, sse(message_start(), message_delta(""), STOP))
    assert (got.stop_reason.normalized, got.raw_stop_reason) == (Stop.INTERRUPTED, "")


def test_an_unknown_word_is_unknown() -> None:
    got = decode(API, sse(message_start(), message_delta("galaxy"), STOP))
    assert (got.stop_reason.normalized, got.raw_stop_reason) == (Stop.UNKNOWN, "galaxy")


def test_the_last_word_that_is_not_null_wins() -> None:
    got = decode(API, sse(message_start(), message_delta("tool_use"), message_delta("max_tokens"), message_delta(None)))
    assert got.raw_stop_reason == "max_tokens"


def test_a_word_in_message_start_is_not_believed() -> None:
    got = decode(API, sse(message_start(stop_reason="end_turn"), *text_block(0, "Hi")))
    assert got.stop_reason.normalized is Stop.INTERRUPTED
    assert [f.rule for f in got.findings] == ["anthropic_messages.early_stop_reason"]


def test_end_turn_with_empty_content_is_legal() -> None:
    got = decode(API, whole([], "end_turn"))
    assert (got.stop_reason.normalized, got.parts, got.findings) == (Stop.END_TURN, (), ())


def test_each_call_of_a_whole_body_is_read_in_the_same_time() -> None:
    """What is found in the text on the way to a call is remembered, and not compared with the text as a whole."""
    calls = [{**CALL, "id": f"toolu_{number}", "input": {"city": "B" * 300}} for number in range(10_000)]
    began = time.process_time()
    assert [call.id for call in decode(API, whole(calls, "tool_use")).tool_calls] == [call["id"] for call in calls]
    assert time.process_time() - began < 3


@pytest.mark.parametrize("body", [whole([], "tool_use"), sse(message_start(), message_delta("tool_use"), STOP)])
def test_tool_use_without_a_call_is_told(body: bytes) -> None:
    got = decode(API, body)
    assert [f.rule for f in got.findings] == ["anthropic_messages.tool_use_without_call"]


# -- blocks of a stream ------------------------------------------------------------------------------------------


def test_blocks_come_in_order_with_their_exact_characters() -> None:
    body = sse(
        message_start(),
        *block(0, {"type": "thinking", "thinking": "", "signature": ""},
               {"type": "thinking_delta", "thinking": "Let me "}, {"type": "thinking_delta", "thinking": "see."},
               {"type": "signature_delta", "signature": "EqQB"}),
        *block(1, {"type": "redacted_thinking", "data": "EmwK"}),
        {"type": "ping"},
        *text_block(2, "Gr", "üezi"),
        *call_block(3, "", '{"city":', ' "Bern"}'),
        message_delta("tool_use", {"output_tokens": 89}), STOP,
    )
    got = decode(API, body)
    thinking, redacted, text, call = got.parts
    assert thinking == ReasoningPart("Let me see.", signature="EqQB")
    assert redacted == ReasoningPart("", data="EmwK")
    assert text == TextPart("Grüezi")
    assert isinstance(call, ToolCall)
    assert (call.id, call.name, call.arguments) == ("toolu_3", "get_weather", '{"city": "Bern"}')
    assert (call.closed, call.kind, call.form) == (True, CallKind.FUNCTION, ArgsForm.STRING)
    assert call.at is not None
    assert body[call.at.start : call.at.end].count(b"content_block_delta\n") == 3
    assert (got.id, got.model, got.findings) == ("msg_1", "claude-x", ())


def test_a_cut_call_keeps_its_prefix_and_stays_open() -> None:
    call_ = call_block(0, '{"city": "Be', stop=False)
    got = decode(API, sse(message_start(), *call_, message_delta("max_tokens"), STOP))
    (call,) = got.tool_calls
    assert (call.arguments, call.closed) == ('{"city": "Be', False)
    (finding,) = got.findings
    assert finding.rule == "anthropic_messages.block_not_closed"
    assert finding.at == At(ExchangePart.BODY, len(sse(message_start())), len(sse(message_start(), *call_)))


def test_a_cut_call_whose_block_was_closed_keeps_its_prefix() -> None:
    got = decode(API, sse(message_start(), *call_block(0, '{"city": "Be'), message_delta("max_tokens"), STOP))
    assert [(c.arguments, c.closed) for c in got.tool_calls] == [('{"city": "Be', True)]
    assert got.stop_reason.normalized is Stop.MAX_TOKENS


def test_a_closed_block_without_characters_is_an_empty_object() -> None:
    got = decode(API, sse(message_start(), *call_block(0, ""), message_delta("tool_use"), STOP))
    assert [(c.arguments, c.form, c.closed, c.arguments_unsent)
            for c in got.tool_calls] == [("{}", ArgsForm.OBJECT, True, True)]
    said = decode(API, sse(message_start(), *call_block(0, "{}"), message_delta("tool_use"), STOP))
    assert [(c.arguments, c.arguments_unsent) for c in said.tool_calls] == [("{}", False)]


def test_an_open_block_without_characters_has_said_nothing() -> None:
    got = decode(API, sse(message_start(), *call_block(0, stop=False)))
    assert [(c.arguments, c.form, c.closed) for c in got.tool_calls] == [("", ArgsForm.STRING, False)]


def test_input_that_comes_with_the_block_itself_is_kept_verbatim() -> None:
    events = sse(message_start(), *call_block(0, input={"n": 1}), message_delta("tool_use"), STOP)
    events = events.replace(b'{"n": 1}', b'{"n" : 1.0}')
    assert [(c.arguments, c.form) for c in decode(API, events).tool_calls] == [('{"n" : 1.0}', ArgsForm.OBJECT)]


def test_input_that_is_absent_is_none() -> None:
    events = call_block(0)
    del events[0]["content_block"]["input"]
    got = decode(API, sse(message_start(), *events, message_delta("tool_use"), STOP))
    assert got.tool_calls[0].arguments is None


def test_server_tools_are_the_providers_own() -> None:
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_0", "content": [{"title": "a  b"}]}
    got = decode(API, sse(
        message_start(),
        *call_block(0, '{"query": "x"}', type="server_tool_use", id="srvtoolu_0", name="web_search"),
        *block(1, result),
        *call_block(2, "{}", type="mcp_tool_use", id="mcptoolu_2", name="ask", server_name="wiki"),
        message_delta("pause_turn"), STOP,
    ))
    assert got.tool_calls == ()
    assert [(c.id, c.kind, c.arguments) for c in got.server_calls] == [
        ("srvtoolu_0", CallKind.SERVER, '{"query": "x"}'), ("mcptoolu_2", CallKind.SERVER, "{}")]
    assert got.parts[1] == OpaquePart("web_search_tool_result", json.dumps(result))
    assert got.parts[3] == OpaquePart("mcp_tool_use.fields", '{"server_name":"wiki"}')


def test_citations_follow_their_text() -> None:
    cited = {"type": "char_location", "cited_text": "a"}
    got = decode(API, sse(
        message_start(),
        *block(0, {"type": "text", "text": "", "citations": []}, {"type": "text_delta", "text": "So"},
               {"type": "citations_delta", "citation": cited}),
        message_delta("end_turn"), STOP,
    ))
    assert got.parts[0] == TextPart("So")
    extra = got.parts[1]
    assert isinstance(extra, OpaquePart)
    assert (extra.type, json.loads(extra.json)) == ("text.fields", {"citations": [cited]})


def test_a_direct_caller_is_the_default_and_another_is_kept() -> None:
    got = decode(API, whole([{**CALL, "caller": {"type": "direct"}}], "tool_use"))
    assert [type(p) for p in got.parts] == [ToolCall]
    by_code = {"type": "code_execution_20250825", "tool_id": "srvtoolu_9"}
    got = decode(API, whole([{**CALL, "caller": by_code}], "tool_use"))
    extra = got.parts[1]
    assert isinstance(extra, OpaquePart)
    assert json.loads(extra.json) == {"caller": by_code}


def test_compaction_grows_from_its_deltas() -> None:
    got = decode(API, sse(
        message_start(),
        *block(0, {"type": "compaction", "content": None}, {"type": "compaction_delta", "content": "So "},
               {"type": "compaction_delta", "content": "far"}),
        message_delta("compaction"), STOP,
    ))
    (part,) = got.parts
    assert isinstance(part, OpaquePart)
    assert (part.type, json.loads(part.json)) == ("compaction", {"type": "compaction", "content": "So far"})


def test_a_delta_for_a_block_that_never_began_is_never_a_closed_call() -> None:
    events = call_block(0, '{"city": "Bern"}')[1:]
    got = decode(API, sse(message_start(), *events, message_delta("tool_use"), STOP))
    assert [(c.name, c.arguments, c.closed) for c in got.tool_calls] == [("", '{"city": "Bern"}', False)]
    assert "anthropic_messages.delta_without_start" in {f.rule for f in got.findings}


@pytest.mark.parametrize("index", [{}, {"index": 0}])
def test_deltas_of_two_kinds_without_a_start_are_two_blocks(index: dict[str, int]) -> None:
    deltas = [{"type": "thinking_delta", "thinking": "Hm"}, {"type": "thinking_delta", "thinking": "."},
              {"type": "text_delta", "text": "An"}, {"type": "text_delta", "text": "swer"}]
    events = [{"type": "content_block_delta", **index, "delta": each} for each in deltas]
    got = decode(API, sse(message_start(), *events, message_delta("end_turn"), STOP))
    assert got.parts == (ReasoningPart("Hm."), TextPart("Answer"))
    assert "anthropic_messages.delta_without_start" in {each.rule for each in got.findings}
    assert "anthropic_messages.unknown_delta" not in {each.rule for each in got.findings}


def test_a_delta_of_another_kind_in_a_block_that_began_is_none_of_it() -> None:
    events = block(0, {"type": "thinking", "thinking": ""}, {"type": "text_delta", "text": "no"})
    got = decode(API, sse(message_start(), *events, message_delta("end_turn"), STOP))
    assert (got.text, "anthropic_messages.unknown_delta" in {each.rule for each in got.findings}) == (None, True)


def test_a_closed_call_does_not_change() -> None:
    late = call_block(0, '{"city": "Bern"}', "RUBBISH")
    late[2], late[3] = late[3], late[2]
    got = decode(API, sse(message_start(), *late, message_delta("tool_use"), STOP))
    assert [(c.arguments, c.closed) for c in got.tool_calls] == [('{"city": "Bern"}', True), ("RUBBISH", False)]


def test_text_cannot_slip_into_arguments() -> None:
    events = call_block(0, '{"a":')
    events.insert(2, {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}})
    got = decode(API, sse(message_start(), *events, message_delta("tool_use"), STOP))
    assert got.tool_calls[0].arguments == '{"a":'
    assert [f.rule for f in got.findings] == ["anthropic_messages.call_unread_value"]


@each_row(("events", "rule"), [
    ([{"type": "content_block_stop", "index": 7}], "stop_without_start"),
    ([*block(0, {"type": "text", "text": "a"}, stop=False), *text_block(0, "b")], "repeated_index"),
    ([{"type": "content_block_start", "content_block": {"type": "text", "text": "a"}}], "missing_index"),
    ([{"type": "brand_new_event"}], "unknown_event"),
])
def test_odd_events_are_told(events: list[dict[str, Any]], rule: str) -> None:
    got = decode(API, sse(message_start(), *events))
    assert f"anthropic_messages.{rule}" in {f.rule for f in got.findings}
    assert got.stop_reason.normalized is Stop.INTERRUPTED


def test_the_end_of_a_block_that_came_twice_is_not_said_to_have_no_beginning() -> None:
    *begun, end = text_block(0, "a")
    got = decode(API, sse(message_start(), *begun, end, end, message_delta("end_turn"), STOP))
    assert [(f.rule, f.message) for f in got.findings] == [
        ("anthropic_messages.stop_without_start", "a block ended that was not open: it never began, or had ended")]


def call_of(ident: str, source: str, *, stop: bool) -> list[dict[str, Any]]:
    fields = {"type": "tool_use", "id": ident, "name": "f", "input": {}}
    begun = {"type": "content_block_start", "index": 0, "content_block": fields}
    piece = {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": source}}
    return [begun, piece, *([{"type": "content_block_stop", "index": 0}] if stop else [])]


def test_the_beginning_of_a_block_that_came_twice_is_one_block() -> None:
    """As where a proxy repeats an event: nothing came between the two."""
    begun, *rest = call_of("t1", '{"a":1}', stop=True)
    got = read(API, sse(message_start(), begun, begun, *rest, message_delta("tool_use"), STOP))
    assert (got.stop_reason, [(each.admission, each.arguments) for each in got.calls]) == (
        "tool_call", [("ready", {"a": 1})])
    assert [each.rule for each in got.findings] == ["anthropic_messages.repeated_start"]


@each_row("events", [
    [*call_of("t1", '{"a":', stop=False), *call_of("t1", "1}", stop=True)],
    [*call_of("t1", '{"a":1}', stop=False), *call_of("t1", '{"a":1}', stop=True)],
    [*call_of("t1", '{"a":1}', stop=False), *call_of("t2", '{"a":2}', stop=True)],
    [*call_of("t1", '{"a":1}', stop=True), call_of("t1", "", stop=True)[0]],
])
def test_a_call_whose_block_began_twice_is_no_call_that_a_limit_cut(events: list[dict[str, Any]]) -> None:
    got = read(API, sse(message_start(), *events, message_delta("tool_use"), STOP))
    assert got.stop_reason == "malformed_tool_call"
    assert {each.admission for each in got.calls} == {"held"}
    begun = next(each for each in got.findings if each.rule == "judge.misplaced_event")
    assert begun.at == next(each.at for each in got.findings if each.rule == "anthropic_messages.repeated_index")


def test_blocks_of_one_index_that_each_ended_are_whole() -> None:
    """A gateway may give index 0 to every block."""
    events = [*call_of("t1", '{"a":1}', stop=True), *call_of("t2", '{"a":2}', stop=True)]
    got = read(API, sse(message_start(), *events, message_delta("tool_use"), STOP))
    assert [(each.admission, each.arguments) for each in got.calls] == [("ready", {"a": 1}), ("ready", {"a": 2})]
    cut = read(API, sse(message_start(), *events[:-1], message_delta("tool_use"), STOP))
    assert (cut.stop_reason, {each.admission for each in cut.calls}) == ("max_tokens", {"held"})


@pytest.mark.parametrize("more", [
    text_block(1, " More"), text_block(1, " More")[:-1], call_block(1, '{"a":1}'),
])
def test_an_answer_that_goes_on_after_its_reason_and_has_no_end_was_cut(more: list[dict[str, Any]]) -> None:
    for word, said in (("end_turn", text_block(0, "Hi")), ("tool_use", call_block(0, '{"a":1}'))):
        events = [message_start(), *said, message_delta(word), *more]
        cut = read(API, sse(*events))
        assert (cut.stop_reason, cut.raw) == ("interrupted", word)
        assert {each.admission for each in cut.calls} <= {"held"}
        assert "anthropic_messages.goes_on" in {each.rule for each in cut.findings}
        assert read(API, sse(*events, message_delta(word))).stop_reason == read(API, sse(*events, STOP)).stop_reason


@pytest.mark.parametrize(("word", "said", "admissions"), [
    ("end_turn", text_block(0, "Hi", ""), []), ("tool_use", call_block(0, '{"a":1}', ""), ["ready"]),
])
def test_an_answer_that_goes_on_with_nothing_after_its_reason_is_whole(
    word: str, said: list[dict[str, Any]], admissions: list[str]
) -> None:
    """Servers send the stop reason before the last block ends, and leave out `message_stop`."""
    for late in (said[-1:], said[-2:]):
        for blank in ("", " \n"):
            events = [message_start(), *said[: -len(late)], message_delta(word), *late, *text_block(1, blank)]
            whole = read(API, sse(*events))
            assert whole.stop_reason == read(API, sse(*events, STOP)).stop_reason != "interrupted"
            assert [each.admission for each in whole.calls] == admissions


def test_white_space_of_a_call_after_the_reason_is_a_piece_of_it() -> None:
    begin, piece, end = call_block(0, '{"a":1}')
    blank = {**piece, "delta": {**piece["delta"], "partial_json": " "}}
    cut = read(API, sse(message_start(), begin, piece, message_delta("tool_use"), blank, end))
    assert (cut.stop_reason, [each.admission for each in cut.calls]) == ("interrupted", ["held"])


def test_content_in_message_start_is_not_lost() -> None:
    got = decode(API, sse(message_start(content=[{"type": "text", "text": "Hi"}]), message_delta("end_turn"), STOP))
    assert got.text == "Hi"
    assert "anthropic_messages.early_content" in {f.rule for f in got.findings}


MADE_BY_CODE = message_start(stop_reason="tool_use", content=[
    {"type": "tool_use", "id": "toolu_1", "name": "roll", "input": {"sides": 6},
     "caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}}])
"""How Anthropic streams a call that code in its container makes: whole, in message_start."""


def test_a_call_that_is_whole_in_message_start_runs_when_the_message_ends() -> None:
    body = sse(MADE_BY_CODE, STOP)
    whole = read(API, body)
    assert (whole.stop_reason, [(each.call.name, each.arguments, each.admission) for each in whole.calls]) == (
        "tool_call", [("roll", {"sides": 6}, "ready")])
    assert [f.rule for f in decode(API, body).findings] == ["anthropic_messages.early_content"]
    for end in range(16, body.index(b'"message_stop"')):
        cut = read(API, body[:end])
        assert (cut.stop_reason, {each.admission for each in cut.calls} - {"held"}) == ("interrupted", set()), end


@pytest.mark.parametrize("between", [
    [{"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"sides": '}}],
    call_block(1, '{"a": 1}'), text_block(1, "and"),
])
def test_a_word_in_message_start_is_not_believed_if_the_message_goes_on(between: list[dict[str, Any]]) -> None:
    held = read(API, sse(MADE_BY_CODE, *between, STOP))
    assert {each.admission for each in held.calls} == {"held"}
    assert held.stop_reason in ("unknown", "max_tokens")  # or the JSON of the call tells of the cut
    assert read(API, sse(message_start(stop_reason="end_turn"), STOP)).stop_reason == "unknown"


def test_the_last_call_of_a_message_that_is_cut_in_message_start_is_not_closed() -> None:
    start = {**MADE_BY_CODE, "message": {**MADE_BY_CODE["message"], "stop_reason": "max_tokens"}}
    assert [call.closed for call in decode(API, sse(start, STOP)).tool_calls] == [False]
    assert [call.closed for call in decode(API, json.dumps(start["message"]).encode()).tool_calls] == [False]


def test_the_word_of_message_delta_counts_before_that_of_message_start() -> None:
    held = read(API, sse(MADE_BY_CODE, message_delta("max_tokens"), STOP))
    assert (held.stop_reason, [each.admission for each in held.calls]) == ("max_tokens", ["held"])


# -- blocks of a whole body --------------------------------------------------------------------------------------


def test_a_whole_body_gives_arguments_verbatim() -> None:
    body = whole([{"type": "text", "text": "ok"}, CALL], "tool_use").replace(b'"Bern"', b'"B\\u0065rn" ')
    (call,) = decode(API, body).tool_calls
    assert (call.arguments, call.form, call.closed) == ('{"city": "B\\u0065rn" }', ArgsForm.OBJECT, True)
    assert call.at is not None
    assert body[call.at.start : call.at.end].startswith(b'{"type": "tool_use"')
    assert call.at.pointer == "/content/1"


@each_row(("reason", "closed"), [
    ("tool_use", [True, True]),
    ("end_turn", [True, True]),
    ("max_tokens", [True, False]),
    ("model_context_window_exceeded", [True, False]),
    ("stop_sequence", [True, False]),
    ("refusal", [True, False]),
    ("galaxy", [True, False]),
    (None, [False, False]),
])
def test_the_last_call_of_a_whole_body_is_open_unless_the_reason_completes_it(
    reason: str | None, closed: list[bool]
) -> None:
    got = decode(API, whole([CALL, {**CALL, "id": "toolu_2"}], reason))
    assert [call.closed for call in got.tool_calls] == closed


def test_a_whole_body_with_input_as_text_or_without_input() -> None:
    bare = {"type": "tool_use", "id": "a", "name": "f"}
    got = decode(API, whole([{**CALL, "input": '{"city":'}, bare], "tool_use"))
    assert [(c.arguments, c.form) for c in got.tool_calls] == [('{"city":', ArgsForm.STRING), (None, ArgsForm.OBJECT)]


def test_a_cut_body_is_interrupted() -> None:
    body = whole([CALL], "tool_use")
    got = decode(API, body[:-1])
    assert (got.stop_reason.normalized, got.tool_calls) == (Stop.INTERRUPTED, ())


# -- usage, native words -----------------------------------------------------------------------------------------


def test_message_delta_overrides_message_start() -> None:
    late = {"input_tokens": 40, "output_tokens": 15, "cache_read_input_tokens": 7,
            "output_tokens_details": {"thinking_tokens": 9}}
    early = {"input_tokens": 0, "output_tokens": 1}
    got = decode(API, sse(message_start(usage=early), message_delta("end_turn", late)))
    assert got.usage == Usage(40, 15, 9, 7)
    assert [f.rule for f in got.findings] == ["anthropic_messages.late_input_tokens"]


def test_usage_is_overwritten_and_not_summed() -> None:
    got = decode(API, sse(message_start(), message_delta(None, {"output_tokens": 5}),
                          message_delta("end_turn", {"output_tokens": 12})))
    assert got.usage == Usage(25, 12)


def test_usage_of_a_cut_stream_is_what_was_known() -> None:
    assert decode(API, sse(message_start())).usage == Usage(25, 1)
    assert decode(API, sse(*text_block(0, "a"))).usage is None


def test_a_refusal_is_explained() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "No.", "recommended_model": "claude-y",
               "fallback_has_prefill_claim": True, "fallback_credit_token": None}
    for body in (whole([], "refusal", stop_details=details),
                 sse(message_start(), message_delta("refusal", stop_details=details), STOP)):
        got = decode(API, body)
        assert (got.stop_reason.normalized, got.refusal) == (Stop.SAFETY_BLOCKED, "No.")
        assert got.native == {"stop_details.category": "cyber", "stop_details.recommended_model": "claude-y",
                              "stop_details.fallback_has_prefill_claim": "true"}


SEAM = {"type": "fallback", "from": {"model": "claude-a"}, "to": {"model": "claude-b"},
        "trigger": {"type": "refusal", "category": "cyber"}}
ITERATIONS = [{"type": "message", "input_tokens": 5, "output_tokens": 10},
              {"type": "fallback_message", "model": "claude-b", "input_tokens": 5, "output_tokens": 20}]


def seam_block(index: int, block: dict[str, Any] = SEAM) -> list[dict[str, Any]]:
    """A fallback block as it streams: begun and ended, without deltas."""
    return [{"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_stop", "index": index}]


def notices(got: ChatResponse, rule: str) -> list[str]:
    return [found.message for found in got.findings if found.rule == f"anthropic_messages.{rule}"]


def test_a_fallback_is_a_seam_that_names_both_models() -> None:
    usage = {"output_tokens": 30, "iterations": ITERATIONS}
    body = whole([{"type": "text", "text": "partial"}, SEAM, {"type": "text", "text": "rest"}], "end_turn", usage=usage)
    stream = sse(message_start(), *text_block(0, "part", "ial"), *seam_block(1), *text_block(2, "rest"),
                 message_delta("end_turn", usage), STOP)
    for data in (body, stream):
        got = decode(API, data)
        assert got.stop_reason.normalized is Stop.END_TURN
        assert [part.type if isinstance(part, OpaquePart) else part.text for part in got.parts] == [
            "partial", "fallback", "rest"]
        (message,) = notices(got, "fallback")
        for said in ("claude-a gave way to claude-b", "(refusal, cyber)", "7 characters", "10 + 20"):
            assert said in message
        (found,) = (found for found in got.findings if found.rule == "anthropic_messages.fallback")
        assert found.at is not None
        assert b'"fallback"' in data[found.at.start : found.at.end]
        assert b"partial" not in data[found.at.start : found.at.end]
        assert json.loads(got.native["usage.iterations"]) == ITERATIONS
        again = decode(API, encode(got, stream=data is stream))
        assert essence(again, LOSES) == essence(got, LOSES)


def test_every_hop_of_a_fallback_says_how_much_was_whose() -> None:
    second = {**SEAM, "from": {"model": "claude-b"}, "to": {"model": "claude-c"}, "trigger": None}
    got = decode(API, whole([{"type": "text", "text": "abc"}, SEAM, {"type": "text", "text": "de"}, second,
                             {"type": "text", "text": "f"}], "end_turn"))
    first, last = notices(got, "fallback")
    assert "claude-a gave way to claude-b (refusal, cyber): 3 characters" in first
    assert "claude-b gave way to claude-c: 2 characters" in last


def test_a_call_of_the_model_that_gave_way_is_no_call_of_the_answer() -> None:
    """The API takes neither the call back nor a result for it (anthropic 2.12.0 beta_fallback_block_param.py)."""
    lost = {"type": "tool_use", "id": "t_1", "name": "rm", "input": {"path": "/"}, "caller": {"type": "other"}}
    good = {"type": "tool_use", "id": "t_2", "name": "ls", "input": {"path": "."}}
    body = whole([lost, SEAM, good], "tool_use")
    stream = sse(message_start(), {"type": "content_block_start", "index": 0, "content_block": {**lost, "input": {}}},
                 {"type": "content_block_delta", "index": 0,
                  "delta": {"type": "input_json_delta", "partial_json": '{"path": "/'}}, *seam_block(1),
                 {"type": "content_block_start", "index": 2, "content_block": good},
                 {"type": "content_block_stop", "index": 2}, message_delta("tool_use"), STOP)
    for data in (body, stream):
        got = decode(API, data)
        assert [call.name for call in got.tool_calls] == ["ls"]
        assert [part.type for part in got.parts if isinstance(part, OpaquePart)] == ["fallback"]
        assert notices(got, "fallback_call") == ["the call rm is of a model that gave way, and is left out"]


def test_an_answer_of_a_fallback_model_alone_has_no_block_and_is_told_from_its_usage() -> None:
    got = decode(API, whole([{"type": "text", "text": "Hi"}], "end_turn",
                            usage={"output_tokens": 20, "iterations": ITERATIONS[1:]}))
    assert notices(got, "fallback") == ["the answer is by the fallback model claude-b; output tokens by iteration: 20"]


@each_row("usage", [
    {"output_tokens": 3}, {"output_tokens": 3, "iterations": [{"type": "message", "output_tokens": 3}]},
    {"output_tokens": 3, "iterations": None}, {"output_tokens": 3, "iterations": "x"},
])
def test_an_answer_of_one_model_has_no_seam(usage: dict[str, Any]) -> None:
    got = decode(API, whole([{"type": "text", "text": "Hi"}], "end_turn", usage=usage))
    assert got.findings == ()
    assert got.native == {}


@pytest.mark.parametrize("odd", [{"type": "fallback"}, {**SEAM, "from": 5, "to": {"model": None}, "trigger": "x"}])
def test_a_fallback_that_names_nobody_is_still_a_seam(odd: dict[str, Any]) -> None:
    for data in (whole([odd], "end_turn"), sse(message_start(), *seam_block(0, odd), message_delta("end_turn"), STOP)):
        (message,) = notices(decode(API, data), "fallback")
        assert message.startswith("a model without a name gave way to a model without a name: 0 characters")


def test_native_words() -> None:
    got = decode(API, sse(message_start(), {
        **message_delta("stop_sequence", stop_sequence="STOP", container={"id": "c_1", "expires_at": "2026"}),
        "context_management": {"applied_edits": []},
    }, STOP))
    assert got.native == {"stop_sequence": "STOP", "container.id": "c_1", "container.expires_at": "2026",
                          "context_management.applied_edits": "[]"}


# -- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "detail"), [("overloaded_error", "retryable"), ("api_error", "retryable"),
                                              ("invalid_request_error", "fatal")])
def test_an_error_event_after_200(kind: str, detail: str) -> None:
    body = sse(message_start(), *text_block(0, "Hi"), {"type": "error", "error": {"type": kind, "message": "Oops"}})
    got = decode(API, body, http_status=200)
    assert (got.stop_reason.normalized, got.stop_reason.detail, got.text) == (Stop.ERROR, detail, "Hi")
    assert got.error == ProviderError("Oops", kind, None, detail == "retryable")


def test_an_error_event_outranks_the_reason_before_it() -> None:
    got = decode(API, sse(message_start(), *call_block(0, "{}"), message_delta("tool_use"),
                          {"type": "error", "error": {"type": "api_error", "message": "Oops"}}))
    assert (got.stop_reason.normalized, got.raw_stop_reason) == (Stop.ERROR, "tool_use")


@pytest.mark.parametrize(("status", "kind", "message", "stop"), [
    (429, "rate_limit_error", "slow down", Stop.ERROR),
    (400, "invalid_request_error", "prompt is too long: 220000 tokens > 200000 maximum", Stop.CONTEXT_WINDOW_EXCEEDED),
])
def test_an_http_error(status: int, kind: str, message: str, stop: Stop) -> None:
    body = json.dumps({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}).encode()
    got = decode(API, body, http_status=status, headers=[("retry-after", "3")])
    assert (got.stop_reason.normalized, got.raw_stop_reason, got.native) == (stop, None, {"request_id": "req_1"})
    assert got.error == ProviderError(message, kind, None, status == 429)
    assert got.quota_metadata is not None
    assert got.quota_metadata.retry_after == "3"


def test_a_body_of_another_api_is_told() -> None:
    got = decode(API, b'{"choices": []}')
    assert [f.rule for f in got.findings] == ["anthropic_messages.no_message"]
    assert got.stop_reason.normalized is Stop.INTERRUPTED


# -- any chunking, any cut, any rubbish --------------------------------------------------------------------------


STORY = sse(
    message_start(), *text_block(0, "Zürich ", "😀"), {"type": "ping"}, *call_block(1, "", '{"city": "Be', 'rn"}'),
    *call_block(2, '{"city": "Genève"}'), message_delta("tool_use", {"output_tokens": 89}), STOP,
)


def test_any_chunking_decodes_alike() -> None:
    want = asdict(decode(API, STORY))
    for at in range(len(STORY)):
        assert asdict(decode(API, [STORY[:at], STORY[at:]])) == want
    for size in (1, 2, 3, 7, 64):
        assert asdict(decode(API, [STORY[i : i + size] for i in range(0, len(STORY), size)])) == want


def test_a_stream_cut_at_any_byte_claims_nothing_that_it_does_not_know() -> None:
    final = {call.id: call for call in decode(API, STORY).tool_calls}
    told = STORY.index(b'{"type": "message_delta"')
    told = STORY.index(b"\n", told)
    ends = [i for i in range(len(STORY)) if STORY.startswith(b'{"type": "content_block_stop"', i)][1:]
    for at in range(len(STORY)):
        got = decode(API, STORY[:at])
        if at < told:
            assert (got.stop_reason.normalized, got.raw_stop_reason) == (Stop.INTERRUPTED, None), at
        else:
            assert got.stop_reason.normalized is Stop.TOOL_CALL
        for call, end in zip(got.tool_calls, ends, strict=False):
            assert call.closed == (at >= end + len(b'{"type": "content_block_stop", "index": 1}')), at
            if call.closed:
                assert call.arguments == final[call.id].arguments


def test_a_stream_without_event_names_decodes_alike() -> None:
    bare = b"".join(line + b"\n" for line in STORY.split(b"\n")[:-1] if not line.startswith(b"event:"))
    assert essence(decode(API, bare)) == essence(decode(API, STORY))


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_fuzzed_bytes_raise_nothing_but_the_typed_error(data: st.DataObject) -> None:
    body = bytearray(data.draw(st.sampled_from([STORY, whole([CALL, {"type": "text", "text": "a"}], "tool_use")])))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(body) - 1))
        body[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    with suppress(DecodeError):
        decode(API, bytes(body))


ODD = [None, 5, "x", [], {}, [None], {"type": []}, True]


@each_row("odd", ODD)
def test_fields_of_the_wrong_type_do_not_crash(odd: Any) -> None:
    decode(API, sse(
        {"type": "message_start", "message": odd}, {"type": "content_block_start", "index": odd, "content_block": odd},
        *call_block(0, stop=False), {"type": "content_block_delta", "index": 0, "delta": odd},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": odd}},
        *block(1, {"type": "text", "text": odd}, {"type": "citations_delta", "citation": odd}),
        *block(2, {"type": "thinking", "thinking": odd, "signature": 1}, {"type": "signature_delta", "signature": odd}),
        *block(3, {"type": "redacted_thinking", "data": odd}),
        *block(4, {"type": "tool_use", "input": odd, "name": odd}),
        {"type": "message_delta", "delta": odd, "usage": odd}, {"type": "content_block_stop", "index": odd},
        {"type": "message_delta", "delta": {"stop_reason": odd, "stop_details": odd, "container": odd}},
        {"type": odd}, {"type": "error", "error": odd},
    ))
    got = decode(API, whole([{"type": "tool_use", "input": odd, "id": odd}, {"type": "text", "text": odd}, odd,
                             {"type": "thinking", "thinking": odd}], "tool_use", usage=odd, id=odd, stop_details=odd))
    assert got.raw_stop_reason == "tool_use"
    assert decode(API, whole(odd, "end_turn")).raw_stop_reason == "end_turn"


# -- encode ------------------------------------------------------------------------------------------------------


def full_response(stop: str | None = "tool_use", closed: bool = True) -> ChatResponse:
    return ChatResponse(
        api=API,
        parts=(
            ReasoningPart("hm, well", signature="EqQB"),
            ReasoningPart("", data="EmwK"),
            TextPart("Grüezi mitenand, 😀\n"),
            OpaquePart("text.fields", '{"citations":[{"cited_text":"a"},{"cited_text":"b"}]}'),
            ToolCall("srvtoolu_1", "web_search", '{"query":"x"}', stop is not None, CallKind.SERVER),
            OpaquePart("web_search_tool_result", '{"type":"web_search_tool_result", "content":[]}'),
            ToolCall("toolu_1", "get_weather", '{"city": "Bern", "n": 1.0}', closed),
        ),
        stop_reason=StopReason(MEANS[stop][0] if stop else Stop.INTERRUPTED, stop),
        usage=Usage(40, 15, 9, 7),
        id="msg_1",
        model="claude-x",
        refusal="No." if stop == "refusal" else None,
        native={"stop_sequence": "STOP", "container.id": "c_1", "container.skills": '[{"skill_id":"s"}]'},
    )


@each_row("stream", [False, True])
@each_row(("stop", "closed"), [("tool_use", True), ("max_tokens", False), ("refusal", False),
                                              (None, False)])
def test_a_response_survives_the_round_trip(stream: bool, stop: str | None, closed: bool) -> None:
    given_ = full_response(stop, closed)
    if stream and stop is None:
        given_ = replace(given_, parts=given_.parts[-1:])  # an open server call is only known in a body
    got = decode(API, encode(given_, stream=stream, chunk=3))
    want = essence(given_, LOSES)
    want["detail"] = MEANS[stop][1] if stop else None
    assert essence(got, LOSES) == want
    assert [f.rule for f in got.findings if f.rule != "anthropic_messages.block_not_closed"] == []


def test_a_stream_is_one_item_an_event_cut_as_asked() -> None:
    items = list(encode(ChatResponse(API, (TextPart("abcdef"),), StopReason(Stop.END_TURN, "end_turn")),
                        stream=True, chunk=4))
    assert [item.split(b"\n")[0] for item in items] == [
        b"event: message_start", b"event: content_block_start", b"event: content_block_delta",
        b"event: content_block_delta", b"event: content_block_stop", b"event: message_delta", b"event: message_stop"]
    assert all(item.endswith(b"\n\n") for item in items)


def test_usage_of_a_stream_begins_with_one_token_and_ends_with_all() -> None:
    body = b"".join(encode(full_response(), stream=True))
    first, last = (json.loads(line[6:]) for line in body.split(b"\n") if b'"usage"' in line)
    assert first["message"]["usage"] == {"input_tokens": 40, "cache_read_input_tokens": 7, "output_tokens": 1}
    assert last["usage"] == {"input_tokens": 40, "cache_read_input_tokens": 7, "output_tokens": 15,
                             "output_tokens_details": {"thinking_tokens": 9}}


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_of_another_kind_of_server_keeps_its_type(stream: bool) -> None:
    body = whole([{"type": "mcp_tool_use", "id": "m", "name": "ask", "input": {}}], "end_turn")
    again = b"".join(encode(decode(API, body), stream=stream))
    assert b'"type":"mcp_tool_use"' in again
    assert essence(decode(API, again), LOSES) == essence(decode(API, body), LOSES)


def test_an_interrupted_stream_has_no_terminal() -> None:
    body = b"".join(encode(full_response(None, False), stream=True))
    assert b"message_delta" not in body
    assert b"message_stop" not in body


@pytest.mark.parametrize("stream", [False, True])
def test_errors_survive_the_round_trip(stream: bool) -> None:
    error = ProviderError("slow down", "rate_limit_error", None, True)
    given_ = ChatResponse(API, stop_reason=StopReason(Stop.ERROR, None, "retryable"), error=error, http_status=429)
    got = decode(API, encode(given_, stream=stream), http_status=429)
    assert essence(got, LOSES) == essence(given_, LOSES)
    late = replace(given_, http_status=200, parts=(TextPart("Hi"),))
    assert essence(decode(API, encode(late, stream=True)), LOSES) == essence(late, LOSES)


def test_indented_blocks_go_through_a_stream_verbatim() -> None:
    part = OpaquePart("fallback", '{\n  "type": "fallback",\n  "from": {"model": "a\\u2028b"}\n}')
    given_ = ChatResponse(API, (part,), StopReason(Stop.END_TURN, "end_turn"))
    assert decode(API, encode(given_, stream=True)).parts == (part,)


def test_line_separators_in_text_survive() -> None:
    given_ = ChatResponse(API, (TextPart("a\u2028b\x85c\ud83d"),), StopReason(Stop.END_TURN, "end_turn"))
    for stream in (False, True):
        assert decode(API, encode(given_, stream=stream, chunk=50)).text == "a\u2028b\x85c\ud83d"


def reply(*parts: Any, stop: str = "tool_use", **fields: Any) -> ChatResponse:
    return ChatResponse(API, parts, StopReason(MEANS[stop][0], stop), **fields)


@each_row(("response", "stream", "what"), [
    (reply(ToolCall("a", "f", '{"city": "Be', True)), False, "call.arguments"),
    (reply(ToolCall("a", "f", ' {"a":1}', True)), False, "call.arguments"),
    (reply(ToolCall("a", "f", '{"a": NaN}', True)), False, "call.arguments"),
    (reply(ToolCall("a", "f", '"text"', True)), False, "call.arguments"),
    (reply(ToolCall("a", "f", "", True)), True, "call.arguments"),
    (reply(ToolCall("a", "f", "{}", True), stop="max_tokens"), False, "call.closed"),
    (reply(ToolCall("a", "f", "{}", False)), False, "call.closed"),
    (reply(ToolCall("a", "f", "free", True, CallKind.CUSTOM)), True, "custom call"),
    (reply(OpaquePart("x", "not json")), True, "opaque"),
    (reply(OpaquePart("x", '{"no": "type"}')), True, "opaque"),
    (reply(OpaquePart("text.fields", "{}")), True, "opaque"),
    (reply(ReasoningPart("readable", data="x")), True, "reasoning.data"),
    (reply(continuation_token="t"), True, "continuation_token"),
    (reply(error=ProviderError("a"), http_status=500), False, "error beside content"),
    (ChatResponse(API, error=ProviderError("a", "b", None, True)), True, "error"),
])
def test_what_cannot_be_carried_is_refused(response: ChatResponse, stream: bool, what: str) -> None:
    with pytest.raises(EncodeError) as caught:
        encode(response, stream=stream)
    assert caught.value.what == what


# -- the SDK as referee ------------------------------------------------------------------------------------------


def sdk(body: bytes, content_type: str) -> Any:
    anthropic = pytest.importorskip("anthropic")
    httpx2 = pytest.importorskip("httpx2")

    def answer(_: Any) -> Any:
        return httpx2.Response(200, headers={"content-type": content_type}, content=body)

    transport = httpx2.MockTransport(answer)
    return anthropic.Anthropic(api_key="none", max_retries=0, http_client=httpx2.Client(transport=transport))


ASK: dict[str, Any] = {"model": "claude-x", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}


def test_the_sdk_reads_what_is_written() -> None:
    given_ = replace(full_response(), native={"stop_sequence": "STOP"})
    client = sdk(b"".join(encode(given_)), "application/json")
    messages = [client.messages.create(**ASK)]
    client = sdk(b"".join(encode(given_, stream=True, chunk=5)), "text/event-stream")
    with client.messages.stream(**ASK) as stream:
        messages.append(stream.get_final_message())
    for message in messages:
        assert (message.id, message.model, message.stop_reason, message.stop_sequence) == (
            "msg_1", "claude-x", "tool_use", "STOP")
        thinking, redacted, text, server, result, call = message.content
        assert (thinking.thinking, thinking.signature) == ("hm, well", "EqQB")
        assert redacted.data == "EmwK"
        assert text.text == "Grüezi mitenand, 😀\n"
        assert [citation.cited_text for citation in text.citations] == ["a", "b"]
        assert (server.type, server.input) == ("server_tool_use", {"query": "x"})
        assert result.type == "web_search_tool_result"
        assert (call.id, call.name, call.input) == ("toolu_1", "get_weather", {"city": "Bern", "n": 1.0})
        assert (message.usage.input_tokens, message.usage.output_tokens) == (40, 15)


def test_the_sdk_raises_on_the_error_that_is_written() -> None:
    anthropic = pytest.importorskip("anthropic")
    error = ProviderError("busy", "overloaded_error", None, True)
    given_ = ChatResponse(API, (TextPart("Hi"),), StopReason(Stop.ERROR), error=error)
    client = sdk(b"".join(encode(given_, stream=True)), "text/event-stream")
    with pytest.raises(anthropic.APIError, match="busy"), client.messages.stream(**ASK) as stream:
        stream.get_final_message()


# -- requests ----------------------------------------------------------------------------------------------------


def test_a_request_in_the_fields_words() -> None:
    got = read_request({
        "model": "claude-x", "max_tokens": 300, "stream": True,
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "redacted_thinking", "data": "d"},
                {"type": "text", "text": "I look."}, {"type": "tool_use", "id": "t1", "name": "w", "input": {"c": "é"}},
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
                {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "sunny"}],
                 "is_error": True}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"},
                                         {"type": "image", "source": {}}]},
            "odd", {"role": "martian"},
        ],
        "tools": [{"name": "w", "description": "d", "input_schema": {"type": "object"}},
                  {"type": "web_search_20250305", "name": "web_search"}, {"type": "bash_20250124", "name": "bash"}, 5],
        "tool_choice": {"type": "tool", "name": "w"},
    })
    assert (got.model, got.max_tokens, got.stream, got.tool_choice) == ("claude-x", 300, True, "tool:w")
    assert [m.role for m in got.messages] == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL, Role.USER]
    assert got.messages[0].text == "Be brief."
    said = got.messages[2]
    assert said.parts[0] == ReasoningPart("hm", "s")
    assert said.parts[1] == ReasoningPart("", data="d")
    assert [(c.id, c.name, c.arguments, c.closed, c.form) for c in said.tool_calls] == [
        ("t1", "w", '{"c":"é"}', True, ArgsForm.OBJECT)]
    assert [p.type for p in said.parts if isinstance(p, OpaquePart)] == ["web_search_tool_result"]
    assert got.messages[3].results == (ToolResultPart("t1", "w", "sunny", True),)
    assert isinstance(got.messages[4].parts[1], OpaquePart)
    assert [(t.name, t.kind, t.schema) for t in got.tools] == [
        ("w", CallKind.FUNCTION, {"type": "object"}), ("web_search", CallKind.SERVER, None),
        ("bash", CallKind.FUNCTION, None)]


@each_row(("choice", "word"), [({"type": "auto"}, "auto"), ({"type": "any"}, "any"),
                                              ({"type": "none"}, "none"), ({"type": "odd"}, None), ("auto", None)])
def test_tool_choice(choice: Any, word: str | None) -> None:
    assert read_request({"tool_choice": choice}).tool_choice == word


@each_row(("thread", "last"), [
    ({"type": "continue", "previous_message_id": "msg_1"}, "msg_1"), ({"type": "create"}, None), (5, None),
    ({"type": "create", "previous_message_id": "msg_1"}, None), ({"type": "continue", "previous_message_id": 5}, None)])
def test_a_request_of_a_thread_names_the_answer_before_it(thread: Any, last: str | None) -> None:
    got = read_request({"model": "m", "max_tokens": 9, "messages": [], "thread": thread})
    assert (got.previous_id, encode_request(got)["thread"]) == (last, thread)


VERTEX = "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers/anthropic/models/"


@pytest.mark.parametrize(("url", "model", "stream"), [
    (VERTEX + "claude-3-7-sonnet@20250219:rawPredict", "claude-3-7-sonnet@20250219", False),
    (VERTEX + "claude-3-7-sonnet@20250219:streamRawPredict", "claude-3-7-sonnet@20250219", True),
    ("https://api.anthropic.com/v1/messages?beta=true", None, False),
])
def test_vertex_puts_the_model_into_the_url(url: str, model: str | None, stream: bool) -> None:
    got = read_request({"anthropic_version": "vertex-2023-10-16", "max_tokens": 9}, url)
    assert (got.model, got.stream, got.max_tokens) == (model, stream, 9)
    assert sum(bool(path.search(url)) for path in PATHS) == 1


@pytest.mark.parametrize("url", ["https://api.anthropic.com/v1/messages/count_tokens", "/v1/messages/batches",
                                 "https://x.googleapis.com/v1/publishers/google/models/g:rawPredict"])
def test_other_paths_are_not_ours(url: str) -> None:
    assert not any(path.search(url) for path in PATHS)


@each_row("odd", ODD)
def test_odd_requests_do_not_raise(odd: Any) -> None:
    got = read_request({"model": odd, "max_tokens": odd, "system": odd, "messages": [{"role": "user", "content": odd},
                        {"role": "assistant", "content": [odd, {"type": "tool_use", "input": odd}]}], "tools": odd,
                        "tool_choice": odd, "stream": odd})
    assert got.api == API


@each_row(("value", "event", "ours"), [
    (json.loads(whole([], "end_turn")), None, True),
    (message_start(), "message_start", True),
    ({"type": "ping"}, None, False),
    ({"type": "error", "error": {"type": "api_error", "message": ""}}, "error", True),
    ({"type": "error", "error": {"message": ""}, "sequence_number": 3}, "error", False),
    ({"type": "message", "status": "completed", "content": []}, None, False),
    ({"error": {"message": "m"}}, None, False),
    ({"id": "c", "object": "chat.completion", "choices": []}, None, False),
])
def test_recognises(value: dict[str, Any], event: str | None, ours: bool) -> None:
    assert recognises(value, event) is ours


# -- recorded traffic --------------------------------------------------------------------------------------------


def recordings() -> Iterator[tuple[dict[str, Any], dict[str, Any], bytes]]:
    if not (CORPUS / "expected.jsonl").is_file():
        pytest.skip("no recorded traffic beside the repository (LOOP_INSPECTOR_CORPUS)")
    with (CORPUS / "expected.jsonl").open(encoding="utf-8") as lines:
        expected = [json.loads(line) for line in lines]
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


def test_recorded_responses_say_what_the_facts_say() -> None:
    count = 0
    for facts, entry, body in recordings():
        status = entry["response"]["status"]
        got = decode(API, body, http_status=status)
        count += 1
        assert got.raw_stop_reason == next(iter(facts["raw_stop_reasons"]), None), facts["id"]
        assert [(c.name, as_recorded(c)[:400]) for c in got.tool_calls] == [
            (tool["name"], tool["args"][:400]) for tool in facts["tools"]], facts["id"]
        assert (got.error is not None) == (facts["kinds"] == ["http_error"]), facts["id"]
        assert {f.rule for f in got.findings} <= {
            "anthropic_messages.late_input_tokens", "anthropic_messages.fallback"}, facts["id"]
        for stream in (False, True):
            again = decode(API, encode(got, stream=stream, chunk=7), http_status=status)
            assert essence(again, LOSES) == essence(got, LOSES), facts["id"]
    assert count > 150


def test_recorded_requests_are_read() -> None:
    seen = 0
    for facts, entry, _ in recordings():
        text = entry["request"].get("postData", {}).get("text")
        if text:
            got = read_request(json.loads(text), entry["request"]["url"])
            seen += 1
            assert got.model is not None, facts["id"]
            assert got.max_tokens is not None, facts["id"]
            assert got.messages, facts["id"]
            assert any(path.search(entry["request"]["url"]) for path in PATHS), facts["id"]
    assert seen > 100


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
            # InvokeModel answers with the body of the model's maker.
            ours = har.parent.name == API or (har.parent.name == "bedrock_invoke" and body.get("type") == "message")
            assert recognises(body) is ours, entry["_id"]


@each_row(("text", "rule"), [
    ('{"city": "Basel"}', "gate.contradiction"), ('{"city":"Bern"}', "gate.ready"), ('{"city": "Ba', "gate.incomplete"),
    ("", "gate.ready"),
])
def test_a_call_that_began_with_another_input_is_held(text: str, rule: str) -> None:
    """A gateway may send the input with the block itself and again in pieces; where they differ nobody knows which is
    meant."""
    begun = call_block(0, *([text] if text else []), input={"city": "Bern"})
    (verdict,) = read(API, sse(message_start(), *begun, message_delta("tool_use"), STOP)).calls
    assert verdict.rule == rule
