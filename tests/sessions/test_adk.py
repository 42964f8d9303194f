"""Sessions of Google ADK: whose word ends an answer, calls that it left out, branches, the tables of its releases."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from inspector.report.lines.response import response as response_lines
from inspector.report.lines.spans import text_of
from inspector.sessions.importers.recognition import choose
from loop_core.values import ArgsForm, OpaquePart, ReasoningPart, TextPart, ToolCall, Usage
from tests.scenes.rows import each_row
from tests.scenes.transcripts import show, stops, view_file, words

WHOLE = '{"path": "a.md"}'
UNREAD = "Maximum tokens reached. Arguments for the following function calls were not a valid JSON object: "
TRUNCATED = "Tool call arguments were truncated while streaming and could not be parsed as valid JSON. Increase"
CODE = {"errorCode": "MAX_TOKENS", "errorMessage": TRUNCATED}
LIMIT = {"errorCode": "LlmCallsLimitExceededError", "errorMessage": "Max number of llm calls limit of `5` exceeded"}


def event(*parts, author="A", **more):
    content = {"content": {"parts": [*parts], "role": "model"}} if parts else {}
    return {**content, "invocationId": "e-1", "author": author, "timestamp": 1795892803.25, **more}


def part(text, **more):
    return {"text": text, **more}


GO = event(part("go"), author="user")


def call(name="write_file", key="c1"):
    return {"functionCall": {"id": key, "name": name, "args": json.loads(WHOLE)}}


def result_event(response, key="c1", **more):
    return event({"functionResponse": {"id": key, "name": "write_file", "response": response}}, **more)


def gemini(*parts, word="STOP", **more):
    return event(*parts, modelVersion="gemini-2.5-flash", finishReason=word, **more)


def other(*parts, word="STOP", **more):
    return event(*parts, modelVersion="gpt-5", finishReason=word, **more)


def read(tmp_path, *events, **more):
    session = {"id": "s1", "appName": "app", "userId": "u", "events": [*events], **more}
    return show(json.dumps(session), tmp_path, name="s1.session.json")


def response(seen, index=0):
    return seen.responses[index].exchange.response


def refusals(seen):
    return [dict(each.exchange.refusals) for each in seen.responses]


# -- what is recognised ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spell", [str, lambda name: "".join(f"_{c.lower()}" if c.isupper() else c for c in name)])
def test_a_session_and_a_list_of_events_are_recognised_in_both_spellings(spell):
    first = {spell("invocationId"): "e-1", "author": "user"}
    assert choose(json.dumps({"id": "s", spell("appName"): "a", "events": [first]}).encode(), "x.json") == "adk"
    assert choose(json.dumps([first]).encode(), "x.json") == "adk"
    assert choose(json.dumps({"events": [first]}).encode(), "x.json") != "adk"
    assert choose(json.dumps([{spell("invocationId"): "e-1"}]).encode(), "x.json") != "adk"


def test_members_in_snake_case_are_read_as_those_in_camel_case(tmp_path):
    events = [{"invocation_id": "e", "author": "user", "content": {"parts": [part("go")]}},
              {"invocation_id": "e", "author": "A", "model_version": "gemini-3", "finish_reason": "MAX_TOKENS",
               "usage_metadata": {"prompt_token_count": 3, "candidates_token_count": 5},
               "content": {"parts": [{"function_call": {"id": "c", "name": "w", "args": {"a": 1}}}]}}]
    seen = show(json.dumps(events), tmp_path, name="events.json")
    assert (response(seen).api, response(seen).stop_reason.raw) == ("gemini_generate", "MAX_TOKENS")
    assert response(seen).usage == Usage(3, 5)
    assert [(each.name, each.arguments) for each in response(seen).parts] == [("w", '{"a": 1}')]


# -- whose word it is --------------------------------------------------------------------------------------------------


@each_row(("word", "stop"), [
    ("STOP", "end_turn"), ("MAX_TOKENS", "max_tokens"), ("SAFETY", "safety_blocked"),
    ("MALFORMED_FUNCTION_CALL", "malformed_tool_call"),
])
def test_a_word_that_gemini_sent_is_the_providers(tmp_path, word, stop):
    seen = read(tmp_path, GO, gemini(part("hi"), word=word))
    assert response(seen).stop_reason.raw == word
    assert stops(seen) == [stop]


def test_stop_over_calls_of_gemini_asks_for_tools(tmp_path):
    seen = read(tmp_path, GO, gemini(call()), result_event({"result": "ok"}), gemini(part("done")))
    assert stops(seen) == ["tool_call", "end_turn"]
    assert words(seen) == ["COMPLETE"]


@each_row("more", [
    {"modelVersion": "gpt-5"}, {"modelVersion": None}, {"interactionId": "i"},
    {"usageMetadata": {"candidatesTokenCount": 2, "cachedContentTokenCount": 0}},
])
def test_a_cut_of_another_provider_is_a_word_of_adk(tmp_path, more):
    reason = response(read(tmp_path, GO, {**gemini(part("hi"), word="MAX_TOKENS"), **more})).stop_reason
    assert (reason.raw, reason.normalized) == (None, "max_tokens")
    assert [each.rule for each in reason.evidence] == ["transcript.recorder", "adk.finish_reasons"]


def test_adks_own_stop_shows_nothing_since_it_writes_it_without_a_reason_too(tmp_path):
    assert words(read(tmp_path, GO, other(part("The queue was")))) == ["END NOT RECORDED"]
    seen = read(tmp_path, GO, other(call()), result_event({"result": "ok"}), other(part("done")), GO, other(part("x")))
    assert [each.exchange.response.stop_reason.evidence[-1].rule for each in seen.responses] == [
        "transcript.inferred.calls_answered", "transcript.inferred.user_went_on", "transcript.absent"]


def test_the_code_of_a_table_without_the_word_is_that_word(tmp_path):
    seen = read(tmp_path, GO, event(part("hi"), errorCode="SAFETY"))
    assert stops(seen) == ["safety_blocked"]
    assert response(seen).stop_reason.evidence[0].at.pointer == "/errorCode"


def test_an_answer_of_which_adk_says_that_it_has_no_content_is_empty(tmp_path):
    code = {"errorCode": "MODEL_RETURNED_NO_CONTENT", "errorMessage": "The model returned no content"}
    assert words(read(tmp_path, GO, other(**code))) == ["EMPTY ANSWER"]
    assert response(read(tmp_path, GO, gemini(**code))).stop_reason.raw == "STOP"


@pytest.mark.parametrize(("model", "api"), [
    ("gemini-3-pro", "gemini_generate"), ("claude-opus-4-5", "anthropic_messages"), ("gpt-5", "openai_chat"),
])
def test_the_wire_format_follows_from_the_name_of_the_model(tmp_path, model, api):
    assert response(read(tmp_path, GO, event(part("x"), modelVersion=model))).api == api


# -- failures, and calls that ADK left out -----------------------------------------------------------------------------


def test_an_event_with_an_error_alone_is_a_failed_request(tmp_path):
    failure = {"errorCode": "UNAVAILABLE", "errorMessage": "503 UNAVAILABLE. The model is overloaded."}
    for before in ((GO,), (GO, gemini(call()), result_event({"result": "ok"}))):
        seen = read(tmp_path, *before, event(**failure))
        assert words(seen) == ["ERROR"]
        assert "overloaded" in response(seen, -1).error.message


def test_an_error_whose_message_begins_with_an_empty_line_is_shown_from_its_first_word(tmp_path):
    """ADK writes an advice before Google's own message, behind a line feed."""
    message = "\nOn how to mitigate this issue, please refer to:\n\nhttps://example.com\n\n429 RESOURCE_EXHAUSTED."
    seen = read(tmp_path, GO, event(errorCode="429", errorMessage=message))
    assert "failed: On how to mitigate" in seen.turns[0].verdict.sentence
    lines = [text_of(line) for line in response_lines(seen, seen.responses[0]).lines]
    assert [line.split()[:3] for line in lines if line.split()[:1] == ["error"]] == [["error", "On", "how"]]


