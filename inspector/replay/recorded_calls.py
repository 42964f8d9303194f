"""The gate's verdicts on recorded calls, corrected for calls that the agent refused and for masked arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.sessions import redact
from inspector.sessions.recording import Exchange
from loop_core.json_parser import JsonPath
from loop_core.judge.arguments import parse_call, violations
from loop_core.judge.classify import Judgement
from loop_core.judge.gate import CHECKED, SCHEMA, Admission, Verdict, admit_response
from loop_core.values import Request, Tool, ToolCall, tools_by_name

REFUSED = "recorder.refused"
"""The rule of a verdict on a complete call that the recorded agent refused to run."""
MASKED = "recorder.masked"
"""The rule of a verdict on a complete call whose arguments contain a mask, to which the schema does not apply."""
NOT_CHECKABLE = "a credential in the arguments was masked, so its schema checks only the rest, which it accepts"

BLIND_KEYWORDS = frozenset({
    "required", "additionalProperties", "minProperties", "maxProperties", "minItems", "maxItems", "type", "falseSchema",
    "",  # the check would have taken too long, so nothing was accepted
})
"""The keywords that do not depend on the characters of a text, so that a mask does not change a violation of them."""


def gate_exchange(exchange: Exchange, reading: Judgement) -> tuple[Verdict, ...]:
    """The verdicts on the calls of a recorded response."""
    verdicts = admit_response(exchange.response, reading, exchange.request)
    return tuple([_with_refusal(_without_masks(verdict, exchange.request), exchange.refusals) for verdict in verdicts])


def _with_refusal(verdict: Verdict, refused: Mapping[str, str]) -> Verdict:
    # Only READY becomes REJECTED: a held call stays held, whatever the recorded agent did with it.
    why = refused.get(verdict.call.id or "") if verdict.admission is Admission.READY else None
    return verdict if why is None else Verdict(verdict.call, Admission.REJECTED, REFUSED, why, problems=(why,))


def _without_masks(verdict: Verdict, request: Request | None) -> Verdict:
    """The verdict without the schema's problems with masked values."""
    if verdict.rule != SCHEMA and verdict.why != CHECKED:
        return verdict
    masked = redact.masked_places(verdict.call.arguments or "")
    if not masked or request is None:
        return verdict
    problems = problems_beside(masked, tools_by_name(request.tools).get(verdict.call.name), verdict.call)
    if problems:
        return verdict._replace(why="; ".join(problems), problems=problems)
    return Verdict(verdict.call, Admission.READY, MASKED, f"closed and complete; {NOT_CHECKABLE}")


def problems_beside(masked: Sequence[JsonPath], tool: Tool | None, call: ToolCall) -> tuple[str, ...]:
    """The problems under the tool's schema that a recorded call had before some of its values were masked. A problem of
    a masked value, or of a value around it, counts only for one of `BLIND_KEYWORDS`."""
    return tuple(each.line for each in violations(tool, parse_call(call).value or {})
                 if each.keyword in BLIND_KEYWORDS
                 or not any(place[: len(each.place)] == each.place for place in masked))
