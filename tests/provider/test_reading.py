"""Scenario files: what they hold, and that every mistake is told with file, line and place."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from inspector.provider import all_stories, reading, serving
from inspector.provider.reading import FOLDER, parse_story, read, story_of
from inspector.provider.scenarios import Kind, PlacedFault
from loop_core.errors import CallerError

DOCS = Path(__file__).resolve().parents[2] / "docs"
GOOD = """\
name: mine
story: What happens.
tools:
  - name: write_file
answers:
  - reasoning: I think.
    text: I write.
    calls:
      - {name: write_file, arguments: {path: a.md}}
      - {name: write_file, arguments: '{"path": '}
  - text: Done.
faults:
  - {cut: 22, answer: 0, segment: 1}
  - {stalled: {frame: 2, seconds: 0.5}, when: repair}
  - {wrong_reason: eos}
"""


def test_a_file_is_read() -> None:
    story = parse_story(GOOD.encode(), "mine.yaml")
    assert (story.name, story.story, story.ends, story.max_tokens) == ("mine", "What happens.", "completed", None)
    first, last = story.answers
    assert (first.reasoning, first.text, last.text) == ("I think.", "I write.", "Done.")
    assert [(call.name, call.arguments) for call in first.calls] == [
        ("write_file", '{"path": "a.md"}'), ("write_file", '{"path": ')]
    assert story.faults == (
        PlacedFault("cut", 22, 0, 1), PlacedFault("stalled", {"frame": 2, "seconds": 0.5}, when=Kind.REPAIR),
        PlacedFault("wrong_reason", "eos"))
    assert story.tools[0].result == "done"


@pytest.mark.parametrize(("old", "new", "said"), [
    ("cut: 22", "cut: some", "mine.yaml:13: faults[0].cut: expected a valid integer"),
    ("cut: 22", "cut: 0", "mine.yaml:13: faults[0].cut: expected greater than or equal to 1"),
    ("cut: 22", "cutt: 22", "mine.yaml:13: faults[0].cutt: no field has this name"),
    ("{cut: 22,", "{", "mine.yaml:13: faults[0]: expected one fault, and none is given"),
    ("{cut: 22,", "{cut: 22, reset: 1,", "mine.yaml:13: faults[0]: expected one fault, and cut and reset is given"),
    ("answer: 0", "answer: 2", "mine.yaml:13: faults[0].answer: expected one of 2 answers, counted from 0"),
    ("when: repair", "when: later", "mine.yaml:14: faults[1].when: expected 'first', 'continuation' or 'repair'"),
    ("seconds: 0.5", "seconds: soon", "mine.yaml:14: faults[1].stalled.seconds: expected a valid number"),
    ("wrong_reason: eos", "no_reason: false", "mine.yaml:15: faults[2].no_reason: expected true; a fault that is not"),
    ("name: mine\n", "", "mine.yaml:1: name: expected, but missing"),
    ("name: mine", "name: My scenario", "mine.yaml:1: name: expected to match pattern"),
    ("  - text: Done.", "  - {}", "mine.yaml:11: answers[1]: expected reasoning, text or calls"),
    ("text: Done.", "text: 7", "mine.yaml:11: answers[1].text: expected a valid string"),
    ("- {name: write_file, arguments: {path: a.md}}", "- {name: other}",
     "mine.yaml:9: answers[0].calls[0].name: expected the name of one of the tools (write_file)"),
    ("story: What happens.", "story: a\nprofile: nobody", "mine.yaml:3: profile: no dialect is called 'nobody'"),
    ("story: What happens.", "name: again", "mine.yaml:2: name: expected each name once"),
    ("story: What happens.", "story: [", "mine.yaml:4: not valid YAML: "),
    ("story: What happens.", "story: &a x\nprompt: *a", "mine.yaml: expected no aliases"),
    ("story: What happens.", "story: !!python/object:os.system x", "mine.yaml:2: story: expected a plain value"),
    ("story: What happens.", f"story: {'9' * 5_000}", "mine.yaml:2: story: expected a plain value: Exceeds the limit"),
    ("story: What happens.", "? [a, b]\n: c", "expected a name as key"),
])
def test_a_mistake_is_told_with_its_line(old: str, new: str, said: str) -> None:
    assert GOOD.count(old) == 1
    with pytest.raises(CallerError) as told:
        parse_story(GOOD.replace(old, new).encode(), "mine.yaml")
    assert said in str(told.value)
    assert "\n" not in str(told.value)
    assert "sys.set_int" not in str(told.value)


@pytest.mark.parametrize(("data", "said"), [
    (b"", "mine.yaml: expected a scenario, but it is empty"),
    (b"- a", "mine.yaml:1: expected a mapping with name, story and answers"),
    (b"\xff\xfe\x00", "mine.yaml: expected UTF-8"),
    (b"a\x00b", "mine.yaml: not valid YAML: "),
    (b"name: a\nstory: b\nanswers: []\n", "mine.yaml:3: answers: not permitted: Tuple should have at least 1"),
])
def test_what_is_no_scenario_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(CallerError) as told:
        parse_story(data, "mine.yaml")
    assert said in str(told.value)


def test_a_file_that_is_not_there_and_a_name_that_nobody_has(tmp_path: Path) -> None:
    with pytest.raises(CallerError, match=r"none\.yaml: cannot be read: No such file"):
        read(tmp_path / "none.yaml")
    with pytest.raises(CallerError, match="no scenario is called 'nobody'; expected a file, or one of call, comm"):
        story_of(["nobody"])
    with pytest.raises(CallerError, match="two scenarios are called text"):
        story_of(["text", "text"])


def test_scenarios_are_taken_as_names_files_and_mappings(tmp_path: Path) -> None:
    path = tmp_path / "mine.yml"
    path.write_text(GOOD)
    given = {"name": "inline", "story": "x", "answers": [{"text": "Hi."}]}
    assert [story.name for story in story_of(["text", path, given, all_stories()["call"]])] == [
        "text", "mine", "inline", "call"]
    with pytest.raises(CallerError, match=r"^scenario: answers\[0\]\.text: expected a valid string"):
        story_of([{**given, "answers": [{"text": 1}]}])
    with serving(given) as provider:
        assert provider.stories[0].answers[0].text == "Hi."


def test_the_schema_is_published_and_fresh() -> None:
    assert (DOCS / "scenario.schema.json").read_text() == reading.schema(), (
        "stale; run inspector provider --schema > docs/scenario.schema.json")


def test_every_scenario_that_is_shipped_keeps_to_the_schema_and_a_mistake_does_not() -> None:
    check = jsonschema_rs.validator_for(json.loads(reading.schema()))
    for path in FOLDER.glob("*.yaml"):
        check.validate(yaml.safe_load(path.read_text()))
    good = yaml.safe_load(GOOD)
    assert check.is_valid(good)
    assert not check.is_valid({**good, "faults": [{"cut": "some"}]})
    assert not check.is_valid({**good, "fault": []})


@pytest.mark.parametrize("nested", ["[" * 3000 + "]" * 3000, "{a: " * 3000 + "}" * 3000])
def test_a_nesting_that_no_scenario_needs_is_refused_at_once(nested: str) -> None:
    with pytest.raises(CallerError, match=r"^mine.yaml:1: expected at most 64 levels of nesting$"):
        parse_story(f"x: {nested}".encode(), "mine.yaml")
