"""Finds the exchange of a trace that a request continues, for every format of traces.

Several agents may work in one trace, in parallel or in turns, and a trace may lack the spans around them. So a request
continues the exchange whose messages it repeats. Evidence is tried from the strongest to the weakest: the messages with
their answer, or without it, the longest first; only the last answer of the history, because a client may rewrite the
messages before it; a result for a call of the answer. A request that repeats another one entirely has the same place;
whether it is a further attempt is decided with the other turns. A request with only a user's message begins a
conversation.

A client without a span around its requests has a trace for each of them. So a request without such a span continues
another one only if it repeats that one's messages and answer entirely.

If there is nothing to compare, or nothing known, the request follows the last one of its agent by time, and only if the
trace has no other conversation; the reader reports this.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from inspector.sessions.importers.records import Piece, beginnings, object_in
from inspector.sessions.importers.span_messages import SpanMessage

SYSTEM = ("system", "developer")
"""The roles of messages with which several conversations may begin."""
ANSWERING = ("assistant", "model", "ai")
"""The roles of a model's messages, in different APIs and in LangChain."""
BY_TIME = "are placed by their time alone, since no message shows what they continue"
"""The remark about requests whose place was found only by their time."""
ALONE = "/"
"""The key instead of a trace for requests without a span around them; no trace has this id."""
REPEATED = "are left out, since they repeat an answer that another one around them tells of"
"""The remark about answers within another answer (`order_of_start`)."""


class TraceRecord(NamedTuple):
    """The members of a record by which its place in a trace is found."""

    start: Any
    """The start time as text; a value of another type counts as none."""
    id: Any
    parent: Any
    """The id of the record around it."""
    is_answer: bool


def order_of_start(
    pieces: Iterable[Piece], place_of: Callable[[dict[str, Any]], TraceRecord]
) -> tuple[list[Piece], frozenset[str]]:
    """The records in the order of their start times, because exports list the newest first; and the ids of the answers
    within another answer, which two instrumentations recorded."""
    found = [(place_of(object_in(piece[1])), piece) for piece in pieces]
    by_id = {record.id: record for record, _ in found if isinstance(record.id, str)}
    answers = {key for key, record in by_id.items() if record.is_answer}
    inner = frozenset(key for key in answers if str(by_id[key].parent) in answers)
    found.sort(key=lambda each: (each[0].start if isinstance(each[0].start, str) else "", each[1][0]))
    return [piece for _, piece in found], inner


class Predecessor(NamedTuple):
    """The exchange that a request continues."""

    before: int | None
    """The number of the earlier exchange; None if the request begins a conversation."""
    repeats: int
    """The number of first messages of the request that are not new after that exchange."""
    by_time: bool = False
    """Whether the exchange was found only by time."""


