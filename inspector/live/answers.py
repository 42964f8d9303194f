"""How each call of a batch is answered: run, typed by hand, taken from a recording, or refused.

Only what the gate released can be answered at all. What is not decided is done as it would be headless: from the
recording where one is given, else by the tool itself.

Further down: tool results of a recording, to answer live calls with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from inspector.replay.case import results_in
from inspector.sessions import open_paths
from inspector.sessions.recording import Loaded
from loop_core.errors import CallerError
from loop_core.judge.arguments import parse
from loop_core.judge.gate import Admission, Verdict
from loop_core.turn.history import answered, result
from loop_core.turn.limits import bounded
from loop_core.turn.state import RunTools, ToolsRun, Turn
from loop_core.turn.tools import Toolbox
from loop_core.values import ToolCall, ToolResultPart

# -- Tool results of a recording, to answer live calls with ----------------------------------------------------------
# By name and arguments, else the k-th of that tool.


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


class How(StrEnum):
    """Where a result comes from."""

    RUN = "run"
    """The Python callable, or the `result` beside the declaration."""
    TYPED = "typed"
    RECORDED = "recorded"
    REFUSED = "refused"


REFUSAL = "Not run: the operator refused this call."
ABOUT: Mapping[How, str] = {
    How.RUN: "run by its callable",
    How.TYPED: "typed by the operator",
    How.RECORDED: "taken from a recording",
    How.REFUSED: "refused by the operator",
}


@dataclass(frozen=True, slots=True)
class Decision:
    """How one call is answered."""

    how: How
    text: str = ""
    """The result, where it is typed."""
    is_error: bool = False


@dataclass(slots=True)
class Answers:
    """The tools of a live turn and what was decided of the calls that wait; runs a batch as `Toolbox` does."""

    toolbox: Toolbox = field(default_factory=Toolbox)
    results: Results | None = None
    decided: dict[int, Decision] = field(default_factory=dict)
    """By the place of the call in its batch."""
    done: list[tuple[Verdict, str]] = field(default_factory=list)
    """The calls of the last batch, each with where its result came from."""

    def run(self, effect: RunTools, turn: Turn) -> ToolsRun:
        """Answers the batch in order; every call gets a result."""
        made: list[ToolResultPart] = []
        self.done = []
        used = turn.spent.result_chars + sum(len(answer.result.text) for answer in effect.answers)
        for place, verdict in enumerate(effect.batch):
            whence = "not run"
            if verdict.admission is Admission.READY:
                decision = self.decided.get(place) or self._by_itself(verdict, ())
                part, whence = self._one(decision, verdict)
                made.append(bounded(part, turn.limits, used))
                used += len(made[-1].text)
            if self.results is not None:
                self.results.took(verdict.call)
            self.done.append((verdict, whence))
        self.decided = {}
        return ToolsRun(effect.whole(made))

    def ways(self, effect: RunTools, place: int) -> tuple[How, ...]:
        """How a call can be answered, what would be done by itself first; none where the gate did not release it."""
        return self._ways(effect.batch[place], [verdict.call for verdict in effect.batch[:place]])

    def planned(self, effect: RunTools, place: int) -> Decision | None:
        """What will be done with a call as things stand; None where nothing answers it by itself."""
        before = [verdict.call for verdict in effect.batch[:place]]
        return self.decided.get(place) or self._by_itself(effect.batch[place], before)

    def recorded(self, effect: RunTools, place: int) -> tuple[ToolResultPart, str] | None:
        """What the recording holds for a call, and why it is this."""
        before = [verdict.call for verdict in effect.batch[:place]]
        return None if self.results is None else self.results.look(effect.batch[place].call, before)

    def decide(self, effect: RunTools, place: int, decision: Decision) -> None:
        """Settles how a call is answered.

        Raises:
            CallerError: the gate did not release it, or it cannot be answered so.
        """
        verdict, ways = effect.batch[place], self.ways(effect, place)
        name = verdict.call.name or "the call"
        if not ways:
            raise CallerError(f"{name} is {verdict.admission.value}: {verdict.why}")
        if decision.how not in ways:
            raise CallerError(f"{name}: there is nothing that it could be {decision.how.value} by")
        self.decided[place] = decision

    def _ways(self, verdict: Verdict, before: Sequence[ToolCall]) -> tuple[How, ...]:
        if verdict.admission is not Admission.READY:
            return ()
        known = self.results is not None and self.results.look(verdict.call, before) is not None
        runs = verdict.call.name in self.toolbox.tools
        return (*((How.RECORDED,) if known else ()), *((How.RUN,) if runs else ()), How.TYPED, How.REFUSED)

    def _by_itself(self, verdict: Verdict, before: Sequence[ToolCall]) -> Decision | None:
        first = next(iter(self._ways(verdict, before)), None)
        return Decision(first) if first in (How.RUN, How.RECORDED) else None

    def _one(self, decision: Decision | None, verdict: Verdict) -> tuple[ToolResultPart, str]:
        call = verdict.call
        if decision is None or decision.how is How.RUN:  # where there is no such tool, the toolbox says so
            return self.toolbox.one(verdict), "not run" if decision is None else ABOUT[How.RUN]
        if decision.how is How.REFUSED:
            return result(call, REFUSAL, is_error=True), ABOUT[How.REFUSED]
        text, is_error, whence = decision.text, decision.is_error, ABOUT[decision.how]
        found = self.results.look(call) if decision.how is How.RECORDED and self.results is not None else None
        if found is not None:
            text, is_error, whence = found[0].text, found[0].is_error, f"{whence}: {found[1]}"
        return result(call, text, is_error=is_error), whence
