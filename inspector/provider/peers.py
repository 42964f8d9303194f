"""What four libraries make of the same native words: LiteLLM, Vercel's AI SDK, pydantic-ai and pi-ai.

Data: native word -> what each library says. A profile's own row goes before its format's. Read in their sources at the
versions named; a pair is what is said without calls and with calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from loop_core.judge.classify import FINISHED
from loop_core.values import Stop
from loop_core.wire import wire
from loop_core.wire.serving import PEER_ABSENT, PEER_FAILURE, PeerWords

PEERS = ("litellm", "vercel", "pydantic_ai", "pi_ai")
VERSIONS: Mapping[str, str] = {
    "litellm": "LiteLLM 1.109.1", "vercel": "ai 7.0.173", "pydantic_ai": "pydantic-ai 2.68.0", "pi_ai": "pi-ai 1.5.2",
}

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

ANSWERS: Mapping[tuple[str, str], PeerWords] = {
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
}
"""Profile and native word -> what each library says; those of a whole format are in its package (`Serving.peers`)."""


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
    key = PEER_FAILURE if failed and raw is None else raw or PEER_ABSENT
    answers = ANSWERS.get((profile, key)) or wire(api).serving.peers.get(key, ())
    found: list[Peer] = []
    for name, said in zip(PEERS, answers, strict=False):
        word = said if isinstance(said, str) else said[calls]
        if word:
            means = MEANS[word]
            found.append(Peer(name, word, means, means is ours, means in FINISHED and ours not in FINISHED))
    return tuple(found)
