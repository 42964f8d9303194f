"""A member of a transcript's row whose value is of no type that it can have is told with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.sessions import open_paths
from inspector.sessions.importers import pi
from tests.scenes.rows import each_row
from tests.scenes.shapes import CLAUDE, CODEX, COPILOT, KIMI, LANGFUSE, PI, QWEN, Shape


@each_row(("rows", "odd", "told"), [
    (CLAUDE, ("agentId", []), "agentId is a list, but text was expected"),
    (CLAUDE, ("uuid", {}), "uuid is an object, but text was expected"),
    (CLAUDE, ("isSidechain", "no"), "isSidechain is text, but true or false was expected"),
    (CODEX, ("timestamp", []), "timestamp is a list, but text was expected"),
    (CODEX, ("payload", {**CODEX[1]["payload"], "name": []}), "payload.name is a list, but text was expected"),
    (COPILOT, ("id", []), "id is a list, but text was expected"),
    (COPILOT, ("data", {**COPILOT[1]["data"], "model": []}), "data.model is a list, but text was expected"),
    (KIMI, ("model", []), "model is a list, but text was expected"),
    (KIMI, ("event", {"type": []}), "event.type is a list, but text was expected"),
    (QWEN, ("model", []), "model is a list, but text was expected"),
    (QWEN, ("message", {**QWEN[1]["message"], "role": []}), "message.role is a list, but text was expected"),
    (PI, ("parentId", 1), "parentId is a number, but text was expected"),
    (PI, ("message", []), "message is a list, but an object was expected"),
])
def test_a_member_of_an_odd_kind_is_told_with_file_and_line(rows, odd, told, tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(Shape("", "", [rows[0], {**rows[1], odd[0]: odd[1]}, *rows[2:]], rows=True).file_bytes())
    (given,) = open_paths([str(path)]).inputs
    assert f"{path}: line 2: {told}; it was skipped" in given.notices
    assert given.responses > 0


@each_row(("rows", "key", "name", "member", "kind"), [
    (CLAUDE, "u2", "message", "stop_reason", "a list"),
    (CLAUDE, "u5", "data", "hookName", "a list"),
    (CLAUDE, "u6", "attachment", "hookName", "a list"),
    (PI, "e2", "message", "usage", "a list"),
])
def test_a_member_of_a_member_is_told_too(rows, key, name, member, kind, tmp_path: Path):
    number = next(at for at, row in enumerate(rows) if key in (row.get("uuid"), row.get("id")))
    odd = {**rows[number], name: {**rows[number][name], member: []}}
    path = tmp_path / "rows.jsonl"
    path.write_bytes(Shape("", "", [*rows[:number], odd, *rows[number + 1 :]], rows=True).file_bytes())
    told = f"{path}: line {number + 1}: {name}.{member} is {kind}, but "
    assert any(notice.startswith(told) for notice in open_paths([str(path)]).inputs[0].notices)


def test_a_hook_of_an_odd_kind_is_told_and_the_rest_is_read(tmp_path: Path):
    rows = [dict(row) for row in CLAUDE]
    at = next(number for number, row in enumerate(rows) if row["type"] == "progress")
    rows[at]["data"] = {"hookEvent": {}}
    path = tmp_path / "rows.jsonl"
    path.write_bytes(Shape("", "", rows, rows=True).file_bytes())
    (given,) = open_paths([str(path)]).inputs
    told = f"{path}: line {at + 1}: data.hookEvent is an object, but text was expected; it was skipped"
    assert told in given.notices


@pytest.mark.parametrize("why", [
    TypeError("int() argument"), ValueError("no number"), AttributeError("no attribute"), KeyError("role"),
    IndexError("of a list"), ZeroDivisionError("by zero"), OverflowError("too large"), RecursionError("too deep"),
], ids=lambda why: type(why).__name__)
def test_a_row_that_nobody_can_use_costs_no_other_row(why, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(Shape("", "", PI, rows=True).file_bytes())
    (whole,) = open_paths([str(path)]).inputs
    take = pi._Session.take

    def breaks(self, line, lines, place):
        if line.number == 2:
            raise why
        return take(self, line, lines, place)

    monkeypatch.setattr(pi._Session, "take", breaks)
    (given,) = open_paths([str(path)]).inputs
    assert given.error is None
    assert given.responses == whole.responses
    assert any(notice.startswith(f"{path}: line 2") and f"({type(why).__name__})" in notice for notice in given.notices)


def test_an_odd_member_of_an_observation_of_langfuse_is_told(tmp_path: Path):
    path = tmp_path / "trace.json"
    odd = [{**each, "model": []} for each in LANGFUSE["observations"]]
    path.write_bytes(Shape("", "", {**LANGFUSE, "observations": odd}).file_bytes())
    (given,) = open_paths([str(path)]).inputs
    assert any("model is a list, but text was expected" in notice for notice in given.notices)
