"""Finds the quoted anchor at the beginning of a continuation, even if the model wrote more around the quotation.

Models put chatter before the quotation, or tags, quotation marks or a code fence around it; they fold its white space,
or quote only its last line. The caller cuts everything up to the end of the quotation, and the closing mark of a
wrapper around it. If it is uncertain that a text is the quotation, none is found and nothing is cut.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from loop_core.turn.continuation import FOLDS, OPENING_CHARS, find_opening, has_tags, prompt_end

LONG_QUOTATION = 24
"""The least number of characters of a quotation after text that is neither a wrapper nor a known opening."""
SHORT_QUOTATION = 8
"""A shorter quotation is accepted only at the very beginning, or inside a wrapper that closes after it."""

LEAST_EQUAL = 4
"""The least number of equal characters, without white space, beside two runs of the same words. Fewer may be chance."""
COMPARED_CHARS = 200
"""The number of characters beside the words that are compared."""
ALIKE_CHARS = 10
"""The least length of a run of characters that is in two rows. Rows of JSON may share no more than `, "name": "`."""
ROW_CHARS = 2000
"""The number of last characters of a text in which its rows are looked for."""


class Quotation(NamedTuple):
    """Where the quoted words are, or which part of our prompt has to be removed if they are absent."""

    cut: int
    """The number of characters at the beginning of the segment that are left out."""
    removals: tuple[tuple[int, int], ...] = ()
    """Further ranges of the segment that are left out: the end of a wrapper around it, marks of our prompt."""
    present: bool = True
    doubt: str = ""
    """The reason why the segment may not continue the text at the cut; empty if it does."""


class Wrapper(NamedTuple):
    """A text before the quotation, and the text that closes it."""

    kind: str
    opener: str
    closer: str
    """A regular expression for the closing text, matched right after the words."""


PAIRS: tuple[tuple[str, str], ...] = (
    ('"', '"'), ("'", "'"), ("`", "`"), ("*", "*"), ("_", "_"), ("\u201c", "\u201d"), ("\u201e", "\u201c"),
    ("\u2018", "\u2019"), ("\u00ab", "\u00bb"), ("\u2039", "\u203a"), ("\u300c", "\u300d"), ("\u300e", "\u300f"),
    ("[", "]"), ("(", ")"), ("\u2026", ""), ("...", ""),
)
"""The marks that open and close a quotation, also several times in a row. Nothing closes an ellipsis."""

# Each matches right before the words: an opening tag with its attributes, an opening fence with its language.
# Compiled by `re` when an anchor is first looked for.
_TAG = r"<([A-Za-z][\w.:-]{0,40})(?:\s[^<>]{0,80})?>\s*\Z"
_FENCE = r"(`{3,}|~{3,})[^\S\r\n]*[\w+#.-]{0,30}[^\S\r\n]*(?:\r?\n\s*)?\Z"
_SPACE = re.compile(r"\s*")
_FENCES = r"(?m)^[^\S\r\n]*(?:`{3,}|~{3,})"


def find_quotation(text: str, segment: str, anchor: str, mark: str) -> Quotation:
    """Finds where a segment quotes `anchor`, the end of `text`; `mark` is the name of the tags that asked for it."""
    start = prompt_end(segment, mark)
    # From the surest form to the least sure, so that a plain quotation never depends on the rules about wrappers.
    at = (_at_beginning(segment, start, anchor) or _behind_other_text(text, segment, start, anchor)
          or _last_line(text, segment, start, anchor))
    if at is None:
        return Quotation(start, _marks(text, segment, start, mark, found=False), present=False)
    begin, end = at
    wrappers = _wrappers(text, segment[start:begin], anchor)
    end, open_still = _closing_marks(text, segment, end, anchor, wrappers, mark)
    late = [_late_closing(text, segment, end, wrapper) for wrapper in open_still]
    gone = {each for each in late if each is not None and each[0] < each[1]} | set(_marks(text, segment, end, mark))
    doubt, blank, own = "", anchor[len(anchor.rstrip()) :], text[: len(text) - len(anchor)]
    behind = (at[1], _trailing(segment, at[1], blank))
    if None in late:
        doubt = "what wraps it is not closed"
    elif any(_is_own_fence(text, each) and re.compile(each.closer).match(segment, place)
             for each in wrappers for place in behind):
        doubt = "the text is cut in a code fence, and the mark behind these words may end it or what wraps the words"
    elif segment[at[1] : end].strip() and text[-1:].isalnum() and _ODD_LINE_BREAK.match(segment, end):
        doubt = "a line break follows the mark that closes the quotation, and may not belong to the text"
    elif any(each.kind == "pair" and each.closer and own.endswith(each.opener) for each in wrappers[:1]):
        doubt = "the text has the same mark before these words, and the one behind them may be a part of it"
    elif blank and end == at[1] and not segment.endswith(blank, 0, end) and segment[end : end + 1].isspace():
        doubt = "the white space behind these words is not that of the text, and may be a part of it"
    elif (_may_come_again(text, segment[start : at[1]]) or _goes_on_alike(segment, start, at)
          or _shares_row(own.rstrip(), segment[start:begin])
          or (text.find(anchor) < len(own) and _has_more_behind_chatter(segment[start:begin]))):
        doubt = "the text repeats itself, and these words may be the next ones"
    return Quotation(end, _disjoint(sorted(gone)), doubt=doubt)


def _at_beginning(segment: str, start: int, anchor: str) -> tuple[int, int] | None:
    """Finds the anchor unchanged, at the very beginning or directly after our own prompt."""
    blank = _SPACE.match(segment, start) if start else None
    for begin in (start, blank.end()) if blank is not None else (start,):
        if segment.startswith(anchor, begin):
            return begin, begin + len(anchor)
    return None


def _behind_other_text(text: str, segment: str, start: int, anchor: str) -> tuple[int, int] | None:
    """Finds the anchor behind other text, ignoring differences in white space."""
    core = anchor.strip()
    if not core:
        return None
    # The search is bounded by OPENING_CHARS: further inside, the same words are the text going on.
    pattern = folded_pattern(core)
    # Computed at the first need alone: it searches the whole answer.
    once: bool | None = None
    for place in pattern.finditer(segment, start, start + OPENING_CHARS):
        begin, end = place.span()
        wrappers, before = _around(segment[start:begin])
        is_opening = not before or find_opening(before) is not None
        shut = bool(wrappers) and _closing_marks(text, segment, end, anchor, wrappers, "")[1] == []
        # A few characters occur by chance, so they count only if a wrapper closes right after them.
        if len(core) < SHORT_QUOTATION:
            if shut and is_opening and segment[begin:end] == core:
                return begin, end
        # Behind other words the words may as well be those of the next row, if the text repeats its rows.
        elif not shut and _is_next_row(text, segment, (start, begin, end), anchor, is_opening):
            continue
        elif is_opening and (wrappers or before or len(core) >= LONG_QUOTATION):
            return begin, end
        elif len(core) >= LONG_QUOTATION:
            more = _folded_end(text[: len(text) - len(anchor)], segment[start:begin])
            if not more and any(map(str.isalnum, before)) and pattern.search(segment, begin + 1) is not None:
                return None  # the segment repeats them, as the rows of a list do, and what is before them may be new
            if once is None:
                once = _is_at_end_only(pattern, text)
            if once or more:
                return begin, end
    return None


def _is_next_row(text: str, segment: str, at: tuple[int, int, int], anchor: str, is_opening: bool) -> bool:
    """Whether the segment and the end of the text are alike beyond the words. Then a row of the text comes again, and
    nothing was quoted."""
    start, begin, end = at
    own, before = text[: len(text) - len(anchor)].rstrip(), _behind_chatter(segment[start:begin]).rstrip()
    first, after = segment[start:].lstrip()[:COMPARED_CHARS], segment[end:].lstrip()
    if len(after) >= LONG_QUOTATION and after[:LONG_QUOTATION] in before:
        return True  # what follows the words came before them too
    if _folded_end(own, before) or (is_opening and own and before.endswith(own)):
        return False  # more of the text was quoted than was asked for
    last = own[len(own) - shared_length(own[: -COMPARED_CHARS - 1 : -1], before[::-1]) :]
    same = last + first[: shared_length(first, after)]
    return len("".join(same.split())) >= LEAST_EQUAL


def _may_come_again(text: str, words: str) -> bool:
    """Whether a text that ends with the quoted words may also continue with them: they are a single character, consist
    of equal parts, or end with the text that comes before them."""
    size = len(words)
    if not size or not text.endswith(words):
        return False
    before = text[: len(text) - size][-size:]
    return size == 1 or (words + words).find(words, 1) < size or (len(before) >= LEAST_EQUAL and words.endswith(before))


def _goes_on_alike(segment: str, start: int, at: tuple[int, int]) -> bool:
    """Whether a segment has other text before the words, and begins again as it began right behind them: then both may
    be the next rows of a list."""
    begin, end = at
    first = segment[start : start + COMPARED_CHARS].lstrip()[:LONG_QUOTATION]  # the indent of code proves nothing
    return begin > start and bool(first) and segment[end : end + COMPARED_CHARS].lstrip().startswith(first)


def _shares_row(own: str, before: str) -> bool:
    """Whether the segment before the words holds a run of characters of the answer, and quotes no more than was asked
    for: then it may be the next row of the answer, up to the same words."""
    before = _behind_chatter(before)
    if _folded_end(own, before) or (own and before.rstrip().endswith(own)):
        return False
    before = _around(before)[1]
    near = own[-ROW_CHARS:]
    return any(before[place : place + ALIKE_CHARS] in near for place in range(len(before) - ALIKE_CHARS + 1))


def _behind_chatter(before: str) -> str:
    """The text before the words, without a line of chatter: it is no row, and answers begin with the same words."""
    return before if find_opening(before) is None else before.split("\n", 1)[-1]


def _has_more_behind_chatter(before: str) -> bool:
    more = _behind_chatter(before)
    return more != before and _around(more)[1].strip() != ""


def shared_length(one: str, other: str) -> int:
    """The number of characters that two texts share at their beginning."""
    low, high = 0, min(len(one), len(other))  # by halves: slices are compared in C, characters in Python
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
    before = _around(segment[start : places[0].start()])[1]
    # Unknown words before a part of the anchor may be new text: the row of a list has such a line too.
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
    """Whether a text ends with these words, regardless of white space: then more was quoted than was asked for."""
    core = words.split()
    return bool(core) and " ".join(text[-2 * len(words) - LONG_QUOTATION :].split()).endswith(" ".join(core))


# -- wrappers --------------------------------------------------------------------------------------------------------


def _wrappers(text: str, before: str, anchor: str) -> list[Wrapper]:
    """The wrappers around the quotation; none if more of the text was quoted than was requested."""
    more = _behind_chatter(before)
    if any(map(str.isalnum, more)) and _folded_end(text[: len(text) - len(anchor)], more):
        return []
    return _around(before, anchor[: len(anchor) - len(anchor.lstrip())])[0]


def _around(before: str, lead: str = "") -> tuple[list[Wrapper], str]:
    """The wrappers at the end of `before`, the text before the words, innermost first; and the text before the
    wrappers. `lead` is the white space that the words begin with; it tells tags on separate lines from others."""
    wrappers: list[Wrapper] = []
    while True:
        bare = before.rstrip()
        fence, tag = re.search(_FENCE, before), re.search(_TAG, before)
        if fence is not None:
            wrapper = Wrapper("fence", fence[1], rf"[^\S\r\n]*(?:\r?\n)?[^\S\r\n]*{fence[1]}[^\S\r\n]*(?:\r?\n|\Z)")
            at = fence.start()
        elif tag is not None:
            line = r"(?:\r?\n)?" if "\n" in before[len(bare) :].removesuffix(lead) else ""
            wrapper = Wrapper("tag", tag[1], rf"\s*</{re.escape(tag[1])}\s*>{line}")
            at = tag.start()
        else:
            pair = next((pair for pair in PAIRS if bare.endswith(pair[0])), None)
            # An opener is right before the words; with a blank between, the sign closes earlier text.
            blank = before[len(bare) :].removesuffix(lead)
            # The bound is for hostile text, such as a line of asterisks, each of which would be a wrapper.
            if pair is None or len(wrappers) > 8 or (blank and pair[1]):
                return wrappers, bare.strip()
            wrapper, at = Wrapper("pair", pair[0], re.escape(pair[1])), len(bare) - len(pair[0])
        wrappers.append(wrapper)
        before, lead = before[:at], ""


def _closing_marks(
    text: str, segment: str, end: int, anchor: str, wrappers: Sequence[Wrapper], mark: str
) -> tuple[int, list[Wrapper]]:
    """The end of the quotation with its white space and the closing marks after it, and the wrappers that stay open."""
    blank = anchor[len(anchor.rstrip()) :]
    spent = _trailing(segment, end, blank)
    inside = spent > end or segment.endswith(blank, 0, end)
    end = spent
    left: list[Wrapper] = []
    closed = False
    for wrapper in wrappers:
        own = wrapper.kind == "tag" and _is_own_mark(text, wrapper)
        # Innermost first: once one stays open, what follows cannot close those around it.
        shut = None if left or own else re.compile(wrapper.closer).match(segment, end)
        # Fences come in pairs: if all that follow have one, this one ends the fence in which the text was cut.
        if shut is not None and _is_own_fence(text, wrapper) and not _has_odd_fence(segment, shut.end()):
            shut = None
        if shut is None:
            left.append(wrapper)
        else:
            end, closed = shut.end(), True
    if mark and not has_tags(text, mark):
        shut = re.compile(rf"\s*</{mark}>").match(segment, end)
        if shut is not None:
            end, closed = shut.end(), True
    # The white space at the end of the anchor may come after the closing tag as well as before it.
    if closed and not inside:
        end = _trailing(segment, end, blank)
    laid_out = _LAID_OUT.match(segment, end) if closed else None
    return (laid_out.end() if laid_out is not None else end), left


_ODD_LINE_BREAK = re.compile(r"(?:\r?\n)+(?=[^\W_A-Z])")
"""A pattern for line breaks between a closed wrapper and a word, which may be the rest of the line before."""
_LAID_OUT = re.compile(r"(?:\r?\n)+(?= [^\W\d_A-Z])")
"""A pattern for line breaks between a closed wrapper and a continuation that begins with a blank. They are not part of
the sentence."""


def _trailing(segment: str, end: int, blank: str) -> int:
    """The end of the quotation's white space, so far as it repeats the white space at the end of the text."""
    if not blank or segment.endswith(blank, 0, end):
        return end
    # Models write a line break in either style, whichever the text has.
    again = re.compile(r"\r?\n".join(map(re.escape, re.split(r"\r?\n", blank)))).match(segment, end)
    if again is not None:
        return again.end()
    come = _SPACE.match(segment, end)
    return come.end() if come is not None and blank.startswith(come[0]) else end


