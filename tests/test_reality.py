"""Simulation held against a real model, where there is one: first segments at ten smaller budgets."""

from __future__ import annotations

import pytest

from tests.local_model import BUDGETS, FORMATS, LONG, MIXED, PROMPTS, URL, ask, case_of, hold, predict, unreachable

WHY = unreachable(URL)
pytestmark = pytest.mark.skipif(bool(WHY), reason=WHY or "a model answers")


@pytest.mark.parametrize("api", FORMATS)
def test_first_segments_agree_where_chunks_are_tokens(api):
    held = [each for each in hold(URL, api, PROMPTS[0]) if each.basis == "chunks"]
    assert len(held) == len(BUDGETS), "the server sends one token a chunk"
    assert sum(each.same for each in held) >= 0.95 * len(held), [each for each in held if not each.same]


def test_later_segments_follow_the_machines_path():
    """Only the path is claimed: cut again and again, and then not known, since the recording itself was cut."""
    case = case_of(ask(URL, "openai_chat", PROMPTS[0], LONG))
    for budget in BUDGETS:
        _, _, terminal = predict(case, budget)
        assert terminal == "unrecorded"


@pytest.mark.parametrize("language", MIXED)
def test_what_is_called_exact_is_exact_and_what_is_estimated_lies_in_its_range(language):
    """Characters of several bytes too: a server holds them back until they are whole, so chunks are several tokens."""
    budgets = [budget for budget in BUDGETS if budget <= 77]
    held = hold(URL, "openai_chat", MIXED[language], long=80, budgets=budgets)
    assert [each for each in held if not each.holds] == []
    assert any(each.apart is None for each in held) or not "".join(each.seen.text for each in held).isascii()
