"""Files that keep the provider's own bytes: mitmproxy's flows and cassettes in YAML."""

from __future__ import annotations

import base64
import gzip
import json
import re
from copy import deepcopy
from typing import Any

import pytest

from inspector.sessions import open_paths
from inspector.sessions.importers.mitmproxy import _value
from inspector.sessions.importers.vcr import parse_documents
from inspector.sessions.intake import most, set_maximum
from loop_core.values import Message, Role, Stop, TextPart
from tests.scenes.rows import each_row
from tests.scenes.shapes import FLOW, tnetstring

URL = "https://api.openai.com/v1/chat/completions"
ASKED = '{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}'
SAID = ('{"id": "c", "object": "chat.completion", "model": "m", "choices": [{"index": 0, "finish_reason": "length",'
        ' "message": {"role": "assistant", "content": "hi"}}], "usage": {"prompt_tokens": 3, "completion_tokens": 9}}')


def flow(content: Any = SAID, coding: str = "", **more: Any) -> bytes:
    value = deepcopy(FLOW)
    value["request"]["content"] = ASKED.encode()
    value["response"]["content"] = content.encode() if isinstance(content, str) else content
    value["response"]["headers"] += [[b"content-encoding", coding.encode()]] if coding else []
    return tnetstring(value | more)


def cassette(*bodies: str, request: str = "'" + ASKED + "'") -> str:
    parts = [f"- request:\n    body: {request}\n    headers: {{accept: ['*/*']}}\n    method: POST\n    uri: {URL}\n"
             f"  response:\n    body: {body}\n    headers: {{content-encoding: [gzip]}}\n"
             "    status: {code: 200, message: OK}\n" for body in bodies]
    return "interactions:\n" + "".join(parts) + "version: 1\n"


def test_the_request_of_a_pair_is_read_though_the_file_ends_in_its_answer(tmp_path):
    text = json.dumps({"request": {"url": URL, "body": json.loads(ASKED)}, "response": {"status": 200, "body": SAID}})
    path = tmp_path / "pair.json"
    path.write_text(text[: text.index("finish_reason")])
    (exchange,) = open_paths([str(path)]).exchanges
    assert exchange.request is not None
    assert exchange.request.model == "m"
    assert exchange.request.messages == (Message(Role.USER, (TextPart("go"),)),)
    assert exchange.request.max_tokens == 9


def words(seen: Any) -> list[str | None]:
    """The providers' words."""
    return [each.response.stop_reason.raw for each in seen.exchanges]


def binary(data: bytes) -> str:
    return f"{{string: !!binary '{base64.b64encode(data).decode()}'}}"


# -- mitmproxy ---------------------------------------------------------------------------------------------------------


def test_a_flow_is_the_providers_own_answer(load):
    seen = load(flow() + flow(gzip.compress(SAID.encode()), "gzip"), "a.mitm")
    assert seen.inputs[0].format == "mitmproxy"
    assert words(seen) == ["length", "length"]
    one = seen.exchanges[0]
    assert (one.url, one.request.max_tokens) == (URL, 9)
    assert (one.started, one.duration_ms) == ("2023-11-14T22:13:20.500000Z", 1500)


def test_older_flows_have_keys_of_bytes_and_a_version_that_is_a_list(load):
    def old_form(value: Any) -> Any:
        if isinstance(value, dict):
            return {name.encode(): old_form(each) for name, each in value.items()}
        return [old_form(each) for each in value] if isinstance(value, list) else value

    value = json.loads(json.dumps(FLOW))
    value["version"] = [0, 18]
    value["response"]["content"] = SAID.encode()
    assert words(load(tnetstring(old_form(value)), "a.mitm")) == ["length"]


def test_a_body_that_streamed_through_was_not_recorded(load):
    seen = load(flow(None) + flow(), "a.mitm")
    assert words(seen) == [None, "length"]
    assert seen.exchanges[0].response.stop_reason.normalized.value == "unknown"


def test_a_flow_that_failed_was_aborted(load):
    seen = load(flow(response=None, error={"msg": "server went away"}), "a.mitm")
    assert seen.exchanges[0].response.stop_reason.raw is None
    assert seen.exchanges[0].response.stop_reason.normalized.value != "end_turn"


def test_a_cut_tail_keeps_what_was_read(load):
    seen = load(flow() + flow()[:-40], "a.mitm")
    assert words(seen) == ["length"]
    assert "cut inside a flow" in seen.inputs[0].notices[0]
    assert "cut inside the first one" in load(flow()[:-40], "b.mitm").inputs[0].error


