"""Streams of Vercel's AI SDK to the browser: the UI message stream, the data stream of AI SDK 4, and both in a HAR."""

from __future__ import annotations

import json

import pytest

from inspector.sessions.importers import ai_sdk_stream
from inspector.sessions.importers.recognition import choose
from inspector.sessions.recording import Options
from loop_core.values import ArgsForm, CallKind, ToolCall
from tests.scenes.costs import IN_PROPORTION, growth
from tests.scenes.rows import each_row
from tests.scenes.transcripts import places, show, stops, words

START, STEP, END = {"type": "start", "messageId": "m"}, {"type": "start-step"}, {"type": "finish-step"}
CALL = {"toolCallId": "c", "toolName": "weather"}


def text(*deltas):
    return [{"type": "text-start", "id": "1"}, *({"type": "text-delta", "id": "1", "delta": each} for each in deltas),
            {"type": "text-end", "id": "1"}]


def call_start(*deltas):
    return [{"type": "tool-input-start", **CALL},
            *({"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": each} for each in deltas)]


def whole(**more):
    return {"type": "tool-input-available", **CALL, "input": {"city": "Rome"}, **more}


def output(kind="tool-output-available", **more):
    return {"type": kind, "toolCallId": "c", **more}


def finish(word=None):
    return {"type": "finish", **({} if word is None else {"finishReason": word})}


def sse(*events):
    return "".join(f"data: {json.dumps(each)}\n\n" for each in events) + "data: [DONE]\n\n"


def codes(*lines):
    return "".join(f"{code}:{json.dumps(value)}\n" for code, value in lines)


def read(tmp_path, *events):
    return show(sse(START, STEP, *events), tmp_path, name="chat.txt")


def test_both_streams_are_recognised_and_others_are_not():
    assert choose(sse(START, STEP, *text("hi")).encode(), "x") == "ai-sdk-stream"
    assert choose(codes(("f", {"messageId": "m"}), ("0", "hi")).encode(), "x") == "ai-sdk-stream"
    flight = b'0:["$@1",["x",null]]\n1:I["a"]\n'  # what Next.js sends looks alike
    assert choose(flight, "x") != "ai-sdk-stream"
    other = b'data: {"type":"message_start","message":{"type":"message","role":"assistant"}}\n\n'
    assert choose(other, "x") != "ai-sdk-stream"


@each_row("event", [
    STEP, END, text("a")[1], call_start()[0], whole(), {"type": "error", "errorText": "no"}])
def test_each_event_by_which_a_stream_is_recognised(event):
    assert choose(sse(START, event).encode(), "x") == "ai-sdk-stream"


@each_row(("word", "stop"), [
    ("stop", "end_turn"), ("length", "max_tokens"), ("content-filter", "safety_blocked"), ("other", "unknown"),
    (None, "unknown")])
def test_the_word_at_the_end(tmp_path, word, stop):
    seen = read(tmp_path, *text("Half ", "a"), END, finish(word))
    response = seen.responses[0].exchange.response
    assert (stops(seen), response.text, response.stop_reason.raw) == ([stop], "Half a", None)
    assert seen.responses[0].exchange.recorder == "ai-sdk-stream"


def test_a_message_that_only_finished_is_not_called_whole(tmp_path):
    assert words(read(tmp_path, *text("Half a"), END, finish())) == ["END NOT RECORDED"]


def test_steps_are_answers_and_outputs_are_results(tmp_path):
    thought = [{"type": "reasoning-start", "id": "r"}, {"type": "reasoning-delta", "id": "r", "delta": "hm"}]
    seen = read(tmp_path, *text("I look."), *call_start('{"city": ', '"Rome"}'), whole(), output(output={"t": 8}), END,
                STEP, *thought, *text("It is 8."), END, finish("stop"))
    first, second = (facts.exchange for facts in seen.responses)
    (call,) = first.response.tool_calls
    assert (call.id, call.name, call.arguments, call.form, call.closed) == (
        "c", "weather", '{"city": "Rome"}', ArgsForm.STRING, True)
    assert second.response.reasoning_content == "hm"
    (results,) = [message.results for message in second.request.messages if message.results]
    assert [(part.call_id, part.text, part.is_error) for part in results] == [("c", '{"t": 8}', False)]
    assert (stops(seen), places(seen), words(seen)) == (
        ["tool_call", "end_turn"], [["request", "tool_result"]], ["COMPLETE"])


