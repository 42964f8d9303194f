"""Every refusal over the wire, through the official SDK of its format: what the SDK raises, and its fields."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from inspector.provider import Provider, serving
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
from tests.scenes.refusals import BODIES, HI, PATHS, REFUSALS, body_of
from tests.scenes.sdks import client_of, close_all


class SdkError(NamedTuple):
    """What an SDK says of an error."""

    name: str
    status: int
    kind: str | None
    place: str
    """The param of OpenAI's formats, else the message."""
    code: str | None = None
    request: str | None = None
    """The id of the request."""


def _openai(path: str) -> Callable[[str, Any], SdkError]:
    def ask(url: str, body: Any) -> SdkError:
        openai = pytest.importorskip("openai")
        with pytest.raises(openai.APIStatusError) as raised:
            client_of(CHAT, url).post(path, body=body, cast_to=object)
        why = raised.value
        return SdkError(type(why).__name__, why.status_code, why.type, why.param or "", why.code, why.request_id)

    return ask


def _anthropic(url: str, body: Any) -> SdkError:
    anthropic = pytest.importorskip("anthropic")
    with pytest.raises(anthropic.APIStatusError) as raised:
        client_of(MESSAGES, url).post("/v1/messages", body=body, cast_to=object)
    why = raised.value
    assert why.body["request_id"] == why.request_id
    error = why.body["error"]
    return SdkError(type(why).__name__, why.status_code, error["type"], error["message"], None, why.request_id)


def _genai(url: str, body: Any) -> SdkError:
    errors = pytest.importorskip("google.genai.errors")
    with pytest.raises(errors.APIError) as raised:
        # This client sends no empty object; a member that is null is one that is missing.
        client_of(GEMINI, url)._api_client.request("post", "models/text:generateContent", body or {"contents": None})
    why = raised.value
    return SdkError(type(why).__name__, why.code, why.status, why.message)


def _interactions(url: str, body: Any) -> SdkError:
    """The client makes its errors from what it sends, which it checks itself: the request is made of the body alone."""
    errors = pytest.importorskip("google.genai.errors")
    with pytest.raises(errors.APIError) as raised:
        client_of(GEMINI, url)._api_client.request("post", "interactions", body)
    why = raised.value
    return SdkError(type(why).__name__, why.code if isinstance(why.code, int) else 400,
                    str(why.details["error"]["code"]),
                    why.details["error"]["message"])


def _boto3(url: str, body: Any) -> SdkError:
    """The body is put in place of what the client wrote, since the client checks it too."""
    exceptions = pytest.importorskip("botocore.exceptions")
    client = client_of(CONVERSE, url)
    put = _putting(json.dumps(body).encode())
    client.meta.events.register("before-call.bedrock-runtime.Converse", put)
    try:
        with pytest.raises(exceptions.ClientError) as raised:
            client.converse(modelId="text", messages=[{"role": "user", "content": [{"text": "Hi."}]}])
    finally:
        client.meta.events.unregister("before-call.bedrock-runtime.Converse", put)
    told = raised.value.response
    return SdkError(type(raised.value).__name__, told["ResponseMetadata"]["HTTPStatusCode"], told["Error"]["Code"],
                    told["Error"]["Message"], None, told["ResponseMetadata"]["RequestId"])


def _invoke(url: str, body: Any) -> SdkError:
    exceptions = pytest.importorskip("botocore.exceptions")
    with pytest.raises(exceptions.ClientError) as raised:
        client_of(CONVERSE, url).invoke_model(modelId="text", body=json.dumps(body))
    told = raised.value.response
    return SdkError(type(raised.value).__name__, told["ResponseMetadata"]["HTTPStatusCode"], told["Error"]["Code"],
                    told["Error"]["Message"], None, told["ResponseMetadata"]["RequestId"])


def _putting(data: bytes) -> Callable[..., None]:
    def put(params: dict[str, Any], **_: Any) -> None:
        params["body"] = data

    return put


def _complete(url: str, body: Any) -> SdkError:
    """Its SDK dropped it with version 1.0; the error is that of Messages, through the client of today."""
    anthropic = pytest.importorskip("anthropic")
    with pytest.raises(anthropic.APIStatusError) as raised:
        client_of(MESSAGES, url).post("/v1/complete", body=body, cast_to=object)
    why = raised.value
    error = why.body["error"]
    return SdkError(type(why).__name__, why.status_code, error["type"], error["message"], None, why.request_id)


def _generate(url: str, body: Any) -> SdkError:
    return _ollama(url, body, "/api/generate")


def _ollama(url: str, body: Any, path: str = "/api/chat") -> SdkError:
    ollama = pytest.importorskip("ollama")
    with pytest.raises(ollama.ResponseError) as raised:
        client_of(OLLAMA, url)._request_raw("POST", path, json=body)
    return SdkError(type(raised.value).__name__, raised.value.status_code, None, raised.value.error)


