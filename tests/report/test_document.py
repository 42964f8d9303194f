"""`explain --json`: the document that others rely on, field for field as it is promised."""

from __future__ import annotations

import json

import pytest

from inspector.config.settings import Price, PriceTable, Settings
from inspector.report.explain_document import document
from tests.scenes.recordings import (
    ASKS,
    CHAT,
    CUT,
    GEMINI,
    MESSAGES,
    PARTS,
    RESPONSES,
    TOOLS,
    bodiless_har,
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
    show,
    user,
)
from tests.scenes.rows import each_row

RESPONSE = {
    "path",
    "entry",
    "api",
    "provider",
    "profile",
    "model",
    "streaming",
    "http_status",
    "raw_stop_reason",
    "mapped_stop_reason",
    "stop_reason",
    "stop_detail",
    "evidence",
    "text",
    "reasoning",
    "tool_calls",
    "usage",
    "turn",
    "segment",
    "state",
}
TURN = {"id", "conversation", "responses", "final_state", "terminal_reason", "merged_text", "continuations", "notice",
        "verdict", "requests", "output_tokens", "continuation_tokens"}
FINDING = {"rule", "severity", "response", "turn", "message", "at"}


def document_of(*exchanges, **options):
    made = document(show(*exchanges, **options))
    assert json.loads(json.dumps(made)) == made
    return made


def counts(response):
    """Input, output, reasoning, read from a cache, written to it, and other input."""
    return tuple(response["usage"].values())


def test_the_shape_of_the_whole():
    made = document_of(*cut_call_ran())
    assert set(made) == {"schema", "inputs", "responses", "turns", "verdict", "findings"}
    assert made["schema"] == "loop-inspector/explain/2"
    assert set(made["inputs"][0]) == {"path", "format", "responses", "skipped"}
    assert all(set(each) == RESPONSE for each in made["responses"])
    assert all(set(each) == TURN for each in made["turns"])
    assert all(set(each) == FINDING for each in made["findings"])
    assert all(
        set(each) == {"id", "name", "arguments_raw", "verdict", "why"}
        for response in made["responses"]
        for each in response["tool_calls"]
    )
    assert all(
        set(each["usage"]) == {"input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens",
                               "cache_write_tokens", "uncached_tokens"} for each in made["responses"]
    )
    assert made["findings"]
    for at in [seen["at"] for each in made["responses"] for seen in each["evidence"]]:
        assert at is None or set(at) == {"part", "start", "end", "pointer"}


def test_a_cut_call_field_by_field():
    first = document_of(*cut_call_ran())["responses"][0]
    assert (first["path"], first["entry"], first["api"]) == ("-", 0, "openai_chat")
    assert (first["provider"], first["model"], first["http_status"]) == ("api.openai.com", "m-1", 200)
    assert (first["raw_stop_reason"], first["mapped_stop_reason"], first["stop_reason"]) == (
        "length",
        "max_tokens",
        "max_tokens",
    )
    assert (first["text"], first["reasoning"], first["streaming"]) == (None, None, False)
    assert counts(first) == (9, 40, None, None, None, 9)
    (held,) = first["tool_calls"]
    assert (held["id"], held["name"], held["arguments_raw"], held["verdict"]) == (
        "call_a1b2c3d4e5",
        "write_file",
        CUT,
        "held",
    )
    assert (first["turn"], first["segment"], first["state"]) == ("t1", 1, "RepairPending")


def test_the_offsets_are_bytes_of_the_body():
    body = json.dumps(chat("Grüße aus Köln", "length"), ensure_ascii=False)
    view_ = show(pair_of(ASKS, body))
    (seen,) = [e for e in document(view_)["responses"][0]["evidence"] if e["rule"] == "openai_chat.stop_reasons"]
    raw = view_.responses[0].exchange.body
    assert raw == body.encode()
    assert raw[seen["at"]["start"] : seen["at"]["end"]] == b'"length"'
    assert seen["at"]["pointer"] == "/choices/0/finish_reason"
    assert seen["at"]["part"] == "body"


def test_what_is_absent_is_null():
    made = document_of(pair_of(ASKS, cut_stream("The first")))["responses"][0]
    assert made["raw_stop_reason"] is None
    assert counts(made) == (None,) * 6
    assert made["streaming"] is True
    assert made["stop_reason"] == "interrupted"


