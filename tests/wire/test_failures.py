"""Errors as providers word them: every shape of body, every mark, and what may be tried again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from loop_core.values import At, Evidence, ProviderError, Quota, Stop, StopReason
from loop_core.wire import FORMATS, decode
from loop_core.wire.failures import classify, keep_earlier, read_error
from tests.scenes.rows import each_row


def error_body(message: Any, kind: str | None = None, code: Any = None) -> dict[str, Any]:
    """The shape of OpenAI and of most others."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


# -- shapes ----------------------------------------------------------------------------------------------------------


@each_row(("body", "status", "message", "kind", "code"), [
    (error_body("No.", "not_found_error", "model_not_found"), 404, "No.", "not_found_error", "model_not_found"),
    ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, 529,
     "Overloaded", "overloaded_error", None),
    ({"error": {"code": 429, "message": "Quota", "status": "RESOURCE_EXHAUSTED"}}, 429,
     "Quota", "RESOURCE_EXHAUSTED", "429"),
    ([{"error": {"code": 503, "message": "Busy", "status": "UNAVAILABLE"}}], 503, "Busy", "UNAVAILABLE", "503"),
    ({"error": "model 'x' not found"}, 404, "model 'x' not found", None, None),
    ({"error": "Model is overloaded", "error_type": "overloaded"}, None, "Model is overloaded", "overloaded", None),
    ({"message": "Too many", "__type": "ThrottlingException"}, 400, "Too many", "ThrottlingException", None),
    ({"Message": "no access"}, 403, "no access", None, None),
    ({"object": "error", "message": "vLLM's own", "type": "BadRequestError", "code": 400}, None,
     "vLLM's own", "BadRequestError", "400"),
    ({"error": {"message": "Filtered", "code": "content_filter",
                "innererror": {"code": "ResponsibleAIPolicyViolation"}}}, 400,
     "Filtered", None, "content_filter ResponsibleAIPolicyViolation"),
    ({"error": {"metadata": {"raw": "upstream said no"}, "code": 502}}, 502, "upstream said no", None, "502"),
    ({"detail": "Not Found"}, 404, "Not Found", None, None),
    ({"errors": [{"code": "model_not_supported", "message": "no such model"}], "trace": "t", "status_code": 404}, 404,
     "no such model", None, "model_not_supported"),
    ({"success": False, "errors": [{"code": 5021, "message": "too large"}]}, 413, "too large", None, "5021"),
    ({"errors": ["no"]}, 400, '["no"]', None, None),
    ({"type": "error", "message": {"type": "api_error", "message": "The server failed."}}, None,
     "The server failed.", "api_error", None),
    ({"choices": None, "base_resp": {"status_code": 1004, "status_msg": "login fail"}}, None,
     "login fail", "base_resp:1004", "1004"),
    ("<html>Bad Gateway</html>", 502, "<html>Bad Gateway</html>", None, None),
    ({}, 500, "{}", None, None),
    (None, 500, "", None, None),
])
def test_an_error_is_read_in_every_shape(
    body: Any, status: int | None, message: str, kind: str | None, code: str | None
) -> None:
    found = read_error(body, status)
    assert found is not None
    assert (found.message, found.type, found.code) == (message, kind, code)


@each_row("body", [
    {}, {"choices": []}, {"error": None}, {"message": {"role": "assistant"}}, [], "text", None,
    {"base_resp": {"status_code": 0, "status_msg": ""}}, {"base_resp": {}}, {"base_resp": "x"},
    {"error": {}}, {"error": {"message": "", "type": "", "param": None, "code": 0}},
])
def test_what_reports_no_error_is_none_under_a_good_status(body: Any) -> None:
    assert read_error(body, 200) is None
    assert read_error(body) is None


UNSET = {"message": "", "type": "", "param": "", "code": None}
"""What a gateway writes that fills in every field of its answer."""


