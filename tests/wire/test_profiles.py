"""Profiles: who is recognised by what, which words they have of their own, and what is known of them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given as given_any
from hypothesis import strategies as st

from loop_core.errors import CallerError
from loop_core.judge.classify import judge
from loop_core.values import At, ChatResponse, ExchangePart, Stop
from loop_core.wire import FORMATS, decode, profiles, wire
from loop_core.wire.format import Prefill
from loop_core.wire.profiles import PROFILES, choose, event_lines, native_reading, native_word, profile_named
from loop_core.wire.servers import GENERIC, SERVERS
from tests.scenes.rows import each_row

CHAT, RESPONSES, MESSAGES = "openai_chat", "openai_responses", "anthropic_messages"
GEMINI, CONVERSE, OLLAMA = "gemini_generate", "bedrock_converse", "ollama_chat"

# -- by address ------------------------------------------------------------------------------------------------------

HOSTS = [
    ("gemini_interactions", "https://generativelanguage.googleapis.com/v1beta/interactions", "gemini"),
    ("anthropic_complete", "https://api.anthropic.com/v1/complete", "anthropic"),
    ("openai_completions", "https://api.openai.com/v1/completions", "openai"),
    ("bedrock_invoke", "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/invoke", "bedrock"),
    ("cohere_chat", "https://api.cohere.com/v2/chat", "cohere"),
    (CHAT, "https://api.openai.com/v1/chat/completions", "openai"),
    (RESPONSES, "https://api.openai.com/v1/responses", "openai"),
    (RESPONSES, "https://chatgpt.com/backend-api/codex/responses", "chatgpt_codex"),
    (MESSAGES, "https://api.anthropic.com/v1/messages", "anthropic"),
    (GEMINI, "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:generateContent", "gemini"),
    (CHAT, "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions", "gemini"),
    (CHAT, "https://api.mistral.ai/v1/chat/completions", "mistral"),
    (CHAT, "https://codestral.mistral.ai/v1/chat/completions", "mistral"),
    (CHAT, "https://api.deepseek.com/beta/chat/completions", "deepseek"),
    (RESPONSES, "https://api.deepseek.com/responses", "deepseek"),
    (MESSAGES, "https://api.deepseek.com/anthropic/v1/messages", "deepseek"),
    (CHAT, "https://api.x.ai/v1/chat/completions", "xai"),
    (RESPONSES, "https://api.x.ai/v1/responses", "xai"),
    (CHAT, "https://api.cohere.com/compatibility/v1/chat/completions", "cohere"),
    (CHAT, "https://api.cohere.ai/compatibility/v1/chat/completions", "cohere"),
    (CHAT, "https://api.moonshot.ai/v1/chat/completions", "moonshot"),
    (CHAT, "https://api.moonshot.cn/v1/chat/completions", "moonshot"),
    (MESSAGES, "https://api.kimi.com/coding/v1/messages", "moonshot"),
    (CHAT, "https://token-plan-sgp.xiaomimimo.com/v1/chat/completions", "mimo"),
    (MESSAGES, "https://api.xiaomimimo.com/anthropic/v1/messages", "mimo"),
    (CHAT, "https://api.z.ai/api/paas/v4/chat/completions", "zai"),
    (MESSAGES, "https://open.bigmodel.cn/api/anthropic/v1/messages", "zai"),
    (CHAT, "https://dashscope-intl.aliyuncs.com/compatible-mode/v1/chat/completions", "dashscope"),
    (CHAT, "https://api.minimax.io/v1/chat/completions", "minimax"),
    (MESSAGES, "https://api.minimaxi.com/anthropic/v1/messages", "minimax"),
    (CHAT, "https://api.minimax.chat/v1/chat/completions", "minimax"),
    (CHAT, "https://api.hunyuan.cloud.tencent.com/v1/chat/completions", "hunyuan"),
    (CHAT, "https://us-south.ml.cloud.ibm.com/ml/v1/text/chat?version=2025-01-01", "watsonx"),
    (CHAT, "https://api.portkey.ai/v1/chat/completions", "portkey"),
    (CHAT, "https://api.individual.githubcopilot.com/chat/completions", "github_copilot"),
    (RESPONSES, "https://api.githubcopilot.com/responses", "github_copilot"),
    (MESSAGES, "https://api.githubcopilot.com/v1/messages", "github_copilot"),
    (CHAT, "https://r.services.ai.azure.com/models/chat/completions?api-version=1", "azure_foundry"),
    (CHAT, "https://r.openai.azure.com/openai/deployments/d/chat/completions", "azure_openai"),
    (RESPONSES, "https://r.cognitiveservices.azure.com/openai/responses", "azure_openai"),
    (CONVERSE, "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse", "bedrock"),
    (CONVERSE, "https://bedrock-runtime.amazonaws.com/model/m/converse", "bedrock"),
    (CHAT, "https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1/chat/completions", "bedrock"),
    (RESPONSES, "https://bedrock-mantle.us-east-2.api.aws/v1/responses", "bedrock"),
    (GEMINI, "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/m:x",
     "vertex"),
    (MESSAGES, "https://aiplatform.googleapis.com/v1/publishers/anthropic/models/claude-sonnet-4:rawPredict", "vertex"),
    (CHAT, "https://aiplatform.googleapis.com/v1/projects/p/endpoints/openapi/chat/completions", "vertex"),
    (CHAT, "https://api.groq.com/openai/v1/chat/completions", "groq"),
    (RESPONSES, "https://api.groq.com/openai/v1/responses", "groq"),
    (CHAT, "https://api.cerebras.ai/v1/chat/completions", "cerebras"),
    (CHAT, "https://api.sambanova.ai/v1/chat/completions", "sambanova"),
    (CHAT, "https://api.studio.nebius.ai/v1/chat/completions", "nebius"),
    (CHAT, "https://api.studio.nebius.com/v1/chat/completions", "nebius"),
    (CHAT, "https://api.tokenfactory.nebius.com/v1/chat/completions", "nebius"),
    (CHAT, "https://api.together.xyz/v1/chat/completions", "together"),
    (CHAT, "https://api.together.ai/v1/chat/completions", "together"),
    (CHAT, "https://api.fireworks.ai/inference/v1/chat/completions", "fireworks"),
    (CHAT, "https://inference.generativeai.us-chicago-1.oci.oraclecloud.com/v1/chat/completions", "oci"),
    (CHAT, "https://org-acc.snowflakecomputing.com/api/v2/cortex/v1/chat/completions", "snowflake"),
    (CHAT, "https://api.venice.ai/api/v1/chat/completions", "venice"),
    (CHAT, "https://api.doubleword.ai/v1/chat/completions", "doubleword"),
    (CHAT, "https://openrouter.ai/api/v1/chat/completions", "openrouter"),
    (RESPONSES, "https://openrouter.ai/api/v1/responses", "openrouter"),
    (MESSAGES, "https://openrouter.ai/api/v1/messages", "openrouter"),
    (CHAT, "https://api.avian.io/v1/chat/completions", "avian"),
    (CHAT, "https://ai-gateway.vercel.sh/v1/chat/completions", "vercel_gateway"),
    (CHAT, "https://router.huggingface.co/together/v1/chat/completions", "hf_router"),
    (CHAT, "https://api-inference.huggingface.co/models/m/v1/chat/completions", "hf_router"),
    (CHAT, "https://integrate.api.nvidia.com/v1/chat/completions", "dynamo"),
    (OLLAMA, "https://ollama.com/api/chat", "ollama"),
    ("ollama_generate", "https://ollama.com/api/generate", "ollama"),
]


@each_row(("api", "url", "name"), HOSTS)
def test_the_address_says_who_it_is(api: str, url: str, name: str) -> None:
    chosen = choose(api, url)
    assert chosen.profile.name == name
    (seen,) = chosen.evidence
    assert seen.rule in ("profile.host", "profile.url")
    assert seen.at == At(ExchangePart.REQUEST, pointer="url")
    assert seen.note == urlsplit(url).hostname


@each_row("url", [
    "", "https://notopenai.com/v1", "https://api.openai.com.evil.example/v1", "http://[broken",
    "https://example.org/api.openai.com",
    "http://localhost:8000/v1/chat/completions", "not a url at all",
])
def test_an_unknown_address_is_generic(url: str) -> None:
    chosen = choose(CHAT, url)
    assert chosen.profile is GENERIC
    assert [seen.rule for seen in chosen.evidence] == ["profile.generic"]


def test_an_address_without_scheme_or_with_port_and_user_is_read() -> None:
    for url in ("api.groq.com/openai/v1", "https://user:secret@API.groq.com:443/openai/v1"):
        chosen = choose(CHAT, url)
        assert chosen.profile.name == "groq"
        assert "secret" not in chosen.evidence[0].note


def test_a_server_is_chosen_only_for_the_formats_that_it_speaks() -> None:
    assert choose(GEMINI, "https://api.groq.com/x").profile is GENERIC
    for api in FORMATS:
        assert choose(api).profile is GENERIC
        assert api in GENERIC.apis


# -- by headers ------------------------------------------------------------------------------------------------------

HEADERS = [
    (CHAT, "OpenAI-Version", "2020-10-01", "openai"),
    (CHAT, "openai-processing-ms", "120", "openai"),
    (MESSAGES, "anthropic-organization-id", "x", "anthropic"),
    (MESSAGES, "anthropic-ratelimit-tokens-limit", "1", "anthropic"),
    (GEMINI, "x-gemini-service-tier", "standard", "gemini"),
    (CHAT, "mistral-correlation-id", "x", "mistral"),
    (CHAT, "x-ds-trace-id", "x", "deepseek"),
    (CHAT, "apim-request-id", "x", "azure_openai"),
    (CHAT, "x-ms-deployment-name", "x", "azure_openai"),
    (CHAT, "x-groq-region", "dls", "groq"),
    (CHAT, "X-Generation-Id", "gen-1", "openrouter"),
    (CHAT, "x-inference-provider", "together", "hf_router"),
    (CHAT, "x-powered-by", "huggingface-moon", "hf_router"),
    (CHAT, "x-litellm-model-id", "x", "litellm"),
    (CHAT, "Server", "llama.cpp", "llama_cpp"),
    (CHAT, "Server", "ik_llama.cpp", "ik_llama_cpp"),
    (CHAT, "x-compute-type", "1-l4", "tgi"),
    (CHAT, "x-portkey-last-used-option-index", "config", "portkey"),
]


@each_row(("api", "header", "value", "name"), HEADERS)
def test_a_header_says_who_it_is(api: str, header: str, value: str, name: str) -> None:
    chosen = choose(api, "http://localhost:9/v1", [("content-type", "application/json"), (header, value)])
    assert chosen.profile.name == name
    assert chosen.evidence[0].rule == "profile.header"
    assert chosen.evidence[0].at == At(ExchangePart.HEADERS, pointer=header.lower())
    assert choose(api, "https://api.openai.com/v1", [(header, value)]).profile.name in ("openai", name)


@given_any(st.lists(st.sampled_from([
    b"data: 1", b"data:", b"{}", b": data: no", b"event: x", b"", b" data: no", b"data: \xe2\x80\xa8 {",
]), max_size=9), st.sampled_from([b"\n", b"\r", b"\r\n", b"\n\n"]), st.booleans())
def test_a_stream_is_known_by_its_first_two_and_its_last_three_events(
    lines: list[bytes], line_end: bytes, ended: bool
) -> None:
    events = [line for line in lines if line[:5] == b"data:" or line[:1] == b"{"]
    assert event_lines(line_end.join(lines) + line_end * ended) == events[:2] + events[2:][-3:]


@pytest.mark.parametrize(("header", "word"), [("x-litellm-call-id", Stop.UNKNOWN), ("x-other", Stop.TOOL_CALL)])
def test_litellm_closes_a_cut_call_of_a_message(header: str, word: Stop) -> None:
    """Recorded with LiteLLM 1.108.7 before Cohere, which said MAX_TOKENS over `{"to": "Ada", "amount": 125`."""
    body = (b'{"id":"chatcmpl-1","type":"message","role":"assistant","model":"m","stop_sequence":null,"content":[{'
            b'"type":"tool_use","id":"c1","name":"pay","input":{"to":"Ada","amount":125}}],"stop_reason":"end_turn"}')
    profile = choose(MESSAGES, "http://localhost:9/v1/messages", [(header, "x")], body).profile
    assert judge(decode(MESSAGES, body), None, profile).stop.normalized is word


def test_a_header_that_everyone_sends_says_nothing() -> None:
    assert choose(CHAT, "", [("server", "uvicorn"), ("x-powered-by", "Express"),
                             ("via", "1.1 google")]).profile is GENERIC


# -- by the body -----------------------------------------------------------------------------------------------------

BODIES: list[tuple[str, dict[str, Any], str, str]] = [
    (RESPONSES, {"billing": {"payer": "developer"}}, "openai", "/billing/payer"),
    (RESPONSES, {"type": "response.created", "response": {"billing": {"payer": "developer"}}}, "openai",
     "/response/billing/payer"),
    (MESSAGES, {"id": "msg_01Abc", "type": "message"}, "anthropic", "/id"),
    (MESSAGES, {"type": "message_start", "message": {"id": "msg_01Abc"}}, "anthropic", "/message/id"),
    (MESSAGES, {"id": "msg_vrtx_01Abc", "type": "message"}, "vertex", "/id"),
    (MESSAGES, {"type": "message_start", "message": {"id": "msg_vrtx_01Abc"}}, "vertex", "/message/id"),
    (CHAT, {"usage": {"prompt_cache_hit_tokens": 0}}, "deepseek", "/usage/prompt_cache_hit_tokens"),
    (CHAT, {"usage": {"num_sources_used": 0}}, "xai", "/usage/num_sources_used"),
    (CHAT, {"copilot_usage": {}, "prompt_filter_results": []}, "github_copilot", "/copilot_usage"),
    (CHAT, {"choices": [], "prompt_filter_results": []}, "azure_openai", "/prompt_filter_results"),
    (RESPONSES, {"content_filters": [{"blocked": False}]}, "azure_openai", "/content_filters"),
    (RESPONSES, {"response": {"content_filters": [{"blocked": False}]}}, "azure_openai", "/response/content_filters"),
    (CONVERSE, {"metrics": {"latencyMs": 3}, "stopReason": "end_turn"}, "bedrock", "/metrics/latencyMs"),
    (CHAT, {"x_groq": {"id": "req_1"}}, "groq", "/x_groq"),
    (CHAT, {"time_info": {}}, "cerebras", "/time_info"),
    (CHAT, {"venice_parameters": {}, "kv_transfer_params": None}, "venice", "/venice_parameters"),
    (CHAT, {"id": "gen-1754600000-AbCd"}, "openrouter", "/id"),
    (RESPONSES, {"response": {"id": "gen-1784200000-AbCd"}}, "openrouter", "/response/id"),
    (CHAT, {"id": "gen_01KK", "generationId": "gen_01KK"}, "vercel_gateway", "/generationId"),
    (CHAT, {"timings": {"predicted_n": 3}}, "llama_cpp", "/timings"),
    (CHAT, {"system_fingerprint": "b7010-c27efd2b"}, "llama_cpp", "/system_fingerprint"),
    (CHAT, {"kv_transfer_params": None}, "vllm", "/kv_transfer_params"),
    (CHAT, {"prompt_logprobs": None}, "vllm", "/prompt_logprobs"),
    (CHAT, {"system_fingerprint": "vllm-0.23.0-tp1"}, "vllm", "/system_fingerprint"),
    (CHAT, {"choices": [{"stop_reason": None}]}, "vllm", "/choices/0/stop_reason"),
    (CHAT, {"choices": [{"matched_stop": 7}]}, "sglang", "/choices/0/matched_stop"),
    (CHAT, {"nvext": {"worker_id": 1}}, "dynamo", "/nvext"),
    (CHAT, {"system_fingerprint": "2.0.1-native"}, "tgi", "/system_fingerprint"),
    (CHAT, {"system_fingerprint": "3.0.1-dev0-sha-0c1c363"}, "tgi", "/system_fingerprint"),
    (CHAT, {"usage": {"avg_compl_tok_per_sec": 9.5}}, "mistral_rs", "/usage/avg_compl_tok_per_sec"),
    (CHAT, {"choices": [{"eos_reason": "stop_token"}]}, "tabby_api", "/choices/0/eos_reason"),
    (CHAT, {"usage": {"completion_tokens_per_sec": "Indeterminate"}}, "tabby_api", "/usage/completion_tokens_per_sec"),
    (CHAT, {"usage": {"completion_tokens_per_sec": 135.1, "completion_tokens_after_first_per_sec": 203.2}}, "sambanova",
     "/usage/completion_tokens_after_first_per_sec"),
    (CHAT, {"system_fingerprint": "fp_ollama"}, "ollama", "/system_fingerprint"),
    (OLLAMA, {"message": {"content": ""}, "done": False}, "ollama", "/done"),
    (CHAT, {"stats": {}}, "lm_studio", "/stats"),
]


@each_row(("api", "body", "name", "pointer"), BODIES)
def test_a_body_gives_its_server_away(api: str, body: dict[str, Any], name: str, pointer: str) -> None:
    data = json.dumps(body).encode()
    for given in (body, data, b"data: " + data + b"\n\ndata: [DONE]\n\n", b"\xef\xbb\xbf\n" + data):
        chosen = choose(api, "http://localhost:9/v1", (), given, "some-model")
        assert chosen.profile.name == name
        assert chosen.evidence[0].rule == "profile.body"
        assert chosen.evidence[0].at == At(ExchangePart.BODY, pointer=pointer)
    assert choose(api, "http://localhost:9/v1", (), data).profile.name == name


def test_marks_in_the_last_events_of_a_stream_count_too() -> None:
    filler = b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n'
    stream = filler * 40 + b'data: {"choices":[],"timings":{"predicted_n":40}}\n\ndata: [DONE]\n\n'
    assert choose(CHAT, "", (), stream, "m").profile.name == "llama_cpp"
    lines = b'{"message":{"content":"a"},"done":false}\n{"message":{"content":""},"done":true}\n'
    assert choose(OLLAMA, "", (), lines).profile.name == "ollama"


@each_row("body", [
    None, b"", b"\x00\x01", b"{", b"[]", b"data: {", b"{}", {}, {"choices": []}, {"choices": {}},
    {"system_fingerprint": "fp_1"},
    {"id": "chatcmpl-1"}, {"system_fingerprint": None}, b'{"text":"\\"timings\\""}', b'[{"candidates":[]}]',
    {"billing": 3}, {"usage": []},
])
def test_a_body_that_says_nothing_is_generic(body: Any) -> None:
    for api in (CHAT, RESPONSES, GEMINI):
        assert choose(api, "", (), body).profile is GENERIC


def test_a_value_that_must_look_so_does_not_count_otherwise() -> None:
    assert choose(RESPONSES, "", (), {"content_filters": None}).profile is GENERIC
    assert choose(MESSAGES, "", (), {"id": "msg_abc"}).profile is GENERIC
    assert choose(CHAT, "", (), {"system_fingerprint": "b12-native"}).profile is GENERIC


@each_row(("api", "url", "name"), [
    (CHAT, "http://localhost:11434/v1/chat/completions", "ollama"),
    (MESSAGES, "http://0.0.0.0:11434/v1/messages", "ollama"),
    (RESPONSES, "http://127.0.0.1:1234/v1/responses", "lm_studio"), (CHAT, "http://[::1]:11434/v1", "ollama"),
    (CHAT, "http://localhost:23333/v1/chat/completions", "lmdeploy"),
    (MESSAGES, "http://127.0.0.1:3456/v1/messages", "claude_code_router"),
    (CHAT, "http://localhost:9997/v1/chat/completions", "xinference"),
    (MESSAGES, "http://127.0.0.1:5000/v1/messages", "text_generation_webui"),
])
def test_a_port_is_weaker_than_a_body(api: str, url: str, name: str) -> None:
    chosen = choose(api, url)
    assert (chosen.profile.name, chosen.evidence[0].rule) == (name, "profile.port")
    if api == CHAT:
        assert choose(api, url, (), {"timings": {}}).profile.name == "llama_cpp"


def test_a_model_that_only_one_server_has_is_the_last_sign() -> None:
    for given in ({"model": "mimo-v2.5-pro"}, {"body": {"model": "xiaomi/MiMo-v2"}},
                  {"body": b'data: {"model":"mimo-v2"}\n\n'}):
        chosen = choose(CHAT, "http://proxy.local/v1", **given)
        assert (chosen.profile.name, chosen.evidence[0].rule) == ("mimo", "profile.model")
    assert choose(CHAT, "http://proxy.local/v1", model="notmimo-1").profile is GENERIC
    assert choose(CHAT, "https://openrouter.ai/api/v1", model="xiaomi/mimo-v2").profile.name == "openrouter"


# -- what is known ---------------------------------------------------------------------------------------------------

P = Prefill
# Name: thinking counts under the cap, prefill, does the answer repeat it, how many known lies and a word of each.
KNOWN: dict[str, tuple[bool, Prefill, bool | None, tuple[str, ...]]] = {
    "openai": (True, P.NONE, None, ("PR#25054", "960 of 1,000")),
    "chatgpt_codex": (False, P.NONE, None, ("no output",)),
    "anthropic": (True, P.NONE, False, ("cynative",)),
    "gemini": (True, P.NONE, None, ("STOP", "index")),
    "mistral": (True, P.PREFIX, None, ("model_length", "object")),
    "deepseek": (True, P.PREFIX, None, ("/beta",)),
    "xai": (False, P.NONE, None, ("leaves out thinking", "call_id")),
    "cohere": (None, P.NONE, None, ()),
    "moonshot": (True, P.PARTIAL, False, ("inside the choice", "reasoning_content")),
    "mimo": (True, P.NONE, None, ("choices: []", "invalid arguments")),
    "zai": (True, P.NONE, None, ()),
    "dashscope": (None, P.PARTIAL, None, ("thinking off",)),
    "minimax": (None, P.NONE, None, ("zeroclaw#8931",)),
    "hunyuan": (None, P.NONE, None, ()),
    "github_copilot": (None, P.NONE, None, ("separate choices",)),
    "azure_foundry": (None, P.NONE, None, ("Grok",)),
    "azure_openai": (True, P.NONE, None, ("without delta",)),
    "bedrock": (True, P.NONE, False, ("messageStop",)),
    "vertex": (True, P.NONE, False, ()),
    "watsonx": (None, P.NONE, None, ()),
    "groq": (True, P.NONE, None, ("failed_generation",)),
    "cerebras": (True, P.NONE, None, ("dirac",)),
    "sambanova": (None, P.NONE, None, ()),
    "nebius": (None, P.NONE, None, ("dirac",)),
    "together": (None, P.NONE, None, ()),
    "fireworks": (None, P.NONE, None, ("2,000",)),
    "oci": (None, P.NONE, None, ("PR#40040",)),
    "snowflake": (None, P.NONE, None, ("empty finish_reason",)),
    "venice": (True, P.NONE, None, ()),
    "doubleword": (True, P.NONE, None, ("130 of 128",)),
    "openrouter": (None, P.NONE, None, ("native word",)),
    "avian": (None, P.NONE, None, ("OpenRouter's",)),
    "vercel_gateway": (None, P.NONE, None, ("reasoning_tokens",)),
    "hf_router": (None, P.NONE, None, ("x_groq",)),
    "litellm": (None, P.NONE, None, (
        "into stop", "pause_turn", "Gemini or Ollama", "litellm#40857", "closes cut arguments")),
    "claude_code_router": (None, P.NONE, None, ("stop_sequence", "its text")),
    "portkey": (None, P.NONE, None, ("strictOpenAiCompliance", "absent usage")),
    "ik_llama_cpp": (True, P.NONE, None, ("PR#2362", "completed")),
    "llama_cpp": (True, P.PLAIN, None, ("PR#28711", "completed", "prefill")),
    "vllm": (True, P.CONTINUE_FINAL_MESSAGE, False, ("#58228", "{}", "#47903")),
    "sglang": (True, P.NONE, None, ("index", "data frames")),
    "dynamo": (None, P.NONE, None, ("PR#13791", "PR#4723")),
    "tgi": (True, P.NONE, None, ("#2794", "empty")),
    "mistral_rs": (None, P.NONE, None, ("Responses", "Messages")),
    "tabby_api": (True, P.NONE, None, ("eos_reason", "loop_detected")),
    "xinference": (True, P.NONE, None, ("any call",)),
    "text_generation_webui": (True, P.NONE, None, ("any call",)),
    "lmdeploy": (None, P.NONE, None, ("stop_sequence",)),
    "ollama": (True, P.NONE, None, ("num_ctx", "FinishChunk", "done_reason", "ollama#15457", "Responses", "Messages")),
    "lm_studio": (None, P.NONE, None, ("context is full", "#830")),
    "generic": (None, P.NONE, None, ()),
}


@each_row("name", KNOWN)
def test_what_is_known_of_a_server(name: str) -> None:
    profile, evidence = profile_named(name)
    under_cap, prefill, echoes, lies = KNOWN[name]
    assert (profile.name, profile.reasoning_under_cap, profile.prefill, profile.echoes) == (name, under_cap, prefill,
                                                                                            echoes)
    assert len(profile.lies) == len(lies)
    for lie, word in zip(profile.lies, lies, strict=True):
        assert word in lie
        assert lie.endswith(")"), "every lie names its source"
    assert evidence[0].rule == "profile.named"
    assert profile.cap_source


def test_every_profile_is_known_and_named_once() -> None:
    assert list(PROFILES) == [profile.name for profile in SERVERS] + ["generic"]
    assert set(PROFILES) == set(KNOWN)


def test_an_unknown_name_lists_the_names() -> None:
    with pytest.raises(CallerError, match=r"unknown profile 'gpt'.*anthropic.*openrouter"):
        profile_named("gpt")


@each_row(("model", "prefill"), [
    ("claude-2.1", P.PLAIN), ("claude-instant-1.2", P.PLAIN), ("claude-3-opus-20240229", P.PLAIN),
    ("claude-3-5-haiku-latest", P.PLAIN), ("claude-3.7-sonnet", P.PLAIN), ("claude-sonnet-4-20250514", P.PLAIN),
    ("claude-sonnet-4", P.PLAIN), ("claude-opus-4-0", P.PLAIN), ("claude-opus-4-1-20250805", P.PLAIN),
    ("claude-haiku-4-5", P.PLAIN), ("claude-sonnet-4.5", P.PLAIN), ("claude-sonnet-4@20250514", P.PLAIN),
    ("claude-sonnet-4-6", P.NONE), ("claude-opus-4.6", P.NONE), ("claude-opus-4-7", P.NONE),
    ("claude-opus-4-8", P.NONE),
    ("claude-sonnet-5", P.NONE), ("claude-opus-4-10", P.NONE), ("claude-mythos-1", P.NONE), ("claude-fable", P.NONE),
    ("gpt-4o", P.NONE), (None, P.NONE),
])
def test_which_claude_takes_a_prefill(model: str | None, prefill: Prefill) -> None:
    assert choose(MESSAGES, "https://api.anthropic.com/v1/messages", model=model).profile.prefill is prefill
    aws = f"us.anthropic.{model}-v1:0" if model and model[-1].isdigit() and len(model) > 20 else model
    assert choose(CONVERSE, "https://bedrock-runtime.us-east-1.amazonaws.com/x", model=aws).profile.prefill is prefill
    assert choose(CHAT, "https://openrouter.ai/api/v1", model=model and f"anthropic/{model}").profile.prefill is prefill
    assert choose(MESSAGES, "https://aiplatform.googleapis.com/v1", model=model).profile.prefill is prefill
    assert profile_named("anthropic", model).profile.prefill is prefill


def test_the_model_is_read_from_the_body_where_the_request_is_not_known() -> None:
    url = "https://api.anthropic.com/v1/messages"
    for body in ({"model": "claude-3-opus-20240229"}, b'{"model":"claude-3-opus-20240229"}',
                 b'event: message_start\ndata: {"message":{"model":"claude-3-opus-20240229"}}\n\n'):
        assert choose(MESSAGES, url, (), body).profile.prefill is P.PLAIN
    stream = b'data: {"type":"response.created","response":{"model":"gpt-4.1-2025-04-14"}}\n\n'
    assert choose(RESPONSES, "https://api.openai.com/v1/responses", (), stream).profile.context_size == 1_047_576


@each_row(("api", "url", "model", "size"), [
    (CHAT, "https://api.openai.com/v1", "gpt-4o", 128_000), (CHAT, "https://api.openai.com/v1",
                                                             "gpt-4o-mini-2024-07-18", 128_000),
    (CHAT, "https://api.openai.com/v1", "gpt-4o-audio-preview", None),
    (CHAT, "https://api.openai.com/v1", "gpt-4.1-mini", 1_047_576),
    (CHAT, "https://api.openai.com/v1", "gpt-5", None), (CHAT, "https://api.openai.com/v1", None, None),
    (MESSAGES, "https://api.anthropic.com/v1", "claude-3-7-sonnet-20250219", 200_000),
    (MESSAGES, "https://api.anthropic.com/v1", "claude-sonnet-4-5", None),
    (CONVERSE, "https://bedrock-runtime.us-east-1.amazonaws.com/", "anthropic.claude-3-haiku-20240307-v1:0", 200_000),
    (MESSAGES, "https://aiplatform.googleapis.com/v1", "claude-3-opus@20240229", 200_000),
    (CHAT, "https://api.moonshot.ai/v1", "moonshot-v1-8k", 8_192),
    (CHAT, "https://api.moonshot.ai/v1", "moonshot-v1-32k", 32_768),
    (CHAT, "https://api.moonshot.ai/v1", "moonshot-v1-128k-vision-preview", 131_072),
])
def test_context_sizes(api: str, url: str, model: str | None, size: int | None) -> None:
    assert choose(api, url, model=model).profile.context_size == size


def test_fields_that_say_more_about_the_end() -> None:
    for profile in SERVERS:
        assert profile.native_fields[:2] == ("native_finish_reason", "eos_reason"), "routers pass these on"
    llama = profile_named("llama_cpp").profile
    assert llama.native_fields == ("native_finish_reason", "eos_reason", "stop_type")
    assert profile_named("lm_studio").profile.native_fields[2:] == ("stats.stop_reason",)
    for name in ("llama_cpp", "mistral_rs", "ollama"):
        assert profile_named(name).profile.at_cap == {RESPONSES: "completed"}
    assert profile_named("ik_llama_cpp").profile.at_cap == {
        CHAT: "stop", "openai_completions": "stop", MESSAGES: "end_turn", RESPONSES: "completed"}


# -- words -----------------------------------------------------------------------------------------------------------

WORDS = [
    ("mistral", "model_length", Stop.CONTEXT_WINDOW_EXCEEDED, None),
    ("xai", "REASON_INVALID", Stop.INTERRUPTED, None),
    ("xai", "REASON_STOP", Stop.END_TURN, None),
    ("xai", "REASON_MAX_LEN", Stop.MAX_TOKENS, None),
    ("xai", "REASON_MAX_CONTEXT", Stop.CONTEXT_WINDOW_EXCEEDED, None),
    ("xai", "REASON_TOOL_CALLS", Stop.TOOL_CALL, None),
    ("xai", "REASON_TIME_LIMIT", Stop.ERROR, "retryable"),
    ("cohere", "COMPLETE", Stop.END_TURN, None),
    ("cohere", "STOP_SEQUENCE", Stop.END_TURN, None),
    ("cohere", "TOOL_CALL", Stop.TOOL_CALL, None),
    ("cohere", "TIMEOUT", Stop.ERROR, "retryable"),
    ("cohere", "ERROR_TOXIC", Stop.SAFETY_BLOCKED, "toxic"),
    ("cohere", "ERROR_LIMIT", Stop.CONTEXT_WINDOW_EXCEEDED, None),
    ("cohere", "USER_CANCEL", Stop.CANCELLED, None),
    ("together", "eos", Stop.END_TURN, None),
    ("hf_router", "eos_token", Stop.END_TURN, None),
    ("hf_router", "stop_sequence", Stop.END_TURN, None),
    ("tgi", "eos_token", Stop.END_TURN, None),
    ("tgi", "stop_sequence", Stop.END_TURN, None),
    ("llama_cpp", "eos", Stop.END_TURN, None),
    ("llama_cpp", "limit", Stop.MAX_TOKENS, None),
    ("llama_cpp", "word", Stop.END_TURN, None),
    ("llama_cpp", "none", Stop.INTERRUPTED, None),
    ("vllm", "repetition", Stop.ERROR, "fatal"),
    ("watsonx", "time_limit", Stop.ERROR, "retryable"),
    ("watsonx", "cancelled", Stop.CANCELLED, None),
    ("openrouter", "end_turn", Stop.END_TURN, None),
    ("openrouter", "stop_sequence", Stop.END_TURN, None),
    ("openrouter", "tool_use", Stop.TOOL_CALL, None),
    ("portkey", "end_turn", Stop.END_TURN, None),
    ("portkey", "stop_sequence", Stop.END_TURN, None),
    ("portkey", "COMPLETE", Stop.END_TURN, None),
    ("portkey", "eos", Stop.END_TURN, None),
    ("portkey", "tool_use", Stop.TOOL_CALL, None),
    ("portkey", "TOOL_CALL", Stop.TOOL_CALL, None),
    ("portkey", "model_length", Stop.CONTEXT_WINDOW_EXCEEDED, None),
    ("portkey", "content_filtered", Stop.SAFETY_BLOCKED, "content_filter"),
    ("portkey", "SAFETY", Stop.SAFETY_BLOCKED, None),
    ("mistral_rs", "canceled", Stop.CANCELLED, None),
    ("tabby_api", "max_new_tokens", Stop.MAX_TOKENS, None),
    ("tabby_api", "loop_detected", Stop.ERROR, "fatal"),
    ("lmdeploy", "parse_error", Stop.MALFORMED_TOOL_CALL, None),
    ("lm_studio", "eosFound", Stop.END_TURN, None),
    ("lm_studio", "stopStringFound", Stop.END_TURN, None),
    ("lm_studio", "toolCalls", Stop.TOOL_CALL, None),
    ("lm_studio", "maxPredictedTokensReached", Stop.MAX_TOKENS, None),
    ("lm_studio", "contextLengthReached", Stop.CONTEXT_WINDOW_EXCEEDED, None),
    ("lm_studio", "userStopped", Stop.CANCELLED, None),
    ("lm_studio", "failed", Stop.ERROR, "retryable"),
    ("lm_studio", "modelUnloaded", Stop.ERROR, "retryable"),
]


@each_row(("name", "word", "stop", "detail"), WORDS)
def test_a_word_of_its_own(name: str, word: str, stop: Stop, detail: str | None) -> None:
    body = {"object": "chat.completion", "choices": [{"index": 0, "message": {"content": "x"}, "finish_reason": word}]}
    data = json.dumps(body).encode()
    reason = decode(CHAT, data, words=profile_named(name).profile.words).stop_reason
    assert (reason.normalized, reason.raw) == (stop, word)
    assert (reason.detail or "").partition(":")[0] == (detail or "")
    assert decode(CHAT, data).stop_reason.normalized is Stop.UNKNOWN
    row = native_word(word)
    assert row is not None
    assert row.stop is stop


def test_the_signs_in_a_models_name_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def searches() -> int:
        searched = []
        monkeypatch.setattr(profiles.re, "search", lambda pattern, text: searched.append(text))
        choose(CHAT, "", (), None, "a-model-of-this-test")
        return len(searched)

    first, again = searches(), searches()
    assert first > again


def test_no_word_is_without_a_test_or_a_source() -> None:
    own = {(profile.name, word) for profile in SERVERS for word in profile.words}
    assert own == {(name, word.casefold()) for name, word, *_ in WORDS}
    assert all(row.source for profile in SERVERS for row in profile.words.values())


@each_row(("word", "stop"), [
    # Seen as native_finish_reason in recorded traffic of a router:
    ("stop", Stop.END_TURN), ("completed", Stop.END_TURN), ("end_turn", Stop.END_TURN), ("STOP", Stop.END_TURN),
    ("tool_calls", Stop.TOOL_CALL), ("tool_use", Stop.TOOL_CALL), ("length", Stop.MAX_TOKENS),
    ("max_output_tokens", Stop.MAX_TOKENS), ("MAX_TOKENS", Stop.MAX_TOKENS), ("content_filter", Stop.SAFETY_BLOCKED),
    # One that only the second half of a word of Responses has, and one of each further format:
    ("max_messages", Stop.MAX_TOKENS), ("incomplete", Stop.INTERRUPTED), ("pause_turn", Stop.PAUSED),
    ("MALFORMED_FUNCTION_CALL", Stop.MALFORMED_TOOL_CALL), ("safety", Stop.SAFETY_BLOCKED),
    ("guardrail_intervened", Stop.SAFETY_BLOCKED), ("malformed_tool_use", Stop.MALFORMED_TOOL_CALL),
    ("load", Stop.UNKNOWN),
    # What Gemini's OpenAI-compatible endpoint says, passed on by a router:
    ("function_call_filter: MALFORMED_FUNCTION_CALL", Stop.MALFORMED_TOOL_CALL),
    ("content_filter: PROHIBITED_CONTENT", Stop.SAFETY_BLOCKED),
])
def test_a_native_word_is_read_through_all_tables(word: str, stop: Stop) -> None:
    row = native_word(word)
    assert row is not None
    assert row.stop is stop


def test_a_native_word_that_no_table_has() -> None:
    assert native_word("tired") is None
    assert native_word("") is None


@pytest.mark.parametrize("word", ["none", "None", "null"])
def test_a_native_word_that_was_not_there(word: str) -> None:
    """A router writes so that there was none; llama.cpp's own `none` says that nothing stopped it."""
    answer = ChatResponse(api=CHAT, native={"native_finish_reason": word})
    assert native_reading(answer, PROFILES["openrouter"]) is None


