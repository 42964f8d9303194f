"""An answer while it streams: its output so far and its bytes, taken in as they come and read only when asked for.

Adding a piece costs an append; `read` decodes what came since it was last asked, so that a screen that draws twelve
times a second pays twelve times a second and not for each event.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Sequence

from loop_core.errors import DecodeError
from loop_core.frozen import replace
from loop_core.mask import Mask
from loop_core.openings import LOOKED_AT
from loop_core.seam import Joined, SeamRule, Segment, join
from loop_core.wire import following


class Flow:
    """One answer under way."""

    def __init__(self, api: str, number: int, secrets: Sequence[str] = ()) -> None:
        """`secrets` are masked also where a server sends them in pieces."""
        self.number = number
        self.status: int | None = None
        """None until its head is there."""
        self.headers: Sequence[tuple[str, str]] = ()
        self.size = 0
        self.pieces = 0
        self.ms = 0.0
        self.bytes: list[bytes] = []
        self._api = api
        self._read = 0
        self._decoder, self._found = following(api)
        self._broken = False
        self._kinds = {kind: _Masked(secrets) for kind in ("text", "thinking", "call")}

    def begun(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """The head is there."""
        self.status, self.headers = status, headers
        self._decoder, self._found = following(self._api, headers)

    def came(self, data: bytes, ms: float) -> None:
        """A piece is there."""
        self.bytes.append(data)
        self.size += len(data)
        self.pieces += 1
        self.ms = ms

    def read(self) -> bool:
        """Decodes what came since the last time; whether anything did."""
        fresh, self._read = self.bytes[self._read :], len(self.bytes)
        if fresh and not self._broken:
            try:
                self._decoder.feed(b"".join(fresh))
            except DecodeError:
                self._broken = True  # the judge will say so when the answer is over
        return bool(fresh)

    @property
    def text(self) -> str:
        """The visible text, as far as it was read."""
        return self._kinds["text"].of(self._found.text)

    @property
    def thinking(self) -> str:
        """The thinking."""
        return self._kinds["thinking"].of(self._found.thinking)

    @property
    def call(self) -> str:
        """The arguments of its calls, one after the other."""
        return self._kinds["call"].of(self._found.call)


class _Masked:
    """One kind of output, joined; what may begin a secret is kept back until it is known."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self._mask = Mask(secrets)
        self._decode = getincrementaldecoder("utf-8")("replace").decode
        self._text, self._taken = "", 0

    def of(self, pieces: Sequence[object]) -> str:
        """The whole of it; what is no text where text should be is left out."""
        if self._taken < len(pieces):
            fresh = "".join([piece for piece in pieces[self._taken :] if isinstance(piece, str)])
            self._taken = len(pieces)
            self._text += self._decode(self._mask.feed(fresh.encode("utf-8", "surrogatepass")))
        return self._text


class Joining:
    """The seam before a segment that is still coming, as the machine will make it; decided once it cannot change."""

    def __init__(self, before: Sequence[Segment], coming: Segment, rule: SeamRule) -> None:
        self._before, self._coming, self._rule = tuple(before), coming, rule
        self._length = max(len(join(self._before, rule).text), sum(len(each.text) for each in self._before))
        self._enough = 2 * (self._length + len(coming.anchor) + len(coming.stripped)) + LOOKED_AT
        self._settled: Joined | None = None
        self._size = 0

    def at(self, text: str) -> tuple[Joined, str]:
        """The answer with this much of the segment: its seams, and what the segment adds to the text before it."""
        if self._settled is None:
            joined = join((*self._before, _with(self._coming, text)), self._rule)
            if len(text) > self._enough and not self._wrapped(joined):
                self._settled, self._size = joined, len(text)  # no rule looks further than the text before it
            else:
                return joined, _added(joined, self._before)
        else:
            joined = Joined(self._settled.text + text[self._size :], self._settled.seams)
        return joined, _added(joined, self._before)


    def _wrapped(self, joined: Joined) -> bool:
        """Whether more than the bare words was quoted: what closes it may come at the segment's very end."""
        anchor = self._coming.anchor
        return bool(anchor and joined.seams) and joined.seams[-1].cut != anchor


def _added(joined: Joined, before: Sequence[Segment]) -> str:
    return joined.text[joined.seams[-1].at :] if before and joined.seams else joined.text


def _with(segment: Segment, text: str) -> Segment:
    return replace(segment, text=text)