@pytest.mark.parametrize("broken", [b"99999999999999:x", b"5:hello?", b"x" * 20])
def test_damage_behind_a_flow_costs_only_what_follows(load, broken):
    assert words(load(flow() + broken, "a.mitm")) == ["length"]


def test_values_that_nest_without_end_are_one_lost_flow(load):
    deep = b"0:~"
    for _ in range(5000):
        deep = f"{len(deep)}:".encode() + deep + b"]"
    seen = load(flow(metadata={}) + tnetstring(FLOW)[:0] + deep + flow(), "a.mitm")
    assert words(seen) == ["length", "length"]
    assert len(seen.inputs[0].skipped) == 1


@pytest.mark.parametrize("apart", [False, True])
def test_the_answers_of_a_websocket_are_read(load, apart):
    made = {"type": "response.completed", "response": {"id": "r", "object": "response", "status": "completed",
                                                       "model": "m", "output": []}}
    messages = [[1, True, b'{"type": "response.create", "model": "m", "input": "go"}', 1700000001.0, False, False],
                [1, False, json.dumps(made).encode(), 1700000002.0, False, False]]
    request = {**FLOW["request"], "path": "/v1/responses"}
    if apart:
        data = flow(None, request=request, metadata={"websocket": True}) + tnetstring(
            {"version": 7, "type": "websocket", "metadata": {"websocket_handshake": "f"}, "messages": messages})
    else:
        data = flow(None, request=request, websocket={"messages": messages})
    seen = load(data, "a.mitm")
    assert [each.api for each in seen.exchanges] == ["openai_responses"]
    assert seen.exchanges[0].response.stop_reason.raw == "completed"


def test_flows_that_are_no_http_are_named(load):
    seen = load(tnetstring({"version": 21, "type": "tcp", "messages": []}), "a.mitm")
    assert seen.inputs[0].error is None
    assert seen.inputs[0].skipped[0].why.startswith("a tcp flow")


# -- traces of Go ------------------------------------------------------------------------------------------------------


def trace(*answers: bytes, line: bytes = b"POST https://api.openai.com/v1/chat/completions HTTP/1.1\r\n") -> bytes:
    """A trace as Go's `httprr` writes it."""
    asked = line + b"Authorization: Bearer sk-abcdefghijklmnopqrstuvwx\r\n\r\n" + ASKED.encode()
    return b"httprr trace v1\n" + b"".join(
        b"%d %d\n%s%s" % (len(asked), len(answer), asked, answer) for answer in answers)


def reply(body: bytes = SAID.encode(), *headers: bytes, status: bytes = b"200 OK") -> bytes:
    return b"\r\n".join([b"HTTP/2.0 " + status, *headers, b"", body])


def test_a_trace_of_go_holds_the_providers_answers(load):
    chunks = b"".join(b"%x;a=b\r\n%s\r\n" % (len(each), each) for each in (SAID[:30].encode(), SAID[30:].encode()))
    seen = load(trace(
        reply(), reply(chunks + b"0\r\n\r\n", b"Transfer-Encoding: chunked"),
        reply(gzip.compress(SAID.encode()), b"Content-Encoding: gzip"),
        reply(b'{"error": {"message": "no"}}', status=b"429 Too Many Requests")), "a.httprr")
    assert (seen.inputs[0].format, seen.inputs[0].error) == ("httprr", None)
    assert words(seen) == ["length", "length", "length", None]
    assert [each.body for each in seen.exchanges][:3] == [SAID.encode()] * 3
    assert seen.exchanges[3].response.error.message == "no"
    assert (seen.exchanges[0].request.max_tokens, seen.exchanges[0].url) == (9, URL)
    assert "sk-abc" not in str(seen.exchanges[0].request_headers)


def test_a_target_without_a_host_is_that_of_the_header(load):
    line = b"POST /v1/chat/completions HTTP/1.1\r\nHost: api.openai.com\r\n"
    assert load(trace(reply(), line=line), "a.httprr").exchanges[0].url == URL


