"""A recorded request asked live again: what is sent, what becomes of it, and that it is made again without asking."""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from inspector import cli
from inspector.config.settings import Settings
from inspector.live.answers import TurnResults
from inspector.live.branch_run import BranchRun, recall, run_branch
from inspector.live.headless import run_live
from inspector.live.recorder import file_of
from inspector.replay.case import BranchAnswers
from inspector.report.facts import view
from inspector.whatif.branch_report import values
from inspector.whatif.tree import Tree
from loop_core.client.address import Server
from loop_core.errors import CallerError
from loop_core.turn.state import RequestPlace
from loop_core.turn.tools import Toolbox
from loop_core.turn.trace import Fidelity, step_key
from loop_core.values import Stop, ToolCall
from tests.scenes.live import ERROR, answer, request, streams
from tests.scenes.live_branch import (
    OSLO,
    PATIENT,
    ROME,
    TOOLS,
    WEATHER,
    chat_url,
    completion,
    entry,
    har,
    look_ahead,
    read,
    request_body,
    with_a_call,
    write_two_turns,
)
from tests.scenes.loopback import Fake, Peer
from tests.scenes.provider import CALLING

ROOT = Path(__file__).parents[2]
NAME = "20260131-235959-000000"
CHAT = "openai_chat"


class Outcome(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


Runner = Callable[..., Outcome]


@pytest.fixture
def run_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Runner:
    """Runs `inspector` in this process, its data in a folder of its own."""
    monkeypatch.setenv("LOOP_INSPECTOR_DATA", str(tmp_path / "data"))
    for name in ("LOOP_INSPECTOR_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    def run(*words: str, environment: Mapping[str, str] | None = None) -> Outcome:
        for name, value in (environment or {}).items():
            monkeypatch.setenv(name, value)
        importlib.invalidate_caches()
        monkeypatch.setattr(sys, "argv", ["inspector", *words])
        with pytest.raises(SystemExit) as ended:
            cli.run()
        said = capsys.readouterr()
        code = ended.value.code
        return Outcome(code if isinstance(code, int) else 0, said.out, said.err)

    return run


def says(text: str, stop: Stop = Stop.END_TURN, *calls: ToolCall) -> Callable[[Peer], None]:
    return streams(CHAT, answer(CHAT, text, stop, *calls))


def document(done: Outcome) -> Any:
    return json.loads(done.out)


# -- the command -----------------------------------------------------------------------------------------------------


def test_a_turn_is_asked_again_with_another_budget_and_nothing_else_changed(
    run_here: Runner, fake: Fake, tmp_path: Path
) -> None:
    path = write_two_turns(fake.url, tmp_path / "s.har")
    fake.answers = [says("Eins, zwei, drei.")]
    done = run_here("replay", path, "--live", "--turn", "1", "--set", "max_tokens=99", "--yes", "--json")
    assert done.code == 0, done.err
    assert fake.got[0].line == "POST /v1/chat/completions HTTP/1.1"
    assert fake.got[0].json == request_body(max_tokens=99)
    found = document(done)
    assert (found["fidelity"], found["first_live"], found["first_simulated"]) == ("LIVE", 2, None)
    assert [turn["fidelity"] for turn in found["turns"]] == ["LIVE", "RECORDED"]
    assert found["explain"]["turns"][0]["merged_text"] == "Eins, zwei, drei."
    assert found["asked_live"] == [f"{fake.url}/v1/chat/completions, model m"]
    live = [each for each in found["explain"]["responses"] if each.get("fidelity") == "LIVE"]
    assert [each["text"] for each in live] == ["Eins, zwei, drei."]


def test_a_stand_in_answers_a_turn_and_the_branch_can_be_shown_again(
    run_here: Runner, fake: Fake, tmp_path: Path
) -> None:
    path = write_two_turns(fake.url, tmp_path / "s.har")
    done = run_here("replay", path, "--stand-in", "--turn", "1", "--set", "max_tokens=99", "--save", "--json")
    assert (done.code, done.err) == (0, "")
    assert fake.got == []
    found = document(done)
    assert (found["fidelity"], found["first_simulated"], found["asked_live"]) == ("SIMULATED", 2, [])
    assert found["explain"]["turns"][0]["merged_text"] == "One, two, three."  # all of it was recorded
    again = document(run_here("replay", path, "--branch", found["name"], "--json"))
    assert again["explain"]["turns"] == found["explain"]["turns"]
    assert "simulated: a stand-in of this program answered" in run_here("replay", path, "--branch", found["name"]).out


def test_a_recorded_address_over_plain_http_gets_a_key_only_where_it_is_named(
    run_here: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", "sk-live-0123456789abcdefghij")
    recording = write_two_turns("http://far.example", tmp_path / "s.har")
    words = ("replay", recording, "--live", "--turn", "1", "--key-env", "MINE")
    refused = run_here(*words, "--yes")
    assert refused.code == 2
    assert "sent there unencrypted" in refused.err
    assert "--insecure-http far.example" in refused.err
    told = run_here(*words, "--insecure-http", "far.example")  # without --yes and a terminal nothing is sent
    assert told.code == 2
    assert "not encrypted: anyone on the network path can read the request and the key" in told.err
    assert "nothing was sent: standard input is not a terminal" in told.err
    idle = run_here("replay", recording, "--insecure-http", "far.example")
    assert idle.code == 2
    assert "--insecure-http needs --live" in idle.err


def test_where_it_goes_and_for_how_much_is_said_first(run_here: Runner, fake: Fake, tmp_path: Path) -> None:
    path = write_two_turns(fake.url, tmp_path / "s.har")
    done = run_here("replay", path, "--live", "--turn", "1")
    assert done.code == 2
    assert fake.got == []
    lines = done.err.splitlines()
    assert lines[0] == f"asks the provider: turn 1 from step 1 on is sent to {fake.url}/v1/chat/completions"
    assert lines[1] == "as: openai_chat, model m, profile generic; settings: unchanged"
    assert lines[2] == "no key: LOOP_INSPECTOR_API_KEY is not set"
    # Four times 20 tokens bound the answer and its three continuations, whatever their caps: 80. A repair and one more
    # request after an empty answer: 80 each, which is twice the cap of a retry of twice the cap, as the bound allows.
    assert lines[3] == "greatest possible cost: 6 requests, 240 tokens out, about 3,000 in"
    assert lines[4:12] == [
        "  a bound, not a forecast: only if every limit is used up",
        "  = 20: 1 first request (max_tokens)",
        "  + 60: 3 continuations (continuation_max_total_completion_tokens)",
        "  + 80: 1 repair (continuation_tool_repair_attempts)",
        "  + 80: 1 retry of an empty answer (max_empty_retries)",
        "  80: the cap of 20, doubled by each repair or retry",
        "  each up to 3 times again if no answer comes: 24 requests",
        "  an answer that breaks off may be charged too",
    ]
    assert lines[-1] == ("inspector: nothing was sent: standard input is not a terminal that could confirm it; "
                         "--yes sends at once")
    assert not (tmp_path / "data" / "live").exists()


@pytest.mark.parametrize(("words", "said"), [
    (("--live", "--yes"), "this run has 2 turns: --turn N or --from-step K says which to ask"),
    (("--live", "--yes", "--turn", "3"), "there is no turn 3; expected 1 to 2"),
    (("--live", "--yes", "--from-step", "99"), "step 99: this run has the steps 1 to "),
    (("--live", "--yes", "--turn", "1", "--from-step", "2"), "as do a step and an edited input: leave one out"),
    (("--stand-in", "--turn", "1", "--edit", "1.user=x"), "as do a step and an edited input: leave one out"),
    (("--live", "--yes", "--set", "max_tokens=9@2", "--set", "max_tokens=8@3"), "a live run begins at one step"),
    (("--live", "--simulate", "--turn", "1"), "--live and --simulate are two sources"),
    (("--live", "--stand-in", "--turn", "1"), "--live and --stand-in are two sources"),
    (("--stand-in", "--simulate", "--turn", "1"), "--stand-in and --simulate are two sources"),
    (("--stand-in",), "this run has 2 turns: --turn N or --from-step K says which to ask"),
    (("--stand-in", "--turn", "1", "--model", "x"), "--model needs --live"),
    (("--model", "x"), "--model needs --live"),
    (("--yes",), "--yes needs --live"),
    (("--live", "--yes", "--turn", "1", "--key-env", "NOT_SET_ANYWHERE"), "--key-env: NOT_SET_ANYWHERE is not set"),
    (("--live", "--yes", "--turn", "1", "--base-url", "ftp://x"), "--base-url: expected http://HOST"),
    (("--live", "--yes", "--turn", "1", "--tools", "absent.json"), "--tools absent.json: No such file"),
    (("--set", f"live={NAME}"), f"live={NAME}: its recording live/{NAME}.jsonl cannot be read"),
    (("--set", "live=none"), "names no live run"),
])
def test_what_cannot_be_used_is_said_and_nothing_is_sent(
    run_here: Runner, words: tuple[str, ...], said: str, fake: Fake, tmp_path: Path
) -> None:
    done = run_here("replay", write_two_turns(fake.url, tmp_path / "s.har"), *words)
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err
    assert fake.got == []


@pytest.mark.parametrize("words", [(), ("--yes",)])
def test_a_provider_that_needs_a_key_is_refused_in_one_line(run_here: Runner, words: tuple[str, ...]) -> None:
    """The provider of the sample has no variable of its own, so it is the one that goes to any server."""
    done = run_here("replay", "sample:07", "--live", "--set", "max_tokens=1024", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err == ("inspector: nothing was sent: no key: set LOOP_INSPECTOR_API_KEY: "
                        "token-plan-sgp.xiaomimimo.com needs a key; --stand-in answers without one\n")


@pytest.mark.parametrize(("step", "words", "why"), [
    (3, ("--set", "continuation_max_attempts=0"),
     "step 3: no request would be sent: the turn ends first (retry_limit)"),
    (6, (), "step 6: no request would be sent: the turn ends first (completed)"),
])
def test_a_turn_that_ends_before_anything_is_asked_makes_no_branch(
    run_here: Runner, step: int, words: tuple[str, ...], why: str, fake: Fake, tmp_path: Path
) -> None:
    path = write_two_turns(fake.url, tmp_path / "s.har")
    done = run_here("replay", path, "--live", "--from-step", str(step), *words, "--yes", "--save")
    assert (done.code, fake.got) == (2, [])
    assert why in done.err
    assert not (tmp_path / "data" / "live").exists()
    assert json.loads(run_here("branches", path, "--json").out)["branches"] == []


@pytest.mark.parametrize("command", ["policies", "tune"])
def test_only_replay_takes_a_live_run_up(run_here: Runner, command: str, tmp_path: Path) -> None:
    done = run_here(command, write_two_turns("http://127.0.0.1:9", tmp_path / "s.har"), "--set", f"live={NAME}")
    assert (done.code, done.out) == (2, "")
    assert f"live={NAME}: only `inspector replay` shows a live run as a branch" in done.err


def test_from_a_step_on_what_came_before_stays(run_here: Runner, fake: Fake, tmp_path: Path) -> None:
    path = write_two_turns(fake.url, tmp_path / "s.har")
    fake.answers = [says("drei.")]
    # Request, EvaluateStop, ContinuePending, RequestContinuation, then the answer: step 5.
    done = run_here("replay", path, "--live", "--from-step", "5", "--set", "max_tokens=7", "--yes", "--json")
    assert done.code == 0, done.err
    found = document(done)
    assert (found["first_live"], found["turns"][0]["fidelity"]) == (5, "LIVE")
    assert found["explain"]["turns"][0]["merged_text"] == "One, two, drei."
    sent = fake.got[0].json
    assert sent["max_tokens"] == 7
    assert (sent["temperature"], sent["vendor"]) == (0.25, {"a": [1, 2]})
    assert sent["messages"][0] == request_body()["messages"][0]
    assert [each["role"] for each in sent["messages"]] == ["user", "assistant", "system"]


def test_address_and_model_can_be_others(run_here: Runner, fake: Fake, tmp_path: Path) -> None:
    path = write_two_turns("https://api.openai.com", tmp_path / "s.har")
    fake.answers = [says("Hi.")]
    done = run_here("replay", path, "--live", "--turn", "2", "--base-url", fake.url, "--model", "other", "--yes")
    assert done.code == 0, done.err
    assert fake.got[0].json["model"] == "other"
    assert fake.got[0].line.startswith("POST /v1/chat/completions ")


def test_a_branch_that_was_kept_is_made_again_and_nobody_is_asked(run_here: Runner, fake: Fake, tmp_path: Path) -> None:
    path = write_two_turns(fake.url, tmp_path / "s.har")
    fake.answers = [says("Eins, ", Stop.MAX_TOKENS), lambda peer: peer.whole(429, ERROR, retry_after="0"),
                    says("zwei.")]
    first = run_here("replay", path, "--live", "--turn", "1", "--set", "max_tokens=30", "--yes", "--save", "--json")
    assert first.code == 0, first.err
    asked = len(fake.got)
    listed = json.loads(run_here("branches", path, "--json").out)["branches"]
    assert [each["name"].startswith("max_tokens=30, live 2") for each in listed] == [True]
    again = run_here("replay", path, "--branch", listed[0]["key"], "--against", "original", "--json")
    one, other = document(first), document(again)
    for each in (one, other):
        each["name"] = ""
        for response in each["explain"]["responses"]:
            response["path"] = ""
    assert one == other
    by_command = run_here(*listed[0]["command"].split()[1:], "--json")
    assert document(by_command)["explain"]["turns"] == one["explain"]["turns"]
    shorter = run_here("replay", path, "--branch", listed[0]["key"], "--set", "continuation_max_attempts=0", "--json")
    assert document(shorter)["turns"][0]["after"]["terminal_reason"] == "retry_limit"
    assert document(shorter)["turns"][0]["fidelity"] == "LIVE"
    assert len(fake.got) == asked


def test_a_recording_that_is_cut_or_gone_is_told(run_here: Runner, fake: Fake, tmp_path: Path) -> None:
    path = write_two_turns(fake.url, tmp_path / "s.har")
    fake.answers = [says("Eins, ", Stop.MAX_TOKENS), says("zwei.")]
    run_here("replay", path, "--live", "--turn", "1", "--yes", "--save")
    (record,) = (tmp_path / "data" / "live").iterdir()
    whole = record.read_bytes()
    ends = [at for at in range(len(whole)) if whole[at : at + 1] == b"\n"]
    record.write_bytes(whole[: ends[-2] + 9])
    done = run_here("branches", path)
    assert "is cut; the part before the cut was read" in done.err
    assert "live 2" in done.out
    record.unlink()
    done = run_here("branches", path)
    assert f"its recording live/{record.name} cannot be read: No such file" in done.err
    assert (done.code, "live 2" in done.out) == (0, False)


@pytest.mark.parametrize(("play", "code", "end"), [
    (lambda peer: peer.whole(401, {"error": {"message": "who are you"}}), 6, "error"),
    (lambda peer: peer.reset(), 5, "interrupted"),
    (streams(CHAT, answer(CHAT, "One, two, three, four", Stop.END_TURN)[:1]), 5, "interrupted"),
    (says("cut", Stop.MAX_TOKENS), 3, "retry_limit"),
])
def test_errors_end_as_the_machine_says(
    run_here: Runner, play: Any, code: int, end: str, fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loop_core.client.transport.Connection", lambda: PATIENT)
    path = write_two_turns(fake.url, tmp_path / "s.har")
    fake.answers = [play]
    done = run_here("replay", path, "--live", "--turn", "1", "--set", "continuation_max_attempts=0", "--yes", "--json",
                    "--save")
    assert done.code == code
    assert document(done)["turns"][0]["after"]["terminal_reason"] == end
    assert "Traceback" not in done.err
    again = run_here("branches", path, "--json")
    assert json.loads(again.out)["branches"][0]["turns"][0]["terminal_reason"] == end


# -- tools -----------------------------------------------------------------------------------------------------------


def test_a_call_that_was_recorded_gets_its_result_and_no_other_is_invented(
    run_here: Runner, fake: Fake, tmp_path: Path
) -> None:
    path = with_a_call(fake.url, tmp_path / "s.har")
    fake.answers = [says("", Stop.TOOL_CALL, OSLO), says("", Stop.TOOL_CALL, ROME)]
    done = run_here("replay", path, "--live", "--yes", "--save", "--json")
    assert done.code == 3
    assert [each.json["messages"][-1] for each in fake.got[1:]] == [
        {"role": "tool", "tool_call_id": "call_1", "content": "snow"}]
    turn = document(done)["explain"]["turns"][0]
    assert turn["terminal_reason"] == "unrecorded"
    assert turn["notice"] == ("The turn stops at a call of weather: no result is recorded for it with these arguments, "
                              "and none is invented.")
    listed = json.loads(run_here("branches", path, "--json").out)["branches"]
    again = run_here("replay", path, "--branch", listed[0]["key"], "--json")
    assert document(again)["explain"]["turns"][0]["notice"] == turn["notice"]
    assert len(fake.got) == 2


def test_tools_that_are_given_are_run(
    run_here: Runner, fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "again_tools.py").write_text("def weather(city: str) -> str:\n    return f'sun in {city}'\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "again_tools", raising=False)
    path = with_a_call(fake.url, tmp_path / "s.har")
    fake.answers = [says("", Stop.TOOL_CALL, ROME), says("Sunny.")]
    done = run_here("replay", path, "--live", "--yes", "--tools", "again_tools:weather", "--save", "--json")
    assert done.code == 0, done.err
    assert "run here: weather" in done.err
    assert fake.got[1].json["messages"][-1]["content"] == "sun in Rome"
    listed = json.loads(run_here("branches", path, "--json").out)["branches"]
    assert listed[0]["turns"][0]["terminal_reason"] == "completed"


# -- every format, live and from the file ----------------------------------------------------------------------------


@pytest.mark.parametrize("api", CALLING)
@pytest.mark.parametrize("since", [0, 2, 4])
def test_what_is_heard_again_from_the_file_is_what_was_heard(api: str, since: int, fake: Fake, tmp_path: Path) -> None:
    call = OSLO._replace(id=None) if api == "ollama_chat" else OSLO
    fake.answers = [streams(api, answer(api, "One, two, ", Stop.MAX_TOKENS)),
                    streams(api, answer(api, "", Stop.TOOL_CALL, call)),
                    streams(api, answer(api, "Done.", Stop.END_TURN))]
    path = str(tmp_path / "s.jsonl")
    run_live(request(api, tools=TOOLS), Server(api, fake.url), Settings(), Toolbox({"weather": lambda _: "sun"}), path,
             PATIENT)
    recorded = [each.json for each in fake.got]
    parent = read(path)
    fake.answers = [lambda peer: peer.whole(429, ERROR, retry_after="0"),
                    streams(api, answer(api, "One, and ", Stop.MAX_TOKENS)),
                    streams(api, answer(api, "two. ", Stop.END_TURN))]
    fake.got.clear()
    wanted = look_ahead(parent, since)
    heard, failure = run_branch(wanted, NAME, tmp_path / "data", PATIENT)
    assert failure is None
    if since == 0:
        assert fake.got[0].json == recorded[0]
    again = recall(NAME, tmp_path / "data")
    made = []
    for each in (heard, again):
        fresh = read(path)
        fresh.case.live_runs[NAME] = each
        tree = Tree(view(fresh))
        node, _ = tree.add(tree.original, replace(fresh.settings, live=NAME), since)
        made.append(node.view)
        assert node.view.steps[:since] == fresh.trace.steps[:since]
    assert list(map(step_key, made[0].steps)) == list(map(step_key, made[1].steps))
    assert [facts.judgement for facts in made[0].responses] == [facts.judgement for facts in made[1].responses]
    assert (heard.ability, heard.provider, heard.places, heard.unanswered) == (
        again.ability, again.provider, again.places, again.unanswered)
    left = made[0].replay.trace.departure
    assert left is not None
    assert {step.fidelity for step in made[0].steps[left : made[0].turns[0].run.end]} == {Fidelity.LIVE}
    assert left == {0: 1, 2: 4, 4: 4}[since]  # step 3 decides that the cut answer is gone on with, step 4 asks
    assert made[0].turns[0].terminal == "completed"


def test_two_live_runs_of_one_step_are_two_branches(fake: Fake, tmp_path: Path) -> None:
    path = write_two_turns(fake.url, tmp_path / "s.har")
    parent = read(path)
    tree = Tree(view(parent))
    nodes = []
    for number, text in enumerate(("Eins.", "Uno.")):
        fake.answers = [says(text)]
        name = f"20260131-235959-00000{number}"
        parent.case.live_runs[name], _ = run_branch(look_ahead(parent), name, tmp_path / "data", PATIENT)
        nodes.append(tree.add(tree.original, replace(parent.settings, live=name), 0)[0])
    one, other = nodes
    assert one.key != other.key
    made = tree.beside(other, one)
    assert made.difference == 1
    assert [turn.joined_text.text for turn in made.view.turns] == ["Uno.", "Done."]
    assert tree.beside(one, tree.original).difference == 1


def test_a_live_run_behind_many_recorded_rounds_of_tools_has_as_many_of_its_own(fake: Fake, tmp_path: Path) -> None:
    entries, body = [], request_body(tools=[WEATHER])
    for number in range(12):
        called = ToolCall(f"call_{number}", "weather", json.dumps({"city": f"{number}"}), closed=True)
        entries.append(entry(chat_url(fake.url), body, completion(None, "tool_calls", called)))
        asked = {"role": "assistant", "content": None, "tool_calls": [
            {"id": called.id, "type": "function", "function": {"name": "weather", "arguments": called.arguments}}]}
        result = {"role": "tool", "tool_call_id": called.id, "content": "snow"}
        body = {**body, "messages": [*body["messages"], asked, result]}
    parent = read(har(tmp_path / "s.har", *entries, entry(chat_url(fake.url), body, completion("It snows.", "stop"))))
    since = next(number for number, step in enumerate(parent.trace.steps) if step.turn.spend.tool_steps == 12)
    fake.answers = [says("It rains.")]
    wanted = look_ahead(parent, since)
    assert wanted.first.turn.limits.max_tool_steps == 12 + 10
    assert look_ahead(parent).first.turn.limits.max_tool_steps == 10, "from the first step on, no more than usual"
    assert look_ahead(parent, since, max_tool_steps=15).first.turn.limits.max_tool_steps == 15
    parent.case.live_runs[NAME], _ = run_branch(wanted, NAME, tmp_path / "data", PATIENT)
    tree = Tree(view(parent))
    made = tree.add(tree.original, replace(parent.settings, live=NAME), since)[0].view
    assert (made.turns[0].joined_text.text, made.turns[0].terminal) == ("It rains.", "completed")
    assert made.effective_step(len(made.steps) - 1).turn.limits == wanted.first.turn.limits


def test_a_live_run_goes_on_from_a_live_run(fake: Fake, tmp_path: Path) -> None:
    path = write_two_turns(fake.url, tmp_path / "s.har")
    parent = read(path)
    tree = Tree(view(parent))
    fake.answers = [says("Eins, ", Stop.MAX_TOKENS), says("zwei.")]
    parent.case.live_runs[NAME], _ = run_branch(look_ahead(parent), NAME, tmp_path / "data", PATIENT)
    node, _ = tree.add(tree.original, replace(parent.settings, live=NAME), 0)
    fake.answers = [says("due.")]
    fake.got.clear()
    other = "20260131-235959-000009"
    since = 4
    parent.case.live_runs[other], _ = run_branch(look_ahead(node.view.replay, since), other, tmp_path / "data", PATIENT)
    child, _ = tree.add(node, replace(node.view.replay.settings, live=other), since)
    assert child.view.turns[0].joined_text.text == "Eins, due."
    assert child.view.steps[:since] == node.view.steps[:since]
    assert len(child.view.responses) == 3 + 2 + 1
    assert values(tree.beside(child, node))["first_difference"] == since + 1


@pytest.mark.parametrize(("place", "shown"), [
    (RequestPlace.REQUEST, "tool_result"), (RequestPlace.CONTINUATION, "continuation"), (RequestPlace.REPAIR, "repair"),
    (RequestPlace.RESUME, "resume"), (RequestPlace.NUDGE, "nudge"),
])
def test_what_a_request_was_sent_for_is_its_place_in_the_turn(place: RequestPlace, shown: str, tmp_path: Path) -> None:
    parent = read(write_two_turns("http://127.0.0.1:9", tmp_path / "s.har"))
    exchange = parent.case.recording.exchanges[0]
    parent.case.live_runs[NAME] = BranchAnswers(NAME, (exchange, exchange), ((RequestPlace.REQUEST, 0), (place, 1)))
    tree = Tree(view(parent))
    node, _ = tree.add(tree.original, replace(parent.settings, live=NAME), 0)
    links = node.view.turns[0].run.record.links
    assert [(link.place.value, link.ordinal, link.index) for link in links] == [("request", 1, 3), (shown, 1, 4)]


def test_what_was_simulated_before_cannot_be_gone_on_from(fake: Fake, tmp_path: Path) -> None:
    path = write_two_turns(fake.url, tmp_path / "s.har")
    simulated = read(path, Settings(simulate=True, max_tokens=10))
    at = next(index for index, step in enumerate(simulated.trace.steps) if step.fidelity is Fidelity.SIMULATED)
    with pytest.raises(CallerError, match="SIMULATED"):
        look_ahead(simulated, at + 1)
    assert look_ahead(simulated, 0).since == 0


# -- cancelled, and what never left ----------------------------------------------------------------------------------


@pytest.mark.parametrize("answers", [0, 1])
def test_a_run_that_is_given_up_is_kept_as_cancelled(answers: int, fake: Fake, tmp_path: Path) -> None:
    path = write_two_turns(fake.url, tmp_path / "s.har")
    parent = read(path)

    async def given_up() -> Any:
        asking = BranchRun(look_ahead(parent), NAME, tmp_path / "data", PATIENT)
        under_way = asyncio.ensure_future(asking.run())
        while len(fake.got) <= answers:
            await asyncio.sleep(0.01)
        assert asking.progress()[0] == answers + 1
        asking.cancel()
        return await under_way

    def begins(peer: Peer) -> None:
        peer.head()
        peer.send(answer(CHAT, "And then", Stop.END_TURN)[0])
        peer.hold()

    fake.answers = [*([says("Eins, ", Stop.MAX_TOKENS)] * answers), begins]
    heard, _ = asyncio.run(given_up())
    for each in (heard, recall(NAME, tmp_path / "data")):
        fresh = read(path)
        fresh.case.live_runs[NAME] = each
        tree = Tree(view(fresh))
        node, _ = tree.add(tree.original, replace(fresh.settings, live=NAME), 0)
        assert node.view.turns[0].terminal == "cancelled"
        assert node.view.turns[0].joined_text.text == "Eins, " * answers
        assert node.view.steps[node.view.turns[0].run.deciding_step].fidelity is Fidelity.LIVE
        assert each.problem == ""
        assert node.view.turns[0].verdict.word == "CANCELLED"
        assert node.view.turns[0].verdict.sentence == "LIVE: openai_chat was cancelled"


def recall_or_why(folder: Path) -> BranchAnswers | str:
    """What was heard, or why it cannot be known."""
    try:
        return recall(NAME, folder)
    except CallerError as why:
        return str(why)


def test_a_program_that_is_killed_leaves_a_branch_that_says_so(fake: Fake, tmp_path: Path) -> None:
    path = write_two_turns(fake.url, tmp_path / "s.har")
    fake.answers = [says("Eins, ", Stop.MAX_TOKENS), says("zwei.")]
    parent = read(path)
    run_branch(look_ahead(parent), NAME, tmp_path / "data", PATIENT)
    record = file_of(tmp_path / "data", NAME)
    whole = record.read_bytes()
    for end in range(0, len(whole), 97):
        record.write_bytes(whole[:end])
        heard = recall_or_why(tmp_path / "data")
        if isinstance(heard, str):
            assert f"live={NAME}" in heard
            assert end < whole.index(b'"type": "response"')
            continue
        fresh = read(path)
        fresh.case.live_runs[NAME] = heard
        tree = Tree(view(fresh))
        node, _ = tree.add(tree.original, replace(fresh.settings, live=NAME), 0)
        missing = b'"type": "end"' in whole[end:]  # else only what the file says of itself is
        assert "cut" in heard.problem or not missing
        assert node.view.turns[0].terminal in ("unrecorded", "completed")


def test_a_run_that_asks_for_nothing_leaves_nothing(tmp_path: Path) -> None:
    """A call at once, for which nothing is recorded: the turn stops before any request."""
    parent = read(with_a_call("http://127.0.0.1:9", tmp_path / "s.har"))
    wanted = look_ahead(parent, 2)
    nothing = dataclasses.replace(wanted, results=TurnResults({}))
    with pytest.raises(CallerError, match="nothing was asked: The turn stops at a call of weather"):
        run_branch(nothing, NAME, tmp_path / "data", PATIENT)
    assert list((tmp_path / "data" / "live").iterdir()) == []


def test_what_is_no_request_is_refused(fake: Fake, tmp_path: Path) -> None:
    alone = har(tmp_path / "a.har", entry("https://nobody.example/elsewhere/chat", request_body(), "{}"))
    assert read(alone).turns == ()
    parent = read("sample_sessions/18-claude-code-cut-writes.jsonl")
    with pytest.raises(CallerError, match="transcript of claude"):
        look_ahead(parent)
