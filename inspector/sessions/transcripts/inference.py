"""How an answer ended whose row has no stop reason: rules over its own row and those that follow it.

Claude Code leaves the word out by design since 1.0.10 (claude-code #1546): a row is written when its block is complete,
and the word comes later. The rules are a table, the strictest first. A rule that finds nothing says nothing, and an
answer of which no rule knows anything stays `unknown`, with the detail `not_recorded`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from inspector.sessions.hints import known_hint
from inspector.sessions.transcripts import provenance
from inspector.sessions.transcripts.answer import Answer, Said
from loop_core.values import At, Part, Stop, StopReason, ToolResultPart

KNOWN_CAPS = frozenset({4_096, 8_192, 16_384, 32_000, 32_768, 64_000, 65_536, 128_000})
"""Output caps that Claude models and Claude Code have by default: exactly so many tokens are no accident."""
INTERRUPTED = "[Request interrupted by user"
AT_A_TOOL = "[Request interrupted by user for tool use"
"""The answer was whole by then: what was stopped is the tool."""
_REFUSED = re.compile(r"InputValidationError|required parameter .{0,80} is missing|missing required parameter", re.I)


class Shown(NamedTuple):
    """What a rule read."""

    stop: Stop
    note: str
    at: At | None = None


Caps = frozenset[int]
"""Output caps that the rows of a file state."""
Rule = Callable[[Answer, Caps], Shown | None]


def error_row(answer: Answer, caps: Caps) -> Shown | None:
    """The agent's own row after it: the output cap, or the context, was exceeded."""
    for row in answer.after:
        if row.mark in ("cap", "context"):
            stop = Stop.MAX_TOKENS if row.mark == "cap" else Stop.CONTEXT_WINDOW_EXCEEDED
            return Shown(stop, f"line {row.line}: {row.text[:120]}", At(Part.BODY, *_last_row(answer)))
    return None


def refused_call(answer: Answer, caps: Caps) -> Shown | None:
    """Its last call was refused because an argument is missing: what a cut leaves of a call (claude-code #24055)."""
    calls = answer.calls
    if not calls or answer.parts[-1] is not calls[-1]:
        return None
    result = answer.results.get(calls[-1].id or "")
    if result is None or not result.is_error or _REFUSED.search(result.text[:2_000]) is None:
        return None
    return Shown(Stop.MAX_TOKENS, f"its last call, {calls[-1].name}, was refused for a missing argument", _REQUEST)


def tokens_at_cap(answer: Answer, caps: Caps) -> Shown | None:
    """Its output tokens are exactly a cap that the file states, or that is a default."""
    used = answer.usage.output_tokens if answer.usage else None
    if used is None or used not in caps | KNOWN_CAPS:
        return None
    source = "that this file states" if used in caps else "by default"
    return Shown(Stop.MAX_TOKENS, f"its {used:,} output tokens are exactly a cap {source}")


def interrupted(answer: Answer, caps: Caps) -> Shown | None:
    """The user stopped it while it came."""
    for row in answer.after:
        if not row.results and row.mark is None:
            break  # what was interrupted after that is another request
        texts = [row.text, *(part.text for part in row.results)]
        if any(text.startswith(INTERRUPTED) and not text.startswith(AT_A_TOOL) for text in texts):
            return Shown(Stop.CANCELLED, f"line {row.line}: the user interrupted it", _REQUEST)
    return None


def asked_to_continue(answer: Answer, caps: Caps) -> Shown | None:
    """The next words ask to go on from a cut."""
    row = _next_words(answer)
    hint = known_hint(row.text) if row is not None else None
    if row is None or hint is None or hint == "bare_continue":
        return None
    return Shown(Stop.MAX_TOKENS, f"line {row.line} asks to continue a cut answer ({hint})", _REQUEST)


def calls_answered(answer: Answer, caps: Caps) -> Shown | None:
    """Every call in it is answered by a result."""
    calls = answer.calls
    if not calls or any(_result(answer, call.id) is None for call in calls):
        return None
    said = "its call is" if len(calls) == 1 else f"its {len(calls)} calls are"
    return Shown(Stop.TOOL_CALL, f"{said} answered by tool results", _REQUEST)


def turn_ended(answer: Answer, caps: Caps) -> Shown | None:
    """The agent wrote down that its turn had ended."""
    row = next((row for row in answer.after if row.mark == "ended"), None)
    if row is None or not _text_alone(answer):
        return None
    return Shown(Stop.END_TURN, f"line {row.line}: the agent recorded the end of its turn ({row.text})")


def user_went_on(answer: Answer, caps: Caps) -> Shown | None:
    """A new message of the user follows a text without calls; a bare "continue" says nothing."""
    row = _next_words(answer)
    if row is None or row.own or not _text_alone(answer) or known_hint(row.text) is not None:
        return None
    return Shown(Stop.END_TURN, f"line {row.line}: the user went on with a new message", _REQUEST)


RULES: tuple[tuple[str, Rule], ...] = (
    ("error_row", error_row),
    ("refused_call", refused_call),
    ("tokens_at_cap", tokens_at_cap),
    ("interrupted", interrupted),
    ("asked_to_continue", asked_to_continue),
    ("calls_answered", calls_answered),
    ("turn_ended", turn_ended),
    ("user_went_on", user_went_on),
)
"""In this order; the first that shows something wins."""
_REQUEST = At(Part.REQUEST)


def infer(answer: Answer, caps: Caps) -> StopReason:
    """The reason of an answer that has no word for it, with the rule that read it."""
    for name, rule in RULES:
        shown = rule(answer, caps)
        if shown is not None:
            return provenance.inferred(shown.stop, None, answer.word_at, name, shown.at, shown.note)
    return provenance.not_recorded(answer.word_at)


def _result(answer: Answer, key: str | None) -> ToolResultPart | None:
    """The result of a call; one without an id answers an answer's only call (some recorders leave ids out)."""
    if key is not None:
        return answer.results.get(key)
    alone = [part for row in answer.after for part in row.results]
    return alone[0] if len(alone) == 1 and len(answer.calls) == 1 else None


def _text_alone(answer: Answer) -> bool:
    return not answer.calls and bool(answer.text.strip())


def _next_words(answer: Answer) -> Said | None:
    """The first words after it, of the user or put in by the agent."""
    return next((row for row in answer.after if not row.results and row.mark is None), None)


def _last_row(answer: Answer) -> tuple[int, int]:
    return answer.size - len(answer.rows[-1]), answer.size
