"""Advice: what to change about a turn, and how that is known.

A value only. `basis` says whether a setting was tried, and on what; a number stands in an advice only where a run with
exactly that setting completed the turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from loop_core.frozen import frozen


class Basis(StrEnum):
    """How an advice is known."""

    RECORDED = "recorded"
    """The settings complete the turn when it is replayed over its recording."""
    SIMULATED = "simulated"
    """The settings complete the turn when the recorded output is cut again at other places."""
    ESTIMATED = "estimated"
    """Nothing was tried: a guess, with its reason in the text."""


@frozen
class Advice:
    """What to change about a turn."""

    text: str
    basis: Basis = Basis.ESTIMATED
    set: Mapping[str, str] | None = None
    """The settings of the run that was tried, as `--set` takes them; None where nothing was tried."""
