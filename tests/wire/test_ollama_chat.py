"""Ollama chat: fixtures written from the server's documents and source; its SDK and recorded traffic are referees."""

from __future__ import annotations

import json
from collections.abc import Callable
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
    Stop,
    StopReason,
    TextPart,
    ToolCall,
    TransportEnd,
    Usage,
)
from loop_core.wire.ollama_chat import LOSES, PATHS, Decoder, encode, read_request, recognises
from loop_core.wire.ollama_chat.decode import STOP_REASONS
from tests.scenes.essence import essence
from tests.scenes.rows import each_row

CALL = {"function": {"name": "f", "arguments": {"a": 1}}}
COUNTS = {"total_duration": 9, "prompt_eval_count": 7, "eval_count": 3}


def line(content: str | None = "", done: bool = False, **more: Any) -> dict[str, Any]:
    message = {name: more.pop(name) for name in ("thinking", "tool_calls") if name in more}
    if content is not None:
        message["content"] = content
    return {"model": "tiny:1b", "created_at": "2026-01-02T03:04:05.678901Z",
            "message": {"role": "assistant", **message}, "done": done, **more}


def end(reason: Any = None, **more: Any) -> dict[str, Any]:
    value = line(done=True, **COUNTS, **more)
    return value if reason is None else {**value, "done_reason": reason}


def lines(*values: dict[str, Any], ending: str = "\n") -> bytes:
    return "".join(json.dumps(value, ensure_ascii=False) + ending for value in values).encode()


def whole(reason: Any, indent: int | None = None, **more: Any) -> bytes:
    return json.dumps({**line(done=True, **more), **COUNTS, "done_reason": reason}, indent=indent).encode()


def decode(data: bytes, **options: Any) -> ChatResponse:
    transport = options.pop("transport", TransportEnd.EOF)
    decoder = Decoder(**options)
    decoder.feed(data)
    return decoder.close(transport)


def rules(response: ChatResponse) -> set[str]:
    return {finding.rule for finding in response.findings}


# -- the table -------------------------------------------------------------------------------------------------------

WORDS = [
    ("stop", Stop.END_TURN, None),
    ("length", Stop.MAX_TOKENS, None),
    ("load", Stop.UNKNOWN, "load"),
    ("unload", Stop.UNKNOWN, "unload"),
]


@each_row(("word", "stop", "detail"), WORDS)
def test_every_done_reason(word: str, stop: Stop, detail: str | None) -> None:
    for data in (lines(line("Hi"), end(word)), whole(word, content="Hi"), whole(word, 2, content="Hi")):
        response = decode(data)
        assert (response.stop_reason.normalized, response.stop_reason.detail) == (stop, detail)
        assert response.raw_stop_reason == word
        assert [evidence.rule for evidence in response.stop_reason.evidence] == ["ollama_chat.stop_reasons"]
        assert (response.saw_stop_reason, response.saw_done) == (True, True)


def test_the_rows_above_are_all_there_are() -> None:
    assert {row[0] for row in WORDS} == set(STOP_REASONS)


@pytest.mark.parametrize("reason", [None, ""])
def test_done_without_a_reason_is_no_end(reason: str | None) -> None:
    """The runner lost its connection: DoneReasonConnectionClosed is an empty word, and left out."""
    stream = lines(line("Hi", tool_calls=[CALL]), {**end(), "done_reason": reason} if reason is not None else end())
    for data in (stream, json.dumps({**line("Hi", done=True, tool_calls=[CALL]), "done_reason": reason}).encode()):
        response = decode(data)
        assert response.stop_reason.normalized is Stop.INTERRUPTED
        assert response.raw_stop_reason == reason
        assert (response.saw_stop_reason, response.saw_done) == (False, True)
        assert [call.closed for call in response.tool_calls] == [False]


