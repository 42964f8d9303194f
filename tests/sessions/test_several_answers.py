"""A file with several whole answers of a provider behind one another."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inspector.sessions import open_paths
from loop_core import encode_response
from loop_core.formats import FORMATS
from loop_core.values import ChatResponse, Stop, StopReason, TextPart, Usage
from loop_core.wire import wire
from tests.scenes.rows import each_row
from tests.scenes.transcripts import show, stops

Row = dict[str, Any]


def completion(key: str, word: str = "stop") -> Row:
    return {"id": key, "object": "chat.completion", "model": "m", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": key}, "finish_reason": word}]}


def message(key: str, word: str = "end_turn") -> Row:
    return {"id": key, "type": "message", "role": "assistant", "model": "m", "stop_reason": word,
            "content": [{"type": "text", "text": key}], "usage": {"input_tokens": 1, "output_tokens": 1}}


def response(key: str, status: str = "completed") -> Row:
    part = {"type": "output_text", "text": key, "annotations": []}
    return {"id": key, "object": "response", "status": status, "model": "m", "output": [
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}]}


def events(*rows: Row) -> str:
    return "".join(f"event: {row['type']}\ndata: {json.dumps(row)}\n\n" for row in rows)


def chat_stream(key: str, word: str = "stop", calls: list[Row] | None = None) -> str:
    head = {"id": key, "object": "chat.completion.chunk", "model": "m"}
    delta: Row = {"tool_calls": calls} if calls else {"content": key}
    chunks = ({"choices": [{"index": 0, "delta": delta}]},
              {"choices": [{"index": 0, "delta": {}, "finish_reason": word}]})
    return "".join(f"data: {json.dumps({**head, **each})}\n\n" for each in chunks) + "data: [DONE]\n\n"


def message_stream(key: str, word: str = "end_turn") -> str:
    begun = {**message(key), "content": [], "stop_reason": None}
    return events({"type": "message_start", "message": begun},
                  {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                  {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": key}},
                  {"type": "content_block_stop", "index": 0},
                  {"type": "message_delta", "delta": {"stop_reason": word}, "usage": {"output_tokens": 1}},
                  {"type": "message_stop"})


def response_stream(key: str, status: str = "completed") -> str:
    begun = {**response(key, "in_progress"), "output": []}
    return events({"type": "response.created", "response": begun},
                  {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": key},
                  {"type": f"response.{status}", "response": response(key, status)})


def texts(seen: Any) -> list[str | None]:
    return [facts.exchange.response.text for facts in seen.responses]


@each_row("whole", [completion, message, response])
@each_row("form", ["{0}\n{1}\n", "{0}{1}", "[{0}, {1}]", "\ufeff{0}\n\n{1}"])
def test_whole_answers_in_one_file_are_answers_of_their_own(whole, form, tmp_path):
    seen = show(form.format(json.dumps(whole("one"), indent=2), json.dumps(whole("two"))), tmp_path, name="a.json")
    assert (texts(seen), stops(seen)) == (["one", "two"], ["end_turn", "end_turn"])
    assert len({facts.turn for facts in seen.responses}) == 2
    assert [facts.exchange.entry for facts in seen.responses] == [0, 1]


@each_row("whole", [completion, message, response])
@each_row("form", ["{0}\n{1}\n{2}", "[{0}, {1}, {2}", '{{"object": "list", "data": [{0}, {1}, {2}'])
@each_row("missing", [1, 40, None])
def test_the_whole_answers_of_a_cut_file_stay_answers_of_their_own(whole, form, missing, tmp_path):
    """They were joined into one, as the chunks of a stream are."""
    last = json.dumps(whole("three"))
    cut = last[:6] if missing is None else last[:-missing]
    written = form.format(json.dumps(whole("one"), indent=2), json.dumps(whole("two")), cut)
    seen = show(written, tmp_path, name="a.json")
    assert (texts(seen)[:2], stops(seen)) == (["one", "two"], ["end_turn", "end_turn", "interrupted"])
    assert len({facts.turn for facts in seen.responses}) == 3
    assert seen.responses[2].exchange.body == cut.strip().encode()


@each_row("whole", [completion, response])
@each_row("page", [
    '{{"object": "list", "data": [{0}, {1}], "first_id": "one", "has_more": false}}',
    '{{\n  "data": [\n{0},\n{1}], "has_more": false, "object": "list"}}',
])
def test_a_page_of_stored_answers_holds_them(whole, page, tmp_path):
    seen = show(page.format(json.dumps(whole("one")), json.dumps(whole("two"))), tmp_path, name="a.json")
    assert (texts(seen), stops(seen)) == (["one", "two"], ["end_turn", "end_turn"])


@pytest.mark.parametrize("rows", [[], [{"id": "gpt-5", "object": "model"}]])
def test_a_page_of_anything_else_is_no_recording(rows, tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"object": "list", "data": rows}))
    assert "JSON of no API and no session format" in open_paths([str(path)]).inputs[0].error


def test_a_list_of_one_answer_is_that_answer(tmp_path):
    seen = show(json.dumps([completion("one", "length")]), tmp_path, name="a.json")
    assert (texts(seen), stops(seen)) == (["one"], ["max_tokens"])


ANSWERS = (("One.", Stop.END_TURN), ("And so", Stop.MAX_TOKENS), ("Three.", Stop.END_TURN))


def bodies(api: str, stream: bool) -> list[bytes]:
    """The bodies of `ANSWERS`: whole, or streams of a word in each event."""
    def word(stop: Stop) -> str:
        return next(native for native, row in wire(api).stop_reasons.items() if row.stop is stop)

    answers = (ChatResponse(api, (TextPart(text),), StopReason(stop, word(stop)), Usage(3, 4), model="m",
                            id=f"answer-{number}") for number, (text, stop) in enumerate(ANSWERS))
    return [b"".join(encode_response(api, answer, stream=stream, chunk=4)) for answer in answers]


def ends(seen: Any) -> list[tuple[str | None, str]]:
    return list(zip(texts(seen), stops(seen), strict=True))


@each_row("form", ["lines", "list"])
@each_row("api", FORMATS)
def test_whole_answers_of_each_format_are_answers_of_their_own(api, form, tmp_path):
    """Of most formats they were one answer, which had the first text, and of some of these the last stop reason."""
    whole = bodies(api, stream=False)
    written = b"\n".join(whole) if form == "lines" else b"[" + b",".join(whole) + b"]"
    assert ends(show(written, tmp_path, name="a.json")) == list(ANSWERS)


@each_row("api", FORMATS)
def test_streams_of_each_format_behind_one_another_are_answers_of_their_own(api, tmp_path):
    """All but three formats lost what followed the first stream; the legacy Text Completions joined the texts."""
    seen = show(b"".join(bodies(api, stream=True)), tmp_path, name="a.sse")
    assert ends(seen) == list(ANSWERS)


@each_row("api", ["bedrock_converse", "ollama_chat", "ollama_generate", "gemini_generate"])
def test_a_stream_that_was_sent_twice_is_one_answer(api, tmp_path):
    stream = bodies(api, stream=True)[1]
    for written in (2 * stream, stream + b"\n\n" + stream):
        assert ends(show(written, tmp_path, name="a.sse")) == [ANSWERS[1]]


@pytest.mark.parametrize("stream", [message_stream, response_stream])
def test_an_event_behind_the_end_of_its_own_stream_is_no_answer(stream, tmp_path):
    """It was a second answer, of which the end seemed to be missing: events have come out of their order."""
    frames = stream("one").split("\n\n")[:-1]
    frames[-2:] = reversed(frames[-2:])
    assert len(show("\n\n".join([*frames, ""]), tmp_path, name="a.sse").responses) == 1


def test_a_line_that_holds_more_than_one_stream_ends(tmp_path):
    """A carriage return ends a line of server-sent events as well: the same line was read again for ever."""
    inside = "\r\rdata: ".join([*chunk_lines(chat_stream("two")), "[DONE]", *chunk_lines(chat_stream("three"))])
    assert show("\n".join([*chunk_lines(chat_stream("one")), "[DONE]", inside]), tmp_path, name="a.jsonl").responses


@pytest.mark.parametrize("named", [True, False])
def test_a_stop_word_in_each_chunk_of_an_older_stream_ends_nothing(named, tmp_path):
    """So did Gemini stream until 2025; a later chunk had the id of the first, or none."""
    chunks = [{"candidates": [{"content": {"parts": [{"text": text}], "role": "model"}, "finishReason": "STOP",
                               "index": 0}], **({"responseId": "a"} if named else {})} for text in ("One", " more.")]
    for written in (json.dumps(chunks), "\n".join(map(json.dumps, chunks))):
        assert ends(show(written, tmp_path, name="a.json")) == [("One more.", "end_turn")]


@pytest.mark.parametrize("stream", [chat_stream, message_stream, response_stream])
def test_streams_as_lines_of_events_are_answers_of_their_own(stream, tmp_path):
    lines = "\n".join(line[6:] for line in (stream("one") + stream("two")).split("\n") if line.startswith("data: "))
    seen = show(lines, tmp_path, name="a.txt")
    assert (texts(seen), stops(seen)) == (["one", "two"], ["end_turn", "end_turn"])


def chunk_lines(*streams: str) -> list[str]:
    """The chunks of streams of Chat Completions as an SDK's user writes them, without the end mark."""
    return [line[6:] for line in "".join(streams).split("\n") if line.startswith("data: {")]


