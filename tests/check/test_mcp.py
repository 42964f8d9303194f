"""`inspector mcp`: the tools as functions, and over the protocol with the SDK's own client."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from inspector.check import agent_tools
from loop_core.errors import LoopError
from tests.scenes.recordings import ASKS, CUT, TOOLS, asked, call, chat, lines, user

ROOT = Path(__file__).parents[2]
KEY = "sk-proj-abcdefghij0123456789abcdefghij"
WHOLE = asked(ASKS, chat("All of it."), max_tokens=50)
LOST = asked([user(f"my key is {KEY}")], chat(f"Half of {KEY}", "length", tokens=7), max_tokens=7)
HELD = asked([user("Three?")], chat(None, "length", call(CUT)), max_tokens=9, tools=TOOLS)


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "s.jsonl"
    found.write_bytes(lines(WHOLE, LOST, HELD))
    return str(found)


def test_why_it_stopped_says_the_worst_turn_first(path):
    value = agent_tools.why_did_it_stop(path)
    assert value["headline"].startswith("CALL HELD  turn 3 of 3")
    assert [(turn["turn"], turn["verdict"]) for turn in value["turns"]] == [
        (3, "CALL HELD"), (2, "TRUNCATED"), (1, "COMPLETE")]
    assert value["turns"][1]["stop_reasons"] == [{"raw": "length", "stop_reason": "max_tokens", "detail": None}]


def test_a_response_has_its_reasons_their_places_and_its_calls(path):
    value = agent_tools.response(path, 2)
    assert (value["raw"], value["stop_reason"], value["cap"]) == ("length", "max_tokens", 9)
    assert value["calls"][0]["admission"] == "held"
    assert value["calls"][0]["arguments"] == CUT
    assert value["evidence"][0]["rule"] == "openai_chat.stop_reasons"
    with pytest.raises(LoopError, match="no response 3: expected 0 to 2"):
        agent_tools.response(path, 3)


def test_findings_are_those_of_check(path):
    value = agent_tools.findings(path)
    assert [each["rule"] for each in value["problems"]] == ["answer-cut", "call-cut"]
    assert [each["rule"] for each in agent_tools.findings(path, ["call-cut"])["problems"]] == ["call-cut"]


def test_what_another_limit_would_have_done(path):
    value = agent_tools.what_if(path, {"max_tokens": "4"})
    assert (value["turns"], value["complete_before"], value["complete_after"]) == (3, 1, 1)
    assert all(row["turn"] in (1, 2, 3) for row in value["changed"])
    with pytest.raises(LoopError):
        agent_tools.what_if(path, {"no_such_limit": "1"})


def test_nothing_that_is_told_holds_a_credential_or_is_without_end(path, tmp_path):
    for value in (agent_tools.why_did_it_stop(path), agent_tools.response(path, 1), agent_tools.findings(path)):
        assert KEY not in json.dumps(value)
    long = tmp_path / "long.jsonl"
    long.write_bytes(lines(asked(ASKS, chat("word " * 5_000), max_tokens=50)))
    text = agent_tools.response(str(long), 0)["text"]
    assert len(text) < 5_000
    assert "21,000 characters left out" in text


def test_sessions_are_listed_and_what_is_none_is_one_line(path, tmp_path, monkeypatch):
    (row,) = agent_tools.list_sessions(str(tmp_path))["sessions"]
    assert row["path"] == path
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".claude" / "projects" / "p").mkdir(parents=True)
    (tmp_path / ".claude" / "projects" / "p" / "s.jsonl").write_text("{}")
    assert agent_tools.list_sessions()["sessions"][0]["agent"] == "Claude Code"
    for wrong in (str(tmp_path), str(tmp_path / "gone")):
        with pytest.raises(LoopError):
            agent_tools.why_did_it_stop(wrong)


def test_over_the_protocol_with_the_sdks_own_client(path):
    pytest.importorskip("mcp")
    from mcp import ClientSession, StdioServerParameters, stdio_client

    async def asks():
        server = StdioServerParameters(command=sys.executable, args=["-m", "inspector", "mcp"],
                                       env={**os.environ, "PYTHONPATH": str(ROOT)})
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            listed = await session.list_tools()
            whole = await session.call_tool("why_did_it_stop", {"path": path})
            wrong = await session.call_tool("why_did_it_stop", {"path": f"{path}.gone"})
            return listed, whole, wrong

    listed, whole, wrong = asyncio.run(asyncio.wait_for(asks(), 60))
    assert [tool.name for tool in listed.tools] == [
        "list_sessions", "why_did_it_stop", "findings", "response", "what_if"]
    assert all(tool.description for tool in listed.tools)
    assert "CALL HELD" in whole.content[0].text
    assert KEY not in whole.content[0].text
    assert wrong.is_error
    assert "Traceback" not in wrong.content[0].text
    assert "s.jsonl.gone" in wrong.content[0].text
