"""Every cell against a replay of its own: the same ends and the same spend, from a fraction of the runs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from inspector.config.settings import Settings
from inspector.replay import first_run, replay
from inspector.replay.case import Case, open_case
from inspector.report.facts import view
from inspector.report.findings import collect
from inspector.report.judged_turn import judged_turn_of
from inspector.report.verdict import verdict_word
from inspector.sessions import open_paths
from inspector.sessions.folders import samples
from inspector.whatif.grid import Axis, End, Grid
from inspector.whatif.grid_run import tune
from loop_core.turn.history import hint_message
from loop_core.turn.limits import GUARDS, RANGES, Limits, Spend
from loop_core.turn.presets import POLICIES
from loop_core.turn.state import ProviderResponse
from tests.scenes.recordings import (
    ASKS,
    CUT,
    HINT,
    MESSAGES,
    SEND_AGAIN,
    TOOLS,
    WHOLE,
    assistant,
    call,
    chat,
    exchange,
    lines,
    message,
    pair_of,
    result,
    user,
)
from tests.scenes.rows import each_row, share


def case_of(*exchanges: dict) -> Case:
    loaded = open_paths(["-"], stdin=lines(*exchanges))
    assert [each.error for each in loaded.inputs] == [None]
    return open_case(loaded)


def brute(case: Case, settings: Settings) -> list[End]:
    """The ends of all turns from a whole replay. Verdicts have no advice here: it tries many runs of its own."""
    made = replay(case, settings)
    ends = []
    for turn, noted in zip(made.turns, collect(made, []), strict=True):
        word, complete = verdict_word(judged_turn_of(made, turn, noted))
        step = made.trace.steps[turn.deciding_step]
        count = sum(len(answer) for answer in step.turn.answers)
        unseen = any(isinstance(own.event, ProviderResponse) and own.event.cut_unseen
                     for own in made.trace.steps[turn.first : turn.deciding_step + 1])
        ends.append(End(step.turn.outcome or step.turn.state, step.turn.terminal or "", "", count, step.turn.spend,
                        step.fidelity.value, cut_unseen=unseen, verdict=word, complete=complete and not unseen))
    return ends


def same_everywhere(case: Case, grid: Grid, jobs: int = 1, row: int | None = None) -> None:
    """With a row, a share of the cells."""
    tuned = tune(case, grid, jobs)
    for cell in range(grid.size) if row is None else share(range(grid.size), row):
        found = [turn.end(cell) for turn in tuned.turns]
        expected = [replace(end, complete=end.complete and of_turn.limit not in grid.names)
                    for end, of_turn in zip(brute(case, grid.settings(cell)), found, strict=True)]
        assert [replace(end, limit="", needs=()) for end in found] == expected, grid.values(cell)


# -- the guards ------------------------------------------------------------------------------------------------------

SPENDS = [Spend(), Spend(2, 2, 2, 50, 0, 70, 1, 3, 2, 1, 0, 2), Spend(9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 1, 9, 9)]


@each_row("guard", GUARDS)
@each_row("spent", SPENDS)
def test_the_smallest_value_passes_its_guard_and_the_next_smaller_does_not(guard, spent):
    if guard.least is None:
        verdicts = {guard.exceeded(replace(Limits(), **{guard.limit: value}), spent, 5)
                    for value in RANGES[guard.limit]}
        assert len(verdicts) == 1, "a guard without a smallest value goes by what was spent alone"
        return
    least = guard.least(spent)
    low, _ = RANGES[guard.limit]
    for value, stopped in ((least, False), (least - 1, True)):
        if value >= low:
            limits = replace(Limits(), **{guard.limit: value})
            assert guard.exceeded(limits, spent, limits.token_cap(None)) is stopped


# -- sessions of any shape -------------------------------------------------------------------------------------------

KINDS = ("cut text", "cut call", "call", "same call", "cut with nothing", "answer", "filtered", "paused", "little",
         "nothing")


def story(kinds: list[str], cap: int | None, tokens: list[int | None], messages: bool) -> list[dict]:
    """A conversation in which the agent goes on after every answer as its kind asks for."""
    made: list[dict] = []
    history = [*ASKS]
    more = {} if cap is None else {"max_tokens": cap}
    for number, kind in enumerate(kinds):
        key = "call_a1b2c3d4e5" if kind == "same call" else f"call_{number}a1b2c3d4e"
        text = "" if kind == "little" else f"Sentence {number} is here{' now.' if kind == 'answer' else ', and'} "
        used = tokens[number % len(tokens)]
        if messages:
            blocks = [] if kind in ("cut with nothing", "nothing") else [{"type": "text", "text": text or "."}]
            word = {"answer": "end_turn", "call": "end_turn", "same call": "end_turn", "filtered": "refusal",
                    "nothing": "end_turn",
                    "paused": "pause_turn"}.get(kind, "max_tokens")
            made.append(pair_of(list(history), message(blocks, word, used or 0), url=MESSAGES, max_tokens=cap or 9))
            if kind == "paused":
                history += [{"role": "assistant", "content": blocks}]
            else:
                follow = HINT if word == "max_tokens" else "Next"
                history += [{"role": "assistant", "content": text or "."}, user(follow)]
            continue
        arguments = {"cut call": CUT, "call": WHOLE, "same call": WHOLE}.get(kind)
        calls = [call(arguments, key)] if arguments else []
        reason = {"call": "tool_calls", "same call": "tool_calls", "answer": "stop", "nothing": "stop",
                  "filtered": "content_filter", "paused": None}.get(kind, "length")
        said = None if kind in ("call", "same call", "cut with nothing", "nothing") else text
        made.append(pair_of(list(history), chat(said, reason, *calls, tokens=used), tools=TOOLS, **more))
        if reason == "tool_calls":
            history += [assistant(None, *calls), result(f"ok {number}", key)]
        elif kind in ("cut with nothing", "nothing"):
            history += [user(HINT if kind == "cut with nothing" else f"Next: number {number}.")]
        else:
            follow = {"cut text": HINT, "little": HINT, "cut call": SEND_AGAIN}.get(kind, f"Next: number {number}.")
            history += [assistant(text), user(follow)]
    return made


stories = st.builds(
    story,
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=9),
    st.sampled_from([None, 20, 100]),
    st.lists(st.none() | st.integers(1, 60), min_size=1, max_size=3),
    st.booleans(),
)


def axis(name: str, values: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(values, min_size=1, max_size=4, unique=True).map(
        lambda found: Axis(name, (*sorted(v for v in found if v is not None), *([None] if None in found else []))))


AXES = {
    "continuation_max_attempts": st.integers(0, 6),
    "continuation_max_total_completion_tokens": st.none() | st.integers(1, 200),
    "continuation_max_output_chars": st.integers(1, 200),
    "continuation_tool_repair_attempts": st.integers(0, 3),
    "max_tool_steps": st.integers(0, 4),
    "max_identical_calls": st.integers(1, 3),
    "max_resumes": st.integers(0, 3),
    "max_empty_retries": st.integers(0, 2),
    "max_thinking_only": st.integers(0, 3),
    "min_progress_chars": st.integers(0, 60),
    "max_tokens": st.none() | st.integers(1, 120),
}
grids = st.lists(st.sampled_from(sorted(AXES)), min_size=1, max_size=3, unique=True).flatmap(
    lambda names: st.tuples(*(axis(name, AXES[name]) for name in names)))
bases = st.builds(
    Settings,
    limits=st.builds(
        Limits,
        continuation_max_attempts=st.integers(0, 6),
        continuation_max_total_completion_tokens=st.none() | st.integers(1, 200),
        continuation_tool_repair_attempts=st.integers(0, 3),
        attempts_scope=st.sampled_from(["turn", "response"]),
    ),
    policy=st.sampled_from(list(POLICIES.values())),
    max_tokens=st.none() | st.integers(1, 120),
    simulate=st.booleans(),
)


STOPPED = {
    "continuation_max_attempts": (["cut text", "cut text", "answer"], {0: 1, 1: 2, 2: 3}),
    "continuation_max_total_completion_tokens": (["cut text", "cut text", "answer"],
                                                 {20: 1, 39: 1, 40: 2, 59: 2, 60: 3}),
    "continuation_max_output_chars": (["cut text", "cut text", "answer"], {24: 1, 25: 2, 48: 2, 49: 3}),
    "continuation_tool_repair_attempts": (["cut call", "cut call", "call", "answer"], {0: 1, 1: 2, 2: 4}),
    "max_tool_steps": (["call", "call", "answer"], {0: 1, 1: 2, 2: 3}),
    "max_identical_calls": (["same call", "same call", "same call", "answer"], {1: 2, 2: 3, 3: 4}),
    "max_resumes": (["paused", "paused", "answer"], {0: 1, 1: 2, 2: 3}),
    "max_empty_retries": (["nothing"], {0: 1, 1: 1}),  # one more request: no recording of an agent holds its answer
    "max_thinking_only": (["cut with nothing", "cut with nothing", "answer"], {0: 1, 1: 2, 2: 3}),
    "min_progress_chars": (["cut text", "cut text", "answer"], {24: 3, 25: 2}),
    "max_tokens": (["cut text", "cut text", "answer"], {5: 3, 6: 3, 10: 3, 11: 3}),
}
"""Limit -> a turn of answers of 24 characters and 20 tokens, and for each value how many of them are come to.