def test_a_router_is_quoted_and_overruled():
    made = document_of(pair_of(ASKS, chat(None, "tool_calls", call(CUT)), tools=TOOLS))["responses"][0]
    assert (made["raw_stop_reason"], made["mapped_stop_reason"], made["stop_reason"]) == (
        "tool_calls",
        "tool_call",
        "max_tokens",
    )
    assert "judge.cut_arguments" in [seen["rule"] for seen in made["evidence"]]


@each_row(
    ("status", "details", "raw"),
    [
        ("completed", None, "completed"),
        ("incomplete", {"reason": "max_output_tokens"}, "incomplete:max_output_tokens"),
        ("incomplete", {"reason": "content_filter"}, "incomplete:content_filter"),
        ("incomplete", None, "incomplete"),
    ],
)
def test_the_raw_reason_of_responses_is_its_status_with_the_reason(status, details, raw):
    item = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": status,
        "content": [{"type": "output_text", "text": "Hi", "annotations": []}],
    }
    body = {
        "id": "resp_1",
        "object": "response",
        "status": status,
        "incomplete_details": details,
        "model": "gpt-5",
        "output": [item],
        "error": None,
    }
    made = document_of(exchange({"model": "gpt-5", "input": "hi"}, body, url=RESPONSES))["responses"][0]
    assert made["raw_stop_reason"] == raw


def test_arguments_sent_as_an_object_are_the_slice_that_was_sent():
    args = '{"path":  "a.md" , "n": 1.0}'  # the spaces and the 1.0 are the provider's own
    body = (
        '{"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"name": "look", "args": '
        + args
        + '}}]}, "finishReason": "STOP"}]}'
    )
    asks = {"contents": [{"role": "user", "parts": [{"text": "x"}]}]}
    (made,) = document_of(exchange(asks, body, url=GEMINI))["responses"][0]["tool_calls"]
    assert made["arguments_raw"] == args
    assert (made["id"], made["verdict"]) == (None, "ready")


def test_arguments_that_are_absent_are_null_and_empty_ones_are_empty():
    (absent,) = document_of(pair_of(ASKS, chat(None, "tool_calls", call(None)),
                                    tools=TOOLS))["responses"][0]["tool_calls"]
    (empty,) = document_of(pair_of(ASKS, chat(None, "tool_calls", call("")), tools=TOOLS))["responses"][0]["tool_calls"]
    assert (absent["arguments_raw"], absent["verdict"]) == (None, "held")
    assert (empty["arguments_raw"], empty["verdict"]) == ("", "held")


def test_a_call_that_its_schema_refuses_is_rejected():
    (made,) = document_of(pair_of(ASKS, chat(None, "tool_calls", call('{"path": 5}')), tools=TOOLS))["responses"][0][
        "tool_calls"
    ]
    assert made["verdict"] == "rejected"


def test_a_call_that_the_provider_runs_itself_is_not_among_the_calls():
    body = message(
        [
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
            {"type": "text", "text": "Found."},
        ],
        "end_turn",
    )
    made = document_of(pair_of(ASKS, body, url=MESSAGES, max_tokens=99))["responses"][0]
    assert made["tool_calls"] == []
    assert made["stop_reason"] == "end_turn"


def test_the_responses_of_a_turn_are_indices_into_the_list():
    other = pair_of([user("something else")], chat("yes"))
    first, second, third = repair_turn()
    made = document_of(first, other, second, third)
    by_turn = {turn["id"]: turn["responses"] for turn in made["turns"]}
    assert sorted(by_turn.values()) == [[0, 2, 3], [1]]
    for name, indices in by_turn.items():
        assert {made["responses"][index]["turn"] for index in indices} == {name}
    assert len({turn["conversation"] for turn in made["turns"]}) == 2


def test_entries_are_counted_over_the_skipped_ones_too(tmp_path):
    data = lines(pair_of(ASKS, chat("one"))) + b'{"nothing": "to see"}\n' + lines(pair_of([user("two")], chat("two")))
    made = document_of(data=data)
    assert [each["entry"] for each in made["responses"]] == [0, 2]
    assert [each["entry"] for each in made["inputs"][0]["skipped"]] == [1]
    assert made["inputs"][0]["skipped"][0]["why"]
    assert made["inputs"][0]["responses"] == 2


