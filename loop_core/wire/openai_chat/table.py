"""Describes Chat Completions as data: stop words, other words about the end, paths, fields that cannot be carried.

Bytes are read in `decode`. Words of single servers (Mistral's `model_length`, vLLM's `repetition`) are in profiles. The
last sections convert token counts of Chat Completions and related formats to and from `Usage`, and say which values
become which facts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from loop_core.values import ChatResponse, Stop, Usage
from loop_core.wire.asking import usual_losses
from loop_core.wire.body import list_of, mapping_of, non_null, token_count, total_of, value_at
from loop_core.wire.failures import ForeignWord, StopRow
from loop_core.wire.reads import FactRow

API = "openai_chat"

_SDK = "openai 3.54.0 types/chat/chat_completion.py"
_ERROR_WORD = "mistralai 3.7.0; openrouter 1.3.84; fireworks-ai 1.2.30; cohere 7.3.1; vllm; lmdeploy 0.18.0; mistral.rs"
_GATEWAYS = "litellm 1.110.2 types/llms/openai.py OpenAIChatCompletionFinishReason; @portkey-ai/gateway 1.15.2"
_CLAUDES = "QuantumNous/new-api@956d9f1 relay/reasonmap/reasonmap.go; litellm 1.110.2; pydantic-ai 2.68.0 zai.py:35"
_GLM = "pydantic-ai 2.68.0 models/zai.py:35 (docs.z.ai)"
_NO_RESOURCE = "@ai-sdk/deepseek 3.0.56 map-deepseek-finish-reason.ts; Huawei Cloud API reference, pangulm_05_0012"
_GATEWAY_LOGS = "Kilo-Org/cloud@4442d53 apps/web/src/lib/ai-gateway/finishReason.ts: seen in a gateway's logs"
_ALIAS = "aliases seen in the wild: pi-ai openai-completions.js:1197; ironclaw PR#5665; agentao PR#125"

REFUSAL = "message.refusal"
FILTERS = "content_filter_results"
PROMPT_FILTERS = "prompt_filter_results"
FILTERED = f"{FILTERS}.filtered"

STOP_REASONS: Mapping[str, StopRow] = {
    "stop": StopRow(Stop.END_TURN, None, _SDK),
    "length": StopRow(Stop.MAX_TOKENS, None, _SDK),
    "tool_calls": StopRow(Stop.TOOL_CALL, None, _SDK),
    "function_call": StopRow(Stop.TOOL_CALL, None, f"{_SDK} (deprecated)"),
    "content_filter": StopRow(Stop.SAFETY_BLOCKED, None, _SDK),
    "end": StopRow(Stop.END_TURN, None, _ALIAS),
    "max_tokens": StopRow(Stop.MAX_TOKENS, None, _ALIAS),
    "max_output_tokens": StopRow(Stop.MAX_TOKENS, None, _ALIAS),
    "abort": StopRow(Stop.CANCELLED, None, "vllm v1/engine/__init__.py; sglang FINISH_ABORT: the request was aborted"),
    "error": StopRow(Stop.ERROR, "retryable: server failure under HTTP 200", _ERROR_WORD),
    "guardrail_intervened": StopRow(Stop.SAFETY_BLOCKED, "guardrail", _GATEWAYS),
    "malformed_function_call": StopRow(Stop.MALFORMED_TOOL_CALL, None, _GATEWAYS),
    "model_context_window_exceeded": StopRow(Stop.CONTEXT_WINDOW_EXCEEDED, None, _CLAUDES),
    "refusal": StopRow(Stop.SAFETY_BLOCKED, "refusal", _CLAUDES),
    "engine_overloaded": StopRow(Stop.ERROR, "retryable: no engine was free", _GATEWAY_LOGS),
    "sensitive": StopRow(Stop.SAFETY_BLOCKED, "sensitive", f"{_GLM}; Hunyuan; opencode#44092"),
    "network_error": StopRow(Stop.ERROR, "retryable: inference broke off, the output is partial", _GLM),
    "insufficient_system_resource": StopRow(
        Stop.ERROR, "retryable: no resources left, the output is partial", _NO_RESOURCE),
    "repetition_truncation": StopRow(Stop.ERROR, "fatal: degenerate, the output repeats itself", "MiMo; TokenHub"),
    REFUSAL: StopRow(Stop.SAFETY_BLOCKED, "refusal", "openai 3.54.0 types/chat/chat_completion_message.py"),
    FILTERED: StopRow(Stop.SAFETY_BLOCKED, FILTERS, "Azure: choices[].content_filter_results.*.filtered"),
}
"""Native word -> mapped reason. The last two keys are fields whose content outranks a clean word."""

_COMPATIBLE = "Gemini behind its OpenAI-compatible endpoint"

FOREIGN_REASONS: Mapping[str, ForeignWord] = {
    "function_call_filter": ForeignWord("gemini_generate", StopRow(Stop.MALFORMED_TOOL_CALL, None, _COMPATIBLE)),
    "content_filter": ForeignWord("gemini_generate", StopRow(Stop.SAFETY_BLOCKED, None, _COMPATIBLE)),
}
"""Word before a colon -> how to read the word behind it: `function_call_filter: MALFORMED_FUNCTION_CALL`."""

NO_REASON: frozenset[str] = frozenset({"null"})
"""Finish reasons without a meaning. KoboldCpp streams this text (LostRuins/koboldcpp@2da346a koboldcpp.py)."""

CHOICE_WORDS: tuple[str, ...] = ("native_finish_reason", "stop_reason", "matched_stop", "eos_reason")
"""Fields of a choice with further words about the end: OpenRouter and routers; vLLM; SGLang; TabbyAPI."""


def reason_of(choice: Mapping[str, Any]) -> tuple[Any, str]:
    """The finish reason of a choice, and the member that holds it. OpenAI's gpt-4-1106-vision-preview had an object
    instead: `"finish_details": {"type": "max_tokens"}`."""
    reason, details = choice.get("finish_reason"), choice.get("finish_details")
    if reason is None and type(details) is dict and type(details.get("type")) is str:
        return details["type"], "finish_details"
    return reason, "finish_reason"


def filtered_categories(value: Any) -> set[str]:
    """The categories that a filter says it removed, from `content_filter_results` or a list of prompts' results."""
    found: set[str] = set()
    for results in value if isinstance(value, list) else [{FILTERS: value}]:
        inner = results.get(FILTERS) if isinstance(results, dict) else None
        for name, verdict in inner.items() if isinstance(inner, dict) else ():  # of blocklists, a list of verdicts
            if any(mapping_of(each).get("filtered") is True for each in list_of(verdict) or [verdict]):
                found.add(name)
    return found


