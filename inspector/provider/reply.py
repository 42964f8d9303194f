"""Builds the reply to a request: the place in the scenario, the budget, the dialect, the faults, the frames.

Tokens are counted as in `inspector.provider.scenarios`: four characters are one token; the name of a call counts, and
so does thinking, unless the dialect leaves it out. The module is pure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from zlib import crc32

from inspector.provider import frames
from inspector.provider.checks import stop_strings, until_stop
from inspector.provider.dialect_writing import Manner, response_pieces
from inspector.provider.dialects import DIALECTS, Dialect, dialects_named
from inspector.provider.faults import FAULTS, Fault, Layer, why_unplayable
from inspector.provider.frames import with_times
from inspector.provider.place import Draft, PlaceMark, Sending, StoryPlace, missing_calls, read_mark
from inspector.provider.scenarios import (
    CHARACTERS,
    Intent,
    Kind,
    PlacedFault,
    PlayedScenario,
    Scenario,
    Story,
    cost,
    play,
    tokens,
)
from loop_core.errors import CallerError, EncodeError
from loop_core.values import Request, ResponsePart, TextPart, ToolCall
from loop_core.wire import wire
from loop_core.wire.asking import forced_tool
from loop_core.wire.body import compact, read_object
from loop_core.wire.serving import Moment, RequestRefusal

UNLIMITED = 1_000_000_000
"""A budget so large that it cuts no answer."""
SMALLEST, SIZES = 4, 21
"""The least number of characters in a piece, and the number of sizes, of which the seed chooses one."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Reply:
    """The bytes to send, and the facts about them."""

    status: int
    headers: Mapping[str, str]
    frames: tuple[bytes, ...]
    sending: Sending = field(default_factory=Sending)
    refusals: int = 0
    """The number of times that the same request is first answered with `refusal`."""
    refusal: Reply | None = None
    place: StoryPlace = field(default_factory=StoryPlace)
    segment: int = 0
    end: Moment | None = None
    """How the answer really ended, whatever its words say; None for an error."""
    tokens: int = 0
    faults: tuple[str, ...] = ()


def stored_reply(api: str, story: Story, mark: PlaceMark, ident: str, profile: str | None) -> Reply:
    """The stored response with this id, complete even if faults cut its sending."""
    number = max(0, mark.place.segments - 1)
    start = min(mark.start, len(story.answers[mark.place.answer].text))  # a client may send any id
    at = StoryPlace(mark.place.answer, start, number, kind=Kind.CONTINUATION if number else Kind.FIRST)
    lasting = tuple(fault for fault in story.faults if _is_lasting(FAULTS[fault.name], api))
    request = Request(api, model=story.name, max_tokens=mark.cap or None)
    return reply_at(replace(story, faults=lasting), request, at, False, profile, ident)


def _is_lasting(fault: Fault, api: str) -> bool:
    """Whether the effect of a fault is still visible when the stored answer is fetched."""
    changes_answer = fault.layer in (Layer.ANSWER, Layer.WORDS) and not fault.why_impossible(api, False)
    # By then a pause has ended, and an error frame has no whole body.
    return changes_answer and fault.name not in ("paused", "error_frame")


def reply_at(
    story: Story, request: Request, place: StoryPlace, stream: bool, profile: str | None, ident: str = ""
) -> Reply:
    """The answer at a place of the scenario, with the id `ident` if it already has one. Raises `CallerError` if a fault
    has no meaning in this format."""
    if story.first is not None and place == StoryPlace():  # only if the history has no part of the scenario
        first = story.first
        return Reply(first.status, {"content-type": first.content_type}, first.frames, place=place)
    answer = story.answers[place.answer]
    cap = request.max_tokens or story.max_tokens
    dialect = dialect_for(request.api, stream, profile or story.profile)
    dialect = replace(dialect, stream=stream, model=request.model or dialect.model)
    number = segment(story, answer, place, cap, dialect)
    faults = faults_of(story, place, number)
    why = why_unplayable(replace(story, answers=(answer,), faults=faults), request.api, stream)
    if why:
        raise CallerError(f"the scenario {story.name} cannot be played in {request.api}: {why}")
    draft = Draft(request.api, stream, dialect, answer, place, _parts_left(answer, place, request), place.anchor, cap,
                  ident=ident)
    draft = _apply_faults(draft, faults, Layer.ANSWER)
    draft = _play_answer(draft, story, request, number)
    draft = _apply_faults(draft, faults, Layer.WORDS)
    draft = _write_frames(draft)
    if draft.status < 400:
        draft = replace(draft, frames=with_times(draft.api, draft.streams, draft.frames))
    for layer in (Layer.FRAMES, Layer.SENDING):
        draft = _apply_faults(draft, faults, layer)
    return _reply(draft, number, faults)


