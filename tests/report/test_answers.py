"""Simulated answers in every view: their own bytes, their own verdict, and the recorded ones as they were."""

import json
from pathlib import Path

import pytest

from inspector.config.settings import Settings
from inspector.replay import replay
from inspector.replay.case import has_unrecorded_answer, open_case
from inspector.report.facts import View, view
from inspector.report.lines import calls, response, wire
from inspector.report.lines.merged import merged_sheet
from inspector.report.lines.spans import LineSheet, text_of
from inspector.report.lines.steps import Outline
from inspector.report.run_answers import answer_at, answering_step, answers_of
from inspector.sessions import open_paths
from inspector.tui.key_words import TABS
from inspector.tui.sheets import Sheets, Viewpoint
from loop_core.turn.limits import Limits
from loop_core.turn.state import ProviderResponse
from loop_core.wire import decode
from tests.scenes.recordings import ASKS, PARTS, chat, cut_call_ran, cut_text, pair_of, repair_turn, show
from tests.scenes.rows import each_row, share

SAMPLES = sorted((Path(__file__).resolve().parents[2] / "sample_sessions").glob("*.jsonl"))
AMPLE = Limits(continuation_max_attempts=50, continuation_max_total_completion_tokens=10**6)


def simulation(budget: int, *exchanges: dict, limits: Limits = AMPLE) -> View:
    return show(*exchanges, settings=Settings(limits, max_tokens=budget, simulate=True))


def said_by(sheet: LineSheet) -> str:
    return "\n".join(text_of(sheet.line(index)) for index in range(len(sheet)))


def test_a_simulated_answer_is_shown_with_the_bytes_that_it_was_decoded_from():
    seen = simulation(5, pair_of(ASKS, chat("a" * 40, tokens=10), max_tokens=50))
    facts = answer_at(seen, 1)
    assert facts is not None
    event = seen.steps[1].event
    assert isinstance(event, ProviderResponse)
    assert event.recut is not None
    assert facts.exchange.body == event.recut.body
    assert json.loads(facts.exchange.body)["choices"][0]["message"]["content"] == "a" * 20
    assert decode("openai_chat", facts.exchange.body).text == facts.exchange.response.text
    assert (facts.name, facts.step) == ("SIMULATED response of step 2", 1)
    assert facts.exchange.request is not None
    assert facts.exchange.request.max_tokens == 5


def test_every_step_of_a_run_stands_under_the_answer_that_came_last():
    seen = simulation(6, pair_of(ASKS, chat("a" * 40, tokens=10), max_tokens=50))
    came = [index for index, step in enumerate(seen.steps) if isinstance(step.event, ProviderResponse)]
    assert len(came) == 2
    for index in range(len(seen.steps)):
        before = [at for at in came if at <= index]
        assert answering_step(seen, index) == (before[-1] if before else None)
    assert [at for at, _ in answers_of(seen, 0, len(seen.steps))] == came
    assert has_unrecorded_answer(seen.steps[-1].turn)


def test_response_wire_and_calls_show_a_simulated_answer_loudly():
    seen = simulation(5, *cut_call_ran())
    facts = answer_at(seen, 1)
    assert facts is not None
    told = said_by(response.response(seen, facts))
    for wanted in ("SIMULATED response of step 2", "the known output cut again: 5 tokens under max_tokens 5",
                   "boundaries     estimate: ", "never saw this answer: it is in no recording"):
        assert wanted in told, wanted
    assert "awaited" not in told
    body = facts.exchange.body.decode()
    for mode in ("events", "raw"):
        shown_bytes = said_by(wire.wire(facts, mode))
        assert "SIMULATED response of step 2" in shown_bytes
        assert '"finish_reason":"length"' in shown_bytes.replace(" ", "")
    assert wire.wire(facts, "raw").copy_text() == body
    asked_for = said_by(wire.wire(facts, "request"))
    assert "SIMULATED: what this loop sends, max_tokens 5, 1 message" in asked_for
    assert "user write the plan" in asked_for
    held = said_by(calls.calls(seen, Outline(seen).blocks[0], facts))
    assert "SIMULATED response of step 2" in held
    assert "HELD write_file" in held