def test_a_reason_before_done_is_none() -> None:
    response = decode(lines({**line("Hi", tool_calls=[CALL]), "done_reason": "stop"}))
    assert response.stop_reason.normalized is Stop.INTERRUPTED
    assert "ollama_chat.reason_before_done" in rules(response)
    assert not response.tool_calls[0].closed


@each_row("reason", ["brand_new", 7, True, ["stop"], "STOP"])
def test_a_reason_that_no_row_knows(reason: Any) -> None:
    response = decode(lines(end(reason)))
    assert response.stop_reason.normalized is Stop.UNKNOWN
    assert response.raw_stop_reason == (reason if isinstance(reason, str) else json.dumps(reason))


# -- what a response says besides ------------------------------------------------------------------------------------


def test_a_stream() -> None:
    data = lines(line("", thinking="Let me "), line("", thinking="see"), line(None, thinking="."), line("He"),
                 line("llo"), line("", tool_calls=[CALL]), line("!"), end("stop"))
    response = decode(data)
    assert [part for part in response.parts if not isinstance(part, ToolCall)] == [
        ReasoningPart("Let me see."), TextPart("Hello"), TextPart("!")
    ]
    (call,) = response.tool_calls
    assert call == ToolCall(None, "f", '{"a": 1}', True, form=ArgsForm.OBJECT, at=call.at)
    assert (response.model, response.id, response.streaming) == ("tiny:1b", None, True)
    assert response.usage == Usage(7, 3)
    (evidence,) = response.stop_reason.evidence
    assert evidence.at is not None
    assert evidence.at.pointer == "/done_reason"
    assert json.loads(data[evidence.at.start : evidence.at.end])["done_reason"] == "stop"
    assert call.at is not None
    assert call.at.pointer == "/message/tool_calls/0"
    assert json.loads(data[call.at.start : call.at.end])["message"]["tool_calls"] == [CALL]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_whole_body(indent: int | None) -> None:
    named = {"id": "call_1", "function": {"index": 0, "name": "f", "arguments": {"a": {"b": [1]}}}}
    data = whole("stop", indent, content="Hi", thinking="hm", tool_calls=[named, CALL])
    response = decode(data)
    assert response.parts[:2] == (ReasoningPart("hm"), TextPart("Hi"))
    assert [(call.id, call.name) for call in response.tool_calls] == [("call_1", "f"), (None, "f")]
    for call in response.tool_calls:
        assert call.arguments is not None
        assert call.arguments.encode() in data
        assert call.closed
    assert json.loads(response.tool_calls[0].arguments or "") == {"a": {"b": [1]}}
    assert not response.streaming
    (evidence,) = response.stop_reason.evidence
    assert evidence.at is not None
    assert data[evidence.at.start : evidence.at.end] == b'"stop"'


def test_one_line_that_is_not_done_is_a_stream() -> None:
    assert decode(lines(line("Hi"))).streaming
    assert not decode(lines(end("stop"))).streaming


@each_row("arguments", ['{"a" : 1.50}', "{}", '{"b":{"c":[1,2]},"a":"\\u00e9€"}', "[1]"])
def test_arguments_are_verbatim(arguments: str) -> None:
    call = '{"function":{"arguments": ' + arguments + ', "name":"f"}}'
    text = '{"model":"m","message":{"content":"","tool_calls":[' + call + ']},"done":true,"done_reason":"stop"}'
    (read,) = decode(text.encode()).tool_calls
    assert (read.arguments, read.form) == (arguments, ArgsForm.OBJECT)


def test_arguments_that_are_absent_or_a_string() -> None:
    absent, string = {"function": {"name": "f"}}, {"function": {"name": "g", "arguments": '{"a": 1'}}
    null = {"function": {"name": "h", "arguments": None}}
    response = decode(lines(line("", tool_calls=[absent, null, string]), end("stop")))
    assert [(c.name, c.arguments, c.form) for c in response.tool_calls] == [
        ("f", None, ArgsForm.OBJECT), ("h", None, ArgsForm.OBJECT), ("g", '{"a": 1', ArgsForm.STRING)
    ]
    assert "ollama_chat.string_arguments" in rules(response)


