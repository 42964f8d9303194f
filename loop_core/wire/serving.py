"""Describes how the scripted provider plays a server of a format: its stop words at the end of an answer, and their
places in its frames.

A format's package holds this description in its module `serving`, also for a small format of the same servers
(`Format.played_in`). It is loaded only to write a dialect or to play a server, not to read an answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from loop_core.values import ProviderError
from loop_core.wire.body import mapping_of, token_count
from loop_core.wire.demands import Body, Demands, JSONShape

Event = dict[str, Any]


class Moment(StrEnum):
    """The way in which an answer really ended."""

    ENDED = "ended"
    """All of it came, and it asks for nothing."""
    CALLED = "called"
    """All of it came, with its calls."""
    CUT = "cut"
    """The budget was spent in text or thinking, before any call."""
    CUT_CALL = "cut_call"
    """The budget was spent inside the first call."""
    CUT_BATCH = "cut_batch"
    """The budget was spent inside a later call; those before it are complete."""
    CUT_AFTER = "cut_after"
    """The budget was spent outside of any call, after complete ones."""
    FULL = "full"
    """The context is full."""
    FILTERED = "filtered"
    PAUSED = "paused"
    """The provider stopped on its own account and can go on."""
    MALFORMED = "malformed"
    """The model wrote a call that is not a call."""
    FAILED = "failed"
    """The server failed after it had begun to answer."""
    BROKEN = "broken"
    """The connection was lost before the end."""


class CutCallForm(StrEnum):
    """The part of a cut call that a server sends."""

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


@dataclass(frozen=True, slots=True)
class Spelling:
    """The words and fields that a server sends when an answer ends in one way."""

    raw: str | None
    """The native stop word; None if none is sent."""
    native: Mapping[str, str] = field(default_factory=dict)
    """Other words about the end."""
    error: ProviderError | None = None
    status: int = 200
    call_form: CutCallForm | None = None
    """Where the call is carried otherwise than at the dialect's other moments."""
    token: str | None = None
    """A continuation token."""
    whole: bool = False
    """Only a whole body says it: the answer is still being made, and is fetched later."""


def say(raw: str | None, call_form: CutCallForm | None = None, **native: str) -> Spelling:
    """The spelling of an ending by a stop word, with the form of a cut call under it, and further fields."""
    return Spelling(raw, native, call_form=call_form)


def fails(raw: str | None, message: str, type_: str | None = None, code: str | None = None,
          retryable: bool = True) -> Spelling:
    """The spelling of a failure: an error in the middle of an answer."""
    return Spelling(raw, error=ProviderError(message, type_, code, retryable))


def budget_words(word: str, full: str | None = None) -> dict[Moment, Spelling]:
    """The spellings of all cut answers: one word for a spent budget, whether it cut text or a call, and one for a full
    context."""
    says = {moment: say(word) for moment in (Moment.CUT, Moment.CUT_CALL, Moment.CUT_AFTER)}
    return says if full is None else {**says, Moment.FULL: say(full)}


_USUAL: Mapping[str, str] = {
    "context_full": "it has no word for a full context",
    "filtered": "it has no word for a filter",
    "paused": "it has no word for a pause",
    "malformed_call whole": "arguments are an object",
    "no_call": "it has no word of its own for calls",
    "fallback": "it has no block that reports it",
    "commentary": "its messages have no phase",
    "empty_choices": "it has no choices",
    "done_without_reason": "the end has no mark of its own",
    "done_without_reason whole": "a whole body has no mark",
    "wandering_index": "the later pieces of a call carry no id",
    "fresh_ids": "the later pieces of a call carry no id",
}
"""A fault that has no meaning in several formats -> why, where nothing else is to be said."""


def usual_reasons(*faults: str) -> dict[str, str]:
    """Why each of these faults has no meaning in a format, as in others."""
    return {fault: _USUAL[fault] for fault in faults}


WHOLE_CALLS: Mapping[str, str] = dict.fromkeys(("wandering_index", "fresh_ids"), "a call comes whole")
"""Faults in the later pieces of a call that have no meaning in a format without such pieces -> why."""
ONLY_TEXT: Mapping[str, str] = {
    **dict.fromkeys(("malformed_call", "refused_repair", "leaked_call", "no_call", "no_index", "one_index",
                     "wandering_index", "fresh_ids"), "it has no calls"),
    **usual_reasons("paused", "fallback"),
    "commentary": "a completion has no phase",
}
"""The faults that have no meaning in a format whose answers are text alone -> why."""

Says = Mapping[Moment, Spelling | None]
"""The spelling of each ending; None if it is unknown."""


