"""Records a live run in a session file while it runs, and builds its replay.

Each record is flushed when it is written. If a recording cannot continue (a full disk), one line reports it, and the
turn continues.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from inspector.config.files import data_folder, new_folder
from inspector.config.settings import REPLAYED, Settings
from inspector.replay import Replay, TurnRun
from inspector.replay.case import TURN_PLACES, Case
from inspector.sessions import redact
from inspector.sessions.build import with_body, without_pieces
from inspector.sessions.native import AGAIN, PRODUCER, SessionWriter, sent_again
from inspector.sessions.notices import Notice, notice_of
from inspector.sessions.recording import Chunk, Exchange, Input, Link, Recording, ToolAnswer, TurnPlace, TurnRecord
from loop_core.client.exchange import LiveResponse, Observer
from loop_core.client.outgoing import LiveRequest
from loop_core.errors import CallerError
from loop_core.judge.gate import admit_response
from loop_core.turn.trace import Step, Trace
from loop_core.values import Role, ToolResultPart

FOLDER = "live"
"""The folder of the recordings of live runs within the data folder."""


def time_name() -> str:
    """A name for a run that starts now. It has microseconds, because two runs may start within a second."""
    return f"{datetime.now():%Y%m%d-%H%M%S-%f}"


def file_of(folder: Path, name: str) -> Path:
    """The path of a live run's recording in the data folder."""
    return folder / FOLDER / f"{name}.jsonl"


def new_recording(api: str) -> str:
    """The path for a new recording."""
    return str(file_of(data_folder(os.environ), f"{time_name()}-{api}"))


def refuse_existing(path: str | Path) -> None:
    """Raises `CallerError` if a recording's file already exists, unless it is empty, as `mktemp` makes it."""
    if os.path.exists(path) and os.path.getsize(path):
        raise CallerError(f"--record {path}: the file exists; expected a path for a new file")


class RequestClock(Observer):
    """Reads the clock once per request, so that a run and its recording have equal times."""

    def __init__(self) -> None:
        self.started: dict[int, str] = {}
        """Number of a request -> the time at which it was sent, in ISO 8601 and UTC."""

    def on_request(self, ask: LiveRequest) -> None:
        """Notes the time."""
        super().on_request(ask)
        self.sending_time(ask)

    def sending_time(self, ask: LiveRequest) -> str:
        """The time at which a request was sent, which is that of the first call for it."""
        return self.started.setdefault(ask.number, now())


