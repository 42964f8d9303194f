"""A stream of about 3,000 events in each wire format, as its provider sends one: text, then (where it streams) a call.

Built here from plain dicts, so that neither our encoders nor recorded traffic are needed.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from typing import Any
from zlib import crc32

TEXTS, PIECES = 2_000, 1_000
WORDS = ("The", " queue", " was", " saturated", " for", " nineteen", " minutes", ",", " so", " that", "\n", " “naïve”")


def text(number: int) -> str:
    return WORDS[number % len(WORDS)]


def piece(number: int) -> str:
    """A fragment of the arguments; all together are one JSON object."""
    if number == 0:
        return '{"path": "report.md", "content": "'
    return '"}' if number == PIECES - 1 else text(number).replace("\n", "\\n")


ARGUMENTS = "".join(piece(number) for number in range(PIECES))


def dump(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def sse(events: Iterable[Mapping[str, Any]], named: bool = False) -> bytes:
    made = []
    for event in events:
        name = f"event: {event['type']}\n".encode() if named else b""
        made.append(name + b"data: " + dump(event) + b"\n\n")
    return b"".join(made)


def openai_chat() -> bytes:
    def chunk(delta: Mapping[str, Any], reason: str | None = None) -> dict[str, Any]:
        return {"id": "chatcmpl-CkX3sW1x0bYy6rQ1", "object": "chat.completion.chunk", "created": 1_763_000_000,
                "model": "gpt-5-mini-2025-08-07", "service_tier": "default", "system_fingerprint": "fp_50906f2aac",
                "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]}

    def call(number: int) -> dict[str, Any]:
        whole: dict[str, Any] = {"index": 0, "function": {"arguments": piece(number)}}
        if number == 0:
            whole |= {"id": "call_1", "type": "function"}
            whole["function"]["name"] = "write_file"
        return {"tool_calls": [whole]}

    usage = {"prompt_tokens": 50, "completion_tokens": 3_000, "total_tokens": 3_050}
    events = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"content": text(number)}) for number in range(TEXTS)]
    events += [chunk(call(number)) for number in range(PIECES)]
    events += [chunk({}, "tool_calls"), chunk({}) | {"choices": [], "usage": usage}]
    return sse(events) + b"data: [DONE]\n\n"


def openai_responses() -> bytes:
    head = {"id": "resp_1", "object": "response", "created_at": 1_763_000_000, "model": "gpt-5-mini-2025-08-07",
            "status": "in_progress", "output": [], "usage": None, "incomplete_details": None, "error": None}
    said = "".join(text(number) for number in range(TEXTS))
    content = {"type": "output_text", "text": said, "annotations": [], "logprobs": []}
    message = {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": [content]}
    call = {"id": "fc_1", "type": "function_call", "status": "completed", "call_id": "call_1", "name": "write_file",
            "arguments": ARGUMENTS}
    usage = {"input_tokens": 50, "output_tokens": 3_000, "total_tokens": 3_050}
    part, owner = {"item_id": "msg_1", "output_index": 0, "content_index": 0}, {"item_id": "fc_1", "output_index": 1}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": head},
        {"type": "response.in_progress", "response": head},
        {"type": "response.output_item.added", "output_index": 0,
         "item": message | {"status": "in_progress", "content": []}},
        {"type": "response.content_part.added", **part, "part": content | {"text": ""}},
    ]
    events += [{"type": "response.output_text.delta", **part, "delta": text(n), "logprobs": []} for n in range(TEXTS)]
    events += [
        {"type": "response.output_text.done", **part, "text": said, "logprobs": []},
        {"type": "response.content_part.done", **part, "part": content},
        {"type": "response.output_item.done", "output_index": 0, "item": message},
        {"type": "response.output_item.added", "output_index": 1,
         "item": call | {"status": "in_progress", "arguments": ""}},
    ]
    events += [{"type": "response.function_call_arguments.delta", **owner, "delta": piece(n)} for n in range(PIECES)]
    events += [
        {"type": "response.function_call_arguments.done", **owner, "arguments": ARGUMENTS},
        {"type": "response.output_item.done", "output_index": 1, "item": call},
        {"type": "response.completed",
         "response": head | {"status": "completed", "output": [message, call], "usage": usage}},
    ]
    return sse([event | {"sequence_number": number} for number, event in enumerate(events)], named=True)


def anthropic_messages() -> bytes:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": [],
               "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 50, "output_tokens": 1}}
    call = {"type": "tool_use", "id": "toolu_1", "name": "write_file", "input": {}}

    def delta(index: int, value: Mapping[str, Any]) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": index, "delta": value}

    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
    ]
    events += [delta(0, {"type": "text_delta", "text": text(number)}) for number in range(TEXTS)]
    events += [
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": call},
    ]
    events += [delta(1, {"type": "input_json_delta", "partial_json": piece(number)}) for number in range(PIECES)]
    events += [
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None},
         "usage": {"output_tokens": 3_000}},
        {"type": "message_stop"},
    ]
    return sse(events, named=True)


def gemini_chunk(parts: list[dict[str, Any]], number: int, reason: str | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if reason is not None:
        candidate["finishReason"] = reason
    usage = {"promptTokenCount": 50, "candidatesTokenCount": number, "totalTokenCount": 50 + number}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-flash",
            "responseId": "r1xKaZy"}


def gemini_chunks() -> list[dict[str, Any]]:
    made = [gemini_chunk([{"text": text(number)}], number) for number in range(TEXTS + PIECES)]
    call = {"functionCall": {"name": "write_file", "args": json.loads(ARGUMENTS)}}
    return [*made, gemini_chunk([call], TEXTS + PIECES, "STOP")]


def gemini_generate() -> bytes:
    return sse(gemini_chunks())


def gemini_array() -> bytes:
    """Without `alt=sse`: the chunks are elements of one array, printed for people, the commas on lines of their own."""
    made = (json.dumps(chunk, ensure_ascii=False, indent=2).encode() for chunk in gemini_chunks())
    return b"[" + b"\n,\r\n".join(made) + b"\n]\n"


def gemini_array_line() -> bytes:
    """The same array as a proxy dumps it again: one line, no blanks."""
    return dump(gemini_chunks())


def gemini_partial_args() -> bytes:
    """Vertex AI with `streamFunctionCallArguments`: some text, then one string argument in pieces."""
    def call(**fields: Any) -> list[dict[str, Any]]:
        return [{"functionCall": fields}]

    def value(number: int) -> dict[str, Any]:
        return {"jsonPath": "$.content", "stringValue": text(number), "willContinue": True}

    path = {"jsonPath": "$.path", "stringValue": "report.md"}
    events = [gemini_chunk([{"text": text(number)}], number) for number in range(PIECES)]
    events.append(gemini_chunk(call(name="write_file", willContinue=True), PIECES))
    events.append(gemini_chunk(call(partialArgs=[path], willContinue=True), PIECES))
    events += [gemini_chunk(call(partialArgs=[value(n)], willContinue=True), PIECES + n) for n in range(TEXTS)]
    events.append(gemini_chunk(call(partialArgs=[{"jsonPath": "$.content", "stringValue": ""}]), TEXTS + PIECES))
    events.append(gemini_chunk([], TEXTS + PIECES, "STOP"))
    return sse(events)


def frame(event: str, payload: Mapping[str, Any]) -> bytes:
    """One message of the AWS event stream: prelude, its CRC, headers, payload, CRC of it all."""
    headers = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in (
            (":event-type", event), (":content-type", "application/json"), (":message-type", "event"),
        )
    )
    body = dump(payload)
    prelude = struct.pack(">II", 16 + len(headers) + len(body), len(headers))
    message = prelude + struct.pack(">I", crc32(prelude)) + headers + body
    return message + struct.pack(">I", crc32(message))


def bedrock_converse() -> bytes:
    padding = {"p": "abcdefghijklmnopqrst"}
    tool = {"toolUse": {"toolUseId": "tooluse_1", "name": "write_file"}}
    made = [frame("messageStart", {"role": "assistant", **padding})]
    made += [
        frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": text(number)}, **padding})
        for number in range(TEXTS)
    ]
    made += [
        frame("contentBlockStop", {"contentBlockIndex": 0, **padding}),
        frame("contentBlockStart", {"contentBlockIndex": 1, "start": tool, **padding}),
    ]
    made += [
        frame("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"toolUse": {"input": piece(number)}}, **padding})
        for number in range(PIECES)
    ]
    usage = {"inputTokens": 50, "outputTokens": 3_000, "totalTokens": 3_050}
    made += [
        frame("contentBlockStop", {"contentBlockIndex": 1, **padding}),
        frame("messageStop", {"stopReason": "tool_use", **padding}),
        frame("metadata", {"usage": usage, "metrics": {"latencyMs": 900}, **padding}),
    ]
    return b"".join(made)


def ollama_chat() -> bytes:
    head = {"model": "llama3.2", "created_at": "2026-11-21T10:00:00.123456789Z"}

    def line(message: Mapping[str, Any], **more: object) -> bytes:
        return dump({**head, "message": {"role": "assistant", **message}, "done": False, **more}) + b"\n"

    made = [line({"content": text(number)}) for number in range(TEXTS + PIECES)]
    call = {"function": {"name": "write_file", "arguments": json.loads(ARGUMENTS)}}
    made.append(line({"content": "", "tool_calls": [call]}))
    made.append(line({"content": ""}, done=True, done_reason="stop", eval_count=3_000, prompt_eval_count=50))
    return b"".join(made)


STREAMS = {
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "anthropic_messages": anthropic_messages,
    "gemini_generate": gemini_generate,
    "bedrock_converse": bedrock_converse,
    "ollama_chat": ollama_chat,
}
