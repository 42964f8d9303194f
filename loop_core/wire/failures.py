"""Reads the errors that providers report: an error body of any shape becomes a `ProviderError` and a mapped stop
reason.

Shapes and marks are tables. The reason is `error` unless the message names a content filter or the context length.
Whether an error is retryable follows from its type and code, else from the HTTP status. The later sections map stop
words to reasons, keep a failure that a later word would hide, and read rate-limit headers into a `Quota` (ZeroClaw RFI
2309 `quota_metadata`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from loop_core.errors import DecodeError
from loop_core.json_parser import repeated_members
from loop_core.values import (
    FINISHED,
    WORDLESS,
    At,
    Evidence,
    ExchangePart,
    Finding,
    ProviderError,
    Quota,
    Stop,
    StopReason,
)
from loop_core.wire.body import compact

MOST_OF_A_RULE = 100
"""The largest number of findings of one rule that are kept. An endless stream may hold a million unknown events."""


class Findings(list[Finding]):
    """The findings about one body: each message of a rule once, and at most `MOST_OF_A_RULE` of each rule."""

    def __init__(self) -> None:
        super().__init__()
        self._messages: dict[str, set[str]] = {}

    def note(self, found: Finding) -> None:
        """Adds a finding that is new."""
        messages = self._messages.setdefault(found.rule, set())
        if found.message not in messages and len(messages) < MOST_OF_A_RULE:
            messages.add(found.message)
            self.append(found)


def repetitions(where: str, payload: bytes) -> Iterator[str]:
    """The message about each member that an object of a JSON text names twice, with two values."""
    for name, before, value in repeated_members(payload):
        if before is not None and compact(before, sort=True) != compact(value, sort=True):
            yield f"a {where} has the key {name[:40]!r} twice, with two values"


def no_body(api: str) -> DecodeError:
    """The error about bytes that are not a body of any format."""
    return DecodeError("the body begins with neither JSON nor an event stream", api=api, expected="`{`, `[` or `data:`")


_JSON_MARKS = (b"{", b"}", b'"', b"[[")
"""A frame without these marks is a word, such as `ping` or `[HEARTBEAT]`, and no part of an answer."""


def unreadable_frame(payload: bytes, last: bool) -> tuple[str, str]:
    """The rule and the message of the finding about a frame that is not JSON; `last`: nothing follows it."""
    if last:
        return "frame.cut", "the last frame is cut"
    if any(mark in payload for mark in _JSON_MARKS):
        return "frame.invalid", "a frame is not valid JSON"
    return "frame.no_json", "a frame is a word that is not JSON"


def frame_without_members(payload: bytes) -> tuple[str, str]:
    """The rule and the message of the finding about a frame that is JSON and no object. If an object stands in it, an
    event was sent that no client reads."""
    if b"{" in payload:
        return "frame.invalid", "a frame is a list or a text, and an object stands in it"
    return "frame.no_object", "a frame is not a JSON object"


class ErrorMark(NamedTuple):
    """A row: a pattern that is searched in an error's code, type and message, and the stop reason that it means."""

    rule: str
    pattern: str
    """The regular expression. It is compiled when the first error is classified, since most answers hold no error."""
    stop: Stop
    detail: str
    source: str


