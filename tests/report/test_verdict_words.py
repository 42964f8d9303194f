"""What the verdict says of an answer that a filter ended, in the provider's own words."""

from __future__ import annotations

import json

import pytest

from inspector.report import turn_table
from inspector.report.lines.response import response
from inspector.report.lines.spans import text_of
from inspector.report.turn_rows import rows_of
from tests.report.test_verdict import alone, ask_gemini, contents, verdict
from tests.scenes.recordings import (
    ASKS,
    CHAT,
    MESSAGES,
    RESPONSES,
    TOOLS,
    WHOLE,
    assistant,
    call,
    chat,
    exchange,
    message,
    pair_of,
    result,
    show,
    user,
)


def refusal(**details):
    return {**message([], "refusal", 3), "stop_details": {"type": "refusal", **details}}


def with_refusal(text):
    """A body of chat completions whose model declined in words of its own."""
    said = chat(None)
    said["choices"][0]["message"]["refusal"] = text
    return said


def test_a_refusal_is_told_with_its_category_and_its_explanation():
    word, _, sentence, _ = alone(refusal(category="bio", explanation="It could help to\nmake a toxin."), url=MESSAGES)
    assert word == "BLOCKED"
    assert sentence.endswith("filtered the answer (refusal, category bio): It could help to make a toxin.")


def test_a_refusal_without_a_category_or_an_explanation():
    assert alone(refusal(category=None, explanation=None), url=MESSAGES)[2].endswith("filtered the answer (refusal)")


def test_a_long_explanation_is_cut_to_a_line():
    _, _, sentence, _ = alone(refusal(category="cyber", explanation="x" * 900), url=MESSAGES)
    assert sentence.endswith("x…")
    assert len(sentence) < 300


@pytest.mark.parametrize(("body", "said"), [
    (contents(reason="SAFETY", candidates=[{"finishReason": "SAFETY", "finishMessage": "Harmful."}]), "Harmful."),
    ({"promptFeedback": {"blockReason": "OTHER", "blockReasonMessage": "Not this prompt."}}, "Not this prompt."),
])
def test_gemini_explains_a_filter_in_fields_of_its_own(body, said):
    word, _, sentence, _ = verdict(ask_gemini(body))
    assert word == "BLOCKED"
    assert sentence.endswith(f": {said}")


def test_a_policy_that_refused_a_request_is_named():
    body = {"error": {"message": "This looks like an attack.", "type": "invalid_request_error", "code": "cyber_policy"}}
    word, _, sentence, _ = alone(body, status=400)
    assert word == "BLOCKED"
    assert sentence.endswith("(policy): This looks like an attack.")


def test_gemini_behind_chat_completions_is_read_with_its_own_words():
    assert alone(chat(None, "function_call_filter: MALFORMED_FUNCTION_CALL"))[0] == "MALFORMED CALL"
    word, _, sentence, _ = alone(chat(None, "content_filter: RECITATION"))
    assert word == "BLOCKED"
    assert "content_filter: RECITATION" in sentence


def test_a_redirect_states_its_status_and_where_it_leads():
    page = "https://new.example/" + "x" * 150
    (found,) = show(exchange({"messages": ASKS}, "", status=307, response_headers={"Location": page})).turns
    assert found.verdict.word == "ERROR"
    assert "HTTP 307" in found.verdict.sentence
    assert page in found.verdict.sentence
    assert found.verdict.advice.text == "send the request to the address that the answer names"


def test_a_failure_that_only_a_stop_word_tells_names_the_word_and_its_meaning():
    word, _, sentence, _ = alone(chat("la la la", "repetition_truncation"))
    assert word == "ERROR"
    assert sentence.endswith('failed: "repetition_truncation", degenerate, the output repeats itself')


@pytest.mark.parametrize(("body", "url"), [
    (with_refusal("I cannot help with that."), CHAT),
    ({"id": "resp_1", "object": "response", "status": "completed", "model": "m", "error": None, "output": [
        {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
         "content": [{"type": "refusal", "refusal": "I cannot help with that."}]}]}, RESPONSES),
])
def test_a_model_that_declines_is_not_called_a_filter(body, url):
    word, _, sentence, advice = alone(body, url=url)
    assert word == "BLOCKED"
    assert "declined to answer" in sentence
    assert sentence.endswith(": I cannot help with that.")
    assert advice == "change the prompt; a continuation will not help"


def test_a_request_that_is_too_long_is_told_with_the_words_of_the_server():
    said = "prompt is too long: 3333404 tokens > 200000 maximum"
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": said}}
    word, _, sentence, advice = alone(body, url=MESSAGES, status=400)
    assert word == "CONTEXT FULL"
    assert sentence.endswith(f"refused the request: HTTP 400, {said}")
    assert advice == "shorten the request: it does not fit in the context window"


def test_a_call_of_a_tool_that_nobody_declared_is_no_matter_of_its_schema():
    word, _, _, advice = verdict(ask_gemini(contents(reason="UNEXPECTED_TOOL_CALL")))
    assert (word, advice) == ("MALFORMED CALL",
                              "declare the tool that the model wants to call, or remove its name from the prompts")


@pytest.mark.parametrize(("how", "said", "did"), [
    ({"status": "queued", "incomplete_details": None}, "ask for the response by its id until it is done",
     "has not finished the answer; it must be fetched by its id"),
    ({"status": "incomplete", "incomplete_details": {"reason": "steered"}},
     "read the next response: the server makes it by itself", "stopped the answer where it was steered"),
])
def test_a_response_in_the_background_is_asked_for_by_its_id_unless_another_follows_it(how, said, did):
    body = {"id": "resp_1", "object": "response", "background": True, "model": "m", "output": [], "error": None, **how}
    word, _, told, advice = verdict(exchange({"model": "m", "input": "hi", "background": True}, body, url=RESPONSES))
    assert (word, advice) == ("PAUSED", said)
    assert did in told


