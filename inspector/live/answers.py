"""How each call of a batch is answered: run, typed by hand, taken from a recording, or refused.

Only what the gate released can be answered at all. What is not decided is done as it would be headless: from the
recording where one is given, else by the tool itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from inspector.live.recorded import Results
from loop_core.errors import CallerError
from loop_core.gate import Admission, Verdict
from loop_core.history import result
from loop_core.limits import bounded
from loop_core.tools import Toolbox
from loop_core.turn import RunTools, ToolsRun, Turn
from loop_core.values import ToolCall, ToolResultPart


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