def test_a_step_without_content_is_an_answer_and_not_the_end_of_the_one_before_it(tmp_path):
    assert words(read(tmp_path, END, finish("length"))) == ["TRUNCATED"]
    seen = read(tmp_path, *text("Look."), *call_start(), whole(), output(output="sun"), END, STEP, END, finish("stop"))
    assert (len(seen.responses), words(seen)) == (2, ["END NOT RECORDED"])
    counts = {"promptTokens": 5, "completionTokens": 0}
    end = {"finishReason": "stop", "usage": counts}
    assert words(show(codes(("f", {"messageId": "m"}), ("e", {**end, "isContinued": False}), ("d", end)), tmp_path,
                      name="chat.txt")) == ["EMPTY ANSWER"]


def test_a_cut_call_is_held(tmp_path):
    seen = read(tmp_path, *call_start('{"city": ', '"Ro'), END, finish("length"))
    (call,) = seen.responses[0].exchange.response.tool_calls
    assert (call.arguments, call.closed, words(seen)) == ('{"city": "Ro', False, ["CALL HELD"])


def test_a_call_that_never_became_available_is_held_whatever_the_word_says(tmp_path):
    seen = read(tmp_path, *call_start('{"city": "Rome"}'), END, finish("tool-calls"))
    assert [verdict.admission.value for verdict in seen.responses[0].verdicts] == ["held"]


def test_a_stream_that_breaks_off_has_no_end(tmp_path):
    cut = sse(START, STEP, *text("Half a"), *call_start('{"ci'))[: -len("data: [DONE]\n\n")]
    seen = show(cut, tmp_path, name="chat.txt")
    assert words(seen) == ["CALL HELD"]
    assert stops(show(sse(START, STEP, *text("Half a")), tmp_path, name="b.txt")) == ["unknown"]


def test_a_call_without_deltas_has_the_arguments_as_parsed(tmp_path):
    seen = read(tmp_path, whole(), END, finish("tool-calls"))
    (call,) = seen.responses[0].exchange.response.tool_calls
    assert (call.arguments, call.form, words(seen)) == ('{"city": "Rome"}', ArgsForm.OBJECT, ["COMPLETE SO FAR"])


def test_a_call_that_the_provider_ran_is_its_own(tmp_path):
    seen = read(tmp_path, whole(providerExecuted=True), output(output=1), *text("8."), END, finish("stop"))
    (facts,) = seen.responses
    assert [part.kind for part in facts.exchange.response.parts if isinstance(part, ToolCall)] == [CallKind.SERVER]
    assert (facts.exchange.response.text, stops(seen)) == ("8.", ["end_turn"])


@pytest.mark.parametrize(("event", "error"), [
    (output("tool-output-error", errorText="no network"), True),
    (output("tool-output-denied"), True),
    (output(output="ok"), False),
])
def test_what_became_of_a_call(tmp_path, event, error):
    seen = read(tmp_path, whole(), event, END, STEP, *text("Done."), END, finish("stop"))
    (part,) = (part for message in seen.responses[1].exchange.request.messages for part in message.results)
    assert part.is_error is error


def test_a_preliminary_output_is_no_result(tmp_path):
    seen = read(tmp_path, whole(), output(output="wait", preliminary=True), output(output="ok"), END, STEP,
                *text("Done."), END, finish("stop"))
    assert [part.text for message in seen.responses[1].exchange.request.messages for part in message.results] == ["ok"]


def test_arguments_that_the_sdk_could_not_read_did_not_run(tmp_path):
    why = "Invalid input for tool weather: JSON parsing failed: Text: {."
    seen = read(tmp_path, *call_start('{"city": "Ro'), {"type": "tool-input-error", **CALL, "input": '{"city": "Ro',
                                                        "errorText": why}, output("tool-output-error", errorText=why),
                END, STEP, *text("Done."), END, finish("stop"))
    assert (words(seen), stops(seen)[0]) == (["CALL HELD"], "max_tokens")
    assert seen.responses[0].exchange.refusals == {"c": "the agent refused its arguments: it did not run"}


