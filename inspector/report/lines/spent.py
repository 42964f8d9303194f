"""What a turn has spent: every output token of it, and what counts against each of the four continuation limits."""

from __future__ import annotations

from inspector.report.lines.spans import Line, Role, Span
from loop_core.events import remaining
from loop_core.limits import Spent
from loop_core.turn import Turn

FULL, EMPTY = "▰", "▱"
GAUGE, NAME = 4, 12
SHORT = {"attempts": "att", "cont_tokens": "tok", "cont_chars": "chr", "repairs": "rep"}


def gauges(turn: Turn, width: int = 80) -> list[Line]:
    """All output, then one line a limit: name, gauge, and the numbers, set closer where the column is narrow."""
    lines: list[Line] = [(Span(f"{'output':<{NAME}}", Role.KEY), Span(f"{turn.spent.output_tokens:,} tokens"))]
    rows = remaining(turn)
    longest = max(len(f"{used:,} of {limit:,}") for _, _, used, limit in rows if limit is not None)
    between = " of " if NAME + GAUGE + 1 + longest <= width else "/"
    for _, name, used, limit in rows:
        role = _role(used, limit)
        filled, blank = _filled(used, limit)
        numbers = f" {used:,}{between}{limit:,}" if limit is not None else f" {used:,}, no limit"
        lines.append((
            Span(f"{name:<{NAME}}", Role.KEY), Span(FULL * filled, role), Span(EMPTY * blank, Role.RULE),
            Span(" " * (GAUGE - filled - blank)), Span(numbers, role),
        ))
    lines += [(Span(doubt, Role.DIM),) for doubt in doubts(turn.spent)]
    return lines


def output(spent: Spent) -> str:
    """All output tokens of a turn in words, with what is not sure of them."""
    told = f"{spent.output_tokens:,} output token{'' if spent.output_tokens == 1 else 's'}"
    doubt = ", ".join(doubts(spent))
    return f"{told} ({doubt})" if doubt else told


def doubts(spent: Spent) -> list[str]:
    """What makes the count of output tokens less than sure."""
    found = [f"{spent.tokens_assumed:,} assumed"] if spent.tokens_assumed else []
    if spent.uncounted:
        found.append(f"{spent.uncounted:,} response{'' if spent.uncounted == 1 else 's'} not counted")
    return found


def _filled(used: int, limit: int | None) -> tuple[int, int]:
    """Full and empty cells; a small limit is drawn cell by cell."""
    if limit is None or limit == 0:
        return 0, GAUGE if limit is None else 0
    size = min(limit, GAUGE)
    filled = min(size, used * size // limit)
    return filled, size - filled


def _role(used: int, limit: int | None) -> Role:
    if limit is None or used == 0:
        return Role.PLAIN
    return Role.ERROR if used >= limit else Role.WARN if used * 4 >= limit * 3 else Role.PLAIN


def short(turn: Turn, tight: bool = False) -> Line:
    """All four limits on one line: `att 2/3 tok 60% chr 3% rep 0/1`, or tight: `a2/3 t60% c3% r0/1`."""
    spans: list[Span] = []
    for _, name, used, limit in remaining(turn):
        if limit is None:
            shown = f"{used:,}"
        elif name in ("attempts", "repairs"):
            shown = f"{used}/{limit}"
        else:
            shown = f"{min(999, used * 100 // limit)}%"
        label = SHORT[name][0] if tight else f"{SHORT[name]} "
        spans += [Span(f"{' ' if spans else ''}{label}", Role.DIM), Span(shown, _role(used, limit))]
    return tuple(spans)
