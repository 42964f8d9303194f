"""The policy matrix: what each loop did with each turn, against what the documents of those loops tell."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from inspector.cli import main
from inspector.config.settings import Settings, settings_of
from inspector.replay import replay
from inspector.replay.case import Case, open_case
from inspector.report.explain import text as explained
from inspector.report.facts import view
from inspector.report.lines.calls import Fate, Opinion, opinions_of, stances
from inspector.report.lines.spans import Tone, cells, plain, text_of
from inspector.sessions import open_paths
from inspector.whatif import policies_lines
from inspector.whatif.grid import Grid, parse_axes
from inspector.whatif.grid_run import tune
from inspector.whatif.policies import DECISIONS, Decision, Matrix, matrix
from inspector.whatif.policies_lines import step_at
from inspector.whatif.tree import branch
from loop_core.turn.continuation import SeamRule
from loop_core.turn.limits import Limits
from loop_core.turn.presets import BOTNEXUS, PI_PRESENCE, POLICIES
from loop_core.turn.trace import Fidelity, Trace, step_key
from tests.scenes.recordings import (
    CHAT,
    CUT,
    HINT,
    MESSAGES,
    WHOLE,
    assistant,
    call,
    chat,
    cut_stream,
    exchange,
    lines,
    pair_of,
    result,
    user,
)
from tests.scenes.rows import each_row

SAMPLES = Path(__file__).parents[2] / "sample_sessions"
NAMES = ("strict", "zeroclaw-rfi", "zeroclaw-merged", "zoo-before", "zoo-after", "pi-presence", "botnexus")


def case_of(*exchanges: dict[str, Any]) -> Case:
    return open_case(open_paths(["-"], stdin=lines(*exchanges)))


def sample(number: str) -> Case:
    return open_case(open_paths([str(next(SAMPLES.glob(f"{number}-*")))]))


def decision_words(made: Matrix, turn: int = 0) -> dict[str, str]:
    return {policy.name: cell.decision.word for policy, cell in zip(made.policies, made.rows[turn], strict=True)}


CUT_RUN, LOST, HELD, STUCK, GOES_ON, ENDED, MISSED = (
    "ran a cut call", "lost text", "held", "stuck", "goes on", "gave up with a notice", "ignored the stop reason")
FAILED = "request failed"
EXPECTED: dict[str, tuple[str, str, str, str, str, str, str]] = {
    # a sample session -> what each loop did with its last turn, in the order of NAMES; read off the documents
    "01": (HELD, HELD, HELD, STUCK, CUT_RUN, CUT_RUN, HELD),
    "02": ("continued", "continued", "continued", LOST, LOST, LOST, LOST),
    "03": ("stopped at a limit", "stopped at a limit", "stopped at a limit", LOST, LOST, LOST, LOST),
    "04": ("stopped at a limit", "stopped at a limit", GOES_ON, LOST, LOST, LOST, LOST),
    "05": ("repaired", "repaired", HELD, STUCK, CUT_RUN, CUT_RUN, HELD),
    "06": (HELD, HELD, HELD, STUCK, CUT_RUN, CUT_RUN, HELD),
    # the MiMo stream: BotNexus PR 1676 promotes a missing reason with calls, so that its gate opens here
    "07": (HELD, HELD, HELD, STUCK, CUT_RUN, CUT_RUN, CUT_RUN),
    # tool_calls over a cut call: whoever goes by the word runs it
    "08": (HELD, HELD, HELD, CUT_RUN, CUT_RUN, CUT_RUN, CUT_RUN),
    # one whole call under length runs where whole calls run; so does the whole object of session 10
    "09": (HELD, HELD, CUT_RUN, STUCK, CUT_RUN, CUT_RUN, HELD),
    "10": (HELD, HELD, CUT_RUN, STUCK, CUT_RUN, CUT_RUN, HELD),
    "11": (ENDED, ENDED, LOST, LOST, LOST, ENDED, LOST),
    "12": (ENDED, ENDED, MISSED, MISSED, MISSED, ENDED, ENDED),
    "13": ("finished", ENDED, LOST, LOST, LOST, LOST, LOST),
    "14": (HELD, HELD, HELD, STUCK, CUT_RUN, CUT_RUN, HELD),
    "15": ("repaired", ENDED, MISSED, MISSED, MISSED, MISSED, MISSED),
    "16": (GOES_ON, LOST, LOST, LOST, LOST, LOST, LOST),
    "17": (GOES_ON, GOES_ON, GOES_ON, LOST, LOST, LOST, LOST),
}


def test_programs_read_the_words_that_they_know() -> None:
    assert {row.word: row.id for row in DECISIONS if row.word != row.id} == {
        ENDED: "ended with a notice", MISSED: "missed the reason"}
    made = policies_lines.values(matrix(sample("12"), Settings()))
    assert {each["decision"] for each in made["turns"][0]["decisions"]} == {"ended with a notice", "missed the reason"}


@each_row("number", EXPECTED)
def test_what_each_loop_did_with_a_sample_session(number: str) -> None:
    made = matrix(sample(number), Settings())
    assert decision_words(made, len(made.rows) - 1) == dict(zip(NAMES, EXPECTED[number], strict=True))


@each_row("name", NAMES)
def test_a_pause_that_a_policy_takes_for_the_end_is_no_complete_turn(name: str) -> None:
    """The recorded agent resumed it, but this loop did not: its text ends before the pause."""
    seen = view(replay(sample("13"), Settings(policy=POLICIES[name])))
    resumes = name == "strict"
    assert (seen.turns[0].verdict.word, seen.turns[0].verdict.complete) == (
        ("COMPLETE", True) if resumes else ("PAUSED", False))
    assert ("nineteen minutes" in seen.turns[0].joined_text.text) is resumes


def test_an_agent_that_resumed_more_often_than_our_limit_allows_is_complete() -> None:
    seen = view(replay(sample("13"), Settings(limits=Limits(max_resumes=0))))
    assert seen.turns[0].verdict.word == "COMPLETE"


def test_a_call_that_ran_under_a_filter_is_a_held_call() -> None:
    """Nothing cut it, and nothing authorised it."""
    made = matrix(case_of(pair_of([user("x")], chat(None, "content_filter", call(WHOLE)))), Settings())
    assert decision_words(made) == dict(zip(NAMES, (
        HELD, HELD, "ran a held call", STUCK, "ran a held call", HELD, HELD), strict=True))
    assert "runs with the 44 characters that came, under safety_blocked" in made.rows[0][4].why
    assert len(WHOLE) == 44


def test_a_matrix_is_simulated_only_where_an_answer_is() -> None:
    whole = case_of(pair_of([user("x")], chat("All of it.")))
    assert matrix(whole, Settings(simulate=True)).fidelity is Fidelity.RECORDED
    cut = case_of(pair_of([user("x")], chat("Half of", "length", tokens=4), max_tokens=4),
                  pair_of([user("x"), assistant("Half of"), user(HINT)], chat(" it.", tokens=4)))
    assert matrix(cut, Settings(simulate=True, max_tokens=2)).fidelity is Fidelity.SIMULATED


def test_what_a_loop_asks_for_next_has_the_name_that_a_live_turn_gives_it() -> None:
    once = settings_of({"max_empty_retries": "1"}, Settings())
    made = matrix(case_of(pair_of([user("x")], chat("", "stop"))), once)
    assert made.rows[0][0].why == "asks for retry of an empty answer 1, never recorded"


def test_a_whole_call_under_stop_is_lost_or_never_ended_where_only_the_word_counts() -> None:
    """vLLM PR #25054: a named tool_choice is answered with `stop`."""
    made = matrix(case_of(pair_of([user("x")], chat(None, "stop", call(WHOLE)))), Settings())
    assert decision_words(made) == dict(zip(NAMES, (GOES_ON, GOES_ON, GOES_ON, STUCK, GOES_ON, GOES_ON, "lost a call"),
                                            strict=True))
    assert made.rows[0][0].why == "asks for the results of its calls, never recorded"
    assert made.rows[0][3].why == "write_file is begun and never ended"


