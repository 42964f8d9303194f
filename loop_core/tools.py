"""Running a batch of calls for a driver: in order, validated, bounded, and stopped when the user speaks.

Only calls that the gate released are run, whatever the policy says. A rejected call gets its validation error as
result, a skipped one gets a result that says so, and a result that would fill the context is cut and says so too
(seed 002, appendix: order, steering, validation, result truncation, context guard).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from loop_core import schema
from loop_core.arguments import parse
from loop_core.errors import LoopError
from loop_core.frozen import field, frozen
from loop_core.gate import Admission, Verdict
from loop_core.history import result
from loop_core.turn import Event, RunTools, ToolsRun, Turn
from loop_core.values import CallKind, Message, Tool, ToolResultPart


class ToolError(LoopError):
    """What a tool raises to tell the model that it failed; any other exception is a bug and goes up."""


Run = Callable[[Any], str]
"""A tool: it gets the parsed arguments (or the text of a free-form call) and returns what the model reads."""


class Runs(Protocol):
    """What runs a batch of calls."""

    def run(self, effect: RunTools, turn: Turn) -> Event:
        """The results, or `NotRecorded` where a call of the batch has none."""


@frozen
class Toolbox:
    """The tools of an agent, and where its user speaks."""

    tools: Mapping[str, Run] = field(default_factory=dict)
    steering: Callable[[], Sequence[Message]] = tuple
    """What the user said since it was last asked; checked after each call."""
    coerce: bool = False
    """Whether `"5"` is taken for 5 where the schema wants a number. Off: the model gets the error."""

    def run(self, effect: RunTools, turn: Turn) -> ToolsRun:
        """Runs the batch in order; every call gets a result."""
        results: list[ToolResultPart] = []
        said: tuple[Message, ...] = ()
        used = turn.spent.result_chars
        for verdict in effect.calls:
            if said:
                results.append(result(verdict.call, "Skipped: the user said something first.", is_error=True))
                continue
            part = bounded(self._one(verdict, turn), turn, used)
            used += len(part.text)
            results.append(part)
            said = tuple(self.steering())
        return ToolsRun(tuple(results), said)

    def _one(self, verdict: Verdict, turn: Turn) -> ToolResultPart:
        call = verdict.call
        arguments = verdict.arguments
        if verdict.admission is Admission.REJECTED and self.coerce:
            arguments = _coerced(verdict, turn)
        if arguments is None:
            return result(call, f"Not run: {verdict.why}", is_error=True)
        tool = self.tools.get(call.name)
        if tool is None:
            return result(call, f"Not run: there is no tool {call.name!r}", is_error=True)
        try:
            return result(call, tool(arguments))
        except ToolError as why:
            return result(call, f"Failed: {why}", is_error=True)


def bounded(part: ToolResultPart, turn: Turn, used: int) -> ToolResultPart:
    """The result within `max_tool_result_chars` and the room that `context_guard_chars` leaves; what is cut is told."""
    room = turn.limits.context_guard_chars - used
    if room <= 0:
        text = f"Left out: {len(part.text):,} characters; the tool results of this turn have filled their share."
        return ToolResultPart(part.call_id, part.name, text, part.is_error)
    limit = min(turn.limits.max_tool_result_chars, room)
    if len(part.text) <= limit:
        return part
    text = f"{part.text[:limit]}\n[cut: {limit:,} of {len(part.text):,} characters]"
    return ToolResultPart(part.call_id, part.name, text, part.is_error)


def _coerced(verdict: Verdict, turn: Turn) -> dict[str, Any] | None:
    tool: Tool | None = next((t for t in turn.request.tools if t.name == verdict.call.name), None)
    value = parse(verdict.call.arguments).value
    if tool is None or value is None or verdict.call.kind is CallKind.CUSTOM:
        return None
    changed = schema.coerced(tool, value)
    return None if schema.problems(tool, changed) else changed
