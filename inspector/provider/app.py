"""The scripted provider as one aiohttp application: paths, models, replies and their memory.

It remembers only how often it has refused a request; whatever else it has to know stands in the request.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, MutableSequence, Sequence
from typing import Any

from aiohttp import web

from inspector.provider import frames
from inspector.provider.asked import (
    POLLED,
    Seen,
    api_of,
    as_array,
    chosen,
    in_thread,
    read_body,
    shown_headers,
    shown_path,
)
from inspector.provider.place import locate, read_mark
from inspector.provider.reply import Reply, answered, asked_tokens, fetched, refusal
from inspector.provider.sending import send
from inspector.provider.story import Story
from loop_core.errors import CallerError
from loop_core.frozen import replace
from loop_core.values import Request
from loop_core.wire import wire
from loop_core.wire.servers import CHAT, RESPONSES

MOST_BYTES = 64 * 1024 * 1024
"""Of a request."""
KEPT = 64
"""Replies that are kept as they were encoded."""
WAITING = 1024
"""Refused requests whose repetition is waited for."""
OLD, MADE = 1_700_000_000, "2023-11-14T22:13:20Z"
"""When every model was made: a constant, since nothing here has a clock."""


def application(
    stories: Sequence[Story],
    *,
    profile: str | None = None,
    pace: float = 1.0,
    seen: MutableSequence[Seen] | None = None,
    told: Callable[[Seen], None] | None = None,
) -> web.Application:
    """An application that serves these scenarios.

    `seen` takes every request in order, and `told` is called with it. Waits are multiplied by `pace`.
    """
    served = _Served(tuple(stories), profile, pace, seen, told)
    app = web.Application(client_max_size=MOST_BYTES)
    app.router.add_get("/", served.greet)
    app.router.add_get("/{version:v1|v1beta}/models", served.models)
    app.router.add_get("/{version:v1|v1beta}/models/{name}", served.model)
    app.router.add_get("/api/tags", served.tags)
    app.router.add_get("/{path:.*}", served.poll)
    app.router.add_post("/{path:.*}", served.answer)
    return app


class _Served:
    """The handlers, and what they share."""

    def __init__(
        self, stories: tuple[Story, ...], profile: str | None, pace: float, seen: MutableSequence[Seen] | None,
        told: Callable[[Seen], None] | None,
    ) -> None:
        self.stories, self.profile, self.pace = stories, profile, pace
        self._seen, self._told = seen, told
        self._kept: OrderedDict[Any, Reply] = OrderedDict()
        self._refused: OrderedDict[Any, int] = OrderedDict()

    # -- lists -------------------------------------------------------------------------------------------------------

    async def greet(self, http: web.Request) -> web.StreamResponse:
        """What is served here."""
        names = "\n".join(f"{story.name}: {story.story}" for story in self.stories)
        return web.Response(text=f"The scripted provider of Loop Inspector.\n\n{names}\n")

    async def tags(self, http: web.Request) -> web.StreamResponse:
        """The scenarios as Ollama's models."""
        names = [story.name for story in self.stories]
        return web.json_response({"models": [
            {"name": name, "model": name, "modified_at": MADE, "size": 0, "digest": "", "details": {}} for name in names
        ]})

    async def models(self, http: web.Request) -> web.StreamResponse:
        """The scenarios as models, in one document that OpenAI's, Anthropic's and Google's clients read."""
        rows = [_model(story) for story in self.stories]
        return web.json_response({
            "object": "list", "data": rows, "models": rows, "has_more": False, "first_id": rows[0]["id"],
            "last_id": rows[-1]["id"],
        })

    async def model(self, http: web.Request) -> web.StreamResponse:
        """One scenario as a model."""
        name = http.match_info["name"]
        story = next((story for story in self.stories if story.name == name), None)
        if story is None:
            return await send(http, refusal(CHAT, 404, f"no scenario is called {name!r}"))
        return web.json_response(_model(story))

    # -- answers -----------------------------------------------------------------------------------------------------

    async def answer(self, http: web.Request) -> web.StreamResponse:
        """The answer to one request of any format."""
        path = http.raw_path
        api = api_of(path)
        if api is None or POLLED.search(path):
            return await send(http, refusal(CHAT, 404, f"nothing is served under {shown_path(path)}"))
        request, story, body = Request(api), "", None
        sent = await http.read()
        try:
            body = read_body(sent)
            request = in_thread(wire(api).read_request(body, path), body)
            found = chosen(self.stories, request)
            story = found.name
            if request.n != 1:
                raise CallerError("one answer is given, and several are asked for")
            if request.max_tokens is not None and request.max_tokens < 1:
                raise CallerError(f"the output limit is {request.max_tokens}: expected 1 or more")
            reply = self._reply(found, request, as_array(api, path, request))
        except CallerError as why:
            reply = replace(refusal(api, 404 if not story and body is not None else 400, str(why)))
            self._note(http, api, body, request, story, reply, str(why))
            return await send(http, reply)
        if reply.refusal is not None and self._refuses((path, sent), reply.refusals):
            reply = replace(reply.refusal, place=reply.place, segment=reply.segment, faults=reply.faults)
        self._note(http, api, body, request, story, reply)
        return await send(http, reply, self.pace)

    async def poll(self, http: web.Request) -> web.StreamResponse:
        """A response that was made before, in the background or not: the same one, whole."""
        found = POLLED.search(http.path)
        mark = read_mark(found["id"]) if found else None
        story = next((story for story in self.stories if mark is not None and story.name == mark.story), None)
        if mark is None or story is None or mark.place.answer >= len(story.answers):
            return await send(http, refusal(RESPONSES, 404, f"nothing is served under {shown_path(http.raw_path)}"))
        reply = fetched(story, mark, http.path.rpartition("/resp_")[2], self.profile)
        request = Request(RESPONSES, model=story.name, max_tokens=mark.cap or None)
        self._note(http, RESPONSES, None, request, story.name, reply)
        return await send(http, reply, self.pace)

    def _reply(self, story: Story, request: Request, array: bool) -> Reply:
        """The reply to a request; one that was made before is not encoded again."""
        place = locate(story, request)
        # Whatever a reply depends on besides the place is in here.
        key = (story.name, request.api, request.stream, array, request.model, request.max_tokens, request.tool_choice,
               place, asked_tokens(request))
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        made = answered(story, request, place, request.stream, self.profile)
        if array and made.status < 400:
            made = replace(made, frames=frames.as_array(made.frames), headers={**made.headers,
                                                                               "content-type": "application/json"})
        self._kept[key] = made
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return made

    def _refuses(self, key: Any, times: int) -> bool:
        """Whether the same request is refused once more; when it is answered, it is counted anew."""
        count = self._refused.pop(key, 0)
        if count >= times:
            return False
        self._refused[key] = count + 1
        if len(self._refused) > WAITING:
            self._refused.popitem(last=False)
        return True

    def _note(
        self, http: web.Request, api: str, body: Any, request: Request, story: str, reply: Reply, error: str = ""
    ) -> None:
        if self._seen is None and self._told is None:
            return
        seen = Seen(api, shown_path(http.raw_path), shown_headers(http.headers), body, request, story, reply.status,
                    reply.place, reply.segment, reply.tokens, reply.ended, reply.faults, error)
        if self._seen is not None:
            self._seen.append(seen)
        if self._told is not None:
            self._told(seen)


def _model(story: Story) -> dict[str, Any]:
    name = story.name
    return {
        "id": name, "object": "model", "created": OLD, "owned_by": "loop-inspector",
        "type": "model", "display_name": story.story, "created_at": MADE,
        "name": f"models/{name}", "displayName": name, "description": story.story,
        "supportedGenerationMethods": ["generateContent"],
    }
