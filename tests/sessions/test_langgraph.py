"""Checkpoints of LangGraph: the last one of a thread, the provider's own words, and MessagePack of any kind."""

from __future__ import annotations

import json
import sqlite3
import struct
from contextlib import closing

import pytest

from inspector.sessions.importers.langgraph import Extension, unpack
from inspector.sessions.importers.recognition import choose
from loop_core.values import Usage
from tests.scenes.rows import each_row
from tests.scenes.transcripts import show, stops, view_file, words

TABLES = """CREATE TABLE checkpoints (thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, parent_checkpoint_id TEXT,
  type TEXT, checkpoint BLOB, metadata BLOB);
CREATE TABLE writes (thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, task_id TEXT, task_path TEXT, idx INTEGER,
  channel TEXT, type TEXT, value BLOB);"""


class Instance(dict):
    """A value of a class, which a checkpoint holds as an extension."""


def pack(value):
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        return b"\xd3" + struct.pack(">q", value)
    if isinstance(value, str):
        return b"\xdb" + struct.pack(">I", len(value.encode())) + value.encode()
    if isinstance(value, Instance):
        inner = pack(["langchain_core.messages", "Message", dict(value), "model_validate_json"])
        return b"\xc9" + struct.pack(">I", len(inner)) + b"\x05" + inner
    if isinstance(value, dict):
        held = b"".join(pack(name) + pack(each) for name, each in value.items())
        return b"\xdf" + struct.pack(">I", len(value)) + held
    return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(pack, value))


def message(kind, content, **more):
    return Instance({"type": kind, "content": content, "additional_kwargs": {}, "response_metadata": {}, **more})


def ai(content, provider="openai", calls=(), **metadata):
    return message("ai", content, id="run-1", response_metadata={"model_provider": provider, **metadata},
                   tool_calls=list(calls), invalid_tool_calls=[],
                   usage_metadata={"input_tokens": 3, "output_tokens": 5, "total_tokens": 8})


def checkpoint(*messages):
    return pack({"v": 4, "channel_values": {"messages": list(messages), "other": Instance({"a": 1})}})


GO = message("human", "go")
CALL = {"name": "write_file", "args": {"path": "a.md"}, "id": "c1", "type": "tool_call"}
RAN = message("tool", "61 bytes", tool_call_id="c1", name="write_file", status="success")


def base(tmp_path, *rows, tables=TABLES):
    """A database of checkpoints, each with its thread, its graph within it, its number, its type and its bytes."""
    path = tmp_path / "checkpoints.db"
    with closing(sqlite3.connect(path)) as made, made:
        made.executescript(tables)
        made.executemany("INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, type, checkpoint) "
                         "VALUES (?, ?, ?, ?, ?)", rows)
    return path


def read(tmp_path, *messages):
    return view_file(base(tmp_path, ("t1", "", "1", "msgpack", checkpoint(*messages))))


def response(seen, index=0):
    return seen.responses[index].exchange.response


def notices(seen):
    return "\n".join(seen.inputs[0].notices)


def test_the_tables_of_the_saver_are_recognised(tmp_path):
    path = base(tmp_path)
    assert choose(path.read_bytes(), str(path)) == "langgraph"


def test_tables_of_other_columns_are_not_langgraphs(tmp_path):
    path = base(tmp_path, tables=TABLES.replace("channel TEXT", "place TEXT"))
    assert choose(path.read_bytes(), str(path)) is None


