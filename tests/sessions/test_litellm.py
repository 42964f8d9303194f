"""Logs of LiteLLM: whose word it is, the cap, what a later call adds, failures, damage."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.scenes.rows import each_row
from tests.scenes.transcripts import places, show, words

ASK = {"role": "user", "content": "go"}
CALL = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": '{"a": '}}


def payload(word: str = "length", *messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": "hi", "tool_calls": [CALL] if word == "tool_calls" else []}
    return {"id": "x", "trace_id": "t", "call_type": "acompletion", "status": "success", "model": "gpt-4o",
            "custom_llm_provider": "openai", "startTime": 1700000000.5, "messages": [ASK, *messages],
            "model_parameters": {"max_tokens": 9}, "response": {
                "id": "c1", "model": "gpt-4o", "choices": [{"index": 0, "finish_reason": word, "message": message}],
                "usage": {
                    "prompt_tokens": 30, "completion_tokens": 9, "cache_creation_input_tokens": 4,
                    "prompt_tokens_details": {"cached_tokens": 20}}}, **more}


def stops(seen: Any) -> list[tuple[str | None, str]]:
    return [(each.response.stop_reason.raw, each.response.stop_reason.normalized.value) for each in seen.exchanges]


@pytest.mark.parametrize("text", [
    json.dumps(payload()), json.dumps(payload(), indent=1), json.dumps([payload()]), json.dumps(payload()) + "\n",
])
def test_a_payload_is_an_answer(load, text):
    seen = load(text, "a.json")
    assert (seen.inputs[0].format, stops(seen)) == ("litellm", [("length", "max_tokens")])
    one = seen.exchanges[0]
    assert (one.request.max_tokens, one.response.usage) == (9, (30, 9, None, 20, 4))
    assert one.started == "2023-11-14T22:13:20.500+00:00"


@pytest.mark.parametrize(("counts", "read"), [
    ({"prompt_cache_hit_tokens": 20}, (30, 9, None, 20, None)),  # DeepSeek
    ({"completion_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 44}, (30, 14, 5, None, None)),  # xAI
])
def test_counts_are_read_as_those_of_a_recorded_body(load, counts, read):
    given = payload()
    given["response"]["usage"] = {"prompt_tokens": 30, "completion_tokens": 9, **counts}
    assert load(json.dumps(given), "a.json").exchanges[0].response.usage == read


@pytest.mark.parametrize(("asked", "together"), [(ASK, True), ({"role": "user", "content": "stop"}, False)])
def test_a_request_that_repeats_an_answer_of_another_trace_continues_it(tmp_path, asked, together):
    """Without an id from the client each call has a trace of its own: that a cut call had run was not shown."""
    first = payload("tool_calls")
    told = first["response"]["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": "c", "content": "a.py"}
    second = payload("stop", told, result, id="y", trace_id="t2", startTime=1700000002.5)
    second["messages"][0] = asked
    seen = show("\n".join(map(json.dumps, (first, second))), tmp_path, name="a.jsonl")
    assert words(seen) == (["CUT CALL RUN"] if together else ["CALL HELD", "MAYBE CUT"])


@each_row(("provider", "stream", "admission"), [
    ("anthropic", False, "held"), ("bedrock", False, "held"), ("vertex_ai", False, "held"), ("azure_ai", False, "held"),
    ("anthropic", True, "ready"), ("vertex_ai", True, "ready"), ("openai", False, "ready")])
def test_a_call_whose_arguments_litellm_wrote_again_may_be_cut_at_the_cap(provider, stream, admission, tmp_path):
    """Claude's whole answers have parsed arguments, which look whole also if the call was cut."""
    given = payload("tool_calls", model="claude-x", custom_llm_provider=provider, model_parameters={
        "max_tokens": 9, "stream": stream})
    whole = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": '{"path": "a"}'}}
    given["response"]["choices"][0]["message"]["tool_calls"] = [whole]
    seen = show(json.dumps(given), tmp_path, name="a.json").responses[0]
    assert seen.verdicts[0].admission.value == admission
    notes = [each.message for each in seen.judgement.findings if "already parsed" in each.message]
    assert [note.endswith("without a stop reason of the provider") for note in notes] == [True] * (admission == "held")


