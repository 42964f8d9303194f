"""Recorded turns under this loop: places, runs, tool results, limits and policies; nothing of it needs a clock."""

from __future__ import annotations

import gc
import json
from dataclasses import replace

import pytest

from inspector.replay import Settings, replay
from inspector.replay.adjustments import limits_for
from inspector.replay.case import open_case, recorded_method, results_in
from inspector.report.facts import view
from inspector.report.turn_rows import rows_of
from inspector.sessions import intake, open_paths, without_collector
from inspector.sessions.recording import TurnPlace as RecordedPlace
from loop_core.judge.gate import Admission
from loop_core.turn.continuation import Method
from loop_core.turn.limits import Limits
from loop_core.turn.loop import NO_RECORDED_ANSWER
from loop_core.turn.presets import PI_PRESENCE
from loop_core.turn.state import RunTools, Send, State
from loop_core.turn.trace import Fidelity
from loop_core.values import Stop
from tests.scenes.costs import IN_PROPORTION, growth
from tests.scenes.recordings import (
    ASKS,
    CUT,
    MESSAGES,
    PARTS,
    SEND_AGAIN,
    TOOLS,
    WHOLE,
    assistant,
    call,
    chat,
    cut_call_ran,
    cut_text,
    lines,
    message,
    pair_of,
    repair_turn,
    result,
    user,
)


def case_of(*exchanges):
    loaded = open_paths(["-"], stdin=lines(*exchanges))
    assert [given.error for given in loaded.inputs] == [None]
    return open_case(loaded)


def path(played, turn=0):
    """The states of a turn's first run."""
    run = played.turns[turn]
    return [step.state.value for step in played.trace.steps[run.first : run.deciding_step + 1]]


def last_turn(played, turn=0):
    return played.trace.steps[played.turns[turn].deciding_step].turn


# -- by place ---------------------------------------------------------------------------------------------------------


def test_a_continuation_answers_a_continuation():
    played = replay(case_of(*cut_text(*PARTS[:3])))
    assert path(played) == [
        "Request",
        "EvaluateStop",
        *["ContinuePending", "RequestContinuation", "EvaluateStop"] * 2,
        "Complete",
    ]
    assert last_turn(played).joined_answer().text == "".join(PARTS[:3])


def test_a_repair_and_the_run_of_its_tool():
    played = replay(case_of(*repair_turn()))
    assert path(played) == [
        "Request",
        "EvaluateStop",
        "RepairPending",
        "RequestToolRepair",
        "EvaluateStop",
        "ExecuteTools",
        "Request",
        "EvaluateStop",
        "Complete",
    ]
    ran = [
        v.call.arguments
        for step in played.trace.steps
        for e in step.effects
        if isinstance(e, RunTools)
        for v in e.batch
    ]
    assert ran == [WHOLE]


def test_a_paused_response_is_resumed():
    block = [{"type": "text", "text": "Searching."}]
    played = replay(
        case_of(
            pair_of(ASKS, message(block, "pause_turn"), url=MESSAGES, max_tokens=90),
            pair_of(
                [*ASKS, {"role": "assistant", "content": block}],
                message([{"type": "text", "text": " Found."}], "end_turn"),
                url=MESSAGES,
                max_tokens=90,
            ),
        )
    )
    assert path(played) == ["Request", "EvaluateStop", "Resume", "EvaluateStop", "Complete"]


def test_a_cut_call_never_runs_whatever_the_agent_did():
    played = replay(case_of(*cut_call_ran()))
    assert path(played)[-1] == "Unrecorded"
    assert not [e for step in played.trace.steps for e in step.effects if isinstance(e, RunTools)]
    assert next(step.turn.notice for step in played.trace.steps if step.state is State.UNRECORDED) == NO_RECORDED_ANSWER


def test_a_retry_begins_a_run_of_its_own():
    failed = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    played = replay(
        case_of(
            pair_of(ASKS, failed, url=MESSAGES, status=529, max_tokens=9),
            pair_of(ASKS, message([{"type": "text", "text": "Hi."}], "end_turn"), url=MESSAGES, max_tokens=9),
        )
    )
    (turn,) = played.turns
    assert turn.runs == 2
    assert path(played) == ["Request", "EvaluateStop", "AbortPartial", "Complete"]
    assert played.trace.steps[turn.end - 1].state is State.COMPLETE