class Recorder(RequestClock):
    """Writes one new session file."""

    by_stand_in = False
    """Whether a stand-in of this program answers instead of a provider."""

    def __init__(self, path: str | Path, **about: str) -> None:
        """Begins the file. Raises `CallerError` if the file exists and is not empty, or cannot be written."""
        super().__init__()
        self.path = str(path)
        self.failure: str | None = None
        """Why the recording stopped; None while it continues."""
        self.closed = False
        try:
            refuse_existing(path)
            new_folder(Path(path).parent)
            self._writer = SessionWriter(path, producer=PRODUCER, **about)
        except OSError as why:
            raise CallerError(f"--record {path}: {why.strerror or why}") from None

    def on_request(self, ask: LiveRequest) -> None:
        """Writes a request record."""
        super().on_request(ask)
        body: dict[str, Any] = {} if ask.body is None else {"body": ask.body}
        if ask.repeats is not None:
            body["retries"] = _id(ask.repeats)
        self.write({"type": "request", "id": _id(ask.number), "api": ask.request.api, "profile": ask.profile,
                    "url": ask.url, "method": ask.method, "headers": [list(pair) for pair in ask.headers], **body,
                    "place": ask.place.value, "ordinal": ask.ordinal, "at": self.sending_time(ask)})

    def on_head(self, number: int, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Writes a response record."""
        self.write({"type": "response", "request": _id(number), "status": status,
                    "headers": [list(pair) for pair in headers], "at": now(),
                    **({"simulated": True} if self.by_stand_in else {})})

    def on_data(self, number: int, data: bytes, ms: float) -> None:
        """Writes a bytes record."""
        if self.failure is None and not self.closed:
            try:
                self._writer.append_bytes(_id(number), data, ms)
            except OSError as why:
                self._stop(why)

    def on_end(self, answer: LiveResponse) -> None:
        """Writes an end record, with any errors."""
        problem = {"problem": answer.problem} if answer.problem else {}
        self.write({"type": "end", "request": _id(answer.ask.number), "end": answer.response.transport_end.value,
                    "ms": answer.ms, **problem})

    def on_wait(self, number: int, seconds: float) -> None:
        """Writes a note."""
        self.note(f"{AGAIN} {seconds:g} s", number)

    def on_tools(self, number: int, results: Sequence[ToolResultPart]) -> None:
        """Writes a record for every result."""
        for part in results:
            self.write({"type": "tool_result", "request": _id(number), "call_id": part.call_id, "name": part.name,
                        "text": part.text, "is_error": part.is_error, "at": now()})

    def on_interrupt(self, number: int, *, answered: bool) -> None:
        """Records that the turn was cancelled, and closes the file."""
        if number >= 0:
            self.record_cancel(number, answered=answered)
        self.write_end("cancelled")
        self.close()

    def settings(self, settings: Settings) -> None:
        """Records the initial settings of the run: limits, policy, and whether silence is wanted."""
        self.limits(settings)
        silent = {} if settings.allow_silence is None else {"allow_silence": settings.allow_silence}
        self.write({"type": "policy", "name": settings.policy.name, **silent})

    def limits(self, settings: Settings) -> None:
        """Records the limits that were set or that differ from a replay's; writes no record if there are none."""
        names = set(settings.explicit)
        # A live run asks again after an empty answer and a replay does not, so this limit is recorded even if not set.
        if settings.limits.max_empty_retries != REPLAYED.max_empty_retries:
            names.add("max_empty_retries")
        if names:
            self.write({"type": "limits", "values": {name: getattr(settings.limits, name) for name in sorted(names)}})

    def record_cancel(self, number: int, *, answered: bool) -> None:
        """Records that the turn was cancelled, during this last request or after its answer was read."""
        self.write({"type": "cancel", "request": _id(number), "answered": answered})

    def note(self, text: str, number: int | None = None) -> None:
        """Records a remark on a request or on the run."""
        self.write({"type": "note", **({} if number is None else {"request": _id(number)}), "text": text})

    def write_end(self, terminal: str) -> None:
        """Records the end of the turn, as the last record."""
        self.write({"type": "about", "end_state": terminal})

    def write(self, record: Mapping[str, Any]) -> None:
        """Writes one record, unless the file is closed."""
        if self.failure is None and not self.closed:
            try:
                self._writer.append(record)
            except OSError as why:
                self._stop(why)

    def _stop(self, why: OSError) -> None:
        self.failure = f"{self.path}: the recording stopped: {why.strerror or why}"
        with suppress(OSError):  # a reader of an open file would expect more
            self._writer.close()

    def close(self) -> None:
        """Closes the file; later events are ignored."""
        self.closed = True
        try:
            self._writer.close()
        except OSError as why:
            if self.failure is None:
                self._stop(why)


def _id(number: int) -> str:
    return f"r{number}"


def now() -> str:
    """The time in ISO 8601 and UTC."""
    # Always with microseconds: `isoformat` leaves out zeros, and times of different lengths do not sort as text.
    return datetime.now(UTC).isoformat(timespec="microseconds")


class RunMemory(RequestClock):
    """Stores the events of a live source in memory, and passes them to the next observer class it inherits from."""

    def __init__(self, *beside: Any, **named: Any) -> None:
        super().__init__(*beside, **named)  # the arguments of the next class in the order of inheritance
        self.responses: list[LiveResponse] = []
        self.notices: list[Notice | str] = []
        self.answers: list[ToolAnswer] = []

    def on_end(self, answer: LiveResponse) -> None:
        """Keeps the answer."""
        super().on_end(answer)
        self.responses.append(answer)

    def on_wait(self, number: int, seconds: float) -> None:
        """Notes why and when a request is repeated."""
        super().on_wait(number, seconds)
        last = next(each for each in reversed(self.responses) if each.ask.number == number)
        self.notices.append(sent_again(number, last.status, last.problem, f"{AGAIN} {seconds:g} s"))

    def on_tools(self, number: int, results: Sequence[ToolResultPart]) -> None:
        """Keeps the results, and their times."""
        super().on_tools(number, results)
        at = now()
        self.answers += [ToolAnswer(number, part, at) for part in results]


NAME = "c1"
"""The id of a live run's conversation, which is the id that reading its recording gives."""


class LiveTurn(NamedTuple):
    """One live turn: its responses and its steps."""

    responses: Sequence[LiveResponse]
    steps: Sequence[Step]


def replay_of_turns(
    turns: Sequence[LiveTurn], settings: Settings, path: str, notices: Sequence[Notice | str] = (),
    memory: RunMemory | None = None,
) -> Replay:
    """The replay of those live turns that have a response; `memory` has the times of requests and the tool results."""
    started, answers = (memory.started, tuple(memory.answers)) if memory is not None else ({}, ())
    turns = [turn for turn in turns if turn.responses]
    responses = [each for turn in turns for each in turn.responses]
    exchanges = tuple(exchange_of(each, path, started.get(each.ask.number)) for each in responses)
    runs: list[TurnRun] = []
    steps: list[Step] = []
    for turn in turns:
        links = _links(turn.responses, sum(len(run.record.links) for run in runs))
        runs.append(run_of(turn, links, len(steps)))
        steps += turn.steps
    source = Input(path, "live", len(exchanges), statements=tuple(map(notice_of, notices)),
                   answers=answers)
    loaded = Recording((source,), exchanges, tuple(run.record for run in runs))
    verdicts = tuple(admit_response(each.response, each.judgement, each.ask.request) for each in responses)
    case = Case(loaded, tuple(each.judgement for each in responses), verdicts)
    return Replay(case, settings, Trace(tuple(steps)), tuple(runs))


def run_of(turn: LiveTurn, links: Sequence[Link], first: int) -> TurnRun:
    """A live turn as the run of a replay; `first` is the index of its first step there."""
    opening, count = turn.steps[0].turn, len(turn.steps)
    prompt = next((each.text for each in reversed(opening.request.messages) if each.role is Role.USER), "")
    record = TurnRecord(opening.id, NAME, tuple(links), prompt)
    return TurnRun(record, first, first + count, 1, count - 1, tuple(turn.steps))


def exchange_of(answer: LiveResponse, path: str, start: str | None = None) -> Exchange:
    """A live response as an exchange of a recording, with secrets masked; its request was sent at `start`."""
    ask, choice = answer.ask, answer.profile_choice
    exchange = Exchange(
        path, ask.number, ask.request.api, ask.url, choice.profile, tuple(choice.evidence), ask.request,
        ask.body, answer.response, answer.body, redact.headers(answer.headers), redact.headers(ask.headers),
        started=start, duration_ms=answer.ms,
        chunks=tuple(Chunk(end, ms) for end, ms in answer.chunks),
        again=bool(ask.attempt),
    )
    # The source masks secrets that are whole in the bytes. A stream may split a secret over several events, so that it
    # is whole only in the decoded text; it is masked here.
    return with_body(exchange, without_pieces(exchange.body, exchange.api, exchange.response))


def _links(answers: Sequence[LiveResponse], first: int) -> list[Link]:
    links: list[Link] = []
    for index, each in enumerate(answers, first):
        ask = each.ask
        # a follow-up begins a turn, whatever its place was
        place = TURN_PLACES[ask.place] if index > first else TurnPlace.REQUEST
        if ask.attempt:
            place = TurnPlace.RETRY
        ordinal = ask.attempt if ask.attempt else max(1, ask.ordinal)
        links.append(Link(index, place, ordinal, "sent by this run", parent=index - 1 if index else None))
    return links
