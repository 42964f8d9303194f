"""A turn that a branch leaves as it was keeps its verdict, its advice and its findings, whatever the branch does."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.config.settings import settings_asked, settings_of
from inspector.live.branch_run import new_name, run_branch
from inspector.live.scripted import stand_in_request
from inspector.report.facts import TurnFacts, View, view
from inspector.whatif.tree import ORIGINAL, Tree
from tests.scenes.live_branch import PATIENT, read
from tests.scenes.recordings import HINT, assistant, chat, cut_text, lines, pair_of, user

SAID = ("One is water, ", "two is fire, ", "three is earth, ", "four is air, ", "five is light.")


def turns(tmp_path: Path, *, whole: bool = True) -> str:
    """A long answer that was continued four times, or cut and taken for whole; a cut one; and one continued twice."""
    parts = SAID if whole else SAID[:1]
    first = cut_text(*parts, last="stop" if whole else "length")
    before = [message for part in parts for message in (assistant(part), user(HINT))][:-1]
    opening = [user("tell me everything"), *before, user("and now about metal")]
    second = [pair_of(opening, chat("Metal is ", "length", tokens=10))]
    third, history = [], [*opening, assistant("Metal is "), user("once more, everything")]
    for part, reason in zip((*SAID[:2], SAID[-1]), ("length", "length", "stop"), strict=True):
        third.append(pair_of(list(history), chat(part, reason, tokens=10)))
        history += [assistant(part), user(HINT)]
    path = tmp_path / "turns.jsonl"
    path.write_bytes(lines(*first, *second, *third))
    return str(path)


def answered_by_stand_in(path: str, folder: Path, turn: int, **settings: str) -> tuple[View, View]:
    """The original run, and the one in which a stand-in answers a turn."""
    first = read(path)
    since, wanted = first.turns[turn - 1].first, settings_asked(settings, first.settings)
    name = new_name(by_stand_in=True)
    heard, failure = run_branch(stand_in_request(first, wanted, since, {}), name, folder, PATIENT)
    assert failure is None
    first.case.live_runs[name] = heard
    tree = Tree(view(first))
    node, _ = tree.add(tree.find(ORIGINAL), settings_of({"live": name}, wanted), since)
    return tree.original.view, node.view


def next_words(seen: View, turn: TurnFacts) -> list[str]:
    return [seen.responses[index].recorded_next for index in turn.responses]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("turn", [1, 2, 3])
def test_the_other_turns_keep_their_verdicts_their_advice_and_their_findings(
    turn: int, whole: bool, tmp_path: Path
) -> None:
    original, branch = answered_by_stand_in(turns(tmp_path, whole=whole), tmp_path, turn, max_tokens="400")
    assert len(original.turns) == 3
    for number, (before, after) in enumerate(zip(original.turns, branch.turns, strict=True), 1):
        assert (after.verdict == before.verdict) is (number != turn)
        if number != turn:
            assert after.findings == before.findings
            assert next_words(branch, after) == next_words(original, before)


def test_an_answer_before_a_turn_that_was_asked_again_still_went_on_to_it(tmp_path: Path) -> None:
    _, branch = answered_by_stand_in(turns(tmp_path), tmp_path, 2)
    assert next_words(branch, branch.turns[0])[-1] == "went on to a new turn"
    assert next_words(branch, branch.turns[2])[-1] == "the recording ends"


def test_a_turn_before_that_of_a_stand_in_is_advised_by_its_recorded_answers(tmp_path: Path) -> None:
    original, branch = answered_by_stand_in(turns(tmp_path), tmp_path, 2)
    advice = original.turns[0].verdict.advice
    assert advice is not None
    assert advice.set == {"continuation_max_attempts": "4"}
    assert branch.turns[0].verdict.advice == advice


def test_a_recorded_turn_that_a_later_limit_changes_is_tried_over_its_recording(tmp_path: Path) -> None:
    """The stand-in answers turn 2 under another limit, which ends turn 3 too early; the recording has its rest."""
    original, branch = answered_by_stand_in(turns(tmp_path), tmp_path, 2, continuation_max_attempts="1")
    assert original.turns[2].verdict.word == "CUT, COMPLETED"
    advice = branch.turns[2].verdict.advice
    assert advice is not None
    assert advice.set == {"continuation_max_attempts": "2"}
    assert advice.text.endswith(": a replay of the recording then completes the turn")
