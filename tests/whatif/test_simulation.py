"""A what-if that simulates: the same recording, budgets that change, and what every report says of it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import pytest

from inspector.config.settings import Settings
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.replay.simulate import tokens_of
from inspector.replay.tokens import TokenBasis, splitter
from inspector.report.explain_document import document
from inspector.report.facts import view
from inspector.report.lines import header, response
from inspector.report.lines.spans import text_of
from inspector.report.lines.steps import Outline
from inspector.report.run_answers import answer_at
from inspector.report.schemas import explain_schema
from inspector.sessions import open_paths
from inspector.sessions.reasons import recorder_word
from inspector.whatif import branch_report
from inspector.whatif.grid import Grid, parse_axes
from inspector.whatif.grid_report import document as document_of
from inspector.whatif.grid_report import text as text_of_grid
from inspector.whatif.grid_run import tune
from inspector.whatif.policies import matrix
from inspector.whatif.smallest import knee, smallest_limits
from inspector.whatif.tree import branch
from loop_core.judge.gate import Admission
from loop_core.turn.limits import Limits
from loop_core.turn.state import ProviderResponse
from loop_core.turn.trace import Fidelity, step_key
from tests.scenes.bodies import llama_responses
from tests.scenes.recordings import ASKS, PARTS, chat, cut_call_ran, cut_text, lines, pair_of, repair_turn, show
from tests.scenes.rows import each_row
from tests.scenes.transcripts import pi, pi_reply, pi_user, text

SAMPLES = sorted((Path(__file__).resolve().parents[2] / "sample_sessions").glob("*.jsonl"))
VALID = jsonschema_rs.validator_for(explain_schema())
AMPLE = Limits(continuation_max_attempts=500, continuation_max_total_completion_tokens=10**6)


def case_of(*exchanges):
    return open_case(open_paths(["-"], stdin=lines(*exchanges)))


def answers(played):
    return [step.event for step in played.trace.steps if isinstance(step.event, ProviderResponse)]


def stream(*pieces, reason="stop", tokens):
    """A chat stream of these pieces."""
    head = {"id": "c", "object": "chat.completion.chunk", "model": "m-1"}
    events = [{**head, "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]}
              for piece in pieces]
    events.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    events.append({**head, "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": tokens}})
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


WORDS = [f"word{number} " for number in range(12)]


@each_row("path", SAMPLES)
def test_with_nothing_changed_a_simulation_is_the_recording(path):
    case = open_case(open_paths([str(path)]))
    plain, simulated = replay(case), replay(case, Settings(simulate=True))
    assert list(map(step_key, plain.trace.steps)) == list(map(step_key, simulated.trace.steps))
    assert simulated.trace.departure is None
    for turn in case.recording.turns:
        asked_for = case.recording.exchanges[turn.links[0].index].request
        again = replay(case, Settings(simulate=True, max_tokens=asked_for.max_tokens))
        own = next(run for run in again.turns if run.record is turn)
        assert {step.fidelity for step in again.trace.steps[own.first : own.end]} == {Fidelity.RECORDED}


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name[:2])
@pytest.mark.parametrize("budget", [1, 9, 40, 700])
def test_every_sample_at_other_budgets_ends_and_runs_no_cut_call(path, budget):
    case = open_case(open_paths([str(path)]))
    played = replay(case, Settings(max_tokens=budget, simulate=True))
    assert [run.record for run in played.turns] == list(case.recording.turns)
    for run in played.turns:
        assert played.trace.steps[run.end - 1].turn.ended
    for step in played.trace.steps:
        if isinstance(step.event,
                      ProviderResponse) and step.event.recut and step.event.judgement.stop.normalized != "tool_call":
            assert all(v.admission is not Admission.READY for v in step.turn.evaluation.verdicts)


def test_a_stream_is_cut_where_its_tokens_end():
    case = case_of(pair_of(ASKS, stream(*WORDS, tokens=13), max_tokens=100, stream=True))
    played = replay(case, Settings(AMPLE, max_tokens=5, simulate=True))
    assert answers(played)[0].response.text == "word0 word1 word2 word3 word4 "
    assert [answer.recut.basis for answer in answers(played)] == ["chunks"] * 3
    ended = played.trace.steps[-1].turn
    assert (ended.terminal, ended.joined_answer().text) == ("completed", "".join(WORDS))
    assert [step.response for step in played.trace.steps if step.response is not None] == []


def test_the_document_of_a_simulated_run_holds_what_it_was_answered():
    """Twelve words of a token each and the end mark, at five tokens: three answers, of 5, 5 and 2 words."""
    case = case_of(pair_of(ASKS, stream(*WORDS, tokens=13), max_tokens=100, stream=True))
    made = json.loads(json.dumps(document(view(replay(case, Settings(AMPLE, max_tokens=5, simulate=True))))))
    VALID.validate(made)
    simulated = made["simulated"]
    # What goes on quotes the last characters first, as it was asked to.
    new = ["".join(WORDS[:5]), "".join(WORDS[5:10]), "".join(WORDS[10:])]
    assert [each["text"].endswith(words) for each, words in zip(simulated, new, strict=True)] == [True] * 3
    assert [each["raw_stop_reason"] for each in simulated] == ["length", "length", "stop"]
    assert [each["simulation"]["budget"] for each in simulated] == [5, 5, 5]
    assert {(each["turn"], each["entry"], each["fidelity"], each["simulation"]["basis"]) for each in simulated} == {
        ("t1", None, "SIMULATED", "chunks")}
    assert [each["step"] for each in simulated] == sorted(each["step"] for each in simulated)
    assert [each["text"] for each in made["responses"]] == ["".join(WORDS)], "what was recorded stays beside it"


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name[:2])
def test_every_document_of_a_simulated_run_is_valid_and_makes_its_merged_text(path):
    case = open_case(open_paths([str(path)]))
    seen = view(replay(case, Settings(max_tokens=9, simulate=True)))
    made = json.loads(json.dumps(document(seen)))
    VALID.validate(made)
    assert len(made.get("simulated", ())) == sum(
        isinstance(step.event, ProviderResponse) and step.event.recut is not None for step in seen.steps)
    assert "simulated" not in document(view(replay(case)))


def test_without_simulation_another_budget_changes_no_answer():
    case = case_of(pair_of(ASKS, stream(*WORDS, tokens=13), max_tokens=100, stream=True))
    assert replay(case, Settings(max_tokens=5)).trace.departure is None


def test_a_raised_budget_merges_what_was_recorded():
    """Five segments of 20 tokens each; at 60 the turn needs two, the second of them the rest."""
    case = case_of(*cut_text(*PARTS, tokens=20, max_tokens=20))
    played = replay(case, Settings(AMPLE, max_tokens=60, simulate=True))
    assert len(answers(played)) == 2
    assert answers(played)[0].response.text == "".join(PARTS[:3])
    assert played.trace.steps[-1].turn.joined_answer().text == "".join(PARTS)
    assert played.turns[0].runs == 1


def test_a_turn_that_the_budget_leaves_alone_stays_recorded():
    case = case_of(pair_of(ASKS, chat("Yes.", tokens=3), max_tokens=50), *cut_text(*PARTS[:2]))
    played = replay(case, Settings(max_tokens=9, simulate=True))
    first, second = played.turns
    assert {step.fidelity for step in played.trace.steps[first.first : first.end]} == {Fidelity.RECORDED}
    assert played.trace.steps[second.end - 1].fidelity is Fidelity.SIMULATED
    assert played.trace.steps[played.trace.departure].event.recut is not None
    assert answers(played)[0].response is case.recording.exchanges[0].response


def test_a_call_that_the_agent_ran_though_it_was_cut_is_not_completed():
    case = case_of(*cut_call_ran())
    for budget in (1, 5, 39, 41, 4_000):
        played = replay(case, Settings(max_tokens=budget, simulate=True))
        assert played.trace.steps[played.turns[0].deciding_step].turn.terminal != "completed"


def test_a_repaired_call_comes_at_once_where_the_budget_allows():
    case = case_of(*repair_turn())
    played = replay(case, Settings(max_tokens=400, simulate=True))
    states = [step.state.value for step in played.trace.steps]
    assert states == ["Request", "EvaluateStop", "ExecuteTools", "Request", "EvaluateStop", "Complete"]
    assert [step.fidelity.value for step in played.trace.steps] == ["RECORDED"] + ["SIMULATED"] * 5


def test_no_budget_completes_a_turn_that_stops_at_a_call_whose_result_was_not_recorded():
    """At 40 tokens the answers stand as they were recorded, and nobody knows how the turn went on."""
    case = case_of(*repair_turn()[:2])
    made = tune(case, Grid(parse_axes(["max_tokens=40,400"]), Settings(simulate=True)), jobs=1)
    ends = [made.turns[0].end(cell) for cell in range(made.grid.size)]
    assert [(end.verdict, end.complete) for end in ends] == [("CALL REPAIRED", False), ("AWAITS RESULT", False)]
    assert [end.fidelity for end in ends] == ["RECORDED", "SIMULATED"]
    assert made.completed == [0, 0]
    seen = matrix(case, Settings(max_tokens=400, simulate=True))
    assert seen.complete(0) == 0
    assert seen.rows[0][0].decision.word == "goes on"


def test_a_branch_changes_nothing_that_another_sees():
    case = case_of(*cut_text(*PARTS))
    before = [step_key(step) for step in replay(case, Settings(max_tokens=3, simulate=True)).trace.steps]
    replay(case, Settings(max_tokens=77, simulate=True))
    assert [step_key(step) for step in replay(case, Settings(max_tokens=3, simulate=True)).trace.steps] == before


# -- what is said ----------------------------------------------------------------------------------------------------


def branch_of(settings, *exchanges):
    return branch(show(*exchanges), settings)


def test_the_comparison_tells_where_the_recording_is_left_and_by_what_tokens_were_cut():
    made = branch_of(Settings(AMPLE, max_tokens=5, simulate=True),
                     pair_of(ASKS, stream(*WORDS, tokens=13), max_tokens=100, stream=True))
    said = branch_report.text(made)
    assert "fidelity: SIMULATED from step 2 (turn 1); what it knows answers everything that was asked\n" in said
    assert "token boundaries: chunks for 3 answers (12 chunks for 13 output tokens)\n" in said
    told = branch_report.values(made)
    assert (told["fidelity"], told["first_simulated"], told["token_boundaries"]) == ("SIMULATED", 2, ["chunks"])
    assert told["turns"][0]["fidelity"] == "SIMULATED"


def test_the_comparison_of_a_recorded_run_says_so():
    made = branch_of(Settings(Limits(continuation_max_attempts=1), simulate=True), *cut_text(*PARTS))
    assert "fidelity: RECORDED; the recording answers everything" in branch_report.text(made)
    assert "to go on" not in branch_report.text(made)
    told = branch_report.values(made)
    assert (told["fidelity"], told["first_simulated"], told["token_boundaries"]) == ("RECORDED", None, [])


def test_an_estimate_is_said_to_be_one():
    made = branch_of(Settings(max_tokens=3, simulate=True), pair_of(ASKS, chat("a" * 40, tokens=10), max_tokens=50))
    assert "token boundaries: estimate for" in branch_report.text(made)
    assert "10 tokens spread over 40 characters" in branch_report.text(made)


def test_what_is_not_known_is_said_to_be_unrecorded():
    made = branch_of(Settings(max_tokens=900, simulate=True), pair_of(ASKS, chat("a" * 40, "length", tokens=10),
                                                                 max_tokens=10))
    assert "(turn 1) was never recorded\nto go on: --live asks the prov" in branch_report.text(made)


def test_a_step_whose_cut_is_not_known_to_the_character_says_estimated():
    """Five chunks, six tokens: `é` is two of them, or the end mark is one; 3 tokens end before or behind ` b`."""
    seen = show(pair_of(ASKS, stream("a", "é", " b", " c", " d", tokens=6), max_tokens=100, stream=True),
                 settings=Settings(AMPLE, max_tokens=3, simulate=True))
    at = next(index for index, step in enumerate(seen.steps) if isinstance(step.event, ProviderResponse))
    assert seen.steps[at].event.recut.apart == (2, 4)
    assert "SIMULATED ESTIMATED" in text_of(header.status(Outline(seen), at, 160))
    told = "\n".join(text_of(line) for line in response.simulation_lines(answer_at(seen, at)))
    assert "cut after 2 to 4 characters" in told
    made = branch_of(Settings(AMPLE, max_tokens=3, simulate=True),
                     pair_of(ASKS, stream("a", "é", " b", " c", " d", tokens=6), max_tokens=100, stream=True))
    assert branch_report.values(made)["estimated"][0] == {"step": at + 1, "least": 2, "most": 4}
    assert "at step 2 cut after 2 to 4 characters" in branch_report.text(made)


def test_a_step_whose_cut_is_exact_does_not():
    seen = show(pair_of(ASKS, stream(*WORDS, tokens=13), max_tokens=100, stream=True),
                 settings=Settings(AMPLE, max_tokens=5, simulate=True))
    assert [step.estimated_cut for step in seen.steps] == [None] * len(seen.steps)
    made = branch_of(Settings(AMPLE, max_tokens=5, simulate=True),
                     pair_of(ASKS, stream(*WORDS, tokens=13), max_tokens=100, stream=True))
    assert branch_report.values(made)["estimated"] == []
    assert "ESTIMATED" not in branch_report.text(made)


# -- tokenizers ------------------------------------------------------------------------------------------------------


def test_a_tokenizer_is_for_the_models_of_its_family_alone():
    for model in (None, "", "claude-sonnet-4-5", "gemini-2.5-pro", "smollm2", "my-gpt-4o", "o", "omni"):
        assert splitter(model) is None


def test_a_tokenizer_cuts_what_chunks_do_not():
    pytest.importorskip("bpe_openai", reason="the extra `tokens` is not installed")
    for model in ("gpt-4o-mini", "gpt-4-0613", "gpt-3.5-turbo", "o3-mini", "gpt-5-mini-2025-08-07", "openai/gpt-4.1"):
        cut = splitter(model)
        assert cut is not None
        assert cut("hello world") == ["hello", " world"]
    cut = splitter("gpt-4o")
    assert "".join(cut("naïve 😀 <|endoftext|>\n" * 9_000)) == "naïve 😀 <|endoftext|>\n" * 9_000
    body = chat("hello world", tokens=2)
    body["model"] = "gpt-4o"
    told = tokens_of(case_of(pair_of(ASKS, body, max_tokens=50)).recording.exchanges[0])
    assert (told.basis, [list(each.ends) for each in told.stretches]) == (TokenBasis.TOKENIZER, [[5, 11]])


# -- a server that calls a cut answer finished -----------------------------------------------------------------------


def test_what_is_known_of_a_server_goes_before_the_formats_word():
    """12 words and the end mark under a cap of 100: nothing in the recording shows what this server says at a cap."""
    case = case_of(llama_responses(12, 13, 100))
    seen = answers(replay(case, Settings(AMPLE, max_tokens=5, simulate=True)))
    assert [(each.response.text, each.response.stop_reason.raw) for each in seen] == [
        ("".join(WORDS[:5]), "completed"), ("".join(WORDS[5:10]), "completed"), ("".join(WORDS[10:]), "completed")]
    assert not any(each.cut_unseen for each in seen), "the judge knows this server's word too"
    case = case_of(llama_responses(12, 13, 100, thought=1))
    played = replay(case, Settings(AMPLE, max_tokens=5, simulate=True, profile="mistral_rs"))
    first = answers(played)[0]
    assert (first.response.text, first.response.stop_reason.raw) == ("".join(WORDS[:5]), "completed")
    assert first.cut_unseen
    assert [step.event for step in played.trace.steps if isinstance(step.event, ProviderResponse)] == [first]


def test_an_answer_that_the_server_is_known_to_have_cut_has_no_known_rest():
    """12 of 12 tokens under `completed`, from a server that says so over a cut: what follows was never recorded."""
    case = case_of(llama_responses(12, 12, 12))
    assert replay(case, Settings(AMPLE, max_tokens=12, simulate=True)).trace.departure is None
    raised = replay(case, Settings(AMPLE, max_tokens=40, simulate=True)).trace.steps[-1].turn
    assert raised.state.value == "Unrecorded"


def test_no_budget_that_cuts_an_answer_is_enough_whatever_the_server_says():
    case = case_of(llama_responses(12, 13, 100, thought=1))
    unseen = Settings(simulate=True, profile="mistral_rs")
    tuned = tune(case, Grid(parse_axes(["attempts=0", "max_tokens=2,5,64"]), unseen))
    assert [tuned.turns[0].end(cell).complete for cell in range(3)] == [False, False, True]
    assert [tuned.turns[0].end(cell).verdict for cell in range(3)] == ["CUT UNSEEN", "CUT UNSEEN", "COMPLETE"]
    assert smallest_limits(tuned, 0).edge.budget == 13
    assert document_of(tuned)["turns"][0]["ends"][0]["cut_unseen"] is True
    few = tune(case, Grid(parse_axes(["attempts=0", "max_tokens=2,5"]), unseen))
    assert knee(few) is None
    told = text_of_grid(few)
    assert "cut unseen" in told
    assert "the grid's largest max_tokens cuts it, and the server calls the cut answer finished" in " ".join(
        told.split())


# -- transcripts, in which the provider's words do not stand ---------------------------------------------------------


def recorders_words(last="stop", cut="length"):
    """A transcript: an answer cut at 40 tokens and gone on with for 6."""
    return pi(pi_user("Name what grows."), pi_reply(text("Beans and peas, and by the wall the "), stop=cut, tokens=40),
              pi_user("continue"), pi_reply(text("old quince."), stop=last, tokens=6))


def tuned_transcript(tmp_path, content, *specs):
    path = tmp_path / "s.jsonl"
    path.write_text(content)
    return tune(open_case(open_paths([str(path)])), Grid(parse_axes(specs), Settings(simulate=True)), jobs=1)


def test_an_answer_whose_end_only_the_recorder_tells_completes_under_any_budget_that_holds_it(tmp_path):
    """The provider's word is not in the file, and the simulated bytes need one: the format's own stands for it."""
    made = tuned_transcript(tmp_path, recorders_words(), "attempts=0,1", "max_tokens=40,46,500")
    ends = [made.turns[0].end(cell) for cell in range(made.grid.size)]
    assert [(end.complete, end.spend.output_tokens) for end in ends] == [
        (False, 40), (True, 46), (True, 46), (True, 46), (True, 46), (True, 46)]
    case = open_case(open_paths([str(tmp_path / "s.jsonl")]))
    answer = answers(replay(case, Settings(simulate=True, max_tokens=500)))[0]
    stop = answer.response.stop_reason
    assert (stop.raw, recorder_word(stop), stop.evidence[0].at) == (None, "stop", None)
    assert stop.evidence[-1].note.endswith("; the provider's word was not recorded, and 'stop' stands for it")


def test_an_end_that_is_only_inferred_is_no_surer_when_it_is_simulated(tmp_path):
    """No row says how the last answer ended: the next row of the operator shows it, and the verdict says so."""
    content = recorders_words(last=None).rstrip("\n") + "\n" + json.dumps(
        {"id": "e9", "parentId": "e4", "timestamp": "2026-05-12T01:03:00.000Z", **pi_user("Thanks.")}) + "\n"
    made = tuned_transcript(tmp_path, content, "attempts=1", "max_tokens=40,46,500")
    assert [(end.verdict, end.complete) for end in map(made.turns[0].end, range(3))] == [("END INFERRED", False)] * 3


@pytest.mark.parametrize("last", ["error", "aborted", "something new"])
def test_an_end_of_which_the_recorder_says_otherwise_completes_under_no_budget(tmp_path, last):
    made = tuned_transcript(tmp_path, recorders_words(last), "attempts=1", "max_tokens=40,46,500")
    assert not any(end.complete for end in made.turns[0].ends)
