"""The scripted provider."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import click

from inspector.commands import common


@click.command(context_settings=common.CONTEXT)
@click.argument("scenarios", nargs=-1, metavar="[SCENARIO…]")
@click.option("--listen", metavar="HOST:PORT", default="127.0.0.1:8765", show_default=True,
              help="Where it listens, on this machine alone; port 0 takes a free one.")
@click.option("--profile", metavar="NAME", help="Speak as this server does (vllm, openrouter, anthropic+open…).")
@click.option("--pace", type=click.FloatRange(0, 1000), default=1.0, show_default=True,
              help="Multiplies every wait; 0 waits for nothing.")
@click.option("--cors", metavar="ORIGIN", help="Lets the pages of this origin (https://app.example) read the answers.")
@click.option("--list", "names", is_flag=True, help="Lists the scenarios that come with the program, and the faults.")
@click.option("--schema", is_flag=True, help="Prints the JSON schema of scenario files.")
@click.option("--tools", metavar="SCENARIO", help="Prints the tools of a scenario for `inspector run --tools FILE`.")
def provider(
    scenarios: Sequence[str], listen: str, profile: str | None, pace: float, cors: str | None, names: bool,
    schema: bool, tools: str | None,
) -> None:
    """Plays scenarios to any client, in every wire format, with the faults that real servers have.

    A SCENARIO is a name or a YAML file; without one all that come with the program are served, chosen by the model.
    """
    if not isfinite(pace):
        raise click.BadParameter("expected a number from 0 to 1000", param_hint="--pace")
    if schema:
        from inspector.provider import model

        common.write(model.schema())
        return
    from inspector.provider import reading
    from inspector.provider.document import listed, tools_of

    if names:
        common.write(listed())
        return
    if tools is not None:
        common.write_json(tools_of(reading.story_of([tools])[0]))
        return
    from inspector.dialects.table import chosen
    from inspector.provider.listening import address, origin, serve

    address(listen)
    allowed = origin(cors) if cors is not None else None
    if profile is not None:
        chosen((profile,))
    serve(reading.story_of(scenarios), listen, profile, pace, click.echo, cors=allowed)
