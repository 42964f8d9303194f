"""Sessions of Strands Agents: calls that it took out of a cut answer, results, and files of messages."""

from __future__ import annotations

import json

import pytest

from inspector.sessions import open_paths
from inspector.sessions.importers.recognition import choose
from loop_core.values import OpaquePart, ReasoningPart, TextPart, Usage
from tests.scenes.rows import each_row
from tests.scenes.transcripts import rules, stops, view_file, words

AGENT = {"agent_id": "default", "state": {}, "conversation_manager_state": {}, "_internal_state": {}}
CUT = "The selected tool write_file's tool use was incomplete due to maximum token limits being reached."
CALL = {"toolUse": {"toolUseId": "c1", "name": "on_call", "input": {"team": "platform"}}}
COUNTS = {"usage": {"inputTokens": 3, "outputTokens": 7, "cacheReadInputTokens": 2, "cacheWriteInputTokens": 1}}


def user(*blocks, **more):
    return {"message": {"role": "user", "content": list(blocks)}, "redact_message": None, "created_at": "2026-01-01",
            **more}


def model(*blocks, **more):
    message = {"role": "assistant", "content": list(blocks), "metadata": COUNTS}
    return {"message": message, "redact_message": None, "created_at": "2026-01-02", **more}


def result(text="Ada", status="success", **block):
    content = [block or {"text": text}]
    return user({"toolResult": {"toolUseId": "c1", "status": status, "content": content}})


def text(said):
    return {"text": said}


GO = user(text("go"))


def session(folder, *messages):
    beside = folder / "session_s1" / "agents" / "agent_default" / "messages"
    beside.mkdir(parents=True)
    (folder / "session_s1" / "session.json").write_text(json.dumps({"session_id": "s1", "session_type": "AGENT"}))
    (beside.parent / "agent.json").write_text(json.dumps(AGENT))
    for number, message in enumerate(messages):
        written = message if isinstance(message, str) else json.dumps({**message, "message_id": number}, indent=2)
        (beside / f"message_{number}.json").write_text(written)
    return beside.parent / "agent.json"


def read(folder, *messages):
    return view_file(session(folder, *messages))


def response(seen, index=0):
    return seen.responses[index].exchange.response


def notices(seen):
    return "\n".join(seen.inputs[0].notices)


def test_the_state_of_an_agent_and_a_message_are_recognised(tmp_path):
    for written in (AGENT, {**GO, "message_id": 0}):
        assert choose(json.dumps(written).encode(), "x.json") == "strands"


@each_row("lacking", ["agent_id", "conversation_manager_state", "message", "message_id", "created_at"])
def test_an_object_without_one_of_the_members_is_another(lacking):
    whole = AGENT if lacking in AGENT else {**GO, "message_id": 0}
    written = {name: value for name, value in whole.items() if name != lacking}
    assert choose(json.dumps({**written, "x": "conversation_manager_state"}).encode(), "x.json") != "strands"


def test_the_empty_message_after_a_stop_for_calls_without_a_call_is_no_new_message(tmp_path):
    """Strands stores it, and sends only the answers: the same turn goes on, and nobody wrote anything."""
    seen = read(tmp_path, GO, model(text("I look.")), user(), model(CALL), result(), model(text("Ada.")))
    assert [len(turn.responses) for turn in seen.turns] == [3]
    assert stops(seen)[0] == "unknown"


def test_a_call_that_strands_took_out_of_a_cut_answer_is_held(tmp_path):
    seen = read(tmp_path, GO, model(text("I write."), text(CUT)))
    assert (words(seen), stops(seen)) == (["CALL HELD"], ["max_tokens"])
    assert rules(seen)[:2] == ["transcript.recorder", "strands.cut_calls"]
    assert response(seen).stop_reason.evidence[0].at.pointer == "/message/content/1/text"
    (held,) = response(seen).tool_calls
    assert (held.name, held.arguments, held.closed) == ("write_file", None, False)
    assert [part.text for part in response(seen).parts if isinstance(part, TextPart)] == ["I write."]


def test_a_text_that_quotes_the_sentence_is_a_text(tmp_path):
    assert words(read(tmp_path, GO, model(text(f"It said: {CUT}")))) == ["END NOT RECORDED"]


def test_an_answer_has_no_word_and_its_counts_are_read(tmp_path):
    seen = read(tmp_path, GO, model({"reasoningContent": {"reasoningText": {"text": "hm", "signature": "g"}}},
                                    text("hi"), {"image": {"format": "png"}}))
    assert (words(seen), response(seen).stop_reason.raw) == (["END NOT RECORDED"], None)
    assert response(seen).parts[:2] == (ReasoningPart("hm"), TextPart("hi"))
    assert isinstance(response(seen).parts[2], OpaquePart)
    assert (response(seen).usage, seen.responses[0].exchange.started) == (Usage(3, 7, None, 2, 1), "2026-01-02")
    assert "answers have no stop reason, as Strands keeps none for them: " in notices(seen)


def test_messages_are_in_the_order_of_their_numbers_in_one_turn(tmp_path):
    seen = read(tmp_path, GO, *([model(CALL), result()] * 5), model(text("Ada")))
    assert (len(seen.turns), stops(seen)) == (1, ["tool_call"] * 5 + ["unknown"])
    assert seen.inputs[0].about.title == "s1"


