"""Judges each response of a recording once, into a `Case` that all replays of the recording share.

Judging depends only on the bytes; whatever depends on limits and policy is in `inspector.replay`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count, islice, takewhile
from typing import TYPE_CHECKING, NamedTuple, TypeVar, overload

from inspector.replay.recorded_calls import gate_exchange
from inspector.sessions.build import decode_as
from inspector.sessions.intake import stop_if_asked
from inspector.sessions.places import results_in
from inspector.sessions.recording import Exchange, Input, Link, Recording, TurnPlace, TurnRecord, common_beginning
from loop_core.judge.classify import Judgement, judge
from loop_core.judge.gate import Verdict
from loop_core.turn.continuation import EMPTY, HINT_POINTS, Method, repeats_request
from loop_core.turn.history import Ability, anchor_of_hint, mark_of_hint
from loop_core.turn.loop import NO_RECORDED_ANSWER, RecordedSource
from loop_core.turn.state import Event, NotRecorded, ProviderResponse, RequestPlace, Turn, cancelled_answer
from loop_core.turn.trace import Step
from loop_core.values import ChatResponse, Message, Request, Role, TextPart, ToolResultPart, shared
from loop_core.wire import profiles, wire
from loop_core.wire.format import Profile

if TYPE_CHECKING:
    from inspector.replay.tokens import TokenMeasure


class BranchAnswers(NamedTuple):
    """The responses of a live run that sent a recorded turn again from one of its steps."""

    name: str
    """The unique name of the live run, which is also the name of its recording's file."""
    exchanges: tuple[Exchange, ...]
    places: tuple[tuple[RequestPlace, int], ...]
    """For each exchange its place in the turn, and its number among the requests with this place."""
    results: tuple[ToolResultPart, ...] | None = None
    """Tool results after the last exchange, if no further request contained them; else None."""
    unanswered: frozenset[int] = frozenset()
    """The indices in `exchanges` of those without an answer: their request was sent again, or given up."""
    after: Event = NotRecorded()
    """The event that ended the run, if no answer ended it."""
    ability: Ability = Ability()
    """The methods of continuation that the server supports."""
    provider: str = ""
    """The profile of the server."""
    problem: str = ""
    """What is missing in the recording of the live run, in words; empty if it is complete."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Case:
    """A recording with the judgement of each response; all its replays share it."""

    recording: Recording
    judgements: tuple[Judgement, ...]
    verdicts: tuple[tuple[Verdict, ...], ...]
    """The gate's verdicts on the calls of each response, under the strict reading."""
    limits_by_path: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Path of a session file -> the limits under which it was recorded."""
    measures: dict[int, TokenMeasure] = field(default_factory=dict)
    """Index of a response that a simulation had to cut -> its tokens, which are the same for every budget. Live
    branches have different responses at the same index, so each has its own dict."""
    rounds: dict[tuple[int, int], Mapping[str, int]] = field(default_factory=dict)
    """First exchange and number of exchanges of a long turn -> what it used of the limits that replays raise."""
    root: Case | None = None
    """The case as it was read, if this case is decoded with another profile; else None."""
    by_profile: dict[str, Case] = field(default_factory=dict)
    """Profile name -> the same recording decoded with that profile; each is made at its first use."""
    live_runs: dict[str, BranchAnswers] = field(default_factory=dict)
    """Name -> the responses of a live run from a step of this recording; all cases of one recording share the dict."""
    unanswered: frozenset[int] = frozenset()
    """The indices of live exchanges without an answer: their request was sent again, or given up at a cancel."""
    end_causes: Mapping[str, str] = field(default_factory=dict)
    """Path -> why the recorder of this file sent no further request although the turn had not ended."""
    cancels: Mapping[tuple[str, int | None], bool] = field(default_factory=dict)
    """File and exchange at which an operator cancelled -> True if its answer was used, False if it was given up."""
    long: bool = False
    """Whether the recording has so many exchanges that values that can be made again are not stored."""
    may_follow: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Exchange -> later exchanges that may continue its answer, but may equally continue another one."""

    def opening(self, turn: TurnRecord) -> Exchange:
        """The first exchange of a turn."""
        return self.recording.exchanges[turn.links[0].index]


LONG_RECORDING = 20_000
"""The number of exchanges from which a recording is long."""
_NOTHING = Recording((), (), ())


