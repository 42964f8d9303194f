"""Signed requests: as botocore signs them, as a server checks them, anew for each, and shown to nobody."""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import hmac
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from inspector.live import headless
from loop_core.client.address import Server
from loop_core.client.transport import AsyncLive, Live
from loop_core.errors import CallerError
from loop_core.turn.loop import arun, run
from loop_core.turn.tools import Toolbox
from loop_core.values import Stop, Tool, ToolCall
from tests.scenes.command import ROOT, ProcessResult, RunCli
from tests.scenes.live import ERROR, QUICK, EventLog, answer, plan, request, streams
from tests.scenes.loopback import Fake, Got

pytest.importorskip("botocore", reason="the extra `bedrock` is not installed")
import botocore.auth
import botocore.session
from botocore.exceptions import CredentialRetrievalError

from inspector.live import aws

ACCESS, SECRET = "ASIA0123456789ABCDEF", "abcdefghij/KLMNOPQRST+uvwxyz0123456789AB"
TOKEN = "session-token-" + "Qw3/" * 20
API = "bedrock_converse"
WHEN = datetime.datetime(2026, 1, 2, 3, 4, 5)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Credentials in the environment, and nothing of this machine's."""
    import os

    for name in [name for name in os.environ if name.startswith("AWS_")] + ["LOOP_INSPECTOR_API_KEY"]:
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": TOKEN,
        "AWS_CONFIG_FILE": str(tmp_path / "config"), "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)


def frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda *a, **k: WHEN)


@pytest.mark.parametrize("model", ["anthropic.claude-3-haiku-20240307-v1:0", "m",
                                   "arn:aws:bedrock:eu-west-1:1:inference-profile/x~y"])
def test_a_signature_is_the_one_that_botocores_client_makes(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its client is asked for the same model with the same words, and stopped before it sends."""
    frozen(monkeypatch)
    sent: list[Any] = []

    class StopHereError(Exception):
        pass

    def keep(request: Any, **more: Any) -> None:
        sent.append(request)
        raise StopHereError

    client = botocore.session.Session().create_client("bedrock-runtime", region_name="eu-west-1")
    client.meta.events.register("before-send.bedrock-runtime", keep)
    with pytest.raises(StopHereError):
        client.converse(modelId=model, messages=[{"role": "user", "content": [{"text": "Hi"}]}])
    (theirs,) = sent
    signed = re.search(r"SignedHeaders=([^,]+)", text(theirs.headers["Authorization"]))
    assert signed is not None
    assert signed[1] == "content-type;host;x-amz-date;x-amz-security-token", "the same headers as ours"
    headers = [("content-type", text(theirs.headers["Content-Type"])), ("accept", "x"), ("user-agent", "y")]
    ours = dict(aws.AwsSigner(None)("POST", theirs.url, headers, theirs.body))
    added = ("X-Amz-Date", "X-Amz-Security-Token", "Authorization")
    assert ours == {name: text(theirs.headers[name]) for name in added}


def text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def expected_signature(got: Got, region: str) -> str:
    """What the server makes of a request, by AWS's description of Signature Version 4 and of nothing else."""
    method, target, _ = got.line.split(" ")
    told = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]{64})",
                        got.headers["authorization"])
    assert told is not None
    stamp = got.headers["x-amz-date"]
    scope = f"{stamp[:8]}/{region}/bedrock/aws4_request"
    assert told[1] == f"{ACCESS}/{scope}"
    parts = urlsplit(target)
    lines = [method, quote(parts.path, safe="/-_.~"), "&".join(sorted(filter(None, parts.query.split("&")))),
             *(f"{name}:{' '.join(got.headers[name].split())}" for name in told[2].split(";")), "", told[2],
             hashlib.sha256(got.body).hexdigest()]
    string = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256("\n".join(lines).encode()).hexdigest()])
    key = f"AWS4{SECRET}".encode()
    for word in (stamp[:8], region, "bedrock", "aws4_request", string):
        key = hmac.new(key, word.encode(), hashlib.sha256).digest()
    return key.hex()


def signed_turn(fake: Fake, as_async: bool, model: str = "claude:1", **more: Any) -> tuple[Any, EventLog]:
    import dataclasses

    told = EventLog()
    server = Server(API, fake.url, sign=aws.AwsSigner("eu-west-1"))
    asked = dataclasses.replace(request(API, tools=more.get("tools", ())), model=model)
    if as_async:
        async def run_turn() -> Any:
            async with AsyncLive(server, told, more.get("toolbox"), QUICK) as source:
                return await arun("t", asked, source, plan(API))

        return asyncio.run(run_turn()).steps[-1].turn, told
    with Live(server, told, more.get("toolbox"), QUICK) as source:
        return run("t", asked, source, plan(API)).steps[-1].turn, told