MARKS: tuple[ErrorMark, ...] = (
    ErrorMark("error.answer_filter", r"output blocked by content filter|output (text )?data may contain inappropriate|"
              r"output_?text_?sensitive|output new_sensitive", Stop.SAFETY_BLOCKED, "content_filter",
              "Anthropic, DashScope, Volcengine and MiniMax: of the answer, not of the prompt"),
    ErrorMark("error.content_filter", r"content_filter|content filter|content management policy|ResponsibleAIPolicy",
              Stop.SAFETY_BLOCKED, "prompt", "Azure OpenAI; openai-python#1677"),
    ErrorMark("error.policy",
              r"\b((bio|cyber)_policy|misalignment_policy_violation|(image_)?content_policy_violation)\b|"
              r"ContentPolicyViolationError|flagged as potentially violating our usage policy|"
              r"limited access to this content for safety reasons|content violates usage guidelines",
              Stop.SAFETY_BLOCKED, "policy",
              "OpenAI Responses error codes and invalid_prompt (codex#7250); LiteLLM; xAI (inspect_ai PR#2267)"),
    ErrorMark("error.moderation", r"data_?inspection_?failed|may contain inappropriate content|content exists risk|"
              r"unsafe or sensitive content|不安全或敏感内容|sensitive_?content_?detected|your input was flagged|"
              r"\bflagged_input\b", Stop.SAFETY_BLOCKED, "moderation",
              "DashScope (qwen-code#3145); DeepSeek (awesome-deepseek-integration#13); Z.AI (zai-org/feedback#516);"
              " Volcengine; OpenRouter error codes: 403"),
    ErrorMark("error.sensitive", r"base_resp:102[67]\b|new_sensitive", Stop.SAFETY_BLOCKED, "sensitive",
              "platform.minimax.io api-reference/errorcode: 1026 for the prompt, 1027 for the answer"),
    ErrorMark("error.guardrail", r"guardrail(s)? (intervened|blocked)|blocked by .{0,20}guardrail|"
              r"violated guardrail policy|guardrail checks .{0,40}failed|blocked due to security configurations|"
              r"blocked by model armor",
              Stop.SAFETY_BLOCKED, "guardrail", "Bedrock; Groq; Portkey; LiteLLM; Cloudflare AI Gateway; Vertex"),
    ErrorMark("error.context_code", r"context_length_exceeded|context_window_exceeded|exceed_context_size|"
              r"ContextWindowExceededError|model_max_prompt_tokens_exceeded",
              Stop.CONTEXT_WINDOW_EXCEEDED, "input",
              "OpenAI error code; llama.cpp exceed_context_size_error; LiteLLM; GitHub Copilot"),
    ErrorMark("error.context_maximum", r"maximum context length|"
              r"context (window|length|size) (is |was )?(exceeded|full)|context (window|length|size) is only \d|"
              r"exceed(s|ed)? (the |this )?(model'?s? )?(available |max(imum)? )?context (window|length|size|limit)|"
              r"longer than the (model'?s context|maximum model length)|greater than the context length|"
              r"context window exceeds limit|`inputs` (must have less than|tokens \+ `max_new_tokens` must be)",
              Stop.CONTEXT_WINDOW_EXCEEDED, "input",
              "OpenAI, vLLM, LM Studio, Ollama, Anthropic, Cloudflare, MiniMax and TGI messages"),
    ErrorMark("error.prompt_too_long", r"(prompt|input|request) is too long|input token count .{0,40}exceeds|"
              r"exceeds? the maximum number of tokens|too many (input )?tokens in (the )?(prompt|request)|"
              r"number of input tokens (exceeds max|\d+ cannot exceed)|too_many_prompt_tokens|"
              r"too many tokens: (size limit|total number of tokens in the prompt)|maximum prompt length is \d|"
              r"prompt token count of \d+ exceeds|prompt exceeds max length|exceeded model token limit|"
              r"range of input length should be|reduce the length of the messages",
              Stop.CONTEXT_WINDOW_EXCEEDED, "input",
              "Anthropic, Bedrock, Gemini, Cohere, watsonx, xAI, Copilot, Z.AI, Kimi, DashScope and Groq messages; "
              "Perplexity's type of an error"),
)

