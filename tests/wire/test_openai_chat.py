"""Chat Completions: fixtures written by hand from the provider's documents and the facts about its imitators."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import loop_core
from loop_core.errors import EncodeError
from loop_core.values import (
    ArgsForm,
    At,
    CallKind,
    ChatResponse,
    ExchangePart,
    OpaquePart,
    ReasoningPart,
    Role,
    Severity,
    Stop,
    StopReason,
    TextPart,
    ToolCall,
    Usage,
)
from loop_core.wire.failures import StopRow
from loop_core.wire.openai_chat import Decoder, encode, read_request
from loop_core.wire.openai_chat.calls import CallAssembly
from loop_core.wire.openai_chat.choice import GrowingChoice
from loop_core.wire.openai_chat.table import LOSES, PATHS, recognises
from tests.scenes.essence import essence
from tests.scenes.rows import each_row

API = "openai_chat"


# -- bytes as servers send them --------------------------------------------------------------------------------------


def sse(*events: Any, done: bool = True) -> bytes:
    """An event stream; a str stands as it is."""
    lines = [event if isinstance(event, str) else f"data: {json.dumps(event)}\n\n" for event in events]
    return ("".join(lines) + ("data: [DONE]\n\n" if done else "")).encode()


def chunk(delta: Any = None, finish: Any = None, *, index: Any = 0, **more: Any) -> dict[str, Any]:
    """One chunk with one choice; `more` goes into the choice."""
    choice: dict[str, Any] = {"index": index, "delta": delta, "finish_reason": finish, **more}
    if delta is None:
        del choice["delta"]
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def start(
    name: Any = "f", *, ident: Any = "call_1", index: Any = 0, arguments: Any = "", **more: Any
) -> dict[str, Any]:
    """The first delta of a call; None leaves a field out."""
    function = {"name": name, "arguments": arguments}
    call = {"index": index, "id": ident, "type": "function", **more,
            "function": {key: value for key, value in function.items() if value is not None}}
    return {key: value for key, value in call.items() if value is not None}


def more_of(arguments: Any, *, index: Any = 0, **rest: Any) -> dict[str, Any]:
    """A later delta of a call."""
    call = {"index": index, "function": {"arguments": arguments}, **rest}
    return {key: value for key, value in call.items() if value is not None}


def calls(*deltas: Any) -> dict[str, Any]:
    return chunk({"tool_calls": list(deltas)})


def whole(message: Any, finish: Any = "stop", **more: Any) -> bytes:
    """A whole body; `more` goes beside the choices."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "logprobs": None, "finish_reason": finish}
    return json.dumps({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice],
                       **more}).encode()


def read(data: bytes | Iterable[bytes], **options: Any) -> ChatResponse:
    decoder = Decoder(**options)
    for piece in (data,) if isinstance(data, bytes) else data:
        decoder.feed(piece)
    return decoder.close()


def calls_of(response: ChatResponse) -> list[tuple[str | None, str, str | None]]:
    return [(call.id, call.name, call.arguments) for call in response.tool_calls]


def rules(response: ChatResponse) -> set[str]:
    return {finding.rule.removeprefix(f"{API}.") for finding in response.findings}


def reason(response: ChatResponse) -> tuple[Stop, str | None, str | None]:
    stop = response.stop_reason
    return stop.normalized, stop.detail, stop.raw


CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
USAGE = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}


# -- stop reasons ----------------------------------------------------------------------------------------------------

WORDS = [
    ("stop", Stop.END_TURN),
    ("length", Stop.MAX_TOKENS),
    ("tool_calls", Stop.TOOL_CALL),
    ("function_call", Stop.TOOL_CALL),
    ("content_filter", Stop.SAFETY_BLOCKED),
    # misc_compat of facts/stop_reasons.tsv: aliases, and any case
    ("end", Stop.END_TURN),
    ("max_tokens", Stop.MAX_TOKENS),
    ("max_output_tokens", Stop.MAX_TOKENS),
    ("MAX_TOKENS", Stop.MAX_TOKENS),
    ("STOP", Stop.END_TURN),
    ("Length", Stop.MAX_TOKENS),
    ("Tool_Calls", Stop.TOOL_CALL),
    ("abort", Stop.CANCELLED),  # vLLM and sglang: the request was aborted
]


@each_row(("word", "stop", "detail"), [
    ("guardrail_intervened", Stop.SAFETY_BLOCKED, "guardrail"),
    ("MALFORMED_FUNCTION_CALL", Stop.MALFORMED_TOOL_CALL, None),
    ("model_context_window_exceeded", Stop.CONTEXT_WINDOW_EXCEEDED, None),
    ("refusal", Stop.SAFETY_BLOCKED, "refusal"),
])
def test_words_of_other_formats_that_gateways_pass_on(word: str, stop: Stop, detail: str | None) -> None:
    for data in (whole({"content": "Hi"}, word), sse(chunk({"content": "Hi"}), chunk({}, word))):
        assert reason(read(data)) == (stop, detail, word)


def test_a_failure_under_a_good_status_may_be_tried_again() -> None:
    for data in (whole({"content": "Hi"}, "error"), sse(chunk({"content": "Hi"}), chunk({}, "error"))):
        assert reason(read(data)) == (Stop.ERROR, "retryable: server failure under HTTP 200", "error")


def test_the_word_null_is_no_reason() -> None:
    """KoboldCpp streams the text while there is none yet."""
    stream = sse(chunk({"content": "Hi"}, "null"), chunk({"content": "."}, "null"), chunk({"content": ""}, "stop"))
    response = read(stream)
    assert reason(response) == (Stop.END_TURN, None, "stop")
    assert (response.text, list(response.findings), dict(response.native)) == ("Hi.", [], {})
    broken = read(sse(chunk({"content": "Hi"}, "null")))
    assert (reason(broken), broken.saw_stop_reason) == ((Stop.INTERRUPTED, None, None), False)
    calls = sse(chunk({"tool_calls": [{**CALL, "index": 0}]}, "null"), chunk({}, "tool_calls"))
    assert [call.closed for call in read(calls).tool_calls] == [True]


@each_row(("word", "stop"), WORDS)
def test_stop_words_mean_the_same_whole_and_streamed(word: str, stop: Stop) -> None:
    for data in (whole({"content": "Hi"}, word), sse(chunk({"content": "Hi"}), chunk({}, word))):
        response = read(data)
        assert reason(response) == (stop, None, word)
        assert response.saw_stop_reason
        assert response.text == "Hi"


@each_row(("word", "stop", "detail"), [
    # google-genai 3.4.0 types.py FinishReason, behind the prefixes of the OpenAI-compatible endpoint
    ("function_call_filter: MALFORMED_FUNCTION_CALL", Stop.MALFORMED_TOOL_CALL, None),
    ("function_call_filter: UNEXPECTED_TOOL_CALL", Stop.MALFORMED_TOOL_CALL, "undeclared tool"),
    ("function_call_filter: TOO_MANY_TOOL_CALLS", Stop.ERROR, "fatal: tool loop limit of the provider"),
    ("content_filter: PROHIBITED_CONTENT", Stop.SAFETY_BLOCKED, None),
    ("content_filter: RECITATION", Stop.SAFETY_BLOCKED, "recitation"),
    ("content_filter: LANGUAGE", Stop.ERROR, "fatal: unsupported language"),
    ("Content_Filter:recitation", Stop.SAFETY_BLOCKED, "recitation"),
    # A word that is not known, or would be no filter at all, does not undo what stands before the colon.
    ("function_call_filter: NEWER_THAN_US", Stop.MALFORMED_TOOL_CALL, None),
    ("function_call_filter: STOP", Stop.MALFORMED_TOOL_CALL, None),
    ("content_filter: NEWER_THAN_US", Stop.SAFETY_BLOCKED, None),
    ("content_filter: OTHER", Stop.SAFETY_BLOCKED, None),
    ("content_filter: STOP", Stop.SAFETY_BLOCKED, None),
    ("content_filter:", Stop.SAFETY_BLOCKED, None),
    ("engine_overloaded", Stop.ERROR, "retryable: no engine was free"),
    ("repetition_truncation", Stop.ERROR, "fatal: degenerate, the output repeats itself"),
    # of several servers, and of gateways in front of them
    ("sensitive", Stop.SAFETY_BLOCKED, "sensitive"),
    ("network_error", Stop.ERROR, "retryable: inference broke off, the output is partial"),
    ("insufficient_system_resource", Stop.ERROR, "retryable: no resources left, the output is partial"),
])
def test_words_of_gemini_behind_a_filter_and_of_degenerate_output(word: str, stop: Stop, detail: str | None) -> None:
    for data in (whole({"content": "Hi"}, word), sse(chunk({"content": "Hi"}), chunk({}, word))):
        response = read(data)
        assert reason(response) == (stop, detail, word)
        at = response.stop_reason.evidence[0].at
        assert at is not None
        assert json.dumps(word).encode() in data[at.start : at.end]


def test_a_profiles_own_word_goes_before_what_stands_behind_a_colon() -> None:
    words = {"content_filter: safety": StopRow(Stop.ERROR, "retryable: odd server")}
    data = whole({"content": "Hi"}, "content_filter: SAFETY")
    assert reason(read(data, words=words)) == (Stop.ERROR, "retryable: odd server", "content_filter: SAFETY")


def test_a_refusal_outranks_the_stop_that_comes_with_it() -> None:
    body = whole({"content": None, "refusal": "I can't help."})
    stream = sse(chunk({"role": "assistant", "content": "", "refusal": None}), chunk({"refusal": "I can't"}),
                 chunk({"refusal": " help."}), chunk({}, "stop"))
    for data in (body, stream):
        response = read(data)
        assert reason(response) == (Stop.SAFETY_BLOCKED, "refusal", "stop")
        assert response.refusal == "I can't help."
        seen = [reading.rule for reading in response.stop_reason.evidence]
        assert seen == [f"{API}.stop_reasons", f"{API}.message.refusal"]
    at = read(body).stop_reason.evidence[1].at
    assert at is not None
    assert body[at.start : at.end] == b'"I can\'t help."'


@pytest.mark.parametrize("clean", ["stop", "tool_calls"])
def test_a_clean_word_does_not_undo_the_cut_before_it(clean: str) -> None:
    call = calls(start(arguments='{"a":1}'))
    assert reason(read(sse(call, chunk({}, clean), chunk({}, "length"), chunk({}, clean))))[0] is Stop.MAX_TOKENS
    assert reason(read(whole({"content": None, "refusal": "No."}, clean)))[0] is Stop.SAFETY_BLOCKED


def test_a_refusal_that_is_cut_stays_cut() -> None:
    assert reason(read(whole({"refusal": "I ca"}, "length"))) == (Stop.MAX_TOKENS, None, "length")


@pytest.mark.parametrize("empty", [None, ""])
def test_an_empty_refusal_is_none(empty: str | None) -> None:
    response = read(whole({"content": "Hi", "refusal": empty}))
    assert reason(response) == (Stop.END_TURN, None, "stop")
    assert response.refusal is None


AZURE = {"hate": {"filtered": False, "severity": "safe"}, "violence": {"filtered": True, "severity": "high"}}