@each_row("order", [(0, 1, 2, 3), (0, 2, 1, 3), (0, 2, 3, 1)])
@each_row("last", ["", '{"id": "two", "object": "chat.comp', '{"error": {"message": "overloaded"}}'])
def test_chunks_of_several_answers_in_lines_are_told_apart_by_their_ids(order, last, tmp_path):
    lines = chunk_lines(chat_stream("one"), chat_stream("two", "length"))
    seen = show("\n".join([*(lines[each] for each in order), last]), tmp_path, name="a.jsonl")
    assert texts(seen) == ["one", "two"]
    assert [facts.exchange.response.raw_stop_reason for facts in seen.responses] == ["stop", "length"]


@pytest.mark.parametrize("stream", [chat_stream, message_stream, response_stream])
def test_whole_streams_behind_one_another_are_answers_of_their_own(stream, tmp_path):
    for written in (stream("one") + stream("two"), (stream("one") + stream("two")).replace("\n", "\r\n")):
        seen = show(written, tmp_path, name="a.sse")
        assert (texts(seen), stops(seen)) == (["one", "two"], ["end_turn", "end_turn"])


@pytest.mark.parametrize(("word", "count"), [("stop", 2), (None, 1)])
def test_streams_without_end_marks_are_told_apart_by_their_ids_if_each_has_a_stop_word(word, count, tmp_path):
    """Their texts were one answer. A gateway that asks another provider for the rest sends no word of the first."""
    first, second = (chat_stream(key, end).removesuffix("data: [DONE]\n\n")
                     for key, end in (("one", word), ("two", "length")))
    seen = show(first + second, tmp_path, name="a.sse")
    assert texts(seen) == (["one", "two"] if count == 2 else ["onetwo"])
    assert stops(seen)[-1] == "max_tokens"


