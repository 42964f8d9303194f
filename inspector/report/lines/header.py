"""The first lines of every view: the verdict, worst turn first, and how the other turns fare."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.report.facts import View
from inspector.report.lines.spans import Line, Role, Span, joined, said
from inspector.report.lines.steps import role_of


def verdict(view: View) -> Line:
    """The verdict line: the word, where, what happened, what to change."""
    worst = view.worst
    if worst is None:
        return (Span("NOTHING READ", Role.ERROR), Span("  "), said(problem(view) or "no LLM traffic was found"))
    seen = worst.verdict
    spans = [Span(f"{seen.glyph} {seen.word}", role_of(seen)), Span("  "),
             Span(f"turn {view.number(worst)} of {len(view.turns)}", Role.STRONG), Span(" · ", Role.DIM),
             said(seen.sentence)]
    if seen.advice:
        spans += [Span(" · ", Role.DIM), said(seen.advice.text, Role.KEY)]
    return tuple(spans)


def problem(view: View) -> str | None:
    """The first thing that went wrong with reading, if any."""
    return next((given.error for given in view.inputs if given.error), None)


def counts(view: View) -> Line:
    """How many turns have each verdict, worst first."""
    severities = {turn.verdict.word: role_of(turn.verdict) for turn in view.turns}
    glyphs = {turn.verdict.word: turn.verdict.glyph for turn in view.turns}
    return joined(
        (Span(f"{number:,} ", Role.STRONG), Span(f"{glyphs[word]} {word}", severities[word]))
        for word, number in view.counts()
    )


def source(paths: Sequence[str], view: View, branch: str) -> Line:
    """What is looked at: the files, the run, and what could not be read."""
    parts: list[list[Span]] = [[said(f"run {branch}", Role.STRONG if branch != "original" else Role.DIM)]]
    title = next((given.about.title for given in view.inputs if given.about and given.about.title), "")
    shown = paths[0].rsplit("/", 1)[-1] if paths else "session"
    parts.append([said(title or shown, Role.DIM, 60)])
    if len(view.inputs) > 1:
        parts.append([Span(f"{len(view.inputs):,} inputs", Role.DIM)])
    wrong = problem(view)
    if wrong is not None:
        parts.append([said(wrong, Role.ERROR)])
    else:
        left = sum(len(given.skipped) for given in view.inputs)
        if left:
            parts.append([Span(f"{left:,} entries skipped", Role.WARN)])
    return joined(parts)
