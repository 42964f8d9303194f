"""What sorting the table of turns by each column does, and which columns stand for each other in its two forms."""

from __future__ import annotations

from collections.abc import Mapping

SORTS: Mapping[str, str] = {
    "verdict": "worst first", "session": "by title, or file name without one; turns in order",
    "raw → reason": "by the effective reason",
    "turn": "by its number in the session", "turns": "the longest session first",
    "tokens": "output of the answer that decided", "calls": "most held first",
    "model": "by name", "age": "newest first", "agent": "by name", "took": "the time of its answers",
    "what to change": "same advice together", "message": "by the user's message",
}
"""Column -> what sorting by it does."""
OTHER_FORM: Mapping[str, str] = {"turn": "turns", "turns": "turn"}
"""Column -> the column in its place in the other form of the table: one row a session, or one row a turn."""