@each_row(("api", "body"), [
    ("openai_chat", {"choices": [{"index": 0, "message": {"content": "Done."}, "finish_reason": "stop"}]}),
    ("anthropic_messages",
     {"type": "message", "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}),
    ("cohere_chat", {"message": {"content": [{"type": "text", "text": "Done."}]}, "finish_reason": "COMPLETE"}),
    ("openai_responses", {"status": "completed", "output": [
        {"type": "message", "status": "completed", "content": [{"type": "output_text", "text": "Done."}]}]}),
    ("ollama_chat", {"message": {"role": "assistant", "content": "Done."}, "done": True, "done_reason": "stop"}),
])
def test_an_error_that_says_nothing_does_not_fail_an_answer(api: str, body: dict[str, Any]) -> None:
    answer = decode(api, json.dumps({**body, "error": UNSET}).encode())
    assert (answer.error, answer.text, answer.stop_reason.normalized) == (None, "Done.", Stop.END_TURN)
    failed = decode(api, json.dumps({**body, "error": UNSET}).encode(), http_status=500)
    assert failed.stop_reason.normalized is Stop.ERROR


@each_row(("api", "event"), [
    ("openai_responses", {"type": "error"}),
    ("anthropic_messages", {"type": "error", "error": {}}),
    ("gemini_interactions", {"event_type": "error", "error": {}}),
    ("openai_chat", {"object": "error", "message": ""}),
])
def test_an_event_of_an_error_is_one_whatever_it_says(api: str, event: dict[str, Any]) -> None:
    assert decode(api, b"data: " + json.dumps(event).encode() + b"\n\n").error is not None


STREAMS = {
    "openai_chat": {"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]},
    "anthropic_messages": {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    "gemini_generate": {"candidates": [{"index": 0, "content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]},
    "openai_responses": {"type": "response.completed", "response": {"status": "completed", "output": []}},
    "cohere_chat": {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}},
    "gemini_interactions": {"event_type": "interaction.completed", "interaction": {"status": "completed"}},
}


@each_row("api", STREAMS)
@each_row(("data", "message"), [
    (b"data: connection reset by peer\n", "connection reset by peer"), (b'data: "upstream"\n', "upstream"),
    (b"data: one\ndata: two\n", "one\ntwo"),
])
def test_an_event_named_error_is_one_in_plain_text_too(api: str, data: bytes, message: str) -> None:
    said = b"data: " + json.dumps(STREAMS[api]).encode() + b"\n\n"
    assert decode(api, said).error is None
    for body in (said + b"event: error\n" + data + b"\n", said + b"event: error\r\n" + data.replace(b"\n", b"\r\n")):
        found = decode(api, body)
        assert found.error is not None
        assert (found.error.message, found.stop_reason.normalized) == (message, Stop.ERROR)


def test_the_end_mark_is_no_error_whatever_its_name() -> None:
    said = b"data: " + json.dumps(STREAMS["openai_chat"]).encode() + b"\n\nevent: error\ndata: [DONE]\n\n"
    found = decode("openai_chat", said)
    assert (found.error, found.saw_done) == (None, True)


@pytest.mark.parametrize(("api", "event"), [
    ("openai_responses", {"type": "response.later.failed", "error": None}),
    ("anthropic_messages", {"type": "ping", "error": None}),
    ("gemini_interactions", {"event_type": "step.later", "error": None}),
])
def test_an_event_with_an_empty_field_for_errors_is_none(api: str, event: dict[str, Any]) -> None:
    assert decode(api, b"data: " + json.dumps(event).encode() + b"\n\n").error is None


def test_a_body_that_is_odd_in_every_field_is_still_read() -> None:
    found = read_error({"error": {"message": ["a"], "type": {"x": 1}, "code": "\u00b2"}}, 400)
    assert found == ProviderError('["a"]', None, "\u00b2", False)
    assert read_error({"error": {"code": "9" * 5000}}, None) is not None


# -- marks -----------------------------------------------------------------------------------------------------------

FILTER, CONTEXT = Stop.SAFETY_BLOCKED, Stop.CONTEXT_WINDOW_EXCEEDED


@each_row(("body", "stop", "detail", "rule"), [
    (error_body("Filtered.", None, "content_filter"), FILTER, "prompt", "error.content_filter"),
    (error_body("The response was filtered due to the prompt triggering Azure OpenAI's content management policy."),
     FILTER, "prompt", "error.content_filter"),
    (error_body("Refused.", None, "content_policy_violation"), FILTER, "policy", "error.policy"),
    (error_body("Refused.", None, "image_content_policy_violation"), FILTER, "policy", "error.policy"),
    (error_body("Refused.", None, "bio_policy"), FILTER, "policy", "error.policy"),
    (error_body("Refused.", None, "cyber_policy"), FILTER, "policy", "error.policy"),
    (error_body("Refused.", "cyber_policy"), FILTER, "policy", "error.policy"),
    (error_body("Refused.", None, "misalignment_policy_violation"), FILTER, "policy", "error.policy"),
    ({"base_resp": {"status_code": 1026, "status_msg": "x"}}, FILTER, "sensitive", "error.sensitive"),
    ({"base_resp": {"status_code": 1027, "status_msg": "x"}}, FILTER, "sensitive", "error.sensitive"),
    (error_body("The guardrail intervened."), FILTER, "guardrail", "error.guardrail"),
    (error_body("Request blocked by the guardrail."), FILTER, "guardrail", "error.guardrail"),
    (error_body("Too long.", "invalid_request_error", "context_length_exceeded"), CONTEXT, "input",
     "error.context_code"),
    (error_body("Too long.", "exceed_context_size_error", 400), CONTEXT, "input", "error.context_code"),
    (error_body("This model's maximum context length is 4096 tokens."), CONTEXT, "input", "error.context_maximum"),
    (error_body("The request exceeds the available context size, try increasing it"), CONTEXT, "input",
     "error.context_maximum"),
    (error_body("You requested 4096 output tokens. However, the model's context length is only 4096 tokens."), CONTEXT,
     "input", "error.context_maximum"),
    (error_body("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000"), CONTEXT, "input",
     "error.context_maximum"),
    (error_body("prompt is too long: 250000 tokens > 200000 maximum"), CONTEXT, "input", "error.prompt_too_long"),
    ({"message": "Input is too long for requested model."}, CONTEXT, "input", "error.prompt_too_long"),
    (error_body("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."), CONTEXT,
     "input", "error.prompt_too_long"),
    ({"message": "Input Tokens Exceeded: Number of input tokens exceeds maximum length."}, CONTEXT, "input",
     "error.prompt_too_long"),
    ({"error_type": "TOO_MANY_TOKENS", "message": "too many tokens: size limit exceeded by 9 tokens."}, CONTEXT,
     "input", "error.prompt_too_long"),
    (error_body("All messages together are too long.", "too_many_prompt_tokens", 400), CONTEXT, "input",
     "error.prompt_too_long"),
    (error_body("prompt too long; exceeded max context length by 9 tokens"), CONTEXT, "input", "error.context_maximum"),
])
def test_an_error_that_names_a_filter_or_the_context_is_that(body: Any, stop: Stop, detail: str, rule: str) -> None:
    found = read_error(body, 400)
    assert found is not None
    assert classify(found) == (stop, detail, rule)


DASHSCOPE = "<400> InternalError.Algo.DataInspectionFailed: Input text data may contain inappropriate content."


@each_row(("status", "body", "stop", "rule"), [
    (400, error_body("Output blocked by content filtering policy", "invalid_request_error"), FILTER, "answer_filter"),
    (200, error_body("Output data may contain inappropriate content.", None, "data_inspection_failed"), FILTER,
     "answer_filter"),
    (400, error_body("The output text may contain it.", "BadRequest", "OutputTextSensitiveContentDetected"), FILTER,
     "answer_filter"),
    (500, error_body("output new_sensitive (1027)", "api_error"), FILTER, "answer_filter"),  # MiniMax
    (400, error_body("Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
                     "invalid_request_error", "invalid_prompt"), FILTER, "policy"),
    (400, error_body("Invalid prompt: we've limited access to this content for safety reasons.",
                     "invalid_request_error", "invalid_prompt"), FILTER, "policy"),
    (403, {"code": "The caller does not have permission to execute the specified operation", "error":
           "Content violates usage guidelines. Model: grok-4, Failed check: SAFETY_CHECK_TYPE_BIO"}, FILTER, "policy"),
    (400, error_body("litellm.ContentPolicyViolationError: AzureException - x", None, "400"), FILTER, "policy"),
    (400, error_body(DASHSCOPE, "invalid_request_error"), FILTER, "moderation"),
    (400, error_body("Input refused.", "data_inspection_failed"), FILTER, "moderation"),
    (400, {"code": "DataInspectionFailed", "message": "Input refused.", "request_id": "r"}, FILTER, "moderation"),
    (400, error_body("Content Exists Risk", "invalid_request_error"), FILTER, "moderation"),
    (400, {"detail": "Content Exists Risk"}, FILTER, "moderation"),
    (400, error_body("系统检测到输入或生成内容可能包含不安全或敏感内容", None, "1301"), FILTER, "moderation"),
    (400, error_body("System detected potentially unsafe or sensitive content in input or generation.", None, "1301"),
     FILTER, "moderation"),
    (400, error_body("The input text is refused.", "BadRequest", "SensitiveContentDetected"), FILTER, "moderation"),
    (403, error_body("The model requires moderation, and your input was flagged", None, 403), FILTER, "moderation"),
    (403, {"error": {"code": 403, "message": "Input requires moderation", "metadata": {
        "reasons": ["violence"], "flagged_input": "…", "provider_name": "x"}}}, FILTER, "moderation"),
    (403, {"error": {"code": 403, "message": "Refused", "metadata": {"error_type": "content_policy_violation"}}},
     FILTER, "policy"),
    (500, error_body("input new_sensitive (1026)", "api_error"), FILTER, "sensitive"),
    (400, error_body({"error": "Violated guardrail policy", "lakera": {}}, "None", "400"), FILTER, "guardrail"),
    (446, error_body("The guardrail checks defined in the config failed.", "hooks_failed"), FILTER, "guardrail"),
    (424, {"success": False, "errors": [{"code": 2016, "message": "Prompt blocked due to security configurations"}]},
     FILTER, "guardrail"),
    (400, error_body("Blocked by Model Armor Floor Setting.", "INVALID_ARGUMENT", 400), FILTER, "guardrail"),
    (400, error_body("litellm.ContextWindowExceededError: litellm.BadRequestError: x"), CONTEXT, "context_code"),
    (400, error_body("Too many.", None, "model_max_prompt_tokens_exceeded"), CONTEXT, "context_code"),
    (413, {"errors": [{"code": 5021, "message": "AiError: The estimated number of input and maximum output tokens "
                       "(9000) exceeded this model context window limit (7968)."}]}, CONTEXT, "context_maximum"),
    (400, error_body("The decoder prompt (length 40000) is longer than the maximum model length of 32768."), CONTEXT,
     "context_maximum"),
    (400, {"error": "The number of tokens to keep from the prompt is greater than the context length."}, CONTEXT,
     "context_maximum"),
    (400, error_body("invalid params, context window exceeds limit (2013)"), CONTEXT, "context_maximum"),
    (422, {"error": "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000"}, CONTEXT,
     "context_maximum"),
    (422, {"error": "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 and 500"}, CONTEXT,
     "context_maximum"),
    (400, {"errors": [{"code": "invalid_input_argument", "message": "the number of input tokens 5000 cannot exceed the "
                       "total tokens limit 4096 for this model"}]}, CONTEXT, "prompt_too_long"),
    (400, {"message": "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292."},
     CONTEXT, "prompt_too_long"),
    (400, {"code": "Client specified an invalid argument", "error":
           "This model's maximum prompt length is 131072 but the request contains 537812 tokens."}, CONTEXT,
     "prompt_too_long"),
    (400, error_body("prompt token count of 135355 exceeds the limit of 128000"), CONTEXT, "prompt_too_long"),
    (400, error_body("Prompt exceeds max length", None, "1261"), CONTEXT, "prompt_too_long"),
    (400, error_body("Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)"), CONTEXT,
     "prompt_too_long"),
    (400, error_body("Range of input length should be [1, 129024]"), CONTEXT, "prompt_too_long"),
    (400, error_body("Please reduce the length of the messages or completion."), CONTEXT, "prompt_too_long"),
])
def test_the_words_of_other_providers_for_a_filter_or_the_context(
    status: int, body: Any, stop: Stop, rule: str
) -> None:
    found = read_error(body, status)
    assert found is not None
    detail = {"answer_filter": "content_filter"}.get(rule, "input" if stop is CONTEXT else rule)
    assert classify(found) == (stop, detail, f"error.{rule}")


@each_row("said", [
    "Range of max_tokens should be [1, 8192]", "The answer exceeds the limit of 60 requests per minute",
    "max_tokens must be at least 1, got -5.", "Sensitive parameter `temperature` is out of range",
    "Your account was flagged", "Model length is not a number",
])
def test_a_message_with_similar_words_is_neither(said: str) -> None:
    found = read_error(error_body(said, "invalid_request_error"), 400)
    assert found is not None
    assert classify(found) == (Stop.ERROR, "fatal", "error.reported")


def test_any_other_error_is_an_error() -> None:
    found = read_error(error_body("The content of your filter function is invalid.", "invalid_request_error"), 400)
    assert found is not None
    assert classify(found) == (Stop.ERROR, "fatal", "error.reported")
    for limit in ("Too many tokens, please wait before trying again.",
                  "The number of input tokens exceeds your rate limit per minute."):
        throttled = read_error({"message": limit}, 429)
        assert throttled is not None
        assert classify(throttled) == (Stop.ERROR, "retryable", "error.reported")


# -- what may be tried again -----------------------------------------------------------------------------------------


@each_row("word", [
    "server_error", "rate_limit_exceeded", "vector_store_timeout",  # OpenAI Responses
    "rate_limit_error", "overloaded_error", "api_error", "timeout_error",  # Anthropic
    "internal_server_error", "too_many_requests", "service_unavailable", "overloaded",
    "InternalServerException", "ModelStreamErrorException", "ThrottlingException", "ServiceUnavailableException",
    "ModelTimeoutException", "ModelNotReadyException", "InternalServerError",  # Bedrock, vLLM
    "UNAVAILABLE", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", "INTERNAL",  # Gemini
    "server_is_overloaded", "slow_down", "service_unavailable_error",  # the Codex endpoint, inside a 200
    "server_overloaded", "flex_unavailable", "connection_failed", "request_timeout", "internal_error",  # openai 3.54.0
    "conflict_error", "memory_path_conflict_error",  # anthropic 2.12.0, HTTP 409
    "base_resp:1000", "base_resp:1001", "base_resp:1002", "base_resp:1024", "base_resp:1033",
])
def test_a_word_that_says_try_again(word: str) -> None:
    """In the middle of a stream, where no HTTP status tells."""
    for body in (error_body("x", word), error_body("x", None, word)):
        found = read_error(body)
        assert found is not None
        assert found.retryable
        assert classify(found)[:2] == (Stop.ERROR, "retryable")


@pytest.mark.parametrize(("code", "retryable"), [(1002, True), (1004, False)])
def test_an_error_of_minimax_stands_in_a_field_of_every_answer(code: int, retryable: bool) -> None:
    failed = {"id": "x", "choices": None, "model": "m", "base_resp": {"status_code": code, "status_msg": "why"}}
    cut = {"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": None}]}
    stream = b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in (cut, failed))
    for data in (json.dumps(failed).encode(), stream):
        response = decode("openai_chat", data, http_status=200)
        assert response.error is not None
        assert (response.error.message, response.error.retryable) == ("why", retryable)
        assert response.stop_reason.normalized is Stop.ERROR
    fine = {**cut["choices"][0], "message": {"content": "Hi"}, "finish_reason": "stop"}
    clean = decode("openai_chat", json.dumps({"choices": [fine], "base_resp": {"status_code": 0}}).encode())
    assert (clean.error, clean.stop_reason.normalized) == (None, Stop.END_TURN)


@each_row("place", ["message_start", "message", "message_delta", "ping", None])
@each_row("code", [0, 1002])
def test_an_error_of_minimax_stands_in_any_event_of_a_stream_of_messages(place: str | None, code: int) -> None:
    report = {"base_resp": {"status_code": code, "status_msg": "why"}}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "m", **(report if place == "message" else {})}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "ping"},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    events = [{**event, **report} if event["type"] == place else event for event in events]
    events[-1:-1] = [report] if place is None else []
    stream = b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events)
    response = decode("anthropic_messages", stream, http_status=200)
    assert (response.error is not None, response.stop_reason.normalized) == (
        (True, Stop.ERROR) if code else (False, Stop.END_TURN))
    assert [found.rule for found in response.findings] == [], code


