"""A live turn."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import click

from inspector.commands import common
from loop_core.formats import FORMATS


@click.command(name="run", context_settings=common.CONTEXT)
@click.option("--api", metavar="ID", required=True, help=f"The wire format: {next(iter(FORMATS))}…")
@click.option("--model", metavar="M", required=True, help="The model, by the server's name for it.")
@click.option("--base-url", "base", metavar="URL", default="", help="Another server than the provider's own.")
@click.option("--profile", metavar="NAME", help="Who speaks, if the address does not tell (vllm, llama_cpp…).")
@click.option("--prompt", metavar="TEXT", help="What the user says.")
@click.option("--messages", "messages", metavar="FILE", help="A JSON list of messages, or a whole request body.")
@click.option("--tools", metavar="FILE|MODULE:ATTR", help="Declarations as JSON, or Python callables, which are run.")
@click.option("--results", metavar="FILE", help="A recording whose tool results answer the calls.")
@click.option("--reduce-schemas", is_flag=True, help="Leave out of the tools' schemas what the provider does not take.")
@click.option("--whole", is_flag=True, help="Ask for whole answers instead of streams.")
@click.option("--set", "assignments", multiple=True, metavar="NAME=VALUE",
              help="A limit, max_tokens, policy, seam or method; may be repeated.")
@common.POLICY
@click.option("--key-env", metavar="NAME", help="The environment variable with the key, for a server of your own.")
@common.INSECURE
@click.option("--sign", type=click.Choice(["aws"]), help="Sign with AWS credentials, on any host (extra bedrock).")
@click.option("--record", metavar="FILE", help="The new session file; by default one in the data folder.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (loop-inspector/explain/2).")
@click.option("--otel", is_flag=True, help="Hand spans and metrics to OpenTelemetry (OTEL_* variables; extra otel).")
@click.option("--otel-content", is_flag=True, help="With --otel: what was said as well.")
@click.option("--step", is_flag=True, help="Open the app on the turn: each effect waits for you.")
def run_command(
    policy: str | None, as_json: bool, otel: bool, otel_content: bool, step: bool, whole: bool, **given: Any
) -> None:
    """Asks a provider or a local model, runs the turn to its end and records it.

    Exits by the end state: 0 completed and nothing else, 3 ended by a limit or without an answer, 4 blocked,
    5 interrupted, 6 error, 130 cancelled. Why it ended is told on standard error.
    """
    from inspector.live import headless

    if (given["prompt"] is None) == (given["messages"] is None):
        raise click.UsageError("expected either --prompt or --messages")
    if given["sign"] and given["key_env"]:
        raise click.UsageError("expected either --sign or --key-env")
    if otel_content and not otel:
        raise click.UsageError("--otel-content says what --otel sends: expected both")
    typed = headless.LiveOptions(stream=not whole, **given)
    config, settings = common.configured(policy)
    if step:
        if as_json or otel:
            raise click.UsageError(f"expected either --step or {'--json' if as_json else '--otel'}")
        if not common.has_terminal():
            raise click.UsageError("--step needs a terminal; without it the turn is run to its end")
        begun = headless.start(typed, settings)
        os.environ.setdefault("TEXTUAL_FPS", "120")  # read when Textual is imported
        from inspector.tui.launch import run_live

        sys.exit(run_live(begun, config))
    sink = None
    if otel:
        from inspector.export import telemetry

        sink = telemetry.sink(os.environ)  # what cannot be sent is told before anything is asked
    ran = headless.run_options(typed, settings)
    from inspector.report.facts import view

    shown = view(ran.replay)
    if as_json:
        from inspector.report.document import document

        common.write_json(document(shown))
    else:
        from inspector.report.text import text

        common.write(text(shown))
    if sink is not None:
        common.say(filter(None, [sink.send(telemetry.spans(shown, time.time_ns(), with_content=otel_content),
                                           telemetry.points(shown))]))
    common.say(filter(None, [ran.notice, ran.failure]))
    sys.exit(ran.exit)
