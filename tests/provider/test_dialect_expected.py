"""Each dialect's outcome, stated by hand from what is known of the server: what it says, what arrives, what we do.

    name: (raw word, mapped reason, effective reason, state of the call, decision of `strict`)
"""

from __future__ import annotations

import pytest

from inspector.provider.dialect_rows import DialectRow
from loop_core.judge.gate import Admission
from loop_core.values import Stop
from loop_core.wire import wire
from tests.scenes.provider import table_rows

Outcome = tuple[str | None, str, str, str, str]

CUT: Outcome = ("length", "max_tokens", "max_tokens", "prefix of a string", "hold, repair")
LIE: Outcome = ("tool_calls", "tool_call", "max_tokens", "prefix of a string", "hold, repair")
GONE: Outcome = ("length", "max_tokens", "max_tokens", "absent", "continue")

CALL_CUT: dict[str, Outcome] = {
    "openai_chat/openai": CUT,
    "openai_chat/openai+named": CUT,
    "openai_chat/mimo": (None, "interrupted", "interrupted", "prefix of a string", "hold, repair"),
    "openai_chat/vllm": LIE,
    "openai_chat/vllm+empty": ("tool_calls", "tool_call", "max_tokens", "empty object", "hold, repair"),
    "openai_chat/vllm+markup": ("length", "max_tokens", "max_tokens", "markup in the text", "continue"),
    "openai_chat/openrouter": LIE,
    "openai_chat/generic+router": LIE,
    "openai_chat/litellm": GONE,
    "openai_chat/dynamo": LIE,
    "openai_chat/generic+leak": ("stop", "end_turn", "max_tokens", "markup in the text", "continue"),
    "openai_chat/generic+alias": ("MAX_TOKENS", *CUT[1:]),
    "openai_chat/llama_cpp": CUT,
    "openai_chat/lm_studio": CUT,
    "openai_chat/ollama": GONE,
    "openai_chat/gemini": GONE,
    "openai_chat/azure_openai": CUT,
    "openai_chat/github_copilot": CUT,
    "openai_chat/groq": CUT,
    "openai_chat/mistral": CUT,
    "openai_chat/deepseek": CUT,
    "openai_chat/zai": CUT,
    "openai_chat/xai": CUT,
    "openai_chat/together": CUT,
    "openai_chat/fireworks": CUT,
    "openai_chat/moonshot": CUT,
    "openai_chat/cerebras": CUT,
    "openai_chat/oci": CUT,
    "openai_chat/sglang": CUT,
    "openai_chat/tgi": CUT,
    "openai_responses/openai": ("incomplete:max_output_tokens", "max_tokens", "max_tokens", "item incomplete",
                                "hold, repair"),
    "openai_responses/llama_cpp": ("completed", "end_turn", "max_tokens", "prefix of a string", "hold, repair"),
    "openai_responses/generic+completed": ("completed", "end_turn", "max_tokens", "prefix of a string", "hold, repair"),
    "openai_responses/generic+bare": ("incomplete", "interrupted", "interrupted", "item incomplete", "hold, repair"),
    "anthropic_messages/anthropic": ("max_tokens", "max_tokens", "max_tokens", "partial_json prefix", "hold, repair"),
    "anthropic_messages/anthropic+open": ("max_tokens", "max_tokens", "max_tokens", "block never closed",
                                          "hold, repair"),
    "anthropic_messages/anthropic+whole": ("max_tokens", "max_tokens", "max_tokens", "object, members missing",
                                           "hold, repair"),
    "gemini_generate/gemini": ("MAX_TOKENS", "max_tokens", "max_tokens", "absent", "continue"),
    "gemini_generate/gemini+malformed": ("MALFORMED_FUNCTION_CALL", "malformed_tool_call", "malformed_tool_call",
                                         "absent", "hold, repair"),
    "gemini_generate/vertex": ("MAX_TOKENS", "max_tokens", "max_tokens", "prefix of a string", "hold, repair"),
    "bedrock_converse/bedrock": ("max_tokens", "max_tokens", "max_tokens", "block never closed", "hold, repair"),
    "bedrock_converse/bedrock+whole": ("max_tokens", "max_tokens", "max_tokens", "object, members missing",
                                       "hold, repair"),
    "gemini_interactions/gemini": ("incomplete", "max_tokens", "max_tokens", "partial_json prefix", "hold, repair"),
    "gemini_interactions/gemini+whole": ("incomplete", "max_tokens", "max_tokens", "object, members missing",
                                         "hold, repair"),
    "ollama_chat/ollama": GONE,
    "ollama_chat/ollama+markup": ("length", "max_tokens", "max_tokens", "markup in the text", "continue"),
    "cohere_chat/cohere": ("MAX_TOKENS", "max_tokens", "max_tokens", "prefix of a string", "hold, repair"),
    "bedrock_invoke/bedrock": ("max_tokens", "max_tokens", "max_tokens", "partial_json prefix", "hold, repair"),
    "bedrock_invoke/bedrock+whole": ("max_tokens", "max_tokens", "max_tokens", "object, members missing",
                                     "hold, repair"),
}