def test_an_answer_that_is_json_is_its_text(load):
    given = payload("stop")
    given["response"]["choices"][0]["message"]["content"] = '{"city": "Rome"}'
    assert load(json.dumps(given), "a.json").exchanges[0].response.text == '{"city": "Rome"}'


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "max_output_tokens"])
def test_the_parameters_state_the_cap(load, name):
    seen = load(json.dumps(payload(model_parameters={name: 7})), "a.json")
    assert seen.exchanges[0].request.max_tokens == 7


def test_a_word_that_was_mapped_is_litellms(load):
    seen = load(json.dumps(payload(model="claude-x", custom_llm_provider="anthropic")), "a.json")
    assert stops(seen) == [(None, "max_tokens")]
    assert seen.exchanges[0].response.stop_reason.evidence[0].rule == "transcript.recorder"


@each_row(("native", "stop"), [
    ("network_error", "error"), ("MALFORMED_FUNCTION_CALL", "malformed_tool_call"), ("max_tokens", "max_tokens"),
    ("end_turn", "end_turn"), ("brand_new", "unknown"),
])
def test_the_providers_own_word_beside_litellms(load, native, stop):
    given = payload("stop")
    given["response"]["choices"][0]["provider_specific_fields"] = {"native_finish_reason": native}
    seen = load(json.dumps(given), "a.json")
    assert stops(seen) == [(native, stop)]
    first = seen.exchanges[0].response.stop_reason.evidence[0]
    assert (first.rule, first.at.pointer) == (
        "transcript.provider", "/response/choices/0/provider_specific_fields/native_finish_reason")


@each_row("fields", [None, {}, {"native_finish_reason": ""}, {"native_finish_reason": 3}, "x"])
def test_no_word_beside_litellms(load, fields):
    given = payload("length")
    given["response"]["choices"][0]["provider_specific_fields"] = fields
    assert stops(load(json.dumps(given), "a.json")) == [("length", "max_tokens")]


def test_a_later_call_of_a_trace_adds_its_results(load):
    said = {"role": "assistant", "content": "hi", "tool_calls": [CALL]}
    later = payload("stop", said, {"role": "tool", "tool_call_id": "c", "content": "a.py"})
    text = "".join(f"{json.dumps(each)}\n" for each in (payload("tool_calls"), later))
    seen = load(text, "a.jsonl")
    assert stops(seen) == [("tool_calls", "tool_call"), (None, "end_turn")]  # it also writes "stop" where none came
    assert [part.text for each in seen.exchanges[1].request.messages for part in each.results] == ["a.py"]
    assert seen.exchanges[0].response.parts[1].arguments == '{"a": '


def test_a_failure_is_an_error(load):
    seen = load(json.dumps(payload(status="failure", response=None, error_str="RateLimitError: 429")), "a.json")
    assert stops(seen)[0][1] == "error"


def test_a_cut_line_costs_itself(load):
    seen = load(json.dumps(payload()) + "\n" + json.dumps(payload())[:-50], "a.jsonl")
    assert len(seen.exchanges) == 1
    assert "cut" in "".join(seen.inputs[0].notices)


@pytest.mark.parametrize(("member", "value"), [("response", []), ("model_parameters", 5)])
def test_a_member_of_another_type_is_told(load, member, value):
    assert f"{member} is" in "".join(load(json.dumps(payload(**{member: value})), "a.json").inputs[0].notices)


def spend_row(**more: Any) -> dict[str, Any]:
    return {"request_id": "x", "call_type": "acompletion", "spend": 0.1, "model": "gpt-4o", "status": "success",
            "custom_llm_provider": "openai", "startTime": "2025-01-24 09:20:46.847371", "prompt_tokens": 3,
            "completion_tokens": 20, "messages": "{}", "response": "{}", "proxy_server_request": "{}", **more}


def test_a_row_of_spend_without_contents_has_its_counts_and_no_end(load):
    seen = load(json.dumps(spend_row()), "a.json")
    assert (seen.inputs[0].format, stops(seen)) == ("litellm", [(None, "unknown")])
    assert seen.exchanges[0].response.stop_reason.detail == "not_recorded"
    assert seen.exchanges[0].response.usage.output_tokens == 20