def test_a_cut_call_of_the_second_stream_is_not_that_of_the_first(tmp_path):
    def call_start(arguments: str) -> list[Row]:
        return [{"index": 0, "id": "c1", "type": "function", "function": {"name": "ls", "arguments": arguments}}]

    seen = show(chat_stream("one", "tool_calls", call_start('{"a": 1}'))
                + chat_stream("two", "length", call_start('{"a": ')), tmp_path, name="a.sse")
    assert [[verdict.call.arguments for verdict in facts.verdicts] for facts in seen.responses] == [
        ['{"a": 1}'], ['{"a": ']]
    assert [facts.verdicts[0].admission.value for facts in seen.responses] == ["ready", "held"]


@pytest.mark.parametrize("damaged", [0, 1, 2])
def test_a_damaged_line_among_whole_answers_costs_that_answer_alone(damaged, tmp_path):
    """All answers were one that had sent nothing."""
    lines = [json.dumps(completion(key)) for key in ("one", "two", "three")]
    lines[damaged] = lines[damaged][:-9]
    seen = show("\n".join(lines), tmp_path, name="a.jsonl")
    assert [facts.exchange.response.raw_stop_reason for facts in seen.responses] == [
        None if at == damaged else "stop" for at in range(3)]
    assert stops(seen)[damaged] == "interrupted"