def test_the_merged_text_of_a_simulation_names_where_each_segment_came_from():
    seen = simulation(6, *cut_text(*PARTS[:2], tokens=10, max_tokens=10))
    block = Outline(seen).blocks[0]
    sheet = merged_sheet(seen, block, block.end - 1)
    told = said_by(sheet)
    assert sheet.copy_text() == "".join(PARTS[:2])
    assert 'segment 1 · 6 tokens · "length" → max_tokens · SIMULATED response of step 2' in told
    assert told.count("SIMULATED response of step") == len(seen.turns[0].final_turn.answers[-1])


def test_answers_that_stand_as_recorded_keep_their_names():
    seen = simulation(9, pair_of(ASKS, chat("Yes.", tokens=3), max_tokens=50), *cut_text(*PARTS[:2]))
    first = answer_at(seen, 1)
    assert first is seen.responses[0]
    assert first.name == "response 1"


# -- the verdict -----------------------------------------------------------------------------------------------------


def test_a_branch_that_was_simulated_is_judged_by_its_own_end():
    whole = pair_of(ASKS, chat("The quick brown fox jumps over lazy dogs", tokens=10), max_tokens=50)
    assert show(whole).headline().startswith("COMPLETE  turn 1 of 1 · openai_chat (openai) ended with")
    limits = Limits(continuation_max_attempts=1)
    seen = simulation(2, whole, limits=limits)
    verdict = seen.turns[0].verdict
    assert verdict.word == "LIMIT REACHED"
    assert verdict.sentence == (
        "SIMULATED: this loop's limit continuation_max_attempts (1 of 1) ended the turn: openai_chat (openai) was cut "
        '2 times ("length", 2 of 2 tokens)')
    # Ten tokens in pieces of two are five answers: the first, and four continuations.
    assert verdict.advice.text == (
        "raise continuation_max_attempts to 4: a simulation then completes the turn, which is a guess")
    assert verdict.advice.set == {"continuation_max_attempts": "4"}
    done = simulation(6, whole).turns[0].verdict
    assert done.word == "CUT, COMPLETED"
    assert done.sentence == 'SIMULATED: openai_chat (openai) was cut and completed ("length", 6 of 6 tokens)'


def test_a_call_that_comes_whole_in_the_branch_is_no_cut_call_of_the_branch():
    assert show(*repair_turn()).turns[0].verdict.word == "CALL REPAIRED"
    seen = simulation(400, *repair_turn())
    assert seen.turns[0].verdict.word == "COMPLETE"
    assert seen.turns[0].verdict.sentence.startswith("SIMULATED: ")


def test_what_the_recorded_agent_ran_is_not_held_against_the_branch():
    assert show(*cut_call_ran()).turns[0].verdict.word == "CUT CALL RUN"
    verdict = simulation(5, *cut_call_ran()).turns[0].verdict
    assert verdict.word == "CALL HELD"
    assert "agent" not in verdict.sentence


def test_a_branch_that_asks_for_what_was_never_recorded_says_so():
    seen = simulation(5, pair_of(ASKS, chat("a" * 40, "length", tokens=10), max_tokens=10))
    assert seen.turns[0].final_turn.outcome == "Unrecorded"
    assert seen.turns[0].verdict.sentence.endswith("; what it asks for next was never recorded")


@each_row("path", SAMPLES)
def test_a_simulation_that_changes_nothing_is_judged_as_the_recording(path):
    case = open_case(open_paths([str(path)]))
    plain, again = view(replay(case)), view(replay(case, Settings(simulate=True)))
    assert [turn.verdict for turn in again.turns] == [turn.verdict for turn in plain.turns]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name[:2])
@pytest.mark.parametrize("budget", [1, 40, 700])
def test_every_view_of_every_sample_at_other_budgets(path, budget):
    case = open_case(open_paths([str(path)]))
    seen = view(replay(case, Settings(max_tokens=budget, simulate=True)))
    outline, sheets = Outline(seen), Sheets()
    assert seen.headline()
    shown = [*((tab.name, (*tab.forms, "")[0]) for tab in TABS[:-1]), ("diff", "request")]
    for step in range(len(seen.steps)):
        for tab, form in share(shown[step % 2 :: 2] if 1 < step < len(seen.steps) - 2 else shown, step // 2):
            sheet = sheets.at(Viewpoint(tab, outline, step, form))
            assert len(sheet)
            assert sheet.height(len(sheet) - 1, 70) == len(sheet.rows(len(sheet) - 1, 70))