PROMPTED = {"openai_completions", "anthropic_complete", "ollama_generate"}
"""Formats without calls."""
PROMPTS = ("openai_completions/openai", "anthropic_complete/anthropic", "ollama_generate/ollama")
WORDS = {
    "openai_chat": "length", "openai_responses": "incomplete:max_output_tokens", "anthropic_messages": "max_tokens",
    "gemini_generate": "MAX_TOKENS", "bedrock_converse": "max_tokens", "ollama_chat": "length",
    "gemini_interactions": "incomplete", "cohere_chat": "MAX_TOKENS", "openai_completions": "length",
    "ollama_generate": "length", "anthropic_complete": "max_tokens", "bedrock_invoke": "max_tokens",
}
TEXT_CUT: dict[str, Outcome] = {
    **{name: (WORDS[name.partition("/")[0]], "max_tokens", "max_tokens", "no call", "continue")
       for name in (*CALL_CUT, *PROMPTS)},
    "openai_chat/mimo": (None, "interrupted", "interrupted", "no call", "continue"),
    "openai_chat/openrouter": ("stop", "end_turn", "max_tokens", "no call", "continue"),
    "openai_chat/generic+alias": ("MAX_TOKENS", "max_tokens", "max_tokens", "no call", "continue"),
    "openai_responses/llama_cpp": ("completed", "end_turn", "max_tokens", "no call", "continue"),
    "openai_responses/generic+completed": ("completed", "end_turn", "end_turn", "no call", "lose the rest"),
    "openai_responses/generic+bare": ("incomplete", "interrupted", "interrupted", "no call", "continue"),
}

BATCH = {
    **{name: outcome if outcome[4] != "continue" else (*outcome[:4], "hold, repair")
       for name, outcome in CALL_CUT.items()},
    "openai_chat/litellm": ("tool_calls", "tool_call", "tool_call", "absent", "run calls"),
    "openai_chat/generic+leak": ("stop", "end_turn", "tool_call", "markup in the text", "run calls"),
}
"""One complete call before the cut one: what is left of the batch is held, but where nothing tells that it is cut."""

AFTER = {
    **{name: (*outcome[:3], "complete", "hold, repair") for name, outcome in TEXT_CUT.items() if name in CALL_CUT},
    "openai_chat/vllm": ("tool_calls", "tool_call", "max_tokens", "complete", "hold, repair"),
    "openai_responses/llama_cpp": ("completed", "end_turn", "max_tokens", "complete", "hold, repair"),
    "openai_chat/openrouter": ("length", "max_tokens", "max_tokens", "complete", "hold, repair"),
    "openai_chat/litellm": ("tool_calls", "tool_call", "tool_call", "complete", "run calls"),
    "openai_responses/generic+completed": ("completed", "end_turn", "tool_call", "complete", "run calls"),
}


def row_of(scenario: str) -> dict[str, DialectRow]:
    return {row.name: row for row in table_rows(scenario) if isinstance(row, DialectRow)}


def outcome(row: DialectRow) -> Outcome:
    judged = row.judgement
    return (row.exchange.response.raw_stop_reason, judged.mapped.normalized.value, judged.stop.normalized.value,
            row.call.value, row.decision)


@pytest.mark.parametrize(("scenario", "expected"), [
    ("call-cut", CALL_CUT), ("text-cut", TEXT_CUT), ("two-calls", BATCH), ("call-then-text", AFTER),
])
def test_every_dialect_tells_of_a_cut_as_its_server_does(scenario: str, expected: dict[str, Outcome]) -> None:
    told = {name: outcome(row) for name, row in row_of(scenario).items()}
    assert told == expected


