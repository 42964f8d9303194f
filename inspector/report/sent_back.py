"""Finds a held call in the agent's next request: the call in the history, and its result, with their places.

Both have the id of the call. An agent may have completed the arguments before it ran the call; then only this request
shows those arguments, because no provider sent them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from inspector.report.facts import ResponseFacts, View
from inspector.sessions import redact
from loop_core.judge.arguments import parse
from loop_core.values import Request, ToolCall
from loop_core.wire.json_values import pointer


class SentBackAs(StrEnum):
    """The kind of an object about a call in a request; the value is the beginning of its title."""

    SAME = "the call {name} as the agent sent it back"
    CHANGED = "the call {name} as the agent sent it back, with arguments that the provider did not send"
    RESULT = "the result of {name}, which the agent sent back"


class SentBack(NamedTuple):
    """An object with the id of a call, in a later request."""

    kind: SentBackAs
    answer: ResponseFacts
    """The response to that request."""
    pointer: str
    """Where the object is in the request."""
    text: str
    """The object as JSON, credentials masked."""


def sent_back(view: View, facts: ResponseFacts, call: ToolCall) -> list[SentBack]:
    """The objects with the id of a call, in the turn's first recorded request after it that has some."""
    if not call.id:
        return []
    for index in view.turn_of(facts.step).responses:
        later = view.responses[index]
        request, body = later.exchange.request, later.exchange.request_json
        if index <= facts.index or later.live or request is None:
            continue
        objects = list(_with_id(body, call.id, ()))
        if objects:
            # A history has a call before its result, whatever the format calls their fields.
            kinds = _kinds(request, call)
            return [SentBack(kinds[at] if at < len(kinds) else SentBackAs.RESULT, later, pointer(*path),
                             redact.text(json.dumps(redact.values(value), ensure_ascii=False)))
                    for at, (path, value) in enumerate(objects)]
    return []


def _kinds(request: Request, call: ToolCall) -> list[SentBackAs]:
    """The kinds of the objects with this id, in the order of the history."""
    return [SentBackAs.SAME if _equal(each, call) else SentBackAs.CHANGED
            for message in request.messages for each in message.tool_calls if each.id == call.id]


def _equal(one: ToolCall, other: ToolCall) -> bool:
    if one.arguments == other.arguments:
        return True
    left, right = parse(one.arguments).value, parse(other.arguments).value  # a format may write them as an object
    return left is not None and left == right


Path = tuple[str | int, ...]


def _with_id(value: Any, call_id: str, path: Path) -> Iterator[tuple[Path, Any]]:
    """The objects within a value that hold this id as one of their members, in document order."""
    if isinstance(value, dict):
        if any(each == call_id for each in value.values() if isinstance(each, str)):
            yield path, value
        for key, each in value.items():
            yield from _with_id(each, call_id, (*path, key))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _with_id(each, call_id, (*path, number))
