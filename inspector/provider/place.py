"""Finds the place of a request in its scenario from the history in the request, without stored state.

The text in the history is searched in the intended answer; the part that is found was sent before. Any message after an
incomplete answer requests its rest; results, or a message after a complete answer, lead to the next answer. The ids
that a client sends back (`previous_response_id`, a continuation token) contain the place itself. The last part
describes an answer on its way to the client. The module is pure.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from inspector.provider.dialect_writing import Manner
from inspector.provider.dialects import Dialect
from inspector.provider.scenarios import CHARACTERS, Intent, Kind, PlayedScenario, Story
from inspector.report.lines.spans import count_of
from loop_core.errors import CallerError
from loop_core.judge.arguments import parse
from loop_core.turn.history import anchor_of_hint, is_hint, is_nudge, is_repair
from loop_core.turn.quotation import shared_length
from loop_core.values import Message, Request, ResponsePart, Role, TextPart, ToolCall
from loop_core.wire import wire
from loop_core.wire.asking import forced_tool
from loop_core.wire.serving import Moment, Spelling

SEARCHED_CHARS = 24
"""The number of characters at the end of a text that are searched in the answer to find the text's place."""
LEAST_EQUAL_CHARS = 8
"""The number of equal characters from which a text counts as a part of the answer."""


@dataclass(frozen=True, slots=True)
class StoryPlace:
    """A place in a scenario."""

    answer: int = 0
    text_length: int = 0
    """The number of characters of the answer's text that the history has."""
    segments: int = 0
    """The number of earlier requests for this answer that were answered, as far as the history shows."""
    whole_calls: tuple[int, ...] = ()
    """The indices of the answer's calls that are whole in the history."""
    kind: Kind = Kind.FIRST
    anchor: str = ""
    prefill: str = ""
    """The text at the end of the request that the answer is to continue."""
    asks: int = 0
    """The number of messages in the history that request more of this answer."""


def locate(story: Story, request: Request) -> StoryPlace:
    """The place of the next answer. Raises `CallerError` if the scenario has no further answer."""
    request = with_turns(story, request)
    place, messages = StoryPlace(), request.messages
    named = request.continuation_token or request.previous_id
    mark = read_mark(named) if named else None
    if mark is None and named:
        raise CallerError(f"no answer of this server is called {named[:80]!r}")
    if mark is not None and mark.place.answer < len(story.answers):
        answer = story.answers[mark.place.answer]
        text_length, calls = min(mark.place.text_length, len(answer.text)), min(mark.calls, len(answer.calls))
        # A client may send any id, so the lengths are bounded.
        place = replace(mark.place, text_length=text_length, whole_calls=tuple(range(calls)))
        if request.continuation_token:  # the client sends the history again, and the token contains the place
            messages = ()
    if messages and is_repair(messages[-1]):  # a repair message after the results of calls that were not run
        messages = tuple(message for message in messages if not message.results or message is messages[-1])
        place = replace(place, whole_calls=())  # the client requests all calls, including whole ones
    failed = {result.call_id for message in messages for result in message.results
              if result.is_error or FAILURES.match(result.text) is not None}
    for before, message in zip((None, *messages), messages, strict=False):
        if before is not None and message.role is not Role.ASSISTANT and _is_silent(story, place, before):
            place = replace(place, segments=place.segments + 1)
        place = _place_after(story, place, message, failed)
    if place.answer >= len(story.answers):
        raise CallerError(f"the scenario {story.name} has {count_of(len(story.answers), 'answer')}, and this asks for "
                          "one more")
    return _place_of_request(story, place, request)


def with_turns(story: Story, request: Request) -> Request:
    """The request; if its format takes a single prompt, split into messages: text of an answer is the model's."""
    *system, prompt = request.messages or (None,)
    if prompt is None or prompt.role is not Role.USER or wire(request.api).history != "prompt":
        return request
    return replace(request, messages=(*system, *_turns(story, prompt.text)))


