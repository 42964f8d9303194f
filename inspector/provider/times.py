"""Times in answers: a date, and durations that follow from the tokens, so that the same request gets the same bytes.

The encoders have no clock and write zeros; real servers do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from inspector.provider import frames
from inspector.provider.frames import Event
from loop_core.wire.body import compact, read_object
from loop_core.wire.servers import CHAT, CONVERSE, OLLAMA, RESPONSES

MADE, DATE = 1_700_000_000, "2023-11-14T22:13:20Z"
"""When everything here was made, in both spellings."""
LOAD, READ, WRITE = 2_000_000, 250_000, 20_000_000
"""Nanoseconds for loading a model, for a token that is read, for one that is written."""
MILLISECOND = 1_000_000


def _created(value: Event) -> bool:
    if "created" not in value:  # an error
        return False
    value["created"] = MADE
    return True


def _response(value: Event) -> bool:
    held = value.get("response", value)
    dated = [name for name in ("created_at", "completed_at") if isinstance(held, dict) and held.get(name) == 0]
    for name in dated:
        held[name] = MADE
    return bool(dated)


def _latency(value: Event) -> bool:
    usage, metrics = value.get("usage"), value.get("metrics")
    if not isinstance(metrics, dict):
        return False
    spent = usage if isinstance(usage, dict) else {}
    took = LOAD + READ * _count(spent, "inputTokens") + WRITE * _count(spent, "outputTokens")
    metrics["latencyMs"] = took // MILLISECOND
    return True


def _ollama(value: Event) -> bool:
    if "created_at" not in value:
        return False
    value["created_at"] = DATE
    if value.get("done") is True:
        parts = {"load_duration": LOAD, "prompt_eval_duration": READ * _count(value, "prompt_eval_count"),
                 "eval_duration": WRITE * _count(value, "eval_count")}
        durations = {"total_duration": sum(parts.values()), **parts}
        value.update({name: took for name, took in durations.items() if name in value})
    return True


def _count(value: Event, name: str) -> int:
    number = value.get(name)
    return number if type(number) is int else 0


TIMES: Mapping[str, Callable[[Event], bool]] = {
    CHAT: _created, RESPONSES: _response, CONVERSE: _latency, OLLAMA: _ollama,
}
"""Format -> what sets the times of a body or an event, and whether there are any; the other formats tell none."""


def timed(api: str, stream: bool, sent: Iterable[bytes]) -> tuple[bytes, ...]:
    """The frames of an answer, or its body, with their times."""
    change = TIMES.get(api)
    if change is None:
        return tuple(sent)
    if stream:
        return frames.changed(api, sent, lambda name, value: change(value))
    made = []
    for body in sent:
        value = read_object(body.decode())
        made.append(compact(value).encode() if value is not None and change(value) else body)
    return tuple(made)