def test_of_a_cut_trace_what_is_there_is_read(load):
    whole = trace(reply(), reply())
    for end in range(len(whole) - len(reply()) + 1, len(whole)):
        seen = load(whole[:end], "a.httprr")
        assert "cut inside a response" in seen.inputs[0].error
        assert words(seen)[0] == "length"
        assert seen.exchanges[1].response.stop_reason.detail == "recording_cut" or words(seen)[1] == "length"
    seen = load(whole[: len(trace(reply())) + 30], "b.httprr")
    assert (words(seen), "cut inside a request" in seen.inputs[0].error) == (["length"], True)
    seen = load(trace(reply()) + b"x", "c.httprr")
    assert (words(seen), "expected the lengths" in seen.inputs[0].error) == (["length"], True)


# -- cassettes ---------------------------------------------------------------------------------------------------------


def test_a_cassette_of_vcrpy_is_the_providers_own_answer(load):
    packed = gzip.compress(SAID.encode())
    seen = load(cassette(f"{{string: '{SAID}'}}", binary(packed)), "a.yaml")
    assert (seen.inputs[0].format, seen.inputs[0].error) == ("vcr", None)
    assert words(seen) == ["length", "length"]
    assert seen.exchanges[1].request.max_tokens == 9


def test_a_request_without_a_body_is_no_text(load):
    seen = load(cassette(f"{{string: '{SAID}'}}", request="null"), "a.yaml")
    assert seen.exchanges[0].request is None


def test_cassettes_of_ruby_are_read(load):
    body = f"{{encoding: ASCII-8BIT, base64_string: '{base64.b64encode(gzip.compress(SAID.encode())).decode()}'}}"
    new = cassette(body).replace("interactions:", "http_interactions:").replace("version: 1", "recorded_with: VCR 6")
    assert words(load("---\n" + new, "a.yml")) == ["length"]
    old = (f"--- \n- !ruby/struct:VCR::HTTPInteraction \n  request: !ruby/struct:VCR::Request \n    method: :post\n"
           f"    uri: {URL}\n    body: '{ASKED}'\n    headers: \n  response: !ruby/struct:VCR::Response \n"
           f"    status: !ruby/struct:VCR::ResponseStatus \n      code: 200\n      message: OK\n    headers: \n"
           f"    body: '{SAID}'\n    http_version: \"1.1\"\n")
    seen = load(old, "b.yml")
    assert words(seen) == ["length"]
    assert seen.exchanges[0].request.max_tokens == 9


def test_a_binary_body_in_a_cassette_of_datadog_is_read(load):
    body = base64.b64encode(gzip.compress(SAID.encode())).decode()
    pair = {"request": {"method": "POST", "url": URL, "headers": {}, "body": ASKED}, "response": {
        "status": {"code": 200}, "headers": {"content-encoding": "gzip"}, "body": f"base64:{body}"}}
    assert words(load(json.dumps(pair), "a.json")) == ["length"]
    pair["response"]["body"] = "base64:abc"
    assert "not valid base64" in str(load(json.dumps(pair), "b.json").exchanges[0].response.stop_reason)


STORED = """
interactions:
- request:
    method: POST
    uri: https://api.openai.com/v1/chat/completions
    headers: {}
    parsed_body: {max_tokens: 9, temperature: 1.5, stream: false, user: null, messages: [{role: user, content: '12'}]}
  response:
    status: {code: 200}
    headers: {}
    parsed_body:
      id: c1
      object: chat.completion
      top: [&one {a: 1e-05, b: true, c: "true", d: 01, e: !!binary aGk=}, *one]
      choices: [{index: 0, finish_reason: length, message: {role: assistant, content: "Done: 7"}}]
      usage: {prompt_tokens: 3, completion_tokens: 9}
"""


@pytest.mark.parametrize(("code", "status"), [
    ("503", 503), ("'503'", 503), ("'\u00b2\u00b2\u00b2'", None), ("'999'", 999), ("'1000'", None),
    pytest.param("'" + "4" * 5_000 + "'", None, id="endless")])
def test_a_status_is_a_number_of_three_digits(load, code, status):
    (exchange,) = load(STORED.replace("{code: 200}", f"{{code: {code}}}"), "a.yaml").exchanges
    assert exchange.response.http_status == status


def test_the_values_of_a_body_are_its_json_again(load):
    seen = load(STORED, "a.yaml")
    (exchange,) = seen.exchanges
    assert (exchange.response.raw_stop_reason, exchange.response.text) == ("length", "Done: 7")
    assert (exchange.request.max_tokens, exchange.response.usage.output_tokens) == (9, 9)
    assert exchange.request_json == {"max_tokens": 9, "temperature": 1.5, "stream": False, "user": None,
                                     "messages": [{"role": "user", "content": "12"}]}
    assert json.loads(exchange.body)["top"] == [{"a": 1e-05, "b": True, "c": "true", "d": "01", "e": "hi"}] * 2
    assert any("bodies were stored as values (parsed_body)" in notice for notice in seen.inputs[0].notices)
    assert not load(cassette(f"{{string: '{SAID}'}}"), "b.yaml").inputs[0].notices


