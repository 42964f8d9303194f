"""Describes known agents as policies, so that one transcript can be run under all of them.

Each preset has the reason map and the promotions of its source, and cites the lines that it follows. Where the source
says nothing (about a format that it never uses, or a word that it does not name), the engine's own table is used. The
operator's limits, and the bounds that make every turn end, apply under every policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from loop_core.errors import CallerError
from loop_core.turn.continuation import Method, SeamRule
from loop_core.turn.policy import (
    STRICT,
    BatchRule,
    Dispatch,
    Policy,
    Promotion,
    ReasonSource,
    Signal,
    Signals,
    Words,
    same_signals,
)
from loop_core.values import Stop

_END, _RUN, _STUCK = Signal.END_TURN, Signal.TOOL_CALL, Signal.STUCK

_WITHOUT_A_WORD = "the format has no word for calls: their presence is the word"
# Gemini says STOP, Responses `completed` and Ollama `stop` over calls. A loop that followed the word alone would never
# run a tool there, so no source can intend that.
WORDLESS_FORMATS: tuple[Promotion, ...] = tuple(
    Promotion(api, Stop.END_TURN, True, _WITHOUT_A_WORD)
    for api in ("gemini_generate", "openai_responses", "ollama_chat")
)
"""The promotions of complete calls that every loop over these formats needs, whatever its source says about others."""

# -- ZeroClaw (RFI 2309) -----------------------------------------------------------------------------------------------

ZEROCLAW_WORDS: Words = MappingProxyType({
    ("openai_chat", "stop"): Stop.END_TURN,
    ("openai_chat", "tool_calls"): Stop.TOOL_CALL,
    ("openai_chat", "function_call"): Stop.TOOL_CALL,
    ("openai_chat", "length"): Stop.MAX_TOKENS,
    ("openai_chat", "content_filter"): Stop.SAFETY_BLOCKED,
    ("anthropic_messages", "end_turn"): Stop.END_TURN,
    ("anthropic_messages", "stop_sequence"): Stop.END_TURN,
    ("anthropic_messages", "tool_use"): Stop.TOOL_CALL,
    ("anthropic_messages", "max_tokens"): Stop.MAX_TOKENS,
    ("anthropic_messages", "model_context_window_exceeded"): Stop.CONTEXT_WINDOW_EXCEEDED,
    ("gemini_generate", "STOP"): Stop.END_TURN,
    ("gemini_generate", "MAX_TOKENS"): Stop.MAX_TOKENS,
    ("gemini_generate", "SAFETY"): Stop.SAFETY_BLOCKED,
    ("gemini_generate", "RECITATION"): Stop.SAFETY_BLOCKED,
    ("bedrock_converse", "end_turn"): Stop.END_TURN,
    ("bedrock_converse", "tool_use"): Stop.TOOL_CALL,
    ("bedrock_converse", "max_tokens"): Stop.MAX_TOKENS,
    ("bedrock_converse", "guardrail_intervened"): Stop.SAFETY_BLOCKED,
})
"""The provider mapping table of the document, row by row."""

# In the table of ZeroClaw RFI 2309 every other word of these four formats is Unknown. It says nothing about other
# formats, so for them the engine's own table holds.
ZEROCLAW_UNLISTED: Mapping[str, Stop] = MappingProxyType(
    dict.fromkeys(("openai_chat", "anthropic_messages", "gemini_generate", "bedrock_converse"), Stop.UNKNOWN))

ZEROCLAW_REASONS: Mapping[Stop, Stop] = MappingProxyType({
    Stop.PAUSED: Stop.UNKNOWN,
    Stop.INTERRUPTED: Stop.UNKNOWN,
    Stop.MALFORMED_TOOL_CALL: Stop.UNKNOWN,
})
"""Stop reason -> Unknown, for the engine's reasons that are not among the document's seven."""

_RFI_SOURCE = "ZeroClaw RFI 2309: loop_.rs finalizes a response if it holds no parsed tool calls"
ZEROCLAW_PROMOTIONS: tuple[Promotion, ...] = (Promotion("*", Stop.END_TURN, True, _RFI_SOURCE),)

ZEROCLAW_RFI_SIGNALS: Signals = MappingProxyType({
    Stop.END_TURN: (_END, _END, _END),
    Stop.TOOL_CALL: (_END, Signal.PARTIAL_CALL, _RUN),
    Stop.MAX_TOKENS: (Signal.MAX_TOKENS, Signal.PARTIAL_CALL, Signal.MAX_TOKENS),
    **same_signals(Stop.SAFETY_BLOCKED, Stop.CONTEXT_WINDOW_EXCEEDED, Stop.CANCELLED, Stop.UNKNOWN, Stop.ERROR),
})
"""The signals by the document's diagram: MaxTokens goes to ContinuePending; only a partial call is requested again."""