def test_what_is_not_cut_is_finished_under_every_policy() -> None:
    made = matrix(case_of(
        pair_of([user("x")], chat(None, "tool_calls", call(WHOLE))),
        pair_of([user("x"), assistant(None, call(WHOLE)), result()], chat("done", "stop")),
    ), Settings())
    assert set(decision_words(made).values()) == {"finished"}
    assert [cell.step for cell in made.rows[0]] == [None] * 7


def test_an_overlap_that_was_text_is_lost_where_it_is_removed() -> None:
    first = [user("how many")]
    made = matrix(case_of(
        pair_of(first, chat("The town has 10", "length")),
        pair_of([*first, assistant("The town has 10"), user(HINT)], chat("000 people.", "stop")),
    ), Settings())
    assert {name: word for name, word in decision_words(made).items() if word == LOST and name.startswith("zero")} == {
        "zeroclaw-merged": LOST}
    assert made.rows[0][2].why == "its seams leave out 1 character that strict keeps"
    assert (made.rows[0][0].decision.word, made.rows[0][0].continuations) == ("continued", 1)


def test_a_failure_that_was_sent_again_is_passed_over() -> None:
    failed = pair_of([user("x")], {"error": {"message": "overloaded", "type": "server_error"}}, status=503)
    made = matrix(case_of(failed, pair_of([user("x")], chat("done", "stop"))), Settings())
    assert set(decision_words(made).values()) == {"finished"}
    alone = matrix(case_of(failed), Settings())
    assert set(decision_words(alone).values()) == {FAILED}