@each_row("word", ["invalid_request_error", "not_found_error", "INVALID_ARGUMENT", "AccessDenied"])
def test_a_word_that_does_not(word: str) -> None:
    found = read_error(error_body("x", word))
    assert found is not None
    assert classify(found)[:2] == (Stop.ERROR, "fatal")


@each_row("word", [
    # openai 3.54.0 types/responses/response_error.py, types/beta/session_turn_error.py; the quota of its 429
    "insufficient_quota", "invalid_prompt", "data_residency_mismatch", "invalid_image", "invalid_image_format",
    "invalid_base64_image", "invalid_image_url", "image_too_large", "image_too_small", "image_parse_error",
    "invalid_image_mode", "image_file_too_large", "unsupported_image_media_type", "empty_image_file",
    "failed_to_download_image", "image_file_not_found", "max_output_tokens", "session_budget_exceeded",
    "usage_limit_exceeded", "project_spend_limit_exceeded", "organization_spend_limit_exceeded",
    "organization_usage_limit_exceeded", "billing_not_active", "credit_balance_exhausted", "authentication_error",
    "invalid_request", "resource_not_found", "sandbox_error", "executor_version_incompatible",
    "active_turn_not_steerable",
    # anthropic 2.12.0 types/shared/error_type.py
    "invalid_request_error", "billing_error", "permission_error", "not_found_error", "memory_precondition_failed_error",
    # botocore 1.44.5 bedrock-runtime
    "AccessDeniedException", "ResourceNotFoundException", "ValidationException", "ModelErrorException",
])
def test_a_word_that_says_that_sending_it_again_changes_nothing(word: str) -> None:
    """Under a status that would be tried again; a failure of the server itself still is."""
    for body in (error_body("x", word), error_body("x", None, word)):
        found, broken = read_error(body, 429), read_error(body, 503)
        assert found is not None
        assert not found.retryable
        assert broken is not None
        assert broken.retryable


