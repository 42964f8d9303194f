"""Messages that Mastra stores: which of them the spans have too, calls with empty arguments, failures."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenes.mastra_rows import Trace, asked, database, message, messages_file, refused, used
from tests.scenes.rows import each_row
from tests.scenes.transcripts import rules, show, stops, view_file, words

SAID = {"type": "text", "text": "Rivers carry wa"}


def read(tmp_path: Any, *rows: Any) -> Any:
    return show(messages_file(*rows), tmp_path, name="messages.json")


def texts(seen: Any) -> list[str | None]:
    return [facts.exchange.response.text for facts in seen.responses]


def test_a_message_has_an_answer_for_each_step_and_no_end(tmp_path):
    seen = read(tmp_path, asked(), message({"type": "text", "text": "Look."}, used({"path": "a.txt"}),
                                           {"type": "step-start"}, SAID, modelId="m", provider="openai.chat"))
    assert (words(seen), stops(seen)) == (["END NOT RECORDED"], ["tool_call", "unknown"])
    assert texts(seen) == ["Look.", "Rivers carry wa"]
    first = seen.responses[0].exchange
    assert (first.response.model, first.api, first.request.messages[0].text) == ("m", "openai_chat", "go")
    assert seen.responses[1].exchange.request.messages[0].results[0].text == "contents"
    assert "Mastra keeps none for them" in str(seen.inputs[0].notices[0])


def test_a_text_after_which_the_user_went_on_is_an_inferred_end(tmp_path):
    seen = read(tmp_path, asked(), message(SAID), asked("more"), message(SAID, key="m2"))
    assert words(seen) == ["END INFERRED", "END NOT RECORDED"]


def signal(kind: str, said: str) -> Any:
    return message({"type": "text", "text": said}, role="signal", key=said, signal={"id": said, "type": kind})


@pytest.mark.parametrize("kind", ["user", "user-message"])
def test_a_signal_of_the_user_is_a_message_and_another_one_is_counted(tmp_path, kind):
    seen = read(tmp_path, signal(kind, "go"), message(SAID), signal("reactive", "note"), signal(kind, "more"),
                message(SAID, key="m2"))
    assert words(seen) == ["END INFERRED", "END NOT RECORDED"]
    assert [facts.exchange.request.messages[-1].text for facts in seen.responses] == ["go", "more"]
    assert "signal (1)" in str(seen.inputs[0].notices)


def test_a_call_with_empty_arguments_proves_no_end_whatever_its_result(tmp_path):
    seen = read(tmp_path, asked(), message(used({})))
    (facts,) = seen.responses
    assert (words(seen), facts.verdicts[0].admission.value) == (["END NOT RECORDED"], "held")
    assert "transcript.empty_arguments" in {each.rule for each in facts.exchange.response.findings}
    whole = read(tmp_path, asked(), message(used({"path": "a.txt"})))
    assert (words(whole), whole.responses[0].verdicts[0].admission.value) == (["END INFERRED"], "ready")


def test_empty_arguments_that_mastra_refuses_are_a_malformed_call(tmp_path):
    seen = read(tmp_path, asked(), message(used({}, refused())))
    assert (stops(seen), words(seen)) == (["malformed_tool_call"], ["CALL HELD"])
    assert rules(seen) == ["transcript.absent", "transcript.inferred.call_rejected"]
    assert "the agent refused its arguments" in str(seen.responses[0].exchange.refusals)


def test_refused_arguments_are_no_cut(tmp_path):
    seen = read(tmp_path, asked(), message(used({"path": 1}, refused())))
    assert (stops(seen), words(seen)) == (["tool_call"], ["CALL REJECTED"])


def test_an_error_ends_an_answer_with_what_came_before_it(tmp_path):
    error = {"type": "error", "error": {"name": "AI_APICallError", "message": "Too many requests."}}
    seen = read(tmp_path, asked(), message(SAID, used({}), error))
    assert (words(seen), texts(seen)) == (["ERROR"], ["Rivers carry wa"])
    assert seen.responses[0].exchange.response.stop_reason.detail == "retryable"


def test_other_roles_and_older_messages_are_counted(tmp_path):
    older = {**message(), "content": [{"type": "text", "text": "Hi."}]}
    seen = read(tmp_path, asked(), message(SAID), message(SAID, role="system"), older)
    assert len(seen.responses) == 1
    notices = " ".join(map(str, seen.inputs[0].notices))
    assert "system" in notices
    assert "not JSON objects" in notices


# -- Beside spans ------------------------------------------------------------------------------------------------------


def finished(**members: Any) -> Trace:
    """A run from second 1 to 101; its message is named by its only step."""
    trace = Trace()
    trace.step(trace.run(**members), "length", "Of the spans")
    return trace


@each_row("known", [
    (asked(second=300), message(SAID, key="m-t1", second=301)), (asked(second=300), message(SAID, traceId="t1")),
    (asked(second=1), message(SAID, second=400)), (asked(second=101), message(SAID, second=102))])
def test_a_message_whose_answer_is_in_the_spans_is_left_out(tmp_path, known):
    assert texts(view_file(database(tmp_path, finished().spans, known))) == ["Of the spans"]


@pytest.mark.parametrize("other", [
    (asked("more", second=102), message(SAID, second=103)), (asked("more", second=0), message(SAID, second=0)),
    (asked("more", second=5, thread="other"), message(SAID, second=6, thread="other"))])
def test_a_message_whose_answer_is_not_in_the_spans_is_read_at_its_time(tmp_path, other):
    seen = view_file(database(tmp_path, finished().spans, (*other,)))
    assert sorted(map(str, texts(seen))) == ["Of the spans", "Rivers carry wa"]
    assert "more" in [facts.exchange.request.messages[0].text for facts in seen.responses]
    assert (texts(seen)[0] == "Rivers carry wa") == (other[0]["createdAt"] < "2026-11-29T16:00:01")


def test_the_message_of_a_run_whose_end_is_not_in_the_spans_replaces_them(tmp_path):
    trace = finished(end=False)
    asks = (asked(second=2), message(SAID, second=9, key="m-t1", traceId="t1"))
    assert texts(view_file(database(tmp_path, trace.spans, asks))) == ["Rivers carry wa"]
    (tmp_path / "mastra.db").unlink()
    assert texts(view_file(database(tmp_path, trace.spans, asks[:1]))) == ["Of the spans"]


def test_a_message_without_an_answer_is_a_request_unless_the_spans_have_it(tmp_path):
    rows = (asked("first"), message(SAID), asked("second", second=50))
    seen = view_file(database(tmp_path, rows=rows))
    assert words(seen) == ["END INFERRED"]
    (tmp_path / "mastra.db").unlink()
    failed = Trace()
    failed.step(failed.run("second"), "error", "")
    failed.spans[0]["error"] = {"message": "no"}
    seen = view_file(database(tmp_path, failed.spans, (asked("second", second=2),)))
    assert words(seen) == ["ERROR"]
    assert [each.text for each in seen.responses[0].exchange.request.messages] == ["second"]
