"""Credentials: none survives in anything that an exchange or a written session holds; nothing else is touched."""

import json

import pytest
from session_scenes import CHAT, chat_body, entry, har, user

from inspector.sessions import redact
from inspector.sessions.native import write_session

KEY = "sk-proj-Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0"


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "authorization",
        "X-Api-Key",
        "api-key",
        "Cookie",
        "Set-Cookie",
        "x-goog-api-key",
        "Proxy-Authorization",
        "X-Amz-Security-Token",
        "X-Auth-Token",
        "X-CSRF-Token",
        "Ocp-Apim-Subscription-Key",
        "CF-Access-Client-Secret",
        "X-Functions-Key",
        "anthropic-api-key",
        "x-portkey-api-key",
        "Helicone-Auth",
        "X-Stripe-Signature",
        "private-token",
        "x-password",
        "X-My-Credential",
    ],
)
def test_headers_that_carry_credentials(name):
    assert redact.headers([(name, "abc")]) == ((name, redact.REDACTED),)


@pytest.mark.parametrize(
    "name",
    [
        "anthropic-ratelimit-tokens-remaining",
        "x-ratelimit-limit-tokens",
        "x-ratelimit-reset-tokens",
        "content-type",
        "X-Amzn-Bedrock-Input-Token-Count",
        "x-request-id",
        "retry-after",
        "idempotency-key",
        "openai-processing-ms",
        "access-control-expose-headers",
        "accept",
        "keep-alive",
        "date",
        "x-author",
        "authority",
        ":authority",
    ],
)
def test_headers_that_are_needed_or_harmless_stay(name):
    assert redact.headers([(name, "abc")]) == ((name, "abc"),)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("https://h/p?key=abc&alt=sse", "https://h/p?key=REDACTED&alt=sse"),
        ("https://h/p?alt=sse&api_key=abc", "https://h/p?alt=sse&api_key=REDACTED"),
        ("https://h/p?api-version=2024&api-key=abc#x", "https://h/p?api-version=2024&api-key=REDACTED#x"),
        (
            "https://h/p?X-Amz-Signature=a&X-Amz-Credential=b&X-Amz-Date=c&X-Amz-Security-Token=d",
            "https://h/p?X-Amz-Signature=REDACTED&X-Amz-Credential=REDACTED&X-Amz-Date=c&X-Amz-Security-Token=REDACTED",
        ),
        ("https://h/p?token=a;sig=b", "https://h/p?token=REDACTED;sig=REDACTED"),
        ("https://me:pw@h/p", "https://REDACTED@h/p"),
        ("https://h/p#access_token=abc", "https://h/p#access_token=REDACTED"),
        ("https://h/p?max_tokens=5&model=m", "https://h/p?max_tokens=5&model=m"),
        (f"https://h/{KEY}/p", "https://h/sk-proj-" + "*" * (len(KEY) - 8) + "/p"),
    ],
)
def test_urls(given, expected):
    assert redact.url(given) == expected


