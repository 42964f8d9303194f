"""Reads a message of a span or a log record, in the form of any convention or of a client that recorders copy.

Sources: opentelemetry-semantic-conventions 0.66b2; OpenLLMetry, its instrumentation of LangChain 0.62; OpenInference;
langchain-anthropic 1.7; @langchain/core 1.4 of LangChain.js; AI SDK 5.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from inspector.sessions.transcripts.answer import TranscriptAnswer, text_of
from inspector.sessions.transcripts.member_values import known_text, object_of, objects_of
from loop_core.values import ArgsForm, At, ToolCall, ToolResultPart

PART_KINDS = frozenset({
    "text", "input_text", "output_text", "image", "image_url", "input_image", "reasoning", "thinking",
    "redacted_thinking", "tool_call", "tool_use", "function_call", "function", "tool_call_response", "tool_result",
    "tool_response",
})
"""The types of parts that recorders write as JSON into the text of a message."""
TYPELESS_PARTS = frozenset({
    "text", "thought", "thoughtSignature", "thought_signature", "functionCall", "function_call", "functionResponse",
    "function_response", "toolUse", "toolResult", "reasoningContent",
})
"""Members of Gemini's and Bedrock's parts, which have no type."""
_NAMED_PARTS = (("functionCall", "function_call", "toolUse"), ("functionResponse", "function_response", "toolResult"),
                ("reasoningContent",))
"""The members with which Gemini and Bedrock name the kind of a part: a call, a result, reasoning."""
_PRINTED_PART = re.compile(r"[a-z_]+=None [a-z_]+=.*\bfunction_response=.*\btext=", re.DOTALL)
"""Matches the last part of a stream of Gemini as Python prints it, which OpenLLMetry stores instead of the answer."""


class SpanMessage(NamedTuple):
    """One message, from any of the conventions."""

    role: str
    text: str
    reasoning: str = ""
    calls: tuple[tuple[str | None, str, Any], ...] = ()
    """Id, name and arguments of each call; the arguments are the received string, or a parsed value."""
    results: tuple[ToolResultPart, ...] = ()
    word: str | None = None
    numbered: bool = False
    """Whether the message has the number of a choice."""
    further_words: tuple[str, ...] = ()
    """The stop words of further items of the answer, if the message was made of several."""


def load_json(value: Any) -> Any:
    """The parsed JSON of a string; the value itself if it is not a JSON text."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def message_of(value: Any) -> SpanMessage:
    """A message of any convention, in one form."""
    if not isinstance(value, dict):
        return SpanMessage("", value if isinstance(value, str) else "")
    message = value["message"] if isinstance(value.get("message"), dict) else value
    words = (each.get(name) for name in ("finish_reason", "finishReason") for each in (value, message))
    word = next(filter(None, map(known_text, words)), None)
    parts, texts = _content_of(message)
    parts, received = _blocks(parts)
    pieces = [_read_part({**part, **object_of(part.get("message_content"))}) for part in parts]
    thought = known_text(message.get("reasoning_content")) or known_text(message.get("reasoning"))
    thoughts = [each for each in (thought, *(piece.reasoning for piece in pieces)) if each]
    text = "\n".join([*texts, *(piece.text for piece in pieces if piece.text)])
    calls = _listed_calls(message)
    listed = {call[0] or call[1] for call in calls}
    for call in (call for piece in pieces for call in piece.calls):
        if not listed or (call[1] and (call[0] or call[1]) not in listed):
            calls.append(call)
    received |= dict(received_arguments(message))
    calls = [(key, name, received.get(key, arguments)) for key, name, arguments in calls]
    results = [result for piece in pieces for result in piece.results]
    if message.get("type") == "function_call_output":
        results.insert(0, ToolResultPart(known_text(message.get("call_id")), None, _text(message.get("output", ""))))
    role = str(message.get("role") or value.get("role") or "")
    if role == "tool" and not results:
        key = known_text(message.get("tool_call_id")) or known_text(message.get("id"))
        results, text = [ToolResultPart(key, known_text(message.get("name")), text)], ""
    return SpanMessage(role, text, "\n".join(thoughts), tuple(calls), tuple(results), word, "index" in value)


