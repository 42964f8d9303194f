"""The commands on recorded sessions, the samples, the configuration, the places of files, and the schemas."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module

import click

from inspector import commands
from loop_core.errors import CallerError


@commands.on_recordings(required=False, name="view")
@commands.POLICY
@click.option("--ascii", "plain", is_flag=True, help="Draw with ASCII characters only.")
@click.option("--follow", is_flag=True, help="Show additions to the file as they are written.")
@click.option("--theme", metavar="NAME",
              help="A built-in theme (inspector-contrast, inspector-ansi …) or one of Textual.")
def view_command(
    paths: Sequence[str], api: str | None, profile: str | None, policy: str | None, plain: bool, follow: bool,
    theme: str | None,
) -> None:
    """Opens the app on recorded sessions; without a path, on a table of those found here."""
    paths = commands.followed_paths(paths) if follow else commands.located_all(paths)
    config, settings = commands.configure(policy)
    if not commands.has_terminal():
        if paths and not commands.is_terminal(sys.stdout):
            raise click.UsageError("the app needs a terminal; `inspector explain` gives the same as text")
        commands.say(["this terminal cannot show screens: here is the report" if paths else
                      "this terminal cannot show screens; name one of these paths for its report"])
        given = {"paths": paths, "api": api, "profile": profile, "policy": policy, "follow": follow} if paths else {}
        if not paths:
            _write_newest()
        click.get_current_context().invoke(explain if paths else samples, **given)
        return
    from inspector.tui.launch import check_config, run

    check_config(config)
    errors, code = run(list(paths), api=api, profile=profile, ascii=plain or config.ascii, settings=settings,
                       theme=theme or config.theme, keys=config.keys, follow=follow)
    commands.say(errors)
    sys.exit(code)


@commands.on_recordings()
@commands.POLICY
@click.option("--filter", "wanted", metavar="EXPR",
              help="Show only what matches: 'stop:max_tokens held tool:write_*'.")
@click.option("--all", "everything", is_flag=True,
              help="Also explain what needs no attention: turns of several files, and rounds of tools.")
@commands.TURN
@click.option("--json", "as_json", is_flag=True, help="One JSON document (loop-inspector/explain/2).")
@click.option("--follow", is_flag=True, help="Then print a line for each turn whose verdict changes, until Ctrl-C.")
def explain(
    paths: Sequence[str], api: str | None, profile: str | None, policy: str | None, wanted: str | None,
    everything: bool, turn_number: int | None, as_json: bool, follow: bool,
) -> None:
    """Explains recorded sessions as linear text, the verdict first; several files, as a table of their turns first."""
    if turn_number is not None and (wanted is not None or everything or as_json or follow):
        raise click.UsageError("--turn explains one turn as text: leave out --filter, --all, --json and --follow")
    if follow and as_json:
        raise click.UsageError("--follow writes lines: it does not go with --json")
    found = None
    if wanted is not None:
        from inspector.report import filters

        found = filters.parse(wanted)  # before anything is read, so that a wrong expression is reported at once
    settings = commands.configure(policy)[1]
    watch = None
    if follow:
        from inspector.commands.explain_follow import start

        paths = commands.followed_paths(paths, folders=True)
        session_view, watch = start(paths, api, profile, settings)
        loaded = session_view.replay.case.recording
    else:
        # A document does not show the steps, which take a third of the memory besides the recording.
        loaded, session_view = commands.open_view(paths, api, profile, settings, keep_steps=not as_json)
    only = None if found is None else filters.responses(found, session_view)
    if found is not None and (searched := filters.search_note(found, filters.values_of(session_view))):
        commands.say([f"--filter: {searched}"])
    if as_json:
        from inspector.report.explain_document import document_text, members

        document_members = members(session_view, None if found is None or only is None else (found.text, only))
        commands.write_pieces(document_text(document_members))
    else:
        from inspector.report.explain import WIDE, ReadOptions, files_in, text, turn_text

        many, read = files_in(session_view) > 1, ReadOptions(paths, api, profile)
        commands.write(turn_text(session_view, turn_number, read) if turn_number is not None else
                       text(session_view, only, read, everything=everything or not many,
                            table=commands.output_width(WIDE) if many else 0, fold=only is None and not everything))
    code = commands.complain(loaded)
    if watch is not None:
        watch()
    sys.exit(code)


@commands.on_recordings()
@commands.POLICY
@click.option("--to", "form", metavar="FORM", default="",
              help="Required: bug, html, md, text, json, session, curl, fixture, otlp or otlp-content.")
@commands.TURN
@click.option("--response", "response_number", type=commands.WholeRange(1), metavar="N", help="The response's number.")
@click.option("--out", "folder", metavar="DIR", default=".",
              help="Where the files go; the last folder of the path is created if missing. A name such as report.html "
                   "is the file of a form that writes one. - is standard output.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def export(
    paths: Sequence[str], api: str | None, profile: str | None, policy: str | None, form: str, turn_number: int | None,
    response_number: int | None, folder: str, force: bool,
) -> None:
    """Writes a session, a response or a bug report, without credentials."""
    from inspector import export

    if not form:
        raise click.UsageError(f"--to is missing: one of {', '.join(export.FORMS)}")
    export.check_form(form, turn_number, response_number)
    loaded, session_view = commands.open_view(paths, api, profile, commands.configure(policy)[1])
    code = commands.complain(loaded)
    if code and not session_view.responses:  # an empty page would look like a report
        sys.exit(code)
    files = export.form_files(session_view, form, turn_number, response_number)
    if folder == "-":
        commands.write_files(files)
    else:
        written = export.write(files, folder, force)
        for path in written.paths:
            commands.write(f"{path}\n")
        commands.say([f"{folder}: this folder is new"] if written.new_folder else [])
    sys.exit(code)


MOST_NAMED = 20
"""The largest number of sessions of agents that are named where the app cannot list them."""


def _write_newest() -> None:
    """Writes the paths of the newest sessions that agents wrote on this machine."""
    from inspector.report.lines.spans import one_line
    from inspector.sessions.folders import transcripts

    every = transcripts(os.environ)
    for each in every[:MOST_NAMED]:
        commands.write(f"{one_line(each.path)}  {each.agent or 'recording'}\n")
    if len(every) > MOST_NAMED:
        commands.say([f"these are the newest {MOST_NAMED} of {len(every):,} sessions: `inspector search` finds all"])


@click.command(context_settings=commands.CONTEXT)
def samples() -> None:
    """Lists the sample sessions with their paths."""
    from inspector.report.lines.spans import one_line
    from inspector.sessions.folders import samples as embedded

    for sample in embedded():
        commands.write(f"{sample.path}  {one_line(sample.title)}\n")


SEARCH_SCHEMA = "loop-inspector/search/1"


@click.command(context_settings=commands.CONTEXT)
@click.argument("words", nargs=-1, required=True, metavar="WORDS…")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (loop-inspector/search/1).")
def search(words: Sequence[str], as_json: bool) -> None:
    """Searches the sessions that agents wrote on this machine; exits with 1 if no turn contains every word."""
    from inspector.config import files
    from inspector.report.lines.glyphs import copies_left_out
    from inspector.report.lines.spans import count_of, one_line
    from inspector.report.turn_index import TurnIndex, read_rows, searched_words
    from inspector.report.turn_table import rows_once
    from inspector.sessions.folders import transcripts

    settings = commands.configure(None)[1]
    if files.cache_folder(os.environ) is None:
        raise CallerError(f"{files.CACHE_VARIABLE} is empty, so there is no index to search")
    paths = [each.path for each in transcripts(os.environ)]
    batches = list(read_rows(paths, None, None, settings))
    rows = [row for batch in batches for _, group in batch.rows for row in group]
    once = {(row.paths[0], row.number) for row in rows_once(rows)}
    index = TurnIndex(None, None, settings)
    found_turns = index.search(" ".join(words), paths)
    index.close()
    note = batches[-1].note or index.note
    hits = [each for each in found_turns if (each.file, each.number) in once]
    missed = (f"no turn of {count_of(len(paths), 'transcript')} on this machine contains every word"
              if searched_words(" ".join(words)) else "nothing to look for: the words contain no letter and no digit")
    if path := next((word for word in words if os.path.exists(word)), ""):
        missed += f"; {one_line(path)} was taken for a word: `inspector explain PATH --filter WORDS` searches a path"
    left_out = copies_left_out(len(found_turns) - len(hits))
    found = [f"{count_of(len(hits), 'turn')}{left_out}"] if left_out else []
    commands.say([f"nothing was searched: {note}"] if note else found if hits else [missed])
    commands.write_result(
        as_json, lambda: {"schema": SEARCH_SCHEMA, "hits": [each._asdict() for each in hits]},
        lambda: "".join(f"{each.file}  turn {each.number}: {one_line(each.excerpt)}\n" for each in hits))
    sys.exit(commands.UNREADABLE if note else 0 if hits else 1)


# -- The configuration, the places of files, and the schemas of documents and files ----------------------------------


@click.command(context_settings=commands.CONTEXT)
@click.option("--json", "as_json", is_flag=True, help="One JSON object: name -> value and origin.")
def config(as_json: bool) -> None:
    """Shows every configured value and where it comes from."""
    from inspector.config import every, load
    from inspector.tui.launch import check_config

    check_config(configuration := load())
    rows = every(configuration)
    if as_json:
        commands.write_json({name: {"value": each.value, "origin": each.origin} for name, each in rows})
        return
    for name, each in rows:
        value = "none" if each.value is None else each.value
        if isinstance(value, Mapping):
            value = ", ".join(f"{kind} {price}" for kind, price in value.items())
        commands.write(f"{name} = {value}  ({each.origin})\n")


@click.command(context_settings=commands.CONTEXT)
@click.argument("what", type=click.Choice(("config", "project", "data", "state", "cache")), required=False)
def locate(what: str | None) -> None:
    """Prints where files are kept: config, project, data, state or cache; without an argument, all of them."""
    from inspector.config import files

    found = {
        "config": files.user_file(os.environ), "project": files.project_file() or f"./{files.PROJECT_FILE}",
        "data": files.data_folder(os.environ), "state": files.state_folder(), "cache": files.cache_folder(os.environ),
    }
    for name, place in found.items():
        if what in (None, name):
            commands.write(f"{'' if what else f'{name}  '}{place or 'none'}\n")


@click.command(context_settings=commands.CONTEXT)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: files and wire formats.")
def formats(names: tuple[str, ...], as_json: bool) -> None:
    """Lists the files and wire formats that are read, with what each keeps. A NAME, of a format or an agent, shows the
    details: how its files begin, and where they are stored."""
    from inspector.sessions.importers.known_formats import formats_document, formats_text

    commands.write_result(as_json, lambda: formats_document(names), lambda: formats_text(names))


SCHEMAS: Mapping[str, str] = {
    "explain": "inspector.report.schemas:explain_schema",
    "session": "inspector.sessions.native_models:json_schema",
}
"""Name of a JSON Schema -> the module and function that make it, imported when the schema is printed."""


@click.command(context_settings=commands.CONTEXT)
@click.argument("name", type=click.Choice(tuple(SCHEMAS)))
def schema(name: str) -> None:
    """Prints a JSON Schema: of the document of `explain --json`, or of a line of a session file."""
    module, function = SCHEMAS[name].split(":")
    commands.write_json(getattr(import_module(module), function)())


# -- Checking recorded sessions for CI, and explaining the rules -----------------------------------------------------

PROBLEMS_FOUND = 1
"""The exit code if a problem was found that is at least as severe as `--fail-on`."""


@commands.on_recordings()
@click.option("--select", metavar="RULE,…", multiple=True, help="Only these rules; a name may contain *.")
@click.option("--ignore", metavar="RULE,…", multiple=True, help="All but these rules.")
@click.option("--filter", "wanted", metavar="EXPR", default="", help="Only turns with a matching answer.")
@click.option("--baseline", metavar="FILE", help="Leave out the problems listed in it.")
@click.option("--write-baseline", metavar="FILE", help="Write all problems to this file (- is standard output), and "
              "exit with 0.")
@click.option("--format", "form", metavar="FORM", default="text", show_default=True,
              type=click.Choice(("text", "json", "junit", "sarif", "github", "md", "csv", "html")),
              help="text, json, junit, sarif, github or md; with --stats text, json, csv or html.")
@click.option("--stats", is_flag=True, help="How turns ended, by model, agent and day, and the tokens that were lost.")
@click.option("--fail-on", type=click.Choice(("error", "warning", "info", "never")),
              help="Exit with 1 if a problem is at least this severe; by default error.")
@click.option("--jobs", type=commands.WholeRange(1), metavar="N",
              help="Processes; by default one for each core, or one if there is little to read.")
def check(
    paths: Sequence[str], api: str | None, profile: str | None, select: Sequence[str], ignore: Sequence[str],
    wanted: str, baseline: str | None, write_baseline: str | None, form: str, stats: bool, fail_on: str | None,
    jobs: int | None,
) -> None:
    """Checks recorded sessions: exit 1 if a problem is severe enough (--fail-on), 2 if a file is unreadable, else 0.

    Reads files and folders, on all cores. `inspector rule` lists the rules.
    """
    from inspector.check import check_paths, report_forms
    from inspector.check.rules import selected_rules

    forms = report_forms.FORMS
    if stats:
        from inspector.check import stats as statistics  # imported here, because a check does not need it

        forms = statistics.FORMS
    if form not in forms:
        raise click.UsageError(f"--format {form}: {'with' if stats else 'without'} --stats, one of {', '.join(forms)}")
    unused = [option for option, value in (("--select", select), ("--ignore", ignore), ("--baseline", baseline),
                                           ("--write-baseline", write_baseline), ("--fail-on", fail_on)) if value]
    if stats and unused:
        raise click.UsageError(f"{unused[0]} is about problems: it does not go with --stats, which counts turns")
    ids = selected_rules(_split(select), _split(ignore))
    if wanted:
        from inspector.report import filters

        searched = filters.search_note(filters.parse(wanted), ())  # before any file is read, to report errors at once
        commands.say([f"--filter: {searched}"] if searched else [])
    fingerprints = report_forms.read_baseline(baseline) if baseline else frozenset()
    if write_baseline:
        report_forms.check_baseline_file(write_baseline)
    if found := commands.configured_verdicts():
        commands.say([f"judged under the default settings, as on every machine: explain and the app use {found}"])
    with commands.progress_bar(sys.stderr) as progress:
        report = check_paths(commands.located_all(paths), ids, api=api, profile=profile, filter_text=wanted, jobs=jobs,
                             stdin=commands.stdin_of(paths), progress=progress)
    if write_baseline:
        from inspector.export import save_output

        text = report_forms.baseline_text(report)
        if write_baseline == "-":
            commands.write(commands.ascii_json(text))
        save_output(write_baseline, lambda: commands.without_credentials(text), "--write-baseline")
        commands.say([f"{write_baseline}: known problems written: {len(report.problems):,}"])
        sys.exit(commands.UNREADABLE if report.errors else commands.READ)
    before, report = report.problems, report.keep(lambda problem: problem.fingerprint not in fingerprints)
    commands.write_report(forms[form](report))
    known = len(before) - len(report.problems)
    commands.say([*report.errors, *report.notices, *[f"{baseline}: known problems left out: {known:,}"][:known]])
    if not report.turns and not report.errors:
        empty = f"no turn passes the filter {wanted}" if wanted else "no turn was read"
        commands.say([f"{empty}, so nothing was checked{'' if wanted else ': are these the right files?'}"])
    least = fail_on or "error"
    bad = least != "never" and any(
        report_forms.ORDER.index(problem.severity) <= report_forms.ORDER.index(least) for problem in report.problems)
    sys.exit(commands.UNREADABLE if report.errors else PROBLEMS_FOUND if bad and not stats else commands.READ)


def _split(values: Sequence[str]) -> list[str]:
    return [name.strip() for each in values for name in each.split(",") if name.strip()]


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