def test_an_answer_without_a_reason_is_known_to_be_at_its_cap() -> None:
    cut = row_of("call-cut")
    at_cap = [name for name, row in cut.items() if row.judgement.cap_reached]
    assert at_cap == ["openai_chat/mimo", "openai_responses/generic+bare"]


@pytest.mark.parametrize(("name", "rule"), [
    ("openai_chat/vllm", "judge.cut_arguments"),
    ("openai_chat/vllm+empty", "judge.usage_at_cap"),
    ("openai_chat/openrouter", "judge.native_word"),
    ("openai_chat/mimo", "judge.usage_at_cap"),
    ("openai_responses/llama_cpp", "judge.cut_arguments"),
])
def test_the_evidence_says_what_gave_the_lie_away(name: str, rule: str) -> None:
    assert row_of("call-cut")[name].judgement.stop.evidence[-1].rule == rule


FINISHES_CALLS_WITH = {
    "openai_chat": "tool_calls", "openai_responses": "completed", "anthropic_messages": "tool_use",
    "gemini_generate": "STOP", "bedrock_converse": "tool_use", "ollama_chat": "stop",
    "gemini_interactions": "requires_action", "cohere_chat": "TOOL_CALL", "bedrock_invoke": "tool_use",
}
STOP_OVER_CALLS = {"openai_chat/openai+named", "openai_chat/ollama", "openai_chat/gemini"}


def test_a_complete_call_runs_whichever_word_its_server_has() -> None:
    told = row_of("call-done")
    assert set(told) == set(CALL_CUT)
    for name, row in told.items():
        word = "stop" if name in STOP_OVER_CALLS else FINISHES_CALLS_WITH[row.dialect.api]
        assert row.exchange.response.raw_stop_reason == word, name
        assert (row.judgement.stop.normalized, row.decision) == (Stop.TOOL_CALL, "run calls"), name
        assert [verdict.admission for verdict in row.verdicts] == [Admission.READY], name
        assert row.losses == (), name


def test_a_complete_text_ends_the_turn_whichever_word_its_server_has() -> None:
    told = row_of("text-done")
    assert set(told) == {*CALL_CUT, *PROMPTS}
    assert {row.decision for row in told.values()} == {"finish"}
    assert told["openai_chat/together"].exchange.response.raw_stop_reason == "eos"


def test_thinking_that_does_not_count_leaves_the_budget_to_the_answer() -> None:
    told = row_of("thinking")
    free = told.pop("openai_chat/xai")
    assert outcome(free) == ("stop", "end_turn", "end_turn", "no call", "finish")
    assert free.exchange.response.text == "The queue was saturated for nineteen minutes."
    assert {row.exchange.response.text for row in told.values()} == {None}
    # 200 characters of thinking and more, 32 tokens of 4 characters: all of them thinking.
    counted = {row.exchange.response.usage.reasoning_tokens for row in told.values() if row.exchange.response.usage}
    assert counted == {32, None}
    silent = [name for name, row in told.items()
              if row.exchange.response.usage and row.exchange.response.usage.reasoning_tokens is None]
    assert silent == ["bedrock_converse/bedrock", "bedrock_converse/bedrock+whole", "ollama_chat/ollama",
                      "ollama_chat/ollama+markup", "ollama_generate/ollama", "cohere_chat/cohere"]


def words_of(scenario: str) -> dict[str, tuple[str | None, str, str]]:
    return {name: (row.exchange.response.raw_stop_reason, row.judgement.stop.normalized.value, row.decision)
            for name, row in row_of(scenario).items()}


FULL = "context_window_exceeded"


