"""A turn that is given another text, asked live: what is sent, and that the branch is made again without asking."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inspector.live.target import with_text
from loop_core.values import Stop
from tests.live.test_again import Runner, document, run_here, says
from tests.scenes.live_branch import request_body, with_a_call, write_two_turns
from tests.scenes.loopback import Fake

__all__ = ["run_here"]


def texts(body: Any) -> list[str]:
    """What each message of a request says."""
    return [each["content"] if isinstance(each["content"], str) else "".join(
        part["text"] for part in each["content"] or ()) for each in body["messages"]]


def test_an_edited_message_is_asked_live_and_nothing_else_is_changed(
    run_here: Runner, fake: Fake, tmp_path: Path
) -> None:
    path = write_two_turns(fake.url, tmp_path / "s.har")
    fake.answers = [says("Four, five.")]
    done = run_here("replay", path, "--edit", "1.user=Count on.", "--live", "--yes", "--json", "--save")
    assert done.code == 0, done.err
    (sent,) = [each.json for each in fake.got]
    expected = request_body()
    expected["messages"][0]["content"][0]["text"] = "Count on."  # what stands beside the text in its block stays
    assert sent == expected
    found = document(done)
    assert [each["after"] for each in found["edited"]] == ["Count on."]
    assert (found["recording_stops_at"], found["first_live"]) == (None, 2)
    turn = found["explain"]["turns"][0]
    assert (turn["merged_text"], found["turns"][0]["after"]["terminal_reason"]) == ("Four, five.", "completed")
    (key,) = [each["key"] for each in json.loads(run_here("branches", path, "--json").out)["branches"]]
    again = document(run_here("replay", path, "--branch", key, "--against", "original", "--json"))
    assert len(fake.got) == 1, "it is made again from its recording"
    assert (again["edited"], again["turns"][0]) == (found["edited"], found["turns"][0])


def test_an_edited_result_is_asked_live_behind_the_recorded_call(run_here: Runner, fake: Fake, tmp_path: Path) -> None:
    path = with_a_call(fake.url, tmp_path / "s.har")
    fake.answers = [says("It rains.")]
    done = run_here("replay", path, "--edit", "1.result=rain", "--live", "--yes", "--json")
    assert done.code == 0, done.err
    (sent,) = [each.json for each in fake.got]
    assert [each["role"] for each in sent["messages"]] == ["user", "assistant", "tool"]
    assert texts(sent)[-1] == "rain"
    found = document(done)
    assert (found["first_live"], found["first_difference"]) == (5, 4)
    assert found["explain"]["turns"][0]["merged_text"] == "It rains."


def test_an_edited_prompt_answers_a_call_that_is_made_again_from_the_recording(
    run_here: Runner, fake: Fake, tmp_path: Path
) -> None:
    from tests.scenes.live_branch import OSLO

    path = with_a_call(fake.url, tmp_path / "s.har")
    fake.answers = [says("", Stop.TOOL_CALL, OSLO), says("It rains.")]
    done = run_here("replay", path, "--edit", "1.user=Umbrella?", "--edit", "1.result=rain", "--from-step", "1",
                   "--live",
                    "--yes", "--json")
    assert done.code == 0, done.err
    assert [texts(each.json) for each in fake.got] == [["Umbrella?"], ["Umbrella?", "", "rain"]]
    assert [each["text"] for each in document(done)["explain"]["responses"] if each.get("fidelity") == "LIVE"][-1] == (
        "It rains.")


def test_a_text_that_the_body_says_twice_is_replaced_in_its_message_alone(
    run_here: Runner, fake: Fake, tmp_path: Path
) -> None:
    path = write_two_turns(fake.url, tmp_path / "s.har", vendor={"note": "Count."})
    fake.answers = [says("Four.")]
    done = run_here("replay", path, "--edit", "1.user=Count on.", "--live", "--yes", "--json")
    assert done.code == 0, done.err
    (sent,) = [each.json for each in fake.got]
    assert texts(sent) == ["Count on."]
    assert sent["vendor"] == {"note": "Count."}


@pytest.mark.parametrize(("body", "found"), [
    ({"a": ["x", {"b": "old"}]}, {"a": ["x", {"b": "new"}]}), ({"a": "old", "b": ["old"]}, None), ({"a": 1}, None),
    ({"old": 1}, None),
])
def test_a_text_is_replaced_where_it_stands_once(body: dict[str, Any], found: dict[str, Any] | None) -> None:
    assert with_text(body, "old", "new") == found