def test_a_row_of_spend_may_hold_its_contents_as_text(load):
    held = payload()
    seen = load(json.dumps(spend_row(**{name: json.dumps(given) for name, given in (
        ("messages", held["messages"]), ("response", held["response"]), ("proxy_server_request", {"max_tokens": 9}),
    )})), "a.json")
    assert stops(seen) == [("length", "max_tokens")]
    one = seen.exchanges[0]
    assert (one.request.messages[0].text, one.request.max_tokens, one.response.text) == ("go", 9, "hi")


@pytest.mark.parametrize("gone", ["request_id", "spend", "call_type"])
def test_a_row_of_spend_is_known_by_all_of_its_names(load, gone):
    held = {name: given for name, given in spend_row().items() if name != gone}
    assert load(json.dumps(held), "a.json").inputs[0].format != "litellm"


@pytest.mark.parametrize(("code", "status", "retryable"), [
    ("429", 429, True), ("400", 400, False), ("", None, False), ("None", None, False), ("7", None, False),
    (429, 429, True), pytest.param("4" * 5_000, None, False, id="endless"), ("302", None, False),
])
def test_a_failure_has_the_status_of_its_error(load, code, status, retryable):
    failed = payload(status="failure", response={}, error_str="it is broken", error_information={"error_code": code})
    response = load(json.dumps(failed), "a.json").exchanges[0].response
    assert (response.http_status, response.error.retryable) == (status, retryable)


def test_a_time_beyond_all_numbers_is_no_time(load):
    text = json.dumps(payload(startTime=10**400)) + "\n" + json.dumps(payload(startTime=10**400)) + "\n"
    assert len(load(text, "a.jsonl").exchanges) == 1, "of one answer, with no time that tells them apart"


@each_row(("kind", "answers"), [
    ("acompletion", 1), ("pass_through_endpoint", 1), ("", 1), ("anthropic_messages", 1), ("agenerate_content", 1),
    ("aembedding", 0), ("arerank", 0), ("amoderation", 0), ("atranscription", 0), ("alist_batches", 0),
])
def test_calls_in_which_no_model_answers_are_counted(load, kind, answers):
    seen = load(json.dumps(payload(call_type=kind)), "a.json")
    assert len(seen.exchanges) == answers
    assert ("records that hold no exchange: " + kind in "".join(seen.inputs[0].notices)) == (not answers)


def test_a_text_completion_has_its_text(load):
    given = {"object": "text_completion", "choices": [{"index": 0, "text": "hi", "finish_reason": "stop"}]}
    seen = load(json.dumps(payload(call_type="atext_completion", response=given)), "a.json")
    assert (seen.exchanges[0].response.text, stops(seen)) == ("hi", [(None, "end_turn")])


