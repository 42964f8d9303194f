"""Two answers in one stream: a gateway that asks again writes the second one behind what came of the first.

No finish reason is about the calls of the first answer then, however whole they look: none of them may run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from loop_core import encode_response, read
from loop_core.values import ChatResponse, Stop, StopReason, TextPart, ToolCall, Usage
from tests.scenes.rows import each_row

WORDS = {
    "openai_chat": "tool_calls", "anthropic_messages": "tool_use", "bedrock_converse": "tool_use",
    "gemini_generate": "STOP", "gemini_interactions": "requires_action", "cohere_chat": "TOOL_CALL",
}
"""Wire format whose streams show where an answer begins, by an event or an id -> its word for calls."""
ENDS = {
    "openai_chat": "stop", "anthropic_messages": "end_turn", "bedrock_converse": "end_turn", "gemini_generate": "STOP",
    "gemini_interactions": "completed", "cohere_chat": "COMPLETE",
}
"""Wire format -> its word for an end without a call."""
NAMELESS = ("bedrock_converse",)
"""Formats whose answers have neither an id nor a model."""


def answer(api: str, name: str, *, text: str = "I look.") -> list[bytes]:
    """The stream of an answer with one call, an event a piece; `name` tells its ids and its argument from others."""
    known: dict[str, Any] = {} if api in NAMELESS else {"id": f"answer_{name}", "model": "m"}
    call = ToolCall(f"call_{name}0001", "look", json.dumps({"at": name}), True)
    made = ChatResponse(api, (TextPart(text), call), StopReason(Stop.TOOL_CALL, WORDS[api]), Usage(3, 5), **known)
    return list(encode_response(api, made, stream=True, chunk=9))


def text_answer(api: str, name: str) -> list[bytes]:
    """The stream of an answer without a call."""
    known: dict[str, Any] = {} if api in NAMELESS else {"id": f"answer_{name}", "model": "m"}
    made = ChatResponse(api, (TextPart("Sorry, I cannot do that."),), StopReason(Stop.END_TURN, ENDS[api]), Usage(3, 5),
                        **known)
    return list(encode_response(api, made, stream=True, chunk=9))


def releases(api: str, events: list[bytes]) -> list[Any]:
    return [each.arguments["at"] for each in read(api, b"".join(events)).calls if each.admission == "ready"]


@each_row("api", WORDS)
def test_a_call_of_an_answer_that_another_one_follows_never_runs(api: str) -> None:
    first, second = answer(api, "first"), answer(api, "second")
    assert (releases(api, first), releases(api, second)) == (["first"], ["second"])
    begun = 0
    for size in range(len(first)):
        both = [*first[:size], *second]
        names = releases(api, both)
        if read(api, b"".join(first[:size])).raw is not None:
            assert names in ([], ["first"]), "what follows an end is no part of the answer"
            continue
        assert names in ([], ["second"])
        begun += not names
    assert begun, "the first call had begun, and holds the second"


@each_row(("again", "more", "found"), [
    ({"role": "assistant", "content": ""}, "call", []),
    ({"role": "assistant", "content": None}, "call", []),
    ({"role": "assistant", "content": ""}, "text", []),  # `stop` is no word about the call of the first answer
    ({"role": "assistant", "content": ""}, "nothing", ["first"]),  # an opening delta as a sign of life
    ({"role": "assistant", "content": ""}, "thought", []),
    ({"role": "assistant", "content": ""}, "blank", ["first"]),
    ({"content": ""}, "call", ["first", "second"]),  # one answer with two calls of one index
    ({"role": None, "content": ""}, "call", ["first", "second"]),
])
def test_chat_answers_under_one_constant_id_are_told_apart_by_their_opening_delta(again, more, found) -> None:
    def event(delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return f"data: {json.dumps({'id': 'chatcmpl-0', 'model': 'm', 'choices': [choice]})}\n\n".encode()

    def called(name: str) -> list[bytes]:
        function = {"name": "look", "arguments": json.dumps({"at": name})}
        return [event({"tool_calls": [{"index": 0, "id": f"call_{name}", "type": "function", "function": function}]})]

    rest = {"call": called("second"), "text": [event({"content": "Sorry, I cannot."})], "nothing": [],
            "thought": [event({"reasoning_content": "What now?"})], "blank": [event({"content": "\n"})]}[more]
    end = event({}, "stop" if more in ("text", "thought") else "tool_calls")
    opening = event({"role": "assistant", "content": ""})
    both = [opening, *called("first"), event(again), *rest, end, b"data: [DONE]\n\n"]
    assert releases("openai_chat", both) == found
    # SGLang sends the role as null, old servers an empty finish reason.
    for old, new in ((b'"tool_calls": [', b'"role": null, "tool_calls": ['), (b'_reason": null', b'_reason": ""')):
        assert releases("openai_chat", [each.replace(old, new) for each in both]) == found
    # OpenAI's first delta of a call has the role, those with its arguments have none.
    begun = called("first")[0].replace(b'"tool_calls": [', b'"role": "assistant", "tool_calls": [')
    piece = event({"tool_calls": [{"index": 0, "function": {"arguments": " "}}]})
    assert releases("openai_chat", [opening, begun, piece, *both[2:]]) == found
    # Where every delta has the role, it opens nothing.
    everywhere = [each.replace(b'"tool_calls": [', b'"role": "assistant", "tool_calls": [') for each in both]
    assert releases("openai_chat", everywhere) == (["first", "second"] if more == "call" else ["first"])


@pytest.mark.parametrize("api", ["anthropic_messages", "gemini_interactions"])
def test_answers_without_ids_are_told_apart_by_the_event_that_begins_them(api: str) -> None:
    def bare(name: str) -> list[bytes]:
        return [event.replace(f'"id":"answer_{name}",'.encode(), b"") for event in answer(api, name)]

    first, second = bare("first"), bare("second")
    assert b"answer_" not in b"".join(first)
    held = max(size for size in range(len(first)) if read(api, b"".join(first[:size])).raw is None)
    assert releases(api, [*first[:held], *second]) == []
    again = [*answer(api, "first")[:held], answer(api, "first")[0], *answer(api, "first")[held:]]
    assert releases(api, again) == ["first"], "the event that begins an answer, told once more"


@pytest.mark.parametrize("api", ["anthropic_messages", "gemini_interactions"])
@pytest.mark.parametrize("ident", ["", "constant"])
def test_answers_with_one_id_are_told_apart_by_a_part_that_begins_again(api: str, ident: str) -> None:
    first, second = ([event.replace(b"answer_" + name.encode(), ident.encode()) for event in answer(api, name)]
                     for name in ("first", "second"))
    held = max(size for size in range(len(first)) if read(api, b"".join(first[:size])).raw is None)
    found = read(api, b"".join([*first[:held], *second]))
    assert len(found.calls) == 2, "both are shown"
    assert releases(api, [*first[:held], *second]) == []


@pytest.mark.parametrize("ident", ["", "constant"])
def test_responses_with_one_id_are_told_apart_by_an_item_that_begins_again(ident: str) -> None:
    """The end lists no items (chatgpt.com); the call of the first answer ran beside that of the second."""
    def events(name: str) -> list[bytes]:
        item = {"type": "function_call", "id": f"fc_{name}", "call_id": f"call_{name}", "name": "look"}
        done = {"type": "response.output_item.done", "output_index": 0, "item": {
            **item, "arguments": json.dumps({"at": name})}}
        told = ({"type": "response.created", "response": {"id": ident, "status": "in_progress"}},
                {**done, "type": "response.output_item.added", "item": item}, done,
                {"type": "response.completed", "response": {"id": ident, "status": "completed", "output": []}})
        return [b"data: " + json.dumps(each).encode() + b"\n\n" for each in told]

    first, second = events("first"), events("second")
    assert releases("openai_responses", [*first[:3], *second]) == []
    assert releases("openai_responses", [first[0], *first]) == ["first"], "the event that begins it, told once more"


def test_the_end_of_the_first_answer_of_gemini_does_not_end_the_call_of_another_in_it() -> None:
    """A finding named the second answer, and the calls of both ran."""
    first, second = answer("gemini_generate", "first"), answer("gemini_generate", "second")
    *begun, end = first
    assert b"finishReason" in end
    assert releases("gemini_generate", [*begun, *second]) == releases("gemini_generate", [*begun, *second, end]) == []


@pytest.mark.parametrize("api", ["openai_chat", "gemini_generate"])
def test_a_server_with_another_id_in_every_chunk_gives_one_answer(api: str) -> None:
    events = answer(api, "first")
    calls = [event for event in events if b"look" in event or b"at" in event]
    assert calls
    changed = [event.replace(b"answer_first", f"answer_{number}".encode()) for number, event in enumerate(events)]
    assert changed[0] != changed[1]
    assert releases(api, changed) == ["first"]


def test_a_chunk_before_the_answer_with_an_id_of_its_own_is_no_answer() -> None:
    """OpenRouter's first chunk has the id of the request, Azure's an empty one."""
    for ident in ("", "chatcmpl-0"):
        head = f'data: {{"id": "{ident}", "choices": [{{"index": 0, "delta": {{"role": "assistant"}}}}]}}\n\n'
        assert releases("openai_chat", [head.encode(), *answer("openai_chat", "one")]) == ["one"]


def test_a_closing_chunk_with_an_id_of_its_own_ends_the_answer() -> None:
    """A gateway may make the last chunk itself."""
    *body, last, usage, done = answer("openai_chat", "one")
    assert b'"finish_reason":"tool_calls"' in last
    assert releases("openai_chat", [*body, last.replace(b"answer_one", b"gateway_1"), usage, done]) == ["one"]


@pytest.mark.parametrize("api", ["openai_chat", "gemini_generate"])
def test_a_second_answer_without_a_call_releases_none_of_the_first(api: str) -> None:
    first, text = answer(api, "first"), text_answer(api, "second")
    held = max(size for size in range(len(first)) if read(api, b"".join(first[:size])).raw is None)
    found = read(api, b"".join([*first[:held], *text]))
    assert found.calls
    assert f"{api}.second_answer" in {each.rule for each in found.response.findings}
    assert releases(api, [*first[:held], *text]) == []


def test_what_a_gateway_writes_behind_an_answer_that_ended_takes_nothing_back() -> None:
    *body, usage, done = answer("openai_chat", "one")
    own = [b'data: {"id": "gateway_1", "choices": [{"index": 0, "delta": {}, "finish_reason": %s}]}\n\n' % word
           for word in (b"null", b'"tool_calls"')]
    assert releases("openai_chat", [*body, *own, usage, done]) == ["one"]


def test_an_empty_finish_reason_in_every_chunk_ends_no_answer() -> None:
    def bare(name: str) -> list[bytes]:
        return [event.replace(b'"finish_reason":null', b'"finish_reason":""') for event in answer("openai_chat", name)]

    first, second = bare("first"), bare("second")
    held = max(size for size in range(len(first)) if not read("openai_chat", b"".join(first[:size])).raw)
    assert releases("openai_chat", second) == ["second"]
    assert releases("openai_chat", [*first[:held], *second]) == []


@pytest.mark.parametrize("api", WORDS)
@pytest.mark.parametrize("third", [answer, text_answer])
def test_only_the_last_of_three_answers_may_run(api: str, third: Callable[[str, str], list[bytes]]) -> None:
    """The answer in the middle may be the only one with a call."""
    first, second = answer(api, "first"), answer(api, "second")
    begun = 0
    for one in range(len(first)):
        for two in range(1, len(second)):
            if any(read(api, b"".join(part)).raw for part in (first[:one], second[:two]) if part):
                continue
            assert releases(api, [*first[:one], *second[:two], *third(api, "third")]) in ([], ["third"])
            begun += bool(read(api, b"".join(second[:two])).calls)
    assert begun, "the call of the second answer had begun"


def test_an_answer_that_ended_by_itself_does_not_end_the_next_one() -> None:
    first, second = answer("openai_chat", "first"), answer("openai_chat", "second")
    assert b'"finish_reason":"tool_calls"' in first[-3]
    held = max(size for size in range(len(second)) if read("openai_chat", b"".join(second[:size])).raw is None)
    assert releases("openai_chat", [*first[:-2], *second[:held], *text_answer("openai_chat", "third")]) == []


def test_several_choices_with_an_id_each_are_several_answers() -> None:
    """A gateway that sends one request to several servers gives each choice the id of its own answer."""
    def chunk(name: str, index: int, delta: dict[str, Any], reason: str | None = None) -> str:
        choice = {"index": index, "delta": delta, "finish_reason": reason}
        return f"data: {json.dumps({'id': f'answer_{name}', 'model': 'm', 'choices': [choice]})}\n\n"

    def call(name: str) -> dict[str, Any]:
        made = {"index": 0, "id": f"call_{name}", "function": {"name": "look", "arguments": json.dumps({"at": name})}}
        return {"tool_calls": [made]}

    body = "".join([
        *(chunk(name, index, {"role": "assistant", "content": ""}) for index, name in enumerate("ab")),
        *(chunk(name, index, call(name)) for index, name in enumerate("ab")),
        *(chunk(name, index, {}, "tool_calls") for index, name in enumerate("ab")),
        "data: [DONE]\n\n",
    ]).encode()
    found = read("openai_chat", body, request={"model": "m", "messages": [], "n": 2})
    assert [(verdict.arguments, verdict.admission) for verdict in found.calls] == [({"at": "a"}, "ready")]


@pytest.mark.parametrize("join", ["[{0}, {1}]", "{0}\n{1}\n"])
def test_of_two_whole_answers_without_ids_in_one_list_no_call_runs(join: str) -> None:
    whole = [json.dumps({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"tool_calls": [
        {"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}}]}}]}) for name in ("pay", "go")]
    found = read("openai_chat", join.format(*whole).encode())
    assert {each.admission for each in found.calls} == {"held"}
    assert "openai_chat.second_answer" in {each.rule for each in found.response.findings}


def test_a_second_stream_of_responses_is_no_part_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may hold the streams of several turns, one behind the other."""
    api = "openai_responses"
    monkeypatch.setitem(WORDS, api, "completed")
    monkeypatch.setitem(ENDS, api, "completed")
    first, second = answer(api, "first"), answer(api, "second")
    for size in range(len(first)):
        ended = read(api, b"".join(first[:size])).response.saw_stop_reason
        assert releases(api, [*first[:size], *second]) in ([], ["first" if ended else "second"])
    for later in (second, text_answer(api, "second")):
        found = read(api, b"".join([*first, *later]))
        assert (found.response.id, found.response.text) == ("answer_first", "I look.")
        assert [each.arguments["at"] for each in found.calls if each.admission == "ready"] == ["first"]
        assert {each.rule for each in found.response.findings} == {"frame.after_end"}


