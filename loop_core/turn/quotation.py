"""Finds the quoted anchor at the beginning of a continuation, even if the model wrote more around the quotation.

Models put chatter before the quotation, or tags, quotation marks or a code fence around it; they change its white
space, or quote only its last line. The caller cuts everything up to the end of the quotation, and the closing mark of a
wrapper. If it is uncertain whether a text is the quotation, none is found and nothing is cut.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from loop_core.turn.continuation import FOLDS, OPENING_CHARS, find_opening, has_tags, prompt_end
from loop_core.turn.quotation_marks import (
    Wrapper,
    around,
    begins_block,
    closing_marks,
    is_own_fence,
    late_closing,
    may_lay_out,
    trailing,
)

LONG_QUOTATION = 24
"""The least number of characters of a quotation after text that is neither a wrapper nor a known opening."""
SHORT_QUOTATION = 8
"""A shorter quotation is accepted only at the very beginning, or inside a wrapper that closes after it."""

LEAST_EQUAL = 4
"""The least number of equal characters, without white space, beside two occurrences of the words. Fewer may be
chance."""
COMPARED_CHARS = 200
"""The number of characters beside the words that are compared."""
ALIKE_CHARS = 10
"""The least length of a substring that two rows share. Rows of JSON may share no more than `, "name": "`."""
ROW_CHARS = 2000
"""The number of characters at the end of a text in which rows are searched."""


class Quotation(NamedTuple):
    """Where the quoted words are, or which part of the prompt has to be removed if they are absent."""

    cut: int
    """The number of characters at the beginning of the segment that are left out."""
    removals: tuple[tuple[int, int], ...] = ()
    """Further ranges of the segment that are left out: the end of a wrapper, marks of the prompt."""
    present: bool = True
    doubt: str = ""
    """The reason why the segment may not continue the text at the cut; empty if it does."""


_SPACE = re.compile(r"\s*")
_SPACES = re.compile(r"\s+")
_JSON = re.compile(r"""\{\s*"[^"]*"\s*:\s*[\["]+\s*\Z""")
"""A pattern for the beginning of an object whose first member holds the words that follow."""


def find_quotation(text: str, segment: str, anchor: str, mark: str) -> Quotation:
    """Finds where a segment quotes `anchor`, the end of `text`; `mark` is the name of the tags in the prompt."""
    start, own = prompt_end(segment, mark), text[: len(text) - len(anchor)]
    # The surest form first, so that a plain quotation never depends on the rules about wrappers.
    at = (_at_beginning(segment, start, anchor) or _after_other_text(text, own, segment, start, anchor)
          or _last_line(text, segment, start, anchor))
    if at is None:
        return Quotation(start, _marks(text, segment, start, mark, found=False), present=False)
    begin, end = at
    wrappers = _wrappers(own, segment[start:begin], anchor)
    end, open_still = closing_marks(text, segment, end, anchor, wrappers, mark)
    late = [late_closing(text, segment, end, wrapper) for wrapper in open_still]
    gone = {each for each in late if each is not None and each[0] < each[1]} | set(_marks(text, segment, end, mark))
    doubt, blank = "", anchor[len(anchor.rstrip()) :]
    after = (at[1], trailing(segment, at[1], blank))
    if None in late:
        doubt = "the mark around the quotation is not closed"
    elif any(is_own_fence(text, each) and re.compile(each.closer).match(segment, place)
             for each in wrappers for place in after):
        doubt = "the text is cut in a code fence, and the mark after these words may end it or what wraps the words"
    elif may_lay_out(text, segment[start:begin], segment, at[1], end):
        doubt = "a line break follows the quotation or the mark that closes it, and may not belong to the text"
    elif any(each.kind == "pair" and each.closer and own.endswith(each.opener) for each in wrappers[:1]):
        doubt = "the text has the same mark before these words, and the one after them may be a part of it"
    elif any(_may_close_at_the_end(segment, at[1], end, each) for each in wrappers[:1]):
        doubt = "the mark after these words may be a part of the text, and the one at the end may close the quotation"
    elif blank and end == at[1] and not segment.endswith(blank, 0, end) and segment[end : end + 1].isspace():
        doubt = "the white space after these words is not that of the text, and may be a part of it"
    elif begins_block(text, segment[end : end + OPENING_CHARS]):
        doubt = "a code fence or reasoning begins inside the line that ends in these words"
    elif _JSON.search(segment[start:begin]) and not _folded_end(own, segment[start:begin]):
        doubt = "these words stand in JSON that the text does not have, and what follows may be written as JSON too"
    elif (_may_come_again(text, segment[start : at[1]], begin > start) or _goes_on_alike(segment, start, at)
          or (begin > start and not wrappers and _may_come_again(text, anchor, False))
          or _is_quoted_again(segment[end:], anchor) or _may_quote_more(text, segment, end, anchor)
          or _is_quoted_before(text, segment[start : at[1]], anchor)
          or _shares_row(own.rstrip(), segment[start:begin])
          or _has_more_after_chatter(own, segment[start:begin])
          or (begin > start and _may_be_next_row(text, segment[start : at[1]]))):
        doubt = "the text repeats itself, and these words may be the next ones"
    return Quotation(end, _disjoint(sorted(gone)), doubt=doubt)


def _at_beginning(segment: str, start: int, anchor: str) -> tuple[int, int] | None:
    """Finds the anchor unchanged, at the very beginning or directly after the engine's prompt."""
    blank = _SPACE.match(segment, start) if start else None
    for begin in (start, blank.end()) if blank is not None else (start,):
        if segment.startswith(anchor, begin):
            return begin, begin + len(anchor)
    return None


