"""The heat map of a grid as lines: what stands in each cell, of all turns together or of one.

Each cell is a glyph and a word or number, so that nothing hangs on colour; `~` stands behind what was simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from inspector.report.lines.glyphs import STATE
from inspector.report.lines.spans import Line, Role, Span
from inspector.tune.axes import SHORT
from inspector.tune.grid import UNDONE, End
from inspector.tune.plane import plane
from inspector.tune.run import Tuned
from loop_core.trace import Fidelity
from loop_core.turn import State

SIMULATED = "~"
SHADES = "░▒▓█"
WIDTH = 80

WORDS: Mapping[str, str] = {
    **SHORT,
    "max_thinking_only": "thinking", "min_progress_chars": "progress", "max_tool_steps": "rounds",
    "max_identical_calls": "identical", "max_resumes": "resumes",
    "completed": "done", "unrecorded": "unrecorded", "retry_limit": "no method", "interrupted": "cut off",
    "cut_unseen": "cut unseen", "safety_blocked": "filtered", "context_window_exceeded": "context",
}
"""The limit that stopped a turn, or else its terminal reason -> one word."""


def word(end: End) -> str:
    """How a turn ends, in a word: the limit that stopped it, or why it ended."""
    told = end.limit or ("cut_unseen" if end.cut_unseen else end.terminal)
    return WORDS.get(told, told)


def _outcome(tuned: Tuned, cell: int) -> Span:
    """All turns together: how many complete, and the gravest state of the others."""
    done, all_turns = tuned.completed[cell], tuned.every
    left = all_turns - done - tuned.unrecorded[cell]
    state = State.ABORT_PARTIAL if left else State.UNRECORDED if done < all_turns else State.COMPLETE
    glyph, role = STATE[state]
    return Span(f"{glyph} {done}/{all_turns}", role)


def _shaded(value: int, most: int) -> Span:
    if not value or not most:
        return Span(f"  {value:,}", Role.DIM)
    level = min(len(SHADES) - 1, value * len(SHADES) // (most + 1))
    return Span(f"{SHADES[level]} {value:,}")


class _Shown(NamedTuple):
    """One measure: over all turns, for one turn, and what its glyphs mean."""

    total: Callable[[Tuned], Sequence[int]]
    single: Callable[[End], int]
    title: str


SHOWS: Mapping[str, _Shown] = {
    "outcome": _Shown(lambda tuned: tuned.completed, lambda end: end.completed, "turns that complete"),
    "spend": _Shown(lambda tuned: tuned.tokens, lambda end: end.spent.output_tokens,
                    "output tokens of all responses"),
    "segments": _Shown(lambda tuned: tuned.segments, lambda end: end.segments,
                       "responses that the answers are made of"),
}
"""What a map may show."""


def marks(tuned: Tuned, show: str, turn: int | None = None) -> list[Span]:
    """What stands in each cell: of all turns together, or of one."""
    if turn is None and len(tuned.turns) == 1:
        turn = 0
    return _all(tuned, show) if turn is None else _one(tuned, show, turn)


def _all(tuned: Tuned, show: str) -> list[Span]:
    values = SHOWS[show].total(tuned)
    most = max(values, default=0)
    found: list[Span] = []
    for cell, value in enumerate(values):
        if not tuned.whole(cell):
            found.append(Span("", Role.AHEAD))
            continue
        mark = _outcome(tuned, cell) if show == "outcome" else _shaded(value, most)
        found.append(mark if not tuned.simulated[cell] else Span(mark.text + SIMULATED, mark.role))
    return found


def _one(tuned: Tuned, show: str, turn: int) -> list[Span]:
    seen = tuned.turns[turn]
    most = max((SHOWS[show].single(end) for end in seen.ends), default=0)
    by_code = {UNDONE: Span("", Role.AHEAD)}
    for code, end in enumerate(seen.ends):
        if show == "outcome":
            glyph, role = STATE[end.looks]
            mark = Span(f"{glyph} {word(end)}", role)
        else:
            mark = _shaded(SHOWS[show].single(end), most)
        by_code[code] = mark if end.fidelity != Fidelity.SIMULATED else Span(mark.text + SIMULATED, mark.role)
    return [by_code[code] for code in seen.codes]


def key(show: str, single: bool) -> str:
    """What the glyphs mean."""
    if show != "outcome":
        return f"{SHADES[0]} little to {SHADES[-1]} most: {SHOWS[show].title}"
    glyphs = {state: STATE[state][0] for state in (State.COMPLETE, State.ABORT_PARTIAL, State.UNRECORDED)}
    told = "the word names the limit or reason" if single else "the number counts the turns that complete"
    return (f"{glyphs[State.COMPLETE]} complete  {glyphs[State.ABORT_PARTIAL]} ended incomplete  "
            f"{glyphs[State.UNRECORDED]} the recording ends first; {told}")


# -- the map ---------------------------------------------------------------------------------------------------------


def heat(tuned: Tuned, show: str, turn: int | None = None, width: int = WIDTH, here: int | None = None) -> list[Line]:
    """The map, at most `width` columns wide; the cell `here` is marked."""
    spans = marks(tuned, show, turn)
    made = plane(tuned.grid.axes, spans, width)
    return [made.line(y, spans, here) for y in range(made.height)]
