"""Content codings: undone however they come, in steps of a bounded size, and refused where a step could be none."""

from __future__ import annotations

import gzip
import zlib

import httpx
import pytest

from loop_core import Server, ask
from loop_core.client.incoming import STEP, ChecksumError, ContentDecodeError, ContentDecoder
from loop_core.client.transport import Live
from loop_core.turn.loop import run
from loop_core.values import ChatResponse, Stop, StopReason, ToolCall, TransportEnd
from loop_core.wire import wire
from tests.scenes.live import plan, request, server
from tests.scenes.loopback import Answer, Fake, Peer

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


@pytest.mark.parametrize("size", [1, 50, 100_000])
def test_content_with_a_wrong_checksum_is_not_relied_on(size: int) -> None:
    """Pieces may have been read before the checksum came, so the error says which fault it is."""
    coded = gzip.compress(TEXT)
    damaged, body = coded[:-8] + b"\0\0\0\0" + coded[-4:], ContentDecoder("gzip")
    with pytest.raises(ChecksumError, match="does not match its checksum"):
        [piece for at in range(0, len(damaged), size) for piece in body.feed(damaged[at : at + size])]


def damaged_at_the_end(late: float) -> Answer:
    """An answer with a call whose checksum is wrong and comes `late` seconds after the end of the content."""
    said = ChatResponse("openai_chat", (ToolCall("c", "ls", '{"path": "/tmp"}', closed=True),),
                        StopReason(Stop.TOOL_CALL, "tool_calls"))
    coded = gzip.compress(b"".join(wire("openai_chat").encode(said, stream=True)))

    def send(peer: Peer) -> None:
        peer.head(content_encoding="gzip", transfer_encoding="chunked")
        for piece in (coded[:40], coded[40:-8], b"\0\0\0\0" + coded[-4:]):
            if piece.startswith(b"\0"):
                peer.hold(late)
            peer.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        peer.send(b"0\r\n\r\n")

    return send


@pytest.mark.parametrize("late", [0.0, 0.6])
def test_no_call_runs_whose_content_does_not_match_its_checksum(fake: Fake, late: float) -> None:
    """The checksum came in a later piece than the end of the answer: the call ran with the damaged arguments."""
    fake.answers = [damaged_at_the_end(late)]
    ran: list[str] = []

    def ls(path: str) -> str:
        """Lists a folder."""
        ran.append(path)
        return "empty"

    answer = ask(Server("openai_chat", fake.url, key="k", model="m"), "Go", tools=[ls], max_tokens=99)
    assert (ran, answer.terminal) == ([], "repair_failed")
    assert answer.turn.evaluation.response.transport_end is TransportEnd.DAMAGED


def test_a_caller_s_client_waits_for_the_checksum_too(fake: Fake) -> None:
    fake.answers = [damaged_at_the_end(0.1)]
    with httpx.Client() as client, Live(server("openai_chat", fake.url, ""), client=client) as source:
        turn = run("t", request("openai_chat"), source, plan("openai_chat", "generic")).steps[-1].turn
    assert turn.evaluation is not None
    assert turn.evaluation.response.transport_end is TransportEnd.DAMAGED
