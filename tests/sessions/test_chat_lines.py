"""Messages of OpenAI's chat, one a line: PicoClaw, Mistral Vibe, and agents that nothing in the file names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inspector.sessions.importers import recognition
from tests.scenes.rows import each_row, share
from tests.scenes.transcripts import rules, show, stops, words

Row = dict[str, Any]
KEPT_BY = "answers have no stop reason, as {} keeps none for them"


def reply(text: str | None = None, *calls: tuple[str, str], **more: Any) -> Row:
    listed = [{"id": key, "type": "function", "function": {"name": "read", "arguments": given}} for key, given in calls]
    held = {"content": text, "tool_calls": listed}
    return {"role": "assistant", **{name: value for name, value in held.items() if value}, **more}


def prompt(text: str, **more: Any) -> Row:
    return {"role": "user", "content": text, **more}


def result(text: str, key: str = "c1", **more: Any) -> Row:
    return {"role": "tool", "content": text, "tool_call_id": key, **more}


def lines(*rows: Row) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def read(tmp_path: Path, *rows: Row, name: str = "messages.jsonl"):
    return show(lines(*rows), tmp_path, name=name)


def admissions(seen, number: int = 0) -> list[str]:
    return [verdict.admission.value for verdict in seen.responses[number].verdicts]


WHOLE = ('{"path": "a.md"}',)
CHAT = (prompt("go"), reply("Look.", ("c1", *WHOLE)), result("text"), reply("Done."), prompt("more"), reply("Yes."))
VIBE = tuple({**row, "injected": False, **({} if row["role"] == "tool" else {"message_id": f"m{number}"})}
             for number, row in enumerate(CHAT))


def test_a_session_of_nanobot(tmp_path):
    about = {"_type": "metadata", "key": "cli:direct", "metadata": {}, "last_consolidated": 0}
    cut = prompt("The previous assistant response was cut off. Continue the same response from its exact endpoint.")
    failed = reply("[Assistant reply unavailable due to model error.]")
    seen = read(tmp_path, about, *CHAT, cut, reply("No."), prompt("again"), failed, prompt("once more"), reply("Yes."),
                prompt("The subagent is done.", injected_event="subagent_result"), reply("Fine.", timestamp="12:00"),
                {"_type": "provider_state", "state": {}})
    assert seen.inputs[0].format == "chat-lines"
    assert f"{KEPT_BY.format('nanobot')}" in seen.inputs[0].notices[0]
    assert seen.inputs[0].about.id == "cli:direct"
    assert stops(seen) == ["tool_call", "end_turn", "max_tokens", "end_turn", "error", "unknown", "unknown"]
    assert words(seen) == ["END INFERRED", "END INFERRED", "ERROR", "END NOT RECORDED", "END NOT RECORDED"]
    assert seen.responses[-1].exchange.started == "12:00"
    assert seen.inputs[0].notices[-1].endswith("known records that hold no exchange: metadata (1), provider_state (1)")


def test_what_nanobot_writes_for_an_empty_answer_is_not_the_models_text(tmp_path):
    about = {"_type": "metadata", "key": "cli:direct", "metadata": {}}
    silent = "I completed the tool steps but couldn't produce a final answer. Please try again or narrow the task."
    seen = read(tmp_path, about, *CHAT, prompt("again"), reply(silent, latency_ms=14068))
    assert words(seen)[-1] == "EMPTY ANSWER"
    assert not seen.responses[-1].exchange.response.parts
    seen = read(tmp_path, about, *CHAT, prompt("again"), reply(f"{silent} The list has 42 rows."))
    assert seen.responses[-1].exchange.response.text.endswith("42 rows.")  # it is in the model's text


def test_a_call_that_nanobot_could_not_parse_did_not_run(tmp_path):
    """nanobot 0.3 marks no result as an error, and says in its text that the tool did not get the arguments."""
    about = {"_type": "metadata", "key": "cli:direct", "metadata": {}}
    refused = result("Error: Tool 'write' parameters must be a JSON object, got str. Use named parameters like x=1.")
    rows = prompt("go"), reply("Look.", ("c1", '{"path": "a')), refused, reply("", ("c1", *WHOLE)), result("text")
    seen = read(tmp_path, about, *rows, reply("Done."), prompt("more"))
    assert words(seen) == ["END INFERRED"]  # it was CUT CALL RUN
    assert seen.responses[0].exchange.refusals == {"c1": "the agent refused its arguments: it did not run"}


@pytest.mark.parametrize(("rows", "agent"), [
    (CHAT, "the agent"), (VIBE, "Mistral Vibe"),
    (tuple({**row, "created_at": f"2026-06-01T10:00:0{number}Z"} for number, row in enumerate(CHAT)), "PicoClaw"),
])
def test_answers_calls_and_results(tmp_path, rows, agent):
    seen = read(tmp_path, *rows)
    assert (seen.inputs[0].format, seen.inputs[0].responses) == ("chat-lines", 3)
    assert f"3 of 3 {KEPT_BY.format(agent)}" in seen.inputs[0].notices[0]
    assert stops(seen) == ["tool_call", "end_turn", "unknown"]
    assert words(seen) == ["END INFERRED", "END NOT RECORDED"]
    first = seen.responses[0].exchange
    (call,) = first.response.tool_calls
    assert (call.id, call.name, call.arguments, first.response.text) == ("c1", "read", WHOLE[0], "Look.")
    assert first.body[call.at.start : call.at.end] == json.dumps(rows[1]).encode()
    assert admissions(seen) == ["ready"]


def test_texts_that_stand_in_a_list_without_blocks_are_read(tmp_path):
    seen = read(tmp_path, *VIBE, {**prompt(""), "content": ["go", "on"]}, {**reply("x"), "content": ["Look", "here."]})
    exchange = seen.responses[-1].exchange
    assert exchange.request.messages[0].text == "go\non"
    assert exchange.response.text == "Look\nhere."


def test_a_system_message_and_reasoning(tmp_path):
    system = {"role": "system", "content": "Be brief."}
    seen = read(tmp_path, system, prompt("go"), reply("Look.", ("c1", *WHOLE), reasoning_content="hm"), result("text"))
    assert (seen.inputs[0].format, seen.responses[0].exchange.response.reasoning_content) == ("chat-lines", "hm")
    assert any("records that hold no exchange: system (1)" in notice for notice in seen.inputs[0].notices)


@each_row(("block", "thought"), [
    ({"type": "think", "think": "hm"}, "hm"), ({"type": "thinking", "thinking": "hm", "signature": "s"}, "hm"),
    ({"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, "hm"),
    ({"type": "reasoning", "text": "hm"}, "hm"), ({"type": "redacted_thinking", "data": "e"}, None),
])
def test_reasoning_among_the_blocks_of_a_message_is_no_text(tmp_path, block, thought):
    row = {"role": "assistant", "content": [block, {"type": "text", "text": "Done."}], "injected": False}
    response = read(tmp_path, prompt("go", injected=False), row).responses[0].exchange.response
    assert (response.text, response.reasoning_content or None) == ("Done.", thought)


def test_a_call_whose_arguments_are_cut_is_held(tmp_path):
    seen = read(tmp_path, prompt("go"), reply("Look.", ("c1", '{"path": "a')), result("not JSON"), reply("Sorry."))
    assert (admissions(seen), stops(seen)[0]) == (["held"], "max_tokens")


def test_a_call_without_a_result_is_held(tmp_path):
    seen = read(tmp_path, prompt("go"), reply(None, ("c1", *WHOLE), ("c2", *WHOLE)), result("text"))
    assert admissions(seen) == ["held", "held"]


def test_model_and_time_of_picoclaw(tmp_path):
    seen = read(tmp_path, prompt("go"), reply("Yes.", model_name="m-1", created_at="2026-06-01T10:00:00Z"))
    assert (seen.responses[0].exchange.response.model, seen.responses[0].exchange.started) == (
        "m-1", "2026-06-01T10:00:00Z")


def test_the_file_beside_a_session_of_picoclaw_names_it(tmp_path):
    rows = (prompt("go"), reply("Yes."))
    assert read(tmp_path, *rows, name="cli_1.jsonl").inputs[0].format == "zeroclaw"  # nothing tells them apart
    (tmp_path / "cli_1.meta.json").write_text('{"key": "cli:1", "summary": "", "skip": 0, "count": 2}')
    seen = read(tmp_path, *rows, name="cli_1.jsonl")
    assert (seen.inputs[0].format, KEPT_BY.format("PicoClaw") in seen.inputs[0].notices[0]) == ("chat-lines", True)


def test_a_message_over_several_lines_is_no_session(tmp_path):
    path = tmp_path / "message.json"
    path.write_text(json.dumps(prompt("hello"), indent=2) + "\n")
    assert recognition.choose(path.read_bytes(), str(path)) != "zeroclaw"
    assert recognition.choose(lines(prompt("hello")).strip().encode(), "cli_1.jsonl") == "zeroclaw"


def test_what_vibe_keeps_of_a_session(tmp_path):
    (tmp_path / "meta.json").write_text(json.dumps({
        "session_id": "s-1", "parent_session_id": "s-0", "title": "go", "config": {"active_model": "devstral-2"}}))
    seen = read(tmp_path, *VIBE)
    about = seen.inputs[0].about
    assert (about.title, about.id, about.parent) == ("go", "s-1", "s-0")
    assert seen.responses[0].exchange.response.model == "devstral-2"


def test_a_message_that_vibe_writes_in_the_users_name_begins_no_turn(tmp_path):
    extra = prompt("<skill>read</skill>", injected=True, message_id="m9")
    assert len(read(tmp_path, *VIBE[:3], extra, VIBE[3]).turns) == 1
    assert len(read(tmp_path, *VIBE[:3], {**extra, "injected": False}, VIBE[3]).turns) == 2


def test_an_older_vibe_names_messages_and_does_not_mark_them(tmp_path):
    rows = [{name: held for name, held in row.items() if name != "injected"} for row in VIBE]
    rows[2]["name"] = "read"  # the name of the tool
    seen = read(tmp_path, *rows)
    assert f"3 of 3 {KEPT_BY.format('Mistral Vibe')}" in seen.inputs[0].notices[0]


def test_a_member_that_a_newer_vibe_adds_changes_nothing(tmp_path):
    seen = read(tmp_path, *({**row, "weather": "fine"} for row in VIBE))
    assert (seen.inputs[0].format, seen.inputs[0].responses) == ("chat-lines", 3)


def test_a_message_that_vibe_stored_twice_is_read_once(tmp_path):
    assert read(tmp_path, *VIBE[:2], *VIBE[1:]).inputs[0].responses == 3


NO_RESPONSE = "<user_cancellation>Tool execution interrupted - no response available</user_cancellation>"


def test_the_result_that_vibe_puts_in_for_a_missing_one_releases_no_call(tmp_path):
    seen = read(tmp_path, *VIBE[:2], result(NO_RESPONSE, name="read"), *VIBE[4:])
    assert (admissions(seen), stops(seen)[0]) == (["held"], "unknown")


@pytest.mark.parametrize("text", [
    "<user_cancellation>read</user_cancellation>",
    "<user_cancellation>Tool execution skipped by user.</user_cancellation>",
    "<user_cancellation>User cancelled the operation.</user_cancellation>",
])
def test_a_call_that_the_user_refused_in_vibe_did_not_run(tmp_path, text):
    seen = read(tmp_path, *VIBE[:2], result(text), *VIBE[3:])
    assert seen.responses[0].exchange.refusals == {"c1": "the user refused it: it did not run"}


def test_a_tool_that_failed_in_vibe(tmp_path):
    seen = read(tmp_path, *VIBE[:2], result("<tool_error>no such file</tool_error>"), *VIBE[3:])
    results = [part for message in seen.responses[1].exchange.request.messages for part in message.results]
    assert [part.is_error for part in results] == [True]


@each_row("rows", [
    ({"messages": [prompt("go"), reply("Yes.", ("c1", *WHOLE))]}, {"messages": [prompt("go"), reply("Yes.")]}),
    tuple({"id": number, **row} for number, row in enumerate(CHAT)),
    tuple({**row, "weight": 1} for row in CHAT),
    (*CHAT[:2], {**CHAT[2], "score": 1}),
    ({"message_id": "1", "parent_id": None, "text": "go", "role": "prompter"},
     {"message_id": "2", "parent_id": "1", "text": "Yes.", "role": "assistant"}),
    ({"prompt": "go", "completion": "Yes."},),
    (prompt("go"), {**reply("Look."), "tool_calls": [{"id": "c1", "function": {"name": "read", "arguments": {}}}]}),
])
def test_datasets_and_lines_of_other_programs_are_not_taken(rows):
    assert recognition.choose(lines(*rows).encode(), "rows.jsonl") != "chat-lines"


def test_a_file_that_ends_within_a_row_is_read_as_far_as_it_goes(tmp_path):
    text = lines(*VIBE).encode()
    for end in share(range(len(lines(VIBE[0])) + 10, len(text))):
        seen = show(text[:end], tmp_path, name="messages.jsonl")
        assert seen.inputs[0].format == "chat-lines", end
        assert seen.inputs[0].responses >= sum(
            row["role"] == "assistant" for row in VIBE[: text[:end].count(b"\n")])
        assert all("transcript.absent" in rules(seen, at) for at in range(len(seen.responses)))