def test_content_that_azure_filtered_is_no_clean_end() -> None:
    choice = {"index": 0, "message": {"content": "H"}, "finish_reason": "stop", "content_filter_results": AZURE}
    stream = sse(chunk({"content": "H"}), chunk(None, content_filter_results=AZURE), chunk({}, "stop"))
    for data in (json.dumps({"choices": [choice]}).encode(), stream):
        response = read(data)
        assert reason(response) == (Stop.SAFETY_BLOCKED, "content_filter_results", "stop")
        assert response.native["content_filter_results"] == "violence"
        assert response.stop_reason.evidence[-1].at is not None
        assert (response.stop_reason.evidence[-1].at.pointer or "").endswith("/choices/0/content_filter_results")


@each_row(("lists", "stop"), [
    ([{"id": "a", "filtered": False}, {"id": "b", "filtered": True}], Stop.SAFETY_BLOCKED),
    ([{"id": "a", "filtered": False}], Stop.END_TURN), ([], Stop.END_TURN), (["a", None], Stop.END_TURN),
    ({"filtered": True, "details": [{"id": "b", "filtered": True}]}, Stop.SAFETY_BLOCKED),
])
def test_a_blocklist_of_azure_is_a_filter(lists: Any, stop: Stop) -> None:
    """Older versions of the API send the verdict of each list (@azure/openai ContentFilterBlocklistIdResult)."""
    choice = {"index": 0, "message": {"content": "H"}, "finish_reason": "stop",
              "content_filter_results": {"custom_blocklists": lists}}
    response = read(json.dumps({"choices": [choice]}).encode())
    assert response.stop_reason.normalized is stop
    assert response.native == ({} if stop is Stop.END_TURN else {"content_filter_results": "custom_blocklists"})


def test_what_a_filter_took_is_placed_at_its_own_bytes() -> None:
    choice = {"index": 0, "message": {"content": "H"}, "finish_reason": "stop", "content_filter_results": AZURE}
    data = json.dumps({"choices": [choice]}).encode()
    at = read(data).stop_reason.evidence[-1].at
    assert at is not None
    assert json.loads(data[at.start:at.end]) == AZURE
    failure = {"error": {"code": 502, "message": "upstream died"}}
    data = json.dumps({"choices": [{**choice, **failure, "content_filter_results": {}}]}).encode()
    at = read(data).stop_reason.evidence[-1].at
    assert at is not None
    assert b"upstream died" in data[at.start:at.end]
    data = json.dumps({"choices": [{**choice, "content_filter_results": {}}], **failure}).encode()
    at = read(data).stop_reason.evidence[-1].at
    assert at is not None
    assert (json.loads(data[at.start:at.end]), at.pointer) == (failure["error"], "/error")


def test_a_filter_and_a_refusal_are_told_beside_a_cut() -> None:
    message = {"content": None, "refusal": "I am sorry, but"}
    choice = {"index": 0, "message": message, "finish_reason": "length", "content_filter_results": AZURE}
    data = json.dumps({"choices": [choice]}).encode()
    response = read(data)
    assert reason(response) == (Stop.MAX_TOKENS, None, "length")
    assert {found.rule: found.message for found in response.findings} == {
        "openai_chat.message.refusal": "a part of the answer is a refusal",
        "openai_chat.content_filter_results.filtered": "a filter took something away: violence"}
    assert all(found.severity is Severity.WARNING and found.at is not None for found in response.findings)
    assert read(json.dumps({"choices": [{**choice, "finish_reason": "stop"}]}).encode()).findings == ()


def test_azure_annotations_that_filtered_nothing_change_nothing() -> None:
    safe = {"hate": {"filtered": False, "severity": "safe"}, "jailbreak": {"filtered": False, "detected": True}}
    head = {"choices": [], "object": "", "model": "", "prompt_filter_results":
            [{"prompt_index": 0, "content_filter_results": safe}]}
    offsets = {"index": 0, "finish_reason": None, "content_filter_offsets": {"check_offset": 4},
               "content_filter_results": {"hate": {"filtered": False}}}
    response = read(sse(head, chunk({"content": "Hi"}, content_filter_results=safe), {**chunk(), "choices": [offsets]},
                        chunk({}, "stop", content_filter_results={})))
    assert reason(response) == (Stop.END_TURN, None, "stop")
    assert response.text == "Hi"
    assert response.findings == ()


def test_a_prompt_that_azure_filtered_is_told() -> None:
    head = {"choices": [], "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": AZURE}]}
    response = read(sse(head, chunk({}, "stop")))
    assert response.native["prompt_filter_results"] == "violence"
    assert rules(response) == {"prompt_filtered"}


@each_row("word", ["eos", "model_length", "5", "tool_use", "stop: STOP", "stop:"])
def test_a_word_that_is_in_no_row_is_unknown(word: str) -> None:
    assert reason(read(whole({"content": "Hi"}, word))) == (Stop.UNKNOWN, None, word)


def test_a_reason_that_is_no_text_is_unknown() -> None:
    assert reason(read(whole({"content": "Hi"}, 5))) == (Stop.UNKNOWN, None, "5")
    assert reason(read(sse(chunk({}, {"type": "stop"})))) == (Stop.UNKNOWN, None, '{"type": "stop"}')


def test_words_of_a_profile_go_first() -> None:
    words = {"eos": StopRow(Stop.END_TURN), "stop": StopRow(Stop.ERROR, "retryable: odd server")}
    assert reason(read(whole({"content": "Hi"}, "EOS"), words=words)) == (Stop.END_TURN, None, "EOS")
    assert reason(read(whole({"content": "Hi"}, "stop"), words=words)) == (Stop.ERROR, "retryable: odd server", "stop")


@each_row(("finish", "raw"), [(None, None), ("", "")])
@each_row("done", [True, False])
def test_without_a_reason_nothing_is_finished(finish: str | None, raw: str | None, done: bool) -> None:
    stream = sse(calls(start(arguments='{"a":1}')), chunk({"content": "Hi"}, finish), done=done)
    for data in (stream, whole({"content": "Hi", "tool_calls": [CALL]}, finish)):
        response = read(data)
        assert reason(response) == (Stop.INTERRUPTED, None, raw)
        assert not response.saw_stop_reason
        assert [call.closed for call in response.tool_calls] == [False]
    assert read(stream).saw_done is done


@each_row(("indices", "first"), [((1, 0, 2), "b"), ((0, 0, 0), "a"), ((None, None, None), "a"), ((1, 0, None), "a")])
def test_the_choices_of_a_body_are_told_apart_by_their_indices(indices: tuple[int | None, ...], first: str) -> None:
    """TGI lists the choices of several prompts in the order in which they ended; other servers leave the index out, or
    give each choice the same one."""
    choices = [{"index": index, "message": {"content": text}, "finish_reason": "length" if text == "b" else "stop"}
               for index, text in zip(indices, "abc", strict=True)]
    response = read(json.dumps({"choices": choices}).encode(), n=3)
    assert (response.text, response.other_choices) == (first, 2)
    place = "/choices/1/finish_reason" if first == "b" else "/choices/0/finish_reason"
    assert [each.at.pointer for each in response.stop_reason.evidence] == [place]


def test_a_body_without_choices_is_interrupted() -> None:
    for data in (b'{"contentType": "application/json", "method": "POST"}', b'{"choices": null}', b""):
        assert reason(read(data)) == (Stop.INTERRUPTED, None, None)


def test_a_body_that_is_cut_is_interrupted_and_its_calls_stay_unread() -> None:
    data = whole({"content": "Hi", "tool_calls": [CALL]}, "stop")
    for end in range(1, len(data)):
        response = read(data[:end])
        assert response.stop_reason.normalized is Stop.INTERRUPTED
        assert response.tool_calls == ()


def test_the_stream_of_seed_001_is_interrupted() -> None:
    """MiMo: max_tokens 100, 45 of them thought, the last chunk has `choices: []` and no finish reason ever came."""
    usage = {"prompt_tokens": 309, "completion_tokens": 100, "total_tokens": 409,
             "completion_tokens_details": {"reasoning_tokens": 45}}
    head = {key: value for key, value in chunk().items() if key != "choices"}
    data = sse(
        chunk({"role": "assistant", "content": "", "reasoning_content": None}),
        chunk({"content": None, "reasoning_content": "I should write the file."}),
        calls(start("write_to_file", arguments="")),
        calls(more_of('{"path": "test.txt", "con')),
        calls(more_of('tent": "Lorem ipsum dolor sit')),
        {**head, "choices": [], "usage": usage},
    )
    response = read(data)
    assert reason(response) == (Stop.INTERRUPTED, None, None)
    assert calls_of(response) == [("call_1", "write_to_file", '{"path": "test.txt", "content": "Lorem ipsum dolor sit')]
    assert [call.closed for call in response.tool_calls] == [False]
    assert response.usage == Usage(309, 100, 45, None)
    assert response.usage is not None
    assert response.usage.visible_tokens == 55
    assert response.saw_done
    assert not response.saw_stop_reason
    assert rules(response) == {"empty_end"}
    assert response.reasoning_content == "I should write the file."


def test_the_last_reason_that_is_not_null_counts() -> None:
    response = read(sse(chunk({"content": "Hi"}), chunk({}, "stop"), chunk({}, None), chunk({}, ""), chunk({}, "stop")))
    assert reason(response) == (Stop.END_TURN, None, "stop")
    assert response.findings == ()
    assert reason(read(sse(chunk({}, "stop"), chunk({}, "tool_calls"))))[::2] == (Stop.TOOL_CALL, "tool_calls")


def test_a_clean_word_after_a_cut_does_not_undo_it() -> None:
    response = read(sse(chunk({"content": "Hi"}), chunk({}, "length"), chunk({}, "stop")))
    assert reason(response) == (Stop.MAX_TOKENS, None, "stop")
    assert [seen.note for seen in response.stop_reason.evidence] == ["stop", "length"]
    assert rules(response) == {"stop_reason_changes"}


def test_the_place_of_the_reason_is_kept() -> None:
    data = whole({"content": "stop"}, "stop")
    at = read(data).stop_reason.evidence[0].at
    assert at is not None
    assert (data[at.start : at.end], at.pointer, at.part) == (b'"stop"', "/choices/0/finish_reason", ExchangePart.BODY)
    last = sse(chunk({}, "stop"), done=False)
    data = sse(chunk({"content": "stop"}), done=False) + last
    at = read(data).stop_reason.evidence[0].at
    assert at is not None
    assert data[at.start : at.end] == last.rstrip(b"\n")
    assert at.pointer == "/choices/0/finish_reason"


# -- tool calls ------------------------------------------------------------------------------------------------------


def test_the_calls_of_the_documents() -> None:
    second = {**CALL, "id": "call_2", "function": {"name": "g", "arguments": ""}}
    message = {"content": None, "tool_calls": [CALL, second]}
    stream = sse(
        chunk({"role": "assistant", "content": None}),
        calls(start()), calls(more_of('{"a"')), calls(more_of(":1}")),
        calls(start("g", ident="call_2", index=1)),
        chunk({}, "tool_calls"),
        {**chunk(), "choices": [], "usage": USAGE},
    )
    for data in (whole(message, "tool_calls", usage=USAGE), stream):
        response = read(data)
        assert reason(response) == (Stop.TOOL_CALL, None, "tool_calls")
        assert calls_of(response) == [("call_1", "f", '{"a":1}'), ("call_2", "g", "")]
        assert all(call.closed and call.form is ArgsForm.STRING for call in response.tool_calls)
        assert response.usage == Usage(5, 7)
        assert (response.id, response.model, response.text) == ("chatcmpl-1", "m", None)
        assert response.findings == ()
        assert all(call.at is not None for call in response.tool_calls)