@each_row("size", [12, 20, 30])
@each_row("stream", [chat_stream, message_stream, response_stream])
def test_a_damaged_first_line_of_a_stream_is_one_lost_frame(stream, size, tmp_path):
    """The whole stream was one that had sent nothing: its first line made it a body of one value."""
    first, *rest = chunk_lines(stream("one"))
    seen = show("\n".join([first[:size], *rest]), tmp_path, name="a.jsonl")
    text = None if stream is chat_stream else "one"  # in chunks of Chat Completions the first line has all of it
    assert (texts(seen), stops(seen)) == ([text], ["end_turn"])
    assert "GAP" in seen.turns[0].verdict.word


@each_row("written", [
    json.dumps(completion("one")) + "\n" + json.dumps({**completion("two"), "object": "chat.completion.chunk"}),
    chat_stream("one") + chat_stream("one"), chat_stream("one") + "data: [DONE]\n\n",
    message_stream("one").replace("message_stop", "message_end") + message_stream("two"),
    chat_stream("one") + 'data: {"id": "gen-9", "cost": 0.1}\n\n',
    chat_stream("one") + 'data: {"id": "req-9", "error": {"message": "overloaded"}}\n\n',
    "\n".join(line.replace("one", f"chunk-{number}") for number, line in enumerate(chunk_lines(chat_stream("one")))),
    "\n".join([*chunk_lines(chat_stream("one")), '{"id": "gen-9", "choices": [], "usage": {"completion_tokens": 1}}']),
    "\n".join(chunk_lines(chat_stream("") + chat_stream("one"))),
])
def test_what_may_be_one_answer_is_not_taken_apart(written, tmp_path):
    assert len(show(written, tmp_path, name="a.json").responses) == 1


def test_an_answer_of_an_api_that_is_not_read_is_not_called_a_request(tmp_path):
    of_ai21 = {"id": "x", "prompt": {"text": "a"}, "completions": [{"data": {"text": "b"}, "finishReason": {
        "reason": "length", "length": 2}}]}
    why = str(show(json.dumps(of_ai21), tmp_path, name="a.json").inputs[0].error)
    assert "JSON of no API and no session format that is known" in why
    assert "a request without its response" in str(
        show('{"prompt": "a", "model": "m"}', tmp_path, name="b.json").inputs[0].error)


@pytest.mark.parametrize(("written", "what"), [
    ('[{"type": "human", "data": {"content": "go"}}, {"type": "ai", "data": {"content": "hi"}}]', "JSON of no API"),
    ('{"event": "a", "data": {"b": 1}}\n{"event": "c", "data": {"d": 1}}\n', "JSON lines of no known format"),
    ('data: {"b": 1}\n\n', "server-sent events of no API"),
])
def test_what_is_refused_is_named_as_the_file_has_it(written, what, tmp_path):
    assert what in str(show(written, tmp_path, name="a.txt").inputs[0].error)


@each_row("as_text", [True, False])
@each_row("api", FORMATS)
def test_whole_answers_that_a_logger_wrote_beside_their_times_are_answers_of_their_own(api, as_text, tmp_path):
    """They were one stream: of Chat Completions the texts were joined, of others nothing seemed to have come."""
    whole = bodies(api, stream=False)
    rows = [{"ts": 1, "data": body.decode() if as_text else json.loads(body)} for body in whole]
    assert ends(show("\n".join(map(json.dumps, rows)), tmp_path, name="a.jsonl")) == list(ANSWERS)


@each_row("whole", [completion, message, response])
@each_row("beside", ["start", {"model": "m", "messages": [{"role": "user", "content": "hi"}]}])
def test_a_log_of_other_things_beside_whole_answers_is_no_stream(whole, beside, tmp_path):
    rows = [{"time": 1, "level": "info", "event": each} for each in (beside, whole("one"), beside, whole("two"))]
    seen = show("\n".join(map(json.dumps, rows)), tmp_path, name="a.jsonl")
    assert "JSON lines of no known format" in str(seen.inputs[0].error)
