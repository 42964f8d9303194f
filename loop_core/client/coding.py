"""Undoes the content coding of a body in bounded steps, since a few bytes can stand for gigabytes. Pure.

No coding is asked for, and gzip and deflate are undone where a server uses one all the same. Those that make
more of a byte (br, zstd), or several one over the other, are refused.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

STEP = 1 << 20
"""The most bytes that are unpacked at once."""
_UNDONE = frozenset({"gzip", "x-gzip", "deflate"})
_REFUSED = frozenset({"br", "zstd", "compress", "x-compress", "dcb", "dcz"})  # IANA HTTP Content Coding Registry


class CodingError(Exception):
    """The coding of a body cannot be undone; the text says why, behind the name of the server."""


class Uncoding:
    """The body of one answer, piece by piece, without its content coding."""

    def __init__(self, coding: str) -> None:
        """`coding` is the header Content-Encoding; what it names wrongly, such as a character set, is no coding.

        Raises:
            CodingError: such a coding is not undone.
        """
        names = [name for part in coding.split(",") if (name := part.strip().lower()) in _UNDONE | _REFUSED]
        if len(names) > 1 or not _UNDONE.issuperset(names):
            raise CodingError(f"sent content in the coding {', '.join(names)[:40]}, which it was not asked for")
        # 32: the header tells gzip from zlib, which is what `deflate` means (RFC 9110, section 8.4.1.2).
        self._inflate = zlib.decompressobj(32 + zlib.MAX_WBITS) if names else None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The next bytes.

        Raises:
            CodingError: the content is not coded so.
        """
        if self._inflate is None:
            yield data
            return
        more = True
        while more:
            try:
                piece = self._inflate.decompress(data, STEP)
            except zlib.error:
                raise CodingError("sent content whose coding is broken") from None
            data = self._inflate.unconsumed_tail
            more = bool(data) or len(piece) == STEP
            if piece:
                yield piece
