"""Sessions of pi and OpenClaw: the tree, pi's own words for an end, what ran a cut call, and versions 1 to 3."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inspector.config.settings import Settings
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report import explain
from inspector.report.facts import view
from inspector.report.filters import parse, responses
from inspector.report.times_and_costs import InputTokens, input_tokens
from inspector.sessions import open_paths
from inspector.sessions.reasons import named_api
from loop_core.turn.limits import Limits
from tests.scenes.rows import each_row
from tests.scenes.transcripts import (
    Row,
    entry,
    header,
    pi,
    pi_call,
    pi_reply,
    pi_result,
    pi_user,
    places,
    rules,
    show,
    stops,
    text,
    view_file,
    words,
)

WHOLE = {"path": "a.md", "content": "one"}


def notices(seen) -> str:
    return "\n".join(seen.inputs[0].notices)


def messages(seen, rule: str) -> list[str]:
    return [noted.finding.message for noted in seen.findings if noted.finding.rule == rule]


@each_row(
    ("word", "stop", "detail"),
    [
        ("stop", "end_turn", None),
        ("length", "max_tokens", None),
        ("toolUse", "tool_call", "no_calls"),
        ("aborted", "cancelled", None),
        ("error", "error", "fatal"),
        ("deferred", "unknown", None),
    ],
)
def test_the_words_are_the_recorders_and_the_providers_is_absent(tmp_path, word, stop, detail):
    seen = show(pi(pi_user("hi"), pi_reply(text("Hello."), stop=word)), tmp_path)
    (facts,) = seen.responses
    assert (facts.judgement.stop.normalized, facts.judgement.stop.detail) == (stop, detail)
    assert facts.exchange.response.raw_stop_reason is None
    assert rules(seen)[0] == "transcript.recorder"
    assert facts.judgement.stop.evidence[0].note == word
    at = facts.judgement.stop.evidence[0].at
    assert facts.exchange.body[at.start : at.end] == facts.exchange.body
    (message,) = messages(seen, "transcript.normalized")
    assert f"the recorder says {word!r}" in message


def test_a_complete_answer_says_whose_word_it_is(tmp_path):
    seen = show(pi(pi_user("hi"), pi_reply(text("Hello."))), tmp_path)
    assert seen.turns[0].verdict.word == "COMPLETE"
    assert seen.turns[0].verdict.sentence == 'openai_chat ended with "stop" as the recorder says, 7 tokens'
    usage = seen.responses[0].exchange.response.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (12, 7, 5)


def test_a_text_that_stops_in_the_middle_under_pis_own_word_is_not_complete(tmp_path):
    """pi 0.73 begins each answer with `stop`, and keeps it where the stream ends without a reason."""
    seen = show(pi(pi_user("hi"), pi_reply(text("The files are:\n```python\ndef main(")), pi_user("go on"),
                    pi_reply(text("Here it is"))), tmp_path)
    assert words(seen) == ["TEXT UNFINISHED", "COMPLETE"]
    assert "the text stops in the middle" in seen.turns[0].verdict.sentence


@each_row(("api", "given"), [("openai-completions", 20), ("anthropic-messages", 12)])
@each_row("total", [27, None])
def test_what_pi_counts_beside_the_input_is_input_where_the_format_has_it_so(tmp_path, api, given, total):
    counts = {"input": 12, "output": 7, "cacheRead": 5, "cacheWrite": 3, "totalTokens": total,
              "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}}  # without prices
    seen = show(pi(pi_user("hi"), pi_reply(text("Hello."), api=api, message={"usage": counts})), tmp_path)
    usage = seen.responses[0].exchange.response.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (given, 7, 5)
    assert input_tokens(seen.responses[0].exchange) == InputTokens(12, 5, 3)


def test_a_call_cut_by_length_that_ran_is_told(tmp_path):
    seen = show(pi(pi_user("write"), pi_reply(pi_call(path="a.md"), stop="length"), pi_result("wrote 0 bytes"),
                    pi_reply(text("Done."))), tmp_path)
    assert stops(seen) == ["max_tokens", "end_turn"]
    assert places(seen) == [["request", "tool_result"]]
    assert words(seen) == ["CUT CALL RUN"]
    assert "whose arguments were recorded already parsed and so look complete" in seen.turns[0].verdict.sentence
    (message,) = messages(seen, "agent.ran_held_call")
    assert "which this loop holds: the request of response 2 has its result 'wrote 0 bytes'" in message


def test_it_is_told_too_where_the_session_ends_with_the_result(tmp_path):
    cut = pi_reply(pi_call(path="a.md"), stop="length")
    seen = show(pi(pi_user("write"), cut, pi_result("wrote 0 bytes")), tmp_path)
    assert words(seen) == ["CUT CALL RUN"]
    assert "which this loop holds: the recording has its result" in messages(seen, "agent.ran_held_call")[0]


def test_a_cut_call_that_got_an_error_did_not_run(tmp_path):
    seen = show(pi(pi_user("write"), pi_reply(pi_call(path="a.md"), stop="length"),
                    pi_result('Validation failed for tool "write":\n  - content: is missing', error=True)), tmp_path)
    assert messages(seen, "agent.ran_held_call") == []
    assert len(messages(seen, "agent.refused_held_call")) == 1
    assert words(seen) == ["CALL HELD"]


@pytest.mark.parametrize(("given", "reason"), [
    ('{"path": "a.md", "content": "Sat', "max_tokens"), ("[1]", "malformed_tool_call")])
def test_arguments_that_were_no_json_are_the_models_own_text(tmp_path, given, reason):
    """pi 1.3 stores `{}` and quotes the text in the call's error."""
    why = f"Unterminated string in JSON at position 31\n\nReceived arguments:\n{given}"
    call = {**pi_call(), "argumentsError": why}
    rows = [pi_user("write"), pi_reply(call, stop="toolUse", message={"rawStopReason": "tool_calls"}),
            pi_result(f'Invalid arguments for tool "write": {why}', error=True)]
    seen = show(pi(*rows), tmp_path)
    assert (words(seen), stops(seen)) == (["CALL HELD"], [reason])
    assert [each.arguments for each in seen.responses[0].exchange.response.tool_calls] == [given]
    assert words(show(pi(*rows, pi_reply(pi_call("call_02", path="a.md"), stop="toolUse"), pi_result(key="call_02"),
                         pi_reply(text("Done."))), tmp_path)) == ["CALL REPAIRED"]


