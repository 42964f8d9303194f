"""Gemini generateContent: fixtures written from Google's documents and types; SDK and recorded traffic are referees."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loop_core import read
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
from loop_core.wire.gemini_generate import encode
from loop_core.wire.gemini_generate.decode import Decoder
from loop_core.wire.gemini_generate.request import read_request
from loop_core.wire.gemini_generate.table import BLOCK_REASONS, LOSES, NUMBERS, PATHS, STOP_REASONS, recognises
from tests.scenes.essence import essence
from tests.scenes.rows import each_row

HELLO = {"text": "Hello"}
CALL = {"functionCall": {"name": "f", "args": {"a": 1}}}
USAGE = {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10}


def candidate(*parts: Any, reason: Any = None, **more: Any) -> dict[str, Any]:
    value: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0, **more}
    return value if reason is None else {**value, "finishReason": reason}


def body(*parts: Any, reason: Any = None, **more: Any) -> dict[str, Any]:
    return {"candidates": [candidate(*parts, reason=reason, **more)], "usageMetadata": USAGE,
            "modelVersion": "gemini-2.5-flash", "responseId": "r1"}


def sse(*chunks: Any, end: str = "\r\n") -> bytes:
    return "".join(f"data: {json.dumps(chunk)}{end}{end}" for chunk in chunks).encode()


def array(*chunks: Any, closed: bool = True) -> bytes:
    """As it is streamed without `alt=sse`."""
    made = "\n,\r\n".join(json.dumps(chunk, indent=2) for chunk in chunks)
    return f"[{made}\n{']' if closed else ''}".encode()


def decode(data: Any, **options: Any) -> ChatResponse:
    end = options.pop("end", TransportEnd.EOF)
    decoder = Decoder(**options)
    decoder.feed(data if isinstance(data, bytes) else json.dumps(data).encode())
    return decoder.close(end)


def is_json(text: str | None) -> bool:
    try:
        json.loads(text or "")
    except ValueError:
        return False
    return True


def rules(response: ChatResponse) -> set[str]:
    return {finding.rule for finding in response.findings}


def stop_rules(response: ChatResponse) -> list[str]:
    return [evidence.rule for evidence in response.stop_reason.evidence]


# -- the tables ------------------------------------------------------------------------------------------------------

WORDS = [
    ("FINISH_REASON_UNSPECIFIED", Stop.UNKNOWN, None),
    ("STOP", Stop.END_TURN, None),
    ("MAX_TOKENS", Stop.MAX_TOKENS, None),
    ("SAFETY", Stop.SAFETY_BLOCKED, None),
    ("RECITATION", Stop.SAFETY_BLOCKED, "recitation"),
    ("LANGUAGE", Stop.ERROR, "fatal"),
    ("OTHER", Stop.UNKNOWN, None),
    ("BLOCKLIST", Stop.SAFETY_BLOCKED, None),
    ("PROHIBITED_CONTENT", Stop.SAFETY_BLOCKED, None),
    ("SPII", Stop.SAFETY_BLOCKED, None),
    ("MALFORMED_FUNCTION_CALL", Stop.MALFORMED_TOOL_CALL, None),
    ("UNEXPECTED_TOOL_CALL", Stop.MALFORMED_TOOL_CALL, "undeclared tool"),
    ("TOO_MANY_TOOL_CALLS", Stop.ERROR, "fatal"),
    ("MISSING_THOUGHT_SIGNATURE", Stop.ERROR, "fatal"),
    ("MALFORMED_RESPONSE", Stop.ERROR, "retryable"),
    ("CONTINUATION", Stop.PAUSED, "token"),
    ("ESCALATION", Stop.SAFETY_BLOCKED, "escalation"),
    ("PUP_LIMITED_DISABLED", Stop.SAFETY_BLOCKED, "account"),
    ("MODEL_ARMOR", Stop.SAFETY_BLOCKED, None),
    ("IMAGE_SAFETY", Stop.SAFETY_BLOCKED, None),
    ("IMAGE_PROHIBITED_CONTENT", Stop.SAFETY_BLOCKED, None),
    ("IMAGE_RECITATION", Stop.SAFETY_BLOCKED, None),
    ("IMAGE_OTHER", Stop.ERROR, "fatal"),
    ("NO_IMAGE", Stop.ERROR, "fatal"),
]
NUMBERED = ["FINISH_REASON_UNSPECIFIED", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER", "BLOCKLIST",
            "PROHIBITED_CONTENT", "SPII", "MALFORMED_FUNCTION_CALL", "MODEL_ARMOR", "IMAGE_SAFETY",
            "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_OTHER", "UNEXPECTED_TOOL_CALL", "NO_IMAGE"]
"""google.cloud.aiplatform.v1 Candidate.FinishReason, 0 to 16."""
BLOCKS = ["BLOCKED_REASON_UNSPECIFIED", "SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY",
          "MODEL_ARMOR", "JAILBREAK"]


@each_row(("word", "stop", "detail"), WORDS)
def test_every_finish_reason(word: str, stop: Stop, detail: str | None) -> None:
    first, last = body(HELLO), body({"text": "!"}, reason=word)
    for data in (body(HELLO, reason=word), sse(first, last), array(first, last)):
        response = decode(data)
        assert response.stop_reason.normalized is stop
        assert response.raw_stop_reason == word
        assert (response.stop_reason.detail or "").split(":")[0] == (detail or "")
        assert stop_rules(response) == ["gemini_generate.stop_reasons"]
        assert response.saw_stop_reason


@each_row(("number", "word"), list(enumerate(NUMBERED)))
def test_every_number(number: int, word: str) -> None:
    """REST clients with `enum-encoding=int` see numbers (recorded from Vertex AI)."""
    stop, detail = next((row[1], row[2]) for row in WORDS if row[0] == word)
    for data in (body(HELLO, reason=number), sse(body(HELLO), body(reason=number)), array(body(HELLO, reason=number))):
        response = decode(data)
        assert response.raw_stop_reason == str(number)
        assert response.stop_reason.normalized is stop
        assert (response.stop_reason.detail or "").split(":")[0] == (detail or "")
        assert "gemini_generate.integer_reason" in rules(response)
        assert stop_rules(response) == ["gemini_generate.stop_reasons"]


@each_row("word", BLOCKS)
def test_every_block_reason(word: str) -> None:
    blocked = {"promptFeedback": {"blockReason": word, "blockReasonMessage": "no"}, "usageMetadata": USAGE}
    for data in (blocked, sse(blocked), array(blocked), {**blocked, "candidates": []}):
        response = decode(data)
        assert (response.stop_reason.normalized, response.stop_reason.detail) == (Stop.SAFETY_BLOCKED, "prompt")
        assert response.raw_stop_reason is None
        assert not response.saw_stop_reason
        assert response.native == {"blockReason": word, "blockReasonMessage": "no"}
        assert stop_rules(response) == ["gemini_generate.block_reasons"]


def test_the_rows_above_are_all_there_are() -> None:
    assert {row[0] for row in WORDS} | {str(number) for number in range(len(NUMBERED))} == set(STOP_REASONS)
    assert dict(enumerate(NUMBERED)) == dict(NUMBERS)
    assert set(BLOCKS) == set(BLOCK_REASONS)


def test_an_unknown_block_reason_blocks_no_less() -> None:
    response = decode({"promptFeedback": {"blockReason": "NEW"}})
    assert (response.stop_reason.normalized, response.stop_reason.detail) == (Stop.SAFETY_BLOCKED, "prompt")
    assert stop_rules(response) == ["unknown_word"]


def test_a_block_reason_outranks_a_finish_reason() -> None:
    response = decode({**body(CALL, reason="STOP"), "promptFeedback": {"blockReason": "SAFETY"}})
    assert (response.stop_reason.normalized, response.raw_stop_reason) == (Stop.SAFETY_BLOCKED, "STOP")
    assert stop_rules(response) == ["gemini_generate.stop_reasons", "gemini_generate.block_reasons"]


def test_safety_ratings_alone_block_nothing() -> None:
    rated = {**body(HELLO, reason="STOP", safetyRatings=[{"category": "X", "probability": "LOW"}]),
             "promptFeedback": {"safetyRatings": [{"category": "X", "probability": "LOW"}]}}
    assert decode(rated).stop_reason.normalized is Stop.END_TURN


@each_row(("reason", "stop"), [("BRAND_NEW", Stop.UNKNOWN), (99, Stop.UNKNOWN), ("stop", Stop.UNKNOWN),
                                              (True, Stop.UNKNOWN), ([1], Stop.UNKNOWN), ("", Stop.INTERRUPTED)])
def test_a_reason_that_no_row_knows(reason: Any, stop: Stop) -> None:
    response = decode(body(HELLO, reason=reason))
    assert response.stop_reason.normalized is stop
    assert response.raw_stop_reason == (reason if isinstance(reason, str) else json.dumps(reason))


@pytest.mark.parametrize("data", [sse(body(HELLO)), array(body(HELLO)), json.dumps(body(HELLO)).encode()])
def test_no_finish_reason_is_no_end(data: bytes) -> None:
    response = decode(data)
    assert response.stop_reason.normalized is Stop.INTERRUPTED
    assert response.raw_stop_reason is None
    assert response.text == "Hello"


# -- what a response says besides ------------------------------------------------------------------------------------


def test_a_whole_body() -> None:
    text = json.dumps(body({"text": "think", "thought": True, "thoughtSignature": "s1"}, HELLO, CALL, reason="STOP",
                           finishMessage="Model generated function call(s)."), indent=2)
    response = decode(text.encode())
    assert response.parts[:2] == (ReasoningPart("think", "s1"), TextPart("Hello"))
    (call,) = response.tool_calls
    assert (call.id, call.name, call.closed, call.form) == (None, "f", True, ArgsForm.OBJECT)
    assert call.arguments is not None
    assert call.arguments.split() == ['{', '"a":', "1", "}"]  # as it stands in the body, line breaks included
    assert call.arguments in text
    assert (response.id, response.model, response.streaming) == ("r1", "gemini-2.5-flash", False)
    assert response.usage == Usage(7, 3)
    assert response.native == {"finishMessage": "Model generated function call(s)."}
    at = response.stop_reason.evidence[0].at
    assert at is not None
    assert at.pointer == "/candidates/0/finishReason"
    assert text.encode()[at.start : at.end] == b'"STOP"'


@pytest.mark.parametrize("make", [sse, array])
def test_a_stream(make: Callable[..., bytes]) -> None:
    data = make(body({"text": "He"}), body({"text": "llo"}), body(CALL), body(reason="STOP"))
    response = decode(data)
    assert response.text == "Hello"
    assert response.streaming
    assert [(call.arguments, call.closed) for call in response.tool_calls] in (
        [('{"a": 1}', True)], [('{\n                "a": 1\n              }', True)]
    )
    at = response.stop_reason.evidence[0].at
    assert at is not None
    event = data[at.start : at.end].removeprefix(b"data: ")
    assert json.loads(event)["candidates"][0]["finishReason"] == "STOP"
    (call,) = response.tool_calls
    assert call.at is not None
    assert call.at.pointer == "/candidates/0/content/parts/0/functionCall"
    assert b'"functionCall"' in data[call.at.start : call.at.end]


def test_thinking_is_output() -> None:
    """thoughtsTokenCount counts against maxOutputTokens (hindsight#3365: 478 + 18 of 500)."""
    counts = {"promptTokenCount": 5, "candidatesTokenCount": 18, "thoughtsTokenCount": 478,
              "cachedContentTokenCount": 2}
    usage = decode({**body(HELLO, reason="MAX_TOKENS"), "usageMetadata": counts}).usage
    assert usage == Usage(5, 496, 478, 2)
    assert usage is not None
    assert usage.visible_tokens == 18
    counts = {"promptTokenCount": 5, "thoughtsTokenCount": 4}
    assert decode({**body(reason="MAX_TOKENS"), "usageMetadata": counts}).usage == Usage(5, 4, 4)
    assert decode({**body(HELLO, reason="STOP"), "usageMetadata": {"trafficType": "ON_DEMAND"}}).usage is None


def test_an_id_may_come_late() -> None:
    bare = {"candidates": [candidate(HELLO)], "usageMetadata": USAGE}
    response = decode(sse(bare, body(HELLO), body(reason="STOP")))
    assert (response.id, response.model, response.text) == ("r1", "gemini-2.5-flash", "HelloHello")


def test_a_candidate_without_an_index_is_the_one_at_its_place() -> None:
    second = {**body(), "candidates": [{**candidate(HELLO), "index": 1}]}
    bare = {**body(), "candidates": [{"content": {"parts": [HELLO]}}]}
    response = decode(sse(second, bare, second))
    assert (response.text, response.other_choices) == ("HelloHello", 1)


def test_a_reason_beside_the_last_text_of_a_candidate_without_an_index_is_read() -> None:
    """JSON of protocol buffers may omit an index of 0; the chunks before have the same members, but for the reason."""
    chunks = [{"candidates": [{"content": {"parts": [{"text": text}], "role": "model"}, **more}],
               "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 5}}
              for text, more in (("One ", {}), ("two ", {}), ("three", {"finishReason": "MAX_TOKENS"}))]
    for data in (sse(*chunks), array(*chunks)):
        response = decode(data)
        assert (response.text, response.stop_reason.raw) == ("One two three", "MAX_TOKENS")


def test_a_candidate_without_an_index_beside_one_with_an_index_has_index_0() -> None:
    """Otherwise two candidates are read as one, and the calls of both may run."""
    second = candidate({"functionCall": {"name": "second", "args": {}}}, reason="STOP") | {"index": 1}
    first = {"content": {"parts": [{"functionCall": {"name": "first", "args": {}}}]}, "finishReason": "STOP"}
    for data in ({"candidates": [second, first]}, sse({"candidates": [second, first]})):
        response = decode(data)
        assert ([call.name for call in response.tool_calls], response.other_choices) == (["second"], 1)


@each_row("indices", [(None, None), ("0", "1"), (0, None), (0, "1"), (None, 0), (1, None, None)])
def test_candidates_whose_indices_are_no_numbers_are_told_apart(indices: tuple[object, ...]) -> None:
    both = [candidate(HELLO, reason="STOP") | {"index": index} for index in indices]
    response = decode({"candidates": both})
    assert (response.text, response.other_choices) == ("Hello", len(indices) - 1)


def test_the_last_usage_counts() -> None:
    first = {**body(HELLO), "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 1}}
    last = body(reason="STOP")
    bare = {**body({"text": "x"}), "usageMetadata": {"trafficType": "ON_DEMAND"}}
    for chunks in ((first, last), (first, first, last), (bare, first, last)):
        assert decode(sse(*chunks)).usage == Usage(7, 3)
    for odd in ({"trafficType": "ON_DEMAND"}, 5, None, []):
        assert decode(sse(first, {**body(HELLO), "usageMetadata": odd}, body(HELLO))).usage == Usage(7, 3)
        assert decode(sse(first, {**body(HELLO), "usageMetadata": odd})).usage == Usage(7, 1)
    silent = {"candidates": [candidate(reason="STOP")], "usageMetadata": {"trafficType": "ON_DEMAND"}}
    assert decode(sse(first, silent)).usage == Usage(7, 1)


def test_reasons_may_repeat_and_content_may_follow() -> None:
    """Recorded from gemini-2.5-flash with code execution: STOP, more content, STOP."""
    once = decode(sse(body(HELLO, reason="STOP"), body(CALL), body({"text": "x"}, reason="STOP")))
    assert "gemini_generate.repeated_reason" in rules(once)
    assert [call.closed for call in once.tool_calls] == [True]
    cut = decode(sse(body(CALL, reason="STOP"), body(CALL)))
    assert [call.closed for call in cut.tool_calls] == [True, False]
    changed = decode(sse(body(HELLO, reason="STOP"), body(reason="MAX_TOKENS")))
    assert changed.stop_reason.normalized is Stop.MAX_TOKENS
    assert "gemini_generate.second_reason" in rules(changed)
    kept = decode(sse(body(HELLO, reason="MAX_TOKENS"), {**body({"text": "x"}), "finishReason": None}))
    assert kept.raw_stop_reason == "MAX_TOKENS"


@each_row("more", [{"text": " more"}, {"text": " more", "thought": True}, CALL,
                                  {"executableCode": {"code": "1", "language": "PYTHON"}}])
def test_content_after_the_last_reason_has_no_end(more: dict[str, Any]) -> None:
    """Of the recorded stream that goes on after STOP, all but the last chunk: it was cut, and no STOP ends the rest."""
    chunks = sse(body(HELLO, reason="STOP"), body(more), body({"text": "x"}, reason="STOP"))
    assert decode(chunks).stop_reason.normalized is Stop.END_TURN
    cut = decode(sse(body(HELLO, reason="STOP"), body(more)))
    assert (cut.stop_reason.normalized, cut.raw_stop_reason) == (Stop.INTERRUPTED, "STOP")
    assert "gemini_generate.goes_on" in rules(cut)
    reading = read("gemini_generate", [sse(body(CALL, reason="STOP"), body(more))])
    assert (reading.stop_reason, {verdict.admission for verdict in reading.calls}) == ("interrupted", {"held"})


@pytest.mark.parametrize("part", [{"text": ""}, {"text": "", "thoughtSignature": "c2ln"}, {"thoughtSignature": "c2ln"}])
def test_a_chunk_without_content_after_the_reason_changes_nothing(part: dict[str, Any]) -> None:
    ended = decode(sse(body(HELLO, reason="STOP"), body(part)))
    assert (ended.stop_reason.normalized, rules(ended)) == (Stop.END_TURN, set())


def usage_body(tokens: int | None, **more: Any) -> dict[str, Any]:
    return {**body(CALL), "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": tokens}, **more}


@pytest.mark.parametrize("between", [(), (body({"text": "x"}),)])
def test_a_chunk_with_a_call_that_came_twice_is_one_call(between: tuple[Any, ...]) -> None:
    """Recorded: each call of an answer raises the count of output tokens, also calls in chunks of their own."""
    end = body(reason="STOP")
    once = decode(sse(usage_body(16), *between, usage_body(16), end))
    assert (len(once.tool_calls), "gemini_generate.chunk_repeated" in rules(once)) == (1, True)
    other = {**usage_body(20), **body({"functionCall": {"name": "other", "args": {}}})}
    again = decode(sse(usage_body(16), other, usage_body(16), other, end))  # as a gateway that asks twice sends them
    assert len(again.tool_calls) == 2
    wrapped = decode(sse(*({"response": usage_body(16)} for _ in range(2)), {"response": end}))
    assert len(wrapped.tool_calls) == 1


@pytest.mark.parametrize(("first", "second"), [(16, 32), (0, 0), (None, None)])
def test_two_equal_calls_without_equal_counts_are_two_calls(first: int | None, second: int | None) -> None:
    """A gateway may count no tokens before the end."""
    twice = decode(sse(usage_body(first), usage_body(second), body(reason="STOP")))
    assert [call.arguments for call in twice.tool_calls] == ['{"a": 1}'] * 2


CODE = {"executableCode": {"code": "print(6 * 7)", "language": "PYTHON"}}
CODE_RESULT = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42"}}


@each_row("code", [CODE, {"executable_code": CODE["executableCode"]}])
@each_row("after", [(), ({"text": "", "thoughtSignature": "c2ln"},), ({"text": "so", "thought": True},)])
def test_a_stream_that_ends_behind_code_was_cut(code: dict[str, Any], after: tuple[dict[str, Any], ...]) -> None:
    """The recorded stream has its middle STOP beside the code; the result and a last STOP follow."""
    middle = sse(body(HELLO), body(code, *after, reason="STOP"))
    cut = decode(middle)
    assert (cut.stop_reason.normalized, cut.raw_stop_reason) == (Stop.INTERRUPTED, "STOP")
    assert "gemini_generate.no_code_result" in rules(cut)
    assert decode(middle + sse(body(CODE_RESULT))).stop_reason.normalized is Stop.INTERRUPTED
    whole = decode(middle + sse(body(CODE_RESULT), body({"text": "42."}, reason="STOP")))
    assert (whole.stop_reason.normalized, "gemini_generate.no_code_result" in rules(whole)) == (Stop.END_TURN, False)


def test_an_answer_whose_code_has_its_result_or_that_came_whole_is_not_cut() -> None:
    for ended in (sse(body(CODE), body(CODE_RESULT, reason="STOP")), body(HELLO, CODE, reason="STOP")):
        assert decode(ended).stop_reason.normalized is Stop.END_TURN


@pytest.mark.parametrize("word", ["MAX_TOKENS", "SAFETY"])
def test_a_reason_that_is_no_end_stays_the_reason_of_what_follows(word: str) -> None:
    assert decode(sse(body(HELLO, reason=word), body({"text": "x"}))).stop_reason == decode(
        sse(body(HELLO, reason=word))).stop_reason


@each_row("empty", [{}, {"content": None}, {"content": {}}, {"content": {"role": "model"}},
                                   {"content": {"parts": []}}, {"content": {"parts": [{"text": ""}]}}])
def test_a_candidate_without_content(empty: dict[str, Any]) -> None:
    """AstrBot PR#6735, req_llm#944, python-genai#1789."""
    ended = {"candidates": [{**empty, "finishReason": "STOP"}]}
    for data in (ended, sse(ended)):
        response = decode(data)
        assert (response.stop_reason.normalized, response.stop_reason.detail) == (Stop.END_TURN, "empty")
        assert response.parts == ()
    cut = decode({"candidates": [{**empty, "finishReason": "MAX_TOKENS"}]})
    assert (cut.stop_reason.normalized, cut.stop_reason.detail) == (Stop.MAX_TOKENS, None)
    assert decode({"candidates": [empty]}).stop_reason.normalized is Stop.INTERRUPTED


def test_no_candidate_at_all() -> None:
    """Nothing says that anything ended: no finish reason, no block reason, no error."""
    for answer in ({"usageMetadata": USAGE, "responseId": "r1"}, {"candidates": []}, {}, {"message": "hello"}):
        for data in (answer, sse(answer), array(answer)):
            response = decode(data)
            assert response.stop_reason.normalized is Stop.INTERRUPTED
            assert (response.raw_stop_reason, response.parts) == (None, ())


def test_snake_case() -> None:
    """Proxies and SDK recordings spell fields as protocol buffers do."""
    call = {"function_call": {"name": "f", "args": {"a": 1}}, "thought_signature": "s"}
    data = {"candidates": [{"content": {"parts": [call]}, "finish_reason": "STOP", "finish_message": "m"}],
            "usage_metadata": {"prompt_token_count": 7, "candidates_token_count": 3, "thoughts_token_count": 2,
                               "cached_content_token_count": 1},
            "model_version": "g", "response_id": "r"}
    for response in (decode(data), decode(sse(data))):
        assert response.raw_stop_reason == "STOP"
        (read,) = response.tool_calls
        assert (read.name, read.arguments, read.signature, read.closed) == ("f", '{"a": 1}', "s", True)
        assert response.usage == Usage(7, 5, 2, 1)
        assert (response.model, response.id, dict(response.native)) == ("g", "r", {"finishMessage": "m"})
        assert "gemini_generate.snake_case" in rules(response)
    blocked = decode({"prompt_feedback": {"block_reason": "SAFETY"}})
    assert blocked.stop_reason.normalized is Stop.SAFETY_BLOCKED


def test_only_the_first_candidate_is_read() -> None:
    other = candidate({"text": "other"}, reason="SAFETY") | {"index": 1}
    whole = {**body(HELLO, reason="STOP")}
    whole["candidates"] = [*whole["candidates"], other]
    response = decode(whole)
    assert (response.text, response.raw_stop_reason, response.other_choices) == ("Hello", "STOP", 1)
    stream = decode(sse(body(HELLO), {"candidates": [other]}, body({"text": "!"}, reason="STOP")))
    assert (stream.text, stream.raw_stop_reason, stream.other_choices) == ("Hello!", "STOP", 1)
    bare = decode({"candidates": [{"content": {"parts": [HELLO]}, "finishReason": "STOP"},
                                  {"content": {"parts": [CALL]}, "finishReason": "SAFETY"}]})
    assert (bare.text, bare.raw_stop_reason, bare.other_choices, bare.tool_calls) == ("Hello", "STOP", 1, ())


@pytest.mark.parametrize(("reason", "said"), [
    ("SAFETY", "candidate 1, which is not read, ended with SAFETY"),
    (None, "candidate 1, which is not read, has no finish reason"), ("STOP", None),
])
def test_a_candidate_that_is_not_read_and_is_not_whole_is_a_finding(reason: str | None, said: str | None) -> None:
    other = candidate({"text": "other"}, reason=reason) | {"index": 1}
    for data in (sse(body(HELLO), {"candidates": [other]}, body(reason="STOP")),
                 {"candidates": [candidate(HELLO, reason="STOP"), other]}):
        found = [each for each in decode(data).findings if each.rule == "gemini_generate.other_candidate"]
        assert [each.message for each in found] == ([] if said is None else [said])
        assert all((each.at is None) is (reason is None) for each in found)


# -- continuation ----------------------------------------------------------------------------------------------------


def test_continuation() -> None:
    paused = body(HELLO, reason="CONTINUATION", continuationToken="dG9r")
    for data in (paused, sse(body({"text": "x"}), paused)):
        response = decode(data)
        assert (response.stop_reason.normalized, response.stop_reason.detail) == (Stop.PAUSED, "token")
        assert response.continuation_token == "dG9r"
        assert response.raw_stop_reason == "CONTINUATION"


def test_a_token_without_a_reason_can_be_resumed() -> None:
    """google-genai 3.4.0 `is_resumable_finish_reason`: a checkpoint before the connection dropped."""
    data = sse(body(HELLO, continuationToken="a"), body({"text": "!"}, continuationToken="b"), body(CALL))
    for end in (TransportEnd.EOF, TransportEnd.RESET):
        response = decode(data, end=end)
        assert (response.stop_reason.normalized, response.stop_reason.detail) == (Stop.PAUSED, "token")
        assert (response.raw_stop_reason, response.continuation_token) == (None, "b")
        assert not response.saw_stop_reason
        assert [call.closed for call in response.tool_calls] == [False]
        assert stop_rules(response) == ["gemini_generate.continuation_token"]


def test_a_checkpoint_before_the_end_is_forgotten() -> None:
    response = decode(sse(body(HELLO, continuationToken="a"), body(reason="STOP")))
    assert (response.stop_reason.normalized, response.continuation_token) == (Stop.END_TURN, None)
    blocked = decode(sse(body(HELLO, continuationToken="a"), {"promptFeedback": {"blockReason": "SAFETY"}}))
    assert blocked.stop_reason.normalized is Stop.SAFETY_BLOCKED


# -- parts -----------------------------------------------------------------------------------------------------------


@each_row("args", ['{"a" : 1.50}', "{}", '{"b":{"c":[1,2]},"a":"\\u00e9€"}', "[1]",
                                  '{"a":1,"a":2}'])
def test_arguments_are_verbatim(args: str) -> None:
    part = '{"functionCall": {"args": ' + args + ', "name": "f", "id": "c1"}}'
    chunk = '{"candidates":[{"content":{"parts":[{"text":"x"},' + part + ']},"finishReason":"STOP"}]}'
    for data in (chunk.encode(), f"data: {chunk}\n\n".encode(), f"[{chunk}]".encode()):
        (call,) = decode(data).tool_calls
        assert call == ToolCall("c1", "f", args, True, form=ArgsForm.OBJECT, at=call.at)


def test_absent_arguments_are_none() -> None:
    """Recorded: functionCall without args (pydantic-ai)."""
    for args in ({}, {"args": None}):
        (call,) = decode(body({"functionCall": {"name": "f", **args}}, reason="STOP")).tool_calls
        assert (call.arguments, call.closed, call.id) == (None, True, None)


def test_arguments_as_a_string() -> None:
    response = decode(body({"functionCall": {"name": "f", "args": '{"a": 1'}}, reason="STOP"))
    assert [(call.arguments, call.form) for call in response.tool_calls] == [('{"a": 1', ArgsForm.STRING)]
    assert "gemini_generate.string_arguments" in rules(response)


def test_a_call_without_a_name() -> None:
    response = decode(body({"functionCall": {"args": {"a": 1}}}, reason="STOP"))
    assert [call.name for call in response.tool_calls] == [""]
    assert "gemini_generate.nameless_call" in rules(response)


def test_calls_under_a_budget_cut_arrive_whole() -> None:
    (call,) = decode(body(CALL, reason="MAX_TOKENS")).tool_calls
    assert call.closed


def test_signatures() -> None:
    response = decode(sse(
        body({"text": "a", "thought": True}), body({"text": "b", "thought": True, "thoughtSignature": "s1"}),
        body({"text": "c", "thought": True}), body({"text": "x"}), body({"text": "y", "thoughtSignature": "s2"}),
        body({"text": "z"}), body({**CALL, "thoughtSignature": "s3"}), body({"text": "", "thoughtSignature": "s4"}),
        body({"thoughtSignature": "s5"}, reason="STOP"),
    ))
    assert [part for part in response.parts if not isinstance(part, ToolCall)] == [
        ReasoningPart("ab", "s1"), ReasoningPart("c"), TextPart("xy"), ReasoningPart("", "s2"), TextPart("z"),
        ReasoningPart("", "s4"), ReasoningPart("", "s5"),
    ]
    assert [call.signature for call in response.tool_calls] == ["s3"]
    assert response.text == "xyz"


def test_an_empty_thought_is_none() -> None:
    """An answer with reasoning may have reached its cap without a cut, so a thought needs a sign."""
    response = decode(sse(body({"text": "", "thought": True}), body({"text": "a"}), body({"text": ""}, reason="STOP")))
    assert response.parts == (TextPart("a"),)


@each_row("kind", ["executableCode", "codeExecutionResult", "inlineData", "fileData", "toolCall",
                                  "toolResponse", "executable_code", "somethingNew"])
def test_parts_that_are_not_interpreted_stay_as_they_are(kind: str) -> None:
    part = '{ "' + kind + '" : {"code": "print(1)\\n", "n": 1.0}, "thoughtSignature": "s"}'
    chunk = '{"candidates":[{"content":{"parts":[{"text":"a"},' + part + ',{"text":"b"}]},"finishReason":"STOP"}]}'
    for data in (chunk.encode(), f"data: {chunk}\n\n".encode()):
        response = decode(data)
        assert response.parts == (TextPart("a"), OpaquePart(kind, part), TextPart("b"))
        assert response.tool_calls == ()


def test_text_with_metadata_is_text() -> None:
    assert decode(body({"text": "a", "partMetadata": {"x": 1}}, reason="STOP")).parts == (TextPart("a"),)


# -- arguments that are streamed value by value ----------------------------------------------------------------------


def call_part(more: bool | None = True, *values: dict[str, Any], **fields: Any) -> dict[str, Any]:
    call: dict[str, Any] = dict(fields)
    if values:
        call["partialArgs"] = list(values)
    if more is not None:
        call["willContinue"] = more
    return {"functionCall": call}


def piece(path: str, text: str, more: bool = True) -> dict[str, Any]:
    value: dict[str, Any] = {"jsonPath": path, "stringValue": text}
    return {**value, "willContinue": True} if more else value


BEGIN = body(call_part(name="f", id="c1"))
VALUES = [
    body(call_part(True, piece("$.recipe.steps[0].text", "Boil \"wa"))),
    body(call_part(True, piece("$.recipe.steps[0].text", "ter\"", more=False))),
    body(call_part(True)),
    body(call_part(True, {"jsonPath": "$.recipe.steps[0].minutes", "numberValue": 12},
                   {"jsonPath": "$.recipe.steps[1]['it''s']".replace("''", "\\'"), "boolValue": False})),
    body(call_part(True, {"jsonPath": '$["n.o"]', "nullValue": "NULL_VALUE"}, piece("$.tail", "é"))),
]
PREFIXES = [
    '{"recipe":{"steps":[{"text":"Boil \\"wa',
    '{"recipe":{"steps":[{"text":"Boil \\"water\\""',
    '{"recipe":{"steps":[{"text":"Boil \\"water\\""',
    '{"recipe":{"steps":[{"text":"Boil \\"water\\"","minutes":12},{"it\'s":false',
    '{"recipe":{"steps":[{"text":"Boil \\"water\\"","minutes":12},{"it\'s":false}]},"n.o":null,"tail":"é',
]
WHOLE = PREFIXES[-1] + '"}'


@each_row("count", range(1, len(VALUES) + 1))
@each_row("reason", [None, "STOP", "MAX_TOKENS"])
def test_a_streamed_call_that_stops_is_an_open_prefix(count: int, reason: str | None) -> None:
    response = decode(sse(BEGIN, *VALUES[:count], *([body(reason=reason)] if reason else [])))
    (call,) = response.tool_calls
    assert (call.id, call.name, call.arguments) == ("c1", "f", PREFIXES[count - 1])
    assert (call.closed, call.form) == (False, ArgsForm.STRING)
    assert not is_json(call.arguments or "")


@pytest.mark.parametrize("end", [call_part(None), call_part(False), call_part(None, piece("$.tail", "", more=False))])
def test_a_streamed_call_that_ends_is_complete(end: dict[str, Any]) -> None:
    finish = [] if "partialArgs" in end["functionCall"] else [body(call_part(True, piece("$.tail", "", more=False)))]
    chunks = [BEGIN, *VALUES, *finish, body(end)]
    for stopped in (False, True):
        (call,) = decode(sse(*chunks, *([body(reason="STOP")] if stopped else []))).tool_calls
        assert (call.arguments, call.form, call.closed) == (WHOLE, ArgsForm.STRING, stopped)
    assert json.loads(WHOLE) == {"recipe": {"steps": [{"text": 'Boil "water"', "minutes": 12}, {"it's": False}]},
                                 "n.o": None, "tail": "é"}


def test_a_string_that_waits_for_more_keeps_the_call_open() -> None:
    """The call says that it is done, its last value says that it is not."""
    (call,) = decode(sse(BEGIN, body(call_part(None, piece("$.a", "x"))), body(reason="STOP"))).tool_calls
    assert (call.arguments, call.closed) == ('{"a":"x', False)


@each_row(("odd", "before", "after"), [
    (call_part(True, piece("$.b", "x")), '{"a":"12","b":"x', ['{"a":"123","b":"x']),
    (call_part(True, piece("$.a", "x", more=False)), '{"a":"12x"', ['{"a":"12x"']),
    (call_part(None, piece("$.a", "x")), '{"a":"12x', ['{"a":"12x', '{"a":"3']),
    (call_part(False, piece("$.a", "x")), '{"a":"12x', ['{"a":"12x', '{"a":"3']),
    (call_part(True, piece("$.a", "x"), piece("$.a", "y")), '{"a":"12xy', ['{"a":"12xy3']),
    (call_part(True, {"jsonPath": "$.a", "numberValue": 1, "willContinue": True}), '{"a":"12', ['{"a":"123']),
    (call_part(True, piece("$.a", "x"), id="c1"), '{"a":"12x', ['{"a":"12x3']),
    ({"text": "between"}, '{"a":"12', ['{"a":"123']),
])
@each_row("reason", [None, "STOP"])
def test_what_comes_between_pieces_of_a_string(
    odd: dict[str, Any], before: str, after: list[str], reason: str | None
) -> None:
    """Pieces that go on with the same string are read in a shorter way; nothing else may pass for one."""
    chunks = [BEGIN, *(body(call_part(True, piece("$.a", text))) for text in "12"), body(odd, reason=reason)]
    response = decode(sse(*chunks))
    assert [call.arguments for call in response.tool_calls] == [before]
    assert response.text == odd.get("text")
    calls = decode(sse(*chunks, body(call_part(True, piece("$.a", "3"))))).tool_calls
    assert [call.arguments for call in calls] == after
    assert not any(call.closed for call in (*response.tool_calls, *calls))


def test_streamed_calls_one_after_another() -> None:
    """As Vertex AI sends them: each ends with an empty functionCall."""
    done = body(call_part(None))
    first, second = (body(call_part(True, piece("$.location", city))) for city in ("Oslo", "Lima"))
    close = body(call_part(True, piece("$.location", "", more=False)))
    begin = body({**call_part(name="weather"), "thoughtSignature": "s"})
    response = decode(sse(begin, first, close, done, begin, second, close, body(call_part(None), reason="STOP")))
    assert [(c.arguments, c.closed, c.signature) for c in response.tool_calls] == [
        ('{"location":"Oslo"}', True, "s"), ('{"location":"Lima"}', True, "s")
    ]
    late = decode(sse(begin, first, body(reason="STOP"), close, done))
    assert [(c.arguments, c.closed) for c in late.tool_calls] == [('{"location":"Oslo"}', False)]
    unfinished = decode(sse(begin, first, begin, second, close, body(call_part(None), reason="STOP")))
    assert [(c.arguments, c.closed) for c in unfinished.tool_calls] == [
        ('{"location":"Oslo', False), ('{"location":"Lima"}', True)
    ]
    assert "gemini_generate.unfinished_call" in rules(unfinished)


def test_a_part_with_the_same_id_goes_on() -> None:
    again = body(call_part(None, piece("$.a", "x", more=False), id="c1", name="f"))
    (call,) = decode(sse(BEGIN, again, body(reason="STOP"))).tool_calls
    assert (call.arguments, call.closed) == ('{"a":"x"}', True)


@each_row(("sent", "arguments", "closed"), [
    ([call_part(name="f")], "{", False),
    ([call_part(name="f"), call_part(None)], None, True),
    ([call_part(name="f", args={"a": 1})], '{"a": 1', False),
    ([call_part(name="f", args={"a": 1}), call_part(None)], '{"a": 1}', True),
    ([call_part(name="f", args={}), call_part(None, piece("$.a", "x", more=False), args={})], '{"a":"x"}', True),
    ([call_part(name="f"), call_part(None, piece("$.a", "x", more=False), args={"b": 1})], '{"a":"x"', False),
])
def test_a_streamed_call_without_values(sent: list[dict[str, Any]], arguments: str | None, closed: bool) -> None:
    (call,) = decode(sse(*[body(part) for part in sent], body(reason="STOP"))).tool_calls
    assert (call.arguments, call.closed) == (arguments, closed)


@each_row("path", ["$.a[5]", "$", "$[0]", "a", "", None, 7, "$.a.b", "$.a[", "$..a", "$['a", "$.a" * 70,
                                  "$.a"])
def test_values_that_fit_nowhere_leave_the_call_open(path: Any) -> None:
    """`$.a` is a finished text already: nothing may be put into it, or in its place."""
    odd = {"jsonPath": path, "stringValue": "x"}
    response = decode(sse(BEGIN, body(call_part(True, piece("$.a", "1", more=False), odd)), body(call_part(None)),
                          body(reason="STOP")))
    (call,) = response.tool_calls
    assert (call.arguments, call.closed) == ('{"a":"1"', False)
    assert "gemini_generate.partial_args" in rules(response)


@each_row("value", [{}, {"numberValue": "12"}, {"numberValue": True}, {"boolValue": 1},
                                   {"willContinue": True}])
def test_a_value_that_is_none_leaves_the_call_open(value: dict[str, Any]) -> None:
    chunks = (BEGIN, body(call_part(None, {"jsonPath": "$.a", **value})), body(reason="STOP"))
    (call,) = decode(sse(*chunks)).tool_calls
    assert (call.arguments, call.closed) == ("{", False)


def test_a_part_that_continues_nothing() -> None:
    response = decode(body(call_part(None), reason="STOP"))
    assert response.tool_calls == ()
    assert "gemini_generate.stray_call" in rules(response)


@pytest.mark.parametrize("key", ["functionCall", "function_call"])
def test_an_empty_call_behind_the_end_is_no_content(key: str) -> None:
    """It ends a streamed call. After the finish reason it says nothing; a call that waits for it is never whole."""
    stray = decode(sse(body({"text": "Done."}), body(reason="STOP"), body({key: {}})))
    assert (stray.text, stray.stop_reason.normalized) == ("Done.", Stop.END_TURN)
    value = body(call_part(True, piece("$.a", "1", more=False)))
    (call,) = decode(sse(BEGIN, value, body(reason="STOP"), body({key: {}}))).tool_calls
    assert not call.closed
    more = decode(sse(body({"text": "Done."}), body(reason="STOP"), body({key: {}, "inlineData": {}})))
    assert more.stop_reason.normalized is Stop.INTERRUPTED


@each_row("word", ["1", "2147483647", "9" * 5_000, "007", "STOP"])
def test_a_word_goes_back_as_it_came(word: str) -> None:
    """As a number where it was one, and as a text where it has more digits than a number can."""
    sent = int(word) if word in ("1", "2147483647") else word
    once = decode(body({"text": "a"}, reason=sent))
    again = decode(b"".join(encode(once)))
    assert again.stop_reason.raw == once.stop_reason.raw == word
    failed = decode({"error": {"code": sent, "message": "m"}})
    assert json.loads(b"".join(encode(failed)))["error"]["code"] == sent


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-99, 99), st.text(max_size=9)),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3),
        st.dictionaries(st.text(min_size=1, max_size=3), inner, min_size=1, max_size=3),
    ),
    max_leaves=6,
)


