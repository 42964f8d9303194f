"""Conversations of Letta Code: pi's words, the placeholder of an answer that never became complete, and results."""

from __future__ import annotations

import json

import pytest

from inspector.sessions import open_paths
from inspector.sessions.folders import transcripts
from inspector.sessions.importers.recognition import choose
from tests.scenes.rows import each_row
from tests.scenes.transcripts import pi_call, places, rules, show, stops, text, view_file, words

COUNTS = {"input": 90, "output": 12, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 102}
NO_COUNTS = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0}
REMINDER = "<system-reminder>\nThis is an automated message.\n</system-reminder>"


def message(number, role, *content, metadata=None, **more):
    about = {"agent_id": "agent-local-1", "conversation_id": "local-conv-1", **(metadata or {})}
    return {"id": f"ui-msg-{number}", "role": role, "content": list(content), **more, "metadata": about}


def user(number, *said):
    return message(number, "user", *map(text, said), timestamp=1767225601000)


def reply(number, *content, stop="stop", api="anthropic-messages", **more):
    return message(number, "assistant", *content, api=api, provider="anthropic", model="m-1", usage=COUNTS,
                   stopReason=stop, timestamp=1795959558690, **more)


def begun(number, *content, api="local"):
    """What Letta Code stores of an answer until it is complete."""
    return message(number, "assistant", *content, api=api, provider=api, model=api, usage=NO_COUNTS, stopReason="stop",
                   timestamp=1767225602000)


def result(number, said="ok", key="call_01", error=False):
    return message(number, "toolResult", text(said), toolCallId=key, toolName="write", isError=error)


def admissions(seen):
    return [verdict.admission.value for facts in seen.responses for verdict in facts.verdicts]