def test_a_call_cut_by_the_budget_keeps_its_prefix() -> None:
    cut = {**CALL, "function": {"name": "f", "arguments": '{"path":"a.txt","content":"hel'}}
    stream = sse(calls(start()), calls(more_of('{"path":"a.txt","con')), calls(more_of('tent":"hel')),
                 chunk({}, "length"))
    for data in (whole({"tool_calls": [cut]}, "length"), stream):
        response = read(data)
        assert reason(response) == (Stop.MAX_TOKENS, None, "length")
        assert calls_of(response) == [("call_1", "f", '{"path":"a.txt","content":"hel')]


def test_a_router_that_says_tool_calls_over_a_cut_call_is_quoted() -> None:
    delta = chunk({"content": ""}, "tool_calls", native_finish_reason="max_output_tokens")
    response = read(sse(calls(start(arguments='{"a"')), delta, {**delta, "usage": USAGE}))
    assert reason(response) == (Stop.TOOL_CALL, None, "tool_calls")
    assert response.native == {"native_finish_reason": "max_output_tokens"}
    assert calls_of(response) == [("call_1", "f", '{"a"')]


def test_absent_arguments_are_not_empty_ones() -> None:
    bare = {"id": "call_1", "type": "function", "function": {"name": "f"}}
    stream = sse(calls({"index": 0, **bare}), chunk({}, "tool_calls"))
    for data in (whole({"tool_calls": [bare]}, "tool_calls"), stream):
        assert calls_of(read(data)) == [("call_1", "f", None)]


A, B = '{"a":1}', '{"b":2}'

QUIRKS: list[tuple[str, list[Any], list[tuple[str | None, str, str | None]], set[str]]] = [
    ("index missing, ids (Gemini's compatible endpoint, Mistral)",
     [calls(start("f", ident="x", index=None, arguments=A), start("g", ident="y", index=None, arguments=B))],
     [("x", "f", A), ("y", "g", B)], {"index_missing"}),
    ("index missing, pieces without id go on with the last call",
     [calls(start("f", ident="x", index=None)), calls(more_of('{"a"', index=None)), calls(more_of(":1}", index=None))],
     [("x", "f", A)], {"index_missing"}),
    ("index missing, pieces go on with the call of their id",
     [calls(start("f", ident="x", index=None, arguments='{"a"'), start("g", ident="y", index=None, arguments='{"b"')),
      calls(more_of(":1}", index=None, id="x")), calls(more_of(":2}", index=None, id="y"))],
     [("x", "f", A), ("y", "g", B)], {"index_missing"}),
    ("index missing, one id for two calls",
     [calls(start("f", ident="x", index=None, arguments=A)), calls(start("g", ident="x", index=None, arguments=B))],
     [("x", "f", A), ("x", "g", B)], {"index_missing", "id_repeated"}),
    ("index and id missing, a name opens a call",
     [calls(start("f", ident="", index=None, arguments=A)), calls(start("g", ident="", index=None, arguments=B))],
     [(None, "f", A), (None, "g", B)], {"index_missing", "id_missing"}),
    ("index and id missing, the same function twice",
     [calls(start("f", ident=None, index=None, arguments=A)), calls(start("f", ident=None, index=None, arguments=B))],
     [(None, "f", A), (None, "f", B)], {"index_missing", "id_missing"}),
    ("index missing, the name is repeated with every piece",
     [calls(start("f", ident=None, index=None, arguments='{"a"')),
      calls(start("f", ident=None, index=None, arguments=":1}"))],
     [(None, "f", A)], {"index_missing", "id_missing"}),
    ("index 0 for all (Ollama)",
     [calls(start("f", ident="x", arguments=A)), calls(start("g", ident="y", arguments=B))],
     [("x", "f", A), ("y", "g", B)], {"index_shared"}),
    ("index 0 for two calls of one function",
     [calls(start("f", ident="x", arguments=A)), calls(start("f", ident="y", arguments=B))],
     [("x", "f", A), ("y", "f", B)], {"index_shared"}),
    ("index 0 for all, streamed (dynamo)",
     [calls(start("f", ident="x")), calls(more_of(A)), calls(start("f", ident="y")), calls(more_of(B))],
     [("x", "f", A), ("y", "f", B)], {"index_shared"}),
    ("later deltas of another index, without id (Nebius, Cerebras)",
     [calls(start("f", ident="x")), calls(more_of('{"a"', index=1)), calls(more_of(":1}", index=1))],
     [("x", "f", A)], {"index_changes"}),
    ("a delta of an unknown index beside several calls belongs to none",
     [calls(start("f", ident="x", arguments='{"a"')), calls(start("g", ident="y", index=1, arguments='{"b"')),
      calls(more_of(":1}", index=7))],
     [("x", "f", '{"a"'), ("y", "g", '{"b"'), (None, "", ":1}")], {"orphan_delta", "id_missing"}),
    ("a delta of an unknown index beside a complete call belongs to none",
     [calls(start("f", ident="x", arguments=A)), calls(more_of('{"b"', index=1))],
     [("x", "f", A), (None, "", '{"b"')], {"orphan_delta", "id_missing"}),
    ("another index with the id of a call",
     [calls(start("f", ident="x")), calls(more_of(A, index=3, id="x"))],
     [("x", "f", A)], {"index_changes"}),
    ("a fresh id with every delta, the name empty (OCI)",
     [calls(start("f", ident="x")), calls(start("", ident="y", arguments='{"a"')),
      calls(start("", ident="z", arguments=":1}"))],
     [("x", "f", A)], {"id_changes"}),
    ("a fresh id with every delta, the name repeated (LM Studio)",
     [calls(start("f", ident="x")), calls(start("f", ident="y", arguments='{"a"')),
      calls(start("f", ident="z", arguments=":1}")), calls(start("f", ident="q"))],
     [("x", "f", A)], {"id_changes"}),
    ("an id that is empty (TGI)",
     [calls(start("f", ident="", arguments="")), calls(more_of('{"a"', id="")), calls(more_of(":1}", id=""))],
     [(None, "f", A)], {"id_missing"}),
    ("an id that comes late",
     [calls(start("f", ident=None)), calls(more_of(A, id="x"))],
     [("x", "f", A)], set()),
    ("tool_calls is an object (TGI)",
     [chunk({"tool_calls": start("f", ident="x")}), chunk({"tool_calls": more_of(A)})],
     [("x", "f", A)], {"tool_calls_object"}),
    ("an empty delta at the end is nothing (vLLM)",
     [calls(start("f", ident="x", arguments=A)), calls(more_of("")), calls(start("f", ident="x"))],
     [("x", "f", A)], set()),
    ("a whole call sent again is one call",
     [calls(start("f", ident="x", arguments=A)), calls(start("f", ident="x", arguments=A))],
     [("x", "f", A)], {"call_repeated"}),
    ("id and name with every delta",
     [calls(start("f", ident="x")), calls(start("f", ident="x", arguments='{"a"')),
      calls(start("f", ident="x", arguments=":1}"))],
     [("x", "f", A)], set()),
    ("a name in pieces",
     [calls(start("get_", ident="x")), calls(start("weather", ident=None)), calls(more_of(A))],
     [("x", "get_weather", A)], set()),
    ("the call only in a final message",
     [chunk({"content": "Hi"}), chunk(None, message={"content": "Hi", "tool_calls": [{**CALL, "id": "x"}]})],
     [("x", "f", A)], {"message_in_stream", "index_missing"}),
    ("streamed, and whole again in a final message",
     [calls(start("f", ident="x")), calls(more_of(A)), chunk(None, message={"tool_calls": [{**CALL, "id": "x"}]})],
     [("x", "f", A)], {"message_in_stream", "index_missing", "call_repeated"}),
    ("streamed, and cut at the same place in a final message (MiniMax)",
     [calls(start("f", ident="x"), start("g", ident="y", index=1)), calls(more_of('{"a"'), more_of(A, index=1)),
      chunk(None, message={"tool_calls": [{"id": "x", "function": {"name": "f", "arguments": '{"a"'}},
                                          {"id": "z", "function": {"name": "f", "arguments": '{"a"'}}, None]})],
     [("x", "f", '{"a"'), ("y", "g", A), ("z", "f", '{"a"')], {"message_in_stream", "index_missing"}),
    ("one id for two calls",
     [calls(start("f", ident="x", arguments=A)), calls(start("g", ident="x", index=1, arguments=B))],
     [("x", "f", A), ("x", "g", B)], {"id_repeated"}),
    ("an object that stands for nothing yet, then a string",
     [calls(start("f", ident="x", arguments={})), calls(more_of('{"a"')), calls(more_of(":1}"))],
     [("x", "f", A)], {"arguments_object"}),
    ("the deprecated function_call",
     [chunk({"function_call": {"name": "f", "arguments": ""}}), chunk({"function_call": {"arguments": '{"a"'}}),
      chunk({"function_call": {"arguments": ":1}"}})],
     [(None, "f", A)], set()),  # this format has no ids
    ("the deprecated function_call beside a call without an id",
     [chunk({"function_call": {"name": "f", "arguments": A}}), calls(start("g", ident=None, arguments=B))],
     [(None, "f", A), (None, "g", B)], {"id_missing"}),
    ("the finish reason in the chunk of the last piece (vllm-ascend)",
     [calls(start("f", ident="x")), chunk({"tool_calls": [more_of(A)]}, "tool_calls")],
     [("x", "f", A)], set()),
]


@each_row(("events", "expected", "found"), [row[1:] for row in QUIRKS])
def test_servers_that_count_calls_their_own_way(
    events: list[Any], expected: list[tuple[str | None, str, str | None]], found: set[str]
) -> None:
    response = read(sse(*events, chunk({}, "tool_calls")))
    assert calls_of(response) == expected
    assert rules(response) == found
    # pieces that belong to no call are never a whole one
    assert all(call.closed == bool(call.id or call.name) for call in response.tool_calls)


def test_interleaved_calls_stay_apart() -> None:
    response = read(sse(calls(start("f", ident="x"), start("g", ident="y", index=1)), calls(more_of('{"b"', index=1)),
                        calls(more_of('{"a"'), more_of(":2}", index=1)), calls(more_of(":1}")),
                        chunk({}, "tool_calls")))
    assert calls_of(response) == [("x", "f", A), ("y", "g", B)]
    assert response.findings == ()


def test_arguments_sent_as_an_object_keep_their_characters() -> None:
    text = '{"id": 12345678901234567890, "x": 1.50, "s": "\\u00e9\\/"}'
    call = '{"index":0,"id":"x","function":{"name":"f","arguments":' + text + "}}"
    body = '{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"tool_calls":[' + call + "]}}]}"
    stream = 'data: {"choices":[{"index":0,"delta":{"tool_calls":[' + call + "]}}]}\n\n"
    for data in (body.encode(), sse(stream, chunk({}, "tool_calls"))):
        response = read(data)
        seen = [(call.arguments, call.form, call.closed) for call in response.tool_calls]
        assert seen == [(text, ArgsForm.OBJECT, True)]
        assert rules(response) == {"arguments_object"}


def test_custom_tools_are_text() -> None:
    message = {"tool_calls": [{"id": "x", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}]}
    stream = sse(calls({"index": 0, "id": "x", "type": "custom", "custom": {"name": "sql", "input": ""}}),
                 calls({"index": 0, "custom": {"input": "select"}}), calls({"index": 0, "custom": {"input": " 1"}}),
                 chunk({}, "tool_calls"))
    for data in (whole(message, "tool_calls"), stream):
        (call,) = read(data).tool_calls
        assert (call.kind, call.id, call.name, call.arguments) == (CallKind.CUSTOM, "x", "sql", "select 1")


