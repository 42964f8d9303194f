"""What agents write after a cut: the table of known hints, and the test for a message that repeats the cut text.

A user message after a cut is a continuation only if a row here knows it, or if it quotes what was cut: everything else
that a user says is a new turn. The patterns are our own; each row names where the wording was met.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Hint(NamedTuple):
    """One wording; the pattern is searched in the message, white space folded, letters in lower case."""

    name: str
    pattern: re.Pattern[str]
    source: str


def _hint(name: str, pattern: str, source: str) -> Hint:
    return Hint(name, re.compile(pattern), source)


_HERE = r"(?:where|at the point|from the point|from the (?:exact )?(?:place|spot)) (?:that )?(?:you|it|the (?:text|answer|output|response))"

HINTS: tuple[Hint, ...] = (
    _hint(
        "continue_exactly",
        rf"\b(?:continue|resume|go on|pick up|carry on)\b[^.!?]{{0,40}}\b{_HERE}",
        "seed 000 (continuation hint); Hermes; ZeroClaw",
    ),
    _hint(
        "previous_cut",
        r"\b(?:previous|last|your) (?:response|message|output|answer|reply|generation|turn)\b[^.!?]{0,40}"
        r"\b(?:truncated|cut (?:off|short)|incomplete|interrupted mid|hit the (?:output|token|length))",
        "Hermes; gsd-pi; seed 000",
    ),
    _hint(
        "limit_hit",
        r"\b(?:output|response|completion|max(?:imum)?)[ _-](?:output[ _-])?(?:token[s]?|length)(?: limit)? "
        r"(?:was |has been |is )?(?:hit|reached|exceeded)",
        "Claude Code; typeclaw",
    ),
    _hint(
        "no_recap",
        r"\b(?:resume|continue)\b.{0,60}\b(?:no|without|do not|don't)\b.{0,20}\b(?:apolog|recap|repeat|preamble|restat)",
        "Claude Code; cursor2api",
    ),
    _hint(
        "do_not_repeat",
        r"\bdo not (?:repeat|restate|restart|regenerate)\b.{0,60}\b(?:already|previous|sent|wrote|written|text|beginning)",
        "seed 000 (continuation hint)",
    ),
    _hint(
        "bare_continue",
        r"^(?:please |now )?(?:continue|go on|keep going|carry on|resume|proceed)(?: please| writing| generating| your (?:response|answer))?"
        r"(?: the (?:response|answer|output|text))?[ .!…]*$",
        "LibreChat; bedrock-access-gateway; pi-length-continue",
    ),
    _hint(
        "call_cut",
        r"\b(?:tool|function) (?:call|use|arguments?|payload)s?\b[^.!?]{0,60}\b(?:truncated|cut (?:off|short)|incomplete|"
        r"malformed|invalid json|not valid json|never finished)",
        "seed 000 (tool repair); Hermes; DeepChat; Strands",
    ),
    _hint(
        "resend_call",
        r"\b(?:re-?send|re-?issue|re-?emit|retry|repeat)\b[^.!?]{0,60}\b(?:tool|function|call|arguments|payload|json)\b",
        "pi #6285; seed 000 (tool repair)",
    ),
    _hint(
        "split_call",
        r"\b(?:split|break)\b[^.!?]{0,60}\b(?:smaller|several|multiple|parts?|chunks?)\b[^.!?]{0,40}\b(?:call|write|tool)s?\b",
        "Hermes; cynative",
    ),
)

RESULTS: tuple[Hint, ...] = (
    _hint(
        "cut_result",
        r"\b(?:truncated|cut (?:off|short)|incomplete|output (?:token )?limit|max[_ ]?(?:output[_ ])?tokens|length limit)\b",
        "pi #6285; OpenClaw; Zoo-Code",
    ),
    _hint(
        "not_run",
        r"\b(?:not (?:been )?(?:executed|run)|was (?:blocked|held|rejected|discarded)|re-?issue)\b",
        "pi #6285; agentao",
    ),
    _hint(
        "invalid_arguments",
        r"\b(?:invalid|malformed|unparsable|could not parse|failed to parse)\b.{0,30}\b(?:json|arguments?|input|parameters?)\b|"
        r"\binputvalidationerror\b",
        "Claude Code; pydantic-ai; LangChain",
    ),
)
"""How agents tell a model, in a tool result, that its call was cut and did not run."""

_LONG = 600
"""A hint is short, or stands at the beginning of what follows it."""
_QUOTE = 24
"""Characters, white space left out, that a message must repeat of a cut text's end."""


def known_hint(text: str) -> str | None:
    """The name of the hint that `text` gives; None where it gives none that is known."""
    return _search(HINTS, text)


def cut_result(text: str) -> str | None:
    """The name of the wording by which a tool result says that its call was cut; None where it says nothing of it."""
    return _search(RESULTS, text)


def _search(rows: tuple[Hint, ...], text: str) -> str | None:
    folded = " ".join(text[:_LONG].lower().replace("\u2019", "'").split())
    return next((row.name for row in rows if row.pattern.search(folded)), None)


def quotes_end(text: str, cut: str) -> bool:
    """Whether `text` repeats the end of the text that was cut."""
    end = "".join(cut.split())[-_QUOTE:]
    return len(end) == _QUOTE and end in "".join(text.split())
