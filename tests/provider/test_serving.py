"""A provider that is served: every format answers, and what was asked is kept without its credentials."""

from __future__ import annotations

import json
import urllib.request

import pytest

from inspector.provider import serving
from inspector.provider.bases import PATHS
from loop_core.address import Server, url_of
from loop_core.values import Message, Request, Role, TextPart
from loop_core.wire import FORMATS, decode, wire


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("api", FORMATS)
def test_every_format_is_served(api: str, stream: bool) -> None:
    asked = Request(api, (Message(Role.USER, (TextPart("Report."),)),), "text", max_tokens=20, stream=stream)
    with serving("text") as provider:
        url = url_of(Server(api, provider.bases[api]), wire(api).path(asked))
        body = json.dumps(wire(api).encode_request(asked)).encode()
        headers = {"content-type": "application/json", "authorization": "Bearer sk-secret-1234"}
        sent = urllib.request.Request(url, body, headers)
        with urllib.request.urlopen(sent, timeout=20) as answer:
            response = decode(api, answer.read())
        assert set(PATHS) == set(provider.bases) == set(FORMATS)
        (seen,) = provider.seen
    assert response.text == provider.stories[0].answers[0].text[:80]
    assert response.usage is not None
    assert response.usage.output_tokens == 20
    assert (seen.api, seen.tokens, seen.ended, seen.request.max_tokens) == (api, 20, "cut", 20)
    assert "sk-secret-1234" not in repr([seen.headers, seen.path, seen.body])
