"""The scripted provider as an aiohttp application: its paths, models, replies and stored responses.

The only state of the application is how often it has refused a request; all else is derived from the request.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from aiohttp import web

from inspector.provider import connection, frames
from inspector.provider.checks import check, match_json, members_in_path, stop_strings
from inspector.provider.hosts import UNKNOWN_HOST, is_own_host
from inspector.provider.place import locate, read_mark
from inspector.provider.reply import Reply, refusal, reply_at, request_tokens, stored_reply, with_request_id
from inspector.provider.scenarios import Story
from inspector.sessions import redact
from loop_core.errors import CallerError
from loop_core.values import Request
from loop_core.wire import wire
from loop_core.wire.body import compact
from loop_core.wire.demands import RequestError
from loop_core.wire.servers import OLLAMA
from loop_core.wire.serving import DATE, MADE

MOST_BYTES = 64 * 1024 * 1024
CACHED_REPLIES = 64
"""The largest number of encoded replies that are cached for repeated requests."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
REMEMBERED_REFUSALS = 1024
"""The largest number of refused requests that are remembered until they are repeated."""


def application(
    stories: Sequence[Story],
    *,
    profile: str | None = None,
    pace: float = 1.0,
    observer: Callable[[connection.AnsweredRequest], None],
    cors: str | None = None,
) -> web.Application:
    """An application that serves these scenarios. `observer` is called with every request, in order. Waits are
    multiplied by `pace`. Web pages of the origin `cors` may read the answers; without it none may."""
    served = _Handlers(tuple(stories), profile, pace, observer)
    app = web.Application(client_max_size=MOST_BYTES, middlewares=[_refuse_other_hosts, _refuse_broken_bodies])
    app.router.add_get("/", served.greet)
    app.router.add_get("/{version:v1|v1beta}/models", served.models)
    app.router.add_get("/{version:v1|v1beta}/models/{name}", served.model)
    app.router.add_get("/api/tags", served.tags)
    app.router.add_get("/api/version", served.version)
    app.router.add_post("/api/show", served.show)
    # aiohttp takes the first route that matches, so the paths of all formats come after the fixed ones.
    app.router.add_options("/{path:.*}", served.options)
    app.router.add_get("/{path:.*}", served.poll)
    app.router.add_post("/{path:.*}", served.answer)
    app.router.add_route("*", "/{path:.*}", served.refuse_path)
    if cors is not None:
        app.on_response_prepare.append(_allow_origin(cors))
    return app


