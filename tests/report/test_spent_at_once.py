"""The step that has taken an answer in counts it, in every view."""

from __future__ import annotations

import pytest

from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.facts import view
from inspector.report.lines import header
from inspector.report.lines.spans import text_of
from inspector.report.lines.steps import Outline
from inspector.sessions import open_paths
from inspector.sessions.folders import samples
from loop_core.turn.state import ProviderResponse

CASES = {sample.path.stem[:2]: sample.path for sample in samples()}


@pytest.mark.parametrize(("number", "used"), [("02", (56, 56, 22)), ("05", (60, 48, 7))])
def test_an_answer_is_counted_where_it_is_taken_in(number, used):
    """`used` are the output tokens that the bytes of the answers say."""
    seen = view(replay(open_case(open_paths([str(CASES[number])]))))
    taken = [at for at, step in enumerate(seen.steps) if isinstance(step.event, ProviderResponse)]
    assert len(taken) == len(used)
    for count, at in enumerate(taken, 1):
        expected = sum(used[:count])
        shown = seen.effective_step(at)
        assert shown.turn.spend.output_tokens == expected
        assert text_of(header.gauges(shown.turn, 80)[0]).endswith(f" {expected:,} tokens")
        assert f"out {expected:,}" in text_of(header.status(Outline(seen), at, 200))
        assert seen.steps[at + 1].turn.spend.output_tokens == expected, "it is counted once"
