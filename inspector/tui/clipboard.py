"""Copying (OSC 52), and whether this terminal takes a copy: none says no by itself, but some are known to drop it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from textual.app import App

from inspector import leaving

Environment = Mapping[str, str]

REFUSING: tuple[tuple[Callable[[Environment], bool], str], ...] = (
    (lambda given: given.get("TERM") == "linux", "the Linux console has no clipboard"),
    (lambda given: given.get("TERM_PROGRAM") == "Apple_Terminal", "Terminal.app ignores OSC 52"),
    (lambda given: "STY" in given, "GNU screen does not pass OSC 52 on"),
    (lambda given: 0 < _number(given.get("VTE_VERSION")) < 7600, "VTE ignores OSC 52 before its version 0.76"),
)
"""How a terminal that drops a copy is known, and what to say of it."""


MOST = 1_000_000
"""Characters that are copied at most."""


def copied(app: App[object], text: str) -> str:
    """Copies a text; what to say of it."""
    lost = refused(os.environ)
    if lost is not None:
        return f"not copied: {lost}; x writes it to a file"
    text = leaving.text(text)
    app.copy_to_clipboard(text[:MOST])
    size = f"{len(text):,} characters"
    if len(text) > MOST:
        size = f"the first {MOST:,} of {size}"
    shown = f": {text}" if len(text) <= 60 and "\n" not in text else ""
    place = "browser" if app.is_web else "terminal"
    return f"copied {size}, if the {place} allows it (OSC 52){shown}"


def refused(environment: Environment) -> str | None:
    """Why a copy would be lost here; None where the terminal may take it."""
    return next((why for known, why in REFUSING if known(environment)), None)


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0
