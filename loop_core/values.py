"""The values that the whole engine shares: requests, messages, tool calls, responses, stop reasons, findings.

Every value is immutable, and its methods only read its own fields. Nothing in this module depends on a wire format, a
policy or a state of the machine. Text is `str`, offsets are bytes of the decoded body, token counts are whole tokens.
"""

# Annotations are not postponed: of a named tuple each would be compiled from text at every start.
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

EMPTY: Mapping[str, Any] = {}
"""The empty mapping that values share; one for each would take 64 bytes."""

_Value = TypeVar("_Value")

shared: Callable[[_Value], _Value] = lru_cache(maxsize=4096, typed=True)(lambda value: value)
"""Gives one object for equal values of one type, so that one copy is held: most answers share a few values."""


class Stop(StrEnum):
    """Why a response stopped, in one vocabulary for all wire formats."""

    __hash__ = str.__hash__  # these are keys of hot tables, and Enum's own hash is a Python function

    END_TURN = "end_turn"
    """The model is done, or wrote a stop sequence."""
    TOOL_CALL = "tool_call"
    """The model waits for the results of its calls."""
    MAX_TOKENS = "max_tokens"
    """Cut by the output limit."""
    CONTEXT_WINDOW_EXCEEDED = "context_window_exceeded"
    """Cut, or refused, because the context is full: going on cannot succeed."""
    SAFETY_BLOCKED = "safety_blocked"
    """A filter, a guardrail or a refusal ended it."""
    CANCELLED = "cancelled"
    """Ended by the client or the operator."""
    UNKNOWN = "unknown"
    """A word that is in no table; it never counts as finished."""
    PAUSED = "paused"
    """The provider waits for us; `StopReason.detail` says how to resume: echo, token, poll or server."""
    INTERRUPTED = "interrupted"
    """The stream ended without a terminal."""
    MALFORMED_TOOL_CALL = "malformed_tool_call"
    """A call was sent that is not a call: invalid, or refused by the provider's own parser."""
    ERROR = "error"
    """`StopReason.detail` begins with retryable or fatal."""


FINISHED = frozenset({Stop.END_TURN, Stop.TOOL_CALL})
"""The words that say nothing was lost: a loop ends in peace, or goes on with the tools."""
WORDLESS = FINISHED | {Stop.UNKNOWN}
"""The same, with a missing or unknown word: what shows a cut shows it under these too."""


class ExchangePart(StrEnum):
    """The part of an exchange that a fact was read from."""

    BODY = "body"
    HEADERS = "headers"
    REQUEST = "request"


class At(NamedTuple):
    """A place in an exchange: bytes `start` to `end` of the decoded body, and a JSON pointer inside them."""

    part: ExchangePart = ExchangePart.BODY
    start: int | None = None
    end: int | None = None
    pointer: str | None = None


class FactQuote(NamedTuple):
    """Characters `start` to `end` of a fact of the response: `text` or `reasoning`."""

    fact: str
    start: int
    end: int


class Evidence(NamedTuple):
    """One observation that led to a stop reason: the rule, and the bytes that it read."""

    rule: str
    at: At | None = None
    note: str = ""
    """A description of the observation, for people."""
    quote: FactQuote | None = None
    """The characters that it goes by, where it was read from a text."""


class StopReason(NamedTuple):
    """A normalized word beside the provider's own, with the evidence that led to it, in order."""

    normalized: Stop
    raw: str | None = None
    """The provider's word, verbatim; None if it sent none."""
    detail: str | None = None
    evidence: tuple[Evidence, ...] = ()


