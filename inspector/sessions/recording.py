"""The content of recordings: exchanges, their conversations and turns, and the parts that could not be read.

These values do not depend on our machine: a `TurnPlace` says what the recorded agent did. The module opens no file.
"""

# Annotations are not postponed: of a named tuple each would be compiled from text at every start.
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from inspector.sessions.intake import DAMAGED, Room
from inspector.sessions.traffic import loads
from loop_core.values import EMPTY, ChatResponse, Evidence, Request, ToolResultPart, TransportEnd
from loop_core.wire.failures import REDIRECTS
from loop_core.wire.profiles import Profile

if TYPE_CHECKING:
    from inspector.sessions.stored_rows import StoredBody


class TurnPlace(StrEnum):
    """The place of an exchange within its turn."""

    REQUEST = "request"
    """The first request of a turn: a new user message."""
    CONTINUATION = "continuation"
    """The cut text is sent back to be continued."""
    REPAIR = "repair"
    """A cut or malformed tool call is asked for again."""
    TOOL_RESULT = "tool_result"
    """The results of tool calls are sent back."""
    RESUME = "resume"
    """A paused response is taken up again: echoed, polled, or by its token."""
    NUDGE = "nudge"
    """The same request after an answer without any content, with a message that says so."""
    RETRY = "retry"
    """The same request again, after an error or an interruption."""


class Chunk(NamedTuple):
    """A piece of a response as it arrived: `ms` milliseconds after the request, the body had arrived up to byte
    `end`."""

    end: int
    ms: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Exchange:
    """One request and its response, decoded, without credentials."""

    path: str
    entry: int
    """Its number among all entries of the file, from 0, skipped ones included."""
    api: str
    url: str
    profile: Profile
    profile_evidence: tuple[Evidence, ...]
    request: Request | None
    """None if the recording holds the response alone."""
    stored_request: Any | None
    """The request's JSON, or its bytes if they are few: they take a quarter of the room (`request_json`)."""
    response: ChatResponse
    content: "bytes | StoredBody"
    """The bytes of `body`, or their place in a large file."""
    headers: tuple[tuple[str, str], ...] = ()
    request_headers: tuple[tuple[str, str], ...] = ()
    recorded: bool = True
    """False if the body was not recorded: the response then says so (`detail` not_recorded)."""
    started: str | None = None
    duration_ms: float | None = None
    chunks: tuple[Chunk, ...] = ()
    """When the pieces of the body arrived; empty if that is not recorded."""
    first_byte_ms: float | None = None
    """Milliseconds until the first byte of the body, if the recorder states only that and not the time of each
    piece."""
    recorder: str | None = None
    """The agent whose rows `body` consists of; None if `body` is the provider's bytes."""
    lines: tuple[int, ...] = ()
    """The line numbers of those rows, from 1."""
    again: bool = False
    """Whether the recorder says that it repeats the failed request before; the loop saw one request."""
    messages: tuple[int, ...] = ()
    """The indices of the WebSocket messages in `body`; empty for HTTP."""
    cut_after: bool = False
    """Whether the recording is cut right after it, so that the loop's next act is unknown."""
    recorded_place: TurnPlace | None = None
    """The place that the recorder states for the request; None if it states none."""
    simulated: bool = False
    """Whether the answer was made from a table of dialects and no provider was asked."""
    refusals: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    """Id of a call that the recorder says did not run -> why."""
    session: str = ""
    """The name of its session, if the file has several."""

    @property
    def request_json(self) -> Any | None:
        """The request's JSON, without credentials; None if the recording holds the response alone."""
        return loads(self.stored_request) if isinstance(self.stored_request, bytes) else self.stored_request

    @property
    def body(self) -> bytes:
        """The decoded response body, with credentials masked byte for byte.

        Raises:
            FileChangedError: the body is read from its file, which has changed.
        """
        return self.content if isinstance(self.content, bytes) else self.content.read()

    @property
    def size(self) -> int:
        """The number of bytes of the body."""
        return len(self.content) if isinstance(self.content, bytes) else self.content.size

    @property
    def model(self) -> str | None:
        """The model that answered, else the requested one; None if neither is named."""
        return self.response.model or (self.request.model if self.request else None)


NOT_READ = ": not read yet"
"""The end of the text about an exchange in a format that is known but not read."""


def entry_word(format_name: str, many: bool = False) -> str:
    """The name for the parts of a file, used so that their numbers are not taken for those of turns."""
    word = "HAR entr" if format_name == "har" else "entr"
    return f"{word}ies" if many else f"{word}y"


