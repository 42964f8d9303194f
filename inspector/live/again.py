"""A recorded request asked live again, as a branch: what would be sent, where, for how much, and what was heard.

`wanted` looks and sends nothing. `ask` and `aask` send: each request and every byte of its answers is in a session file
of its own before the machine sees it, so that the branch can be made again without asking.

Further down: what is said before a request is asked live.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from dataclasses import replace as changed
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector.config.files import private_folder
from inspector.config.settings import Settings, live_limits, name_of
from inspector.live.answers import TurnResults, recorded_results
from inspector.live.headless import refuse_secrets
from inspector.live.recorder import Recorder, exchange_of
from inspector.live.target import Cost, Target, cost_of, estimate, grafted, left_of, target_of
from inspector.replay.case import LIVE, Heard
from inspector.replay.replay import Replay, plan_of
from inspector.replay.rerun import BranchStart, cap_of, start_of
from inspector.replay.rerun import case_since as case_from
from inspector.report.lines.spans import one_line
from inspector.sessions import redact
from inspector.sessions.native import BY_US
from inspector.sessions.recording import Exchange
from loop_core.client.exchange import LiveResponse as Answer
from loop_core.client.outgoing import LiveRequest, ability, body_of, outgoing
from loop_core.errors import CallerError, DecodeError, LoopError
from loop_core.turn.history import Ability
from loop_core.turn.loop import asteps_from, steps_from
from loop_core.turn.state import Cancel, Event, NotRecorded, Send, Tick
from loop_core.turn.tools import Toolbox
from loop_core.turn.trace import Step, next_step
from loop_core.values import ToolResultPart, TransportEnd
from loop_core.wire import deltas, wire

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loop_core.client.exchange import Connection

FOLDER = "live"
"""Within the data folder."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Wanted:
    """What would be asked."""

    settings: Settings
    since: int
    """The step from which on the answers are live, by its index."""
    turn: int
    """The turn, by its index."""
    target: Target
    cost: Cost
    counted: bool
    """Whether the input of the first request was counted when it was recorded; else it is estimated."""
    results: TurnResults
    first: Step
    """The step that the run goes on from."""
    ability: Ability
    spelled: Callable[[LiveRequest], LiveRequest]
    cap: int | None
    """The output cap of the first request."""
    under: str
    """What is set otherwise than in the run that it is asked from; `unchanged` where nothing is."""


def wanted(
    parent: Replay, settings: Settings, since: int, environment: Mapping[str, str], *, base: str = "",
    model: str | None = None, variable: str | None = None, given: Toolbox | None = None,
    insecure_http: Sequence[str] = (),
) -> Wanted:
    """What asking the turn at a step live again, from this step on, would send; nothing is sent.

    Raises:
        LoopError: it cannot be asked again; the text says why.
    """
    start = start_of(parent, since)
    opening = parent.case.loaded.exchanges[start.opening.index]
    target = target_of(opening, environment, base=base, model=model, variable=variable,
                       insecure_http=insecure_http)
    can = ability(target.profile, opening.api)
    first = _first(parent, settings, since, start, target, can)
    ahead = _ahead(first)
    if ahead.turn.ended:
        raise CallerError(f"step {since + 1}: nothing would be asked: the turn ends first ({ahead.turn.terminal})")
    send = next((effect for effect in ahead.effects if isinstance(effect, Send)), None)
    spelled = _spelling(opening, target)
    request = outgoing(ahead.turn, send) if send is not None else ahead.turn.request
    body = body_of(request, target.profile)  # what cannot be sent is told before anything is
    refuse_secrets(body, target.server)
    of_turn = [parent.case.loaded.exchanges[link.index] for link in (*start.turn.record.links, *start.turn.record.left)]
    opened = len(opening.request.messages) if opening.request else 0
    results = TurnResults(recorded_results(of_turn, opened), given, opened)
    left = left_of(first.turn, any(isinstance(each, Send) for each in first.effects), results.any)
    counted = _counted(parent, start, target, model, base)
    tokens = counted if counted is not None else estimate(len(json.dumps(body, ensure_ascii=False)))
    limits = first.turn.limits
    said = limits.context_guard_chars if given is not None and given.tools else min(
        results.chars, limits.context_guard_chars)
    return Wanted(
        settings, since, parent.turn_at(since), target, cost_of(left, tokens, estimate(said)), counted is not None,
        results, first, can, spelled, left.cap, name_of(parent.settings, settings),
    )


def _ahead(step: Step) -> Step:
    """The step at which a request leaves, or tools are wanted, or the turn ends: nobody is needed up to there."""
    while not step.effects and not step.turn.ended:
        step = next_step(step, Tick())
    return step


def _first(parent: Replay, settings: Settings, since: int, start: BranchStart, target: Target, can: Ability) -> Step:
    case = case_from(parent, settings.profile, since)
    request, plan = plan_of(case, start.turn.record, start.opening, settings, start.number, live=True)
    provider = plan.provider if start.kept and start.opening.why != LIVE else target.profile.name
    plan = changed(plan, limits=live_limits(settings, plan.limits), ability=can, provider=provider)
    return start.step(changed(request, model=target.model), plan, cap_of(parent, settings))


