"""One intended answer, one budget, and how every provider would have told of it.

A scenario says what a model meant to answer, a dialect how one server spells what became of it. The answer is cut at
the budget, written in the dialect's own bytes, decoded by our decoders, judged, gated and run through the machine.

    Scenario ─play─▶ Played ─written─▶ bytes ─▶ Exchange ─▶ Replay ─▶ Row ─▶ text, JSON, lines of a screen
"""

from inspector.dialects.dialect_rows import Row, opened, rows
from inspector.dialects.scenarios import SCENARIOS, Scenario
from inspector.dialects.table import DIALECTS, Dialect

__all__ = ["DIALECTS", "SCENARIOS", "Dialect", "Row", "Scenario", "opened", "rows"]
