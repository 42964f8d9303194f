"""Sessions of Copilot CLI: events, pieces of an answer, subagents, failures, and no stop word."""

from __future__ import annotations

import json

import pytest

from inspector.report.turn_rows import rows_of
from inspector.sessions.importers.recognition import choose
from tests.scenes.rows import each_row
from tests.scenes.transcripts import places, show, stops, words

START = {"type": "session.start", "data": {"sessionId": "s", "selectedModel": "gpt-5-mini"}}


def event(kind, **data):
    return {"type": kind, "data": data, "id": "e", "parentId": "d", "timestamp": "2026-03-26T17:50:35.000Z"}


def reply(text="", *calls, key="m1", **more):
    return event("assistant.message", messageId=key, content=text, toolRequests=list(calls), **more)


def call(arguments, key="c1"):
    return {"toolCallId": key, "name": "bash", "arguments": arguments, "type": "function"}


def result(text="a.txt", key="c1", ok=True, **more):
    return event("tool.execution_complete", toolCallId=key, success=ok, result={"content": text}, **more)


def user(text):
    return event("user.message", content=text, transformedContent=f"<x>{text}</x>")


def file(*rows):
    return "".join(json.dumps(row) + "\n" for row in (START, *rows))


def test_messages_calls_and_results(tmp_path):
    seen = show(file(user("list"), reply("I look.", call({"command": "ls"}), outputTokens=12, reasoningText="hm"),
                     result(), reply("One file.", key="m2", model="other"), user("thanks")), tmp_path)
    first, second = (facts.exchange for facts in seen.responses)
    assert (first.model, second.model, first.recorder) == ("gpt-5-mini", "other", "copilot")
    assert (first.response.usage.output_tokens, first.response.reasoning_content) == (12, "hm")
    assert stops(seen) == ["tool_call", "end_turn"]
    assert places(seen) == [["request", "tool_result"]]
    assert seen.turns[0].run.record.user_text == "list"
    assert "Copilot CLI keeps none" in seen.inputs[0].notices[0]


def turn_end():
    return event("assistant.turn_end", turnId="1")


def test_the_end_that_copilot_notes_after_an_answer_without_calls_is_the_end_of_its_loop(tmp_path):
    rows = [user("list"), reply("I look.", call({"command": "ls"})), turn_end(), result(), reply("One file.", key="m2")]
    assert words(show(file(*rows), tmp_path)) == ["END NOT RECORDED"]
    seen = show(file(*rows, turn_end()), tmp_path)
    assert (stops(seen), words(seen)) == (["tool_call", "end_turn"], ["END INFERRED"])
    aborted = show(file(user("list"), reply("I look."), event("abort", reason="user"), turn_end()), tmp_path)
    assert words(aborted) == ["CANCELLED"]


def test_what_is_answered_after_a_resumed_session_is_no_part_of_the_turn_before(tmp_path):
    """Nobody asked for it in this file, so an abort after it does not cancel the turn that had its answer."""
    after = [event("session.resume"), reply("Look.", call({"command": "ls"}), key="m2"), result(), event("abort")]
    seen = show(file(user("list"), reply("One file."), turn_end(), *after), tmp_path)
    assert words(seen) == ["END INFERRED", "CANCELLED"]
    asked = show(file(user("list"), reply("One file."), turn_end(), event("session.resume"), user("more"),
                      reply("None.", key="m2"), turn_end(), reply("Ok.", key="m3")), tmp_path)
    assert len(asked.turns) == 2, "a message of the user begins the turn, as ever"


def test_results_after_an_answer_without_calls_answer_no_calls_of_it(tmp_path):
    seen = show(file(user("list"), reply("One file."), result(), reply("Two.", key="m2")), tmp_path)
    assert seen.responses[0].recorded_next == "sent results of tools"


def usage(key="r1", **more):
    return event("assistant.usage", apiCallId=key, inputTokens=90, outputTokens=64, cacheReadTokens=20,
                 cacheWriteTokens=11, **more)