def _listed_calls(message: dict[str, Any]) -> list[tuple[str | None, str, Any]]:
    """The calls that a message has beside its parts, or that it is itself."""
    listed = message.get("tool_calls") or object_of(message.get("additional_kwargs")).get("tool_calls")
    calls = [_call(message)] if message.get("type") == "function_call" or "toolName" in message else []
    # LangChain stores calls with arguments that it could not parse separately.
    calls += [_call(each) for each in (*_several(listed), *_several(message.get("invalid_tool_calls")))]
    if not calls and isinstance(message.get("function_call"), dict):  # the first calls of Chat Completions; LiteLLM's
        calls.append(_call(message["function_call"]))
    return calls


def _content_of(message: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """The parts of a message, and its texts that are no parts."""
    if parts := _several(message.get("parts")) or _several(message.get("contents")):
        return parts, []
    if message.get("type") == "reasoning":  # an item of Responses
        return [message], []
    content = message.get("content")
    content = parsed if _are_parts(parsed := load_json(content)) else content
    if isinstance(content, dict):  # a message of Gemini's within its own answer, or one part
        return _several(content["parts"]) if "parts" in content else [content], []
    if isinstance(content, list):
        return objects_of(content), [each for each in content if isinstance(each, str)]
    return [], [] if content is None else [content if isinstance(content, str) else json.dumps(content)]


def _read_part(part: dict[str, Any]) -> SpanMessage:
    """One part, as a message that holds nothing else."""
    kind = (known_text(part.get("type")) or "").replace("-", "_")  # the AI SDK's "tool-call"
    text = known_text(part.get("content")) or known_text(part.get("text"))
    function, result, reasoning = (next((object_of(part[name]) for name in names if part.get(name)), {})
                                   for names in _NAMED_PARTS)
    if kind in ("tool_call", "tool_use", "function_call", "function") or function:
        call = _call({"args": {}, **function} if function else part)  # Gemini leaves out empty ones
        return SpanMessage("", "", calls=(call,))
    if result:
        key = known_text(result.get("id")) or known_text(result.get("toolUseId"))
        output = _text(result.get("response", result.get("content", "")))
        failed = result.get("status") == "error"
        return SpanMessage("", "", results=(ToolResultPart(key, known_text(result.get("name")), output, failed),))
    if kind in ("tool_call_response", "tool_result", "tool_response"):
        names = ("response", "result", "content", "output")
        output = next((part[name] for name in names if part.get(name) is not None), "")
        typed = output if isinstance(output, dict) and output.keys() >= {"type", "value"} else {}  # AI SDK 5
        keys = map(known_text, (part.get("id"), part.get("tool_use_id"), part.get("toolCallId")))
        failed = str(typed.get("type")).startswith("error")
        return SpanMessage("", "", results=(
            ToolResultPart(next(filter(None, keys), None), None, _text(typed.get("value", output)), failed),))
    if reasoning:
        return SpanMessage("", "", known_text(object_of(reasoning.get("reasoningText")).get("text")) or "")
    if kind in ("reasoning", "thinking") or part.get("thought") is True:  # Gemini marks a text
        return SpanMessage("", "", text or known_text(part.get("thinking")) or _text(part.get("summary", "")))
    return SpanMessage("", text if text and not _PRINTED_PART.match(text) else "")


def _blocks(parts: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str | None, str]]:
    """The parts; and id of a call -> its arguments as received. For a stream of Claude, LangChain's block has them,
    while the separate call has them repaired. OpenLLMetry writes blocks of unknown types as JSON texts, and so repeats
    calls."""
    ids = {known_text(part.get("id")) for part in parts} - {None}
    blocks = [object_of(load_json(part.get("content"))) if part.get("type") == "text" else {} for part in parts]
    received = {known_text(each.get("id")): raw for each in (*parts, *blocks)
                if (raw := known_text(each.get("partial_json")))}
    found = [block if (block.get("type") == "thinking" and "thinking" in block) or "reasoningContent" in block else part
             for part, block in zip(parts, blocks, strict=True)
             if not (block.get("type") == "tool_use" and known_text(block.get("id")) in ids)]
    return found, received


