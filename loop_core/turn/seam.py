"""Joins the segments of one answer without corrupting its text.

An overlap is never dropped merely because two ends match: `10` + `000` is `10000`, `book` + `keeper` has both its k's.
Only a quoted anchor that was requested, a prefill that the server echoed, or an overlap too long to be chance is cut.
Segments and decisions are kept and the text is derived, so another rule can be tried. A seam is verified if the
requested quotation was found, if the provider itself continues at the right place, or if no quotation was requested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from loop_core.turn import continuation
from loop_core.turn.continuation import JoinedText, Method, Seam, SeamDecision, SeamRule, Segment
from loop_core.turn.quotation import SHORT_QUOTATION, find_quotation, is_periodic, shared_length
from loop_core.turn.quotation_marks import begins_block, is_quoted_whole

ANCHOR_CHARS = 40
"""The number of last characters that the model is asked to quote as an anchor."""
# `10` + `000` is `10000`: two ends that match are ordinary text, so an overlap has to be long before it is cut.
OVERLAP_CHARS = 24
"""The least number of characters of an overlap that is cut. A shorter overlap may be chance and is kept."""
OVERLAP_WORDS = 3  # or a full line: fewer may be chance as well
RESTART_CHARS = 64
"""A segment that begins with this many of the answer's first characters has begun the answer again."""
ECHO_LEAST = 8
"""If it is unknown whether a server echoes, a repeated prefill of this many characters makes the seam doubtful."""
ECHO_CHARS = 24
"""If it is unknown whether a server echoes, a repeated prefill of this many characters counts as an echo. A shorter one
may be genuine text."""


def join(segments: Sequence[Segment], rule: SeamRule = SeamRule.CAREFUL) -> JoinedText:
    """Joins segments: the text of the answer, and the decision at every seam."""
    if len(segments) < 2:
        return JoinedText(segments[0].text if segments else "", ())
    joined_segments = _join(tuple(segments), rule)
    return JoinedText(joined_segments.text, joined_segments.seams)


class _JoinedSegments(NamedTuple):
    """Segments that are joined already, and to which another segment can be added."""

    segments: tuple[Segment, ...]
    rule: SeamRule
    text: str
    seams: tuple[Seam, ...] = ()
    base: str = ""
    """The text before the last segment, to which the join returns if that segment is replaced."""


_recent: list[_JoinedSegments] = []
"""The most recent joins, newest first: a turn requests each several times, and then the one with a further segment."""
_MOST_RECENT = 16


def _join(segments: tuple[Segment, ...], rule: SeamRule) -> _JoinedSegments:
    """Joins segments by adding the last ones to the longest recent join with which they begin. The join of all but the
    last is stored too, because the last segment changes with each event while a stream arrives."""
    # Compared, not hashed: a turn's segments stay the same objects, and another turn's differ in the first.
    recent = tuple(_recent)
    fits = (each for each in sorted(recent, key=lambda each: -len(each.segments))
            if each.rule is rule and segments[: len(each.segments)] == each.segments)
    base = next(fits, None) or _JoinedSegments(segments[:1], rule, segments[0].text)
    made = [base]
    for segment in segments[len(base.segments) :]:
        made = [_add(made[0], segment), made[0]]
    _recent[:] = [*made, *(each for each in recent if each is not base)][:_MOST_RECENT]
    return made[0]


def _add(before: _JoinedSegments, segment: Segment) -> _JoinedSegments:
    """The join with a further segment."""
    segments, rule, text, seams, base = before
    if segment.method is Method.AGAIN and rule is SeamRule.CAREFUL and seams and not seams[-1].sure:
        join_cut, stands = _repeated_cut(base, text, segments[-1], seams[-1], segment)
        # The answer to the repeated request replaces the doubted segment, whose seam becomes LEFT_OUT.
        if join_cut.decision is not SeamDecision.LEFT_OUT:
            text, seams = base, (*seams[:-1], stands)
    else:
        base, join_cut = text, RULES[rule](text, segment)
    text, seam, rest = _joint(text, segment.text, join_cut, len(seams) + 1)
    return _JoinedSegments((*segments, segment), rule, text + rest, (*seams, seam), base)