class CallFraming(StrEnum):
    """The form of a call in the frames of a stream."""

    PIECES = "pieces"
    """Pieces of a string, or an object; nothing but the end of the answer ends it."""
    ITEMS = "items"
    """An item with a status of its own."""
    BLOCKS = "blocks"
    """A block that is ended by itself; a whole body closes the last one by the reason alone."""


class OwnServer(NamedTuple):
    """The provider's own server, as a dialect."""

    profile: str
    model: str
    source: str
    title: str = ""
    whole: str = ""
    """The source of what a whole body does to a cut call, where its arguments are an object: members are missing."""


class StopPlace(NamedTuple):
    """Where the stop reason is in a frame."""

    holders: Callable[[Event], Sequence[Event]]
    """The objects that may hold it, in a body or an event."""
    keys: tuple[str, ...]
    null: bool = False
    """Whether an absent stop reason is null; else it is left out."""
    events: frozenset[str] = frozenset()
    """Events that are themselves the reason: without it they do not come."""


def itself(value: Event) -> Sequence[Event]:
    """Finds the stop reason in the value itself."""
    return (value,)


def in_delta(value: Event) -> Sequence[Event]:
    """Finds the stop reason in the delta of an event, or in a whole body."""
    return (value.get("delta", value),)


Indexes = Callable[[Event], Sequence[tuple[Event, str]]]
"""An event -> the objects in it that hold the index of their part, and the key that holds it."""


def index_under(key: str) -> Indexes:
    """Events that have the index of their part themselves, under this key."""
    return lambda value: [(value, key)] if key in value else []


def text_in(event: str, *path: str) -> Callable[[str | None, Event], tuple[Event, str]]:
    """Events of this name have their text at this path."""

    def find(name: str | None, value: Event) -> tuple[Event, str]:
        for key in path[:-1] if name == event else ():
            value = value[key]
        return (value, path[-1]) if name == event else ({}, "")

    return find


class RequestRefusal(NamedTuple):
    """The HTTP error that answers an invalid request."""

    status: int
    message: str
    kind: str
    """The type, as the format's server names it."""
    code: str | None = None
    param: str | None = None
    """The member that is at fault."""


OPENAI_ERRORS: Mapping[int, str] = {
    400: "invalid_request_error", 404: "invalid_request_error", 429: "requests", 500: "server_error",
    503: "server_error", 529: "server_error",
}
"""HTTP status -> the type of an error, as OpenAI names it: also of a model and of a path that are not there; 429 names
what there is too much of."""
OPENAI_CODES: Mapping[int, str] = {429: "rate_limit_exceeded"}
"""HTTP status -> the code that goes with every error of it."""
GOOGLE_ERRORS: Mapping[int, str] = {
    400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE",
    529: "UNAVAILABLE",
}
"""The same of Google's servers (google.rpc.Code)."""


def openai_error(refused: RequestRefusal) -> Event:
    """The body of an OpenAI error."""
    code = refused.code or OPENAI_CODES.get(refused.status)
    return {"error": {"message": refused.message, "type": refused.kind, "param": refused.param, "code": code}}


def google_error(refused: RequestRefusal) -> Event:
    """The body of a Google error (google.rpc.Status)."""
    error: Event = {"code": refused.status, "message": refused.message, "status": refused.kind}
    if refused.param is not None:
        violation = {"field": refused.param, "description": refused.message}
        error["details"] = [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [violation]}]
    return {"error": error}


MADE, DATE = 1_700_000_000, "2023-11-14T22:13:20Z"
"""When every scripted answer was made, in both spellings: the encoders have no clock and write zeros."""


def nanoseconds(counts: Any, read: str, written: str) -> tuple[int, int, int]:
    """What loading a model took, reading so many tokens and writing so many, which are the members of these names.

    The same request always gets the same bytes.
    """
    tokens = [token_count(mapping_of(counts).get(name)) or 0 for name in (read, written)]
    return 2_000_000, 250_000 * tokens[0], 20_000_000 * tokens[1]


class RequestId(NamedTuple):
    """The header in which a provider sends the id of a request."""

    header: str
    spell: Callable[[str], str]
    """32 hexadecimal digits -> the id."""
    in_errors: bool = False
    """The body of an error holds it too, as `request_id`."""


class TokenCount(NamedTuple):
    """The endpoint that counts the tokens of a request, and the form of its answer."""

    path: re.Pattern[str]
    answer: Callable[[int], Event]
    inner: Callable[[Body], Any] = lambda body: body
    """The body -> the request that is counted."""
    optional: frozenset[str] = frozenset()
    """The members that a request may lack if only its tokens are counted."""