@each_row(("provider", "metadata", "api", "raw", "stop"), [
    ("openai", {"finish_reason": "length"}, "openai_chat", "length", "max_tokens"),
    ("openai", {"object": "response", "status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
     "openai_responses", "incomplete:content_filter", "safety_blocked"),
    ("anthropic", {"stop_reason": "max_tokens"}, "anthropic_messages", "max_tokens", "max_tokens"),
    ("google_genai", {"finish_reason": "SAFETY"}, "gemini_generate", "SAFETY", "safety_blocked"),
    ("other", {}, "openai_chat", None, "unknown"),
])
def test_the_word_of_an_answer_is_the_providers(tmp_path, provider, metadata, api, raw, stop):
    found = response(seen := read(tmp_path, GO, ai("hi", provider, **metadata)))
    assert (found.api, found.stop_reason.raw, stops(seen)) == (api, raw, [stop])
    assert found.usage == Usage(3, 5)


def test_the_place_of_the_word_is_that_in_the_message(tmp_path):
    found = response(read(tmp_path, GO, ai("hi", finish_reason="length")))
    assert found.stop_reason.evidence[0].at.pointer == "/response_metadata/finish_reason"


def test_a_cut_call_that_langchain_handed_to_the_tool_ran(tmp_path):
    seen = read(tmp_path, GO, ai("", "anthropic", [CALL], stop_reason="max_tokens"), RAN)
    assert words(seen) == ["CUT CALL RUN"]


def test_a_call_that_langchain_could_not_parse_is_held_as_it_came(tmp_path):
    lost = {"name": "write_file", "args": '{"path": "a', "id": "c1", "error": "cut", "type": "invalid_tool_call"}
    said = ai("", finish_reason="tool_calls")
    said["invalid_tool_calls"] = [lost]
    seen = read(tmp_path, GO, said)
    assert words(seen) == ["CALL HELD"]
    assert response(seen).tool_calls[0].arguments == '{"path": "a'


def test_the_result_of_a_tool_that_failed_is_an_error(tmp_path):
    for status, error in (("error", True), ("success", False)):
        folder = tmp_path / status
        folder.mkdir()
        seen = read(folder, GO, ai("", calls=[CALL], finish_reason="tool_calls"), Instance({**RAN, "status": status}))
        assert [answer.result.is_error for answer in seen.inputs[0].answers] == [error]


def test_what_langgraph_says_where_its_steps_are_used_up_is_no_answer(tmp_path):
    own = message("ai", "Sorry, need more steps to process this request.")
    seen = read(tmp_path, GO, ai("", calls=[CALL], finish_reason="tool_calls"), RAN, own)
    assert (len(seen.responses), words(seen)) == (1, ["CANCELLED"])
    assert "need more steps" in str(response(seen).findings)


@pytest.mark.parametrize("kind", ["system", "remove"])
def test_messages_that_hold_no_part_of_an_exchange_are_counted(tmp_path, kind):
    seen = read(tmp_path, message(kind, ""), GO, ai("hi", finish_reason="stop"))
    assert words(seen) == ["COMPLETE"]
    assert "known records that hold no exchange" in notices(seen)
    assert "unknown type" not in notices(seen)


def test_the_last_checkpoint_of_each_thread_is_read_and_graphs_within_are_apart(tmp_path):
    first, last = checkpoint(GO), checkpoint(GO, ai("hi", finish_reason="stop"))
    seen = view_file(base(tmp_path, ("t1", "", "1-a", "msgpack", first), ("t2", "", "1-b", "msgpack", last),
                       ("t1", "", "2-a", "msgpack", last), ("t1", "sub:1", "2-b", "msgpack", last)))
    assert [each.exchange.session for each in seen.responses] == ["t2", "t1", "t1 sub:1"]


def test_a_member_of_a_message_names_no_other_thread(tmp_path):
    rows = [(name, "", f"1-{name}", "msgpack", checkpoint(GO, Instance({**ai("hi"), "thread": "a"})))
            for name in "ab"]
    assert {each.session for each in view_file(base(tmp_path, *rows)).replay.case.recording.exchanges} == {"a", "b"}


def test_checkpoints_that_cannot_be_read_hide_nothing_else(tmp_path):
    good = checkpoint(GO, ai("hi", finish_reason="stop"))
    deep, nested = b"\x91" * 5000 + b"\xc0", pack([])
    chain = b"\xc0"
    for _ in range(3000):
        chain = b"\xc9" + struct.pack(">I", len(chain)) + b"\x05" + chain
    for _ in range(60):
        nested = b"\x93\x01\x02\xc9" + struct.pack(">I", len(nested)) + b"\x05" + nested
    seen = view_file(base(tmp_path, ("a", "", "1", "json", "{}"), ("b", "", "1", "msgpack", good[:40]),
                          ("c", "", "1", "msgpack", deep), ("d", "", "1", "msgpack", nested),
                          ("f", "", "1", "msgpack", pack({"channel_values": 1})), ("g", "", "1", "msgpack", chain),
                          ("e", "", "1", "msgpack", good)))
    assert words(seen) == ["COMPLETE"]
    assert ("last checkpoints of a thread that are of another type than msgpack and json, and were not read: 1"
            in notices(seen))
    assert "last checkpoints of a thread that are damaged, and were not read: 4" in notices(seen)


def test_a_snapshot_of_a_channel_that_stores_its_changes_is_read(tmp_path):
    """langgraph's `DeltaChannel` (`serde/types.py`): a snapshot is extension 7 around the whole value."""
    value = pack([GO, ai("hi", finish_reason="stop")])
    snapshot = b"\xc9" + struct.pack(">I", len(value)) + b"\x07" + value
    held = b"\x82" + pack("v") + pack(4) + pack("channel_values") + b"\x81" + pack("messages") + snapshot
    seen = view_file(base(tmp_path, ("t1", "", "1", "msgpack", held)))
    assert (words(seen), response(seen).text) == (["COMPLETE"], "hi")


def test_a_checkpoint_that_holds_only_changes_of_the_messages_is_told(tmp_path):
    """Between two snapshots the channel has a version and no value: its messages are in the writes."""
    held = pack({"v": 4, "channel_values": {"other": 1}, "channel_versions": {"messages": "3", "other": "2"}})
    nothing = pack({"v": 4, "channel_values": {"other": 1}, "channel_versions": {"other": "2"}})
    good = checkpoint(GO, ai("hi", finish_reason="stop"))
    seen = view_file(base(tmp_path, ("a", "", "1", "msgpack", held), ("b", "", "1", "msgpack", good),
                       ("c", "", "1", "msgpack", nothing)))
    assert words(seen) == ["COMPLETE"]
    assert ("last checkpoints of a thread that hold no messages beside their version, as a channel that stores "
            "changes alone does, and were not read: 1") in notices(seen)


@pytest.mark.parametrize("other", [b"\xc7\x04\xffabcd", b"\xd4\x06\xc1", b"\xd4\x09\xc1"])  # msgpack's own time; arrays
def test_values_of_other_extensions_hide_no_message(tmp_path, other):
    good = checkpoint(GO, ai("hi", finish_reason="stop"))
    mark = pack("other") + pack(Instance({"a": 1}))
    assert mark in good
    seen = view_file(base(tmp_path, ("t", "", "1", "msgpack", good.replace(mark, pack("other") + other))))
    assert (words(seen), notices(seen)) == (["COMPLETE"], "")


def test_a_key_in_a_message_is_masked(tmp_path):
    key = "sk-proj-Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0"
    seen = view_file(base(tmp_path, (key, "", "1", "msgpack",
                                     checkpoint(GO, ai(f"it is {key}", finish_reason="stop")))))
    assert key not in str(seen.inputs) + str(response(seen)) + seen.responses[0].exchange.session


def test_a_member_of_an_unexpected_type_is_told(tmp_path):
    seen = read(tmp_path, GO, Instance({**ai("hi"), "response_metadata": 7}))
    assert "message 2: response_metadata is a number, but an object was expected" in notices(seen)


# -- MessagePack -------------------------------------------------------------------------------------------------------


@each_row(("data", "value"), [
    (b"\x07", 7), (b"\xff", -1), (b"\xc0", None), (b"\xc2", False), (b"\xc3", True),
    (b"\xca" + struct.pack(">f", 1.5), 1.5), (b"\xcb" + struct.pack(">d", 1.5), 1.5),
    (b"\xcc\xff", 255), (b"\xcd\xff\xff", 65535), (b"\xce\xff\xff\xff\xff", 2**32 - 1),
    (b"\xcf" + b"\xff" * 8, 2**64 - 1),
    (b"\xd0\xff", -1), (b"\xd1\xff\xfe", -2), (b"\xd2\xff\xff\xff\xfd", -3), (b"\xd3" + b"\xff" * 8, -1),
    (b"\xa2hi", "hi"), (b"\xd9\x02hi", "hi"), (b"\xda\x00\x02hi", "hi"), (b"\xdb\x00\x00\x00\x02hi", "hi"),
    (b"\xc4\x01x", b"x"), (b"\xc5\x00\x01x", b"x"), (b"\xc6\x00\x00\x00\x01x", b"x"),
    (b"\x92\x01\x02", [1, 2]), (b"\xdc\x00\x01\x01", [1]), (b"\xdd\x00\x00\x00\x01\x01", [1]),
    (b"\x81\xa1a\x01", {"a": 1}), (b"\xde\x00\x01\xa1a\x01", {"a": 1}), (b"\xdf\x00\x00\x00\x01\x05\x01", {"5": 1}),
    (b"\xd4\x05x", Extension(5, b"x")), (b"\xd8\x05" + b"x" * 16, Extension(5, b"x" * 16)),
    (b"\xc7\x01\x05x", Extension(5, b"x")), (b"\xc8\x00\x01\x05x", Extension(5, b"x")),
    (b"\xc9\x00\x00\x00\x01\x05x", Extension(5, b"x")), (b"\xa2\xff\xfe", "\ufffd\ufffd"),
])
def test_every_form_of_messagepack_is_read(data, value):
    assert unpack(data) == value


@each_row("data", [b"", b"\xc1", b"\xa2h", b"\xcd\x00", b"\x92\x01", b"\x81\xa1a", b"\x01\x02",
                                  b"\xdd\xff\xff\xff\xff", b"\xc9\xff\xff\xff\xff\x05", b"\x91" * 5000])
def test_what_is_cut_or_no_messagepack_is_refused(data):
    with pytest.raises(ValueError, match="MessagePack"):
        unpack(data)


def test_a_key_within_a_key_does_not_grow():
    data = b"\xa1\\"
    for _ in range(22):
        data = b"\x81" + data + b"\xc0"
    (key,) = unpack(data)
    assert len(key) <= 200


# -- Messages in JSON --------------------------------------------------------------------------------------------------


def dump(made):
    """A message as `dumps` writes it."""
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "M"], "kwargs": dict(made)}


