"""A live run as every report and screen shows a session: what was heard, and the steps that were made.

Further down: what a live run leaves in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from inspector.config.settings import Settings
from inspector.replay.case import Case
from inspector.replay.live_branch import PLACES
from inspector.replay.replay import Replay, TurnRun
from inspector.sessions import redact
from inspector.sessions.native import AGAIN, sent_again
from inspector.sessions.recording import (
    Chunk,
    Conversation,
    Exchange,
    Input,
    Link,
    Loaded,
    Place,
    ToolAnswer,
    TurnRecord,
)
from loop_core.client.exchange import Heard, Observer
from loop_core.client.outgoing import Ask
from loop_core.judge.gate import admit_all
from loop_core.turn.trace import Step, Trace
from loop_core.values import Request, Role, ToolResultPart

# -- What a live run leaves in memory --------------------------------------------------------------------------------
# Answers, when they were asked for, what was waited for and what the tools said.


class Kept(Observer):
    """Keeps what a live source tells, and passes it on to the observer beside it in a class of both."""

    def __init__(self) -> None:
        self.heard: list[Heard] = []
        self.notices: list[str] = []
        self.started: dict[int, str] = {}
        """When each request left, by its number; as a recording writes it."""
        self.answers: list[ToolAnswer] = []

    def asked(self, ask: Ask) -> None:
        """Notes the time."""
        super().asked(ask)
        self.started[ask.number] = datetime.now(UTC).isoformat(timespec="microseconds")

    def ended(self, heard: Heard) -> None:
        """Keeps the answer."""
        super().ended(heard)
        self.heard.append(heard)

    def waits(self, number: int, seconds: float) -> None:
        """Notes why a request is sent again, and when."""
        super().waits(number, seconds)
        last = next(heard for heard in reversed(self.heard) if heard.ask.number == number)
        self.notices.append(sent_again(number, last.status, last.problem, f"{AGAIN} {seconds:g} s"))

    def ran(self, number: int, results: Sequence[ToolResultPart]) -> None:
        """Keeps the results, and when they were there."""
        super().ran(number, results)
        at = datetime.now(UTC).isoformat(timespec="microseconds")
        self.answers += [ToolAnswer(number, part, at) for part in results]

NAME = "c1"
"""The conversation of a live run, as it is called when its recording is read."""


class Told(NamedTuple):
    """One live turn: what was heard in it, and its steps."""

    heard: Sequence[Heard]
    steps: Sequence[Step]


def replay_of(
    kept: Kept, steps: Sequence[Step], settings: Settings, path: str, notices: Sequence[str] = ()
) -> Replay:
    """One live turn as a replay: its exchanges, judged as they were, and its steps."""
    return replay_of_turns((Told(kept.heard, steps),), settings, path, (*kept.notices, *notices), kept)


def replay_of_turns(
    turns: Sequence[Told], settings: Settings, path: str, notices: Sequence[str] = (), kept: Kept | None = None
) -> Replay:
    """Live turns as a replay; those in which nothing was heard yet are left out with their steps.

    `kept` tells when requests left and what the tools said.
    """
    started, answers = (kept.started, tuple(kept.answers)) if kept is not None else ({}, ())
    turns = [told for told in turns if told.heard]
    heard = [each for told in turns for each in told.heard]
    exchanges = tuple(exchange_of(each, path, started.get(each.ask.number)) for each in heard)
    records: list[TurnRecord] = []
    runs: list[TurnRun] = []
    steps: list[Step] = []
    for told in turns:
        links = tuple(_links(told.heard, sum(len(record.links) for record in records)))
        asked = told.steps[0].turn
        records.append(TurnRecord(asked.id, NAME, links, _user_text(asked.request)))
        first, end = len(steps), len(steps) + len(told.steps)
        runs.append(TurnRun(records[-1], first, end, 1, end - 1, tuple(told.steps)))
        steps += told.steps
    source = Input(path, "live", len(exchanges), notices=tuple(f"{path}: {notice}" for notice in notices),
                   answers=answers)
    loaded = Loaded((source,), exchanges, (Conversation(NAME, tuple(records)),) if records else ())
    verdicts = tuple(admit_all(each.response.tool_calls, each.judged, each.ask.request.tools) for each in heard)
    case = Case(loaded, tuple(each.judged for each in heard), verdicts)
    return Replay(case, settings, Trace(tuple(steps)), tuple(runs), ends=tuple(run.end for run in runs))


def exchange_of(heard: Heard, path: str, started: str | None = None) -> Exchange:
    """What was heard, as an exchange of the recording at a path; `started` is when it was asked."""
    ask = heard.ask
    return Exchange(
        path, ask.number, ask.request.api, ask.url, heard.speaker.profile, tuple(heard.speaker.evidence), ask.request,
        ask.body, heard.response, heard.body, redact.headers(heard.headers), redact.headers(ask.headers),
        started=started, duration_ms=heard.ms,
        chunks=tuple(Chunk(end, ms) for end, ms in heard.chunks),
        again=bool(ask.attempt),
    )


def _links(heard: Sequence[Heard], first: int) -> list[Link]:
    links: list[Link] = []
    for index, each in enumerate(heard, first):
        ask = each.ask
        place = PLACES[ask.place] if index > first else Place.REQUEST
        if ask.attempt:
            place = Place.RETRY
        ordinal = ask.attempt if ask.attempt else max(1, ask.ordinal)
        links.append(Link(index, place, ordinal, "sent by this run", parent=index - 1 if index else None))
    return links


def _user_text(request: Request) -> str:
    return next((message.text for message in reversed(request.messages) if message.role is Role.USER), "")