PROVIDER_FIELDS = "provider_specific_fields"
"""The object of a choice in which LiteLLM puts further words of the provider behind it (litellm 1.110.2, `Choices`)."""

BODY_WORDS: Mapping[str, tuple[str, ...]] = {
    "truncated": ("truncated",),  # llama.cpp: the context was full
    "stop_type": ("stop_type",),  # llama.cpp: what ended the answer
    "stats.stop_reason": ("stats", "stop_reason"),  # LM Studio's REST API v0
}
"""Name in `native` -> the path, beside the choices, of a word about the end."""

VERBOSE = "__verbose"
"""The object beside the choices in which llama.cpp repeats its own answer if it is started with `--verbose`
(ggml-org/llama.cpp tools/server, `to_json_oaicompat_chat`)."""

ERROR_WORDS: tuple[str, ...] = ("failed_generation",)
"""Fields of an error with words about the end (Groq: the model's raw text that was not a valid call)."""

EARLIER = "earlier_finish_reason"
"""The name, in `native`, under which a finish reason is kept that a later one replaced."""

REASONING_FIELDS: tuple[str, ...] = ("reasoning_content", "reasoning", "reasoning_text", "thinking", "cot_summary")
"""Fields in which compatible servers send thinking; the last three are GitHub Copilot's (vscode-copilot-chat
thinkingUtils.ts). Some send the same text in two, so the first non-empty counts."""

REASONING_BLOCKS: Mapping[str, tuple[str, ...]] = {
    "reasoning_details": ("text", "summary"), "thinking_blocks": ("thinking",),
}
"""Fields with blocks of thinking: of routers; of LiteLLM, which repeats `reasoning_content` there (litellm 1.110.2)."""

MESSAGE_BLOCKS: tuple[str, ...] = ("annotations", "audio", "images", "executed_tools")
"""Fields of a message that are kept verbatim (citations, sound, pictures, Groq's own tools)."""

SIDE_FIELDS: frozenset[str] = frozenset({
    "role", "name", "id", "model", "object", "logprobs", "token_ids", PROVIDER_FIELDS, "extra_content",
    "metadata", "provider_metadata", "padding", "channel", "thought_signature", "graph_data",
    "reasoning_opaque", "cot_id",
})
"""Fields of a message that hold no part of the answer, or a part that is encrypted. Any other unread field may."""

LOSES: Mapping[str, str] = usual_losses("server", "call.status", "call.item_id", "reasoning.json", "text.phase")

