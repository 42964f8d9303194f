"""Credentials that no single run of bytes holds: a server spelled them over several events, or an answer over segments.

They are found in the text that the pieces make, and each piece is masked where it stands in the body, so that neither a
view nor a session that is exported and read again can put them together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from inspector.sessions import detection, redact
from inspector.sessions.provenance import provenance
from inspector.sessions.recording import Exchange, TurnRecord
from loop_core.errors import DecodeError
from loop_core.values import ChatResponse
from loop_core.wire import decode_response, wire
from loop_core.wire.eventstream import reseal
from loop_core.wire.profile import Profile

EDGE = 400
"""Bytes on each side of a seam between two answers in which a credential is looked for."""
HALF = 8
"""A shorter piece of a credential is a word that may stand anywhere: it is masked where it was found, and nowhere
else."""


class SpelledPiece(NamedTuple):
    """A piece of a fact: where it begins in what all pieces make, what it spells, and where that is spelled."""

    first: int
    plain: bytes
    places: list[int]
    """For each byte of `plain`, and its end, its place in the body."""


def hidden(body: bytes, api: str, response: ChatResponse, counts: redact.Counts | None = None) -> bytes:
    """The same body, as long, with the pieces of credentials masked that are whole only in the answer's texts.

    The body has been through `redact.body`; where the texts hold nothing more, which is nearly always, it comes back as
    it is.
    """
    said = _raw("\n".join(texts(response)))
    if not said or not detection.spans(said):
        return body
    found: list[detection.CredentialSpan] = []
    for pieces in pieces_of(body, api, response).values():
        for span in detection.spans(b"".join([piece.plain for piece in pieces])):
            found += placed(pieces, span)
            redact.count(counts, span.name)
    return redact.masked(body, sorted(found))


def texts(response: ChatResponse) -> Iterator[str]:
    """The texts of an answer that may come in pieces."""
    for said in (response.text, response.reasoning_content, response.refusal):
        if said:
            yield said
    for call in (*response.tool_calls, *response.server_calls):
        if call.arguments:
            yield call.arguments


def pieces_of(body: bytes, api: str, response: ChatResponse) -> dict[str, list[SpelledPiece]]:
    """Every fact of an answer with the pieces of the body that spell it; nothing where the body cannot be read."""
    try:
        read = provenance(api, body, response)
    except DecodeError:
        return {}
    found: dict[str, list[SpelledPiece]] = {}
    for fact in read.facts:
        made = found.setdefault(fact, [])
        first = 0
        for start, end in [(each.start, each.end) for each in read.of(fact)]:
            quoted = body[start : start + 1] == b'"' and end - start >= 2
            plain, at = redact.unescaped(body[start + quoted : end - quoted])
            made.append(SpelledPiece(first, plain, [start + quoted + place for place in at]))
            first += len(plain)
    return found


def placed(pieces: Sequence[SpelledPiece], span: detection.CredentialSpan) -> Iterator[detection.CredentialSpan]:
    """Where in the body the pieces of a span are spelled."""
    for piece in pieces:
        start, end = max(span.start - piece.first, 0), min(span.end - piece.first, len(piece.plain))
        if start < end:
            yield detection.CredentialSpan(piece.places[start], piece.places[end], span.name)


def across(
    exchanges: list[Exchange], turns: Sequence[TurnRecord], counts: Mapping[str, redact.Counts]
) -> list[Exchange]:
    """The exchanges with credentials masked that lie across a seam: the end of one answer and the beginning of the
    next.

    A piece of such a credential is also masked in the requests, which repeat the answer so far. `counts` learns what
    was masked, by the file that the exchange came from.
    """
    made, said = list(exchanges), dict[str, str]()
    for turn in turns:
        for before, after in pairwise([link.index for link in turn.links]):
            said |= _mend(made, before, after, counts.get(made[before].path))
    if not said:
        return made
    pieces = re.compile("|".join(re.escape(piece) for piece in sorted(said, key=len, reverse=True)))
    return [_unsaid(exchange, pieces, said) for exchange in made]


def _mend(made: list[Exchange], before: int, after: int, counts: redact.Counts | None) -> dict[str, str]:
    """Masks what lies across one seam; the pieces, and what stands in their place."""
    said: dict[str, str] = {}
    first, second = _raw(made[before].response.text or ""), _raw(made[after].response.text or "")
    if not first or not second:
        return said
    tail, head = first[-EDGE:], second[:EDGE]
    for start, end, name in detection.spans(tail + head):
        if end <= len(tail):
            continue  # it stands in the first answer alone, and was looked for there
        redact.count(counts, name)
        # Where the seam lies between a name and its value, all of the credential is in the second answer.
        since, until = max(start - len(tail), 0), end - len(tail)
        halves = (tail[start:], head[since:until])
        if halves[0]:
            seam = detection.CredentialSpan(len(first) - len(halves[0]), len(first), name)
            made[before] = _without(made[before], seam)
        made[after] = _without(made[after], detection.CredentialSpan(since, until, name))
        # The requests repeat the answer so far: they get the very masks that stand in it, or no turn could be followed.
        shown = (_raw(made[before].response.text or "")[len(first) - len(halves[0]) :],
                 _raw(made[after].response.text or "")[since:until])
        said |= {half.decode("utf-8", "replace"): mask.decode("utf-8", "replace")
                 for half, mask in zip(halves, shown, strict=True) if len(half) >= HALF}
    return said


def _without(exchange: Exchange, span: detection.CredentialSpan) -> Exchange:
    """The exchange with a span of its text masked."""
    pieces = pieces_of(exchange.body, exchange.api, exchange.response).get("text", [])
    return again(exchange, redact.masked(exchange.body, sorted(placed(pieces, span))))


def _unsaid(exchange: Exchange, pieces: re.Pattern[str], shown: Mapping[str, str]) -> Exchange:
    """The exchange with the pieces of credentials masked in its request."""

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: clean(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [clean(inner) for inner in value]
        return pieces.sub(lambda found: shown[found[0]], value) if isinstance(value, str) else value

    said = clean(exchange.request_json)
    if said == exchange.request_json:
        return exchange
    request = wire(exchange.api).read_request(said, exchange.url) if isinstance(said, dict) else exchange.request
    return replace(exchange, request_json=said, request=request)


def again(exchange: Exchange, body: bytes) -> Exchange:
    """The exchange with another body of the same length, decoded again."""
    if body == exchange.body or exchange.recorder is not None:
        return exchange
    body = reseal(body, exchange.body)
    return replace(exchange, body=body, response=decoded_again(exchange, body, exchange.profile))


def decoded_again(exchange: Exchange, body: bytes, profile: Profile) -> ChatResponse:
    """What another body of an exchange, or the same one by another profile's words, is decoded to."""
    request, before = exchange.request, exchange.response
    response = decode_response(
        exchange.api,
        body,
        http_status=before.http_status,
        headers=exchange.headers,
        n=request.n if request else 1,
        background=request.background if request else False,
        words=profile.words,
        end=before.transport_end,
    )
    # What the recorder says of the connection is in no byte of the body.
    told = [found for found in before.findings if found.rule.startswith("transport.")]
    lost = [found for found in told if found not in response.findings]
    return replace(response, findings=(*response.findings, *lost))


def _raw(said: str) -> bytes:
    return said.encode("utf-8", "surrogatepass")
