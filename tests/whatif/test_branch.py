"""What-ifs: what a change of settings may do to a recording, and what it may never do."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from inspector.config.settings import REPLAYED, Settings, command, name_of, parse_assignments, settings_of
from inspector.report.explain_document import document
from inspector.report.facts import View
from inspector.report.lines.spans import text_of
from inspector.sessions import open_paths
from inspector.sessions.folders import samples
from inspector.whatif.branch_lines import branch_sheet
from inspector.whatif.tree import branch
from loop_core.errors import CallerError
from loop_core.turn.limits import SHORT_NAMES, Limits
from loop_core.turn.policy import Signal as PolicySignal
from loop_core.turn.presets import PI_PRESENCE
from loop_core.turn.state import State
from loop_core.turn.trace import first_difference, step_key
from tests.scenes.recordings import (
    ASKS,
    CUT,
    HINT,
    PARTS,
    SEND_AGAIN,
    TOOLS,
    WHOLE,
    assistant,
    call,
    chat,
    cut_call_ran,
    cut_text,
    pair_of,
    repair_turn,
    result,
    show,
    user,
)
from tests.scenes.rows import each_row

# -- sessions of any shape: each answer is text or a call, cut or whole, and the agent goes on from it ----------------

KINDS = ("cut text", "cut call", "call", "cut with nothing", "answer", "filtered")


def story(kinds: list[str], cap: int | None, tokens: list[int]) -> list[dict]:
    """One conversation in which the agent goes on after every answer, as its kind asks for."""
    made, history = [], [*ASKS]
    more = {} if cap is None else {"max_tokens": cap}
    for number, kind in enumerate(kinds):
        text, key_ = f"Sentence {number} is here, and ", f"call_{number}a1b2c3d4e"
        used = tokens[number % len(tokens)]
        calls = {"cut call": [call(CUT, key_)], "call": [call(WHOLE, key_)]}.get(kind, [])
        reason = {"call": "tool_calls", "answer": "stop", "filtered": "content_filter"}.get(kind, "length")
        said = None if kind in ("call", "cut with nothing") else text
        made.append(pair_of(list(history), chat(said, reason, *calls, tokens=used), tools=TOOLS, **more))
        if kind == "call":
            history += [assistant(None, *calls), result(f"ok {number}", key_)]
        elif kind == "cut with nothing":
            history += [user(HINT)]
        else:
            follow = {"cut text": HINT, "cut call": SEND_AGAIN}.get(kind, f"Next, please: number {number} of many.")
            history += [assistant(text), user(follow)]
    return made


stories = st.builds(
    story,
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=8),
    st.sampled_from([None, 20, 100]),
    st.lists(st.integers(1, 60), min_size=1, max_size=3),
)
limits = st.builds(
    Limits,
    continuation_max_attempts=st.integers(0, 6),
    continuation_max_total_completion_tokens=st.none() | st.integers(1, 200),
    continuation_max_output_chars=st.integers(1, 200),
    continuation_tool_repair_attempts=st.integers(0, 3),
)


def keys(view: View) -> list:
    return [step_key(step) for step in view.steps]


def answer_counts(view: View) -> list[int]:
    """How many recorded answers this loop takes up in each turn, before it ends the turn itself."""
    return [
        sum(step.signal is PolicySignal.PROVIDER_RESPONSE for step in view.steps[t.run.first : t.run.deciding_step + 1])
        for t in view.turns
    ]


@hypothesis_settings(max_examples=80, deadline=None)
@given(stories, limits)
def test_unchanged_settings_give_the_same_steps(exchanges, some):
    original = show(*exchanges, settings=Settings(some))
    made = branch(original, Settings(some))
    assert keys(made.view) == keys(original)
    assert made.difference is None
    assert made.changed_turns == ()
    assert made.name == "unchanged"
    assert document(made.view) == document(original)


@hypothesis_settings(max_examples=80, deadline=None)
@given(stories, limits, limits)
def test_limits_alone_leave_a_common_beginning(exchanges, before, after):
    original = show(*exchanges, settings=Settings(before))
    made = branch(original, Settings(after))
    one, other = keys(original), keys(made.view)
    if made.difference is None:
        assert one == other
        assert made.changed_turns == ()
        return
    assert one[: made.difference] == other[: made.difference]
    assert one[made.difference : made.difference + 1] != other[made.difference : made.difference + 1]
    # What differs first is what a guard decided: both machines stood in the same state before it.
    assert original.steps[made.difference].previous_state == made.view.steps[made.difference].previous_state


@hypothesis_settings(max_examples=80, deadline=None)
@given(stories, limits)
def test_a_branch_never_changes_what_it_was_made_from(exchanges, after):
    original = show(*exchanges)
    before, steps, said = keys(original), original.steps, document(original)
    made = branch(original, Settings(after))
    assert made.original is original
    assert original.steps is steps
    assert keys(original) == before
    assert document(original) == said
    assert original.replay.settings == Settings()
    assert made.view.replay.case is original.replay.case


@hypothesis_settings(max_examples=80, deadline=None)
@given(stories, limits, st.sampled_from([*SHORT_NAMES]), st.integers(1, 50))
def test_raising_one_continuation_limit_never_shortens_a_recorded_turn(exchanges, before, name, more):
    now = getattr(before, name)
    original = show(*exchanges, settings=Settings(before))
    if now is None:  # 4 x the cap, or no bound: there is nothing to raise it from but that
        now = max((cap for turn in original.turns if (cap := turn.final_turn.token_cap) is not None), default=10**6)
    made = branch(original, Settings(replace(before, **{name: now + more})))
    for then, now_, turn in zip(answer_counts(original), answer_counts(made.view), original.turns, strict=True):
        assert now_ >= then, turn.id


@each_row("sample", samples())
@each_row("name", SHORT_NAMES)
def test_the_samples_keep_these_promises(sample, name):
    from inspector.replay import replay
    from inspector.replay.case import open_case
    from inspector.report.facts import view

    original = view(replay(open_case(open_paths([str(sample.path)]))))
    assert branch(original, Settings()).difference is None
    raised = branch(
        original, settings_of({name: "1000000" if name.endswith(("tokens", "chars")) else "90"}, Settings())
    )
    assert all(now >= then for then, now in zip(answer_counts(original), answer_counts(raised.view), strict=True))
    if raised.difference is not None:
        assert keys(original)[: raised.difference] == keys(raised.view)[: raised.difference]


def test_the_scenes_of_these_properties_do_what_they_are_made_for():
    every = show(*story(["cut text", "cut call", "call", "answer", "cut with nothing", "answer"], 100, [20]))
    reached = {step.state for step in every.steps}
    assert {State.CONTINUE_PENDING, State.REPAIR_PENDING, State.EXECUTE_TOOLS, State.COMPLETE} <= reached


# -- a branch ---------------------------------------------------------------------------------------------------------


def test_more_attempts_complete_the_turn():
    made = branch(show(*cut_text(*PARTS)), settings_of({"continuation_max_attempts": "5"}, Settings()))
    assert made.name == "attempts=5"
    assert [turn.id for turn in made.changed_turns] == ["t1"]
    assert (made.changed_turns[0].final_state, made.changed_turns[0].terminal) == (State.COMPLETE, "completed")
    assert made.unrecorded == ()


def test_what_is_asked_beyond_the_recording_is_named():
    made = branch(
        show(*cut_text(*PARTS[:4], last="length")), settings_of({"continuation_max_attempts": "9"}, Settings())
    )
    assert [turn.id for turn in made.unrecorded] == ["t1"]


def test_only_the_turns_that_end_otherwise_are_changed():
    original = show(*cut_text(*PARTS), pair_of([user("a question")], chat("an answer")))
    made = branch(original, settings_of({"continuation_max_attempts": "5"}, Settings()))
    assert [turn.id for turn in made.changed_turns] == [original.turns[0].id]


def test_a_policy_changes_the_way_and_not_the_verdicts_of_the_gate():
    original = show(*cut_call_ran())
    made = branch(original, Settings(policy=PI_PRESENCE))
    assert made.name == "policy=pi-presence"
    assert made.difference is not None
    assert [facts.verdicts for facts in made.view.responses] == [facts.verdicts for facts in original.responses]


def test_no_repair_at_all():
    made = branch(show(*repair_turn()), settings_of({"continuation_tool_repair_attempts": "0"}, Settings()))
    assert [turn.terminal for turn in made.changed_turns] == ["repair_failed"]


def test_the_first_difference_may_be_the_end():
    trace = show(*cut_text(*PARTS)).replay.trace
    shorter = trace._replace(steps=trace.steps[:-2])
    assert first_difference(trace, shorter) == first_difference(shorter, trace) == len(trace.steps) - 2


# -- settings as an operator types them -------------------------------------------------------------------------------


def test_assignments_are_read_as_they_stand_on_a_command_line():
    assert parse_assignments(["a=1", " b = 2 ", "c=x=y", "a=3"]) == {"a": "3", "b": "2", "c": "x=y"}
    assert parse_assignments([]) == {}


@pytest.mark.parametrize("text", ["continuation_max_attempts", "", "5"])
def test_an_assignment_without_a_value_says_what_one_looks_like(text):
    with pytest.raises(CallerError, match="expected NAME=VALUE, such as continuation_max_attempts=5"):
        parse_assignments([text])


@each_row(
    ("text", "value"),
    [
        ("200", 200),
        ("1,000", 1000),
        ("1_000", 1000),
        ("none", None),
        ("recorded", None),
        ("", None),
        ("default", None),
        (" 7 ", 7),
    ],
)
def test_a_cap_as_people_write_it(text, value):
    assert settings_of({"max_tokens": text}, Settings(max_tokens=5)).max_tokens == value


@each_row("text", ["0", "-1", "1.5", "many", "1000000001", "1e3", "²"])
def test_a_cap_that_is_none(text):
    with pytest.raises(CallerError, match="max_tokens"):
        settings_of({"max_tokens": text}, Settings())


@each_row(
    ("name", "value"),
    [
        ("continuation_max_attempts", "-1"),
        ("continuation_max_attempts", "1001"),
        ("no_such_limit", "1"),
        ("continuation_max_output_chars", "0"),
        ("attempts_scope", "week"),
        ("continuation_max_attempts", "none"),
    ],
)
def test_a_limit_out_of_range_is_the_callers_error_and_names_it(name, value):
    with pytest.raises(CallerError, match=name):
        settings_of({name: value}, Settings())


def test_what_is_set_is_remembered_as_set_even_where_it_is_the_default():
    made = settings_of({"continuation_max_attempts": "3", "max_tokens": "9"}, Settings(policy=PI_PRESENCE))
    assert made.explicit == {"continuation_max_attempts"}
    assert (made.limits, made.policy, made.max_tokens) == (REPLAYED, PI_PRESENCE, 9)
    again = settings_of({"max_tool_steps": "4"}, made)
    assert again.explicit == {"continuation_max_attempts", "max_tool_steps"}
    assert again.max_tokens == 9


@each_row(
    ("assignments", "name"),
    [
        ({}, "unchanged"),
        ({"continuation_max_attempts": "5"}, "attempts=5"),
        ({"continuation_max_attempts": "3"}, "attempts=3"),  # the default, and yet set: a session may bring another
        ({"continuation_max_total_completion_tokens": "900"}, "cont_tokens=900"),
        ({"continuation_max_output_chars": "50"}, "cont_chars=50"),
        ({"continuation_tool_repair_attempts": "2"}, "repairs=2"),
        ({"max_tool_steps": "3", "max_tokens": "40"}, "max_tool_steps=3, max_tokens=40"),
        ({"simulate": "yes"}, "simulation on"),  # all of it may be recorded nevertheless
    ],
)
def test_a_branch_is_named_by_what_it_changes(assignments, name):
    assert name_of(Settings(), settings_of(assignments, Settings())) == name


def test_the_command_line_gives_the_same_settings_back():
    given_ = settings_of(
        {"continuation_max_attempts": "5", "max_tool_steps": "10", "max_tokens": "80"}, Settings(policy=PI_PRESENCE)
    )
    words = shlex.split(command(["a file.har", "-"], given_))
    assert words[:4] == ["inspector", "replay", "a file.har", "-"]
    options = list(zip(words[4::2], words[5::2], strict=True))
    typed = parse_assignments([value for option, value in options if option == "--set"])
    assert ("--policy", "pi-presence") in options
    assert settings_of(typed, Settings(policy=PI_PRESENCE)) == given_


def test_the_command_line_of_nothing_special():
    assert command(["x.har"], Settings()) == "inspector replay x.har"
    assert command(["-x.har", "-"], Settings()) == "inspector replay ./-x.har -"  # a path, and standard input


def test_the_copied_command_reads_the_files_as_they_were_read_here():
    words = command(["a file.json"], Settings(), api="openai_chat", profile="vllm")
    assert words == "inspector replay 'a file.json' --api openai_chat --profile vllm"


def test_the_verdict_is_compared_where_both_runs_end_in_one_state() -> None:
    """The recording ends behind the cut call, and a larger budget makes the call whole: both are Unrecorded."""
    made = branch(show(*repair_turn()[:2]), Settings(max_tokens=400, simulate=True))
    told = [text_of(line) for line in branch_sheet(made, None).lines]
    assert "verdict        ✓ CALL REPAIRED → ▷ SIMULATED AWAITS RESULT" in told
    same = branch(show(*repair_turn()), Settings(Limits(continuation_max_attempts=7)))
    assert not any(" → " in text_of(line) for line in branch_sheet(same, None).lines if "verdict" in text_of(line))
