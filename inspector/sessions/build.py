"""Decodes raw exchanges: finds the API, decodes the request and the response, and masks credentials.

For an exchange that is not LLM traffic, or whose format is not supported, the result is the reason.

The first half masks credentials that are spread over several events of a stream, or over an answer and its
continuation. They are found in the joined text, and each piece is masked at its offset in the body, so that neither a
view nor an exported session shows them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from inspector.sessions import detection, redact, traffic
from inspector.sessions.reasons import UNDER_WAY, is_unreadable, missing_response, unreadable_response
from inspector.sessions.recording import NOT_READ, Exchange, Options, RawExchange, TurnRecord
from loop_core.errors import CallerError, DecodeError
from loop_core.formats import FORMATS
from loop_core.values import ChatResponse, Finding, Request, Severity, TransportEnd
from loop_core.wire import decode_response, wire
from loop_core.wire.failures import RECORDING_CUT
from loop_core.wire.format import Profile
from loop_core.wire.profiles import ProfileChoice, choose, profile_named

EDGE = 400
"""The number of bytes on each side of a seam that are searched for a credential across the seam."""
MOST_BYTES_KEPT = 1024
"""The largest number of characters of a request's JSON that is stored as bytes. A longer one is stored parsed, because
it then shares its texts with the decoded request."""
LEAST_PIECE = 8
"""The smallest number of bytes of a credential's piece that is masked in requests too. A shorter piece may be an
ordinary word, so it is masked only in the answer."""


class SpelledPiece(NamedTuple):
    """A piece of a fact: its offset in the joined fact, its unescaped text, and its offsets in the body."""

    first: int
    plain: bytes
    places: list[int]
    """The offset in the body of each byte of `plain`, and of the end of `plain`."""


def without_pieces(
    body: bytes, api: str, response: ChatResponse, counts: redact.Counts | None = None, received: bytes | None = None
) -> bytes:
    """The body, with masks of the same length for credentials that are complete only in the answer's joined texts. The
    others are masked, but not in `received`: once a first piece that looks whole is masked, nothing shows the rest."""
    source = received or body
    if source == body and not detection.spans(_raw("\n".join(answer_texts(response)))):
        return body
    found: list[detection.CredentialSpan] = []
    for pieces in fact_pieces(body, api, response, source).values():
        for span in detection.spans(b"".join([piece.plain for piece in pieces])):
            ranges = list(piece_spans(pieces, span))
            if any(body[start:end] == source[start:end] for start, end, _ in ranges):
                found += ranges
                redact.count(counts, span.name)
    return redact.mask_spans(body, sorted(found))


def answer_texts(response: ChatResponse) -> Iterator[str]:
    """The texts of an answer that may arrive in pieces."""
    calls = (call.arguments for call in (*response.tool_calls, *response.server_calls))
    yield from filter(None, (response.text, response.reasoning_content, response.refusal, *calls))


def fact_pieces(
    body: bytes, api: str, response: ChatResponse, source: bytes | None = None
) -> dict[str, list[SpelledPiece]]:
    """Name of each fact of an answer -> its pieces in the body, with their text in `source`, a body of the same length;
    empty if the body cannot be decoded."""
    from inspector.sessions.provenance import provenance  # rarely needed

    try:
        read = provenance(api, body, response)
    except DecodeError:
        return {}
    found: dict[str, list[SpelledPiece]] = {}
    for fact in read.facts:
        pieces, first = found.setdefault(fact, []), 0
        for each in read.of(fact):
            # A piece of a JSON string is recorded with its quotes, a piece of another format without.
            quoted = body[each.start : each.start + 1] == b'"' and each.end - each.start >= 2
            start = each.start + quoted
            plain, at = redact.unescape((source or body)[start : each.end - quoted])
            pieces.append(SpelledPiece(first, plain, [start + place for place in at]))
            first += len(plain)
    return found


def piece_spans(pieces: Sequence[SpelledPiece], span: detection.CredentialSpan) -> Iterator[detection.CredentialSpan]:
    """The byte ranges in the body of a span's pieces."""
    first, last = (bisect_right(pieces, at, key=lambda piece: piece.first) for at in (span.start, span.end))
    for piece in pieces[max(first - 1, 0) : last]:  # not all of them, as there may be as many spans
        start, end = max(span.start - piece.first, 0), min(span.end - piece.first, len(piece.plain))
        if start < end:
            yield detection.CredentialSpan(piece.places[start], piece.places[end], span.name)


