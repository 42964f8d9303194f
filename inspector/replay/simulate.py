"""Simulates the answers of a turn under another budget: `SimulatedTurn` cuts the recorded output again.

The known output (`inspector.replay.known`) is cut at the end of a token (`inspector.replay.tokens`) and written in the
provider's own wire format; those bytes pass through the same decoder, judge and gate as any others. The source answers
by place, like `RecordedSource`, and returns recorded answers unchanged if the budget does not affect them. Without
recorded output it returns `NotRecorded`.

The simulated model follows every request. It continues exactly where its text was cut, quotes the requested anchor, and
sends a requested call complete, together with its batch. Text that it repeats on request (an anchor, white space that a
prefill lost) costs no tokens: the budget applies only to known output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache

from inspector.replay.case import LazySequence, has_unrecorded_answer, judge_response
from inspector.replay.known import AnswerShare, KnownOutput, first_position, known_output, take
from inspector.replay.token_counts import ends_whole, is_cut
from inspector.replay.tokens import TokenMeasure, capped_tokens, measure, plausible_usage, splitter
from inspector.sessions.reasons import inference_of, is_recorders
from inspector.sessions.recording import Exchange
from loop_core.errors import DecodeError, EncodeError
from loop_core.turn.continuation import Method, Segment
from loop_core.turn.loop import RecordedSource
from loop_core.turn.state import Event, NotRecorded, ProviderResponse, Recut, RequestPlace, RunTools, Send, Turn
from loop_core.values import (
    FINISHED,
    INTERRUPTED,
    CallKind,
    ChatResponse,
    Evidence,
    Message,
    ReasoningPart,
    ResponsePart,
    Stop,
    StopReason,
    TextPart,
    ToolCall,
    Usage,
)
from loop_core.wire import decode, deltas, wire
from loop_core.wire.format import Profile
from loop_core.wire.reads import Pieces

RESUMING_METHODS = frozenset({Method.ECHO, Method.TOKEN, Method.POLL, Method.NUDGE})
OPENING_PLACES = frozenset({RequestPlace.REQUEST, RequestPlace.RESUME, RequestPlace.NUDGE})
"""The places of requests with which an answer begins."""
CHUNK = 4_096
"""The number of characters in one delta of a simulated stream."""
RULE = "simulated.recut"
"""The name of the rule in the evidence for every simulated stop reason."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SimulatedTurn:
    """A recorded turn as a source that answers at other budgets. Its recorded answers carry their index."""

    source: RecordedSource
    measure: Callable[[int], TokenMeasure]
    """Measures the tokens of the recorded answer at an index; called only for answers that a budget changes."""
    profile: Profile
    """The server's profile: its stop words, its word for a cut by the cap, and whether the cap includes thinking."""
    caps: Sequence[int | None]
    """The output cap of the request of each recorded answer; None if the request had none."""
    budget_changed: bool
    """Whether the initial max_tokens differs from the recorded one; if not, recorded answers are used unchanged."""
    _outputs: dict[int, KnownOutput] = field(default_factory=dict)
    _cuts: dict[str, StopReason] = field(default_factory=dict)
    _lengths: dict[int, tuple[tuple[Segment, ...], int]] = field(default_factory=dict)

    @property
    def word_at_cap(self) -> str | None:
        """The end-of-turn word by which this server is known to report a cut by the cap; None if none is known."""
        return self.profile.at_cap.get(self.source.answers[0][2].response.api)

    def _capped_tokens(self, response: ChatResponse) -> int | None:
        """The output tokens of a recorded answer that count under the cap; None if they are not known."""
        return capped_tokens(plausible_usage(response), bool(self.profile.reasoning_under_cap))

    def respond(self, send: Send, turn: Turn) -> Event:
        """The recorded answer if the budget would not change it; else the known output, cut again."""
        if has_unrecorded_answer(turn):
            first = self._position_of_round(turn)
            if first is None:
                return NotRecorded()
            if send.place in OPENING_PLACES and self._is_unchanged(first, send.max_tokens):
                return self.source.answers[first][2]
            return self._simulate(send, turn, self._output_of(first))
        answer = self.source.respond(send, turn)
        position = turn.spend.requests - 1
        if isinstance(answer, ProviderResponse):
            if self._is_unchanged(position, send.max_tokens):
                return answer
            return self._simulate(send, turn, self._output_of(first_position(self.source.answers, position)))
        first = self._position_of_round(turn)
        if first is None:
            return answer
        output = self._output_of(first)
        # Under the recorded budget, an answer that is only partly known ends where its recording ends.
        if not output.whole and not self.budget_changed:
            return answer
        return self._simulate(send, turn, output)

    def run_tools(self, effect: RunTools, turn: Turn) -> Event:
        """The recorded results of this round, because its calls are those of the recording."""
        return self.source.run_tools(effect, turn)

    def follow_up(self, turn: Turn) -> tuple[Message, ...]:
        """Always empty, because the next recorded turn is a turn of its own."""
        return ()

    def answers_used(self, turn: Turn) -> int:
        """The number of recorded answers that a run with this end has used, unchanged or cut again."""
        return sum(1 for _ in self._until_round(turn))

    # -- the place in the recording ------------------------------------------------------------------------------

    def _until_round(self, turn: Turn) -> Iterator[bool]:
        """For every recorded answer up to the current round, whether it belongs to this round."""
        key = turn.spend.tool_steps, turn.spend.resumes, turn.spend.empty_retries
        reached = dict.fromkeys(RequestPlace, 0)
        for place, ordinal, _ in self.source.answers:
            reached[place] = ordinal
            now = reached[RequestPlace.REQUEST], reached[RequestPlace.RESUME], reached[RequestPlace.NUDGE]
            if now > key:
                break  # these numbers never decrease
            yield now == key

    def _position_of_round(self, turn: Turn) -> int | None:
        """The position at which the answer of this round began; None if the recording has no such round."""
        return next((place for place, found in enumerate(self._until_round(turn)) if found), None)

    def _output_of(self, first: int) -> KnownOutput:
        if first not in self._outputs:
            output = known_output(self.source.answers, first, self.measure)
            last = first + len(output.after) - 1
            self._outputs[first] = replace(output, whole=output.whole and not self._is_surely_cut(last))
        return self._outputs[first]

    def _is_unchanged(self, position: int, cap: int | None) -> bool:
        """Whether an answer stays as it was recorded under this cap."""
        if not self.budget_changed:
            return True
        answer = self.source.answers[position][2]
        used = self._capped_tokens(answer.response)
        # A cut answer would be longer under a larger cap and shorter under a smaller one.
        may_be_cut = self._spent_cap(position) and not ends_whole(answer.response)  # no word says that it is whole
        if is_cut(answer) or self._is_surely_cut(position) or may_be_cut:
            return cap is not None and cap == (self.caps[position] or used)
        if cap is None or not answer.response.parts:
            return True
        return (used if used is not None else self.measure(position).tokens) <= cap

    def _known_length(self, turn: Turn, output: KnownOutput) -> int:
        """The number of characters of the known text that this turn has already received."""
        text, segments = output.text, _round(turn)
        known, length = self._lengths.get(output.first, ((), 0))
        if segments[: len(known)] != known:
            known, length = (), 0
        lengths = {self.source.answers[place][2].number: end for place, end in enumerate(output.after, output.first)}
        for segment in segments[len(known) :]:
            length = _place(segment.method, text, length)
            length = lengths.get(segment.response, length) if segment.response is not None else (
                length + len(segment.text) - len(_repetition(text, length, segment)))
        self._lengths[output.first] = segments, length
        return length

    # -- the answer ----------------------------------------------------------------------------------------------

    def _simulate(self, send: Send, turn: Turn, output: KnownOutput) -> Event:
        fresh = send.place in OPENING_PLACES
        length = 0 if fresh else self._known_length(turn, output)
        length = _place(send.method, output.text, length)
        repair = send.place is RequestPlace.REPAIR
        share = None if repair and not output.has_calls else take(output, length, send.max_tokens, repair)
        if share is None:
            return NotRecorded()
        parts = _with_prefix(share.parts, _prefix(output.text, length, send), quotes=bool(send.anchor) and share.ended)
        usage = _usage(output, share, self.source.answers[output.first][2].response if fresh else None)
        encoding = self._encode(output.last, parts, share.ended, usage)
        if encoding is None:
            return NotRecorded()
        body, lost = encoding
        recut = Recut(output.basis.value, output.note, send.max_tokens, share.tokens, body, lost, share.apart,
                      not share.ended)
        response = decode(output.last.api, body, http_status=output.last.http_status, words=self.profile.words)
        stop = response.stop_reason
        evidence = Evidence(RULE, None, _note(recut, output, stop.raw if stop.normalized in FINISHED else None))
        # A word that stands for an unrecorded one is not the provider's: the evidence names what showed the end.
        recorded = output.last.stop_reason
        stands = share.ended and ended_reason(output.last) is not recorded
        origin = tuple(each._replace(at=None) for each in recorded.evidence) if stands else ()
        stop = stop._replace(raw=None if stands else stop.raw, evidence=(*origin, *stop.evidence, evidence))
        response = replace(response, stop_reason=stop)
        # Judged with the cap of this request: "usage equals the cap" is evidence of a cut.
        judged = judge_response(response, replace(turn.request, max_tokens=send.max_tokens), self.profile)
        if send.method is Method.PREFILL:
            return ProviderResponse(response, judged, None, send.method, send.stripped, False, None, recut)
        return ProviderResponse(response, judged, recut=recut)

    def _encode(
        self, last: ChatResponse, parts: tuple[ResponsePart, ...], ended: bool, usage: Usage | None
    ) -> tuple[bytes, str] | None:
        """The provider's bytes and what is lost in them: a cut call is closed, else left open, else left out. None if
        the format cannot express the answer."""
        stop = ended_reason(last) if ended else self._cut(last.api)
        for spelling, lost in _spellings(parts, ended):
            response = ChatResponse(
                last.api, spelling, stop, usage, model=last.model, streaming=last.streaming,
                refusal=last.refusal if ended and lost != PLAIN_LOSS else None,
                native=last.native if ended and lost != PLAIN_LOSS else {},
                saw_stop_reason=stop.raw is not None, saw_done=True,
            )
            try:
                return b"".join(wire(last.api).encode(response, stream=last.streaming, chunk=CHUNK)), lost
            except EncodeError:
                continue
        return None

    def _cut(self, api: str) -> StopReason:
        """The stop reason of a budget cut: as this recording reports it (perhaps without a word, or with one for a
        finished answer), else as the server is known to report it, else the format's first word for it."""
        if api not in self._cuts:
            self._cuts[api] = self._cut_among_answers(api)
        return self._cuts[api]

    def _cut_among_answers(self, api: str) -> StopReason:
        word = None
        for place, (_, _, answer) in enumerate(self.source.answers):
            stop = answer.response.stop_reason
            if answer.response.api != api:
                continue
            if stop.normalized is Stop.MAX_TOKENS and stop.raw and stop.detail is None:
                return StopReason(Stop.MAX_TOKENS, stop.raw)
            if answer.judgement.cap_reached and not stop.raw:
                return INTERRUPTED
            word = stop.raw if word is None and self._ends_at_cap(place) else word
        word = word or self.word_at_cap
        return StopReason(Stop.MAX_TOKENS, cut_word(api)) if word is None else StopReason(Stop.END_TURN, word)

    def _ends_at_cap(self, position: int) -> bool:
        """Whether a recorded answer took exactly the tokens of its cap and ends with an end-of-turn word."""
        response = self.source.answers[position][2].response
        ends = response.stop_reason.normalized is Stop.END_TURN and bool(response.stop_reason.raw)
        return ends and not response.other_choices and self._spent_cap(position)

    def _spent_cap(self, position: int) -> bool:
        used = self._capped_tokens(self.source.answers[position][2].response)
        return used is not None and used == self.caps[position]

    def _is_surely_cut(self, position: int) -> bool:
        """Whether an answer was cut although its word denies it: it ends at the cap with the server's word for that."""
        word = self.source.answers[position][2].response.stop_reason.raw
        return self.word_at_cap is not None and word == self.word_at_cap and self._ends_at_cap(position)