def test_a_turn_field_by_field():
    (turn,) = document_of(*cut_text(*PARTS))["turns"]
    assert turn["merged_text"] == "".join(PARTS[:4])
    assert (turn["final_state"], turn["terminal_reason"], turn["continuations"]) == ("AbortPartial", "retry_limit", 3)
    assert "continuation_max_attempts" in turn["notice"]
    assert turn["responses"] == [0, 1, 2, 3, 4]


def test_thinking_stands_apart_from_the_answer():
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 50,
        "total_tokens": 59,
        "completion_tokens_details": {"reasoning_tokens": 45},
    }
    body = chat("Yes.", usage=usage)
    body["choices"][0]["message"]["reasoning_content"] = "Let me think."
    made = document_of(pair_of(ASKS, body, url="https://api.deepseek.com/chat/completions"))["responses"][0]
    assert (made["text"], made["reasoning"]) == ("Yes.", "Let me think.")
    assert counts(made) == (9, 50, 45, None, None, 9)


@each_row(("body", "url", "expected"), [
    # Anthropic and Converse count cached tokens beside the input, the others among it.
    ({**message([], "end_turn"), "usage": {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 100,
                                           "cache_creation_input_tokens": 40}}, MESSAGES, (10, 100, 40, 10)),
    ({"output": {"message": {"role": "assistant", "content": [{"text": "Yes."}]}}, "stopReason": "end_turn",
      "usage": {"inputTokens": 10, "outputTokens": 1, "totalTokens": 151, "cacheReadInputTokens": 100,
                "cacheWriteInputTokens": 40}},
     "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse", (10, 100, 40, 10)),
    (chat("Yes.", usage={"prompt_tokens": 150, "completion_tokens": 1, "prompt_tokens_details": {
        "cached_tokens": 100, "cache_write_tokens": 40}}), CHAT, (150, 100, 40, 10)),
    (chat("Yes.", usage={"prompt_tokens": 150, "completion_tokens": 1}), CHAT, (150, None, None, 150)),
    (chat("Yes.", usage={"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 10}}),
     CHAT, (9, 10, None, None)),
])
def test_what_was_read_from_a_cache_and_written_to_it_is_told(body, url, expected):
    """A cost can be computed again from the counts of the document."""
    prices = PriceTable((("*", Price(1.0, 2.0, 0.1, 1.25)),))
    made = document_of(pair_of(ASKS, body, url=url), settings=Settings(prices=prices))["responses"][0]
    given, output, _, cached, written, other = counts(made)
    assert (given, cached, written, other) == expected
    assert made.get("cost") == (None if other is None else {"amount": pytest.approx(
        (other * 1.0 + (cached or 0) * 0.1 + (written or 0) * 1.25 + output * 2.0) / 1e6)})


def test_a_body_that_was_not_recorded_says_so():
    made = document_of(data=bodiless_har())["responses"][0]
    assert (made["stop_reason"], made["stop_detail"], made["raw_stop_reason"]) == ("unknown", "not_recorded", None)


def test_the_model_of_the_request_stands_in_for_one_that_the_response_does_not_name():
    body = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]}
    asks = {"contents": [{"role": "user", "parts": [{"text": "x"}]}]}
    assert document_of(exchange(asks, body, url=GEMINI))["responses"][0]["model"] == "gemini-2.5-pro"


def test_who_answered_is_the_host_and_null_where_no_address_was_recorded():
    pair = {"request": {"model": "m", "messages": ASKS}, "response": chat("yes")}
    assert document_of(pair)["responses"][0]["provider"] is None
    assert (
        document_of(pair_of(ASKS, chat("yes"), url=CHAT.replace("api.openai.com", "localhost:8000")))["responses"][0][
            "provider"
        ]
        == "localhost:8000"
    )


def test_the_evidence_of_a_routers_word_and_of_spent_tokens_has_bytes():
    said = {**chat("Hi,", "stop", tokens=40), "truncated": True}
    said["choices"][0]["native_finish_reason"] = "max_tokens"
    asks = {"model": "m-1", "max_tokens": 40, "messages": [user("hi")]}
    view_ = show(pair_of(asks, json.dumps(said), url="https://openrouter.ai/api/v1/chat/completions"))
    made, raw = document(view_), view_.responses[0].exchange.body
    places = {seen["rule"]: seen["at"] for seen in made["responses"][0]["evidence"]}
    at = places["judge.native_word"]
    assert raw[at["start"] : at["end"]] == b'"max_tokens"'
    assert at["pointer"] == "/choices/0/native_finish_reason"
    full = places["judge.context_full"]
    assert raw[full["start"] : full["end"]] == b"true"
    assert made["responses"][0]["stop_reason"] == "context_window_exceeded"
    (found,) = [each for each in made["findings"] if each["rule"] == "judge.native_word"]
    assert found["at"] == at