def test_fields_that_a_server_fills_with_nothing_are_no_calls() -> None:
    """Snowflake fills every field of its structures."""
    phantom = {"content": "4", "refusal": "", "audio": {"id": "", "data": "", "transcript": "", "expires_at": 0},
               "function_call": {"name": "", "arguments": ""}, "annotations": None}
    response = read(whole({**phantom, "tool_calls": None}))
    assert response.parts == (TextPart("4"),)
    assert rules(response) == {"phantom_call"}
    both = {**CALL, "custom": {"name": "", "input": ""}}
    assert calls_of(read(whole({**phantom, "tool_calls": [both]}, "tool_calls"))) == [("call_1", "f", A)]


@each_row("pieces", [['{"a"', ":1}"], ['{"a"'], [""], ['{"a":1}']])
def test_a_call_in_both_fields_is_one_call(pieces: list[str]) -> None:
    """llama-cpp-python sends it so where the request names the tool (llama_chat_format.py): it must not run twice."""
    text = "".join(pieces)
    message = {"function_call": {"name": "f", "arguments": text}, "tool_calls": [start("f", ident="x", arguments=text)]}
    stream = [chunk({"function_call": {"name": "f", "arguments": piece},
                     "tool_calls": [start("f", ident="x", arguments=piece)]}) for piece in pieces]
    for data in (whole(message, "tool_calls"), sse(*stream, chunk({}, "tool_calls"))):
        response = read(data)
        assert calls_of(response) == [("x", "f", text)]
        assert rules(response) == {"call_repeated"}
    other = {**message, "function_call": {"name": "f", "arguments": B}}
    assert calls_of(read(whole(other, "tool_calls"))) == [(None, "f", B), ("x", "f", text)]


@each_row(("deprecated", "admissions"), [
    ({"name": "f", "arguments": '{ "a": 1 }'}, ["ready"]), ({"name": "f", "arguments": '{"a":2}'}, ["held", "held"]),
    ({"name": "g", "arguments": '{"a":2}'}, ["ready", "ready"]),
])
def test_a_call_in_both_fields_with_other_arguments_is_held(deprecated: Any, admissions: list[str]) -> None:
    """Nothing shows which text is meant; both ran."""
    message = {"function_call": deprecated, "tool_calls": [start("f", ident="x", arguments='{"a":1}')]}
    for data in (whole(message, "tool_calls"), sse(chunk(message), chunk({}, "tool_calls"))):
        assert [each.admission for each in loop_core.read(API, data).calls] == admissions


def test_a_piece_that_belongs_to_no_call_holds_all_of_them() -> None:
    """Without the piece the arguments of another call may parse, with a hole in them."""
    first = [calls(start("f", ident="x", arguments='{"a":"1')), calls(start("g", ident="y", index=1, arguments="{}"))]
    events = [*first, calls(more_of("23", index=7)), calls(more_of('4"}')), chunk({}, "tool_calls")]
    found = loop_core.read("openai_chat", sse(*events))
    assert [call.arguments for call in found.response.tool_calls] == ['{"a":"14"}', "{}", "23"]
    assert {each.admission for each in found.calls} == {"held"}
    assert found.stop_reason == "malformed_tool_call"
    whole = [*first, calls(more_of('"}')), chunk({}, "tool_calls")]
    assert loop_core.read("openai_chat", sse(*whole)).stop_reason == "tool_call"


def test_a_call_that_is_named_by_its_second_delta_is_whole() -> None:
    events = [calls({"index": 0, "type": "function", "function": {"arguments": ""}}), calls(start("f", arguments=A)),
              chunk({}, "tool_calls")]
    assert [call.closed for call in read(sse(*events)).tool_calls] == [True]


def test_what_comes_after_the_reason_is_not_covered_by_it() -> None:
    response = read(sse(calls(start(arguments='{"a"')), chunk({}, "tool_calls"), calls(more_of(":1}"))))
    assert [(call.arguments, call.closed) for call in response.tool_calls] == [(A, False)]
    assert rules(response) == {"after_stop"}
    response = read(sse(chunk({"content": "Hi"}), chunk({}, "tool_calls"), calls(start(arguments=A))))
    assert [call.closed for call in response.tool_calls] == [False]
    response = read(sse(calls(more_of(A)), chunk({}, "tool_calls"), calls(start(arguments=""))))
    assert [(call.name, call.closed) for call in response.tool_calls] == [("f", False)]
    response = read(sse(calls(start(arguments=A)), chunk({}, "tool_calls"), calls(start(arguments=""))))
    assert [(call.name, call.closed) for call in response.tool_calls] == [("f", True)]
    response = read(sse(calls(start(arguments='{"a"')), chunk({}, "stop"), calls(more_of(":1}")), chunk({}, "stop")))
    assert [call.closed for call in response.tool_calls] == [True]


@pytest.mark.parametrize("more", [{"content": " more"}, {"role": "assistant", "content": " more"}])
def test_an_answer_that_goes_on_after_its_reason_and_has_no_end_was_cut(more: dict[str, Any]) -> None:
    events = [chunk({"content": "Hi"}), chunk({}, "stop"), chunk(more)]
    cut = read(sse(*events, done=False))
    assert (cut.stop_reason.normalized, cut.raw_stop_reason, cut.text) == (Stop.INTERRUPTED, "stop", "Hi more")
    for ended in (sse(*events), sse(*events, chunk({}, "stop"), done=False)):
        assert read(ended).stop_reason.normalized is Stop.END_TURN
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    assert read(sse(*events, usage, done=False)).stop_reason.normalized is Stop.END_TURN
    assert read(sse(*events, usage, chunk(more), done=False)).stop_reason.normalized is Stop.INTERRUPTED
    capped = read(sse(events[0], chunk({}, "length"), chunk(more), done=False))
    assert capped.stop_reason.normalized is Stop.MAX_TOKENS


@pytest.mark.parametrize(("said", "word", "stop"), [
    ({"content": "Hi"}, "stop", Stop.END_TURN), ({"tool_calls": [start(arguments=A)]}, "tool_calls", Stop.TOOL_CALL),
])
def test_white_space_after_the_reason_is_nothing_that_was_still_to_come(
    said: dict[str, Any], word: str, stop: Stop
) -> None:
    found = read(sse(chunk(said), chunk({}, word), chunk({"content": " \n"}), done=False))
    assert (found.stop_reason.normalized, rules(found)) == (stop, set())


def test_the_signature_of_gemini_goes_with_its_call() -> None:
    extra = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
    for data in (whole({"tool_calls": [{**CALL, **extra}]}, "tool_calls"),
                 sse(calls(start(arguments=A, **extra)), chunk({}, "tool_calls"))):
        assert [call.signature for call in read(data).tool_calls] == ["c2ln"]


# -- text, thinking, blocks ------------------------------------------------------------------------------------------


@each_row(("content", "text"), [
    ("Hi", "Hi"), ("", None), (None, None), ([], None),
    ([{"type": "text", "text": "H"}, {"type": "text", "text": "i"}], "Hi"),
    (["H", {"type": "text", "text": "i"}], "Hi"),
    ({"type": "text", "text": "Hi"}, "Hi"),
])
def test_content_in_every_form(content: Any, text: str | None) -> None:
    assert read(whole({"content": content})).text == text
    assert read(sse(chunk({"content": content}), chunk({}, "stop"))).text == text


def test_thinking_inside_the_content() -> None:
    """Mistral's thinking parts."""
    def thought(text: str) -> dict[str, Any]:
        return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}

    body = whole({"content": [thought("Hmm."), {"type": "text", "text": "4"}]})
    stream = sse(chunk({"content": [thought("Hm")]}),
                 chunk({"content": [thought("m."), {"type": "text", "text": "4"}]}), chunk({}, "stop"))
    for data in (body, stream):
        assert read(data).parts == (ReasoningPart("Hmm."), TextPart("4"))


def test_thinking_inside_the_content_as_a_summary() -> None:
    """Databricks' reasoning parts."""
    def thought(text: str) -> dict[str, Any]:
        return {"type": "reasoning", "summary": [{"type": "summary_text", "text": text, "signature": "c2ln"}]}

    body = whole({"content": [thought("Hmm."), {"type": "text", "text": "4"}]})
    stream = sse(chunk({"content": [thought("Hm")]}), chunk({"content": [thought("m.")]}), chunk({"content": "4"}),
                 chunk({}, "stop"))
    for data in (body, stream):
        assert read(data).parts == (ReasoningPart("Hmm."), TextPart("4"))


@each_row("field", ["reasoning_content", "reasoning", "reasoning_text", "thinking", "cot_summary"])
def test_thinking_in_every_field(field: str) -> None:
    body = whole({"content": "4", field: "Hmm."})
    stream = sse(chunk({"role": "assistant", "content": "", field: None}), chunk({field: "Hm"}),
                 chunk({"content": None, field: "m."}), chunk({"content": "4"}), chunk({}, "stop"))
    for data in (body, stream):
        assert read(data).parts == (ReasoningPart("Hmm."), TextPart("4"))


def test_thinking_that_is_sent_twice_is_read_once() -> None:
    twice = {"reasoning_content": "Hm", "reasoning": "Hm"}
    response = read(sse(chunk(twice), chunk(twice), chunk({}, "stop")))
    assert response.parts == (ReasoningPart("HmHm"),)
    assert rules(response) == {"reasoning_twice"}
    assert response.findings[0].severity is Severity.INFO


def test_the_blocks_of_a_router_keep_what_must_go_back() -> None:
    def reasoning(text: str, **more: Any) -> dict[str, Any]:
        detail = {"type": "reasoning.text", "text": text, "index": 0, "format": "anthropic-claude-v1", **more}
        return {"role": "assistant", "content": "", "reasoning": text, "reasoning_details": [detail]}

    sealed = {"type": "reasoning.encrypted", "data": "ZW5j", "id": "rs_1", "index": 1}
    signature = {"type": "reasoning.text", "signature": "c2ln", "index": 0}
    stream = sse(chunk(reasoning("Hm")), chunk(reasoning("m")), chunk(reasoning(".")),
                 chunk({"reasoning_details": [signature]}),
                 chunk({"reasoning_details": [sealed]}), chunk({"content": "4"}), chunk({}, "stop"))
    body = whole({"content": "4", "reasoning": "Hmm.", "reasoning_details":
                  [{**reasoning("Hmm.")["reasoning_details"][0], "signature": "c2ln"}, sealed]})
    for data in (stream, body):
        sealed_part = ReasoningPart("", None, "ZW5j", "rs_1")
        assert read(data).parts == (ReasoningPart("Hmm.", "c2ln"), sealed_part, TextPart("4"))
        assert read(data).findings == ()


def test_the_blocks_of_litellm_are_the_thinking_beside_them() -> None:
    def piece(text: str, signature: str | None = None) -> dict[str, Any]:
        return {"reasoning_content": text, "thinking_blocks": [
            {"type": "thinking", "thinking": text, "signature": signature}]}

    stream = sse(chunk(piece("Hm")), chunk(piece("m.")), chunk(piece("", "c2ln")), chunk({"content": "4"}),
                 chunk({}, "stop"))
    for data in (stream, whole({"content": "4", **piece("Hmm.", "c2ln")})):
        assert read(data).parts == (ReasoningPart("Hmm.", "c2ln"), TextPart("4"))
        assert read(data).findings == ()


