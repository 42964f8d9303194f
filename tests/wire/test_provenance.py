"""Byte provenance: the pieces of a fact, as JSON decodes them, are the fact; every byte knows what it became.

The expected slices are written by hand, as they stand in the body.
"""

from __future__ import annotations

import json
import re
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from inspector.sessions.provenance import Provenance, provenance
from loop_core.errors import LoopError
from loop_core.values import ChatResponse, Usage
from loop_core.wire import FORMATS, decode, wire
from tests.scenes.rows import each_row

Recorded = Callable[[str], Sequence[Any]]


def sse(*events: Any, named: bool = False) -> bytes:
    head = ("event: {}\n" if named else "").format
    return "".join(f"{head(event.get('type'))}data: {json.dumps(event)}\n\n" for event in events).encode()


def lines(*events: Any) -> bytes:
    return "".join(json.dumps(event) + "\n" for event in events).encode()


def whole(value: Any) -> bytes:
    return json.dumps(value).encode()


def frame(kind: str, payload: dict[str, Any], *, message: str = "event", body: bytes | None = None) -> bytes:
    """One frame of an AWS event stream."""
    headers = b""
    for key, value in ((f":{message}-type", kind), (":message-type", message)):
        headers += bytes([len(key)]) + key.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
    body = json.dumps(payload).encode() if body is None else body
    head = struct.pack(">II", 16 + len(headers) + len(body), len(headers))
    made = head + struct.pack(">I", zlib.crc32(head)) + headers + body
    return made + struct.pack(">I", zlib.crc32(made))


def slices(body: bytes, traced: Provenance) -> dict[str, list[str]]:
    """Fact -> its bytes as text; repetitions under the fact's name and `again`."""
    found: dict[str, list[str]] = {}
    for fact in traced.facts:
        for read in sorted(traced.by_fact[fact], key=lambda read: read.again):
            found.setdefault(fact + " again" * read.again, []).append(body[read.start : read.end].decode())
    return found


# -- every row, by hand ----------------------------------------------------------------------------------------------


def chunk(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, **more}]}


def completion(message: dict[str, Any], **more: Any) -> bytes:
    return whole({"choices": [{"index": 0, "message": message, **more}]})


def call_delta(**call: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, **call}]}