@pytest.mark.parametrize(("word", "stop", "shown_as"), [
    ("stop", "end_turn", "MAYBE CUT"), ("length", "max_tokens", "TRUNCATED"), ("tool_calls", "tool_call", None),
    ("content_filter", "safety_blocked", "BLOCKED"), ("odd", "unknown", None),
])
@pytest.mark.parametrize("early", [True, False])
def test_what_a_stream_says_of_a_request(tmp_path, word, stop, shown_as, early):
    rows = [usage(finishReason=word, maxOutputTokens=64), reply("Done.", apiCallId="r1", outputTokens=64)]
    seen = show(file(user("go"), *(rows if early else rows[::-1])), tmp_path)
    response = seen.responses[0].exchange.response
    assert (stops(seen), response.raw_stop_reason, response.text) == ([stop], None, "Done.")
    assert response.usage == (90, 64, None, 20, 11)
    assert seen.responses[0].exchange.request.max_tokens == 64
    assert shown_as is None or words(seen) == [shown_as]
    assert "keeps none" not in "\n".join(seen.inputs[0].notices)


def test_a_filter_is_told_in_the_recorders_word(tmp_path):
    seen = show(file(user("go"), reply("Do", apiCallId="r1"), usage(finishReason="content_filter")), tmp_path)
    assert seen.turns[0].verdict.sentence == 'gpt-5-mini filtered the answer ("content_filter" as the recorder says)'


def test_what_a_stream_says_of_another_request_changes_nothing(tmp_path):
    seen = show(file(user("go"), reply("Done.", apiCallId="r1", outputTokens=3), usage("r2", finishReason="stop"),
                     event("assistant.usage", finishReason="stop"), event("model.call_finished"),
                     {"type": "result", "sessionId": "s", "exitCode": 0}), tmp_path)
    assert stops(seen) == ["unknown"]
    assert seen.responses[0].exchange.response.usage.output_tokens == 3
    assert "unknown type" not in "\n".join(seen.inputs[0].notices)


def record(word, key="r1", api="/chat/completions", **more):
    """What releases since 2026 store of each request, before its message."""
    return event("session.usage_record", usage={
        "model": "gpt-5-mini", "inputTokens": 90, "outputTokens": 12, "apiEndpoint": api, "apiCallId": key,
        "finishReason": word, **more})


@pytest.mark.parametrize(("word", "shown_as"), [
    ("stop", "COMPLETE"), ("length", "TRUNCATED"), ("content_filter", "BLOCKED"), ("ran_dry", "UNKNOWN REASON")])
def test_a_stored_record_of_a_request_has_the_word_the_counts_and_the_cap(tmp_path, word, shown_as):
    rows = [record(word, maxOutputTokens=8192), reply("The queue.", apiCallId="r1"), turn_end()]
    seen = show(file(user("go"), *rows), tmp_path)
    exchange = seen.responses[0].exchange
    assert (words(seen), exchange.response.usage[:2], exchange.request.max_tokens) == ([shown_as], (90, 12), 8192)
    assert exchange.response.stop_reason.evidence[0].at.pointer == "/data/usage/finishReason"


@each_row("api", ["/v1/messages", "/responses", "ws:/responses"])
@each_row(("word", "shown_as"), [("stop", "END INFERRED"), ("length", "TRUNCATED")])
def test_stop_shows_nothing_of_an_api_for_which_copilot_writes_it_over_other_ends(tmp_path, api, word, shown_as):
    """Copilot CLI 1.0.102 writes it for `pause_turn`, for a word that it does not know and for none."""
    rows = [record(word, api=api), reply("The queue was satur", apiCallId="r1"), turn_end()]
    assert words(show(file(user("go"), *rows), tmp_path)) == [shown_as]


def test_a_cut_answer_whose_text_was_not_stored_is_an_answer(tmp_path):
    rows = [record("length"), turn_end(), record("stop", "r2"), reply("d of it.", apiCallId="r2"), turn_end()]
    seen = show(file(user("go"), *rows), tmp_path)
    assert (stops(seen), words(seen)) == (["max_tokens", "end_turn"], ["CUT, COMPLETED"])
    assert "a cut answer whose text Copilot CLI did not store: 1" in "\n".join(map(str, seen.inputs[0].notices))
    assert stops(show(file(user("go"), *rows[:2]), tmp_path)) == ["max_tokens"], "nothing came after it"
    inner = {**record("length", "r3"), "agentId": "a1"}
    other = show(file(user("go"), inner, reply("All.", apiCallId="r1"), turn_end()), tmp_path)
    assert stops(other) == ["end_turn"], "another agent was cut"


