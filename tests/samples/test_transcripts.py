"""The sample transcripts: each is what its maker makes, opens, ends as the README says, and tells its story."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.facts import View, view
from inspector.sessions import open_paths
from inspector.sessions.folders import find
from tests.samples.readme import table
from tests.samples.transcripts import TRANSCRIPTS

FOLDER = Path(__file__).parents[2] / "sample_sessions"


def view_of(name: str) -> View:
    loaded = open_paths([str(FOLDER / name)])
    assert [given.error for given in loaded.inputs] == [None]
    return view(replay(open_case(loaded)))


@pytest.mark.parametrize("each", TRANSCRIPTS, ids=lambda each: each.file)
def test_it_is_what_the_maker_makes_and_ends_as_it_says(each):
    assert (FOLDER / each.file).read_text(encoding="utf-8") == each.file_text()
    ends = "; ".join(f"{turn.final_state.value}, {turn.terminal}" for turn in view_of(each.file).turns)
    assert ends == each.end_state


@pytest.mark.parametrize("each", TRANSCRIPTS, ids=lambda each: each.file)
def test_a_sample_tells_its_title_and_story_from_the_readme(each):
    sample = find(each.file)
    assert (sample.title, sample.about.story, sample.about.provenance, sample.about.end_state) == (
        each.title, each.story, each.provenance, each.end_state)


def test_the_readme_is_made_from_the_samples():
    assert (FOLDER / "README.md").read_text(encoding="utf-8") == table(FOLDER)


def test_claude_codes_story():
    seen = view_of("18-claude-code-cut-writes.jsonl")
    assert [turn.verdict.word for turn in seen.turns] == ["END INFERRED", "CUT CALL RUN", "COMPLETE"]
    places = [[link.place.value for link in turn.run.record.links] for turn in seen.turns]
    assert places == [["request", "repair", "tool_result"], ["request", "tool_result"], ["request"]]
    read = [facts.judgement.stop.evidence[-1].rule.removeprefix("transcript.inferred.") for facts in seen.responses[:4]]
    assert read == ["error_row", "calls_answered", "turn_ended", "tokens_at_cap"]
    assert [facts.exchange.request.max_tokens for facts in seen.responses] == [32_000, None, None, None, None, None]
    held = seen.responses[3].exchange.response.tool_calls[0]
    assert held.arguments.endswith('11:5"}')


def test_pis_story():
    seen = view_of("19-pi-length-and-a-call-that-ran.jsonl")
    assert [turn.verdict.word for turn in seen.turns] == ["CUT CALL RUN", "CUT, COMPLETED"]
    assert all(facts.exchange.response.raw_stop_reason is None for facts in seen.responses)
    assert seen.turns[1].joined_text.text.endswith("The latch holds it shut when the wind is up.")
