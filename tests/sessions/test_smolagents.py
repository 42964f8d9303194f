"""Memories of smolagents: the provider's own words, calls that ran on cut arguments, and answers that were not kept."""

from __future__ import annotations

import json

import pytest

from inspector.sessions.importers.recognition import choose
from loop_core.values import ArgsForm, TextPart, Usage
from tests.scenes.rows import each_row
from tests.scenes.transcripts import rules, show, stops, words

TASK = {"task": "go", "task_images": None}
CUT, WHOLE = '{"team": "pla', {"team": "platform"}
MAX_STEPS = {"type": "AgentMaxStepsError", "message": "Reached max steps."}


def call(arguments=WHOLE, key="c1", name="on_call"):
    return {"function": {"arguments": arguments, "name": name, "description": None}, "id": key, "type": "function"}


def message(content="hi", word="stop", calls=None, raw=True, **more):
    """An answer, with the object of OpenAI's client."""
    sent = {"_type": "ChatCompletion", "model": "gpt-5", "usage": {"prompt_tokens": 3, "completion_tokens": 7},
            "choices": [{"_type": "Choice", "finish_reason": word, "index": 0, "message": {
                "role": "assistant", "content": content, "tool_calls": calls}}], **more}
    return {"role": "assistant", "content": content, "tool_calls": calls, "raw": sent if raw else None,
            "token_usage": {"input_tokens": 3, "output_tokens": 7, "total_tokens": 10}}


def step(answer, number=1, **more):
    text = answer["content"] if answer else None
    return {"step_number": number, "timing": {"start_time": 1700000000.5, "end_time": 1700000001.5, "duration": 1.0},
            "tool_calls": [], "error": None, "model_output_message": answer, "model_output": text, "code_action": None,
            "observations": None, "action_output": None, "token_usage": None, "is_final_answer": False, **more}


def error(kind, text):
    return {"type": kind, "message": text}


def read(tmp_path, *steps):
    return show(json.dumps([TASK, *steps]), tmp_path, name="memory.json")


def response(seen, index=0):
    return seen.responses[index].exchange.response


def results(seen):
    return [(each.result.text, each.result.is_error) for each in seen.inputs[0].answers]


def messages(seen, rule):
    return [noted.finding.message for noted in seen.findings if noted.finding.rule == rule]


def notices(seen):
    return "\n".join(seen.inputs[0].notices)


@each_row("written", [
    [TASK], [step(message())], {"output": "x", "steps": [TASK, step(message())]}, {"messages": [TASK], "state": "x"},
])
def test_the_steps_of_a_memory_are_recognised(written):
    assert choose(json.dumps(written).encode(), "memory.json") == "smolagents"


@pytest.mark.parametrize("name", ["steps", "messages"])
def test_the_steps_of_a_result_are_read(tmp_path, name):
    seen = show(json.dumps({"state": "success", name: [TASK, step(message())]}), tmp_path, name="result.json")
    assert (words(seen), seen.responses[0].exchange.started) == (["COMPLETE"], "2023-11-14T22:13:20.500+00:00")


@each_row(("word", "stop", "verdict"), [
    ("stop", "end_turn", "COMPLETE"), ("length", "max_tokens", "TRUNCATED"),
    ("content_filter", "safety_blocked", "BLOCKED"), (None, "unknown", "END NOT RECORDED"),
])
def test_the_word_of_the_provider_is_its_own(tmp_path, word, stop, verdict):
    seen = read(tmp_path, step(message(word=word)))
    assert (words(seen), stops(seen), response(seen).stop_reason.raw) == ([verdict], [stop], word)
    if word:
        assert rules(seen)[0] == "transcript.provider"
        assert response(seen).stop_reason.evidence[0].at.pointer == "/model_output_message/raw/choices/0/finish_reason"
    assert (response(seen).model, response(seen).usage) == ("gpt-5", Usage(3, 7))


def test_the_word_of_litellm_is_its_own_for_a_model_of_another_vocabulary(tmp_path):
    seen = read(tmp_path, step(message(word="length", _type="ModelResponse", model="claude-opus-4-5")))
    assert (rules(seen)[0], stops(seen)) == ("transcript.recorder", ["max_tokens"])
    seen = read(tmp_path, step(message(word="length", model="claude-opus-4-5")))
    assert rules(seen)[0] == "transcript.provider"


