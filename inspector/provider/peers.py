"""What four libraries make of the same native words: LiteLLM, Vercel's AI SDK, pydantic-ai and pi-ai.

Data: native word -> what each library says. A profile's own row goes before its format's. Read in their sources at the
versions named; a pair is what is said without calls and with calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from loop_core.judge.classify import FINISHED
from loop_core.values import Stop

PEERS = ("litellm", "vercel", "pydantic_ai", "pi_ai")
VERSIONS: Mapping[str, str] = {
    "litellm": "LiteLLM 1.109.1", "vercel": "ai 7.0.173", "pydantic_ai": "pydantic-ai 2.68.0", "pi_ai": "pi-ai 1.5.2",
}

Word = str | tuple[str, str]
"""One library's word, or its words without and with calls."""

ABSENT = "(absent)"
"""The key of a stream that ended without a word."""
FAILURE = "(error)"
"""The key of an error that comes in the middle of an answer."""

MEANS: Mapping[str, Stop] = {
    "stop": Stop.END_TURN,
    "length": Stop.MAX_TOKENS,
    "tool_calls": Stop.TOOL_CALL,
    "tool-calls": Stop.TOOL_CALL,
    "tool_call": Stop.TOOL_CALL,
    "toolUse": Stop.TOOL_CALL,
    "content_filter": Stop.SAFETY_BLOCKED,
    "content-filter": Stop.SAFETY_BLOCKED,
    "error": Stop.ERROR,
    "raises": Stop.ERROR,
    "other": Stop.UNKNOWN,
    "none": Stop.UNKNOWN,
    "interrupted": Stop.INTERRUPTED,
    "suspended": Stop.PAUSED,
}
"""What a library's word means in ours; `raises` is an exception, `none` no reason at all."""

_STOP: tuple[Word, ...] = ("stop", "stop", "stop", "stop")
_CALL: tuple[Word, ...] = ("tool_calls", "tool-calls", "tool_call", "toolUse")
_LENGTH: tuple[Word, ...] = ("length", "length", "length", "length")
_FILTER: tuple[Word, ...] = ("content_filter", "content-filter", "content_filter", "error")
_FAILED: tuple[Word, ...] = ("raises", "error", "raises", "error")
_FULL: tuple[Word, ...] = ("length", "length", "length", "raises")
_WITH_CALLS: tuple[Word, ...] = (
    ("stop", "tool_calls"), ("stop", "tool-calls"), ("stop", "stop"), ("stop", "toolUse"),
)
"""Where presence of a call decides what an end is."""

ANSWERS: Mapping[tuple[str, str], tuple[Word, ...]] = {
    ("openai_chat", "stop"): (("stop", "tool_calls"), "stop", "stop", "stop"),
    ("openai_chat", "length"): _LENGTH,
    ("openai_chat", "tool_calls"): _CALL,
    ("openai_chat", "content_filter"): _FILTER,
    ("openai_chat", "MAX_TOKENS"): ("length", "other", "none", "error"),
    ("openai_chat", ABSENT): ("raises", "error", "none", "error"),
    ("openai_chat", FAILURE): _FAILED,
    ("mistral", "model_length"): ("stop", "length", "length", "length"),
    ("mistral", "error"): ("stop", "error", "error", "error"),
    ("deepseek", "insufficient_system_resource"): ("stop", "error", "none", "error"),
    ("zai", "sensitive"): ("content_filter", "other", "content_filter", "error"),
    ("zai", "model_context_window_exceeded"): ("length", "other", "length", "error"),
    ("zai", "network_error"): ("stop", "other", "error", "error"),
    ("together", "eos"): ("stop", "other", "none", "error"),
    ("fireworks", "error"): ("stop", "other", "none", "error"),
    ("vllm", "error"): ("stop", "other", "none", "error"),
    ("openrouter", "error"): ("stop", "error", "error", "error"),
    ("openai_responses", "completed"): _WITH_CALLS,
    ("openai_responses", "incomplete"): ("length", ("other", "tool-calls"), "none", "error"),
    ("openai_responses", "incomplete:max_output_tokens"): _LENGTH,
    ("openai_responses", "incomplete:content_filter"): _FILTER,
    ("openai_responses", "failed"): ("raises", "error", "error", "error"),
    ("openai_responses", "in_progress"): ("", "other", "suspended", "stop"),
    ("anthropic_messages", "end_turn"): _STOP,
    ("anthropic_messages", "tool_use"): _CALL,
    ("anthropic_messages", "max_tokens"): _LENGTH,
    ("anthropic_messages", "model_context_window_exceeded"): _FULL,
    ("anthropic_messages", "refusal"): _FILTER,
    ("anthropic_messages", "pause_turn"): ("length", "stop", "suspended", "stop"),
    ("anthropic_messages", ABSENT): ("stop", "interrupted", "none", "error"),
    ("anthropic_messages", FAILURE): _FAILED,
    ("gemini_generate", "STOP"): (("stop", "tool_calls"), ("stop", "tool-calls"), "stop", ("stop", "toolUse")),
    ("gemini_generate", "MAX_TOKENS"): (("length", "tool_calls"), "length", "length", "length"),
    ("gemini_generate", "SAFETY"): _FILTER,
    ("gemini_generate", "MALFORMED_FUNCTION_CALL"): ("stop", "error", "error", "error"),
    ("gemini_generate", "CONTINUATION"): ("length", "length", "length", "raises"),
    ("bedrock_converse", "end_turn"): _STOP,
    ("bedrock_converse", "tool_use"): _CALL,
    ("bedrock_converse", "max_tokens"): _LENGTH,
    ("bedrock_converse", "model_context_window_exceeded"): ("length", "other", "length", "length"),
    ("bedrock_converse", "guardrail_intervened"): _FILTER,
    ("bedrock_converse", "malformed_tool_use"): ("stop", "other", "error", "error"),
    ("bedrock_converse", ABSENT): ("", "other", "none", "error"),
    ("bedrock_converse", FAILURE): _FAILED,
    ("ollama_chat", "stop"): (("stop", "tool_calls"), "", "stop", ""),
    ("ollama_chat", "length"): (("length", "tool_calls"), "", "length", ""),
    ("ollama_chat", ABSENT): ("stop", "", "none", ""),
}
"""An empty word: the library does not speak with this provider, or what it says is not known."""


class Peer(NamedTuple):
    """What one library says."""

    name: str
    word: str
    means: Stop
    agrees: bool
    """It means what we do."""
    looser: bool
    """It takes for finished what we do not: whoever trusts it goes on, or runs what was cut."""


def peers(api: str, profile: str, raw: str | None, failed: bool, calls: bool, ours: Stop) -> tuple[Peer, ...]:
    """What each library says of a native word, beside our effective reason; empty where that is not known."""
    key = FAILURE if failed and raw is None else raw or ABSENT
    answers = ANSWERS.get((profile, key)) or ANSWERS.get((api, key)) or ()
    found: list[Peer] = []
    for name, said in zip(PEERS, answers, strict=False):
        word = said if isinstance(said, str) else said[calls]
        if word:
            means = MEANS[word]
            found.append(Peer(name, word, means, means is ours, means in FINISHED and ours not in FINISHED))
    return tuple(found)
