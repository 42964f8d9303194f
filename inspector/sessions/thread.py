"""Groups exchanges into conversations and turns by comparing histories, so that interleaving changes nothing.

If several exchanges could be the parent, none is chosen: the link names them, and the exchange opens a turn. The time
is nearly linear in the size of the histories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from sys import intern
from typing import NamedTuple

from inspector.sessions.histories import (
    History,
    HistoryTree,
    SeatedExchange,
    seat,
    size_of,
    split_prompts,
)
from inspector.sessions.parents import Index, last_answer, name_answers, narrow, repeats_reasoning
from inspector.sessions.places import (
    first_text,
    follows_unchanged,
    is_of_no_use,
    is_output,
    new_message,
    opening,
    place,
    tail_of,
)
from inspector.sessions.recording import Exchange, Link, TurnPlace, TurnRecord
from inspector.sessions.traffic import moment, times_of
from inspector.sessions.wordings import asks_again
from loop_core.values import Request


def response_number(index: int) -> str:
    """The number of a response in text, from 1; documents for programs have its index."""
    return f"{index + 1:,}"


def thread(exchanges: Sequence[Exchange], groups: Sequence[Sequence[int]]) -> tuple[TurnRecord, ...]:
    """The turns of each group of exchanges (those of one session); ids are unique across all groups."""
    turns: list[_Turn] = []
    for group in groups:
        turns.extend(_Threader(exchanges, group).run())
    return _records(turns)


def _records(turns: Sequence[_Turn]) -> tuple[TurnRecord, ...]:
    """The turns with their ids, one conversation after the other in the order of their first exchanges."""
    firsts: dict[int, int] = {}
    for turn in turns:
        conversation, index = id(turn.conversation), min(link.index for link in turn.links)
        firsts[conversation] = min(index, firsts.get(conversation, index))
    records: list[TurnRecord] = []
    names: dict[int, str] = {}
    for number, turn in enumerate(sorted(turns, key=lambda turn: firsts[id(turn.conversation)]), start=1):
        name = names.setdefault(id(turn.conversation), f"c{len(names) + 1}")
        records.append(TurnRecord(f"t{number}", name, tuple(turn.links), turn.user_text))
    return tuple(records)


_SHOWN = 64
"""The largest number of equally good candidates that a link names."""


@dataclass(slots=True, eq=False)
class _Turn:
    conversation: object
    user_text: str
    opening: int
    """The node after the message that began the turn; -1 if there is none."""
    links: list[Link] = field(default_factory=list)


class _Step(NamedTuple):
    """The decision about an exchange: its place, and its parent or the candidates for it."""

    place: TurnPlace
    why: str
    parent: SeatedExchange | None = None
    direct: bool = True
    """Whether no exchange is missing from the recording between the parent and this one."""
    ambiguous: tuple[int, ...] = ()


class _Threader:
    """Finds the turns of one group. It takes the shortest history first, so that parents come before children."""

    def __init__(self, exchanges: Sequence[Exchange], group: Sequence[int]) -> None:
        self.tree = HistoryTree(all(exchanges[index].recorder is not None for index in group))
        self.turns: list[_Turn] = []
        self.by_opening: dict[tuple[int, int], int] = {}
        """Conversation and opening -> the first turn with both, among the first `opened` turns."""
        self.opened = 0
        self.seated: dict[tuple[str, int], SeatedExchange] = {}
        """File and entry -> the exchange; filled only if a recorder states places."""
        self.seats: list[SeatedExchange] = []
        """The exchanges in the order in which they were assigned to turns."""
        self.unknown: set[str] = set()
        """The ids to which requests refer of responses that are not in the group."""
        self.alone = False
        """Whether an exchange has no request, or is part of a ring of references."""
        self.exchanges, self.group = exchanges, group
        self.placed = any(exchanges[index].recorded_place is not None for index in group)
        """Whether a recorder states the places of its requests, each of which follows the previous exchange."""
        self.index = Index(self.tree)
        self.times, self.ordered = times_of({index: exchanges[index].started for index in group})
        self.requests = split_prompts(exchanges, group) | name_answers(exchanges, group, self.times)
        self.fetched: dict[str | None, list[int]] = {}
        """Id of a response -> the exchanges without a request that have it, in order, until they are assigned."""
        for index in sorted(group, key=lambda each: (self._when(each), each)):
            if exchanges[index].request is None:
                self.fetched.setdefault(exchanges[index].response.id, []).append(index)

    def run(self) -> list[_Turn]:
        """Assigns every exchange to a turn: those that name their parent after it, those without a request last."""
        waiting: list[int] = []
        free: list[tuple[int, int, float, int, Request]] = []
        answers = {self.exchanges[index].response.id for index in self.group} - {""}
        for index in self.group:
            request = self.requests.get(index, self.exchanges[index].request)
            if request is not None and request.previous_id is not None and request.previous_id in answers:
                waiting.append(index)
            elif request is not None:
                self.unknown.update(() if request.previous_id is None else (request.previous_id,))
                free.append((*size_of(request), self._when(index), index, request))
        free.sort(reverse=True)  # a parent's history is always shorter
        while free:
            _, _, when, index, request = free.pop()
            history = self.tree.history(request)
            one = seat(index, self.exchanges[index], history, when)
            self._seat(one, history, self._step(one, history))
            self.index.add_answer(one, history)  # only the exchanges of this loop are found by their answers
        self._by_previous_id(waiting)
        for index in sorted(chain(*self.fetched.values()), key=lambda each: (self._when(each), each)):
            self._place_alone(index, "its request was not recorded")
        return self.turns

    def _when(self, index: int) -> float:
        return self.times.get(index, float(index))

    # -- a file that grows ---------------------------------------------------------------------------------------

    def go_on(self, exchanges: Sequence[Exchange], same: int) -> bool:
        """Assigns the exchanges after the first `same` again, with the same result as `run` for all. False if only
        `run` can do that: one of them does not name its parent, or the order of earlier ones would change."""
        stated = {exchange.started for exchange in exchanges[:same]}
        if (len(stated) < 2 and stated != {None}) or not self.ordered:
            return False
        when: dict[int, float | None] = {each: moment(exchanges[each].started) for each in range(same, len(exchanges))}
        if stated == {None}:  # a file without times is assumed to be in order
            when = {index: float(index) if exchanges[index].started is None else None for index in when}
        earlier_ids = {exchange.response.id for exchange in exchanges[:same]}
        for exchange in exchanges[same:]:
            request = exchange.request
            if request is None or request.previous_id is None or exchange.response.id in self.unknown or (
                    request.previous_id not in earlier_ids):
                return False
            earlier_ids.add(exchange.response.id)
        last = [one.index for one in self.seats[same:]]
        if None in when.values() or last != [*range(same, len(self.group))] or self.alone:
            return False
        while len(self.seats) > same:
            self._unseat(self.seats.pop())
        self.exchanges, self.group = exchanges, range(len(exchanges))
        self.times |= {index: start or 0.0 for index, start in when.items()}
        for index in range(same, len(exchanges)):
            self._seat_by_id(index, self._named_parents(index))
        return True

    def _unseat(self, one: SeatedExchange) -> None:
        self.index.remove(one)
        self.seated.pop((one.exchange.path, one.exchange.entry), None)
        turn = self.turns[one.turn]
        turn.links.pop()
        if not turn.links:
            self.turns.pop()
            self.opened = min(self.opened, len(self.turns))
        for parent in self._named_parents(one.index):
            if parent.next_index == one.index:
                parent.next_index = None

    # -- finding -------------------------------------------------------------------------------------------------

    def _named_parents(self, index: int) -> Sequence[SeatedExchange]:
        """The exchanges whose response the request names as the one that it continues."""
        request = self.requests.get(index, self.exchanges[index].request)
        return self.index.with_id(request.previous_id if request is not None else None)

    def _step(self, one: SeatedExchange, history: History) -> _Step:
        again = self._stated_place(one) or self._repeated_request(one)
        if again is not None:
            return again
        found = self.index.find(history)
        if (failure := self._after_failure(one, history, found.item + 1 if found else 0)) or found is None:
            return failure or _Step(*place(tail_of(history), None))
        direct = found.item == last_answer(history)
        left = narrow(found, one, history, self.ordered)
        tail = tail_of(history)
        if len(left) > 1:
            why = f"{len(left)} exchanges could be its parent: {found.why}"
            return _Step(place(tail, None).place, why, ambiguous=_indices(left))
        parent = left[0]
        placed = place(tail, parent if direct else None)
        gap = "" if direct else "; exchanges between the two were not recorded"
        return _Step(placed.place, f"{placed.why}; {found.why}{gap}", parent, direct)

    def _stated_place(self, one: SeatedExchange, parent: SeatedExchange | None = None) -> _Step | None:
        """The step for a request whose place the recorder states, because its history may look like that of another
        turn; None if it states none."""
        exchange = one.exchange
        before = parent or self.seated.get((exchange.path, exchange.entry - 1))
        if exchange.recorded_place is None or exchange.again or before is None:
            return None
        return _Step(exchange.recorded_place, "its recorder says so", before)

    def _repeated_request(self, one: SeatedExchange) -> _Step | None:
        """The step for a repeated request: a retry, a repair with a larger cap, or a resumption; None for any other."""
        node, identity = one.node, one.identity
        if not (same := self.index.same_requests(node, identity)):
            return None
        token = one.exchange.request.continuation_token if one.exchange.request is not None else None
        owners = self.index.with_token(node, identity, token) if token is not None else ()
        last = same[-1]
        if len(owners) == 1:
            if len(same) <= _SHOWN:  # the client sends all halves back as one answer, and the results of their calls
                one.chain_text = owners[0].chain_text + one.text
                one.calls = owners[0].calls + one.calls
            if last.failed and last.exchange.request_json == one.exchange.request_json:
                return _Step(TurnPlace.RETRY, "the same resumption again after an error or an interruption", last)
            return _Step(TurnPlace.RESUME, "the same request with the continuation token of the answer", owners[0])
        if last.exchange.session != one.exchange.session:
            return None  # several sessions in a file may begin with the same request
        if last.failed and _repeats(last, one, self.ordered):
            return _Step(TurnPlace.RETRY, "the same request again after an error or an interruption", last)
        again = TurnPlace.REPAIR if last.call_cut else TurnPlace.RETRY
        if self.ordered and is_of_no_use(last) and follows_unchanged(last, one):
            return _Step(again, "the same request again after no content, no whole call or a broken connection", last)
        before, now = last.exchange.cap, one.exchange.cap
        if last.cut and one.exchange.recorder is not None and (before is None or now is None):
            return _Step(again, "the same request again after a cut", last)  # most transcripts do not contain the cap
        # Agents react to a cut with a larger cap; without times the request may belong to another agent.
        if self.ordered and last.cut and before is not None and now is not None and now > before:
            return _Step(again, f"the same request again with a larger output limit ({before} to {now})", last)
        return None

    def _after_failure(self, one: SeatedExchange, history: History, begin: int) -> _Step | None:
        """The step for a history that adds a hint to the request of an answer that is cut, empty or of no use, but
        leaves out the answer; None for any other. The items before `begin` are another request and its answer."""
        items = history.items
        start = len(items)
        while start > begin and not is_output(items[start - 1]):
            start -= 1
            before = [each for each in self.index.requests_before(history, start, one.identity)[-_SHOWN:]
                      if repeats_reasoning(items[start], each)]
            again = bool(before) and asks_again(first_text(items[start:])) is not None
            cut = [each for each in before if each.cut or each.is_silent or again]
            if cut and start > begin:
                placed = place(items[start:], cut[0])
                if len({each.turn for each in cut}) == 1:  # one request, or the same one sent again
                    return _Step(placed.place, f"{placed.why}; the answer before was left out", cut[-1])
                if placed.place is TurnPlace.REQUEST:
                    return None
                why = f"{len(cut)} exchanges whose answer was left out could be its parent"
                return _Step(TurnPlace.REQUEST, why, ambiguous=_indices(cut))
        return None

    # -- seating -------------------------------------------------------------------------------------------------

    def _seat(self, one: SeatedExchange, history: History, step: _Step) -> None:
        parent, why, new = step.parent, step.why, step.place is TurnPlace.REQUEST
        if parent is None:
            turn = self._open(history, object(), new)
        elif not step.direct:
            turn = self._turn_beyond_gap(history, parent, new)
        elif new:
            turn = self._open(history, self.turns[parent.turn].conversation, new)
        # A second request continues the same answer: a message was edited, or the session was forked.
        elif parent.next_index is not None and step.place is not TurnPlace.RETRY:
            turn = self._open(history, self.turns[parent.turn].conversation, new)
            why += "; a branch, because another exchange already continues from there"
        else:
            turn = parent.turn
            parent.next_index = one.index
        if step.place is TurnPlace.CONTINUATION and parent is not None:
            one.base, one.chain_text = parent.base, parent.chain_text + one.text
        one.turn = turn
        self.seats.append(one)
        if self.placed:
            self.seated[one.exchange.path, one.exchange.entry] = one
        self.index.add(one)
        links = self.turns[turn].links
        number = next((link.ordinal for link in reversed(links) if link.place is step.place), 0) + 1
        links.append(Link(one.index, step.place, number, intern(why), step.ambiguous,
                          parent.index if parent else None, not step.direct))
        for index in self.fetched.pop(one.exchange.response.id, ()) if one.is_paused else ():
            self._place_alone(index, "its request was not recorded")

    def _open(self, history: History, conversation: object, new: bool) -> int:
        number = new_message(history) if new else -1
        if number < 0:
            number = opening(history)
        begun = ("", -1) if number < 0 else (history.items[number].text, history.nodes[number + 1])
        self.turns.append(_Turn(conversation, *begun))
        return len(self.turns) - 1

    def _turn_beyond_gap(self, history: History, ancestor: SeatedExchange, new: bool) -> int:
        """The turn of an exchange without its parent: the ancestor's, another with the same opening, or a new one."""
        number = new_message(history) if new else opening(history)
        if number < ancestor.length:
            return ancestor.turn
        conversation = self.turns[ancestor.turn].conversation
        for turn, each in enumerate(self.turns[self.opened :], start=self.opened):
            if each.opening >= 0:
                self.by_opening.setdefault((id(each.conversation), each.opening), turn)
        self.opened = len(self.turns)
        known_turn = self.by_opening.get((id(conversation), history.nodes[number + 1]))
        return self._open(history, conversation, new) if known_turn is None or new else known_turn

    def _by_previous_id(self, waiting: list[int]) -> None:
        """Assigns the requests that name the response that they continue, each after the exchange with that
        response."""
        while waiting:
            later: list[int] = []
            for index in waiting:
                parents = self._named_parents(index)
                if parents:
                    self._seat_by_id(index, parents)
                else:
                    later.append(index)
            if len(later) == len(waiting):  # they refer to one another in a ring
                for index in later:
                    self._place_alone(index, "it and other requests name each other's responses")
                return
            waiting = later

    def _seat_by_id(self, index: int, parents: Sequence[SeatedExchange]) -> None:
        exchange, request = self.exchanges[index], self.exchanges[index].request
        assert request is not None  # noqa: S101  # narrowed by the caller
        parent, *others = [each for each in parents if not each.is_paused] or parents[-1:]
        start = self.tree.step(parent.node, self.tree.answer_key(parent.text, parent.calls))
        history = self.tree.history(request, start)
        one = seat(index, exchange, history, self._when(index))
        if others:
            named = "response id that the request continues" if request.previous_id else "calls of its results"
            placed = place(history.items, None)._replace(why=f"{len(others) + 1} exchanges have the {named}")
            self._seat(one, history, _Step(*placed, ambiguous=_indices([parent, *others])))
            return
        step = self._stated_place(one, parent) or self._repeated_request(one)
        if step is None:
            placed = place(history.items, parent)
            named = ("it names the response that it goes on from" if request.previous_id else
                     "the last answer of its conversation" if request.extra.get("conversation") else
                     "only one response has the calls of its results")
            step = _Step(placed.place, f"{placed.why}; {named}", parent)
        self._seat(one, history, step)

    def _place_alone(self, index: int, why: str) -> None:
        """Assigns an exchange that no request places: it polls a known response, or is a turn of its own."""
        self.alone, exchange = True, self.exchanges[index]
        paused = next((each for each in reversed(self.index.with_id(exchange.response.id)) if each.is_paused), None)
        node = paused.node if paused else self.tree.step(0, self.tree.key(("alone", index)))
        history = History((), (node,), 0)
        one = seat(index, exchange, history, self._when(index))
        one.identity = paused.identity if paused else one.identity
        self._seat(one, history, self._stated_place(one) or (
            _Step(TurnPlace.RESUME, "the same response is fetched again", paused) if paused else
            _Step(TurnPlace.REQUEST, why)))
        self.index.add_answer(one, history)


class GrowingThread:
    """The turns of one growing file: earlier exchanges keep their places."""

    def __init__(self) -> None:
        self._threader: _Threader | None = None

    def turns(self, exchanges: Sequence[Exchange], same: int) -> tuple[TurnRecord, ...]:
        """The turns that `thread` would find. The first `same` exchanges are those of the previous call."""
        if self._threader is None or not same or not self._threader.go_on(exchanges, same):
            self._threader = _Threader(exchanges, range(len(exchanges)))
            self._threader.run()
        return _records(self._threader.turns)


def _indices(candidates: Sequence[SeatedExchange]) -> tuple[int, ...]:
    return tuple(sorted(each.index for each in candidates[:_SHOWN]))


def _repeats(last: SeatedExchange, one: SeatedExchange, ordered: bool) -> bool:
    """Whether `one` repeats the failed request `last`, and is not another request with the same history. After a fatal
    refusal (a key, an unknown model) only an equal request is a repetition, and only if the order is known; otherwise
    it may be the same request of another agent."""
    return last.exchange.response.stop_reason.detail != "fatal" or (
        ordered and last.exchange.request_json == one.exchange.request_json)
