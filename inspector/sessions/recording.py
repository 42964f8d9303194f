"""Types for the content of recordings: exchanges, conversations, turns, and the parts that could not be read."""

# Annotations are not postponed: of a named tuple each would be compiled from text at every start.
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from inspector.sessions.intake import DAMAGED, Room, input_name
from inspector.sessions.notices import Notice
from inspector.sessions.traffic import loads
from loop_core.values import EMPTY, ChatResponse, Evidence, Request, ToolResultPart, TransportEnd
from loop_core.wire.format import Profile

if TYPE_CHECKING:
    from inspector.sessions.stored_rows import StoredBody


class TurnPlace(StrEnum):
    """The place of an exchange within its turn."""

    REQUEST = "request"
    """The first request of a turn: a new user message."""
    CONTINUATION = "continuation"
    """The request sends back a cut text to be continued."""
    REPAIR = "repair"
    """The request asks again for a cut or malformed tool call."""
    TOOL_RESULT = "tool_result"
    """The request sends back the results of tool calls."""
    RESUME = "resume"
    """The request resumes a paused response: it sends the response back, polls it, or has its token."""
    NUDGE = "nudge"
    """The request repeats the previous one, whose answer had no content, and adds a message about this."""
    RETRY = "retry"
    """The request repeats the previous one, whose answer failed or was interrupted."""


class Chunk(NamedTuple):
    """The arrival of a piece of a response: `ms` milliseconds after the request, the body had `end` bytes."""

    end: int
    ms: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Exchange:
    """One request and its response, decoded, without credentials."""

    path: str
    entry: int
    """The index of the exchange among all entries of the file, from 0, including skipped ones."""
    api: str
    url: str
    profile: Profile
    profile_evidence: tuple[Evidence, ...]
    request: Request | None
    """The decoded request; None if no request was recorded, or if it is not JSON."""
    stored_request: Any | None
    """The request's JSON, parsed; or as bytes if it is short, which takes a quarter of the memory (`request_json`)."""
    response: ChatResponse
    content: "bytes | StoredBody"
    """The bytes of `body`, or their places in a large file, from which they are read on access."""
    headers: tuple[tuple[str, str], ...] = ()
    request_headers: tuple[tuple[str, str], ...] = ()
    recorded: bool = True
    """Whether the body was recorded; if not, the detail of the response's stop reason says why."""
    started: str | None = None
    duration_ms: float | None = None
    chunks: tuple[Chunk, ...] = ()
    """The pieces of the body with their arrival times; empty if those were not recorded."""
    first_byte_ms: float | None = None
    """Milliseconds until the first byte of the body, if only that was recorded, not the time of each piece."""
    recorder: str | None = None
    """The agent whose rows `body` consists of; None if `body` is the provider's bytes."""
    lines: tuple[int, ...] = ()
    """The line numbers of the rows in `body`, from 1; empty if the rows are not lines."""
    again: bool = False
    """Whether, by the recorder, this exchange repeats the failed request before it; for the loop, the two are one."""
    messages: tuple[int, ...] = ()
    """The indices of the WebSocket messages in `body`; empty for HTTP."""
    cut_after: bool = False
    """Whether the recording is cut right after this exchange, so that the agent's next action is unknown."""
    recorded_place: TurnPlace | None = None
    """The place in the turn that the recorder states for the request; None if the recorder states none."""
    simulated: bool = False
    """Whether this program made the answer from its table of dialects, without any provider."""
    refusals: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    """Id of a call that, according to the recorder, did not run -> the reason."""
    session: str = ""
    """The name of the session of the exchange, if the file has several sessions."""

    @property
    def request_json(self) -> Any | None:
        """The request's JSON, without credentials; None if no request was recorded, or if it is not JSON."""
        return loads(self.stored_request) if isinstance(self.stored_request, bytes) else self.stored_request

    @property
    def body(self) -> bytes:
        """The decoded response body, with credentials masked byte for byte. Raises `FileChangedError` if the body is
        stored in its file and the file has changed."""
        return self.content if isinstance(self.content, bytes) else self.content.read()

    @property
    def named_profile(self) -> str | None:
        """The name of the profile, if the caller or the recording named it; None if it was recognised."""
        return self.profile.name if any(each.rule == "profile.named" for each in self.profile_evidence) else None

    @property
    def size(self) -> int:
        """The number of bytes of the body."""
        return len(self.content) if isinstance(self.content, bytes) else self.response.size

    @property
    def model(self) -> str | None:
        """The model that answered, else the requested one; None if neither is named."""
        return self.response.model or (self.request.model if self.request else None)

    @property
    def cap(self) -> int | None:
        """The output cap of the request; None if it sets none, or if no request was recorded."""
        return self.request.max_tokens if self.request else None


