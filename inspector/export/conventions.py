"""OpenTelemetry's conventions for generative AI: their names, and spans and points as plain values with times.

Names that begin with `gen_ai.`, `server.`, `error.` and `http.` are those of the semantic conventions for generative AI
(tests compare them with the package opentelemetry-semantic-conventions); all others are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from inspector.report.times_and_costs import length
from inspector.sessions.recording import Exchange
from inspector.sessions.traffic import moment
from loop_core.wire import FORMATS, wire

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
REQUEST_MAX_TOKENS = "gen_ai.request.max_tokens"
REQUEST_STREAM = "gen_ai.request.stream"
REQUEST_CHOICES = "gen_ai.request.choice.count"
RESPONSE_MODEL = "gen_ai.response.model"
RESPONSE_ID = "gen_ai.response.id"
FINISH_REASONS = "gen_ai.response.finish_reasons"
FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens"
CACHED_TOKENS = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS = "gen_ai.usage.cache_creation.input_tokens"
TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105  (a name, no secret)
TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_CALL_ID = "gen_ai.tool.call.id"
SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"
HTTP_STATUS = "http.response.status_code"
ERROR_TYPE = "error.type"

SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL_DEFINITIONS = "gen_ai.tool.definitions"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"
"""These last six attributes hold message contents, which are included only if the operator asks for them."""

OURS = "loop_inspector."


class Operation(StrEnum):
    """The operation of a span, in the conventions' words."""

    CHAT = "chat"
    EXECUTE_TOOL = "execute_tool"
    INVOKE_AGENT = "invoke_agent"


class Times(StrEnum):
    """How reliable a span's times are: `loop_inspector.times`."""

    RECORDED = "recorded"
    """Start and end of the span were recorded."""
    START = "start"
    """The start is known and the end is not, so the span has no length."""
    LENGTH = "length"
    """The length is known and the start is not, so the span begins where the span before it ends."""
    BATCH = "batch"
    """The span is a tool run: all calls of an answer ran between the start and the end."""
    ORDER = "order"
    """The length is not known: the span is placed after the span before it or, if only the time of a tool's result is
    known, at that time."""


PROVIDERS: Mapping[str, str] = {
    "chatgpt_codex": "openai", "gemini": "gcp.gemini", "vertex": "gcp.vertex_ai", "azure_openai": "azure.ai.openai",
    "azure_foundry": "azure.ai.inference", "bedrock": "aws.bedrock", "mistral": "mistral_ai", "xai": "x_ai",
}
"""Server profile -> the provider's name in the conventions, for profiles with another name."""


def provider(profile: str, api: str | None) -> str:
    """The provider's name in the conventions, which require one; `api` is None if the wire format is not recorded."""
    if profile.startswith("generic"):
        if api is None:
            return "unknown"
        return wire(api).provider if api in FORMATS else api  # if the server is unknown, the API decides (conventions)
    return PROVIDERS.get(profile, profile)


class Instrument(NamedTuple):
    """A metric: its unit, its description and its buckets."""

    unit: str
    about: str
    bounds: tuple[float, ...] | None = None
    """The buckets of a histogram; None for a counter."""


_TOKENS = tuple(float(4**power) for power in range(14))  # 1 to 67,108,864, as the conventions advise
_SECONDS = tuple(round(0.01 * 2**power, 2) for power in range(14))  # 0.01 to 81.92, as the conventions advise
_ATTEMPTS = tuple(float(count) for count in range(11))

TOKEN_USAGE = "gen_ai.client.token.usage"  # noqa: S105  (a name, no secret)
DURATION = "gen_ai.client.operation.duration"
TIME_TO_FIRST_CHUNK = "gen_ai.client.operation.time_to_first_chunk"
RESPONSES = "loop_inspector.responses"
CALLS = "loop_inspector.calls"
TURNS = "loop_inspector.turns"
CONTINUATIONS = "loop_inspector.continuations"
TRUNCATION_EXITS = "loop_inspector.truncation_exits"
ATTEMPTS = "loop_inspector.attempts_per_turn"
CONTINUED = "loop_inspector.continued_turn.duration"
CONTINUED_UNTIMED = "loop_inspector.continued_turn.untimed"

