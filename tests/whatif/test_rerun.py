"""A replay made from another is what a replay from nothing would be, and shares with it whatever did not change."""

from __future__ import annotations

import gc
import json
import tracemalloc
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from inspector.config.settings import REPLAYED, Settings
from inspector.replay import Replay, replay
from inspector.replay.case import BranchAnswers, open_case
from inspector.replay.rerun import rerun
from inspector.report.explain import text
from inspector.report.explain_document import document
from inspector.report.facts import view
from inspector.sessions import open_paths
from inspector.sessions.folders import samples
from loop_core.errors import CallerError
from loop_core.turn.continuation import Method, SeamRule
from loop_core.turn.limits import GUARDS, Limits
from loop_core.turn.policy import STRICT, BatchRule, Dispatch, ReasonSource
from loop_core.turn.presets import POLICIES
from loop_core.turn.seam import _recent
from loop_core.turn.state import NotRecorded, RequestPlace, State, Turn
from loop_core.turn.trace import Step, step_key
from loop_core.values import Stop
from tests.scenes.recordings import (
    ASKS,
    CHAT,
    PARTS,
    TOOLS,
    WHOLE,
    assistant,
    call,
    chat,
    cut_call_ran,
    cut_stream,
    cut_text,
    lines,
    message,
    pair_of,
    repair_turn,
    result,
    show,
    user,
)
from tests.scenes.rows import share
from tests.whatif.test_branch import stories, story

COMPARED = [name for name in Turn._fields if name not in ("limits", "policy", "request")]


def turn_values(turn: Turn | None) -> list | None:
    """All of a turn but its terms; what it asked for is compared by its values."""
    if turn is None:
        return None
    asked_for = [getattr(turn.request, field.name) for field in fields(turn.request)]
    return [asked_for, *(getattr(turn, name) for name in COMPARED)]


def everything(step: Step) -> tuple:
    """All that a step holds, but for the terms that it was made under."""
    return (turn_values(step.turn), turn_values(step.before), step.effects, step.event, step.previous_state,
            step.fidelity, step.run,
            step.turn.joined_answer())


def same(made: Replay, fresh: Replay) -> None:
    """Two replays of one case that nothing can tell apart."""
    assert len(made.trace.steps) == len(fresh.trace.steps)
    for index, (one, other) in enumerate(zip(made.trace.steps, fresh.trace.steps, strict=True)):
        assert everything(one) == everything(other), index
        shown_here = made.effective_step(index).turn
        assert (shown_here.limits, shown_here.policy) == (other.turn.limits, other.turn.policy), index
        assert shown_here.token_cap == other.turn.token_cap
        assert made.effective_step(index).records == other.records, index
    assert [(t.record, t.first, t.end, t.runs, t.deciding_step) for t in made.turns] == [
        (t.record, t.first, t.end, t.runs, t.deciding_step) for t in fresh.turns]


limits = st.builds(
    Limits,
    continuation_max_attempts=st.integers(0, 6),
    continuation_max_total_completion_tokens=st.none() | st.integers(1, 200),
    continuation_max_output_chars=st.integers(1, 200),
    continuation_tool_repair_attempts=st.integers(0, 3),
    max_tool_steps=st.integers(0, 4),
    max_identical_calls=st.integers(1, 3),
    max_thinking_only=st.integers(0, 2),
    max_resumes=st.integers(0, 2),
    min_progress_chars=st.sampled_from([0, 1, 30]),
    attempts_scope=st.sampled_from(["turn", "response"]),
)
choices = st.builds(
    Settings,
    limits,
    st.sampled_from(list(POLICIES.values())),
    st.sampled_from([None, None, 10, 100]),
    seam=st.sampled_from([None, *SeamRule]),
    method=st.sampled_from([None, Method.PREFILL, Method.HINT]),
    profile=st.sampled_from([None, None, "vllm", "mistral", "openai", "anthropic"]),
)


@hypothesis_settings(max_examples=25, deadline=None)
@given(stories, choices, choices)
def test_it_is_what_a_replay_from_nothing_would_be(exchanges, before, after):
    original = show(*exchanges, settings=before)
    made = rerun(original.replay, after)
    fresh = replay(original.replay.case, after)
    same(made, fresh)
    seen = view(made, original)
    plain = view(fresh)
    assert document(seen) == document(plain)
    assert text(seen) == text(plain)


