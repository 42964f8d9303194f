"""What the recorded agent did beside what this loop decides: each finding has a session that shows it."""

from __future__ import annotations

import json

import pytest

from inspector.replay.case import AMBIGUITY
from inspector.report import filters
from inspector.report.lines.calls import call as lines_of_call
from inspector.report.lines.spans import text_of
from inspector.report.turn_rows import rows_of
from loop_core.values import Severity
from tests.scenes.recordings import (
    ASKS,
    CUT,
    GEMINI,
    HINT,
    MESSAGE_TOOLS,
    MESSAGES,
    PARTS,
    TOOLS,
    WHOLE,
    assistant,
    bodiless_har,
    call,
    chat,
    cut_call_ran,
    cut_call_refused,
    cut_stream,
    cut_text,
    exchange,
    message,
    pair_of,
    repair_turn,
    result,
    show,
    user,
)
from tests.scenes.rows import each_row


def agent(found):
    """The findings about the agent: rule, response, severity."""
    return [
        (noted.finding.rule.removeprefix("agent."), noted.response, noted.finding.severity)
        for noted in found.findings
        if noted.finding.rule.startswith("agent.")
    ]


def ran_unknown_word():
    """A whole call under a stop word that no table knows, which the agent ran."""
    history = [*ASKS, assistant(None, call(WHOLE)), result()]
    return (pair_of(ASKS, chat(None, "odd_word", call(WHOLE)), tools=TOOLS),
            pair_of(history, chat("Done."), tools=TOOLS))


def answered_cut_call(text, **more):
    """A cut call of Anthropic Messages, and the result that the agent gave for it."""
    tool_use = {"type": "tool_use", "id": "toolu_1", "name": "write_file", "input": {"path": "a.md"}}
    answer = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": text, **more}]}
    history = [*ASKS, {"role": "assistant", "content": [tool_use]}, answer]
    return (
        pair_of(ASKS, message([tool_use], "max_tokens", 40), url=MESSAGES, max_tokens=40, tools=MESSAGE_TOOLS),
        pair_of(history, message([{"type": "text", "text": "I see."}], "end_turn"), url=MESSAGES, max_tokens=40,
              tools=MESSAGE_TOOLS),
    )


def messages_of(found, rule):
    return [noted.finding.message for noted in found.findings if noted.finding.rule == rule]


# -- a held call was run, or was not ----------------------------------------------------------------------------------


def test_an_agent_that_answers_a_held_call_with_a_result_ran_it():
    found = show(*cut_call_ran())
    assert ("ran_held_call", 0, Severity.ERROR) in agent(found)
    (message_,) = messages_of(found, "agent.ran_held_call")
    assert "write_file" in message_
    assert "request of response 2" in message_
    assert "'ok, written'" in message_


def test_a_held_call_ran_also_where_the_server_keeps_the_conversation():
    first, second = cut_call_ran()
    messages = second["request"]["body"]["messages"]
    messages[:] = [message for message in messages if message["role"] == "tool"]
    assert ("ran_held_call", 0, Severity.ERROR) in agent(show(first, second))


@pytest.mark.parametrize(("text", "rules"), [
    ("Observation:\nok, written", ["ran_held_call"]),
    ("Observation:\nError: the disk is full", ["failed_held_call"]),
    ("Call id: call_1\nError:\nError executing tool 'write_file'", ["failed_held_call"]),
    ("An observation: ok, written", []),
])
def test_a_held_call_ran_also_where_calls_and_results_are_sent_back_as_texts(text, rules):
    """smolagents writes a call that it could not parse into the history, and runs it with the unparsed text."""
    first, second = cut_call_ran()
    messages = second["request"]["body"]["messages"]
    messages[-2:] = [assistant(f"Calling tools:\n[{messages[-2]['tool_calls'][0]}]"), user(text)]
    found = [rule for rule, response, _ in agent(show(first, second)) if response == 0]
    assert [rule for rule in found if "held_call" in rule] == rules


