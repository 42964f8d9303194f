"""Takes the terminal's wishes and the user's recent files out of every test."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _plain_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("NO_COLOR", "TEXTUAL_THEME", "COLORFGBG", "COLUMNS", "LINES", "TERM_PROGRAM", "STY", "VTE_VERSION"):
        monkeypatch.delenv(name, raising=False)
    for name in ("LOOP_INSPECTOR_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("CLAUDE_CONFIG_DIR", "PI_CODING_AGENT_DIR", "OPENCLAW_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))  # nobody's own transcripts are read by a test
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("LOOP_INSPECTOR_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("inspector.tui.session_files.state_file", lambda: tmp_path / "state" / "recent.json")


@pytest.fixture
def app_on(tmp_path: Path) -> Callable[..., object]:
    """The app on a file of entries, opened as the command line does it, at the first step."""
    from inspector.tui.app import LoopInspector
    from inspector.tui.session_files import ReadingOptions, ScreenPlace, load
    from tests.scenes.app import story

    def made(entries: list | None = None, **options: object) -> LoopInspector:
        path = str(story(tmp_path, entries))
        options = {"begins": ScreenPlace((path,)), **options}
        return LoopInspector([path], opened_already=load([path], ReadingOptions()), **options)

    return made
