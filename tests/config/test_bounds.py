"""What a tab may open: what was served, the folders of it and our data folder, however a path is spelled."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.config.files import BOUNDS_VARIABLE, Bounds, bounds_of, bounds_text, check_bounds
from inspector.live.inputs import json_file, tools_of
from inspector.sessions import open_paths
from inspector.sessions.folders import transcripts
from inspector.tui.turn_list import found_sections
from loop_core.errors import CallerError

SAMPLE = Path(__file__).parents[2] / "sample_sessions" / "01-cut-call-and-long-answer.session.jsonl"
Confine = Callable[..., None]


@pytest.fixture
def places(tmp_path: Path) -> Path:
    for name in ("served/one.jsonl", "served/two.jsonl", "served/below/three.jsonl", "tree/four.jsonl",
                 "tree/below/deep/five.jsonl", "data/live/six.jsonl", "secret/seven.jsonl", "served-too/eight.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SAMPLE, path)
    (tmp_path / "served" / "link.jsonl").symlink_to(tmp_path / "secret" / "seven.jsonl")
    (tmp_path / "tree" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "secret" / "back.jsonl").symlink_to(tmp_path / "served" / "one.jsonl")
    return tmp_path


@pytest.fixture
def set_bounds(places: Path, monkeypatch: pytest.MonkeyPatch) -> Confine:
    def confine(*names: str, tools: bool = False) -> None:
        environment = {"LOOP_INSPECTOR_DATA": str(places / "data")}
        value = bounds_text([str(places / name) for name in names], tools, environment)
        monkeypatch.setenv(BOUNDS_VARIABLE, value)

    return confine


@pytest.mark.parametrize(("name", "opens"), [
    ("served/one.jsonl", True), ("served/two.jsonl", True), ("served/below/three.jsonl", False), ("served", True),
    ("served/below", False), ("tree/four.jsonl", True), ("tree/below/deep/five.jsonl", True), ("tree/below", True),
    ("data/live/six.jsonl", True), ("secret/seven.jsonl", False), ("secret", False), ("served/link.jsonl", False),
    ("tree/link/seven.jsonl", False), ("secret/back.jsonl", True), ("served-too/eight.jsonl", False), (".", False),
    ("served/../secret/seven.jsonl", False), ("tree/../served/two.jsonl", True), ("tree-not-there", False),
])
def test_only_what_was_served_is_read(name: str, opens: bool, places: Path, set_bounds: Confine) -> None:
    set_bounds("served/one.jsonl", "tree")
    (first, *_) = open_paths([str(places / name)]).inputs
    assert (first.error is None) is opens
    assert opens or "outside what is served" in (first.error or "")


def test_a_folder_is_read_without_what_lies_outside(places: Path, set_bounds: Confine) -> None:
    set_bounds("served/one.jsonl")
    loaded = open_paths([str(places / "served")])
    assert [given.path for given in loaded.inputs[1:]] == [str(places / "served" / name)
                                                           for name in ("one.jsonl", "two.jsonl")]
    assert "three" not in str(loaded.inputs[0].skipped)


def test_without_paths_everything_is_read_and_without_a_variable_too(
    places: Path, set_bounds: Confine, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_bounds()
    assert open_paths([str(places / "secret" / "seven.jsonl")]).inputs[0].error is None
    monkeypatch.delenv(BOUNDS_VARIABLE)
    check_bounds("/")


@pytest.mark.parametrize("value", ["", "x", "[]", "{}", "null",
                                   '{"anything": 1, "files": [], "folders": [], "trees": []}'])
def test_a_variable_that_says_nothing_lets_nothing_through(value: str) -> None:
    assert bounds_of({BOUNDS_VARIABLE: value}) == Bounds(anything=False, tools=False)


def test_tools_and_messages_are_files_too(places: Path, set_bounds: Confine) -> None:
    (places / "secret" / "x.json").write_text("[]")
    (places / "served" / "x.json").write_text('[{"name": "sun", "result": "yes"}]')
    set_bounds("served/one.jsonl")
    assert tools_of(str(places / "served" / "x.json"))[0][0].name == "sun"
    for read in (lambda path: json_file(path, "--messages"), tools_of):
        with pytest.raises(CallerError, match="outside what is served"):
            read(str(places / "secret" / "x.json"))


def test_python_tools_are_imported_only_where_they_are_allowed(
    tmp_path: Path, set_bounds: Confine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tools_of_a_tab.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w').close()\ndef sun() -> str:\n    return 'yes'\n")
    monkeypatch.chdir(tmp_path)
    for paths in ((), ("served/one.jsonl",)):
        set_bounds(*paths)
        with pytest.raises(CallerError, match="only with `inspector serve --allow-tools`"):
            tools_of("tools_of_a_tab:sun")
    assert not (tmp_path / "ran").exists()
    set_bounds(tools=True)
    assert [tool.name for tool in tools_of("tools_of_a_tab:sun")[0]] == ["sun"]
    assert (tmp_path / "ran").exists()


def test_nothing_else_is_listed(places: Path, set_bounds: Confine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Transcripts of agents, samples and recent files are names and first words of what is not served."""
    project = places / "claude" / "projects" / "p"
    project.mkdir(parents=True)
    shutil.copy(SAMPLE, project / "mine.jsonl")
    state = places / "state" / "loop-inspector"
    state.mkdir(parents=True)
    recent = [str(places / "secret" / "seven.jsonl"), str(places / "served" / "two.jsonl")]
    (state / "recent.json").write_text(json.dumps(recent))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(places / "claude"))
    monkeypatch.setenv("XDG_STATE_HOME", str(places / "state"))
    environment = {"CLAUDE_CONFIG_DIR": str(places / "claude"), "HOME": str(places)}
    assert [each.path for each in transcripts(environment)] == [str(project / "mine.jsonl")]
    set_bounds("served/one.jsonl")
    assert transcripts({**environment, BOUNDS_VARIABLE: os.environ[BOUNDS_VARIABLE]}) == []
    assert [path for section in found_sections(os.environ) for path in section.paths] == [recent[1]]