@pytest.mark.parametrize(("later", "ran"), [("call_2", 1), ("call_1", 0)])
def test_a_held_call_of_a_paused_answer_ran_also_after_the_resumption(later, ran):
    """Google's client resumes an interaction by itself, and the results of both answers come in one request."""
    def interaction(number, status, *steps, **more):
        return {"id": f"v1_{number}", "object": "interaction", "status": status, "steps": steps, **more}

    def called(ident):
        return {"type": "function_call", "id": ident, "name": "look", "arguments": {"path": "a"}}

    asked, url = {"model": "m", "tools": []}, "https://generativelanguage.googleapis.com/v1beta/interactions"
    results = [{"type": "function_result", "call_id": ident, "result": "ok"} for ident in {"call_1", later}]
    found = show(
        exchange({**asked, "input": "look"},
                 interaction(1, "requires_continuation", called("call_1"), continuation_token="t"), url=url),
        exchange({**asked, "continuation_token": "t", "previous_interaction_id": "v1_1"},
                 interaction(2, "requires_action", called(later)), url=url),
        exchange({**asked, "previous_interaction_id": "v1_2", "input": results}, interaction(3, "completed"), url=url),
    )
    assert [response for rule, response, _ in agent(found) if rule == "ran_unsure_call"] == [0] * ran


def test_a_whole_call_beside_a_cut_one_of_a_filtered_answer_was_not_cut_itself():
    """The filter came in the middle of the second call; the agent ran the first one and dropped the second."""
    whole, cut = call(WHOLE), call(CUT, "call_f6g7h8i9j0")
    found = show(pair_of(ASKS, chat(None, "content_filter", whole, cut), tools=TOOLS),
                 pair_of([*ASKS, assistant(None, whole), result()], chat("Done."), tools=TOOLS))
    assert [(rule, severity) for rule, response, severity in agent(found) if response == 0][:1] == [
        ("ran_unsure_call", Severity.WARNING)]
    (message_,) = messages_of(found, "agent.ran_unsure_call")
    assert message_.endswith("the response was filtered or declined; nothing shows that it was cut")


def test_a_long_result_is_quoted_in_part():
    first, second = cut_call_ran()
    second["request"]["body"]["messages"][-1]["content"] = "w" * 500
    (message_,) = messages_of(show(first, second), "agent.ran_held_call")
    assert "w" * 57 + "…" in message_
    assert "w" * 58 not in message_


@each_row(("text", "rule"), [
    ("<tool_use_error>InputValidationError: write_file failed</tool_use_error>", "refused_held_call"),
    ("The user doesn't want to proceed with this tool use. The tool use was rejected.", "refused_held_call"),
    ("Exit code 1\nno space left on device", "failed_held_call"),
    ("no such tool here", "failed_held_call"),
])
def test_an_error_is_a_refusal_only_where_it_says_that_the_call_did_not_run(text, rule):
    found = show(*answered_cut_call(text, is_error=True))
    assert (rule, 0, Severity.INFO) in agent(found)
    assert not messages_of(found, "agent.ran_held_call")


