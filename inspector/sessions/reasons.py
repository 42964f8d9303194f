"""Makes stop reasons for answers that no wire format decodes: those of transcripts, and missing or unreadable bodies.

In a transcript a stop reason is the provider's own word, a word of the recorder, or an inference from other rows; the
first rule of its evidence states which. An end that no row shows is `unknown`, with the detail `not_recorded`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from sys import intern

from inspector.sessions.recording import Exchange, RawExchange
from loop_core.errors import UNREADABLE
from loop_core.values import (
    At,
    ChatResponse,
    Evidence,
    ExchangePart,
    Finding,
    ProviderError,
    Request,
    Severity,
    Stop,
    StopReason,
    ToolCall,
    TransportEnd,
    shared,
)
from loop_core.wire.failures import (
    RECORDING_CUT,
    RETRYABLE_STATUS,
    RETRYABLE_WORDS,
    StopRow,
    classify,
    read_error,
    read_quota,
)

PROVIDER = "transcript.provider"
"""The rule for the provider's own word, which the recorder copied into the row."""
RECORDER = "transcript.recorder"
"""The rule for the recorder's word, if the provider's word is not in the file."""
ABSENT = "transcript.absent"
"""The rule for a row without a stop word."""
NO_ROW = "transcript.no_row"
"""The rule for a stop word whose answer is not whole in the file, such as a word for calls without the call's row."""
INFERRED = "transcript.inferred."
"""The prefix of the rules that infer an end from other rows."""
STOPPED = "transcript.stopped"
"""The rule of the finding that, according to the transcript, the user or the agent ended the turn."""
UNREAD_CALL = "transcript.unread_call"
"""The rule of the finding, at the place of a call, that the recorder could not read the call."""
GUESSED_API = "openai_chat"
"""The id of the wire format of an answer that names none. It is written out, because importing the format would slow
down each start."""
API_ASSUMED = "transcript.api_assumed"
"""The rule for an answer whose wire format no row names."""
NOT_RECORDED = "not_recorded"
DAMAGED_RULE = "damaged_body"
"""The rule for a recorded body that cannot be unpacked."""
_WORD = 40
"""The largest number of characters of a recorder's word; a longer text is a message."""


def provider_reason(word: str, at: At, table: Mapping[str, StopRow], name: str) -> StopReason:
    """The provider's word, as the table of its wire format maps it."""
    word = intern(word)  # each row has its own copy of the few words
    evidence = Evidence(PROVIDER, at, word)
    row = table.get(word)
    if row is None:
        return StopReason(Stop.UNKNOWN, word, None, (evidence, Evidence("unknown_word", at, word)))
    return StopReason(row.stop, word, row.detail, (evidence, Evidence(intern(f"{name}.stop_reasons"), at, word)))


def recorder_reason(stop: Stop, detail: str | None, at: At, word: str, rule: str) -> StopReason:
    """The stop reason for the recorder's own word; the provider's word is absent."""
    return StopReason(stop, None, detail, (Evidence(RECORDER, at, word), Evidence(rule, at, word)))


def table_reason(word: str, table: Mapping[str, StopRow], at: At, rule: str) -> StopReason:
    """The stop reason for the recorder's own word, as the table of its words maps it."""
    row = table.get(word)
    if row is None:
        return recorder_reason(Stop.UNKNOWN, None, at, word, "unknown_word")
    return recorder_reason(row.stop, row.detail, at, word, rule)


def error_in_text(text: str, status: int | None, kind: str | None) -> ProviderError:
    """The error in a text that an agent wrote; the provider's own error if its JSON is in the text."""
    start = text.find("{")
    try:
        body = json.loads(text[start : text.rfind("}") + 1]) if start >= 0 else None
    except (ValueError, RecursionError):
        body = None
    error = read_error(body, status) if isinstance(body, dict) else None
    retryable = status in RETRYABLE_STATUS or kind in RETRYABLE_WORDS | {"rate_limit"} or (
        status is None and is_temporary(text))
    return error or ProviderError(text, kind, None if status is None else str(status), retryable)


