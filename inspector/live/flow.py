"""An answer while it streams: its output so far and its bytes, taken in as they come and read only when asked for.

Adding a piece costs an append; `read` decodes what came since it was last asked, so that a screen that draws twelve
times a second pays twelve times a second and not for each event.
"""

from __future__ import annotations

from collections.abc import Sequence

from loop_core.client.streaming import MaskedText
from loop_core.errors import DecodeError
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
        self._kinds = {kind: MaskedText(secrets) for kind in ("text", "thinking", "call")}

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
