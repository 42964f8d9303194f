"""Chooses the source of each call's result in a live turn: a recording, a tool, or the operator.

`TurnResults` answers the calls of a recorded turn that is run live again: each call gets a result that was recorded in
the same turn for equal arguments, each result once. If there is none, the turn stops and says so. `Answers` holds the
operator's decision about each call. A call without a decision gets its result from the recording, if one was given
(`RecordedResults`); otherwise its tool runs. Only released calls can be answered.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from inspector.sessions import open_paths
from inspector.sessions.places import results_in
from inspector.sessions.recording import Exchange, Recording, late_answers
from loop_core.errors import CallerError
from loop_core.judge.gate import Admission, Verdict
from loop_core.turn.history import results_for, tool_result
from loop_core.turn.limits import bound_result
from loop_core.turn.state import Event, NotRecorded, RunTools, ToolResults, Turn
from loop_core.turn.tools import Toolbox
from loop_core.values import Message, ToolCall, ToolResultPart

CallKey = tuple[str, str]
"""The name of a call, and its arguments in a normalized spelling, by which equal calls are recognised."""


@dataclass(frozen=True, slots=True)
class TurnResults:
    """The results for the calls of a live run."""

    results: Mapping[CallKey, Sequence[ToolResultPart]]
    toolbox: Toolbox | None = None
    """The operator's tools, which are run for their calls; None: there are none."""
    first_messages: int = 0
    """The number of messages with which the turn began. Calls answered in them belong to earlier turns."""

    @property
    def has_any(self) -> bool:
        """Whether any call could be answered."""
        return bool(self.results) or bool(self.toolbox and self.toolbox.tools)

    @property
    def chars(self) -> int:
        """The number of characters of all recorded results."""
        return sum(len(part.text) for parts in self.results.values() for part in parts)

    def run(self, effect: RunTools, turn: Turn) -> Event:
        """A result for every released call; ends the turn if a call has none."""
        # The history shows how often each call was already answered, so the source needs no state.
        used = Counter(key for key, _ in _answers(turn.history[self.first_messages :]))
        before = effect.chars_before(turn.spend)
        found: list[ToolResultPart] = []
        for verdict in effect.released:
            part = self._answer_call(verdict, used)
            if part is None:
                return NotRecorded(
                    f"The turn stops at a call of {verdict.call.name or 'a tool without a name'}: no result is "
                    "recorded for it with these arguments, and none is invented.")
            part = bound_result(part, turn.limits, before)
            before += len(part.text)
            found.append(part)
        return ToolResults(effect.all_results(found))

    def _answer_call(self, verdict: Verdict, uses: Counter[CallKey]) -> ToolResultPart | None:
        call = verdict.call
        if self.toolbox is not None and call.name in self.toolbox.tools:
            return self.toolbox.run_call(verdict)
        key = _call_key(call)
        parts = self.results.get(key, ())
        number = uses[key]
        uses[key] += 1
        if number >= len(parts):  # repeated more often than recorded; no result is invented
            return None
        part = parts[number]
        return ToolResultPart(call.id, call.name, part.text, part.is_error, part.json)


def recorded_results(exchanges: Iterable[Exchange], message_count: int) -> dict[CallKey, list[ToolResultPart]]:
    """The results in the requests of one turn, which began with `message_count` messages, by call; each once."""
    found: dict[CallKey, list[ToolResultPart]] = {}
    for exchange in exchanges:
        if exchange.request is not None:
            one: dict[CallKey, list[ToolResultPart]] = {}
            for key, part in _answers(exchange.request.messages[message_count:]):
                one.setdefault(key, []).append(part)
            # Each request repeats the results of the turn so far, so the request with the most of them has all.
            for key, parts in one.items():
                if len(parts) > len(found.get(key, ())):
                    found[key] = parts
    return found


def _answers(messages: Sequence[Message]) -> Iterable[tuple[CallKey, ToolResultPart]]:
    """Calls and their results, matched by their ids, else by the next call of the same name."""
    waiting: list[ToolCall] = []
    for message in messages:
        for part in message.results:
            call = next((each for each in waiting if each.id is not None and each.id == part.call_id), None)
            if call is None:
                # Gemini's and Ollama's calls may have no id; they are matched by name, in order.
                call = next((each for each in waiting if None in (each.id, part.call_id)
                             and part.name in (each.name, None)), None)
            if call is not None:
                waiting.remove(call)
                yield _call_key(call), part
        waiting += message.tool_calls


