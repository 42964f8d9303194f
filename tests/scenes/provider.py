"""Scenarios that show one fault each, and a turn of our own loop against a provider."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpx

from inspector.config.settings import Settings
from inspector.provider import Intent, PlacedFault, Provider, Story
from inspector.provider.dialect_output import TableQuery
from inspector.provider.dialect_rows import TableRow, rows
from inspector.provider.faults import FAULTS, Fault, why_unplayable
from inspector.provider.place import locate
from inspector.provider.reply import Reply, reply_at
from inspector.provider.scenarios import SCENARIOS, DeclaredTool
from loop_core.client.address import Server
from loop_core.client.exchange import Connection, Retries, Timeouts
from loop_core.client.outgoing import ability
from loop_core.client.transport import Live
from loop_core.formats import FORMATS
from loop_core.turn.limits import Limits
from loop_core.turn.loop import Plan, run
from loop_core.turn.policy import STRICT, Policy
from loop_core.turn.presets import POLICIES
from loop_core.turn.state import Turn
from loop_core.turn.tools import Toolbox, ToolRunner
from loop_core.values import Message, Request, Role, TextPart, Tool, ToolCall
from loop_core.wire import wire
from loop_core.wire.profiles import PROFILES
from tests.scenes.rows import share

QUICK = Connection(Timeouts(connect=5, silence=2, whole=20, poll=0.01), Retries(most=2, longest=1, first=0.01))
"""Silence that is short beside a stall, and long beside a busy machine."""
IMPATIENT = Connection(Timeouts(connect=5, silence=0.15, whole=20, poll=0.01), Retries(most=1, longest=1, first=0.01))
"""For servers of which silence is expected: each attempt waits for it."""
TEXT = (
    "The queue was saturated for nineteen minutes. It began at 09:14, when the second region was drained, and ended at "
    "09:33, after the consumers had been doubled. No message was lost: those that waited came within the hour."
)
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
    "required": ["path", "content"],
    "additionalProperties": False,
}
WRITE = Tool("write_file", SCHEMA, "Writes a file.")
PAGE = Tool("page_team", {"type": "object", "properties": {"team": {"type": "string"}}, "required": ["team"]})
WRITTEN = {"path": "report.md", "content": "Saturated from 09:14 to 09:33; no message was lost."}
PAGED = {"team": "platform"}
MEANT: Mapping[str, Mapping[str, Any]] = {"write_file": WRITTEN, "page_team": PAGED}
_WRITE = ToolCall(None, "write_file", json.dumps(WRITTEN))
_PAGE = ToolCall(None, "page_team", json.dumps(PAGED))
BASES: Mapping[str, tuple[Intent, ...]] = {
    "text": (Intent(text=TEXT),),
    "call": (Intent(text="I write it down.", calls=(_WRITE,)), Intent(text="Done.")),
    "calls": (Intent(text="I page them.", calls=(_PAGE, _WRITE)), Intent(text="Done.")),
}
TOOLS = (DeclaredTool(WRITE), DeclaredTool(PAGE))
CALLING = tuple(api for api in FORMATS if not wire(api).no_tools)
"""The formats whose answers call tools."""
each_way = [(api, stream) for api in FORMATS for stream in (True, False)]
AT_ONCE = 6
"""So many turns at a time wait for a server: each needs the processor for a tenth of its time."""
WAITED_FOR = ("stalled", "reset")
"""Faults that a turn mostly waits for: a silence, or that what was sent arrives before the reset."""
PROFILES_OF = {"anthropic_messages": "claude-sonnet-4-5", "bedrock_converse": "anthropic.claude-sonnet-4-5"}


def reply(story: Story, request: Request, stream: bool, profile: str | None = None) -> Reply:
    """The answer of the scripted provider to one request."""
    return reply_at(story, request, locate(story, request), stream, profile)


def scenario_name(name: str) -> str:
    return name.replace("_", "-")


def at_once(check: Callable[[Any], None], cases: Iterable[Any]) -> None:
    """Checks several cases at a time; the first that fails is raised."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(check, cases))


def ways_of(story: Story, row: int, ways: Sequence[tuple[str, bool]] = each_way) -> list[tuple[str, bool]]:
    """A share of the formats, streamed and whole, and one that plays the scenario if all of these refuse it."""
    found, played = share(ways, row), [way for way in ways if not why_unplayable(story, *way)]
    return found if {*found} & {*played} else [*found, *share(played, row)[:1]]


