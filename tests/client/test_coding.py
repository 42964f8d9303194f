"""Content codings: undone however they come, in steps of a bounded size, and refused where a step could be none."""

from __future__ import annotations

import gzip
import zlib

import pytest

from loop_core.client.incoming import STEP, ContentDecodeError, ContentDecoder

TEXT = b"data: one\n\n" * 500
CODED = {
    "gzip": gzip.compress(TEXT), "X-GZIP": gzip.compress(TEXT), "deflate": zlib.compress(TEXT), "": TEXT,
    "identity": TEXT, "utf-8": TEXT, "identity, gzip": gzip.compress(TEXT),
    "gzip, identity": gzip.compress(TEXT[:99]) + gzip.compress(b"") + gzip.compress(TEXT[99:]),  # three members
}


@pytest.mark.parametrize("coding", CODED)
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_a_coding_is_undone_however_it_is_cut(coding: str, size: int) -> None:
    body, data = ContentDecoder(coding), CODED[coding]
    assert b"".join(piece for at in range(0, len(data), size) for piece in body.feed(data[at : at + size])) == TEXT


def test_a_few_bytes_become_many_in_bounded_steps() -> None:
    pieces = list(ContentDecoder("gzip").feed(gzip.compress(bytes(8 * STEP + 5))))
    assert [len(piece) for piece in pieces] == [STEP] * 8 + [5]


@pytest.mark.parametrize("coding", ["br", "zstd", "BR", "gzip, gzip", "gzip,br", "compress"])
def test_what_could_become_too_many_at_once_is_refused(coding: str) -> None:
    with pytest.raises(ContentDecodeError, match="which was not requested"):
        ContentDecoder(coding)


def test_what_follows_the_coded_content_and_is_not_coded_is_broken() -> None:
    with pytest.raises(ContentDecodeError, match="is broken"):
        list(ContentDecoder("gzip").feed(gzip.compress(TEXT) + b"data: [DONE]"))


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_what_is_not_coded_so_is_broken(coding: str) -> None:
    with pytest.raises(ContentDecodeError, match="is broken"):
        list(ContentDecoder(coding).feed(b"\xff\xfe{}" * 100))


def bytes_before_break(coding: str, pieces: list[bytes]) -> bytes:
    """What came before the coding turned out to be broken."""
    content, got = ContentDecoder(coding), list[bytes]()
    with pytest.raises(ContentDecodeError, match="is broken"):  # noqa: PT012  (what came before it is the matter)
        for data in pieces:
            got.extend(content.feed(data))
    return b"".join(got)


@pytest.mark.parametrize("size", [1, 50, 100_000])
def test_what_came_before_a_fault_is_kept_however_the_bytes_are_cut(size: int) -> None:
    coder = zlib.compressobj(wbits=31)
    data = coder.compress(TEXT) + coder.flush(zlib.Z_SYNC_FLUSH) + b"\xff" * 30
    assert bytes_before_break("gzip", [data[at : at + size] for at in range(0, len(data), size)]) == TEXT


def test_content_with_a_wrong_checksum_is_not_relied_on() -> None:
    coded = gzip.compress(TEXT)
    assert bytes_before_break("gzip", [coded[:-8] + b"\0\0\0\0" + coded[-4:]]) == b""