def test_calls_under_a_budget_cut_arrive_whole() -> None:
    """A cut call is not parsed by the server: what arrives is complete, and the reason holds the batch."""
    response = decode(lines(line("", tool_calls=[CALL]), end("length")))
    assert (response.stop_reason.normalized, response.tool_calls[0].closed) == (Stop.MAX_TOKENS, True)


def test_calls_in_the_last_line() -> None:
    last = {**end("stop"), "message": {"role": "assistant", "tool_calls": [CALL]}}
    assert [call.closed for call in decode(lines(line("Hi"), last)).tool_calls] == [True]


def test_what_follows_the_end() -> None:
    for more in (line("", tool_calls=[CALL]), line("!")):
        response = decode(lines(line("Hi"), end("stop"), more))
        assert "frame.after_end" in rules(response)
        assert not any(call.closed for call in response.tool_calls)


def test_the_word_of_a_later_answer_is_not_about_one_that_ended_without_a_word() -> None:
    """`done` without a reason: the runner was lost (llm/server.go DoneReasonConnectionClosed)."""
    lost = {**line(""), "done": True}
    for more in ((), (line("", tool_calls=[CALL]),), (line(" More."),)):
        response = decode(lines(line("Hi", tool_calls=[CALL]), lost, *more, end("stop")))
        assert (response.stop_reason.normalized, response.raw_stop_reason) == (Stop.INTERRUPTED, None)
        assert (response.text, [call.closed for call in response.tool_calls]) == ("Hi", [False])


@pytest.mark.parametrize(("more", "stop"), [((), Stop.MAX_TOKENS), ((line("!"),), Stop.INTERRUPTED)])
def test_an_end_without_a_word_that_is_sent_again_with_a_cut_was_cut(more: tuple[Any, ...], stop: Stop) -> None:
    response = decode(lines(line("Hi", tool_calls=[CALL]), {**line(""), "done": True}, *more, end("length")))
    assert (response.stop_reason.normalized, response.text) == (stop, "Hi")
    assert ("frame.after_end" in rules(response)) is bool(more)


def test_the_tokens_of_a_later_answer_are_not_those_of_the_first() -> None:
    first, second = ({**end("stop"), "eval_count": count} for count in (3, 900))
    response = decode(lines(line("Hi"), first, line("!"), second))
    assert response.usage is not None
    assert response.usage.output_tokens == 3


def test_a_call_between_texts_is_never_taken_for_text() -> None:
    """Lines of two fields are read fast; one that has a call instead of a role must not be."""
    odd = {**line(None), "message": {"content": "x", "tool_calls": [CALL]}}
    assert len(decode(lines(line("a"), odd, end("stop"))).tool_calls) == 1
    empty = {**line(None), "message": {"role": "assistant", "content": "", "tool_calls": [CALL]}}
    for before in (line("a"), line("", thinking="a")):
        assert len(decode(lines(before, empty, end("stop"))).tool_calls) == 1
    both = decode(lines(line("a"), line("b", thinking="c"), line("", thinking="d"), line("e", thinking="f")))
    assert both.parts == (TextPart("a"), ReasoningPart("c"), TextPart("b"), ReasoningPart("df"), TextPart("e"))


# -- errors and cuts -------------------------------------------------------------------------------------------------


def test_an_error_line() -> None:
    words = "an error was encountered while running the model"
    response = decode(lines(line("Hi", tool_calls=[CALL]), {"error": words}))
    assert response.error == ProviderError(words)
    assert (response.stop_reason.normalized, response.stop_reason.detail) == (Stop.ERROR, "fatal")
    assert (response.text, response.tool_calls[0].closed) == ("Hi", False)


