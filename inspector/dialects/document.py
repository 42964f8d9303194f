"""`inspector providers`: the table as text, and as one JSON document (`loop-inspector/providers/1`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inspector.dialects.budget import CHARACTERS
from inspector.dialects.lines import alike, heading, table
from inspector.dialects.peers import VERSIONS
from inspector.dialects.run import Row, Told
from inspector.dialects.scenarios import SCENARIOS, Scenario
from inspector.dialects.table import DIALECTS
from inspector.report.document import place_of
from inspector.report.lines.spans import Line, plain, wrapped
from loop_core.policy import Policy
from loop_core.trace import Fidelity

SCHEMA = "loop-inspector/providers/1"


def text(told: Sequence[Told], policy: Policy, width: int, each: bool = False) -> str:
    """The table as linear text, what matters first."""
    lines: list[Line] = [piece for line in heading(told, policy.name) for piece in wrapped(line, width)]
    lines += [(), *table(told, width, each)]
    if not each and (notes := alike(told)):
        lines += [(), *(piece for line in notes for piece in wrapped(line, width))]
    return plain(lines) + "\n"


def listed() -> str:
    """Every scenario and every dialect, with what it does and where that is written."""
    lines = ["scenarios"]
    lines += [f"  {each.name:<16} {each.title} (budget {each.budget})" for each in SCENARIOS.values()]
    lines += ["", "dialects"]
    for dialect in DIALECTS:
        lines.append(f"  {dialect.name}")
        lines.append(f"    {dialect.title or 'speaks as its format says'} [{dialect.source}]")
    return "\n".join(lines) + "\n"


def document(told: Sequence[Told], scenario: Scenario, policy: Policy) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "schema": SCHEMA,
        "scenario": {"name": scenario.name, "title": scenario.title,
                     "budget": told[0].played.budget if told else scenario.budget,
                     "tokens": f"ESTIMATED: {CHARACTERS} characters each"},
        "policy": policy.name,
        "fidelity": Fidelity.SIMULATED.value,
        "peers": dict(VERSIONS),
        "rows": [_row(row) for row in told],
    }


def _row(row: Told) -> dict[str, Any]:
    dialect = row.dialect
    head = {"dialect": dialect.name, "api": dialect.api, "profile": dialect.profile, "habit": dialect.habit or None,
            "does": dialect.title or None, "source": dialect.source, "moment": row.played.moment.value}
    return {**head, "told": True, **_told(row)} if isinstance(row, Row) else {**head, "told": False}


def _told(row: Row) -> dict[str, Any]:
    response, judged = row.exchange.response, row.judged
    usage = response.usage
    return {
        "streaming": response.streaming,
        "http_status": response.http_status,
        "raw_stop_reason": response.raw_stop_reason,
        "native": dict(response.native),
        "mapped_stop_reason": judged.mapped.normalized.value,
        "stop_reason": judged.stop.normalized.value,
        "stop_detail": judged.stop.detail,
        "cap_reached": judged.cap_reached,
        "evidence": [{"rule": seen.rule, "at": place_of(seen.at)} for seen in judged.stop.evidence],
        "findings": [{"rule": f.rule, "severity": f.severity.value, "message": f.message}
                     for f in (*response.findings, *judged.findings)],
        "usage": {"output_tokens": usage.output_tokens if usage else None,
                  "reasoning_tokens": usage.reasoning_tokens if usage else None},
        "call": row.call.value,
        "tool_calls": [{"name": v.call.name, "arguments_raw": v.call.arguments, "closed": v.call.closed,
                        "verdict": v.admission.value, "why": v.why} for v in row.verdicts],
        "lost": list(row.lost),
        "decision": row.decision,
        "terminal_reason": row.run.trace.steps[-1].turn.terminal,
        "runs_held_call": row.runs_cut,
        "blind": row.blind or None,
        "peers": [{"name": peer.name, "word": peer.word, "means": peer.means.value, "agrees": peer.agrees,
                   "takes_for_finished": peer.looser} for peer in row.peers],
    }
