"""A live run that was recorded, heard again from its file: nobody is asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from inspector.config.settings import live_run
from inspector.live.again import FOLDER, after_of, file_of, silent_of
from inspector.live.target import base_of
from inspector.replay.case import Heard
from inspector.sessions.build import build
from inspector.sessions.native import AGAIN, read
from inspector.sessions.recording import Exchange, Options, Reading, UnreadableError
from loop_core.client.address import Server, expected_speaker
from loop_core.client.outgoing import ability
from loop_core.errors import CallerError
from loop_core.turn.history import Ability
from loop_core.turn.state import RequestPlace
from loop_core.values import ChatResponse, ProviderError, Request, Stop, StopReason, ToolResultPart, TransportEnd
from loop_core.wire.profiles import ProfileChoice, choose, profile_named


def recall(name: str, folder: Path) -> Heard:
    """What a live run heard.

    Raises:
        CallerError: it is no name of one, or its recording is not there, or cannot be read.
    """
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
    told = next((str(act.value) for act in reversed(notes) if act.entry is None), "")
    can, provider = _asked(exchanges[0])
    return Heard(
        name, exchanges, _places(data, len(exchanges)), _results(reading, len(exchanges) - 1),
        silent_of(exchanges, again, end), after_of(end, told), can, provider,
        "" if end else f"its recording {FOLDER}/{path.name} is cut; what stands before the cut was read",
    )


def _exchanges(reading: Reading, path: str) -> list[Exchange]:
    made: list[Exchange] = []
    for raw in reading.raws:
        if not raw.recorded:  # nothing of an answer, nor of its end: the program ended while it waited
            raw.recorded, raw.end = True, TransportEnd.ABORTED
        found = build(raw, path, Options())
        if isinstance(found, Exchange):
            made.append(found)
            continue
        body, raw.body = raw.body, b""
        empty = build(raw, path, Options())
        if not isinstance(empty, Exchange):
            break  # of no format that is known here: what follows it cannot be placed
        error = ProviderError(found.why, "decode")
        response = ChatResponse(empty.api, stop_reason=StopReason(Stop.ERROR, None, "fatal"), http_status=raw.status,
                                error=error, transport_end=raw.end, size=len(body))
        made.append(replace(empty, response=response, body=body))
    return made


def _places(data: bytes, count: int) -> tuple[tuple[RequestPlace, int], ...]:
    """Why each request was sent, as its record says; where one does not, it was the first."""
    found: list[tuple[RequestPlace, int]] = []
    for line in data.split(b"\n"):
        record = _record(line)
        if record.get("type") == "request":
            place, ordinal = record.get("place"), record.get("ordinal")
            known = place if place in set(RequestPlace) else RequestPlace.REQUEST
            found.append((RequestPlace(known), ordinal if isinstance(ordinal, int) else 0))
    return tuple(found[:count])


def _record(line: bytes) -> Mapping[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        return {}
    return record if isinstance(record, Mapping) else {}


def _results(reading: Reading, last: int) -> tuple[ToolResultPart, ...] | None:
    found = tuple(answer.result for answer in reading.answers if answer.entry == last)
    return found or None


def _asked(exchange: Exchange) -> tuple[Ability, str]:
    """What the server allowed that was asked, as it was known before it answered; and its name."""
    request = exchange.request or Request(exchange.api)
    by_name = any(seen.rule == "profile.named" for seen in exchange.profile_evidence)
    chosen = _by_address(exchange, request)
    if by_name and exchange.profile.name != chosen.profile.name:
        chosen = profile_named(exchange.profile.name, exchange.api, request.model)
    return ability(chosen.profile, exchange.api), chosen.profile.name


def _by_address(exchange: Exchange, request: Request) -> ProfileChoice:
    try:
        return expected_speaker(Server(exchange.api, base_of(exchange.url, exchange.api, request)), request.model)
    except CallerError:
        return choose(exchange.api, exchange.url, model=request.model)
