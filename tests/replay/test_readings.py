"""Cuts of streams whose characters have several bytes: exact where all readings agree, else a range that holds."""

from __future__ import annotations

from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.replay.token_counts import Slot, TokenMark, position_bounds, shares, slot_marks, tokens_held_back
from inspector.replay.tokens import TokenBasis, TokenMeasure, measure
from loop_core.values import Stop
from loop_core.wire.reads import Pieces
from tests.scenes.turns import call, reply


def stream_tokens(tokens: list[bytes]) -> tuple[list[str], list[str]]:
    """What a server sends of these tokens: its chunks, and the whole text after each token.

    It sends what has come up to the last whole character, and nothing while a character is not whole.
    """
    chunks, texts, data, text = [], [], b"", ""
    for token in tokens:
        data += token
        try:
            whole = data.decode("utf-8")
        except UnicodeDecodeError:
            texts.append(text)
            continue
        if len(whole) > len(text):
            chunks.append(whole[len(text) :])
        text = whole
        texts.append(text)
    return chunks, texts


def read(tokens: list[bytes], stop: Stop, end: int = 0) -> tuple[TokenMeasure, list[str]]:
    chunks, texts = stream_tokens(tokens)
    text = "".join(chunks)
    return measure(reply(stop, text, tokens=len(tokens) + end), Pieces(chunks, [], [])), texts


def bounds(told: TokenMeasure, count: int) -> tuple[int, int]:
    """The least and the most characters after so many tokens."""
    if told.bounds is None:
        at = told.stretches[0].ends[count - 1]
        return at, at
    return told.bounds[0][count], told.bounds[1][count]


@st.composite
def token_lists(draw: st.DrawFn) -> list[bytes]:
    """A text in tokens of any bytes, as byte-level vocabularies cut it; now and then a character ends nowhere."""
    data = draw(st.text(st.sampled_from("ab ,é—字猫😀👩\u200d"), min_size=1, max_size=40)).encode()
    cuts = draw(st.lists(st.integers(1, max(1, len(data) - 1)), max_size=60))
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    return [data[a:b] for a, b in pairwise(places)]


@settings(max_examples=200, deadline=None)
@given(token_lists(), st.booleans(), st.integers(0, 1))
def test_no_cut_that_is_called_exact_is_another_and_every_range_holds_the_true_one(
    tokens: list[bytes], cut: bool, end: int
) -> None:
    """Tokens of several characters too, which are a chunk each; where chunks are no tokens nothing is called exact."""
    told, texts = read(tokens, Stop.MAX_TOKENS if cut else Stop.END_TURN, 0 if cut else end)
    if told.basis is not TokenBasis.CHUNKS:
        return
    for count in range(1, len(tokens)):
        least, most = bounds(told, count)
        assert least <= len(texts[count - 1]) <= most, count
        taken = [0, *told.stretches[0].ends][count] if count <= len(told.stretches[0].ends) else most
        assert least <= taken <= most, "the reading that is shown is one of them"


def test_one_byte_characters_leave_one_reading() -> None:
    told, _ = read([b"The", b" la", b"mp"], Stop.MAX_TOKENS)
    assert (told.bounds, told.note) == (None, "3 chunks for 3 output tokens")


def test_as_many_tokens_as_chunks_leave_one_reading_whatever_the_characters() -> None:
    told, _ = read(["é".encode(), "字".encode(), "😀".encode()], Stop.MAX_TOKENS)
    assert told.bounds is None
    assert told.stretches[0].ends == [1, 2, 3]