def _joint(text: str, following: str, join_cut: _Cut, index: int) -> tuple[str, Seam, str]:
    """Returns the text up to a seam, the seam, and the text that the segment adds; joins surrogate pairs."""
    text, cut = text[: join_cut.keep], join_cut.cut
    if join_cut.decision is SeamDecision.APART:
        text += APART
    # A token may end inside a surrogate pair: one segment ends with its first half, the next begins with the second.
    if text and "\ud800" <= text[-1] <= "\udbff" and cut < len(following):
        first = following[cut]
        if "\udc00" <= first <= "\udfff":
            text, cut = text[:-1] + _join_halves(text[-1], first), cut + 1
        elif first > "\uffff" and _first_half(first) == text[-1]:  # the whole character came again
            text = text[:-1]
        else:
            join_cut = join_cut._replace(why=f"{join_cut.why}; half of a character is missing", sure=False)
    gone = tuple((begin, following[begin:end]) for begin, end in join_cut.removals)
    seam = Seam(index, len(text), join_cut.decision, following[:cut], join_cut.why, join_cut.sure, gone)
    return text, seam, seam.remainder(following)


def _join_halves(high: str, low: str) -> str:
    return (high + low).encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _first_half(char: str) -> str:
    return char.encode("utf-16-le")[:2].decode("utf-16-le", "surrogatepass")


def added_chars(segments: Sequence[Segment], rule: SeamRule) -> int:
    """The number of characters that the last segment adds to the answer, without what it repeats or replaces."""
    whole = join(segments, rule)
    replaced = len(whole.seams) > 1 and whole.seams[-2].decision is SeamDecision.LEFT_OUT
    if replaced and segments[-1].method is Method.AGAIN:
        return len(whole.text) - whole.seams[-2].at  # it replaces the segment before
    before = join(segments[:-1], rule).text
    return len(whole.text) - len(before if before.strip() else "")  # white space alone does not count


def should_ask_again(segments: Sequence[Segment], rule: SeamRule = SeamRule.CAREFUL) -> bool:
    """Whether to request the quotation again: chatter, a refusal or a restart took its place."""
    if len(segments) < 2 or not segments[-1].anchor or segments[-1].method in (Method.AGAIN, Method.REPAIR):
        return False
    if rule is not SeamRule.CAREFUL or not segments[-1].text.strip():
        return False
    seam = join(segments, rule).seams[-1]
    return not seam.sure and (
        seam.decision is SeamDecision.RESTART or continuation.find_opening(segments[-1].text) is not None)


_SAID_BEFORE = "what follows these words was said before"
_REPETITION = "; the text repeats itself, and may go on like this"
APART = "\n\n"
"""The text between an answer and a text that does not continue it."""


class _Cut(NamedTuple):
    """One decision about a seam."""

    decision: SeamDecision
    keep: int
    """The number of characters of the text so far that stay."""
    cut: int
    """The number of characters at the beginning of the next segment that are left out."""
    why: str
    sure: bool = True
    removals: tuple[tuple[int, int], ...] = ()


def _as_sent(text: str, segment: Segment) -> _Cut:
    return _Cut(SeamDecision.AS_SENT, len(text), 0, "joined as sent")


def _longest_overlap(text: str, segment: Segment) -> _Cut:
    if not (overlap := _border(text, segment.text)):
        return _as_sent(text, segment)
    return _Cut(SeamDecision.OVERLAP, len(text), overlap, f"any overlap, {overlap} characters cut")