@each_row("word", [
    "api_error", "server_error", "INTERNAL", "internal_error", "internal_server_error", "InternalServerError",
    "InternalServerException",
])
def test_a_word_for_a_failure_of_the_server_yields_to_a_status_that_finds_fault_with_the_request(word: str) -> None:
    """As a gateway writes one word over every error, such as `api_error` over a 400 and a 401."""
    for body in (error_body("x", word), error_body("x", None, word)):
        again = {status: (read_error(body, status) or ProviderError("")).retryable for status in (400, 401, 429, 500)}
        assert again == {400: False, 401: False, 429: True, 500: True}
    assert (read_error(error_body("x", "api_error", "slow_down"), 400) or ProviderError("")).retryable


@pytest.mark.parametrize("api", ["openai_chat", "gemini_generate"])
def test_an_event_that_is_named_an_error_has_no_status_of_its_own(api: str) -> None:
    response = decode(api, b'event: error\ndata: {"message": "It broke.", "type": "server_error"}\n\n', http_status=200)
    assert response.error is not None
    assert (response.error.message, response.stop_reason.detail) == ("It broke.", "retryable")


def test_a_word_that_says_try_again_outranks_one_that_does_not() -> None:
    found = read_error(error_body("x", "invalid_request_error", "rate_limit_exceeded"), 400)
    assert found is not None
    assert found.retryable


