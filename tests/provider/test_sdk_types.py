"""Every body and every event of the scripted provider against the official SDKs' own types, strictly.

Faults of the sending (`reset`, `stalled`, `torn`, …) leave the frames as they are: what comes of them is valid up to
the byte at which the connection ends. The SDKs themselves are asked in `test_sdks`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from inspector.provider import Intent, Story, all_stories
from inspector.provider.faults import why_unplayable
from inspector.provider.frames import JSON
from inspector.provider.place import StoryPlace
from inspector.provider.reply import Reply, error_body, reply_at
from inspector.provider.scenarios import Kind
from loop_core.formats import FORMATS
from loop_core.values import Request
from loop_core.wire import wire
from loop_core.wire.servers import (
    CHAT,
    COHERE,
    COMPLETE,
    COMPLETIONS,
    CONVERSE,
    GEMINI,
    GENERATE,
    INVOKE,
    MESSAGES,
    OLLAMA,
    RESPONSES,
)
from tests.scenes import sdk_types
from tests.scenes.provider import BASES, STORIES, TOOLS, each_way
from tests.scenes.rows import share
from tests.scenes.sdk_types import EXTRA, Event, complaints, events, refusal_complaints

INTERACTIONS = "gemini_interactions"
EVERY = frozenset(each_way)
INVALID: dict[str, tuple[str, frozenset[tuple[str, bool]]]] = {
    "malformed_frame": ("a payload, or its checksum, is broken", EVERY),
    "unknown_reason": ("the word stands in no list", frozenset(
        way for way in each_way if way[0] not in (OLLAMA, GENERATE))),
    "no_reason": ("the reason is required there", frozenset({
        (CHAT, False), (CONVERSE, True), (CONVERSE, False), (INTERACTIONS, True), (INTERACTIONS, False),
        (COHERE, False), (COMPLETIONS, False)})),
    "no_index": ("the index is required", frozenset((api, True) for api in (
        CHAT, RESPONSES, MESSAGES, CONVERSE, INVOKE, INTERACTIONS))),
}
"""Faults that are meant to be invalid -> why, and where."""


def is_valid(story: Story, api: str, stream: bool) -> bool:
    return not any((api, stream) in INVALID[fault.name][1] for fault in story.faults if fault.name in INVALID)


def is_refused(story: Story, api: str, stream: bool) -> bool:
    return bool(why_unplayable(story, api, stream))


def replies(story: Story, api: str, stream: bool) -> Iterator[Reply]:
    """Each answer, its rest and its calls alone: whole, cut at once, and cut inside the first call.

    Under one name for all stories: what a fault of the sending leaves as it is need not be checked again.
    """
    story = replace(story, name="story")
    tools = tuple(each.tool for each in story.tools)
    for number, answer in enumerate(story.answers):
        asked = [StoryPlace(number)]
        if answer.text:
            asked.append(StoryPlace(number, len(answer.text) // 2, 1, kind=Kind.CONTINUATION))
        if answer.calls:
            asked.append(StoryPlace(number, len(answer.text), 1, kind=Kind.REPAIR))
        inside = (len(answer.reasoning) + len(answer.text)) // 4 + 10
        for cap in (400, 3, inside):
            for place in asked:
                request = Request(api, model=story.name, tools=tools, max_tokens=cap, stream=stream)
                yield reply_at(story, request, place, stream, None)


@cache
def body_complaints(api: str, stream: bool, body: bytes) -> tuple[str, ...]:
    return tuple(each for event in events(api, stream, body) for each in complaints(api, stream, event))


def objections(story: Story, api: str, stream: bool) -> dict[str, str]:
    """What there is against a story, each with the first answer that shows it."""
    found: dict[str, str] = {}
    for reply in replies(story, api, stream):
        body = b"".join(reply.frames)
        if reply.status >= 400:
            said = refusal_complaints(api, reply.status, body)
        else:
            said = [*body_complaints(api, reply.headers["content-type"] != JSON, body)]
        if reply.refusal is not None:
            said += refusal_complaints(api, reply.refusal.status, b"".join(reply.refusal.frames))
        for each in said:
            found.setdefault(each, f"answer {reply.place.answer}, {reply.place.kind}, {reply.end}")
    return found


@pytest.mark.parametrize(("api", "stream"), each_way)
def test_every_scenario_is_what_the_sdk_declares(api: str, stream: bool) -> None:
    stories = [story for story in all_stories().values() if not is_refused(story, api, stream)]
    valid = [story for story in stories if is_valid(story, api, stream)]
    row = each_way.index((api, stream))
    assert {story.name: found for story in share(valid, row) if (found := objections(story, api, stream))} == {}
    assert {story.name for story in stories} - {story.name for story in valid} <= {"no-reason"}


@pytest.mark.parametrize(("api", "stream"), each_way)
def test_every_fault_is_what_the_sdk_declares_unless_it_is_meant_otherwise(api: str, stream: bool) -> None:
    stories = [story for story in STORIES if not is_refused(story, api, stream)]
    for story in share(stories, each_way.index((api, stream))):
        if is_valid(story, api, stream):
            assert objections(story, api, stream) == {}, story.name
            continue
        try:
            found: object = objections(story, api, stream)
        except Exception as why:  # noqa: BLE001  (whatever a broken frame makes of a parser)
            found = why
        assert found, f"{story.name} is left out, and is valid"


@pytest.mark.parametrize("status", [400, 404, 429, 500, 503, 529])
@pytest.mark.parametrize("api", FORMATS)
def test_every_error_is_what_the_sdk_declares(api: str, status: int) -> None:
    assert refusal_complaints(api, status, error_body(api, status, "Not today.")) == []


# -- the checker -----------------------------------------------------------------------------------------------------

Change = Callable[[dict[str, Any], str, str], bool]
"""Changes the member of an object under a key, which stands at a place; whether it did what is looked for."""
RICH = Story("rich", "all kinds of parts", (Intent("Let me think.", BASES["calls"][0].text, BASES["calls"][0].calls),),
             TOOLS)
FREE = {MESSAGES: {"input"}, CONVERSE: {"input"}, GEMINI: {"args"}, OLLAMA: {"arguments"},
        "gemini_interactions": {"arguments"}, INVOKE: {"input"}}
"""Members that hold a call's arguments, which are no part of the format."""
REQUIRED: dict[str, str] = {
    CHAT: """id object created model choices choices.index choices.delta choices.message choices.message.role
        choices.delta.tool_calls.index choices.message.tool_calls.id choices.message.tool_calls.function.arguments
        usage.completion_tokens usage.prompt_tokens usage.total_tokens""",
    RESPONSES: """type sequence_number response item item.type item_id output_index content_index summary_index part
        delta logprobs text part.text arguments id object created_at model output tools tool_choice parallel_tool_calls
        output.type output.call_id output.arguments output.name output.summary output.content output.role
        output.summary.text output.content.annotations output.content.text usage.input_tokens usage.output_tokens
        usage.input_tokens_details usage.input_tokens_details.cached_tokens
        usage.input_tokens_details.cache_write_tokens usage.output_tokens_details
        usage.output_tokens_details.reasoning_tokens usage.total_tokens""",
    MESSAGES: """id type role model content content.type content.text content.thinking content.signature content.id
        content.name content.input usage usage.output_tokens index delta delta.type delta.text delta.thinking
        delta.partial_json message message.id message.model message.usage message.usage.input_tokens content_block
        content_block.type""",
    GEMINI: "",  # this SDK requires nothing
    CONVERSE: """output stopReason usage usage.inputTokens usage.outputTokens usage.totalTokens metrics
        metrics.latencyMs output.message.role output.message.content output.message.content.toolUse.toolUseId role
        contentBlockIndex delta output.message.content.toolUse.name output.message.content.toolUse.input start
        start.toolUse.name delta.toolUse.input""",
    "gemini_interactions": """status event_type interaction interaction.id interaction.status index step step.type
        step.id step.name step.arguments delta delta.type delta.text steps.type steps.content.type steps.content.text
        steps.id steps.name steps.arguments steps.summary.type steps.summary.text""",
    COHERE: """finish_reason message type delta.message.tool_calls.id message.tool_calls.id""",
    COMPLETIONS: """id object created model choices choices.index choices.text usage.completion_tokens
        usage.prompt_tokens usage.total_tokens""",
    COMPLETE: "type id completion model",
    GENERATE: "",  # nor does this one here
    OLLAMA: """message message.role message.tool_calls.function message.tool_calls.function.name
        message.tool_calls.function.arguments""",
}
"""Members that are required wherever they stand in the answer above, as the SDKs' sources say; lists are left out of
the places, and so is the `response` of an event."""
WORDS = {CHAT: {"object", "finish_reason"}, RESPONSES: {"type", "object", "status"}, MESSAGES: {"type", "role"},
         GEMINI: {"finishReason"}, CONVERSE: {"stopReason", "role"}, OLLAMA: set(),
         "gemini_interactions": {"status", "type", "event_type"}, COHERE: {"type", "role", "finish_reason"},
         INVOKE: {"type", "role"}, COMPLETIONS: {"object", "finish_reason"}, COMPLETE: {"type", "stop_reason"},
         GENERATE: set()}
