"""Logs of Inspect: archives and objects, the provider's word and Inspect's own, texts put aside, damage."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest
import zstandard

from inspector.sessions.importers import records
from inspector.sessions.intake import most, set_maximum
from tests.scenes.rows import each_row
from tests.scenes.shapes import INSPECT
from tests.scenes.transcripts import show, words

RUN = {"version": 2, "status": "success", "eval": {"run_id": "r", "task": "t", "model": "openai/m"}}


def model(word: str = "max_tokens", said: str = "hi", *calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": said, "tool_calls": list(calls)}
    return {"event": "model", "model": "openai/m", "timestamp": "2025-01-01T00:00:00Z", "config": {"max_tokens": 7},
            "input": [{"role": "user", "content": "go"}],
            "output": {"model": "m", "choices": [{"message": message, "stop_reason": word}],
                       "usage": {"input_tokens": 5, "output_tokens": 7, "reasoning_tokens": 2,
                                 "input_tokens_cache_read": 1}}, **more}


def call(response: dict[str, Any]) -> dict[str, Any]:
    return {"request": {"max_tokens": 9}, "response": response}


def log(*events: dict[str, Any], **more: Any) -> str:
    return json.dumps({**RUN, "samples": [{"id": 1, "epoch": 1, "events": list(events), **more}]})


def archive(*names: str, method: int = zipfile.ZIP_DEFLATED, **more: Any) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as made:
        made.writestr("_journal/start.json", json.dumps(RUN))
        for name in names:
            held = RUN if name == "header.json" else {"id": name, "epoch": 1, "events": [model()], **more}
            made.writestr(name, json.dumps(held))
    return file.getvalue()


def stops(seen: Any) -> list[tuple[str | None, str]]:
    return [(each.response.stop_reason.raw, each.response.stop_reason.normalized.value) for each in seen.exchanges]


@each_row(("word", "meant"), [
    ("stop", "end_turn"), ("max_tokens", "max_tokens"), ("model_length", "context_window_exceeded"),
    ("tool_calls", "tool_call"), ("content_filter", "safety_blocked"), ("unknown", "unknown"),
])
def test_inspects_own_words_are_the_recorders(load, word, meant):
    seen = load(log(model(word)), "a.json")
    assert (seen.inputs[0].format, stops(seen)) == ("inspect", [(None, meant)])
    assert seen.exchanges[0].response.stop_reason.evidence[0].rule == "transcript.recorder"
    assert "Inspect's own word" in "".join(seen.inputs[0].notices)


def test_what_an_event_of_a_model_says_beside_its_output(load):
    (exchange,) = load(log(model()), "a.json").exchanges
    assert (exchange.started, exchange.model) == ("2025-01-01T00:00:00Z", "m")
    event = model("stop")
    del event["output"]["model"]
    assert load(log(event), "a.json").exchanges[0].model == "openai/m"
    assert stops(load(log(model("stop", pending=True)), "a.json")) != stops(load(log(model("stop")), "a.json"))


@each_row(("response", "word", "meant"), [
    ({"choices": [{"finish_reason": "length"}]}, "length", "max_tokens"),
    ({"candidates": [{"finish_reason": "FinishReason.MAX_TOKENS"}]}, "MAX_TOKENS", "max_tokens"),
    ({"candidates": [{"finishReason": "STOP"}]}, "STOP", "tool_call"),
    ({"type": "message", "stop_reason": "refusal"}, "refusal", "safety_blocked"),
    ({"stopReason": "max_tokens"}, "max_tokens", "max_tokens"),
    ({"done_reason": "length"}, "length", "max_tokens"),
    ({"object": "response", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
     "incomplete:max_output_tokens", "max_tokens"),
    ({"object": "response", "status": "completed"}, "completed", "tool_call"),
])
def test_what_the_provider_returned_has_its_own_word(load, response, word, meant):
    asked = {"id": "c", "function": "ls", "arguments": {"a": 1}}
    seen = load(log(model("stop", "hi", asked, call=call(response))), "a.json")
    assert stops(seen) == [(word, meant)]
    assert seen.exchanges[0].response.stop_reason.evidence[0].rule == "transcript.provider"


def test_counts_the_cap_and_calls_are_read(load):
    asked = {"id": "c", "function": "ls", "arguments": {"a": 1}, "parse_error": "Error parsing arguments"}
    (one,) = load(log(model("tool_calls", "hi", asked)), "a.json").exchanges
    usage = one.response.usage
    assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens, usage.cached_tokens) == (5, 7, 2, 1)
    assert one.request.max_tokens == 7
    assert one.response.parts[1].arguments == '{"a": 1}'
    assert any("could not parse the arguments of ls" in found.message for found in one.response.findings)


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "max_output_tokens"])
def test_the_request_may_state_the_cap(load, name):
    event = model(config={}, call={"request": {name: 11}})
    assert load(log(event), "a.json").exchanges[0].request.max_tokens == 11


def test_results_come_once_and_what_repeats_is_no_new_message(load):
    asked = {"id": "c", "function": "ls", "arguments": {}}
    ask = {"role": "user", "content": "go"}
    tool = {"role": "tool", "tool_call_id": "c", "function": "ls", "content": "a.py"}
    seen = load(log(
        model("tool_calls", "", asked), {"event": "tool", "id": "c", "function": "ls", "result": "a.py"},
        model("stop", "done", input=[ask, {"role": "assistant", "content": ""}, tool]),
    ), "a.json")
    assert stops(seen) == [(None, "tool_call"), (None, "end_turn")]
    messages = seen.exchanges[1].request.messages
    assert [(part.call_id, part.text) for each in messages for part in each.results] == [("c", "a.py")]
    assert len(seen.turns) == 1


def test_a_call_that_was_not_approved_did_not_run(load):
    asked = {"id": "c", "function": "rm", "arguments": {}}
    done = {"event": "tool", "id": "c", "function": "rm", "error": {"type": "approval", "message": "rejected"}}
    (one,) = load(log(model("tool_calls", "", asked), done), "a.json").exchanges
    assert "did not run" in one.refusals["c"]


def test_texts_that_were_put_aside_are_put_back(load):
    event = model("stop", "attachment://ab", input=[], input_refs=[[1, 2]])
    pool = {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "attachment://cd"}]}
    seen = load(log(event, attachments={"ab": "the answer", "cd": "the question"}, events_data=pool), "a.json")
    assert seen.exchanges[0].response.text == "the answer"
    assert seen.exchanges[0].request.messages[0].text == "the question"


def test_a_sample_without_events_has_its_messages_and_one_word(load):
    messages = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "one"},
                {"role": "user", "content": "on"}, {"role": "assistant", "content": "two"}]
    seen = load(log(messages=messages, output={"model": "m", "choices": [{"stop_reason": "max_tokens"}]}), "a.json")
    assert stops(seen) == [(None, "end_turn"), (None, "max_tokens")]


def test_a_failed_call_and_a_failed_sample_say_so(load):
    seen = load(log(model(error="Error code: 529 - overloaded"), error={"message": "it broke"}), "a.json")
    assert seen.exchanges[0].response.error is not None
    assert stops(seen)[0][1] == "error"
    stopped = load(log(model("tool_calls", "x", {"id": "c", "function": "f", "arguments": {}}),
                         limit={"type": "token", "limit": 5}), "b.json")
    assert any("hit its limit of token" in found.message
               for found in stopped.exchanges[0].response.findings)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_archive_has_a_session_for_each_sample(load, method):
    seen = load(archive("header.json", "samples/1_epoch_1.json", "samples/2_epoch_1.json", method=method), "a.eval")
    assert stops(seen) == [(None, "max_tokens")] * 2
    assert len({turn.conversation for turn in seen.turns}) == 2
    assert "evaluation t of openai/m: success, its outcome and not a stop reason" in "".join(seen.inputs[0].notices[:2])


def test_a_run_that_did_not_end_has_its_journal_alone(load):
    seen = load(archive("samples/1_epoch_1.json"), "a.eval")
    assert stops(seen) == [(None, "max_tokens")]
    assert "no header.json" in "".join(seen.inputs[0].notices)


def test_an_archive_without_its_directory_is_read_by_its_headers(load):
    whole = archive("samples/1_epoch_1.json", "samples/2_epoch_1.json")
    seen = load(whole[: whole.index(b"PK\x01\x02")], "a.eval")
    assert len(seen.exchanges) == 2
    cut = load(whole[: whole.index(b"PK\x01\x02") - 30], "b.eval")
    assert len(cut.exchanges) == 1


def test_members_packed_with_zstd_are_read(load):
    whole = archive("samples/1_epoch_1.json", method=zipfile.ZIP_STORED)
    sample = next(each for each in records.zip_members(whole) if each.name.startswith("samples/"))
    body = zstandard.ZstdCompressor().compress(records.zip_content(whole, sample, _room()))
    name = sample.name.encode()
    head = (b"PK\x03\x04" + (20).to_bytes(2, "little") + b"\0\0" + (93).to_bytes(2, "little") + b"\0" * 8
            + len(body).to_bytes(4, "little") + b"\0" * 4 + len(name).to_bytes(2, "little") + b"\0\0")
    assert stops(load(head + name + body, "a.eval")) == [(None, "max_tokens")]


def _room() -> Any:
    from inspector.sessions.intake import Room

    return Room()


def test_no_member_is_unpacked_beyond_the_bound(load):
    data = archive("header.json", "samples/1_epoch_1.json", "samples/2_epoch_1.json", store={"x": "y" * 3_000_000})
    before = most()
    set_maximum(1 << 20)
    try:
        seen = load(data, "a.eval")
    finally:
        set_maximum(before)
    assert seen.exchanges == ()
    assert "more than" in seen.inputs[0].skipped[0].why


@pytest.mark.parametrize("content", [json.dumps(RUN), json.dumps({**RUN, "samples": []}), archive("header.json")],
                         ids=["no list", "an empty list", "an archive"])  # an archive holds the time when it was made
def test_a_log_without_samples_says_what_it_is(load, content):
    (given,) = load(content, "a.eval").inputs
    assert (given.format, given.error, given.responses) == ("inspect", None, 0)
    assert "evaluation t of openai/m" in "".join(given.notices)
    assert "the log holds no sample" in "".join(given.notices)


def test_a_cut_log_keeps_whole_samples(load):
    two = json.dumps({**RUN, "samples": [{"id": n, "epoch": 1, "events": [model()]} for n in (1, 2)]})
    seen = load(two[:-40], "a.json")
    assert len(seen.exchanges) == 1
    assert "cut" in seen.inputs[0].skipped[0].why


@pytest.mark.parametrize(("member", "value"), [("output", []), ("config", 5)])
def test_a_member_of_another_type_is_told(load, member, value):
    assert f"{member} is" in "".join(load(log(model(**{member: value})), "a.json").inputs[0].notices)


def test_the_shape_is_read(load):
    assert len(load(json.dumps(INSPECT), "a.json").exchanges) == 1


def test_events_without_an_answer_are_counted_by_their_names(load):
    seen = load(log({"event": "state"}, model("stop"), {"event": "state"}, {"event": "thought"}), "a.json")
    notices = "\n".join(seen.inputs[0].notices)
    assert "records that hold no exchange: state (2)" in notices
    assert "records of unknown type were skipped: thought (1)" in notices
    known = [
        "sample_init", "sample_limit", "sandbox", "state", "store", "approval", "compaction", "input", "score",
        "score_edit", "error", "logger", "info", "span_begin", "span_end", "step", "subtask", "anchor", "branch",
        "checkpoint",
    ]
    whole = load(log(model("stop"), *({"event": name} for name in known)), "b.json")
    assert "unknown type" not in "".join(whole.inputs[0].notices)
    messages = [{"role": role, "content": "hi"} for role in ("system", "user", "assistant")]
    old = load(log(messages=messages), "c.json")
    assert "records that hold no exchange: system (1)" in "".join(old.inputs[0].notices)


CUT = {"id": "c", "function": "ls", "arguments": {}, "parse_error": "Error parsing the following arguments"}


@pytest.mark.parametrize("response", [
    {"choices": [{"finish_reason": "tool_calls", "message": {"tool_calls": [
        {"id": "b", "function": {"name": "ls", "arguments": "{}"}},
        {"id": "c", "function": {"name": "ls", "arguments": '{"path": "a'}}]}}]},
    {"object": "response", "status": "completed", "output": [
        {"type": "message"}, {"type": "function_call", "call_id": "c", "name": "ls", "arguments": '{"path": "a'}]},
])
def test_arguments_that_inspect_could_not_parse_are_those_of_the_provider(load, response):
    (one,) = load(log(model("tool_calls", "", CUT, call=call(response))), "a.json").exchanges
    (asked,) = one.response.tool_calls
    assert (asked.arguments, asked.form.value) == ('{"path": "a', "string")
    assert asked.at.pointer.startswith("/call/response/")


@pytest.mark.parametrize("response", [{}, {"choices": [{"message": {"tool_calls": [3, {"id": "b"}]}}]}, {"output": 3}])
def test_a_call_that_inspect_could_not_parse_is_not_whole(load, response):
    (one,) = load(log(model("tool_calls", "", CUT, call=call(response))), "a.json").exchanges
    assert [asked.closed for asked in one.response.tool_calls] == [False]


@each_row(("error", "meant"), [
    ("Cancelled by operator", "cancelled"), ("Cancelled by limit", "interrupted"),
    ("Cancelled by system", "interrupted"), ("Cancelled by nobody", "error"),
])
def test_a_call_of_the_model_that_was_stopped_did_not_fail(load, error, meant):
    assert stops(load(log(model("stop", "ha", error=error)), "a.json")) == [(None, meant)]


@pytest.mark.parametrize(("source", "told"), [("user_cancel", "the user interrupted the turn"),
                                              ("limit", "the turn was interrupted (limit)"),
                                              (None, "the turn was interrupted (no source)")])
def test_an_interrupt_ends_the_turn(load, source, told):
    seen = load(log(model("tool_calls", "", {"id": "c", "function": "ls", "arguments": {}}),
                      {"event": "interrupt", "source": source}), "a.json")
    assert any(told in found.message for found in seen.exchanges[0].response.findings)


def test_redacted_reasoning_shows_its_summary(load):
    said = [{"type": "reasoning", "reasoning": "Zm9v", "redacted": True, "summary": "short"},
            {"type": "reasoning", "reasoning": "long"}, {"type": "text", "text": "hi"}]
    (one,) = load(log(model("stop", said)), "a.json").exchanges
    assert (one.response.reasoning_content, one.response.text) == ("shortlong", "hi")


@pytest.mark.parametrize(("total", "given"), [(15, 8), (12, 5), (None, 5)])
def test_newer_releases_count_cached_tokens_beside_the_input(load, total, given):
    event = model("stop")
    event["output"]["usage"] |= {"input_tokens_cache_read": 1, "input_tokens_cache_write": 2, "total_tokens": total}
    (one,) = load(log(event), "a.json").exchanges
    assert one.response.usage == (given, 7, 2, 1, 2)


@pytest.mark.parametrize("by_event", [True, False])
def test_a_call_whose_id_an_earlier_one_has_gets_its_own_result(tmp_path, by_event):
    """For Google's models older releases of Inspect gave each call the name of its tool as its id."""
    def answer(word: str, path: str, *before: dict[str, Any]) -> dict[str, Any]:
        return {**model(word, "", {"id": "write", "function": "write", "arguments": {"path": path}}),
                "input": [{"role": "user", "content": "go"}, *before]}

    def result(text: str) -> dict[str, Any]:
        return {"event": "tool", "id": "write", "function": "write", "result": text}

    told = [{"role": "tool", "tool_call_id": "write", "function": "write", "content": text} for text in ("one", "two")]
    events = [answer("tool_calls", "a"), result("one"), answer("max_tokens", "b", told[0]), result("two"),
              {**model("stop"), "input": [{"role": "user", "content": "go"}, *told]}]
    seen = show(log(*(each for each in events if by_event or each["event"] == "model")), tmp_path, name="a.json")
    assert words(seen) == ["CUT CALL RUN"]
    assert [[part.text for message in facts.exchange.request.messages for part in message.results]
            for facts in seen.responses] == [[], ["one"], ["two"]]
