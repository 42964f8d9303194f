"""Responses over a WebSocket, as a HAR keeps its messages: one exchange for each `response.create`.

Owns which message belongs to which answer. Chrome, Playwright and mitmproxy write the same shape: `type` send or
receive, `time` in seconds, `opcode` 1 for text and 2 for bytes in base64, `data`. What the messages say is not read
here: the body of an answer is its messages in a row, and the wire format's own decoder takes them as a stream.
"""

from __future__ import annotations

import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from inspector.sessions import traffic
from inspector.sessions.recording import Chunk, Raw, Skipped
from loop_core.values import TransportEnd
from loop_core.wire.framing import joined
from loop_core.wire.openai_responses.table import TERMINAL_EVENTS

CREATE = "response.create"
ENDS = frozenset({*TERMINAL_EVENTS, "error"})
"""The events behind which nothing of the same answer comes but notices."""
_SENT, _RECEIVED = "send", "receive"
_TEXT, _BYTES = 1, 2
_SECONDS = 1e11
"""A larger time counts milliseconds."""


@dataclass(slots=True, eq=False, repr=False)
class Answer:
    """One answer while its messages are collected."""

    asked: dict[str, Any] | None
    """The event that asked for it; None where the server began it by itself."""
    at: float | None
    lane: Any = None
    frames: list[tuple[int, bytes, float | None]] = field(default_factory=list)
    """Its messages: each with its index in the recording, its bytes and its time."""
    ended: bool = False
    broken: bool = False


def exchanges(base: Raw, messages: Sequence[Any], cut: bool) -> tuple[list[Raw], list[Skipped]]:
    """The answers of one connection, each an exchange of the entry `base`; with `cut` the recording ends in it."""
    answers = collected(messages)
    if not answers:
        return [], [Skipped(base.entry, "a WebSocket on which no response was asked for")]
    found = [_raw(base, answer, cut) for answer in answers if not _only_warms(answer)]
    warm = "a response.create that only warms up: it asks for no answer"
    return found, [Skipped(base.entry, warm) for answer in answers if _only_warms(answer)]


def collected(messages: Sequence[Any]) -> list[Answer]:
    """The answers in the order in which they were asked for, each with its messages."""
    answers: list[Answer] = []
    for index, message in enumerate(messages):
        kind = message.get("type") if isinstance(message, dict) else None
        if kind == "error":
            for answer in answers:
                answer.broken = answer.broken or not answer.ended
        data = _data(message) if kind in (_SENT, _RECEIVED) else None
        if data is None:
            continue
        event = _event(data)
        when = traffic.number(message.get("time"))
        if kind == _RECEIVED:
            _received(answers, index, data, event, when)
        elif event.get("type") == CREATE:
            answers.append(Answer(event, when, event.get("stream_id")))
    return answers


def _received(answers: list[Answer], index: int, data: bytes, event: dict[str, Any], when: float | None) -> None:
    kind, lane = event.get("type"), event.get("stream_id")
    waiting = [answer for answer in answers if not answer.ended]
    answer = next((each for each in waiting if each.lane == lane), waiting[0] if waiting else None)
    if answer is None and kind == "response.created":
        answer = Answer(None, when, lane)  # a successor that the server begins by itself
        answers.append(answer)
    if answer is None:
        answer = next((each for each in reversed(answers) if each.lane == lane), answers[-1] if answers else None)
    if answer is not None:
        answer.frames.append((index, data, when))
        answer.ended = answer.ended or kind in ENDS


def _data(message: dict[str, Any]) -> bytes | None:
    data, opcode = message.get("data"), message.get("opcode", _TEXT)
    if not isinstance(data, str) or opcode not in (_TEXT, _BYTES):
        return None
    if opcode == _TEXT:
        return data.encode("utf-8", "replace")
    try:
        return binascii.a2b_base64(data)
    except (binascii.Error, ValueError):
        return None


def _event(data: bytes) -> dict[str, Any]:
    try:
        value = traffic.loads(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _only_warms(answer: Answer) -> bool:
    return answer.asked is not None and answer.asked.get("generate") is False


def _raw(base: Raw, answer: Answer, cut: bool) -> Raw:
    asked = answer.asked
    if asked is not None and isinstance(asked.get("response"), dict) and "input" not in asked:
        asked = asked["response"]
    body = None if asked is None else {name: value for name, value in asked.items() if name != "type"}
    last = [when for _, _, when in answer.frames if when is not None][-1:]
    return replace(
        base,
        request_text=None if body is None else json.dumps(body, ensure_ascii=False),
        body=joined([data for _, data, _ in answer.frames]),
        recorded=bool(answer.frames) or not cut,
        started=_moment(answer.at) or base.started,
        duration_ms=_since(answer.at, last[0]) if last else None,
        end=_end(base, answer, cut),
        chunks=_chunks(answer),
        messages=tuple(index for index, _, _ in answer.frames),
        clean=False,
    )


def _end(base: Raw, answer: Answer, cut: bool) -> TransportEnd:
    if answer.broken:
        return TransportEnd.RESET
    return TransportEnd.CUT if cut and not answer.ended else base.end


def _chunks(answer: Answer) -> tuple[Chunk, ...]:
    """When each message came; empty where the recorder does not say it of all."""
    found: list[Chunk] = []
    end = 0
    for _, data, when in answer.frames:
        end += len(data) + 2  # a separator before it, a line break behind it
        ms = _since(answer.at, when)
        if ms is None:
            return ()
        found.append(Chunk(end, ms))
    return tuple(found)


def _since(start: float | None, when: float | None) -> float | None:
    if start is None or when is None or when < start:
        return None
    return (when - start) * (1 if when > _SECONDS else 1000)


def _moment(when: float | None) -> str | None:
    """A time that counts from 1970, as the rest of the program writes it; a smaller one counts from elsewhere."""
    if when is None or not 1e9 < when < 1e14:
        return None
    seconds = when / 1000 if when > _SECONDS else when
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
