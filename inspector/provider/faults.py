"""The table of faults: small named changes to an answer on its way to the client.

Several faults are applied in the order of their layers. A row says what the fault does, in which formats it has no
meaning and why, and how a turn of our own loop ends under it, which a test compares with a run in every format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from inspector.provider import frames
from inspector.provider.frames import apply_quirks
from inspector.provider.place import Draft
from inspector.provider.scenarios import CHARACTERS, Kind, Story
from loop_core.values import OpaquePart, ReasoningPart, TextPart, ToolCall
from loop_core.wire import wire
from loop_core.wire.body import compact
from loop_core.wire.serving import Moment, Spelling


class Layer(StrEnum):
    """The part of an answer that a fault changes, in the order of application."""

    ANSWER = "answer"
    """The content of the answer, and the point that it reaches."""
    WORDS = "words"
    """The words about the end of the answer."""
    FRAMES = "frames"
    SENDING = "sending"
    """Whether and when the frames are sent."""


class Argument(StrEnum):
    """The kind of argument after a fault's name."""

    TRUE = "true"
    TOKENS = "a number of tokens"
    CHARACTERS = "a number of characters"
    FRAME = "the number of a frame, counted from 0"
    BYTES = "a number of bytes"
    SECONDS = "a number of seconds"
    WORD = "true, or a word"
    STALL = "a frame and seconds"
    REFUSAL = "how often, and after how many seconds to come again"


class StopWord(StrEnum):
    """The effect of a fault on the stop word of an answer, in the words of a screen."""

    TRUE = "Its stop word is true."
    FALSE = "Its stop word is false."
    UNKNOWN = "Its stop word is unknown."
    NONE = "No stop word comes."


Change = Callable[[Draft, Any], Draft]


@dataclass(frozen=True, slots=True)
class Fault:
    """One row of the table of faults."""

    name: str
    layer: Layer
    argument: Argument
    does: str
    change: Change
    example: Any = True
    base: str = "text"
    """The answer of the example: `text`, or one with a call."""
    cap: int | None = 400
    when: Kind | None = Kind.FIRST
    """The kind of request at which the example applies the fault; None: at every request."""
    ends: str = "completed"
    """The end state that the engine's loop reaches in the example."""
    ends_whole: str = ""
    """The end state for a whole body, if it differs; else empty."""
    without: Mapping[str, str] = field(default_factory=dict)
    """Form of an answer (`stream` or `whole`) in which the fault has no meaning in any format -> why. Each format lists
    the faults that it cannot express."""
    stop_word: StopWord = field(kw_only=True)

    def why_impossible(self, api: str, stream: bool) -> str:
        """Why the fault is impossible in a format, streamed or whole; empty if it is possible."""
        mode = "stream" if stream else "whole"
        own = wire(api).serving.cannot
        return own.get(self.name) or own.get(f"{self.name} {mode}") or self.without.get(mode) or ""

    def end(self, api: str, stream: bool) -> str:
        """The expected end state in a format, streamed or whole."""
        own = wire(api).serving.ends
        usual = self.ends if stream else self.ends_whole or self.ends
        return own.get(f"{self.name} {'stream' if stream else 'whole'}") or own.get(self.name) or usual


# -- the answer ------------------------------------------------------------------------------------------------------


def _cut(draft: Draft, tokens: int) -> Draft:
    return replace(draft, cap=tokens if draft.cap is None else min(tokens, draft.cap))


def _set_moment(moment: Moment) -> Change:
    return lambda draft, tokens: replace(draft, event=moment, at=tokens)


def _drop_quotes(draft: Draft, value: Any) -> Draft:
    """The arguments without any quotes, a frequent error of small models."""
    parts = tuple(part._replace(arguments=(part.arguments or "").replace('"', "")) if type(part) is ToolCall else part
                  for part in draft.parts)
    return replace(draft, parts=parts, event=Moment.MALFORMED)


def _repeat(draft: Draft, characters: int) -> Draft:
    sent_text = draft.answer.text[: draft.place.text_length]
    return replace(draft, prefix=sent_text[-characters:])


