"""`inspector run` from the command line: exit codes, recordings that survive, tools, and keys that appear nowhere."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from inspector.commands.providers import tools_of as tools_printed
from inspector.config.settings import Settings, settings_of
from inspector.live.headless import LiveResult as Ran_
from inspector.live.headless import run_live
from inspector.live.inputs import json_file, key_for, request_of, tools_of
from inspector.live.recorder import Recorder
from inspector.provider import all_stories
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.facts import view
from inspector.sessions import intake, open_paths
from loop_core.client.address import Server
from loop_core.errors import CallerError
from loop_core.turn.limits import GUARDS
from loop_core.turn.machine import TRANSITIONS
from loop_core.turn.tools import Toolbox
from loop_core.turn.trace import Fidelity
from loop_core.values import Stop, Tool, ToolCall
from tests.scenes.command import RunCli
from tests.scenes.live import ERROR, KINDS, QUICK, answer, request, streams
from tests.scenes.loopback import Fake, Peer
from tests.scenes.provider import CALLING

ROOT = Path(__file__).parents[2]
KEY = "sk-live-0123456789abcdefghij"


def spawn(*words: str) -> subprocess.Popen[str]:
    """The same in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "inspector", "run", *words], text=True, cwd=ROOT, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)})


def chat(fake: Fake, record: Path, *words: str) -> list[str]:
    return ["--api", "openai_chat", "--model", "m", "--base-url", fake.url, "--record", str(record), *words]


