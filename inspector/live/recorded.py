"""Tool results of a recording, to answer live calls with: by name and arguments, else the k-th of that tool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from inspector.recorded import results_in
from inspector.sessions import open_paths
from inspector.sessions.values import Loaded
from loop_core.arguments import parse
from loop_core.errors import CallerError
from loop_core.history import answered
from loop_core.values import ToolCall, ToolResultPart


@dataclass(frozen=True, slots=True)
class Recorded:
    """One call of a recording, and its result."""

    name: str
    arguments: str
    result: ToolResultPart


class Results:
    """What a recording answered, in its order; counts how often each tool was asked for here."""

    def __init__(self, path: str, found: Sequence[Recorded]) -> None:
        self.path = path
        self._found = tuple(found)
        self._asked: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._found)

    def look(self, call: ToolCall, before: Sequence[ToolCall] = ()) -> tuple[ToolResultPart, str] | None:
        """The result for a call, and why it is this one; None where the recording holds none for it.

        The same arguments come first, the k-th time the k-th of them; else the k-th call of that tool. `before` are the
        calls that will have been answered by then.
        """
        place = self._asked[call.name] + sum(each.name == call.name for each in before)
        own = [each for each in self._found if each.name == call.name]
        same = [each for each in own if _value(each.arguments) == _value(call.arguments or "")]
        if same:
            used = self._asked[_key(call)] + sum(_key(each) == _key(call) for each in before)
            return same[min(used, len(same) - 1)].result, "the same arguments"
        if place >= len(own):
            return None
        return own[place].result, f"call {place + 1} of {call.name}, with other arguments"

    def took(self, call: ToolCall) -> None:
        """The call was answered, from here or elsewhere: the next one of its tool is another."""
        self._asked[call.name] += 1
        self._asked[_key(call)] += 1


def results_of(path: str) -> Results:
    """The tool results of a recording, in any form that is read.

    Raises:
        CallerError: it cannot be read, or holds no tool result.
    """
    loaded = open_paths([path])
    wrong = next((given.error for given in loaded.inputs if given.error), None)
    if wrong is not None:
        raise CallerError(f"--results {wrong}")
    found = list(_found(loaded))
    if not found:
        raise CallerError(f"--results {path}: the recording holds no tool result")
    return Results(path, found)


def _found(loaded: Loaded) -> Iterator[Recorded]:
    """Every call with its result: recorded by itself, else carried by the request that followed."""
    alone: dict[tuple[str, int | None], list[ToolResultPart]] = {}
    for given in loaded.inputs:
        for each in given.answers:
            alone.setdefault((given.path, each.entry), []).append(each.result)
    after = {link.parent: link.index for turn in loaded.turns for link in turn.links if link.parent is not None}
    for index, exchange in enumerate(loaded.exchanges):
        calls = exchange.response.tool_calls
        results: Sequence[ToolResultPart] = alone.get((exchange.path, exchange.entry), ())
        if not results and index in after:
            results = results_in(loaded.exchanges[after[index]])
        if calls and results:
            for call, result in zip(calls, answered(calls, results), strict=True):
                if result in results:  # else nothing came for this call
                    yield Recorded(call.name, call.arguments or "", result)


def _value(arguments: str) -> object:
    reading = parse(arguments)
    return arguments if reading.value is None else reading.value


def _key(call: ToolCall) -> str:
    return f"{call.name}\0{call.arguments}"
