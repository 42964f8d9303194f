"""The same bytes as another profile speaks: decoded again where its words matter, judged and gated anew, once."""

from __future__ import annotations

import pytest

from inspector.config.settings import Settings, settings_of
from inspector.replay import replay
from inspector.replay.case import case_as_profile, open_case
from inspector.report.facts import view
from inspector.sessions import open_paths
from inspector.sessions.folders import samples
from inspector.whatif.grid import Axis, Grid
from inspector.whatif.grid_run import tune
from inspector.whatif.policies import matrix
from inspector.whatif.tree import branch
from loop_core.errors import CallerError
from loop_core.turn.trace import step_key
from loop_core.values import Stop
from loop_core.wire.profiles import PROFILES
from tests.scenes.recordings import PARTS, WHOLE, assistant, call, chat, cut_text, lines, pair_of, result, show, user
from tests.scenes.rows import share


def case_of(*exchanges):
    return open_case(open_paths(["-"], stdin=lines(*exchanges)))


def admissions(case):
    return [[verdict.admission for verdict in of] for of in case.verdicts]


SAID = chat("The first", "model_length")
"""Mistral's word for a full context; nobody else's."""


def test_the_words_of_the_profile_are_read():
    case = case_of(pair_of([user("go")], SAID))
    assert case.judgements[0].stop.normalized is Stop.UNKNOWN
    as_mistral = case_as_profile(case, "mistral")
    assert as_mistral.judgements[0].stop.normalized is Stop.CONTEXT_WINDOW_EXCEEDED
    assert as_mistral.recording.exchanges[0].body is case.recording.exchanges[0].body
    made = branch(view(replay(case)), settings_of({"profile": "mistral"}, Settings()))
    assert made.name == "profile=mistral"
    assert made.view.turns[0].terminal == "context_window_exceeded"
    assert case.judgements[0].stop.normalized is Stop.UNKNOWN


def test_calls_at_the_cap_wait_only_where_thinking_counts_under_it():
    """Of text, usage at the cap is one sign of two under every profile."""
    here = "http://localhost:9999/v1/chat/completions"
    called = case_of(pair_of([user("go")], chat(None, "stop", call(WHOLE), tokens=40), max_tokens=40, url=here))
    assert called.judgements[0].stop.normalized is Stop.TOOL_CALL
    assert case_as_profile(called, "openai").judgements[0].stop.normalized is Stop.MAX_TOKENS
    told = case_of(pair_of([user("go")], chat("The first", "stop", tokens=40), max_tokens=40, url=here))
    assert told.judgements[0].stop.normalized is Stop.END_TURN
    assert case_as_profile(told, "openai").judgements[0].stop.normalized is Stop.END_TURN


@pytest.mark.parametrize(("host", "profile", "word"), [
    ("http://localhost:9999", "openai", "CUT CALL RUN"),
    ("https://api.openai.com", "generic", "COMPLETE"),
])
def test_a_grid_and_a_matrix_judge_as_a_replay_under_the_profile(host, profile, word):
    """Whether a call that used the whole cap was cut, and so ran although it was, is known of the profile alone."""
    asks, here = [user("go")], f"{host}/v1/chat/completions"
    history = [*asks, assistant(None, call(WHOLE)), result("ok")]
    case = case_of(pair_of(asks, chat(None, "stop", call(WHOLE), tokens=40), max_tokens=40, url=here),
                   pair_of(history, chat("It is done.", "stop", tokens=5), max_tokens=40, url=here))
    given = Settings(profile=profile)
    seen = view(replay(case, given)).turns[0].verdict
    assert seen.word == word
    end = tune(case, Grid((Axis("continuation_max_attempts", (1,)),), given), 1).turns[0].end(0)
    assert (end.verdict, end.complete) == (word, seen.complete)
    assert matrix(case, given).rows[0][0].complete is seen.complete


def test_it_is_judged_once_and_only_where_another_speaks():
    case = case_of(*cut_text(*PARTS))
    assert case_as_profile(case, "vllm") is case_as_profile(case, "vllm")
    assert case_as_profile(case_as_profile(case, "vllm"), "mistral") is case_as_profile(case, "mistral")
    assert case_as_profile(case_as_profile(case, "vllm"), None) is case
    found = case.recording.exchanges[0].profile.name
    same = case_as_profile(case, found)
    assert all(one is other for one, other in zip(same.judgements, case.judgements, strict=True))
    assert all(one is other for one, other in zip(same.recording.exchanges, case.recording.exchanges, strict=True))
    with pytest.raises(CallerError, match="unknown profile 'nobody'"):
        case_as_profile(case, "nobody")


@pytest.mark.parametrize("sample", samples(), ids=lambda sample: sample.path.name)
def test_it_is_as_if_the_file_had_been_read_so(sample):
    """Each sample as every second profile, against reading it with `--profile`."""
    case = open_case(open_paths([str(sample.path)]))
    if any(each.recorder for each in case.recording.exchanges):  # a transcript: nothing to decode again
        for name in PROFILES:
            spoke = case_as_profile(case, name).recording.exchanges
            before = case.recording.exchanges
            assert all(one.response is other.response for one, other in zip(spoke, before, strict=True))
        return
    for name in share(list(PROFILES)[samples().index(sample) % 2 :: 2], samples().index(sample) // 2):
        read = open_case(open_paths([str(sample.path)], profile=name))
        made = case_as_profile(case, name)
        assert [each.stop.normalized for each in made.judgements] == [each.stop.normalized for each in read.judgements]
        assert admissions(made) == admissions(read)
        if [turn.links for turn in read.recording.turns] == [turn.links for turn in case.recording.turns]:
            played = replay(case, Settings(profile=name))
            assert [*map(step_key, replay(read).trace.steps)] == [*map(step_key, played.trace.steps)]


def test_from_a_step_on_what_came_before_stays_as_it_was_read():
    first = pair_of([user("one")], SAID)
    second = pair_of([user("two")], chat("The second", "model_length"))
    original = show(first, second)
    since = original.turns[1].run.first
    made = branch(original, Settings(profile="mistral"), since)
    assert [each.stop.normalized for each in made.view.replay.case.judgements] == [
        Stop.UNKNOWN, Stop.CONTEXT_WINDOW_EXCEEDED]
    assert [facts.judgement.stop.normalized for facts in made.view.responses] == [
        Stop.UNKNOWN, Stop.CONTEXT_WINDOW_EXCEEDED]
    assert made.view.replay.turns[0].steps is original.replay.turns[0].steps
    assert [turn.terminal for turn in made.view.turns] == ["error", "context_window_exceeded"]
    back = branch(made.view, Settings(), 0)
    assert back.view.replay.case is original.replay.case
    assert [*map(step_key, back.view.steps)] == [*map(step_key, original.steps)]