def error_reason(error: ProviderError, at: At, word: str) -> StopReason:
    """The stop reason of a failed request: the recorder's word, and the class of the error."""
    stop, detail, rule = classify(error)
    return recorder_reason(stop, detail, at, word, rule)


CLIENT_ENDS: tuple[tuple[str, StopRow], ...] = (
    (r"terminated with finish_reason='length'|IncompleteDetails\(reason='max_output_tokens'\)",
     StopRow(Stop.MAX_TOKENS, None, "openai-agents 0.24, ModelBehaviorError")),
    (r"IncompleteDetails\(reason='content_filter'\)",
     StopRow(Stop.SAFETY_BLOCKED, "content_filter", "openai-agents 0.24, ModelBehaviorError")),
    (r"Could not parse response content as the length limit was reached",
     StopRow(Stop.MAX_TOKENS, None, "openai 3.54, LengthFinishReasonError")),
    (r"Could not parse response content as the request was rejected by the content filter",
     StopRow(Stop.SAFETY_BLOCKED, "content_filter", "openai 3.54, ContentFilterFinishReasonError")),
)
"""Pattern of an error that a client raises because of how an answer ended -> that end. The request did not fail."""


def message_reason(error: ProviderError, at: At, message: str) -> StopReason:
    """The stop reason of a failed request for which the recorder wrote a message and no stop word."""
    stop, detail, rule = classify(error)
    return StopReason(stop, None, detail, (Evidence(RECORDER, at, message[:200]), Evidence(rule, at)))


def failure_reason(
    text: str, at: At, status: int | None, kind: str | None, word: str | None
) -> tuple[StopReason, ProviderError | None]:
    """The stop reason for the error in a text of the recorder, and the error of a failed request. `word` is the
    recorder's stop word, if any."""
    row = next((row for pattern, row in CLIENT_ENDS if re.search(pattern, text)), None)
    if row is not None:
        return recorder_reason(row.stop, row.detail, at, text[:200], "client.end_errors"), None
    error = error_in_text(text, status, kind)
    return message_reason(error, at, text) if word is None else error_reason(error, at, word), error


def inferred_reason(stop: Stop, at: At, rule: str, shown_at: At | None, note: str) -> StopReason:
    """A stop reason inferred from other rows."""
    return StopReason(stop, None, None, (Evidence(ABSENT, at), shared(Evidence(f"{INFERRED}{rule}", shown_at, note))))


def unrecorded_reason(at: At) -> StopReason:
    """The stop reason of an end that no row shows."""
    return StopReason(Stop.UNKNOWN, None, NOT_RECORDED, (Evidence(ABSENT, at),))


def missing_call_reason(stop: StopReason) -> StopReason:
    """The stop reason of an answer whose tool call is missing from the file."""
    return _without(stop, "the row of the call is not in the file")


def missing_content_reason(stop: StopReason) -> StopReason:
    """The stop reason of an answer without recorded content, as in a trace without contents."""
    return _without(stop, "the content of the answer was not recorded")


def unclear_word_reason(stop: StopReason) -> StopReason:
    """The stop reason of an answer whose recorder writes one word for a missing reason and for several others."""
    return _without(stop, "recorders also write this word if the provider gave no reason, or another one")


def shortened_call_reason(stop: StopReason) -> StopReason:
    """The stop reason of an answer whose calls the recorder shortened, so that their arguments are not recorded."""
    return _without(stop, "only parts of the arguments are in the file: the recorder left out the rest")


def _without(stop: StopReason, note: str) -> StopReason:
    evidence = Evidence(NO_ROW, stop.evidence[0].at, note)
    return StopReason(Stop.UNKNOWN, stop.raw, NOT_RECORDED, (*stop.evidence, evidence))


def is_unrecorded(stop: StopReason) -> bool:
    """Whether the file has the answer, or a part of it, but not its end."""
    if stop.normalized is not Stop.UNKNOWN or not stop.evidence:
        return False
    return stop.evidence[0].rule == ABSENT or stop.evidence[-1].rule == NO_ROW


def is_recorders(stop: StopReason | None) -> bool:
    """Whether the stop reason comes from a word of the recorder."""
    return stop is not None and bool(stop.evidence) and stop.evidence[0].rule == RECORDER


