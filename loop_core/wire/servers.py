"""The known servers, one row each: their addresses, how they are recognised, and how they differ from others.

Data only; `profiles` reads it. Each fact has its source; "recorded" means seen in recorded traffic. A server of which
only the address is known has no row, and gets the generic profile.
"""

from __future__ import annotations

from collections.abc import Mapping

from loop_core.formats import FORMATS
from loop_core.values import Stop
from loop_core.wire.failures import StopRow
from loop_core.wire.format import Prefill, Profile, mark

CHAT, RESPONSES, MESSAGES = "openai_chat", "openai_responses", "anthropic_messages"
GEMINI, CONVERSE, OLLAMA = "gemini_generate", "bedrock_converse", "ollama_chat"
COHERE, COMPLETIONS, COMPLETE = "cohere_chat", "openai_completions", "anthropic_complete"
GENERATE, INVOKE = "ollama_generate", "bedrock_invoke"

_UNKNOWN = "not documented, not recorded"
_UPSTREAM = "depends on the provider behind it"

CLAUDE = (
    # Up to 4.5 an assistant message at the end is continued; from 4.6 on it is refused with HTTP 400.
    (r"(?i)claude-(?:instant|v?2|3(?:[.-][57])?-)", Prefill.PLAIN),
    (r"(?i)claude-(?:haiku|sonnet|opus)-4(?:[.-][015])?(?=$|[@:]|-\d{8}|-latest|-v\d)", Prefill.PLAIN),
)
"""Patterns of the Claude models that accept a prefill (litellm's supports_assistant_prefill; claude-code#52433)."""

CLAUDE_CONTEXTS = ((r"claude-3(?:[.-][57])?-", 200_000),)

_TGI = "huggingface_hub 2.4.0 inference/_generated/types/text_generation.py:88"

TGI_WORDS: Mapping[str, StopRow] = dict.fromkeys(("eos_token", "stop_sequence"), StopRow(Stop.END_TURN, None, _TGI))

_XAI = "xai-sdk 1.21.0 proto/v6/sample_pb2.pyi"
_WATSONX = "@ibm-cloud/watsonx-ai 1.7.16 vml_v1 TextChatResultChoice.FinishReason"
_PORTKEY = "@portkey-ai/gateway 1.15.2 providers/utils.ts: the provider's word where strictOpenAiCompliance is false"
_LLAMA = "llama.cpp PR#10722: stop_type"
_LM_STUDIO = "lmstudio-js LLMPredictionStopReason; stats.stop_reason of its REST API v0"
_LMDEPLOY = "lmdeploy 0.18.0 serve/openai/protocol.py"
_OPENROUTER = "Claude's words, until 2025-01-23: openrouter.ai/announcements/standardized-finish-reasons"
_TABBY = "theroyallab/tabbyAPI@e632af4 backends/exllamav3/model.py: eos_reason"
_MISTRAL_RS = "EricLBuehler/mistral.rs@9e92262 mistralrs-core/src"