def open_case(recording: Recording, before: Case | None = None, long_from: int = LONG_RECORDING) -> Case:
    """Judges every response once; those that `before` has at the same position are reused."""
    acts = [(source.path, act) for source in recording.inputs for act in source.acts]
    limits_by_path: dict[str, dict[str, int]] = {}
    for path, act in acts:
        if act.kind == "limits":
            limits_by_path.setdefault(path, {}).update(act.value)
    cancels = {(path, act.entry): act.value for path, act in acts if act.kind == "cancel"}
    # A new cancellation changes the judgement of an answer that was already read, so nothing is reused after it.
    reused_case = (before if before is not None and _cancelled_requests(before.cancels) == _cancelled_requests(cancels)
                   else Case(_NOTHING, (), ()))
    same = common_beginning(reused_case.recording.exchanges, recording.exchanges)
    read = (shared(_judge(each, cancels)) for each in recording.exchanges[same:])  # answers that end alike are alike
    judged = (*reused_case.judgements[:same], *read)
    verdicts = (*reused_case.verdicts[:same], *map(gate_exchange, recording.exchanges[same:], judged[same:]))
    unasked = {source.path: why for source in recording.inputs if (why := _why_not_sent(source))}
    return Case(recording, judged, verdicts, limits_by_path, end_causes=unasked, cancels=cancels,
                long=len(recording.exchanges) >= long_from, may_follow=_may_follow(recording))


def _may_follow(recording: Recording) -> Mapping[int, tuple[int, ...]]:
    found: dict[int, tuple[int, ...]] = {}
    for link in (link for turn in recording.turns for link in turn.links if link.ambiguous):
        found.update((parent, (*found.get(parent, ()), link.index)) for parent in link.ambiguous)
    return found


def _cancelled_requests(cancels: Mapping[tuple[str, int | None], bool]) -> set[tuple[str, int | None]]:
    """The exchanges that the operator cancelled before their answer was complete."""
    return {place for place, taken in cancels.items() if not taken}


def _why_not_sent(file: Input) -> str:
    """The last note of a run that ended because no further request could be sent; empty for any other end."""
    if file.about is None or file.about.end_state != "unrecorded":
        return ""
    # The recorder of a live turn writes its reason as a note right before the end (`Recorder.note`).
    return next((str(act.value) for act in reversed(file.acts) if act.kind == "note" and act.entry is None), "")


def _judge(exchange: Exchange, cancels: Mapping[tuple[str, int | None], bool]) -> Judgement:
    stop_if_asked()
    judged = judge_exchange(exchange)
    return cancelled_answer(judged) if cancels.get((exchange.path, exchange.entry)) is False else judged


def judge_exchange(exchange: Exchange) -> Judgement:
    """The judgement of one exchange; a router's native word is looked up in the tables of all formats."""
    return judge_response(exchange.response, exchange.request, exchange.profile, exchange.recorder is None)


def judge_response(
    response: ChatResponse, request: Request | None, profile: Profile, tools_known: bool = True
) -> Judgement:
    """The judgement of a response from a server; a router's native word is looked up in the tables of all formats."""
    return judge(response, request, profile, profiles.native_reading(response, profile), tools_known)


def case_as_profile(case: Case, profile: str | None) -> Case:
    """The recording decoded as if this profile's server had answered every exchange, computed once; for None, the case
    as it was read. Raises `CallerError` if there is no such profile."""
    root = case.root or case
    if profile is None:
        return root
    decoded_case = root.by_profile.get(profile)
    if decoded_case is None:
        exchanges = tuple(decode_as(exchange, profile) for exchange in root.recording.exchanges)
        judged, verdicts = list(root.judgements), list(root.verdicts)
        for index, (old, new) in enumerate(zip(root.recording.exchanges, exchanges, strict=True)):
            if old is not new:  # the same object: it already has this profile
                judged[index] = _judge(new, root.cancels)
                verdicts[index] = gate_exchange(new, judged[index])
        decoded_case = root.by_profile[profile] = case_beside(root, exchanges, tuple(judged), tuple(verdicts))
    return decoded_case


def case_beside(
    case: Case, exchanges: tuple[Exchange, ...], judged: tuple[Judgement, ...],
    verdicts: tuple[tuple[Verdict, ...], ...],
) -> Case:
    """The case with other exchanges in the same places."""
    return replace(case, recording=case.recording._replace(exchanges=exchanges), judgements=judged, verdicts=verdicts,
                   root=case.root or case, measures={}, rounds={}, by_profile={})


# -- A recorded turn as a source -------------------------------------------------------------------------------------
# The source has the turn's answers, the place of each in the turn, and the results of tools.

