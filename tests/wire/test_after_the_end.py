"""Events behind the end mark of a stream: a finding with their bytes, and no part of the answer."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from loop_core import encode_response, read
from loop_core.reader import Reading
from loop_core.values import ChatResponse, Stop, StopReason, TextPart, ToolCall, Usage
from tests.scenes.rows import each_row

ERROR = {"error": {"type": "server_error", "message": "boom"}}


def chat() -> bytes:
    chunks = [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hi."}, "finish_reason": None}]},
              {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]
    return b"".join(event(chunk) for chunk in chunks) + b"data: [DONE]\n\n"


def completions() -> bytes:
    return event({"object": "text_completion", "choices": [{"index": 0, "text": "Hi.", "finish_reason": "stop"}]}) + (
        b"data: [DONE]\n\n")


def messages() -> bytes:
    events = [
        {"type": "message_start", "message": {"id": "m", "content": [], "usage": {"input_tokens": 3}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]
    return b"".join(event(each, each["type"]) for each in events)  # type: ignore[arg-type]


def event(value: Any, name: str = "") -> bytes:
    return f"{f'event: {name}' + chr(10) if name else ''}data: {json.dumps(value)}\n\n".encode()


def places(reading: Reading, rule: str) -> list[tuple[int | None, int | None]]:
    return [(each.at.start, each.at.end) for each in reading.response.findings if each.rule == rule and each.at]


@each_row("late", [event(ERROR), event({"message": "boom"}, "error")])
@each_row(("api", "answer"), [("openai_chat", chat()), ("openai_completions", completions())])
def test_an_error_behind_done_is_a_finding_and_the_answer_stays_whole(api: str, answer: bytes, late: bytes) -> None:
    """OpenAI's clients stop reading at the mark (openai 3.54.0 _streaming.py)."""
    reading = read(api, answer + late)
    assert (reading.stop_reason, reading.response.text, reading.response.error) == (Stop.END_TURN, "Hi.", None)
    assert places(reading, "frame.error_after_end") == [(len(answer), len(answer + late.rstrip()))]
    assert "boom" in next(each.message for each in reading.response.findings if each.rule == "frame.error_after_end")
    assert not places(read(api, answer), "frame.error_after_end")


@pytest.mark.parametrize(("api", "answer"), [("openai_chat", chat()), ("openai_completions", completions())])
def test_text_behind_done_is_a_finding_and_no_part_of_the_answer(api: str, answer: bytes) -> None:
    """A reader of the screen would otherwise not learn that the bytes hold more text than the answer."""
    late = event({"choices": [{"index": 0, "delta": {"content": "More."}, "text": "More.", "finish_reason": "length"}]})
    reading = read(api, answer + late)
    assert (reading.stop_reason, reading.text) == (Stop.END_TURN, "Hi.")
    assert places(reading, "frame.after_end") == [(len(answer), len(answer + late.rstrip()))]
    for nothing in (b"", event({"choices": [], "usage": {"total_tokens": 3}}), event({"cost": 1})):
        assert not places(read(api, answer + nothing), "frame.after_end")


def interaction(ident: str) -> bytes:
    return b"".join(event(each, each["event_type"]) for each in (  # type: ignore[arg-type]
        {"event_type": "interaction.created", "interaction": {"id": ident, "status": "in_progress"}},
        {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}},
        {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": ident}},
        {"event_type": "interaction.completed", "interaction": {"id": ident, "status": "completed"}}))


def completion(ident: str) -> bytes:
    return b"".join(event({"type": "completion", "id": ident, "completion": text, "stop_reason": word}, "completion")
                    for text, word in ((ident, None), ("", "stop_sequence")))


@pytest.mark.parametrize(("api", "answer", "mark"), [
    ("gemini_interactions", interaction, b""), ("gemini_interactions", interaction, b"event: done\ndata: [DONE]\n\n"),
    ("anthropic_complete", completion, b"")])
def test_another_answer_behind_the_end_is_no_part_of_the_answer(
    api: str, answer: Callable[[str], bytes], mark: bytes
) -> None:
    """The second one's stop reason counted for the first, whose text it was added to in the legacy format."""
    first, second = answer("one") + mark, answer("two")
    reading = read(api, first + second)
    assert (reading.stop_reason, reading.response.text, reading.response.id) == (Stop.END_TURN, "one", "one")
    assert places(reading, "frame.after_end")[0][0] == len(first)
    assert not places(read(api, first), "frame.after_end")


