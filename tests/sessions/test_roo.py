"""Tasks of Roo Code and Cline: requests beside the history, calls that could not be parsed, streams that ended."""

from __future__ import annotations

import json
import os

import pytest

from inspector.check import check_paths
from inspector.check.rules import selected_rules
from inspector.sessions import open_paths
from inspector.sessions.folders import transcripts
from inspector.sessions.importers.recognition import choose
from tests.scenes.rows import each_row
from tests.scenes.transcripts import rules, stops, view_file, words

HISTORY, SCREEN = "api_conversation_history.json", "ui_messages.json"
CALL = {"type": "tool_use", "id": "c1", "name": "apply_diff", "input": {}}
REJECTED = "Invalid tool call for 'apply_diff': missing nativeArgs. This usually means the model streamed invalid"


def part(text):
    return {"type": "text", "text": text}


def user(*blocks, ts=1000, **more):
    return {"role": "user", "content": list(blocks), "ts": ts, **more}


def model(*blocks, ts=2000, **more):
    return {"role": "assistant", "content": list(blocks), "ts": ts, **more}


def result(text, error=False):
    return {"type": "tool_result", "tool_use_id": "c1", "content": text, "is_error": error}


def request(ts=900, **given):
    return {"ts": ts, "type": "say", "say": "api_req_started", "text": json.dumps(given)}


ASKED = user(part("<task>\ngo\n</task>"), part("<environment_details><model>m-1</model></environment_details>"))
DONE = {"tokensIn": 9, "tokensOut": 4, "cacheReads": 5, "cacheWrites": 7, "cost": 0.1}


def task(tmp_path, history=None, screen=None, name=HISTORY, **beside):
    folder = tmp_path / "task-1"
    folder.mkdir(exist_ok=True)
    for file, value in ((name, history), (SCREEN, screen), *((f"{key}.json", value) for key, value in beside.items())):
        if value is not None:
            (folder / file).write_text(json.dumps(value))
    return view_file(folder / (SCREEN if history is None else name))


def notices(seen):
    return "\n".join(seen.inputs[0].notices)


def test_history_usage_model_and_result(tmp_path):
    seen = task(tmp_path, [ASKED, model(part("hm"), CALL), user(result("done"), ts=3000), model(part("ok"), ts=4000)],
                [request(**DONE, apiProtocol="anthropic"), request(3100, tokensIn=1, tokensOut=2, cost=0)],
                history_item={"task": "go on"})
    first, last = (view.exchange for view in seen.responses)
    assert first.response.usage == (9, 4, None, 5, 7)
    assert first.response.model == "m-1"
    assert first.response.api == "anthropic_messages"
    assert last.response.usage[:2] == (1, 2)
    assert stops(seen) == ["tool_call", "unknown"]
    assert [call.arguments for call in first.response.tool_calls] == ["{}"]
    assert "keep no stop reason" in notices(seen)


def test_either_file_opens_the_task(tmp_path):
    task(tmp_path, [ASKED, model(part("ok"))], [request(**DONE)])
    by_screen = view_file(tmp_path / "task-1" / SCREEN)
    assert by_screen.responses[0].exchange.response.text == "ok"
    assert by_screen.responses[0].exchange.response.usage.output_tokens == 4


def test_in_a_folder_a_task_is_one_session(tmp_path):
    task(tmp_path, [ASKED, model(part("ok"))], [request(**DONE)])
    folder, history = open_paths([str(tmp_path)]).inputs
    assert (os.path.basename(history.path), history.responses) == (HISTORY, 1)
    assert "the screen of a task, which is read with its history (1)" in "".join(folder.notices)
    assert [len(each.every_turn) for each in check_paths([str(tmp_path)], selected_rules(), jobs=1).files] == [1]
    os.remove(history.path)
    assert [os.path.basename(each.path) for each in open_paths([str(tmp_path)]).inputs[1:]] == [SCREEN]


def test_a_rejected_call_is_malformed_and_did_not_run(tmp_path):
    seen = task(tmp_path, [ASKED, model(CALL), user(result(REJECTED, error=True), ts=3000), model(part("ok"), ts=4000)])
    assert stops(seen)[0] == "malformed_tool_call"
    assert "transcript.inferred.call_rejected" in rules(seen)
    assert not seen.responses[0].exchange.response.tool_calls[0].closed


