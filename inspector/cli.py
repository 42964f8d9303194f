"""The command line: parses arguments and sets exit codes, and does nothing else.

    inspector [PATH…]            opens the app; without a path, a table of your sessions and the samples
    inspector serve [PATH…]      the same app in a browser, on this machine only
    inspector explain PATH…      the same facts as linear text, or as one JSON document
    inspector check PATH…        a verdict for CI: what is wrong, as text, JSON, JUnit, SARIF, annotations
    inspector rule [ID]          what the rules of `check` look for, and what to do
    inspector replay PATH…       a re-run over the recording with other limits or another policy
    inspector compare PATH PATH  two turns side by side, of one recording or of two
    inspector policies PATH…     what each policy would have done with every turn, as a matrix
    inspector tune PATH…         a grid of limits over recordings: what each cell makes of each turn
    inspector branches PATH…     the saved runs of a session, its marks, notes and breakpoints
    inspector export PATH…       a page, Markdown, a session file, a curl command, a bug report
    inspector run --api ID …     a live turn, headless, recorded
    inspector config, locate     what is configured, and where things are kept
    inspector search WORDS…      the turns of your sessions in which every word stands
    inspector samples            lists the embedded sample sessions
    inspector mcp                the same answers for agents, over the Model Context Protocol
    inspector formats            the files and wire formats that are read, and what each keeps
    inspector schema NAME        the JSON Schema of a document, or of a file format
    inspector provider           a scripted provider with faults, for any client
    inspector providers          one intended answer as every provider would have told of it

Exit codes: 0 read, whatever was found; 2 bad usage or an input that is unreadable. `run` exits by its end state;
`check` by 1 where it found something.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

import click

from inspector import __version__, commands
from inspector.commands import CONTEXT, READ, UNREADABLE
from loop_core.errors import LoopError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS: Mapping[str, str] = {
    "view": "sessions:view_command",
    "serve": "serve:serve",
    "explain": "sessions:explain",
    "check": "sessions:check",
    "rule": "sessions:rule",
    "replay": "whatif:replay",
    "compare": "sessions:compare",
    "policies": "whatif:policies",
    "tune": "whatif:tune",
    "branches": "whatif:branches",
    "providers": "providers:providers",
    "run": "providers:run_command",
    "provider": "providers:provider",
    "export": "sessions:export",
    "config": "sessions:config",
    "locate": "sessions:locate",
    "samples": "sessions:samples",
    "search": "sessions:search",
    "schema": "sessions:schema",
    "formats": "sessions:formats",
    "mcp": "serve:mcp",
}
"""Command -> the module of `inspector.commands` that holds it, and its name there; imported when it is asked for."""


def _refuse_misspelt(word: str) -> None:
    """Says so where a word that is not a file is nearly a command, instead of looking for a file of that name."""
    if not word.isalpha() or os.path.lexists(word):
        return
    from difflib import get_close_matches

    near = get_close_matches(word, COMMANDS, 1, 0.75)
    if near:
        raise click.UsageError(f"{word!r} is neither a command nor a file; did you mean {near[0]}?")


class Inspector(click.Group):
    """The top command; it reads `inspector PATH…` as `inspector view PATH…`, if the first word is not a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Inserts `view` before arguments that begin with a path, and if there are none."""
        own = {name for param in self.params for name in param.opts} | {"--help", "-h", "--version"}
        first = next((arg for arg in args if not arg.startswith("-") or arg == "-"), None)
        if ctx.resilient_parsing and not args:
            return super().parse_args(ctx, args)  # a shell asks what the first word may be
        if not any(arg in own for arg in args[:1]) and (first is None or first not in COMMANDS):
            _refuse_misspelt(first or "")
            args = ["view", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completes commands, files and the options of `view`: the first word may be any of them."""
        from click.shell_completion import CompletionItem

        view = self.get_command(ctx, "view")
        assert view is not None  # noqa: S101 - it stands in the table
        unnamed = view.make_context("view", [], ctx, resilient_parsing=True)
        # Files come first: bash forgets what it was told before it is told to look at files.
        return [CompletionItem(incomplete, type="file"), *super().shell_complete(ctx, incomplete),
                *view.shell_complete(unnamed, incomplete)]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports a command."""
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name].split(":")
        command: click.Command = getattr(import_module(f"inspector.commands.{module}"), name)
        return command


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


def run() -> None:
    """The entry point: prints every expected failure as one line, with exit code 2."""
    try:
        main(standalone_mode=True)
    except LoopError as why:
        click.echo(f"inspector: {why}", err=True)
        sys.exit(UNREADABLE)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(READ)
    except commands.UnwrittenError as why:
        click.echo(f"inspector: standard output: {why}", err=True)
        sys.exit(UNREADABLE)