@each_row(("scene", "rule", "filtered"), [
    (cut_call_ran(), "ran_held_call", [0]),
    (ran_unknown_word(), "ran_unsure_call", [0]),
    (answered_cut_call("Exit code 1", is_error=True), "failed_held_call", []),
    (cut_call_refused("Error: the call was cut off and was not executed."), "refused_held_call", []),
    (cut_call_refused("Error: Unterminated string starting at: line 1 column 29 (char 28)"), "refused_held_call", []),
    (cut_call_refused("Error: Unterminated string starting at: line 1 column 9 (char 8)"), "ran_held_call", [0]),
    (cut_call_refused(f"Tool execution error: Unterminated string in JSON at position {len(CUT)}"),
     "refused_held_call", []),
    (cut_call_refused("Tool execution error: Unterminated string in JSON at position 7 (line 1 column 8)"),
     "ran_held_call", [0]),  # of another text, which the tool read
    # OpenAI's Agents SDK, of a tool that failed and of arguments that are no JSON alike; Chat has no mark for an error.
    (cut_call_refused("An error occurred while running the tool. Please try again."), "failed_held_call", []),
    (cut_call_refused("Error: Function failed."), "failed_held_call", []),  # Microsoft Agent Framework
    (cut_call_refused("An error occurred when calling tool `write`:\nK: 1"), "failed_held_call", []),  # Qwen-Agent
    # AutoGen, of empty arguments; a tool that got an empty answer says the same.
    (cut_call_refused("Error: Expecting value: line 1 column 1 (char 0)"), "failed_held_call", []),
    (cut_call_refused("Error: Tool execution was aborted by middleware before a result was produced."),
     "failed_held_call", []),
])
def test_what_the_agent_did_with_a_held_call_stands_below_the_call(scene, rule, filtered):
    """The filter word `ran`, and the column of calls that were run, mean the calls that were run and no others."""
    found = show(*scene)
    (message_,) = messages_of(found, f"agent.{rule}")
    facts = found.responses[0]
    lines = [text_of(line).strip() for line in lines_of_call(found, facts, facts.verdicts[0])]
    (line,) = (line for line in lines if line.startswith("agent"))
    assert line.removeprefix("agent").strip() == message_
    assert filters.responses(filters.parse("ran"), found) == filtered
    assert rows_of(found)[0].ran == len(filtered)


@pytest.mark.parametrize(("word", "arguments", "verdict"), [
    ("odd_word", WHOLE, "UNKNOWN REASON"), ("content_filter", WHOLE, "BLOCKED"),
    ("tool_calls", '{path: "a.md"}', "CALL HELD"),  # agents repair what is no JSON
])
def test_a_verdict_about_a_held_call_says_that_the_agent_ran_it(word, arguments, verdict):
    told = {}
    for ran, after in ((True, [result()]), (False, [user("What now?")])):
        history = [*ASKS, assistant(None, call(arguments)), *after]
        found = show(pair_of(ASKS, chat(None, word, call(arguments)), tools=TOOLS),
                     pair_of(history, chat("Done."), tools=TOOLS))
        told[ran] = found.turns[0].verdict.sentence
        assert found.turns[0].verdict.word == verdict
    assert told[True] == f"{told[False]}; the agent ran it"
    batch = [call(WHOLE), call("{path: 1}", "call_2")]
    found = show(pair_of(ASKS, chat(None, "tool_calls", *batch), tools=TOOLS),
                 pair_of([*ASKS, assistant(None, *batch), result()], chat("Done."), tools=TOOLS))
    assert "; the agent ran write" in found.turns[0].verdict.sentence


@each_row(
    "text",
    [
        "Error: the call was cut off by the output limit and was not executed.",
        "Tool call was truncated: the arguments are incomplete.",
        "InputValidationError: could not parse the JSON of the arguments",
        "not executed: the response hit max_tokens",
        "1 validation error for write_file\ncontent\n  Field required",  # the result does not name its tool
        "Error executing tool write_file: 1 validation error for write_fileArguments\ncontent\n  Field required",
        "params must have required property 'content'",
    ],
)
def test_where_a_format_has_no_mark_for_an_error_the_words_say_that_the_call_did_not_run(text):
    found = show(*cut_call_refused(text))
    assert agent(found) == [("refused_held_call", 0, Severity.INFO)]
    assert found.turns[0].verdict.word == "CALL REPAIRED"


@each_row(
    "text",
    ["ok, written", "", "Error: no such directory", "12 files read\n[output truncated]", "the article is incomplete"],
)
def test_a_result_that_does_not_speak_of_the_call_is_one_that_ran(text):
    found = show(*cut_call_refused(text))
    assert ("ran_held_call", 0, Severity.ERROR) in agent(found)
    assert found.turns[0].verdict.word == "CUT CALL RUN"


def test_a_held_call_that_was_run_is_found_where_a_user_speaks_in_the_same_request():
    """The result and a new question in one request: the request opens a turn, and the call was run all the same."""
    history = [*ASKS, assistant(None, call(CUT)), result(), user("Thanks. Now book a table for two.")]
    found = show(pair_of(ASKS, chat(None, "length", call(CUT), tokens=40), tools=TOOLS),
                 pair_of(history, chat("Booked.")))
    assert ("ran_held_call", 0, Severity.ERROR) in agent(found)