def test_values_that_anchors_repeat_are_bounded(load):
    steps = "".join(f", &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}, *a{n - 1}]" for n in range(1, 24))
    seen = load(STORED.replace("c: \"true\"", f"c: [&a0 x{steps}]"), "a.yaml")
    assert not seen.exchanges
    assert "which is not read: --max-bytes" in seen.inputs[0].skipped[0].why


GEMINI = "https://generativelanguage.googleapis.com/v1beta/"
MODEL = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/"


@each_row(("method", "url", "body", "why"), [
    ("DELETE", "https://api.openai.com/v1/responses/resp_1", '{"id": "resp_1", "object": "response", "deleted": true}',
     "no LLM traffic: DELETE /v1/responses/resp_1"),
    ("POST", GEMINI + "cachedContents", '{"name": "cachedContents/a", "usageMetadata": {"totalTokenCount": 9}}',
     "a cache of contents: not read yet"),
    ("PATCH", GEMINI + "cachedContents/a", '{"name": "cachedContents/a", "usageMetadata": {"totalTokenCount": 9}}',
     "a cache of contents: not read yet"),
    ("POST", MODEL + "amazon.titan-embed-text-v2%3A0/invoke", '{"inputTextTokenCount": 3, "embedding": [0.5]}',
     "embeddings: not read yet"),
    ("POST", MODEL + "us.cohere.embed-v4%3A0/invoke", '{"id": "a", "embeddings": {"float": [[0.5]]}}',
     "embeddings: not read yet"),
    ("POST", MODEL + "arn%3Aaws%3Abedrock%3Aprofile%2Fa/invoke", '{"embedding": [0.5], "inputTextTokenCount": 3}',
     "embeddings: not read yet"),
    ("POST", "https://us-east1-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/"
     "text-embedding-005:predict", '{"predictions": [{"embeddings": {"values": [0.5]}}]}', "embeddings: not read yet"),
    ("POST", "https://us-east1-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/"
     "imagen-4.0-generate-001:predict", '{"predictions": [{"mimeType": "image/png"}]}', "images: not read yet"),
    ("POST", "https://api.venice.ai/api/v1/image/generate", '{"id": "a", "images": ["YQ=="]}', "images: not read yet"),
    ("POST", "https://api.openai.com/v1/responses/compact",
     '{"id": "r", "object": "response.compaction", "output": [{"type": "compaction", "encrypted_content": "a"}]}',
     "a compaction of OpenAI Responses: not read yet"),
    ("POST", "https://api.replicate.com/v1/models/meta/llama/predictions", '{"id": "a", "status": "starting"}',
     "Replicate: not read yet"),
    ("GET", "https://api.replicate.com/v1/predictions/a1b2", '{"id": "a1b2", "output": ["a"]}',
     "Replicate: not read yet"),
    ("POST", "https://runtime.sagemaker.eu-west-1.amazonaws.com/endpoints/mine/invocations",
     '[{"generated_text": "a"}]', "a SageMaker endpoint: not read yet"),
    ("POST", "https://api.aleph-alpha.com/complete", '{"completions": [{"completion": "a"}]}',
     "Aleph Alpha: not read yet"),
    ("POST", "https://api.ai21.com/studio/v1/j2-ultra/complete",
     '{"completions": [{"data": {"text": "a"}, "finishReason": {"reason": "endoftext"}}]}',
     "AI21 Jurassic: not read yet"),
    ("POST", "https://api.mistral.ai/v1/ocr", '{"pages": [{"index": 0, "markdown": "a"}]}',
     "text recognition (OCR): not read yet"),
])
def test_what_asks_no_model_for_an_answer_is_none_without_an_end(load, method, url, body, why):
    seen = load(cassette(f"{{string: '{body}'}}").replace("method: POST", f"method: {method}").replace(URL, url),
                  "a.yaml")
    assert not seen.exchanges
    assert [skip.why for skip in seen.inputs[0].skipped] == [why]


