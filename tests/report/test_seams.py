"""Seams in lines: what another rule would change, and the segments side by side."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.report.lines import diff as side_lines
from inspector.report.lines.diff import COLUMNS, Pair, Sides, sides
from inspector.report.lines.merged import (
    RULE_MEANS,
    Change,
    change_counts,
    change_lines,
    changes,
    kept_range,
    seam_lines,
    trying,
)
from inspector.report.lines.spans import EMPTY, Span, text_of, width_of
from inspector.report.lines.steps import Outline
from loop_core.turn.continuation import Method, Seam, SeamDecision, SeamRule, Segment
from loop_core.turn.seam import join
from tests.scenes.recordings import ASKS, HINT, assistant, chat, pair_of, show, user

FIRST = "The answer begins here and is long enough to be quoted back exactly as it was. "
AGAIN = FIRST[-40:]
REST = "And it ends."
METHODS = (Method.HINT, Method.PREFILL, Method.ANCHOR, Method.REPAIR, Method.POLL, Method.ECHO)


@st.composite
def answers(draw: st.DrawFn) -> list[Segment]:
    """Segments that repeat, restart and overlap often: words of a small alphabet."""
    words = st.lists(st.sampled_from(["ab ", "ba ", "abc abc abc abc abc abc abc ", FIRST, AGAIN, "\n"]), max_size=4)
    found: list[Segment] = []
    for number in range(draw(st.integers(1, 4))):
        method = draw(st.sampled_from(METHODS)) if number else Method.FIRST
        text = "".join(draw(words))
        anchor = found[-1].text[-40:] if found and method is Method.ANCHOR else ""
        stripped = draw(st.sampled_from(["", " "])) if method is Method.PREFILL else ""
        found.append(Segment(text, method, anchor, stripped, draw(st.sampled_from([True, False, None]))))
    return found


@given(answers(), st.sampled_from(SeamRule), st.sampled_from(SeamRule))
def test_the_changes_are_the_difference_of_the_two_texts(segments, rule, tried):
    found = changes(segments, rule, tried)
    added, removed = change_counts(found)
    assert len(join(segments, tried).text) - len(join(segments, rule).text) == added - removed
    assert (join(segments, tried).text == join(segments, rule).text) or found
    assert changes(segments, tried, tried) == []


@given(answers(), st.sampled_from(SeamRule))
def test_what_stands_of_the_segments_is_the_text(segments, rule):
    whole = join(segments, rule)
    text = ""
    for place, segment in enumerate(segments):
        start, end = kept_range(whole, place)
        assert 0 <= start <= max(start, end) <= len(segment.text)
        text += segment.text[start:end] + ("\n\n" if _apart_after(whole, place) else "")
    assert text == whole.text


def _apart_after(whole, place):
    """Whether a blank line was put there, and no later answer began anew before it."""
    following = whole.seams[place:]
    apart = bool(following) and following[0].decision is SeamDecision.APART
    return apart and min(seam.at for seam in following) == following[0].at


def test_what_was_set_apart_goes_with_the_text_that_a_later_answer_replaced():
    segments = [Segment("ab "), Segment("ab ", Method.REPAIR), Segment("", Method.HINT), Segment("ba ", Method.POLL)]
    assert join(segments, SeamRule.CAREFUL).text == "ba "
    added, removed = change_counts(changes(segments, SeamRule.CAREFUL, SeamRule.CONCAT))
    assert added - removed == len("ab ab ba ") - len("ba ")


def test_an_anchor_comes_back_where_nothing_is_cut():
    segments = [Segment(FIRST), Segment(AGAIN + REST, Method.ANCHOR, AGAIN)]
    assert changes(segments, SeamRule.CAREFUL, SeamRule.CONCAT) == [Change(1, False, "", AGAIN)]
    assert changes(segments, SeamRule.CONCAT, SeamRule.CAREFUL) == [Change(1, False, AGAIN, "")]
    assert changes(segments, SeamRule.CAREFUL, SeamRule.OVERLAP) == []


def test_the_greedy_rule_loses_a_letter():
    segments = [Segment("book"), Segment("keeper")]
    found = changes(segments, SeamRule.CAREFUL, SeamRule.OVERLAP)
    assert found == [Change(1, False, "k", "")]
    assert [text_of(line) for line in change_lines(found[0], SeamRule.CAREFUL)] == [
        '−− "k" 1 character fewer than by the rule careful']


def test_a_tried_rule_is_told_in_one_line():
    seen = show(pair_of([user(ASKS)], chat("book", "length")),
                 pair_of([user(ASKS), assistant("book"), user(HINT)], chat("keeper")))
    block = Outline(seen).blocks[0]
    assert trying(seen, block, SeamRule.OVERLAP) == (
        "seam overlap: 1 character differs from careful · branch: --set seam=overlap")
    assert trying(seen, block, SeamRule.CAREFUL) == "seam rule careful: the rule in force"


def test_a_seam_names_its_segments_its_rule_and_what_was_cut():
    lines = seam_lines(Seam(2, 9, SeamDecision.OVERLAP, "x" * 100, "overlap, 100 characters cut"), SeamRule.CAREFUL)
    assert text_of(lines[0]) == "══ seam 2 to 3: overlap, 100 characters cut · rule: careful ══"
    assert text_of(lines[1]) == f'− "{"x" * 30}…{"x" * 30}" cut'


# -- side by side ----------------------------------------------------------------------------------------------------


def quoted_back():
    """A text that is cut and whose next segment repeats its last forty characters."""
    return show(pair_of(ASKS, chat(FIRST, "length", tokens=20), max_tokens=20),
                 pair_of([*ASKS, assistant(FIRST), user(HINT)], chat(AGAIN + REST, tokens=9), max_tokens=20))


def test_what_was_cut_stands_opposite_the_same_words():
    seen = quoted_back()
    sheet = sides(seen, Outline(seen).blocks[0], 0, None)
    pairs = [(text_of(entry.left), text_of(entry.right)) for entry in sheet.entries if isinstance(entry, Pair)]
    assert pairs == [
        ('segment 1 "length" → max_tokens', 'segment 2 "stop" → end_turn'),
        (f"1 {FIRST[:-40]}", ""), (f"1 {AGAIN}", f"2 − {AGAIN}"), ("", f"2 {REST}"),
    ]
    assert sheet.copy_text() == FIRST + REST


def test_the_sides_are_beside_each_other_where_there_is_room():
    seen = quoted_back()
    sheet = sides(seen, Outline(seen).blocks[0], 0, None)
    index = next(i for i in range(len(sheet)) if AGAIN in text_of(sheet.line(i)) and "−" in text_of(sheet.line(i)))
    for width in (30, COLUMNS - 1, COLUMNS, 101, 160):
        rows = sheet.rows(index, width)
        assert sheet.height(index, width) == len(rows)
        assert all(width_of(row) <= width for row in rows)
        columns = {text_of(row).index("│") for row in rows if "│" in text_of(row)}
        assert columns == ({(width - 3) // 2 + 1} if width >= COLUMNS else set())
    assert text_of(sheet.rows(index, 160)[0]).startswith("1 ")
    assert "2 − " in text_of(sheet.rows(index, 160)[0])


def test_side_by_side_opens_at_the_seam_at_hand():
    seen = quoted_back()
    block = Outline(seen).blocks[0]
    sheet = sides(seen, block, block.end - 1, None)
    assert text_of(sheet.line(sheet.focus)).startswith("══ seam 1 to 2")


def test_a_turn_of_one_segment_has_no_sides():
    seen = show(pair_of(ASKS, chat("Yes.")))
    sheet = sides(seen, Outline(seen).blocks[0], 0, None)
    assert [text_of(sheet.line(i)) for i in range(len(sheet))] == [
        "there is no seam in this turn: each answer is one segment"]


def test_a_long_segment_shows_only_what_is_near_the_seam():
    long = "word " * 200
    seen = show(pair_of(ASKS, chat(long, "length", tokens=20), max_tokens=20),
                 pair_of([*ASKS, assistant(long), user(HINT)], chat("then " * 200, tokens=9), max_tokens=20))
    sheet = sides(seen, Outline(seen).blocks[0], 0, None)
    pairs = [entry for entry in sheet.entries if isinstance(entry, Pair)]
    assert text_of(pairs[1].left) == "1 …" + long[-side_lines.SIDE_SHOWN :]
    assert text_of(pairs[2].right) == "2 " + ("then " * 200)[: side_lines.SIDE_SHOWN] + "…"


def test_a_side_that_is_empty_takes_no_row_below_the_other():
    sheet = Sides([Pair((Span("left"),), EMPTY)], 0, "")
    assert [text_of(row) for row in sheet.rows(0, 40)] == ["left"]


@pytest.mark.parametrize("rule", list(SeamRule))
def test_the_first_seam_says_what_a_seam_and_its_rule_are(rule: SeamRule) -> None:
    first, second = (seam_lines(Seam(index, 5, SeamDecision.AS_SENT, "", "as sent", True), rule) for index in (1, 2))
    told = text_of(first[-1]).strip()
    assert told == f"a seam is where the answer goes on after a cut; the rule {rule.value} {RULE_MEANS[rule]}"
    assert len(first) == len(second) + 1
