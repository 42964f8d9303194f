"""The tool-call gate: what may run, what is held, what is rejected.

Three words, never a fourth. `ready` needs the effective reason, a closed block, strict JSON and the schema. `held` is
incomplete, or not authorised by the reason; then the whole batch waits, since a truncated batch is one unfinished
batch. `rejected` is complete and cleanly ended but refused by its schema: that call alone gets the error back.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from loop_core import schema
from loop_core.arguments import Arguments, Shape, parse
from loop_core.classify import Judged, is_phantom, means_nothing
from loop_core.frozen import frozen
from loop_core.values import CallKind, Stop, Tool, ToolCall

REMEDY = "raise the output limit, split the work into smaller parts, or simplify the request"
"""What to do about a call that the budget cut (seed 001, fix 3)."""


class Admission(StrEnum):
    """The gate's three words."""

    READY = "ready"
    HELD = "held"
    REJECTED = "rejected"


@frozen
class Verdict:
    """What the gate says of one call; `arguments` only where it is ready."""

    call: ToolCall
    admission: Admission
    rule: str
    why: str
    arguments: dict[str, Any] | str | None = None
    """The parsed object, or the text of a free-form call; None unless ready."""
    problems: tuple[str, ...] = ()
    """What the schema refused, a line each."""


WHY_REASON: dict[Stop, str] = {
    Stop.MAX_TOKENS: f"cut by the output limit; {REMEDY}",
    Stop.CONTEXT_WINDOW_EXCEEDED: "the context window is full; shorten the history",
    Stop.SAFETY_BLOCKED: "the response was blocked by a filter",
    Stop.CANCELLED: "the response was cancelled",
    Stop.UNKNOWN: "the stop reason is unknown",
    Stop.PAUSED: "the response is paused, not finished",
    Stop.INTERRUPTED: "the stream ended without a stop reason",
    Stop.MALFORMED_TOOL_CALL: "the batch holds a malformed call",
    Stop.ERROR: "the provider reported an error",
    Stop.END_TURN: "the response ended without asking for tools",
}
"""Why a reason does not authorise a call, for every word but `tool_call`."""


def admit(call: ToolCall, judged: Judged, tool: Tool | None = None) -> Verdict:
    """The verdict on one call, its siblings left out; `admit_all` adds the rule of the batch."""
    if is_phantom(call):
        return Verdict(call, Admission.HELD, "gate.phantom", "the call has neither a name nor arguments")
    reason = Stop.MAX_TOKENS if judged.cap_reached else judged.stop.normalized  # seed 001: a budget cut without a word
    reading = parse(call.arguments)
    shape_problem = _incomplete(call, reading, tool)
    if shape_problem is not None:
        why = f"{shape_problem}; {REMEDY}" if reason is Stop.MAX_TOKENS else shape_problem
        return Verdict(call, Admission.HELD, "gate.incomplete", why)
    if reason is not Stop.TOOL_CALL:
        return Verdict(call, Admission.HELD, "gate.reason", WHY_REASON[reason])
    if call.kind is CallKind.CUSTOM:
        return Verdict(call, Admission.READY, "gate.ready", "closed, and the response ended cleanly",
                       arguments=call.arguments or "")
    value = reading.value or {}
    problems = schema.problems(tool, value)
    if problems:
        return Verdict(call, Admission.REJECTED, "gate.schema", "; ".join(problems), problems=problems)
    checked = "its schema accepts it" if schema.usable(tool) else "no usable schema is known"
    return Verdict(call, Admission.READY, "gate.ready", f"closed and complete; {checked}", arguments=value)


def admit_all(calls: Sequence[ToolCall], judged: Judged, tools: Sequence[Tool] = ()) -> tuple[Verdict, ...]:
    """The verdicts on a batch: one held call holds its siblings; a rejected one does not."""
    if not calls:
        return ()
    known = {tool.name: tool for tool in tools}
    verdicts = [admit(call, judged, known.get(call.name)) for call in calls]
    blocking = next((v for v in verdicts if v.admission is Admission.HELD and v.rule != "gate.phantom"), None)
    if blocking is None:
        return tuple(verdicts)
    why = f"its batch is unfinished: {blocking.call.name or 'a sibling'} is held"
    return tuple(
        verdict if verdict.admission is Admission.HELD else Verdict(verdict.call, Admission.HELD, "gate.batch", why)
        for verdict in verdicts
    )


def _incomplete(call: ToolCall, reading: Arguments, tool: Tool | None) -> str | None:
    if not call.closed:
        return f"the call was never closed ({_stopped(reading)})" if call.kind is CallKind.FUNCTION else "never closed"
    if not call.name:
        return "the call has no name"
    if call.kind is CallKind.CUSTOM:
        return "no input was sent" if call.arguments is None else None
    if reading.shape is Shape.COMPLETE:
        return None
    if reading.shape in (Shape.EMPTY, Shape.ABSENT):
        if means_nothing(call, tool):
            return None
        return f"{reading.problem}, and the tool is not known to need none"
    return _stopped(reading)


def _stopped(reading: Arguments) -> str:
    if reading.shape is Shape.COMPLETE:
        return "its arguments parse"
    if reading.shape in (Shape.EMPTY, Shape.ABSENT):
        return reading.problem
    where = f"the parser stopped at character {reading.stopped_at}"
    return f"the arguments are {reading.shape.value}: {where}: {reading.problem}"
