"""Advice about an error that a provider or its client reported, from a table of kinds of errors."""

# Annotations are not postponed: of a named tuple each would be compiled from text at every start.
import re
from typing import NamedTuple

from inspector.config.settings import INITIAL
from inspector.report.judged_turn import JudgedTurn


class Failure(NamedTuple):
    """A kind of error, and the advice for it; `words` is a pattern for its code, type or message."""

    name: str
    advice: str
    statuses: frozenset[int] = frozenset()
    words: str = ""
    unanswered: bool = False
    """Whether the row applies only to an error without an HTTP status, which the client reported."""
    retryable: bool = False
    """Whether the row applies to any error that the provider or the status marks as temporary."""


FAILURES: tuple[Failure, ...] = (
    # First, because its message quotes a call, whose text could match a later row. LiteLLM 1.108.7 sends it to an
    # Anthropic client, about a call of another provider.
    Failure("cut call", f"raise {INITIAL}: the call quoted in the message ends inside its JSON, perhaps by a cut",
            words=r"(?s)\bfailed to parse tool call arguments\b.*\barguments: \{(.*[^}\s])?\s*$"),
    # Groq refuses what the model wrote, which is not the fault of the request (https://console.groq.com/docs/errors).
    Failure("output refused", "send the request again: the server refused what the model wrote, not the request",
            words=r"\b(tool_use|json_validate)_failed\b"),
    Failure("unreadable body", "look at what answered instead of the model: a proxy, a login page, another address",
            words=r"\bunreadable_body\b"),
    Failure("key", "check that the key is set, valid, and allowed to use this model", frozenset({401, 403}),
            r"\bapi[ _-]?key\b|authentication_error|invalid_authentication|\bunauthori[sz]ed\b"
            r"|permission_denied|security token"),
    # A request above the limit per minute fails at every attempt (OpenAI; Groq, whose message also names the page about
    # billing).
    Failure("above the rate limit", f"shorten the request or lower {INITIAL}: it asks for more than the limit allows",
            words=r"request too large for .*\bper min"),
    # RFC 9110; GitHub Models (tokens_limit_reached), Anthropic (request_too_large).
    Failure("too large", "shorten the request: it is larger than the server accepts", frozenset({413})),
    # Before `temporary`: OpenAI sends `insufficient_quota` with status 429, which otherwise means a rate limit
    # (https://platform.openai.com/docs/guides/error-codes); DeepSeek sends 402
    # (https://api-docs.deepseek.com/quick_start/error_codes).
    Failure("quota", "check the account's quota and billing, or try again later", frozenset({402}),
            r"insufficient_quota|exceeded your current quota|credit balance|billing"),
    # Words of HTTP clients: undici's `terminated` and `fetch failed`, Node's `socket hang up`, httpx's `incomplete
    # chunked read`.
    Failure("lost connection", "send the request again: the connection was lost", unanswered=True, words=
        r"\bterminated\b|econnreset|epipe|connection (was )?(reset|closed|lost|aborted|error)|socket hang up"
        r"|time[ds]?[ -]?out\b|network error|fetch failed|premature close|incomplete chunked read|broken pipe"),
    Failure("temporary", "try again later", retryable=True),
    Failure("no such model", "check the model's name", words=
        r"\bmodel_not_found\b|\bmodel\b.{0,80}\b(does not exist|not found)\b"),
    # Last, because a row above explains a 404 better if its message names the model.
    Failure("not there", "check the model's name and the address", frozenset({404})),
)


def is_redirect(turn: JudgedTurn) -> bool:
    """Whether the response only redirects to another address."""
    places = [each.at for each in turn.judgement.stop.evidence if each.rule == "error.redirect"]
    return any(at is not None and at.pointer == "location" for at in places)


def about_error(turn: JudgedTurn) -> str:
    """The advice about an error that a provider or its client reported."""
    if is_redirect(turn):
        return "send the request to the address that the answer names"
    response = turn.exchange.response
    error, status = response.error, response.http_status
    error_text = " ".join(filter(None, (error.code, error.type, error.message))) if error is not None else ""
    temporary = "retryable" in (turn.judgement.stop.detail or "")
    for row in FAILURES:
        # With a status, the server has answered, and a timeout in its message is that of a server behind it.
        if row.unanswered and status is not None:
            continue
        match = row.words and re.search(row.words, error_text, re.IGNORECASE)
        if match or status in row.statuses or (row.retryable and temporary):
            return row.advice
    return "change the request"
