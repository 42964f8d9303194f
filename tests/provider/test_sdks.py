"""Every scenario that comes with the program, to the official SDK of every format, streamed and whole.

What an SDK saw is held against the scenario and the token rule, and against nothing that our decoders say.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator

import pytest

from inspector.provider import Intent, Provider, Story, all_stories, serving
from inspector.provider.faults import why_unplayable
from loop_core.wire.servers import (
    CHAT,
    COHERE,
    COMPLETIONS,
    CONVERSE,
    GEMINI,
    GENERATE,
    INVOKE,
    MESSAGES,
    OLLAMA,
    RESPONSES,
)
from tests.scenes.provider import ways_of
from tests.scenes.rows import each_row
from tests.scenes.sdks import SDKS, Question, Saw, client_of, close_all

STORIES = all_stories()
WAYS = {name: ways_of(story, row, [(api, stream) for api in SDKS for stream in (True, False)])
        for row, (name, story) in enumerate(STORIES.items())}
RAISES = {"reset", "error-after-200", "stalled"}
"""Scenarios in which an SDK raises instead of answering."""
WORDS = {  # an end, calls, a cut
    CHAT: ("stop", "tool_calls", "length"),
    RESPONSES: ("completed", "completed", "incomplete:max_output_tokens"),
    MESSAGES: ("end_turn", "tool_use", "max_tokens"),
    GEMINI: ("STOP", "STOP", "MAX_TOKENS"),
    CONVERSE: ("end_turn", "tool_use", "max_tokens"),
    OLLAMA: ("stop", "stop", "length"),
    "gemini_interactions": ("completed", "requires_action", "incomplete"),
    COHERE: ("COMPLETE", "TOOL_CALL", "MAX_TOKENS"),
    INVOKE: ("end_turn", "tool_use", "max_tokens"),
    COMPLETIONS: ("stop", "", "length"),
    GENERATE: ("stop", "", "length"),
}
OTHER_WORDS = {
    "filtered": {CHAT: "content_filter", COMPLETIONS: "content_filter",
                 RESPONSES: "incomplete:content_filter", MESSAGES: "refusal", INVOKE: "refusal", GEMINI: "SAFETY",
                 CONVERSE: "guardrail_intervened"},
    "paused": {MESSAGES: "pause_turn", INVOKE: "pause_turn", RESPONSES: "in_progress",
               "gemini_interactions": "requires_continuation"},
}
SENT: dict[str, Callable[[Intent], Intent]] = {
    "empty": lambda whole: Intent(),
    "reasoning-only": lambda whole: Intent(whole.reasoning),
    "leaked-call": lambda whole: Intent(text=whole.text + (
        '\n<tool_call>\n{"name": "page_team", "arguments": {"team": "platform"}}\n</tool_call>')),
    "no-call": lambda whole: Intent(text=whole.text),
}
"""What is sent of an answer that only looks finished."""
ENDED_AT = {"filtered": 8, "paused": 16}
"""Tokens after which something else than the budget ends the answer."""


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with serving(pace=0) as running:
        yield running
        close_all()


def ask(provider: Provider, api: str, stream: bool, story: Story, cap: int) -> Saw:
    return SDKS[api](Question(provider.url, story.name, story.prompt, cap, stream, story.tools))


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("api", SDKS)
@each_row("name", STORIES)
def test_an_sdk_sees_every_scenario(name: str, api: str, stream: bool, provider: Provider) -> None:
    if (api, stream) not in WAYS[name]:
        return
    story = STORIES[name]
    cap = story.max_tokens or 200
    why = why_unplayable(story, api, stream)
    if why:
        with pytest.raises(Exception, match=r"cannot be played in") as refused:
            ask(provider, api, stream, story, cap)
        assert why in str(refused.value)
        return
    if name in RAISES:
        with pytest.raises(Exception) as raised:
            ask(provider, api, stream, story, cap)
        assert not isinstance(raised.value, AssertionError)
        return
    if name == "rate-limited":
        for _ in range(2):
            with pytest.raises(Exception, match=r"(?i)too many requests"):
                ask(provider, api, stream, story, cap)
    seen = len(provider.seen)
    saw = ask(provider, api, stream, story, cap)
    if (name, api) == ("paused", GEMINI):  # this SDK goes on by itself, with the token
        assert [request.kind for request in provider.seen[seen:]] == ["first", "continuation"]
        assert (saw.text, saw.reason) == (story.answers[0].text, "STOP")
    else:
        check(story, api, stream, cap, saw)


def check(story: Story, api: str, stream: bool, cap: int, saw: Saw) -> None:
    """What was seen of the first answer, under the token rule: four characters are one."""
    answer = SENT.get(story.name, lambda whole: whole)(story.answers[0])
    limit = min([cap, *(fault.value for fault in story.faults if fault.name == "cut" and fault.segment in (None, 0))])
    room = ENDED_AT.get(story.name, limit)
    thought = min(room, math.ceil(len(answer.reasoning) / 4))
    said = min(room - thought, math.ceil(len(answer.text) / 4))
    assert saw.thinking == ("" if api == COMPLETIONS else answer.reasoning[: thought * 4]), "a completion is text"
    assert saw.text == answer.text[: said * 4]
    left, calls, spent = room - thought - said, list[tuple[str, str]](), thought + said
    cut = spent < math.ceil(len(answer.reasoning) / 4) + math.ceil(len(answer.text) / 4)
    for call in answer.calls if not cut else ():
        whole = call.name + (call.arguments or "")
        size = min(left, math.ceil(len(whole) / 4))
        calls.append((call.name, whole[len(call.name) : size * 4]))
        cut, spent = size * 4 < len(whole), spent + size
    seen_calls(api, stream, answer.calls[0].arguments or "" if answer.calls else "", calls, cut, saw)
    if story.name == "no-reason":
        assert saw.reason is None
        assert saw.tokens == (None if api == RESPONSES and stream else spent)
    else:
        lies = story.name == "lying-router"
        word = WORDS[api][2 if cut and not lies else 1 if calls or story.name == "no-call" else 0]
        assert saw.reason == OTHER_WORDS.get(story.name, {}).get(api, word)
        being_made = story.name == "paused" and api == RESPONSES  # usage is null until the response is there
        uncounted = (being_made and not stream) or (api in (OLLAMA, GENERATE) and not spent)
        assert saw.tokens == (None if uncounted else spent)
    assert saw.model in (story.name, None)


def seen_calls(api: str, stream: bool, whole: str, calls: list[tuple[str, str]], cut: bool, saw: Saw) -> None:
    if api in (GEMINI, OLLAMA) and cut:
        assert saw.calls == [], "a call that was cut is not sent"
    elif cut and calls and not stream and api in (MESSAGES, CONVERSE, INVOKE, "gemini_interactions"):
        ((name, given),) = saw.calls
        assert name == calls[0][0]
        members = json.loads(given)
        assert members.items() < json.loads(whole).items(), "an object of what was complete"
    elif cut or api in (CHAT, RESPONSES, COHERE):
        assert [tuple(call) for call in saw.calls] == calls
    else:
        assert [(name, json.loads(given)) for name, given in saw.calls] == [
            (name, json.loads(given)) for name, given in calls]


# -- a response that is fetched --------------------------------------------------------------------------------------

FETCHED = {"text": 1, "call": 1, "cut-call": 2, "cut-twice": 3, "thinking": 2, "filtered": 1, "empty": 2,
           "commentary": 1, "reasoning-only": 2}
"""Scenarios, and how many responses for their first answer are asked for."""


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("name", FETCHED)
def test_a_response_is_fetched_under_its_id_as_it_was_made(name: str, stream: bool, provider: Provider) -> None:
    """Its parts have the same ids too, also where it goes on with the one before it."""
    responses = client_of(CHAT, provider.url).responses
    before: dict[str, str] = {}
    for number in range(FETCHED[name]):
        words = "Please go on from where you stopped." if number else STORIES[name].prompt
        made = responses.create(model=name, input=words, max_output_tokens=25, stream=stream, **before)
        if stream:
            *_, last = made
            made = last.response
        assert provider.seen[-1].segment == number
        assert responses.retrieve(made.id).to_dict() == responses.retrieve(made.id).to_dict() == made.to_dict()
        before = {"previous_response_id": made.id}


def test_a_response_that_is_being_made_keeps_its_id(provider: Provider) -> None:
    story = STORIES["paused"]
    responses = client_of(CHAT, provider.url).responses
    made = responses.create(model="paused", input=story.prompt, background=True)
    assert (made.status, made.background, made.usage) == ("in_progress", True, None)
    done = responses.retrieve(made.id)
    assert (done.id, done.status, done.output_text) == (made.id, "completed", story.answers[0].text)
    assert done.to_dict() == responses.retrieve(made.id).to_dict()
    assert [item.id for item in made.output] == [item.id for item in done.output]