def _cohere(url: str, body: Any) -> SdkError:
    """The body is sent as it is by the client below the one that checks it."""
    api_error = pytest.importorskip("cohere.core.api_error").ApiError
    cohere = pytest.importorskip("cohere")
    client = client_of(COHERE, url)
    answer = client._client_wrapper.httpx_client.request("v2/chat", method="POST", json=body)
    assert issubclass(cohere.BadRequestError, api_error)
    return SdkError(type(cohere.BadRequestError(answer.json())).__name__, answer.status_code, None,
                    answer.json()["message"])


ASKS: Mapping[str, Callable[[str, Any], SdkError]] = {
    CHAT: _openai("/chat/completions"), RESPONSES: _openai("/responses"), MESSAGES: _anthropic, GEMINI: _genai,
    CONVERSE: _boto3, OLLAMA: _ollama, "gemini_interactions": _interactions, COHERE: _cohere,
    INVOKE: _invoke, COMPLETIONS: _openai("/completions"), COMPLETE: _complete, GENERATE: _generate,
}
NAMES = {
    CHAT: ("BadRequestError", "invalid_request_error"), RESPONSES: ("BadRequestError", "invalid_request_error"),
    MESSAGES: ("BadRequestError", "invalid_request_error"), GEMINI: ("ClientError", "INVALID_ARGUMENT"),
    CONVERSE: ("ValidationException", "ValidationException"), OLLAMA: ("ResponseError", None),
    "gemini_interactions": ("ClientError", "invalid_request"), COHERE: ("BadRequestError", None),
    INVOKE: ("ValidationException", "ValidationException"),
    COMPLETIONS: ("BadRequestError", "invalid_request_error"), COMPLETE: ("BadRequestError", "invalid_request_error"),
    GENERATE: ("ResponseError", None),
}
"""Format -> the SDK's exception, and the type of the error in it."""
IDENTIFIED = (CHAT, RESPONSES, MESSAGES, CONVERSE, INVOKE, COMPLETIONS, COMPLETE)


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with serving("text", pace=0) as running:
        yield running
        close_all()


@pytest.mark.parametrize("api", FORMATS)
def test_an_sdk_raises_its_own_error_with_the_fields_of_the_server(api: str, provider: Provider) -> None:
    ids = set()
    for row in REFUSALS[api]:
        raised = ASKS[api](provider.url, body_of(api, row))
        assert (raised.name, raised.status, raised.kind) == (NAMES[api][0], 400, NAMES[api][1]), row
        if api in (CHAT, RESPONSES, COMPLETIONS):
            assert (raised.place, raised.code) == (row.place, row.code)
        else:
            assert raised.place.startswith(row.place)
        ids.add(raised.request)
    assert len(ids) == (len(REFUSALS[api]) if api in IDENTIFIED else 1), "an id for each request"


def test_every_refusal_is_kept_for_the_test_that_asked(provider: Provider) -> None:
    seen = len(provider.seen)
    pytest.importorskip("openai")
    _openai("/chat/completions")(provider.url, {**BODIES[CHAT], "n": 3})
    (kept,) = provider.seen[seen:]
    assert (kept.status, kept.api, kept.body["n"]) == (400, CHAT, 3)
    assert kept.error.startswith("'n': ")


def test_an_sdk_counts_tokens(provider: Provider) -> None:
    """Six characters are two tokens."""
    text = "Hello."
    anthropic = client_of(MESSAGES, provider.url)
    assert anthropic.messages.count_tokens(model="text", messages=[{"role": "user", "content": text}]).input_tokens == 2
    assert client_of(GEMINI, provider.url).models.count_tokens(model="text", contents=text).total_tokens == 2
    assert client_of(CHAT, provider.url).responses.input_tokens.count(model="text", input=text).input_tokens == 2
    converse = {"converse": {"messages": [{"role": "user", "content": [{"text": text}]}]}}
    assert client_of(CONVERSE, provider.url).count_tokens(modelId="text", input=converse)["inputTokens"] == 2


def test_ollamas_client_reads_its_lists(provider: Provider) -> None:
    client = client_of(OLLAMA, provider.url)
    (listed,) = client.list().models
    assert (listed.model, listed.details.format) == ("text", "gguf")
    assert listed.modified_at.year == 2023
    shown = client.show("text")
    assert shown.capabilities == ["completion"]
    assert shown.modelinfo["general.architecture"] == "scripted"


def test_an_sdk_sees_the_id_of_its_request(provider: Provider) -> None:
    whole = client_of(CHAT, provider.url).chat.completions.create(model="text", messages=[HI])
    assert whole._request_id.startswith("req_")
    assert whole.created == 1_700_000_000
    said = client_of(MESSAGES, provider.url).messages.create(model="text", max_tokens=20, messages=[HI])
    assert said._request_id.startswith("req_01")
    assert set(PATHS) == set(FORMATS)