def test_a_cut_answer_is_continued_recorded_and_reported(run_cli: RunCli, fake: Fake, tmp_path: Path) -> None:
    fake.answers = [streams("openai_chat", answer("openai_chat", "One, two, ", Stop.MAX_TOKENS)),
                    streams("openai_chat", answer("openai_chat", "One, two, three.", Stop.END_TURN))]
    record = tmp_path / "s.jsonl"
    done = run_cli(*chat(fake, record, "--prompt", "Count.", "--set", "max_tokens=20"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("CUT, COMPLETED")
    assert "One, two, three." in done.stdout
    assert "recorded agent" not in done.stdout
    sent = fake.got[0].json
    assert sent == {"model": "m", "messages": [{"role": "user", "content": "Count."}], "max_tokens": 20,
                    "stream": True, "stream_options": {"include_usage": True}}
    again = view(replay(open_case(open_paths([str(record)]))))
    assert [turn.joined_text.text for turn in again.turns] == ["One, two, three."]
    assert [turn.terminal for turn in again.turns] == ["completed"]


def test_a_request_whose_answer_broke_off_is_said_to_be_sent_again_for_that(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [lambda peer: peer.head(content_length="99"),
                    streams("openai_chat", answer("openai_chat", "All of it.", Stop.END_TURN))]
    path = tmp_path / "s.jsonl"
    ran = run_live(request("openai_chat"), Server("openai_chat", fake.url), Settings(), Toolbox(), str(path), QUICK)
    told = "response 1: HTTP 200, 127.0.0.1"
    for notices in (ran.replay.case.recording.inputs[0].notices, open_paths([str(path)]).inputs[0].notices):
        assert [told in notice and "broke the connection; sent again after" in notice for notice in notices] == [True]


@pytest.mark.parametrize("api", CALLING)
def test_a_recording_read_again_says_what_was_seen_live(api: str, fake: Fake, tmp_path: Path) -> None:
    call = ToolCall(None if api == "ollama_chat" else "call_1", "weather", '{"city":"Oslo"}', closed=True)
    fake.answers = [streams(api, answer(api, "", Stop.TOOL_CALL, call)),
                    lambda peer: peer.whole(429, ERROR, retry_after="0"),
                    streams(api, answer(api, "It is sunny, ", Stop.MAX_TOKENS)),
                    streams(api, answer(api, "and warm.", Stop.END_TURN))]
    asked = request(api, tools=(Tool("weather", {"type": "object"}),))
    path = tmp_path / "s.jsonl"
    live = run_live(asked, Server(api, fake.url), Settings(), Toolbox({"weather": lambda _: "sun"}), str(path), QUICK)
    seen, again = view(live.replay), view(replay(open_case(open_paths([str(path)]))))
    assert {step.fidelity for step in seen.steps} == {Fidelity.LIVE}
    assert [facts.index for facts in seen.responses] == [0, 1, 2, 3]
    assert seen.turns[0].joined_text.text == "It is sunny, and warm."
    assert "HTTP 429; sent again after 0 s" in " ".join(seen.inputs[0].notices)
    for one, other in zip(seen.responses, again.responses, strict=True):
        assert one.judgement == other.judgement
        assert one.exchange.body == other.exchange.body
        assert one.exchange.request_json == other.exchange.request_json
        assert [chunk.end for chunk in one.exchange.chunks] == [chunk.end for chunk in other.exchange.chunks]
        assert one.exchange.profile == other.exchange.profile
    results = [line for line in path.read_text().splitlines() if '"tool_result"' in line.split(",")[0]]
    assert len(results) == 1
    assert '"text": "sun"' in results[0]


@pytest.mark.parametrize("api", CALLING)
def test_an_empty_answer_is_asked_for_again_and_reported(run_cli: RunCli, api: str, fake: Fake, tmp_path: Path) -> None:
    fake.answers = [streams(api, answer(api, "", Stop.END_TURN)), streams(api, answer(api, "Three.", Stop.END_TURN))]
    record = tmp_path / "s.jsonl"
    key = {"AWS_BEARER_TOKEN_BEDROCK": KEY} if api == "bedrock_converse" else {}
    done = run_cli("--api", api, "--model", "m", "--base-url", fake.url, "--record", str(record), "--prompt", "Count.",
               "--set", "max_tokens=20", "--insecure-http", "127.0.0.1", "--json", environment=key)
    assert (done.returncode, done.stderr, len(fake.got)) == (0, "", 2)
    live, again = json.loads(done.stdout), view(replay(open_case(open_paths([str(record)]))))
    assert (live["verdict"]["id"], live["turns"][0]["merged_text"]) == ("complete", "Three.")
    assert [facts.recorded_next for facts in again.responses] == ["asked for an answer again", "the recording ends"]


def test_every_end_of_the_machine_has_an_exit_code() -> None:
    """`unrecorded` is the end of recordings, and of what is asked live from one of their steps."""
    ends = {row.terminal for row in TRANSITIONS.values() if row.terminal} | {guard.terminal for guard in GUARDS}
    codes = {terminal: Ran_(None, terminal).exit for terminal in ends}  # type: ignore[arg-type]
    alone = {"completed": 0, "safety_blocked": 4, "interrupted": 5, "error": 6, "cancelled": 130}
    assert {terminal: code for terminal, code in codes.items() if code != 3} == alone


def broken(peer: Peer) -> None:
    peer.head()
    peer.send(b"".join(answer("openai_chat", "One, two, three, four", Stop.END_TURN)[:2]))


@pytest.mark.parametrize(("play", "words", "code"), [
    (streams("openai_chat", answer("openai_chat", "Hi", Stop.END_TURN)), (), 0),
    (streams("openai_chat", answer("openai_chat", "Hi", Stop.MAX_TOKENS)), ("--set", "continuation_max_attempts=0"), 3),
    (lambda peer: peer.whole(200, {"choices": [{"message": {"content": "No"}, "finish_reason": "content_filter"}]}),
     ("--whole",), 4),
    (broken, (), 5),
    (lambda peer: peer.whole(401, {"error": {"message": "who are you"}}), (), 6),
])
def test_the_exit_code_is_the_end_state(
    run_cli: RunCli, play: Any, words: tuple[str, ...], code: int, fake: Fake, tmp_path: Path
) -> None:
    fake.answers = [play]
    done = run_cli(*chat(fake, tmp_path / "s.jsonl", "--prompt", "Hi", "--json", *words))
    assert done.returncode == code, done.stderr
    document = json.loads(done.stdout)
    assert len(document["responses"]) == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("words", "said"), [
    ((), "expected either --prompt or --messages"),
    (("--prompt", "x", "--messages", "y"), "expected either --prompt or --messages"),
    (("--messages", "absent.json"), "--messages absent.json: No such file"),
    (("--prompt", "x", "--tools", "absent.json"), "--tools absent.json: No such file"),
    (("--prompt", "x", "--tools", "no_such_module_here:tools"), "No module named 'no_such_module_here'"),
    (("--prompt", "x", "--set", "nothing=1"), "unknown setting 'nothing'"),
    (("--prompt", "x", "--key-env", "NOT_SET_ANYWHERE"), "--key-env: NOT_SET_ANYWHERE is not set"),
    (("--prompt", "x", "--profile", "nobody"), "unknown profile 'nobody'"),
])
def test_what_cannot_be_used_is_one_line_and_nothing_is_sent(
    run_cli: RunCli, words: tuple[str, ...], said: str, fake: Fake, tmp_path: Path
) -> None:
    done = run_cli(*chat(fake, tmp_path / "s.jsonl", *words))
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert fake.got == []
    assert not (tmp_path / "s.jsonl").exists()


def test_messages_needs_a_cap_and_says_so(run_cli: RunCli, fake: Fake, tmp_path: Path) -> None:
    done = run_cli("--api", "anthropic_messages", "--model", "m", "--base-url", fake.url, "--prompt", "x",
               "--record", str(tmp_path / "s.jsonl"))
    assert (done.returncode, done.stderr) == (2, "inspector: anthropic_messages: a request needs max_tokens\n")


def test_a_recording_is_never_written_over(run_cli: RunCli, fake: Fake, tmp_path: Path) -> None:
    record = tmp_path / "s.jsonl"
    record.write_text("mine\n")
    done = run_cli(*chat(fake, record, "--prompt", "x"))
    assert done.returncode == 2
    assert "the file exists" in done.stderr
    assert record.read_text() == "mine\n"


def test_without_a_name_the_recording_is_in_the_data_folder(run_cli: RunCli, fake: Fake, tmp_path: Path) -> None:
    fake.answers = [streams("openai_chat", answer("openai_chat", "Hi", Stop.END_TURN))]
    done = run_cli("--api", "openai_chat", "--model", "m", "--base-url", fake.url, "--prompt", "x",
               environment={"LOOP_INSPECTOR_DATA": str(tmp_path)})
    assert done.returncode == 0
    (made,) = (tmp_path / "live").iterdir()
    assert str(made) in done.stdout


BODY = {"model": "other", "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
        "temperature": 0, "seed": 7}


@pytest.mark.parametrize("content", [BODY, BODY["messages"]])
def test_messages_come_from_a_file_as_a_list_or_a_body(
    run_cli: RunCli, content: Any, fake: Fake, tmp_path: Path
) -> None:
    fake.answers = [streams("openai_chat", answer("openai_chat", "Hi", Stop.END_TURN))]
    (tmp_path / "m.json").write_text(json.dumps(content))
    assert run_cli(*chat(fake, tmp_path / "s.jsonl", "--messages", str(tmp_path / "m.json"))).returncode == 0
    sent = fake.got[0].json
    assert (sent["model"], sent["messages"]) == ("m", BODY["messages"])
    assert sent.get("seed") == (7 if isinstance(content, dict) else None)


def test_chat_messages_serve_every_api(run_cli: RunCli, fake: Fake, tmp_path: Path) -> None:
    fake.answers = [streams("gemini_generate", answer("gemini_generate", "Hi", Stop.END_TURN))]
    (tmp_path / "m.json").write_text(json.dumps(BODY["messages"]))
    done = run_cli("--api", "gemini_generate", "--model", "m", "--base-url", fake.url, "--messages",
               str(tmp_path / "m.json"), "--record", str(tmp_path / "s.jsonl"))
    assert done.returncode == 0
    assert fake.got[0].json == {"systemInstruction": {"parts": [{"text": "Be brief."}]},
                                "contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}


CODE = '''
def weather(city: str, days: int = 1) -> str:
    """The weather of a city."""
    return f"{city}: sun, {days} days"

def broken(city: str) -> str:
    raise RuntimeError("no line to " + city)

tools = [weather, broken]
'''


def test_python_callables_are_declared_and_run(run_cli: RunCli, fake: Fake, tmp_path: Path) -> None:
    (tmp_path / "my_tools.py").write_text(CODE)
    calls = (ToolCall("a", "weather", '{"city":"Oslo","days":3}', True),
             ToolCall("b", "broken", '{"city":"Rome"}', True))
    fake.answers = [streams("openai_chat", answer("openai_chat", "", Stop.TOOL_CALL, *calls)),
                    streams("openai_chat", answer("openai_chat", "Done.", Stop.END_TURN))]
    done = run_cli(*chat(fake, tmp_path / "s.jsonl", "--prompt", "x", "--tools", "my_tools:tools"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    declared = fake.got[0].json["tools"]
    assert declared[0]["function"]["name"] == "weather"
    assert declared[0]["function"]["description"] == "The weather of a city."
    assert declared[0]["function"]["parameters"]["required"] == ["city"]
    assert [message["content"] for message in fake.got[1].json["messages"][2:]] == [
        "Oslo: sun, 3 days", "Failed: RuntimeError: no line to Rome"]


def test_declarations_of_a_file_answer_with_their_result(run_cli: RunCli, fake: Fake, tmp_path: Path) -> None:
    schema = {"type": "object"}
    (tmp_path / "t.json").write_text(json.dumps([
        {"type": "function", "function": {"name": "weather", "parameters": schema}, "result": {"sky": "blue"}},
        {"name": "time", "input_schema": schema}]))
    calls = (ToolCall("a", "weather", "{}", True), ToolCall("b", "time", "{}", True))
    fake.answers = [streams("openai_chat", answer("openai_chat", "", Stop.TOOL_CALL, *calls)),
                    streams("openai_chat", answer("openai_chat", "Done.", Stop.END_TURN))]
    done = run_cli(*chat(fake, tmp_path / "s.jsonl", "--prompt", "x", "--tools", str(tmp_path / "t.json")))
    assert done.returncode == 0, done.stderr
    assert [message["content"] for message in fake.got[1].json["messages"][2:]] == [
        '{"sky": "blue"}', "Not run: there is no tool 'time'"]
    assert "result" not in json.dumps(fake.got[0].json["tools"])


def test_what_the_scripted_provider_prints_are_tools(tmp_path: Path) -> None:
    for story in all_stories().values():
        path = tmp_path / "tools.json"
        path.write_text(json.dumps(tools_printed(story)))
        declared, runs = tools_of(str(path))
        assert [(tool.name, tool.description, tool.schema) for tool in declared] == [
            (each.tool.name, each.tool.description, each.tool.schema) for each in story.tools]
        assert [runs[each.tool.name]({}) for each in story.tools] == [each.result for each in story.tools]


def test_no_tools_at_all_are_a_list_of_none(run_cli: RunCli, fake: Fake, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("[]")  # as `provider --tools text` prints it
    fake.answers = [streams("openai_chat", answer("openai_chat", "Hi.", Stop.END_TURN))]
    done = run_cli(*chat(fake, tmp_path / "s.jsonl", "--prompt", "x", "--tools", str(tmp_path / "t.json")))
    assert done.returncode == 0, done.stderr
    assert "tools" not in fake.got[0].json
    (tmp_path / "t.json").write_text('"none"')
    refused = run_cli(*chat(fake, tmp_path / "t.jsonl", "--prompt", "x", "--tools", str(tmp_path / "t.json")))
    assert refused.returncode == 2
    assert "expected a JSON list of tools" in refused.stderr


def test_a_schema_is_reduced_only_when_asked(run_cli: RunCli, fake: Fake, tmp_path: Path) -> None:
    fake.answers = [streams("gemini_generate", answer("gemini_generate", "Hi", Stop.END_TURN))]
    (tmp_path / "t.json").write_text(json.dumps(
        [{"name": "go", "parameters": {"type": "object", "properties": {"mode": {"const": "fast"}}}}]))
    words = ["--api", "gemini_generate", "--model", "m", "--base-url", fake.url, "--prompt", "x",
             "--tools", str(tmp_path / "t.json"), "--record", str(tmp_path / "s.jsonl")]
    refused = run_cli(*words)
    assert refused.returncode == 2
    assert "the schema of go at /properties/mode/const: const is not taken" in refused.stderr
    assert fake.got == []
    assert run_cli(*words, "--reduce-schemas").returncode == 0


# -- what survives ---------------------------------------------------------------------------------------------------


def record_size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def test_an_interrupt_is_cancelled_and_the_report_is_printed(fake: Fake, tmp_path: Path) -> None:
    fake.answers = [streams("openai_chat", answer("openai_chat", "One", Stop.END_TURN)[:2], Peer.hold)]
    process = spawn(*chat(fake, tmp_path / "s.jsonl", "--prompt", "x"))
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and '"bytes"' not in (
            (tmp_path / "s.jsonl").read_text() if record_size(tmp_path / "s.jsonl") else ""):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "cancelled" in out
    assert "Traceback" not in err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full here")
def test_a_full_disk_stops_the_recording_and_not_the_turn(fake: Fake, tmp_path: Path) -> None:
    class Full(Recorder):
        def began(self) -> None:
            os.dup2(os.open("/dev/full", os.O_WRONLY), self._writer._file.fileno())

    recorder = Full(tmp_path / "s.jsonl")
    recorder.began()
    recorder.on_data(0, b"x", 1.0)
    recorder.on_data(0, b"y", 2.0)
    recorder.close()
    assert recorder.failure is not None
    assert recorder.failure.endswith("the recording stopped: No space left on device")


# -- keys ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("address", "environment", "variable", "key"), [
    ("openai", {"OPENAI_API_KEY": "a"}, None, "a"),
    ("", {"OPENAI_API_KEY": "a"}, None, ""),
    ("groq", {"OPENAI_API_KEY": "a", "GROQ_API_KEY": "b"}, None, "b"),
    ("gemini", {"GOOGLE_API_KEY": "b"}, None, "b"),
    ("anthropic", {"ANTHROPIC_API_KEY": "b"}, None, "b"),
    ("bedrock", {"AWS_BEARER_TOKEN_BEDROCK": "b"}, None, "b"),
    ("ollama", {"OLLAMA_API_KEY": "b"}, None, "b"),
    ("azure_openai", {"AZURE_OPENAI_API_KEY": "b"}, None, "b"),
    ("mistral", {"MISTRAL_API_KEY": "b"}, None, "b"),
    ("deepseek", {"DEEPSEEK_API_KEY": "b"}, None, "b"),
    ("xai", {"XAI_API_KEY": "b"}, None, "b"),
    ("cerebras", {"CEREBRAS_API_KEY": "b"}, None, "b"),
    ("together", {"TOGETHER_API_KEY": "b"}, None, "b"),
    ("fireworks", {"FIREWORKS_API_KEY": "b"}, None, "b"),
    ("moonshot", {"MOONSHOT_API_KEY": "b"}, None, "b"),
    ("openrouter", {"OPENROUTER_API_KEY": "b"}, None, "b"),
    ("hf_router", {"HF_TOKEN": "b"}, None, "b"),
    ("gemini", {"GOOGLE_API_KEY": "b", "GEMINI_API_KEY": "a"}, None, "a"),
    ("", {"LOOP_INSPECTOR_API_KEY": "c", "OPENAI_API_KEY": "a"}, None, "c"),
    ("", {"MINE": " d\n", "OPENAI_API_KEY": "a"}, "MINE", "d"),
])
def test_a_key_goes_to_the_server_that_it_belongs_to(
    address: str, environment: dict[str, str], variable: str | None, key: str
) -> None:
    assert key_for(address, environment, variable) == key


def test_a_profile_that_was_only_named_gets_no_key(run_cli: RunCli, fake: Fake, tmp_path: Path) -> None:
    fake.answers = [streams("openai_chat", answer("openai_chat", "Hi", Stop.END_TURN))]
    done = run_cli(*chat(fake, tmp_path / "s.jsonl", "--prompt", "x", "--profile", "openai"),
               environment={"OPENAI_API_KEY": KEY})
    assert done.returncode == 0
    assert "authorization" not in fake.got[0].headers


@pytest.mark.parametrize("api", CALLING)
def test_no_byte_that_is_written_holds_a_key(run_cli: RunCli, api: str, fake: Fake, tmp_path: Path) -> None:
    """In every place where providers and tools put one: headers, an error's text, an answer, an argument, a result."""
    others = {"bearer": "Bearer abcDEF0123456789ghiJKL", "google": "AIzaSyA-0123456789abcdefghijklmnopqrstu"}
    text = "" if api == "bedrock_converse" else f"Your key is {KEY}."
    # Responses says arguments twice: masked in the whole and not in its pieces they differ, and the call is held.
    argument = "x" if api == "openai_responses" else KEY
    call = ToolCall("call_1", "env", json.dumps({"key": argument}), closed=True)
    fake.answers = [
        lambda peer: peer.whole(429, {"error": {"message": f"Incorrect API key provided: {KEY}"}}, retry_after="0",
                                set_cookie=f"session={KEY}", x_request_key=KEY, www_authenticate=others["bearer"]),
        streams(api, answer(api, text, Stop.TOOL_CALL, call)),
        lambda peer: peer.whole(401, {"error": {"message": f"{KEY} {others['google']}", "api_key": KEY}}),
    ]
    (tmp_path / "my_tools.py").write_text("import os\ndef env(key: str) -> str:\n    return str(dict(os.environ))\n")
    address = fake.url.replace("http://", "http://user:pass-word-0123456789@")
    words = ["--api", api, "--model", "m", "--base-url", f"{address}?key={KEY}&api-version=1", "--prompt", "x",
             "--tools", "my_tools:env", "--set", "max_tokens=50", "--key-env", "MINE"]
    environment = {"MINE": KEY, "LOOP_INSPECTOR_DATA": str(tmp_path / "data"), "HTTPS_PROXY": f"http://u:{KEY}@p:1"}
    text_run = run_cli(*words, environment=environment, cwd=tmp_path)
    assert KEY in str(fake.got[0].headers) + fake.got[0].line, "the key was not even sent"
    fake.got.clear()
    json_run = run_cli(*words, "--json", environment=environment, cwd=tmp_path)
    assert (text_run.returncode, json_run.returncode) == (6, 6), text_run.stderr
    written = [path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert len(written) == 2
    everything = b"".join(written) + "".join(
        done.stdout + done.stderr for done in (text_run, json_run)).encode()
    for secret in (KEY, "pass-word-0123456789", *others.values()):
        assert secret.encode() not in everything, secret
    assert b"REDACTED" in everything
    assert b"tool_result" in everything


def test_a_key_leaves_over_plain_http_only_where_the_host_is_named(run_cli: RunCli, fake: Fake, tmp_path: Path) -> None:
    """A proxy stands for the network: what reaches it would have crossed that."""
    fake.answers = [streams("openai_chat", answer("openai_chat", "One.", Stop.END_TURN))]
    words = ["--api", "openai_chat", "--model", "m", "--base-url", "http://far.example/v1", "--prompt", "x",
             "--key-env", "MINE", "--record", str(tmp_path / "s.jsonl")]
    environment = {"MINE": KEY, "HTTP_PROXY": fake.url, "http_proxy": fake.url}
    for more in ([], ["--insecure-http", "other.example"]):
        refused = run_cli(*words, *more, environment=environment)
        assert (refused.returncode, fake.got) == (2, [])
        assert "far.example: a key or another credential would be sent there unencrypted" in refused.stderr
        assert "--insecure-http far.example" in refused.stderr
        assert KEY not in refused.stderr
    assert not (tmp_path / "s.jsonl").exists()
    allowed = run_cli(*words, "--insecure-http", "far.example", environment=environment)
    assert allowed.returncode == 0, allowed.stderr
    assert fake.got[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_prompt_that_holds_the_key_is_refused(run_cli: RunCli, fake: Fake, tmp_path: Path) -> None:
    done = run_cli(*chat(fake, tmp_path / "s.jsonl", "--prompt", f"my key is {KEY}", "--key-env", "MINE"),
               environment={"MINE": KEY})
    assert done.returncode == 2
    assert "the request contains the key" in done.stderr
    assert KEY not in done.stderr
    assert fake.got == []


# -- a real model ----------------------------------------------------------------------------------------------------

MODEL = os.environ.get("LOOP_INSPECTOR_MODEL_URL", "")


@pytest.mark.skipif(not MODEL, reason="no real model: LOOP_INSPECTOR_MODEL_URL is not set")
@pytest.mark.parametrize("api", ["openai_chat", "openai_responses", "anthropic_messages"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_real_model_is_cut_and_continued(api: str, stream: bool, tmp_path: Path) -> None:
    import dataclasses

    asked = dataclasses.replace(request(api, extra={"temperature": 0}), stream=stream, model="smollm2-135m-instruct")
    settings = settings_of({"max_tokens": "24", "continuation_max_attempts": "1"}, Settings())
    done = run_live(asked, Server(api, MODEL), settings, Toolbox(), str(tmp_path / "s.jsonl"))
    seen = view(done.replay)
    assert len(seen.responses) == 2
    assert seen.responses[0].judgement.stop.normalized is Stop.MAX_TOKENS
    assert done.terminal in ("completed", "retry_limit")
    again = view(replay(open_case(open_paths([str(tmp_path / "s.jsonl")]))))
    # That server says `completed` over a cut Responses answer, so that a reader cannot know that the next one goes on.
    assert [facts.judgement for facts in again.responses] == [facts.judgement for facts in seen.responses]
    if api != "openai_responses":
        assert again.turns[0].joined_text.text == seen.turns[0].joined_text.text


def test_a_recorder_refuses_a_folder(tmp_path: Path) -> None:
    with pytest.raises(CallerError, match="--record"):
        Recorder(tmp_path)


def test_the_formats_of_bodies_are_known() -> None:
    assert set(KINDS) <= set(CALLING)


def test_words_that_were_quoted_are_cut_in_the_recording_too(fake: Fake, tmp_path: Path) -> None:
    """Without a prefill the last words are asked back; a reader of the file knows which they were."""
    fake.answers = [streams("openai_chat", answer("openai_chat", "One, two, ", Stop.MAX_TOKENS)),
                    streams("openai_chat", answer("openai_chat", "One, two, three.", Stop.END_TURN))]
    path = str(tmp_path / "s.jsonl")
    live = run_live(request("openai_chat"), Server("openai_chat", fake.url), Settings(), Toolbox(), path, QUICK)
    again = view(replay(open_case(open_paths([path]))))
    assert view(live.replay).turns[0].joined_text.text == again.turns[0].joined_text.text == "One, two, three."


def test_results_of_a_recording_answer_the_calls(run_cli: RunCli, fake: Fake, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps([{"name": "weather", "input_schema": {"type": "object"}}]))
    call = ToolCall("a", "weather", '{"city":"Oslo"}', True)
    fake.answers = [streams("openai_chat", answer("openai_chat", "", Stop.TOOL_CALL, call)),
                    streams("openai_chat", answer("openai_chat", "Done.", Stop.END_TURN))] * 2
    (tmp_path / "answers.json").write_text(json.dumps(
        [{"name": "weather", "input_schema": {"type": "object"}, "result": "rain"}]))
    before = tmp_path / "before.jsonl"
    first = run_cli(*chat(fake, before, "--prompt", "x", "--tools", str(tmp_path / "answers.json")))
    again = run_cli(*chat(fake, tmp_path / "s.jsonl", "--prompt", "x", "--tools", str(tmp_path / "t.json"),
                      "--results", str(before)))
    assert (first.returncode, again.returncode) == (0, 0), again.stderr
    assert [got.json["messages"][-1]["content"] for got in fake.got[1::2]] == ["rain", "rain"]


@pytest.mark.parametrize(("words", "said"), [
    (("--step",), "--step needs a terminal"), (("--step", "--json"), "expected either --step or --json"),
    (("--results", "absent.jsonl"), "--results absent.jsonl"),
    (("--set", "profile=vllm"), "--set profile: only a replay uses it; --profile says how the server speaks"),
    (("--set", "simulate=yes"), "--set simulate: only a replay uses it"),
    (("--set", "live=20260131-235959-000000"), "--set live: only a replay uses it"),
    (("--set", "edit.1.1=x"), "--set edit.1.1: only a replay uses it"),
])
def test_what_a_run_cannot_use_is_said_and_nothing_is_sent(
    run_cli: RunCli, words: tuple[str, ...], said: str, fake: Fake, tmp_path: Path
) -> None:
    done = run_cli(*chat(fake, tmp_path / "s.jsonl", "--prompt", "x", *words))
    assert done.returncode == 2
    assert said in done.stderr
    assert fake.got == []


def test_what_the_format_cannot_carry_ends_the_turn_and_keeps_what_was_heard(
    run_cli: RunCli, fake: Fake, tmp_path: Path
) -> None:
    """Converse wants the tools of a history with calls declared, and this model calls without any."""
    call = ToolCall("call_1", "weather", '{"city":"Oslo"}', closed=True)
    fake.answers = [streams("bedrock_converse", answer("bedrock_converse", "", Stop.TOOL_CALL, call))]
    record = str(tmp_path / "s.jsonl")
    done = run_cli("--api", "bedrock_converse", "--model", "m", "--base-url", fake.url, "--prompt", "x", "--record",
                   record)
    assert done.returncode == 3
    why = "bedrock_converse: a history with calls needs its tools declared"
    assert f"The request could not be sent: {why}." in done.stdout
    assert len(fake.got) == 1
    assert json.loads(Path(record).read_text().splitlines()[-1])["end_state"] == "unrecorded"
    assert "AWAITS RESULT" in done.stdout, "the run itself says that its turn was not finished"
    assert "not finished; the request could not be sent: bedrock_converse" in done.stdout
    assert "COMPLETE" not in done.stdout


def test_a_server_that_is_not_there_is_told_as_that(
    run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)  # the seconds before it is asked again
    record = str(tmp_path / "s.jsonl")
    done = run_cli("--api", "openai_chat", "--model", "m", "--base-url", "http://127.0.0.1:1", "--prompt", "x",
               "--record", record)
    assert done.returncode == 5
    assert done.stdout.startswith("NO ANSWER  turn 1 of 1")
    assert "no connection to 127.0.0.1:1" in done.stdout.splitlines()[0]
    assert view(replay(open_case(open_paths([record])))).turns[0].verdict.word == "NO ANSWER"


@pytest.mark.parametrize(("api", "said"), [
    ("openai_responses", [{"type": "function_call_output", "call_id": "c", "output": "Hi."}]),
    ("gemini_generate", [{"role": "user", "parts": [{"text": "Hi."}]}]),
    ("gemini_interactions", [{"type": "function_result", "call_id": "c", "result": "Hi."}]),
])
def test_a_list_of_messages_may_be_in_the_form_of_its_format(api: str, said: list[Any]) -> None:
    (message,) = request_of(api, "m", None, said, False).messages
    assert "Hi." in (message.text, *(result.text for result in message.results))


@pytest.mark.parametrize(("api", "field"), [
    ("openai_chat", "messages"), ("openai_completions", "prompt"), ("ollama_generate", "prompt"),
    ("anthropic_complete", "prompt"), ("gemini_generate", "contents"),
])
def test_a_body_without_messages_is_refused_by_the_field_that_holds_them(api: str, field: str) -> None:
    with pytest.raises(CallerError, match=f"not a request body of {api}: expected one with {field}$"):
        request_of(api, "m", None, {"model": "m"}, False)


def test_a_file_of_messages_may_begin_with_a_byte_order_mark(tmp_path):
    (tmp_path / "said").write_text("\ufeff[1]\r\n", "utf-8")
    assert json_file(str(tmp_path / "said"), "--messages") == [1]


def test_a_file_of_messages_that_has_no_end_or_no_writer_or_too_many_brackets_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(intake, "WAIT", 0)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "deep").write_text("[" * 100_000)
    (tmp_path / "long").write_text("9" * 5_000)
    for path, why in (("/dev/zero", "a device"), (tmp_path / "fifo", "a FIFO that nobody writes to"),
                      (tmp_path / "deep", "nested too deeply"), (tmp_path / "long", "a number has too many digits")):
        with pytest.raises(CallerError, match=f"^--messages {path}: {why}"):
            json_file(str(path), "--messages")