@pytest.mark.parametrize("streamed", [False, True])
def test_a_call_under_a_clean_word_of_litellm_is_held_if_the_provider_behind_it_said_that_it_is_cut(streamed):
    """LiteLLM says tool_calls for each answer of Gemini that holds a call."""
    ended = {"provider_specific_fields": {"native_finish_reason": "MAX_TOKENS"}}
    body = chat(None, "tool_calls", call())
    body["choices"][0].update(ended)
    choice = {"index": 0, "delta": {**body["choices"][0]["message"]}, "finish_reason": None}
    events = [{"id": "c", "choices": [choice]},
              {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls", **ended}]}]
    text = "".join(f"data: {json.dumps(event)}\n\n" for event in events) if streamed else json.dumps(body)
    view_ = show(pair_of([user("hi")], text, tools=TOOLS, stream=streamed))
    made, raw = document(view_), view_.responses[0].exchange.body
    assert made["verdict"]["id"] == "call_held"
    (answer,) = made["responses"]
    assert answer["stop_reason"] == "max_tokens"
    assert [each["verdict"] for each in answer["tool_calls"]] == ["held"]
    (at,) = [seen["at"] for seen in answer["evidence"] if seen["rule"] == "judge.native_word"]
    assert raw[at["start"] : at["end"]] == b'"MAX_TOKENS"'
    assert at["pointer"] == "/choices/0/provider_specific_fields/native_finish_reason"


@pytest.mark.parametrize("streamed", [False, True])
def test_a_call_under_a_clean_word_of_tabby_api_is_held_if_its_engine_says_that_the_cap_cut_it(streamed):
    """TabbyAPI says tool_calls for each answer that holds a call, and names the engine's own end beside it."""
    ended = {"eos_reason": "max_new_tokens"}
    body = chat(None, "tool_calls", call())
    body["choices"][0].update(ended)
    choice = {"index": 0, "delta": {**body["choices"][0]["message"]}, "finish_reason": "tool_calls", **ended}
    text = f"data: {json.dumps({'id': 'c', 'choices': [choice]})}\n\n" if streamed else json.dumps(body)
    view_ = show(pair_of([user("hi")], text, tools=TOOLS, stream=streamed))
    made, raw = document(view_), view_.responses[0].exchange.body
    (answer,) = made["responses"]
    assert (made["verdict"]["id"], answer["stop_reason"]) == ("call_held", "max_tokens")
    assert [each["verdict"] for each in answer["tool_calls"]] == ["held"]
    (at,) = [seen["at"] for seen in answer["evidence"] if seen["rule"] == "judge.native_word"]
    assert (raw[at["start"] : at["end"]], at["pointer"]) == (b'"max_new_tokens"', "/choices/0/eos_reason")
    body["choices"][0]["eos_reason"] = "stop_token"
    (answer,) = document(show(pair_of([user("hi")], json.dumps(body), tools=TOOLS)))["responses"]
    assert [each["verdict"] for each in answer["tool_calls"]] == ["ready"]


@each_row(("word", "reason", "verdict"), [
    ("eosFound", "tool_call", "ready"), ("stopStringFound", "tool_call", "ready"), ("toolCalls", "tool_call", "ready"),
    ("maxPredictedTokensReached", "max_tokens", "held"),
    ("contextLengthReached", "context_window_exceeded", "held"),
    ("userStopped", "cancelled", "held"), ("failed", "error", "held"), ("modelUnloaded", "error", "held"),
])
def test_the_reason_in_the_statistics_of_lm_studio_decides_over_a_clean_finish_reason(word, reason, verdict):
    body = {**chat(None, "tool_calls", call()), "stats": {"generation_time": 0.9, "stop_reason": word}}
    url = "http://127.0.0.1:1234/api/v0/chat/completions"
    view_ = show(pair_of([user("hi")], json.dumps(body), tools=TOOLS, url=url))
    made, raw = document(view_), view_.responses[0].exchange.body
    (answer,) = made["responses"]
    assert (answer["profile"], answer["stop_reason"]) == ("lm_studio", reason)
    assert [each["verdict"] for each in answer["tool_calls"]] == [verdict]
    (at,) = [seen["at"] for seen in answer["evidence"] if seen["rule"] == "judge.native_word"]
    assert (raw[at["start"] : at["end"]], at["pointer"]) == (json.dumps(word).encode(), "/stats/stop_reason")


def test_the_evidence_of_a_word_beside_the_choices_names_its_place():
    body = {**chat("Hi,"), "system_fingerprint": "b4000-1a2b3c", "stop_type": "limit"}
    view_ = show(pair_of([user("hi")], json.dumps(body), url="http://127.0.0.1:8080/v1/chat/completions"))
    made, raw = document(view_), view_.responses[0].exchange.body
    (answer,) = made["responses"]
    assert (answer["profile"], answer["stop_reason"]) == ("llama_cpp", "max_tokens")
    (at,) = [seen["at"] for seen in answer["evidence"] if seen["rule"] == "judge.native_word"]
    assert (raw[at["start"] : at["end"]], at["pointer"]) == (b'"limit"', "/stop_type")


def test_the_evidence_of_spent_tokens_has_bytes():
    asks = {"model": "m-1", "max_tokens": 40, "messages": [user("hi")]}
    view_ = show(exchange(asks, json.dumps(chat("Done.", "stop", tokens=40))))
    made, raw = document(view_), view_.responses[0].exchange.body
    (seen,) = [each["at"] for each in made["responses"][0]["evidence"] if each["rule"] == "judge.usage_at_cap"]
    assert raw[seen["start"] : seen["end"]] == b"40"


def test_an_impossible_count_of_tokens_is_a_finding_with_its_bytes():
    body = json.dumps(chat("Hello", "length", tokens=2_000_000_000))
    found = show(pair_of([user("hi")], body))
    (noted,) = [noted for noted in found.findings if noted.finding.rule == "usage.impossible"]
    at = noted.finding.at
    assert found.responses[0].exchange.body[at.start : at.end] == b"2000000000"
    assert "the text has 5 bytes" in noted.finding.message
    assert not [noted for noted in show(pair_of([user("hi")], chat("Hello", tokens=9))).findings
                if noted.finding.rule == "usage.impossible"]


def test_a_count_of_no_tokens_for_a_text_is_not_gone_by():
    found = show(pair_of([user("hi")], json.dumps(chat("Hello", tokens=0))))
    (noted,) = [noted for noted in found.findings if noted.finding.rule == "usage.impossible"]
    at = noted.finding.at
    assert found.responses[0].exchange.body[at.start : at.end] == b"0"
    assert noted.finding.severity == "info"
    assert "the text has 5 bytes" in noted.finding.message
    assert " tokens" not in found.turns[0].verdict.sentence


@pytest.mark.parametrize(("reasoning", "stop", "rule"), [
    (20, "length", "usage.reasoning"),
    (21, "stop", "openai_chat.usage_contradiction"),
])
def test_a_finding_about_reasoning_tokens_has_the_bytes_of_their_count(reasoning, stop, rule):
    body = chat(None if stop == "length" else "Done.", stop, usage={
        "prompt_tokens": 9, "completion_tokens": 20, "completion_tokens_details": {"reasoning_tokens": reasoning}})
    view_ = show(pair_of(ASKS, json.dumps(body)))
    (found,) = [each for each in document(view_)["findings"] if each["rule"] == rule]
    at, raw = found["at"], view_.responses[0].exchange.body
    assert raw[at["start"] : at["end"]] == str(reasoning).encode()


def test_a_refusal_in_a_completed_response_has_the_bytes_of_its_words():
    said = {"type": "message", "id": "m", "role": "assistant", "status": "completed",
            "content": [{"type": "refusal", "refusal": "I cannot help."}]}
    body = {"id": "r", "object": "response", "model": "gpt-5", "status": "completed", "output": [said]}
    view_ = show(exchange({"model": "gpt-5", "input": "x"}, json.dumps(body), url=RESPONSES))
    (found,) = document(view_)["responses"]
    at, raw = found["evidence"][-1]["at"], view_.responses[0].exchange.body
    assert raw[at["start"] : at["end"]] == b'"I cannot help."'