@given(values.filter(lambda value: isinstance(value, dict)), st.integers(1, 4))
def test_any_object_comes_together(value: dict[str, Any], size: int) -> None:
    parts: list[dict[str, Any]] = []

    def walk(path: str, inner: Any) -> None:
        if isinstance(inner, dict):
            for key, member in inner.items():
                walk(f"{path}[{json.dumps(key)}]", member)
        elif isinstance(inner, list):
            for index, member in enumerate(inner):
                walk(f"{path}[{index}]", member)
        elif isinstance(inner, str):
            parts.extend(piece(path, inner[at : at + size]) for at in range(0, len(inner), size))
            parts.append(piece(path, "", more=False))
        else:
            name = "nullValue" if inner is None else "boolValue" if isinstance(inner, bool) else "numberValue"
            parts.append({"jsonPath": path, name: "NULL_VALUE" if inner is None else inner})

    walk("$", value)
    chunks = [BEGIN, *(body(call_part(True, part)) for part in parts), body(call_part(None), reason="STOP")]
    (call,) = decode(sse(*chunks)).tool_calls
    assert json.loads(call.arguments or "") == value
    assert call.closed
    for count in range(len(parts)):
        (cut,) = decode(sse(*chunks[: 1 + count])).tool_calls
        assert not cut.closed
        assert not is_json(cut.arguments or "")


