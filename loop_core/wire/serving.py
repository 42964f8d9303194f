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
    """The whole answer arrived, without calls."""
    CALLED = "called"
    """The whole answer arrived, with its calls."""
    CUT = "cut"
    """The output budget was spent in text or thinking, before any call."""
    CUT_CALL = "cut_call"
    """The output budget was spent inside the first call."""
    CUT_BATCH = "cut_batch"
    """The output budget was spent inside a later call; the calls before it are complete."""
    CUT_AFTER = "cut_after"
    """The output budget was spent outside of any call, after complete calls."""
    FULL = "full"
    """The context window was full."""
    FILTERED = "filtered"
    PAUSED = "paused"
    """The provider paused the answer for a reason of its own and can resume it."""
    MALFORMED = "malformed"
    """The model wrote a call that cannot be read as a call."""
    FAILED = "failed"
    """The server reported a failure after it had begun to answer."""
    BROKEN = "broken"
    """The connection was lost before the end of the answer."""


class CutCallForm(StrEnum):
    """The part of a cut call that a server sends."""

    PREFIX = "prefix"
    """The characters of the call as far as they arrived. In a format with blocks or items, the block is closed."""
    OPEN = "open"
    """The characters of the call as far as they arrived, in a block that is never closed."""
    DROPPED = "dropped"
    """Nothing of the call."""
    EMPTY_OBJECT = "empty_object"
    """The call with the arguments `{}`."""
    MEMBERS = "members"
    """The call with an object of those arguments that were complete."""
    MARKUP = "markup"
    """The text by which the model itself writes the call, as text of the answer."""
    VALUES = "values"
    """The values of the arguments one by one, the last one incomplete (Vertex AI `partialArgs`)."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """The words and fields that a server sends for one ending of an answer."""

    raw: str | None
    """The native stop word; None if the server sends none."""
    native: Mapping[str, str] = field(default_factory=dict)
    """Name -> value of other fields about the end."""
    error: ProviderError | None = None
    status: int = 200
    call_form: CutCallForm | None = None
    """The form of a cut call in this ending; None if it is the dialect's usual form."""
    token: str | None = None
    """A continuation token; None if the server sends none."""
    whole: bool = False
    """Whether only a whole body can have this ending: the answer is made in the background and fetched later."""


def say(raw: str | None, call_form: CutCallForm | None = None, **native: str) -> Spelling:
    """Returns the spelling of an ending by a stop word, the form of a cut call, and further fields."""
    return Spelling(raw, native, call_form=call_form)


def fails(raw: str | None, message: str, type_: str | None = None, code: str | None = None,
          retryable: bool = True) -> Spelling:
    """The spelling of a failure: an error in the middle of an answer."""
    return Spelling(raw, error=ProviderError(message, type_, code, retryable))


def budget_words(word: str, full: str | None = None) -> dict[Moment, Spelling]:
    """The spellings of cut answers: one word for a spent budget, for text and calls, and one for a full context."""
    says = {moment: say(word) for moment in (Moment.CUT, Moment.CUT_CALL, Moment.CUT_AFTER)}
    return says if full is None else {**says, Moment.FULL: say(full)}