@pytest.mark.parametrize("indent", [None, 2])
def test_http_errors(indent: int | None) -> None:
    missing = decode(json.dumps({"error": "model 'x' not found"}, indent=indent).encode(), http_status=404)
    assert missing.error == ProviderError("model 'x' not found")
    assert not missing.streaming
    busy = decode(b'{"error":"server busy, please try again."}', http_status=503)
    assert (busy.stop_reason.normalized, busy.stop_reason.detail) == (Stop.ERROR, "retryable")
    assert decode(b'{"message":"no access"}', http_status=403).error == ProviderError("no access")
    assert decode(b"<html>502</html>", http_status=502).stop_reason.detail == "retryable"


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_cut_anywhere_a_stream_is_unfinished(ending: str) -> None:
    data = lines(line("é€"), line("", tool_calls=[CALL]), end("stop"), ending=ending)
    for cut in range(1, len(data)):
        response = decode(data[:cut])
        if cut < len(data) - len(ending):
            assert response.stop_reason.normalized is Stop.INTERRUPTED, cut
            assert not any(call.closed for call in response.tool_calls)
        else:
            assert response.stop_reason.normalized is Stop.END_TURN


@pytest.mark.parametrize("indent", [None, 1])
def test_cut_anywhere_a_body_is_unfinished(indent: int | None) -> None:
    data = whole("stop", indent, tool_calls=[CALL])
    for cut in range(1, len(data)):
        response = decode(data[:cut])
        assert response.stop_reason.normalized is Stop.INTERRUPTED
        assert response.tool_calls == ()


@settings(max_examples=60)
@given(st.data())
def test_any_chunking_decodes_alike(data: st.DataObject) -> None:
    said = (line("é€😀"), line("", thinking="hm"), line("", tool_calls=[CALL]), end("stop"))
    stream = data.draw(st.sampled_from([lines(*said), lines(*said, ending="\r\n"), whole("length", 2, content="é"),
                                        "\ufeff".encode() + lines(*said), b"\n\n" + lines(*said)]))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    decoder = Decoder()
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        decoder.feed(stream[start:stop])
    response, expected = decoder.close(), decode(stream)
    assert essence(response) == essence(expected)
    assert (response.stop_reason, response.findings, response.streaming) == (
        expected.stop_reason, expected.findings, expected.streaming)
    assert expected.stop_reason.normalized in (Stop.END_TURN, Stop.MAX_TOKENS)


leaves = st.one_of(st.none(), st.booleans(), st.integers(-2, 20), st.sampled_from(["", "stop", "x"]))
names = st.sampled_from(["model", "created_at", "message", "done", "done_reason", "content", "thinking", "role",
                         "tool_calls", "function", "name", "arguments", "id", "error", "eval_count"])
odd = st.recursive(
    leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=5)),
    max_leaves=20,
)


@settings(max_examples=80)
@given(st.lists(st.dictionaries(names, odd, max_size=6), max_size=4), st.booleans())
def test_odd_shapes_break_nothing(values: list[dict[str, Any]], begun: bool) -> None:
    data = (lines(line("a")) if begun else b"") + b"".join(json.dumps(value).encode() + b"\n" for value in values)
    response = decode(data)
    if not response.saw_stop_reason:
        assert response.stop_reason.normalized in (Stop.INTERRUPTED, Stop.ERROR)
        assert not any(call.closed for call in response.tool_calls)


@given(st.binary(max_size=80))
def test_fuzzed_bytes_raise_only_the_typed_error(data: bytes) -> None:
    for start in (b"", b"{", b'{"message":{"content":', lines(line("a"))):
        try:
            decode(start + data)
        except DecodeError:
            continue


# -- encoding --------------------------------------------------------------------------------------------------------

text = st.text(min_size=1, max_size=30)
word = st.text("abcXYZ019-_", min_size=1, max_size=8)
arguments = st.builds(
    lambda value: json.dumps(value, ensure_ascii=False),
    st.dictionaries(text, st.one_of(st.integers(), text, st.lists(st.booleans(), max_size=2)), max_size=3),
)


