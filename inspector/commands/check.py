"""`inspector check` and `inspector rule`: a verdict on recorded sessions for CI, and the meaning of its rules."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from inspector import commands
from loop_core.errors import CallerError

FOUND = 1
"""The exit code where something was found at or above `--fail-on`."""


@click.command(context_settings=commands.CONTEXT)
@commands.paths(required=True)
@commands.reading
@click.option("--select", metavar="RULE,…", multiple=True, help="Only these rules; a name may contain *.")
@click.option("--ignore", metavar="RULE,…", multiple=True, help="All but these rules.")
@click.option("--filter", "wanted", metavar="EXPR", default="", help="Only turns with a matching answer.")
@click.option("--baseline", metavar="FILE", help="Leave out the problems listed in it.")
@click.option("--write-baseline", metavar="FILE", help="Write all problems to this file, and exit with 0.")
@click.option("--format", "form", metavar="FORM", default="text", show_default=True,
              type=click.Choice(("text", "json", "junit", "sarif", "github", "md", "csv", "html")),
              help="text, json, junit, sarif, github or md; with --stats text, json, csv or html.")
@click.option("--stats", is_flag=True, help="How turns ended, by model, agent and day, and the tokens that were lost.")
@click.option("--fail-on", type=click.Choice(("error", "warning", "info", "never")), default="error",
              show_default=True, help="Exit with 1 if a problem is at least this severe.")
@click.option("--jobs", type=click.IntRange(1), metavar="N",
              help="Processes; by default one for each core, or one if there is little to read.")
def check(
    paths: Sequence[str], api: str | None, profile: str | None, select: Sequence[str], ignore: Sequence[str],
    wanted: str, baseline: str | None, write_baseline: str | None, form: str, stats: bool, fail_on: str,
    jobs: int | None,
) -> None:
    """Checks recorded sessions: exit 0 if nothing is wrong, 1 where something is, 2 if a file is unreadable.

    Reads files and folders, on all cores. `inspector rule` lists the rules.
    """
    from inspector.check import report_forms
    from inspector.check import stats as statistics
    from inspector.check.examine import check_paths
    from inspector.check.rules import selected_rules
    from inspector.report import filters

    forms = statistics.FORMS if stats else report_forms.FORMS
    if form not in forms:
        raise click.UsageError(f"--format {form}: {'with' if stats else 'without'} --stats, one of {', '.join(forms)}")
    unused = [option for option, given in (("--select", select), ("--ignore", ignore), ("--baseline", baseline),
                                           ("--write-baseline", write_baseline)) if given]
    if stats and unused:
        raise click.UsageError(f"{unused[0]} is about problems: it does not go with --stats, which counts turns")
    ids = selected_rules(_split(select), _split(ignore))
    if wanted:
        filters.parse(wanted)  # before anything is read: a wrong expression costs nothing
    known = report_forms.read_baseline(baseline) if baseline else frozenset()
    with commands.progress_bar(sys.stderr) as progress:
        report = check_paths(commands.located_all(paths), ids, api=api, profile=profile, wanted=wanted, jobs=jobs,
                             stdin=commands.stdin_of(paths), progress=progress)
    if write_baseline:
        _write(write_baseline, commands.without_credentials(report_forms.baseline_text(report)))
        commands.say([f"{write_baseline}: {len(report.problems):,} problems are known now"])
        sys.exit(commands.UNREADABLE if report.errors else commands.READ)
    report = report.keep(lambda problem: report_forms.is_new(known, problem))
    commands.write(forms[form](report))
    commands.say(report.errors)
    if not report.turns and not report.errors:
        commands.say(["no turn was read, so nothing was checked: are these the right files?"])
    bad = fail_on != "never" and any(
        report_forms.ORDER.index(problem.severity) >= report_forms.ORDER.index(fail_on) for problem in report.problems)
    sys.exit(commands.UNREADABLE if report.errors else FOUND if bad and not stats else commands.READ)


def _write(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as why:
        raise CallerError(f"{path}: cannot be written: {why.strerror or why}") from None


def _split(given: Sequence[str]) -> list[str]:
    return [name.strip() for each in given for name in each.split(",") if name.strip()]


@click.command(context_settings=commands.CONTEXT)
@click.argument("name", required=False, metavar="[RULE]")
@click.option("--json", "as_json", is_flag=True, help="The rules as one JSON list.")
def rule(name: str | None, as_json: bool) -> None:
    """Explains a rule of `inspector check`; without one, lists them all."""
    from inspector.check.rules import RULES, rule_named

    picked = [rule_named(name)] if name else list(RULES.values())
    if as_json:
        commands.write_json([{"id": each.id, "severity": each.severity.value, "title": each.title,
                              "about": each.about, "example": each.example, "fix": each.fix} for each in picked])
    elif name:
        each = picked[0]
        commands.write(f"{each.id} ({each.severity.value}): {each.title}\n\n{each.about}\n\n"
                       f"Example: {each.example}\n\nWhat to do: {each.fix}\n")
    else:
        width = max(map(len, RULES))
        for each in picked:
            commands.write(f"{each.id:<{width}}  {each.severity.value:<7}  {each.title}\n")
