"""Seams: chance overlaps stay, what was asked back is cut, and any text that is cut anywhere is put together again."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from loop_core.turn.continuation import Method, SeamDecision, SeamRule, Segment
from loop_core.turn.history import anchor_of, prefill_message
from loop_core.turn.seam import (
    ANCHOR_CHARS,
    ECHO_CHARS,
    OVERLAP_CHARS,
    RESTART_CHARS,
    _add,
    _recent,
    added_chars,
    join,
    should_ask_again,
)
from tests.scenes.rows import each_row

LINES = (
    "def read(path):\n    with open(path) as file:\n        return file.read()\n\n\n"
    "def write(path, text):\n    with open(path, 'w') as file:\n        file.write(text)\n"
)


def repeats(text: str) -> bool:
    """Whether it is twice the same, or more often, from its beginning on: more of it may go on or begin anew."""
    return any(text.startswith(text[size:]) for size in range(1, len(text) // 2 + 1))


def merge(*segments: Segment) -> tuple[str, list[SeamDecision]]:
    made = join(segments)
    return made.text, [seam.decision for seam in made.seams]


@each_row("method", [
    Method.HINT, Method.ANCHOR, Method.BOOST, Method.ECHO, Method.TOKEN, Method.PREFILL,
])
@each_row(("first", "second"), [
    ("The population is 10", "000 people."),
    ("The only English word is book", "keeper."),
    ("[1, 2", ", 2, 3]"),
    ('{"a": {"b": 1}}', "}"),
    ("    }\n  }\n", "}\n"),
    ("def a():\n    pass\n\n", "\n\ndef b():\n    pass\n"),
    ("He laughed: ha ha", "ha ha!"),
    ("ha ha", "ha"),
])
def test_two_ends_that_match_by_chance_are_kept(first: str, second: str, method: Method) -> None:
    """The exact continuations that the overlap merge of zeroclaw#2373 corrupts."""
    text, decisions = merge(Segment(first), Segment(second, method))
    assert text == first + second
    assert decisions == [SeamDecision.AS_SENT]


def test_nothing_and_one_segment() -> None:
    assert join(()).text == ""
    assert join((Segment("a"),)).text == "a"
    assert join((Segment("a"),)).seams == ()


# -- what the decisions are ------------------------------------------------------------------------------------------


def test_a_quoted_anchor_is_cut_exactly() -> None:
    text, decisions = merge(Segment("one two"), Segment("two three", Method.ANCHOR, anchor="two"))
    assert (text, decisions) == ("one two three", [SeamDecision.ANCHOR])


@each_row(("again", "sure"), [
    ("", True), ("def read(path, mode):\n", True), (LINES[120:], False), ("\n\n" + LINES, False),
    (LINES[:80] + "other", False),
])
def test_a_quotation_before_text_that_was_said_before_leaves_a_doubt(again: str, sure: bool) -> None:
    """A model may quote the words, as it was asked to, and give the whole answer once more: it stood there twice."""
    answer = Segment(LINES[-40:] + again + "# end", Method.ANCHOR, anchor=LINES[-40:])
    (seam,) = join((Segment(LINES), answer)).seams
    assert (seam.decision, seam.sure) == (SeamDecision.ANCHOR, sure)


def test_an_anchor_that_was_not_quoted_cuts_nothing() -> None:
    text, decisions = merge(Segment("one two"), Segment(" three", Method.ANCHOR, anchor="two"))
    assert (text, decisions) == ("one two three", [SeamDecision.UNVERIFIED])


@pytest.mark.parametrize(("anchor", "answer", "expected"), [
    ("    return file.read() # all of it\n", "return file.read() # all of it\nprint()", "print()"),
    ("    return file.read() # all of it\n", "return file.read() # all of itprint()", "print()"),
    ("    return file.read() # all of it", "\n  return file.read() # all of it\nprint()", "\nprint()"),
])
def test_a_long_anchor_may_lose_its_outer_white_space(anchor: str, answer: str, expected: str) -> None:
    first = "x = 1\n" + anchor
    text, decisions = merge(Segment(first), Segment(answer, Method.ANCHOR, anchor=anchor))
    assert (text, decisions) == (first + expected, [SeamDecision.ANCHOR])


def test_a_short_anchor_may_not() -> None:
    text, decisions = merge(Segment("a\n"), Segment("and", Method.ANCHOR, anchor="a\n"))
    assert (text, decisions) == ("a\nand", [SeamDecision.UNVERIFIED])


def test_a_long_overlap_is_cut_and_shown() -> None:
    first = "Once upon a time there was a small house by the river"
    made = join((Segment(first), Segment("a small house by the river, and in it", Method.HINT)))
    assert made.text == first + ", and in it"
    assert made.seams[0].decision is SeamDecision.OVERLAP
    assert made.seams[0].cut == "a small house by the river"
    assert made.seams[0].at == len(first)


