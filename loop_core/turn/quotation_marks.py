"""Finds the marks that a model puts around a quotation (tags, a code fence, quotation marks), and the marks that close
them.

A mark of the answer itself, which was cut inside a tag or a fence, stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from loop_core.turn.continuation import has_tags


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
_FENCES = r"(?m)^[^\S\r\n]*(?:`{3,}|~{3,})"
_SPACE = re.compile(r"\s*")


def around(before: str, lead: str = "") -> tuple[list[Wrapper], str]:
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
            # An opener is directly before the words; with white space between, the sign closes earlier text.
            blank = before[len(bare) :].removesuffix(lead)
            # The bound is for hostile text, such as a line of asterisks.
            if pair is None or len(wrappers) > 8 or (blank and pair[1]):
                return wrappers, bare.strip()
            wrapper, at = Wrapper("pair", pair[0], re.escape(pair[1])), len(bare) - len(pair[0])
        wrappers.append(wrapper)
        before, lead = before[:at], ""


def closing_marks(
    text: str, segment: str, end: int, anchor: str, wrappers: Sequence[Wrapper], mark: str
) -> tuple[int, list[Wrapper]]:
    """The end of the quotation with its white space and the closing marks after it, and the wrappers that stay open."""
    blank = anchor[len(anchor.rstrip()) :]
    spent = trailing(segment, end, blank)
    inside = spent > end or segment.endswith(blank, 0, end)
    end = spent
    left: list[Wrapper] = []
    closed = False
    for wrapper in wrappers:
        own = wrapper.kind == "tag" and _is_own_mark(text, wrapper)
        # Innermost first: if one stays open, those around it cannot be closed.
        shut = None if left or own else re.compile(wrapper.closer).match(segment, end)
        # If all fences that follow are paired, this one ends the fence in which the text was cut.
        if shut is not None and is_own_fence(text, wrapper) and not _has_odd_fence(segment, shut.end()):
            shut = None
        if shut is None:
            left.append(wrapper)
        else:
            end, closed = shut.end(), closed or shut.end() > end  # nothing closes an ellipsis
    if mark and not has_tags(text, mark):
        shut = re.compile(rf"\s*</{mark}>").match(segment, end)
        if shut is not None:
            end, closed = shut.end(), True
    # The white space at the end of the anchor may come after the closing tag as well as before it.
    if closed and not inside:
        end = trailing(segment, end, blank)
    laid_out = _LAID_OUT.match(segment, end) if closed and _LAID_OUT.search(text) is None else None
    return (laid_out.end() if laid_out is not None else end), left


_BLOCK_QUOTE = re.compile(r"(?m)^[^\S\n]*>[^\S\n]*\Z")
_LINE_BREAK = re.compile(r"[^\S\n]*\n")
_SENTENCE_END = re.compile(r"[.:,;!\u2026]{1,3}[^\S\n]*\n")
_HALF_LINE = re.compile(r"[^\s;{}.!?:|>]\s?\Z")
_ODD_LINE_BREAK = re.compile(r"(?:\r?\n)+(?= ?[^\W_A-Z]|[)\]},.;:!?%\u0300-\u036f\u200d\ufe0e\ufe0f])")
_LAID_OUT = re.compile(r"(?:\r?\n)+(?= [^\W\d_A-Z])")
"""A pattern for line breaks between a closed wrapper and a continuation that begins with a blank. They are not part of
the sentence, unless the text has such lines."""


def trailing(segment: str, end: int, blank: str) -> int:
    """The end of the quotation's white space, as far as it repeats the white space at the end of the text."""
    if not blank or segment.endswith(blank, 0, end):
        return end
    # Models write line breaks in either style.
    again = re.compile(r"\r?\n".join(map(re.escape, re.split(r"\r?\n", blank)))).match(segment, end)
    if again is not None:
        return again.end()
    come = _SPACE.match(segment, end)
    return come.end() if come is not None and blank.startswith(come[0]) else end


