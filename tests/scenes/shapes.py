"""One small, real-shaped file for each format that is read, and every JSON value put in every place of it.

Written by hand after the formats' documents; what is odd is made from them, so that a test and the fuzzer
(`tests/fuzz.py`) put the same things in the same places. Nothing here reads a file.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

GONE: Any = object()
"""The member is left out."""
EVERY: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 10**400, 1e308, "", "x", "\ud800", [], [[]], [None], {}, {"x": {}}, GONE,
)
"""Each type of JSON, its ends, and a string that is no text."""

_NAME = "write_file"
_ARGUMENTS = '{"path": "a.md", "content": "one"}'
_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}}
_CHAT_CALL = {"id": "call_1", "type": "function", "function": {"name": _NAME, "arguments": _ARGUMENTS}}

ANSWERS: Mapping[str, dict[str, Any]] = {
    "openai_chat": {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1700000000, "model": "gpt-5",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi", "refusal": None,
                                             "tool_calls": [_CHAT_CALL]}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 7, "total_tokens": 16,
                  "completion_tokens_details": {"reasoning_tokens": 2}},
    },
    "openai_responses": {
        "id": "resp_1", "object": "response", "created_at": 1700000000, "status": "incomplete", "model": "gpt-5",
        "incomplete_details": {"reason": "max_output_tokens"}, "error": None,
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "incomplete",
             "content": [{"type": "output_text", "text": "hi", "annotations": []}]},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": _NAME, "arguments": _ARGUMENTS,
             "status": "completed"},
        ],
        "usage": {"input_tokens": 9, "output_tokens": 7, "output_tokens_details": {"reasoning_tokens": 2}},
    },
    "anthropic_messages": {
        "id": "msg_01", "type": "message", "role": "assistant", "model": "claude-opus-4-5",
        "content": [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}, {"type": "text", "text": "hi"},
                    {"type": "tool_use", "id": "toolu_01", "name": _NAME, "input": {"path": "a.md"}}],
        "stop_reason": "max_tokens", "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 7, "cache_read_input_tokens": 0},
    },
    "gemini_generate": {
        "candidates": [{"content": {"role": "model", "parts": [
            {"text": "hm", "thought": True}, {"text": "hi"},
            {"functionCall": {"id": "c1", "name": _NAME, "args": {"path": "a.md"}}, "thoughtSignature": "c2ln"}]},
            "finishReason": "MAX_TOKENS", "index": 0, "safetyRatings": [{"category": "HARM", "blocked": False}]}],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 7, "thoughtsTokenCount": 2},
        "modelVersion": "gemini-2.5-pro", "responseId": "r1",
    },
    "bedrock_converse": {
        "output": {"message": {"role": "assistant", "content": [
            {"text": "hi"}, {"toolUse": {"toolUseId": "t1", "name": _NAME, "input": {"path": "a.md"}}},
            {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}}]}},
        "stopReason": "max_tokens", "usage": {"inputTokens": 9, "outputTokens": 7, "totalTokens": 16},
        "metrics": {"latencyMs": 12},
    },
    "ollama_chat": {
        "model": "qwen3", "created_at": "2026-01-01T00:00:00Z", "done": True, "done_reason": "length",
        "message": {"role": "assistant", "content": "hi", "thinking": "hm",
                    "tool_calls": [{"function": {"name": _NAME, "arguments": {"path": "a.md"}}}]},
        "prompt_eval_count": 9, "eval_count": 7, "eval_duration": 12,
    },
}
"""A whole answer in each wire format."""

URLS: Mapping[str, str] = {
    "openai_chat": "https://api.openai.com/v1/chat/completions",
    "openai_responses": "https://api.openai.com/v1/responses",
    "anthropic_messages": "https://api.anthropic.com/v1/messages",
    "gemini_generate": "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:generateContent",
    "bedrock_converse": "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse",
    "ollama_chat": "http://localhost:11434/api/chat",
}

REQUESTS: Mapping[str, dict[str, Any]] = {
    "openai_chat": {
        "model": "gpt-5", "max_completion_tokens": 64, "stream": False, "n": 1, "temperature": 1,
        "tools": [{"type": "function", "function": {"name": _NAME, "parameters": _SCHEMA}}], "tool_choice": "auto",
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "go"}]},
                     {"role": "assistant", "content": None, "tool_calls": [_CHAT_CALL]},
                     {"role": "tool", "tool_call_id": "call_1", "content": "ok"}],
    },
    "openai_responses": {
        "model": "gpt-5", "max_output_tokens": 64, "instructions": "s", "previous_response_id": None, "store": True,
        "tools": [{"type": "function", "name": _NAME, "parameters": _SCHEMA, "strict": True}],
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "go"}]},
                  {"type": "function_call", "call_id": "call_1", "name": _NAME, "arguments": _ARGUMENTS},
                  {"type": "function_call_output", "call_id": "call_1", "output": "ok"}],
    },
    "anthropic_messages": {
        "model": "claude-opus-4-5", "max_tokens": 64, "system": [{"type": "text", "text": "s"}],
        "tools": [{"name": _NAME, "input_schema": _SCHEMA}], "tool_choice": {"type": "auto"},
        "messages": [{"role": "user", "content": "go"},
                     {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": _NAME, "input": {}}]},
                     {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]}],
    },
    "gemini_generate": {
        "contents": [{"role": "user", "parts": [{"text": "go"}]},
                     {"role": "model", "parts": [{"functionCall": {"name": _NAME, "args": {}}}]},
                     {"role": "user", "parts": [{"functionResponse": {"name": _NAME, "response": {"ok": 1}}}]}],
        "systemInstruction": {"parts": [{"text": "s"}]}, "generationConfig": {"maxOutputTokens": 64},
        "tools": [{"functionDeclarations": [{"name": _NAME, "parameters": _SCHEMA}]}],
    },
    "bedrock_converse": {
        "messages": [{"role": "user", "content": [{"text": "go"}]},
                     {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": _NAME, "input": {}}}]},
                     {"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": [{"text": "ok"}],
                                                                  "status": "success"}}]}],
        "system": [{"text": "s"}], "inferenceConfig": {"maxTokens": 64},
        "toolConfig": {"tools": [{"toolSpec": {"name": _NAME, "inputSchema": {"json": _SCHEMA}}}]},
    },
    "ollama_chat": {
        "model": "qwen3", "stream": False, "options": {"num_predict": 64},
        "tools": [{"type": "function", "function": {"name": _NAME, "parameters": _SCHEMA}}],
        "messages": [{"role": "user", "content": "go"},
                     {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": _NAME}}]},
                     {"role": "tool", "tool_name": _NAME, "content": "ok"}],
    },
}
"""A request of each wire format, with tools and results."""

_STREAM = (
    'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'
    'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},'
    '"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)


def _har() -> dict[str, Any]:
    def entry(api: str, content: dict[str, Any]) -> dict[str, Any]:
        return {
            "startedDateTime": "2026-01-01T00:00:00Z", "time": 12.5,
            "request": {"method": "POST", "url": URLS[api], "headers": [{"name": "accept", "value": "*/*"}],
                        "postData": {"mimeType": "application/json", "text": json.dumps(REQUESTS[api])}},
            "response": {"status": 200, "headers": [{"name": "content-type", "value": "application/json"}],
                         "content": content, "redirectURL": "", "bodySize": 10},
        }

    packed = base64.b64encode(gzip.compress(_STREAM.encode(), mtime=0)).decode()
    socket = entry("openai_responses", {"size": 0, "text": ""})
    socket["request"]["url"] = "wss://api.openai.com/v1/responses"
    socket["_webSocketMessages"] = [
        {"type": "send", "time": 1700000000.0, "opcode": 1,
         "data": json.dumps({"type": "response.create", "model": "gpt-5", "input": "go"})},
        {"type": "receive", "time": 1700000001.0, "opcode": 1,
         "data": json.dumps({"type": "response.completed", "response": ANSWERS["openai_responses"]})},
        {"type": "receive", "time": 1700000002.0, "opcode": 2, "data": "e30="},
    ]
    return {"log": {"version": "1.2", "creator": {"name": "x", "version": "1"}, "entries": [
        entry("openai_chat", {"size": 10, "mimeType": "application/json", "comment": "",
                              "text": json.dumps(ANSWERS["openai_chat"])}),
        entry("openai_chat", {"size": 10, "encoding": "base64", "text": packed}),
        socket,
    ]}}


_NATIVE: tuple[dict[str, Any], ...] = (
    {"loop_inspector_session": 1, "title": "t", "story": "s", "provenance": "p", "end_state": "Complete"},
    {"type": "about", "title": "t"},
    {"type": "request", "id": "r1", "api": "openai_chat", "profile": "openai", "url": URLS["openai_chat"],
     "method": "POST", "headers": [["accept", "*/*"]], "body": REQUESTS["openai_chat"], "place": "continuation",
     "ordinal": 1, "at": "2026-01-01T00:00:00Z"},
    {"type": "response", "request": "r1", "status": 200, "headers": [["x-request-id", "1"]], "simulated": False},
    {"type": "bytes", "request": "r1", "ms": 1.5, "text": _STREAM},
    {"type": "bytes", "request": "r1", "ms": 2, "base64": "CgoK"},
    {"type": "end", "request": "r1", "end": "eof", "ms": 3, "problem": ""},
    {"type": "tool_result", "request": "r1", "call_id": "call_1", "name": _NAME, "text": "ok", "is_error": False},
    {"type": "limits", "values": {"continuation_max_attempts": 2}, "request": "r1"},
    {"type": "policy", "name": "strict"},
    {"type": "note", "text": "n", "request": "r1", "at": "2026-01-01T00:00:00Z"},
    {"type": "cancel", "request": "r1", "answered": False},
)


def _row(uuid: str, above: str | None, **rest: Any) -> dict[str, Any]:
    return {"parentUuid": above, "isSidechain": False, "cwd": "/h", "sessionId": "7d1c6a52", "version": "2.1.7",
            "uuid": uuid, "timestamp": "2026-03-01T08:02:00.000Z", **rest}


def _claude_answer(key: str, stop: str | None, *content: dict[str, Any]) -> dict[str, Any]:
    return {"model": "claude-opus-4-5", "id": key, "type": "message", "role": "assistant", "content": list(content),
            "stop_reason": stop, "usage": {"input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": 0}}


CLAUDE: tuple[dict[str, Any], ...] = (
    {"type": "summary", "summary": "s", "leafUuid": "u1"},
    _row("u1", None, type="user", message={"role": "user", "content": "go"}, agentId="a1", isMeta=False),
    _row("u2", "u1", type="assistant", requestId="r", agentId="a1", message=_claude_answer(
        "msg_01", "tool_use", {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "text", "text": "hi"},
        {"type": "tool_use", "id": "t1", "name": _NAME, "input": {"path": "a.md"}})),
    _row("u3", "u2", type="user", toolUseResult="User rejected tool use", message={"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "ok"}], "is_error": True},
        {"type": "text", "text": "[Request interrupted by user for tool use]"}]}),
    {"type": "api-request", "sessionId": "7d1c6a52", "querySource": "sdk", "params": {"max_tokens": 7}},
    _row("u4", "u3", type="assistant", message=_claude_answer("msg_02", None, {"type": "text", "text": "more"})),
    _row("u5", "u4", type="progress", data={"hookEvent": "Stop", "hookName": "Stop"}),
    _row("u6", "u5", type="attachment", attachment={"type": "hook_stopped_continuation", "hookName": "Stop"}),
    _row("u7", "u6", type="system", subtype="stop_hook_summary", content="Stop hook [x]"),
    _row("u8", "u7", type="system", subtype="api_error", retryAttempt=1,
         error={"status": 529, "error": {"error": {"type": "overloaded_error", "message": "m"}}}),
    _row("u9", "u8", type="assistant", isApiErrorMessage=True, apiErrorStatus=500, error="api_error",
         message={**_claude_answer("e1", None, {"type": "text", "text": 'API Error: 500 {"type":"error","error":'
                                   '{"type":"api_error","message":"m"}}'}), "model": "<synthetic>"}),
    {"type": "custom-title", "customTitle": "t", "sessionId": "7d1c6a52"},
)

PI: tuple[dict[str, Any], ...] = (
    {"type": "session", "version": 3, "id": "s1", "cwd": "/h", "timestamp": "2026-03-01T08:02:00.000Z"},
    {"type": "model_change", "id": "e0", "parentId": None, "provider": "anthropic", "modelId": "m"},
    {"type": "message", "id": "e1", "parentId": "e0", "message": {"role": "user", "content": [
        {"type": "text", "text": "go"}]}},
    {"type": "message", "id": "e2", "parentId": "e1", "timestamp": "2026-03-01T08:02:00.000Z", "message": {
        "role": "assistant", "api": "anthropic-messages", "provider": "anthropic", "model": "claude-opus-4-5",
        "content": [{"type": "thinking", "thinking": "hm", "thinkingSignature": "s"}, {"type": "text", "text": "hi"},
                    {"type": "toolCall", "id": "t1", "name": _NAME, "arguments": {"path": "a.md"}}],
        "usage": {"input": 1, "output": 2, "cacheRead": 0}, "stopReason": "toolUse"}},
    {"type": "message", "id": "e3", "parentId": "e2", "message": {"role": "toolResult", "toolCallId": "t1",
     "toolName": _NAME, "content": [{"type": "text", "text": "ok"}], "isError": False}},
    {"type": "message", "id": "e4", "parentId": "e3", "message": {"role": "bashExecution", "command": "ls",
     "output": "a", "excludeFromContext": False}},
    {"type": "compaction", "id": "e5", "parentId": "e4", "summary": "s", "tokensBefore": 9},
    {"type": "custom_message", "id": "e6", "parentId": "e5", "customType": "x", "content": "c", "display": True},
    {"type": "message", "id": "e7", "parentId": "e6", "message": {"role": "assistant", "content": "",
     "api": "openai-completions", "stopReason": "error", "errorMessage": "529 overloaded"}},
    {"type": "label", "id": "e8", "parentId": "e7", "targetId": "e1", "label": "l"},
    {"type": "session_info", "id": "e9", "parentId": "e8", "name": "n"},
)

_LITELLM: dict[str, Any] = {
    "id": "c1", "model": "deepseek-chat", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": "hi", "reasoning_content": "hm", "tool_calls": [_CHAT_CALL]}}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 1}},
}
SWE: dict[str, Any] = {
    "environment": "e", "replay_config": '{"agent": {"model": {"name": "gpt-4o"}}}', "trajectory": [
        {"action": "ls", "observation": "a", "response": "hi", "thought": "hi"}], "history": [
        {"role": "user", "content": "go", "message_type": "observation"},
        {"role": "assistant", "content": "hi", "action": "ls", "thinking_blocks": [{"thinking": "hm"}],
         "tool_calls": [_CHAT_CALL]},
        {"role": "tool", "content": "ok", "tool_call_ids": ["call_1"]},
        {"role": "assistant", "content": "more", "action": "ls"}],
    "info": {"exit_status": "submitted", "model_stats": {"tokens_sent": 9, "tokens_received": 7}},
}
MINI: dict[str, Any] = {
    "info": {"exit_status": "Submitted", "config": {"model": {"model_name": "m", "model_kwargs": {"max_tokens": 7}}}},
    "trajectory_format": "mini-swe-agent-1.1", "messages": [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "hi", "tool_calls": [_CHAT_CALL], "extra": {
            "actions": [{"command": "ls"}], "timestamp": 1.5, "response": _LITELLM}},
        {"role": "tool", "tool_call_id": "call_1", "content": "ok", "extra": {"returncode": 0}},
        {"role": "user", "content": "no", "extra": {"interrupt_type": "FormatError", "response": _LITELLM}},
        {"object": "response", "model": "m", "output": [
            {"type": "function_call", "call_id": "c", "name": "bash", "arguments": "{}"}]},
        {"type": "function_call_output", "call_id": "c", "output": "ok"},
        {"role": "exit", "content": "x", "extra": {"exit_status": "Submitted"}}],
}

_GEMINI_ROWS: tuple[dict[str, Any], ...] = (
    {"id": "m1", "timestamp": "t", "type": "user", "content": [{"text": "go"}]},
    {"id": "m2", "type": "gemini", "content": "hi", "model": "m", "thoughts": [{"subject": "s", "description": "d"}],
     "tokens": {"input": 9, "output": 7, "thoughts": 2, "cached": 1}, "toolCalls": [
         {"id": "c", "name": _NAME, "args": {"path": "a.md"}, "status": "success", "result": [
             {"functionResponse": {"response": {"output": "ok"}}}]}]},
    {"id": "m3", "type": "info", "content": "Response truncated due to token limits."},
    {"id": "m4", "type": "gemini", "content": "more"},
    {"id": "m5", "type": "error", "content": "[API Error: m]"},
)
GEMINI: dict[str, Any] = {"sessionId": "s", "projectHash": "p", "summary": "t", "messages": list(_GEMINI_ROWS)}
GEMINI_LINES: tuple[dict[str, Any], ...] = (
    {"sessionId": "s", "projectHash": "p", "kind": "main"}, *_GEMINI_ROWS[:2],
    {"$set": {"summary": "t", "messages": [_GEMINI_ROWS[0]]}}, {"$rewindTo": "m1"},
)
KIRO: tuple[dict[str, Any], ...] = tuple(
    {"version": "v1", "kind": kind, "data": {"message_id": f"m{number}", "content": content, **more}}
    for number, (kind, content, more) in enumerate([
        ("Prompt", [{"kind": "text", "data": "go"}], {"meta": {"timestamp": 1783571482}}),
        ("AssistantMessage", [
            {"kind": "thinking", "data": {"text": "hm", "signature": "c2ln", "redactedContent": []}},
            {"kind": "text", "data": "I look."},
            {"kind": "toolUse", "data": {"toolUseId": "c", "name": "read", "input": {"path": "a"}}}], {}),
        ("ToolResults", [{"kind": "toolResult", "data": {
            "toolUseId": "c", "content": [{"kind": "json", "data": {"items": ["x"]}}], "status": "success"}}], {}),
        ("AssistantMessage", [{"kind": "text", "data": "ok"}], {}),
    ]))
DROID: tuple[dict[str, Any], ...] = (
    {"type": "session_start", "id": "s", "title": "t", "cwd": "/h"},
    {"type": "message", "id": "m1", "parentId": "s", "message": {"role": "user", "content": [
        {"type": "text", "text": "go"}]}},
    {"type": "message", "id": "m2", "parentId": "m1", "message": {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "hm"},
        {"type": "tool_use", "id": "c", "name": _NAME, "input": {"path": "a"}}]}},
    {"type": "message", "id": "m3", "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "c", "content": "ok", "is_error": False}]}},
    {"type": "tool_call", "session_id": "s", "toolCallId": "d", "toolName": _NAME, "parameters": {"path": "a"}},
    {"type": "tool_result", "session_id": "s", "toolCallId": "d", "value": {"stdout": "ok"}},
    {"type": "completion", "session_id": "s", "finalText": "Done", "usage": {"input_tokens": 1, "output_tokens": 2}},
    {"type": "error", "message": "m"},
)
CURSOR: tuple[dict[str, Any], ...] = (
    {"role": "user", "message": {"content": [{"type": "text", "text": "<user_query>go</user_query>"}]}},
    {"role": "assistant", "message": {"content": [{"type": "text", "text": "hi"}, {
        "type": "tool_use", "name": _NAME, "input": {"path": "a"}}]}},
    {"role": "user", "message": {"content": [{"type": "tool_result", "content": "ok"}]}},
    {"type": "turn_ended", "status": "success"},
)
ATIF: dict[str, Any] = {
    "schema_version": "ATIF-v1.7", "agent": {"name": "a", "model_name": "m"}, "continued_trajectory_ref": "f",
    "steps": [
        {"step_id": 1, "source": "user", "message": "go"},
        {"step_id": 2, "source": "agent", "message": [{"type": "text", "text": "hi"}], "reasoning_content": "hm",
         "tool_calls": [{"tool_call_id": "c", "function_name": _NAME, "arguments": {"path": "a"}}],
         "observation": {"results": [{"source_call_id": "c", "content": "ok"}]}, "llm_call_count": 2,
         "metrics": {"prompt_tokens": 9, "completion_tokens": 7, "extra": {"finish_reason": "stop"}}}],
    "subagent_trajectories": [{"agent": {"model_name": "m"}, "steps": [{"source": "agent", "message": "hi"}]}],
}
OTLP: dict[str, Any] = {"resourceSpans": [{"scopeSpans": [{"spans": [
    {"traceId": "t", "spanId": "s1", "parentSpanId": "s0", "startTimeUnixNano": "1", "attributes": [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
        {"key": "gen_ai.usage.output_tokens", "value": {"intValue": "7"}},
        {"key": "gen_ai.output.messages", "value": {"stringValue": json.dumps([{"role": "assistant", "parts": [
            {"type": "tool_call", "id": "c", "name": _NAME, "arguments": {"path": "a"}}]}])}},
        {"key": "gen_ai.response.finish_reasons", "value": {"arrayValue": {"values": [{"stringValue": "stop"}]}}}],
     "status": {"code": 0}},
    {"spanId": "s2", "startTimeUnixNano": 2, "attributes": {
        "openinference.span.kind": "LLM", "llm.output_messages.0.message.content": "hi",
        "llm.invocation_parameters": "{}"},
     "events": [{"name": "gen_ai.choice", "attributes": [{"key": "message", "value": {"kvlistValue": {}}}]}]},
    {"spanId": "s3", "attributes": {
        "openinference.span.kind": "TOOL", "tool_call.id": "c", "output.value": "ok"}}]}]}]}
OPENHANDS: tuple[dict[str, Any], ...] = (
    {"id": 0, "timestamp": "t", "source": "user", "action": "message", "args": {"content": "go"}},
    {"id": 1, "source": "agent", "action": "run", "args": {"command": "ls", "thought": "hm"}, "tool_call_metadata": {
        "tool_call_id": "call_1", "function_name": "run", "model_response": _LITELLM}},
    {"id": 2, "source": "agent", "observation": "run", "content": "a", "extras": {}, "cause": 1},
    {"id": 3, "source": "agent", "action": "run", "args": {"command": "ls", "thought": "hm"}},
    {"id": 4, "source": "environment", "observation": "agent_state_changed", "extras": {"agent_state": "finished"}},
    {"id": "5", "timestamp": "t", "source": "agent", "kind": "ActionEvent", "thought": [{"text": "hm"}],
     "llm_response_id": "r", "tool_call": {"id": "c", "name": "run", "arguments": "{}"}},
    {"id": "6", "timestamp": "t", "source": "environment", "kind": "ObservationEvent", "tool_call_id": "c",
     "observation": {"content": [{"text": "a"}], "is_error": False}},
)

_ASKED: dict[str, Any] = {"model": "gpt-5", "messages": [{"role": "user", "content": "go"}]}
_CHAT: dict[str, Any] = {
    "id": "chatcmpl-1", "object": "chat.completion",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
}
_SAID: dict[str, Any] = {
    "id": "msg_01", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "hi"}],
    "stop_reason": "end_turn",
}

_PAIRS: tuple[dict[str, Any], ...] = (
    {"request": {"method": "POST", "url": URLS["openai_chat"], "headers": {"accept": "*/*"},
                 "body": _ASKED},
     "response": {"status": 200, "headers": [["x", "y"]], "body": _CHAT},
     "timestamp": "2026-01-01T00:00:00Z", "duration_ms": 12, "api": "openai_chat"},
    {"custom_id": "c1", "response": {"type": "succeeded", "message": _SAID}},
    {"request": _ASKED, "started": 1700000000, "response": [
        {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "hi"},
                                                                            "finish_reason": "stop"}]}]},
    {"request": {"uri": URLS["openai_chat"], "method": "POST", "body": {"string": json.dumps(_ASKED)}},
     "response": {"status": {"code": 200}, "headers": {"x": ["y"]},
                  "body": {"base64_string": base64.b64encode(_STREAM.encode()).decode()}}},
    {"request": _ASKED, "response": None, "error": "connection reset"},
)


_OPENCODE: dict[str, Any] = {"info": {"id": "ses_1", "title": "t", "directory": "/w"}, "messages": [
    {"info": {"id": "m1", "sessionID": "ses_1", "role": "user", "time": {"created": 1700000000000}},
     "parts": [{"id": "p1", "messageID": "m1", "type": "text", "text": "go"}]},
    {"info": {"id": "m2", "sessionID": "ses_1", "role": "assistant", "modelID": "m", "finish": "length",
              "error": {"name": "APIError", "data": {"message": "x", "statusCode": 500}}},
     "parts": [
        {"id": "p2", "messageID": "m2", "type": "tool", "callID": "c", "tool": "invalid",
         "state": {"status": "completed", "input": {"tool": "w", "error": "e"}, "output": "o"}},
        {"id": "p3", "messageID": "m2", "type": "step-finish", "reason": "stop",
         "tokens": {"total": 4, "input": 1, "output": 1, "reasoning": 1, "cache": {"read": 1}}}]},
]}
CODEX: tuple[dict[str, Any], ...] = (
    {"type": "session_meta", "payload": {"id": "t", "source": {"subagent": "x"}}},
    {"type": "turn_context", "payload": {"model": "m"}},
    {"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": {
        "type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}},
    {"type": "response_item", "payload": {
        "type": "function_call", "name": "ls", "arguments": "{\"a\": 1", "call_id": "c"}},
    {"type": "event_msg", "payload": {"type": "token_count", "info": {"last_token_usage": {"output_tokens": 7}}}},
    {"type": "response_item", "payload": {
        "type": "function_call_output", "call_id": "c", "output": {"success": False}}},
    {"type": "event_msg", "payload": {"type": "task_complete", "last_agent_message": None, "error": {
        "message": "down", "codex_error_info": {"response_stream_disconnected": {"http_status_code": 502}}}}},
    {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}},
)


KIMI: tuple[dict[str, Any], ...] = (
    {"type": "metadata", "protocol_version": "1.4"},
    {"type": "llm.request", "provider": "kimi", "model": "m", "maxTokens": 64, "turnStep": "0.1", "time": 1},
    {"type": "context.append_message", "message": {"role": "user", "content": [{"type": "text", "text": "go"}],
                                                   "origin": {"kind": "user"}}},
    {"type": "context.append_loop_event", "event": {"type": "tool.call", "stepUuid": "s", "toolCallId": "c",
                                                    "name": "ls", "args": {"a": 1}}},
    {"type": "context.append_loop_event", "event": {"type": "tool.result", "toolCallId": "c",
                                                    "result": {"output": "x", "isError": True}}},
    {"type": "context.append_loop_event", "event": {"type": "step.end", "uuid": "s", "messageId": "m", "usage": {
        "inputOther": 1, "output": 7}, "rawFinishReason": "length", "finishReason": "max_tokens"}},
    {"message": {"type": "ToolCall", "payload": {"id": "c", "function": {"name": "ls", "arguments": "{}"}}}},
)
_KIMI_CLI: tuple[dict[str, Any], ...] = (
    {"timestamp": 1.5, "message": {"type": "TurnBegin", "payload": {"user_input": "go"}}},
    {"timestamp": 1.5, "message": {"type": "SubagentEvent", "payload": {
        "agent_id": "a", "subagent_type": "t", "event": {"type": "ToolCall", "payload": {
            "id": "c", "function": {"name": "ls", "arguments": "{}"}}}}}},
    {"timestamp": 1.5, "message": {"type": "StatusUpdate", "payload": {"token_usage": {"output": 7}}}},
)


_HERMES: dict[str, Any] = {"session_id": "s", "platform": "cli", "model": "m", "messages": [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": "hi", "finish_reason": "length", "tool_calls": [
        {"id": "c", "function": {"name": "w", "arguments": "{}"}}]},
    {"role": "tool", "content": "ok", "tool_call_id": "c", "tool_name": "w"}]}
_GOOSE: tuple[dict[str, Any], ...] = (
    {"working_dir": "/w", "description": "d", "message_count": 3},
    {"role": "user", "created": 1700000000, "content": [{"type": "text", "text": "go"}]},
    {"role": "assistant", "created": 1700000001, "content": [
        {"type": "toolRequest", "id": "c", "toolCall": {"status": "success", "value": {"name": "w", "arguments": {}}}},
        {"type": "toolRequest", "id": "d", "toolCall": {"status": "error", "error": {"message": "EOF"}}}]},
    {"role": "user", "content": [{"type": "toolResponse", "id": "c", "toolResult": {
        "status": "success", "value": {"content": [{"type": "text", "text": "ok"}], "isError": False}}}]},
    {"role": "assistant", "created": 1700000001, "content": [{"type": "toolRequest", "id": "e", "toolCall": {
        "status": "success", "value": {"name": "w", "arguments": {}}}}]},
)
_AMP: dict[str, Any] = {"id": "T-1", "v": 1, "title": "t", "messages": [
    {"role": "user", "content": [{"type": "text", "text": "go"}]},
    {"role": "assistant", "protocolMessageID": "M-1", "state": {"type": "complete", "stopReason": "tool_use"},
     "usage": {"model": "claude-x", "inputTokens": 1, "outputTokens": 2, "cacheReadInputTokens": 1},
     "content": [{"type": "tool_use", "id": "c", "name": "w", "input": {"a": 1}}]},
    {"role": "user", "content": [{"type": "tool_result", "toolUseID": "c",
                                  "run": {"status": "done", "result": {"output": "o", "exitCode": 0}}}]}]}
QWEN: tuple[dict[str, Any], ...] = (
    {"uuid": "1", "parentUuid": None, "sessionId": "s", "type": "user", "message": {"parts": [{"text": "go"}]},
     "systemPayload": {"displayText": "go"}},
    {"uuid": "2", "parentUuid": "1", "sessionId": "s", "type": "assistant", "model": "m", "message": {"parts": [
        {"text": "hm", "thought": True}, {"functionCall": {"id": "c", "name": "ls", "args": {"a": 1}}}]},
     "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2}},
    {"uuid": "3", "parentUuid": "2", "sessionId": "s", "type": "tool_result", "message": {"parts": [
        {"functionResponse": {"id": "c", "name": "ls", "response": {"output": "x"}}}]}},
    {"uuid": "4", "parentUuid": "3", "sessionId": "s", "type": "system", "subtype": "ui_telemetry", "systemPayload": {
        "uiEvent": {"error_message": "down", "status_code": 500, "error_type": "x"}}},
    {"uuid": "5", "parentUuid": "4", "sessionId": "s", "type": "system", "subtype": "rewind", "systemPayload": {
        "targetUuid": "1"}},
)
COPILOT: tuple[dict[str, Any], ...] = (
    {"type": "session.start", "data": {"selectedModel": "m"}, "id": "1", "parentId": None},
    {"type": "user.message", "data": {"content": "go"}},
    {"type": "assistant.message", "timestamp": "2026-01-01T00:00:00Z", "data": {
        "messageId": "m", "content": "hi", "reasoningText": "hm", "outputTokens": 7, "toolRequests": [
            {"toolCallId": "c", "name": "ls", "arguments": {"a": 1}}]}},
    {"type": "tool.execution_complete", "data": {"toolCallId": "c", "success": False, "result": {"content": "x"},
                                                 "parentToolCallId": ""}},
    {"type": "session.error", "data": {"message": "down", "statusCode": 500, "errorType": "x"}},
)
def cassette(value: Any) -> bytes:
    """A cassette of these interactions: JSON is YAML."""
    return f"interactions:\n  {json.dumps(value)}\nversion: 1\n".encode()


def httprr(value: Any) -> bytes:
    """A trace of Go's httprr, whose exchanges have these bodies."""
    texts = b"".join(b"%d %d\n%s%s" % (len(asked), len(answer), asked, answer) for asked, answer in (
        (b"POST https://api.openai.com/v1/chat/completions HTTP/1.1\r\n\r\n" + json.dumps(each[:1]).encode()[1:-1],
         b"HTTP/2.0 200 OK\r\n\r\n" + json.dumps(each[1:]).encode()[1:-1])
        for each in (value if isinstance(value, list) else []) if isinstance(each, list)))
    return b"httprr trace v1\n" + texts