def as_dict(made):
    """A message as `messages_to_dict` writes it."""
    return {"type": made["type"], "data": dict(made)}


FORMS = [(dump, "kwargs"), (as_dict, "data")]


@each_row(("write", "member"), FORMS)
@each_row(("word", "verdict"), [
    ("stop", "COMPLETE"), ("length", "TRUNCATED"), ("content_filter", "BLOCKED")])
def test_a_list_of_messages_has_the_providers_words(tmp_path, write, member, word, verdict):
    messages = [GO, ai("", calls=[CALL], finish_reason="tool_calls"), RAN, ai("done", finish_reason=word)]
    seen = show(json.dumps(list(map(write, messages))), tmp_path, name="history.json")
    assert (words(seen), len(seen.responses)) == ([verdict], 2)
    found = seen.responses[1].exchange.response
    assert (found.api, found.stop_reason.raw, found.usage) == ("openai_chat", word, Usage(3, 5))
    assert found.stop_reason.evidence[0].at.pointer == f"/{member}/response_metadata/finish_reason"


@pytest.mark.parametrize(("write", "member"), FORMS)
def test_a_call_that_langchain_could_not_parse_is_held_in_a_list_too(tmp_path, write, member):
    cut = {"name": "write_file", "args": '{"path": "a.md", "content": "# Rep', "id": "c1", "type": "invalid_tool_call"}
    answer = Instance({**ai("", finish_reason="length"), "invalid_tool_calls": [cut]})
    seen = show(json.dumps([write(GO), write(answer)]), tmp_path, name="history.json")
    assert words(seen) == ["CALL HELD"]
    assert seen.responses[0].exchange.response.tool_calls[0].arguments == cut["args"]


