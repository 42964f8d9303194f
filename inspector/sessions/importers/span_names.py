"""Reads the attributes of a span that describe an answer, in all versions of the GenAI conventions and OpenInference.

The same fact has different names in the OpenTelemetry conventions (`gen_ai.…`, with older versions), OpenLLMetry
(`gen_ai.prompt.N.…`), OpenInference (`llm.…`, flattened), and the AI SDK (`ai.…`). Messages of all of them are
converted to one form. Sources: opentelemetry-semantic-conventions 0.66b2, openinference-semantic-conventions 0.1.42,
OpenLLMetry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from inspector.sessions.importers.span_messages import SpanMessage, load_json, message_of
from inspector.sessions.transcripts.member_values import CAPS, known_text, object_of

Attributes = Mapping[str, Any]
FACTS: Mapping[str, tuple[str, ...]] = {
    "model": ("gen_ai.response.model", "gen_ai.request.model", "llm.response.model", "llm.model_name",
              "llm.request.model", "model"),
    "id": ("gen_ai.response.id",),
    "cap": ("gen_ai.request.max_tokens", "gen_ai.request.max_output_tokens", "gen_ai.request.max_completion_tokens",
            "llm.request.max_tokens"),
    "input": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt",
              "input_tokens", "gen_ai.response.prompt_tokens"),
    "output": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion",
               "output_tokens", "gen_ai.response.completion_tokens"),
    "cached": ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens",
               "llm.token_count.prompt_details.cache_read", "cache_read_tokens"),
    "written": ("gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens",
                "llm.token_count.prompt_details.cache_write", "cache_creation_tokens"),
    "reasoning": ("gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens",
                  "llm.token_count.completion_details.reasoning"),
    "word": ("gen_ai.response.finish_reasons", "gen_ai.response.finish_reason", "llm.finish_reason",
             "llm.response.finish_reason", "llm.response.stop_reason", "ai.response.finishReason", "stop_reason",
             "anthropic.message.stop_reason"),
    "conversation": ("gen_ai.conversation.id", "session.id", "gen_ai.session.id", "gcp.vertex.agent.session_id"),
    "agent": ("gen_ai.agent.name", "graph.node.id", "agent.name"),
    "call": ("gen_ai.tool.call.id", "tool_call.id", "tool.id", "ai.toolCall.id"),
    "tool": ("gen_ai.tool.name", "tool.name"),
    "result": ("gen_ai.tool.call.result", "gen_ai.tool.message", "output.value", "ai.toolCall.result",
               "gcp.vertex.agent.tool_response"),
}
"""Fact -> the names of its attributes, the newest first."""
ANSWERING = frozenset({
    "chat", "text_completion", "generate_content", "completion", "responses", "message", "messages",
    # Semantic Kernel, and the first releases of Microsoft's Agent Framework
    "chat.completions", "chat.streaming_completions", "text.completions", "text.streaming_completions",
})
"""The operations of spans that are an answer of a model."""
SYSTEMS = frozenset({"gen_ai.provider.name", "gen_ai.system"})
INPUTS = ("gen_ai.input.messages", "gen_ai.prompt", "gen_ai.content.prompt", "ai.prompt.messages")
OUTPUTS = ("gen_ai.output.messages", "gen_ai.completion", "gen_ai.content.completion")
"""The attributes with output messages, as JSON or as values."""
FLAT_INPUTS = ("llm.input_messages", "gen_ai.prompt")
FLAT_OUTPUTS = ("llm.output_messages", "gen_ai.completion")
"""The beginnings of flattened names of output messages, before the number of the message."""


KINDS = (
    "LLM", "AGENT", "TOOL", "CHAIN", "EMBEDDING", "RETRIEVER", "RERANKER", "GUARDRAIL", "EVALUATOR", "PROMPT",
)
"""OpenInference's kinds of spans."""
MESSAGE_MEMBERS = frozenset({"role", "content", "contents", "message", "parts", "tool_calls", "type", "toolName"})
"""The members of which a message has at least one."""


_CUT_MESSAGES = re.compile(r'\s*\[?\s*\{\s*"(?:role|parts|message|content|finish_reason|index)"\s*:')
"""Matches the beginning of messages as JSON. A text with this beginning that is not JSON was cut."""