@hypothesis_settings(max_examples=25, deadline=None)
@given(stories, limits, st.sampled_from([field.name for field in fields(Limits)]), st.data())
def test_one_limit_alone(exchanges, first, name, data):
    after = replace(first, **{name: getattr(data.draw(limits), name)})
    original = show(*exchanges, settings=Settings(first))
    same(rerun(original.replay, Settings(after)), replay(original.replay.case, Settings(after)))


@hypothesis_settings(max_examples=30, deadline=None)
@given(stories, choices, choices, st.data())
def test_from_any_step_what_came_before_stays(exchanges, before, after, data):
    parent = show(*exchanges, settings=before).replay
    kept = list(map(everything, parent.trace.steps))
    since = data.draw(st.integers(0, len(parent.trace.steps) - 1))
    made = rerun(parent, after, since)
    assert all(one is other for one, other in zip(made.trace.steps[:since], parent.trace.steps[:since], strict=True))
    assert [*map(everything, parent.trace.steps)] == kept
    begins = {turn.first for turn in parent.turns}
    if since in begins:  # a whole turn under the new settings: as if it had been so from the start
        fresh = replay(parent.case, after)
        number = parent.turn_at(since)
        assert [[*map(step_key, turn.steps)] for turn in made.turns[number:]] == [
            [*map(step_key, turn.steps)] for turn in fresh.turns[number:]]
    for one, other in zip(made.trace.steps[since:], made.trace.steps[since + 1 :], strict=False):
        if other.before is not None:
            assert other.previous_state is one.state
            unsent = isinstance(other.event, NotRecorded)  # what was asked for last was never sent, and counts no more
            assert other.turn.spend.requests >= one.turn.spend.requests - unsent
    assert all(turn.steps[-1].turn.ended for turn in made.turns)
    assert [made.settings_at(step) for step in (0, since)] == [parent.settings_at(0) if since else after, after]


@hypothesis_settings(max_examples=50, deadline=None)
@given(stories, choices, st.data())
def test_from_any_step_under_the_same_settings_nothing_is_made(exchanges, some, data):
    parent = show(*exchanges, settings=some).replay
    since = data.draw(st.integers(0, len(parent.trace.steps) - 1))
    made = rerun(parent, some, since)
    assert made.trace is parent.trace
    assert all(one is other for one, other in zip(made.turns, parent.turns, strict=True))


@hypothesis_settings(max_examples=25, deadline=None)
@given(stories, choices, choices, choices, st.data())
def test_a_branch_of_a_branch_goes_back_to_where_it_came_from(exchanges, one, two, three, data):
    parent = show(*exchanges, settings=one).replay
    since = data.draw(st.integers(0, len(parent.trace.steps) - 1))
    child = rerun(parent, two, since)
    later = data.draw(st.integers(0, len(child.trace.steps) - 1))
    grandchild = rerun(child, three, later)
    assert [stretch.since for stretch in grandchild.stretches] == sorted({0, since, later} & {0, *(
        s for s in (since, later) if s <= later)})
    same(rerun(grandchild, one), parent)
    same(rerun(grandchild, two), replay(parent.case, two))


def outcome(made: Replay) -> list:
    """What can be told of a run whose answers are made anew each time."""
    return [(step_key(step), step.fidelity, step.records, step.turn.joined_answer(), step.turn.notice) for step in (
        made.effective_step(index) for index in range(len(made.trace.steps)))]


simulating = st.builds(lambda settings, on: replace(settings, simulate=on, profile=None), choices, st.booleans())


@hypothesis_settings(max_examples=25, deadline=None)
@given(stories, simulating, simulating, simulating, st.data())
def test_simulated_or_not_it_is_what_a_replay_from_nothing_would_be(exchanges, one, two, three, data):
    original = show(*exchanges, settings=one)
    made = rerun(original.replay, two)
    fresh = replay(original.replay.case, two)
    assert outcome(made) == outcome(fresh)
    assert document(view(made, original)) == document(view(fresh))
    since = data.draw(st.integers(0, len(original.steps) - 1))
    child = rerun(original.replay, three, since)
    assert all(turn.steps[-1].turn.ended for turn in child.turns)
    assert outcome(rerun(child, two)) == outcome(fresh)
    assert outcome(rerun(original.replay, one, since)) == outcome(original.replay)


