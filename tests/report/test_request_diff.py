"""A request beside the one before: what it added to the context, what it changed, and which numbers are guesses."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inspector.config.settings import Settings
from inspector.report.facts import View
from inspector.report.lines import diff
from inspector.report.lines.request_diff import MOST, context_change, request_before, request_diff
from inspector.report.lines.spans import Tone, plain, text_of
from inspector.report.lines.steps import Outline
from inspector.report.run_answers import answer_at
from inspector.report.times_and_costs import InputTokens, estimated_tokens, input_tokens
from inspector.tui import sheets
from loop_core.values import Message, TextPart
from loop_core.values import Role as Author
from tests.report.test_inert import HOSTILE, dangerous
from tests.scenes import transcripts as agents
from tests.scenes.recordings import (
    MESSAGES,
    PARTS,
    RESPONSES,
    TOOLS,
    assistant,
    call,
    chat,
    cut_text,
    exchange,
    message,
    pair_of,
    result,
    show,
    user,
)
from tests.scenes.rows import each_row

FIRST = [user("Write the plan.")]
SECOND = [*FIRST, assistant("Here it is."), user("And the next one?")]


def diff_text(view: View, index: int = 1) -> str:
    return plain(request_diff(view, view.responses[index]).lines)


def two(second: list[dict[str, Any]], old: dict[str, Any] | None = None, new: dict[str, Any] | None = None) -> str:
    answer = chat("Here it is.", tokens=5)
    return diff_text(show(pair_of(FIRST, answer, **(old or {})), pair_of(second, chat("Done."), **(new or {}))))


def test_what_was_added_stands_with_its_size_and_its_tokens() -> None:
    found = two(SECOND)
    assert found.startswith("Request of response 2 against the request of response 1\n")
    assert "before         kept: 1 message sent again, unchanged" in found
    assert "added          2 messages · 28 characters · ~8 tokens estimated, 4 bytes a token" in found
    assert "+ assistant 5 tokens measured: the answer of response 1 · 11 characters\n│ Here it is." in found
    assert "+ user ~5 tokens · 17 characters\n│ And the next one?" in found
    assert "REWRITTEN" not in found
    assert "removed" not in found


def test_the_context_is_measured_where_the_provider_counted_it() -> None:
    first, second = chat("Here it is."), chat("Done.")
    cached = {"prompt_tokens_details": {"cached_tokens": 1_024}}
    second["usage"] = {"prompt_tokens": 1_240, "completion_tokens": 2, **cached}
    found = diff_text(show(pair_of(FIRST, first), pair_of(SECOND, second)))
    assert "context        9 → 1,240 tokens (+1,231) measured by the provider · 1,024 from the cache" in found
    del second["usage"]
    seen = show(pair_of(FIRST, first), pair_of(SECOND, second))
    assert "context        its tokens were not reported" in diff_text(seen)
    del first["usage"]
    second["usage"] = {"prompt_tokens": 12, "completion_tokens": 2}
    assert "context        12 tokens measured" in diff_text(show(pair_of(FIRST, first), pair_of(SECOND, second)))
    assert "+ assistant ~3 tokens · " in diff_text(show(pair_of(FIRST, first), pair_of(SECOND, second)))


def test_an_answer_that_was_changed_is_not_taken_for_measured() -> None:
    found = two([*FIRST, assistant("Here it was."), user("And the next one?")])
    assert "measured: the answer" not in found


def test_a_rewritten_beginning_is_said_plainly() -> None:
    view = show(pair_of(FIRST, chat("Here it is.")), pair_of(SECOND, chat("The next.")),
                 pair_of([*SECOND, assistant("The next."), user("More.")], chat("End.")))
    facts = view.responses[2]
    request = facts.exchange.request
    assert request is not None
    shorter = replace(request, messages=(request.messages[0], *request.messages[-2:]))
    changed = replace(facts, exchange=replace(facts.exchange, request=shorter))
    lines = request_diff(view, changed).lines
    found = plain(lines)
    assert "before         REWRITTEN at message 2 of 3; a provider's cache can hold" in found
    assert "removed        2 messages · 28 characters · ~8 tokens estimated" in found
    assert "− assistant ~3 tokens" in found
    assert "+ assistant " in found
    assert Tone.WARN in {span.role for line in lines for span in line if "REWRITTEN" in span.text}


def test_settings_that_changed_are_named() -> None:
    prompt = {"role": "system", "content": "Be short, please."}
    other = {"role": "system", "content": "Be long, please."}
    more = [*TOOLS, {"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}]
    view = show(pair_of([prompt, *FIRST], chat("Here it is."), max_tokens=256, temperature=0, tools=more),
                 pair_of([prompt, *SECOND], chat("Done."), max_tokens=1_024, temperature=1, seed=7,
                       tools=[{"type": "function", "function": {"name": "write_file"}}, more[1] | {"function": {
                           "name": "run", "parameters": {"type": "object"}}}]))
    found = diff_text(view)
    assert "max_tokens     256 → 1,024" in found
    assert "temperature    0 → 1" in found
    assert "seed           not set → 7" in found
    assert "tools          + run · − read_file · write_file changed" in found
    assert "system" not in found.split("added")[0]
    request = view.responses[1].exchange.request
    assert request is not None
    changed = replace(request, messages=(Message(Author.SYSTEM, (TextPart(other["content"]),)), *request.messages[1:]))
    facts = replace(view.responses[1], exchange=replace(view.responses[1].exchange, request=changed))
    found = plain(request_diff(view, facts).lines)
    assert "system         changed from character 3 on" in found
    assert "− short, please." in found
    assert "+ long, please." in found


def test_the_first_request_is_listed_whole() -> None:
    view = show(pair_of(FIRST, chat("Here it is.")))
    found = diff_text(view, 0)
    assert found.startswith("Request of response 1 no request before it was recorded\n")
    assert "before         nothing to compare with: all of it is listed" in found
    assert "+ user ~4 tokens" in found


def test_a_request_that_was_not_recorded_says_so() -> None:
    view = show(data=json.dumps(chat("ok")).encode())
    assert "the request was not recorded" in diff_text(view, 0)


def test_calls_and_results_have_their_sizes() -> None:
    second = [*FIRST, assistant(None, call()), result("ok, written")]
    view = show(pair_of(FIRST, chat(None, "tool_calls", call(), tokens=31), tools=TOOLS),
                 pair_of(second, chat("Done."), tools=TOOLS))
    found = diff_text(view)
    assert "+ assistant 31 tokens measured: the answer of response 1" in found
    assert "│ calls write_file {" in found
    assert "+ tool ~3 tokens · 11 characters\n│ result ok, written" in found


def test_a_long_message_says_where_all_of_it_is() -> None:
    long, text = "w" * 401, "all are in Wire, request"
    view = show(pair_of([user(long)], chat("ok")), pair_of([user("w" * 400)], chat("ok")))
    assert diff_text(view, 0).endswith(f"{'w' * 399}…\n│ 400 of 401 characters; {text}")
    assert text not in diff_text(view, 1).split("+ user")[1], "a message of which nothing is missing"
    told = [*FIRST, assistant("Here it is."), user(long)]
    facts = show(pair_of(FIRST, chat("Here it is.")), pair_of(told, chat("Yes.")),
                  pair_of([*told, assistant("Yes."), user("More.")], chat("End.")))
    request = facts.responses[2].exchange.request
    assert request is not None
    shorter = replace(request, messages=(*request.messages[:2], request.messages[-1]))
    changed = replace(facts.responses[2], exchange=replace(facts.responses[2].exchange, request=shorter))
    assert f"│ 400 of 401 characters; {text} of the response before" in plain(request_diff(facts, changed).lines)


def test_many_messages_are_counted() -> None:
    view = show(pair_of([user(f"say {number}") for number in range(MOST + 9)], chat("ok")))
    assert diff_text(view, 0).endswith("+ … 9 messages more")


def test_a_request_that_goes_on_by_id_adds_its_items_alone() -> None:
    def answer(key: str) -> dict[str, Any]:
        item = {"type": "message", "id": "m", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "Here.", "annotations": []}]}
        return {"id": key, "object": "response", "status": "completed", "model": "m", "output": [item],
                "usage": {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11}}

    def request(text: str, **more: Any) -> dict[str, Any]:
        return {"model": "m", "input": text, **more}

    view = show(exchange(request("hi"), answer("resp_1"), url=RESPONSES),
                 exchange(request("go on", previous_response_id="resp_1"), answer("resp_2"), url=RESPONSES))
    said = message([{"type": "text", "text": "Here."}], "end_turn")
    thread = {"type": "continue", "previous_message_id": said["id"]}
    other = show(pair_of([user("hi")], said, url=MESSAGES),
                 pair_of([user("go on")], {**said, "id": "msg_2"}, url=MESSAGES, thread=thread))
    for found in (diff_text(view), diff_text(other)):
        assert "before         kept by the provider: the request goes on from its response by id" in found
        assert "added          1 message · 5 characters" in found


def test_a_transcript_shows_its_rows_and_says_that_they_are(tmp_path: Path) -> None:
    rows = agents.claude(agents.prompt("hi"), agents.block(agents.use(file_path="a"), stop="tool_use"),
                         agents.result("ok"), agents.block(agents.text("Hello."), key="msg_02", stop="end_turn"))
    view = agents.show(rows, tmp_path)
    found = diff_text(view)
    assert "before         a transcript holds no requests: these are its rows since the answer before" in found
    assert "+ tool ~1 token · 2 characters\n│ result ok" in found
    assert "REWRITTEN" not in found


def test_a_simulated_request_is_compared_with_the_one_before_it_in_its_run() -> None:
    view = show(pair_of(FIRST, chat("Water, fire and earth. " * 20, tokens=100)),
                 settings=Settings(simulate=True, max_tokens=20))
    steps = [step for step in range(len(view.steps)) if (facts := answer_at(view, step)) and facts.step == step]
    first, second = (answer_at(view, step) for step in steps[:2])
    assert first is not None
    assert second is not None
    assert request_before(view, first) is None
    before = request_before(view, second)
    assert before is not None
    assert before.step == first.step
    assert "+ assistant 20 tokens measured: the answer of SIMULATED response" in plain(request_diff(view, second).lines)


def test_hostile_text_is_inert() -> None:
    said = "".join(HOSTILE)
    view = show(pair_of([user(said)], chat("ok"), metadata={said: said}),
                 pair_of([user(said), assistant("ok"), user(said)], chat("ok"), metadata={said: "x"}))
    assert not dangerous(diff_text(view).replace("\n", ""))


# -- tokens ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("usage", "url", "tokens"), [
    ({"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 40},
     MESSAGES, InputTokens(10, 100, 40)),
    ({"input_tokens": 10, "output_tokens": 1}, MESSAGES, InputTokens(10)),
    ({"output_tokens": 1}, MESSAGES, None),
])
def test_input_tokens_are_fresh_cached_or_written(usage: dict[str, int], url: str, tokens: InputTokens | None) -> None:
    body = {**message([{"type": "text", "text": '"cache_creation_input_tokens": 9,'}], "end_turn"), "usage": usage}
    view = show(pair_of([user("hi")], body, url=url, max_tokens=9))
    assert input_tokens(view.responses[0].exchange) == tokens


def test_cached_tokens_are_among_those_of_other_formats() -> None:
    body = chat("ok")
    body["usage"] = {"prompt_tokens": 50, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 30}}
    found = input_tokens(show(pair_of(FIRST, body)).responses[0].exchange)
    assert found == InputTokens(20, 30)
    assert found.total == 50
    body["usage"]["prompt_tokens_details"]["cached_tokens"] = 90
    assert input_tokens(show(pair_of(FIRST, body)).responses[0].exchange) is None


@each_row(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("é" * 4, 2)])
def test_an_estimate_goes_by_bytes(text: str, tokens: int) -> None:
    assert estimated_tokens(text) == tokens


def test_the_sheet_names_its_forms() -> None:
    view = show(*cut_text(*PARTS))
    assert "v [step] request  run" in plain(diff.diff(view, 1).lines)


# -- which messages were removed and added ---------------------------------------------------------------------------


def user_messages(*words: str) -> list[Message]:
    return [Message(Author.USER, (TextPart(word),)) for word in words]


@each_row(("old", "new", "kept", "behind", "removed", "added"), [
    ("abc", "abcd", 3, 0, "", "d"),
    ("abc", "abc", 3, 0, "", ""),
    ("Sabc", "Tabcd", 0, 3, "S", "Td"),  # another system prompt
    ("abcdef", "aXef", 1, 2, "bcd", "X"),  # compacted
    ("abcd", "ab", 2, 0, "cd", ""),  # an answer was taken back
    ("", "ab", 0, 0, "", "ab"),
    ("ab", "xy", 0, 0, "ab", "xy"),
])
def test_messages_that_stay_are_neither_removed_nor_added(
    old: str, new: str, kept: int, behind: int, removed: str, added: str
) -> None:
    found = context_change(user_messages(*old), user_messages(*new))
    assert (found.prefix_length, found.same_after) == (kept, behind)
    assert "".join(each.text for each in found.removed) == removed
    assert "".join(each.text for each in found.added) == added


def test_a_changed_system_prompt_lists_it_alone() -> None:
    view = show(pair_of([{"role": "system", "content": "Be short."}, *FIRST], chat("Here it is.")),
                 pair_of([{"role": "system", "content": "Be short."}, *SECOND], chat("Done.")))
    facts = view.responses[1]
    request = facts.exchange.request
    assert request is not None
    changed = replace(request, messages=(Message(Author.SYSTEM, (TextPart("Be long."),)), *request.messages[1:]))
    found = plain(request_diff(view, replace(facts, exchange=replace(facts.exchange, request=changed))).lines)
    assert "REWRITTEN at message 1 of 2; 1 message after it unchanged" in found
    assert "removed        1 message · 9 characters" in found
    assert "added          3 messages" in found


def test_a_compaction_of_many_messages_is_found_at_once() -> None:


    began = time.process_time()
    old = user_messages(*(f"word {number}" for number in range(3_000)))
    found = context_change(old, [*old[:1], *user_messages("in short"), *old[2_500:], *user_messages("more")])
    assert (found.prefix_length, found.same_after, len(found.removed), len(found.added)) == (1, 500, 2_499, 2)
    assert time.process_time() - began < 1


def test_a_step_that_sends_shows_the_request_that_it_sends() -> None:
    view = show(*cut_text(*PARTS))
    made, outline = sheets.Sheets(), Outline(view)

    def title(step: int) -> str:
        sheet = made.at(sheets.Viewpoint("diff", outline, step, "request"))
        return text_of(sheet.line(0)).partition(" against")[0].partition(" no ")[0]

    states = [step.state.value for step in view.steps[:5]]
    assert states == ["Request", "EvaluateStop", "ContinuePending", "RequestContinuation", "EvaluateStop"]
    assert [title(step) for step in range(5)] == [f"Request of response {number}" for number in (1, 1, 1, 2, 2)]