def test_every_response_is_looked_at_once_and_in_order():
    played = replay(case_of(*cut_text(*PARTS), *cut_call_ran(), *repair_turn(), pair_of([user("last")], chat("yes"))))
    looked = [step.response for step in played.trace.steps if step.state is State.EVALUATE_STOP]
    assert sorted(looked) == list(range(len(played.case.recording.exchanges)))
    for turn in played.turns:
        within = [s.response for s in played.trace.steps[turn.first : turn.end] if s.state is State.EVALUATE_STOP]
        assert within == [link.index for link in turn.record.links]


def test_every_step_says_that_it_was_recorded():
    played = replay(case_of(*cut_text(*PARTS)))
    assert {step.fidelity for step in played.trace.steps} == {Fidelity.RECORDED}


def test_runs_are_numbered_within_their_turn():
    played = replay(case_of(*cut_text(*PARTS)))
    turn = played.turns[0]
    later = turn.end - turn.deciding_step - 1
    assert [step.run for step in played.trace.steps] == [0] * (turn.deciding_step + 1) + [1] * later


def test_the_turn_of_a_step():
    played = replay(case_of(*cut_text(*PARTS), *cut_call_ran(), pair_of([user("last")], chat("yes"))))
    expected = [number for number, turn in enumerate(played.turns) for _ in range(turn.first, turn.end)]
    assert [played.turn_at(step) for step in range(len(played.trace.steps))] == expected


def test_nothing_at_all_is_no_error():
    played = replay(open_case(open_paths([])))
    assert (played.trace.steps, played.turns) == ((), ())


# -- how a continuation was asked for ---------------------------------------------------------------------------------


def method_of(*exchanges):
    case = case_of(*exchanges)
    (turn,) = case.recording.turns
    return recorded_method(case, turn.links[1])


def prefill_turn(sent, text="The first part is about water, ", more="and fire."):
    cut = message([{"type": "text", "text": text}], "max_tokens")
    rest = message([{"type": "text", "text": more}], "end_turn")
    return [
        pair_of(ASKS, cut, url=MESSAGES, max_tokens=9),
        pair_of([*ASKS, assistant(sent)], rest, url=MESSAGES, max_tokens=99),
    ]


def test_a_prefill_and_the_white_space_that_it_lost():
    stripped = prefill_turn("The first part is about water,")
    assert method_of(*stripped) == (Method.PREFILL, " ")
    assert last_turn(replay(case_of(*stripped))).joined_answer().text == "The first part is about water, and fire."


def test_a_prefill_without_the_word_that_was_cut():
    """`experimental_continueSteps` of Vercel's AI SDK 4 sends the text up to its last white space, and joins so."""
    for sent, more, lost in (
        ("The first part is about ", "water, and fire.", "wat"),
        ("The first part is about", " water, and fire.", " wat"),  # as its module for Anthropic does
        ("The first part is about", "water, and fire.", " wat"),
        ("The first part is about ", "The first part is about water, and fire.", "wat"),  # a server that repeats it
    ):
        shortened = prefill_turn(sent, "The first part is about wat", more)
        assert method_of(*shortened) == (Method.PREFILL, lost)
        answer = last_turn(replay(case_of(*shortened))).joined_answer()
        assert answer.text == "The first part is about water, and fire."
        assert [seam.sure for seam in answer.seams] == [True]


def test_a_prefill_without_more_than_the_word_that_was_cut_follows_no_answer():
    case = case_of(*prefill_turn("The first part is ", "The first part is about wat", "water, and fire."))
    assert [len(turn.links) for turn in case.recording.turns] == [1, 1]


def test_a_prefill_that_lost_nothing():
    assert method_of(*prefill_turn("The first part is about water, ")) == (Method.PREFILL, "")


@pytest.mark.parametrize(("sent", "stripped", "joined"), [
    ("Hello", " ", "Hello world."), ("Hello ", "", "Hello  world."),
])
def test_a_pause_and_the_white_space_that_it_lost(sent, stripped, joined):
    """The engine sends a pause back without the white space at its end, and joins the text as a replay does."""
    paused, rest = (message([{"type": "text", "text": text}], word)
                    for text, word in (("Hello ", "pause_turn"), (" world.", "end_turn")))
    resumed = [pair_of(ASKS, paused, url=MESSAGES), pair_of([*ASKS, assistant(sent)], rest, url=MESSAGES)]
    assert method_of(*resumed) == (Method.ECHO, stripped)
    assert last_turn(replay(case_of(*resumed))).joined_answer().text == joined


