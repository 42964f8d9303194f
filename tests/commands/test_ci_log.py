"""Text of a transcript is no command to the CI server that logs what a command prints."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inspector.report.ci_log import without_ci_commands
from tests.scenes.command import Output
from tests.scenes.shapes import ANSWERS, REQUESTS, URLS

Inspector = Callable[..., Output]
SAID = "so:\n::error::x\n\u00a0::add-mask::x\n##[error]x\n##vso[task.setvariable variable=a]x"
COMMAND = re.compile(r"^\s*::\w|##\w*\[", re.MULTILINE)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A pair whose request, answer, stop reason and name hold commands."""
    answer = json.loads(json.dumps(ANSWERS["openai_chat"]))
    answer["choices"][0]["message"]["content"] = SAID
    answer["choices"][0]["message"]["tool_calls"][0]["function"]["name"] = SAID
    asked = json.loads(json.dumps(REQUESTS["openai_chat"]))
    asked["messages"].append({"role": "user", "content": SAID})
    file = tmp_path / "##[group]a.json"
    file.write_text(json.dumps({"url": URLS["openai_chat"], "request": asked, "response": answer}))
    return file


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_what_explain_prints_is_no_command(words: tuple[str, ...], inspector: Inspector, hostile: Path) -> None:
    printed = inspector("explain", hostile, *words).out
    assert "error" in printed
    assert COMMAND.search(printed) is None
    if words:
        assert SAID in texts_of(json.loads(printed))


def texts_of(value: Any) -> list[str]:
    if isinstance(value, (dict, list)):
        return [text for held in (value.values() if isinstance(value, dict) else value) for text in texts_of(held)]
    return [value] if isinstance(value, str) else []


def test_what_is_said_on_standard_error_is_no_command(inspector: Inspector, tmp_path: Path) -> None:
    said = inspector("explain", tmp_path / "##vso[task.complete]gone.json").err
    assert "gone.json" in said
    assert COMMAND.search(said) is None


@pytest.mark.parametrize("form", ["md", "text", "html", "json", "session", "curl", "fixture"])
def test_what_export_prints_is_no_command(form: str, inspector: Inspector, hostile: Path) -> None:
    one = ("--response", "1") if form in ("curl", "fixture") else ()
    printed = inspector("export", hostile, "--to", form, "--out", "-", *one).out
    assert "vso" in printed
    assert COMMAND.search(printed) is None
    assert ("# #" in printed) == (form in ("md", "text")), "the other forms have a spelling that means the same"
    if form == "fixture":
        compile(printed, "fixture.py", "exec")


def test_many_blank_lines_take_no_longer_than_they_are() -> None:
    blank = " \n" * 200_000 + "::"
    assert without_ci_commands(blank) == f"{blank[:-2]}: :"