def inference_of(stop: StopReason) -> Evidence | None:
    """The evidence of the rule that inferred a reason; None if a stop word gives it, or nothing does."""
    return next((evidence for evidence in stop.evidence if evidence.rule.startswith(INFERRED)), None)


def recorder_word(stop: StopReason) -> str | None:
    """The recorder's own word, if the provider's was not recorded; None if there is none."""
    first = stop.evidence[0] if stop.evidence and stop.raw is None else None
    return first.note if first is not None and first.rule == RECORDER and 0 < len(first.note) <= _WORD else None


def reason_text(stop: StopReason) -> str:
    """A stop reason without a provider's word, as a part of a sentence."""
    first = stop.evidence[0] if stop.evidence else None
    if first is not None and first.rule == RECORDER:
        return f'"{first.note}" as the recorder says' if len(first.note) <= _WORD else "an error row of the recorder"
    if first is not None and first.rule == ABSENT:
        found = f", {stop.normalized.value} inferred" if inference_of(stop) is not None else ""
        return f"no stop reason recorded{found}"
    return "no stop reason"


def reason_finding(stop: StopReason, remark: str = "") -> Finding | None:
    """The finding about a stop reason that neither the provider's word nor an error message gives; None if one does.
    `remark` is a note in the file after the answer about the turn's end, such as an interruption by the user."""
    first = stop.evidence[0]
    if stop.evidence[-1].rule == NO_ROW:
        word = stop.raw or first.note
        message = f"the stop reason {f'is {word!r}' if word else 'was not recorded'}, and {stop.evidence[-1].note}"
        return Finding("transcript.not_recorded", Severity.INFO, message, first.at)
    if first.rule == RECORDER and len(first.note) <= _WORD:
        message = f"the recorder says {first.note!r} in its own words; the provider's stop reason was not recorded"
        return Finding("transcript.normalized", Severity.INFO, message, first.at)
    if first.rule != ABSENT:
        return None
    inference = inference_of(stop)
    if inference is None:
        clause = f"; the file says: {remark}" if remark else ", and nothing in the file shows how the answer ended"
        message = f"the stop reason was not recorded{clause}"
        return Finding("transcript.not_recorded", Severity.INFO, message, first.at)
    message = f"the stop reason was not recorded; {stop.normalized.value} is inferred: {inference.note}"
    return Finding("transcript.inferred", Severity.INFO, message, inference.at)


def named_api(exchange: Exchange) -> str | None:
    """The wire format of an answer; None if no row of its transcript names it."""
    assumed = any(evidence.rule == API_ASSUMED for evidence in exchange.profile_evidence)
    return None if assumed else exchange.api


UNDER_WAY = "under_way"
"""The detail of an unknown reason if the answer was still being recorded when the file was read."""


# -- The response of an exchange whose body is missing or not of its format ------------------------------------------


def missing_response(
    raw: RawExchange, api: str, headers: tuple[tuple[str, str], ...], request: Request | None
) -> ChatResponse:
    """The response of an exchange whose body was not recorded, cannot be unpacked, or comes after a cut."""
    detail, rule, note = NOT_RECORDED, NOT_RECORDED, "the recording holds no body of this response"
    if raw.unreadable:
        rule, note = DAMAGED_RULE, raw.unreadable
    elif raw.end is TransportEnd.CUT:
        detail, rule, note = RECORDING_CUT, RECORDING_CUT, "the recording stops before this response"
    return ChatResponse(
        api,
        stop_reason=StopReason(Stop.UNKNOWN, None, detail, (Evidence(rule, At(ExchangePart.BODY, 0, 0), note),)),
        transport_end=raw.end,
        http_status=raw.status,
        streaming=request.stream if request else False,
        quota_metadata=read_quota(headers),
    )


def why_missing(stop: StopReason) -> str:
    """The reason why the body of a response is missing, as the beginning of a sentence."""
    damaged = next((evidence.note for evidence in stop.evidence if evidence.rule == DAMAGED_RULE), "")
    return damaged or "the body was not recorded"


