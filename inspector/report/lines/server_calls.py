"""Lines about calls of the provider's own tools, with what the answer shows about each."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator
from itertools import chain
from typing import Any

from inspector.report.facts import ResponseFacts
from inspector.report.lines.spans import Line, Span, Tone, count_of, one_line, safe
from loop_core.judge.endings import brought_output
from loop_core.values import OpaquePart, ToolCall

RESULT_OF = ("tool_use_id", "toolUseId", "call_id")
"""Members of a result's block that name its call (Anthropic, Bedrock, Responses)."""


def server_lines(facts: ResponseFacts) -> list[Line]:
    """The calls of the provider's own tools, and whether the answer shows that each ran: a call in an answer does not
    prove that."""
    response = facts.exchange.response
    results = set(chain.from_iterable(map(_ids_in, response.parts)))
    told = [_server_call(call, results) for call in response.server_calls]
    lines: list[Line] = [
        (safe(call.name, Tone.STRONG), Span(f"  {said}; neither held nor run here", Tone.DIM if ran else Tone.WARN),
         Span(f"  {facts.name}", Tone.DIM))
        for call, (ran, said) in zip(response.server_calls, told, strict=True)]
    came = sum(ran for ran, _ in told)
    if len(lines) > 1:
        known = f"{count_of(len(told), 'call')} of the provider's own tools; the answer shows {came:,} of them run"
        lines.insert(0, (Span(known, Tone.DIM),))
    return lines


def _ids_in(part: object) -> Iterator[str]:
    """The ids of the calls whose results are in opaque blocks."""
    if not isinstance(part, OpaquePart):
        return
    try:
        value: Any = json.loads(part.json)
    except (ValueError, RecursionError):
        return
    members = value if isinstance(value, dict) else {}
    for each in (members, *(inner for inner in members.values() if isinstance(inner, dict))):
        yield from (each[name] for name in RESULT_OF if isinstance(each.get(name), str))


def _server_call(call: ToolCall, results: Container[str | None]) -> tuple[bool, str]:
    """Whether the answer shows that the provider ran a call, and how."""
    if (call.id is not None and call.id in results) or brought_output(call):
        return True, "run by the provider itself: its result came"
    if call.status == "completed":
        return True, "run by the provider itself, which says that it is completed"
    word = f", and its state is {one_line(call.status)}" if call.status else ""
    return False, f"asked of the provider itself: no result of it is in this answer{word}"
