"""A sequence whose elements are made when they are first accessed is read like a list, whichever way."""

from __future__ import annotations

from inspector.replay.case import LazySequence


def test_only_what_a_loop_reaches_is_made() -> None:
    asked: list[int] = []
    found = LazySequence(asked.append(each) or each * 2 for each in range(5))  # type: ignore[func-returns-value]
    assert next(iter(found)) == 0
    assert asked == [0]
    assert (found[1], asked) == (2, [0, 1])


def test_two_loops_at_once_see_all_elements() -> None:
    found = LazySequence(iter(range(4)))
    assert [(one, [*found]) for one in found] == [(one, [0, 1, 2, 3]) for one in range(4)]
    assert list(zip(found, found, strict=True)) == [(one, one) for one in range(4)]
    assert (len(found), found[-1], found[1:], [*LazySequence(())]) == (4, 3, [1, 2, 3], [])
