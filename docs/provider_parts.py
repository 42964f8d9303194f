"""The generated parts of `providers.md`: the dialects, and how each of them reports two scenarios."""

from __future__ import annotations

from parts import code, table

from inspector.provider.dialect_lines import cells, entries
from inspector.provider.dialect_rows import DialectRow, rows
from inspector.provider.dialects import DIALECTS, PEER_VERSIONS
from inspector.provider.scenarios import SCENARIOS
from inspector.report.lines.spans import text_of


def dialects() -> str:
    """How each server differs from its format, with the source."""
    return table(("dialect", "what it does", "source", "cut answers that the judge misses"), (
        (code(each.name), each.title or "follows its format", each.source,
         "; ".join(f"{moment.value.replace('_', ' ')}: {why}" for moment, why in each.blind.items()))
        for each in DIALECTS
    ))


def scenarios() -> str:
    """The scenarios."""
    return table(("scenario", "what happens", "budget"), (
        (code(each.name), each.title, f"{each.budget:,} tokens") for each in SCENARIOS.values()
    ))


def call_cut() -> str:
    """A call that the budget cuts."""
    return _told("call-cut")


def text_cut() -> str:
    """A text that the budget cuts."""
    return _told("text-cut")


def _told(scenario: str) -> str:
    lines = []
    for row, like in entries(rows(SCENARIOS[scenario])):
        _, raw, mapped, effective, seen, call, decision, differ = (text_of(cell) for cell in cells(row))
        names = ", ".join([code(row.name), *(code(each.name.partition("/")[2]) for each in like)])
        if not isinstance(row, DialectRow):
            lines.append((names, row.why, *[""] * 6))
            continue
        word = raw if row.exchange.response.raw_stop_reason is None else code(raw)
        lines.append((names, word, code(mapped), effective, seen, call, decision, differ))
    head = ("dialects", "raw word", "mapped", "effective", "seen by", "the call", "a loop under `strict`",
            "libraries that differ")
    return table(head, lines)


def libraries() -> str:
    """The libraries whose words are shown, with their versions."""
    return ", ".join(f"{version} ({code(name)})" for name, version in PEER_VERSIONS.items())
