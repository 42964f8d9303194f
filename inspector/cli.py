"""The command line: argument parsing and exit codes, nothing else.

    inspector [PATH…]            opens the app; without a path, a picker with the embedded samples
    inspector explain PATH…      the same facts as linear text, or as one JSON document
    inspector replay PATH…       a re-run over the recording with other limits or another policy
    inspector policies PATH…     what each policy would have done with every turn, as a matrix
    inspector tune PATH…         a grid of limits over recordings: what each cell makes of each turn
    inspector branches PATH…     the saved runs of a session, its marks, notes and breakpoints
    inspector export PATH…       a page, Markdown, a session file, a curl command, a bug report
    inspector run --api ID …     a live turn, headless, recorded
    inspector config, locate     what is configured, and where things are kept
    inspector samples            lists the embedded sample sessions
    inspector providers          one intended answer as every provider would have told of it

Exit codes: 0 read, whatever was found; 2 bad usage or an input that is unreadable. `run` exits by its end state.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from inspector import __version__
from loop_core.errors import LoopError

if TYPE_CHECKING:
    from inspector.config import Config
    from inspector.replay import Case
    from inspector.report.facts import View
    from inspector.sessions.values import Loaded
    from inspector.settings import Settings
    from inspector.whatif.store import Store
    from inspector.whatif.tree import Tree

READ, UNREADABLE = 0, 2


class Inspector(click.Group):
    """Takes `inspector PATH…` for `inspector view PATH…`: a first word that is no command is a path."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Puts `view` before arguments that begin with a path, or with nothing at all."""
        own = {name for param in self.params for name in param.opts} | {"--help", "-h", "--version"}
        first = next((arg for arg in args if not arg.startswith("-") or arg == "-"), None)
        if not any(arg in own for arg in args[:1]) and (first is None or first not in self.commands):
            args = ["view", *args]
        return super().parse_args(ctx, args)


CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 80}


Command = TypeVar("Command", bound=Callable[..., Any])


def _paths(required: bool) -> Callable[[Command], Command]:
    return click.argument("paths", nargs=-1, required=required, metavar="PATH…" if required else "[PATH…]")


def _reading(command: Command) -> Command:
    for option in (
        click.option("--profile", metavar="NAME", help="Who speaks, if the host does not tell (vllm, openrouter…)."),
        click.option("--api", metavar="ID", help="The wire format, if the content does not tell."),
    ):
        command = option(command)
    return command


_POLICY = click.option("--policy", metavar="NAME", help="A loop's beliefs: strict, unless the configuration says else.")


@click.group(cls=Inspector, context_settings=CONTEXT, invoke_without_command=True)
@click.version_option(__version__, prog_name="loop-inspector")
def main() -> None:
    """The debugger for agent turns: why a response stopped, and what the loop did.

    \b
    inspector                      pick an embedded sample session
    inspector some.har             open recorded traffic
    inspector explain some.har     the same as text (--json for programs)
    inspector replay some.har --set continuation_max_attempts=5
    """


@main.command(name="view", context_settings=CONTEXT)
@_paths(required=False)
@_reading
@_POLICY
@click.option("--ascii", "plain", is_flag=True, help="Draw with ASCII characters only.")
def view_command(paths: Sequence[str], api: str | None, profile: str | None, policy: str | None, plain: bool) -> None:
    """Opens the app on recorded sessions; without a path, on a picker."""
    import os

    os.environ.setdefault("TEXTUAL_FPS", "120")  # read when Textual is imported: smoother keys for no more CPU
    paths = _located(paths)
    config, settings = _configured(policy)
    if paths and not _terminal():
        raise click.UsageError("the app needs a terminal; `inspector explain` gives the same as text")
    from inspector.tui.app import run

    sys.exit(run(list(paths), api=api, profile=profile, ascii=plain or config.ascii, settings=settings,
                 theme=config.theme, keys=config.keys))