@pytest.mark.parametrize(
    ("secret", "kept"),
    [
        (KEY, "sk-proj-"),
        ("sk-ant-api03-Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0_x", "sk-ant-"),
        ("sk-or-v1-0123456789abcdef0123456789abcdef", "sk-or-"),
        ("sk-0123456789ABCDEFabcdef0123456789", "sk-"),
        ("Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "Bearer "),
        ("AIzaSyA0123456789abcdefghijklmnopqrstuv", "AIza"),
        ("AKIAIOSFODNN7EXAMPLE", "AKIA"),
        ("ASIAIOSFODNN7EXAMPLE", "ASIA"),
        ("ghp_0123456789abcdefghijklmnopqrstuvwxyz", "ghp_"),
    ],
)
def test_keys_of_known_shapes_are_masked_wherever_they_stand_and_keep_their_length(secret, kept):
    escaped = (("line\\n", "\\n"), ("\\u003c", "\\u003e"), ("say \\u201c", "\\u201d"))
    for before, after in (("use ", " now"), ('{"k":"', '"}'), *escaped):
        body = f"{before}{secret}{after}".encode()
        masked = redact.body(body)
        assert masked == f"{before}{kept}{'*' * (len(secret) - len(kept))}{after}".encode()


@pytest.mark.parametrize(
    "text",
    [
        "task-based-learning-with-long-words",
        "sk-learn",
        "sk-learn-based-pipeline-of-many-steps",
        "Bearer of bad news",
        "the Bearer authentication-scheme-of-http",
        "AIza",
        "risk-0123456789abcdefghijklm",
    ],
)
def test_ordinary_text_is_not_touched(text):
    assert redact.text(text) == text


def test_names_in_a_requests_own_json_but_never_in_its_messages():
    request = {
        "tools": [{"type": "mcp", "authorization": "abc", "headers": {"X-Api-Key": "abc", "accept": "x"}}],
        "mcp_servers": [{"url": "u", "authorization_token": "abc"}],
        "max_tokens": 5,
        "metadata": {"token_count": "7"},
        "messages": [{"role": "user", "content": "x", "password": "kept"}],
    }
    clean = redact.request(request, json.dumps(request))
    assert clean["tools"][0]["authorization"] == clean["mcp_servers"][0]["authorization_token"] == redact.REDACTED
    assert clean["tools"][0]["headers"] == {"X-Api-Key": redact.REDACTED, "accept": "x"}
    assert (clean["max_tokens"], clean["metadata"]) == (5, {"token_count": "7"})
    assert clean["messages"] == request["messages"]


def everything(exchange):
    """All that a view could show of an exchange."""
    return repr([getattr(exchange, name) for name in type(exchange).__slots__])


def test_no_credential_of_a_har_is_in_its_exchanges(opened):
    source = entry(
        [user(f"my key is {KEY}")],
        chat_body(f"do not share {KEY}"),
        url=CHAT + "?api_key=hunter2secret",
        headers={
            "Authorization": "Bearer hunter2secret",
            "Cookie": "sid=hunter2secret",
            "x-forwarded-note": f"is {KEY}",
        },
        response_headers={"Set-Cookie": "sid=hunter2secret", "content-type": "application/json"},
        tools=[{"type": "mcp", "authorization": "hunter2secret"}],
    )
    loaded = opened(har(source))
    (exchange,) = loaded.exchanges
    assert "hunter2secret" not in everything(exchange)
    assert KEY not in everything(exchange)
    assert exchange.response.text == f"do not share sk-proj-{'*' * (len(KEY) - 8)}"
    assert len(exchange.body) == len(source["response"]["content"]["text"])


def test_no_credential_reaches_a_written_session(tmp_path):
    path = tmp_path / "s.jsonl"
    write_session(
        path,
        [
            {
                "type": "request",
                "id": "r1",
                "api": "openai_chat",
                "url": CHAT + "?key=hunter2secret",
                "headers": [("Authorization", "Bearer hunter2secret")],
                "body": {"messages": [user(KEY)], "mcp_servers": [{"authorization_token": "hunter2secret"}]},
            },
            {"type": "response", "request": "r1", "status": 200, "headers": [["set-cookie", "hunter2secret"]]},
            {"type": "bytes", "request": "r1", "text": f"data: {KEY}\n\n"},
            {"type": "tool_result", "request": "r1", "call_id": "c", "text": f"env: {KEY}"},
            {"type": "note", "text": f"rotate {KEY}"},
        ],
    )
    written = path.read_text()
    assert "hunter2secret" not in written
    assert KEY not in written
    assert written.count("sk-proj-***") == 4


def test_a_request_that_is_nested_too_deeply_to_be_cleaned_is_left_out(opened):
    deep = '{"authorization": ' + "[" * 900 + "]" * 900 + "}"
    source = entry(None, chat_body("x"), request={})
    source["request"]["postData"]["text"] = deep
    (exchange,) = opened(har(source)).exchanges
    assert exchange.request is None or exchange.request.messages == ()