TOO_LONG = {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}}
FILTERED = {"error": {"message": "The response was filtered.", "code": "content_filter", "status": 400}}


@pytest.mark.parametrize(("body", "url", "why"), [
    (TOO_LONG, MESSAGES, "prompt is too long: 9 > 8"), (FILTERED, CHAT, "The response was filtered."),
])
def test_a_request_that_failed_is_no_answer_of_which_a_loop_could_lose_text(
    body: dict[str, Any], url: str, why: str,
) -> None:
    """That the message speaks of a full context or a filter is our reading; the clients of all loops raise an error."""
    made = matrix(case_of(pair_of([user("x")], body, url=url, status=400)), Settings())
    assert set(decision_words(made).values()) == {FAILED}
    assert {cell.why for cell in made.rows[0]} == {
        f"the request failed (HTTP 400, {why}); no part of an answer came that could be lost"}
    assert {own.turns[0].steps[-1].turn.terminal == "completed" for own in made.replays} == {False}


def test_a_continuation_that_failed_is_told_of_the_request_for_it() -> None:
    made = matrix(case_of(
        pair_of([user("x")], chat("one", "length")),
        pair_of([user("x"), assistant("one"), user(HINT)], {"error": {"message": "bad"}}, status=400),
    ), Settings())
    assert made.rows[0][0].why == (
        "the request for continuation 1 failed (HTTP 400, bad); no part of an answer came that could be lost")
    assert decision_words(made)["zoo-before"] == LOST, "it never asked for the rest"


def test_an_answer_that_an_error_broke_off_is_not_a_failed_request() -> None:
    broken = f'{cut_stream("A half")}data: {json.dumps({"error": {"message": "overloaded"}})}\n\n'
    made = matrix(case_of(exchange({"model": "m-1", "messages": [user("x")], "stream": True}, broken,
                                   response_headers={"content-type": "text/event-stream"})), Settings())
    assert set(decision_words(made).values()) == {ENDED}


def test_arguments_that_are_broken_without_a_cut_are_not_said_to_be_cut() -> None:
    """As in the view of calls, which says that nothing shows a cut."""
    made = matrix(case_of(pair_of([user("x")], chat(None, "tool_calls", call('{"path": plan.md}')))), Settings())
    cut = matrix(case_of(pair_of([user("x")], chat(None, "tool_calls", call(CUT)))), Settings())
    assert (decision_words(made)["pi-presence"], decision_words(cut)["pi-presence"]) == ("ran a held call", CUT_RUN)


def test_only_the_run_that_begins_a_turn_counts() -> None:
    """pi ends the turn at the cut text: what the recorded agent asked for then, pi never saw."""
    first = [user("x")]
    made = matrix(case_of(
        pair_of(first, chat("one", "length")),
        pair_of([*first, assistant("one"), user(HINT)], chat(None, "length", call(CUT))),
    ), Settings())
    assert decision_words(made)["pi-presence"] == LOST
    assert decision_words(made)["strict"] == HELD


def test_every_decision_is_reached() -> None:
    words = {word for row in EXPECTED.values() for word in row} | {"ran a held call", "lost a call", FAILED}
    assert {each.word for each in DECISIONS} == words
    assert all(len(each.short) <= 9 for each in DECISIONS)


# -- where they part -------------------------------------------------------------------------------------------------


@each_row("number", ["01", "05", "07", "10"])
def test_a_cell_names_the_step_at_which_its_run_parts_from_strict(number: str) -> None:
    made = matrix(sample(number), Settings())
    for column, own in enumerate(made.replays):
        for row, cell in enumerate(made.rows):
            theirs, mine = made.replays[0].turns[row], own.turns[row]
            ours = [step_key(step) for step in made.replays[0].trace.steps[theirs.first : theirs.end]]
            steps = [step_key(step) for step in own.trace.steps[mine.first : mine.end]]
            at = None if cell[column].step is None else cell[column].step - mine.first
            assert steps[:at] == ours[:at]
            assert (at is None) == (steps == ours)
            if at is not None:
                assert steps[at:] != ours[at:]