class Skipped(NamedTuple):
    """An entry that was not decoded, and the reason."""

    entry: int
    why: str

    @property
    def unread_format(self) -> str:
        """The name of the unsupported format of a model's answer; empty for any other entry."""
        return self.why.removesuffix(NOT_READ) if self.why.endswith(NOT_READ) else ""


BELOW = " › "
"""The separator between the names of a session and of its child."""


def below_file(name: str) -> str:
    """The session name of a subagent whose rows are in the file of the agent that started it."""
    return f"{BELOW.lstrip()}{name}"


def is_below_file(session: str) -> bool:
    """Whether `below_file` made the name of the session."""
    return session.startswith(BELOW.lstrip())


class SessionAbout(NamedTuple):
    """The description in a session file."""

    title: str = ""
    story: str = ""
    provenance: str = ""
    end_state: str = ""
    id: str = ""
    """The id by which the files of other sessions refer to it."""
    parent: str = ""
    """The id of the session that began it or of which it is a fork."""


class Act(NamedTuple):
    """An act of the operator while the session was recorded: limits, a policy, a note, a cancel."""

    kind: str
    value: Any
    entry: int | None = None
    """The exchange it belongs to; None if it belongs to the session."""
    at: str | None = None


class ToolAnswer(NamedTuple):
    """A recorded tool result, and the request that carried it."""

    entry: int | None
    result: ToolResultPart
    at: str | None = None


@dataclass(frozen=True, slots=True)
class Input:
    """One input (file, folder or standard input), and the result of reading it."""

    path: str
    format: str
    responses: int
    skipped: tuple[Skipped, ...] = ()
    notices: tuple[str, ...] = ()
    error: str | None = None
    """One line about an unreadable or damaged input, else None. What was read before the damage is kept."""
    about: SessionAbout | None = None
    acts: tuple[Act, ...] = ()
    answers: tuple[ToolAnswer, ...] = ()
    masked: Counter[str] = field(default_factory=Counter)
    """Kind of credential -> how many were masked."""


@dataclass(frozen=True, slots=True)
class Link:
    """An exchange's place in its turn, and the evidence for it."""

    index: int
    """The index of the exchange in `Recording.exchanges`."""
    place: TurnPlace
    ordinal: int
    """Its number among the links of that place in the turn, from 1."""
    why: str
    ambiguous: tuple[int, ...] = ()
    """Indices of exchanges that could each be its parent. It then opens a turn of its own; nothing is guessed."""
    parent: int | None = None
    """The exchange that it follows; None if it follows none that was recorded."""
    gap: bool = False
    """Whether exchanges between its parent and itself were not recorded."""


class TurnRecord(NamedTuple):
    """The recorded agent's actions for one user message."""

    id: str
    conversation: str
    links: tuple[Link, ...]
    user_text: str
    live_run: str | None = None
    """The name of the live run whose answers end it; None if all of it was recorded."""
    remainder: tuple[Link, ...] = ()
    """The recorded exchanges of the turn after the point at which that live run began."""


class Conversation(NamedTuple):
    """Turns that share a history."""

    id: str
    turns: tuple[TurnRecord, ...]


class Recording(NamedTuple):
    """The result of one call: the traffic of one or more files."""

    inputs: tuple[Input, ...]
    exchanges: tuple[Exchange, ...]
    turns: tuple[TurnRecord, ...]
    """The turns of all conversations, one conversation after the other."""

    @property
    def conversations(self) -> tuple[Conversation, ...]:
        """The conversations, in order."""
        return tuple(Conversation(name, tuple(turns)) for name, turns in groupby(
            self.turns, key=lambda turn: turn.conversation))


def common_beginning(before: Sequence[Any], after: Sequence[Any], same: Callable[[Any, Any], bool] = is_) -> int:
    """How many elements at the beginning of two sequences are the same; without `same`, the same objects."""
    changed = (number for number, pair in enumerate(zip(before, after, strict=False)) if not same(*pair))
    return next(changed, min(len(before), len(after)))


# -- The result of an importer ---------------------------------------------------------------------------------------
# Exchanges as bytes and text, before anything is decoded, and the interface itself. An importer knows one file format
# and no wire format. What it cannot read is a `Skipped`, a notice, or the one `error`.