# The statuses that the SDKs of OpenAI and Anthropic retry (408, 409, 429 and 5xx), of 5xx only temporary ones; 425 is
# Too Early (RFC 8470), 52x are Cloudflare's, 529 is Anthropic's overload.
RETRYABLE_STATUS: frozenset[int] = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
RETRYABLE_WORDS: frozenset[str] = frozenset({
    "server_error", "rate_limit_exceeded", "rate_limit_error", "vector_store_timeout", "overloaded_error", "api_error",
    "timeout_error", "internal_server_error", "internalserverexception", "modelstreamerrorexception",
    "throttlingexception", "serviceunavailableexception", "modeltimeoutexception", "modelnotreadyexception",
    "unavailable", "resource_exhausted", "deadline_exceeded", "internal", "too_many_requests", "service_unavailable",
    "internalservererror", "overloaded", "server_is_overloaded", "server_overloaded", "slow_down",
    "service_unavailable_error", "flex_unavailable", "connection_failed", "request_timeout", "internal_error",
    "conflict_error", "memory_path_conflict_error",
    "base_resp:1000", "base_resp:1001", "base_resp:1002", "base_resp:1024", "base_resp:1033",
})
SERVER_WORDS: frozenset[str] = frozenset({
    "api_error", "server_error", "internal", "internal_error", "internal_server_error", "internalservererror",
    "internalserverexception",
})
"""Of these, the words that say only that the server failed. Some gateways send such a word with every error, even with
a status that blames the request (claude-code-router 2.0.0: `api_error` with HTTP 400); then the status counts."""
FATAL_WORDS: frozenset[str] = frozenset({
    "insufficient_quota", "invalid_prompt", "data_residency_mismatch",
    "invalid_image", "invalid_image_format", "invalid_base64_image", "invalid_image_url", "image_too_large",
    "image_too_small", "image_parse_error", "invalid_image_mode", "image_file_too_large",
    "unsupported_image_media_type", "empty_image_file", "failed_to_download_image", "image_file_not_found",
    "max_output_tokens", "session_budget_exceeded", "usage_limit_exceeded", "project_spend_limit_exceeded",
    "organization_spend_limit_exceeded", "organization_usage_limit_exceeded", "billing_not_active",
    "credit_balance_exhausted", "authentication_error", "invalid_request", "resource_not_found", "sandbox_error",
    "executor_version_incompatible", "active_turn_not_steerable",
    "invalid_request_error", "billing_error", "permission_error", "not_found_error", "memory_precondition_failed_error",
    "accessdeniedexception", "resourcenotfoundexception", "validationexception", "modelerrorexception",
})
"""Codes of errors that a retry cannot cure, even if the HTTP status suggests one (429 with `insufficient_quota`)."""


def read_error(body: Any, status: int | None = None, named: bool = False) -> ProviderError | None:
    """The error that `body` reports, in any of the known shapes; None if it reports none. With an HTTP error `status`,
    or if it is `named` an error, every body is one: its text is the message if no known shape fits."""
    bad_status = status is not None and status >= 400
    failed = named or bad_status
    if isinstance(body, list) and body:
        body = body[0]  # Gemini streams an error as an array of one
    found = _find(body, failed)
    if found is None:
        return None
    message, kind, code = found
    words = {str(word).lower() for word in (kind, code) if word}
    # OpenRouter and Google put the HTTP status into `code`, its only place in a stream under HTTP 200.
    numeric = {int(word) for word in words if re.fullmatch(r"[0-9]{3}", word)}
    error_status = status if bad_status else next(iter(numeric), None)
    faulty_request = error_status in range(400, 500) and error_status not in RETRYABLE_STATUS
    retryable = bool(words & RETRYABLE_WORDS - (SERVER_WORDS if faulty_request else frozenset()))
    if error_status in RETRYABLE_STATUS:  # a 5xx is the server's failure, whatever the body says
        retryable = retryable or error_status >= 500 or not words & FATAL_WORDS
    return ProviderError(message, kind, code, retryable)


def event_error(event: Any, status: int | None) -> ProviderError:
    """The error of an event named `error`, whatever its shape."""
    return read_error(event, status) or read_error(event, named=True) or ProviderError("")


REDIRECTS = range(301, 309)


RECORDING_CUT = "recording_cut"
"""The detail of an unknown reason if the recording, and not the answer, was cut."""


def recording_cut(stop: StopReason, end: At) -> StopReason:
    """Returns the unknown reason of an answer whose recording ends at `end`: the server may have sent the missing
    rest."""
    evidence = Evidence(RECORDING_CUT, end, "the recording stops here")
    return StopReason(Stop.UNKNOWN, stop.raw, RECORDING_CUT, (*stop.evidence, evidence))


_SECRET_PARTS = re.compile(r"(?<=//)[^/?#]*@|[?#].*", re.DOTALL)
"""The parts of an address that may hold credentials: the user before the host, and the query."""