@pytest.mark.parametrize("field", ["reasoning_opaque", "cot_id"])
def test_a_sealed_field_of_copilot_is_no_unread_part(field: str) -> None:
    assert read(whole({"content": "4", field: "c2VhbGVk"})).findings == ()
    assert rules(read(whole({"content": "4", "reasoning_seal": "c2VhbGVk"}))) == {"unknown_field"}


def test_a_summary_and_its_sealed_text_of_one_index_are_one_block() -> None:
    details = [{"type": "reasoning.summary", "summary": "Hmm.", "index": 0, "id": "rs_1"},
               {"type": "reasoning.encrypted", "data": "ZW5j", "index": 0, "id": "rs_1"}]
    response = read(whole({"content": "4", "reasoning_details": details}))
    assert response.parts[0] == ReasoningPart("Hmm.", None, "ZW5j", "rs_1")


def test_blocks_that_are_not_interpreted_stay_verbatim() -> None:
    cite = '{"type": "url_citation", "url_citation": {"url": "https://example.org", "n": 1.0}}'
    image = '{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}'
    message = '{"content":[' + image + '],"annotations":[' + cite + "]}"
    body = '{"choices":[{"index":0,"finish_reason":"stop","message":' + message + "}]}"
    stream = 'data: {"choices":[{"index":0,"delta":' + message + "}]}\n\n"
    expected = {OpaquePart("content.image_url", image), OpaquePart("message.annotations", cite)}
    for data in (body.encode(), sse(stream, chunk({}, "stop"))):
        assert set(read(data).parts) == expected


@each_row(("field", "value", "kept"), [
    ("audio", {"id": "a", "data": "AA=="}, ['{"id": "a", "data": "AA=="}']),
    ("images", [{"type": "image_url"}], ['{"type": "image_url"}']),
    ("executed_tools", [{"type": "search", "index": 0}, 5], ['{"type": "search", "index": 0}', "5"]),
    ("audio", None, []),
    ("annotations", [], []),
])
def test_fields_of_a_message_that_are_kept(field: str, value: Any, kept: list[str]) -> None:
    message = {"content": "Hi", field: value}
    for data in (whole(message), sse(chunk(message), chunk({}, "stop"))):
        assert read(data).parts == (TextPart("Hi"), *(OpaquePart(f"message.{field}", text) for text in kept))


def test_a_character_that_is_split_over_two_chunks_becomes_whole() -> None:
    event = 'data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n'
    response = read(sse(event % "\\ud83d", event % "\\ude00", chunk({}, "stop")))
    assert response.text == "\U0001f600"
    response = read(sse(event % "\\ud83d", event % "!", chunk({}, "stop")))
    assert response.text == "\ufffd!"
    assert rules(response) == {"frame.lenient"}


@each_row("word", ["ping", "[HEARTBEAT]", "keep-alive", "[KEEP ALIVE]"])
def test_a_word_between_the_events_loses_nothing(word: str) -> None:
    response = read(sse(chunk({"content": "Hel"}), f"data: {word}\n\n", chunk({"content": "lo"}), chunk({}, "stop")))
    assert (response.text, rules(response)) == ("Hello", {"frame.no_json"})


@each_row("broken", ['{"choices":[{"index":0', '[{"choices":', '["a', "[[1, 2", '"content":', "0}}]"])
def test_a_frame_that_was_meant_to_be_json_is_lost(broken: str) -> None:
    response = read(sse(chunk({"content": "Hel"}), f"data: {broken}\n\n", chunk({"content": "lo"}), chunk({}, "stop")))
    assert rules(response) == {"frame.invalid"}


def test_a_call_with_bytes_that_are_no_utf_8_is_not_released() -> None:
    data = sse(chunk({"tool_calls": [start(arguments='{"path": "X"}')]}), chunk({}, "tool_calls"))
    found = loop_core.read(API, data.replace(b"X", b"\xe2\x82"))
    assert [verdict.admission for verdict in found.calls] == ["held"]
    assert [verdict.admission for verdict in loop_core.read(API, data).calls] == ["ready"]


def test_a_stream_of_whole_messages_is_read_like_one_of_deltas() -> None:
    piece = chunk(None, message={"content": "ha"})
    response = read(sse(piece, piece, chunk({}, "stop")))
    assert response.text == "haha"
    response = read(sse(chunk({"content": "Hel"}), chunk({"content": "lo"}), chunk(None, message={"content": "Hello!"}),
                        chunk({}, "stop")))
    assert response.text == "Hello!"


# -- beside the message ----------------------------------------------------------------------------------------------


@each_row(("counts", "usage"), [
    (USAGE, Usage(5, 7)),
    ({**USAGE, "prompt_tokens_details": {"cached_tokens": 3}, "completion_tokens_details": {"reasoning_tokens": 4}},
     Usage(5, 7, 4, 3)),
    ({**USAGE, "completion_tokens_details": None, "prompt_tokens_details": None}, Usage(5, 7)),
    ({**USAGE, "prompt_cache_hit_tokens": 3, "prompt_cache_miss_tokens": 2}, Usage(5, 7, None, 3)),  # DeepSeek
    ({**USAGE, "cached_tokens": 3}, Usage(5, 7, None, 3)),  # Moonshot
    ({**USAGE, "cache_read_input_tokens": 3}, Usage(5, 7, None, 3)),
    ({**USAGE, "reasoning_tokens": 4}, Usage(5, 7, 4)),
    # xAI: 5 + 7 + 20 = 32, so thinking is not in the 7
    ({**USAGE, "total_tokens": 32, "completion_tokens_details": {"reasoning_tokens": 20}}, Usage(5, 27, 20)),
    ({}, None),
    ({"cost": 0.1}, None),
])
def test_usage_in_every_form(counts: Any, usage: Usage | None) -> None:
    assert read(whole({"content": "Hi"}, usage=counts)).usage == usage
    assert read(sse(chunk({}, "stop"), {**chunk(), "choices": [], "usage": counts})).usage == usage


def test_more_thinking_than_tokens_is_a_contradiction() -> None:
    counts = {**USAGE, "completion_tokens_details": {"reasoning_tokens": 69}}
    response = read(whole({"content": "Hi"}, usage=counts))
    assert response.usage == Usage(5, 7, 69)
    assert rules(response) == {"usage_contradiction"}
    (found,) = response.findings
    assert "69 reasoning tokens" in found.message
    assert "7 output tokens" in found.message


@each_row("field", [
    {"name": "helper"}, {"id": "msg_1"}, {"model": "m"}, {"object": "chat.completion.message"},
    {"index": 0}, {"created": 1}, {"prefix": True}, {"partial": True},
    {"logprobs": {"content": [{"token": "Hi", "logprob": -0.1}]}},
    {"token_ids": [9906]},  # vLLM
    {"provider_specific_fields": {"citations": [["x"]]}},  # LiteLLM
    {"extra_content": {"google": {"thought_signature": "c2ln"}}},  # Gemini behind its compatible endpoint
    {"metadata": {"region": "eu"}},
    {"provider_metadata": {"gateway": {"routing": {"resolvedProvider": "anthropic"}}}},  # Vercel's gateway
    {"padding": "abcde"},  # GitHub Copilot
    {"channel": "analysis"},  # Groq
    {"thought_signature": "c2ln"},  # Gemini's endpoint in June 2025
    {"graph_data": {"sources": [], "status": "finished", "subqueries": []}},  # Writer
])
def test_fields_beside_the_answer_are_no_finding(field: Any) -> None:
    assert rules(read(whole({"content": "Hi", **field}))) == set()
    assert rules(read(sse(chunk({"content": "Hi", **field}), chunk({}, "stop")))) == set()


def test_a_call_without_an_id_has_its_place() -> None:
    body = whole({"tool_calls": [{"type": "function", "function": {"name": "f", "arguments": A}, "index": 0}]})
    (found,) = read(body).findings
    assert found.at is not None
    assert b'"name": "f"' in body[found.at.start:found.at.end]


@each_row("events", [
    [{**chunk({"content": "a"}), "usage": {"prompt_tokens": 5, "completion_tokens": 1}},
     {**chunk({"content": "b"}), "usage": {"prompt_tokens": 5, "completion_tokens": 7}}, chunk({}, "stop")],
    [chunk({"content": "a"}), chunk({}, "stop", usage={"prompt_tokens": 5, "completion_tokens": 7})],  # Moonshot
    [chunk({"content": "a"}), {**chunk({}, "stop"), "x_groq": {"id": "r", "usage": USAGE}}],
    [{**chunk({}, "stop"), "usage": USAGE}, {**chunk(), "choices": [], "usage": None}],
])
def test_the_last_usage_counts_and_none_is_added_up(events: list[Any]) -> None:
    assert read(sse(*events)).usage == Usage(5, 7)


def test_the_type_of_a_stop_is_read_beside_the_choices_and_where_llama_cpp_repeats_its_own_answer() -> None:
    """llama.cpp with --verbose: `__verbose` holds what its native endpoint would have sent."""
    kept = {"stop_type": "limit", "truncated": "false"}
    own = {"content": "H", "stop_type": "limit", "truncated": False, "stopping_word": ""}
    choice = {"index": 0, "message": {"content": "H"}, "finish_reason": "stop"}
    stream = sse(chunk({"content": "H"}), {**chunk({}, "stop"), "__verbose": own})
    for data in (json.dumps({"choices": [choice], "__verbose": own}).encode(), stream):
        assert read(data).native == kept
        reading = loop_core.read(API, data, profile="llama_cpp")
        assert (reading.stop_reason, reading.mapped) == (Stop.MAX_TOKENS, Stop.END_TURN), "the server's own word counts"
    assert read(json.dumps({"choices": [choice], "stop_type": "eos", "__verbose": own}).encode()).native == {
        **kept, "stop_type": "eos"}


@pytest.mark.parametrize(("model", "usage"), [("koboldcpp/m", None), ("m", Usage(100, 100)), (None, Usage(100, 100))])
def test_the_constant_usage_of_koboldcpp_counts_nothing(model: str | None, usage: Usage | None) -> None:
    counts = {"prompt_tokens": 100, "completion_tokens": 100, "total_tokens": 200}
    choice = {"index": 0, "message": {"content": "Hello there and"}, "finish_reason": "stop"}
    body = json.dumps({"model": model, "choices": [choice], "usage": counts}).encode()
    assert read(body).usage == usage
    reading = loop_core.read(API, body, request={"max_tokens": 100})
    assert (reading.stop_reason, bool(reading.findings)) == (Stop.END_TURN, usage is not None)
    assert read(body.replace(b"100", b"101")).usage == Usage(101, 101)


def test_words_beside_the_reason_are_kept() -> None:
    words = {"native_finish_reason": "MAX_TOKENS", "stop_reason": 154827, "matched_stop": "</s>"}
    choice = {"index": 0, "message": {"content": "H"}, "finish_reason": "length", **words}
    body = json.dumps({"truncated": True, "choices": [choice]})
    last = {**chunk({}, "length", **words), "truncated": True}
    stream = sse(chunk({"content": "H"}, native_finish_reason=None), last)
    for data in (body.encode(), stream):
        assert read(data).native == {**words, "stop_reason": "154827", "truncated": "true"}


@pytest.mark.parametrize(("details", "stop"), [
    ({"type": "max_tokens"}, Stop.MAX_TOKENS), ({"type": "stop", "stop": "<|fim_suffix|>"}, Stop.END_TURN)])
