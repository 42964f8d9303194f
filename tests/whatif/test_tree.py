"""Branches of branches, any two side by side, and what a change would do before it is made."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from inspector.config.settings import Settings, assignments, from_record, parse_stretches, record_of, settings_of
from inspector.replay import replay
from inspector.report.explain_document import document
from inspector.whatif.branch_lines import branch_sheet
from inspector.whatif.branch_report import command_of
from inspector.whatif.tree import (
    ORIGINAL,
    EqualSteps,
    Tree,
    branch,
    compare,
    fold_pairs,
    preview,
    step_pairs,
    tree_prefix,
    unfold_pair,
)
from loop_core.errors import CallerError
from loop_core.turn.limits import Limits
from loop_core.turn.state import State
from loop_core.turn.trace import step_key
from tests.scenes.recordings import PARTS, chat, cut_text, pair_of, show, user
from tests.scenes.rows import each_row
from tests.whatif.test_branch import stories
from tests.whatif.test_rerun import choices, everything


def setting(node, **names):
    return settings_of({name: str(value) for name, value in names.items()}, node.view.replay.settings)


@pytest.fixture
def tree():
    return Tree(show(*cut_text(*PARTS)))


def grown(tree):
    one, _ = tree.add(tree.original, setting(tree.original, continuation_max_attempts=5))
    two, _ = tree.add(one, setting(one, continuation_max_total_completion_tokens=30))
    three, _ = tree.add(tree.original, setting(tree.original, continuation_max_attempts=1), 6)
    return one, two, three


def test_a_branch_is_named_by_what_it_changes_against_its_parent(tree):
    one, two, three = grown(tree)
    assert [node.name for node in tree.every] == [ORIGINAL, "attempts=5", "cont_tokens=30", "attempts=1 from step 7"]
    assert two.path == "attempts=5 / cont_tokens=30"
    assert (tree.original.depth, one.depth, two.depth, three.depth) == (0, 1, 2, 1)
    assert two.branch.original is one.view
    drawing = [tree_prefix(follows) + node.name for node, follows in tree.rows()]
    assert drawing == [ORIGINAL, "├ attempts=5", "│ └ cont_tokens=30", "└ attempts=1 from step 7"]


def test_the_same_run_is_not_made_twice(tree):
    one, two, three = grown(tree)
    assert tree.add(tree.original, setting(tree.original, continuation_max_attempts=5)) == (one, False)
    both = setting(tree.original, continuation_max_attempts=5, continuation_max_total_completion_tokens=30)
    assert tree.add(tree.original, both) == (two, False)
    assert tree.add(one, one.view.replay.settings, 3) == (one, False)
    assert tree.add(tree.original, Settings()) == (tree.original, False)
    assert len(tree.every) == 4
    again = Tree(tree.original.view)
    assert [node.key for node in grown(again)] == [one.key, two.key, three.key]
    assert len({ORIGINAL, one.key, two.key, three.key}) == 4


def test_what_is_tried_on_a_late_branch_holds_from_where_that_holds(tree):
    *_, three = grown(tree)
    child, new = tree.add(three, setting(three, max_tool_steps=2))
    assert new
    assert child.view.replay.since == 6
    assert child.name == "max_tool_steps=2 from step 7"
    early, _ = tree.add(three, setting(three, max_tool_steps=2), 0)
    assert early.view.replay.stretches == ((0, early.view.replay.settings),)


def test_a_run_is_found_by_its_name_its_path_or_its_key(tree):
    one, two, three = grown(tree)
    assert tree.find(ORIGINAL) is tree.original
    assert tree.find("attempts=5") is one
    assert tree.find("cont_tokens=30") is tree.find("attempts=5 / cont_tokens=30") is two
    assert tree.find(three.key) is tree.find(three.key[:6]) is three
    with pytest.raises(CallerError, match="there is no run 'hope'; the runs are original, attempts=5, "):
        tree.find("hope")
    twins = [tree.add(node, setting(node, max_tool_steps=2))[0] for node in (one, two)]
    with pytest.raises(CallerError, match="run 'max_tool_steps=2': 2 have that name; their keys are ") as why:
        tree.find("max_tool_steps=2")
    assert all(node.key in str(why.value) for node in twins)
    assert tree.find("attempts=5 / max_tool_steps=2") is twins[0]


def test_a_branch_is_removed_with_those_made_from_it(tree):
    one, two, three = grown(tree)
    assert tree.remove(one) == [one, two]
    assert tree.every == [tree.original, three]
    assert tree.remove(tree.original) == []


# -- side by side -----------------------------------------------------------------------------------------------------


def test_any_two_runs_are_compared(tree):
    one, two, three = grown(tree)
    made = tree.beside(three, two)
    assert (made.original, made.view) == (two.view, three.view)
    assert made.name == "attempts=1 from step 7"
    # One continuation is all that three allows; two has 30 tokens, which three cut answers of 10 use up.
    assert three.view.turns[0].joined_text.text == "".join(PARTS[:2])
    assert two.view.turns[0].joined_text.text == "".join(PARTS[:3])
    assert made.difference == 0, "30 tokens in all are what the first request may ask for"
    assert tree.beside(two, one) is two.branch
    assert tree.beside(two, two) is two.branch
    assert tree.beside(two, tree.original).name == "attempts=5, cont_tokens=30"
    assert tree.beside(tree.original, tree.original).difference is None
    said = "\n".join("".join(span.text for span in line) for line in branch_sheet(made, None).lines)
    assert PARTS[2].strip() in said


def states(view, indices):
    return [None if index is None else view.steps[index].state.value for index in indices]


def run_pairs(left, right):
    """Every step of two runs, turn by turn."""
    turns = zip(left.turns, right.turns, strict=True)
    return [pair for one, other in turns for pair in step_pairs(one, other)]


def test_steps_stand_side_by_side_by_the_responses_before_them(tree):
    one, *_ = grown(tree)
    left, right = tree.original.view, one.view
    found = run_pairs(left.replay, right.replay)
    # Twelve steps alike; then the original gives up where the branch asks on, and takes the last answer as its own run.
    assert [row.same for row in found[:12]] == [True] * 12
    assert found.index(next(row for row in found if not row.same)) == 12
    assert states(left, [row.left for row in found[12:]]) == [
        "AbortPartial", "Complete", "Request", "EvaluateStop", "Complete"]
    assert states(right, [row.right for row in found[12:]]) == [
        "RequestContinuation", None, None, "EvaluateStop", "Complete"]
    for side, view in enumerate((left, right)):
        steps = [row[side] for row in found if row[side] is not None]
        assert steps == list(range(len(view.steps)))
    assert fold_pairs(found)[0] == EqualSteps(0, 0, 12)
    assert unfold_pair(EqualSteps(0, 0, 12)) == found[:12]
    assert fold_pairs(found)[1:] == found[12:]


@hypothesis_settings(max_examples=50, deadline=None)
@given(stories, choices, choices, st.data())
def test_every_step_of_both_has_one_row(exchanges, before, after, data):
    left = show(*exchanges, settings=before).replay
    right = branch(show(*exchanges, settings=before), after,
                   data.draw(st.integers(0, len(left.trace.steps) - 1))).view.replay
    found = run_pairs(left, right)
    for side, made in enumerate((left, right)):
        assert [row[side] for row in found if row[side] is not None] == list(range(len(made.trace.steps)))
    for row in found:
        pair = None if None in (row.left, row.right) else (left.trace.steps[row.left], right.trace.steps[row.right])
        assert row.same == (pair is not None and step_key(pair[0]) == step_key(pair[1]))
        if pair is not None and State.EVALUATE_STOP in (pair[0].state, pair[1].state):
            assert pair[0].response == pair[1].response
    again = [pair for row in fold_pairs(found) for pair in (unfold_pair(row) if isinstance(row, EqualSteps) else [row])]
    assert again == found


@hypothesis_settings(max_examples=50, deadline=None)
@given(stories, choices, choices, st.data())
def test_a_preview_says_what_the_branch_then_shows(exchanges, before, after, data):
    original = show(*exchanges, settings=before)
    since = data.draw(st.integers(0, len(original.steps) - 1))
    told = preview(original.replay, after, since)
    made = branch(original, after, since)
    assert told.difference == made.difference
    assert told.steps == sum(not row.same for row in run_pairs(original.replay, made.view.replay))
    assert [made.view.turns[index] for index in told.turns] == list(made.changed_turns)


@hypothesis_settings(max_examples=30, deadline=None)
@given(stories, choices, choices, choices)
def test_a_branch_changes_no_other(exchanges, one, two, three):
    original = show(*exchanges, settings=one)
    tree = Tree(original)
    first, _ = tree.add(tree.original, two)
    before = [(list(map(everything, node.view.steps)), document(node.view)) for node in tree.every]
    for since in {0, len(original.steps) // 2, len(original.steps) - 1}:
        tree.add(tree.original, three, since)
        if since < len(first.view.steps):
            tree.add(first, three, since)
    for node, (steps, said) in zip(tree.every, before, strict=False):
        assert list(map(everything, node.view.steps)) == steps
        assert document(node.view) == said


def test_a_preview_counts_what_would_be_other():
    original = show(*cut_text(*PARTS), pair_of([user("a question")], chat("an answer")))
    told = preview(original.replay, Settings(Limits(continuation_max_attempts=5)), 0)
    # AbortPartial, Complete and Request on one side against RequestContinuation; EvaluateStop and Complete have another
    # spend than in a run of their own.
    assert told == (12, 5, (0,))
    assert preview(original.replay, Settings(), 0) == (None, 0, ())


# -- as a command -----------------------------------------------------------------------------------------------------


def parse_command(line):
    """What a command line asks for, read as the command reads it."""
    words = shlex.split(line)[3:]
    step, sets = None, []
    for option, value in zip(words[::2], words[1::2], strict=True):
        if option == "--from-step":
            step = int(value)
        elif option == "--policy":
            sets.append(f"policy={value}")
        else:
            assert option == "--set"
            sets.append(value)
    return parse_stretches(sets, step)


@hypothesis_settings(max_examples=50, deadline=None)
@given(stories, st.data())
def test_the_command_of_any_run_makes_it_again(exchanges, data):
    original = show(*exchanges)
    tree = Tree(original)
    node = tree.original
    for _ in range(data.draw(st.integers(1, 3))):
        chosen = data.draw(choices)
        settings = settings_of(assignments(chosen), node.view.replay.settings)
        since = data.draw(st.none() | st.integers(0, len(node.view.steps) - 1))
        node, _ = tree.add(node, settings, since)
    again = Tree(original)
    made = again.try_settings(again.original, parse_command(command_of(node, ["x.har"])))
    assert list(map(everything, made.view.steps)) == list(map(everything, node.view.steps))
    assert made.view.replay.settings.limits == node.view.replay.settings.limits


def test_the_command_of_a_branch_from_a_step(tree):
    *_, three = grown(tree)
    assert command_of(three, ["a.har"]) == "inspector replay a.har --set continuation_max_attempts=1 --from-step 7"
    child, _ = tree.add(three, setting(three, policy="pi-presence"), 8)
    assert command_of(child, ["a.har"]) == (
        "inspector replay a.har --set continuation_max_attempts=1@7 --set policy=pi-presence@9")


@each_row("text", ["a=1@", "a=1@x", "a=1@0", "a=1@-1", "a=1@1.5", "a=1@" + "4" * 5_000])
def test_a_step_that_is_none_is_the_callers_error(text):
    with pytest.raises(CallerError, match="expected the number of a step after @"):
        parse_stretches([text])


def test_settings_are_sorted_by_the_step_from_which_they_hold():
    given_ = ["a=1@9", "b=2", "c=3@4", "d=4@9"]
    assert parse_stretches(given_) == [(None, {"b": "2"}), (3, {"c": "3"}), (8, {"a": "1", "d": "4"})]
    assert parse_stretches(given_, 4) == [(3, {"b": "2", "c": "3"}), (8, {"a": "1", "d": "4"})]


@hypothesis_settings(max_examples=100, deadline=None)
@given(choices, st.booleans())
def test_settings_come_back_from_a_file(chosen, explicit):
    settings = settings_of(assignments(chosen), Settings()) if explicit else chosen
    assert from_record(record_of(settings)) == settings


@each_row("record", [{"set": 3}, {"set": {"max_tokens": 5}}, {"set": {"hope": "1"}}, {"inherited": []}])
def test_a_record_that_is_none_is_the_callers_error(record):
    with pytest.raises(CallerError):
        from_record(record)


def test_two_views_of_one_case_are_compared_whatever_made_them():
    original = show(*cut_text(*PARTS))
    other = replay(original.replay.case, Settings(Limits(continuation_max_attempts=1)))
    from inspector.report.facts import view

    made = compare(original, view(other), "fresh")
    assert (made.name, made.difference, len(made.changed_turns)) == ("fresh", 6, 1)
