"""Every view over recorded traffic that nobody here made: it is made, inert, and as high as it says."""

import os
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from inspector.config.settings import Settings, settings_of
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.facts import View, view
from inspector.report.lines import calls, diff, header, machine_drawing, response, steps, wire
from inspector.report.lines.diff import sides
from inspector.report.lines.glyphs import WIRE_FORMS
from inspector.report.lines.merged import merged_sheet
from inspector.report.lines.spans import LineSheet, text_of, width_of
from inspector.report.lines.steps import Outline
from inspector.sessions import open_paths
from inspector.whatif import branch_lines as whatif
from inspector.whatif.tree import branch

CORPUS = Path(os.environ.get("LOOP_INSPECTOR_CORPUS", Path(__file__).resolve().parents[3] / "shared" / "corpus"))
APIS = ("openai_chat", "openai_responses", "anthropic_messages", "gemini_generate", "bedrock_converse", "ollama_chat")
FILES = 3
"""The smallest files of each API: enough shapes in a second or two."""


def sheets(seen: View, outline: Outline) -> Iterator[LineSheet]:
    for block in outline.blocks:
        yield from (merged_sheet(seen, block, block.first), sides(seen, block, block.first, None),
                    calls.calls(seen, block, None), machine_drawing.events(seen, block, block.first))
    for facts in seen.responses:
        yield response.response(seen, facts)
        yield from (wire.wire(facts, mode) for mode in WIRE_FORMS)
    for index, step in enumerate(seen.steps):
        yield from (diff.diff(seen, index), response.awaiting_sheet(step))
    yield whatif.branch_sheet(branch(seen, settings_of({"continuation_max_attempts": "0"}, Settings())), None)


@pytest.mark.parametrize("api", APIS)
def test_every_view_of_recorded_traffic(api: str) -> None:
    if not (CORPUS / "har" / api).is_dir():
        pytest.skip("the recorded traffic is not here (set LOOP_INSPECTOR_CORPUS)")
    files = sorted((CORPUS / "har" / api).glob("*.har"), key=lambda path: path.stat().st_size)[:FILES]
    seen = view(replay(open_case(open_paths([str(path) for path in files]))))
    assert seen.steps
    outline = Outline(seen)
    for row in range(outline.rows):
        assert text_of(steps.row(outline, row, 0)).isprintable()
    for index in range(len(seen.steps)):
        assert width_of(header.status(outline, index, 78)) <= 78
    for sheet in sheets(seen, outline):
        for index in range(len(sheet)):
            text = text_of(sheet.line(index))
            assert all(unicodedata.category(char) not in ("Cc", "Cf", "Cs") for char in text if not char.isprintable())
        assert 0 <= sheet.focus < max(1, len(sheet))
        for index in range(0, len(sheet), max(1, len(sheet) // 5)):
            rows = sheet.rows(index, 79)
            assert sheet.height(index, 79) == len(rows)
            assert all(width_of(row) <= 79 for row in rows)