def _refuse(draft: Draft, value: Any) -> Draft:
    text = value if isinstance(value, str) else "I cannot do that again."
    return replace(draft, parts=(TextPart(text),), prefix="")


def _reasoning_only(draft: Draft, value: Any) -> Draft:
    thought = draft.answer.reasoning or draft.answer.text
    return replace(draft, parts=(ReasoningPart(thought),) if thought else (), prefix="")


def _leak_calls(draft: Draft, value: Any) -> Draft:
    text = "".join(part.text for part in draft.parts if type(part) is TextPart)
    text += "".join(_call_markup(part) for part in draft.parts if type(part) is ToolCall)
    rest = tuple(part for part in draft.parts if type(part) not in (TextPart, ToolCall))
    return replace(draft, parts=(*rest, TextPart(text)))


def _call_markup(call: ToolCall) -> str:
    """A call as the model's own markup, which stays in the text if the server does not parse it."""
    return f'\n<tool_call>\n{{"name": "{call.name}", "arguments": {call.arguments or "{}"}}}\n</tool_call>'


def _no_call(draft: Draft, value: Any) -> Draft:
    parts = tuple(part for part in draft.parts if type(part) is not ToolCall)
    return replace(draft, parts=parts, event=Moment.CALLED, at=None)


def _fallback(draft: Draft, value: Any) -> Draft:
    """An answer whose first half is from the requested model and whose rest is from another one."""
    seam = OpaquePart("fallback", compact({
        "type": "fallback", "from": {"model": draft.dialect.model},
        "to": {"model": value if isinstance(value, str) else "claude-haiku-4-5"}, "trigger": {"type": "refusal"}}))
    for at, part in enumerate(draft.parts):
        if type(part) is TextPart:
            # Divided between tokens, so that both halves together cost as much as the text.
            half = len(part.text) // (2 * CHARACTERS) * CHARACTERS
            halves = TextPart(part.text[:half]), seam, TextPart(part.text[half:])
            return replace(draft, parts=(*draft.parts[:at], *halves, *draft.parts[at + 1 :]))
    return draft


# -- words about the end ---------------------------------------------------------------------------------------------


def _change_spelling(draft: Draft, **changes: Any) -> Draft:
    return replace(draft, spelling=replace(draft.spelling or Spelling(None), **changes))


def _drop_words(draft: Draft, value: Any) -> Draft:
    draft = _change_spelling(draft, raw=None, native={}, error=None, token=None)
    return replace(draft, manner=replace(draft.manner, counts=False, done=True))


def _wrong_word(draft: Draft, value: Any) -> Draft:
    called = any(type(part) is ToolCall for part in draft.parts)
    usual = wire(draft.api).serving.says[Moment.CALLED if called else Moment.ENDED]
    return _change_spelling(draft, raw=value if isinstance(value, str) else usual.raw, native={}, call_form=None)


def _unknown_word(draft: Draft, value: Any) -> Draft:
    word = value if isinstance(value, str) else "ran_dry"
    return _change_spelling(draft, raw=wire(draft.api).serving.unknown.format(word), native={})


def _commentary(draft: Draft, value: Any) -> Draft:
    native = draft.spelling.native if draft.spelling is not None else {}
    return _change_spelling(draft, native={**native, "phase": "commentary"})


# -- frames ----------------------------------------------------------------------------------------------------------


def _malformed_frame(draft: Draft, number: int) -> Draft:
    new_frames = list(draft.frames)
    at = min(number, len(new_frames) - 1)
    new_frames[at] = frames.unreadable(draft.api, new_frames[at])
    return replace(draft, frames=tuple(new_frames))


def _empty_deltas(draft: Draft, value: Any) -> Draft:
    new_frames: list[bytes] = []
    for frame in draft.frames:
        empty = frames.without_text(draft.api, frame)
        new_frames += [frame] if empty is None else [empty, frame, empty]
    return replace(draft, frames=tuple(new_frames))


def _change_indexes(change: Callable[[dict[str, Any], str], object]) -> Change:
    def each(draft: Draft, setting: Any) -> Draft:
        def rewrite(value: dict[str, Any]) -> bool:
            found = wire(draft.api).serving.indexes(value)
            for holder, key in found:
                change(holder, key)
            return bool(found)

        return replace(draft, frames=frames.change_values(draft.api, draft.streams, draft.frames, rewrite))

    return each