def _careful(text: str, segment: Segment) -> _Cut:
    if segment.method is Method.REPAIR:
        apart = _Cut(SeamDecision.APART, len(text), 0, "text beside a repaired call, set apart")
        return apart if text and segment.text else _as_sent(text, segment)
    if segment.method in (Method.BOOST, Method.NUDGE) and text.isspace():
        return _Cut(SeamDecision.RESTART, 0, 0, "the same request was answered, and nothing visible was before")
    if continuation.split_half(segment.stripped)[0].strip():  # a cut word too, which the model writes again
        gap = segment.stripped.removesuffix(word := segment.stripped.lstrip())
        cut = _careful(text.removesuffix(word), segment._replace(stripped=gap))
        decision = SeamDecision.WHITESPACE if cut.decision is SeamDecision.AS_SENT else cut.decision
        return cut._replace(decision=decision, why=f"{cut.why}; the cut word that the prefill left out was dropped")
    if segment.method is Method.PREFILL:
        return _prefill_cut(text, segment)
    # Claude's pause_turn and Gemini's continuation token repeat no text.
    if segment.method in (Method.ECHO, Method.TOKEN):
        return _whitespace_cut(text, segment) if segment.stripped else _Cut(
            SeamDecision.AS_SENT, len(text), 0, "the provider goes on by itself")
    if segment.method is Method.POLL:
        return _poll_cut(text, segment.text)
    if segment.anchor:
        return _quotation_cut(text, segment)
    repetition = _restart_cut(text, segment.text) or _overlap_cut(text, segment.text)
    if repetition is not None:
        return repetition
    if shared_length(text, segment.text) >= RESTART_CHARS:  # the text repeats itself; otherwise it would be a restart
        why = "it begins as the answer did, which repeats itself: it may go on like this, or have begun again"
        return _Cut(SeamDecision.UNVERIFIED, len(text), 0, why, False)
    again = text[len(text) - _end_that_comes_again(text, segment.text) :]
    if len(set(again)) >= OVERLAP_WORDS * 2 and not is_periodic(again):
        why = "it begins with the end of the text: it may repeat it, or the text may go on like this"
        return _Cut(SeamDecision.UNVERIFIED, len(text), 0, why, False)
    if is_quoted_whole(text, segment.text):
        why = "all of it is in quotation marks, right after a word: they may enclose the continuation"
        return _Cut(SeamDecision.UNVERIFIED, len(text), 0, why, False)
    if why := _new_message(text, segment.text):
        return _Cut(SeamDecision.UNVERIFIED, len(text), 0, why, False)
    return _Cut(SeamDecision.AS_SENT, len(text), 0, "no overlap, joined as sent")


def _quotation_cut(text: str, segment: Segment) -> _Cut:
    """The cut for a segment that was asked to begin with the last words of the text."""
    if not (following := segment.text):
        return _Cut(SeamDecision.AS_SENT, len(text), 0, "nothing came")
    quotation = find_quotation(text, following, segment.anchor, segment.mark)
    if quotation.present:
        rest = following[quotation.cut :].lstrip()
        doubt = quotation.doubt or (_SAID_BEFORE if _restart_cut(text, rest) or _overlap(text, rest) else "")
        why = f"quoted anchor, {quotation.cut} characters cut" + (f"; {doubt}" if doubt else "")
        return _Cut(SeamDecision.ANCHOR, len(text), quotation.cut, why, not doubt, quotation.removals)
    if (repetition := _restart_cut(text, following) or _overlap_cut(text, following)) is not None:
        return repetition._replace(removals=tuple(each for each in quotation.removals if each[0] >= repetition.cut))
    begun, words = following.strip(), segment.anchor.lstrip()
    # What the text also holds elsewhere may be new, such as a row of zeros or a line of code.
    again = _repeats(words, len(begun)) or text.find(begun) < text.rfind(words)
    if len(begun) >= SHORT_QUOTATION and words.startswith(begun) and not again:
        why = "it ended inside the words that were to be repeated"
        return _Cut(SeamDecision.ANCHOR, len(text), len(following), why)
    like = continuation.find_opening(following)
    why = "the words that were to be repeated did not come" + (f"; it begins like a {like.kind.value}" if like else "")
    return _Cut(SeamDecision.UNVERIFIED, len(text), quotation.cut, why, False, quotation.removals)


def _repeated_cut(base: str, text: str, doubted: Segment, seam: Seam, segment: Segment) -> tuple[_Cut, Seam]:
    """Decides whether the segment before or the answer to the repeated request is kept; returns the cut and the changed
    seam before it."""
    out = seam._replace(at=len(base), decision=SeamDecision.LEFT_OUT, cut=doubted.text, sure=True, removals=(),
                        why="it did not begin with the words that were to be repeated, and was requested once more")
    join_cut = _careful(base, segment._replace(method=Method.ANCHOR))
    if join_cut.sure and segment.text:
        return join_cut, out
    # Neither begins with the words: the one without chatter is kept, else the longer one.
    bare = continuation.find_opening(segment.text) is None and bool(segment.text.strip())
    clean = continuation.find_opening(doubted.text) is None
    stands = len(segment.text) > len(doubted.text) if bare is clean else bare
    if stands and join_cut.cut < len(segment.text):
        return join_cut, out
    why = "requested once more, it did not begin with the words either; the text before it was kept"
    return _Cut(SeamDecision.LEFT_OUT, len(text), len(segment.text), why), seam