def http_text(value: Any) -> bytes:
    """Messages as `curl -v` prints them, whose bodies are these values."""
    return b"".join(
        b"* Connected to api.openai.com\n> POST /v1/chat/completions HTTP/2\r\n> Host: api.openai.com\r\n> \r\n"
        b"< HTTP/2 200 \r\n< content-type: application/json\r\n< \r\n" + json.dumps(each).encode()
        + b"* Connection #0 to host api.openai.com left intact\n"
        for each in (value if isinstance(value, list) else []))


def curl_trace(value: Any) -> bytes:
    """A trace of curl in hexadecimal, whose bodies are these values."""
    def block(what: str, data: bytes) -> bytes:
        rows = [f"{at:04x}: {data[at : at + 16].hex(' '):<47} {'.' * 16}" for at in range(0, len(data), 16)]
        return "\n".join([f"{what}, {len(data)} bytes (0x{len(data):x})", *rows, ""]).encode()

    return b"".join(
        block("=> Send header", b"POST /v1/chat/completions HTTP/2\r\nHost: api.openai.com\r\n\r\n")
        + block("<= Recv header", b"HTTP/2 200 \r\n\r\n") + block("<= Recv data", json.dumps(each).encode())
        + b"== Info: Connection #0 to host api.openai.com left intact\n"
        for each in (value if isinstance(value, list) else []))