def test_the_vision_preview_had_an_object_for_the_reason(details: dict[str, str], stop: Stop) -> None:
    choice = {"index": 0, "message": {"content": "H"}, "finish_details": details}
    last = {"choices": [{"index": 0, "delta": {}, "finish_details": details}]}
    for data in (json.dumps({"choices": [choice]}).encode(), sse(chunk({"content": "H"}), last)):
        response = read(data)
        assert (response.stop_reason.normalized, response.raw_stop_reason) == (stop, details["type"])
        assert response.stop_reason.evidence[0].at.pointer == "/choices/0/finish_details"
    both = json.dumps({"choices": [{**choice, "finish_reason": "length"}]}).encode()
    assert read(both).raw_stop_reason == "length"
    for odd in (None, {}, {"type": 5}, "stop"):
        assert read(json.dumps({"choices": [{**choice, "finish_details": odd}]}).encode()).raw_stop_reason is None


def test_the_engines_word_of_tabby_api_is_kept() -> None:
    choice = {"index": 0, "message": {"content": "H"}, "finish_reason": "stop", "eos_reason": "loop_detected"}
    for data in (json.dumps({"choices": [choice]}).encode(), sse(chunk({"content": "H"}), chunk({}, "stop",
                                                                       eos_reason="loop_detected"))):
        assert read(data).native == {"eos_reason": "loop_detected"}


def test_words_that_litellm_passes_on_in_an_object_of_their_own_are_kept() -> None:
    words = {"native_finish_reason": "MAX_TOKENS", "stop_reason": None}
    choice = {"index": 0, "message": {"content": "H"}, "finish_reason": "tool_calls", "provider_specific_fields": words}
    last = chunk({}, "tool_calls", provider_specific_fields=words)
    for data in (json.dumps({"choices": [choice]}).encode(), sse(chunk({"content": "H"}), last)):
        assert read(data).native == {"native_finish_reason": "MAX_TOKENS"}
    own = {**choice, "native_finish_reason": "length"}
    assert read(json.dumps({"choices": [own]}).encode()).native == {"native_finish_reason": "length"}
    for odd in ("x", ["x"], 5, {"native_finish_reason": None}):
        assert not read(json.dumps({"choices": [{**choice, "provider_specific_fields": odd}]}).encode()).native


def test_a_native_word_that_comes_before_the_reason_is_kept() -> None:
    stream = sse(chunk({"content": "H"}, native_finish_reason="MAX_TOKENS"), chunk({}, "stop"))
    assert read(stream).native == {"native_finish_reason": "MAX_TOKENS"}


@each_row(("event", "stop", "detail"), [
    ({"error": {"message": "overloaded", "type": "server_error"}}, Stop.ERROR, "retryable"),
    ({"error": {"message": "bad", "code": 400}}, Stop.ERROR, "fatal"),
    ({"object": "error", "message": "boom", "type": "BadRequestError", "code": 400}, Stop.ERROR, "fatal"),  # vLLM
    ('event: error\ndata: {"message": "no call", "code": "tool_use_failed"}\n\n', Stop.ERROR, "fatal"),
    ({**chunk({"content": ""}), "error": {"message": "x", "code": 502}}, Stop.ERROR, "retryable"),  # OpenRouter
    (chunk({}, "error", error={"message": "upstream", "code": 502}), Stop.ERROR, "retryable"),
    ({"error": {"message": "the maximum context length is 8192 tokens"}}, Stop.CONTEXT_WINDOW_EXCEEDED, "input"),
    ({"error": {"code": "content_filter", "message": "The response was filtered"}}, Stop.SAFETY_BLOCKED, "prompt"),
])
def test_an_error_in_the_stream_is_no_end(event: Any, stop: Stop, detail: str) -> None:
    for before in ([], [chunk({"content": "Hi"}), chunk({}, "stop")]):
        response = read(sse(*before, event))
        assert (response.stop_reason.normalized, response.stop_reason.detail) == (stop, detail)
        assert response.error is not None
        assert response.text == ("Hi" if before else None)


def test_an_error_beside_length_and_done_is_an_error() -> None:
    last = {**chunk({"content": ""}), "error": {"code": 400, "message": "Token limit reached"}, "usage": USAGE}
    response = read(sse(chunk({"reasoning": "We"}), chunk({}, "length", native_finish_reason="length"), last))
    assert reason(response) == (Stop.ERROR, "fatal", "length")
    assert response.usage == Usage(5, 7)
    assert response.saw_done


def test_the_raw_text_of_a_failed_call_is_kept() -> None:
    """Groq: the model wrote something that is no call; it is evidence, never a call."""
    error = {"error": {"message": "Failed", "code": "tool_use_failed", "failed_generation": '{"name": "f"'}}
    for data, options in ((json.dumps(error).encode(), {"http_status": 400}), (sse(error, done=False), {})):
        response = read(data, **options)
        assert response.native == {"failed_generation": '{"name": "f"'}
        assert response.tool_calls == ()
        assert response.stop_reason.normalized is Stop.ERROR


def test_an_http_error_is_read_from_its_body() -> None:
    body = {"error": {"message": "The response was filtered", "param": "prompt", "code": "content_filter",
                      "status": 400, "innererror": {"code": "ResponsibleAIPolicyViolation"}}}
    response = read(json.dumps(body).encode(), http_status=400)
    assert (response.stop_reason.normalized, response.stop_reason.detail) == (Stop.SAFETY_BLOCKED, "prompt")
    assert read(b"<html>Bad Gateway</html>", http_status=502).stop_reason.detail == "retryable"


# -- several choices -------------------------------------------------------------------------------------------------


def choices(*pairs: tuple[Any, Any]) -> bytes:
    found = [{"index": i, "message": pair[0], "finish_reason": pair[1]} for i, pair in enumerate(pairs)]
    return json.dumps({"id": "c", "model": "m", "choices": found}).encode()


def test_the_first_of_several_answers_is_read() -> None:
    body = choices(({"content": "one"}, "stop"), ({"content": "two"}, "length"))
    stream = sse(chunk({"content": "tw"}, index=1), chunk({"content": "one"}), chunk({"content": "o"}, index=1),
                 chunk({}, "length", index=1), chunk({}, "stop"))
    for data in (body, stream):
        for n in (1, 2):
            response = read(data, n=n)
            assert (response.text, response.other_choices) == ("one", 1)
            assert reason(response) == (Stop.END_TURN, None, "stop")


@pytest.mark.parametrize(("finish", "said"), [
    ("length", "choice 1, which is not read, ended with 'length'"),
    (None, "choice 1, which is not read, has no finish reason"), ("stop", None),
])
def test_a_choice_that_is_not_read_and_is_not_whole_is_a_finding(finish: str | None, said: str | None) -> None:
    for data in (choices(({"content": "one"}, "stop"), ({"content": "two"}, finish)),
                 sse(chunk({"content": "one"}), chunk({"content": "two"}, finish, index=1), chunk({}, "stop"))):
        found = [each.message for each in read(data, n=2).findings if each.rule == "openai_chat.other_choice"]
        assert found == ([] if said is None else [said])


def test_several_choices_in_one_chunk_stay_apart() -> None:
    both = {**chunk(), "choices": [{"index": 1, "delta": {"content": "two"}, "finish_reason": "length"},
                                   {"index": 0, "delta": {"content": "one"}, "finish_reason": None}]}
    response = read(sse(both, chunk({}, "stop")), n=2)
    assert (response.text, response.raw_stop_reason, response.other_choices) == ("one", "stop", 1)


def test_a_second_choice_without_an_end_has_no_place_of_its_own() -> None:
    chunks: list[dict[str, Any]] = [
        {"index": 0, "delta": {"content": "a"}}, {"index": 1, "delta": {"tool_calls": [{"index": 0, **CALL}]}},
        {"index": 0, "delta": {}, "finish_reason": "stop"}]
    body = b"".join(b"data: " + json.dumps({"choices": [chunk]}).encode() + b"\n\n" for chunk in chunks)
    (found,) = read(body + b"data: [DONE]\n\n").findings
    assert (found.rule, found.at) == (f"{API}.choices_merged", At(ExchangePart.BODY, 0, len(body) + 14))


def test_an_answer_in_pieces_is_put_together() -> None:
    """Copilot sends text in one choice and the calls in another."""
    body = choices(({"content": "I will."}, "tool_calls"), ({"content": None, "tool_calls": [CALL]}, "tool_calls"))
    response = read(body)
    assert (response.text, calls_of(response), response.other_choices) == ("I will.", [("call_1", "f", A)], 0)
    assert [call.closed for call in response.tool_calls] == [True]
    assert reason(response) == (Stop.TOOL_CALL, None, "tool_calls")
    assert rules(response) == {"choices_merged"}
    asked_for_two = read(body, n=2)
    assert (asked_for_two.tool_calls, asked_for_two.other_choices) == ((), 1)


@pytest.mark.parametrize("said", [{"content": None}, {"content": ""}, {}])
def test_an_answer_whose_first_choice_is_empty_stands_in_the_other(said: dict[str, Any]) -> None:
    """It was shown as an answer that says tool_calls and holds no call."""
    whole = choices((said, "tool_calls"), ({"content": None, "tool_calls": [CALL]}, "tool_calls"))
    stream = sse(chunk(said), chunk({"tool_calls": [{"index": 0, **CALL}]}, index=1), chunk({}, "tool_calls"),
                 chunk({}, "tool_calls", index=1))
    for data in (whole, stream):
        response = read(data)
        assert (calls_of(response), response.other_choices) == ([("call_1", "f", A)], 0)
        assert reason(response) == (Stop.TOOL_CALL, None, "tool_calls")
        assert rules(response) == {"choices_merged"}
        assert (read(data, n=2).tool_calls, read(data, n=2).other_choices) == ((), 1)
    cut = read(choices((said, "stop"), ({"tool_calls": [CALL]}, "length")))
    assert reason(cut) == (Stop.MAX_TOKENS, None, "length")
    twice = read(choices((said, "stop"), ({"content": "one"}, "stop"), ({"content": "two"}, "stop")))
    assert (twice.text, twice.other_choices) == (None, 2)


@pytest.mark.parametrize(("finish", "stop", "raw", "closed"), [
    ("length", Stop.MAX_TOKENS, "length", True),
    (None, Stop.INTERRUPTED, None, False),
    ("odd", Stop.UNKNOWN, "odd", True),
])
def test_a_piece_that_is_cut_speaks_for_the_whole_answer(finish: Any, stop: Stop, raw: Any, closed: bool) -> None:
    response = read(choices(({"content": "I will."}, "stop"), ({"tool_calls": [CALL]}, finish)))
    assert reason(response) == (stop, None, raw)
    assert [call.closed for call in response.tool_calls] == [closed]


def test_an_empty_choice_is_only_counted() -> None:
    response = read(choices(({"content": "one"}, "stop"), ({"content": ""}, "stop")))
    assert (response.text, response.other_choices, response.findings) == ("one", 1, ())


def test_a_choice_without_an_index_is_the_first() -> None:
    events = [{"choices": [{"delta": {"content": "a"}}]}, {"choices": [{"index": 0, "delta": {"content": "b"}}]},
              {"choices": [{"index": None, "delta": {}, "finish_reason": "stop"}]}]
    assert (read(sse(*events)).text, read(sse(*events)).other_choices) == ("ab", 0)


# -- framing ---------------------------------------------------------------------------------------------------------