def test_an_error_after_an_answer_is_no_failure_of_the_provider(tmp_path):
    seen = read(tmp_path, GO, gemini(call()), event(errorCode="ValueError", errorMessage="Tool 'x' not found."))
    assert stops(seen) == ["tool_call"]
    assert "the run ended with ValueError: Tool 'x' not found." in str(response(seen).findings)


def test_the_limit_of_requests_ends_a_turn_and_is_no_answer(tmp_path):
    seen = read(tmp_path, GO, gemini(call()), result_event({"result": "ok"}), event(**LIMIT))
    assert len(seen.responses) == 1
    assert words(seen) == ["CANCELLED"]


def test_a_run_that_was_aborted_has_no_results_of_the_calls_that_it_sealed(tmp_path):
    sealed = result_event({"error": "Invocation was aborted by client."}, errorCode="INVOCATION_ABORTED")
    seen = read(tmp_path, GO, gemini(call()), sealed)
    assert words(seen) == ["CANCELLED"]
    assert not seen.inputs[0].answers


def test_a_session_that_ends_with_what_the_user_said_is_told(tmp_path):
    assert "events that end a session" not in "\n".join(read(tmp_path, GO, gemini(part("hi"))).inputs[0].notices)
    seen = read(tmp_path, GO, gemini(part("hi")), GO)
    assert ("events that end a session with a message of the user, as a request that failed leaves it: 1"
            in "\n".join(seen.inputs[0].notices))