def _call_key(call: ToolCall) -> CallKey:
    try:
        value: Any = json.loads(call.arguments or "{}")  # a call without arguments: some servers send an empty text
        # Models spell the same arguments with other white space and another order of keys.
        return call.name, json.dumps(value, sort_keys=True)
    except (ValueError, RecursionError):  # no JSON, or nested too deeply
        return call.name, call.arguments or ""


# -- Results of any recording, by name and arguments, else the k-th of that tool -------------------------------------


class RecordedResults:
    """The results of a recording, in order; counts the requests for each tool."""

    def __init__(self, calls: Sequence[tuple[ToolCall, ToolResultPart]]) -> None:
        self._calls_with_results = tuple(calls)
        self._used: Counter[str | CallKey] = Counter()
        """The number of answered calls of each tool, and of each call with its arguments."""

    def __len__(self) -> int:
        return len(self._calls_with_results)

    def result_for(self, call: ToolCall, before: Sequence[ToolCall] = ()) -> tuple[ToolResultPart, str] | None:
        """The k-th recorded result for the call's arguments, else the result of the tool's k-th recorded call, and the
        reason for the choice; None if the recording has neither. The calls `before` count as answered."""
        key, place = _call_key(call), self._used[call.name] + sum(each.name == call.name for each in before)
        own = [(each, result) for each, result in self._calls_with_results if each.name == call.name]
        same = [result for each, result in own if _call_key(each) == key]
        if same:
            used = self._used[key] + sum(_call_key(each) == key for each in before)
            # A call that is repeated more often than recorded gets the last result again: the arguments are the same.
            return same[min(used, len(same) - 1)], "the same arguments"
        if place >= len(own):
            return None
        return own[place][1], f"call {place + 1} of {call.name}, with other arguments"

    def count_use(self, call: ToolCall) -> None:
        """Counts an answered call, so that the tool's next call gets the next result."""
        self._used[call.name] += 1
        self._used[_call_key(call)] += 1


def results_of(path: str) -> RecordedResults:
    """The tool results in a recording of any readable format. Raises `CallerError` if it is unreadable or has none."""
    loaded = open_paths([path])
    wrong = next((source.error for source in loaded.inputs if source.error), None)
    if wrong is not None:
        raise CallerError(f"--results {wrong}")
    found = list(_calls_with_results(loaded))
    if not found:
        raise CallerError(f"--results {path}: the recording holds no tool result")
    return RecordedResults(found)


def _calls_with_results(recording: Recording) -> Iterator[tuple[ToolCall, ToolResultPart]]:
    """Every call with its result, from a record of its own, else from the next request."""
    alone = late_answers(recording.inputs)  # native sessions have a record for each result
    # in other formats only the next request has them
    after = {link.parent: link.index for turn in recording.turns for link in turn.links if link.parent is not None}
    for index, exchange in enumerate(recording.exchanges):
        calls = exchange.response.tool_calls
        results: Sequence[ToolResultPart] = [each.result for each in alone.get((exchange.path, exchange.entry), ())]
        if not results and index in after:
            results = results_in(recording.exchanges[after[index]], calls)
        if calls and results:
            for call, result in zip(calls, results_for(calls, results), strict=True):
                if result in results:  # otherwise this call has no result
                    yield call, result


# -- The operator's decisions ----------------------------------------------------------------------------------------


class Source(StrEnum):
    """The source of a result."""

    RUN = "run"
    """The result comes from the tool's Python callable, or from the `result` beside its declaration."""
    TYPED = "typed"
    RECORDED = "recorded"
    REFUSED = "refused"


REFUSAL = "Not run: the operator refused this call."
SOURCE_WORDS: Mapping[Source, str] = {
    Source.RUN: "run by its callable",
    Source.TYPED: "typed by the operator",
    Source.RECORDED: "taken from a recording",
    Source.REFUSED: "refused by the operator",
}


@dataclass(frozen=True, slots=True)
class CallDecision:
    """The operator's decision about how one call is answered."""

    how: Source
    text: str = ""
    """The result, if the operator types it."""
    is_error: bool = False