ZEROCLAW_RFI = Policy(
    "zeroclaw-rfi",
    "ZeroClaw's document: cut text is continued by a hint, a cut call is asked for again once",
    (
        "ZeroClaw RFI 2309, provider mapping table: other words are Unknown",
        "ZeroClaw RFI 2309, state diagram: MaxTokens leads to ContinuePending, whole calls or not",
        "ZeroClaw RFI 2309, partial tool-call policy: never execute what is incomplete; ask once for its re-emission",
        "ZeroClaw RFI 2309: the continuation hint is system-side; the four limits",
        "its hint of four points is the engine's own; it names no way to merge texts: seams are decided as by strict",
    ),
    reads=ReasonSource.MAPPED,
    words=ZEROCLAW_WORDS,
    unlisted=ZEROCLAW_UNLISTED,
    reason_map=ZEROCLAW_REASONS,
    promotions=ZEROCLAW_PROMOTIONS,
    signals=ZEROCLAW_RFI_SIGNALS,
    cap_evidence=False,
    dispatch=Dispatch.COMPLETE,
    methods=(Method.HINT,),
    lacks=frozenset({"thinking", "progress", "room"}),  # guards that only the engine has
    silent_endings=(),
    settles=False,
)

ZEROCLAW_MERGED_WORDS: Words = MappingProxyType({
    **ZEROCLAW_WORDS,
    ("openai_chat", "max_tokens"): Stop.MAX_TOKENS,
    ("anthropic_messages", "safety"): Stop.SAFETY_BLOCKED,  # a word that Anthropic never sends
    ("gemini_generate", "MALFORMED_FUNCTION_CALL"): Stop.TOOL_CALL,
    ("gemini_generate", "UNEXPECTED_TOOL_CALL"): Stop.TOOL_CALL,
    ("gemini_generate", "TOO_MANY_TOOL_CALLS"): Stop.TOOL_CALL,
})
"""The words of the merged code (zeroclaw#2373): those of the document with its additions."""

PRESENCE_SIGNALS: Signals = MappingProxyType({
    **dict.fromkeys(Stop, (_END, _END, _RUN)),
    **same_signals(Stop.ERROR, Stop.CANCELLED),
})
"""The signals of a loop that runs every call and ends the turn on anything else. Only error and abort matter (pi's
agent loop, third mark)."""

ZEROCLAW_MERGED_SIGNALS: Signals = MappingProxyType({
    **PRESENCE_SIGNALS,
    Stop.MAX_TOKENS: (Signal.MAX_TOKENS, Signal.MAX_TOKENS, _RUN),
})

ZEROCLAW_MERGED = Policy(
    "zeroclaw-merged",
    "ZeroClaw as it was merged: whole calls of a cut answer run, and any repetition in joined text goes",
    (
        "zeroclaw#2373: continues under MaxTokens while no native call parses, and attempts and characters last",
        "zeroclaw#2373: a response with native calls that parse skips that loop and executes them, max_tokens or not",
        "zeroclaw#2373: the longest overlap of any length is removed at a seam; the hint is a user message",
        "zeroclaw#2373: no token budget and no repair; Gemini's MALFORMED_FUNCTION_CALL is a tool call",
    ),
    reads=ReasonSource.MAPPED,
    words=ZEROCLAW_MERGED_WORDS,
    unlisted=ZEROCLAW_UNLISTED,
    signals=ZEROCLAW_MERGED_SIGNALS,
    cap_evidence=False,
    dispatch=Dispatch.COMPLETE,
    batch=BatchRule.EACH,
    methods=(Method.HINT,),
    system_hint=False,
    seam=SeamRule.OVERLAP,
    lacks=frozenset({"tokens", "thinking", "progress"}),
    silent_endings=(),
    settles=False,
)