@pytest.mark.parametrize("sample", samples(), ids=lambda sample: sample.path.name)
def test_every_step_of_every_sample(sample):
    original = view(replay(open_case(open_paths([str(sample.path)]))))
    tried = [
        Settings(Limits(continuation_max_attempts=0), explicit=frozenset({"continuation_max_attempts"})),
        Settings(Limits(continuation_max_attempts=9, continuation_tool_repair_attempts=4, max_resumes=0)),
        Settings(Limits(max_tool_steps=0)), Settings(max_tokens=7), Settings(seam=SeamRule.CONCAT),
        Settings(profile="openrouter"), *(Settings(policy=policy) for policy in POLICIES.values()),
    ]
    for number, settings in enumerate(tried):
        same(rerun(original.replay, settings), replay(original.replay.case, settings))
        # each step under a fifth of the settings
        for since in share(range(number % 5, len(original.steps), 5), number):
            made = rerun(original.replay, settings, since)
            assert made.trace.steps[:since] == original.steps[:since]
            assert all(turn.steps[-1].turn.ended for turn in made.turns)
            assert document(view(made, original))["schema"]


# -- at a step --------------------------------------------------------------------------------------------------------


def states(made: Replay, turn: int = 0) -> list[State]:
    return [step.state for step in made.turns[turn].steps if step.run == 0]


def at_state(made: Replay, state: State, nth: int = 0) -> int:
    return [index for index, step in enumerate(made.trace.steps) if step.state is state][nth]


def test_a_limit_that_holds_from_the_second_continuation_on():
    parent = show(*cut_text(*PARTS)).replay
    since = at_state(parent, State.REQUEST_CONTINUATION, 1)
    made = rerun(parent, Settings(Limits(continuation_max_attempts=0)), since)
    # One continuation was made under the old limit; the second is refused by the new one.
    assert made.trace.steps[since].turn.terminal == "retry_limit"
    assert made.trace.steps[since].turn.spend.attempts == 1
    assert made.turns[0].steps[: since] == parent.turns[0].steps[: since]
    assert made.effective_step(since - 1).turn.limits == REPLAYED
    assert made.effective_step(since).turn.limits.continuation_max_attempts == 0


def test_tools_that_a_guard_had_stopped_run_under_a_higher_limit_and_back():
    stopped = show(*repair_turn(), settings=Settings(Limits(max_tool_steps=0))).replay
    since = at_state(stopped, State.EXECUTE_TOOLS) + 1
    assert stopped.trace.steps[since].turn.terminal == "step_limit"
    freed = rerun(stopped, Settings(), since)
    assert states(freed)[since : since + 2] == [State.REQUEST, State.EVALUATE_STOP]
    assert freed.trace.steps[since].turn.spend.tool_steps == 1
    assert states(rerun(freed, Settings(Limits(max_tool_steps=0)), since)) == states(stopped)


def test_a_pause_that_a_guard_had_stopped_is_resumed_under_a_higher_limit():
    url = "https://api.anthropic.com/v1/messages"
    block = [{"type": "text", "text": "Searching."}]
    exchanges = [
        pair_of([user("go")], message(block, "pause_turn"), url=url, max_tokens=90),
        pair_of([user("go"), {"role": "assistant", "content": block}],
              message([{"type": "text", "text": " Found."}], "end_turn"), url=url, max_tokens=90),
    ]
    stopped = show(*exchanges, settings=Settings(Limits(max_resumes=0))).replay
    since = at_state(stopped, State.RESUME) + 1
    assert stopped.trace.steps[since].turn.terminal == "no_progress"
    freed = rerun(stopped, Settings(), since)
    assert freed.turns[0].steps[freed.turns[0].deciding_step].turn.terminal == "completed"
    assert freed.trace.steps[-1].turn.spend.resumes == 1


def test_another_policy_reads_the_response_that_waits():
    parent = show(*cut_call_ran()).replay
    since = at_state(parent, State.REPAIR_PENDING)
    made = rerun(parent, Settings(policy=POLICIES["pi-presence"]), since)
    assert states(made) == [
        State.REQUEST, State.EVALUATE_STOP, State.EXECUTE_TOOLS, State.REQUEST, State.EVALUATE_STOP, State.COMPLETE]