def test_strict_alone_is_what_a_replay_is() -> None:
    """Laying others beside it changes nothing of it."""
    case = sample("05")
    made = matrix(case, policies=[PI_PRESENCE], settings=Settings())
    assert [policy.name for policy in made.policies] == ["strict", "pi-presence"]
    plain = replay(case)
    assert list(map(step_key, made.replays[0].trace.steps)) == list(map(step_key, plain.trace.steps))


def test_limits_hold_for_every_policy_and_a_cell_opens_as_a_branch() -> None:
    case = sample("01")
    settings = Settings(Limits(continuation_max_attempts=5), explicit=frozenset({"continuation_max_attempts"}))
    made = matrix(case, settings)
    assert decision_words(made, 0) == dict(zip(NAMES, ("continued",) * 3 + (LOST,) * 4, strict=True))
    assert made.rows[0][0].continuations == 5
    place = (1, NAMES.index("botnexus"))
    opened = branch(view(replay(case)), settings_of(policies_lines.assignments(made, place), settings))
    assert opened.view.replay.settings == replace(settings, policy=BOTNEXUS)
    assert list(map(step_key, opened.view.steps)) == list(map(step_key, made.replays[place[1]].trace.steps))
    assert isinstance(opened.view.replay.trace, Trace)


def test_a_seam_rule_that_was_asked_for_goes_over_every_policys_own() -> None:
    made = matrix(sample("02"), Settings(seam=SeamRule.CONCAT))
    assert decision_words(made)["zeroclaw-merged"] == "continued"


# -- one call --------------------------------------------------------------------------------------------------------


def verdict_by_policy(case: Case, response: int, call: int) -> tuple[Opinion, ...]:
    verdicts = case.verdicts[response]
    taken = stances(case.recording.exchanges[response], case.judgements[response], verdicts)
    return opinions_of(taken, verdicts[call])


def fates(number: str, response: int, index: int = 0) -> dict[str, Fate]:
    return {said.policy: said.fate for said in verdict_by_policy(sample(number), response, index)}


def test_who_would_run_a_held_call() -> None:
    run, hold, stuck = Fate.RUN, Fate.HOLD, Fate.STUCK
    assert fates("05", 0) == dict(zip(NAMES, (hold, hold, hold, stuck, run, run, hold), strict=True))
    assert fates("07", 0) == dict(zip(NAMES, (hold, hold, hold, stuck, run, run, run), strict=True))
    assert fates("09", 0) == dict(zip(NAMES, (hold, hold, run, stuck, run, run, hold), strict=True))
    assert fates("09", 0, 1) == dict(zip(NAMES, (hold, hold, hold, stuck, run, run, hold), strict=True))
    assert set(fates("05", 1).values()) == {run}


def test_a_call_that_its_schema_refuses_is_answered_with_the_error() -> None:
    case = case_of(pair_of([user("x")], chat(None, "tool_calls", call('{"path": 5}')), tools=[
        {"type": "function", "function": {"name": "write_file", "parameters": {
            "type": "object", "properties": {"path": {"type": "string"}}}}}]))
    assert {said.fate for said in verdict_by_policy(case, 0, 0)} == {Fate.REFUSE}
    assert f"policies: would answer it with the error: {', '.join(NAMES)}\n" in explained(view(replay(case)))


def test_why_a_policy_would_do_it() -> None:
    why = {said.policy: said.why for said in verdict_by_policy(sample("07"), 0, 0)}
    assert why["strict"] == "reads max_tokens; asks for it again"  # the arguments end in the middle of their JSON
    assert why["zoo-before"] == "reads interrupted, which ends no call"
    assert why["botnexus"] == "reads tool_call; it is present"
    assert why["zeroclaw-rfi"] == "reads unknown; ends the turn with a notice"


@each_row(("number", "index", "policy", "why"), [
    ("09", 0, "zeroclaw-merged", "reads max_tokens; its arguments parse"),
    ("09", 0, "zeroclaw-rfi", "reads max_tokens; asks for it again"),
    ("09", 1, "zeroclaw-merged", "reads max_tokens; runs its siblings without it"),
    ("09", 1, "zoo-after", "reads max_tokens; a lenient parser reads some of it"),
    ("10", 0, "zeroclaw-rfi", "reads max_tokens; leaves it out and has the text continued"),
    ("10", 0, "botnexus", "reads max_tokens; leaves it out and treats the turn as finished"),
])
def test_what_becomes_of_the_turn(number: str, index: int, policy: str, why: str) -> None:
    assert {said.policy: said.why for said in verdict_by_policy(sample(number), 0, index)}[policy] == why


