"""What is configured, where things are kept, and the schemas of documents and files."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import click

from inspector.commands import common


@click.command(context_settings=common.CONTEXT)
@click.option("--json", "as_json", is_flag=True, help="One JSON object: name -> value and origin.")
def config(as_json: bool) -> None:
    """Shows every configured value and where it comes from."""
    from inspector.config import every, load

    rows = every(load())
    if as_json:
        common.write_json({name: {"value": each.value, "origin": each.origin} for name, each in rows})
        return
    for name, each in rows:
        value = "none" if each.value is None else each.value
        common.write(f"{name} = {value}  ({each.origin})\n")


@click.command(context_settings=common.CONTEXT)
@click.argument("what", type=click.Choice(("config", "project", "data", "state")), required=False)
def locate(what: str | None) -> None:
    """Prints where things are kept: config, project, data or state; without a word, all of them."""
    import os

    from inspector.config import places

    found = {
        "config": places.user_file(os.environ), "project": places.project_file() or f"./{places.PROJECT_FILE}",
        "data": places.data_folder(os.environ), "state": places.state_folder(),
    }
    for name, place in found.items():
        if what in (None, name):
            common.write(f"{place}\n" if what else f"{name}  {place or 'none'}\n")


SCHEMAS: Mapping[str, str] = {
    "explain": "inspector.report.schemas:explain_schema",
    "session": "inspector.sessions.native:schema",
}
"""What has a JSON Schema -> the function that makes it; imported when it is wanted."""


@click.command(context_settings=common.CONTEXT)
@click.argument("name", type=click.Choice(tuple(SCHEMAS)))
def schema(name: str) -> None:
    """Prints a JSON Schema: of the document of `explain --json`, or of a line of a session file."""
    module, function = SCHEMAS[name].split(":")
    common.write_json(getattr(import_module(module), function)())
