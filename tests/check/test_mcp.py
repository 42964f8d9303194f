"""`inspector mcp`: the tools as functions, and over the protocol with the SDK's own client."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from inspector.check import agent_tools
from inspector.check.agent_tools import answer_of
from inspector.commands.serve import run_tool
from loop_core.errors import CallerError
from tests.scenes.recordings import ASKS, CUT, TOOLS, assistant, call, chat, cut_text, lines, pair_of, user

ROOT = Path(__file__).parents[2]
KEY = "sk-proj-abcdefghij0123456789abcdefghij"
WHOLE = pair_of(ASKS, chat("All of it."), max_tokens=50)
LOST = pair_of([user(f"my key is {KEY}")], chat(f"Half of {KEY}", "length", tokens=7), max_tokens=7)
HELD = pair_of([user("Three?")], chat(None, "length", call(CUT)), max_tokens=9, tools=TOOLS)


@pytest.fixture
def path(tmp_path):
    session = tmp_path / "s.jsonl"
    session.write_bytes(lines(WHOLE, LOST, HELD))
    return str(session)


def session_of(folder, *exchanges) -> str:
    (folder / "other.jsonl").write_bytes(lines(*exchanges))
    return str(folder / "other.jsonl")


# -- why_did_it_stop ---------------------------------------------------------------------------------------------------


def test_the_worst_turn_stands_first(path):
    value = answer_of("why_did_it_stop", {"path": path})
    assert value["headline"].startswith("CALL HELD  turn 3 of 3")
    assert [(turn["turn"], turn["verdict"]) for turn in value["turns"]] == [
        (3, "CALL HELD"), (2, "TRUNCATED"), (1, "COMPLETE")]
    assert value["turns"][1]["stop_reasons"] == [
        {"response": 1, "raw": "length", "stop_reason": "max_tokens", "detail": None}]
    short = answer_of("why_did_it_stop", {"path": path, "most": 1})
    assert ([turn["turn"] for turn in short["turns"]], short["more"]) == ([3], 2)


def test_a_path_of_a_model_may_begin_with_the_home_folder_or_name_a_sample(tmp_path, monkeypatch):
    session_of(tmp_path, LOST)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert answer_of("why_did_it_stop", {"path": "~/other.jsonl"})["headline"].startswith("TRUNCATED")
    assert answer_of("why_did_it_stop", {"path": "sample:02"})["turns"][0]["verdict"] == "CUT, COMPLETED"
    assert answer_of("findings", {"paths": ["~/other.jsonl"]})["problems"]
    with pytest.raises(CallerError, match="sample:nope: no sample session"):
        answer_of("why_did_it_stop", {"path": "sample:nope"})


def test_a_long_turn_has_its_last_stop_reasons(tmp_path):
    asks = [user("write")]
    steps = []
    for number in range(60):
        steps.append(pair_of(list(asks), chat(None, "tool_calls", call(key=f"call_{number:08}")), tools=TOOLS))
        asks += [assistant(None, call(key=f"call_{number:08}")),
                 {"role": "tool", "tool_call_id": f"call_{number:08}", "content": f"ok {number}"}]
    (turn,) = answer_of("why_did_it_stop", {"path": session_of(tmp_path, *steps)})["turns"]
    assert [turn["stop_reasons"][at]["response"] for at in (0, -1)] == [10, 59]
    assert turn["earlier_responses"] == 10


# -- response ----------------------------------------------------------------------------------------------------------


def test_a_response_has_its_reasons_their_places_and_its_calls(path):
    value = answer_of("response", {"path": path, "index": 2})
    assert (value["raw"], value["stop_reason"], value["cap"]) == ("length", "max_tokens", 9)
    assert value["calls"][0]["admission"] == "held"
    assert value["calls"][0]["arguments"] == CUT
    seen = value["evidence"][0]
    assert (seen["rule"], seen["part"], seen["pointer"]) == (
        "openai_chat.stop_reasons", "body", "/choices/0/finish_reason")
    body = json.dumps(chat(None, "length", call(CUT))).encode()
    assert body[seen["start"] : seen["end"]] == b'"length"'
    with pytest.raises(CallerError, match="no response 3: expected 0 to 2"):
        answer_of("response", {"path": path, "index": 3})


def test_many_calls_are_given_in_parts(tmp_path):
    arguments = [json.dumps({"path": f"{number}.md", "content": "x" * 3_900}) for number in range(500)]
    calls = [call(text, f"call_{number:08}") for number, text in enumerate(arguments)]
    path = session_of(tmp_path, pair_of(ASKS, chat(None, "tool_calls", *calls), tools=TOOLS))
    first = answer_of("response", {"path": path, "index": 0})
    assert len(json.dumps(first)) < 60_000
    assert first["more_calls"] + len(first["calls"]) == 500
    assert [each["call"] for each in first["calls"]] == list(range(len(first["calls"])))
    assert first["calls"][1]["arguments"] == arguments[1]
    last = answer_of("response", {"path": path, "index": 0, "call": 499})
    assert ([each["call"] for each in last["calls"]], last["more_calls"]) == ([499], 0)
    wide = answer_of("response", {"path": path, "index": 0, "call": 490, "characters": 10})
    assert [len(each["arguments"]) < 80 for each in wide["calls"]] == [True] * 10
    with pytest.raises(CallerError, match="has no call 500: it has 500"):
        answer_of("response", {"path": path, "index": 0, "call": 500})


def test_a_long_text_is_given_by_its_ends_or_from_a_place_on(tmp_path):
    words = " ".join(f"word{number:04}" for number in range(3_000))
    path = session_of(tmp_path, pair_of(ASKS, chat(words), max_tokens=50))
    value = answer_of("response", {"path": path, "index": 0})
    assert value["text_characters"] == len(words)
    assert value["text"] == f"{words[:2000]}\n[{len(words) - 4000:,} characters left out]\n{words[-2000:]}"
    assert answer_of("response", {"path": path, "index": 0, "offset": 5_000, "characters": 90})["text"] == (
        words[5_000:5_090])
    assert answer_of("response", {"path": path, "index": 0, "offset": 10**9})["text"] == ""


def test_a_credential_cannot_be_had_in_parts(tmp_path):
    path = session_of(tmp_path, pair_of(ASKS, chat(f"The key is {KEY}, keep it."), max_tokens=50))
    parts = "".join(answer_of("response", {"path": path, "index": 0, "offset": at, "characters": 4})["text"]
                    for at in range(0, 80, 4))
    assert parts.startswith("The key is ")
    assert parts.endswith(", keep it.")
    assert KEY[12:20] not in parts


# -- findings ----------------------------------------------------------------------------------------------------------


def test_findings_are_those_of_check(path, tmp_path):
    value = answer_of("findings", {"paths": [path]})
    assert [each["rule"] for each in value["problems"]] == ["answer-cut", "call-cut"]
    assert [each["rule"] for each in answer_of("findings", {"paths": path, "rules": "call-cut"})["problems"]] == [
        "call-cut"]
    session_of(tmp_path, LOST)
    both = answer_of("findings", {"paths": [str(tmp_path)], "most": 1})
    assert (both["files"], both["turns"], len(both["problems"]), both["more"]) == (2, 4, 1, 2)
    again = answer_of("findings", {"paths": [path, str(tmp_path / "other.jsonl")]})
    assert len(again["problems"]) == 3
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(CallerError, match=r"notes\.txt"):
        answer_of("findings", {"paths": [str(tmp_path / "notes.txt")]})
    mixed = answer_of("findings", {"paths": [path, str(tmp_path / "notes.txt")]})
    assert [Path(each["path"]).name for each in mixed["unreadable"]] == ["notes.txt"]
    with pytest.raises(CallerError, match="is not a rule"):
        answer_of("findings", {"paths": [path], "rules": ["call-cutt"]})


# -- what_if -----------------------------------------------------------------------------------------------------------


def test_another_limit_changes_a_turn_and_says_how_far_that_is_known(tmp_path):
    path = session_of(tmp_path, *cut_text("The lock was never ", "released by anybody at all.", max_tokens=10))
    value = answer_of("what_if", {"path": path, "limits": {"continuation_max_attempts": 0}})
    (row,) = value["changed"]
    assert (row["turn"], row["before"], row["after"], row["answer"]) == (
        1, "CUT, COMPLETED", "LIMIT REACHED", "recorded")
    assert (value["complete_before"], value["complete_after"]) == (1, 0)
    assert value["fidelity"].startswith("RECORDED; ")
    (row,) = answer_of("what_if", {"path": path, "limits": {"max_tokens": 4}})["changed"]
    assert row["answer"] == "simulated"
    assert row["what_happened"].startswith("SIMULATED: ")
    assert row["estimated"]
    assert all(each.startswith("cut after ") for each in row["estimated"])


def test_what_was_never_recorded_is_said(path):
    (row,) = answer_of("what_if", {"path": path, "limits": {"policy": "strict"}, "turn": 2})["changed"]
    assert (row["turn"], row["answer"], row["state_after"]) == (2, "unrecorded", "Unrecorded")
    assert answer_of("what_if", {"path": path, "limits": {"simulate": False}})["changed"] == []


def test_one_turn_is_given_whether_it_changes_or_not(path):
    (row,) = answer_of("what_if", {"path": path, "limits": {"max_tokens": "4"}, "turn": 1})["changed"]
    assert (row["turn"], row["before"]) == (1, "COMPLETE")
    with pytest.raises(CallerError, match="no turn 4: expected 1 to 3"):
        answer_of("what_if", {"path": path, "limits": {"max_tokens": "4"}, "turn": 4})


# -- list_sessions -----------------------------------------------------------------------------------------------------


def test_sessions_are_listed_the_newest_first(path, tmp_path, monkeypatch):
    (tmp_path / "notes.txt").write_text("nothing of a session")
    os.utime(session_of(tmp_path, LOST), (1, 1))
    named = [Path(row["path"]).name for row in answer_of("list_sessions", {"paths": [str(tmp_path)]})["sessions"]]
    assert named == ["s.jsonl", "other.jsonl"]
    one = answer_of("list_sessions", {"paths": [str(tmp_path), path], "most": 1})
    assert len(one["sessions"]) == 1
    assert one["more"] >= 1
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".claude" / "projects" / "p").mkdir(parents=True)
    (tmp_path / ".claude" / "projects" / "p" / "s.jsonl").write_text("{}")
    assert answer_of("list_sessions", {})["sessions"][0]["agent"] == "Claude Code"


# -- what every tool does ----------------------------------------------------------------------------------------------


def test_no_answer_holds_a_credential(path):
    for name, arguments in (("why_did_it_stop", {"path": path}), ("response", {"path": path, "index": 1}),
                            ("findings", {"paths": [path]}), ("what_if", {"path": path, "limits": {"max_tokens": 4}})):
        text, failed = run_tool(name, arguments)
        assert not failed
        assert KEY not in text


@pytest.mark.parametrize(("name", "arguments", "why"), [
    ("nothing", {}, "nothing: no such tool; there are list_sessions, "),
    ("why_did_it_stop", {}, "why_did_it_stop: path: "),
    ("why_did_it_stop", {"path": 3}, "why_did_it_stop: path: "),
    ("why_did_it_stop", {"path": "a\0b"}, "not a path of a file"),
    ("why_did_it_stop", {"path": "-"}, "-: expected a file"),
    ("why_did_it_stop", {"path": "/dev/null"}, "neither a regular file nor a folder"),
    ("why_did_it_stop", {"path": "{folder}"}, "a folder; expected one file"),
    ("why_did_it_stop", {"path": "{folder}/gone"}, "gone: cannot be read: No such file or directory"),
    ("findings", {"paths": ["{folder}/gone"]}, "gone: cannot be read: "),
    ("list_sessions", {"paths": ["{folder}/gone"]}, "gone: cannot be read: "),
    ("response", {"path": "{folder}/s.jsonl", "index": 0, "characters": 10**9}, "response: characters: "),
    ("what_if", {"path": "{folder}/s.jsonl"}, "what_if: limits: "),
    ("what_if", {"path": "{folder}/s.jsonl", "limits": {"max_tokens": "4"}, "trun": 1}, "what_if: trun: "),
    ("what_if", {"path": "{folder}/s.jsonl", "limits": {"no_such": "1"}}, "no_such"),
    ("what_if", {"path": "{folder}/s.jsonl", "limits": "[" * 100_000}, "what_if: limits: "),
    ("what_if", {"path": "{folder}/s.jsonl", "limits": {"live": "20260131-235959-000000"}}, "live: "),
    ("what_if", {"path": "{folder}/s.jsonl", "limits": {"edit.9.1": "x"}}, "edit.9.1: this run has the turns 1 to"),
])
def test_what_cannot_be_done_is_one_line(path, tmp_path, name, arguments, why):
    filled = json.loads(json.dumps(arguments).replace("{folder}", str(tmp_path)))
    text, failed = run_tool(name, filled)
    assert failed
    assert why in text
    assert "\n" not in text
    assert "Traceback" not in text


@pytest.mark.parametrize("error", [KeyError("k"), OSError(5, "io"), RecursionError()])
def test_an_unexpected_error_is_one_line(monkeypatch, error):
    def fail(path):
        raise error

    monkeypatch.setitem(agent_tools.TOOLS, "why_did_it_stop", fail)
    assert run_tool("why_did_it_stop", {"path": KEY}) == (
        f"why_did_it_stop: cannot be done: {type(error).__name__}", True)


def test_a_damaged_database_is_one_line(tmp_path):
    (tmp_path / "crush.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5_000)
    text, failed = run_tool("why_did_it_stop", {"path": str(tmp_path / "crush.db")})
    assert (failed, "\n" in text) == (True, False)


def test_every_answer_can_be_written_as_utf_8(tmp_path):
    """The server would end at a text that cannot: the model's name holds half a character, and so does a file's."""
    name = os.fsdecode(os.path.join(os.fsencode(tmp_path), b"\xff.jsonl"))
    with open(name, "wb") as file:
        file.write(lines(pair_of([user("Go.")], chat("Half", "length", model="m \ud800"), max_tokens=3)))
    for tool, arguments in (("list_sessions", {"paths": [str(tmp_path)]}), ("why_did_it_stop", {"path": name}),
                            ("findings", {"paths": [name]}), ("why_did_it_stop", {"path": f"{name}.gone"}),
                            ("response", {"path": name, "index": 0}),
                            ("what_if", {"path": name, "limits": {"max_tokens": 9}})):
        text, failed = run_tool(tool, arguments)
        assert text.encode(), tool
        assert failed == arguments.get("path", "").endswith(".gone"), tool
    assert json.loads(run_tool("list_sessions", {"paths": [str(tmp_path)]})[0])["sessions"][0]["path"] == name


def test_what_no_screen_shows_is_an_escape(tmp_path):
    said = "a \u202eb\u200b caf\xe9 \u6f22"
    (tmp_path / "a.jsonl").write_bytes(lines(pair_of([user("Go.")], chat(said, "stop"))))
    text, _ = run_tool("response", {"path": str(tmp_path / "a.jsonl"), "index": 0})
    assert "a \\u202eb\\u200b caf\xe9 \u6f22" in text
    assert json.loads(text)["text"] == said


def test_a_fifo_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    started = time.monotonic()
    for name, arguments in (("why_did_it_stop", {"path": str(tmp_path / "pipe.jsonl")}),
                            ("findings", {"paths": [str(tmp_path / "pipe.jsonl")]})):
        text, failed = run_tool(name, arguments)
        assert failed
        assert "neither a regular file nor a folder" in text
    assert answer_of("findings", {"paths": [str(tmp_path)]})["turns"] == 0
    assert answer_of("list_sessions", {"paths": [str(tmp_path)]}) == {"sessions": [], "more": 0}
    assert time.monotonic() - started < 5


# -- over the protocol -------------------------------------------------------------------------------------------------


def test_every_tool_over_the_protocol_with_the_sdks_own_client(path):
    pytest.importorskip("mcp")
    from mcp import ClientSession, StdioServerParameters, stdio_client

    asks = {
        "list_sessions": {"paths": [os.path.dirname(path)]}, "why_did_it_stop": {"path": path},
        "findings": {"paths": [path]}, "response": {"path": path, "index": 2},
        "what_if": {"path": path, "limits": {"max_tokens": 4}},
    }
    wrongs = ({"path": f"{path}.gone"}, {}, {"path": path, "more": 1}, {"path": "a\0b"})

    async def conversation():
        server = StdioServerParameters(command=sys.executable, args=["-m", "inspector", "mcp"],
                                       env={**os.environ, "PYTHONPATH": str(ROOT)})
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            started = await session.initialize()
            assert "quoted from recordings" in started.instructions
            return (await session.list_tools(),
                    {name: await session.call_tool(name, words) for name, words in asks.items()},
                    [await session.call_tool("why_did_it_stop", words) for words in wrongs])

    listed, answers, refused = asyncio.run(asyncio.wait_for(conversation(), 60))
    assert [tool.name for tool in listed.tools] == list(asks)
    assert all(tool.description and tool.input_schema["additionalProperties"] is False for tool in listed.tools)
    for name, answer in answers.items():
        assert not answer.is_error
        assert KEY not in answer.content[0].text
        assert json.loads(answer.content[0].text) == answer_of(name, asks[name])
    for answer in refused:
        assert answer.is_error
        assert "Traceback" not in answer.content[0].text
        assert "\n" not in answer.content[0].text


@pytest.mark.skipif(os.name != "posix", reason="processes are ended by signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_while_it_waits_for_a_request(number):
    pytest.importorskip("mcp")
    with subprocess.Popen([sys.executable, "-m", "inspector", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, cwd=ROOT) as process:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode() + b"\n")
        process.stdin.flush()
        assert b'"id":1' in process.stdout.readline()
        process.send_signal(number)
        try:
            assert process.wait(20) == -number
        finally:
            process.kill()
        assert process.stderr.read() == b""
