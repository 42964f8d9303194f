"""The keys of the app that follow an advice. Reports print the advice too, where there is no key to press."""

from __future__ import annotations

from collections.abc import Mapping

from inspector.report.advice import LIVE, TRIED, UNSEEN, Advice
from inspector.report.lines.glyphs import hint
from inspector.report.lines.spans import Line, Span, Tone

KEYS: Mapping[str, str] = {
    **dict.fromkeys(TRIED.values(), "F makes this run"),
    LIVE: "F asks the provider or a stand-in",
    UNSEEN: "L runs a new live turn",
}
"""The end of an advice -> the key that follows it."""


def key_of(advice: str) -> str:
    """What the key for an advice does; empty if no key follows the advice."""
    return next((does for end, does in KEYS.items() if advice.endswith(end)), "")


def key_line(advice: str) -> Line:
    """What the key for an advice does, as the end of a line; empty if no key follows the advice."""
    does = key_of(advice)
    return (Span(" · ", Tone.DIM), *hint(does, sentence=True)) if does else ()


def key_first(advice: str) -> Line:
    """The key for an advice, for a place where the end of the advice may be cut off; empty if no key follows it."""
    does = key_of(advice)
    return (Span(does.partition(" ")[0], Tone.PRESS), Span(": ", Tone.DIM)) if does else ()


def why_no_run(advice: Advice) -> str:
    """Why an advice cannot be tried: the rest was not recorded, or no setting is the cause of the verdict."""
    if advice.text.endswith(UNSEEN):
        return f"the rest was not recorded · {KEYS[UNSEEN]}"
    return f"no setting changes this · {advice.text}"