def in_each_way(check: Callable[[str, bool], None], story: Story, row: int) -> None:
    """Checks a share of all formats, streamed and whole; several at a time where the fault is waited for."""
    if story.name in WAITED_FOR:
        at_once(lambda way: check(*way), ways_of(story, row))
    else:
        for api, stream in ways_of(story, row):
            check(api, stream)


def story_of(fault: Fault) -> Story:
    """The scenario that shows a fault as its row says."""
    placed = PlacedFault(fault.name, fault.example, 0, None, fault.when)
    return Story(scenario_name(fault.name), fault.does, BASES[fault.base], TOOLS, (placed,), max_tokens=fault.cap)


@cache
def table_rows(scenario: str, budget: int | None = None, policy: str = "strict") -> tuple[TableRow, ...]:
    """The rows of a scenario, run once in a process."""
    return rows(SCENARIOS[scenario], budget, settings=Settings(policy=POLICIES[policy]))


run_query = TableQuery.rows
tables: dict[str, tuple[TableRow, ...]] = {}
"""Query as text -> its rows; the settings of some cannot be hashed."""


def rows_by_query(query: TableQuery) -> tuple[TableRow, ...]:
    """The rows of a screen's table, in the place of `TableQuery.rows`: each is run once in a process."""
    if (key := repr(query)) not in tables:
        tables[key] = run_query(query)
    return tables[key]


STORIES = tuple(story_of(fault) for fault in FAULTS.values())


@dataclass
class Came(httpx.SyncByteStream):
    """What came of an answer, and what broke it off."""

    status: int = 0
    headers: httpx.Headers = field(default_factory=httpx.Headers)
    pieces: list[bytes] = field(default_factory=list)
    broke: httpx.TransportError | None = None

    def __iter__(self) -> Iterator[bytes]:
        yield from self.pieces
        if self.broke is not None:
            raise self.broke


class SentOnce(httpx.BaseTransport):
    """Sends a request once. When another turn sends the same bytes, the same bytes and the same break come again.

    For turns that differ in what is decided of an answer, not in how it comes.
    """

    def __init__(self) -> None:
        self.network = httpx.HTTPTransport()
        self.came: dict[tuple[str, bytes, int], Came] = {}
        self.times: Counter[tuple[str, bytes]] = Counter()
        """How often this turn has sent the same: another attempt may get another answer."""

    def turn(self) -> httpx.Client:
        """A client for another turn."""
        self.times.clear()
        return httpx.Client(transport=self)

    def close(self) -> None:
        self.network.close()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        sent = str(request.url), request.read()
        self.times[sent] += 1
        key = (*sent, self.times[sent])
        if key not in self.came:
            self.came[key] = self.send(request)
        came = self.came[key]
        if not came.status and came.broke is not None:
            raise came.broke
        return httpx.Response(came.status, headers=came.headers, stream=came)

    def send(self, request: httpx.Request) -> Came:
        came = Came()
        try:
            response = self.network.handle_request(request)
            came.status, came.headers = response.status_code, response.headers
            with contextlib.closing(response):
                came.pieces.extend(response.iter_raw())
        except httpx.TransportError as broke:
            came.broke = broke
        return came


@dataclass
class TurnResult:
    """A turn that is over, and what its tools were called with."""

    turn: Turn
    ran: list[tuple[str, Any]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.turn.joined_answer().text

    def answer(self, number: int) -> str:
        return self.turn.joined_answer(number).text


def play(
    provider: Provider, api: str, stream: bool, model: str, *, tools: tuple[Tool, ...] = (WRITE, PAGE),
    cap: int | None = 400, profile: str = "generic", line: Connection = QUICK,
    policy: Policy = STRICT, runner: ToolRunner | None = None, client: httpx.Client | None = None, **limits: Any,
) -> TurnResult:
    """A turn against a provider; every tool notes what it is called with, unless a runner runs the calls."""
    ran: list[tuple[str, Any]] = []

    def tool(name: str) -> Any:
        def call(arguments: Any) -> str:
            ran.append((name, arguments))
            return "done"

        return call

    tools = () if wire(api).no_tools else tools
    request = Request(api, (Message(Role.USER, (TextPart("Go on."),)),), model, tools, max_tokens=cap, stream=stream)
    plan = Plan(Limits(**limits), policy, ability=ability(PROFILES[profile], api))
    box = Toolbox({each.name: tool(each.name) for each in tools})
    server = Server(api, provider.bases[api], profile=None if profile == "generic" else profile)
    with Live(server, toolbox=runner or box, line=line, client=client) as source:
        trace = run("t", request, source, plan)
    return TurnResult(trace.steps[-1].turn, ran)
