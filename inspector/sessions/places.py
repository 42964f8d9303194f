"""The place of an exchange in its turn, read from what its history adds after the answer that it follows.

Pure functions over items; which exchange is followed was found before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from inspector.sessions.items import History, Item, Kind, cut_result, known_hint, quotes_end
from inspector.sessions.parents import Seen
from inspector.sessions.recording import Place
from loop_core.turn.prompts import asks_again


class Placed(NamedTuple):
    """A place, and what showed it."""

    place: Place
    why: str


def last_answer(history: History) -> int:
    """The number of the last assistant item; -1 where there is none."""
    return next((n for n in range(len(history.items) - 1, -1, -1) if history.items[n].kind is Kind.ASSISTANT), -1)


def tail_of(history: History) -> tuple[Item, ...]:
    """What the history adds after its last assistant item."""
    return history.items[last_answer(history) + 1 :]


def new_message(history: History) -> int:
    """The number of the last user item that the history adds after its last answer; -1 where it adds none."""
    added = range(len(history.items) - 1, last_answer(history), -1)
    return next((n for n in added if history.items[n].kind is Kind.USER), -1)


def opening(history: History) -> int:
    """The number of the user item that opened the current turn; -1 where there is none.

    Neither a known hint nor a message that comes right after tool results (steering) opens a turn.
    """
    items = history.items
    for number in range(len(items) - 1, -1, -1):
        if items[number].kind is not Kind.USER:
            continue
        before = next((item for item in reversed(items[:number]) if item.kind not in (Kind.SYSTEM, Kind.USER)), None)
        if before is None:
            return number
        if before.kind is not Kind.RESULTS and known_hint(items[number].text, call=False) is None:
            return number
    return -1


def place(tail: Sequence[Item], parent: Seen | None) -> Placed:
    """The place of an exchange whose history adds `tail` to its parent's answer."""
    if not tail:
        return _prefill(parent) if parent is None or parent.exchange.recorder is None else _at_once(parent)
    if any(item.kind is Kind.RESULTS for item in tail):
        return _results(tail, parent)
    said = "\n".join(item.text for item in tail)
    if parent is not None and asks_again(said):
        return Placed(Place.CONTINUATION, "a hint of ours that asks for the last words once more")
    if parent is not None and (parent.cut or parent.paused) and not parent.lost:
        hint = known_hint(said, parent.call_cut)
        if hint is None and quotes_end(said, parent.joined):
            hint = "it repeats the end of the cut text"
        elif hint is not None:
            hint = f"a known hint ({hint})"
        elif all(item.kind is Kind.SYSTEM for item in tail):
            hint = "a system message alone"
        if hint is not None:
            return _after_cut(parent, hint)
    return Placed(
        Place.REQUEST, "a new user message" if any(item.kind is Kind.USER for item in tail) else "a new request"
    )


def _prefill(parent: Seen | None) -> Placed:
    if parent is None:
        return Placed(Place.REQUEST, "a request with an assistant text of its own to go on from")
    if parent.paused:
        return Placed(Place.RESUME, "the paused answer is sent back as it was")
    return Placed(Place.CONTINUATION, "the request ends with the answer's own text, to go on from")


def _at_once(parent: Seen) -> Placed:
    """An answer right after an answer: what a transcript leaves out can only be told by the first."""
    if parent.paused:
        return Placed(Place.RESUME, "the answer after a pause")
    if parent.failed:
        return Placed(Place.RETRY, "the next answer, at once after a failure")
    if parent.calls:
        return Placed(Place.TOOL_RESULT, "the next answer; the results of the calls were not recorded")
    return Placed(Place.CONTINUATION, "the next answer follows at once; what was asked was not recorded")


def _results(tail: Sequence[Item], parent: Seen | None) -> Placed:
    if parent is not None and parent.cut_calls:
        for item in tail:
            for result in item.results:
                wording = cut_result(result.text)
                if result.is_error or wording is not None:
                    return Placed(Place.REPAIR, f"the result of a cut call reports it ({wording or 'an error'})")
    steered = any(item.kind is Kind.USER for item in tail)
    return Placed(Place.TOOL_RESULT, "tool results are sent back" + (", with a user message" if steered else ""))


def _after_cut(parent: Seen, hint: str) -> Placed:
    if parent.paused:
        return Placed(Place.RESUME, f"after a pause: {hint}")
    if parent.call_cut:
        return Placed(Place.REPAIR, f"after a cut call: {hint}")
    return Placed(Place.CONTINUATION, f"after a cut: {hint}")