@each_row(("given", "stop"), [
    ({"cancelReason": "user_cancelled"}, "cancelled"), ({"cancelReason": "streaming_failed"}, "interrupted"),
    ({"cancelReason": "retries_exhausted"}, "interrupted"), ({"cancelReason": "odd"}, "unknown"),
])
def test_cancel_reasons(tmp_path, given, stop):
    assert stops(task(tmp_path, [ASKED, model(part("o"))], [request(**given)])) == [stop]


@each_row(("note", "stop"), [
    ("[Response interrupted by user]", "cancelled"), ("[Response interrupted by user feedback]", "cancelled"),
    ("[Response interrupted by API Error]", "interrupted"),
    ("[Response interrupted by a tool use result. Only one", "unknown"),
    ("Failure: I did not provide a response.", "unknown"),
])
def test_notes_of_the_agent_are_no_words_of_the_model(tmp_path, note, stop):
    seen = task(tmp_path, [ASKED, model(part(f"half\n\n{note}")), user(part("<feedback>go</feedback>"), ts=3000)])
    assert stops(seen) == [stop]
    assert seen.responses[0].exchange.response.text == "half"


@pytest.mark.parametrize(("note", "stop"), [
    ("Failure: response hit the max output token limit before producing any visible content.", "max_tokens"),
    ("Failure: the API stream failed mid-response.", "interrupted"),
    ("Failure: I did not provide a response.", "unknown"),
])
def test_a_note_of_zoo_in_place_of_an_answer_is_no_text_of_the_model(tmp_path, note, stop):
    seen = task(tmp_path, [ASKED, model(part(note)), user(part("<user_message>thanks</user_message>"), ts=3000)])
    assert stops(seen) == [stop]
    assert not seen.responses[0].exchange.response.text
    quoted = model(part(f"The log says: {note}\n\nI look into it."))
    seen = task(tmp_path, [ASKED, quoted, user(part("<user_message>thanks</user_message>"), ts=3000)])
    assert (stops(seen), note in seen.responses[0].exchange.response.text) == (["end_turn"], True)


@pytest.mark.parametrize("text", ["[apply_diff for 'a'] Result:\nThe user denied this operation.", None])
def test_a_call_that_the_user_refused_did_not_run(tmp_path, text):
    denied = part(text) if text else result('{"status":"denied","message":"The user denied this operation."}')
    seen = task(tmp_path, [ASKED, model(CALL), user(denied, ts=3000), model(part("ok"), ts=4000)])
    assert seen.responses[0].exchange.refusals == {"c1": "the user refused it: it did not run"}


def test_a_partial_row_without_a_cost_is_a_stream_that_died(tmp_path):
    growing = {"ts": 950, "type": "say", "say": "text", "text": "o", "partial": True}
    assert stops(task(tmp_path, [ASKED, model(part("o"))], [request(tokensIn=1), growing])) == ["interrupted"]
    assert stops(task(tmp_path, [ASKED, model(part("o"))], [request(**DONE), growing])) == ["unknown"]


def test_reasoning_is_no_text_of_the_answer(tmp_path):
    thought = {"type": "reasoning", "text": "let me see", "summary": []}
    response = task(tmp_path, [ASKED, model(thought, part("ok"))]).responses[0].exchange.response
    assert response.text == "ok"
    assert [each.text for each in response.parts] == ["let me see", "ok"]


DONE_CALL = {"type": "tool_use", "id": "c9", "name": "attempt_completion", "input": {"result": "all done"}}
SHOWN = {"ts": 2100, "type": "say", "say": "completion_result", "text": "all done", "partial": False}


@pytest.mark.parametrize("asks", [
    {"ask": "completion_result", "text": ""}, {"ask": "tool", "text": json.dumps({"tool": "finishTask"})},
])
def test_a_task_that_was_completed_ends_with_a_call_that_ran(tmp_path, asks):
    seen = task(tmp_path, [ASKED, model(DONE_CALL)], [request(**DONE), SHOWN, {"ts": 2200, "type": "ask", **asks}])
    assert stops(seen) == ["tool_call"]
    assert "transcript.inferred.completion" in rules(seen)