def test_every_word_of_every_format_is_read_and_never_more_loosely() -> None:
    loose = {Stop.END_TURN, Stop.TOOL_CALL, Stop.UNKNOWN}
    for api in FORMATS:
        for word, row in wire(api).stop_reasons.items():
            read = native_word(word.upper())
            assert read is not None
            assert read.stop is row.stop or read.stop not in loose, word


def test_choosing_imports_no_format() -> None:
    code = ("import sys; from loop_core.wire.profiles import choose, profile_named; choose('openai_chat', 'https://api.groq.com');"
            "profile_named('vllm'); choose('openai_chat', '', (), b'{\"timings\":1}');"
            "print([m for m in sys.modules if m.startswith('loop_core.wire.') and m.count('.') > 2])")
    root = str(Path(__file__).resolve().parents[2])
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                         env={**os.environ, "PYTHONPATH": root})
    assert ran.stdout.strip() == "[]"


# -- recorded traffic ------------------------------------------------------------------------------------------------

RECORDED = {
    "api.openai.com": "openai", "RESOURCE.openai.azure.com": "azure_openai",
    "RESOURCE.services.ai.azure.com": "azure_foundry",
    "RESOURCE.cognitiveservices.azure.com": "azure_openai", "ai-gateway.vercel.sh": "vercel_gateway",
    "api.avian.io": "avian",
    "api.cerebras.ai": "cerebras", "api.deepseek.com": "deepseek", "api.doubleword.ai": "doubleword",
    "api.githubcopilot.com": "github_copilot", "api.groq.com": "groq", "api.mistral.ai": "mistral",
    "api.together.ai": "together",
    "api.together.xyz": "together", "api.venice.ai": "venice", "api.x.ai": "xai", "api.z.ai": "zai",
    "chatgpt.com": "chatgpt_codex",
    "myorg-myaccount.snowflakecomputing.com": "snowflake", "ollama.com": "ollama", "openrouter.ai": "openrouter",
    "router.huggingface.co": "hf_router", "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "gemini",
    "us-east5-aiplatform.googleapis.com": "vertex", "aiplatform.googleapis.com": "vertex",
    "bedrock-runtime.us-east-1.amazonaws.com": "bedrock", "bedrock-mantle.us-east-2.api.aws": "bedrock",
    "api.inference.crusoecloud.com": "vllm",  # known by its body
}