@each_row("kind", ["human", "ai", "system", "tool"])
@each_row(("write", "member"), FORMS)
def test_a_list_is_recognised_by_its_first_message(write, member, kind):
    assert choose(json.dumps([write(message(kind, "x"))]).encode(), "history.json") == "langgraph"


@pytest.mark.parametrize("other", [
    {"lc": 1, "id": ["langchain", "prompts", "P"], "kwargs": {"template": "x", "additional_kwargs": {}}},
    {"type": "human", "data": "additional_kwargs"},
    {"type": "hologram", "data": {"content": "x", "additional_kwargs": {}}},
])
def test_another_list_is_none_of_langchain(other):
    assert choose(json.dumps([other]).encode(), "history.json") != "langgraph"


def test_a_list_that_is_cut_gives_what_can_be_read(tmp_path):
    whole = json.dumps([as_dict(GO), as_dict(ai("hi", finish_reason="stop")), as_dict(GO), as_dict(ai("never"))])
    assert words(show(whole[:-40], tmp_path, name="history.json"))[0] == "COMPLETE"


@pytest.mark.parametrize(("block", "metadata", "ready"), [
    ({"type": "tool_use", "id": "c1", "partial_json": '{"path": "a.md", "content": "# Rep'}, {
        "stop_reason": "tool_use"}, False),
    ({"type": "function_call", "call_id": "c1", "id": "fc_1", "arguments": '{"path": "a.md", "content": "# Rep'}, {
        "object": "response", "status": "completed"}, False),
    ({"type": "tool_use", "id": "c1", "partial_json": '{"path": "a.md", "content": "# Rep"}'}, {
        "stop_reason": "tool_use"}, True)])