def test_answers_that_were_cut_in_a_row_and_whose_texts_were_not_stored_have_a_rest(tmp_path):
    """Copilot CLI 1.0.102 has the model go on after each cut, and stores the text of the last answer alone."""
    cuts = [record("length", "r1"), turn_end(), record("length", "r2"), turn_end()]
    rest = [record("stop", "r3"), reply("d of it.", apiCallId="r3"), turn_end()]
    seen = show(file(user("go"), *cuts, *rest), tmp_path)
    assert (stops(seen), words(seen)) == (["max_tokens", "max_tokens", "end_turn"], ["CUT, COMPLETED"])
    assert seen.responses[0].exchange.response.findings[0].rule == "answer.text_lost"
    assert words(show(file(user("go"), *cuts), tmp_path)) == ["TRUNCATED"], "nothing came after them"
    parted = show(file(user("go"), *cuts, user("And the weather?"), *rest), tmp_path)
    assert words(parted) == ["TRUNCATED, ANSWER LOST", "COMPLETE"]
    thought = [record("length", key, reasoningTokens=12) for key in ("r1", "r2")]
    seen = show(file(user("go"), thought[0], turn_end(), thought[1], turn_end(), *rest), tmp_path)
    assert words(seen) == ["TRUNCATED"], "all that they brought was reasoning"


@each_row("error", [
    "Unterminated string in JSON at position 40 (line 1 column 41)",
    "Expected property name or '}' in JSON at position 1 (line 1 column 2)",
    "Tool call arguments truncated by the model output token limit"])
@each_row("noted", ["wasSyntaxError", "wasTruncatedByOutputLimit"])
@each_row(("word", "stop"), [("length", "max_tokens"), ("tool_calls", "malformed_tool_call")])
def test_a_call_that_copilot_could_not_read_is_held_and_did_not_run(tmp_path, error, word, stop, noted):
    """Copilot stores `{}` in place of what the model wrote."""
    failed = event("tool.execution_complete", toolCallId="c1", success=False, error={"message": error},
                   toolTelemetry={"properties": {noted: "true"}})
    rows = [record(word), reply("", call({}), apiCallId="r1"), failed, turn_end(), record("stop", "r2"),
            reply("Sorry.", apiCallId="r2"), turn_end()]
    seen = show(file(user("go"), *rows), tmp_path)
    first = seen.responses[0].exchange
    assert (stops(seen)[0], first.response.tool_calls[0].arguments) == (stop, None)
    assert "it did not run" in first.refusals["c1"]
    assert "agent.refused_held_call" in {each.finding.rule for each in seen.findings}
    assert words(seen) == ["CALL HELD"]


@each_row("error", ["No such file", "Unterminated string in JSON at position 40 (line 1 column 41)"])
@each_row("noted", [{}, {"toolTelemetry": {"properties": {"wasSyntaxError": "false"}}},
                                   {"toolTelemetry": {"properties": "true"}}, {"toolTelemetry": 1}])
def test_a_call_without_arguments_that_failed_was_read(tmp_path, error, noted):
    """A tool may itself read JSON that is broken; Copilot notes which calls it could not read."""
    failed = event("tool.execution_complete", toolCallId="c1", success=False, error={"message": error}, **noted)
    rows = [record("tool_calls"), reply("", call({}), apiCallId="r1"), failed, turn_end()]
    (facts,) = show(file(user("go"), *rows), tmp_path).responses
    assert (facts.exchange.response.tool_calls[0].arguments, dict(facts.exchange.refusals)) == ("{}", {})


def test_an_answer_that_the_user_stopped_before_any_of_it_was_stored_is_cancelled(tmp_path):
    """Copilot CLI 1.0.102 stores nothing of a text that was stopped in the middle."""
    seen = show(file(user("go"), event("assistant.turn_start"), turn_end(), event("abort", reason="user_initiated"),
                     user("more"), reply("Done.", apiCallId="r1"), turn_end()), tmp_path)
    assert (stops(seen), words(seen)) == (["cancelled", "end_turn"], ["CANCELLED", "END INFERRED"])