@pytest.mark.parametrize("since", [-1, 15, 10**9])
def test_a_step_that_does_not_exist_is_the_callers_error(since):
    parent = show(*cut_text(*PARTS[:3])).replay
    assert len(parent.trace.steps) < 15
    with pytest.raises(CallerError, match=f"step {since + 1:,}: this run has the steps 1 to"):
        rerun(parent, Settings(), since)


def recorded_ends(tmp_path) -> Replay:
    """Two records of live runs: one that the operator ended behind a cut answer, one that could not be asked on."""
    def session(name: str, *last: dict) -> str:
        asks = {"model": "m", "messages": [user(f"Tell of the {name}.")], "max_tokens": 10}
        body = json.dumps({**chat(f"The {name} ", "length"), "model": "m"})
        record = [{"loop_inspector_session": 1, "title": name},
                  {"type": "request", "id": "r1", "api": "openai_chat", "url": CHAT, "body": asks},
                  {"type": "response", "request": "r1", "status": 200, "headers": []},
                  {"type": "bytes", "request": "r1", "text": body},
                  {"type": "end", "request": "r1", "end": "eof"}, *last]
        path = tmp_path / f"{name}.session.jsonl"
        path.write_text("".join(json.dumps(each) + "\n" for each in record))
        return str(path)

    paths = [session("cat", {"type": "cancel", "request": "r1", "answered": True}),
             session("dog", {"type": "note", "text": "the server is gone"},
                     {"type": "about", "end_state": "unrecorded"})]
    return replay(open_case(open_paths(paths)))


def ends(made: Replay) -> list[tuple[str | None, bool]]:
    finals = [made.trace.steps[turn.deciding_step].turn for turn in made.turns]
    return [(turn.terminal, "the server is gone" in (turn.notice or "")) for turn in finals]


def test_what_a_record_says_of_its_end_holds_in_every_what_if(tmp_path):
    parent = recorded_ends(tmp_path)
    as_recorded = [("cancelled", False), ("unrecorded", True)]
    assert ends(parent) == as_recorded
    other = rerun(parent, Settings(profile="vllm"))
    assert ends(other) == as_recorded, "read as another server's answers"
    assert ends(rerun(other, Settings(profile="vllm", limits=Limits(continuation_max_attempts=2)))) == as_recorded
    assert ends(rerun(parent, Settings(limits=Limits(continuation_max_attempts=2)))) == as_recorded


@pytest.mark.parametrize("profile", [None, "vllm"])
def test_what_a_record_says_of_its_end_holds_beside_a_turn_that_is_asked_live(tmp_path, profile):
    parent = recorded_ends(tmp_path)
    body = lines(pair_of([user("Tell of the cat.")], chat("Cats sleep.", "stop"), max_tokens=10))
    heard = open_paths(["-"], stdin=body).exchanges
    parent.case.live_runs["live"] = BranchAnswers("live", heard, ((RequestPlace.REQUEST, 0),))
    live = rerun(parent, Settings(live="live", profile=profile))
    assert ends(live) == [("completed", False), ("unrecorded", True)]
    again = Settings(live="live", profile=profile, limits=Limits(continuation_max_attempts=2))
    assert ends(rerun(live, again)) == [("completed", False), ("unrecorded", True)]
    live = rerun(parent, Settings(live="live", profile=profile), parent.turns[1].first)
    assert ends(live) == [("cancelled", False), ("completed", False)]
    assert ends(rerun(live, again)) == [("cancelled", False), ("completed", False)]


def test_the_answers_of_two_live_runs_are_measured_apart(tmp_path):
    def cut_at_three(*names: str) -> list[tuple[str, int]]:
        parent = recorded_ends(tmp_path)
        for name in names:
            text, tokens = {"cats": ("Cats sleep.", 11), "dogs": ("Dogs run around in the park.", 7)}[name]
            body = lines(pair_of([user("Tell of it.")], chat(text, "stop", tokens=tokens), max_tokens=100))
            parent.case.live_runs[name] = BranchAnswers(name, open_paths(["-"], stdin=body).exchanges,
                                                        ((RequestPlace.REQUEST, 0),))
        found = []
        for name in names:
            live = rerun(parent, Settings(live=name))
            small = rerun(live, Settings(live=name, simulate=True, max_tokens=3))
            answers = small.turns[0].final_turn.answers[-1]
            found.append((answers[-1].text, len(answers)))
        return found

    alone = [("Cats sleep.", 4), ("Dogs run around in the park.", 3)]  # 11 and 7 tokens, three at a time
    assert cut_at_three("cats") + cut_at_three("dogs") == alone
    assert cut_at_three("cats", "dogs") == alone


