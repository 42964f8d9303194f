"""Tools of a live run from a step of a recording: nothing is run that the operator did not give, nothing is invented.

A call gets the result that was recorded for it in the same turn: the same name, equal arguments, and as often as it
was recorded. Where there is none the turn stops and says so. Callables that were given are run instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inspector.sessions.recording import Exchange
from loop_core.judge.gate import Verdict
from loop_core.turn.limits import bounded
from loop_core.turn.state import Event, NotRecorded, RunTools, ToolsRun, Turn
from loop_core.turn.tools import Toolbox
from loop_core.values import Message, ToolCall, ToolResultPart

Asked = tuple[str, str]
"""A call's name, and its arguments in one spelling."""


@dataclass(frozen=True, slots=True)
class Results:
    """What answers the calls of a live run."""

    recorded: Mapping[Asked, Sequence[ToolResultPart]]
    """The results that were recorded for each call, in order."""
    given: Toolbox | None = None
    """Tools that the operator gave: a call of one of them is run."""
    opened: int = 0
    """Messages that the turn began with: what was answered before them was answered in earlier turns."""

    @property
    def any(self) -> bool:
        """Whether any call could be answered."""
        return bool(self.recorded) or bool(self.given and self.given.tools)

    @property
    def chars(self) -> int:
        """Characters of all recorded results."""
        return sum(len(part.text) for parts in self.recorded.values() for part in parts)

    def run(self, effect: RunTools, turn: Turn) -> Event:
        """A result for every released call, or the end of the turn where one has none."""
        used = _counted(turn.history[self.opened :])
        before = turn.spent.result_chars
        found: list[ToolResultPart] = []
        for verdict in effect.released:
            part = self._one(verdict, used)
            if part is None:
                return NotRecorded(_missing(verdict.call))
            part = bounded(part, turn.limits, before)
            before += len(part.text)
            found.append(part)
        return ToolsRun(effect.whole(found))

    def _one(self, verdict: Verdict, used: dict[Asked, int]) -> ToolResultPart | None:
        call = verdict.call
        if self.given is not None and call.name in self.given.tools:
            return self.given.one(verdict)
        asked = _asked(call)
        parts = self.recorded.get(asked, ())
        number = used.get(asked, 0)
        used[asked] = number + 1
        if number >= len(parts):
            return None
        said = parts[number]
        return ToolResultPart(call.id, call.name, said.text, said.is_error, said.json)


def _missing(call: ToolCall) -> str:
    return (f"The turn stops at a call of {call.name or 'a tool without a name'}: no result is recorded for it with "
            "these arguments, and none is invented.")


def recorded_results(exchanges: Iterable[Exchange], opened: int) -> dict[Asked, list[ToolResultPart]]:
    """The results in the requests of one turn, by their calls; each once, though every later request repeats it.

    `opened` is how many messages the turn began with.
    """
    found: dict[Asked, list[ToolResultPart]] = {}
    for exchange in exchanges:
        if exchange.request is not None:
            one: dict[Asked, list[ToolResultPart]] = {}
            for asked, part in _answers(exchange.request.messages[opened:]):
                one.setdefault(asked, []).append(part)
            for asked, parts in one.items():
                if len(parts) > len(found.get(asked, ())):
                    found[asked] = parts
    return found


def _counted(messages: Sequence[Message]) -> dict[Asked, int]:
    counts: dict[Asked, int] = {}
    for asked, _ in _answers(messages):
        counts[asked] = counts.get(asked, 0) + 1
    return counts


def _answers(messages: Sequence[Message]) -> Iterable[tuple[Asked, ToolResultPart]]:
    """Calls and their results: by their ids, else the next call of that name."""
    waiting: list[ToolCall] = []
    for message in messages:
        for part in message.results:
            call = next((each for each in waiting if each.id is not None and each.id == part.call_id), None)
            if call is None:
                call = next((each for each in waiting if None in (each.id, part.call_id)
                             and part.name in (each.name, None)), None)
            if call is not None:
                waiting.remove(call)
                yield _asked(call), part
        waiting += message.tool_calls


def _asked(call: ToolCall) -> Asked:
    try:
        value: Any = json.loads(call.arguments or "{}")
        return call.name, json.dumps(value, sort_keys=True)
    except ValueError:
        return call.name, call.arguments or ""