def test_a_hint_and_a_repair():
    assert method_of(*cut_text(*PARTS[:2])) == (Method.HINT, "")
    assert method_of(*repair_turn()[:2]) == (Method.REPAIR, "")


def test_the_results_of_a_request_are_those_after_its_last_answer():
    history = [
        *ASKS,
        assistant(None, call()),
        result("the first"),
        assistant(None, call(key="call_2b3c4d5e6f")),
        result("the second", "call_2b3c4d5e6f"),
        user("and hurry"),
    ]
    loaded = open_paths(["-"], stdin=lines(pair_of(history, chat("done"), tools=TOOLS)))
    assert [part.text for part in results_in(loaded.exchanges[0])] == ["the second"]
    assert results_in(open_paths(["-"], stdin=json.dumps(chat("x")).encode()).exchanges[0]) == ()


# -- settings ---------------------------------------------------------------------------------------------------------


def test_limits_end_a_turn_where_they_say():
    case = case_of(*cut_text(*PARTS))
    for attempts in range(5):
        played = replay(case, Settings(Limits(continuation_max_attempts=attempts)))
        spent = last_turn(played).spend
        assert (spent.attempts, spent.requests) == (attempts, attempts + 1)
        assert last_turn(played).terminal == ("completed" if attempts == 4 else "retry_limit")


def test_the_first_cap_is_what_the_budget_is_derived_from():
    case = case_of(*cut_text(*PARTS[:3], tokens=40, max_tokens=20))
    assert last_turn(replay(case)).token_cap == 80
    assert last_turn(replay(case)).terminal == "budget_exhausted"
    assert last_turn(replay(case, Settings(max_tokens=100))).token_cap == 80, "a recording was made at its own"
    raised = replay(case, Settings(max_tokens=100, simulate=True))
    assert last_turn(raised).token_cap == 400
    assert last_turn(raised).terminal == "completed"
    assert last_turn(replay(case, Settings(max_tokens=5, simulate=True))).token_cap == 80, "never tighter for that"
    assert case.recording.exchanges[0].request.max_tokens == 20


def test_a_simulated_budget_brings_no_bound_where_none_was_recorded():
    case = case_of(*cut_text(*PARTS[:3], tokens=40))
    assert last_turn(replay(case)).token_cap is None
    assert last_turn(replay(case, Settings(max_tokens=5, simulate=True))).token_cap is None


def test_another_policy_is_another_story_over_the_same_answers():
    case = case_of(*cut_call_ran())
    played = replay(case, Settings(policy=PI_PRESENCE))
    assert path(played) == ["Request", "EvaluateStop", "ExecuteTools", "Request", "EvaluateStop", "Complete"]
    # What the gate says of the call does not depend on what a loop believes.
    assert [[v.admission for v in of] for of in case.verdicts] == [[Admission.HELD], []]


def with_limits(tmp_path, values):
    """A session file that was recorded under these limits, over the text that is cut four times."""
    records = [{"loop_inspector_session": 1, "title": "t"}, {"type": "limits", "values": values}]
    for number, each in enumerate(cut_text(*PARTS)):
        name = f"r{number}"
        records += [
            {"type": "request", "id": name, "url": each["request"]["url"], "body": each["request"]["body"]},
            {"type": "response", "request": name, "status": 200},
            {"type": "bytes", "request": name, "text": json.dumps(each["response"]["body"])},
            {"type": "end", "request": name, "end": "eof"},
        ]
    file = tmp_path / "recorded.session.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(file)


def test_a_session_brings_the_limits_that_it_was_recorded_under(tmp_path):
    file = with_limits(tmp_path, {"continuation_max_attempts": 5})
    case = open_case(open_paths([file]))
    record = case.recording.turns[0]
    assert limits_for(case, record, Settings()).continuation_max_attempts == 5
    assert limits_for(replace(case, limits_by_path={}), record, Settings()).continuation_max_attempts == 3
    assert last_turn(replay(case)).terminal == "completed"