"""Members that hold one of a list of words."""


REQUIRED[INVOKE] = REQUIRED[MESSAGES]


def story_events(api: str, stream: bool) -> list[Event]:
    rich = replace(RICH, answers=(replace(RICH.answers[0], calls=()),)) if wire(api).no_tools else RICH
    reply = reply_at(rich, Request(api, model="m", stream=stream), StoryPlace(0), stream, None)
    return events(api, stream, b"".join(reply.frames))


def members(api: str, value: Any, place: str = "") -> Iterator[tuple[dict[str, Any], str, str]]:
    """Every object in a value with each of its keys and their places; what is in arguments is left out."""
    if isinstance(value, list):
        for inner in value:
            yield from members(api, inner, place)
    elif isinstance(value, dict):
        for key in list(value):
            at = f"{place}.{key}".lstrip(".")
            yield value, key, at
            if key not in FREE.get(api, ()):
                yield from members(api, value[key], "" if at == "response" else at)


def each_change(api: str, stream: bool, change: Change) -> Iterator[tuple[str, list[str]]]:
    """The place of each member that is changed, one at a time, and the complaints about the event then."""
    for event in story_events(api, stream):
        for number in range(len(list(members(api, event.value)))):
            value = copy.deepcopy(event.value)
            holder, key, place = list(members(api, value))[number]
            if change(holder, key, place):
                yield place, complaints(api, stream, Event(event.name, value))