def test_an_error_behind_message_stop_fails_the_answer() -> None:
    """The client reads on there, and raises an error (anthropic 2.12.0 _streaming.py)."""
    late = event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "error")
    reading = read("anthropic_messages", messages() + late)
    assert (reading.stop_reason, reading.raw, reading.response.text) == (Stop.ERROR, "end_turn", "Hi.")
    assert reading.response.error is not None
    assert reading.response.error.message == "Overloaded"
    (place,) = [seen.at for seen in reading.response.stop_reason.evidence if seen.rule == "error.reported"]
    assert place is not None
    assert (place.start or 0) >= len(messages())


def test_a_block_behind_message_stop_is_no_part_of_the_answer() -> None:
    late = event({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": " More."}})
    reading = read("anthropic_messages", messages() + late)
    assert (reading.stop_reason, reading.response.text) == (Stop.END_TURN, "Hi.")
    assert places(reading, "frame.after_end")
    assert not places(read("anthropic_messages", messages() + event({"type": "ping"})), "frame.after_end")


@pytest.mark.parametrize(("late", "reason"), [("max_tokens", Stop.MAX_TOKENS), ("end_turn", Stop.TOOL_CALL)])
def test_a_stricter_reason_behind_message_stop_counts(late: str, reason: Stop) -> None:
    """The call ran: only the end of Messages was read without the reasons behind it."""
    reason_of_call = StopReason(Stop.TOOL_CALL, "tool_use")
    made = ChatResponse("anthropic_messages", (ToolCall("c", "look", "{}", True),), reason_of_call)
    whole = b"".join(encode_response("anthropic_messages", made, stream=True))
    behind = event({"type": "message_delta", "delta": {"stop_reason": late}}, "message_delta")
    reading = read("anthropic_messages", whole + behind)
    assert reading.stop_reason is reason
    assert [each.admission for each in reading.calls] == ["ready" if reason is Stop.TOOL_CALL else "held"]
    begun = event({"type": "message_start", "message": {"id": "b"}}, "message_start")
    assert read("anthropic_messages", whole + begun + behind).stop_reason is Stop.TOOL_CALL, "of another message"


@each_row("first", ["pause_turn", "stop_sequence", "another", None])
@each_row("late", ["tool_use", "end_turn"])
def test_a_reason_behind_message_stop_releases_no_call(first: str | None, late: str) -> None:
    """The last word counted, so that a call of a paused answer was ready."""
    ended = b'"stop_reason":"tool_use"'
    whole = b"".join(stream_of("anthropic_messages")).replace(ended, b'"stop_reason":' + json.dumps(first).encode())
    behind = event({"type": "message_delta", "delta": {"stop_reason": late}}, "message_delta")
    reading = read("anthropic_messages", whole + behind)
    assert (reading.raw, [each.admission for each in reading.calls]) == (first, ["held"])
    assert places(reading, "frame.after_end")


def test_a_stop_sequence_without_a_name_behind_message_stop_holds_the_call() -> None:
    """Translators write this word for a filter."""
    late = event({"type": "message_delta", "delta": {"stop_reason": "stop_sequence"}}, "message_delta")
    reading = read("anthropic_messages", [*stream_of("anthropic_messages"), late])
    assert (reading.stop_reason, reading.calls[0].admission) == (Stop.UNKNOWN, "held")


WORDS = {"anthropic_messages": "tool_use", "bedrock_converse": "tool_use", "bedrock_invoke": "tool_use",
         "cohere_chat": "TOOL_CALL", "gemini_interactions": "requires_action"}
"""Format whose calls have a beginning of their own -> its word for calls."""
HOLE = '{"path":"/tmp/01234567/89/x"}'
"""Arguments that still parse where four characters of the path are missing."""


def stream_of(api: str) -> list[bytes]:
    made = ChatResponse(api, (ToolCall("call_1", "look", HOLE, True),), StopReason(Stop.TOOL_CALL, WORDS[api]),
                        Usage(3, 5), id="a1", model="m")
    return [each for each in encode_response(api, made, stream=True, chunk=4) if b"[DONE]" not in each]


CHAT_END = b"data: [DONE]\n\n"


def chat_of(*calls: dict[str, Any], **more: Any) -> list[bytes]:
    ended = {"index": 0, "delta": {}, "finish_reason": "tool_calls"}
    choices = [*({"index": 0, "delta": {"tool_calls": [{"index": 0, **each}]}} for each in calls), ended]
    return [event({"id": "a1", **more, "choices": [each]}) for each in choices]


CHAT_CALL = [{"id": "c", "function": {"name": "look", "arguments": '{"path":"/tmp/'}},
             {"function": {"arguments": "2345"}}, {"function": {"arguments": '"}'}}]


def test_a_piece_of_a_call_of_chat_behind_done_holds_the_call() -> None:
    """Clients stop reading at the mark (openai 3.54.0 _streaming.py), so the call ran without the piece."""
    first, piece, *rest = chat_of(*CHAT_CALL)
    assert [each.admission for each in read("openai_chat", [first, *rest, CHAT_END]).calls] == ["ready"]
    reading = read("openai_chat", [first, *rest, CHAT_END, piece])
    assert (reading.stop_reason, [each.admission for each in reading.calls]) == (Stop.MALFORMED_TOOL_CALL, ["held"])
    size = len(b"".join([first, *rest, CHAT_END]))
    assert places(reading, "openai_chat.call_unread_value") == [(size, size + len(piece.rstrip()))]


@each_row("again", [
    chat_of(*CHAT_CALL), chat_of(*CHAT_CALL, id="a2"),
    [event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hi."}}]}), *chat_of(*CHAT_CALL)[1:]],
    [event({"choices": [], "usage": {"total_tokens": 3}})]])
def test_another_answer_of_chat_behind_done_holds_no_call(again: list[bytes]) -> None:
    reading = read("openai_chat", [*chat_of(*CHAT_CALL), CHAT_END, *again, CHAT_END])
    assert [each.admission for each in reading.calls] == ["ready"]


def test_a_piece_of_a_call_of_an_interaction_behind_done_holds_the_call() -> None:
    events = [*stream_of("gemini_interactions"), CHAT_END]
    late = next(each for each in events if holds(each, b"2345"))
    before = [each for each in events if each is not late]
    assert [each.admission for each in read("gemini_interactions", [*before, late]).calls] == ["held"]


def holds(event: bytes, part: bytes) -> bool:
    """Whether an event holds these bytes, also in the base64 of InvokeModel."""
    inside = re.search(rb'"bytes": ?"([^"]+)"', event)
    return part in (base64.b64decode(inside[1]) if inside else event)


@each_row("api", WORDS)
def test_a_piece_of_a_call_behind_the_end_holds_the_call(api: str) -> None:
    events = stream_of(api)
    assert [each.admission for each in read(api, events).calls] == ["ready"]
    late = next(each for each in events if holds(each, b"2345"))
    before = [each for each in events if each is not late]
    assert [each.admission for each in read(api, before).calls] == ["ready"], "no format numbers its pieces"
    reading = read(api, [*before, late])
    assert (reading.stop_reason, {each.admission for each in reading.calls}) == (Stop.MALFORMED_TOOL_CALL, {"held"})
    assert any(each.rule.endswith(".delta_without_start") for each in reading.findings)


@each_row("api", WORDS)
def test_a_piece_of_a_call_that_begins_behind_the_end_says_nothing_about_the_answer(api: str) -> None:
    events = stream_of(api)
    begin = next(number for number, each in enumerate(events) if holds(each, b"look"))
    reading = read(api, [*events, *events[begin:]])
    assert [each.admission for each in reading.calls] == ["ready"]
    assert "frame.after_end" in {each.rule for each in reading.findings}


def test_behind_the_end_of_responses_only_an_error_or_a_stricter_end_is_read() -> None:
    """The end holds every item whole, so a piece that comes later changes nothing."""
    made = ChatResponse("openai_responses", (TextPart("Hello."), ToolCall("call_1", "look", HOLE, True)),
                        StopReason(Stop.TOOL_CALL, "completed"), Usage(3, 5), id="a1", model="m")
    events = [*encode_response("openai_responses", made, stream=True, chunk=4)]
    for piece in (b"output_text.delta", b"function_call_arguments.delta"):
        late = read("openai_responses", [*events, next(each for each in events if piece in each)])
        assert (late.stop_reason, [each.rule for each in late.findings]) == (Stop.TOOL_CALL, ["frame.after_end"])
    error = b'data: {"type": "error", "code": "server_error", "message": "no"}\n\n'
    failed = read("openai_responses", [*events, error])
    assert (failed.stop_reason, failed.findings, failed.calls[0].admission) == (Stop.ERROR, (), "held")