@dataclass(slots=True)
class Answers:
    """The tools of a live turn, and the decisions about the calls that wait; runs a batch like `Toolbox`."""

    toolbox: Toolbox = field(default_factory=Toolbox)
    results: RecordedResults | None = None
    decisions: dict[int, CallDecision] = field(default_factory=dict)
    """Index of a call in its batch -> the operator's decision."""
    last_batch: list[tuple[Verdict, str]] = field(default_factory=list)
    """The calls of the last batch, each with the source of its result in words."""

    def run(self, effect: RunTools, turn: Turn) -> ToolResults:
        """Answers the batch in order; every call gets a result."""
        parts: list[ToolResultPart] = []
        self.last_batch = []
        used = effect.chars_before(turn.spend)
        for place, verdict in enumerate(effect.batch):
            whence = "not run"
            if verdict.admission is Admission.READY:
                decision = self.decisions.get(place) or self._default_decision(verdict, ())
                part, whence = self._answer_call(decision, verdict)
                parts.append(bound_result(part, turn.limits, used))
                used += len(parts[-1].text)
            # Counted for held calls too, because the model requested them, and the recording counts them.
            if self.results is not None:
                self.results.count_use(verdict.call)
            self.last_batch.append((verdict, whence))
        self.decisions = {}
        return ToolResults(effect.all_results(parts))

    def ways(self, effect: RunTools, place: int) -> tuple[Source, ...]:
        """The possible sources of a call's result, the default first; none if the gate did not release the call."""
        return self._ways(effect.batch[place], [verdict.call for verdict in effect.batch[:place]])

    def plan(self, effect: RunTools, place: int) -> CallDecision | None:
        """The source that will be used for a call unless the operator changes it; None: the operator has to decide."""
        before = [verdict.call for verdict in effect.batch[:place]]
        return self.decisions.get(place) or self._default_decision(effect.batch[place], before)

    def recorded_result(self, effect: RunTools, place: int) -> tuple[ToolResultPart, str] | None:
        """The recorded result for a call, and the reason for the choice."""
        before = [verdict.call for verdict in effect.batch[:place]]
        return None if self.results is None else self.results.result_for(effect.batch[place].call, before)

    def decide(self, effect: RunTools, place: int, decision: CallDecision) -> None:
        """Sets how a call is answered. Raises `CallerError` if the gate did not release it, or it cannot be answered in
        this way."""
        verdict, ways = effect.batch[place], self.ways(effect, place)
        name = verdict.call.name or "the call"
        if not ways:
            raise CallerError(f"{name} is {verdict.admission.value}: {verdict.why}")
        if decision.how not in ways:
            raise CallerError(f"{name} cannot be {SOURCE_WORDS[decision.how]}: choose another answer")
        self.decisions[place] = decision

    def _ways(self, verdict: Verdict, before: Sequence[ToolCall]) -> tuple[Source, ...]:
        if verdict.admission is not Admission.READY:
            return ()
        is_recorded = self.results is not None and self.results.result_for(verdict.call, before) is not None
        runs = verdict.call.name in self.toolbox.tools
        return (*((Source.RECORDED,) if is_recorded else ()), *((Source.RUN,) if runs else ()), Source.TYPED,
                Source.REFUSED)

    def _default_decision(self, verdict: Verdict, before: Sequence[ToolCall]) -> CallDecision | None:
        first = next(iter(self._ways(verdict, before)), None)
        return CallDecision(first) if first in (Source.RUN, Source.RECORDED) else None

    def _answer_call(self, decision: CallDecision | None, verdict: Verdict) -> tuple[ToolResultPart, str]:
        call = verdict.call
        if decision is None or decision.how is Source.RUN:  # the toolbox reports an unknown tool
            return self.toolbox.run_call(verdict), "not run" if decision is None else SOURCE_WORDS[Source.RUN]
        if decision.how is Source.REFUSED:
            return tool_result(call, REFUSAL, is_error=True), SOURCE_WORDS[Source.REFUSED]
        text, is_error, whence = decision.text, decision.is_error, SOURCE_WORDS[decision.how]
        found = self.results.result_for(call) if decision.how is Source.RECORDED and self.results is not None else None
        if found is not None:
            text, is_error, whence = found[0].text, found[0].is_error, f"{whence}: {found[1]}"
        return tool_result(call, text, is_error=is_error), whence
