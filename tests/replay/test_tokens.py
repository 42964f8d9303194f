"""Where tokens end: by chunks where there is one a token, by a tokenizer that agrees, else by an honest estimate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from inspector.replay.token_counts import MOST_HIDDEN, MOST_UNREPORTED, impossible_count
from inspector.replay.tokens import TokenBasis, TokenMeasure, agrees, capped_tokens, measure
from loop_core.values import CallKind, ChatResponse, OpaquePart, ReasoningPart, Stop, ToolCall, Usage
from loop_core.wire.reads import Pieces
from tests.scenes.rows import each_row
from tests.scenes.turns import call, reply


def ends(told: TokenMeasure) -> list[list[int]]:
    return [list(stretch.ends) for stretch in told.stretches]


def chunks(*pieces: str, thinking: tuple[str, ...] = (), call: tuple[str, ...] = ()) -> Pieces:
    return Pieces(list(pieces), list(thinking), list(call))


def test_one_token_a_chunk() -> None:
    told = measure(reply(Stop.MAX_TOKENS, "The lamp", tokens=3), chunks("The", " la", "mp"))
    assert told.basis is TokenBasis.CHUNKS
    assert ends(told) == [[3, 6, 8]]
    assert (told.end, told.tokens) == (0, 3)


def test_the_end_mark_is_a_token_without_a_chunk() -> None:
    told = measure(reply(Stop.END_TURN, "The lamp", tokens=4), chunks("The", " la", "mp"))
    assert (told.basis, told.end, told.tokens) == (TokenBasis.CHUNKS, 1, 4)


@pytest.mark.parametrize("tokens", [2, 6, 30])
def test_chunks_that_are_more_or_far_fewer_than_the_tokens_are_none(tokens: int) -> None:
    told = measure(reply(Stop.MAX_TOKENS, "The lamp", tokens=tokens), chunks("The", " la", "mp"))
    assert told.basis is TokenBasis.ESTIMATE
    assert told.tokens == tokens
    assert ends(told)[0][-1] == 8


def test_chunks_that_do_not_make_up_the_text_are_not_used() -> None:
    assert measure(reply(Stop.MAX_TOKENS, "The lamp", tokens=3), chunks("The", " la", "m")).basis is TokenBasis.ESTIMATE


def test_without_a_count_chunks_prove_nothing() -> None:
    assert measure(reply(Stop.END_TURN, "The lamp"), chunks("The", " la", "mp")).basis is TokenBasis.ESTIMATE


def test_a_cut_answer_used_its_cap() -> None:
    assert measure(reply(Stop.MAX_TOKENS, "The lamp"), chunks("The", " la", "mp"), total=3).basis is TokenBasis.CHUNKS


def test_how_far_the_counts_may_lie_apart() -> None:
    """Two tokens without a chunk, or one in fifty; up to 16 for each call, but never half of what there is."""
    assert agrees(100, 100, 0)
    assert agrees(100, 102, 0)
    assert not agrees(100, 103, 0)
    assert agrees(1_000, 1_020, 0)
    assert not agrees(1_000, 1_021, 0)
    assert not agrees(100, 99, 0)
    assert agrees(100, 118, calls=1)
    assert not agrees(100, 119, calls=1)
    assert not agrees(4, 9, calls=1)


def test_the_frame_of_a_call_has_tokens_and_no_characters() -> None:
    given = chunks("Ok", call=('{"pa', 'th": ', '"a.t', 'xt"}'))
    told = measure(reply(Stop.TOOL_CALL, "Ok", call('{"path": "a.txt"}'), tokens=8), given)
    assert told.basis is TokenBasis.CHUNKS
    assert ends(told) == [[2], [0, 0, 4, 9, 13, 17]]
    assert told.end == 1


def test_a_tokenizer_that_agrees_goes_before_an_estimate() -> None:
    def split(text: str) -> list[str]:
        return [text[:4], text[4:]]

    told = measure(reply(Stop.END_TURN, "The lamp", tokens=3), split=split)
    assert (told.basis, ends(told), told.end) == (TokenBasis.TOKENIZER, [[4, 8]], 1)
    assert measure(reply(Stop.END_TURN, "The lamp"), split=split).basis is TokenBasis.TOKENIZER
    assert measure(reply(Stop.END_TURN, "The lamp", tokens=9), split=split).basis is TokenBasis.ESTIMATE


def test_an_estimate_spreads_the_counted_tokens_over_all_characters() -> None:
    told = measure(reply(Stop.TOOL_CALL, "a" * 30, call('{"n": 1200}' + " " * 9), tokens=10))
    assert [len(each) for each in ends(told)] == [6, 4]
    assert ends(told)[0] == [5, 10, 15, 20, 25, 30]
    assert told.tokens == 10
    assert "10 tokens spread over 50 characters" in told.note


def test_an_estimate_without_a_count_takes_four_characters_for_a_token() -> None:
    told = measure(reply(Stop.END_TURN, "a" * 10))
    assert len(ends(told)[0]) == 3
    assert "none were counted" in told.note


def thinking(*parts: object, output: int, reasoning: int):
    made = reply(Stop.END_TURN, *parts)  # type: ignore[arg-type]
    return type(made)(made.api, made.parts, made.stop_reason, Usage(9, output, reasoning))


def test_hidden_thinking_comes_first_and_has_no_characters() -> None:
    told = measure(thinking("Yes, so.", output=12, reasoning=9), chunks("Yes", ",", " so."))
    assert (told.basis, ends(told)) == (TokenBasis.CHUNKS, [[0] * 9, [3, 4, 8]])
    assert told.stretches[0].part is None


def test_hidden_thinking_stands_with_the_block_that_carries_it() -> None:
    told = measure(thinking(ReasoningPart("", data="gAAA"), "Yes, so.", output=12, reasoning=9))
    assert ends(told)[0] == [0] * 9
    assert told.stretches[0].part == ReasoningPart("", data="gAAA")


def test_a_summary_of_thinking_says_nothing_of_its_tokens() -> None:
    given = chunks("Yes", ",", " so.", thinking=("We",))
    told = measure(thinking(ReasoningPart("We"), "Yes, so.", output=13, reasoning=10), given)
    assert told.basis is TokenBasis.CHUNKS
    assert (len(ends(told)[0]), ends(told)[0][-1]) == (10, 2)


def test_thinking_may_not_count_under_the_cap() -> None:
    made = thinking(ReasoningPart("We think"), "Yes, so.", output=12, reasoning=9)
    assert measure(made).tokens == 12
    assert measure(made, thinking_counts=False).tokens == 3
    assert "not counted under the cap" in measure(made, thinking_counts=False).note
    assert (capped_tokens(made.usage, True), capped_tokens(made.usage, False)) == (12, 3)
    assert capped_tokens(None, True) is None


def test_counts_that_contradict_each_other_are_not_split() -> None:
    assert measure(thinking("Yes, so.", output=4, reasoning=9)).tokens == 4


def test_tokens_of_which_nothing_was_sent() -> None:
    told = measure(reply(Stop.MAX_TOKENS, tokens=20))
    assert [(stretch.part, len(stretch.ends)) for stretch in told.stretches] == [(None, 20)]


def test_a_chunk_in_two_parts_and_one_that_is_no_text() -> None:
    made = reply(Stop.MAX_TOKENS, "ab", "cd", tokens=2)
    assert measure(made, chunks("ab", "cd")).basis is TokenBasis.CHUNKS
    assert ends(measure(made, chunks("ab", "cd"))) == [[2], [2]]
    assert measure(made, chunks("a", "bcd")).basis is TokenBasis.ESTIMATE
    assert measure(made, Pieces(["ab", ["cd"]], [], [])).basis is TokenBasis.ESTIMATE  # type: ignore[list-item]


# -- counts that cannot be -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("claimed", [MOST_HIDDEN + 9, 2_000_000_000, 10**400])
def test_a_count_beyond_the_text_and_all_hidden_thinking_is_not_gone_by(claimed: int) -> None:
    response = reply(Stop.MAX_TOKENS, "The lämp", tokens=claimed)  # 9 bytes in UTF-8: 9 tokens at most
    assert (impossible_count(response) is None) == (claimed <= MOST_HIDDEN + 9)
    told = measure(replace(response, usage=Usage(1, claimed + 1)))
    assert (told.basis, told.tokens) == (TokenBasis.ESTIMATE, 2)  # 8 characters, 4 a token


def test_the_tokens_of_several_choices_are_not_those_of_one() -> None:
    response = reply(Stop.END_TURN, "One two three four five", tokens=12)
    assert measure(response).tokens == 12
    told = measure(replace(response, other_choices=1))
    assert (told.basis, told.tokens) == (TokenBasis.ESTIMATE, 6)  # 23 characters, 4 a token


@each_row("hint", [
    lambda made: replace(made, stop_reason=reply(Stop.MAX_TOKENS).stop_reason),
    lambda made: replace(made, usage=made.usage._replace(reasoning_tokens=1)),
    lambda made: replace(made, other_choices=1),
    lambda made: replace(made, parts=(*made.parts, ReasoningPart(""))),
    lambda made: replace(made, parts=(*made.parts, OpaquePart("thing", "{}"))),
    lambda made: replace(made, parts=(*made.parts, ToolCall("c1", "web_search", "{}", kind=CallKind.SERVER))),
])
def test_a_whole_answer_that_hides_nothing_has_no_more_tokens_than_a_little_stripped_thinking(
    hint: Callable[[ChatResponse], ChatResponse],
) -> None:
    made = reply(Stop.END_TURN, "The lämp", tokens=MOST_UNREPORTED + 9)
    assert impossible_count(made) is None
    more = replace(made, usage=Usage(1, MOST_UNREPORTED + 10))
    assert impossible_count(more) == MOST_UNREPORTED + 10
    assert impossible_count(hint(more)) is None  # what tells of hidden tokens lets it claim as many as any model thinks
    assert impossible_count(hint(replace(made, usage=Usage(1, MOST_HIDDEN + 12)))) == MOST_HIDDEN + 12


def test_a_cap_that_no_answer_could_have_used_stands_for_no_tokens() -> None:
    assert measure(reply(Stop.MAX_TOKENS, "The lamp"), total=10**12).tokens == 2


def test_thinking_that_was_counted_and_not_sent_is_believed_as_far_as_any_model_thinks() -> None:
    response = replace(reply(Stop.MAX_TOKENS, "The lamp"), usage=Usage(1, 100_000, 99_998))
    assert impossible_count(response) is None
    assert measure(response).tokens == 100_000


@pytest.mark.parametrize("stop", [Stop.END_TURN, Stop.MAX_TOKENS])
def test_no_text_takes_no_tokens(stop: Stop) -> None:
    """Gateways write 0 where they know no count."""
    response = reply(stop, "The lamp is on.", tokens=0)
    assert impossible_count(response) == 0
    told = measure(response)
    assert (told.basis, told.tokens) == (TokenBasis.ESTIMATE, 4)
    assert impossible_count(reply(stop, tokens=0)) is None
    assert impossible_count(reply(stop, "The lamp", tokens=0, raw=None)) is None  # a count of the beginning of a stream


@pytest.mark.parametrize("claimed", [-1, -(10**400)])
def test_fewer_than_no_tokens_are_not_gone_by(claimed: int) -> None:
    response = reply(Stop.MAX_TOKENS, "The lamp", tokens=claimed)
    assert impossible_count(response) == claimed
    assert (measure(response).tokens, measure(reply(Stop.MAX_TOKENS, "The lamp"), total=claimed).tokens) == (2, 2)
