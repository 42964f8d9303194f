"""HAR files: what is read, what is skipped and counted, what was not recorded, and files that are damaged."""

import base64
import gzip
import json
import operator

import pytest

from inspector.config.settings import Settings
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.facts import view
from inspector.report.lines.body_slices import events_of
from inspector.sessions import open_paths
from inspector.sessions.open import open_beginning
from loop_core.values import ExchangePart, Stop, TransportEnd
from tests.scenes.bodies import (
    CHAT,
    GEMINI,
    MESSAGES,
    RESPONSES,
    assistant,
    call,
    chat_body,
    chat_stream,
    entry,
    har,
    result,
    user,
)
from tests.scenes.rows import SHARE, each_row, share

HELLO = [user("hello")]


def test_an_exchange_is_read_with_its_request_headers_and_times(load):
    source = entry(HELLO, chat_body("hi"), started="2026-03-01T10:00:00Z", max_tokens=64)
    loaded = load(har(source), "one.har")
    (exchange,) = loaded.exchanges
    assert (exchange.api, exchange.entry, exchange.url) == ("openai_chat", 0, CHAT)
    assert exchange.response.text == "hi"
    assert exchange.response.http_status == 200
    assert exchange.response.stop_reason.raw == "stop"
    assert exchange.request.max_tokens == 64
    assert exchange.request_json["messages"] == HELLO
    assert (exchange.started, exchange.duration_ms) == ("2026-03-01T10:00:00Z", 12.0)
    assert exchange.body.decode() == source["response"]["content"]["text"]
    assert ("content-type", "application/json") in exchange.headers
    (given,) = loaded.inputs
    assert (given.format, given.responses, given.error, given.skipped) == ("har", 1, None, ())


def test_entries_count_over_all_of_the_file_and_each_skip_has_its_reason(load):
    loaded = load(
        har(
            entry(None, "<html></html>", url="https://example.com/", method="GET", mime="text/html"),
            entry(HELLO, chat_body("hi")),
            entry(None, None, url=CHAT, method="OPTIONS", status=204),
            entry(None, '{"ok": true}', url="https://example.com/telemetry"),
            entry(HELLO, chat_body("again")),
        ),
        "mixed.har",
    )
    assert [exchange.entry for exchange in loaded.exchanges] == [1, 4]
    assert [skip.entry for skip in loaded.inputs[0].skipped] == [0, 2, 3]
    assert all("no LLM traffic" in skip.why for skip in loaded.inputs[0].skipped)


@each_row(
    ("url", "name"),
    [
        ("https://api.openai.com/v1/embeddings", "embeddings"),
        ("https://api.anthropic.com/v1/messages/count_tokens", "token counting"),
        ("https://api.anthropic.com/v1/messages/batches", "a batch"),
        ("https://api.mistral.ai/v1/batch/jobs/1", "a batch"),
        ("https://api.cohere.com/v1/generate", "Cohere generate"),
        ("https://generativelanguage.googleapis.com/v1beta/models/x:countTokens", "token counting"),
        ("https://generativelanguage.googleapis.com/v1beta/models/x:embedContent?key=k", "embeddings"),
        ("http://localhost:11434/api/tags", "a list of models"),
        ("https://api.openai.com/v1/models", "a list of models"),
        ("https://generativelanguage.googleapis.com/v1beta/cachedContents", "a cache of contents"),
        ("https://api.openai.com/v1/images/generations", "images"),
        ("https://api.openai.com/v1/audio/speech", "audio"),
        ("https://api.openai.com/v1/moderations", "moderation"),
        ("https://api.openai.com/v1/responses/resp_1/input_items", "OpenAI Responses, a stored item"),
        ("https://api.openai.com/v1/files/file-1/content", "files"),
        ("https://api.openai.com/v1/threads/t_1/runs", "OpenAI Assistants"),
        ("https://api.openai.com/v1/realtime/sessions", "a realtime session"),
        ("https://api.cohere.com/v2/rerank", "reranking"),
        ("https://bedrock-agent-runtime.us-east-1.amazonaws.com/retrieveAndGenerate", "Bedrock agents"),
        ("https://bedrock-agent-runtime.us-east-1.amazonaws.com/agents/session-1", "Bedrock agents"),
        ("https://api.openai.com/v1/batches", "a batch"),
        ("grpc://api.x.ai/xai_api.Chat/GetCompletion", "xAI gRPC"),
    ],
)
def test_llm_traffic_that_is_not_read_is_named(load, url, name):
    loaded = load(har(entry(HELLO, chat_body("hi")), entry(None, '{"any": 1}', url=url)))
    (skip,) = loaded.inputs[0].skipped
    assert skip.entry == 1
    assert name in skip.why
    assert "not read yet" in skip.why


