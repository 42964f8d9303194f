"""Makes one row per dialect under a scenario: its bytes are generated, decoded, judged, gated and run.

A row is a session of one exchange in memory. All facts about it are read from its bytes, and shown beside the intended
answer. The first part makes the request that each format's client would have sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from inspector.config.settings import Settings
from inspector.provider.dialect_writing import is_streamed, response_pieces
from inspector.provider.dialects import DIALECTS, Dialect, Peer, peers
from inspector.provider.scenarios import (
    COMPLETE,
    TOOLS,
    DeclaredTool,
    FirstAnswer,
    Intent,
    PlayedScenario,
    Scenario,
    Story,
    play,
)
from inspector.replay import Replay, replay
from inspector.replay.case import Case, open_case
from inspector.sessions.build import UnbuiltExchange, build
from inspector.sessions.recording import Chunk, Exchange, Input, Options, RawExchange, Recording
from inspector.sessions.thread import thread
from loop_core.client.outgoing import body_of
from loop_core.errors import EncodeError
from loop_core.judge.arguments import ArgumentShape, parse, parse_leniently
from loop_core.judge.classify import Judgement
from loop_core.judge.gate import Admission, Verdict
from loop_core.turn.state import RunTools, State
from loop_core.values import FINISHED, CallKind, Message, ReasoningPart, Request, ResponsePart, Role, TextPart, ToolCall
from loop_core.wire import wire
from loop_core.wire.profiles import PROFILES
from loop_core.wire.serving import CallFraming, Spelling

if TYPE_CHECKING:
    from inspector.report.facts import View


# -- The request that each format's client would have sent -----------------------------------------------------------
# The request has the prompt, the tools, and the budget under the format's name for it.

HOSTS: Mapping[str, str] = {
    "bedrock": "https://bedrock-runtime.us-east-1.amazonaws.com",
    "vertex": "https://us-central1-aiplatform.googleapis.com",
    "azure_openai": "https://example.openai.azure.com",
    "oci": "https://inference.generativeai.example.oci.oraclecloud.com",
}
"""Profile whose host names are not a complete address -> an example of an address."""


def url(dialect: Dialect, stream: bool) -> str:
    """The URL of the request: the profile's own host, or a port of this machine."""
    profile = PROFILES[dialect.profile]
    port = profile.ports[0] if profile.ports else 8000
    local = not profile.hosts or profile.ports
    host = HOSTS.get(dialect.profile) or (f"http://127.0.0.1:{port}" if local else f"https://{profile.hosts[0]}")
    form = wire(dialect.api)
    return host + form.home.version + form.path(Request(dialect.api, model=dialect.model, stream=stream))


def body(dialect: Dialect, play: PlayedScenario, stream: bool) -> dict[str, Any]:
    """The request body."""
    spelling = dialect.spelling(play.moment)
    tools = () if wire(dialect.api).no_tools else TOOLS
    request = Request(
        dialect.api, (Message(Role.USER, (TextPart(play.scenario.prompt),)),), dialect.model, tools,
        max_tokens=play.budget, stream=stream, background=spelling is not None and spelling.whole,
    )
    return {**body_of(request, PROFILES[dialect.profile]), **dialect.asks}


AFTERWARDS = "Done."
"""The text of the model after its calls were answered."""
MS = 40.0
"""The number of milliseconds between two pieces of a stream."""


class CallState(StrEnum):
    """The state of the call that was being sent when the answer ended, or of the last call."""

    NONE = "no call"
    COMPLETE = "complete"
    PREFIX = "prefix of a string"
    PARTIAL = "partial_json prefix"
    ITEM = "item incomplete"
    OPEN = "block never closed"
    EMPTY = "empty string"
    EMPTY_OBJECT = "empty object"
    MEMBERS = "object, members missing"
    INVALID = "no JSON"
    MARKUP = "markup in the text"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DialectRow:
    """One dialect under one scenario."""

    dialect: Dialect
    play: PlayedScenario
    run: Replay
    pieces: tuple[bytes, ...]
    call: CallState
    losses: tuple[str, ...]
    """The model's output that the bytes do not contain, in words."""
    decision: str
    """What the loop does with the answer under the policy, in words."""
    runs_cut: bool
    """Whether the policy runs a call that the strict gate holds."""
    peers: tuple[Peer, ...]

    @property
    def name(self) -> str:
        """The dialect's name."""
        return self.dialect.name

    @property
    def exchange(self) -> Exchange:
        """The one exchange."""
        return self.run.case.recording.exchanges[0]

    @property
    def judgement(self) -> Judgement:
        """The judgement of the row's response."""
        return self.run.case.judgements[0]

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The strict gate's verdicts on the calls of the row's response."""
        return self.run.case.verdicts[0]

    @property
    def blind(self) -> str:
        """Why the bytes look the same as those of a finished answer; empty if they do not."""
        judged = self.judgement
        unseen = judged.stop.normalized in FINISHED and judged.ending is None
        return self.dialect.blind.get(self.play.moment, "") if unseen else ""


@dataclass(frozen=True, slots=True)
class SilentRow:
    """A dialect that cannot express this ending."""

    dialect: Dialect
    play: PlayedScenario
    why: str = "nothing is known of how it says so"

    @property
    def name(self) -> str:
        """The dialect's name."""
        return self.dialect.name


