"""Trajectories of SWE-agent and mini-swe-agent: commands and what came of them, LiteLLM's words, runs that ended."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inspector.sessions import open_paths
from inspector.sessions.importers.records import list_pieces
from loop_core.values import ReasoningPart
from tests.scenes.rows import each_row
from tests.scenes.shapes import MINI, SWE
from tests.scenes.transcripts import places, rules, show, stops, words

Row = dict[str, Any]
TASK: Row = {"role": "user", "content": "fix it"}


def notices(seen) -> str:
    return "\n".join(seen.inputs[0].notices)


def move(said: str = "Look.", action: str = "ls -la", **more: Any) -> Row:
    return {"role": "assistant", "content": said, "action": action, **more}


def swe(*rows: Row, **more: Any) -> str:
    return json.dumps({"environment": "swe_main", "trajectory": [], "history": list(rows), **more})


def function(key: str = "call_a1b2c3d4", arguments: str = '{"command": "ls"}') -> Row:
    return {"id": key, "type": "function", "function": {"name": "bash", "arguments": arguments}}


def litellm(word: str, model: str = "deepseek-chat", *calls: Row, tokens: int = 5) -> Row:
    message = {"role": "assistant", "content": "hi", "tool_calls": list(calls)}
    return {"id": "c1", "model": model, "choices": [{"index": 0, "finish_reason": word, "message": message}],
            "usage": {"prompt_tokens": 9, "completion_tokens": tokens}}


def mini(*rows: Row, model: str = "deepseek/deepseek-chat", cap: int | None = None) -> str:
    given = {"model_name": model, "model_kwargs": {} if cap is None else {"max_tokens": cap}}
    return json.dumps({"trajectory_format": "mini-swe-agent-1.1", "messages": list(rows),
                       "info": {"mini_version": "2.4.6", "config": {"model": given}}}, indent=1)


def reply(word: str, *calls: Row, model: str = "deepseek-chat") -> Row:
    return {"role": "assistant", "content": "hi", "tool_calls": list(calls),
            "extra": {"response": litellm(word, model, *calls)}}


# -- SWE-agent ---------------------------------------------------------------------------------------------------------


def test_a_command_is_a_call_and_the_next_message_its_result(tmp_path):
    demo = {"role": "user", "content": "a demonstration", "is_demo": True}
    seen = show(swe({"role": "system", "content": "s"}, demo, TASK, move(), {"role": "user", "content": "a.py"},
                    move("Done.", "submit")), tmp_path)
    assert stops(seen) == ["tool_call", "unknown"]
    assert places(seen) == [["request", "tool_result"]]
    first = seen.responses[0].exchange
    (call,) = first.response.tool_calls
    assert (call.name, call.arguments, call.id, call.kind.value) == ("ls", "ls -la", None, "custom")
    assert first.response.raw_stop_reason is None
    assert seen.turns[0].run.record.user_text == "fix it"
    assert seen.responses[1].exchange.request.messages[0].results[0].text == "a.py"
    assert "records that hold no exchange: demonstration (1), system (1)" in notices(seen)
    assert words(seen) == ["END NOT RECORDED"]


def test_what_came_of_the_last_command_stands_in_the_steps(tmp_path):
    steps = [{"action": "submit", "observation": "diff", "response": "Done."}]
    seen = show(swe(TASK, move("Done.", "submit"), trajectory=steps), tmp_path)
    assert rules(seen) == ["transcript.absent", "transcript.inferred.calls_answered"]
    other = [{"action": "ls", "observation": "diff", "response": "Done."}]
    assert stops(show(swe(TASK, move("Done.", "submit"), trajectory=other), tmp_path)) == ["unknown"]


def test_a_last_command_without_an_output_has_no_result_and_the_runs_own_word_tells_its_end(tmp_path):
    steps = [{"action": "submit", "observation": "", "response": "Done."}]
    seen = show(swe(TASK, move("Done.", "submit"), trajectory=steps), tmp_path)
    assert (stops(seen), words(seen)) == (["unknown"], ["END NOT RECORDED"]), "nothing answers the call"
    seen = show(swe(TASK, move("Done.", "submit"), trajectory=steps, info={"exit_status": "submitted"}), tmp_path)
    assert rules(seen) == ["transcript.recorder", "swe_agent.exit_status"]
    assert words(seen) == ["COMPLETE SO FAR"]
    assert '"submitted" as the recorder says' in seen.turns[0].verdict.sentence
    stop = seen.responses[0].judgement.stop
    assert (stop.raw, stop.evidence[0].at.pointer) == (None, "/info/exit_status")


@pytest.mark.parametrize("status", ["exit_cost", "submitted (exit_format)", "submitted"])
def test_the_runs_own_word_is_said_at_its_last_answer_and_is_no_stop_reason(status, tmp_path):
    steps = [{"action": "ls", "observation": "a.py", "response": "Look."}]
    seen = show(swe(TASK, move("Look.", "ls"), trajectory=steps, info={"exit_status": status}), tmp_path)
    assert stops(seen) == ["tool_call"], "its call has a result"
    (noted,) = [each.finding for each in seen.findings if each.finding.rule == "transcript.exit_status"]
    assert noted.message.startswith(f"the run ended with exit_status {status!r}: the recorder's word")
    assert noted.at.pointer == "/info/exit_status"


def test_what_came_of_the_last_command_is_a_result_though_commands_have_no_names(tmp_path):
    rows = [TASK, move(), {"role": "user", "content": "a.py"}, move("Done.", "submit")]
    seen = show(swe(*rows, {"role": "user", "content": "patched"}), tmp_path)
    assert [(told.entry, told.result.text) for told in seen.inputs[0].answers] == [(3, "patched")]
    assert not show(swe(*rows), tmp_path).inputs[0].answers


@pytest.mark.parametrize("rounds", [10, 11, 12])
def test_no_limit_of_ours_ends_the_run_of_an_agent(rounds, tmp_path):
    seen = {"role": "user", "content": "x"}
    rows = [row for number in range(rounds) for row in (move(action=f"cat {number}"), seen)]
    assert words(show(swe(TASK, *rows), tmp_path)) == ["END INFERRED"]


def test_calls_of_the_model_keep_their_arguments_and_a_cut_one_is_seen(tmp_path):
    cut = function(arguments='{"command": "ls')
    seen = show(swe(TASK, move(tool_calls=[cut])), tmp_path)
    assert stops(seen) == ["max_tokens"]
    assert rules(seen) == ["transcript.absent", "transcript.inferred.call_cut"]
    result = {"role": "tool", "content": "a.py", "tool_call_ids": ["call_a1b2c3d4"]}
    whole = show(swe(TASK, move(tool_calls=[function()]), result), tmp_path)
    assert stops(whole) == ["tool_call"]


def test_a_command_is_no_json_and_no_cut_is_read_from_it(tmp_path):
    assert stops(show(swe(TASK, move(action='{"a')), tmp_path)) == ["unknown"]


def test_an_answer_without_a_command_is_asked_for_again_in_the_same_turn(tmp_path):
    seen = show(swe(TASK, move("hm", ""), {"role": "user", "content": "No command found."}, move()), tmp_path)
    assert places(seen) == [["request", "repair"]]


def test_the_run_is_told_and_its_model_and_cap_are_taken(tmp_path):
    settings = json.dumps({"agent": {"model": {"name": "gpt-4o", "max_output_tokens": 64}}})
    seen = show(swe(TASK, move(), replay_config=settings, info={
        "exit_status": "exit_context", "model_stats": {"tokens_sent": 1200, "tokens_received": 3}}), tmp_path)
    assert "the run ended with exit_status 'exit_context': its outcome, not a stop reason" in notices(seen)
    assert "tokens are counted for the whole run alone: 1,200 in, 3 out" in notices(seen)
    exchange = seen.responses[0].exchange
    assert (exchange.response.model, exchange.request.max_tokens, exchange.response.usage) == ("gpt-4o", 64, None)


def give_up(why: str, **more: Any) -> Row:
    return {"role": "assistant", "content": why, "thought": why, "action": "", "tool_calls": None, **more}


@each_row(("why", "stop", "word"), [
    ("Exit due to context window", "context_window_exceeded", "CONTEXT FULL"),
    ("Exit due to retry error: 529 overloaded", "error", "ERROR"),
    ("Exit due to cost limit", "tool_call", "CANCELLED"), ("Exiting due to forfeit", "tool_call", "CANCELLED"),
    ("Exit due to repeated format/blocklist/bash syntax errors", "tool_call", "CANCELLED"),
])
def test_what_the_agent_says_as_it_gives_up_is_no_answer(why, stop, word, tmp_path):
    rows = [TASK, move(), {"role": "user", "content": "a.py"}]
    end = {"role": "user", "content": "Exited (autosubmitted)"}
    seen = show(swe(*rows, give_up(why), end), tmp_path)
    assert (stops(seen)[-1], words(seen)) == (stop, [word])
    assert [facts.exchange.response.text for facts in seen.responses if facts.exchange.response.text] == ["Look."]
    older = show(swe(*rows, give_up(why, action="exit_context"), end), tmp_path)
    assert words(older) == [word]
    steps = [{"response": "Look.", "thought": "Look.", "action": "ls", "observation": "a.py"},
             {"response": why, "thought": why, "action": "", "observation": ""}]
    assert words(show(json.dumps({"trajectory": steps, "environment": "x"}), tmp_path)) == [word]


@each_row("more", [{"action": "ls"}, {"thought": "Exit"}, {"tool_calls": [function()]}, {"action": 7},
                                  {"content": "Exit due to context window, I think"}])
def test_a_model_that_says_so_has_answered(more, tmp_path):
    seen = show(swe(TASK, give_up("Exit due to context window", **more)), tmp_path)
    assert seen.responses[0].exchange.response.text.startswith("Exit due to context window")


def test_answers_that_the_history_lacks_are_counted(tmp_path):
    rows = [TASK, move(), {"role": "user", "content": "a.py"}]
    for made, told in ((2, True), (1, False)):
        seen = show(swe(*rows, info={"model_stats": {"api_calls": made}}), tmp_path)
        assert ("the run made 2 requests, and its history has the answers to 1 of them" in notices(seen)) is told


def test_steps_and_attempts_are_read_where_there_is_no_history(tmp_path):
    step = {"response": "Look.", "action": "ls", "observation": "a.py", "thought": "Look."}
    seen = show(json.dumps({"trajectory": [step, step], "info": {}}), tmp_path)
    assert stops(seen) == ["tool_call", "tool_call"]
    long = {**step, "observation": "x" * 70_000}
    assert stops(show(json.dumps({"trajectory": [long, step], "info": {}}), tmp_path)) == ["tool_call", "tool_call"]
    again = show(json.dumps({"attempts": [{"history": [TASK, move()]}, {"trajectory": [step]}], "info": {}}),
                 tmp_path)
    assert [facts.exchange.entry for facts in again.responses] == [1, 2]


def test_each_attempt_is_a_conversation_of_its_own(tmp_path):
    held = [{"history": [TASK, move()]}, {"history": []}, {"history": [TASK, move("Again.")]}]
    seen = show(json.dumps({"attempts": held, "info": {}}), tmp_path)
    assert [facts.exchange.session for facts in seen.responses] == ["attempt 1", "attempt 3"]
    assert places(seen) == [["request"], ["request"]]
    assert [(skip.entry, skip.why) for skip in seen.inputs[0].skipped] == [(1, "attempt 2 has no messages")]


def test_a_cut_file_is_read_as_far_as_it_goes(tmp_path):
    whole = swe(TASK, move(), {"role": "user", "content": "a.py"}, move("Done.", "submit"))
    text = json.dumps({"environment": "e", "history": json.loads(whole)["history"], "trajectory": []})
    seen = show(text[: text.index('"submit"')], tmp_path)
    assert len(seen.responses) == 1
    assert "message 4, the last, is cut after" in notices(seen)


def test_a_demonstration_is_a_history_alone(tmp_path):
    assert stops(show(json.dumps({"history": [TASK, move()]}), tmp_path)) == ["unknown"]
    path = tmp_path / "empty.json"
    path.write_text(json.dumps({"trajectory": None, "info": None}))
    assert open_paths([str(path)]).inputs[0].error is None


# -- mini-swe-agent ----------------------------------------------------------------------------------------------------


@each_row(("model", "rule"), [
    ("deepseek/deepseek-chat", "transcript.provider"),
    ("openrouter/anthropic/claude-sonnet-4", "transcript.provider"),
    ("anthropic/claude-sonnet-4", "transcript.recorder"),
    ("claude-sonnet-4-20250514", "transcript.recorder"),
    ("vertex_ai/gemini-2.5-pro", "transcript.recorder"),
])
def test_the_word_is_litellms_where_the_api_has_words_of_other_names(model, rule, tmp_path):
    seen = show(mini(TASK, reply("length"), model=model), tmp_path)
    assert stops(seen) == ["max_tokens"]
    assert rules(seen)[0] == rule
    raw = seen.responses[0].exchange.response.raw_stop_reason
    assert raw == ("length" if rule == "transcript.provider" else None)


@each_row(("word", "model", "stop"), [
    ("STOP", "@google/gemini-3-pro", "end_turn"), ("MAX_TOKENS", "@google/gemini-3-pro", "max_tokens"),
    ("STOP", "deepseek/deepseek-chat", "unknown"), ("HALT", "@google/gemini-3-pro", "unknown"),
])
def test_a_word_of_the_models_own_api_is_the_providers(word, model, stop, tmp_path):
    seen = show(mini(TASK, reply(word), model=model), tmp_path)
    assert stops(seen) == [stop]
    assert rules(seen)[:2] == ["transcript.provider", "unknown_word" if stop == "unknown" else "native.stop_reasons"]
    assert seen.responses[0].exchange.response.raw_stop_reason == word


def test_the_answer_has_its_counts_its_cap_and_its_calls(tmp_path):
    result = {"role": "tool", "tool_call_id": "call_a1b2c3d4", "content": "<returncode>0</returncode>"}
    gone = {"role": "exit", "content": "", "extra": {"exit_status": "Submitted"}}
    seen = show(mini(TASK, reply("tool_calls", function()), result, reply("stop"), gone, cap=4096), tmp_path)
    assert stops(seen) == ["tool_call", "end_turn"]
    assert words(seen) == ["COMPLETE"]
    exchange = seen.responses[0].exchange
    assert exchange.request.max_tokens == 4096
    assert (exchange.response.usage.input_tokens, exchange.response.usage.output_tokens) == (9, 5)
    assert exchange.response.model == "deepseek-chat"


def test_a_block_of_thinking_counts_though_its_text_is_hidden(tmp_path):
    blocks = [{"type": "thinking", "thinking": "", "signature": "s"}]
    answer = {**reply("stop", model="claude-x"), "content": "", "thinking_blocks": blocks}
    (facts,) = show(mini(TASK, answer), tmp_path).responses
    assert facts.exchange.response.parts == (ReasoningPart(""),)


@each_row(("given", "thoughts"), [
    ({"content": "Done.", "thinking_blocks": [{"thinking": "hm"}]}, ("hm",)),
    ({"content": [{"type": "think", "think": "then"}], "reasoning_content": "first"}, ("first", "then")),
    ({"content": [{"type": "thinking", "thinking": "hm", "signature": "s"}], "reasoning_content": "hm"}, ("hm",)),
    ({"content": "", "reasoning_content": "hm", "thinking_blocks": [{"type": "thinking", "thinking": "hm"}]}, ("hm",)),
])
def test_reasoning_is_shown_once_whatever_member_holds_it(given, thoughts, tmp_path):
    answer = {**reply("stop", model="claude-x"), **given}
    (facts,) = show(mini(TASK, answer), tmp_path).responses
    parts = facts.exchange.response.parts
    assert tuple(part.text for part in parts if isinstance(part, ReasoningPart)) == thoughts


def test_an_answer_that_could_not_be_used_stands_in_the_complaint(tmp_path):
    cut = litellm("length", "deepseek-chat", function(arguments='{"command": "ls'), tokens=64)
    complaint = {"role": "user", "content": "Tool call error", "extra": {"interrupt_type": "FormatError",
                                                                         "response": cut}}
    seen = show(mini(TASK, complaint, reply("tool_calls", function()), cap=64), tmp_path)
    assert stops(seen) == ["max_tokens", "tool_call"]
    assert places(seen) == [["request", "repair"]]
    assert words(seen) == ["CALL REPAIRED"]


def test_answers_that_the_file_lacks_are_counted_and_are_no_repair(tmp_path):
    result = {"role": "tool", "tool_call_id": "call_a1b2c3d4", "content": "<returncode>0</returncode>"}
    complaint = {"role": "user", "content": "Tool call error", "extra": {"interrupt_type": "FormatError"}}
    run = json.loads(mini(TASK, reply("tool_calls", function()), result, complaint, reply("stop")))
    run["info"]["model_stats"] = {"api_calls": 3}
    seen = show(json.dumps(run), tmp_path)
    assert places(seen) == [["request", "tool_result"]]
    assert "the run made 3 requests, and the file has the answers to 2 of them" in notices(seen)
    run["info"]["model_stats"] = {"api_calls": 2}
    assert "requests" not in notices(show(json.dumps(run), tmp_path))


def test_a_command_that_was_not_executed_did_not_run(tmp_path):
    two = (function(), function("call_e5f6a7b8"))
    ran = {"role": "tool", "tool_call_id": "call_a1b2c3d4", "content": "<returncode>0</returncode>"}
    not_run = {"role": "tool", "tool_call_id": "call_e5f6a7b8",
               "content": "<exception>action was not executed</exception>\n<returncode>-1</returncode>"}
    seen = show(mini(TASK, reply("tool_calls", *two), ran, not_run), tmp_path)
    (refused,) = seen.responses[0].exchange.refusals.items()
    assert refused == ("call_e5f6a7b8", "the run ended before it: it did not run")


def test_the_user_and_the_limits_end_a_turn(tmp_path):
    said = {"role": "assistant", "content": "hi", "extra": {"actions": []}}
    stopped = {"role": "user", "content": "Interrupted", "extra": {"interrupt_type": "UserInterruption"}}
    seen = show(mini(TASK, said, stopped, said), tmp_path)
    assert words(seen) == ["CANCELLED", "END NOT RECORDED"]
    assert seen.turns[1].run.record.user_text == "Interrupted"
    limits = {"role": "exit", "content": "LimitsExceeded", "extra": {"exit_status": "LimitsExceeded"}}
    seen = show(mini(TASK, said, limits), tmp_path)
    assert words(seen) == ["END NOT RECORDED"]
    assert any("the agent ended the run (LimitsExceeded)" in noted.finding.message for noted in seen.findings)
    assert "the file says: " in seen.turns[0].verdict.sentence
    assert not any("nothing in the file shows" in noted.finding.message for noted in seen.findings)
    done = {"role": "exit", "content": "", "extra": {"exit_status": "Submitted"}}
    assert rules(show(mini(TASK, said, done), tmp_path))[-1] == "transcript.inferred.turn_ended"


@pytest.mark.parametrize("told", ["Command not executed. The user rejected your command with the following message: no",
                                  "Commands not executed. Switching to human mode", "Interrupted by user: wait"])
def test_older_versions_say_in_words_that_the_user_stopped_a_command(told, tmp_path):
    said = {"role": "assistant", "content": "Look.\n\n```bash\nls\n```", "timestamp": 1764649029.5}
    seen = show(mini(TASK, said, {"role": "user", "content": told}, said,
                      {"role": "user", "content": "<returncode>0</returncode>"}), tmp_path)
    assert (words(seen), stops(seen)) == (["CANCELLED", "END INFERRED"], ["cancelled", "tool_call"])
    assert seen.turns[1].run.record.user_text == told
    assert seen.responses[0].exchange.started == "2025-12-02T04:17:09.500+00:00"
    first = show(mini({"role": "user", "content": told}, said), tmp_path)
    assert first.turns[0].run.record.user_text == told


def test_a_new_task_after_the_work_was_submitted_is_no_interruption(tmp_path):
    more = {"role": "user", "content": "The user added a new task: more", "extra": {"interrupt_type": "UserNewTask"}}
    result = {"role": "tool", "tool_call_id": "call_a1b2c3d4", "content": "diff"}
    seen = show(mini(TASK, reply("tool_calls", function()), result, more, reply("stop")), tmp_path)
    assert words(seen) == ["COMPLETE SO FAR", "COMPLETE"]
    assert seen.turns[1].run.record.user_text == "The user added a new task: more"


def test_responses_api_messages_are_read(tmp_path):
    call = {"type": "function_call", "call_id": "call_a1b2c3d4", "name": "bash", "arguments": '{"command": "ls"}'}
    said = {"type": "message", "content": [{"type": "output_text", "text": "Look."}]}
    hm = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
    seen = show(mini(TASK, {"object": "response", "model": "gpt-5", "output": [hm, said, call]},
                      {"type": "function_call_output", "call_id": "call_a1b2c3d4", "output": "a.py"}), tmp_path)
    assert stops(seen) == ["tool_call"]
    assert [type(part).__name__ for part in seen.responses[0].exchange.response.parts] == [
        "ReasoningPart", "TextPart", "ToolCall"]


CUT = {"object": "response", "id": "resp_2", "model": "gpt-5", "status": "incomplete",
       "incomplete_details": {"reason": "max_output_tokens"},
       "output": [{"type": "function_call", "call_id": "call_e5f6a7b8", "name": "bash", "arguments": '{"command": "l'}],
       "usage": {"input_tokens": 30, "output_tokens": 16, "output_tokens_details": {"reasoning_tokens": 4},
                 "input_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 5}}}


def test_answers_of_the_responses_api_have_the_providers_word_also_those_that_were_rejected(tmp_path):
    call = {"type": "function_call", "call_id": "call_a1b2c3d4", "name": "bash", "arguments": '{"command": "ls"}'}
    whole = {**CUT, "status": "completed", "incomplete_details": None, "output": [call]}
    complaint = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "It is not JSON"}],
                 "extra": {"interrupt_type": "FormatError", "response": CUT}}
    seen = show(mini(TASK, whole, {"type": "function_call_output", "call_id": "call_a1b2c3d4", "output": "a.py"},
                      complaint), tmp_path)
    assert [each.exchange.response.stop_reason.raw for each in seen.responses] == [
        "completed", "incomplete:max_output_tokens"]
    assert seen.responses[1].exchange.response.usage == (30, 16, 4, 20, 5)
    assert (stops(seen), words(seen)) == (["tool_call", "max_tokens"], ["CALL HELD"])
    last = seen.responses[1].exchange
    assert (last.api, last.response.usage) == ("openai_responses", (30, 16, 4, 20, 5))
    assert [call.arguments for call in last.response.tool_calls] == ['{"command": "l']
    first = last.response.stop_reason.evidence[0]
    assert (first.rule, first.at.pointer) == ("transcript.provider", "/extra/response/status")


@pytest.mark.parametrize(("requests", "stop"), [(2, ["tool_call", "context_window_exceeded"]), (1, ["tool_call"])])
def test_an_exception_that_ends_the_run_is_that_of_the_request_without_an_answer(tmp_path, requests, stop):
    ended = {"role": "exit", "content": "too long", "extra": {
        "exit_status": "ContextWindowExceededError", "exception_str": "too long", "traceback": "…"}}
    file = json.loads(mini(TASK, reply("tool_calls", function()),
                           {"role": "tool", "tool_call_id": "call_a1b2c3d4", "content": "a.py"}, ended))
    file["info"]["model_stats"] = {"api_calls": requests}
    seen = show(json.dumps(file), tmp_path)
    assert stops(seen) == stop
    assert [each.exchange.response.error.message for each in seen.responses if each.exchange.response.error] == (
        ["too long"] if requests == 2 else [])


@pytest.mark.parametrize("fence", ["bash", "mswea_bash_command"])
def test_an_older_list_has_its_command_in_the_text(fence, tmp_path):
    said = {"role": "assistant", "content": f"Look.\n\n```{fence}\nls -la\n```"}
    rows = [{"role": "system", "content": "s"}, TASK, said, {"role": "user", "content": "<returncode>0</returncode>"},
            {"role": "assistant", "content": "no command"}, {"role": "user", "content": "Please"}]
    seen = show(json.dumps(rows), tmp_path, name="a.traj.json")
    assert stops(seen)[0] == "tool_call"
    assert [call.arguments for call in seen.responses[0].exchange.response.tool_calls] == ["ls -la"]
    assert "2 of 2 answers have no stop reason, as mini-swe-agent keeps none for them" in notices(seen)


def test_an_object_that_begins_with_its_messages_is_known_by_its_name(tmp_path):
    rows = json.dumps({"messages": [TASK, reply("stop")]})
    assert show(rows, tmp_path, name="a.traj.json").inputs[0].format == "mini-swe-agent"


@pytest.mark.parametrize("name", ["mswea", "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MICRO_SWE_AGENT_FINAL_OUTPUT"])
def test_an_older_list_is_known_by_what_its_messages_name(name, tmp_path):
    rows = [{"role": "user", "content": f"say {name}"}, {"role": "assistant", "content": "hi"}]
    assert show(json.dumps(rows), tmp_path, name="a.json").inputs[0].format == "mini-swe-agent"


@pytest.mark.parametrize(("shape", "rows", "member", "told"), [
    (SWE, "history", {"content": 1}, "message 2: content is a number, but text was expected"),
    (MINI, "messages", {"content": 1}, "message 2: content is a number, but text was expected"),
    (MINI, "messages", {"extra": {"response": 1}}, "message 2: extra.response is a number, but an object was"),
])
def test_a_member_of_an_odd_kind_is_told(shape, rows, member, told, tmp_path):
    held = list(shape[rows])
    held[1] = {**held[1], **member}
    seen = show(json.dumps({**shape, rows: held}), tmp_path, name="a.json")
    assert told in notices(seen)


def test_the_pieces_of_a_list_are_byte_for_byte():
    data = '\ufeff{"other": ["messages"], "messages" : [ {"a": 1.50} ,\n"ü", [1,2],{"b": "cut'.encode()
    pieces = list(list_pieces(data, "messages"))
    assert pieces == [(1, b'{"a": 1.50}', False), (2, '"ü"'.encode(), False), (3, b"[1,2]", False),
                      (4, b'{"b": "cut', True)]
    assert list(list_pieces(b"[1, 2]")) == [(1, b"1", False), (2, b"2", False)]
    assert list(list_pieces(b'{"messages": 1}', "messages")) == []
    assert list(list_pieces(b"{}", "messages")) == []


def test_what_was_cut_after_an_answer_that_ended_the_turn_for_us_is_not_repaired(tmp_path):
    """The complaint about a whole answer asks for another one in the same turn, and that one is cut."""
    complaint = {"role": "user", "content": "No action found in your answer"}
    rows = ({"role": "user", "content": "go"}, reply("stop"), complaint, reply("length"))
    assert words(show(mini(*rows), tmp_path)) == ["TRUNCATED"]
    assert words(show(mini(*rows, complaint, reply("stop")), tmp_path)) == ["TRUNCATED"]
    assert words(show(mini(*rows[:2], complaint, reply("stop")), tmp_path)) == ["COMPLETE"]
