"""Raises limits that a grid does not vary to the amounts that its recording used, because the recorded loop evidently
allowed them.

Otherwise the end by such a limit could be mistaken for the effect of a budget: under the default of 10 rounds of tools,
a turn recorded with 13 rounds would stop at the tenth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from inspector.config.settings import REPLAYED, Settings
from inspector.replay.case import Case
from inspector.sessions.recording import Exchange, Link, TurnPlace

CallBatches = Sequence[tuple[Link, Exchange]]


def _batches(turn: CallBatches) -> Iterator[tuple[tuple[str, str | None], ...]]:
    """The calls of each answer that has any, in the form that the machine compares: names and raw text, without ids."""
    for _, exchange in turn:
        if exchange.response.tool_calls:
            yield tuple((call.name, call.arguments) for call in exchange.response.tool_calls)


RECORDED_ROUNDS: Mapping[str, Callable[[CallBatches], int]] = {
    "max_tool_steps": lambda turn: sum(1 for _ in _batches(turn)),
    "max_identical_calls": lambda turn: max((len(list(same)) for _, same in groupby(_batches(turn))), default=0),
    "max_resumes": lambda turn: sum(link.place is TurnPlace.RESUME for link, _ in turn),
}
"""Name of a limit -> the function that gives the amount that a recorded turn used of the limit."""


def with_recorded_rounds(case: Case, settings: Settings) -> Settings:
    """The settings with these limits raised to the most that a recorded turn used, unless operator or file set them."""
    free = [name for name in RECORDED_ROUNDS if name not in settings.explicit | settings.configured]
    used = dict.fromkeys(free, 0)
    for record in case.recording.turns:
        turn = [(link, case.recording.exchanges[link.index]) for link in record.links]
        for name in free:
            if name not in case.limits_by_path.get(turn[0][1].path, {}):
                used[name] = max(used[name], RECORDED_ROUNDS[name](turn))
    raised = {name: most for name, most in used.items() if most > getattr(settings.limits, name)}
    return replace(settings, limits=settings.limits.with_values(raised)) if raised else settings


def raised_limits(settings: Settings) -> dict[str, int]:
    """The limits that `with_recorded_rounds` raised, with their values."""
    return {name: value for name in RECORDED_ROUNDS
            if (value := getattr(settings.limits, name)) > getattr(REPLAYED, name)
            and name not in settings.explicit | settings.configured}
