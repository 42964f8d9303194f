"""The scenarios that come with the program, in all formats, streamed and whole, to the end that they state.

What a run says of such a turn is what is said of its recording; where one fault is all, `test_faults` shows that.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from inspector.provider import Provider, Story, all_stories, serving
from inspector.provider.faults import why_unplayable
from inspector.provider.reading import FOLDER
from loop_core.judge.arguments import parse
from loop_core.wire.servers import GEMINI, MESSAGES, OLLAMA, RESPONSES
from tests.live.test_read_again import play_and_read
from tests.scenes.provider import IMPATIENT, QUICK, each_way, in_each_way, play

STORIES = all_stories()
BLIND = {("lying-router", GEMINI), ("lying-router", OLLAMA)}
"""Where the call that was cut is not sent at all, and the word says that nothing is missing: nobody can tell."""


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with serving() as running:
        yield running


def ends(story: Story, api: str, stream: bool) -> str:
    mode = "stream" if stream else "whole"
    keys = (f"{api} {mode}", api, mode)
    return next((story.ends_in[key] for key in keys if key in story.ends_in), story.ends)


@pytest.mark.parametrize("name", STORIES)
def test_a_scenario_ends_as_it_says(name: str, provider: Provider, tmp_path: Path) -> None:
    story, line = STORIES[name], IMPATIENT if name == "stalled" else QUICK

    def check(api: str, stream: bool) -> None:
        where = f"{api} {'stream' if stream else 'whole'}"
        meant = {call.name: parse(call.arguments).value for answer in story.answers for call in answer.calls}
        cap, tools = story.max_tokens or 400, tuple(each.tool for each in story.tools)
        got = (play(provider, api, stream, name, tools=tools, cap=cap, line=line)
               if len(story.faults) == 1 or why_unplayable(story, api, stream) else
               play_and_read(provider, api, stream, story, tmp_path, cap=cap, line=line))
        if why_unplayable(story, api, stream):
            assert got.turn.terminal == "error", where
            return
        assert got.turn.terminal == ends(story, api, stream), (where, got.turn.notice)
        for tool, arguments in got.ran:
            assert arguments == meant[tool], where
        if (name, api) in BLIND:
            assert not got.ran, where
        elif got.turn.terminal == "completed":
            said = [text for number in range(len(got.turn.answers)) if (text := got.answer(number))]
            assert said == [answer.text for answer in story.answers], where
            assert [tool for tool, _ in got.ran] == [call.name for a in story.answers for call in a.calls], where

    in_each_way(check, story, [*STORIES].index(name))


def test_there_is_one_file_a_scenario_and_none_has_two_names() -> None:
    assert len(STORIES) >= 12
    assert {path.stem for path in FOLDER.glob("*.yaml")} == set(STORIES)


ONE = {"commentary": RESPONSES, "fallback": MESSAGES}
"""What only one format has words for."""


def test_every_scenario_means_something_in_most_formats() -> None:
    for story in STORIES.values():
        said = {api for api, stream in each_way if not why_unplayable(story, api, stream)}
        assert said == {ONE[story.name]} if story.name in ONE else len(said) >= 3, story.name
