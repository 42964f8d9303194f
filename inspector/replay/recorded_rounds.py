"""Raises limits of a replay to the amounts that the recording used, because the recorded loop evidently allowed them.

Otherwise the default of 10 rounds of tools would end each replay of a turn with 60 rounds at the tenth: its text would
end there, and the end by this limit could be mistaken for the effect of a budget. `max_identical_calls` is raised only
where budgets are varied: a replay shows where this loop stops an agent that repeats itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from inspector.config.settings import REPLAYED, Settings, live_limits
from inspector.replay.case import ASKED_LIVE, Case
from inspector.sessions.recording import Exchange, Link, TurnPlace, TurnRecord
from loop_core.turn.limits import Limits

RecordedLinks = Sequence[tuple[Link, Exchange]]
"""Recorded exchanges of a turn, with their places."""


def _batches(turn: RecordedLinks) -> Iterator[tuple[tuple[str, str | None], ...]]:
    """The calls of each answer that has any, in the form that the machine compares: names and raw text, without ids."""
    for _, exchange in turn:
        if exchange.response.tool_calls:
            yield tuple((call.name, call.arguments) for call in exchange.response.tool_calls)


RECORDED_ROUNDS: Mapping[str, Callable[[RecordedLinks], int]] = {
    "max_tool_steps": lambda turn: sum(bool(exchange.response.tool_calls) for _, exchange in turn),
    "max_identical_calls": lambda turn: max((len(list(same)) for _, same in groupby(_batches(turn))), default=0),
    "max_resumes": lambda turn: sum(link.place is TurnPlace.RESUME for link, _ in turn),
}
"""Name of a limit -> the function that gives the amount that a recorded turn used of the limit."""
_RAISED_IN_REPLAYS = frozenset(("max_tool_steps", "max_resumes"))
_MOST_ROUNDS = 500
"""The largest value to which a replay raises a limit. Each step of a run refers to all messages before it, so the
memory of a run grows with the square of its rounds: 6 MB for 500. Longer turns are replayed in several runs."""


def limits_for(case: Case, record: TurnRecord, settings: Settings) -> Limits:
    """The limits of a turn: the operator's, else those recorded in its session file, else the defaults, raised to the
    rounds of tools and the resumptions that were recorded. Raises `CallerError` if the session file holds a limit that
    does not exist or is out of range."""
    if record.live_run is not None:
        return limits_after(case, record, record.links, settings)
    limits, free = _limits_of_file(case, record, settings)
    if not any(len(record.links) > getattr(limits, name) for name in free):
        return limits  # a short turn, which is not counted
    used = _used(case, record)
    raised = {name: used[name] for name in free if used[name] > getattr(limits, name)}
    return limits.with_values(raised) if raised else limits


def limits_after(case: Case, record: TurnRecord, links: Iterable[Link], settings: Settings) -> Limits:
    """The limits of a live run that continues a turn after these links: the rounds of tools that they used are added to
    the default, because the run begins with them spent."""
    limits, free = _limits_of_file(case, record, settings)
    rounds = RECORDED_ROUNDS["max_tool_steps"](_recorded(case, links)) if "max_tool_steps" in free else 0
    return live_limits(settings, replace(limits, max_tool_steps=limits.max_tool_steps + rounds) if rounds else limits)


def _limits_of_file(case: Case, record: TurnRecord, settings: Settings) -> tuple[Limits, frozenset[str]]:
    """The limits of a turn without its rounds, and the names of those that its rounds may raise."""
    in_file = case.limits_by_path.get(case.opening(record).path, {})
    values = {name: value for name, value in in_file.items() if name not in settings.explicit}
    limits = settings.limits.with_values(values) if values else settings.limits
    free = _RAISED_IN_REPLAYS - settings.explicit - settings.configured - in_file.keys()
    return limits, frozenset(name for name in free if getattr(settings.limits, name) == getattr(REPLAYED, name))


def _used(case: Case, record: TurnRecord) -> Mapping[str, int]:
    # Stored, because the limits are looked up for each step that is shown.
    key = record.links[0].index, len(record.links)
    if key not in case.rounds:
        turn = _recorded(case, record.links)
        case.rounds[key] = {name: min(_MOST_ROUNDS, RECORDED_ROUNDS[name](turn)) for name in _RAISED_IN_REPLAYS}
    return case.rounds[key]


def _recorded(case: Case, links: Iterable[Link]) -> RecordedLinks:
    """The exchanges of these links that were recorded, and not asked for live."""
    return [(link, case.recording.exchanges[link.index]) for link in links if link.why != ASKED_LIVE]


def with_recorded_rounds(case: Case, settings: Settings) -> Settings:
    """The settings with all these limits raised to the most that a recorded turn used, unless operator or file set
    them."""
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