def test_no_call_of_a_response_runs_if_another_response_follows_before_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last event need not list the items (chatgpt.com)."""
    api = "openai_responses"
    monkeypatch.setitem(WORDS, api, "completed")
    monkeypatch.setitem(ENDS, api, "completed")

    def without_items(name: str, make: Callable[[str, str], list[bytes]] = answer) -> list[bytes]:
        *events, last = make(api, name)
        line = last.split(b"data: ")[1]
        event = json.loads(line)
        assert event["response"].pop("output")
        return [*events, last.replace(line, json.dumps(event).encode() + b"\n\n")]

    first, second = without_items("first"), without_items("second")
    assert (releases(api, first), releases(api, second)) == (["first"], ["second"])
    begun = 0
    for size in range(len(first)):
        names = releases(api, [*first[:size], *second])
        assert names in ([], ["second"])
        begun += not names
    assert begun, "the first call had begun, and holds the second"
    found = read(api, b"".join([*first[:-1], *without_items("second", text_answer)]))
    assert [each.admission for each in found.calls] == ["held"]
    assert "openai_responses.second_answer" in {each.rule for each in found.response.findings}
    late = [*first[1:3], first[0], *first[3:]]
    assert releases(api, late) == ["first"], "the event that begins it came late, and begins no other one"


def test_a_failure_behind_the_end_counts_unless_another_response_began() -> None:
    def response_event(kind: str, status: str, number: int) -> bytes:
        response = {"id": f"resp_{number}", "object": "response", "status": status, "output": []}
        return f"data: {json.dumps({'type': f'response.{kind}', 'response': response})}\n\n".encode()

    whole = response_event("created", "in_progress", 1) + response_event("completed", "completed", 1)
    again = response_event("created", "queued", 1)
    for late, reason in (
        (response_event("failed", "failed", 1), Stop.ERROR),
        (again + response_event("failed", "failed", 1), Stop.ERROR),
        (response_event("created", "in_progress", 2) + response_event("failed", "failed", 2), Stop.END_TURN),
    ):
        assert read("openai_responses", whole + late).stop_reason is reason


def whole_message(name: str, ident: str) -> bytes:
    """The answer as one message inside a stream, as some servers send it."""
    (body,) = encode_response("openai_chat", read("openai_chat", b"".join(answer("openai_chat", name))).response)
    return b"data: " + body.replace(f'"id":"answer_{name}"'.encode(), f'"id":"{ident}"'.encode()) + b"\n\n"


def test_an_answer_that_is_one_message_follows_another_one_like_any_other() -> None:
    events, second = answer("openai_chat", "first"), whole_message("second", "answer_second")
    begun = next(size for size in range(len(events)) if read("openai_chat", b"".join(events[:size])).calls)
    ends = next(size for size in range(len(events)) if read("openai_chat", b"".join(events[:size])).raw)
    assert releases("openai_chat", [second]) == ["second"]
    for size in range(begun, ends + 1):
        assert releases("openai_chat", [*events[:size], second]) == [], "no word is about the first call"
    assert releases("openai_chat", [whole_message("first", "answer_first"), *answer("openai_chat", "second")]) == []
    for ident in ("answer_first", "gateway_1"):
        same = [*events[: ends - 1], whole_message("first", ident)]
        assert releases("openai_chat", same) == ["first"], "the message repeats what was streamed"
