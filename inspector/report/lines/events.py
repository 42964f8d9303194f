"""The structured events of a turn, one below the other, those of the step at hand marked."""

from __future__ import annotations

import json
from collections.abc import Mapping

from inspector.report.facts import View
from inspector.report.lines import glyphs
from inspector.report.lines.outline import Block
from inspector.report.lines.sheet import Listed
from inspector.report.lines.spans import Line, Role, Span, field, more, said
from loop_core.events import Record

SHOWN_APART = frozenset({"event", "turn_id", "provider", "model"})
_ROLES: Mapping[str, Role] = {
    "normalized_reason": Role.NORMALIZED, "raw_reason": Role.RAW, "terminal_reason": Role.STRONG,
}


def events(view: View, block: Block, here: int) -> Listed:
    """The sheet of the events of one run."""
    lines: list[Line] = []
    records: list[Record] = []
    focus = 0
    for index in range(block.first, block.end):
        step = view.shown(index)
        for record in step.records:
            if index <= here:
                focus = len(lines)
            lines += _record(record, index, here)
            records.append(record)
    if not lines:
        lines = [(Span("no events in this turn", Role.DIM),)]
    return Listed(lines, focus, lambda: "\n".join(json.dumps(record, ensure_ascii=False) for record in records))


def _record(record: Record, index: int, here: int) -> list[Line]:
    mark = "┃" if index == here else glyphs.PAST if index < here else glyphs.AHEAD
    name = Role.STRONG if index <= here else Role.AHEAD
    gutter = Span(f"{mark} ", Role.RULE)
    first = Span(f"{glyphs.HERE} ", Role.HERE) if index == here else gutter
    head: Line = (first, Span(str(record["event"]), name), Span(f"  step {index + 1}", Role.DIM))
    lines = [head]
    for key, value in record.items():
        if key not in SHOWN_APART:
            lines.append((gutter, Span(f"  {key:<25}", Role.KEY), said(_shown(value), _ROLES.get(key, Role.PLAIN))))
    who = " · ".join(str(record[key]) for key in ("provider", "model") if record.get(key))
    lines.append((gutter, Span(f"  {'provider, model':<25}", Role.KEY), said(who, Role.DIM)))
    lines.append((gutter,))
    return lines


def _shown(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


_SEVERITY: Mapping[str, Role] = {"error": Role.ERROR, "warning": Role.WARN}


def findings_of(view: View, response: int) -> list[Line]:
    """What is worth telling about a response, each with its rule."""
    lines: list[Line] = []
    for noted in view.findings:
        if noted.response == response:
            finding = noted.finding
            role = _SEVERITY.get(finding.severity.value, Role.PLAIN)
            lines.append(field(finding.severity.value, said(finding.message, role)))
            lines.append(more(Span(finding.rule, Role.DIM)))
    return lines