# -- errors and cuts -------------------------------------------------------------------------------------------------

ERROR = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}


@each_row("data", [json.dumps(ERROR).encode(), array(ERROR), sse(ERROR),
                                  json.dumps(ERROR, indent=2).encode()])
def test_errors(data: bytes) -> None:
    response = decode(data)
    assert response.error == ProviderError("The model is overloaded.", "UNAVAILABLE", "503", retryable=True)
    assert (response.stop_reason.normalized, response.stop_reason.detail) == (Stop.ERROR, "retryable")


def test_an_error_in_the_middle_of_a_stream() -> None:
    for tail in (sse(ERROR), json.dumps(ERROR, indent=2).encode()):
        response = decode(sse(body(CALL)) + tail)
        assert response.stop_reason.normalized is Stop.ERROR
        assert [call.closed for call in response.tool_calls] == [False]


def test_http_errors() -> None:
    invalid = {"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}}
    response = decode(invalid, http_status=400)
    assert (response.stop_reason.normalized, response.stop_reason.detail) == (Stop.ERROR, "fatal")
    words = "The input token count (9) exceeds the maximum number of tokens allowed (5)."
    too_long = {"error": {"code": 400, "message": words, "status": "INVALID_ARGUMENT"}}
    assert decode(too_long, http_status=400).stop_reason.normalized is Stop.CONTEXT_WINDOW_EXCEEDED
    assert decode(b"<html>Bad Gateway</html>", http_status=502).stop_reason.detail == "retryable"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_cut_anywhere_a_stream_is_unfinished(end: str) -> None:
    chunks = (body({"text": "é€"}), body(CALL, {"text": "x"}), body(reason="STOP"))
    data = sse(*chunks, end=end)
    bound = len(sse(*chunks, end="")) + 2 * len(end) * 2
    for cut in range(len(data) + 1):
        response = decode(data[:cut])
        if cut < bound:
            assert response.stop_reason.normalized is Stop.INTERRUPTED, cut
            assert not any(call.closed for call in response.tool_calls)
        else:
            assert response.stop_reason.normalized is Stop.END_TURN


def test_cut_anywhere_an_array_is_unfinished() -> None:
    data = array(body({"text": "é€"}), body(CALL), body(reason="STOP"))
    bound = len(data) - len(b"\n]")
    for cut in range(1, len(data)):
        response = decode(data[:cut])
        assert not response.saw_done
        if cut < bound:
            assert response.stop_reason.normalized is Stop.INTERRUPTED, cut
            assert "cut" in stop_rules(response)
            assert not any(call.closed for call in response.tool_calls)
    assert decode(data).saw_done
    no_reason = decode(array(body(CALL), closed=False))
    assert no_reason.stop_reason.normalized is Stop.INTERRUPTED
    assert stop_rules(no_reason) == ["absent", "cut"]


def test_cut_anywhere_a_body_is_unfinished() -> None:
    data = json.dumps(body(CALL, reason="STOP")).encode()
    for cut in range(1, len(data)):
        response = decode(data[:cut])
        assert response.stop_reason.normalized is Stop.INTERRUPTED
        assert response.tool_calls == ()


@settings(max_examples=60)
@given(st.data())
def test_any_chunking_decodes_alike(data: st.DataObject) -> None:
    chunks = [body({"text": "é€😀"}), BEGIN, *VALUES, body(call_part(None)), body(CALL), body(reason="STOP")]
    stream = data.draw(st.sampled_from([sse(*chunks), sse(*chunks, end="\n"), array(*chunks),
                                        json.dumps(body(HELLO, CALL, reason="STOP"), indent=1).encode()]))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    decoder = Decoder()
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        decoder.feed(stream[start:end])
    response, whole = decoder.close(), decode(stream)
    assert essence(response) == essence(whole)
    assert (response.stop_reason, response.findings, response.size) == (whole.stop_reason, whole.findings, whole.size)
    assert [call.at for call in response.tool_calls] == [call.at for call in whole.tool_calls]


leaves = st.one_of(st.none(), st.booleans(), st.integers(-2, 20), st.sampled_from(["", "STOP", "x", "$.a"]))
names = st.sampled_from([
    "candidates", "content", "parts", "text", "thought", "functionCall", "args", "name", "partialArgs", "jsonPath",
    "stringValue", "willContinue", "finishReason", "index", "promptFeedback", "blockReason", "usageMetadata",
    "promptTokenCount", "continuationToken", "error", "finish_reason",
])
odd = st.recursive(
    leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=5)),
    max_leaves=25,
)
with_parts = st.builds(lambda parts: {"candidates": [{"content": {"parts": parts}}]}, odd)


