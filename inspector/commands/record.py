"""The command that records what an agent and its providers send each other: `inspector record`."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence

import click

from inspector import commands

SCRIPTS = (".py", ".js", ".mjs", ".cjs", ".ts", ".sh")
"""How the names of scripts end."""


@click.command(context_settings={**commands.CONTEXT, "ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[COMMAND…]")
@click.option("--to", metavar="URL", help="The base URL of the agent's provider, if it is not the provider's own.")
@click.option("--listen", metavar="HOST:PORT", default="127.0.0.1:0", show_default=True,
              help="Where to listen, on this machine only; port 0 picks a free port.")
@click.option("--record", "path", metavar="FILE", help="The new session file; by default one in the data folder.")
def record(command: Sequence[str], to: str | None, listen: str, path: str | None) -> None:
    """Records the traffic of an agent in a session file, with all bytes of every answer.

    COMMAND is the agent with its arguments. It runs as without this program, but environment variables lead it through
    a proxy on this machine. Its exit code is returned. Without COMMAND the variables are printed, and Ctrl-C ends the
    recording.
    """
    if command and command[0].startswith("-"):
        raise click.UsageError(f"no option {command[0]}; options of the agent follow its name")
    from inspector.config.files import recordings_folder
    from inspector.live import proxy
    from inspector.live.recorder import Recorder, time_name
    from inspector.live.upstreams import upstreams

    asked = upstreams(to, os.environ)
    names = _names(command)
    own = recordings_folder(os.environ) / f"{time_name()}-{'-'.join(names)}.jsonl"
    recorder = Recorder(path or own, title=" ".join(names))
    requests = code = 0
    try:
        requests, code = proxy.record(command, listen, asked, recorder, lambda line: commands.say([line]),
                                      commands.write)
    finally:
        recorder.close()
        if not requests and os.path.isfile(recorder.path):  # neither a device nor what the agent deleted
            os.unlink(os.path.realpath(recorder.path))
    commands.say([_outcome(requests, recorder.failure, recorder.path)])
    sys.exit(code)


def _names(command: Sequence[str]) -> list[str]:
    """The names of the agent and of the script that it runs, if it does. Its other arguments may hold credentials."""
    script = [word for word in command[1:] if word.endswith(SCRIPTS) and os.path.isfile(word)]
    return [os.path.basename(word) for word in (*command[:1], *script[:1])] or ["traffic"]


def _outcome(requests: int, failure: str | None, path: str) -> str:
    """The last line: what was recorded, and how to open it."""
    if failure is not None or not requests:
        return failure or "no request came to the proxy, so nothing is recorded; see docs/recording.md"
    what = "1 request recorded; open it" if requests == 1 else f"{requests:,} requests recorded; open them"
    return f"{what} with: inspector {shlex.quote(path)}"
