"""Writes the table of `inspector providers` as text and as one JSON document (`loop-inspector/providers/1`).

The later parts make the sheet with a row's details, a row's session file, which opens like any recording, and the
parameters of a table.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as member
from pathlib import Path
from typing import Any

from inspector.config.files import folder_named
from inspector.config.settings import Settings
from inspector.provider import dialect_rows
from inspector.provider.dialect_lines import cells, equal_row_lines, heading, table, word
from inspector.provider.dialect_rows import MS, DialectRow, SilentRow, TableRow, rows
from inspector.provider.dialects import DIALECTS, PEER_VERSIONS
from inspector.provider.scenarios import CHARACTERS, SCENARIOS, Scenario
from inspector.report.explain_document import place_of
from inspector.report.lines.spans import Line, LineSheet, Span, Tone, field, more, plain, quote, safe, wrap_line
from inspector.sessions.native_fields import packed
from loop_core.errors import CallerError
from loop_core.judge.gate import Admission
from loop_core.turn.policy import Policy
from loop_core.turn.trace import Fidelity

SCHEMA = "loop-inspector/providers/1"


def text(rows: Sequence[TableRow], policy: Policy, width: int, each: bool = False) -> str:
    """The table as linear text, the most important first."""
    lines: list[Line] = [piece for line in heading(rows, policy.name) for piece in wrap_line(line, width)]
    lines += [(), *table(rows, width, each)]
    if not each and (notes := equal_row_lines(rows)):
        lines += [(), *(piece for line in notes for piece in wrap_line(line, width))]
    return plain(lines) + "\n"


def list_text() -> str:
    """Every scenario and every dialect, with a description and its source."""
    lines = ["scenarios"]
    lines += [f"  {each.name:<16} {each.title} (budget {each.budget})" for each in SCENARIOS.values()]
    lines += ["", "dialects"]
    for dialect in DIALECTS:
        lines.append(f"  {dialect.name}")
        lines.append(f"    {dialect.title or 'follows its format'} [{dialect.source}]")
    return "\n".join(lines) + "\n"


def document(rows: Sequence[TableRow], scenario: Scenario, policy: Policy) -> dict[str, Any]:
    """The table as plain values."""
    return {
        "schema": SCHEMA,
        "scenario": {"name": scenario.name, "title": scenario.title,
                     "budget": rows[0].play.budget if rows else scenario.budget,
                     "tokens": f"ESTIMATED: {CHARACTERS} characters each"},
        "policy": policy.name,
        "fidelity": Fidelity.SIMULATED.value,
        "peers": dict(PEER_VERSIONS),
        "rows": [_row(row) for row in rows],
    }


def _row(row: TableRow) -> dict[str, Any]:
    dialect = row.dialect
    head = {"dialect": dialect.name, "api": dialect.api, "profile": dialect.profile, "habit": dialect.habit or None,
            "does": dialect.title or None, "source": dialect.source, "moment": row.play.moment.value}
    return {**head, "told": True, **_judged_members(row)} if isinstance(row, DialectRow) else {**head, "told": False}


def _judged_members(row: DialectRow) -> dict[str, Any]:
    response, judged = row.exchange.response, row.judgement
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
        "evidence": [{"rule": evidence.rule, "at": place_of(evidence.at)} for evidence in judged.stop.evidence],
        "findings": [{"rule": f.rule, "severity": f.severity.value, "message": f.message}
                     for f in (*response.findings, *judged.findings)],
        "usage": {"output_tokens": usage.output_tokens if usage else None,
                  "reasoning_tokens": usage.reasoning_tokens if usage else None},
        "call": row.call.value,
        "tool_calls": [{"name": v.call.name, "arguments_raw": v.call.arguments, "closed": v.call.closed,
                        "verdict": v.admission.value, "why": v.why} for v in row.verdicts],
        "lost": list(row.losses),
        "decision": row.decision,
        "terminal_reason": row.run.trace.steps[-1].turn.terminal,
        "runs_held_call": row.runs_cut,
        "blind": row.blind or None,
        "peers": [{"name": peer.name, "word": peer.word, "means": peer.means.value, "agrees": peer.agrees,
                   "takes_for_finished": peer.looser} for peer in row.peers],
    }


# -- All details of one dialect under one scenario, as a sheet for a screen ------------------------------------------
# Pure.


def sheet(row: TableRow, like: Sequence[TableRow] = ()) -> LineSheet:
    """All details of one row; `like` are the rows with equal values."""
    dialect = row.dialect
    lines: list[Line] = [
        (Span(row.name, Tone.TITLE), Span(f"  {row.play.scenario.name}, budget {row.play.budget:,} tokens",
                                          Tone.DIM)),
        field("what it does", safe(dialect.title or "follows its format")),
    ]
    last: list[Line] = [(), field("written in", safe(dialect.source, Tone.DIM))]
    if like:
        last.append(field("says the same", Span(", ".join(other.name.partition("/")[2] for other in like))))
    if isinstance(row, SilentRow):
        return LineSheet([*lines, field("here", Span(row.why, Tone.WARN)), *last])
    return LineSheet([*lines, *_words(row), *_calls(row), *_decision(row), *_peers(row), *last])


def _words(row: DialectRow) -> list[Line]:
    judged, response = row.judgement, row.exchange.response
    lines = [field("raw word", *word(row)),
             field("mapped", Span(judged.mapped.normalized.value, Tone.NORMALIZED)),
             field("effective", *cells(row)[3])]
    lines += [more(Span(evidence.rule, Tone.DIM), Span("  "), safe(evidence.note)) for evidence in judged.stop.evidence]
    usage = response.usage
    if usage is not None and usage.output_tokens is not None:
        thinking = f", {usage.reasoning_tokens:,} of them thinking" if usage.reasoning_tokens else ""
        lines.append(field("tokens", Span(f"{usage.output_tokens:,} of {row.play.budget:,}{thinking}")))
    else:
        lines.append(field("tokens", Span("not told", Tone.DIM)))
    notes = [finding.message for finding in (*response.findings, *judged.findings)]
    return lines + [field("finding" if not i else "", safe(note, Tone.WARN)) for i, note in enumerate(notes)]


def _calls(row: DialectRow) -> list[Line]:
    lines: list[Line] = [(), field("the call", Span(row.call.value))]
    for verdict in row.verdicts:
        held = verdict.admission is not Admission.READY
        lines.append(field("received", safe(verdict.call.name, Tone.STRONG), Span("  "),
                           quote(verdict.call.arguments or "", Tone.RAW)))
        lines.append(more(Span(verdict.admission.value.upper(), Tone.HELD if held else Tone.OK), Span("  "),
                          safe(verdict.why)))
    lines += [field("lost" if not i else "", safe(what, Tone.WARN)) for i, what in enumerate(row.losses)]
    if row.blind:
        lines.append(field("blind", Span(row.blind, Tone.ERROR)))
    return lines


def _decision(row: DialectRow) -> list[Line]:
    last = row.run.trace.steps[-1].turn
    lines: list[Line] = [(), field("decision", *cells(row)[6], Span(f"  by {last.policy.name}", Tone.DIM))]
    return [*lines, more(safe(last.notice, Tone.DIM))] if last.notice else lines


def _peers(row: DialectRow) -> list[Line]:
    return [
        field("peers" if not number else "", Span(f"{PEER_VERSIONS[peer.name]:<20}", Tone.DIM),
              Span(f"{peer.word:<16}"),
              Span("as this loop does" if peer.agrees else f"that is {peer.means.value}",
                   Tone.ERROR if peer.looser else Tone.PLAIN))
        for number, peer in enumerate(row.peers)
    ]


# -- A row as a native session file, so that it opens like any recording ---------------------------------------------

PROVENANCE = "made from an intended answer and encoded in the provider's wire format; no provider was asked"


def file_name(row: DialectRow) -> str:
    """The name of the row's file, unique among the rows of one scenario."""
    return f"{row.play.scenario.name}.{row.name.replace('/', '.')}.session.jsonl"