@each_row("number", sorted(EXPECTED))
def test_the_fate_of_a_call_agrees_with_the_run(number: str) -> None:
    """A call of the first response runs in the matrix's own replay exactly if it is said that it would."""
    case = sample(number)
    made = matrix(case, Settings())
    for index in range(len(case.verdicts[0])):
        wanted = case.verdicts[0][index].call
        for own, said in zip(made.replays, verdict_by_policy(case, 0, index), strict=True):
            ran = any(verdict.call is wanted for step in own.trace.steps for effect in step.effects
                      for verdict in getattr(effect, "batch", ()))
            assert ran == (said.fate is Fate.RUN), (own.settings.policy.name, said)


def test_the_report_of_a_held_call_names_the_policies() -> None:
    shown = explained(view(replay(sample("07"))))
    assert ("      policies: would run it: zoo-after, pi-presence, botnexus; stuck with it: zoo-before; "
            "would hold it: strict, zeroclaw-rfi, zeroclaw-merged\n") in shown


# -- as text, as JSON, as lines --------------------------------------------------------------------------------------


def test_the_text_fits_80_columns_and_tells_every_turn() -> None:
    for path in sorted(SAMPLES.glob("*.jsonl")):
        shown = policies_lines.text(matrix(open_case(open_paths([str(path)])), Settings()))
        assert max(len(line) for line in shown.splitlines()) <= 80
    shown = policies_lines.text(matrix(sample("01"), Settings()))
    rows = [line for line in shown.splitlines() if line.startswith(("1 ", "2 "))][1:]
    assert rows == [
        "1      limit     limit     limit     lost text lost text lost text lost text",
        "2      held      held      held      stuck     ran cut   ran cut   held",
    ]
    assert "zoo-before: stuck · write_file is begun and never ended" in shown


@each_row(("policy", "source"), [
    ("strict", "ZeroClaw RFI 2309"), ("strict", "BotNexus PR 1676: only a ToolUse terminal"),
    ("zoo-before", "Zoo Code's analysis, root cause 1"),
    ("pi-presence", "pi's agent loop: agent"),
    ("zeroclaw-merged", "zeroclaw#2373: continues under MaxTokens"),
])
def test_what_a_policy_follows_has_a_name_that_others_know(policy: str, source: str) -> None:
    made = matrix(sample("01"), Settings())
    sheet = policies_lines.sheet(made, (0, NAMES.index(policy)))
    shown = [text_of(line).strip().removeprefix("follows").strip() for line in sheet.lines]
    assert any(line.startswith(source) for line in shown)
    assert not any("seed 0" in line for line in shown)


def test_the_text_says_whose_the_policies_are() -> None:
    shown = " ".join(policies_lines.text(matrix(sample("08"), Settings())).split())
    assert "1 turn under 7 policies, RECORDED" in shown
    assert "about these policies strict: This engine's own: nothing unfinished counts as finished" in shown
    assert "zeroclaw-merged: ZeroClaw as it was merged: whole calls of a cut answer run" in shown


def test_the_document() -> None:
    made = policies_lines.values(matrix(sample("07"), Settings()))
    assert made["schema"] == "loop-inspector/policies/1"
    assert [policy["name"] for policy in made["policies"]] == list(NAMES)
    assert made["policies"][3]["decisions"] == {"stuck": 1}
    assert made["turns"][0]["responses"] == [0]
    assert made["turns"][0]["decisions"][6] == {
        "policy": "botnexus", "decision": "ran a cut call", "severity": "error", "continuations": 0,
        "why": "write_to_file runs with the 79 characters that came, under max_tokens, which it takes for tool_call",
        "first_difference": 2, "complete": False,
    }


@pytest.mark.parametrize(("width", "seen", "column"), [
    (76, 7, 10), (79, 7, 10), (153, 7, 21), (400, 7, 25), (56, 5, 10),
])
def test_a_row_has_as_many_policies_as_fit(width: int, seen: int, column: int) -> None:
    made = matrix(sample("01"), Settings())
    for policy in range(7):
        laid = policies_lines.layout(made, width, policy)
        assert (laid.size, laid.column) == (seen, column)
        assert policy in laid.policies
        here = (1, policy)
        row = text_of(policies_lines.row(made, 1, here, laid))
        assert cells(row) <= width
        assert policies_lines.policy_at(laid, row.index("▶")) == policy
        assert "▶" not in text_of(policies_lines.row(made, 0, here, laid))
        # The words stand under their names.
        names = text_of(policies_lines.column_heads(made, laid)[0])
        assert names[row.index("▶") + 1 :].startswith(made.policies[policy].name.partition("-")[0])
    assert [policies_lines.policy_at(policies_lines.layout(made, 76, 0), at) for at in (0, 5, 6, 15, 16, 75, 76)] == [
        None, None, 0, 0, 1, 6, None]


