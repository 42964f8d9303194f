"""All glyphs of the screens and reports, and their ASCII replacements.

A line is translated as a whole: the program's glyphs by a table, any other non-ASCII character to its escape. Every
glyph has a word beside it, so no meaning depends on a glyph alone.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate

from inspector.report.advice import LIVE, NEVER_RUN, TRIED, UNSEEN, Advice
from inspector.report.lines.spans import Line, Measure, Span, Tone, count_of, safe
from inspector.report.verdict import ROWS
from inspector.sessions.reasons import inference_of, is_unrecorded
from loop_core.judge.gate import Admission
from loop_core.turn.state import State
from loop_core.turn.trace import Fidelity
from loop_core.values import Stop, StopReason

HERE = "▶"
PAST = "│"
AHEAD = "┆"
AT_CURSOR = "┃"
"""The gutter of text that the cursor has reached."""
MARKED = "◆"
NOTE = "✎"
SIMULATED = "~"
"""The sign after a SIMULATED value in tables, which have no room for the word."""


def simulated_beside(count: int) -> str:
    """The number of simulated turns, to follow that of the recorded ones, with the sign of their rows; empty for 0."""
    return f" + {count:,} {Fidelity.SIMULATED} ({SIMULATED})" if count else ""


def copies_left_out(count: int) -> str:
    """The number of copied turns, such as ` (3 copies of turns left out)`; empty for none."""
    return f" ({count_of(count, 'copy of a turn', 'copies of turns')} left out)" if count else ""


STOP: Mapping[Stop, tuple[str, Tone]] = {
    Stop.END_TURN: ("✓", Tone.OK),
    Stop.TOOL_CALL: ("▷", Tone.OK),
    Stop.MAX_TOKENS: ("✂", Tone.ERROR),
    Stop.CONTEXT_WINDOW_EXCEEDED: ("▤", Tone.ERROR),
    Stop.SAFETY_BLOCKED: ("⊘", Tone.WARN),
    Stop.CANCELLED: ("╳", Tone.WARN),
    Stop.UNKNOWN: ("?", Tone.WARN),
    Stop.PAUSED: ("‖", Tone.WARN),
    Stop.INTERRUPTED: ("╳", Tone.ERROR),
    Stop.MALFORMED_TOOL_CALL: ("▣", Tone.ERROR),
    Stop.ERROR: ("╳", Tone.ERROR),
}
"""Effective stop reason -> its glyph, and the role that shows its severity."""


def of_reason(stop: StopReason) -> tuple[str, Tone]:
    """The glyph of a stop reason; an inferred or unrecorded reason never gets the glyph of success."""
    if is_unrecorded(stop):
        return "∅", Tone.WARN
    glyph, role = STOP[stop.normalized]
    return ("≈", Tone.PLAIN) if role is Tone.OK and inference_of(stop) is not None else (glyph, role)


STATE: Mapping[State, tuple[str, Tone]] = {
    State.REQUEST: ("→", Tone.PLAIN),
    State.EVALUATE_STOP: ("◇", Tone.PLAIN),
    State.EXECUTE_TOOLS: ("▷", Tone.OK),
    State.CONTINUE_PENDING: ("◌", Tone.WARN),
    State.REQUEST_CONTINUATION: ("→", Tone.PLAIN),
    State.REPAIR_PENDING: ("◌", Tone.WARN),
    State.REQUEST_TOOL_REPAIR: ("→", Tone.PLAIN),
    State.RESUME: ("→", Tone.PLAIN),
    State.NUDGE_PENDING: ("◌", Tone.WARN),
    State.REQUEST_NUDGE: ("→", Tone.PLAIN),
    State.ABORT_PARTIAL: ("■", Tone.ERROR),
    State.ABORT: ("■", Tone.ERROR),
    State.COMPLETE: ("✓", Tone.OK),
    State.UNRECORDED: ("∅", Tone.WARN),
}
"""State -> its glyph and severity; EvaluateStop shows the stop reason's glyph if there is one."""

ADMISSION: Mapping[Admission, tuple[str, Tone]] = {
    Admission.READY: ("▷", Tone.OK),
    Admission.HELD: ("▣", Tone.HELD),
    Admission.REJECTED: ("⊘", Tone.WARN),
}

UNBROKEN = "\u00a0"
"""A space at which no line is broken."""
ASCII: Mapping[str, str] = {
    **{row.glyph: row.ascii for row in ROWS},
    "▶": ">", "◀": "<", "▷": ">", "→": ">", "▸": ">", "▾": "_", "↺": "^", "●": "*", "○": ".", "◇": "o", "◌": "o",
    "■": "X", "◆": "*", "✎": "@", "▰": "#", "▱": ".", "▌": "|", "▐": "|", "▁": "_", "▔": "-", "█": "#",
    "░": ".", "▒": ":", "▓": "%",
    "│": "|", "┃": "]", "┆": ":", "─": "-", "═": "=", "━": "=", "├": "+", "└": "+",
    "·": "-", "…": "...", "–": "-", "−": "-", "×": "x", "≥": ">=", "⚠": "!", "⏎": "\\n", "⌫": "bksp", "␛": "^[",
    "←": "<", "↑": "up", "↓": "down", "␣": "space", "≠": "!", "▴": "^", "›": ">",
    UNBROKEN: " ",
}
"""Glyph of the program -> its ASCII replacement, mostly of the same width, so that columns stay aligned."""