PATHS: tuple[re.Pattern[str], ...] = (
    re.compile(r"/chat/completions/?(?:$|[?#])"),
    re.compile(r"/v1/agents/completions/?(?:$|[?#])"),  # Mistral's agents
    re.compile(r"/v1/text/chatcompletion_v2/?(?:$|[?#])"),  # MiniMax
    re.compile(r"/ml/v1/(?:deployments/[^/]+/)?text/chat(?:_stream)?/?(?:$|[?#])"),  # watsonx
)


def recognises(value: Mapping[str, Any], event: str | None = None) -> bool:
    """Whether a JSON object is a chat completion or one of its chunks."""
    choices = value.get("choices")
    if not isinstance(choices, list):
        return False
    if not choices:
        kind = value.get("object")
        # Azure's first chunk holds the annotations of the prompt and nothing else (openai-python#1677).
        return (isinstance(kind, str) and kind.startswith("chat.completion")) or PROMPT_FILTERS in value
    first = choices[0]
    if not isinstance(first, Mapping):
        return False
    if isinstance(first.get("delta"), Mapping) or isinstance(first.get("message"), Mapping):
        return True
    if "finish_reason" in first and "text" not in first and ("message" in first or "delta" in first):
        return True  # null, as some servers write an empty answer
    # Azure's asynchronous filter sends choices without a delta (openai-python#1677).
    return "content_filter_offsets" in first or (FILTERS in first and "text" not in first)


# -- Token counts of Chat Completions and its relatives <-> `Usage` --------------------------------------------------

_CACHED: tuple[tuple[str, ...], ...] = (
    ("prompt_tokens_details", "cached_tokens"),
    ("prompt_cache_hit_tokens",),  # DeepSeek
    ("cached_tokens",),  # Moonshot
    ("cache_read_input_tokens",),  # gateways before Anthropic
)
_CACHE_WRITES: tuple[tuple[str, ...], ...] = (
    ("prompt_tokens_details", "cache_write_tokens"),  # OpenRouter
    ("cache_creation_input_tokens",),  # gateways before Anthropic
)
_REASONING: tuple[tuple[str, ...], ...] = (
    ("completion_tokens_details", "reasoning_tokens"),
    ("reasoning_tokens",),
)


CONSTANTS: Mapping[str, tuple[int, int]] = {"koboldcpp/": (100, 100)}
"""Prefix of a model's name -> the constant input and output tokens that its server reports for every answer (older
versions of KoboldCpp)."""


def read_usage(counts: Mapping[str, Any], model: str | None) -> Usage | None:
    """The counts, reasoning included in the output; None if the object holds none, or the constants of a server. If the
    total is prompt + completion + reasoning (xAI), the server leaves reasoning out of `completion_tokens`."""
    prompt, completion, total = (
        token_count(counts.get(name)) for name in ("prompt_tokens", "completion_tokens", "total_tokens"))
    reasoning, cached = _first(counts, _REASONING), _first(counts, _CACHED)
    if prompt is None and completion is None and reasoning is None and cached is None:
        return None
    if any((model or "").startswith(begin) and (prompt, completion) == same for begin, same in CONSTANTS.items()):
        return None
    if reasoning and completion is not None and prompt is not None and prompt + completion + reasoning == total:
        completion += reasoning
    return Usage(prompt, completion, reasoning, cached, _first(counts, _CACHE_WRITES))


def write_body_words(response: ChatResponse) -> dict[str, Any]:
    """The words of `BODY_WORDS` that a response has, at their paths; a flag is written as JSON writes it."""
    literals, native = {"true": True, "false": False}, response.native
    beside: dict[str, Any] = {}
    for name, (*outer, last) in BODY_WORDS.items():
        if name in native:
            holder = beside
            for member in outer:
                holder = holder.setdefault(member, {})
            holder[last] = literals.get(native[name], native[name])
    return beside


def write_usage(usage: Usage) -> dict[str, Any]:
    """The `usage` object for these counts."""
    cache = non_null(cached_tokens=usage.cached_tokens, cache_write_tokens=usage.cache_write_tokens) or None
    thought = None if usage.reasoning_tokens is None else {"reasoning_tokens": usage.reasoning_tokens}
    return non_null(prompt_tokens=usage.input_tokens, completion_tokens=usage.output_tokens,
                    total_tokens=total_of(usage), prompt_tokens_details=cache, completion_tokens_details=thought)


def _first(counts: Mapping[str, Any], places: tuple[tuple[str, ...], ...]) -> int | None:
    return next((found for place in places if (found := token_count(value_at(counts, place))) is not None), None)


