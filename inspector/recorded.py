"""A recorded turn as a source: what its answers are, at which place of the turn each stands, and what tools said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.case import Case
from inspector.sessions.values import Exchange, Link, TurnRecord
from inspector.sessions.values import Place as Recorded_Place
from loop_core.frozen import replace
from loop_core.history import asked_again, asked_anchor, asked_mark
from loop_core.seam import Method
from loop_core.sources import Recorded
from loop_core.turn import NotRecorded, Place, Responded
from loop_core.values import Role, ToolResultPart
from loop_core.wire import wire

PLACES: Mapping[Recorded_Place, Place] = {
    Recorded_Place.CONTINUATION: Place.CONTINUATION,
    Recorded_Place.REPAIR: Place.REPAIR,
    Recorded_Place.RESUME: Place.RESUME,
    Recorded_Place.NUDGE: Place.NUDGE,
    Recorded_Place.TOOL_RESULT: Place.REQUEST,
}
"""What the recorded agent did -> the place in the turn. A request or a retry is no place: it begins a run."""


def seen_by_loop(case: Case, record: TurnRecord) -> Sequence[Link]:
    """The exchanges of a turn as its loop saw them: of a request that its recorder sent again, the last attempt."""
    exchanges = case.loaded.exchanges
    found: list[Link] = []
    for link in record.links:
        if found and exchanges[link.index].again:
            found[-1] = replace(found[-1], index=link.index)
        else:
            found.append(link)
    return found


def reach(case: Case, links: Sequence[Link], answers: int) -> int:
    """The first links that hold so many answers, with those beside them that are none."""
    if not case.silent:
        return answers
    for position, link in enumerate(links):
        answers -= link.index not in case.silent
        if answers == 0 and any(after.index not in case.silent for after in links[position + 1 :]):
            return position + 1
    return len(links)


_NONE_YET = dict.fromkeys(Place, 0)


def source_of(case: Case, record: TurnRecord, links: Sequence[Link]) -> Recorded:
    """A run over the answers of `links`: recorded ones, and those that a live run heard after them."""
    where = (record.heard, links[0].index, len(links))
    found = case.sources.get(where)
    if found is None:
        found = case.sources[where] = _recorded(case, record, links)
    return found


def _recorded(case: Case, record: TurnRecord, links: Sequence[Link]) -> Recorded:
    if len(links) == 1 and record.heard is None and not case.cancels and not case.unasked:
        return Recorded(((Place.REQUEST, 0, _answer(case, links[0], 0)),))  # as most turns are
    answers: list[tuple[Place, int, Responded]] = []
    results: dict[int, tuple[ToolResultPart, ...]] = {}
    counts = dict(_NONE_YET)
    last = links[-1]
    if case.silent:
        links = [link for link in links if link.index not in case.silent]
    for position, link in enumerate(links):
        place = PLACES.get(link.place) if position else Place.REQUEST
        if place is None:
            break  # a retry or a request of its own: the next run begins here
        if position:
            counts[place] += 1
        if link.place is Recorded_Place.TOOL_RESULT and position:
            results[counts[Place.REQUEST] - 1] = results_in(case.loaded.exchanges[link.index])
        answers.append((place, counts[place], _answer(case, link, position)))
    if record.heard is None:
        cancelled = bool(case.cancels) and _cancelled_after(case, last)
        return Recorded(tuple(answers), results, _after(case, last), cancelled)
    heard = case.heard[record.heard]
    if heard.results is not None:
        results[counts[Place.REQUEST]] = heard.results
    return Recorded(tuple(answers), results, heard.after)


LIVE = "asked live"
"""Why an exchange of a live run stands where it stands."""


def _after(case: Case, link: Link) -> NotRecorded:
    """What follows the last exchange of a file: nothing, for the reason that its recorder gave."""
    last = case.loaded.exchanges[link.index]
    why = case.unasked.get(last.path, "")
    if why and any(each.path == last.path and each.entry > last.entry for each in case.loaded.exchanges):
        why = ""
    return NotRecorded(why)


def _cancelled_after(case: Case, link: Link) -> bool:
    last = case.loaded.exchanges[link.index]
    return case.cancels.get((last.path, last.entry)) is True


def _answer(case: Case, link: Link, position: int) -> Responded:
    answer = _as_asked(case, link, position)
    return replace(answer, made=True) if case.loaded.exchanges[link.index].simulated else answer


def _as_asked(case: Case, link: Link, position: int) -> Responded:
    exchange = case.loaded.exchanges[link.index]
    judged = case.judged[link.index]
    if link.why == LIVE:
        return Responded(exchange.response, judged, link.index, verdicts=case.verdicts[link.index], live=True)
    if position == 0 or link.place not in _ASKED_ON:
        return Responded(exchange.response, judged, link.index, Method.FIRST, "", None, case.verdicts[link.index],
                          None)
    method, stripped = asked_by(case, link)
    verdicts = case.verdicts[link.index]
    if exchange.request is None or method not in (Method.ANCHOR, Method.AGAIN):
        return Responded(exchange.response, judged, link.index, method, stripped, verdicts=verdicts)
    asked = exchange.request.messages[-1]
    return Responded(exchange.response, judged, link.index, method, stripped, verdicts=verdicts,
                     anchor=asked_anchor(asked), mark=asked_mark(asked))


_ASKED_ON = frozenset({
    Recorded_Place.CONTINUATION, Recorded_Place.REPAIR, Recorded_Place.RESUME, Recorded_Place.NUDGE,
})


def asked_by(case: Case, link: Link) -> tuple[Method, str]:
    """How the recorded agent asked for a continuation, and the white space it stripped from a prefill."""
    if link.place is Recorded_Place.REPAIR:
        return Method.REPAIR, ""
    exchange = case.loaded.exchanges[link.index]
    if link.place is Recorded_Place.RESUME:
        fetched = exchange.request_json is None and wire(exchange.api).polls
        return Method.POLL if fetched else Method.ECHO, ""
    messages = exchange.request.messages if exchange.request else ()
    if messages and asked_anchor(messages[-1]):
        return Method.AGAIN if asked_again(messages[-1]) else Method.ANCHOR, ""
    if link.place is Recorded_Place.NUDGE:
        return Method.NUDGE, ""
    if not messages or messages[-1].role is not Role.ASSISTANT or link.parent is None:
        return Method.HINT, ""
    before = case.loaded.exchanges[link.parent].response.text or ""
    sent = messages[-1].text
    kept = before[len(before.rstrip()) :]
    return Method.PREFILL, kept if kept and sent == sent.rstrip() else ""


def results_in(exchange: Exchange) -> tuple[ToolResultPart, ...]:
    """The tool results at the end of a request: those after its last assistant message."""
    found: list[ToolResultPart] = []
    for message in reversed(exchange.request.messages if exchange.request else ()):
        if message.role is Role.ASSISTANT:
            break
        found[:0] = message.results
    return tuple(found)
