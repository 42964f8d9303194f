"""The what-if commands: a replay under other settings, every policy, a grid of limits, saved runs, and two turns."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import click

from inspector import commands
from loop_core.errors import CallerError, LoopError

if TYPE_CHECKING:
    from inspector.config.settings import Settings
    from inspector.live.branch_request import BranchRequest
    from inspector.report.facts import TurnFacts, View
    from inspector.whatif.store import Store
    from inspector.whatif.tree import Node, Tree
    from loop_core.turn.tools import Toolbox


@commands.on_recordings()
@commands.POLICY
@click.option("--set", "assignments", multiple=True, metavar="NAME=VALUE",
              help="A limit (continuation_max_attempts=5), max_tokens, policy, profile, seam or method; may be "
              "repeated. NAME=VALUE@K applies from step K on.")
@click.option("--from-step", type=commands.WholeRange(1), metavar="K", help="The settings apply from step K on.")
@click.option("--simulate", is_flag=True, help="Cut the recorded output again where another budget would.")
@click.option("--branch", "base", metavar="RUN", help="Start from a saved run, by its name or key.")
@click.option("--against", metavar="RUN", help="Compare with this run: original, or a saved one.")
@click.option("--save", is_flag=True, help="Save the run as a branch of the session.")
@click.option("--edit", "edits", multiple=True, metavar="TURN.INPUT=TEXT",
              help="Replace an input of a turn: 2.user=…, 2.result=…, 2.3=… (its third input), 2.3=@FILE. The "
                   "recording has no answer to the edited request.")
@click.option("--live", is_flag=True, help="Send one turn to the provider again; first shows the address and cost.")
@click.option("--stand-in", "stand_in", is_flag=True,
              help="A stand-in on this machine answers one turn: what was recorded, then made-up text. No key.")
@click.option("--turn", type=commands.WholeRange(1), metavar="N", help="Live: the turn, from its first request on.")
@click.option("--base-url", "base_url", metavar="URL", default="", help="Live: a server other than the recorded one.")
@click.option("--model", metavar="M", help="Live: a model other than the recorded one.")
@click.option("--key-env", metavar="NAME", help="Live: the environment variable that holds the key.")
@commands.INSECURE
@click.option("--tools", metavar="FILE|MODULE:ATTR", help="Live: tools that answer calls (default: recorded results).")
@click.option("--yes", is_flag=True, help="Live: send without asking for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (loop-inspector/replay/2).")
def replay(
    paths: Sequence[str], api: str | None, profile: str | None, policy: str | None, assignments: Sequence[str],
    from_step: int | None, simulate: bool, base: str | None, against: str | None, save: bool, as_json: bool,
    live: bool, stand_in: bool, turn: int | None, base_url: str, model: str | None, key_env: str | None,
    tools: str | None, yes: bool,
    insecure_http: Sequence[str], edits: Sequence[str],
) -> None:
    """Runs recorded turns again under other limits or another policy, beside the original.

    With --live one turn is sent again, and the exit code is that of its end, as for `inspector run`.
    """
    from inspector.config.settings import parse_stretches
    from inspector.whatif import branch_report
    from inspector.whatif.branch_lines import check_edits, edit_stretches
    from inspector.whatif.tree import ORIGINAL, Tree

    sources = [name for name, value in (("--live", live), ("--stand-in", stand_in), ("--simulate", simulate)) if value]
    if len(sources) > 1:
        raise click.UsageError(f"{' and '.join(sources[:2])} are two sources; leave one of them out")
    others = {"--turn": turn if not stand_in else None, "--base-url": base_url, "--model": model, "--key-env": key_env,
              "--tools": tools, "--yes": yes, "--insecure-http": insecure_http}
    idle = [] if live else [name for name, value in others.items() if value]
    if idle:
        raise click.UsageError(f"{idle[0]} needs --live")
    wanted = [*([] if policy is None else [f"policy={policy}"]), *(["simulate=yes"] if simulate else [])]
    stretches = parse_stretches([*wanted, *assignments], from_step)
    stdin = commands.stdin_of(paths)
    loaded, original = commands.open_view(paths, api, profile, commands.configure(None)[1], stdin)
    named = any("live" in each for _, each in stretches)
    others_needed = bool(base or against or live or stand_in or named)
    tree, store = (commands.saved_runs(loaded, original, stdin, others_needed) if others_needed or save
                   else (Tree(original), None))
    start = tree.find(base or ORIGINAL)
    other = tree.find(against) if against else start  # looked up before any request is sent
    code = 0
    if edits:
        first = tree.try_settings(start, [each for each in stretches if each[0] is None])
        stretches = _with_edits(stretches, edit_stretches(first.view.replay, edits, from_step))
    if (live or stand_in) and store is not None:
        way = None if stand_in else Way(base_url, model, key_env, tools, insecure_http)
        node, code = run_live_branch(tree, start, stretches, from_step, turn, way, store, save, yes)
    else:
        if store is not None and named:
            commands.say(_recall(original, stretches, store))
        node = tree.try_settings(start, stretches)
        check_edits(node.view.replay)
    if store is not None and save:
        from inspector.whatif.branch_report import save_branch

        before = len(store.notices)
        save_branch(store, node)
        commands.say(store.notices[before:])
        if node.parent is None:
            commands.say(["--save: nothing was saved, because this run is the original"])
        if node.parent is None or store.lost:
            code = code or commands.UNREADABLE
    branch = tree.beside(node, other)
    commands.write_result(as_json, lambda: branch_report.values(branch), lambda: branch_report.text(branch))
    sys.exit(commands.complain(loaded) or code)


def _with_edits(
    stretches: Sequence[tuple[int | None, dict[str, str]]], edits: Sequence[tuple[int, dict[str, str]]]
) -> list[tuple[int | None, dict[str, str]]]:
    """The settings together with the edited inputs, each from its step on."""
    found = {since: dict(each) for since, each in stretches}
    for since, each in edits:
        found[since] = {**found.get(since, {}), **each}
    return sorted(found.items(), key=lambda each: -1 if each[0] is None else each[0])


def _recall(original: View, stretches: Sequence[tuple[int | None, dict[str, str]]], store: Store) -> list[str]:
    """Loads the live runs that the command line names."""
    from inspector.whatif.branch_report import load_live_runs

    return [line for _, each in stretches for line in load_live_runs(original, each.get("live"), store.folder)]


def _no_branch(settings: Settings) -> None:
    """Refuses `live` and edited inputs, which belong to a step of a run: these commands have no option for a step."""
    if settings.live is not None:
        raise CallerError(f"live={settings.live}: only `inspector replay` shows a live run as a branch; elsewhere "
                          "open its recording, a file in the data folder")
    if settings.edits:
        raise CallerError(f"{settings.edits[0].name}: only `inspector replay` runs a turn with an edited input")


@commands.on_recordings()
@click.option("--policy", "names", multiple=True, metavar="NAME",
              help="A policy to compare with strict; may be repeated. By default all of them.")
@click.option("--set", "assignments", multiple=True, metavar="NAME=VALUE", help="A limit; may be repeated.")
@click.option("--simulate", is_flag=True, help="Cut the recorded output again where another budget would.")
@click.option("--csv", "csv_path", metavar="FILE",
              help="Also write each turn under each policy as CSV; - for CSV alone.")
@click.option("--force", is_flag=True, help="Overwrite an existing CSV file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (loop-inspector/policies/1).")
def policies(
    paths: Sequence[str], api: str | None, profile: str | None, names: Sequence[str], assignments: Sequence[str],
    simulate: bool, csv_path: str | None, force: bool, as_json: bool,
) -> None:
    """Shows recorded turns under every policy: what each loop would have run, held, continued or lost."""
    from inspector.config.settings import parse_assignments, settings_of
    from inspector.export import check_output, save_output
    from inspector.whatif import policies_lines
    from inspector.whatif.policies import matrix
    from loop_core.turn.presets import preset

    if csv_path == "-" and as_json:
        raise click.UsageError("--csv - and --json both write to standard output; name a file for one")
    check_output(csv_path, commands.located_all(paths), force)
    base = commands.configure(None)[1]
    fixed = parse_assignments(assignments)
    settings = settings_of(fixed, replace(base, simulate=simulate or base.simulate))
    _no_branch(settings)
    if "policy" in fixed:
        raise click.UsageError("--set policy: all policies are shown; --policy NAME selects some")
    chosen = [preset(name) for name in dict.fromkeys(names)]
    loaded, case = commands.read_case(paths, api, profile)
    policy_matrix = matrix(case, settings, chosen)
    save_output(csv_path, lambda: policies_lines.as_csv(policy_matrix))
    text = policies_lines.as_csv if csv_path == "-" else policies_lines.text
    commands.write_result(as_json, lambda: policies_lines.values(policy_matrix), lambda: text(policy_matrix))
    sys.exit(commands.complain(loaded))


@commands.on_recordings()
@commands.POLICY
@click.option("--grid", "specs", multiple=True, metavar="NAME=SPEC",
              help="What is varied, and its values: continuation_max_attempts=1..6, max_tokens=64,128,256, "
                   "max_tokens=64..512/64 (steps) or 64..4096*2 (doubling). May be repeated; without it, attempts by "
                   "budgets around the recorded max_tokens.")
@click.option("--set", "assignments", multiple=True, metavar="NAME=VALUE", help="A setting for all cells.")
@click.option("--simulate/--recorded", default=None,
              help="Simulate what the recording does not hold, or not; by default only if max_tokens is varied or set.")
@click.option("--show", type=click.Choice(["outcome", "spend", "segments"]), default="outcome",
              help="What the heat map shows.")
@click.option("--csv", "csv_path", metavar="FILE", help="Also write each turn in each cell as CSV; - for CSV alone.")
@click.option("--html", "page_path", metavar="FILE", help="Also write the heat map as a page; - for the page alone.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (loop-inspector/tune/2).")
@click.option("--jobs", type=commands.WholeRange(1, 64), metavar="N", help="Processes; by default one for each core.")
@click.option("--ascii", "plain", is_flag=True, help="Draw with ASCII characters only.")
def tune(paths: Sequence[str], api: str | None, profile: str | None, policy: str | None, specs: Sequence[str],
         assignments: Sequence[str], simulate: bool | None, show: str, csv_path: str | None, page_path: str | None,
         force: bool, as_json: bool, jobs: int | None, plain: bool) -> None:
    """Runs every turn under a grid of limits: the smallest budget that completes each, and the best budgets for all."""
    from inspector.config.settings import parse_assignments, settings_of
    from inspector.export import check_output, save_output
    from inspector.whatif.grid import GridRequest, parse_axes
    from inspector.whatif.grid_report import as_csv, document, page, text
    from inspector.whatif.grid_run import tune as run_grid
    from loop_core.turn.limits import SHORT_NAMES

    alone = [name for name, value in (("--csv -", csv_path == "-"), ("--html -", page_path == "-"),
                                      ("--json", as_json)) if value]
    if len(alone) > 1:
        raise click.UsageError(f"{' and '.join(alone[:2])} both write to standard output; name a file for one")
    check_output(csv_path, commands.located_all(paths), force)
    check_output(page_path, commands.located_all(paths), force, "--html", [csv_path])
    config, base = commands.configure(policy)
    axes, fixed = parse_axes(specs), parse_assignments(assignments)
    base = settings_of(fixed, base)
    _no_branch(base)
    if "simulate" in fixed and simulate not in (None, base.simulate):
        raise click.UsageError("simulate: --set contradicts the option; leave one of them out")
    if "simulate" in fixed or base.simulate:  # as in `replay`: another max_tokens is simulated
        simulate = base.simulate if simulate is None else simulate
    loaded, case = commands.read_case(paths, api, profile)
    grid = GridRequest(axes, simulate).grid(case, base)
    twice = next((name for name in grid.names if not {name, SHORT_NAMES.get(name)}.isdisjoint(fixed)), None)
    if twice is not None:
        more = "leave one of them out" if axes else "name another limit with --grid"
        raise click.UsageError(f"{twice}: both set and varied; {more}")
    with commands.interruptible() as cancelled, commands.progress_bar(sys.stderr) as progress:
        tuned = run_grid(case, grid, jobs, progress, cancelled)
    save_output(csv_path, lambda: as_csv(tuned))
    save_output(page_path, lambda: page(tuned), "--html")
    commands.write_result(as_json, lambda: document(tuned), lambda: (
        as_csv(tuned) if csv_path == "-" else page(tuned) if page_path == "-"
        else text(tuned, show, plain or config.ascii, paths)))
    if tuned.cancelled:
        commands.say([f"cancelled; {tuned.done:,} of {tuned.parts:,} parts were run"])
    sys.exit(commands.complain(loaded))


@commands.on_recordings()
@click.option("--json", "as_json", is_flag=True, help="One JSON document (loop-inspector/branches/1).")
def branches(paths: Sequence[str], api: str | None, profile: str | None, as_json: bool) -> None:
    """Lists the saved runs of a session with their ends, its marks, notes and breakpoints."""
    from inspector.whatif import branch_report

    stdin = commands.stdin_of(paths)
    loaded, original = commands.open_view(paths, api, profile, commands.configure(None)[1], stdin)
    tree, store = commands.saved_runs(loaded, original, stdin)
    commands.write_result(as_json, lambda: branch_report.branches_values(tree, store, paths),
                          lambda: branch_report.branches_text(tree, store))
    sys.exit(commands.complain(loaded))


# -- `inspector replay --live` ---------------------------------------------------------------------------------------
# Describes the request, waits for a confirmation, sends it, and returns the branch.


class Way(NamedTuple):
    """How a turn is sent live, by default as recorded; `variable` names the environment variable with the key."""

    base: str
    model: str | None
    variable: str | None
    tools: str | None
    insecure_http: Sequence[str] = ()


def run_live_branch(
    tree: Tree, start: Node, stretches: Sequence[tuple[int | None, Mapping[str, str]]], from_step: int | None,
    turn: int | None, way: Way | None, store: Store, save: bool, yes: bool,
) -> tuple[Node, int]:
    """Runs a branch live, or with a stand-in if `way` is None; returns the branch and its exit code. Raises `LoopError`
    if it cannot be sent; then nothing was sent."""
    from inspector.live.branch_request import branch_request
    from inspector.live.branch_run import new_name, run_branch
    from inspector.live.headless import EXITS

    since, settings = _start_of_run(start, stretches, from_step, turn)
    if way is None:
        from inspector.live.scripted import stand_in_request

        request = stand_in_request(start.view.replay, settings, since, os.environ)
    else:
        request = branch_request(start.view.replay, settings, since, os.environ, base=way.base, model=way.model,
                              variable=way.variable, toolbox=_toolbox(way.tools), insecure_http=way.insecure_http)
        _confirm(request, start, yes)
    name = new_name(by_stand_in=way is None)
    settings = replace(settings, live=name)
    if save:
        from inspector.config.settings import record_of
        from inspector.whatif.branch_report import save_branch
        from inspector.whatif.tree import key_of

        save_branch(store, start)
        store.branch(key_of(start.key, settings, since), start.key, record_of(settings), since)
    try:
        answers, failure = run_branch(request, name, store.folder)
    except LoopError:
        if save:
            store.forget(key_of(start.key, settings, since))
        raise
    commands.say([failure] if failure else [])
    start.view.replay.case.live_runs[name] = answers
    node, _ = tree.add(start, settings, since)
    ended = node.view.turns[request.turn]
    commands.say(filter(None, [ended.notice]))
    end = ended.terminal
    return node, EXITS[end]


def _start_of_run(
    start: Node, stretches: Sequence[tuple[int | None, Mapping[str, str]]], from_step: int | None, turn: int | None,
) -> tuple[int, Settings]:
    """The index of the step from which the turn is sent live, and the settings in force there."""
    from inspector.config.settings import settings_asked

    replay = start.view.replay
    if not replay.turns:
        raise CallerError("nothing was read, so there is no turn to ask again")
    steps = sorted({since for since, _ in stretches if since is not None})
    if turn is not None and (steps or from_step is not None):
        raise click.UsageError("--turn says where the live run begins, as do a step and an edited input: leave one out")
    if len(steps) > 1:
        raise click.UsageError("a live run begins at one step; the settings name more than one")
    if turn is None and not steps and from_step is None and len(replay.turns) > 1:
        raise CallerError(f"this run has {len(replay.turns):,} turns: --turn N or --from-step K says which to ask")
    since = steps[0] if steps else from_step - 1 if from_step is not None else start.view.numbered(turn or 1).run.first
    if since >= len(replay.trace.steps):
        raise CallerError(f"step {since + 1:,}: this run has the steps 1 to {len(replay.trace.steps):,}")
    values = {name: value for _, each in stretches for name, value in each.items()}
    return since, settings_asked(values, replay.settings)


def _toolbox(tools: str | None) -> Toolbox | None:
    if tools is None:
        return None
    from inspector.live.inputs import tools_of
    from loop_core.turn.tools import Toolbox

    return Toolbox(tools_of(tools)[1])


def _confirm(request: BranchRequest, start: Node, yes: bool) -> None:
    """Prints the destination of the request and its greatest possible cost, and waits for a confirmation."""
    from inspector.live.branch_request import announcement

    if request.target.missing:  # a confirmation or --yes would not help
        raise CallerError(f"nothing was sent: no key: {request.target.missing}; --stand-in answers without one")
    commands.say(announcement(request, start.view.number(start.view.turns[request.turn])), before="")
    if yes:
        return
    if not sys.stdin.isatty():
        raise CallerError("nothing was sent: standard input is not a terminal that could confirm it; "
                          "--yes sends at once")
    click.confirm("Ask now?", abort=True, err=True)


# -- Two turns side by side, of one recording or of two --------------------------------------------------------------


@click.command(context_settings=commands.CONTEXT)
@click.argument("left", metavar="PATH")
@click.argument("right", metavar="[PATH]", required=False)
@commands.reading
@commands.POLICY
@click.option("--turns", metavar="N,M",
              help="The turns to compare; by default the worst of each path, or the two worst of one path.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (loop-inspector/compare/1).")
def compare(left: str, right: str | None, api: str | None, profile: str | None, policy: str | None, turns: str | None,
            as_json: bool) -> None:
    """Puts two turns side by side: how each ends, stop reason, caps, tokens, calls, steps and text."""
    from inspector.report.lines.spans import text_of
    from inspector.whatif.turn_pair import TurnPair, pair_values, side_of

    settings = commands.configure(policy)[1]
    loaded, one = commands.open_view([left], api, profile, settings)
    other_loaded, other = (loaded, one) if right is None else commands.open_view([right], api, profile, settings)
    code = max(commands.complain(loaded), 0 if right is None else commands.complain(other_loaded))
    numbers = (None, None) if turns is None else _numbers(turns)
    pair = TurnPair(side_of(one, _turn(one, numbers[0])),
                    side_of(other, _turn(other, numbers[1], beside=numbers[0] is None and right is None)))
    if as_json:
        commands.write_json(pair_values(pair, (left, right or left)))
    else:
        commands.write("\n".join(text_of(line).rstrip() for line in pair.lines(commands.output_width(120))) + "\n")
    sys.exit(code)


def _numbers(text: str) -> tuple[int, int]:
    first, comma, second = text.partition(",")
    if not (comma and all(each.strip().isdecimal() and len(each) < 19 for each in (first, second))):
        raise click.UsageError(f"--turns {text}: expected the number of a turn of each, such as 3,5")
    return int(first), int(second)


def _turn(view: View, number: int | None, beside: bool = False) -> TurnFacts:
    """A turn by its number; without a number, the worst turn or, to compare with the worst, the second worst."""
    if number is not None:
        return view.numbered(number)
    ranked = sorted(view.turns, key=lambda turn: turn.verdict.rank)
    if len(ranked) <= beside:
        raise CallerError("there is no turn to compare" if not ranked else "there is only one turn: name a second path")
    return ranked[beside]
