"""Reads one response of a provider: why it stopped, which of its tool calls may run, and the bytes behind both.

`read` is a pure function. It combines the wire format's decoder, the server's profile, the judge and the gate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from loop_core.errors import CallerError, check_kinds
from loop_core.judge.classify import Judgement, judge
from loop_core.judge.endings import DAMAGED
from loop_core.judge.gate import Verdict, admit_response
from loop_core.turn.state import ProviderResponse
from loop_core.values import ChatResponse, Evidence, Finding, Request, Severity, Stop, TransportEnd, Usage
from loop_core.wire import Headers, decode_request, decode_response, header_pairs, pieces_of
from loop_core.wire.profiles import choose, native_reading, profile_named


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Reading:
    """The result of `read`. Decide by `stop_reason`, and run only the calls whose verdict is `ready`."""

    response: ChatResponse
    """The decoded response. Its `stop_reason` is the mapped one, which follows from the wire format's table alone."""
    judgement: Judgement
    """The mapped and the effective stop reason, with all corrections."""
    calls: tuple[Verdict, ...] = ()
    """Every call that the client would have to run, in order, each with the gate's verdict: `ready` (then `arguments`
    holds the parsed object), `held` or `rejected`, and the reason in `why`."""

    def __repr__(self) -> str:
        calls = len(self.calls)
        word = f"{self.stop_reason}, {self.raw!r}" if self.raw is not None else f"{self.stop_reason}, no word"
        return f"<Reading {word}: {len(self.text):,} characters, {calls} call{'' if calls == 1 else 's'}>"

    @property
    def stop_reason(self) -> Stop:
        """The effective reason: `max_tokens` for a call that was cut, whatever word the provider sent."""
        return self.judgement.stop.normalized

    @property
    def mapped(self) -> Stop:
        """The table's meaning of the provider's word, before the rest of the response is considered."""
        return self.judgement.mapped.normalized

    @property
    def raw(self) -> str | None:
        """The provider's word, verbatim; None if it sent none."""
        return self.judgement.mapped.raw

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The rules that led to `stop_reason`, in order, each with the bytes that it read."""
        return self.judgement.stop.evidence

    @property
    def text(self) -> str:
        """The visible text; empty if there is none."""
        return self.response.text or ""

    @property
    def usage(self) -> Usage | None:
        """Token counts as the provider reported them; None if it reported none."""
        return self.response.usage

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings about the response: quirks of its bytes, and words that contradict the bytes."""
        return (*self.response.findings, *self.judgement.findings)

    @property
    def event(self) -> ProviderResponse:
        """The response as an event for `step`, for the caller's own loop or source."""
        return ProviderResponse(self.response, self.judgement, live=True)


def read(
    api: str,
    chunks: Iterable[bytes] | bytes,
    *,
    request: Request | Mapping[str, Any] | bytes | None = None,
    http_status: int | None = None,
    headers: Headers = (),
    url: str = "",
    profile: str | None = None,
    end: TransportEnd = TransportEnd.EOF,
) -> Reading:
    """Reads one response: why it stopped, and which of its tool calls may run.

    Args:
        api: the id of the wire format, a key of `loop_core.wire.FORMATS`, such as openai_chat.
        chunks: the body, whole or cut anywhere: JSON, or a stream of any framing that the format has.
        request: the request, as a `Request`, or its body, as JSON or as bytes. It gives the output cap and the tools'
            schemas; without it a call is checked for completeness only.
        http_status: the status; an error status makes the reason `error`.
        headers: the headers of the response, as pairs or as a mapping.
        url: the URL of the request; it shows which server answered.
        profile: the name of the server's profile, if the caller knows it; otherwise it is detected.
        end: how the connection ended: `TransportEnd.RESET`, if an exception ended the reading; `TransportEnd.DAMAGED`,
            if the checksum of a compressed body was wrong.

    Raises:
        CallerError: there is no such API or profile, the body is text instead of bytes, the request is neither a
            `Request` nor a body, or another argument has the wrong type.
        DecodeError: the bytes are not a body of this format, or those of the request not a JSON object. A cut body is
            read as far as it goes.
    """
    check_kinds(("api", api, str), ("url", url, str), ("profile", "" if profile is None else profile, str))
    body, headers = b"".join(pieces_of(chunks)), header_pairs(headers)
    chat_request = decode_request(api, request, url=url) if isinstance(request, (Mapping, bytes)) else request
    if not isinstance(chat_request, Request | None):
        raise CallerError(f"request: expected a Request, or its body as JSON or bytes, not {type(request).__name__}")
    model = chat_request.model if chat_request is not None else None
    chosen = choose(api, url, headers, body, model) if profile is None else profile_named(profile, model)
    response = decode_response(
        api, body, http_status=http_status, headers=headers, n=chat_request.n if chat_request is not None else 1,
        background=chat_request.background if chat_request is not None else False, words=chosen.profile.words, end=end,
    )
    if end is TransportEnd.DAMAGED:
        damage = Finding(DAMAGED, Severity.WARNING, "the content does not match its checksum")
        response = replace(response, findings=(*response.findings, damage))
    judged = judge(response, chat_request, chosen.profile, native_reading(response, chosen.profile))
    return Reading(response, judged, admit_response(response, judged, chat_request))
