"""Writes an answer, complete or cut, as the bytes of one server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from inspector.provider.dialects import Dialect
from inspector.provider.frames import PIECE, apply_quirks
from inspector.provider.scenarios import PlayedScenario
from loop_core.judge.arguments import parse_leniently
from loop_core.values import ChatResponse, ReasoningPart, ResponsePart, Stop, StopReason, TextPart, ToolCall, Usage
from loop_core.wire import wire
from loop_core.wire.body import compact
from loop_core.wire.profiles import PROFILES, for_model
from loop_core.wire.serving import CallFraming, CutCallForm, Moment, Spelling

PROMPT_TOKENS = 60
"""The number of tokens of the request, including the tools."""


@dataclass(frozen=True, slots=True)
class Manner:
    """The properties of an answer that depend neither on the model nor on the dialect."""

    chunk: int = PIECE
    """The number of characters in one piece of a stream."""
    id: str = "0001"
    """The answer's id without the format's prefix."""
    call: str = ""
    """The text before the call's number in the id of a call."""
    prompt: int = PROMPT_TOKENS
    """The number of tokens of the request."""
    token: str | None = None
    """The continuation token; None if none is sent."""
    counts: bool = True
    """Whether token counts are reported."""
    done: bool = False
    """Whether the stream has an end mark even if the answer was cut."""


DEFAULT_MANNER = Manner()


def is_streamed(dialect: Dialect, spelling: Spelling) -> bool:
    """Whether this answer is streamed."""
    return dialect.stream and not spelling.whole and spelling.status < 400


def response_pieces(
    dialect: Dialect, spelling: Spelling, play: PlayedScenario, manner: Manner = DEFAULT_MANNER
) -> list[bytes]:
    """The body, in the pieces in which it is sent."""
    stream = is_streamed(dialect, spelling)
    response = intended_response(dialect, spelling, play, manner)
    sent = list(wire(dialect.api).encode(response, stream=stream, chunk=manner.chunk))
    return apply_quirks(sent, dialect.quirks, play) if response.parts else sent


def intended_response(
    dialect: Dialect, spelling: Spelling, play: PlayedScenario, manner: Manner
) -> ChatResponse:
    """The answer of this server before it is encoded."""
    failed = spelling.status >= 400
    says = wire(dialect.api).serving
    parts = () if failed else tuple(_parts(dialect, spelling, play, manner))
    if says.calls_last and not is_streamed(dialect, spelling):
        parts = tuple(sorted(parts, key=lambda part: type(part) is ToolCall))  # stable: the order is kept otherwise
    return ChatResponse(
        dialect.api,
        parts,
        StopReason(_word(dialect, spelling), spelling.raw),
        _usage(dialect, spelling, play, manner) if manner.counts and not failed else None,
        id=says.answer_id.format(manner.id) if says.answer_id and not failed else None,
        model=None if failed or not says.names_model else dialect.model,
        http_status=spelling.status,
        error=spelling.error,
        native=spelling.native,
        continuation_token=spelling.token and (manner.token or spelling.token),
        saw_done=manner.done or (says.ends_without and play.moment is Moment.BROKEN),
    )


def _word(dialect: Dialect, spelling: Spelling) -> Stop:
    """The stop reason of the spelling's word by the format's own table, which the encoders need."""
    raw = spelling.raw
    if spelling.whole:
        return Stop.PAUSED
    rows = {**wire(dialect.api).stop_reasons, **PROFILES[dialect.profile].words}  # a profile's own words win
    row = rows.get(raw or "") or rows.get((raw or "").casefold())
    return row.stop if row is not None else Stop.INTERRUPTED if raw is None else Stop.UNKNOWN


def _usage(dialect: Dialect, spelling: Spelling, play: PlayedScenario, manner: Manner) -> Usage | None:
    """The token counts that the server reports: for a lost or failed stream only the counts at its beginning, if any;
    none for an unfinished background response."""
    cut = play.cut
    if spelling.whole:
        return None  # usage is null until a background response is complete (openai types/responses/response.py)
    if play.moment is Moment.BROKEN or spelling.error is not None:
        return Usage(manner.prompt, 1) if wire(dialect.api).serving.counts_early else None
    prompt = manner.prompt
    size = for_model(PROFILES[dialect.profile], dialect.model).context_size
    if play.moment is Moment.FULL and size is not None:
        prompt = size - cut.tokens  # a context is full when prompt and output together fill it
    if wire(dialect.api).serving.counts_all:
        return Usage(prompt, cut.tokens, cut.thinking, 0)
    return Usage(prompt, cut.tokens, cut.thinking or None)


def _parts(dialect: Dialect, spelling: Spelling, play: PlayedScenario, manner: Manner) -> Iterator[ResponsePart]:
    calls = sum(isinstance(part, ToolCall) for part in play.parts)
    number = 0
    for place, part in enumerate(play.parts):
        if not isinstance(part, ToolCall):
            thought = wire(dialect.api).serving.thought_id
            if thought and isinstance(part, ReasoningPart):
                part = part._replace(item_id=thought.format(f"{manner.call}{place}"))  # the id to send it back by
            yield part
            continue
        number += 1
        # a budget cuts the last call
        unsound = number == calls and (play.cut_call is not None or play.moment is Moment.MALFORMED)
        sent = _carried_part(part, dialect.carries(play.moment)) if unsound else part
        if isinstance(sent, ToolCall):
            yield _identify_call(dialect, spelling, play, sent, f"{manner.call}{number}", number == calls, unsound)
        elif sent is not None:
            yield sent


def _carried_part(call: ToolCall, carried: CutCallForm) -> ResponsePart | None:
    if carried in (CutCallForm.DROPPED, CutCallForm.VALUES):
        return None
    if carried is CutCallForm.MARKUP:
        return TextPart(f'\n<tool_call>\n{{"name": "{call.name}", "arguments": {call.arguments}')
    if carried is CutCallForm.EMPTY_OBJECT:
        return call._replace(arguments="{}")
    if carried is CutCallForm.MEMBERS:
        return call._replace(arguments=compact(_complete_members(call.arguments or "")))
    return call


def _complete_members(text: str) -> dict[str, object]:
    """The members of cut arguments, without a string in which the text ends."""
    members = parse_leniently(text) or {}
    open_string = text.count('"') - text.count('\\"')  # odd: the text ends inside a string
    if open_string % 2 and members:
        members.popitem()  # members keep their order, so it is the last one
    return members


def _identify_call(
    dialect: Dialect, spelling: Spelling, play: PlayedScenario, call: ToolCall, number: str, last: bool, unsound: bool
) -> ToolCall:
    """The call with its id, its status, and whether the server says that it is closed. `last`: the call is the last of
    its answer; `unsound`: it is malformed, or the answer ended inside it."""
    says = wire(dialect.api).serving
    call = call._replace(id=says.call_id.format(number) if says.call_id else None)
    if says.calls is CallFraming.ITEMS:
        status = "completed"
        if unsound and spelling.raw != "completed":
            # a broken stream never reported the item's end
            status = "in_progress" if spelling.raw is None else "incomplete"
        return call._replace(closed=status == "completed", status=status, item_id=f"fc_{number}")
    if says.calls is not CallFraming.BLOCKS:
        return call._replace(closed=spelling.raw is not None)
    if is_streamed(dialect, spelling):
        return call._replace(closed=not (unsound and dialect.carries(play.moment) is CutCallForm.OPEN))
    ended = _word(dialect, spelling) in (Stop.TOOL_CALL, Stop.END_TURN)
    return call._replace(closed=spelling.raw is not None and (ended or not last))
