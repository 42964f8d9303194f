"""Two turns side by side: one turn under two runs, and two turns of two recordings."""

from __future__ import annotations

from inspector.config.settings import Settings, settings_of
from inspector.report.lines.spans import text_of
from inspector.whatif.branch_lines import branch_sheet
from inspector.whatif.tree import EqualSteps, branch
from inspector.whatif.turn_pair import TurnPair, TurnSide, pair_values
from tests.scenes.recordings import (
    CUT,
    PARTS,
    WHOLE,
    assistant,
    call,
    chat,
    cut_text,
    pair_of,
    repair_turn,
    result,
    show,
    user,
)


def side(view, number=1, name="this"):
    return TurnSide(name, view, view.turns[number - 1])


def turns_beside(view, **assignments):
    made = branch(view, settings_of({name: str(value) for name, value in assignments.items()}, Settings()))
    return TurnPair(side(view, name="original"), side(made.view, name=made.name))


def pair_lines(pair, width=100):
    return [" ".join(text_of(line).split()) for line in pair.lines(width)]


def test_one_turn_under_two_runs_says_first_what_changed():
    lines = pair_lines(turns_beside(show(*cut_text(*PARTS)), continuation_max_attempts=5))
    chars = [len("".join(PARTS[:count])) for count in (4, 5)]
    assert lines[:12] == [
        f"different: the number of answers (4 and 5), the text from character {chars[0]} on; "
        "the first difference is at step 13",
        "original attempts=5",
        "ends as retry_limit (AbortPartial) ≠ Complete",
        "verdict ✂ LIMIT REACHED ≠ ✓ CUT, COMPLETED",
        'stop "length" → max_tokens │ "length" → max_tokens',
        "segments 4 ≠ 5",
        "tokens out 40 ≠ 45",
        "max_tokens not set │ not set",
        "requests 4 ≠ 5",
        "calls none │ none",
        f"text {chars[0]} characters ≠ {chars[1]} characters",
        "1–12 12 equal steps │ 1–12",
    ]
    assert "13 ■ AbortPartial retry_limit ≠ 13 → RequestContinuation 4 anchor" in lines
    assert "15 → Request the agent went on ≠ none" in lines, "the turn ended before, as the run said"
    assert sum("went on" in line for line in lines) == 1, "only where another run of the turn begins"


def test_a_simulated_end_says_so_and_the_caps_stand_beside_each_other():
    found = show(*cut_text(*PARTS[:3], tokens=40, max_tokens=20))
    lines = pair_lines(turns_beside(found, max_tokens=100))
    assert "max_tokens 20 ≠ 100" in lines
    assert "ends as budget_exhausted (AbortPartial) ≠ Complete SIMULATED" in lines


def test_nothing_differs_where_nothing_was_changed():
    pair = turns_beside(show(*cut_text(*PARTS[:2])))
    assert pair.difference is None
    assert pair.summary() == "no step differs"
    assert not any("≠" in line for line in pair_lines(pair))


def test_turns_of_two_recordings_are_compared_by_their_moves():
    whole = show(pair_of([user("Write it.")], chat("Here it is.", "tool_calls", call())))
    cut = show(pair_of([user("Write that.")], chat("Here.", "length", call(CUT), tokens=9)))
    pair = TurnPair(side(whole, name="whole"), side(cut, name="cut"))
    assert not pair.one_turn
    lines = pair_lines(pair)
    assert "calls write_file ready ≠ write_file held" in lines
    assert 'stop "tool_calls" → tool_call ≠ "length" → max_tokens' in lines
    assert "tokens out 7 ≠ 9" in lines
    assert pair.steps[0].same, "both begin with a request, whatever its number"
    assert pair.difference == (1, 1, False)
    alike = show(pair_of([user("Something else.")], chat("No.")), pair_of([user("Write that.")], chat("Well.")))
    same = TurnPair(side(alike, 1), side(alike, 2))
    assert same.rows()[-1] == EqualSteps(0, 3, 3)
    assert same.summary() == "different: the text from character 0 on; every step is the same move"


