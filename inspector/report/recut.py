"""A simulated answer as an exchange: the bytes that the provider would have sent, and the request that led to them.

What shows or judges an exchange then needs no other way for answers that are in no recording.
"""

from __future__ import annotations

from collections.abc import Mapping

from inspector.sessions.values import Exchange, Place
from loop_core.frozen import replace
from loop_core.turn import Place as Asked
from loop_core.turn import Recut, Responded, Send, Turn
from loop_core.values import Message, Request

PLACES: Mapping[Asked, Place] = {
    Asked.REQUEST: Place.REQUEST, Asked.CONTINUATION: Place.CONTINUATION,
    Asked.REPAIR: Place.REPAIR, Asked.RESUME: Place.RESUME, Asked.NUDGE: Place.NUDGE,
}


def exchange_of(opening: Exchange, event: Responded, before: Turn) -> Exchange:
    """The exchange of an answer that is in no recording; `opening` is the recorded one that its turn began with."""
    body = event.recut.body if event.recut is not None else b""
    return replace(
        opening, request=request_of(before), request_json=None, response=event.response, body=body, headers=(),
        request_headers=(), recorded=event.recut is not None, started=None, duration_ms=None, chunks=(), recorder=None,
        lines=(),
    )


def request_of(turn: Turn) -> Request:
    """The request that is, or was last, under way, with its cap."""
    cap = turn.sent.max_tokens if turn.sent is not None else turn.request.max_tokens
    return replace(turn.request, messages=messages_of(turn, turn.sent), max_tokens=cap)


def messages_of(turn: Turn, send: Send | None) -> tuple[Message, ...]:
    """What a request sends: the history, and what is appended for this request."""
    return (*turn.history, *send.added) if send is not None and send.added else turn.history


def place_of(before: Turn) -> Place:
    """The place in the turn of the request that an answer came to."""
    return PLACES[before.sent.place] if before.sent is not None else Place.REQUEST


def why_of(recut: Recut | None) -> str:
    """How an answer was made, in a few words."""
    if recut is None:
        return "in no recording"
    return "cut again without a cap" if recut.budget is None else f"cut again at max_tokens {recut.budget:,}"