@each_row(("blocks", "row"), [
    ([DONE_CALL], SHOWN),  # it is also written while the call still arrives
    ([DONE_CALL], {"ts": 2200, "type": "ask", "ask": "completion_result", "text": "", "partial": True}),
    ([DONE_CALL], {"ts": 2200, "type": "ask", "ask": "tool", "text": json.dumps({"tool": "newTask"})}),
    ([DONE_CALL], {"ts": 2200, "type": "ask", "ask": "tool"}),
    ([CALL, DONE_CALL], {"ts": 2200, "type": "ask", "ask": "completion_result", "text": ""}),
    ([CALL], {"ts": 2200, "type": "ask", "ask": "completion_result", "text": ""}),
])
def test_what_does_not_show_that_the_task_was_completed(tmp_path, blocks, row):
    assert stops(task(tmp_path, [ASKED, model(*blocks)], [request(**DONE), SHOWN, row])) == ["unknown"]


def test_a_failed_request_is_an_exchange_of_its_own(tmp_path):
    failed = {"ts": 905, "type": "ask", "ask": "api_req_failed", "text": "overloaded"}
    seen = task(tmp_path, [ASKED, model(part("ok"))], [request(), failed, request(950, **DONE)])
    assert len(seen.responses) == 2
    assert seen.responses[0].exchange.response.error.message == "overloaded"
    seen = task(tmp_path, [ASKED], [request(cancelReason="streaming_failed", streamingFailedMessage="terminated")])
    assert seen.responses[0].exchange.response.error.message == "terminated"
    seen = task(tmp_path, [ASKED, user(part("again"), ts=3000)], [request(cancelReason="streaming_failed")])
    assert (stops(seen), words(seen)) == (["error"], ["ERROR"])


def test_requests_without_answer_are_counted(tmp_path):
    seen = task(tmp_path, [ASKED, model(part("ok"))], [request(**DONE), request(950, **DONE)])
    assert "requests without an answer" in notices(seen)


def test_requests_by_order_where_messages_have_no_times(tmp_path):
    bare = [{key: value for key, value in row.items() if key != "ts"} for row in (ASKED, model(part("ok")))]
    seen = task(tmp_path, bare, [request(**DONE)], name="claude_messages.json")
    assert seen.responses[0].exchange.response.usage.output_tokens == 4
    seen = task(tmp_path, bare, [request(**DONE), request(950, **DONE)], name="claude_messages.json")
    assert seen.responses[0].exchange.response.usage is None
    assert "cannot be matched" in notices(seen)


def test_models_and_counts_of_cline(tmp_path):
    tokens = {"tokens": {"prompt": 7, "completion": 3, "cached": 1}}
    seen = task(tmp_path, [ASKED, model(part("a"), modelInfo={"modelId": "m-2"}, metrics=tokens),
                           user(part("[read_file for 'a'] Result:"), ts=3000), model(part("b"), ts=4000)],
                task_metadata={"model_usage": [{"ts": 3500, "model_id": "m-3"}]})
    assert [view.exchange.response.model for view in seen.responses] == ["m-2", "m-3"]
    assert seen.responses[0].exchange.response.usage == (7, 3, None, 1, None)
    assert stops(seen) == ["unknown", "unknown"]  # what the agent itself says ends no turn


def test_a_file_beside_a_task_is_read_as_far_as_it_goes(tmp_path):
    folder = tmp_path / "task-1"
    folder.mkdir()
    (folder / "task_metadata.json").write_text('{"model_usage": [{"ts": 3500, "model_id": "m-3"}], "files": [{"pa')
    seen = task(tmp_path, [ASKED, model(part("a")), user(part("[x] Result:"), ts=3000), model(part("b"), ts=4000)])
    assert [view.exchange.response.model for view in seen.responses] == ["m-1", "m-3"]


def test_the_user_went_on(tmp_path):
    seen = task(tmp_path, [ASKED, model(part("ok")), user(part("[x] Result:\n<feedback>more</feedback>"), ts=3000),
                           model(part("b"), ts=4000)])
    assert stops(seen) == ["end_turn", "unknown"]
    assert "transcript.inferred.user_went_on" in rules(seen)


def test_a_result_without_its_call_is_no_message_of_the_user(tmp_path):
    lost = user(part("Tool result:\nok"), ts=3000)
    seen = task(tmp_path, [ASKED, model(part("I look.")), lost, model(part("b"), ts=4000)])
    assert stops(seen) == ["unknown", "unknown"]


