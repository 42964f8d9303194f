"""An HTTP request as it came: which format it speaks, which scenario it means, and what is kept of it for a test."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_core import from_json

from inspector.provider.checks.rules import RequestError
from inspector.provider.place import Place, read_mark
from inspector.provider.story import Kind, Story
from loop_core.errors import CallerError
from loop_core.values import Request
from loop_core.wire import FORMATS, wire
from loop_core.wire.servers import MESSAGES, RESPONSES
from loop_core.wire.serving import Moment

SECRET = re.compile(r"auth|key|token|secret|cookie|credential|signature", re.IGNORECASE)
"""Names of headers and of query values that are not kept."""


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """One request that a server answered, without its credentials."""

    api: str
    path: str
    """With the query, whose secret values are left out."""
    headers: Mapping[str, str]
    """By lower-case name."""
    body: Any
    """The JSON that was sent."""
    request: Request
    """The same in the words that all formats share."""
    scenario: str = ""
    status: int = 200
    place: Place = field(default_factory=Place)
    """Where in the scenario it stood: which answer, how much of it was said, and what was asked for."""
    segment: int = 0
    tokens: int = 0
    """Tokens of the answer, by the provider's own rule."""
    ended: Moment | None = None
    """How the answer truly ended, whatever was said; None for an error."""
    faults: tuple[str, ...] = ()
    error: str = ""

    @property
    def answer(self) -> int:
        """Which answer of the scenario it got, counted from 0."""
        return self.place.answer

    @property
    def kind(self) -> Kind:
        """Whether it asked for an answer, for the rest of one, or for its calls again."""
        return self.place.kind


def api_of(path: str) -> str | None:
    """The format that is served under this path; None where none is."""
    for api in FORMATS:
        if any(pattern.search(path) for pattern in wire(api).paths):
            return api
    return None


def polled(path: str) -> tuple[str, str] | None:
    """The format and the id of a response that is fetched under this path; None where none is."""
    for api in FORMATS:
        found = re.search(form.poll, path) if (form := wire(api).serving).poll else None
        if found:
            return api, found["id"]
    return None


def read_body(body: bytes) -> Mapping[str, Any]:
    """The JSON object of a request.

    Raises:
        CallerError: it is none.
    """
    try:
        value = from_json(body)
    except ValueError as why:
        raise CallerError(f"the body of the request is no JSON: {why}") from None
    if not isinstance(value, dict):
        raise CallerError("the body of the request is no JSON object")
    return value


def in_thread(request: Request, body: Mapping[str, Any]) -> Request:
    """The request, with the answer that it goes on from where that is the server's to know: Anthropic's threads.

    Its SDK's runner of tools begins one by itself (anthropic 2.12.0 types/beta/beta_thread_continue_params.py).
    """
    thread = body.get("thread") if request.api == MESSAGES else None
    if not isinstance(thread, Mapping) or thread.get("type") != "continue":
        return request
    return replace(request, previous_id=str(thread.get("previous_message_id")))


def as_array(api: str, path: str, request: Request) -> bool:
    """Whether a stream is asked for as the elements of one JSON array."""
    return request.stream and arrays(api, path)


def arrays(api: str, path: str) -> bool:
    """Whether what comes under this path is an array: of the elements of a stream, or of one error."""
    mark = wire(api).serving.array_unless
    return bool(mark) and mark not in path.partition("?")[2] and wire(api).read_request({}, path).stream


def chosen(stories: Sequence[Story], request: Request) -> Story:
    """The scenario that a request means: the only one, or the one that its model is named after.

    Raises:
        RequestError: several are served, and the model names none of them.
    """
    if len(stories) == 1:
        return stories[0]
    named = request.continuation_token or request.previous_id
    mark = read_mark(named) if named else None
    names = (request.model or "", mark.story if mark is not None else "")
    found = next((story for story in stories if story.name in names), None)
    if found is None:
        raise RequestError(f"no scenario is called {names[0][:80]!r}; the model is expected to be one of "
                           f"{', '.join(story.name for story in stories)}", 404, code="model_not_found",
                           param="model" if request.api == RESPONSES else None)
    return found


def shown_path(path: str) -> str:
    """The path and the query, its secret values left out."""
    own, mark, query = path.partition("?")
    pairs = [pair for pair in query.split("&") if pair]
    kept = [pair if not SECRET.search(pair.partition("=")[0]) else f"{pair.partition('=')[0]}=…" for pair in pairs]
    return own + mark + "&".join(kept)


def shown_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers by lower-case name, those that hold credentials left out."""
    return {name.lower(): value for name, value in headers.items() if not SECRET.search(name)}
