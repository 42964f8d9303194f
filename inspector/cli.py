"""The command line: parses arguments and sets exit codes.

`COMMANDS` lists the commands. Exit codes: 0 if the inputs were read, whatever was found; 2 for wrong usage or an
unreadable input; 130 if Ctrl-C ended it. `run` exits by its end state, `record` with the code of the agent, and `check`
with 1 if it found a problem that `--fail-on` counts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from io import TextIOWrapper
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import click

from inspector import __version__, commands
from inspector.commands import CONTEXT, INTERRUPTED, READ, UNREADABLE
from loop_core.errors import LoopError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class CommandRow(NamedTuple):
    """A command in the help of the program."""

    place: str
    """The module of `inspector.commands` that has it, and its name there; imported when it is called."""
    summary: str


COMMANDS: Mapping[str, CommandRow] = {
    "view": CommandRow("sessions:view_command", "Open the app; without a path, on a table of your sessions"),
    "serve": CommandRow("serve:serve", "Open the app in a browser on this machine"),
    "explain": CommandRow("sessions:explain", "Explain sessions as text, worst verdict first; or as JSON"),
    "check": CommandRow("sessions:check", "Check sessions in CI: exit with 1 if something is wrong"),
    "rule": CommandRow("sessions:rule", "Explain the rules of check"),
    "replay": CommandRow("whatif:replay", "Run turns again with other limits or another policy"),
    "compare": CommandRow("whatif:compare", "Compare two turns, of one recording or of two"),
    "policies": CommandRow("whatif:policies", "Show what each policy would do with every turn"),
    "tune": CommandRow("whatif:tune", "Find the smallest limits that complete each turn"),
    "branches": CommandRow("whatif:branches", "List the saved runs, marks and notes of a session"),
    "providers": CommandRow("providers:providers", "Show how each provider reports the same answer"),
    "run": CommandRow("providers:run_command", "Run a live turn against a provider, and record it"),
    "record": CommandRow("providers:record", "Record the traffic of an agent, with every byte"),
    "provider": CommandRow("providers:provider", "Serve scripted answers and faults to any client"),
    "export": CommandRow("sessions:export", "Export a page, a bug report, a session file or a command"),
    "config": CommandRow("sessions:config", "Show what is configured, and where"),
    "locate": CommandRow("sessions:locate", "Show where files are stored"),
    "samples": CommandRow("sessions:samples", "List the sample sessions"),
    "search": CommandRow("sessions:search", "Search the text of your sessions"),
    "schema": CommandRow("sessions:schema", "Print the JSON Schema of a document or a file format"),
    "formats": CommandRow("sessions:formats", "List the files and wire formats that can be read"),
    "mcp": CommandRow("serve:mcp", "Serve recorded sessions to agents over MCP"),
}
"""Every command, by name."""


OTHER_NAMES = {"diff": "compare", "find": "search", "grep": "search", "lint": "check", "open": "view",
               "show": "explain", "simulate": "replay", "stats": "check --stats"}
"""A word that other programs have for it -> the command."""


class WrongUse(click.UsageError):
    """Wrong usage, as one line that names the command; click would write four."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Writes the line."""
        place = self.ctx.command_path if self.ctx else "inspector"
        commands.say([self.message[:1].lower() + self.message[1:].rstrip(".")], f"{place}: ")


def _in_one_line(why: click.UsageError) -> WrongUse:
    """Wrong usage with where the help is, if what was expected is not in the message."""
    known = not isinstance(why, (click.MissingParameter, click.NoSuchOption)) or getattr(why, "possibilities", None)
    help_of = "" if known or why.ctx is None else f"; see `{why.ctx.command_path} --help`"
    words = " ".join(why.format_message().split())  # click lists choices on lines of their own
    return WrongUse(words.rstrip(".") + help_of, why.ctx)


def _refuse_misspelt(word: str, of_help: bool) -> None:
    """Raises if a word is not a file but nearly the name of a command, and names that command; or if help is wanted of
    a word that is neither.
    """
    if not word.isalpha() or os.path.lexists(word):
        return
    from difflib import get_close_matches

    near = [OTHER_NAMES[word]] if word in OTHER_NAMES else get_close_matches(word, COMMANDS, 1, 0.75)
    if near or of_help:
        more = f"did you mean {near[0]}?" if near else "`inspector --help` lists the commands"
        raise click.UsageError(f"{word!r} is neither a command nor a file; {more}")