def test_summaries_and_hidden_messages(tmp_path):
    hidden = model(part("old"), ts=500, condenseParent="x")
    seen = task(tmp_path, [ASKED, hidden, model(part("summary"), isSummary=True), model(part("new"), ts=4000)])
    assert [view.exchange.response.text for view in seen.responses] == ["old", "new"]
    assert "hidden from the model" in notices(seen)


def test_the_screen_alone_is_text(tmp_path):
    rows = [{"ts": 1, "type": "say", "say": "text", "text": "go"}, request(2, **DONE),
            {"ts": 3, "type": "say", "say": "reasoning", "text": "hm"},
            {"ts": 3, "type": "ask", "ask": "tool", "text": "{}"}, {"ts": 3, "type": "say", "say": 7},
            {"ts": 4, "type": "say", "say": "text", "text": "done", "modelInfo": {"modelId": "claude-opus-4-6"}},
            {"ts": 5, "type": "ask", "ask": "completion_result", "text": ""}]
    seen = task(tmp_path, None, rows)
    response = seen.responses[0].exchange.response
    assert (response.text, response.usage.output_tokens, response.model) == ("done", 4, "claude-opus-4-6")
    assert "only what was on the screen" in notices(seen)
    assert "records that hold no exchange: 7 (1), completion_result (1), tool (1)" in notices(seen)


def test_damage(tmp_path):
    folder = tmp_path / "task-1"
    folder.mkdir()
    whole = json.dumps([ASKED, model(part("ok")), model(part("cut"))])
    (folder / HISTORY).write_text(whole[:-12])
    (folder / SCREEN).write_text('[{"ts": 1, "type": "say", "say": "api_req_started", "text": 3}, 7, nul')
    seen = view_file(folder / HISTORY)
    assert seen.responses[0].exchange.response.text == "ok"
    assert "is cut" in notices(seen)
    (folder / HISTORY).write_text(json.dumps([{"role": 3, "content": 4}, {"role": "assistant", "content": 3, "ts": "x",
                                                                         "reasoning_content": 1}, {}]))
    assert "was expected" in notices(view_file(folder / HISTORY))


def test_recognised_by_name_or_rows():
    assert choose(b'[{"role": "user", "content": "a", "ts": 1}]', "a.json") == "roo"
    assert choose(b'[{"ts": 1, "type": "say", "say": "text"}]', "a.json") == "roo"
    assert choose(b"[]", f"t/{HISTORY}") == "roo"


def test_results_as_text(tmp_path):
    seen = task(tmp_path, [ASKED, model(CALL), user(part("[apply_diff for 'a'] Result:\nok"), ts=3000),
                           model(part("<read_file>a</read_file>"), ts=4000),
                           user(part("[read_file for 'a'] Result:\nok"), ts=5000), model(part("b"), ts=6000)])
    assert stops(seen) == ["tool_call", "unknown", "unknown"]
    assert len(seen.turns) == 1
    assert not seen.responses[1].exchange.response.tool_calls


def test_discovery(tmp_path):
    folder = tmp_path / ".config/VSCodium/User/globalStorage/zoocodeorganization.zoo-code/tasks/t1"
    folder.mkdir(parents=True)
    (folder / HISTORY).write_text(json.dumps([ASKED]))
    found = transcripts({"HOME": str(tmp_path)})
    assert [(each.path, each.agent) for each in found] == [(str(folder / HISTORY), "Zoo Code")]
    assert open_paths([str(folder / HISTORY)]).inputs


def test_the_turns_of_a_task_that_zoo_copied_from_roo_are_counted_once(tmp_path):
    more = user(part("<feedback>\nmore\n</feedback>"), ts=3000)
    rows = [ASKED, model(part("One.")), more, model(part("Two."), ts=4000)]
    for folder, count in (("rooveterinaryinc.roo-cline", 2), ("zoocodeorganization.zoo-code", 4)):
        (tmp_path / folder / "tasks/t1").mkdir(parents=True)
        (tmp_path / folder / "tasks/t1" / HISTORY).write_text(json.dumps(rows[:count]))
    found = open_paths([str(tmp_path)])
    assert [exchange.response.text for exchange in found.exchanges] == ["One.", "Two."]
    assert "answers copied from another session" in "\n".join(note for each in found.inputs for note in each.notices)