def mask_seams(
    exchanges: list[Exchange], turns: Sequence[TurnRecord], counts: Mapping[str, redact.Counts]
) -> list[Exchange]:
    """The exchanges, in which credentials are masked that span the end of one answer and the beginning of the next. A
    piece of such a credential is also masked in the requests, which repeat the answer so far. `counts`, by the path of
    the exchange's file, receives the number of masked credentials."""
    masked_exchanges, masks = list(exchanges), dict[str, str]()
    for turn in turns:
        for before, after in pairwise([link.index for link in turn.links]):
            masks |= _mask_seam(masked_exchanges, before, after, counts.get(masked_exchanges[before].path))
    if not masks:
        return masked_exchanges
    pieces = re.compile("|".join(re.escape(piece) for piece in sorted(masks, key=len, reverse=True)))
    return [_mask_in_request(exchange, pieces, masks) for exchange in masked_exchanges]


def _mask_seam(exchanges: list[Exchange], before: int, after: int, counts: redact.Counts | None) -> dict[str, str]:
    """Masks credentials across one seam; returns piece -> mask."""
    masks: dict[str, str] = {}
    first, second = _raw(exchanges[before].response.text or ""), _raw(exchanges[after].response.text or "")
    if not first or not second:
        return masks
    tail, head = first[-EDGE:], second[:EDGE]
    found = detection.spans(tail + head)
    # If the first piece looks whole, its mask hides what the rest is. A whole key may be followed by an ordinary word.
    rest = re.match(rb"(?=[\w+/=.~-]*?(?:\d|[A-Za-z][A-Z]))[\w+/=.~-]{8,}", head)
    if rest and (masked := re.search(rb"\[masked: ([^\]]*)\]\**\Z", tail)):
        found = [detection.CredentialSpan(len(tail), len(tail) + rest.end(), masked[1].decode())]
    for start, end, name in found:
        if end <= len(tail):
            continue  # entirely in the first answer, which has been searched
        redact.count(counts, name)
        # If the seam is between a name and its value, the whole credential is in the second answer.
        since, until = max(start - len(tail), 0), end - len(tail)
        halves = (tail[start:], head[since:until])
        if halves[0]:
            seam = detection.CredentialSpan(len(first) - len(halves[0]), len(first), name)
            exchanges[before] = _mask_in_text(exchanges[before], seam)
        exchanges[after] = _mask_in_text(exchanges[after], detection.CredentialSpan(since, until, name))
        # Requests repeat the answer so far. They get the same masks, or threading could not match them.
        masked_halves = (_raw(exchanges[before].response.text or "")[len(first) - len(halves[0]) :],
                         _raw(exchanges[after].response.text or "")[since:until])
        masks |= {half.decode("utf-8", "replace"): mask.decode("utf-8", "replace")
                  for half, mask in zip(halves, masked_halves, strict=True) if len(half) >= LEAST_PIECE}
    return masks


def _mask_in_text(exchange: Exchange, span: detection.CredentialSpan) -> Exchange:
    pieces = fact_pieces(exchange.body, exchange.api, exchange.response).get("text", [])
    return with_body(exchange, redact.mask_spans(exchange.body, sorted(piece_spans(pieces, span))))