T = TypeVar("T")
REQUEST_PLACES: Mapping[TurnPlace, RequestPlace] = {
    TurnPlace.CONTINUATION: RequestPlace.CONTINUATION,
    TurnPlace.REPAIR: RequestPlace.REPAIR,
    TurnPlace.RESUME: RequestPlace.RESUME,
    TurnPlace.NUDGE: RequestPlace.NUDGE,
    TurnPlace.TOOL_RESULT: RequestPlace.REQUEST,
}
"""Recorded place of an exchange -> the engine's name for it. Requests and retries have no row: they begin a run."""
TURN_PLACES: Mapping[RequestPlace, TurnPlace] = {place: act for act, place in REQUEST_PLACES.items()}
"""The reverse of `REQUEST_PLACES`. The first request of a turn is a `TurnPlace.REQUEST` instead."""


def links_of_loop(case: Case, record: TurnRecord) -> Sequence[Link]:
    """The exchanges of a turn as the agent's loop saw them: of a repeated request only the last attempt."""
    exchanges = case.recording.exchanges
    found: list[Link] = []
    for link in record.links:
        # A retry replaces the failed attempt before it: the loop saw only the answer of the last attempt.
        if found and exchanges[link.index].again:
            found[-1] = replace(found[-1], index=link.index)
        else:
            found.append(link)
    return found


def first_links(case: Case, links: Sequence[Link], answers: int) -> int:
    """The number of first links that have this many answers, including exchanges without an answer among them."""
    if not case.unanswered:
        return answers
    for position, link in enumerate(links):
        # Unanswered exchanges belong to the run that sent them.
        answers -= link.index not in case.unanswered
        if answers == 0 and any(after.index not in case.unanswered for after in links[position + 1 :]):
            return position + 1
    return len(links)


class LazySequence(Sequence[T]):
    """The elements of an iterator, each made when it is first accessed. A turn that ends repeatedly has nearly as many
    runs as answers, and each run uses few of the answers after its beginning."""

    __slots__ = ("_made", "_rest")

    def __init__(self, elements: Iterable[T]) -> None:
        self._made: list[T] = []
        self._rest = iter(elements)

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...

    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if type(index) is int and 0 <= index < len(self._made):
            return self._made[index]
        end = index.stop if isinstance(index, slice) else index + 1
        known = end is not None and end > 0
        self._made += islice(self._rest, max(0, end - len(self._made)) if known else None)
        return self._made[index]

    def __iter__(self) -> Iterator[T]:
        for position in count():
            if position == len(self._made):  # another loop may have made more in the meantime
                self._made += islice(self._rest, 1)
            if position == len(self._made):
                return
            yield self._made[position]

    def __len__(self) -> int:
        return len(self[:])


def source_of(case: Case, record: TurnRecord, links: Sequence[Link]) -> RecordedSource:
    """The source for a run over the answers of `links`: recorded ones, then those of a live run."""
    last = links[-1]
    after: Event = _event_after(case, record, last)
    exchange = case.recording.exchanges[last.index]
    cancelled = case.cancels.get((exchange.path, exchange.entry)) is True
    late: tuple[tuple[ToolResultPart, ...], ...] = ()
    if case.unanswered:
        links = [link for link in links if link.index not in case.unanswered]
    if record.live_run is not None:
        live_run = case.live_runs[record.live_run]
        after, cancelled, late = live_run.after, False, () if live_run.results is None else (live_run.results,)
    return RecordedSource(LazySequence(_answers(case, links)), LazySequence(chain(_results(case, links), late)),
                          after, cancelled)


def _answers(case: Case, links: Sequence[Link]) -> Iterator[tuple[RequestPlace, int, ProviderResponse]]:
    counts = dict.fromkeys(RequestPlace, 0)
    for position, link in enumerate(links):
        place = REQUEST_PLACES.get(link.place) if position else RequestPlace.REQUEST
        if place is None:
            return  # a retry or a new request: the next run begins here
        counts[place] += position > 0
        yield place, counts[place], _answer(case, link, position)


def _results(case: Case, links: Sequence[Link]) -> Iterator[tuple[ToolResultPart, ...]]:
    for link in takewhile(lambda link: link.place in REQUEST_PLACES, islice(links, 1, None)):
        if link.place is TurnPlace.TOOL_RESULT:
            yield results_after(case, link.parent, link.index)


def results_after(case: Case, index: int | None, child: int) -> tuple[ToolResultPart, ...]:
    """The results in a later request, if the exchange with this index has their calls."""
    calls = case.recording.exchanges[index].response.tool_calls if index is not None else ()
    return results_in(case.recording.exchanges[child], calls)


AMBIGUITY = "It is unknown if the recording has what this loop asks for next: a later request fits several answers."
"""The reason why a turn ends if a later exchange may continue it, but could also continue another turn."""
ASKED_LIVE = "asked live"
"""The `why` of a link whose exchange belongs to a live run."""


