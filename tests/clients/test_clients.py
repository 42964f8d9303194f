"""The reports of client libraries: every cell is there, from the versions that are named, and the documents show them.

The libraries themselves are not needed here; what they report is data.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from inspector.provider import all_stories
from inspector.provider.faults import why_unplayable
from loop_core.formats import FORMATS
from tests.clients import run, tables

DOCS = Path(__file__).resolve().parents[2] / "docs"
DATA: dict[str, Any] = json.loads(tables.DATA.read_text("utf-8"))


@pytest.fixture(scope="module")
def docs() -> Iterator[ModuleType]:
    sys.path.insert(0, str(DOCS))
    try:
        yield importlib.import_module("generate")
    finally:
        sys.path.remove(str(DOCS))


def test_every_cell_that_the_tables_name_is_there_once_and_no_other() -> None:
    absent = {client.name for client in tables.CLIENTS if client.environment in DATA["missing"]}
    expected = [(client.name, api, mode, name) for client in tables.CLIENTS if client.name not in absent
                for api in FORMATS if api in client.formats for mode in ("stream", "whole") for name in all_stories()]
    assert [run.keys(row) for row in DATA["cells"]] == expected


def test_what_is_not_played_is_what_the_format_has_no_word_for() -> None:
    for row in DATA["cells"]:
        refused = why_unplayable(all_stories()[row["scenario"]], row["format"], row["mode"] == "stream")
        assert ("unplayed" in row) == bool(refused), run.keys(row)


def test_the_versions_are_those_of_the_tables() -> None:
    for environment in tables.ENVIRONMENTS:
        if environment.name not in DATA["missing"]:
            found = DATA["versions"][environment.name]
            for text in (*environment.python, *environment.node):
                name, version = re.fullmatch(r"(@?[^@=\[]+)(?:\[.*\])?(?:==|@)(.+)", text).groups()  # type: ignore[union-attr]
                assert found[name] == version


def test_the_data_name_no_machine() -> None:
    text = tables.DATA.read_text("utf-8")
    assert not re.search(r"/(?:tmp|home|root|work|usr|var)/|https?://|127\.0\.0\.1", text)


@pytest.mark.parametrize("page", ["provider.md", "clients.md"])
def test_the_documents_are_fresh(docs: ModuleType, page: str) -> None:
    text = (DOCS / page).read_text("utf-8")
    assert docs.rendered(text) == text, f"docs/{page} is stale; run python docs/generate.py"


def test_a_scenario_that_no_client_has_played_is_named_with_the_command_that_plays_it(docs: ModuleType) -> None:
    with pytest.raises(SystemExit, match=r"no report of loop_core about the scenario new .* --only new"):
        importlib.import_module("client_parts")._row("loop_core", "openai_chat", "stream", "new")


def report(scenario: str, client: str = "openai-agents", **more: Any) -> dict[str, Any]:
    return {"client": client, "format": "openai_chat", "mode": "stream", "scenario": scenario, "reason": None,
            "text": "whole", "ran": [], "gave": [], "error": None, "requests": 1, "refusal": None,
            "otherwise": False, **more}


@pytest.mark.parametrize(("row", "word"), [
    (report("rate-limited"), "whole"),
    (report("call", ran=[["on_call", "whole"]]), "whole"),
    (report("call", ran=[["on_call", "whole"], ["on_call", "whole"]]), "**ran twice**"),
    (report("call", ran=[["on_call", "{}"]]), "**ran cut**"),
    (report("call", ran=[["on_call", "{}"]], error="APIError"), "**ran cut**"),
    (report("call"), "silent"),
    (report("call", "official SDK", gave=[["on_call", "whole"]], reason="tool_calls"), "whole"),
    (report("call", "official SDK", gave=[["on_call", '{"te']], reason="tool_calls"), "silent"),
    (report("call", "official SDK", gave=[["on_call", '{"te']], reason="length"), "reported"),
    (report("empty", text="empty", reason="stop"), "silent"),
    (report("text", text="part", reason="length"), "reported"),
    (report("no-reason", text="part", reason="None"), "reported"),
    (report("no-reason", text="part", reason="Usual"), "silent"),
    (report("leaked-call", text="whole", reason="stop"), "silent"),
    (report("reset", text="part", error="APIError"), "error"),
    (report("stalled", text="part", error="no end"), "no end"),
])
def test_a_verdict_is_what_the_observations_say(docs: ModuleType, row: dict[str, Any], word: str) -> None:
    assert importlib.import_module("client_parts").verdict(row, "Usual") == word


@pytest.mark.parametrize("word", [
    "stop", "end_turn", "stop_sequence", "completed", "STOP", "tool_calls", "tool-calls", "tool_call", "tool_use",
    "function_call",
])
def test_words_of_a_complete_answer_say_nothing_of_what_is_missing(docs: ModuleType, word: str) -> None:
    verdict = importlib.import_module("client_parts").verdict
    assert verdict(report("text", text="part", reason=word), "Usual") == "silent"
    assert verdict(report("text", text="part", reason=f"not {word}"), "Usual") == "reported"


def test_what_of_a_text_has_come() -> None:
    story = all_stories()["call"]
    first, last = (answer.text for answer in story.answers)
    assert [run.judge_text(text, story, True) for text in (last, last[:5], first, " ", "Hm.")] == [
        "whole", "part", "first answer", "empty", "other"]
    assert [run.judge_text(text, story, False) for text in (first, first[:5], last)] == ["whole", "part", "other"]


def test_what_of_arguments_has_come() -> None:
    assert run.compare_arguments('{"a":1}', {"a": 1}) == "whole"
    assert run.compare_arguments('{"a"', {"a": 1}) == '{"a"'
    assert run.compare_arguments("{}", {"a": 1}) == "{}"


def test_an_installer_is_quoted_without_addresses_and_paths() -> None:
    said = "Looking in indexes: https://host/x\nERROR: No version of a==1 in /opt/x (from https://host/simple)\n"
    assert run.without_places(said) == "ERROR: No version of a==1 in … (from …"


def test_a_word_that_names_no_cell_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["--only", "nobody"]) == 2
    assert capsys.readouterr().err == "no client, format, mode or scenario is called 'nobody'\n"
