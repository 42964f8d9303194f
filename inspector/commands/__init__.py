"""The code that all commands share: options, reading of inputs, output, exit codes."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from io import TextIOBase
from math import isnan, nan
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from inspector.sessions import open_paths, without_collector

if TYPE_CHECKING:
    from inspector.config import Config
    from inspector.config.settings import Settings
    from inspector.replay.case import Case
    from inspector.report.facts import View
    from inspector.sessions.recording import Input, Recording
    from inspector.whatif.store import Store
    from inspector.whatif.tree import Tree

READ, UNREADABLE, INTERRUPTED = 0, 2, 130
"""The exit codes: all inputs were read; one could not be read; Ctrl-C ended the command (as in shells)."""
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 80}
Command = TypeVar("Command", bound=Callable[..., Any])


def names(module: str, table: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """A function that completes an option's value from the names in a module's table, which is imported only then."""
    return lambda _context, _option, begun: [
        name for name in getattr(import_module(module), table) if name.startswith(begun)]


def _set_bound(context: click.Context, _option: click.Parameter, most: int | None) -> None:
    """Sets the largest size of an input for the duration of the command."""
    from inspector.sessions import intake

    if most is not None:
        context.call_on_close(lambda: intake.set_maximum(intake.MOST))
        intake.set_maximum(most)


def reading(command: Command) -> Command:
    """The options that say how inputs are read: `--api`, `--profile`, `--max-bytes`."""
    for option in (
        click.option("--max-bytes", type=WholeRange(1), metavar="N", expose_value=False, callback=_set_bound,
                     help="Refuse an input above N bytes (default: 256 MiB; no limit for transcripts)."),
        click.option("--profile", metavar="NAME", help="The server, if the host does not show it (vllm, openrouter…).",
                     shell_complete=names("loop_core.wire.profiles", "PROFILES")),
        click.option("--api", metavar="ID", help="The wire format, if the content does not show it.",
                     shell_complete=names("loop_core.wire", "FORMATS")),
    ):
        command = option(command)
    return command


def on_recordings(required: bool = True, name: str | None = None) -> Callable[[Callable[..., None]], click.Command]:
    """A command on recordings: their paths, and the options that say how they are read."""
    argument = click.argument("paths", nargs=-1, required=required, metavar="PATH…" if required else "[PATH…]")
    return lambda function: click.command(name, context_settings=CONTEXT)(argument(reading(function)))


def _bounds(bounds: click.IntRange | click.FloatRange) -> str:
    """The bounds of a number in words."""
    least = f"above {bounds.min:,}, up" if bounds.min_open else f"from {bounds.min:,}"
    return f"{least} up" if bounds.max is None else f"{least} to {bounds.max:,}"


class WholeRange(click.IntRange):
    """A whole number within bounds, which are named when another value is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Reads the number."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            return self.fail(f"{value!r} is not a whole number {_bounds(self)}", param, ctx)


class FiniteRange(click.FloatRange):
    """A number within bounds. It refuses `nan`, which click accepts within any bounds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Reads the number."""
        try:
            found = super().convert(value, param, ctx)
        except click.BadParameter:
            found = nan
        return self.fail(f"{value!r} is not a number {_bounds(self)}", param, ctx) if isnan(found) else found


POLICY = click.option("--policy", metavar="NAME", shell_complete=names("loop_core.turn.presets", "POLICIES"),
                      help="The policy of the agent loop; by default the configured one, otherwise strict.")

TURN = click.option("--turn", "turn_number", type=WholeRange(1), metavar="N", help="Only this turn, by its number.")

INSECURE = click.option("--insecure-http", multiple=True, metavar="HOST",
                        help="Let the key go to this host over plain http; may be repeated.")


@without_collector
def configure(policy: str | None) -> tuple[Config, Settings]:
    """The configuration, and the initial settings of a replay: options override the configuration."""
    from dataclasses import replace

    from inspector import config
    from loop_core.turn.presets import preset

    found = config.load()
    return found, found.settings if policy is None else replace(found.settings, policy=preset(policy))


def configured_verdicts() -> str:
    """The configured values under which turns may get another verdict; empty for none. An unreadable configuration
    counts as empty, because it must not stop a command that does not use it."""
    from inspector import config
    from loop_core.errors import CallerError

    try:
        return config.load().judging
    except CallerError:
        return ""