def _spelling(opening: Exchange, target: Target) -> Callable[[LiveRequest], LiveRequest]:
    """Requests as the recorded one was spelled, but for what is altered."""
    recorded = opening.request_json
    assert opening.request is not None  # noqa: S101 - `target_of` refuses such a one
    assert isinstance(recorded, Mapping)  # noqa: S101 - as before
    before = body_of(opening.request, target.profile)

    def spelled(ask: LiveRequest) -> LiveRequest:
        return ask if ask.body is None else replace(ask, body=grafted(recorded, before, ask.body))

    return spelled


def _counted(parent: Replay, start: BranchStart, target: Target, model: str | None, base: str) -> int | None:
    """The input tokens that the provider counted for the request that is asked again."""
    if start.kept or model or base:
        return None  # another request than the recorded one, or another tokenizer
    usage = parent.case.loaded.exchanges[start.opening.index].response.usage
    if usage is None or usage.input_tokens is None:
        return None
    beside = wire(target.server.api).cached_apart
    return usage.input_tokens + ((usage.cached_tokens or 0) if beside else 0)


# -- asking ----------------------------------------------------------------------------------------------------------


def new_name() -> str:
    """The name of a live run that begins now."""
    return f"{datetime.now():%Y%m%d-%H%M%S-%f}"


def file_of(folder: Path, name: str) -> Path:
    """Where in the data folder a live run is recorded."""
    return folder / FOLDER / f"{name}.jsonl"


class Listening(Recorder):
    """Records a live run, and keeps what it hears."""

    def __init__(self, path: Path, wanted: Wanted) -> None:
        with suppress(OSError):  # it is told where the file cannot be begun
            private_folder(path.parent)
        super().__init__(path, title=f"{wanted.target.model or wanted.target.host}, asked live again",
                         provenance=f"asked {BY_US}, from a step of a recording")
        self.answers: list[Answer] = []
        self.again: set[int] = set()
        self.results: tuple[ToolResultPart, ...] | None = None
        self.last: Step | None = None
        self.problem = ""
        self._api, self._body = wanted.target.server.api, bytearray()
        self._asked = 0

    def on_request(self, ask: LiveRequest) -> None:
        """A request is about to leave."""
        self._body.clear()
        self._asked, self.results = ask.number + 1, None
        super().on_request(ask)

    def on_data(self, number: int, data: bytes, ms: float) -> None:
        """A piece of an answer."""
        self._body += data
        super().on_data(number, data, ms)

    def on_end(self, heard: Answer) -> None:
        """An answer is over."""
        self.answers.append(heard)
        super().on_end(heard)

    def on_wait(self, number: int, seconds: float) -> None:
        """It is sent again."""
        self.again.add(number)
        super().on_wait(number, seconds)

    def on_tools(self, number: int, results: Sequence[ToolResultPart]) -> None:
        """Calls were answered."""
        self.results = tuple(results)
        super().on_tools(number, results)

    def on_interrupt(self, number: int, *, answered: bool) -> None:
        """Nothing yet: `conclude` writes how the run ended."""

    def progress(self) -> tuple[int, int]:
        """Requests that have left, and characters of text that have come in all."""
        done = sum(len(each.response.text or "") for each in self.answers)
        if self._asked > len(self.answers) and self._body:
            with suppress(DecodeError):  # too little of it may be there
                done += sum(map(len, deltas(self._api, bytes(self._body)).text))
        return self._asked, done

    def conclude(self) -> None:
        """Writes how the run ended."""
        turn = None if self.last is None else self.last.turn
        end = "cancelled" if turn is None or (not turn.ended and not self.problem) else turn.terminal or "unrecorded"
        told = self.problem or (turn.notice if turn is not None and end == "unrecorded" else "")
        if told:
            self.note(told)
        self.ended_as(end)
        self._end, self._told = end, told or ""

    def heard(self, name: str, wanted: Wanted) -> Heard:
        """What was heard, once the run is over.

        Raises:
            CallerError: nothing was asked; there is no recording then.
        """
        if not self.answers:
            Path(self.path).unlink(missing_ok=True)
            why = "it was given up first" if self._end == "cancelled" else f"the turn ends first ({self._end})"
            raise CallerError(f"nothing was asked: {self._told or why}")
        exchanges = tuple(exchange_of(each, self.path) for each in self.answers)
        places = tuple((each.ask.place, each.ask.ordinal) for each in self.answers)
        silent = silent_of(exchanges, self.again, self._end)
        return Heard(name, exchanges, places, self.results, silent, after_of(self._end, self._told), wanted.ability,
                     wanted.target.profile.name)


def silent_of(exchanges: Sequence[Exchange], again: set[int], end: str) -> frozenset[int]:
    """The exchanges that are no answers: sent again, or given up as the run was cancelled or killed."""
    last = len(exchanges) - 1
    broken = (TransportEnd.ABORTED, TransportEnd.CUT)
    given_up = end in ("cancelled", "") and last >= 0 and exchanges[last].response.transport_end in broken
    return frozenset({*again, *([last] if given_up else [])})