def segment(story: Story, answer: Intent, place: StoryPlace, cap: int | None, dialect: Dialect) -> int:
    """The number of this request among those for the same answer. A prefill has all earlier text in one message, so the
    number is also computed from the number of answers under this cap that give this much text."""
    count, text_length = 0, 0
    while text_length < place.text_length:
        kind = Kind.CONTINUATION if text_length else Kind.FIRST
        limits = [fault.value for fault in faults_of(story, replace(place, text_length=text_length, kind=kind), count)
                  if fault.name == "cut"]
        room = min([*limits, cap or UNLIMITED]) * CHARACTERS
        if not text_length and not dialect.free_thinking and answer.reasoning:
            room = max(0, room - tokens(answer.reasoning) * CHARACTERS)
        if room <= 0:
            break
        text_length, count = text_length + room, count + 1
    return max(count, place.segments)


def faults_of(story: Story, place: StoryPlace, number: int) -> tuple[PlacedFault, ...]:
    """The faults of this request."""
    return tuple(
        fault for fault in story.faults
        if fault.answer in (None, place.answer) and fault.segment in (None, number) and fault.when in (None, place.kind)
    )


def dialect_for(api: str, stream: bool, name: str | None) -> Dialect:
    """The dialect for a format: the named one if it speaks the format, else that of the format's own server. Raises
    `CallerError` if there is no such dialect at all."""
    rows = [row for row in (dialects_named((name,)) if name else ()) if row.api == api]
    # the dialect of a scenario has one format, its clients may use any
    rows = rows or [row for row in DIALECTS if row.api == api][:1]
    if not stream and wire(api).serving.own.whole:  # a whole body cannot hold a cut string
        rows = [row for row in DIALECTS if row.api == api and not row.stream]
    found = next((row for row in rows if row.stream is stream), rows[0])
    unfit = frames.WHOLE_ONLY if stream else frames.STREAM_ONLY
    return replace(found, quirks=tuple(quirk for quirk in found.quirks if quirk not in unfit))


# -- intended answer -------------------------------------------------------------------------------------------------


def _parts_left(answer: Intent, place: StoryPlace, request: Request) -> tuple[ResponsePart, ...]:
    open_calls = _calls(answer, place, request)
    choice = request.tool_choice
    only_calls = place.kind is Kind.REPAIR or choice == "any" or forced_tool(choice) is not None
    if only_calls and open_calls:
        return open_calls
    rest = answer.text[place.text_length :]
    text_parts = (TextPart(rest),) if rest else ()
    thinking = answer.parts[:1] if answer.reasoning and place.kind is Kind.FIRST else ()
    return (*thinking, *text_parts, *open_calls)


def _calls(answer: Intent, place: StoryPlace, request: Request) -> tuple[ToolCall, ...]:
    choice = request.tool_choice
    if choice == "none":
        return ()
    left = [answer.calls[number] for number in missing_calls(answer, place.whole_calls)]
    return tuple(call for call in left if forced_tool(choice) in (None, call.name))


def _prefix_text(draft: Draft) -> tuple[ResponsePart, ...]:
    for at, part in enumerate(draft.parts):
        if draft.prefix and type(part) is TextPart:
            return (*draft.parts[:at], TextPart(draft.prefix + part.text), *draft.parts[at + 1 :])
    return draft.parts


# -- sent answer -----------------------------------------------------------------------------------------------------


def _apply_faults(draft: Draft, faults: tuple[PlacedFault, ...], layer: Layer) -> Draft:
    for fault in faults:
        row = FAULTS[fault.name]
        if row.layer is layer:
            draft = row.change(draft, fault.value)
    return draft


def _play_answer(draft: Draft, story: Story, request: Request, number: int) -> Draft:
    parts, string = until_stop(_prefix_text(draft), stop_strings(request))
    event = None if string is not None and draft.at is None else draft.event  # an event at the end is never reached
    meant = Scenario(story.name, story.story, parts, UNLIMITED, event, draft.at)
    draft_play = play(meant, draft.cap or UNLIMITED, draft.dialect.free_thinking)
    # A background response keeps its id from its creation to its completion.
    over = draft_play
    paused = draft.dialect.spelling(Moment.PAUSED)
    if draft.event is Moment.PAUSED and paused is not None and paused.whole:
        over = play(replace(meant, event=None, at=None), draft.cap or UNLIMITED, draft.dialect.free_thinking)
    earlier_mark = read_mark(draft.ident) if draft.ident else None
    prompt = request_tokens(request) if earlier_mark is None else earlier_mark.prompt
    mark = replace(_mark(story, draft, over, number), prompt=prompt)
    # `hash` differs from process to process
    chance = crc32(f"{story.seed}{mark.where.removeprefix(story.name)}".encode())
    manner = Manner(
        chunk=SMALLEST + chance % SIZES, id=draft.ident or f"{mark.text}.{chance:08x}", call=f"{chance:08x}",
        prompt=prompt, token=mark.token,
    )
    spelling, says = draft.dialect.spelling(draft_play.moment), wire(draft.api).serving
    if string is not None and draft_play.moment is Moment.ENDED and spelling is not None and says.stop_string_word:
        native = {says.stopped_field: string} if says.stopped_field else {}
        spelling = replace(spelling, raw=says.stop_string_word, native=native)
    return replace(draft, play=draft_play, spelling=spelling, manner=manner)