def test_the_word_of_bedrock_is_its_own(tmp_path):
    raw = {"output": {"message": {"role": "assistant", "content": [{"text": "hi"}]}}, "stopReason": "max_tokens"}
    seen = read(tmp_path, step({**message(), "raw": raw}))
    assert (words(seen), response(seen).stop_reason.raw, response(seen).api) == (
        ["TRUNCATED"], "max_tokens", "bedrock_converse")
    assert response(seen).usage == Usage(3, 7)


def test_of_a_call_of_litellm_the_message_has_the_arguments(tmp_path):
    answer = message(None, "tool_calls", [call()], _type="ModelResponse")
    answer["raw"]["choices"][0]["message"]["tool_calls"] = [{"_type": "ChatCompletionMessageToolCall"}]
    (found,) = response(read(tmp_path, step(answer))).tool_calls
    assert (found.name, found.arguments, found.form) == ("on_call", '{"team": "platform"}', ArgsForm.OBJECT)


def test_a_tool_that_was_given_cut_arguments_ran_on_them(tmp_path):
    answer = message(None, "length", [call(CUT)])
    seen = read(tmp_path, step(answer, tool_calls=[call(CUT)], observations='Ada of {"team": "pla'))
    assert words(seen) == ["CUT CALL RUN"]
    assert (response(seen).tool_calls[0].arguments, results(seen)) == (CUT, [('Ada of {"team": "pla', False)])


@pytest.mark.parametrize("why", [
    error("AgentToolCallError", "Argument why is required"),
    error("AgentToolExecutionError", "Unknown tool on_call, should be one of: page_team."),
])
def test_a_call_that_smolagents_refused_did_not_run(tmp_path, why):
    seen = read(tmp_path, step(message(None, "length", [call(CUT)]), error=why), step(message()))
    assert words(seen) == ["CALL HELD"]
    assert len(messages(seen, "agent.refused_held_call")) == 1


def test_a_tool_that_failed_may_have_run(tmp_path):
    why = error("AgentToolExecutionError", "Error executing tool 'on_call' with arguments x: OSError: down")
    seen = read(tmp_path, step(message(None, "tool_calls", [call()]), error=why))
    assert [failed for _, failed in results(seen)] == [True]
    seen = read(tmp_path, step(message(None, "length", [call(CUT)]), error=why), step(message()))
    assert len(messages(seen, "agent.failed_held_call")) == 1


def test_the_results_of_several_calls_are_one_text(tmp_path):
    calls = [call(key="a"), call(key="b")]
    first = step(message(None, "tool_calls", calls), observations="Ada\nBo", tool_calls=calls)
    assert results(read(tmp_path, first)) == [("Ada\nBo", False)] * 2
    assert words(read(tmp_path, first, step(message()))) == ["COMPLETE"]


def test_code_is_a_call_and_cut_code_that_ran_is_said(tmp_path):
    code = {"code_action": "print('a')", "tool_calls": [call("print('a')", "call_2", "python_interpreter")],
            "observations": "Execution logs:\na"}
    answer = {**message("<code>\nprint('a')\n", "length"), "content": "<code>\nprint('a')\n</code>"}
    seen = read(tmp_path, step(answer, **code), step(message()))
    assert words(seen) == ["CUT CALL RUN"]
    assert response(seen).parts[0] == TextPart("<code>\nprint('a')\n"), "as the provider sent it"
    assert [each.name for each in response(seen).tool_calls] == ["python_interpreter"]
    assert words(read(tmp_path, step(message("<code>\nprint('a')\n"), **code), step(message()))) == ["COMPLETE"]


def test_code_that_could_not_be_parsed_did_not_run(tmp_path):
    why = error("AgentExecutionError", "Code parsing failed on line 3 due to: SyntaxError: unterminated string literal")
    code = {"code_action": "print('", "tool_calls": [call("print('", "call_2")], "observations": "of the step before"}
    seen = read(tmp_path, step(message("x", "length"), error=why, **code), step(message()))
    assert words(seen) == ["CALL HELD"]
    assert len(messages(seen, "agent.refused_held_call")) == 1


