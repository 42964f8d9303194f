"""Whether this terminal takes a copy (OSC 52): none says no by itself, but some are known to drop it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Environment = Mapping[str, str]

REFUSING: tuple[tuple[Callable[[Environment], bool], str], ...] = (
    (lambda given: given.get("TERM") == "linux", "the Linux console has no clipboard"),
    (lambda given: given.get("TERM_PROGRAM") == "Apple_Terminal", "Terminal.app ignores OSC 52"),
    (lambda given: "STY" in given, "GNU screen does not pass OSC 52 on"),
    (lambda given: 0 < _number(given.get("VTE_VERSION")) < 7600, "VTE ignores OSC 52 before its version 0.76"),
)
"""How a terminal that drops a copy is known, and what to say of it."""


def refused(environment: Environment) -> str | None:
    """Why a copy would be lost here; None where the terminal may take it."""
    return next((why for known, why in REFUSING if known(environment)), None)


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0