@main.command(context_settings=CONTEXT)
@_paths(required=True)
@_reading
@_POLICY
@click.option("--filter", "wanted", metavar="EXPR", help="Only what it finds: 'stop:max_tokens held tool:write_*'.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (loop-inspector/explain/1).")
def explain(
    paths: Sequence[str], api: str | None, profile: str | None, policy: str | None, wanted: str | None, as_json: bool
) -> None:
    """Explains recorded sessions as linear text, the verdict first."""
    found = None
    if wanted is not None:
        from inspector import filters

        found = filters.parse(wanted)  # before anything is read: a wrong expression costs nothing
    loaded, shown = _open(paths, api, profile, _configured(policy)[1])
    only = None if found is None else filters.responses(found, shown)
    if as_json:
        from inspector.report.document import document

        _write_json(document(shown, None if found is None or only is None else (found.text, only)))
    else:
        from inspector.report.text import text

        _write(text(shown, only))
    sys.exit(_complain(loaded))


@main.command(context_settings=CONTEXT)
@_paths(required=True)
@_reading
@_POLICY
@click.option("--set", "assignments", multiple=True, metavar="NAME=VALUE",
              help="A limit (continuation_max_attempts=5), max_tokens, policy, profile, seam or method; may be "
              "repeated. NAME=VALUE@K holds from step K on.")
@click.option("--from-step", type=click.IntRange(1), metavar="K", help="What is set holds from step K on.")
@click.option("--simulate", is_flag=True, help="Cut the known output again where the budget changes it.")
@click.option("--branch", "base", metavar="RUN", help="Start from a saved run, by its name or key.")
@click.option("--against", metavar="RUN", help="Compare with this run: original, or a saved one.")
@click.option("--save", is_flag=True, help="Keep the run among the saved branches of the session.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (loop-inspector/replay/1).")
def replay(
    paths: Sequence[str], api: str | None, profile: str | None, policy: str | None, assignments: Sequence[str],
    from_step: int | None, simulate: bool, base: str | None, against: str | None, save: bool, as_json: bool,
) -> None:
    """Runs recorded turns again under other limits or another policy, beside the original."""
    from inspector.settings import parse_stretches
    from inspector.whatif import comparison
    from inspector.whatif.tree import ORIGINAL, Tree

    wanted = [*([] if policy is None else [f"policy={policy}"]), *(["simulate=yes"] if simulate else [])]
    stretches = parse_stretches([*wanted, *assignments], from_step)
    stdin = _stdin(paths)
    loaded, original = _open(paths, api, profile, _configured(None)[1], stdin)
    tree, store = _saved(loaded, original, stdin) if base or against or save else (Tree(original), None)
    start = tree.find(base or ORIGINAL)
    node = tree.tried(start, stretches)
    if store is not None and save:
        from inspector.whatif.saved import keep

        told = len(store.notices)
        keep(store, node)
        _say(store.notices[told:])
    made = tree.beside(node, tree.find(against) if against else start)
    if as_json:
        _write_json(comparison.values(made))
    else:
        _write(comparison.text(made))
    sys.exit(_complain(loaded))


@main.command(context_settings=CONTEXT)
@_paths(required=True)
@_reading
@click.option("--policy", "names", multiple=True, metavar="NAME",
              help="A policy to lay beside strict; may be repeated. All of them without it.")
@click.option("--set", "assignments", multiple=True, metavar="NAME=VALUE", help="A limit; may be repeated.")
@click.option("--simulate", is_flag=True, help="Cut the known output again where the budget changes it.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (loop-inspector/policies/1).")
def policies(
    paths: Sequence[str], api: str | None, profile: str | None, names: Sequence[str], assignments: Sequence[str],
    simulate: bool, as_json: bool,
) -> None:
    """Lays recorded turns under every policy: what each loop would have run, held, continued or lost."""
    from dataclasses import replace

    from inspector.settings import parse_assignments, settings_of
    from inspector.whatif import policies_report
    from inspector.whatif.policies import matrix
    from loop_core.presets import named

    base = _configured(None)[1]
    settings = settings_of(parse_assignments(assignments), replace(base, simulate=simulate or base.simulate))
    chosen = [named(name) for name in names]
    loaded, case = _read(paths, api, profile)
    made = matrix(case, settings, chosen)
    if as_json:
        _write_json(policies_report.values(made))
    else:
        _write(policies_report.text(made))
    sys.exit(_complain(loaded))