@pytest.mark.parametrize(("given", "shown", "failed"), [
    (result(), "Ada", False), (result("Error: down", "error"), "Error: down", True),
    (result(json={"a": 1}), '{"a": 1}', False),
])
def test_the_result_of_a_call_is_read(tmp_path, given, shown, failed):
    (answer,) = read(tmp_path, GO, model(CALL), given).inputs[0].answers
    assert (answer.result.call_id, answer.result.text, answer.result.is_error) == ("c1", shown, failed)


def test_arguments_that_did_not_fit_did_not_run(tmp_path):
    call = {"toolUse": {"toolUseId": "c1", "name": "page_team", "input": {"name": "a"}}}
    why = "Error: Validation failed for input parameters: 1 validation error for Page_teamTool\nteam\n  Field required"
    assert words(read(tmp_path, GO, model(call), result(why, "error"))) == ["CALL REJECTED"]


def test_a_refused_call_with_nothing_was_no_json_and_holds_the_call_that_ran_beside_it(tmp_path):
    """Strands stores `{}` for arguments that it could not parse, so the refusal shows that the answer is not whole."""
    lost = {"toolUse": {"toolUseId": "c2", "name": "on_call", "input": {}}}
    refusal = "Error: Validation failed for input parameters: 1 validation error for On_callTool\nteam\n  Field"
    refused = {"toolResult": {"toolUseId": "c2", "status": "error", "content": [text(refusal)]}}
    seen = read(tmp_path, GO, model(CALL, lost), user(result()["message"]["content"][0], refused), model(text("Ada.")))
    assert stops(seen)[0] == "malformed_tool_call"
    assert [verdict.admission.value for verdict in seen.responses[0].verdicts] == ["held", "held"]
    assert "agent.ran_unsure_call" in [each.finding.rule for each in seen.findings]


def test_an_answer_that_the_user_stopped_is_none_of_the_model(tmp_path):
    cancelled = model(text("Cancelled by user"))
    seen = read(tmp_path, GO, model(text("hi")), user(text("more")), cancelled, GO, model(text("a")))
    assert [part.text for each in seen.responses for part in each.exchange.response.parts] == ["hi", "a"]


def test_a_message_that_a_guardrail_replaced_is_told(tmp_path):
    seen = read(tmp_path, user(text("secret"), redact_message={"role": "user", "content": [text("redacted")]}),
                model(text("hi")))
    assert seen.responses[0].exchange.request.messages[0].parts[0].text == "redacted"
    assert "messages that hold what a guardrail put in place of the message: 1" in notices(seen)


def test_damaged_and_unknown_messages_hide_nothing_else(tmp_path):
    seen = read(tmp_path, GO, "{", {"message": {"role": "hologram", "content": []}}, model(text("hi")))
    assert response(seen).parts == (TextPart("hi"),)
    assert "hologram" in notices(seen)


def test_one_message_is_read_with_its_agent_and_alone_where_that_is_missing(tmp_path):
    agent = session(tmp_path, GO, model(text("hi")))
    message = agent.parent / "messages" / "message_1.json"
    (given,) = open_paths([str(message)]).inputs
    assert "expected the agent.json of the folder above" in given.error
    agent.unlink()
    assert [each.exchange.response.parts for each in view_file(message).responses] == [(TextPart("hi"),)]


def test_a_member_of_an_unexpected_type_is_told(tmp_path):
    seen = read(tmp_path, GO, {**model(text("hi")), "created_at": 7}, {"message": {"role": "assistant", "metadata": 7}})
    assert "created_at is a number" in notices(seen)
    assert "metadata is a number" in notices(seen)


@pytest.mark.parametrize("last", [[GO, model(CALL), result()], [GO, model(text("hi")), GO]])
def test_a_session_without_a_last_answer_says_so(tmp_path, last):
    said = "messages that end the session without an answer, as a run that failed leaves it: 1"
    assert said in notices(read(tmp_path, *last))
    assert said not in notices(read(tmp_path / "whole", *last, model(text("hi"))))


def snapshot(folder, *messages, **more):
    """A snapshot of Strands for JavaScript."""
    path = folder / "snapshot_latest.json"
    held = {"scope": "agent", "schemaVersion": "1.0", "createdAt": "2026-01-01", "data": {
        "messages": [each["message"] for each in messages], "state": {}}, "appData": {}, **more}
    path.write_text(json.dumps(held))
    return path


def test_a_snapshot_has_the_messages_of_a_session(tmp_path):
    seen = view_file(snapshot(tmp_path, GO, model(text("I look."), CALL), result(), model(text("Ada."))))
    assert stops(seen) == ["tool_call", "unknown"]
    assert (response(seen).text, response(seen).tool_calls[0].arguments) == ("I look.", '{"team": "platform"}')
    assert response(seen).usage == Usage(3, 7, None, 2, 1)
    assert [part.text for part in seen.responses[1].exchange.request.messages[0].results] == ["Ada"]
    assert seen.responses[0].exchange.recorder == "strands"
    failed = view_file(snapshot(tmp_path, GO))
    assert "messages that end the session without an answer" in "".join(failed.inputs[0].notices)


@each_row("lacking", ["scope", "schemaVersion"])
def test_an_object_without_one_of_the_members_is_no_snapshot(tmp_path, lacking):
    path = snapshot(tmp_path, GO)
    written = {name: value for name, value in json.loads(path.read_text()).items() if name != lacking}
    assert choose(json.dumps({**written, "x": "schemaVersion"}).encode(), str(path)) != "strands"


@each_row("data", [{"messages": {}}, {"nodes": []}, []])
def test_a_snapshot_without_messages_is_not_of_this_format(tmp_path, data):
    path = snapshot(tmp_path, data=data)
    assert choose(path.read_bytes(), str(path)) != "strands"