TableRow = DialectRow | SilentRow


def rows(
    scenario: Scenario,
    budget: int | None = None,
    dialects: Sequence[Dialect] = DIALECTS,
    settings: Settings | None = None,
) -> tuple[TableRow, ...]:
    """One row per dialect, in the order of the table; by default with the scenario's own budget."""
    settings = settings or Settings()
    return tuple(_table_row(dialect, play(scenario, budget, dialect.free_thinking), settings) for dialect in dialects)


def row_view(row: DialectRow) -> View:
    """The row as a session that every report and screen can show."""
    from inspector.report.facts import view

    return view(row.run)


def _table_row(dialect: Dialect, play: PlayedScenario, settings: Settings) -> TableRow:
    spelling, no_tools = dialect.spelling(play.moment), wire(dialect.api).no_tools
    if no_tools and _calls(play.scenario.parts):
        return SilentRow(dialect, play, no_tools)
    if spelling is None:
        return SilentRow(dialect, play)
    sent = tuple(response_pieces(dialect, spelling, play))
    case = _case(dialect, spelling, play, sent)
    exchange, judged = case.recording.exchanges[0], case.judgements[0]
    run = replay(case, settings)
    decision, runs_cut = _decision(run, play)
    response = exchange.response
    peer_readings = peers(dialect.api, dialect.profile, response.raw_stop_reason, response.error is not None,
                          bool(response.tool_calls), judged.stop.normalized)
    return DialectRow(dialect, play, run, sent, call_state(play, exchange),
                      losses(play, response.parts), decision, runs_cut, peer_readings)


def story_of_row(row: DialectRow) -> Story:
    """A scenario for the scripted provider: the row's own bytes, then the intended answer, in the row's dialect."""
    parts, exchange = row.play.scenario.parts, row.exchange
    answer = Intent("".join(_texts(parts, ReasoningPart)), "".join(_texts(parts, TextPart)), tuple(_calls(parts)))
    kind = next((value for name, value in exchange.headers if name == "content-type"), "application/json")
    scenario = row.play.scenario
    return Story(
        row.dialect.model, scenario.title, (answer, *((Intent(text=AFTERWARDS),) if answer.calls else ())),
        tuple(DeclaredTool(tool) for tool in TOOLS), prompt=scenario.prompt, max_tokens=row.play.budget,
        first=FirstAnswer(exchange.response.http_status or 200, kind, row.pieces),
    )


# -- the session -----------------------------------------------------------------------------------------------------


def raw_exchange(dialect: Dialect, spelling: Spelling, play: PlayedScenario, pieces: Sequence[bytes]) -> RawExchange:
    """The exchange in the form of an importer's output."""
    stream = is_streamed(dialect, spelling)
    kind = wire(dialect.api).stream_type if stream else "application/json"
    return RawExchange(
        0,
        url(dialect, stream),
        request_headers=[("content-type", "application/json")],
        request_text=json.dumps(body(dialect, play, stream), ensure_ascii=False),
        status=spelling.status,
        headers=[("content-type", kind)],
        body=b"".join(pieces),
        api=dialect.api,
        profile=dialect.profile,
        chunks=tuple(Chunk(end, MS * number) for number, end in enumerate(accumulate(map(len, pieces)), 1)),
        simulated=True,
    )


def _case(dialect: Dialect, spelling: Spelling, play: PlayedScenario, pieces: Sequence[bytes]) -> Case:
    path = f"{play.scenario.name} {dialect.name}"
    # The bytes are read like those of a recording, so that a row shows what the inspector reads in them instead of the
    # intention.
    exchange = build(raw_exchange(dialect, spelling, play, pieces), path, Options())
    if isinstance(exchange, UnbuiltExchange):
        raise EncodeError(f"what {dialect.name} wrote cannot be read: {exchange.why}", api=dialect.api)
    source = Input(path, "dialect", 1)
    return open_case(Recording((source,), (exchange,), thread([exchange], [[0]])))


