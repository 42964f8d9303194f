"""Message histories of Pydantic AI: the provider's word, Pydantic AI's own, calls that did not run, odd states."""

from __future__ import annotations

import json

import pytest

from inspector.sessions.importers.recognition import choose
from inspector.sessions.reasons import named_api
from loop_core.values import ArgsForm, CallKind, ToolCall
from tests.scenes.rows import each_row
from tests.scenes.transcripts import places, show, stops, words

CUT, WHOLE = '{"path": "a.md", "content": "# Rep', '{"path": "a.md"}'


def prompt(*content):
    return {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": each} for each in content]}


def call(args=WHOLE, kind="tool-call"):
    return {"part_kind": kind, "tool_name": "write_file", "args": args, "tool_call_id": "c1"}


def part(text):
    return {"part_kind": "text", "content": text}


def response(*parts, raw=None, word=None, provider="openai", **more):
    return {"kind": "response", "parts": [*parts], "model_name": "m-1", "provider_name": provider,
            "finish_reason": word, "provider_details": None if raw is None else {"finish_reason": raw},
            "state": "complete",
            "usage": {"input_tokens": 3, "output_tokens": 5}, "timestamp": "2026-01-01T00:00:00Z", **more}


def result(content, **more):
    return {"kind": "request", "parts": [
        {"part_kind": "tool-return", "tool_name": "write_file", "tool_call_id": "c1", "content": content, **more}]}


def read(tmp_path, *messages):
    return show(json.dumps([*messages]), tmp_path, name="history.json")


def test_a_history_is_recognised_by_its_first_message():
    for first in (prompt("go"), response(part("hi"))):
        assert choose(json.dumps([first]).encode(), "x.json") == "pydantic-ai"
    assert choose(b'[{"kind": "request", "parts": []}]', "x.json") != "pydantic-ai"


@each_row(("provider", "key", "raw", "api", "stop"), [
    ("openai", "chatcmpl-1", "length", "openai_chat", "max_tokens"),
    ("openai", "resp_1", "max_output_tokens", "openai_responses", "max_tokens"),
    ("openai", "resp_1", "content_filter", "openai_responses", "safety_blocked"),
    ("openai", "resp_1", "completed", "openai_responses", "end_turn"),
    ("anthropic", "msg_1", "max_tokens", "anthropic_messages", "max_tokens"),
    ("google", None, "MAX_TOKENS", "gemini_generate", "max_tokens"),
    ("google-gla", None, "MAX_TOKENS", "gemini_generate", "max_tokens"),
    ("google-vertex", None, "SAFETY", "gemini_generate", "safety_blocked"),
    ("cohere", None, "MAX_TOKENS", "cohere_chat", "max_tokens"),
    ("bedrock", None, "max_tokens", "bedrock_converse", "max_tokens"),
    ("openai", "chatcmpl-1", "a_new_word", "openai_chat", "unknown"),
    ("groq", "chatcmpl-1", "length", "openai_chat", "max_tokens"),
    ("other", "1", "length", None, "max_tokens"),
])
def test_the_providers_word_counts_as_it_stands_in_the_file(tmp_path, provider, key, raw, api, stop):
    seen = read(tmp_path, prompt("go"), response(part("Half a"), raw=raw, word="stop", provider=provider,
                                                 provider_response_id=key))
    answer = seen.responses[0].exchange.response
    assert (answer.stop_reason.raw, answer.stop_reason.normalized) == (raw, stop)
    assert named_api(seen.responses[0].exchange) == api
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (3, 5)
    (evidence, *_) = answer.stop_reason.evidence
    assert (evidence.rule, evidence.at.pointer) == ("transcript.provider", "/provider_details/finish_reason")


@each_row(("word", "stop", "verdict"), [
    ("length", "max_tokens", "TRUNCATED"), ("content_filter", "safety_blocked", "BLOCKED"),
    ("stop", "unknown", "END NOT RECORDED"), (None, "unknown", "END NOT RECORDED"),
])
def test_a_word_of_pydantic_ai_alone_shows_a_bad_end_and_no_good_one(tmp_path, word, stop, verdict):
    """It writes `stop` also where the provider gave no reason."""
    seen = read(tmp_path, prompt("go"), response(part("Half a"), word=word))
    assert (stops(seen), words(seen)) == ([stop], [verdict])
    assert seen.responses[0].exchange.response.stop_reason.raw is None


def test_a_history_says_how_many_of_its_answers_have_no_word(tmp_path):
    """Release 1.0 wrote none."""
    seen = read(tmp_path, prompt("go"), response(part("Half a"), word="stop"),
                prompt("on"), response(part("b"), raw="stop"))
    (notice,) = seen.inputs[0].notices
    assert "1 of 2 answers have no stop reason" in notice
    assert not read(tmp_path, prompt("go"), response(part("b"), raw="stop")).inputs[0].notices


def test_a_member_of_an_odd_kind_is_named_and_the_rest_is_read(tmp_path):
    (given,) = read(tmp_path, prompt("go"), response(part("Hi."), raw="stop", usage=[])).inputs
    assert any("message 2: usage is a list, but an object was expected" in notice for notice in given.notices)
    assert given.responses == 1


@each_row(("state", "stop"), [("interrupted", "interrupted"), ("incomplete", "interrupted"),
                                             ("suspended", "paused"), ("complete", "unknown")])
def test_a_response_that_is_not_complete_was_not_finished(tmp_path, state, stop):
    assert stops(read(tmp_path, prompt("go"), response(part("Half a"), word="stop", state=state))) == [stop]


def test_a_state_does_not_hide_the_providers_word(tmp_path):
    """A run that crossed a limit stops behind a whole response, which is then called interrupted too."""
    seen = read(tmp_path, prompt("go"), response(part("Done."), raw="stop", word="stop", state="interrupted"))
    assert stops(seen) == ["end_turn"]


def test_calls_and_results_make_one_turn(tmp_path):
    seen = read(tmp_path, prompt("go"), response(part("I write."), call(), raw="tool_calls", word="tool_call"),
                result("written", outcome="success"), response(part("Done."), raw="stop", word="stop"))
    (made,) = seen.responses[0].exchange.response.tool_calls
    assert (made.id, made.name, made.arguments, made.form) == ("c1", "write_file", WHOLE, ArgsForm.STRING)
    assert (stops(seen), places(seen), words(seen)) == (
        ["tool_call", "end_turn"], [["request", "tool_result"]], ["COMPLETE"])


def test_arguments_that_came_parsed_stand_as_the_file_has_them(tmp_path):
    seen = read(tmp_path, prompt("go"), response(call({"path": "a.md"}), raw="max_tokens", provider="anthropic"))
    (made,) = seen.responses[0].exchange.response.tool_calls
    assert (made.arguments, made.form, words(seen)) == ('{"path": "a.md"}', ArgsForm.OBJECT, ["CALL HELD"])


def test_a_call_of_the_provider_is_its_own(tmp_path):
    seen = read(tmp_path, prompt("go"), response(call(kind="builtin-tool-call"), part("Done."), raw="end_turn",
                                                 provider="anthropic"))
    parts = seen.responses[0].exchange.response.parts
    assert [each.kind for each in parts if isinstance(each, ToolCall)] == [CallKind.SERVER]
    assert words(seen) == ["COMPLETE"]


@each_row(("answer", "verdict"), [
    (result("written", outcome="success"), "CUT CALL RUN"), (result("written"), "CUT CALL RUN"),
    (result([{"type": "missing", "loc": ["content"]}], outcome="retried"), "CALL HELD"),
    (result("Unknown tool name: 'write_file'. Available tools: 'a'", outcome="retried"), "CALL HELD"),
    ({"kind": "request", "parts": [{"part_kind": "retry-prompt", "tool_name": "write_file", "tool_call_id": "c1",
                                    "content": [{"type": "missing"}, {"type": "missing"}]}]}, "CALL HELD"),
    (result("The tool call was not approved.", outcome="denied"), "CALL HELD"),
])
def test_a_cut_call_ran_only_if_its_tool_did(tmp_path, answer, verdict):
    """A router's lie: the word is that of calls, and the arguments end in the middle."""
    seen = read(tmp_path, prompt("go"), response(call(CUT), raw="tool_calls", word="tool_call"), answer,
                response(part("I see."), raw="stop", word="stop"))
    assert words(seen) == [verdict]


def test_the_result_of_an_interrupted_run_is_none(tmp_path):
    seen = read(tmp_path, prompt("go"), response(call(CUT), raw="length", word="length"),
                result("Tool call interrupted.", outcome="interrupted"))
    assert words(seen) == ["CALL HELD"]
    assert not seen.replay.case.recording.inputs[0].error


@pytest.mark.parametrize("parts", [
    [{"part_kind": "tool-return", "tool_name": "write_file", "tool_call_id": "c1", "content": [{"type": "missing"}],
      "outcome": "retried"}],
    [{"part_kind": "retry-prompt", "tool_name": "write_file", "tool_call_id": "c1", "content": [{"type": "missing"}]}],
])
def test_errors_of_validation_say_that_the_call_did_not_run(tmp_path, parts):
    seen = read(tmp_path, prompt("go"), response(call("{}"), raw="tool_calls"), {"kind": "request", "parts": parts},
                response(part("I see."), raw="stop", word="stop"))
    assert seen.responses[0].exchange.refusals == {"c1": "the agent refused its arguments: it did not run"}


def test_a_word_of_pydantic_ai_may_be_the_only_one(tmp_path):
    assert stops(read(tmp_path, prompt("go"), response(call(), word="tool_call"))) == ["tool_call"]
    assert stops(read(tmp_path, prompt("go"), response(part("Half a"), word="error"))) == ["error"]


@each_row("kind", [
    "system-prompt", "instruction", "instruction-baseline", "instruction-digest", "instruction-delta",
    "tool-availability-delta", "capability-load-delta", "model-settings-delta"])
def test_what_is_neither_message_nor_result_is_no_drift(tmp_path, kind):
    def notices(kind):
        first = {"kind": "request", "parts": [{"part_kind": kind, "content": "x"}, *prompt("go")["parts"]]}
        return str(read(tmp_path, first, response(part("Hi."), raw="stop")).inputs[0].notices)

    assert "unknown type" in notices("hologram")
    assert "unknown type" not in notices(kind)


@pytest.mark.parametrize("kind", ["retry-prompt", "retry-feedback"])
def test_feedback_of_pydantic_ai_asks_for_the_answer_again(tmp_path, kind):
    again = {"kind": "request", "parts": [{"part_kind": kind, "tool_name": None, "content": "Return text."}]}
    seen = read(tmp_path, prompt("go"), response(raw="stop", word="stop"), again, response(part("Hi."), raw="stop"))
    assert places(seen) == [["request", "repair"]]


def test_messages_of_the_user_are_texts_and_begin_turns(tmp_path):
    seen = read(tmp_path, prompt(["look at", {"kind": "image-url", "url": "u"}, {"content": "this"}]),
                response(part("Seen."), raw="stop"), prompt("and now"), response(part("Done."), raw="length"))
    assert [facts.exchange.request.messages[-1].text for facts in seen.responses] == ["look at\nthis", "and now"]
    assert words(seen) == ["COMPLETE", "TRUNCATED"]