def ended_reason(last: ChatResponse) -> StopReason:
    """The recorded stop reason of a known end, or the format's first word for it if a transcript has none."""
    stop = last.stop_reason
    if not is_recorders(stop) and inference_of(stop) is None:
        return stop
    rows = wire(last.api).stop_reasons.items()
    words = (word for wanted in (stop.normalized, Stop.END_TURN) for word, row in rows
             if stop.raw is None and stop.normalized in FINISHED and (row.stop, row.detail) == (wanted, None))
    word = next(words, None)
    return stop if word is None else StopReason(stop.normalized, word)


@cache
def cut_word(api: str) -> str:
    """The format's own word for a budget cut."""
    return next(word for word, row in wire(api).stop_reasons.items() if row.stop is Stop.MAX_TOKENS)


# -- the request -----------------------------------------------------------------------------------------------------


def _place(method: Method | None, text: str, length: int) -> int:
    """The offset in the known text at which the answer to a request continues, after `length` received characters; 0 if
    the request was sent again because nothing visible had come."""
    return 0 if method is Method.BOOST and not text[:length].strip() else length


def _round(turn: Turn) -> tuple[Segment, ...]:
    """The segments of the current answer, from the last resumption on."""
    segments = turn.answers[-1]
    return segments[max((at for at, segment in enumerate(segments) if segment.method in RESUMING_METHODS), default=0) :]