@main.command(context_settings=CONTEXT)
@_paths(required=True)
@_reading
@_POLICY
@click.option("--grid", "specs", multiple=True, metavar="NAME=SPEC",
              help="What is varied, and its values: continuation_max_attempts=1..6, max_tokens=64,128,256, "
                   "max_tokens=64..512/64 (steps) or 64..4096*2 (doubling). May be repeated; without it, attempts by "
                   "budgets around the recorded max_tokens.")
@click.option("--set", "assignments", multiple=True, metavar="NAME=VALUE", help="What is the same in all cells.")
@click.option("--simulate/--recorded", default=None,
              help="Whether what the recording does not hold is simulated; without either, where max_tokens is varied.")
@click.option("--show", type=click.Choice(["outcome", "spend", "segments"]), default="outcome",
              help="What the heat map shows.")
@click.option("--csv", "csv_path", metavar="FILE", help="Also writes each turn in each cell as CSV; - for CSV alone.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (loop-inspector/tune/1).")
@click.option("--jobs", type=click.IntRange(1, 64), metavar="N", help="Processes; without it, one for each processor.")
@click.option("--ascii", "plain", is_flag=True, help="Draw with ASCII characters only.")
def tune(paths: Sequence[str], api: str | None, profile: str | None, policy: str | None, specs: Sequence[str],
         assignments: Sequence[str], simulate: bool | None, show: str, csv_path: str | None, as_json: bool,
         jobs: int | None, plain: bool) -> None:
    """Runs every turn under a grid of limits: the smallest budget that completes each, and the knee for all."""
    from inspector.settings import parse_assignments, settings_of
    from inspector.tune.asked import Asked
    from inspector.tune.axes import parse_axes
    from inspector.tune.progress import bar, interruptible
    from inspector.tune.report import as_csv, document, save, text
    from inspector.tune.run import tune as run_grid

    if csv_path == "-" and as_json:
        raise click.UsageError("--csv - and --json both write to standard output; name a file for one")
    config, base = _configured(policy)
    axes, fixed = parse_axes(specs), parse_assignments(assignments)
    twice = next((axis.name for axis in axes if axis.name in fixed), None)
    if twice is not None:
        raise click.UsageError(f"{twice}: both set and varied; leave one of them out")
    base = settings_of(fixed, base)
    loaded, case = _read(paths, api, profile)
    with interruptible() as cancelled, bar(sys.stderr) as progress:
        tuned = run_grid(case, Asked(axes, simulate).grid(case, base), jobs, progress, cancelled)
    if csv_path is not None and csv_path != "-":
        save(csv_path, as_csv(tuned), paths)
    if as_json:
        _write_json(document(tuned))
    else:
        _write(as_csv(tuned) if csv_path == "-" else text(tuned, show, plain or config.ascii, paths))
    if tuned.cancelled:
        click.echo(f"inspector: cancelled; {tuned.done:,} of {tuned.parts:,} parts were run", err=True)
    sys.exit(_complain(loaded))


@main.command(context_settings=CONTEXT)
@_paths(required=True)
@_reading
@_POLICY
@click.option("--to", "form", metavar="FORM", required=True,
              help="html, md, text, json, session, curl, fixture or bug.")
@click.option("--turn", "turn_number", type=click.IntRange(1), metavar="N", help="Only this turn, by its number.")
@click.option("--response", "response_index", type=click.IntRange(0), metavar="N", help="The response, by its index.")
@click.option("--out", "folder", metavar="DIR", default=".", help="Where the files go; - is standard output.")
@click.option("--force", is_flag=True, help="Write over files that are there.")
def export(
    paths: Sequence[str], api: str | None, profile: str | None, policy: str | None, form: str, turn_number: int | None,
    response_index: int | None, folder: str, force: bool,
) -> None:
    """Writes a session, a response or a bug report, without credentials."""
    from inspector.export import write

    loaded, shown = _open(paths, api, profile, _configured(policy)[1])
    made = write.chosen(shown, form, turn_number, response_index)
    if folder == "-":
        _write("".join(made.values()))
    else:
        for path in write.write(made, folder, force):
            _write(f"{path}\n")
    sys.exit(_complain(loaded))


