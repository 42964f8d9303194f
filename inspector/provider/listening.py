"""The provider in the foreground: where it listens, what it says at first and of every request.

Further down: base URLs of a running provider, as each SDK takes them, and how that is said.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import re
import shlex
import signal
from collections.abc import Callable, Sequence

from aiohttp import web

from inspector.provider.app import application
from inspector.provider.asked import Seen
from inspector.provider.reply import speaks
from inspector.provider.story import Story
from inspector.report.lines.spans import one_line
from loop_core.errors import CallerError
from loop_core.wire import FORMATS, wire

# -- Base URLs of a running provider, as each SDK takes them, and how that is said -----------------------------------


def bases(url: str) -> dict[str, str]:
    """Wire format -> base URL."""
    return {api: url + wire(api).serving.base for api in FORMATS}


def pointing(url: str) -> dict[str, str]:
    """Wire format -> Python that makes the client."""
    return {api: wire(api).serving.client.format(base=base) for api, base in bases(url).items()}

Say = Callable[[str], None]


def address(listen: str) -> tuple[str, int]:
    """Host and port of `--listen`.

    Raises:
        CallerError: it is no address of this machine itself, or has no port.
    """
    host, colon, port = listen.rpartition(":")
    host = host.strip("[]")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise CallerError(f"--listen {listen}: expected HOST:PORT, such as 127.0.0.1:8765")
    if host == "localhost":
        return "127.0.0.1", int(port)
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise CallerError(f"--listen {listen}: expected an address of this machine alone (127.0.0.1, ::1 or "
                          "localhost); the provider asks nobody for a key")
    return host, int(port)


_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9a-f:]+\](:[0-9]{1,5})?", re.IGNORECASE)


def origin(cors: str) -> str:
    """The origin of `--cors`, as browsers spell it.

    Raises:
        CallerError: it is none; all of them at once are none either.
    """
    if not _ORIGIN.fullmatch(cors):
        raise CallerError(f"--cors {cors}: expected one origin without a path, such as https://app.example:3000")
    return cors.lower()


def serve(
    stories: Sequence[Story], listen: str, profile: str | None, pace: float, say: Say, *, cors: str | None = None
) -> None:
    """Serves until an interrupt or a termination.

    Raises:
        CallerError: the address cannot be listened on.
    """
    host, port = address(listen)
    app = application(stories, profile=profile, pace=pace, told=lambda seen: say(told(seen)), cors=cors)
    asyncio.run(_serve(app, host, port, lambda url: say(greeting(url, stories, profile))))


async def _serve(app: web.Application, host: str, port: int, ready: Say) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as why:
            taken = "the port is in use" if why.errno == errno.EADDRINUSE else why.strerror or str(why)
            raise CallerError(f"--listen {host}:{port}: {taken}") from None
        bound = runner.addresses[0][1]
        ready(f"http://[{host}]:{bound}" if ":" in host else f"http://{host}:{bound}")
        await stop.wait()
    finally:
        await runner.cleanup()


def greeting(url: str, stories: Sequence[Story], profile: str | None) -> str:
    """What is said when it listens: the clients that ask it, the scenarios, a request to begin with."""
    lines = [f"The scripted provider listens on {url}", ""]
    for api, code in pointing(url).items():
        dialect = speaks(api, True, profile or (stories[0].profile if len(stories) == 1 else None))
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
    """A word of a shell's command line: what a scenario holds is nobody's command."""
    return shlex.quote(one_line(text))


def told(seen: Seen) -> str:
    """One line about one request."""
    if seen.error:
        return one_line(f"{seen.api}: {seen.status}: {seen.error}")
    what = f"{seen.scenario} answer {seen.answer} segment {seen.segment} ({seen.kind})"
    cap = f" of {seen.request.max_tokens:,}" if seen.request.max_tokens else ""
    came = f"{seen.status}" if seen.status >= 400 else f"{seen.tokens:,}{cap} tokens, {seen.ended}"
    faults = f"; {', '.join(seen.faults)}" if seen.faults else ""
    return one_line(f"{seen.api}: {what}: {came}{faults}")