@web.middleware
async def _refuse_other_hosts(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuses a request for another host name, because a page that rebound its name could read the answers."""
    if is_own_host(request.headers.getall("host", ())):
        return await handler(request)
    status, why = UNKNOWN_HOST
    return web.Response(status=status, text=f"{status}: {why}\n")


@web.middleware
async def _refuse_broken_bodies(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuses a request whose body contradicts its headers; status 500 would make the client send it again."""
    try:
        return await handler(request)
    except web.RequestPayloadError:
        return web.Response(status=400, text="400: the body of the request does not have the named coding or length\n")


def _allow_origin(origin: str) -> Callable[[web.Request, web.StreamResponse], Any]:
    """A middleware that lets the pages of one origin read the answers."""

    async def allow(http: web.Request, response: web.StreamResponse) -> None:
        # Set for all origins, because a cache could otherwise give this answer to another origin (Fetch, "CORS protocol
        # and HTTP caches").
        response.headers["vary"] = "Origin"
        if http.headers.get("origin") != origin:
            return
        response.headers["access-control-allow-origin"] = origin
        # Without this header a page's script sees only the safelisted headers, and no request id (Fetch).
        response.headers["access-control-expose-headers"] = "*"
        if http.method == "OPTIONS":
            response.headers["access-control-allow-methods"] = METHODS
            wanted = http.headers.get("access-control-request-headers")
            if wanted is not None:
                response.headers["access-control-allow-headers"] = wanted

    return allow


METHODS = "GET, POST, OPTIONS"


class _Handlers:
    def __init__(
        self, stories: tuple[Story, ...], profile: str | None, pace: float,
        observer: Callable[[connection.AnsweredRequest], None],
    ) -> None:
        self.stories, self.profile, self.pace = stories, profile, pace
        self._seeds = [story.seed for story in stories]
        self._observer = observer
        self._kept: OrderedDict[Any, Reply] = OrderedDict()
        self._refused: OrderedDict[Any, int] = OrderedDict()

    # -- lists -------------------------------------------------------------------------------------------------------

    async def greet(self, http: web.Request) -> web.StreamResponse:
        names = "\n".join(f"{story.name}: {story.story}" for story in self.stories)
        return web.Response(text=f"The scripted provider of Loop Inspector.\n\n{names}\n")

    async def tags(self, http: web.Request) -> web.StreamResponse:
        return web.json_response(ollama_tags(self.stories))

    async def version(self, http: web.Request) -> web.StreamResponse:
        return web.json_response({"version": OLLAMA_VERSION})

    async def show(self, http: web.Request) -> web.StreamResponse:
        try:
            body = connection.read_body(await http.read())
            name = body.get("model") or body.get("name")
            if not isinstance(name, str):
                raise RequestError("model: expected string, but it is missing")
            story = connection.story_for(self.stories, Request(OLLAMA, model=name))
        except CallerError as why:
            return await self._send(http, OLLAMA, _error(OLLAMA, why))
        return web.json_response(ollama_model(story))

    async def models(self, http: web.Request) -> web.StreamResponse:
        api = connection.format_of(http.raw_path, http.headers)
        return await self._document(http, api, models_document(self.stories))

    async def model(self, http: web.Request) -> web.StreamResponse:
        name, api = http.match_info["name"], connection.format_of(http.raw_path, http.headers)
        story = next((story for story in self.stories if story.name == name), None)
        if story is None:
            why = RequestError(f"no scenario is called {name[:80]!r}", 404, code="model_not_found")
            return await self._send(http, api, _error(api, why))
        return await self._document(http, api, model_document(story))

    async def options(self, http: web.Request) -> web.StreamResponse:
        """Answers OPTIONS; the headers of `--cors` say whether a page may send requests."""
        return web.Response(status=204, headers={"allow": METHODS})  # the answer to a CORS preflight as well

    async def refuse_path(self, http: web.Request) -> web.StreamResponse:
        """Answers requests to unknown paths, with any method."""
        path, api = http.raw_path, connection.format_of(http.raw_path, http.headers)
        masked_path, doubled = redact.url(path), connection.DOUBLE_VERSION.search(path)
        why = f"nothing is served under {masked_path}"
        if doubled:
            why += f": /{doubled[1]} comes twice: remove it from the base URL"
        elif http.method not in ("GET", "POST"):
            why += f" for {http.method}"
        return await self._send(http, api, refusal(api, 404, why))

    # -- answers -----------------------------------------------------------------------------------------------------

    async def answer(self, http: web.Request) -> web.StreamResponse:
        """The answer to one request of any format."""
        path = http.raw_path
        counting_api = None if connection.DOUBLE_VERSION.search(path) else connection.counting_format(path)
        # A request that counts tokens does not advance the scenario.
        if counting_api is not None:
            return await self._count_tokens(http, counting_api)
        api = connection.api_of(path)
        if api is None or connection.polled_response(path) is not None or connection.DOUBLE_VERSION.search(path):
            return await self.refuse_path(http)
        request, story, body = Request(api), "", None
        sent = await http.read()
        try:
            body = connection.read_body(sent)
            check(api, body, optional=members_in_path(path), path=path)
            request = wire(api).read_request(body, path)
            found = connection.story_for(self.stories, request)
            story = found.name
            reply = self._reply(found, request, request.stream and connection.is_array_path(api, path))
        except CallerError as why:
            reply = _error(api, why)
            self._note(http, api, body, request, story, reply, str(why))
            return await self._send(http, api, reply, sent)
        # SDKs repeat a request with the same bytes, which distinguish a repetition from a new request.
        if reply.refusal is not None and self._refuses((path, sent), reply.refusals):
            reply = replace(reply.refusal, place=reply.place, segment=reply.segment, faults=reply.faults)
        self._note(http, api, body, request, story, reply)
        return await self._send(http, api, reply, sent)

    async def _count_tokens(self, http: web.Request, api: str) -> web.StreamResponse:
        sent = await http.read()
        try:
            request, document = connection.count_request(api, connection.read_body(sent), http.raw_path)
            if request.model is not None:
                connection.story_for(self.stories, request)
        except CallerError as why:
            return await self._send(http, api, _error(api, why), sent)
        return await self._document(http, api, document(request_tokens(request)), sent)

    async def poll(self, http: web.Request) -> web.StreamResponse:
        """Answers with a stored response, which is always complete, whether it was made in the background or not."""
        api, ident = connection.polled_response(http.path) or (connection.ANY, "")
        mark = None if connection.DOUBLE_VERSION.search(http.raw_path) else read_mark(ident)
        story = next((story for story in self.stories if mark is not None and story.name == mark.story), None)
        if mark is None or story is None or mark.place.answer >= len(story.answers):
            return await self.refuse_path(http)
        ident = ident.removeprefix(wire(api).serving.answer_id.partition("{")[0])  # the format's prefix: `resp_`
        reply = stored_reply(api, story, mark, ident, self.profile)
        self._note(http, api, None, Request(api, model=story.name, max_tokens=mark.cap or None), story.name, reply)
        return await self._send(http, api, reply)

    async def _document(
        self, http: web.Request, api: str, value: Mapping[str, Any], body: bytes = b""
    ) -> web.StreamResponse:
        reply = Reply(200, {"content-type": frames.JSON}, (compact(value).encode(),))
        return await self._send(http, api, reply, body)

    async def _send(self, http: web.Request, api: str, reply: Reply, body: bytes = b"") -> web.StreamResponse:
        if reply.status >= 400 and connection.is_array_path(api, http.raw_path):
            reply = replace(reply, frames=(b"[" + b"".join(reply.frames) + b"]",))  # as if streams are arrays
        named = with_request_id(api, reply, *self._seeds, http.method, redact.url(http.raw_path), body)
        return await connection.send(http, named, self.pace)

    def _reply(self, story: Story, request: Request, array: bool) -> Reply:
        """The reply to a request; equal replies are encoded once and cached."""
        place = locate(story, request)
        match_json(request, story.answers[place.answer].text, story.name)
        # The key contains everything on which a reply depends besides the place.
        key = (story.name, request.api, request.stream, array, request.model, request.max_tokens, request.tool_choice,
               place, request_tokens(request), stop_strings(request))
        if key in self._kept:
            self._kept.move_to_end(key)  # the least recently used one is dropped first
            return self._kept[key]
        reply = reply_at(story, request, place, request.stream, self.profile)
        if array and reply.status < 400:
            reply = replace(reply, frames=frames.as_array(reply.frames), headers={**reply.headers,
                                                                                  "content-type": "application/json"})
        self._kept[key] = reply
        if len(self._kept) > CACHED_REPLIES:
            self._kept.popitem(last=False)
        return reply

    def _refuses(self, key: Any, times: int) -> bool:
        """Whether the same request is refused once more. The count starts again after the request was answered."""
        count = self._refused.pop(key, 0)
        if count >= times:
            return False
        self._refused[key] = count + 1
        if len(self._refused) > REMEMBERED_REFUSALS:
            self._refused.popitem(last=False)
        return True

    def _note(
        self, http: web.Request, api: str, body: Any, request: Request, story: str, reply: Reply, error: str = ""
    ) -> None:
        headers = {name.lower(): value for name, value in http.headers.items() if not redact.secret_name(name)}
        self._observer(connection.AnsweredRequest(
            api, redact.url(http.raw_path), headers, body, request, story, reply.status, reply.place, reply.segment,
            reply.tokens, reply.end, reply.faults, error))


def _error(api: str, why: CallerError) -> Reply:
    error = why if isinstance(why, RequestError) else RequestError(str(why))
    return refusal(api, error.status, str(error), code=error.code, param=error.param)


# -- The scenarios as models: documents in the shape of each server --------------------------------------------------


OLLAMA_VERSION = "0.12.11"
"""The version of Ollama's server whose API the scripted provider speaks."""
DETAILS: Mapping[str, Any] = {
    "parent_model": "", "format": "gguf", "family": "scripted", "families": ["scripted"], "parameter_size": "1B",
    "quantization_level": "F16",
}
CONTEXT_TOKENS = 131_072
"""The context length in tokens that models report. No scenario fills it."""


def model_document(story: Story) -> dict[str, Any]:
    """A scenario as a model object that OpenAI's, Anthropic's and Google's clients can read."""
    name = story.name
    return {
        "id": name, "object": "model", "created": MADE, "owned_by": "loop-inspector",
        "type": "model", "display_name": story.story, "created_at": DATE,
        "name": f"models/{name}", "displayName": name, "description": story.story,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }


def models_document(stories: Sequence[Story]) -> dict[str, Any]:
    """All scenarios as one list of models for the same clients."""
    rows = [model_document(story) for story in stories]
    # `data` is OpenAI's and Anthropic's name of the list, `models` Google's
    return {"object": "list", "data": rows, "models": rows, "has_more": False, "first_id": rows[0]["id"],
            "last_id": rows[-1]["id"]}


def ollama_tags(stories: Sequence[Story]) -> dict[str, Any]:
    """The scenarios as Ollama's models."""
    return {"models": [{
        "name": story.name, "model": story.name, "modified_at": DATE, "size": len(_script(story)),
        "digest": hashlib.sha256(_script(story)).hexdigest(), "details": DETAILS,
    } for story in stories]}


def ollama_model(story: Story) -> dict[str, Any]:
    """One of Ollama's models."""
    calls = any(answer.calls for answer in story.answers)
    thinks = any(answer.reasoning for answer in story.answers)
    return {
        "modelfile": f"FROM {story.name}\n", "parameters": "", "template": "{{ .Prompt }}", "license": "",
        "details": DETAILS,
        "model_info": {"general.architecture": "scripted", "general.basename": story.name,
                       "scripted.context_length": CONTEXT_TOKENS},
        "capabilities": ["completion", *(["tools"] if calls else []), *(["thinking"] if thinks else [])],
        "modified_at": DATE,
    }


def _script(story: Story) -> bytes:
    """A scenario's answers as bytes, for the size and digest of a model file."""
    return repr(story.answers).encode()