def _is_own_mark(text: str, wrapper: Wrapper) -> bool:
    """Whether the answer itself has an open mark of this kind: then the mark was quoted with the words, and stays."""
    if wrapper.kind == "tag":
        name = re.escape(wrapper.opener)
        return len(re.findall(rf"<{name}[\s>]", text)) > len(re.findall(rf"</{name}\s*>", text))
    return _is_own_fence(text, wrapper)


def _is_own_fence(text: str, wrapper: Wrapper) -> bool:
    """Whether a mark is a code fence, and the answer itself was cut inside one."""
    return wrapper.kind == "fence" and _has_odd_fence(text)


def _has_odd_fence(text: str, start: int = 0) -> bool:
    """Whether a text has an odd number of code fences from `start` on."""
    return len(re.compile(_FENCES).findall(text, start)) % 2 == 1


def _late_closing(text: str, segment: str, end: int, wrapper: Wrapper) -> tuple[int, int] | None:
    """The range of a wrapper's closing mark at the very end of the segment; an empty range if none is needed, None if
    it is missing."""
    own = _is_own_mark(text, wrapper)
    if (own and wrapper.kind != "fence") or not wrapper.closer:
        return end, end
    stripped = segment.rstrip()
    if wrapper.kind == "tag":
        name = re.escape(wrapper.opener)
        shut = re.compile(rf"\s*</{name}\s*>\Z").search(stripped, end)
        return (shut.start(), shut.end()) if shut is not None else None
    if wrapper.kind == "fence":
        shut = re.compile(rf"(?:\r?\n|(?<=\n)|\A)[^\S\r\n]*{wrapper.opener}\Z").search(stripped, end)
        # Fences come in pairs: one too many at the very end closes the wrapper.
        odd = _has_odd_fence(segment, end) != own
        return (shut.start(), len(segment)) if shut is not None and odd else (end, end) if own else None
    closer = next(pair[1] for pair in PAIRS if pair[0] == wrapper.opener)
    if wrapper.opener == closer:  # apostrophes, backticks and stars occur alone in prose and code, a " hardly does
        odd = closer == '"' and segment.count(closer, end) % 2 == 1 and text.count(closer) % 2 == 0
    else:
        whole = text + segment[end:]
        odd = whole.count(closer) > whole.count(wrapper.opener)
    if odd and stripped.endswith(closer) and len(stripped) - len(closer) >= end:
        return len(stripped) - len(closer), len(stripped)
    return end, end


# -- marks of our own prompt -----------------------------------------------------------------------------------------


def _marks(text: str, segment: str, start: int, mark: str, found: bool = True) -> tuple[tuple[int, int], ...]:
    """The tags of our prompt from `start` on: closing ones without an opening one and, unless the quotation was found,
    opening ones at the beginning of the segment. Tags of that name that belong to the answer are balanced, and stay."""
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
