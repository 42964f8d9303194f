"""What the next request holds of a held call that ran is quoted with its places: the call as sent, and its result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from inspector.export import form_files
from inspector.report.call_outcomes import SentBackAs, sent_back
from inspector.report.facts import View
from inspector.report.lines import calls
from inspector.report.lines.excerpts import MOST, excerpts
from inspector.report.lines.spans import text_of
from inspector.report.lines.steps import Outline
from tests.scenes import transcripts as agents
from tests.scenes.recordings import (
    ASKS,
    CUT,
    MESSAGES,
    RESPONSES,
    TOOLS,
    assistant,
    call,
    chat,
    cut_call_ran,
    exchange,
    message,
    pair_of,
    result,
    show,
    user,
)
from tests.scenes.rows import each_row

REPAIRED = CUT + '"}'


def repair_turn(arguments: str = REPAIRED, cut: str = CUT) -> list[dict[str, Any]]:
    """A cut call; the next request holds it with these arguments, and its result."""
    after = [*ASKS, assistant(None, call(arguments)), result()]
    return [pair_of(ASKS, chat(None, "length", call(cut), tokens=40), tools=TOOLS, max_tokens=40),
            pair_of(after, chat("It is written."), tools=TOOLS, max_tokens=40)]


def sent_back_rows(seen: View) -> list[tuple[SentBackAs, str, str, Any]]:
    facts = seen.responses[0]
    return [(each.kind, each.answer.name, each.pointer, json.loads(each.text))
            for each in sent_back(seen, facts, facts.verdicts[0].call)]


def test_a_call_with_repaired_arguments_and_its_result_are_found_with_their_places() -> None:
    assert sent_back_rows(show(*repair_turn())) == [
        (SentBackAs.CHANGED, "response 2", "/messages/1/tool_calls/0", call(REPAIRED)),
        (SentBackAs.RESULT, "response 2", "/messages/2", result()),
    ]


def test_a_call_that_was_sent_back_as_it_came_says_so() -> None:
    assert [kind for kind, *_ in sent_back_rows(show(*cut_call_ran()))] == [SentBackAs.SAME, SentBackAs.RESULT]


def test_arguments_that_a_format_sends_back_as_an_object_are_the_same() -> None:
    arguments = {"path": "a.md", "content": "x"}
    block = {"type": "tool_use", "id": "toolu_1", "name": "write_file", "input": arguments}
    ask = {"model": "claude-sonnet-4-5", "max_tokens": 40, "messages": [user("write it")]}
    after = {**ask, "messages": [*ask["messages"], {"role": "assistant", "content": [block]}, {  # type: ignore[misc]
        "role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "written"}]}]}
    seen = show(exchange(ask, message([block], "max_tokens", 40), url=MESSAGES),
                 exchange(after, message([{"type": "text", "text": "Done."}], "end_turn"), url=MESSAGES))
    assert [(kind, at) for kind, _, at, _ in sent_back_rows(seen)] == [
        (SentBackAs.SAME, "/messages/1/content/0"), (SentBackAs.RESULT, "/messages/2/content/0")]


def test_a_format_whose_calls_and_results_name_the_id_alike_is_told_apart() -> None:
    item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "write_file", "arguments": CUT}
    body = {"id": "resp_1", "object": "response", "status": "incomplete", "model": "m-1", "output": [item],
            "incomplete_details": {"reason": "max_output_tokens"}, "usage": {"input_tokens": 9, "output_tokens": 40}}
    ask = {"model": "m-1", "input": [user("write it")], "max_output_tokens": 40}
    back = [{**item, "arguments": REPAIRED}, {"type": "function_call_output", "call_id": "call_1", "output": "written"}]
    done = {**body, "status": "completed", "incomplete_details": None, "output": [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}]}
    seen = show(exchange(ask, body, url=RESPONSES),
                 exchange({**ask, "input": [user("write it"), *back]}, done, url=RESPONSES))
    assert [(kind, at) for kind, _, at, _ in sent_back_rows(seen)] == [
        (SentBackAs.CHANGED, "/input/1"), (SentBackAs.RESULT, "/input/2")]


def test_a_client_may_name_a_call_by_the_id_of_its_item() -> None:
    """chatlas sends the `id` of a call's item back as its `call_id`."""
    item = {"type": "function_call", "id": "fc_0a1B2c3D4e", "call_id": "call_9z8Y7x6W5v", "name": "w", "arguments": CUT}
    body = {"id": "resp_1", "object": "response", "status": "completed", "model": "m-1", "output": [item]}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is done."}]}
    ask = {"model": "m-1", "input": [user("write it")]}

    def seen(key: str) -> View:
        back = [{"type": "function_call", "call_id": key, "name": "w", "arguments": CUT},
                {"type": "function_call_output", "call_id": key, "output": "written"}]
        return show(exchange(ask, body, url=RESPONSES),
                    exchange({**ask, "input": [user("write it"), *back]}, {**body, "output": [said]}, url=RESPONSES))

    named = seen("fc_0a1B2c3D4e")
    assert [turn.responses for turn in named.turns] == [(0, 1)]
    assert "agent.ran_held_call" in {noted.finding.rule for noted in named.findings}
    assert [(kind, at) for kind, _, at, _ in sent_back_rows(named)] == [
        (SentBackAs.SAME, "/input/1"), (SentBackAs.RESULT, "/input/2")]
    assert len(seen("fc_9f8E7d6C5b").turns) == 2, "an id of neither is another call's"