def test_without_a_word_what_follows_is_looked_at(tmp_path):
    asked, done = pi_reply(pi_call(**WHOLE), stop=None), pi_reply(text("Done."), stop=None)
    seen = show(pi(pi_user("look"), asked, pi_result(), done), tmp_path)
    assert stops(seen) == ["tool_call", "unknown"]
    assert rules(seen) == ["transcript.absent", "transcript.inferred.calls_answered"]
    assert words(seen) == ["END NOT RECORDED"]


def test_a_tree_has_branches_and_a_conversation(tmp_path):
    seen = show(pi(
        pi_user("one"), pi_reply(text("1"), id="a1"), pi_user("two"), pi_reply(text("2")),
        entry("branch_summary", parentId="a1", summary="tried two", fromId="e4"),
        pi_user("three"), pi_reply(text("3")),
    ), tmp_path)
    assert [turn.run.record.user_text for turn in seen.turns] == ["one", "two", "three"]
    assert [turn.run.record.links[0].parent for turn in seen.turns] == [None, 0, 0]
    assert {turn.conversation for turn in seen.turns} == {"c1"}


def test_labels_compaction_and_changes_are_passed_through_and_told(tmp_path):
    seen = show(pi(
        entry("model_change", provider="p", modelId="m"), entry("thinking_level_change", thinkingLevel="off"),
        pi_user("one"), pi_reply(text("1")), entry("label", targetId="e3", label="good place"),
        entry("session_info", name="A name"),
        entry("compaction", summary="s", firstKeptEntryId="e3", tokensBefore=1900),
        pi_user("two"), pi_reply(text("2")), entry("hologram"),
    ), tmp_path)
    assert [turn.run.record.user_text for turn in seen.turns] == ["one", "two"]
    assert {turn.conversation for turn in seen.turns} == {"c1"}
    assert messages(seen, "transcript.compacted") == [
        "line 8: the history was compacted before this answer (1,900 tokens before)"]
    assert [noted.response for noted in seen.findings if noted.finding.rule == "transcript.compacted"] == [1]
    assert "the user's labels: good place" in notices(seen)
    assert "records of unknown type were skipped: hologram (1)" in notices(seen)
    assert seen.inputs[0].about.title == "A name"


