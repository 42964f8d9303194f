"""Only what is altered changes: recorded bodies of every format, and every spelling of a cap."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inspector.live.target import graft_changes
from inspector.sessions import open_paths
from inspector.sessions.folders import samples
from loop_core.client.outgoing import body_of
from loop_core.values import Message, Role, TextPart
from loop_core.wire import wire

CASES = [(path.name, exchange) for path in (Path(sample.path) for sample in samples())
         for exchange in open_paths([str(path)]).exchanges if exchange.request is not None and exchange.request_json]
MORE = (Message(Role.ASSISTANT, (TextPart("So far, "),)), Message(Role.USER, (TextPart("Go on."),)))


def differences(before: Any, after: Any, at: str = "") -> set[str]:
    """The places at which two JSON values differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        return {each for name in before.keys() | after.keys()
                for each in differences(before.get(name), after.get(name), f"{at}/{name}")}
    if isinstance(before, list) and isinstance(after, list):
        longest = max(len(before), len(after))
        padded = [[*value, *[None] * (longest - len(value))] for value in (before, after)]
        return {each for index in range(longest)
                for each in differences(padded[0][index], padded[1][index], f"{at}/{index}")}
    return set() if before == after else {at}


@pytest.mark.parametrize(("name", "exchange"), CASES, ids=lambda each: each if isinstance(each, str) else "")
def test_a_recorded_body_keeps_all_but_its_cap(name: str, exchange: Any) -> None:
    request, recorded = exchange.request, exchange.request_json
    before = body_of(request, exchange.profile)
    assert graft_changes(recorded, before, before) == recorded
    made = graft_changes(recorded, before, body_of(replace(request, max_tokens=77), exchange.profile))
    places = differences(recorded, made)
    assert len(places) == 1
    assert wire(exchange.api).read_request(made, exchange.url).max_tokens == 77


@pytest.mark.parametrize(("name", "exchange"), CASES, ids=lambda each: each if isinstance(each, str) else "")
def test_a_history_that_goes_on_keeps_what_was_recorded_of_it(name: str, exchange: Any) -> None:
    request, recorded = exchange.request, exchange.request_json
    longer = replace(request, messages=(*request.messages, *MORE))
    made = graft_changes(recorded, body_of(request, exchange.profile), body_of(longer, exchange.profile))
    holder = next(name for name in ("messages", "input", "contents") if name in recorded)
    assert differences(recorded, made) <= {f"/{holder}/{at}" for at in range(len(recorded[holder]),
                                                                             len(made[holder]))} | (
        {f"/{holder}"} if isinstance(recorded[holder], str) else set())
    again = wire(exchange.api).read_request(made, exchange.url)
    assert [message.text for message in again.messages[-2:]] == ["So far, ", "Go on."]


@pytest.mark.parametrize(("recorded", "before", "after", "made"), [
    ({"max_completion_tokens": 5}, {"max_tokens": 5}, {"max_tokens": 9}, {"max_completion_tokens": 9}),
    ({"max_tokens": 5, "max_completion_tokens": 5}, {"max_tokens": 5}, {"max_tokens": 9},
     {"max_tokens": 9, "max_completion_tokens": 9}),
    ({"max_tokens": 5, "max_completion_tokens": 8}, {"max_tokens": 5}, {"max_tokens": 9},
     {"max_tokens": 9, "max_completion_tokens": 8}),
    ({"generation_config": {"max_output_tokens": 5, "topP": 1}}, {"generationConfig": {"maxOutputTokens": 5}},
     {"generationConfig": {"maxOutputTokens": 9}}, {"generation_config": {"max_output_tokens": 9, "topP": 1}}),
    ({"generationConfig": {"max_output_tokens": 5}}, {"generationConfig": {"maxOutputTokens": 5}},
     {"generationConfig": {"maxOutputTokens": 9}}, {"generationConfig": {"max_output_tokens": 9}}),
    ({"generation_config": {"maxOutputTokens": 5}}, {"generationConfig": {"maxOutputTokens": 5}},
     {"generationConfig": {"maxOutputTokens": 9}}, {"generation_config": {"maxOutputTokens": 9}}),
    ({"tool_config": {"mode": "AUTO"}}, {"toolConfig": {"mode": "AUTO"}}, {"toolConfig": {"mode": "ANY"}},
     {"tool_config": {"mode": "ANY"}}),
    ({"a": 1}, {}, {"max_tokens": 9}, {"a": 1, "max_tokens": 9}),
    ({"a": 1, "tool_choice": "auto"}, {"tool_choice": "auto"}, {}, {"a": 1}),
    ({"m": ["x", "y"]}, {"m": [1, 2]}, {"m": [1, 2, 3]}, {"m": ["x", "y", 3]}),
    ({"m": ["x", "y"]}, {"m": [1, 2]}, {"m": [1, 4]}, {"m": ["x", 4]}),
    ({"m": ["x"]}, {"m": [1, 2]}, {"m": [1, 4]}, {"m": [1, 4]}),
])
def test_spellings(recorded: Any, before: Any, after: Any, made: Any) -> None:
    assert graft_changes(recorded, before, after) == made