def test_a_round_of_tools_that_only_one_turn_has_stands_alone():
    """What comes after it is beside the same moves of the other turn, not one round late."""
    first, second = call(key="call_1"), call('{"path": "b.md", "content": "four"}', key="call_2")
    one = [user("Write it."), assistant("First.", first), result("ok", "call_1")]
    two = [*one, assistant("Second.", second), result("ok", "call_2")]
    long = show(pair_of(one[:1], chat("First.", "tool_calls", first)),
                pair_of(one, chat("Second.", "tool_calls", second)),
                 pair_of(two, chat("Both.")))
    short = show(pair_of(one[:1], chat("First.", "tool_calls", first)), pair_of(one, chat("One.")))
    pair = TurnPair(side(long), side(short))
    alone = [row for row in pair.steps if None in row[:2]]
    assert len(alone) == len(long.steps) - len(short.steps) == 3
    assert all(row.same for row in pair.steps if row not in alone)
    for index in range(2):
        assert [row[index] for row in pair.steps if row[index] is not None] == list(
            range(len((long, short)[index].steps)))
    assert pair.summary() == (
        "different: the number of answers (3 and 2), call 2 (write_file, only on the left), "
        "the text from character 0 on; "
        f"the first difference: only the left one has a step {alone[0].left + 1} there")
    back = TurnPair(side(short), side(long))
    assert [row[1::-1] for row in back.steps if None not in row[:2]] == [
        row[:2] for row in pair.steps if None not in row[:2]]


def test_opened_steps_are_rows_of_their_own():
    pair = turns_beside(show(*cut_text(*PARTS)), continuation_max_attempts=5)
    assert len(pair.rows([0])) == len(pair.rows()) + 11


# -- turns that say nothing and differ in what they call -------------------------------------------------------------


def calling(arguments=WHOLE, name="write_file", *more):
    return show(pair_of([user("Write it.")], chat(None, "tool_calls", call(arguments, name=name), *more)))


def test_turns_that_differ_only_in_the_arguments_of_a_call_say_so_first():
    pair = TurnPair(side(calling()), side(calling(WHOLE.replace("three", "seven"))))
    at = WHOLE.index("three")
    assert pair.summary() == (
        f"different: the arguments of call 1 (write_file) from character {at} on; every step is the same move")
    lines = pair_lines(pair)
    assert "calls write_file ready ≠ write_file ready, other arguments" in lines
    assert "the same 0 characters" not in lines
    calls, text = lines.index("calls"), lines.index("merged text")
    assert calls < text, "what differs stands first"
    assert lines[text + 1] == "no text in either"
    assert lines[calls + 1] == "call 1 write_file other arguments"
    assert [line[0] for line in lines[calls + 3 : calls + 6]] == ["{", "−", "+"]


def test_a_call_without_a_name_is_called_the_same_in_each_line():
    lines = pair_lines(TurnPair(side(calling(name="")), side(calling(name="", arguments="{}"))))
    assert "calls unnamed rejected ≠ unnamed rejected, other arguments" in lines
    assert "call 1 unnamed other arguments" in lines


def test_calls_are_compared_by_their_names_and_one_that_only_one_side_has_is_named():
    other = TurnPair(side(calling()), side(calling(name="edit_file")))
    assert other.summary().startswith("different: call 1 (write_file and edit_file); ")
    assert "call 1 write_file ≠ edit_file the same arguments, 44 characters" in pair_lines(other)
    second = call('{"path": "b.md", "content": "x"}', key="call_2")
    for pair, where in ((TurnPair(side(calling()), side(calling(WHOLE, "write_file", second))), "right"),
                        (TurnPair(side(calling(WHOLE, "write_file", second)), side(calling())), "left")):
        assert f"different: call 2 (write_file, only on the {where}); " in pair.summary()
        assert f"call 2 write_file only on the {where}" in pair_lines(pair)


def test_the_reasons_of_answers_are_compared():
    pair = TurnPair(side(calling()), side(show(pair_of([user("x")], chat(None, "length", call())))))
    assert pair.summary().startswith("different: the answers' stop reasons; ")


def test_texts_of_one_length_are_not_the_same_text():
    pair = TurnPair(side(show(pair_of([user("x")], chat("one")))), side(show(pair_of([user("x")], chat("two")))))
    assert "text 3 characters ≠ 3 characters, other words" in pair_lines(pair)
    assert pair_values(pair, ["a", "b"])["differs"] == ["text"]


def test_the_document_has_the_calls_of_both_and_names_them_where_they_differ():
    made = pair_values(TurnPair(side(calling()), side(calling(CUT))), ["a", "b"])
    assert made["left"]["calls"] == [{"name": "write_file", "arguments": WHOLE, "verdict": "ready"}]
    assert "calls" in made["differs"]


def test_a_branch_beside_its_original_says_which_calls_differ():
    """With a larger budget the call that was cut comes whole."""
    found = show(*repair_turn())
    made = branch(found, settings_of({"max_tokens": "400"}, Settings()))
    lines = [" ".join(text_of(line).split()) for line in branch_sheet(made, None).lines]
    at = lines.index("calls")
    assert lines[at + 1] == "call 1 write_file other arguments"
    assert "call 2 write_file only in the original" in lines
    assert lines.index("merged text") > at, "the same text stands last"