def test_an_overlap_with_a_shorter_one_inside_leaves_a_doubt() -> None:
    """The model may have repeated the last words alone, and gone on with the refrain."""
    refrain = "The rollback took the lock, and nobody had begun to look. "
    for before, sure in (("It went so. ", True), (f"It went so. {refrain[20:]}", False)):
        first = f"{before}{refrain}"
        overlap = first[first.index("so. ") + 4 :]
        made = join((Segment(first), Segment(f"{overlap}Then came the night.", Method.HINT)))
        assert (made.text, made.seams[0].cut) == (f"{first}Then came the night.", overlap)
        assert made.seams[0].sure is sure


def test_the_closing_mark_of_our_prompt_behind_an_overlap_is_no_text() -> None:
    """SmolLM2 left out the fence of the words that it was to repeat, and closed them as the prompt does."""
    first = '```json\n{\n    "users": [\n        {'
    for rest in ("", '\n            "id": 1'):
        again = Segment(f"{first.removeprefix('```json' + chr(10))}</last>{rest}", Method.ANCHOR, first)
        made = join((Segment(first), again))
        assert (made.text, made.seams[0].decision) == (first + rest, SeamDecision.OVERLAP)
    story = "A story of a lighthouse that nobody kept for many years, since the sea had left."
    other = Segment(f"{story} But then</last> the sea came back.", Method.ANCHOR, f"{story} Then"[-40:])
    made = join((Segment(f"{story} Then"), other))
    assert (made.text, made.seams[0].decision) == (f"{story} But then the sea came back.", SeamDecision.RESTART)


def test_lines_that_begin_with_the_same_white_space_do_not_repeat_each_other() -> None:
    deep = " " * 28
    line = f"{deep}raise TypeError('not one of these')\n"
    for first, overlap, rest in ((f"if x:\n{line}", line, f"{deep}.format(x)\n"),
                                 (f"{deep}else:\n{line}{deep}", line + deep, "return 1\n")):
        text, decisions = merge(Segment(first), Segment(overlap + rest, Method.HINT))
        assert (text, decisions) == (first + rest, [SeamDecision.OVERLAP])


def test_a_line_that_begins_with_the_same_white_space_and_name_does_not_repeat_a_quotation() -> None:
    deep = " " * 16
    before = f"{deep}self.row, self.column = begin\n{deep}if kind in (END, BEGIN, BLANK, NOTHING):"
    first, rest = f"def add(self):\n{before}", f"\n{deep}    self.row += 1\n"
    made = join((Segment(first), Segment(before + rest, Method.ANCHOR, anchor_of(first))))
    assert (made.text, made.doubtful_seams) == (first + rest, ())


def test_a_repeated_full_line_is_an_overlap() -> None:
    first = "import os\nassert_equal(left,right)\n"
    text, decisions = merge(Segment(first), Segment("assert_equal(left,right)\nnext()\n", Method.HINT))
    assert (text, decisions) == (first + "next()\n", [SeamDecision.OVERLAP])


@each_row("piece", ["-" * 40, "0, " * 15, "a b " * 10, "=" * 30 + "\n"])
def test_a_long_overlap_of_few_characters_is_kept(piece: str) -> None:
    """A rule under a heading, a row of zeros: too regular to prove a repetition."""
    first = "head " + piece
    text, decisions = merge(Segment(first), Segment(piece + " tail", Method.HINT))
    assert text == first + piece + " tail"
    assert decisions == [SeamDecision.AS_SENT]


@each_row(("first", "rest"), [
    ("今天天气很好，我们去公园散步。公园里有很多人，有的在跑步，有的在唱歌，", "孩子们在草地上玩耍。"),
    ('LIMITS = {\n    "continuation_tool_repair_attempts": (0, ', "100),\n}\n"),
])
def test_the_end_of_the_text_that_comes_again_in_few_words_leaves_a_doubt(first: str, rest: str) -> None:
    """Without blanks, words cannot be counted: a long repetition was joined to itself, and the seam was verified."""
    made = join((Segment(first), Segment(first[-30:] + rest, Method.HINT)))
    assert (made.text, len(made.doubtful_seams)) == (first + first[-30:] + rest, 1)
    assert not join((Segment(first), Segment(rest, Method.HINT))).doubtful_seams


def test_an_answer_begun_anew_replaces_or_extends_the_first() -> None:
    first = LINES[:120]
    assert merge(Segment(first), Segment(LINES, Method.HINT)) == (LINES, [SeamDecision.RESTART])
    assert merge(Segment(first), Segment(first[:80], Method.HINT)) == (first, [SeamDecision.RESTART])
    other = first[:70] + "something else altogether, and longer than what was there" + "." * 10
    made = join((Segment(first), Segment(other, Method.HINT)))
    assert (made.text, made.doubtful_seams) == (other, ())
    assert made.seams[0].at == 0
    assert merge(Segment(first[:63]), Segment(first, Method.HINT))[1] != [SeamDecision.RESTART]


