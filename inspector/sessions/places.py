"""The place of an exchange in its turn, read from what its history adds after the answer that it follows.

Pure functions over items; which exchange is followed was found before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from inspector.sessions.items import History, HistoryItem, ItemKind
from inspector.sessions.parents import SeatedExchange
from inspector.sessions.recording import TurnPlace
from inspector.sessions.wordings import cut_result, known_hint, quotes_end
from loop_core.turn.prompts import repeats_request


class PlaceEvidence(NamedTuple):
    """A place, and what showed it."""

    place: TurnPlace
    why: str


def last_answer(history: History) -> int:
    """The number of the last assistant item; -1 where there is none."""
    return next((n for n in range(len(history.items) - 1, -1, -1) if history.items[n].kind is ItemKind.ASSISTANT), -1)


def tail_of(history: History) -> tuple[HistoryItem, ...]:
    """What the history adds after its last assistant item."""
    return history.items[last_answer(history) + 1 :]


def new_message(history: History) -> int:
    """The number of the last user item that the history adds after its last answer; -1 where it adds none."""
    added = range(len(history.items) - 1, last_answer(history), -1)
    return next((n for n in added if history.items[n].kind is ItemKind.USER), -1)


def opening(history: History) -> int:
    """The number of the user item that opened the current turn; -1 where there is none.

    Neither a known hint nor a message that comes right after tool results (steering) opens a turn.
    """
    items = history.items
    for number in range(len(items) - 1, -1, -1):
        if items[number].kind is not ItemKind.USER:
            continue
        answers = (item for item in reversed(items[:number]) if item.kind not in (ItemKind.SYSTEM, ItemKind.USER))
        before = next(answers, None)
        if before is None:
            return number
        if before.kind is not ItemKind.RESULTS and known_hint(items[number].text, call=False) is None:
            return number
    return -1


def place(tail: Sequence[HistoryItem], parent: SeatedExchange | None) -> PlaceEvidence:
    """The place of an exchange whose history adds `tail` to its parent's answer."""
    if not tail:
        return _prefill(parent) if parent is None or parent.exchange.recorder is None else _at_once(parent)
    if any(item.kind is ItemKind.RESULTS for item in tail):
        return _results(tail, parent)
    said = "\n".join(item.text for item in tail)
    if parent is not None and repeats_request(said):
        return PlaceEvidence(TurnPlace.CONTINUATION, "a hint of ours that asks for the last words once more")
    if parent is not None and (parent.cut or parent.paused) and not parent.lost:
        hint = known_hint(said, parent.call_cut)
        if hint is None and quotes_end(said, parent.joined):
            hint = "it repeats the end of the cut text"
        elif hint is not None:
            hint = f"a known hint ({hint})"
        elif all(item.kind is ItemKind.SYSTEM for item in tail):
            hint = "a system message alone"
        if hint is not None:
            return _after_cut(parent, hint)
    return PlaceEvidence(
        TurnPlace.REQUEST, "a new user message" if any(item.kind is ItemKind.USER for item in tail) else "a new request"
    )


def _prefill(parent: SeatedExchange | None) -> PlaceEvidence:
    if parent is None:
        return PlaceEvidence(TurnPlace.REQUEST, "a request with an assistant text of its own to go on from")
    if parent.paused:
        return PlaceEvidence(TurnPlace.RESUME, "the paused answer is sent back as it was")
    return PlaceEvidence(TurnPlace.CONTINUATION, "the request ends with the answer's own text, to go on from")


def _at_once(parent: SeatedExchange) -> PlaceEvidence:
    """An answer right after an answer: what a transcript leaves out can only be told by the first."""
    if parent.paused:
        return PlaceEvidence(TurnPlace.RESUME, "the answer after a pause")
    if parent.failed:
        return PlaceEvidence(TurnPlace.RETRY, "the next answer, at once after a failure")
    if parent.calls:
        return PlaceEvidence(TurnPlace.TOOL_RESULT, "the next answer; the results of the calls were not recorded")
    return PlaceEvidence(TurnPlace.CONTINUATION, "the next answer follows at once; what was asked was not recorded")


def _results(tail: Sequence[HistoryItem], parent: SeatedExchange | None) -> PlaceEvidence:
    if parent is not None and parent.cut_calls:
        for item in tail:
            for result in item.results:
                wording = cut_result(result.text)
                if result.is_error or wording is not None:
                    why = f"the result of a cut call reports it ({wording or 'an error'})"
                    return PlaceEvidence(TurnPlace.REPAIR, why)
    steered = any(item.kind is ItemKind.USER for item in tail)
    why = "tool results are sent back" + (", with a user message" if steered else "")
    return PlaceEvidence(TurnPlace.TOOL_RESULT, why)


def _after_cut(parent: SeatedExchange, hint: str) -> PlaceEvidence:
    if parent.paused:
        return PlaceEvidence(TurnPlace.RESUME, f"after a pause: {hint}")
    if parent.call_cut:
        return PlaceEvidence(TurnPlace.REPAIR, f"after a cut call: {hint}")
    return PlaceEvidence(TurnPlace.CONTINUATION, f"after a cut: {hint}")
