"""The text of an answer while it arrives: in every format and any pieces, what is shown is how the answer begins."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loop_core import encode_response, read
from loop_core.client.streaming import PendingSeam, ShownText
from loop_core.errors import EncodeError
from loop_core.formats import FORMATS
from loop_core.turn.continuation import Method, SeamRule, Segment
from loop_core.turn.policy import STRICT
from loop_core.values import ChatResponse, Stop, StopReason, TextPart, Usage
from tests.scenes.costs import IN_PROPORTION, growth
from tests.scenes.live import WORDS

STATED = re.compile(rb'"(id|responseId|created|created_at)":("?)[^",}]*')
"""What a server that plays an answer twice says anew."""
CORRECTS = "openai_responses"
"""A format that says each text once more at its end, and may say another one than came piece by piece."""
SAME = ("bedrock_converse", "bedrock_invoke", "anthropic_complete")
"""Formats of which only the same bytes show the same answer: frames with a checksum, or no mark of an end."""
texts = st.text(alphabet="ab é😀\n", min_size=1, max_size=60).filter(lambda text: text.strip() != "")


def events(api: str, text: str) -> list[bytes]:
    """The stream of an answer, an event a piece."""
    word = WORDS.get(api, ("stop",))[0]
    made = ChatResponse(api, (TextPart(text),), StopReason(Stop.END_TURN, word), Usage(1, 5), id="r1", model="m")
    try:
        return list(encode_response(api, made, stream=True, chunk=7))
    except EncodeError:  # a format without ids, or without a name of the model
        made = ChatResponse(api, (TextPart(text),), StopReason(Stop.END_TURN, word))
        return list(encode_response(api, made, stream=True, chunk=7))


def shown_text(api: str, body: bytes, cuts: Sequence[int] = ()) -> str:
    """What is shown of a body before the answer is over."""
    pieces: list[str] = []
    text = ShownText(api, (), STRICT, pieces.append)
    text.on_head(0, 200, ())
    for start, end in pairwise([0, *cuts, len(body)]):
        text.on_data(0, body[start:end], 0.0)
    return "".join(pieces)


@pytest.mark.parametrize("api", FORMATS)
def test_an_answer_that_is_played_twice_is_shown_once(api: str) -> None:
    """Also where the second time says another id, so that its bytes differ."""
    once = b"".join(events(api, "Nothing was written twice."))
    again = once if api in SAME else STATED.sub(rb'"\1":\g<2>9', once)
    played = once + again
    assert shown_text(api, played, range(1, len(played), 11)) == read(api, played).text == "Nothing was written twice."


@pytest.mark.parametrize("api", FORMATS)
@given(text=texts, other=texts, size=st.integers(1, 200), data=st.data())
@settings(max_examples=25, deadline=None)
def test_what_is_shown_begins_the_answer(api: str, text: str, other: str, size: int, data: st.DataObject) -> None:
    came = [*events(api, text), *data.draw(st.sampled_from([(), events(api, other)]))]
    places = st.integers(0, len(came) - 1)
    if api != CORRECTS:
        damage = data.draw(st.sampled_from(["none", "lost", "twice", "swapped"]))
        at, to = data.draw(places), data.draw(places)
        if damage == "lost":
            del came[at]
        elif damage == "twice":
            came.insert(to, came[at])
        elif damage == "swapped":
            came[at], came[to] = came[to], came[at]
    body = b"".join(came)[: data.draw(st.integers(1, 10_000))]
    live = shown_text(api, body, range(size, len(body), size))
    if live:
        assert read(api, body).text.startswith(live)


def test_a_long_answer_in_small_pieces_takes_time_in_proportion() -> None:
    piece = b'data: {"choices":[{"index":0,"delta":{"content":"0123456789"}}]}\n\n'

    def show(count: int) -> None:
        out: list[str] = []
        text = ShownText("openai_chat", (), STRICT, out.append)
        for _ in range(count):
            text.on_data(0, piece, 0.0)
        assert "".join(out) == "0123456789" * count

    assert growth(show, int, 8_000) < IN_PROPORTION


def test_what_a_long_continuation_waits_for_is_not_asked_with_each_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quotation that is wrapped may be closed at the very end, so each piece might still change the seam."""
    first = "The queue was saturated for nineteen minutes, and no message was lost."
    before, coming = (Segment(first),), Segment("", Method.ANCHOR, first[-40:])
    seam = PendingSeam(before, coming, SeamRule.CAREFUL)
    monkeypatch.setattr(seam, "_is_wrapped", lambda text: True)
    asked = [size for size in range(1, 40_000, 10) if seam.settled_text("x" * size) is None and size > seam.threshold]
    assert not asked
    assert seam.threshold > 40_000


HIGH, LOW, FACE = "\ud83d", "\ude00", "\U0001f600"


def deltas(pieces: Sequence[str]) -> bytes:
    """The stream of an answer in these pieces, which may end inside a character."""
    sent = [{"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]} for piece in pieces]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return b"".join(f"data: {json.dumps(each)}\n\n".encode() for each in [*sent, end])


@pytest.mark.parametrize(("pieces", "live"), [
    (["a" + HIGH, LOW + "b"], f"a{FACE}b"),
    (["a" + HIGH, LOW + HIGH, LOW], f"a{FACE}{FACE}"),
    (["a" + HIGH, HIGH, LOW + "b"], f"a\ufffd{FACE}b"),
    (["a" + HIGH, "b"], "a\ufffdb"),
    (["a", LOW + "b"], "a\ufffdb"),
    ([LOW + "b"], LOW + "b"),
    (["a" + HIGH], "a"),
])
@pytest.mark.parametrize("secrets", [(), ("sk-0123456789abcdef",)])
def test_half_a_character_waits_for_the_other_half(pieces: list[str], live: str, secrets: Sequence[str]) -> None:
    body, given = deltas(pieces), []
    text = ShownText("openai_chat", secrets, STRICT, given.append)
    text.on_head(0, 200, ())
    for at in range(0, len(body), 7):
        text.on_data(0, body[at : at + 7], 0.0)
    assert "".join(given) == live
    assert read("openai_chat", body).text.startswith(live)