def test_messages_of_a_socket_in_a_cassette_are_named_as_what_they_are(load):
    sent = "- kind: message\n  direction: sent\n  data: {type: session.update}\n"
    seen = load(cassette(f"{{string: '{SAID}'}}").replace("interactions:\n", f"interactions:\n{sent}- 7\n"), "a.yaml")
    assert words(seen) == ["length"]
    assert [(skip.entry, skip.why) for skip in seen.inputs[0].skipped] == [
        (0, "an interaction without a request and a response"), (1, "an interaction without a request and a response")]


def mock(body: str, *more: str, path: str = "/v1/chat/completions") -> str:
    """A document as httpmock records it."""
    header = "  header:\n  - name: content-type\n    value: application/json\n"
    return (f"when:\n  path: {path}\n  method: POST\n  query_param: []\n{header}  body: '{ASKED}'\n"
            f"then:\n  status: 200\n{header}  body: {body}\n" + "".join(f"  {line}\n" for line in more))


@pytest.mark.parametrize("status", ["status: 429 Too Many Requests\n    code: 429", "status: ''\n    code: 429"])
def test_the_status_of_a_cassette_of_go_vcr_is_its_code(load, status):
    text = cassette("'rate limited'").replace("status: {code: 200, message: OK}", status).replace("[gzip]", "[]")
    (exchange,) = load(text, "a.yaml").exchanges
    assert (exchange.response.http_status, exchange.response.stop_reason.normalized) == (429, Stop.ERROR)
    assert not exchange.cut_after


def test_cassettes_of_httpmock_are_read(load):
    packed = base64.b64encode(SAID.replace("length", "stop").encode()).decode()
    seen = load("---\n".join([mock(f"'{SAID}'"), mock(packed, "body_encoding: base64"), ""]), "a.yaml")
    assert (words(seen), seen.inputs[0].format) == (["length", "stop"], "vcr")
    assert (seen.inputs[0].error, seen.inputs[0].skipped) == (None, ())
    one = seen.exchanges[0]
    assert (one.url, one.request.max_tokens, one.response.http_status) == ("/v1/chat/completions", 9, 200)
    assert one.body == SAID.encode()


def test_of_a_damaged_cassette_of_httpmock_the_documents_before_are_read(load):
    whole = "---\n".join([mock(f"'{SAID}'"), mock(f"'{SAID}'")])
    cut = load(whole[:-90], "a.yaml")
    assert words(cut)[0] == "length"
    assert "no valid YAML, or cut" in cut.inputs[0].error
    odd = load("---\n".join([mock(f"'{SAID}'"), "when: 7\n", "7\n"]), "a.yaml")
    assert words(odd) == ["length"]
    assert [skip.why for skip in odd.inputs[0].skipped] == ["an interaction without a request and a response"] * 2


PATTERN = f"  bodyPatterns:\n  - equalToJson: '{ASKED}'\n    ignoreArrayOrder: false\n"


def mapping(body: str, pattern: str = PATTERN, place: str = "url", head: str = "id: 0b7\nname: chat\n") -> str:
    """A document as WireMock records it."""
    return (f"{head}request:\n  {place}: /v1/chat/completions\n  method: POST\n{pattern}"
            f"response:\n  status: 200\n  {body}\n  headers:\n    Content-Type: application/json\nuuid: 0b7\n")


def test_mappings_of_wiremock_in_yaml_are_read(load):
    packed = base64.b64encode(gzip.compress(SAID.replace("length", "stop").encode())).decode()
    seen = load("---\n" + "---\n".join([
        mapping(f"body: '{SAID}'"), mapping(f"base64Body: {packed}", place="urlPath"),
        mapping(f"jsonBody: {SAID}"), mapping("bodyFileName: body-1.json"), "7\n"]), "a.yaml")
    assert (words(seen), seen.inputs[0].format) == (["length", "stop", "length"], "vcr")
    assert [each.request.max_tokens for each in seen.exchanges] == [9, 9, 9]
    assert {each.url for each in seen.exchanges} == {"/v1/chat/completions"}
    assert seen.exchanges[0].body == SAID.encode()
    assert [skip.why for skip in seen.inputs[0].skipped] == [
        "its answer is in another file (bodyFileName)", "an interaction without a request and a response"]


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_a_mapping_of_wiremock_is_read_with_the_file_of_its_body_and_a_folder_counts_both_once(tmp_path, suffix):
    root, secret = tmp_path / "recorded", tmp_path / "secret.json"
    for folder in ("mappings/chat", "__files"):
        (root / folder).mkdir(parents=True)
    (root / "__files/a..1.json").write_text(SAID)
    secret.write_text(SAID)
    for number, name in enumerate(("a..1.json", "../../secret.json", str(secret), "gone.json")):
        asked = {"url": "/v1/chat/completions", "method": "POST", "bodyPatterns": [{"equalToJson": ASKED}]}
        content = {"request": asked, "response": {"status": 200, "bodyFileName": name}}
        (root / f"mappings/chat/{number}{suffix}").write_text(
            json.dumps(content) if suffix == ".json" else mapping(f"bodyFileName: {name}"))
    seen = open_paths([str(root)])
    (exchange,) = seen.exchanges
    assert (words(seen), exchange.request.max_tokens, exchange.response.http_status) == (["length"], 9, 200)
    assert exchange.body == SAID.encode()
    assert len(open_paths([str(root / "__files")]).exchanges) == 1  # a folder of bodies alone is read as bodies