STORY = (
    "Once upon a time there was a small house by the river, and in it lived an old man with three cats. "
    "Every morning he counted them, and every evening he counted them again, for one of them was a thief."
)


@each_row("method", [Method.HINT, Method.ANCHOR, Method.PREFILL, Method.AGAIN])
@each_row("echoes", [None, False, True])
def test_a_long_common_beginning_is_a_restart_whatever_the_profile_says(method: Method, echoes: bool | None) -> None:
    whole, first = STORY + " That is all.", STORY
    anchor = first[-ANCHOR_CHARS:] if method in (Method.ANCHOR, Method.AGAIN) else ""
    made = join((Segment(first), Segment(whole, method, anchor, echoes=echoes)))
    assert (made.text, made.doubtful_seams) == (whole, ())


@pytest.mark.parametrize("method", [Method.HINT, Method.ANCHOR, Method.PREFILL])
def test_a_shorter_restart_never_shortens_the_answer(method: Method) -> None:
    anchor = STORY[-ANCHOR_CHARS:] if method is Method.ANCHOR else ""
    for shorter in (STORY[:150], STORY[:80] + "that is all."):
        made = join((Segment(STORY), Segment(shorter, method, anchor, echoes=False)))
        assert made.text == STORY
        assert [(seam.decision, seam.sure, seam.cut) for seam in made.seams] == [(SeamDecision.RESTART, False, shorter)]


def test_rows_that_an_answer_repeats_are_neither_a_restart_nor_an_overlap() -> None:
    row = "2026-01-02,open,0.00,0.00,0.00,nobody,nowhere\n"
    line = "        self.assertTrue(everything_is_fine_here)\n"
    for first, second in ((row * 3, row * 2), ("day,state\n" + row * 3, row * 2), (line * 4, line + "done()\n")):
        for method in (Method.HINT, Method.PREFILL):
            made = join((Segment(first), Segment(second, method, echoes=False)))
            assert made.text == first + second
    assert join((Segment(row * 3), Segment(row * 4, Method.PREFILL, echoes=False))).text == row * 7


def test_a_short_answer_that_comes_again_whole_is_an_overlap() -> None:
    text = "The answer is in the second table."
    assert OVERLAP_CHARS <= len(text) < RESTART_CHARS
    made = join((Segment(text), Segment(f"{text} It says 12.", Method.HINT)))
    assert (made.text, made.seams[0].decision) == (f"{text} It says 12.", SeamDecision.OVERLAP)


@pytest.mark.parametrize(("before", "again"), [("", True), ("values:\n", True), ("values: ", False)])
def test_an_overlap_of_few_words_is_cut_only_if_it_is_a_full_line(before: str, again: bool) -> None:
    line = "2026-01-02,open,17.25,berlin\n"
    made = join((Segment(f"{before}{line}"), Segment(f"{line}next", Method.HINT)))
    assert made.text == (f"{before}{line}next" if again else f"{before}{line}{line}next")


# -- asked for once more ---------------------------------------------------------------------------------------------

ANCHOR = STORY[-ANCHOR_CHARS:]
SORRY = Segment("I'm sorry, but I can't continue.", Method.ANCHOR, ANCHOR)


def test_what_was_asked_for_once_more_stands_in_the_place_of_what_came_before() -> None:
    made = join((Segment(STORY), SORRY, Segment(ANCHOR + " The end.", Method.AGAIN, ANCHOR)))
    assert (made.text, made.doubtful_seams) == (STORY + " The end.", ())
    assert [(seam.decision, seam.cut) for seam in made.seams] == [
        (SeamDecision.LEFT_OUT, SORRY.text), (SeamDecision.ANCHOR, ANCHOR)]


@each_row(("first", "second", "stands"), [
    ("Sure! The end comes soon.", "I'm sorry, I can't.", 0),  # both begin so: the longer
    ("I'm sorry, I can't.", "Sure! The end comes soon.", 1),
    ("I'm sorry, but I can't continue this.", " The end.", 1),  # one does not
    ("Sure, here is it: the end comes soon.", "", 0),
])
def test_of_two_that_do_not_begin_with_the_words_one_stands_in_doubt(first: str, second: str, stands: int) -> None:
    made = join((Segment(STORY), Segment(first, Method.ANCHOR, ANCHOR), Segment(second, Method.AGAIN, ANCHOR)))
    assert made.text == STORY + (first, second)[stands]
    decisions = [SeamDecision.LEFT_OUT, SeamDecision.LEFT_OUT]
    decisions[stands] = SeamDecision.UNVERIFIED
    assert [seam.decision for seam in made.seams] == decisions
    assert [seam.segment for seam in made.doubtful_seams] == [stands + 1]


