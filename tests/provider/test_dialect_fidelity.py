"""What was made from a table was never recorded: every view, and every file that is made of it, says SIMULATED."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inspector.config.settings import Settings
from inspector.export.exchange_files import records
from inspector.export.otel_spans import spans
from inspector.provider.dialect_output import save_all
from inspector.provider.dialect_rows import DialectRow, row_view, rows
from inspector.provider.dialects import DIALECTS
from inspector.provider.scenarios import SCENARIOS
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.explain import text
from inspector.report.explain_document import document
from inspector.report.facts import View, view
from inspector.report.lines import header, response
from inspector.report.lines.spans import text_of
from inspector.report.lines.steps import Outline
from inspector.sessions import open_paths
from inspector.sessions.native import session_bytes
from inspector.whatif import branch_report
from inspector.whatif.tree import branch
from loop_core.turn.trace import Fidelity
from tests.scenes.provider import table_rows


def save_and_read(folder: Path, scenario: str) -> View:
    """Every other row of a scenario as they are saved and read again; the next scenario takes the others."""
    paths = save_all(table_rows(scenario)[[*SCENARIOS].index(scenario) % 2 :: 2], folder)
    return view(replay(open_case(open_paths(list(map(str, paths))))))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_step_of_a_row_and_of_its_saved_session_is_simulated(scenario: str, tmp_path: Path) -> None:
    for row in table_rows(scenario):
        if isinstance(row, DialectRow):
            assert {step.fidelity for step in row.run.trace.steps} == {Fidelity.SIMULATED}, row.name
    again = save_and_read(tmp_path, scenario)
    assert again.steps
    assert {step.fidelity for step in again.steps} == {Fidelity.SIMULATED}


def test_every_view_says_so(tmp_path: Path) -> None:
    row = next(each for each in table_rows("call-cut") if isinstance(each, DialectRow))
    for seen in (row_view(row), save_and_read(tmp_path, "call-cut")):
        assert "SIMULATED response 1" in text(seen)
        assert "RECORDED" not in text(seen)
        assert {each["fidelity"] for each in document(seen)["responses"]} == {"SIMULATED"}
        assert "SIMULATED" in text_of(header.status(Outline(seen), 1, 120))
        assert "no request was sent" in text_of(response.simulation_lines(seen.responses[0])[0])
        assert spans(seen, 0)[0].attributes["loop_inspector.fidelity"] == "SIMULATED"
        told = branch_report.values(branch(seen, Settings(max_tokens=900)))
        assert (told["fidelity"], told["first_simulated"]) == ("SIMULATED", 1)


def test_what_is_exported_of_it_goes_on_saying_so(tmp_path: Path) -> None:
    written = session_bytes(records(save_and_read(tmp_path, "text-cut").replay.case.recording.exchanges))
    answers = [line for line in map(json.loads, written.splitlines()) if line.get("type") == "response"]
    assert [answer["simulated"] for answer in answers] == [True] * len(answers)
    assert answers


def test_only_a_plain_true_makes_a_session_simulated(tmp_path: Path) -> None:
    """A file of another hand: 1, "true" and false are no such word, and such a session stays what was recorded."""
    path = save_all(rows(SCENARIOS["text-cut"], dialects=DIALECTS[:1]), tmp_path)[0]
    for word, wanted in (("true", Fidelity.SIMULATED), ("false", Fidelity.RECORDED), ("1", Fidelity.RECORDED),
                         ('"true"', Fidelity.RECORDED)):
        given = path.read_text().replace('"simulated": true', f'"simulated": {word}').encode()
        made = replay(open_case(open_paths(["-"], stdin=given)))
        assert {step.fidelity for step in made.trace.steps} == {wanted}, word