NOT_READ = ": not read yet"
"""The end of `Skipped.why` for an exchange in a known but unsupported format."""


class Skipped(NamedTuple):
    """An entry that was not decoded, and the reason."""

    entry: int
    why: str

    @property
    def unread_format(self) -> str:
        """The name of the unsupported format; empty if the entry was skipped for another reason."""
        return self.why.removesuffix(NOT_READ) if self.why.endswith(NOT_READ) else ""


BELOW = " › "
"""The separator between the name of a session and that of its child."""


def below_file(name: str) -> str:
    """The session name of a subagent whose rows are in the file of the agent that started it."""
    return f"{BELOW.lstrip()}{name}"


def is_below_file(session: str) -> bool:
    """Whether `below_file` made the name of the session."""
    return session.startswith(BELOW.lstrip())


class SessionAbout(NamedTuple):
    """The description of a session."""

    title: str = ""
    story: str = ""
    provenance: str = ""
    end_state: str = ""
    id: str = ""
    """The id by which the files of other sessions refer to the session."""
    parent: str = ""
    """The id of the session that started this session, or from which it was forked."""


class Act(NamedTuple):
    """An act of the operator while the session was recorded: limits, a policy, a note, or a cancellation."""

    kind: str
    value: Any
    entry: int | None = None
    """The entry of the exchange to which the act belongs; None if it belongs to the session."""
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
    statements: tuple[Notice, ...] = ()
    """The reader's notices about the file; `notices` has them as text."""
    error: str | None = None
    """One line about an unreadable or damaged input, else None. The content before the damage is kept."""
    about: SessionAbout | None = None
    acts: tuple[Act, ...] = ()
    answers: tuple[ToolAnswer, ...] = ()
    masked: Counter[str] = field(default_factory=Counter)
    """Kind of credential -> the number that was masked."""
    copies: Mapping[int, str] = field(default_factory=dict)
    """Number of a turn that is left out as a copy, from 1 -> the path of the file that has it."""
    same_as: str = ""
    """The path of a file with the same bytes, or all the same steps, whose turns are counted instead; else empty."""

    @property
    def notices(self) -> tuple[str, ...]:
        """The notices as text, each after the name of the file."""
        name = input_name(self.path)
        return tuple(f"{name}: {notice.text}" for notice in self.statements)


@dataclass(frozen=True, slots=True)
class Link:
    """An exchange's place in its turn, and the evidence for it."""

    index: int
    """The index of the exchange in `Recording.exchanges`."""
    place: TurnPlace
    ordinal: int
    """The number of the link among the turn's links with the same place, from 1."""
    why: str
    ambiguous: tuple[int, ...] = ()
    """The indices of the exchanges that could each be the parent, if there are several; then this one opens a turn."""
    parent: int | None = None
    """The index of the exchange that this one follows; None if it follows none that was recorded."""
    gap: bool = False
    """Whether exchanges between the parent and this exchange were not recorded."""


class TurnRecord(NamedTuple):
    """The exchanges for one user message."""

    id: str
    conversation: str
    links: tuple[Link, ...]
    user_text: str
    live_run: str | None = None
    """The name of the live run whose answers end the turn; None if the whole turn was recorded."""
    remainder: tuple[Link, ...] = ()
    """The recorded exchanges of the turn after the point at which the live run began."""

    @property
    def responses(self) -> tuple[int, ...]:
        """The indices of its responses."""
        return tuple([link.index for link in (*self.links, *self.remainder)])


class Recording(NamedTuple):
    """The traffic of one or more files, as `inspector.sessions.open_paths` returns it."""

    inputs: tuple[Input, ...]
    exchanges: tuple[Exchange, ...]
    turns: tuple[TurnRecord, ...]
    """The turns of all conversations, one conversation after the other."""

    @property
    def why_empty(self) -> str:
        """Why there is no turn: the first error of reading, if any."""
        return next((file.error for file in self.inputs if file.error), "no LLM traffic was found")


