"""Simulation held against a real model, where there is one: first segments at ten smaller budgets."""

from __future__ import annotations

import pytest

from tests.local_model import BUDGETS, FORMATS, LONG, PROMPTS, URL, ask, case_of, hold, predicted, unreachable

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
        _, _, terminal = predicted(case, budget)
        assert terminal == "unrecorded"
