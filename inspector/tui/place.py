"""Where somebody is in the app, as a value that outlives the process: what is open, and which step and tab are seen."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from loop_core.frozen import frozen

VARIABLE = "LOOP_INSPECTOR_PLACE"


@frozen
class Where:
    """A place in the original run of a session."""

    paths: tuple[str, ...]
    step: int = 0
    tab: str = ""

    def as_json(self) -> dict[str, object]:
        """As it is said to the server of a tab."""
        return {"paths": list(self.paths), "step": self.step, "tab": self.tab}


def where(value: Any) -> Where | None:
    """What was said, if it is a place."""
    if not isinstance(value, Mapping):
        return None
    paths, step, tab = value.get("paths"), value.get("step"), value.get("tab")
    if not isinstance(paths, list) or not paths or not all(isinstance(path, str) for path in paths):
        return None
    if type(step) is not int or step < 0 or not isinstance(tab, str):
        return None
    return Where(tuple(paths), step, tab)


def remembered(environment: Mapping[str, str]) -> Where | None:
    """The place that the app is to begin at; None where there is none, or what was open is gone."""
    try:
        found = where(json.loads(environment.get(VARIABLE, "null")))
    except ValueError:
        return None
    return found if found is not None and all(os.path.exists(path) for path in found.paths) else None