@each_row(("api", "event"), [
    ("openai_responses", {"type": "error", "sequence_number": 1, "error": {
        "type": "service_unavailable_error", "code": "server_is_overloaded", "message": "Busy."}}),
    ("openai_responses", {"type": "error", "code": "slow_down", "message": "Busy.", "sequence_number": 1}),
    ("openai_responses", {"type": "response.failed", "response": {"id": "r", "object": "response", "status": "failed",
                                                                  "error": {"code": "slow_down", "message": "Busy."}}}),
    ("openai_chat", {"error": {"code": "server_is_overloaded", "message": "Busy."}}),
    ("openai_chat", {"error": "Busy.", "error_type": "overloaded"}),
    ("anthropic_messages", {"type": "error", "error": {"type": "overloaded_error", "message": "Busy."}}),
])
def test_an_overload_inside_a_stream_may_be_tried_again(api: str, event: dict[str, Any]) -> None:
    response = decode(api, b"data: " + json.dumps(event).encode() + b"\n\n", http_status=200)
    assert response.stop_reason.normalized is Stop.ERROR
    assert (response.stop_reason.detail or "").startswith("retryable")
    assert response.error is not None
    assert response.error.retryable
    assert response.error.message == "Busy."


@each_row("status", [408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529])
def test_a_status_that_says_try_again(status: int) -> None:
    for found in (read_error(error_body("x"), status), read_error(error_body("x", None, status)),
                  read_error(error_body("x", None, str(status)))):
        assert found is not None
        assert found.retryable


