"""The smallest max_tokens that completes a turn, beside the fewest output tokens, and why it may be believed."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from inspector.config.settings import INITIAL
from inspector.report.lines.spans import plain, text_of
from inspector.report.verdict import ROWS
from inspector.whatif import smallest as searches
from inspector.whatif import smallest_cap as cap_searches
from inspector.whatif.grid import Axis, Grid
from inspector.whatif.grid_lines import failure_words, headline, smallest_lines, turn_headline
from inspector.whatif.grid_report import as_csv, document
from inspector.whatif.grid_report import text as report
from inspector.whatif.grid_run import TunedGrid, tune
from inspector.whatif.heat import WHOLE_SO_FAR, end_word, mark_of
from inspector.whatif.smallest import ESTIMATED, cost, knee, smallest_limits
from inspector.whatif.smallest_cap import (
    best_value,
    fewest_tokens,
    fewest_tokens_of_all,
    recorded_cap,
    smallest_cap,
    smallest_cap_of_all,
    whole_cap,
)
from loop_core.turn.state import State
from tests.scenes.recordings import ASKS, CUT, HINT, TOOLS, WHOLE, assistant, call, chat, lines, pair_of, user
from tests.scenes.rows import each_row
from tests.whatif.test_edge import grid, turns_of
from tests.whatif.test_simulation import WORDS, case_of, stream
from tests.whatif.test_smallest import end
from tests.whatif.test_sweep import brute, stories, story


def cut_once(*budgets: int | None, attempts: tuple[int, ...] = (0, 1, 2, 5)) -> TunedGrid:
    """Twelve words of a token each and the end mark, recorded with max_tokens 8: 8 tokens, then 5."""
    case = case_of(
        pair_of(ASKS, stream(*WORDS[:8], reason="length", tokens=8), max_tokens=8, stream=True),
        pair_of([*ASKS, assistant("".join(WORDS[:8])), user(HINT)], stream(*WORDS[8:12], tokens=5), max_tokens=8,
              stream=True))
    return tune(case, grid(*budgets, attempts=attempts), jobs=1)


def smallest_text(tuned: TunedGrid, turn: int = 0) -> str:
    found = smallest_limits(tuned, turn)
    assert found is not None
    return " ".join(plain(list(smallest_lines(tuned, found))).split())


def test_both_answers_stand_beside_each_other_with_why_each_may_be_believed():
    """With 5 continuations 3 tokens each are enough for 13 in 5 answers; with 2 each, 6 answers hold 12."""
    tuned = cut_once(2, 4, 8, 64)
    cap = smallest_cap(tuned, 0)
    assert cap.values == (5, 3)
    assert (cap.ends[0].spend.requests, cap.ends[0].spend.continuations) == (5, 4)
    assert [end.complete for end in cap.below] == [False]
    told = smallest_text(tuned)
    assert told.startswith("turn 1 ✓ smallest max_tokens 3 with up to 5 continuations 5 answers (4 "
                           "continuations), 13 output tokens; a guess (SIMULATED): made up from the recorded text; no "
                           "model was asked")
    assert "one less, 2 with up to 5 continuations, fails: the limit attempts stops it after 6 answers (5 " in told
    assert "from the recording, the smallest tried is 8 with up to 1 continuation: 2 answers (1 continuation), " in told
    assert "fewest output tokens with max_tokens 13 and no continuations 1 answer, 13 output tokens; a guess" in told
    line = text_of(turn_headline(tuned, smallest_limits(tuned, 0)))
    assert line.startswith("COMPLETES  smallest max_tokens 3 with up to 5 continuations (in column 4): 5 answers, a "
                           "guess (from the recording 8 with up to 1 continuation) · fewest output tokens 13 with "
                           "max_tokens 13 and no continuations")


def test_what_was_recorded_is_no_guess():
    tuned = cut_once(8, attempts=(1,))
    assert smallest_cap(tuned, 0).values == (1, 7), "13 tokens in two answers"
    told = smallest_text(cut_once(7, 8, attempts=(0, 1)))
    assert "a guess" in told
    whole = tune(case_of(pair_of(ASKS, stream(*WORDS, tokens=13), max_tokens=100, stream=True)),
                 grid(64, attempts=(0,)))
    assert recorded_cap(whole, 0)[0] == 0
    told = smallest_text(whole)
    assert "each of these answers was recorded" in told
    assert "a guess" not in told


def test_a_turn_that_only_simulated_answers_complete_says_so():
    told = smallest_text(cut_once(4, attempts=(5,)))
    assert "from the recording alone, none completes it" in told


@each_row(("more", "said"), [
    ({"limit": "continuation_max_attempts"}, "fails: the limit attempts stops it after"),
    ({"state": State.UNRECORDED}, "is not known: what it would ask for next was never recorded"),
    ({"state": State.COMPLETE, "cut_unseen": True}, "fails: the server calls the cut answer finished after"),
    ({"state": State.COMPLETE, "verdict": "MAYBE CUT"}, "fails: its verdict is MAYBE CUT after"),
    ({"terminal": "interrupted"}, "fails: it ends as interrupted after"),
])
def test_why_a_budget_fails(more, said):
    assert failure_words(replace(end(5, False), **{"limit": "", **more})).startswith(said)


def test_no_max_tokens_is_named_where_it_is_not_varied_or_changes_nothing():
    case = case_of(pair_of(ASKS, stream(*WORDS, tokens=13), max_tokens=100, stream=True))
    for made in (Grid((Axis("continuation_max_attempts", (0, 3)),)), grid(4, 64, simulate=False)):
        tuned = tune(case, made, jobs=1)
        assert smallest_cap(tuned, 0) is None
        assert smallest_cap_of_all(tuned) is None
        assert "smallest max_tokens" not in smallest_text(tuned)
        assert "smallest max_tokens" not in text_of(headline(tuned))
    tuned = tune(case, grid(4, attempts=(0,)))
    assert smallest_cap(tuned, 0) is smallest_cap_of_all(tuned) is fewest_tokens_of_all(tuned) is None, "none completes"


def test_the_smallest_for_all_turns_completes_as_many_as_any():
    """7, 21 and 13 tokens: with two answers of 11 each all of them are whole."""
    tuned = tune(turns_of(6, 20, 12), grid(4, 64, attempts=(0, 1)), jobs=1)
    cap = smallest_cap_of_all(tuned)
    assert cap.values == (1, 11)
    assert [end.complete for end in cap.ends] == [True] * 3
    assert [end.complete for end in cap.below] == [True, False, True]
    assert text_of(headline(tuned)).startswith(
        "3 OF 3 CAN COMPLETE  smallest max_tokens 11 with up to 1 continuation (in column 64): a guess · fewest output "
        "tokens 41")


def test_a_budget_between_two_columns_that_costs_less_than_every_cell_is_the_fewest_too():
    """24 characters of 32 tokens, and an empty rest: with 8 tokens a request it costs as many as one answer or more."""
    first = "Sentence 0 stands here. "
    case = case_of(pair_of(ASKS, chat(first, "length", tokens=32)),
                   pair_of([*ASKS, assistant(first), user(HINT)], chat(None, "stop", tokens=32)))
    tuned = tune(case, grid(8), jobs=1)
    found, cap = smallest_limits(tuned, 0), smallest_cap(tuned, 0)
    assert cost(cap.ends)[0] < cost(found.edge.ends)[0]
    spent = f"{cost(cap.ends)[0]:,}"
    for line in (turn_headline(tuned, found), headline(tuned)):
        assert f"fewest output tokens {spent} " in text_of(line)
        assert f"max_tokens {cap.values[1]} and" in text_of(line)
    assert f"fewest output tokens with max_tokens {cap.values[1]} and up to 9 continuations" in smallest_text(tuned)
    assert fewest_tokens_of_all(tuned) is fewest_tokens_of_all(tuned), "it is searched once"
    assert report(tuned, paths=["p"]).count(f"--set max_tokens={cap.values[1]} ") == 2, "both commands name it"
    told = document(tuned)
    assert told["turns"][0]["smallest"]["limits"][INITIAL] == told["enough"]["edge"][INITIAL] == cap.values[1]
    assert told["turns"][0]["smallest"]["cell"] == told["enough"]["cell"] == told["knee"]["cell"] == cap.cell
    assert told["turns"][0]["smallest"]["grain"] == told["enough"]["edge"]["grain"] == ESTIMATED
    assert told["enough"]["edge"]["output_tokens"] == told["knee"]["output_tokens"] == cost(cap.ends)[0]
    (row,) = [row for row in csv.DictReader(io.StringIO(as_csv(tuned))) if row["smallest_max_tokens"]]
    assert row["smallest_max_tokens"] == row["fewest_max_tokens"] == row["enough_max_tokens"] == str(cap.values[1])


@pytest.mark.parametrize("module", [searches, cap_searches])
def test_each_search_is_made_once_for_a_report_and_its_exports(monkeypatch, module):
    tuned, made, search = tune(turns_of(6, 20, 12), grid(4, 64), jobs=1), [], module.smallest_value
    monkeypatch.setattr(module, "smallest_value", lambda *given: made.append(given) or search(*given))
    report(tuned, paths=["p"])
    document(tuned)
    as_csv(tuned)
    assert len(made) == 4, "three turns, and all of them"


def test_a_call_that_comes_whole_but_has_no_result_is_named_and_not_called_complete():
    case = case_of(pair_of(ASKS, chat(None, "tool_calls", call(WHOLE), tokens=20), tools=TOOLS, max_tokens=40))
    tuned = tune(case, grid(4, 64, attempts=(0,)), jobs=1)
    whole, found = whole_cap(tuned, 0), smallest_limits(tuned, 0)
    (budget,) = whole.values[1:]
    assert 4 < budget < 64
    verdict = whole.ends[0].verdict
    assert verdict in WHOLE_SO_FAR
    assert whole.below[0].verdict not in WHOLE_SO_FAR
    assert not whole.ends[0].complete
    assert smallest_cap(tuned, 0) is None
    told = (f"▷ {verdict}, not complete: its call is complete with the smallest max_tokens {budget} with no "
            "continuations")
    assert told in smallest_text(tuned)
    shown = " ".join(report(tuned).split())
    assert "▷ awaits" in shown or "▷ so far" in shown
    assert "∅ awaits" not in shown
    assert "▷ awaits a result ∅ the recording ends first" in shown
    assert "no cell completes its call" not in smallest_text(tune(case, grid(4, 64, simulate=False), jobs=1))
    for line in (turn_headline(tuned, found), headline(tuned)):
        assert "COMPLETES  " not in text_of(line)
        assert f"; its call is complete with max_tokens {budget} and no continuations (in column 64)" in text_of(line)


def test_a_call_of_which_the_rest_was_never_recorded_comes_whole_with_no_budget():
    case = case_of(pair_of(ASKS, chat(None, "length", call(CUT), tokens=20), tools=TOOLS, max_tokens=20))
    tuned = tune(case, grid(4, 64), jobs=1)
    assert whole_cap(tuned, 0) is None
    assert "comes whole" not in smallest_text(tuned)
    assert "no cell completes its call: only a live run can show what would be enough" in smallest_text(tuned)


@pytest.mark.parametrize(("verdict", "word_of"), [("COMPLETE SO FAR", "so far"), ("AWAITS RESULT", "awaits")])
def test_a_whole_call_without_a_result_has_a_word_of_its_own_in_its_cell(verdict, word_of):
    waits = replace(end(5, False), state=State.UNRECORDED, limit="", verdict=verdict)
    assert end_word(waits) == word_of
    assert mark_of(waits)[0] == next(row.glyph for row in ROWS if row.word == verdict) == "▷"


def test_what_the_tokens_of_all_turns_count_is_said_where_not_all_complete():
    told = " ".join(report(tune(turns_of(6, 20, 12), grid(8, attempts=(0, 1)), jobs=1)).split())
    assert "2 of 3 complete" in told
    assert "turns that do not complete count too, with what they spend until they stop" in told
    assert "turns that do not complete" not in report(tune(turns_of(6, 20, 12), grid(64, attempts=(0,)), jobs=1))


@hypothesis_settings(max_examples=25, deadline=None)
@given(stories, st.sets(st.integers(1, 150), min_size=1, max_size=3))
@example(story(["cut text", "nothing"], 100, [None], False), {10})
def test_it_completes_the_turn_and_one_token_less_does_not(exchanges, budgets):
    case = case_of(*exchanges)
    tuned = tune(case, grid(*sorted(budgets)), jobs=1)
    bend = knee(tuned)
    if bend is not None:
        best, cap = fewest_tokens_of_all(tuned), smallest_cap_of_all(tuned)
        named = [best.tokens, bend.enough.tokens, cost(bend.edge.ends)[0], cost(cap.ends)[0]]
        assert min(named) == best.tokens, "nothing that the report names is cheaper"
        value = best_value(tuned)
        assert value is None or value.tokens < best.tokens
        told = document(tuned)
        # Without a knee it is the cell that is enough, with what that cell spends; a budget below it is its `edge`.
        knee_tokens = told["enough"]["output_tokens"] if value is None else value.tokens
        assert told["knee"]["output_tokens"] == knee_tokens
        assert (told["enough"]["edge"] or told["enough"])["output_tokens"] == best.tokens
        assert told["enough"]["cell"] == best.cell
    for number in range(len(case.recording.turns)):
        cap = smallest_cap(tuned, number)
        if cap is not None:
            best = fewest_tokens(tuned, number)
            assert cost(best.ends) <= cost(cap.ends)
        if cap is None:
            continue
        own = brute(case, tuned.grid.settings_with(dict(zip(tuned.grid.names, cap.values, strict=True))))[number]
        assert own.complete
        if cap.below:
            values = dict(zip(tuned.grid.names, cap.below_values, strict=True))
            assert values[INITIAL] == cap.values[-1] - 1
            assert not brute(case, tuned.grid.settings_with(values))[number].complete
        smaller = [value for value in budgets if value < cap.values[-1]]
        cells = [tuned.grid.cell((attempts, value)) for attempts in (0, 9) for value in smaller]
        assert not any(tuned.turns[number].end(cell).complete for cell in cells), "no smaller one of the grid does"


def test_text_and_json_say_both_and_how_to_run_them(tmp_path, inspector):
    path = tmp_path / "one.jsonl"
    path.write_bytes(lines(pair_of(ASKS, stream(*WORDS, tokens=13), max_tokens=100, stream=True)))
    axes = ("--grid", "attempts=0,1", "--grid", "max_tokens=4,64")
    told = inspector("tune", str(path), *axes).out
    assert told.splitlines()[-4:] == [
        "smallest max_tokens:",
        f"inspector replay {path} --set continuation_max_attempts=1 --set max_tokens=7 --simulate",
        "fewest output tokens:",
        f"inspector replay {path} --set continuation_max_attempts=0 --set max_tokens=13 --simulate"]
    found = json.loads(inspector("tune", str(path), *axes, "--json").out)
    assert found["smallest_max_tokens"] == found["turns"][0]["smallest_max_tokens"] == {
        "cell": 3, "values": [1, 7], "completed": 1, "output_tokens": 13, "requests": 2, "continuations": 1,
        "simulated": 1, "below": {"values": [1, 6], "completed": 0, "output_tokens": 12, "requests": 2}}