def test_strict_is_not_compared_with_itself() -> None:
    made = matrix(sample("02"), Settings())
    strict, other = (plain(list(policies_lines.sheet(made, (0, column)).lines)) for column in (0, 1))
    assert "from strict" not in strict
    assert "from strict" in other


def test_the_counts_of_a_policy_stand_under_its_name() -> None:
    """They came after the decisions of all policies about a turn, and seemed to count those."""
    made = matrix(sample("02"), Settings())
    for column, policy in enumerate(made.policies):
        lines = [text_of(line) for line in policies_lines.sheet(made, (0, column)).lines]
        at = lines.index(f"all turns under {policy.name}")
        assert lines[at + 1].split()[:4] == ["complete", f"{made.complete(column)}", "of", "1"]


def test_a_policy_that_is_named_twice_has_one_column() -> None:
    shown = CliRunner().invoke(main, ["policies", "sample:02", "--policy", "botnexus", "--policy", "botnexus"])
    assert shown.output.startswith("1 turn under 2 policies, ")


def test_where_there_is_room_the_words_stand_in_full() -> None:
    made = matrix(sample("01"), Settings())
    assert "ran cut" in text_of(policies_lines.row(made, 1, (0, 0), policies_lines.layout(made, 80, 0)))
    assert "ran a cut call" in text_of(policies_lines.row(made, 1, (0, 0), policies_lines.layout(made, 160, 0)))


@each_row("column", [10, 16, 21, 22, 25])
@each_row("decision", DECISIONS)
def test_a_word_never_reaches_the_next_column(decision: Decision, column: int) -> None:
    made = matrix(sample("01"), Settings())
    cell = made.rows[1][0]._replace(decision=decision)
    alike = replace(made, rows=(made.rows[0], (cell,) * 7))
    laid = policies_lines.layout(made, 6 + 7 * column, 0)
    row = text_of(policies_lines.row(alike, 1, None, laid))
    words = {row[at : at + laid.column] for at in range(laid.label, len(row), laid.column)}
    assert len(words) == 1
    assert words.pop().strip() in (policies_lines.short_word(cell), decision.word, f"{decision.word} x0")
    heads = policies_lines.column_heads(made, policies_lines.layout(made, 160, 0))
    assert text_of(heads[0]).split() == ["turn", *NAMES]


def test_the_sheet_tells_a_cell_and_the_others_of_its_turn() -> None:
    made = matrix(sample("01"), Settings())
    for turn, policy in ((0, 0), (1, 3), (1, 6)):
        sheet = policies_lines.sheet(made, (turn, policy))
        told = "\n".join(text_of(sheet.line(index)) for index in range(len(sheet)))
        assert f"turn {turn + 1} under {NAMES[policy]}" in told
        assert all(f"{each.name} " in told and each.title in told for each in made.policies), "what each of them does"
        assert made.rows[turn][policy].why in told
        for name, cell in zip(NAMES, made.rows[turn], strict=True):
            assert name in told
            assert cell.decision.word in told
    assert step_at(made, (1, 0)) == made.replays[0].turns[1].first
    assert step_at(made, (1, 3)) == made.rows[1][3].step


def test_policies_that_do_the_same_for_the_same_reason_share_a_row_of_the_sheet() -> None:
    made = matrix(sample("01"), Settings())
    lines = [text_of(line).split() for line in policies_lines.sheet(made, (0, 0)).lines]
    whys = ["retry_limit", "after", "3", "continuations"]
    assert lines.count(whys) == 1, "they part from strict at different steps, and end alike"
    assert lines[lines.index(whys) - 1][-3:] == ["strict,", "zeroclaw-rfi,", "zeroclaw-merged"]


