"""A stand-in answers a recorded turn: what was recorded, a made-up rest that says so, and never a key or a tool run."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from inspector.config.settings import settings_of
from inspector.live.branch_run import new_name, recall, run_branch
from inspector.live.recorder import file_of
from inspector.live.scripted import MADE_UP_MARK, stand_in, stand_in_request
from inspector.replay import Replay
from inspector.report.facts import view
from inspector.whatif.branch_report import text, values
from inspector.whatif.tree import ORIGINAL, Branch, Tree
from loop_core.errors import CallerError
from loop_core.turn.trace import Fidelity
from loop_core.values import Severity, ToolCall
from tests.scenes.live_branch import PATIENT, completion, entry, har, read, request_body

KEY = "sk-live-0123456789abcdefghij"
SAVE = {"type": "function", "function": {"name": "save", "parameters": {
    "type": "object", "required": ["path", "text", "mode"],
    "properties": {"path": {"type": "string"}, "text": {"type": "string"}, "mode": {"type": "integer"}}}}}
BEGUN = ToolCall("call_1", "save", '{"path": "a.md", "text": "The first li', closed=True)


def cut_recording(tmp_path: Path, words: str | None = "One, two, ", call: ToolCall | None = None, **more: Any) -> str:
    """One turn whose only answer was cut at 20 tokens."""
    url = "https://api.openai.com/v1/chat/completions"
    return har(tmp_path / "cut.har", entry(url, request_body(max_tokens=20, **more), completion(words, "length", call)))


def branch_of(replay: Replay, folder: Path, environment: dict[str, str] | None = None, **settings: str) -> Branch:
    """The branch that a stand-in answers, beside the original."""
    wanted = settings_of(settings, replay.settings)
    request = stand_in_request(replay, wanted, 0, environment or {})
    name = new_name(by_stand_in=True)
    heard, failure = run_branch(request, name, folder, PATIENT)
    assert failure is None
    replay.case.live_runs[name] = heard
    tree = Tree(view(replay))
    node, _ = tree.add(tree.find(ORIGINAL), settings_of({"live": name}, wanted), 0)
    return tree.beside(node, tree.find(ORIGINAL))


def test_a_cut_text_goes_on_with_a_rest_that_says_that_it_is_made_up(tmp_path: Path) -> None:
    branch = branch_of(read(cut_recording(tmp_path)), tmp_path, max_tokens="400")
    [turn] = branch.view.turns
    merged = turn.joined_text.text
    assert merged.startswith(f"One, two,  {MADE_UP_MARK} Made-up sentence 1.")
    assert turn.terminal == "completed"
    assert {step.fidelity for step in turn.run.steps[1:]} == {Fidelity.SIMULATED}
    assert turn.verdict.sentence.startswith("SIMULATED: ")
    said = text(branch)
    assert "no provider: what was not recorded is made up" in said
    assert "asked live" not in said
    document = values(branch)
    assert (document["fidelity"], document["first_live"], document["asked_live"]) == ("SIMULATED", None, [])


def test_a_budget_that_is_too_small_cuts_the_made_up_rest_as_well(tmp_path: Path) -> None:
    branch = branch_of(read(cut_recording(tmp_path)), tmp_path, max_tokens="30")
    [turn] = branch.view.turns
    assert turn.segments > 1
    by_stand_in = turn.joined_text.text.split(MADE_UP_MARK)[1]
    assert by_stand_in == "".join(f" Made-up sentence {number}." for number in range(1, 9))
    assert turn.terminal == "completed"


def test_a_cut_call_is_brought_to_an_end_and_is_never_run(tmp_path: Path) -> None:
    replay = read(cut_recording(tmp_path, None, BEGUN, tools=[SAVE]))
    branch = branch_of(replay, tmp_path, max_tokens="400")
    [turn] = branch.view.turns
    [call] = [verdict.call for verdict in branch.view.responses[-1].verdicts]
    assert json.loads(call.arguments or "") == {"path": "a.md", "text": f"The first li {MADE_UP_MARK}", "mode": 0}
    assert turn.terminal == "unrecorded"
    assert "no result is recorded for it" in (turn.final_turn.notice or "")
    assert not any(message.results for message in turn.final_turn.history)
    seen = turn.verdict
    assert (seen.word, seen.glyph, seen.severity, seen.complete) == ("AWAITS RESULT", "▷", Severity.INFO, False)
    assert seen.sentence.endswith(
        "; the answer is complete, but the turn is not finished; the turn stops at a call of save: no result is "
        "recorded for it with these arguments, and none is invented")
    assert branch.view.complete == 0
    assert values(branch)["explain"]["verdict"]["sure"] is False


def test_arguments_that_look_whole_in_a_cut_answer_are_marked_too(tmp_path: Path) -> None:
    whole = ToolCall("call_1", "save", '{"path": "a.md", "text": "x", "mode": 1, "more": "y"}', closed=True)
    [answer] = stand_in(read(cut_recording(tmp_path, None, whole, tools=[SAVE])).turns[0], 0).answers
    [call] = answer.calls
    assert json.loads(call.arguments or "")["more"] == f"y {MADE_UP_MARK}"


def test_an_answer_that_was_not_cut_gets_no_rest(tmp_path: Path) -> None:
    url = "https://api.openai.com/v1/chat/completions"
    path = har(tmp_path / "whole.har", entry(url, request_body(), completion("All of it.", "stop")))
    [answer] = stand_in(read(path).turns[0], 0).answers
    assert answer.text == "All of it."


def test_no_key_is_sent_or_written_and_the_server_is_gone_afterwards(tmp_path: Path) -> None:
    replay = read(cut_recording(tmp_path))
    request = stand_in_request(
        replay, settings_of({}, replay.settings), 0, {"OPENAI_API_KEY": KEY, "LOOP_INSPECTOR_API_KEY": KEY})
    assert (request.target.server.key, request.target.variable) == ("", None)
    where = urlsplit(request.target.url)
    assert where.hostname == "127.0.0.1"
    name = new_name(by_stand_in=True)
    run_branch(request, name, tmp_path, PATIENT)
    assert KEY not in file_of(tmp_path, name).read_text()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", where.port or 0)) != 0


def test_what_a_stand_in_said_is_read_again_as_simulated(tmp_path: Path) -> None:
    replay = read(cut_recording(tmp_path))
    name = new_name(by_stand_in=True)
    heard, _ = run_branch(stand_in_request(replay, settings_of({}, replay.settings), 0, {}), name, tmp_path, PATIENT)
    again = recall(name, tmp_path)
    assert [each.simulated for each in again.exchanges] == [True] * len(heard.exchanges)
    assert [each.response.text for each in again.exchanges] == [each.response.text for each in heard.exchanges]


def test_a_transcript_has_no_request_that_a_stand_in_could_get(tmp_path: Path) -> None:
    replay = read(str(Path(__file__).parents[2] / "sample_sessions" / "18-claude-code-cut-writes.jsonl"))
    with pytest.raises(CallerError, match="this is a transcript of claude-code"):
        stand_in_request(replay, settings_of({}, replay.settings), 0, {})


@pytest.mark.parametrize(("kind", "value"), [
    ("string", MADE_UP_MARK), ("number", 0), ("integer", 0), ("boolean", False), ("array", []), ("object", {}),
    ("null", None), ("STRING", MADE_UP_MARK),
])
def test_a_member_that_never_came_has_a_value_of_its_type(kind: str, value: Any, tmp_path: Path) -> None:
    tool = {"type": "function", "function": {"name": "save", "parameters": {
        "type": "object", "required": ["a", "b"], "properties": {"a": {"type": "string"}, "b": {"type": kind}}}}}
    call = ToolCall("call_1", "save", '{"a": "x', closed=True)
    [answer] = stand_in(read(cut_recording(tmp_path, None, call, tools=[tool])).turns[0], 0).answers
    assert json.loads(answer.calls[0].arguments or "") == {"a": f"x {MADE_UP_MARK}", "b": value}
