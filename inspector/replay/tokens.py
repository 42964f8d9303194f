"""Finds where the tokens of a response end, and on which basis this is known.

The bases are tried in this order: the chunks of the stream, if it has one token per chunk; a tokenizer, if the caller
has one; an estimate. The first two are used only if they agree with the output tokens that the provider counted. Tokens
beyond the chunks belong to chunks with multi-byte characters (`inspector.replay.token_counts`), to the end mark, or to
the frames of calls. If several readings remain, `TokenMeasure.bounds` says how far they differ. The module knows no
wire format: chunks arrive decoded.

The tokenizers work without a network.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from importlib import import_module
from itertools import accumulate
from typing import Any, NamedTuple

from inspector.replay.token_counts import (
    MOST_UNREPORTED,
    Bounds,
    TokenCut,
    TokenLayout,
    TokenMark,
    ends_whole,
    impossible_count,
    layout_by_chunks,
    layout_by_count,
    most_tokens,
    position_bounds,
    text_of,
    tokens_held_back,
)
from loop_core.values import CallKind, ChatResponse, ReasoningPart, ResponsePart, TextPart, ToolCall, Usage
from loop_core.wire.reads import Pieces

Split = Callable[[str], Sequence[str]]
"""Divides a text into pieces of one token each; a token that ends inside a character gives an empty piece."""


class TokenBasis(StrEnum):
    """The basis on which the ends of tokens are known, best first."""

    CHUNKS = "chunks"
    """Each chunk of the stream has one token."""
    TOKENIZER = "tokenizer"
    """A tokenizer of the model's family cut the text."""
    ESTIMATE = "estimate"
    """The tokens are spread evenly over the characters."""


CHARS_PER_TOKEN = 4
"""The estimated number of characters per token if no tokens were counted; about right for English text."""
SLACK = 2
"""The number of surplus tokens that are accepted without a known reason; they may be anywhere."""
SLACK_SHARE = 50
"""The number of chunks per accepted surplus token, for long texts."""
FRAME = 16
"""The largest number of tokens of a call's frame (its name and markup) besides the arguments."""


class TokenStretch(NamedTuple):
    """A part of a response with its tokens."""

    part: ResponsePart | None
    """The part; None for thinking that was counted but not sent."""
    ends: Sequence[int]
    """For each token, the characters of the part's text up to its end; empty if the part is not cut."""
    counted: bool = True
    """Whether the tokens count under the cap; some providers do not count thinking."""


class TokenMeasure(NamedTuple):
    """A response divided into stretches, in order."""

    stretches: tuple[TokenStretch, ...]
    basis: TokenBasis
    note: str
    """The reason for the choice of the basis, with the figures."""
    end: int = 0
    """The number of tokens of the end mark: 1 if the provider counts it, else 0."""
    bounds: Bounds | None = None
    """The range of characters that the tokens under the cap may reach; None: the cut is exact."""

    @property
    def tokens(self) -> int:
        """The tokens that count under the cap."""
        return sum(len(stretch.ends) for stretch in self.stretches if stretch.counted) + self.end


def plausible_usage(response: ChatResponse) -> Usage | None:
    """The token counts of a response; None if the provider sent none, the sum of several choices, or one that is
    impossible."""
    return None if response.other_choices or impossible_count(response) is not None else response.usage


def capped_tokens(usage: Usage | None, thinking_counts: bool) -> int | None:
    """The reported output tokens that count under the cap; None if the provider reported none."""
    if usage is None:
        return None
    return usage.output_tokens if thinking_counts else usage.visible_tokens


def measure(
    response: ChatResponse,
    chunks: Pieces | None = None,
    total: int | None = None,
    split: Split | None = None,
    thinking_counts: bool = True,
) -> TokenMeasure:
    """The tokens of a response, as stretches. `chunks` are the pieces of its stream; `total` replaces the output tokens
    if the provider counted none (a cut response used its cap)."""
    usage = plausible_usage(response)
    total = usage.output_tokens if usage is not None and usage.output_tokens is not None else total
    if total is not None and (total < 0 or (total > MOST_UNREPORTED and total > most_tokens(response))):
        total = None  # larger than any answer of this size can have, so it is no evidence
    thought = usage.reasoning_tokens if usage is not None and usage.visible_tokens is not None else None
    spoken = total - (thought or 0) if total is not None else None
    texts = [(_kind(part), text_of(part)) for part in response.parts]
    counted_kinds = [kind for kind, text in texts if text and (kind != "thinking" or thought is None)]
    calls = sum(kind == "call" for kind, _ in texts)
    ends, basis, note = _ends_of_texts(texts, counted_kinds, chunks, split, spoken, calls)
    own = [i for i, (kind, _) in enumerate(texts) if kind in counted_kinds]
    cut = not ends_whole(response)
    laid = _lay_out([TokenCut(texts[i][1], ends[i], texts[i][0] == "call") for i in own], basis, spoken, cut,
                 blind=any(not kind for kind, _ in texts))
    for i, token_ends in zip(own, laid.ends, strict=True):
        ends[i] = token_ends
    stretches = _stretches(response, texts, ends, thought, thinking_counts)
    if thought and not thinking_counts:
        note += "; thinking is not counted under the cap"
    if not counted_kinds and spoken and not any(stretch.ends for stretch in stretches if stretch.counted):
        stretches.append(TokenStretch(None, (0,) * spoken))  # counted, but nothing of it was sent
    token_measure = TokenMeasure(tuple(stretches), basis, note + laid.note, laid.end)
    marks = _place_marks(token_measure, texts, dict(zip(own, laid.marks, strict=True)))
    return token_measure._replace(bounds=position_bounds(marks, token_measure.tokens))