def test_what_copilot_says_of_an_empty_answer_is_no_further_answer(tmp_path):
    error = event("session.error", errorType="query",
                  message="No response was returned. Send your message again to retry.")
    seen = show(file(user("go"), record("stop"), reply("", apiCallId="r1"), turn_end(), error), tmp_path)
    assert (stops(seen), words(seen)) == (["end_turn"], ["EMPTY ANSWER"])
    assert words(show(file(user("go"), error), tmp_path)) == ["ERROR"], "there is no answer that it is about"


def test_arguments_that_are_a_cut_string_are_seen(tmp_path):
    seen = show(file(user("go"), reply("", call('{"command":"cat > a <<EOF')), result("bad", ok=False)), tmp_path)
    assert stops(seen) == ["max_tokens"]
    assert words(seen) == ["CALL HELD"]


def test_pieces_of_one_answer_are_joined(tmp_path):
    pieces = (reply("One, ", key="a", apiCallId="r1", outputTokens=4), reply("two.", key="b", apiCallId="r1",
                                                                             outputTokens=7))
    (facts,) = show(file(user("go"), *pieces), tmp_path).responses
    assert (facts.exchange.response.text, facts.exchange.response.usage.output_tokens) == ("One, two.", 7)


def test_a_subagent_is_a_conversation_of_its_own(tmp_path):
    inner = {"parentToolCallId": "c1"}
    seen = show(file(user("go"), reply("", call({"prompt": "look"})), event("subagent.started", toolCallId="c1"),
                     reply("", call({"a": 1}, "c2"), key="m8", **inner), result("x", "c2", **inner),
                     reply("Inside.", key="m9", **inner), result("Inside."), reply("Outside.", key="m2")), tmp_path)
    assert len({turn.conversation for turn in seen.turns}) == 2
    assert [facts.exchange.response.text for facts in seen.responses] == [None, None, "Inside.", "Outside."]
    assert seen.responses[3].exchange.request.messages[0].results[0].text == "Inside."
    assert [facts.exchange.session for facts in seen.responses] == ["", "› subagent", "› subagent", ""]


def test_each_subagent_is_a_session_below_the_files(tmp_path):
    begun = [event("subagent.started", toolCallId=key, agentDisplayName=name)
             for key, name in (("c1", "Explore"), ("c2", "Explore"), ("c3", "Task"))]
    seen = show(file(user("go"), reply("Main.", key="m0"), *begun, *(
        reply("In.", key=f"m{key}", parentToolCallId=key) for key in ("c1", "c2", "c3"))), tmp_path)
    names = [row.name for row in rows_of(seen)]
    assert names == ["s", "s › Explore", "s › Explore (c2)", "s › Task"]


@each_row("both", [{}, {"parentToolCallId": "c1"}])
@each_row("named", [{"agentId": "a-1"}, {}])
def test_the_events_of_a_subagent_are_known_by_its_id(tmp_path, both, named):
    def inner(row):
        return {**row, "agentId": "a-1"}

    begun = {**event("subagent.started", toolCallId="c1", agentDisplayName="Explore"), **named}
    seen = show(file(user("go"), reply("", call({"prompt": "look"})), begun, inner(user("look")),
                     inner(reply("", call({"a": 1}, "c2"), key="m8", **both)), inner(result("x", "c2", **both)),
                     inner(reply("Inside.", key="m9", **both)), result("Inside."), reply("Outside.", key="m2")),
                tmp_path)
    assert [turn.run.record.user_text for turn in seen.turns] == ["go", "look"]
    assert [facts.exchange.response.text for facts in seen.responses] == [None, None, "Inside.", "Outside."]
    name = "› Explore" if both or named else "› subagent"
    assert [facts.exchange.session for facts in seen.responses] == ["", name, name, ""]


def test_an_abort_that_is_not_the_users_names_its_reason(tmp_path):
    seen = show(file(user("go"), reply("Half"), event("abort", reason="autopilot_credit_limit")), tmp_path)
    assert stops(seen) == ["unknown"]
    assert any("Copilot CLI stopped the run (autopilot_credit_limit)" in each.finding.message for each in seen.findings)