def test_a_streamed_call_is_read_as_it_came_in_its_block(tmp_path, block, metadata, ready):
    """LangChain completes the arguments of a streamed call and runs it; under a clean word only its block shows the
    cut."""
    answer = ai([{"type": "text", "text": "I write."}, {"name": "write_file", "input": {}, "index": 1, **block}],
                calls=[{**CALL, "args": {"path": "a.md", "content": "# Rep"}}], **metadata)
    result = message("tool", "61 bytes", tool_call_id="c1", name="write_file", status="success")
    seen = show(json.dumps([as_dict(GO), as_dict(answer), as_dict(result)]), tmp_path, name="history.json")
    verdict, = seen.responses[0].verdicts
    assert (verdict.admission.value == "ready", verdict.call.arguments) == (
        ready, block.get("partial_json") or block["arguments"])
    assert (words(seen) == ["CUT CALL RUN"]) is not ready


@pytest.mark.parametrize(("provider", "held"), [("openai", True), ("a server of its own", False)])
def test_a_parsed_call_in_an_answer_without_the_providers_word_is_held(tmp_path, provider, held):
    """LangChain copies the word of these providers, so none came: the stream may have ended within the call."""
    answer = ai("", provider, calls=[{**CALL, "args": {"path": "a.md"}}])
    result = message("tool", "61 bytes", tool_call_id="c1", name="write_file", status="success")
    seen = show(json.dumps([as_dict(GO), as_dict(answer), as_dict(result)]), tmp_path, name="history.json")
    assert (seen.responses[0].verdicts[0].admission.value == "held", stops(seen)[0] == "unknown") == (held, held)