def _after_other_text(text: str, own: str, segment: str, start: int, anchor: str) -> tuple[int, int] | None:
    """Finds the anchor after other text, ignoring differences in white space."""
    core = anchor.strip()
    if not core:
        return None
    # The search is bounded by OPENING_CHARS: the same words further on belong to the continued text.
    pattern = folded_pattern(core)
    # Computed only when needed, since it searches the whole answer.
    once: bool | None = None
    for place in pattern.finditer(segment, start, start + OPENING_CHARS):
        begin, end = place.span()
        wrappers, before = around(segment[start:begin])
        is_opening = not before or find_opening(before) is not None
        shut = bool(wrappers) and closing_marks(text, segment, end, anchor, wrappers, "")[1] == []
        # A few characters occur by chance, so they count only if a wrapper closes right after them.
        if len(core) < SHORT_QUOTATION:
            if shut and is_opening and segment[begin:end] == core:
                return begin, end
        # If the text repeats its rows, words after other words may be those of the next row.
        elif not shut and _is_next_row(own.rstrip(), segment, (start, begin, end), is_opening):
            continue
        elif is_opening and (wrappers or before or len(core) >= LONG_QUOTATION):
            return begin, end
        # After other words the indent of code proves nothing.
        elif len(" ".join(core.split()) if any(map(str.isalnum, before)) else core) >= LONG_QUOTATION:
            more = _folded_end(own, segment[start:begin])
            if not more and any(map(str.isalnum, before)) and pattern.search(segment, begin + 1) is not None:
                return None  # the segment repeats the words, as rows of a list do, and the text before them may be new
            if once is None:
                once = _is_at_end_only(pattern, text)
            if once or more:
                return begin, end
    return None


def _is_next_row(own: str, segment: str, at: tuple[int, int, int], is_opening: bool) -> bool:
    """Whether the segment and the end of the text are equal beyond the words. Then a row of the text is repeated, and
    nothing was quoted."""
    start, begin, end = at
    before = _without_chatter(segment[start:begin]).rstrip()
    first, after = segment[start:].lstrip()[:COMPARED_CHARS], segment[end:].lstrip()
    if len(after) >= LONG_QUOTATION and after[:LONG_QUOTATION] in before:
        return True  # the text after the words is also before them
    if _folded_end(own, before) or (is_opening and own and before.endswith(own)):
        return False  # more of the text was quoted than requested
    last = own[len(own) - shared_length(own[: -COMPARED_CHARS - 1 : -1], before[::-1]) :]
    same = last + first[: shared_length(first, after)]
    return len("".join(same.split())) >= LEAST_EQUAL