def received_arguments(message: dict[str, Any]) -> Iterator[tuple[str | None, str]]:
    """The id of each call and its arguments as received, if LangChain stores them beside the parsed ones. For a stream
    those are repaired, so that cut arguments look whole."""
    for block in objects_of(message.get("content")):  # LangChain for Python: of Messages and of Responses
        if arguments := known_text(block.get("partial_json")) or known_text(block.get("arguments")):
            yield known_text(block.get("call_id")) or known_text(block.get("id")), arguments
    for chunk in objects_of(message.get("tool_call_chunks")):  # of a stream in any format
        if arguments := known_text(chunk.get("args")):
            yield known_text(chunk.get("id")), arguments
    for call in objects_of(object_of(message.get("additional_kwargs")).get("tool_calls")):  # of Chat Completions
        if arguments := known_text(object_of(call.get("function")).get("arguments")):
            yield known_text(call.get("id")), arguments
    for item in objects_of(object_of(message.get("response_metadata")).get("output")):  # of Responses
        if arguments := known_text(item.get("arguments")):
            yield known_text(item.get("call_id")), arguments
    pieces: dict[Any, str] = {}  # of Messages, by the number of the block
    blocks = [block for block in objects_of(message.get("content")) if type(block.get("index")) in (int, str)]
    for block in blocks:
        if block.get("type") == "input_json_delta":
            pieces[block["index"]] = pieces.get(block["index"], "") + (known_text(block.get("input")) or "")
    for block in blocks:
        if block.get("type") == "tool_use" and pieces.get(block["index"]):
            yield known_text(block.get("id")), pieces[block["index"]]


def _call(value: dict[str, Any]) -> tuple[str | None, str, Any]:
    call = object_of(value.get("tool_call")) or value
    function = object_of(call.get("function")) or call
    names = ("arguments", "arguments_json", "input", "args")
    arguments = next((function[name] for name in names if name in function), None)
    # OpenLLMetry stores arguments that it cannot parse, such as cut ones, under this name.
    if isinstance(arguments, dict) and arguments.keys() == {"_raw"}:
        arguments = arguments["_raw"]
    ids = ("call_id", "id", "toolCallId", "toolUseId")
    key = next((key for name in ids if (key := known_text(call.get(name)))), None)
    return key, known_text(function.get("name")) or known_text(function.get("toolName")) or "", arguments


def _text(value: Any) -> str:
    is_text = isinstance(value, str) or (
        isinstance(value, list) and all(isinstance(each, dict) and "text" in each for each in value))
    return text_of(value) if is_text else json.dumps(value, ensure_ascii=False)


def _several(value: Any) -> list[dict[str, Any]]:
    value = load_json(value)
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value, key=lambda key: (len(key), key))]
    return objects_of(value)


def _are_parts(value: Any) -> bool:
    """Whether the JSON in a text is the parts of a message, and not an answer that is itself JSON, such as `[]`. Some
    of the parts may be of an unknown type, such as a document."""
    listed = value.get("parts", [value]) if isinstance(value, dict) else value or None
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        return False
    kinds = {known_text(each.get("type")) for each in listed if each is value or not each.keys() <= TYPELESS_PARTS}
    return not kinds or (None not in kinds and not kinds.isdisjoint(PART_KINDS))


MessageKey = tuple[str, tuple[str | None, ...]]


def key_of(message: SpanMessage) -> MessageKey | None:
    """The values that identify a message: its text and the ids of its calls."""
    key = (message.text, tuple(call[0] for call in message.calls))
    return key if message.text or any(key[1]) else None


def take_output(answer: TranscriptAnswer, message: SpanMessage | None, at: At) -> None:
    """Reads the parts of an answer. Arguments that are a string stay unchanged, and may be cut."""
    if message is None:
        return
    answer.add_thought(message.reasoning)
    answer.add_text(message.text)
    for key, name, arguments in message.calls:
        text = arguments if isinstance(arguments, str) else (
            None if arguments is None else json.dumps(arguments, ensure_ascii=False))
        form = ArgsForm.STRING if isinstance(arguments, str) else ArgsForm.OBJECT
        answer.parts.append(ToolCall(key, name, text, True, form=form, at=at))
