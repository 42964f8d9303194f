"""The words that were asked back are found in whatever a model puts around them, and nothing else is taken for them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from loop_core.turn import history
from loop_core.turn.continuation import HINT_POINTS, Method, Seam, SeamDecision, Segment, mark_for
from loop_core.turn.seam import ANCHOR_CHARS, join
from loop_core.values import Message, Role, TextPart
from tests.scenes.rows import each_row, share

FOX = "The quick brown fox jumps over the lazy dog, and then it goes on to"
REST = " sleep under the tree.\nThe end."


def merge_quote(said: str, text: str = FOX, mark: str = "last") -> tuple[str, Seam]:
    """The merged text of an answer and of a continuation that was asked for the answer's last 40 characters."""
    made = join((Segment(text), Segment(said, Method.ANCHOR, text[-ANCHOR_CHARS:], mark=mark)))
    return made.text, made.seams[0]


WRAPPERS: dict[str, Callable[[str, str], str]] = {
    "bare": lambda words, rest: f"{words}{rest}",
    "chatter": lambda words, rest: f"Sure, here is the rest:\n\n{words}{rest}",
    "chatter in German": lambda words, rest: f"Natürlich! Hier ist der Rest:\n{words}{rest}",
    "chatter in Chinese": lambda words, rest: f"好的，以下是剩余部分：\n{words}{rest}",
    "apology": lambda words, rest: f"I apologize for the interruption. {words}{rest}",
    "heading": lambda words, rest: f"**Continuing:**\n\n{words}{rest}",
    "our tags": lambda words, rest: f"<last>{words}</last>{rest}",
    "our tags around all": lambda words, rest: f"<last>{words}{rest}</last>",
    "our tags around all, on lines of their own": lambda words, rest: f"<last>\n{words}{rest}\n</last>",
    "our closing tag": lambda words, rest: f"{words}</last>{rest}",
    "other tags": lambda words, rest: f"<continuation>{words}</continuation>{rest}",
    "other tags around all": lambda words, rest: f"<answer>{words}{rest}</answer>",
    "tags with attributes": lambda words, rest: f'<quote id="1">{words}</quote>{rest}',
    "quotes": lambda words, rest: f'"{words}"{rest}',
    "curly quotes": lambda words, rest: f"\u201c{words}\u201d{rest}",
    "guillemets": lambda words, rest: f"«{words}»{rest}",
    "backticks": lambda words, rest: f"`{words}`{rest}",
    "bold": lambda words, rest: f"**{words}**{rest}",
    "fence": lambda words, rest: f"```\n{words}\n```\n{rest}",
    "fence with a language": lambda words, rest: f"```python\n{words}\n```\n{rest}",
    "tildes": lambda words, rest: f"~~~\n{words}\n~~~\n{rest}",
    "chatter and fence": lambda words, rest: f"Here is the continuation:\n```\n{words}\n```\n{rest}",
    "chatter and quotes": lambda words, rest: f'Certainly! "{words}"{rest}',
    "tag and quotes": lambda words, rest: f'<last>"{words}"</last>{rest}',
    "ellipsis": lambda words, rest: f"...{words}{rest}",
    "our own prompt": lambda words, rest: f"{history.hint_message(words).text}{rest}",
}


@each_row("wrapper", WRAPPERS)
def test_whatever_wraps_the_words_is_cut_with_them(wrapper: str) -> None:
    text, seam = merge_quote(WRAPPERS[wrapper](FOX[-ANCHOR_CHARS:], REST))
    assert text == FOX + REST
    assert (seam.decision, seam.sure) == (SeamDecision.ANCHOR, True)
    left_out = seam.cut + "".join(part for _, part in seam.removals)
    assert len(left_out) == len(WRAPPERS[wrapper](FOX[-ANCHOR_CHARS:], REST)) - len(REST), "what was cut is shown"


@each_row(("said", "why"), [
    (FOX[-60:] + REST, "more was quoted than was asked for"),
    (FOX + REST, "all of it was"),
    (FOX[-30:] + REST, "less was"),
    ("Voilà ce qui suit — " + FOX[-40:] + REST, "chatter that no table knows before words that stand there once"),
    (FOX[-40:].replace(" ", "\n") + REST, "its white space is folded"),
    (FOX[-40:].replace(" ", "  ") + REST, "its white space is unfolded"),
    ("\n\n  " + FOX[-40:] + REST, "it is indented"),
])
def test_other_quotations_of_the_end_are_found(said: str, why: str) -> None:
    text, seam = merge_quote(said)
    assert (text, seam.sure) == (FOX + REST, True), why


@pytest.mark.parametrize(("own", "sent"), [
    ('He said "that is it", and she said "no, it is', "He said \u201cthat is it\u201d, and she said \u201cno, it is"),
    ("it\u2019s not what they\u2019d thought it would be, is", "it's not what they'd thought it would be, is"),
    ("« c\u2019est la vie », dit-il en sortant de la piè", '" c\'est la vie ", dit-il en sortant de la piè'),
])
def test_quotation_marks_are_folded_and_the_answer_keeps_its_own(own: str, sent: str) -> None:
    text, seam = merge_quote(sent[-ANCHOR_CHARS:] + "'t so.", own)
    assert (text, seam.decision) == (own + "'t so.", SeamDecision.ANCHOR)


