"""The embedded sample sessions: each opens, ends as it says, and is what its maker makes."""

from __future__ import annotations

import gc
import json
import re
from pathlib import Path

from inspector.config.settings import Settings, settings_of
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.facts import View, view
from inspector.sessions import open_paths
from inspector.sessions.folders import samples
from inspector.whatif.tree import branch
from loop_core.values import Stop
from tests.samples.make import file_text
from tests.samples.stories import STORIES
from tests.scenes.rows import each_row

FOLDER = Path(__file__).parents[2] / "sample_sessions"
FILES = sorted(FOLDER.glob("*.session.jsonl"))
AGENTS = sorted(path for path in FOLDER.glob("*.jsonl") if path not in FILES)
README = (FOLDER / "README.md").read_text(encoding="utf-8")


def view_of(path: Path) -> View:
    loaded = open_paths([str(path)])
    assert [given.error for given in loaded.inputs] == [None]
    assert [given.notices for given in loaded.inputs] == [()]
    return view(replay(open_case(loaded)))


def ends(shown: View) -> str:
    return "; ".join(f"{turn.final_state.value}, {turn.terminal}" for turn in shown.turns)


def test_there_are_enough() -> None:
    assert len(FILES) >= 14
    heads = [path.read_text(encoding="utf-8").split("\n", 1)[0] for path in FILES]
    real = [head for head in heads if "recorded on loopback from SmolLM2" in head]
    assert len(real) >= 3


@each_row("path", FILES)
def test_it_ends_as_it_says(path: Path) -> None:
    header = json.loads(path.read_text(encoding="utf-8").split("\n", 1)[0])
    assert ends(view_of(path)) == header["end_state"]


@each_row("path", [*FILES, *AGENTS])
def test_reading_it_leaves_no_reference_cycles(path: Path) -> None:
    view(replay(open_case(open_paths([str(path)]))))  # what is loaded or made once stays
    gc.collect()
    gc.disable()
    try:
        view(replay(open_case(open_paths([str(path)]))))
        assert gc.collect() == 0  # the collector is paused while files are read: a cycle would stay in memory
    finally:
        gc.enable()


@each_row("path", FILES)
def test_its_line_in_the_readme(path: Path) -> None:
    header = json.loads(path.read_text(encoding="utf-8").split("\n", 1)[0])
    row = next(line for line in README.splitlines() if f"`{path.name}`" in line)
    assert header["title"] in row
    assert header["story"] in row
    assert header["end_state"] in row
    assert ("recorded" if "recorded on loopback" in header["provenance"] else "by hand") in row


@each_row("story", STORIES)
def test_the_hand_written_ones_are_what_the_maker_makes(story) -> None:
    assert (FOLDER / story.file).read_text(encoding="utf-8") == file_text(story)


def test_the_program_knows_them_all_and_opens_the_first_story_first() -> None:
    found = samples()
    assert [Path(sample.path).name for sample in found] == sorted(path.name for path in [*FILES, *AGENTS])
    assert found[0].title.startswith("A gateway that cuts")


def test_the_first_sample_completes_when_the_attempts_are_raised() -> None:
    shown = view_of(FILES[0])
    made = branch(shown, settings_of({"continuation_max_attempts": "5"}, Settings()))
    assert (made.view.turns[0].final_state.value, made.view.turns[0].terminal) == ("Complete", "completed")
    assert {step.fidelity.value for step in made.view.steps} == {"RECORDED"}
    before, after = shown.turns[0].joined_text.text, made.view.turns[0].joined_text.text
    assert after.startswith(before)
    assert after.endswith("only after two people have said so.")


def test_the_first_sample_tells_that_the_cut_call_was_run() -> None:
    shown = view_of(FILES[0])
    assert shown.headline().startswith("CUT CALL RUN  turn 2 of 2")
    assert "write_file" in shown.headline()


WORDS = {
    "07": ("max_tokens", None, "held"),
    "08": ("max_tokens", "tool_calls", "held"),
    "09": ("max_tokens", "length", "held"),
    "11": ("context_window_exceeded", "model_context_window_exceeded", None),
    "12": ("safety_blocked", "SAFETY", None),
    "14": ("max_tokens", "max_tokens", "held"),
    "16": ("max_tokens", "completed", None),
}


@each_row("number", WORDS)
def test_the_first_response_of_a_story(number: str) -> None:
    (path,) = (path for path in FILES if path.name.startswith(number))
    facts = view_of(path).responses[0]
    stop, raw, verdict = WORDS[number]
    assert (facts.judgement.stop.normalized, facts.exchange.response.raw_stop_reason) == (Stop(stop), raw)
    assert {v.admission.value for v in facts.verdicts} == ({verdict} if verdict else set())


def test_the_provenance_names_no_place_on_anybodys_machine() -> None:
    for path in FILES:
        assert not re.search(r"/(home|root|work|Users|tmp)/", path.read_text(encoding="utf-8")), path.name
