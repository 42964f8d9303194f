"""Live turns against the scripted provider, whose server uses a free local port and lives as long as the turn.

No key is needed, and nothing leaves the machine. The provider plays a scenario, a row of the table of dialects (whose
bytes are the first answer, unchanged), or the stand-in for the provider of a recorded turn.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from inspector.config.settings import Settings, live_limits, parse_assignments
from inspector.live.answers import Answers
from inspector.live.branch_request import BranchRequest, branch_request
from inspector.live.headless import LiveOptions, LiveStart, plan_turn, start
from inspector.live.recorder import new_recording
from inspector.provider.dialects import has_dialect
from inspector.provider.scenarios import Intent, Story
from inspector.replay import Replay, TurnRun
from inspector.replay.rerun import start_of
from loop_core.client.address import Server
from loop_core.errors import CallerError
from loop_core.formats import FORMATS
from loop_core.json_parser import from_json_prefix
from loop_core.turn.state import ProviderResponse, RunTools, Turn
from loop_core.turn.tools import Toolbox, ToolFunction
from loop_core.turn.trace import Step
from loop_core.values import FINISHED, CallKind, Tool, ToolCall, tools_by_name
from loop_core.wire import wire
from loop_core.wire.body import list_of, mapping_of

if TYPE_CHECKING:
    from inspector.provider.dialect_rows import DialectRow
    from inspector.provider.scenarios import DeclaredTool

ENOUGH_TOKENS = 1_024
"""The max_tokens for a scenario that sets none, because some formats (Anthropic Messages) require it."""
PACE = 0.1
"""The factor for the waits of a scenario, so that an operator does not wait a minute for a silent server."""


class ScriptedServer:
    """A scripted provider that runs until `close`, or until the program ends."""

    def __init__(self, story: Story, dialect: str | None) -> None:
        from inspector.provider.server import serving

        self._stack = ExitStack()
        provider = self._stack.enter_context(serving(story, profile=dialect, pace=PACE))
        self.url = provider.url
        self.bases: Mapping[str, str] = provider.bases

    def close(self) -> None:
        """Stops the server; further calls do nothing."""
        self._stack.close()


@dataclass(frozen=True, slots=True)
class ScriptedTurn:
    """The start values of a turn, and its server."""

    start: LiveStart
    server: ScriptedServer
    plays: str
    runs: bool = False
    """Whether the turn runs to its end without waiting for keys."""
    stop_word: str = ""
    """A sentence about false or missing stop words that the scenario sends; empty if all are true."""
    blind: str = ""
    """Why the first answer, which is cut, has the same bytes as a finished answer; empty if its bytes differ."""


def formats_of(story: Story) -> tuple[str, ...]:
    """The wire formats that can express a scenario completely."""
    from inspector.provider.faults import why_unplayable

    return tuple(api for api in FORMATS if not why_unplayable(story, api, True))


def scenario_turn(story: Story, options: LiveOptions, settings: Settings) -> ScriptedTurn:
    """A turn that plays a scenario; `options.profile` names the server that the provider imitates. Raises `LoopError`
    if an option cannot be used; then no server is left running."""
    from inspector.provider.faults import StopWord, stop_word_of

    word = stop_word_of(story)
    if options.api not in formats_of(story):
        raise CallerError(f"{options.api} cannot say what happens in {story.name}; {', '.join(formats_of(story))} can")
    own = parse_assignments(options.assignments)
    cap = [] if "max_tokens" in own else [f"max_tokens={story.max_tokens or ENOUGH_TOKENS}"]
    server = ScriptedServer(story, options.profile if has_dialect(options.profile) else story.profile)
    try:
        # the scenario has its own messages, tools and results
        local = replace(options, model=story.name, base=server.bases[options.api],
                        prompt=options.prompt or story.prompt, messages=None, tools=None, results=None, key_env=None,
                        assignments=[*options.assignments, *cap])
        begun = start(local, settings)
        keyless = replace(begun.server, key="", sign=None)  # no key for this machine, even if the environment has one
        tools, answers = _tools(() if wire(options.api).no_tools else story.tools)
        request, _ = plan_turn(replace(begun.request, tools=tools), keyless, begun.settings)
    except BaseException:  # an interrupt too: no server may outlive a turn that never began
        server.close()
        raise
    return ScriptedTurn(replace(begun, request=request, server=keyless, answers=answers), server,
                        f"{story.name} as {options.profile or options.api}",
                        stop_word="" if word is StopWord.TRUE else word)


def row_turn(row: DialectRow, settings: Settings) -> ScriptedTurn:
    """A turn that begins with a row's request and gets the row as its first answer. Raises `LoopError` if the turn
    cannot be begun; then no server is left running."""
    from inspector.provider.dialect_rows import story_of_row

    request = row.exchange.request
    if request is None:
        raise CallerError(f"{row.name}: its row has no request that could be sent")
    story = story_of_row(row)
    settings = replace(settings, limits=live_limits(settings), max_tokens=None)
    server = ScriptedServer(story, row.name)
    try:
        target = Server(row.dialect.api, server.bases[row.dialect.api], profile=row.dialect.profile)
        _, answers = _tools(story.tools)
        request, _ = plan_turn(request, target, settings)
    except BaseException:
        server.close()
        raise
    begun = LiveStart(request, target, settings, answers, new_recording(row.dialect.api))
    return ScriptedTurn(begun, server, f"{row.play.scenario.name} as {row.name}", runs=True, blind=row.blind)


def _tools(declared: Sequence[DeclaredTool]) -> tuple[tuple[Tool, ...], Answers]:
    """The tools of a scenario, and the answers with the result of each."""
    def run(result: str) -> ToolFunction:
        return lambda arguments: result

    answers = Answers()
    answers.toolbox = Toolbox({each.tool.name: run(each.result) for each in declared})
    return tuple(each.tool for each in declared), answers


# -- A stand-in for the provider of a recorded turn ------------------------------------------------------------------
# It answers with the recorded output and a made-up rest, to show without a key what a loop does with a cut answer whose
# rest was not recorded. Its answers are marked as simulated, and their text says where the recording ends.

MADE_UP_MARK = "[the recording ends here, the rest is made up]"
"""The text between the recorded part and the made-up rest, in texts and in arguments."""
LEAST_REST = 200
"""The least number of characters of a made-up rest. If more was recorded, the rest is as long as the recorded part."""
VALUE_OF_TYPE: Mapping[str, Any] = {
    "number": 0, "integer": 0, "boolean": False, "array": [], "object": {}, "null": None,
}
"""Type in a JSON schema -> the made-up value of a required member of this type. Members of other types are texts."""


def stand_in_request(parent: Replay, settings: Settings, since: int, environment: Mapping[str, str]) -> BranchRequest:
    """The request to a stand-in from this step; its server runs until the run ends, and no key is sent. Raises
    `LoopError` if the turn cannot be sent again; no server runs then."""
    from_here = start_of(parent, since)
    opening = parent.case.recording.exchanges[from_here.opening.index]
    profile = opening.profile.name
    server = ScriptedServer(stand_in(from_here.turn, from_here.number), profile if has_dialect(profile) else None)
    try:
        request = branch_request(parent, settings, since, environment, base=server.bases.get(opening.api, server.url),
                                 profile=profile)
    except BaseException:
        server.close()
        raise
    target = request.target
    # no credential may reach a log
    keyless = replace(target, server=replace(target.server, key="", sign=None), variable=None)
    return replace(request, target=keyless, stand_in=server)


def stand_in(turn: TurnRun, run: int) -> Story:
    """The scenario of a run of a recorded turn: its merged answers, the last one with a made-up rest if it was cut."""
    steps = [step for step in turn.steps if step.run == run]
    return Story("stand-in", "What was recorded of a turn, and a made-up rest.", tuple(_answers(steps)))


def _answers(steps: Sequence[Step]) -> Iterator[Intent]:
    answered = False
    for step in steps:
        answered = answered or isinstance(step.event, ProviderResponse)
        batch = next((effect.batch for effect in step.effects if isinstance(effect, RunTools)), None)
        if batch is not None:
            yield Intent(text=step.turn.joined_answer().text, calls=tuple([verdict.call for verdict in batch]))
            answered = False
    yield _last_answer(steps[-1].turn) if answered else Intent(text=_rest(""))


def _last_answer(turn: Turn) -> Intent:
    evaluation = turn.evaluation
    assert evaluation is not None  # noqa: S101 - there was an answer
    text, reasoning = turn.joined_answer().text, evaluation.response.reasoning_content or ""
    calls = tuple([call for call in evaluation.response.tool_calls if call.kind is not CallKind.SERVER])
    if evaluation.judgement.stop.normalized in FINISHED:
        return Intent(reasoning, text, calls)
    if calls:
        return Intent(text=text, calls=tuple([_whole_call(call, turn.request.tools) for call in calls]))
    return Intent("" if text else reasoning, text + _rest(text))


def _rest(text: str) -> str:
    """A rest as long as the text; its sentences are numbered, so that no two pieces look like an overlap."""
    rest, number = f" {MADE_UP_MARK}", 0
    while len(rest) < max(len(text), LEAST_REST):
        number += 1
        rest += f" Made-up sentence {number}."
    return rest


def _whole_call(call: ToolCall, tools: tuple[Tool, ...]) -> ToolCall:
    """The call with completed arguments, which have the mark after the cut text. A call whose arguments look whole gets
    the mark too, because a format that sends objects hides cuts. No recorded result fits such arguments."""
    try:
        begun = from_json_prefix((call.arguments or "").encode())
    except ValueError:
        begun = None
    tool = tools_by_name(tools).get(call.name)
    schema = (tool.schema if tool is not None else None) or {}
    marked_values = _mark_end(begun) if isinstance(begun, dict) else {}
    return call._replace(arguments=json.dumps({**_missing_values(schema), **marked_values}, ensure_ascii=False),
                         closed=True, status=None, other_arguments=None, arguments_unsent=False)


def _missing_values(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A value for each required member of an object's schema."""
    members = mapping_of(schema.get("properties"))
    return {
        # Gemini's types are upper case: `STRING`
        name: VALUE_OF_TYPE.get(str(mapping_of(members.get(name)).get("type")).lower(), MADE_UP_MARK)
        for name in list_of(schema.get("required")) if isinstance(name, str)
    }


def _mark_end(value: Any) -> Any:
    """The value with the mark after the string at its end. A number at its end stays unchanged, although it may be cut.
    """
    if isinstance(value, str):
        return f"{value} {MADE_UP_MARK}"
    if isinstance(value, dict) and value:
        last = next(reversed(value))
        return {**value, last: _mark_end(value[last])}
    if isinstance(value, list) and value:
        return [*value[:-1], _mark_end(value[-1])]
    return value