@each_row(("opener", "closer"), [
    ('"', '"'), ("'", "'"), ("`", "`"), ("*", "*"), ("_", "_"), ("\u201c", "\u201d"), ("\u201e", "\u201c"),
    ("\u2018", "\u2019"), ("«", "»"), ("\u2039", "\u203a"), ("「", "」"), ("『", "』"), ("[", "]"), ("(", ")"),
    ("…", ""), ("...", ""), ("**", "**"), ("***", "***"), ('"""', '"""'), ("__", "__"),
])
def test_few_words_are_found_inside_anything_that_quotes(opener: str, closer: str) -> None:
    text, seam = merge_quote(f"{opener}He went on to{closer} sleep.", "He went on to")
    assert (text, seam.cut) == ("He went on to sleep.", f"{opener}He went on to{closer}")


@each_row(("own", "sent"), [
    *((mark, "'") for mark in "\u2018\u2019\u201a\u02bc\u2032"),
    *((mark, '"') for mark in "\u201c\u201d\u201e\u00ab\u00bb\u2033"),
])
def test_each_quotation_mark_is_taken_for_the_plain_one(own: str, sent: str) -> None:
    for one, other in ((own, sent), (sent, own)):
        text = f"They called it {one}the long way round, and so"
        said = text[-ANCHOR_CHARS:].replace(one, other)
        assert merge_quote(said + " did we.", text)[0] == text + " did we.", (one, other)


def test_the_tags_have_a_name_that_the_conversation_does_not_hold() -> None:
    def messages(*texts: str) -> tuple[Message, ...]:
        return tuple(Message(Role.USER, (TextPart(text),)) for text in texts)

    assert mark_for("What is a <p>?", messages("A paragraph.")) == "last"
    assert mark_for("What is <last>?", ()) == mark_for("", messages("", "It ends with </last>.")) == "last_words"
    assert mark_for("<last_words>", messages("What is <last>?")) == "last_words", "none is new to all of them"
    for mark in ("last", "last_words"):
        asked = history.hint_message("so far", mark=mark)
        assert (history.mark_of_hint(asked), history.anchor_of_hint(asked)) == (mark, "so far")


CODE = (
    "import os\n\n\ndef names(folder):\n    found = sorted(os.listdir(folder))\n"
    "    return [name for name in found]\n"
)


def test_the_last_line_alone_is_enough_where_it_is_long_and_stands_there_once() -> None:
    line = "    return [name for name in found]\n"
    assert len(line.strip()) >= 24
    text, seam = merge_quote(line + "\n\nprint(names('.'))\n", CODE)
    assert (text, seam.decision) == (CODE + "\n\nprint(names('.'))\n", SeamDecision.ANCHOR)
    after = "Here is the rest:\n```python\n" + line + "```\nprint(names('.'))\n"
    assert merge_quote(after, CODE)[0] == CODE + "print(names('.'))\n"


def test_a_segment_that_ends_inside_the_quoted_words_adds_nothing() -> None:
    words = FOX[-ANCHOR_CHARS:]
    for size in (9, 20, ANCHOR_CHARS - 1):
        text, seam = merge_quote(words[:size])
        assert (text, seam.cut, seam.sure) == (FOX, words[:size], True)
    assert merge_quote(words[:6])[1].sure is False, "so few may be chance"


def test_a_short_last_line_and_one_that_comes_twice_are_not() -> None:
    short = "something before it, which is long enough\n    return 1\n"
    said = "    return 1\n\ndef other():\n    pass\n"
    assert merge_quote(said, short)[1].decision is SeamDecision.UNVERIFIED
    line = "        self.assertTrue(everything)\n"
    twice = "def a():\n" + line + "def b():\n" + line
    text, seam = merge_quote(line + "def c():\n    pass\n", twice)
    assert (text, seam.sure) == (twice + line + "def c():\n    pass\n", False), "it may be the next line as well"
    once = "def a(self):\n    pass\n" + line
    again = f"Then:\n{line}    more\n{line}"
    assert merge_quote(again, once)[1].sure is False, "which of the two is the quotation?"


def test_the_words_count_in_the_first_200_characters_only() -> None:
    words = FOX[-ANCHOR_CHARS:]
    near, far = "x" * (200 - ANCHOR_CHARS), "x" * (201 - ANCHOR_CHARS)
    assert merge_quote(near + words + REST)[0] == FOX + REST
    text, seam = merge_quote(far + words + REST)
    assert (text, seam.sure) == (FOX + far + words + REST, False)


def test_rows_that_a_table_repeats_are_no_quotation() -> None:
    row = "| 2026-01-02 | 0.00 | 0.00 | 0.00 | open |\n"
    table = "| day | a | b | c | state |\n|---|---|---|---|---|\n" + row * 3
    said = "| 2026-01-03 | 1.00 | 0.00 | 0.00 | open |\n" + row + "| 2026-01-04 | 1.00 | 0.00 | 0.00 | open |\n"
    text, seam = merge_quote(said, table)
    assert (text, seam.decision, seam.cut) == (table + said, SeamDecision.UNVERIFIED, "")


REPEATS = "the text repeats itself, and these words may be the next ones"
SAME_MARK = "the text has the same mark before these words, and the one after them may be a part of it"
LINE_BREAK = "a line break follows the quotation or the mark that closes it, and may not belong to the text"
MARK_AT_THE_END = ("the mark after these words may be a part of the text, and the one at the end may close the "
                   "quotation")
LINE = "INFO the worker has finished its job and waits for another one"
ROWS = "".join(f"10:00:{number:02} {LINE}\n" for number in range(6))