def test_a_large_file_that_many_mappings_of_wiremock_name_is_not_read_for_each(tmp_path):
    for folder in ("mappings", "__files"):
        (tmp_path / folder).mkdir()
    (tmp_path / "__files/a.json").write_text(SAID + " " * 2_000)
    each = {"request": {"url": "/v1/chat/completions"}, "response": {"status": 200, "bodyFileName": "a.json"}}
    (tmp_path / "mappings/a.json").write_text(json.dumps({"mappings": [each] * 3}))
    before = most()
    try:
        set_maximum(3_000)
        seen = open_paths([str(tmp_path / "mappings/a.json")])
    finally:
        set_maximum(before)
    assert (len(seen.exchanges), [skip.why for skip in seen.inputs[0].skipped]) == (
        1, ["its answer is in another file (bodyFileName)"] * 2)


@pytest.mark.parametrize("head", ["", "id: 0b7\n", "priority: 1\n"])
def test_a_mapping_of_wiremock_is_recognised_by_its_request(load, head):
    assert words(load(mapping(f"body: '{SAID}'", head=head), "a.yaml")) == ["length"]


def test_a_list_of_mappings_of_wiremock_is_read(load):
    lines = mapping(f"body: '{SAID}'").splitlines()
    seen = load("mappings:\n- " + "\n  ".join(lines) + "\n- 7\n", "a.yaml")
    assert (words(seen), len(seen.inputs[0].skipped)) == (["length"], 1)


@each_row(("pattern", "limit"), [
    ('{"equalToJson": %s}', 9), ('{"equalToJson": %s, "ignoreExtraElements": false}', 9),
    ('{"equalToJson": %s, "ignoreExtraElements": true}', None), ('{"matchesJsonPath": %s}', None), ("7", None)])
@each_row("text", [False, True])
@each_row("name", ["a.json", "a.yaml"])
def test_a_pattern_that_a_whole_request_must_equal_is_the_request(load, pattern, limit, text, name):
    patterns = f'[{{"matchesJsonPath": "$.model"}}, {pattern.replace("%s", json.dumps(ASKED) if text else ASKED)}]'
    if name == "a.json":
        seen = load(f'{{"request": {{"url": "/v1/chat/completions", "method": "POST", "bodyPatterns": {patterns}}},'
                      f' "response": {{"status": 200, "body": {json.dumps(SAID)}}}}}', name)
    else:
        seen = load(mapping(f"body: '{SAID}'", f"  bodyPatterns: {patterns}\n"), name)
    asked = seen.exchanges[0].request
    assert (words(seen), asked and asked.max_tokens) == (["length"], limit)


def test_a_packed_body_of_wiremock_is_unpacked(load):
    """It was shown as a body that was not recorded."""
    pair = {"request": {"urlPath": "/v1/chat/completions"},
            "response": {"status": 200, "base64Body": base64.b64encode(SAID.encode()).decode()}}
    seen = load(json.dumps(pair))
    assert (words(seen), seen.exchanges[0].body) == (["length"], SAID.encode())
    pair["response"] = {"status": 200, "bodyFileName": "body-1.json"}
    away = load(json.dumps([pair, {**pair, "response": {"status": 200, "body": SAID}}]))
    assert [skip.why for skip in away.inputs[0].skipped] == ["its answer is in another file (bodyFileName)"]


