"""The first lines of every view: the verdict, worst turn first, and how the other turns fare."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.report.facts import View
from inspector.report.lines.spans import Line, Role, Span, joined, said, width_of
from inspector.report.lines.steps import role_of

ADVICE_KEPT = 60
"""Cells that an advice has at least, where it and the sentence do not fit both."""


def verdict(view: View, room: int | None = None) -> Line:
    """The verdict line: the word, where, what happened, what to change; in so many cells, where `room` is given."""
    worst = view.worst
    if worst is None:
        return (Span("NOTHING READ", Role.ERROR), Span("  "), said(problem(view) or "no LLM traffic was found"))
    seen = worst.verdict
    spans = [Span(f"{seen.glyph} {seen.word}", role_of(seen)), Span("  "),
             Span(f"turn {view.number(worst)} of {len(view.turns)}", Role.STRONG), Span(" · ", Role.DIM)]
    sentence, advice = said(seen.sentence), said(seen.advice.text, Role.KEY) if seen.advice else None
    dot = Span(" · ", Role.DIM)
    if room is not None:
        left = room - width_of(tuple(spans))
        kept = 0 if advice is None else max(min(width_of((dot, advice)), ADVICE_KEPT), left - width_of((sentence,)))
        sentence = said(seen.sentence, width=max(ADVICE_KEPT, left - kept))
        advice = None if seen.advice is None else said(seen.advice.text, Role.KEY, max(1, kept - width_of((dot,))))
    return (*spans, sentence) if advice is None else (*spans, sentence, dot, advice)


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