@settings(max_examples=60)
@given(st.lists(st.one_of(odd, with_parts), max_size=4))
def test_odd_shapes_break_nothing(chunks: list[Any]) -> None:
    for data in (sse(*chunks), array(*chunks), *(json.dumps(chunk).encode() for chunk in chunks)):
        try:
            response = decode(data)
        except DecodeError:
            continue
        if not response.saw_stop_reason:
            assert response.stop_reason.normalized is not Stop.END_TURN
            assert not any(call.closed for call in response.tool_calls)


@given(st.binary(max_size=80))
def test_fuzzed_bytes_raise_only_the_typed_error(data: bytes) -> None:
    for start in (b"", b"data: ", b'[{"candidates":', b'{"candidates":[{"content":{"parts":['):
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
    raw = draw(st.sampled_from([None, "STOP", "MAX_TOKENS", "SAFETY", "CONTINUATION", "1", "2", "NEW", ""]))
    made: list[Any] = []
    for kind in draw(st.lists(st.sampled_from(["text", "thought", "call", "opaque"]), max_size=6)):
        signature = draw(st.one_of(st.none(), word))
        if kind == "text" and not (made and isinstance(made[-1], TextPart)):
            made.append(TextPart(draw(text)))
        elif kind == "thought" and not (made and isinstance(made[-1], ReasoningPart) and not made[-1].signature):
            made.append(ReasoningPart(draw(text), signature))
        elif kind == "call":
            made.append(ToolCall(draw(st.one_of(st.none(), word)), draw(word), draw(st.one_of(st.none(), arguments)),
                                 closed=bool(raw), form=ArgsForm.OBJECT, signature=signature))
        elif kind == "opaque":
            made.append(OpaquePart("inlineData", '{"inlineData": {\n"mimeType": "image/png"}}'))
    stop = decode(body(HELLO, reason=raw)).stop_reason
    detail = "empty" if stop.normalized is Stop.END_TURN and not made else stop.detail
    reasoning = draw(st.one_of(st.none(), st.integers(0, 50)))
    usage = draw(st.one_of(st.none(), st.builds(
        Usage, st.one_of(st.none(), st.integers(0, 99)), st.integers(50, 99), st.just(reasoning),
        st.one_of(st.none(), st.integers(0, 9)))))
    return ChatResponse(
        api="gemini_generate", parts=tuple(made), stop_reason=StopReason(stop.normalized, raw, detail), usage=usage,
        id=draw(st.one_of(st.none(), word)), model=draw(st.one_of(st.none(), word)),
        native=draw(st.sampled_from([{}, {"finishMessage": "why"}])) if raw else {},
        continuation_token="dG9r" if raw == "CONTINUATION" else None,
    )