# -- Which values of a Chat Completions body or chunk become which facts ---------------------------------------------

_CHOICE = ("/choices/*/index",)
_BODY: tuple[FactRow, ...] = (
    FactRow("id", "/id"),
    FactRow("model", "/model"),
    FactRow("error", "/error"),
    FactRow("error", "/choices/*/error"),
    *(FactRow(f"native.{name}", f"/choices/*/{name}") for name in CHOICE_WORDS),
    *(FactRow(f"native.{name}", f"/choices/*/{PROVIDER_FIELDS}/{name}") for name in CHOICE_WORDS),
    *(FactRow(f"native.{name}", "/".join((holder, *path)))
      for holder in (f"/{VERBOSE}", "") for name, path in BODY_WORDS.items()),
)
_COUNTS: tuple[tuple[str, str], ...] = (
    ("usage.input_tokens", "/prompt_tokens"),
    ("usage.output_tokens", "/completion_tokens"),
    ("usage.reasoning_tokens", "/completion_tokens_details/reasoning_tokens"),
    ("usage.reasoning_tokens", "/reasoning_tokens"),
    # A server may count thinking separately; then the output is the sum of both.
    ("usage.output_tokens", "/completion_tokens_details/reasoning_tokens"),
    ("usage.output_tokens", "/reasoning_tokens"),
    ("usage.cached_tokens", "/prompt_tokens_details/cached_tokens"),
    ("usage.cached_tokens", "/prompt_cache_hit_tokens"),
    ("usage.cached_tokens", "/cached_tokens"),
    ("usage.cached_tokens", "/cache_read_input_tokens"),
    ("usage.cache_write_tokens", "/prompt_tokens_details/cache_write_tokens"),
    ("usage.cache_write_tokens", "/cache_creation_input_tokens"),
)
_USAGES: tuple[str, ...] = ("/usage", "/x_groq/usage", "/choices/*/usage")
_MESSAGE_FIELDS: tuple[tuple[str, str, str], ...] = (
    ("text", "/content", ""),
    ("text", "/content/*", ""),
    ("text", "/content/*/text", ""),
    ("text", "/content/text", ""),
    ("reasoning", "/reasoning_content", "reasoning_content"),
    ("reasoning", "/reasoning", "reasoning"),
    ("reasoning", "/reasoning_text", "reasoning_text"),
    ("reasoning", "/thinking", "thinking"),
    ("reasoning", "/cot_summary", "cot_summary"),
    ("reasoning", "/content/*/thinking", "content"),
    ("reasoning", "/content/*/thinking/*/text", "content"),
    ("reasoning", "/content/*/summary/*/text", "content"),
    ("refusal", "/refusal", ""),
    ("refusal", "/content/*/refusal", ""),
)
"""Fact, place in a message, and group. Groups are needed because servers send the same thinking in several fields."""
_CALL_FIELDS: tuple[tuple[str, str], ...] = (
    ("call.id", "/id"),
    ("call.name", "/function/name"),
    ("call.arguments", "/function/arguments"),
    ("call.name", "/custom/name"),
    ("call.arguments", "/custom/input"),
)
_LEGACY: tuple[tuple[str, str], ...] = (
    ("call.name", "/function_call/name"),
    ("call.arguments", "/function_call/arguments"),
)


def _holder_reads(holder: str) -> tuple[FactRow, ...]:
    at = f"/choices/*/{holder}"
    return (
        *(FactRow(fact, at + place, _CHOICE, "", holder + group) for fact, place, group in _MESSAGE_FIELDS),
        *(FactRow("reasoning", f"{at}/{name}/*/{field}", (*_CHOICE, f"{at}/{name}/*/index"), "", f"{holder} {name}")
          for name, fields in REASONING_BLOCKS.items() for field in fields),
        *(FactRow(fact, f"{at}/tool_calls/*{place}", (*_CHOICE, f"{at}/tool_calls/*/index"), "", holder)
          for fact, place in _CALL_FIELDS),
        *(FactRow(fact, f"{at}/tool_calls{place}", _CHOICE, "", f"{holder} object") for fact, place in _CALL_FIELDS),
        *(FactRow(fact, at + place, _CHOICE, "", f"{holder} legacy") for fact, place in _LEGACY),
    )


STREAM_READS = _holder_reads("delta")
READS: tuple[FactRow, ...] = (
    *_BODY,
    *(FactRow(fact, usage + place) for usage in _USAGES for fact, place in _COUNTS),
    *STREAM_READS,
    *_holder_reads("message"),
)
