"""`inspector providers`: what it prints and saves, and how it refuses."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from inspector.cli import main
from inspector.provider.dialect_output import file_name, save_all
from inspector.provider.dialect_rows import DialectRow
from inspector.provider.dialects import DIALECTS
from inspector.provider.scenarios import SCENARIOS
from inspector.replay.case import open_case
from inspector.sessions import open_paths
from loop_core.errors import CallerError, LoopError
from loop_core.wire import wire
from tests.scenes.command import Output
from tests.scenes.provider import table_rows

ROOT = Path(__file__).resolve().parents[2]


def providers(*arguments: str, columns: int = 120) -> Result:
    result = CliRunner(env={"COLUMNS": str(columns)}).invoke(main, ["providers", *arguments])
    if isinstance(result.exception, LoopError):
        return result
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_the_first_scenario_is_shown_without_a_name() -> None:
    shown = providers()
    assert shown.exit_code == 0
    assert shown.output.startswith("call-cut: a call that the budget cuts in the middle of a string\n")
    assert "what a loop does (policy strict): hold, repair 41 · continue 8\n" in shown.output
    assert shown.output == providers("call-cut").output


@pytest.mark.parametrize("columns", [80, 120])
def test_the_text_fits_the_terminal(columns: int) -> None:
    assert max(map(len, providers(columns=columns).output.splitlines())) <= columns


def test_one_document_in_ascii() -> None:
    shown = providers("two-calls", "--json", "--only", "vllm")
    assert shown.output.isascii()
    made: dict[str, Any] = json.loads(shown.output)
    assert (made["schema"], made["policy"]) == ("loop-inspector/providers/1", "strict")
    assert made["scenario"]["budget"] == 32
    first = made["rows"][0]
    assert (first["dialect"], first["raw_stop_reason"], first["mapped_stop_reason"], first["stop_reason"]) == (
        "openai_chat/vllm", "tool_calls", "tool_call", "max_tokens")
    assert [call["verdict"] for call in first["tool_calls"]] == ["held", "held"]
    assert first["evidence"][-1]["rule"] == "judge.cut_arguments"
    assert first["decision"] == "hold, repair"
    assert [peer["takes_for_finished"] for peer in first["peers"]] == [True] * 4


def test_a_larger_budget_finishes_the_call() -> None:
    made = json.loads(providers("--budget", "256", "--json").output)
    assert {row["decision"] for row in made["rows"] if row["told"]} == {"run calls"}


def test_another_policy() -> None:
    made = json.loads(providers("--policy", "pi-presence", "--json", "--only", "openai_chat/openai").output)
    assert (made["rows"][0]["decision"], made["rows"][0]["runs_held_call"]) == ("run held call", True)


def test_each_dialect_on_a_line_of_its_own() -> None:
    shown = providers("--each").output
    assert "+17" not in shown
    assert "as openai_chat/openai" not in shown
    assert shown.count("\n  together ") == 1


@pytest.mark.parametrize("other", [
    ["--json"], ["--save", "folder"], ["--only", "vllm"], ["--budget", "9"], ["--policy", "strict"], ["--each"],
    ["text-cut"],
])
def test_nothing_goes_with_the_list(other: list[str]) -> None:
    shown = providers("--list", *other)
    named = "[SCENARIO]" if other == ["text-cut"] else other[0]
    assert shown.exit_code == 2
    assert f"--list prints its own text: it does not go with '{named}'" in shown.stderr


def test_the_list_names_scenarios_dialects_and_sources() -> None:
    shown = providers("--list").output
    for scenario in SCENARIOS.values():
        assert f"  {scenario.name} " in shown
        assert scenario.title in shown
    for dialect in DIALECTS:
        assert f"  {dialect.name}\n" in shown
        assert f"[{dialect.source}]" in shown


@pytest.mark.parametrize(("arguments", "told"), [
    (("no-such",), "unknown scenario 'no-such'; expected one of call-cut, text-cut"),
    (("--only", "no-such"), "no dialect is called 'no-such'"),
    (("--policy", "no-such"), "unknown policy 'no-such'"),
])
def test_an_unknown_name_is_one_line_and_exit_2(
    arguments: tuple[str, ...], told: str, inspector: Callable[..., Output],
) -> None:
    said = inspector("providers", *arguments)
    assert (said.code, said.out) == (2, "")
    assert told in said.err
    assert said.err.count("\n") == 1


def test_a_budget_is_a_number_above_nothing() -> None:
    assert providers("--budget", "0").exit_code == 2


def test_no_model_of_a_border_is_imported_to_show_the_table() -> None:
    """Only `--save` writes session records; the table costs no pydantic, no httpx and no Textual."""
    code = ("import sys; sys.argv = ['inspector', 'providers']; from inspector import cli\n"
            "try: cli.run()\nexcept SystemExit: pass\n"
            "print([name for name in ('pydantic', 'httpx', 'textual') if name in sys.modules])")
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, text=True, capture_output=True, check=False,
                          timeout=60)
    assert said.stdout.endswith("\n[]\n"), said.stderr


# -- saved -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", ["call-cut", "malformed-call", "paused"])
def test_what_is_saved_is_read_as_the_row(tmp_path: Path, scenario: str) -> None:
    told = [row for row in table_rows(scenario) if isinstance(row, DialectRow)]
    paths = save_all(told, tmp_path / "new")
    assert [path.name for path in paths] == [file_name(row) for row in told]
    assert len(set(paths)) == len(told)
    for row, path in zip(told, paths, strict=True):
        loaded = open_paths([str(path)])
        assert [(given.error, given.notices, given.responses) for given in loaded.inputs] == [(None, (), 1)]
        (exchange,) = loaded.exchanges
        case = open_case(loaded)
        assert exchange.body == row.exchange.body
        assert exchange.profile.name == row.dialect.profile
        assert exchange.request == row.exchange.request or (
            exchange.request is not None and row.exchange.request is not None
            and exchange.request.messages == row.exchange.request.messages
            and exchange.request.max_tokens == row.exchange.request.max_tokens)
        assert case.judgements[0] == row.judgement
        assert case.verdicts[0] == row.verdicts


def test_the_command_saves_each_row(tmp_path: Path) -> None:
    providers("call-cut", "--only", "mimo", "--save", str(tmp_path))
    (path,) = tmp_path.iterdir()
    assert path.name == "call-cut.openai_chat.mimo.session.jsonl"
    shown = CliRunner().invoke(main, ["explain", str(path)])
    assert "CALL HELD" in shown.output
    assert "raw absent > interrupted" in shown.output


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(CallerError, match="cannot be written"):
        save_all(table_rows("call-cut"), blocked)
    with pytest.raises(CallerError, match=r"there is no folder .*new; only the last folder of a path is made"):
        save_all(table_rows("call-cut"), tmp_path / "new" / "inside")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


# -- the document ----------------------------------------------------------------------------------------------------


@pytest.fixture
def generate(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module("generate")


def test_the_page_of_the_providers_is_fresh(generate: Any) -> None:
    page = (ROOT / "docs" / "providers.md").read_text("utf-8")
    assert generate.rendered(page) == page, "docs/providers.md is stale; run python docs/generate.py"
    row = next(line for line in page.splitlines() if line.startswith("| `openai_chat/mimo` | absent"))
    assert generate.rendered(page.replace(row, row.replace("hold, repair", "finish"))) == page


def test_the_commands_of_the_page_run(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "providers.md").read_text("utf-8")
    commands = [re.split(r"  +", line[2:])[0].split() for line in page.splitlines()
                if line.startswith("$ inspector providers")]
    assert len(commands) == 7
    for words in commands:
        result = providers(*[str(tmp_path) if word == "FOLDER" else word for word in words[2:]])
        assert result.exit_code == 0, words
        assert result.output
    assert len(list(tmp_path.iterdir())) == sum(not wire(dialect.api).no_tools for dialect in DIALECTS)