def _may_come_again(text: str, words: str, more: bool) -> bool:
    """Whether a text that ends with the quoted words may also continue with them: they are a single character, consist
    of equal parts, end with the text before them, or occur twice in a row. If more was quoted than requested, also if
    the text before them has the same end, or if they begin with a shorter end of the text, which may be all that was
    quoted."""
    blank = text[len(text.rstrip()) :]
    words = _SPACES.sub(" ", words.rstrip() + blank)
    size = len(words)
    text = _SPACES.sub(" ", text[-4 * size - ROW_CHARS :])
    if not size or not text.endswith(words):
        return False
    before = text[: len(text) - size][-size:]
    return (size == 1 or is_periodic(words) or words in (before + words)[:-1]
            or (len(before) >= LEAST_EQUAL and words.endswith(before))
            or (more and before.endswith(words[-ALIKE_CHARS:]))
            or (more and any(words.endswith(words[:part]) for part in range(SHORT_QUOTATION, size))))


def is_periodic(words: str) -> bool:
    """Whether words are a row of equal parts, the last of which may be cut."""
    period = words.find(words[: len(words) - len(words) // 2], 1)
    return period > 0 and words.startswith(words[period:])


def _is_quoted_before(text: str, quoted: str, anchor: str) -> bool:
    """Whether the words occur earlier in what was taken for the quotation, and the text does not end with all of it:
    then the earlier ones may be the quotation, and the rest is new."""
    words, quoted = " ".join(anchor.split()), " ".join(quoted.split())
    return words in quoted[:-1] and not " ".join(text[-4 * len(quoted) - ROW_CHARS :].split()).endswith(quoted)


def _is_quoted_again(rest: str, anchor: str) -> bool:
    """Whether the words occur again directly after the quotation, as far as the segment goes."""
    again = rest[: len(anchor)]
    return len(again) >= min(SHORT_QUOTATION, len(anchor)) and anchor.startswith(again)


def _may_quote_more(text: str, segment: str, end: int, anchor: str) -> bool:
    """Whether the words are also at an earlier place of the text, and the segment repeats all that follows them there:
    then it may quote more than requested."""
    places = (place.end() for place in folded_pattern(anchor.strip()).finditer(text[-ROW_CHARS:]))
    rests = (text[-ROW_CHARS:][place:].lstrip() for place in places)
    following = segment[end : end + ROW_CHARS].lstrip()  # the white space at the end of the words is cut with them
    return any(len(rest) >= ALIKE_CHARS and following.startswith(rest) for rest in rests)


def _may_close_at_the_end(segment: str, words_end: int, end: int, wrapper: Wrapper) -> bool:
    """Whether a mark that opens and closes alike is right after the words and also at the end of the segment."""
    mark, rest = wrapper.opener, segment[end:].rstrip()
    alike = wrapper.kind == "pair" and wrapper.closer == re.escape(mark)
    return alike and mark in segment[words_end:end] and len(rest) > len(mark) and rest.endswith(mark)


def _goes_on_alike(segment: str, start: int, at: tuple[int, int]) -> bool:
    """Whether a segment has other text before the words, and the same text directly after them: then both may be the
    next rows of a list."""
    begin, end = at
    first = segment[start : start + COMPARED_CHARS].lstrip()[:LONG_QUOTATION]  # the indent of code proves nothing
    return begin > start and bool(first) and segment[end : end + COMPARED_CHARS].lstrip().startswith(first)


def _shares_row(own: str, before: str) -> bool:
    """Whether the segment before the words shares a substring with the answer, and quotes no more than requested: then
    it may be the next row of the answer, up to the same words."""
    before = _without_chatter(before)
    if _folded_end(own, before) or (own and before.rstrip().endswith(own)):
        return False
    before = around(before)[1]
    near = own[-ROW_CHARS:]
    return any(before[place : place + ALIKE_CHARS] in near for place in range(len(before) - ALIKE_CHARS + 1))


def _without_chatter(before: str) -> str:
    """The text before the words without a line of chatter, which is not a row, although answers begin with the same
    words."""
    return before if find_opening(before) is None else before.split("\n", 1)[-1]


def _has_more_after_chatter(own: str, before: str) -> bool:
    """Whether words that are not the end of the answer stand between a line of chatter and the quotation."""
    more = _without_chatter(before)
    return more != before and any(map(str.isalnum, around(more)[1])) and not _folded_end(own, more)


def _may_be_next_row(text: str, quoted: str) -> bool:
    """Whether what was taken for the quotation, as far as the text ends with it, may be the next row of the text: the
    text before it ends alike, or other words pass into it without a blank."""
    text, quoted = text[-2 * ROW_CHARS :].rstrip(), quoted.rstrip()
    size = shared_length(text[::-1], quoted[::-1])
    own, other = text[: len(text) - size], quoted[: len(quoted) - size]
    joined = other[-1:].isalnum() and not quoted[len(other) : len(other) + 1].isspace()
    return size >= ALIKE_CHARS and (joined or own.rstrip().endswith(text[-ALIKE_CHARS:]))


def shared_length(one: str, other: str) -> int:
    """The length of the common beginning of two texts."""
    low, high = 0, min(len(one), len(other))  # binary search, because slices are compared in C and characters in Python
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def _last_line(text: str, segment: str, start: int, anchor: str) -> tuple[int, int] | None:
    """Finds only the last line of the anchor, if it is long and occurs once in the answer and once in the segment's
    beginning."""
    lines = anchor.strip().splitlines()
    line = lines[-1].strip() if len(lines) > 1 else ""
    if len(line) < LONG_QUOTATION:
        return None
    pattern = folded_pattern(line)
    places = list(pattern.finditer(segment, start, start + OPENING_CHARS))
    if len(places) != 1 or not _is_at_end_only(pattern, text):
        return None
    before = around(segment[start : places[0].start()])[1]
    # Unknown words before a part of the anchor may be new text, such as a row of a list with the same line.
    own = not any(map(str.isalnum, before)) or find_opening(before) is not None
    return places[0].span() if own or _folded_end(text[: text.rindex(line)], before) else None


def folded_pattern(words: str) -> re.Pattern[str]:
    """A pattern for the words that ignores the length of white space and the style of quotation marks."""
    return re.compile(r"\s+".join("".join(map(_either, word)) for word in words.split()))


def _either(char: str) -> str:
    plain = FOLDS.get(char, char)
    alike = [plain, *(fancy for fancy, each in FOLDS.items() if each == plain)]
    return re.escape(char) if len(alike) == 1 else f"[{''.join(map(re.escape, alike))}]"


def _is_at_end_only(pattern: re.Pattern[str], text: str) -> bool:
    """Whether the text contains the words only at its end; overlapping occurrences count."""
    first = pattern.search(text)
    return first is not None and pattern.search(text, first.start() + 1) is None


def _folded_end(text: str, words: str) -> bool:
    """Whether a text ends with these words, regardless of white space: then more was quoted than requested."""
    core = words.split()
    return bool(core) and " ".join(text[-2 * len(words) - LONG_QUOTATION :].split()).endswith(" ".join(core))


def _wrappers(own: str, before: str, anchor: str) -> list[Wrapper]:
    """The wrappers around the quotation; none if more of the text was quoted than was requested."""
    more = _without_chatter(before)
    if any(map(str.isalnum, more)) and _folded_end(own, more):
        return []
    return around(before, anchor[: len(anchor) - len(anchor.lstrip())])[0]


# -- marks of our own prompt -----------------------------------------------------------------------------------------


def _marks(text: str, segment: str, start: int, mark: str, found: bool = True) -> tuple[tuple[int, int], ...]:
    """The tags of the engine's prompt from `start` on: closing ones without an opening one and, unless the quotation
    was found, opening ones at the beginning of the segment. The answer's own tags of that name are balanced, and
    stay."""
    if has_tags(text, mark) or f"{mark}>" not in segment:
        return ()
    spans: list[tuple[int, int]] = []
    tag = f"<{mark}>"
    # The answer may have been cut inside an opening tag of its own.
    depth = int(any(text.endswith(tag[:size]) and segment.startswith(tag[size:], start) for size in range(1, len(tag))))
    for place in re.finditer(rf"<(/?){mark}>", segment[start:]):
        span = (start + place.start(), start + place.end())
        if not place[1]:
            if found or segment[start : span[0]].strip():
                depth += 1
            else:
                spans.append(span)
        elif depth:
            depth -= 1
        else:
            spans.append(span)
    return tuple(spans)


def _disjoint(stretches: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    disjoint: list[tuple[int, int]] = []
    for begin, end in stretches:
        begin = max(begin, disjoint[-1][1]) if disjoint else begin
        if begin < end:
            disjoint.append((begin, end))
    return tuple(disjoint)
