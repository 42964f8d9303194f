"""Looks through a session with a filter: steps, responses, and where a breakpoint stops."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.filters.language import Filter
from inspector.filters.terms import Look
from inspector.report.facts import View


def steps(found: Filter, view: View, marks: frozenset[int] = frozenset()) -> list[int]:
    """The steps that match, by index."""
    matches = found.matches
    return [index for index in range(len(view.steps)) if matches(Look(view, index, marks))]


def responses(found: Filter, view: View) -> list[int]:
    """The responses that match at the step that evaluates them or a step after it, until the next response."""
    return sorted({at for index in steps(found, view) if (at := view.steps[index].response) is not None})


def hit_after(
    found: Filter, view: View, step: int, direction: int = 1, marks: frozenset[int] = frozenset()
) -> int | None:
    """The next step at which a breakpoint stops, forward (1) or back (-1); None where there is none.

    It stops where the filter begins to match, and again at each further response or turn that matches: a condition that
    stays true does not stop at every step of one response.
    """
    for index in _from(view, step, direction):
        if _begins(found, view, index, marks):
            return index
    return None


def _from(view: View, step: int, direction: int) -> Iterator[int]:
    return iter(range(step + 1, len(view.steps)) if direction > 0 else range(step - 1, -1, -1))


def _begins(found: Filter, view: View, index: int, marks: frozenset[int]) -> bool:
    here = Look(view, index, marks)
    if not found.matches(here):
        return False
    before = Look(view, index - 1, marks)
    if index == 0 or not found.matches(before):
        return True
    return here.answer != before.answer or here.step.turn.id != before.step.turn.id