def test_results_that_were_there_before_the_held_call_are_not_its_own():
    """The request is sent again with a larger cap: the result at its end answers the call before."""
    part = {"functionCall": {"name": "look", "args": {"path": "a.md"}}}
    tools = [{"functionDeclarations": [{"name": "look"}]}]
    answer = {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"result": "seen"}}}]}
    history = [{"role": "user", "parts": [{"text": "look"}]}, {"role": "model", "parts": [part]}, answer]

    def once(cap, reason, *parts):
        said_ = {"role": "model", "parts": list(parts)}
        body = {"candidates": [{"index": 0, "finishReason": reason, "content": said_}]}
        request = {"contents": history, "tools": tools, "generationConfig": {"maxOutputTokens": cap}}
        return exchange(request, body, url=GEMINI)

    found = show(once(20, "MAX_TOKENS", part), once(200, "STOP", {"text": "done"}))
    assert [facts.link.place.value for facts in found.responses] == ["tool_result", "repair"]
    assert messages_of(found, "agent.ran_held_call") == []


def test_only_the_held_call_is_named_and_each_by_its_id():
    # One batch: the first call is whole and the second is cut, so both are held; the agent ran the first alone.
    calls = (call(WHOLE, "call_a1b2c3d4e5"), call(CUT, "call_f6g7h8i9j0"))
    history = [
        *ASKS,
        assistant(None, *calls),
        result("ok, the first"),
        result("Error: this call was truncated and was not executed", "call_f6g7h8i9j0"),
    ]
    found = show(
        pair_of(ASKS, chat(None, "length", *calls), tools=TOOLS),
        pair_of(history, chat("The second again, please."), tools=TOOLS),
    )
    assert [rule for rule, _, _ in agent(found)][:2] == ["ran_held_call", "refused_held_call"]
    assert "'ok, the first'" in messages_of(found, "agent.ran_held_call")[0]


@pytest.mark.parametrize("ids", [(), ("made-1", "made-2")])
def test_calls_without_ids_are_answered_by_their_names(ids):
    """Gemini CLI and the AI SDK give ids of their own to calls that came without one."""
    def part(name, **own):
        return {"functionCall": {"name": name, "args": {"path": "a.md"}, **own}}

    tools = [{"functionDeclarations": [{"name": "write_file"}, {"name": "look"}]}]
    opening = [{"role": "user", "parts": [{"text": "write"}]}]
    first, second = [{"id": each} for each in ids] or [{}, {}]
    answer = {"functionResponse": {"name": "look", "response": {"result": "seen"}, **second}}
    history = [
        *opening,
        {"role": "model", "parts": [part("write_file", **first), part("look", **second)]},
        {"role": "user", "parts": [answer]},
    ]

    def body(reason, *parts):
        return {
            "candidates": [{"index": 0, "finishReason": reason, "content": {"role": "model", "parts": list(parts)}}]
        }

    found = show(
        exchange(
            {"contents": opening, "tools": tools}, body("MAX_TOKENS", part("write_file"), part("look")), url=GEMINI
        ),
        exchange({"contents": history, "tools": tools}, body("STOP", {"text": "done"}), url=GEMINI),
    )
    (message_,) = messages_of(found, "agent.ran_held_call")
    assert "ran look, which this loop holds" in message_


def test_the_nth_result_of_a_tool_answers_its_nth_call():
    def part(name, path):
        return {"functionCall": {"name": name, "args": {"path": path}}}

    def answer(name, **given):
        return {"functionResponse": {"name": name, "response": given}}

    calls = {"role": "model", "parts": [part("look", "a"), part("write_file", "b"), part("write_file", "c")]}
    opening = {"role": "user", "parts": [{"text": "go"}]}
    results = {"role": "user", "parts": [answer("look", result="seen"), answer("write_file", result="wrote b"),
                                         answer("write_file", error="no such folder")]}

    def body(reason, said_):
        return {"candidates": [{"index": 0, "finishReason": reason, "content": said_}]}

    last = {"role": "model", "parts": [{"text": "done"}]}
    found = show(exchange({"contents": [opening]}, body("MAX_TOKENS", calls), url=GEMINI),
                  exchange({"contents": [opening, calls, results]}, body("STOP", last), url=GEMINI))
    shows = [message_.rpartition("result ")[2] for message_ in messages_of(found, "agent.ran_held_call")]
    assert shows == ["'seen'", "'wrote b'"]