def test_a_session_of_clines_sdk(tmp_path):
    path = tmp_path / "s1.messages.json"
    whole = {"version": 1, "agent": "lead", "sessionId": "s1", "messages": [
        user(part("go")), model(part("hm"), CALL, modelInfo={"id": "m-4"}), user(result("done"), ts=3000),
        model(part("ok"), ts=4000, metrics={"inputTokens": 9, "outputTokens": 4})]}
    path.write_text(json.dumps(whole))
    seen = view_file(path)
    assert stops(seen) == ["tool_call", "unknown"]
    assert seen.responses[0].exchange.response.model == "m-4"
    assert seen.responses[1].exchange.response.usage is None  # the counts of a whole turn


@pytest.mark.parametrize("written", ["Task was interrupted before this tool call could be completed.",
                                     "Tool execution was interrupted before completion."])
def test_a_result_that_roo_puts_in_for_a_missing_one_proves_no_whole_call(tmp_path, written):
    resumed = user(result(written), part("[TASK RESUMPTION] go on"), ts=3000)
    seen = task(tmp_path, [ASKED, model(CALL), resumed, model(part("ok"), ts=4000)])
    assert stops(seen) == ["unknown", "unknown"]
    read = user(result(f"The log says: {written}"), ts=3000)
    assert stops(task(tmp_path, [ASKED, model(CALL), read]))[0] == "tool_call"


def store(tmp_path, *messages, status=None):
    path = tmp_path / "s1.messages.json"
    path.write_text(json.dumps({"version": 1, "agent": "lead", "sessionId": "s1", "messages": messages}))
    if status is not None:
        (tmp_path / "s1.json").write_text(json.dumps({"version": 1, "session_id": "s1", "status": status}))
    return view_file(path)


def invalid_call(text, name="apply_diff", key="c1"):
    return {"invalidToolCalls": [{"toolCallId": key, "toolName": name, "reason": "invalid_arguments",
                                  "input": {"rawInputText": text, "parseError": "Unexpected end of JSON input"}}]}


def test_clines_sdk_keeps_the_text_of_a_call_that_it_could_not_read(tmp_path):
    refused = result('{"error": "Tool call apply_diff emitted invalid JSON arguments: Unexpected end"}', error=True)
    seen = store(tmp_path, user(part("go")), model(CALL, metadata=invalid_call('{"path":"a')), user(refused, ts=3000),
                 model(part("ok"), ts=4000))
    assert stops(seen) == ["max_tokens", "unknown"]
    assert "transcript.inferred.call_cut" in rules(seen)
    assert [call.arguments for call in seen.responses[0].exchange.response.tool_calls] == ['{"path":"a']


def test_a_call_without_a_name_is_not_lost(tmp_path):
    seen = store(tmp_path, user(part("go")), model(part("hm"), metadata=invalid_call('{"a":', name=None, key="c9")))
    assert stops(seen) == ["max_tokens"]
    (call,) = seen.responses[0].exchange.response.tool_calls
    assert (call.id, call.name, call.arguments) == ("c9", "", '{"a":')


@each_row("said_of_it", ["emitted invalid JSON arguments: Unexpected end",
                                        "was rejected before execution: no such tool"])
@each_row("form", ["{}", '{{"error":"{}"}}'])
def test_clines_sdk_refuses_a_call_of_which_it_kept_a_stub(tmp_path, said_of_it, form):
    refused = result(form.format(f"Tool call apply_diff {said_of_it}"), error=True)
    seen = store(tmp_path, user(part("go")), model(CALL), user(refused, ts=3000), model(part("ok"), ts=4000))
    assert stops(seen) == ["malformed_tool_call", "unknown"]


@each_row("metadata", [{"userRunSpan": 0}, {"displayRole": "system"}, {"displayRole": "status"},
                                      {"displayRole": "error"}])
def test_a_reminder_of_clines_sdk_is_no_message_of_the_user(tmp_path, metadata):
    seen = store(tmp_path, user(part("go")), model(part("hm")), user(part("Submit it."), ts=3000, metadata=metadata),
                 model(part("ok"), ts=4000), user(part("more"), ts=5000, metadata={"userRunSpan": 1}))
    assert stops(seen) == ["unknown", "end_turn"]


CUT_OFF = ("Your previous response was cut off because it reached the model's output-token limit before finishing. "
           "Keep responses concise.")