@pytest.mark.parametrize(("scenario", "expected"), [
    ("context-full", {
        "openai_chat/openai": ("length", FULL, "abort"),  # 128,000 tokens of a context of 128,000
        "openai_chat/azure_openai": ("length", "max_tokens", "continue"),
        "openai_chat/vllm": ("length", "max_tokens", "continue"),
        "openai_chat/llama_cpp": ("length", FULL, "abort"),
        "openai_chat/lm_studio": (None, "interrupted", "abort, keep text"),
        "openai_chat/mistral": ("model_length", FULL, "abort"),
        "openai_chat/zai": ("model_context_window_exceeded", FULL, "abort"),
        "openai_responses/openai": ("incomplete:max_output_tokens", "max_tokens", "continue"),
        "openai_responses/generic+completed": ("completed", "end_turn", "lose the rest"),
        "anthropic_messages/anthropic": ("model_context_window_exceeded", FULL, "abort"),
        "bedrock_converse/bedrock": ("model_context_window_exceeded", FULL, "abort"),
        "ollama_chat/ollama": ("length", "max_tokens", "continue"),
    }),
    ("filtered", {
        "openai_chat/openai": ("content_filter", "safety_blocked", "abort"),
        "openai_chat/azure_openai": ("content_filter", "safety_blocked", "abort"),
        "openai_chat/zai": ("sensitive", "safety_blocked", "abort"),
        "openai_responses/openai": ("incomplete:content_filter", "safety_blocked", "abort"),
        "openai_responses/generic+bare": ("incomplete", "interrupted", "abort, keep text"),
        "anthropic_messages/anthropic": ("refusal", "safety_blocked", "abort"),
        "gemini_generate/gemini": ("SAFETY", "safety_blocked", "abort"),
        "bedrock_converse/bedrock": ("guardrail_intervened", "safety_blocked", "abort"),
    }),
    ("paused", {
        "openai_chat/litellm": ("length", "max_tokens", "continue"),
        "openai_responses/openai": ("in_progress", "paused", "resume"),
        "anthropic_messages/anthropic": ("pause_turn", "paused", "resume"),
        "gemini_generate/gemini": ("CONTINUATION", "paused", "resume"),
        "gemini_interactions/gemini": ("requires_continuation", "paused", "resume"),
    }),
    ("malformed-call", {
        "openai_chat/openai": ("tool_calls", "malformed_tool_call", "hold, repair"),
        "openai_chat/groq": (None, "error", "abort, keep text"),
        "openai_chat/litellm": ("stop", "end_turn", "lose the rest"),
        "openai_responses/openai": ("completed", "malformed_tool_call", "hold, repair"),
        "anthropic_messages/anthropic": ("tool_use", "malformed_tool_call", "hold, repair"),
        "gemini_generate/gemini": ("MALFORMED_FUNCTION_CALL", "malformed_tool_call", "hold, repair"),
        "bedrock_converse/bedrock": ("malformed_tool_use", "malformed_tool_call", "hold, repair"),
        "gemini_interactions/gemini": ("requires_action", "malformed_tool_call", "hold, repair"),
        "bedrock_invoke/bedrock": ("tool_use", "malformed_tool_call", "hold, repair"),
        "cohere_chat/cohere": ("TOOL_CALL", "malformed_tool_call", "hold, repair"),
    }),
    ("server-fails", {
        "openai_chat/openai": (None, "error", "abort, keep text"),
        "openai_chat/vllm": ("error", "error", "abort, keep text"),
        "openai_chat/openrouter": ("error", "error", "abort, keep text"),
        "openai_chat/litellm": ("stop", "end_turn", "lose the rest"),
        "openai_chat/mistral": ("error", "error", "abort, keep text"),
        "openai_chat/deepseek": ("insufficient_system_resource", "error", "abort, keep text"),
        "openai_chat/zai": ("network_error", "error", "abort, keep text"),
        "openai_chat/fireworks": ("error", "error", "abort, keep text"),
        "openai_responses/openai": ("failed", "error", "abort, keep text"),
        "anthropic_messages/anthropic": (None, "error", "abort, keep text"),
        "gemini_generate/gemini": (None, "error", "abort, keep text"),
        "bedrock_converse/bedrock": (None, "error", "abort, keep text"),
        "gemini_interactions/gemini": (None, "error", "abort, keep text"),
        "ollama_chat/ollama": (None, "error", "abort, keep text"),
        "bedrock_invoke/bedrock": (None, "error", "abort, keep text"),
        "cohere_chat/cohere": ("ERROR", "error", "abort, keep text"),
        **dict.fromkeys(PROMPTS, (None, "error", "abort, keep text")),
    }),
    ("stream-breaks", {
        "openai_chat/openai": (None, "interrupted", "abort, keep text"),
        "openai_responses/openai": (None, "interrupted", "abort, keep text"),
        "anthropic_messages/anthropic": (None, "interrupted", "abort, keep text"),
        "gemini_generate/gemini": (None, "interrupted", "abort, keep text"),
        "bedrock_converse/bedrock": (None, "interrupted", "abort, keep text"),
        "gemini_interactions/gemini": (None, "interrupted", "abort, keep text"),
        "ollama_chat/ollama": (None, "unknown", "abort, keep text"),
        "bedrock_invoke/bedrock": (None, "interrupted", "abort, keep text"),
        "cohere_chat/cohere": (None, "interrupted", "abort, keep text"),
    }),
])
def test_other_endings_are_told_as_the_servers_do(
    scenario: str, expected: dict[str, tuple[str | None, str, str]]
) -> None:
    told = words_of(scenario)
    assert {name: told.get(name) for name in expected} == expected