@st.composite
def responses(draw: st.DrawFn) -> ChatResponse:
    raw = draw(st.sampled_from([None, "stop", "length", "load", "new", ""]))
    made: list[Any] = []
    for kind in draw(st.lists(st.sampled_from([TextPart, ReasoningPart, ToolCall]), max_size=6)):
        if kind is ToolCall:
            made.append(ToolCall(draw(st.one_of(st.none(), word)), draw(word), draw(st.one_of(st.none(), arguments)),
                                 closed=bool(raw), form=ArgsForm.OBJECT))
        elif not (made and type(made[-1]) is kind):
            made.append(kind(draw(text)))
    row = STOP_REASONS.get(raw or "")
    stop = row.stop if row else Stop.UNKNOWN if raw else Stop.INTERRUPTED
    usage = draw(st.one_of(st.none(), st.builds(Usage, st.integers(0, 99), st.integers(0, 99))))
    return ChatResponse(api="ollama_chat", parts=tuple(made), usage=usage, model=draw(st.one_of(st.none(), word)),
                        stop_reason=StopReason(stop, raw, row.detail if row else None))


@settings(max_examples=80)
@given(responses(), st.booleans(), st.integers(1, 40))
def test_what_is_encoded_is_decoded_again(response: ChatResponse, stream: bool, chunk: int) -> None:
    order = [(ReasoningPart, TextPart, ToolCall).index(type(part)) for part in response.parts]
    if not stream and order != sorted(order):
        with pytest.raises(EncodeError, match="one message holds"):
            list(encode(response))
        return
    data = b"".join(encode(response, stream=stream, chunk=chunk))
    if data:
        assert essence(decode(data), LOSES) == essence(response, LOSES)
    else:
        assert [response.parts, response.usage, response.model] == [(), None, None]


@each_row("data", [
    lines(line("Hi"), end()), lines(line("Hi")), lines(line("Hi"), {"error": "lost"}), b'{"error":"no"}',
    lines(line("Hi"), end("stop"), {"error": "late"}), whole("stop", tool_calls=[{"function": {"name": "f"}}]),
    b'{"error":{"message":"m","code":500,"type":"api_error"}}', lines(line("", tool_calls=[CALL])),
])
def test_odd_ends_survive(data: bytes) -> None:
    response = decode(data)
    for stream in (False, True):
        again = decode(b"".join(encode(response, stream=stream)))
        assert essence(again, LOSES) == essence(response, LOSES)


def closed_call(**fields: Any) -> ToolCall:
    return ToolCall(**{"id": None, "name": "f", "arguments": "{}", "closed": True, **fields})


@each_row(("what", "fields"), [
    ("call.arguments", {"parts": (closed_call(arguments='{"path": "x'),)}),
    ("call.arguments", {"parts": (closed_call(arguments=""),)}),
    ("call.closed", {"parts": (closed_call(closed=False),)}),
    ("call.kind", {"parts": (closed_call(kind=CallKind.CUSTOM),)}),
    ("call.kind", {"parts": (closed_call(kind=CallKind.SERVER),)}),
    ("reasoning.data", {"parts": (ReasoningPart("", data="x"),)}),
    ("reasoning.text", {"parts": (ReasoningPart(""),)}),
    ("opaque", {"parts": (OpaquePart("image", "{}"),)}),
    ("refusal", {"refusal": "I cannot"}),
    ("native.stop_sequence", {"native": {"stop_sequence": "x"}}),
    ("continuation_token", {"continuation_token": "x"}),
    ("stop_reason", {"stop_reason": StopReason(Stop.MAX_TOKENS)}),
])
def test_what_cannot_be_carried_is_refused(what: str, fields: dict[str, Any]) -> None:
    response = ChatResponse(**{"api": "ollama_chat", "stop_reason": StopReason(Stop.END_TURN, "stop"), **fields})
    for stream in (False, True):
        with pytest.raises(EncodeError) as caught:
            list(encode(response, stream=stream))
        assert caught.value.what == what


