"""The gate's verdicts on recorded calls, corrected by what their agent refused and what was masked before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.sessions import redact
from inspector.sessions.recording import Exchange
from loop_core.judge.arguments import parse_call, violations
from loop_core.judge.classify import Judgement
from loop_core.judge.gate import CHECKED, SCHEMA, Admission, Verdict, admit_response
from loop_core.values import Request, Tool, ToolCall, tools_by_name

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
    return tuple([_with_refusal(_without_masks(verdict, exchange.request), exchange.refusals) for verdict in verdicts])


def _with_refusal(verdict: Verdict, refused: Mapping[str, str]) -> Verdict:
    # Only READY becomes REJECTED: a held call stays held, whatever the recorded agent said of it.
    why = refused.get(verdict.call.id or "") if verdict.admission is Admission.READY else None
    return verdict if why is None else Verdict(verdict.call, Admission.REJECTED, REFUSED, why, problems=(why,))


def _without_masks(verdict: Verdict, request: Request | None) -> Verdict:
    """The verdict without what the schema says of masked values."""
    if verdict.rule != SCHEMA and verdict.why != CHECKED:
        return verdict
    masked = redact.masked_places(verdict.call.arguments or "")
    if not masked or request is None:
        return verdict
    problems = problems_beside(masked, tools_by_name(request.tools).get(verdict.call.name), verdict.call)
    if problems:
        return verdict._replace(why="; ".join(problems), problems=problems)
    return Verdict(verdict.call, Admission.READY, MASKED, f"closed and complete; {NOT_CHECKABLE}")


def problems_beside(masked: Sequence[tuple[str | int, ...]], tool: Tool | None, call: ToolCall) -> tuple[str, ...]:
    """The problems under the tool's schema that the values of a recorded call had before some of them were masked: what
    is wrong with a masked value, or a value around it, proves nothing unless the keyword looks at no text."""
    return tuple(each.line for each in violations(tool, parse_call(call).value or {})
                 if each.keyword in BLIND_KEYWORDS
                 or not any(place[: len(each.place)] == each.place for place in masked))