def _turns(story: Story, prompt: str) -> Iterator[Message]:
    for answer in story.answers:
        text_length = 0
        while text_length < len(answer.text):
            at, size = _longest(prompt, answer.text[text_length:])
            if not size:
                break
            yield from _user_messages(prompt[:at])
            yield Message(Role.ASSISTANT, (TextPart(prompt[at : at + size]),))
            prompt, text_length = prompt[at + size :], text_length + size
        if text_length < len(answer.text):
            break
    yield from _user_messages(prompt)


def _longest(prompt: str, text: str) -> tuple[int, int]:
    """The offset and the length of the longest beginning of a text in a prompt, after the prompt's first character.
    Fewer than `LEAST_EQUAL_CHARS` characters count only if they end the prompt, or if they are the whole text."""
    found, first = (0, 0), text[:CHARACTERS]
    at = prompt.find(first, 1)  # from 1, because the user's words come before those of the answer
    while at >= 0:
        size = shared_length(prompt[at : at + len(text)], text)
        sure = size >= LEAST_EQUAL_CHARS or at + size == len(prompt) or (
            size == len(text) and prompt.startswith("\n\n", at + size))
        if sure and size > found[1]:
            found = at, size
        at = prompt.find(first, at + 1)
    return found


def _user_messages(text: str) -> Iterator[Message]:
    """The user's messages in a part of a prompt; a message of our engine at its end is separate."""
    pieces = text.strip("\n").split("\n\n")
    whole = [Message(Role.USER, (TextPart("\n\n".join(pieces[at:])),)) for at in range(len(pieces))]
    at = next((at for at in range(1, len(pieces)) if _is_engine_message(whole[at])), 0)
    if at:
        yield Message(Role.USER, (TextPart("\n\n".join(pieces[:at])),))
    if whole[at].text:
        yield whole[at]


def _place_of_request(story: Story, place: StoryPlace, request: Request) -> StoryPlace:
    last = request.messages[-1] if request.messages else None
    begun = bool(place.text_length or place.segments or place.whole_calls or place.asks)
    choice = request.tool_choice
    calls = bool(story.answers[place.answer].calls)
    must_call = choice == "any" or forced_tool(choice) is not None
    if (last is not None and is_repair(last)) or (begun and calls and must_call):
        kind = Kind.REPAIR
    else:
        kind = Kind.CONTINUATION if begun else Kind.FIRST
    ends = last.text if last is not None and last.role is Role.ASSISTANT and begun else ""
    return replace(place, kind=kind, anchor=anchor_of_hint(last) if last is not None else "", prefill=ends,
                   segments=max(place.segments, place.asks, int(begun)))


def _place_after(story: Story, place: StoryPlace, message: Message, failed: Container[str | None]) -> StoryPlace:
    """The place after one more message. Calls whose results are errors count as not run."""
    if place.answer >= len(story.answers):
        return place
    answer = story.answers[place.answer]
    if message.role is Role.ASSISTANT:
        return _after_model(answer, place, message, failed)
    if message.results and place.whole_calls and not missing_calls(answer, place.whole_calls):
        place = StoryPlace(place.answer + 1)
    ours = _is_engine_message(message)
    if ours or (message.text.strip() and message.role is not Role.TOOL and (place.segments or place.whole_calls)):
        over = place.text_length >= len(answer.text) and not missing_calls(answer, place.whole_calls)
        return StoryPlace(place.answer + 1) if over and not ours else replace(place, asks=place.asks + 1)
    return place


def _is_silent(story: Story, place: StoryPlace, message: Message) -> bool:
    """Whether an answer in a history was empty, or was only reasoning, which some clients keep as text."""
    if message.role is not Role.ASSISTANT or message.tool_calls or place.answer >= len(story.answers):
        return False
    reasoning = story.answers[place.answer].reasoning
    return not message.text.strip() or (len(reasoning) >= SEARCHED_CHARS and reasoning in message.text
                                        and _after_model(story.answers[place.answer], place, message) == place)