class TraceOrder:
    """The exchanges of one file so far, each with a number, in the order of their start times."""

    def __init__(self) -> None:
        self._repeated: defaultdict[tuple[str, Hashable], list[int]] = defaultdict(list)
        """Trace and a beginning of messages, an answer, or a call's id -> the exchanges that have it; `ALONE` and a
        request with its answer -> the exchanges without a span around them."""
        self._requests: dict[tuple[str, int], int] = {}
        """Trace and all messages of a request -> the last exchange with that request."""
        self._ends: dict[int, tuple[str, int, bool]] = {}
        """Exchange -> its trace, the key of all its messages, and whether it has no span around it."""
        self._predecessors: dict[int, Predecessor] = {}
        self._last: dict[tuple[str, str], int] = {}
        """Trace and agent -> the last exchange."""
        self._conversations: defaultdict[str, int] = defaultdict(int)
        """Trace -> the number of its conversations."""

    def follow(
        self, number: int, trace: str, messages: Sequence[SpanMessage], agent: str = "", alone: bool = False
    ) -> Predecessor:
        """The exchange that a request continues; also stores the request. `alone`: it has no span around it."""
        items, ends = _items_of(messages)
        keys = beginnings(items)
        found = self._find(trace, agent, messages, list(zip(keys, ends, strict=True)), alone)
        self._conversations[trace] += found.before is None
        self._predecessors[number], self._last[trace, agent] = found, number
        self._ends[number] = trace, keys[-1], alone
        if _can_compare(messages):
            self._requests[trace, keys[-1]] = number
            self._repeated[trace, keys[-1]].append(number)
        return found

    def answer(self, number: int, messages: Sequence[SpanMessage]) -> None:
        """Stores the answer to a request."""
        trace, key, alone = self._ends[number]
        for item in _items_of([each._replace(role=ANSWERING[0]) for each in messages])[0]:
            if item != _NOTHING:
                whole = beginnings([item], key)[-1]
                for place in ((trace, whole), (trace, item), *([(ALONE, whole)] if alone else [])):
                    self._repeated[place].append(number)
        for message in messages:
            for call, _, _ in message.calls:
                self._repeated[trace, ("call", call)].append(number)

    def _find(
        self, trace: str, agent: str, messages: Sequence[SpanMessage], begins: list[tuple[int, int]],
        alone: bool,
    ) -> Predecessor:
        opening = next((at for at, each in enumerate(messages, 1) if each.role not in SYSTEM), len(messages) + 1)
        last = max((at for at, each in enumerate(messages, 1) if _is_answer(each)), default=0)
        if _can_compare(messages):
            same = self._requests.get((trace, begins[-1][0]))
            if same is not None:
                return self._predecessors[same]
            for key, end in reversed(begins):
                if end >= opening and (one := self._take(trace, key)) is not None:
                    return Predecessor(one, end)
            run = next(reversed(_items_of(messages[:last])[0]), _NOTHING)
            one = self._take(trace, run) if run != _NOTHING else None
            for call in (part.call_id for each in messages[last:] for part in each.results if part.call_id):
                one = one if one is not None else self._take(trace, ("call", call))
            if one is not None:
                return Predecessor(one, last)
            for key, end in reversed(begins) if alone else ():
                if (one := self._take(ALONE, key)) is not None:
                    return Predecessor(one, end)
        if messages and all(each.role in ("user", *SYSTEM) and not each.results for each in messages):
            return Predecessor(None, 0)
        before = self._last.get((trace, agent))
        return Predecessor(before if self._conversations[trace] < 2 else None, last, before is not None)

    def _take(self, trace: str, key: Hashable) -> int | None:
        """The last exchange with this key; of several, each is returned once."""
        found = self._repeated.get((trace, key))
        return None if not found else found.pop() if len(found) > 1 else found[0]


_NOTHING = ("answer", "")
"""The item of an answer without known content."""


def _is_answer(message: SpanMessage) -> bool:
    # Some instrumentations write a call as a separate message, without a role or with that of the tool.
    return message.role in ANSWERING or (bool(message.calls) and message.role in ("", "tool"))


def _can_compare(messages: Sequence[SpanMessage]) -> bool:
    """Whether the messages have something that distinguishes them from others: recorders may leave out contents."""
    return any(each.role not in SYSTEM and (each.text or each.calls or each.results) for each in messages)


def _items_of(messages: Sequence[SpanMessage]) -> tuple[list[tuple[Hashable, ...]], list[int]]:
    """The items by which messages are compared, and the end of each, from 0. Consecutive messages of the model are one
    item: the ids and names of the calls, else the text, which a history may leave out beside calls."""
    items: list[tuple[Hashable, ...]] = []
    ends = [0]
    for answers, group in groupby(messages, _is_answer):
        run = list(group)
        if answers:
            calls = tuple((key, name) for each in run for key, name, _ in each.calls)
            items.append(("answer", calls or "".join("".join(each.text.split()) for each in run)))
            ends.append(ends[-1] + len(run))
            continue
        for each in run:
            items.append((each.role, each.text, tuple((part.call_id, part.text) for part in each.results)))
            ends.append(ends[-1] + 1)
    return items, ends
