"""Breakpoints as values: an expression of the filter language, on or off; and the next step that one stops at."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from inspector.report.facts import View
from loop_core.frozen import frozen
from loop_core.gate import Admission

if TYPE_CHECKING:
    from inspector.filters import Filter
    from inspector.filters.terms import Look


@frozen
class Breakpoint:
    """One breakpoint."""

    text: str
    enabled: bool = True


@lru_cache(maxsize=64)
def read(text: str) -> Filter:
    """The filter of an expression; one that was read before keeps what it learned of each response.

    Raises:
        FilterError: it cannot be read.
    """
    from inspector import filters  # not before it is wanted: the first frame needs none

    return filters.parse(text)


def next_stop(
    stops: Sequence[Breakpoint], view: View, step: int, by: int, marks: frozenset[int]
) -> tuple[int, str] | None:
    """The nearest step that an enabled breakpoint stops at, and its expression; None where there is none."""
    from inspector import filters

    found = [
        (at, each.text) for each in stops if each.enabled
        and (at := filters.hit_after(read(each.text), view, step, by, marks)) is not None
    ]
    return (min if by > 0 else max)(found, key=lambda hit: hit[0], default=None)


def hits(stop: Breakpoint, view: View, marks: frozenset[int]) -> int:
    """At how many steps a breakpoint stops."""
    from inspector import filters

    count, at = 0, -1
    while (following := filters.hit_after(read(stop.text), view, at, 1, marks)) is not None:
        count, at = count + 1, following
    return count


def suggested(look: Look) -> list[str]:
    """Expressions that would stop at steps like this one."""
    step, response = look.step, look.response
    found = [f"state:{step.state.value}"]
    if response is not None:
        found.append(f"stop:{response.judged.stop.normalized.value}")
        if response.judged.ending is not None:
            found.append(f"ending:{response.judged.ending.value}")
        if any(verdict.admission is Admission.HELD for verdict in response.verdicts):
            found.append("held")
        found += [f"tool:{verdict.call.name}" for verdict in response.verdicts[:1] if verdict.call.name.isidentifier()]
    found += [f"event:{record['event']}" for record in step.records]
    return list(dict.fromkeys([*found, "budget>=80%", "end:*"]))