def test_an_error_that_was_sent_again_is_a_retry(tmp_path):
    wrong = pi_reply(stop="error", message={"errorMessage": "529 overloaded_error: Overloaded"})
    seen = show(pi(pi_user("hi"), wrong, pi_reply(text("Hello."))), tmp_path)
    assert (stops(seen), seen.responses[0].judgement.stop.detail) == (["error", "end_turn"], "retryable")
    assert places(seen) == [["request", "retry"]]
    assert words(seen) == ["RETRIED"]


def test_a_word_of_other_digits_is_no_status(tmp_path):
    wrong = pi_reply(stop="error", message={"errorMessage": "\u00b2\u00b2\u00b2 times it failed"})
    error = show(pi(pi_user("hi"), wrong), tmp_path).responses[0].exchange.response.error
    assert (error.message, error.code) == ("\u00b2\u00b2\u00b2 times it failed", None)


def test_an_error_of_a_full_context_is_one(tmp_path):
    wrong = pi_reply(stop="error", message={"errorMessage": "400 prompt is too long: 210000 tokens > 200000 maximum"})
    assert stops(show(pi(pi_user("hi"), wrong), tmp_path)) == ["context_window_exceeded"]


def test_a_cut_text_that_was_continued_is_merged(tmp_path):
    seen = show(pi(pi_user("tell"), pi_reply(text("Once upon"), stop="length"), pi_user("continue"),
                    pi_reply(text(" a time."))), tmp_path)
    assert places(seen) == [["request", "continuation"]]
    assert seen.turns[0].joined_text.text == "Once upon a time."
    assert words(seen) == ["CUT, COMPLETED"]
    shorter = show(pi(pi_user("tell"), pi_reply(text("Once upon"), stop="length"), pi_user("continue"),
                       pi_reply(text(" a time."))), tmp_path, Settings(Limits(continuation_max_attempts=0)))
    assert (shorter.turns[0].terminal, shorter.turns[0].joined_text.text) == ("retry_limit", "Once upon")


def test_version_1_is_a_line(tmp_path):
    seen = show(pi(pi_user("look"), pi_reply(pi_call(**WHOLE), stop="toolUse"), pi_result(), pi_reply(text("Done.")),
                    pi_user("more"), pi_reply(text("Yes.")), version=1), tmp_path)
    assert places(seen) == [["request", "tool_result"], ["request"]]
    assert words(seen) == ["COMPLETE", "COMPLETE"]


def test_version_2_has_words_that_an_extension_put_in(tmp_path):
    hook = {"type": "message", "message": {"role": "hookMessage", "customType": "x", "content": "be quick"}}
    seen = show(pi(pi_user("hi"), hook, pi_reply(text("Hello.")), version=2), tmp_path)
    assert [message.text for message in seen.responses[0].exchange.request.messages] == ["hi"]
    alone = show(pi(hook, pi_reply(text("Hello.")), version=2), tmp_path)
    assert [message.text for message in alone.responses[0].exchange.request.messages] == ["be quick"]