BASE = Policy(
    "", "",
    reads=ReasonSource.MAPPED,
    cap_evidence=False,
    batch=BatchRule.EACH,
    methods=(),
    seam=SeamRule.CONCAT,
    lacks=frozenset({"room"}),
    settles=False,
)
"""The common part of the policies below. They follow the provider's word, continue no text and repair no call."""

# -- Zoo Code ----------------------------------------------------------------------------------------------------------

ZOO_BEFORE_SIGNALS: Signals = MappingProxyType({
    **dict.fromkeys(Stop, (_END, _STUCK, _STUCK)),
    Stop.TOOL_CALL: (_END, _STUCK, _RUN),
    **same_signals(Stop.ERROR, Stop.CANCELLED),
})
"""The signals of a loop in which only `tool_calls` ends a call. Under another word or none a call stays partial."""

ZOO_BEFORE = replace(
    BASE,
    name="zoo-before",
    title="Zoo Code before its fix: under any word except tool_calls a call waits forever",
    cites=(
        "Zoo Code's analysis, root cause 1: processToolCalls() handles finish_reason tool_calls only",
        "Zoo Code's analysis, root cause 2: nothing is cleaned up when the stream ends; calls stay partials forever",
        "Zoo Code's analysis, problem: without nativeArgs the user sees an invalid tool call",
        "it describes the OpenAI-compatible handlers; other formats are read alike",
        "Zoo-Code#1221: what is finalized runs with what a partial-JSON parser read of it",
    ),
    promotions=WORDLESS_FORMATS,
    signals=ZOO_BEFORE_SIGNALS,
    dispatch=Dispatch.READABLE,
    strips=False,
    silent_endings=(),
)

ZOO_AFTER_SIGNALS: Signals = MappingProxyType({
    **dict.fromkeys(Stop, (_END, _STUCK, _RUN)),
    **same_signals(Stop.ERROR, Stop.CANCELLED),
})
"""The signals of a loop that ends every call that has begun, by its reason or when the stream ends."""

ZOO_AFTER = replace(
    BASE,
    name="zoo-after",
    title="Zoo Code after its fix: every call ends with its stream and runs, cut ones too",
    cites=(
        "Zoo Code's analysis, fix 1: finish_reason length ends the calls as tool_calls does",
        "Zoo Code's analysis, fix 2: when the stream ends, every call that is still open is ended",
        "Zoo Code's analysis, fix 3: without nativeArgs the user is told to raise the output limit",
        "Zoo-Code#1221: what is finalized runs with what a partial-JSON parser read of it",
    ),
    signals=ZOO_AFTER_SIGNALS,
    dispatch=Dispatch.READABLE,
    strips=False,
    silent_endings=(),
)

# -- pi ----------------------------------------------------------------------------------------------------------------

PI_WORDS: Words = MappingProxyType({
    ("anthropic_messages", "end_turn"): Stop.END_TURN,
    ("anthropic_messages", "tool_use"): Stop.TOOL_CALL,
    ("anthropic_messages", "max_tokens"): Stop.MAX_TOKENS,
    ("anthropic_messages", "pause_turn"): Stop.END_TURN,
    ("anthropic_messages", "stop_sequence"): Stop.END_TURN,
})
"""The rows of `mapStopReason`, except those for refusal and sensitive. They lead to an error, as a word without a row
does."""

PI_REASONS: Mapping[Stop, Stop] = MappingProxyType({
    Stop.SAFETY_BLOCKED: Stop.ERROR,
    Stop.PAUSED: Stop.END_TURN,
    Stop.CONTEXT_WINDOW_EXCEEDED: Stop.ERROR,
    Stop.UNKNOWN: Stop.ERROR,
})
"""Stop reason -> what pi makes of it, for formats whose words the source does not name."""