def test_cells_are_found_by_turns_then_policies_round_the_end() -> None:
    made = matrix(sample("01"), Settings())
    # Turn 2: held, held, held, stuck, ran cut, ran cut, held.
    assert policies_lines.find(made, "STUCK", (0, 0), 1, again=False) == (1, 3)
    assert policies_lines.find(made, "ran a cut", (1, 3), 1, again=True) == (1, 4)
    assert policies_lines.find(made, "ran a cut", (1, 5), 1, again=True) == (1, 4)
    assert policies_lines.find(made, "ran a cut", (1, 4), 1, again=False) == (1, 4)
    assert policies_lines.find(made, "pi-presence", (1, 5), -1, again=True) == (0, 5)
    assert policies_lines.find(made, "nowhere", (0, 0), 1, again=False) is None
    # Turn 1: the first three stop at a limit, the others lose text.
    assert policies_lines.next_difference(made, (0, 0), 1) == (0, 3)
    assert policies_lines.next_difference(made, (0, 6), 1) == (1, 3)
    assert policies_lines.next_difference(made, (1, 5), 1) is None
    assert policies_lines.next_difference(made, (1, 3), -1) == (0, 6)
    assert policies_lines.next_difference(made, (0, 3), -1) is None


# -- several files ---------------------------------------------------------------------------------------------------


def several(tmp_path: Path, *names: str) -> Matrix:
    """Files of two turns each: one that is whole, one that is cut."""
    for name in names:
        (tmp_path / name).write_bytes(lines(pair_of([user(f"a {name}")], chat("done")),
                                            pair_of([user(f"b {name}")], chat("half", "length"))))
    return matrix(open_case(open_paths([str(tmp_path / name) for name in names])), Settings())


def test_the_text_names_the_file_of_each_turn_where_there_are_several(tmp_path: Path) -> None:
    shown = policies_lines.text(several(tmp_path, "first.jsonl", "second.jsonl"))
    rows = shown.splitlines()[shown.splitlines().index("first.jsonl") :]
    assert [row.split()[0] for row in rows[:6]] == ["first.jsonl", "1", "2", "second.jsonl", "3", "4"]
    assert "turn 4 (second.jsonl, t4)" in rows
    assert "first.jsonl" not in policies_lines.text(matrix(sample("01"), Settings()))