STREAM = sse(
    ": OPENROUTER PROCESSING\n\n",
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": "caf\u00e9 \U0001f600"}),
    calls(start("write", ident="x")),
    calls(more_of('{"path": "caf\u00e9')),
    calls(more_of('", "n": 12')),
    calls(more_of("00}")),
    chunk({}, "tool_calls"),
    {**chunk(), "choices": [], "usage": USAGE},
).replace(b"\\u00e9", "\u00e9".encode())
ARGUMENTS = '{"path": "caf\u00e9", "n": 1200}'


@given(st.lists(st.integers(0, len(STREAM)), max_size=8), st.sampled_from([b"\n", b"\r\n"]))
@settings(max_examples=60, deadline=None)
def test_any_chunking_reads_alike(cuts: Sequence[int], line_end: bytes) -> None:
    data = STREAM.replace(b"\n", line_end)
    marks = [0, *sorted(cut for cut in cuts if cut <= len(data)), len(data)]
    response = read([data[a:b] for a, b in pairwise(marks)])
    assert essence(response) == essence(read(STREAM))
    assert calls_of(response) == [("x", "write", ARGUMENTS)]
    assert response.text == "caf\u00e9 \U0001f600"


def test_a_stream_cut_at_any_byte_is_never_finished_before_its_reason() -> None:
    reason_ends = STREAM.index(b"}]}", STREAM.index(b'"finish_reason": "tool_calls"')) + 3
    for end in range(len(STREAM) + 1):
        response = read(STREAM[:end])
        if end < reason_ends:
            assert response.stop_reason.normalized is Stop.INTERRUPTED
            assert not any(call.closed for call in response.tool_calls)
        else:
            assert response.stop_reason.normalized is Stop.TOOL_CALL
            assert [call.closed for call in response.tool_calls] == [True]
        assert all(ARGUMENTS.startswith(call.arguments or "") for call in response.tool_calls)


def read_slowly(data: bytes, monkeypatch: pytest.MonkeyPatch) -> ChatResponse:
    with monkeypatch.context() as patch:
        patch.setattr(Decoder, "on_event", Decoder._chunk)
        patch.setattr(CallAssembly, "append", lambda *_: False)
        patch.setattr(GrowingChoice, "append", lambda *_: False)
        return read(data)


@pytest.mark.parametrize("events", [row[1] for row in QUIRKS], ids=[row[0] for row in QUIRKS])
def test_the_short_way_of_a_delta_leads_where_the_long_one_does(
    events: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = sse(*events, chunk({}, "tool_calls"))
    assert (essence(read(data)), read(data).findings) == (essence(read_slowly(data, monkeypatch)),
                                                          read_slowly(data, monkeypatch).findings)


def test_the_short_way_of_recorded_deltas_leads_where_the_long_one_does(
    traffic_of: Callable[[str], list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for exchange in traffic_of(API):
        if b"data: " in exchange.body:
            assert essence(read(exchange.body)) == essence(read_slowly(exchange.body, monkeypatch)), exchange.id


def test_the_reason_in_a_last_event_without_its_blank_line_counts() -> None:
    data = sse(chunk({"content": "Hi"}), chunk({}, "stop"), done=False)
    assert read(data.rstrip(b"\n")).stop_reason.normalized is Stop.END_TURN


# -- writing ---------------------------------------------------------------------------------------------------------


def round_trip(response: ChatResponse, *, stream: bool, size: int = 16) -> ChatResponse:
    return read(encode(response, stream=stream, chunk=size))


def make(*parts: Any, raw: str | None = "stop", **fields: Any) -> ChatResponse:
    return ChatResponse(API, parts, StopReason(Stop.END_TURN, raw), id="c", model="m", **fields)


ROUND = [
    whole({"content": "Hello there, caf\u00e9 \U0001f600"}, usage=USAGE),
    whole({"content": None, "tool_calls": [CALL, {**CALL, "id": "call_2"}]}, "tool_calls"),
    whole({"content": "Hi", "tool_calls": [{**CALL, "function": {"name": "f", "arguments": '{"a'}}]}, "length"),
    whole({"tool_calls": [{"id": "x", "type": "function", "function": {"name": "f"}}]}, "tool_calls"),
    whole({"tool_calls": [{"type": "function", "function": {"name": "f", "arguments": ""}}]}, "stop"),
    whole({"tool_calls": [{"id": "x", "function": {"name": "f", "arguments": {"a": [1, 2.50]}}}]}, "stop"),
    whole({"tool_calls": [{"id": "x", "type": "custom", "custom": {"name": "sql", "input": "q"}}]}, "tool_calls"),
    whole({"function_call": {"name": "f", "arguments": A}}, "function_call"),
    whole({"function_call": {"name": "f"}}, "function_call"),
    whole({"content": None, "refusal": "I can't help with that."}),
    whole({"content": "H", "reasoning_content": "I think, therefore."}, "max_output_tokens"),
    whole({"content": "H", "reasoning_details": [
        {"type": "reasoning.text", "text": "Hmm.", "signature": "s", "index": 0},
        {"type": "reasoning.summary", "summary": "Well.", "index": 1, "id": "rs_1"},
        {"type": "reasoning.encrypted", "data": "ZQ==", "index": 1, "id": "rs_1"},
        {"type": "reasoning.encrypted", "data": "Zg==", "index": 2}]}),
    whole({"content": [{"type": "text", "text": "see"}, {"type": "reference", "reference_ids": [0]}],
           "annotations": [{"type": "url_citation"}, {"type": "file"}], "audio": {"id": "a", "data": "AA=="}}),
    whole({"tool_calls": [{**CALL, "extra_content": {"google": {"thought_signature": "c2ln"}}}]}, "tool_calls"),
    whole({"content": "Hi"}, None),
    whole({"content": "Hi"}, ""),
    whole({"content": "Hi"}, "eos", truncated=True),
    whole({"content": "Hi"}, usage={**USAGE, "prompt_tokens_details": {"cached_tokens": 3},
                                    "completion_tokens_details": {"reasoning_tokens": 4}}),
    whole({"content": "Hi"}, usage={"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 32,
                                    "completion_tokens_details": {"reasoning_tokens": 20}}),
    json.dumps({"choices": [{"index": 0, "message": {"content": "H"}, "finish_reason": "stop", "stop_reason": 7,
                             "native_finish_reason": "x", "content_filter_results": AZURE}],
                "prompt_filter_results": [{"content_filter_results": AZURE}]}).encode(),
    b'{"error": {"message": "No such model", "type": "invalid_request_error", "code": "model_not_found"}}',
    b'{"error": {"message": "Failed", "code": "tool_use_failed", "failed_generation": "{"}}',
    choices(({"content": "I will."}, "tool_calls"), ({"tool_calls": [CALL]}, "tool_calls")),
    STREAM,
    sse(chunk({"content": "Hi"}), {"error": {"message": "overloaded", "code": 503}}, done=False),
    sse(chunk({"content": "Hi"}), done=False),
    sse(chunk({"content": "Hi"}), chunk({}, "length"), {**chunk({}), "error": {"message": "x", "code": 400}}),
    b"",
]


@each_row("data", ROUND)
@each_row("stream", [False, True])
@each_row("size", [1, 16])
def test_what_is_written_reads_alike(data: bytes, stream: bool, size: int) -> None:
    response = read(data)
    again = round_trip(response, stream=stream, size=size)
    assert essence(again, LOSES) == essence(response, LOSES)
    assert again.streaming is stream or not response.size


def test_a_change_of_mind_is_written_as_two_reasons() -> None:
    response = read(sse(chunk({"content": "Hi"}), chunk({}, "length"), chunk({}, "stop")))
    assert essence(round_trip(response, stream=True)) == essence(response)
    with pytest.raises(EncodeError) as refused:
        list(encode(response))
    assert refused.value.what == "native.earlier_finish_reason"


def test_a_stream_is_cut_into_deltas_of_the_size_asked_for() -> None:
    response = make(TextPart("abcdefg"), ToolCall("x", "f", '{"a":1}', closed=True))
    events = list(encode(response, stream=True, chunk=3))
    assert events[-1] == b"data: [DONE]\n\n"
    deltas = [json.loads(event[6:])["choices"][0]["delta"] for event in events[:-1]]
    assert [delta["content"] for delta in deltas if delta.get("content")] == ["abc", "def", "g"]
    pieces = [delta["tool_calls"][0]["function"]["arguments"] for delta in deltas if "tool_calls" in delta]
    assert pieces == ["", '{"a', '":1', "}"]
    assert len(list(encode(response))) == 1


def test_no_terminal_is_written_where_none_came() -> None:
    data = b"".join(encode(make(TextPart("Hi"), raw=None), stream=True))
    assert b"[DONE]" not in data
    assert b'"finish_reason":null' in data
    assert read(data).stop_reason.normalized is Stop.INTERRUPTED
    assert b"[DONE]" in b"".join(encode(make(TextPart("Hi"), raw=None, saw_done=True), stream=True))


def test_verbatim_json_may_hold_line_breaks() -> None:
    pretty = '{\n  "a": 1\n}'
    call = ToolCall("x", "f", pretty, closed=True, form=ArgsForm.OBJECT)
    for stream in (False, True):
        assert round_trip(make(call, raw="tool_calls"), stream=stream).tool_calls[0].arguments == pretty


def test_a_lone_surrogate_can_be_written() -> None:
    for stream in (False, True):
        assert round_trip(make(TextPart("a\ud83d")), stream=stream).text == "a\ud83d", "its other half may still come"


def test_calls_that_the_provider_ran_are_left_out() -> None:
    response = make(TextPart("Hi"), ToolCall("s", "web_search", "{}", kind=CallKind.SERVER))
    assert "server" in LOSES
    assert essence(round_trip(response, stream=False), LOSES) == essence(response, LOSES)


@each_row(("response", "stream", "what"), [
    (make(continuation_token="t"), False, "continuation_token"),
    (make(native={"blockReason": "SAFETY"}), False, "native.blockReason"),
    (make(native={"failed_generation": "{"}), False, "native.failed_generation"),
    (make(OpaquePart("server_tool_use", "{}")), False, "opaque.server_tool_use"),
    (make(OpaquePart("message.unheard", "{}")), True, "opaque.message.unheard"),
    (make(OpaquePart("message.audio", "{}"), OpaquePart("message.audio", "{}")), False, "opaque.message.audio"),
    (make(ToolCall("x", "f", "{}", closed=False)), False, "call.closed"),
    (make(ToolCall("x", "f", "{}", closed=True), raw=None), True, "call.closed"),
    (make(ToolCall("x", "f", '{"a":', closed=True, form=ArgsForm.OBJECT)), False, "call.arguments"),
    (make(ToolCall("x", "f", None, closed=True, form=ArgsForm.OBJECT)), False, "call.arguments"),
    (make(ToolCall(None, "", "{}", closed=True)), True, "call.name"),
    (make(ToolCall("x", "f", "{}", closed=True, form=ArgsForm.OBJECT, kind=CallKind.CUSTOM)), False, "call.form"),
])
def test_what_cannot_be_carried_is_refused(response: ChatResponse, stream: bool, what: str) -> None:
    with pytest.raises(EncodeError) as refused:
        list(encode(response, stream=stream))
    assert refused.value.what == what


@pytest.mark.parametrize("stream", [False, True])
def test_the_official_sdk_reads_what_is_written(stream: bool) -> None:
    openai = pytest.importorskip("openai")
    httpx = pytest.importorskip("httpx")
    second = {**CALL, "id": "call_2", "function": {"name": "g", "arguments": ""}}
    usage = {**USAGE, "completion_tokens_details": {"reasoning_tokens": 4}}
    response = read(whole({"content": "caf\u00e9", "tool_calls": [CALL, second]}, "tool_calls", usage=usage))
    kind = "text/event-stream" if stream else "application/json"

    def answer(_: Any) -> Any:
        content = b"".join(encode(response, stream=stream, chunk=2))
        return httpx.Response(200, headers={"content-type": kind}, content=content)

    with openai.OpenAI(api_key="k", base_url="http://localhost", max_retries=0,
                       http_client=httpx.Client(transport=httpx.MockTransport(answer))) as client:
        arguments: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
        if stream:
            with client.chat.completions.stream(**arguments) as events:
                result = events.get_final_completion()
        else:
            result = client.chat.completions.create(**arguments)
    message = result.choices[0].message
    assert (message.content, result.choices[0].finish_reason) == ("caf\u00e9", "tool_calls")
    assert [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls] == calls_of(response)
    assert (result.id, result.model) == ("chatcmpl-1", "m")
    assert (result.usage.completion_tokens, result.usage.completion_tokens_details.reasoning_tokens) == (7, 4)


def test_the_official_sdk_reads_a_written_error() -> None:
    openai = pytest.importorskip("openai")
    httpx = pytest.importorskip("httpx")
    body = b'{"error": {"message": "slow down", "type": "requests", "code": "rate_limit_exceeded"}}'
    error = read(body, http_status=429)

    def answer(_: Any) -> Any:
        return httpx.Response(429, headers={"content-type": "application/json"}, content=b"".join(encode(error)))

    client = openai.OpenAI(api_key="k", base_url="http://localhost", max_retries=0,
                           http_client=httpx.Client(transport=httpx.MockTransport(answer)))
    with client, pytest.raises(openai.RateLimitError) as raised:
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}])
    assert (raised.value.code, raised.value.body["message"]) == ("rate_limit_exceeded", "slow down")


