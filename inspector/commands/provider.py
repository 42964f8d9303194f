"""The scripted provider.

Further down: the provider's own lists as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

import click

from inspector.commands import common
from inspector.provider.faults import FAULTS
from inspector.provider.reading import shipped
from inspector.provider.scenarios import Story


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
        from inspector.provider import reading

        common.write(reading.schema())
        return
    from inspector.provider import reading


    if names:
        common.write(listed())
        return
    if tools is not None:
        common.write_json(tools_of(reading.story_of([tools])[0]))
        return
    from inspector.provider.dialects import dialects_named
    from inspector.provider.server import address, origin, serve

    address(listen)
    allowed = origin(cors) if cors is not None else None
    if profile is not None:
        dialects_named((profile,))
    serve(reading.story_of(scenarios), listen, profile, pace, click.echo, cors=allowed)


# -- The provider's own lists as text --------------------------------------------------------------------------------
# Scenarios, faults, the tools of a scenario.


def listed() -> str:
    """Every scenario that comes with the program, and every fault."""
    stories, width = shipped().values(), max(map(len, (*shipped(), *FAULTS)))
    lines = ["Scenarios", *(f"  {story.name:<{width}}  {story.story}" for story in stories), ""]
    lines += ["Faults", *(f"  {row.name:<{width}}  {row.does}" for row in FAULTS.values())]
    return "\n".join(lines) + "\n"


def tools_of(story: Story) -> list[dict[str, Any]]:
    """The tools of a scenario, each with its result, as `inspector run --tools` takes them."""
    return [{"name": each.tool.name, "description": each.tool.description, "parameters": each.tool.schema,
             "result": each.result} for each in story.tools]