@main.command(name="run", context_settings=CONTEXT)
@click.option("--api", metavar="ID", required=True, help="The wire format: openai_chat, anthropic_messages…")
@click.option("--model", metavar="M", required=True, help="The model, by the server's name for it.")
@click.option("--base-url", "base", metavar="URL", default="", help="Another server than the provider's own.")
@click.option("--profile", metavar="NAME", help="Who speaks, if the address does not tell (vllm, llama_cpp…).")
@click.option("--prompt", metavar="TEXT", help="What the user says.")
@click.option("--messages", "messages", metavar="FILE", help="A JSON list of messages, or a whole request body.")
@click.option("--tools", metavar="FILE|MODULE:ATTR", help="Declarations as JSON, or Python callables, which are run.")
@click.option("--reduce-schemas", is_flag=True, help="Leave out of the tools' schemas what the provider does not take.")
@click.option("--whole", is_flag=True, help="Ask for whole answers instead of streams.")
@click.option("--set", "assignments", multiple=True, metavar="NAME=VALUE",
              help="A limit, max_tokens, policy, seam or method; may be repeated.")
@_POLICY
@click.option("--key-env", metavar="NAME", help="The environment variable with the key, for a server of your own.")
@click.option("--record", metavar="FILE", help="The new session file; by default one in the data folder.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (loop-inspector/explain/1).")
def run_command(
    api: str, model: str, base: str, profile: str | None, prompt: str | None, messages: str | None, tools: str | None,
    reduce_schemas: bool, whole: bool, assignments: Sequence[str], policy: str | None, key_env: str | None,
    record: str | None, as_json: bool,
) -> None:
    """Asks a provider or a local model, runs the turn to its end and records it.

    Exits by the end state: 0 completed, 3 ended by a limit, 4 blocked, 5 interrupted, 6 error, 130 cancelled.
    """
    from inspector.live import headless

    if (prompt is None) == (messages is None):
        raise click.UsageError("expected either --prompt or --messages")
    ran = headless.ran(
        api, model, base=base, profile=profile, prompt=prompt, messages=messages, tools=tools,
        reduce_schemas=reduce_schemas, stream=not whole, assignments=assignments,
        settings=_configured(policy)[1], key_env=key_env, record=record,
    )
    from inspector.report.facts import view

    shown = view(ran.replay)
    if as_json:
        from inspector.report.document import document

        _write_json(document(shown))
    else:
        from inspector.report.text import text

        _write(text(shown))
    if ran.failure:
        click.echo(f"inspector: {ran.failure}", err=True)
    sys.exit(ran.exit)


@main.command(context_settings=CONTEXT)
@click.option("--json", "as_json", is_flag=True, help="One JSON object: name -> value and origin.")
def config(as_json: bool) -> None:
    """Shows every configured value and where it comes from."""
    from inspector.config import every, load

    rows = every(load())
    if as_json:
        _write_json({name: {"value": each.value, "origin": each.origin} for name, each in rows})
        return
    for name, each in rows:
        value = "none" if each.value is None else each.value
        _write(f"{name} = {value}  ({each.origin})\n")


@main.command(context_settings=CONTEXT)
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
            _write(f"{place}\n" if what else f"{name}  {place or 'none'}\n")


@main.command(context_settings=CONTEXT)
@_paths(required=True)
@_reading
@click.option("--json", "as_json", is_flag=True, help="One JSON document (loop-inspector/branches/1).")
def branches(paths: Sequence[str], api: str | None, profile: str | None, as_json: bool) -> None:
    """Lists the saved runs of a session with their ends, its marks, notes and breakpoints."""
    from inspector.whatif import saved

    stdin = _stdin(paths)
    loaded, original = _open(paths, api, profile, _configured(None)[1], stdin)
    tree, store = _saved(loaded, original, stdin)
    if as_json:
        _write_json(saved.values(tree, store, paths))
    else:
        _write(saved.text(tree, store))
    sys.exit(_complain(loaded))