def tnetstring(value: Any) -> bytes:
    """A value as mitmproxy writes it."""
    if isinstance(value, (list, dict)):
        held = [part for pair in value.items() for part in pair] if isinstance(value, dict) else value
        data, letter = b"".join(map(tnetstring, held)), "}" if isinstance(value, dict) else "]"
    elif isinstance(value, bytes):
        data, letter = value, ","
    elif value is None or isinstance(value, bool):
        data, letter = b"" if value is None else str(value).lower().encode(), "~" if value is None else "!"
    elif isinstance(value, (int, float)):
        data, letter = str(value).encode(), "#" if isinstance(value, int) else "^"
    else:
        data, letter = str(value).encode("utf-8", "replace"), ";"
    return f"{len(data)}:".encode() + data + letter.encode()


CASSETTE: list[dict[str, Any]] = [{
    "request": {"method": "POST", "uri": URLS["openai_chat"], "body": '{"model": "m"}', "headers": {"accept": ["x"]}},
    "response": {"status": {"code": 200}, "headers": {"content-type": ["application/json"]},
                 "body": {"string": json.dumps(ANSWERS["openai_chat"])}}}]
FLOW: dict[str, Any] = {
    "version": 21, "type": "http", "id": "f", "metadata": {}, "error": None,
    "request": {"host": "api.openai.com", "port": 443, "scheme": "https", "method": "POST",
                "path": "/v1/chat/completions", "headers": [["host", "api.openai.com"]],
                "content": '{"model": "m"}', "timestamp_start": 1700000000.5},
    "response": {"status_code": 200, "headers": [["content-type", "application/json"]],
                 "content": json.dumps(ANSWERS["openai_chat"]), "timestamp_end": 1700000002},
    "websocket": None,
}