@pytest.mark.parametrize(("scenario", "apis"), [
    ("paused", {"openai_chat", "bedrock_converse", "ollama_chat", "cohere_chat", *PROMPTED}),
    ("filtered", {"ollama_chat", "gemini_interactions", "cohere_chat", "anthropic_complete", "ollama_generate"}),
    ("context-full", {"gemini_generate", "gemini_interactions"}),
    ("call-cut", PROMPTED), ("two-calls", PROMPTED), ("call-then-text", PROMPTED), ("call-done", PROMPTED),
])
def test_what_a_format_cannot_say_is_not_made_up(scenario: str, apis: set[str]) -> None:
    silent = {row.dialect.api: row.why for row in table_rows(scenario) if not isinstance(row, DialectRow)}
    assert set(silent) == apis
    without = {api for api, why in silent.items() if why == wire(api).no_tools}
    assert without == (apis if apis == PROMPTED else set()), "what has no calls says so, and not that nothing is known"


# -- the libraries ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scenario", "name", "expected"), [
    # A library that goes by the word alone takes vLLM's cut call for one to be run.
    ("call-cut", "openai_chat/vllm", {"litellm", "vercel", "pydantic_ai", "pi_ai"}),
    ("call-cut", "openai_chat/openai", set()),
    ("call-cut", "openai_chat/mimo", set()),  # all of them raise, or say error or nothing
    ("call-cut", "openai_responses/generic+bare", {"vercel"}),  # unknown reason and a call present: tool-calls
    ("call-cut", "gemini_generate/gemini+malformed", {"litellm"}),
    ("two-calls", "gemini_generate/gemini", {"litellm"}),  # a call under MAX_TOKENS becomes tool_calls
    ("call-cut", "gemini_generate/gemini", set()),  # without any call it stays length
    ("text-cut", "openai_chat/openrouter", {"litellm", "vercel", "pydantic_ai", "pi_ai"}),
    ("paused", "anthropic_messages/anthropic", {"vercel", "pi_ai"}),
    ("context-full", "openai_chat/mistral", {"litellm"}),
    ("server-fails", "openai_chat/deepseek", {"litellm"}),
    ("malformed-call", "bedrock_converse/bedrock", {"litellm"}),
    ("stream-breaks", "ollama_chat/ollama", {"litellm"}),
])
def test_the_libraries_that_are_deceived(scenario: str, name: str, expected: set[str]) -> None:
    assert {peer.name for peer in row_of(scenario)[name].peers if peer.looser} == expected


LENGTH = "length length length length"
CALL = "tool_calls tool-calls tool_call toolUse"
END = "stop stop stop stop"
FILTER = "content_filter content-filter content_filter error"
FAILURE = "raises error raises error"

