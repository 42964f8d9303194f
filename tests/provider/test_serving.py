"""A provider that is served: every format answers, and what was asked is kept without its credentials."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path

import pytest

from inspector.config.settings import Settings
from inspector.live.headless import run_live
from inspector.provider import Intent, PlacedFault, Story, app, serving
from inspector.provider.faults import why_unplayable
from inspector.provider.fixture import ProviderStarter
from inspector.provider.fixture import scripted_provider as scripted_provider
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.facts import view
from inspector.sessions import open_paths
from loop_core.client.address import Server, url_of
from loop_core.errors import CallerError
from loop_core.formats import FORMATS
from loop_core.turn.tools import Toolbox
from loop_core.values import Message, Request, Role, TextPart
from loop_core.wire import decode, wire


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
        assert set(provider.bases) == set(FORMATS)
        (seen,) = provider.seen
    assert response.text == provider.stories[0].answers[0].text[:80]
    assert (None if response.usage is None else response.usage.output_tokens) == (
        None if "usage" in wire(api).loses else 20)
    assert (seen.api, seen.tokens, seen.ended, seen.request.max_tokens) == (api, 20, "cut", 20)
    assert "sk-secret-1234" not in repr([seen.headers, seen.path, seen.body])


def test_a_provider_that_cannot_begin_fails_with_one_line() -> None:
    """No server can have this port; the caller waited for ever."""
    with pytest.raises(CallerError) as failed, serving("text", port=70_000):
        pass
    assert str(failed.value).startswith("the provider cannot run: OverflowError: ")
    assert "\n" not in str(failed.value)


def test_a_provider_that_fails_while_it_ends_says_so_in_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_: object) -> None:
        raise OSError("the disk\nis gone")

    monkeypatch.setattr("aiohttp.web.AppRunner.cleanup", fail)
    with serving("text") as provider:
        assert provider.url
    assert [record.message for record in caplog.records] == ["the provider cannot run: OSError: the disk⏎is gone"]


def got(url: str, body: object = None, method: str | None = None) -> tuple[int, str, bytes]:
    """Status, content type and body of one request."""
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    asked = urllib.request.Request(url, data, {"content-type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return answer.status, answer.headers["content-type"], answer.read()
    except urllib.error.HTTPError as why:
        with why:
            return why.code, why.headers["content-type"], why.read()


def chat(model: str = "text", **more: object) -> dict[str, object]:
    return {"model": model, "messages": [{"role": "user", "content": "Hi."}], **more}


def test_with_several_scenarios_the_model_chooses_and_any_other_is_not_found() -> None:
    with serving("text", "call") as provider:
        url = f"{provider.url}/v1/chat/completions"
        assert b"saturated" in got(url, chat("text"))[2]
        assert b"on_call" in got(url, chat("call"))[2]
        status, _, said = got(url, chat("gpt-5"))
        assert status == 404
        assert json.loads(said)["error"]["message"] == (
            "no scenario is called 'gpt-5'; the model is expected to be one of text, call")
        assert [(seen.scenario, seen.status) for seen in provider.seen] == [("text", 200), ("call", 200), ("", 404)]
        for path in ("/v1/models", "/v1beta/models", "/api/tags"):
            names = [row.get("id", row.get("model")) for row in json.loads(got(provider.url + path)[2])["models"]]
            assert names == ["text", "call"], path
        assert json.loads(got(f"{provider.url}/v1/models/call")[2])["id"] == "call"
        assert got(f"{provider.url}/v1/models/none")[0] == 404


def test_with_one_scenario_any_model_will_do() -> None:
    with serving("text") as provider:
        assert got(f"{provider.url}/v1/chat/completions", chat("gpt-5"))[0] == 200


@pytest.mark.parametrize(("path", "body", "status", "said"), [
    ("/v1/chat/completions", b"{", 400, b"the body of the request is not JSON"),
    ("/v1/chat/completions", b"[]", 400, b"the body of the request is not a JSON object"),
    ("/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "x"}], "n": 2}, 400,
     b"one answer is given, and several are asked for"),
    ("/v1/embeddings", {}, 404, b"nothing is served under /v1/embeddings"),
    ("/v1/responses/resp_1", None, 404, b"nothing is served under /v1/responses/resp_1"),
    ("/v1/messages", b"\xff", 400, b"not JSON"),
    ("/favicon.ico", None, 404, b"nothing is served under /favicon.ico"),
])
def test_what_cannot_be_answered_is_an_error_of_the_format(path: str, body: object, status: int, said: bytes) -> None:
    with serving("text") as provider:
        came = got(provider.url + path, body)
    assert (came[0], came[1]) == (status, "application/json")
    assert said in came[2]
    assert b"error" in came[2]


def test_a_body_that_is_not_in_the_named_coding_is_refused_for_good() -> None:
    """A client sends a request again that was answered with 500."""
    with serving("text") as provider:
        sent = urllib.request.Request(f"{provider.bases['openai_chat']}/chat/completions", b"{}",
                                      {"content-type": "application/json", "content-encoding": "gzip"})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(sent, timeout=20)
        assert (refused.value.code, provider.seen) == (400, [])
        assert b"does not have the named coding" in refused.value.read()


def test_geminis_stream_is_an_array_where_no_events_are_asked_for() -> None:
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]}
    with serving("text") as provider:
        url = f"{provider.url}/v1beta/models/m:streamGenerateContent"
        _, kind, whole = got(url, body)
        _, other, events = got(f"{url}?alt=sse", body)
    assert (kind, other) == ("application/json", "text/event-stream")
    values = json.loads(whole)
    assert len(values) == events.count(b"data: ") > 3
    assert whole.endswith(b"}\n]")
    assert decode("gemini_generate", whole).text == decode("gemini_generate", events).text


def test_a_response_that_is_paused_is_fetched_whole() -> None:
    with serving("paused") as provider:
        asked = {"model": "m", "input": "Hi.", "background": True}
        first = json.loads(got(f"{provider.url}/v1/responses", asked)[2])
        assert first["status"] == "in_progress"
        then = json.loads(got(f"{provider.url}/v1/responses/{first['id']}")[2])
    assert then["status"] == "completed"
    assert then["output"][0]["content"][0]["text"] == provider.stories[0].answers[0].text


def test_a_thread_goes_on_from_the_answer_that_it_names() -> None:
    """As Anthropic's runner of tools asks: what was said before does not come again, nor do the tools."""
    asked = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "Who?"}]}
    with serving("call") as provider:
        url = f"{provider.url}/v1/messages"
        first = json.loads(got(url, {**asked, "thread": {"type": "create"}})[2])
        ident = next(block["id"] for block in first["content"] if block["type"] == "tool_use")
        results = [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": ident, "content": "Ada"}]}]
        thread = {"type": "continue", "previous_message_id": first["id"]}
        then = json.loads(got(url, {**asked, "messages": results, "thread": thread})[2])
        other = got(url, {**asked, "thread": {"type": "continue", "previous_message_id": "msg_1"}})
        answers = provider.stories[0].answers
    assert [block.get("text") for block in then["content"]] == [answers[1].text]
    assert other[0] == 400


def test_geminis_error_in_place_of_an_array_is_an_array_of_one() -> None:
    with serving("text") as provider:
        url = f"{provider.url}/v1beta/models/m:streamGenerateContent"
        array, events = (json.loads(got(asked, {"contents": []})[2]) for asked in (url, f"{url}?alt=sse"))
    assert array == [events]
    assert events["error"]["status"] == "INVALID_ARGUMENT"


def test_a_refusal_of_openais_has_its_code() -> None:
    with serving("rate-limited") as provider:
        status, _, body = got(f"{provider.url}/v1/chat/completions", chat())
    error = json.loads(body)["error"]
    assert (status, error["type"], error["code"], error["param"]) == (429, "requests", "rate_limit_exceeded", None)


def test_a_refusal_is_counted_for_each_request_and_begins_anew() -> None:
    with serving("rate-limited") as provider:
        url = f"{provider.url}/v1/chat/completions"
        other = {**chat(), "temperature": 0}
        statuses = [got(url, body)[0] for body in (chat(), other, chat(), chat(), other, other, chat())]
    assert statuses == [429, 429, 429, 200, 429, 200, 429]


def test_waits_are_multiplied_by_the_pace() -> None:
    """A minute before every frame, and nobody waits."""
    slow = Story("slow", "every frame waits", (Intent(text="Hello."),), faults=(PlacedFault("slow", 60.0),))
    with serving(slow, pace=0) as provider:
        assert b"[DONE]" in got(f"{provider.url}/v1/chat/completions", chat(stream=True))[2]


def test_what_falls_silent_never_goes_on() -> None:
    """However patient a client is: the connection is closed when the silence is over."""
    with serving("stalled", pace=0) as provider:
        for stream in (True, False):
            with pytest.raises(HTTPException):
                got(f"{provider.url}/v1/chat/completions", chat(stream=stream))


def test_it_listens_on_this_machine_alone_and_says_when_a_port_is_taken() -> None:
    with serving("text") as provider:
        assert provider.url.startswith("http://127.0.0.1:")
        port = int(provider.url.rpartition(":")[2])
        taken = pytest.raises(CallerError, match=f"port {port} is in use")
        with taken, serving("text", port=port):
            pass
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(provider.url, timeout=5)


@pytest.mark.parametrize(("host", "status"), [
    ("Host: localhost:{port}", 200), ("Host: [::1]:{port}", 200), ("Host: evil.example:{port}", 421),
    ("Host: 127.0.0.1.evil.example", 421), ("Host: 127.0.0.1\r\nHost: evil.example", 4), ("X-None: 1", 4),
])
def test_it_answers_to_its_own_address_alone(host: str, status: int) -> None:
    """A page whose name was rebound to this machine sends that name as the host."""
    with serving("text") as provider:
        port = int(provider.url.rpartition(":")[2])
        body = b'{"model": "text", "messages": [{"role": "user", "content": "x"}]}'
        head = f"POST /v1/chat/completions HTTP/1.1\r\n{host.format(port=port)}\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", port), 20) as client:
            client.sendall(head.encode() + body)
            said = client.recv(65536)
        assert said.split()[1].startswith(str(status).encode())
        assert len(provider.seen) == (status == 200)