OPENAI_CHAT: list[tuple[bytes, dict[str, list[str]]]] = [
    (sse({"id": "c1", "model": "m", **chunk({"content": "a\u00e9"})},
         {"id": "c1", "model": "m", **chunk({"content": "b"})},
         {"id": "c1", **chunk({"content": ""}, finish_reason="stop")}),
     {"id": ['"c1"'], "id again": ['"c1"', '"c1"'], "model": ['"m"'], "model again": ['"m"'],
      "text": ['"a\\u00e9"', '"b"'], "stop_reason": ['"stop"']}),
    (sse(chunk({"content": ["x", {"type": "text", "text": "y"}]}), chunk({"content": {"text": "z"}})),
     {"text": ['"x"', '"y"', '"z"']}),
    (sse(chunk({"reasoning_content": "r1", "reasoning": "r1"}), chunk({"reasoning_content": "r2", "reasoning": "r2"})),
     {"reasoning": ['"r1"', '"r2"'], "reasoning again": ['"r1"', '"r2"']}),
    (sse(chunk({"reasoning": "q1"}), chunk({"reasoning": "q2"})), {"reasoning": ['"q1"', '"q2"']}),
    (sse(chunk({"reasoning_text": "q1"})), {"reasoning": ['"q1"']}),
    (sse(chunk({"content": [{"type": "thinking", "thinking": [{"text": "t"}]}]})), {"reasoning": ['"t"']}),
    (completion({"content": [{"type": "thinking", "thinking": [{"text": "t"}]}]}), {"reasoning": ['"t"']}),
    (sse(chunk({"content": [{"type": "thinking", "thinking": "u"}]})), {"reasoning": ['"u"']}),
    (completion({"content": [{"type": "thinking", "thinking": "u"}]}), {"reasoning": ['"u"']}),
    (sse(chunk({"refusal": "no"}), chunk({"content": [{"type": "refusal", "refusal": "pe"}]})),
     {"refusal": ['"no"', '"pe"']}),
    (completion({"refusal": "no", "content": [{"type": "refusal", "refusal": "no"}]}), {"refusal": ['"no"', '"no"']}),
    (completion({"content": ["x", {"text": "y"}]}), {"text": ['"x"', '"y"']}),
    (completion({"content": {"text": "z"}}), {"text": ['"z"']}),
    (completion({"content": "w", "reasoning_content": "r"}), {"text": ['"w"'], "reasoning": ['"r"']}),
    (completion({"reasoning": "r"}), {"reasoning": ['"r"']}),
    (completion({"reasoning_text": "r"}), {"reasoning": ['"r"']}),
    *((make(part), {"reasoning": ['"r"']}) for make in (completion, lambda delta: sse(chunk(delta))) for part in (
        {"thinking": "r"}, {"cot_summary": "r"}, {"content": [{"type": "reasoning", "summary": [{"text": "r"}]}]},
        {"thinking_blocks": [{"type": "thinking", "thinking": "r"}]})),
    (completion({"content": [{"type": "reasoning", "summary": [{"text": "t"}]}, {"type": "text", "text": "x"}]}),
     {"reasoning": ['"t"'], "text": ['"x"']}),
    (sse(chunk({"reasoning_content": "r1", "thinking_blocks": [{"type": "thinking", "thinking": "r1"}]})),
     {"reasoning": ['"r1"'], "reasoning again": ['"r1"']}),
    *((make({"reasoning_details": [{"type": f"reasoning.{kind}", kind: "d1", "index": 0},
                                   {"type": f"reasoning.{kind}", kind: "d2", "index": 1}]}),
       {"reasoning": ['"d1"', '"d2"']})
      for make in (completion, lambda delta: sse(chunk(delta))) for kind in ("text", "summary")),
    (sse(chunk(call_delta(id="k", function={"name": "f", "arguments": ""})),
         chunk(call_delta(function={"arguments": '{"n"'})),
         chunk(call_delta(function={"arguments": ":1}"})), chunk({}, finish_reason="tool_calls")),
     {"tool_calls[0].id": ['"k"'], "tool_calls[0].name": ['"f"'],
      "tool_calls[0].arguments": [r'"{\"n\""', '":1}"'], "stop_reason": ['"tool_calls"']}),
    (sse(chunk(call_delta(id="k", function={"name": "f"})), chunk(call_delta(id="k", function={"arguments": "{}"}))),
     {"tool_calls[0].id": ['"k"'], "tool_calls[0].id again": ['"k"'], "tool_calls[0].name": ['"f"'],
      "tool_calls[0].arguments": ['"{}"']}),
    (sse(chunk(call_delta(id="k", custom={"name": "f", "input": "x"}, type="custom"))),
     {"tool_calls[0].id": ['"k"'], "tool_calls[0].name": ['"f"'], "tool_calls[0].arguments": ['"x"']}),
    (sse(chunk({"tool_calls": {"id": "k", "function": {"name": "f", "arguments": {"n": 1}}}})),
     {"tool_calls[0].id": ['"k"'], "tool_calls[0].name": ['"f"'], "tool_calls[0].arguments": ['{"n": 1}']}),
    (sse(chunk({"tool_calls": {"id": "k", "type": "custom", "custom": {"name": "f", "input": "x"}}})),
     {"tool_calls[0].id": ['"k"'], "tool_calls[0].name": ['"f"'], "tool_calls[0].arguments": ['"x"']}),
    (sse(chunk({"function_call": {"name": "f", "arguments": "{"}}), chunk({"function_call": {"arguments": "}"}})),
     {"tool_calls[0].name": ['"f"'], "tool_calls[0].arguments": ['"{"', '"}"']}),
    (completion({"tool_calls": [{"id": "k", "function": {"name": "f", "arguments": "{}"}},
                                {"id": "l", "type": "custom", "custom": {"name": "f", "input": "{}"}}]}),
     {"tool_calls[0].id": ['"k"'], "tool_calls[0].name": ['"f"'], "tool_calls[0].arguments": ['"{}"'],
      "tool_calls[1].id": ['"l"'], "tool_calls[1].name": ['"f"'], "tool_calls[1].arguments": ['"{}"']}),
    (completion({"tool_calls": {"id": "k", "function": {"name": "f", "arguments": "{}"}}}),
     {"tool_calls[0].id": ['"k"'], "tool_calls[0].name": ['"f"'], "tool_calls[0].arguments": ['"{}"']}),
    (completion({"tool_calls": {"id": "k", "type": "custom", "custom": {"name": "f", "input": "x"}}}),
     {"tool_calls[0].id": ['"k"'], "tool_calls[0].name": ['"f"'], "tool_calls[0].arguments": ['"x"']}),
    (completion({"function_call": {"name": "f", "arguments": "{}"}}),
     {"tool_calls[0].name": ['"f"'], "tool_calls[0].arguments": ['"{}"']}),
    *((sse(chunk({"content": "a"}), place({"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 35,
                                           "completion_tokens_details": {"reasoning_tokens": 5},
                                           "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2}})),
       {"text": ['"a"'], "usage.input_tokens": ["10"], "usage.output_tokens": ["20", "5"],
        "usage.reasoning_tokens": ["5"], "usage.cached_tokens": ["3"], "usage.cache_write_tokens": ["2"]})
      for place in (lambda counts: {"choices": [], "usage": counts}, lambda counts: chunk({}, usage=counts),
                    lambda counts: {**chunk({}), "x_groq": {"usage": counts}})),
    *((sse(chunk({"content": "a"}), place({"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 35,
                                           "reasoning_tokens": 5, name: 3, "cache_creation_input_tokens": 2})),
       {"text": ['"a"'], "usage.input_tokens": ["10"], "usage.output_tokens": ["20", "5"],
        "usage.reasoning_tokens": ["5"], "usage.cached_tokens": ["3"], "usage.cache_write_tokens": ["2"]})
      for place in (lambda counts: {"choices": [], "usage": counts}, lambda counts: chunk({}, usage=counts),
                    lambda counts: {**chunk({}), "x_groq": {"usage": counts}})
      for name in ("prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens")),
    *((make, {"native.native_finish_reason": ['"length"'], "native.stop_reason": ['"</s>"'],
              "native.matched_stop": ["7"], "native.eos_reason": ['"e"'], "native.truncated": ["true"],
              "stop_reason": ['"stop"']})
      for make in (sse({**chunk({}, finish_reason="stop", native_finish_reason="length", stop_reason="</s>",
                                matched_stop=7, eos_reason="e"), "truncated": True}),)),
    *((sse(chunk({"content": "a"}), {**chunk({}, finish_reason="stop"), **place}),
       {"text": ['"a"'], "native.stop_type": ['"eos"'], "native.truncated": ["false"],
        "native.stats.stop_reason": ['"eosFound"'], "stop_reason": ['"stop"']})
      for words in ({"stop_type": "eos", "truncated": False, "stats": {"stop_reason": "eosFound"}},)
      for place in (words, {"__verbose": words})),
    (sse(chunk({"content": "a"}), {"error": {"message": "m", "code": 500}}),
     {"text": ['"a"'], "error": ['{"message": "m", "code": 500}'], "stop_reason": ['{"message": "m", "code": 500}']}),
    (sse(chunk({"content": "a"}), {**chunk({}), "x_groq": {"error": "m"}}),
     {"text": ['"a"'], "error": ['"m"'], "stop_reason": ['"m"']}),
    *((sse(chunk({"content": "a"}), chunk({}, finish_reason="stop", provider_specific_fields={name: "x"})),
       {"text": ['"a"'], f"native.{name}": ['"x"'], "stop_reason": ['"stop"']})
      for name in ("native_finish_reason", "stop_reason", "matched_stop", "eos_reason")),
    *((sse(chunk({"content": "a"}, finish_reason="content_filter"), event), {
        "text": ['"a"'], "error": ['{"message": "m"}'], "stop_reason": ['"content_filter"']})
      for event in ({"error": {"message": "m"}}, chunk({}, error={"message": "m"}))),
    (sse(chunk({"content": "a"}), chunk({}, error={"message": "m"})),
     {"text": ['"a"'], "error": ['{"message": "m"}'], "stop_reason": ['{"message": "m"}']}),
]


def block_start(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **piece: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **piece}}


def message_delta(reason: str, usage: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason, **more}, "usage": usage or {}}


COUNTS = {"input_tokens": 10, "output_tokens": 20, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2,
          "output_tokens_details": {"thinking_tokens": 5}}
COUNTED = {"usage.input_tokens": ["10"], "usage.output_tokens": ["20"], "usage.cached_tokens": ["3"],
           "usage.cache_write_tokens": ["2"], "usage.reasoning_tokens": ["5"]}
EXPLAINED = {"type": "refusal", "explanation": "why"}
CONTENT = [{"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "text", "text": "a"},
           {"type": "tool_use", "id": "k", "name": "f", "input": {"n": 1}},
           {"type": "server_tool_use", "id": "l", "name": "f", "input": {"n": 1}}]
IN_CONTENT = {"reasoning": ['"t"'], "text": ['"a"'], "tool_calls[0].id": ['"k"'], "tool_calls[0].name": ['"f"'],
              "tool_calls[0].arguments": ['{"n": 1}'], "server_calls[0].id": ['"l"'], "server_calls[0].name": ['"f"'],
              "server_calls[0].arguments": ['{"n": 1}']}

ANTHROPIC_MESSAGES: list[tuple[bytes, dict[str, list[str]]]] = [
    (whole({"role": "assistant", "content": "a", "stop_reason": "end_turn"}),
     {"text": ['"a"'], "stop_reason": ['"end_turn"']}),
    (sse({"type": "message_start",
          "message": {"id": "i", "model": "m", "usage": {"input_tokens": 10, "output_tokens": 1}}},
         block_start(0, type="text", text="a"), delta(0, "text_delta", text="b"), delta(0, "text_delta", text="c"),
         message_delta("end_turn", {"output_tokens": 20}), named=True),
     {"id": ['"i"'], "model": ['"m"'], "text": ['"a"', '"b"', '"c"'], "usage.input_tokens": ["10"],
      "usage.output_tokens": ["20"], "stop_reason": ['"end_turn"']}),
    (sse(block_start(0, type="thinking", thinking="t"), delta(0, "thinking_delta", thinking="u"),
         delta(0, "signature_delta", signature="s"), block_start(1, type="tool_use", id="k", name="f", input={}),
         delta(1, "input_json_delta", partial_json=""), delta(1, "input_json_delta", partial_json='{"n":'),
         delta(1, "input_json_delta", partial_json="1}"), {"type": "content_block_stop", "index": 1},
         block_start(2, type="tool_use", id="l", name="f", input={}),
         delta(2, "input_json_delta", partial_json='{"n":1}'),
         message_delta("tool_use")),
     {"reasoning": ['"t"', '"u"'], "tool_calls[0].id": ['"k"'], "tool_calls[0].name": ['"f"'],
      "tool_calls[0].arguments": [r'"{\"n\":"', '"1}"'], "tool_calls[1].id": ['"l"'], "tool_calls[1].name": ['"f"'],
      "tool_calls[1].arguments": [r'"{\"n\":1}"'], "stop_reason": ['"tool_use"']}),
    (sse(block_start(0, type="server_tool_use", id="k", name="f", input={"n": 1}),
         {"type": "content_block_stop", "index": 0}),
     {"server_calls[0].id": ['"k"'], "server_calls[0].name": ['"f"'], "server_calls[0].arguments": ['{"n": 1}']}),
    (sse({"type": "message_start", "message": {"stop_details": EXPLAINED, "content": CONTENT, "usage": COUNTS}},
         *({"type": "content_block_stop", "index": index} for index in range(4))),
     {"refusal": ['"why"'], **IN_CONTENT, **COUNTED}),
    (sse(message_delta("refusal", COUNTS, stop_details=EXPLAINED)),
     {"refusal": ['"why"'], "stop_reason": ['"refusal"'], **COUNTED}),
    (whole({"type": "message", "id": "i", "model": "m", "content": CONTENT, "stop_reason": "tool_use",
            "stop_details": EXPLAINED, "usage": COUNTS}),
     {"id": ['"i"'], "model": ['"m"'], "refusal": ['"why"'], "stop_reason": ['"tool_use"'], **IN_CONTENT, **COUNTED}),
    (sse(message_delta("refusal"), {"type": "error", "error": {"message": "m"}}),
     {"stop_reason": ['"refusal"'], "error": ['{"message": "m"}']}),
    (sse({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, named=True),
     {"error": ['{"type": "overloaded_error", "message": "m"}'],
      "stop_reason": ['{"type": "overloaded_error", "message": "m"}']}),
]


def candidate(*parts: dict[str, Any], reason: str | None = None, **more: Any) -> dict[str, Any]:
    end = {} if reason is None else {"finishReason": reason}
    return {"candidates": [{"content": {"parts": list(parts)}, "index": 0, **end}], **more}


def partial(path: str, more: bool = True, **value: Any) -> dict[str, Any]:
    piece = {"jsonPath": path, **value, **({"willContinue": True} if more else {})}
    return {"functionCall": {"partialArgs": [piece], "willContinue": True}}


PRETTY = "[" + "\n,\r\n".join(json.dumps(each, indent=2, ensure_ascii=False) for each in (
    candidate({"text": "\u00e9"}, responseId="i"), candidate({"text": "\U0001f600"}, reason="STOP"))) + "\n]\n"
GEMINI_GENERATE: list[tuple[bytes, dict[str, list[str]]]] = [
    (sse(candidate({"text": "t", "thought": True}, responseId="i", modelVersion="m"), candidate({"text": "t"}),
         candidate({"text": "a"}, responseId="i"), candidate({"text": "b"}, reason="STOP", usageMetadata={
             "promptTokenCount": 10, "candidatesTokenCount": 15, "thoughtsTokenCount": 5,
             "cachedContentTokenCount": 3})),
     {"id": ['"i"'], "id again": ['"i"'], "model": ['"m"'], "reasoning": ['"t"'], "text": ['"t"', '"a"', '"b"'],
      "stop_reason": ['"STOP"'], "usage.input_tokens": ["10"], "usage.output_tokens": ["15", "5"],
      "usage.reasoning_tokens": ["5"], "usage.cached_tokens": ["3"]}),
    (sse({"response_id": "i", "model_version": "m", "usage_metadata": {
        "prompt_token_count": 10, "candidates_token_count": 15, "thoughts_token_count": 5,
        "cached_content_token_count": 3}, **candidate({"function_call": {"id": "k", "name": "f", "args": {"n": 1}}})}),
     {"id": ['"i"'], "model": ['"m"'], "usage.input_tokens": ["10"], "usage.output_tokens": ["15", "5"],
      "usage.reasoning_tokens": ["5"], "usage.cached_tokens": ["3"], "tool_calls[0].id": ['"k"'],
      "tool_calls[0].name": ['"f"'], "tool_calls[0].arguments": ['{"n": 1}']}),
    (PRETTY.encode(), {"id": ['"i"'], "text": ['"\u00e9"', '"\U0001f600"'], "stop_reason": ['"STOP"']}),
    (whole(candidate({"functionCall": {"id": "k", "name": "f", "args": {"n": 1}}},
                     {"functionCall": {"id": "l", "name": "f", "args": {"n": 1}}}, reason="STOP")),
     {"stop_reason": ['"STOP"'], "tool_calls[0].id": ['"k"'], "tool_calls[0].name": ['"f"'],
      "tool_calls[0].arguments": ['{"n": 1}'], "tool_calls[1].id": ['"l"'], "tool_calls[1].name": ['"f"'],
      "tool_calls[1].arguments": ['{"n": 1}']}),
    # A call that is cut: the last brace of its arguments is not believed.
    (sse(candidate({"functionCall": {"name": "f", "args": {"n": 1}, "willContinue": True}})),
     {"tool_calls[0].name": ['"f"'], "tool_calls[0].arguments": ['{"n": 1']}),
    (sse(candidate({"functionCall": {"name": "f", "willContinue": True}}), candidate(partial("$.a", stringValue="x")),
         candidate(partial("$.a", stringValue="y", more=False)), candidate(partial("$.b", numberValue=1.5, more=False)),
         candidate(partial("$.c", boolValue=False, more=False)),
         candidate(partial("$.d", nullValue="NULL_VALUE", more=False)),
         candidate({"functionCall": {}}), candidate({"functionCall": {"name": "g", "willContinue": True}}),
         candidate(partial("$.a", stringValue="x"))),
     {"tool_calls[0].name": ['"f"'], "tool_calls[0].arguments": ['"x"', '"y"', "1.5", "false", '"NULL_VALUE"'],
      "tool_calls[1].name": ['"g"'], "tool_calls[1].arguments": ['"x"']}),
    (sse(*({"candidates": [{"content": {"parts": [{"function_call": call}]}}]} for call in (
        {"name": "f", "will_continue": True},
        *({"partial_args": [{"json_path": f"$.{name}", name: value}], "will_continue": True} for name, value in (
            ("string_value", "x"), ("number_value", 2), ("bool_value", True), ("null_value", 0))), {},
        {"name": "g", "will_continue": True}, {"partial_args": [{"json_path": "$.a", "string_value": "y"}]}))),
     {"tool_calls[0].name": ['"f"'], "tool_calls[0].arguments": ['"x"', "2", "true", "0"],
      "tool_calls[1].name": ['"g"'], "tool_calls[1].arguments": ['"y"']}),
    (sse(candidate({"text": "a"}, reason="SAFETY"), {"error": {"code": 500, "message": "m"}}),
     {"text": ['"a"'], "error": ['{"code": 500, "message": "m"}'], "stop_reason": ['"SAFETY"']}),
    (sse(candidate({"text": "a"}), {"error": {"code": 500, "message": "m"}}),
     {"text": ['"a"'], "error": ['{"code": 500, "message": "m"}'], "stop_reason": ['{"code": 500, "message": "m"}']}),
]

USAGE = {"inputTokens": 10, "outputTokens": 20, "cacheReadInputTokens": 3, "cacheWriteInputTokens": 2}
USED = {"usage.input_tokens": ["10"], "usage.output_tokens": ["20"], "usage.cached_tokens": ["3"],
        "usage.cache_write_tokens": ["2"]}
ROUTED = {"promptRouter": {"invokedModelId": "m"}}
EVENTS: list[tuple[str, dict[str, Any]]] = [
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "t"}}}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "a"}}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "b"}}),
    ("contentBlockStart", {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "k", "name": "f"}}}),
    ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": '{"n":'}}}),
    ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": "1}"}}}),
    ("contentBlockStop", {"contentBlockIndex": 2}),
    ("messageStop", {"stopReason": "tool_use"}),
    ("metadata", {"usage": USAGE, "trace": ROUTED}),
]
STREAMED = {"reasoning": ['"t"'], "text": ['"a"', '"b"'], "tool_calls[0].id": ['"k"'], "tool_calls[0].name": ['"f"'],
            "tool_calls[0].arguments": [r'"{\"n\":"', '"1}"'], "stop_reason": ['"tool_use"'], "model": ['"m"'], **USED}