SAID: dict[tuple[str, str], str] = {
    # litellm, vercel, pydantic_ai, pi_ai; a dash where a library does not speak with the provider, or is not known to
    ("call-cut", "openai_chat/openai"): LENGTH,
    ("call-cut", "openai_chat/mimo"): "raises error none error",
    ("call-cut", "openai_chat/vllm"): CALL,
    ("call-cut", "openai_chat/generic+alias"): "length other none error",
    ("call-cut", "openai_responses/openai"): LENGTH,
    ("call-cut", "openai_responses/generic+bare"): "length tool-calls none error",
    ("call-cut", "anthropic_messages/anthropic"): LENGTH,
    ("call-cut", "gemini_generate/gemini"): LENGTH,
    ("call-cut", "gemini_generate/vertex"): "tool_calls length length length",
    ("call-cut", "gemini_generate/gemini+malformed"): "stop error error error",
    ("call-cut", "bedrock_converse/bedrock"): LENGTH,
    ("call-cut", "ollama_chat/ollama"): "length - length -",
    ("two-calls", "ollama_chat/ollama"): "tool_calls - length -",
    ("text-cut", "openai_responses/generic+bare"): "length other none error",
    ("text-done", "openai_chat/openai"): END,
    ("text-done", "openai_chat/together"): "stop other none error",
    ("text-done", "openai_responses/openai"): END,
    ("text-done", "anthropic_messages/anthropic"): END,
    ("text-done", "gemini_generate/gemini"): END,
    ("text-done", "bedrock_converse/bedrock"): END,
    ("text-done", "ollama_chat/ollama"): "stop - stop -",
    ("call-done", "openai_chat/openai+named"): "tool_calls stop stop stop",
    ("call-done", "openai_responses/openai"): "tool_calls tool-calls stop toolUse",
    ("call-done", "anthropic_messages/anthropic"): CALL,
    ("call-done", "gemini_generate/gemini"): "tool_calls tool-calls stop toolUse",
    ("call-done", "bedrock_converse/bedrock"): CALL,
    ("call-done", "ollama_chat/ollama"): "tool_calls - stop -",
    ("context-full", "openai_chat/mistral"): "stop length length length",
    ("context-full", "openai_chat/zai"): "length other length error",
    ("context-full", "anthropic_messages/anthropic"): "length length length raises",
    ("context-full", "bedrock_converse/bedrock"): "length other length length",
    ("filtered", "openai_chat/openai"): FILTER,
    ("filtered", "openai_chat/zai"): "content_filter other content_filter error",
    ("filtered", "openai_responses/openai"): FILTER,
    ("filtered", "anthropic_messages/anthropic"): FILTER,
    ("filtered", "gemini_generate/gemini"): FILTER,
    ("filtered", "bedrock_converse/bedrock"): FILTER,
    ("paused", "openai_responses/openai"): "- other suspended stop",
    ("paused", "anthropic_messages/anthropic"): "length stop suspended stop",
    ("paused", "gemini_generate/gemini"): "length length length raises",
    ("malformed-call", "bedrock_converse/bedrock"): "stop other error error",
    ("server-fails", "openai_chat/openai"): FAILURE,
    ("server-fails", "openai_chat/mistral"): "stop error error error",
    ("server-fails", "openai_chat/deepseek"): "stop error none error",
    ("server-fails", "openai_chat/zai"): "stop other error error",
    ("server-fails", "openai_chat/fireworks"): "stop other none error",
    ("server-fails", "openai_chat/vllm"): "stop other none error",
    ("server-fails", "openai_chat/openrouter"): "stop error error error",
    ("server-fails", "openai_responses/openai"): "raises error error error",
    ("server-fails", "anthropic_messages/anthropic"): FAILURE,
    ("server-fails", "bedrock_converse/bedrock"): FAILURE,
    ("stream-breaks", "anthropic_messages/anthropic"): "stop interrupted none error",
    ("stream-breaks", "bedrock_converse/bedrock"): "- other none error",
    ("stream-breaks", "ollama_chat/ollama"): "stop - none -",
}


@pytest.mark.parametrize(("scenario", "name"), SAID)
def test_what_the_libraries_say(scenario: str, name: str) -> None:
    said = {peer.name: peer.word for peer in row_of(scenario)[name].peers}
    assert " ".join(said.get(peer, "-") for peer in ("litellm", "vercel", "pydantic_ai", "pi_ai")) == SAID[
        scenario, name]


@pytest.mark.parametrize(("scenario", "name", "means"), [
    ("paused", "openai_responses/openai", {"unknown", "paused", "end_turn"}),
    ("stream-breaks", "anthropic_messages/anthropic", {"end_turn", "interrupted", "unknown", "error"}),
    ("filtered", "openai_chat/openai", {"safety_blocked", "error"}),
    ("call-cut", "openai_chat/mimo", {"error", "unknown"}),
])
def test_what_their_words_mean(scenario: str, name: str, means: set[str]) -> None:
    told = row_of(scenario)[name]
    assert {peer.means.value for peer in told.peers} == means
    assert {peer.means.value for peer in told.peers if peer.agrees} == means & {told.judgement.stop.normalized.value}