INSTRUMENTS: Mapping[str, Instrument] = {
    TOKEN_USAGE: Instrument("{token}", "Number of input and output tokens used.", _TOKENS),
    DURATION: Instrument("s", "GenAI operation duration.", _SECONDS),
    TIME_TO_FIRST_CHUNK: Instrument("s", "Time until the first piece of a streamed answer.", _SECONDS),
    RESPONSES: Instrument("{response}", "Responses, by their effective stop reason."),
    CALLS: Instrument("{call}", "Tool calls, by the gate's verdict."),
    TURNS: Instrument("{turn}", "Turns, by how they ended."),
    CONTINUATIONS: Instrument("{attempt}", "Requested continuations."),
    TRUNCATION_EXITS: Instrument("{turn}", "Turns that ended cut, by a limit or a guard."),
    ATTEMPTS: Instrument("{attempt}", "Continuations of each turn that was cut.", _ATTEMPTS),
    CONTINUED: Instrument("s", "Duration of each turn that was continued.", _SECONDS),
    CONTINUED_UNTIMED: Instrument("{turn}", "Continued turns whose duration is not recorded."),
}
"""Name -> metric, with the buckets that the conventions advise; the last five are those of ZeroClaw RFI 2309."""


# -- Spans and metric points as plain values -------------------------------------------------------------------------
# They need none of OpenTelemetry's packages. Times are nanoseconds; a span without a recorded time says so.

Attribute = str | int | float | bool | tuple[str, ...]
Attributes = Mapping[str, Attribute]


class OtelKind(StrEnum):
    """The kind of a span: client side or internal."""

    INTERNAL = "internal"
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """An event within a span."""

    name: str
    at: int
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OtelSpan:
    """One span. The spans of a turn form a trace, in which the span of the turn itself comes first."""

    name: str
    kind: OtelKind
    start: int
    """Nanoseconds since the epoch."""
    end: int
    attributes: Attributes
    parent: int | None = None
    """The index of the parent span in the same sequence; None for the span of a turn."""
    events: tuple[SpanEvent, ...] = ()
    error: str | None = None
    """Why the span is an error, in one of this program's words; None if it is not."""
    seed: bytes = b""
    """The bytes from which the ids of the trace are made; empty except for the span of a turn."""


@dataclass(frozen=True, slots=True)
class OtelPoint:
    """One measurement of an instrument of `INSTRUMENTS`."""

    name: str
    value: int | float
    attributes: Attributes


def compact(attributes: Mapping[str, Attribute | None]) -> dict[str, Attribute]:
    """The attributes that have a value; unknown ones are left out."""
    return {name: value for name, value in attributes.items() if value is not None and value not in ("", ())}


STEP = 1_000
"""The nanoseconds after a span without a recorded end, so that viewers keep the order of the spans."""
SKEW = 100_000_000
"""A tolerance in nanoseconds: with two clocks, a tool that took no time may seem to end before its answer."""


class When(NamedTuple):
    """The times of one span."""

    start: int
    end: int
    basis: Times


class Clock:
    """Places spans one after another on a time line."""

    __slots__ = ("at",)

    def __init__(self, at: int) -> None:
        self.at = at

    def exchange(self, exchange: Exchange) -> When:
        """The times of the next exchange."""
        start, took = moment(exchange.started), length(exchange)
        if start is not None and took is not None:
            return self._advance(When(start, start + took, Times.RECORDED))
        if start is not None:
            return self._advance(When(start, start, Times.START))
        if took is not None:
            return self._advance(When(self.at, self.at + took, Times.LENGTH))
        return self._advance(When(self.at, self.at, Times.ORDER))

    def tool(self, since: int | None, until: str | None) -> When:
        """The times of a tool run, after `since` and before `until`, as far as these are known."""
        end = moment(until)
        if end is None:
            return self._advance(When(self.at, self.at, Times.ORDER))
        if since is None or since - end > SKEW:  # the answer's end is unknown, or contradicts the result's time
            return self._advance(When(end, end, Times.ORDER))
        # within the tolerance the start may be after the end, but a span must not end before it starts
        return self._advance(When(min(since, end), end, Times.BATCH))

    def _advance(self, when: When) -> When:
        self.at = max(self.at, when.end) + (0 if when.basis in (Times.RECORDED, Times.BATCH) else STEP)
        return when


def first_moment(exchanges: Iterable[Exchange]) -> int | None:
    """The earliest recorded start."""
    found = [start for start in (moment(exchange.started) for exchange in exchanges) if start is not None]
    return min(found, default=None)
