"""An answer that says two words about its end: a clean one never hides a cut or a failure that was said before it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from loop_core import decode_response, read
from loop_core.values import Stop
from loop_core.wire.eventstream import event_frame

Event = Mapping[str, Any]


def sse(*events: Event) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def lines(*events: Event) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def messages(*words: str) -> bytes:
    return sse(
        {"type": "message_start", "message": {"id": "m", "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0,
         "content_block": {"type": "tool_use", "id": "t", "name": "erase", "input": {}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"n": 1}'}},
        {"type": "content_block_stop", "index": 0},
        *({"type": "message_delta", "delta": {"stop_reason": word}} for word in words),
        {"type": "message_stop"},
    )


def gemini(*words: str) -> bytes:
    call = {"content": {"parts": [{"functionCall": {"name": "erase", "args": {"n": 1}}}]}, "index": 0}
    return sse({"candidates": [call]}, *({"candidates": [{"index": 0, "finishReason": word}]} for word in words))


def responses(*words: str) -> bytes:
    call = {"type": "function_call", "id": "f", "call_id": "c", "name": "erase", "arguments": '{"n": 1}',
            "status": "completed"}
    ends = []
    for word in words:
        status, _, reason = word.partition(":")
        details = {"incomplete_details": {"reason": reason}} if reason else {}
        ends.append({"type": f"response.{status}",
                     "response": {"id": "r", "status": status, "output": [call], **details}})
    return sse({"type": "response.created", "response": {"id": "r", "status": "in_progress"}}, *ends)


def interactions(*words: str) -> bytes:
    return sse(
        {"event_type": "interaction.created", "interaction": {"id": "i", "status": "in_progress"}},
        {"event_type": "step.start", "index": 0,
         "step": {"type": "function_call", "id": "c", "name": "erase", "arguments": {"n": 1}}},
        {"event_type": "step.stop", "index": 0},
        *({"event_type": "interaction.completed", "interaction": {"id": "i", "status": word}} for word in words),
    )


def converse(*words: str) -> bytes:
    return lines(
        {"messageStart": {"role": "assistant"}},
        {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "t", "name": "erase"}}}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"toolUse": {"input": '{"n": 1}'}}}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        *({"messageStop": {"stopReason": word}} for word in words),
    )


def invocation(*words: str) -> bytes:
    from base64 import b64encode

    texts = [line.removeprefix(b"data: ") for line in messages(*words).split(b"\n\n") if line]
    return b"".join(event_frame("chunk", json.dumps({"bytes": b64encode(text).decode()}).encode()) for text in texts)


def ollama(*words: str) -> bytes:
    call = {"function": {"name": "erase", "arguments": {"n": 1}}}
    return lines(
        {"model": "m", "message": {"role": "assistant", "content": "", "tool_calls": [call]}, "done": False},
        *({"model": "m", "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": word}
          for word in words),
    )


def cohere(*words: str) -> bytes:
    call = {"id": "t", "type": "function", "function": {"name": "erase", "arguments": '{"n": 1}'}}
    return sse(
        {"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": call}}},
        {"type": "tool-call-end", "index": 0},
        *({"type": "message-end", "delta": {"finish_reason": word}} for word in words),
    )


def completion(*words: str) -> bytes:
    return sse({"type": "completion", "completion": " Hello", "stop_reason": None},
               *({"type": "completion", "completion": "", "stop_reason": word} for word in words))


CASES = [
    pytest.param("anthropic_messages", messages, "max_tokens", "tool_use", Stop.MAX_TOKENS, id="messages"),
    pytest.param("gemini_generate", gemini, "SAFETY", "STOP", Stop.SAFETY_BLOCKED, id="gemini"),
    pytest.param("openai_responses", responses, "incomplete:max_output_tokens", "completed", Stop.MAX_TOKENS,
                 id="responses"),
    pytest.param("openai_responses", responses, "incomplete", "completed", Stop.INTERRUPTED, id="responses, no reason"),
    pytest.param("gemini_interactions", interactions, "incomplete", "requires_action", Stop.MAX_TOKENS,
                 id="interactions"),
    pytest.param("bedrock_converse", converse, "malformed_tool_use", "tool_use", Stop.MALFORMED_TOOL_CALL,
                 id="converse"),
    pytest.param("bedrock_invoke", invocation, "max_tokens", "tool_use", Stop.MAX_TOKENS, id="invoke"),
    pytest.param("ollama_chat", ollama, "length", "stop", Stop.MAX_TOKENS, id="ollama"),
    pytest.param("cohere_chat", cohere, "ERROR_LIMIT", "TOOL_CALL", Stop.CONTEXT_WINDOW_EXCEEDED, id="cohere"),
    pytest.param("anthropic_complete", completion, "max_tokens", "stop_sequence", Stop.MAX_TOKENS, id="completions"),
]


@pytest.mark.parametrize(("api", "stream", "cut", "clean", "meant"), CASES)
def test_a_clean_word_does_not_hide_a_cut_before_it(api: str, stream: Any, cut: str, clean: str, meant: Stop) -> None:
    body = stream(cut, clean)
    found = read(api, body)
    assert (found.raw, found.stop_reason) == (clean, meant)
    assert not any(verdict.admission == "ready" for verdict in found.calls)
    seen = next(each for each in found.evidence if each.rule == f"{api}.earlier_reason")
    word = cut.partition(":")[2] or cut
    if api != "bedrock_invoke":  # a chunk holds its event in base64
        assert seen.at is not None
        assert word.encode() in body[seen.at.start : seen.at.end]
    assert read(api, stream(clean, cut)).stop_reason == meant


@pytest.mark.parametrize(("api", "stream", "cut", "clean", "meant"), CASES)
def test_an_empty_word_is_no_word_about_the_end(api: str, stream: Any, cut: str, clean: str, meant: Stop) -> None:
    assert not decode_response(api, stream("")).saw_stop_reason
    assert decode_response(api, stream(clean)).saw_stop_reason


@pytest.mark.parametrize(("api", "stream", "cut", "clean", "meant"), CASES)
def test_the_same_word_twice_is_one_word(api: str, stream: Any, cut: str, clean: str, meant: Stop) -> None:
    twice, once = read(api, stream(clean, clean)), read(api, stream(clean))
    assert (twice.stop_reason, twice.raw) == (once.stop_reason, once.raw) == (twice.stop_reason, clean)
    assert twice.stop_reason in (Stop.TOOL_CALL, Stop.END_TURN)


@pytest.mark.parametrize("word", ["CONTINUATION", "FINISH_REASON_UNSPECIFIED"])
def test_a_pause_and_an_unset_word_are_taken_back(word: str) -> None:
    assert read("gemini_generate", gemini(word, "STOP")).stop_reason is Stop.TOOL_CALL


def restart(key: str) -> bytes:
    """Messages of which the second begins before the first has ended, with the key of the second."""
    first, second = messages("tool_use"), messages("tool_use").replace(b'"id": "m"', f'"id": "{key}"'.encode())
    return first[: first.index(b'data: {"type": "message_delta"')] + second.replace(b'"index": 0', b'"index": 1')


def test_a_word_is_about_the_message_that_it_ends() -> None:
    found = read("anthropic_messages", restart("n"))
    assert [verdict.admission for verdict in found.calls] == ["held"]
    assert "anthropic_messages.second_message" in {each.rule for each in found.findings}
    same = read("anthropic_messages", restart("m"))
    assert [verdict.admission for verdict in same.calls] == ["ready"], "the call that both hold has one id"


def test_an_empty_word_takes_none_back() -> None:
    assert read("gemini_generate", gemini("STOP", "")).stop_reason is Stop.TOOL_CALL
    assert read("gemini_generate", gemini("MAX_TOKENS", "")).stop_reason is Stop.MAX_TOKENS