def _mask_in_request(exchange: Exchange, pieces: re.Pattern[str], names: Mapping[str, str]) -> Exchange:

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: clean(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [clean(inner) for inner in value]
        return pieces.sub(lambda found: names[found[0]], value) if isinstance(value, str) else value

    masked_request = clean(exchange.request_json)
    if masked_request == exchange.request_json:
        return exchange
    request = wire(exchange.api).read_request(masked_request, exchange.url) if (
        isinstance(masked_request, dict)) else exchange.request
    return replace(exchange, stored_request=masked_request, request=request)


def with_body(exchange: Exchange, body: bytes) -> Exchange:
    """The exchange with another body of the same length, decoded again."""
    if body == exchange.body or exchange.recorder is not None:
        return exchange
    body = _reseal(body, exchange.body)
    return replace(exchange, content=body, response=redecode(exchange, body, exchange.profile))


def _reseal(body: bytes, received: bytes) -> bytes:
    if body == received:
        return body  # the usual case; without `struct` and `binascii` the program starts 1 ms earlier
    from loop_core.wire.eventstream import reseal

    return reseal(body, received)


def redecode(exchange: Exchange, body: bytes, profile: Profile) -> ChatResponse:
    """The decoded response for another body of an exchange, or for the same body under another profile."""
    before = exchange.response
    if is_unreadable(before):
        return before
    end, status = before.transport_end, before.http_status
    response = _decode(exchange.api, body, status, exchange.headers, exchange.request, profile, end)
    # The recorder's findings about the connection are not in the body, so decoding cannot give them again.
    about_connection = [found for found in before.findings if found.rule.startswith("transport.")]
    lost = [found for found in about_connection if found not in response.findings]
    return replace(response, findings=(*response.findings, *lost))


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


# -- Building an exchange ---------------------------------------------------------------------------------------------

_NO_ANSWER = frozenset({"OPTIONS", "HEAD", "CONNECT", "TRACE", "DELETE"})
"""The HTTP methods that never ask a model. The answer to a DELETE of a stored response looks like a response."""


class UnbuiltExchange(NamedTuple):
    """The reason why a raw exchange was not decoded. `other` is the exchange's API, if `--api` named another."""

    why: str
    other: str | None = None
    undecodable: bool = False
    """Whether the bytes are not a body of the API."""


def build(
    raw: RawExchange, path: str, options: Options, counts: redact.Counts | None = None
) -> Exchange | UnbuiltExchange:
    """A raw exchange decoded, or the reason why it is not; `counts` receives the number of masked credentials."""
    url = redact.url(raw.url)
    api = _api(raw, url, options)
    if isinstance(api, UnbuiltExchange):
        return api
    stored, request = _request(raw, api, url, counts)
    headers = redact.headers(raw.headers, shapes=not raw.clean, counts=counts)
    body = raw.body if raw.clean else _reseal(redact.body(raw.body, counts), raw.body)
    choice = _profile(raw, api, url, headers, body, request, options)
    try:
        response = (_decode(api, body, raw.status, headers, request, choice.profile, raw.end) if raw.recorded else
                    missing_response(raw, api, headers, request))
    except DecodeError as why:
        problem = f"not a response of {api}: {why}"
        if raw.end is TransportEnd.CUT:
            raw.recorded, body = False, b""  # too little was recorded to decode anything
            response = missing_response(raw, api, headers, request)
        elif _asks_a_model(raw, api, choice, request):
            response = unreadable_response(raw, api, body, problem)
        else:
            return UnbuiltExchange(problem, undecodable=True)
    if response.stop_reason.raw in wire(api).loads and request is not None and not request.messages:
        return UnbuiltExchange("a request that only loads or unloads a model: it asks for no answer")
    silent = raw.recorded and _says_nothing(response, request) and _is_uncertain(raw, api, choice, response, options)
    if silent and not traffic.by_content(body):
        what = f"no LLM traffic: {raw.method} {traffic.path_of(url)} answers" if url else "no response: it holds"
        return UnbuiltExchange(f"{what} nothing that {api} knows", undecodable=not url)
    if raw.growing and response.stop_reason.detail == RECORDING_CUT:
        response = replace(response, stop_reason=response.stop_reason._replace(detail=UNDER_WAY))
    # Clients may leave at the end mark (Copilot CLI): nothing of the answer is missing then.
    if raw.problem and not (raw.end is TransportEnd.ABORTED and response.saw_done):
        # The body does not show how the connection ended, so the recorder's description is added to the response.
        broke = Finding(f"transport.{raw.end.value}", Severity.WARNING, redact.text(raw.problem, counts))
        response = replace(response, findings=(*response.findings, broke))
    exchange = Exchange(
        path, raw.entry, api, url, choice.profile, tuple(choice.evidence), request, stored, response, body,
        headers, redact.headers(raw.request_headers, shapes=not raw.clean, counts=counts),
        raw.recorded, raw.started if raw.clean or raw.started is None else redact.text(raw.started, counts),
        raw.duration_ms, raw.chunks, raw.first_byte_ms,
        again=raw.again, recorded_place=raw.recorded_place, messages=raw.messages, cut_after=raw.cut_after,
        simulated=raw.simulated, session=redact.text(raw.session, counts),
    )
    # Last, because a credential in pieces is visible only in the decoded answer.
    read = raw.recorded and not is_unreadable(response)
    return with_body(exchange, without_pieces(body, api, response, counts, raw.body)) if read else exchange


def _decode(
    api: str, body: bytes, status: int | None, headers: tuple[tuple[str, str], ...], request: Request | None,
    profile: Profile, end: TransportEnd,
) -> ChatResponse:
    return decode_response(api, body, http_status=status, headers=headers, n=request.n if request else 1,
                           background=request.background if request else False, words=profile.words, end=end)


def decode_as(exchange: Exchange, profile: str) -> Exchange:
    """The exchange under another profile; its bytes are decoded again if the profile's stop words differ. A transcript
    has no bytes of a provider, so its responses stay unchanged and are only judged again. Raises `CallerError` if there
    is no such profile."""
    request = exchange.request
    choice = profile_named(profile, request.model if request else None)
    if choice.profile == exchange.profile:
        return exchange
    response = exchange.response
    if exchange.recorded and exchange.recorder is None and choice.profile.words != exchange.profile.words:
        response = redecode(exchange, exchange.body, choice.profile)
    return replace(exchange, profile=choice.profile, profile_evidence=choice.evidence, response=response)


def _api(raw: RawExchange, url: str, options: Options) -> str | UnbuiltExchange:
    # Before the path: for CORS, a browser first sends an OPTIONS request to the path of the actual request.
    if raw.method in _NO_ANSWER:
        return UnbuiltExchange(f"no LLM traffic: {raw.method} {traffic.path_of(url)}")
    found = raw.api or (traffic.by_path(url) if url else None)
    if raw.api is None and url and traffic.EMBEDDINGS.match(raw.body):
        return UnbuiltExchange(f"embeddings{NOT_READ}")
    # Several APIs use this path (Cohere's), so the content decides if it can.
    if found is not None and raw.api is None and FORMATS[found].common_path:
        found = traffic.by_content(raw.body) or found
    if found is None and url and (name := traffic.unread(url)) is not None:
        return UnbuiltExchange(f"{name}{NOT_READ}")
    if found is None:
        found = traffic.by_content(raw.body)
    if options.api is not None and found is not None and found != options.api:
        return UnbuiltExchange(f"{found}, where --api {options.api} was given", found)
    if found is not None:
        return found
    # `--api` names the API of a server with paths of its own, but does not apply to every other request in a HAR file.
    if options.api is not None and raw.body and (not url or _asks(raw)):
        return options.api
    if (name := next((name for name, mark in traffic.UNREAD_BODIES if mark.search(raw.body)), None)) is not None:
        return UnbuiltExchange(f"{name}{NOT_READ}")
    if url:
        return UnbuiltExchange(f"no LLM traffic: {raw.method} {traffic.host_of(url)}{traffic.path_of(url)}")
    return UnbuiltExchange(_failure(raw.body) or "a response of no known API")


def _failure(body: bytes) -> str:
    try:
        return traffic.failure(traffic.loads(body))
    except ValueError:
        return ""


def _asks(raw: RawExchange) -> bool:
    """Whether the request looks like a request to a model, whatever its path is."""
    text = raw.request_text or ""  # chat formats, Gemini, Responses
    return raw.method == "POST" and any(f'"{name}"' in text for name in ("messages", "contents", "input"))


def _request(raw: RawExchange, api: str, url: str, counts: redact.Counts | None) -> tuple[Any, Request | None]:
    """The request's JSON in the form of `Exchange.stored_request`, and the decoded request."""
    text = raw.request_text
    if text is None:
        return None, None
    if not raw.clean:
        text = redact.text(text, counts)
    try:
        value = read = traffic.loads(text)
    except ValueError:
        return None, None
    if not raw.clean:
        # Masking the text is not enough: under a credential's name any value is masked, also one that is not random.
        value = redact.request(value, text, counts)
    request = wire(api).read_request(value, url) if isinstance(value, dict) else None
    return (text.encode() if value is read and len(text) <= MOST_BYTES_KEPT and text.isascii() else value), request


def _profile(
    raw: RawExchange, api: str, url: str, headers: tuple[tuple[str, str], ...], body: bytes, request: Request | None,
    options: Options,
) -> ProfileChoice:
    name, model = options.profile or raw.profile, request.model if request else None
    if name is not None:
        try:
            return profile_named(name, model)
        except CallerError:
            if options.profile is not None:
                raise  # a recorded name that is unknown here comes from a newer version of this program
    return choose(api, url, headers, body, model)


_ADDRESSES = frozenset({"profile.host", "profile.url", "profile.port"})
"""The rules that recognise a server by its address."""


def _asks_a_model(raw: RawExchange, api: str, choice: ProfileChoice, request: Request | None) -> bool:
    """Whether the request certainly asks a model: it names one, has messages, and its address is the format's own."""
    return _is_own_address(raw, api, choice) and request is not None and bool(request.model) and bool(request.messages)


def _is_own_address(raw: RawExchange, api: str, choice: ProfileChoice) -> bool:
    """Whether the address is the format's own. Many applications use a path without a numbered version (`/api/chat`)
    with answers of other forms, so such a path counts only at the address of a known server."""
    own_path = wire(api).home.version.startswith("/v") and not FORMATS[api].common_path
    return raw.api is not None or own_path or any(seen.rule in _ADDRESSES for seen in choice.evidence)


def _is_uncertain(
    raw: RawExchange, api: str, choice: ProfileChoice, response: ChatResponse, options: Options
) -> bool:
    """Whether the API is known only by the path, or only by `--api` for a body that is not streamed."""
    if raw.url:
        # A failed connection explains why the answer has nothing of the API.
        return raw.api is None and options.api is None and not (raw.problem and _is_own_address(raw, api, choice))
    alone = options.api is not None and raw.request_text is None and not response.streaming
    return alone and not any(finding.rule == "body.cut" for finding in response.findings)


def _says_nothing(response: ChatResponse, request: Request | None) -> bool:
    """Whether neither request nor response has anything of the API that the path suggested, as in a chat application
    with the same path."""
    if response.parts or response.stop_reason.raw or response.error or response.usage or response.id:
        return False
    return request is None or not request.messages
