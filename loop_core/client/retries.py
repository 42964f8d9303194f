"""Whether a request is sent again, and when: by what the server asks for, bounded. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from pydantic_core import from_json

from loop_core.client.exchange import UNREADABLE, Heard
from loop_core.values import CallKind, OpaquePart, Request, ToolCall, TransportEnd
from loop_core.wire.failures import RETRYABLE_STATUS


@dataclass(frozen=True, slots=True)
class Retries:
    """The bounds. Sent again is what gave no answer at all, and an answer that broke before anything of it could be
    seen; what was cut later is for the machine to judge."""

    most: int = 3
    """How often one request is sent again."""
    longest: float = 60.0
    """Seconds; a server that asks for more is not waited for."""
    first: float = 1.0
    """Seconds before the first retry where the server names no time; doubled each time."""

    def wait(self, heard: Heard) -> float | None:
        """Seconds until the request is sent again; None where it is not."""
        attempt = heard.ask.attempt
        if attempt >= self.most or not retryable(heard):
            return None
        asked = retry_after(heard.headers)
        wait = min(self.first * 2**attempt, self.longest) if asked is None else asked
        return wait if wait <= self.longest else None


def retryable(heard: Heard) -> bool:
    """Whether the same request may get an answer, and nothing that anybody saw or ran would come twice."""
    if heard.status is None:
        lost = heard.response.transport_end in (TransportEnd.RESET, TransportEnd.TIMEOUT)
        return lost and not (heard.left and kept_there(heard.ask.request))
    if heard.status >= 400:
        return heard.status in RETRYABLE_STATUS
    return heard.status < 300 and broke(heard) and unseen(heard) and not kept_there(heard.ask.request)


def broke(heard: Heard) -> bool:
    """Whether an answer that was begun did not come to its end, by no will of ours."""
    response = heard.response
    if response.transport_end is TransportEnd.ABORTED:
        return False
    if response.error is not None and response.error.type == UNREADABLE:
        return heard.body.lstrip()[:1] in (b"{", b"[", b"")  # JSON that was cut, and no page of a gateway
    if response.error is not None:
        return response.error.retryable
    if response.saw_stop_reason or response.saw_done or heard.judged.cap_reached:
        return False  # it came to its end, or its budget did
    return response.streaming or response.transport_end is not TransportEnd.EOF or not _is_json(heard.body)


def _is_json(body: bytes) -> bool:
    try:
        from_json(body)
    except ValueError:
        return False
    return True


def unseen(heard: Heard) -> bool:
    """Whether nothing of an answer could be seen, and no tool of the server was begun.

    A body that came as a whole is seen once it is whole; but what it holds of the server's tools is not known then.
    """
    response, request = heard.response, heard.ask.request
    if response.refusal:
        return False
    if not response.streaming and any(tool.kind is CallKind.SERVER for tool in request.tools):
        return False
    if any(type(part) is OpaquePart or (type(part) is ToolCall and part.kind is CallKind.SERVER)
           for part in response.parts):
        return False
    return not response.streaming or not (response.text or "").strip()


def kept_there(request: Request) -> bool:
    """Whether the server keeps what it was asked for: the same request again would stand there twice."""
    extra = request.extra
    return bool(request.background or request.previous_id or extra.get("store") is True or extra.get("conversation"))


def retry_after(headers: Iterable[tuple[str, str]]) -> float | None:
    """The seconds that a server asks to wait; None where it does not say. A date counts from the answer's own date."""
    seen = {name.lower(): value.strip() for name, value in headers}
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(seen[name]) / unit
        except (KeyError, ValueError):
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    try:
        until = parsedate_to_datetime(seen["retry-after"]) - parsedate_to_datetime(seen["date"])
    except (KeyError, ValueError, TypeError):
        return None
    return max(0.0, until.total_seconds())