def stdin_of(paths: Sequence[str]) -> bytes | None:
    """The bytes of standard input, if `-` is among the paths."""
    from inspector.sessions import intake

    return intake.standard_input() if "-" in paths else None


@without_collector
def open_view(
    paths: Sequence[str], api: str | None, profile: str | None, settings: Settings, stdin: bytes | None = None,
    keep_steps: bool = True,
) -> tuple[Recording, View]:
    """The recording, and the view of its replay under these settings. Without `keep_steps` it is only for a report:
    steps are made again when they are needed."""
    from inspector.report.facts import view_of_case

    loaded, case = read_case(paths, api, profile, stdin, keep_steps)
    return loaded, view_of_case(case, settings)


@without_collector
def read_case(
    paths: Sequence[str], api: str | None, profile: str | None, stdin: bytes | None = None, keep_steps: bool = True
) -> tuple[Recording, Case]:
    """The recording with every response judged."""
    from inspector.replay.case import LONG_RECORDING, open_case

    stdin = stdin_of(paths) if stdin is None else stdin
    loaded = open_paths(located_all(paths), api=api, profile=profile, stdin=stdin)
    return loaded, open_case(loaded, long_from=LONG_RECORDING if keep_steps else 0)


def followed_paths(paths: Sequence[str], folders: bool = False) -> list[str]:
    """The paths to follow, with samples replaced by their files. Raises `UsageError` for no path, standard input, a
    path that does not exist and, without `folders`, a folder."""
    located = located_all(paths)
    for path in located or [""]:
        if not (os.path.isfile(path) or (folders and os.path.isdir(path))):
            what, neither = ("files or folders", "is neither") if folders else ("files", "is not one")
            neither = "is a folder, whose table is followed without it" if os.path.isdir(path) else neither
            raise click.UsageError(f"--follow: expected existing {what}{f'; {path} {neither}' if path else ''}")
    return located


def errors_of(inputs: Iterable[Input]) -> list[str]:
    """The inputs that could not be read, one line each."""
    return [source.error for source in inputs if source.error]


def located_all(paths: Sequence[str]) -> list[str]:
    """The paths, with sample names replaced by the paths of the samples."""
    if not any(path.startswith("sample:") for path in paths):
        return list(paths)
    from inspector.sessions.folders import locate

    return [locate(path) for path in paths]


def saved_runs(
    recording: Recording, original: View, stdin: bytes | None, make_again: bool = True
) -> tuple[Tree, Store]:
    """The saved runs of a recording, and their store; reports those that cannot be used. Without `make_again`, only the
    original: no other is needed to save a run, and each takes as long as a replay."""
    from inspector.whatif.branch_report import restore_tree
    from inspector.whatif.store import open_store
    from inspector.whatif.tree import Tree

    store = open_store(recording, os.environ, stdin)
    tree, notices = restore_tree(original, store) if make_again else (Tree(original), store.notices)
    say(notices)
    return tree, store


def without_credentials(text: str) -> str:
    """The text with credentials masked, at equal length; applied to all output except our server's address."""
    from inspector.sessions import redact  # not imported for `--help` and completion, which read nothing

    return redact.text(text)


def say(notices: Iterable[str], before: str = "inspector: ") -> None:
    """Writes lines to standard error. If standard error cannot be written, the lines are lost without an error."""
    for notice in notices:
        from inspector.report.ci_log import without_ci_commands
        from inspector.report.lines.spans import one_line  # imported here, because there is mostly no notice

        try:
            click.echo(without_ci_commands(f"{before}{without_credentials(one_line(notice))}"), err=True)
        except OSError:
            sys.stderr = None  # the rest of its buffer would be written once more at the end


def complain(recording: Recording) -> int:
    """Reports unreadable inputs on standard error; returns the exit code."""
    errors = errors_of(recording.inputs)
    say(errors)
    return UNREADABLE if errors else READ