def test_a_character_in_two_tokens_is_cut_before_it() -> None:
    """Chunks `a`, `字`, `b` for 4 tokens: only `字` can be two of them, or the last was cut in a character."""
    data = "字".encode()
    told, texts = read([b"a", data[:1], data[1:], b"b"], Stop.END_TURN)
    assert texts == ["a", "a", "a字", "a字b"]
    assert [bounds(told, count) for count in (1, 2, 3)] == [(1, 1), (1, 2), (2, 3)], "or the end mark was counted"
    cut, _ = read([b"a", data[:1], data[1:], b"b"], Stop.MAX_TOKENS)
    assert [bounds(cut, count) for count in (1, 2, 3)] == [(1, 1), (1, 2), (2, 3)]
    assert "may be in 1 of them" in told.note
    assert [list(stretch.ends) for stretch in cut.stretches] == [[1, 1, 2, 3]]


def test_what_a_piece_may_hold_back() -> None:
    """Bytes beyond the first of each character; of bytes that never became one, up to three."""
    assert [tokens_held_back(piece) for piece in ("abc", "é", "字", "😀", "aé字", "\ufffd")] == [0, 1, 2, 3, 3, 3]


def test_marks_by_hand() -> None:
    """Two slots of one token that may each take one more, and one beyond them: the first ends after 1 or 2."""
    assert slot_marks([Slot(1, 1, 1), Slot(2, 1, 1)], 1) == [TokenMark(1, 1, 2), TokenMark(2, 3, 3)]
    assert slot_marks([Slot(1, 1, 1), Slot(2, 1, 1)], 2) == [TokenMark(1, 2, 2), TokenMark(2, 4, 4)]
    # One more than both can take may be anywhere.
    assert slot_marks([Slot(1, 1, 1), Slot(2, 1, 1)], 3) == [TokenMark(1, 2, 3), TokenMark(2, 4, 5)]
    assert position_bounds([TokenMark(5, 1, 2), TokenMark(9, 3, 3)], 3) == ([0, 0, 5, 9], [0, 5, 5, 9])
    assert position_bounds([TokenMark(5, 2, 2), TokenMark(9, 3, 3)], 3) is None


@given(st.lists(st.integers(0, 4), max_size=12), st.integers(0, 60))
def test_shares_are_a_reading(spares: list[int], beyond: int) -> None:
    made = shares(spares, beyond)
    assert sum(made) == min(beyond, sum(spares))
    assert all(0 <= share <= spare for share, spare in zip(made, spares, strict=True))


@settings(max_examples=200, deadline=None)
@given(token_lists())
def test_what_was_only_counted_has_a_range_that_holds(tokens: list[bytes]) -> None:
    """A whole body: every token has a byte at least, and that is all that is known."""
    text = b"".join(tokens).decode()
    told = measure(reply(Stop.END_TURN, text, tokens=len(tokens) + 1))
    assert told.basis is TokenBasis.ESTIMATE
    _, texts = stream_tokens(tokens)
    for count in range(1, len(tokens)):
        least, most = bounds(told, count)
        assert least <= len(texts[count - 1]) <= most


@pytest.mark.parametrize("tokens", [None, 12])
def test_an_estimate_beside_a_call_is_not_called_exact(tokens: int | None) -> None:
    told = measure(reply(Stop.TOOL_CALL, "Saving the file now.", call('{"path": "a.txt"}'), tokens=tokens))
    assert told.bounds is not None
    assert any(low < high for low, high in zip(*told.bounds, strict=True))


def test_the_frame_of_a_call_may_take_what_is_beyond_the_chunks() -> None:
    """2 chunks of text, 4 of arguments, 9 tokens counted: 3 beyond, of the frame or the end mark. The text is exact."""
    given_ = Pieces(["I ", "save"], [], ['{"pa', 'th": ', '"a.t', 'xt"}'])
    told = measure(reply(Stop.TOOL_CALL, "I save", call('{"path": "a.txt"}'), tokens=9), given_)
    assert told.basis is TokenBasis.CHUNKS
    assert [bounds(told, count) for count in (1, 2)] == [(2, 2), (6, 6)]
    assert told.bounds is not None
    assert told.bounds[0][3] == 6
    assert list(accumulate([told.bounds[1][4]])) == [6], "at least two of the three are of the frame"