@settings(max_examples=80)
@given(responses(), st.booleans(), st.integers(1, 40))
def test_what_is_encoded_is_decoded_again(response: ChatResponse, stream: bool, chunk: int) -> None:
    data = b"".join(encode(response, stream=stream, chunk=chunk))
    if data:
        assert essence(decode(data), LOSES) == essence(response, LOSES)
    else:
        assert [response.parts, response.usage, response.id, response.model] == [(), None, None, None]


@each_row("data", [
    {"promptFeedback": {"blockReason": "MODEL_ARMOR", "blockReasonMessage": "no"}, "responseId": "r"},
    body(HELLO, continuationToken="a"), {"usageMetadata": USAGE}, {"candidates": [{"finishReason": "STOP"}]}, ERROR,
    {**body(CALL), **ERROR}, body(HELLO, reason=10), body(HELLO),
    sse(body(call_part(None, piece("$.a", "x", more=False), name="f"), reason="STOP")),
])
def test_odd_ends_survive(data: Any) -> None:
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
    ("opaque", {"parts": (OpaquePart("web_search", '{"type": "web_search"}'),)}),
    ("refusal", {"refusal": "I cannot"}),
    ("native.stop_sequence", {"native": {"stop_sequence": "x"}}),
    ("usage.reasoning_tokens", {"usage": Usage(1, 2, 3)}),
    ("stop_reason", {"stop_reason": StopReason(Stop.MAX_TOKENS)}),
])
def test_what_cannot_be_carried_is_refused(what: str, fields: dict[str, Any]) -> None:
    response = ChatResponse(**{"api": "gemini_generate", "stop_reason": StopReason(Stop.END_TURN, "STOP"), **fields})
    for stream in (False, True):
        with pytest.raises(EncodeError) as caught:
            list(encode(response, stream=stream))
        assert caught.value.what == what