def has_terminal() -> bool:
    """Whether the app can be drawn: in a terminal that can show screens, or with another driver, as in a browser."""
    return "TEXTUAL_DRIVER" in os.environ or (
        is_terminal(sys.stdout) and os.environ.get("TERM") not in ("dumb", "unknown"))


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal; None stands for a closed one."""
    return stream is not None and stream.isatty()


def output_width(wide: int) -> int:
    """The width of standard output in columns, or `COLUMNS` if that is set; `wide` if it is not a terminal."""
    import shutil

    return shutil.get_terminal_size((wide, 24)).columns


def write(text: str) -> None:
    """Writes text to standard output, which may be the log of a CI server."""
    from inspector.report.ci_log import without_ci_commands

    _put(without_ci_commands(without_credentials(text)))


def write_report(text: str) -> None:
    """Writes a report of `check`, which may itself consist of commands to a CI server, to standard output."""
    _put(without_credentials(text))


def write_files(files: Mapping[str, str]) -> None:
    """Writes the contents of files to standard output, which may be the log of a CI server."""
    from inspector.report.ci_log import without_ci_commands

    for name, text in files.items():
        shown = without_credentials(ascii_json(text) if name.endswith(".jsonl") else text)
        _put(without_ci_commands(shown, os.path.splitext(name)[1]))


def write_json(value: Any) -> None:
    """Writes a document to standard output."""
    # Escaped to ASCII, so that no text of a transcript acts as a command on a terminal.
    _put(_json_in_a_log(json.dumps(value, ensure_ascii=True, indent=1)) + "\n")


def _json_in_a_log(text: str) -> str:
    from inspector.report.ci_log import without_ci_commands

    return without_ci_commands(without_credentials(text), ".json")


def write_result(as_json: bool, document: Callable[[], Any], text: Callable[[], str]) -> None:
    """Writes the result of a command to standard output: its document for `--json`, else its text."""
    if as_json:
        write_json(document())
    else:
        write(text())


def ascii_json(text: str) -> str:
    """Lines of JSON with every non-ASCII character as an escape; their values are the same."""
    return re.sub(r"[^\n -~]+", lambda found: json.dumps(found[0])[1:-1], text)


def write_pieces(pieces: Iterable[str]) -> None:
    """Writes a document piece by piece as it is made, then a line break."""
    text = ""
    for piece in pieces:
        if reader_left():
            return
        text += piece
        if len(text) > _PIECE:
            _put(_json_in_a_log(text))
            text = ""
    _put(_json_in_a_log(text) + "\n")


_PIECE = 1 << 16


class UnwrittenError(Exception):
    """Standard output could not be written; the message says why."""


def write_address(address: str) -> None:
    """Writes the address of our server with its token, which the reader needs."""
    _put(f"{address}\n")


class DiscardedOutput(TextIOBase):
    """Standard output after its reader has left. It discards all text, so that the exit code does not change."""

    def write(self, text: str, /) -> int:
        """Discards a text and reports it as written."""
        return len(text)


def reader_left() -> bool:
    """Whether the reader of standard output has left, so that no further output is needed."""
    return isinstance(sys.stdout, DiscardedOutput)


def _put(text: str) -> None:
    if sys.stdout is None:  # standard output was closed when the program started
        raise UnwrittenError("it is closed")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stdout = DiscardedOutput()  # the buffer of the old one would be written at the end
    except OSError as why:
        sys.stdout = None  # the rest of its buffer would be written once more at the end
        raise UnwrittenError(why.strerror or str(why)) from None


# -- Long work: its progress in one line of a terminal, and how Ctrl-C stops it --------------------------------------

WIDTH = 30
DRAW_SECONDS = 0.1
"""The number of seconds between two drawings of the progress; shorter work draws nothing."""


@contextmanager
def progress_bar(stream: TextIO | None) -> Iterator[Callable[[int, int], None]]:
    """Draws a progress bar if `stream` is a terminal, and erases it at the end; None stands for a closed stream."""
    if stream is None or not stream.isatty():
        yield lambda done, parts: None
        return
    drawn = time.monotonic()
    length = 0

    def draw(count: int, parts: int) -> None:
        nonlocal drawn, length
        if time.monotonic() - drawn < DRAW_SECONDS:
            return
        drawn = time.monotonic()
        filled = WIDTH * count // parts
        line = f"[{'#' * filled}{'.' * (WIDTH - filled)}] {count:,} of {parts:,}  Ctrl-C stops"
        length = max(length, len(line))
        stream.write(f"\r{line:<{length}}")
        stream.flush()

    try:
        yield draw
    finally:
        if length:
            stream.write(f"\r{' ' * length}\r")
            stream.flush()


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Records Ctrl-C instead of raising it; a second Ctrl-C raises as usual."""
    import signal  # imported here, because only long commands need it

    interrupted = False

    def remember(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield lambda: interrupted
    finally:
        signal.signal(signal.SIGINT, before)