def test_words_of_an_extension_and_commands_reach_the_model(tmp_path):
    ran = {"role": "bashExecution", "command": "ls", "output": "a.md", "exitCode": 0}
    hidden = {**ran, "excludeFromContext": True}
    injected = entry("custom_message", content="injected")
    rows = [injected, entry("message", message=ran), entry("message", message=hidden)]
    seen = show(pi(*rows, pi_reply(text("Hello."))), tmp_path)
    assert [message.text for message in seen.responses[0].exchange.request.messages] == ["injected", "ls\na.md"]


def test_openclaw_names_the_header_and_a_call_as_parents(tmp_path):
    seen = show(pi(
        pi_user("look", parentId=header()["id"]), pi_reply(pi_call(**WHOLE), stop=None),
        pi_result(parentId="call_01"), pi_reply(text("Done."), stop="stop"),
    ), tmp_path)
    assert places(seen) == [["request", "tool_result"]]
    assert "parent" not in notices(seen)
    assert {facts.agent for facts in seen.responses} == {"openclaw"}
    alone = show(pi(pi_user("look"), pi_reply(text("Done."), stop="stop")), tmp_path)
    assert {facts.agent for facts in alone.responses} == {"pi"}


def test_a_session_in_the_folder_of_openclaw_is_one_of_openclaw(tmp_path):
    folder = tmp_path / ".openclaw" / "agents" / "main" / "sessions"
    folder.mkdir(parents=True)
    seen = show(pi(pi_user("look"), pi_reply(text("Done."), stop="stop")), folder)
    assert {facts.agent for facts in seen.responses} == {"openclaw"}


def test_each_name_of_a_wire_format_is_known(tmp_path):
    for name, api in [
        ("anthropic-messages", "anthropic_messages"), ("openai-completions", "openai_chat"),
        ("mistral-conversations", "openai_chat"), ("openai-responses", "openai_responses"),
        ("azure-openai-responses", "openai_responses"), ("openai-codex-responses", "openai_responses"),
        ("google-generative-ai", "gemini_generate"), ("google-gemini-cli", "gemini_generate"),
        ("google-vertex", "gemini_generate"), ("bedrock-converse-stream", "bedrock_converse"),
        ("ollama", "ollama_chat"), ("ollama-chat", "ollama_chat"),
    ]:
        seen = show(pi(pi_user("hi"), pi_reply(text("Hello."), api=name)), tmp_path)
        assert seen.responses[0].exchange.api == api
        assert api in seen.turns[0].verdict.sentence, "only a format that a row names is named"