PI_PRESENCE = replace(
    BASE,
    name="pi-presence",
    title="pi / OpenClaw before its fix: every call that is there runs, whatever the stop reason but an error",
    cites=(
        "pi's agent loop: agent-loop.js:59, the loop's marks 2 and 3",
        "pi's agent loop: anthropic.js:681, mapStopReason (refusal and sensitive are errors, pause_turn is a stop)",
        "its switch has no row for model_context_window_exceeded or an unknown word: it throws, which is an error",
    ),
    words=PI_WORDS,
    unlisted=MappingProxyType({"anthropic_messages": Stop.ERROR}),
    reason_map=PI_REASONS,
    signals=PRESENCE_SIGNALS,
    # pi executed on presence until its PR #6285 (2026-07), and parsed arguments with a lenient parser before that.
    dispatch=Dispatch.PRESENT,
    strips=False,
)

# -- BotNexus (PR 1676) ------------------------------------------------------------------------------------------------

BOTNEXUS_WORDS: Words = MappingProxyType({
    ("openai_responses", "incomplete"): Stop.MAX_TOKENS,
    ("openai_responses", "incomplete:content_filter"): Stop.MAX_TOKENS,
})
"""The words that BotNexus maps otherwise: `incomplete` is its Length, also if a content filter was the reason."""

BOTNEXUS_PROMOTIONS: tuple[Promotion, ...] = (
    Promotion("openai_responses", Stop.END_TURN, False, "BotNexus PR 1676: ResponsesStreamParser, any call under Stop"),
    # Its streaming parser keeps `null` at the end of the stream and maps null with calls to ToolUse, so a cut stream
    # opens the gate.
    Promotion("openai_chat", Stop.INTERRUPTED, False,
              "BotNexus PR 1676: OpenAICompatProvider, null and hasToolCalls; OpenAI's own host has another provider",
              but="openai"),
    *(row for row in WORDLESS_FORMATS if row.api != "openai_responses"),
)

BOTNEXUS_SIGNALS: Signals = MappingProxyType({
    **dict.fromkeys(Stop, (_END, _END, _END)),
    Stop.TOOL_CALL: (_END, _END, _RUN),
    **same_signals(Stop.SAFETY_BLOCKED, Stop.ERROR, Stop.CANCELLED),
})
"""The signals of a loop that runs calls only under ToolUse. Without a call to run, the turn ends."""

BOTNEXUS = replace(
    BASE,
    name="botnexus",
    title="BotNexus: calls run only under a stop reason for tools; others are left out, and the turn ends",
    cites=(
        "BotNexus PR 1676: AgentLoopRunner, FinishReason == ToolUse and calls present; the arguments are not looked at",
        "BotNexus PR 1676: StripNonExecutableToolCalls, from the calls and from the content",
        "BotNexus PR 1676, posture decision: each provider's mapping, and what it promotes",
        "a cut call reaches ToolUse by the promotion of a missing reason: the proof in that document has this gap",
    ),
    words=BOTNEXUS_WORDS,
    promotions=BOTNEXUS_PROMOTIONS,
    signals=BOTNEXUS_SIGNALS,
    dispatch=Dispatch.PRESENT,
    silent_endings=(),
)

POLICIES: Mapping[str, Policy] = MappingProxyType({
    policy.name: policy
    for policy in (STRICT, ZEROCLAW_RFI, ZEROCLAW_MERGED, ZOO_BEFORE, ZOO_AFTER, PI_PRESENCE, BOTNEXUS)
})
"""Name -> preset: the engine's own first, then those of the sources above, in order."""


def preset(name: str) -> Policy:
    """The preset with this name.

    Raises:
        CallerError: there is no preset with this name.
    """
    if not isinstance(name, str) or name not in POLICIES:
        raise CallerError(f"unknown policy {name!r}; expected one of {', '.join(POLICIES)}")
    return POLICIES[name]
