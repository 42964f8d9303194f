"""The place that a new process begins at: what is a place, and what is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inspector.config.files import PLACE_VARIABLE
from inspector.tui.session_files import ScreenPlace, place_from, place_of


def test_a_place_is_read_as_it_was_said() -> None:
    found = ScreenPlace(("a.har", "b.har"), 7, "wire")
    assert place_of(json.loads(json.dumps(found.as_json()))) == found


@pytest.mark.parametrize("value", [
    None, 1, "x", [], {}, {"paths": [], "step": 0, "tab": ""}, {"paths": "a", "step": 0, "tab": ""},
    {"paths": [1], "step": 0, "tab": ""}, {"paths": ["a"], "step": -1, "tab": ""},
    {"paths": ["a"], "step": True, "tab": ""}, {"paths": ["a"], "step": "1", "tab": ""},
    {"paths": ["a"], "step": 0, "tab": None},
])
def test_what_is_no_place_is_none(value: Any) -> None:
    assert place_of(value) is None
    assert place_from({PLACE_VARIABLE: json.dumps(value)}) is None


def test_only_what_is_still_there_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "a.har"
    given = {PLACE_VARIABLE: json.dumps(ScreenPlace((str(path),), 2, "wire").as_json())}
    assert place_from(given) is None
    path.write_text("")
    assert place_from(given) == ScreenPlace((str(path),), 2, "wire")
    assert place_from({}) is None
    assert place_from({PLACE_VARIABLE: "{"}) is None
