"""The gate for recorded calls: the engine's verdicts, corrected by what is known of the recording.

A recording says which calls its agent refused, and credentials in it were masked before the gate read them. A live turn
is gated by the engine alone, on the values that arrived.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from inspector.sessions import redact
from inspector.sessions.recording import Exchange
from loop_core.judge.arguments import parse_call, violations
from loop_core.judge.classify import Judgement
from loop_core.judge.gate import CHECKED, SCHEMA, Admission, Verdict, admit_response
from loop_core.values import Tool, ToolCall, tools_by_name

REFUSED = "recorder.refused"
"""The rule of a verdict on a complete call that the recorded agent refused to run."""
MASKED = "recorder.masked"
"""The rule of a verdict on a complete call whose arguments hold a mask, which the schema cannot be applied to."""
NOT_CHECKABLE = "a credential in the arguments was masked, so its schema checks only the rest, which it accepts"

BLIND_KEYWORDS = frozenset({
    "required", "additionalProperties", "minProperties", "maxProperties", "minItems", "maxItems", "type", "falseSchema",
    "",  # the check would take too long: nothing was accepted
})
"""The keywords that do not look at the characters of a text. What violates them with a mask violated them before."""


def gate_exchange(exchange: Exchange, reading: Judgement) -> tuple[Verdict, ...]:
    """The verdicts on the calls of a recorded response."""
    verdicts = admit_response(exchange.response, reading, exchange.request)
    if not verdicts:
        return verdicts
    tools = tools_by_name(exchange.request.tools) if exchange.request is not None else {}
    return tuple([_refused(_unmasked(verdict, tools.get(verdict.call.name)), exchange.refusals)
                  for verdict in verdicts])


def _refused(verdict: Verdict, refused: Mapping[str, str]) -> Verdict:
    # Only READY becomes REJECTED: a held call stays held, whatever the recorded agent said of it.
    why = refused.get(verdict.call.id or "") if verdict.admission is Admission.READY else None
    return verdict if why is None else Verdict(verdict.call, Admission.REJECTED, REFUSED, why, problems=(why,))


def _unmasked(verdict: Verdict, tool: Tool | None) -> Verdict:
    """The verdict without what the schema says of masked values."""
    if (verdict.rule != SCHEMA and verdict.why != CHECKED) or not redact.masked_places(verdict.call.arguments or ""):
        return verdict
    problems, _ = check_schema(tool, verdict.call)
    if problems:
        return verdict._replace(why="; ".join(problems), problems=problems)
    return Verdict(verdict.call, Admission.READY, MASKED, f"closed and complete; {NOT_CHECKABLE}")


class SchemaCheck(NamedTuple):
    """What a schema says of the arguments of a recorded call."""

    problems: tuple[str, ...]
    """The problems that the values of the call had before they were masked too."""
    masked: bool
    """Whether the arguments hold a mask."""


def check_schema(tool: Tool | None, call: ToolCall) -> SchemaCheck:
    """Checks the arguments of a recorded call; what is wrong with a masked value, or a value around it, proves nothing
    unless the keyword looks at no text."""
    raw = call.arguments or ""
    masked = redact.masked_places(raw)
    found = violations(tool, parse_call(call).value or {})
    return SchemaCheck(tuple(each.line for each in found if each.keyword in BLIND_KEYWORDS
                             or not any(place[: len(each.place)] == each.place for place in masked)), bool(masked))
