"""Keys of every kind in a recording, in the environment and in what a server says: none is in anything written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.live.test_again import Runner, run_here  # noqa: F401 - a fixture
from tests.scenes.live_branch import chat_url, completion, entry, har, request_body
from tests.scenes.loopback import Fake, Peer

ENVIRONMENT = {name: f"env-{number}-secret-0123456789" for number, name in enumerate((
    "LOOP_INSPECTOR_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"))}
HEADERS = {
    "Authorization": "Bearer har-bearer-0123456789abcdef", "x-api-key": "har-xapikey-0123456789abcdef",
    "x-goog-api-key": "har-goog-0123456789abcdef", "api-key": "har-azure-0123456789abcdef",
    "Proxy-Authorization": "Basic har-proxy-0123456789abcdef", "Cookie": "session=har-cookie-0123456789abcdef",
    "X-Amz-Security-Token": "har-amzsecurity-0123456789abcdef", "X-Amz-Signature": "har-amzsig-0123456789abcdef",
    "X-Amz-Credential": "har-amzcred-0123456789abcdef",
}
QUERY = "key=har-query-0123456789abcdef&X-Amz-Signature=har-querysig-0123456789abcdef"
SHAPED = "sk-proj-serverownkey0123456789abcdef"


@pytest.fixture
def path(fake: Fake, tmp_path: Path) -> str:
    body = request_body(metadata={"authorization": "har-body-0123456789abcdef"}, tools=[
        {"type": "mcp", "server_label": "x", "authorization": "har-mcp-0123456789abcdef"}])
    url = chat_url(fake.url).replace("http://", "http://user:har-userinfo-0123456789abcdef@") + f"?{QUERY}"
    answered = entry(url, body, completion("One, ", "length"), HEADERS)
    answered["response"]["headers"] += [{"name": "Set-Cookie", "value": "id=har-setcookie-0123456789abcdef"}]
    return har(tmp_path / "s.har", answered)


def echoes(status: int, fake: Fake) -> Any:
    """A server that repeats everything that it was sent, and a key of its own."""
    def play(peer: Peer) -> None:
        got = fake.got[-1]
        said = json.dumps({"headers": got.headers, "line": got.line, "body": got.body.decode(), "own": SHAPED})
        told = json.loads(completion(said, "stop")) if status == 200 else {"error": {"message": said, "type": "auth"}}
        key = ENVIRONMENT["LOOP_INSPECTOR_API_KEY"]
        peer.whole(status, told, set_cookie=f"id={key}; {SHAPED}", x_api_key=key, location=f"http://x/?key={key}")

    return play


def every_byte(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file()}


@pytest.mark.parametrize("status", [200, 401])
def test_no_key_is_in_anything_that_is_written(
    status: int, run_here: Runner, fake: Fake, path: str, tmp_path: Path  # noqa: F811
) -> None:
    fake.answers = [echoes(status, fake)]
    said: list[str] = []
    for words in (
        ("replay", path, "--live", "--set", "max_tokens=50"),
        ("replay", path, "--live", "--yes", "--save", "--set", "max_tokens=50"),
        ("replay", path, "--live", "--yes", "--save", "--json", "--base-url",
         f"{fake.url}/v1?token=typed-0123456789abc"),
        ("branches", path), ("branches", path, "--json"),
    ):
        done = run_here(*words, environment=ENVIRONMENT)
        assert "Traceback" not in done.err
        said += [done.out, done.err]
    keys = json.loads(said[-2])["branches"]
    (tmp_path / "out").mkdir()
    for number, each in enumerate(keys):
        done = run_here("replay", path, "--branch", each["key"], "--json")
        said += [done.out, done.err, each["command"]]
        record = next((tmp_path / "data" / "live").glob(f"*{each['settings']['set']['live']}*"))
        for form in ("html", "md", "json", "session", "curl", "bug", "fixture", "text"):
            done = run_here("export", str(record), "--to", form, "--out", str(tmp_path / "out" / f"{number}-{form}"))
            said += [done.out, done.err]
    written = every_byte(tmp_path / "data") | every_byte(tmp_path / "out")
    assert any(name.startswith("live/") for name in written)
    assert len(written) > 8
    secrets = [
        *ENVIRONMENT.values(), "har-", "typed-0123456789abc", SHAPED]
    for secret in secrets:
        for name, data in written.items():
            assert secret.encode() not in data, (secret, name)
        for text in said:
            assert secret not in text.replace(path, ""), secret
    assert fake.got[0].headers["authorization"] == f"Bearer {ENVIRONMENT['LOOP_INSPECTOR_API_KEY']}"


def test_no_recorded_credential_is_sent(run_here: Runner, fake: Fake, path: str) -> None:  # noqa: F811
    fake.answers = [echoes(200, fake)]
    done = run_here("replay", path, "--live", "--yes", environment={"LOOP_INSPECTOR_API_KEY": ""})
    assert done.code == 0, done.err
    (got,) = fake.got
    sent = f"{got.line} {got.headers} {got.body.decode()}"
    assert "har-" not in sent
    assert not {"authorization", "x-api-key", "cookie", "x-goog-api-key", "proxy-authorization"} & set(got.headers)
    assert "REDACTED" not in f"{got.line} {got.headers}"