def test_the_stream_has_one_item_an_event() -> None:
    response = decode(body({"text": "0123456789"}, CALL, reason="STOP"))
    events = list(encode(response, stream=True, chunk=4))
    assert len(events) == 3 + 1 + 1
    assert all(event.startswith(b"data: ") and event.endswith(b"\r\n\r\n") for event in events)


# -- the official SDK ------------------------------------------------------------------------------------------------


def sdk(data: bytes, streamed: bool) -> list[Any]:
    genai = pytest.importorskip("google.genai")
    try:
        import httpx2 as http
    except ImportError:
        import httpx as http

    def answer(request: Any) -> Any:
        return http.Response(200, headers={"content-type": "text/event-stream"}, content=data)

    client = http.Client(transport=http.MockTransport(answer))
    options = genai.types.HttpOptions(httpx_client=client, base_url="http://localhost")
    models = genai.Client(api_key="none", http_options=options).models
    if streamed:
        return list(models.generate_content_stream(model="m", contents="x"))
    return [models.generate_content(model="m", contents="x")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("streamed", [False, True])
def test_the_official_sdk_reads_what_is_encoded(streamed: bool) -> None:
    sent = decode(body({"text": "thought", "thought": True, "thoughtSignature": "c2ln"}, {"text": "Hello é"},
                       {"functionCall": {"id": "c1", "name": "f", "args": {"a": [1, "x"]}}, "thoughtSignature": "c2ln"},
                       reason="STOP", finishMessage="why"))
    chunks = sdk(b"".join(encode(sent, stream=streamed, chunk=3)), streamed)
    parts = [part for chunk in chunks for part in (chunk.candidates[0].content.parts or [])]
    assert "".join(part.text for part in parts if part.text and not part.thought) == "Hello é"
    assert "".join(part.text for part in parts if part.text and part.thought) == "thought"
    assert [(p.function_call.id, p.function_call.name, p.function_call.args) for p in parts if p.function_call] == [
        ("c1", "f", {"a": [1, "x"]})
    ]
    assert {part.thought_signature for part in parts if part.thought_signature} == {b"sig"}
    last = chunks[-1]
    assert last.candidates[0].finish_reason.value == "STOP"
    assert (last.usage_metadata.prompt_token_count, last.usage_metadata.candidates_token_count) == (7, 3)
    assert (last.model_version, last.response_id) == ("gemini-2.5-flash", "r1")


# -- requests --------------------------------------------------------------------------------------------------------

REQUEST = {
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "contents": [
        {"role": "user", "parts": [{"text": "Weather?"}, {"inlineData": {"mimeType": "image/png", "data": "AA=="}}]},
        {"role": "model", "parts": [{"text": "hm", "thought": True, "thoughtSignature": "s1"},
                                    {"functionCall": {"id": "c1", "name": "w", "args": {"city": "Paris"}},
                                     "thoughtSignature": "s2"}]},
        {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "w", "response": {"output": "sunny"}}},
                                   {"functionResponse": {"name": "w", "response": {"error": "no"}}},
                                   {"functionResponse": {"name": "w", "response": {"t": 1}}}]},
    ],
    "tools": [
        {"functionDeclarations": [
            {"name": "w", "description": "d", "parameters": {"type": "OBJECT", "properties": {}}},
            {"name": "v", "parametersJsonSchema": {"type": "object"}}, {"name": "u"}]},
        {"googleSearch": {}},
    ],
    "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["w"]}},
    "generationConfig": {"maxOutputTokens": 500, "candidateCount": 2},
}
URL = "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"


