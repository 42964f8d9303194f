"""What the verdict says of an answer that a filter ended, in the provider's own words."""

from __future__ import annotations

import pytest

from tests.report.test_verdict import alone, ask_gemini, contents, verdict
from tests.scenes import ASKS, MESSAGES, chat, exchange, message, shown


def refusal(**details):
    return {**message([], "refusal", 3), "stop_details": {"type": "refusal", **details}}


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
    (found,) = shown(exchange({"messages": ASKS}, "", status=307, response_headers={"Location": page})).turns
    assert found.verdict.word == "ERROR"
    assert "HTTP 307" in found.verdict.sentence
    assert page in found.verdict.sentence
    assert found.verdict.advice.text == "send it to the address that the answer names"


def test_a_failure_that_only_a_stop_word_tells_names_the_word_and_its_meaning():
    word, _, sentence, _ = alone(chat("la la la", "repetition_truncation"))
    assert word == "ERROR"
    assert sentence.endswith('failed: "repetition_truncation", degenerate, the output repeats itself')