@each_row(("path", "body", "why"), [
    ("/generate", '{"generated_text": "Hi.", "details": {"finish_reason": "length"}}',
     "text generation of Hugging Face (TGI): not read yet"),
    ("/generate_stream", 'data:{"token":{"text":"Hi"},"generated_text":null,"details":null}\n\n',
     "text generation of Hugging Face (TGI): not read yet"),
    ("/completion", '{"content": "Hi.", "stop": true, "stop_type": "limit", "tokens_predicted": 3}',
     "a completion in llama.cpp's own format: not read yet"),
    ("/generate", '{"image": "a"}', "no LLM traffic: POST localhost/generate"),
])
def test_llm_traffic_of_a_path_that_may_be_anything_is_told_by_its_answer(load, path, body, why):
    loaded = load(har(entry(HELLO, chat_body("hi")), entry({"prompt": "x"}, body, url=f"http://localhost{path}")))
    assert [skip.why for skip in loaded.inputs[0].skipped] == [why]


@each_row(
    ("url", "api"),
    [
        (CHAT, "openai_chat"),
        ("https://host.openai.azure.com/openai/deployments/gpt/chat/completions?api-version=2024-02-01", "openai_chat"),
        (MESSAGES, "anthropic_messages"),
        (MESSAGES + "?beta=true", "anthropic_messages"),
        (RESPONSES, "openai_responses"),
        (GEMINI, "gemini_generate"),
        ("https://bedrock-runtime.us-east-1.amazonaws.com/model/x%3A0/converse", "bedrock_converse"),
        ("http://localhost:11434/api/chat", "ollama_chat"),
        ("http://localhost:11434/api/generate", "ollama_generate"),
        ("https://api.cohere.com/v2/chat", "cohere_chat"),
        ("https://bedrock-runtime.us-east-1.amazonaws.com/model/x.y-v1%3A0/invoke", "bedrock_invoke"),
        ("https://bedrock-runtime.us-east-1.amazonaws.com/model/x.y:0/invoke-with-response-stream", "bedrock_invoke"),
        ("https://api.openai.com/v1/completions", "openai_completions"),
        ("https://api.anthropic.com/v1/complete", "anthropic_complete"),
        ("https://api.mistral.ai/v1/fim/completions", "openai_completions"),
    ],
)
def test_the_api_is_found_from_the_path_before_any_content(load, url, api):
    error = '{"error": {"message": "no", "type": "invalid_request_error"}}'
    loaded = load(har(entry(HELLO, error, url=url, status=400)))
    assert [exchange.api for exchange in loaded.exchanges] == [api]
    assert loaded.exchanges[0].response.stop_reason.normalized is Stop.ERROR


def test_the_api_is_found_from_the_content_where_the_path_says_nothing(load):
    loaded = load(
        har(entry(HELLO, chat_stream("hello you"), url="https://gateway.example.com/llm", mime="text/event-stream"))
    )
    assert [(each.api, each.response.text) for each in loaded.exchanges] == [("openai_chat", "hello you")]


def test_a_path_that_others_use_too_yields_to_the_content(load):
    url, stream = "https://api.example.com/v1/chat", chat_stream("hello you")
    loaded = load(har(entry(HELLO, chat_body("hi"), url=url), entry(HELLO, stream, url=url, mime="text/event-stream"),
                        entry(HELLO, "{}", url=url)))
    assert [(each.api, each.response.text) for each in loaded.exchanges] == [
        ("openai_chat", "hi"), ("openai_chat", "hello you"), ("cohere_chat", None)]