def test_no_report_names_a_wire_format_that_no_row_names(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text(pi(pi_user("hi"), pi_reply(text("Hello."), api=None), pi_user("on"),
                       pi_reply(text("Hi."), api="ollama-chat")))
    for given, first in ((None, None), ("ollama_chat", "ollama_chat"), ("openai_chat", "openai_chat")):
        seen = view(replay(open_case(open_paths([str(path)], api=given))))
        assert [named_api(facts.exchange) for facts in seen.responses] == [first, "ollama_chat"]
        assert [turn.verdict.sentence.partition(" ")[0] for turn in seen.turns] == [first or "m-1", "ollama_chat"]
        assert responses(parse("api:openai_chat"), seen) == ([0] if first == "openai_chat" else [])
        assert ("wire format not recorded, raw" in explain.text(seen, everything=True)) is (first is None)


def test_a_cut_file_and_damaged_entries_are_told(tmp_path):
    content = pi(pi_user("hi"), pi_reply(text("Hello.")), pi_user("more"))
    seen = show(content.replace('"role": "user"', '"role": 7', 1)[:-9], tmp_path)
    assert "line 4, the last, is cut after" in notices(seen)
    assert "entries that are of an unexpected shape: 1" in notices(seen)
    assert [facts.exchange.response.text for facts in seen.responses] == ["Hello."]


@each_row(("api", "word", "raw", "stop", "detail"), [
    ("anthropic-messages", "stop", "end_turn", "end_turn", None),
    ("anthropic-messages", "stop", "pause_turn", "paused", "echo"),
    ("anthropic-messages", "length", "model_context_window_exceeded", "context_window_exceeded", None),
    ("anthropic-messages", "error", "refusal", "safety_blocked", "refusal"),
    ("openai-responses", "length", "incomplete.max_output_tokens", "max_tokens", None),
    ("openai-responses", "deferred", "queued", "paused", "poll"),
    ("google-generative-ai", "toolUse", "MAX_TOKENS", "max_tokens", None),
    ("mistral-conversations", "length", "model_length", "max_tokens", None),
    ("openai-responses", "stop", "failed", "error", "fatal"),
])
def test_the_providers_own_word_beside_pis(tmp_path, api, word, raw, stop, detail):
    more = {"rawStopReason": raw, "errorMessage": "declined"} if word == "error" else {"rawStopReason": raw}
    seen = show(pi(pi_user("hi"), pi_reply(text("Hello."), stop=word, api=api, message=more)), tmp_path)
    found = seen.responses[0].exchange.response.stop_reason
    assert (found.normalized, found.detail, found.raw) == (stop, detail, raw)
    assert (found.evidence[0].rule, found.evidence[0].at.pointer) == ("transcript.provider", "/message/rawStopReason")
    assert "pi's own words" not in notices(seen)


@pytest.mark.parametrize(("word", "raw"), [("aborted", "length"), ("error", "stop"), ("error", "error")])
def test_an_abort_or_a_failure_after_the_providers_word_counts(tmp_path, word, raw):
    more = {"rawStopReason": raw, "errorMessage": "terminated"}
    seen = show(pi(pi_user("hi"), pi_reply(text("Hello."), stop=word, message=more), pi_user("more"),
                    pi_reply(text("Done."), message={"rawStopReason": "stop"})), tmp_path)
    assert (stops(seen), rules(seen)[0]) == ([{"aborted": "cancelled"}.get(word, word), "end_turn"],
                                             "transcript.recorder")
    assert "1 of 2 stop reasons are pi's own words" in notices(seen)


def test_an_answer_without_a_stop_word_has_none_of_pis(tmp_path):
    seen = show(pi(pi_user("hi"), pi_reply(text("Hello."), stop=None), pi_user("more"), pi_reply(text("Done."))),
                tmp_path)
    assert "1 of 2 stop reasons are pi's own words" in notices(seen)
    assert "1 of 2 answers have no stop reason, as pi keeps none for them" in notices(seen)


def test_files_that_have_some_and_all_of_their_words_from_pi_are_added_up(tmp_path):
    for name, more in (("a", {"message": {"rawStopReason": "stop"}}), ("b", {})):
        (tmp_path / f"{name}.jsonl").write_text(pi(pi_user(name), pi_reply(text("Hello.")), pi_user("more"),
                                                   pi_reply(text("Done."), **more)))
    seen = view_file(tmp_path)
    assert "notice of 2 files: 3 of 4 stop reasons are pi's own words" in explain.text(seen, everything=False, table=80)


def test_a_call_is_pis_to_know_where_the_provider_says_only_that_it_is_done(tmp_path):
    more = {"rawStopReason": "STOP"}
    seen = show(pi(pi_user("write"), pi_reply(pi_call(**WHOLE), stop="toolUse", api="google-generative-ai",
                                              message=more), pi_result("ok"), pi_reply(text("Done."))), tmp_path)
    found = seen.responses[0].exchange.response.stop_reason
    assert (found.normalized, found.raw) == ("tool_call", "STOP")
    assert seen.responses[0].verdicts[0].admission.value == "ready"


def test_an_entry_whose_parent_is_lost_follows_the_entry_before(tmp_path):
    rows = pi(pi_user("go"), pi_reply(pi_call(**WHOLE), stop="length"), entry("custom", customType="x"), pi_result(),
              pi_reply(text("Done."))).splitlines(keepends=True)
    rows[3] = rows[3][:40] + "\n"
    seen = show("".join(rows), tmp_path)
    assert (words(seen), places(seen)) == (["CUT CALL RUN"], [["request", "tool_result"]])
    assert "entries that name a parent that is not in the file before them, so their place is a guess: 1" \
        in notices(seen)


def test_an_answer_whose_parent_is_lost_continues_no_finished_one(tmp_path):
    seen = show(pi(pi_user("go"), pi_reply(text("Done.")), pi_reply(text("More."), parentId="lost")), tmp_path)
    assert words(seen) == ["COMPLETE", "COMPLETE"]


# -- the output of `pi --mode json` ------------------------------------------------------------------------------------


def event(kind: str, row: Row, **more: Any) -> Row:
    """An event about a message, which the stream holds without the message's place in the tree."""
    return {"type": kind, "message": row["message"], **more}


def stream(*answers: Row, header_line: bool = True) -> str:
    """Events as pi prints them: each message begins, grows and ends, and the end of a turn repeats it."""
    events: list[Row] = [header()] if header_line else []
    events.append({"type": "agent_start"})
    for row in answers:
        mine = row["message"]["role"] == "assistant"
        begun = {"message": {**row["message"], "content": [], "stopReason": "stop"}} if mine else row
        events += [{"type": "turn_start"}] * mine + [event("message_start", begun)]
        events += [event("message_update", begun, assistantMessageEvent={"type": "text_delta"})] * mine
        events += [event("message_end", row)] + [event("turn_end", row, toolResults=[])] * mine
    events += [{"type": "agent_end", "messages": [row["message"] for row in answers]}, {"type": "agent_settled"}]
    return "".join(json.dumps(each) + "\n" for each in events)


ASKED_AND_SAID = (
    pi_user("hi"), pi_reply(pi_call(**WHOLE), stop="toolUse"), pi_result("done"),
    pi_reply(text("Cut he"), stop="length"),
)


@pytest.mark.parametrize("header_line", [True, False])
def test_the_events_that_pi_prints_hold_each_message_once(tmp_path, header_line):
    seen = show(stream(*ASKED_AND_SAID, header_line=header_line), tmp_path)
    assert (seen.inputs[0].format, stops(seen)) == ("pi", ["tool_call", "max_tokens"])
    first, last = (facts.exchange for facts in seen.responses)
    (call,) = first.response.tool_calls
    assert (call.name, call.id, first.response.usage.output_tokens) == ("write", "call_01", 7)
    assert (last.response.text, len(seen.turns)) == ("Cut he", 1)
    assert "unknown type" not in notices(seen)
    assert "has no result" not in notices(seen)


def test_an_answer_that_has_no_end_in_the_stream_is_no_answer_and_is_named(tmp_path):
    rows = stream(*ASKED_AND_SAID).splitlines()
    last = max(number for number, row in enumerate(rows) if "message_update" in row)
    seen = show("\n".join(rows[: last + 1]) + "\n", tmp_path)
    assert stops(seen) == ["tool_call"]
    begun = max(number for number, row in enumerate(rows, 1) if "message_start" in row)
    assert f"line {begun}: an answer begins here, and its end is not in the file: it was not read" in notices(seen)


@pytest.mark.parametrize("kind", ["compaction_end", "auto_compaction_end"])
def test_a_compaction_in_the_stream_is_noted_at_the_next_answer(tmp_path, kind):
    rows = stream(*ASKED_AND_SAID).splitlines()
    ended = {"type": kind, "result": {"tokensBefore": 5400}, "aborted": False, "willRetry": False}
    at = max(number for number, row in enumerate(rows) if "message_start" in row)
    seen = show("\n".join([*rows[:at], json.dumps(ended), *rows[at:]]) + "\n", tmp_path)
    (said_of_it,) = messages(seen, "transcript.compacted")
    assert said_of_it == f"line {at + 1}: the history was compacted before this answer (5,400 tokens before)"


@each_row("kind", [
    "queue_update", "tool_execution_start", "tool_execution_update", "tool_execution_end", "auto_retry_start",
    "auto_retry_end", "compaction_start", "compaction_end", "auto_compaction_start", "auto_compaction_end",
    "context_edit", "usage",
])
def test_an_event_about_the_session_is_no_record_of_unknown_type(kind, tmp_path):
    seen = show(stream(*ASKED_AND_SAID) + json.dumps({"type": kind}) + "\n", tmp_path)
    assert stops(seen) == ["tool_call", "max_tokens"]
    assert "unknown type" not in notices(seen)
    assert f"{kind} (1)" in notices(seen)


NO_COUNTS = {"usage": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0}}