@each_row(("place", "chatter"), [
    (50, ""), (60, ""), (70, ""), (60, "Sure, continuing:\n"), (70, "Sure, continuing:\n"), (50, "Sure, continuing:\n"),
])
def test_a_row_that_goes_on_is_no_quotation_of_the_first_row(place: int, chatter: str) -> None:
    """The model did not quote: it goes on with the first row, and the next row ends with the words of the first."""
    first, rest = ROWS[:place], chatter + ROWS[place:]
    text, seam = merge_quote(rest, first)
    assert (text, seam.decision, seam.sure) == (first + rest, SeamDecision.UNVERIFIED, False)
    text, seam = merge_quote(chatter + first[-ANCHOR_CHARS:] + ROWS[place:], first)
    assert (text, seam.sure) == (ROWS, True), "quoted, they are found"
    text, seam = merge_quote(chatter + ROWS, first)
    assert (text, seam.sure) == (ROWS, True), "all of the text was quoted"


@each_row("text", [
    "-" * 60,  # of one sign
    "ab" * 30,  # of equal parts
    "-",
    "".join(f"{'x' * 10} and {'y' * 24}\n" for _ in range(3)),  # the 40 characters before are the same
    "===== " * 9,  # of parts that do not fill the words
    "Ja. Nein. " * 7,
])
def test_words_that_may_as_well_be_the_next_ones_leave_a_doubt(text: str) -> None:
    made, seam = merge_quote(text[-ANCHOR_CHARS:] + "> end", text)
    assert (made, seam.sure) == (text + "> end", False)
    assert seam.why.endswith(REPEATS)


def test_more_of_equal_rows_than_was_asked_for_leaves_a_doubt() -> None:
    text = (LINE + "\n") * 2 + LINE[:30]
    made, seam = merge_quote(text[-len(LINE) - 1 :] + LINE[30:], text)
    assert (made, seam.sure) == (text + LINE[30:], False)


@pytest.mark.parametrize("blank", ["", "\n", " "])
def test_a_repetition_that_may_have_been_shorter_leaves_a_doubt(blank: str) -> None:
    """What was repeated begins with a shorter end of the text: the rest of it may be the next row."""
    row = "- Check the logs for errors and restart the service."
    text = f"Do this:\n- Run the tests.\n{row}\n{row}{blank}"
    said = f"errors and restart the service.\n{row}{blank}"
    made, seam = merge_quote(f"{said}- Run the tests.", text)
    assert (made, seam.sure) == (f"{text}- Run the tests.", False)
    assert seam.why.endswith(REPEATS)
    text = f"Do this:\n- Run the tests.\n- Then {row}{blank}"
    made, seam = merge_quote(f"{text[-50:]}- Run the tests.", text)
    assert (made, seam.sure) == (f"{text}- Run the tests.", True), "more was quoted, and nothing in it comes twice"


@pytest.mark.parametrize("again", [FOX[-ANCHOR_CHARS:] + REST, FOX[-ANCHOR_CHARS:], FOX[-ANCHOR_CHARS:][:8]])
def test_words_that_are_quoted_twice_leave_a_doubt(again: str) -> None:
    """The second ones may be a quotation, or the text itself."""
    made, seam = merge_quote(FOX[-ANCHOR_CHARS:] + again)
    assert (made, seam.sure) == (FOX + again, False)
    assert seam.why.endswith(REPEATS)
    assert merge_quote(FOX[-ANCHOR_CHARS:] + again[:7])[1].sure, "so few characters may be the next ones"


def test_words_that_also_come_earlier_in_what_is_cut_leave_a_doubt() -> None:
    """Two of three equal elements were lost without a word."""
    text = "<div><span>x</span></div>"
    made = join((Segment(text), Segment(f"\n\n{text * 3} and the end.", Method.ANCHOR, text)))
    assert not made.seams[0].sure


def test_few_characters_count_at_the_beginning_or_inside_something_that_closes() -> None:
    assert merge_quote("Ten men", "Te") == ("Ten men",
                                            Seam(1, 2, SeamDecision.ANCHOR, "Te", "quoted anchor, 2 characters cut"))
    assert merge_quote('"Te"n men', "Te")[0] == "Ten men"
    assert merge_quote("<last>Te</last>n men", "Te")[0] == "Ten men"
    text, seam = merge_quote("Sure! Then we go on.", "T")
    assert (text, seam.sure) == ("TSure! Then we go on.", False), "a T is no proof"


def test_quotes_of_the_text_itself_stay() -> None:
    said = 'And he said, in a voice that was not his own, "go on'
    assert merge_quote(said[-ANCHOR_CHARS:] + '" and left.', said)[0] == said + '" and left.'
    assert merge_quote(said + '" and left.', said)[0] == said + '" and left.', "more was quoted than was asked for"
    html = "<p>A paragraph that is cut in the middle of a sen"
    assert merge_quote(html + "tence.</p>\n", html)[0] == html + "tence.</p>\n"
    assert merge_quote("<p>" + html[-ANCHOR_CHARS:] + "tence.</p>\n", html)[0] == html + "tence.</p>\n"


def test_a_fence_that_is_open_in_the_text_is_closed_by_the_text() -> None:
    inside = "Here it is:\n```python\ndef area(width, height):\n    return width *"
    text, seam = merge_quote("```python\n" + inside[-ANCHOR_CHARS:] + " height\n```\nThat is all.", inside)
    assert (text, seam.sure) == (inside + " height\n```\nThat is all.", True)