def test_a_chat_application_of_its_own_is_no_llm_traffic(load):
    own = entry(
        None,
        '{"items": [{"from": "bob"}]}',
        url="https://chat.example.com/v1/messages",
        request={"room": 5, "text": "hi"},
    )
    loaded = load(har(own, entry(HELLO, chat_body("hi"))))
    assert [skip.entry for skip in loaded.inputs[0].skipped] == [0]


@pytest.mark.parametrize(("path", "asks", "word", "skips"), [
    ("chat", {"messages": []}, "load", 1), ("chat", {"messages": [{"role": "user", "content": "hi"}]}, "load", 0),
    ("chat", {"messages": []}, "stop", 0), ("generate", {"keep_alive": 0}, "unload", 1),
    ("generate", {"prompt": "hi"}, "unload", 0),
])
def test_a_request_that_only_loads_a_model_asks_for_no_answer(load, path, asks, word, skips):
    """`ollama run` begins with one; its turn ended in UNKNOWN REASON, with the advice to send it again."""
    said = {"message": {"role": "assistant", "content": ""}} if path == "chat" else {"response": ""}
    body = json.dumps({"model": "m", **said, "done": True, "done_reason": word})
    url = f"http://localhost:11434/api/{path}"
    loaded = load(har(entry(HELLO, chat_body("hi")), entry(None, body, url=url, request={"model": "m", **asks})))
    assert [skip.why for skip in loaded.inputs[0].skipped] == [
        "a request that only loads or unloads a model: it asks for no answer"] * skips
    assert len(loaded.exchanges) == 2 - skips


@pytest.mark.parametrize("path", ["tracing/batches", "tracing/ephemeral/batches"])
def test_traces_that_are_sent_in_batches_are_no_llm_traffic(load, path):
    loaded = load(har(entry(HELLO, chat_body("hi")), entry(None, '{"any": 1}', url=f"https://app.example.com/{path}")))
    (skip,) = loaded.inputs[0].skipped
    assert skip.why == f"no LLM traffic: POST app.example.com/{path}"


def test_base64_bodies_are_decoded(load):
    body = chat_body("grün")
    held = {
        "size": 1,
        "mimeType": "application/json",
        "encoding": "base64",
        "text": base64.b64encode(body.encode()).decode(),
    }
    loaded = load(har(entry(HELLO, None, content=held)))
    assert loaded.exchanges[0].response.text == "grün"


def test_a_body_that_the_recorder_left_compressed_is_unpacked(load):
    packed = base64.b64encode(gzip.compress(chat_body("packed").encode())).decode()
    held = {"size": 1, "mimeType": "application/json", "encoding": "base64", "text": packed}
    loaded = load(har(entry(HELLO, None, content=held, response_headers={"content-encoding": "gzip"})))
    assert loaded.exchanges[0].response.text == "packed"


@pytest.mark.parametrize("packed", [True, False])
def test_the_pieces_of_a_body_that_polly_recorded_are_one_body(load, packed):
    body = chat_body("whole").encode()
    sent = gzip.compress(body) if packed else body
    pieces = [sent[:10], sent[10:200], sent[200:]]  # the first ends in padding, behind which base64 is not read on
    text = json.dumps([base64.b64encode(piece).decode() for piece in pieces])
    held = {"size": len(text), "mimeType": "application/json", "encoding": "base64", "text": text}
    headers = {"content-encoding": "gzip"} if packed else {}
    (exchange,) = load(har(entry(HELLO, None, content=held, response_headers=headers))).exchanges
    assert (exchange.response.text, exchange.response.stop_reason.raw, exchange.body) == ("whole", "stop", body)
    assert not exchange.cut_after


@pytest.mark.parametrize(("text", "coding", "why"), [
    ("A", "", "its body is not valid base64"),
    (base64.b64encode(b"\x1f\x8b\x08\x00 no gzip").decode(), "gzip", "its body is compressed and damaged"),
])
def test_an_answer_that_cannot_be_unpacked_is_a_turn_of_unknown_end(load, text, coding, why):
    """Else a lost answer would stand beside the others as an entry that no model was asked by."""
    held = {"size": 1, "mimeType": "application/json", "encoding": "base64", "text": text}
    loaded = load(har(entry(HELLO, None, content=held, response_headers={"content-encoding": coding}),
                        entry(HELLO, chat_body("x"))))
    assert loaded.inputs[0].skipped == ()
    lost = loaded.exchanges[0]
    assert (lost.recorded, lost.response.stop_reason.normalized, lost.response.parts) == (False, Stop.UNKNOWN, ())
    assert [(seen.rule, seen.note) for seen in lost.response.stop_reason.evidence] == [("damaged_body", why)]
    verdict = view(replay(open_case(loaded))).turns[0].verdict
    assert (verdict.word, verdict.sentence) == (
        "NOT RECORDED", f"openai_chat (openai): {why}, so how the answer ended is not known")