BEDROCK_CONVERSE: list[tuple[bytes, dict[str, list[str]]]] = [
    (b"".join(frame(kind, event) for kind, event in EVENTS), STREAMED),
    (lines(*({kind: event} for kind, event in EVENTS)), STREAMED),
    (whole({"output": {"message": {"content": [
        {"reasoningContent": {"reasoningText": {"text": "t", "signature": "s"}}}, {"text": "a"},
        {"citationsContent": {"content": [{"text": "b"}, {"text": "c"}], "citations": []}},
        {"toolUse": {"toolUseId": "k", "name": "f", "input": {"n": 1}}}]}},
        "stopReason": "tool_use", "usage": USAGE, "trace": ROUTED}),
     {"reasoning": ['"t"'], "text": ['"a"', '"b"', '"c"'], "tool_calls[0].id": ['"k"'], "tool_calls[0].name": ['"f"'],
      "tool_calls[0].arguments": ['{"n": 1}'], "stop_reason": ['"tool_use"'], "model": ['"m"'], **USED}),
    (frame("throttlingException", {"message": "m"}, message="exception"),
     {"error": ['{"message": "m"}'], "stop_reason": ['{"message": "m"}']}),
]

CALL = {"message": {"content": "", "tool_calls": [{"id": "k", "function": {"name": "f", "arguments": {"n": 1}}}]}}
OLLAMA_CHAT: list[tuple[bytes, dict[str, list[str]]]] = [
    (lines({"model": "m", "message": {"role": "assistant", "content": "", "thinking": "t"}, "done": False},
           {"model": "m", "message": {"role": "assistant", "content": "a"}, "done": False},
           {"model": "m", "message": {"role": "assistant", "content": "b"}, "done": False}, CALL,
           {"message": {"content": ""}, "done": True, "done_reason": "stop", "prompt_eval_count": 10,
            "eval_count": 20}),
     {"model": ['"m"'], "model again": ['"m"', '"m"'], "reasoning": ['"t"'], "text": ['"a"', '"b"'],
      "tool_calls[0].id": ['"k"'], "tool_calls[0].name": ['"f"'], "tool_calls[0].arguments": ['{"n": 1}'],
      "stop_reason": ['"stop"'], "usage.input_tokens": ["10"], "usage.output_tokens": ["20"]}),
    (json.dumps({**CALL, "done": True, "done_reason": "stop"}, indent=1).encode(),
     {"tool_calls[0].id": ['"k"'], "tool_calls[0].name": ['"f"'], "stop_reason": ['"stop"'],
      "tool_calls[0].arguments": ['{\n      "n": 1\n     }']}),
    (lines({"error": "m"}), {"error": ['"m"'], "stop_reason": ['"m"']}),
]