@pytest.mark.parametrize(("span", "ends"), [(0, ["max_tokens", "unknown"]), (1, ["unknown", "unknown"])])
def test_what_clines_sdk_tells_the_model_of_the_output_limit_shows_a_cut(tmp_path, span, ends):
    seen = store(tmp_path, user(part("go")), model(part("The queue was")),
                 user(part(CUT_OFF), ts=3000, metadata={"userRunSpan": span}), model(part(" full."), ts=4000))
    assert stops(seen) == ends
    assert ("transcript.inferred.resumed" in rules(seen)) is (span == 0)


def failure(text, **more):
    """The row that Cline writes in the model's name where a run fails."""
    return model(part(text), metadata={"displayOnly": True, "displayRole": "error"}, **more)


LOST = "The socket connection was closed unexpectedly. For more information, pass `verbose: true`"
NO_COUNTS = {"inputTokens": 0, "outputTokens": 0, "cacheReadTokens": 0, "cacheWriteTokens": 0}


def test_an_error_that_clines_sdk_writes_in_the_models_name_ends_the_answer_before_it(tmp_path):
    seen = store(tmp_path, user(part("go")), model(part("The queue was sat"), metrics=NO_COUNTS),
                 failure(LOST, ts=4000))
    (facts,) = seen.responses
    response = facts.exchange.response
    assert (response.text, response.error.message, response.usage) == ("The queue was sat", LOST, None)
    assert [turn.verdict.word for turn in seen.turns] == ["ERROR"]
    assert facts.exchange.body.count(b"\n") == 1  # both rows


def test_an_error_of_clines_sdk_without_an_answer_is_a_request_that_failed(tmp_path):
    seen = store(tmp_path, user(part("go")), model(CALL), user(result("done"), ts=3000),
                 failure("429 Too Many Requests", ts=4000, modelInfo={"id": "m-4"}), user(part("again"), ts=5000),
                 model(part("ok"), ts=6000))
    assert [facts.exchange.response.text for facts in seen.responses] == [None, None, "ok"]
    failed = seen.responses[1].exchange
    assert (failed.response.error.message, failed.model) == ("429 Too Many Requests", "m-4")
    assert stops(seen)[0] == "tool_call"
    assert [turn.verdict.word for turn in seen.turns] == ["ERROR", "END NOT RECORDED"]


def test_the_error_of_clines_sdk_about_the_output_limit_shows_a_cut(tmp_path):
    limit = "Model reached the maximum output token limit before completing the turn"
    seen = store(tmp_path, user(part("go")), model(part("The queue was")), failure(limit, ts=4000))
    assert stops(seen) == ["max_tokens"]
    assert "transcript.inferred.error_row" in rules(seen)
    assert [facts.exchange.response.text for facts in seen.responses] == ["The queue was"]


def test_an_error_of_clines_sdk_behind_a_call_says_nothing_of_its_answer(tmp_path):
    seen = store(tmp_path, user(part("go")), model(CALL), failure("ENOSPC: no space left on device", ts=4000))
    assert stops(seen) == ["unknown"]
    assert [call.name for call in seen.responses[0].exchange.response.tool_calls] == ["apply_diff"]


def test_clines_sdk_counts_each_answer_or_a_whole_turn(tmp_path):
    first = {"inputTokens": 5, "outputTokens": 2, "cacheReadTokens": 1, "cacheWriteTokens": 3}
    last = {"inputTokens": 9, "outputTokens": 4}
    seen = store(tmp_path, user(part("go")), model(CALL, metrics=first), user(result("done"), ts=3000),
                 model(part("ok"), ts=4000, metrics=last), user(part("more"), ts=5000),
                 model(part("b"), ts=6000, metrics=last))
    assert [view.exchange.response.usage for view in seen.responses] == [
        (5, 2, None, 1, 3), (9, 4, None, None, None), (9, 4, None, None, None)]


@each_row(("status", "told"), [("failed", True), ("cancelled", True), ("running", True),
                                              ("completed", False), ("idle", False), (3, False)])
def test_the_state_of_a_session_of_clines_sdk(tmp_path, status, told):
    seen = store(tmp_path, user(part("go")), model(part("ok")), status=status)
    assert (f"left in the state {status!r}" in notices(seen)) is told


def test_a_history_that_is_no_json_says_what_its_name_promises(tmp_path):
    path = tmp_path / HISTORY
    path.write_text("some notes\n")
    (given,) = open_paths([str(path)]).inputs
    assert "text of no session format (line 1)" in str(given.error)
    assert "by its name it would be Roo Code or Cline task (expects a list of messages" in str(given.error)