A recording was made at its own max_tokens: another one stops nothing over it.
"""


def test_every_guarded_limit_is_tried():
    assert set(AXES) == set(STOPPED) == {guard.limit for guard in GUARDS} | {"max_tokens"}


@each_row("name", STOPPED)
def test_each_limit_stops_a_turn_just_where_it_is_reached(name):
    kinds, expected = STOPPED[name]
    paused = name == "max_resumes"  # only Anthropic pauses, and its requests must name a cap
    case = case_of(*story(kinds, 100 if paused else None, [20], paused))
    grid = Grid((Axis(name, tuple(expected)),))
    same_everywhere(case, grid)
    ends = [tune(case, grid).turns[0].end(cell) for cell in range(grid.size)]
    assert dict(zip(expected, (end.segments for end in ends), strict=True)) == expected
    stopped = {end.limit for end in ends if not end.complete and end.terminal != "unrecorded"}
    assert stopped == (set() if name == "max_tokens" else {name})


@hypothesis_settings(max_examples=50, deadline=None)
@given(stories, grids, bases)
def test_each_cell_is_what_a_replay_of_its_own_gives(exchanges, axes, base):
    same_everywhere(case_of(*exchanges), Grid(axes, base))


@hypothesis_settings(max_examples=50, deadline=None)
@given(stories, st.lists(st.integers(1, 120), min_size=1, max_size=6, unique=True), bases)
def test_each_simulated_cell_is_what_a_replay_of_its_own_gives(exchanges, budgets, base):
    """What a budget does not cut is simulated once, for all larger ones."""
    grid = Grid((Axis("continuation_max_attempts", (1, 9)), Axis("max_tokens", (*sorted(budgets), None))),
                replace(base, simulate=True))
    same_everywhere(case_of(*exchanges), grid)


def test_each_cell_is_what_a_replay_of_its_own_gives_where_words_were_asked_for_once_more():
    """No budget to ask once more: the answer that had ended stands, and the turn is complete with a notice."""
    first = "The quick brown fox jumps over the lazy dog, and then it goes on to"
    history, before = [user("tell me")], first
    exchanges = [pair_of(list(history), chat(first, "length", tokens=9), max_tokens=10)]
    for said, again in (("I'm sorry, but I can't go on.", False), (first[-40:] + " rest.", True)):
        history += [assistant(before), user(hint_message(first[-40:], again=again).text)]
        before = said
        exchanges.append(pair_of(list(history), chat(said, "stop", tokens=9), max_tokens=10))
    case = case_of(*exchanges)
    same_everywhere(case, Grid((Axis("continuation_max_attempts", (0, 1, 2, 3)),)))
    same_everywhere(case, Grid((Axis("continuation_max_total_completion_tokens", (5, 9, 10, 18, 19, 30, None)),)))
    ends = tune(case, Grid((Axis("continuation_max_attempts", (0, 1, 2)),))).turns[0]
    assert [(ends.end(cell).terminal, ends.end(cell).segments) for cell in range(3)] == [
        ("retry_limit", 1), ("completed", 2), ("completed", 3)]


@pytest.mark.parametrize("sample", samples(), ids=lambda sample: sample.path.stem[:2])
def test_each_cell_of_each_sample_is_what_a_replay_of_its_own_gives(sample):
    """The samples bring limits of their own in their files; those that no axis names stay in force."""
    case = open_case(open_paths([str(sample.path)]))
    around = (Axis("continuation_max_attempts", (0, 1, 3, 5, 10)), Axis("max_tokens", (10, 40, 80, 200, None)))
    row = samples().index(sample)
    same_everywhere(case, Grid(around), row=row)
    same_everywhere(case, Grid(around, Settings(simulate=True)), row=row + 4)
    viewed = [turn.verdict for turn in view(replay(case, Settings())).turns]
    assert [end.verdict for end in brute(case, Settings())] == [verdict.word for verdict in viewed]
    same_everywhere(case, Grid((Axis("continuation_max_total_completion_tokens", (30, 100, 200, 201, None)),
                                Axis("continuation_tool_repair_attempts", (0, 1, 2)),
                                Axis("max_resumes", (0, 1)))), row=row)


@hypothesis_settings(max_examples=50, deadline=None)
@given(stories, bases)
def test_what_an_end_needs_is_just_enough_and_one_less_is_not(exchanges, base):
    case = case_of(*exchanges)
    grid = Grid((Axis("continuation_max_attempts", (30,)), Axis("max_tokens", (1000,))), base)
    for number, turn in enumerate(tune(case, grid).turns):
        end = turn.end(0)
        for name, least in end.needs:
            low, _ = RANGES[name]
            for value in (least, least - 1):
                if value < low:
                    continue
                set_ = grid.settings_with({"continuation_max_attempts": 30, "max_tokens": 1000, name: value})
                now = first_run(case, case.recording.turns[number], set_)[-1].turn
                assert ((now.terminal, now.spend) == (end.terminal, end.spend)) is (value == least), name


@pytest.mark.parametrize("tokens", [30, None])
def test_a_larger_budget_that_holds_the_whole_count_leaves_an_answer_as_it_was_recorded(tokens):
    """Its thinking may not count under the cap, so that a smaller budget cuts nothing, and yet makes another answer."""
    body = chat(None, "tool_calls", call('{"at": "it"}'), tokens=tokens)
    body["choices"][0]["message"]["reasoning_content"] = "Let me think about that, word by word. " * 3
    grid = Grid((Axis("max_tokens", (2, 20, 50, 200)),), Settings(simulate=True, profile="xai"))
    same_everywhere(case_of(pair_of([user("Look.")], body)), grid)


def test_a_budget_under_which_nothing_can_be_simulated_says_nothing_about_larger_ones():
    """Converse has no form for a call that is cut before its arguments, and the answer holds nothing else."""
    called = [{"toolUse": {"toolUseId": f"tooluse_{number}", "name": "roll", "input": {}}} for number in range(3)]
    body = {"output": {"message": {"role": "assistant", "content": called}}, "stopReason": "tool_use",
            "usage": {"inputTokens": 946, "outputTokens": 37, "totalTokens": 983}}
    case = case_of(exchange({"messages": [{"role": "user", "content": [{"text": "Roll it 3 times."}]}]}, body,
                            url="https://bedrock-runtime.us-east-1.amazonaws.com/model/us.amazon.nova-2-lite-v1:0/converse"))
    grid = Grid((Axis("max_tokens", (23, 36, 37, 60, 95, 190)),), Settings(simulate=True))
    same_everywhere(case, grid)
    turn = tune(case, grid, 1).turns[0]
    assert [turn.end(cell).spend.requests for cell in range(grid.size)] == [0, 0, 1, 1, 1, 1]


def test_a_budget_under_which_a_call_is_cut_says_nothing_about_one_that_has_room_for_it():
    """The call of the continuation belongs to the answer that was cut: together they have 27 tokens. A whole body of
    Messages has no form for a part of it."""
    used = [{"type": "tool_use", "id": f"toolu_{number}", "name": "roll", "input": {}} for number in range(2)]
    first, history = "The first words of it", [*ASKS]
    exchanges = [pair_of(list(history), message([{"type": "text", "text": first}], "max_tokens", 10), url=MESSAGES,
                       max_tokens=10)]
    history += [assistant(first), user(HINT)]
    exchanges.append(pair_of(history, message(used, "tool_use", 17), url=MESSAGES, max_tokens=10))
    grid = Grid((Axis("max_tokens", (8, 10, 16, 18, 20, 24, 26, 27, 28, 60)),), Settings(simulate=True))
    same_everywhere(case_of(*exchanges), grid)


def test_a_policy_without_a_token_budget_has_none_before_its_tools_either():
    """The merged ZeroClaw runs the whole calls of a cut answer, whatever that answer has spent."""
    history = [*ASKS, assistant(None, call(WHOLE)), result("ok")]
    case = case_of(pair_of(ASKS, chat(None, "length", call(WHOLE), tokens=20), tools=TOOLS, max_tokens=20),
                   pair_of(history, chat("It is done.", "stop", tokens=5), tools=TOOLS, max_tokens=20))
    grid = Grid((Axis("continuation_max_total_completion_tokens", (1, 19, 20, 21, None)),),
                Settings(policy=POLICIES["zeroclaw-merged"]))
    same_everywhere(case, grid)
    turn = tune(case, grid, 1).turns[0]
    assert [end.terminal for end in turn.ends] == ["completed"]
    assert "continuation_max_total_completion_tokens" not in dict(turn.ends[0].needs)


def test_another_max_tokens_leaves_recorded_requests_as_they_are():
    """Responses takes no fewer than 16 tokens; a request that asked for fewer would be sent with that."""
    body = {"id": "resp_1", "object": "response", "model": "m-1", "status": "completed", "output": [
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "save", "arguments": WHOLE,
         "status": "completed"}], "usage": {"input_tokens": 40, "output_tokens": 13, "total_tokens": 53}}
    case = case_of(exchange({"model": "m-1", "input": "Save it."}, body, url="https://api.openai.com/v1/responses"))
    grid = Grid((Axis("continuation_max_total_completion_tokens", (15, 16, None)), Axis("max_tokens", (14, 25))))
    same_everywhere(case, grid)
    ends = [tune(case, grid, 1).turns[0].end(cell).terminal for cell in range(grid.size)]
    assert ends == [*["budget_exhausted"] * 2, *["unrecorded"] * 4]


def test_a_cut_that_no_word_shows_is_known_also_where_a_limit_stops_the_turn():
    """mistral.rs says `completed` over a cut at the cap, here of the blank lines before the text: it is empty."""
    body = {"id": "resp_1", "object": "response", "model": "m-1", "status": "completed", "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Let me think of it. " * 4}]},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": "\n" * 40 + "I save it, as you said.", "annotations": []}]},
    ], "usage": {"input_tokens": 40, "output_tokens": 30, "output_tokens_details": {"reasoning_tokens": 10},
                 "total_tokens": 70}}
    case = case_of(exchange({"model": "m-1", "input": "Save it.", "max_output_tokens": 100}, body,
                            url="http://localhost:8080/v1/responses"))
    grid = Grid((Axis("max_empty_retries", (0, 1)), Axis("max_tokens", (5, 100))),
                Settings(simulate=True, profile="mistral_rs"))
    same_everywhere(case, grid)
    end = tune(case, grid, 1).turns[0].end(0)
    assert (end.limit, end.cut_unseen) == ("max_empty_retries", True)


def test_few_runs_serve_many_cells(monkeypatch):
    """Twelve hundred cells over a recording whose responses report their tokens: one run of each turn."""
    from inspector.whatif import sweep

    ran = []
    monkeypatch.setattr(sweep, "first_run", lambda case, record, given: ran.append(given) or first_run(
        case, record, given))
    case = case_of(*story(["cut text", "cut text", "answer", "cut text"], 20, [20], False))
    grid = Grid((Axis("continuation_max_attempts", tuple(range(10))),
                 Axis("continuation_max_output_chars", tuple(range(1, 41))), Axis("max_tokens", (10, 20, 40))))
    tuned = tune(case, grid)
    assert grid.size == 1_200
    assert len(ran) == len(tuned.turns) == 2


