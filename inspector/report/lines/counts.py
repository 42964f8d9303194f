"""The words beside a number of turns that say what it does not count."""

from __future__ import annotations

from inspector.report.lines.glyphs import SIMULATED
from inspector.report.lines.spans import count_of
from loop_core.turn.trace import Fidelity


def simulated_beside(count: int) -> str:
    """The number of simulated turns beside that of recorded ones, with the sign of their rows; empty for none."""
    return f" + {count:,} {Fidelity.SIMULATED} ({SIMULATED})" if count else ""


def copies_left_out(count: int) -> str:
    """The number of copied turns, such as ` (3 copies of turns left out)`; empty for none."""
    return f" ({count_of(count, 'copy of a turn', 'copies of turns')} left out)" if count else ""