@pytest.mark.parametrize(("results", "ran"), [(["wrote it"], 1), (["wrote it", "wrote more"], 2), ([], 0)])
def test_results_without_id_and_name_answer_the_calls_in_order(results, ran):
    """Older clients of Ollama send such results, and recorders leave both out."""
    calls = [{"function": {"name": name, "arguments": {"path": "a"}}} for name in ("write_file", "look")]
    tools = [{"type": "function", "function": {"name": name}} for name in ("write_file", "look")]
    history = [*ASKS, {"role": "assistant", "content": "", "tool_calls": calls},
               *({"role": "tool", "content": text} for text in results), *([] if results else [user("And?")])]

    def once(messages, reason, **said_):
        return exchange({"model": "m-1", "messages": messages, "tools": tools, "stream": False}, {
            "model": "m-1", "message": {"role": "assistant", "content": "", **said_}, "done": True,
            "done_reason": reason}, url="http://localhost:11434/api/chat")

    found = show(once(ASKS, "length", tool_calls=calls), once(history, "stop", content="Done."))
    assert len(messages_of(found, "agent.ran_held_call")) == ran


@pytest.mark.parametrize("failed", [False, True])
def test_a_call_that_its_schema_refuses_and_that_ran_is_a_finding(failed):
    """A whole answer may hold a cut call as an empty object, with a clean stop reason."""
    called = [{"type": "tool_use", "id": "toolu_1", "name": "write_file", "input": {}}]
    first, second = answered_cut_call("ok", is_error=failed)
    first["response"]["body"] = message(called, "tool_use")
    second["request"]["body"]["messages"][-2]["content"] = called
    assert [one for one in agent(show(first, second)) if one[0] != "went_another_way"] == [
        ("ran_rejected_call", 0, Severity.WARNING)] * (not failed)


@pytest.mark.parametrize(("results", "ran"), [
    (["a tree", "Error: no path"], 0), (["a tree", "a list"], 1), (["a tree"], 0)])
def test_a_result_without_an_id_belongs_to_the_call_at_its_place(results, ran):
    """Gemini's results may have names only: the first is that of the call that may run, not of the rejected one."""
    calls = [{"function": {"name": "look", "arguments": given}} for given in ({"path": "a"}, {})]
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"required": ["path"]}}}]

    def once(messages, **said):
        return exchange({"model": "m-1", "messages": messages, "tools": tools, "stream": False}, {
            "model": "m-1", "message": {"role": "assistant", "content": "", **said}, "done": True,
            "done_reason": "stop"}, url="http://localhost:11434/api/chat")

    answers = [{"role": "tool", "tool_name": "look", "content": text} for text in results]
    found = show(once(ASKS, tool_calls=calls), once(
        [*ASKS, {"role": "assistant", "content": "", "tool_calls": calls}, *answers], content="Done."))
    assert [verdict.admission.value for verdict in found.responses[0].verdicts] == ["ready", "rejected"]
    assert len(messages_of(found, "agent.ran_rejected_call")) == ran


def test_a_ready_call_that_runs_is_no_finding():
    history = [*ASKS, assistant(None, call(WHOLE)), result()]
    found = show(
        pair_of(ASKS, chat(None, "tool_calls", call(WHOLE)), tools=TOOLS), pair_of(history, chat("done"), tools=TOOLS)
    )
    assert agent(found) == []