def test_a_beginning_that_the_answer_repeats_leaves_a_doubt_from_that_length_on() -> None:
    row = "The row of a table that comes again and again, with other values"
    assert len(row) == RESTART_CHARS
    text = f"{row} 1.\n{row} 2.\nNothing else"
    for following, sure in ((f"{row}: 3.", False), (f"{row[:-1]}: 3.", True)):
        made = join((Segment(text), Segment(following, Method.HINT)))
        assert (made.text, made.seams[0].sure) == (text + following, sure)


def test_only_chatter_a_refusal_or_a_restart_is_asked_for_once_more() -> None:
    def again(said: str, method: Method = Method.ANCHOR, anchor: str = ANCHOR) -> bool:
        return should_ask_again((Segment(STORY), Segment(said, method, anchor)))

    for said in ("I'm sorry, but I can't.", "Sure, here it is: the end.", "Let me start over. A man", STORY[:100]):
        assert again(said)
        assert not again(said, Method.AGAIN), "once"
        assert not again(said, Method.HINT, ""), "nothing was asked back"
    for said in (" The end.", ANCHOR + " The end.", "Sure! " + ANCHOR + " The end.", STORY + " The end.", "", "  "):
        assert not again(said)
    assert not should_ask_again((SORRY,))
    assert not should_ask_again((Segment(STORY), SORRY), SeamRule.CONCAT)


# -- a character in two ----------------------------------------------------------------------------------------------

HIGH, LOW, FACE = "\ud83d", "\ude00", "\U0001f600"


@each_row("method", [Method.HINT, Method.PREFILL, Method.TOKEN, Method.ECHO])
def test_two_halves_of_a_character_are_one_again(method: Method) -> None:
    made = join((Segment("a" + HIGH), Segment(LOW + "b", method)))
    assert (made.text, made.seams[0].cut, made.seams[0].at, made.seams[0].sure) == (f"a{FACE}b", LOW, 2, True)
    assert join((Segment("a" + HIGH), Segment(FACE + "b", method))).text == f"a{FACE}b", "it came again, whole"
    lost = join((Segment("a" + HIGH), Segment("b", method)))
    assert (lost.text, lost.seams[0].sure) == (f"a{HIGH}b", False), "its other half never came"
    assert join((Segment("a"), Segment(LOW + "b", method))).text == f"a{LOW}b"


def test_half_a_character_is_not_asked_back() -> None:
    first = STORY + HIGH
    assert anchor_of(first) == ANCHOR
    for rest in (LOW, FACE):
        made = join((Segment(first), Segment(ANCHOR + rest + " The end.", Method.ANCHOR, ANCHOR)))
        assert (made.text, made.doubtful_seams) == (f"{STORY}{FACE} The end.", ())
    message, stripped = prefill_message("so " + HIGH)
    assert (message.text, stripped) == ("so", " " + HIGH)
    for rest in (f" {FACE}!", f"{FACE}!", f"{LOW}!"):
        made = join((Segment("so " + HIGH), Segment(rest, Method.PREFILL, stripped=stripped)))
        assert made.text == f"so {FACE}!"


def test_a_response_that_is_fetched_again_holds_all_its_text() -> None:
    assert merge(Segment(""), Segment("Hello", Method.POLL))[0] == "Hello"
    assert merge(Segment("Hel"), Segment("Hello world", Method.POLL)) == ("Hello world", [SeamDecision.RESTART])
    assert merge(Segment("Hel"), Segment("", Method.POLL))[0] == "Hel"
    assert merge(Segment("Hel"), Segment("Hallo", Method.POLL))[0] == "Hallo"


def test_text_beside_a_repaired_call_stands_apart() -> None:
    text, decisions = merge(Segment("I will write it."), Segment("Again:", Method.REPAIR))
    assert (text, decisions) == ("I will write it.\n\nAgain:", [SeamDecision.APART])
    assert merge(Segment("I will."), Segment("", Method.REPAIR))[0] == "I will."
    assert merge(Segment(""), Segment("Again:", Method.REPAIR))[0] == "Again:"


def test_the_rule_as_sent_cuts_nothing_at_all() -> None:
    segments = (Segment("one two"), Segment("two three", Method.ANCHOR, anchor="two"), Segment("x", Method.REPAIR))
    made = join(segments, SeamRule.CONCAT)
    assert made.text == "one twotwo threex"
    assert {seam.decision for seam in made.seams} == {SeamDecision.AS_SENT}