INSPECT: dict[str, Any] = {"version": 2, "status": "success", "eval": {"run_id": "r", "task": "t"}, "samples": [{
    "id": 1, "epoch": 1, "attachments": {"ab": "hi"}, "error": {"message": "m"},
    "events_data": {"messages": [{"role": "user", "content": "go"}]},
    "events": [
        {"event": "model", "model": "m", "input_refs": [[0, 1]], "config": {"max_tokens": 7},
         "output": {"choices": [{"message": {"content": [{"type": "text", "text": "attachment://ab"}], "tool_calls": [
             {"id": "c", "function": "f", "arguments": {"a": 1}, "parse_error": "x"}]}, "stop_reason": "tool_calls"}],
             "usage": {"output_tokens": 7}},
         "call": {"request": {"max_tokens": 7}, "response": {"choices": [{"finish_reason": "length"}]}}},
        {"event": "tool", "id": "c", "function": "f", "result": "r", "error": {"type": "approval"}},
    ]}]}


LANGFUSE: dict[str, Any] = {"trace": {"id": "t", "projectId": "p", "name": "n"}, "observations": [
    {"id": "a", "traceId": "t", "type": "GENERATION", "startTime": "2026-01-01T00:00:00Z", "model": "m", "input": [
        {"role": "user", "content": "go"}], "modelParameters": {"max_tokens": 7}, "usageDetails": {"output": 7},
     "level": "DEFAULT", "statusMessage": None, "output": {"choices": [{"finish_reason": "length", "message": {
         "content": "hi", "tool_calls": [{"id": "c", "function": {"name": "ls", "arguments": "{"}}]}}]}},
    {"id": "b", "traceId": "t", "type": "SPAN", "parentObservationId": "a"},
]}
AI_DEVTOOLS: dict[str, Any] = {
    "runs": [{"id": "u", "started_at": "2026-01-01T00:00:00Z"}],
    "steps": [{"id": "s", "run_id": "u", "step_number": 1, "type": "generate", "model_id": "m", "provider": "openai",
               "started_at": "2026-01-01T00:00:00Z", "duration_ms": 7, "input": "{}", "output": None, "error": None,
               "raw_request": json.dumps({"model": "m", "messages": [{"role": "user", "content": "go"}]}),
               "raw_response": json.dumps({"choices": [{"finish_reason": "length", "message": {"content": "hi"}}]}),
               "raw_chunks": None}],
}
LANGSMITH: dict[str, Any] = {"runs": [
    {"id": "a", "run_type": "llm", "trace_id": "t", "parent_run_id": "z", "start_time": "2026-01-01T00:00:00Z",
     "inputs": {"messages": [[{"lc": 1, "id": ["langchain", "schema", "messages", "HumanMessage"],
                               "kwargs": {"content": "go", "type": "human"}}]]},
     "extra": {"invocation_params": {"model": "m", "max_tokens": 7}, "metadata": {
         "ls_provider": "openai", "ls_model_name": "m", "ls_max_tokens": 7, "thread_id": "h"}}, "error": None,
     "outputs": {"generations": [[{"text": "hi", "generation_info": {"finish_reason": "length"}, "message": {
         "lc": 1, "id": ["langchain", "schema", "messages", "AIMessage"], "kwargs": {
             "content": [{"type": "text", "text": "hi"}], "type": "ai",
             "response_metadata": {"finish_reason": "length"},
             "usage_metadata": {"input_tokens": 3, "output_tokens": 7, "output_token_details": {"reasoning": 2}},
             "tool_calls": [{"name": "ls", "args": {"p": 1}, "id": "c"}],
             "invalid_tool_calls": [{"name": "w", "args": "{\"p", "id": "d", "error": "no JSON"}]}}}]]}},
    {"id": "b", "run_type": "tool", "trace_id": "t", "name": "ls", "inputs": {"p": 1}, "error": None,
     "extra": {"tool_call_id": "c"}, "outputs": {"output": {"lc": 1, "kwargs": {
         "content": "ok", "type": "tool", "tool_call_id": "c", "status": "success"}}}},
    {"id": "d", "run_type": "llm", "trace_id": "t", "inputs": {"messages": [{"role": "user", "content": "on"}]},
     "outputs": {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "done"}}]}},
]}
ROO: tuple[dict[str, Any], ...] = (
    {"role": "user", "content": [{"type": "text", "text": "<task>go</task>"}], "ts": 1000},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "w", "input": {}}], "ts": 2000,
     "modelInfo": {"modelId": "m"}, "metrics": {"tokens": {"prompt": 1, "completion": 2}}},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "ok"}], "ts": 3000},
)
ROO_SCREEN: tuple[dict[str, Any], ...] = (
    {"ts": 1, "type": "say", "say": "text", "text": "go"},
    {"ts": 2, "type": "say", "say": "api_req_started", "text": "{\"tokensIn\": 1, \"cancelReason\": \"x\"}"},
    {"ts": 3, "type": "say", "say": "text", "text": "done", "partial": True},
)

TAP: dict[str, Any] = {
    "timestamp": "2026-01-01T00:00:00Z", "request_id": "r", "turn": 1, "duration_ms": 5,
    "request": {"method": "POST", "path": "/v1/messages", "body": {"model": "m", "messages": []}},
    "response": {"status": 200, "headers": {}, "body": ANSWERS["anthropic_messages"]},
}
TAP_BUNDLE: dict[str, Any] = {
    "__claude_tap_compact_trace__": {"version": 1}, "blobs": {"h": {"payload": {"role": "user", "content": "x"}}},
    "records": [{"__claude_tap_compact_record__": {"refs": [{"path": "/request/body/messages/0"}]}, "record": {
        "request": {"body": {"messages": [{"__claude_tap_blob_ref__": {"hash": "h"}}]}},
        "response": {"sse_events": [{"event": "message_stop", "data": {"type": "message_stop"}}]}}}],
}

LITELLM: dict[str, Any] = {
    "call_type": "acompletion", "trace_id": "t", "model": "m", "model_parameters": {"max_tokens": 7},
    "messages": [{"role": "user", "content": "go"}, {"role": "tool", "tool_call_id": "c", "content": "x"}],
    "response": {"id": "c", "choices": [{"finish_reason": "length", "message": {"content": "hi"}}],
                 "usage": {"completion_tokens": 7}}, "error_str": None,
}


def _node(key: str, above: str | None, role: str, content: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": key, "parent": above, "children": [], "message": {
        "id": key, "author": {"role": role, "name": more.pop("name", None)}, "content": content, "recipient": "all",
        "status": "finished_successfully", "create_time": 1700000000.5, "end_turn": False, **more}}


CHATGPT: dict[str, Any] = {"title": "t", "id": "c", "current_node": "5", "mapping": {each["id"]: each for each in (
    {"id": "0", "parent": None, "children": ["1"], "message": None},
    _node("1", "0", "user", {"content_type": "text", "parts": ["go"]}),
    _node("2", "1", "assistant", {"content_type": "thoughts", "thoughts": [{"content": "hm"}]}),
    _node("3", "2", "assistant", {"content_type": "code", "language": "json", "text": "{}"}, recipient="python",
          metadata={"finish_details": {"type": "stop"}, "model_slug": "m"}),
    _node("4", "3", "tool", {"content_type": "multimodal_text", "parts": [{"asset_pointer": "x"}]}, name="python",
          metadata={"aggregate_result": {"in_kernel_exception": None}}),
    _node("5", "4", "assistant", {"content_type": "text", "parts": [""]}, end_turn=True,
          metadata={"finish_details": {"type": "interrupted", "reason": "client_stopped"}}),
)}}


def server_events(events: Any) -> bytes:
    """A stream of server-sent events, each with one value."""
    return b"".join(b"data: %s\n\n" % json.dumps(each).encode() for each in (
        events if isinstance(events, list) else [events]))


def coded_lines(lines: Any) -> bytes:
    """Lines that each begin with a code and a colon, and go on with JSON."""
    pairs = [each if isinstance(each, list) and len(each) == 2 else ["0", each] for each in (
        lines if isinstance(lines, list) else [lines])]
    return b"".join(b"%s:%s\n" % (str(code).encode("utf-8", "replace"), json.dumps(value).encode())
                    for code, value in pairs)


class Shape(NamedTuple):
    """A file of one format: its JSON value, or the rows of a file of lines."""

    format: str
    name: str
    value: Any
    rows: bool = False
    write: Callable[[Any], bytes] | None = None
    """Writes its value, where the file is no JSON."""

    def file_bytes(self, value: Any = GONE) -> bytes:
        """The file, with another value than its own where one is given."""
        held = self.value if value is GONE else value
        if self.write is not None:
            return self.write(held)
        lines = held if self.rows and isinstance(held, (list, tuple)) else [held]
        return "".join(f"{json.dumps(line)}\n" for line in lines).encode()


