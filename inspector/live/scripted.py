"""A live turn against the scripted provider: its server uses a free local port and lives as long as the turn.

No key is needed and nothing leaves the machine. The provider plays a scenario, or a row of the table of dialects; the
bytes of such a row are the first answer, unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from inspector.config.settings import Settings, live_limits, parse_assignments
from inspector.live.answers import Answers
from inspector.live.headless import LiveOptions, LiveStart, new_recording, plan_turn, start
from loop_core.client.address import Server
from loop_core.errors import CallerError
from loop_core.formats import FORMATS
from loop_core.turn.tools import Toolbox, ToolFunction
from loop_core.values import Tool
from loop_core.wire import wire

if TYPE_CHECKING:
    from inspector.provider.dialect_rows import DialectRow
    from inspector.provider.scenarios import DeclaredTool, Story


PLENTY = 1_024
"""The max_tokens for a scenario that names none: some formats (Anthropic Messages) refuse a request without it."""
PACE = 0.1
"""The factor for the waits of a scenario: an operator should not have to watch a server be silent for a minute."""


class ScriptedServer:
    """A scripted provider that runs until `close`, or until the program ends."""

    def __init__(self, story: Story, dialect: str | None = None) -> None:
        from inspector.provider.server import serving

        self._stack = ExitStack()
        provider = self._stack.enter_context(serving(story, profile=dialect, pace=PACE))
        self.url = provider.url
        self.bases: Mapping[str, str] = provider.bases
        """Wire format -> base URL."""

    def close(self) -> None:
        """Stops the server; further calls do nothing."""
        self._stack.close()


@dataclass(frozen=True, slots=True)
class ScriptedTurn:
    """The start values of a turn, and its server."""

    start: LiveStart
    server: ScriptedServer
    plays: str
    """The scenario that the server plays, and its wire format and dialect."""
    runs: bool = False
    """Whether it runs to its end without waiting for keys."""
    stop_word: str = ""
    """What is wrong with the stop words that the scenario sends, as a sentence; empty if they are true."""
    blind: str = ""
    """Why its first answer, which is cut, has the same bytes as a finished one; empty if it has not."""


def formats_of(story: Story) -> tuple[str, ...]:
    """The wire formats that can express a scenario completely."""
    from inspector.provider.faults import meaningless

    return tuple(api for api in FORMATS if not meaningless(story, api, True))


def scenario_turn(story: Story, options: LiveOptions, settings: Settings) -> ScriptedTurn:
    """A turn that plays a scenario; `options.profile` names the server that the provider imitates.

    Raises:
        LoopError: an option cannot be used; then no server is left running.
    """
    from inspector.provider.dialects import has_dialect
    from inspector.provider.faults import StopWord, stop_word_of

    word = stop_word_of(story)
    if options.api not in formats_of(story):
        raise CallerError(f"{options.api} cannot say what happens in {story.name}; {', '.join(formats_of(story))} can")
    own = parse_assignments(options.assignments)
    cap = [] if "max_tokens" in own else [f"max_tokens={story.max_tokens or PLENTY}"]
    server = ScriptedServer(story, options.profile if has_dialect(options.profile) else story.profile)
    try:
        asked = replace(options, model=story.name, base=server.bases[options.api],
                        # the story has its own
                        prompt=options.prompt or story.prompt, messages=None, tools=None, results=None, key_env=None,
                        assignments=[*options.assignments, *cap])
        begun = start(asked, settings)
        keyless = replace(begun.server, key="", sign=None)  # no key for this machine, even if the environment has one
        tools, answers = _tools(() if wire(options.api).no_tools else story.tools)
        request, _ = plan_turn(replace(begun.request, tools=tools), keyless, begun.settings)
    except BaseException:  # also on an interrupt: no server may outlive a turn that never began
        server.close()
        raise
    return ScriptedTurn(replace(begun, request=request, server=keyless, answers=answers), server,
                        f"{story.name} as {options.profile or options.api}",
                        stop_word="" if word is StopWord.TRUE else word)


def row_turn(row: DialectRow, settings: Settings) -> ScriptedTurn:
    """A turn that begins with a row's request and gets the row as its first answer.

    Raises:
        LoopError: the turn cannot be begun; then no server is left running.
    """
    from inspector.provider.dialect_rows import story_of_row

    request = row.exchange.request
    if request is None:
        raise CallerError(f"{row.name}: its row has no request that could be sent")
    story = story_of_row(row)
    settings = replace(settings, limits=live_limits(settings), max_tokens=None)
    server = ScriptedServer(story, row.name)
    try:
        speaker = Server(row.dialect.api, server.bases[row.dialect.api], profile=row.dialect.profile)
        _, answers = _tools(story.tools)
        request, _ = plan_turn(request, speaker, settings)
    except BaseException:
        server.close()
        raise
    begun = LiveStart(request, speaker, settings, answers, new_recording(row.dialect.api))
    return ScriptedTurn(begun, server, f"{row.play.scenario.name} as {row.name}", runs=True, blind=row.blind)


def _tools(declared: Sequence[DeclaredTool]) -> tuple[tuple[Tool, ...], Answers]:
    """The tools of a scenario, each with its one result."""
    def run(result: str) -> ToolFunction:
        return lambda arguments: result

    answers = Answers()
    answers.toolbox = Toolbox({each.tool.name: run(each.result) for each in declared})
    return tuple(each.tool for each in declared), answers
