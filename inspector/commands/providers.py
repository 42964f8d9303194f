"""The commands about providers: `run` asks one live, `provider` plays scenarios, `providers` compares all
dialects, `record` records what an agent and its providers send each other."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from inspector import commands
from loop_core.formats import FORMATS

if TYPE_CHECKING:
    from inspector.provider.scenarios import Story




@click.command(name="run", context_settings=commands.CONTEXT)
@click.option("--api", metavar="ID", required=True, help=f"The wire format: {next(iter(FORMATS))}…")
@click.option("--model", metavar="M", required=True, help="The model, by the server's name for it.")
@click.option("--base-url", "base", metavar="URL", default="", help="A server other than the provider's own.")
@click.option("--profile", metavar="NAME", help="The server, if the address does not show it (vllm, llama_cpp…).")
@click.option("--prompt", metavar="TEXT", help="The user message.")
@click.option("--messages", "messages", metavar="FILE", help="A JSON list of messages, or a complete request body.")
@click.option("--tools", metavar="FILE|MODULE:ATTR", help="Declarations as JSON, or Python callables, which are run.")
@click.option("--results", metavar="FILE", help="A recording whose tool results answer the calls.")
@click.option("--reduce-schemas", is_flag=True, help="Remove from tools' schemas what the provider does not accept.")
@click.option("--whole", is_flag=True, help="Do not stream the answers.")
@click.option("--set", "assignments", multiple=True, metavar="NAME=VALUE",
              help="A limit, max_tokens, policy, seam or method; may be repeated.")
@commands.POLICY
@click.option("--key-env", metavar="NAME", help="The environment variable with the key, for a server of your own.")
@commands.INSECURE
@click.option("--sign", type=click.Choice(["aws"]), help="Sign with AWS credentials, on any host (extra bedrock).")
@click.option("--record", metavar="FILE", help="The new session file; by default one in the data folder.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (loop-inspector/explain/2).")
@click.option("--otel", is_flag=True, help="Send spans and metrics to OpenTelemetry (OTEL_* variables; extra otel).")
@click.option("--otel-content", is_flag=True, help="With --otel: prompts and answers as well.")
@click.option("--step", is_flag=True, help="Open the app on the turn: each effect waits for you.")
def run_command(
    policy: str | None, as_json: bool, otel: bool, otel_content: bool, step: bool, whole: bool, **options: Any
) -> None:
    """Runs one turn against a provider or a local model, and records it.

    The exit code says how the turn ended: 0 completed, 3 at a limit or without an answer, 4 blocked, 5 interrupted,
    6 error, 130 cancelled. Standard error says why.
    """
    from inspector.live import headless
    from loop_core.wire import wire

    wire(options["api"])  # an unknown format is told before what else is missing
    if (options["prompt"] is None) == (options["messages"] is None):
        raise click.UsageError("expected either --prompt or --messages")
    if options["sign"] and options["key_env"]:
        raise click.UsageError("expected either --sign or --key-env")
    if otel_content and not otel:
        raise click.UsageError("--otel-content needs --otel")
    typed = headless.LiveOptions(stream=not whole, **options)
    config, settings = commands.configure(policy)
    if step:
        if as_json or otel:
            raise click.UsageError(f"expected either --step or {'--json' if as_json else '--otel'}")
        if not commands.has_terminal():
            raise click.UsageError("--step needs a terminal; without it the turn is run to its end")
        begun = headless.start(typed, settings)
        from inspector.tui.launch import run_live

        sys.exit(run_live(begun, config))
    sink = None
    if otel:
        from inspector.export import telemetry

        sink = telemetry.sink(os.environ)  # now, to report a missing exporter before anything is sent
    begun = headless.start(typed, settings)
    ran = headless.run_live(begun.request, begun.server, begun.settings, begun.answers, begun.path)
    from inspector.report.facts import view

    run_view = view(ran.replay)
    if as_json:
        from inspector.report.explain_document import document

        commands.write_json(document(run_view))
    else:
        from inspector.report.explain import text

        commands.write(text(run_view))
    if sink is not None:
        commands.say(filter(None, [sink.send(telemetry.spans(run_view, time.time_ns(), with_content=otel_content),
                                           telemetry.points(run_view))]))
    commands.say(filter(None, [ran.notice, ran.failure]))
    sys.exit(ran.exit)


@click.command(context_settings=commands.CONTEXT)
@click.argument("scenarios", nargs=-1, metavar="[SCENARIO…]")
@click.option("--listen", metavar="HOST:PORT", default="127.0.0.1:8765", show_default=True,
              help="Where to listen, on this machine only; port 0 picks a free port.")
@click.option("--profile", metavar="NAME", help="Imitate this server (vllm, openrouter, anthropic+open…).")
@click.option("--pace", metavar="FACTOR", type=commands.FiniteRange(0, 1000), default=1.0, show_default=True,
              help="Multiply every wait by this; 0 never waits.")
@click.option("--cors", metavar="ORIGIN", help="Let pages of this origin (https://app.example) read the answers.")
@click.option("--list", "names", is_flag=True, help="List the built-in scenarios and the faults.")
@click.option("--schema", is_flag=True, help="Print the JSON schema of scenario files.")
@click.option("--tools", metavar="SCENARIO", help="Print the tools of a scenario for `inspector run --tools FILE`.")
def provider(
    scenarios: Sequence[str], listen: str, profile: str | None, pace: float, cors: str | None, names: bool,
    schema: bool, tools: str | None,
) -> None:
    """Serves scripted answers in every wire format, with the faults of real servers.

    A SCENARIO is a name or a YAML file. Without one, all built-in scenarios are served; the request's model chooses.
    """
    for name, value in (("--list", names), ("--schema", schema), ("--tools", tools)):
        if value:
            _nothing_beside(name)
    from inspector.provider import reading

    if schema:
        commands.write(reading.schema())
        return
    if names:
        commands.write(provider_lists())
        return
    if tools is not None:
        commands.write_json(tools_of(reading.story_of([tools])[0]))
        return
    from inspector.provider.dialects import dialects_named
    from inspector.provider.hosts import address
    from inspector.provider.server import origin, serve

    address(listen)
    allowed = origin(cors) if cors is not None else None
    if profile is not None:
        dialects_named((profile,))
    serve(reading.story_of(scenarios), listen, profile, pace, _tell, cors=allowed)


def _nothing_beside(option: str) -> None:
    """Raises `UsageError` if anything else is given with an option that only prints its own text."""
    context = click.get_current_context()
    for each in context.command.params:
        typed = context.get_parameter_source(each.name or "") is ParameterSource.COMMANDLINE
        if typed and option not in each.opts:
            raise click.UsageError(
                f"{option} prints its own text: it does not go with {each.get_error_hint(context)}")


def _tell(line: str) -> None:
    """Writes a line. If it cannot be written, clients still get their answers."""
    with suppress(commands.UnwrittenError):
        commands.write(f"{line}\n")


# -- The provider's own lists as text --------------------------------------------------------------------------------
# Scenarios, faults, the tools of a scenario.


def provider_lists() -> str:
    """Every built-in scenario and every fault."""
    from inspector.provider.faults import FAULTS
    from inspector.provider.reading import all_stories

    stories, width = all_stories().values(), max(map(len, (*all_stories(), *FAULTS)))
    lines = ["Scenarios", *(f"  {story.name:<{width}}  {story.story}" for story in stories), ""]
    lines += ["Faults", *(f"  {row.name:<{width}}  {row.does}" for row in FAULTS.values())]
    return "\n".join(lines) + "\n"


def tools_of(story: Story) -> list[dict[str, Any]]:
    """The tools of a scenario, each with its result, in the form that `inspector run --tools` reads."""
    return [{"name": each.tool.name, "description": each.tool.description, "parameters": each.tool.schema,
             "result": each.result} for each in story.tools]


@click.command(context_settings=commands.CONTEXT)
@click.argument("scenario", required=False, metavar="[SCENARIO]")
@click.option("--budget", type=commands.WholeRange(1, 1_000_000), metavar="N",
              help="The output cap in tokens (ESTIMATED); the scenario's own by default.")
@commands.POLICY
@click.option("--only", multiple=True, metavar="NAME",
              help="A wire format, a server (vllm), or both (openai_chat/vllm); may be repeated.")
@click.option("--each", is_flag=True, help="One line for each dialect, even for equal ones.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (loop-inspector/providers/1).")
@click.option("--save", metavar="FOLDER", help="Write each row as a session file, to be opened with inspector.")
@click.option("--list", "names", is_flag=True, help="List the scenarios and the dialects with their sources.")
def providers(
    scenario: str | None, budget: int | None, policy: str | None, only: Sequence[str], each: bool, as_json: bool,
    save: str | None, names: bool,
) -> None:
    """Shows one intended answer as every provider reports it."""
    from inspector.provider import dialect_output, dialects, scenarios
    from inspector.provider.dialect_rows import rows

    if names:
        _nothing_beside("--list")
        commands.write(dialect_output.list_text())
        return
    chosen = scenarios.scenario_named(scenario or next(iter(scenarios.SCENARIOS)))
    settings = commands.configure(policy)[1]
    report = rows(chosen, budget, dialects.dialects_named(tuple(only)), settings)
    if save is not None:
        commands.say([f"{len(dialect_output.save_all(report, save))} sessions written to {save}"])
    if as_json:
        commands.write_json(dialect_output.document(report, chosen, settings.policy))
    else:
        commands.write(dialect_output.text(report, settings.policy, commands.output_width(120), each))


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
        requests, code = proxy.record(
            command, listen, asked, recorder,
            lambda line: commands.say([line, *filter(None, [recorder.failure])]), commands.write)
    finally:
        recorder.close()
        if not requests and os.path.isfile(recorder.path):  # neither a device nor what the agent deleted
            os.unlink(os.path.realpath(recorder.path))
    commands.say([_outcome(requests, recorder.failure, recorder.path)])
    sys.exit(code if command or recorder.failure is None else commands.UNREADABLE)


def _names(command: Sequence[str]) -> list[str]:
    """The names of the agent and of the script that it runs, if it does. Its other arguments may hold credentials."""
    script = [word for word in command[1:] if word.endswith(SCRIPTS) and os.path.isfile(word)]
    return [os.path.basename(word) for word in (*command[:1], *script[:1])] or ["traffic"]


def _outcome(requests: int, failure: str | None, path: str) -> str:
    """The last line: what was recorded, and how to open it."""
    if failure is not None or not requests:
        return failure or "no request came to the proxy, so nothing is recorded; see docs/recording.md"
    from inspector.config.settings import argument

    what = "1 request recorded; open it" if requests == 1 else f"{requests:,} requests recorded; open them"
    return f"{what} with: inspector {shlex.quote(argument(path))}"