def test_an_error_about_a_call_is_no_failure_of_the_answer(tmp_path):
    why = "Invalid input for tool weather: JSON parsing failed: Text: {."
    seen = read(tmp_path, *call_start('{"city": "Ro'), {"type": "error", "errorText": why}, END, finish())
    assert (words(seen), stops(seen)) == (["CALL HELD"], ["max_tokens"])
    assert list(seen.responses[0].exchange.refusals) == ["c"]


def test_an_error_and_an_abort(tmp_path):
    assert words(read(tmp_path, *text("Half a"), {"type": "error", "errorText": "overloaded"}, END,
                      finish("error"))) == ["ERROR"]
    assert words(show(sse(START, {"type": "error", "errorText": "overloaded"}), tmp_path, name="e.txt")) == ["ERROR"]
    assert stops(read(tmp_path, *text("Half a"), {"type": "abort", "reason": "r"})) == ["cancelled"]


def test_files_stay_and_other_events_are_counted(tmp_path):
    others = [{"type": kind} for kind in (
        "text-start", "text-end", "reasoning-start", "reasoning-end", "source-url", "source-document", "data-status",
        "message-metadata", "tool-approval-request", "tool-approval-response", "new-kind")]
    seen = read(tmp_path, {"type": "file", "url": "data:,", "mediaType": "image/png"}, *others, END, finish("stop"))
    assert [part.type for part in seen.responses[0].exchange.response.parts] == ["file"]
    (unknown,) = [str(each) for each in seen.inputs[0].notices if "unknown type" in str(each)]
    assert unknown.endswith(": new-kind (1)")


def test_a_member_of_another_type_is_reported(tmp_path):
    seen = read(tmp_path, *text("hi"), {"type": "error", "errorText": 5}, END, finish("stop"))
    assert any("errorText is a number" in str(each) for each in seen.inputs[0].notices)


@each_row(("code", "value"), [
    ("9", CALL), ("e", {"finishReason": "stop"}), ("f", {"messageId": "m"}), ("i", {"data": "d"}),
    ("j", {"signature": "s"}), ("h", {"sourceType": "url", "url": "u"})])
def test_objects_of_the_data_stream_have_members_of_their_own(code, value):
    assert choose(codes((code, value), ("0", "hi")).encode(), "x") == "ai-sdk-stream"
    assert choose(codes((code, {"x": 1}), ("0", "hi")).encode(), "x") != "ai-sdk-stream"


def test_a_step_that_was_reset_has_only_what_came_later(tmp_path):
    seen = read(tmp_path, *text("Wrong."), {"type": "reset-step"}, *text("Right."), END, finish("stop"))
    assert [facts.exchange.response.text for facts in seen.responses] == ["Right."]


def test_the_data_stream_of_ai_sdk_4(tmp_path):
    counts = {"usage": {"promptTokens": 3, "completionTokens": 5}, "isContinued": False}
    seen = show(codes(
        ("f", {"messageId": "m1"}), ("0", "I "), ("0", "look."), ("b", CALL), ("c", {**CALL, "argsTextDelta": '{"a"'}),
        ("c", {"toolCallId": "c", "argsTextDelta": ": 1}"}), ("9", {**CALL, "args": {"a": 1}}),
        ("a", {"toolCallId": "c", "result": "ok"}), ("e", {"finishReason": "tool-calls", **counts}),
        ("f", {"messageId": "m2"}), ("g", "hm"), ("j", {"signature": "s"}), ("i", {"data": "d"}), ("2", [{"x": 1}]),
        ("8", [1]), ("h", {"sourceType": "url", "url": "u"}), ("k", {"data": "d", "mimeType": "t"}), ("0", "Half a"),
        ("e", {"finishReason": "length", **counts}), ("d", {"finishReason": "length", "usage": {
            "promptTokens": 6, "completionTokens": 10}})), tmp_path, name="chat.txt")
    first, second = (facts.exchange.response for facts in seen.responses)
    assert (first.text, first.tool_calls[0].arguments, first.tool_calls[0].closed) == ("I look.", '{"a": 1}', True)
    assert (second.reasoning_content, second.text, second.usage.output_tokens) == ("hm", "Half a", 5)
    assert (stops(seen), words(seen)) == (["tool_call", "max_tokens"], ["TRUNCATED"])
    assert not any("unknown type" in str(each) for each in seen.inputs[0].notices)