def _is_engine_message(message: Message) -> bool:
    """Whether a message of our engine requests more; it may be the last text of the user's message."""
    last = message._replace(parts=tuple([part for part in message.parts if type(part) is TextPart][-1:]))
    return any(is_hint(each) or is_repair(each) or is_nudge(each) for each in (message, last))


FAILURES = re.compile(r"\W*(?:[a-z]*error|[a-z]*exception|traceback|invalid|failed|not run)\b", re.IGNORECASE)
"""Matches the beginning of the result of a call that was not run, in formats that have no mark for such a result."""


def _after_model(answer: Intent, place: StoryPlace, message: Message, failed: Container[str | None] = ()) -> StoryPlace:
    """The place after a message of the model; the same place if the message has no part of the answer."""
    left = missing_calls(answer, place.whole_calls)
    names = {answer.calls[number].name for number in left}
    text_length = reached_length(answer.text, place.text_length, message.text) if message.text else None
    if text_length is None and not any(call.name in names for call in message.tool_calls):
        return place
    whole: list[int] = []
    for call in message.tool_calls:
        fits = [number for number in left if number not in whole
                and _is_whole(call, answer.calls[number], call.id not in failed)]
        same = [number for number in fits if parse(call.arguments).value == parse(answer.calls[number].arguments).value]
        whole += (same or fits)[:1]  # equal arguments first, because calls of one tool may come in another order
    return replace(place, text_length=place.text_length if text_length is None else text_length,
                   segments=place.segments + 1, whole_calls=(*place.whole_calls, *whole))


def _is_whole(call: ToolCall, intended: ToolCall, was_run: bool) -> bool:
    """Whether a history has the intended call complete, instead of what a client made of a cut one. A client may keep a
    text that does not parse, or replace it by an object: an empty one, one without its last member or with the
    beginning of it, or one around the text. Other values than the intended ones are accepted if the call ran, because
    the client chose them."""
    arguments, whole = parse(call.arguments).value, parse(intended.arguments).value
    if call.name != intended.name or whole is None:  # arguments that intentionally do not parse cannot be compared
        return call.name == intended.name
    if arguments is None:
        return False
    own = was_run and any(name in arguments and not _is_rest(arguments[name], value) for name, value in whole.items())
    return own or all(name in arguments and arguments[name] == value for name, value in whole.items())


def _is_rest(part: Any, whole: Any) -> bool:
    """Whether a value may be what a cut left of another: nothing, or its beginning."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(name in whole and _is_rest(value, whole[name]) for name, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all(map(_is_rest, part, whole))
    if isinstance(part, str) and isinstance(whole, str):
        return whole.startswith(part)
    if isinstance(part, int | float) and isinstance(whole, int | float):
        return part == whole or str(whole).startswith(str(part))
    return part is None or part == whole


def missing_calls(answer: Intent, indices: Sequence[int]) -> list[int]:
    """The numbers of the answer's calls that are missing from these."""
    return [number for number in range(len(answer.calls)) if number not in indices]


def reached_length(intended: str, offset: int, text: str) -> int | None:
    """The length of the intended text that is reached if `text` continues or repeats its first `offset` characters;
    None if `text` is not a part of it."""
    at = intended.rfind(text, 0, offset + len(text))
    if at >= 0:
        return max(offset, at + len(text))
    end = text[-SEARCHED_CHARS:]  # the end, because a client may have dropped or rewritten the beginning
    at = intended.find(end, max(0, offset - len(end) + 1)) if len(end) >= LEAST_EQUAL_CHARS else -1
    if at >= 0:
        return at + len(end)
    # it continued, or began again
    alike = max(offset + shared_length(text, intended[offset:]), shared_length(text, intended))
    return alike if alike - offset >= LEAST_EQUAL_CHARS or alike == len(intended) else None