def test_turns_of_several_files_in_which_all_agree_say_how_many_files(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_bytes(lines(pair_of([user(name)], chat("done"))))
    made = matrix(open_case(open_paths([str(tmp_path / name) for name in ("a.jsonl", "b.jsonl")])), Settings())
    assert "1–2    2 turns of 2 files in which all policies agree" in policies_lines.text(made)


def test_turns_in_which_all_agree_have_both_their_numbers_however_long():
    """The first number alone, `99–`, reads as if its end were cut off."""
    made = matrix(sample("02"), Settings())
    many = Matrix(made.replays, made.rows * 200)
    for turns, label in ((range(1, 97), "2–97   "), (range(98, 194), "99–194 "), (range(104, 194), "105–194 ")):
        folded = text_of(policies_lines.fold_line(many, turns, here=False))
        assert folded.startswith(f"{label}{len(turns)} turns in which")


def test_a_file_that_does_not_fit_is_called_without_its_folder(tmp_path: Path) -> None:
    for folder in ("first-of-all", "second-of-all"):
        (tmp_path / folder).mkdir()
    made = several(tmp_path, "first-of-all/one.jsonl", "second-of-all/two.jsonl")
    assert [made.file_within(turn, 10) for turn in (0, 3)] == ["one.jsonl", "two.jsonl"]
    assert made.file_within(3, 30) == "second-of-all/two.jsonl"
    alike = several(tmp_path, "first-of-all/one.jsonl", "second-of-all/one.jsonl")
    assert alike.file_within(3, 10) == "second-of-all/one.jsonl", "the folder tells them apart"


def test_a_row_has_the_file_between_its_number_and_the_policies(tmp_path: Path) -> None:
    names = [f"rollout-2026-01-{day:02}T10.jsonl" for day in (1, 2)]
    made = several(tmp_path, *names)
    wide, small = (policies_lines.layout(made, width, 0) for width in (157, 77))
    assert (wide.size, small.size) == (7, 6), "a file's name is worth a column of the smallest screen"
    assert names[1] in text_of(policies_lines.row(made, 3, None, wide))
    assert "…2T10.jso…" in text_of(policies_lines.row(made, 3, None, small)), "not what all names begin with"
    for laid in (wide, small):
        row = text_of(policies_lines.row(made, 3, (3, 3), laid))
        assert policies_lines.policy_at(laid, row.index("▶")) == 3
        assert cells(row) <= 157
        head = text_of(policies_lines.column_heads(made, laid)[0])
        assert head.split()[:2] == ["turn", "file"]
        assert head[row.index("▶") + 1 :].startswith("zoo-")


def test_the_matrix_opens_at_the_turn_one_comes_from_or_the_next_in_which_policies_differ(tmp_path: Path) -> None:
    made = several(tmp_path, "a.jsonl", "b.jsonl")  # policies differ in the second and the fourth turn
    assert [policies_lines.opening_turn(made, here) for here in (None, 0, 1, 2, 3)] == [1, 1, 1, 3, 3]
    whole = matrix(case_of(pair_of([user("x")], chat("done"))), Settings())
    assert policies_lines.opening_turn(whole, 0) == 0


def test_names_from_a_transcript_are_inert_everywhere() -> None:
    made = matrix(case_of(pair_of([user("x")], chat(None, "length", call(CUT, name="a\x1b[31mb")))), Settings())
    assert any("\x1b" in cell.why for cell in made.rows[0])
    assert "\x1b" not in policies_lines.text(made)
    sheet = policies_lines.sheet(made, (0, 3))
    assert not any("\x1b" in text_of(sheet.line(index)) for index in range(len(sheet)))
    row = policies_lines.row(made, 0, (0, 0), policies_lines.layout(made, 80, 0))
    assert Tone.ERROR in {span.role for span in row}


def test_nothing_read_is_said() -> None:
    made = matrix(open_case(open_paths(["-"], stdin=b"{}\n")), Settings())
    assert policies_lines.text(made).startswith("NOTHING READ")
    absent = matrix(open_case(open_paths(["absent.har"])), Settings())
    assert policies_lines.text(absent).startswith("NOTHING READ  absent.har: cannot be read: No such file")
    assert policies_lines.values(made)["turns"] == []
    assert [text_of(line) for line in policies_lines.sheet(made, (0, 0)).lines] == ["no turns"]


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = str(next(SAMPLES.glob("07-*")))
    shown = CliRunner().invoke(main, ["policies", path, "--policy", "botnexus"])
    assert shown.exit_code == 0
    assert "1 turn under 2 policies" in shown.output
    document = json.loads(CliRunner().invoke(main, ["policies", path, "--json"]).output)
    assert len(document["policies"]) == len(POLICIES)
    wrong = CliRunner().invoke(main, ["policies", path, "--policy", "lax"])
    assert "unknown policy 'lax'" in str(wrong.exception)


def test_the_session_the_grid_and_the_policies_count_the_same_complete_turns() -> None:
    """Over every sample at once: among them a whole call whose results were not recorded, and ends of every kind."""
    case = open_case(open_paths([str(path) for path in sorted(SAMPLES.glob("*.jsonl"))]))
    seen = view(replay(case))
    assert 5 < seen.complete < len(seen.turns)
    limits = Limits()
    grid = Grid(parse_axes([f"attempts={limits.continuation_max_attempts}", "max_tokens=recorded"]))
    tuned = tune(case, grid, jobs=1)
    assert tuned.completed == [seen.complete]
    made = matrix(case, Settings())
    assert made.complete(0) == seen.complete
    told = policies_lines.values(made)
    assert told["policies"][0]["complete"] == seen.complete
    assert [turn["decisions"][0]["complete"] for turn in told["turns"]] == [
        turn.verdict.complete for turn in seen.turns]
    assert f"by the verdict of each turn, of {len(seen.turns)}: strict {seen.complete}," in policies_lines.text(made)
    assert f"complete       {seen.complete} of {len(seen.turns)} turns, by the verdict" in plain(
        [policies_lines.sheet(made, (0, 0)).line(at) for at in range(len(policies_lines.sheet(made, (0, 0))))])


def test_csv_has_a_row_for_each_turn_under_each_policy_and_says_what_json_says(tmp_path: Path) -> None:
    path, target = str(next(SAMPLES.glob("01-*"))), tmp_path / "made.csv"
    shown = CliRunner().invoke(main, ["policies", path, "--csv", "-"])
    assert shown.exit_code == 0
    rows = list(csv.DictReader(io.StringIO(shown.output)))
    told = policies_lines.values(matrix(sample("01"), Settings()))
    every = [{"turn": number, "turn_id": turn["id"], "path": path, **each}
             for number, turn in enumerate(told["turns"], 1) for each in turn["decisions"]]
    assert rows == [{key: "" if value is None else str(value) for key, value in each.items()} for each in every]
    assert CliRunner().invoke(main, ["policies", path, "--csv", str(target)]).output.startswith("2 turns under")
    assert target.read_text() == shown.output
    again = CliRunner().invoke(main, ["policies", path, "--csv", str(target)])
    assert again.exit_code != 0
    assert "exists; --force overwrites it" in str(again.exception)
    assert CliRunner().invoke(main, ["policies", path, "--csv", str(target), "--force"]).exit_code == 0
    assert CliRunner().invoke(main, ["policies", path, "--csv", "-", "--json"]).exit_code == 2
