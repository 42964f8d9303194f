"""Files, folders and standard input: what is chosen for each, and one clear line for everything that cannot be read."""

import base64
import csv
import gzip
import json
import os
import random
import struct
import time
import zlib

import pytest

from inspector.check import check_paths
from inspector.check.rules import selected_rules
from inspector.config.files import cache_folder, data_folder, state_folder
from inspector.sessions import intake, open_paths
from inspector.sessions.folders import find, folder, samples
from inspector.sessions.importers import IMPORTERS
from inspector.sessions.importers.recognition import certainty, reading_of
from inspector.sessions.open import open_each
from inspector.sessions.recording import Options, UnreadableError
from loop_core.errors import CallerError
from loop_core.values import Stop
from tests.scenes.bodies import CHAT, assistant, chat_body, chat_stream, entry, har, user
from tests.scenes.rows import each_row
from tests.scenes.shapes import SHAPES
from tests.scenes.transcripts import block, claude, pi, pi_reply, pi_user, prompt, text

CLAUDE = json.dumps(
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "stop_sequence": None,
        "content": [{"type": "text", "text": "hi"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }
)
CLAUDE_STREAM = "".join(
    f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
    for event in (
        {
            "type": "message_start",
            "message": {
                "id": "m",
                "type": "message",
                "role": "assistant",
                "content": [],
                "model": "claude",
                "stop_reason": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            },
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}},
        {"type": "message_stop"},
    )
)
GEMINI = (
    '{"candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP", "index": 0}]}'
)
RESPONSES = json.dumps(
    {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "model": "m",
        "output": [
            {
                "type": "message",
                "id": "msg",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "hi", "annotations": []}],
            }
        ],
    }
)
CONVERSE = (
    '{"output": {"message": {"role": "assistant", "content": [{"text": "hi"}]}}, "stopReason": "end_turn", '
    '"usage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}}'
)
OLLAMA = (
    '{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"h"},"done":false}\n'
    '{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"i"},"done":false}\n'
    '{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":""},"done":true,'
    '"done_reason":"stop","eval_count":2}\n'
)


def frame(kind, payload):
    """One frame of Amazon's event stream, laid out as its documentation says."""
    headers = b"".join(
        struct.pack("!B", len(name)) + name + b"\x07" + struct.pack("!H", len(value)) + value
        for name, value in (
            (b":event-type", kind),
            (b":content-type", b"application/json"),
            (b":message-type", b"event"),
        )
    )
    body = json.dumps(payload).encode()
    prelude = struct.pack("!II", 16 + len(headers) + len(body), len(headers))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + body
    return message + struct.pack("!I", zlib.crc32(message))


