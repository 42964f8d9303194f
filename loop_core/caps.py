"""What a request may ask for: the output cap within the token bound, and what a server refused to take of ours.

A larger cap, a forced call and a prefill are tried, since they save requests; a server that answers with a 400 is asked
once more without. Pure, like the moves that ask here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from loop_core.limits import Limits, least_cap
from loop_core.policy import Policy
from loop_core.seam import Method
from loop_core.turn import Place, Send, Turn
from loop_core.values import Request


def first_cap(request: Request, limits: Limits, policy: Policy) -> int | None:
    """The output cap of the first request of a turn: its own, within the token bound."""
    bound = limits.continuation_max_total_completion_tokens
    if bound is None or not policy.lacks.isdisjoint(("tokens", "room")):
        return request.max_tokens  # a bound that is derived is no smaller
    return max(least_cap(request), bound if request.max_tokens is None else min(bound, request.max_tokens))


def within(turn: Turn, cap: int | None) -> int | None:
    """An output cap within what is left of the token bound; guards see to it that a request fits."""
    room = turn.room
    return room if cap is None else cap if room is None else min(cap, room)


class Refusal(NamedTuple):
    """One row: what of our own doing a server may refuse with a 400, and the words that must stand in its error."""

    name: str
    tried: Callable[[Turn, Send], bool]
    words: re.Pattern[str]


REFUSALS: tuple[Refusal, ...] = (
    Refusal("cap", lambda turn, sent: sent.lower_cap is not None, re.compile("token|num_predict", re.IGNORECASE)),
    Refusal("choice",
            lambda turn, sent: sent.place is Place.REPAIR and sent.tool_choice != turn.request.tool_choice,
            re.compile("tool|function|thinking", re.IGNORECASE)),
    Refusal("prefill", lambda turn, sent: turn.answers[-1][-1].method is Method.PREFILL, re.compile("")),
)
"""A larger cap, a forced call, a prefill: what is refused is left out of the next request, and not tried again."""
REFUSED_STATUS = frozenset({400, 422})


def refusal(turn: Turn) -> Refusal | None:
    """What the server refused of what we put into the request; None where its answer is no such refusal."""
    seen, sent = turn.evaluated, turn.sent
    if seen is None or sent is None or seen.response.http_status not in REFUSED_STATUS or not turn.policy.settles:
        return None
    error = seen.response.error
    if error is None or sent.place not in (Place.CONTINUATION, Place.REPAIR):
        return None
    said = " ".join(word for word in (error.code, error.type, error.message) if word)
    return next((row for row in REFUSALS
                 if row.name not in turn.refused and row.tried(turn, sent) and row.words.search(said)), None)


def raised(turn: Turn, wanted: bool) -> tuple[int | None, int | None]:
    """The cap of the next request, twice that of the last where that was too small; and the one to go back to."""
    sent = turn.sent
    if sent is None or sent.max_tokens is None:
        return within(turn, None), None
    if refused_now(turn):
        if "cap" in turn.refused and sent.lower_cap is not None:
            return within(turn, sent.lower_cap), None
        return within(turn, sent.max_tokens), sent.lower_cap
    if not wanted or "cap" in turn.refused:
        return within(turn, sent.max_tokens), None
    more = within(turn, sent.max_tokens * 2)
    return more, sent.max_tokens if more is not None and more > sent.max_tokens else None


def refused_now(turn: Turn) -> bool:
    """Whether the response at hand is a refusal of our own doing, that the next request leaves out."""
    seen = turn.evaluated
    return bool(turn.refused) and seen is not None and seen.response.http_status in REFUSED_STATUS