def redirect(status: int | None, headers: Iterable[tuple[str, str]]) -> tuple[ProviderError, StopReason] | None:
    """The error of a response that only redirects, and its stop reason; None for any other status."""
    if status not in REDIRECTS:
        return None
    location = next((value for name, value in headers if name.lower() == "location"), None)
    where = f"to {_SECRET_PARTS.sub('', location)}" if location else "with no Location header"
    error = ProviderError(f"HTTP {status} redirects {where}", None, str(status))
    at = At(ExchangePart.HEADERS, pointer="location" if location else "status")
    return error, StopReason(Stop.ERROR, None, "fatal", (Evidence("error.redirect", at, error.message[:200]),))


def classify(error: ProviderError) -> tuple[Stop, str, str]:
    """The mapped stop reason of an error, its detail, and the rule that read it."""
    words = " ".join(word for word in (error.code, error.type, error.message) if word)
    for mark in MARKS:
        if re.search(mark.pattern, words, re.IGNORECASE):
            return mark.stop, mark.detail, mark.rule
    return Stop.ERROR, "retryable" if error.retryable else "fatal", "error.reported"


def error_reason(error: ProviderError, at: At | None, stop: StopReason) -> StopReason:
    """The stop reason of a response with an error. The error outranks the stop word beside it: `length` plus an error
    is an error."""
    word, detail, rule = classify(error)
    evidence = Evidence(rule, at, error.message[:200])
    return StopReason(word, stop.raw, detail, (*(stop.evidence if stop.raw else ()), evidence))


def _find(body: Any, failed: bool) -> tuple[str, str | None, str | None] | None:
    if not isinstance(body, dict):
        return (_text(body), None, None) if failed else None
    inner = body.get("error")
    if inner is None and body.get("type") == "error" and isinstance(body.get("message"), dict):
        inner = body["message"]  # claude-code-router, in a stream
    if isinstance(inner, dict) and not (failed or any(inner.values())):
        return None  # a gateway that sends every field, this one empty
    if isinstance(inner, dict):
        nested = inner.get("metadata")  # OpenRouter's: the kind, the words of the provider behind, what was flagged
        about = nested if isinstance(nested, dict) else {}
        message = _text(inner.get("message") or about.get("raw") or inner)
        kind = inner.get("type") or inner.get("status") or about.get("error_type")
        flag = "flagged_input" if about.get("flagged_input") else None
        return message, _word(kind or flag), _word(_inner_code(inner))
    if inner:  # a text alone, as Ollama sends it (docs/api.md)
        kind = body.get("type") or body.get("error_type")  # the second is TGI's (router/src/server.rs)
        return _text(inner), _word(kind), _word(body.get("code") or body.get("status_code"))
    base = body.get("base_resp")  # MiniMax sends 0 in every other answer (platform.minimax.io api-reference/errorcode)
    if isinstance(base, dict) and base.get("status_code"):
        return _text(base.get("status_msg")), f"base_resp:{_word(base['status_code'])}", _word(base["status_code"])
    # vLLM's shape first (goose PR#8031), then AWS's, which spells the message in two ways and the kind as `__type`.
    if body.get("object") == "error" or (failed and ("message" in body or "Message" in body)):
        kind = body.get("type") or body.get("__type") or body.get("code")
        return _text(body.get("message") or body.get("Message")), _word(kind), _word(body.get("code"))
    errors = body.get("errors") or body.get("detail")  # FastAPI servers say `detail`
    first = errors[0] if failed and isinstance(errors, list) and errors else None
    if isinstance(first, dict) and first.get("message"):  # Cloudflare, watsonx
        return _text(first["message"]), None, _word(first.get("code"))
    if failed:
        return _text(errors if errors else body), None, None
    return None


def _inner_code(inner: Mapping[str, Any]) -> Any:
    deeper = inner.get("innererror")  # Azure: ResponsibleAIPolicyViolation is only here
    if isinstance(deeper, dict) and deeper.get("code"):
        return f"{inner.get('code')} {deeper['code']}"
    return inner.get("code")


def _word(value: Any) -> str | None:
    return None if value is None or isinstance(value, (dict, list)) else str(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False)[:2000]


# -- The reason that a word means, and a cut or a failure that a later word would hide -------------------------------

class StopRow(NamedTuple):
    """One row of a stop-reason table: the meaning of a native word, and its source."""

    stop: Stop
    detail: str | None = None
    source: str = ""