def _prefill_cut(text: str, segment: Segment) -> _Cut:
    sent = text[: len(text) - len(segment.stripped)]
    # llama.cpp's server repeats the prefill in a whole answer and, depending on its build, in a stream.
    repeated = bool(sent) and segment.text.startswith(sent)
    if repeated and _is_echo(sent, segment.echoes):
        # The text after the echo continues the stripped prefill, so it may repeat the white space.
        rest = segment.text[len(sent) :]
        keep = len(sent) if rest.startswith(segment.stripped) else len(text)
        doubt = segment.echoes is None and (_repeats(sent, len(sent)) or _repeats(segment.text, len(sent)))
        why = f"echoed prefill, {len(sent)} characters cut{_REPETITION if doubt else ''}"
        return _Cut(SeamDecision.ECHO, keep, len(sent), why, not doubt)
    # A server without prefill support starts a new message, which may begin like the old one.
    if (restarted := _restart_cut(sent, segment.text)) is not None:
        return restarted if restarted.keep < len(sent) else restarted._replace(keep=len(text))
    # Nothing is cut, but the repeated text may be an echo.
    if segment.echoes is None and (_overlap(sent, segment.text) or (repeated and len(sent) >= ECHO_LEAST)):
        why = "the prefill's end comes again, and it is not known whether this server repeats it"
        return _Cut(SeamDecision.UNVERIFIED, len(text), 0, why, False)
    if why := _new_message(text.rstrip(" "), segment.text):  # a stripped blank may precede the next word
        return _Cut(SeamDecision.UNVERIFIED, len(text), 0, f"the prefill was not continued; {why}", False)
    if not segment.stripped:
        return _Cut(SeamDecision.AS_SENT, len(text), 0, "prefill, joined byte for byte")
    return _whitespace_cut(text, segment)


def _whitespace_cut(text: str, segment: Segment) -> _Cut:
    """The cut for a segment before which white space was stripped from the text."""
    blank, _ = continuation.split_half(segment.stripped)
    if blank and segment.text.startswith(blank):
        why = "the model repeated the white space that was stripped"
        return _Cut(SeamDecision.WHITESPACE, len(text) - len(segment.stripped), 0, why)
    if blank and segment.text[:1].isspace():
        why = "stripped white space restored; the segment begins with other white space, which may be a part of it"
        return _Cut(SeamDecision.WHITESPACE, len(text), 0, why, False)
    return _Cut(SeamDecision.WHITESPACE, len(text), 0, "stripped white space restored")


def _new_message(text: str, following: str) -> str:
    """Why a segment looks like a new message, whose opening is in upper case directly after a word; empty if none."""
    if begins_block(text, following):
        return "it begins with a code fence or reasoning inside a line of the text"
    like = continuation.find_opening(following) if _joins_closely(text) and following[:1].isupper() else None
    return f"it begins like a {like.kind.value}" if like else ""


def _joins_closely(text: str) -> bool:
    """Whether a text ends with a letter, a digit or the end of a sentence, after which a sentence needs a blank. An
    ellipsis needs none."""
    return text[-1:].isalnum() or (text.endswith((".", "!", "?")) and text[-2:-1].isalnum())


def _is_echo(text: str, echoes: bool | None) -> bool:
    """Whether an answer that begins with the prefill repeats it. A long repetition counts whatever the profile says,
    unless the text repeats itself."""
    if echoes is None:
        return len(text) >= ECHO_CHARS
    return echoes or (len(text) >= RESTART_CHARS and not _repeats(text, len(text)))


def _poll_cut(text: str, following: str) -> _Cut:
    """The cut for a response that was fetched again and therefore repeats all of its text so far."""
    if following.startswith(text):
        decision = SeamDecision.AS_SENT if not text else SeamDecision.RESTART
        return _Cut(decision, len(text), len(text), "fetched again, with more")
    if text.startswith(following):
        return _Cut(SeamDecision.RESTART, len(text), len(following), "fetched again, with nothing new")
    return _Cut(SeamDecision.RESTART, 0, 0, "fetched again; the newer text was kept")


