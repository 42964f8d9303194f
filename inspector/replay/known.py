"""The known output of one answer, merged from its segments and divided into tokens, and the part that a budget allows.

An answer begins with a request (or with the resumption of a pause) and continues as long as a budget cut it. It is
known completely if its last segment ended cleanly. If that was cut too, the rest is unknown and is never invented.

Text is merged as the seams join it. Calls are taken from the segment that last sent them, so a repaired batch replaces
the cut one. Left out are the thinking of a continuation, which is about the interruption, and the text beside a
repaired call. A segment replaces all before it if nothing visible came before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from inspector.replay.token_counts import Bounds, is_cut, text_of
from inspector.replay.tokens import TokenBasis, TokenMeasure, TokenStretch
from inspector.sessions.recording import common_beginning
from loop_core.turn.continuation import Method, Segment
from loop_core.turn.seam import join
from loop_core.turn.state import ProviderResponse, RequestPlace
from loop_core.values import FINISHED, CallKind, ChatResponse, ReasoningPart, ResponsePart, TextPart, ToolCall

KnownAnswer = tuple[RequestPlace, int, ProviderResponse]
"""A recorded answer: its place in the turn, its number among the answers with this place, and the response."""

CONTINUING_PLACES = frozenset({RequestPlace.CONTINUATION, RequestPlace.REPAIR})


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KnownOutput:
    """The known output of one answer."""

    first: int
    """The index of the output's first segment among the recorded answers."""
    stretches: tuple[TokenStretch, ...]
    after: tuple[int, ...]
    """For each segment, the number of characters of `text` that are complete at the segment's end."""
    whole: bool
    """Whether the answer is complete, so that no unknown output follows."""
    last: ChatResponse
    """The response of the last segment."""
    end: int
    """The number of tokens of the end mark."""
    basis: TokenBasis
    """The least reliable basis of the segments' token boundaries."""
    note: str
    sure: int = 0
    """The number of first tokens that come from the first recorded answer, before any interruption."""
    bounds: Bounds | None = None
    """The range of characters for each number of the first answer's tokens; None if there is only one reading."""

    @property
    def text(self) -> str:
        """The visible text."""
        return "".join(s.part.text for s in self.stretches if type(s.part) is TextPart)

    @property
    def tokens(self) -> int:
        """The number of tokens, including the end mark."""
        return sum(len(stretch.ends) for stretch in self.stretches) + self.end

    @property
    def has_calls(self) -> bool:
        """Whether the output holds a call for the client to run."""
        return any(map(_is_call, self.stretches))


class AnswerShare(NamedTuple):
    """The part of a known answer that one request gets."""

    parts: tuple[ResponsePart, ...]
    tokens: int
    thinking: int
    """The number of tokens of this part that are thinking."""
    ended: bool
    """Whether the answer ends with this part; otherwise the budget cut it."""
    apart: tuple[int, int] | None = None
    """The least and the largest number of characters that the budget may allow; None: exactly `parts`."""


def is_continuation(before: ProviderResponse, answer: KnownAnswer) -> bool:
    """Whether an answer continues the one before it, which was cut or did not begin as requested."""
    place, _, after = answer
    return place in CONTINUING_PLACES and (is_cut(before) or after.method is Method.AGAIN)


def first_position(answers: Sequence[KnownAnswer], position: int) -> int:
    """The position of the first segment of the answer at `position`."""
    while position and is_continuation(answers[position - 1][2], answers[position]):
        position -= 1
    return position