_USUAL_REASONS: Mapping[str, str] = {
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
"""Fault that has no meaning in several formats -> the usual reason why."""


def usual_reasons(*faults: str) -> dict[str, str]:
    """Fault -> the usual reason why it has no meaning in a format."""
    return {fault: _USUAL_REASONS[fault] for fault in faults}


WHOLE_CALLS: Mapping[str, str] = dict.fromkeys(("wandering_index", "fresh_ids"), "a call comes whole")
"""Fault in the later pieces of a call -> why it has no meaning in a format that sends a call in one piece."""
ONLY_TEXT: Mapping[str, str] = {
    **dict.fromkeys(("malformed_call", "refused_repair", "leaked_call", "no_call", "no_index", "one_index",
                     "wandering_index", "fresh_ids"), "it has no calls"),
    **usual_reasons("paused", "fallback"),
    "commentary": "a completion has no phase",
}
"""Fault -> why it has no meaning in a format whose answers hold nothing but text."""

Says = Mapping[Moment, Spelling | None]
"""Ending -> the words and fields that a server sends; None if they are unknown."""


class CallFraming(StrEnum):
    """The form of a call in the frames of a stream."""

    PIECES = "pieces"
    """Arguments arrive as pieces of a string, or as an object. Only the answer's end says that a call is complete."""
    ITEMS = "items"
    """A call is an item with a status that says whether it is complete."""
    BLOCKS = "blocks"
    """A call is a block with an end mark of its own. In a whole body only the stop reason says whether the last block
    is complete."""


class OwnServer(NamedTuple):
    """The provider's own server, as a dialect."""

    profile: str
    model: str
    source: str
    title: str = ""
    whole: str = ""
    """The source for the form of a cut call in a whole body: an object without the incomplete members. Empty if the
    arguments are not an object."""


class StopPlace(NamedTuple):
    """The place of the stop reason in a frame."""

    holders: Callable[[Event], Sequence[Event]]
    """Finds the objects in a body or an event that may hold the stop reason."""
    keys: tuple[str, ...]
    null: bool = False
    """Whether an absent stop reason is written as null; otherwise its member is left out."""
    events: frozenset[str] = frozenset()
    """Names of events that are the stop reason themselves. A stream without a reason lacks them."""


def itself(value: Event) -> Sequence[Event]:
    """Finds the stop reason in the value itself."""
    return (value,)


def in_delta(value: Event) -> Sequence[Event]:
    """Finds the stop reason in the delta of an event, or in a whole body."""
    return (value.get("delta", value),)


Indexes = Callable[[Event], Sequence[tuple[Event, str]]]
"""A function from an event to the objects that hold the index of their part, each with the key of the index."""


def index_under(key: str) -> Indexes:
    """The function for events that hold the index of their part themselves, under this key."""
    return lambda value: [(value, key)] if key in value else []


def text_in(event: str, *path: str) -> Callable[[str | None, Event], tuple[Event, str]]:
    """The function that finds the text of an event of this name: the object that holds the text, and its key."""

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
    """The type of the error, as the format's server names it."""
    code: str | None = None
    param: str | None = None
    """The path of the invalid member; None if no single member is wrong."""


OPENAI_ERRORS: Mapping[int, str] = {
    400: "invalid_request_error", 404: "invalid_request_error", 429: "requests", 500: "server_error",
    503: "server_error", 529: "server_error",
}
"""HTTP status -> the error type that OpenAI sends with it, also for a model or a path that does not exist. For 429 the
type names the exceeded quantity."""
OPENAI_CODES: Mapping[int, str] = {429: "rate_limit_exceeded"}
"""HTTP status -> the code that OpenAI sends with every error of this status."""
GOOGLE_ERRORS: Mapping[int, str] = {
    400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE",
    529: "UNAVAILABLE",
}
"""HTTP status -> the status word that Google's servers send with it (google.rpc.Code)."""


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
"""The time of every scripted answer, in two spellings. The encoders have no clock and write zeros."""


def nanoseconds(counts: Any, read: str, written: str) -> tuple[int, int, int]:
    """The nanoseconds for loading the model, reading the prompt and writing the answer. `read` and `written` name the
    members with the token counts. The same request always gets the same bytes."""
    tokens = [token_count(mapping_of(counts).get(name)) or 0 for name in (read, written)]
    return 2_000_000, 250_000 * tokens[0], 20_000_000 * tokens[1]


class RequestId(NamedTuple):
    """The header in which a provider sends the id of a request."""

    header: str
    spell: Callable[[str], str]
    """Makes an id of 32 hexadecimal digits."""
    in_errors: bool = False
    """Whether the body of an error also holds the id, as `request_id`."""


class TokenCount(NamedTuple):
    """The endpoint that counts the tokens of a request, and the form of its answer."""

    path: re.Pattern[str]
    answer: Callable[[int], Event]
    inner: Callable[[Body], Any] = lambda body: body
    """Finds, in the body of a counting request, the request whose tokens are counted."""
    optional: frozenset[str] = frozenset()
    """The members that a request may lack if only its tokens are counted."""


PeerWord = str | tuple[str, str]
"""The word into which another library translates a native word, or two words: for answers without and with calls. Empty
if the library does not support this provider, or its word is unknown."""
PeerWords = tuple[PeerWord, ...]
"""The words of all libraries, in the order of `inspector.provider.dialects.PEERS`."""
PEER_ABSENT = "(absent)"
"""The key for a stream that ended without a stop word."""
PEER_FAILURE = "(error)"
"""The key for an error in the middle of an answer."""
PEER_STOP: PeerWords = ("stop", "stop", "stop", "stop")
PEER_CALL: PeerWords = ("tool_calls", "tool-calls", "tool_call", "toolUse")
PEER_LENGTH: PeerWords = ("length", "length", "length", "length")
PEER_FILTER: PeerWords = ("content_filter", "content-filter", "content_filter", "error")
PEER_FAILED: PeerWords = ("raises", "error", "raises", "error")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Serving:
    """The facts of a format that only a scripted server needs."""

    own: OwnServer
    base: str
    """The path of the base URL for the official SDK, after scheme and host."""
    client: str
    """The Python code that creates the SDK's client; `{base}` stands for the base URL."""
    says: Mapping[Moment, Spelling]
    """Ending -> the words and fields for it. An ending without a row cannot be expressed. A cut batch uses the row of a
    cut first call."""
    text: Callable[[str | None, Event], tuple[Event, str]]
    """Finds the object that holds a delta's text, and the text's key. It may raise look-up errors."""
    stop_place: StopPlace
    call_form: CutCallForm = CutCallForm.PREFIX
    """The part of a cut call that the server sends."""
    calls: CallFraming = CallFraming.PIECES
    answer_id: str = ""
    """The form of an answer's id, with `{}` for the number; empty if answers have no id."""
    call_id: str = ""
    """The form of a call's id; empty if calls have no id."""
    thought_id: str = ""
    """The form of a thought's id; empty if thoughts have no id."""
    names_model: bool = True
    """Whether an answer names its model."""
    calls_last: bool = False
    """Whether a whole body holds its calls after its text."""
    counts_early: bool = False
    """Whether a failed or lost stream has already reported the tokens of its request."""
    counts_all: bool = False
    """Whether usage always lists thinking and cached tokens separately, even if they are zero."""
    ends_without: bool = False
    """Whether a stream that was lost still has its end mark, without a stop word."""
    indexes: Indexes = lambda value: ()
    wrapped: str = ""
    """The frame that holds an event of a stream as base64 under `bytes`; empty if events are not wrapped."""
    frame_end: bytes = b"\n\n"
    """The bytes that end a server-sent event."""
    array_unless: str = ""
    """A part of the query. Without it, a stream is sent as the elements of one array. Empty if there is none."""
    stops: tuple[str, ...] = ()
    """The path of the member of a request that holds the stop strings; empty if requests have none."""
    stop_string_word: str = ""
    """The stop word of an answer that a stop string ended; empty if it is the usual word of an ended answer."""
    stopped_field: str = ""
    """The field beside the stop word that repeats the stop string; empty if there is none."""
    unknown: str = "{}"
    """The form of an unknown stop word; `{}` stands for the word."""
    errors: Mapping[int, str] = field(default_factory=lambda: OPENAI_ERRORS)
    """HTTP status -> the type of the error."""
    error_body: Callable[[RequestRefusal], Event] = openai_error
    """Makes the body of an error."""
    error_header: str = ""
    """The name of a header that repeats the error's type; empty if there is none."""
    poll: str = ""
    """A pattern of the path under which a client fetches an unfinished response; its group `id` is the response's id.
    Empty if there is no such path."""
    cannot: Mapping[str, str] = field(default_factory=dict)
    """Fault (or a fault with `stream` or `whole`) that has no meaning in this format -> why."""
    ends: Mapping[str, str] = field(default_factory=dict)
    """Fault (or a fault with `stream` or `whole`) -> the state in which the engine's loop ends, if it differs from the
    usual one."""
    # -- requests -----------------------------------------------------------------------------------------------
    demands: Demands = field(default_factory=Demands)
    demands_of: tuple[tuple[re.Pattern[str], Demands], ...] = ()
    """Pattern of a path -> what the server demands there, for models of other makers. The first that fits counts."""
    json_shape: Callable[[Body], JSONShape | None] = lambda value: None
    """Finds, in the other fields of a request (`Request.extra`), the JSON that the answer's text must be; None if any
    text is accepted."""
    count: TokenCount | None = None
    near: re.Pattern[str] | None = None
    """A pattern of this provider's paths that are not served: they get errors in this format. Paths that no format
    claims get errors of the first format."""
    client_header: str = ""
    """The name of a header that only this provider's clients send. It identifies the provider if several have the path.
    Empty if there is none."""
    # -- what encoders leave out --------------------------------------------------------------------------------
    request_id: RequestId | None = None
    set_times: Callable[[Event], bool] | None = None
    """Sets the times in a body or an event, and returns whether it holds any; None if the format has no times."""
    peers: Mapping[str, PeerWords] = field(default_factory=dict)
    """Native word -> the words into which other libraries translate it."""