class TraceSpan(NamedTuple):
    """The fields of a span that are needed to read its answer, or of an answer that is only in log records."""

    piece: bytes
    id: str
    parent: str
    trace: str
    start: int
    attributes: dict[str, Any]
    logs: tuple[bytes, ...] = ()
    """The log records of the same answer, which are shown after the span."""
    output_rows: tuple[int, int] = (0, 0)
    """The first and the last row with the output messages: 0 is the span, 1 the first log record."""
    word_row: int = 0
    """The row with the stop word."""
    end: int = 0


def fact(attributes: Attributes, name: str) -> Any:
    """The value of a fact; None if none of its attributes has one."""
    return next((attributes[key] for key in FACTS[name] if attributes.get(key) not in (None, "")), None)


def is_answer(attributes: Attributes) -> bool:
    """Whether a span is one answer of a model, and not an agent, a tool or an embedding."""
    kind = attributes.get("openinference.span.kind")
    if isinstance(kind, str):
        # OpenInference's kinds: LLM, AGENT, TOOL, CHAIN and others
        return kind.upper() == "LLM"
    operation = attributes.get("gen_ai.operation.name")
    if isinstance(operation, str):
        return operation in ANSWERING
    if attributes.get("span.type") == "llm_request":  # Claude Code's own spans
        return True
    if attributes.get("llm.request.type") in ("chat", "completion"):  # OpenLLMetry
        return True
    named = any(name in attributes for name in SYSTEMS)
    return named and fact(attributes, "model") is not None and "gen_ai.tool.name" not in attributes


def is_tool(attributes: Attributes) -> bool:
    """Whether a span is a run of a tool."""
    kind = attributes.get("openinference.span.kind")
    named = attributes.get("gen_ai.operation.name") == "execute_tool" or "ai.toolCall.id" in attributes
    return named or (isinstance(kind, str) and kind.upper() == "TOOL")


def model_of(attributes: Attributes) -> Any:
    """The model that answered, else the one in the request's parameters (OpenInference, for a failure)."""
    return fact(attributes, "model") or object_of(load_json(attributes.get("llm.invocation_parameters"))).get("model")


def cap_of(attributes: Attributes) -> int | None:
    """The output cap of the request."""
    parameters = object_of(load_json(attributes.get("llm.invocation_parameters")))
    counts = (count(fact(attributes, "cap")), *(count(parameters.get(name)) for name in CAPS))
    return next((each for each in counts if each), None)


def count(value: Any) -> int | None:
    """A count, which may be a string in OTLP; None for any other value."""
    if isinstance(value, str) and value.isdigit() and len(value) < 16:
        return int(value)
    return int(value) if type(value) in (int, float) and 0 <= value < 1e15 else None


def word_of(attributes: Attributes) -> str | None:
    """The stop word of the first choice."""
    return next(iter(words_of(attributes)), None)


def words_of(attributes: Attributes) -> list[str]:
    """The stop words of the first choice. OpenLLMetry's spans of the Agents SDK have one for each of its items."""
    words = load_json(fact(attributes, "word"))
    listed = words if isinstance(words, list) else [words]  # the conventions have a list, one word per choice
    words_as_text = map(known_text, listed[:1] if _has_choices(attributes) else listed)
    return [word for word in words_as_text if word and word != "None"]  # as Python prints it (Semantic Kernel)


def _has_choices(attributes: Attributes) -> bool:
    """Whether the request asked for several answers (n > 1), so that each output message is an answer."""
    parameters = object_of(load_json(attributes.get("llm.invocation_parameters")))
    asked = (attributes.get("gen_ai.request.choice.count"), parameters.get("n"), parameters.get("candidate_count"))
    return any((count(each) or 1) > 1 for each in asked)


def inputs_of(attributes: Attributes) -> list[SpanMessage]:
    """The recorded input messages; empty if there are none."""
    found = _with_ids(list(_messages(attributes, INPUTS, FLAT_INPUTS)))
    input_text = known_text(attributes.get("input.value")) if not found else None
    return [SpanMessage("user", input_text)] if input_text else found


def _with_ids(found: list[SpanMessage]) -> list[SpanMessage]:
    """The messages, with ids that a call and its result share. Gemini's calls have no ids. ADK makes its own (`adk-…`),
    and in messages of a request it makes ids of the name and the position: a result `ls_0` answers `ls_1`."""
    made = {name for message in found for key, name, _ in message.calls if _tool_of(key, name) == name}
    for number, message in enumerate(found if made else ()):
        calls = _number_ids([(key, _tool_of(key, name)) for key, name, _ in message.calls], made)
        results = _number_ids([(part.call_id, _tool_of(part.call_id)) for part in message.results], made)
        found[number] = message._replace(
            calls=tuple((key, *call[1:]) for key, call in zip(calls, message.calls, strict=True)),
            results=tuple(part._replace(call_id=key) for key, part in zip(results, message.results, strict=True)))
    return found


