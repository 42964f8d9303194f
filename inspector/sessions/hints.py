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
    pattern: str
    source: str
    call: bool = False
    """Whether it speaks of a tool call, and means nothing where none was cut."""


def _hint(name: str, source: str, *pattern: str, call: bool = False) -> Hint:
    return Hint(name, "".join(pattern), source, call)


HINTS: tuple[Hint, ...] = (
    _hint(
        "continue_exactly", "seed 000 (continuation hint); Hermes; ZeroClaw",
        r"\b(?:continue|resume|go on|pick up|carry on)\b[^.!?]{0,40}",
        r"\b(?:where|(?:at|from) the (?:exact )?(?:point|place|spot)) (?:where |that )?",
        r"(?:you|it|the (?:text|answer|output|response)) (?:\w+ )?(?:left|stop|cut|end|broke|break|were|was|paused)",
    ),
    _hint(
        "previous_cut", "seed 000; Hermes; gsd-pi",
        r"\b(?:previous|last|your) (?:response|message|output|answer|reply|generation|turn)\b[^.!?,;]{0,40}",
        r"\b(?:truncated|cut (?:off|short)|incomplete|interrupted mid|hit the (?:output|token|length))",
    ),
    _hint(
        "limit_hit", "Claude Code; typeclaw",
        r"\b(?:output|response|completion|max(?:imum)?)[ _-](?:output[ _-])?(?:token[s]?|length)(?: limit)? ",
        r"(?:was |has been |is )?(?:hit|reached|exceeded)",
    ),
    _hint(
        "no_recap", "Claude Code; cursor2api",
        r"\b(?:resume|continue)\b.{0,60}\b(?:no|without|do not|don't)\b.{0,20}",
        r"\b(?:apolog|recap|repeat|preamble|restat)",
    ),
    _hint(
        "do_not_repeat", "seed 000 (continuation hint)",
        r"\bdo not (?:repeat|restate|restart|regenerate)\b.{0,60}",
        r"\b(?:already[ -](?:sent|said|wrote|written|given|above)|previous|sent|wrote|written|text|beginning)",
    ),
    _hint(
        "bare_continue", "LibreChat; bedrock-access-gateway; pi-length-continue",
        r"^(?:please |now )?(?:continue|go on|keep going|carry on|resume|proceed)",
        r"(?: please| writing| generating)?(?: (?:the|your) (?:response|answer|output|text))?[ .!…]*$",
    ),
    _hint(
        "call_cut", "seed 000 (tool repair); Hermes; DeepChat; Strands",
        r"\b(?:call|tool use|function|arguments?|payload)s?\b[^.!?]{0,60}",
        r"\b(?:truncated|cut (?:off|short)|incomplete|malformed|invalid json|not valid json|never finished)",
        call=True,
    ),
    _hint(
        "resend_call", "seed 000 (tool repair); pi #6285",
        r"\b(?:re-?(?:send|issue|emit|do|try|generate)|repeat|send|emit|issue|make)\b[^.!?]{0,60}",
        r"\b(?:tool|function|call|arguments|payload|json)\b",
        call=True,
    ),
    _hint(
        "split_call", "Hermes; cynative",
        r"\b(?:split|break)\b[^.!?]{0,60}\b(?:smaller|several|multiple|parts?|chunks?)\b[^.!?]{0,40}",
        r"\b(?:call|write|tool)s?\b",
        call=True,
    ),
)

RESULTS: tuple[Hint, ...] = (
    _hint(
        "cut_result", "pi #6285; OpenClaw; Zoo-Code",
        r"\b(?:truncated|cut (?:off|short)|incomplete|output (?:token )?limit|",
        r"max[_ ]?(?:output[_ ])?tokens|length limit)\b",
    ),
    _hint(
        "not_run", "pi #6285; agentao",
        r"\b(?:not (?:been )?(?:executed|run)|was (?:blocked|held|rejected|discarded)|re-?issue)\b",
    ),
    _hint(
        "invalid_arguments", "Claude Code; pydantic-ai; LangChain",
        r"\b(?:invalid|malformed|unparsable|could not parse|failed to parse)\b.{0,30}",
        r"\b(?:json|arguments?|input|parameters?)\b|\binputvalidationerror\b",
    ),
)
"""How agents tell a model, in a tool result, that its call was cut and did not run."""

_LONG = 600
"""A hint is short, or stands at the beginning of what follows it."""
_QUOTE = 24
"""Characters, white space left out, that a message must repeat of a cut text's end."""


def known_hint(text: str, call: bool = True) -> str | None:
    """The name of the hint that `text` gives after a cut (of a call, or of text alone); None where it gives none."""
    return _search(HINTS if call else tuple(row for row in HINTS if not row.call), text)


def cut_result(text: str) -> str | None:
    """The name of the wording by which a tool result says that its call was cut; None where it says nothing of it."""
    return _search(RESULTS, text)


def _search(rows: tuple[Hint, ...], text: str) -> str | None:
    folded = " ".join(text[:_LONG].lower().replace("\u2019", "'").split())
    return next((row.name for row in rows if re.search(row.pattern, folded)), None)


def quotes_end(text: str, cut: str) -> bool:
    """Whether `text` repeats the end of the text that was cut."""
    end = "".join(cut.split())[-_QUOTE:]
    return len(end) == _QUOTE and end in "".join(text.split())
