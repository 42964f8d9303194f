"""Everything about one dialect under one scenario, as a sheet that a screen shows. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.dialects.lines import SILENT, cells, word
from inspector.dialects.peers import VERSIONS
from inspector.dialects.run import Row, Silent, Told
from inspector.report.lines.sheet import Listed
from inspector.report.lines.spans import Line, Role, Span, field, more, quoted, said
from loop_core.gate import Admission


def sheet(row: Told, like: Sequence[Told] = ()) -> Listed:
    """Everything about one row; `like` are those that say the same."""
    dialect = row.dialect
    lines: list[Line] = [
        (Span(row.name, Role.TITLE), Span(f"  {row.played.scenario.name}, budget {row.played.budget:,} tokens",
                                          Role.DIM)),
        field("what it does", said(dialect.title or "speaks as its format says")),
    ]
    last: list[Line] = [(), field("written in", said(dialect.source, Role.DIM))]
    if like:
        last.append(field("says the same", Span(", ".join(other.name.partition("/")[2] for other in like))))
    if isinstance(row, Silent):
        return Listed([*lines, field("here", Span(SILENT, Role.WARN)), *last])
    return Listed([*lines, *_words(row), *_calls(row), *_decided(row), *_peers(row), *last])


def _words(row: Row) -> list[Line]:
    judged, response = row.judged, row.exchange.response
    lines = [field("raw word", *word(row)),
             field("mapped", Span(judged.mapped.normalized.value, Role.NORMALIZED)),
             field("effective", *cells(row)[3])]
    lines += [more(Span(seen.rule, Role.DIM), Span("  "), said(seen.note)) for seen in judged.stop.evidence]
    usage = response.usage
    if usage is not None and usage.output_tokens is not None:
        thinking = f", {usage.reasoning_tokens:,} of them thinking" if usage.reasoning_tokens else ""
        lines.append(field("tokens", Span(f"{usage.output_tokens:,} of {row.played.budget:,}{thinking}")))
    else:
        lines.append(field("tokens", Span("not told", Role.DIM)))
    notes = [finding.message for finding in (*response.findings, *judged.findings)]
    return lines + [field("finding" if not i else "", said(note, Role.WARN)) for i, note in enumerate(notes)]


def _calls(row: Row) -> list[Line]:
    lines: list[Line] = [(), field("the call", Span(row.call.value))]
    for verdict in row.verdicts:
        held = verdict.admission is not Admission.READY
        lines.append(field("received", said(verdict.call.name, Role.STRONG), Span("  "),
                           quoted(verdict.call.arguments or "", Role.RAW)))
        lines.append(more(Span(verdict.admission.value.upper(), Role.HELD if held else Role.OK), Span("  "),
                          said(verdict.why)))
    lines += [field("lost" if not i else "", said(what, Role.WARN)) for i, what in enumerate(row.lost)]
    if row.blind:
        lines.append(field("blind", Span(row.blind, Role.ERROR)))
    return lines


def _decided(row: Row) -> list[Line]:
    last = row.run.trace.steps[-1].turn
    lines: list[Line] = [(), field("decision", *cells(row)[6], Span(f"  by {last.policy.name}", Role.DIM))]
    return [*lines, more(said(last.notice, Role.DIM))] if last.notice else lines


def _peers(row: Row) -> list[Line]:
    return [
        field("peers" if not number else "", Span(f"{VERSIONS[peer.name]:<20}", Role.DIM), Span(f"{peer.word:<16}"),
              Span("as we do" if peer.agrees else f"that is {peer.means.value}",
                   Role.ERROR if peer.looser else Role.PLAIN))
        for number, peer in enumerate(row.peers)
    ]