def test_a_live_answer_that_the_user_interrupted_is_cancelled(tmp_path):
    assert stops(read(tmp_path, GO, event(part("Let me"), interrupted=True))) == ["cancelled"]


def test_a_call_whose_arguments_adk_could_not_read_is_held(tmp_path):
    seen = read(tmp_path, GO, other(part("I write."), word="MAX_TOKENS", errorCode="MAX_TOKENS",
                                    errorMessage=f"{UNREAD}write_file, page_team"))
    assert [(each.name, each.arguments, each.closed) for each in response(seen).tool_calls] == [
        ("write_file", None, False), ("page_team", None, False)]
    assert words(seen) == ["CALL HELD"]
    assert "transcript.unread_call" in {each.rule for each in response(seen).findings}
    assert "cut page_team (call 2 of 2), whose arguments the recorder could not read" in seen.turns[0].verdict.sentence


def test_a_call_that_adk_could_not_read_did_not_come_without_arguments(tmp_path):
    (turn,) = read(tmp_path, GO, other(word="MALFORMED_FUNCTION_CALL", errorCode="MALFORMED_FUNCTION_CALL",
                                       errorMessage=f"{UNREAD}page_team")).turns
    assert "sent page_team, whose arguments the recorder could not read" in turn.verdict.sentence
    assert turn.verdict.advice.text == "ask for the call again, with a simpler schema"


def test_what_litellm_streamed_may_end_in_an_event_of_its_own(tmp_path):
    seen = read(tmp_path, GO, other(part("I write.")), other(**CODE, word="MAX_TOKENS"))
    assert stops(seen) == ["max_tokens"]
    assert len(response(seen).tool_calls) == 1
    two = read(tmp_path, GO, other(part("I write.")), other(**CODE, word="MAX_TOKENS", author="B"))
    assert len(two.responses) == 2


COUNTS = {"promptTokenCount": 9, "candidatesTokenCount": 7}


def javascript(*parts, **more):
    return event(*parts, **{"timestamp": 1796059809761, "partial": False, **more})


