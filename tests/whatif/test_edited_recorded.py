"""Edited inputs over recorded traffic: whatever is edited, no answer to another request is shown as its answer."""

from __future__ import annotations

import pytest

from inspector.config.settings import TurnEdit, settings_of
from inspector.replay import replay
from inspector.replay.adjustments import turn_inputs
from inspector.replay.case import links_of_loop, open_case, stops_at_edit
from inspector.replay.rerun import edit_step
from inspector.report.facts import view
from inspector.sessions import open_paths
from inspector.whatif.branch_report import text, values
from inspector.whatif.tree import branch
from loop_core.turn.state import ProviderResponse
from tests.report.test_lines_recorded import APIS, CORPUS, FILES

TURNS, INPUTS = 4, 6
"""Of each file so many turns, and of each turn so many of its last inputs."""


@pytest.mark.parametrize("api", APIS)
def test_no_recorded_answer_stands_behind_an_edit(api: str) -> None:
    if not (CORPUS / "har" / api).is_dir():
        pytest.skip("the recorded traffic is not here (set LOOP_INSPECTOR_CORPUS)")
    edited = 0
    for path in sorted((CORPUS / "har" / api).glob("*.har"), key=lambda path: path.stat().st_size)[: 2 * FILES]:
        seen = view(replay(open_case(open_paths([str(path)]))))
        for place, turn in enumerate(seen.turns[:TURNS]):
            order = [link.index for link in links_of_loop(seen.replay.case, turn.run.record)]
            for given in turn_inputs(seen.replay.case, turn.run.record)[-INPUTS:]:
                edit = TurnEdit(place + 1, given.number, f"{given.text} EDITED")
                made = branch(seen, settings_of({edit.name: edit.text}, seen.replay.settings),
                              edit_step(seen.replay, edit))
                new = made.view.turns[place]
                assert stops_at_edit(new.run.steps), path
                assert new.verdict.word == "EDITED, NOT ASKED"
                answers = [step.event.number for step in new.run.steps if isinstance(step.event, ProviderResponse)]
                assert all(order.index(answer) < order.index(given.exchange) for answer in answers), path
                sent = [part for message in new.run.steps[-1].turn.history for part in message.parts]
                assert any(getattr(part, "text", None) == edit.text for part in sent), path
                assert values(made)["recording_stops_at"] == new.run.end
                assert "the recording stops answering at" in text(made)
                edited += 1
    assert edited or api not in ("openai_chat", "anthropic_messages", "gemini_generate")