def test_nothing_at_all_is_run_again_as_nothing():
    assert rerun(replay(open_case(open_paths([]))), Settings()).turns == ()


# -- what is shared ---------------------------------------------------------------------------------------------------


def many(turns: int, cut: int) -> Replay:
    """Turns of one whole answer each; the first `cut` of them are continued four times."""
    made = []
    for number in range(turns):
        opening = user(f"question {number} of many")
        if number < cut:
            for each in cut_text(*PARTS):
                body = each["request"]["body"]
                made.append(pair_of([opening, *body["messages"][1:]], each["response"]["body"]))
        else:
            made.append(pair_of([opening], chat(f"answer {number}")))
    return replay(open_case(open_paths(["-"], stdin=lines(*made))))


def test_turns_that_nothing_changes_are_the_same_values():
    parent = many(30, 3)
    seen = view(parent)
    made = rerun(parent, Settings(Limits(continuation_max_attempts=9)))
    branch = view(made, seen)
    for number, (old, new) in enumerate(zip(parent.turns, made.turns, strict=True)):
        if number < 3:
            assert new.steps[:12] == old.steps[:12]
            assert all(one is other for one, other in zip(new.steps[:12], old.steps[:12], strict=True))
        else:
            assert new.steps is old.steps
            assert branch.turns[number].verdict is seen.turns[number].verdict


def memory_of(make) -> int:
    """Bytes that stay in memory of what `make` gives."""
    make()  # what is imported and cached once
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    made = make()
    gc.collect()  # what a run leaves behind in cycles does not stay
    _recent.clear()  # nor do the last joins
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert made.turns
    return after - before


def grown(parent: Replay, settings: Settings) -> int:
    """Bytes that a what-if keeps."""
    seen = view(parent)
    return memory_of(lambda: view(rerun(parent, settings), seen))


def test_memory_grows_by_the_steps_that_differ():
    few, more = many(300, 6), many(300, 60)
    whole = memory_of(lambda: view(replay(few.case)))
    assert grown(few, Settings(Limits(max_tool_steps=3))) < 8 * len(few.turns)  # nothing differs: no reference a turn
    raised = Settings(Limits(continuation_max_attempts=9))
    one, ten = grown(few, raised), grown(more, raised)
    each = (ten - one) / 54
    new = len(set(map(id, rerun(few, raised).trace.steps)) - set(map(id, few.trace.steps)))
    assert new == 6 * 3  # of each turn that is cut: the fourth continuation, its answer, the end
    assert one < whole / 4
    assert one - 6 * each < 475 * len(few.turns)  # the rest is where each turn stands, since earlier ones grew
    assert each < 2_500 * 3


# -- what each setting decides ----------------------------------------------------------------------------------------