def test_a_stream_that_adk_for_javascript_wrote_in_pieces_is_one_answer(tmp_path):
    pieces = [javascript(part("I do both.")), javascript(call(key="a")), result_event({"result": "ok"}, "a"),
              javascript(call(key="b")), result_event({"result": "ok"}, "b")]
    seen = read(tmp_path, GO, *pieces, javascript(finishReason="STOP", usageMetadata=COUNTS),
                javascript(part("Done."), finishReason="STOP", usageMetadata=COUNTS))
    assert [each.id for each in response(seen).tool_calls] == ["a", "b"]
    assert (response(seen).text, response(seen).usage.output_tokens) == ("I do both.", 7)
    assert response(seen, 1).text == "Done."
    assert words(seen) == ["COMPLETE"]
    broken = read(tmp_path, GO, *pieces, event(errorCode="UNKNOWN_ERROR", errorMessage="terminated"))
    assert stops(broken) == ["error"]


def test_an_event_of_javascript_that_repeats_the_counts_of_a_call_is_its_end(tmp_path):
    one = javascript(call(), finishReason="STOP", usageMetadata=COUNTS), result_event({"result": "ok"})
    done = javascript(part("Done."), finishReason="STOP", usageMetadata={"promptTokenCount": 30})
    repeated = javascript(finishReason="STOP", usageMetadata=COUNTS)
    assert words(read(tmp_path, GO, *one, repeated, done)) == ["COMPLETE"]
    assert len(read(tmp_path, GO, *one, repeated, done).responses) == 2
    empty = javascript(finishReason="STOP", usageMetadata={"promptTokenCount": 30})
    assert words(read(tmp_path, GO, *one, empty)) == ["EMPTY ANSWER"]


@pytest.mark.parametrize("other_event", [
    javascript(part("Done."), author="B"), javascript(part("Done."), invocationId="e-2"), javascript()])
def test_an_event_of_another_agent_or_run_or_of_nothing_is_no_piece(other_event, tmp_path):
    seen = read(tmp_path, GO, javascript(part("I do it.")), other_event)
    assert response(seen).text == "I do it."
    assert len(seen.responses) == (2 if "content" in other_event else 1)
    went_on = read(tmp_path, GO, javascript(part("I do it.")), GO, javascript(part("Done.")))
    assert len(went_on.responses) == 2
    ended = read(tmp_path, GO, javascript(call()), javascript(usageMetadata=COUNTS), result_event({"result": "ok"}),
                 javascript(part("Done."), finishReason="STOP"))
    assert len(ended.responses) == 2


@each_row(("word", "last", "verdict"), [
    ({}, (part("Done."),), "END NOT RECORDED"),
    ({"finishReason": "STOP"}, (), "END NOT RECORDED"),
    ({"finishReason": "STOP"}, (), "TRUNCATED"),
])
def test_whole_answers_of_adk_for_python_are_no_pieces(tmp_path, word, last, verdict):
    """LiteLLM's answers have `partial: false`, and those of the first releases no word."""
    end = {"finishReason": "MAX_TOKENS"} if verdict == "TRUNCATED" else word
    seen = read(tmp_path, GO, event(call(), partial=False, **word), result_event({"result": "ok"}),
                event(*last, partial=False, **end))
    assert len(seen.responses) == 2
    assert words(seen) == [verdict]


def test_a_stop_that_adk_for_javascript_copied_is_the_recorders_word(tmp_path):
    assert stops(read(tmp_path, GO, javascript(part("Hi."), finishReason="STOP"))) == ["end_turn"]
    thread = javascript(part("Hi."), finishReason="STOP", interactionId="i")
    assert stops(read(tmp_path, GO, thread)) == ["unknown"]


def test_the_arguments_of_a_cut_call_look_whole_and_adk_runs_it(tmp_path):
    seen = read(tmp_path, GO, other(call(), word="MAX_TOKENS"), result_event({"result": "61 bytes"}))
    (made,) = response(seen).tool_calls
    assert (made.arguments, made.form, made.closed) == (WHOLE, ArgsForm.OBJECT, False)
    assert words(seen) == ["CUT CALL RUN"]


