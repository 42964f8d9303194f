"""Raw exchanges -> decoded exchanges: API found, credentials out, request read, response decoded, each once.

Knows no file format and nothing of threading. What is no LLM traffic, or traffic that is not read, is told by name.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from inspector.sessions import joined, redact, traffic
from inspector.sessions.recording import Exchange, Options, RawExchange
from loop_core.errors import CallerError, DecodeError
from loop_core.values import (
    At,
    ChatResponse,
    Evidence,
    ExchangePart,
    Finding,
    Request,
    Severity,
    Stop,
    StopReason,
    TransportEnd,
)
from loop_core.wire import decode_response, wire
from loop_core.wire.base import RECORDING_CUT
from loop_core.wire.eventstream import reseal
from loop_core.wire.failures import read_quota
from loop_core.wire.profiles import ProfileChoice, choose, profile_named

NOT_RECORDED = "not_recorded"
_NO_BODY = frozenset({"OPTIONS", "HEAD", "CONNECT", "TRACE"})


class Unbuilt(NamedTuple):
    """Why a raw exchange is not among the exchanges; `other` is the API that it speaks where `--api` said another."""

    why: str
    other: str | None = None
    undecodable: bool = False
    """The bytes are no body of the API."""


def build(raw: RawExchange, path: str, options: Options, counts: redact.Counts | None = None) -> Exchange | Unbuilt:
    """One exchange, decoded, or why it is none; `counts` learns what was masked."""
    url = redact.url(raw.url)
    api = _api(raw, url, options)
    if isinstance(api, Unbuilt):
        return api
    request_json, request = _request(raw, api, url, counts)
    headers = redact.headers(raw.headers, shapes=not raw.clean, counts=counts)
    body = raw.body if raw.clean else reseal(redact.body(raw.body, counts), raw.body)
    chosen = _profile(raw, api, url, headers, body, request, options)
    if not raw.recorded:
        response = _not_recorded(raw, api, headers, request)
    else:
        try:
            response = decode_response(
                api,
                body,
                http_status=raw.status,
                headers=headers,
                n=request.n if request else 1,
                background=request.background if request else False,
                words=chosen.profile.words,
                end=raw.end,
            )
        except DecodeError as why:
            if raw.end is not TransportEnd.CUT:
                return Unbuilt(f"no {api} response: {why}", undecodable=True)
            raw.recorded, body = False, b""  # too little of it was recorded to tell what it is
            response = _not_recorded(raw, api, headers, request)
        silent = raw.recorded and _says_nothing(response, request) and _may_be_other(raw, response, options)
        if silent and not traffic.by_content(body):
            what = f"no LLM traffic: {raw.method} {traffic.path_of(url)} answers" if url else "no response: it holds"
            return Unbuilt(f"{what} nothing that {api} knows", undecodable=not url)
    if raw.problem:
        broke = Finding(f"transport.{raw.end.value}", Severity.WARNING, raw.problem)
        response = replace(response, findings=(*response.findings, broke))
    made = Exchange(
        path,
        raw.entry,
        api,
        url,
        chosen.profile,
        tuple(chosen.evidence),
        request,
        request_json,
        response,
        body,
        headers,
        redact.headers(raw.request_headers, shapes=not raw.clean, counts=counts),
        raw.recorded,
        raw.started,
        raw.duration_ms,
        raw.chunks,
        again=raw.again,
        said=raw.said,
        messages=raw.messages,
        cut_after=raw.cut_after,
        simulated=raw.simulated,
    )
    return joined.again(made, joined.hidden(body, api, response, counts)) if raw.recorded else made


def spoken_by(exchange: Exchange, profile: str) -> Exchange:
    """The exchange as if this profile had answered: its bytes are decoded again where it has words of its own.

    A transcript holds no bytes of a provider: its responses stay as they are, and are only judged anew.

    Raises:
        CallerError: there is no such profile.
    """
    request = exchange.request
    chosen = profile_named(profile, exchange.api, request.model if request else None)
    if chosen.profile == exchange.profile:
        return exchange
    response = exchange.response
    if exchange.recorded and exchange.recorder is None and chosen.profile.words != exchange.profile.words:
        response = joined.decoded_again(exchange, exchange.body, chosen.profile)
    return replace(exchange, profile=chosen.profile, profile_evidence=chosen.evidence, response=response)


def _api(raw: RawExchange, url: str, options: Options) -> str | Unbuilt:
    if raw.method in _NO_BODY:
        return Unbuilt(f"no LLM traffic: {raw.method} {traffic.path_of(url)}")
    found = raw.api or (traffic.by_path(url) if url else None)
    if found is None and url and (name := traffic.unread(url)) is not None:
        return Unbuilt(f"{name}: not read yet")
    if found is None:
        found = traffic.by_content(raw.body)
    if options.api is not None and found is not None and found != options.api:
        return Unbuilt(f"{found}, where --api {options.api} was given", found)
    if found is not None:
        return found
    if options.api is not None and raw.body and (not url or _asks(raw)):
        return options.api
    return Unbuilt(
        f"no LLM traffic: {raw.method} {traffic.host_of(url)}{traffic.path_of(url)}"
        if url
        else "a response of no known API"
    )


def _asks(raw: RawExchange) -> bool:
    """Whether the request looks like one to a model, whatever its path."""
    text = raw.request_text
    return (
        raw.method == "POST"
        and text is not None
        and any(f'"{name}"' in text for name in ("messages", "contents", "input"))
    )


def _request(raw: RawExchange, api: str, url: str, counts: redact.Counts | None) -> tuple[Any, Request | None]:
    text = raw.request_text
    if text is None:
        return None, None
    if not raw.clean:
        text = redact.text(text, counts)
    try:
        value = traffic.loads(text)
    except ValueError:
        return None, None
    if not raw.clean:
        value = redact.request(value, text, counts)
    return value, wire(api).read_request(value, url) if isinstance(value, dict) else None


def _profile(
    raw: RawExchange,
    api: str,
    url: str,
    headers: tuple[tuple[str, str], ...],
    body: bytes,
    request: Request | None,
    options: Options,
) -> ProfileChoice:
    name, model = options.profile or raw.profile, request.model if request else None
    if name is not None:
        try:
            return profile_named(name, api, model)
        except CallerError:
            if options.profile is not None:
                raise  # a recorded one that is unknown here was written by a program that knows more
    return choose(api, url, headers, body, model)


def _not_recorded(
    raw: RawExchange, api: str, headers: tuple[tuple[str, str], ...], request: Request | None
) -> ChatResponse:
    detail, said = NOT_RECORDED, "the recording holds no body of this response"
    if raw.end is TransportEnd.CUT:
        detail, said = RECORDING_CUT, "the recording stops before this response"
    return ChatResponse(
        api,
        stop_reason=StopReason(Stop.UNKNOWN, None, detail, (Evidence(detail, At(ExchangePart.BODY, 0, 0), said),)),
        transport_end=raw.end,
        http_status=raw.status,
        streaming=request.stream if request else False,
        quota_metadata=read_quota(headers),
    )


def _may_be_other(raw: RawExchange, response: ChatResponse, options: Options) -> bool:
    """Whether only a path, or a caller's word for a whole JSON body alone, says which API this is."""
    if raw.url:
        return raw.api is None and options.api is None
    alone = options.api is not None and raw.request_text is None and not response.streaming
    return alone and not any(finding.rule == "body.cut" for finding in response.findings)


def _says_nothing(response: ChatResponse, request: Request | None) -> bool:
    """Whether neither side holds anything of the API that the path suggested (a chat application's own path)."""
    if response.parts or response.stop_reason.raw or response.error or response.usage or response.id:
        return False
    return request is None or not request.messages