def test_a_fence_around_all_is_left_out_although_the_text_has_one_open() -> None:
    inside = "Here it is:\n```python\ndef area(width, height):\n    return width *"
    rest = " height\n```\nIt is run so:\n```sh\n$ python area.py\n```\nThat is all."
    text, seam = merge_quote(f"```\n{inside[-ANCHOR_CHARS:]}{rest}\n```", inside)
    assert (text, seam.sure) == (inside + rest, True)


@pytest.mark.parametrize("words", ["<last>{}</last>", '"{}"', "`{}`"])
def test_a_line_break_behind_a_closing_mark_may_not_belong_to_the_text(words: str) -> None:
    """The model laid its answer out, or the text was cut at the end of a line: nothing shows which."""
    half = FOX + " and the back"
    said = words.format(half[-ANCHOR_CHARS:])
    text, seam = merge_quote(f"{said}\nlog was cleared.", half, mark="last_words")
    assert (text, seam.sure) == (half + "\nlog was cleared.", False)
    assert seam.why.endswith(LINE_BREAK)
    for rest in ("log was cleared.", "\n- One more.", "\n    return x", "\nThe next line."):
        text, seam = merge_quote(said + rest, half, mark="last_words")
        assert (text, seam.sure) == (half + rest, True), rest


def test_the_end_of_the_fence_in_which_the_text_was_cut_stays() -> None:
    """The mark right behind the quotation closes the text's fence, or one around the quotation: their number tells,
    and a doubt stays."""
    inside = "Here it is:\n```python\ndef area(width, height):\n    return width * height"
    rest = "\n```\n\nThat is all."
    text, seam = merge_quote("```python\n" + inside[-ANCHOR_CHARS:] + rest, inside)
    assert (text, seam.sure) == (inside + rest, False)
    text, seam = merge_quote(f"```\n{inside[-ANCHOR_CHARS:]}\n```\n{rest}", inside)
    assert (text, seam.sure) == (inside + rest, False)
    assert "code fence" in seam.why


def test_a_wrapper_that_is_never_closed_leaves_a_doubt() -> None:
    text, seam = merge_quote("```python\n" + FOX[-ANCHOR_CHARS:] + REST)
    assert (text, seam.sure) == (FOX + REST, False)
    assert "not closed" in seam.why


@pytest.mark.parametrize("said", [
    "<last>something else</last> follows here.",
    "It goes on here.</last>",
    "\n".join(HINT_POINTS) + "\nIt goes on here.",
])
def test_our_own_prompt_never_reaches_the_text(said: str) -> None:
    text, seam = merge_quote(said)
    assert "last>" not in text
    assert HINT_POINTS[0] not in text
    assert text.endswith(" here.")
    assert seam.sure is False


def test_tags_of_that_name_that_the_answer_has_itself_stay() -> None:
    names = "<people><first>Ada</first><last>Lovelace</last><first>Alan</first><la"
    said = "st>Turing</last></people>"
    assert merge_quote(names[-ANCHOR_CHARS:] + said, names)[0] == names + said
    assert merge_quote(names[-ANCHOR_CHARS:] + said, names, mark="last_words")[0] == names + said
    for place in (7, *range(8, 16)):  # cut before or inside its first tag of that name
        names = "<root>\n  <last>Lovelace</last>\n  <last>Turing</last>\n</root>"
        for before, behind in (("", ""), ('"', '"'), ("Sure:\n", "")):
            said = before + names[:place] + behind + names[place:]
            if len(names[:place].strip()) >= 8 or not before:
                assert merge_quote(said, names[:place])[0] == names, (place, before)
    inner = FOX[-ANCHOR_CHARS:] + " <first>Ada</first><last>Lovelace</last>"
    assert merge_quote(inner)[0] == FOX + " <first>Ada</first><last>Lovelace</last>"


# -- any text, any cut, any wrapper ----------------------------------------------------------------------------------

PROSE = st.sampled_from([
    "the ", "river ", "was ", "not ", "far, ", "and ", "on ", "its ", "bank ", "stood ", "an ", "old ", "house. ",
    "10", "000 ", "book", "keeper ", '"no" ', "it's ", "\n", "\n\n", "    return x\n", "| a | b |\n", "0,1,2\n", "}\n",
    "é", "\U0001f600 ", "好", "# Title\n", "- item\n", "x = [", "f(a, b)", "**so** ", "`id` ",
])
TEXTS = st.lists(PROSE, min_size=12, max_size=60).map("".join).filter(lambda text: len(text) >= ANCHOR_CHARS)


@settings(max_examples=300, deadline=None)
@given(st.data(), TEXTS, st.sampled_from(sorted(WRAPPERS)))
def test_any_text_that_is_cut_anywhere_is_put_together_again(data: st.DataObject, text: str, wrapper: str) -> None:
    place = data.draw(st.integers(ANCHOR_CHARS, len(text)))
    before, after = text[:place], text[place:]
    words = before[-ANCHOR_CHARS:]
    assume(len(words.strip()) >= 8)
    assume("around all" not in wrapper or not after.endswith((" ", "\n")))
    made, seam = merge_quote(WRAPPERS[wrapper](words, after), before)
    assert made == text
    marked = before[:-ANCHOR_CHARS].endswith(("*", "`"))
    closes = after.rstrip().endswith(("*", "`", '"'))
    assert seam.sure or seam.why.endswith(
        (REPEATS, LINE_BREAK, *[SAME_MARK] * marked, *[MARK_AT_THE_END] * closes))