@each_row(("first", "second", "text"), [
    ("The population is 10", "000 people.", "The population is 1000 people."),
    ("The only English word is book", "keeper.", "The only English word is bookeeper."),
    ('{"a": {"b": 1}}', "}", '{"a": {"b": 1}}'),
    ("ha ha", "ha", "ha ha"),
    ("one", "two", "onetwo"),
    ("one", "", "one"),
    ("", "two", "two"),
    ("abab", "ababc", "ababc"),
    ("aaabaaab", "aabaaaaa", "aaabaaabaaaaa"),  # a shorter beginning of the second text is tried after a longer one
])
def test_the_rule_of_any_overlap_corrupts_what_zeroclaw_2373_corrupts(first: str, second: str, text: str) -> None:
    made = join((Segment(first), Segment(second, Method.HINT)), SeamRule.OVERLAP)
    assert made.text == text
    cut = len(first) + len(second) - len(text)
    assert made.seams[0].cut == second[:cut]
    assert made.seams[0].decision is (SeamDecision.OVERLAP if cut else SeamDecision.AS_SENT)


@given(st.text("ab", max_size=12), st.text("ab", max_size=12))
def test_the_longest_overlap_is_the_longest(first: str, second: str) -> None:
    longest = max(size for size in range(len(second) + 1) if first.endswith(second[:size]))
    assert join((Segment(first), Segment(second)), SeamRule.OVERLAP).text == first + second[longest:]


def test_prefill_white_space_is_restored_once() -> None:
    first = "one\n\n"
    for said, echoes in (("two", None), ("\n\ntwo", None), ("one\n\ntwo", True), ("onetwo", True)):
        segment = Segment(said, Method.PREFILL, stripped="\n\n", echoes=echoes)
        assert merge(Segment(first), segment)[0] == "one\n\ntwo"


def test_a_prefill_cuts_no_overlap_however_long() -> None:
    assert merge(Segment(LINES), Segment(LINES[-60:] + "x", Method.PREFILL))[0] == LINES + LINES[-60:] + "x"


def test_a_prefill_that_a_server_does_not_go_on_from_leaves_a_doubt() -> None:
    for said in ("I'm sorry, but I see no text.", "Sure, here is the rest: tebook"):
        for first in ("He carried a small no", "It is the end.", "Is it?", "Stop!"):
            made = join((Segment(first), Segment(said, Method.PREFILL)))
            assert (made.text, len(made.doubtful_seams)) == (first + said, 1)
    for first, said in (("It fell.", " Sure, it broke."), ("It fell...", "Sorry, it broke."), ("It fell.", "sure, it"),
                        ("It fell.", "The end."), ("- It fell.*", "Sorry, it broke."), ("!", "Sure, it broke."),
                        ("He said:", " Sure, I will."), ("And then he said", " I'm sorry."), ("no", "tebook."),
                        ("He said: \"", "Sure, I will."), ("the so-called un", "certainly, it is")):
        assert join((Segment(first), Segment(said, Method.PREFILL))).doubtful_seams == ()


def test_chatter_behind_a_blank_that_was_stripped_leaves_a_doubt() -> None:
    said = "Sorry about that! Here is the rest:\n\nshop."
    rows = (("He went to the", " ", 1), ("He went.", "  ", 1), ("He went.", "\n\n", 0), ("-", " ", 0))
    for first, blank, doubts in rows:
        made = join((Segment(first + blank), Segment(said, Method.PREFILL, stripped=blank)))
        assert (made.text, len(made.doubtful_seams)) == (first + blank + said, doubts)


def test_quotation_marks_around_a_whole_continuation_leave_a_doubt() -> None:
    for said in ('"tebook, a pen."', "\u201ctebook, a pen.\u201d\n", "\u201etebook.\u201c", "\u00abtebook.\u00bb"):
        made = join((Segment("He carried a small note"), Segment(said, Method.HINT)))
        assert (made.text, len(made.doubtful_seams)) == ("He carried a small note" + said, 1)
    for first, said in (("He said", ' "I will."'), ("He said ", '"I will."'), ('He said "go', '" and "stay"'),
                        ('The "old" man', '"s hat"'), ("return f", '"{name}"'), ("man", '"s hat" was "old"'),
                        ("x = [", '"a"'), ("man", '""'), ("He carried a note", "book.")):
        assert join((Segment(first), Segment(said, Method.HINT))).doubtful_seams == ()


def test_an_echo_counts_only_where_it_is_declared_or_long() -> None:
    short, long = "a" * (ECHO_CHARS - 1), "abcdefghijklmnopqrstuvwx"
    assert merge(Segment(short), Segment(short + "b", Method.PREFILL))[0] == short + short + "b"
    assert merge(Segment(short), Segment(short + "b", Method.PREFILL, echoes=True))[0] == short + "b"
    assert merge(Segment(long), Segment(long + "!", Method.PREFILL))[0] == long + "!"
    assert merge(Segment(long), Segment(long + "!", Method.PREFILL, echoes=False))[0] == long + long + "!"


