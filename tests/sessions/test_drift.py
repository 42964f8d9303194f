"""A record of a type that no version had is counted and named, in every format whose records have types."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest

from inspector.sessions import open_paths, transcripts
from inspector.sessions.file_format import HEAD
from inspector.sessions.following import FollowedSession
from inspector.sessions.importers import IMPORTERS, body
from inspector.sessions.importers.recognition import recognise
from inspector.sessions.recording import FileReading
from inspector.sessions.transcripts import TranscriptLines
from tests.scenes.rows import each_row
from tests.scenes.shapes import SHAPES, Shape

MEMBER = {
    "session": "type", "claude-code": "type", "pi": "type", "droid": "type", "cursor": "type", "gemini-cli": "type",
    "grok": "sessionUpdate", "kiro": "kind", "gemini-stream": "type", "antigravity": "type", "chat-lines": "role",
    "codex": "type", "codex-exec": "type", "kimi": "type", "qwen": "type", "qwen-stream": "type", "copilot": "type",
    "swe-agent": "role", "mini-swe-agent": "role", "hermes": "role", "goose": "role", "amp": "role", "roo": "role",
    "zeroclaw": "role", "botnexus": "role", "opencode": "type", "zeroclaw-trace": "event_type",
    "atif": "source", "openhands": "kind", "langfuse": "type", "langsmith": "run_type", "continue": "message.role",
    "pydantic-ai": "kind", "ai-sdk-stream": "type", "chat-history": "role", "vibe": "type",
    "ai-sdk-messages": "role", "letta": "role", "llama-index": "role",
    "agent-framework": "role", "gptme": "role", "fast-agent": "role",
}
"""Which member of a record says its type."""
LISTS = {
    "swe-agent": "history", "mini-swe-agent": "messages", "hermes": "messages", "amp": "messages",
    "opencode": "messages", "atif": "steps", "langfuse": "observations", "langsmith": "runs", "continue": "history",
    "gemini-cli": "messages", "chat-history": "messages", "fast-agent": "messages",
}
"""Where the records are, in an object."""
UNTYPED = {
    "har", "otlp", "mitmproxy", "vcr", "inspect", "claude-tap", "litellm", "vscode-chat", "known", "pairs", "body",
    "adk", "ag2", "agno", "ai-devtools", "ai-sdk-result", "chatgpt", "crush", "langgraph", "openai-agents", "httprr",
    "aider", "http-text", "curl-trace", "llm", "promptfoo", "smolagents", "strands", "mastra", "crewai", "voltagent",
    "claude-ai", "ai-studio", "librechat", "zed", "trae", "kiro-conversations", "cursor-chats",
}
"""Exchanges, spans, requests of one shape, a text, or a database that has tests of its own."""


def test_every_importer_is_here():
    assert set(IMPORTERS) == MEMBER.keys() | UNTYPED


@each_row("shape", SHAPES)
def test_a_file_is_read_as_what_it_is(shape: Shape, tmp_path):
    path = tmp_path / shape.name
    path.write_bytes(shape.file_bytes())
    (given,) = open_paths([str(path)]).inputs
    assert given.format == shape.format
    assert (given.error is None) is (shape.format != "known"), "a format that is known and not read is an error"


def texts(value: Any, *place: Any) -> Iterator[tuple[Any, ...]]:
    """The places of the texts in a value."""
    if isinstance(value, str):
        yield place
    elif isinstance(value, dict):
        for key, held in value.items():
            yield from texts(held, *place, key)
    elif isinstance(value, (list, tuple)):
        for number, held in enumerate(value):
            yield from texts(held, *place, number)


def with_longer(value: Any, words: str, first: Any, *rest: Any) -> Any:
    """The value with more words behind the text at a place."""
    longer = value[first] + words if not rest else with_longer(value[first], words, *rest)
    if isinstance(value, dict):
        return {**value, first: longer}
    return type(value)(longer if number == first else held for number, held in enumerate(value))


GROWING = [shape for shape in SHAPES if shape.rows and (shape.format == "gemini-cli" or IMPORTERS[shape.format].grows)]


def answers(path: Path) -> list[tuple[Any, ...]]:
    """What the answers in a file are, without their places in it."""
    return [(each.response.stop_reason.normalized, each.response.usage, each.response.text,
             [call.name for call in each.response.tool_calls]) for each in open_paths([str(path)]).exchanges]


@pytest.mark.parametrize("shape", GROWING, ids=lambda shape: f"{shape.format}-{shape.name}")
def test_rows_that_a_formatter_wrote_in_several_lines_are_read(shape: Shape, tmp_path):
    path = tmp_path / shape.name
    path.write_bytes(shape.file_bytes())
    as_written = answers(path)
    spread = b"\n".join(json.dumps(row, indent=2).encode() for row in shape.value)
    assert as_written
    # a list, as `jq -s` makes it; bare messages in one may be anything
    bare = shape.format == "chat-lines" or shape.name == "cursor.jsonl"
    joined = [] if bare else [json.dumps(shape.value, indent=1).encode()]
    for data in (spread, spread.replace(b"\n", b"\r\n"), *joined):
        path.write_bytes(data)
        assert answers(path) == as_written


def test_a_row_in_several_lines_has_the_number_of_its_first_line():
    """A cut row is one damaged row, rows as the agent writes them may follow, and none is lost between two pieces of
    the file."""
    rows = [{"number": number, "list": [{"text": "x" * 400}]} for number in range(600)]
    data = b"\n".join(json.dumps(row, indent=1).encode() for row in rows) + b'\n{"number": 600}\n{\n "number": 601,'
    lines = TranscriptLines(data, {})
    read = [(line.number, line.value["number"], line.start) for line in lines]
    assert [number for _, number, _ in read] == list(range(601))
    assert all(data[:start].count(b"\n") == line - 1 for line, _, start in read)
    lines.report(reading := FileReading())
    assert len(reading.notices) == 1


def test_a_row_in_several_lines_is_whole_wherever_a_piece_of_the_file_ends(monkeypatch):
    rows = [{"number": number, "list": [{"text": "x"}, {"text": "y"}]} for number in range(3)]
    data = b"".join(json.dumps(row, indent=1).encode() + b"\n" for row in rows)
    for size in range(1, len(data)):
        monkeypatch.setattr(transcripts, "_PIECE", size)
        assert [line.value for line in TranscriptLines(data, {})] == rows, size


def test_a_followed_file_may_end_inside_a_row_in_several_lines(tmp_path):
    """Such as the output of a formatter that still writes."""
    shape = next(each for each in GROWING if each.format == "claude-code")
    data = b"\n".join(json.dumps(row, indent=2).encode() for row in shape.value)
    path = tmp_path / shape.name
    path.write_bytes(data[: data.rfind(b'"content"')])
    followed = FollowedSession([str(path)], api=None, profile=None)
    followed.read()
    path.write_bytes(data)
    assert len(followed.read().exchanges) == len(answers(path)) > 0


BY_LINES = {"ai-sdk-stream", "http-text", "httprr", "mitmproxy", "vcr"}
"""Formats that are no JSON, or whose lines have a mark of their own."""


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape.format not in {"known", *BY_LINES}],
                         ids=lambda shape: f"{shape.format}-{shape.name}")
def test_a_text_that_is_longer_than_the_head_of_the_file_changes_nothing(shape: Shape, tmp_path):
    """Logs of agents begin with requests of 100 kB and more: their prompts. Such a file was not read."""
    places = list(texts(shape.value))
    longest = max(places, key=lambda place: len(reduce(getitem, place, shape.value)))
    for number, place in enumerate({places[0], longest}):
        read = []
        for words in (" word" * 2, " word" * (HEAD // 4)):
            path = tmp_path / f"{number}{len(words)}" / shape.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(shape._replace(value=with_longer(shape.value, words, *place)).file_bytes())
            recording = open_paths([str(path)])
            read.append(([each.format for each in recording.inputs],
                         [each.response.stop_reason.normalized for each in recording.exchanges]))
        assert read[0] == read[1], place


@pytest.mark.parametrize(("size", "looks"), [(10, [10]), (HEAD, [HEAD]), (HEAD + 1, [HEAD, HEAD + 1])])
def test_only_a_file_that_is_longer_than_its_head_is_looked_at_twice(size: int, looks: list[int], monkeypatch):
    seen: list[int] = []
    sniff = body.sniff
    monkeypatch.setattr(body, "sniff", lambda head, path: (seen.append(len(head)), sniff(head, path))[1])
    assert recognise(b"{" + b" " * (size - 2) + b"}", "a.json") == "body"
    assert seen == looks


def of_new_type(name: str) -> dict[str, Any]:
    member = MEMBER[name]
    if member == "message.role":
        return {"message": {"role": "hologram", "content": "x"}}
    ids: dict[str, Any] = {"id": "new", "timestamp": "2026-01-01T00:00:00Z"}
    if name in ("claude-code", "qwen"):
        ids = {"uuid": "new", "parentUuid": None, "sessionId": "s", "timestamp": "2026-01-01T00:00:00Z"}
    if name == "zeroclaw":
        ids = {}
    if name == "grok":
        return {"method": "session/update", "params": {"update": {member: "hologram"}}}
    if name == "opencode":
        return {"type": "hologram"}
    if name == "openhands":
        return {**ids, "kind": "HologramEvent", "source": "agent"}
    return {**ids, member: "hologram", "content": "x"}


@each_row("name", MEMBER)
def test_a_record_of_an_unknown_type_is_counted_and_named(name: str, tmp_path):
    shape = next(shape for shape in SHAPES if shape.format == name)
    value = deepcopy(shape.value)
    records = value if isinstance(value, list) else value[LISTS[name]]
    new = of_new_type(name)
    records.extend([new, {key: "newer" if given == "new" else given for key, given in new.items()}])
    path = tmp_path / shape.name
    path.write_bytes(shape._replace(value=value).file_bytes())
    before = tmp_path / f"before-{shape.name}"
    before.write_bytes(shape.file_bytes())
    (given,) = open_paths([str(path)]).inputs
    (known,) = open_paths([str(before)]).inputs
    assert (given.format, given.error) == (name, None)
    assert given.responses == known.responses
    (notice,) = [each for each in given.notices if "hologram" in each.lower()]
    assert "records of unknown type were skipped" in notice
    assert "(2)" in notice


KNOWN = {
    "claude-code": (
        "agent-color agent-name agent-setting ai-title api-request api-request-blob api-request-shape atis-latch "
        "attachment attribution-snapshot bridge-session content-replacement cost-state custom-title "
        "file-history-delta file-history-snapshot fork-context-ref frame-link last-prompt "
        "marble-origami-commit marble-origami-snapshot mode permission-mode pr-link progress "
        "queue-operation rate_limit_event relocated result speculation-accept stream_event summary system tag "
        "task-summary tools-used worktree-state"),
    "pi": (
        "branch_summary compaction custom label model_change session session_info thinking_level_change"),
    "amp": (
        "info system thread"),
    "hermes": (
        "session session_meta system"),
    "opencode": (
        "agent agent-switched file location-switched model-switched patch session snapshot step-start"),
    "kimi": (
        "ApprovalRequest ApprovalRequestResolved ApprovalResponse CompactionBegin CompactionEnd StatusUpdate "
        "StepBegin StepRetry SubagentEvent ToolCallPart TurnBegin TurnEnd agent.message.appended agent.turn.ended "
        "agent.turn.started config.update context.append_loop_event context.append_message "
        "context.apply_compaction full_compaction.begin full_compaction.complete interaction.request "
        "interaction.resolved llm.request llm.tools_snapshot metadata permission.record_approval_result "
        "permission.set_mode plan_mode.enter plan_mode.exit plugin.session_start profile.bind prompt.accepted "
        "runtime.set_binding step.begin task.started task.terminated token_counting.measured "
        "token_counting.turn_recorded tools.set_active_tools tools.update_store turn.cancel turn.ended "
        "turn.prompt turn.steer turn.step.retrying usage.record turn.step.interrupted tools.register_user_tool "
        "tools.unregister_user_tool tools.reset_active_tools context.clear context.undo forked prompt.aborted "
        "prompt.completed prompt.steered full_compaction.cancel token_counting.rebased token_counting.truncated "
        "plan_mode.cancel plan.revision goal.create goal.update goal.clear mcp.tools_discovered "
        "interruptionReminder.recorded file_history.checkpoint file_history.tracked task.waitDelivered"),
    "copilot": (
        "session.idle assistant.turn_end tool.progress user.cleared system.notification hook.start subagent.started "
        "skill.invoked permission.requested model.changed result"),
}
"""Types of records that the agents write, and that hold nothing of an exchange."""


@each_row("name", KNOWN)
def test_a_record_of_a_known_type_without_an_exchange_is_counted_as_that(name: str, tmp_path):
    shape = [shape for shape in SHAPES if shape.format == name and isinstance(shape.value, list | dict)][name == "kimi"]
    value = deepcopy(shape.value)
    kinds = KNOWN[name].split()
    (value if isinstance(value, list) else value[LISTS[name]]).extend(
        {**{key: f"new{at}" if given == "new" else given for key, given in of_new_type(name).items()},
         MEMBER[name]: kind} for at, kind in enumerate(kinds))
    path = tmp_path / shape.name
    path.write_bytes(shape._replace(value=value).file_bytes())
    (given,) = open_paths([str(path)]).inputs
    assert (given.format, given.error) == (name, None)
    assert not [notice for notice in given.notices if "unknown type" in notice]
    (notice,) = [notice for notice in given.notices if "records that hold no exchange" in notice]
    assert [kind for kind in kinds if kind not in notice] == []