def may_lay_out(text: str, before: str, segment: str, words_end: int, end: int) -> bool:
    """Whether a line break after a quotation may be no part of the text: the quotation is in a mark, and what follows
    may be the rest of the text's last line; or it is part of a sentence of its own, whose beginning is `before`."""
    if _BLOCK_QUOTE.search(before):
        return _LINE_BREAK.match(segment, end) is not None
    if not segment[words_end:end].strip():
        return False
    if any(map(str.isalnum, around(before.rpartition("\n")[2])[1])) and _SENTENCE_END.match(segment, end):
        return True
    if text.endswith((" ", "\t", "\n")):
        return _LINE_BREAK.match(segment, end) is not None
    return bool(_HALF_LINE.search(text) and _ODD_LINE_BREAK.match(segment, end))


def _is_own_mark(text: str, wrapper: Wrapper) -> bool:
    """Whether the answer itself has an open mark of this kind: then the mark belongs to the quotation, and stays."""
    if wrapper.kind == "tag":
        name = re.escape(wrapper.opener)
        return len(re.findall(rf"<{name}[\s>]", text)) > len(re.findall(rf"</{name}\s*>", text))
    return is_own_fence(text, wrapper)


def is_own_fence(text: str, wrapper: Wrapper) -> bool:
    """Whether a mark is a code fence, and the answer itself was cut inside one."""
    return wrapper.kind == "fence" and _has_odd_fence(text)


def _has_odd_fence(text: str, start: int = 0) -> bool:
    """Whether a text has an odd number of code fences from `start` on."""
    return len(re.compile(_FENCES).findall(text, start)) % 2 == 1


def late_closing(text: str, segment: str, end: int, wrapper: Wrapper) -> tuple[int, int] | None:
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
        # An unpaired fence at the very end closes the wrapper.
        odd = _has_odd_fence(segment, end) != own
        return (shut.start(), len(segment)) if shut is not None and odd else (end, end) if own else None
    closer = next(pair[1] for pair in PAIRS if pair[0] == wrapper.opener)
    if wrapper.opener == closer:  # apostrophes, backticks and stars occur alone, a " seldom does
        odd = closer == '"' and (text.count(closer) + segment.count(closer, end)) % 2 == 1
        if odd and text.count(closer) % 2 and stripped.endswith(closer):
            return None  # the text was cut inside a quotation, whose end this may be
    else:
        whole = text + segment[end:]
        odd = whole.count(closer) > whole.count(wrapper.opener)
    if not stripped.endswith(closer) or len(stripped) - len(closer) < end:
        return end, end
    if odd:
        return len(stripped) - len(closer), len(stripped)
    return None if wrapper.opener == closer else (end, end)  # a mark that opens and closes alike may close all of it


_BLOCK = re.compile(r"[^\S\n]*(?:(?:`{3,}|~{3,})[\w+#.-]*[^\S\n]*\n|<think(?:ing)?>(?!`))")


def begins_block(text: str, following: str) -> bool:
    """Whether a segment begins with a code fence or with reasoning inside a line of the text, where neither can begin:
    the model wraps the continuation, or has begun a new message."""
    line = text[text.rfind("\n") + 1 :]
    return _BLOCK.match(following) is not None and "<think" not in text and any(map(str.isalpha, line))


_QUOTATION = r'"[^"]+"|\u201c[^\u201c\u201d]+\u201d|\u201e[^\u201e\u201c]+\u201c|\u00ab[^\u00ab\u00bb]+\u00bb'
_WORD_END = r"[^\W\d_]{3,}\Z"  # not `f` or `rb`, which may prefix a Python string


def is_quoted_whole(text: str, following: str) -> bool:
    """Whether a segment that begins directly after a word is one quotation, and the text holds no such mark."""
    quotation = re.fullmatch(_QUOTATION, following.rstrip())
    return quotation is not None and quotation[0][0] not in text and re.search(_WORD_END, text[-40:]) is not None