def _restart_cut(text: str, following: str) -> _Cut | None:
    """The cut for an answer that began again; None if the beginnings differ, or if the text is so repetitive that the
    same beginning proves nothing."""
    same = shared_length(text, following)
    if same < RESTART_CHARS or _repeats(text, same) or _repeats(following, same):
        return None
    size = len(text)
    if same == size:
        return _Cut(SeamDecision.RESTART, size, size, f"the answer began again; {size} repeated characters cut")
    if same == len(following):
        why = "the answer began again and ended earlier; the text so far was kept"
        return _Cut(SeamDecision.RESTART, size, same, why, False)
    # The newer text is kept only if it is no shorter, so that nothing that the user may have read is lost.
    if len(following) >= size:
        return _Cut(SeamDecision.RESTART, 0, 0, "the answer began again differently; the newer text was kept")
    why = "the answer began again differently and is shorter; the text so far was kept"
    return _Cut(SeamDecision.RESTART, size, len(following), why, False)


def _repeats(text: str, size: int) -> bool:
    """Whether the first `size` characters of a text occur again in it, or are periodic, so that they may come next."""
    head = text[:size]
    # A table or a list repeats its rows, so a continuation may begin exactly like the answer.
    return text.find(head, 1) >= 0 or is_periodic(head)


def _overlap_cut(text: str, following: str) -> _Cut | None:
    size = _overlap(text, following)
    # A shorter overlap inside it fits too: then the rest may be new text.
    doubt = size > 0 and _border(following[1:size], following[:size]) >= OVERLAP_CHARS
    why = f"overlap, {size} characters cut{_REPETITION if doubt else ''}"
    return _Cut(SeamDecision.OVERLAP, len(text), size, why, not doubt) if size else None


def _overlap(text: str, following: str) -> int:
    """The length of the longest overlap, if it is too long to be chance; else 0."""
    size = _end_that_comes_again(text, following)
    return size if size and _meaningful(text, following, text[-size:]) else 0


def _end_that_comes_again(text: str, following: str) -> int:
    """The length of the longest overlap of at least `OVERLAP_CHARS`; else 0."""
    head = following[:OVERLAP_CHARS]
    if len(head) < OVERLAP_CHARS:
        return 0
    place = text.find(head, max(0, len(text) - len(following)))  # from the left: the first that fits is the longest
    while place >= 0 and not following.startswith(text[place:]):
        place = text.find(head, place + 1)
    return len(text) - place if place >= 0 else 0


def _meaningful(text: str, following: str, overlap: str) -> bool:
    size = len(overlap)
    again = text.find(overlap) < len(text) - size or (overlap + overlap).find(overlap, 1) < size
    # The text also repeats itself if both sides of an edge are equal, not only in the white space before lines of code.
    first, last = (OVERLAP_CHARS + size - len(core) for core in (overlap.lstrip(), overlap.rstrip()))
    if again or following.startswith(overlap[:first], size) or text.endswith(overlap[-last:], 0, -size):
        return False  # the text repeats this line or row, so it may come again
    if len(overlap.split()) >= OVERLAP_WORDS and len(set(overlap)) >= OVERLAP_WORDS * 2:
        return True
    full_line = overlap.endswith("\n") and text[-size - 1 : -size] in ("", "\n")
    return full_line and len(set(overlap.strip())) >= OVERLAP_WORDS


def _border(text: str, following: str) -> int:
    """The length of the longest end of `text` with which `following` begins, in linear time."""
    # The search of Knuth, Morris and Pratt.
    shorter: list[int] = [0]  # for each prefix of `following`, the length of its longest border
    size = 0
    for char in following[1:]:
        while size and following[size] != char:
            size = shorter[size - 1]
        size += following[size] == char
        shorter.append(size)
    size = 0
    for char in text[-len(following) :] if following else "":
        while size and following[size] != char:
            size = shorter[size - 1]
        size += following[size] == char
    return size


RULES: Mapping[SeamRule, Callable[[str, Segment], _Cut]] = {
    SeamRule.CAREFUL: _careful,
    SeamRule.CONCAT: _as_sent,
    SeamRule.OVERLAP: _longest_overlap,
}
"""Seam rule -> the function that decides a seam by it."""