@pytest.mark.parametrize("as_async", [False, True], ids=["sync", "async"])
def test_a_server_that_checks_the_signature_takes_it_and_every_retry_has_its_own(
    as_async: bool, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter(range(100))
    monkeypatch.setattr(botocore.auth, "get_current_datetime",
                        lambda *a, **k: WHEN + datetime.timedelta(seconds=next(ticks)))
    fake.answers = [lambda peer: peer.whole(429, ERROR, retry_after="0"),
                    streams(API, answer(API, "One, ", Stop.MAX_TOKENS)),
                    streams(API, answer(API, "two.", Stop.END_TURN))]
    turn, told = signed_turn(fake, as_async)
    assert (turn.terminal, turn.joined_answer().text) == ("completed", "One, two.")
    assert [got.line.split(" ")[1] for got in fake.got] == ["/model/claude%3A1/converse-stream"] * 3
    for got in fake.got:
        assert got.headers["authorization"].endswith(expected_signature(got, "eu-west-1"))
        assert got.headers["x-amz-security-token"] == TOKEN
    assert len({got.headers["authorization"] for got in fake.got}) == 3
    assert fake.got[0].body == fake.got[1].body
    for ask in told.of("asked"):
        assert dict(ask.headers)["authorization"] == "REDACTED"
        assert {name.lower() for name, _ in ask.headers}.isdisjoint({"x-amz-security-token", "x-amz-date"})


def everything_written(folder: Path, *done: ProcessResult) -> bytes:
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    assert files
    return b"".join(files) + "".join(each.stdout + each.stderr for each in done).encode()


def test_no_byte_that_is_written_holds_a_key_a_token_or_a_signature(
    run_cli: RunCli, fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server tells what it got, as AWS does when a signature does not match; a tool prints its environment."""
    (tmp_path / "my_tools.py").write_text("import os\ndef env() -> str:\n    return str(dict(os.environ))\n")
    call = ToolCall("call_1", "env", "{}", closed=True)

    def echo(peer: Any) -> None:
        said = fake.got[-1].headers
        peer.whole(403, {"message": f"The Canonical String should have been {said!r}, signed by {ACCESS} {SECRET}"},
                   x_amz_security_token=TOKEN, x_seen=said["authorization"])

    fake.answers = [streams(API, answer(API, "", Stop.TOOL_CALL, call)), echo]
    words = ["--api", API, "--model", "m", "--base-url", fake.url, "--prompt", "x", "--sign", "aws",
             "--tools", "my_tools:env"]
    environment = {"AWS_REGION": "eu-west-1", "LOOP_INSPECTOR_DATA": str(tmp_path / "data")}
    done = [run_cli(*words, environment=environment, cwd=tmp_path)]
    signatures = [got.headers["authorization"].rpartition("=")[2] for got in fake.got]
    fake.got.clear()
    done.append(run_cli(*words, "--json", environment=environment, cwd=tmp_path))
    signatures += [got.headers["authorization"].rpartition("=")[2] for got in fake.got]
    assert [each.returncode for each in done] == [6, 6], done[0].stderr
    assert len(set(signatures)) >= 2
    written = everything_written(tmp_path / "data", *done)
    assert b"Canonical String" in written
    assert b"AWS_SESSION_TOKEN" in written
    for secret in (ACCESS, SECRET, TOKEN, *signatures):
        assert secret.encode() not in written, secret


def test_a_prompt_that_holds_a_secret_key_is_refused(run_cli: RunCli, fake: Fake, tmp_path: Path) -> None:
    done = run_cli("--api", API, "--model", "m", "--base-url", fake.url, "--prompt", f"it is {SECRET}", "--sign", "aws",
               "--record", str(tmp_path / "s.jsonl"), environment={"AWS_REGION": "eu-west-1"})
    assert (done.returncode, fake.got) == (2, [])
    assert "the request contains the key" in done.stderr
    assert SECRET not in done.stderr


# -- when, and with which region -------------------------------------------------------------------------------------


def server_for(**words: Any) -> Server:
    """The server that a command would ask."""
    return headless.server_of(headless.LiveOptions(
        words.get("api", API), "m", words.get("base", ""), key_env=words.get("key_env"), sign=words.get("sign")))


@pytest.mark.parametrize(("variables", "words", "signs", "host"), [
    ({"AWS_REGION": "eu-west-1"}, {}, True, "bedrock-runtime.eu-west-1.amazonaws.com"),
    ({"AWS_REGION": "eu-west-1"}, {"api": "bedrock_invoke"}, True, "bedrock-runtime.eu-west-1.amazonaws.com"),
    ({"AWS_DEFAULT_REGION": "eu-west-3"}, {}, True, "bedrock-runtime.eu-west-3.amazonaws.com"),
    ({"AWS_REGION": "eu-west-1", "AWS_BEARER_TOKEN_BEDROCK": "b"}, {}, False,
     "bedrock-runtime.eu-west-1.amazonaws.com"),
    ({"AWS_BEARER_TOKEN_BEDROCK": "b", "AWS_REGION": "eu-west-1"}, {"sign": "aws"}, True,
     "bedrock-runtime.eu-west-1.amazonaws.com"),
    ({}, {"base": "https://bedrock-runtime.us-west-2.amazonaws.com"}, True, "bedrock-runtime.us-west-2.amazonaws.com"),
    ({}, {"base": "http://127.0.0.1:9"}, False, "127.0.0.1:9"),
    ({}, {"base": "http://127.0.0.1:9", "sign": "aws"}, True, "127.0.0.1:9"),
    ({}, {"api": "openai_chat"}, False, ""),
])
def test_what_is_signed(variables: dict[str, str], words: dict[str, Any], signs: bool, host: str,
                        monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    made = server_for(**words)
    assert (made.sign is not None) is signs
    assert urlsplit(made.base).netloc == host
    assert SECRET not in repr(made)


def test_the_region_of_a_profile_names_the_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "config").write_text("[profile work]\nregion = ap-south-1\n")
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert server_for().base == "https://bedrock-runtime.ap-south-1.amazonaws.com"


@pytest.mark.parametrize(("url", "region"), [
    ("https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse", "us-east-1"),
    ("https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com/", "us-gov-west-1"),
    ("https://bedrock-runtime.cn-north-1.amazonaws.com.cn", "cn-north-1"),
    ("https://vpce-1a-b.bedrock-runtime.eu-central-1.vpce.amazonaws.com/x", "eu-central-1"),
    ("https://BEDROCK-runtime.EU-west-1.api.aws/x", "eu-west-1"),
    ("http://127.0.0.1:9/bedrock-runtime.us-east-1.x", None),
    ("https://example.com/?x=//bedrock-runtime.us-east-1.x", None),
])
def test_the_region_of_a_host(url: str, region: str | None) -> None:
    assert aws.region_of(url) == region


@pytest.mark.parametrize(("change", "said"), [
    ({"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None, "AWS_REGION": "eu-west-1"},
     "no key and no AWS credentials: set AWS_BEARER_TOKEN_BEDROCK"),
    ({}, "no AWS region: set AWS_REGION"),
    ({"AWS_REGION": "eu-west-1", "AWS_PROFILE": "nobody"}, "AWS credentials: The config profile (nobody) could not"),
    ({"AWS_REGION": "eu-west-1", "AWS_SECRET_ACCESS_KEY": None}, "AWS credentials: Partial credentials found in env"),
])
def test_what_is_missing_is_one_line_and_nothing_is_sent(
    run_cli: RunCli, change: dict[str, str | None], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in change.items():
        monkeypatch.delenv(name) if value is None else monkeypatch.setenv(name, value)
    done = run_cli("--api", API, "--model", "m", "--prompt", "x", "--record", str(tmp_path / "s.jsonl"))
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "s.jsonl").exists()


def test_a_region_that_no_host_and_no_variable_names(fake: Fake, tmp_path: Path) -> None:
    with Live(Server(API, fake.url, sign=aws.AwsSigner(None)), EventLog(), None, QUICK) as source, \
            pytest.raises(CallerError, match="no AWS region"):
        run("t", request(API), source, plan(API))


def test_credentials_that_cannot_be_renewed_end_in_one_line(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    signer = aws.AwsSigner("eu-west-1")

    def fail() -> Any:
        raise CredentialRetrievalError(provider="sso", error_msg="the session\nhas expired")

    monkeypatch.setattr(signer._credentials, "get_frozen_credentials", fail)
    with Live(Server(API, fake.url, sign=signer), EventLog(), None, QUICK) as source, \
            pytest.raises(CallerError, match=r"AWS credentials: Error when retrieving .* the session has expired"):
        run("t", request(API), source, plan(API))
    assert fake.got == []


def test_a_signature_or_a_key(run_cli: RunCli, tmp_path: Path) -> None:
    done = run_cli("--api", API, "--model", "m", "--prompt", "x", "--sign", "aws", "--key-env", "MINE",
               environment={"MINE": "b"})
    assert done.returncode == 2
    assert "expected either --sign or --key-env" in done.stderr


def test_without_the_extra_one_line_names_it() -> None:
    hide = ("import sys, os\nsys.modules['botocore'] = None\nsys.argv = ['inspector', 'run', '--api', "
            "'bedrock_converse', '--model', 'm', '--prompt', 'x']\nfrom inspector.cli import run\nrun()")
    done = subprocess.run([sys.executable, "-c", hide], capture_output=True, text=True, check=False, timeout=60,
                          cwd=ROOT)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "inspector: no key for Bedrock: set AWS_BEARER_TOKEN_BEDROCK, or for AWS credentials install the extra "
        "bedrock: pip install '.[bedrock]'\n")


def test_a_tool_result_has_no_secret_left(fake: Fake) -> None:
    call = ToolCall("call_1", "env", "{}", closed=True)
    fake.answers = [streams(API, answer(API, "", Stop.TOOL_CALL, call)),
                    streams(API, answer(API, "Done.", Stop.END_TURN))]
    box = Toolbox({"env": lambda _: json.dumps({"AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": TOKEN})})
    turn, told = signed_turn(fake, False, toolbox=box, tools=(Tool("env", {"type": "object"}),))
    assert turn.terminal == "completed"
    assert SECRET.encode() not in fake.got[1].body
    assert SECRET not in repr(told)