SERVERS: tuple[Profile, ...] = (
    # -- providers of their own models ---------------------------------------------------------------------------
    Profile(
        "openai", (CHAT, RESPONSES), hosts=("api.openai.com",), headers=("openai-version", "openai-processing-ms"),
        body=(mark("billing", "payer"), mark("response", "billing", "payer")),
        reasoning_under_cap=True, cap_source="recorded: 16 of 16 tokens, all of them thinking, under length",
        cap_field="max_completion_tokens",  # reasoning models refuse max_tokens (openai 3.54.0, deprecated)
        contexts=((r"^gpt-4o(?:-mini)?(?:-\d{4}|$)", 128_000), (r"^gpt-4\.1(?:-|$)", 1_047_576)),
        lies=("reports stop for complete calls when tool_choice names a function (vLLM PR#25054)",
              "an incomplete response may report fewer tokens than its cap (recorded: 960 of 1,000)"),
    ),
    Profile(
        "chatgpt_codex", (RESPONSES,), hosts=("chatgpt.com",), reasoning_under_cap=False, cap_source="takes no cap",
        lies=("the last event holds no output; only the events before it do (recorded)",),
    ),
    Profile(
        "anthropic", (MESSAGES,), hosts=("api.anthropic.com",), headers=("anthropic-*",),
        body=(mark("id", like=r"^msg_01"), mark("message", "id", like=r"^msg_01")),
        reasoning_under_cap=True, cap_source="Anthropic: thinking counts towards max_tokens",
        prefill_models=CLAUDE, echoes=False, contexts=CLAUDE_CONTEXTS,
        lies=("a call that is cut in a whole body is a parsed but incomplete object (cynative PR#283)",),
    ),
    Profile(
        "gemini", (GEMINI, CHAT), headers=("x-gemini-service-tier",),
        hosts=("generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com"),  # the second: Code Assist
        reasoning_under_cap=True, cap_source="hindsight#3365: 478 of thinking and 18 of text under a cap of 500",
        lies=("STOP is the word for calls too (google-genai 3.4.0)",
              "the OpenAI-compatible endpoint leaves out index in calls (openai-python#2806)"),
    ),
    Profile(
        "mistral", (CHAT,), hosts=("api.mistral.ai", "codestral.mistral.ai"), headers=("mistral-correlation-id",),
        words={"model_length": StopRow(Stop.CONTEXT_WINDOW_EXCEEDED, None, "mistralai 3.7.0 ChatCompletionChoice")},
        reasoning_under_cap=True, cap_source="usage does not split thinking off, and recorded caps are met exactly",
        prefill=Prefill.PREFIX,
        stream_usage=False,  # 422, and usage is always sent (openai-agents-python#442, anon-kode#53)
        lies=("model_length is only in the enum of whole responses (mistralai 3.7.0)",
              "arguments may be an object instead of a string (mistralai 3.7.0 functioncall.py)"),
    ),
    Profile(
        "deepseek", (CHAT, RESPONSES, MESSAGES), hosts=("api.deepseek.com",), headers=("x-ds-trace-id",),
        body=(mark("usage", "prompt_cache_hit_tokens"),),
        reasoning_under_cap=True, cap_source="recorded: 16 of 16 tokens, all of them thinking, under length",
        prefill=Prefill.PREFIX,
        lies=("prefix: true works only under the base URL that ends in /beta "
              "(DeepSeek API docs, Chat Prefix Completion)",),
    ),
    Profile(
        "xai", (CHAT, RESPONSES), hosts=("api.x.ai",), body=(mark("usage", "num_sources_used"),),
        words={
            "reason_invalid": StopRow(Stop.INTERRUPTED, None, f"{_XAI}: not finished"),
            "reason_stop": StopRow(Stop.END_TURN, None, _XAI),
            "reason_max_len": StopRow(Stop.MAX_TOKENS, None, _XAI),
            "reason_max_context": StopRow(Stop.CONTEXT_WINDOW_EXCEEDED, None, _XAI),
            "reason_tool_calls": StopRow(Stop.TOOL_CALL, None, _XAI),
            "reason_time_limit": StopRow(Stop.ERROR, "retryable: time limit, the output is partial", _XAI),
        },
        reasoning_under_cap=False,
        cap_source="recorded: completed with 113 tokens, 110 of them thinking, under a cap of 16",
        lies=("completion_tokens leaves out thinking in chat completions (recorded)",
              "call_id is empty for searches that it runs itself (recorded)"),
    ),
    Profile(
        "cohere", (CHAT,), hosts=("api.cohere.com", "api.cohere.ai"), cap_source=_UNKNOWN,
        words={
            "complete": StopRow(Stop.END_TURN, None, "cohere 7.3.1 types/chat_finish_reason.py"),
            "stop_sequence": StopRow(Stop.END_TURN, None, "cohere 7.3.1 types/chat_finish_reason.py"),
            "tool_call": StopRow(Stop.TOOL_CALL, None, "cohere 7.3.1 types/chat_finish_reason.py"),
            "timeout": StopRow(Stop.ERROR, "retryable: timeout", "cohere 7.3.1 types/chat_finish_reason.py"),
            "error_toxic": StopRow(Stop.SAFETY_BLOCKED, "toxic", "cohere 7.3.1 types/finish_reason.py (v1)"),
            "error_limit": StopRow(Stop.CONTEXT_WINDOW_EXCEEDED, None, "cohere 7.3.1 types/finish_reason.py (v1)"),
            "user_cancel": StopRow(Stop.CANCELLED, None, "cohere 7.3.1 types/finish_reason.py (v1)"),
        },
    ),
    Profile(
        "moonshot", (CHAT, MESSAGES), hosts=("api.moonshot.ai", "api.moonshot.cn", "api.kimi.com"),
        reasoning_under_cap=True, cap_source="hermes-agent PR#13168: thinking shares the output budget",
        prefill=Prefill.PARTIAL, echoes=False,
        contexts=((r"^moonshot-v1-8k", 8_192), (r"^moonshot-v1-32k", 32_768), (r"^moonshot-v1-128k", 131_072)),  # named
        lies=("usage stands inside the choice while it streams (pi-ai openai-completions.js)",
              "with thinking on, refuses a history whose calls lack reasoning_content (continuedev/continue#11806)"),
    ),
    Profile(
        "mimo", (CHAT, MESSAGES), hosts=("xiaomimimo.com",), models=(r"(?i)^(?:xiaomi/)?mimo-",),
        reasoning_under_cap=True,
        cap_source="Zoo Code's analysis: of a cap of 100, thinking left 55 tokens for the call",
        lies=("a stream that meets its cap ends with choices: [] and no finish_reason at all (Zoo-Code#425)",
              "refuses a history with invalid arguments, however often it is sent (DeepSeek-Reasonix#9566)"),
    ),
    Profile(
        "zai", (CHAT, MESSAGES), hosts=("api.z.ai", "open.bigmodel.cn"), reasoning_under_cap=True,
        cap_source="immich-video-memory-generator#923: 140 of 140 tokens, all of them thinking; litellm-docs PR#559",
    ),
    Profile(
        "dashscope", (CHAT, RESPONSES, MESSAGES), hosts=("aliyuncs.com",),
        cap_source="max_tokens leaves it out, max_completion_tokens counts it (help.aliyun.com model-studio/qwen-api)",
        prefill=Prefill.PARTIAL,
        lies=("partial: true works only with thinking off (help.aliyun.com model-studio/partial-mode)",),
    ),
    Profile(
        "minimax", (CHAT, MESSAGES), hosts=("api.minimax.io", "api.minimaxi.com", "api.minimax.chat"),
        cap_source=_UNKNOWN,
        lies=("refuses a history with invalid arguments, however often it is sent (zeroclaw#8931)",),
    ),
    Profile("hunyuan", (CHAT, MESSAGES), hosts=("hunyuan.cloud.tencent.com",), cap_source=_UNKNOWN),
    # -- clouds that serve the models of others ------------------------------------------------------------------
    Profile(
        "github_copilot", (CHAT, RESPONSES, MESSAGES), hosts=("githubcopilot.com",), body=(mark("copilot_usage"),),
        cap_source=_UPSTREAM, lies=("text and calls come in separate choices (zeroclaw PR#2136)",),
    ),
    Profile(
        "azure_foundry", (CHAT, RESPONSES, MESSAGES), hosts=("services.ai.azure.com",), cap_source=_UPSTREAM,
        lies=("Grok behind it counts thinking apart from completion_tokens (recorded for api.x.ai)",),
    ),
    Profile(
        "azure_openai", (CHAT, RESPONSES), hosts=("openai.azure.com", "cognitiveservices.azure.com"),
        headers=("x-ms-deployment-name", "apim-request-id"),
        body=(mark("prompt_filter_results"), mark("content_filters", like=r"^\["),
              mark("response", "content_filters", like=r"^\[")),
        reasoning_under_cap=True, cap_source="serves OpenAI's models by their rules",
        cap_field="max_completion_tokens",
        lies=("begins with choices: [] and sends choices without delta (openai-python#1677, langchain#18977)",),
    ),
    Profile(
        "bedrock", (CONVERSE, CHAT, RESPONSES),
        urls=(r"^bedrock-(?:runtime|mantle)\b[^/]*\.(?:amazonaws\.com|api\.aws)\b",),
        body=(mark("metrics", "latencyMs"),),
        reasoning_under_cap=True, cap_source="Anthropic on Bedrock: the thinking budget is part of maxTokens",
        prefill_models=CLAUDE, echoes=False, contexts=CLAUDE_CONTEXTS,
        lies=("a stream may end without messageStop (litellm#32686, hermes-agent#109988, pi#4210)",),
    ),
    Profile(
        "vertex", (GEMINI, MESSAGES, CHAT), urls=(r"^(?:[^/]*[.-])?aiplatform\.googleapis\.com",),
        body=(mark("id", like=r"^msg_vrtx_"), mark("message", "id", like=r"^msg_vrtx_")),
        reasoning_under_cap=True, cap_source="as the model's own provider: Gemini and Claude count it",
        prefill_models=CLAUDE, echoes=False, contexts=CLAUDE_CONTEXTS,
    ),
    Profile(
        "watsonx", (CHAT,), hosts=("ml.cloud.ibm.com",), cap_source=_UNKNOWN,
        words={
            "time_limit": StopRow(Stop.ERROR, "retryable: time limit, the output is partial", _WATSONX),
            "cancelled": StopRow(Stop.CANCELLED, None, _WATSONX),
        },
    ),
    Profile(
        "groq", (CHAT, RESPONSES), hosts=("api.groq.com",), headers=("x-groq-*",), body=(mark("x_groq"),),
        reasoning_under_cap=True, cap_source="a write-up on dev.to of empty answers whose budget went into thinking",
        lies=("a call that its parser cannot read becomes an HTTP 400 with failed_generation (Groq error codes)",),
    ),
    Profile(
        "cerebras", (CHAT,), hosts=("api.cerebras.ai",), body=(mark("time_info"),), reasoning_under_cap=True,
        cap_source="cerebras-cloud-sdk 1.67.0 completion_create_params.py: visible and reasoning tokens",
        lies=("later pieces of a call have another index and no id (dirac PR#215)",),
    ),
    Profile(  # before TabbyAPI, which has another of these rates (sambanova/ai-starter-kit)
        "sambanova", (CHAT,), hosts=("api.sambanova.ai",),
        body=(mark("usage", "completion_tokens_after_first_per_sec"),), cap_source=_UNKNOWN,
    ),
    Profile(
        "nebius", (CHAT,), hosts=("studio.nebius.ai", "studio.nebius.com", "tokenfactory.nebius.com"),
        cap_source=_UNKNOWN, lies=("later pieces of a call have another index and no id (dirac PR#215)",),
    ),
    Profile(
        "together", (CHAT,), hosts=("api.together.xyz", "api.together.ai"), cap_source=_UNKNOWN,
        words={"eos": StopRow(Stop.END_TURN, None, "together 3.1.1 types/chat/chat_completion.py:17")},
    ),
    Profile(
        "fireworks", (CHAT, RESPONSES, MESSAGES), hosts=("api.fireworks.ai",), cap_source=_UNKNOWN,
        lies=("cuts at 2,000 tokens where the request sets no cap (docs.fireworks.ai FAQ)",),
    ),
    Profile(
        "oci", (CHAT,), hosts=("oci.oraclecloud.com",), cap_source=_UNKNOWN,
        lies=("every piece of a call has another id, and an empty name (litellm PR#40040)",),
    ),
    Profile(
        "snowflake", (CHAT, MESSAGES), hosts=("snowflakecomputing.com",), cap_source=_UNKNOWN,
        lies=("sends an empty finish_reason and a call without a name (recorded)",),
    ),
    Profile(
        "venice", (CHAT,), hosts=("api.venice.ai",), body=(mark("venice_parameters"),),
        reasoning_under_cap=True, cap_source="recorded: 16 of 16 tokens, all of them thinking, under length",
    ),
    Profile(
        "doubleword", (CHAT,), hosts=("api.doubleword.ai",), reasoning_under_cap=True,
        cap_source="recorded: 128 of 128 tokens, all of them thinking, under length",
        lies=("may report more reasoning_tokens than completion_tokens (recorded: 130 of 128)",),
    ),
    # -- routers -------------------------------------------------------------------------------------------------
    Profile(
        "openrouter", (CHAT, RESPONSES, MESSAGES), hosts=("openrouter.ai",), headers=("x-generation-id",),
        body=(mark("id", like=r"^gen-\d{10}-"), mark("response", "id", like=r"^gen-\d{10}-")),
        cap_source=f"{_UPSTREAM}; a cap under 16 is raised for OpenAI's models (recorded: 16 tokens under a cap of 1)",
        prefill_models=CLAUDE,
        words={**dict.fromkeys(("end_turn", "stop_sequence"), StopRow(Stop.END_TURN, None, _OPENROUTER)),
               "tool_use": StopRow(Stop.TOOL_CALL, None, _OPENROUTER)},
        lies=("reports tool_calls for a cut call; its native word says length (recorded; hermes-agent PR#7693)",),
    ),
    Profile(
        "avian", (CHAT,), hosts=("api.avian.io",), cap_source=_UPSTREAM,
        lies=("its ids look like OpenRouter's, and so does its native_finish_reason (recorded)",),
    ),
    Profile(
        "vercel_gateway", (CHAT, RESPONSES, MESSAGES), hosts=("ai-gateway.vercel.sh",), body=(mark("generationId"),),
        cap_source=_UPSTREAM, lies=("may report more reasoning_tokens than completion_tokens (recorded)",),
    ),
    Profile(
        "hf_router", (CHAT, RESPONSES), hosts=("router.huggingface.co", "api-inference.huggingface.co"),
        headers=("x-inference-provider", "x-powered-by=huggingface-moon"), words=TGI_WORDS, cap_source=_UPSTREAM,
        lies=("says what the provider behind it says, whose marks its answers keep (recorded: Groq's x_groq)",),
    ),
    Profile(
        "litellm", (CHAT, RESPONSES, MESSAGES), headers=("x-litellm-*",), cap_source=_UPSTREAM,
        mends_calls=(MESSAGES,),
        lies=("turns unknown and absent words, all of Cohere's, and some errors into stop (seen with LiteLLM 1.108.7)",
              "turns pause_turn into stop (seen with LiteLLM 1.108.7) or length (LiteLLM 1.109.1)",
              "reports tool_calls for a cut answer of Gemini or Ollama that holds any call (LiteLLM 1.109.1)",
              "the Messages endpoint reports max_tokens for a filter (seen with 1.108.7), or end_turn (litellm#40857)",
              "the Messages endpoint closes cut arguments, or sends {} in their place (seen with LiteLLM 1.108.7)"),
    ),
    Profile(
        "claude_code_router", (MESSAGES,), ports=(3456,), cap_source=_UPSTREAM,  # its default port
        lies=("reports end_turn for every end of Gemini and of Responses, stop_sequence for a filter (seen with 2.0.0)",
              "makes a cut call an object around its text; the usage of a stream is 0 (seen with 2.0.0)"),
    ),
    Profile(
        "portkey", (CHAT, RESPONSES, MESSAGES), hosts=("api.portkey.ai",), headers=("x-portkey-*",),
        cap_source=_UPSTREAM,
        words={
            **dict.fromkeys(("end_turn", "stop_sequence", "complete", "eos"), StopRow(Stop.END_TURN, None, _PORTKEY)),
            **dict.fromkeys(("tool_use", "tool_call"), StopRow(Stop.TOOL_CALL, None, _PORTKEY)),
            "model_length": StopRow(Stop.CONTEXT_WINDOW_EXCEEDED, None, _PORTKEY),
            "content_filtered": StopRow(Stop.SAFETY_BLOCKED, "content_filter", _PORTKEY),
            "safety": StopRow(Stop.SAFETY_BLOCKED, None, _PORTKEY),
        },
        lies=("unless strictOpenAiCompliance is false, refusals, pauses and failures are stop (seen with 1.15.2)",
              "turns absent words of Anthropic, Cohere and Gemini into stop, absent usage into 0 (seen with 1.15.2)"),
    ),
    # -- servers that anyone runs --------------------------------------------------------------------------------
    Profile(
        "ik_llama_cpp", (CHAT, RESPONSES, MESSAGES, COMPLETIONS), headers=("server=ik_llama.cpp",),
        reasoning_under_cap=True, cap_source="n_predict counts every token that is generated",
        at_cap={CHAT: "stop", MESSAGES: "end_turn", COMPLETIONS: "stop", RESPONSES: "completed"},
        lies=("reported stop, end_turn and tool_calls for a cut at the cap before PR#2362 (ikawrakow/ik_llama.cpp)",
              "the Responses endpoint reports completed for every end (ik_llama.cpp examples/server/server-task.cpp)"),
    ),
    Profile(
        "llama_cpp", (CHAT, RESPONSES, MESSAGES), headers=("server=llama.cpp",),
        body=(mark("timings"), mark("system_fingerprint", like=r"^b\d+-[0-9a-f]+$")),  # number and commit of a build
        words={
            **dict.fromkeys(("eos", "word"), StopRow(Stop.END_TURN, None, _LLAMA)),
            "limit": StopRow(Stop.MAX_TOKENS, None, _LLAMA),
            "none": StopRow(Stop.INTERRUPTED, None, _LLAMA),
        },
        reasoning_under_cap=True, cap_source="n_predict counts every token that is generated", prefill=Prefill.PLAIN,
        native_fields=("native_finish_reason", "eos_reason", "stop_type"), at_cap={RESPONSES: "completed"},
        lies=("length also means that the context was full, an indentation or a time limit (llama.cpp PR#28711)",
              "the Responses endpoint reports completed for a cut at max_output_tokens (seen with SmolLM2, two builds)",
              "a whole answer repeats the prefill, a stream does or does not by its build (seen with SmolLM2)"),
    ),
    Profile(
        "vllm", (CHAT, RESPONSES, MESSAGES),
        body=(mark("kv_transfer_params"), mark("prompt_logprobs"), mark("system_fingerprint", like=r"^vllm-"),
              mark("choices", 0, "stop_reason")),  # beside finish_reason: the stop string or token
        words={"repetition": StopRow(Stop.ERROR, "fatal: the output repeats itself", "vllm v1/engine/__init__.py")},
        reasoning_under_cap=True, cap_source="max_tokens counts every token that is generated",
        prefill=Prefill.CONTINUE_FINAL_MESSAGE, echoes=False,
        lies=("reports tool_calls for a call that max_tokens cut (vLLM #53269, #9053, #58228)",
              "may turn a cut call into arguments {} (vLLM PR#46303)",
              "may leave the markup of a call in the text of a whole answer (vLLM #47903)"),
    ),
    Profile(
        # beside finish_reason: the stop string or token
        "sglang", (CHAT, RESPONSES), body=(mark("choices", 0, "matched_stop"),),
        reasoning_under_cap=True, cap_source="max_new_tokens counts every token that is generated",
        lies=("leaves out index in calls (wire notes)", "reports errors as data frames under HTTP 200 (wire notes)"),
    ),
    Profile(
        "dynamo", (CHAT, RESPONSES), hosts=("integrate.api.nvidia.com",), body=(mark("nvext"),), cap_source=_UNKNOWN,
        lies=("reported tool_calls for a cut call before PR#13791 (ai-dynamo/dynamo)",
              "gave parallel calls the same index before PR#4723 (ai-dynamo/dynamo)"),
    ),
    Profile(
        "tgi", (CHAT,), headers=("x-compute-type",),
        body=(mark("system_fingerprint", like=r"^\d+\.\d+\.\d+[\w.-]*-(?:native|sha-)"),),  # version, kind of build
        words=TGI_WORDS, reasoning_under_cap=True, cap_source="max_new_tokens counts every token that is generated",
        lies=("tool_calls may be an object instead of a list (TGI #2794)", "the id of a call is empty (wire notes)"),
    ),
    Profile(
        "mistral_rs", (CHAT, RESPONSES, MESSAGES), body=(mark("usage", "avg_compl_tok_per_sec"),), cap_source=_UNKNOWN,
        words={"canceled": StopRow(Stop.CANCELLED, None, f"{_MISTRAL_RS}/sequence.rs StopReason")},
        at_cap={RESPONSES: "completed"},
        lies=("the Responses endpoint reports completed for every end (mistralrs-server-core/src/responses.rs)",
              "the Messages endpoint reports end_turn for a failure (mistralrs-server-core/src/anthropic.rs)"),
    ),
    Profile(
        "tabby_api", (CHAT,), body=(mark("choices", 0, "eos_reason"), mark("usage", "completion_tokens_per_sec")),
        words={
            "max_new_tokens": StopRow(Stop.MAX_TOKENS, None, _TABBY),
            "loop_detected": StopRow(Stop.ERROR, "fatal: the output repeats itself", _TABBY),
        },
        reasoning_under_cap=True, cap_source="max_new_tokens counts every token that is generated",
        lies=("reports tool_calls for every answer that holds a call; eos_reason says max_new_tokens "
              "(tabbyAPI endpoints/OAI/utils/chat_completion.py)",
              "reports stop for a loop; eos_reason says loop_detected (tabbyAPI backends/exllamav3/model.py)"),
    ),
    Profile(
        "xinference", (CHAT, MESSAGES), ports=(9997,),  # its default port
        reasoning_under_cap=True, cap_source="max_tokens counts every token that is generated",
        lies=("reports tool_calls for a cut answer that holds any call (xinference 4.1.0 model/llm/utils.py)",),
    ),
    Profile(
        "text_generation_webui", (CHAT, MESSAGES), ports=(5000,),  # its default port
        reasoning_under_cap=True, cap_source="max_new_tokens counts every token that is generated",
        lies=("reports tool_calls for a cut answer that holds any call "
              "(oobabooga/text-generation-webui@1dcde41 modules/api/completions.py)",),
    ),
    Profile(
        "lmdeploy", (CHAT, MESSAGES), ports=(23333,), cap_source="max_new_tokens counts every token that is generated",
        words={"parse_error": StopRow(Stop.MALFORMED_TOOL_CALL, None, _LMDEPLOY)},
        lies=("the Messages endpoint reports stop_sequence for a failure and an abort "
              "(lmdeploy 0.18.0 serve/anthropic/adapter.py)",),
    ),
    Profile(
        "ollama", (OLLAMA, CHAT, RESPONSES, MESSAGES), hosts=("ollama.com",), ports=(11434,),  # its default port
        body=(mark("system_fingerprint", like=r"^fp_ollama$"), mark("done")),
        reasoning_under_cap=True, cap_source="num_predict counts every token that is generated",
        at_cap={RESPONSES: "completed"},
        lies=("length also means that num_ctx was full (TradingAgents#168)",
              "streamed chat completions report stop for an absent done_reason (ollama openai/openai.go FinishChunk)",
              "an absent done_reason means that the runner lost its connection (ollama llm/server.go)",
              "parallel calls have the same index 0 in chat completions (ollama#15457)",
              "the Responses endpoint reports completed for every end (ollama openai/responses.go)",
              "the Messages endpoint reports tool_use for a cut answer that holds any call "
              "(ollama anthropic/anthropic.go mapStopReason)"),
    ),
    Profile(
        "lm_studio", (CHAT, RESPONSES, COMPLETIONS), ports=(1234,), body=(mark("stats"),),  # its default port
        words={
            **dict.fromkeys(("eosfound", "stopstringfound"), StopRow(Stop.END_TURN, None, _LM_STUDIO)),
            "toolcalls": StopRow(Stop.TOOL_CALL, None, _LM_STUDIO),
            "maxpredictedtokensreached": StopRow(Stop.MAX_TOKENS, None, _LM_STUDIO),
            "contextlengthreached": StopRow(Stop.CONTEXT_WINDOW_EXCEEDED, None, _LM_STUDIO),
            "userstopped": StopRow(Stop.CANCELLED, None, _LM_STUDIO),
            **dict.fromkeys(("failed", "modelunloaded"), StopRow(Stop.ERROR, "retryable: server failure", _LM_STUDIO)),
        },
        native_fields=("native_finish_reason", "eos_reason", "stats.stop_reason"), cap_source="runs several engines",
        lies=("ends without finish_reason when the context is full (vaadin/flow-components b88af58)",
              "the id of a call is empty, or new in every piece (LM Studio#830)"),
    ),
)
"""The profiles of all known servers. If several fit equally well, the first one in this order counts."""

GENERIC = Profile("generic", tuple(FORMATS), cap_source="an unknown server")
"""The profile that is used for every server without a row."""
