"""A turn that is given another text: what answers it, what does not, and that the edit stays with the branch."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from inspector.config.settings import Settings, TurnEdit, assignments, from_record, name_of, record_of, settings_of
from inspector.replay.adjustments import turn_inputs
from inspector.replay.case import EDITED_INPUT
from inspector.replay.rerun import edit_step
from inspector.report.lines.spans import text_of
from inspector.whatif.branch_lines import branch_sheet, edit_of, edit_stretches
from inspector.whatif.branch_report import command_of, text, values
from inspector.whatif.store import Store
from inspector.whatif.tree import Tree
from loop_core.errors import CallerError
from tests.scenes import transcripts
from tests.scenes.recordings import (
    PARTS,
    assistant,
    call,
    chat,
    cut_call_ran,
    cut_text,
    pair_of,
    result,
    show,
    user,
)
from tests.scenes.rows import each_row


def two_rounds():
    """A turn with two rounds of tools: three requests; then a second turn."""
    first, second = call(key="call_1"), call('{"path": "b.md", "content": "four"}', key="call_2")
    one = [user("Write it."), assistant("First.", first), result("ok, first", "call_1")]
    two = [*one, assistant("Second.", second), result("ok, second", "call_2")]
    return [
        pair_of([user("Write it.")], chat("First.", "tool_calls", first)),
        pair_of(one, chat("Second.", "tool_calls", second)),
        pair_of(two, chat("Both are written.")),
        pair_of([*two, assistant("Both are written."), user("Thanks.")], chat("Welcome.")),
    ]


def run_with(view, *edits, **others):
    """The run with these edits, each `TURN.INPUT=TEXT`, beside the original."""
    tree = Tree(view)
    node = tree.try_settings(tree.original, [(None, others)] if others else [])
    return tree.try_settings(node, edit_stretches(node.view.replay, edits, None))


def test_the_inputs_of_a_turn_are_its_messages_and_the_results_of_its_calls():
    view = show(*two_rounds())
    first, second = (turn.run.record for turn in view.turns)
    told = [(each.number, each.what, each.text) for each in turn_inputs(view.replay.case, first)]
    assert told == [(1, "user message", "Write it."), (2, "result of write_file", "ok, first"),
                    (3, "result of write_file", "ok, second")]
    assert [each.what for each in turn_inputs(view.replay.case, second)] == [
        "user message", "assistant message", "result of write_file", "assistant message", "result of write_file",
        "assistant message", "user message"]


def test_the_result_in_a_transcript_is_named_by_the_call_of_the_answer_before(tmp_path: Path):
    view = transcripts.show(transcripts.pi(
        transcripts.pi_user("go"), transcripts.pi_reply(transcripts.pi_call("t1"), stop="toolUse"),
        transcripts.pi_result("ok", "t1"), transcripts.pi_reply(transcripts.text("Done."))), tmp_path)
    told = [(each.what, each.text) for each in turn_inputs(view.replay.case, view.turns[0].run.record)]
    assert told == [("user message", "go"), ("result of write", "ok")]


def test_the_recording_answers_up_to_the_edited_result_and_no_further():
    view = show(*two_rounds())
    node = run_with(view, "1.2=the disk is full")
    turn = node.view.turns[0]
    # Request, EvaluateStop, ExecuteTools are as they were; the second request is another one.
    assert [step.state.value for step in turn.run.steps] == [
        "Request", "EvaluateStop", "ExecuteTools", "Request", "Unrecorded"]
    assert all(one is other for one, other in zip(view.steps[:3], turn.run.steps, strict=False))
    assert turn.final_turn.notice == EDITED_INPUT
    assert [part.text for message in turn.final_turn.history for part in message.results] == ["the disk is full"]
    assert (turn.verdict.word, turn.verdict.severity.value) == ("EDITED, NOT ASKED", "warning")
    assert "no recorded answer belongs to it" in turn.verdict.sentence
    said = [segment.text for answer in turn.final_turn.answers for segment in answer]
    assert said == ["First."], ("what answered the recorded result is no part of this run")
    assert node.view.turns[1].run.steps is not None
    assert [step.state for step in node.view.turns[1].run.steps] == [step.state for step in view.turns[1].run.steps]
    assert node.branch.difference == 3, "the step that is given another result"


def test_an_edited_message_is_answered_by_nothing():
    view = show(*two_rounds())
    node = run_with(view, "1.user=Do not write it.")
    turn = node.view.turns[0]
    assert [step.state.value for step in turn.run.steps] == ["Request", "Unrecorded"]
    assert [message.text for message in turn.final_turn.history] == ["Do not write it."]
    assert (node.branch.difference, turn.joined_text.text, turn.segments) == (0, "", 0)
    assert turn.verdict.word == "EDITED, NOT ASKED"


def test_a_cut_call_that_ran_before_the_edited_input_stays_the_verdict():
    """Its result is edited, but the call ran in the recording; before an edited message it was never sent."""
    view = show(*cut_call_ran())
    turn = view.turns[0]
    assert [each.what for each in turn_inputs(view.replay.case, turn.run.record)] == [
        "user message", "result of write_file"]
    edited = run_with(view, "1.2=nothing was written")
    assert edited.view.turns[0].verdict.word == "CUT CALL RUN"
    assert edited.view.turns[0].verdict.sentence == turn.verdict.sentence
    assert "the edited request was never sent" in text(edited.branch)
    assert run_with(view, "1.1=Do not write it.").view.turns[0].verdict.word == "EDITED, NOT ASKED"


def test_both_reports_say_what_was_edited_and_where_the_answers_end():
    node = run_with(show(*two_rounds()), "1.3=no")
    said = text(node.branch)
    assert "edited: turn 1, input 3 (result of write_file), 10 characters became 2\n" in said
    assert "the recording stops answering at step 8: the edited request was never sent\n" in said
    assert "first difference: step 7, Request (tool_results_appended) has another text\n" in said
    assert "1 turn as before" in said
    found = values(node.branch)
    assert found["edited"] == [
        {"turn": 1, "input": 3, "what": "result of write_file", "before": "ok, second", "after": "no"}]
    assert found["recording_stops_at"] == 8
    lines = [text_of(line) for line in branch_sheet(node.branch, None).lines]
    assert any("turn 1, input 3 (result of write_file)" in line for line in lines)
    tree = Tree(show(*two_rounds()))
    plain = values(tree.try_settings(tree.original, [(None, {"continuation_max_attempts": "5"})]).branch)
    assert (plain["edited"], plain["recording_stops_at"]) == ([], None)


def test_no_simulation_answers_an_edited_request():
    view = show(*two_rounds())
    node = run_with(view, "1.2=no", simulate="yes", max_tokens="4")
    turn = node.view.turns[0]
    assert turn.final_turn.outcome.value == "Unrecorded"
    assert "Both are written." not in turn.joined_text.text
    cut = run_with(show(*cut_text(*PARTS)), "1.user=Something else.", simulate="yes", max_tokens="4")
    assert [step.state.value for step in cut.view.steps] == ["Request", "Unrecorded"]


def test_a_result_that_only_a_further_run_is_given():
    """Our machine ends at the cut call; the agent ran it, and what it sent next begins a run of its own."""
    view = show(*cut_call_ran())
    edit = edit_of(view.replay, "1.result=Error: the arguments were cut.")
    since = edit_step(view.replay, edit)
    node = run_with(view, "1.result=Error: the arguments were cut.")
    steps = node.view.turns[0].run.steps
    assert steps[since].run == 1
    assert [step.state.value for step in steps[since:]] == ["Request", "Unrecorded"]
    assert steps[since].turn.history[-1].results[0].text == "Error: the arguments were cut."


def test_what_does_not_change_the_text_changes_nothing():
    view = show(*two_rounds())
    node = run_with(view, "1.2=ok, first")
    assert node.branch.difference is None


@each_row(("typed", "said"), [
    ("1.9=x", "no input '9' in turn 1; its inputs are 1 user message “Write it.”; 2 result of write_file “ok, first”"),
    ("1.result=x", "more than one input 'result' in turn 1"),
    ("1.user", "expected TURN.INPUT=TEXT"), ("7.user=x", "a turn from 1 to 2"), ("x", "expected TURN.INPUT=TEXT"),
    ("1.user=@/no/such/file", "/no/such/file: cannot be read"),
    ("1.user=@/dev/zero", "/dev/zero: cannot be read: a device"),
    (f"1.user=@{sys.executable}", "expected UTF-8"),
])
def test_an_edit_that_names_nothing_says_what_there_is(typed, said):
    with pytest.raises(CallerError, match=None) as why:
        edit_stretches(show(*two_rounds()).replay, [typed], None)
    assert said in str(why.value)


def test_an_input_that_the_run_never_comes_to_is_refused():
    view = run_with(show(*two_rounds()), "1.2=no").view
    with pytest.raises(CallerError, match="input 3 of turn 1, result of write_file: this run ends before it is given"):
        edit_stretches(view.replay, ["1.3=x"], None)
    with pytest.raises(CallerError, match="it is given at step 4, before --from-step"):
        edit_stretches(show(*two_rounds()).replay, ["1.2=x"], 6)


def test_the_text_comes_from_a_file_or_as_it_is(tmp_path: Path):
    replay = show(*two_rounds()).replay
    path = tmp_path / "prompt.txt"
    path.write_text("\ufefftwo\nlines\n", encoding="utf-8")
    assert edit_of(replay, f"1.user=@{path}").text == "two\nlines\n"
    assert edit_of(replay, "t1.user=@@home").text == "@home"
    assert edit_of(replay, "1.2= a=b ").text == " a=b "
    assert edit_of(replay, "1.2=").text == ""


def test_the_settings_carry_the_edit_wherever_they_are_written():
    edited = settings_of({"edit.1.2": "@x\ny", "max_tokens": "9"}, Settings())
    assert edited.edits == (TurnEdit(1, 2, "@x\ny"),)
    assert from_record(record_of(edited)) == edited
    assert settings_of(assignments(edited), Settings()) == edited
    assert name_of(Settings(), edited) == "max_tokens=9, input 2 of turn 1 edited"
    again = settings_of({"edit.1.2": "z"}, edited)
    assert again.edits == (TurnEdit(1, 2, "z"),)
    for wrong in ("edit.1", "edit.1.x", "edit."):
        with pytest.raises(CallerError, match="expected the number of a turn"):
            settings_of({wrong: "x"}, Settings())


def test_the_command_of_an_edited_run_makes_it_again_and_the_store_keeps_it(tmp_path: Path):
    view = show(*two_rounds())
    node = run_with(view, "1.2=@@ the\ndisk", continuation_max_attempts="5")
    words = shlex.split(command_of(node, ["s.har"]))
    assert words[3:] == ["--set", "continuation_max_attempts=5", "--edit", "1.2=@@ the\ndisk"]
    assert run_with(view, words[-1], continuation_max_attempts="5").key == node.key
    from inspector.whatif.branch_report import restore_tree, save_branch

    store = Store(tmp_path / "sessions" / "x.jsonl")
    save_branch(store, node)
    tree, notices = restore_tree(view, Store(store.path))
    assert notices == []
    assert [each.key for each in tree.every][-1] == node.key
    assert tree.every[-1].view.turns[0].final_turn.notice == EDITED_INPUT