@pytest.mark.parametrize("api", ["openai-responses", "google-generative-ai"])
def test_a_stop_without_the_end_of_the_answer_is_no_word(tmp_path, api):
    # pi 0.73.1 does not read `response.incomplete`, and keeps the `stop` that it began the answer with
    cut = show(pi(pi_user("go"), pi_reply(text("Half of"), api=api, message=NO_COUNTS)), tmp_path)
    assert (stops(cut), words(cut)) == (["unknown"], ["END NOT RECORDED"])
    counted = show(pi(pi_user("go"), pi_reply(text("Done."), api=api)), tmp_path)
    assert (stops(counted), words(counted)) == (["end_turn"], ["COMPLETE"])
    empty = show(pi(pi_user("go"), pi_reply(api=api, tokens=0)), tmp_path)
    assert words(empty) == ["EMPTY ANSWER"]
    known = show(pi(pi_user("go"), pi_reply(
        text("Half of"), api=api, message={**NO_COUNTS, "rawStopReason": "completed"})), tmp_path)
    assert stops(known) == ["end_turn"], "the provider's own word is there"


def test_a_stop_without_counts_is_a_word_where_servers_may_send_none(tmp_path):
    seen = show(pi(pi_user("go"), pi_reply(text("Done."), api="openai-completions", message=NO_COUNTS)), tmp_path)
    assert (stops(seen), words(seen)) == (["end_turn"], ["COMPLETE"])