def test_what_the_operator_sets_goes_before_what_the_session_brings(tmp_path):
    file = with_limits(tmp_path, {"continuation_max_attempts": 5, "max_tool_steps": 7})
    case = open_case(open_paths([file]))
    settings = Settings(Limits(continuation_max_attempts=2), explicit=frozenset({"continuation_max_attempts"}))
    limits = limits_for(case, case.recording.turns[0], settings)
    assert (limits.continuation_max_attempts, limits.max_tool_steps) == (2, 7)
    assert last_turn(replay(case, settings)).terminal == "retry_limit"


@pytest.mark.parametrize("values", [{"nonsense": 5}, {"continuation_max_attempts": 10**7}, {"max_tool_steps": [1]}])
def test_limits_that_do_not_exist_are_passed_over_and_said(tmp_path, values):
    file = with_limits(tmp_path, values)
    loaded = open_paths([file])
    (notice,) = loaded.inputs[0].notices
    assert "limits that cannot be used were skipped" in notice
    assert next(iter(values)) in notice
    assert last_turn(replay(open_case(loaded))).terminal == "retry_limit"


# -- judging ----------------------------------------------------------------------------------------------------------


def test_a_routers_native_word_is_read_through_all_tables():
    body = chat("The first", "stop")
    body["choices"][0]["native_finish_reason"] = "MAX_TOKENS"
    case = case_of(pair_of(ASKS, body, url="https://openrouter.ai/api/v1/chat/completions"))
    assert case.judgements[0].stop.normalized is Stop.MAX_TOKENS
    assert case.judgements[0].stop.raw == "stop"


def test_a_native_word_that_nobody_knows_changes_nothing():
    body = chat("The first", "stop")
    body["choices"][0]["native_finish_reason"] = "entropy"
    case = case_of(pair_of(ASKS, body, url="https://openrouter.ai/api/v1/chat/completions"))
    assert case.judgements[0].stop.normalized is Stop.END_TURN


def test_a_turn_sends_what_the_repair_needs_and_no_smaller_cap():
    played = replay(case_of(*repair_turn()))
    (repair,) = [
        e
        for step in played.trace.steps
        for e in step.effects
        if isinstance(e, Send) and e.place.value == RecordedPlace.REPAIR.value
    ]
    assert repair.max_tokens >= 40
    assert CUT not in json.dumps([message_.text for message_ in repair.new_messages])
    assert SEND_AGAIN not in json.dumps([message_.text
                                         for message_ in repair.new_messages])  # our words, never the agent's


# -- the collector ----------------------------------------------------------------------------------------------------


def test_the_collector_is_as_it_was_after_a_build_that_fails():
    @without_collector
    def build(fails):
        assert not gc.isenabled()
        if fails:
            raise ValueError("no")
        return 7

    assert gc.isenabled()
    assert build(False) == 7
    with pytest.raises(ValueError, match="no"):
        build(True)
    assert gc.isenabled()
    gc.disable()
    try:
        build(False)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_judging_and_replaying_end_where_the_reading_is_stopped() -> None:
    recording = open_paths(["-"], stdin=lines(*cut_text(*PARTS)))
    case = open_case(recording)
    whole = view(replay(case))
    with intake.stopping_when(lambda: True):
        with pytest.raises(intake.StoppedError):
            open_case(recording)
        with pytest.raises(intake.StoppedError):
            replay(case)
        with pytest.raises(intake.StoppedError):
            rows_of(whole)


@pytest.mark.parametrize("settings", [Settings(), Settings(max_tokens=9)])
def test_a_turn_that_ends_again_and_again_is_replayed_in_linear_time(settings):
    """Equal calls: this loop ends the turn, and begins it again at the next answer, hundreds of times."""
    ran = [{"type": "start-step"}, {"type": "tool-input-available", "toolCallId": "c", "toolName": "ls", "input": {}},
           {"type": "tool-output-available", "toolCallId": "c", "output": "ok"}, {"type": "finish-step"}]

    def turn(count):
        stream = "".join(f"data: {json.dumps(each)}\n\n" for each in ran * count)
        return open_case(open_paths(["-"], stdin=stream.encode()))

    assert replay(turn(9)).turns[0].runs > 2
    assert growth(lambda case: replay(case, settings), turn, 300) < IN_PROPORTION
