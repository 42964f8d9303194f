"""An answer on its way to the client: what is meant, what came of it under the budget, its frames, how they are sent.

A draft is made from a place in a story, and each fault makes another draft of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from inspector.dialects.scenarios import Played
from inspector.dialects.table import Dialect
from inspector.dialects.writing import Manner
from inspector.provider.place import Place
from inspector.provider.story import Answer
from loop_core.frozen import field, frozen
from loop_core.values import ResponsePart
from loop_core.wire.serving import Moment, Spelling


@frozen
class Sending:
    """How frames are sent; numbers count whole frames from 0, and mean the last one where there are fewer."""

    slow: float = 0.0
    """Seconds before every frame."""
    stall: tuple[int, float] | None = None
    """Before this frame, so many seconds of silence, and then the connection is closed."""
    reset: int | None = None
    """The connection is reset inside this frame."""
    drop: int | None = None
    """The connection is closed before this frame."""
    torn: int | None = None
    """Bytes of one piece, whatever the frames are."""


@frozen
class Refusal:
    """An HTTP error in place of an answer."""

    status: int = 429
    times: int = 1
    """How often the same request is refused before it is answered."""
    retry_after: float | None = None
    """Seconds that are asked for; None: nothing is said."""


@frozen(eq=False, repr=False)
class Draft:
    """One answer."""

    api: str
    stream: bool
    dialect: Dialect
    answer: Answer
    place: Place
    parts: tuple[ResponsePart, ...]
    """What is left to be said."""
    prefix: str = ""
    """What is said again before it goes on."""
    cap: int | None = None
    """Tokens at most."""
    ident: str = ""
    """The id that it has already; empty: one is made."""
    event: Moment | None = None
    """What else ends the answer, after `at` tokens; None: at its end."""
    at: int | None = None
    played: Played | None = None
    """How far it came."""
    spelling: Spelling | None = None
    """What is said about the end."""
    manner: Manner = Manner()
    frames: tuple[bytes, ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    sending: Sending = Sending()
    refusal: Refusal | None = None

    @property
    def streams(self) -> bool:
        """Whether it comes as a stream; errors, and what only a whole body can say, do not."""
        return self.stream and self.status < 400 and not (self.spelling is not None and self.spelling.whole)