def test_a_reply_that_was_made_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    real = app.reply_at
    monkeypatch.setattr(app, "reply_at", lambda *given: made.append(given) or real(*given))
    with serving("text") as provider:
        url = f"{provider.url}/v1/chat/completions"
        bodies = [got(url, chat(max_tokens=cap))[2] for cap in (5, 5, 6, 5)]
    assert len(made) == 2
    assert bodies[0] == bodies[1] == bodies[3] != bodies[2]


def test_secrets_in_addresses_and_headers_are_not_kept() -> None:
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]}
    with serving("text") as provider:
        got(f"{provider.url}/v1beta/models/m:generateContent?key=AIza-secret&sig=0123abcd&alt=json", body)
        assert provider.seen[0].path == "/v1beta/models/m:generateContent?key=REDACTED&sig=REDACTED&alt=json"


def test_the_fixture_starts_a_provider(scripted_provider: ProviderStarter) -> None:
    provider = scripted_provider("cut-twice", pace=0)
    assert got(f"{provider.url}/v1/chat/completions", chat())[0] == 200
    assert [seen.kind for seen in provider.seen] == ["first"]


@pytest.mark.parametrize("cap", [-5, 0])
def test_an_output_limit_below_one_is_refused(cap: int) -> None:
    with serving("text") as provider:
        status, _, said = got(f"{provider.url}/v1/messages", {
            "model": "text", "max_tokens": cap, "messages": [{"role": "user", "content": "hi"}]})
    assert (status, f"max_tokens: expected 1 or more, but it is {cap}".encode() in said) == (400, True)


