"""Runs the scripted provider: in the foreground for a command, or in a thread for tests.

    with serving("cut-call") as provider: …
"""

from __future__ import annotations

import asyncio
import logging
import re
import shlex
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from inspector.provider.app import application
from inspector.provider.connection import AnsweredRequest
from inspector.provider.hosts import address, url_host
from inspector.provider.listener import ProblemLog, ending_signal, listening
from inspector.provider.reading import story_of
from inspector.provider.reply import dialect_for
from inspector.provider.scenarios import Story
from inspector.report.lines.spans import one_line
from loop_core.errors import CallerError
from loop_core.formats import FORMATS
from loop_core.wire import wire

# -- the addresses of the server -------------------------------------------------------------------------------------


def bases(url: str) -> dict[str, str]:
    """Wire format -> base URL."""
    return {api: url + wire(api).serving.base for api in FORMATS}


def client_code(url: str) -> dict[str, str]:
    """Wire format -> Python code that creates a client for it."""
    return {api: wire(api).serving.client.format(base=base) for api, base in bases(url).items()}


# -- in the foreground -----------------------------------------------------------------------------------------------

Say = Callable[[str], None]


_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9a-f:]+\](:[0-9]{1,5})?", re.IGNORECASE)


def origin(cors: str) -> str:
    """The origin from `--cors`, as browsers write it. Raises `CallerError` if it is not an origin; `*` is refused,
    because it would permit every page."""
    if not _ORIGIN.fullmatch(cors):
        raise CallerError(f"--cors {cors}: expected one origin without a path, such as https://app.example:3000")
    return cors.lower()


def serve(
    stories: Sequence[Story], listen: str, profile: str | None, pace: float, say: Say, *, cors: str | None = None
) -> None:
    """Serves until an interrupt or a termination signal. Raises `CallerError` if it cannot listen on the address."""
    host, port = address(listen)
    app = application(stories, profile=profile, pace=pace,
                      observer=lambda request: say(request_line(request)), cors=cors)

    trouble = ProblemLog(lambda line: say(one_line(line)))

    async def run() -> None:
        ending = ending_signal()
        async with listening(app, trouble, host, port, grace=0.5, **_PATIENT) as bound:
            say(greeting(f"http://{url_host(host)}:{bound}", stories, profile))  # the system chooses, if the port is 0
            await ending.wait()

    asyncio.run(run())


# A client that is being debugged may wait long between two requests. A handler that waits for a slow frame ends when
# its client leaves, while aiohttp by default lets the handler finish.
_PATIENT: Mapping[str, Any] = {"patience": 3600, "handler_cancellation": True}


def greeting(url: str, stories: Sequence[Story], profile: str | None) -> str:
    """The lines printed when the server listens: the clients, the scenarios, and a first request."""
    lines = [f"The scripted provider listens on {url}", ""]
    for api, code in client_code(url).items():
        dialect = dialect_for(api, True, profile or (stories[0].profile if len(stories) == 1 else None))
        lines += [f"{api}, as {dialect.name}", f"    {code}"]
    several = len(stories) > 1
    lines += ["", "Scenarios, chosen by the model that is named:" if several else "Scenario, whatever the model:"]
    lines += [f"    {one_line(story.name):<16} {one_line(story.story)}" for story in stories]
    first = stories[0]
    cap = f" --set max_tokens={first.max_tokens}" if first.max_tokens else ""
    if first.tools:
        lines += ["", f"    inspector provider --tools {_word(first.name)} > tools.json"]
        cap += " --tools tools.json"
    lines += ["", f"    inspector run --api {next(iter(FORMATS))} --model {_word(first.name)} "
                  f"--base-url {url}/v1{cap} --prompt {_word(first.prompt)}", "", "Ctrl-C ends it."]
    return "\n".join(lines)


def _word(text: str) -> str:
    """A word quoted for a shell, so that no text of a scenario is run as a command."""
    return shlex.quote(one_line(text))


def request_line(request: AnsweredRequest) -> str:
    """One line about one request."""
    if request.error:
        return one_line(f"{request.api}: {request.status}: {request.error}")
    what = f"{request.scenario} answer {request.answer} segment {request.segment} ({request.kind})"
    cap = f" of {request.request.max_tokens:,}" if request.request.max_tokens else ""
    outcome = f"{request.status}" if request.status >= 400 else f"{request.tokens:,}{cap} tokens, {request.ended}"
    faults = f"; {', '.join(request.faults)}" if request.faults else ""
    return one_line(f"{request.api}: {what}: {outcome}{faults}")


# -- in a thread -----------------------------------------------------------------------------------------------------


ScenarioSource = Story | str | Mapping[str, Any]
"""A scenario as an argument: an object that was read, a name or a path, or the content of a scenario file."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Provider:
    """A running provider."""

    url: str
    """The server's URL without a path."""
    stories: tuple[Story, ...]
    seen: list[AnsweredRequest]

    @property
    def bases(self) -> Mapping[str, str]:
        """Wire format -> base URL, in the form that the official SDKs take."""
        return bases(self.url)


@contextmanager
def serving(
    *scenarios: ScenarioSource, profile: str | None = None, pace: float = 1.0, port: int = 0, cors: str | None = None
) -> Iterator[Provider]:
    """Starts a provider on this machine that plays these scenarios, by default all built-in ones.

    It ends with the block. If there are several, the `model` of a request names the scenario. Waits are multiplied by
    `pace`. Pages of the origin `cors` may read the answers.

    Raises:
        LoopError: a scenario or the profile cannot be used, the port is taken, or the server cannot run.
    """
    stories = story_of(scenarios)
    requests: list[AnsweredRequest] = []
    app = application(stories, profile=profile, pace=pace, observer=requests.append, cors=cors)
    trouble = ProblemLog(logging.getLogger(__name__).warning)
    began: Future[tuple[int, Callable[[], object]]] = Future()

    async def play() -> None:
        ending, loop = asyncio.Event(), asyncio.get_running_loop()
        async with listening(app, trouble, "127.0.0.1", port, grace=0.1, **_PATIENT) as bound:
            # the only method of a loop that another thread may call
            began.set_result((bound, lambda: loop.call_soon_threadsafe(ending.set)))
            await ending.wait()

    def run() -> None:
        try:
            asyncio.run(play())
        except Exception as why:  # noqa: BLE001  (any kind, because the caller waits for the result)
            said = one_line(f"the provider cannot run: {type(why).__name__}: {why}")
            if began.done():
                trouble("ended", said)
            else:
                began.set_exception(why if isinstance(why, CallerError) else CallerError(said))

    # Daemon: a program that fails to leave the block can still end.
    thread = threading.Thread(target=run, name="scripted provider", daemon=True)
    thread.start()
    bound, end = began.result()
    try:
        yield Provider(f"http://127.0.0.1:{bound}", stories, requests)
    finally:
        end()
        thread.join()