@each_row("status", [400, 401, 403, 404, 413, 422, 501])
def test_a_status_that_does_not(status: int) -> None:
    found = read_error(error_body("x", None, 503), status)
    assert found is not None
    assert not found.retryable, "the status outranks a number in the body"


@each_row("api", FORMATS)
def test_every_format_reports_an_http_error_as_one(api: str) -> None:
    response = decode(api, b'{"error": {"message": "slow down", "type": "rate_limit_error"}}', http_status=429)
    assert response.stop_reason.normalized is Stop.ERROR
    assert (response.stop_reason.detail or "").startswith("retryable")
    assert response.error is not None
    assert response.error.message == "slow down"
    assert response.tool_calls == ()


# -- rate limits -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("headers", [
    {"x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "59", "x-ratelimit-limit-tokens": "9000",
     "x-ratelimit-remaining-tokens": "8900", "x-ratelimit-reset-tokens": "6m0s"},  # OpenAI
    {"anthropic-ratelimit-requests-limit": "60", "anthropic-ratelimit-requests-remaining": "59",
     "anthropic-ratelimit-tokens-limit": "9000", "anthropic-ratelimit-tokens-remaining": "8900",
     "anthropic-ratelimit-tokens-reset": "6m0s"},
])
def test_the_headers_of_a_rate_limit_are_its_quota(headers: dict[str, str]) -> None:
    sent = [(name.title(), value) for name, value in headers.items()]
    assert decode("openai_chat", b"{}", headers=sent).quota_metadata == Quota(
        60, 59, 9000, 8900, "6m0s", headers=headers)