def save_all(table_rows: Sequence[TableRow], folder: str | Path) -> list[Path]:
    """Writes a session file for each row with an answer, into a folder that is made if its parent exists. Raises
    `CallerError` if the folder cannot be written to."""
    from inspector.sessions.native import write_session

    rows = [row for row in table_rows if isinstance(row, DialectRow)]
    paths = [Path(folder) / file_name(row) for row in rows]
    try:
        folder_named(folder)
        for path, row in zip(paths, rows, strict=True):
            write_session(path, records(row))
    except OSError as why:
        raise CallerError(f"{folder}: cannot be written: {why.strerror or why}") from None
    return paths


def records(row: DialectRow) -> Iterator[dict[str, Any]]:
    """The records of a row's session file."""
    exchange, play, dialect = row.exchange, row.play, row.dialect
    yield {
        "loop_inspector_session": 1,
        "title": f"{dialect.name}: {play.scenario.title}",
        "story": dialect.title or "follows its format",
        "provenance": f"{PROVENANCE}; {dialect.source}",
        "end_state": f"{row.judgement.stop.normalized.value}: {row.decision}",
    }
    yield {
        "type": "request", "id": "r1", "api": dialect.api, "profile": dialect.profile, "method": "POST",
        "url": exchange.url, "headers": [list(pair) for pair in exchange.request_headers],
        "body": dialect_rows.body(dialect, play, exchange.response.streaming),
    }
    yield {"type": "response", "request": "r1", "status": exchange.response.http_status, "simulated": True,
           "headers": [list(pair) for pair in exchange.headers]}
    for number, piece in enumerate(row.pieces, 1):
        kind, value = packed(piece)  # binary event streams, and pieces that split a character, are not text
        yield {"type": "bytes", "request": "r1", kind: value, "ms": MS * number}
    yield {"type": "end", "request": "r1", "end": "eof"}


