"""Keys named in a line, such as `enter runs · esc leaves`: their spans, and the key at a column."""

from __future__ import annotations

import re

from inspector.report.lines.spans import Line, Measure, Span, Tone, cells

_KEY = (
    r"(?:^|(?<=[ (]))(?:enter|esc|space|tab|\^s|F\d|[↑↓←→]|[A-Za-z!.,:;?/\[\]{}])(?= \S|/[A-Z]| *$)")
_BEFORE = r"(?:^|[·:;,(]|\bor)$"
"""What stands before a key: a part of the line begins, or another way to do the same."""
ARTICLES = frozenset("aAI")
"""Letters that are words too: in a sentence they are not keys."""


def hint(text: str, role: Tone = Tone.DIM, *, sentence: bool = False) -> Line:
    """A line whose parts begin with keys, each key a span of its own; `sentence` takes no lone `a` for one."""
    spans: list[Span] = []
    end = 0
    for found in re.finditer(_KEY, text):
        before = text[: found.start()].rstrip()
        behind_key = bool(spans) and len(before) == end
        if (behind_key or re.search(_BEFORE, before)) and not (sentence and found[0] in ARTICLES):
            spans += [Span(text[end : found.start()], role)] if found.start() > end else []
            spans.append(Span(found[0], Tone.PRESS))
            end = found.end()
    return (*spans, Span(text[end:], role)) if end < len(text) else tuple(spans)


def key_at(line: Line, column: int, measure: Measure = cells) -> str | None:
    """The key whose span, or the words after it, contain a column; None if it lies on none."""
    at, before = 0, Span("")
    for span in line:
        at += measure(span.text)
        if column < at:
            return next((each.text.strip() for each in (span, before) if each.role is Tone.PRESS), None)
        before = span
    return None