def file(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def seen_in(folder, *rows):
    return show(file(*rows), folder, name="messages.jsonl")


@pytest.mark.parametrize(("word", "stop", "verdict"), [
    ("stop", "end_turn", "COMPLETE"), ("length", "max_tokens", "TRUNCATED"), ("odd", "unknown", "UNKNOWN REASON"),
])
def test_the_word_the_counts_and_the_time_of_an_answer(tmp_path, word, stop, verdict):
    seen = seen_in(tmp_path, user(1, REMINDER, "go"), reply(2, text("Done."), stop=word))
    assert (stops(seen), words(seen)) == ([stop], [verdict])
    (exchange,) = open_paths([str(tmp_path / "messages.jsonl")]).exchanges
    assert (exchange.recorder, exchange.api, exchange.response.model) == ("letta", "anthropic_messages", "m-1")
    assert exchange.response.usage[:2] == (90, 12)
    assert exchange.started == "2026-11-29T13:39:18.690+00:00"
    assert exchange.request.messages[0].parts[0].text == "go", "the reminder is Letta Code's"
    assert rules(seen)[0] == "transcript.recorder"


def test_a_cut_call_that_ran(tmp_path):
    seen = seen_in(tmp_path, user(1, "go"), reply(2, pi_call(path="a."), stop="length"), result(3),
                   reply(4, text("Done.")))
    assert (stops(seen), words(seen)) == (["max_tokens", "end_turn"], ["CUT CALL RUN"])


def test_the_rest_of_a_cut_answer(tmp_path):
    seen = seen_in(tmp_path, user(1, "go"), reply(2, text("Half of"), stop="length"), user(3, "Please continue."),
                   reply(4, text(" it.")))
    assert (words(seen), places(seen)) == (["CUT, COMPLETED"], [["request", "continuation"]])


def test_an_answer_that_never_became_complete(tmp_path):
    # the request failed in the middle of the answer, and Letta Code sent the prompt again
    seen = seen_in(tmp_path, user(1, "go"), begun(2, text("Half of"), pi_call(path="a.")), user(3, "go"),
                   reply(4, text("Done.")))
    assert stops(seen) == ["interrupted", "end_turn"]
    assert rules(seen) == ["transcript.absent", "transcript.inferred.placeholder"]
    first = seen.responses[0].exchange
    assert (first.response.model, first.response.usage, first.started) == (None, None, None), "they are default values"
    assert admissions(seen) == ["held"]
    assert words(seen)[0] == "TRUNCATED, ANSWER LOST"
    assert "(no stop reason recorded, interrupted inferred)" in seen.turns[0].verdict.sentence


def test_an_answer_that_may_still_come(tmp_path):
    seen = seen_in(tmp_path, user(1, "go"), begun(2, text("Half of")))
    assert (stops(seen), words(seen)) == (["unknown"], ["END NOT RECORDED"])


def test_a_message_of_an_older_format_has_no_stop_word(tmp_path):
    seen = seen_in(tmp_path, user(1, "go"), begun(2, text("Done."), api="legacy-local"), user(3, "on"),
                   begun(4, text("Done."), api="legacy-local"))
    assert stops(seen) == ["end_turn", "unknown"]
    assert rules(seen)[-1] == "transcript.inferred.user_went_on"


def test_an_interrupted_call_did_not_run(tmp_path):
    seen = seen_in(tmp_path, user(1, "go"), begun(2, pi_call(path="a.")),
                   result(3, "Interrupted by user", error=True), user(4, "on"), reply(5, text("Done.")))
    assert stops(seen) == ["interrupted", "end_turn"]
    assert admissions(seen) == ["held"]


@each_row(("said", "why"), [
    ("write tool missing required parameter: path. Received parameters: ", "the agent refused its arguments"),
    ("Permission denied by rule: Bash(rm:*)", "a permission rule refused it"),
    ("User denied the tool execution", "the user refused it"),
    ("Tool execution denied.", "the user refused it"),
])
def test_a_refused_call_did_not_run(tmp_path, said, why):
    seen = seen_in(tmp_path, user(1, "go"), reply(2, pi_call(), stop="toolUse"), result(3, said, error=True),
                   reply(4, text("Done.")))
    assert seen.responses[0].exchange.refusals == {"call_01": f"{why}: it did not run"}


def test_a_compacted_history(tmp_path):
    summary = message(5, "user", text("(Earlier messages …)"), metadata={"compaction": {"summary": "s"}})
    seen = seen_in(tmp_path, summary, user(6, "go"), reply(7, text("Done.")))
    assert [each.finding.rule for each in seen.findings].count("transcript.compacted") == 1
    assert words(seen) == ["COMPLETE"]


def test_a_message_of_reminders_alone_is_not_the_users(tmp_path):
    seen_in(tmp_path, user(1, "go"), user(2, REMINDER), reply(3, text("Done.")))
    (exchange,) = open_paths([str(tmp_path / "messages.jsonl")]).exchanges
    assert [each.parts[0].text for each in exchange.request.messages] == ["go"]


def test_the_file_beside_it_has_the_title_and_the_id(tmp_path):
    (tmp_path / "conversation.json").write_text(json.dumps({"id": "local-conv-1", "summary": "A report"}))
    (tmp_path / "messages.jsonl").write_text(file(user(1, "go"), reply(2, text("Done."))))
    about = view_file(tmp_path / "messages.jsonl").inputs[0].about
    assert (about.title, about.id) == ("A report", "local-conv-1")


def test_other_messages_are_no_conversation_of_letta():
    assert choose(file(user(1, "go")).encode(), "messages.jsonl") == "letta"
    assert choose(file({**user(1, "go"), "metadata": {"conversation_id": "x"}}).encode(), "messages.jsonl") != "letta"
    assert choose(json.dumps({"metadata": user(1, "go")["metadata"]}).encode(), "messages.jsonl") != "letta"


def test_a_file_before_its_first_message_is_not_listed(tmp_path):
    for name, content in (("a", "\n"), ("b", ""), ("c", file(user(1, "go")))):
        path = tmp_path / ".letta/lc-local-backend/conversations" / name / "messages.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text(content)
    found = transcripts({"HOME": str(tmp_path)})
    assert [(each.path, each.agent) for each in found] == [(str(path), "Letta Code")]
    elsewhere = {"HOME": "/", "LETTA_LOCAL_BACKEND_DIR": str(tmp_path / ".letta/lc-local-backend")}
    assert [each.path for each in transcripts(elsewhere)] == [str(path)]


def test_a_member_of_another_type_is_named(tmp_path):
    seen = seen_in(tmp_path, user(1, "go"), {**reply(2, text("Done.")), "stopReason": 7})
    assert "line 2: stopReason is a number, but text was expected; it was skipped" in "\n".join(
        map(str, seen.inputs[0].notices))
