"""The columns of the list of dialects, at any width; and the question that is asked of them as a command line."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from shlex import split
from typing import Any

import pytest
from click.testing import CliRunner

from inspector.cli import main
from inspector.config.settings import Settings
from inspector.provider import dialect_lines
from inspector.provider.dialect_lines import TableEntry, entries
from inspector.provider.dialect_output import MOST, TableQuery, next_budget, path_of
from inspector.provider.dialect_rows import DialectRow, TableRow
from inspector.provider.scenarios import SCENARIOS
from inspector.report.lines.spans import text_of, width_of
from loop_core.turn.presets import preset
from tests.scenes.provider import table_rows

CALL_CUT = TableQuery()


@cache
def folded_lines(scenario: str) -> list[Any]:
    return [*dialect_lines.list_lines(entries(table_rows(scenario)))]


def titles(width: int) -> list[str]:
    shown = [each for each in folded_lines("call-cut") if isinstance(each, TableEntry)]
    return [column.key for column in dialect_lines.layout(shown, width).columns]


def test_a_wide_table_has_all_columns() -> None:
    head = text_of(dialect_lines.table(table_rows("call-cut"), 400)[0])
    assert re.split(r"\s{2,}", head.strip()) == [
        "dialect", "raw word", "mapped", "effective", "seen by", "the call", "decision", "peers that differ"]


def test_as_many_columns_as_fit() -> None:
    assert titles(155) == ["raw word", "reason", "the call", "decision", "peers (! finished)", "seen by"]
    assert titles(140) == ["raw word", "reason", "the call", "decision", "peers (! finished)"]
    assert titles(120) == ["raw word", "reason", "the call", "decision"]
    assert titles(75) == ["raw word", "effective", "decision"]


WIDTHS = (58, 75, 100, 118, 140, 157, 220)


@pytest.mark.parametrize(("scenario", "width"), [
    (scenario, width) for number, scenario in enumerate(SCENARIOS) for width in WIDTHS[number % 2 :: 2]])
def test_no_line_is_wider_than_the_list_and_all_are_aligned(scenario: str, width: int) -> None:
    lines = folded_lines(scenario)
    laid = dialect_lines.layout([each for each in lines if isinstance(each, TableEntry)], width)
    starts = [text_of(dialect_lines.titles(laid)).index(column.key[: laid.sizes[at] - 1])
              for at, column in enumerate(laid.columns)]
    for each in lines:
        line = dialect_lines.line(each, laid)
        if isinstance(each, TableEntry) and not isinstance(each.row, DialectRow):
            continue  # one sentence over all columns, cut where the list ends
        assert width_of(line) <= width
        if isinstance(each, TableEntry):
            text = text_of(line)
            assert all(text[start - 2 : start] == "  " for start in starts)


def test_the_lines_of_a_cut_call() -> None:
    lines = {each.row.name: each for each in folded_lines("call-cut") if isinstance(each, TableEntry)}
    laid = dialect_lines.layout(list(lines.values()), 155)
    said = [text_of(dialect_lines.line(lines[name], laid)).split("  ") for name in (
        "openai_chat/vllm", "openai_chat/mimo", "openai_responses/generic+bare", "gemini_generate/vertex")]
    assert [[cell.strip() for cell in cells if cell.strip()] for cells in said] == [
        ["vllm +2", "tool_calls", "tool_call → max_tokens", "prefix of a string", "hold, repair", "all 4 !",
         "cut arguments"],
        ["mimo", "absent", "interrupted, cap", "prefix of a string", "hold, repair", "4 differ",
         "absent, usage at cap"],
        # Vercel's `tool-calls` goes for finished; LiteLLM's length, pydantic-ai's none and pi-ai's error do not.
        ["generic+bare", "incomplete", "interrupted, cap", "item incomplete", "hold, repair", "vercel! 3 differ",
         "usage at cap"],
        ["vertex", "MAX_TOKENS", "max_tokens", "prefix of a string", "hold, repair", "litellm!", "stop reasons"],
    ]


def test_dialects_are_found_by_what_they_say_and_by_those_that_share_their_line() -> None:
    lines = folded_lines("call-cut")

    def named_at(place: int | None) -> str:
        assert place is not None
        each = lines[place]
        assert isinstance(each, TableEntry)
        return each.row.name

    assert named_at(dialect_lines.find(lines, "groq", 5, 1, again=False)) == "openai_chat/openai"
    assert named_at(dialect_lines.find(lines, "native:", 1, 1, again=False)) == "openai_chat/openrouter"
    first = dialect_lines.find(lines, "ITEM INCOMPLETE", 1, 1, again=False)
    assert named_at(first) == "openai_responses/openai"
    assert first is not None
    found = dialect_lines.find(lines, "item incomplete", first, 1, again=True)
    assert named_at(found) == "openai_responses/generic+bare"
    assert dialect_lines.find(lines, "nowhere", 1, 1, again=False) is None
    assert named_at(dialect_lines.place_of(lines, "openai_chat/groq")) == "openai_chat/openai"
    assert named_at(dialect_lines.place_of(lines, "none of them")) == "openai_chat/openai"
    assert dialect_lines.find([], "x", 0, 1, again=False) is None


def test_a_budget_changes_by_ones_while_it_is_small() -> None:
    assert [next_budget(budget, 1) for budget in (1, 15, 16, 33, 63, 64, 255, 256, 300)] == [
        2, 16, 20, 36, 64, 80, 256, 320, 320]
    assert [next_budget(budget, -1) for budget in (1, 2, 16, 17, 33, 64, 65, 256, 320)] == [
        1, 1, 15, 16, 32, 60, 64, 240, 256]
    assert next_budget(MOST, 1) == MOST
    for start in range(1, 700):
        assert next_budget(start, 1) > start
        assert next_budget(start, -1) < start or start == 1


@pytest.mark.parametrize("asked", [
    CALL_CUT, CALL_CUT.shift_scenario(1), CALL_CUT.shift_scenario(-1), CALL_CUT.shift_budget(-1),
    TableQuery(each=True, budget=7), TableQuery(settings=Settings(policy=preset("pi-presence"))),
])
def test_the_command_line_asks_the_same(asked: TableQuery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from inspector.provider.dialect_output import text

    monkeypatch.setenv("LOOP_INSPECTOR_CONFIG", "")
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("LINES", "24")
    shown = CliRunner().invoke(main, split(asked.command())[1:])
    assert shown.exit_code == 0, shown.output
    assert shown.stdout == text(asked.rows(), asked.settings.policy, 160, asked.each)


def test_the_command_line_of_a_row_writes_the_session_that_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOOP_INSPECTOR_CONFIG", "")
    monkeypatch.chdir(tmp_path)
    asked = TableQuery(budget=20)
    told: list[TableRow] = [row for row in asked.rows() if row.name == "openai_chat/vllm+empty"]
    row = told[0]
    assert isinstance(row, DialectRow)
    written = CliRunner().invoke(main, split(asked.command_for(row))[1:])
    assert written.exit_code == 0, written.output
    assert [str(path) for path in Path("rows").iterdir()] == [path_of(row)]
    assert CliRunner().invoke(main, ["replay", path_of(row)]).exit_code == 0