def test_read_request() -> None:
    request = read_request(REQUEST, URL)
    assert [message.role for message in request.messages] == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL]
    system, user, model, tool = request.messages
    assert system.text == "Be brief."
    assert user.parts[1] == OpaquePart("inlineData", '{"inlineData":{"mimeType":"image/png","data":"AA=="}}')
    assert model.parts[0] == ReasoningPart("hm", "s1")
    assert model.tool_calls == (
        ToolCall("c1", "w", '{"city":"Paris"}', True, form=ArgsForm.OBJECT, signature="s2"),
    )
    assert [(r.call_id, r.name, r.text, r.is_error) for r in tool.results] == [
        ("c1", "w", "sunny", False), (None, "w", "no", True), (None, "w", '{"t":1}', False)
    ]
    assert [(t.name, t.dialect, t.kind, t.schema is None) for t in request.tools] == [
        ("w", "openapi", CallKind.FUNCTION, False), ("v", "json_schema", CallKind.FUNCTION, False),
        ("u", "json_schema", CallKind.FUNCTION, True), ("googleSearch", "json_schema", CallKind.SERVER, True),
    ]
    assert (request.model, request.stream, request.tool_choice) == ("gemini-2.5-flash", True, "tool:w")
    assert (request.max_tokens, request.n, request.continuation_token) == (500, 2, None)