# -- places that are stored in ids -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlaceMark:
    """The content of an id: the place after an answer, and how the answer was made."""

    story: str
    place: StoryPlace
    start: int = 0
    """The offset in the text at which the answer began."""
    cap: int = 0
    """The cap under which the answer was made; 0 for no cap."""
    calls: int = 0
    """The number of the intended answer's calls that were whole in this answer."""
    prompt: int = 0
    """The number of tokens of the request, so that a fetched response reports the same count."""

    @property
    def where(self) -> str:
        """All fields as text, except the token count of the request, which varies with the wording of a history."""
        at = self.place
        return f"{self.story}.{at.answer}.{at.text_length}.{at.segments}.{self.start}.{self.cap}.{self.calls}"

    @property
    def text(self) -> str:
        """The mark as a part of an id."""
        return f"{self.where}.{self.prompt}"

    @property
    def token(self) -> str:
        """The mark as an opaque token."""
        return base64.urlsafe_b64encode(self.text.encode()).decode()


_MARK = re.compile(r"([A-Za-z][A-Za-z0-9-]{0,63})((?:\.\d{1,9}){6,7})(?:\.|$)")


def read_mark(ident: str) -> PlaceMark | None:
    """The mark in an id or token that the scripted provider made; None for any other id."""
    found = _MARK.search(ident)
    if found is None:
        try:
            found = _MARK.fullmatch(base64.urlsafe_b64decode(ident + "=" * (-len(ident) % 4)).decode("ascii"))
        except (ValueError, binascii.Error):
            return None
    if found is None:
        return None
    answer, text_length, segments, *rest = (int(number) for number in found[2].split(".")[1:])
    return PlaceMark(found[1], StoryPlace(answer, text_length, segments), *rest)  # older ids lack the token count


# -- An answer on its way to the client ------------------------------------------------------------------------------
# A draft has the intended answer, the part of it that the budget allows, its frames, and how they are sent.
# It is made for a place in a scenario; each fault makes another draft from it.


@dataclass(frozen=True, slots=True)
class Sending:
    """How frames are sent. Frame numbers count from 0; one that is too large means the last frame."""

    slow: float = 0.0
    """The number of seconds before every frame."""
    stall: tuple[int, float] | None = None
    """The frame before which the server is silent, and the seconds until it closes the connection."""
    reset: int | None = None
    """The frame within which the connection is reset; None: no reset."""
    drop: int | None = None
    """The frame before which the connection is closed; None: it is not closed early."""
    torn: int | None = None
    """The number of bytes in each piece that is sent, whatever the frames; None: a piece is a frame."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Draft:
    """One answer on its way to the client."""

    api: str
    stream: bool
    dialect: Dialect
    answer: Intent
    place: StoryPlace
    parts: tuple[ResponsePart, ...]
    """The parts that are still to be sent."""
    prefix: str = ""
    cap: int | None = None
    """The largest number of tokens of the answer; None: no cap."""
    ident: str = ""
    """The answer's id, if it already has one; empty: an id is made."""
    event: Moment | None = None
    """An event that ends the answer after `at` tokens, or at the answer's end if `at` is None; None: no such event."""
    at: int | None = None
    play: PlayedScenario | None = None
    """The part of the answer that is sent; None until it is computed."""
    spelling: Spelling | None = None
    manner: Manner = field(default_factory=Manner)
    frames: tuple[bytes, ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    sending: Sending = Sending()
    refusal: Mapping[str, Any] | None = None
    """An HTTP error instead of the answer: its `status`, the number of `times` that the same request gets it before the
    answer, and the seconds to wait that it names (`retry_after`; None: none)."""

    @property
    def streams(self) -> bool:
        """Whether the answer is streamed; errors, and endings that only a whole body can express, are not."""
        return self.stream and self.status < 400 and not (self.spelling is not None and self.spelling.whole)
