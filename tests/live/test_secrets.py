"""Keys in every place where an operator, a provider or a tool puts one: no byte that a run writes holds any."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from inspector.live.inputs import secrets_of
from inspector.live.recorder import exchange_of
from inspector.sessions import redact
from loop_core.client.address import Server
from loop_core.client.exchange import ResponseReader
from loop_core.client.mask import Mask
from loop_core.client.outgoing import live_request
from loop_core.turn.machine import begin
from loop_core.values import Stop, ToolCall, TransportEnd
from tests.scenes.command import ProcessResult, RunCli
from tests.scenes.live import KINDS, EventLog, answer, async_turn, request, streams, sync_turn
from tests.scenes.loopback import Fake, Peer
from tests.scenes.provider import CALLING

KEY = "sk/live+0123456789=abc<&>xyz"
"""With all the characters that JSON, addresses and pages write differently."""
PASSWORD, QUERY = "pass word-0123456789", "query/0123456789"
ENVIRONMENT = {
    "MINE": KEY,
    "HTTPS_PROXY": "http://u:proxy-pass%2F01234@p:1",
    "DATABASE_URL": "postgres://u:dbpass-0123456@h/x",
    "OTHER_API_KEY": "other-0123456789",
    "GITHUB_TOKEN": "gh-0123456789-tok",
    "SOME_PASSWORD": "hunter-2-hunter",
}
SECRETS = {
    "the key": KEY, "the key in JSON": json.dumps(KEY)[1:-1],
    "the key in JSON, slashes escaped": KEY.replace("/", "\\/"),
    "the key in an address": quote(KEY), "with slashes": quote(KEY, safe=""), "in a form": quote_plus(KEY),
    "the password": PASSWORD, "the password in an address": quote(PASSWORD),
    "the password as it is sent": b64encode(f"user:{PASSWORD}".encode()).decode(),
    "the query's": QUERY, "the query's as it is sent": quote(QUERY, safe=""),
    "the proxy's": "proxy-pass/01234", "the proxy's in its address": "proxy-pass%2F01234",
    "the database's": "dbpass-0123456", "another key": "other-0123456789", "a token": "gh-0123456789-tok",
    "a password": "hunter-2-hunter",
}
GOOGLE = "AIzaSyA-0123456789abcdefghijklmnopqrstu"


def echoes(fake: Fake) -> str:
    """All that the server got, and the key in every spelling."""
    got = fake.got[-1]
    told = [got.line, *(f"{name}: {value}" for name, value in got.headers.items())]
    spelled = [SECRETS[name] for name in SECRETS if name.startswith(("the key", "with", "in a form", "the password"))]
    return "\n".join([*told, *spelled, GOOGLE])


@pytest.mark.parametrize("size", [1, 5, 4096])
@pytest.mark.parametrize("api", CALLING)
def test_no_byte_that_is_written_holds_a_secret(
    run_cli: RunCli, api: str, size: int, fake: Fake, tmp_path: Path
) -> None:
    call = ToolCall(None if api == "ollama_chat" else "call_1", "env", "{}", closed=True)

    def refuse(peer: Peer) -> None:
        said = echoes(fake)
        line = said.replace("\n", " ")
        kind = fake.got[-1].headers.get("authorization", "x")
        peer.whole(429, {"error": {"message": said, "type": kind, "code": KEY}}, retry_after="0", x_echo=line,
                   set_cookie=f"session={KEY}", www_authenticate=f"Bearer {KEY}",
                   location=f"http://h/?key={quote(KEY, safe='')}")

    def speak(peer: Peer) -> None:
        body = b"".join(answer(api, echoes(fake), Stop.TOOL_CALL, call))
        peer.head(kind=KINDS.get(api, "text/event-stream"))
        for at in range(0, len(body), size):
            peer.send(body[at : at + size])

    def page(peer: Peer) -> None:
        peer.head(401, "text/html")
        peer.send(f"<html>{echoes(fake)}".encode())

    (tmp_path / "my_tools.py").write_text("import os\ndef env() -> str:\n    return str(dict(os.environ))\n")
    fake.answers = [refuse, speak, page]
    address = fake.url.replace("http://", f"http://user:{quote(PASSWORD)}@")
    words = ["--api", api, "--model", "m", "--base-url", f"{address}?key={quote(QUERY, safe='')}&api-version=1",
             "--prompt", "x", "--tools", "my_tools:env", "--set", "max_tokens=50", "--key-env", "MINE"]
    done = run_cli(*words, *(["--json"] if size == 1 else []), cwd=tmp_path,
               environment={**ENVIRONMENT, "LOOP_INSPECTOR_DATA": str(tmp_path / "data")})
    assert (done.returncode, len(fake.got)) == (6, 3), done.stderr
    everything = all_bytes(tmp_path / "data", done)
    assert b"OTHER_API_KEY" in everything, "the tool's result is in the recording"
    assert b"api-version=1" in everything
    for name, secret in {**SECRETS, "a key of a known shape": GOOGLE}.items():
        for form in {secret, json.dumps(secret)[1:-1]}:
            assert form.encode() not in everything, name
    sent = fake.got[-1].body.decode()
    assert "OTHER_API_KEY" in sent, "the result went to the model"
    assert [name for name, secret in SECRETS.items() if secret in sent] == []


def all_bytes(folder: Path, done: ProcessResult) -> bytes:
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    assert files
    return b"".join(files) + (done.stdout + done.stderr).encode()


@pytest.mark.parametrize(("environment", "secrets"), [
    ({"OPENAI_API_KEY": "sk-0123456789"}, ("sk-0123456789",)),
    ({"AWS_SECRET_ACCESS_KEY": "abc/0123456", "AWS_ACCESS_KEY_ID": "AKIA012345"}, ("abc/0123456", "AKIA012345")),
    ({"AWS_BEARER_TOKEN_BEDROCK": "b-0123456789"}, ("b-0123456789",)),
    ({"HF_TOKEN": " hf_0123456789\n"}, ("hf_0123456789",)),
    ({"APIKEY": "k-0123456789", "MY_SECRET": "s-0123456789"}, ("k-0123456789", "s-0123456789")),
    ({"https_proxy": "http://me:p%40ss-word@h:1"}, ("p%40ss-word", "p@ss-word")),
    ({"DATABASE_URL": "postgres://:only-a-pass1@h/x"}, ("only-a-pass1",)),
    ({"SSH_KEY": "/home/me/.ssh/id", "GPG_KEY": "~/.gnupg/key1", "DEPLOY_TOKEN": "short-1"}, ()),
    ({"DB_PASSWORD": "password", "SORT_KEY": "12345678", "TOKENIZERS_PARALLELISM": "false-0123"}, ()),
    ({"HOME": "/home/someone-1", "URL": "http://h:8080/a@b-0123456", "EDITOR": "vim-0123456"}, ()),
])
def test_what_of_an_environment_is_a_secret(environment: dict[str, str], secrets: tuple[str, ...]) -> None:
    assert secrets_of(environment) == secrets


def test_a_password_of_an_address_is_known_in_every_form_in_which_it_is_sent() -> None:
    made = Server("openai_chat", "https://us%2Fer:pa%20ss@h/v1?key=a%2Fb+c&api-version=1")
    assert set(made.secrets) == {
        "us%2Fer", "us/er", "pa%20ss", "pa ss", b64encode(b"us/er:pa ss").decode(), "a%2Fb+c", "a/b c"}
    assert "pa%20ss" not in repr(made)


@pytest.mark.parametrize("form", [KEY, quote(KEY), quote(KEY, safe=""), quote_plus(KEY), json.dumps(KEY)[1:-1],
                                  KEY.replace("/", "\\/")])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_secret_is_found_in_every_spelling(form: str, size: int) -> None:
    mask, text = Mask([KEY]), f"x {form} y".encode()
    shown = b"".join(mask.feed(text[at : at + size]) for at in range(0, len(text), size)) + mask.flush()
    assert shown == b"x " + b"*" * len(form) + b" y"


@pytest.mark.parametrize("cut", [1, 3, len(KEY) // 2 + 1, len(KEY) - 1, len(KEY)])
@pytest.mark.parametrize("turned", [sync_turn, async_turn])
def test_an_answer_that_ends_inside_the_key(cut: int, turned: Any, fake: Fake) -> None:
    """Whatever was kept back comes at the end: as stars where it is most of the key, else as it is."""
    before = b'data: {"choices":[{"index":0,"delta":{"content":"'
    fake.answers = [streams("openai_chat", [before + KEY[:cut].encode()])]
    _, told = turned("openai_chat", fake, key=KEY)
    ended = told.of("ended")  # nothing of it could be seen, so it was asked for again
    shown = "*" * cut if cut * 2 > len(KEY) else KEY[:cut]
    assert {heard.body for heard in ended} == {before + shown.encode()}
    assert b"".join(told.of("came")) == ended[0].body * len(ended)


def test_words_of_the_environment_are_hidden_in_results_alone(
    run_cli: RunCli, fake: Fake, tmp_path: Path
) -> None:
    """A prompt may hold them: it is the operator's own, and none of them is the key that is sent."""
    body = {"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}
    fake.answers = [lambda peer: peer.whole(200, body)]
    done: Any = run_cli("--api", "openai_chat", "--model", "m", "--base-url", fake.url, "--whole", "--record",
                    str(tmp_path / "s.jsonl"), "--prompt", "is other-0123456789 good?", environment=ENVIRONMENT)
    assert done.returncode == 0
    assert "other-0123456789" in fake.got[0].body.decode()


def test_a_key_that_comes_in_two_events_is_masked_in_the_run_in_memory(fake: Fake) -> None:
    """No event of the body holds it whole; the answer's text does."""
    fake.answers = [streams("openai_chat", answer("openai_chat", GOOGLE[:14], Stop.END_TURN)[:-2]
                            + answer("openai_chat", GOOGLE[14:] + " is it", Stop.END_TURN)[1:])]
    _, told = sync_turn("openai_chat", fake)
    (heard,) = told.of("ended")
    assert GOOGLE.encode() not in heard.body
    assert GOOGLE in heard.response.text
    made = exchange_of(heard, "run")
    assert len(made.body) == len(heard.body)
    assert made.response.text is not None
    assert made.response.text.endswith(" is it")
    assert GOOGLE[14:] not in made.response.text
    assert GOOGLE[14:].encode() not in made.body


def test_a_key_of_a_known_shape_is_found_wherever_its_answer_is_cut_before_it() -> None:
    """The second piece may begin with the letter of an escape, as in `\\n` before the key."""
    body = b"".join(answer("openai_responses", f"see:\n{GOOGLE}", Stop.END_TURN))
    begins = body.index(GOOGLE.encode())
    asked = request("openai_responses")
    _, (send,) = begin("t", asked)
    for cut in range(1, begins + 1):
        told = EventLog()
        server = Server("openai_responses", "http://127.0.0.1:9")
        heard = ResponseReader(live_request(server, asked, send, 0), server, told, redact.body)
        heard.begin(200, ())
        heard.feed(body[:cut], 0.1)
        heard.feed(body[cut:], 0.2)
        done = heard.close(TransportEnd.EOF, 0.3)
        assert GOOGLE.encode() not in b"".join(told.of("came")), cut
        assert GOOGLE.encode() not in done.body, cut
        assert [len(piece) for piece in told.of("came")] == [cut, len(body) - cut]