def test_the_headers_that_are_a_standard_count_requests_and_what_is_no_number_stays_as_it_came() -> None:
    headers = {"ratelimit-limit": "60", "ratelimit-remaining": "few", "ratelimit-reset": "30", "retry-after": "5"}
    assert decode("openai_chat", b"{}", headers=list(headers.items())).quota_metadata == Quota(
        60, reset="30", retry_after="5", headers=headers)
    assert decode("openai_chat", b"{}", headers=[("RateLimit-Remaining", "59")]).quota_metadata == Quota(
        remaining_requests=59, headers={"ratelimit-remaining": "59"})


@pytest.mark.parametrize("value", ["\u00b2", "\u0663", pytest.param("4" * 5_000, id="endless"), "-1", "1e3", ""])
def test_a_header_that_is_no_whole_number_stays_as_it_came(value: str) -> None:
    """A byte 0xb2 in a header is read as a superscript, which is a digit and no number."""
    headers = {"x-ratelimit-remaining-tokens": value}
    assert decode("openai_chat", b"{}", headers=list(headers.items())).quota_metadata == Quota(headers=headers)
    assert decode("openai_chat", b"{}", headers=[("x-request-id", "r")]).quota_metadata is None


# -- two words -------------------------------------------------------------------------------------------------------


@each_row("earlier", list(Stop))
def test_a_clean_word_takes_back_only_what_lost_nothing(earlier: Stop) -> None:
    clean = StopReason(Stop.END_TURN, "STOP", None, (Evidence("table", At()),))
    before = StopReason(earlier, "BEFORE", None, (Evidence("table", At(start=3, end=11)),))
    found = keep_earlier(clean, (before, clean), "earlier")
    taken_back = earlier in (Stop.END_TURN, Stop.TOOL_CALL, Stop.UNKNOWN, Stop.PAUSED)
    assert found.normalized is (Stop.END_TURN if taken_back else earlier)
    assert [seen.note for seen in found.evidence if seen.rule == "earlier"] == ([] if taken_back else ["BEFORE"])