def aider_chat(texts: Any) -> bytes:
    """A chat of aider: its header, a question, these texts of the model, and a text that a limit cut."""
    listed = texts if isinstance(texts, list) else [texts]
    said = "\n".join(f"\n{text}\n\n> Tokens: 9 sent, 7 received.  " for text in listed)
    return (f"\n# aider chat started at 2026-01-02 03:04:05\n\n> Model: m with whole edit format  \n\n#### go  \n"
            f"{said}\n#### on  \n\nand\n\n> Model m has hit a token limit!  \n").encode("utf-8", "replace")


def aider_log(texts: Any) -> bytes:
    """A log of aider: a request, and the answer with these texts."""
    said = "\n".join(f"ASSISTANT {text}" for text in (texts if isinstance(texts, list) else [texts]))
    return (f"TO LLM 2026-01-02T03:04:05\n-------\nSYSTEM be brief\n-------\nUSER go\n"
            f"LLM RESPONSE 2026-01-02T03:04:06\n{said}\n").encode("utf-8", "replace")


_LETTA = {"metadata": {"agent_id": "a", "conversation_id": "c", "compaction": None}}

SHAPES: tuple[Shape, ...] = (
    Shape("har", "a.har", _har()),
    Shape("session", "a.session.jsonl", list(_NATIVE), rows=True),
    Shape("claude-code", "claude.jsonl", list(CLAUDE), rows=True),
    Shape("pi", "pi.jsonl", list(PI), rows=True),
    Shape("letta", "messages.jsonl", [
        {"id": "ui-msg-1", "role": "user", "content": [{"type": "text", "text": "go"}], **_LETTA},
        {"id": "ui-msg-2", "role": "assistant", "api": "anthropic-messages", "model": "m", "content": [
            {"type": "text", "text": "hi"},
            {"type": "toolCall", "id": "t1", "name": _NAME, "arguments": {"path": "a"}}],
         "usage": {"input": 1, "output": 2, "cacheRead": 0}, "stopReason": "length", "timestamp": 1795959558690,
         **_LETTA},
        {"id": "ui-msg-3", "role": "toolResult", "toolCallId": "t1", "toolName": _NAME, "isError": False, "content": [
            {"type": "text", "text": "ok"}], **_LETTA},
        {"id": "ui-msg-4", "role": "assistant", "api": "local", "model": "local", "content": [
            {"type": "text", "text": "a"}], "usage": {"input": 0}, "stopReason": "stop", **_LETTA}], rows=True),
    Shape("swe-agent", "a.traj", SWE),
    Shape("mini-swe-agent", "a.traj.json", MINI),
    Shape("opencode", "opencode.json", _OPENCODE),
    Shape("gemini-cli", "gemini.json", GEMINI),
    Shape("gemini-cli", "gemini.jsonl", list(GEMINI_LINES), rows=True),
    Shape("gemini-stream", "stream.jsonl", [
        {"type": "init", "session_id": "s", "model": "gemini-x"}, {"type": "message", "role": "user", "content": "go"},
        {"type": "message", "role": "assistant", "content": "Look.", "delta": True},
        {"type": "tool_use", "tool_name": "ls", "tool_id": "c", "parameters": {"path": "."}},
        {"type": "tool_result", "tool_id": "c", "status": "error", "error": {"type": "x", "message": "no"}},
        {"type": "error", "severity": "warning", "message": "Loop detected"},
        {"type": "result", "status": "error", "error": {"type": "x", "message": "down"}, "stats": {"input_tokens": 5}},
    ], rows=True),
    Shape("antigravity", "antigravity.jsonl", [
        {"step_index": 0, "source": "USER_EXPLICIT", "type": "USER_INPUT", "status": "DONE", "content": "go"},
        {"step_index": 1, "source": "MODEL", "type": "PLANNER_RESPONSE", "status": "DONE", "content": "Look.",
         "thinking": "hm", "created_at": "2026-06-01T10:00:00Z", "truncated_fields": ["tool_calls"],
         "tool_calls": [{"name": "ls", "args": {"path": "\"a\""}}]},
        {"step_index": 2, "source": "MODEL", "type": "LIST_DIRECTORY", "status": "ERROR", "content": "no"},
        {"step_index": 3, "source": "SYSTEM", "type": "SYSTEM_MESSAGE", "status": "DONE", "content": "wake"},
        {"step_index": 4, "source": "SYSTEM", "type": "CHECKPOINT", "status": "DONE", "content": "so far"},
        {"step_index": 5, "source": "SYSTEM", "type": "ERROR_MESSAGE", "status": "DONE", "error": "down"},
    ], rows=True),
    Shape("kiro", "kiro.jsonl", list(KIRO), rows=True),
    Shape("kiro", "messages.jsonl", [
        {"id": str(at), "timestamp": "2026-09-01T17:52:55.268Z", "payload": payload} for at, payload in enumerate([
            {"type": "user", "content": "go", "images": []}, {"type": "turn_start", "executionId": "e"},
            {"type": "assistant", "content": "...", "operationType": "Reasoning"},
            {"type": "assistant", "content": [{"text": "I look."}], "operationType": "Say"},
            {"type": "tool_call", "toolCallId": "c", "toolName": "read_file", "args": {"path": "a"}},
            {"type": "tool_result", "toolCallId": "c", "content": "x", "success": True},
            {"type": "assistant", "content": "ok", "operationType": "Say"},
            {"type": "turn_end", "executionId": "e", "stopReason": "end_turn"}])
    ], rows=True),
    Shape("kiro-conversations", "saved.json", {
        "conversation_id": "c-1", "valid_history_range": [0, 3], "model_info": {"model_id": "m"}, "history": [
            {"user": {"content": {"Prompt": {"prompt": "go"}}}, "assistant": {"ToolUse": {
                "message_id": "m1", "content": "I look.", "tool_uses": [
                    {"id": "c", "name": "fs_read", "args": {"path": "a"}}]}},
             "request_metadata": {"model_id": "m", "request_start_timestamp_ms": 1783571416209, "output_tokens": 7}},
            [{"content": {"ToolUseResults": {"tool_use_results": [
                {"tool_use_id": "c", "content": [{"Text": "x"}, {"Json": {"y": 1}}], "status": "Success"}]}}},
             {"Response": {"message_id": "m2", "content": "ok"}}],
            {"user": {"content": {"CancelledToolUses": {"prompt": "no", "tool_use_results": [
                {"tool_use_id": "d", "content": [{"Text": "cancelled"}], "status": "Error"}]}}},
             "assistant": {"Response": {"message_id": None, "content": "fine"}}}]}),
    Shape("grok", "updates.jsonl", [
        {"timestamp": 1796130457, "method": method, "params": {"sessionId": "s", "update": update, "_meta": {
            "eventId": f"s-{at}", "agentTimestampMs": 1796130457000 + at, "streamStartMs": 1796130457001}}}
        for at, (method, update) in enumerate([
            ("session/update", {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "go"},
                                "_meta": {"modelId": "m", "promptIndex": 0}}),
            ("session/update", {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}}),
            ("session/update", {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "read",
                                "rawInput": {"path": "a"}}),
            ("session/update", {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed",
                                "content": [{"type": "content", "content": {"type": "text", "text": "x"}}]}),
            ("_x.ai/session/update", {"sessionUpdate": "turn_completed", "prompt_id": "p", "stop_reason": "end_turn",
                                      "usage": {"inputTokens": 1, "outputTokens": 2, "modelCalls": 1}})])], rows=True),
    Shape("droid", "droid.jsonl", list(DROID), rows=True),
    Shape("cursor", "cursor.jsonl", list(CURSOR), rows=True),
    Shape("cursor", "stream.jsonl", [
        {"type": "system", "subtype": "init", "apiKeySource": "login", "session_id": "s", "model": "m",
         "permissionMode": "default"},
        {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "go"}]}},
        {"type": "thinking", "subtype": "delta", "text": "hm", "model_call_id": "m1"},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "I look."}]}, "timestamp_ms": 1},
        {"type": "tool_call", "subtype": "started", "call_id": "c", "tool_call": {"readToolCall": {
            "args": {"path": "a"}}}},
        {"type": "tool_call", "subtype": "completed", "call_id": "c", "tool_call": {"readToolCall": {
            "args": {"path": "a"}, "result": {"success": {"content": "x"}}}}},
        {"type": "result", "subtype": "success", "is_error": False, "result": "ok", "usage": {"outputTokens": 7}},
    ], rows=True),
    Shape("atif", "atif.json", ATIF),
    Shape("otlp", "otlp.json", OTLP),
    Shape("otlp", "jaeger.json", {"data": [{"traceID": "t", "spans": [{
        "traceID": "t", "spanID": "s", "startTime": 5, "references": [{"refType": "CHILD_OF", "spanID": "s0"}],
        "tags": [{"key": "gen_ai.operation.name", "value": "chat"}, {"key": "otel.status_code", "value": "OK"}],
        "logs": [{"fields": [{"key": "event", "value": "gen_ai.choice"}, {"key": "message", "value": "ok"},
                             {"key": "finish_reason", "value": "stop"}]}]}]}]}),
    Shape("otlp", "logs.jsonl", [
        {"hrTime": [1, 2], "spanContext": {"traceId": "t", "spanId": "s"}, "_body": {"content": "go"},
         "attributes": {"event.name": "gen_ai.user.message"}},
        {"hrTime": [1, 3], "spanContext": {"traceId": "t", "spanId": "s"}, "_body": {
            "index": 0, "finish_reason": "tool_calls", "message": {"content": "a", "tool_calls": [
                {"id": "c", "function": {"name": "w", "arguments": "{}"}}]}},
         "attributes": {"event.name": "gen_ai.choice"}},
        {"hrTime": [1, 4], "spanContext": {"traceId": "t", "spanId": "s2"}, "_body": "GenAI operation details from m",
         "attributes": {"event.name": "gen_ai.client.inference.operation.details", "gen_ai.output.messages": [
             {"role": "system", "finish_reason": "stop", "parts": [{"type": "text", "content": "ok"}]}]}},
        {"_spanContext": {"traceId": "t", "spanId": "s3"}, "parentSpanContext": {"spanId": "s"}, "startTime": [1, 5],
         "attributes": {"gen_ai.operation.name": "chat", "gen_ai.response.finish_reasons": ["stop"]}, "events": []},
    ], rows=True),
    Shape("openhands", "events.json", list(OPENHANDS)),
    Shape("openhands", "output.json", {"instance_id": "x", "error": "stuck", "history": [
        {"action": "message", "content": "go"}, {"action": "run", "thought": "hm", "command": "ls"},
        {"observation": "run", "content": "a"}, {"action": "finish", "thought": "done", "outputs": {}}]}),
    Shape("codex", "rollout.jsonl", list(CODEX), rows=True),
    Shape("codex-exec", "exec.jsonl", [
        {"type": "thread.started", "thread_id": "t"},
        {"type": "item.completed", "item": {"id": "1", "type": "mcp_tool_call", "arguments": {}, "error": {
            "message": "x"}}},
        {"type": "item.completed", "item": {"id": "2", "type": "agent_message", "text": "a"}},
        {"type": "turn.failed", "error": {"message": "x"}}, {"type": "turn.completed", "usage": {"output_tokens": 7}},
    ], rows=True),
    Shape("kimi", "wire.jsonl", list(KIMI), rows=True),
    Shape("kimi", "wire.jsonl", list(_KIMI_CLI), rows=True),
    Shape("kimi", "context.jsonl", [{"role": "_checkpoint", "id": 0}, {"role": "user", "content": "go"}, {
        "role": "assistant", "content": [{"type": "think", "think": "hm"}], "tool_calls": [
            {"id": "c", "function": {"name": "w", "arguments": "{"}}]},
        {"role": "tool", "content": "x", "tool_call_id": "c"}], rows=True),
    Shape("hermes", "hermes.json", _HERMES),
    Shape("hermes", "export.jsonl", [{"id": "s", "source": "cli", "user_id": None, "model_config": None, **{
        name: _HERMES[name] for name in ("model", "messages")}}], rows=True),
    Shape("hermes", "session.jsonl", [
        {"role": "session_meta", "tools": [], "model": "m", "timestamp": "2026-01-01T00:00:00"},
        *_HERMES["messages"]], rows=True),
    Shape("hermes", "request_dump.json", {"session_id": "s", "reason": "x", "timestamp": "2026-01-01T00:00:00",
                                          "error": {"type": "x", "message": "down", "status_code": 500}, "request": {
        "body": {"model": "m", "max_tokens": 64, "messages": [{"role": "user", "content": "go"}]}}}),
    Shape("goose", "goose.jsonl", list(_GOOSE), rows=True),
    Shape("goose", "first.jsonl", [
        {"role": "user", "created": 1, "content": [{"Text": {"text": "go"}}]},
        {"role": "assistant", "created": 2, "content": [{"ToolRequest": {"id": "c", "tool_call": {"Ok": {
            "name": "w", "arguments": {}}}}}, {"ToolRequest": {"id": "d", "tool_call": {"Err": {
                "InvalidParameters": "EOF"}}}}]},
        {"role": "user", "created": 3, "content": [{"ToolResponse": {"id": "c", "tool_result": {"Ok": [
            {"type": "text", "text": "ok"}]}}}]}], rows=True),
    Shape("amp", "T-1.json", _AMP),
    Shape("chatgpt", "conversations.json", [CHATGPT]),
    Shape("qwen", "qwen.jsonl", list(QWEN), rows=True),
    Shape("qwen-stream", "qwen-stream.jsonl", [
        {"type": "system", "subtype": "init", "session_id": "s", "model": "m", "qwen_code_version": "0.15.10"},
        {"type": "assistant", "uuid": "u1", "session_id": "s", "parent_tool_use_id": None, "message": {
            "id": "u1", "role": "assistant", "model": "m", "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "c", "name": "ls", "input": {"path": "a"}}],
            "stop_reason": None, "usage": {"input_tokens": 9, "output_tokens": 7}}},
        {"type": "user", "uuid": "u2", "session_id": "s", "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c", "is_error": False, "content": "x"}]}},
        {"type": "assistant", "uuid": "u3", "session_id": "s", "message": {
            "id": "u3", "role": "assistant", "model": "m", "content": [
                {"type": "text", "text": "O[API Error: down]"}]}},
        {"type": "result", "subtype": "success", "session_id": "s", "is_error": False, "result": "O[API Error: down]"},
    ], rows=True),
    Shape("copilot", "events.jsonl", list(COPILOT), rows=True),
    Shape("copilot", "session.json", {"sessionId": "s", "chatMessages": [
        {"role": "user", "content": "go"}, {"role": "assistant", "content": "a", "tool_calls": [
            {"id": "c", "function": {"name": "w", "arguments": "{"}}]}, {"role": "tool", "content": "x"}]}),
    Shape("inspect", "inspect.json", INSPECT),
    Shape("claude-tap", "trace.ctap.json", TAP_BUNDLE),
    Shape("litellm", "litellm.json", LITELLM),
    Shape("mitmproxy", "flows.mitm", FLOW, write=tnetstring),
    Shape("vcr", "cassette.yaml", CASSETTE, write=cassette),
    Shape("httprr", "trace.httprr", [[{"model": "m", "max_tokens": 7, "messages": [{"role": "user", "content": "go"}]},
                                      LITELLM["response"]]], write=httprr),
    Shape("http-text", "curl.txt", [LITELLM["response"]], write=http_text),
    Shape("curl-trace", "curl.trace", [LITELLM["response"]], write=curl_trace),
    Shape("aider", ".aider.chat.history.md", ["hi", "on"], write=aider_chat),
    Shape("aider", "llm.history", ["hi"], write=aider_log),
    Shape("pydantic-ai", "history.json", [
        {"kind": "request", "conversation_id": "s", "parts": [
            {"part_kind": "system-prompt", "content": "be brief"},
            {"part_kind": "user-prompt", "content": ["go", {"kind": "text-content", "content": "on"}]}]},
        {"kind": "response", "model_name": "m", "provider_name": "openai", "provider_response_id": "resp_1",
         "timestamp": "t", "finish_reason": "length", "provider_details": {"finish_reason": "max_output_tokens"},
         "usage": {"input_tokens": 1, "output_tokens": 7, "output_reasoning_tokens": 1}, "state": "complete", "parts": [
             {"part_kind": "thinking", "content": "hm", "signature": "g"}, {"part_kind": "text", "content": "Look."},
             {"part_kind": "tool-call", "tool_name": "w", "args": "{", "tool_call_id": "c"},
             {"part_kind": "builtin-tool-call", "tool_name": "s", "args": {"q": "x"}, "tool_call_id": "d"}]},
        {"kind": "request", "parts": [
            {"part_kind": "tool-return", "tool_name": "w", "tool_call_id": "c", "content": [{"type": "missing"}],
             "outcome": "retried"}, {"part_kind": "retry-prompt", "tool_name": None, "content": "again"}]},
        {"kind": "response", "model_name": "m", "provider_name": "groq", "finish_reason": "stop",
         "state": "interrupted", "usage": {"request_tokens": 1, "response_tokens": 7},
         "parts": [{"part_kind": "file", "content": {"data": ""}}]}]),
    Shape("promptfoo", "out.json", {"evalId": "e", "config": {"providers": [
        {"id": "openai:chat:m", "label": "l", "config": {"max_tokens": 7}}]}, "results": {"version": 3, "results": [
            {"promptIdx": 0, "testCase": {}, "provider": {"id": "openai:chat:m", "label": "l"}, "prompt": {"raw": "go"},
             "response": {"output": {"role": "assistant", "content": "hi", "tool_calls": [
                 {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
                 "finishReason": "tool_calls",
                 "tokenUsage": {"prompt": 3, "completion": 4, "completionDetails": {"reasoning": 1}}}},
            {"promptIdx": 1, "testCase": {}, "provider": "openai:responses:m", "prompt": {"raw": [{"role": "user"}]},
             "response": {"output": "hi", "raw": {"object": "response", "status": "completed", "output": [
                 {"type": "message", "content": [{"type": "output_text", "text": "hi"}]}]}}},
            {"promptIdx": 2, "testCase": {}, "provider": "p", "prompt": {"raw": "go"}, "response": {
                "error": "no", "metadata": {"http": {"status": 500}}}}]}}),
    Shape("chat-history", "messages.json", [
        {"role": "system", "meta": {}, "name": None, "content": [{"text": "be brief"}]},
        {"role": "user", "meta": {}, "name": None, "content": [{"text": "go"}]},
        {"role": "assistant", "name": None, "meta": {"model": "m", "index": 0, "finish_reason": "tool_calls", "usage": {
            "prompt_tokens": 1, "completion_tokens": 2}}, "content": [
                {"reasoning": {"reasoning_text": "hm", "extra": {}}}, {"text": "hi"}, {"image": {"mime_type": "x"}},
                {"tool_call": {"tool_name": "w", "arguments": {"a": 1}, "id": "c", "extra": None}}]},
        {"role": "tool", "meta": {}, "name": None, "content": [{"tool_call_result": {
            "result": "no", "error": True, "origin": {"tool_name": "w", "arguments": {}, "id": "c"}}}]}]),
    Shape("chat-history", "history.json", {"messages": [
        {"content_type": "message", "metadata": {}, "role": "user", "items": [{"content_type": "text", "text": "go"}]},
        {"content_type": "message", "ai_model_id": "m", "role": "assistant", "finish_reason": "length",
         "metadata": {"id": "r", "usage": {"prompt_tokens": 1, "completion_tokens": 2}}, "items": [
             {"content_type": "function_call", "id": "c", "name": "p-w", "function_name": "w", "arguments": "{"},
             {"content_type": "text", "text": "hi"}]},
        {"content_type": "message", "metadata": {}, "role": "tool", "items": [
            {"content_type": "function_result", "id": "c", "function_name": "w", "result": "no"}]}]}),
    Shape("smolagents", "memory.json", [
        {"task": "go", "task_images": None},
        {"plan": "1.", "model_output_message": {"role": "assistant", "content": "1."}},
        {"step_number": 1, "timing": {"start_time": 1.5}, "model_output": "hi", "action_output": None,
         "observations": "Ada", "tool_calls": [{"id": "c"}], "code_action": "f()",
         "error": {"type": "AgentExecutionError", "message": "no"}, "is_final_answer": True,
         "token_usage": {"input_tokens": 1, "output_tokens": 2}, "model_output_message": {
             "role": "assistant", "content": "hi", "token_usage": {"input_tokens": 1, "output_tokens": 2},
             "tool_calls": [{"id": "c", "function": {"name": "w", "arguments": "{"}}], "raw": {
                 "_type": "ChatCompletion", "model": "m", "usage": {"prompt_tokens": 1, "completion_tokens": 2},
                 "completion_kwargs": {"max_new_tokens": 2}, "choices": [{"finish_reason": "length", "message": {
                     "role": "assistant", "content": "hi", "reasoning_content": "hm"}}]}}},
        {"step_number": 2, "model_output": None, "action_output": "x", "error": {"type": "AgentMaxStepsError"}}]),
    Shape("strands", "message_0.json", {
        "message": {"role": "assistant", "content": [
            {"text": "hi"}, {"toolUse": {"toolUseId": "c", "name": "w", "input": {}}},
            {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "g"}}}, {"image": {"format": "png"}},
            {"text": "The selected tool w's tool use was incomplete due to maximum token limits being reached."}],
            "metadata": {"usage": {"inputTokens": 1, "outputTokens": 2}}},
        "message_id": 0, "redact_message": {"role": "user", "content": [
            {"toolResult": {"toolUseId": "c", "status": "error", "content": [{"text": "no"}, {"json": {}}]}},
            {"text": "go"}]}, "created_at": "2026-01-01", "updated_at": "2026-01-01"}),
    Shape("fast-agent", "history.json", {"messages": [
        {"role": "user", "content": [{"type": "text", "text": "go"}], "is_template": False},
        {"role": "assistant", "content": [{"type": "text", "text": "hi"}, {"type": "image", "data": "x"}],
         "tool_calls": {"c": {"method": "tools/call", "params": {"name": "w", "arguments": {"path": "a"}}}},
         "channels": {"reasoning": [{"type": "text", "text": "hm"}], "fast-agent-usage": [{
             "type": "text", "text": '{"provider_attempts": [{"usage_schema": "anthropic", "model": "m"}]}'}]},
         "stop_reason": "toolUse", "is_template": False, "timestamp": "2026-11-30T18:30:39Z"},
        {"role": "user", "content": [], "tool_results": {
            "c": {"content": [{"type": "text", "text": "no"}], "isError": True}}, "is_template": False},
        {"role": "assistant", "content": [], "stop_reason": "error", "channels": {
            "fast-agent-error": [{"type": "text", "text": "down"}],
            "fast-agent-provider-error": [{"type": "text", "text": '{"status": 500}'}]}, "is_template": False}]}),
    Shape("strands", "agent.json", {
        "agent_id": "a", "state": {}, "conversation_manager_state": {}, "created_at": "2026-01-01"}),
    Shape("strands", "snapshot_latest.json", {
        "scope": "agent", "schemaVersion": "1.0", "createdAt": "2026-01-01", "data": {"state": {}, "messages": [
            {"role": "user", "content": [{"text": "go"}], "trackingId": "t"},
            {"role": "assistant", "metadata": {"usage": {"inputTokens": 1, "outputTokens": 2}}, "content": [
                {"text": "hi"}, {"toolUse": {"toolUseId": "c", "name": "w", "input": {}}}]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": "c", "status": "error", "content": [{"text": "no"}, {"json": {}}]}}]}]}}),
    Shape("langgraph", "history.json", [
        {"type": "human", "data": {"content": "go", "type": "human", "additional_kwargs": {}}},
        {"lc": 1, "type": "constructor", "id": ["langchain"], "kwargs": {
            "type": "ai", "content": [{"type": "text", "text": "hi"}], "id": "run-1", "additional_kwargs": {},
            "response_metadata": {"model_provider": "openai", "model_name": "m", "finish_reason": "length"},
            "tool_calls": [{"name": "w", "args": {}, "id": "c", "type": "tool_call"}],
            "invalid_tool_calls": [{"name": "w", "args": "{", "id": "d", "type": "invalid_tool_call"}],
            "usage_metadata": {"input_tokens": 1, "output_tokens": 2}}},
        {"type": "tool", "data": {"content": "x", "tool_call_id": "c", "name": "w", "status": "error"}}]),
    Shape("gptme", "conversation.jsonl", [
        {"role": "system", "content": "You are gptme.", "timestamp": "2026-11-29T18:30", "pinned": True, "hide": True},
        {"role": "user", "content": "go", "timestamp": "2026-11-29T18:30:39"},
        {"role": "assistant", "content": f"Look.\n@w(c): {_ARGUMENTS}", "metadata": {
            "model": "m", "usage": {"input_tokens": 1, "output_tokens": 2}}},
        {"role": "system", "content": "ok", "call_id": "c", "metadata": {"tool": "w"}},
        {"role": "system", "content": "error: generic\nno", "metadata": {"error": True}}], rows=True),
    Shape("agent-framework", "history.jsonl", [
        {"type": "message", "role": "user", "contents": [{"type": "text", "text": "go"}]},
        {"type": "message", "role": "assistant", "contents": [
            {"type": "text_reasoning", "text": "hm"}, {"type": "text", "text": "Look."}, {"type": "data", "uri": "u"},
            {"type": "function_call", "call_id": "c", "name": "w", "arguments": _ARGUMENTS}]},
        {"type": "message", "role": "tool", "contents": [
            {"type": "function_result", "call_id": "c", "result": "no", "exception": "E", "items": []}]}], rows=True),
    Shape("llama-index", "messages.json", [
        {"role": "user", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": "go"}]},
        {"role": "assistant", "additional_kwargs": {"stop_reason": "max_tokens", "tool_calls": [_CHAT_CALL],
                                                    "usage": {"input_tokens": 1, "output_tokens": 2}},
         "blocks": [{"block_type": "thinking", "content": "hm", "additional_information": {"signature": "s"}},
                    {"block_type": "text", "text": "Look."}, {"block_type": "image", "url": "u"},
                    {"block_type": "tool_call", "tool_call_id": "c", "tool_name": "w", "tool_kwargs": {"a": 1}}]},
        {"role": "tool", "additional_kwargs": {"tool_call_id": "c", "name": "w"}, "content": "x"}]),
    Shape("adk", "s.session.json", {"id": "s", "appName": "a", "userId": "u", "events": [
        {"invocationId": "e", "author": "user", "content": {"role": "user", "parts": [{"text": "go"}]}},
        {"invocationId": "e", "author": "A", "branch": "P.A", "timestamp": 1.5, "id": "i", "modelVersion": "gemini-3",
         "finishReason": "MAX_TOKENS", "errorCode": "MAX_TOKENS", "errorMessage": "could not be parsed as valid JSON",
         "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2, "thoughtsTokenCount": 3},
         "content": {"role": "model", "parts": [
             {"text": "hm", "thought": True, "thoughtSignature": "g"}, {"text": "Look."},
             {"functionCall": {"id": "c", "name": "w", "args": {"a": 1}}}, {"inlineData": {"data": ""}}]}},
        {"invocationId": "e", "author": "A", "branch": "P.A", "content": {"role": "user", "parts": [
            {"functionResponse": {"id": "c", "name": "w", "response": {"content": [{"type": "text", "text": "x"}],
                                                                       "isError": True}}}]}},
        {"invocationId": "e", "author": "A", "errorCode": "UNAVAILABLE", "errorMessage": "503", "interrupted": True},
    ]}),
    Shape("ai-sdk-result", "result.json", {"steps": [{
        "content": [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "Look."},
                    {"type": "tool-call", "toolCallId": "c", "toolName": "w", "input": {}, "providerExecuted": False},
                    {"type": "tool-error", "toolCallId": "c", "toolName": "w", "error": "no"}],
        "finishReason": "length", "rawFinishReason": "max_tokens", "usage": {"inputTokens": 1, "outputTokens": 7},
        "request": {"body": {"max_tokens": 7}}, "response": {"modelId": "m", "timestamp": "t"}}, {
        "text": "hi", "toolCalls": [{"type": "tool-call", "toolCallId": "d", "toolName": "w", "args": {}}],
        "toolResults": [{"type": "tool-result", "toolCallId": "d", "result": "ok"}], "finishReason": "stop",
        "usage": {"promptTokens": 1, "completionTokens": 7}}]}),
    Shape("ai-sdk-messages", "messages.json", [
        {"id": "1", "role": "user", "parts": [{"type": "text", "text": "go"}]},
        {"id": "2", "role": "assistant", "metadata": {"finishReason": "length", "model": "m"}, "parts": [
            {"type": "step-start"}, {"type": "reasoning", "text": "hm", "state": "done"},
            {"type": "text", "text": "Look.", "state": "done"}, {"type": "file", "mediaType": "image/png", "url": "u"},
            {"type": "tool-w", "toolCallId": "c", "state": "output-error", "rawInput": "{", "errorText": "no"},
            {"type": "step-start"}, {"type": "source-url", "url": "u"},
            {"type": "dynamic-tool", "toolName": "w", "toolCallId": "d", "state": "output-available", "input": {},
             "output": {"a": 1}, "providerExecuted": False, "preliminary": False},
            {"type": "step-start"}, {"type": "tool-invocation", "toolInvocation": {
                "state": "result", "toolCallId": "e", "toolName": "w", "args": {}, "result": "ok"}}]},
        {"id": "3", "role": "assistant", "parts": [{"type": "text", "text": "Lo", "state": "streaming"}]}]),
    Shape("claude-ai", "conversations.json", [{"uuid": "c", "name": "A", "chat_messages": [
        {"uuid": "1", "sender": "human", "text": "go", "content": [{"type": "text", "text": "go"}]},
        {"uuid": "2", "sender": "assistant", "text": "", "parent_message_uuid": "1", "stop_reason": "max_tokens",
         "created_at": "2026-01-01T00:00:00Z", "content": [
             {"type": "thinking", "thinking": "hm"}, {"type": "tool_use", "id": "t", "name": "w", "input": {"a": 1}},
             {"type": "tool_result", "tool_use_id": "t", "name": "w", "content": "x", "is_error": True},
             {"type": "text", "text": "Look."}]}]}]),
    Shape("librechat", "chat.json", {"conversationId": "c", "title": "A", "messages": [
        {"messageId": "1", "parentMessageId": "0", "isCreatedByUser": True, "text": "go", "children": [
            {"messageId": "2", "parentMessageId": "1", "isCreatedByUser": False, "text": "", "model": "m",
             "createdAt": "2026-01-01T00:00:00Z", "finish_reason": "length", "unfinished": False, "error": False,
             "content": [
                 {"type": "think", "think": "hm"}, {"type": "agent_update", "agent_update": {"index": 0}},
                 {"type": "tool_call", "tool_call": {"id": "t", "name": "w", "args": "{}", "output": "x"}},
                 {"type": "text", "text": {"value": "Look."}}, {"type": "error", "error": "no"}]}]}]}),
    Shape("trae", "trajectory.json", {"task": "go", "provider": "anthropic", "model": "m", "max_steps": 5,
        "llm_interactions": [
            {"timestamp": "2026-01-01T00:00:00", "provider": "anthropic", "model": "m",
             "input_messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "go"}],
             "response": {"content": "hi", "model": "m", "finish_reason": "tool_use", "usage": {
                 "input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 1, "reasoning_tokens": 0},
                 "tool_calls": [{"call_id": "c", "name": "bash", "arguments": {"command": "ls"}, "id": None}]}}],
        "agent_steps": [{"step_number": 1, "state": "completed", "tool_results": [
            {"call_id": "c", "success": False, "result": None, "error": "no", "id": None}], "error": None,
            "llm_messages": [{"role": "user", "tool_result": {"call_id": "c", "success": True, "result": "x"}}]}],
        "success": False, "final_result": None}),
    Shape("ai-studio", "prompt.json", {"runSettings": {"model": "models/m", "maxOutputTokens": 7}, "chunkedPrompt": {
        "chunks": [
            {"role": "user", "text": "go", "driveImage": {"id": "i"}},
            {"role": "model", "text": "hm", "isThought": True, "createTime": "2026-01-01T00:00:00Z"},
            {"role": "model", "parts": [{"text": "Look."}], "finishReason": "MAX_TOKENS", "isEdited": True},
            {"role": "model", "text": "x", "errorMessage": "no", "executableCode": {"code": "f()"}}]}}),
    Shape("mastra", "trace.json", {"traceId": "t", "spans": [
        {"traceId": "t", "spanId": "1", "spanType": "agent_run", "name": "agent run: 'a'", "startedAt": "1",
         "endedAt": "9", "metadata": {"threadId": "th"},
         "input": [{"role": "user", "content": "go"}], "output": {"status": "aborted"},
         "error": {"message": "no", "name": "E", "details": {"rawFinishReason": "MAX_TOKENS"}}},
        {"traceId": "t", "spanId": "2", "parentSpanId": "1", "spanType": "model_generation", "startedAt": "2",
         "attributes": {"provider": "openai.chat", "parameters": {"maxOutputTokens": 7}}, "output": {"text": "hi"}},
        {"traceId": "t", "spanId": "3", "parentSpanId": "2", "spanType": "model_step", "startedAt": "3",
         "attributes": {"finishReason": "error", "messageId": "m", "usage": {
             "inputTokens": 1, "outputTokens": 7, "inputDetails": {"cacheRead": 1}, "outputDetails": {"reasoning": 2}}},
         "output": {"text": "Look.", "toolCalls": [{"toolCallId": "c", "toolName": "w", "args": {}}]}},
        {"traceId": "t", "spanId": "4", "parentSpanId": "3", "spanType": "model_chunk", "startedAt": "4",
         "attributes": {"chunkType": "tool-call"}, "output": {"toolCallId": "d", "toolName": "w", "toolInput": "{"}},
        {"traceId": "t", "spanId": "5", "parentSpanId": "3", "spanType": "tool_call", "name": "tool: 'w'",
         "startedAt": "5", "endedAt": "6", "attributes": {"toolCallId": "c"},
         "output": {"error": True, "message": "no"}},
        {"traceId": "t", "spanId": "6", "parentSpanId": "2", "spanType": "agent_run", "startedAt": "7",
         "input": {"approved": False, "toolCallId": "c", "toolName": "w"}},
    ]}),
    Shape("mastra", "thread.json", {"messages": [
        {"id": "1", "role": "user", "createdAt": "1", "threadId": "th", "content": {
            "format": 2, "parts": [{"type": "text", "text": "go"}], "metadata": {"traceId": "t"}}},
        {"id": "2", "role": "assistant", "createdAt": "2", "threadId": "th", "content": {
            "format": 2, "metadata": {"provider": "openai.chat", "modelId": "m"}, "parts": [
                {"type": "reasoning", "reasoning": "hm"}, {"type": "tool-invocation", "toolInvocation": {
                    "state": "result", "toolCallId": "c", "toolName": "w", "args": {},
                    "result": {"error": True, "message": "Tool input validation failed for w."}}},
                {"type": "error", "error": {"name": "E", "message": "no"}}]}}]}),
    Shape("ai-sdk-stream", "chat.txt", [
        {"type": "start-step"}, {"type": "reasoning-delta", "id": "r", "delta": "hm"},
        {"type": "text-delta", "id": "1", "delta": "Look."},
        {"type": "tool-input-start", "toolCallId": "c", "toolName": "w"},
        {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": "{}"},
        {"type": "tool-input-available", "toolCallId": "c", "toolName": "w", "input": {}, "providerExecuted": False},
        {"type": "tool-output-available", "toolCallId": "c", "output": {"a": 1}, "preliminary": False},
        {"type": "tool-output-error", "toolCallId": "c", "errorText": "no"}, {"type": "finish-step"},
        {"type": "start-step"}, {"type": "file", "url": "data:,", "mediaType": "image/png"},
        {"type": "error", "errorText": "down"}, {"type": "abort", "reason": "r"},
        {"type": "finish", "finishReason": "length"}], write=server_events),
    Shape("ai-sdk-stream", "chat.txt", [
        ["f", {"messageId": "m"}], ["0", "Look."], ["g", "hm"], ["b", {"toolCallId": "c", "toolName": "w"}],
        ["c", {"toolCallId": "c", "argsTextDelta": "{}"}], ["9", {"toolCallId": "c", "toolName": "w", "args": {}}],
        ["a", {"toolCallId": "c", "result": "ok"}], ["3", "down"],
        ["e", {"finishReason": "length", "usage": {"promptTokens": 1, "completionTokens": 7}}],
    ], write=coded_lines),
    Shape("langfuse", "trace.json", LANGFUSE),
    Shape("langsmith", "runs.json", LANGSMITH),
    Shape("langsmith", "batch.json", {
        "post": [{"id": "a", "run_type": "llm", "trace_id": "a", "start_time": 1700000000500, "inputs": {"messages": [
            {"role": "user", "content": "go"}]}, "dotted_order": "20260101T000000000001Za"}],
        "patch": [{"dotted_order": "20260101T000000000001Za", "outputs": {"choices": [{"finish_reason": {
            "finish_reason": "length"}, "message": {"role": "assistant", "content": "hi"}}]}}]}),
    Shape("ai-devtools", "generations.json", AI_DEVTOOLS),
    Shape("ai-devtools", "generations.json", {"runs": [{"id": "r", "started_at": "2026-01-01"}], "steps": [
        {"id": "s", "run_id": "r", "step_number": 1, "type": "stream", "model_id": "m", "provider": "p",
         "input": json.dumps({"prompt": [{"role": "user", "content": [{"type": "text", "text": "go"}]}],
                              "maxOutputTokens": 2}),
         "output": json.dumps({"finishReason": "length", "response": {"modelId": "m"}, "content": [
             {"type": "text", "text": "hi"}, {"type": "tool-call", "toolCallId": "c", "toolName": "w", "input": "{"}]}),
         "usage": json.dumps({"inputTokens": 1, "outputTokens": 2}), "error": None, "raw_request": None},
        {"id": "t", "run_id": "r", "step_number": 2, "model_id": "m", "error": "no"}]}),
    Shape("roo", "api_conversation_history.json", list(ROO)),
    Shape("roo", "ui_messages.json", list(ROO_SCREEN)),
    Shape("zeroclaw", "k.jsonl", [{"role": "user", "content": "go"}, {"role": "assistant", "content": json.dumps({
        "content": "a", "tool_calls": [{"id": "c", "name": "w", "arguments": "{"}]})}], rows=True),
    Shape("zeroclaw-trace", "trace.jsonl", [
        {"id": "1", "trace_id": "t", "zeroclaw": {"session_key": "k"}, "message": "llm_response", "schema_version": 2,
         "attributes": {"raw_response": "a", "output_tokens": 7, "native_tool_calls": 2, "parsed_tool_calls": 1}},
        {"id": "2", "event_type": "tool_call_result", "turn_id": "t", "success": False, "payload": {"output": "x"}}],
        rows=True),
    *(Shape("chat-lines", f"{name}.jsonl", [
        {"role": "user", "content": "go", **more}, {"role": "assistant", "content": "a", "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "w", "arguments": "{"}}], **more},
        {"role": "tool", "content": "x", "tool_call_id": "c", **more}], rows=True)
      for name, more in (("vibe", {"injected": False}), ("pico", {"created_at": "2026-06-01T10:00:00Z"}))),
    Shape("vibe", "0000000000000001.jsonl", [
        {"recovery_journal_record_version": 1, "type": "core_input", "payload": {
            "input": {"command": {"type": "user_message", "content": [{"type": "text", "text": "go"}]}},
            "transition_shape": {"observations": ["turn_started"]}}},
        {"recovery_journal_record_version": 1, "type": "action_intent", "payload": {
            "action_id": "a", "kind": "completion", "request": {"purpose": "agent", "model_input": {"messages": {
                "type": "replace", "messages": [
                    {"role": "user", "content": [{"type": "text", "text": "one"}]},
                    {"role": "assistant", "content": [{"type": "tool_call", "id": "c", "name": "w", "arguments": {
                        "raw": "{"}}]},
                    {"role": "tool", "tool_call_id": "c", "outcome": "failure", "content": [
                        {"type": "text", "text": "x"}]},
                    {"role": "user", "content": [{"type": "text", "text": "go"}]}]}}}}},
        {"recovery_journal_record_version": 1, "type": "action_result", "payload": {"action_id": "a", "result": {
            "type": "completion_succeeded", "result": {
                "finish_reason": "tool_call", "usage": {"input_tokens": 9, "output_tokens": 7}, "parts": [
                    {"type": "reasoning", "content": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "a"},
                    {"type": "tool_call", "id": "d", "name": "w", "arguments_json": "{}"}]}}}},
        {"recovery_journal_record_version": 1, "type": "action_result", "payload": {"action_id": "b", "result": {
            "type": "tool_failed", "call_id": "d", "result": {
                "content": [], "structured_content": {"a": 1}, "error": {"code": "tool_denied", "message": "m"}}}}},
        {"recovery_journal_record_version": 1, "type": "action_result", "payload": {"action_id": "c", "result": {
            "type": "completion_failed", "error": {"code": "x", "message": "m", "details": {"httpStatus": 500}}}}},
    ], rows=True),
    Shape("botnexus", "s.jsonl", [{"role": "user", "content": "go", "isCrashSentinel": False}, {
        "role": "tool", "content": "", "toolName": "w", "toolCallId": "c", "toolArgs": "{}"}], rows=True),
    Shape("continue", "continue.json", {"sessionId": "s", "title": "t", "history": [
        {"message": {"role": "user", "content": "go"}}, {"message": {"role": "thinking", "content": "hm"}},
        {"message": {"role": "assistant", "content": "a", "usage": {"completionTokens": 7}, "toolCalls": [
            {"id": "c", "function": {"name": "w", "arguments": "{"}}]},
         "promptLogs": [{"completionOptions": {"maxTokens": 7}}],
         "toolCallStates": [{"toolCallId": "c", "status": "done", "output": [{"content": "x"}]}]},
        {"message": {"role": "tool", "content": "x", "toolCallId": "c"}}]}),
    Shape("vscode-chat", "chat.json", {"version": 3, "sessionId": "s", "requests": [{
        "message": {"text": "go"}, "response": [{"value": "x"}], "result": {
            "errorDetails": {"message": "m", "code": "x"}, "metadata": {
                "toolCallResults": {"c": {"content": [{"value": "x"}]}}, "toolCallRounds": [{
                    "response": "a", "timestamp": 1, "toolCalls": [{"id": "c", "name": "w", "arguments": "{"}]}]}}}]}),
    Shape("vscode-chat", "chat.jsonl", [
        {"kind": 0, "v": {"version": 3, "requests": []}}, {"kind": 2, "k": ["requests"], "v": [{"response": "a"}]},
        {"kind": 1, "k": ["requests", 0, "message"], "v": "go"}], rows=True),
    Shape("known", "runs.jsonl", [{"finishReason": "stop", "usage": {}}, {"eval": {"run_id": "r"}}], rows=True),
    Shape("pairs", "pairs.jsonl", list(_PAIRS), rows=True),
    *(Shape("body", f"{api}.json", answer) for api, answer in ANSWERS.items()),
    *(Shape("pairs", f"{api}.pair.json", {"url": URLS[api], "request": asked, "response": ANSWERS[api]})
      for api, asked in REQUESTS.items()),
)
"""A file of every registered importer; of those that hold wire formats, one for each of them."""


def places(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every member and element, the value's own first."""
    yield at
    if isinstance(value, (dict, list)):
        for key, held in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(held, (*at, key))


def put(value: Any, at: tuple[str | int, ...], odd: Any) -> Any:
    """The same value with `odd` in that place."""
    if not at:
        return None if odd is GONE else odd
    changed = value.copy()
    held = changed
    for key in at[:-1]:  # only what leads to the place is copied
        held[key] = held[key].copy()
        held = held[key]
    if odd is GONE:
        del held[at[-1]]
    else:
        held[at[-1]] = odd
    return changed
