"""A live run as every report and screen shows a session: what was heard, and the steps that were made."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.asked import PLACES
from inspector.live.kept import Kept
from inspector.replay import Case, Replay, TurnRun
from inspector.sessions import redact
from inspector.sessions.values import Chunk, Conversation, Exchange, Input, Link, Loaded, Place, TurnRecord
from inspector.settings import Settings
from loop_core.exchange import Heard
from loop_core.gate import admit_all
from loop_core.trace import Step, Trace
from loop_core.values import Request, Role


def replay_of(
    kept: Kept, steps: Sequence[Step], settings: Settings, path: str, notices: Sequence[str] = ()
) -> Replay:
    """One live turn as a replay: its exchanges, judged as they were, and its steps."""
    heard = kept.heard
    exchanges = tuple(exchange_of(each, path, kept.started.get(each.ask.number)) for each in heard)
    asked = steps[0].turn.request
    record = TurnRecord(steps[0].turn.id, "live", tuple(_links(heard)), _user_text(asked))
    source = Input(path, "live", len(exchanges), notices=(*kept.notices, *notices), answers=tuple(kept.answers))
    loaded = Loaded((source,), exchanges, (Conversation("live", (record,)),) if exchanges else ())
    verdicts = tuple(admit_all(each.response.tool_calls, each.judged, asked.tools) for each in heard)
    case = Case(loaded, tuple(each.judged for each in heard), verdicts)
    runs = (TurnRun(record, 0, len(steps), 1, len(steps) - 1, tuple(steps)),) if exchanges else ()
    return Replay(case, settings, Trace(tuple(steps)), runs, ends=tuple(run.end for run in runs))


def exchange_of(heard: Heard, path: str, started: str | None = None) -> Exchange:
    """What was heard, as an exchange of the recording at a path; `started` is when it was asked."""
    ask = heard.ask
    return Exchange(
        path, ask.number, ask.request.api, ask.url, heard.speaker.profile, tuple(heard.speaker.evidence), ask.request,
        ask.body, heard.response, heard.body, redact.headers(heard.headers), redact.headers(ask.headers),
        started=started, duration_ms=heard.ms,
        chunks=tuple(Chunk(end, ms) for end, ms in heard.chunks),
    )


def _links(heard: Sequence[Heard]) -> list[Link]:
    links: list[Link] = []
    for index, each in enumerate(heard):
        ask = each.ask
        place = PLACES[ask.place] if index else Place.REQUEST
        if ask.attempt:
            place = Place.RETRY
        ordinal = ask.attempt if ask.attempt else max(1, ask.ordinal)
        links.append(Link(index, place, ordinal, "sent by this run", parent=index - 1 if index else None))
    return links


def _user_text(request: Request) -> str:
    return next((message.text for message in reversed(request.messages) if message.role is Role.USER), "")
