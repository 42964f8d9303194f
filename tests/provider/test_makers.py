"""Bedrock InvokeModel, played in the bodies of each maker of models: turns of our own loop, and what is demanded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from inspector.provider import Provider, all_stories, serving
from inspector.provider.checks import check
from loop_core.wire.demands import RequestError
from loop_core.wire.servers import CONVERSE
from tests.scenes.provider import play
from tests.scenes.refusals import BODIES, REFUSALS, Refusal, body_of

API = "bedrock_invoke"
NOVA, LLAMA, LARGE, SMALL = (
    "amazon.nova-pro-v1:0", "meta.llama3-1-70b-instruct-v1:0", "mistral.mistral-large-2407-v1:0",
    "mistral.mistral-7b-instruct-v0:2",
)


@pytest.fixture(scope="module", params=["cut-twice", "cut-call", "empty", "no-reason"])
def name_and_provider(request: pytest.FixtureRequest) -> Iterator[tuple[str, Provider]]:
    with serving(request.param) as running:
        yield request.param, running


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("model", [NOVA, LLAMA, LARGE, SMALL])
def test_a_turn_ends_as_the_scenario_says(name_and_provider: tuple[str, Provider], model: str, stream: bool) -> None:
    name, provider = name_and_provider
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
     "stopSequences: this server does not support it"),
    (LLAMA, {"messages": []}, "prompt: expected string, but it is missing"),
    (LLAMA, {"prompt": "u", "max_tokens": 9}, "max_tokens: unknown field"),
    (LARGE, {"prompt": "u"}, "messages: expected array"),
    (LARGE, {"messages": [{"role": "bot"}]}, "role: expected one of"),
    (SMALL, {"prompt": "u", "max_tokens": 0}, "max_tokens: expected 1 or more"),
    (SMALL, {"prompt": "u", "stop": ["x"]}, "stop: this server does not support it"),
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


TALK: dict[str, Any] = {"messages": [{"role": "user", "content": "u"}]}


def calling(**more: Any) -> dict[str, Any]:
    """A history of Mistral's with a call and its result."""
    made = {"id": "c1", "function": {"name": "f", "arguments": "{}"}, **more}
    return {"messages": [*TALK["messages"], {"role": "assistant", "content": "", "tool_calls": [made]}]}


@pytest.mark.parametrize(("model", "body", "place"), [
    (NOVA, {**BODIES[CONVERSE], "schemaVersion": "messages-v2"}, "schemaVersion"),
    (NOVA, {**BODIES[CONVERSE], "inferenceConfig": {"max_new_tokens": 0}}, "inferenceConfig.max_new_tokens"),
    (NOVA, {**BODIES[CONVERSE], "inferenceConfig": {"topK": 129}}, "inferenceConfig.topK"),
    (NOVA, {**BODIES[CONVERSE], "inferenceConfig": {"topK": -1}}, "inferenceConfig.topK"),
    (LLAMA, {"prompt": "u", "max_gen_len": 8193}, "max_gen_len"),
    (LLAMA, {"prompt": "u", "temperature": 1.5}, "temperature"),
    (LLAMA, {"prompt": "u", "top_p": -0.5}, "top_p"),
    (SMALL, {"messages": []}, "prompt"),
    (SMALL, {"prompt": "u", "temperature": 1.5}, "temperature"),
    (SMALL, {"prompt": "u", "top_p": 1.5}, "top_p"),
    (SMALL, {"prompt": "u", "top_k": -1}, "top_k"),
    (LARGE, {"messages": []}, "messages"),
    (LARGE, {"messages": ["u"]}, "messages.0"),
    (LARGE, {"messages": [*TALK["messages"], {"role": "tool", "content": "r"}]}, "messages.1.tool_call_id"),
    (LARGE, {"messages": [*TALK["messages"], {"role": "assistant", "tool_calls": {}}]}, "messages.1.tool_calls"),
    (LARGE, calling(id=None), "messages.1.tool_calls.0.id"),
    (LARGE, calling(function={"arguments": "{}"}), "messages.1.tool_calls.0.function.name"),
    (LARGE, {**TALK, "tools": {}}, "tools"),
    (LARGE, {**TALK, "tools": [{"type": "function", "function": {}}]}, "tools.0.function.name"),
    (LARGE, {**TALK, "max_tokens": 8193}, "max_tokens"),
    (LARGE, {**TALK, "temperature": 1.5}, "temperature"),
    (LARGE, {**TALK, "top_p": 1.5}, "top_p"),
    (LARGE, {**TALK, "n": 2}, "n"),
    (LARGE, {**TALK, "stop": ["x"]}, "stop"),
    (LARGE, {**TALK, "response_format": {"type": "json_object"}}, "response_format"),
])
def test_what_a_maker_does_not_take_is_refused_by_its_place(model: str, body: dict[str, Any], place: str) -> None:
    with pytest.raises(RequestError) as refused:
        check(API, body, path=f"/model/{model}/invoke")
    assert str(refused.value).startswith(f"{place}: ")


@pytest.mark.parametrize("row", [
    row for row in REFUSALS[CONVERSE]
    if "stopSequences" not in row.place and not row.place.startswith("outputConfig.textFormat: the ")
], ids=lambda row: row.place)
def test_a_body_of_nova_is_refused_where_converse_refuses_it(row: Refusal) -> None:
    """Nova takes the messages and tools of Converse (AWS guide, "Complete request schema")."""
    with pytest.raises(RequestError) as refused:
        check(API, body_of(CONVERSE, row), path=f"/model/{NOVA}/invoke")
    assert str(refused.value).startswith(row.place)