PeerWord = str | tuple[str, str]
"""The words of other libraries for a native word, or without and with calls; empty if a library does not support this
provider, or its word is unknown."""
PeerWords = tuple[PeerWord, ...]
"""One for each library, in the order of `inspector.provider.dialects.PEERS`."""
PEER_ABSENT = "(absent)"
"""The key of a stream that ended without a word."""
PEER_FAILURE = "(error)"
"""The key of an error that comes in the middle of an answer."""
PEER_STOP: PeerWords = ("stop", "stop", "stop", "stop")
PEER_CALL: PeerWords = ("tool_calls", "tool-calls", "tool_call", "toolUse")
PEER_LENGTH: PeerWords = ("length", "length", "length", "length")
PEER_FILTER: PeerWords = ("content_filter", "content-filter", "content_filter", "error")
PEER_FAILED: PeerWords = ("raises", "error", "raises", "error")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Serving:
    """The facts of a format that only a played server needs."""

    own: OwnServer
    base: str
    """The path behind the address in the base URL of the official SDK."""
    client: str
    """Python that makes the client; `{base}` is the base URL."""
    says: Mapping[Moment, Spelling]
    """The words for each ending; an ending that is not here cannot be expressed. A cut batch is spelled like its first
    call."""
    text: Callable[[str | None, Event], tuple[Event, str]]
    """The object that holds the text of a delta, and under which key; it may raise what a lookup raises."""
    stop_place: StopPlace
    call_form: CutCallForm = CutCallForm.PREFIX
    """The part of a cut call that is sent."""
    calls: CallFraming = CallFraming.PIECES
    answer_id: str = ""
    """How the id of an answer is spelled; empty if it has none."""
    call_id: str = ""
    """The same of a call."""
    thought_id: str = ""
    """The same of a thought."""
    names_model: bool = True
    """An answer names its model."""
    calls_last: bool = False
    """A whole body holds its calls behind its text."""
    counts_early: bool = False
    """Whether a failed or lost stream has already reported the tokens of its request."""
    counts_all: bool = False
    """Usage always counts thinking and the cache apart, were it none."""
    ends_without: bool = False
    """A stream that is lost has an end, and no word why."""
    indexes: Indexes = lambda value: ()
    wrapped: str = ""
    """The frame that holds an event of a stream as base64 under `bytes`; empty where events stand by themselves."""
    frame_end: bytes = b"\n\n"
    """What ends a server-sent event."""
    array_unless: str = ""
    """A part of the query without which a stream comes as the elements of one array."""
    stops: tuple[str, ...] = ()
    """Where in a request the strings stand that end an answer."""
    stop_string_word: str = ""
    """The word for an answer that such a string ended; empty if it is that of any end."""
    stopped_field: str = ""
    """The field beside it that repeats the string."""
    unknown: str = "{}"
    """The spelling of an unknown stop word."""
    errors: Mapping[int, str] = field(default_factory=lambda: OPENAI_ERRORS)
    """HTTP status -> the type of an error."""
    error_body: Callable[[RequestRefusal], Event] = openai_error
    """The body of an error."""
    error_header: str = ""
    """The header that names the error's type too."""
    poll: str = ""
    """A pattern of the path under which a response is fetched that is still being made; `id` is its id."""
    cannot: Mapping[str, str] = field(default_factory=dict)
    """Fault (or fault and `stream` or `whole`) that has no meaning -> why."""
    ends: Mapping[str, str] = field(default_factory=dict)
    """The same -> the end state that our own loop reaches, where that is not the usual one."""
    # -- requests -----------------------------------------------------------------------------------------------
    demands: Demands = field(default_factory=Demands)
    demands_of: tuple[tuple[re.Pattern[str], Demands], ...] = ()
    """What the server demands where a path that fits asks for another maker's model; the first that fits."""
    json_shape: Callable[[Body], JSONShape | None] = lambda value: None
    """A function from the other fields of a request (`Request.extra`) to the JSON that the answer's text must be."""
    follows: Callable[[Body], str | None] = lambda value: None
    """The answer that a request goes on from, where the server keeps it under another name than `previous_id`."""
    count: TokenCount | None = None
    near: re.Pattern[str] | None = None
    """Found in paths of the provider where nothing is served: they get its errors. Without one, those of the first
    format."""
    client_header: str = ""
    """A header that only this provider's clients send, for paths that several providers have."""
    # -- what encoders leave out --------------------------------------------------------------------------------
    request_id: RequestId | None = None
    set_times: Callable[[Event], bool] | None = None
    """Sets the times of a body or an event, and says whether there are any; None if the format has none."""
    peers: Mapping[str, PeerWords] = field(default_factory=dict)
    """Native word -> what other libraries say of it."""