PAGE = "<html><body>Sign in to go on</body></html>"


def test_a_page_in_place_of_an_answer_is_a_failed_turn_with_its_bytes(load):
    loaded = load(har(entry(HELLO, chat_body("x")), entry(HELLO, PAGE)))
    exchange = loaded.exchanges[1]
    error = exchange.response.error
    assert (exchange.response.stop_reason.normalized, error.type) == (Stop.ERROR, "unreadable_body")
    assert error.message == f"the body is not an answer: it begins with {PAGE!r}"
    [seen] = exchange.response.stop_reason.evidence
    assert exchange.body[seen.at.start : seen.at.end] == PAGE.encode()
    shown = view(replay(open_case(loaded), Settings(profile="vllm")))  # another profile decodes it again
    assert [turn.verdict.word for turn in shown.turns] == ["COMPLETE", "ERROR"]
    assert shown.turns[1].verdict.advice.text.startswith("look at what answered instead of the model")
    assert events_of(exchange)[1] == "not an answer of this format"


@each_row(("url", "body"), [
    ("https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-3-haiku/converse-stream",
     {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}),
    ("https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-3-haiku/invoke",
     {"max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}),
    ("https://api.cohere.com/v2/chat", {"model": "command-r", "messages": [{"role": "user", "content": "hi"}]}),
    ("http://localhost:11434/api/chat", {"model": "m", "messages": [{"role": "user", "content": "hi"}]}),
    ("http://localhost:11434/api/generate", {"model": "m", "prompt": "hi"}),
])
def test_a_page_from_the_address_of_a_known_server_is_a_failed_turn_in_any_format(load, url, body):
    request = {"method": "POST", "url": url, "headers": [],
               "postData": {"mimeType": "application/json", "text": json.dumps(body)}}
    page = {"status": 200, "headers": [], "content": {"mimeType": "text/html", "text": PAGE}}
    [exchange] = load(json.dumps({"log": {"entries": [{"request": request, "response": page}]}})).exchanges
    assert (exchange.response.error.type, exchange.body) == ("unreadable_body", PAGE.encode())


@pytest.mark.parametrize(("url", "sent"), [
    ("https://shop.example/api/chat", HELLO),  # many applications have that path, with answers of their own
    (CHAT, []),
])
def test_a_page_that_no_model_was_asked_for_is_an_entry_that_is_not_read(load, url, sent):
    loaded = load(har(entry(HELLO, chat_body("x")), entry(sent, PAGE, url=url)))
    assert len(loaded.exchanges) == 1
    assert [skip.entry for skip in loaded.inputs[0].skipped] == [1]


@pytest.mark.parametrize(
    "content",
    [
        {"size": 0, "mimeType": "text/event-stream"},
        {"size": 0, "mimeType": "text/event-stream", "text": ""},
        {"size": 5120, "mimeType": "text/event-stream; charset=utf-8"},
        {"size": 0, "mimeType": "application/json", "text": ""},
        {},
    ],
)
def test_a_body_that_was_not_recorded_is_said_to_be_so_and_never_truncated(load, content):
    loaded = load(har(entry(HELLO, None, content=content, stream=True)))
    (exchange,) = loaded.exchanges
    assert not exchange.recorded
    stop = exchange.response.stop_reason
    assert (stop.normalized, stop.raw, stop.detail) == (Stop.UNKNOWN, None, "not_recorded")
    assert [evidence.rule for evidence in stop.evidence] == ["not_recorded"]
    assert stop.evidence[0].at.part is ExchangePart.BODY
    assert exchange.response.streaming
    assert exchange.request.messages


def test_an_error_without_a_body_is_an_error_and_not_an_unrecorded_body(load):
    (exchange,) = load(har(entry(HELLO, None, status=502))).exchanges
    assert exchange.recorded
    assert exchange.response.stop_reason.normalized is Stop.ERROR


@each_row("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_an_error_that_names_its_address_and_no_unrecorded_body(load, status):
    moved = {"Location": "https://api.example.com/v2/chat/completions?api_key=secret123"}
    source = entry(HELLO, None, status=status, response_headers=moved)
    (exchange,) = load(har(source), "moved.har").exchanges
    assert exchange.recorded
    assert exchange.response.stop_reason.normalized is Stop.ERROR
    assert f"HTTP {status} redirects to https://api.example.com/v2/chat/completions" in exchange.response.error.message
    assert "secret123" not in exchange.response.error.message


def test_a_browsers_own_field_names_the_address_where_no_header_does(load):
    source = entry(HELLO, None, status=308)
    source["response"]["redirectURL"] = "https://api.example.com/v2/chat/completions"
    (exchange,) = load(har(source), "moved.har").exchanges
    assert "to https://api.example.com/v2/chat/completions" in exchange.response.error.message


def test_a_length_of_zero_is_an_empty_body_that_was_recorded(load):
    (exchange,) = load(har(entry(HELLO, "", response_headers={"Content-Length": "0"}))).exchanges
    assert exchange.recorded
    assert exchange.response.stop_reason.normalized is Stop.INTERRUPTED


def test_a_connection_that_failed_in_the_browser_is_interrupted(load):
    failed = entry(HELLO, None, status=0)
    failed["response"]["_error"] = "net::ERR_CONNECTION_RESET"
    (exchange,) = load(har(failed)).exchanges
    assert exchange.recorded
    assert exchange.response.stop_reason.normalized is Stop.INTERRUPTED
    assert exchange.response.transport_end is TransportEnd.ABORTED


def test_odd_entries_are_skipped_and_the_rest_is_read(load):
    document = json.loads(har(entry(HELLO, chat_body("a"))))
    document["log"]["entries"][:0] = [None, 5, {}, {"request": {"url": 7}, "response": {}}]
    loaded = load(json.dumps(document))
    assert [exchange.entry for exchange in loaded.exchanges] == [4]
    assert [skip.entry for skip in loaded.inputs[0].skipped] == [0, 1, 2, 3]


# -- damaged files ----------------------------------------------------------------------------------------------------


def test_a_har_that_is_cut_gives_its_complete_entries_and_the_place_of_the_cut(load):
    whole = har(*(entry(HELLO, chat_body(f"answer {number}")) for number in range(5)))
    third = whole.index("answer 3")
    loaded = load(whole[:third], "cut.har")
    *complete, begun = loaded.exchanges
    assert [exchange.response.text for exchange in complete] == ["answer 0", "answer 1", "answer 2"]
    assert begun.request.messages[0].text == "hello"
    assert begun.response.stop_reason.detail == "recording_cut"
    (given,) = loaded.inputs
    assert given.responses == 4
    begins = [n for n in range(len(whole)) if whole.startswith('{"time"', n)][3]
    assert f"inside HAR entry 4, which begins at byte {begins} of {third}" in given.error
    assert "complete entries: 3" in given.error
    assert "cut.har" in given.error
    assert "\n" not in given.error


@pytest.mark.parametrize("make", [chat_body, chat_stream])
def test_a_har_cut_at_every_byte_never_raises_and_blames_no_server_for_its_cut(load, make):
    whole = har(entry(HELLO, make("größe")), entry(HELLO, make("zwei"))).encode()
    cuts = 0
    for end in share(range(0, len(whole), 7)):
        loaded = load(whole[:end], "cut.har")
        assert loaded.inputs[0].error
        for position, exchange in enumerate(loaded.exchanges):
            stop = exchange.response.stop_reason
            if stop.normalized is Stop.UNKNOWN:
                cuts += 1
                assert stop.detail == "recording_cut"
                assert position == len(loaded.exchanges) - 1
                assert (exchange.response.text or "") in ("größe", "zwei")[position]
            else:
                assert (stop.normalized, stop.raw) == (Stop.END_TURN, "stop")
            assert exchange.request is None or [said.text for said in exchange.request.messages] == ["hello"]
    assert cuts > (0 if SHARE else 4)


def test_a_number_that_is_cut_is_no_number(load):
    whole = har(entry(HELLO, chat_body("one"), status=500))
    (exchange,) = load(whole[: whole.index('"status": 500') + len('"status": 50')], "cut.har").exchanges
    assert exchange.response.http_status is None


def test_a_har_that_is_cut_between_its_entries_says_so_of_the_last(load):
    whole = har(entry(HELLO, chat_body("one")), entry(HELLO, chat_body("two")))
    second = whole.index('{"time"', whole.index("one"))
    (exchange,) = load(whole[:second], "cut.har").exchanges
    assert exchange.cut_after
    assert not any(each.cut_after for each in load(whole, "whole.har").exchanges)


@each_row(("content", "body_size", "length", "cut"), [
    ({"size": 5000}, -1, None, True),  # the recorder counts more than it kept
    ({"comment": "Body truncated: too large"}, -1, None, True),
    ({}, 5000, "5000", True),  # all bytes came, by its own count and the server's
    ({}, 5000, None, False),  # a count of the wire, which chunks and codings make larger
    ({}, -1, "5000", False),  # fewer came than were announced: the server's doing
    ({"comment": "from cache"}, -1, None, False),
])
def test_a_body_that_the_recorder_did_not_keep_whole_is_no_cut_of_the_server(load, content, body_size, length, cut):
    body = chat_stream("hello world")
    body = body[: body.index("\n\n") + 30]
    headers = {} if length is None else {"Content-Length": length}
    source = entry(HELLO, body, content={"size": len(body), **content, "text": body}, response_headers=headers)
    source["response"]["bodySize"] = body_size
    (exchange,) = load(har(source)).exchanges
    assert exchange.response.stop_reason.normalized is (Stop.UNKNOWN if cut else Stop.INTERRUPTED)
    assert exchange.response.text == "hello"


def test_a_connection_that_failed_is_so_whatever_was_kept(load):
    body = chat_stream("hello world")
    body = body[: body.index("\n\n") + 30]
    source = entry(HELLO, body, content={"size": 9000, "text": body})
    source["response"]["_error"] = "net::ERR_CONNECTION_RESET"
    (exchange,) = load(har(source)).exchanges
    assert exchange.response.stop_reason.normalized is Stop.INTERRUPTED


def test_invalid_utf8_in_a_har_is_reported_with_its_byte_and_the_entries_are_read(load):
    whole = har(entry(HELLO, chat_body("abcdef"))).encode()
    at = whole.index(b"abcdef") + 2
    loaded = load(whole[:at] + b"\xff" + whole[at + 1 :], "bad.har")
    assert f"invalid UTF-8 at byte {at}" in loaded.inputs[0].error
    assert [exchange.response.text for exchange in loaded.exchanges] == ["ab\ufffddef"]


def test_a_lone_surrogate_is_valid_json_and_is_read(load):
    loaded = load(har(entry(HELLO, chat_body("x"))).replace("hello", "\\ud83d"), "surrogate.har")
    assert loaded.inputs[0].error is None
    assert len(loaded.exchanges) == 1


def test_a_byte_order_mark_and_odd_headers_do_no_harm(load):
    odd = entry(HELLO, chat_body("x"))
    odd["request"]["headers"] += [{"name": "a", "value": None}, {"name": "b"}, 7]
    (exchange,) = load("\ufeff" + har(odd), "bom.har").exchanges
    assert ("a", "None") in exchange.request_headers


def test_a_har_without_entries_is_one_clear_line(load):
    assert "/log/entries" in load('{"log": {"version": "1.2"}}', "no.har").inputs[0].error


def test_a_har_without_any_llm_traffic_is_read_and_says_so(load):
    (given,) = load(har(entry(None, "{}", url="https://example.com/api")), "other.har").inputs
    assert given.error is None
    assert "no exchange of an API that is read among its 1 HAR entry (number 1: " in given.notices[0]


# -- a given API ------------------------------------------------------------------------------------------------------


def test_a_wrong_api_is_one_clear_line_that_names_the_right_one(load):
    (given,) = load(har(entry(HELLO, chat_body("x"))), "x.har", api="anthropic_messages").inputs
    assert "HAR entry 1 is openai_chat, not anthropic_messages: expected `--api openai_chat`" in given.error


def test_a_given_api_reads_its_own_entries_and_skips_the_others(load):
    said = json.dumps(
        {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "c",
            "content": [],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    )
    loaded = load(
        har(entry(HELLO, chat_body("x")), entry(HELLO, said, url=MESSAGES)), "x.har", api="anthropic_messages"
    )
    assert [exchange.entry for exchange in loaded.exchanges] == [1]
    assert loaded.inputs[0].error is None
    assert "openai_chat" in loaded.inputs[0].skipped[0].why


def test_an_unknown_api_is_the_callers_error(tmp_path):
    from loop_core.errors import CallerError

    with pytest.raises(CallerError, match="openai_chat"):
        open_paths([], api="openai")


@each_row("odd", [10**400, -1, True, "12", None, 1e999])
def test_a_time_that_is_no_time_is_none(load, odd):
    source = {**entry(HELLO, chat_body("hi")), "time": odd}
    (exchange,) = load(har(source), "odd.har").exchanges
    assert exchange.duration_ms is None


def test_arguments_with_half_a_character_are_read_and_held(load):
    """A lone surrogate is no text to the fast parser; JavaScript writes one when it cuts a string."""
    calls = [{"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"q": "\ud83d"}'}}]
    body = chat_body(None, "tool_calls", *calls)
    history = [*HELLO, {"role": "assistant", "content": None, "tool_calls": calls},
               {"role": "tool", "tool_call_id": "call_1", "content": "seen"}]
    loaded = load(har(entry(HELLO, body), entry(history, chat_body("done"))), "half.har")
    assert [len(turn.links) for turn in loaded.turns] == [2]


def test_a_turn_that_goes_on_in_another_file_says_only_that_its_own_file_has_no_later_answer(tmp_path):
    """Files are not joined by their histories, which may be alike: the later answer is a turn of its own."""
    (tmp_path / "1.har").write_text(har(entry(HELLO, chat_body(None, "tool_calls", call()))))
    (tmp_path / "2.har").write_text(har(entry([*HELLO, assistant(None, call()), result("done")], chat_body("Done."))))
    first, second = view(replay(open_case(open_paths([str(tmp_path / "1.har"), str(tmp_path / "2.har")])),
                                Settings())).turns
    assert first.verdict.sentence.endswith("asks for look, and no later answer of this turn is in its file")
    assert second.verdict.word == "COMPLETE"


@pytest.mark.parametrize("indent", [None, 1])
def test_the_whole_entries_of_a_beginning_are_a_har(tmp_path, indent):
    entries = [entry([user(f"question {number} ü")], chat_body(f"answer {number}")) for number in range(3)]
    path = tmp_path / "large.har"
    path.write_text(json.dumps(json.loads(har(*entries)), indent=indent, ensure_ascii=False), encoding="utf-8")
    data = path.read_bytes()
    third = data.index(b"question 2")
    for size, answers in (third, 2), (third + 12, 2), (len(data), 3):  # the second size ends within a character
        begun = open_beginning(str(path), size)
        assert [each.response.text for each in begun.exchanges] == [f"answer {number}" for number in range(answers)]
        assert begun.exchanges[0].request_json["messages"] == [user("question 0 ü")]
        assert (begun.inputs[0].error, begun.inputs[0].notices, begun.exchanges[-1].cut_after) == (None, (), False)
    assert open_beginning(str(path), data.index(b"question 0")) is None, "no entry is whole"
    assert open_beginning(str(path), 10) is None, "the entries have not begun"


def test_exchanges_share_the_headers_and_the_profile_that_are_alike(load):
    entries = (entry([user(word)], chat_body(word), model="gpt-4o") for word in ("one", "two"))
    first, second = load(har(*entries)).exchanges
    assert first.profile.context_size == 128_000, "not the row of the table: that of the model"
    assert first.profile is second.profile
    assert first.headers == second.headers != ()
    assert all(map(operator.is_, first.headers, second.headers))