def after_of(end: str, told: str) -> Event:
    """What follows the last answer, by the end state that was recorded; empty: the recording was cut."""
    if end == "cancelled":
        return Cancel(live=True)
    if end == "unrecorded":
        return NotRecorded(told)
    if not end:
        return NotRecorded("The recording of this live run is cut: what came then is not known.")
    return NotRecorded("What this loop asks for next was never asked live.")


@contextmanager
def _listening(wanted: Wanted, path: Path) -> Iterator[Listening]:
    listening = Listening(path, wanted)
    try:
        listening.settings(wanted.settings)
        yield listening
    except LoopError as why:
        listening.problem = f"The next request cannot be sent: {why}"
    finally:
        listening.conclude()
        listening.close()


def ask(wanted: Wanted, name: str, folder: Path, line: Connection | None = None) -> tuple[Heard, str | None]:
    """Asks, to the end of the turn; what was heard, and why the recording stopped where it did.

    Raises:
        CallerError: the recording cannot be begun, or the turn ends before anything is asked.
    """
    from loop_core.client.transport import Live

    with ExitStack() as stack:
        listening = stack.enter_context(_listening(wanted, file_of(folder, name)))
        source = stack.enter_context(Live(
            wanted.target.server, listening, wanted.results, line, redact.body, wanted.spelled))
        with suppress(KeyboardInterrupt):  # the run ends as cancelled
            for step in steps_from(wanted.first, source):
                listening.last = step
    return listening.heard(name, wanted), listening.failure


class Asking:
    """The same on an event loop: it can be cancelled, and tells how far it is."""

    def __init__(self, wanted: Wanted, name: str, folder: Path, line: Connection | None = None) -> None:
        self.wanted, self.name = wanted, name
        self._folder, self._line = folder, line
        self._source: Any = None
        self._cancelled = False
        self._listening: Listening | None = None

    def cancel(self) -> None:
        """Gives up the answer under way; the run ends as cancelled."""
        self._cancelled = True
        if self._source is not None:
            self._source.cancel()

    def progress(self) -> tuple[int, int]:
        """Requests that have left, and characters that have come."""
        return (0, 0) if self._listening is None else self._listening.progress()

    async def run(self) -> tuple[Heard, str | None]:
        """Asks, to the end of the turn.

        Raises:
            CallerError: the recording cannot be begun, or the turn ends before anything is asked.
        """
        from loop_core.client.transport import AsyncLive

        wanted = self.wanted
        with _listening(wanted, file_of(self._folder, self.name)) as listening:
            self._listening = listening
            async with AsyncLive(wanted.target.server, listening, wanted.results, self._line, redact.body,
                                 wanted.spelled) as source:
                self._source = source
                if self._cancelled:
                    source.cancel()
                async for step in asteps_from(wanted.first, source):
                    listening.last = step
        return listening.heard(self.name, wanted), listening.failure


# -- What is said before a request is asked live ---------------------------------------------------------------------
# Where it goes, with whose key, what it may cost. Sober lines, inert.


def told(wanted: Wanted, turn: int) -> list[str]:
    """The lines, for people; `turn` is the number of the turn."""
    target = wanted.target
    who = f"{target.server.api}, model {one_line(target.model or '') or 'not named'}, profile {target.profile.name}"
    lines = [
        f"asks the provider: turn {turn} from step {wanted.since + 1} on is sent to {one_line(target.url)}",
        f"as: {who}; settings: {wanted.under}",
        target.key,
        f"greatest possible cost: {'; '.join(cost(wanted))}",
        f"tool calls: {tools(wanted)}",
    ]
    return [*lines, *([NOT_ENCRYPTED] if target.open else [])]


NOT_ENCRYPTED = "not encrypted: whoever is on the way reads the request and the key"


def cost(wanted: Wanted) -> list[str]:
    """The greatest possible cost in tokens, and what it rests on, a line each."""
    found = wanted.cost
    if found.requests is None or found.output is None or found.input is None:
        return [f"no bound: {found.unbounded}"]
    basis = "the first request as counted in the recording" if wanted.counted else "the first request is estimated"
    requests = f"{found.requests:,} request{'' if found.requests == 1 else 's'}"
    lines = [f"{found.output:,} tokens out and about {found.input:,} in, in {requests}", f"in: {basis}"]
    if not wanted.target.profile.reasoning_under_cap:
        lines.append("thinking may come on top: this server is not known to count it under max_tokens")
    return lines


def tools(wanted: Wanted) -> str:
    """Who answers them."""
    given, recorded = wanted.results.given, wanted.results.recorded
    parts = []
    if given is not None and given.tools:
        parts.append(f"run here: {', '.join(one_line(name) for name in given.tools)}")
    if recorded:
        parts.append("a call that was recorded gets its recorded result")
    return "; ".join([*parts, "any other ends the turn"]) if parts else "none is run; the first one ends the turn"