def test_arguments_over_several_lines_fit_an_object_and_no_line() -> None:
    response = decode(whole("stop", 2, tool_calls=[CALL]))
    assert "\n" in (response.tool_calls[0].arguments or "")
    assert essence(decode(b"".join(encode(response))), LOSES) == essence(response, LOSES)
    with pytest.raises(EncodeError, match="a line break ends the line"):
        list(encode(response, stream=True))


def test_the_stream_has_one_item_a_line() -> None:
    response = decode(whole("stop", content="0123456789", thinking="hm", tool_calls=[CALL]))
    events = list(encode(response, stream=True, chunk=4))
    assert len(events) == 1 + 3 + 1 + 1
    assert all(event.endswith(b"}\n") and event.count(b"\n") == 1 for event in events)


# -- the official SDK ------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("streamed", [False, True])
def test_the_official_sdk_reads_what_is_encoded(streamed: bool) -> None:
    ollama, httpx = pytest.importorskip("ollama"), pytest.importorskip("httpx")
    sent = decode(whole("length", content="Hello é", thinking="hm", tool_calls=[CALL]))
    data = b"".join(encode(sent, stream=streamed, chunk=3))
    transport = httpx.MockTransport(lambda request: httpx.Response(200, content=data))
    client = ollama.Client(host="http://localhost", transport=transport)
    answer = client.chat(model="m", messages=[{"role": "user", "content": "x"}], stream=streamed)
    chunks = list(answer) if streamed else [answer]
    assert "".join(chunk.message.content or "" for chunk in chunks) == "Hello é"
    assert "".join(chunk.message.thinking or "" for chunk in chunks) == "hm"
    assert [(call.function.name, call.function.arguments) for chunk in chunks
            for call in chunk.message.tool_calls or []] == [("f", {"a": 1})]
    last = chunks[-1]
    assert (last.done, last.done_reason, last.prompt_eval_count, last.eval_count) == (True, "length", 7, 3)
    assert last.model == "tiny:1b"


# -- requests --------------------------------------------------------------------------------------------------------

REQUEST = {
    "model": "tiny:1b",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Weather?", "images": ["AA=="]},
        {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": [
            {"id": "c1", "function": {"name": "w", "arguments": {"city": "Paris"}}}]},
        {"role": "tool", "tool_name": "w", "tool_call_id": "c1", "content": "sunny"},
    ],
    "tools": [{"type": "function", "function": {"name": "w", "description": "d", "parameters": {"type": "object"}}}],
    "options": {"num_predict": 64, "num_ctx": 4096},
    "stream": False,
}


def test_read_request() -> None:
    request = read_request(REQUEST)
    assert [message.role for message in request.messages] == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL]
    _, user, assistant, tool = request.messages
    assert user.parts == (TextPart("Weather?"), OpaquePart("image", '"AA=="'))
    assert assistant.parts == (
        ReasoningPart("hm"), ToolCall("c1", "w", '{"city":"Paris"}', True, form=ArgsForm.OBJECT)
    )
    assert [(r.call_id, r.name, r.text, r.is_error) for r in tool.results] == [("c1", "w", "sunny", False)]
    assert [(t.name, t.description, t.schema, t.dialect) for t in request.tools] == [
        ("w", "d", {"type": "object"}, "json_schema")
    ]
    assert (request.model, request.max_tokens, request.stream, request.tool_choice) == ("tiny:1b", 64, False, None)


@each_row(("change", "field", "value"), [
    ({"stream": True}, "stream", True),
    ({"stream": None}, "stream", True),
    ({"options": {"num_predict": -1}}, "max_tokens", None),
    ({"options": {"num_predict": -2}}, "max_tokens", None),
    ({"options": None}, "max_tokens", None),
])
def test_read_request_in_other_words(change: dict[str, Any], field: str, value: Any) -> None:
    assert getattr(read_request({**REQUEST, **change}), field) == value


