"""Finds whether an answer used all the output tokens that its request allows, and whether its text shows a cut then."""

from __future__ import annotations

from loop_core.judge.endings import has_calls, hit_stop_string, stop_string_unknown
from loop_core.judge.signs import Sign, stops_in_the_middle
from loop_core.values import ChatResponse, ReasoningPart, Request


def spent_cap(response: ChatResponse, request: Request | None) -> tuple[int, int] | None:
    """The output tokens and the cap, if the response is known to have used the whole cap; None otherwise."""
    cap, usage = request.max_tokens if request else None, response.usage
    if cap is None or usage is None or usage.output_tokens is None or usage.output_tokens < cap:
        return None
    if response.other_choices or (request is not None and request.n > 1):
        return None  # the usage is the sum over all choices, the cap is for each
    return usage.output_tokens, cap


def maybe_cut_at_cap(response: ChatResponse, request: Request | None) -> bool:
    """Whether a response may be cut: it used all allowed tokens, and shows neither reasoning nor a stop string."""
    return spent_cap(response, request) is not None and not (has_reasoning(response) or hit_stop_string(response))


def cut_at_cap(response: ChatResponse, request: Request | None) -> Sign | None:
    """The sign that a text which used all allowed tokens stops in the middle; None if there is none.

    A stop string ends a text anywhere, so if one may have been hit, no sign is searched.
    """
    if spent_cap(response, request) is None or has_reasoning(response) or has_calls(response):
        return None
    if hit_stop_string(response) or stop_string_unknown(response, request):
        return None
    return stops_in_the_middle(response.text or "")


def has_reasoning(response: ChatResponse) -> bool:
    """Whether reasoning was seen or reported."""
    reported = response.usage is not None and bool(response.usage.reasoning_tokens)
    return reported or any(type(part) is ReasoningPart for part in response.parts)
