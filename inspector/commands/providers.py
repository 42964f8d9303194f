"""One intended answer as every provider would have told of it."""

from __future__ import annotations

from collections.abc import Sequence

import click

from inspector.commands import common


@click.command(context_settings=common.CONTEXT)
@click.argument("scenario", required=False, metavar="[SCENARIO]")
@click.option("--budget", type=click.IntRange(1, 1_000_000), metavar="N",
              help="The output cap in tokens (ESTIMATED); the scenario's own by default.")
@common.POLICY
@click.option("--only", multiple=True, metavar="NAME",
              help="An API, a server, or api/server, such as vllm; may be repeated.")
@click.option("--each", is_flag=True, help="One line for each dialect, also for those that say the same.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (loop-inspector/providers/1).")
@click.option("--save", metavar="FOLDER", help="Writes each row as a session file, to be opened with inspector.")
@click.option("--list", "names", is_flag=True, help="Lists the scenarios and the dialects with their sources.")
def providers(
    scenario: str | None, budget: int | None, policy: str | None, only: Sequence[str], each: bool, as_json: bool,
    save: str | None, names: bool,
) -> None:
    """Shows one intended answer as every provider would have told of it."""
    from inspector.provider import dialect_output, dialects, scenarios
    from inspector.provider.dialect_rows import rows

    if names:
        common.write(dialect_output.list_text())
        return
    chosen = scenarios.scenario_named(scenario or next(iter(scenarios.SCENARIOS)))
    settings = common.configured(policy)[1]
    told = rows(chosen, budget, dialects.dialects_named(tuple(only)), settings)
    if save is not None:
        from inspector.provider.dialect_output import save_all

        click.echo(f"inspector: {len(save_all(told, save))} sessions written to {save}", err=True)
    if as_json:
        common.write_json(dialect_output.document(told, chosen, settings.policy))
    else:
        from shutil import get_terminal_size

        common.write(dialect_output.text(told, settings.policy, get_terminal_size((120, 24)).columns, each))