def test_an_answer_of_the_responses_api_is_the_providers(load):
    given = {"id": "resp_1", "object": "response", "status": "incomplete", "model": "m",
             "incomplete_details": {"reason": "max_output_tokens"}, "output": [
                 {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]},
                 {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": '{"a": '}],
             "usage": {"prompt_tokens": 36, "completion_tokens": 87}}
    seen = load(json.dumps(payload(call_type="aresponses", response=given)), "a.json")
    (one,) = seen.exchanges
    assert (one.api, one.response.text, one.response.usage.output_tokens) == ("openai_responses", "hi", 87)
    assert one.model == "m"
    assert stops(seen) == [("incomplete:max_output_tokens", "max_tokens")]
    assert [(call.id, call.name, call.arguments) for call in one.response.tool_calls] == [("c1", "ls", '{"a": ')]


@pytest.mark.parametrize("as_text", [True, False])
def test_a_row_of_spend_has_its_error_among_its_metadata(load, as_text):
    metadata = {"error_information": {"error_code": "429", "error_message": "too many requests"}, "status": "failure"}
    row = spend_row(call_type="", status="failure", metadata=json.dumps(metadata) if as_text else metadata)
    response = load(json.dumps(row), "a.json").exchanges[0].response
    assert (response.http_status, response.error.message) == (429, "too many requests")


def lines(*given: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(each)}\n" for each in given)


def spend(**more: Any) -> dict[str, Any]:
    """The row of the table of spend for `payload()`, as it is without stored prompts."""
    return {"request_id": "x", "call_type": "acompletion", "spend": 0.1, "prompt_tokens": 3, "completion_tokens": 9,
            "startTime": "2023-11-14T22:13:20.500000", "model": "gpt-4o", "custom_llm_provider": "openai",
            "messages": "{}", "response": "{}", "metadata": "{}", "status": "success", **more}


FAILED = {"status": "failure", "error_str": "RateLimitError: slow down", "response": None}


@pytest.mark.parametrize("given", [
    (payload(), payload()), (payload(), payload(endTime=1700000009.0)), (payload(), spend()), (spend(), payload()),
    (payload(startTime=1700000000.5009), spend()), (payload(), spend(startTime="2023-11-14 22:13:20.500+00:00")),
    (payload(), spend(startTime=None)), (spend(), spend(), payload()),
])
def test_an_exchange_that_is_logged_twice_is_one(load, given):
    seen = load(lines(*given), "a.jsonl")
    assert stops(seen) == [("length", "max_tokens")]
    assert seen.exchanges[0].response.text == "hi"
    assert seen.exchanges[0].request.messages[0].text == "go"
    told = f"payloads that repeat an exchange that another one logs: {len(given) - 1}"
    assert any(told in notice for notice in seen.inputs[0].notices)


@each_row("given", [
    (payload("length"), payload("stop")),  # the answers differ
    (payload(), payload(id="y")),
    (payload(), payload(startTime=1700000001.5)),  # a server that numbers all its answers alike
    (payload(), spend(startTime="2023-11-14T22:13:21.500")),
    (payload(**FAILED), payload()),
    (payload(**FAILED), payload(**FAILED, startTime=1700000001.5)),  # two attempts
    (payload(**FAILED, startTime=None), payload(**FAILED, startTime=None)),
    (payload(id=""), payload(id="")),
])
def test_exchanges_that_only_look_alike_are_two(load, given):
    assert len(load(lines(*given), "a.jsonl").exchanges) == 2


def test_a_failure_that_two_callbacks_log_is_one(load):
    seen = load(lines(payload(**FAILED), payload(**FAILED), payload()), "a.jsonl")
    assert [stop for _, stop in stops(seen)] == ["error", "max_tokens"]


def test_the_messages_of_a_repeated_payload_are_no_part_of_the_call_after_it(load):
    said = {"role": "assistant", "content": "hi", "tool_calls": [CALL]}
    later = payload("stop", said, {"role": "tool", "tool_call_id": "c", "content": "a.py"}, id="y")
    seen = load(lines(payload("tool_calls"), payload("tool_calls"), later), "a.jsonl")
    assert [part.text for each in seen.exchanges[1].request.messages for part in each.results] == ["a.py"]


MARK = "... (litellm_truncated skipped 4000 chars) ..."


def test_a_text_of_which_only_parts_are_stored_is_reported(load):
    given = payload("stop")
    given["response"]["choices"][0]["message"]["content"] = f"It begins {MARK} and ends."
    answer = load(json.dumps(given), "a.json").exchanges[0].response
    assert answer.stop_reason.normalized.value == "end_turn"
    assert "transcript.shortened" in [each.rule for each in answer.findings]


@pytest.mark.parametrize("arguments", [
    json.dumps({"path": "a.md", "content": f"It begins {MARK} and ends."}), f'{{"list": [1, 2 {MARK} 8, 9]}}',
])
def test_a_call_of_which_only_parts_are_stored_is_not_ready(tmp_path, arguments):
    given = payload("tool_calls")
    given["response"]["choices"][0]["message"]["tool_calls"] = [
        {"id": "c", "type": "function", "function": {"name": "write", "arguments": arguments}}]
    seen = show(json.dumps(given), tmp_path)
    facts = seen.responses[0]
    assert [each.admission.value for each in facts.verdicts] == ["held"]
    assert facts.exchange.response.stop_reason.normalized.value == "unknown"
    assert facts.exchange.response.stop_reason.raw == "tool_calls"
    assert any("left out the rest" in each.finding.message for each in seen.findings)


@pytest.mark.parametrize(("response", "text", "stop"), [
    ({"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Hel"}],
      "stop_reason": "max_tokens", "usage": {"input_tokens": 3, "output_tokens": 9}}, "Hel", ("max_tokens",) * 2),
    ({"candidates": [{"content": {"role": "model", "parts": [{"text": "Hel"}]}, "finishReason": "MAX_TOKENS"}]}, "Hel",
     ("MAX_TOKENS", "max_tokens")),
    ({"candidates": []}, None, (None, "unknown")),
])
def test_an_answer_may_be_the_object_of_anthropic_or_google(load, response, text, stop):
    seen = load(json.dumps(payload(call_type="anthropic_messages", response=response)), "a.json")
    assert (stops(seen), seen.exchanges[0].response.text) == ([stop], text)