def _event_after(case: Case, record: TurnRecord, link: Link) -> NotRecorded:
    """The event after the last exchange of a run, with the reason why the recording has no further answer."""
    if link.index < record.links[-1].index:
        return NotRecorded(NO_RECORDED_ANSWER)
    if link.index in case.may_follow:
        return NotRecorded(AMBIGUITY)
    last = case.recording.exchanges[link.index]
    why = case.end_causes.get(last.path, "")
    later = why and any(each.path == last.path and each.entry > last.entry for each in case.recording.exchanges)
    return NotRecorded("" if later else why)


def _answer(case: Case, link: Link, position: int) -> ProviderResponse:
    exchange = case.recording.exchanges[link.index]
    live, method, stripped = link.why == ASKED_LIVE, None, ""
    if not live:
        # The recorded agent's own request decides how its segment is joined: the machine's request was never sent.
        first = position == 0 or link.place is TurnPlace.TOOL_RESULT
        method, stripped = (Method.FIRST, "") if first else recorded_method(case, link)
    answer = ProviderResponse(exchange.response, case.judgements[link.index], link.index, method, stripped,
                              verdicts=case.verdicts[link.index], live=live, synthetic=exchange.simulated)
    if exchange.request is None or method not in (Method.ANCHOR, Method.AGAIN):
        return answer
    message = _last_message(case, link)
    return answer._replace(anchor=anchor_of_hint(message), mark=mark_of_hint(message))


def recorded_method(case: Case, link: Link) -> tuple[Method, str]:
    """The recorded agent's method of continuation, and the white space that it stripped from a prefill or an echo."""
    if link.place is TurnPlace.REPAIR:
        return Method.REPAIR, ""
    exchange, last = case.recording.exchanges[link.index], _last_message(case, link)
    if link.place is TurnPlace.RESUME:
        # A poll is a GET without a body; an echo has the paused response in its body.
        fetched = exchange.request_json is None and wire(exchange.api).polls
        ends_with_text = last.role is Role.ASSISTANT and last.parts and type(last.parts[-1]) is TextPart
        return Method.POLL if fetched else Method.ECHO, _strip(case, link, last) if ends_with_text else ""
    if anchor_of_hint(last):
        return Method.AGAIN if repeats_request(last.text) else Method.ANCHOR, ""
    if link.place is TurnPlace.NUDGE:
        return Method.NUDGE, ""
    # A request that ends with the assistant's own text is a prefill; any other last message is a hint.
    if last.role is not Role.ASSISTANT or link.parent is None:
        return Method.HINT, ""
    return Method.PREFILL, _strip(case, link, last)


def _strip(case: Case, link: Link, last: Message) -> str:
    """The white space at the end of the previous answer, or the cut word, unless the last message still has it."""
    before = case.recording.exchanges[link.parent].response.text or "" if link.parent is not None else ""
    words = before.removesuffix(before.rsplit(None, 1)[-1]).rstrip() if before.strip() else ""
    sent = last.text.rstrip()  # Anthropic's module of the AI SDK strips the white space before that word too
    if words and sent.endswith(words) and not sent.endswith(before.rstrip()):
        return before[len(words) + len(last.text) - len(sent):]
    return before[len(before.rstrip()) :] if last.text == sent else ""


def _last_message(case: Case, link: Link) -> Message:
    """The last message of a request; if that is a prompt, the text after the last answer, or that answer."""
    exchange = case.recording.exchanges[link.index]
    messages = exchange.request.messages if exchange.request else ()
    last = messages[-1] if messages else Message(Role.USER, ())
    if link.parent is None or wire(exchange.api).history != "prompt":
        return last
    answer_text = (case.recording.exchanges[link.parent].response.text or "").rstrip()
    if not answer_text or answer_text not in last.text:
        return last
    # Our own message is searched first, because its quotation may contain a whole short answer.
    ours = (last.text.rpartition(begin) for begin in (HINT_POINTS[0], EMPTY))
    hint = next((begin + more for before, begin, more in ours if begin and before.rstrip().endswith(answer_text)), "")
    after = hint or last.text.rpartition(answer_text)[2].strip()
    return Message(Role.USER, (TextPart(after),)) if after else last._replace(role=Role.ASSISTANT)


def has_unrecorded_answer(turn: Turn) -> bool:
    """Whether a turn received an answer that is in no recording."""
    return any(segment.response is None for answer in turn.answers for segment in answer)


EDITED_INPUT = "The model's input was edited, so no recorded answer belongs to it."
"""The reason why a recording has no further answers for an edited turn."""


def stops_at_edit(steps: Sequence[Step]) -> bool:
    """Whether a run ended because a request was edited."""
    event = steps[-1].event if steps else None
    return isinstance(event, NotRecorded) and event.why == EDITED_INPUT
