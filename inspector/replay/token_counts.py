"""Bounds the output tokens that an answer can have, and checks whether the provider's count is possible.

No tokenizer is needed: each token has at least one byte of text, and tokens without text have a bound of their own. The
second part refuses recorded answers that are larger than the rest of a token bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from inspector.sessions.recording import Exchange
from loop_core.turn.loop import RecordedSource
from loop_core.turn.state import Event, NotRecorded, ProviderResponse, RunTools, Send, Turn
from loop_core.values import (
    FINISHED,
    CallKind,
    ChatResponse,
    Message,
    ReasoningPart,
    ResponsePart,
    Stop,
    TextPart,
    ToolCall,
)

MOST_HIDDEN = 1 << 18
"""The most believable tokens without text: twice the largest output cap of any model (128,000)."""
MOST_UNREPORTED = 1 << 15
"""`MOST_HIDDEN` for an answer that reports no reasoning: some servers neither send nor count it separately."""


def most_tokens(response: ChatResponse) -> int:
    """An upper bound of a response's output tokens: one for each byte of its text, and its hidden reasoning."""
    return (MOST_HIDDEN if _may_hide_tokens(response) else MOST_UNREPORTED) + text_bytes(response)


def text_bytes(response: ChatResponse) -> int:
    """The size in bytes of the text that tokens are cut from."""
    return sum(len(text_of(part).encode("utf-8", "replace")) for part in response.parts)


def is_cut(answer: ProviderResponse) -> bool:
    """Whether a budget cut this answer."""
    return answer.judgement.stop.normalized is Stop.MAX_TOKENS or answer.judgement.cap_reached


def ends_whole(response: ChatResponse) -> bool:
    """Whether the stop reason of an answer says that it is complete."""
    return response.stop_reason.normalized in FINISHED


def _may_hide_tokens(response: ChatResponse) -> bool:
    """Whether an answer may have tokens without text: reported reasoning, or a cut that reasoning may have caused."""
    usage = response.usage
    counted = response.other_choices or (usage is not None and usage.reasoning_tokens)
    return not ends_whole(response) or bool(counted) or any(
        not isinstance(part, TextPart) and not (isinstance(part, ToolCall) and part.kind is not CallKind.SERVER)
        for part in response.parts)


def impossible_count(response: ChatResponse) -> int | None:
    """The provider's count of output tokens if it is impossible; None if it is possible."""
    claimed = response.usage.output_tokens if response.usage is not None else None
    if claimed is None or 0 <= claimed <= MOST_UNREPORTED or MOST_UNREPORTED < claimed <= most_tokens(response):
        return None  # the first bound spares the bytes of the text, nearly always
    return claimed


def text_of(part: ResponsePart | None) -> str:
    """The text of a part that tokens are cut from; calls that the provider ran and opaque blocks are never cut."""
    if type(part) is TextPart or type(part) is ReasoningPart:
        return part.text
    if type(part) is ToolCall and part.kind is not CallKind.SERVER:
        return part.arguments or ""
    return ""


# -- Recorded answers under a bound on tokens ------------------------------------------------------------------------
# A loop asks for no more tokens than are left of its bound. Where an operator sets one, a larger recorded answer was an
# answer to another request: without this, a bound would seem to be enough although it cuts the last answer.


class BoundedSource(NamedTuple):
    """A recorded turn under a bound on tokens that the operator set."""

    recorded: RecordedSource
    exchanges: Sequence[Exchange]

    def respond(self, send: Send, turn: Turn) -> Event:
        """The recorded answer, if the bound has room, or a run's first one if it was cut anyway."""
        event, room = self.recorded.respond(send, turn), turn.room
        if not isinstance(event, ProviderResponse) or room is None or event.live:
            return event
        if turn.spend.requests < 2:
            if is_cut(event):
                return event
            room = max(room, send.max_tokens or 0)  # never less than the format takes
        tokens = tokens_under_cap(event, self.exchanges)
        if tokens is None or tokens <= room:
            return event
        allowed = "1 token" if room == 1 else f"{room:,} tokens"
        return NotRecorded(f"This loop asks for at most {allowed} here, and the recorded answer has {tokens:,}.")

    def run_tools(self, effect: RunTools, turn: Turn) -> Event:
        """The recorded results."""
        return self.recorded.run_tools(effect, turn)

    def follow_up(self, turn: Turn) -> tuple[Message, ...]:
        """No messages: a recording has none."""
        return self.recorded.follow_up(turn)


def tokens_under_cap(answer: ProviderResponse, exchanges: Sequence[Exchange]) -> int | None:
    """The tokens that a request must ask for to get a recorded answer, without reasoning; None if that is not known."""
    usage = answer.response.usage
    tokens = None if usage is None or impossible_count(answer.response) is not None else (
        usage.output_tokens if usage.visible_tokens is None else usage.visible_tokens)
    request = exchanges[answer.number].request if answer.number is not None else None
    if tokens is None or request is None or request.max_tokens is None:
        return tokens
    return min(tokens, request.max_tokens)