def accepted_places(found: list[tuple[str, list[str]]]) -> list[str]:
    return [place for place, said in found if not said]


OTHERS: dict[type, Any] = {str: 5, int: "5", float: "5", bool: "no", list: {}, dict: []}


@pytest.mark.parametrize(("api", "stream"), each_way)
def test_the_checker_accepts_no_other_type_anywhere(api: str, stream: bool) -> None:
    def other_type(holder: dict[str, Any], key: str, place: str) -> bool:
        document = api == CONVERSE and key in FREE[api]  # may be anything
        fixed = type(holder[key]) in OTHERS and not document
        holder[key] = OTHERS.get(type(holder[key]))
        return fixed

    found = list(each_change(api, stream, other_type))
    assert len(found) > (4 if api == COMPLETE else 8)
    assert accepted_places(found) == []


@pytest.mark.parametrize(("api", "stream"), each_way)
def test_the_checker_accepts_no_unknown_member_anywhere(api: str, stream: bool) -> None:
    def one_more(holder: dict[str, Any], key: str, place: str) -> bool:
        return bool(holder.setdefault("not_a_member", 1))

    found = list(each_change(api, stream, one_more))
    assert len(found) > (4 if api == COMPLETE else 8)
    assert accepted_places(found) == []


@pytest.mark.parametrize("api", FORMATS)
def test_the_checker_misses_what_is_required(api: str) -> None:
    required = set(REQUIRED[api].split())

    def without(holder: dict[str, Any], key: str, place: str) -> bool:
        del holder[key]
        return place in required

    found = [each for stream in (True, False) for each in each_change(api, stream, without)]
    assert accepted_places(found) == []
    assert {place for place, _ in found} == required


@pytest.mark.parametrize("api", FORMATS)
def test_the_checker_knows_the_words(api: str) -> None:
    def other_word(holder: dict[str, Any], key: str, place: str) -> bool:
        held, holder[key] = holder[key], "ran_dry"
        return key in WORDS[api] and isinstance(held, str)

    found = [each for stream in (True, False) for each in each_change(api, stream, other_word)]
    assert accepted_places(found) == []
    assert {place.rpartition(".")[2] for place, _ in found} == WORDS[api]


def test_every_extra_member_is_needed() -> None:
    sdk_types.USED.clear()
    for stream in (True, False):
        for event in story_events(CHAT, stream):
            assert complaints(CHAT, stream, event) == []
    assert set(EXTRA) == sdk_types.USED
