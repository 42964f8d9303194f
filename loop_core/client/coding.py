"""Decodes the content coding of a body in bounded steps, since a few bytes can expand to gigabytes. Pure.

The client asks for no coding. If a server nevertheless uses gzip or deflate, it is decoded. Codings that can expand a
byte further (br, zstd), and several codings of one body, are refused.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

STEP = 1 << 20
"""The largest number of bytes that one step unpacks."""
_EITHER = 32 + zlib.MAX_WBITS
"""The format of compressed data: its header tells gzip from zlib, which is what `deflate` means (RFC 9110, section
8.4.1.2)."""
_DECODABLE = frozenset({"gzip", "x-gzip", "deflate"})
_REFUSED_CODINGS = frozenset({"br", "zstd", "compress", "x-compress", "dcb", "dcz"})  # IANA, HTTP Content Coding


class CodingError(Exception):
    """The coding of a body cannot be decoded. The message continues a sentence that begins with the server's name."""


class RefusedCodingError(CodingError):
    """The body has a coding that is not supported. A second attempt would get the same one."""


class Uncoding:
    """The body of one answer without its content coding, piece by piece."""

    def __init__(self, coding: str) -> None:
        """`coding` is the header Content-Encoding. A word in it that names no coding, such as a character set, is
        ignored. Raises `RefusedCodingError` for a coding that is not supported."""
        names = [name for part in coding.split(",") if (name := part.strip().lower()) in _DECODABLE | _REFUSED_CODINGS]
        if len(names) > 1 or not _DECODABLE.issuperset(names):
            raise RefusedCodingError(f"sent content in the coding {', '.join(names)[:40]}, which it was not asked for")
        self._inflate = zlib.decompressobj(_EITHER) if names else None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decodes the next bytes; yields their content, in pieces of at most `STEP` bytes if it is coded. Raises
        `CodingError` if the content does not have the named coding."""
        if self._inflate is None:
            yield data
            return
        more = True
        while more:
            before = self._inflate.copy()
            try:
                piece = self._inflate.decompress(data, STEP)
            except zlib.error as why:
                if not str(why).endswith("check"):  # a wrong checksum: none of the content is reliable
                    yield from _up_to_fault(before, data)
                raise CodingError("sent content whose coding is broken") from None
            data = self._inflate.unconsumed_tail
            if self._inflate.eof and self._inflate.unused_data:  # a body may have several members (RFC 1952, 2.2)
                data, self._inflate = self._inflate.unused_data, zlib.decompressobj(_EITHER)
            more = bool(data) or len(piece) == STEP
            if piece:
                yield piece


def _up_to_fault(inflate: Any, data: bytes) -> Iterator[bytes]:
    """Yields the content before a fault, byte by byte, because zlib returns nothing for a piece with a fault."""
    with suppress(zlib.error):
        for at in range(len(data)):
            if piece := inflate.decompress(data[at : at + 1]):
                yield piece