class Severity(StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


INTERRUPTED = StopReason(Stop.INTERRUPTED)
"""The reason of a response without any word about its end."""


class Finding(NamedTuple):
    """Something that deserves attention: a contradiction, a peculiarity, a loss. `rule` is a stable dotted name."""

    rule: str
    severity: Severity
    message: str
    at: At | None = None
    quote: FactQuote | None = None
    """The characters that the finding is about, if it is about a text."""


class CallKind(StrEnum):
    """Who runs a tool call, and the kind of its payload."""

    FUNCTION = "function"
    CUSTOM = "custom"
    """Free-form text instead of JSON arguments (Responses custom tools)."""
    SERVER = "server"
    """Run by the provider itself; neither promoted nor gated."""


class ArgsForm(StrEnum):
    """How arguments were sent: as a string, or as a JSON object, in which a cut cannot be seen."""

    STRING = "string"
    OBJECT = "object"


class ToolCall(NamedTuple):
    """A tool call exactly as received."""

    id: str | None
    """The provider's id; None if the format or the server has none (never invented here)."""
    name: str
    arguments: str | None
    """The exact characters received (for `ArgsForm.OBJECT` the JSON slice); None only when absent. Never repaired."""
    closed: bool = False
    """The provider said that this call is finished (its block was closed, or a stop reason followed it)."""
    kind: CallKind = CallKind.FUNCTION
    form: ArgsForm = ArgsForm.STRING
    status: str | None = None
    """The provider's own word for this call (Responses `item.status`)."""
    item_id: str | None = None
    """A second id that some formats give (Responses `id` beside `call_id`)."""
    signature: str | None = None
    """A token that must go back with the call (Gemini `thoughtSignature`)."""
    other_arguments: str | None = None
    """Another text of the arguments that the provider sent, where it is not the same JSON; None if all agree."""
    arguments_unsent: bool = False
    """Its arguments are the empty object that a format begins every call with: no character of them was sent."""
    at: At | None = None


class TextPart(NamedTuple):
    """Visible text."""

    text: str


class ReasoningPart(NamedTuple):
    """Reasoning, with the data that must be sent back with it."""

    text: str
    signature: str | None = None
    data: str | None = None
    """Encrypted or redacted thinking, opaque."""
    item_id: str | None = None


class OpaquePart(NamedTuple):
    """A block that is not interpreted, kept as verbatim JSON so that it can be echoed."""

    type: str
    json: str


class ToolResultPart(NamedTuple):
    """The result of a tool call; it occurs in requests only."""

    call_id: str | None
    name: str | None
    text: str
    is_error: bool = False
    json: str | None = None
    """The content verbatim, where it holds more than text (images, documents); None where `text` is all of it."""

    @property
    def size(self) -> int:
        """The number of characters of the text."""
        return len(self.text)

    @property
    def text_key(self) -> Hashable:
        """A key that is equal for equal texts. It never reads a text that is only loaded on demand."""
        return self.text


ResponsePart = TextPart | ReasoningPart | ToolCall | OpaquePart
MessagePart = TextPart | ReasoningPart | ToolCall | OpaquePart | ToolResultPart


class Usage(NamedTuple):
    """Token counts as the provider reported them; None if it reported none."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    """Everything generated, reasoning included, whichever way the provider counts."""
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None

    @property
    def visible_tokens(self) -> int | None:
        """Output tokens without reasoning; None if unknown, or if less than the reasoning is reported (recorded)."""
        if self.output_tokens is None or (self.reasoning_tokens or 0) > self.output_tokens:
            return None
        return self.output_tokens - (self.reasoning_tokens or 0)


class Quota(NamedTuple):
    """The rate-limit headers of a response; raw header values by lower-case name."""

    limit_requests: int | None = None
    remaining_requests: int | None = None
    limit_tokens: int | None = None
    remaining_tokens: int | None = None
    reset: str | None = None
    retry_after: str | None = None
    headers: Mapping[str, str] = {}


class TransportEnd(StrEnum):
    """How the bytes of a response ended; `ChatResponse` holds separately what they said about the end."""

    EOF = "eof"
    RESET = "reset"
    TIMEOUT = "timeout"
    ABORTED = "aborted"
    CUT = "cut"
    """The end is unknown: the recording stopped while they arrived (a killed process, a full disk)."""


class ProviderError(NamedTuple):
    """An error that the provider reported, in a body or in the middle of a stream."""

    message: str
    type: str | None = None
    code: str | None = None
    retryable: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ChatResponse:
    """One response, decoded. `stop_reason` is the **mapped** reason: what the format's table says, without judging."""

    api: str
    parts: tuple[ResponsePart, ...] = ()
    stop_reason: StopReason = INTERRUPTED
    usage: Usage | None = None
    quota_metadata: Quota | None = None
    id: str | None = None
    model: str | None = None
    streaming: bool = False
    http_status: int | None = None
    refusal: str | None = None
    error: ProviderError | None = None
    native: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    """Other words the provider sent about the end, verbatim: native_finish_reason, stop_sequence, blockReason, …"""
    continuation_token: str | None = None
    saw_stop_reason: bool = False
    saw_done: bool = False
    transport_end: TransportEnd = TransportEnd.EOF
    findings: tuple[Finding, ...] = ()
    """Quirks of the bytes: a missing index, a repeated id, a broken frame."""
    other_choices: int = 0
    """How many further choices (n > 1) the body held; only the first is read."""
    size: int = 0
    """Bytes of the decoded body."""

    @property
    def raw_stop_reason(self) -> str | None:
        """The provider's own stop word."""
        return self.stop_reason.raw

    @property
    def text(self) -> str | None:
        """All visible text in order; None if there was none."""
        found = [part.text for part in self.parts if type(part) is TextPart]
        return "".join(found) if found else None

    @property
    def reasoning_content(self) -> str | None:
        """All readable reasoning in order; None if there was none."""
        found = [part.text for part in self.parts if type(part) is ReasoningPart and part.text]
        return "".join(found) if found else None

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls for the client to run, in order."""
        return tuple([p for p in self.parts if type(p) is ToolCall and p.kind is not CallKind.SERVER])

    @property
    def broken_connection(self) -> str:
        """How the client saw the connection break; empty if it saw no break."""
        return next((found.message for found in self.findings if found.rule.startswith("transport.")), "")

    @property
    def server_calls(self) -> tuple[ToolCall, ...]:
        """The calls that the provider ran itself."""
        return tuple(p for p in self.parts if type(p) is ToolCall and p.kind is CallKind.SERVER)


class Role(StrEnum):
    """The author of a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Message(NamedTuple):
    """One message of a request's history."""

    role: Role
    parts: tuple[MessagePart, ...] = ()

    @property
    def text(self) -> str:
        """The visible text of the message, joined."""
        return "".join([part.text for part in self.parts if type(part) is TextPart])

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls of the message that the client runs; calls that the provider ran are left out."""
        return tuple([p for p in self.parts if type(p) is ToolCall and p.kind is not CallKind.SERVER])

    @property
    def results(self) -> tuple[ToolResultPart, ...]:
        """The tool results that the message carries."""
        return tuple([p for p in self.parts if isinstance(p, ToolResultPart)])


class Tool(NamedTuple):
    """A tool as declared in a request."""

    name: str
    schema: Mapping[str, Any] | None = None
    """JSON Schema of the arguments as sent, in the provider's dialect; None if unknown."""
    description: str = ""
    kind: CallKind = CallKind.FUNCTION
    dialect: str = "json_schema"
    """json_schema, or openapi (Gemini's upper-case types and `nullable`)."""
    declaration: Mapping[str, Any] | None = None
    """The declaration as it stood in the request that it was read from, for what has no field here (`strict`, a server
    tool's settings); it is sent again as it stands. None for a tool that was made here."""


def tools_by_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    """The declarations by name; of several with one name the last one counts, as where a server keeps them by name."""
    return {tool.name: tool for tool in tools}


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A request to a provider, sent or to be sent."""

    api: str
    messages: tuple[Message, ...] = ()
    model: str | None = None
    tools: tuple[Tool, ...] = ()
    tool_choice: str | None = None
    """auto, any, none, or tool:NAME."""
    max_tokens: int | None = None
    """The output cap in tokens; None if the request set none."""
    stream: bool = False
    n: int = 1
    previous_id: str | None = None
    """The response that this one continues on the provider's side (Responses `previous_response_id`)."""
    continuation_token: str | None = None
    """The token with which a provider goes on with an answer that it paused (Gemini `continuationToken`)."""
    background: bool = False
    extra: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    """The other fields of the body (temperature, thinking, response_format…), by the provider's own names, as JSON."""