def late_answers(inputs: Iterable[Input]) -> dict[tuple[str, int | None], list[ToolAnswer]]:
    """File and entry of an answer -> the tool results that were recorded in rows of their own, not within a request."""
    found: dict[tuple[str, int | None], list[ToolAnswer]] = {}
    for input_file in inputs:
        for answer in input_file.answers:
            found.setdefault((input_file.path, answer.entry), []).append(answer)
    return found


def common_beginning(before: Sequence[Any], after: Sequence[Any], same: Callable[[Any, Any], bool] = is_) -> int:
    """The number of first elements that two sequences share; by default they must be the same objects."""
    changed = (number for number, pair in enumerate(zip(before, after, strict=False)) if not same(*pair))
    return next(changed, min(len(before), len(after)))


# -- The result of an importer ---------------------------------------------------------------------------------------
# An importer knows one file format and no wire format. It reports unreadable parts as `Skipped`, notice or `error`.

Headers = list[tuple[str, str]]
ODD = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError)
"""The errors that a value of an unexpected type can raise, which are caught around each row or entry."""


def unusable(why: Exception) -> str:
    """The end of a notice about a row or entry that raised one of the `ODD` errors."""
    return f"holds a value of an unexpected type ({type(why).__name__})"


class Options(NamedTuple):
    """The caller's options for reading inputs."""

    api: str | None = None
    profile: str | None = None
    room: Room | None = None
    """The number of bytes that may still be unpacked; None: the maximum for each body."""
    growth: "Callable[[Any, Any], FileReading] | None" = None
    """Reads the records of a followed transcript instead of its reader (`following.RecordGrowth.read`)."""
    listed: bool = False
    """Whether the file was found in a folder, so that a file which is read with another one can be left to that."""


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
    """The API, if the file names it."""
    profile: str | None = None
    end: TransportEnd = TransportEnd.EOF
    problem: str = ""
    """The recorder's description of a connection problem; empty if there was none."""
    unreadable: str = ""
    """The reason why the recorded body cannot be unpacked; empty if it can be, or if there is no body."""
    chunks: tuple[Chunk, ...] = ()
    again: bool = False
    recorded_place: TurnPlace | None = None
    simulated: bool = False
    messages: tuple[int, ...] = ()
    cut_after: bool = False
    session: str = ""
    growing: bool = False
    """Whether the answer was still being recorded when the file was read."""
    clean: bool = False
    """Whether the importer has checked that the texts contain no credential."""

    def without_body(self, why: str) -> Self:
        """Removes the body, which cannot be unpacked, and returns the exchange."""
        self.body, self.recorded, self.unreadable = b"", False, why
        return self

    def after_failed_unpack(self, why: str) -> Self | str:
        """The exchange without its body if `why` is that the body is damaged; else `why`, to skip it."""
        return self.without_body(why) if why == DAMAGED else why


@dataclass(slots=True, eq=False, repr=False)
class FileReading:
    """The result of one importer for one file."""

    raws: list[RawExchange] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    """The exchanges of a transcript, whose rows are in no wire format."""
    skipped: list[Skipped] = field(default_factory=list)
    notices: list[Notice | str] = field(default_factory=list)
    error: str | None = None
    """The error, with its place and the expected content, but without the file's name; None if there is none."""
    about: SessionAbout | None = None
    acts: list[Act] = field(default_factory=list)
    answers: list[ToolAnswer] = field(default_factory=list)
    masked: Counter[str] = field(default_factory=Counter)
    """Kind of credential -> the number that the importer masked."""

    def add(self, entry: int, found: RawExchange | str) -> None:
        """Adds the exchange of an entry, or the reason why it has none."""
        if isinstance(found, str):
            self.skipped.append(Skipped(entry, found))
        else:
            self.raws.append(found)

    def note(self, notice: Notice | str) -> None:
        """Adds a notice, once."""
        if notice not in self.notices:
            self.notices.append(notice)

    @contextmanager
    def skipping(self, entry: int, what: str) -> Iterator[None]:
        """A context manager for reading one entry, which is skipped if it has a value of an unexpected type."""
        try:
            yield
        except ODD as why:
            self.skipped.append(Skipped(entry, f"{what} that {unusable(why)}"))

    def mark_cut(self) -> None:
        """Marks the last exchange of a cut recording, if the cut is not within the exchange itself."""
        if self.raws and self.raws[-1].end is not TransportEnd.CUT:
            self.raws[-1].cut_after = True


class UnreadableError(Exception):
    """An importer cannot read the file at all; the text is one line, without the file's name."""