def _mark(story: Story, draft: Draft, draft_play: PlayedScenario, number: int) -> PlaceMark:
    text = "".join(part.text for part in draft_play.parts if type(part) is TextPart)
    begun = 0 if draft.parts == draft.answer.parts else draft.place.text_length
    text_length = min(len(draft.answer.text), begun + max(0, len(text) - len(draft.prefix)))
    calls = sum(type(part) is ToolCall for part in draft_play.parts) - (draft_play.cut_call is not None)
    at = StoryPlace(draft.place.answer, text_length, number + 1)
    return PlaceMark(story.name, at, draft.place.text_length, draft.cap or 0, len(draft.place.whole_calls) + calls)


def request_tokens(request: Request) -> int:
    """The estimated tokens of a request."""
    texts = sum(tokens(message.text) + sum(tokens(result.text) for result in message.results) for message in
                request.messages)
    calls = sum(cost(call) for message in request.messages for call in message.tool_calls)
    return max(1, texts + calls + sum(tokens(f"{tool.name}{tool.description}") for tool in request.tools))


def _write_frames(draft: Draft) -> Draft:
    draft_play, spelling = draft.play, draft.spelling
    if draft_play is None:
        return draft
    if spelling is None and draft_play.moment is Moment.FAILED:
        return replace(draft, status=500, frames=(error_body(draft.api, 500, "The server had an error."),))
    if spelling is None:
        raise CallerError(f"{draft.dialect.name} has no way to say that the answer was {draft_play.moment}")
    if spelling.status >= 400:
        draft = replace(draft, status=spelling.status)
    try:
        pieces = tuple(response_pieces(draft.dialect, spelling, draft_play, draft.manner))
    except EncodeError as why:
        raise CallerError(f"{draft.dialect.name} cannot carry this answer: {why}") from None
    return replace(draft, frames=pieces)


def _reply(draft: Draft, number: int, faults: tuple[PlacedFault, ...]) -> Reply:
    headers = {"content-type": wire(draft.api).stream_type if draft.streams else frames.JSON, **draft.headers}
    reply = Reply(
        draft.status, headers, draft.frames, draft.sending, place=draft.place, segment=number,
        end=draft.play.moment if draft.play else None, tokens=draft.play.cut.tokens if draft.play else 0,
        faults=tuple(fault.name for fault in faults),
    )
    if draft.refusal is None:
        return reply
    refused = refusal(draft.api, draft.refusal["status"], "Too many requests.", draft.refusal["retry_after"])
    return replace(reply, refusals=draft.refusal["times"], refusal=refused)


# -- errors ----------------------------------------------------------------------------------------------------------

def refusal(
    api: str, status: int, message: str, retry_after: float | None = None, *, code: str | None = None,
    param: str | None = None,
) -> Reply:
    """An HTTP error instead of an answer."""
    headers = {"content-type": frames.JSON}
    if retry_after is not None:
        headers["retry-after"] = f"{retry_after:g}"  # `2`, not `2.0`: RFC 9110 section 10.2.3 has whole seconds
    named = wire(api).serving.error_header
    if named:
        headers[named] = kind_of_error(api, status)
    return Reply(status, headers, (error_body(api, status, message, code, param),))


def kind_of_error(api: str, status: int) -> str:
    """The type of an error in this format; empty if the format has no error types."""
    return wire(api).serving.errors.get(status, "")


def error_body(api: str, status: int, message: str, code: str | None = None, param: str | None = None) -> bytes:
    """The body of an error in this format."""
    request_refusal = RequestRefusal(status, message, kind_of_error(api, status), code, param)
    return compact(wire(api).serving.error_body(request_refusal)).encode()


# -- ids of requests -------------------------------------------------------------------------------------------------


def with_request_id(api: str, reply: Reply, *origin: object) -> Reply:
    """The reply with a request id, which is the same for equal origins; Anthropic's errors contain it too."""
    named = wire(api).serving.request_id
    if named is None:
        return reply
    ident = named.spell(hashlib.sha256(json.dumps([str(each) for each in origin]).encode()).hexdigest()[:32])
    answer = replace(reply, headers={**reply.headers, named.header: ident})
    if not named.in_errors or reply.status < 400:
        return answer
    body = read_object(b"".join(reply.frames).decode())
    return answer if body is None else replace(answer, frames=(compact({**body, "request_id": ident}).encode(),))