def test_an_earlier_call_without_an_id_is_another_one() -> None:
    asks = [*ASKS, assistant(None, {**call("{}"), "id": None}), {**result(), "tool_call_id": None}, user("again")]
    seen = show(pair_of(asks, chat(None, "length", call(CUT), tokens=40), tools=TOOLS, max_tokens=40),
                pair_of([*asks, assistant(None, call(CUT)), result()], chat("Done."), tools=TOOLS, max_tokens=40))
    assert [kind for kind, *_ in sent_back_rows(seen)] == [SentBackAs.SAME, SentBackAs.RESULT]


def test_a_call_without_an_id_is_found_in_no_request() -> None:
    seen = show(*cut_call_ran())
    assert sent_back(seen, seen.responses[0], seen.responses[0].verdicts[0].call._replace(id=None)) == []


@each_row("form", ["md", "html", "text", "bug"])
def test_documents_quote_both(form: str) -> None:
    text = "\n".join(form_files(show(*repair_turn()), form).values()).replace("\\", "")
    said = "the call write_file as the agent sent it back, with arguments that the provider did not send"
    assert said in text
    assert "the request of response 2 /messages/1/tool_calls/0" in text
    assert "the result of write_file, which the agent sent back" in text
    assert "the request of response 2 /messages/2" in text


def test_a_long_call_is_quoted_with_its_end_where_the_repair_is() -> None:
    cut = CUT + "long " * 300
    seen = show(*repair_turn(cut + '"}', cut))
    (quoted,) = [each for each in excerpts(seen, seen.turns[0]) if each.title.startswith("the call write_file as")]
    first, left_out, last = [row.text for row in quoted.rows]
    assert first.startswith('{"id": "call_a1b2c3d4e5"')
    assert left_out.endswith(" characters left out)")
    assert last.endswith('long \\"}"}}')
    assert len(first) == len(last) == MOST // 2


def test_the_sheet_of_calls_shows_both_behind_what_the_agent_did() -> None:
    seen = show(*repair_turn())
    lines = [text_of(line).strip() for line in calls.calls(seen, Outline(seen).blocks[0], seen.responses[0]).lines]
    at = next(number for number, line in enumerate(lines) if line.startswith("sent back"))
    assert [lines[at].removeprefix("sent back").strip(), *lines[at + 1 : at + 4]] == [
        "the call write_file as the agent sent it back, with arguments that the provider did not send: "
        "the request of response 2 /messages/1/tool_calls/0", json.dumps(call(REPAIRED)),
        "the result of write_file, which the agent sent back: the request of response 2 /messages/2",
        json.dumps(result())]


def test_rows_of_an_agent_have_the_result_alone(tmp_path: Path) -> None:
    rows = agents.claude(
        agents.prompt("write it"), agents.block(agents.use(path="a"), stop="max_tokens"),
        agents.result("written"))
    seen = agents.show(rows, tmp_path)
    titles = [each.title for each in excerpts(seen, seen.turns[0])]
    assert not any("as the agent sent it back" in title for title in titles)