def test_an_answer_that_smolagents_could_not_use_is_asked_for_again(tmp_path):
    why = error("AgentParsingError", "The model output does not contain any JSON blob.")
    seen = read(tmp_path, step(message(None, "length", [call(CUT)]), error=why), step(message()))
    assert results(seen) == []
    assert len(seen.turns) == 1


def test_an_answer_that_was_streamed_has_no_word_and_its_cut_call_is_held(tmp_path):
    assert words(read(tmp_path, step(message(raw=False)))) == ["END NOT RECORDED"]
    seen = read(tmp_path, step(message("", calls=[call(CUT)], raw=False)))
    assert (words(seen), stops(seen), response(seen).usage) == (["CALL HELD"], ["max_tokens"], Usage(3, 7))


@pytest.mark.parametrize(("name", "tokens", "verdict"), [
    ("max_new_tokens", 7, "TRUNCATED"), ("max_new_tokens", 8, "END NOT RECORDED"), ("max_tokens", 7, "TRUNCATED"),
])
def test_the_cap_of_a_model_that_runs_here_shows_a_cut(tmp_path, name, tokens, verdict):
    answer = {**message(), "raw": {"out": "hi", "completion_kwargs": {name: tokens}}}
    assert words(read(tmp_path, step(answer))) == [verdict]


def test_the_end_of_a_run_is_in_its_step(tmp_path):
    seen = read(tmp_path, step(message(raw=False), is_final_answer=True))
    assert words(seen) == ["END INFERRED"]


def test_a_step_without_an_answer_says_that_the_reason_is_not_recorded(tmp_path):
    seen = read(tmp_path, step(None))
    assert words(seen) == ["END NOT RECORDED"]
    assert "steps that have no answer: the request failed or the user stopped it" in notices(seen)


def test_the_last_answer_of_a_run_without_further_steps_has_no_word(tmp_path):
    last = step(None, 2, error=MAX_STEPS, action_output="I page the team.", token_usage={
        "input_tokens": 3, "output_tokens": 16})
    seen = read(tmp_path, step(message()), last)
    assert (words(seen), response(seen, 1).usage) == (["END NOT RECORDED"], Usage(3, 16))
    assert response(seen, 1).parts == (TextPart("I page the team."),)
    assert "smolagents ended the run: Reached max steps." in seen.turns[0].verdict.sentence
    lost = [{"type": "text", "text": "Error in generating final LLM output: Connection error."}]
    seen = read(tmp_path, step(None, error=MAX_STEPS, action_output=lost))
    assert (words(seen), response(seen).error.message) == (["ERROR"], "Connection error.")


def test_a_text_that_looks_like_json_is_a_text(tmp_path):
    answer = message({"thoughts": "x", "code": "y"})
    answer["content"] = {"thoughts": "x", "code": "y"}
    seen = read(tmp_path, step(answer, model_output='{"thoughts": "x", "code": "y"}'))
    assert response(seen).parts == (TextPart('{"thoughts": "x", "code": "y"}'),)


def test_a_plan_is_an_answer_and_unknown_steps_are_counted(tmp_path):
    plan = {"model_output_message": {"role": "assistant", "content": "1. Ask"}, "plan": "1. Ask", "timing": {},
            "token_usage": {"input_tokens": 1, "output_tokens": 2}}
    seen = read(tmp_path, {"system_prompt": "s"}, plan, {"hologram": 1}, step(message()))
    assert [each.exchange.response.parts for each in seen.responses] == [(TextPart("1. Ask"),), (TextPart("hi"),)]
    assert response(seen).usage == Usage(1, 2)
    assert "hologram" in notices(seen)


def test_a_memory_that_is_cut_gives_what_can_be_read(tmp_path):
    whole = json.dumps([TASK, step(message()), step(message("never whole"))])
    seen = show(whole[:-400], tmp_path, name="memory.json")
    assert response(seen).parts == (TextPart("hi"),)


def test_a_member_of_an_unexpected_type_is_told(tmp_path):
    seen = read(tmp_path, step(message(), observations=7))
    assert "observations" in notices(seen)