Headers = list[tuple[str, str]]
ODD = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError)
"""The errors that a value of an unexpected type can raise. Importers catch them around each row or entry, so that only
this one is lost, with a notice."""


def unusable(why: Exception) -> str:
    """The notice about a row that raised one of the `ODD` errors."""
    return f"holds a value of an unexpected type ({type(why).__name__})"


class Options(NamedTuple):
    """The caller's options for reading inputs."""

    api: str | None = None
    profile: str | None = None
    room: Room | None = None
    """How much may still be unpacked; None: as much as the bound allows for one body."""
    signed: bool = True
    """Whether the tokens are kept that go back with reasoning: only a further request needs them."""
    growth: "Callable[[Any, Any], FileReading] | None" = None
    """Reads the records of a followed transcript in place of its reader (`following.RecordGrowth`)."""


@dataclass(slots=True, eq=False, repr=False)
class RawExchange:
    """One exchange as stored in a file, credentials included; members without a description are those of `Exchange`."""

    entry: int
    url: str = ""
    method: str = "POST"
    request_headers: Headers = field(default_factory=list)
    request_text: str | None = None
    """The request body; None if it was not recorded."""
    status: int | None = None
    headers: Headers = field(default_factory=list)
    body: bytes = b""
    recorded: bool = True
    """Whether the response body is in the file."""
    started: str | None = None
    duration_ms: float | None = None
    first_byte_ms: float | None = None
    api: str | None = None
    """The API, if the file itself names it."""
    profile: str | None = None
    end: TransportEnd = TransportEnd.EOF
    problem: str = ""
    """The problem of the connection, in the recorder's words; empty if there was none."""
    unreadable: str = ""
    """Why the recorded body cannot be unpacked; empty if it can, or if there is none."""
    chunks: tuple[Chunk, ...] = ()
    again: bool = False
    recorded_place: TurnPlace | None = None
    simulated: bool = False
    messages: tuple[int, ...] = ()
    cut_after: bool = False
    clean: bool = False
    """Whether the importer has checked that the texts contain nothing that `redact` would mask."""

    def without_body(self, why: str) -> Self:
        """The same exchange as one that has no body, because what is recorded of it cannot be unpacked."""
        self.body, self.recorded, self.unreadable = b"", False, why
        return self

    def after_failed_unpack(self, why: str) -> Self | str:
        """This exchange without its body if the body is damaged; or the reason to skip it: the body is too large."""
        return self.without_body(why) if why == DAMAGED else why


@dataclass(slots=True, eq=False, repr=False)
class FileReading:
    """The result of one importer for one file."""

    raws: list[RawExchange] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    """The exchanges of a transcript, whose rows no wire format can decode."""
    skipped: list[Skipped] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    error: str | None = None
    """The error, without the file's name: its place, and what was expected; None if there is none."""
    about: SessionAbout | None = None
    acts: list[Act] = field(default_factory=list)
    answers: list[ToolAnswer] = field(default_factory=list)
    masked: Counter[str] = field(default_factory=Counter)
    """Kind of credential -> how many the importer itself masked."""

    def add(self, entry: int, found: RawExchange | str) -> None:
        """Adds the exchange of an entry, or the reason why it has none."""
        if isinstance(found, str):
            self.skipped.append(Skipped(entry, found))
        else:
            self.raws.append(found)


def says_enough(status: int | None) -> bool:
    """Whether a response without a body is complete: an error, or a redirect."""
    return status is not None and (status >= 400 or status in REDIRECTS)


def cut_behind(raws: Sequence[RawExchange]) -> None:
    """Marks the last exchange of a cut recording, if the cut is not within the exchange itself."""
    if raws and raws[-1].end is not TransportEnd.CUT:
        raws[-1].cut_after = True


class UnreadableError(Exception):
    """An importer cannot read the file at all; the text is one line, without the file's name."""


class Importer(Protocol):
    """The interface of a file format's module."""

    def sniff(self, head: bytes, path: str) -> int:
        """The certainty, from the first 64 KB, that it can read this file: 0 not at all, 100 beyond doubt."""

    def read(self, data: bytes, path: str, options: Options) -> FileReading:
        """Reads the exchanges of a whole file.

        Raises:
            UnreadableError: it is not of this format after all, or damaged from the start.
        """

    def reader(self, path: str, options: Options, head: bytes) -> Any:
        """For a format that grows, in place of `read`: the `TranscriptReader` of a file that begins with `head`.

        Raises:
            UnreadableError: as `read`.
        """