# -- a cut answer was taken for whole ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (chat("The first part", "length"), "max_tokens"),
        (cut_stream("The first part"), "interrupted"),
    ],
    ids=["max_tokens", "interrupted"],
)
def test_going_on_after_a_cut_answer_is_a_finding(body, word):
    history = [*ASKS, assistant("The first part"), user("Thanks. Now book a table for two.")]
    found = show(pair_of(ASKS, body), pair_of(history, chat("Booked.")))
    assert ("took_cut_answer", 0, Severity.ERROR) in agent(found)
    assert word in messages_of(found, "agent.took_cut_answer")[0]


def test_going_on_after_a_full_context_is_a_finding():
    body = message([{"type": "text", "text": "The first part"}], "model_context_window_exceeded")
    history = [*ASKS, assistant("The first part"), user("Thanks. Now book a table for two.")]
    found = show(
        pair_of(ASKS, body, url=MESSAGES, max_tokens=9000),
        pair_of(history, message([{"type": "text", "text": "Booked."}], "end_turn"), url=MESSAGES, max_tokens=9000),
    )
    assert ("took_cut_answer", 0, Severity.ERROR) in agent(found)


def test_a_branch_beside_a_cut_answer_did_not_go_on_from_it():
    """Two questions after one answer: the second conversation never saw the first one's cut answer."""
    first = pair_of(ASKS, chat("Made."))
    left = pair_of([*ASKS, assistant("Made."), user("And the left one?")], chat("The left one is", "length"))
    right = pair_of([*ASKS, assistant("Made."), user("And the right one?")], chat("The right one is done."))
    found = show(first, left, right)
    assert agent(found) == []
    assert [facts.recorded_next for facts in found.responses] == [
        "went on to a new turn", "the recording ends", "the recording ends",
    ]


def test_a_gap_after_a_cut_answer_accuses_nobody():
    history = [*ASKS, assistant("The first part"), user("More?"), assistant("and the rest."), user("Thanks. And now?")]
    assert agent(show(pair_of(ASKS, chat("The first part", "length")), pair_of(history, chat("Booked.")))) == []


def test_a_cut_answer_at_the_end_of_the_recording_is_nobodys_fault():
    assert agent(show(pair_of(ASKS, chat("The first part", "length")))) == []


def test_an_answer_that_was_continued_is_not_lost():
    found = show(*cut_text(*PARTS[:2]))
    assert agent(found) == []


# -- this loop decides otherwise ------------------------------------------------------------------------------------


def test_where_our_machine_ends_and_the_agent_goes_on():
    found = show(*cut_text(*PARTS))
    assert agent(found) == [
        ("went_another_way", 3, Severity.WARNING)
    ]  # the fourth answer: three continuations are used
    assert messages_of(found, "agent.went_another_way") == [
        "this loop ended the turn (retry_limit) after response 4; the recorded agent went on with a continuation"
    ]


def test_where_our_machine_asks_for_something_else():
    found = show(*cut_call_ran())
    assert messages_of(found, "agent.went_another_way") == [
        "this loop asked for the held call again after response 1; the recorded agent went on with a tool_result"
    ]


@pytest.mark.parametrize(("reason", "end"), [
    ("length", "a tool_result, whose last answer, response 2, ended in max_tokens"),
    ("content_filter", "a tool_result, whose last answer, response 2, ended in safety_blocked"),
    ("stop", "a tool_result"),
])
def test_where_the_recorded_agent_ended_badly_too_its_last_answer_is_named(reason, end):
    history = [*ASKS, assistant(None, call(CUT)), result()]
    found = show(cut_call_ran()[0], pair_of(history, chat("It is written.", reason), tools=TOOLS, max_tokens=40))
    assert messages_of(found, "agent.went_another_way")[0].endswith(f"went on with {end}")


@pytest.mark.parametrize(("status", "second", "count"), [
    (429, chat("Booked."), 0), (429, chat("Book", "length"), 1), (400, chat("Booked."), 1), (307, chat("Booked."), 0)])
def test_a_request_that_any_client_would_send_again_is_no_other_way(status, second, count):
    found = show(pair_of(ASKS, {"error": {"message": "no"}}, status=status), pair_of(ASKS, second))
    assert [turn.verdict.word == "RETRIED" for turn in found.turns] == [second == chat("Booked.")]
    assert len(messages_of(found, "agent.went_another_way")) == count