def cohere(kind: str, index: int, **message: Any) -> dict[str, Any]:
    return {"type": kind, "index": index, "delta": {"message": message}}


COHERE_FUNCTION = {"name": "f", "arguments": "{}"}
COHERE_CHAT: list[tuple[bytes, dict[str, list[str]]]] = [
    (sse({"type": "message-start", "id": "i", "delta": {"message": {"role": "assistant"}}},
         cohere("tool-plan-delta", 0, tool_plan="p"), cohere("content-delta", 0, content={"thinking": "t"}),
         cohere("content-delta", 1, content={"text": "a"}),
         cohere("tool-call-start", 0, tool_calls={"id": "k", "function": {"name": "f", "arguments": "{"}}),
         cohere("tool-call-delta", 0, tool_calls={"function": {"arguments": "}"}}),
         {"type": "tool-call-end", "index": 0},
         {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL", "usage": {
             "tokens": {"input_tokens": 10, "output_tokens": 20}, "cached_tokens": 3}}}),
     {"id": ['"i"'], "reasoning": ['"p"', '"t"'], "text": ['"a"'], "tool_calls[0].id": ['"k"'],
      "tool_calls[0].name": ['"f"'], "tool_calls[0].arguments": ['"{"', '"}"'], "stop_reason": ['"TOOL_CALL"'],
      "usage.input_tokens": ["10"], "usage.output_tokens": ["20"], "usage.cached_tokens": ["3"]}),
    (whole({"id": "i", "finish_reason": "COMPLETE", "message": {
        "content": [{"thinking": "t"}, {"text": "a"}], "tool_plan": "p",
        "tool_calls": [{"id": "k", "function": COHERE_FUNCTION}]},
        "usage": {"billed_units": {"input_tokens": 10, "output_tokens": 20}, "cached_tokens": 3}}),
     {"id": ['"i"'], "reasoning": ['"t"', '"p"'], "text": ['"a"'], "tool_calls[0].id": ['"k"'],
      "tool_calls[0].name": ['"f"'], "tool_calls[0].arguments": ['"{}"'], "stop_reason": ['"COMPLETE"'],
      "usage.input_tokens": ["10"], "usage.output_tokens": ["20"], "usage.cached_tokens": ["3"]}),
    (whole({"finish_reason": "COMPLETE", "message": {"content": "a"}}),
     {"text": ['"a"'], "stop_reason": ['"COMPLETE"']}),
    (whole({"finish_reason": "COMPLETE", "message": {"content": ["a", {"text": "b"}]}}),
     {"text": ['"a"', '"b"'], "stop_reason": ['"COMPLETE"']}),
    (whole({"finish_reason": "COMPLETE", "message": {"content": {"text": "a"}}}),
     {"text": ['"a"'], "stop_reason": ['"COMPLETE"']}),
    (sse(cohere("content-start", 0, content={"text": "a"}), cohere("content-delta", 0, content="b"),
         cohere("content-start", 1, content={"thinking": "t"}), cohere("content-start", 2, content="c")),
     {"text": ['"a"', '"b"', '"c"'], "reasoning": ['"t"']}),
    (whole({"text": "a", "generation_id": "i", "finish_reason": "COMPLETE",
            "tool_calls": [{"name": "f", "parameters": {}}], "meta": {"tokens": {"input_tokens": 10}}}),
     {"id": ['"i"'], "text": ['"a"'], "stop_reason": ['"COMPLETE"'], "tool_calls[0].name": ['"f"'],
      "tool_calls[0].arguments": ["{}"], "usage.input_tokens": ["10"]}),
    (lines({"is_finished": False, "event_type": "text-generation", "text": "a"},
           {"is_finished": True, "event_type": "stream-end", "finish_reason": "COMPLETE",
            "response": {"text": "a", "meta": {"tokens": {"input_tokens": 10, "output_tokens": 20}}}}),
     {"text": ['"a"'], "stop_reason": ['"COMPLETE"'], "usage.input_tokens": ["10"], "usage.output_tokens": ["20"]}),
    *((place({kind: {"input_tokens": 10, "output_tokens": 20}}),
       {"stop_reason": ['"COMPLETE"'], "usage.input_tokens": ["10"], "usage.output_tokens": ["20"]})
      for kind in ("tokens", "billed_units") for place in (
          lambda counts: whole({"finish_reason": "COMPLETE", "message": {"content": []}, "usage": counts}),
          lambda counts: sse({"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": counts}}),
          lambda counts: whole({"text": "", "generation_id": "", "finish_reason": "COMPLETE", "meta": counts}),
          lambda counts: lines({"is_finished": True, "event_type": "stream-end", "finish_reason": "COMPLETE",
                                "response": {"meta": counts}}))),
]
BEDROCK_INVOKE: list[tuple[bytes, dict[str, list[str]]]] = [
    (whole({"id": "i", "model": "m", "type": "message", "content": [{"type": "text", "text": "a"}],
            "stop_reason": "end_turn", "usage": {"input_tokens": 10, "output_tokens": 20}}),
     {"id": ['"i"'], "model": ['"m"'], "text": ['"a"'], "stop_reason": ['"end_turn"'], "usage.input_tokens": ["10"],
      "usage.output_tokens": ["20"]}),
    (whole({"output": {"message": {"content": [{"text": "a"}]}}, "stopReason": "end_turn"}),
     {"text": ['"a"'], "stop_reason": ['"end_turn"']}),
    (whole({"generation": "a", "prompt_token_count": 10, "generation_token_count": 20, "stop_reason": "stop"}),
     {"text": ['"a"'], "stop_reason": ['"stop"'], "usage.input_tokens": ["10"], "usage.output_tokens": ["20"]}),
    (whole({"inputTextTokenCount": 10,
            "results": [{"tokenCount": 20, "outputText": "a", "completionReason": "FINISH"}]}),
     {"text": ['"a"'], "stop_reason": ['"FINISH"'], "usage.input_tokens": ["10"], "usage.output_tokens": ["20"]}),
    (whole({"outputText": "a", "inputTextTokenCount": 10, "totalOutputTextTokenCount": 20,
            "completionReason": "FINISH"}),
     {"text": ['"a"'], "stop_reason": ['"FINISH"'], "usage.input_tokens": ["10"], "usage.output_tokens": ["20"]}),
    (whole({"outputs": [{"text": "a", "stop_reason": "stop"}]}), {"text": ['"a"'], "stop_reason": ['"stop"']}),
    (whole({"generations": [{"text": "a", "finish_reason": "COMPLETE"}]}),
     {"text": ['"a"'], "stop_reason": ['"COMPLETE"']}),
    (whole({"text": "a", "finish_reason": "COMPLETE"}), {"text": ['"a"'], "stop_reason": ['"COMPLETE"']}),
    (whole({"completions": [{"data": {"text": "a"}, "finishReason": {"reason": "endoftext"}}]}),
     {"text": ['"a"'], "stop_reason": ['"endoftext"']}),
    (whole({"choices": [{"text": "a", "stop_reason": "stop"}]}), {"text": ['"a"'], "stop_reason": ['"stop"']}),
    (whole({"text": "", "tool_calls": [{"name": "f", "parameters": {"p": 1}}], "finish_reason": "COMPLETE"}),
     {"tool_calls[0].name": ['"f"'], "tool_calls[0].arguments": ['{"p": 1}'], "stop_reason": ['"COMPLETE"']}),
    (whole({"completion": "a", "stop_reason": "stop_sequence"}), {"text": ['"a"'], "stop_reason": ['"stop_sequence"']}),
]
OPENAI_COMPLETIONS: list[tuple[bytes, dict[str, list[str]]]] = [
    (sse({"id": "i", "model": "m", "choices": [{"text": "a", "index": 0}]},
         {"choices": [{"text": "x", "index": 1}]},
         {"choices": [{"text": "b", "index": 0, "finish_reason": "stop", "stop_reason": "E"}],
          "usage": {"prompt_tokens": 10, "completion_tokens": 20}}),
     {"id": ['"i"'], "model": ['"m"'], "text": ['"a"', '"b"'], "stop_reason": ['"stop"'], "native.stop_reason": ['"E"'],
      "usage.input_tokens": ["10"], "usage.output_tokens": ["20"]}),
    (whole({"choices": [{"text": "a", "index": 0, "finish_reason": "length"}], "truncated": True}),
     {"text": ['"a"'], "stop_reason": ['"length"'], "native.truncated": ["true"]}),
    (sse({"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}]}),
     {"text": ['"a"'], "stop_reason": ['"stop"']}),
    (whole({"error": {"message": "m"}}), {"error": ['{"message": "m"}'], "stop_reason": ['{"message": "m"}']}),
]
COMPLETED = {"type": "completion", "id": "i", "model": "m"}
ANTHROPIC_COMPLETE: list[tuple[bytes, dict[str, list[str]]]] = [
    (sse({**COMPLETED, "completion": "a"}, {"type": "ping"},
         {"type": "completion", "completion": "b", "stop_reason": "stop_sequence", "stop": "E"}),
     {"id": ['"i"'], "model": ['"m"'], "text": ['"a"', '"b"'], "stop_reason": ['"stop_sequence"'],
      "native.stop": ['"E"']}),
    (whole({**COMPLETED, "completion": "a", "stop_reason": "max_tokens"}),
     {"id": ['"i"'], "model": ['"m"'], "text": ['"a"'], "stop_reason": ['"max_tokens"']}),
    (whole({"type": "error", "error": {"message": "m"}}),
     {"error": ['{"message": "m"}'], "stop_reason": ['{"message": "m"}']}),
]
GENERATED_CALL = {"response": "", "tool_calls": [{"id": "k", "function": {"name": "f", "arguments": {"n": 1}}}],
                  "done": False}
OLLAMA_GENERATE: list[tuple[bytes, dict[str, list[str]]]] = [
    (lines({"model": "m", "response": "", "thinking": "t", "done": False},
           {"response": "a", "done": False}, {"response": "b", "done": False}, GENERATED_CALL,
           {"response": "", "done": True, "done_reason": "stop", "prompt_eval_count": 10, "eval_count": 20}),
     {"model": ['"m"'], "reasoning": ['"t"'], "text": ['"a"', '"b"'],
      "tool_calls[0].id": ['"k"'], "tool_calls[0].name": ['"f"'], "tool_calls[0].arguments": ['{"n": 1}'],
      "stop_reason": ['"stop"'], "usage.input_tokens": ["10"], "usage.output_tokens": ["20"]}),
]


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "output_index": 0, **fields}


def item(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "id": "i", **fields}


MESSAGE = item("message", status="completed", content=[{"type": "output_text", "text": "ab"},
                                                       {"type": "refusal", "refusal": "no"}])
THOUGHT = item("reasoning", summary=[{"text": "s"}, {"text": "t"}])
FUNCTION = item("function_call", call_id="k", name="f", arguments="{}", status="completed")
CUSTOM = item("custom_tool_call", call_id="k", name="f", input="x", status="completed")
SEARCH = {"type": "web_search_call", "id": "w", "status": "completed"}
TOTALS = {"input_tokens": 10, "output_tokens": 15, "total_tokens": 30, "output_tokens_details": {"reasoning_tokens": 5},
          "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2}}
TOTALLED = {"usage.input_tokens": ["10"], "usage.output_tokens": ["15", "5"], "usage.reasoning_tokens": ["5"],
            "usage.cached_tokens": ["3"], "usage.cache_write_tokens": ["2"]}
ITEMS: list[tuple[dict[str, Any], dict[str, list[str]]]] = [
    (MESSAGE, {"text": ['"ab"'], "refusal": ['"no"']}),
    (item("message", content="ab"), {"text": ['"ab"']}),
    (THOUGHT, {"reasoning": ['"s"', '"t"']}),
    (item("reasoning", content=[{"text": "r"}], summary=[{"text": "s"}]), {"reasoning": ['"r"']}),
    (item("reasoning", content="r"), {"reasoning": ['"r"']}),
    (item("reasoning", summary="s"), {"reasoning": ['"s"']}),
    (FUNCTION, {"tool_calls[0].id": ['"k"'], "tool_calls[0].name": ['"f"'], "tool_calls[0].arguments": ['"{}"']}),
    (CUSTOM, {"tool_calls[0].id": ['"k"'], "tool_calls[0].name": ['"f"'], "tool_calls[0].arguments": ['"x"']}),
    (SEARCH, {"server_calls[0].arguments": [json.dumps(SEARCH)]}),
    (item("mcp_approval_request", name="f"),
     {"tool_calls[0].id": ['"i"'], "tool_calls[0].arguments": [json.dumps(item("mcp_approval_request", name="f"))]}),
]
ENDS = {"status": "completed", "id": "r", "model": "m"}
ENDED = {"id": ['"r"'], "model": ['"m"'], "stop_reason": ['"completed"']}
OPENAI_RESPONSES: list[tuple[bytes, dict[str, list[str]]]] = [
    *((whole({**ENDS, "output": [value]}), {**ENDED, **expected}) for value, expected in ITEMS),
    *((sse(event("completed", response={**ENDS, "output": [value]})), {**ENDED, **expected})
      for value, expected in ITEMS),
    *((sse(event("output_item.done", item=value)), expected) for value, expected in ITEMS),
    (whole({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "usage": TOTALS}),
     {"stop_reason": ['"incomplete"', '"max_output_tokens"'], **TOTALLED}),
    (sse(event("incomplete", response={"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"},
                                       "usage": TOTALS})),
     {"stop_reason": ['"incomplete"', '"max_output_tokens"'], **TOTALLED}),
    (sse(event("output_text.delta", content_index=0, delta="a"), event("refusal.delta", content_index=1, delta="n"),
         event("output_text.delta", content_index=0, delta="b"), event("refusal.delta", content_index=1, delta="o"),
         event("output_text.done", content_index=0, text="ab"), event("refusal.done", content_index=1, refusal="no"),
         event("output_item.done", item=MESSAGE)),
     {"text": ['"a"', '"b"'], "text again": ['"ab"', '"ab"'], "refusal": ['"n"', '"o"'],
      "refusal again": ['"no"', '"no"']}),
    *((sse(event(f"{kind}.delta", **{index: 0}, delta="r1"), event(f"{kind}.delta", **{index: 0}, delta="r2"),
           event(f"{kind}.delta", **{index: 1}, delta="r3"), event(f"{kind}.done", **{index: 0}, text="r1r2")),
       {"reasoning": ['"r1"', '"r2"', '"r3"']})
      for kind, index in (("reasoning_summary_text", "summary_index"), ("reasoning_text", "content_index"))),
    *((sse(event(f"{kind}.done", **{index: 0}, text="r1"), event(f"{kind}.done", **{index: 1}, text="r2")),
       {"reasoning": ['"r1"', '"r2"']})
      for kind, index in (("reasoning_summary_text", "summary_index"), ("reasoning_text", "content_index"))),
    *((sse(event("output_item.added", item={**announced, field: ""}), event(f"{kind}.delta", delta="{"),
           event(f"{kind}.delta", delta="}"), event(f"{kind}.done", **{field: "{}"})),
       {"tool_calls[0].id": ['"k"'], "tool_calls[0].name": ['"f"'], "tool_calls[0].arguments": ['"{"', '"}"'],
        "tool_calls[0].arguments again": ['"{}"']})
      for kind, field, announced in (("function_call_arguments", "arguments", FUNCTION),
                                     ("custom_tool_call_input", "input", CUSTOM))),
    (sse(event("failed", response={"status": "failed", "error": {"code": "server_error", "message": "m"}})),
     {"stop_reason": ['"failed"', '{"code": "server_error", "message": "m"}'],
      "error": ['{"code": "server_error", "message": "m"}']}),
    (sse(event("incomplete", response={"status": "incomplete", "incomplete_details": {"reason": "content_filter"},
                                       "error": {"message": "m"}})),
     {"stop_reason": ['"incomplete"', '"content_filter"'], "error": ['{"message": "m"}']}),
    (whole({"error": {"message": "m"}}), {"error": ['{"message": "m"}'], "stop_reason": ['{"message": "m"}']}),
    (sse({"type": "error", "error": {"message": "m"}}),
     {"error": ['{"message": "m"}'], "stop_reason": ['{"type": "error", "error": {"message": "m"}}']}),
]

INTERACTED = {"id": "v1_x", "model": "m", "status": "completed"}
SPENT = {"usage": {"total_input_tokens": 10, "total_output_tokens": 15, "total_thought_tokens": 5,
                   "total_cached_tokens": 3}}
SPENT_SO = {"usage.input_tokens": ["10"], "usage.output_tokens": ["15", "5"], "usage.reasoning_tokens": ["5"],
            "usage.cached_tokens": ["3"]}
INTERACTED_SO = {"id": ['"v1_x"'], "model": ['"m"'], "stop_reason": ['"completed"']}
STEPS: list[tuple[dict[str, Any], dict[str, list[str]]]] = [
    ({"type": "model_output", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
     {"text": ['"a"', '"b"']}),
    ({"type": "text", "text": "a"}, {"text": ['"a"']}),
    ({"type": "thought", "summary": [{"type": "text", "text": "s"}, {"type": "text", "text": "t"}], "signature": "x"},
     {"reasoning": ['"s"', '"t"']}),
    ({"type": "function_call", "id": "k", "name": "f", "arguments": {"n": 1}},
     {"tool_calls[0].id": ['"k"'], "tool_calls[0].name": ['"f"'], "tool_calls[0].arguments": ['{"n": 1}']}),
]


def step_event(kind: str, **more: Any) -> dict[str, Any]:
    return {"event_type": f"step.{kind}", "index": 0, **more}


def interaction(kind: str, **more: Any) -> dict[str, Any]:
    return {"event_type": f"interaction.{kind}", **more}


GEMINI_INTERACTIONS: list[tuple[bytes, dict[str, list[str]]]] = [
    *((whole({**INTERACTED, name: [value]}), {**INTERACTED_SO, **expected})
      for name in ("steps", "outputs") for value, expected in STEPS),
    *((sse(interaction("completed", interaction={**INTERACTED, "steps": [value]})), {**INTERACTED_SO, **expected})
      for value, expected in STEPS),
    *((sse(step_event("start", step=value), step_event("stop")), expected) for value, expected in STEPS),
    *((sse({"event_type": "content.start", "index": 0, "content": value}, {"event_type": "content.stop", "index": 0}),
       expected) for value, expected in STEPS[1:]),
    (whole({**INTERACTED, **SPENT}), {**INTERACTED_SO, **SPENT_SO}),
    (sse(interaction("completed", interaction={**INTERACTED, **SPENT})), {**INTERACTED_SO, **SPENT_SO}),
    (sse(interaction("status_update", interaction_id="v1_x", status="failed")),
     {"id": ['"v1_x"'], "stop_reason": ['"failed"']}),
    (sse(step_event("start", step={"type": "model_output"}), step_event("delta", delta={"type": "text", "text": "a"}),
         step_event("delta", delta={"type": "text", "text": "b"})), {"text": ['"a"', '"b"']}),
    (sse(step_event("start", step={"type": "thought"}),
         step_event("delta", delta={"type": "thought_summary", "content": {"type": "text", "text": "s"}})),
     {"reasoning": ['"s"']}),
    (sse(step_event("start", step={"type": "function_call", "id": "k", "name": "f", "arguments": {}}),
         step_event("delta", delta={"type": "arguments_delta", "arguments": "{1"}),
         step_event("delta", delta={"type": "arguments_delta", "arguments": "}"}), step_event("stop")),
     {"tool_calls[0].id": ['"k"'], "tool_calls[0].name": ['"f"'], "tool_calls[0].arguments": ['"{1"', '"}"']}),
    (whole({"status": "failed", "errors": [{"code": "internal", "message": "m"}]}),
     {"stop_reason": ['"failed"', '{"code": "internal", "message": "m"}'],
      "error": ['{"code": "internal", "message": "m"}']}),
    (whole({"error": {"message": "m"}}), {"error": ['{"message": "m"}'], "stop_reason": ['{"message": "m"}']}),
    (sse({"event_type": "error", "error": {"message": "m"}}), {"error": ['{"message": "m"}'],
                                                               "stop_reason": ['{"message": "m"}']}),
    (sse(interaction("completed", interaction={"status": "failed", "errors": [{"message": "m"}]})),
     {"error": ['{"message": "m"}'], "stop_reason": ['"failed"', '{"message": "m"}']}),
]

BY_HAND = {
    "gemini_interactions": GEMINI_INTERACTIONS,
    "openai_chat": OPENAI_CHAT, "openai_responses": OPENAI_RESPONSES, "anthropic_messages": ANTHROPIC_MESSAGES,
    "gemini_generate": GEMINI_GENERATE, "bedrock_converse": BEDROCK_CONVERSE, "ollama_chat": OLLAMA_CHAT,
    "cohere_chat": COHERE_CHAT, "bedrock_invoke": BEDROCK_INVOKE,
    "openai_completions": OPENAI_COMPLETIONS, "anthropic_complete": ANTHROPIC_COMPLETE,
    "ollama_generate": OLLAMA_GENERATE,
}


@each_row(("api", "inner"), [
    ("bedrock_invoke", "anthropic_messages"), ("bedrock_invoke", "bedrock_converse"), ("bedrock_invoke", "openai_chat"),
    ("openai_completions", "openai_chat"),
])
def test_a_format_that_holds_bodies_of_another_reads_where_it_does(api: str, inner: str) -> None:
    assert set(wire(inner).reads) <= set(wire(api).reads)


def test_every_format_says_what_it_reads() -> None:
    assert set(BY_HAND) == set(FORMATS)


@each_row(("api", "number"), [(api, number) for api in BY_HAND for number in range(len(BY_HAND[api]))])
def test_every_slice_is_where_it_was_read(api: str, number: int) -> None:
    body, expected = BY_HAND[api][number]
    traced = provenance(api, body)
    assert slices(body, traced) == expected
    holds(api, body, decode(api, body), traced)


def code_assist(body: bytes) -> bytes:
    """The body as Code Assist sends it: each value inside a member `response`."""
    if not body.startswith(b"data:"):
        return b'{"response": %s, "traceId": "t"}' % body
    return b"".join(b'data: {"response": %s, "traceId": "t"}\n\n' % value.removeprefix(b"data: ").strip()
                    for value in re.split(rb"(?:\r?\n){2}", body) if value)


@each_row("number", [number for number, (body, _) in enumerate(GEMINI_GENERATE) if body[:1] != b"["])
def test_a_wrapped_answer_of_gemini_is_read_where_it_stands(number: int) -> None:
    body, expected = GEMINI_GENERATE[number]
    wrapped = code_assist(body)
    assert slices(wrapped, provenance("gemini_generate", wrapped)) == expected
    holds("gemini_generate", wrapped, decode("gemini_generate", wrapped), provenance("gemini_generate", wrapped))
    stop = decode("gemini_generate", wrapped).stop_reason
    places = [seen.at.pointer or "" for seen in stop.evidence if seen.at is not None]
    assert stop.raw is None or all(place.startswith("/response/") for place in places)


# -- any body --------------------------------------------------------------------------------------------------------


def texts(response: ChatResponse) -> Iterator[tuple[str, str]]:
    """The facts that are texts."""
    for fact, text in (("text", response.text), ("reasoning", response.reasoning_content), ("id", response.id),
                       ("refusal", response.refusal), ("model", response.model)):
        if text:
            yield fact, text
    for owner, calls in (("tool_calls", response.tool_calls), ("server_calls", response.server_calls)):
        for index, call in enumerate(calls):
            for field, value in (("id", call.id), ("name", call.name), ("arguments", call.arguments)):
                if value:
                    yield f"{owner}[{index}].{field}", value


def text_of(raw: bytes) -> str:
    """The characters of a JSON string; any other JSON verbatim."""
    text = raw.decode("utf-8", "replace")
    return str(json.loads(text, strict=False)) if text.startswith('"') else text


def makes(text: str, values: Sequence[str], joint: str) -> bool:
    """Whether pieces make a text, with nothing but joints between them."""
    return "".join(values) == text or (joint != "" and "".join(values).replace(joint, "") == text.replace(joint, ""))


def holds(api: str, body: bytes, response: ChatResponse, traced: Provenance) -> None:
    """What holds of any body: pieces make their fact, places are values of the body, bytes know their facts."""
    if api == "bedrock_invoke" and response.streaming:
        return  # its values stand in base64: only the frames of the reason have a place
    for fact, text in texts(response):
        reads = traced.of(fact)
        values = [text_of(body[read.start : read.end]) for read in reads]
        joint = "\n\n" if (api, fact) == ("openai_responses", "reasoning") else ""
        if reads and ("partialArgs" in reads[0].pointer or "partial_args" in reads[0].pointer):
            inside = [value for read, value in zip(reads, values, strict=True) if "null" not in read.pointer]
            assert all(json.dumps(value, ensure_ascii=False)[1:-1] in text for value in inside)
        elif reads or not (api == "openai_responses" and fact.endswith(".name")):  # some tools are named by their item
            assert makes(text, values, joint), (fact, text, values)
        for read in traced.by_fact.get(fact, ()):
            assert not read.again or text_of(body[read.start : read.end]) in text
    if response.usage is not None:
        for name in Usage._fields:
            count, reads = getattr(response.usage, name), traced.of(f"usage.{name}")
            if count is not None:
                assert sum(float(body[read.start : read.end]) for read in reads) == count
    assert not response.raw_stop_reason or traced.of("stop_reason")
    assert response.error is None or response.http_status or traced.of("error")
    for fact in traced.facts:
        for read in traced.by_fact[fact]:
            assert read.fact == fact
            assert 0 <= read.start < read.end <= len(body)
            assert read in traced.at(read.start)
            assert read in traced.at(read.end - 1)
            assert read not in traced.at(read.end)
            if fact not in ("stop_reason", "error") and not fact.endswith(".arguments"):
                json.loads(body[read.start : read.end].decode("utf-8", "replace"), strict=False)


@each_row("api", FORMATS)
def test_recorded_bodies_are_traced(api: str, traffic_of: Recorded) -> None:
    for exchange in traffic_of(api):
        asked = wire(api).read_request(exchange.request, exchange.url)
        options = {"http_status": exchange.status, "headers": exchange.headers, "n": asked.n,
                   "background": asked.background}
        try:
            response = decode(api, exchange.body, **options)
        except LoopError:
            continue
        holds(api, exchange.body, response, provenance(api, exchange.body, response, **options))


# -- framings --------------------------------------------------------------------------------------------------------


def test_lines_that_are_joined_keep_their_places() -> None:
    body = (b'\xef\xbb\xbf: hello\r\ndata: {"choices": [{"index": 0,\r\ndata:"delta": {"content": "a"}},\r\ndata: '
            b'{"index": 0, "delta": {"content":\r\ndata:  "b"}}]}\r\n\r\n')
    traced = provenance("openai_chat", body)
    assert slices(body, traced) == {"text": ['"a"', '"b"']}
    assert [read.pointer for read in traced.of("text")] == ["/choices/0/delta/content", "/choices/1/delta/content"]


def test_a_byte_order_mark_moves_nothing() -> None:
    body = b"\xef\xbb\xbf" + completion({"content": "a"}, finish_reason="stop")
    assert slices(body, provenance("openai_chat", body)) == {"text": ['"a"'], "stop_reason": ['"stop"']}


def test_bytes_that_are_no_text_are_read_as_the_decoder_reads_them() -> None:
    body = b'data: {"id": "\xff", "choices": [{"index": 0, "delta": {"content": "a\xff\x01\xe2\x82"}}]}\n\n'
    traced = provenance("openai_chat", body)
    (read,) = traced.of("text")
    assert body[read.start : read.end] == b'"a\xff\x01\xe2\x82"'
    assert text_of(body[read.start : read.end]) == decode("openai_chat", body).text
    assert traced.of("id")


def test_of_equal_keys_the_last_counts() -> None:
    body = b'{"id": "i", "id": "j", "choices": [{"message": {"content": "x"}, "message": {"content": "y"}}]}'
    assert slices(body, provenance("openai_chat", body)) == {"id": ['"j"'], "text": ['"y"']}


def test_an_error_in_headers_has_the_place_of_its_frame() -> None:
    body = frame("400", {}, message="error", body=b"")
    traced = provenance("bedrock_converse", body)
    assert [(read.start, read.end) for read in traced.of("error")] == [(0, len(body))]


def test_what_was_cut_became_nothing() -> None:
    body = sse(chunk({"content": "a"}), chunk({"content": "b"}))[:-5]
    assert slices(body, provenance("openai_chat", body)) == {"text": ['"a"']}
    assert provenance("openai_chat", completion({"content": "a"})[:-2]).facts == ()


# -- which of several ------------------------------------------------------------------------------------------------


def test_interleaved_calls_are_told_apart_by_their_index() -> None:
    events = [{"tool_calls": [{"index": i, "id": str(i), "function": {"name": "f", "arguments": "{"}}]} for i in (0, 1)]
    events += [{"tool_calls": [{"index": i, "function": {"arguments": text}}]} for text in ('"a":', "1}")
               for i in (0, 1)]
    body = sse(*map(chunk, events))
    traced = provenance("openai_chat", body)
    starts = [[read.start for read in traced.of(f"tool_calls[{i}].arguments")] for i in (0, 1)]
    assert [len(each) for each in starts] == [3, 3]
    assert sorted(starts[0] + starts[1]) == [start for pair in zip(*starts, strict=True) for start in pair]


def test_calls_that_share_an_index_follow_one_another() -> None:
    body = sse(*(chunk({"tool_calls": [{"index": 0, "id": key, "function": {"name": "f", "arguments": "{}"}}]})
                 for key in "kl"))
    traced = provenance("openai_chat", body)
    first, second = body.index(b'"k"'), body.index(b'"l"')
    for call, low in ((0, first), (1, second)):
        for field in ("id", "name", "arguments"):
            (read,) = traced.of(f"tool_calls[{call}].{field}")
            assert low <= read.start < low + 60


def test_another_choice_repeats_nothing() -> None:
    body = sse(*({"choices": [{"index": index, "delta": {"content": "Yes"}}]} for index in (0, 1)))
    response = decode("openai_chat", body, n=2)
    assert slices(body, provenance("openai_chat", body, response, n=2)) == {"text": ['"Yes"']}


def test_a_byte_knows_the_smallest_value_first() -> None:
    body = whole({"status": "completed", "output": [SEARCH, {**SEARCH, "id": "x"}]})
    traced = provenance("openai_responses", body)
    assert traced.at(0) == ()
    assert traced.at(len(body)) == ()
    assert [read.fact for read in traced.at(body.index(b'"w"'))] == ["server_calls[0].arguments"]
    assert [read.fact for read in traced.at(body.index(b'"x"'))] == ["server_calls[1].arguments"]
    failed = whole({"status": "failed", "error": {"message": "m"}})
    inside = provenance("openai_responses", failed).at(failed.index(b'"m"'))
    assert {read.fact for read in inside} == {"error", "stop_reason"}


# -- cost ------------------------------------------------------------------------------------------------------------


def one_call(index: int) -> dict[str, Any]:
    return call_delta(id=str(index), function={"name": "f", "arguments": "{}"}) | {"content": None}


@pytest.mark.parametrize("deltas", [
    [{"content": " "}] * 8_000 + [one_call(0)],
    [{"tool_calls": [{**one_call(n)["tool_calls"][0], "index": n}]} for n in range(4_000)],
    [{"content": "a", "reasoning": "a"}, {"reasoning_details": [{"text": "a", "index": 0}]}] * 4_000,
], ids=["text", "calls", "thoughts"])
def test_a_large_body_is_traced_in_one_pass(deltas: list[dict[str, Any]]) -> None:
    body = sse(*map(chunk, deltas))
    start = time.process_time()
    traced = provenance("openai_chat", body)
    for offset in range(0, len(body), 100):
        traced.at(offset)
    assert time.process_time() - start < 8
