"""What the DevTools of Vercel's AI SDK record: whole answers, streams, runs, calls that were given up, odd files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inspector.sessions import open_paths
from inspector.sessions.importers.recognition import choose
from tests.scenes.transcripts import show, stops, text, words

Row = dict[str, Any]
ASKED = {"model": "m", "max_tokens": 30, "messages": [{"role": "user", "content": "go"}], "tools": [
    {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "required": ["path"]}}}]}


def step(number: int, answer: Any, asked: Any = ASKED, kind: str = "generate", run: str = "u1", **more: Any) -> Row:
    """A step; `answer` is the provider's object, or the events of a stream."""
    raw = {"raw_response": json.dumps(answer)} if kind == "generate" else {
        "raw_response": json.dumps([{"type": "finish", "finishReason": {"unified": "stop"}}]),
        "raw_chunks": json.dumps(answer)}
    return {"id": f"s{number}", "run_id": run, "step_number": number, "type": kind, "model_id": "m",
            "provider": "openai.chat", "started_at": f"2026-01-01T00:00:0{number}.000Z", "duration_ms": 250,
            "input": "{}", "output": "{}", "usage": None, "error": None, "raw_request": json.dumps(asked),
            "raw_chunks": None, **raw, **more}


def generations(*steps: Row) -> str:
    runs = [{"id": run, "started_at": "2026-01-01T00:00:00Z"} for run in dict.fromkeys(one["run_id"] for one in steps)]
    return json.dumps({"runs": runs, "steps": list(steps)}, indent=2)


def chat(said: str | None, word: str, *calls: Row) -> Row:
    return {"object": "chat.completion", "choices": [{"index": 0, "finish_reason": word, "message": {
        "role": "assistant", "content": said, **({"tool_calls": [*calls]} if calls else {})}}]}