EVENT_STREAM = (
    frame(b"messageStart", {"role": "assistant"})
    + frame(b"contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "hi"}})
    + frame(b"contentBlockStop", {"contentBlockIndex": 0})
    + frame(b"messageStop", {"stopReason": "end_turn"})
)

BODIES = {
    "openai_chat": chat_body("hi"),
    "openai_chat stream": chat_stream("hi"),
    "anthropic_messages": CLAUDE,
    "anthropic_messages stream": CLAUDE_STREAM,
    "gemini_generate": GEMINI,
    "gemini_generate stream": f"data: {GEMINI}\r\n\r\n",
    "gemini_generate array": f"[{GEMINI}\n]",
    "openai_responses": RESPONSES,
    "bedrock_converse": CONVERSE,
    "bedrock_converse stream": EVENT_STREAM,
    "ollama_chat": OLLAMA.splitlines()[-1].replace('"content":""', '"content":"hi"'),
    "ollama_chat stream": OLLAMA,
}


# -- single bodies ----------------------------------------------------------------------------------------------------


@each_row("name", BODIES)
def test_a_single_body_is_recognised_by_its_content(load, name):
    loaded = load(BODIES[name])
    (given,), (exchange,) = loaded.inputs, loaded.exchanges
    assert (given.format, given.error) == ("body", None)
    assert (exchange.api, exchange.entry, exchange.request) == (name.split()[0], 0, None)
    assert exchange.response.text == "hi"
    assert exchange.response.stop_reason.normalized is Stop.END_TURN


@each_row("name", [name for name in BODIES if name != "ollama_chat"])
def test_a_body_that_is_cut_is_recognised_and_interrupted(load, name):
    body = BODIES[name] if isinstance(BODIES[name], bytes) else BODIES[name].encode()
    loaded = load(body[: len(body) * 3 // 4])
    assert [exchange.api for exchange in loaded.exchanges] == [name.split()[0]]
    assert loaded.exchanges[0].response.stop_reason.normalized is Stop.INTERRUPTED


def test_a_body_of_another_api_than_the_given_one_is_one_clear_line(load):
    (given,) = load(CLAUDE, "c.json", api="openai_chat").inputs
    assert given.error.endswith(
        "by its content this is anthropic_messages, not openai_chat: expected `--api anthropic_messages`, or none"
    )


def test_an_error_body_needs_the_api_to_be_given(load):
    error = '{"error": {"message": "too many", "type": "rate_limit_error"}}'
    assert "expected `--api ID`" in load(error).inputs[0].error
    (exchange,) = load(error, api="openai_chat").exchanges
    assert exchange.response.stop_reason.normalized is Stop.ERROR


def test_a_given_api_that_knows_nothing_of_the_body_is_one_clear_line(load):
    (given,) = load('{"name": "package", "version": "1.0"}', "p.json", api="openai_chat").inputs
    assert given.error.endswith("no response: it holds nothing that openai_chat knows")
    assert load(chat_body("x")[:20], "p.json", api="openai_chat").exchanges


@each_row(
    ("content", "said"),
    [
        ('{"model": "m", "messages": []}', "a request without its response"),
        ('{"messages": [{"role": "user", "content": "x"}]}', "a request without its response"),
        ('{"model": "m", "messages": [{"role": "assistant", "content": "x"}]}', "a request without its response"),
        ('{"id": "thread-1", "messages": [7, {"role": "assistant", "text": "x"}]}',
         "JSON of no API and no session format that is known (an object with id, messages): "),
        ('{"model": {}, "messages": [{"User": {"content": []}}]}',
         "JSON of no API and no session format that is known (an object with model, messages): "),
        ('[{"role": "user", "content": "x"}]', "a list of messages"),
        ('{"name": "package", "version": "1.0"}', "JSON of no API and no session format that is known"),
        ('data: {"hello": 1}\n\n', "server-sent events of no API that is known"),
    ],
)
def test_what_is_no_response_is_said_to_be_what_it_is(load, content, said):
    (given,) = load(content, "x.json").inputs
    assert said in given.error
    assert given.error.startswith(given.path)


# -- bad input --------------------------------------------------------------------------------------------------------

LONG = 50_000_000


@each_row(("encoding", "mark", "name"), [
    ("utf-16-le", b"\xff\xfe", "UTF-16"), ("utf-16-be", b"\xfe\xff", "UTF-16"),
    ("utf-32-le", b"\xff\xfe\0\0", "UTF-32"), ("utf-32-be", b"\0\0\xfe\xff", "UTF-32"),
    ("utf-16-le", b"", "UTF-16LE"), ("utf-16-be", b"", "UTF-16BE"),
    ("utf-32-le", b"", "UTF-32LE"), ("utf-32-be", b"", "UTF-32BE"),
])
@each_row("content", ['{"choices": []}', '[{"choices": []}]'])
def test_a_text_in_another_encoding_says_how_to_convert_it(tmp_path, encoding, mark, name, content):
    path = tmp_path / "a.jsonl"
    path.write_bytes(mark + content.encode(encoding))
    (given,) = open_paths([str(path)]).inputs
    assert given.error.startswith(f"{path}: {name} text: expected UTF-8; convert it with `iconv -f {name} -t UTF-8`")
    (skipped,) = open_paths([str(tmp_path)]).inputs[0].skipped
    assert skipped.why == given.error, "in a folder too"


def test_a_mark_of_utf_8_at_the_beginning_is_no_part_of_the_text(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"\xef\xbb\xbf" + chat_body("Done.").encode())
    found = open_paths([str(path)])
    assert (found.inputs[0].error, found.exchanges[0].response.text) == (None, "Done.")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty: expected a HAR"),
        (b" \n\t\n", "empty: expected a HAR"),
        (bytes(range(256)) * 40, "at byte"),
        (random.Random(7).randbytes(4096), "at byte"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 100, "binary data at byte 0"),
        ("naïve notes\n".encode("latin-1"), "invalid UTF-8 at byte 2"),
        ("hello".encode("utf-16"), "UTF-16 text: expected UTF-8"),
        (b"some notes of mine\nand more\n", "text of no session format (line 1)"),
        (b"x" * LONG, "its first line is longer than"),
        (b'{"a": "' + b"x" * LONG + b'"}', "JSON of no API"),
        (b"{" * 100_000, "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"\x1f\x8b\x08\x00rubbish", "a packed file that is damaged"),
        (b'{"log": ', "a HAR that is not valid JSON"),
        (b'{"request": {"a": 1}, "response": ', "not valid JSON"),
    ],
    ids=[
        "empty",
        "blank",
        "binary",
        "random",
        "png",
        "latin-1",
        "utf-16",
        "text",
        "long line",
        "long JSON",
        "deep",
        "deep list",
        "gzip",
        "cut HAR",
        "cut pair",
    ],
)
def test_bad_input_is_one_clear_line(load, content, said):
    began = time.process_time()
    (given,) = load(content, "bad.har" if said.startswith("a HAR") else "bad").inputs
    assert said in given.error
    assert given.responses == 0
    assert given.error.startswith(given.path)
    assert "\n" not in given.error
    assert len(given.error) < len(given.path) + 300
    assert time.process_time() - began < 5


def test_invalid_utf8_in_a_body_is_read_as_far_as_it_can_be(load):
    body = chat_body("abcdef").replace("abcdef", "ab?def").encode().replace(b"?", b"\xff")
    loaded = load(body)
    assert loaded.exchanges[0].response.text == "ab\ufffddef"
    assert f"invalid UTF-8 at byte {body.index(0xFF)}" in loaded.inputs[0].error


def test_an_unreadable_file_never_hides_the_others(tmp_path):
    good = tmp_path / "good.har"
    good.write_text(har(entry([user("hi")], chat_body("hello"))))
    missing = tmp_path / "missing.har"
    loaded = open_paths([str(missing), str(good), str(tmp_path / "also.har")])
    assert [bool(given.error) for given in loaded.inputs] == [True, False, True]
    assert "No such file" in loaded.inputs[0].error
    assert len(loaded.exchanges) == 1


@pytest.mark.parametrize("blank", ["", " "])
def test_a_path_that_could_not_be_seen_is_quoted(blank: str) -> None:
    """Such as that of a variable of the shell that is not set."""
    (given,) = open_paths([blank]).inputs
    assert given.error == f"{blank!r}: cannot be read: No such file or directory"


def test_an_unknown_profile_is_the_callers_error():
    with pytest.raises(CallerError, match="nobody"):
        open_paths([], profile="nobody")


def test_a_given_profile_overrides_and_says_so(load):
    from loop_core.wire.profiles import PROFILES

    name = next(name for name, profile in PROFILES.items() if "openai_chat" in profile.apis and name != "generic")
    (exchange,) = load(har(entry([user("hi")], chat_body("x"))), profile=name).exchanges
    assert exchange.profile.name == name
    assert exchange.profile_evidence


# -- standard input, compression and folders --------------------------------------------------------------------------


def test_standard_input_is_read_like_a_file():
    loaded = open_paths(["-"], stdin=chat_stream("hello").encode())
    assert (loaded.exchanges[0].path, loaded.exchanges[0].response.text) == ("-", "hello")
    assert open_paths(["-"], stdin=b"").inputs[0].error.startswith("standard input: empty")
    long = json.dumps({"usage": "N"}).replace('"N"', "9" * 5_000).encode()
    assert "(a number has too many digits): expected" in open_paths(["-"], stdin=long).inputs[0].error


def test_a_gzip_file_is_read_like_what_is_in_it(load):
    loaded = load(gzip.compress(har(entry([user("hi")], chat_body("hello"))).encode()), "x.har.gz")
    assert [exchange.response.text for exchange in loaded.exchanges] == ["hello"]


def test_a_folder_gives_its_sessions_and_counts_the_rest(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "a.har").write_text(har(entry([user("hi")], chat_body("one"))))
    (tmp_path / "b" / "two.json").write_text(chat_body("two"))
    (tmp_path / "b" / "empty.json").write_text("")
    (tmp_path / "notes.txt").write_text("my notes")
    (tmp_path / "package.json").write_text('{"name": "x"}')
    (tmp_path / "codex.jsonl").write_text('{"finishReason": "stop", "usage": {}}\n{}\n')
    (tmp_path / ".git" / "c.har").write_text(har(entry([user("hi")], chat_body("never"))))
    loaded = open_paths([str(tmp_path)])
    assert [exchange.response.text for exchange in loaded.exchanges] == ["one", "two"]
    assert [exchange.path for exchange in loaded.exchanges] == [
        str(tmp_path / "a.har"),
        str(tmp_path / "b" / "two.json"),
    ]
    first = loaded.inputs[0]
    assert (first.path, first.format, first.responses, first.error) == (str(tmp_path), "folder", 0, None)
    assert sorted(skip.why.removeprefix(str(tmp_path)).split(":")[0] for skip in first.skipped) == [
        "/b/empty.json",
        "/codex.jsonl",
        "/notes.txt",
        "/package.json",
    ]
    assert any("result of Vercel's AI SDK: not read yet" in skip.why for skip in first.skipped)
    assert sum(given.responses for given in loaded.inputs) == len(loaded.exchanges)


def test_what_only_this_program_reads_is_not_among_the_files_of_a_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("LOOP_INSPECTOR_DATA", "LOOP_INSPECTOR_CACHE", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    data, cache, state = data_folder(os.environ), cache_folder(os.environ), state_folder()
    for own in (data / "sessions" / "1.jsonl", cache / "turns.db", state / "recent.json"):
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_text("{}")
    for name, place in {"live": data / "live", "mine": tmp_path / "sessions"}.items():
        place.mkdir(parents=True)
        (place / f"{name}.json").write_text(chat_body(name))
    loaded = open_paths([str(tmp_path)])
    assert sorted(exchange.response.text for exchange in loaded.exchanges) == ["live", "mine"]
    assert loaded.inputs[0].skipped == ()


def test_a_folder_without_sessions_is_one_clear_line(tmp_path):
    (tmp_path / "notes.txt").write_text("my notes")
    (given,) = open_paths([str(tmp_path)]).inputs
    assert "no session in this folder (files looked at: 1)" in given.error
    assert len(given.skipped) == 1


def test_a_damaged_har_in_a_folder_is_still_an_error(tmp_path):
    whole = har(entry([user("hi")], chat_body("one")), entry([user("ho")], chat_body("two")))
    (tmp_path / "cut.har").write_text(whole[:-40])
    loaded = open_paths([str(tmp_path)])
    assert [bool(given.error) for given in loaded.inputs] == [False, True]
    assert [exchange.response.text for exchange in loaded.exchanges][:1] == ["one"]
    assert all(exchange.response.stop_reason.detail == "recording_cut" for exchange in loaded.exchanges[1:])


def test_pairs_of_one_folder_are_threaded_together_and_hars_are_not(tmp_path):
    first = [user("hi")]
    second = [*first, assistant("hello"), user("bye")]
    for kind in ("json", "har"):
        place = tmp_path / kind
        place.mkdir()
        for number, (messages, reply) in enumerate(((first, "hello"), (second, "bye"))):
            pair = json.dumps(
                {"request": {"model": "m", "messages": messages}, "response": json.loads(chat_body(reply))}
            )
            (place / f"{number}.{kind}").write_text(pair if kind == "json" else har(entry(messages, chat_body(reply))))
    assert len({turn.conversation for turn in open_paths([str(tmp_path / "json")]).turns}) == 1
    assert len({turn.conversation for turn in open_paths([str(tmp_path / "har")]).turns}) == 2


# -- request/response pairs -------------------------------------------------------------------------------------------

ASKED = {"model": "m", "messages": [user("hi")], "max_tokens": 5}
ANSWER = json.loads(chat_body("hello"))


@pytest.mark.parametrize(
    "pair",
    [
        {"request": ASKED, "response": ANSWER},
        {"request": json.dumps(ASKED), "response": json.dumps(ANSWER)},
        {"request": ASKED, "response": chat_stream("hello")},
        {
            "request": {"url": CHAT, "method": "POST", "headers": {"a": "b"}, "body": ASKED},
            "response": {"status": 200, "headers": {"x-request-id": "q"}, "body": ANSWER},
        },
        {
            "request": {"url": CHAT, "body": json.dumps(ASKED), "headers": [["a", "b"]]},
            "response": {"status_code": 200, "headers": [["x", "y"]], "body_raw": chat_stream("hello")},
        },
        {
            "request": {
                "method": "POST",
                "uri": CHAT,
                "body": {"encoding": "UTF-8", "string": json.dumps(ASKED)},
                "headers": {},
            },
            "response": {
                "status": {"code": 200, "message": "OK"},
                "headers": {"x": ["y"]},
                "body": {"string": json.dumps(ANSWER)},
            },
        },
        {"request": {"url": CHAT, "method": "POST", "payload": ASKED}, "response": {"status": 200, "body": ANSWER}},
        {"url": CHAT, "request_body": ASKED, "response_body": ANSWER, "status": 200},
        {"input": ASKED, "output": ANSWER, "timestamp": "2026-03-01T10:00:00Z"},
        {"req": ASKED, "res": [json.loads(line[6:]) for line in chat_stream("hello").split("\n\n")[:-2]]},
        {
            "request": ASKED,
            "response": [chat_stream("hello")[:70], chat_stream("hello")[70:]],
        },
        {"request": ASKED, "response": chat_stream("hello").split("\n")},
        {"request": ASKED, "response": [
            "", ": ping", "event: message", "id: 1", "retry: 5", *chat_stream("hello").split("\n")]},
        {"request": ASKED, "response": [json.dumps(ANSWER)[:70], json.dumps(ANSWER)[70:]]},
    ],
    ids=[
        "objects",
        "strings",
        "stream",
        "http",
        "claude-trace",
        "cassette",
        "llama-stack",
        "bodies",
        "input/output",
        "events",
        "pieces",
        "lines",
        "lines of any kind",
        "pieces of a body",
    ],
)
def test_pairs_in_many_spellings(load, pair):
    for content in (
        json.dumps(pair),
        json.dumps(pair) + "\n" + json.dumps(pair) + "\n",
        json.dumps([pair], indent=2),
        json.dumps({"interactions": [pair]}),
    ):
        loaded = load(content)
        assert loaded.inputs[0].error is None
        assert loaded.inputs[0].format == "pairs"
        assert {exchange.response.text for exchange in loaded.exchanges} == {"hello"}
        assert [exchange.request.max_tokens for exchange in loaded.exchanges] == [5] * len(loaded.exchanges)
        assert [exchange.entry for exchange in loaded.exchanges] == list(range(len(loaded.exchanges)))


def test_objects_of_an_sdk_stand_beside_their_types(load):
    """Llama Stack's recordings keep what the SDK made of an answer, or of each chunk."""
    def dump(value):
        return {"__type__": "openai.types.chat.chat_completion.ChatCompletion", "__data__": value}

    chunks = [json.loads(line[6:]) for line in chat_stream("hello").split("\n\n")[:-2]]
    for body in (dump(ANSWER), [dump(chunk) for chunk in chunks]):
        for indent in (None, 2):
            answer = {"body": body, "is_streaming": isinstance(body, list)}
            loaded = load(json.dumps({"request": {"method": "POST", "url": CHAT, "body": ASKED}, "response": answer},
                                       indent=indent))
            (exchange,) = loaded.exchanges
            assert (exchange.response.text, exchange.response.raw_stop_reason) == ("hello", "stop")
            assert b"__data__" not in exchange.body


EVENTS = [f"event: message\n{line}" for line in chat_stream("hello").split("\n\n")[:-1]]


@each_row(("kind", "body"), [
    ("json", {"value": ANSWER}), ("text", {"value": json.dumps(ANSWER)}), ("sse", {"chunks": EVENTS}), ("empty", {}),
    ("base64", {"contentType": "text/plain", "value": base64.b64encode(json.dumps(ANSWER).encode()).decode()}),
    ("binary", {"path": "a.bin", "sha256": "00"}),
])
def test_bodies_name_their_kind(load, kind, body):
    """In the cassettes of Braintrust's SDK."""
    pair = {"request": {"method": "POST", "url": CHAT, "body": {"kind": "json", "value": ASKED}},
            "response": {"status": 200, "body": {"kind": kind, **body}}}
    found = load(json.dumps({"entries": [pair], "meta": {}})).exchanges
    facts = [(each.recorded, each.response.text, each.response.raw_stop_reason, each.request.model) for each in found]
    assert facts == {"binary": [], "empty": [(False, None, None, "m")]}.get(kind, [(True, "hello", "stop", "m")])


@each_row("form", [{"size": 9}, {}])
def test_a_body_may_name_its_encoding_beside_its_data(load, form):
    """In the cassettes of Zen MCP's tests: the answer was a body with neither text nor stop reason."""
    packed = base64.b64encode(json.dumps(ANSWER).encode()).decode()
    pair = {"request": {"method": "POST", "url": CHAT, "content": ASKED}, "response": {
        "status_code": 200, "headers": {"content-encoding": "gzip"},
        "content": {"data": packed, "encoding": "base64", **form}}}
    (found,) = load(json.dumps({"interactions": [pair]})).exchanges
    assert (found.response.text, found.response.raw_stop_reason, found.request.model) == ("hello", "stop", "m")


def test_an_event_that_was_cut_is_not_closed_by_the_framing(load):
    cut = [*EVENTS[:-2], EVENTS[-2][:-30]]
    (found,) = load(json.dumps({"request": {"method": "POST", "url": CHAT}, "response": {"body": cut}})).exchanges
    assert (found.response.text, found.response.stop_reason.normalized) == ("hello", Stop.INTERRUPTED)


def test_an_answer_whose_body_is_null_was_not_recorded(load):
    """Llama Stack keeps the exception that the SDK raised, and no body."""
    answer = {"body": None, "is_streaming": False, "is_exception": True, "exception_message": "boom"}
    loaded = load(json.dumps({"request": {"method": "POST", "url": CHAT, "body": ASKED}, "response": answer}))
    assert [exchange.recorded for exchange in loaded.exchanges] == [False]


def test_the_address_beside_a_payload_says_whose_the_error_is(load):
    """Llama Stack's recordings of raw requests have no headers."""
    request = {"url": "https://generativelanguage.googleapis.com/v1beta/interactions", "method": "POST",
               "payload": {"model": "m", "input": "hi"}}
    loaded = load(json.dumps({"request": request, "response": {"status": 400, "body": {"error": {"message": "no"}}}}))
    assert [(each.api, each.response.http_status) for each in loaded.exchanges] == [("gemini_interactions", 400)]


def test_an_answer_of_responses_that_repeats_its_input_is_no_pair(load):
    """Llama Stack keeps the input beside the output of a stored answer."""
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hello"}]}
    answer = {"id": "resp_1", "object": "response", "status": "completed", "input": [user("hi")], "output": [said]}
    loaded = load(json.dumps(answer))
    assert [(each.api, each.response.text) for each in loaded.exchanges] == [("openai_responses", "hello")]
    assert loaded.inputs[0].format == "body"


@pytest.mark.parametrize(("asks", "answers"), [
    ("request", "response"), ("req", "resp"), ("request_body", "res"), ("requestBody", "response_body"),
    ("input", "responseBody"), ("kwargs", "raw_response"), ("input", "output"), ("input", "result"),
    ("kwargs", "completion"),
])
def test_loggers_name_the_two_sides_of_a_pair(load, asks, answers):
    (exchange,) = load(json.dumps({asks: ASKED, answers: ANSWER})).exchanges
    assert (exchange.request.max_tokens, exchange.response.text) == (5, "hello")


def converted_beside(raw) -> str:
    """A log of OpenHands: the answer after it made a call of the tags in its text, and the answer as it came."""
    call = {"id": "toolu_01", "type": "function", "function": {"name": "ls", "arguments": '{"path": "a"}'}}
    message = {"role": "assistant", "content": "Look.", "tool_calls": [call]}
    converted = {"object": "chat.completion", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
    return json.dumps({"kwargs": ASKED, "response": converted, "raw_response": raw})


def test_of_two_answers_the_one_with_the_provider_s_word_is_read(load):
    """The conversion closed the call of a cut text, and wrote that the answer had stopped."""
    text = "Look.<function=ls><parameter=pa"
    message = {"role": "assistant", "content": text, "tool_calls": None}
    raw = {"object": "chat.completion", "choices": [{"index": 0, "finish_reason": "length", "message": message}]}
    (exchange,) = load(converted_beside(raw)).exchanges
    response = exchange.response
    assert (response.text, response.tool_calls, response.raw_stop_reason) == (text, (), "length")
    assert exchange.body.decode() == json.dumps(raw)


@each_row("raw", [
    None, "a", [], {}, {"choices": []}, {"choices": None}, {"choices": ["a"]},
    {"choices": [{"index": 0, "finish_reason": "stop", "message": {"content": "Look.<function=ls>"}}]},
    {"choices": [{"index": 0, "finish_reason": None, "message": {"content": "Look.", "tool_calls": [{}]}}]},
])
def test_the_converted_answer_is_read_if_the_provider_s_word_is_the_same(load, raw):
    """The prompt asked for the tags, so the calls are no markup that was left in a text."""
    (exchange,) = load(converted_beside(raw)).exchanges
    assert [(call.name, call.arguments) for call in exchange.response.tool_calls] == [("ls", '{"path": "a"}')]


@each_row("name", ["interactions", "http_interactions", "exchanges", "entries", "calls", "pairs",
                                  "records", "items", "logs", "requests", "mappings", "recordings"])
def test_loggers_name_the_list_of_pairs(load, name):
    loaded = load(json.dumps({name: [{"request": ASKED, "response": ANSWER}] * 2}))
    assert loaded.inputs[0].format == "pairs"
    assert [exchange.response.text for exchange in loaded.exchanges] == ["hello", "hello"]


LONG_ASKED = {"model": "m", "messages": [user("hi" * 40_000)], "max_tokens": 5}
"""A request that is longer than the part of a file that decides its format."""


@pytest.mark.parametrize("request_", [
    LONG_ASKED, json.dumps(LONG_ASKED), {"url": CHAT, "method": "POST", "headers": {}, "body": LONG_ASKED},
    {"url": CHAT, "body": json.dumps(LONG_ASKED)}, {"messages": LONG_ASKED["messages"], "model": "m"},
    {"system": "s" * 80_000, "messages": [user("hi")], "model": "m"},
], ids=["body", "text", "http", "http text", "messages", "system"])
@pytest.mark.parametrize("lay_out", [
    json.dumps, lambda pair: f"{json.dumps(pair)}\n{json.dumps(pair)}\n", lambda pair: json.dumps([pair, pair]),
    lambda pair: json.dumps({"entries": [pair]}), lambda pair: json.dumps({"id": 1, **pair}, indent=2),
], ids=["one", "lines", "list", "entries", "indented"])
def test_a_long_request_hides_no_answer(load, request_, lay_out):
    loaded = load(lay_out({"request": request_, "response": ANSWER}))
    assert loaded.inputs[0].format == "pairs"
    assert {exchange.response.text for exchange in loaded.exchanges} == {"hello"}


def test_a_long_request_alone_is_no_pair(load):
    for value in ({"request": LONG_ASKED}, {"request": {"question": "hi" * 40_000}, "response": {}}):
        (given,) = load(json.dumps(value)).inputs
        assert given.responses == 0
        assert given.error or given.skipped


def test_an_element_of_a_list_is_named_by_its_byte(load):
    pair = json.dumps({"request": {**ASKED, "note": "Äpfel"}, "response": ANSWER}, ensure_ascii=False)
    whole = f"[{pair}, 5, {pair}]"
    cut = whole[: len(whole) - 10].encode()
    loaded = load(cut)
    at = cut.rindex(b'{"request"')
    assert f"the element at byte {at} is cut" in " ".join(loaded.inputs[0].notices)
    assert at == len(whole[: whole.rindex('{"request"')]) + 1, "the umlaut takes two bytes"


@pytest.mark.parametrize("name", ["body_raw", "body", "jsonBody", "json", "content", "text", "data"])
def test_loggers_name_the_body_of_a_message(load, name):
    pair = {"request": {"headers": {}, name: ASKED}, "response": {"status": 200, name: json.dumps(ANSWER)}}
    (exchange,) = load(json.dumps(pair)).exchanges
    assert (exchange.request.max_tokens, exchange.response.text) == (5, "hello")


def test_the_segments_of_a_replay_of_googles_sdks_are_its_bodies(load):
    asked = {"contents": [{"parts": [{"text": "go"}]}], "generationConfig": {"maxOutputTokens": 7}}
    request = {"method": "post", "url": "{MLDEV_URL_PREFIX}/models/g:streamGenerateContent?alt=sse", "headers": {},
               "body_segments": [asked]}
    parts = [{"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": reason}]}
             for text, reason in (("one ", None), ("two", "MAX_TOKENS"))]
    answers = [{"status_code": 200, "headers": {}, "body_segments": segments, "byte_segments": []}
               for segments in (parts, parts[1:], [])]
    loaded = load(json.dumps({"replay_id": "r", "interactions": [
        {"request": request, "response": answer} for answer in answers]}))
    assert [each.request.max_tokens for each in loaded.exchanges] == [7, 7, 7]
    assert [(each.response.text, each.response.stop_reason.raw) for each in loaded.exchanges] == [
        ("one two", "MAX_TOKENS"), ("two", "MAX_TOKENS"), (None, None)]


@each_row(("status", "lasted", "began"), [
    ("status", "duration_ms", "started"), ("status_code", "elapsed_ms", "startedDateTime"),
    ("statusCode", "latency_ms", "timestamp"), ("status", "time_ms", "time"), ("status", "time_ms", "ts"),
    ("status", "time_ms", "recorded_at"), ("status", "time_ms", "created_at"),
])
def test_loggers_name_the_status_and_the_times_of_an_exchange(load, status, lasted, began):
    pair = {"url": CHAT, "request": ASKED, "response": {status: 429, "body": '{"error": {"message": "slow down"}}'},
            lasted: 250, began: "2026-03-01T10:00:00Z"}
    (exchange,) = load(json.dumps(pair)).exchanges
    assert (exchange.response.http_status, exchange.duration_ms) == (429, 250)
    assert exchange.started == "2026-03-01T10:00:00Z"


def test_the_bytes_of_a_pairs_response_are_the_files_own(load):
    said = (
        '{"id":"msg_1","type":"message","role":"assistant","model":"c","content":[{"type":"tool_use","id":"toolu_1",'
        '"name":"f","input":{ "b" : 1.0,  "a":[ ] }}],"stop_reason":"tool_use","usage":{"output_tokens":2}}'
    )
    (exchange,) = load('{"request": {"model": "c", "messages": []},  "response":  ' + said + "}").exchanges
    assert exchange.body.decode() == said
    assert exchange.response.tool_calls[0].arguments == '{ "b" : 1.0,  "a":[ ] }'


def test_lists_of_gemini_chunks_are_streams_as_they_stand(load):
    line = json.dumps({"method": "generateContentStream", "response": [json.loads(GEMINI)]})
    loaded = load(f"{line}\n{line}\n", "x.responses")
    assert [(exchange.api, exchange.response.text) for exchange in loaded.exchanges] == [("gemini_generate", "hi")] * 2


def test_lines_without_a_response_and_broken_lines_are_counted(load):
    good = json.dumps({"request": ASKED, "response": ANSWER})
    loaded = load(f'{good}\n{{"request": {{}}, "error": "timed out"}}\n{{"broken\n{good}\n{good[:50]}')
    assert [exchange.entry for exchange in loaded.exchanges] == [0, 3]
    assert [(skip.entry, skip.why) for skip in loaded.inputs[0].skipped] == [
        (1, "failed before any answer: timed out"),
        (2, "not valid JSON (line 3)"),
        (4, "not valid JSON (line 5)"),
    ]
    assert "line 5 is cut" in loaded.inputs[0].notices[0]


@pytest.mark.parametrize("body", [ANSWER, json.dumps(ANSWER), chat_stream("hello")])
def test_an_http_answer_without_its_request_is_read(body, load):
    answer = {"status": 200, "headers": {"content-type": "text/event-stream", "x-request-id": "r-1"}, "body": body}
    for data in (json.dumps(answer, indent=2), f"{json.dumps(answer)}\n{json.dumps(answer)}\n"):
        loaded = load(data)
        assert {(each.api, each.response.text, each.response.http_status) for each in loaded.exchanges} == {
            ("openai_chat", "hello", 200)}
    assert not load(json.dumps({**answer, "status": "open"})).exchanges


@pytest.mark.parametrize("more", [{}, {"context": []}])
def test_a_fixture_of_saloon_is_read(more, load):
    answer = {"statusCode": 429, "headers": {"Content-Type": "application/json"}, "data": json.dumps(ANSWER), **more}
    (exchange,) = load(json.dumps(answer, indent=4)).exchanges
    assert (exchange.api, exchange.response.http_status) == ("openai_chat", 429)
    assert exchange.body == json.dumps(ANSWER).encode()
    assert not load(json.dumps({**answer, "userId": 1})).exchanges


def test_an_empty_body_of_a_pair_is_not_recorded(load):
    pair = {"request": {"url": CHAT, "body": ASKED}, "response": {"status": 200, "body": "", "headers": {}}}
    (exchange,) = load(json.dumps(pair)).exchanges
    assert not exchange.recorded


def test_the_results_of_a_batch_are_read(load):
    lines = [
        json.dumps({"custom_id": "a", "response": {"status_code": 200, "body": ANSWER}}),
        json.dumps({"custom_id": "b", "result": {"type": "succeeded", "message": json.loads(CLAUDE)}}),
    ]
    loaded = load("\n".join(lines))
    assert [(each.api, each.response.text) for each in loaded.exchanges] == [
        ("openai_chat", "hello"),
        ("anthropic_messages", "hi"),
    ]


def test_of_a_batch_what_never_ran_is_named(load):
    lines = [{"custom_id": "a", "result": {"type": "succeeded", "message": json.loads(CLAUDE)}},
             {"custom_id": "b", "result": {"type": "expired"}}, {"custom_id": "c", "result": {"type": "canceled"}}]
    loaded = load("\n".join(map(json.dumps, lines)))
    assert [skip.why for skip in loaded.inputs[0].skipped] == [
        "failed before any answer: expired", "failed before any answer: canceled"]


@each_row("answer", [
    {"response": {"status_code": 400, "request_id": "r", "body": {"error": {"message": "too\nlow", "type": "t"}}}},
    {"result": {"type": "errored", "error": {"type": "error", "error": {"type": "t", "message": "too\nlow"}}}},
    {"response": None, "error": {"code": "c", "message": "too\nlow"}},
    {"response": {"status_code": 400, "request_id": "r", "body": None}, "error": {"error": {"message": "too\nlow"}}},
    {"request": {}, "response": {}, "status": "too\nlow", "processed_time": "2026-01-01T00:00:00Z"},
    {"modelInput": {}, "error": {"errorCode": 400, "errorMessage": "too\nlow", "retryable": False}},
])
def test_of_a_batch_what_failed_says_why(answer, load):
    lines = [{"custom_id": "a", "response": {"status_code": 200, "body": ANSWER}}, {"custom_id": "b", **answer}]
    loaded = load("\n".join(map(json.dumps, lines)))
    assert [skip.why for skip in loaded.inputs[0].skipped] == ["failed before any answer: too low"]


def test_a_failure_is_masked_before_it_is_cut(load):
    failed = {"custom_id": "b", "error": f"{'x' * 100} sk-ant-api03-{'aB3dE5fG7' * 10}"}
    why = load("\n".join(map(json.dumps, [{"custom_id": "a", "response": {"body": ANSWER}}, failed]))
                 ).inputs[0].skipped[0].why
    assert "aB3" not in why


def test_the_results_of_a_batch_of_gemini_are_read(load):
    lines = [{"key": "a", "response": json.loads(GEMINI)}, {"key": "b", "error": {"code": 400}}]
    loaded = load("\n".join(map(json.dumps, lines)))
    assert [(each.api, each.response.text) for each in loaded.exchanges] == [("gemini_generate", "hi")]
    assert "failed before any answer" in loaded.inputs[0].skipped[0].why


def test_the_records_of_a_batch_of_bedrock_are_read(load):
    lines = [{"recordId": "a", "modelInput": {"max_tokens": 5, "messages": []}, "modelOutput": json.loads(CLAUDE)}] * 2
    loaded = load("\n".join(map(json.dumps, lines)))
    assert [(each.api, each.response.text, each.request.max_tokens) for each in loaded.exchanges] == [
        ("anthropic_messages", "hi", 5)] * 2


def test_rows_of_a_batch_of_gemini_are_no_repeats_of_each_other(load):
    asked = {"contents": [{"role": "user", "parts": [{"text": "go"}]}]}
    rows = [{"key": key, "request": asked, "response": json.loads(GEMINI)} for key in "ab"]
    assert [each.session for each in load("\n".join(map(json.dumps, rows))).exchanges] == ["a", "b"]


def test_the_key_of_a_record_in_another_log_separates_no_conversation(load):
    first = [{"role": "user", "content": "go"}]
    later = [*first, {"role": "assistant", "content": "hello"}, {"role": "user", "content": "more"}]
    rows = [{"key": key, "request": {"messages": asked}, "response": ANSWER}
            for key, asked in (("a", first), ("b", later))]
    loaded = load("\n".join(map(json.dumps, rows)))
    assert {each.session for each in loaded.exchanges} == {""}
    assert len({turn.conversation for turn in loaded.turns}) == 1


@pytest.mark.parametrize("names", [
    [{"custom_id": "a"}, {"custom_id": "b"}], [{"recordId": "a"}, {"recordId": "b"}],
    [{"processed_time": "2026-01-01T00:00:00Z"}] * 2,
], ids=["openai", "bedrock", "vertex"])
def test_a_row_of_a_batch_is_no_repeat_of_another_that_asks_the_same(names, load):
    asked = {"messages": [{"role": "user", "content": "go"}]}
    cut = {**ANSWER, "choices": [{**ANSWER["choices"][0], "finish_reason": "length"}]}
    rows = [{**name, "request": asked, "response": answer} for name, answer in zip(names, (cut, ANSWER), strict=True)]
    loaded = load("\n".join(map(json.dumps, rows)))
    assert [len(turn.links) for turn in loaded.turns] == [1, 1]
    assert [each.session for each in loaded.exchanges] == (
        ["row 1", "row 2"] if "processed_time" in names[0] else ["a", "b"])


EVENT = {"payload": "{}", "sender": None, "receiver": "a/1", "kind": "MessageKind.DIRECT",
         "delivery_stage": "DeliveryStage.SEND", "type": "Message"}
"""An event of AutoGen 0.7 that holds no answer."""


@pytest.mark.parametrize("before", [[EVENT], []])
def test_calls_of_a_model_in_a_log_of_autogen_are_pairs(before, load):
    asked = [{"content": "Be brief.", "role": "system"}, {"role": "user", "name": "user", "content": "go"}]
    tool = {"type": "function", "function": {"name": "ls", "parameters": {"type": "object"}}}
    call = {"tools": [tool], "type": "LLMCall", "messages": asked, "response": ANSWER, "agent_id": None}
    loaded = load("".join(f"{json.dumps(row)}\n" for row in (*before, call, EVENT)))
    (exchange,) = loaded.exchanges
    assert (exchange.response.text, exchange.request.messages[-1].text) == ("hello", "go")
    assert [each.name for each in exchange.request.tools] == ["ls"]
    assert [skip.why for skip in loaded.inputs[0].skipped] == ["no response in it"] * (len(before) + 1)


@each_row("missing", ["payload", "sender", "receiver", "delivery_stage"])
def test_a_line_that_lacks_a_member_of_autogens_events_does_not_make_a_log_of_its_own(missing, load):
    other = {name: held for name, held in EVENT.items() if name != missing}
    assert load(f"{json.dumps(other)}\n{json.dumps(other)}\n").inputs[0].format != "pairs"


def test_the_history_of_dspy_has_its_requests_beside_the_answers(load):
    row = {"prompt": None, "messages": [{"role": "user", "content": "go"}], "kwargs": {"max_tokens": 5},
           "response": ANSWER, "outputs": ["hello"], "model": "openai/m"}
    (exchange,) = load(json.dumps([row], indent=1)).exchanges
    assert (exchange.response.text, exchange.cap, exchange.request.messages[0].text) == ("hello", 5, "go")


CUT_BY_DSPY = {  # as dspy 3.4.1 writes it: its own version of an answer, and the provider's answer
    "id": "1", "model": "m", "finish_reason": "tool_call", "usage": {"input_tokens": 4, "output_tokens": 5},
    "message": {"role": "assistant", "parts": [
        {"type": "tool_call", "id": "c", "name": "write", "input": {"partial_json": '{"path": "a'}}]}}
CUT_CALL = {"id": "c", "type": "function", "function": {"name": "write", "arguments": '{"path": "a'}}


def test_of_dspys_version_of_an_answer_only_the_providers_is_read(load):
    message = {"role": "assistant", "content": None, "tool_calls": [CUT_CALL]}
    body = {"id": "1", "object": "chat.completion", "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "length"}]}
    row = {"prompt": None, "messages": [{"role": "user", "content": "go"}], "kwargs": {}, "model": "openai/m"}
    (exchange,) = load(json.dumps({**row, "response": {**CUT_BY_DSPY, "provider_data": body}})).exchanges
    (call,) = exchange.response.tool_calls
    assert (exchange.response.stop_reason.raw, call.arguments) == ("length", '{"path": "a')
    event = {**body, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    for other in ({}, {"provider_data": None}, {"provider_data": event}):
        loaded = load(json.dumps({**row, "response": {**CUT_BY_DSPY, **other}}))
        assert (loaded.exchanges, [skip.why for skip in loaded.inputs[0].skipped]) == (
            (), ["no response in it"])


def test_messages_beside_a_request_or_a_text_are_no_request(load):
    asked = {"messages": [{"role": "user", "content": "asked"}]}
    pair = {"request": asked, "messages": [{"role": "user", "content": "go"}], "response": ANSWER}
    assert load(json.dumps(pair)).exchanges[0].request.messages[0].text == "asked"
    assert load(json.dumps({"messages": asked["messages"], "response": "hello"})).inputs[0].format == "body"


def invocation(operation: str, given: dict[str, object], received: dict[str, object]) -> str:
    """A record of Bedrock's invocation log."""
    return json.dumps({
        "timestamp": "2026-01-01T00:00:00Z", "requestId": "r", "operation": operation, "schemaVersion": "1.0",
        "modelId": "arn:aws:bedrock:us-east-1:1:inference-profile/a.b-v1:0", "schemaType": "ModelInvocationLog",
        "input": {"inputContentType": "application/json", "inputTokenCount": 3, **given},
        "output": {"outputContentType": "application/json", "outputTokenCount": 5, **received}})


CONVERSED = {"output": {"message": {"role": "assistant", "content": [{"text": "hi"}]}}, "stopReason": "max_tokens",
             "usage": {"inputTokens": 3, "outputTokens": 5, "totalTokens": 8}}
CLAUDE_EVENTS = [
    {"type": "message_start", "message": {**json.loads(CLAUDE), "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 5}},
    {"type": "message_stop"},
]


@pytest.mark.parametrize(("operation", "asked", "answer", "api"), [
    ("Converse", {"messages": [], "inferenceConfig": {"maxTokens": 5}}, CONVERSED, "bedrock_converse"),
    ("ConverseStream", {"messages": [], "inferenceConfig": {"maxTokens": 5}}, CONVERSED, "bedrock_converse"),
    ("InvokeModel", {"messages": [], "max_tokens": 5}, json.loads(CLAUDE) | {"stop_reason": "max_tokens"},
     "bedrock_invoke"),
    ("InvokeModelWithResponseStream", {"messages": [], "max_tokens": 5}, CLAUDE_EVENTS, "anthropic_messages"),
])
def test_the_invocation_log_of_bedrock_is_read(operation, asked, answer, api, load):
    record = invocation(operation, {"inputBodyJson": asked}, {"outputBodyJson": answer})
    loaded = load(f"{record}\n{record}\n")
    assert [(each.api, each.response.text, each.response.stop_reason.raw, each.request.max_tokens, each.started)
            for each in loaded.exchanges] == [(api, "hi", "max_tokens", 5, "2026-01-01T00:00:00Z")] * 2
    if api != "anthropic_messages":  # there the events name the model
        assert loaded.exchanges[0].request.model == "arn:aws:bedrock:us-east-1:1:inference-profile/a.b-v1:0"


def test_a_body_that_the_invocation_log_keeps_elsewhere_is_named(load):
    away = invocation("Converse", {"inputBodyS3Path": "s3://b/in"}, {"outputBodyS3Path": "s3://b/out"})
    here = invocation("Converse", {"inputBodyS3Path": "s3://b/in"}, {"outputBodyJson": CONVERSED})
    loaded = load(f"{away}\n{here}\n")
    assert [each.response.text for each in loaded.exchanges] == ["hi"]
    assert [each.why for each in loaded.inputs[0].skipped] == ["its answer is in another file (outputBodyS3Path)"]


CHUNKS = [
    {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [{"index": 0, **choice}]}
    for choice in ({"delta": {"content": "hel"}}, {"delta": {"content": "lo"}, "finish_reason": "length"})]
SENT = [*CHUNKS, "[DONE]"]


def as_event(sent, texts=True, **beside):
    """A server-sent event as loggers write it: an object, the data as a text or as JSON."""
    return {**beside, "data": sent if isinstance(sent, str) or not texts else json.dumps(sent)}


@each_row("beside", [
    {"event": "message"}, {"type": "message_delta"}, {"name": ""}, {"id": None}, {"LastEventID": "", "event": ""},
    {"retry": 5}])
@each_row("texts", [True, False])
@each_row("form", ["lines", "list", "pair"])
def test_server_sent_events_that_were_written_as_objects_are_their_stream(load, beside, texts, form):
    """They were refused, or shown as an answer without content if the type beside the data was one of an API."""
    events = [as_event(sent, texts, **beside) for sent in SENT]
    whole = {"lines": "\n".join(map(json.dumps, events)), "list": json.dumps(events, indent=1),
             "pair": json.dumps({"request": ASKED, "response": events})}[form]
    loaded = load(whole)
    (exchange,) = loaded.exchanges
    assert (exchange.api, exchange.response.text) == ("openai_chat", "hello")
    assert exchange.response.stop_reason.raw == "length"
    assert "their framing was added" in " ".join(loaded.inputs[0].notices)
    at = exchange.response.stop_reason.evidence[-1].at
    assert b'"finish_reason": "length"' in exchange.body[at.start : at.end]


@each_row("holder", ["data", "chunk", "event", "payload", "raw"])
@each_row("beside", [
    {"ts": 5, "Level": "debug"}, {"timestamp": "2026-01-01T00:00:00Z", "seq": 1}, {"elapsed_ms": 1, "index": 0},
    {"time": 5, "at": 5}, {"received_at": 5}, {"created_at": 5}])
@each_row("texts", [True, False])
def test_events_beside_the_time_at_which_they_came_are_their_stream(load, holder, beside, texts):
    """Such lines were refused."""
    lines = [{**beside, holder: json.dumps(sent) if texts else sent} for sent in CHUNKS]
    (exchange,) = load("\n".join(map(json.dumps, lines))).exchanges
    assert (exchange.response.text, exchange.response.stop_reason.raw) == ("hello", "length")


def test_a_pair_whose_stream_is_a_list_of_json_texts_is_read(load):
    """It was shown as an answer that was interrupted before anything came."""
    for done in ([], ["[DONE]"]):
        stream = [*map(json.dumps, CHUNKS), *done]
        (exchange,) = load(json.dumps({"request": ASKED, "response": stream})).exchanges
        assert (exchange.response.text, exchange.response.stop_reason.raw) == ("hello", "length")


def test_the_names_of_such_events_may_begin_with_capitals(load):
    events = [{"LastEventID": "", "Type": "", "Data": each["data"]} for each in map(as_event, SENT)]
    (exchange,) = load("\n".join(map(json.dumps, events))).exchanges
    assert (exchange.response.text, exchange.response.stop_reason.raw) == ("hello", "length")


def test_events_of_gemini_that_were_written_as_objects_are_no_array_of_answers(load):
    answer = {"candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "MAX_TOKENS"}]}
    url = "https://generativelanguage.googleapis.com/v1beta/models/g:streamGenerateContent"
    (exchange,) = load(json.dumps({"url": url, "request": {}, "response": [as_event(answer, event="")]})).exchanges
    assert (exchange.response.text, exchange.response.stop_reason.raw) == ("hi", "MAX_TOKENS")


def test_of_events_in_lines_that_were_cut_the_whole_ones_count(load):
    text = "\n".join(json.dumps(as_event(sent, event="")) for sent in SENT)
    last = text.index("\n") + 1
    for cut in (text[: text.index("finish_reason")], text[: last + 9], text[: last + 25]):
        (exchange,) = load(cut).exchanges
        assert (exchange.response.text, exchange.response.stop_reason.normalized) == ("hel", Stop.INTERRUPTED)


@each_row("odd", [
    {"parentId": "p", **as_event(CHUNKS[0], event="")},  # a member that no event has
    {"data": json.dumps(CHUNKS[0])},  # nothing says that it is an event
    {"event": "", "data": [CHUNKS[0]]}, {"event": "", "data": 7}, {"event": ""}])
def test_another_object_is_no_server_sent_event(load, odd):
    lines = [as_event(CHUNKS[0], event=""), odd, as_event(CHUNKS[1], event="")]
    loaded = load("\n".join(map(json.dumps, lines)))
    assert not loaded.exchanges
    assert "no known format" in loaded.inputs[0].error


def test_an_event_whose_data_has_line_breaks_stays_one_event(load):
    told = json.dumps(CHUNKS[1], indent=2)
    events = [as_event(CHUNKS[0], event=""), as_event(told, event=""), as_event("a\n\ndata: b", event="")]
    (exchange,) = load("\n".join(map(json.dumps, events))).exchanges
    assert (exchange.response.text, exchange.response.stop_reason.raw) == ("hello", "length")
    assert exchange.body.count(b"data: {") == 2


def in_base64(text):
    return base64.b64encode(text.encode()).decode()


PIECES = [piece + "\n\n" for piece in chat_stream("hello", "length").split("\n\n") if piece]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("pieces", [
    PIECES, ["".join(PIECES)[at : at + 40] for at in range(0, len("".join(PIECES)), 40)]])
def test_a_stream_that_was_kept_as_it_arrived_is_joined(load, pieces, whole):
    """Within the answer, as Mastra keeps it, it was refused; beside it, as of ReqLLM, it was called not recorded."""
    answer = {"status": 200, "headers": {"content-type": "text/event-stream"}}
    pair = {"request": {"method": "POST", "url": CHAT, "body": ASKED}, "response": {**answer, "chunks": pieces}}
    packed = {"chunks": [{"b64": in_base64(each), "decoded": each} if whole else {"b64": in_base64(each)}
                         for each in pieces],
              "request": {"method": "POST", "url": CHAT, "body": {"b64": in_base64(json.dumps(ASKED))}},
              "response": {**answer, "body": None}}
    for each in ({"meta": {"name": "x"}, "recordings": [pair]}, packed):
        (exchange,) = load(json.dumps(each)).exchanges
        assert (exchange.request.max_tokens, exchange.response.text) == (5, "hello")
        assert exchange.response.stop_reason.raw == "length"
        assert exchange.body == "".join(pieces).encode()


@pytest.mark.parametrize("packed", ["base64_string", "b64"])
def test_a_request_that_was_kept_in_base64_is_read(load, packed):
    """Its limit was not known, and its base64 counted as its text."""
    asked = {"method": "POST", "url": CHAT, "body": {packed: in_base64(json.dumps(ASKED))}}
    answer = {"status": 200, "body": {packed: in_base64(json.dumps(ANSWER))}}
    (exchange,) = load(json.dumps({"request": asked, "response": answer})).exchanges
    assert (exchange.request.max_tokens, exchange.response.text) == (5, "hello")
    asked["body"] = {packed: "?"}
    (exchange,) = load(json.dumps({"request": asked, "response": answer})).exchanges
    assert (exchange.request, exchange.response.text) == (None, "hello")


@each_row("chunks", [None, 7, [], {}])
def test_an_answer_without_a_stream_beside_it_was_not_recorded(load, chunks):
    pair = {"request": {"method": "POST", "url": CHAT, "body": ASKED}, "response": {"status": 200, "body": None}}
    (exchange,) = load(json.dumps({**pair, "chunks": chunks})).exchanges
    assert not exchange.recorded


def test_a_piece_that_is_no_base64_is_named(load):
    pair = {"chunks": [{"b64": in_base64(PIECES[0])}, {"b64": "a"}],
            "request": {"method": "POST", "url": CHAT, "body": ASKED}, "response": {"status": 200, "body": None}}
    (exchange,) = load(json.dumps(pair)).exchanges
    assert exchange.response.stop_reason.evidence[-1].note == "its body is not valid base64"


def test_a_mapping_of_wiremock_names_the_path_alone(load):
    mapping = {"request": {"method": "POST", "urlPath": "/v1/chat/completions"},
               "response": {"status": 429, "jsonBody": {"error": {"message": "slow down"}}}}
    (exchange,) = load(json.dumps(mapping)).exchanges
    assert (exchange.api, exchange.response.error.message) == ("openai_chat", "slow down")


@pytest.mark.parametrize("more", [{"url": "https://api.openai.com/v1/chat/completions"},
                                  {"url": "https://api.openai.com/v1/chat/completions", "method": "POST"}])
def test_an_address_in_a_body_does_not_make_it_a_message_around_a_body(more, load):
    (exchange,) = load(json.dumps({"request": {**more, **ASKED}, "response": {"url": "x", **ANSWER}})).exchanges
    assert (exchange.request.max_tokens, exchange.response.text) == (5, "hello")


@pytest.mark.parametrize("name", ["url", "urlPath"])
def test_a_mapping_of_wiremock_is_no_body(name, load):
    asked = {"method": "POST", name: "/v1/chat/completions", "bodyPatterns": []}
    (exchange,) = load(json.dumps({"request": asked, "response": {"status": 200, "jsonBody": ANSWER}})).exchanges
    assert (exchange.api, exchange.request, exchange.response.text) == ("openai_chat", None, "hello")


def test_a_call_of_weave_is_a_request_and_its_answer(load):
    (exchange,) = load(json.dumps({"op_name": "chat", "inputs": ASKED, "output": ANSWER})).exchanges
    assert (exchange.request.max_tokens, exchange.response.text) == (5, "hello")


@pytest.mark.parametrize("write", [
    json.dumps, lambda rows: json.dumps({"events": rows}), lambda rows: "\n".join(map(json.dumps, rows))])
def test_spans_of_braintrust_are_read_whichever_is_first(load, write):
    root = {"span_id": "s1", "root_span_id": "s1", "input": "go", "span_attributes": {"type": "task"}}
    model = {"span_id": "s2", "root_span_id": "s1", "span_parents": ["s1"], "span_attributes": {"type": "llm"},
             "input": [{"role": "user", "content": "go"}], "output": [
                 {"index": 0, "finish_reason": "length", "message": {"role": "assistant", "content": "Half a"}}]}
    loaded = load(write([root, model]).encode())
    assert [each.response.stop_reason.raw for each in loaded.exchanges] == ["length"]
    assert [skip.why for skip in loaded.inputs[0].skipped] == ["no response in it"]


def test_choices_alone_are_an_answer(load):
    span = {"input": ASKED["messages"], "output": [{**ANSWER["choices"][0], "finish_reason": "length"}]}
    loaded = load(json.dumps(span))
    (exchange,) = loaded.exchanges
    assert (exchange.response.text, exchange.response.stop_reason.raw) == ("hello", "length")
    assert "choices alone" in " ".join(loaded.inputs[0].notices)
    at = exchange.response.stop_reason.evidence[-1].at
    assert exchange.body[at.start : at.end] == b'"length"'


@each_row("in_list", [True, False])
@each_row(("alone", "word"), [
    ({"content": {"parts": [{"text": "hello"}], "role": "model"}, "finishReason": "MAX_TOKENS",
      "usageMetadata": {"candidatesTokenCount": 8}}, "MAX_TOKENS"),
    ({**ANSWER["choices"][0], "finish_reason": "length"}, "length")])
def test_one_candidate_or_choice_alone_is_an_answer(load, in_list, alone, word):
    (exchange,) = load(json.dumps({"input": "go", "output": [alone] if in_list else alone})).exchanges
    assert (exchange.response.text, exchange.response.stop_reason.raw) == ("hello", word)
    usage = exchange.response.usage
    assert (usage.output_tokens if usage else None) == (8 if word == "MAX_TOKENS" else None)
    at = exchange.response.stop_reason.evidence[-1].at
    assert exchange.body[at.start : at.end] == json.dumps(word).encode()


@pytest.mark.parametrize("name", [".aider.llm.history", "gen_ai.txt"])
def test_a_file_is_not_named_after_the_beginning_of_an_attribute(load, name):
    assert "by its name" not in load("TO LLM\nUSER hi\n", name).inputs[0].error


# -- known transcripts ------------------------------------------------------------------------------------------------

READ = {
    "codex-cli": "codex",
    "claude-code": "claude-code", "pi": "pi", "openclaw": "pi",
    "swe-agent": "swe-agent", "mini-swe-agent": "mini-swe-agent", "openhands": "openhands",
    "gemini-cli": "gemini-cli", "as-droid": "droid", "as-kimi": "kimi", "as-opencode": "opencode",
    "langfuse": "langfuse", "as-hermes": "hermes", "as-qwen": "qwen", "as-copilot": "copilot",
}
"""Transcripts that are read, by their folder or the beginning of their names, and by which importer."""
FRAGMENTS = ("as-opencode", "as-kimi-state", "as-qwen")
"""Single files of a store, which may hold no answer."""
SESSIONS = {"rec-browser-agent.concurrent.responses": 8}
"""Recorded responses among the transcripts: read as pairs."""
NO_SESSION = {"tst-resolved-aliases.golden.json"}
"""Model settings: no session at all."""


def test_every_recorded_transcript_is_read_or_named_as_what_it_is(corpus):
    rows = list(csv.DictReader((corpus / "transcripts" / "index.tsv").read_text().splitlines(), delimiter="\t"))
    assert len(rows) > 50
    for row in rows:
        (given,) = open_paths([str(corpus / "transcripts" / row["file"])]).inputs
        name = row["file"].rsplit("/", 1)[1]
        key = "-".join(name.split("-")[:2]) if row["format"] == "other-agents" else row["format"]
        if row["format"] == "har":
            assert given.responses >= 1
            assert given.error is None
        elif name.startswith(FRAGMENTS):
            assert (given.format, given.error) == (READ[key], None)
        elif row["format"] == "inspect_ai":  # some hold no samples
            assert (given.format, given.error) == ("inspect", None)
        elif name in SESSIONS:
            assert given.responses == SESSIONS[name]
        elif name in NO_SESSION:
            assert "JSON of no API" in given.error
        else:
            assert (given.format, given.error) == (READ[key], None)
            assert given.responses >= 1


def test_other_known_files_are_named(load):
    (given,) = load('{"finishReason": "length", "usage": {}}', "x").inputs
    assert given.error.endswith("result of Vercel's AI SDK: not read yet")


@pytest.mark.parametrize(("data", "why"), [
    (b"PK\x03\x04 and more", "ZIP archive: not read yet"),
    (b"12345678DUCK@\0\0\0", "DuckDB database, where Mastra may store its spans: not read yet"),
    (b"1234567DUCK\0\0\0", "expected a HAR, a session file, response bodies or request/response pairs")])
def test_binary_files_of_known_formats_are_named(load, data, why):
    (given,) = load(data, "x").inputs
    assert given.error.endswith(why)


# -- every importer ---------------------------------------------------------------------------------------------------

HEADS = [
    b"",
    b"\0" * 50,
    b"{",
    b"[",
    b"{}",
    b"[]",
    b"[1]",
    b"data: ",
    b'{"log": {',
    b"\xff\xfe{",
    b"PK\x03\x04",
    b"null\n",
    b"{}\n{}\n",
    b'{"loop_inspector_session": 1}\n',
    b'{"request": {}, "response": {}}',
    EVENT_STREAM[:30],
]


@each_row("name", IMPORTERS)
def test_an_importer_keeps_to_its_interface(name):
    for head in HEADS:
        assert 0 <= certainty(name, head, "x") <= 100
        try:
            reading = reading_of(name, head, "x", Options())
        except UnreadableError as why:
            said = str(why)
        else:
            said = "read"
            entries = [raw.entry for raw in reading.raws] + [skip.entry for skip in reading.skipped]
            assert sorted(entries) == list(range(len(entries)))
        assert said
        assert "\n" not in said


# -- samples ----------------------------------------------------------------------------------------------------------


def test_samples_are_listed_with_their_titles(tmp_path):
    (tmp_path / "README.md").write_text(
        "| file | story | provenance | end state |\n|---|---|---|---|\n| `b.har` | A HAR. | Recorded. | Complete |\n"
    )
    (tmp_path / "a.jsonl").write_text('{"loop_inspector_session": 1, "title": "A title", "end_state": "Abort"}\n')
    (tmp_path / "b.har").write_text("{}")
    first, second = samples(tmp_path)
    assert (first.name, first.title, first.about.end_state) == ("a.jsonl", "A title", "Abort")
    assert (second.title, second.about.provenance, second.about.end_state) == ("A HAR.", "Recorded.", "Complete")
    assert find("a", tmp_path).path == tmp_path / "a.jsonl"
    assert find("c", tmp_path) is None


def test_the_embedded_samples_are_found_from_here():
    place = folder()
    assert place is not None
    assert place.name == "sample_sessions"


# -- large transcripts -------------------------------------------------------------------------------------------------


CLAUDE_ROWS = [row for n in range(40) for row in (prompt(f"question {n}"), block(text("x" * 40), f"m{n}", "end_turn"))]
PI_ROWS = [row for n in range(40) for row in (pi_user(f"question {n}"), pi_reply(text("x" * 40)))]
GROWING = {
    **{shape.format: "".join(json.dumps(row) + "\n" for row in shape.value * 20) for shape in SHAPES
       if shape.rows and IMPORTERS[shape.format].grows},
    "claude-code": claude(*CLAUDE_ROWS), "pi": pi(*PI_ROWS),
}


def test_of_every_format_that_grows_there_is_one_to_read_in_pieces():
    assert {name for name, row in IMPORTERS.items() if row.grows} == set(GROWING)


@pytest.mark.parametrize("name", GROWING)
@pytest.mark.parametrize("end", ["\n", "", '\n{"type": "user", "uu'])
def test_a_transcript_that_is_read_in_pieces_gives_what_it_gives_as_a_whole(tmp_path, monkeypatch, end, name):
    path = tmp_path / "large.jsonl"
    path.write_text(("\ufeff" if end else "") + GROWING[name].rstrip("\n") + end)

    def read():
        loaded = open_paths([str(path)])
        told = [(e.entry, e.lines, e.body, e.response.text, e.response.stop_reason) for e in loaded.exchanges]
        return told, loaded.inputs, [turn.user_text for turn in loaded.turns]

    whole = read()
    monkeypatch.setattr(intake, "HEAVY", 10)
    monkeypatch.setattr(intake, "PIECE", 1000)
    assert read() == whole
    assert len(whole[0]) == 40 or name not in ("claude-code", "pi")
    assert whole[0]


def test_a_transcript_of_any_size_is_read_in_pieces_unless_a_bound_was_set(tmp_path, monkeypatch):
    path = tmp_path / "large.jsonl"
    path.write_text(claude(prompt("hello"), block(text("world"), "m1", "end_turn")))
    monkeypatch.setattr(intake, "HEAVY", 10)
    monkeypatch.setattr(intake, "MOST", 20)
    monkeypatch.setattr(intake, "_most", 20)
    assert open_paths([str(path)]).inputs[0].error is None
    monkeypatch.setattr(intake, "_most", 30)
    assert "more than 30 bytes" in open_paths([str(path)]).inputs[0].error


@pytest.mark.parametrize(("said", "held"), [("hi", bytes), ("hi " * 400, dict), ("\u00e9", dict)],
                         ids=["short", "long", "accented"])
def test_a_short_request_is_kept_as_its_bytes_and_is_the_same_json(said, held):
    asked = {"model": "m", "messages": [user(said)], "temperature": 0.25}
    pair = {"request": asked, "response": json.loads(chat_body("yes"))}
    (exchange,) = open_paths(["-"], stdin=json.dumps(pair, ensure_ascii=False).encode()).exchanges
    assert (type(exchange.stored_request), exchange.request_json) == (held, asked)


@each_row(("name", "content", "what"), [
    ("agent-a0.meta.json", {"agentType": "Explore", "description": "look", "toolUseId": "t-1", "spawnDepth": 1},
     "description of a subagent of Claude Code"),
    ("sessions.json", [{"sessionId": "s", "title": "T", "dateCreated": "1", "workspaceDirectory": "/w"}],
     "index of Continue's sessions"),
    ("sessions.json", [{"id": "7f", "title": "go", "createdAt": "2026-11-29", "lastAccessedAt": "2026-11-29",
                        "messageCount": 1, "provider": "lo", "model": "m", "workingDirectory": "/w"}],
     "index of nanocoder's sessions"),
    ("17_x.json", {"version": 1, "session_id": "17_x", "started_at": "2026-01-01T00:00:00Z", "provider": "anthropic",
                   "model": "m-1", "workspace_root": "/w", "team_name": "t"}, "state of a session of Cline CLI"),
    ("state.json", {"version": 1, "approval": {"yolo": False}, "additional_dirs": [], "plan_mode": False},
     "state of a session of Kimi CLI"),
    ("input.jsonl", {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": []}},
     "requests of a batch"),
    ("extract-cursor.json", {"sessionId": "s", "processedOffset": 4, "updatedAt": "2026-01-01T00:00:00Z"},
     "place up to which Qwen Code has read a session"),
    ("0a.ledger.jsonl", {"v": 1, "promptId": "p1", "state": "in_flight", "at": 1},
     "ledger of the prompts of Qwen Code"),
    ("logs.json", [{"sessionId": "s", "messageId": 0, "type": "user", "message": "go", "timestamp": "2026-01-01"}],
     "messages of the user that Gemini CLI and Qwen Code list"),
    ("conversation.json", {"id": "default", "agent_id": "a", "archived": False, "summary": None,
                           "in_context_message_ids": []}, "description of a conversation of Letta Code"),
    ("manifest.json", {"schema_version": 1, "message_format": "pi-ai-message-jsonl", "provider_stack": "pi-ai"},
     "version of a conversation of Letta Code"),
    ("system-prompt.json", {"content": "You are.", "compiledAt": "2026-01-01T00:00:01Z", "rawSystemHash": "5178"},
     "system prompt of a conversation of Letta Code"),
    ("meta.json", {"session_id": "s", "parent_session_id": None, "git_commit": None, "git_branch": None,
                   "environment": {}, "title": "T"}, "description of a session of Mistral Vibe"),
    ("CURRENT", {"generation": "21", "manifest_sha256": "5178", "session_id": "s", "snapshot_sequence": 21,
                 "store_format": "mistral.vibe.unified-session-store/v1"}, "place of the newest state of Mistral Vibe"),
    ("manifest.json", {"checkpoint": {"chunks": []}, "manifest_version": 1, "recovery_journal_segment": 22,
                       "session_id": "s"}, "state of Mistral Vibe"),
    ("checkpoint.json", {"checkpoint_version": 1, "compaction_count": 0, "context": {"messages": []},
                         "turn": {"type": "idle"}}, "history of Mistral Vibe"),
    ("projection-state.json", {"projection_state_version": 1, "session_id": "s", "snapshot": {"usage": {}},
                               "watermark": 1}, "screen of Mistral Vibe"),
    ("runtime-state.json", {"actions": [], "callbacks": [], "children": [], "command_receipts": [],
                            "core_plugins": []}, "loop of Mistral Vibe"),
    ("scheduled-loops.json", {"format": "vibe.scheduled-loops/v1", "loops": []}, "timers of Mistral Vibe"),
    ("64.json", [{"message": {"role": "user", "content": []}, "source": "history", "turn_index": 0}],
     "messages that Mistral Vibe stored"),
    ("3f.json", [{"type": "message", "role": "user", "content": [], "generationStatus": "completed",
                  "inputEntryId": None, "sessionId": "s", "turnId": "t"}],
     "entries of the screen that Mistral Vibe stored"),
    ("d8.json", [{"agent_types": [], "hook_bindings": [], "knowledge_folders": [], "skills": [], "tool_groups": []}],
     "plugins that Mistral Vibe stored"),
    ("chat_history.jsonl", {"type": "user", "content": [{"type": "text", "text": "go"}], "prompt_index": 0},
     "history of Grok Build, of which updates.jsonl beside it has more"),
    ("events.jsonl", {"ts": "2026-12-01T13:07:37.737Z", "type": "turn_started", "session_id": "s", "turn_number": 0},
     "events of Grok Build"),
    ("usage.json", {"sessionId": "s", "updatedAt": "2026-12-01T13:08:17Z", "session": {"inputTokens": 5}},
     "counts of Grok Build"),
    ("signals.json", {"turnCount": 1, "userMessageCount": 1, "contextTokensUsed": 7739},
     "state of a session of Grok Build"),
    ("prompt_context.json", {"version": 1, "prompt_mode": "extend", "audience": "primary", "agents_md_files": []},
     "system prompt's parts of Grok Build"),
    ("prompt_history.jsonl", {"timestamp": "2026-12-01", "session_id": "s", "prompt": "Do it.", "is_bash": False},
     "prompts of Grok Build"),
    ("summary.json", {"info": {"id": "s", "cwd": "/w"}, "session_summary": "Do it.", "num_chat_messages": 8},
     "description of a session of Grok Build"),
    ("s.json", {"session_id": "s", "cwd": "/w", "session_state": {}}, "description of a session of Kiro CLI"),
    ("session.json", {"id": "s", "createdAt": "2026-08-06T10:00:00Z", "modelId": "auto",
                      "lastModifiedAt": "2026-08-06T10:00:00Z"}, "description of a session of Kiro"),
])
def test_a_file_that_an_agent_writes_beside_its_sessions_is_no_failure(tmp_path, name, content, what):
    (tmp_path / name).write_text(json.dumps(content))
    (alone,) = open_paths([str(tmp_path / name)]).inputs
    assert alone.error == f"{tmp_path / name}: {what}: it has no exchange of its own"
    (tmp_path / "a.har").write_text(har(entry([user("hi")], chat_body("one"))))
    found = open_paths([str(tmp_path)]).inputs[0]
    assert (found.skipped, found.notices) == (
        (), (f"{tmp_path}: files that have no exchange of their own: {what} (1)",))
    groups = list(open_each([str(tmp_path)], api=None, profile=None))
    assert [each.paths for each in groups] == [(str(tmp_path / "a.har"),)]
    report = check_paths([str(tmp_path)], selected_rules(), jobs=1)
    assert ([each for each in report.problems if each.error], report.skipped) == ([], 1)
