"""How a server says that an answer ended: the shape of it, and the words of the six wire formats.

Data only. What single servers say otherwise is in `table`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from inspector.dialects.scenarios import Moment
from loop_core.frozen import field, frozen
from loop_core.values import ProviderError
from loop_core.wire.servers import CHAT, CONVERSE, GEMINI, MESSAGES, OLLAMA, RESPONSES


class Carried(StrEnum):
    """What a server sends of a call in which the answer ended."""

    PREFIX = "prefix"
    """Its characters, as far as they came; where calls are blocks or items, the block is ended."""
    OPEN = "open"
    """The same, and the end of the block never comes."""
    DROPPED = "dropped"
    """Nothing."""
    EMPTY_OBJECT = "empty_object"
    """The call with the arguments `{}`."""
    MEMBERS = "members"
    """An object of the members that were complete."""
    MARKUP = "markup"
    """The model's own text, as text of the answer."""
    VALUES = "values"
    """Its values one by one, the last one open (Vertex AI `partialArgs`)."""


@frozen
class Spelling:
    """What is sent at one moment."""

    raw: str | None
    """The native stop word; None where none is sent."""
    native: Mapping[str, str] = field(default_factory=dict)
    """Other words about the end."""
    error: ProviderError | None = None
    status: int = 200
    carried: Carried | None = None
    """Where the call is carried otherwise than at the dialect's other moments."""
    token: str | None = None
    """A continuation token."""
    whole: bool = False
    """Only a whole body says it."""


def say(raw: str | None, carried: Carried | None = None, **native: str) -> Spelling:
    """A stop word, how the call is carried under it, and other words beside it."""
    return Spelling(raw, native, carried=carried)


def fails(raw: str | None, message: str, type_: str | None = None, code: str | None = None,
          retryable: bool = True) -> Spelling:
    """An error that comes after the answer was begun."""
    return Spelling(raw, error=ProviderError(message, type_, code, retryable))


def spent(word: str, full: str | None = None) -> dict[Moment, Spelling]:
    """One word for every budget that was spent, and one for a full context."""
    says = {moment: say(word) for moment in (Moment.CUT, Moment.CUT_CALL, Moment.CUT_AFTER)}
    return says if full is None else {**says, Moment.FULL: say(full)}


Says = Mapping[Moment, Spelling | None]
"""What is said at each moment; None where nothing is known of how."""

FORMATS: Mapping[str, Mapping[Moment, Spelling]] = {
    CHAT: {
        Moment.ENDED: say("stop"),
        Moment.CALLED: say("tool_calls"),
        **spent("length", full="length"),
        Moment.FILTERED: say("content_filter"),
        Moment.MALFORMED: say("tool_calls"),
        Moment.FAILED: fails(None, "The server had an error while processing the request.", "server_error"),
        Moment.BROKEN: say(None),
    },
    RESPONSES: {
        Moment.ENDED: say("completed"),
        Moment.CALLED: say("completed"),
        **spent("incomplete:max_output_tokens", full="incomplete:max_output_tokens"),
        Moment.FILTERED: say("incomplete:content_filter"),
        Moment.PAUSED: Spelling("in_progress", whole=True),
        Moment.MALFORMED: say("completed"),
        Moment.FAILED: fails("failed", "The server had an error while processing the request.", code="server_error"),
        Moment.BROKEN: say(None),
    },
    MESSAGES: {
        Moment.ENDED: say("end_turn"),
        Moment.CALLED: say("tool_use"),
        **spent("max_tokens", full="model_context_window_exceeded"),
        Moment.FILTERED: say("refusal"),
        Moment.PAUSED: say("pause_turn"),
        Moment.MALFORMED: say("tool_use"),
        Moment.FAILED: fails(None, "Overloaded", "overloaded_error"),
        Moment.BROKEN: say(None, Carried.OPEN),
    },
    GEMINI: {
        Moment.ENDED: say("STOP"),
        Moment.CALLED: say("STOP"),
        **spent("MAX_TOKENS"),
        Moment.FILTERED: say("SAFETY"),
        Moment.PAUSED: Spelling("CONTINUATION", token="Y29udGludWU="),  # noqa: S106  a place in an answer, no secret
        Moment.MALFORMED: say("MALFORMED_FUNCTION_CALL", Carried.DROPPED, finishMessage="Malformed function call"),
        Moment.FAILED: fails(None, "The model is overloaded.", "UNAVAILABLE", "503"),
        Moment.BROKEN: say(None),
    },
    CONVERSE: {
        Moment.ENDED: say("end_turn"),
        Moment.CALLED: say("tool_use"),
        **spent("max_tokens", full="model_context_window_exceeded"),
        Moment.FILTERED: say("guardrail_intervened"),
        Moment.MALFORMED: say("malformed_tool_use"),
        Moment.FAILED: fails(None, "The model stream failed.", "modelStreamErrorException"),
        Moment.BROKEN: say(None, Carried.OPEN),
    },
    OLLAMA: {
        Moment.ENDED: say("stop"),
        Moment.CALLED: say("stop"),
        **spent("length", full="length"),
        Moment.FAILED: fails(None, "an error was encountered while running the model", retryable=False),
        Moment.BROKEN: say(None),
    },
}
"""By wire format; a moment that is not here cannot be told in it. A batch is cut as its first call is."""

CARRIED: Mapping[str, Carried] = {
    CHAT: Carried.PREFIX, RESPONSES: Carried.PREFIX, MESSAGES: Carried.PREFIX,
    GEMINI: Carried.DROPPED, CONVERSE: Carried.OPEN, OLLAMA: Carried.DROPPED,
}
"""What the format's own server sends of a cut call: Bedrock may never end its block (goose#11838); Gemini and Ollama
send calls whole or not at all."""


def spelling(says: Says, api: str, moment: Moment, stream: bool = True) -> Spelling | None:
    """What is said at this moment; None where there is no way to say it.

    How a stream breaks off or fails says nothing of a whole body, which then does not come at all.
    """
    for table in (says, FORMATS[api]):
        if table is not says and not stream and moment in (Moment.FAILED, Moment.BROKEN):
            return None
        for name in (moment, Moment.CUT_CALL) if moment is Moment.CUT_BATCH else (moment,):
            if name in table:
                return table[name]
    return None
