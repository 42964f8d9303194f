"""Where a recorded request would go: the recorded address whatever its shape, and whose key goes there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from inspector.live.target import base_of, target_of, why_unsendable
from inspector.sessions.recording import Exchange
from loop_core.client.address import Server, is_unencrypted, loopback, refuse_plain_http, url_of
from loop_core.client.transport import AsyncLive, Live
from loop_core.errors import CallerError
from loop_core.values import ChatResponse, Evidence, Message, Request, Role, TextPart
from loop_core.wire import wire
from loop_core.wire.profiles import choose, profile_named
from loop_core.wire.servers import GENERIC

KEYS = {"OPENAI_API_KEY": "sk-openai-0123456789abcdef", "AZURE_OPENAI_API_KEY": "azure-0123456789abcdef",
        "ANTHROPIC_API_KEY": "sk-ant-0123456789abcdef"}


def exchange(url: str, api: str = "openai_chat", model: str = "m", **more: Any) -> Exchange:
    request = Request(api, (Message(Role.USER, (TextPart("Hi"),)),), model, max_tokens=9, stream=True)
    chosen = choose(api, url, model=model)
    values = {"path": "s.har", "entry": 0, "api": api, "url": url, "profile": chosen.profile,
              "profile_evidence": tuple(chosen.evidence), "request": request, "stored_request": {"model": model},
              "response": ChatResponse(api), "content": b"", **more}
    return Exchange(**values)


@pytest.mark.parametrize(("api", "url", "sent"), [
    ("openai_chat", "https://api.openai.com/v1/chat/completions", None),
    ("openai_chat", "https://openrouter.ai/api/v1/chat/completions", None),
    ("openai_chat", "https://x.openai.azure.com/openai/deployments/m/chat/completions?api-version=2024-10-21", None),
    ("openai_chat", "http://u:REDACTED@127.0.0.1:8000/v1/chat/completions", "http://127.0.0.1:8000/v1/chat/completions"),
    ("openai_chat", "https://api.deepseek.com/beta/chat/completions", None),
    ("openai_chat", "https://api.deepseek.com/chat/completions", None),
    ("openai_chat", "https://gateway.example//v1//chat/completions", None),
    ("openai_responses", "https://api.openai.com/v1/responses", None),
    ("anthropic_messages", "https://api.anthropic.com/v1/messages", None),
    ("anthropic_messages", "https://gateway.example/anthropic/v1/messages", None),
    ("anthropic_messages", "https://gateway.example/messages", None),
    ("gemini_generate", "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse",
     None),
    ("gemini_generate", "https://generativelanguage.googleapis.com/v1/models/m:streamGenerateContent?key=REDACTED",
     "https://generativelanguage.googleapis.com/v1/models/m:streamGenerateContent?alt=sse"),
    ("bedrock_converse", "https://bedrock-runtime.eu-west-1.amazonaws.com/model/m/converse-stream", None),
    ("ollama_chat", "http://127.0.0.1:11434/api/chat", None),
])
def test_the_recorded_address_is_the_one_that_is_asked(api: str, url: str, sent: str | None) -> None:
    each = exchange(url, api)
    found = target_of(each, {})
    assert url_of(found.server, wire(api).path(each.request)) == (sent or url)
    assert "REDACTED" not in found.server.base


@pytest.mark.parametrize(("api", "url", "environment", "says"), [
    ("openai_chat", "https://api.openai.com/v1/chat/completions", {},
     "set OPENAI_API_KEY: api.openai.com needs a key"),
    ("openai_chat", "https://api.openai.com/v1/chat/completions", KEYS, ""),
    ("gemini_generate", "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse", {},
     "set GEMINI_API_KEY or GOOGLE_API_KEY: generativelanguage.googleapis.com needs a key"),
    ("openai_chat", "https://api.cohere.com/v1/chat/completions", {},
     "set LOOP_INSPECTOR_API_KEY: api.cohere.com needs a key"),
    ("bedrock_converse", "https://bedrock-runtime.eu-west-1.amazonaws.com/model/m/converse-stream", {},
     "set AWS_BEARER_TOKEN_BEDROCK: bedrock-runtime.eu-west-1.amazonaws.com needs a key"),
    ("openai_chat", "https://gateway.example/v1/chat/completions", {}, ""),
    ("ollama_chat", "http://127.0.0.1:11434/api/chat", {}, ""),
    ("openai_chat", "http://127.0.0.1:8000/v1/chat/completions", {}, ""),
])
def test_a_provider_that_answers_nobody_without_a_key_says_which_one_is_missing(
    api: str, url: str, environment: dict[str, str], says: str
) -> None:
    assert target_of(exchange(url, api), environment).missing == says


def test_a_key_in_an_address_is_a_key() -> None:
    each = exchange("https://generativelanguage.googleapis.com/v1/models/m:streamGenerateContent?key=REDACTED",
                    "gemini_generate")
    typed = "https://generativelanguage.googleapis.com/v1beta?key=AIzaTyped0123456789"
    assert target_of(each, {}).missing
    assert not target_of(each, {}, base=typed).missing


def test_a_model_that_a_url_spells_otherwise() -> None:
    url = "https://bedrock-runtime.us-east-1.amazonaws.com/model/a.b:0/converse-stream"
    each = exchange(url, "bedrock_converse", "a.b:0")
    assert base_of(url, "bedrock_converse", each.request) == "https://bedrock-runtime.us-east-1.amazonaws.com"
    other = target_of(each, {}, model="c")
    assert other.url.endswith("/model/c/converse-stream")


@pytest.mark.parametrize(("url", "why"), [
    ("", "does not hold the address of the server; --base-url sets it"),
    ("https://x.example/elsewhere", "is not one of openai_chat; --base-url sets the one to use"),
])
def test_an_address_that_leads_nowhere_is_told(url: str, why: str) -> None:
    with pytest.raises(CallerError, match=why):
        target_of(exchange(url), {})
    assert target_of(exchange(url), {}, base="https://x.example").url == "https://x.example/v1/chat/completions"


@pytest.mark.parametrize(("url", "base", "variable"), [
    ("https://api.openai.com/v1/chat/completions", "", "OPENAI_API_KEY"),
    ("https://api.openai.com.evil.example/v1/chat/completions", "", None),
    ("https://evil.example/openai/deployments/m/chat/completions", "", None),  # its path looks like Azure's
    ("https://x.openai.azure.com/openai/deployments/m/chat/completions", "", "AZURE_OPENAI_API_KEY"),
    ("https://evil.example/v1/chat/completions", "", None),
    ("https://evil.example/v1/chat/completions", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    ("https://api.openai.com/v1/chat/completions", "https://elsewhere.example/v1", None),
])
def test_a_key_goes_where_its_host_is(url: str, base: str, variable: str | None) -> None:
    found = target_of(exchange(url), KEYS, base=base)
    assert found.variable == variable
    assert found.server.key == (KEYS[variable] if variable else "")
    assert found.server.key not in repr(found) or not found.server.key
    anywhere = target_of(exchange(url), {"LOOP_INSPECTOR_API_KEY": "any-0123456789"}, base=base)
    assert anywhere.key == "key from LOOP_INSPECTOR_API_KEY, which goes to any server"
    assert "not set" in target_of(exchange(url), {}, base=base).key


def test_a_profile_that_proves_no_address_gets_no_key() -> None:
    by_name = profile_named("openai", "m")
    each = exchange("https://evil.example/v1/chat/completions", profile=by_name.profile,
                    profile_evidence=(Evidence("profile.named"),))
    assert target_of(each, KEYS).variable is None


def test_a_recorded_profile_speaks_on_where_the_address_does_not_tell() -> None:
    url = "http://127.0.0.1:8080/v1/chat/completions"
    by_name = profile_named("llama_cpp", "m")
    each = exchange(url, profile=by_name.profile, profile_evidence=(Evidence("profile.named"),))
    assert target_of(each, {}).profile.name == "llama_cpp"
    assert target_of(each, {}, base="http://127.0.0.1:9999").profile.name == "llama_cpp"
    seen = replace(each, profile_evidence=(Evidence("profile.header"),))
    assert target_of(seen, {}).profile.name == "llama_cpp"
    assert target_of(seen, {}, base="http://127.0.0.1:9999").profile is GENERIC


@pytest.mark.parametrize(("more", "why"), [
    ({"recorder": "pi"}, "this is a transcript of pi"), ({"request": None}, "its request was not recorded"),
    ({"stored_request": None}, "its request was not recorded"),
])
def test_what_is_no_request_is_not_asked(more: dict[str, Any], why: str) -> None:
    each = exchange("https://api.openai.com/v1/chat/completions", **more)
    assert why in (why_unsendable(each) or "")
    with pytest.raises(CallerError, match=why):
        target_of(each, {})


def test_what_crosses_a_network_unencrypted_is_told() -> None:
    assert target_of(exchange("http://far.example/v1/chat/completions"), {}).unencrypted
    assert not target_of(exchange("http://127.0.0.1:1/v1/chat/completions"), {}).unencrypted
    assert not target_of(exchange("https://far.example/v1/chat/completions"), {}).unencrypted


OWN = ("127.0.0.1", "127.8.9.10", "localhost", "LOCALHOST", "[::1]")
"""What RFC 1122, 4291 and 6761 set aside for the machine itself."""
FAR = ("far.example", "10.0.0.1", "192.168.1.5", "0.0.0.0", "[::]", "[2001:db8::1]", "127.0.0.1.evil.example",
       "localhost.evil.example", "127.0.0.1@evil.example")


@pytest.mark.parametrize("host", OWN)
def test_what_stays_on_this_machine_may_hold_a_key(host: str) -> None:
    assert loopback(host.strip("[]"))
    assert not is_unencrypted(f"http://{host}:8080/v1")
    refuse_plain_http(Server("openai_chat", f"http://{host}:8080/v1", key=KEYS["OPENAI_API_KEY"]))


@pytest.mark.parametrize("host", FAR)
def test_a_key_crosses_no_network_as_plain_text(host: str) -> None:
    base = f"http://{host}:8080/v1"
    assert is_unencrypted(base)
    with pytest.raises(CallerError, match="unencrypted") as told:
        refuse_plain_http(Server("openai_chat", base, key=KEYS["OPENAI_API_KEY"]))
    assert KEYS["OPENAI_API_KEY"] not in str(told.value)
    name = host.rpartition("@")[2]
    assert f"--insecure-http {name.strip('[]')} " in str(told.value)
    for given in (name, name.upper(), name.strip("[]")):
        refuse_plain_http(Server("openai_chat", base, key="k" * 20, insecure_http=("other.example", given)))
    for given in ("", "example", "evil.far.example", "other.example"):
        with pytest.raises(CallerError):
            refuse_plain_http(Server("openai_chat", base, key="k" * 20, insecure_http=(given,)))
    refuse_plain_http(Server("openai_chat", base.replace("http:", "https:"), key="k" * 20))


@pytest.mark.parametrize(("more", "refused"), [
    ({"key": "k" * 20}, True), ({"base": "http://me:word@far.example"}, True),
    ({"base": "http://far.example/v1?key=abc"}, True), ({"headers": (("X-Api-Key", "k"),)}, True),
    ({"headers": (("Authorization", "Basic k"),)}, True), ({"sign": len}, True),
    ({"headers": (("openai-beta", "x"),)}, False), ({"base": "http://far.example/v1?api-version=1"}, False),
    ({}, False),
])
def test_whatever_says_who_asks_is_a_credential(more: dict[str, Any], refused: bool) -> None:
    server = Server("openai_chat", **{"base": "http://far.example/v1", **more})
    if not refused:
        refuse_plain_http(server)
        return
    with pytest.raises(CallerError, match="unencrypted"):
        refuse_plain_http(server)


def test_no_source_can_be_made_that_would_send_it() -> None:
    server = Server("openai_chat", "http://far.example/v1", key="k" * 20)
    for kind in (Live, AsyncLive):
        with pytest.raises(CallerError, match="unencrypted"):
            kind(server)


def test_a_recorded_address_without_encryption_gets_no_key() -> None:
    each = exchange("http://api.openai.com/v1/chat/completions")
    with pytest.raises(CallerError, match=r"api\.openai\.com: a key"):
        target_of(each, KEYS)
    allowed = target_of(each, KEYS, insecure_http=["api.openai.com"])
    assert (allowed.variable, allowed.unencrypted) == ("OPENAI_API_KEY", True)
    assert target_of(each, {}).variable is None


def test_headers_that_say_how_the_body_is_read_go_with_it() -> None:
    headers = (("Anthropic-Beta", "fine-1"), ("anthropic-version", "2023-01-01"), ("x-api-key", "REDACTED"),
               ("openai-beta", "REDACTED"), ("cookie", "REDACTED"), ("x-other", "1"))
    each = exchange("https://api.anthropic.com/v1/messages", "anthropic_messages", request_headers=headers)
    assert target_of(each, KEYS).server.headers == (("anthropic-beta", "fine-1"), ("anthropic-version", "2023-01-01"))
    headers = (("OpenAI-Beta", "x=1"),)
    beta = exchange("https://api.openai.com/v1/responses", "openai_responses", request_headers=headers)
    assert target_of(beta, {}).server.headers == (("openai-beta", "x=1"),)