# -- The parameters of a table of dialects ---------------------------------------------------------------------------
# A scenario, a budget and a policy; a command line gives the same table.

MOST = 1_000_000
"""The largest budget in tokens."""
STEPS = ((16, 1), (64, 4), (256, 16))
"""The steps by which a budget is changed: an upper bound of the budget, and the step below it."""
COARSEST = 64
"""The step of budgets above all bounds in `STEPS`."""
FOLDER = "rows"
"""The folder into which the command line that opens a row writes the row's session."""


FIRST = next(iter(SCENARIOS.values()))


@dataclass(frozen=True, slots=True)
class TableQuery:
    """The parameters of one table."""

    scenario: Scenario = FIRST
    budget: int | None = None
    """The budget in tokens; None: the scenario's own budget."""
    settings: Settings = member(default_factory=Settings)
    each: bool = False
    """Whether every dialect has its own line, including dialects with equal values."""

    @property
    def limit(self) -> int:
        """The budget in force."""
        return self.scenario.budget if self.budget is None else self.budget

    def rows(self) -> tuple[TableRow, ...]:
        """The rows of the table."""
        return rows(self.scenario, self.budget, settings=self.settings)

    def shift_scenario(self, by: int) -> TableQuery:
        """The query for the next or previous scenario, under that scenario's own budget."""
        every = list(SCENARIOS.values())
        return replace(self, scenario=every[(every.index(self.scenario) + by) % len(every)], budget=None)

    def shift_budget(self, by: int) -> TableQuery:
        """The query with a larger or smaller budget."""
        return replace(self, budget=next_budget(self.limit, by))

    def command(self) -> str:
        """The command line that prints the same table."""
        return shlex.join([*self._words(), *(["--each"] if self.each else [])])

    def command_for(self, row: DialectRow) -> str:
        """The command line that writes a row's session to its `path_of`."""
        return shlex.join([*self._words(), "--only", row.name, "--save", FOLDER])

    def _words(self) -> list[str]:
        words = ["inspector", "providers", self.scenario.name]
        if self.budget is not None:
            words += ["--budget", f"{self.budget}"]
        return [*words, "--policy", self.settings.policy.name]


def path_of(row: DialectRow) -> str:
    """The path to which `command_for` writes the session of a row."""
    return f"{FOLDER}/{file_name(row)}"


def next_budget(budget: int, by: int) -> int:
    """The next larger or smaller budget: small budgets change by one, large ones by more."""
    # `min(by, 0)`: downwards from a boundary, the finer steps already apply.
    size = next((size for most, size in STEPS if budget + min(by, 0) < most), COARSEST)
    # to a multiple of the step, also from between two
    following = budget // size + 1 if by > 0 else -(-budget // size) - 1
    return max(1, min(MOST, following * size))