def chunks(*deltas: Row, word: str | None = None) -> list[Row]:
    held = [{"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    return held if word is None else [*held, {"choices": [{"index": 0, "delta": {}, "finish_reason": word}]}]


CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"path": "a.'}}


@pytest.mark.parametrize(("answer", "asked", "api"), [
    (chat("Half", "length"), ASKED, "openai_chat"),
    ({"object": "response", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": [
        {"type": "message", "content": [{"type": "output_text", "text": "Half"}]}]},
     {"model": "m", "input": [{"role": "user", "content": [{"type": "input_text", "text": "go"}]}],
      "max_output_tokens": 30}, "openai_responses"),
    ({"type": "message", "role": "assistant", "content": [text("Half")], "stop_reason": "max_tokens"},
     {"model": "m", "max_tokens": 30, "messages": [{"role": "user", "content": [{"type": "text", "text": "go"}]}]},
     "anthropic_messages"),
    ({"candidates": [{"content": {"parts": [{"text": "Half"}]}, "finishReason": "MAX_TOKENS"}]},
     {"contents": [{"role": "user", "parts": [{"text": "go"}]}], "generationConfig": {"maxOutputTokens": 30}},
     "gemini_generate"),
])
def test_the_providers_own_object_is_read(answer, asked, api, tmp_path):
    seen = show(generations(step(1, answer, asked)), tmp_path, name="generations.json")
    (facts,) = seen.responses
    assert (words(seen), facts.exchange.api, facts.exchange.response.text) == (["TRUNCATED"], api, "Half")
    assert (facts.exchange.request.max_tokens, facts.exchange.duration_ms) == (30, 250)
    assert json.loads(facts.exchange.body) == answer


def test_a_stream_is_the_providers_events_and_not_those_of_the_sdk(tmp_path):
    """A router that says that the calls are complete, over one that it cut."""
    call = {"index": 0, **CALL}
    events = chunks({"content": "I look."}, {"tool_calls": [call]}, word="tool_calls")
    seen = show(generations(step(1, events, kind="stream")), tmp_path)
    assert (words(seen), stops(seen)) == (["CALL HELD"], ["max_tokens"])
    (held,) = seen.responses[0].exchange.response.tool_calls
    assert held.arguments == '{"path": "a.'
    assert b"finishReason" not in seen.responses[0].exchange.body


def test_a_stream_that_was_given_up_is_interrupted(tmp_path):
    made = step(1, chunks({"content": "Half an ans"}), kind="stream", error="Request aborted")
    seen = show(generations(made), tmp_path)
    assert (words(seen), stops(seen)) == (["INTERRUPTED"], ["interrupted"])
    assert "Request aborted" in seen.turns[0].verdict.sentence


def test_runs_that_begin_with_the_same_request_are_turns_of_their_own(tmp_path):
    whole = {**CALL, "function": {"name": "look", "arguments": '{"path": "a.md"}'}}
    first = chat("I look.", "tool_calls", whole)
    more = {**ASKED, "messages": [*ASKED["messages"], first["choices"][0]["message"],
                                  {"role": "tool", "tool_call_id": "c1", "content": "none"}]}
    made = [step(1, first), step(2, first, run="u2"), step(3, chat("Done.", "stop"), more),
            step(4, chat("Done too.", "stop"), more, run="u2")]
    seen = show(generations(*made), tmp_path)
    assert [[*turn.responses] for turn in seen.turns] == [[0, 2], [1, 3]]
    assert words(seen) == ["COMPLETE", "COMPLETE"]
    assert [facts.exchange.session for facts in seen.responses] == ["u1", "u2", "u1", "u2"]


def test_a_cut_answer_in_one_run_is_not_asked_for_again_by_another(tmp_path):
    asked = {**ASKED, "max_tokens": 60}
    seen = show(generations(step(1, chat("Half", "length")), step(2, chat("All.", "stop"), asked, run="u2")), tmp_path)
    assert words(seen) == ["TRUNCATED", "COMPLETE"]


@pytest.mark.parametrize(("more", "why"), [
    ({"raw_response": None, "error": "Cannot connect to API: connect ECONNREFUSED"},
     "failed before any answer: Cannot connect to API: connect ECONNREFUSED"),
    ({"raw_response": None}, "no response in it"),
    ({"raw_response": '{"choices": ['}, "no response in it"),
])
def test_a_step_without_an_answer_is_skipped_with_its_reason(more, why, tmp_path):
    seen = show(generations(step(1, chat("Done.", "stop")), step(2, None, **more)), tmp_path)
    assert words(seen) == ["COMPLETE"]
    assert [skip.why for skip in seen.inputs[0].skipped] == [why]


def test_an_answer_whose_request_was_not_stored_is_read(tmp_path):
    event = {**chat(None, "length"), "choices": [{"index": 0, "delta": {"content": "Ha"}, "finish_reason": "length"}]}
    for more in (step(1, chat("Ha", "length")), step(1, [event], kind="stream", raw_response=None)):
        seen = show(generations({**more, "raw_request": None}), tmp_path)
        assert (words(seen), seen.responses[0].exchange.response.text) == (["TRUNCATED"], "Ha")


def test_a_cut_file_gives_the_steps_before(tmp_path):
    whole = generations(step(1, chat("Done.", "stop")), step(2, chat("Two.", "stop"), run="u2"))
    path = tmp_path / "generations.json"
    path.write_text(whole[: whole.rindex("raw_request")])
    (given,) = open_paths([str(path)]).inputs
    assert (given.format, given.responses) == ("ai-devtools", 1)


@pytest.mark.parametrize("runs", [[], [{"id": "u", "started_at": "2026-01-01T00:00:00Z"}]])
def test_a_file_without_a_step_says_so(runs, tmp_path):
    path = tmp_path / "generations.json"
    path.write_text(json.dumps({"runs": runs, "steps": []}))
    (given,) = open_paths([str(path)]).inputs
    assert given.error is not None
    assert given.responses == 0


def test_many_runs_before_the_first_step(tmp_path):
    """They fill the part of the file by which it is recognised."""
    made = json.loads(generations(step(1, chat("Done.", "stop"))))
    made["runs"] = [{"id": f"u{number}", "started_at": "2026-01-01T00:00:00.000Z"} for number in range(2_000)]
    seen = show(json.dumps(made), tmp_path)
    assert (seen.inputs[0].format, words(seen)) == ("ai-devtools", ["COMPLETE"])


@pytest.mark.parametrize("name", ["run_id", "step_number", "model_id"])
def test_steps_of_another_program_are_not_taken_for_these(name):
    made = step(1, chat("Done.", "stop"))
    whole = json.dumps({"runs": [{"id": "u", "started_at": "x"}], "steps": [made]}).encode()
    other = json.dumps({"runs": [{"id": "u", "started_at": "x"}], "steps": [
        {key: value for key, value in made.items() if key != name}]}).encode()
    assert choose(whole, "generations.json") == "ai-devtools" != choose(other, "generations.json")


@pytest.mark.parametrize("name", ["id", "started_at"])
def test_runs_of_another_program_are_not_taken_for_these(name):
    run = {"id": "u", "started_at": "2026-01-01T00:00:00.000Z"}
    whole, other = ({"runs": [each] * 3_000, "steps": []} for each in (run, {**run, name: None}))
    del other["runs"][0][name]
    assert choose(json.dumps(whole).encode(), "x.json") == "ai-devtools" != choose(json.dumps(other).encode(), "x.json")


def reported(number: int, said: Row | None, run: str = "u1", **more: Any) -> Row:
    """A step that the telemetry of AI SDK 7 reported, with the SDK's output in place of the provider's."""
    asked = {"prompt": [{"role": "system", "content": "Be brief."},
                        {"role": "user", "content": [{"type": "text", "text": "go"}]}], "maxOutputTokens": 30}
    used = json.dumps({"inputTokens": 3, "outputTokens": 7})
    return {**step(number, {}, run=run), "raw_request": None, "raw_response": None, "input": json.dumps(asked),
            "output": said and json.dumps(said), "usage": used, **more}


def output(word: str, *content: Row) -> Row:
    return {"content": [*content], "finishReason": word, "response": {"id": "r1", "modelId": "m-1"}}


def test_steps_that_the_telemetry_reported_have_the_words_of_the_sdk(tmp_path):
    cut = {"type": "tool-call", "toolCallId": "c1", "toolName": "look", "input": '{"path": "a.', "invalid": True}
    refused = {"type": "tool-error", "toolCallId": "c1", "toolName": "look",
               "error": "AI_InvalidToolInputError: Invalid input for tool look"}
    again = {**cut, "toolCallId": "c2", "input": {"path": "a.md"}}
    found = {"type": "tool-result", "toolCallId": "c2", "toolName": "look", "output": "seen"}
    seen = show(generations(reported(1, output("tool-calls", text("I look."), cut, refused)),
                            reported(2, output("tool-calls", again, found)),
                            reported(3, output("stop", text("Done."))),
                            reported(1, output("length", text("Half")), run="u2")), tmp_path, name="generations.json")
    assert stops(seen) == ["max_tokens", "tool_call", "end_turn", "max_tokens"]
    assert [turn.run.record.user_text for turn in seen.turns] == ["go", "go"]
    assert words(seen) == ["CALL REPAIRED", "TRUNCATED"]
    first = seen.responses[0].exchange
    assert (first.recorder, first.response.model, first.request.max_tokens) == ("ai-devtools", "m-1", 30)
    assert first.response.usage[:2] == (3, 7)
    assert first.response.tool_calls[0].arguments == '{"path": "a.'


@pytest.mark.parametrize(("error", "word"), [("no answer came", ["ERROR"]), (None, [])])
def test_a_reported_step_without_output_failed_or_has_no_answer_yet(tmp_path, error, word):
    seen = show(generations(reported(1, None, error=error)), tmp_path, name="generations.json")
    assert words(seen) == word
    assert [each.why for each in seen.inputs[0].skipped] == ([] if word else ["no answer in it"])


def test_the_beginning_of_an_answer_of_claude_is_no_output(tmp_path):
    """AI SDK 7 keeps it as a part of the answer, so that an empty answer was COMPLETE."""
    begun = {"type": "custom", "kind": "anthropic.message_start", "providerMetadata": {"anthropic": {"id": "m1"}}}
    for content, word in ([begun], "EMPTY ANSWER"), ([begun, text("Done.")], "COMPLETE"):
        usage = json.dumps({"inputTokens": 3, "outputTokens": 5 if len(content) > 1 else 0})
        seen = show(generations(reported(1, output("stop", *content), usage=usage)), tmp_path, name="generations.json")
        assert words(seen) == [word]


def test_a_file_with_steps_of_both_kinds_gives_each(tmp_path):
    """A project that moved to AI SDK 7: the newer steps were skipped as pairs without an answer."""
    steps = [step(1, chat("Half", "length")), reported(1, output("length", text("Cut")), run="u2"),
             step(2, chat("Done.", "stop"), run="u3"), reported(1, None, run="u4"),
             reported(1, output("stop", text("So.")), run="u5")]
    seen = show(generations(*steps), tmp_path, name="generations.json")
    assert sorted((facts.exchange.entry, facts.exchange.response.text) for facts in seen.responses) == [
        (0, "Half"), (1, "Cut"), (2, "Done."), (4, "So.")]
    assert sorted(words(seen)) == ["COMPLETE", "COMPLETE", "TRUNCATED", "TRUNCATED"]
    assert [(each.entry, each.why) for each in seen.inputs[0].skipped] == [(3, "no answer in it")]
    cut = generations(*steps)
    path = tmp_path / "cut.json"
    path.write_text(cut[: cut.rindex("raw_request")])
    (given,) = open_paths([str(path)]).inputs
    assert given.responses == 3