def test_what_comes_twice_after_a_prefill_leaves_a_doubt_unless_the_server_is_known() -> None:
    story = "Once upon a time there was a queue, and it was full. "
    for first, said in ((story, story[-30:] + "The end."), ("1. First of", "1. First of all")):
        for echoes in (None, False):
            made = join((Segment(first), Segment(said, Method.PREFILL, echoes=echoes)))
            assert (made.text, len(made.doubtful_seams)) == (first + said, echoes is None)
    assert join((Segment("no"), Segment("no, no", Method.PREFILL))).doubtful_seams == (), "that is chance"


def test_an_echo_of_a_text_that_repeats_itself_leaves_a_doubt_unless_the_server_is_known() -> None:
    for echoes, sure in ((None, False), (True, True)):
        made = join((Segment("ha " * 10), Segment("ha " * 12, Method.PREFILL, echoes=echoes)))
        assert (made.text, made.doubtful_seams == ()) == ("ha " * 12, sure)


# -- properties: cut any text anywhere -------------------------------------------------------------------------------

PIECES = st.sampled_from(
    ["book", "keeper", "10", "000", ", 2", "}\n", "  ", "\n\n", "ha ", "return x", "é", "\U0001f600", "x = [", '"',
     "\\n", "|---|"]
)
words = st.lists(PIECES, min_size=1, max_size=40).map("".join)


@st.composite
def cuts(draw: st.DrawFn, minimum: int = 0) -> tuple[str, list[int]]:
    """A text and up to three places to cut it, in order."""
    text = "".join(draw(st.lists(PIECES, min_size=minimum + 1, max_size=minimum + 40)))
    places = draw(st.lists(st.integers(minimum, len(text)), min_size=1, max_size=3))
    return text, sorted(places)


@settings(max_examples=150)
@given(cuts(), st.sampled_from([False, True, None]))
def test_resumed_by_prefill_the_join_is_the_text(cut: tuple[str, list[int]], echoes: bool | None) -> None:
    """The server goes on from the prefill it was sent, its end stripped as the providers demand; some echo it."""
    text, places = cut
    segments = [Segment(text[: places[0]])]
    for place, after in zip(places, [*places[1:], len(text)], strict=True):
        sent = text[:place].rstrip()
        said = text[len(sent) : after]
        if echoes:
            said = sent + said
        elif echoes is None:
            assume(not (len(sent) >= ECHO_CHARS and said.startswith(sent)))
        segments.append(Segment(said, Method.PREFILL, stripped=text[len(sent) : place], echoes=echoes))
    assert join(segments).text == text


@settings(max_examples=150)
@given(cuts())
def test_a_prefill_that_was_not_stripped_is_joined_byte_for_byte(cut: tuple[str, list[int]]) -> None:
    text, places = cut
    edges = [*places, len(text)]
    segments = [Segment(text[: places[0]])]
    segments += [Segment(text[a:b], Method.PREFILL, echoes=False) for a, b in pairwise(edges)]
    assert join(segments).text == text


@settings(max_examples=150)
@given(cuts())
def test_white_space_that_the_model_does_not_repeat_is_restored(cut: tuple[str, list[int]]) -> None:
    text, (place, *_) = cut
    stripped = text[len(text[:place].rstrip()) : place]
    assume(not stripped or not text[place:].startswith(stripped))
    resumed = Segment(text[place:], Method.PREFILL, stripped=stripped, echoes=False)
    assert join((Segment(text[:place]), resumed)).text == text


@settings(max_examples=150)
@given(cuts(ECHO_CHARS))
def test_an_unknown_echo_of_24_characters_or_more_is_found(cut: tuple[str, list[int]]) -> None:
    text, (place, *_) = cut
    sent = text[:place].rstrip()
    assume(len(sent) >= ECHO_CHARS)
    echoed = Segment(text, Method.PREFILL, stripped=text[len(sent) : place])
    assert join((Segment(text[:place]), echoed)).text == text


@settings(max_examples=150)
@given(cuts(1))
def test_resumed_by_anchor_the_join_is_the_text(cut: tuple[str, list[int]]) -> None:
    text, places = cut
    edges = [*places, len(text)]
    segments = [Segment(text[: places[0]])]
    for a, b in pairwise(edges):
        anchor = text[:a][-ANCHOR_CHARS:]
        segments.append(Segment(anchor + text[a:b], Method.ANCHOR, anchor=anchor))
    assert join(segments).text == text


@settings(max_examples=150)
@given(cuts(RESTART_CHARS))
def test_restarted_the_join_is_the_text(cut: tuple[str, list[int]]) -> None:
    text, (place, *_) = cut
    assume(not repeats(text[:place]))
    assert join((Segment(text[:place]), Segment(text, Method.HINT))).text == text