def known_output(answers: Sequence[KnownAnswer], first: int, measure: Callable[[int], TokenMeasure]) -> KnownOutput:
    """The known output of the answer that begins at position `first`."""
    stretches: list[TokenStretch] = []
    segments: list[Segment] = []
    after: list[int] = []
    measured: list[TokenMeasure] = []
    calls: list[TokenStretch] = []
    base = measure(first)
    position, length, broken = first, 0, False
    while True:
        place, _, answer = answers[position]
        output = measure(position)
        had_calls, calls = bool(calls), [stretch for stretch in output.stretches if _is_call(stretch)]
        # A continuation of a response with calls has to bring the calls again, like a repair.
        if position > first and (place is RequestPlace.REPAIR or had_calls):
            if not calls:
                broken = True  # the cut call was never sent again
                break
            stretches = [stretch for stretch in stretches if not _is_call(stretch)] + calls
        elif not length:
            stretches, base = list(output.stretches), output
            segments = [_segment(answer)]
            length = _length(stretches)
        else:
            segments.append(_segment(answer))
            seam = join(segments).seams[-1]
            fresh = [each for each in output.stretches if type(each.part) is not ReasoningPart and each.part]
            # From the last to the first, so that earlier offsets stay valid.
            for begin, left_out in reversed(seam.removals):
                fresh = [*_stretches_until(fresh, begin), *_stretches_from(fresh, begin + len(left_out))]
            fresh = _stretches_from(fresh, len(seam.cut))
            _cut_stretches(stretches, length, seam.at)
            stretches += fresh
            length = min(length, seam.at) + _length(fresh)
        measured.append(output)
        after.append(length)
        following = position + 1
        if following >= len(answers) or not is_continuation(answer, answers[following]):
            break
        position = following
    last = answers[first + len(measured) - 1][2]
    worst = max(measured, key=lambda each: [*TokenBasis].index(each.basis))
    whole = not broken and last.judgement.stop.normalized in FINISHED
    return KnownOutput(first, tuple(stretches), tuple(after), whole, last.response, measured[-1].end, worst.basis,
                       worst.note, _sure_tokens(stretches, base, measured[-1]), base.bounds)


def _sure_tokens(stretches: Sequence[TokenStretch], base: TokenMeasure, last: TokenMeasure) -> int:
    """The number of tokens at the beginning that come unchanged from one answer."""
    if base is last:
        return base.tokens
    same = base.stretches[: common_beginning(stretches, base.stretches)]
    return sum(len(stretch.ends) for stretch in same if stretch.counted)


def take(output: KnownOutput, offset: int, budget: int | None, repair: bool = False) -> AnswerShare | None:
    """The output after `offset` characters of text that fits into `budget` tokens; None if it is not known. Text
    continues where it was cut; thinking before it and a batch of calls begin again. A repair gets only the calls."""
    parts: list[ResponsePart] = []
    used = thought = at = 0
    left = float("inf") if budget is None else max(0, budget)  # a recorded cap may be negative
    for stretch in output.stretches:
        part, begin, skipped = stretch.part, 0, 0
        if type(part) is TextPart:
            begin, at = max(0, offset - at), at + len(part.text)
            if repair or begin >= len(part.text):
                continue
            skipped = bisect_right(stretch.ends, begin) if begin else 0
        elif not _is_call(stretch) and (repair or at < offset or (at == offset > 0 and not _is_thinking(part))):
            continue
        tokens = len(stretch.ends) - skipped
        # Thinking that the provider does not count under the cap always fits (`Profile.reasoning_under_cap`).
        fits = not stretch.counted or tokens <= left
        share = tokens if fits else int(left)
        used += share
        thought += share if _is_thinking(part) else 0
        if not fits:
            piece = _piece(part, begin, stretch.ends[skipped + share - 1] if share else begin, bool(share))
            apart = _uncertain_range(output, offset, budget or 0, repair)
            return AnswerShare(_join_texts([*parts, *piece]), used, thought, False, apart)
        left -= share if stretch.counted else 0
        parts += _piece(part, begin, None, True)
    if output.whole and left >= output.end:
        return AnswerShare(_join_texts(parts), used + output.end, thought, True)
    # The budget reaches beyond the known output: what the model would have sent is unknown.
    if not output.whole and left:
        return None
    return AnswerShare(_join_texts(parts), used, thought, False, _uncertain_range(output, offset, budget or 0, repair))


def _uncertain_range(output: KnownOutput, offset: int, tokens: int, repair: bool) -> tuple[int, int] | None:
    """The range of characters in which a cut after so many further tokens may lie; None if it is one place."""
    begin, before = _offsets_before(output, offset, repair)
    if before + tokens > output.sure:
        whole = sum(len(text_of(stretch.part)) for stretch in output.stretches if stretch.counted)
        return 0 if before > output.sure or repair else max(0, _sure_chars(output) - begin), whole - begin
    if output.bounds is None:
        return None
    least, most = output.bounds
    first, last = (bisect_left(most, begin), bisect_right(least, begin) - 1) if begin else (0, 0)
    latest = len(least) - 1
    low, high = least[min(first + tokens, latest)], most[min(last + tokens, latest)]
    return None if low == high else (max(0, low - begin), high - begin)


