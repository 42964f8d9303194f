"""A stand-in for the provider of a recorded turn: it answers with the recorded output and a made-up rest.

It shows what a loop does with a cut answer if the rest was not recorded and there is no key. The scripted provider
plays it, so nothing leaves the machine. Its answers are marked as simulated, and their text says where the recording
ends.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from inspector.config.settings import Settings
from inspector.live.branch_request import BranchRequest, branch_request
from inspector.live.scripted import ScriptedServer
from inspector.provider.dialects import has_dialect
from inspector.provider.scenarios import Intent, Story
from inspector.replay import Replay, TurnRun
from inspector.replay.rerun import start_of
from loop_core.json_parser import from_json_prefix
from loop_core.turn.state import ProviderResponse, RunTools, Turn
from loop_core.turn.trace import Step
from loop_core.values import FINISHED, CallKind, Tool, ToolCall, tools_by_name
from loop_core.wire.body import list_of, mapping_of

MADE_UP = "[the recording ends here, the rest is made up]"
"""Stands between what was recorded and what was not; also in arguments."""
LEAST = 200
"""Characters of a made-up rest, where less was recorded; else it is as long as what was recorded."""
VALUE_OF_TYPE: Mapping[str, Any] = {
    "number": 0, "integer": 0, "boolean": False, "array": [], "object": {}, "null": None,
}
"""Type of a JSON schema -> the value of a required member that was not recorded; others are texts."""


def stand_in_request(
    parent: Replay, settings: Settings, since: int, environment: Mapping[str, str]
) -> BranchRequest:
    """The request to a stand-in from this step; its server runs until the run ends, and no key is sent.

    Raises:
        LoopError: the turn cannot be sent again; no server runs then.
    """
    start = start_of(parent, since)
    opening = parent.case.recording.exchanges[start.opening.index]
    profile = opening.profile.name
    server = ScriptedServer(stand_in(start.turn, start.number), profile if has_dialect(profile) else None)
    try:
        request = branch_request(parent, settings, since, environment, base=server.bases.get(opening.api, server.url),
                                 profile=profile)
    except BaseException:
        server.close()
        raise
    target = request.target
    # nothing of it may reach a log
    keyless = replace(target, server=replace(target.server, key="", sign=None), variable=None)
    return replace(request, target=keyless, stand_in=server)


def stand_in(turn: TurnRun, run: int = 0) -> Story:
    """The scenario of a recorded turn: its answers as they were merged, the last one with a made-up rest if it was cut.

    Where the recorded agent went another way, a turn has several runs: `run` is the number of the one that is played.
    """
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
    seen = turn.evaluation
    assert seen is not None  # noqa: S101 - there was an answer
    text, reasoning = turn.joined_answer().text, seen.response.reasoning_content or ""
    calls = tuple([call for call in seen.response.tool_calls if call.kind is not CallKind.SERVER])
    if seen.judgement.stop.normalized in FINISHED:
        return Intent(reasoning, text, calls)
    if calls:
        return Intent(text=text, calls=tuple([_whole_call(call, turn.request.tools) for call in calls]))
    return Intent("" if text else reasoning, text + _rest(text))


def _rest(text: str) -> str:
    """A rest as long as the text; each sentence has a number, so that no two pieces look like an overlap."""
    rest, number = f" {MADE_UP}", 0
    while len(rest) < max(len(text), LEAST):
        number += 1
        rest += f" Made-up sentence {number}."
    return rest


def _whole_call(call: ToolCall, tools: tuple[Tool, ...]) -> ToolCall:
    """A call whose arguments are completed, with the mark after the text that was cut.

    A call whose arguments look whole gets the mark too, because a format that sends an object hides cuts. A recorded
    result only answers equal arguments, so made-up arguments never get one.
    """
    try:
        begun = from_json_prefix((call.arguments or "").encode())
    except ValueError:
        begun = None
    tool = tools_by_name(tools).get(call.name)
    schema = (tool.schema if tool is not None else None) or {}
    known = _mark_end(begun) if isinstance(begun, dict) else {}
    return call._replace(arguments=json.dumps({**_missing(schema), **known}, ensure_ascii=False), closed=True,
                         status=None, other_arguments=None, arguments_unsent=False)


def _missing(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A value for each required member of an object's schema."""
    members = mapping_of(schema.get("properties"))
    return {
        # Gemini's types are upper case: `STRING`
        name: VALUE_OF_TYPE.get(str(mapping_of(members.get(name)).get("type")).lower(), MADE_UP)
        for name in list_of(schema.get("required")) if isinstance(name, str)
    }


def _mark_end(value: Any) -> Any:
    """The value with the mark after the string at its end; a number at its end, which may be cut, stays unchanged."""
    if isinstance(value, str):
        return f"{value} {MADE_UP}"
    if isinstance(value, dict) and value:
        last = next(reversed(value))
        return {**value, last: _mark_end(value[last])}
    if isinstance(value, list) and value:
        return [*value[:-1], _mark_end(value[-1])]
    return value