# -- requests --------------------------------------------------------------------------------------------------------


def test_a_request_of_the_documents() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    request = read_request({
        "model": "gpt-4o", "stream": True, "n": 2, "max_completion_tokens": 100, "tool_choice": "required",
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "See"},
                                         {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]},
            {"role": "assistant", "content": "I will.", "reasoning_content": "Hm", "tool_calls": [
                CALL, {"id": "y", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "done"}]},
            {"role": "system", "content": "Go on."},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "description": "Does f.", "parameters": schema}},
                  {"type": "custom", "custom": {"name": "sql"}}],
    })
    system, user, assistant, tool, hint = request.messages
    assert (system.role, system.text, hint.role, hint.text) == (Role.SYSTEM, "Be brief.", Role.SYSTEM, "Go on.")
    assert (user.role, assistant.role, tool.role) == (Role.USER, Role.ASSISTANT, Role.TOOL)
    assert user.text == "See"
    assert json.loads(user.parts[1].json)["image_url"] == {"url": "https://example.org/a.png"}
    assert assistant.parts[:2] == (ReasoningPart("Hm"), TextPart("I will."))
    assert assistant.tool_calls == (ToolCall("call_1", "f", A, closed=True),
                                    ToolCall("y", "sql", "select 1", closed=True, kind=CallKind.CUSTOM))
    assert [(part.call_id, part.text) for part in tool.results] == [("call_1", "done")]
    assert [(item.name, item.schema, item.kind, item.dialect) for item in request.tools] == [
        ("f", schema, CallKind.FUNCTION, "json_schema"), ("sql", None, CallKind.CUSTOM, "json_schema")]
    assert (request.model, request.stream, request.n, request.max_tokens, request.tool_choice, request.api) == (
        "gpt-4o", True, 2, 100, "any", API)


def test_tools_that_the_provider_runs_are_told_apart() -> None:
    request = read_request({"tools": [{"type": "openrouter:web_search"}, {"type": "function"},
                                      {"type": "function", "name": "f", "parameters": {}}]})
    assert [(tool.name, tool.kind) for tool in request.tools] == [
        ("openrouter:web_search", CallKind.SERVER), ("f", CallKind.FUNCTION)]


def test_an_old_request() -> None:
    request = read_request({
        "max_tokens": 50, "functions": [{"name": "f", "parameters": {}}], "function_call": {"name": "f"},
        "messages": [{"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": A}},
                     {"role": "function", "name": "f", "content": "1"}],
    })
    assert request.messages[0].tool_calls == (ToolCall(None, "f", A, closed=True),)
    assert request.messages[1].role is Role.TOOL
    assert [(part.name, part.text) for part in request.messages[1].results] == [("f", "1")]
    assert (request.max_tokens, request.tool_choice, [item.name for item in request.tools]) == (50, "tool:f", ["f"])


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "max_output_tokens"])
def test_the_cap_in_every_spelling(name: str) -> None:
    assert read_request({name: 9}).max_tokens == 9


@each_row(("choice", "expected"), [
    ("auto", "auto"), ("none", "none"), ("required", "any"), ("any", "any"), (None, None), ("odd", None), (5, None),
    ({"type": "function", "function": {"name": "g"}}, "tool:g"),
    ({"type": "custom", "custom": {"name": "sql"}}, "tool:sql"),
    ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": []}}, "any"),
    ({"type": "auto"}, "auto"),
])
def test_tool_choices(choice: Any, expected: str | None) -> None:
    assert read_request({"tool_choice": choice}).tool_choice == expected


def test_azure_names_the_model_in_the_url() -> None:
    url = "https://x.openai.azure.com/openai/deployments/gpt%2D4o/chat/completions?api-version=2024-02-01"
    assert read_request({}, url).model == "gpt-4o"
    assert read_request({"model": "m"}, url).model == "m"


@pytest.mark.parametrize("body", [
    {}, {"messages": 5, "tools": "x", "n": "2", "max_tokens": "9", "model": 1},
    {"messages": [1, None, {}, {"role": 5, "content": 7}]},
    {"messages": [{"role": "assistant", "tool_calls": [1, {}, {"function": 2}]}]},
    {"messages": [{"role": "tool"}, {"role": "assistant", "function_call": 3, "content": [None, {}, 4]}]},
    {"tools": [1, {}], "functions": [2]},
])
def test_odd_requests_are_read_as_far_as_they_go(body: dict[str, Any]) -> None:
    request = read_request(body)
    assert (request.max_tokens, request.n, request.model) == (None, 1, None)


# -- recognising -----------------------------------------------------------------------------------------------------


@each_row("value", [
    chunk({"content": "Hi"}), chunk({}, "stop"), json.loads(whole({"content": "Hi"})),
    {**chunk(), "choices": [], "usage": USAGE},
    {"choices": [], "prompt_filter_results": []},
    {"choices": [{"index": 0, "finish_reason": None, "content_filter_offsets": {}, "content_filter_results": {}}]},
])
def test_chat_completions_are_recognised(value: dict[str, Any]) -> None:
    assert recognises(value)


@each_row("value", [
    {}, {"error": {"message": "x", "type": "y"}}, {"object": "error"},
    {"choices": "x"}, {"choices": [5]}, {"choices": []},
    {"object": "text_completion", "choices": [{"index": 0, "text": "Hi", "finish_reason": "stop"}]},
    {"type": "message_start", "message": {"role": "assistant"}},
    {"model": "m", "message": {"role": "assistant", "content": "Hi"}, "done": True},
    {"candidates": [{"content": {"parts": []}}]},
    {"object": "response", "output": []},
])
def test_others_are_not(value: dict[str, Any]) -> None:
    assert not recognises(value)


@each_row(("path", "known"), [
    ("/v1/chat/completions", True), ("/openai/deployments/gpt-4o/chat/completions", True), ("/chat/completions/", True),
    ("/v1/chat/completions?api-version=1", True), ("/v1/agents/completions", True),
    ("/v1/text/chatcompletion_v2", True), ("/ml/v1/text/chat?version=2025-01-01", True), ("/text/chat", False),
    ("/ml/v1/deployments/mine/text/chat_stream?version=2025-01-01", True), ("/ml/v1/text/generation", False),
    ("/v1/completions", False), ("/v1/responses", False), ("/v1/messages", False), ("/api/chat", False),
    ("/v1/chat/completions/chatcmpl-1/messages", False),
])
def test_paths(path: str, known: bool) -> None:
    assert any(pattern.search(path) for pattern in PATHS) is known


# -- recorded traffic ------------------------------------------------------------------------------------------------

PHANTOMS = frozenset({"pydantic-ai-02ece85288", "pydantic-ai-18f9d99cb9", "pydantic-ai-2feef7fe2a"})
"""Snowflake's zero-valued `function_call`, which the independent reader counts as a call without a name."""


def test_recorded_traffic_is_read_as_the_independent_reader_does(traffic_of: Callable[[str], list[Any]]) -> None:
    for exchange in traffic_of(API):
        request = read_request(exchange.request, exchange.url)
        response = read(exchange.body, http_status=exchange.status, headers=exchange.headers, n=request.n)
        expected = exchange.expected
        assert response.raw_stop_reason == (expected["raw_stop_reasons"] or [None])[0], exchange.id
        tools = [(tool["name"], tool["args"]) for tool in expected["tools"]]
        if exchange.id in PHANTOMS:
            assert "phantom_call" in rules(response)
            tools.remove(("", ""))
        tools = tools[: len(tools) // (response.other_choices + 1)]  # we read the first choice only
        cut = [(call.name, None if call.arguments is None else call.arguments[:400]) for call in response.tool_calls]
        assert cut == tools, exchange.id
        named = {name: [str(word) for word in words] for name, words in expected["other_fields"].items()}
        for name, words in named.items():
            assert response.native[name] == words[-1], exchange.id


def test_recorded_traffic_survives_writing(traffic_of: Callable[[str], list[Any]]) -> None:
    for exchange in traffic_of(API):
        options = {"http_status": exchange.status, "headers": exchange.headers}
        response = read(exchange.body, n=read_request(exchange.request).n, **options)
        for stream in (False, True):
            again = read(encode(response, stream=stream), **options)
            assert essence(again, LOSES) == essence(response, LOSES), (exchange.id, stream)


@pytest.mark.parametrize("last", [chunk({}, "stop"), chunk({}), {"id": "c", "choices": []}])
def test_groq_says_why_it_stopped_early(last: dict[str, Any]) -> None:
    """groq 1.7.0: x_groq.error."""
    response = read(sse(chunk({"content": "H"}), {**last, "x_groq": {"id": "r", "error": "over capacity"}}))
    assert response.stop_reason.normalized is Stop.ERROR
    assert response.error is not None
    assert response.error.message == "over capacity"
    assert response.stop_reason.evidence[-1].at is not None
    assert response.stop_reason.evidence[-1].at.pointer == "/x_groq/error"
    quiet = {**chunk({}, "stop"), "x_groq": {"id": "r", "error": None, "usage": {"completion_tokens": 1}}}
    assert read(sse(chunk({"content": "H"}), quiet)).stop_reason.normalized is Stop.END_TURN


def test_the_error_of_a_choice_is_placed_in_it() -> None:
    response = read(sse(chunk({"content": "H"}), chunk({}, "error", error={"code": 502, "message": "down"})))
    assert response.stop_reason.evidence[-1].at is not None
    assert response.stop_reason.evidence[-1].at.pointer == "/choices/0/error"
