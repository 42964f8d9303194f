"""What an importer gives: exchanges as bytes and text, before anything is decoded, and the interface itself.

An importer knows one file format and no wire format. What it cannot read is a `Skipped`, a notice, or the one `error`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from inspector.sessions.intake import Room
from inspector.sessions.values import About, Act, Chunk, Exchange, Place, Skipped, ToolAnswer
from loop_core.frozen import field, record
from loop_core.values import TransportEnd
from loop_core.wire.failures import REDIRECTS

Headers = list[tuple[str, str]]
ODD = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError)
"""What a value of an unexpected kind can raise where it is used. One row or entry is lost with it, and told: importers
catch these around each, so that a kind that nobody thought of never hides the rest of a file."""


def unusable(why: Exception) -> str:
    """What is told of a row that raised one of `ODD`."""
    return f"holds a value of an unexpected kind ({type(why).__name__})"


class Options(NamedTuple):
    """What the caller said about the inputs."""

    api: str | None = None
    profile: str | None = None
    room: Room | None = None
    """What may still be unpacked; None: as much as the bound allows for one body."""


@record(eq=False, repr=False)
class Raw:
    """One exchange as a file holds it, credentials and all."""

    entry: int
    url: str = ""
    method: str = "POST"
    request_headers: Headers = field(default_factory=list)
    request_text: str | None = None
    """The request body; None where it was not recorded."""
    status: int | None = None
    headers: Headers = field(default_factory=list)
    body: bytes = b""
    recorded: bool = True
    """Whether the response body is in the file."""
    started: str | None = None
    duration_ms: float | None = None
    api: str | None = None
    """Where the file itself says it."""
    profile: str | None = None
    end: TransportEnd = TransportEnd.EOF
    problem: str = ""
    """What went wrong on the way, in the recorder's words."""
    chunks: tuple[Chunk, ...] = ()
    again: bool = False
    """Whether the recorder itself sent the request before once more, which got no answer."""
    said: Place | None = None
    """What the recorder itself says that the request did, where that is no new message and no tool result."""
    simulated: bool = False
    """Nobody was asked: the answer was made from a table of dialects."""
    messages: tuple[int, ...] = ()
    """The messages of a WebSocket that the body is, by their index in the recording."""
    cut_after: bool = False
    """Whether the recording is cut right behind this exchange: what followed it is not known."""
    clean: bool = False
    """The importer has made sure that the texts hold no key that `redact` would mask."""


@record(eq=False, repr=False)
class Reading:
    """What one importer made of one file."""

    raws: list[Raw] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    """Those of a transcript, which holds no bytes that a wire format could decode."""
    skipped: list[Skipped] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    error: str | None = None
    """Without the file's name: where, and what was expected."""
    about: About | None = None
    acts: list[Act] = field(default_factory=list)
    answers: list[ToolAnswer] = field(default_factory=list)
    masked: Counter[str] = field(default_factory=Counter)
    """What the importer itself masked, by the kind of credential."""


def says_enough(status: int | None) -> bool:
    """Whether an answer without a body is whole: an error, or a redirect."""
    return status is not None and (status >= 400 or status in REDIRECTS)


def cut_behind(raws: Sequence[Raw]) -> None:
    """Marks the last exchange of a recording that is cut, where the cut is not in the exchange itself."""
    if raws and raws[-1].end is not TransportEnd.CUT:
        raws[-1].cut_after = True


class UnreadableError(Exception):
    """A file that an importer cannot read at all; the text is the one clear line, without the file's name."""


class Importer(Protocol):
    """One file format."""

    name: str

    def sniff(self, head: bytes, path: str) -> int:
        """How sure it is, from the first 64 KB, that it can read this: 0 not at all, 100 beyond doubt."""

    def read(self, data: bytes, path: str, options: Options) -> Reading:
        """The exchanges of a whole file.

        Raises:
            UnreadableError: it is not of this format after all, or damaged from the start.
        """