def test_a_tag_makes_no_object(load, tmp_path):
    trace = tmp_path / "ran"
    bad = cassette(f"{{string: !!python/object/apply:os.system ['touch {trace}']}}")
    assert words(load(bad, "a.yaml")) == [None]
    assert not trace.exists()


def test_a_cut_cassette_keeps_what_was_read(load):
    whole = cassette(f"{{string: '{SAID}'}}", f"{{string: '{SAID}'}}")
    seen = load(whole[:-200], "a.yaml")
    assert words(seen)[0] == "length"
    assert "no valid YAML, or cut" in seen.inputs[0].error


def test_an_anchor_repeats_no_body_beyond_the_bound(load):
    body = json.dumps({"choices": [{"message": {"content": "x" * 40_000}, "finish_reason": "stop"}]})
    first = cassette(f"&b {{string: '{body}'}}")
    again = cassette(*["*b"] * 400).removeprefix("interactions:\n")
    before = most()
    set_maximum(1 << 20)
    try:
        seen = load(first.replace("version: 1\n", "") + again, "a.yaml")
    finally:
        set_maximum(before)
    assert 10 < len(seen.exchanges) < 40
    assert "more than" in seen.inputs[0].skipped[-1].why


@pytest.mark.parametrize("member", ["uri: *a28", "method: *a28", "headers: {accept: *a28}"])
def test_an_anchor_repeats_no_value_of_a_request_beyond_the_bound(load, member):
    steps = "".join(f", &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 29))
    name = member.partition(":")[0]
    text = re.sub(rf"(?m)^    {name}: .*$", f"    {member}", cassette(f"{{string: '{SAID}'}}"), count=1)
    seen = load(text.replace("- request:", f"- z: [&a0 [xxxxxxxxxx]{steps}]\n  request:"), "a.yaml")
    assert not seen.exchanges
    assert "which is not read: --max-bytes" in seen.inputs[0].skipped[0].why


def test_a_name_that_is_a_map_of_names_does_not_grow(load):
    name = tnetstring(b"\\")
    for _ in range(22):
        inside = name + b"0:~"
        name = str(len(inside)).encode() + b":" + inside + b"}"
    inside = name + b"0:~"
    whole = str(len(inside)).encode() + b":" + inside + b"}"
    (key,) = _value(whole, 0, len(whole), 0)[0]
    assert len(key) <= 200


def test_lists_of_aliases_and_merged_keys_do_not_grow():
    lines = ["a0: &a0 {x: y}"] + [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 40)]
    (value,), line = parse_documents("\n".join(lines))
    assert line is None
    assert value["a1"]["<<"][0] is value["a0"]


@pytest.mark.parametrize("piece", ["- ", "[", "{a: "])
def test_values_that_nest_without_end_are_no_cassette(load, piece):
    text = f"interactions:\n- {piece * 50_000}\n"
    assert "line 2: no valid YAML" in load(text, "a.yaml").inputs[0].error


def test_a_request_that_claude_trace_saw_interrupted_has_no_answer(load):
    request = {"method": "POST", "url": "https://api.anthropic.com/v1/messages", "headers": {},
               "body": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}}
    line = json.dumps({"request": request, "response": None, "logged_at": "2026-01-01T00:00:00Z"})
    whole = json.dumps({"request": {**request, "url": URL}, "response": {"status_code": 200, "body": json.loads(SAID)}})
    _, one = load(f"{whole}\n{line}\n", "log-1.jsonl").exchanges
    first, _ = load(f"{line}\n{whole}\n", "log-1.jsonl").exchanges
    (alone,) = load(f"{line}\n", "log-1.jsonl").exchanges
    assert first.response.stop_reason == alone.response.stop_reason == one.response.stop_reason
    assert (one.api, one.request.max_tokens) == ("anthropic_messages", 9)
    assert one.response.stop_reason.raw is None
    assert one.response.stop_reason.normalized.value not in ("end_turn", "tool_call")


# -- nock --------------------------------------------------------------------------------------------------------------


def of_nock(response: Any, **more: Any) -> dict[str, Any]:
    return {"scope": "https://api.openai.com:443", "method": "POST", "path": "/v1/chat/completions",
            "body": json.loads(ASKED), "status": 200, "response": response,
            "rawHeaders": ["Content-Type", "application/json"], "responseIsBinary": False, **more}


PACKED = gzip.compress(SAID.encode()).hex()