def _lay_out(texts: Sequence[TokenCut], basis: TokenBasis, visible: int | None, cut: bool, blind: bool) -> TokenLayout:
    """Lays the tokens out over the texts, with the tokens that were counted beyond them."""
    placed = sum(len(text.ends) for text in texts)
    calls = sum(text.call for text in texts)
    if basis is TokenBasis.CHUNKS and visible is not None:
        return layout_by_chunks(texts, visible - placed, _frames(placed, 1), cut)
    if basis is TokenBasis.TOKENIZER:
        return layout_by_count(texts, SLACK if visible is None else visible - placed, None)
    return layout_by_count(texts, 0, None if visible is None or blind else FRAME * calls + (not cut), spread=True)


# -- where tokens end ------------------------------------------------------------------------------------------------


def _kind(part: ResponsePart) -> str:
    if type(part) is TextPart:
        return "text"
    if type(part) is ReasoningPart:
        return "thinking"
    return "call" if type(part) is ToolCall and part.kind is not CallKind.SERVER else ""


Ends = list[Sequence[int]]


def _ends_of_texts(
    texts: Sequence[tuple[str, str]],
    words: Sequence[str],
    chunks: Pieces | None,
    split: Split | None,
    visible: int | None,
    calls: int,
) -> tuple[Ends, TokenBasis, str]:
    """The ends of every text except separately counted thinking, by the best basis that agrees with `visible`."""
    ends = _ends_by_chunks(texts, chunks) if chunks is not None else None
    if ends is not None and words:
        count = sum(len(ends[i]) for i, (kind, _) in enumerate(texts) if kind in words)
        spare = sum(tokens_held_back(text) for kind, text in texts if kind in words)
        if visible is not None and agrees(count, visible, calls, spare):
            return ends, TokenBasis.CHUNKS, f"{count:,} chunks for {visible:,} output tokens"
    if split is not None and words:
        ends = [_ends(split(text)) if kind in words else () for kind, text in texts]
        count = sum(map(len, ends))
        if visible is None or agrees(count, visible, calls):
            return ends, TokenBasis.TOKENIZER, f"{count:,} tokens by the tokenizer"
    chars = sum(len(text) for kind, text in texts if kind in words)
    if visible is None:
        visible = -(-chars // CHARS_PER_TOKEN)
        note = f"{CHARS_PER_TOKEN} characters a token, since none were counted"
    else:
        note = f"{visible:,} tokens spread over {chars:,} characters"
    return _spread([text if kind in words else "" for kind, text in texts], visible), TokenBasis.ESTIMATE, note


def agrees(pieces: int, tokens: int, calls: int, spare: int = 0) -> bool:
    """Whether this many pieces of text can be this many tokens; end mark, frames and `spare` tokens have no piece."""
    # Fewer tokens than chunks never agree: such servers send words or lines, not tokens, as chunks.
    return 0 <= tokens - pieces <= max(SLACK, pieces // SLACK_SHARE) + _frames(pieces, calls) + spare


def _frames(pieces: int, calls: int) -> int:
    # At most half of the chunks; otherwise a call with two chunks could explain any count.
    return min(FRAME * calls, pieces // 2)


def _ends_by_chunks(texts: Sequence[tuple[str, str]], chunks: Pieces) -> Ends | None:
    """The ends by the stream's chunks; None if they do not make up the texts, or if one of them is not text."""
    found: Ends = [()] * len(texts)
    for kind, pieces in chunks._asdict().items():
        own = [(i, text) for i, (of, text) in enumerate(texts) if of == kind and text]
        try:
            if "".join(pieces) != "".join([text for _, text in own]):
                return None
        except TypeError:
            return None
        ends = _ends(filter(None, pieces))
        before = first = 0
        for i, text in own:
            last = bisect_left(ends, before + len(text), first)
            if ends[last] != before + len(text):
                return None  # a chunk belongs to two parts, so chunks are not tokens
            found[i] = [end - before for end in ends[first : last + 1]] if before else ends[: last + 1]
            before, first = before + len(text), last + 1
    return found


def _ends(pieces: Iterable[str]) -> list[int]:
    return list(accumulate(map(len, pieces)))


def _spread(texts: Sequence[str], tokens: int) -> Ends:
    """Spreads this many tokens evenly over the characters of all texts."""
    chars = sum(map(len, texts))
    found: Ends = []
    before = 0
    for text in texts:
        first, last = (tokens * before // chars, tokens * (before + len(text)) // chars) if chars else (0, 0)
        count = max(last - first, 1 if text else 0)
        found.append([len(text) * (i + 1) // count for i in range(count)])
        before += len(text)
    return found


def _stretches(
    response: ChatResponse, texts: Sequence[tuple[str, str]], ends: Ends, thinking_tokens: int | None,
    thinking_counts: bool,
) -> list[TokenStretch]:
    thinking_texts = [text if kind == "thinking" else "" for kind, text in texts]
    for i, spread in enumerate(_spread(thinking_texts, thinking_tokens) if thinking_tokens is not None else ()):
        if thinking_texts[i] and len(ends[i]) != len(spread):
            ends[i] = spread  # thinking may be sent as a summary, whose chunks are not its tokens
    stretches = [TokenStretch(part, ends[i], thinking_counts or texts[i][0] != "thinking")
                 for i, part in enumerate(response.parts)]
    if thinking_tokens and not any(thinking_texts):
        # Thinking that was not shown comes first: with the block that stands for it, or without any part.
        hidden = (0,) * thinking_tokens
        place = next((i for i, part in enumerate(response.parts) if type(part) is ReasoningPart), None)
        if place is None:
            return [TokenStretch(None, hidden, thinking_counts), *stretches]
        stretches[place] = TokenStretch(response.parts[place], hidden, thinking_counts)
    return stretches


# -- how far the readings lie apart ---------------------------------------------------------------------------------


def _place_marks(
    measure: TokenMeasure, texts: Sequence[tuple[str, str]], marks: Mapping[int, Sequence[TokenMark]]
) -> Iterator[TokenMark]:
    """The marks of all texts under the cap; of separately counted reasoning, only the number of tokens is known."""
    chars = tokens = 0
    early = late = 0
    shift = -1 if len(measure.stretches) > len(texts) else 0  # thinking that was never sent comes first
    if any(not measure.stretches[number - shift].counted for number in marks):
        yield TokenMark(sum(len(text) for _, text in texts), 1, measure.tokens)  # the capped tokens were not counted
        return
    for number, stretch in enumerate(measure.stretches, shift):
        for mark in marks.get(number, ()):
            early, late = mark.early, mark.late
            yield TokenMark(mark.chars + chars, early + tokens, late + tokens)
        if number not in marks and stretch.counted and stretch.ends:
            chars, tokens = chars + len(text_of(stretch.part)), tokens + len(stretch.ends)
            sent = sum(len(texts[each][1]) for each in marks if each < number)
            yield TokenMark(sent + chars, early + tokens - len(stretch.ends) + 1, late + tokens)


# -- Tokenizers that work without a network --------------------------------------------------------------------------
# The extra `tokens` has OpenAI's vocabularies. Without it, or for a model of another family, no tokenizer is used: one
# of another family would only look exact.

FAMILIES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"^(openai/)?(gpt-4o|gpt-4\.|gpt-[5-9]|chatgpt-|o[1-9](-|$)|gpt-oss)"), "o200k_base"),
    (re.compile(r"^(openai/)?gpt-(4|3\.5)(-|$)"), "cl100k_base"),
)
"""Pattern of a model's name -> its vocabulary, from OpenAI's table; the first that matches counts."""
BLOCK = 50_000
"""The number of characters per call of the tokenizer, which refuses texts of more than some 200,000 tokens."""


def splitter(model: str | None) -> Split | None:
    """The tokenizer of this model; None if none is known or installed."""
    name = next((name for pattern, name in FAMILIES if pattern.search(model or "")), None)
    return _load(name) if name else None


@cache
def _load(name: str) -> Split | None:
    try:
        encoding: Any = import_module("bpe_openai").get_encoding(name)
    except ImportError:
        return None
    return lambda text: list(_pieces(encoding, text))


def _pieces(encoding: Any, text: str) -> Iterator[str]:
    """The text token by token; bytes that end inside a character wait for the token that completes it."""
    for start in range(0, len(text), BLOCK):
        waiting = b""
        block = text[start : start + BLOCK].encode("utf-8", "replace").decode()  # a lone surrogate is not text
        for token in encoding.decode_tokens_bytes(encoding.encode_ordinary(block)):
            waiting += token
            try:
                piece = waiting.decode()
            except UnicodeDecodeError:
                yield ""
                continue
            waiting = b""
            yield piece