def test_recorded_hosts_have_their_profiles() -> None:
    root = Path(os.environ.get("LOOP_INSPECTOR_CORPUS", Path(__file__).resolve().parents[3] / "shared" / "corpus"))
    if not (root / "har").is_dir():
        pytest.skip("the corpus of recorded traffic is not here")
    seen: dict[str, set[str]] = {}
    for api in FORMATS:
        for path in sorted((root / "har" / api).glob("*.har")):
            for entry in json.loads(path.read_text(encoding="utf-8"))["log"]["entries"]:
                host = urlsplit(entry["request"]["url"]).netloc
                content = entry["response"]["content"]
                body = (content.get("text") or "").encode() if content.get("encoding") != "base64" else b""
                headers = [(header["name"], header["value"]) for header in entry["response"]["headers"]]
                seen.setdefault(host, set()).add(choose(api, entry["request"]["url"], headers, body).profile.name)
    for host, name in RECORDED.items():
        assert seen[host] == {name}, host
    assert seen["localhost:11434"] == {"ollama"}
    assert "llama_cpp" in seen["localhost:8080"]


@given_any(st.lists(st.sampled_from([b"data: 1", b"event: x", b": ping", b"", b"x"]), max_size=12),
       st.sampled_from([b"\n", b"\r", b"\r\n"]), st.sampled_from([b"\n", b"\r"]))
def test_the_lines_of_events_are_the_first_two_and_the_last_three(lines: list[bytes], one: bytes, other: bytes) -> None:
    body = b"".join(line + (one if number % 3 else other) for number, line in enumerate(lines))
    events = [line for line in re.split(rb"[\r\n]+", body) if line.startswith(b"data:")]
    found = event_lines(body)
    assert found[:2] == events[:2]
    assert found[2:] == events[max(2, len(events) - 3):]


def test_what_is_known_of_a_server_cites_no_notes_that_a_reader_cannot_have():
    for profile in SERVERS:
        assert not [lie for lie in profile.lies if "continuation notes" in lie]
    assert "DeepSeek API docs" in PROFILES["deepseek"].lies[0]
    assert "continuedev/continue#11806" in PROFILES["moonshot"].lies[1]
