"""Bedrock InvokeModel, played in the bodies of each maker of models: turns of our own loop, and what is demanded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from inspector.provider import Provider, all_stories, serving
from inspector.provider.checks import check
from loop_core.wire.demands import RequestError
from tests.scenes.provider import play

API = "bedrock_invoke"
NOVA, LLAMA, LARGE, SMALL = (
    "amazon.nova-pro-v1:0", "meta.llama3-1-70b-instruct-v1:0", "mistral.mistral-large-2407-v1:0",
    "mistral.mistral-7b-instruct-v0:2",
)


@pytest.fixture(scope="module", params=["cut-twice", "cut-call", "empty", "no-reason"])
def served(request: pytest.FixtureRequest) -> Iterator[tuple[str, Provider]]:
    with serving(request.param) as running:
        yield request.param, running


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("model", [NOVA, LLAMA, LARGE, SMALL])
def test_a_turn_ends_as_the_scenario_says(served: tuple[str, Provider], model: str, stream: bool) -> None:
    name, provider = served
    story = all_stories()[name]
    if story.tools and model in (LLAMA, SMALL):
        return  # one text has no calls
    got = play(provider, API, stream, model, tools=tuple(each.tool for each in story.tools))
    if name == "no-reason":
        assert got.turn.terminal in ("error", "interrupted")
        return
    assert got.turn.terminal == "completed", got.turn.notice
    assert [got.answer(number) for number in range(len(got.turn.answers)) if got.answer(number)] == [
        answer.text for answer in story.answers]
    assert [tool for tool, _ in got.ran] == [call.name for answer in story.answers for call in answer.calls]
    if name == "cut-twice":
        assert [len(answer) for answer in got.turn.answers if answer] == [3]


@pytest.mark.parametrize(("model", "body", "why"), [
    (NOVA, {"messages": []}, "messages: expected 1 element"),
    (NOVA, {"messages": [{"role": "user", "content": [{"text": "u"}]}], "inferenceConfig": {"stopSequences": ["x"]}},
     "stopSequences: this is not served here"),
    (LLAMA, {"messages": []}, "prompt: expected string, and it is missing"),
    (LLAMA, {"prompt": "u", "max_tokens": 9}, "max_tokens: no member of this name"),
    (LARGE, {"prompt": "u"}, "messages: expected array"),
    (LARGE, {"messages": [{"role": "bot"}]}, "role: expected one of"),
    (SMALL, {"prompt": "u", "max_tokens": 0}, "max_tokens: expected 1 or more"),
    (SMALL, {"prompt": "u", "stop": ["x"]}, "stop: this is not served here"),
    ("anthropic.claude-x", {"prompt": "u"}, "anthropic_version"),
])
def test_each_maker_has_demands_of_its_own(model: str, body: dict[str, Any], why: str) -> None:
    with pytest.raises(RequestError, match=why):
        check(API, body, path=f"/model/{model}/invoke")


@pytest.mark.parametrize(("model", "body"), [
    (NOVA, {"schemaVersion": "messages-v1", "messages": [{"role": "user", "content": [{"text": "u"}]}],
            "inferenceConfig": {"max_new_tokens": 9, "topK": 20}}),
    (LLAMA, {"prompt": "u", "max_gen_len": 9, "temperature": 0.5, "top_p": 0.9}),
    (LARGE, {"messages": [{"role": "user", "content": "u"}], "max_tokens": 9}),
    (SMALL, {"prompt": "u", "max_tokens": 9, "top_k": 50}),
])
def test_what_each_maker_documents_is_served(model: str, body: dict[str, Any]) -> None:
    check(API, body, path=f"/model/{model}/invoke")