def _as_quirk(quirk: frames.Quirk) -> Change:
    def each(draft: Draft, value: Any) -> Draft:
        if draft.play is None:
            return draft
        return replace(draft, frames=tuple(apply_quirks(list(draft.frames), (quirk,), draft.play)))

    return each


# -- sending ---------------------------------------------------------------------------------------------------------


def _send_with(name: str) -> Change:
    return lambda draft, value: replace(draft, sending=replace(draft.sending, **{name: value}))


_NO_INDEX = {"whole": "a list needs no index"}
_PIECES = {"whole": "a call comes whole"}
_ONE_FRAME = {"whole": "a whole body is one frame"}
_A, _W, _F, _S = Layer.ANSWER, Layer.WORDS, Layer.FRAMES, Layer.SENDING
_TRUE, _FALSE, _NONE = StopWord.TRUE, StopWord.FALSE, StopWord.NONE

FAULTS: Mapping[str, Fault] = {row.name: row for row in (
    Fault("cut", _A, Argument.TOKENS, "the answer ends after this many tokens, as if the budget were spent", _cut, 12,
          stop_word=_TRUE),
    Fault("context_full", _A, Argument.TOKENS, "the context is full after this many tokens", _set_moment(Moment.FULL),
          12, ends="context_window_exceeded", stop_word=_TRUE),
    Fault("filtered", _A, Argument.TOKENS, "a filter or a refusal ends the answer", _set_moment(Moment.FILTERED), 12,
          ends="safety_blocked", stop_word=_TRUE),
    Fault("paused", _A, Argument.TOKENS, "the provider pauses and can go on", _set_moment(Moment.PAUSED), 12,
          stop_word=_TRUE),
    Fault("error_frame", _A, Argument.TOKENS, "an error comes under HTTP 200, after this many tokens",
          _set_moment(Moment.FAILED), 12, ends="error", stop_word=_NONE),
    Fault("malformed_call", _A, Argument.TRUE, "the model writes a call that is not JSON", _drop_quotes, base="call",
          stop_word=_TRUE),
    Fault("restarted", _A, Argument.TRUE, "a continuation starts the answer again",
          lambda draft, _: replace(draft, parts=draft.answer.parts, prefix=""), cap=24,
          when=Kind.CONTINUATION, ends="no_progress", stop_word=_TRUE),
    Fault("repeated", _A, Argument.CHARACTERS, "a continuation first repeats this many characters", _repeat, 60, cap=36,
          when=Kind.CONTINUATION, stop_word=_TRUE),
    Fault("echoed", _A, Argument.TRUE, "the prefill is repeated before the answer goes on",
          lambda draft, _: replace(draft, prefix=draft.place.prefill), cap=40, when=Kind.CONTINUATION, stop_word=_TRUE),
    Fault("refused_repair", _A, Argument.WORD, "a repair gets text instead of the call", _refuse, base="call",
          cap=26, when=Kind.REPAIR, ends="repair_failed", stop_word=_TRUE),
    Fault("empty", _A, Argument.TRUE, "the answer is empty, and ends as if it were complete",
          lambda draft, _: replace(draft, parts=(), prefix=""), stop_word=_FALSE),
    Fault("reasoning_only", _A, Argument.TRUE, "the answer is all reasoning, and ends as if it were complete",
          _reasoning_only, stop_word=_FALSE),
    Fault("leaked_call", _A, Argument.TRUE, "calls come as markup in the text, and the answer ends as if none came",
          _leak_calls, base="call", ends="no_answer", stop_word=_FALSE),
    Fault("no_call", _A, Argument.TRUE, "the stop reason reports tool calls, but none is sent", _no_call, base="call",
          ends="no_answer", stop_word=_FALSE),
    Fault("fallback", _A, Argument.WORD, "another model goes on in the middle of the text", _fallback, stop_word=_TRUE),
    Fault("commentary", _W, Argument.TRUE, "every message is commentary: it announces what never comes", _commentary,
          ends="no_answer", stop_word=_FALSE),
    Fault("empty_choices", _W, Argument.TRUE, "the last chunk has usage but no choices, and no stop reason was sent",
          lambda draft, _: _change_spelling(draft, raw=None, native={}, error=None), cap=24,
          without={"whole": "a whole body has its choice"}, stop_word=_NONE),
    Fault("done_without_reason", _W, Argument.TRUE, "the end mark comes, but neither a stop reason nor usage was sent",
          _drop_words, ends="error", stop_word=_NONE),
    Fault("wrong_reason", _W, Argument.WORD, "another stop reason: for tool calls if there are any, else for an end",
          _wrong_word, base="call", cap=26, stop_word=_FALSE),
    Fault("unknown_reason", _W, Argument.WORD, "a stop reason that no provider defines", _unknown_word, ends="error",
          stop_word=StopWord.UNKNOWN),
    Fault("no_reason", _F, Argument.TRUE, "no stop reason is sent; everything else is, with usage and the end mark",
          lambda draft, _: replace(draft, frames=frames.without_reason(draft.api, draft.streams, draft.frames)),
          ends="error", stop_word=_NONE),
    Fault("malformed_frame", _F, Argument.FRAME, "a frame cannot be read", _malformed_frame, 2,
          ends_whole="interrupted", stop_word=_TRUE),
    Fault("empty_deltas", _F, Argument.TRUE, "empty deltas come before and after every delta", _empty_deltas,
          without=_ONE_FRAME, stop_word=_TRUE),
    Fault("no_index", _F, Argument.TRUE, "no part or call has an index",
          _change_indexes(dict.pop), base="call", without=_NO_INDEX, stop_word=_TRUE),
    Fault("one_index", _F, Argument.TRUE, "every part or call has the index 0",
          _change_indexes(lambda holder, key: holder.update({key: 0})), base="calls", without=_NO_INDEX,
          stop_word=_TRUE),
    Fault("wandering_index", _F, Argument.TRUE, "the pieces of a call after the first have another index and no id",
          _as_quirk(frames.wandering_index), base="call", without=_PIECES, stop_word=_TRUE),
    Fault("fresh_ids", _F, Argument.TRUE, "every piece of a call has an id of its own", _as_quirk(frames.fresh_ids),
          base="call", without=_PIECES, stop_word=_TRUE),
    Fault("slow", _S, Argument.SECONDS, "every frame comes after this many seconds", _send_with("slow"), 0.001,
          stop_word=_TRUE),
    Fault("stalled", _S, Argument.STALL, "the server stops sending before a frame, then closes the connection",
          lambda draft, value: _send_with("stall")(draft, (value["frame"], value["seconds"])),
          {"frame": 2, "seconds": 30}, ends="interrupted", stop_word=_NONE),
    Fault("reset", _S, Argument.FRAME, "the connection is reset inside a frame", _send_with("reset"), 3,
          ends="interrupted", stop_word=_NONE),
    Fault("dropped", _S, Argument.FRAME, "the connection is closed before a frame", _send_with("drop"), 3,
          ends="interrupted", without={"whole": "a whole body is one frame; `reset` breaks it"}, stop_word=_NONE),
    Fault("torn", _S, Argument.BYTES, "the bytes come in pieces of this size, cut anywhere", _send_with("torn"), 7,
          stop_word=_TRUE),
    Fault("rate_limited", _S, Argument.REFUSAL, "the same request is refused this many times, then answered",
          lambda draft, value: replace(draft, refusal=value), {"times": 2, "retry_after": 0.0, "status": 429},
          stop_word=_TRUE),
)}


def stop_word_of(story: Story) -> StopWord:
    """The effect of a scenario on the stop word: that of its first fault that changes the word."""
    words = (FAULTS[fault.name].stop_word for fault in story.faults)
    return next((word for word in words if word is not StopWord.TRUE), StopWord.TRUE)


def why_unplayable(story: Story, api: str, stream: bool) -> str:
    """The reason why a scenario cannot be played in a format; empty if it can."""
    no_tools = wire(api).no_tools
    if no_tools and any(answer.calls for answer in story.answers):
        return no_tools
    return next((why for fault in story.faults if (why := FAULTS[fault.name].why_impossible(api, stream))), "")