@pytest.mark.parametrize("value", [
    of_nock(json.loads(SAID)), of_nock(SAID), of_nock(SAID.encode().hex(), responseIsBinary=True),
    of_nock([PACKED[:20], PACKED[20:]], rawHeaders=["Content-Encoding", "gzip"]),
    of_nock([PACKED], rawHeaders={"content-encoding": "gzip"}),
])
def test_an_exchange_that_nock_recorded(load, value):
    seen = load(json.dumps([value, value], indent=1), "nock.json")
    assert (seen.inputs[0].format, words(seen)) == ("pairs", ["length", "length"])
    (one, _) = seen.exchanges
    assert (one.api, one.request.max_tokens, one.response.http_status) == ("openai_chat", 9, 200)
    assert one.response.text == "hi"


def test_a_body_of_nock_that_is_no_hexadecimal_is_named(load):
    (one,) = load(json.dumps([of_nock(["zz"])]), "nock.json").exchanges
    assert one.response.stop_reason.normalized.value == "unknown"
    assert one.response.stop_reason.evidence[-1].note == "its body is not valid hexadecimal"


def test_a_request_of_nock_that_is_longer_than_the_head_is_read(load):
    value = of_nock(json.loads(SAID))
    value["body"]["messages"][0]["content"] = "x" * 70_000
    assert words(load(json.dumps([value]), "nock.json")) == ["length"]


def test_an_exchange_of_nock_without_its_request_is_read(load):
    value = of_nock(SAID)
    del value["body"]
    seen = load(json.dumps([value, value]), "nock.json")
    assert (seen.inputs[0].format, words(seen)) == ("pairs", ["length", "length"])
    assert seen.exchanges[0].response.text == "hi"


@pytest.mark.parametrize("member", ["scope", "method", "path"])
def test_what_lacks_a_member_of_nock_is_not_of_nock(load, member):
    value = of_nock(json.loads(SAID))
    del value[member]
    assert load(json.dumps([value]), "nock.json").inputs[0].format != "pairs"


# -- the test proxy of Azure's SDKs -----------------------------------------------------------------------------------


def of_test_proxy(answer: Any, **more: Any) -> dict[str, Any]:
    return {"RequestUri": URL, "RequestMethod": "POST", "RequestHeaders": {"Content-Type": "application/json"},
            "RequestBody": json.loads(ASKED), "StatusCode": 200, "ResponseHeaders": {"x-request-id": "r1"},
            "ResponseBody": answer, **more}


CHUNK = {"id": "c", "object": "chat.completion.chunk", "choices": [
    {"index": 0, "delta": {"content": "hi"}, "finish_reason": "length"}]}


@pytest.mark.parametrize("answer", [
    json.loads(SAID), SAID, [f"data: {json.dumps(CHUNK)}\n", "\n", "data: [DONE]\n", "\n"],
])
def test_an_exchange_that_the_test_proxy_of_azure_recorded(load, answer):
    upload = of_test_proxy({"object": "file", "id": "f1"}, RequestUri="https://api.openai.com/v1/files",
                           RequestBody=["--b\r\n", "b64:aGk=", "--b--\r\n"])
    deleted = of_test_proxy(None, RequestMethod="DELETE", RequestBody=None, StatusCode=204)
    rows = {"Entries": [upload, of_test_proxy(answer), deleted], "Variables": {}}
    seen = load(json.dumps(rows, indent=2), "Works.json")
    assert (seen.inputs[0].format, words(seen)) == ("pairs", ["length"])
    (one,) = seen.exchanges
    assert (one.entry, one.api, one.url, one.response.http_status) == (1, "openai_chat", URL, 200)
    assert (one.request.max_tokens, one.response.text) == (9, "hi")
    assert ("x-request-id", "r1") in one.headers
    assert [each.entry for each in seen.inputs[0].skipped] == [0, 2]


def test_a_failed_request_of_the_test_proxy_has_its_status(load):
    (one,) = load(json.dumps({"Entries": [of_test_proxy({"error": {"message": "slow down"}}, StatusCode=429)]}),
                    "Works.json").exchanges
    assert (one.response.http_status, one.response.error.message) == (429, "slow down")


@pytest.mark.parametrize("member", ["RequestUri", "RequestMethod"])
def test_what_lacks_a_member_of_the_test_proxy_is_not_of_it(load, member):
    value = of_test_proxy(json.loads(SAID), RequestBody=None)
    del value[member]
    assert load(json.dumps({"Entries": [value]}), "Works.json").inputs[0].format != "pairs"
