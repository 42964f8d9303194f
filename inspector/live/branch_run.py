"""Runs a recorded turn again live from one of its steps, records the run, and reads the recording.

`run_branch` and `BranchRun` send requests. Each request and every byte of its answer is written to a session file
before the machine receives it. `recall` reads such a file, so that the branch can be made again without a server.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector.config.files import private_folder
from inspector.config.settings import STAND_IN, live_run
from inspector.live.branch_request import BranchRequest
from inspector.live.recorder import FOLDER, Recorder, RunMemory, exchange_of, file_of, time_name
from inspector.live.target import base_of
from inspector.replay.case import BranchAnswers
from inspector.sessions import redact
from inspector.sessions.build import build
from inspector.sessions.importers.records import object_in
from inspector.sessions.native import AGAIN, BY_US, read
from inspector.sessions.recording import Exchange, FileReading, Options, UnreadableError
from loop_core.client.address import Server, expected_profile
from loop_core.client.outgoing import LiveRequest, ability
from loop_core.errors import CallerError, DecodeError, LoopError
from loop_core.turn.history import Ability
from loop_core.turn.loop import asteps_from, steps_from
from loop_core.turn.state import Cancel, Event, NotRecorded, RequestPlace
from loop_core.turn.trace import Step
from loop_core.values import ChatResponse, ProviderError, Request, Stop, StopReason, ToolResultPart, TransportEnd
from loop_core.wire import deltas
from loop_core.wire.profiles import ProfileChoice, choose, profile_named

if TYPE_CHECKING:
    from loop_core.client.exchange import Connection

def new_name(by_stand_in: bool) -> str:
    """A name for a live run that starts now; `by_stand_in`: a stand-in answers it."""
    return time_name() + (STAND_IN if by_stand_in else "")  # it is part of a branch's settings


class BranchRecorder(RunMemory, Recorder):
    """Records a live run, and keeps what its branch needs."""

    def __init__(self, path: Path, request: BranchRequest) -> None:
        with suppress(OSError):  # `Recorder` reports it when it cannot begin the file
            # Recordings hold prompts and answers, so other users of the machine may not read them.
            private_folder(path.parent)
        self.by_stand_in = request.stand_in is not None
        how = "answered by a stand-in" if self.by_stand_in else "asked live again"
        super().__init__(path, title=f"{request.target.model or request.target.host}, {how}",
                         provenance=f"asked {BY_US}, from a step of a recording")
        self.again: set[int] = set()
        self.results: tuple[ToolResultPart, ...] | None = None
        self.last: Step | None = None
        self.problem = ""
        self._api, self._body = request.target.server.api, bytearray()
        self._sent = 0

    def on_request(self, ask: LiveRequest) -> None:
        """A request is about to leave."""
        self._body.clear()
        self._sent, self.results = ask.number + 1, None
        super().on_request(ask)

    def on_data(self, number: int, data: bytes, ms: float) -> None:
        """A piece of an answer arrived."""
        self._body += data
        super().on_data(number, data, ms)

    def on_wait(self, number: int, seconds: float) -> None:
        """The request will be sent again."""
        self.again.add(number)
        super().on_wait(number, seconds)

    def on_tools(self, number: int, results: Sequence[ToolResultPart]) -> None:
        """Calls were answered."""
        self.results = tuple(results)
        super().on_tools(number, results)

    def on_interrupt(self, number: int, *, answered: bool) -> None:
        """Does nothing, because `conclude` writes the end of the run."""

    def progress(self) -> tuple[int, int]:
        """The number of requests sent, and of characters of text received."""
        done = sum(len(each.response.text or "") for each in self.responses)
        if self._sent > len(self.responses) and self._body:
            with suppress(DecodeError):  # too little of the answer may have arrived
                done += sum(map(len, deltas(self._api, bytes(self._body)).text))
        return self._sent, done

    def conclude(self) -> None:
        """Writes the end of the run."""
        turn = None if self.last is None else self.last.turn
        end = "cancelled" if turn is None or (not turn.ended and not self.problem) else turn.terminal or "unrecorded"
        reason = self.problem or (turn.notice if turn is not None and end == "unrecorded" else "")
        if reason:
            self.note(reason)
        self.write_end(end)
        self._end, self._reason = end, reason or ""

    def branch_answers(self, name: str, request: BranchRequest) -> BranchAnswers:
        """The responses of the finished run. Raises `CallerError` if no request was sent, so there is no recording."""
        if not self.responses:
            Path(self.path).unlink(missing_ok=True)
            why = "it was cancelled first" if self._end == "cancelled" else f"the turn ends first ({self._end})"
            raise CallerError(f"nothing was asked: {self._reason or why}")
        exchanges = tuple(
            replace(exchange_of(each, self.path, self.started.get(each.ask.number)), simulated=self.by_stand_in)
            for each in self.responses)
        places = tuple((each.ask.place, each.ask.ordinal) for each in self.responses)
        unanswered = unanswered_exchanges(exchanges, self.again, self._end)
        return BranchAnswers(name, exchanges, places, self.results, unanswered, event_after(self._end, self._reason),
                             request.ability, request.target.profile.name)


def unanswered_exchanges(exchanges: Sequence[Exchange], again: set[int], end: str) -> frozenset[int]:
    """The exchanges without an answer: repeated, or given up when the run was cancelled or killed."""
    last = len(exchanges) - 1
    broken = (TransportEnd.ABORTED, TransportEnd.CUT)
    # A broken answer is an answer if the run continued after it; only the last one can have been given up.
    given_up = end in ("cancelled", "") and last >= 0 and exchanges[last].response.transport_end in broken
    return frozenset({*again, *([last] if given_up else [])})


def event_after(end: str, text: str) -> Event:
    """The event after the last answer, by the recorded terminal reason, empty if the recording was cut."""
    if end == "cancelled":
        return Cancel(live=True)
    if end == "unrecorded":
        return NotRecorded(text)
    if not end:
        return NotRecorded("The recording of this live run is cut: what came after that is not known.")
    return NotRecorded("What this loop asks for next was never asked live.")


@contextmanager
def _open_recorder(request: BranchRequest, path: Path) -> Iterator[BranchRecorder]:
    listening = BranchRecorder(path, request)
    try:
        listening.settings(request.settings)
        yield listening
    except LoopError as why:
        listening.problem = f"The next request cannot be sent: {why}"
    finally:
        listening.conclude()
        listening.close()
        if request.stand_in is not None:
            request.stand_in.close()


def run_branch(
    request: BranchRequest, name: str, folder: Path, line: Connection | None = None
) -> tuple[BranchAnswers, str | None]:
    """Runs to the end of the turn; returns the responses, and why the recording failed, or None. Raises `CallerError`
    if the recording cannot be begun, or if the turn ends before a request is sent."""
    from loop_core.client.transport import Live

    with ExitStack() as stack:
        listening = stack.enter_context(_open_recorder(request, file_of(folder, name)))
        source = stack.enter_context(Live(
            request.target.server, listening, request.results, line, redact.body, request.spelling))
        with suppress(KeyboardInterrupt):  # the run ends as cancelled
            for step in steps_from(request.first, source):
                listening.last = step
    return listening.branch_answers(name, request), listening.failure


class BranchRun:
    """A live run on an event loop: it can be cancelled, and reports its progress."""

    def __init__(self, request: BranchRequest, name: str, folder: Path, line: Connection | None = None) -> None:
        self.wanted, self.name = request, name
        self._folder, self._line = folder, line
        self._source: Any = None
        self._cancelled = False
        self._listening: BranchRecorder | None = None

    def cancel(self) -> None:
        """Gives up the current answer; the run ends as cancelled."""
        self._cancelled = True
        if self._source is not None:
            self._source.cancel()

    def progress(self) -> tuple[int, int]:
        """The number of requests sent, and of characters received."""
        return (0, 0) if self._listening is None else self._listening.progress()

    async def run(self) -> tuple[BranchAnswers, str | None]:
        """Runs to the end of the turn. Raises `CallerError` if the recording cannot be begun, or the turn ends before a
        request is sent."""
        from loop_core.client.transport import AsyncLive

        wanted = self.wanted
        with _open_recorder(wanted, file_of(self._folder, self.name)) as listening:
            self._listening = listening
            async with AsyncLive(wanted.target.server, listening, wanted.results, self._line, redact.body,
                                 wanted.spelling) as source:
                self._source = source
                # `cancel` may have been called before the source existed.
                if self._cancelled:
                    source.cancel()
                async for step in asteps_from(wanted.first, source):
                    listening.last = step
        return listening.branch_answers(self.name, wanted), listening.failure


def recall(name: str, folder: Path) -> BranchAnswers:
    """The responses of a recorded live run. Raises `CallerError` if `name` is not one of a live run, or its recording
    is missing or unreadable."""
    path = file_of(folder, live_run(name))
    try:
        data = path.read_bytes()
        reading = read(data, str(path), Options())
    except OSError as why:
        raise CallerError(f"live={name}: its recording {FOLDER}/{path.name} cannot be read: "
                          f"{why.strerror or why}") from None
    except UnreadableError as why:
        raise CallerError(f"live={name}: its recording {FOLDER}/{path.name}: {why}") from None
    exchanges = tuple(_exchanges(reading, str(path)))
    if not exchanges:
        raise CallerError(f"live={name}: its recording {FOLDER}/{path.name} holds no request")
    end = reading.about.end_state if reading.about is not None else ""
    notes = [act for act in reading.acts if act.kind == "note"]
    again = {act.entry for act in notes if act.entry is not None and str(act.value).startswith(AGAIN)}
    # the last remark on the whole run
    problem = next((str(act.value) for act in reversed(notes) if act.entry is None), "")
    can, provider = _ability_before(exchanges[0])
    results = tuple(answer.result for answer in reading.answers if answer.entry == len(exchanges) - 1)
    return BranchAnswers(
        name, exchanges, _places(data, len(exchanges)), results or None,
        unanswered_exchanges(exchanges, again, end), event_after(end, problem), can, provider,
        "" if end else f"its recording {FOLDER}/{path.name} is cut; the part before the cut was read",
    )


def _exchanges(reading: FileReading, path: str) -> list[Exchange]:
    exchanges: list[Exchange] = []
    for raw in reading.raws:
        if not raw.recorded:  # neither an answer nor an end: the program was killed while it waited
            raw.recorded, raw.end = True, TransportEnd.ABORTED
        found = build(raw, path, Options())
        if isinstance(found, Exchange):
            exchanges.append(found)
            continue
        # A body that cannot be decoded stays as a failed answer, as it was in the live run.
        body, raw.body = raw.body, b""
        empty = build(raw, path, Options())
        if not isinstance(empty, Exchange):
            break  # an unknown format, after which the places are not known either
        error = ProviderError(found.why, "decode")
        response = ChatResponse(empty.api, stop_reason=StopReason(Stop.ERROR, None, "fatal"), http_status=raw.status,
                                error=error, transport_end=raw.end, size=len(body))
        exchanges.append(replace(empty, response=response, content=body))
    return exchanges


def _places(data: bytes, count: int) -> tuple[tuple[RequestPlace, int], ...]:
    """The place and number of each request, from its record; a record without them is the first request of the turn."""
    found: list[tuple[RequestPlace, int]] = []
    for line in data.split(b"\n"):
        record = object_in(line)
        if record.get("type") == "request":
            place, ordinal = record.get("place"), record.get("ordinal")
            # a newer version may know other places
            known_place = place if place in set(RequestPlace) else RequestPlace.REQUEST
            found.append((RequestPlace(known_place), ordinal if isinstance(ordinal, int) else 0))
    return tuple(found[:count])


def _ability_before(exchange: Exchange) -> tuple[Ability, str]:
    """The abilities and the profile of the server, as far as they were known before it answered."""
    request = exchange.request or Request(exchange.api)
    chosen = _profile_by_address(exchange, request)
    if exchange.named_profile not in (None, chosen.profile.name):
        chosen = profile_named(exchange.profile.name, request.model)
    return ability(chosen.profile, exchange.api), chosen.profile.name


def _profile_by_address(exchange: Exchange, request: Request) -> ProfileChoice:
    try:
        return expected_profile(
            Server(exchange.api, base_of(exchange.url, exchange.api, request), version=""), request.model)
    except CallerError:
        return choose(exchange.api, exchange.url, model=request.model)
