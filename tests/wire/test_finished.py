"""How an answer ends that only looks finished, read from the bytes of every format, and what is no such ending."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from loop_core.judge.classify import Judgement, judge
from loop_core.judge.endings import Ending
from loop_core.values import Request, Stop, Tool
from loop_core.wire import decode
from tests.scenes.rows import each_row


def chat(word: str = "stop", **message: Any) -> tuple[str, bytes]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": word}
    return "openai_chat", json.dumps({"id": "x", "object": "chat.completion", "choices": [choice]}).encode()


def responses(*items: Mapping[str, Any]) -> tuple[str, bytes]:
    body = {"id": "r", "object": "response", "status": "completed", "output": items}
    return "openai_responses", json.dumps(body).encode()


def messages(*blocks: Mapping[str, Any], word: str = "end_turn") -> tuple[str, bytes]:
    body = {"id": "m", "type": "message", "role": "assistant", "content": blocks, "stop_reason": word}
    return "anthropic_messages", json.dumps(body).encode()


def gemini(*parts: Mapping[str, Any]) -> tuple[str, bytes]:
    candidate = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    return "gemini_generate", json.dumps({"candidates": [candidate]}).encode()


def converse(*blocks: Mapping[str, Any], word: str = "end_turn") -> tuple[str, bytes]:
    body = {"output": {"message": {"role": "assistant", "content": blocks}}, "stopReason": word}
    return "bedrock_converse", json.dumps(body).encode()


def ollama(**message: Any) -> tuple[str, bytes]:
    body = {"model": "m", "message": {"role": "assistant", **message}, "done": True, "done_reason": "stop"}
    return "ollama_chat", json.dumps(body).encode()


def item(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "id": "i1", "status": "completed", **more}


def text_item(text: str, **more: Any) -> dict[str, Any]:
    return item("message", role="assistant", content=[{"type": "output_text", "text": text}], **more)


def read(answer: tuple[str, bytes], request: Request | None = None) -> Judgement:
    return judge(decode(*answer), request)


def words_at(answer: tuple[str, bytes], found: Judgement) -> bytes:
    """The bytes that the finding of an ending points at."""
    at = next(each.at for each in found.findings if each.rule.startswith("ending."))
    assert at is not None
    return answer[1][at.start : at.end]


WORDS = {"openai_chat": b'"stop"', "openai_responses": b'"completed"', "anthropic_messages": b'"end_turn"',
         "gemini_generate": b'"STOP"', "bedrock_converse": b'"end_turn"', "ollama_chat": b'"stop"'}


@each_row("answer", [
    chat(content=None), chat(content=""), chat(content=" \n"), chat(content=[]), responses(), responses(text_item("")),
    messages(), messages({"type": "text", "text": "\n\n"}), gemini(), gemini({"text": ""}), converse(),
    converse({"text": ""}), ollama(content=""),
])
def test_nothing_visible_and_no_call_under_an_end_of_turn_word_is_an_empty_answer(answer: tuple[str, bytes]) -> None:
    found = read(answer)
    assert found.ending is Ending.EMPTY_ANSWER
    assert found.ending_sure
    assert found.stop.normalized is Stop.END_TURN, "the word keeps its meaning; the ending says what came under it"
    assert words_at(answer, found) == WORDS[answer[0]]


@each_row("answer", [
    chat(content=None, reasoning_content="hm"), chat(content="", reasoning="hm"),
    responses(item("reasoning", summary=[{"type": "summary_text", "text": "hm"}])),
    messages({"type": "thinking", "thinking": "hm", "signature": "s"}), gemini({"text": "hm", "thought": True}),
    converse({"reasoningContent": {"reasoningText": {"text": "hm"}}}), ollama(content="", thinking="hm"),
])
def test_reasoning_and_nothing_visible_is_no_answer(answer: tuple[str, bytes]) -> None:
    found = read(answer)
    assert found.ending is Ending.REASONING_ONLY
    assert words_at(answer, found) == WORDS[answer[0]]


@each_row("answer", [
    chat(content="Done."), chat(content=None, refusal="No."), chat(content=None, audio={"id": "a", "data": "AA=="}),
    chat(content=None, images=[{"type": "image_url", "image_url": {"url": "data:,x"}}]),
    chat(content={"city": "Oslo"}), chat(content=[{"type": "file", "file": {"file_id": "f"}}]),
    chat(content=None, executed_tools=[{"name": "search", "output": "x"}]),
    responses(item("a_thing_of_tomorrow")), responses(item("compaction", encrypted_content="x")),
    messages({"type": "a_block_of_tomorrow"}), messages({"type": "compaction", "content": "x"}),
    messages({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
             {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}),
    gemini({"inlineData": {"mimeType": "image/png", "data": "AA=="}}), gemini({"a_part_of_tomorrow": {"x": 1}}),
    gemini({"executableCode": {"language": "PYTHON", "code": "1"}},
           {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}),
    converse({"image": {"format": "png", "source": {"bytes": "AA=="}}}), converse({"a_block_of_tomorrow": {"x": 1}}),
])
def test_whatever_a_reader_may_see_is_an_answer(answer: tuple[str, bytes]) -> None:
    assert read(answer).ending is None


@each_row("server", [
    item("code_interpreter_call", code="1", outputs=[{"type": "logs", "logs": "1"}]),
    item("file_search_call", queries=["x"], results=[{"file_id": "f", "text": "x"}]),
    item("mcp_call", name="n", arguments="{}", output="x"),
    item("image_generation_call", result="AA=="),
])
def test_a_tool_that_the_server_ran_is_visible_by_its_output(server: dict[str, Any]) -> None:
    assert read(responses(server)).ending is None
    field = next(name for name in ("outputs", "results", "output", "result") if name in server)
    for nothing in (None, type(server[field])()):
        assert read(responses({**server, field: nothing})).ending is Ending.EMPTY_ANSWER


@each_row("answer", [
    chat(content="", annotations=[{"type": "url_citation", "url_citation": {"url": "u"}}]),
    responses(item("mcp_list_tools", server_label="s", tools=[])), responses(item("additional_tools", tools=[])),
    responses(item("web_search_call", action={"type": "search", "query": "x"})),
    messages({"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}),
    messages({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
    messages({"type": "text", "text": "", "citations": [{"type": "char_location", "cited_text": "x"}]}),
    converse({"cachePoint": {"type": "default"}}),
    converse({"citationsContent": {"content": [], "citations": [{"title": "t"}]}}),
])
def test_what_only_belongs_to_other_parts_shows_nothing(answer: tuple[str, bytes]) -> None:
    assert read(answer).ending is Ending.EMPTY_ANSWER


@each_row(("answer", "word"), [
    (chat("tool_calls", content="I will look."), b'"tool_calls"'),
    (messages({"type": "text", "text": "I will look."}, word="tool_use"), b'"tool_use"'),
    (converse({"text": "I will look."}, word="tool_use"), b'"tool_use"'),
    (chat("tool_calls", content=None), b'"tool_calls"'),
])
def test_a_tool_word_without_a_call_is_named(answer: tuple[str, bytes], word: bytes) -> None:
    found = read(answer)
    assert found.ending is Ending.NO_CALL
    assert words_at(answer, found) == word


def test_an_answer_of_commentary_alone_announces_what_never_came() -> None:
    comment = text_item("I will look at it now.", phase="commentary")
    found = read(responses(comment))
    assert found.ending is Ending.COMMENTARY_ONLY
    assert words_at(responses(comment), found) == b'"completed"'
    assert read(responses(comment, comment)).ending is Ending.COMMENTARY_ONLY
    assert read(responses(comment, text_item("It is done.", phase="final_answer"))).ending is None
    assert read(responses(comment, text_item("It is done."))).ending is None, "a message without a phase is an answer"
    assert read(responses(comment, item("image_generation_call", result="AA=="))).ending is None


# -- leaked calls ----------------------------------------------------------------------------------------------------

LEAK = '<tool_call>{"name": "edit", "arguments": {}}</tool_call>'
CALL = {"id": "c1", "type": "function", "function": {"name": "edit", "arguments": "{}"}}
EDIT = Request("openai_chat", tools=(Tool("edit", {"type": "object", "properties": {}}),))


@each_row("answer", [
    chat(content=LEAK), responses(text_item(LEAK)), messages({"type": "text", "text": LEAK}), gemini({"text": LEAK}),
    converse({"text": LEAK}), ollama(content=LEAK), chat("tool_calls", content=LEAK),
])
def test_a_call_that_was_left_in_the_text_is_named_with_the_characters_that_show_it(answer: tuple[str, bytes]) -> None:
    found = read(answer)
    assert found.ending is Ending.CALL_LEAKED
    seen = next(each for each in found.findings if each.rule == "ending.call_leaked")
    assert seen.quote is not None
    assert (seen.quote.fact, seen.quote.start) == ("text", 0)
    assert LEAK[seen.quote.start : seen.quote.end].endswith("edit")


def test_reasoning_counts_only_where_nothing_visible_follows() -> None:
    found = read(chat(content="", reasoning_content=LEAK))
    assert found.ending is Ending.CALL_LEAKED
    assert next(each.quote for each in found.findings if each.quote is not None).fact == "reasoning"
    assert read(chat(content="Done.", reasoning_content=LEAK)).ending is None


def test_a_leak_counts_only_where_no_call_was_delivered_and_a_declared_tool_is_named() -> None:
    assert read(chat(content=LEAK), EDIT).ending is Ending.CALL_LEAKED
    assert read(chat(content=LEAK, tool_calls=[CALL]), EDIT).ending is None
    assert read(chat(content=LEAK), replace(EDIT, tools=())).ending is None
    assert read(chat("length", content=LEAK)).ending is None, "a cut answer does not look finished"


# -- stop strings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [messages(), converse()])
def test_a_format_whose_words_tell_leaves_no_doubt(answer: tuple[str, bytes]) -> None:
    asked = Request(answer[0], extra={"stop_sequences": ["END"], "inferenceConfig": {"stopSequences": ["END"]}})
    found = read(answer, asked)
    assert found.ending is Ending.EMPTY_ANSWER
    assert found.ending_sure


@pytest.mark.parametrize("answer", [messages(word="stop_sequence"), converse(word="stop_sequence")])
def test_silence_by_a_stop_sequence_was_asked_for(answer: tuple[str, bytes]) -> None:
    assert read(answer).ending is None


@pytest.mark.parametrize("field", ["stop_reason", "matched_stop"])
def test_a_server_that_names_the_string_says_that_it_was_hit_and_by_a_number_that_none_was(field: str) -> None:
    """vLLM and SGLang: a string, or the number of the token that ended the answer."""
    asked = Request("openai_chat", extra={"stop": ["END"]})

    def ends(value: Any) -> Judgement:
        api, body = chat(content="")
        parsed = json.loads(body)
        parsed["choices"][0][field] = value
        return read((api, json.dumps(parsed).encode()), asked)

    assert ends("END").ending is None
    assert (ends(151645).ending, ends(151645).ending_sure) == (Ending.EMPTY_ANSWER, True)
    assert (ends(None).ending, ends(None).ending_sure) == (Ending.EMPTY_ANSWER, False)