@settings(max_examples=150)
@given(cuts(), st.sampled_from([Method.ECHO, Method.TOKEN]))
def test_what_the_provider_resumes_itself_is_joined_as_sent(cut: tuple[str, list[int]], method: Method) -> None:
    text, places = cut
    edges = [*places, len(text)]
    segments = [Segment(text[: places[0]]), *(Segment(text[a:b], method) for a, b in pairwise(edges))]
    assert join(segments).text == text


@settings(max_examples=150)
@given(words, st.lists(st.builds(
    Segment, words, st.sampled_from(Method), st.sampled_from(["", "ha ", "10"]), st.sampled_from(["", "  "]),
    st.sampled_from([None, True, False]),
), max_size=4))
def test_seams_account_for_every_character(first: str, more: list[Segment]) -> None:
    """What each seam says was cut and where its segment begins leads to the same text again."""
    made = join((Segment(first), *more))
    assert [seam.segment for seam in made.seams] == list(range(1, len(more) + 1))
    text = first
    for seam, segment in zip(made.seams, more, strict=True):
        assert segment.text.startswith(seam.cut)
        kept = text[: seam.at] + ("\n\n" if seam.decision is SeamDecision.APART else "")[: max(0, seam.at - len(text))]
        assert len(kept) == seam.at
        text = kept + segment.text[len(seam.cut) :]
        assert seam.why
    assert text == made.text


@given(words, st.lists(st.builds(
    Segment, st.one_of(words, st.just(LINES)), st.sampled_from(list(Method)), stripped=st.sampled_from(["", " "]),
), min_size=1, max_size=4), st.sampled_from(list(SeamRule)))
def test_what_a_segment_adds_is_what_the_text_grows_by(first: str, more: list[Segment], rule: SeamRule) -> None:
    segments = (Segment(first), *more)
    before = join(segments[:-1], rule).text
    assert added_chars(segments, rule) == len(join(segments, rule).text) - (len(before) if before.strip() else 0)


@given(words, st.lists(st.builds(
    Segment, st.one_of(words, st.just(LINES)), st.sampled_from(list(Method)), st.sampled_from(["", "ha "]),
), min_size=1, max_size=6), st.sampled_from(list(SeamRule)))
def test_a_join_does_not_depend_on_what_was_joined_before(first: str, more: list[Segment], rule: SeamRule) -> None:
    """Joins are built on that of all but the last segment, which may be there already."""
    segments = (Segment(first), *more)
    grown = [join(segments[: size + 1], rule) for size in range(len(segments))][-1]
    _recent.clear()
    assert join(segments, rule) == grown


def test_a_turn_of_very_many_segments_is_joined() -> None:
    pieces = [f"Part {number} of many. " for number in range(2_000)]
    made = join([Segment(pieces[0]), *(Segment(piece, Method.ECHO) for piece in pieces[1:])])
    assert made.text == "".join(pieces)
    assert [seam.segment for seam in made.seams] == list(range(1, 2_000))


def test_a_further_segment_costs_few_seams_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def add(*given: Any) -> Any:
        made.append(1)
        return _add(*given)

    monkeypatch.setattr("loop_core.turn.seam._add", add)
    segments = [Segment(f"Part {number} of many. ", Method.ECHO) for number in range(400)]
    for size in range(2, 401):
        join(segments[:size])
    assert len(made) == 399, "one for each; all of them anew each time would be 80,000"
    for size in range(100):
        join([*segments[1:], Segment("." * size, Method.ECHO)])
    assert len(made) == 399 + 399 + 99, "a last segment that changes costs its own seam"


def test_long_segments_are_joined_in_no_time() -> None:
    """A careless overlap search compares every length with every other: minutes where this takes milliseconds."""
    first, second = "ab" * 60_000, "ba" * 60_000
    began = time.process_time()
    join((Segment(first), Segment(second, Method.HINT)))
    prose = LINES * 800
    join((Segment(prose), Segment("x" + prose, Method.HINT)))
    assert time.process_time() - began < 2


def test_any_overlap_is_found_in_linear_time() -> None:
    """120,000 characters, the most that a turn may have: nearly the same all over, so that every place looks right."""
    began = time.process_time()
    made = join((Segment("a" * 60_000), Segment("a" * 59_999 + "b")), SeamRule.OVERLAP)
    assert len(made.text) == 60_001
    assert time.process_time() - began < 2


def test_rows_that_may_be_the_next_ones_or_a_new_beginning_leave_a_doubt() -> None:
    row = "| 2024-01-01 | service is up | all checks passed, nothing to do | ok |\n"
    text, following = row * 3, row + "| 2024-01-02 | service is down | one check failed | bad |\n"
    joined = join([Segment(text), Segment(following, Method.HINT)])
    (seam,) = joined.seams
    assert (joined.text, seam.decision, seam.sure) == (text + following, SeamDecision.UNVERIFIED, False)
    assert "begun again" in seam.why
    other = join([Segment(text), Segment("| 2024-01-02 | service is down |\n", Method.HINT)])
    assert other.seams[0].sure, "another row goes on"
    short = join([Segment("- yes\n- yes\n"), Segment("- yes\n- no\n", Method.HINT)])
    assert short.seams[0].sure, "a short row may be chance"