def test_the_order_of_the_entries_changes_nothing():
    found = show(*reversed(cut_call_ran()))
    assert messages_of(found, "agent.went_another_way") == [
        "this loop asked for the held call again after response 2; the recorded agent went on with a tool_result"
    ]


def test_where_the_agent_goes_the_same_way_nothing_is_said():
    assert agent(show(*repair_turn())) == []


# -- what the bytes say -----------------------------------------------------------------------------------------------


def test_an_unknown_word_is_reported_once_for_each_provider_and_model():
    def once(number, model, host="https://api.openai.com"):
        return pair_of(
            [user(f"question {number}")], chat("The", "entropy", model=model), url=f"{host}/v1/chat/completions"
        )

    found = show(once(1, "m-1"), once(2, "m-1"), once(3, "m-2"), once(4, "m-1", "https://openrouter.ai/api"))
    assert [noted.response for noted in found.findings if noted.finding.rule == "stop.unknown_word"] == [0, 2, 3]


def test_two_unknown_words_of_one_model_are_both_reported():
    found = show(pair_of([user("one")], chat("a", "entropy")), pair_of([user("two")], chat("b", "boredom")))
    assert len(messages_of(found, "stop.unknown_word")) == 2


def test_a_body_that_was_not_recorded_is_said_to_be():
    found = show(data=bodiless_har())
    (noted,) = found.findings
    assert (noted.finding.rule, noted.finding.severity, noted.response) == ("session.not_recorded", Severity.WARNING, 0)


def test_an_ambiguous_parent_is_named_and_not_guessed():
    opening = [user("hi")]
    child = [*opening, assistant("Hello."), user("go on with that")]
    found = show(pair_of(opening, chat("Hello.")), pair_of(opening, chat("Hello.")), pair_of(child, chat("More.")))
    (message_,) = messages_of(found, "thread.ambiguous")
    assert "responses 1, 2" in message_


def test_a_turn_that_a_later_request_may_go_on_from_does_not_say_that_nothing_follows():
    """Two answers have the same call under the same id, and one request brings its result: nobody knows whose."""
    called = chat(None, "tool_calls", call(key="call_REDACTED_1"))
    opening = [user("write it")]
    child = [*opening, assistant(None, call(key="call_REDACTED_1")), result(key="call_REDACTED_1")]
    found = show(pair_of(opening, called), pair_of(opening, called), pair_of(child, chat("Written.")))
    first, second, third = found.turns
    for turn in (first, second):
        assert turn.verdict.word == "COMPLETE SO FAR"
        assert turn.verdict.sentence.endswith(
            "asks for write_file, and it is not known whether response 3 comes next: its request fits several answers")
        assert turn.run.final_turn.notice == AMBIGUITY
        assert found.responses[turn.responses[-1]].recorded_next == "it is not known whether response 3 comes next"
    assert third.verdict.word == "COMPLETE"
    alone = show(pair_of(opening, called))
    assert alone.turns[0].verdict.sentence.endswith("no later answer of this turn is in its file")


def test_the_findings_of_judging_reach_the_report_with_their_place():
    body = json.dumps(chat(None, "tool_calls", call(CUT)))
    found = show(pair_of(ASKS, body, tools=TOOLS))
    (noted,) = [noted for noted in found.findings if noted.finding.rule == "judge.cut_arguments"]
    at = noted.finding.at
    raw = found.responses[0].exchange.body
    assert json.loads(raw[at.start : at.end])["function"]["arguments"] == CUT


def test_a_hint_is_no_new_turn_and_another_message_is():
    cut = pair_of(ASKS, chat("The first part is about", "length"))
    goes_on = pair_of([*ASKS, assistant("The first part is about"), user(HINT)], chat(" water."))
    assert len(show(cut, goes_on).turns) == 1
    other = pair_of([*ASKS, assistant("The first part is about"), user("What is the weather?")], chat("Fine."))
    assert len(show(cut, other).turns) == 2
