"""What `run --json` says of a turn is what `explain --json` says of its recording: ids, verdicts, causes, findings.

Every scenario and every fault is read again where its end is tested: `provider/test_shipped`, `provider/test_faults`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inspector.config.settings import Settings
from inspector.live.headless import LiveResult, run_live
from inspector.provider import Provider, Story, all_stories, serving
from inspector.provider.faults import why_unplayable
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.explain_document import document
from inspector.report.facts import view
from inspector.sessions import open_paths
from loop_core.client.address import Server
from loop_core.client.exchange import Connection, Retries, Timeouts
from loop_core.turn.limits import Limits
from loop_core.turn.tools import Toolbox
from loop_core.values import Message, Request, Role, Stop, TextPart, Tool, ToolCall
from loop_core.wire import wire
from tests.scenes.live import PATIENT, answer, streams
from tests.scenes.loopback import Fake
from tests.scenes.provider import CALLING, TurnResult, each_way

QUICK = Connection(Timeouts(connect=5, silence=1.5, whole=30, poll=0.01), Retries(most=2, longest=1, first=0.01))


def plain_document(done: dict[str, Any]) -> dict[str, Any]:
    """What is said of a turn, without the name of the form that it was read from. The settings of a run are left out as
    well: its recording holds them as limits."""
    plain: dict[str, Any] = json.loads(json.dumps(done))
    plain.pop("settings", None)
    for given in plain["inputs"]:
        del given["format"]
    return plain


def both(done: LiveResult, path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    again = document(view(replay(open_case(open_paths([str(path)])))))
    return plain_document(document(view(done.replay))), plain_document(again)


def request_of(api: str, model: str, tools: Sequence[Tool] = (), stream: bool = True, **more: Any) -> Request:
    said = (Message(Role.USER, (TextPart("Go on."),)),)
    return Request(api, said, model, tuple(tools), max_tokens=more.pop("cap", 400), stream=stream, **more)


def play_story(
    provider: Provider, story: Story, request: Request, path: Path, line: Connection = QUICK,
    settings: Settings | None = None, ran: list[tuple[str, Any]] | None = None,
) -> LiveResult:
    def tool(name: str) -> Callable[[Any], str]:
        return lambda arguments: ran.append((name, arguments)) or "done" if ran is not None else "done"

    tools = Toolbox({each.tool.name: tool(each.tool.name) for each in story.tools})
    return run_live(request, Server(request.api, provider.bases[request.api]), settings or Settings(), tools, str(path),
                    line)


ASKS_AGAIN = Settings(Limits(), explicit=frozenset({"max_empty_retries"}))
"""The limits of the library: `run` does not send a request again for an answer that is empty."""


def play_and_read(
    provider: Provider, api: str, stream: bool, story: Story, folder: Path, *, cap: int | None,
    line: Connection = QUICK, settings: Settings = ASKS_AGAIN,
) -> TurnResult:
    """A turn, of which a run and its recording say the same."""
    path, ran = folder / f"{api}-{stream}.jsonl", list[tuple[str, Any]]()
    tools = [] if wire(api).no_tools else [each.tool for each in story.tools]
    done = play_story(provider, story, request_of(api, story.name, tools, stream, cap=cap), path, line, settings, ran)
    said, read = both(done, path)
    assert said == read, (api, stream)
    assert [turn["id"] for turn in said["turns"]] == ["t1"], (api, stream)
    return TurnResult(done.replay.turns[0].steps[-1].turn, ran)


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with serving(*all_stories().values()) as running:
        yield running


@pytest.mark.parametrize("name", ["empty", "reasoning-only", "commentary"])  # the last is refused by all but one
def test_an_answer_for_which_nothing_is_sent_again_reads_back(name: str, provider: Provider, tmp_path: Path) -> None:
    for api, stream in each_way:
        got = play_and_read(provider, api, stream, all_stories()[name], tmp_path, cap=400, settings=Settings())
        refused = why_unplayable(all_stories()[name], api, stream)
        assert got.turn.terminal == ("error" if refused else "no_answer"), (api, stream)


def test_a_response_that_is_fetched_again_is_one_response_and_one_turn(provider: Provider, tmp_path: Path) -> None:
    story, path = all_stories()["paused"], tmp_path / "s.jsonl"
    done = play_story(provider, story, request_of("openai_responses", "paused", stream=False), path)
    first, second = (exchange.response for exchange in done.replay.case.recording.exchanges)
    assert first.id == second.id is not None
    ran, read = both(done, path)
    assert (ran["turns"], len(ran["responses"])) == (read["turns"], 2)
    assert [turn["merged_text"] for turn in read["turns"]] == [story.answers[0].text]
    assert [turn["terminal_reason"] for turn in read["turns"]] == ["completed"]


def test_nobody_answered_says_why_in_both(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    server = Server("openai_chat", "http://127.0.0.1:9/v1")
    ran, read = both(run_live(request_of("openai_chat", "m"), server, Settings(), Toolbox(), str(path), QUICK), path)
    assert ran == read
    (turn,) = ran["turns"]
    assert turn["verdict"]["id"] == "no_answer"
    assert "no connection to 127.0.0.1:9" in turn["verdict"]["text"]
    assert sum("sent again after" in notice and "no connection to 127.0.0.1:9" in notice
               for notice in ran["inputs"][0]["notices"]) == 2


def test_what_could_not_be_asked_next_is_said_in_both(provider: Provider, tmp_path: Path) -> None:
    """A cut answer of a chain that is not stored: nothing can go on from it."""
    story, path = all_stories()["cut-twice"], tmp_path / "s.jsonl"
    before = request_of("openai_responses", "cut-twice", previous_id="resp_cut-twice.0.0.0.0.0.0",
                        extra={"store": False})
    ran, read = both(play_story(provider, story, before, path, PATIENT), path)
    assert ran == read
    assert "store: false" in ran["turns"][0]["notice"]


def test_ids_that_come_twice_read_back_as_the_turn_that_was_run(fake: Fake, tmp_path: Path) -> None:
    """The request that carries the results holds other ids than the answer before it."""
    calls = [ToolCall("call_0", "weather", json.dumps({"city": city}), closed=True) for city in ("Oslo", "Rome")]
    again = ToolCall("call_0", "weather", json.dumps({"city": "Bonn"}), closed=True)
    fake.answers = [streams("openai_chat", answer("openai_chat", "", Stop.TOOL_CALL, *calls)),
                    streams("openai_chat", answer("openai_chat", "", Stop.TOOL_CALL, again)),
                    streams("openai_chat", answer("openai_chat", "Done.", Stop.END_TURN))]
    path = tmp_path / "s.jsonl"
    tools = Toolbox({"weather": lambda arguments: f"sun in {arguments['city']}"})
    request = request_of("openai_chat", "m", [Tool("weather", {"type": "object"})])
    done = run_live(request, Server("openai_chat", fake.url), Settings(), tools, str(path), PATIENT)
    messages = fake.got[2].json["messages"]
    ids = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    assert len(set(ids)) == 3
    assert [(each["tool_call_id"], each["content"]) for each in messages if each["role"] == "tool"] == list(
        zip(ids, ["sun in Oslo", "sun in Rome", "sun in Bonn"], strict=True))
    ran, read = both(done, path)
    assert ran == read
    assert [turn["terminal_reason"] for turn in read["turns"]] == ["completed"]
    history = replay(open_case(open_paths([str(path)]))).trace.steps[-1].turn.history
    results = [part.text for message in history for part in message.results]
    assert results == ["sun in Oslo", "sun in Rome", "sun in Bonn"]


@pytest.mark.parametrize(("base", "profile", "rule"), [
    ("http://api.openai.com/v1", None, "profile.host"),
    ("http://server.test:11434/v1", None, "profile.body"),  # a port is a guess, a mark of the answer is none
    ("http://server.test:1234/v1", None, "profile.port"),
    ("http://server.test:1234/v1", "vllm", "profile.named"),
])
def test_who_answered_is_read_back_from_what_showed_it(
    base: str, profile: str | None, rule: str, fake: Fake, tmp_path: Path
) -> None:
    """A profile that nobody named is in no recording: it would be a claim without bytes."""
    pieces = answer("openai_chat", "Done.", Stop.END_TURN)
    mark = b'"timings":{"predicted_n":1},"object"' if rule == "profile.body" else b'"object"'
    fake.answers = [streams("openai_chat", [piece.replace(b'"object"', mark) for piece in pieces])]
    server, line = Server("openai_chat", base, profile=profile), replace(PATIENT, proxy=fake.url)
    ran, read = both(run_live(request_of("openai_chat", "m"), server, Settings(), Toolbox(), str(tmp_path / "s"), line),
                     tmp_path / "s")
    assert ran == read
    (response,) = read["responses"]
    assert response["evidence"][0]["rule"] == rule


@pytest.mark.parametrize("api", CALLING)
def test_another_call_after_a_repair_is_judged_by_what_the_request_said(api: str, fake: Fake, tmp_path: Path) -> None:
    """Ollama's requests cannot force a tool, so nothing in them forbids another one; Cohere's leave the others out."""
    model = "anthropic.claude-3-haiku" if api == "bedrock_invoke" else "m"
    cut, other = (ToolCall(f"call_{name}", name, "{}", closed=True) for name in ("write", "look"))
    fake.answers = [streams(api, answer(api, "", Stop.MAX_TOKENS, cut)),
                    streams(api, answer(api, "", Stop.TOOL_CALL, other)),
                    streams(api, answer(api, "Done.", Stop.END_TURN))]
    ran_tools: list[str] = []
    tools = Toolbox({name: lambda _, name=name: ran_tools.append(name) or "done" for name in ("write", "look")})
    request = request_of(api, model, [Tool(name, {"type": "object"}) for name in ("write", "look")])
    path = tmp_path / "s.jsonl"
    ran, read = both(run_live(request, Server(api, fake.url), Settings(), tools, str(path), PATIENT), path)
    verdicts = [[call["verdict"] for each in said["responses"] for call in each["tool_calls"]] for said in (ran, read)]
    assert verdicts == [["held", "ready" if api == "ollama_chat" else "rejected"]] * 2
    assert ran_tools == (["look"] if api == "ollama_chat" else [])


def test_limits_of_a_run_hold_for_its_recording(provider: Provider, tmp_path: Path) -> None:
    story, path = all_stories()["cut-twice"], tmp_path / "s.jsonl"
    settings = Settings(limits=Limits(continuation_max_attempts=1), explicit=frozenset({"continuation_max_attempts"}))
    request = request_of("openai_chat", "cut-twice", cap=story.max_tokens or 400)
    server = Server("openai_chat", provider.bases["openai_chat"])
    done = run_live(request, server, settings, Toolbox(), str(path), PATIENT)
    ran, read = both(done, path)
    assert ran == read
    assert ran["turns"][0]["terminal_reason"] == "retry_limit"