def test_gemini_goes_on_with_the_token_of_the_response():
    word, _, _, advice = verdict(ask_gemini(contents({"text": "One"}, reason="CONTINUATION")))
    assert (word, advice) == ("PAUSED", "send the request again with the token of the response")


def test_a_stream_that_ends_early_is_not_said_to_have_met_a_budget():
    events = [
        {"type": "response.created", "sequence_number": 0, "response": {
            "id": "resp_1", "object": "response", "status": "in_progress", "model": "m", "output": []}},
        {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": {
            "id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}},
        {"type": "response.output_text.delta", "sequence_number": 2, "item_id": "msg_1", "output_index": 0,
         "content_index": 0, "delta": "One"},
    ]
    stream = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)
    word, _, told, advice = alone(stream, url=RESPONSES)
    assert word == "INTERRUPTED"
    assert 'ended while its status was "in_progress"' in told
    assert advice == "send the request again; nothing shows that a budget cut this answer"


def test_an_incomplete_answer_without_a_reason_may_have_been_cut_by_a_budget():
    body = {"id": "resp_1", "object": "response", "status": "incomplete", "model": "m", "error": None, "output": [
        {"id": "msg_1", "type": "message", "role": "assistant", "status": "incomplete",
         "content": [{"type": "output_text", "text": "One"}]}]}
    word, _, _, advice = alone(body, url=RESPONSES)
    assert word == "INTERRUPTED"
    assert advice == "compare the tokens with the budget: whether it cut the answer is unknown"


def test_the_tokens_of_several_choices_are_not_held_against_the_cap_of_one():
    cut = {"message": {"role": "assistant", "content": "One"}, "finish_reason": "length"}
    body = {"id": "x", "object": "chat.completion", "model": "m", "choices": [{"index": 0, **cut}, {"index": 1, **cut}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 80, "total_tokens": 89}}
    word, _, sentence, advice = verdict(exchange({"messages": ASKS, "n": 2, "max_tokens": 40}, body))
    assert word == "TRUNCATED"
    assert sentence.endswith(' ended with "length", 80 tokens in 2 choices of at most 40 each')
    assert advice.startswith("raise max_tokens")
    _, _, sentence, _ = verdict(exchange({"messages": ASKS, "n": 2}, body))
    assert sentence.endswith(' ended with "length", 80 tokens in 2 choices')


def test_a_body_that_holds_no_answer_at_all_is_not_told_as_one():
    word, _, sentence, advice = alone({"contentType": "application/json", "method": "POST"})
    assert word == "NO STOP REASON"
    assert "a whole body and neither an answer nor a stop reason in it" in sentence
    assert advice == "look at the body: it contains no answer in this format"


def test_a_body_of_another_format_under_the_path_of_ollama_is_told_as_such():
    body = chat("Hi.")
    del body["usage"], body["id"]
    word, _, sentence, advice = verdict(exchange({"messages": ASKS}, body, url="http://localhost:11434/api/chat"))
    assert word == "INTERRUPTED"
    assert "sent nothing that ollama_chat defines as an answer" in sentence
    assert advice == "send the request again, and look at the body: no answer was found in it"


def test_a_call_of_an_earlier_answer_is_not_laid_to_the_last_one():
    first, last = chat(None, None, call(WHOLE)), chat("It is written.", None)
    history = [*ASKS, assistant(None, call(WHOLE)), result()]
    word, _, sentence, _ = verdict(pair_of(ASKS, first, tools=TOOLS), pair_of(history, last, tools=TOOLS))
    assert word == "NO STOP REASON"
    assert "; the call write_file of an earlier answer is held" in sentence


@pytest.mark.parametrize(("usage", "cap", "said"), [
    # xAI counts reasoning apart: 12 completion tokens, and 51 on reasoning that only the total includes
    ({"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 72,
      "completion_tokens_details": {"reasoning_tokens": 51}, "num_sources_used": 0}, 32,
     '"stop", 63 output tokens, 51 of them on reasoning: the other 12 are within the cap of 32'),
    ({"prompt_tokens": 9, "completion_tokens": 40, "total_tokens": 49}, 32,
     '"stop", 40 output tokens, more than the cap of 32'),
    ({"prompt_tokens": 9, "completion_tokens": 32, "total_tokens": 41}, 32, '"stop", 32 of 32 tokens'),
])
def test_tokens_above_the_cap_are_never_so_many_of_it(usage, cap, said):
    found = show(pair_of([user("x")], {**chat("An answer."), "usage": usage}, max_tokens=cap))
    assert said in found.turns[0].verdict.sentence
    told = "\n".join(text_of(line) for line in response(found, found.responses[0]).lines)
    columns = {column.name: column.column for column in turn_table.columns(0.0)}
    cell = text_of(columns["tokens"].cell(rows_of(found)[0]))
    used = usage["completion_tokens"]
    counted, wanted = {
        12: ("output 63 · thinking 51 · the answer 12 of 32", "63>32"),
        40: ("output 40, more than the cap of 32", "40>32"),
        32: ("output 32 of 32", "32/32"),
    }[used]
    assert counted in told
    assert cell == wanted
    notes = [each.message for each in found.responses[0].judgement.findings]
    assert notes
    assert any(f" of {cap} output tokens" in note for note in notes) == (used == cap)
