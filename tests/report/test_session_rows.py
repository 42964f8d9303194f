"""The rows of sessions: one each, also of those that share a file, and below the session that began it."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from inspector.config.settings import Settings
from inspector.report.turn_index import read_rows
from inspector.report.turn_rows import TurnRow
from inspector.report.turn_table import by_session, has_families, in_families, worst_of_sessions
from inspector.report.verdict import TurnVerdict
from loop_core.values import Severity
from tests.scenes import shapes
from tests.scenes import transcripts as scenes
from tests.scenes.rows import each_row

DONE = TurnVerdict(9, "COMPLETE", "✓", "v", Severity.INFO, "", None)


def row(name: str, parent: str = "", file: str = "", **more: object) -> TurnRow:
    path = file or name
    return TurnRow((path,), path, name, verdict=DONE, session_id=name, parent_id=parent)._replace(**more)


def tree(rows: list[TurnRow]) -> list[tuple[int, str]]:
    return [(each.depth, each.name) for each in in_families([[row] for row in rows])]


def lines(*values: object) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in values)


def test_a_family_stands_where_the_first_of_its_sessions_stood():
    rows = [row("x"), row("grandchild", "child"), row("y"), row("child", "main"), row("main"), row("second", "main")]
    assert tree(rows) == [(0, "x"), (0, "main"), (1, "child"), (2, "grandchild"), (1, "second"), (0, "y")]


def test_sessions_of_one_file_are_below_one_another_by_their_names():
    rows = [row("A", file="f.db"), row("A › B", file="f.db"), row("A › B › C", file="f.db"), row("A › B", file="g.db")]
    assert tree(rows) == [(0, "A"), (1, "A › B"), (2, "A › B › C"), (0, "A › B")]


def test_a_session_that_another_file_began_has_those_below_it_that_it_began_itself():
    inner = row("child › look", "main", file="c")._replace(session_id="child")
    rows = [row("child", "main", file="c"), inner, row("main"), row("grandchild", "child")]
    assert tree(rows) == [(0, "main"), (1, "child"), (2, "child › look"), (2, "grandchild")]


def test_sessions_that_name_each_other_or_one_that_is_not_listed_are_listed_once():
    assert sorted(tree([row("a", "b"), row("b", "a")])) == [(0, "b"), (1, "a")]
    assert tree([row("a", "a"), row("b", "gone")]) == [(0, "a"), (0, "b")]


def test_an_id_is_that_of_a_session_of_the_same_agent():
    assert tree([row("a", agent="pi"), row("b", "a", agent="codex")]) == [(0, "a"), (0, "b")]


def test_what_was_not_read_of_a_file_is_with_its_first_session():
    skipped = TurnRow(("f",), "f", "f", why="2 entries skipped")
    rows = [row("A", file="f"), row("B", file="f"), skipped, row("A", file="f")]
    assert [len(group) for group in by_session(rows).values()] == [3, 1]
    assert [each.name for each in worst_of_sessions(rows)] == ["A", "B"]
    assert [each.why for each in worst_of_sessions([skipped])] == ["2 entries skipped"]


# -- What recordings say of it -----------------------------------------------------------------------------------------


def codex(key: str, **header: object) -> str:
    first = next(each for each in shapes.CODEX if each.get("type") == "session_meta")
    return lines({**first, "payload": {**first["payload"], "id": key, **header}},
                 *(each for each in shapes.CODEX if each is not first))


def pi_session(key: str, **header: object) -> str:
    _, *entries = scenes.pi(scenes.pi_user("go"), scenes.pi_reply(scenes.text("Done."))).splitlines()
    return lines({**scenes.header(), "id": key, **header}, *map(json.loads, entries))


def droid(**header: object) -> str:
    return lines({**shapes.DROID[0], **header}, *shapes.DROID[1:])


def kimi_cli(asked: str) -> str:
    return lines(*({"timestamp": 1, "message": {"type": kind, "payload": payload}} for kind, payload in (
        ("TurnBegin", {"user_input": asked}), ("ContentPart", {"type": "text", "text": "Done."}), ("TurnEnd", {}))))


def claude_session(key: str, **more: object) -> str:
    return scenes.claude(scenes.prompt("go", sessionId=key, **more),
                         scenes.block(scenes.text("Done."), stop="end_turn", sessionId=key, **more))


def gemini(key: str, kind: str) -> str:
    return lines({"sessionId": key, "projectHash": "p", "kind": kind}, *shapes.GEMINI_LINES[1:3])


FAMILIES = {
    "codex": {"rollout-1.jsonl": codex("t1"), "rollout-2.jsonl": codex("t2", parent_thread_id="t1")},
    "codex-of-its-source": {
        "rollout-1.jsonl": codex("t1"),
        "rollout-2.jsonl": codex("t2", source={"subagent": {"thread_spawn": {"parent_thread_id": "t1"}}})},
    "codex-fork": {"rollout-1.jsonl": codex("t1"), "rollout-2.jsonl": codex("t2", forked_from_id="t1")},
    "droid": {"k1.jsonl": droid(id="k1"), "k2.jsonl": droid(id="k2", callingSessionId="k1")},
    "pi": {"1_k1.jsonl": pi_session("k1"), "2_k2.jsonl": pi_session("k2", parentSession="/h/sessions/1_k1.jsonl")},
    "claude-code-beside": {"k1.jsonl": claude_session("k1"),
                           "k1/subagents/agent-a.jsonl": claude_session("k1", agentId="a", isSidechain=True)},
    "claude-code-of-before": {"k1.jsonl": claude_session("k1"),
                              "zagent-a.jsonl": claude_session("k1", agentId="a", isSidechain=True)},
    "gemini": {"session-k1.jsonl": gemini("k1", "main"), "k1/k2.jsonl": gemini("k2", "subagent")},
    "kimi": {"s/agents/main/wire.jsonl": lines(*shapes.KIMI), "s/agents/zwei/wire.jsonl": lines(*shapes.KIMI)},
    "kimi-cli": {"s/wire.jsonl": kimi_cli("go"), "s/subagents/a1/wire.jsonl": kimi_cli("look")},
    "cursor": {"k1/k1.jsonl": lines(*shapes.CURSOR), "k1/subagents/k2.jsonl": lines(*shapes.CURSOR)},
    "roo": {"k1/api_conversation_history.json": json.dumps(list(shapes.ROO)),
            "k1/history_item.json": json.dumps({"task": "one"}),
            "k2/api_conversation_history.json": json.dumps(list(shapes.ROO)),
            "k2/history_item.json": json.dumps({"task": "two", "parentTaskId": "k1"})},
}


@each_row("agent", FAMILIES)
def test_a_session_that_another_began_is_below_it(tmp_path: Path, agent: str):
    for number, (name, content) in enumerate(FAMILIES[agent].items()):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content + number * "\n")  # files of the same bytes are one
    files = [str(tmp_path / name) for name in FAMILIES[agent] if "history_item" not in name]
    if agent in ("claude-code-beside", "cursor"):
        del files[1]  # it is read with the other
    rows = [row for found in read_rows(files, None, None, Settings(), indexed=False)
            for _, rows in found.rows for row in rows if row.verdict is not None]
    assert has_families(rows)
    sessions = worst_of_sessions(reversed(rows))
    assert [(row.depth, row.file) for row in in_families([[row] for row in sessions])] == [
        (0, str(tmp_path / next(iter(FAMILIES[agent])))),
        (1, str(tmp_path / [name for name in FAMILIES[agent] if "history_item" not in name][1]))]


def test_sessions_of_a_database_are_rows_with_their_titles_also_where_two_have_the_same(tmp_path: Path):
    path = tmp_path / "crush.db"
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("CREATE TABLE sessions (id, parent_session_id, title)")
        base.execute("CREATE TABLE messages (id, session_id, role, parts, model, created_at)")
        for key, parent, title in (("s-1", None, "Chat"), ("s-2", None, "Chat"), ("s-3", "s-2", "Look")):
            base.execute("INSERT INTO sessions VALUES (?, ?, ?)", (key, parent, title))
            for role, part in (("user", {"type": "text", "data": {"text": "go"}}),
                               ("assistant", {"type": "text", "data": {"text": "Done."}})):
                base.execute("INSERT INTO messages VALUES (?, ?, ?, ?, 'm', 1)",
                             (f"{key} {role}", key, role, json.dumps([part])))
    (found,) = read_rows([str(path)], None, None, Settings(), indexed=False)
    rows = in_families([[row] for row in worst_of_sessions(found.rows[0][1])])
    assert [(row.depth, row.name) for row in rows] == [(0, "Chat (s-1)"), (0, "Chat (s-2)"), (1, "Chat (s-2) › Look")]