_TABLE = str.maketrans(dict(ASCII))


def ascii_text(text: str) -> str:
    """`text` in ASCII: glyphs by the table, other characters escaped."""
    if text.isascii():
        return text
    text = text.translate(_TABLE)
    return text if text.isascii() else text.encode("ascii", "backslashreplace").decode("ascii")


def ascii_line(line: Line) -> Line:
    """A line in ASCII."""
    return tuple(Span(ascii_text(span.text), span.role) for span in line)


# -- Keys named in a line: their spans, and the key at a column --------------------------------------------------------

_KEY = (
    r"(?:^|(?<=[ (]))(?:enter|esc|space|tab|\^s|F\d|[↑↓←→]|[A-Za-z!.,:;?/\[\]{}])(?= \S|/[A-Z]| *$)")
_BEFORE = r"(?:^|[·:;,(]|\bor)$"
"""Matches the text before a key: the beginning of a part of the line, or `or`."""
ARTICLES = frozenset("aAI")
"""The letters that are also words, and therefore do not count as keys in a sentence."""


def hint(text: str, role: Tone = Tone.DIM, *, sentence: bool = False) -> Line:
    """A line whose parts begin with keys, each key in its own span; in a `sentence`, single `ARTICLES` are words."""
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


WIRE_FORMS = ("events", "parsed", "raw", "hex", "request")
"""The forms of the tab Wire."""
DIFF_FORMS = ("step", "request", "run")
"""The comparisons of the tab Diff: a step or a request with the one before, or a run with the original run."""


FORMS_KEY = (Span("v", Tone.PRESS), Span(" ", Tone.DIM))


def forms_line(forms: Sequence[str], here: str) -> Line:
    """The key that switches the forms of a view, and the forms, the current one in brackets as everywhere. All of it
    fits into a terminal of 41 columns."""
    form_spans = [Span(f"[{form}]", Tone.HERE) if form == here else Span(f" {form} ", Tone.DIM) for form in forms]
    return (*FORMS_KEY, *form_spans)


def keys_to_form(line: Line, column: int, measure: Measure) -> list[str]:
    """The keys that lead to the form at a column of a line of forms; none if that is the current one, or no form."""
    forms = line[len(FORMS_KEY) :]
    here = next((at for at, span in enumerate(forms) if span.role is Tone.HERE), None)
    if line[: len(FORMS_KEY)] != FORMS_KEY or here is None:  # another line, or one that is wrapped before this form
        return []
    ends = [*accumulate((measure(span.text) for span in forms), initial=sum(measure(span.text) for span in FORMS_KEY))]
    there = bisect_right(ends, column) - 1
    return [FORMS_KEY[0].text] * ((there - here) % len(forms)) if 0 <= there < len(forms) else []


def key_at(line: Line, column: int, measure: Measure) -> str | None:
    """The key whose span, or whose words after it, contain a column; None if there is none."""
    at, before = 0, Span("")
    for span in line:
        at += measure(span.text)
        if column < at:
            return next((each.text.strip() for each in (span, before) if each.role is Tone.PRESS), None)
        before = span
    return None


# -- The key after an advice; it is not a part of the advice, which reports print too ---------------------------------


KEYS: Mapping[str, str] = {
    **dict.fromkeys(TRIED.values(), "F makes this run"),
    LIVE: "F asks the provider or a stand-in",
    UNSEEN: "L opens the form of a live turn",
}
"""The end of an advice -> the key that follows it."""


def key_of(advice: str) -> str:
    """What the key for an advice does; empty if no key follows the advice."""
    return next((does for end, does in KEYS.items() if advice.endswith(end)), "")


def keyed(advice: str, role: Tone) -> Line:
    """An advice after its key and what the key does, for places where the end of the advice may be cut off."""
    does = key_of(advice)
    warning = NEVER_RUN if does and advice.startswith(NEVER_RUN) else ""
    key = (Span(does.partition(" ")[0], Tone.PRESS), Span(" ")) if does else ()
    return (*((Span(warning, role),) if warning else ()), *key, safe(advice[len(warning):], role))


def why_no_run(advice: Advice) -> str:
    """Why an advice cannot be tried: the rest was not recorded, or no setting is the cause of the verdict."""
    if advice.text.endswith(UNSEEN):
        return f"the rest was not recorded · {KEYS[UNSEEN]}"
    return f"no setting changes this · {advice.text}"