@main.command(context_settings=CONTEXT)
def samples() -> None:
    """Lists the embedded sample sessions with their paths."""
    from inspector.report.inert import one_line
    from inspector.sessions.samples import samples as embedded

    for sample in embedded():
        _write(f"{sample.path}  {one_line(sample.title)}\n")


@main.command(context_settings=CONTEXT)
@click.argument("scenario", required=False, metavar="[SCENARIO]")
@click.option("--budget", type=click.IntRange(1, 1_000_000), metavar="N",
              help="The output cap in tokens (ESTIMATED); the scenario's own by default.")
@_POLICY
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
    from inspector.dialects import document, rows, scenarios, table

    if names:
        _write(document.listed())
        return
    chosen = scenarios.named(scenario or next(iter(scenarios.SCENARIOS)))
    settings = _configured(policy)[1]
    told = rows(chosen, budget, table.chosen(tuple(only)), settings)
    if save is not None:
        from inspector.dialects.saving import save_all

        click.echo(f"inspector: {len(save_all(told, save))} sessions written to {save}", err=True)
    if as_json:
        _write_json(document.document(told, chosen, settings.policy))
    else:
        from shutil import get_terminal_size

        _write(document.text(told, settings.policy, get_terminal_size((120, 24)).columns, each))


def _configured(policy: str | None) -> tuple[Config, Settings]:
    """The configuration, and the settings that a replay starts from: the flag goes over the configuration."""
    from inspector import config
    from loop_core.frozen import replace
    from loop_core.presets import named

    found = config.load()
    return found, found.settings if policy is None else replace(found.settings, policy=named(policy))


def _stdin(paths: Sequence[str]) -> bytes | None:
    return sys.stdin.buffer.read() if "-" in paths else None


def _open(
    paths: Sequence[str], api: str | None, profile: str | None, settings: Settings, stdin: bytes | None = None
) -> tuple[Loaded, View]:
    from inspector.replay import replay
    from inspector.report.facts import view

    loaded, case = _read(paths, api, profile, stdin)
    return loaded, view(replay(case, settings))


def _read(
    paths: Sequence[str], api: str | None, profile: str | None, stdin: bytes | None = None
) -> tuple[Loaded, Case]:
    from inspector.replay import open_case
    from inspector.sessions import open_paths

    paths = _located(paths)
    stdin = _stdin(paths) if stdin is None else stdin
    loaded = open_paths(list(paths), api=api, profile=profile, stdin=stdin)
    return loaded, open_case(loaded)


def _located(paths: Sequence[str]) -> list[str]:
    """The paths, samples by their names among them."""
    if not any(path.startswith("sample:") for path in paths):
        return list(paths)
    from inspector.sessions.samples import located

    return [located(path) for path in paths]


def _saved(loaded: Loaded, original: View, stdin: bytes | None) -> tuple[Tree, Store]:
    """The saved runs of what was read, and where they are kept; what cannot be used of them is said."""
    import os

    from inspector.whatif.saved import restored
    from inspector.whatif.store import open_store

    store = open_store(loaded, os.environ, stdin)
    tree, notices = restored(original, store)
    _say(notices)
    return tree, store


def _say(notices: Iterable[str]) -> None:
    from inspector.report.inert import one_line

    for notice in notices:
        click.echo(f"inspector: {one_line(notice)}", err=True)


def _complain(loaded: Loaded) -> int:
    """Says on standard error what could not be read; the exit code."""
    errors = [given.error for given in loaded.inputs if given.error]
    _say(errors)
    return UNREADABLE if errors else READ


def _terminal() -> bool:
    return sys.stdout.isatty()


def _write(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    # A terminal or pipe of another encoding gets an escape for what it cannot show, not a traceback.
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _write_json(value: Any) -> None:
    import json

    # Escaped to ASCII: whatever a transcript holds, no terminal and no pipe takes it for a command.
    sys.stdout.write(json.dumps(value, ensure_ascii=True, indent=1) + "\n")


def run() -> None:
    """The entry point: every expected failure is one line and exit code 2."""
    try:
        main(standalone_mode=True)
    except LoopError as why:
        click.echo(f"inspector: {why}", err=True)
        sys.exit(UNREADABLE)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(READ)