def _prefix(text: str, offset: int, send: Send) -> str:
    """What the model repeats first: the requested anchor, or white space that a prefill lost if that comes next."""
    if send.anchor:
        return send.anchor
    return send.stripped if send.stripped and text.startswith(send.stripped, offset) else ""


def _repetition(text: str, offset: int, segment: Segment) -> str:
    """The part of the preceding text that a simulated segment repeats."""
    if segment.anchor:
        return segment.anchor if segment.text.startswith(segment.anchor) else ""
    return segment.stripped if segment.stripped and segment.text and text.startswith(segment.stripped, offset) else ""


def _with_prefix(parts: tuple[ResponsePart, ...], prefix: str, quotes: bool) -> tuple[ResponsePart, ...]:
    """The parts with `prefix` before their text; with `quotes` the prefix is added even if no text follows."""
    place = next((place for place, part in enumerate(parts) if type(part) is TextPart), None)
    if place is None and quotes and not any(type(part) is ToolCall for part in parts):
        return (*parts, TextPart(prefix))
    return tuple(TextPart(prefix + part.text) if at == place and type(part) is TextPart else part
                 for at, part in enumerate(parts))


# -- the bytes -------------------------------------------------------------------------------------------------------

PLAIN_LOSS = "what only the recorded response could carry"


