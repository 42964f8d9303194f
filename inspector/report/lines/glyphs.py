"""All glyphs of the screens and reports, and their ASCII replacements.

One table for all: a line is translated as a whole, the program's own glyphs by the table and any other character of a
transcript by its escape. A word always stands beside a glyph; none carries a meaning alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from inspector.report.lines.spans import Line, Role, Span
from inspector.report.verdict import ROWS
from inspector.sessions.transcripts.reasons import inference_of, is_unrecorded
from loop_core.judge.gate import Admission
from loop_core.turn.state import State
from loop_core.values import Stop, StopReason

HERE = "▶"
PAST = "│"
AHEAD = "┆"
MARKED = "◆"
NOTE = "✎"

STOP: Mapping[Stop, tuple[str, Role]] = {
    Stop.END_TURN: ("✓", Role.OK),
    Stop.TOOL_CALL: ("▷", Role.OK),
    Stop.MAX_TOKENS: ("✂", Role.ERROR),
    Stop.CONTEXT_WINDOW_EXCEEDED: ("▤", Role.ERROR),
    Stop.SAFETY_BLOCKED: ("⊘", Role.WARN),
    Stop.CANCELLED: ("╳", Role.WARN),
    Stop.UNKNOWN: ("?", Role.WARN),
    Stop.PAUSED: ("‖", Role.WARN),
    Stop.INTERRUPTED: ("╳", Role.ERROR),
    Stop.MALFORMED_TOOL_CALL: ("▣", Role.ERROR),
    Stop.ERROR: ("╳", Role.ERROR),
}
"""Effective reason -> its glyph, and how grave it is."""


def of_reason(stop: StopReason) -> tuple[str, Role]:
    """The glyph of a stop reason; an inferred or unrecorded reason never gets the glyph of success."""
    if is_unrecorded(stop):
        return "∅", Role.WARN
    glyph, role = STOP[stop.normalized]
    return ("≈", Role.PLAIN) if role is Role.OK and inference_of(stop) is not None else (glyph, role)


STATE: Mapping[State, tuple[str, Role]] = {
    State.REQUEST: ("→", Role.PLAIN),
    State.EVALUATE_STOP: ("◇", Role.PLAIN),
    State.EXECUTE_TOOLS: ("▷", Role.OK),
    State.CONTINUE_PENDING: ("◌", Role.WARN),
    State.REQUEST_CONTINUATION: ("→", Role.PLAIN),
    State.REPAIR_PENDING: ("◌", Role.WARN),
    State.REQUEST_TOOL_REPAIR: ("→", Role.PLAIN),
    State.RESUME: ("→", Role.PLAIN),
    State.NUDGE_PENDING: ("◌", Role.WARN),
    State.REQUEST_NUDGE: ("→", Role.PLAIN),
    State.ABORT_PARTIAL: ("■", Role.ERROR),
    State.ABORT: ("■", Role.ERROR),
    State.COMPLETE: ("✓", Role.OK),
    State.UNRECORDED: ("∅", Role.WARN),
}
"""State -> its glyph, and how grave it is; EvaluateStop shows the reason's glyph instead where one is known."""

ADMISSION: Mapping[Admission, tuple[str, Role]] = {
    Admission.READY: ("▷", Role.OK),
    Admission.HELD: ("▣", Role.HELD),
    Admission.REJECTED: ("⊘", Role.WARN),
}

ASCII: Mapping[str, str] = {
    **{row.glyph: row.ascii for row in ROWS},
    "▶": ">", "◀": "<", "▷": ">", "→": ">", "▸": ">", "▾": "v", "↺": "^", "●": "*", "○": ".", "◇": "o", "◌": "o",
    "■": "X", "◆": "*", "✎": "#", "▰": "#", "▱": ".", "▌": "|", "▐": "|", "▁": "_", "▔": "-", "█": "#",
    "░": ".", "▒": ":", "▓": "%",
    "│": "|", "┃": "#", "┆": ":", "─": "-", "═": "=", "━": "=", "├": "+", "└": "+",
    "·": "-", "…": "...", "–": "-", "−": "-", "×": "x", "≥": ">=", "⚠": "!", "⏎": "\\n", "⌫": "bksp", "␛": "^[",
}
"""Our glyphs -> ASCII. Most keep their width, so that columns stay columns."""

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
