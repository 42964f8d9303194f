"""The budget, the tool choice and every dialect, without a server: what is sent decodes to what was meant."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from inspector.provider.dialects import DIALECTS
from inspector.provider.faults import FAULTS
from inspector.provider.reply import dialect_for, error_body
from inspector.provider.scenarios import PlacedFault, Story
from loop_core.errors import CallerError
from loop_core.formats import FORMATS
from loop_core.judge.arguments import parse
from loop_core.judge.classify import judge
from loop_core.judge.gate import Admission, admit_all
from loop_core.values import Message, ReasoningPart, Request, Role, Stop, TextPart
from loop_core.wire import decode, wire
from loop_core.wire.servers import CHAT, OLLAMA, RESPONSES
from loop_core.wire.serving import Moment
from tests.scenes.provider import BASES, CALLING, MEANT, PAGE, TOOLS, WRITE, each_way, reply
from tests.scenes.rows import share

THOUGHT = "The metrics come first, then the consumers, and then what the two have to do with each other."
STORY = Story("all", "x", (replace(BASES["calls"][0], reasoning=THOUGHT),), TOOLS)


def request_of(api: str, stream: bool = True, **more: object) -> Request:
    said = Message(Role.USER, (TextPart("Go on."),))
    return Request(api, (said,), "m", (WRITE, PAGE), stream=stream, **more)  # type: ignore[arg-type]


def size(text: str) -> int:
    return math.ceil(len(text) / 4)


def total() -> int:
    answer = STORY.answers[0]
    return size(answer.reasoning) + size(answer.text) + sum(
        size(call.name + (call.arguments or "")) for call in answer.calls)


@pytest.mark.parametrize(("api", "stream"), [way for way in each_way if way[0] in CALLING])
def test_an_answer_is_cut_at_the_cap_that_was_sent_and_usage_agrees(api: str, stream: bool) -> None:
    full = total()
    for cap in (*share(range(1, full + 3), api), None):
        came = reply(STORY, request_of(api, stream, max_tokens=cap), stream)
        response = decode(api, b"".join(came.frames))
        spent = full if cap is None else min(cap, full)
        assert came.tokens == spent
        assert response.usage is not None
        assert response.usage.output_tokens == spent
        assert not [finding for finding in response.findings if finding.rule.startswith(("frame.", "body."))]
        assert (response.stop_reason.normalized is Stop.MAX_TOKENS) is (spent < full)
        thinking = "".join(part.text for part in response.parts if type(part) is ReasoningPart)
        assert thinking == THOUGHT[: spent * 4]
        assert (response.text or "") == STORY.answers[0].text[: max(0, spent - size(THOUGHT)) * 4]
        if api != OLLAMA:
            assert response.usage.reasoning_tokens in (min(spent, size(THOUGHT)), None)


def test_thinking_counts_unless_the_dialect_says_otherwise() -> None:
    cap = 6
    counted = reply(STORY, request_of(CHAT, max_tokens=cap), True)
    free = reply(STORY, request_of(CHAT, max_tokens=cap), True, "xai")
    assert (counted.tokens, free.tokens) == (cap, size(THOUGHT) + cap)
    assert decode(CHAT, b"".join(counted.frames)).text is None
    assert decode(CHAT, b"".join(free.frames)).text == STORY.answers[0].text


@pytest.mark.parametrize(("choice", "text", "names"), [
    (None, True, ["page_team", "write_file"]), ("auto", True, ["page_team", "write_file"]), ("none", True, []),
    ("any", False, ["page_team", "write_file"]), ("tool:write_file", False, ["write_file"]),
])
@pytest.mark.parametrize("api", CALLING)
def test_a_tool_choice_is_kept_to(api: str, choice: str | None, text: bool, names: list[str]) -> None:
    came = decode(api, b"".join(reply(STORY, request_of(api, tool_choice=choice), True).frames))
    assert [call.name for call in came.tool_calls] == names
    assert (came.text is not None) is text


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_every_dialect_speaks_under_every_budget(dialect: object, stream: bool) -> None:
    """And no call is released of which not all came."""
    name, api = dialect.name, dialect.api  # type: ignore[attr-defined]
    if api not in CALLING:
        with pytest.raises(CallerError, match=r"the scenario all cannot be played in \w+: a .* neither tools nor"):
            reply(STORY, request_of(api, stream), stream, name)
        return
    for cap in (*share(range(1 + stream, total() + 1, 3), name), None):
        came = reply(STORY, request_of(api, stream, max_tokens=cap), stream, name)
        response = decode(api, b"".join(came.frames), http_status=came.status)
        request = request_of(api, stream, max_tokens=cap)
        for verdict in admit_all(response.tool_calls, judge(response, request), request.tools):
            if verdict.admission is Admission.READY:
                assert parse(verdict.call.arguments).value == MEANT[verdict.call.name]
        if came.end is Moment.CALLED:
            assert [call.name for call in response.tool_calls] == ["page_team", "write_file"]
            assert response.text == STORY.answers[0].text


@pytest.mark.parametrize(("api", "name", "stream"), [
    *((CHAT, name, True) for name in (
        "azure_openai", "cerebras", "dynamo", "gemini", "lm_studio", "moonshot", "oci", "ollama", "sglang", "tgi")),
    ("gemini_generate", "vertex", True), (CHAT, "mistral", False), (CHAT, "github_copilot", False),
])
def test_what_a_server_does_to_streams_alone_or_to_whole_bodies_alone_is_not_done_to_the_other(
    api: str, name: str, stream: bool
) -> None:
    assert dialect_for(api, stream, name).quirks
    assert not dialect_for(api, not stream, name).quirks


def test_a_profile_of_another_format_leaves_a_format_its_own_server() -> None:
    assert dialect_for(CHAT, True, "mimo").name == "openai_chat/mimo"
    assert dialect_for(RESPONSES, True, "mimo").name == "openai_responses/openai"
    assert dialect_for(CHAT, False, "github_copilot").quirks
    assert not dialect_for(CHAT, True, "github_copilot").quirks, "it splits whole bodies only"
    with pytest.raises(CallerError, match="no dialect is called 'nobody'"):
        dialect_for(CHAT, True, "nobody")


def test_the_scenarios_profile_is_taken_and_the_command_lines_goes_before_it() -> None:
    story = replace(STORY, profile="mimo")
    cut = request_of(CHAT, max_tokens=4)
    assert decode(CHAT, b"".join(reply(story, cut, True).frames)).raw_stop_reason is None
    assert decode(CHAT, b"".join(reply(story, cut, True, "openai").frames)).raw_stop_reason == "length"


@pytest.mark.parametrize("api", FORMATS)
@pytest.mark.parametrize("status", [400, 404, 429, 500, 503, 529])
def test_an_error_is_told_in_every_format(api: str, status: int) -> None:
    response = decode(api, error_body(api, status, "Not today."), http_status=status)
    assert response.stop_reason.normalized is Stop.ERROR
    assert response.error is not None
    assert response.error.message == "Not today."
    assert response.error.retryable is (status in (429, 500, 503, 529))


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("api", [api for api in FORMATS if api not in CALLING])
def test_a_text_without_calls_is_cut_at_the_cap_that_was_sent(api: str, stream: bool) -> None:
    """Thinking is of the tokens too, also where it is not sent, and where none are counted."""
    story = replace(STORY, answers=(replace(STORY.answers[0], calls=()),))
    full = size(THOUGHT) + size(STORY.answers[0].text)
    for cap in (*range(1, full + 3), None):
        came = reply(story, replace(request_of(api, stream, max_tokens=cap), tools=()), stream)
        response = decode(api, b"".join(came.frames))
        spent = full if cap is None else min(cap, full)
        assert came.tokens == spent
        counted = None if "usage" in wire(api).loses else spent
        assert (response.usage.output_tokens if response.usage else None) == counted
        assert (response.stop_reason.normalized is Stop.MAX_TOKENS) is (spent < full)
        assert (response.text or "") == story.answers[0].text[: max(0, spent - size(THOUGHT)) * 4]
        assert response.reasoning_content == (THOUGHT[: spent * 4] if api == "ollama_generate" else None)


def test_a_fault_without_a_meaning_is_refused() -> None:
    story = replace(STORY, faults=(PlacedFault("no_index"),))
    with pytest.raises(CallerError, match=r"the scenario all cannot be played in \w+: parts"):
        reply(story, request_of("gemini_generate"), True)
    assert FAULTS["no_index"].why_impossible(CHAT, False) == "a list needs no index"
    assert FAULTS["no_index"].why_impossible(CHAT, True) == ""