@each_row(("change", "field", "value"), [
    ({"toolConfig": {"functionCallingConfig": {"mode": "AUTO"}}}, "tool_choice", "auto"),
    ({"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}, "tool_choice", "any"),
    ({"tool_config": {"function_calling_config": {"mode": "NONE"}}, "toolConfig": None}, "tool_choice", "none"),
    ({"toolConfig": {"functionCallingConfig": {"mode": "VALIDATED"}}}, "tool_choice", "auto"),
    ({"toolConfig": {}}, "tool_choice", None),
    ({"generationConfig": None, "generation_config": {"max_output_tokens": 9}}, "max_tokens", 9),
    ({"generationConfig": None, "config": {"max_output_tokens": 8}}, "max_tokens", 8),
    ({"generationConfig": {}}, "max_tokens", None),
    ({"continuationToken": "dG9r"}, "continuation_token", "dG9r"),
])
def test_read_request_in_other_spellings(change: dict[str, Any], field: str, value: Any) -> None:
    assert getattr(read_request({**REQUEST, **change}, URL), field) == value


def test_a_request_to_code_assist_is_the_one_inside_it() -> None:
    """Gemini CLI after a Google login; the path names no model."""
    url = "https://cloudcode-pa.googleapis.com/v1internal:streamGenerateContent?alt=sse"
    asked = read_request({"model": "gemini-2.5-pro", "project": "p", "user_prompt_id": "u", "request": REQUEST}, url)
    plain = read_request(REQUEST, URL)
    assert (asked.model, asked.stream) == ("gemini-2.5-pro", True)
    assert (asked.messages, asked.tools, asked.max_tokens, asked.extra) == (
        plain.messages, plain.tools, plain.max_tokens, plain.extra)
    assert asked.messages
    assert read_request({**REQUEST, "request": {"contents": []}}, URL).messages == plain.messages


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_of_code_assist_is_the_one_inside_it(streamed: bool) -> None:
    chunks = [body({"text": "Hi"}), body({"functionCall": {"name": "f", "args": {"n": 1}}}, reason="MAX_TOKENS")]
    wrapped = [{"response": chunk, "traceId": "t"} for chunk in chunks]
    plain = decode(sse(*chunks) if streamed else chunks[1])
    found = decode(sse(*wrapped) if streamed else wrapped[1])
    assert essence(found) == essence(plain)
    assert found.tool_calls[0].arguments == '{"n": 1}'
    assert found.stop_reason.normalized is Stop.MAX_TOKENS
    assert not found.findings


def test_read_request_elsewhere() -> None:
    vertex = "https://l-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/m:generateContent"
    assert (read_request({}, vertex).model, read_request({}, vertex).stream) == ("m", False)
    assert read_request({"model": "models/m", "contents": ["hi"]}).messages[0].text == "hi"
    assert read_request({"model": "models/m"}).model == "m"
    assert PATHS[0].search(URL)
    assert PATHS[0].search(vertex)
    assert not PATHS[0].search("https://x/v1beta/models/m:countTokens")


@settings(max_examples=80)
@given(st.dictionaries(st.sampled_from(sorted(REQUEST)), st.one_of(odd, st.lists(odd, max_size=2)), max_size=5))
def test_odd_requests_break_nothing(request: dict[str, Any]) -> None:
    assert read_request(request).api == "gemini_generate"


# -- recognition -----------------------------------------------------------------------------------------------------


@each_row("value", [body(HELLO), {"promptFeedback": {"blockReason": "SAFETY"}}, {"usageMetadata": USAGE},
                                   ERROR, {"candidates": [], "usage_metadata": {}}])
def test_its_own(value: dict[str, Any]) -> None:
    assert recognises(value)
    assert not recognises(value, "message_start")


@each_row("value", [{}, {"choices": []}, {"type": "message"}, {"candidates": "x"}, {"candidates": [1]},
                                   {"error": {"message": "x", "type": "y", "code": None}},
                                   {"message": {}, "done": True},
                                   {"uuid": "u", "message": {"role": "model"}, "usageMetadata": USAGE}])
def test_strangers(value: dict[str, Any]) -> None:
    assert not recognises(value)


# -- recorded traffic ------------------------------------------------------------------------------------------------


def test_recorded_traffic(traffic_of: Callable[[str], list[Any]]) -> None:
    exchanges = traffic_of("gemini_generate")
    for exchange in exchanges:
        response = decode(exchange.body, http_status=exchange.status, headers=exchange.headers)
        facts = exchange.expected
        raw = facts["raw_stop_reasons"][0] if facts["raw_stop_reasons"] else None
        assert response.raw_stop_reason == (None if raw is None else str(raw)), exchange.id
        assert len(response.tool_calls) == len(facts["tools"]), exchange.id
        streamed_values = "partialArgs" in facts["other_fields"]
        for call, fact in zip(response.tool_calls, facts["tools"], strict=True):
            assert call.name == fact["name"]
            assert call.closed, exchange.id
            value = json.loads(call.arguments) if call.arguments is not None else {}
            if streamed_values:
                # The independent reader does not put partialArgs together; it saw no args and wrote {}.
                assert fact["args"] == "{}"
                assert value
            else:
                written = json.dumps(value)[:400], json.dumps(value, ensure_ascii=False)[:400]
                assert fact["args"] in written, exchange.id
                assert call.arguments is None or call.arguments.encode() in exchange.body
        for stream in (False, True):
            again = decode(b"".join(encode(response, stream=stream)), http_status=exchange.status)
            assert essence(again, LOSES) == essence(response, LOSES), exchange.id
    assert len(exchanges) > 100


def test_recorded_kinds(traffic_of: Callable[[str], list[Any]]) -> None:
    wanted = {
        "truncated_text": {Stop.MAX_TOKENS}, "truncated_empty": {Stop.MAX_TOKENS}, "ok_text": {Stop.END_TURN},
        "tool_call": {Stop.END_TURN}, "malformed_tool": {Stop.MALFORMED_TOOL_CALL},
        "filtered_or_refused": {Stop.SAFETY_BLOCKED}, "http_error": {Stop.ERROR},
    }
    for exchange in traffic_of("gemini_generate"):
        response = decode(exchange.body, http_status=exchange.status)
        for kind in exchange.expected["kinds"]:
            assert response.stop_reason.normalized in wanted[kind], exchange.id


def test_recorded_requests(traffic_of: Callable[[str], list[Any]]) -> None:
    for exchange in traffic_of("gemini_generate"):
        request = read_request(exchange.request, exchange.url)
        if exchange.request.get("contents") and exchange.status == 200:
            assert request.messages, exchange.id
            assert request.model


def test_places_are_in_the_body() -> None:
    data = "\ufeff".encode() + sse(body({"text": "é"}), body(CALL), body(reason="MAX_TOKENS"))
    response = decode(data)
    (evidence,) = response.stop_reason.evidence
    assert evidence.at == At(ExchangePart.BODY, data.rindex(b"data: "), len(data) - 4, "/candidates/0/finishReason")
    with_bom = "\ufeff".encode() + json.dumps(body(HELLO, reason="STOP")).encode()
    (whole,) = decode(with_bom).stop_reason.evidence
    assert whole.at is not None
    assert with_bom[whole.at.start : whole.at.end] == b'"STOP"'


@each_row(("value", "ours"), [
    ({"candidates": [{"name": "Ada", "score": 0.9}]}, False),
    ({"candidates": [{"content": "a hit of a search", "index": 0}]}, False),
    ({"candidates": []}, False),
    ({"candidates": [5, {"content": {"parts": [HELLO]}}]}, True),
    ({"candidates": [{"finishReason": "SAFETY"}]}, True),
    ({"candidates": [{"finish_reason": 3}]}, True),
    ({"candidates": [{}], "modelVersion": "g"}, True),
    ({"candidates": [], "usage_metadata": {}}, True),
])
def test_candidates_of_other_services_are_none_of_its_own(value: dict[str, Any], ours: bool) -> None:
    assert recognises(value) is ours


@pytest.mark.parametrize("stream", [sse, array])
def test_what_another_response_says_behind_the_end_is_no_part_of_the_answer(stream: Any) -> None:
    """Text may follow a finish reason under the same id, as beside a call; under another id it is another answer."""
    first = body({"text": "One."}, reason="STOP")
    other = [{**body({"text": text}, reason=reason), "responseId": "r2"}
             for text, reason in (("Two.", None), ("3", "STOP"))]
    read = decode(stream(first, *other))
    assert (read.text, "frame.after_end" in rules(read)) == ("One.", True)
    assert decode(stream(first, body({"text": "Two."}))).text == "One.Two."