def test_errors_and_ends_of_older_data_streams(tmp_path):
    assert words(show(codes(("0", "Half a"), ("3", "overloaded")), tmp_path, name="a.txt")) == ["ERROR"]
    seen = show(codes(("0", "Half a"), ("d", {"finishReason": "length", "usage": {
        "promptTokens": 3, "completionTokens": 5}})), tmp_path, name="b.txt")
    assert (stops(seen), seen.responses[0].exchange.response.usage.output_tokens) == (["max_tokens"], 5)


def entry(body, name="x-vercel-ai-ui-message-stream", asked=None):
    request = {"method": "POST", "url": "https://app.example/api/chat", "headers": [],
               "postData": {"mimeType": "application/json", "text": json.dumps(asked or {})}}
    return {"startedDateTime": "2026-01-01T00:00:00Z", "time": 5, "request": request, "response": {
        "status": 200, "headers": [{"name": name, "value": "v1"}], "content": {"text": body, "size": len(body)}}}


def har(*entries):
    return json.dumps({"log": {"version": "1.2", "entries": entries}})


@pytest.mark.parametrize("message", [
    {"role": "user", "parts": [{"type": "text", "text": "go"}]}, {"role": "user", "content": "go"}])
def test_a_har_of_the_browser(tmp_path, message):
    asked = {"id": "chat", "messages": [message]}
    body = sse(START, STEP, *text("Half a"), END, finish("length"))
    old = codes(("f", {"messageId": "m"}), ("0", "Whole."), ("d", {"finishReason": "stop"}))
    plain = entry("<html>", "content-type")
    seen = show(har(plain, entry(body, asked=asked), entry(old, "X-Vercel-AI-Data-Stream")), tmp_path, name="a.har")
    assert [(facts.exchange.entry, facts.exchange.url, facts.exchange.response.text) for facts in seen.responses] == [
        (1, "https://app.example/api/chat", "Half a"), (2, "https://app.example/api/chat", "Whole.")]
    assert (stops(seen), len(seen.inputs[0].skipped)) == (["max_tokens", "end_turn"], 1)
    assert seen.turns[0].run.record.user_text == "go"


def test_streams_of_a_har_are_turns_of_their_own(tmp_path):
    asked = {"messages": [{"role": "user", "content": "go"}]}
    two = sse(START, STEP, whole(), output(output=8), END, STEP, *text("8."), END, finish("stop"))
    cut = sse(START, STEP, *call_start('{"city": "Ro'), END, finish("length"))
    seen = show(har(entry(two, asked=asked), entry(cut, asked=asked), entry(two, asked=asked)), tmp_path, name="a.har")
    assert places(seen) == [["request", "tool_result"], ["request"], ["request", "tool_result"]]
    assert words(seen) == ["COMPLETE", "CALL HELD", "COMPLETE"]


def test_a_request_that_the_same_chat_sent_again_belongs_to_its_turn(tmp_path):
    asked = {"id": "chat-1", "messages": [{"role": "user", "content": "go"}]}
    failed = sse(START, STEP, {"type": "error", "errorText": "overloaded"})
    whole_text = sse(START, STEP, *text("Done."), END, finish("stop"))
    seen = show(har(entry(failed, asked=asked), entry(whole_text, asked=asked)), tmp_path, name="a.har")
    assert (places(seen), words(seen)) == ([["request", "retry"]], ["RETRIED"])
    assert {facts.exchange.session for facts in seen.responses} == {"chat-1"}


def test_credentials_in_a_stream_are_masked(tmp_path):
    secret = "sk-" + "proj-" + "a1B2c3D4" * 6
    seen = show(har(entry(sse(START, STEP, *text(f"key {secret}"), END, finish("stop")))), tmp_path, name="a.har")
    assert secret.encode() not in seen.responses[0].exchange.body
    assert secret not in seen.responses[0].exchange.response.text


def test_many_calls_of_one_step_are_read_in_linear_time():
    def calls(count):
        each = ({**begin, "toolCallId": f"c{number}"}
                for number in range(count) for begin in (*call_start("{}"), whole()))
        return sse(STEP, *each).encode()

    reading = ai_sdk_stream.read(calls(3), "x", Options())
    assert [(each.id, each.arguments) for each in reading.exchanges[0].response.parts] == [
        ("c0", "{}"), ("c1", "{}"), ("c2", "{}")]
    assert growth(lambda data: ai_sdk_stream.read(data, "x", Options()), calls, 800) < IN_PROPORTION