def test_a_call_that_adk_refused_for_its_arguments_did_not_run(tmp_path):
    why = "Invoking `write_file()` failed as the following mandatory input parameters are not present:\ncontent"
    seen = read(tmp_path, GO, other(call(), word="MAX_TOKENS"), result_event({"error": why}))
    assert refusals(seen) == [{"c1": "the agent refused its arguments: it did not run"}]
    assert words(seen) == ["CALL HELD"]


# -- parts, results, counts --------------------------------------------------------------------------------------------


def test_the_parts_of_an_answer(tmp_path):
    seen = read(tmp_path, GO, gemini(part("hm", thought=True, thoughtSignature="s"), part("hi"), part(""),
                                     call(), {"executableCode": {"code": "1"}}))
    assert [type(each) for each in response(seen).parts] == [ReasoningPart, TextPart, ToolCall, OpaquePart]
    assert response(seen).parts[0] == ReasoningPart("hm")
    assert response(seen).parts[3].type == "executableCode"


@each_row(("result", "text", "error"), [
    ({"result": "ok"}, "ok", False), ({"result": {"a": 1}}, '{"a": 1}', False), ({"error": "no"}, "no", True),
    ({"a": 1, "error": None}, '{"a": 1, "error": null}', False), ({"status": "x"}, '{"status": "x"}', False),
    ({"content": [{"type": "text", "text": "boom"}], "isError": True}, "boom", True),
])
def test_the_result_of_a_call(tmp_path, result, text, error):
    seen = read(tmp_path, GO, gemini(call()), result_event(result))
    (answer,) = seen.inputs[0].answers
    assert (answer.result.text, answer.result.is_error) == (text, error)


@each_row(("counts", "usage"), [
    ({"promptTokenCount": 3, "candidatesTokenCount": 5, "thoughtsTokenCount": 7, "totalTokenCount": 15},
     Usage(3, 12, 7)),
    ({"promptTokenCount": 3, "candidatesTokenCount": 20, "thoughtsTokenCount": 7, "totalTokenCount": 23},
     Usage(3, 20, 7)),
    ({"promptTokenCount": 3, "thoughtsTokenCount": 20, "totalTokenCount": 23}, Usage(3, 20, 20)),
    ({"promptTokenCount": 3, "candidatesTokenCount": 5, "cachedContentTokenCount": 2}, Usage(3, 5, None, 2)),
])
def test_thoughts_are_output_that_gemini_counts_apart(tmp_path, counts, usage):
    assert response(read(tmp_path, GO, gemini(part("x"), usageMetadata=counts))).usage == usage


def test_pieces_of_a_stream_and_events_without_content_are_counted(tmp_path):
    seen = read(tmp_path, GO, gemini(part("h"), partial=True), event(actions={"stateDelta": {"a": 1}}),
                gemini(part("hi")))
    assert stops(seen) == ["end_turn"]
    assert "events that are pieces of an answer that comes complete later: 1" in "\n".join(seen.inputs[0].notices)


def test_agents_that_ran_beside_each_other_each_go_on_with_their_own_calls(tmp_path):
    seen = read(tmp_path, GO, gemini(call(key="a"), branch="P.A"), gemini(call(key="b"), branch="P.B"),
                result_event({"result": "1"}, "a", branch="P.A"), result_event({"result": "2"}, "b", branch="P.B"),
                gemini(part("A"), branch="P.A"), gemini(part("B"), branch="P.B"),
                event(part("more"), author="user"), gemini(part("C"), branch="P.A"))
    assert words(seen) == ["COMPLETE", "COMPLETE", "COMPLETE"]
    assert seen.responses[0].exchange.session == "app s1 › P.A"
    assert [message.parts[0].text for message in seen.responses[-1].exchange.request.messages] == ["go", "more"]