def test_a_response_that_is_fetched_is_the_one_that_was_given() -> None:
    with serving("text") as provider:
        made = json.loads(got(f"{provider.url}/v1/responses", {
            "model": "text", "input": "hi", "max_output_tokens": 64})[2])
        again = json.loads(got(f"{provider.url}/v1/responses/{made['id']}")[2])
    assert (again["status"], again["usage"]) == (made["status"], made["usage"])


@pytest.mark.parametrize("api", FORMATS)
@pytest.mark.parametrize("scenario", ["thinking", "refused-repair"])
def test_a_recording_against_it_reads_as_the_run(api: str, scenario: str, tmp_path: Path) -> None:
    """Requests of these look like other turns' where the history is all that tells; the recorder says what they did."""
    path = str(tmp_path / "s.jsonl")
    with serving(scenario, pace=0) as provider:
        (story,) = provider.stories
        tools = tuple(each.tool for each in story.tools)
        if wire(api).no_tools and tools:
            assert why_unplayable(story, api, True) == wire(api).no_tools
            return
        asked = Request(api, (Message(Role.USER, (TextPart("hi"),)),), scenario, tools,
                        max_tokens=8 if scenario == "thinking" else 64, stream=True)
        ran = run_live(asked, Server(api, provider.url), Settings(), Toolbox(), path)
    (live,), (read,) = view(ran.replay).turns, view(replay(open_case(open_paths([path])))).turns
    ends = [(turn.terminal, turn.verdict.word, turn.joined_text.text) for turn in (read, live)]
    assert ends[0] == ends[1]


@pytest.mark.parametrize("api", [api for api in FORMATS if wire(api).history == "prompt"])
@pytest.mark.parametrize("cap", [1, 4, 12])
def test_short_answers_of_a_prompt_are_joined_by_a_recording_as_by_the_run(api: str, cap: int, tmp_path: Path) -> None:
    """All of such an answer is among the words that the next request quotes, so it occurs twice in the prompt."""
    path, story = str(tmp_path / "s.jsonl"), Story("short", "", (Intent(text="One, two, and three. " * 5),))
    with serving(story, pace=0) as provider:
        asked = Request(api, (Message(Role.USER, (TextPart("hi"),)),), "short", max_tokens=cap, stream=True)
        ran = run_live(asked, Server(api, provider.url), Settings(), Toolbox(), path)
    live, read = ran.replay.turns[0].final_turn, replay(open_case(open_paths([path]))).turns[0].final_turn
    assert [(each.method, each.anchor) for each in read.answers[-1]] == [
        (each.method, each.anchor) for each in live.answers[-1]]
    assert read.joined_answer() == live.joined_answer()