def test_an_abort_and_a_failure(tmp_path):
    seen = show(file(user("go"), reply("Half"), event("abort", reason="user"), user("again"),
                     event("session.error", errorType="query", message="Bad request", statusCode=400)), tmp_path)
    assert words(seen) == ["CANCELLED", "ERROR"]
    assert seen.responses[1].exchange.response.http_status == 400


@each_row(("more", "own"), [
    ({"isAutopilotContinuation": True}, True), ({"source": "skill-pdf"}, True), ({"source": "agent-7"}, True),
    ({"source": "user"}, False), ({"isAutopilotContinuation": False}, False),
])
def test_a_message_that_copilot_wrote_itself_shows_no_end_of_the_answer_before(tmp_path, more, own):
    seen = show(file(user("list"), reply("I look."), event("user.message", content="and the tests?", **more),
                     reply("One.", key="m2")), tmp_path)
    assert stops(seen) == ["unknown" if own else "end_turn", "unknown"]


def test_a_full_context_is_told_by_the_type_of_the_error(tmp_path):
    seen = show(file(user("list"), event("session.error", errorType="context_limit", message="too long",
                                          statusCode=400)), tmp_path)
    (facts,) = seen.responses
    assert stops(seen) == ["context_window_exceeded"]
    assert [seen.rule for seen in facts.judgement.stop.evidence] == ["transcript.recorder", "copilot.errors"]
    assert facts.exchange.response.error.message == "too long"


def test_a_compaction_that_failed_shortened_nothing(tmp_path):
    for success in (True, False):
        seen = show(file(user("go"), reply("a"), event("session.compaction_complete", success=success), user("on"),
                         reply("b", key="m2")), tmp_path)
        found = [noted.finding.rule for noted in seen.findings]
        assert ("transcript.compacted" in found) is success


@pytest.mark.parametrize("kind", ["session.truncation", "session.compaction_complete"])
def test_a_history_that_was_shortened(tmp_path, kind):
    seen = show(file(user("go"), event(kind), reply("Fine."), event("brand.new"), event("hook.start")), tmp_path)
    assert any(noted.finding.rule == "transcript.compacted" for noted in seen.findings)
    assert "records of unknown type were skipped: brand.new (1)" in "\n".join(seen.inputs[0].notices)


def test_it_is_known_by_its_first_line_or_its_events():
    for first in (START, user("go"), event("tool.execution_start")):
        assert choose(json.dumps(first).encode() + b"\n{}\n", "x") == "copilot"


OLD = {"sessionId": "s-1", "startTime": "2025-10-08T21:10:16.398Z", "selectedModel": "m-1", "timeline": [
    {"type": "user", "text": "go"}, {"type": "copilot", "text": "Done."}], "chatMessages": [
        {"role": "system", "content": "be brief"}, {"role": "user", "content": "go"},
        {"role": "assistant", "content": "I look.", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "a.txt"}, {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "thanks"}]}


@pytest.mark.parametrize("indent", [None, 2])
def test_a_file_of_the_first_releases_is_one_object(tmp_path, indent):
    seen = show(json.dumps(OLD, indent=indent), tmp_path, name="session_s-1_1759957816.json")
    first, second = (facts.exchange for facts in seen.responses)
    assert (first.recorder, first.model, first.response.text, second.response.text) == (
        "copilot", "m-1", "I look.", "Done.")
    assert [call.arguments for call in first.response.tool_calls] == ['{"command": "ls"}']
    assert second.request.messages[0].results[0].text == "a.txt"
    assert (stops(seen), words(seen)) == (["tool_call", "end_turn"], ["END INFERRED"])
    assert "Copilot CLI keeps none" in seen.inputs[0].notices[0]
    assert "records that hold no exchange: system (1)" in seen.inputs[0].notices[1]


def test_a_cut_file_of_the_first_releases_gives_what_is_there(tmp_path):
    whole = json.dumps(OLD)
    seen = show(whole[: whole.index('"a.txt"')], tmp_path, name="session_s-1_1759957816.json")
    assert [facts.exchange.response.text for facts in seen.responses] == ["I look."]