@contextmanager
def _in_our_words() -> Iterator[None]:
    """Ends quietly where a text of click's (the help) finds no reader, as texts of ours do; click would exit with 1.
    Wrong usage becomes one line.
    """
    try:
        yield
    except BrokenPipeError:
        sys.stdout = commands.DiscardedOutput()
        raise click.exceptions.Exit(READ) from None
    except click.UsageError as why:
        raise why if isinstance(why, WrongUse) else _in_one_line(why) from None


class Inspector(click.Group):
    """The top command; it reads `inspector PATH…` as `inspector view PATH…`, if the first word is not a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Inserts `view` before arguments that begin with a path, and if there are none."""
        own = {name for param in self.params for name in param.opts} | {"--help", "-h", "--version"}
        first = next((arg for arg in args if not arg.startswith("-") or arg == "-"), None)
        if ctx.resilient_parsing and not args:
            return super().parse_args(ctx, args)  # a shell asks what the first word may be
        if not any(arg in own for arg in args[:1]) and (first is None or first not in COMMANDS):
            _refuse_misspelt(first or "", not {"--help", "-h"}.isdisjoint(args))
            args = ["view", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completes commands, files and the options of `view`: the first word may be any of them."""
        from click.shell_completion import CompletionItem

        view = self.get_command(ctx, "view")
        assert view is not None  # noqa: S101 - it stands in the table
        unnamed = view.make_context("view", [], ctx, resilient_parsing=True)
        # Files come first: bash drops the completions that precede the instruction to complete files.
        return [CompletionItem(incomplete, type="file"), *super().shell_complete(ctx, incomplete),
                *view.shell_complete(unnamed, incomplete)]

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        """Parses the arguments; the help and the version are written here."""
        with _in_our_words():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs a command; Ctrl-C ends it with a code of its own, since 1 says that something was found."""
        try:
            with _in_our_words():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            commands.say(["interrupted"])
            ctx.exit(INTERRUPTED)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, in the order of the table."""
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands with their summaries, without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, row.summary) for name, row in COMMANDS.items()])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports a command."""
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name].place.split(":")
        command: click.Command = getattr(import_module(f"inspector.commands.{module}"), name)
        return command


@click.group(cls=Inspector, context_settings=CONTEXT, invoke_without_command=True)
@click.version_option(__version__, prog_name="loop-inspector")
def main() -> None:
    """The debugger for agent turns: why a response stopped, and what the loop did.

    \b
    inspector                      the app on your sessions and the samples
    inspector some.har             the app on a recording
    inspector explain some.har     the same as text (--json for programs)
    inspector replay some.har --set continuation_max_attempts=5
    """


def run() -> None:
    """The entry point: prints every expected failure as one line, with exit code 2."""
    if os.name == "posix" and not os.path.isabs(os.environ.get("HOME", "")):
        from inspector.config.files import home_of_user

        os.environ["HOME"] = home_of_user()  # what finds folders for us would fail without one
    if sys.stdin is None:  # it was closed, and counts as empty; Textual reads the second name
        sys.stdin = sys.__stdin__ = open(os.devnull, encoding="utf-8")  # type: ignore[misc]  # noqa: SIM115
    if isinstance(sys.stdout, TextIOWrapper):  # a character that the terminal or pipe lacks is written as an escape
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        main(standalone_mode=True)
    except LoopError as why:
        commands.say([str(why)])
        sys.exit(UNREADABLE)
    except commands.UnwrittenError as why:
        commands.say([f"standard output: {why}"])
        sys.exit(UNREADABLE)
    except MemoryError:  # not 1, with which `check` says that something is wrong with a session
        click.echo("inspector: out of memory: --max-bytes N limits what is read of an input", err=True)
        sys.exit(UNREADABLE)
    except OSError as why:  # click's own texts: the help, or what is wrong with an option
        sys.stdout = None  # what is left in its buffer would be tried once more at the end
        # Only a working folder that was removed is missing without a name.
        place = why.filename or ("the working folder" if isinstance(why, FileNotFoundError) else "")
        commands.say([f"{place}: {why.strerror}" if place else why.strerror or str(why)])
        sys.exit(UNREADABLE)


if __name__ == "__main__":  # else `python -m inspector.cli check` would check nothing and exit with 0
    run()