@settings(max_examples=300, deadline=None)
@given(TEXTS, TEXTS, st.sampled_from([Method.ANCHOR, Method.HINT, Method.PREFILL, Method.AGAIN]))
def test_nothing_of_an_unrelated_segment_is_dropped(first: str, second: str, method: Method) -> None:
    words = first[-ANCHOR_CHARS:]
    folded = " ".join(second.split())
    lines = [line.strip() for line in first.splitlines() if len(line.strip()) >= 24]
    assume(" ".join(words.split()) not in folded)
    assume(not any(line in folded for line in lines))
    assume(not any(first.endswith(second[:size]) for size in range(24, len(second) + 1)))
    assume(first[:64] != second[:64])
    anchor = words if method in (Method.ANCHOR, Method.AGAIN) else ""
    made = join((Segment(first), Segment(second, method, anchor)))
    assert made.text == first + second
    assert bool(made.doubtful_seams) is bool(anchor and second)


ITEMS = "".join(f"- item {number % 3}: check the value and continue with the next one\n" for number in range(12))
CELLS = "  <row><cell>same value</cell><cell>same value</cell></row>\n" * 6


@pytest.mark.parametrize("text", [ITEMS, CELLS], ids=["items", "cells"])
def test_rows_that_come_again_are_never_surely_a_quotation(text: str) -> None:
    """The model goes on without the words that it was asked for; the rows that follow hold the same words, and the
    same rows follow these. The last rows cannot show that."""
    for place in range(ANCHOR_CHARS, len(text) * 2 // 3):
        made, seam = merge_quote(text[place:], text[:place])
        assert made == text or not seam.sure, place


RECORDS = "[" + ", ".join(
    f'{{"id": {number}, "name": "{name}", "tags": ["x", "y"], "price": 1000.00}}'
    for number, name in enumerate(("alpha", "beta", "gamma", "delta", "epsilon"))) + "]"
SECTIONS = "\n".join(f"### {name}\n\n**Type:** string\n**Required:** yes\n**Default:** none\n"
                     for name in ("host", "port", "user", "password"))
CASES = "\n".join(f'    def test_{name}(self):\n        result = self.client.get("/api/{name}")\n'
                  "        self.assertEqual(result.status_code, 200)\n" for name in ("users", "items", "orders"))


@pytest.mark.parametrize("chatter", ["", "Sorry about that! Here is the rest:\n\n", "00"])
@pytest.mark.parametrize("text", [RECORDS, SECTIONS, CASES], ids=["records", "sections", "cases"])
def test_rows_of_other_values_are_never_surely_a_quotation(text: str, chatter: str) -> None:
    """The model goes on without the words, and the next row holds them behind a quotation mark or another value."""
    for place in share(range(ANCHOR_CHARS * 3 // 2, len(text) - 1), chatter):
        first, rest = text[:place], text[place:]
        made, seam = merge_quote(chatter + rest, first)
        assert made.endswith(rest) or (chatter and not seam.sure), place
        if not chatter.startswith("00"):
            made, seam = merge_quote(chatter + first[-ANCHOR_CHARS:] + rest, first)
            assert (made, seam.sure) == (text, True), f"quoted at {place}"


LINES = "\n".join(f'    {name}_total = count("{name}")  # the {name}' for name in
                  ("apples", "boats", "chairs", "doors", "engines", "forks", "gates"))


@pytest.mark.parametrize("text", [RECORDS, SECTIONS, CASES, LINES], ids=["records", "sections", "cases", "lines"])
def test_more_than_the_words_behind_a_line_of_chatter_is_found_or_leaves_a_doubt(text: str) -> None:
    for place in range(ANCHOR_CHARS * 3, len(text) - 1):
        first, rest = text[:place], text[place:]
        made, seam = merge_quote(f"Sure! Continuing:\n\n{first[-2 * ANCHOR_CHARS:]}{rest}", first)
        assert made == text or (text is not LINES and not seam.sure), f"quoted at {place}"


def test_behind_chatter_equal_rows_may_be_the_next_ones() -> None:
    text = "| a | b | c |\n" * 12
    for place in range(ANCHOR_CHARS * 2, ANCHOR_CHARS * 2 + 14):
        made, seam = merge_quote(f"Continuing from where I left off:\n\n{text[place:]}", text[:place])
        assert made == text or not seam.sure, place


def test_a_row_before_the_words_that_has_nothing_of_theirs_beside_it_leaves_a_doubt() -> None:
    """Unknown words that share a run with a row of the text may be the next row."""
    first = 'result = {"id": 1, "name": "alpha", "tags": ["x", "y"], "price": 1000.00}, {'
    made, seam = merge_quote('0}, {"id": 2, "name": "beta", "tags": ["x", "y"], "price": 1000.00}, {"id": 3}]', first)
    assert (made, seam.decision, seam.sure) == (first + '"id": 3}]', SeamDecision.ANCHOR, False)
    assert seam.why.endswith(REPEATS)


@pytest.mark.parametrize("between", [" ", "\n"])
def test_all_of_the_answer_behind_unknown_words_may_be_its_next_row(between: str) -> None:
    """Behind chatter it would be a quotation of more than was asked for."""
    own, words = "Counting rows here.", "he first of all the words that follow it"
    assert len(words) == ANCHOR_CHARS
    said = f"{own}{between}{words} and more."
    made, seam = merge_quote(f"Row number seven is new and {said}", f"{own} {words}")
    assert (made, seam.sure) == (f"{own} {words}Row number seven is new and {said}", False)
    assert merge_quote(f"Sure, here is the rest: {said}", f"{own} {words}")[1].sure


def test_two_closing_tags_at_the_end_are_both_left_out() -> None:
    text, seam = merge_quote(f"<answer><last>{FOX[-ANCHOR_CHARS:]}{REST}</last></answer>")
    assert (text, [part for _, part in seam.removals]) == (FOX + REST, ["</last>", "</answer>"])


@pytest.mark.parametrize("form", ["Here is the rest of it:\n\n{}", "Here is the rest of it:\n```javascript\n{}\n```"])
def test_chatter_with_words_of_the_answer_is_no_row_of_it(form: str) -> None:
    first = f"Here is the rest of the code:\n```javascript\nlet a = 1;\n```\nA story: {FOX}"
    made, seam = merge_quote(form.format(f"{first[-ANCHOR_CHARS:]} and ran."), first)
    assert (made, seam.sure) == (f"{first} and ran.", True)


@pytest.mark.parametrize("chatter", ["", "Sure, here is the rest:\n\n"])
def test_a_mark_before_the_words_that_the_answer_has_too_leaves_a_doubt(chatter: str) -> None:
    """More was quoted than the words, and the mark behind them is no closing one: it is the next of the answer."""
    words = "The values of all orders of this user..."
    first = f'<li class="kind"><a href="/orders">user</a></li>\n<li class="gamma"><a title="{words}'
    assert len(words) == ANCHOR_CHARS
    for size in range(ANCHOR_CHARS, len(first)):
        made, seam = merge_quote(f'{chatter}{first[-size:]}"><b>', first)
        assert made == f'{first}"><b>' or not seam.sure, size


def test_the_last_line_of_the_words_behind_unknown_words_is_new_text() -> None:
    text = "Each of them:\n- item 1: check the value of it"
    more = " and go on\n- item 2: nothing\n- item 1: check the value of it once more\n"
    made, seam = merge_quote(more, text)
    assert (made, seam.sure) == (text + more, False)
    for opening in ("", "Sure, here is the rest:\n"):
        assert merge_quote(f"{opening}- item 1: check the value of it, then stop.", text)[0] == f"{text}, then stop."


def test_words_that_come_twice_behind_unknown_words_are_rows_of_the_text() -> None:
    words = FOX[-ANCHOR_CHARS:]
    more = f" sleep. Once more, {words} rest. A third time, {words} stop."
    made, seam = merge_quote(more)
    assert (made, seam.sure) == (FOX + more, False)
    assert merge_quote(f"Well then, my friend, {words}{REST}")[0] == FOX + REST


@pytest.mark.parametrize(("text", "said", "whole"), [
    ("def first():\n    pass\n\ndef second():\n", "{words}    return 2\n", "    return 2\n"),
    ("- one is here\n- two is here\n  ", "{words}- and a half\n", "- and a half\n"),
])
def test_a_line_break_of_the_other_style_is_part_of_the_quotation(text: str, said: str, whole: str) -> None:
    for here, there in (("\n", "\r\n"), ("\r\n", "\n")):
        own = text.replace("\n", here)
        words = own[-ANCHOR_CHARS:].replace(here, there)
        made, seam = merge_quote(said.format(words=words), own)
        assert (made, seam.decision, seam.sure) == (own + whole, SeamDecision.ANCHOR, True)


def test_other_white_space_than_that_of_the_text_leaves_the_seam_unverified() -> None:
    text = "name\tcount\tprice\napples\t12\t3.50\npears\t7\t"
    made, seam = merge_quote(text[-ANCHOR_CHARS:].replace("\t", "    ") + "4.20\n", text)
    assert (made, seam.sure) == (text + "    4.20\n", False)
    # Left out, it is none: the text has it already.
    assert merge_quote(text[-ANCHOR_CHARS:].rstrip() + "4.20\n", text)[0] == text + "4.20\n"
    assert merge_quote(text[-ANCHOR_CHARS:] + "4.20\n", text)[1].sure


def test_a_fence_around_the_words_of_an_open_fence_is_doubted_behind_their_line_break() -> None:
    text = "```python\ndef first(name):\n    return name.strip().lower()\n"
    _, seam = merge_quote(f"```\n{text[-ANCHOR_CHARS:]}\n```\n\ndef second():\n    return 2\n```\n", text)
    assert (seam.sure, "code fence" in seam.why) == (False, True)


@pytest.mark.parametrize(("text", "said"), [
    (f"It is {'0' * 50}", "0" * 20), ("ha " * 20 + "h", " ha ha ha ha ha"), ("ha " * 20 + "ha", "ha ha ha ha ha ha"),
])
def test_a_row_that_goes_on_alike_has_not_ended_in_the_words(text: str, said: str) -> None:
    made, seam = merge_quote(said, text)
    assert (made, seam.decision, seam.sure) == (text + said, SeamDecision.UNVERIFIED, False)
    made, seam = merge_quote(FOX[-ANCHOR_CHARS:][:20], FOX)
    assert (made, seam.sure) == (FOX, True)


def test_indented_words_behind_other_words_are_no_quotation() -> None:
    """White space is no part of the length of words: `else:` and half of `return` were found in lines that only go on,
    and the lines before them were lost."""
    text = ("if a:\n        if b:\n                if c:\n                        pass\n                else:\n"
            "                        ret")
    said = "urn\n        else:\n                return 5\n"
    whole, seam = merge_quote(said, text)
    assert whole == text + said
    assert not seam.sure


@pytest.mark.parametrize("blank", ["\n", " "])
def test_a_row_of_one_character_behind_white_space_leaves_a_doubt(blank: str) -> None:
    """`1` and 200 zeros: where the quoted ones end is not known, and 80 of them were lost."""
    text = "x = 1" + "0" * 120
    assert not merge_quote(f"{blank}{'0' * 40}{'0' * 80}5 and then 3", text)[1].sure


def test_more_of_the_text_that_begins_with_the_same_words_leaves_a_doubt() -> None:
    """The last 40 characters are also those at the end of the row before, from which on the model quoted."""
    row = '    {{\n      "id": {0},\n      "name": "n{0}",\n      "ok": true\n    }},\n'
    rows = [row.format(number) for number in range(3)]
    text = "".join(rows) + '    {\n      "id"'
    begins = text.index(text[-ANCHOR_CHARS:])
    whole, seam = merge_quote(text[begins:] + ": 3,", text)
    assert whole != text + ": 3,"
    assert not seam.sure
    assert merge_quote(text[-ANCHOR_CHARS:] + ": 3,", text)[1].sure


@each_row(("text", "rest"), [
    ('[\n    {\n      "id": 0, "kind": "a",\n      ', '"name": "n0"\n    }\n]'),
    ('def add(a, b):\n    """Adds two numbers."""\n    ', '"""It is fast."""'),
    ('He said: "I am not sure that we can do this to', 'day." And he left.'),
    ('[\n    {\n      "id": 0, "kind": "a", "n', 'ame": "n0"\n    }\n]'),
])
def test_a_mark_behind_the_words_that_may_close_at_the_end_leaves_a_doubt(text: str, rest: str) -> None:
    """The model put all of it in quotation marks. The first mark of the text itself was taken for the closing one and
    lost, or the closing one stayed in the text."""
    assert not merge_quote(f'"{text[-ANCHOR_CHARS:]}{rest}"', text)[1].sure


def test_a_line_break_behind_a_closing_mark_may_not_belong_to_a_text_that_ends_with_a_blank() -> None:
    text = FOX + " "
    whole, seam = merge_quote(f"<last>{text[-ANCHOR_CHARS:]}</last>\nsleep under the tree.", text)
    assert (whole, seam.sure) == (text + "\nsleep under the tree.", False)
    assert merge_quote(f"<last>{text[-ANCHOR_CHARS:]}</last>sleep under the tree.", text)[1].sure


HALF = "The limits with some values replaced, from text a"


@each_row("said", [
    "> {}\n\ns an integer or a float.", "Sure:\n\n> {}\ns an integer or a float.",
    'Your last words were "{}".\n\ns an integer or a float.', 'Continuing from "{}"...\n\ns an integer or a float.',
    "<last>{}</last>\n), MOST)", "`{}`\n], b)",
])
def test_a_line_break_that_ends_the_quotation_leaves_a_doubt(said: str) -> None:
    """It stood in the middle of a word, with the mark before it, and the seam was verified."""
    _, seam = merge_quote(said.format(HALF[-ANCHOR_CHARS:]), HALF, mark="last_words")
    assert (seam.sure, seam.why.endswith(LINE_BREAK)) == (False, True)


@each_row("said", ["{}{}", "> {}{}", "<last>{}</last>{}", '"{}"{}'])
def test_a_sentence_that_ends_behind_the_quotation_leaves_no_doubt(said: str) -> None:
    rest = ".\n\nThe next one."
    text, seam = merge_quote(said.format(HALF[-ANCHOR_CHARS:], rest), HALF, mark="last_words")
    assert (text, seam.sure) == (HALF + rest, True)


def test_a_line_break_behind_the_indent_with_which_the_text_ends_leaves_a_doubt() -> None:
    text = "def first(name: str) -> str:\n    if name:\n    "
    assert not merge_quote(f"<last>{text[-ANCHOR_CHARS:]}</last>\n    return name", text, mark="last_words")[1].sure


@each_row("said", ["...{}{}", '"{}"{}', "<last>{}</last>{}"])
def test_a_line_that_begins_with_a_blank_as_others_of_the_text_keeps_its_line_break(said: str) -> None:
    """A diff has such lines, and the line break before one of them was left out of a verified seam."""
    text = "".join(f" line {number}\n-old {number}\n+new {number}\n" for number in range(9))[:-1]
    rest = "\n line 9\n-old 9"
    assert merge_quote(said.format(text[-ANCHOR_CHARS:], rest), text, mark="last_words")[0] == text + rest


@each_row("mark", ['"', "'", "`", "**", "_"])
def test_a_mark_around_all_that_opens_and_closes_alike_leaves_a_doubt(mark: str) -> None:
    """The mark at the end stayed in the text, and the seam was verified."""
    text = f'"""Says {mark} and no more."""\n{HALF}'
    whole, seam = merge_quote(f"{mark}{text[-ANCHOR_CHARS:]}s an integer.{mark}", text)
    assert whole == f"{text}s an integer." or not seam.sure


def test_words_between_chatter_and_the_quotation_that_the_text_does_not_end_with_leave_a_doubt() -> None:
    """They may be the continuation, in which the same words come again; they were left out of a verified seam."""
    rule = "A rule that each of them follows without exception"
    assert not merge_quote(f"Sure, here is the rest:\n\n.\nBob: {rule}.\nEve: none.", rule)[1].sure
    assert merge_quote(f"Sure, here is the rest:\n\n{rule}.\nEve: none.", rule)[1].sure


PERIOD = "2026-01-02 10:04:08 INFO worker 17: cache miss\n"
RECORD = ' {\n  "id": 0,\n  "name": "a name",\n  "note": "as said before"\n },\n'


@each_row("chatter", ["Sure, continuing:\n\n", "Certainly! ", "\u2026 ", "```\n"])
def test_the_next_of_equal_rows_after_other_text_is_no_verified_quotation(chatter: str) -> None:
    """A row was taken for more of the text than was to be quoted, and left out of a verified seam."""
    text, size = PERIOD * 5, len(PERIOD)
    for place in range(2 * size, 3 * size):
        made, seam = merge_quote(chatter + text[place:], text[:place])
        assert made == text or not seam.sure, place
    for place in range(size + ANCHOR_CHARS, 2 * size):
        first = text[:place]
        made, seam = merge_quote(f"{chatter}{first[-ANCHOR_CHARS:]}and so on", first)
        assert made == f"{first}and so on"


def test_words_that_pass_into_the_quotation_without_a_blank_leave_a_doubt() -> None:
    text = RECORD + RECORD.replace("0", "1")
    first, rest = text[:-len(RECORD) + 5], text[-len(RECORD) + 5 :] + RECORD.replace("0", "2")
    made, seam = merge_quote(f"Certainly! {rest}", first)
    assert made.endswith(rest) or not seam.sure
    words = first[-ANCHOR_CHARS:]
    assert merge_quote(f"Certainly! {words}{rest}", first)[0] == first + rest
    assert merge_quote(f"```json\n{words}{rest}\n```", first)[1].sure


@each_row(("text", "rest"), [
    ("| one | 1 |\n| two | 2 |\n| three | 3 and no more |\n", "| four | 4 |\n"),
    ("A family: \U0001f468 and more of them, and at the end \U0001f468", "\u200d\U0001f469"),
    ("A word of letters with accents, and at its end there is e", "\u0301tude"),
])
def test_a_line_break_after_a_tag_that_the_text_may_not_have_leaves_a_doubt(text: str, rest: str) -> None:
    """It parted rows of a table, or a character, in a verified seam."""
    words = text[-ANCHOR_CHARS:]
    assert not merge_quote(f"<last>{words}</last>\n{rest}", text)[1].sure
    assert merge_quote(f"<last>{words}</last>{rest}", text)[1].sure


def test_more_than_the_words_up_to_an_earlier_place_of_them_leaves_a_doubt_behind_a_blank() -> None:
    row = "Family and friends go to the big parade in town with drums and flags. "
    text = row + "Family and friends go to the big parade in town with drums and "
    begin = text.index(text[-ANCHOR_CHARS:])
    assert not merge_quote(text[begin:] + "colours.", text)[1].sure


@pytest.mark.parametrize("method", [Method.ANCHOR, Method.PREFILL, Method.HINT])
@pytest.mark.parametrize("block", ["```\n{}\n```", "```text\n{}\n```", "<think>Go on.</think>\n\n{}"])
def test_a_fence_or_reasoning_inside_a_line_leaves_a_doubt(block: str, method: Method) -> None:
    """The fence stayed in the middle of the sentence, and the seam was verified."""
    def seam(text: str, said: str) -> Seam:
        words = text[-ANCHOR_CHARS:] if method is Method.ANCHOR else ""
        return join((Segment(text), Segment(words + said, method, words, echoes=False))).seams[0]

    assert not seam(FOX, block.format(REST)).sure
    for text in (f"{FOX}:\n", f"{FOX}:\n\n- ", f"{FOX}:\n\n1. "):
        assert seam(text, "```python\nx = 1\n```\n").sure, "a block of the answer"
    assert seam(f"{FOX} the tag `", "<think>`, which begins reasoning.").sure


@pytest.mark.parametrize("key", ["text", "continuation"])
def test_words_in_json_of_the_model_leave_a_doubt(key: str) -> None:
    """The escapes and the end of the JSON stayed in the text, and the seam was verified."""
    for text in (FOX, f"{FOX} "):
        assert not merge_quote(json.dumps({key: text[-ANCHOR_CHARS:] + REST}), text)[1].sure
    own = f'[{{"id": 1, "{key}": "one"}}, {{"{key}": "{FOX}'
    made, seam = merge_quote(f'{{"{key}": "{FOX}{REST}"}}]', own)
    assert (made, seam.sure) == (f'{own}{REST}"}}]', True), "more of the answer was quoted"


def test_words_that_end_like_the_text_before_them_may_be_its_next_ones() -> None:
    """The sentence comes again: the model went on without the words, and the whole repetition was left out."""
    sentence = "And it can be shown as follows: the sum of the digits is even. "
    text = f"42. {sentence}{sentence[:60]}"
    made, seam = merge_quote(sentence[60:] + sentence, text)
    assert made == text + sentence[60:] + sentence or not seam.sure
    made, seam = merge_quote(text[-8:] + sentence[60:] + sentence, text)
    assert made == text + sentence[60:] + sentence or not seam.sure