def is_unreadable(response: ChatResponse) -> bool:
    """Whether the body of an answer is not of its format, such as the HTML page of a proxy."""
    return response.error is not None and response.error.type == UNREADABLE


def unreadable_response(raw: RawExchange, api: str, body: bytes, why: str) -> ChatResponse:
    """The failed answer of a request whose client received something else with a success status."""
    begins = " ".join(body[:FIRST_BYTES].decode("utf-8", "replace").split())
    evidence = Evidence(UNREADABLE, At(ExchangePart.BODY, 0, min(len(body), FIRST_BYTES)), why)
    error = ProviderError(f"the body is not an answer: it begins with {begins!r}", UNREADABLE)
    return ChatResponse(api, stop_reason=StopReason(Stop.ERROR, None, "fatal", (evidence,)), http_status=raw.status,
                        error=error, transport_end=raw.end, size=len(body))


FIRST_BYTES = 64
"""The number of bytes that the error message quotes from a body that is not of its format, such as a page."""


# -- Lost connections, after which clients send a request again unchanged --------------------------------------------

LOST_CONNECTION: tuple[str, ...] = (
    r"terminated", r"fetch failed", r"failed to fetch", r"socket hang up", r"other side closed", r"premature close",
    r"connection error", r"connection (?:was )?(?:lost|reset|closed|aborted|refused)",
    r"network (?:error|connection lost)", r"time[ds]?[ -]?out", r"(?:cannot|could not|unable to|failed to) connect",
    r"stream (?:was )?(?:closed|ended|disconnected) (?:unexpectedly|early|before|without)",
    r"failed to process successful response", r"reconnecting\.{3} \d+/\d+$",
    r"e(?:connreset|pipe|timedout|hostunreach|ai_again)",
    r"und_err_\w+", r"incomplete chunked read", r"peer closed connection",
)
"""Patterns of the messages by which undici, Node.js, Bun, httpx, Vercel's AI SDK, the providers' SDKs and Codex CLI
report a connection that was lost, or that there was none."""
SERVER_FAILED: tuple[str, ...] = (
    r"overloaded", r"server had an error", r"internal server ?error",
    r"service (?:is )?(?:currently |temporarily )?unavailable", r"bad gateway",
    r"too many (?:requests|tokens, please wait)", r"rate[- ]limit(?:ed)?", r"try again in \d",
    r"(?:try|trying) again later",
    r"(?:ratelimit|serviceunavailable|internalserver|badgateway)error",
    r"status(?: code)?:? (?:408|409|425|429|5\d\d)",
)
"""Patterns of the messages by which the providers' servers, gateways before them and clients report a limit of requests
or a failure of the server, which pass: the phrases of HTTP; OpenAI, Groq, Anthropic, Gemini, Bedrock; LiteLLM's and the
SDKs' types of errors; VS Code; axios and Codex CLI, which quote a status."""
_TEMPORARY = rf"\b(?:{'|'.join((*LOST_CONNECTION, *SERVER_FAILED))})\b"
_SEARCHED_NOTE = 400
"""The number of characters at the beginning of a message that are searched for a temporary failure."""


def is_temporary(message: str) -> bool:
    """Whether the message of a failed request reports a lost connection, or a server that may answer later."""
    return re.search(_TEMPORARY, message[:_SEARCHED_NOTE], re.IGNORECASE) is not None


def quotes_parser(text: str, call: ToolCall) -> bool:
    """Whether a result quotes what a parser says of the call's own arguments: its words and the very place. Results of
    AutoGen and Mirascope do so with Python's parser, those of Grok CLI with V8's. At the first character a parser says
    the same of any other text, such as an empty answer that a tool got."""
    arguments = call.arguments or "{}"
    try:
        json.loads(arguments)
    except ValueError as why:
        start = getattr(why, "pos", None)  # too long a number has none
        # V8 counts in UTF-16, and the place of a string that never ends is the end of the text.
        places = [len(arguments[:end].encode("utf-16-le", "surrogatepass")) // 2 for end in (start, None)]
        quoted = re.findall(r" in JSON at position (\d{1,9})\b", text)
        return start != 0 and (str(why) in text or any(int(place) in places for place in quoted))
    except RecursionError:
        pass
    return False