ASKED = [user("write the plan")]
SPENT = 'data: {"id": "chatcmpl-1", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 7}}\n\n'
SCENES = {
    "cut four times": cut_text(*PARTS),
    "cut and then little": cut_text("The first part is long enough, ", "a", "b", "c", "the end"),
    "cut with nothing": cut_text("", "", "and then a word", "and the end"),
    "a call that is repaired": repair_turn(),
    "a cut call that was run": cut_call_ran(),
    "calls, one cut": story(["call", "call", "cut call", "answer", "cut text", "call", "answer"], 100, [20]),
    "the same call again": [
        pair_of([*ASKED, *(each for number in range(round_) for each in (
            assistant(None, call(WHOLE, f"call_{number}")), result(key=f"call_{number}")))],
            chat(None, "tool_calls", call(WHOLE, f"call_{round_}")), tools=TOOLS)
        for round_ in range(5)
    ],
    "no reason at the cap": [pair_of(ASKED, cut_stream("The plan is this, and") + SPENT, max_tokens=7)],
    "a call and a phantom": [
        pair_of(ASKED, chat(None, "tool_calls", call(WHOLE), call("", "call_2", "")), tools=TOOLS),
        pair_of([*ASKED, assistant(None, call(WHOLE)), result()], chat("It is written."), tools=TOOLS),
    ],
    "nothing to be shown": [pair_of(ASKED, chat("HEARTBEAT_OK"))],
}
"""One way each that a setting can come to bear."""
LIMIT_VALUES = {
    "continuation_max_attempts": (0, 1, 2, 9), "continuation_max_total_completion_tokens": (1, 15, 25, 10**6),
    "continuation_max_output_chars": (1, 40, 70, 10**6), "continuation_tool_repair_attempts": (0, 2),
    "max_tool_steps": (0, 1, 2), "max_identical_calls": (1, 2, 9), "max_thinking_only": (0, 1, 5),
    "min_progress_chars": (0, 2, 10**4), "attempts_scope": ("response",), "max_resumes": (0,),
}
BELIEFS = [
    replace(STRICT, **{name: value}) for name, values in {
        "reads": (ReasonSource.MAPPED,),
        "reason_map": ({Stop.MAX_TOKENS: Stop.END_TURN}, {Stop.TOOL_CALL: Stop.END_TURN}),
        "signals": (POLICIES["pi-presence"].signals,), "cap_evidence": (False,), "dispatch": tuple(Dispatch),
        "batch": tuple(BatchRule), "methods": ((), (Method.HINT,)), "system_hint": (False,), "seam": tuple(SeamRule),
        "silent_endings": ((),), "strips": (False,),
        "lacks": tuple(frozenset({guard.name}) for guard in GUARDS),
    }.items() for value in values
]
PLAIN = Limits()
TRIED = [Settings(PLAIN), *(Settings(replace(Limits(), **{name: value})) for name, values in LIMIT_VALUES.items()
                       for value in values), *(Settings(PLAIN, policy) for policy in BELIEFS)]


@pytest.mark.parametrize("name", SCENES)
def test_each_setting_alone_there_and_back(name):
    base = show(*SCENES[name], settings=Settings(PLAIN)).replay
    fresh = [replay(base.case, settings) for settings in TRIED]
    for made in fresh:
        same(rerun(base, made.settings), made)
        same(rerun(made, Settings(PLAIN)), base)
    assert any(len(made.trace.steps) != len(base.trace.steps) or any(
        everything(one) != everything(other) for one, other in zip(made.trace.steps, base.trace.steps, strict=True))
        for made in fresh) or name == "nothing to be shown"


def test_a_limit_that_is_reached_either_way_is_named_as_it_is_now():
    parent = show(*cut_text(*PARTS)).replay
    since = at_state(parent, State.ABORT_PARTIAL)
    assert "continuation_max_attempts (3) is reached" in parent.trace.steps[since].turn.notice
    made = rerun(parent, Settings(Limits(continuation_max_attempts=2)), since)
    assert made.trace.steps[since].turn.terminal == "retry_limit"
    assert "continuation_max_attempts (2) is reached" in made.trace.steps[since].turn.notice


def test_tools_that_are_under_way_are_answered_as_the_new_policy_does():
    parent = show(*repair_turn()).replay
    since = at_state(parent, State.EXECUTE_TOOLS) + 1
    lax = replace(STRICT, dispatch=Dispatch.PRESENT)
    made = rerun(parent, Settings(policy=lax), since)
    assert [step_key(step) for step in made.trace.steps] == [step_key(step)
                                                             for step in parent.trace.steps]  # it decides the same
    assert made.effective_step(since).turn.policy is lax
    assert made.effective_step(since - 1).turn.policy is parent.settings.policy
    assert [effect.batch for effect in made.trace.steps[since - 1].effects] == [
        effect.batch for effect in parent.trace.steps[since - 1].effects]


def test_a_run_of_the_same_steps_names_its_own_policy():
    """What is said of a held call depends on the policy in force, although no step differs."""
    answer = chat(None, "tool_calls", call(), tokens=34)
    settings = Settings(policy=POLICIES["zeroclaw-merged"])
    original = show(pair_of(ASKS, answer, tools=TOOLS, max_tokens=20), settings=settings)
    for policy in POLICIES.values():
        made = rerun(original.replay, Settings(policy=policy))
        fresh = replay(original.replay.case, made.settings)
        assert document(view(made, original)) == document(view(fresh)), policy.name