@pytest.mark.parametrize("role", ["system", "developer"])
def test_a_payload_follows_the_one_whose_messages_its_own_repeat(tmp_path, role):
    """Two agents work at the same time under one trace."""
    made = []
    for agent in (0, 1):
        call = {"id": f"c{agent}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        asks = [{"role": role, "content": "Be brief."}, {"role": "user", "content": f"task {agent}"}]
        later = [*asks, {"role": "assistant", "content": None, "tool_calls": [call]},
                 {"role": "tool", "tool_call_id": f"c{agent}", "content": "a.py"}]
        half, more = {"role": "assistant", "content": f"The half of {agent}"}, {"role": "user", "content": "Continue."}
        for at, (sent, word, said) in enumerate((
                (asks, "tool_calls", {"content": None, "tool_calls": [call]}),
                (later, "length", half), ([*later, half, more], "stop", {"content": "and its rest."}))):
            one = payload(word, id=f"p{at}{agent}", startTime=1700000000.0 + 2 * at + agent, messages=sent,
                          model_parameters={})
            one["response"] |= {"id": f"r{at}{agent}", "usage": {"prompt_tokens": 30, "completion_tokens": 9}}
            one["response"]["choices"][0]["message"] = {"role": "assistant", **said}
            made.append(one)
    made.sort(key=lambda one: one["startTime"])
    seen = show("".join(json.dumps(one) + "\n" for one in made), tmp_path)
    assert words(seen) == ["CUT, COMPLETED"] * 2
    assert places(seen) == [["request", "tool_result", "continuation"]] * 2
    assert "calls that have no result" not in "".join(seen.inputs[0].notices)


def test_a_request_that_is_sent_again_follows_its_first_attempt_among_several_agents(tmp_path):
    """The second agent asks between the two attempts of the first."""
    made = [payload("length", id=f"p{at}", startTime=1700000000.0 + at, messages=[{"role": "user", "content": asked}],
                    model_parameters={"max_tokens": cap})
            for at, (asked, cap) in enumerate((("task 0", 9), ("task 1", 9), ("task 0", 18)))]
    for at, one in enumerate(made):
        one["response"]["id"] = f"r{at}"
        one["response"]["choices"][0]["message"]["content"] = f"half {at}"
    seen = show("".join(json.dumps(one) + "\n" for one in made), tmp_path)
    first, other, again = (next(turn for turn in seen.turns if at in turn.responses) for at in range(3))
    assert first.conversation == again.conversation != other.conversation


@pytest.mark.parametrize(("caps", "sure"), [((16, 90), True), ((None, 90), False), ((None, None), False)])
def test_that_a_cut_answer_was_asked_for_again_is_a_guess_without_both_caps(tmp_path, caps, sure):
    """The same request may as well be another one, whose whole answer says nothing about the cut one."""
    made = [payload(word, id=f"p{at}", trace_id="t", startTime=1700000000.0 + at, model_parameters=(
        {} if cap is None else {"max_tokens": cap}))
            for at, (word, cap) in enumerate(zip(("length", "stop"), caps, strict=True))]
    (turn,) = show("".join(json.dumps(one) + "\n" for one in made), tmp_path).turns
    assert (turn.verdict.word, turn.verdict.sure, "is a guess" in turn.verdict.sentence) == ("RETRIED", sure, not sure)


def test_the_same_request_under_the_same_cap_is_no_retry_of_a_cut_answer(tmp_path):
    """A test harness asks the same several times. The cut of one was hidden behind the next as RETRIED."""
    made = [payload(word, id=f"p{at}", trace_id=f"t{at}", startTime=1700000000.0 + at)
            for at, word in enumerate(("length", "stop"))]
    assert words(show("".join(json.dumps(one) + "\n" for one in made), tmp_path)) == ["TRUNCATED", "MAYBE CUT"]