def _spellings(parts: tuple[ResponsePart, ...], ended: bool) -> Iterator[tuple[tuple[ResponsePart, ...], str]]:
    """Variants of the parts that a format may be able to express, best first, each with its losses."""
    calls = [(place, part) for place, part in enumerate(parts)
             if type(part) is ToolCall and part.kind is not CallKind.SERVER]
    if ended or not calls:
        yield parts, ""
    else:
        place, call = calls[-1]
        before, after = parts[:place], parts[place + 1 :]
        for closed in (True, False):
            yield (*before, call._replace(closed=closed, status=None), *after), ""
        parts = (*before, *after)
        yield parts, "the cut call"
    yield tuple(_plain_parts(parts)), PLAIN_LOSS


def _plain_parts(parts: tuple[ResponsePart, ...]) -> Iterator[ResponsePart]:
    for part in parts:
        if type(part) is TextPart:
            yield part
        elif type(part) is ReasoningPart and part.text:
            yield ReasoningPart(part.text)
        elif type(part) is ToolCall and part.kind is CallKind.FUNCTION:
            yield ToolCall(part.id, part.name, part.arguments, True, form=part.form)


def _usage(output: KnownOutput, share: AnswerShare, first: ChatResponse | None) -> Usage | None:
    """The counts of a simulated answer; none if the recording has none."""
    counted = output.last.usage
    if counted is None:
        return None
    input_tokens = first.usage.input_tokens if first is not None and first.usage is not None else None
    return Usage(input_tokens, share.tokens, share.thinking if counted.reasoning_tokens is not None else None)


def _note(recut: Recut, output: KnownOutput, word: str | None) -> str:
    notes = [f"{recut.tokens:,} of {output.tokens:,} known tokens, boundaries by {recut.basis} ({recut.note})"]
    if recut.lost:
        notes.append(f"{recut.lost} could not be carried")
    if recut.apart is not None:
        notes.append(f"ESTIMATED, {recut.between}")
    if recut.cut and word:
        notes.append(f"cut by the budget; for such a cut this server says {word!r}")
    elif word and output.last.stop_reason.raw is None:
        notes.append(f"the provider's word was not recorded, and {word!r} stands for it")
    return "; ".join(notes)


# -- Simulation over recorded exchanges: the simulating source, with the tokens of their bodies ----------------------


def simulated_source(
    source: RecordedSource, exchanges: Sequence[Exchange], memo: dict[int, TokenMeasure], budget_changed: bool
) -> SimulatedTurn:
    """The simulating source over recorded answers. `memo` caches the measures by the index of the exchange."""
    recorded = LazySequence(exchanges[answer.number or 0] for _, _, answer in source.answers)

    def of(position: int) -> TokenMeasure:
        index = source.answers[position][2].number or 0
        if index not in memo:
            memo[index] = tokens_of(recorded[position])
        return memo[index]

    caps = LazySequence(exchange.cap for exchange in recorded)
    return SimulatedTurn(source, of, recorded[0].profile, caps, budget_changed)


def tokens_of(exchange: Exchange) -> TokenMeasure:
    """The tokens of a recorded response."""
    response = exchange.response
    cap = exchange.cap if response.stop_reason.normalized is Stop.MAX_TOKENS else None
    return measure(response, _chunks(exchange), cap, splitter(exchange.model),
                   bool(exchange.profile.reasoning_under_cap))


def _chunks(exchange: Exchange) -> Pieces | None:
    with suppress(DecodeError):
        return deltas(exchange.api, exchange.body) if exchange.response.streaming else None
    return None