def _number_ids(ids: list[tuple[str | None, str]], made: set[str]) -> list[str | None]:
    """The ids; for tools in `made`, the name and the number of the call in its message."""
    names = [name for _, name in ids]
    return [f"{name}_{names[:at].count(name)}" if name in made else key for at, (key, name) in enumerate(ids)]


def _tool_of(key: str | None, name: str = "") -> str:
    """The name of the tool, if ADK made the id of a call or a result; else empty."""
    prefix, _, number = (key or "").rpartition("_")
    return name if (key or "").startswith("adk-") else prefix if number.isdecimal() else ""


def outputs_of(attributes: Attributes) -> list[SpanMessage]:
    """The recorded output messages, the first choice first; empty if there are none."""
    found = _join_items(attributes, list(_messages(attributes, OUTPUTS, FLAT_OUTPUTS)))
    if len(found) == 1 and not found[0].calls:  # LiteLLM has the calls of the message only under flattened names
        found[0] = found[0]._replace(calls=tuple(
            call for each in _messages(attributes, (), FLAT_OUTPUTS) for call in each.calls))
    found = _with_ids(found)
    text, structured, calls = (attributes.get(f"ai.response.{name}") for name in ("text", "object", "toolCalls"))
    text = text or structured
    if not found and (text or calls):  # the AI SDK's own names
        return [message_of({"role": "assistant", "content": text, "tool_calls": calls})]
    output_text = known_text(attributes.get("output.value")) if not found else None
    return [SpanMessage("assistant", output_text)] if output_text else found


def _join_items(attributes: Attributes, found: list[SpanMessage]) -> list[SpanMessage]:
    """The messages, joined if they are items of one answer, as in OpenTelemetry's own instrumentation of Responses and
    in OpenLLMetry's of the Agents SDK. Two texts may be two answers of one request, so they are not joined, unless they
    are pieces of a stream, of which only the last has the stop word (ADK)."""
    apart = _has_choices(attributes) or any(each.numbered for each in found)
    in_pieces = bool(found and found[-1].word) and not any(each.word for each in found[:-1])
    if len(found) < 2 or apart or (sum(bool(each.text) for each in found) > 1 and not in_pieces):
        return found
    calls = tuple(call for each in found for call in each.calls)
    thoughts = ("" if in_pieces else "\n").join(each.reasoning for each in found if each.reasoning)
    words = [each.word for each in found if each.word]
    return [found[0]._replace(text="".join(each.text for each in found), reasoning=thoughts, calls=calls,
                              word=next(iter(words), None), further_words=tuple(words[1:]))]


def _messages(attributes: Attributes, names: tuple[str, ...], flat: tuple[str, ...]) -> Iterator[SpanMessage]:
    for name in names:
        content = load_json(attributes.get(name))
        if isinstance(content, str) and _CUT_MESSAGES.match(content):
            return  # the exporter's limit on attributes cut the JSON, so its messages cannot be read
        messages = content if isinstance(content, list) else [] if content is None else [content]
        if not any(isinstance(each, str) or object_of(each).keys() & MESSAGE_MEMBERS for each in messages):
            messages = messages and [attributes[name]]  # the text of an answer that is JSON
        if messages:
            yield from (message_of(each) for each in messages)
            return
    for prefix in flat:
        content = nest_values(attributes, prefix)
        if isinstance(content, dict):
            # as numbers: "10" after "9"
            yield from (message_of(content[key]) for key in sorted(content, key=lambda key: (len(key), key)))
            return


def nest_values(attributes: Attributes, prefix: str) -> Any:
    """The values under flattened names, as nested objects."""
    found: dict[str, Any] = {}
    for name, value in attributes.items():
        if not name.startswith(f"{prefix}."):
            continue
        steps, here = name[len(prefix) + 1 :].split("."), found
        for step in steps[:-1]:
            below = here.setdefault(step, {})
            if not isinstance(below, dict):
                below = here[step] = {}
            here = below
        here[steps[-1]] = value
    return found or None
