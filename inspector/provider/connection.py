"""One connection of a client: the incoming request, and the outgoing reply with its network faults.

The request determines the wire format and the scenario; `AnsweredRequest` stores what a test may examine. A reply is
sent unchanged, slowly, in torn pieces, or with a connection that ends early.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web

from inspector.provider.checks import check
from inspector.provider.frames import JSON
from inspector.provider.listener import break_off
from inspector.provider.place import StoryPlace, read_mark
from inspector.provider.reply import Reply
from inspector.provider.scenarios import Kind, Story
from loop_core.errors import CallerError
from loop_core.formats import FORMATS
from loop_core.json_parser import from_json
from loop_core.values import Request
from loop_core.wire import wire
from loop_core.wire.demands import RequestError
from loop_core.wire.serving import Moment


@dataclass(frozen=True, slots=True, eq=False)
class AnsweredRequest:
    """One request that a server answered, without its credentials."""

    api: str
    path: str
    """The path and the query, without secret values."""
    headers: Mapping[str, str]
    """Lower-case name of a header -> its value, without secret headers."""
    body: Any
    request: Request
    """The request in the form that all wire formats share."""
    scenario: str = ""
    status: int = 200
    place: StoryPlace = field(default_factory=StoryPlace)
    """The place in the scenario: the answer, the part of it that the client had, and the purpose of the request."""
    segment: int = 0
    tokens: int = 0
    """The number of tokens of the answer, as the scripted provider counts them."""
    ended: Moment | None = None
    """How the answer really ended, whatever the reply said; None for an error."""
    faults: tuple[str, ...] = ()
    error: str = ""

    @property
    def answer(self) -> int:
        """The index of the scenario's answer to the request."""
        return self.place.answer

    @property
    def kind(self) -> Kind:
        """The purpose of the request: a new answer, the rest of one, or its calls again."""
        return self.place.kind


def api_of(path: str) -> str | None:
    """The format that is served under this path; None if none is."""
    return next((api for api in FORMATS if any(pattern.search(path) for pattern in wire(api).paths)), None)


def polled_response(path: str) -> tuple[str, str] | None:
    """The format and id of a stored response that this path fetches; None if none is."""
    for api in FORMATS:
        found = re.search(form.poll, path) if (form := wire(api).serving).poll else None
        if found:
            return api, found["id"]
    return None


def read_body(body: bytes) -> Mapping[str, Any]:
    """The request body as a JSON object. Raises `CallerError` if it is not one."""
    try:
        value = from_json(body)
    except ValueError as why:
        raise CallerError(f"the body of the request is not JSON: {why}") from None
    if not isinstance(value, dict):
        raise CallerError("the body of the request is not a JSON object")
    return value


def is_array_path(api: str, path: str) -> bool:
    """Whether the answers under this path are arrays: of stream elements, or of one error."""
    mark = wire(api).serving.array_unless
    return bool(mark) and mark not in path.partition("?")[2] and wire(api).read_request({}, path).stream


def story_for(stories: Sequence[Story], request: Request) -> Story:
    """The scenario of a request: the only one, or the one that its model names. Raises `RequestError` if several are
    served and the model names none."""
    if len(stories) == 1:  # any model is accepted, because many clients require certain model names
        return stories[0]
    named = request.continuation_token or request.previous_id
    mark = read_mark(named) if named else None
    names = (request.model or "", mark.story if mark is not None else "")
    found = next((story for story in stories if story.name in names), None)
    if found is None:
        raise RequestError(f"no scenario is called {names[0][:80]!r}; the model is expected to be one of "
                           f"{', '.join(story.name for story in stories)}", 404, code="model_not_found")
    return found


# -- paths that are not served ---------------------------------------------------------------------------------------

DOUBLE_VERSION = re.compile(r"^[^?#]*?/(v1(?:beta)?)/(v1(?:beta)?)(?=[/?#]|$)")
"""Matches a path with two versions, as when a client appends a version to a base URL that ends with one."""
ANY = next(iter(FORMATS))
"""The format of errors under an unknown path."""


def format_of(path: str, headers: Mapping[str, str]) -> str:
    """The format of errors under this path: the served one, else that of the path or the client, else `ANY`."""
    rows = [(api, wire(api).serving) for api in reversed(tuple(FORMATS))]
    near = next((api for api, row in rows if row.near is not None and row.near.search(path)), None)
    client = next((api for api, row in rows if row.client_header and row.client_header in headers), None)
    return api_of(path) or near or client or ANY


# -- tokens of a request ---------------------------------------------------------------------------------------------


def counting_format(path: str) -> str | None:
    """The format whose token-counting endpoint has this path; None if none does."""
    return next((api for api in FORMATS if (count := wire(api).serving.count) and count.path.search(path)), None)


def count_request(api: str, body: Mapping[str, Any], path: str) -> tuple[Request, Callable[[int], dict[str, Any]]]:
    """The request whose tokens are counted, and the answer's form. Raises `RequestError` if the server refuses it."""
    row = wire(api).serving.count
    assert row is not None  # noqa: S101  (`counting_format` has found it)
    inner = row.inner(body)
    found = inner if isinstance(inner, Mapping) else {}
    check(api, found, optional=row.optional)
    request = wire(api).read_request(found, path)
    named = row.path.search(path)
    model = named.groupdict().get("model") if named else None
    return replace(request, model=model or request.model), row.answer


# -- The reply: frames, the waits between them, and the ways in which a connection ends early ------------------------
# Times are multiplied by `pace`; with 0 there are no waits.


async def send(http: web.Request, reply: Reply, pace: float = 1.0) -> web.StreamResponse:
    """Sends a reply. If the reply requires it, the connection is broken instead of ended."""
    response = web.StreamResponse(status=reply.status, headers=reply.headers)
    if reply.headers["content-type"] == JSON:
        # providers send whole bodies with a length, and streams in chunks
        response.content_length = sum(map(len, reply.frames))
    await response.prepare(http)
    if not await _send_frames(http, response, reply, pace):
        await response.write_eof()
    return response


async def _send_frames(http: web.Request, response: web.StreamResponse, reply: Reply, pace: float) -> bool:
    """Sends the frames with the network faults; returns True if the connection is closed."""
    how, last = reply.sending, len(reply.frames) - 1
    for number, frame in enumerate(reply.frames):
        if how.stall is not None and number == min(how.stall[0], last):
            await asyncio.sleep(how.stall[1] * pace)
            await break_off(http, hard=False)
            return True
        if how.slow:
            await asyncio.sleep(how.slow * pace)
        if how.drop == number:
            await break_off(http, hard=False)
            return True
        # a reply may have fewer frames than the fault names
        inside = how.reset is not None and number == min(how.reset, last)
        for piece in _pieces(frame[: len(frame) // 2] if inside else frame, how.torn):
            await response.write(piece)
            if how.torn is not None:
                await asyncio.sleep(0)  # lets a client in the same process read each piece separately
        if inside:
            await break_off(http, hard=True)
            return True
    # The reply has no frame of this number, so the connection ends after the last frame.
    if how.drop is not None:
        await break_off(http, hard=False)
    return how.drop is not None


def _pieces(data: bytes, size: int | None) -> Iterator[bytes]:
    if size is None:
        yield data
        return
    for at in range(0, len(data), size):
        yield data[at : at + size]