# -- its description -------------------------------------------------------------------------------------------------

DECISIONS = {
    State.COMPLETE: "finish",
    State.EXECUTE_TOOLS: "run calls",
    State.CONTINUE_PENDING: "continue",
    State.REPAIR_PENDING: "hold, repair",
    State.RESUME: "resume",
    State.NUDGE_PENDING: "ask once more",
    State.ABORT: "abort",
    State.ABORT_PARTIAL: "abort, keep text",
}
"""State of the engine after EvaluateStop -> the decision in words."""
LOSE_REST = "lose the rest"
"""The decision about a turn that ends normally although its answer is not complete."""
RUN_HELD = "run held call"


def _decision(run: Replay, play: PlayedScenario) -> tuple[str, bool]:
    steps = run.trace.steps
    # The first decision counts, because later ones are about answers that this row does not have.
    at = next(index for index, step in enumerate(steps) if step.state is State.EVALUATE_STOP)
    after = steps[at + 1]
    if after.state is State.COMPLETE and play.moment not in COMPLETE:
        return LOSE_REST, False
    runs = any(isinstance(effect, RunTools) for effect in after.effects)
    cut = runs and any(verdict.admission is Admission.HELD for verdict in after.turn.would_run)
    return RUN_HELD if cut else DECISIONS[after.state], cut


def call_state(play: PlayedScenario, exchange: Exchange) -> CallState:
    """The state of the call that was being sent when the answer ended, or of the last one that began."""
    meant = _calls(play.parts)
    if not meant:
        return CallState.NONE
    calls = exchange.response.tool_calls
    if len(calls) < len(meant):
        marked = "<tool_call>" in (exchange.response.text or "")
        return CallState.MARKUP if marked else CallState.ABSENT
    call, whole = calls[-1], (play.cut_call or meant[-1]).arguments
    reading = parse(call.arguments)
    if reading.value is not None:
        if reading.value == parse(whole).value:  # as values, because the spacing of objects is lost
            return CallState.COMPLETE
        return CallState.MEMBERS if reading.value else CallState.EMPTY_OBJECT
    if reading.shape.is_missing:
        return CallState.EMPTY
    return _prefix(call, exchange.api) if reading.shape is ArgumentShape.CUT else CallState.INVALID


def _prefix(call: ToolCall, api: str) -> CallState:
    calls = wire(api).serving.calls
    if calls is CallFraming.ITEMS and call.status != "completed":
        return CallState.ITEM
    if calls is CallFraming.BLOCKS:
        return CallState.PARTIAL if call.closed else CallState.OPEN
    return CallState.PREFIX


def losses(play: PlayedScenario, parts: Sequence[ResponsePart]) -> tuple[str, ...]:
    """The model's output that the bytes do not contain."""
    found: list[str] = []
    for kind, what in _TEXTS:
        missing = sum(map(len, _texts(play.parts, kind))) - sum(map(len, _texts(parts, kind)))
        if missing > 0:
            found.append(f"{missing:,} characters of {what}")
    arrived = _calls(parts)
    for number, call in enumerate(_calls(play.parts)):
        size = len(call.arguments or "")
        if number >= len(arrived):
            found.append(f"the call {call.name} with {size:,} characters of arguments")
        elif not _is_intended(arrived[number], call):
            came_of_it = len(arrived[number].arguments or "")
            found.append(f"arguments of {call.name}: {came_of_it:,} of {size:,} characters came")
    return tuple(found)


def _is_intended(call: ToolCall, intended: ToolCall) -> bool:
    if call.arguments == intended.arguments:
        return True
    # Arguments that are sent as an object, or value by value, may have another spacing.
    one, other = parse(call.arguments), parse(intended.arguments)
    return one.shape is other.shape and parse_leniently(call.arguments) == parse_leniently(intended.arguments)


_Text = type[TextPart] | type[ReasoningPart]
_TEXTS: tuple[tuple[_Text, str], ...] = ((TextPart, "text"), (ReasoningPart, "thinking"))


def _texts(parts: Sequence[ResponsePart], kind: _Text) -> list[str]:
    return [part.text for part in parts if isinstance(part, kind)]


def _calls(parts: Sequence[ResponsePart]) -> list[ToolCall]:
    return [part for part in parts if type(part) is ToolCall and part.kind is not CallKind.SERVER]