def _offsets_before(output: KnownOutput, offset: int, repair: bool) -> tuple[int, int]:
    """The numbers of characters and of tokens under the cap before the part that answers a request."""
    chars = tokens = text = 0
    for stretch in output.stretches:
        if (repair and _is_call(stretch)) or not (offset or repair):
            break
        part = stretch.part
        if type(part) is TextPart and not repair:
            if offset < text + len(part.text):
                return chars + offset - text, tokens + bisect_right(stretch.ends, offset - text)
            text += len(part.text)
        elif _is_call(stretch) and text >= offset:
            break
        if stretch.counted:
            chars, tokens = chars + len(text_of(part)), tokens + len(stretch.ends)
    return chars, tokens


def _sure_chars(output: KnownOutput) -> int:
    """The smallest number of characters that the `sure` tokens can hold."""
    if output.bounds is not None:
        return output.bounds[0][min(output.sure, len(output.bounds[0]) - 1)]
    chars = tokens = 0
    for stretch in output.stretches:
        tokens += len(stretch.ends) if stretch.counted else 0
        if tokens > output.sure:
            break
        chars += len(text_of(stretch.part)) if stretch.counted else 0
    return chars


# -- stretches -------------------------------------------------------------------------------------------------------


def _segment(answer: ProviderResponse) -> Segment:
    return Segment(answer.response.text or "", answer.method or Method.FIRST, answer.anchor, answer.stripped,
                   answer.echoes, mark=answer.mark)


def _is_call(stretch: TokenStretch) -> bool:
    return type(stretch.part) is ToolCall and stretch.part.kind is not CallKind.SERVER


def _is_thinking(part: ResponsePart | None) -> bool:
    return part is None or type(part) is ReasoningPart


def _length(stretches: Sequence[TokenStretch]) -> int:
    return sum(len(stretch.part.text) for stretch in stretches if type(stretch.part) is TextPart)


def _stretches_until(stretches: Sequence[TokenStretch], at: int) -> list[TokenStretch]:
    """The stretches whose text ends at character `at`."""
    kept_stretches: list[TokenStretch] = []
    for stretch in stretches:
        if type(stretch.part) is TextPart:
            text, at = stretch.part.text[:at], max(0, at - len(stretch.part.text))
            if text != stretch.part.text:
                ends = [end for end in stretch.ends if end < len(text)]
                stretch = TokenStretch(TextPart(text), [*ends, len(text)] if text else ())
        kept_stretches.append(stretch)
    return kept_stretches


def _cut_stretches(stretches: list[TokenStretch], length: int, at: int) -> None:
    """Ends the text of the stretches, which has this length, at character `at`, beginning with the last stretch."""
    place, begin = len(stretches), length
    while begin > at:
        place -= 1
        begin -= _length(stretches[place : place + 1])
    stretches[place:] = _stretches_until(stretches[place:], at - begin)


def _stretches_from(stretches: Sequence[TokenStretch], cut: int) -> list[TokenStretch]:
    """The stretches without the first `cut` characters of their text."""
    kept_stretches: list[TokenStretch] = []
    for stretch in stretches:
        if cut and type(stretch.part) is TextPart:
            size = len(stretch.part.text)
            stretch = TokenStretch(TextPart(stretch.part.text[cut:]), [end - cut for end in stretch.ends if end > cut])
            cut = max(0, cut - size)
        kept_stretches.append(stretch)
    return kept_stretches


def _piece(part: ResponsePart | None, begin: int, end: int | None, started: bool) -> list[ResponsePart]:
    """A part from character `begin` to `end` (None: whole and unchanged); nothing if it has no character there."""
    if part is None or not started:
        return []
    if end is None and not begin:
        return [part]
    text = text_of(part)[begin:end]
    if type(part) is ToolCall:
        return [part._replace(arguments=text, status=None)]
    if type(part) is TextPart:
        return [TextPart(text)] if text else []
    return [ReasoningPart(text)] if text else []


def _join_texts(parts: Sequence[ResponsePart]) -> tuple[ResponsePart, ...]:
    """The parts with consecutive texts of several segments joined into one."""
    joined_parts: list[ResponsePart] = []
    for part in parts:
        if type(part) is TextPart and joined_parts and type(before := joined_parts[-1]) is TextPart:
            joined_parts[-1] = TextPart(before.text + part.text)
        else:
            joined_parts.append(part)
    return tuple(joined_parts)