# -- LangChain.js ------------------------------------------------------------------------------------------------------


def of_class(cls, **members):
    """A message as LangChain.js writes it: its class is the only sign of its type."""
    return {"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", cls],
            "kwargs": {"additional_kwargs": {}, "response_metadata": {}, **members}}


def streamed(word, *pieces, args, **more):
    """An answer that LangChain.js streamed from Claude, with the word and the arguments as received."""
    content = [{"index": 0, "type": "text", "text": "I write."},
               {"index": 1, "type": "tool_use", "id": "c1", "name": "write_file", "input": ""},
               *({"index": 1, "type": "input_json_delta", "input": piece} for piece in pieces)]
    return of_class("AIMessageChunk", content=content, additional_kwargs={"type": "message", "stop_reason": word},
                    response_metadata={"model_provider": "anthropic", "usage": {}},
                    tool_calls=[{**CALL, "args": args}], invalid_tool_calls=[], **more)


ASKED = of_class("HumanMessage", content="go")
ANSWERED = of_class("ToolMessage", content="61 bytes", tool_call_id="c1", name="write_file", status="success")


@pytest.mark.parametrize("write", [
    lambda tmp_path, *rows: show(json.dumps(rows), tmp_path, name="history.json"),
    lambda tmp_path, *rows: view_file(base(tmp_path, ("t1", "", "1", "json", json.dumps(
        {"v": 4, "channel_values": {"messages": rows}}).encode())))])
def test_a_cut_call_of_claude_that_langchain_js_repaired_and_ran(tmp_path, write):
    repaired = {"path": "a.md", "content": "# Rep"}
    seen = write(tmp_path, of_class("SystemMessage", content="be brief"), ASKED,
                 streamed("max_tokens", '{"path": "a.md", ', '"content": "# Rep', args=repaired), ANSWERED)
    assert (words(seen), response(seen).stop_reason.raw) == (["CUT CALL RUN"], "max_tokens")
    assert response(seen).tool_calls[0].arguments == '{"path": "a.md", "content": "# Rep'
    assert response(seen).stop_reason.evidence[0].at.pointer == "/kwargs/additional_kwargs/stop_reason"
    assert response(seen).text == "I write."


def test_whole_arguments_as_received_are_ready(tmp_path):
    call = streamed("tool_use", '{"path": ', '"a.md"}', args={"path": "a.md"})
    seen = show(json.dumps([ASKED, call, ANSWERED]), tmp_path, name="history.json")
    assert (seen.responses[0].verdicts[0].admission.value, response(seen).tool_calls[0].arguments) == (
        "ready", '{"path": "a.md"}')


@pytest.mark.parametrize(("more", "metadata"), [
    ({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {
        "name": "write_file", "arguments": '{"path": "a.md", "content": "# Rep'}}]}, {"finish_reason": "tool_calls"}),
    ({}, {"object": "response", "status": "completed", "output": [{
        "type": "function_call", "call_id": "c1", "arguments": '{"path": "a.md", "content": "# Rep'}]})])
def test_cut_arguments_that_langchain_js_repaired_are_held_under_a_clean_word(tmp_path, more, metadata):
    """A server may report a cut call as whole; only the arguments as received show the cut."""
    answer = of_class("AIMessage", content="", additional_kwargs=more, invalid_tool_calls=[], response_metadata={
        "model_provider": "openai", **metadata}, tool_calls=[{**CALL, "args": {"path": "a.md", "content": "# Rep"}}])
    seen = show(json.dumps([ASKED, answer, ANSWERED]), tmp_path, name="history.json")
    assert (words(seen), stops(seen)) == (["CUT CALL RUN"], ["max_tokens"])
    assert response(seen).tool_calls[0].arguments == '{"path": "a.md", "content": "# Rep'