@each_row("api", [
    "openai-responses", "google-generative-ai", "anthropic-messages", "bedrock-converse-stream"])
def test_a_call_beside_such_a_stop_is_held(tmp_path, api):
    seen = show(pi(pi_user("go"), pi_reply(text("I write."), pi_call(path="a"), api=api, message=NO_COUNTS),
                    pi_result("ok"), pi_reply(text("Done."), api=api)), tmp_path)
    assert stops(seen) == ["interrupted", "end_turn"]
    assert messages(seen, "agent.ran_unsure_call")
    assert [each.admission.value for each in seen.responses[0].verdicts] == ["held"]
    assert words(seen) == ["INTERRUPTED"]


@each_row(("api", "message", "stop", "raw"), [
    ("openai-completions", "Provider finish_reason: content_filter", "safety_blocked", "content_filter"),
    ("anthropic-messages", "Unhandled stop reason: model_context_window_exceeded", "context_window_exceeded",
     "model_context_window_exceeded"),
    ("openai-completions", "Provider finish_reason: ran_dry", "error", None),
    ("openai-completions", "Provider finish_reason: content_filter was not expected", "safety_blocked", None),
])
def test_the_word_in_an_error_that_pi_makes_of_it_is_the_providers(tmp_path, api, message, stop, raw):
    seen = show(pi(pi_user("go"), pi_reply(text("Half of"), stop="error", api=api, message={"errorMessage": message})),
                 tmp_path)
    (facts,) = seen.responses
    assert (stops(seen), facts.exchange.response.raw_stop_reason) == ([stop], raw)