@each_row(("stripped", "following", "text", "sure"), [
    ("\n    ", "y = 2\n", "x = 1\n    y = 2\n", True),
    ("\n    ", "\n    y = 2\n", "x = 1\n    y = 2\n", True),
    ("\n    ", "    y = 2\n", "x = 1\n        y = 2\n", False),  # its own indentation, or that of the next line
    ("\n    ", "\ny = 2\n", "x = 1\n    \ny = 2\n", False),
    ("\n\n", "\ny = 2\n", "x = 1\n\n\ny = 2\n", False),
])
def test_other_white_space_than_what_was_stripped_leaves_a_doubt(
    stripped: str, following: str, text: str, sure: bool
) -> None:
    made = join((Segment("x = 1" + stripped), Segment(following, Method.PREFILL, stripped=stripped, echoes=False)))
    assert (made.text, [(seam.decision, seam.sure) for seam in made.seams]) == (text, [(SeamDecision.WHITESPACE, sure)])


@pytest.mark.parametrize(("text", "following"), [
    ("The queue was saturated from nine four", "Sorry for the interruption. Continuing: teen on."),
    ("No message was lost.", "Sure, here is the rest: it was slow."),
    ("The backlog was cle", "I'm sorry, but I can't continue."),
])
def test_a_segment_that_begins_like_a_new_message_leaves_a_doubt(text: str, following: str) -> None:
    """An agent's own hint asks for no quotation that would show where the text goes on."""
    made = join((Segment(text), Segment(following, Method.HINT)))
    assert made.text == text + following
    assert [(seam.decision, seam.sure) for seam in made.seams] == [(SeamDecision.UNVERIFIED, False)]
    for before in (f"{text}\n", f"{text} he said: "):  # such words may go on there
        assert join((Segment(before), Segment(following, Method.HINT))).seams[-1].sure
    assert join((Segment(text), Segment(f" {following}", Method.HINT))).seams[-1].sure


LIST = "".join(f"- item {number % 3}: check the value and continue with the next one\n" for number in range(12))
TABLE = "".join(f"| row | {number % 2} | the same note for every row here |\n" for number in range(10))
REFRAIN = "Row, row, row your boat, gently down the stream.\nMerrily, merrily, life is but a dream.\n" * 3
XML = "  <row><cell>same value</cell><cell>same value</cell></row>\n" * 6


@pytest.mark.parametrize("text", [LIST, TABLE, REFRAIN, XML], ids=["list", "table", "refrain", "xml"])
def test_a_text_that_repeats_its_rows_loses_none_wherever_it_is_cut(text: str) -> None:
    """Of each row the end that stood before the cut comes again, right behind it, as it should."""
    for place in range(1, len(text)):
        for method in (Method.HINT, Method.PREFILL):
            made = join([Segment(text[:place]), Segment(text[place:], method)])
            assert made.text == text or not made.seams[0].sure, place
            if method is Method.HINT:
                assert made.text == text, place


def test_an_overlap_with_the_middle_of_a_text_is_cut_all_the_same() -> None:
    text = "The first chapter begins at the harbour, and the second one in the mountains. "
    (seam,) = join([Segment(f"{LIST}{text}"), Segment(f"{text}{LIST}", Method.HINT)]).seams
    assert (seam.decision, seam.cut) == (SeamDecision.OVERLAP, text)


@each_row(("text", "place"), [
    ("[x] " * 40, 38),  # no whole number of parts
    ("{}, " * 60, 39), ("\t\t}\n\t}\n}\n" * 15, 28), ("-> " * 70, 29),
    ("    for i in range(10):\n        print(i)\n" * 3, 110),  # the last line is also the beginning of the words
])
def test_a_continuation_that_quotes_nothing_and_loses_text_leaves_a_doubt(text: str, place: int) -> None:
    made = join([Segment(text[:place]), Segment(text[place:], Method.ANCHOR, text[:place][-ANCHOR_CHARS:])])
    assert made.text == text or not made.seams[0].sure


@each_row("end", ["", "\ud83d"])
def test_a_segment_that_ends_in_its_quotation_is_no_more_though_the_text_ends_in_half_a_character(end: str) -> None:
    words = "there was a king who had a daughter, and"
    (seam,) = join([Segment(f"Once {words}{end}"), Segment(words[:25], Method.ANCHOR, words)]).seams
    assert (seam.decision, seam.sure) == (SeamDecision.ANCHOR, True)