RESPONSE = {"model_provider": "openai", "id": "resp_1", "model_name": "gpt-5", "model": "gpt-5"}
MESSAGE = {"model_provider": "anthropic", "usage": {}}
START = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude"}


@each_row(("metadata", "more", "stop", "place"), [
    (RESPONSE, {}, "interrupted", "/kwargs/response_metadata/id"),
    ({**RESPONSE, "headers": {}}, {}, "interrupted", "/kwargs/response_metadata/id"),
    (MESSAGE, START, "interrupted", "/kwargs/additional_kwargs/id"),
    ({**RESPONSE, "object": "response"}, {}, "unknown", None),  # a whole body without a status
    ({**RESPONSE, "id": "chatcmpl-1"}, {}, "unknown", None),
    (MESSAGE, {**START, "stop_reason": "tool_use"}, "tool_call", None),
    (MESSAGE, {}, "unknown", None),
])
def test_a_call_that_langchain_ran_from_a_stream_without_its_end_is_held(tmp_path, metadata, more, stop, place):
    """LangChain.js 1.4 parses what came of the arguments, runs the call, and keeps no error of the stream."""
    answer = of_class("AIMessage", content=[], additional_kwargs=more, invalid_tool_calls=[],
                      response_metadata=metadata, tool_calls=[CALL])
    end = {"model_provider": "openai", "finish_reason": "stop"}
    done = of_class("AIMessage", content="Done.", response_metadata=end)
    seen = show(json.dumps([ASKED, answer, ANSWERED, done]), tmp_path, name="history.json")
    broken = stop == "interrupted"
    assert (words(seen), stops(seen)) == (["INTERRUPTED" if broken else "COMPLETE"], [stop, "end_turn"])
    assert seen.responses[0].verdicts[0].admission.value == ("ready" if stop == "tool_call" else "held")
    assert not broken or response(seen).stop_reason.evidence[-1].at.pointer == place


def test_a_piece_of_another_block_is_no_part_of_the_arguments(tmp_path):
    call = streamed("tool_use", args={"path": "a.md"})
    call["kwargs"]["content"] += [
        {"index": 2, "type": "input_json_delta", "input": "{"}, {"index": [], "type": "input_json_delta", "input": "{"},
        {"index": [], "type": "tool_use", "id": "c1"}, {"type": "input_json_delta", "index": 1}]
    seen = show(json.dumps([ASKED, call]), tmp_path, name="history.json")
    assert response(seen).tool_calls[0].arguments == '{"path": "a.md"}'


@each_row(("name", "other"), [
    ("HumanMessage", False), ("AIMessage", False), ("AIMessageChunk", False), ("SystemMessage", False),
    ("ToolMessage", False), ("FunctionMessage", False), ("PromptTemplate", True)])
def test_a_message_of_langchain_js_is_known_by_its_class(name, other):
    listed = json.dumps([of_class(name, content="x")]).encode()
    assert (choose(listed, "history.json") != "langgraph") is other


def test_a_run_that_langchain_js_recorded_has_the_calls_and_the_word(tmp_path):
    generation = {"text": "I write.", "generationInfo": {}, "message": streamed("max_tokens", '{"path": "', args={})}
    run = {"id": "r", "name": "ChatAnthropic", "run_type": "llm", "trace_id": "t", "start_time": 1, "extra": {
        "metadata": {"ls_provider": "anthropic"}}, "inputs": {"messages": [[ASKED]]},
        "outputs": {"generations": [[generation]]}}
    seen = show(json.dumps([run]), tmp_path, name="runs.json")
    assert (words(seen), response(seen).tool_calls[0].arguments) == (["CALL HELD"], '{"path": "')
    assert response(seen).stop_reason.evidence[0].at.pointer == (
        "/outputs/generations/0/0/message/kwargs/additional_kwargs/stop_reason")
    assert seen.responses[0].exchange.request.messages[-1].text == "go"