def test_a_request_that_does_not_say_so_is_streamed() -> None:
    assert read_request({"model": "m"}).stream


@settings(max_examples=80)
@given(st.dictionaries(st.sampled_from(sorted(REQUEST)), st.one_of(odd, st.lists(odd, max_size=2)), max_size=5))
def test_odd_requests_break_nothing(request: dict[str, Any]) -> None:
    assert read_request(request).api == "ollama_chat"


# -- recognition -----------------------------------------------------------------------------------------------------


def test_its_own() -> None:
    for value in (line("x"), end("stop"), end()):
        assert recognises(value)
        assert not recognises(value, "message")


@each_row("value", [{}, {"error": "x"}, {"model": "m", "response": "x", "done": True},
                                   {"message": "x", "done": True}, {"message": {}}, {"choices": [], "done": True}])
def test_strangers(value: dict[str, Any]) -> None:
    assert not recognises(value)


def test_paths() -> None:
    for url in ("http://localhost:11434/api/chat", "/api/chat/", "https://ollama.com/api/chat?x=1"):
        assert PATHS[0].search(url)
    for url in ("/api/generate", "/v1/chat/completions", "/api/chats"):
        assert not PATHS[0].search(url)


# -- recorded traffic ------------------------------------------------------------------------------------------------

MISFILED = frozenset({"prism-17b074390c"})
"""A body of Ollama's OpenAI-compatible endpoint, filed under this API: it holds neither message nor done."""


def test_recorded_traffic(traffic_of: Callable[[str], list[Any]]) -> None:
    exchanges = traffic_of("ollama_chat")
    for exchange in exchanges:
        response = decode(exchange.body, http_status=exchange.status, headers=exchange.headers)
        facts = exchange.expected
        assert response.raw_stop_reason == facts["raw_stop_reasons"][0], exchange.id
        assert response.streaming is (facts["streaming"] or exchange.id in MISFILED), exchange.id
        assert [call.name for call in response.tool_calls] == [fact["name"] for fact in facts["tools"]], exchange.id
        for call, fact in zip(response.tool_calls, facts["tools"], strict=True):
            assert call.arguments is not None
            assert call.closed
            assert call.arguments.encode() in exchange.body
            value = json.loads(call.arguments)
            assert fact["args"] in (json.dumps(value)[:400], json.dumps(value, ensure_ascii=False)[:400]), exchange.id
        if exchange.id in MISFILED:
            assert response.stop_reason.normalized is Stop.INTERRUPTED
        else:
            wanted = Stop.MAX_TOKENS if response.raw_stop_reason == "length" else Stop.END_TURN
            assert response.stop_reason.normalized is wanted, exchange.id
        for stream in (False, True):
            again = decode(b"".join(encode(response, stream=stream)), http_status=exchange.status)
            assert essence(again, LOSES) == essence(response, LOSES), exchange.id
    assert len(exchanges) > 10


def test_recorded_requests(traffic_of: Callable[[str], list[Any]]) -> None:
    for exchange in traffic_of("ollama_chat"):
        request = read_request(exchange.request, exchange.url)
        if exchange.request.get("messages"):
            assert len(request.messages) == len(exchange.request["messages"]), exchange.id
            assert request.stream is exchange.expected["streaming"], exchange.id


def test_places_are_in_the_body() -> None:
    data = "\ufeff".encode() + lines(line("é"), end("length"), ending="\r\n")
    (evidence,) = decode(data).stop_reason.evidence
    begin = data.index(b'{"model"', 10)
    assert evidence.at is not None
    assert (evidence.at.part, evidence.at.start, evidence.at.pointer) == (ExchangePart.BODY, begin, "/done_reason")
    absent = decode(lines(line("Hi"), end())).stop_reason.evidence[0]
    assert isinstance(absent.at, At)
    assert absent.at.pointer == "/done"