class ForeignWord(NamedTuple):
    """How to read the word after a colon: by the table of `api`. `least` is the meaning if that table has none, or a
    finished or unknown one."""

    api: str
    least: StopRow


def foreign_row(
    raw: str, words: Mapping[str, ForeignWord], rule: str | None
) -> tuple[StopRow | None, str | None]:
    """The meaning of a word such as `content_filter: RECITATION`, and the table that has it. A filter's word never
    means less than a filter."""
    before, _, word = raw.partition(":")
    foreign_word = words.get(before.strip().casefold())
    if foreign_word is None:
        return None, rule
    from loop_core.wire import wire  # here, as it imports this module

    row = wire(foreign_word.api).stop_reasons.get(word.strip().upper())
    if row is None or row.stop in WORDLESS:
        return foreign_word.least, rule
    return row, f"{foreign_word.api}.stop_reasons"


@lru_cache(maxsize=256)  # whole bodies of one server have the word at the same place, and share this object of 0.3 kB
def mapped_reason(stop: Stop, raw: str, detail: str | None, rule: str, at: At | None) -> StopReason:
    """The reason for a stop word by a table; `rule` names the table, `at` is the place of the word."""
    return StopReason(stop, raw, detail, (Evidence(rule, at, raw),))


OVERRIDABLE = FINISHED | {Stop.UNKNOWN, Stop.PAUSED}
"""The reasons that a later stop word may replace. A cut, a filter or a failure is never replaced."""


def keep_earlier(stop: StopReason, stops: Iterable[StopReason], rule: str) -> StopReason:
    """The reason of an answer that sent several stop words: a cut or a failure outranks a clean word after it."""
    before = next((each for each in stops if each.normalized not in OVERRIDABLE), None)
    if before is None or stop.normalized not in FINISHED:
        return stop
    evidence = Evidence(rule, before.evidence[0].at, before.raw or "")
    return stop._replace(normalized=before.normalized, detail=before.detail, evidence=(*stop.evidence, evidence))


# -- Rate-limit headers -> Quota (ZeroClaw RFI 2309 `quota_metadata`) --------------------------------------------------
# A table of header names. Values that are not numbers stay raw.

NAMES: dict[str, str] = {
    "x-ratelimit-limit-requests": "limit_requests",  # OpenAI docs, Rate limits; many compatible servers
    "x-ratelimit-remaining-requests": "remaining_requests",
    "x-ratelimit-limit-tokens": "limit_tokens",
    "x-ratelimit-remaining-tokens": "remaining_tokens",
    "x-ratelimit-reset-tokens": "reset",
    "anthropic-ratelimit-requests-limit": "limit_requests",  # Anthropic docs, Rate limits: response headers
    "anthropic-ratelimit-requests-remaining": "remaining_requests",
    "anthropic-ratelimit-tokens-limit": "limit_tokens",
    "anthropic-ratelimit-tokens-remaining": "remaining_tokens",
    "anthropic-ratelimit-tokens-reset": "reset",
    "ratelimit-limit": "limit_requests",  # the IETF draft RateLimit header fields
    "ratelimit-remaining": "remaining_requests",
    "ratelimit-reset": "reset",
    "retry-after": "retry_after",
}
_NUMBERS = ("limit_requests", "remaining_requests", "limit_tokens", "remaining_tokens")
_WHOLE_NUMBER = re.compile("[0-9]{1,18}")  # int() refuses other digits such as `²`, and more than 4,300 of them


def read_quota(headers: Iterable[tuple[str, str]]) -> Quota | None:
    """The quota in the rate-limit headers; None if none of them is a rate-limit header."""
    fields: dict[str, Any] = {}
    quota_headers: dict[str, str] = {}
    for name, value in headers:
        lower = name.lower()
        if "ratelimit" not in lower and lower != "retry-after":
            continue
        quota_headers[lower] = value
        field = NAMES.get(lower)
        if field in _NUMBERS and _WHOLE_NUMBER.fullmatch(value.strip()) is not None:
            fields.setdefault(field, int(value))
        elif field in ("reset", "retry_after"):
            fields.setdefault(field, value)
    return Quota(**fields, headers=quota_headers) if quota_headers else None
