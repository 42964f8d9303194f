"""What a provider serves beside answers: counts, lists, versions, ids of requests, times, and who may read it."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from inspector.provider import Provider, serving
from inspector.provider.server import origin
from loop_core.errors import CallerError
from loop_core.formats import FORMATS
from loop_core.wire.servers import (
    CHAT,
    COHERE,
    COMPLETE,
    COMPLETIONS,
    CONVERSE,
    GEMINI,
    GENERATE,
    INVOKE,
    MESSAGES,
    OLLAMA,
    RESPONSES,
)
from tests.scenes.refusals import BODIES, PATHS

Came = tuple[int, dict[str, str], bytes]


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with serving("text", "thinking", "call", pace=0) as running:
        yield running


def ask(url: str, body: object = None, method: str | None = None, **headers: str) -> Came:
    data = None if body is None else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    sent = urllib.request.Request(url, data, {"content-type": "application/json", **named}, method=method)
    try:
        with urllib.request.urlopen(sent, timeout=20) as answer:
            return answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.read()
    except urllib.error.HTTPError as why:
        with why:
            return why.code, {name.lower(): value for name, value in why.headers.items()}, why.read()


# -- errors take their shape from the path ---------------------------------------------------------------------------


def shape(body: bytes) -> str:
    """Whose error it is, and its type."""
    value = json.loads(body)
    error = value.get("error")
    if isinstance(error, str):
        return "ollama"
    if value.get("type") == "error":
        return f"anthropic {error['type']}"
    if error is None and set(value) == {"message"}:
        return "cohere"
    if error is None:
        return f"bedrock {value['__type']}"
    if "type" not in error and "status" not in error:
        return f"interactions {error['code']}"
    return f"google {error['status']}" if "status" in error else f"openai {error['type']} {error['code']}"


@pytest.mark.parametrize(("method", "path", "whose"), [
    ("GET", "/favicon.ico", "openai invalid_request_error None"),
    ("POST", "/v1/embeddings", "openai invalid_request_error None"),
    ("POST", "/v1/v1/chat/completions", "openai invalid_request_error None"),
    ("POST", "/v1/v1/messages", "anthropic not_found_error"),
    ("POST", "/v1/v1/messages/count_tokens", "anthropic not_found_error"),
    ("POST", "/v1/v1/responses", "openai invalid_request_error None"),
    ("GET", "/v1/v1/responses/resp_1", "openai invalid_request_error None"),
    ("POST", "/v1/v1beta/models/text:generateContent", "google NOT_FOUND"),
    ("POST", "/v1/messages/batches", "anthropic not_found_error"),
    ("GET", "/v1/messages", "anthropic not_found_error"),
    ("POST", "/v1beta/models/text:embedContent", "google NOT_FOUND"),
    ("POST", "/v1beta1/publishers/google/models/m:predict", "google NOT_FOUND"),
    ("POST", "/v2/rerank", "cohere"),
    ("GET", "/v1beta/files", "google NOT_FOUND"),
    ("POST", "/model/text/apply", "bedrock ResourceNotFoundException"),
    ("POST", "/api/embed", "ollama"),
    ("DELETE", "/api/delete", "ollama"),
    ("PUT", "/v1/chat/completions", "openai invalid_request_error None"),
    ("GET", "/v1/responses", "openai invalid_request_error None"),
    ("GET", "/v1beta/models/none", "google NOT_FOUND"),
    ("GET", "/v1/models/none", "openai invalid_request_error model_not_found"),
])
def test_a_path_that_is_not_served_is_a_404_in_the_shape_of_its_format(
    method: str, path: str, whose: str, provider: Provider
) -> None:
    status, headers, body = ask(provider.url + path, None if method == "GET" else {}, method)
    assert (status, headers["content-type"]) == (404, "application/json")
    assert shape(body) == whose
    assert ("twice" in body.decode()) == ("/v1/v1" in path)


@pytest.mark.parametrize(("header", "whose"), [
    ("anthropic_version", "anthropic not_found_error"), ("x_goog_api_key", "google NOT_FOUND"),
    ("x_other", "openai invalid_request_error model_not_found")])
def test_under_a_path_of_several_formats_the_clients_header_tells(header: str, whose: str, provider: Provider) -> None:
    assert shape(ask(f"{provider.url}/v1/models/none", **{header: "x"})[2]) == whose


@pytest.mark.parametrize("api", FORMATS)
def test_a_model_that_is_not_there_is_not_found_in_every_format(api: str, provider: Provider) -> None:
    path = PATHS[api].replace("text", "gpt-5")
    status, _, body = ask(provider.url + path, {**BODIES[api], **({"model": "gpt-5"} if api not in (
        GEMINI, CONVERSE, INVOKE) else {})})
    assert status == 404
    assert shape(body) == {
        CHAT: "openai invalid_request_error model_not_found", RESPONSES: "openai invalid_request_error model_not_found",
        MESSAGES: "anthropic not_found_error", GEMINI: "google NOT_FOUND",
        CONVERSE: "bedrock ResourceNotFoundException", OLLAMA: "ollama", COHERE: "cohere",
        INVOKE: "bedrock ResourceNotFoundException",
        COMPLETIONS: "openai invalid_request_error model_not_found", COMPLETE: "anthropic not_found_error",
        GENERATE: "ollama",
        "gemini_interactions": "interactions not_found"}[api]


# -- counts ----------------------------------------------------------------------------------------------------------

LONG = "x" * 41
"""Eleven tokens: four characters are one, and one that was begun counts whole."""


@pytest.mark.parametrize(("path", "body", "told"), [
    ("/v1/messages/count_tokens", {"model": "text", "messages": [{"role": "user", "content": LONG}]},
     {"input_tokens": 11}),
    ("/v1beta/models/text:countTokens", {"contents": [{"role": "user", "parts": [{"text": LONG}]}]},
     {"totalTokens": 11, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 11}]}),
    ("/v1beta/models/text:countTokens", {"generateContentRequest": {
        "model": "models/text", "contents": [{"role": "user", "parts": [{"text": LONG}]}]}},
     {"totalTokens": 11, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 11}]}),
    ("/v1/responses/input_tokens", {"model": "text", "input": LONG},
     {"object": "response.input_tokens", "input_tokens": 11}),
    ("/model/text/count-tokens", {"input": {"converse": {"messages": [{"role": "user", "content": [
        {"text": LONG}]}]}}}, {"inputTokens": 11}),
])
def test_tokens_are_counted_by_the_providers_own_rule(
    path: str, body: Any, told: dict[str, Any], provider: Provider
) -> None:
    status, _, came = ask(provider.url + path, body)
    assert (status, json.loads(came)) == (200, told)


def test_a_count_is_what_the_answer_says_that_it_used(provider: Provider) -> None:
    asked = {"model": "text", "system": "Be brief.", "messages": [{"role": "user", "content": LONG}], "tools": [
        {"name": "write_file", "description": "Writes.", "input_schema": {"type": "object"}}]}
    counted = json.loads(ask(f"{provider.url}/v1/messages/count_tokens", asked)[2])["input_tokens"]
    used = json.loads(ask(f"{provider.url}/v1/messages", {**asked, "max_tokens": 5})[2])["usage"]["input_tokens"]
    assert counted == used == 11 + 3 + 5  # the text, the system prompt, and name and description of the tool


@pytest.mark.parametrize(("path", "body", "status", "whose"), [
    ("/v1/messages/count_tokens", {"model": "text"}, 400, "anthropic invalid_request_error"),
    ("/v1/messages/count_tokens", [], 400, "anthropic invalid_request_error"),
    ("/v1/messages/count_tokens", {"model": "gpt-5", "messages": [{"role": "user", "content": "x"}]}, 404,
     "anthropic not_found_error"),
    ("/v1beta/models/text:countTokens", {"contents": []}, 400, "google INVALID_ARGUMENT"),
    ("/model/text/count-tokens", {}, 400, "bedrock ValidationException"),
    ("/v1/responses/input_tokens", {"input": 5}, 400, "openai invalid_request_error invalid_type"),
])
def test_what_cannot_be_counted_is_an_error(path: str, body: Any, status: int, whose: str, provider: Provider) -> None:
    came = ask(provider.url + path, body)
    assert (came[0], shape(came[2])) == (status, whose)


# -- Ollama's own lists ----------------------------------------------------------------------------------------------


def test_ollamas_version_and_models(provider: Provider) -> None:
    version = json.loads(ask(f"{provider.url}/api/version")[2])["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    rows = json.loads(ask(f"{provider.url}/api/tags")[2])["models"]
    assert [row["name"] for row in rows] == ["text", "thinking", "call"]
    assert len({row["digest"] for row in rows}) == 3
    for row in rows:
        assert row["size"] > 0
        assert row["modified_at"] > "2000"
        assert re.fullmatch(r"[0-9a-f]{64}", row["digest"])
        assert set(row["details"]) == {
            "parent_model", "format", "family", "families", "parameter_size", "quantization_level"}


@pytest.mark.parametrize(("name", "can"), [
    ("text", ["completion"]), ("thinking", ["completion", "thinking"]), ("call", ["completion", "tools"])])
def test_a_model_of_ollamas_is_shown(name: str, can: list[str], provider: Provider) -> None:
    for body in ({"model": name}, {"name": name}):
        shown = json.loads(ask(f"{provider.url}/api/show", body)[2])
        assert shown["capabilities"] == can
        assert shown["model_info"]["general.architecture"] == "scripted"
        assert shown["details"]["format"] == "gguf"


@pytest.mark.parametrize(("body", "status"), [({"model": "none"}, 404), ({}, 400), ([], 400)])
def test_a_model_that_is_not_there_is_not_shown(body: Any, status: int, provider: Provider) -> None:
    came = ask(f"{provider.url}/api/show", body)
    assert (came[0], shape(came[2])) == (status, "ollama")


# -- ids of requests -------------------------------------------------------------------------------------------------

IDS = {CHAT: ("x-request-id", r"req_[0-9a-f]{32}"), RESPONSES: ("x-request-id", r"req_[0-9a-f]{32}"),
       COMPLETIONS: ("x-request-id", r"req_[0-9a-f]{32}"),
       **dict.fromkeys((MESSAGES, COMPLETE), ("request-id", r"req_01[0-9a-f]{22}")),
       **dict.fromkeys((CONVERSE, INVOKE), ("x-amzn-requestid", r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"))}


@pytest.mark.parametrize("api", IDS)
def test_a_request_has_an_id_and_the_same_request_the_same(api: str, provider: Provider) -> None:
    name, pattern = IDS[api]
    url = provider.url + PATHS[api]
    other = {CONVERSE: {"inferenceConfig": {"maxTokens": 9}}}.get(api, {"temperature": 0.5})
    bodies = [BODIES[api], {**BODIES[api], **other}, BODIES[api], {}]
    came = [ask(url, body) for body in bodies]
    ids = [headers[name] for _, headers, _ in came]
    assert all(re.fullmatch(pattern, ident) for ident in ids)
    assert ids[0] == ids[2]
    assert len(set(ids)) == 3
    assert [status for status, _, _ in came] == [200, 200, 200, 400]
    if api in (MESSAGES, COMPLETE):
        assert json.loads(came[3][2])["request_id"] == ids[3]


def test_an_id_is_also_that_of_a_list_and_of_what_is_not_there(provider: Provider) -> None:
    assert "x-request-id" in ask(f"{provider.url}/v1/models")[1]
    assert "request-id" in ask(f"{provider.url}/v1/models/text", anthropic_version="2023-06-01")[1]
    assert "request-id" in ask(f"{provider.url}/v1/v1/messages", {})[1]
    for path in ("/api/tags", "/v1beta/models"):
        assert not {"x-request-id", "request-id"} & set(ask(provider.url + path)[1])


# -- times -----------------------------------------------------------------------------------------------------------

MADE, DATE = 1_700_000_000, "2023-11-14T22:13:20Z"


@pytest.mark.parametrize("stream", [True, False])
def test_times_are_not_zero_and_follow_from_the_tokens(stream: bool, provider: Provider) -> None:
    chat = ask(provider.url + PATHS[CHAT], {**BODIES[CHAT], "max_tokens": 20, "stream": stream})[2]
    assert set(re.findall(rb'"created":(\d+)', chat)) == {b"1700000000"}
    made = ask(provider.url + PATHS[RESPONSES], {**BODIES[RESPONSES], "max_output_tokens": 20, "stream": stream})[2]
    assert set(re.findall(rb'"created_at":(\d+)', made)) == {b"1700000000"}
    lines = ask(provider.url + PATHS[OLLAMA], {**BODIES[OLLAMA], "stream": stream, "options": {"num_predict": 20}})[2]
    values = [json.loads(line) for line in lines.splitlines()]
    assert {value["created_at"] for value in values} == {DATE}
    last = values[-1]
    assert last["eval_duration"] == 20 * 20_000_000
    assert last["prompt_eval_duration"] > 0
    assert last["total_duration"] == last["load_duration"] + last["prompt_eval_duration"] + last["eval_duration"]
    path = PATHS[CONVERSE] + ("-stream" if stream else "")
    converse = ask(provider.url + path, {**BODIES[CONVERSE], "inferenceConfig": {"maxTokens": 20}})[2]
    # 2 of loading, a quarter for a token that is read, 20 for one that is written
    assert re.findall(rb'"latencyMs":(\d+)', converse) == [b"402"]
    assert json.loads(ask(f"{provider.url}/v1/models/text")[2])["created"] == MADE


# -- pages -----------------------------------------------------------------------------------------------------------


def test_options_are_answered_and_no_page_may_read_the_answers(provider: Provider) -> None:
    for path in ("/v1/chat/completions", "/api/chat", "/nowhere"):
        status, headers, body = ask(provider.url + path, method="OPTIONS", origin="https://app.example",
                                    access_control_request_method="POST")
        assert (status, body, headers["allow"]) == (204, b"", "GET, POST, OPTIONS")
        assert not [name for name in headers if name.startswith("access-control")]
    headers = ask(provider.url + PATHS[CHAT], BODIES[CHAT], origin="https://app.example")[1]
    assert not [name for name in headers if name.startswith("access-control")]


@pytest.mark.parametrize("stream", [True, False])
def test_one_origin_may_read_the_answers_where_it_is_named(stream: bool) -> None:
    allow = "access-control-allow-origin"
    with serving("text", pace=0, cors="https://app.example") as provider:
        url, body = provider.url + PATHS[CHAT], {**BODIES[CHAT], "stream": stream}
        status, headers, _ = ask(url, method="OPTIONS", origin="https://app.example",
                                 access_control_request_headers="authorization,content-type")
        assert (status, headers[allow]) == (204, "https://app.example")
        assert headers["access-control-allow-methods"] == "GET, POST, OPTIONS"
        assert headers["access-control-allow-headers"] == "authorization,content-type"
        for asked in (body, {}):
            assert ask(url, asked, origin="https://app.example")[1][allow] == "https://app.example"
        for other in ("https://evil.example", "null", "http://app.example", "https://app.example.evil.example"):
            assert allow not in ask(url, body, origin=other)[1]
        assert allow not in ask(url, body)[1]


@pytest.mark.parametrize(("given", "is_one"), [
    ("https://app.example", True), ("HTTP://localhost:3000", True), ("http://[::1]:3000", True), ("*", False),
    ("null", False), ("https://app.example/", False), ("https://*.example", False), ("app.example", False)])
def test_an_origin_is_one_and_has_no_path(given: str, is_one: bool) -> None:
    if is_one:
        assert origin(given) == given.lower()
        return
    with pytest.raises(CallerError, match=r"--cors .*: expected one origin without a path"):
        origin(given)