# -- databases ---------------------------------------------------------------------------------------------------------

KEYS = "app_name TEXT, user_id TEXT, session_id TEXT, id TEXT, invocation_id TEXT, timestamp"
OLD = f"""CREATE TABLE events ({KEYS}, author TEXT, branch TEXT, actions BLOB, content TEXT, usage_metadata TEXT,
  partial INT, error_code TEXT, error_message TEXT, interrupted INT)"""
NEW = f"CREATE TABLE events ({KEYS}, event_data TEXT)"


def base(tmp_path, table, *rows):
    path = tmp_path / "session.db"
    with closing(sqlite3.connect(path)) as made, made:
        made.execute("CREATE TABLE sessions (app_name TEXT, user_id TEXT, id TEXT, state TEXT)")
        made.execute(table)
        for number, row in enumerate(rows):
            full = {"app_name": "app", "user_id": "u", "session_id": "s1", "id": f"e{number}", "invocation_id": "i",
                    "timestamp": number, **row}
            values = [json.dumps(each) if isinstance(each, dict) else each for each in full.values()]
            made.execute(f"INSERT INTO events ({', '.join(full)}) VALUES ({', '.join('?' * len(full))})", values)
    return path


def test_a_database_holds_sessions_whose_events_follow_their_times(tmp_path):
    seen = view_file(base(tmp_path, NEW, {"event_data": gemini(part("hi")), "timestamp": 5}, {"event_data": GO},
                          {"event_data": GO, "user_id": "v"}, {"event_data": gemini(part("cut"), word="MAX_TOKENS"),
                                                               "timestamp": 9, "user_id": "v"}))
    assert seen.inputs[0].format == "adk"
    assert words(seen) == ["COMPLETE", "TRUNCATED"]
    assert response(seen, 1).stop_reason.evidence[0].at.pointer == "/event_data/finishReason"
    assert "sessions in it: 2" in "\n".join(seen.inputs[0].notices)


def test_an_older_table_has_the_members_of_an_event_as_columns(tmp_path):
    content = {"parts": [part("hi")], "role": "model"}
    seen = view_file(base(
        tmp_path, OLD, {"author": "user", "content": {"parts": [part("go")]}},
        {"author": "A", "content": content, "partial": 1}, {"author": "A", "content": content, "partial": 0,
         "error_code": "MAX_TOKENS", "error_message": f"{UNREAD}write_file", "actions": b"\x80\x04",
         "usage_metadata": {"prompt_token_count": 3, "candidates_token_count": 5}},
        {"author": "user", "content": {"parts": [part("on")]}}, {"author": "A", "content": content, "interrupted": 1},
        {"author": "user", "content": {"parts": [part("on")]}},
        {"author": "B", "branch": "P.B", "content": content, "error_code": "SAFETY"}))
    assert stops(seen) == ["max_tokens", "cancelled", "safety_blocked"]
    assert [made.name for made in response(seen).tool_calls] == ["write_file"]
    assert response(seen).usage == Usage(3, 5)
    assert seen.responses[2].exchange.session == "app s1 › P.B"
    assert (response(seen).id, seen.responses[0].exchange.started) == ("e2", "1970-01-01T00:00:02.000+00:00")


def test_a_member_of_an_unexpected_type_is_told(tmp_path):
    seen = read(tmp_path, GO, {**gemini(part("hi")), "author": 7})
    assert "event 2: author is a number, but text was expected" in "\n".join(seen.inputs[0].notices)
    held = view_file(base(tmp_path, NEW, {"event_data": {**GO, "content": []}}, {"event_data": gemini(part("hi"))}))
    assert "event 1: event_data.content is a list, but an object was expected" in "\n".join(held.inputs[0].notices)


def test_a_table_of_events_of_something_else_is_not_adks(tmp_path):
    path = base(tmp_path, f"CREATE TABLE events ({KEYS}, payload TEXT)")
    assert choose(path.read_bytes(), str(path)) is None
