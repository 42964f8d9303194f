"""Every rule of `inspector check` fires on a session that deserves it, points at it, and is silent on one beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inspector.check import check_file
from inspector.check.finders import DEFAULT_CAPS
from inspector.check.rules import RULES, rule_named, selected_rules
from loop_core.errors import CallerError
from loop_core.turn.history import hint_message
from tests.scenes import transcripts as agents
from tests.scenes.recordings import (
    ASKS,
    CHAT,
    CUT,
    GEMINI,
    HINT,
    MESSAGES,
    PARTS,
    TOOLS,
    WHOLE,
    assistant,
    call,
    chat,
    cut_call_ran,
    cut_stream,
    cut_text,
    exchange,
    lines,
    message,
    pair_of,
    repair_turn,
    result,
    user,
)

LONG = "The queue was saturated for nineteen minutes, so that nothing at all moved in it, "
REST = "and in the end somebody restarted the scheduler by hand."


def rules_of(*exchanges: dict, data: bytes | None = None) -> dict[str, str]:
    """The rules that fire on a session, each with its first message."""
    report = check_file(lines(*exchanges) if data is None else data)
    assert report.errors == []
    said: dict[str, str] = {}
    for problem in report.problems:
        said.setdefault(problem.rule, f"{problem.severity} {problem.message}")
    return said


def claude(
    blocks: list[dict], reason: str | None, *messages: dict, url: str = MESSAGES, tokens: int = 7, cached: int = 0,
    **more,
) -> dict:
    body = message(blocks, reason, tokens)
    if cached:
        body["usage"]["cache_read_input_tokens"] = cached
    return exchange({"model": "m-1", "max_tokens": 64, "messages": list(messages), **more}, body, url=url)


def text(words: str) -> dict:
    return {"type": "text", "text": words}


def test_a_whole_session_is_clean():
    assert rules_of(pair_of(ASKS, chat("All of it."), max_tokens=50)) == {}


def test_a_cut_call_that_was_run():
    said = rules_of(*cut_call_ran())
    assert said["cut-call-executed"].startswith("error the recorded agent ran write_file, which this loop holds")
    assert "cut-call-executed" not in rules_of(*repair_turn())
    assert set(rules_of(*repair_turn())) == {"cut-and-continued"}


def test_a_call_of_an_answer_without_a_reason_that_was_run():
    asks = [user("write")]
    said = rules_of(
        pair_of(asks, chat(None, None, call()), tools=TOOLS),
        pair_of([*asks, assistant(None, call()), result()], chat("Done."), tools=TOOLS))
    assert said["unproven-call-executed"].startswith("warning the recorded agent ran write_file")


def test_a_call_whose_end_its_recorder_does_not_keep_is_no_fault_of_the_agent():
    rows = [
        {"step_index": 0, "source": "USER_EXPLICIT", "type": "USER_INPUT", "status": "DONE", "content": "go"},
        {"step_index": 1, "source": "MODEL", "type": "PLANNER_RESPONSE", "status": "DONE",
         "tool_calls": [{"name": "write", "args": {"path": "a"}}], "truncated_fields": ["tool_calls"]},
        {"step_index": 2, "source": "MODEL", "type": "CODE_ACTION", "status": "DONE", "content": "written"},
        {"step_index": 3, "source": "MODEL", "type": "PLANNER_RESPONSE", "status": "DONE", "content": "On."}]
    time = "2026-03-04T05:06:07Z"
    said = rules_of(data="".join(f"{json.dumps({'created_at': time, **row})}\n" for row in rows).encode())
    assert list(said) == ["end-not-recorded"]
    assert said["end-not-recorded"].startswith("info ")


def test_such_a_call_in_a_turn_that_ended_is_told_too():
    """LiteLLM left out the middle of its arguments."""
    wrote = {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": "x (litellm_truncated 9) y"}'}}]}
    asks = [user("go")]
    rows = [
        {"call_type": "acompletion", "litellm_call_id": name, "id": name, "startTime": time, "messages": messages,
         "trace_id": "t", "response": {"choices": [{"message": said, "finish_reason": word}]}}
        for name, time, messages, said, word in (
            ("a", 1767225600, asks, wrote, "tool_calls"),
            ("b", 1767225605, [*asks, wrote, {"role": "tool", "tool_call_id": "c", "content": "done"}],
             {"role": "assistant", "content": "Fine."}, "stop"))]
    said = rules_of(data="".join(f"{json.dumps(row)}\n" for row in rows).encode())
    assert list(said) == ["end-not-recorded"]
    assert said["end-not-recorded"].startswith("info the recorded agent ran f (request of response 2)")


def test_half_an_answer_that_was_taken_for_a_whole_one():
    asks = [user("tell me")]
    said = rules_of(
        pair_of(asks, chat(LONG, "length"), max_tokens=7),
        pair_of([*asks, assistant(LONG), user("and what about the other one")], chat("Fine."), max_tokens=50))
    assert said["cut-answer-taken"] == (
        "error the answer ended with max_tokens, and the conversation went on without the rest of it")
    assert "answer-cut" not in said


def test_a_cut_answer_at_the_end():
    said = rules_of(pair_of(ASKS, chat(LONG, "length"), max_tokens=7))
    assert said == {
        "answer-cut": 'error the provider cut the answer: openai_chat (openai) ended with "length", 7 of 7 tokens'}


def test_a_cut_answer_behind_a_cut_call_that_was_run():
    """The verdict is about the call; without this rule, `--ignore cut-call-executed` would call the turn whole."""
    first, second = cut_call_ran()
    second["response"] = chat(LONG, "length")
    said = rules_of(first, second)
    assert said["cut-call-executed"].startswith("error the recorded agent ran write_file")
    assert said["answer-cut"] == "error the last answer, response 2, was cut"
    assert "answer-cut" not in rules_of(*cut_call_ran())


def test_a_cut_call_at_the_end():
    said = rules_of(pair_of(ASKS, chat(None, "length", call(CUT)), max_tokens=7, tools=TOOLS))
    assert said["call-cut"].startswith("error openai_chat cut write_file at character 35 of its arguments")
    assert list(said) == ["call-cut"]


USE = {"type": "tool_use", "id": "toolu_1", "name": "list_all", "input": {}}
SENT_NOTHING = (
    {"type": "message_start", "message": message([], None)},
    {"type": "content_block_start", "index": 0, "content_block": USE},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": ""}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
)


def events_of(events) -> str:
    return "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)


@pytest.mark.parametrize(("tools", "severity"), [
    ({}, "warning"),
    ({"tools": [{"name": "list_all", "input_schema": {"type": "object", "properties": {"force": {}}}}]}, "warning"),
    ({"tools": [{"name": "list_all", "input_schema": {"type": "object", "required": ["path"]}}]}, "error"),
], ids=["no tool is known", "nothing is required", "a path is required"])
def test_a_call_whose_stream_has_no_character_of_arguments(tools, severity):
    """Claude sends `input: {}` and one empty delta where a tool takes nothing; a lost argument looks the same."""
    said = rules_of(exchange({"model": "m-1", "max_tokens": 64, "messages": ASKS, **tools}, events_of(SENT_NOTHING),
                             url=MESSAGES))
    assert said["call-cut"].startswith(f"{severity} anthropic_messages sent list_all without arguments")


def test_the_same_call_cut_again():
    asks = [user("write")]
    again = [*asks, assistant(None, call(CUT)), result("Error: the arguments were cut, send the call again")]
    first = pair_of(asks, chat(None, "length", call(CUT)), max_tokens=9, tools=TOOLS)
    said = rules_of(first, pair_of(again, chat(None, "length", call(CUT)), max_tokens=9, tools=TOOLS))
    assert said["repeated-cut-call"] == (
        "warning the call write_file is cut again at the same beginning (2 times)")
    other = call('{"path": "other.md", "content": "som')
    assert "repeated-cut-call" not in rules_of(
        first, pair_of(again, chat(None, "length", other), max_tokens=9, tools=TOOLS))


def test_a_continuation_that_begins_anew():
    asks = [user("tell me")]
    first = pair_of(asks, chat(LONG, "length"), max_tokens=7)
    again = [*asks, assistant(LONG), user(HINT)]
    assert rules_of(first, pair_of(again, chat(LONG + REST), max_tokens=50))["continuation-damage"] == (
        "error the continuation starts the answer again instead of continuing it")
    assert "continuation-damage" not in rules_of(first, pair_of(again, chat(REST), max_tokens=50))


@pytest.mark.parametrize(("kept", "why"), [
    (REST, "the agent's history went on without the text before the cut"),
    (LONG + "in it, and nobody was told " * 2 + REST, ""),
    (LONG + REST, ""),
])
def test_a_continued_answer_in_the_agents_own_history(kept, why):
    asks = [user("tell me")]
    said = rules_of(
        pair_of(asks, chat(LONG, "length"), max_tokens=7),
        pair_of([*asks, assistant(LONG), user(HINT)], chat(REST), max_tokens=50),
        pair_of([*asks, assistant(kept), user("thanks, and now the other")], chat("Fine."), max_tokens=50))
    assert said.get("continuation-damage", "") == (f"error {why}" if why else "")


def test_a_history_that_keeps_each_segment_with_its_hint_is_whole():
    session = cut_text(LONG, REST, max_tokens=10)
    kept = [*session[1]["request"]["body"]["messages"], assistant(REST), user("thanks, and now the other")]
    assert set(rules_of(*session, pair_of(kept, chat("Fine."), max_tokens=50))) == {"cut-and-continued"}
    last_only = [kept[0], assistant(REST), user("thanks, and now the other")]
    assert rules_of(*session, pair_of(last_only, chat("Fine."),
                                      max_tokens=50))["continuation-damage"].startswith("error ")


def test_a_turn_that_only_our_own_limits_would_have_ended_is_no_loss():
    said = rules_of(*cut_text(*PARTS, last="stop", max_tokens=10))
    assert said == {"cut-and-continued": "info openai_chat (openai) was cut 4 times, and the recorded agent "
                                         "finished it with 4 continuations"}


def test_an_overlap_that_the_history_holds_twice():
    asks = [user("tell me")]
    again = "so that nothing at all moved in it, " + REST
    said = rules_of(
        pair_of(asks, chat(LONG, "length"), max_tokens=7),
        pair_of([*asks, assistant(LONG), user(HINT)], chat(again), max_tokens=50),
        pair_of([*asks, assistant(LONG + again), user("thanks, and now the other")], chat("Fine."), max_tokens=50))
    assert said["continuation-damage"].startswith(
        "error the agent's history repeats the overlap of two segments: 'so that nothing at all moved in it,")


def test_a_continuation_whose_seam_shows_nothing():
    assert rules_of(*cut_text("The lock was never ", "released by anybody at all.", max_tokens=10)) == {
        "cut-and-continued": 'info openai_chat (openai) was cut and completed ("length", 10 of 10 tokens)'}


def test_a_seam_without_the_words_that_were_asked_back():
    asks = [user("tell me")]
    again = [*asks, assistant(LONG), hint_as_json(LONG[-40:])]
    assert rules_of(pair_of(asks, chat(LONG, "length"), max_tokens=10), pair_of(again, chat(REST), max_tokens=10))[
        "seam-unverified"].startswith("info ")


def hint_as_json(words: str) -> dict:
    return user(hint_message(words).text)


def test_an_answer_that_only_looks_finished():
    assert rules_of(pair_of(ASKS, chat("", "stop"), max_tokens=50))["looks-finished"].startswith("error openai_chat")


def test_a_reason_that_the_bytes_contradict():
    said = rules_of(pair_of(ASKS, chat(None, "tool_calls", call(CUT)), max_tokens=50, tools=TOOLS))
    assert said["reason-contradicts-bytes"].startswith("error the arguments of write_file are cut")


def test_a_call_that_no_tool_can_read():
    bare = {"id": "c1", "type": "function", "function": {"name": "write_file"}}
    said = rules_of(pair_of(ASKS, chat(None, "tool_calls", bare), max_tokens=50, tools=TOOLS))
    assert said["unreadable-arguments"].startswith("warning the arguments of write_file are absent")
    assert "reason-contradicts-bytes" not in said, "nothing shows a cut"
    said = rules_of(pair_of(ASKS, chat(None, "tool_calls", call('{"path": a.md}')), max_tokens=50, tools=TOOLS))
    assert said["unreadable-arguments"].startswith("error the arguments of write_file are invalid")
    nothing = {"type": "object", "properties": {}}
    free = [{"type": "function", "function": {"name": "write_file", "parameters": nothing}}]
    assert "unreadable-arguments" not in rules_of(
        pair_of(ASKS, chat(None, "tool_calls", bare), max_tokens=50, tools=free)), "the tool needs none"


def test_a_problem_says_nothing_of_our_own_limits():
    said = rules_of(pair_of(ASKS, chat(LONG, "length", tokens=16), max_tokens=1))
    assert said["answer-cut"] == (
        'error the provider cut the answer: openai_chat (openai) ended with "length", 16 output tokens, '
        "more than the cap of 1")


def test_a_text_that_stops_in_the_middle_under_a_clean_reason():
    said = rules_of(pair_of(ASKS, chat("The report is about the"), max_tokens=50))["text-unfinished"]
    assert said.startswith("warning ")
    assert "(its last word is 'the')" in said
    assert "text-unfinished" not in rules_of(pair_of(ASKS, chat("The report is about them"), max_tokens=50))


def test_no_reason_and_an_unknown_one():
    assert "no-stop-reason" in rules_of(pair_of(ASKS, chat("All of it.", None), max_tokens=50))
    assert rules_of(pair_of(ASKS, chat("All of it.", "model_length2"),
                            max_tokens=50))["unknown-stop-reason"].startswith(
        "warning 'model_length2' is not a known stop reason")
    message = {"id": "m", "role": "assistant", "finish": "completed", "tokens": {"input": 9, "output": 16}}
    export = {"info": {"id": "s"}, "messages": [{"info": message, "parts": [{"type": "text", "text": "Hi."}]}]}
    assert rules_of(data=json.dumps(export).encode()) == {
        "unknown-stop-reason": 'warning the model ended with "completed" as the recorder says, 16 tokens'}


def test_a_stream_that_broke_and_one_with_a_gap():
    assert rules_of(pair_of(ASKS, cut_stream("The lock was"), stream=True))["stream-broken"].startswith("error")
    head = '{"id":"c","object":"chat.completion.chunk","model":"m-1","choices":[{"index":0,"delta":'
    whole = [f'{head}{{"content":"The lock "}},"finish_reason":null}}]}}', f'{head}{{"content":"was ',
             f'{head}{{}},"finish_reason":"stop"}}]}}', "[DONE]"]
    body = "".join(f"data: {each}\n\n" for each in whole)
    assert "answer-gap" in rules_of(pair_of(ASKS, body, stream=True))


def test_a_malformed_call():
    body = {"candidates": [{"index": 0, "finishReason": "MALFORMED_FUNCTION_CALL"}], "modelVersion": "gemini-2.5-pro",
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 0, "totalTokenCount": 9}}
    asks = {"contents": [{"role": "user", "parts": [{"text": "write"}]}]}
    assert "malformed-call" in rules_of(exchange(asks, body, url=GEMINI))


def test_reasoning_that_took_the_budget():
    usage = {"prompt_tokens": 9, "completion_tokens": 100, "total_tokens": 109,
             "completion_tokens_details": {"reasoning_tokens": 95}}
    said = rules_of(pair_of(ASKS, chat("The", "length", usage=usage), max_tokens=100))
    assert said["thinking-ate-budget"] == (
        "error 95 of 100 output tokens were reasoning, and the answer was cut")
    usage["completion_tokens_details"] = {"reasoning_tokens": 50}
    assert "thinking-ate-budget" not in rules_of(pair_of(ASKS, chat("The", "length", usage=usage), max_tokens=100))
    usage["completion_tokens_details"] = {"reasoning_tokens": 95}
    asks = [user("tell me")]
    whole = rules_of(pair_of(asks, chat(LONG, "length", usage=usage), max_tokens=100),
                     pair_of([*asks, assistant(LONG), user(HINT)], chat(REST), max_tokens=100))
    assert whole["thinking-ate-budget"].startswith("warning "), "nothing was lost"
    for opening in ("<think>", "[THINK]"):
        said = rules_of(pair_of(ASKS, chat(f"{opening}\nThe user asks", "length"), max_tokens=7))
        assert said["thinking-ate-budget"] == (
            f"error the answer was cut, and contains only reasoning: it is reasoning after {opening}, "
            "and nothing follows")
    closed = rules_of(pair_of(ASKS, chat("<think>\nThe user asks</think>\nThe lock", "length"), max_tokens=7))
    assert "thinking-ate-budget" not in closed
    alone = claude([{"type": "thinking", "thinking": "Let me see", "signature": "s"}], "max_tokens", user("go"))
    assert rules_of(alone)["thinking-ate-budget"] == "error the answer was cut, and contains only reasoning"


def test_a_budget_that_shrank():
    asks = [user("tell me")]
    again = [*asks, assistant(LONG), user(HINT)]
    first = pair_of(asks, chat(LONG, "length", tokens=40), max_tokens=40)
    assert rules_of(first, pair_of(again, chat(REST), max_tokens=20))["budget-shrank"] == (
        "warning the answer was cut at max_tokens 40, and the continuation has only 20")
    assert "budget-shrank" not in rules_of(first, pair_of(again, chat(REST), max_tokens=40))


def test_a_cap_that_nobody_chose():
    asks = [user("tell me")]
    said = rules_of(claude([text(LONG)], "max_tokens", *asks, max_tokens=1024, tokens=1024))
    assert said["small-default-cap"].startswith("warning cut at max_tokens 1,024; this default is that of LangChain")
    assert "small-default-cap" not in rules_of(claude([text(LONG)], "max_tokens", *asks, max_tokens=1000, tokens=1000))
    assert rules_of(pair_of(asks, chat(LONG, "length", tokens=16)))["small-default-cap"] == (
        "warning the request sets no max_tokens, and the answer is cut after 16 output tokens")
    both = chat(LONG, "length", tokens=32)
    both["choices"].append({**both["choices"][0], "index": 1})
    assert rules_of(pair_of(asks, both, n=2))["small-default-cap"] == (
        "warning the request sets no max_tokens, and the answer is cut after 32 output tokens in 2 choices")
    twice = rules_of(*cut_text("The lock was never ", "released by ", "anybody."))
    assert twice["small-default-cap"] == (
        "warning the request sets no max_tokens, and the answer is cut after 10 output tokens; 2 answers of the turn "
        "are cut like that"), "once for the turn"
    for api, cap in (("anthropic_messages", 512), ("anthropic_messages", 4096)):
        assert (api, cap) in DEFAULT_CAPS
        assert "small-default-cap" in rules_of(claude([text(LONG)], "max_tokens", *asks, max_tokens=cap, tokens=cap))
    assert "small-default-cap" not in rules_of(claude([text("Done.")], "end_turn", *asks, max_tokens=1024))


def test_a_full_context_and_one_taken_for_a_budget():
    asks = [user("tell me")]
    full = claude([text(LONG)], "model_context_window_exceeded", *asks)
    assert "context-full" in rules_of(full)
    said = rules_of(full, claude([text(REST)], "end_turn", *asks, {"role": "assistant", "content": LONG.strip()}))
    assert said["context-taken-as-budget"] == (
        "error the context was full, and a continuation was sent as if max_tokens had cut the answer")


def test_a_pause_that_was_not_resumed():
    asks = [user("look it up")]
    paused = claude([text("Searching. ")], "pause_turn", *asks)
    went_on = claude([text("Fine.")], "end_turn", *asks, {"role": "assistant", "content": [text("Searching. ")]},
                     user("something else now"))
    assert rules_of(paused, went_on)["pause-taken-as-end"].startswith("error the answer paused and was not resumed")
    assert "answer-paused" not in rules_of(paused, went_on), "one word for one pause"
    resumed = claude([text("Found it.")], "end_turn", *asks, {"role": "assistant", "content": [text("Searching. ")]})
    assert "pause-taken-as-end" not in rules_of(paused, resumed)
    assert rules_of(paused)["answer-paused"].startswith("warning anthropic_messages (anthropic) paused and waits")
    assert "answer-paused" not in rules_of(paused, resumed)


def test_a_history_that_the_formats_own_server_refuses():
    asks = [user("write"), assistant(None, call()), user("and now?")]
    other = CHAT.replace("api.openai.com", "llm.example")
    assert rules_of(pair_of(asks, chat("Fine."), url=other))["history-refused"].startswith("warning ")
    assert "history-refused" not in rules_of(pair_of(asks, chat("Fine."))), "OpenAI itself took it"
    answered = [user("write"), assistant(None, call()), result(), user("and now?")]
    assert "history-refused" not in rules_of(pair_of(answered, chat("Fine."), url=other))


UNANSWERED = [user("write"), assistant(None, call()), user("and now?")]
NO_RESULT = [user("write"), {"role": "assistant", "content": [
    {"type": "tool_use", "id": "t1", "name": "f", "input": {}}]}, user("and now?")]
OF_BEDROCK = {"messages": [{"role": "assistant", "content": [{"text": "b"}]}, {"role": "user", "content": [
    {"text": "a"}]}]}
OF_GEMINI = {"contents": [{"role": "user", "parts": [{"text": "a"}]}, {"role": "model", "parts": [
    {"functionCall": {"name": "f", "args": {}}}]}, {"role": "user", "parts": [{"text": "b"}]}]}
SAID_BY_GEMINI = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Fine."}]}, "finishReason": "STOP"}]}
SAID_BY_BEDROCK = {"output": {"message": {"role": "assistant", "content": [{"text": "Fine."}]}},
                   "stopReason": "end_turn"}


@pytest.mark.parametrize(("session", "own", "other"), [
    (lambda url: pair_of(UNANSWERED, chat("Fine."), url=url), CHAT, "https://llm.example/v1/chat/completions"),
    (lambda url: pair_of(UNANSWERED, chat("Fine."), url=url),
     "https://me.openai.azure.com/openai/deployments/d/chat/completions?api-version=1",
     "https://me.example/openai/deployments/d/chat/completions?api-version=1"),
    (lambda url: pair_of(UNANSWERED, chat("Fine."), url=url), "http://localhost:11434/v1/chat/completions",
     "http://localhost:8000/v1/chat/completions"),
    (lambda url: claude([text("Fine.")], "end_turn", *NO_RESULT, url=url), MESSAGES, "https://llm.example/v1/messages"),
    (lambda url: claude([text("Fine.")], "end_turn", *NO_RESULT, url=url),
     "https://us-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/anthropic/models/claude:rawPredict",
     "https://llm.example/v1/messages"),
    (lambda url: exchange(OF_GEMINI, SAID_BY_GEMINI, url=url), GEMINI, "https://llm.example/models/m:generateContent"),
    (lambda url: exchange(OF_BEDROCK, SAID_BY_BEDROCK, url=url),
     "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse", "https://llm.example/model/m/converse"),
], ids=["openai", "azure", "ollama", "anthropic", "vertex", "gemini", "bedrock"])
def test_what_the_server_that_made_a_format_took_is_not_refused(session, own, other):
    assert "history-refused" in rules_of(session(other))
    assert "history-refused" not in rules_of(session(own))


@pytest.mark.parametrize(("path", "body", "why"), [
    ("v1/messages", {"messages": [user("a"), {"role": "assistant", "content": [text("")]}, user("b")]}, "empty"),
    ("v1/messages", {"messages": [user("a"), assistant("Half of it. ")]}, "end with whitespace"),
    ("v1/messages", {"messages": NO_RESULT}, "t1"),
    ("model/m/converse", OF_BEDROCK, "start with a message of the user"),
    ("model/m/converse", {"messages": [{"role": "user", "content": [{"text": word}]} for word in "ab"]}, "alternate"),
    ("model/m/converse", {"messages": [
        {"role": "user", "content": [{"text": "a"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "f", "input": {}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "t1", "content": []}}]}]}, "toolConfig"),
])
def test_what_a_strict_server_refuses_of_a_history(path, body, why):
    answer = SAID_BY_BEDROCK if "converse" in path else message([text("Fine.")], "end_turn")
    asks = {"model": "m-1", "max_tokens": 64, **body}
    assert why in rules_of(exchange(asks, answer, url=f"https://llm.example/{path}"))["history-refused"]


def test_a_history_may_begin_with_the_model():
    """Anthropic's own server answered such requests (rig's recordings of claude-sonnet-4-6 and claude-opus-4-8)."""
    asks = {"model": "m-1", "max_tokens": 64, "messages": [assistant("b"), user("a")]}
    assert rules_of(exchange(asks, message([text("Fine.")], "end_turn"), url="https://llm.example/v1/messages")) == {}


def test_a_cache_that_was_lost_with_what_changed():
    asks = [user("at nine"), {"role": "assistant", "content": [text("One.")]}, user("go on")]

    def session(system: str, cached: int) -> dict[str, str]:
        return rules_of(claude([text("One.")], "end_turn", user("at nine"), system="It is nine", cached=5_000),
                        claude([text("Two.")], "end_turn", *asks, system=system, cached=cached))

    assert session("It is ten", 1)["cache-prefix-rewritten"] == (
        "info system differs from the request before: 5,000 tokens came from the cache then, now 1")
    assert "cache-prefix-rewritten" not in session("It is ten", 5_100), "the cache was used"
    assert "cache-prefix-rewritten" not in session("It is nine", 1), "nothing that was sent before is different"


def test_the_prefix_of_a_request():
    from inspector.check.finders import changed_at

    before = {"system": "s", "messages": [user("a"), assistant("b"), user("c")]}
    assert changed_at(before, {**before, "messages": [*before["messages"], assistant("d")]}) is None
    assert changed_at(before, {**before, "system": "t"}) == "system"
    assert changed_at({"tools": [1]}, {"tools": [2]}) == "tools"
    for name in ("contents", "input"):  # Gemini, Responses
        assert changed_at({name: ["a", "b"]}, {name: ["x", "b", "c"]}) == f"{name}[0]"
    assert changed_at(before, {**before, "messages": [user("x"), *before["messages"][1:]]}) == "messages[0]"
    marked = [{**user("a"), "cache_control": {"type": "ephemeral"}}, *before["messages"][1:]]
    assert changed_at(before, {**before, "messages": marked}) is None, "the mark of the cache moves"
    assert changed_at(before, None) is None


def test_a_filter_an_error_and_an_end_that_was_not_recorded(tmp_path):
    refusal = claude([text("No.")], "refusal", user("go"))
    assert rules_of(refusal)["answer-blocked"].startswith("warning")
    assert rules_of(pair_of(ASKS, {"error": {"message": "down", "type": "server_error"}}, status=503))[
        "provider-error"].startswith("warning")
    said = rules_of(data=agents.claude(agents.prompt("hi"), agents.block(agents.text("Hello."))).encode())
    assert said["end-not-recorded"].startswith("info")


def test_rules_are_selected_by_name_and_pattern():
    assert selected_rules(["*-cut"]) == ["answer-cut", "call-cut"]
    assert "answer-cut" not in selected_rules(ignore=["answer-cut"])
    assert len(selected_rules()) == len(RULES)
    with pytest.raises(CallerError, match="did you mean answer-cut"):
        rule_named("answer-cutt")
    with pytest.raises(CallerError, match="is not a rule"):
        selected_rules(["x*"])


def test_every_rule_fires_in_this_file():
    source = Path(__file__).read_text("utf-8")
    assert [name for name in RULES if f'"{name}"' not in source] == []


def test_whole_calls_of_a_clean_answer_raise_nothing():
    asks = [user("write")]
    assert rules_of(pair_of(asks, chat(None, "tool_calls", call(WHOLE)), tools=TOOLS, max_tokens=50),
                    pair_of([*asks, assistant(None, call()), result()], chat("Done."), tools=TOOLS,
                            max_tokens=50)) == {}
